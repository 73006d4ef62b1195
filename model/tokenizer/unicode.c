/* utf8proc with the differences between its Unicode version and the checkpoints' as tables. */
#include "model/tokenizer/unicode.h"

#include <stdlib.h>
#include <utf8proc.h>

size_t unicode_decode(const char *s, size_t n, uint32_t *code)
{
    const unsigned char *p = (const unsigned char *)s;
    unsigned lead = p[0], low = 0x80, high = 0xBF;
    size_t want;
    if (lead < 0x80) {
        *code = lead;
        return 1;
    }
    *code = UNICODE_INVALID;
    if (lead < 0xC2 || lead > 0xF4) return 1;
    want = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    /* The range of the second byte excludes overlong forms, surrogates and code points above
     * U+10FFFF. */
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    uint32_t c = lead & (0xFFu >> (want + 1));
    for (size_t i = 1; i < want; i++) {
        if (i >= n || p[i] < low || p[i] > high) return i;
        c = c << 6 | (p[i] & 0x3F);
        low = 0x80;
        high = 0xBF;
    }
    *code = c;
    return want;
}

typedef struct {
    uint32_t first, last;
} Range;

static int in_ranges(uint32_t code, const Range *r, size_t n)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (code > r[mid].last)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && code >= r[low].first;
}
#define IN(code, ranges) in_ranges(code, ranges, sizeof ranges / sizeof *(ranges))

/* Letters and numbers of Unicode 15 and 16, for a utf8proc without them. */
static const Range new_letters[] = {
    {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3},
    {0x10D4A, 0x10D65}, {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4}, {0x1123F, 0x11240},
    {0x11380, 0x11389}, {0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5},
    {0x113B7, 0x113B7}, {0x113D1, 0x113D1}, {0x113D3, 0x113D3}, {0x11BC0, 0x11BE0},
    {0x11F02, 0x11F02}, {0x11F04, 0x11F10}, {0x11F12, 0x11F33}, {0x1342F, 0x1342F},
    {0x13441, 0x13446}, {0x13460, 0x143FA}, {0x16100, 0x1611D}, {0x16D40, 0x16D6C},
    {0x18CFF, 0x18CFF}, {0x1B132, 0x1B132}, {0x1B155, 0x1B155}, {0x1DF25, 0x1DF2A},
    {0x1E030, 0x1E06D}, {0x1E4D0, 0x1E4EB}, {0x1E5D0, 0x1E5ED}, {0x1E5F0, 0x1E5F0},
    {0x2B739, 0x2B739}, {0x2EBF0, 0x2EE5D}, {0x31350, 0x323AF},
};
static const Range new_numbers[] = {
    {0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x11F50, 0x11F59},
    {0x16130, 0x16139}, {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9}, {0x1D2C0, 0x1D2D3},
    {0x1E4F0, 0x1E4F9}, {0x1E5F1, 0x1E5FA},
};

UnicodeClass unicode_class(uint32_t code)
{
    if (code < 0x80) {
        if ((code | 32) >= 'a' && (code | 32) <= 'z') return CLASS_LETTER;
        if (code >= '0' && code <= '9') return CLASS_NUMBER;
        return code == ' ' || (code >= '\t' && code <= '\r') ? CLASS_SPACE : CLASS_OTHER;
    }
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CLASS_LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CLASS_NUMBER;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return CLASS_SPACE;
    case UTF8PROC_CATEGORY_CN:
        return IN(code, new_letters)   ? CLASS_LETTER
               : IN(code, new_numbers) ? CLASS_NUMBER
                                       : CLASS_OTHER;
    default: return code == 0x85 ? CLASS_SPACE : CLASS_OTHER;
    }
}

int unicode_repair(const char **text, size_t *len, Buffer *copy, Error *err)
{
    const char *s = *text;
    size_t n = *len, at = 0, clean = 0; /* [0, clean) is in the copy */
    uint32_t code;
    int repaired = 0;
    while (at < n) {
        size_t k = (unsigned char)s[at] < 0x80 ? 1 : unicode_decode(s + at, n - at, &code);
        if ((unsigned char)s[at] >= 0x80 && code == UNICODE_INVALID) {
            if (!repaired++) buffer_clear(copy);
            buffer_append(copy, s + clean, at - clean);
            buffer_puts(copy, "\xEF\xBF\xBD");
            clean = at + k;
        }
        at += k;
    }
    if (!repaired) return 0;
    if (buffer_append(copy, s + clean, n - clean) || copy->full)
        return error_set(err, ERROR_LIMIT, "text of more than %zu bytes", copy->max);
    *text = copy->data;
    *len = copy->len;
    return 0;
}

/* Combining marks (and one composing vowel, U+11930) newer than Unicode 9. The normalizer of the
 * checkpoints does not know them: it neither reorders nor composes across one. The list is the
 * difference to the NFC of Unicode 14 over all code points. */
static const Range late_marks[] = {
    {0x07FD, 0x07FD},   {0x0898, 0x089F},   {0x08CA, 0x08D3},   {0x09FE, 0x09FE},
    {0x0C3C, 0x0C3C},   {0x0D3B, 0x0D3C},   {0x0EBA, 0x0EBA},   {0x1715, 0x1715},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAC}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070},
    {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11930, 0x11930},
    {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
    {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
    {0x11D97, 0x11D97}, {0x16FF0, 0x16FF1}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE},
    {0x1E2EC, 0x1E2EF},
};

static int is_mark(uint32_t code)
{
    if (code < 0x300) return 0;
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

static int append_nfc(Buffer *copy, const char *s, size_t n, Error *err)
{
    if (!n) return 0;
    utf8proc_uint8_t *out = NULL;
    utf8proc_ssize_t len = utf8proc_map((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)n, &out,
                                        UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (len < 0)
        return error_set(err, ERROR_INVALID, "the text cannot be normalised: %s",
                         utf8proc_errmsg(len));
    buffer_append(copy, out, (size_t)len);
    free(out);
    return 0;
}

int unicode_nfc(const char **text, size_t *len, Buffer *copy, Error *err)
{
    enum { MAX_MARKS = 1024 }; /* in a row: sorting them takes quadratic time */
    const char *s = *text;
    size_t n = *len, at = 0, done = 0, marks = 0;
    while (at < n && (unsigned char)s[at] < 0xCC) at++; /* 0xCC is the lead byte of U+0300 */
    if (at == n) return 0;
    buffer_clear(copy);
    for (uint32_t code; at < n;) {
        size_t k = unicode_decode(s + at, n - at, &code);
        marks = is_mark(code) ? marks + 1 : 0;
        if ((code >= late_marks[0].first && IN(code, late_marks)) || marks > MAX_MARKS) {
            marks = 0;
            if (append_nfc(copy, s + done, at - done, err)) return -1;
            buffer_append(copy, s + at, k);
            done = at + k;
        }
        at += k;
    }
    if (append_nfc(copy, s + done, n - done, err)) return -1;
    if (copy->full) return error_set(err, ERROR_LIMIT, "text of more than %zu bytes", copy->max);
    *text = copy->data;
    *len = copy->len;
    return 0;
}

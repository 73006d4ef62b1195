/* utf8proc with the differences between its Unicode version and the checkpoints' as tables. */
#include "model/tokenizer/unicode.h"

#include <stdlib.h>
#include <string.h>
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

/* What Unicode 15 and 16 have added, for a utf8proc without them. */
#define C(name) UTF8PROC_CATEGORY_##name
/* clang-format off */
static const struct {
    uint32_t first, last;
    int category;
} new_codes[] = {
    {0x0897, 0x0897, C(MN)}, {0x0CF3, 0x0CF3, C(MC)}, {0x0ECE, 0x0ECE, C(MN)},
    {0x1B4E, 0x1B4F, C(PO)}, {0x1B7F, 0x1B7F, C(PO)}, {0x1C89, 0x1C89, C(LU)},
    {0x1C8A, 0x1C8A, C(LL)}, {0x2427, 0x2429, C(SO)}, {0x2FFC, 0x2FFF, C(SO)},
    {0x31E4, 0x31E5, C(SO)}, {0x31EF, 0x31EF, C(SO)}, {0xA7CB, 0xA7CC, C(LU)},
    {0xA7CD, 0xA7CD, C(LL)}, {0xA7DA, 0xA7DA, C(LU)}, {0xA7DB, 0xA7DB, C(LL)},
    {0xA7DC, 0xA7DC, C(LU)}, {0x105C0, 0x105F3, C(LO)}, {0x10D40, 0x10D49, C(ND)},
    {0x10D4A, 0x10D4D, C(LO)}, {0x10D4E, 0x10D4E, C(LM)}, {0x10D4F, 0x10D4F, C(LO)},
    {0x10D50, 0x10D65, C(LU)}, {0x10D69, 0x10D6D, C(MN)}, {0x10D6E, 0x10D6E, C(PD)},
    {0x10D6F, 0x10D6F, C(LM)}, {0x10D70, 0x10D85, C(LL)}, {0x10D8E, 0x10D8F, C(SM)},
    {0x10EC2, 0x10EC4, C(LO)}, {0x10EFC, 0x10EFF, C(MN)}, {0x1123F, 0x11240, C(LO)},
    {0x11241, 0x11241, C(MN)}, {0x11380, 0x11389, C(LO)}, {0x1138B, 0x1138B, C(LO)},
    {0x1138E, 0x1138E, C(LO)}, {0x11390, 0x113B5, C(LO)}, {0x113B7, 0x113B7, C(LO)},
    {0x113B8, 0x113BA, C(MC)}, {0x113BB, 0x113C0, C(MN)}, {0x113C2, 0x113C2, C(MC)},
    {0x113C5, 0x113C5, C(MC)}, {0x113C7, 0x113CA, C(MC)}, {0x113CC, 0x113CD, C(MC)},
    {0x113CE, 0x113CE, C(MN)}, {0x113CF, 0x113CF, C(MC)}, {0x113D0, 0x113D0, C(MN)},
    {0x113D1, 0x113D1, C(LO)}, {0x113D2, 0x113D2, C(MN)}, {0x113D3, 0x113D3, C(LO)},
    {0x113D4, 0x113D5, C(PO)}, {0x113D7, 0x113D8, C(PO)}, {0x113E1, 0x113E2, C(MN)},
    {0x116D0, 0x116E3, C(ND)}, {0x11B00, 0x11B09, C(PO)}, {0x11BC0, 0x11BE0, C(LO)},
    {0x11BE1, 0x11BE1, C(PO)}, {0x11BF0, 0x11BF9, C(ND)}, {0x11F00, 0x11F01, C(MN)},
    {0x11F02, 0x11F02, C(LO)}, {0x11F03, 0x11F03, C(MC)}, {0x11F04, 0x11F10, C(LO)},
    {0x11F12, 0x11F33, C(LO)}, {0x11F34, 0x11F35, C(MC)}, {0x11F36, 0x11F3A, C(MN)},
    {0x11F3E, 0x11F3F, C(MC)}, {0x11F40, 0x11F40, C(MN)}, {0x11F41, 0x11F41, C(MC)},
    {0x11F42, 0x11F42, C(MN)}, {0x11F43, 0x11F4F, C(PO)}, {0x11F50, 0x11F59, C(ND)},
    {0x11F5A, 0x11F5A, C(MN)}, {0x1342F, 0x1342F, C(LO)}, {0x13439, 0x1343F, C(CF)},
    {0x13440, 0x13440, C(MN)}, {0x13441, 0x13446, C(LO)}, {0x13447, 0x13455, C(MN)},
    {0x13460, 0x143FA, C(LO)}, {0x16100, 0x1611D, C(LO)}, {0x1611E, 0x16129, C(MN)},
    {0x1612A, 0x1612C, C(MC)}, {0x1612D, 0x1612F, C(MN)}, {0x16130, 0x16139, C(ND)},
    {0x16D40, 0x16D42, C(LM)}, {0x16D43, 0x16D6A, C(LO)}, {0x16D6B, 0x16D6C, C(LM)},
    {0x16D6D, 0x16D6F, C(PO)}, {0x16D70, 0x16D79, C(ND)}, {0x18CFF, 0x18CFF, C(LO)},
    {0x1B132, 0x1B132, C(LO)}, {0x1B155, 0x1B155, C(LO)}, {0x1CC00, 0x1CCEF, C(SO)},
    {0x1CCF0, 0x1CCF9, C(ND)}, {0x1CD00, 0x1CEB3, C(SO)}, {0x1D2C0, 0x1D2D3, C(NO)},
    {0x1DF25, 0x1DF2A, C(LL)}, {0x1E030, 0x1E06D, C(LM)}, {0x1E08F, 0x1E08F, C(MN)},
    {0x1E4D0, 0x1E4EA, C(LO)}, {0x1E4EB, 0x1E4EB, C(LM)}, {0x1E4EC, 0x1E4EF, C(MN)},
    {0x1E4F0, 0x1E4F9, C(ND)}, {0x1E5D0, 0x1E5ED, C(LO)}, {0x1E5EE, 0x1E5EF, C(MN)},
    {0x1E5F0, 0x1E5F0, C(LO)}, {0x1E5F1, 0x1E5FA, C(ND)}, {0x1E5FF, 0x1E5FF, C(PO)},
    {0x1F6DC, 0x1F6DC, C(SO)}, {0x1F774, 0x1F776, C(SO)}, {0x1F77B, 0x1F77F, C(SO)},
    {0x1F7D9, 0x1F7D9, C(SO)}, {0x1F8B2, 0x1F8BB, C(SO)}, {0x1F8C0, 0x1F8C1, C(SO)},
    {0x1FA75, 0x1FA77, C(SO)}, {0x1FA87, 0x1FA89, C(SO)}, {0x1FA8F, 0x1FA8F, C(SO)},
    {0x1FAAD, 0x1FAAF, C(SO)}, {0x1FABB, 0x1FABF, C(SO)}, {0x1FAC6, 0x1FAC6, C(SO)},
    {0x1FACE, 0x1FACF, C(SO)}, {0x1FADA, 0x1FADC, C(SO)}, {0x1FADF, 0x1FADF, C(SO)},
    {0x1FAE8, 0x1FAE9, C(SO)}, {0x1FAF7, 0x1FAF8, C(SO)}, {0x1FBCB, 0x1FBEF, C(SO)},
    {0x2B739, 0x2B739, C(LO)}, {0x2EBF0, 0x2EE5D, C(LO)}, {0x31350, 0x323AF, C(LO)},
};
/* clang-format on */
#undef C

int unicode_category(uint32_t code)
{
    int category = (int)utf8proc_category((utf8proc_int32_t)code);
    if (category != UTF8PROC_CATEGORY_CN) return code == 0x1171E ? UTF8PROC_CATEGORY_MC : category;
    size_t low = 0, high = sizeof new_codes / sizeof *new_codes;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (code > new_codes[mid].last)
            low = mid + 1;
        else
            high = mid;
    }
    int found = low < sizeof new_codes / sizeof *new_codes && code >= new_codes[low].first;
    return found ? new_codes[low].category : category;
}

uint32_t unicode_categories(const char *name, size_t n)
{
    static const char names[][3] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                    "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                    "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
    uint32_t mask = 0;
    for (int i = 0; i < 30 && (n == 1 || n == 2); i++)
        if (!memcmp(names[i], name, n)) mask |= 1u << i;
    return mask;
}

int unicode_is_space(uint32_t code)
{
    if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
    int category = code == 0x85 ? UTF8PROC_CATEGORY_ZS : unicode_category(code);
    return category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP;
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

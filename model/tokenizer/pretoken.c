/* The expressions as a hand-written matcher: one pass, without backtracking beyond a run. */
#include "model/tokenizer/bpe.h"

#include <string.h>

#include "model/tokenizer/unicode.h"

#define HEAD "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define TAIL "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
const char *const pretoken_regex_1 = HEAD "\\p{N}" TAIL;
const char *const pretoken_regex_3 = HEAD "\\p{N}{1,3}" TAIL;
const char *const pretoken_regex_lines = "[^\\n]*\\n|[^\\n]+";

/* One character of the text; size 0 at the end. */
typedef struct {
    uint32_t code;
    unsigned size;
    UnicodeClass class;
} Char;

static Char char_at(const char *s, size_t n, size_t at)
{
    Char c = {0};
    if (at >= n) return c;
    c.size = (unsigned)unicode_decode(s + at, n - at, &c.code);
    c.class = unicode_class(c.code);
    return c;
}

static int is_newline(uint32_t code)
{
    return code == '\r' || code == '\n';
}

/* Case folding for the contractions: the long s folds to s. */
static uint32_t fold(uint32_t code)
{
    if (code >= 'A' && code <= 'Z') return code + 32;
    return code == 0x17F ? 's' : code;
}

/* Match 's 't 're 've 'm 'll 'd after the apostrophe at `at`. Returns the end, or 0. */
static size_t contraction(const char *s, size_t n, size_t at)
{
    Char a = char_at(s, n, at + 1);
    uint32_t x = a.size ? fold(a.code) : 0;
    if (x == 's' || x == 't' || x == 'm' || x == 'd') return at + 1 + a.size;
    Char b = char_at(s, n, at + 1 + a.size);
    uint32_t y = a.size && b.size ? fold(b.code) : 0;
    if ((x == 'r' && y == 'e') || (x == 'v' && y == 'e') || (x == 'l' && y == 'l'))
        return at + 1 + a.size + b.size;
    return 0;
}

static size_t run(const char *s, size_t n, size_t at, UnicodeClass class, int limit)
{
    for (int i = 0; i < limit || !limit; i++) {
        Char c = char_at(s, n, at);
        if (!c.size || c.class != class) break;
        at += c.size;
    }
    return at;
}

/* Match a run of white space: up to its last line break if it has one; else all but its last
 * character, which belongs to the next word; else all of it. */
static size_t space(const char *s, size_t n, size_t at)
{
    size_t end = at, last = at, after_break = 0;
    for (Char c; (c = char_at(s, n, end)).size && c.class == CLASS_SPACE;) {
        last = end;
        end += c.size;
        if (is_newline(c.code)) after_break = end;
    }
    if (after_break) return after_break;
    return end == n || last == at ? end : last;
}

/* GPT-2's expression: contractions in small letters, one blank before a word, number or marks. */
static size_t gpt2_end(const char *s, size_t n, size_t at)
{
    Char c = char_at(s, n, at);
    if (c.code == '\'') {
        size_t end = contraction(s, n, at);
        int small = 1; /* ASCII, as it is written */
        for (size_t i = at + 1; i < end; i++) small &= s[i] >= 'a' && s[i] <= 'z';
        if (end && small) return end;
    }
    size_t first = at + (c.code == ' ');
    Char word = char_at(s, n, first);
    if (word.size && word.class != CLASS_SPACE) return run(s, n, first, word.class, 0);
    size_t end = at, last = at;
    while ((c = char_at(s, n, end)).size && c.class == CLASS_SPACE) {
        last = end;
        end += c.size;
    }
    return end == n || last == at ? end : last;
}

static size_t digits_end(const char *s, size_t n, size_t at)
{
    Char c = char_at(s, n, at);
    if (c.class == CLASS_NUMBER) return at + c.size;
    size_t end = at;
    while ((c = char_at(s, n, end)).size && c.class != CLASS_NUMBER) end += c.size;
    return gpt2_end(s, end, at);
}

size_t pretoken_end(const char *s, size_t n, size_t at, int max_digits)
{
    if (max_digits == PRETOKEN_LINES) {
        const char *newline = memchr(s + at, '\n', n - at);
        return newline ? (size_t)(newline - s) + 1 : n;
    }
    if (max_digits == PRETOKEN_GPT2) return gpt2_end(s, n, at);
    if (max_digits == PRETOKEN_DIGITS) return digits_end(s, n, at);
    Char c = char_at(s, n, at);
    if (c.code == '\'') {
        size_t end = contraction(s, n, at);
        if (end) return end;
    }
    size_t next = at + c.size;
    if (c.class == CLASS_LETTER) return run(s, n, next, CLASS_LETTER, 0);
    if (c.class == CLASS_NUMBER)
        return max_digits == 1 ? next : run(s, n, next, CLASS_NUMBER, max_digits - 1);
    if (!is_newline(c.code)) {
        size_t end = run(s, n, next, CLASS_LETTER, 0); /* one mark or space may precede a word */
        if (end > next) return end;
    }
    size_t marks = c.code == ' ' ? next : at, end = run(s, n, marks, CLASS_OTHER, 0);
    if (end > marks) {
        while (end < n && is_newline((unsigned char)s[end])) end++;
        return end;
    }
    return space(s, n, at);
}

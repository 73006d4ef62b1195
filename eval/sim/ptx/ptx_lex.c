/* The lexer: one token of lookahead, no copies of the text. A malformed number or string becomes a
 * token marked bad, so that the parser decides what it means. */
#include "eval/sim/ptx/ptx_lex.h"

#include <stdlib.h>
#include <string.h>

static int is_ident_start(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' ||
           c == '.';
}

static int is_ident(int c)
{
    return is_ident_start(c) || (c >= '0' && c <= '9');
}

static int hex_digit(int c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void ptx_lex_init(PtxLexer *l, const char *text, size_t len)
{
    memset(l, 0, sizeof *l);
    l->text = l->p = text;
    l->end = text + len;
    l->line = 1;
    ptx_lex_next(l);
}

static void skip_space(PtxLexer *l)
{
    while (l->p < l->end) {
        if (*l->p == '\n') {
            l->line++;
            l->p++;
        } else if (*l->p == ' ' || *l->p == '\t' || *l->p == '\r') {
            l->p++;
        } else if (l->end - l->p >= 2 && l->p[0] == '/' && l->p[1] == '/') {
            const char *nl = memchr(l->p, '\n', (size_t)(l->end - l->p));
            l->p = nl ? nl : l->end;
        } else if (l->end - l->p >= 2 && l->p[0] == '/' && l->p[1] == '*') {
            for (l->p += 2;
                 l->p < l->end && !(l->end - l->p >= 2 && l->p[0] == '*' && l->p[1] == '/'); l->p++)
                l->line += *l->p == '\n';
            l->p = l->end - l->p >= 2 ? l->p + 2 : l->end;
        } else {
            return;
        }
    }
}

/* Reads digits of the base into the token. No digits or an overflow mark the token bad. */
static void lex_digits(PtxLexer *l, unsigned base)
{
    uint64_t v = 0;
    int n = 0;
    for (; l->p < l->end; l->p++, n++) {
        int d = hex_digit((unsigned char)*l->p);
        if (d < 0 || (unsigned)d >= base) break;
        uint64_t next;
        if (__builtin_mul_overflow(v, base, &next) ||
            __builtin_add_overflow(next, (uint64_t)d, &next))
            l->tok.bad = 1;
        v = next;
    }
    l->tok.bad |= n == 0;
    l->tok.value = v;
}

static void lex_decimal_float(PtxLexer *l)
{
    char copy[64];
    size_t n = 0;
    const char *p = l->tok.start;
    for (; p < l->end && n < sizeof copy - 1; p++) {
        int exponent_sign =
            (*p == '+' || *p == '-') && n && (copy[n - 1] == 'e' || copy[n - 1] == 'E');
        if (!(hex_digit((unsigned char)*p) >= 0 && *p <= '9') && *p != '.' && *p != 'e' &&
            *p != 'E' && !exponent_sign)
            break;
        copy[n++] = *p;
    }
    copy[n] = 0;
    char *rest;
    double v = strtod(copy, &rest);
    l->tok.bad |= *rest != 0;
    memcpy(&l->tok.value, &v, 8);
    l->tok.kind = TOK_F64;
    l->p = p;
}

static void lex_number(PtxLexer *l)
{
    l->tok.kind = TOK_INT;
    char second = l->end - l->p >= 2 ? l->p[1] : 0;
    if (*l->p == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
        int wide = second == 'd' || second == 'D';
        l->tok.kind = wide ? TOK_F64 : TOK_F32;
        l->p += 2;
        const char *digits = l->p;
        lex_digits(l, 16);
        l->tok.bad |= l->p - digits != (wide ? 16 : 8);
        return;
    }
    if (*l->p == '0' && (second == 'x' || second == 'X')) {
        l->p += 2;
        lex_digits(l, 16);
    } else if (*l->p == '0' && (second == 'b' || second == 'B')) {
        l->p += 2;
        lex_digits(l, 2);
    } else {
        const char *q = l->p;
        while (q < l->end && *q >= '0' && *q <= '9') q++;
        if (q < l->end && (*q == '.' || *q == 'e' || *q == 'E')) {
            lex_decimal_float(l);
            return;
        }
        lex_digits(l, *l->p == '0' && q - l->p > 1 ? 8 : 10);
    }
    if (l->p < l->end && *l->p == 'U') l->p++;
}

static void lex_text(PtxLexer *l)
{
    l->tok.kind = TOK_TEXT;
    for (l->p++; l->p < l->end && *l->p != '"' && *l->p != '\n'; l->p++)
        if (*l->p == '\\' && l->end - l->p > 1) l->p++;
    l->tok.bad = l->p >= l->end || *l->p != '"';
    if (l->p < l->end) l->p++;
}

void ptx_lex_next(PtxLexer *l)
{
    skip_space(l);
    l->tok = (PtxToken){.start = l->p, .line = l->line};
    if (l->p >= l->end) {
        l->tok.kind = TOK_END;
        return;
    }
    if (is_ident_start((unsigned char)*l->p)) {
        l->tok.kind = TOK_IDENT;
        while (l->p < l->end) {
            if (*l->p == '.' && *l->tok.start == '.' && l->p != l->tok.start)
                break; /* .reg.b32: two directives */
            else if (is_ident((unsigned char)*l->p))
                l->p++;
            else if (l->end - l->p >= 3 && l->p[0] == ':' && l->p[1] == ':' &&
                     is_ident((unsigned char)l->p[2]))
                l->p += 3;
            else
                break;
        }
    } else if (*l->p >= '0' && *l->p <= '9') {
        lex_number(l);
    } else if (*l->p == '"') {
        lex_text(l);
    } else {
        l->tok.kind = TOK_PUNCT;
        l->p++;
    }
    l->tok.len = (size_t)(l->p - l->tok.start);
}

int ptx_lex_is(const PtxLexer *l, const char *s)
{
    return l->tok.kind != TOK_END && strlen(s) == l->tok.len &&
           memcmp(l->tok.start, s, l->tok.len) == 0;
}

int ptx_lex_accept(PtxLexer *l, const char *s)
{
    if (!ptx_lex_is(l, s)) return 0;
    ptx_lex_next(l);
    return 1;
}

/* One pass over the text. A line's place decides what becomes of it: code, directive, macro or nothing. */
#include "lab/mutate/cuda_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"

enum { MAX_DEPTH = 256 };

typedef struct {
    Tokens *out;
    const char *p, *line_start;
    int line, open[MAX_DEPTH], depth;
    TokenPlace place;
} Reader;

static void next_line(Reader *r)
{
    r->line++;
    r->line_start = r->p + 1;
    if (r->p == r->out->text || r->p[-1] != '\\') r->place = IN_CODE;
}

static int begins_line(const Reader *r)
{
    for (const char *p = r->line_start; p < r->p; p++)
        if (*p != ' ' && *p != '\t') return 0;
    return 1;
}

static void skip_line(Reader *r)
{
    while (*r->p && *r->p != '\n') r->p++;
}

static void skip_comment(Reader *r)
{
    const char *end = strstr(r->p + 2, "*/");
    for (; *r->p && r->p != end; r->p++)
        if (*r->p == '\n') next_line(r);
    if (end) r->p = end + 2;
}

/* Skip a comment or a line of the preprocessor, or step into one that has tokens. 0: there is none here. */
static int take_aside(Reader *r)
{
    const char *p = r->p;
    if (!strncmp(p, "//@", 3)) {
        r->place = IN_PLAN;
        r->p += 3;
    } else if (!strncmp(p, "//", 2)) {
        skip_line(r);
    } else if (!strncmp(p, "/*", 2)) {
        skip_comment(r);
    } else if (*p == '#' && begins_line(r)) {
        r->place = IN_MACRO;
        p += 1 + strspn(p + 1, " \t");
        if (strncmp(p, "define", 6)) skip_line(r);
        if (*r->p == '#') r->p++;
    } else {
        return 0;
    }
    return 1;
}

static size_t number_length(const char *p)
{
    size_t n = 1;
    int hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
    while (
        word_has(p[n]) || (p[n] == '.' && p[n + 1] != '.') ||
        ((p[n] == '+' || p[n] == '-') && strchr(hex ? "pP" : "eE", p[n - 1]))) /* of an exponent */
        n++;
    return n;
}

static size_t text_length(const char *p)
{
    size_t n = 1;
    while (p[n] && p[n] != *p) n += p[n] == '\\' && p[n + 1] ? 2 : 1;
    return p[n] ? n + 1 : n;
}

static size_t sign_length(const char *p, TokenPlace place)
{
    static const char *const signs[] = {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>",
                                        "<=",  ">=",  "==",  "!=", "&&", "||", "+=", "-=",
                                        "*=",  "/=",  "%=",  "&=", "|=", "^=", "::", ".."};
    if (place == IN_PLAN && (!strncmp(p, "<<<", 3) || !strncmp(p, ">>>", 3))) return 3;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (!strncmp(p, signs[i], strlen(signs[i]))) return strlen(signs[i]);
    return 1;
}

/* Note the brackets: what opens waits for what closes. */
static void pair(Reader *r, int i)
{
    Token *t = &r->out->at[i];
    t->inside = r->depth ? r->open[r->depth - 1] : -1;
    t->mate = -1;
    if (t->kind != TOKEN_SIGN || t->len != 1) return;
    if (strchr("([{", *t->text) && r->depth < MAX_DEPTH) r->open[r->depth++] = i;
    if (!strchr(")]}", *t->text) || !r->depth) return;
    t->mate = r->open[--r->depth];
    t->inside = r->out->at[t->mate].inside;
    r->out->at[t->mate].mate = i;
}

static void add(Reader *r, TokenKind kind, size_t len)
{
    Tokens *out = r->out;
    if (out->n % 256 == 0) out->at = memory_grow(out->at, (size_t)out->n + 256, sizeof *out->at);
    out->at[out->n] = (Token){.kind = kind,
                              .place = r->place,
                              .text = r->p,
                              .len = len,
                              .line = r->line,
                              .column = (int)(r->p - r->line_start) + 1};
    pair(r, out->n++);
    r->p += len;
}

static void take_token(Reader *r)
{
    const char *p = r->p;
    if (word_begins_name(*p))
        add(r, TOKEN_NAME, word_length(p, NULL));
    else if (word_has(*p) || (*p == '.' && p[1] >= '0' && p[1] <= '9'))
        add(r, TOKEN_NUMBER, number_length(p));
    else if (*p == '"' || (*p == '\'' && r->place != IN_PLAN))
        add(r, TOKEN_TEXT, text_length(p));
    else
        add(r, TOKEN_SIGN, sign_length(p, r->place));
}

void tokens_read(const char *text, Tokens *out)
{
    Reader r = {.out = out, .p = text, .line_start = text, .line = 1, .place = IN_CODE};
    *out = (Tokens){.text = text};
    while (*r.p) {
        if (*r.p == '\n')
            next_line(&r), r.p++;
        else if (strchr(" \t\r\\", *r.p))
            r.p++;
        else if (!take_aside(&r))
            take_token(&r);
    }
}

void tokens_release(Tokens *t)
{
    free(t->at);
    memset(t, 0, sizeof *t);
}

int token_is(const Tokens *t, int i, const char *word)
{
    return i >= 0 && i < t->n && word_is(t->at[i].text, t->at[i].len, word);
}

int token_among(const Tokens *t, int i, const char *words)
{
    if (i < 0 || i >= t->n) return 0;
    size_t n = t->at[i].len;
    for (const char *p = words; (p = memmem(p, strlen(p), t->at[i].text, n)); p++)
        if (p > words && p[-1] == ' ' && p[n] == ' ') return 1;
    return 0;
}

int token_is_word(const Tokens *t, int i)
{
    return i >= 0 && i < t->n && (t->at[i].kind == TOKEN_NAME || t->at[i].kind == TOKEN_NUMBER);
}

int token_statement(const Tokens *t, int i)
{
    int at = i;
    while (at > 0) {
        const Token *before = &t->at[at - 1];
        if (before->place != t->at[i].place) break;
        if (before->place != IN_CODE && before->line != t->at[at].line) break;
        if (token_among(t, at - 1, " ; { } ")) break;
        at--;
    }
    return at;
}

int token_operand_end(const Tokens *t, int i, const char *stops)
{
    int at = i;
    while (at < t->n && t->at[at].place == t->at[i].place) {
        if (token_among(t, at, " ) ] } ") || token_among(t, at, stops)) break;
        at = t->at[at].mate > at ? t->at[at].mate + 1 : at + 1;
    }
    return at;
}

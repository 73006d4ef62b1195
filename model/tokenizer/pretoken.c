/* What is done to a text before it is merged: rules that change it, then steps that cut it. */
#include "model/tokenizer/bpe.h"

#include <string.h>

#include "model/tokenizer/unicode.h"

const char *const pretoken_qwen2 = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{"
                                   "N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                                   "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const char *const pretoken_gpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char *const pretoken_lines = "[^\\n]*\\n|[^\\n]+";

/* ---- rules ---- */

int text_rule(TextRules *r, TextRuleKind kind, const char *from, const char *to, Error *err)
{
    if (r->n == TEXT_RULES)
        return error_set(err, ERROR_UNSUPPORTED, "expected at most %d changes of a text",
                         TEXT_RULES);
    TextRule *rule = &r->list[r->n++];
    rule->kind = kind;
    if (strlen(from) >= sizeof rule->from || strlen(to) >= sizeof rule->to)
        return error_set(err, ERROR_UNSUPPORTED, "a change of a text of more than %zu bytes",
                         sizeof rule->to - 1);
    strcpy(rule->from, from);
    strcpy(rule->to, to);
    return 0;
}

static int replace(const TextRule *rule, const char **text, size_t *len, Buffer *copy)
{
    const char *s = *text, *end = s + *len, *at;
    size_t n = strlen(rule->from);
    if (!memmem(s, *len, rule->from, n)) return 0;
    buffer_clear(copy);
    for (; (at = memmem(s, (size_t)(end - s), rule->from, n)); s = at + n) {
        buffer_append(copy, s, (size_t)(at - s));
        buffer_puts(copy, rule->to);
    }
    buffer_append(copy, s, (size_t)(end - s));
    *text = copy->data, *len = copy->len;
    return 0;
}

static int prepend(const TextRule *rule, int first, const char **text, size_t *len, Buffer *copy)
{
    const size_t n = strlen(rule->to);
    const int there = *len >= n && !memcmp(*text, rule->to, n);
    if (!*len || (rule->kind != TEXT_PREPEND && there) ||
        (rule->kind == TEXT_PREPEND_FIRST && !first))
        return 0;
    buffer_clear(copy);
    buffer_puts(copy, rule->to);
    buffer_append(copy, *text, *len);
    *text = copy->data, *len = copy->len;
    return 0;
}

int text_change(const TextRules *r, int first, const char **text, size_t *len, Buffer copies[2],
                Error *err)
{
    for (int i = 0; i < r->n; i++) {
        const TextRule *rule = &r->list[i];
        Buffer *copy = &copies[*text == copies[0].data];
        int rc = rule->kind == TEXT_NFC       ? unicode_nfc(text, len, copy, err)
                 : rule->kind == TEXT_REPLACE ? replace(rule, text, len, copy)
                                              : prepend(rule, first, text, len, copy);
        if (rc) return -1;
        if (copy->full)
            return error_set(err, ERROR_LIMIT, "text of more than %zu bytes", copy->max);
    }
    return 0;
}

/* ---- cutting ---- */

int pretoken_add(Pretoken *p, const char *pattern, size_t len, CutBehavior behavior, int invert,
                 Error *err)
{
    if (p->n == PRETOKEN_STEPS)
        return error_set(err, ERROR_UNSUPPORTED, "expected at most %d steps", PRETOKEN_STEPS);
    if (regex_compile(pattern, len, &p->steps[p->n].regex, err)) return -1;
    p->steps[p->n].behavior = behavior;
    p->steps[p->n++].invert = invert;
    return 0;
}

void pretoken_release(Pretoken *p)
{
    for (int i = 0; i < p->n; i++) regex_free(p->steps[i].regex);
    p->n = 0;
}

typedef struct {
    const Pretoken *p;
    const PretokenSink *sink;
    Error *err;
} Cutter;

/* The parts of one step over a text. */
typedef struct {
    const Cutter *c;
    int step;
    const char *s;
    size_t begin, end; /* a piece that what follows may still join */
    int was_match;
} Parts;

static int cut(const Cutter *c, int step, const char *s, size_t n);

static int flush(Parts *p)
{
    size_t begin = p->begin;
    p->begin = p->end;
    return p->end > begin ? cut(p->c, p->step + 1, p->s + begin, p->end - begin) : 0;
}

/* The part up to `end` follows those before it. */
static int part(Parts *p, size_t end, int is_match)
{
    const PretokenStep *step = &p->c->p->steps[p->step];
    if (end == p->end) return 0;
    is_match ^= step->invert;
    int joins = step->behavior == CUT_WITH_PREVIOUS && is_match && !p->was_match;
    p->was_match = is_match;
    if (!joins && flush(p)) return -1;
    p->end = end;
    if (step->behavior == CUT_REMOVED && is_match) p->begin = end;
    return 0;
}

static int cut(const Cutter *c, int step, const char *s, size_t n)
{
    if (step == c->p->n) return c->sink->piece(c->sink->ctx, s, n, c->err);
    Parts p = {.c = c, .step = step, .s = s};
    for (size_t at = 0; at < n;) {
        uint32_t code;
        long found = regex_match(c->p->steps[step].regex, s, n, at);
        if (found == REGEX_HARD)
            return error_set(c->err, ERROR_LIMIT, "the pre-tokenizer takes too long for this text");
        if (found <= 0) {
            at += unicode_decode(s + at, n - at, &code);
            continue;
        }
        if (part(&p, at, 0) || part(&p, at + (size_t)found, 1)) return -1;
        at += (size_t)found;
    }
    return -(part(&p, n, 0) || flush(&p));
}

int pretoken_cut(const Pretoken *p, const char *s, size_t n, const PretokenSink *sink, Error *err)
{
    return cut(&(Cutter){p, sink, err}, 0, s, n);
}

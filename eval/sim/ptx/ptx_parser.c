/* The parser's helpers. Symbols are kept in a hash table of chains; a scope is left by taking the
 * latest symbols out again, in the reverse order of their declaration. */
#include "eval/sim/ptx/ptx_parser.h"

#include <string.h>

static const PtxType types[] = {
    {".b8", 1, 16, REG_32},    {".u8", 1, 16, REG_32},     {".s8", 1, 16, REG_32},
    {".b16", 2, 16, REG_32},   {".u16", 2, 16, REG_32},    {".s16", 2, 16, REG_32},
    {".f16", 2, 16, REG_32},   {".bf16", 2, 16, REG_32},   {".b32", 4, 32, REG_32},
    {".u32", 4, 32, REG_32},   {".s32", 4, 32, REG_32},    {".f32", 4, 32, REG_32},
    {".f16x2", 4, 32, REG_32}, {".bf16x2", 4, 32, REG_32}, {".tf32", 4, 32, REG_32},
    {".b64", 8, 64, REG_64},   {".u64", 8, 64, REG_64},    {".s64", 8, 64, REG_64},
    {".f64", 8, 64, REG_64},   {".pred", 1, 1, REG_PRED},  {".b128", 16, 128, REG_128},
};

const PtxType *ptx_type(const PtxParser *p)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (ptx_lex_is(&p->lex, types[i].name)) return &types[i];
    return NULL;
}

int ptx_fail(PtxParser *p, const char *what)
{
    const PtxToken *t = &p->lex.tok;
    int len = t->len > 40 ? 40 : (int)t->len;
    return error_set(p->err, ERROR_CORRUPT, "PTX line %d: expected %s, found %s%.*s", t->line, what,
                     t->kind == TOK_END ? "the end" : "", len, t->start);
}

int ptx_expect(PtxParser *p, const char *s)
{
    return ptx_lex_accept(&p->lex, s) ? 0 : ptx_fail(p, s);
}

int ptx_skip_past(PtxParser *p, const char *s)
{
    while (p->lex.tok.kind != TOK_END)
        if (ptx_lex_accept(&p->lex, s))
            return 0;
        else
            ptx_lex_next(&p->lex);
    return ptx_fail(p, s);
}

int ptx_parse_count(PtxParser *p, uint64_t max, uint64_t *out)
{
    if (p->lex.tok.kind != TOK_INT || p->lex.tok.bad || p->lex.tok.value > max)
        return ptx_fail(p, "a number within limits");
    *out = p->lex.tok.value;
    ptx_lex_next(&p->lex);
    return 0;
}

/* ---- symbols ---- */

static uint32_t hash_name(const char *s, size_t len)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)s[i]) * 16777619u;
    return (h ^ h >> 15) % PTX_BUCKETS;
}

void ptx_declare(PtxParser *p, PtxSymbol symbol)
{
    PtxSymbol *s = ptx_arena_alloc(p->m->arena, sizeof *s);
    *s = symbol;
    uint32_t h = hash_name(s->name, s->len);
    s->chain = p->buckets[h];
    s->trail = p->trail;
    p->buckets[h] = p->trail = s;
}

static const PtxSymbol *find_exact(const PtxParser *p, const char *name, size_t len, int range)
{
    for (const PtxSymbol *s = p->buckets[hash_name(name, len)]; s; s = s->chain)
        if (s->len == len && s->is_range == range && memcmp(s->name, name, len) == 0) return s;
    return NULL;
}

const PtxSymbol *ptx_lookup(const PtxParser *p, const char *name, size_t len, uint32_t *reg)
{
    const PtxSymbol *s = find_exact(p, name, len, 0);
    if (s) {
        *reg = s->first;
        return s;
    }
    size_t digits = len;
    while (digits > 1 && name[digits - 1] >= '0' && name[digits - 1] <= '9') digits--;
    if (digits == len || len - digits > 6 || (name[digits] == '0' && len - digits > 1)) return NULL;
    uint32_t index = 0;
    for (size_t i = digits; i < len; i++) index = index * 10 + (uint32_t)(name[i] - '0');
    s = find_exact(p, name, digits, 1);
    if (!s || index >= s->count) return NULL;
    *reg = s->first + index;
    return s;
}

void ptx_leave(PtxParser *p, const PtxSymbol *mark)
{
    while (p->trail != mark) {
        p->buckets[hash_name(p->trail->name, p->trail->len)] = p->trail->chain;
        p->trail = p->trail->trail;
    }
}

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/ptx/ptx_parser.h"

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

void *ptx_push(void *array, int *n, int *cap, size_t size)
{
    if (*n == *cap) {
        *cap = *cap ? *cap * 2 : 16;
        array = memory_grow(array, (size_t)*cap, size);
    }
    memset((char *)array + (size_t)*n * size, 0, size);
    (*n)++;
    return array;
}

/* ---- symbols ---- */

static uint32_t hash_name(const char *s, size_t len)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)s[i]) * 16777619u;
    return (h ^ h >> 15) % PTX_BUCKETS;
}

int ptx_declare(PtxParser *p, PtxSymbol symbol)
{
    PtxSymbol *s = ptx_arena_alloc(p->m->arena, sizeof *s);
    *s = symbol;
    uint32_t h = hash_name(s->name, s->len);
    s->chain = p->buckets[h];
    s->trail = p->trail;
    p->buckets[h] = p->trail = s;
    return 0;
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

/* ---- variables ---- */

static int parse_count(PtxParser *p, uint64_t max, uint64_t *out)
{
    if (p->lex.tok.kind != TOK_INT || p->lex.tok.bad || p->lex.tok.value > max)
        return ptx_fail(p, "a number within limits");
    *out = p->lex.tok.value;
    ptx_lex_next(&p->lex);
    return 0;
}

typedef struct {
    PtxVar *var;
    uint64_t at; /* byte offset of the next element */
    int cap_relocs;
} Initialiser;

static int put_bytes(PtxParser *p, Initialiser *in, uint64_t value)
{
    if (in->at + in->var->element > in->var->size)
        return ptx_fail(p, "no more values than the variable has elements");
    memcpy(in->var->init + in->at, &value, in->var->element);
    in->at += in->var->element;
    return 0;
}

static int parse_init_name(PtxParser *p, Initialiser *in)
{
    struct PtxReloc r = {.at = in->at};
    r.generic = ptx_lex_accept(&p->lex, "generic");
    if (r.generic && ptx_expect(p, "(")) return -1;
    if (p->lex.tok.kind != TOK_IDENT) return ptx_fail(p, "a variable's name");
    r.name = ptx_arena_text(p->m->arena, p->lex.tok.start, p->lex.tok.len);
    ptx_lex_next(&p->lex);
    if (r.generic && ptx_expect(p, ")")) return -1;
    uint64_t addend = 0;
    if (ptx_lex_accept(&p->lex, "+") && parse_count(p, PTX_MAX_INIT, &addend)) return -1;
    r.addend = (int64_t)addend;
    in->var->relocs = ptx_push(in->var->relocs, &in->var->n_relocs, &in->cap_relocs, sizeof r);
    in->var->relocs[in->var->n_relocs - 1] = r;
    return put_bytes(p, in, 0);
}

static int parse_init_value(PtxParser *p, Initialiser *in, int depth)
{
    if (depth > 8) return ptx_fail(p, "fewer nested braces");
    if (ptx_lex_accept(&p->lex, "{")) {
        while (!ptx_lex_is(&p->lex, "}")) {
            if (parse_init_value(p, in, depth + 1)) return -1;
            if (!ptx_lex_accept(&p->lex, ",")) break;
        }
        return ptx_expect(p, "}");
    }
    if (p->lex.tok.kind == TOK_IDENT) return parse_init_name(p, in);
    int minus = ptx_lex_accept(&p->lex, "-");
    const PtxToken t = p->lex.tok;
    if ((t.kind != TOK_INT && t.kind != TOK_F32 && t.kind != TOK_F64) || t.bad)
        return ptx_fail(p, "an initial value");
    ptx_lex_next(&p->lex);
    return put_bytes(p, in, minus ? 0 - t.value : t.value);
}

static int parse_dimensions(PtxParser *p, PtxVar *v, uint64_t max)
{
    while (ptx_lex_accept(&p->lex, "[")) {
        if (ptx_lex_accept(&p->lex, "]")) {
            v->size = 0;
            continue;
        }
        uint64_t n = 0;
        if (parse_count(p, max, &n) || ptx_expect(p, "]")) return -1;
        if (v->size && n > max / v->size) return ptx_fail(p, "a smaller array");
        v->size *= n;
    }
    return 0;
}

/* Alignment, vector, type, name and dimensions: what variables and parameters share. */
static int parse_declarator(PtxParser *p, PtxVar *v, uint64_t max)
{
    uint64_t vector = 1;
    const PtxType *type = NULL;
    v->align = 0;
    while (p->lex.tok.kind == TOK_IDENT && p->lex.tok.start[0] == '.') {
        if (ptx_lex_accept(&p->lex, ".align")) {
            uint64_t align = 0;
            if (parse_count(p, 4096, &align)) return -1;
            if (!v->is_pointer) v->align = (uint32_t)align;
        } else if (ptx_lex_accept(&p->lex, ".ptr")) {
            v->is_pointer = 1;
        } else if (ptx_lex_is(&p->lex, ".v2") || ptx_lex_is(&p->lex, ".v4")) {
            vector = ptx_lex_is(&p->lex, ".v4") ? 4 : 2;
            ptx_lex_next(&p->lex);
        } else if (ptx_lex_accept(&p->lex, ".attribute")) {
            if (ptx_skip_past(p, ")")) return -1;
        } else if (ptx_type(p)) {
            type = ptx_type(p);
            ptx_lex_next(&p->lex);
        } else if (ptx_lex_is(&p->lex, ".global") || ptx_lex_is(&p->lex, ".const") ||
                   ptx_lex_is(&p->lex, ".shared") || ptx_lex_is(&p->lex, ".local")) {
            ptx_lex_next(&p->lex); /* the space that a .ptr points to */
        } else {
            return ptx_fail(p, "a type");
        }
    }
    if (!type) return ptx_fail(p, "a type");
    if (p->lex.tok.kind != TOK_IDENT) return ptx_fail(p, "a name");
    v->name = ptx_arena_text(p->m->arena, p->lex.tok.start, p->lex.tok.len);
    ptx_lex_next(&p->lex);
    v->element = type->bytes;
    v->size = type->bytes * vector;
    if (!v->align || v->align & (v->align - 1)) v->align = (uint32_t)v->size;
    if (parse_dimensions(p, v, max)) return -1;
    return 0;
}

static PtxVar *new_var(PtxParser *p, PtxSpace space)
{
    PtxVar *v = ptx_arena_alloc(p->m->arena, sizeof *v);
    v->space = space;
    v->owner = p->fn ? p->fn_index : -1;
    return v;
}

static void append_var(PtxVar **list, PtxVar *v)
{
    while (*list) list = &(*list)->next;
    *list = v;
}

static int declare_var(PtxParser *p, PtxVar *v)
{
    return ptx_declare(p, (PtxSymbol){.name = v->name, .len = strlen(v->name), .var = v});
}

int ptx_parse_variable(PtxParser *p, PtxSpace space, PtxVar **out)
{
    do {
        PtxVar *v = new_var(p, space);
        if (++p->n_vars > PTX_MAX_VARS) return ptx_fail(p, "fewer variables");
        if (parse_declarator(p, v, space == SPACE_GLOBAL ? (uint64_t)1 << 32 : PTX_MAX_INIT))
            return -1;
        append_var(
            p->fn && space != SPACE_GLOBAL && space != SPACE_CONST ? &p->fn->vars : &p->m->vars, v);
        if (ptx_lex_accept(&p->lex, "=")) {
            if (v->size > PTX_MAX_INIT) return ptx_fail(p, "a smaller initialised variable");
            v->init = ptx_arena_alloc(p->m->arena, v->size + 16);
            Initialiser in = {.var = v};
            if (parse_init_value(p, &in, 0)) return -1;
        }
        declare_var(p, v);
        *out = v;
    } while (ptx_lex_accept(&p->lex, ","));
    return ptx_expect(p, ";");
}

int ptx_parse_parameter(PtxParser *p, PtxVar **out)
{
    PtxVar *v = new_var(p, SPACE_PARAM);
    if (parse_declarator(p, v, 65536)) return -1;
    if (!v->is_pointer && v->size == 8 && v->element == 8) v->is_pointer = -1;
    declare_var(p, v);
    *out = v;
    return 0;
}

/* ---- functions ---- */

static int parse_parameter_list(PtxParser *p, PtxVar ***list, int *n)
{
    if (!ptx_lex_accept(&p->lex, "(")) return 0;
    int cap = 0;
    while (!ptx_lex_is(&p->lex, ")")) {
        if (!ptx_lex_accept(&p->lex, ".param") && !ptx_lex_accept(&p->lex, ".reg"))
            return ptx_fail(p, ".param");
        if (*n >= 1024) return ptx_fail(p, "fewer parameters");
        PtxVar *v;
        if (ptx_parse_parameter(p, &v)) return -1;
        *list = ptx_push(*list, n, &cap, sizeof(**list));
        (*list)[*n - 1] = v;
        if (!ptx_lex_accept(&p->lex, ",")) break;
    }
    return ptx_expect(p, ")");
}

/* .maxntid 256, 1, 1 and its relatives, between the head and the body. */
static int parse_directives(PtxParser *p, PtxFunction *f)
{
    while (p->lex.tok.kind == TOK_IDENT && p->lex.tok.start[0] == '.') {
        int threads = ptx_lex_is(&p->lex, ".maxntid") || ptx_lex_is(&p->lex, ".reqntid"), dim = 0;
        int cluster = ptx_lex_is(&p->lex, ".reqnctapercluster");
        ptx_lex_next(&p->lex);
        uint64_t product = 1, n = 0;
        while (p->lex.tok.kind == TOK_INT) {
            if (parse_count(p, 1u << 30, &n)) return -1;
            product = n && product > (1u << 30) / n ? 1u << 30 : product * n;
            if (cluster && dim < 3) f->cluster[dim++] = (uint32_t)n;
            if (!ptx_lex_accept(&p->lex, ",")) break;
        }
        if (threads) f->max_threads = (uint32_t)product;
    }
    return 0;
}

static void lay_out_params(PtxVar **params, int n)
{
    uint64_t at = 0;
    for (int i = 0; i < n; i++) {
        at = (at + params[i]->align - 1) & ~(uint64_t)(params[i]->align - 1);
        params[i]->offset = at;
        at += params[i]->size;
    }
}

static PtxFunction *function_slot(PtxParser *p, const char *name, int *index)
{
    for (int i = 0; i < p->m->n_functions; i++)
        if (!strcmp(p->m->functions[i].name, name)) {
            *index = i;
            return &p->m->functions[i];
        }
    if (p->m->n_functions >= PTX_MAX_FUNCTIONS) return NULL;
    p->m->functions =
        ptx_push(p->m->functions, &p->m->n_functions, &p->cap_functions, sizeof(PtxFunction));
    *index = p->m->n_functions - 1;
    PtxFunction *f = &p->m->functions[*index];
    f->name = name;
    return f;
}

static void release_function(PtxFunction *f)
{
    free(f->params);
    free(f->returns);
    for (int i = 0; i < f->n_targets; i++) free(f->targets[i].labels);
    free(f->targets);
    free(f->insts);
    free(f->labels);
    for (PtxVar *v = f->vars; v; v = v->next) free(v->relocs);
}

static int parse_function(PtxParser *p, int is_entry, int is_extern)
{
    const PtxSymbol *mark = p->trail;
    PtxFunction head = {.is_entry = is_entry, .is_extern = is_extern};
    int failed = is_entry ? 0 : parse_parameter_list(p, &head.returns, &head.n_returns);
    if (!failed && p->lex.tok.kind != TOK_IDENT) failed = ptx_fail(p, "the function's name");
    if (!failed) {
        head.name = ptx_arena_text(p->m->arena, p->lex.tok.start, p->lex.tok.len);
        ptx_lex_next(&p->lex);
        failed =
            parse_parameter_list(p, &head.params, &head.n_params) || parse_directives(p, &head);
    }
    PtxFunction *f = failed ? NULL : function_slot(p, head.name, &p->fn_index);
    if (!failed && !f) failed = ptx_fail(p, "fewer functions");
    if (!failed && f->defined && ptx_lex_is(&p->lex, "{"))
        failed = ptx_fail(p, "each function to be defined once");
    if (failed || f->defined) {
        release_function(&head);
        ptx_leave(p, mark);
        return failed ? -1 : ptx_expect(p, ";");
    }
    release_function(f);
    *f = head;
    lay_out_params(f->params, f->n_params);
    lay_out_params(f->returns, f->n_returns);
    if (ptx_lex_is(&p->lex, "{")) {
        f->defined = 1;
        p->fn = f;
        p->cap_insts = p->cap_labels = p->cap_targets = 0;
        failed = ptx_parse_body(p);
        p->fn = NULL;
    } else {
        failed = ptx_expect(p, ";");
    }
    ptx_leave(p, mark);
    return failed ? -1 : 0;
}

/* ---- module ---- */

static int skip_section(PtxParser *p)
{
    if (ptx_skip_past(p, "{")) return -1;
    for (int depth = 1; depth > 0;) {
        if (p->lex.tok.kind == TOK_END) return ptx_fail(p, "}");
        depth += ptx_lex_is(&p->lex, "{") - ptx_lex_is(&p->lex, "}");
        ptx_lex_next(&p->lex);
    }
    return 0;
}

static int parse_version(PtxParser *p)
{
    const PtxToken t = p->lex.tok;
    double v;
    if (t.kind != TOK_F64 || t.bad) return ptx_fail(p, "a version such as 9.0");
    memcpy(&v, &t.value, 8);
    p->m->version = v > 0 && v < 1000 ? (int)(v * 10 + 0.5) : 0;
    ptx_lex_next(&p->lex);
    return 0;
}

static int parse_target(PtxParser *p)
{
    snprintf(p->m->target, sizeof p->m->target, "%.*s",
             (int)(p->lex.tok.len > 15 ? 15 : p->lex.tok.len), p->lex.tok.start);
    do ptx_lex_next(&p->lex);
    while (ptx_lex_accept(&p->lex, ","));
    return 0;
}

static int parse_file(PtxParser *p)
{
    ptx_lex_next(&p->lex); /* index */
    ptx_lex_next(&p->lex); /* name */
    while (ptx_lex_accept(&p->lex, ",")) ptx_lex_next(&p->lex);
    return 0;
}

static int parse_item(PtxParser *p)
{
    int is_extern = 0;
    for (;;) {
        if (ptx_lex_accept(&p->lex, ".extern"))
            is_extern = 1;
        else if (!ptx_lex_accept(&p->lex, ".visible") && !ptx_lex_accept(&p->lex, ".weak") &&
                 !ptx_lex_accept(&p->lex, ".common"))
            break;
    }
    PtxVar *v = NULL;
    int failed;
    if (ptx_lex_accept(&p->lex, ".entry")) return parse_function(p, 1, is_extern);
    if (ptx_lex_accept(&p->lex, ".func")) return parse_function(p, 0, is_extern);
    if (ptx_lex_accept(&p->lex, ".global"))
        failed = ptx_parse_variable(p, SPACE_GLOBAL, &v);
    else if (ptx_lex_accept(&p->lex, ".const"))
        failed = ptx_parse_variable(p, SPACE_CONST, &v);
    else if (ptx_lex_accept(&p->lex, ".shared"))
        failed = ptx_parse_variable(p, SPACE_SHARED, &v);
    else if (ptx_lex_accept(&p->lex, ".version"))
        return parse_version(p);
    else if (ptx_lex_accept(&p->lex, ".target"))
        return parse_target(p);
    else if (ptx_lex_accept(&p->lex, ".address_size"))
        return ptx_lex_is(&p->lex, "64") ? (ptx_lex_next(&p->lex), 0)
                                         : ptx_fail(p, "64-bit addresses");
    else if (ptx_lex_accept(&p->lex, ".file"))
        return parse_file(p);
    else if (ptx_lex_accept(&p->lex, ".section"))
        return skip_section(p);
    else if (ptx_lex_accept(&p->lex, ".alias") || ptx_lex_accept(&p->lex, ".pragma"))
        return ptx_skip_past(p, ";");
    else
        return ptx_lex_accept(&p->lex, ";") ? 0 : ptx_fail(p, "a directive of a module");
    if (v) v->is_extern = is_extern;
    return failed;
}

/* Lines of the candidate's own source: the file of the first kernel's first .loc; what was inlined
 * from headers keeps the line that called it. */
static void resolve_lines(PtxModule *m)
{
    uint32_t file = 0;
    for (int i = 0; i < m->n_functions && !file; i++)
        if (m->functions[i].is_entry) file = m->functions[i].entry_loc_file;
    for (int i = 0; i < m->n_functions; i++) {
        int line = 0;
        for (int k = 0; k < m->functions[i].n_insts; k++) {
            PtxInst *in = &m->functions[i].insts[k];
            if (in->file == file && in->line)
                line = in->line;
            else if (in->inlined_file == file && in->inlined_line)
                line = (int)in->inlined_line;
            in->line = line;
        }
    }
}

int ptx_parse(const char *text, size_t len, PtxModule *out, Error *err)
{
    memset(out, 0, sizeof *out);
    if (len > PTX_MAX_TEXT)
        return error_set(err, ERROR_CORRUPT, "PTX of %zu bytes is over the limit of %d", len,
                         PTX_MAX_TEXT);
    out->arena = ptx_arena_new();
    PtxParser *p = memory_alloc(sizeof *p);
    p->m = out;
    p->err = err;
    p->fn_index = -1;
    ptx_lex_init(&p->lex, ptx_arena_text(out->arena, text, len), len);
    int failed = 0;
    while (!failed && p->lex.tok.kind != TOK_END) failed = parse_item(p);
    if (!failed && !out->version)
        failed = error_set(err, ERROR_CORRUPT, "PTX without a .version directive");
    free(p);
    if (failed) {
        ptx_release(out);
        return -1;
    }
    resolve_lines(out);
    return 0;
}

void ptx_release(PtxModule *m)
{
    for (int i = 0; i < m->n_functions; i++) release_function(&m->functions[i]);
    free(m->functions);
    for (PtxVar *v = m->vars; v; v = v->next) free(v->relocs);
    ptx_arena_free(m->arena);
    memset(m, 0, sizeof *m);
}

PtxFunction *ptx_find_function(const PtxModule *m, const char *name)
{
    for (int i = 0; i < m->n_functions; i++)
        if (!strcmp(m->functions[i].name, name)) return &m->functions[i];
    return NULL;
}

uint64_t ptx_take_address(PtxModule *m, const char *name)
{
    PtxFunction *f = ptx_find_function(m, name);
    if (!f || !f->defined || f->is_entry) return 0;
    f->address_taken = 1;
    return CODE_WINDOW + 16 * (uint64_t)(f - m->functions + 1);
}

int ptx_function_at(const PtxModule *m, uint64_t address)
{
    uint64_t i = (address - CODE_WINDOW) / 16;
    return address % 16 || i - 1 >= (uint64_t)m->n_functions ? -1 : (int)(i - 1);
}

/* Variables and parameters with their initial values. */
#include <string.h>

#include "eval/sim/ptx/ptx_parser.h"

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
    if (ptx_lex_accept(&p->lex, "+") && ptx_parse_count(p, PTX_MAX_INIT, &addend)) return -1;
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
        if (ptx_parse_count(p, max, &n) || ptx_expect(p, "]")) return -1;
        if (v->size && n > max / v->size) return ptx_fail(p, "a smaller array");
        v->size *= n;
    }
    return 0;
}

/* Parses alignment, vector, type, name and dimensions of a variable or parameter, at most `max`
 * bytes of it. */
static int parse_declarator(PtxParser *p, PtxVar *v, uint64_t max)
{
    uint64_t vector = 1;
    const PtxType *type = NULL;
    v->align = 0;
    while (p->lex.tok.kind == TOK_IDENT && p->lex.tok.start[0] == '.') {
        if (ptx_lex_accept(&p->lex, ".align")) {
            uint64_t align = 0;
            if (ptx_parse_count(p, PTX_MAX_ALIGN, &align)) return -1;
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

static void declare_var(PtxParser *p, PtxVar *v)
{
    ptx_declare(p, (PtxSymbol){.name = v->name, .len = strlen(v->name), .var = v});
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

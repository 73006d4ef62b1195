/* The module level of PTX: functions, directives, and the lines of the CUDA source. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/ptx/ptx_parser.h"

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

/* Parses .maxntid 256, 1, 1 and similar directives between the head and the body. */
static int parse_directives(PtxParser *p, PtxFunction *f)
{
    while (p->lex.tok.kind == TOK_IDENT && p->lex.tok.start[0] == '.') {
        int threads = ptx_lex_is(&p->lex, ".maxntid") || ptx_lex_is(&p->lex, ".reqntid"), dim = 0;
        int cluster = ptx_lex_is(&p->lex, ".reqnctapercluster");
        ptx_lex_next(&p->lex);
        uint64_t product = 1, n = 0;
        while (p->lex.tok.kind == TOK_INT) {
            if (ptx_parse_count(p, 1u << 30, &n)) return -1;
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
    free(f->scopes);
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
        p->cap_insts = p->cap_labels = p->cap_targets = p->cap_scopes = 0;
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

/* Finds each instruction's line in the candidate's own source, which is the file of the first
 * kernel's first .loc. Code inlined from a header gets the line that called it. */
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
        return error_set(err, ERROR_LIMIT, "PTX of %zu bytes is over the limit of %d", len,
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

int ptx_has_mod(const PtxInst *in, const char *mod)
{
    for (int i = 0; i < in->n_mods; i++)
        if (ptx_same(in->mods[i], mod)) return 1;
    return 0;
}

int ptx_find_label(const PtxFunction *f, const char *name, int scope)
{
    for (; scope >= 0; scope = f->scopes[scope])
        for (int i = 0; i < f->n_labels; i++)
            if (f->labels[i].scope == scope && !strcmp(f->labels[i].name, name)) return i;
    return -1;
}

int ptx_find_targets(const PtxFunction *f, const char *name, int scope)
{
    for (; scope >= 0; scope = f->scopes[scope])
        for (int i = 0; i < f->n_targets; i++)
            if (f->targets[i].scope == scope && !strcmp(f->targets[i].name, name)) return i;
    return -1;
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

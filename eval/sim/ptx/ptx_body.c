/* Function bodies: instructions with their operands, labels, and the declarations of their scopes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "eval/sim/ptx/ptx_parser.h"

/* Returns the PtxSpecial of a name, or -1. */
static int find_special(const char *name, size_t len)
{
    static const char *const names[] = {
#define X(id, name) [SPECIAL_##id] = name,
        PTX_SPECIALS(X)
#undef X
    };
    for (int i = 0; i < SPECIAL_COUNT; i++)
        if (word_is(name, len, names[i])) return i;
    return -1;
}

int ptx_differs_by_lane(PtxSpecial s)
{
    switch (s) {
    case SPECIAL_TID_X:
    case SPECIAL_TID_Y:
    case SPECIAL_TID_Z:
    case SPECIAL_LANEID:
    case SPECIAL_LANEMASK_EQ:
    case SPECIAL_LANEMASK_LE:
    case SPECIAL_LANEMASK_LT:
    case SPECIAL_LANEMASK_GE:
    case SPECIAL_LANEMASK_GT: return 1;
    default: return 0;
    }
}

/* ---- operands ---- */

static int parse_operand(PtxParser *p, PtxOperand *o, int depth);

/* The coordinates in [map, {x, y}] become an operand of their own behind the address. */
static PtxOperand *split_coordinates(PtxOperand *items, int *n, int *cap)
{
    PtxOperand *coordinates = items[*n - 1].pair;
    if (items[*n - 1].kind != OPND_ADDR || !coordinates) return items;
    items[*n - 1].pair = NULL;
    items = ptx_push(items, n, cap, sizeof *items);
    items[*n - 1] = *coordinates;
    return items;
}

static int parse_list(PtxParser *p, PtxOperand *o, const char *close, int depth)
{
    int cap = 0;
    PtxOperand *items = NULL;
    int failed = 0;
    while (!failed && !ptx_lex_is(&p->lex, close)) {
        items = ptx_push(items, &o->n, &cap, sizeof *items);
        failed = o->n > 1024 || parse_operand(p, &items[o->n - 1], depth + 1);
        if (!failed) items = split_coordinates(items, &o->n, &cap);
        if (!failed && !ptx_lex_accept(&p->lex, ",")) break;
    }
    o->items = ptx_arena_alloc(p->m->arena, sizeof *items * (size_t)(o->n + 1));
    if (o->n) memcpy(o->items, items, sizeof *items * (size_t)o->n);
    free(items);
    return failed || !ptx_lex_accept(&p->lex, close) ? -1 : 0;
}

static int parse_offset(PtxParser *p, int64_t *value)
{
    int minus = ptx_lex_is(&p->lex, "-");
    if (!minus && !ptx_lex_is(&p->lex, "+")) return 0;
    ptx_lex_next(&p->lex);
    minus ^= ptx_lex_accept(&p->lex, "-");
    if (p->lex.tok.kind != TOK_INT || p->lex.tok.bad) return -1;
    *value = (int64_t)(minus ? 0 - p->lex.tok.value : p->lex.tok.value);
    ptx_lex_next(&p->lex);
    return 0;
}

static int parse_address(PtxParser *p, PtxOperand *o, int depth)
{
    o->kind = OPND_ADDR;
    o->items = ptx_arena_alloc(p->m->arena, sizeof *o->items);
    if (parse_operand(p, &o->items[0], depth + 1) || parse_offset(p, &o->value)) return -1;
    if (o->items[0].kind == OPND_VAR) { /* [name+4]: the offset was parsed with the name */
        o->value = (int64_t)((uint64_t)o->value + (uint64_t)o->items[0].value);
        o->items[0].value = 0;
    }
    if (ptx_lex_accept(&p->lex, ",")) {
        o->pair = ptx_arena_alloc(p->m->arena, sizeof *o->pair);
        if (parse_operand(p, o->pair, depth + 1) || o->pair->kind != OPND_VEC) return -1;
    }
    return ptx_lex_accept(&p->lex, "]") ? 0 : -1;
}

static int parse_name(PtxParser *p, PtxOperand *o)
{
    const PtxToken t = p->lex.tok;
    ptx_lex_next(&p->lex);
    uint32_t reg = 0;
    if (t.len == 1 && *t.start == '_') {
        o->kind = OPND_SINK;
        return 0;
    }
    const PtxSymbol *s = ptx_lookup(p, t.start, t.len, &reg);
    int special = s ? -1 : find_special(t.start, t.len);
    if (s && s->is_reg) {
        o->kind = OPND_REG;
        o->cls = s->cls;
        o->width = s->width;
        o->reg = reg;
    } else if (s) {
        o->kind = OPND_VAR;
        o->var = s->var;
        return parse_offset(p, &o->value);
    } else if (special >= 0) {
        o->kind = OPND_SPECIAL;
        o->value = special;
    } else {
        o->kind = OPND_NAME;
        o->name = ptx_arena_text(p->m->arena, t.start, t.len);
    }
    return 0;
}

static int parse_literal(PtxParser *p, PtxOperand *o)
{
    const PtxToken t = p->lex.tok;
    if (t.bad) return -1;
    ptx_lex_next(&p->lex);
    o->kind = t.kind == TOK_INT ? OPND_INT : t.kind == TOK_F32 ? OPND_F32 : OPND_F64;
    o->value = (int64_t)t.value;
    if (o->negated && t.kind == TOK_INT)
        o->value = (int64_t)(0 - t.value);
    else if (o->negated)
        o->value ^= t.kind == TOK_F32 ? (int64_t)0x80000000 : INT64_MIN;
    o->negated = 0;
    return 0;
}

static int parse_operand(PtxParser *p, PtxOperand *o, int depth)
{
    if (depth > 4) return -1;
    if (ptx_lex_accept(&p->lex, "[")) {
        return parse_address(p, o, depth);
    } else if (ptx_lex_accept(&p->lex, "{")) {
        o->kind = OPND_VEC;
        return parse_list(p, o, "}", depth);
    } else if (ptx_lex_accept(&p->lex, "(")) {
        o->kind = OPND_LIST;
        return parse_list(p, o, ")", depth);
    }
    if (ptx_lex_accept(&p->lex, "!") || ptx_lex_accept(&p->lex, "-")) o->negated = 1;
    if (p->lex.tok.kind == TOK_INT || p->lex.tok.kind == TOK_F32 || p->lex.tok.kind == TOK_F64)
        return parse_literal(p, o);
    if (p->lex.tok.kind != TOK_IDENT || parse_name(p, o)) return -1;
    if (ptx_lex_accept(&p->lex, "|")) {
        o->pair = ptx_arena_alloc(p->m->arena, sizeof *o);
        return parse_operand(p, o->pair, depth + 1);
    }
    return 0;
}

/* ---- instructions ---- */

static int split_opcode(PtxParser *p, PtxInst *in)
{
    char *s = ptx_arena_text(p->m->arena, p->lex.tok.start, p->lex.tok.len);
    in->op = s;
    ptx_lex_next(&p->lex);
    for (char *dot = strchr(s, '.'); dot; dot = strchr(dot, '.')) {
        *dot++ = 0;
        if (in->n_mods == PTX_MAX_MODS) return -1;
        in->mods[in->n_mods++] = dot;
    }
    return 0;
}

static int parse_operands(PtxParser *p, PtxInst *in)
{
    PtxOperand list = {0};
    if (ptx_lex_accept(&p->lex, ";")) return 0;
    int failed = parse_list(p, &list, ";", 0);
    in->operands = list.items;
    in->n_operands = list.n;
    return failed;
}

static int parse_guard(PtxParser *p, PtxInst *in)
{
    in->guard = -1;
    if (!ptx_lex_accept(&p->lex, "@")) return 0;
    in->guard_negated = ptx_lex_accept(&p->lex, "!");
    PtxOperand o = {0};
    if (p->lex.tok.kind != TOK_IDENT || parse_name(p, &o) || o.kind != OPND_REG ||
        o.cls != REG_PRED)
        return -1;
    in->guard = (int)o.reg;
    return 0;
}

static int parse_instruction(PtxParser *p)
{
    if (++p->n_insts_total > PTX_MAX_INSTS) return ptx_fail(p, "fewer instructions");
    PtxFunction *f = p->fn;
    f->insts = ptx_push(f->insts, &f->n_insts, &p->cap_insts, sizeof(PtxInst));
    PtxInst *in = &f->insts[f->n_insts - 1];
    const char *start = p->lex.tok.start;
    in->ptx_line = p->lex.tok.line;
    in->scope = p->scope;
    in->rolled = p->rolled;
    p->rolled = 0;
    in->file = p->file;
    in->line = (int)p->line;
    in->inlined_file = p->inlined_file;
    in->inlined_line = p->inlined_line;
    in->text = start;
    in->op = "";
    if (parse_guard(p, in) || p->lex.tok.kind != TOK_IDENT || split_opcode(p, in) ||
        parse_operands(p, in)) {
        in->bad = 1;
        while (p->lex.tok.kind != TOK_END && !ptx_lex_is(&p->lex, ";")) ptx_lex_next(&p->lex);
        if (ptx_expect(p, ";")) return -1;
    }
    const char *end = p->lex.tok.start; /* the next token */
    /* Step back over the space between the ';' and the next token. */
    while (end > start && end[-1] != ';') end--;
    in->text_len = (uint32_t)(end - start);
    return 0;
}

/* ---- declarations inside a body ---- */

static int declare_register(PtxParser *p, const PtxType *type)
{
    PtxSymbol s = {.is_reg = 1, .cls = type->cls, .width = type->width};
    if (p->lex.tok.kind != TOK_IDENT) return ptx_fail(p, "a register's name");
    s.name = ptx_arena_text(p->m->arena, p->lex.tok.start, p->lex.tok.len);
    s.len = p->lex.tok.len;
    s.count = 1;
    ptx_lex_next(&p->lex);
    if (ptx_lex_accept(&p->lex, "<")) {
        if (p->lex.tok.kind != TOK_INT || p->lex.tok.value > PTX_MAX_REGS)
            return ptx_fail(p, "a smaller number of registers");
        s.is_range = 1;
        s.count = (uint32_t)p->lex.tok.value;
        ptx_lex_next(&p->lex);
        if (ptx_expect(p, ">")) return -1;
    }
    s.first = p->fn->n_regs[s.cls];
    if (s.first + s.count > PTX_MAX_REGS) return ptx_fail(p, "fewer registers");
    p->fn->n_regs[s.cls] += s.count;
    ptx_declare(p, s);
    return 0;
}

static int parse_registers(PtxParser *p)
{
    const PtxType *type = NULL;
    while (p->lex.tok.kind == TOK_IDENT && p->lex.tok.start[0] == '.') {
        type = ptx_type(p);
        if (!type) return ptx_fail(p, "a register's type");
        ptx_lex_next(&p->lex);
    }
    if (!type) return ptx_fail(p, "a register's type");
    do
        if (declare_register(p, type)) return -1;
    while (ptx_lex_accept(&p->lex, ","));
    return ptx_expect(p, ";");
}

static int next_number(PtxParser *p, uint32_t *out)
{
    if (p->lex.tok.kind != TOK_INT || p->lex.tok.value > INT32_MAX) return ptx_fail(p, "a number");
    *out = (uint32_t)p->lex.tok.value;
    ptx_lex_next(&p->lex);
    return 0;
}

/* Parses .loc 2 107 3, function_name $L__info_string0, inlined_at 1 17 2. */
static int parse_loc(PtxParser *p)
{
    uint32_t column;
    p->inlined_file = p->inlined_line = 0;
    if (next_number(p, &p->file) || next_number(p, &p->line) || next_number(p, &column)) return -1;
    if (p->fn->is_entry && !p->fn->entry_loc_file) p->fn->entry_loc_file = p->file;
    while (ptx_lex_accept(&p->lex, ",")) {
        if (ptx_lex_accept(&p->lex, "inlined_at")) {
            if (next_number(p, &p->inlined_file) || next_number(p, &p->inlined_line) ||
                next_number(p, &column))
                return -1;
        } else {
            ptx_lex_next(&p->lex); /* function_name */
            ptx_lex_next(&p->lex);
            if (ptx_lex_accept(&p->lex, "+")) ptx_lex_next(&p->lex);
        }
    }
    return 0;
}

static int parse_targets(PtxParser *p, const char *name)
{
    PtxFunction *f = p->fn;
    f->targets = ptx_push(f->targets, &f->n_targets, &p->cap_targets, sizeof(PtxTargets));
    PtxTargets *t = &f->targets[f->n_targets - 1];
    t->name = name;
    t->scope = p->scope;
    int cap = 0;
    do {
        if (p->lex.tok.kind != TOK_IDENT || t->n > 65536) return ptx_fail(p, "a label");
        t->labels = ptx_push(t->labels, &t->n, &cap, sizeof *t->labels);
        t->labels[t->n - 1] = ptx_arena_text(p->m->arena, p->lex.tok.start, p->lex.tok.len);
        ptx_lex_next(&p->lex);
    } while (ptx_lex_accept(&p->lex, ","));
    return ptx_expect(p, ";");
}

/* Parses what follows "name:". */
static int parse_label(PtxParser *p, const char *name)
{
    if (ptx_lex_accept(&p->lex, ".branchtargets")) return parse_targets(p, name);
    if (ptx_lex_is(&p->lex, ".callprototype") || ptx_lex_is(&p->lex, ".calltargets"))
        return ptx_skip_past(p, ";");
    PtxFunction *f = p->fn;
    f->labels = ptx_push(f->labels, &f->n_labels, &p->cap_labels, sizeof(PtxLabel));
    f->labels[f->n_labels - 1] = (PtxLabel){.name = name, .scope = p->scope, .inst = f->n_insts};
    return 0;
}

static int parse_directive(PtxParser *p)
{
    static const struct {
        const char *name;
        PtxSpace space;
    } spaces[] = {{".local", SPACE_LOCAL},
                  {".shared", SPACE_SHARED},
                  {".global", SPACE_GLOBAL},
                  {".const", SPACE_CONST},
                  {".param", SPACE_PARAM}};
    PtxVar *v;
    if (ptx_lex_accept(&p->lex, ".loc")) return parse_loc(p);
    if (ptx_lex_accept(&p->lex, ".reg")) return parse_registers(p);
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (ptx_lex_accept(&p->lex, spaces[i].name))
            return ptx_parse_variable(p, spaces[i].space, &v);
    if (ptx_lex_accept(&p->lex, ".pragma")) {
        static const char nounroll[] = "\"nounroll\"";
        p->rolled |= p->lex.tok.kind == TOK_TEXT && p->lex.tok.len == sizeof nounroll - 1 &&
                     !memcmp(p->lex.tok.start, nounroll, sizeof nounroll - 1);
        return ptx_skip_past(p, ";");
    }
    return ptx_fail(p, "a directive of a function's body");
}

static int parse_statement(PtxParser *p)
{
    if (ptx_lex_accept(&p->lex, ";")) return 0;
    if (p->lex.tok.kind == TOK_IDENT && p->lex.tok.start[0] == '.') return parse_directive(p);
    if (p->lex.tok.kind == TOK_IDENT) {
        PtxLexer ahead = p->lex;
        ptx_lex_next(&ahead);
        if (ptx_lex_is(&ahead, ":")) {
            const char *name = ptx_arena_text(p->m->arena, p->lex.tok.start, p->lex.tok.len);
            ptx_lex_next(&ahead);
            p->lex = ahead;
            return parse_label(p, name);
        }
    }
    return parse_instruction(p);
}

static void enter_scope(PtxParser *p)
{
    PtxFunction *f = p->fn;
    f->scopes = ptx_push(f->scopes, &f->n_scopes, &p->cap_scopes, sizeof *f->scopes);
    f->scopes[f->n_scopes - 1] = p->scope;
    p->scope = f->n_scopes - 1;
}

int ptx_parse_body(PtxParser *p)
{
    const PtxSymbol *marks[PTX_MAX_DEPTH];
    int depth = 0;
    p->scope = -1;
    p->rolled = 0;
    p->file = p->line = p->inlined_file = p->inlined_line = 0;
    do {
        if (ptx_lex_is(&p->lex, "{")) {
            if (depth == PTX_MAX_DEPTH) return ptx_fail(p, "fewer nested braces");
            marks[depth++] = p->trail;
            enter_scope(p);
            ptx_lex_next(&p->lex);
        } else if (ptx_lex_is(&p->lex, "}")) {
            ptx_leave(p, marks[--depth]);
            p->scope = p->fn->scopes[p->scope];
            ptx_lex_next(&p->lex);
        } else if (p->lex.tok.kind == TOK_END) {
            return ptx_fail(p, "}");
        } else if (parse_statement(p)) {
            return -1;
        }
    } while (depth > 0);
    return 0;
}

int ptx_has_dest(const PtxInst *in)
{
    static const char *const none[] = {"st",     "red",   "bra",      "bar",    "barrier",
                                       "membar", "fence", "ret",      "exit",   "call",
                                       "cp",     "brx",   "stmatrix", "discard"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        if (ptx_same(in->op, none[i])) return !strncmp(in->op, "bar", 3) && in->n_operands > 2;
    if (ptx_same(in->op, "wgmma")) return in->n_operands > 1; /* not wgmma.wait_group */
    return in->n_operands > 0;
}

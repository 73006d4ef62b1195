/* What remains of a loop that the assembler unrolls. Its trip count is a small constant; once it is
 * unrolled, arithmetic on its counter is known, and arithmetic that another trip has done is not
 * done again: `z + k / 9` has three values in 27 trips.
 *
 * The trips are walked with a number for the value of each register. Equal numbers are equal
 * values: an operation on equal numbers has the number of the first such operation. A loop with a
 * branch that the constants do not decide, a call, or a loop inside is left as it is, and so is one that is
 * not to be unrolled. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/assembler/assembler.h"

enum {
    MAX_TRIPS = 64,
    MAX_STEPS = 1 << 12, /* of a loop */
    MAX_LOOPS = 64,      /* of a function */
    SEEN = 1 << 13       /* entries of the table of operations: twice the steps */
};

typedef struct {
    uint64_t id, value; /* value: where it is known */
    int known, loop;    /* loop: that which has set it */
} Number;

typedef struct {
    const PtxFunction *p;
    Number *regs[REG_CLASSES];
    uint64_t *seen; /* ids of operations, 0: free */
    uint16_t *runs, *fresh;
    int *target;     /* of each branch, by instruction; -1: none or not known */
    uint64_t unique; /* values that equal no other */
    int loop, first, last, entry;
} Walk;

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9u;
    return (x ^ (x >> 29)) | 1;
}

static uint64_t mix_text(uint64_t a, const char *s)
{
    for (; *s; s++) a = mix(a, (unsigned char)*s);
    return a;
}

static Number known(uint64_t v)
{
    return (Number){mix(1, v), v, 1, 0};
}

static Number unlike_any(Walk *w)
{
    return (Number){mix(2, ++w->unique), 0, 0, 0};
}

static Number number_of(Walk *w, const PtxOperand *o)
{
    switch (o->kind) {
    case OPND_INT: return known((uint64_t)o->value);
    case OPND_F32:
    case OPND_F64: return (Number){mix(3, (uint64_t)o->value), 0, 0, 0};
    case OPND_SPECIAL:
        if (o->value == SPECIAL_CLOCK || o->value == SPECIAL_CLOCK64) return unlike_any(w);
        return (Number){mix(4, (uint64_t)o->value), 0, 0, 0};
    case OPND_VAR: return (Number){mix((uintptr_t)o->var, (uint64_t)o->value), 0, 0, 0};
    case OPND_REG: {
        if (o->cls >= REG_CLASSES) return unlike_any(w);
        const Number *n = &w->regs[o->cls][o->reg];
        if (n->loop == w->loop) return *n;
        return (Number){mix(5 + o->cls, o->reg), 0, 0, 0};
    }
    default: return unlike_any(w);
    }
}

static void set(Walk *w, const PtxOperand *o, Number n)
{
    if (o->kind != OPND_REG || o->cls >= REG_CLASSES) return;
    n.loop = w->loop;
    w->regs[o->cls][o->reg] = n;
}

/* Gives all destinations of an operand values that equal no others. */
static void set_unlike(Walk *w, const PtxOperand *o)
{
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        set_unlike(w, &o->items[i]);
    if (o->pair) set(w, o->pair, unlike_any(w));
    set(w, o, unlike_any(w));
}

/* ---- arithmetic on known integers ---- */

/* Bits of an integer type; 0: it is none. */
static int type_of(const char *mod, int *is_signed)
{
    *is_signed = *mod == 's';
    if (!strcmp(mod, "pred")) return 1;
    if (*mod != 's' && *mod != 'u' && *mod != 'b') return 0;
    int bits = atoi(mod + 1);
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? bits : 0;
}

static int64_t extend(uint64_t v, int bits, int is_signed)
{
    if (bits >= 64) return (int64_t)v;
    v &= (1ull << bits) - 1;
    return is_signed && v >> (bits - 1) ? (int64_t)(v - (1ull << bits)) : (int64_t)v;
}

static int compare(const char *how, int64_t a, int64_t b, int is_signed, uint64_t *out)
{
    int less = is_signed ? a < b : (uint64_t)a < (uint64_t)b;
    if (!strncmp(how, "eq", 2)) return *out = a == b, 0;
    if (!strncmp(how, "ne", 2)) return *out = a != b, 0;
    if (!strncmp(how, "lt", 2) || !strcmp(how, "lo")) return *out = less, 0;
    if (!strncmp(how, "ge", 2) || !strcmp(how, "hs")) return *out = !less, 0;
    if (!strncmp(how, "gt", 2) || !strcmp(how, "hi")) return *out = !less && a != b, 0;
    if (!strncmp(how, "le", 2) || !strcmp(how, "ls")) return *out = less || a == b, 0;
    return -1;
}

/* Computes an instruction whose sources are known. Returns 0, or -1: it is not one of these. */
static int compute(const PtxInst *in, const Number *s, int n, uint64_t *out)
{
    int is_signed, to_signed, bits = in->n_mods ? type_of(in->mods[in->n_mods - 1], &is_signed) : 0,
                              wide = in->n_mods > 1 && !strcmp(in->mods[0], "wide"),
                              high = in->n_mods > 1 && !strcmp(in->mods[0], "hi");
    if (!bits || high || n < 1) return -1;
    int64_t a = extend(s[0].value, bits, is_signed),
            b = n > 1 ? extend(s[1].value, bits, is_signed) : 0,
            c = n > 2 ? extend(s[2].value, wide ? 64 : bits, is_signed) : 0;
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b, r;
    int to = wide ? 2 * bits : bits;
    const char *op = in->op;
    if (!strcmp(op, "add"))
        r = ua + ub;
    else if (!strcmp(op, "sub"))
        r = ua - ub;
    else if (!strcmp(op, "mul"))
        r = ua * ub;
    else if (!strcmp(op, "mad"))
        r = ua * ub + (uint64_t)c;
    else if (!strcmp(op, "and"))
        r = ua & ub;
    else if (!strcmp(op, "or"))
        r = ua | ub;
    else if (!strcmp(op, "xor"))
        r = ua ^ ub;
    else if (!strcmp(op, "not"))
        r = bits == 1 ? !ua : ~ua;
    else if (!strcmp(op, "neg"))
        r = 0 - ua;
    else if (!strcmp(op, "min"))
        r = (is_signed ? a < b : ua < ub) ? ua : ub;
    else if (!strcmp(op, "max"))
        r = (is_signed ? a > b : ua > ub) ? ua : ub;
    else if (!strcmp(op, "shl"))
        r = (uint32_t)ub < 64 ? ua << (uint32_t)ub : 0;
    else if (!strcmp(op, "shr") && (uint32_t)ub < 64)
        r = is_signed ? (uint64_t)(a >> (uint32_t)ub) : ua >> (uint32_t)ub;
    else if (!strcmp(op, "div") && b && !(is_signed && b == -1))
        r = is_signed ? (uint64_t)(a / b) : ua / ub;
    else if (!strcmp(op, "rem") && b && !(is_signed && b == -1))
        r = is_signed ? (uint64_t)(a % b) : ua % ub;
    else if (!strcmp(op, "setp") && n == 2 && in->n_mods == 2) {
        if (compare(in->mods[0], a, b, is_signed, &r)) return -1;
        to = 1;
    } else if (!strcmp(op, "cvt") && in->n_mods == 2 && (to = type_of(in->mods[0], &to_signed)))
        r = ua;
    else
        return -1;
    *out = to < 64 ? r & ((1ull << to) - 1) : r;
    return 0;
}

/* ---- the walk ---- */

static int is_pure(const PtxInst *in)
{
    static const char *const ops[] = {"add", "sub",  "mul",  "mad", "fma",  "and", "or",
                                      "xor", "not",  "shl",  "shr", "cvt",  "min", "max",
                                      "neg", "abs",  "div",  "rem", "setp", "bfe", "bfi",
                                      "shf", "lop3", "selp", "mov", "cvta", "prmt"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(in->op, ops[i])) return in->n_operands > 1 && in->n_operands <= 5;
    return 0;
}

/* Is it the first operation with this id? */
static int is_new(Walk *w, uint64_t id)
{
    uint64_t *at = w->seen + (id & (SEEN - 1));
    while (*at && *at != id) at = at + 1 == w->seen + SEEN ? w->seen : at + 1;
    if (*at) return 0;
    *at = id;
    return 1;
}

/* Does the known guard let the instruction execute? */
static int is_taken(const PtxInst *in, const Number *guard)
{
    return in->guard < 0 || (guard->value != 0) != (in->guard_negated != 0);
}

/* Executes the instruction. Returns 1 when it leaves work for the GPU. */
static int execute(Walk *w, const PtxInst *in)
{
    Number s[4], guard = known(1), result;
    int n = in->n_operands - 1, all = 1;
    if (in->guard >= 0) {
        PtxOperand o = {.kind = OPND_REG, .cls = REG_PRED, .reg = (uint32_t)in->guard};
        guard = number_of(w, &o);
        if (guard.known && !is_taken(in, &guard)) return 0;
    }
    if (!ptx_has_dest(in)) return 1;
    if (!is_pure(in) || in->operands[0].pair || in->operands[0].kind != OPND_REG) {
        set_unlike(w, &in->operands[0]);
        return 1;
    }
    result.id = mix_text(mix(7, (uint64_t)w->loop), in->op);
    for (int i = 0; i < in->n_mods; i++) result.id = mix_text(result.id, in->mods[i]);
    for (int i = 0; i < n; i++) {
        s[i] = number_of(w, &in->operands[i + 1]);
        all &= s[i].known;
        result.id = mix(result.id, s[i].id + in->operands[i + 1].negated);
    }
    int done = 1;
    if (!strcmp(in->op, "mov"))
        result = s[0];
    else if (!strcmp(in->op, "selp") && s[2].known)
        result = s[2].value ? s[0] : s[1];
    else if (all && !compute(in, s, n, &result.value))
        result = known(result.value);
    else
        result.known = 0, done = 0;
    if (!guard.known) {
        Number old = number_of(w, &in->operands[0]);
        result = (Number){mix(mix(result.id, guard.id), old.id), 0, 0, 0};
    }
    set(w, &in->operands[0], result);
    return !done && is_new(w, result.id);
}

static int ends_path(const PtxInst *in)
{
    return in->guard < 0 && (!strcmp(in->op, "bra") || !strcmp(in->op, "ret") ||
                             !strcmp(in->op, "exit") || !strcmp(in->op, "brx"));
}

static void set_start(Walk *w, const PtxInst *in)
{
    const PtxOperand *o = &in->operands[0];
    if (o->kind != OPND_REG || o->cls >= REG_CLASSES || w->regs[o->cls][o->reg].loop == w->loop ||
        strcmp(in->op, "mov") || in->n_operands != 2 || in->operands[1].kind != OPND_INT ||
        in->guard >= 0)
        set_unlike(w, o);
    else
        set(w, o, known((uint64_t)in->operands[1].value));
}

/* Finds where control enters the loop, and the registers that one move outside of it sets to a
 * constant. Returns 0, or -1: it enters in several places. */
static int find_start(Walk *w)
{
    const PtxFunction *p = w->p;
    w->entry = !w->first || !ends_path(&p->insts[w->first - 1]) ? w->first : -1;
    for (int i = 0; i < p->n_insts; i++) {
        const PtxInst *in = &p->insts[i];
        if (i >= w->first && i <= w->last) continue;
        if (!in->bad && in->n_operands && ptx_has_dest(in)) set_start(w, in);
        int to = w->target[i];
        if (to < w->first || to > w->last || to == w->entry) continue;
        if (w->entry >= 0) return -1;
        w->entry = to;
    }
    return w->entry >= 0 ? 0 : -1;
}

/* Walks the trips. Returns their number, or 0: the loop stays. */
static int walk(Walk *w)
{
    int trips = 1, at = w->entry;
    for (int steps = 0; at >= w->first && at <= w->last; steps++) {
        const PtxInst *in = &w->p->insts[at];
        if (steps == MAX_STEPS || in->bad || !strcmp(in->op, "call") || !strcmp(in->op, "brx") ||
            !strcmp(in->op, "ret") || !strcmp(in->op, "exit"))
            return 0;
        w->runs[at]++;
        if (strcmp(in->op, "bra")) {
            w->fresh[at] += (uint16_t)execute(w, in);
            at++;
            continue;
        }
        PtxOperand o = {.kind = OPND_REG, .cls = REG_PRED, .reg = (uint32_t)in->guard};
        Number guard = in->guard < 0 ? known(1) : number_of(w, &o);
        int taken = is_taken(in, &guard), to = w->target[at];
        if (!guard.known || to < 0) return 0;
        if (taken && at == w->last && ++trips > MAX_TRIPS) return 0;
        at = taken ? to : at + 1;
    }
    return trips;
}

static void unroll(Walk *w, uint8_t *cost)
{
    size_t n = (size_t)(w->last - w->first + 1);
    w->loop++;
    memset(w->seen, 0, SEEN * sizeof *w->seen);
    memset(w->runs + w->first, 0, n * sizeof *w->runs);
    memset(w->fresh + w->first, 0, n * sizeof *w->fresh);
    if (find_start(w) || walk(w) < 2) return;
    for (int i = w->first; i <= w->last; i++)
        if (w->runs[i]) cost[i] = (uint8_t)((cost[i] * w->fresh[i] + w->runs[i] - 1) / w->runs[i]);
}

/* Is control known to come from the instruction before? */
static int *find_starts(const PtxFunction *p)
{
    int *starts = memory_array((size_t)p->n_insts + 1, sizeof *starts);
    for (int i = 0; i < p->n_labels; i++) starts[p->labels[i].inst] = 1;
    for (int i = 0; i < p->n_insts; i++)
        if (!strcmp(p->insts[i].op, "bra") || !strcmp(p->insts[i].op, "brx") ||
            !strcmp(p->insts[i].op, "call"))
            starts[i + 1] = 1;
    return starts;
}

/* The front end computes a cheap value again where it is read, and the assembler once in a block of code.
 * Divisions are left: those by subroutines run again (ptxas 13.0, 2026-11-30). */
static void unite(Walk *w, uint8_t *cost)
{
    int *starts = find_starts(w->p), n = SEEN;
    for (int i = 0; i < w->p->n_insts; i++) {
        const PtxInst *in = &w->p->insts[i];
        if (starts[i]) w->loop++;
        if (++n > SEEN / 2) memset(w->seen, 0, SEEN * sizeof *w->seen), n = 0;
        if (in->bad || !in->n_operands) continue;
        if (!execute(w, in) && is_pure(in) && strcmp(in->op, "mov") && strcmp(in->op, "div") &&
            strcmp(in->op, "rem"))
            cost[i] = 0;
    }
    free(starts);
}

void unrolled_find(const PtxFunction *p, uint8_t *cost)
{
    Walk w = {.p = p};
    int loops = 0, inner = -1; /* inner: the last start of a loop that has ended */
    uint8_t *rolled = rolled_find(p);
    w.target = memory_array((size_t)p->n_insts + 1, sizeof *w.target);
    w.seen = memory_array(SEEN, sizeof *w.seen);
    w.runs = memory_array((size_t)p->n_insts + 1, sizeof *w.runs);
    w.fresh = memory_array((size_t)p->n_insts + 1, sizeof *w.fresh);
    for (int k = 0; k < REG_CLASSES; k++)
        w.regs[k] = memory_array((size_t)p->n_regs[k] + 1, sizeof(Number));
    for (int i = 0; i < p->n_insts; i++)
        w.target[i] = strcmp(p->insts[i].op, "bra") ? -1 : branch_target(p, &p->insts[i]);
    for (int i = 0; i < p->n_insts && loops < MAX_LOOPS; i++) {
        int to = w.target[i];
        if (to < 0 || to > i) continue;
        int is_inner = inner < to;
        inner = to > inner ? to : inner;
        if (!is_inner || rolled[i] || i - to >= MAX_STEPS / 2) continue;
        loops++;
        w.first = to, w.last = i;
        unroll(&w, cost);
    }
    unite(&w, cost);
    for (int k = 0; k < REG_CLASSES; k++) free(w.regs[k]);
    free(w.target);
    free(rolled);
    free(w.seen);
    free(w.runs);
    free(w.fresh);
}

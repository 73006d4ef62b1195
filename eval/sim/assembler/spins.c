/* Atomics by which a warp may wait: it looks again and again until the value that it gets lets it go on.
 *
 * Such an atomic is in a loop of which its result decides the end, at one address. A loop that draws numbers
 * from a queue has these, too, but works on what it has drawn: the address of another access follows from the
 * result, also where it goes through memory. So does a sum that is made of comparisons: what they store
 * follows from what it has found. The same atomic before the loop waits, too: it is the loop's first look. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/assembler/assembler.h"

/* A loop, from its first to its last instruction, and the registers that follow from an atomic's result. */
typedef struct {
    const PtxFunction *p;
    int *last_to; /* by instruction: the last branch back to it; -1: there is none */
    int first, last;
    uint8_t *follows[REG_CLASSES]; /* by register */
    int stored;                    /* so does what is in memory */
    int grows;                     /* one more has been found */
    int64_t steps;                 /* that are left for all atomics of the function */
} Loop;

enum { STEPS = 1 << 26 };

static int reads(const Loop *l, const PtxOperand *o)
{
    if (o->kind == OPND_ADDR) return reads(l, &o->items[0]);
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        if (reads(l, &o->items[i])) return 1;
    return o->kind == OPND_REG && o->cls < REG_CLASSES && l->follows[o->cls][o->reg];
}

static void follow(Loop *l, const PtxOperand *o)
{
    for (int i = 0; o->kind == OPND_VEC && i < o->n; i++) follow(l, &o->items[i]);
    if (o->pair) follow(l, o->pair);
    if (o->kind != OPND_REG || o->cls >= REG_CLASSES || l->follows[o->cls][o->reg]) return;
    l->follows[o->cls][o->reg] = 1;
    l->grows = 1;
}

/* Does an operand behind the destination follow from the result, or the predicate under which it runs? */
static int uses(const Loop *l, const PtxInst *in)
{
    for (int k = ptx_has_dest(in); k < in->n_operands; k++)
        if (reads(l, &in->operands[k])) return 1;
    return in->guard >= 0 && l->follows[REG_PRED][in->guard];
}

/* Of ld or st: is it one of memory? */
static int is_of_memory(const PtxInst *in, const char *op)
{
    return !strcmp(in->op, op) && !ptx_has_mod(in, "param");
}

static int is_call(const PtxInst *in)
{
    return !strcmp(in->op, "call");
}

static int is_of_parameter(const PtxInst *in)
{
    return ptx_has_mod(in, "param") && (!strcmp(in->op, "ld") || !strcmp(in->op, "st"));
}

/* atomic: an atomic, or the call of a function that returns an atomic's result. */
static void find_followers(Loop *l, int atomic)
{
    const int calls = is_call(&l->p->insts[atomic]);
    l->stored = 0;
    for (int k = 0; k < REG_CLASSES; k++) memset(l->follows[k], 0, (size_t)l->p->n_regs[k] + 1);
    if (!calls) follow(l, &l->p->insts[atomic].operands[0]);
    for (l->grows = 1; l->grows && l->steps > 0;) {
        l->grows = 0;
        l->steps -= l->last - l->first;
        for (int i = l->first; i <= l->last; i++) {
            const PtxInst *in = &l->p->insts[i];
            if (in->bad) continue;
            const int brings =
                (l->stored && is_of_memory(in, "ld")) || (calls && is_of_parameter(in));
            if (ptx_has_dest(in) && (uses(l, in) || brings)) follow(l, &in->operands[0]);
            if (!l->stored && is_of_memory(in, "st") && uses(l, in)) l->stored = l->grows = 1;
        }
    }
}

/* Of an access: does its address follow from the result, or what an atomic stores? */
static int works(const Loop *l, const PtxInst *in)
{
    if (is_of_memory(in, "st")) return reads(l, &in->operands[0]);
    static const char *const accesses[] = {"ld", "st", "atom", "red", "cp", "ldu"};
    for (size_t i = 0; i < sizeof accesses / sizeof *accesses; i++) {
        if (strcmp(in->op, accesses[i])) continue;
        for (int k = ptx_has_dest(in); k < in->n_operands; k++)
            if (reads(l, &in->operands[k])) return 1;
    }
    return is_call(in);
}

/* Does an instruction of the loop set a register of the operand, which is an address? */
static int is_moved(const Loop *l, const PtxOperand *address)
{
    const PtxOperand *base = address->kind == OPND_ADDR ? &address->items[0] : address;
    for (int i = l->first; i <= l->last; i++) {
        const PtxInst *in = &l->p->insts[i];
        const PtxOperand *to = in->operands;
        if (base->kind == OPND_REG && !in->bad && ptx_has_dest(in) && to->kind == OPND_REG &&
            to->cls == base->cls && to->reg == base->reg)
            return 1;
    }
    return 0;
}

/* 1: the atomic of the loop, or the one that the loop calls, may wait. */
static int may_wait(Loop *l, int atomic)
{
    const PtxInst *at = &l->p->insts[atomic];
    const int calls = is_call(at);
    int decides = 0;
    l->steps -= l->last - l->first;
    if (at->n_operands < 2 || (!calls && is_moved(l, &at->operands[1]))) return 0;
    find_followers(l, atomic);
    for (int i = l->first; i <= l->last; i++) {
        const PtxInst *in = &l->p->insts[i];
        if (in->bad) return 0;
        if (!(calls && (in == at || is_of_parameter(in))) && works(l, in)) return 0;
        decides |= !strcmp(in->op, "bra") && in->guard >= 0 && l->follows[REG_PRED][in->guard];
    }
    return decides;
}

/* The innermost loop around an instruction: up to the last branch to its first one. Returns 0: there is
 * none. */
static int loop_around(Loop *l, int at)
{
    for (l->first = at; l->first >= 0 && l->steps > 0; l->first--, l->steps--)
        if (l->last_to[l->first] >= at) break;
    if (l->first < 0 || l->steps <= 0) return 0;
    l->last = l->last_to[l->first];
    return 1;
}

static int returns(const PtxInst *in)
{
    return !in->bad && !strcmp(in->op, "atom") && in->n_operands &&
           in->operands[0].kind != OPND_SINK;
}

static int same_address(const PtxOperand *a, const PtxOperand *b)
{
    if (a->kind == OPND_ADDR && b->kind == OPND_ADDR)
        return a->value == b->value && same_address(&a->items[0], &b->items[0]);
    return a->kind == b->kind && a->cls == b->cls && a->reg == b->reg && a->var == b->var &&
           a->value == b->value;
}

/* Does an atomic that waits have the address of this one? */
static int is_first_look(const PtxFunction *p, const uint8_t *merged, int at)
{
    const PtxInst *in = &p->insts[at];
    for (int i = at + 1; i < p->n_insts; i++)
        if (merged[i] & ATOMIC_WAITS && in->n_operands == p->insts[i].n_operands &&
            same_address(&in->operands[1], &p->insts[i].operands[1]))
            return 1;
    return 0;
}

static void begin(Loop *l, const PtxFunction *p)
{
    l->p = p;
    l->last_to = memory_array((size_t)p->n_insts + 1, sizeof *l->last_to);
    for (int i = 0; i < p->n_insts; i++) l->last_to[i] = -1;
    for (int i = 0; i < p->n_insts; i++) {
        const int to = branch_target(p, &p->insts[i]);
        if (to >= 0 && to <= i) l->last_to[to] = i;
    }
    for (int k = 0; k < REG_CLASSES; k++) l->follows[k] = memory_alloc((size_t)p->n_regs[k] + 1);
}

static void end(Loop *l)
{
    for (int k = 0; k < REG_CLASSES; k++) free(l->follows[k]);
    free(l->last_to);
}

static int waits_at(Loop *l, int at)
{
    return loop_around(l, at) && may_wait(l, at) && l->steps > 0;
}

static int calls(const PtxInst *in, const char *name)
{
    for (int k = 0; k < in->n_operands && is_call(in) && !in->bad; k++)
        if (in->operands[k].kind == OPND_NAME && !strcmp(in->operands[k].name, name)) return 1;
    return 0;
}

/* Does a loop of another function wait by what the function returns? */
static int is_called_to_wait(const PtxModule *m, const PtxFunction *p, int64_t *steps)
{
    int waits = 0;
    for (int f = 0; f < m->n_functions && !waits && !p->is_entry; f++) {
        Loop l = {.steps = *steps - m->functions[f].n_insts};
        if (&m->functions[f] == p || l.steps <= 0) continue;
        begin(&l, &m->functions[f]);
        for (int i = 0; i < l.p->n_insts && !waits; i++)
            waits = calls(&l.p->insts[i], p->name) && waits_at(&l, i);
        *steps = l.steps;
        end(&l);
    }
    return waits;
}

void spins_find(const PtxModule *m, const PtxFunction *p, uint8_t *merged)
{
    Loop l = {.steps = STEPS};
    int n = 0, n_waits = 0;
    for (int i = 0; i < p->n_insts; i++) n += returns(&p->insts[i]);
    if (!n) return;
    const int called = is_called_to_wait(m, p, &l.steps);
    begin(&l, p);
    for (int i = 0; i < p->n_insts; i++)
        if (returns(&p->insts[i]) && (called || waits_at(&l, i)))
            merged[i] |= ATOMIC_WAITS, n_waits++;
    for (int i = p->n_insts - 1; i >= 0 && n_waits; i--)
        if (returns(&p->insts[i]) && p->insts[i].n_operands > 1 && l.steps > 0) {
            l.steps -= p->n_insts - i;
            if (is_first_look(p, merged, i)) merged[i] |= ATOMIC_WAITS;
        }
    end(&l);
}

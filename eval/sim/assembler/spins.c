/* Atomics by which a warp may wait: it looks again and again until the value that it gets lets it go on.
 *
 * Such an atomic is in a loop of which its result decides the end, at one address. A loop that draws numbers
 * from a queue has these, too, but works on what it has drawn: the address of another access follows from the
 * result, also where it goes through memory. So does a sum that is made of comparisons: what they store
 * follows from what it has found. The same atomic before the loop waits, too: it is the loop's first look.
 *
 * An atomic of which a branch of a loop around it depends decides, though more follows from its result: which
 * of both it is tells who has written the word (memory/block_waits.c). What a branch skips that depends on
 * the result may tell the loop's end, too. */
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
    int behind;    /* and what is behind a branch that depends on them counts, too */
    int grows;     /* one more has been found */
    int64_t steps; /* that are left for all atomics of the function */
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

/* Is the instruction an `op`, ld or st, that accesses memory and no parameter? */
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

/* The last instruction that a branch forward leaves out on one of its ways; -1: it is none, or leaves the
 * loop. */
static int end_of_branch(Loop *l, int at)
{
    int end = branch_target(l->p, &l->p->insts[at]);
    if (end <= at || end > l->last || l->steps <= 0) return -1;
    for (int i = at + 1; i < end; i++) {
        const int to = branch_target(l->p, &l->p->insts[i]);
        if (to > end && to <= l->last) end = to;
    }
    l->steps -= end - at;
    return end - 1;
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
        int until = -1;
        for (int i = l->first; i <= l->last; i++) {
            const PtxInst *in = &l->p->insts[i];
            if (in->bad) continue;
            const int brings = i <= until || (l->stored && is_of_memory(in, "ld")) ||
                               (calls && is_of_parameter(in));
            const int skips = l->behind && in->guard >= 0 && l->follows[REG_PRED][in->guard] &&
                              !strcmp(in->op, "bra");
            const int end = skips ? end_of_branch(l, i) : -1;
            if (end > until) until = end;
            if (ptx_has_dest(in) && (uses(l, in) || brings)) follow(l, &in->operands[0]);
            if (!l->stored && is_of_memory(in, "st") && uses(l, in)) l->stored = l->grows = 1;
        }
    }
}

/* Does the result decide the access's address, or the value that an atomic access stores? */
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

/* Does a comparison compare with what follows from its own result, as where sums are made of them? */
static int compares_found(const Loop *l, const PtxInst *at)
{
    return !strcmp(at->op, "atom") && ptx_has_mod(at, "cas") && reads(l, &at->operands[2]);
}

/* Does a branch out of the loop, or back to its begin, depend on the result? */
static int ends(Loop *l, int atomic)
{
    int found = 0;
    l->behind = 1;
    find_followers(l, atomic);
    l->behind = 0;
    for (int i = l->first; i <= l->last && !found; i++) {
        const PtxInst *in = &l->p->insts[i];
        const int to = in->bad || in->guard < 0 ? -1 : branch_target(l->p, in);
        found = to >= 0 && l->follows[REG_PRED][in->guard] &&
                (to < l->first || to > l->last || to <= i);
    }
    return found;
}

/* The flags ATOMIC_WAITS and ATOMIC_DECIDES of the atomic in the loop, or of the one in a function that the
 * loop calls. */
static int is_of_loop(Loop *l, int atomic)
{
    const PtxInst *at = &l->p->insts[atomic];
    const int calls = is_call(at);
    int decides = 0, draws = !calls && at->n_operands > 1 && is_moved(l, &at->operands[1]);
    l->steps -= l->last - l->first;
    if (at->n_operands < 2) return 0;
    find_followers(l, atomic);
    if (compares_found(l, at)) return 0;
    for (int i = l->first; i <= l->last; i++) {
        const PtxInst *in = &l->p->insts[i];
        if (in->bad) return 0;
        draws |= !(calls && (in == at || is_of_parameter(in))) && works(l, in);
        decides |= !strcmp(in->op, "bra") && in->guard >= 0 && l->follows[REG_PRED][in->guard];
    }
    if (!decides) return 0;
    return ATOMIC_DECIDES | (ends(l, atomic) ? ATOMIC_ENDS : 0) | (draws ? 0 : ATOMIC_WAITS);
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

/* From the first to the last instruction of all loops around an instruction that one of them has. */
static void widen(Loop *l, int at)
{
    for (int i = l->first; i >= 0 && l->steps > 0; i--, l->steps--) {
        if (l->last_to[i] < at) continue;
        l->first = i;
        if (l->last_to[i] > l->last) l->last = l->last_to[i];
    }
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

/* The flags of the later atomics that have this one's address. */
static int is_as_later(const PtxFunction *p, const uint8_t *merged, int at)
{
    const PtxInst *in = &p->insts[at];
    int is = 0;
    for (int i = at + 1; i < p->n_insts; i++)
        if (merged[i] & ATOMIC_DECIDES && in->n_operands == p->insts[i].n_operands &&
            same_address(&in->operands[1], &p->insts[i].operands[1]))
            is |= merged[i] & (ATOMIC_WAITS | ATOMIC_DECIDES | ATOMIC_ENDS);
    return is;
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

/* What the instruction is in its innermost loop, and whether it decides in those around that one. */
static int is_at(Loop *l, int at)
{
    if (!loop_around(l, at)) return 0;
    int is = is_of_loop(l, at);
    if (!is) {
        widen(l, at);
        is = is_of_loop(l, at) & ~ATOMIC_WAITS;
    }
    return l->steps > 0 ? is : 0;
}

static int calls(const PtxInst *in, const char *name)
{
    for (int k = 0; k < in->n_operands && is_call(in) && !in->bad; k++)
        if (in->operands[k].kind == OPND_NAME && !strcmp(in->operands[k].name, name)) return 1;
    return 0;
}

/* What the calls of the function are in loops of other functions. */
static int is_called(const PtxModule *m, const PtxFunction *p, int64_t *steps)
{
    int is = 0;
    for (int f = 0; f < m->n_functions && !is && !p->is_entry; f++) {
        Loop l = {.steps = *steps - m->functions[f].n_insts};
        if (&m->functions[f] == p || l.steps <= 0) continue;
        begin(&l, &m->functions[f]);
        for (int i = 0; i < l.p->n_insts && !is; i++)
            if (calls(&l.p->insts[i], p->name)) is = is_at(&l, i);
        *steps = l.steps;
        end(&l);
    }
    return is;
}

void spins_find(const PtxModule *m, const PtxFunction *p, uint8_t *merged)
{
    Loop l = {.steps = STEPS};
    int n = 0, found = 0;
    for (int i = 0; i < p->n_insts; i++) n += returns(&p->insts[i]);
    if (!n) return;
    const int called = is_called(m, p, &l.steps);
    begin(&l, p);
    for (int i = 0; i < p->n_insts; i++) {
        if (!returns(&p->insts[i])) continue;
        const int is = called | (called & ATOMIC_WAITS ? 0 : is_at(&l, i));
        merged[i] |= (uint8_t)is;
        found |= is;
    }
    for (int i = p->n_insts - 1; i >= 0 && found; i--)
        if (returns(&p->insts[i]) && p->insts[i].n_operands > 1 && l.steps > 0) {
            l.steps -= p->n_insts - i;
            merged[i] |= (uint8_t)is_as_later(p, merged, i);
        }
    end(&l);
}

/* A register varies where a definition of it reads what varies, and where the way that a lane took decides
 * which definition holds. From a branch on a predicate that varies, paths lead to joins: blocks that two
 * paths reach which share no block before. The exit of a loop that lanes leave after different trips is
 * one: paths with and without a further trip reach it. A register varies if a block of these paths defines
 * it and a join needs its value.
 *
 * Where jumps are not followed, and in functions of great size, each register with several definitions
 * varies. */
#include "eval/sim/assembler/varying.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/ptx/ptx_flow.h"

#define MOST_BITS (1ull << 27) /* blocks times registers */
enum { MOST_STEPS = 1 << 24, UNREACHED = -1 };

typedef struct {
    Varying *v;
    Flow flow;
    uint32_t first[REG_CLASSES]; /* the bit of the first register of a class */
    size_t words;                /* of the bits of a block */
    uint64_t *needed, *written;  /* by block: registers that it needs when it begins, or defines */
    uint8_t *is_done;            /* by block: the paths from its branch are known */
    int *label, *stack;          /* of the paths from a branch, by block */
    uint8_t *is_join, *leads;    /* leads: to the join */
    int64_t steps;               /* that are left */
    int changed;
} Paths;

int varying_operand(const Varying *v, const PtxOperand *o)
{
    if (o->kind == OPND_REG) return o->cls >= REG_CLASSES || v->varies[o->cls][o->reg];
    if (o->kind == OPND_SPECIAL) return ptx_differs_by_lane((PtxSpecial)o->value);
    if (o->kind == OPND_ADDR) return varying_operand(v, &o->items[0]);
    if (o->kind == OPND_VAR && o->var->space == SPACE_PARAM) {
        /* A call's results and a function's parameters differ between threads. */
        for (int i = 0; v->p->is_entry && i < v->p->n_params; i++)
            if (v->p->params[i] == o->var) return 0;
        return 1;
    }
    if (o->kind == OPND_VAR) return o->var->space == SPACE_LOCAL;
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        if (varying_operand(v, &o->items[i])) return 1;
    return 0;
}

static void vary(Paths *l, const PtxOperand *o)
{
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        vary(l, &o->items[i]);
    if (o->pair) vary(l, o->pair);
    if (o->kind != OPND_REG || o->cls >= REG_CLASSES || l->v->varies[o->cls][o->reg]) return;
    l->v->varies[o->cls][o->reg] = 1;
    l->changed = 1;
}

static int has_one_of(const PtxInst *in, const char *const *mods, size_t n)
{
    for (int i = 0; i < in->n_mods; i++)
        for (size_t k = 0; k < n; k++)
            if (!strcmp(in->mods[i], mods[k])) return 1;
    return 0;
}

/* A load of memory that lanes share, which no other thread changes meanwhile, gives them one value. */
static int is_uniform_load(const PtxInst *in)
{
    static const char *const shared[] = {"const", "global", "param", "shared", "shared::cta"},
                             *const strong[] = {"volatile", "relaxed", "acquire", "mmio"};
    return has_one_of(in, shared, sizeof shared / sizeof *shared) &&
           !has_one_of(in, strong, sizeof strong / sizeof *strong);
}

/* Does the instruction give each lane a value of its own, whatever it reads? */
static int is_lane_op(const PtxInst *in)
{
    static const char *const ops[] = {"atom", "shfl",  "ldmatrix", "movmatrix", "mma",     "wmma",
                                      "call", "match", "elect",    "wgmma",     "mbarrier"};
    if (!strcmp(in->op, "ld")) return !is_uniform_load(in);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(in->op, ops[i])) return 1;
    return 0;
}

static void visit(Paths *l, const PtxInst *in)
{
    if (in->bad || !in->n_operands || !ptx_has_dest(in)) return;
    int differs = is_lane_op(in) || (in->guard >= 0 && l->v->varies[REG_PRED][in->guard]);
    for (int i = 1; i < in->n_operands && !differs; i++)
        differs = varying_operand(l->v, &in->operands[i]);
    if (differs) vary(l, &in->operands[0]);
}

/* ---- which registers a block needs ---- */

typedef struct {
    uint64_t *needed, *written, *killed; /* of one block; killed: not by a guarded one */
    const uint32_t *first;
    int guarded;
} BlockBits;

static void set_bit(uint64_t *bits, uint32_t at)
{
    bits[at / 64] |= 1ull << at % 64;
}

static int has_bit(const uint64_t *bits, uint32_t at)
{
    return bits[at / 64] >> at % 64 & 1;
}

static void note_read(const BlockBits *b, const PtxOperand *o)
{
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        note_read(b, &o->items[i]);
    if (o->kind == OPND_ADDR) note_read(b, &o->items[0]);
    if (o->kind != OPND_REG || o->cls >= REG_CLASSES) return;
    if (!has_bit(b->killed, b->first[o->cls] + o->reg))
        set_bit(b->needed, b->first[o->cls] + o->reg);
}

static void note_written(const BlockBits *b, const PtxOperand *o)
{
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        note_written(b, &o->items[i]);
    if (o->pair) note_written(b, o->pair);
    if (o->kind != OPND_REG || o->cls >= REG_CLASSES) return;
    set_bit(b->written, b->first[o->cls] + o->reg);
    if (!b->guarded) set_bit(b->killed, b->first[o->cls] + o->reg);
}

static void note_block(const Paths *l, int block, uint64_t *killed)
{
    BlockBits b = {l->needed + (size_t)block * l->words, l->written + (size_t)block * l->words,
                   killed + (size_t)block * l->words, l->first, 0};
    for (int i = l->flow.blocks[block].first; i < l->flow.blocks[block].last; i++) {
        const PtxInst *in = &l->v->p->insts[i];
        int dest = !in->bad && in->n_operands && ptx_has_dest(in);
        b.guarded = in->guard >= 0;
        if (b.guarded)
            note_read(&b,
                      &(PtxOperand){.kind = OPND_REG, .cls = REG_PRED, .reg = (uint32_t)in->guard});
        for (int k = dest; !in->bad && k < in->n_operands; k++) note_read(&b, &in->operands[k]);
        if (dest) note_written(&b, &in->operands[0]);
    }
}

/* A block needs what a block behind it needs, and what it does not define itself. */
static void find_needed(const Paths *l)
{
    const Flow *f = &l->flow;
    uint64_t *killed = memory_array((size_t)f->n * l->words + 1, sizeof *killed);
    for (int b = 0; b < f->n; b++) note_block(l, b, killed);
    for (int again = 1, to[2]; again;) {
        again = 0;
        for (int b = f->n - 1; b >= 0; b--)
            for (int k = flow_successors(f, b, to); k-- > 0;)
                for (size_t w = 0; to[k] < f->n && w < l->words; w++) {
                    size_t at = (size_t)b * l->words + w;
                    uint64_t more = l->needed[(size_t)to[k] * l->words + w] & ~killed[at];
                    again |= (more & ~l->needed[at]) != 0;
                    l->needed[at] |= more;
                }
    }
    free(killed);
}

/* ---- where paths from a branch meet ---- */

/* A path with a label comes to block b. Returns 1 where another one has: it is a join. */
static int reach(Paths *l, int b, int label, int *depth)
{
    if (l->is_join[b]) label = b;
    if (l->label[b] == label) return 0;
    if (l->label[b] != UNREACHED) return 1;
    l->label[b] = label;
    l->stack[(*depth)++] = b;
    return 0;
}

/* Labels the blocks behind a branch by the successor of the branch, or the join, that comes before them on
 * every path, up to where all paths meet. Returns a join that was not known; -1: there is none. */
static int label_paths(Paths *l, int branch)
{
    const Flow *f = &l->flow;
    int depth = 0, to[2];
    for (int b = 0; b <= f->n; b++) l->label[b] = UNREACHED;
    for (int k = flow_successors(f, branch, to); k-- > 0;)
        if (reach(l, to[k], to[k], &depth)) return to[k];
    while (depth) {
        int b = l->stack[--depth];
        l->steps--;
        if (b == f->n || b == f->blocks[branch].join) continue;
        for (int k = flow_successors(f, b, to); k-- > 0;)
            if (reach(l, to[k], l->label[b], &depth)) return to[k];
    }
    return -1;
}

/* Marks the labelled blocks from which a path leads to the join. */
static void find_leading(Paths *l, int branch, int join)
{
    const Flow *f = &l->flow;
    memset(l->leads, 0, (size_t)f->n + 1);
    for (int again = 1, to[2]; again;) {
        again = 0;
        for (int b = f->n - 1; b >= 0; b--) {
            if (l->label[b] == UNREACHED || l->leads[b] || b == f->blocks[branch].join) continue;
            for (int k = flow_successors(f, b, to); k-- > 0;)
                l->leads[b] |= to[k] == join || l->leads[to[k]];
            again |= l->leads[b];
        }
        l->steps -= f->n;
    }
}

static void vary_bit(Paths *l, uint32_t at)
{
    int k = REG_CLASSES - 1;
    while (at < l->first[k]) k--;
    l->changed |= !l->v->varies[k][at - l->first[k]];
    l->v->varies[k][at - l->first[k]] = 1;
}

/* Registers that blocks of the paths define and the join needs vary. */
static void vary_at_join(Paths *l, int join)
{
    const uint64_t *needed = l->needed + (size_t)join * l->words;
    for (int b = 0; b < l->flow.n; b++) {
        if (!l->leads[b]) continue;
        l->steps -= (int64_t)l->words;
        for (size_t w = 0; w < l->words; w++)
            for (uint64_t m = needed[w] & l->written[(size_t)b * l->words + w]; m; m &= m - 1)
                vary_bit(l, (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(m));
    }
}

static void follow(Paths *l, int branch)
{
    int join;
    memset(l->is_join, 0, (size_t)l->flow.n + 1);
    while (l->steps > 0 && (join = label_paths(l, branch)) >= 0) l->is_join[join] = 1;
    for (int b = 0; b < l->flow.n && l->steps > 0; b++) {
        if (!l->is_join[b]) continue;
        find_leading(l, branch, b);
        vary_at_join(l, b);
    }
}

/* ---- the function ---- */

/* Returns 1 where a register of the destination has been defined before. */
static int redefines(const Paths *l, const PtxOperand *o, uint8_t *defined)
{
    int found = o->pair ? redefines(l, o->pair, defined) : 0;
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        found |= redefines(l, &o->items[i], defined);
    if (o->kind != OPND_REG || o->cls >= REG_CLASSES) return found;
    found |= defined[l->first[o->cls] + o->reg];
    defined[l->first[o->cls] + o->reg] = 1;
    return found;
}

static void vary_redefined(Paths *l)
{
    uint8_t *defined = memory_alloc(l->words * 64);
    for (int i = 0; i < l->v->p->n_insts; i++) {
        const PtxInst *in = &l->v->p->insts[i];
        if (in->bad || !in->n_operands || !ptx_has_dest(in)) continue;
        if (redefines(l, &in->operands[0], defined)) vary(l, &in->operands[0]);
    }
    free(defined);
}

static void begin(Paths *l)
{
    size_t bits = 0, blocks;
    for (int k = 0; k < REG_CLASSES; k++) {
        l->v->varies[k] = memory_alloc((size_t)l->v->p->n_regs[k] + 1);
        l->first[k] = (uint32_t)bits;
        bits += l->v->p->n_regs[k] + 1;
    }
    l->words = bits / 64 + 1;
    int followed = !flow_find(l->v->p, &l->flow);
    blocks = (size_t)l->flow.n + 1;
    if (!followed || blocks * bits > MOST_BITS) {
        l->flow.n = 0;
        return;
    }
    l->needed = memory_array(blocks * l->words, sizeof *l->needed);
    l->written = memory_array(blocks * l->words, sizeof *l->written);
    l->is_done = memory_alloc(blocks);
    l->is_join = memory_alloc(blocks);
    l->leads = memory_alloc(blocks);
    l->label = memory_array(blocks, sizeof *l->label);
    l->stack = memory_array(blocks, sizeof *l->stack);
    l->steps = MOST_STEPS;
    find_needed(l);
}

static void follow_branches(Paths *l)
{
    for (int b = 0; b < l->flow.n; b++) {
        const FlowBlock *k = &l->flow.blocks[b];
        int guard = l->v->p->insts[k->last - 1].guard;
        if (k->end != ENDS_BRANCH || l->is_done[b] || !l->v->varies[REG_PRED][guard]) continue;
        l->is_done[b] = 1;
        follow(l, b);
    }
}

void varying_find(const PtxFunction *p, Varying *out)
{
    *out = (Varying){.p = p};
    Paths l = {.v = out, .changed = 1};
    begin(&l);
    while (l.changed) {
        l.changed = 0;
        for (int i = 0; i < p->n_insts; i++) visit(&l, &p->insts[i]);
        follow_branches(&l);
        if (l.steps <= 0) vary_redefined(&l);
    }
    flow_release(&l.flow);
    free(l.needed);
    free(l.written);
    free(l.is_done);
    free(l.is_join);
    free(l.leads);
    free(l.label);
    free(l.stack);
}

void varying_release(Varying *v)
{
    for (int k = 0; k < REG_CLASSES; k++) free(v->varies[k]);
}

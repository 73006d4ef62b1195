/* The cost of one pass over a block: its longest chain of dependent cycles, and its waits for memory.
 *
 * The assembler moves a load up to where its address is known, but not past a global store, an
 * atomic or a barrier before it. So loads that do not depend on one another are one wait. A few
 * instructions that a branch skips become predicated instructions: the blocks before, in and behind
 * them are one group, in which loads move freely. Asynchronous copies that are awaited by groups are waits
 * where no later group may be under way; else they arrive while the groups before them are used. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/decode/decode_internal.h"

enum { MAX_PREDICATED = 5 /* instructions that a branch skips */ };

/* How many waits one after another a value or an instruction needs, for global and local memory. */
typedef struct {
    uint32_t global, local;
} WaitLevel;

typedef struct {
    uint32_t ready; /* cycle in `block` at which the value is known */
    int block, group;
    WaitLevel level; /* in `group` */
} RegState;

typedef struct {
    RegState *regs[REG_CLASSES];
    int *first_pred, *last_pred; /* of each block: the lowest and the highest block before it */
    int *starts;                 /* of each block: its first PTX instruction */
    int block, group;            /* group: its first block */
    WaitLevel counted;           /* the waits of the group's blocks so far */
    uint32_t start;              /* cycle at which the operands of the instruction are known */
    WaitLevel need;              /* of the operands of the instruction */
    WaitLevel stored;            /* of all stores of the block so far */
    WaitLevel order;             /* of what the block's next load comes after */
    WaitLevel kept;              /* of what the group has stored in shared or local memory */
    WaitLevel params;            /* of what the group has passed to functions */
    WaitLevel control;           /* of the branch that skips the block, up to the block `joined` */
    int joined;
    int grouped; /* the function awaits asynchronous copies by groups alone */
} CostWalk;

/* An mbarrier awaits the copies of the thread so far. */
static int arrives_by_copies(const PtxInst *in)
{
    return ptx_same(in->op, "cp") && ptx_has_mod(in, "async") && ptx_has_mod(in, "mbarrier");
}

static int awaits_groups(const PtxInst *in)
{
    return ptx_same(in->op, "cp") && !ptx_has_mod(in, "bulk") &&
           (ptx_has_mod(in, "wait_group") || ptx_has_mod(in, "wait_all"));
}

/* Does the value come from global memory, by a load or by an atomic that returns it? Or does the instruction
 * wait for all copies? */
static int is_far(const CostWalk *c, const PtxInst *in, int inst_class)
{
    if (c->grouped && awaits_groups(in))
        return ptx_has_mod(in, "wait_all") || (in->n_operands && !in->operands[0].value);
    if (c->grouped && ptx_same(in->op, "cp") && ptx_has_mod(in, "async") &&
        !ptx_has_mod(in, "bulk"))
        return 0;
    return inst_class == INST_GLOBAL_LOAD ||
           (ptx_same(in->op, "atom") && !ptx_has_mod(in, "shared") &&
            !ptx_has_mod(in, "shared::cta") && !ptx_has_mod(in, "shared::cluster"));
}

static void raise_level(WaitLevel *to, WaitLevel v)
{
    if (v.global > to->global) to->global = v.global;
    if (v.local > to->local) to->local = v.local;
}

static void visit_sources(CostWalk *c, const PtxOperand *o)
{
    if (o->kind == OPND_REG && o->cls < REG_CLASSES) {
        const RegState *r = &c->regs[o->cls][o->reg];
        if (r->block == c->block && r->ready > c->start) c->start = r->ready;
        if (r->group == c->group) raise_level(&c->need, r->level);
    }
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        visit_sources(c, &o->items[i]);
    if (o->kind == OPND_ADDR) visit_sources(c, &o->items[0]);
}

static void set_dest(CostWalk *c, const PtxOperand *o, uint32_t ready, WaitLevel level)
{
    for (int i = 0; o->kind == OPND_VEC && i < o->n; i++) set_dest(c, &o->items[i], ready, level);
    if (o->pair) set_dest(c, o->pair, ready, level);
    if (o->kind == OPND_REG) c->regs[o->cls][o->reg] = (RegState){ready, c->block, c->group, level};
}

/* Does nothing that follows move up past the instruction? */
static int is_fence(const PtxInst *in)
{
    return !strncmp(in->op, "bar", 3) || ptx_same(in->op, "membar") || ptx_same(in->op, "fence") ||
           (ptx_same(in->op, "cp") &&
            (ptx_has_mod(in, "wait_group") || ptx_has_mod(in, "wait_all")));
}

/* Cycles of a fence between proxies that is not of shared memory alone: it waits for all copies in flight. An
 * H200 took 94 us for 256 of them in turn (2026-11-29). */
enum { WIDE_FENCE_CYCLES = 640 };

static uint32_t fence_cycles(const PtxInst *in)
{
    return ptx_same(in->op, "fence") && ptx_has_mod(in, "proxy") && ptx_has_mod(in, "async") &&
                   !ptx_has_mod(in, "shared::cta") && !ptx_has_mod(in, "shared::cluster")
               ? WIDE_FENCE_CYCLES
               : 0;
}

/* What an instruction costs the simulator beyond one thread-instruction for each of 32 lanes. */
static uint32_t host_cost(const PtxInst *in)
{
    static const struct {
        const char *op;
        uint32_t cost;
    } slow[] = {{"fns", 400},     {"sin", 180}, {"cos", 180},      {"prmt", 80}, {"ex2", 70},
                {"tanh", 80},     {"lg2", 50},  {"div", 60},       {"rem", 50},  {"sqrt", 30},
                {"rsqrt", 30},    {"rcp", 30},  {"dp4a", 50},      {"dp2a", 50}, {"shfl", 40},
                {"redux", 30},    {"bfi", 30},  {"vabsdiff4", 50}, {"vadd", 30}, {"vsub", 30},
                {"vabsdiff", 30}, {"vmin", 30}, {"vmax", 30}};
    for (size_t i = 0; i < sizeof slow / sizeof slow[0]; i++)
        if (ptx_same(in->op, slow[i].op)) return slow[i].cost;
    int fma = ptx_same(in->op, "fma"), access = ptx_same(in->op, "ld") || ptx_same(in->op, "st");
    if (access && (ptx_has_mod(in, "global") || ptx_has_mod(in, "param"))) return 32;
    if (ptx_has_mod(in, "f16x2") || ptx_has_mod(in, "bf16x2")) return fma ? 320 : 80;
    return ptx_has_mod(in, "f16") || ptx_has_mod(in, "bf16") ? fma ? 160 : 40 : 0;
}

/* What a short branch skips waits for its condition, as far as it is known. */
static void note_branch(CostWalk *c, const Decoder *d)
{
    const int target = d->blocks[c->block].target;
    if (target <= c->block) return;
    raise_level(&c->control, c->need);
    if (target > c->joined) c->joined = target;
}

static void walk_inst(CostWalk *c, const Decoder *d, int i)
{
    const PtxInst *in = &d->p->insts[i];
    CodeBlock *cost = &d->costs[c->block];
    uint8_t *waits = &d->f->waits[i];
    int inst_class = d->classes[i], dest = ptx_has_dest(in), far = is_far(c, in, inst_class),
        local = inst_class == INST_LOCAL_LOAD, copy = ptx_same(in->op, "cp");
    PtxOperand guard = {.kind = OPND_REG, .cls = REG_PRED, .reg = (uint32_t)in->guard};
    c->start = 0;
    cost->host += host_cost(in);
    c->need = (WaitLevel){0};
    raise_level(&c->need, c->control);
    if (in->guard >= 0) visit_sources(c, &guard);
    if (in->guard >= 0 && ptx_same(in->op, "bra")) note_branch(c, d);
    for (int k = dest && strcmp(in->op, "wgmma"); k < in->n_operands; k++) /* that adds to it */
        visit_sources(c, &in->operands[k]);
    uint32_t done = c->start + d->latency[i];
    if (done > cost->chain) cost->chain = done;
    cost->chain += fence_cycles(in);
    WaitLevel level = c->need;
    if (inst_class == INST_SHARED_LOAD || local) raise_level(&level, c->kept);
    if (ptx_has_mod(in, "param") && dest) raise_level(&level, c->params);
    if (ptx_has_mod(in, "param") && !dest) raise_level(&c->params, level);
    if ((far || local) && !ptx_has_mod(in, "nc")) raise_level(&level, c->order);
    level.global += (uint32_t)far;
    level.local += (uint32_t)local;
    if (far && level.global > c->counted.global) {
        *waits = (uint8_t)(level.global - c->counted.global);
        cost->global_waits += *waits;
        c->counted.global = level.global;
    }
    if (local && level.local > c->counted.local) {
        cost->local_waits += level.local - c->counted.local;
        c->counted.local = level.local;
    }
    if (copy || !dest) raise_level(&c->stored, level);
    if (inst_class == INST_GLOBAL_STORE || inst_class == INST_LOCAL_STORE ||
        inst_class == INST_ATOMIC)
        raise_level(&c->order, c->need);
    if (inst_class == INST_SHARED_STORE || inst_class == INST_LOCAL_STORE)
        raise_level(&c->kept, c->need);
    if (awaits_groups(in)) raise_level(&c->kept, level); /* what the copies brought */
    if (is_fence(in)) raise_level(&c->order, c->stored);
    if (dest) set_dest(c, &in->operands[0], done, level);
}

static void add_pred(CostWalk *c, int from, int to)
{
    if (from < c->first_pred[to]) c->first_pred[to] = from;
    if (from > c->last_pred[to]) c->last_pred[to] = from;
}

static void find_preds(const Decoder *d, CostWalk *c)
{
    size_t n = (size_t)d->n_blocks;
    c->first_pred = memory_array(n + 1, sizeof(int));
    c->last_pred = memory_array(n + 1, sizeof(int));
    c->starts = memory_array(n + 1, sizeof(int));
    for (int b = 0; b < d->n_blocks; b++)
        c->first_pred[b] = d->n_blocks, c->last_pred[b] = -1, c->starts[b] = d->p->n_insts;
    for (int i = d->p->n_insts - 1; i >= 0; i--) c->starts[d->block_of[i]] = i;
    for (int b = 0; b < d->n_blocks; b++) {
        const BlockInfo *info = &d->blocks[b];
        if (info->end == END_BRANCH || info->end == END_COND) add_pred(c, b, info->target);
        if ((info->end == END_COND || info->end == END_FALL) && b + 1 < d->n_blocks)
            add_pred(c, b, b + 1);
        for (int k = 0; k < info->n_table; k++) add_pred(c, -1, info->table[k]);
    }
}

/* Does the block continue its group? Then control comes from the group only, and the branch before
 * it skips little. */
static int continues_group(const Decoder *d, const CostWalk *c, int block)
{
    const BlockInfo *before = &d->blocks[block - 1];
    if (c->first_pred[block] < c->group || c->last_pred[block] >= block) return 0;
    if (before->end == END_FALL) return 1;
    if (before->end != END_BRANCH && before->end != END_COND) return 0;
    return before->target >= block &&
           c->starts[before->target] - c->starts[block] <= MAX_PREDICATED;
}

static void begin_cost_block(const Decoder *d, CostWalk *c, int block)
{
    if (!block || !continues_group(d, c, block)) {
        c->group = block;
        c->stored = c->order = c->kept = c->counted = c->params = (WaitLevel){0};
        c->joined = block;
    }
    if (block >= c->joined) c->control = (WaitLevel){0};
    c->block = block;
}

/* A warp that jumps back waits for its next instructions. */
static void charge_loops(Decoder *d)
{
    enum { JUMP_CYCLES = 8 };
    for (int b = 0; b < d->n_blocks; b++)
        if ((d->blocks[b].end == END_BRANCH || d->blocks[b].end == END_COND) &&
            d->blocks[b].target <= b)
            d->costs[b].chain += JUMP_CYCLES;
}

/* What a pass takes of each pipe, of the tensor cores in units of 256 slots. A product of integers takes
 * lanes of fp32, of which half as many execute it. */
static void count_pipes(CodeBlock *b)
{
    const uint32_t *n = b->by_class;
    const uint64_t slots = b->mma_slots + b->wgmma_slots;
    b->pipes[PIPE_ISSUE] = b->n_insts - b->folded + b->expansion;
    b->pipes[PIPE_FP32] = n[INST_FP32] + 2 * n[INST_INT_MUL];
    b->pipes[PIPE_INT] = n[INST_INT] + n[INST_INT_MUL];
    b->pipes[PIPE_SUM] = b->pipes[PIPE_INT] + n[INST_INT_ADD];
    b->pipes[PIPE_FP16] = n[INST_FP16];
    b->pipes[PIPE_FP64] = n[INST_FP64];
    b->pipes[PIPE_SFU] = n[INST_SFU];
    b->pipes[PIPE_TENSOR] = (uint32_t)((slots + PIPE_TENSOR_UNIT - 1) / PIPE_TENSOR_UNIT);
}

void costs_find(Decoder *d)
{
    CostWalk c = {.block = -1};
    for (int i = 0; i < d->p->n_insts; i++) c.grouped |= awaits_groups(&d->p->insts[i]);
    for (int i = 0; i < d->p->n_insts; i++) c.grouped &= !arrives_by_copies(&d->p->insts[i]);
    for (int k = 0; k < REG_CLASSES; k++) {
        c.regs[k] = memory_array((size_t)d->p->n_regs[k] + 1, sizeof(RegState));
        for (uint32_t i = 0; i <= d->p->n_regs[k]; i++)
            c.regs[k][i].block = c.regs[k][i].group = -2;
    }
    find_preds(d, &c);
    for (int i = 0; i < d->p->n_insts; i++) {
        if (d->block_of[i] != c.block) begin_cost_block(d, &c, d->block_of[i]);
        if (!d->p->insts[i].bad) walk_inst(&c, d, i);
    }
    charge_loops(d);
    for (int b = 0; b < d->n_blocks; b++) count_pipes(&d->costs[b]);
    for (int k = 0; k < REG_CLASSES; k++) free(c.regs[k]);
    free(c.first_pred);
    free(c.last_pred);
    free(c.starts);
}

/* The control flow graph of a function: where diverged lanes meet again, and the cost of one pass
 * over a block in dependent cycles and in waits for memory. */
#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/decode/decode_internal.h"

/* ---- immediate post-dominators (Cooper, Harvey, Kennedy) on the reversed graph ---- */

typedef struct {
    int n;              /* blocks; the virtual exit is n */
    int *first, *edges; /* successors of b: edges[first[b]] to edges[first[b + 1] - 1] */
    int *pred_first, *preds;
    int *order;  /* the blocks in reverse postorder from the exit */
    int *number; /* the place of each block in order; -1 unreached */
    int n_order;
    int *idom;
    int skip_exits;
} Graph;

/* Adds an edge. Edges to blocks that only exit can be left out, since such lanes need no join. */
static int add_edge(const Decoder *d, const Graph *g, int *edges, int n, int to)
{
    if (d->blocks[to].pure_exit && g->skip_exits) return n;
    edges[n] = to;
    return n + 1;
}

static void find_edges(const Decoder *d, Graph *g)
{
    int capacity = 1;
    for (int b = 0; b < g->n; b++) capacity += 2 + d->blocks[b].n_table;
    g->edges = memory_array((size_t)capacity, sizeof(int));
    g->first = memory_array((size_t)g->n + 2, sizeof(int));
    int n = 0;
    for (int b = 0; b < g->n; b++) {
        const BlockInfo *info = &d->blocks[b];
        int start = n;
        g->first[b] = n;
        if (info->end == END_BRANCH || info->end == END_COND)
            n = add_edge(d, g, g->edges, n, info->target);
        if ((info->end == END_COND || info->end == END_FALL) && b + 1 < g->n)
            n = add_edge(d, g, g->edges, n, b + 1);
        for (int k = 0; k < info->n_table; k++) n = add_edge(d, g, g->edges, n, info->table[k]);
        if (n == start) g->edges[n++] = g->n;
    }
    g->first[g->n] = n;
}

static void reverse_edges(Graph *g)
{
    int total = g->first[g->n];
    g->pred_first = memory_array((size_t)g->n + 2, sizeof(int));
    g->preds = memory_array((size_t)total + 1, sizeof(int));
    for (int i = 0; i < total; i++) g->pred_first[g->edges[i] + 1]++;
    for (int b = 0; b <= g->n; b++) g->pred_first[b + 1] += g->pred_first[b];
    int *at = memory_array((size_t)g->n + 2, sizeof(int));
    memcpy(at, g->pred_first, sizeof(int) * ((size_t)g->n + 1));
    for (int b = 0; b < g->n; b++)
        for (int i = g->first[b]; i < g->first[b + 1]; i++) g->preds[at[g->edges[i]]++] = b;
    free(at);
}

static void number_blocks(Graph *g)
{
    int *stack = memory_array((size_t)g->n + 2, sizeof(int)),
        *next = memory_array((size_t)g->n + 2, sizeof(int));
    int depth = 0, post = g->n;
    g->order = memory_array((size_t)g->n + 2, sizeof(int));
    g->number = memory_array((size_t)g->n + 2, sizeof(int));
    for (int b = 0; b <= g->n; b++) g->number[b] = -1;
    stack[depth++] = g->n;
    g->number[g->n] = 0;
    next[g->n] = g->pred_first[g->n];
    while (depth) {
        int b = stack[depth - 1];
        if (next[b] < g->pred_first[b + 1]) {
            int p = g->preds[next[b]++];
            if (g->number[p] < 0) {
                g->number[p] = 0;
                next[p] = g->pred_first[p];
                stack[depth++] = p;
            }
            continue;
        }
        depth--;
        g->order[post--] = b;
    }
    g->n_order = g->n - post;
    memmove(g->order, g->order + post + 1, sizeof(int) * (size_t)g->n_order);
    for (int i = 0; i < g->n_order; i++) g->number[g->order[i]] = i;
    free(stack);
    free(next);
}

static int meet(const Graph *g, int a, int b)
{
    while (a != b) {
        while (g->number[a] > g->number[b]) a = g->idom[a];
        while (g->number[b] > g->number[a]) b = g->idom[b];
    }
    return a;
}

static void dominate(Graph *g)
{
    g->idom = memory_array((size_t)g->n + 2, sizeof(int));
    for (int b = 0; b <= g->n; b++) g->idom[b] = -1;
    g->idom[g->n] = g->n;
    for (int changed = 1; changed;) {
        changed = 0;
        for (int i = 1; i < g->n_order; i++) {
            int b = g->order[i], best = -1;
            for (int e = g->first[b]; e < g->first[b + 1]; e++) {
                int s = g->edges[e];
                if (g->number[s] >= 0 && g->idom[s] >= 0) best = best < 0 ? s : meet(g, s, best);
            }
            if (best >= 0 && g->idom[b] != best) {
                g->idom[b] = best;
                changed = 1;
            }
        }
    }
}

/* Fills in the joins of blocks that have none yet. */
static void find_joins(Decoder *d, int skip_exits)
{
    Graph g = {.n = d->n_blocks, .skip_exits = skip_exits};
    find_edges(d, &g);
    reverse_edges(&g);
    number_blocks(&g);
    dominate(&g);
    for (int b = 0; b < g.n; b++)
        if (d->blocks[b].join < 0 && g.number[b] >= 0 && g.idom[b] < g.n)
            d->blocks[b].join = g.idom[b];
    free(g.edges);
    free(g.first);
    free(g.preds);
    free(g.pred_first);
    free(g.order);
    free(g.number);
    free(g.idom);
}

/* Exits are left out first, so that an early exit does not keep the other lanes from meeting. Lanes
 * whose paths share nothing but an exit meet there. */
void cfg_joins(Decoder *d)
{
    find_joins(d, 1);
    find_joins(d, 0);
}

/* ---- costs ---- */

/* How many waits one after another a value or an instruction needs, for global and local memory. */
typedef struct {
    uint32_t global, local;
} WaitLevel;

typedef struct {
    uint32_t ready; /* cycle in `block` at which the value is known */
    int block;
    WaitLevel level;
} RegState;

/* The assembler moves a load up to where its address is known, but not past a global store, an
 * atomic or a barrier before it. So loads that do not depend on one another are one wait. */
typedef struct {
    RegState *regs[REG_CLASSES];
    int block;
    uint32_t start;   /* cycle at which the operands of the instruction are known */
    WaitLevel need;   /* of the operands of the instruction */
    WaitLevel stored; /* of all stores of the block so far */
    WaitLevel order;  /* of what the block's next load comes after */
} CostWalk;

/* Cycles until the result of an instruction can be used; 0 for loads that count as waits. */
static int latency_of(int inst_class)
{
    switch (inst_class) {
    case INST_SFU: return 18;
    case INST_SHARED_LOAD:
    case INST_SHUFFLE: return 24;
    case INST_TENSOR: return 32;
    case INST_FP64: return 8;
    case INST_ATOMIC:
    case INST_CONST_LOAD: return 30;
    case INST_GLOBAL_LOAD:
    case INST_LOCAL_LOAD: return 0;
    case INST_OTHER: return 0;
    default: return 4;
    }
}

static int has_mod(const PtxInst *in, const char *mod)
{
    for (int i = 0; i < in->n_mods; i++)
        if (!strcmp(in->mods[i], mod)) return 1;
    return 0;
}

/* Does the value come from global memory, by a load or by an atomic that returns it? */
static int is_far(const PtxInst *in, int inst_class)
{
    return inst_class == INST_GLOBAL_LOAD ||
           (!strcmp(in->op, "atom") && !has_mod(in, "shared") && !has_mod(in, "shared::cta"));
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
        if (r->block == c->block) {
            if (r->ready > c->start) c->start = r->ready;
            raise_level(&c->need, r->level);
        }
    }
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_LIST) && i < o->n; i++)
        visit_sources(c, &o->items[i]);
    if (o->kind == OPND_ADDR) visit_sources(c, &o->items[0]);
}

static void set_dest(CostWalk *c, const PtxOperand *o, uint32_t ready, WaitLevel level)
{
    for (int i = 0; o->kind == OPND_VEC && i < o->n; i++) set_dest(c, &o->items[i], ready, level);
    if (o->pair) set_dest(c, o->pair, ready, level);
    if (o->kind == OPND_REG) c->regs[o->cls][o->reg] = (RegState){ready, c->block, level};
}

int cfg_has_dest(const PtxInst *in)
{
    static const char *const none[] = {"st",    "red", "bra",  "bar",  "barrier", "membar",
                                       "fence", "ret", "exit", "call", "cp",      "brx"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        if (!strcmp(in->op, none[i])) return !strncmp(in->op, "bar", 3) && in->n_operands > 2;
    return in->n_operands > 0;
}

/* Does nothing that follows move up past the instruction? */
static int is_fence(const PtxInst *in)
{
    return !strncmp(in->op, "bar", 3) || !strcmp(in->op, "membar") || !strcmp(in->op, "fence") ||
           (!strcmp(in->op, "cp") && (has_mod(in, "wait_group") || has_mod(in, "wait_all")));
}

static void walk_inst(CostWalk *c, const PtxInst *in, int inst_class, CodeBlock *cost)
{
    int dest = cfg_has_dest(in), far = is_far(in, inst_class),
        local = inst_class == INST_LOCAL_LOAD, copy = !strcmp(in->op, "cp");
    PtxOperand guard = {.kind = OPND_REG, .cls = REG_PRED, .reg = (uint32_t)in->guard};
    c->start = 0;
    c->need = (WaitLevel){0};
    if (in->guard >= 0) visit_sources(c, &guard);
    for (int i = dest; i < in->n_operands; i++) visit_sources(c, &in->operands[i]);
    uint32_t done = c->start + (uint32_t)latency_of(inst_class);
    if (done > cost->chain) cost->chain = done;
    WaitLevel level = c->need;
    if ((far || local) && !has_mod(in, "nc")) raise_level(&level, c->order);
    level.global += (uint32_t)far;
    level.local += (uint32_t)local;
    if (far && level.global > cost->global_waits) cost->global_waits = level.global;
    if (local && level.local > cost->local_waits) cost->local_waits = level.local;
    if (copy || !dest) raise_level(&c->stored, level);
    if (inst_class == INST_GLOBAL_STORE || inst_class == INST_LOCAL_STORE ||
        inst_class == INST_ATOMIC)
        raise_level(&c->order, c->need);
    if (is_fence(in)) raise_level(&c->order, c->stored);
    if (dest) set_dest(c, &in->operands[0], done, level);
}

static void begin_cost_block(CostWalk *c, int block)
{
    c->block = block;
    c->stored = c->order = (WaitLevel){0};
}

void cfg_costs(Decoder *d)
{
    CostWalk c = {.block = -1};
    for (int k = 0; k < REG_CLASSES; k++) {
        c.regs[k] = memory_array((size_t)d->p->n_regs[k] + 1, sizeof(RegState));
        for (uint32_t i = 0; i <= d->p->n_regs[k]; i++) c.regs[k][i].block = -2;
    }
    for (int i = 0; i < d->p->n_insts; i++) {
        if (d->block_of[i] != c.block) begin_cost_block(&c, d->block_of[i]);
        if (!d->p->insts[i].bad) walk_inst(&c, &d->p->insts[i], d->classes[i], &d->costs[c.block]);
    }
    for (int k = 0; k < REG_CLASSES; k++) free(c.regs[k]);
}

/* A launch runs its blocks one after another, a cooperative one all in turn. The warps of a block run one
 * after another, each until it waits or has used its slices. */
#include "eval/sim/exec/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "eval/sim/exec/barrier.h"
#include "eval/sim/exec/splits.h"
#include "eval/sim/memory/access.h"
#include "eval/sim/memory/async_copy.h"
#include "eval/sim/memory/block_waits.h"
#include "eval/sim/memory/bulk_copy.h"
#include "eval/sim/memory/busy.h"
#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/cooperative.h"
#include "eval/sim/memory/doubts.h"
#include "eval/sim/memory/landed.h"
#include "eval/sim/memory/order.h"
#include "eval/sim/memory/path.h"
#include "eval/sim/memory/proxy.h"
#include "eval/sim/memory/shadow.h"
#include "eval/sim/memory/traffic.h"
#include "eval/sim/memory/undefined.h"
#include "eval/sim/memory/wgmma_reads.h"

enum {
    RECURSION_FRAMES = 512, /* reserved for a kernel that recurses */
    LOCAL_MAX = 512 << 10,  /* bytes of local memory per thread, with all frames */
    BLOCK_COST = 128,       /* thread-instructions charged for the start of a block */
    BLOCK_THREADS = 1024,
    TURNS = 16 /* of a block of a cluster or of a cooperative launch, before the others run */
};

/* Reports a launch that does not start. Returns 1. */
static int launch_fault(Exec *x, Outcome outcome, int line, const char *what)
{
    Fault *f = x->fault;
    char name[64];
    memset(f, 0, sizeof *f);
    f->outcome = outcome;
    f->line = line;
    snprintf(f->kernel, sizeof f->kernel, "%s", x->launch->kernel);
    device_kernel_name(x->launch->kernel, name, sizeof name);
    snprintf(f->message, sizeof f->message, "kernel %s%s%s", name,
             outcome == OUTCOME_UNSUPPORTED ? ": " : " ", what);
    x->faulted = 1;
    return 1;
}

/* ---- registers, local and shared memory ---- */

typedef struct {
    size_t rows32, rows64, preds, local;
    int recursive;
} StackNeed;

static void raise_size(size_t *max, size_t v)
{
    if (v > *max) *max = v;
}

/* Returns what the deepest chain of calls needs, this function included. `steps` bounds the walk: a
 * call graph that needs more counts as recursive. */
static StackNeed stack_need(const Function *f, int depth, int *steps)
{
    StackNeed deepest = {0};
    if (depth > 64 || --*steps < 0) return (StackNeed){.recursive = 1};
    for (int i = 0; i < f->n_callees; i++) {
        StackNeed n = stack_need(f->callees[i], depth + 1, steps);
        raise_size(&deepest.rows32, n.rows32);
        raise_size(&deepest.rows64, n.rows64);
        raise_size(&deepest.preds, n.preds);
        raise_size(&deepest.local, n.local);
        deepest.recursive |= n.recursive;
        if (n.recursive) break;
    }
    deepest.rows32 += f->rows32;
    deepest.rows64 += f->rows64;
    deepest.preds += f->preds;
    deepest.local += (f->local_bytes + 15) & ~(size_t)15;
    return deepest;
}

static size_t align_page(size_t n)
{
    return (n + 4095) & ~(size_t)4095;
}

/* Returns 1 when the registers are zeros, since their memory is new; -1: there is not enough. */
static int reserve_registers(Exec *x, int n_warps, const StackNeed *need)
{
    size_t b32 = align_page(need->rows32 * ROW32), b64 = align_page(need->rows64 * ROW64),
           bp = align_page(need->preds * 4);
    size_t local = align_page(need->local * LANES), init = align_page(need->local * LANES / 4);
    size_t each = b32 + b64 + bp + local + init, bytes = each * (size_t)n_warps;
    const int is_new = bytes > x->register_file_bytes;
    if (is_new) {
        if (x->register_file) munmap(x->register_file, x->register_file_bytes);
        x->register_file = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        x->register_file_bytes = bytes;
        if (x->register_file == MAP_FAILED) {
            x->register_file = NULL;
            x->register_file_bytes = 0;
            return -1;
        }
    }
    for (int i = 0; i < n_warps; i++) {
        Warp *w = &x->warps[i];
        unsigned char *p = x->register_file + each * (size_t)i;
        w->storage32 = p;
        w->end32 = w->storage64 = p + b32;
        w->end64 = w->storage64 + b64;
        w->preds = (uint32_t *)(void *)w->end64;
        w->local = w->end64 + bp;
        w->preds_end = (uint32_t *)(void *)w->local;
        w->local_init = w->local + local;
    }
    x->local_cap = need->local;
    return is_new;
}

/* Chooses what each block clears. A register needs zeros only when a lane may read it before it sets
 * it, which the decoder has found (decode/definedness.c): no result depends on a register of a lane
 * that is not active. What arithmetic costs does, by denormal numbers, so the registers are zeros
 * when a launch begins: it does not depend on other launches. Those that the decoder added are always
 * set first. A callee's frame starts at a place that differs per call, so with calls everything is
 * zeroed, and all local memory counts as unwritten. The charge is for all registers, so that a limit
 * does not depend on this. */
static void choose_cleared(Exec *x, int n_warps, const StackNeed *need, int are_zeros)
{
    const PtxFunction *p = x->entry->ptx;
    int calls = x->entry->n_callees > 0;
    size_t rows32 = (calls ? need->rows32 : p->n_regs[REG_32]) * ROW32,
           rows64 = (calls ? need->rows64 : p->n_regs[REG_64]) * ROW64;
    x->clear32 = calls ? rows32 : 0;
    x->clear64 = calls ? rows64 : 0;
    for (int i = 0; i < n_warps && !calls && !are_zeros; i++) {
        memset(x->warps[i].storage32, 0, rows32);
        memset(x->warps[i].storage64, 0, rows64);
    }
    x->clear_preds = (calls ? need->preds : p->n_regs[REG_PRED] + 1) * 4;
    x->clear_local = ((calls ? need->local : x->entry->local_bytes) + 3) / 4 * LANES;
    /* The simulator's own work for a block is charged to the budget, at 64 bytes of cleared memory
     * per thread-instruction, so that a grid of two thousand million empty blocks ends. */
    size_t cleared = rows32 + rows64 + x->clear_preds + x->clear_local;
    x->block_cost = BLOCK_COST + n_warps * (int64_t)(LANES + cleared / 64);
}

static void reserve_shared(Exec *x, uint32_t bytes)
{
    Cta *c = &x->cta;
    if (bytes > x->shared_cap || !x->shared_store) {
        size_t words = (bytes + 3) / 4 + 1;
        free(x->shared_store);
        x->shared_store = memory_alloc(words * 4 + words * 13 + 64);
        x->shared_cap = bytes;
        c->shared = x->shared_store;
        c->shared_writer = (uint32_t *)(void *)(c->shared + ((words * 4 + 15) & ~(size_t)15));
        c->shared_reader = c->shared_writer + words;
        c->shared_cleared = c->shared_reader + words;
        c->shared_bytes = (unsigned char *)(c->shared_cleared + words);
        c->epoch = 0;
    }
    c->shared_size = bytes;
}

static void prepare_warps(Exec *x, int n_warps)
{
    if (n_warps > x->cap_warps) {
        free(x->warps);
        x->warps = memory_array((size_t)n_warps, sizeof(Warp));
        x->cap_warps = n_warps;
    }
    memset(x->warps, 0, sizeof(Warp) * (size_t)n_warps);
}

static void set_up_warp(Exec *x, int index)
{
    Warp *w = &x->warps[index];
    uint32_t threads = x->block[0] * x->block[1] * x->block[2];
    w->x = x;
    w->index = index;
    w->bank32[1] = x->code->pool32;
    w->bank64[1] = x->code->pool64;
    for (uint32_t i = 0; i < LANES; i++) {
        uint32_t t = (uint32_t)index * LANES + i;
        if (t < threads) w->lanes |= 1u << i;
        w->tid[0][i] = t % x->block[0];
        w->tid[1][i] = t / x->block[0] % x->block[1];
        w->tid[2][i] = t / x->block[0] / x->block[1];
    }
    w->entry_frame =
        (Frame){.fn = x->entry, .rows32 = w->storage32, .rows64 = w->storage64, .preds = w->preds};
}

/* ---- blocks ---- */

/* Zeros in the registers that may be read before they are set. */
static void clear_unset(const Exec *x, Warp *w)
{
    const Function *f = x->entry;
    for (int i = 0; i < f->n_undefined && !x->clear32; i++) {
        uint32_t reg = f->unset[i].reg;
        if (f->unset[i].cls == REG_32) memset(w->storage32 + (size_t)reg * ROW32, 0, ROW32);
        if (f->unset[i].cls == REG_64) memset(w->storage64 + (size_t)reg * ROW64, 0, ROW64);
    }
}

static void start_block(Exec *x, uint64_t linear)
{
    Cta *c = &x->cta;
    c->linear = linear;
    c->id[0] = (uint32_t)(linear % x->grid[0]);
    c->id[1] = (uint32_t)(linear / x->grid[0] % x->grid[1]);
    c->id[2] = (uint32_t)(linear / x->grid[0] / x->grid[1]);
    if (c->epoch >= SHARED_EPOCH_MAX) shared_renew_epochs(x);
    c->floor = ++c->epoch << 10;
    c->epoch++;
    if (x->code->uses_reserved) shared_clear(c, c->reserved_at, RESERVED_SHARED);
    c->phase = 0;
    c->tag = devmem_take_tag(x->mem, (uint32_t)linear);
    c->fenced_tag = c->tag;
    c->touched = c->stored = c->acquired = 0;
    c->passed = 0;
    busy_start_block(x);
    path_start_block(x);
    traffic_start_block(x);
    order_start_block(x);
    waits_start_block(x);
    proxy_start_block(x);
    landed_start_block(x);
    async_start_block(x);
    bulk_start_block(x);
    wgmma_start_block(x);
    undefined_clear(x);
    doubts_start_block(x);
    c->live_threads = x->block[0] * x->block[1] * x->block[2];
    x->budget -= x->block_cost;
    c->alone_since = x->budget;
    int bounded = x->block_budget && !x->cluster && !x->cooperative && x->budget > x->block_budget;
    x->block_floor = bounded ? x->budget - x->block_budget : 0;
    memset(c->barriers, 0, sizeof c->barriers);
    for (int i = 0; i < c->n_warps; i++) {
        Warp *w = &x->warps[i];
        w->n_unwritten = 0;
        memset(w->local_init, 0, x->clear_local);
        memset(w->storage32, 0, x->clear32);
        memset(w->storage64, 0, x->clear64);
        clear_unset(x, w);
        memset(w->preds, 0, x->clear_preds);
        warp_start(w);
    }
}

static void raise_to(uint64_t *max, uint64_t v)
{
    if (v > *max) *max = v;
}

/* Estimates the block barriers that a busy warp waited at. Warps that exit early wait at none, and
 * warps with named barriers at some of them. */
static uint64_t barriers_of_warp(const Exec *x, uint64_t arrivals, uint64_t completed,
                                 uint64_t insts_max)
{
    uint64_t busy = 0;
    for (int i = 0; i < x->cta.n_warps; i++) busy += x->warps[i].insts * 2 > insts_max;
    uint64_t each = busy ? (arrivals + busy - 1) / busy : 0;
    return each < completed ? each : completed;
}

/* Adds what the warps took of each pipe, and what schedulers did one after another: those of the block that
 * wait for one another, as far as no other blocks are among them. */
static void count_schedulers(Exec *x, const WarpPath *path)
{
    SimCounts *n = &x->counts;
    const int alone = !x->cooperative && !x->cluster;
    for (int p = 0; p < PIPE_COUNT; p++) {
        uint64_t most = alone ? path->part[PATH_PIPES + p] : 0;
        for (int i = 0; i < SCHEDULERS; i++) {
            n->scheduled[p] += x->cta.pipes[i][p];
            raise_to(&most, x->cta.pipes[i][p]);
        }
        n->busiest[p] += SCHEDULERS * most;
    }
    raise_to(&n->busy_path_max, busy_path_cycles(x, path));
}

/* Adds the path of the block, which is as long as the longest of its warps' in each part. */
static void count_path(SimCounts *n, const WarpPath *path, uint64_t far, uint64_t warps)
{
    uint64_t waits = path->part[PATH_GLOBAL];
    if (!waits && n->async_copies) waits = 1; /* a block waits for its first copies */
    n->leader_dram_waits += path->part[PATH_DRAM] * warps;
    n->leader_far_waits += far * warps;
    n->block_global_waits += waits;
    n->block_local_waits += path->part[PATH_LOCAL];
    n->block_chain_cycles += path->part[PATH_CHAIN];
    n->block_insts += path->part[PATH_INSTS];
    raise_to(&n->global_waits_max, waits);
    raise_to(&n->local_waits_max, path->part[PATH_LOCAL]);
    raise_to(&n->chain_cycles_max, path->part[PATH_CHAIN]);
    raise_to(&n->warp_insts_max, path->part[PATH_INSTS]);
}

/* What a block has of an SM: its warp-instructions, and cycles of the memory. */
enum { LOAD_INSTS, LOAD_MEMORY, LOADS };
typedef struct {
    uint64_t of[LOADS];
} BlockLoad;

/* Adds the block's counters. */
static BlockLoad finish_block(Exec *x, uint64_t arrivals, uint64_t completed)
{
    SimCounts *n = &x->counts;
    uint64_t sum = 0, insts = 0, far = 0;
    WarpPath longest = {0};
    for (int i = 0; i < x->cta.n_warps; i++) {
        Warp *w = &x->warps[i];
        traffic_settle_waits(w, 0);
        const WarpPath path = path_of(w);
        path_raise(&longest, &path);
        raise_to(&far, path.part[PATH_DRAM] + path.part[PATH_L2]);
        n->global_waits += w->global_waits;
        n->local_waits += w->local_waits;
        n->chain_cycles += w->chain;
        sum += w->insts;
        raise_to(&insts, w->insts);
    }
    count_schedulers(x, &longest);
    count_path(n, &longest, far, (uint64_t)x->cta.n_warps);
    uint64_t barriers = barriers_of_warp(x, arrivals, completed, insts);
    n->block_barriers += barriers;
    raise_to(&n->block_barriers_max, barriers);
    const BlockLoad load = {{sum, (uint64_t)busy_memory_cycles(x)}};
    n->memory_cycles += load.of[LOAD_MEMORY];
    raise_to(&n->heaviest_insts, load.of[LOAD_INSTS]);
    raise_to(&n->heaviest_memory, load.of[LOAD_MEMORY]);
    raise_to(&n->delay_max, waits_end_block(x));
    return load;
}

/* Lets each warp of the block run once. Returns 0 when none can. */
static int run_warps(Exec *x)
{
    int progress = 0;
    for (int i = 0; i < x->cta.n_warps && !x->faulted; i++) {
        Warp *w = &x->warps[x->reversed ? x->cta.n_warps - 1 - i : i];
        if (w->n_splits) progress |= warp_run(w);
    }
    if (x->cta.epoch >= SHARED_EPOCH_MAX) shared_renew_epochs(x);
    return progress;
}

static BlockLoad run_block(Exec *x, uint64_t linear)
{
    SimCounts *n = &x->counts;
    uint64_t arrivals = n->warp_barriers, completed = n->barriers;
    start_block(x, linear);
    while (x->cta.live_threads && !x->faulted)
        if (!run_warps(x) && !x->faulted) barrier_deadlock(x);
    bulk_end_block(x);
    wgmma_end_block(x);
    exec_raise_pending(x);
    return finish_block(x, n->warp_barriers - arrivals, n->barriers - completed);
}

/* The blocks of a cluster take turns. loads: of each. */
static void run_cluster(Exec *x, uint64_t index, BlockLoad *loads)
{
    Cluster *k = x->cluster;
    for (int r = 0; r < k->n; r++) {
        cluster_select(x, r);
        start_block(x, cluster_block(x, index, r));
    }
    cluster_start(x);
    while (k->live && !x->faulted) {
        int progress = 0;
        for (int i = 0; i < k->n && !x->faulted; i++) {
            int r = x->reversed ? k->n - 1 - i : i;
            uint64_t arrivals = x->counts.warp_barriers;
            cluster_select(x, r);
            for (int t = 0; t < TURNS && x->cta.live_threads && run_warps(x); t++) progress = 1;
            k->blocks[r].arrivals += x->counts.warp_barriers - arrivals;
        }
        if (!progress && !x->faulted) barrier_deadlock(x);
    }
    x->keeps_pending = 0;
    for (int r = 0; r < k->n; r++) {
        cluster_select(x, r);
        bulk_end_block(x);
        wgmma_end_block(x);
        exec_raise_pending(x);
        loads[r] = finish_block(x, k->blocks[r].arrivals, x->cta.phase);
    }
}

/* A histogram of the blocks by each part of their loads, in 32 steps per octave. */
enum { WEIGHT_STEPS = 32, WEIGHTS = 64 * WEIGHT_STEPS };
typedef struct {
    uint64_t n[LOADS][WEIGHTS];
} Weights;

static int weight_of(uint64_t load)
{
    if (load < WEIGHT_STEPS) return (int)load;
    int octave = 63 - __builtin_clzll(load) - 5;
    return (octave + 1) * WEIGHT_STEPS + (int)(load >> octave) - WEIGHT_STEPS;
}

static void weigh(Weights *w, const BlockLoad *load)
{
    for (int k = 0; k < LOADS; k++) w->n[k][weight_of(load->of[k])]++;
}

/* The least load of a weight. */
static uint64_t least_of_weight(int weight)
{
    if (weight < 2 * WEIGHT_STEPS) return (uint64_t)weight;
    return (uint64_t)(weight % WEIGHT_STEPS + WEIGHT_STEPS) << (weight / WEIGHT_STEPS - 1);
}

/* Does a warp of the block do more than wait? */
static int is_busy(const Exec *x)
{
    for (int i = 0; i < x->cta.n_warps; i++)
        if (x->warps[i].n_splits && !x->warps[i].idle) return 1;
    return 0;
}

/* Gives the current block a turn. Returns 1 when it did more than wait. */
static int take_turn(Exec *x)
{
    uint64_t arrivals = x->counts.warp_barriers;
    int busy = 0;
    for (int t = 0; t < TURNS && x->cta.live_threads && !x->faulted; t++) {
        if (!run_warps(x) && !x->faulted) barrier_deadlock(x);
        int now = !x->cta.live_threads || is_busy(x);
        busy |= now;
        if (!now) break;
    }
    x->cooperative->arrivals[x->cooperative->current] += x->counts.warp_barriers - arrivals;
    return busy;
}

/* weights: takes the blocks. */
static void run_together(Exec *x, Weights *weights)
{
    Cooperative *c = x->cooperative;
    uint64_t live = c->n;
    for (uint64_t b = 0; b < c->n; b++) {
        cooperative_select(x, b);
        start_block(x, b);
    }
    while (live && !x->faulted) {
        int busy = 0;
        live = 0;
        for (uint64_t i = 0; i < c->n && !x->faulted; i++) {
            cooperative_select(x, x->reversed ? c->n - 1 - i : i);
            if (!x->cta.live_threads) continue;
            busy |= take_turn(x);
            cooperative_go_on(x);
            live += x->cta.live_threads > 0;
        }
        cooperative_round(x, busy);
    }
    cooperative_end(x);
    for (uint64_t b = 0; b < c->n; b++) {
        cooperative_select(x, b);
        bulk_end_block(x);
        wgmma_end_block(x);
        exec_raise_pending(x);
        const BlockLoad load = finish_block(x, c->arrivals[b], x->cta.phase);
        weigh(weights, &load);
    }
}

/* The blocks with nearly the load of the heaviest, by one part: how many, and the least load of them. */
static uint64_t heavy_blocks(const uint64_t *weights, uint64_t heaviest, uint64_t *least)
{
    int top = weight_of(heaviest), next = top ? top - 1 : 0;
    *least = least_of_weight(next);
    return weights[top] + (next < top ? weights[next] : 0);
}

static void run_blocks(Exec *x)
{
    SimCounts *n = &x->counts;
    Weights *weights = memory_alloc(sizeof *weights);
    BlockLoad each[CLUSTER_MAX];
    uint64_t of = x->cluster ? (uint64_t)x->cluster->n : 1, all = x->n_blocks / of;
    if (x->cooperative) run_together(x, weights);
    for (uint64_t i = 0; i < all && !x->faulted && !x->cooperative; i++) {
        uint64_t b = x->reversed ? all - 1 - i : i;
        if (x->cluster)
            run_cluster(x, b, each);
        else
            each[0] = run_block(x, b);
        for (uint64_t k = 0; k < of; k++) weigh(weights, &each[k]);
    }
    n->heavy_blocks = heavy_blocks(weights->n[LOAD_INSTS], n->heaviest_insts, &n->heavy_insts);
    n->heavy_memory_blocks =
        heavy_blocks(weights->n[LOAD_MEMORY], n->heaviest_memory, &n->heavy_memory);
    free(weights);
}

/* ---- counters ---- */

static void clear_blocks(const Code *code)
{
    for (int i = 0; i < code->ptx.n_functions; i++)
        for (int k = 0; k < code->functions[i].n_blocks; k++)
            code->functions[i].blocks[k].passes = code->functions[i].blocks[k].lanes = 0;
}

/* Clears what is counted over all blocks of a launch, for its costs by line. */
static void clear_lines(const Code *code)
{
    for (int i = 0; i < code->ptx.n_functions; i++) {
        Function *f = &code->functions[i];
        for (int k = 0; k < f->n_blocks; k++) f->blocks[k].all_passes = 0;
        if (f->traffic) memset(f->traffic, 0, ((size_t)f->ptx->n_insts + 1) * sizeof *f->traffic);
    }
}

static void sum_blocks(Exec *x)
{
    SimCounts *n = &x->counts;
    for (int i = 0; i < x->code->ptx.n_functions; i++)
        for (int k = 0; k < x->code->functions[i].n_blocks; k++) {
            CodeBlock *b = &x->code->functions[i].blocks[k];
            b->all_passes += b->passes;
            n->warp_insts += b->passes * b->n_insts;
            n->thread_insts += b->lanes * b->n_insts;
            n->fp32_flops += b->lanes * b->fp32_flops;
            n->fp16_flops += b->lanes * b->fp16_flops;
            n->fp64_flops += b->lanes * b->fp64_flops;
            n->folded_slots += b->passes * b->folded;
            n->expansion_slots += b->passes * b->expansion;
            n->tensor_flops += b->passes * b->tensor_flops;
            n->mma_slots += b->passes * b->mma_slots;
            n->wgmma_slots += b->passes * b->wgmma_slots;
            for (int c = 0; c < INST_CLASS_COUNT; c++) {
                n->by_class[c] += b->passes * b->by_class[c];
                n->threads_by_class[c] += b->lanes * b->by_class[c];
            }
        }
}

static int check_cluster(Exec *x)
{
    const uint32_t *grid = x->launch->grid, *of = x->entry->ptx->cluster;
    uint64_t n = 1;
    char what[200];
    for (int i = 0; i < 3; i++) n *= of[i] ? of[i] : 1;
    for (int i = 0; i < 3; i++)
        if (of[i] && grid[i] % of[i]) {
            snprintf(what, sizeof what,
                     "cannot be launched with a grid of (%u,%u,%u), which is no multiple of its "
                     "clusters of (%u,%u,%u)",
                     grid[0], grid[1], grid[2], of[0], of[1], of[2]);
            return launch_fault(x, OUTCOME_LAUNCH_ERROR, 0, what);
        }
    if (n > 1 && !x->has_clusters)
        return launch_fault(x, OUTCOME_LAUNCH_ERROR, 0,
                            "cannot be launched with clusters of blocks, which this GPU does not "
                            "have: they need sm_90");
    if (n > 1 && x->launch->cooperative)
        return launch_fault(x, OUTCOME_UNSUPPORTED, 0,
                            "a cooperative launch of clusters is not simulated");
    if (n <= CLUSTER_MAX) return 0;
    snprintf(what, sizeof what,
             "cannot be launched with clusters of %llu blocks: at most %d are "
             "allowed",
             (unsigned long long)n, CLUSTER_MAX);
    return launch_fault(x, OUTCOME_LAUNCH_ERROR, 0, what);
}

static int check_launch(Exec *x)
{
    const DeviceLaunch *l = x->launch;
    const Function *f = x->entry;
    char what[200];
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    if (f->unsupported)
        return launch_fault(x, OUTCOME_UNSUPPORTED, f->unsupported_line, f->unsupported);
    uint32_t limit = f->ptx->max_threads && f->ptx->max_threads < BLOCK_THREADS
                         ? f->ptx->max_threads
                         : BLOCK_THREADS;
    if (!threads || l->block[0] > BLOCK_THREADS || l->block[1] > BLOCK_THREADS ||
        l->block[2] > 64 || threads > limit) {
        snprintf(what, sizeof what,
                 "cannot be launched with blocks of (%u,%u,%u): 1 to %u threads are allowed",
                 l->block[0], l->block[1], l->block[2], limit);
        return launch_fault(x, OUTCOME_LAUNCH_ERROR, 0, what);
    }
    if (!l->grid[0] || !l->grid[1] || !l->grid[2] || l->grid[0] > INT32_MAX || l->grid[1] > 65535 ||
        l->grid[2] > 65535) {
        snprintf(what, sizeof what, "cannot be launched with a grid of (%u,%u,%u)", l->grid[0],
                 l->grid[1], l->grid[2]);
        return launch_fault(x, OUTCOME_LAUNCH_ERROR, 0, what);
    }
    return check_cluster(x);
}

/* The memory of one block. Returns 1 with a fault. */
static int set_up_block(Exec *x, const StackNeed *need)
{
    int n_warps = (int)((x->block[0] * x->block[1] * x->block[2] + LANES - 1) / LANES);
    uint32_t dynamic = x->launch->shared_bytes;
    prepare_warps(x, n_warps);
    const int are_zeros = reserve_registers(x, n_warps, need);
    if (are_zeros < 0)
        return launch_fault(x, OUTCOME_LAUNCH_ERROR, 0,
                            "needs more registers and local memory than the simulator can reserve");
    for (int i = 0; i < n_warps; i++) set_up_warp(x, i);
    choose_cleared(x, n_warps, need, are_zeros);
    x->cta.n_warps = n_warps;
    x->cta.static_shared = x->entry->static_shared;
    uint32_t dynamic_at = x->entry->dynamic_at ? x->entry->dynamic_at : x->entry->static_shared;
    x->cta.reserved_at = (dynamic_at + dynamic + 15) & ~15u;
    reserve_shared(x, x->code->uses_reserved ? x->cta.reserved_at + RESERVED_SHARED
                                             : dynamic_at + dynamic);
    return 0;
}

static int set_up(Exec *x)
{
    const DeviceLaunch *l = x->launch;
    int steps = 10000;
    StackNeed need = stack_need(x->entry, 0, &steps);
    if (need.recursive) {
        need.rows32 = need.rows64 = need.preds = need.local = 0;
        for (int i = 0; i < x->code->ptx.n_functions; i++) {
            const Function *f = &x->code->functions[i];
            raise_size(&need.rows32, f->rows32);
            raise_size(&need.rows64, f->rows64);
            raise_size(&need.preds, f->preds);
            raise_size(&need.local, (f->local_bytes + 15) & ~(size_t)15);
        }
        need.rows32 *= RECURSION_FRAMES;
        need.rows64 *= RECURSION_FRAMES;
        need.preds *= RECURSION_FRAMES;
        need.local *= 64;
        raise_size(&need.local, (x->entry->local_bytes + 15) & ~(size_t)15);
    }
    if (need.local > LOCAL_MAX && x->entry->local_bytes > LOCAL_MAX)
        return launch_fault(x, OUTCOME_LAUNCH_ERROR, 0,
                            "uses more than 512 KiB of local memory a thread");
    if (need.local > LOCAL_MAX) need.local = LOCAL_MAX;
    memcpy(x->grid, l->grid, sizeof x->grid);
    memcpy(x->block, l->block, sizeof x->block);
    x->n_blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    x->free_frames = NULL; /* a fault may have left frames in use */
    for (Frame *f = x->all_frames; f; f = f->next) {
        f->parent = x->free_frames;
        x->free_frames = f;
    }
    cluster_prepare(x, x->entry->ptx->cluster);
    if (l->cooperative) cooperative_prepare(x);
    for (uint64_t b = l->cooperative ? x->n_blocks - 1 : 0; b > 0; b--) {
        cooperative_select(x, b);
        if (set_up_block(x, &need)) return 1;
    }
    if (l->cooperative) cooperative_select(x, 0);
    for (int r = x->cluster ? x->cluster->n - 1 : 0; r >= 0; r--) {
        if (x->cluster) cluster_select(x, r);
        if (set_up_block(x, &need)) return 1;
    }
    return 0;
}

/* Returns 1 with a fault. */
static int begin_launch(Exec *x, const DeviceLaunch *launch)
{
    SimCounts *n = &x->counts;
    cluster_unload(x);
    x->launch = launch;
    x->faulted = x->has_pending = 0;
    memset(n, 0, sizeof *n);
    if (check_launch(x) || set_up(x)) return 1;
    device_kernel_name(launch->kernel, n->kernel, sizeof n->kernel);
    memcpy(n->grid, x->grid, sizeof n->grid);
    memcpy(n->block, x->block, sizeof n->block);
    n->static_shared = x->entry->static_shared;
    n->dynamic_shared = launch->shared_bytes;
    n->local_bytes = (uint32_t)x->local_cap;
    n->blocks = x->n_blocks;
    n->warps = x->n_blocks * (uint64_t)x->cta.n_warps;
    clear_blocks(x->code);
    clear_lines(x->code);
    exec_charge(x, x->code->launch_cost);
    devmem_launch(x->mem);
    order_start_launch(x);
    waits_start_launch(x);
    x->closing = 0;
    return 0;
}

int exec_launch(Exec *x, const DeviceLaunch *launch)
{
    if (!begin_launch(x, launch)) {
        run_blocks(x);
        sum_blocks(x);
        x->counts.path_cycles = x->counts.delay_max;
    }
    cooperative_release(x);
    return x->faulted;
}

int exec_launch_some(Exec *x, const DeviceLaunch *launch, ExecNext *next, void *of)
{
    uint64_t block;
    if (begin_launch(x, launch)) return 1;
    SimCounts none = x->counts;
    x->sampled = 1;
    for (const SimCounts *done = NULL; !x->faulted && next(of, done, &block); done = &x->counts) {
        x->counts = none;
        exec_charge(x, x->code->launch_cost);
        clear_blocks(x->code);
        devmem_forget_traffic(x->mem);
        BlockLoad loads[CLUSTER_MAX];
        if (x->cluster)
            run_cluster(x, block, loads);
        else
            run_block(x, block);
        sum_blocks(x);
    }
    x->sampled = x->closing = 0;
    return x->faulted;
}

void exec_release(Exec *x)
{
    cluster_release(x);
    block_release(x);
    order_release(x);
    waits_release(x);
    access_release(x);
    for (Frame *f = x->all_frames, *next; f; f = next) {
        next = f->next;
        free(f);
    }
    memset(x, 0, sizeof *x);
}

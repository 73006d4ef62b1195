/* Everything is computed per average block, from the counters of the whole launch. */
#include "eval/sim/time/time_model.h"

#include <math.h>

enum { SECTOR = 32, LINE_SECTORS = 4, WARP = 32 };

/* What L2 takes for a written sector, in read ones (an H200, 2026-11-29: store_cg, store_l2 and rewrite_l2 of
 * tests/bench/rates take 1.3 to 1.45). */
static const double write_cost = 1.9;

/* The load of an average block on each resource. */
typedef struct {
    const Profile *p;
    double sm_cycles[TIME_RESOURCE_COUNT]; /* cycles of one SM */
    double gpu_s[TIME_RESOURCE_COUNT];     /* seconds of the whole GPU */
    double first_cycles;                   /* until its first loads have arrived */
    int copies; /* asynchronous ones bring what it reads, ahead of its use */
} Model;

static double lanes(double warp_insts, int width)
{
    return warp_insts * WARP / width;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Where integers have lanes of their own, the lanes of their products are as many. */
static int sum_lanes(const Profile *p)
{
    return p->int_shares_fp32 ? p->int_lanes : 2 * p->int_lanes;
}

/* By how much longer the scheduler with the most work takes of each pipe than if all had as much. Warps of
 * other resident blocks fill a part of what one leaves idle: half of the warps on two schedulers take 0.71
 * of the time of all, and a quarter on one 0.49 (an H200, 2026-11-29). Blocks whose warps are no multiple of
 * four begin on other schedulers than the blocks before, but not in turn: of what the first warps of blocks
 * of 3, 5, 7 and 9 warps take beyond even shares a third is left, and of those of 2, 6 and 10 warps three
 * quarters (an H200, 2026-12-01). */
static void unevenness(const SimCounts *c, double resident, double of[PIPE_COUNT])
{
    const uint64_t threads = (uint64_t)c->block[0] * c->block[1] * c->block[2],
                   rest = (threads + WARP - 1) / WARP % SCHEDULERS;
    const double left = !rest || resident < SCHEDULERS ? 1 : rest == 2 ? 3.0 / 4 : 1.0 / 3;
    for (int i = 0; i < PIPE_COUNT; i++) {
        double all = c->scheduled[i] ? (double)c->busiest[i] / (double)c->scheduled[i] : 1,
               uneven = 1 + (all - 1) * left;
        of[i] = resident > 1 ? sqrt(uneven) : uneven;
    }
}

/* uneven: the factors of unevenness. */
static void pipes(const Profile *p, const SimCounts *c, const double *uneven, double *cycles)
{
    const uint64_t *n = c->by_class;
    cycles[TIME_ISSUE] = uneven[PIPE_ISSUE] *
                         (double)(c->warp_insts + c->expansion_slots - c->folded_slots) /
                         SCHEDULERS;
    /* Products of integers take lanes of fp32, and sums take these or those of integers. Where only a part of
     * the lanes of fp32 executes products, the others wait: on an H200 a product beside a sum of floats takes
     * as long as both in turn (2026-11-29: ffma_imad of tests/bench/rates). */
    double alu = (double)n[INST_INT], products = (double)n[INST_INT_MUL],
           ints = alu + products + (double)n[INST_INT_ADD];
    cycles[TIME_FP32] =
        uneven[PIPE_FP32] *
        (lanes((double)n[INST_FP32] + (p->int_shares_fp32 ? ints : 0), p->fp32_lanes) +
         (p->int_shares_fp32 ? 0 : lanes(products, p->int_lanes)));
    cycles[TIME_INT] = larger(uneven[PIPE_INT] * lanes(larger(alu, products), p->int_lanes),
                              uneven[PIPE_SUM] * lanes(ints, sum_lanes(p)));
    cycles[TIME_FP16] = uneven[PIPE_FP16] * lanes((double)n[INST_FP16], p->fp16_lanes);
    cycles[TIME_FP64] = uneven[PIPE_FP64] * lanes((double)n[INST_FP64], p->fp64_lanes);
    cycles[TIME_SFU] = uneven[PIPE_SFU] * lanes((double)n[INST_SFU], p->sfu_lanes);
    cycles[TIME_TENSOR] = uneven[PIPE_TENSOR] *
                          ((double)c->wgmma_slots + (double)c->mma_slots / p->mma_share) /
                          p->tensor_flops;
    cycles[TIME_SHUFFLE] = lanes((double)n[INST_SHUFFLE], p->shuffle_lanes);
    uint64_t lsu = n[INST_GLOBAL_LOAD] + n[INST_GLOBAL_STORE] + n[INST_SHARED_LOAD] +
                   n[INST_SHARED_STORE] + n[INST_LOCAL_LOAD] + n[INST_LOCAL_STORE] + n[INST_ATOMIC];
    cycles[TIME_LSU] = lanes((double)lsu, p->lsu_lanes);
}

/* Sectors read from L2. */
static double l2_reads(const SimCounts *c)
{
    return (double)c->global_load_sectors - (double)c->l1_hit_sectors + (double)c->far_local_loads;
}

static double l2_writes(const SimCounts *c)
{
    return (double)c->global_store_sectors + (double)c->global_atomic_sectors +
           (double)c->far_local_stores;
}

static void memory(const Profile *p, const SimCounts *c, double *cycles, double *gpu)
{
    /* L1 and shared memory share one data array: one wavefront of 128 bytes per cycle. */
    double wavefronts = (double)(c->shared_load_wavefronts + c->shared_store_wavefronts);
    double global = (double)(c->global_load_wavefronts + c->global_store_wavefronts);
    double local = (double)(c->local_load_sectors + c->local_store_sectors) * SECTOR / p->l1_bytes;
    /* Sectors that arrive from L2 are written to the array, too. */
    double fills = l2_reads(c) * SECTOR / p->l1_bytes;
    cycles[TIME_L1] = wavefronts + global + fills + local +
                      (double)(c->const_distinct - c->const_requests) * p->const_cycles;
    cycles[TIME_L2_PORT] =
        l2_reads(c) * SECTOR / p->l2_bytes + (double)c->global_store_lines * p->store_line_cycles +
        (double)c->global_store_sectors * p->store_sector_cycles +
        (double)(c->global_atomic_sectors + c->far_local_stores) * p->single_sector_cycles;
    cycles[TIME_L2_PORT] += (double)c->far_shared_bytes / p->far_bytes +
                            (double)c->filled_bytes / p->fill_bytes +
                            (double)c->again_sectors * p->again_cycles +
                            (double)c->strong_sectors * p->strong_again_cycles +
                            (double)c->stored_sectors * p->stored_again_cycles;
    /* The rest belongs to the whole GPU. */
    double dram = (double)(c->dram_read_sectors + c->dram_write_sectors) * SECTOR;
    double l2 =
        l2_reads(c) + (double)c->lone_sectors * p->lone_sector_cost + write_cost * l2_writes(c);
    gpu[TIME_L2] = l2 * SECTOR / p->l2_bytes_per_s;
    gpu[TIME_DRAM] = dram / (p->dram_bytes_per_s * p->dram_efficiency);
    gpu[TIME_BLOCK_START] = (double)c->blocks * p->block_interval / p->clock_hz;
    cycles[TIME_ATOMIC] = (double)c->shared_atomic_serial * p->shared_atomic_cycles;
    /* A vote takes as long again. */
    cycles[TIME_SYNC] = (double)(c->warp_barriers + c->barrier_votes) * p->arrival_cycles +
                        (double)c->fences * p->fence_cycles +
                        (double)c->block_fences * p->block_fence_cycles +
                        (double)c->remote_arrivals * p->remote_arrival_cycles +
                        (double)c->mbarrier_waits * p->mbarrier_cycles;
    double spread = larger((double)c->global_atomic_serial, (double)c->global_atomic_work / 100) *
                    p->atomic_cycles;
    gpu[TIME_ATOMIC] =
        larger(spread, (double)c->global_atomic_hottest * p->atomic_hot_cycles) / p->clock_hz;
}

/* An ExecRates.memory */
static void sm_memory(const void *profile, const SimCounts *c, double of[BUSY_MEMORY])
{
    double cycles[TIME_RESOURCE_COUNT] = {0}, gpu[TIME_RESOURCE_COUNT];
    memory(profile, c, cycles, gpu);
    of[0] = cycles[TIME_L1], of[1] = cycles[TIME_L2_PORT], of[2] = cycles[TIME_ATOMIC];
}

void timemodel_rates(const Profile *p, ExecRates *rates)
{
    const int width[PIPE_COUNT] = {
        [PIPE_FP32] = p->fp32_lanes, [PIPE_INT] = p->int_lanes,   [PIPE_SUM] = sum_lanes(p),
        [PIPE_FP16] = p->fp16_lanes, [PIPE_FP64] = p->fp64_lanes, [PIPE_SFU] = p->sfu_lanes};
    for (int i = 0; i < PIPE_COUNT; i++)
        rates->pipe[i] = width[i] ? lanes(SCHEDULERS, width[i]) : 1;
    rates->pipe[PIPE_TENSOR] = PIPE_TENSOR_UNIT * SCHEDULERS / p->tensor_flops;
    rates->memory = sm_memory;
    rates->profile = p;
}

static double at_most_one(double v)
{
    return v < 1 ? v : 1;
}

/* The latency of a wait in cycles, by the share of the waits that wait for DRAM and for L2. */
static double load_latency(const Profile *p, const SimCounts *c)
{
    double requests = (double)c->global_load_requests, waits = (double)c->global_waits;
    if (requests <= 0 || waits <= 0) return p->l2_cycles; /* atomics that return a value */
    double from_dram = at_most_one((double)c->leader_dram_waits / waits),
           from_l2 = at_most_one((double)c->leader_far_waits / waits) - from_dram,
           wavefronts = larger(1, (double)c->global_load_wavefronts / requests);
    return from_dram * p->dram_cycles + from_l2 * p->l2_cycles +
           (1 - from_dram - from_l2) * p->l1_cycles + wavefronts - 1;
}

/* Threads a cycle of the pipe that executes a class; 0: of none that holds up a warp. */
static int pipe_lanes(const Profile *p, int inst_class)
{
    switch (inst_class) {
    case INST_FP32: return p->fp32_lanes;
    case INST_INT:
    case INST_INT_MUL: return p->int_lanes;
    case INST_INT_ADD: return sum_lanes(p);
    case INST_FP16: return p->fp16_lanes;
    case INST_FP64: return p->fp64_lanes;
    case INST_SFU: return p->sfu_lanes;
    case INST_SHUFFLE: return p->shuffle_lanes;
    case INST_GLOBAL_LOAD:
    case INST_GLOBAL_STORE:
    case INST_SHARED_LOAD:
    case INST_SHARED_STORE:
    case INST_LOCAL_LOAD:
    case INST_LOCAL_STORE:
    case INST_ATOMIC: return p->lsu_lanes;
    default: return 0;
    }
}

/* Cycles of an average instruction of a warp alone. It issues in order, and each of the schedulers
 * has its part of a pipe: 16 lanes take an instruction every second cycle. */
static double issue_interval(const Profile *p, const SimCounts *c)
{
    double cycles = 0, insts = 0;
    for (int i = 0; i < INST_CLASS_COUNT; i++) {
        int all = pipe_lanes(p, i);
        double each = all ? lanes(SCHEDULERS, all) : 1;
        cycles += (double)c->by_class[i] * larger(1, each);
        insts += (double)c->by_class[i];
    }
    return insts > 0 ? cycles / insts : 1;
}

/* What a warp executes from its begin to its end: cycles of its chain and of the issue of its
 * instructions, and how often it waits. */
typedef struct {
    double chain, issue, loads, local, barriers;
} PathTime;

/* Cycles of a barrier of the launch's blocks. */
static double barrier_latency(const Profile *p, const SimCounts *c)
{
    return p->barrier_cycles + p->barrier_warp_cycles * (double)c->warps / (double)c->blocks;
}

/* Cycles of a wait for local memory: where a part of the loads misses L1, most of these hit L2. */
static double local_latency(const Profile *p, const SimCounts *c)
{
    double far = at_most_one((double)c->far_local_loads / larger(1, (double)c->local_load_sectors));
    return p->l1_cycles + far * (p->l2_cycles - p->l1_cycles);
}

void timemodel_latency(const Profile *p, const SimCounts *c, LatencyParts *out)
{
    double blocks = (double)c->blocks, issue = issue_interval(p, c) * (double)c->block_insts;
    out->chain = larger((double)c->block_chain_cycles, issue) / blocks;
    out->loads = ((double)c->block_global_waits * load_latency(p, c) +
                  (double)c->block_local_waits * local_latency(p, c) + (double)c->spill_cycles) /
                 blocks;
    out->barriers = (double)c->block_barriers / blocks * barrier_latency(p, c);
}

static double path_latency(const Profile *p, const SimCounts *c, PathTime w)
{
    return (double)c->spill_cycles / (double)c->blocks +
           (larger(w.chain, w.issue) + w.loads * load_latency(p, c) +
            w.local * local_latency(p, c) + w.barriers * barrier_latency(p, c));
}

/* Cycles of the average and of the slowest block, each alone on an SM: those of its slowest warp.
 */
static void latencies(const Profile *p, const SimCounts *c, double *average, double *slowest)
{
    double blocks = (double)c->blocks, interval = issue_interval(p, c);
    *average = path_latency(p, c,
                            (PathTime){.chain = (double)c->block_chain_cycles / blocks,
                                       .issue = interval * (double)c->block_insts / blocks,
                                       .loads = (double)c->block_global_waits / blocks,
                                       .local = (double)c->block_local_waits / blocks,
                                       .barriers = (double)c->block_barriers / blocks});
    *slowest = path_latency(p, c,
                            (PathTime){.chain = (double)c->chain_cycles_max,
                                       .issue = interval * (double)c->warp_insts_max,
                                       .loads = (double)c->global_waits_max,
                                       .local = (double)c->local_waits_max,
                                       .barriers = (double)c->block_barriers_max});
}

/* Blocks of a wave: of the busiest SM and of the GPU. first: nothing ran on the SM before them. */
typedef struct {
    double here, all;
    int first;
} Wave;

/* Seconds of a wave. The blocks of the first one start and wait for their first loads together, and share
 * the SM's pipes from then on. Later ones start as others end, and wait behind these. Memory serves one of
 * them before the other, so that their waits hide behind one another, but no block's behind its own loads:
 * where one block fills an SM, a wave takes both (rope with 512 threads of 79 registers on an H200,
 * 2026-12-01: 149 us, 66 of L2 and 80 of waits), unless copies run ahead of what waits (bias and GELU behind
 * 4096^3: 224 us; 290 by the sum, 223 without). And their computing does more than that of
 * blocks that have started together (a third power, by 430 kernels of nine tasks on an H100, 2026-11-30). */
static double wave(const Model *m, Wave w, double block_cycles)
{
    double memory = 0, pipes = 0, here = w.here, all = w.all,
           first = fmin(m->first_cycles, block_cycles) * (w.first ? 1 : at_most_one(2 / here)),
           rest = block_cycles - first, hz = m->p->clock_hz, far = 0;
    for (int i = 0; i < TIME_RESOURCE_COUNT; i++) {
        const double sm = m->sm_cycles[i] * here, gpu = m->gpu_s[i] * all * hz;
        double *busy = i < TIME_L1 || i == TIME_ATOMIC ? &pipes : &memory;
        *busy = larger(*busy, sm);
        memory = larger(memory, gpu);
        if (i == TIME_L2_PORT || i == TIME_L2 || i == TIME_DRAM) far = larger(far, larger(sm, gpu));
    }
    double computing = first + (w.first ? hypot(pipes, rest) : cbrt(pow(pipes, 3) + pow(rest, 3))),
           own = m->copies ? 0 : far / larger(here, 1),
           loading = own + hypot(memory - own, block_cycles);
    return larger(computing, loading) / hz;
}

static const char *const resource_names[] = {
#define X(id, name) [TIME_##id] = name,
    TIME_RESOURCES(X)
#undef X
};

/* Sets t->bound to the longest resource or the latency. */
static void find_bound(LaunchTime *t)
{
    double longest = t->latency_s;
    t->bound = "latency";
    for (int i = 0; i < TIME_RESOURCE_COUNT; i++)
        if (t->resource_s[i] > longest) longest = t->resource_s[i], t->bound = resource_names[i];
}

/* The blocks with the largest loads of one kind, in loads of an average block. */
typedef struct {
    double heaviest, heavy, n; /* heavy: of the n that have nearly the load of the heaviest */
} Heavy;

static Heavy heavy_by(double sum, double blocks, uint64_t most, uint64_t least, uint64_t n)
{
    const double average = sum / blocks;
    if (average <= 0) return (Heavy){0};
    return (Heavy){larger(1, (double)most / average), (double)least / average, (double)n};
}

/* A launch takes at least the time of its heaviest block alone on an SM, and of the share of the n
 * heavy blocks that one SM gets, rounded up. Idle blocks beside them take none of their work. usual, slowest:
 * cycles of a block with little to do but wait. */
static void wait_for_heaviest(const Model *m, Heavy h, double usual, double slowest, LaunchTime *t)
{
    if (h.heaviest <= 0) return;
    double here = ceil(h.n / m->p->sm_count);
    double earlier = larger(0, ceil(here / t->occupancy.blocks_per_sm) - 1) * h.heavy / h.heaviest;
    double alone = wave(m, (Wave){h.heaviest, h.heaviest, 1}, slowest),
           share =
               wave(m, (Wave){here * h.heavy, h.n * h.heavy, earlier <= 0}, (earlier + 1) * usual);
    if (larger(alone, share) <= t->seconds) return;
    t->seconds = larger(alone, share);
    t->bound = "slowest block";
}

/* Of the loads, those of the SM's memory. */
static Model of_memory(const Model *m)
{
    static const int memory_of[] = {TIME_L1, TIME_L2_PORT, TIME_ATOMIC};
    Model own = {.p = m->p, .first_cycles = m->first_cycles, .copies = m->copies};
    for (size_t i = 0; i < sizeof memory_of / sizeof *memory_of; i++)
        own.sm_cycles[memory_of[i]] = m->sm_cycles[memory_of[i]];
    return own;
}

/* Blocks that wait for others take longer. block_cycles: of the slowest one alone, with its waits. */
static void wait_for_blocks(const Model *m, const SimCounts *c, double block_cycles, LaunchTime *t)
{
    double path = (double)c->path_cycles / m->p->clock_hz,
           rest = block_cycles - fmin(m->first_cycles, block_cycles),
           busy = c->busy_path_max ? (block_cycles - rest + hypot((double)c->busy_path_max, rest)) /
                                         m->p->clock_hz
                                   : 0;
    if (busy > t->seconds || path > t->seconds) t->bound = "waits between blocks";
    t->seconds = larger(t->seconds, busy) + path;
}

int timemodel_launch(const Profile *p, const SimCounts *c, LaunchTime *out, Error *err)
{
    *out = (LaunchTime){0};
    if (occupancy_of_counts(p, c, &out->occupancy, err)) return -1;
    if (!c->blocks || !c->warps)
        return error_set(err, ERROR_INVALID, "time model: a launch of at least one block expected");

    Model m = {.p = p, .copies = c->async_copies || c->mbarrier_waits};
    double cycles[TIME_RESOURCE_COUNT] = {0}, gpu[TIME_RESOURCE_COUNT] = {0}, average, slowest,
           uneven[PIPE_COUNT];
    double resident = (double)out->occupancy.blocks_per_sm, blocks = (double)c->blocks,
           sms = (double)p->sm_count;
    unevenness(c, fmin(resident, ceil(blocks / sms)), uneven);
    pipes(p, c, uneven, cycles);
    memory(p, c, cycles, gpu);
    for (int i = 0; i < TIME_RESOURCE_COUNT; i++) {
        m.sm_cycles[i] = cycles[i] / (double)c->blocks;
        m.gpu_s[i] = gpu[i] / (double)c->blocks;
        out->resource_s[i] = larger(cycles[i] / p->sm_count / p->clock_hz, gpu[i]);
    }
    latencies(p, c, &average, &slowest);
    /* A block ends with its slowest warp, and the last wave with its slowest block. */
    double start = p->block_cycles + p->block_warp_cycles * out->occupancy.warps_per_block;
    double usual = start + average, last = start + slowest;
    m.first_cycles =
        start + fmin(1, (double)c->block_global_waits / (double)c->blocks) * load_latency(p, c);

    double full = floor(blocks / (resident * sms)), rest = blocks - full * resident * sms;
    out->waves = blocks / (resident * sms);
    if (!rest) full--, rest = resident * sms;
    out->latency_s = (full * usual + last) / p->clock_hz;
    out->seconds = wave(&m, (Wave){ceil(rest / sms), rest, full < 1}, last);
    if (full >= 1)
        out->seconds += wave(&m, (Wave){resident, resident * sms, 1}, usual) +
                        (full - 1) * wave(&m, (Wave){resident, resident * sms, 0}, usual);
    find_bound(out);
    const Model own = of_memory(&m);
    wait_for_heaviest(
        &m,
        heavy_by((double)c->warp_insts, blocks, c->heaviest_insts, c->heavy_insts, c->heavy_blocks),
        last, last, out);
    wait_for_heaviest(&own,
                      heavy_by((double)c->memory_cycles, blocks, c->heaviest_memory,
                               c->heavy_memory, c->heavy_memory_blocks),
                      usual, last, out);
    wait_for_blocks(&m, c, last, out);
    return 0;
}

double timemodel_sequence(const Profile *p, const LaunchTime *times, int n)
{
    double sum = n > 0 ? p->launch_s + (n - 1) * p->gap_s : 0;
    for (int i = 0; i < n; i++) sum += times[i].seconds;
    return sum;
}

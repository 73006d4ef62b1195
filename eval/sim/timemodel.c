#include "eval/sim/timemodel.h"

#include <math.h>

enum { SECTOR = 32, SCHEDULERS = 4, WARP = 32 };

/* One launch on one profile, per block: cycles of one SM, or bytes of the slice. */
typedef struct {
    const Profile *p;
    const SimCounts *c;
    int sms;
    double sm_cycles[TIME_RESOURCE_COUNT]; /* of one SM for an average block */
    double slice_s[TIME_RESOURCE_COUNT];   /* of the whole slice for an average block */
    double block_latency;                  /* cycles */
} Model;

static double lanes(uint64_t warp_insts, int width)
{
    return (double)warp_insts * WARP / width;
}

static void pipes(const Profile *p, const SimCounts *c, double *cycles)
{
    const uint64_t *n = c->by_class;
    cycles[TIME_ISSUE] = (double)c->warp_insts / SCHEDULERS;
    cycles[TIME_FP32] = lanes(n[INST_FP32], p->fp32_lanes);
    if (p->int_shares_fp32) cycles[TIME_FP32] += lanes(n[INST_INT], p->fp32_lanes);
    cycles[TIME_INT] = lanes(n[INST_INT], p->int_lanes);
    cycles[TIME_FP16] = lanes(n[INST_FP16], p->fp16_lanes);
    cycles[TIME_FP64] = lanes(n[INST_FP64], p->fp64_lanes);
    cycles[TIME_SFU] = lanes(n[INST_SFU], p->sfu_lanes);
    cycles[TIME_TENSOR] = (double)c->tensor_flops / p->tensor_flops;
    cycles[TIME_SHUFFLE] = lanes(n[INST_SHUFFLE], p->shuffle_lanes);
    uint64_t lsu = n[INST_GLOBAL_LOAD] + n[INST_GLOBAL_STORE] + n[INST_SHARED_LOAD] + n[INST_SHARED_STORE] + n[INST_LOCAL_LOAD] +
                   n[INST_LOCAL_STORE] + n[INST_ATOMIC];
    cycles[TIME_LSU] = lanes(lsu, p->lsu_lanes);
}

/* Sectors that leave the SM, and DRAM's. */
static double l2_sectors(const SimCounts *c)
{
    return (double)(c->global_load_sectors - c->l1_hit_sectors) + (double)c->global_store_sectors + (double)c->global_atomic_sectors;
}

static double dram_sectors(const SimCounts *c)
{
    return (double)c->dram_read_sectors + (double)c->dram_write_sectors;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void memory(Model *m, double *cycles, double *slice)
{
    const Profile *p = m->p;
    const SimCounts *c = m->c;
    double sector_rate = p->l1_bytes / SECTOR;
    /* L1 and shared memory take turns on one data array; a request takes at least one turn. */
    double wavefronts = (double)(c->shared_load_wavefronts + c->shared_store_wavefronts + c->shared_atomic_serial);
    double global = larger((double)(c->global_load_requests + c->global_store_requests),
                           (double)(c->global_load_sectors + c->global_store_sectors) / (sector_rate < p->l1_tags ? sector_rate : p->l1_tags));
    double local = (double)(c->local_load_sectors + c->local_store_sectors) / sector_rate;
    cycles[TIME_L1] = wavefronts + global + local + (double)c->const_distinct;
    cycles[TIME_L2_PORT] = l2_sectors(c) * SECTOR / p->l2_bytes;
    cycles[TIME_BLOCK_START] = (double)c->blocks * p->block_interval;
    double share = (double)m->sms / p->sm_count;
    slice[TIME_L2] = l2_sectors(c) * SECTOR / (p->l2_bytes_per_s * share);
    slice[TIME_DRAM] = dram_sectors(c) * SECTOR / (p->dram_bytes_per_s * p->dram_efficiency * share);
    slice[TIME_ATOMIC] = (double)c->global_atomic_serial * p->atomic_cycles / m->sms / p->clock_hz;
}

/* A load's latency, by where this launch's sectors were found. */
static double load_latency(const Profile *p, const SimCounts *c)
{
    double all = (double)c->global_load_sectors, l1 = (double)c->l1_hit_sectors, l2 = (double)c->l2_load_sectors;
    if (all <= 0) return p->l2_cycles; /* waits without loads: atomics that return a value */
    double dram = larger(all - l1 - l2, 0);
    return (l1 * p->l1_cycles + l2 * p->l2_cycles + dram * p->dram_cycles) / (l1 + l2 + dram);
}

static double warp_latency(const Profile *p, double load, double chain, double insts, double waits, double local, double barriers)
{
    return larger(chain, insts) + waits * load + local * p->l1_cycles + barriers * p->barrier_cycles;
}

/* Cycles of the average warp and of the slowest, each alone on an SM. */
static void latencies(const Profile *p, const SimCounts *c, double *average, double *slowest)
{
    double warps = (double)c->warps, load = load_latency(p, c), barriers = (double)c->warp_barriers / warps;
    *average = warp_latency(p, load, (double)c->chain_cycles / warps, (double)c->warp_insts / warps, (double)c->global_waits / warps,
                            (double)c->local_waits / warps, barriers);
    *slowest = warp_latency(p, load, (double)c->chain_cycles_max, (double)c->warp_insts_max, (double)c->global_waits_max,
                            (double)c->local_waits_max, barriers);
    if (*slowest < *average) *slowest = *average;
}

/* Seconds of a wave: `here` blocks on the busiest SM, `all` on the slice. */
static double wave(const Model *m, double here, double all, int warps_per_block, double *latency)
{
    double busy = 0;
    for (int i = 0; i < TIME_RESOURCE_COUNT; i++) {
        busy = larger(busy, m->sm_cycles[i] * here / m->p->clock_hz);
        busy = larger(busy, m->slice_s[i] * all);
    }
    double alone = m->block_latency / m->p->clock_hz;
    double groups = m->c->barriers ? here : larger(here * warps_per_block / SCHEDULERS, 1);
    *latency += alone;
    return larger(busy, alone) + (busy < alone ? busy : alone) / groups;
}

static const char *const resource_names[] = {
#define X(id, name) [TIME_##id] = name,
    TIME_RESOURCES(X)
#undef X
};

/* The names of what the launch waited for longest. */
static void find_bound(LaunchTime *t, double slowest_s)
{
    double most = t->latency_s;
    t->bound = "latency";
    for (int i = 0; i < TIME_RESOURCE_COUNT; i++)
        if (t->resource_s[i] > most) most = t->resource_s[i], t->bound = resource_names[i];
    if (slowest_s >= t->seconds) t->bound = "slowest warp";
}

int timemodel_launch(const Profile *p, const SimCounts *c, int slice_sms, LaunchTime *out, Error *err)
{
    *out = (LaunchTime){0};
    uint64_t threads = (uint64_t)c->block[0] * c->block[1] * c->block[2];
    if (occupancy_of(p, threads, c->registers, (uint64_t)c->static_shared + c->dynamic_shared, &out->occupancy, err)) return -1;
    if (!c->blocks || !c->warps) return error_set(err, "time model: a launch of at least one block expected");
    if (slice_sms < 1 || slice_sms > p->sm_count)
        return error_set(err, "time model: a slice of 1 to %d SMs expected, found %d", p->sm_count, slice_sms);

    Model m = {.p = p, .c = c, .sms = slice_sms};
    double cycles[TIME_RESOURCE_COUNT] = {0}, slice[TIME_RESOURCE_COUNT] = {0}, average, slowest;
    pipes(p, c, cycles);
    memory(&m, cycles, slice);
    for (int i = 0; i < TIME_RESOURCE_COUNT; i++) {
        m.sm_cycles[i] = cycles[i] / (double)c->blocks;
        m.slice_s[i] = slice[i] / (double)c->blocks;
        out->resource_s[i] = larger(cycles[i] / slice_sms / p->clock_hz, slice[i]);
    }
    latencies(p, c, &average, &slowest);
    /* Warps of a block wait for the slowest of them; blocks of a grid may differ: between the two. */
    m.block_latency = p->block_cycles + (average + slowest) / 2;

    double resident = (double)out->occupancy.blocks_per_sm, blocks = (double)c->blocks, sms = (double)slice_sms;
    double full = floor(blocks / (resident * sms)), rest = blocks - full * resident * sms;
    out->waves = blocks / (resident * sms);
    if (full > 0) {
        double once = 0;
        out->seconds = full * wave(&m, resident, resident * sms, out->occupancy.warps_per_block, &once);
        out->latency_s = full * once;
    }
    if (rest > 0) out->seconds += wave(&m, ceil(rest / sms), rest, out->occupancy.warps_per_block, &out->latency_s);
    double slowest_s = (p->block_cycles + slowest) / p->clock_hz;
    out->seconds = larger(out->seconds, slowest_s);
    find_bound(out, slowest_s);
    return 0;
}

double timemodel_sequence(const Profile *p, const LaunchTime *times, int n)
{
    double sum = n > 0 ? p->launch_s + (n - 1) * p->gap_s : 0;
    for (int i = 0; i < n; i++) sum += times[i].seconds;
    return sum;
}

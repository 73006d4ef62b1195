/* The counters that explain a time, by name, for verdicts, prompts and the report. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/sim/time/time_model.h"

static const double least_shown = 0.25; /* of the kernels' time, for resources that seldom bound */

typedef struct {
    DeviceCounter *list;
    int n;
} List;

static void put(List *l, const char *name, double value)
{
    if (l->n == DEVICE_MAX_COUNTERS) return;
    snprintf(l->list[l->n].name, sizeof l->list[l->n].name, "%s", name);
    l->list[l->n++].value = value;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void sum_counts(SimCounts *s, const SimCounts *c)
{
    uint64_t *sum = (uint64_t *)(void *)((char *)s + COUNTS_FIRST);
    const uint64_t *of = (const uint64_t *)(const void *)((const char *)c + COUNTS_FIRST);
    s->blocks += c->blocks, s->warps += c->warps;
    for (size_t i = 0; i < COUNTS_FIELDS; i++) sum[i] += of[i];
}

static void work(List *l, const SimCounts *s)
{
    put(l, "warp_instructions", (double)s->warp_insts);
    put(l, "thread_instructions", (double)s->thread_insts);
    put(l, "active_lanes", ratio((double)s->thread_insts, (double)s->warp_insts));
    put(l, "divergent_branches", (double)s->divergent_branches);
    put(l, "fp32_flops", (double)s->fp32_flops);
    if (s->fp16_flops) put(l, "fp16_flops", (double)s->fp16_flops);
    if (s->fp64_flops) put(l, "fp64_flops", (double)s->fp64_flops);
    if (s->tensor_flops) put(l, "tensor_flops", (double)s->tensor_flops);
    put(l, "global_load_sectors", (double)s->global_load_sectors);
    put(l, "global_store_sectors", (double)s->global_store_sectors);
    put(l, "sectors_per_load",
        ratio((double)s->global_load_sectors, (double)s->global_load_requests));
    put(l, "sectors_per_store",
        ratio((double)s->global_store_sectors, (double)s->global_store_requests));
    put(l, "sector_bytes_used",
        ratio((double)(s->global_load_bytes + s->global_store_bytes),
              32.0 * (double)(s->global_load_sectors + s->global_store_sectors)));
    put(l, "l1_hit_sectors", (double)s->l1_hit_sectors);
    put(l, "l2_sectors",
        (double)(s->global_load_sectors - s->l1_hit_sectors + s->global_store_sectors +
                 s->global_atomic_sectors));
    put(l, "dram_bytes", 32.0 * (double)(s->dram_read_sectors + s->dram_write_sectors));
    put(l, "shared_wavefronts", (double)(s->shared_load_wavefronts + s->shared_store_wavefronts));
    put(l, "bank_conflicts",
        fmax(0, (double)(s->shared_load_wavefronts + s->shared_store_wavefronts) -
                    (double)s->shared_ideal_wavefronts));
    put(l, "local_sectors", (double)(s->local_load_sectors + s->local_store_sectors));
    put(l, "global_atomics", (double)s->global_atomic_requests);
    put(l, "shared_atomics", (double)s->shared_atomic_requests);
    put(l, "barriers", (double)s->barriers);
    put(l, "waits_per_warp", ratio((double)s->global_waits, (double)s->warps));
}

int timemodel_counters(const Profile *p, const SimCounts *counts, const LaunchTime *times, int n,
                       DeviceCounter out[DEVICE_MAX_COUNTERS])
{
    static const char *const names[] = {
#define X(id, name) [TIME_##id] = "time_" name "_us",
        TIME_RESOURCES(X)
#undef X
    };
    static const TimeResource shown[] = {TIME_ISSUE, TIME_FP32, TIME_INT,  TIME_SFU,   TIME_LSU,
                                         TIME_L1,    TIME_L2,   TIME_DRAM, TIME_ATOMIC};
    static const TimeResource seldom[] = {TIME_TENSOR,  TIME_FP16, TIME_FP64,       TIME_SHUFFLE,
                                          TIME_L2_PORT, TIME_SYNC, TIME_BLOCK_START};
    List l = {out, 0};
    SimCounts sum = {0};
    double kernels = 0, weight = 0, waves = 0, occupancy = 0, latency = 0,
           resource[TIME_RESOURCE_COUNT] = {0};
    int registers = 0;
    for (int i = 0; i < n; i++) {
        sum_counts(&sum, &counts[i]);
        kernels += times[i].seconds;
        weight += times[i].seconds * times[i].occupancy.occupancy;
        waves += times[i].seconds * times[i].waves;
        latency += times[i].latency_s;
        if (counts[i].registers > registers) registers = counts[i].registers;
        for (int r = 0; r < TIME_RESOURCE_COUNT; r++) resource[r] += times[i].resource_s[r];
    }
    occupancy = ratio(weight, kernels);
    put(&l, "launches", n);
    put(&l, "blocks", (double)sum.blocks);
    put(&l, "registers", registers);
    put(&l, "occupancy", occupancy);
    put(&l, "waves", ratio(waves, kernels)); /* of resident blocks; below 1 the grid fills a part */
    work(&l, &sum);
    put(&l, "dram_share", ratio(resource[TIME_DRAM], kernels)); /* of what DRAM can move */
    put(&l, "time_kernels_us", kernels * 1e6);
    put(&l, "time_launch_us", (timemodel_sequence(p, times, n) - kernels) * 1e6);
    put(&l, "time_latency_us", latency * 1e6);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        put(&l, names[shown[i]], resource[shown[i]] * 1e6);
    for (size_t i = 0; i < sizeof seldom / sizeof *seldom; i++)
        if (resource[seldom[i]] > least_shown * kernels)
            put(&l, names[seldom[i]], resource[seldom[i]] * 1e6);
    return l.n;
}

#include "eval/timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { RING_SLOTS = 2, SIDES = 2 }; /* side 0 is the baseline */

typedef struct {
    Loaded *loaded[SIDES];
    Rig rigs[SIDES][RING_SLOTS];
    DeviceLaunch *launches[SIDES];
    int n_slots;
} Bench;

/* Distinct contents in every slot; the two sides of a slot have equal inputs. */
static int open_slot(Bench *b, int slot, Cases *cases, const Workload *w, uint64_t seed, Finding *f, Error *err)
{
    Task *t = b->loaded[1]->task;
    const Case *c = cases_get(cases, t, w, case_seed(seed, t, w, slot), 1.0, err);
    if (!c) return -1;
    for (int side = 0; side < SIDES; side++) {
        if (!b->loaded[side]) continue;
        int rc = rig_open(&b->rigs[side][slot], b->loaded[side], c, f, err);
        if (rc) return rc;
    }
    if (!b->loaded[0] || slot % 2 == 0) return 0;
    /* Two equal buffers differ in speed by their addresses alone: each side has either in turn. */
    rig_exchange(&b->rigs[0][slot], &b->rigs[1][slot]);
    int rc = rig_resolve(&b->rigs[0][slot], f);
    return rc ? rc : rig_resolve(&b->rigs[1][slot], f);
}

static void gather(Bench *b, int side, DeviceSide *out)
{
    int n = b->rigs[side][0].n_launches;
    b->launches[side] = memory_array((size_t)n * (size_t)b->n_slots, sizeof *b->launches[side]);
    for (int s = 0; s < b->n_slots; s++)
        memcpy(b->launches[side] + (size_t)s * (size_t)n, b->rigs[side][s].launches, (size_t)n * sizeof *b->launches[side]);
    *out = (DeviceSide){b->launches[side], n, b->n_slots};
}

static int measure(Bench *b, double budget_s, uint64_t seed, DeviceTiming *out, Finding *f, Error *err)
{
    const Loaded *l = b->loaded[1];
    DeviceSide sides[SIDES];
    DeviceFault fault = {0};
    for (int side = 0; side < SIDES; side++) {
        if (!b->loaded[side]) continue;
        gather(b, side, &sides[side]);
        for (int s = 0; s < b->n_slots; s++)
            if (rig_reset(&b->rigs[side][s], err)) return -1;
    }
    b->loaded[1]->runs++;
    int rc = l->ops->time(l->device, b->loaded[0] ? &sides[0] : NULL, &sides[1], budget_s, seed, out, &fault, err);
    if (rc > 0) finding_fault(f, &fault, b->rigs[1][0].where);
    return rc;
}

static int times_make_sense(const DeviceTiming *t, int paired, Error *err)
{
    if (t->n < 1) return error_set(err, "the device gave no time");
    for (int i = 0; i < t->n; i++)
        if (!(t->candidate_us[i] > 0) || !isfinite(t->candidate_us[i]) ||
            (paired && (!(t->baseline_us[i] > 0) || !isfinite(t->baseline_us[i]))))
            return error_set(err, "the device gave a time that is none: %g us", t->candidate_us[i]);
    return 0;
}

static int look_after(Bench *b, ChecksPassed *passed, Finding *f, Error *err)
{
    for (int s = 0; s < b->n_slots; s++) {
        Rig *r = &b->rigs[1][s];
        int rc = rig_inspect(r, f, err);
        if (!rc) rc = rig_compare(r, f, err);
        if (rc) return rc == 1 ? checks_explain_wrong(r, f, err) : rc;
    }
    checks_pass(passed, "%s: outputs after timing", b->rigs[1][0].where);
    return checks_disturbed(&b->rigs[1][0], passed, f, err);
}

int timing_measure(Loaded *baseline, Loaded *candidate, Cases *cases, const Workload *w, uint64_t seed, double budget_s,
                   DeviceTiming *out, ChecksPassed *passed, Finding *f, Error *err)
{
    Bench b = {.loaded = {baseline, candidate}, .n_slots = baseline ? RING_SLOTS : 1};
    int rc = 0;
    memset(out, 0, sizeof *out);
    for (int s = 0; s < b.n_slots && !rc; s++) rc = open_slot(&b, s, cases, w, seed, f, err);
    if (!rc) rc = measure(&b, budget_s, seed, out, f, err);
    if (!rc) rc = times_make_sense(out, baseline != NULL, err);
    if (!rc) rc = look_after(&b, passed, f, err);
    for (int side = 0; side < SIDES; side++) {
        for (int s = 0; s < b.n_slots; s++) rig_close(&b.rigs[side][s]);
        free(b.launches[side]);
    }
    return rc;
}

int timing_light_us(const Task *t, const Workload *w, const DeviceInfo *d, double *us, Error *err)
{
    double bytes, flops;
    if (task_cost(t, w, &bytes, &flops, err)) return -1;
    double by_bytes = bytes / d->dram_bytes_per_s, by_flops = flops / d->flops_per_s;
    *us = 1e6 * (by_bytes > by_flops ? by_bytes : by_flops);
    return 0;
}

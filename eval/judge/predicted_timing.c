#include "eval/judge/predicted_timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

Pairs timing_pairs(const DeviceTiming *t)
{
    return (Pairs){t->baseline_us, t->candidate_us, t->n};
}

int timing_makes_sense(const DeviceTiming *t, int paired, Error *err)
{
    if (t->n < 1) return error_set(err, ERROR_INVALID, "the device gave no time");
    for (int i = 0; i < t->n; i++)
        if (!(t->candidate_us[i] > 0) || !isfinite(t->candidate_us[i]) ||
            (paired && (!(t->baseline_us[i] > 0) || !isfinite(t->baseline_us[i]))))
            return error_set(err, ERROR_INVALID, "the device gave a time that is none: %g us",
                             t->candidate_us[i]);
    return 0;
}

static int predict(Rig *r, DeviceTiming *out, Finding *f, Error *err)
{
    Loaded *l = r->loaded;
    DeviceFault fault = {0};
    if (rig_reset(r, err)) return -1;
    l->runs++;
    int rc = l->ops->predict(l->device, r->launches, r->n_launches, out, &fault, err);
    if (rc > 0) finding_fault(f, &fault, r->where);
    return rc ? rc : timing_makes_sense(out, 0, err);
}

int timing_predict(Loaded *l, Cases *cases, const Workload *w, uint64_t seed, DeviceTiming *out,
                   ChecksPassed *passed, Finding *f, Error *err)
{
    Rig r = {0};
    memset(out, 0, sizeof *out);
    const Case *c =
        cases_get(cases, l->task, w, VARIANT_DRAWN, case_seed(seed, l->task, w, 0), 1.0, err);
    if (!c) return -1;
    int rc = rig_open(&r, l, c, NULL, f, err);
    if (!rc) rc = predict(&r, out, f, err);
    if (!rc) rc = rig_inspect(&r, f, err);
    if (!rc) rc = rig_compare(&r, f, err);
    if (rc == 1) rc = checks_explain_wrong(&r, f, err);
    if (!rc) checks_pass(passed, "%s: outputs after timing", r.where);
    if (!rc) rc = checks_disturbed(&r, passed, f, err);
    rig_close(&r);
    return rc;
}

/* As the timed run was, whose limit is the whole one. */
static int predict_on(Rig *r, const Case *c, ChecksPassed *passed, Finding *f, Error *err)
{
    DeviceTiming *unused = memory_alloc(sizeof *unused);
    int rc = rig_refill(r, c, 0, err);
    if (!rc) rc = predict(r, unused, f, err);
    if (!rc) rc = rig_inspect(r, f, err);
    if (!rc) rc = rig_compare(r, f, err);
    if (!rc) checks_pass(passed, "%s", r->where);
    free(unused);
    return rc;
}

int timing_unseen(Loaded *l, Cases *cases, const Workload *w, uint64_t seed, ChecksPassed *passed,
                  Finding *f, Error *err)
{
    Rig r = {0};
    const Case *c;
    int rc = checks_unseen(cases, l->task, w, seed, 0, &c, err);
    if (!rc) rc = rig_open(&r, l, c, NULL, f, err);
    for (int i = 0; i < CHECKS_UNSEEN && !rc; i++) {
        rc = checks_unseen(cases, l->task, w, seed, i, &c, err);
        if (!rc && c) rc = predict_on(&r, c, passed, f, err);
    }
    rig_close(&r);
    return rc;
}

/* What of these tensors an L2 may hold. */
static int held_in_l2(const Task *t, const Workload *w, const TaskTensor *x, int n,
                      const DeviceInfo *d, double *bytes, Error *err)
{
    double all = 0;
    for (int i = 0; i < n; i++) {
        size_t elements;
        if (task_elements(t, w, &x[i], &elements, err)) return -1;
        all += (double)(elements * dtype_size(x[i].dtype));
    }
    *bytes = fmin(all, d->l2_bytes);
    return 0;
}

int timing_floor_us(const Task *t, const Workload *w, const DeviceInfo *d, ClockMode mode,
                    double *us, Error *err)
{
    double bytes, flops, out, in = 0;
    if (task_cost(t, w, &bytes, &flops, err) ||
        held_in_l2(t, w, t->outputs, t->n_outputs, d, &out, err) ||
        (mode == CLOCK_WARM && held_in_l2(t, w, t->inputs, t->n_inputs, d, &in, err)))
        return -1;
    bytes -= out + in;
    *us = 1e6 * fmax(bytes / d->dram_bytes_per_s, flops / d->flops_per_s);
    return 0;
}

int timing_light_us(const Task *t, const Workload *w, const DeviceInfo *d, double *us,
                    int *by_flops, Error *err)
{
    double bytes, flops, measured = d->light_flops_per_s[t->outputs[0].dtype];
    if (task_cost(t, w, &bytes, &flops, err)) return -1;
    double bytes_s =
        bytes / (d->light_bytes_per_s > 0 ? d->light_bytes_per_s : d->dram_bytes_per_s);
    double flops_s = flops / (measured > 0 ? measured : d->flops_per_s);
    *us = 1e6 * fmax(bytes_s, flops_s);
    if (by_flops) *by_flops = flops_s > bytes_s;
    return 0;
}

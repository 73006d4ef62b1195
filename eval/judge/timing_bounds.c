/* Bounds by the workload's bytes and flops, as the task's cost expressions give them. */
#include "eval/judge/timing_bounds.h"

#include <math.h>

#include "eval/device/time_limit.h"
#include "tasks/task_graph.h"

Pairs timing_pairs(const DeviceTiming *t)
{
    return (Pairs){t->baseline_us, t->candidate_us, t->n};
}

int timing_makes_sense(const DeviceTiming *t, int paired, Error *err)
{
    if (t->n < 1) return error_set(err, ERROR_DEVICE, "the device gave no time");
    for (int i = 0; i < t->n; i++)
        if (!(t->candidate_us[i] > 0) || !isfinite(t->candidate_us[i]) ||
            (paired && (!(t->baseline_us[i] > 0) || !isfinite(t->baseline_us[i]))))
            return error_set(err, ERROR_DEVICE, "the device gave an invalid time: %g us",
                             t->candidate_us[i]);
    return 0;
}

/* The bytes of n tensors, at most as many as L2 holds. */
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
    if (task_least_cost(t, w, &bytes, &flops, err) ||
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
    double bytes, flops, rounded, measured = d->light_flops_per_s[t->outputs[0].dtype];
    if (task_least_cost(t, w, &bytes, &flops, err)) return -1;
    double bytes_s =
        bytes / (d->light_bytes_per_s > 0 ? d->light_bytes_per_s : d->dram_bytes_per_s);
    if (task_tf32_flops(t, w, &rounded, err)) return -1;
    rounded = fmin(rounded, flops);
    double flops_s =
        (flops - rounded) / (measured > 0 ? measured : d->flops_per_s) +
        rounded / (d->light_tf32_flops_per_s > 0 ? d->light_tf32_flops_per_s : d->flops_per_s);
    *us = 1e6 * fmax(bytes_s, flops_s);
    if (by_flops) *by_flops = flops_s > bytes_s;
    return 0;
}

int timing_within_limit(const DeviceTiming *t, int library, Fault *f)
{
    double s = t->candidate_us[0] * 1e-6, baseline = t->baseline_us[0] * 1e-6,
           limit = time_limit_s(t->baseline_us[0], time_limit_least_s) +
                   (library ? TIME_LIMIT_LIBRARY_S : 0);
    if (s <= limit) return 0;
    return fault_set(
        f, OUTCOME_TIMEOUT, 0,
        "the predicted time of the timed size is %.3g s, the limit %.3g s: %d times the "
        "baseline's %.3g s, at least %.3g s and at most %.3g s%s",
        s, limit, TIME_LIMIT_FACTOR, baseline, time_limit_least_s, time_limit_most_s,
        library ? ", and 10 s for op lines" : "");
}

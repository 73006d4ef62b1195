/* The plan's op lines as launches of the timed workload, without a compiler. */
#include "tune/bound.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/candidate/plan_ops.h"
#include "eval/sim/library/library_time.h"
#include "generate/first.h"

_Static_assert((int)GENERATE_BUFFERS == PLAN_MAX_BUFFERS,
               "the generator writes plans that can be read");

/* A search is of no use below this speedup. unknown: how much longer than by their bytes the plain kernels of
 * eager PyTorch may take. */
static const double least_gain = 1.03, unknown = 2.5;

static int has_word(const char *list, const char *word, size_t len)
{
    while (*list) {
        size_t n = strcspn(list, ",");
        if (n == len && !strncmp(list, word, n)) return 1;
        list += n;
        list += strspn(list, ", ");
    }
    return 0;
}

static void add_word(char *list, size_t size, const char *word, size_t len)
{
    size_t at = strlen(list);
    if (!has_word(list, word, len) && at + len + 3 < size)
        snprintf(list + at, size - at, "%s%.*s", at ? ", " : "", (int)len, word);
}

/* "linear" of "aten.linear.default". */
static const char *short_name(const PlanStep *s, size_t *len)
{
    const char *name = s->op->op->name;
    if (!strncmp(name, "aten.", 5)) name += 5;
    *len = strcspn(name, ".");
    return name;
}

static void add_operator(char list[BOUND_CALLS], const PlanStep *s)
{
    size_t len;
    const char *name = short_name(s, &len);
    add_word(list, BOUND_CALLS, name, len);
}

static void add_line(PlanCost *c, const PlanStep *s)
{
    size_t len;
    const char *name = short_name(s, &len);
    if (!has_word(c->calls, name, len)) add_word(c->lines, sizeof c->lines, name, len);
}

/* ---- a library call ---- */

/* Flops a second at its accuracy, as the profile has them. */
static double peak_flops(const Profile *p, const LibraryShape *s)
{
    double tensor = p->tensor_flops * p->sm_count * p->clock_hz;
    if (s->dtype != DTYPE_F32) return tensor;
    return s->tf32 ? tensor / 2 : 2.0 * p->fp32_lanes * p->sm_count * p->clock_hz;
}

typedef struct {
    double seconds, by_flops, by_bytes; /* its time, and what each peak alone would take */
} CallTime;

static int library_call(const Profile *p, const PlanOps *o, const PlanOpLaunch *l, CallTime *out,
                        Error *err)
{
    static DeviceLaunch call;
    LibraryShape s;
    memset(&call, 0, sizeof call);
    call.kernel = l->kernel;
    call.library_args = l->n_args;
    for (int i = 0; i < l->n_args && i < KERNEL_MAX_PARAMS; i++) {
        const PlanOpArg *a = &o->args[l->first_arg + i];
        memcpy(call.params + (size_t)i * 8, &a->value, 8);
    }
    if (library_shape(&call, &s, err)) return -1;
    LibraryWork w = library_work(&s);
    double bytes = (w.in + w.weights) * (double)dtype_size((Dtype)s.dtype) +
                   w.out * (double)dtype_size((Dtype)s.result);
    *out = (CallTime){fmax(0, library_seconds(p, &s) - p->launch_s), w.flops / peak_flops(p, &s),
                      bytes / p->dram_bytes_per_s};
    return 0;
}

/* ---- a plan ---- */

/* Seconds for the bytes of a launch's tensors, each once. */
static double bytes_time(const Profile *p, const PlanOps *o, const PlanOpLaunch *l)
{
    double bytes = 0;
    for (int i = 0; i < l->n_args; i++) {
        int of = o->args[l->first_arg + i].storage, seen = of < 0;
        for (int k = 0; k < i && !seen; k++) seen = o->args[l->first_arg + k].storage == of;
        if (!seen) bytes += (double)o->storages[of].bytes;
    }
    return bytes / (p->dram_bytes_per_s * p->dram_efficiency);
}

typedef struct {
    double by_flops, by_bytes;
} Peaks;

static int add_op_launches(const Profile *p, const Plan *plan, const PlanOps *o, PlanCost *out,
                           Peaks *peaks, Error *err)
{
    for (int i = 0; i < o->n_launches; i++) {
        const PlanOpLaunch *l = &o->launches[i];
        const PlanStep *s = &plan->steps[l->step];
        CallTime t = {0};
        if (l->library && library_call(p, o, l, &t, err)) return -1;
        double us = 1e6 * (l->library ? t.seconds : bytes_time(p, o, l));
        out->us += us;
        out->launches++;
        out->library += l->library;
        out->library_us += l->library ? us : 0;
        out->line_us += l->library ? 0 : us;
        peaks->by_flops += t.by_flops;
        peaks->by_bytes += t.by_bytes;
        if (s->op && l->library) add_operator(out->calls, s);
    }
    for (int i = 0; i < o->n_launches; i++) /* those of no library call */
        if (plan->steps[o->launches[i].step].op) add_line(out, &plan->steps[o->launches[i].step]);
    return 0;
}

static int plan_launches(const Plan *p)
{
    int n = 0;
    for (int i = 0; i < p->n_steps; i++) n += !p->steps[i].op && p->steps[i].kernel >= 0;
    return n;
}

static int add_plan(const Task *t, const Plan *plan, const Estimate *e, PlanCost *out, int *known,
                    Error *err)
{
    PlanOps o;
    Fault f = {0};
    Peaks peaks = {0};
    if (plan_ops_build(plan, t, task_workload(t, ROLE_TIME), 1, &o, &f)) {
        plan_ops_release(&o);
        return error_set(err, ERROR_INVALID, "%s", f.message);
    }
    int rc = add_op_launches(e->gpu, plan, &o, out, &peaks, err);
    plan_ops_release(&o);
    int launches = plan_launches(plan), of_kernels = 0;
    for (int i = 0; i < e->n; i++) of_kernels += e->kernel[i].launches;
    *known = launches == of_kernels;
    for (int i = 0; i < e->n && *known; i++) out->us += e->kernel[i].us - 1e6 * e->gpu->launch_s;
    out->launches += launches;
    out->us += 1e6 * (e->gpu->launch_s + e->gpu->gap_s * (out->launches - 1));
    out->by_bytes = peaks.by_bytes > peaks.by_flops;
    if (out->library_us > 0)
        out->peak = 1e6 * fmax(peaks.by_bytes, peaks.by_flops) / out->library_us;
    return rc;
}

int plan_cost(const Task *t, const char *source, const Estimate *estimate, PlanCost *out,
              int *known, Error *err)
{
    Plan plan;
    Fault f = {0};
    *out = (PlanCost){0};
    *known = 0;
    if (plan_parse(source, strlen(source), 0, &plan, &f)) {
        plan_release(&plan);
        return error_set(err, ERROR_INVALID, "%s", f.message);
    }
    int rc = add_plan(t, &plan, estimate, out, known, err);
    plan_release(&plan);
    return rc;
}

/* ---- the bound ---- */

static double best_us(const Bound *b, const Estimate *e)
{
    double us = b->first.library_us + b->first.line_us;
    for (int i = 0; i < e->n; i++) us += e->kernel[i].light_us - 1e6 * e->gpu->launch_s;
    return us + 1e6 * (e->gpu->launch_s + e->gpu->gap_s * (b->first.launches - 1));
}

/* Those of eager PyTorch's operators that the generator's plan does not have become kernels. */
static void find_kernels(Bound *b, const char *list)
{
    while (*list) {
        size_t n = strcspn(list, ",");
        if (!has_word(b->first.calls, list, n) && !has_word(b->first.lines, list, n))
            add_word(b->ops, sizeof b->ops, list, n);
        list += n;
        list += strspn(list, ", ");
    }
}

int bound_find(const Task *t, const char *source, const Estimate *estimate, Bound *out, Error *err)
{
    const Estimate none = {.gpu = estimate->gpu};
    int known;
    *out = (Bound){.n_kernels = estimate->n};
    if (plan_cost(t, t->baseline_source, &none, &out->eager, &known, err) ||
        plan_cost(t, source, estimate, &out->first, &out->known, err))
        return -1;
    find_kernels(out, out->eager.calls);
    find_kernels(out, out->eager.lines);
    out->eager_us = out->eager.us;
    out->best_us = best_us(out, estimate);
    return 0;
}

void bound_measured(Bound *b, double eager_us, int predicted)
{
    b->eager_us = eager_us;
    b->measured = predicted ? 2 : 1;
}

int bound_is_hopeless(const Bound *b)
{
    double eager = b->measured == 2 ? b->eager_us : b->eager.us + (unknown - 1) * b->eager.line_us;
    return *b->why || !b->n_kernels || (b->known && eager < least_gain * b->best_us);
}

/* Which library calls take the time: "linear, 98% of the time, at 93% of the peak of arithmetic". */
static void write_library(const Bound *b, double of, Buffer *out)
{
    buffer_printf(out, "%s, %.0f%% of the time, at %.0f%% of the peak of %s", b->first.calls,
                  100 * fmin(1, b->first.library_us / of), 100 * fmin(1, b->first.peak),
                  b->first.by_bytes ? "memory" : "arithmetic");
}

static void write_hopeless(const Bound *b, Buffer *out)
{
    double most = b->eager_us / b->best_us;
    if (*b->why)
        buffer_printf(out, "no kernel can be written: %s", b->why);
    else if (b->first.library)
        buffer_puts(out, "bound by library calls: "), write_library(b, b->first.us, out);
    else if (b->n_kernels)
        buffer_printf(out, "eager PyTorch is at its bound of %.4g us", b->best_us);
    else
        buffer_printf(out, "%s stays as it is", *b->first.lines ? b->first.lines : "the module");
    if (!*b->why)
        buffer_printf(out, "; all that can be fused would make it %.2fx as fast at most",
                      most < 1 ? 1 : most);
}

static void write_kernels(const Bound *b, Buffer *out)
{
    buffer_printf(out, "%s %s %d kernel%s", *b->ops ? b->ops : "no operator",
                  strstr(b->ops, ", ") ? "become" : "becomes", b->n_kernels,
                  b->n_kernels == 1 ? "" : "s");
    if (b->first.library) {
        buffer_puts(out, "; a library keeps ");
        write_library(b, b->eager_us, out);
    }
    if (*b->first.lines)
        buffer_printf(out, "; %s stay%s as in eager", b->first.lines,
                      strstr(b->first.lines, ", ") ? "" : "s");
}

void bound_write(const Bound *b, const Profile *gpu, Buffer *out)
{
    if (bound_is_hopeless(b)) {
        write_hopeless(b, out);
    } else {
        write_kernels(b, out);
        buffer_printf(out, "; eager takes %s%.4g us in %d launch%s", b->measured ? "" : "about ",
                      b->eager_us, b->eager.launches, b->eager.launches == 1 ? "" : "es");
        if (b->known) buffer_printf(out, ", the bound is %.4g us", b->best_us);
        /* An estimate of eager PyTorch by its bytes may be too small by a factor of two. */
        if (b->known && b->measured)
            buffer_printf(out, ": about %.3gx at most", b->eager_us / b->best_us);
    }
    buffer_printf(out, " (the model of sim:%s)", gpu->name);
}

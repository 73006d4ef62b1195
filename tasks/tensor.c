/* Tolerances of outputs and their comparison with the reference. */
#include <math.h>
#include <stdio.h>

#include "tasks/task.h"

/* One element in units; the largest multiple of a drift. */
static const double MOST_OF_ONE = 8, MOST_DRIFT = 1.25;
static const double SMALL_SHARE = 1e-2;

static double limit_of(double want, size_t at, Tolerance by)
{
    double limit = by.atol + by.rtol * fabs(want);
    if (by.elements && by.elements->limit && at < by.elements->n)
        limit = fmin(limit, (double)by.elements->limit[at]);
    return limit;
}

double task_spread(const double *want, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += want[i];
    double mean = n > 1 ? sum / (double)n : 0;
    for (size_t i = 0; i < n; i++) squares += (want[i] - mean) * (want[i] - mean);
    return sqrt(squares / (double)n);
}

int task_tolerance_tells(double atol, const double *want, size_t n)
{
    double spread = task_spread(want, n);
    return isfinite(spread) && atol <= SMALL_SHARE * spread;
}

/* Infinity stands for an expected value that is too large for the type, or that is within its
 * tolerance of such a value. */
static int same(Dtype type, double got, double want, double limit)
{
    if (isnan(want)) return isnan(got);
    if (isinf(want) || isnan(got)) return got == want;
    if (isinf(got)) return (got > 0) == (want > 0) && fabs(want) + limit >= dtype_overflow(type);
    return fabs(got - want) <= limit;
}

/* The error in tolerances, which decides the worst element. */
static double excess(double got, double want, double limit)
{
    double d = fabs(got - want);
    return isnan(d) || isinf(d) ? INFINITY : d / (limit > 0 ? limit : 0x1p-149);
}

static void index_text(const int64_t *shape, int rank, size_t flat, char *out, size_t size)
{
    int64_t index[TASK_MAX_RANK];
    for (int i = rank - 1; i >= 0; i--) {
        index[i] = (int64_t)(flat % (size_t)shape[i]);
        flat /= (size_t)shape[i];
    }
    size_t len = 0;
    out[0] = 0;
    for (int i = 0; i < rank && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "[%lld]", (long long)index[i]);
}

void task_difference_text(const TaskComparison *c, const TaskDifference *d, Error *message)
{
    const TaskTensor *y = &c->task->outputs[c->output];
    int64_t shape[TASK_MAX_RANK];
    size_t n;
    char first_at[160], worst_at[160];
    if (task_shape(c->task, c->workload, y, shape, message) ||
        task_elements(c->task, c->workload, y, &n, message))
        return;
    index_text(shape, y->rank, d->first, first_at, sizeof first_at);
    index_text(shape, y->rank, d->worst, worst_at, sizeof worst_at);
    error_set(
        message, ERROR_LIMIT,
        "%zu of %zu elements of %s differ by more than %s%.3g + %.3g*|expected|: first %s%s is "
        "%.9g, expected %.9g; "
        "worst %s%s is %.9g, expected %.9g",
        d->bad, n, y->name,
        c->by.elements && c->by.elements->limit ? "rounding explains, or than " : "", c->by.atol,
        c->by.rtol, y->name, first_at, d->first_got, d->first_want, y->name, worst_at, d->worst_got,
        d->worst_want);
}

static void note_difference(TaskDifference *d, size_t at, double got, double want, double by,
                            double *worst_by)
{
    if (!d->bad++) d->first = at, d->first_got = got, d->first_want = want;
    if (by <= *worst_by) return;
    d->worst = at, d->worst_got = got, d->worst_want = want;
    *worst_by = by;
}

void task_differences(const TaskComparison *c, const void *got, const double *want, size_t from,
                      size_t n, TaskDifference *d)
{
    Dtype type = c->task->outputs[c->output].dtype;
    size_t size = dtype_size(type);
    double times = c->times > 0 ? c->times : 1, worst_by = -1;
    if (d->bad)
        worst_by =
            excess(d->worst_got, d->worst_want, times * limit_of(d->worst_want, d->worst, c->by));
    for (size_t done = 0; done < n; done += 512) {
        double chunk[512];
        size_t count = n - done < 512 ? n - done : 512;
        dtype_to_double(type, (const char *)got + done * size, chunk, count);
        for (size_t i = 0; i < count; i++) {
            double expected = want[done + i],
                   limit = times * limit_of(expected, from + done + i, c->by);
            if (same(type, chunk[i], expected, limit)) continue;
            note_difference(d, from + done + i, chunk[i], expected,
                            excess(chunk[i], expected, limit), &worst_by);
        }
    }
}

static double error_at(Dtype type, const void *got, const double *want, size_t i)
{
    double x;
    dtype_to_double(type, (const char *)got + i * dtype_size(type), &x, 1);
    return x - want[i];
}

/* The multiple of the drift that is nearest to the errors. */
static double drift_of(const ElementLimits *e, Dtype type, const void *got, const double *want)
{
    double along = 0, all = 0;
    for (size_t i = 0; i < e->n && e->drift; i++) {
        double error = error_at(type, got, want, i), drift = e->drift[i];
        if (!(fabs(error) <= MOST_OF_ONE * e->unit + MOST_DRIFT * fabs(drift))) continue;
        along += error * drift;
        all += drift * drift;
    }
    return all > 0 ? fmin(fmax(along / all, 0), MOST_DRIFT) : 0;
}

double task_mean_square(const ElementLimits *e, Dtype type, const void *got, const double *want)
{
    double sum = 0, counted = 0, drift = e->limit ? 0 : drift_of(e, type, got, want);
    for (size_t i = 0; i < e->n; i++) {
        double error = error_at(type, got, want, i);
        double limit = e->limit ? (double)e->limit[i] : e->unit;
        if (drift > 0) error -= drift * e->drift[i];
        if (!isfinite(error) || !isfinite(limit) || !(limit > 0)) continue;
        double in_limits = e->limit ? error / limit : fmin(fabs(error) / limit, MOST_OF_ONE);
        sum += in_limits * in_limits;
        counted++;
    }
    return counted > 0 ? sum / counted : 0;
}

int task_is_coarse(const TaskComparison *c, const void *got, const double *want, Error *message)
{
    const ElementLimits *e = c->by.elements;
    const TaskTensor *y = &c->task->outputs[c->output];
    if (!e || isnan(e->most)) return 0;
    double square = task_mean_square(e, y->dtype, got, want);
    if (square <= e->most) return 0;
    error_set(message, ERROR_LIMIT,
              "the errors of the %zu elements of %s are %.2f times as large on average as those of "
              "a kernel that rounds what eager PyTorch rounds",
              e->n, y->name, sqrt(square / e->most));
    return 1;
}

int task_compare(const TaskComparison *c, const void *got, const double *want, Error *message)
{
    TaskDifference d = {0};
    size_t n;
    /* Loading has checked this for the task's own workloads, but not for another one. */
    if (task_elements(c->task, c->workload, &c->task->outputs[c->output], &n, message)) return 1;
    task_differences(c, got, want, 0, n, &d);
    if (!d.bad) return task_is_coarse(c, got, want, message);
    task_difference_text(c, &d, message);
    return 1;
}

/* Neighbouring positions are taken together: a graph may squeeze a dimension of one. */
#include "eval/judge/contents/positions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MOST_TRIED = 8, SEED = 1 };

/* Of an output's magnitude: what rounding may differ by. One rounding of bfloat16 is 2^-8. */
static const double half_share = 0x1p-7, float_share = 1e-6;

typedef struct {
    Task *task;
    const Workload *all;
    Workload few; /* of fewer positions */
    double share;
    /* By tensor: of all positions, and of the few. */
    double *in[TASK_MAX_TENSORS], *out[TASK_MAX_TENSORS];
    double *in_few[TASK_MAX_TENSORS], *out_few[TASK_MAX_TENSORS];
    size_t each_in[TASK_MAX_TENSORS]; /* elements of a position; 0: not the tensor's first axis */
    size_t each_out[TASK_MAX_TENSORS], n_out[TASK_MAX_TENSORS];
} Trial;

static int64_t positions_of(const Task *t, const Workload *w)
{
    return w->axis[t->rotates];
}

static const Workload *cheapest_check(const Task *t)
{
    const Workload *best = NULL;
    double least = INFINITY, bytes, flops;
    for (int64_t enough = 3; !best && enough >= 2; enough--)
        for (int i = 0; i < t->n_workloads; i++) {
            const Workload *w = &t->workloads[i];
            if (w->role != ROLE_CHECK || positions_of(t, w) < enough ||
                task_cost(t, w, &bytes, &flops, NULL) || bytes + flops >= least)
                continue;
            least = bytes + flops;
            best = w;
        }
    return best;
}

static size_t elements_of_position(const Trial *r, const TaskTensor *x, size_t n)
{
    return task_rotates(r->task, x) ? n / (size_t)positions_of(r->task, r->all) : 0;
}

/* Fills in all but the outputs' values. */
static int trial_open(Trial *r, Error *err)
{
    Task *t = r->task;
    const TaskCase of = {t, r->all, VARIANT_DRAWN, SEED, 1};
    size_t n;
    int halves = 0;
    for (int i = 0; i < t->n_inputs; i++) {
        const TaskTensor *x = &t->inputs[i];
        halves |= x->dtype == DTYPE_F16 || x->dtype == DTYPE_BF16;
        if (task_elements(t, r->all, x, &n, err)) return -1;
        r->each_in[i] = elements_of_position(r, x, n);
        r->in[i] = memory_array(n, sizeof(double));
        r->in_few[i] = memory_array(n, sizeof(double));
        if (task_draw_wide(&of, i, r->in[i], err)) return -1;
        memcpy(r->in_few[i], r->in[i], n * sizeof(double));
    }
    for (int i = 0; i < t->n_outputs; i++) {
        const TaskTensor *y = &t->outputs[i];
        halves |= y->dtype == DTYPE_F16 || y->dtype == DTYPE_BF16;
        if (task_elements(t, r->all, y, &n, err)) return -1;
        r->n_out[i] = n;
        r->each_out[i] = elements_of_position(r, y, n);
        r->out[i] = memory_array(n, sizeof(double));
        r->out_few[i] = memory_array(n, sizeof(double));
    }
    r->share = halves ? half_share : float_share;
    return 0;
}

static void trial_close(Trial *r)
{
    for (int i = 0; i < TASK_MAX_TENSORS; i++) {
        free(r->in[i]);
        free(r->in_few[i]);
        free(r->out[i]);
        free(r->out_few[i]);
    }
}

static int alike(double a, double b, double magnitude, double share)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= share * (fabs(b) + magnitude);
}

/* Compare the outputs of the few positions, which begin with `first` and go on from the last to 0. */
static int few_agree(const Trial *r, size_t first)
{
    size_t few = (size_t)positions_of(r->task, &r->few);
    for (int i = 0; i < r->task->n_outputs; i++) {
        size_t each = r->each_out[i], n = each ? few * each : r->n_out[i];
        double squares = 0;
        for (size_t k = 0; k < r->n_out[i]; k++)
            if (isfinite(r->out[i][k])) squares += r->out[i][k] * r->out[i][k];
        double magnitude = sqrt(squares / (double)r->n_out[i]);
        for (size_t k = 0; k < n; k++)
            if (!alike(r->out_few[i][k], r->out[i][(first * each + k) % r->n_out[i]], magnitude,
                       r->share))
                return 0;
    }
    return 1;
}

static int try_few(Trial *r, size_t first, Error *err)
{
    const Task *t = r->task;
    size_t few = (size_t)positions_of(t, &r->few), all = (size_t)positions_of(t, r->all);
    for (int i = 0; i < t->n_inputs; i++)
        for (size_t k = 0; k < few; k++)
            memcpy(r->in_few[i] + k * r->each_in[i], r->in[i] + (first + k) % all * r->each_in[i],
                   r->each_in[i] * sizeof(double));
    if (task_reference(r->task, &r->few, (const double *const *)r->in_few, r->out_few, err))
        return 0;
    return few_agree(r, first);
}

static int try_all(Trial *r)
{
    Error ignored;
    int64_t all = positions_of(r->task, r->all);
    r->few = *r->all;
    r->few.axis[r->task->rotates] = all > 2 ? 2 : 1;
    if (trial_open(r, &ignored) ||
        task_reference(r->task, r->all, (const double *const *)r->in, r->out, &ignored))
        return 0;
    for (int64_t first = 0; first < all && first < MOST_TRIED; first++)
        if (!try_few(r, (size_t)first, &ignored)) return 0;
    return 1;
}

int positions_independent(Task *t)
{
    if (t->positions == POSITIONS_UNKNOWN) {
        Trial r = {.task = t, .all = cheapest_check(t)};
        t->positions = r.all && try_all(&r) ? POSITIONS_INDEPENDENT : POSITIONS_DEPENDENT;
        trial_close(&r);
    }
    return t->positions == POSITIONS_INDEPENDENT;
}

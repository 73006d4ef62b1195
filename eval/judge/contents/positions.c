/* Neighbouring positions are taken together: a graph may squeeze a dimension of one. */
#include "eval/judge/contents/positions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MOST_TRIED = 8, SEED = 1 };

/* Of an output's magnitude: what rounding may differ by. One rounding of bfloat16 is 2^-8. */
static const double half_share = 0x1p-7, float_share = 1e-6;

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

static const TaskTensor *tensor_of(const Task *t, int i)
{
    return i < t->n_inputs ? &t->inputs[i] : &t->outputs[i - t->n_inputs];
}

int twin_open(Twin *r, const Workload *room, Error *err)
{
    Task *t = r->task;
    const TaskCase of = {t, r->of, VARIANT_DRAWN, SEED, 1};
    for (int i = 0; i < t->n_inputs + t->n_outputs; i++) {
        int k = i < t->n_inputs ? i : i - t->n_inputs;
        size_t n, all;
        if (task_elements(t, r->of, tensor_of(t, i), &n, err) ||
            task_elements(t, room, tensor_of(t, i), &all, err))
            return -1;
        double *own = memory_array(n, sizeof *own), *other = memory_array(all, sizeof *other);
        *(i < t->n_inputs ? &r->in[k] : &r->out[k]) = own;
        *(i < t->n_inputs ? &r->other_in[k] : &r->other_out[k]) = other;
        if (i >= t->n_inputs) {
            r->n_out[k] = n;
            continue;
        }
        if (task_draw_wide(&of, i, own, err)) return -1;
        for (size_t e = 0; e < all; e++) other[e] = own[e % n];
    }
    return task_reference(t, r->of, (const double *const *)r->in, r->out, err);
}

int twin_run(Twin *r, Error *err)
{
    return task_reference(r->task, &r->other, (const double *const *)r->other_in, r->other_out,
                          err);
}

void twin_close(Twin *r)
{
    for (int i = 0; i < TASK_MAX_TENSORS; i++) {
        free(r->in[i]);
        free(r->out[i]);
        free(r->other_in[i]);
        free(r->other_out[i]);
    }
}

double twin_magnitude(const Twin *r, int output)
{
    double squares = 0;
    for (size_t i = 0; i < r->n_out[output]; i++)
        if (isfinite(r->out[output][i])) squares += r->out[output][i] * r->out[output][i];
    return sqrt(squares / (double)r->n_out[output]);
}

/* 0: the tensor has no positions. */
static size_t elements_of_position(const Twin *r, const TaskTensor *x)
{
    size_t n;
    if (!task_rotates(r->task, x) || task_elements(r->task, r->of, x, &n, NULL)) return 0;
    return n / (size_t)positions_of(r->task, r->of);
}

/* What rounding may differ by. */
static double share_of(const Task *t)
{
    for (int i = 0; i < t->n_inputs + t->n_outputs; i++)
        if (tensor_of(t, i)->dtype == DTYPE_F16 || tensor_of(t, i)->dtype == DTYPE_BF16)
            return half_share;
    return float_share;
}

static int alike(double a, double b, double magnitude, double share)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= share * (fabs(b) + magnitude);
}

/* Compare the outputs of the few positions, which begin with `first` and go on from the last to 0. */
static int few_agree(const Twin *r, size_t first)
{
    const Task *t = r->task;
    size_t few = (size_t)positions_of(t, &r->other);
    double share = share_of(t);
    for (int i = 0; i < t->n_outputs; i++) {
        size_t each = elements_of_position(r, &t->outputs[i]), n = each ? few * each : r->n_out[i];
        double magnitude = twin_magnitude(r, i);
        for (size_t k = 0; k < n; k++)
            if (!alike(r->other_out[i][k], r->out[i][(first * each + k) % r->n_out[i]], magnitude,
                       share))
                return 0;
    }
    return 1;
}

static int try_few(Twin *r, size_t first, Error *err)
{
    const Task *t = r->task;
    size_t few = (size_t)positions_of(t, &r->other), all = (size_t)positions_of(t, r->of);
    for (int i = 0; i < t->n_inputs; i++) {
        size_t each = elements_of_position(r, &t->inputs[i]);
        for (size_t k = 0; k < few && each; k++)
            memcpy(r->other_in[i] + k * each, r->in[i] + (first + k) % all * each,
                   each * sizeof(double));
    }
    return twin_run(r, err) ? 0 : few_agree(r, first);
}

static int try_all(Twin *r)
{
    Error ignored;
    int64_t all = positions_of(r->task, r->of);
    r->other = *r->of;
    r->other.axis[r->task->rotates] = all > 2 ? 2 : 1;
    if (twin_open(r, r->of, &ignored)) return 0;
    for (int64_t first = 0; first < all && first < MOST_TRIED; first++)
        if (!try_few(r, (size_t)first, &ignored)) return 0;
    return 1;
}

int positions_independent(Task *t)
{
    if (t->positions == POSITIONS_UNKNOWN) {
        Twin r = {.task = t, .of = cheapest_check(t)};
        t->positions = r.of && try_all(&r) ? POSITIONS_INDEPENDENT : POSITIONS_DEPENDENT;
        twin_close(&r);
    }
    return t->positions == POSITIONS_INDEPENDENT;
}

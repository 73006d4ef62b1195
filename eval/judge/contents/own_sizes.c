/* Positions are halved until the contents that repeat are small enough. */
#include "eval/judge/contents/own_sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"
#include "eval/device/memory_shares.h"
#include "eval/judge/contents/positions.h"
#include "tasks/derive/sizes.h"
#include "tasks/task_graph.h"

enum { TIMES = 2, WORD = 16 /* contents are copied in words of so many bytes */ };
static const double alike_share = 1e-6, half_share = 0x1p-7; /* of an output's magnitude */
/* Parts of the device's room: alignment, workspaces and guard zones take the rest. */
static const double filled = 0.8;
/* The share of a GPU's memory that is free when no other program uses it. */
static const double usually_free = 0.97;

int own_sizes_repeat(const Task *t, int axis, const TaskTensor *x)
{
    return axis >= 0 && x->rank && !strcmp(x->shape[0], t->axis_name[axis]);
}

static const TaskTensor *tensor_of(const Task *t, int i)
{
    return i < t->n_inputs ? &t->inputs[i] : &t->outputs[i - t->n_inputs];
}

/* ---- the axis ---- */

static int is_in_expressions(const Task *t, const TaskTensor *x, int axis)
{
    for (int k = own_sizes_repeat(t, axis, x); k < x->rank; k++)
        if (word_in(x->shape[k], t->axis_name[axis])) return 1;
    return x->draw_highest && word_in(x->draw_highest, t->axis_name[axis]);
}

static int is_first_alone(const Task *t, int axis)
{
    int found = 0;
    for (int i = 0; i < t->n_inputs + t->n_outputs; i++) {
        const TaskTensor *x = tensor_of(t, i);
        int repeats = own_sizes_repeat(t, axis, x);
        found |= repeats && i < t->n_inputs;
        if (is_in_expressions(t, x, axis) || (repeats && i < t->n_inputs && x->distinct == 0))
            return 0;
    }
    return found;
}

/* The longest one; that of `turns` before others. */
static int choose_axis(const Task *t)
{
    int best = -1;
    if (t->rotates >= 0) return is_first_alone(t, t->rotates) ? t->rotates : -1;
    for (int i = 0; i < t->n_axes; i++)
        if (is_first_alone(t, i) && (best < 0 || t->own->axis[i] > t->own->axis[best])) best = i;
    return best;
}

/* ---- what repeats ---- */

static const Workload *cheapest_check(const Task *t, int axis)
{
    const Workload *best = NULL;
    double least = INFINITY, bytes, flops;
    for (int i = 0; i < t->n_workloads; i++) {
        const Workload *w = &t->workloads[i];
        Workload often = *w;
        often.axis[axis] *= TIMES;
        if (w->role != ROLE_CHECK || w->axis[axis] < 2 || task_allows(t, &often, NULL) ||
            task_cost(t, w, &bytes, &flops, NULL) || bytes + flops >= least)
            continue;
        least = bytes + flops;
        best = w;
    }
    return best;
}

static int is_repeated(const Twin *r, int axis, int output)
{
    const TaskTensor *y = &r->task->outputs[output];
    size_t n = r->n_out[output], all = own_sizes_repeat(r->task, axis, y) ? n * TIMES : n;
    double share = y->dtype == DTYPE_F16 || y->dtype == DTYPE_BF16 ? half_share : alike_share,
           most = share * 2 * twin_magnitude(r, output);
    for (size_t i = 0; i < all; i++) {
        double a = r->out[output][i % n], b = r->other_out[output][i];
        if (a != b && !(isnan(a) && isnan(b)) && !(fabs(a - b) <= share * fabs(a) + most)) return 0;
    }
    return 1;
}

static int repeats(Task *t, int axis)
{
    Twin *r = memory_alloc(sizeof *r);
    *r = (Twin){.task = t, .of = cheapest_check(t, axis)};
    int yes = r->of != NULL;
    if (yes) r->other = *r->of;
    if (yes) r->other.axis[axis] *= TIMES;
    yes = yes && !twin_open(r, &r->other, NULL) && !twin_run(r, NULL);
    for (int i = 0; i < t->n_outputs && yes; i++) yes = is_repeated(r, axis, i);
    twin_close(r);
    free(r);
    return yes;
}

/* ---- the sizes ---- */

/* Bytes of all tensors, or of all elements as doubles; largest: elements of the largest result. -1: the
 * workload cannot be bound. */
typedef struct {
    double bytes, wide, largest;
} Extent;

static int extent_of(const Task *t, const Workload *w, Extent *out)
{
    GraphBound *b;
    *out = (Extent){0};
    if (task_allows(t, w, NULL) || task_graph_bind(t, w, &b, NULL)) return -1;
    for (int i = 0; i < b->graph->n_values; i++) {
        const GraphValue *v = &b->values[i];
        int is_input = i < b->graph->n_inputs;
        if (v->base != i || (!v->live && !is_input)) continue;
        out->bytes += (double)v->extent * (double)dtype_size(v->tensor.dtype);
        out->wide += (double)v->extent * (double)sizeof(double);
        if (!is_input) out->largest = fmax(out->largest, (double)v->extent);
    }
    graph_bound_free(b);
    return 0;
}

static double bytes_of(const Task *t, const Workload *w, int i)
{
    const TaskTensor *x = tensor_of(t, i);
    size_t n;
    return task_elements(t, w, x, &n, NULL) ? INFINITY : (double)(n * dtype_size(x->dtype));
}

/* Whole words of each input repeat, a whole number of times. */
static int is_aligned(const Task *t, const Workload *w, int axis)
{
    if (t->own->axis[axis] % w->axis[axis]) return 0;
    for (int i = 0; i < t->n_inputs; i++)
        if (own_sizes_repeat(t, axis, &t->inputs[i]) && fmod(bytes_of(t, w, i), WORD) > 0) return 0;
    return 1;
}

/* The timed workload where it differs along this axis alone. */
static int is_timed(const Task *t, int axis, Workload *part)
{
    const Workload *timed = task_workload(t, ROLE_TIME);
    for (int i = 0; i < t->n_axes; i++)
        if (i != axis && timed->axis[i] != t->own->axis[i]) return 0;
    if (!is_aligned(t, timed, axis)) return 0;
    *part = *timed;
    return 1;
}

static void halve(const Task *t, int axis, Workload *part)
{
    Workload one = *part;
    Extent fixed, now;
    one.axis[axis] = 1;
    if (extent_of(t, &one, &fixed)) fixed.bytes = 0;
    while (!extent_of(t, part, &now) && now.bytes - fixed.bytes > OWN_PART_BYTES) {
        Workload next = *part;
        next.axis[axis] /= 2;
        if (!next.axis[axis] || extent_of(t, &next, &now) || !is_aligned(t, &next, axis)) return;
        *part = next;
    }
}

static double elements_of(const Task *t, const Workload *w)
{
    double all = 0;
    for (int i = 0; i < t->n_outputs; i++)
        all += bytes_of(t, w, t->n_inputs + i) / (double)dtype_size(t->outputs[i].dtype);
    return all;
}

/* 1 where the timed workload cannot be bound. */
static double growth(const Task *t)
{
    const Workload *timed = task_workload(t, ROLE_TIME);
    GraphBound *own, *now;
    double longer = 1;
    if (task_graph_bind(t, t->own, &own, NULL)) return 1;
    if (task_graph_bind(t, timed, &now, NULL)) {
        graph_bound_free(own);
        return 1;
    }
    for (int k = 0; k < own->graph->n_nodes; k++)
        if (own->calls[k].live)
            longer = fmax(longer, (double)sizes_reduced(&own->calls[k]) /
                                      (double)sizes_reduced(&now->calls[k]));
    graph_bound_free(own);
    graph_bound_free(now);
    return longer * sqrt(log(2 + elements_of(t, t->own)) / log(2 + elements_of(t, timed)));
}

int own_sizes_find(Task *t, OwnSizes *out)
{
    Extent own, part;
    *out = (OwnSizes){.axis = choose_axis(t), .part = *t->own};
    if (extent_of(t, t->own, &own)) return -1;
    if (out->axis >= 0 && !repeats(t, out->axis)) out->axis = -1;
    if (out->axis >= 0 && !is_timed(t, out->axis, &out->part)) halve(t, out->axis, &out->part);
    if (out->axis >= 0 && out->part.axis[out->axis] == t->own->axis[out->axis]) out->axis = -1;
    if (extent_of(t, &out->part, &part)) return -1;
    for (int i = 0; i < t->n_inputs + t->n_outputs; i++) {
        double bytes = bytes_of(t, &out->part, i);
        out->tensors += bytes_of(t, t->own, i);
        out->drawn += i < t->n_inputs
                          ? bytes
                          : bytes * sizeof(double) / (double)dtype_size(tensor_of(t, i)->dtype);
    }
    out->grown = growth(t);
    out->wide = part.wide;
    out->between = fmax(0, own.bytes - out->tensors);
    out->largest = own.largest;
    return 0;
}

static int fit(const OwnSizes *s, const MemoryShares *m)
{
    return s->largest < (double)INT32_MAX && 2 * s->drawn <= (double)m->kept &&
           s->tensors + s->between <= filled * (double)m->buffers &&
           s->between <= filled * (double)m->plan && s->wide <= filled * (double)m->plan;
}

int own_sizes_fit(const OwnSizes *s, const DeviceInfo *d)
{
    MemoryShares m;
    memory_shares((uint64_t)(usually_free * (double)d->total_bytes), 0, &m);
    return fit(s, &m);
}

int own_sizes_fit_now(const OwnSizes *s, const DeviceInfo *d)
{
    const MemoryShares m = {
        .buffers = d->buffers_bytes, .plan = d->memory_bytes, .kept = d->contents_bytes};
    return fit(s, &m);
}

/* The inputs are drawn again: who asks may not have them on the host. */
#include "tasks/derive/own_error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "tasks/derive/element_limits.h"
#include "tasks/derive/honest.h"
#include "tasks/derive/honest_way.h"
#include "tasks/derive/sizes.h"
#include "tasks/graph/demand.h"
#include "tasks/task_graph.h"

enum { BLURS = 8 };
/* By the largest of BLURS movements: the largest errors of millions are as many deviations. */
static const double MOST_OF_BLURS = 4;
static const double TF32_UNIT = 0x1p-11;
/* Elements of all inputs; elements that are read for one blur. */
static const double MOST_INPUTS = 1 << 28, MOST_WORK = 1e8;
static const double MOST_WAYS = 2e7; /* flops of one execution */

typedef struct {
    const TaskCase *of;
    const DemandInputs *inputs;
    GraphBound *b;
    void *in[TASK_MAX_TENSORS]; /* of their types */
    size_t elements[TASK_MAX_TENSORS];
    double by;    /* of a blur; 0: none */
    double shift; /* beside it, whatever the size of an element */
    uint64_t key;
} Own;

static void own_release(Own *o)
{
    for (int i = 0; i < o->of->task->n_inputs; i++) free(o->in[i]);
    graph_bound_free(o->b);
}

static int draw(Own *o, Error *err)
{
    const Task *t = o->of->task;
    double all = 0;
    for (int i = 0; i < t->n_inputs; i++) {
        if (task_elements(t, o->of->workload, &t->inputs[i], &o->elements[i], err)) return -1;
        all += (double)o->elements[i];
    }
    if (all > MOST_INPUTS) return 1;
    for (int i = 0; i < t->n_inputs; i++) {
        o->in[i] = memory_array(o->elements[i] + 1, dtype_size(t->inputs[i].dtype));
        if (task_draw(o->of, i, o->in[i], err)) return -1;
    }
    return 0;
}

/* ---- by honest ways ---- */

static int widen(const Own *o, double **wide)
{
    const Task *t = o->of->task;
    for (int i = 0; i < t->n_inputs; i++) {
        wide[i] = memory_array(o->elements[i] + 1, sizeof(double));
        dtype_to_double(t->inputs[i].dtype, o->in[i], wide[i], o->elements[i]);
    }
    for (int i = 0; i < t->n_outputs; i++) {
        size_t n;
        if (task_elements(t, o->of->workload, &t->outputs[i], &n, NULL)) return -1;
        wide[t->n_inputs + i] = memory_array(n + 1, sizeof(double));
    }
    return 0;
}

static int by_ways(const Own *o, const OwnElements *asked, double *error, Error *err)
{
    const Task *t = o->of->task;
    double *wide[2 * TASK_MAX_TENSORS] = {0}, **want = wide + t->n_inputs;
    ElementLimits *limits[TASK_MAX_TENSORS] = {0};
    const double *const *in = (const double *const *)wide;
    if (sizes_flops(o->b) > MOST_WAYS) return 1;
    int rc = widen(o, wide);
    if (!rc) rc = graph_run(o->b, in, want, NULL, err);
    if (!rc) rc = element_limits_float(o->of, in, (const double *const *)want, limits, err);
    for (int k = 0; k < asked->n && !rc; k++)
        error[k] = (double)limits[asked->output]->limit[asked->at[k]];
    for (int i = 0; i < t->n_outputs; i++) element_limits_free(limits[i]);
    for (int i = 0; i < t->n_inputs + t->n_outputs; i++) free(wide[i]);
    return rc;
}

/* ---- by blurred inputs ---- */

static int fetch(void *of, int input, int64_t from, int64_t n, double *dst, Error *err)
{
    const Own *o = of;
    const TaskTensor *x = &o->of->task->inputs[input];
    size_t at = (size_t)from * dtype_size(x->dtype);
    if (o->inputs) {
        if (o->inputs->fetch(o->inputs->of, input, from, n, dst, err)) return -1;
    } else {
        dtype_to_double(x->dtype, (const char *)o->in[input] + at, dst, (size_t)n);
    }
    if (o->by > 0 && dtype_is_float(x->dtype)) {
        way_blur(dst, from, n, o->by, o->key + (uint64_t)input);
        if (o->shift > 0) way_shift(dst, from, n, o->shift, ~o->key + (uint64_t)input);
    }
    return 0;
}

/* One element, alone. */
static int element(Own *o, int output, size_t at, double *value, Error *err)
{
    DemandedOutput asked[GRAPH_MAX_OUTPUTS] = {{0}};
    const int64_t index = (int64_t)at;
    Demand d = {.b = o->b,
                .inputs = {o, fetch, NULL},
                .output = asked,
                .max_work = MOST_WORK,
                .max_elements = MOST_WORK};
    asked[output] = (DemandedOutput){1, &index, value};
    return graph_demand(&d, err);
}

static double half_unit(Dtype d)
{
    return d == DTYPE_F16 ? 0x1p-11 : d == DTYPE_BF16 ? 0x1p-8 : 0;
}

/* The relative error of the coarsest type that eager PyTorch rounds to on the way to an output. Integers do
 * not tell it: inputs do. */
static double coarsest(const Task *t, int output)
{
    double unit = half_unit(t->outputs[output].dtype);
    for (int i = 0; i < t->n_inputs && !dtype_is_float(t->outputs[output].dtype); i++)
        unit = fmax(unit, half_unit(t->inputs[i].dtype));
    return unit > 0 ? unit : t->tf32 ? TF32_UNIT : 0;
}

/* What a running sum errs, or that type. */
static double unit_of(const Own *o, int output)
{
    return fmax(coarsest(o->of->task, output), way_sum_error(sizes_terms(o->b)));
}

/* The element with the inputs of the k-th blur. */
static int blurred(Own *o, const OwnElements *e, int i, uint64_t k, double *value, Error *err)
{
    const uint64_t name[2] = {HONEST_SEED, k};
    o->key = random_hash(name, sizeof name);
    return element(o, e->output, e->at[i], value, err);
}

static int by_blurs(Own *o, const OwnElements *e, int i, double *error, Error *err)
{
    double want, got, most = 0;
    o->by = 0;
    int rc = element(o, e->output, e->at[i], &want, err);
    o->by = unit_of(o, e->output);
    for (uint64_t k = 0; k < BLURS && !rc; k++) {
        rc = blurred(o, e, i, k, &got, err);
        if (!rc) most = fmax(most, fabs(got - want));
    }
    *error = MOST_OF_BLURS * most;
    return rc;
}

/* By the way that is known for the case. */
static int errors(Own *o, const OwnElements *e, double *error, Error *err)
{
    int rc = o->inputs || coarsest(o->of->task, e->output) > 0 ? 1 : by_ways(o, e, error, err);
    if (rc <= 0) return rc;
    rc = 0;
    for (int k = 0; k < e->n && !rc; k++) rc = by_blurs(o, e, k, &error[k], err);
    return rc;
}

static int own_open(Own *o, const OwnElements *e, Error *err)
{
    *o = (Own){.of = e->of, .inputs = e->inputs};
    int rc = task_graph_bind(e->of->task, e->of->workload, &o->b, err) ? -1 : 0;
    return rc || e->inputs ? rc : draw(o, err);
}

int own_error(const OwnElements *e, double *error, Error *err)
{
    Own o;
    const Task *t = e->of->task;
    if (!t->graph || !dtype_is_float(t->outputs[e->output].dtype)) return 1;
    int rc = own_open(&o, e, err);
    if (!rc) rc = errors(&o, e, error, err);
    own_release(&o);
    return rc;
}

/* ---- choices ---- */

typedef struct {
    const OwnElements *asked;
    const double *got;
    int *within;
} Choice;

static void note_way(void *ctx, int way, int single, double *const *out)
{
    const Choice *c = ctx;
    const OwnElements *e = c->asked;
    (void)way, (void)single;
    for (int k = 0; k < e->n; k++) c->within[k] |= out[e->output][e->at[k]] == c->got[k];
}

static int chosen_by_ways(const Own *o, Choice *c, Error *err)
{
    const Task *t = o->of->task;
    double *wide[2 * TASK_MAX_TENSORS] = {0};
    if (o->inputs || sizes_flops(o->b) > MOST_WAYS) return 0;
    int rc = widen(o, wide);
    if (!rc) rc = honest_outputs(o->of, (const double *const *)wide, note_way, c, err);
    for (int i = 0; i < t->n_inputs + t->n_outputs; i++) free(wide[i]);
    return rc < 0 ? -1 : 0; /* where they cost too much, blurs tell */
}

/* What constants are compared with may lie on either side of one that is off. */
static double off_steps(const GraphBound *b)
{
    double most = 0;
    for (int node = 0; node < b->graph->n_nodes; node++)
        most = fmax(most, way_step_error(&b->calls[node].call));
    return most;
}

/* Half of the blurs are as large as the largest of millions of errors. */
static int chosen_by_blurs(Own *o, const Choice *c, int i, Error *err)
{
    const OwnElements *e = c->asked;
    double value;
    int rc = 0;
    o->by = unit_of(o, e->output);
    o->shift = off_steps(o->b);
    for (uint64_t k = 0; k < 2 * BLURS && !rc && !c->within[i]; k++) {
        if (k == BLURS) o->by *= MOST_OF_BLURS, o->shift *= MOST_OF_BLURS;
        rc = blurred(o, e, i, k, &value, err);
        if (!rc) c->within[i] = value == c->got[i];
    }
    return rc;
}

int own_choice(const OwnElements *e, const double *got, int *within, Error *err)
{
    Own o;
    Choice c = {e, got, within};
    if (!e->of->task->graph || dtype_is_float(e->of->task->outputs[e->output].dtype)) return 1;
    for (int k = 0; k < e->n; k++) within[k] = 0;
    int rc = own_open(&o, e, err);
    if (!rc) rc = chosen_by_ways(&o, &c, err);
    for (int k = 0; k < e->n && !rc; k++) rc = chosen_by_blurs(&o, &c, k, err);
    own_release(&o);
    return rc;
}

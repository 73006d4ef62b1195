/* Executes a graph with factors rounded to TF32, at sizes that are as small as the sums allow. */
#include "tasks/derive/tf32.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sort.h"
#include "tasks/derive/honest.h"
#include "tasks/derive/measured_sizes.h"
#include "tasks/derive/sizes.h"
#include "tasks/task_graph.h"

enum { SEED = 11, MAX_DRAWS = 4, FEW = 16, MAX_SORTED = 4096 };
enum {
    ROW_TERMS = 256,
    FEW_TERMS = 32,
    FEWER_TERMS = 16
};                                    /* the least that a node takes together at smaller sizes */
static const double PART_FLOPS = 1e6, /* of one execution at smaller sizes */
    SHORT_FLOPS = 4e6,                /* of one with shorter sums */
    ALL_FLOPS = 6e6,                  /* of all executions, as long as several draws fit */
    SPREAD_FLOPS = 2e7,               /* of one execution on the inputs of a case */
    CHECK_FLOPS = 4e8,                /* the same, of a check */
    LARGEST_SCALE = 8,                /* of the checks; beyond, errors are asked for */
    LISTED_FLOPS = 4e9,               /* the same, of a check in task.json */
    MOST_FLOPS = 3e7,                 /* of one execution; costlier sums are made shorter */
    MOST_SHORT = 1e8;           /* of one with shorter sums; costlier ones are made shorter yet */
static const double UNEVEN = 4; /* contents of few dominant elements: errors of draws differ much */
static const double MARGIN_FEW =
    4; /* of outputs of few elements, whose errors may be small by chance */
static const double OWN_FLOPS = 1e9; /* of one execution on a case's own inputs */
static const double WIDER = 8;       /* inputs, where no errors are seen; a power of two */
static const double MOST_RTOL =
    0x1p-8; /* twice the relative error of a product whose factors are truncated */

/* ---- rounding ---- */

double tf32_nearest(double x)
{
    return (double)tf32_nearest_float((float)x);
}

double tf32_truncated(double x)
{
    return (double)tf32_rounded((float)x, 0);
}

void tf32_nearest_floats(const void *floats, int64_t n, double *out)
{
    const unsigned char *p = floats;
    for (int64_t i = 0; i < n; i++) {
        float f;
        memcpy(&f, p + 4 * i, sizeof f);
        out[i] = (double)tf32_nearest_float(f);
    }
}

/* ---- an execution ---- */

typedef enum { EXACT, NEAREST, TRUNCATED } Way;

typedef struct {
    unsigned tf32; /* of the task */
    Way way;
    const double *louder;         /* as Measured has it */
    double *held[OP_MAX_TENSORS]; /* the arguments of one node */
} Rounding;

static void release(Rounding *r)
{
    for (int i = 0; i < OP_MAX_TENSORS; i++) free(r->held[i]);
    memset(r->held, 0, sizeof r->held);
}

static int is_recurrent(const OpCall *c)
{
    return strstr(c->op->name, ".input") && c->n_tensors > 3;
}

static double *changed(const double *x, int64_t n, Way way, double by)
{
    double *own = memory_array((size_t)n + 1, sizeof *own);
    for (int64_t k = 0; k < n; k++)
        own[k] = by * (way == EXACT     ? x[k]
                       : way == NEAREST ? tf32_nearest(x[k])
                                        : tf32_truncated(x[k]));
    return own;
}

/* The factors of a product are two; all tensors of a recurrent network are, but for what is added. */
static int arguments(void *ctx, const GraphBound *b, int node, const double **in, Error *err)
{
    Rounding *r = ctx;
    const OpCall *c = &b->calls[node].call;
    double by = r->louder ? r->louder[node] : 1;
    Way way = op_tf32(c) & r->tf32 ? r->way : EXACT;
    (void)err;
    release(r);
    if (way == EXACT && by == 1) return 0;
    int first = op_factors(c), end = is_recurrent(c) ? c->n_tensors : first + 2;
    for (int i = first; i < end; i++) {
        if (c->tensor[i].rank < 2) continue;
        in[i] = r->held[i] =
            changed(in[i], op_elements(&c->tensor[i]), way, i == first + 1 ? by : 1);
    }
    return 0;
}

/* One task at one size. */
typedef struct {
    TaskCase of;
    Workload w;
    GraphBound *b;
    double *in[TASK_MAX_TENSORS], *want[GRAPH_MAX_OUTPUTS], *got[GRAPH_MAX_OUTPUTS], *sorted;
    int64_t n[GRAPH_MAX_OUTPUTS];
    double *louder; /* by node, of its second factor; NULL: as it is */
} Measured;

static int run(Measured *m, Way way, double *const *out, Error *err)
{
    Rounding r = {.tf32 = m->of.task->tf32, .way = way, .louder = m->louder};
    GraphHook hook = {&r, arguments, NULL};
    int rc = graph_run(m->b, (const double *const *)m->in, out,
                       way != EXACT || m->louder ? &hook : NULL, err);
    release(&r);
    return rc;
}

static int draw(Measured *m, Error *err)
{
    const Task *t = m->of.task;
    for (int i = 0; i < t->n_inputs; i++) {
        size_t n;
        if (task_elements(t, &m->w, &t->inputs[i], &n, err)) return -1;
        if (!m->in[i]) m->in[i] = memory_grow(NULL, n + 1, sizeof(double));
        if (task_draw_wide(&m->of, i, m->in[i], err)) return -1;
    }
    return 0;
}

/* ---- errors ---- */

static double relative(double want, double got)
{
    return want == 0 ? 0 : fabs(got / want - 1);
}

/* The relative error that half of a sample of elements have. */
static double middle(Measured *m, int i)
{
    int64_t step = 1 + m->n[i] / MAX_SORTED;
    size_t n = 0;
    for (int64_t k = 0; k < m->n[i]; k += step)
        if (m->want[i][k] != 0 && isfinite(m->got[i][k] / m->want[i][k]))
            m->sorted[n++] = relative(m->want[i][k], m->got[i][k]);
    if (!n) return 0;
    sort_doubles(m->sorted, n);
    return m->sorted[n / 2];
}

/* The middle size of a sample of elements. */
static double middle_size(Measured *m, int i)
{
    int64_t step = 1 + m->n[i] / MAX_SORTED;
    size_t n = 0;
    for (int64_t k = 0; k < m->n[i]; k += step)
        if (isfinite(m->want[i][k])) m->sorted[n++] = fabs(m->want[i][k]);
    if (!n) return 0;
    sort_doubles(m->sorted, n);
    return m->sorted[n / 2];
}

/* Adds what one execution needs. The error of a sum does not shrink with the sum: what the smaller half of
 * the elements needs, atol gives. Beyond, rtol helps. */
static void note(Measured *m, int i, double grown, Tf32Error *out)
{
    double rtol = fmin(MOST_RTOL, HONEST_MARGIN * middle(m, i)), size = middle_size(m, i),
           margin = (m->n[i] < FEW ? MARGIN_FEW : HONEST_MARGIN) *
                    (m->of.variant == VARIANT_DRAWN ? 1 : UNEVEN);
    if (rtol > out->rtol[i]) out->rtol[i] = rtol;
    for (int64_t k = 0; k < m->n[i]; k++) {
        double want = fabs(m->want[i][k]), need = margin * fabs(m->got[i][k] - m->want[i][k]);
        if (want > size && m->n[i] >= FEW) need -= rtol * want;
        if (isfinite(need)) out->atol[i] = fmax(out->atol[i], grown * need);
    }
}

static void allocate(Measured *m)
{
    const GraphBound *b = m->b;
    for (int i = 0; i < b->graph->n_outputs; i++) {
        m->n[i] = op_elements(&b->values[b->graph->output[i]].tensor);
        m->want[i] = memory_array((size_t)m->n[i] + 1, sizeof(double));
        m->got[i] = memory_array((size_t)m->n[i] + 1, sizeof(double));
    }
    m->sorted = memory_array(MAX_SORTED + 1, sizeof *m->sorted);
}

static void measured_free(Measured *m)
{
    for (int i = 0; i < TASK_MAX_TENSORS; i++) free(m->in[i]);
    for (int i = 0; i < GRAPH_MAX_OUTPUTS; i++) free(m->want[i]), free(m->got[i]);
    free(m->sorted);
    free(m->louder);
    graph_bound_free(m->b);
    free(m);
}

/* Weights have the deviation that suits the sums of the case's own sizes: where sums are shorter, what they
 * give is made as large as there. Else signals fade from layer to layer, and the errors with them. */
static int keep_loud(Measured *m, const Workload *own, Error *err)
{
    GraphBound *whole;
    if (task_graph_bind(m->of.task, own, &whole, err)) return -1;
    m->louder = memory_array((size_t)m->b->graph->n_nodes + 1, sizeof *m->louder);
    for (int node = 0; node < m->b->graph->n_nodes; node++) {
        const OpCall *c = &m->b->calls[node].call;
        double terms = (double)sizes_reduced(&m->b->calls[node]);
        int product = op_tf32(c) && !is_recurrent(c) && terms > 0;
        m->louder[node] = product ? sqrt((double)sizes_reduced(&whole->calls[node]) / terms) : 1;
    }
    graph_bound_free(whole);
    return 0;
}

static int measure(Measured *m, double flops, double grown, Tf32Error *out, Error *err)
{
    int draws = (int)fmax(1, fmin(MAX_DRAWS, ALL_FLOPS / (3 * flops + 1))), rc = 0;
    for (int k = 0; k < draws && !rc; k++) {
        m->of.seed = SEED + (uint64_t)k;
        rc = draw(m, err) || run(m, EXACT, m->want, err);
        for (int way = NEAREST; way <= TRUNCATED && !rc; way++) {
            rc = run(m, (Way)way, m->got, err);
            for (int i = 0; i < m->of.task->n_outputs && !rc; i++) note(m, i, grown, out);
        }
    }
    return rc ? -1 : 0;
}

/* By how much errors are larger at `to` than at `at`: of more elements the largest has a larger error, and
 * sums of results are random walks. Sums of products are kept loud. */
static double growth(const MeasuredExtent *to, const MeasuredExtent *at)
{
    double extreme = sqrt(log(2 + fmax(to->elements, at->elements)) / log(2 + at->elements));
    return extreme * sqrt(fmax(1, to->sums / at->sums));
}

/* The sizes at which a case is measured, and by how much errors grow from there. */
static void choose_sizes(const Task *t, Workload *w, double *flops, double *grown)
{
    MeasuredExtent own, at;
    const MeasuredSizes usual = {t, PART_FLOPS, ROW_TERMS, 0},
                        few = {t, SHORT_FLOPS, ROW_TERMS, FEW_TERMS},
                        fewer = {t, PART_FLOPS, ROW_TERMS, FEWER_TERMS};
    MeasuredExtent ignored;
    int rc = measured_sizes(&usual, w, &own, &at);
    if (!rc && at.flops > MOST_FLOPS) rc = measured_sizes(&few, w, &ignored, &at);
    if (!rc && at.flops > MOST_SHORT) rc = measured_sizes(&fewer, w, &ignored, &at);
    *flops = at.flops;
    *grown = growth(&own, &at);
}

static int measure_case(const TaskCase *c, Tf32Error *out, Error *err)
{
    const Task *t = c->task;
    double flops, grown;
    *out = (Tf32Error){0};
    Measured *m = memory_alloc(sizeof *m);
    m->of = *c, m->w = *c->workload;
    m->of.workload = &m->w;
    choose_sizes(t, &m->w, &flops, &grown);
    if (task_graph_bind(t, &m->w, &m->b, err) || keep_loud(m, c->workload, err)) {
        measured_free(m);
        return error_prefix(err, "task %s: errors of TF32", t->name);
    }
    allocate(m);
    int rc = measure(m, flops, grown, out, err);
    measured_free(m);
    return rc;
}

/* A clamp may hide the errors of all elements of the sizes that are measured, and not those of the case's
 * own: an output without errors has those of inputs WIDER times as large, by that factor. */
static int measure_hidden(const TaskCase *c, Tf32Error *out, Error *err)
{
    TaskCase wide = *c;
    int hidden = 0, drawn = c->variant == VARIANT_DRAWN;
    for (int i = 0; i < c->task->n_outputs; i++)
        hidden |= out->atol[i] == 0 && dtype_is_float(c->task->outputs[i].dtype);
    if (!hidden || c->variant > VARIANT_SPECIAL || (drawn && c->scale > 1)) return 0;
    wide.variant = VARIANT_DRAWN;
    wide.scale = drawn ? c->scale * WIDER : WIDER;
    Tf32Error more;
    if (measure_case(&wide, &more, err) || measure_hidden(&wide, &more, err)) return -1;
    for (int i = 0; i < c->task->n_outputs; i++)
        if (out->atol[i] == 0) out->atol[i] = more.atol[i] / WIDER, out->rtol[i] = more.rtol[i];
    return 0;
}

int tf32_measure(const TaskCase *c, Tf32Error *out, Error *err)
{
    *out = (Tf32Error){0};
    if (!c->task->tf32 || !c->task->graph) return 0;
    return measure_case(c, out, err) || measure_hidden(c, out, err) ? -1 : 0;
}

static double rms_of(const double *error, int64_t n)
{
    double sum = 0, counted = 0;
    for (int64_t k = 0; k < n; k++) {
        if (!isfinite(error[k])) continue;
        sum += error[k] * error[k];
        counted++;
    }
    return counted > 0 ? sqrt(sum / counted) : 0;
}

static void note_spread(const Measured *m, Way way, const double *const *want, Tf32Spread *out)
{
    for (int i = 0; i < m->of.task->n_outputs; i++) {
        size_t n = (size_t)m->n[i];
        double *error = out->drift[i];
        if (!error) error = out->drift[i] = memory_array(n + 1, sizeof *error);
        for (size_t k = 0; k < n; k++) error[k] = m->got[i][k] - want[i][k];
        if (way == NEAREST) out->rms[i] = rms_of(error, m->n[i]);
    }
}

/* The checks that task.json lists are few, and are measured whatever they cost. */
static double most_spread(const TaskCase *c)
{
    if (c->workload->role != ROLE_CHECK || (c->scale != 1 && c->scale <= LARGEST_SCALE))
        return SPREAD_FLOPS;
    return c->workload->atol ? LISTED_FLOPS : CHECK_FLOPS;
}

int tf32_spread(const TaskCase *c, const double *const *in, const double *const *want,
                Tf32Spread *out, Error *err)
{
    if (!c->task->tf32 || !c->task->graph) return 1;
    Measured *m = memory_alloc(sizeof *m);
    m->of = *c;
    if (task_graph_bind(c->task, c->workload, &m->b, err)) {
        measured_free(m);
        return -1;
    }
    int rc = sizes_flops(m->b) > most_spread(c);
    if (!rc) allocate(m);
    memcpy(m->in, in, (size_t)c->task->n_inputs * sizeof *in);
    for (int way = NEAREST; way <= TRUNCATED && !rc; way++) {
        rc = run(m, (Way)way, m->got, err);
        if (!rc) note_spread(m, (Way)way, want, out);
    }
    memset(m->in, 0, sizeof m->in); /* they are the caller's */
    measured_free(m);
    return rc;
}

static double largest(const double *x, int64_t n)
{
    double most = 0;
    for (int64_t k = 0; k < n; k++)
        if (isfinite(x[k])) most = fmax(most, fabs(x[k]));
    return most;
}

static void note_own(const Measured *m, Tf32Own *out)
{
    for (int i = 0; i < m->of.task->n_outputs; i++) {
        double margin = m->n[i] < FEW ? MARGIN_FEW : HONEST_MARGIN;
        out->size[i] = largest(m->want[i], m->n[i]);
        for (int64_t k = 0; k < m->n[i]; k++) {
            double error = margin * fabs(m->got[i][k] - m->want[i][k]);
            if (isfinite(error)) out->error[i] = fmax(out->error[i], error);
        }
    }
}

static int measure_own(Measured *m, Tf32Own *out, Error *err)
{
    if (sizes_flops(m->b) > OWN_FLOPS) return 1;
    allocate(m);
    int rc = draw(m, err) || run(m, EXACT, m->want, err);
    for (int way = NEAREST; way <= TRUNCATED && !rc; way++) {
        rc = run(m, (Way)way, m->got, err);
        if (!rc) note_own(m, out);
    }
    return rc ? -1 : 0;
}

int tf32_own(const TaskCase *c, Tf32Own *out, Error *err)
{
    *out = (Tf32Own){0};
    if (!c->task->tf32 || !c->task->graph) return 1;
    Measured *m = memory_alloc(sizeof *m);
    m->of = *c, m->w = *c->workload;
    int rc = task_graph_bind(c->task, c->workload, &m->b, err) ? -1 : measure_own(m, out, err);
    measured_free(m);
    return rc;
}

/* Two executions are compared, operator by operator. */
#include "tasks/cancelled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/row/op_norm.h"
#include "ops/row/op_softmax.h"
#include "tasks/task_graph.h"

static const double SAME = 1e-9; /* of double precision's results */

typedef struct {
    const GraphBound *b;
    double **kept; /* by value: the elements of the first execution */
    double **rows; /* by node: the argument whose rows may be shifted */
    char *moved;   /* by base: its elements are others in the second execution */
    int second, proven, refuted;
} Comparison;

static int differs(double a, double b)
{
    return a != b && !(isnan(a) && isnan(b)) &&
           !(fabs(a - b) <= SAME * (fabs(a) + fabs(b)) + SAME / 1000);
}

/* ---- what a shift of a row does not move ---- */

/* Element i of row r is (i / inner * rows + r) * inner + i % inner where `apart`, else
 * (r / inner * n + i) * inner + r % inner. */
typedef struct {
    int argument; /* in OpCall.tensor */
    int apart;
    int64_t rows, n, inner;
} Rows;

/* The rows of a softmax or a normalisation, or the keys of attention for each of their elements. 0: it has
 * none. */
static int rows_of(const OpCall *c, Rows *out)
{
    Softmax s;
    Norm m;
    if (op_is_of(c->op, &softmax_family) && !softmax_of(c, &s, NULL)) {
        *out = (Rows){0, 0, s.rows, s.n, s.inner};
        return 1;
    }
    if (op_is_of(c->op, &norm_family) && !norm_of(c, &m, NULL) && m.own && m.kind != NORM_RMS) {
        *out = (Rows){m.x_index, 1, m.rows, m.n, m.inner};
        return 1;
    }
    int key = strstr(c->op->name, "attention") ? op_argument(c->op, "key") : -1;
    if (key < 0 || c->arg[key].kind != OP_TENSOR) return 0;
    int at = (int)c->arg[key].integer[0];
    const OpTensor *k = &c->tensor[at];
    int64_t width = k->size[k->rank - 1], n = k->size[k->rank - 2];
    if (!op_elements(k)) return 0;
    *out = (Rows){at, 0, op_elements(k) / n, n, width};
    return 1;
}

static int64_t place(const Rows *o, int64_t r, int64_t i)
{
    return o->apart ? (i / o->inner * o->rows + r) * o->inner + i % o->inner
                    : (r / o->inner * o->n + i) * o->inner + r % o->inner;
}

/* Is each row of x the same row of a plus one number? */
static int is_shifted(const Rows *o, const double *a, const double *x)
{
    for (int64_t r = 0; r < o->rows; r++) {
        double by = 0;
        int known = 0;
        for (int64_t i = 0; i < o->n; i++) {
            int64_t at = place(o, r, i);
            if (isinf(a[at]) && a[at] == x[at]) continue; /* a mask */
            if (known && !(fabs(x[at] - a[at] - by) <= SAME * (1 + fabs(x[at]) + fabs(a[at]))))
                return 0;
            if (!known) by = x[at] - a[at], known = 1;
        }
    }
    return 1;
}

/* ---- executions ---- */

static double *copy(const double *x, int64_t n)
{
    double *to = memory_grow(NULL, (size_t)n + 1, sizeof *to);
    memcpy(to, x, (size_t)n * sizeof *to);
    return to;
}

static void keep(Comparison *k, const GraphStep *s)
{
    const GraphCall *c = &s->b->calls[s->node];
    Rows rows;
    for (int i = 0; i < c->call.n_results; i++)
        k->kept[s->b->graph->first[s->node] + i] = copy(s->out[i], op_elements(&c->call.result[i]));
    if (rows_of(&c->call, &rows))
        k->rows[s->node] = copy(s->in[rows.argument], op_elements(&c->call.tensor[rows.argument]));
}

static void compare(Comparison *k, const GraphStep *s)
{
    const GraphCall *c = &s->b->calls[s->node];
    const GraphValue *values = s->b->values;
    Rows rows;
    int taken = -1, others = 0, moved = 0;
    int has_rows = rows_of(&c->call, &rows);
    for (int i = 0; i < c->call.n_tensors; i++) {
        if (!k->moved[values[c->in[i]].base]) continue;
        taken = i;
        others |= !has_rows || i != rows.argument;
    }
    for (int i = 0; i < c->call.n_results; i++) {
        int value = s->b->graph->first[s->node] + i, own = 0;
        int64_t n = op_elements(&c->call.result[i]);
        for (int64_t e = 0; e < n && !own; e++) own = differs(k->kept[value][e], s->out[i][e]);
        k->moved[values[value].base] |= own;
        moved |= own;
    }
    if (taken < 0 || moved) return;
    int holds = !others && is_shifted(&rows, k->rows[s->node], s->in[rows.argument]);
    k->proven |= holds;
    k->refuted |= !holds;
}

static int step(void *ctx, const GraphStep *s, Error *err)
{
    Comparison *k = ctx;
    (void)err;
    if (k->second)
        compare(k, s);
    else
        keep(k, s);
    return 0;
}

static int run(Comparison *k, const Task *t, const double *const *in)
{
    double *out[TASK_MAX_TENSORS];
    GraphHook hook = {k, NULL, step};
    for (int i = 0; i < t->n_outputs; i++) {
        const GraphValue *v = &k->b->values[t->graph->output[i]];
        out[i] = memory_array((size_t)op_elements(&v->tensor) + 1, sizeof **out);
    }
    int rc = graph_run(k->b, in, out, &hook, NULL);
    for (int i = 0; i < t->n_outputs; i++) free(out[i]);
    return rc;
}

int cancelled_input(const Task *t, const Workload *w, const double *const *in, int input,
                    const double *elements)
{
    const double *other[TASK_MAX_TENSORS];
    GraphBound *b;
    if (!t->graph || task_graph_bind(t, w, &b, NULL)) return 0;
    size_t values = (size_t)t->graph->n_values + 1, nodes = (size_t)t->graph->n_nodes + 1;
    Comparison k = {.b = b,
                    .kept = memory_array(values, sizeof *k.kept),
                    .rows = memory_array(nodes, sizeof *k.rows),
                    .moved = memory_array(values, 1)};
    memcpy(other, in, (size_t)t->n_inputs * sizeof *other);
    other[input] = elements;
    int rc = run(&k, t, in);
    k.second = k.moved[b->values[input].base] = 1;
    if (!rc) rc = run(&k, t, other);
    for (size_t i = 0; i < values; i++) free(k.kept[i]);
    for (size_t i = 0; i < nodes; i++) free(k.rows[i]);
    free(k.kept);
    free(k.rows);
    free(k.moved);
    graph_bound_free(b);
    return !rc && k.proven && !k.refuted;
}

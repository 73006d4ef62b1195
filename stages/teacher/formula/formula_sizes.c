/* Sizes of a graph whose axes cannot be any primes: because of constraints, groups of channels, or tensors
 * that would be too large. Each axis gets a size that no other has and that the graph allows; a size that
 * is no axis gets the expression that derivations find. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stages/teacher/formula/formula_read.h"

enum { ATTEMPTS = 6, MAX_VALUES = 512 };

/* A dimension of a value of the graph; value -1: an axis. */
typedef struct {
    int value, dim;
} Place;

static void fill_tensors(DraftTensor *to, const TaskTensor *from, int n)
{
    for (int i = 0; i < n; i++) {
        to[i] = (DraftTensor){.name = from[i].name, .dtype = from[i].dtype, .rank = from[i].rank};
        for (int d = 0; d < from[i].rank; d++) to[i].shape[d] = from[i].shape[d];
    }
}

/* The task as a draft. least: no axis is smaller, so that none counts as a number. */
static int open_draft(const Task *t, int64_t least, Derivation *out, Error *err)
{
    const Workload *w = task_workload(t, ROLE_TIME);
    DraftAxis axes[TASK_MAX_AXES] = {{0}};
    Draft d = {.name = t->name,
               .level = t->level,
               .axes = axes,
               .n_axes = t->n_axes,
               .constraints = (const char *const *)t->constraints,
               .n_constraints = t->n_constraints,
               .n_inputs = t->n_inputs,
               .n_outputs = t->n_outputs,
               .lines = (const char *const *)t->graph->text,
               .n_lines = t->graph->n_nodes};
    if (!w) return error_set(err, ERROR_UNSUPPORTED, "task %s has no timed workload", t->name);
    for (int i = 0; i < t->n_axes; i++) {
        axes[i].name = t->axis_name[i];
        axes[i].size = w->axis[i] < least ? least : w->axis[i];
    }
    DraftTensor *inputs = memory_array((size_t)t->n_inputs, sizeof *inputs),
                *outputs = memory_array((size_t)t->n_outputs, sizeof *outputs);
    fill_tensors(inputs, t->inputs, t->n_inputs);
    fill_tensors(outputs, t->outputs, t->n_outputs);
    d.inputs = inputs, d.outputs = outputs;
    int rc = derivation_open(out, &d, err);
    free(inputs);
    free(outputs);
    return rc;
}

/* Gives an axis a size that is no other axis's, and lies far from them, because windows make a size a
 * little smaller or larger. Its own stays where no other fits. first: of the primes that are tried. */
static void choose_size(const Derivation *v, Sizes *s, int axis, size_t first)
{
    static const int primes[] = {97,  113, 139, 167, 193, 227, 257, 283, 311,
                                 337, 367, 397, 431, 461, 491, 521, 29,  53};
    static const int times[] = {1, 2, 4, 8, 16, 32, 64, 3, 5, 6, 10, 12, 7};
    int64_t own = s->at[axis];
    size_t n_primes = sizeof primes / sizeof *primes;
    for (size_t k = 0; k < sizeof times / sizeof *times; k++)
        for (size_t i = 0; i < n_primes; i++) {
            int taken = 0;
            s->at[axis] = (int64_t)primes[(i + first) % n_primes] * times[k];
            for (int o = 0; o < v->draft.n_axes; o++) taken |= o != axis && s->at[o] == s->at[axis];
            if (taken) continue;
            if (!derivation_fits(v, s)) return;
            break; /* another prime rarely does */
        }
    s->at[axis] = own;
}

static int64_t place_size(const GraphBound *b, const Sizes *s, const Place *p)
{
    return p->value < 0 ? s->at[p->dim] : b->values[p->value].tensor.size[p->dim];
}

static int all_places(const FormulaReader *r, Place *to)
{
    int n = 0;
    for (int i = 0; i < r->sizes->draft.n_axes; i++) to[n++] = (Place){-1, i};
    for (int v = 0; v < r->b->graph->n_values; v++)
        for (int d = 0; d < r->b->values[v].tensor.rank && r->b->values[v].live; d++)
            to[n++] = (Place){v, d};
    return n;
}

/* A number stands for one size: what is equal here is so at other sizes of the axes too. */
static int check_numbers(const FormulaReader *r, const Sizes *s, size_t other, Error *err)
{
    Sizes t = derivation_own(r->sizes);
    GraphBound *b;
    int rc = 0, largest = r->sizes->draft.n_axes + r->b->graph->n_values * OP_MAX_RANK;
    for (int i = 0; i < r->sizes->draft.n_axes; i++) choose_size(r->sizes, &t, i, other);
    if (derivation_bind(r->sizes, &t, &b, err)) return -1;
    Place *place = memory_array((size_t)largest + 1, sizeof *place);
    int n = all_places(r, place);
    for (int i = 0; i < n && !rc; i++)
        for (int k = 0; k < i && !rc; k++)
            if (place_size(r->b, s, &place[i]) == place_size(r->b, s, &place[k]) &&
                place_size(b, &t, &place[i]) != place_size(b, &t, &place[k]))
                rc = error_set(err, ERROR_UNSUPPORTED, "two sizes look the same");
    free(place);
    graph_bound_free(b);
    return rc;
}

int formula_bind_freely(FormulaReader *r, Error *err)
{
    const Task *t = r->f->task;
    if (t->graph->n_values > MAX_VALUES)
        return error_set(err, ERROR_UNSUPPORTED, "task %s has too many operators", t->name);
    r->sizes = memory_alloc(sizeof *r->sizes);
    if (open_draft(t, 2, r->sizes, err) && open_draft(t, 1, r->sizes, err)) {
        free(r->sizes);
        r->sizes = NULL;
        return error_prefix(err, "task %s: its sizes are not free", t->name);
    }
    Sizes s;
    int rc = -1;
    for (size_t first = 0; first < ATTEMPTS && rc; first++) {
        s = derivation_own(r->sizes);
        for (int i = 0; i < r->sizes->draft.n_axes; i++) choose_size(r->sizes, &s, i, first);
        if (derivation_bind(r->sizes, &s, &r->b, err)) return -1;
        rc = check_numbers(r, &s, first + ATTEMPTS, err);
        if (rc) graph_bound_free(r->b);
    }
    for (int i = 0; i < r->sizes->draft.n_axes; i++)
        formula_size(r, s.at[i], r->sizes->axes[i].name);
    return rc;
}

static int64_t size_at(const Derivation *v, const GraphBound *b, const void *what)
{
    const Place *p = what;
    (void)v;
    return b->values[p->value].tensor.size[p->dim];
}

int formula_find_size(FormulaReader *r, int64_t n, char out[FORMULA_TEXT])
{
    for (int v = 0; v < r->b->graph->n_values; v++)
        for (int d = 0; d < r->b->values[v].tensor.rank; d++) {
            Place p = {v, d};
            if (!r->b->values[v].live || r->b->values[v].tensor.size[d] != n) continue;
            char *text = derivation_expression(r->sizes, size_at, &p);
            if (!text) continue;
            int len = snprintf(out, FORMULA_TEXT, strchr(text, ' ') ? "(%s)" : "%s", text);
            free(text);
            if (len >= FORMULA_TEXT) continue;
            formula_size(r, n, out);
            return 0;
        }
    return -1;
}

void formula_close_sizes(FormulaReader *r)
{
    if (!r->sizes) return;
    derivation_release(r->sizes);
    free(r->sizes);
    r->sizes = NULL;
}

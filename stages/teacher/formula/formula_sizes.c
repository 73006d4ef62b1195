/* Sizes of a graph whose axes cannot be any primes: because of constraints, groups of channels, or tensors
 * that would be too large. Each axis gets a size that no other has and that the graph allows; a size that
 * is no axis gets the expression that derivations find. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/size.h"
#include "stages/teacher/formula/formula_read.h"

enum { ATTEMPTS = 6, MAX_VALUES = 512 };

/* A dimension of a value of the graph; value -1: an axis. */
typedef struct {
    int value, dim;
} Place;

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
    for (int i = 0; i < r->sizes->draft.n_axes; i++) size_choose(r->sizes, &t, i, other);
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
    if (size_derivation(t, 2, r->sizes, err) && size_derivation(t, 1, r->sizes, err)) {
        free(r->sizes);
        r->sizes = NULL;
        return error_prefix(err, "task %s: its sizes are not free", t->name);
    }
    Sizes s;
    int rc = -1;
    for (size_t first = 0; first < ATTEMPTS && rc; first++) {
        s = derivation_own(r->sizes);
        for (int i = 0; i < r->sizes->draft.n_axes; i++) size_choose(r->sizes, &s, i, first);
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

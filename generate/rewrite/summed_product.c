/* Sums over a matrix product's columns: products with sums of its weights. */
#include "generate/rewrite/summed_text.h"

#include <stdio.h>

/* The sum or mean of a tensor over one dimension, as the replaced line folds. */
static void put_fold(Lines *l, char out[GRAPH_NAME], const char *of, int dim)
{
    const char *op = lines_is(l, l->at, "mean") ? "mean.dim" : "sum.dim_IntList";
    lines_make(l, out, "aten.%s(%s, [%d])", op, of, dim);
}

void sums_put_chain(Lines *l, const Summed *s, char y[GRAPH_NAME])
{
    char x[GRAPH_NAME], number[GRAPH_NAME];
    for (int i = 0; i < s->n_chain; i++) {
        const GraphCall *c = &l->bound->calls[s->chain[i]];
        snprintf(x, sizeof x, "%s", y);
        if (c->call.n_tensors == 2)
            put_fold(l, number, lines_name(l, c->in[1]), 0);
        else
            lines_argument(l, s->chain[i], 1, number);
        lines_make(l, y, "%s(%s%s%s)", c->call.op->name, x, *number ? ", " : "", number);
    }
}

/* Means of neighbouring columns: of neighbouring rows of the weights. */
static void put_groups(Lines *l, const Summed *s, const char *of, int dims, char out[GRAPH_NAME])
{
    char n[SIZE_TEXT], part[GRAPH_NAME], view[GRAPH_NAME];
    lines_size(l, l->graph->first[l->at], 2, n);
    lines_make(l, part, "aten.slice.Tensor(%s, 0, 0, (%s) * %d)", of, n, s->group);
    lines_make(l, view, "aten.view.default(%s, [%s, %d%s])", part, n, s->group,
               dims > 1 ? ", -1" : "");
    lines_make(l, out, "aten.mean.dim(%s, [1])", view);
}

static int put_pool(Lines *l, const Summed *s)
{
    const GraphCall *c = &l->bound->calls[s->product];
    char weight[GRAPH_NAME], bias[GRAPH_NAME] = "None", y[GRAPH_NAME];
    if (!lines_is(l, s->product, "linear")) return 1;
    put_groups(l, s, lines_name(l, c->in[1]), 2, weight);
    if (c->call.n_tensors > 2) put_groups(l, s, lines_name(l, c->in[2]), 1, bias);
    lines_make(l, y, "aten.linear.default(%s, %s, %s)", lines_name(l, c->in[0]), weight, bias);
    lines_end(l, "aten.unsqueeze.default(%s, 1)", y);
    return l->failed ? -1 : 0;
}

int sums_of_product(Lines *l, const Summed *s)
{
    const GraphCall *c = &l->bound->calls[s->product], *sum = &l->bound->calls[l->at];
    const int linear = lines_is(l, s->product, "linear");
    char weight[GRAPH_NAME], terms[GRAPH_NAME], x[GRAPH_NAME], y[GRAPH_NAME];
    if (s->group) return put_pool(l, s);
    put_fold(l, weight, lines_name(l, c->in[1]), !linear);
    lines_make(l, terms, "aten.mul.Tensor(%s, %s)", lines_name(l, c->in[0]), weight);
    lines_make(l, y, "aten.sum.dim_IntList(%s, [-1])", terms);
    if (c->call.n_tensors > 2) {
        put_fold(l, weight, lines_name(l, c->in[2]), 0);
        snprintf(x, sizeof x, "%s", y);
        lines_make(l, y, "aten.add.Tensor(%s, %s)", x, weight);
    }
    sums_put_chain(l, s, y);
    if (sum->call.result[0].rank == sum->call.tensor[0].rank)
        lines_end(l, "aten.unsqueeze.default(%s, -1)", y);
    else
        lines_end(l, "aten.clone.default(%s)", y);
    return l->failed ? -1 : 0;
}

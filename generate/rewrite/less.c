/* A task's graph with sums of products as products of sums. */
#include "generate/rewrite/less.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "generate/rewrite/settle.h"
#include "generate/rewrite/summed_text.h"
#include "tasks/graph/settled.h"

/* 1: the graph has such a sum at its timed sizes. */
static int may_gain(const Task *t, Error *err)
{
    Derivation own;
    GraphBound *b = NULL;
    Summed s;
    int64_t stride;
    int found = 0;
    if (size_derivation(t, 1, &own, err)) return 0;
    const Sizes sizes = derivation_own(&own);
    if (!derivation_bind(&own, &sizes, &b, err))
        for (int i = 0; i < b->graph->n_nodes && !found; i++)
            found = graph_summed(b, i, &s) || graph_settled(b, i) >= 0 ||
                    graph_pooled(b, i, &stride) >= 0;
    graph_bound_free(b);
    derivation_release(&own);
    return found;
}

/* 1: the schedule does not undo the rewrite of a line. */
static int is_chosen(Genes *genes, const Lines *l)
{
    char key[GRAPH_NAME];
    snprintf(key, sizeof key, "%.44s", lines_name(l, l->graph->first[l->at]));
    return genes_choose(genes, key, &(GenePoint){.gene = GENE_LESS, .by_default = 1, .most = 1});
}

/* The argument that a choice is at all bindings; -1: it is none. */
static int settled(const Lines *l)
{
    const int at = graph_settled(l->bound, l->at);
    for (int k = 1; k < SIZE_BINDINGS; k++)
        if (graph_settled(l->sizes->bound[k], l->at) != at) return -1;
    return at;
}

/* Writes what a line's sums are of the factors of a product. 0; 1: it stays; -1. */
static int write_sums(Lines *l, Genes *genes)
{
    Summed s;
    int64_t stride;
    const int pooled = graph_pooled(l->bound, l->at, &stride);
    if (pooled >= 0 && is_chosen(genes, l)) return averages_of_convolution(l, pooled);
    if (!graph_summed(l->bound, l->at, &s) || !is_chosen(genes, l)) return 1;
    return lines_is(l, s.product, "linear") || lines_is(l, s.product, "matmul") ||
                   lines_is(l, s.product, "mm")
               ? sums_of_product(l, &s)
               : sums_of_convolution(l, &s);
}

/* Returns how many lines were replaced, or -1. */
static int write_lines(Lines *l, Genes *genes)
{
    int found = 0;
    for (l->at = 0; l->at < l->graph->n_nodes; l->at++) {
        const int chosen = settled(l);
        if (chosen >= 0 && is_chosen(genes, l)) {
            lines_end(l, "aten.clone.default(%s)",
                      lines_name(l, l->bound->calls[l->at].in[chosen]));
            found++;
            continue;
        }
        const int rc = write_sums(l, genes);
        if (rc < 0) return -1;
        if (rc) lines_copy(l, l->at);
        found += !rc;
    }
    return found;
}

static int read_lines(const Task *t, const Lines *l, Task **out, Error *err)
{
    const char **in = memory_array((size_t)t->n_inputs + 1, sizeof *in),
               **to = memory_array((size_t)t->n_outputs + 1, sizeof *to);
    GraphSource s = {.lines = (const char *const *)l->line,
                     .n_lines = l->n,
                     .inputs = in,
                     .n_inputs = t->n_inputs,
                     .outputs = to,
                     .n_outputs = t->n_outputs};
    Graph *g = NULL;
    for (int i = 0; i < t->n_inputs; i++) in[i] = t->inputs[i].name;
    for (int i = 0; i < t->n_outputs; i++) to[i] = t->outputs[i].name;
    int rc = graph_read(&s, &g, err);
    free(in);
    free(to);
    if (rc) return -1;
    *out = memory_alloc(sizeof **out);
    **out = *t;
    (*out)->graph = g;
    return 0;
}

int rewrite_task(const Task *t, Genes *genes, Task **out, Error *err)
{
    Lines l = {.task = t, .graph = t->graph, .err = err};
    *out = NULL;
    if (!t->graph || !may_gain(t, err)) return 0;
    SizeTable *sizes = memory_alloc(sizeof *sizes);
    if (size_open(sizes, t, err)) {
        free(sizes);
        return -1;
    }
    l.sizes = sizes;
    l.bound = sizes->bound[0];
    int found = write_lines(&l, genes), rc = found < 0 ? -1 : 0;
    if (found > 0) rc = read_lines(t, &l, out, err);
    lines_free(&l);
    size_close(sizes);
    free(sizes);
    return rc;
}

void rewrite_free(Task *t)
{
    if (!t) return;
    graph_free(t->graph);
    free(t);
}

int generate_least(const Task *task, Genes *genes, Estimate *estimate, Generated *out, Error *err)
{
    Task *less;
    Error unused;
    const int points = genes ? genes->n : 0;
    if (!rewrite_task(task, genes, &less, &unused) && less) {
        const int rc = generate_settled(less, genes, estimate, out, &unused);
        rewrite_free(less);
        if (!rc && !out->why[0]) return 0;
        if (!rc) free(out->source);
        if (estimate) estimate_clear(estimate);
        if (genes) genes->n = points;
    }
    return generate_settled(task, genes, estimate, out, err);
}

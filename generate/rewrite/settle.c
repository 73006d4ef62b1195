/* Values are stored, one after another, while that makes the plan faster by the model. */
#include "generate/rewrite/settle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* MOST_LINES: of a graph; larger ones repeat their layers, and what one stores another one does not.
 * MOST_TRIES: plans that are written, about a millisecond each. */
enum { MOST_LINES = 100, MOST_TRIES = 64 };

/* The model errs by more than that between two plans of other kernels (2026-12-01). */
static const double share_gained = 0.1, us_gained = 2;

/* A plan by the model. us: all of its kernels; below 0: it cannot be written, or not by the model. */
typedef struct {
    Genes genes;
    double us;
    int n_lines;
} Trial;

static void try_plan(const Task *task, const Profile *gpu, Trial *t)
{
    Estimate e = {.gpu = gpu, .times_only = 1};
    Generated g;
    Error unused;
    t->us = -1;
    if (generate_first(task, &t->genes, &e, &g, &unused)) return;
    t->us = *g.why ? -1 : 0;
    for (int i = 0; i < e.n && t->us >= 0; i++) t->us += e.kernel[i].us;
    t->n_lines = g.n_lines;
    estimate_clear(&e);
    free(g.source);
}

/* 1: a value that is computed by default, and of which the schedule says nothing. */
static int is_open(const Genes *given, const GenePoint *p)
{
    if (p->gene != GENE_STORE || p->value || p->by_default) return 0;
    for (int i = 0; i < given->n_given; i++)
        if (given->given[i].gene == GENE_STORE && !strcmp(given->given[i].of, p->of)) return 0;
    return 1;
}

/* The value whose storing makes the plan fastest, among those that gain enough; NULL: none does. */
static const GenePoint *find_best(const Task *task, const Profile *gpu, const Trial *base,
                                  const Genes *given, int *tries)
{
    const GenePoint *best = NULL;
    double us = fmin(base->us * (1 - share_gained), base->us - us_gained);
    for (int i = 0; i < base->genes.n && *tries < MOST_TRIES; i++) {
        const GenePoint *p = &base->genes.point[i];
        Trial t = {{0}, 0, 0};
        if (!is_open(given, p)) continue;
        ++*tries;
        genes_give_all(&t.genes, given);
        genes_give(&t.genes, p->of, GENE_STORE, 1);
        try_plan(task, gpu, &t);
        genes_free(&t.genes);
        if (t.us < 0 || t.n_lines != base->n_lines || t.us > us) continue;
        us = t.us;
        best = p;
    }
    return best;
}

/* Adds what is stored to the genes that are given. Returns how many values. */
static int settle(const Task *task, const Profile *gpu, Genes *given)
{
    const GenePoint *best = NULL;
    int found = 0, tries = 0;
    do {
        Trial base = {{0}, 0, 0};
        genes_give_all(&base.genes, given);
        try_plan(task, gpu, &base);
        best = base.us > 0 ? find_best(task, gpu, &base, given, &tries) : NULL;
        if (best) genes_give(given, best->of, GENE_STORE, 1), found++;
        genes_free(&base.genes);
    } while (best);
    return found;
}

int generate_settled(const Task *task, Genes *genes, Estimate *estimate, Generated *out, Error *err)
{
    Error unused;
    const Profile *gpu = profile_find("h200", &unused); /* the same plan for every device */
    Genes given = {0};
    if (!genes || !gpu || !task->graph || task->graph->n_nodes > MOST_LINES)
        return generate_first(task, genes, estimate, out, err);
    genes_give_all(&given, genes);
    if (!settle(task, gpu, &given)) {
        genes_free(&given);
        return generate_first(task, genes, estimate, out, err);
    }
    given.point = genes->point;
    given.n = genes->n;
    const int rc = generate_first(task, &given, estimate, out, err);
    for (int i = 0; i < genes->n_given; i++) genes->given[i].used = given.given[i].used;
    genes->point = given.point;
    genes->n = given.n;
    given.point = NULL;
    genes_free(&given);
    return rc;
}

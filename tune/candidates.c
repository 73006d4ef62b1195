/* Kernels by their genes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "generate/rewrite/less.h"
#include "tune/tune.h"

/* What the model takes for so many times as slow as the fastest is not judged. */
static const double slow_factor = 2.5;

/* The source behind its schedule. */
static const char *body_of(const char *source)
{
    static const char mark[] = "//@ schedule ";
    while (!strncmp(source, mark, sizeof mark - 1)) source += strcspn(source, "\n") + 1;
    return source;
}

static int is_there(const Tune *t, uint64_t body)
{
    for (int i = 0; i < t->n; i++)
        if (t->all[i]->body == body) return 1;
    return 0;
}

/* 0: no time is known. */
static double fastest_model(const Tune *t)
{
    double us = 0;
    for (int i = 0; i < t->n; i++)
        if (t->all[i]->model_us > 0 && (us <= 0 || t->all[i]->model_us < us))
            us = t->all[i]->model_us;
    return us;
}

static void candidate_free(TuneCandidate *c)
{
    if (!c) return;
    genes_free(&c->genes);
    free(c->source);
    free(c->kernel);
    free(c);
}

static TuneCandidate *make(const Tune *t, const Genes *given, Error *err)
{
    TuneCandidate *c = memory_alloc(sizeof *c);
    Estimate e = {.gpu = t->o->gpu};
    Generated g = {0};
    PlanCost cost;
    int known;
    c->job = c->rank_job = -1;
    genes_give_all(&c->genes, given);
    if (generate_least(t->o->sized, &c->genes, &e, &g, err) ||
        plan_cost(t->o->sized, g.source, &e, &cost, &known, err)) {
        free(g.source);
        estimate_clear(&e);
        candidate_free(c);
        return NULL;
    }
    const char *body = body_of(g.source);
    c->source = g.source;
    snprintf(c->why, sizeof c->why, "%s", g.why);
    c->body = random_hash(body, strlen(body));
    c->model_us = known ? cost.us : 0;
    c->n_kernels = e.n;
    c->kernel = e.kernel;
    return c;
}

int tune_add(Tune *t, const Genes *given, const char *moved, Error *err)
{
    TuneCandidate *c = make(t, given, err);
    if (!c) return t->n ? -1 : -2; /* a schedule that cannot be written is none */
    int equal = is_there(t, c->body), slow = c->model_us > slow_factor * fastest_model(t);
    if (!t->n || fastest_model(t) <= 0) slow = 0;
    if (equal || slow) {
        t->equal += equal;
        t->slow += !equal;
        candidate_free(c);
        return -1;
    }
    snprintf(c->moved, sizeof c->moved, "%s", moved);
    t->all = memory_grow(t->all, (size_t)t->n + 1, sizeof(TuneCandidate *));
    t->all[t->n] = c;
    return t->n++;
}

/* The i-th choice of each kernel, or its last one; the same values lie in memory. */
static void give_ranked(Genes *g, const TuneCandidate *c, int i)
{
    for (int k = 0; k < c->genes.n; k++) {
        const GenePoint *p = &c->genes.point[k];
        if (p->gene == GENE_STORE) genes_give(g, p->of, p->gene, p->value);
    }
    for (int k = 0; k < c->n_kernels; k++) {
        const KernelEstimate *e = &c->kernel[k];
        if (!e->n_ranked) continue;
        const GeneVector *v = &e->ranked[i < e->n_ranked ? i : e->n_ranked - 1];
        for (int j = 0; j < v->n; j++) genes_give(g, e->of, v->gene[j], v->value[j]);
    }
}

int tune_add_ranked(Tune *t, int n, Error *err)
{
    for (int i = 0; i < n; i++) {
        Genes g = {0};
        give_ranked(&g, t->all[0], i);
        int rc = tune_add(t, &g, "by the model", err);
        genes_free(&g);
        if (rc < -1) return -1;
    }
    return 0;
}

/* ---- moves ---- */

/* How much time a point can move: that of its kernel. A product's route comes first. */
static double time_at(const TuneCandidate *c, const GenePoint *p)
{
    if (p->gene == GENE_ROUTE) return HUGE_VAL;
    for (int i = 0; i < c->n_kernels; i++)
        if (!strcmp(c->kernel[i].of, p->of)) return c->kernel[i].us;
    return 0;
}

/* The next value of a point, below or above its own; -1: there is none. */
static int neighbour(const GenePoint *p, int up)
{
    const GeneRow *r = gene_row(p->gene);
    int found = -1;
    for (int i = 0; i < r->n; i++) {
        int v = r->value[i];
        if (v < p->least || v > p->most) continue;
        if (up && v > p->value && found < 0) found = v;
        if (!up && v < p->value) found = v;
    }
    return found;
}

/* The point of which so many have more of the time; those of equal time in their order. */
static const GenePoint *point_at(const TuneCandidate *c, int place)
{
    for (int i = 0; i < c->genes.n; i++) {
        double us = time_at(c, &c->genes.point[i]);
        int before = 0;
        for (int k = 0; k < c->genes.n; k++) {
            double other = time_at(c, &c->genes.point[k]);
            before += other > us || (other == us && k < i);
        }
        if (before == place) return &c->genes.point[i];
    }
    return NULL;
}

static int add_move(Tune *t, const TuneCandidate *c, const GenePoint *p, int value, Error *err)
{
    Genes g = {0};
    char moved[120];
    const GeneRow *r = gene_row(p->gene);
    for (int i = 0; i < c->genes.n; i++)
        genes_give(&g, c->genes.point[i].of, c->genes.point[i].gene, c->genes.point[i].value);
    genes_give(&g, p->of, p->gene, value);
    if (r->word)
        snprintf(moved, sizeof moved, "%s %s=%s", p->of, r->name, value ? r->word[1] : r->word[0]);
    else
        snprintf(moved, sizeof moved, "%s %s=%d", p->of, r->name, value);
    int at = tune_add(t, &g, moved, err);
    genes_free(&g);
    return at;
}

int tune_add_moves(Tune *t, TuneCandidate *c, int n, Error *err)
{
    int added = 0;
    for (; c->next_move < 2 * c->genes.n && added < n; c->next_move++) {
        const GenePoint *p = point_at(c, c->next_move / 2);
        int value = neighbour(p, c->next_move % 2), at = -1;
        if (value >= 0) at = add_move(t, c, p, value, err);
        if (at < -1) return -1;
        added += at >= 0;
    }
    return added;
}

void tune_free(Tune *t)
{
    for (int i = 0; i < t->n; i++) candidate_free(t->all[i]);
    free(t->all);
    submitter_free(t->submitter);
}

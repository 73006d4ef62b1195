/* Draws schedules of plain kernels. */
#include "generate/draw/draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "generate/draw/plain_text.h"
#include "tasks/designs.h"

/* A source of more text is drawn again, nearer to the first candidate. */
enum { MOST_TEXT = 3200, ROUNDS = 5, TRIES = 4 };

/* The share of draws that are simple to write, and of these the share with one operator a kernel. */
#define SIMPLE 0.5
#define APART 0.4

typedef struct {
    const Task *task;
    const DrawOptions *o;
    Random random;
    double rate; /* the share of genes that get another value than the default */
    Genes given;
    int simple, apart; /* no vectors and no tricks; and one operator of the graph a kernel */
    int own; /* products are sums of the kernels' own: op lines would be all that there is */
} Drawing;

static int is_withheld(const Drawing *d, const GenePoint *p, int value)
{
    const GeneRow *r = gene_row(p->gene);
    char text[24];
    snprintf(text, sizeof text, "%d", value);
    for (int i = 0; i < r->n && r->word; i++)
        if (r->value[i] == value) snprintf(text, sizeof text, "%s", r->word[i]);
    return designs_has(d->o->without, d->task->op_type, r->name, text, strlen(text));
}

/* The share of draws in which a gene leaves its default. */
static double rate_of(const Drawing *d, const GenePoint *p)
{
    return p->gene == GENE_STORE ? d->rate / 3 : d->rate;
}

/* The value of a gene in kernels that are simple to write; -1: any value is. */
static int simple_value(const Drawing *d, const GenePoint *p)
{
    if (p->gene == GENE_STORE)
        return d->apart && graph_find(size_graph(d->task), p->of, strlen(p->of)) >= 0;
    if (p->gene == GENE_OWN) return 0;
    if (p->gene == GENE_VEC || p->gene == GENE_ITEMS) return 1;
    if (p->gene == GENE_REDUCE) return REDUCE_BY_SHUFFLE;
    return p->gene == GENE_PASS ? 2 : -1;
}

static int draw_value(Drawing *d, const GenePoint *p)
{
    const GeneRow *r = gene_row(p->gene);
    int other[GENES_VALUES], n = 0;
    const double chance = random_uniform(&d->random);
    const uint64_t which = random_u64(&d->random);
    const int simple = d->simple ? simple_value(d, p) : -1;
    if (p->gene == GENE_OWN && d->own) return 1;
    if (simple >= p->least && simple <= p->most && !is_withheld(d, p, simple)) return simple;
    for (int i = 0; i < r->n; i++) {
        const int v = r->value[i];
        if (v >= p->least && v <= p->most && v != p->by_default && !is_withheld(d, p, v))
            other[n++] = v;
    }
    const int leaves = chance < rate_of(d, p) || is_withheld(d, p, p->by_default);
    return n && leaves ? other[which % (uint64_t)n] : p->by_default;
}

static int is_given(const Genes *g, const GenePoint *p)
{
    for (int i = 0; i < g->n_given; i++)
        if (g->given[i].gene == p->gene && !strcmp(g->given[i].of, p->of)) return 1;
    return 0;
}

/* Writes the kernels that the drawn genes describe, which become the points of out->genes. */
static int write_drawn(const Drawing *d, Plain *plain, Drawn *out, Error *err)
{
    Generated g;
    draw_release(out);
    for (int i = 0; i < d->given.n_given; i++)
        genes_give(&out->genes, d->given.given[i].of, d->given.given[i].gene,
                   d->given.given[i].value);
    if (generate_plain(d->task, &out->genes, plain, &g, err)) return -1;
    out->source = g.source;
    out->n_kernels = g.n_kernels;
    out->n_lines = g.n_lines;
    return 0;
}

/* Draws the genes of which nothing is known yet. What is drawn may lead to other kernels, with other genes.
 * Returns how many there were. */
static int draw_points(Drawing *d, const Genes *points)
{
    int n = 0;
    for (int i = 0; i < points->n; i++) {
        if (is_given(&d->given, &points->point[i])) continue;
        genes_give(&d->given, points->point[i].of, points->point[i].gene,
                   draw_value(d, &points->point[i]));
        n++;
    }
    return n;
}

static int draw_once(Drawing *d, Plain *plain, Drawn *out, Error *err)
{
    genes_free(&d->given);
    int rc = write_drawn(d, plain, out, err);
    for (int i = 0; i < ROUNDS && !rc; i++) {
        if (!draw_points(d, &out->genes)) break;
        rc = write_drawn(d, plain, out, err);
        if (!rc && !out->n_kernels && !d->own) { /* nothing but op lines */
            d->own = 1;
            genes_free(&d->given);
        }
    }
    if (!rc && !out->n_kernels)
        rc = error_set(err, ERROR_UNSUPPORTED, "task %s: every operator is an op line",
                       d->task->name);
    return rc;
}

/* Makes a mistake that the drawn kernel has a place for. */
static int make_mistake(Drawing *d, const Plain *seen, Drawn *out, Error *err)
{
    Slip can[SLIPS];
    int n = 0;
    for (int s = SLIP_NONE + 1; s < SLIPS; s++)
        if (seen->places[s]) can[n++] = (Slip)s;
    if (!n) return 0;
    Plain wrong = {.write = plain_write, .slip = can[random_below(&d->random, (uint64_t)n)]};
    wrong.at = (int)random_below(&d->random, (uint64_t)seen->places[wrong.slip]);
    if (write_drawn(d, &wrong, out, err)) return -1;
    out->slip = wrong.slip;
    return 0;
}

int draw_kernel(const Task *task, const DrawOptions *o, Drawn *out, Error *err)
{
    static const double rates[] = {0.15, 0.35, 0.6, 0.9};
    Drawing d = {.task = task, .o = o};
    Plain plain = {.write = plain_write};
    int rc = -1;
    *out = (Drawn){0};
    random_init(&d.random, o->seed, random_hash(task->name, strlen(task->name)));
    d.rate = rates[random_below(&d.random, sizeof rates / sizeof *rates)];
    d.simple = random_uniform(&d.random) < SIMPLE;
    d.apart = random_uniform(&d.random) < APART;
    for (int i = 0; i < TRIES; i++) {
        rc = draw_once(&d, &plain, out, err);
        if (!rc && (strlen(out->source) <= MOST_TEXT || d.rate <= 0)) break;
        d.rate = i + 2 < TRIES ? d.rate / 2 : 0;
        d.apart = 0;
    }
    if (!rc && random_uniform(&d.random) < o->mistakes) rc = make_mistake(&d, &plain, out, err);
    for (int i = 0; i < out->genes.n && !rc; i++)
        out->distance += out->genes.point[i].value != out->genes.point[i].by_default;
    genes_free(&d.given);
    if (rc) draw_release(out);
    return rc;
}

void draw_release(Drawn *d)
{
    free(d->source);
    genes_free(&d->genes);
    *d = (Drawn){0};
}

int draw_knows(const Task *task)
{
    Drawn d;
    Error unused;
    if (draw_kernel(task, &(DrawOptions){0}, &d, &unused)) return 0;
    draw_release(&d);
    return 1;
}

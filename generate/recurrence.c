/* Which op lines are recurrent layers that kernels can compute, and whether these are faster. */
#include "generate/recurrence.h"

#include <math.h>

/* Of recurrence.cu. ROUND: weights of a row that the lanes of a warp have four of. */
enum { FEW_UNITS = 256, MOST_BLOCKS = 8, ROUND = 128 };

static int is_known(const Recurrent *a, const Recurrent *b)
{
    return a->hidden == b->hidden && a->layers == b->layers && a->directions == b->directions;
}

int recurrence_units(const Recurrence *r)
{
    return r->call.gates == 1 && r->hidden > FEW_UNITS ? 64 : 32;
}

int recurrence_read(const Nodes *n, int node, Recurrence *out)
{
    const Node *x = &n->node[node];
    if (x->kind != NODE_KEPT || x->dtype != DTYPE_F32) return 0;
    *out = (Recurrence){.line = x->line};
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        Recurrent at;
        if (!recurrent_of_call(&n->sizes->bound[k]->calls[x->line].call, &at)) return 0;
        if (!k) out->call = at;
        if (!is_known(&at, &out->call)) return 0;
        out->steps.at[k] = at.steps, out->batch.at[k] = at.batch;
    }
    out->hidden = (int)out->call.hidden;
    return out->call.hidden <= MOST_BLOCKS * recurrence_units(out);
}

/* Microseconds (2026-11-29, H200 and sim:h100). A step of a cell takes a library's kernels LIBRARY, and its
 * products at FLOPS of a microsecond. A step of a cluster takes BARRIER, and ROW for each row and gate of 128
 * weights; a layer SETUP, until the weights are in registers, and INPUTS for each product of the inputs. */
static const double library_us = 5, flops = 1.5e7, barrier_us = 0.4, row_us = 0.08, setup_us = 6,
                    inputs_us = 4, enough = 0.6;
enum { CLUSTERS = 16 /* that a GPU runs at once */, MOST_ROWS = 8 };

/* Rows of the batch that a cluster has. */
int recurrence_rows(const Recurrence *r)
{
    const int64_t all = r->call.directions * r->batch.at[0];
    int rows = 1;
    while (rows < MOST_ROWS && rows * CLUSTERS < all) rows *= 2;
    return rows;
}

double recurrence_us(const Recurrence *r)
{
    const Recurrent *c = &r->call;
    const int rows = recurrence_rows(r);
    const double clusters = c->directions * ceil((double)r->batch.at[0] / rows),
                 rounds = ceil((double)r->hidden / ROUND),
                 step = barrier_us + row_us * rows * c->gates * rounds;
    return ceil(clusters / CLUSTERS) * c->layers * (setup_us + (double)r->steps.at[0] * step);
}

static double library_time(const Recurrence *r)
{
    const Recurrent *c = &r->call;
    const double products = 2. * c->gates * r->hidden * r->hidden * (double)r->batch.at[0] / flops;
    return c->layers * c->directions * (double)r->steps.at[0] * (library_us + products);
}

int recurrence_choose(const Nodes *n, const Recurrence *r)
{
    char key[GRAPH_NAME];
    const double inputs = inputs_us * r->call.layers * r->call.directions,
                 own = recurrence_us(r) + inputs;
    int node = 0;
    while (n->node[node].kind != NODE_KEPT || n->node[node].line != r->line) node++;
    node_key(n, node, key);
    return genes_choose(
        n->genes, key,
        &(GenePoint){.gene = GENE_LAYERS, .by_default = own < enough * library_time(r), .most = 1});
}

int recurrence_multiplies(const Recurrence *r, int tensor)
{
    if (tensor == r->call.x_index) return 1;
    for (int i = 0; i < r->call.layers * r->call.directions; i++) {
        Cell c = recurrent_cell(&r->call, i / r->call.directions, i % r->call.directions);
        if (tensor == c.input || tensor == c.input_bias) return 1;
    }
    return 0;
}

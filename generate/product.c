/* Which op lines are products of matrices with tiles, and the tensors that they read. */
#include "generate/product.h"

#include <math.h>
#include <string.h>

/* What takes how long (2026-11-29, H200): a library's float32 product does LIBRARY flops a second, the kernel
 * does OWN where its tiles fill the multiprocessors; either one moves BYTES. */
static const double library_rate = 5e13, own_rate = 1.75e14, bytes_rate = 3.5e12, launches = 8e-6,
                    enough = 0.75;
enum { SMS = 132, SIDE = 128, LEAST_DEPTH = 512 };
/* The library reads the right factor of few rows at half of that rate; a block takes 64 columns. */
enum { FEW_ROWS = 16, MANY_COLUMNS = 64 * SMS / 2 };
static const double most_bytes = 1.6e9; /* of a plan's buffers, on a simulator */

typedef struct {
    Product at[SIZE_BINDINGS];
} Bindings;

/* A group is one dimension, or none, at every binding. */
static int group_size(const Bindings *b, int group, Size *out)
{
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        if (b->at[k].rank[group] != b->at[0].rank[group] || b->at[k].rank[group] > 1) return 0;
        out->at[k] = b->at[k].count[group];
    }
    return 1;
}

static void group_step(const Bindings *b, int side, int group, Size *out)
{
    for (int k = 0; k < SIZE_BINDINGS; k++)
        out->at[k] = b->at[k].rank[group] ? b->at[k].step[side][group][0] : 0;
}

/* The node whose memory an operand is. Its own strides are those of the call's tensor. */
static int memory_of(const Nodes *n, int node)
{
    const Node *x = &n->node[node];
    return x->kind == NODE_VIEW && !x->stored ? x->arg[0] : node;
}

static int read_side(const Nodes *n, const Bindings *b, int line, int side, ProductTensor *out)
{
    const OpCall *c = &n->sizes->bound[0]->calls[line].call;
    const OpTensor *t = b->at[0].side[side].tensor;
    out->node = -1;
    if (!t) return 1;
    int in = n->kept[line][t - c->tensor];
    if (in < 0) return 0;
    out->node = memory_of(n, in);
    for (int k = 0; k < SIZE_BINDINGS; k++) out->offset.at[k] = b->at[k].side[side].tensor->offset;
    for (int g = 0; g < PRODUCT_GROUPS; g++) group_step(b, side, g, &out->step[g]);
    return 1;
}

/* Rows or columns whose elements lie in one piece along them or along the depth. */
static int is_dense(const ProductTensor *t, int group)
{
    return size_is(t->step[group], 1) || size_is(t->step[PRODUCT_DEPTH], 1);
}

static int is_in_order(const MatrixProduct *m)
{
    const Size *step = m->side[PRODUCT_C].step, columns = m->count[PRODUCT_COLUMNS],
               plane = size_times(columns, m->count[PRODUCT_ROWS]);
    return size_is(step[PRODUCT_COLUMNS], 1) && size_same(step[PRODUCT_ROWS], columns) &&
           (size_is(m->count[PRODUCT_BATCH], 1) || size_same(step[PRODUCT_BATCH], plane));
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* 1: its buffers are not too large. */
static int fits(const MatrixProduct *m)
{
    const Size lines = size_plus(m->count[PRODUCT_ROWS], m->count[PRODUCT_COLUMNS]);
    return 4. * (double)lines.at[0] * (double)m->count[PRODUCT_DEPTH].at[0] *
               (double)m->count[PRODUCT_BATCH].at[0] <
           most_bytes;
}

/* Seconds of the kernels, and of the library call. */
static double own_time(const MatrixProduct *m, double *library)
{
    const double rows = (double)m->count[PRODUCT_ROWS].at[0],
                 columns = (double)m->count[PRODUCT_COLUMNS].at[0],
                 depth = (double)m->count[PRODUCT_DEPTH].at[0],
                 batch = (double)m->count[PRODUCT_BATCH].at[0];
    double tiles = ceil(rows / SIDE) * ceil(columns / SIDE) * batch,
           padded = 2 * ceil(tiles / SMS) * SMS * SIDE * SIDE * depth,
           factors = (rows + columns) * depth * batch, results = 4 * rows * columns * batch;
    *library = larger(2 * rows * columns * depth * batch / library_rate,
                      (4 * factors + results) / bytes_rate);
    return larger(padded / own_rate, results / bytes_rate) + 8 * factors / bytes_rate + launches;
}

static int is_worth_it(const MatrixProduct *m)
{
    double library, own = own_time(m, &library);
    return m->count[PRODUCT_DEPTH].at[0] >= LEAST_DEPTH && own < enough * library;
}

/* The right factor of few rows is read once for each group of them. */
static double rows_time(const MatrixProduct *m)
{
    const double groups = ceil((double)m->count[PRODUCT_ROWS].at[0] / FEW_ROWS),
                 columns = (double)m->count[PRODUCT_COLUMNS].at[0],
                 depth = (double)m->count[PRODUCT_DEPTH].at[0],
                 batch = (double)m->count[PRODUCT_BATCH].at[0];
    return 4 * groups * columns * depth * batch / bytes_rate + 3e-6;
}

double product_us(const MatrixProduct *m)
{
    double library;
    return 1e6 * (m->route == ROUTE_ROWS ? rows_time(m) : own_time(m, &library));
}

int product_launches(const MatrixProduct *m)
{
    return m->route == ROUTE_ROWS ? 1 : 3;
}

static int read_product(const Nodes *n, int line, MatrixProduct *out)
{
    Bindings b;
    for (int k = 0; k < SIZE_BINDINGS; k++)
        if (!product_of_call(&n->sizes->bound[k]->calls[line].call, &b.at[k])) return 0;
    for (int g = 0; g < PRODUCT_GROUPS; g++)
        if (!group_size(&b, g, &out->count[g])) return 0;
    out->alpha = b.at[0].alpha, out->beta = b.at[0].beta;
    for (int k = 1; k < SIZE_BINDINGS; k++)
        if (b.at[k].alpha != out->alpha || b.at[k].beta != out->beta) return 0;
    for (int g = 0; g < PRODUCT_GROUPS; g++)
        group_step(&b, PRODUCT_C, g, &out->side[PRODUCT_C].step[g]);
    if (out->beta == 0)
        for (int k = 0; k < SIZE_BINDINGS; k++) b.at[k].side[PRODUCT_D].tensor = NULL;
    return read_side(n, &b, line, PRODUCT_A, &out->side[PRODUCT_A]) &&
           read_side(n, &b, line, PRODUCT_B, &out->side[PRODUCT_B]) &&
           read_side(n, &b, line, PRODUCT_D, &out->side[PRODUCT_D]);
}

int product_read(const Nodes *n, int node, MatrixProduct *out)
{
    const Node *x = &n->node[node];
    memset(out, 0, sizeof *out);
    if (x->kind != NODE_KEPT || x->dtype != DTYPE_F32 || !read_product(n, x->line, out)) return 0;
    out->of = node;
    return !(n->sizes->task->tf32 & TF32_CUBLAS) && is_dense(&out->side[PRODUCT_A], PRODUCT_ROWS) &&
           is_dense(&out->side[PRODUCT_B], PRODUCT_COLUMNS) && is_in_order(out) && fits(out);
}

/* Both factors' lines lie in one piece. */
static int is_along(const MatrixProduct *m)
{
    return size_is(m->side[PRODUCT_A].step[PRODUCT_DEPTH], 1) &&
           size_is(m->side[PRODUCT_B].step[PRODUCT_DEPTH], 1);
}

static int default_route(const MatrixProduct *m)
{
    if (is_along(m) && m->count[PRODUCT_ROWS].at[0] <= FEW_ROWS &&
        m->count[PRODUCT_COLUMNS].at[0] * m->count[PRODUCT_BATCH].at[0] >= MANY_COLUMNS)
        return ROUTE_ROWS;
    return is_worth_it(m) ? ROUTE_HALVES : ROUTE_LIBRARY;
}

int product_choose(const Nodes *n, const MatrixProduct *m)
{
    char key[GRAPH_NAME];
    node_key(n, m->of, key);
    return genes_choose(n->genes, key,
                        &(GenePoint){.gene = GENE_ROUTE,
                                     .by_default = default_route(m),
                                     .most = is_along(m) ? ROUTE_ROWS : ROUTE_HALVES});
}

int product_step(const Kernel *k)
{
    int found = -1;
    MatrixProduct m;
    for (int i = 0; i < k->n; i++) {
        const Node *x = &k->nodes->node[k->step[i].node];
        if (x->kind != NODE_KEPT || k->step[i].arg[0] >= 0 || k->has_folds ||
            !index_same(&k->step[i].at, &k->root[0].at) || found >= 0)
            continue;
        if (product_read(k->nodes, k->step[i].node, &m)) found = i;
    }
    /* Rows and columns are axes of the kernel's. */
    for (int i = 0; i < k->axes.n && found >= 0; i++) {
        product_read(k->nodes, k->step[found].node, &m);
        const Size by = k->root[0].at.by[i], columns = m.count[PRODUCT_COLUMNS];
        if (!size_divides(columns, by) && !size_divides(size_times(by, k->axes.size[i]), columns))
            return -1;
    }
    return found;
}

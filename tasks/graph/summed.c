/* Which sums of products are products of sums, and what this leaves of a graph's work. */
#include "tasks/graph/summed.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "ops/op_convolution.h"
#include "ops/op_reduction.h"
#include "tasks/graph/settled.h"

static int is_named(const GraphCall *c, const char *name)
{
    const char *own = c->call.op->name + strlen("aten.");
    size_t n = strlen(name);
    return !strncmp(own, name, n) && own[n] == '.';
}

static int is_one_of(const GraphCall *c, const char *const *names)
{
    for (; *names; names++)
        if (is_named(c, *names)) return 1;
    return 0;
}

static int uses(const GraphBound *b, int value)
{
    int n = 0;
    for (int node = 0; node < b->graph->n_nodes; node++)
        for (int i = 0; i < b->calls[node].call.n_tensors; i++) n += b->calls[node].in[i] == value;
    for (int i = 0; i < b->graph->n_outputs; i++) n += b->graph->output[i] == value;
    return n;
}

/* The node whose only result a value is, and which nothing else reads; -1: there is none. */
static int only_source(const GraphBound *b, int value)
{
    if (value < b->graph->n_inputs || uses(b, value) != 1) return -1;
    const int node = b->values[value].node;
    return node >= 0 && b->graph->first[node] == value && b->calls[node].call.n_results == 1 ? node
                                                                                             : -1;
}

static int is_plain_float(const GraphCall *c)
{
    for (int i = 0; i < c->call.n_tensors; i++)
        if (c->call.tensor[i].dtype != DTYPE_F32) return 0;
    return c->call.result[0].dtype == DTYPE_F32;
}

/* A product or quotient by a number, or a sum with a vector along the last dimension. */
static int is_linear(const GraphCall *c, int *vector)
{
    static const char *const scalings[] = {"mul", "div", "neg", "multiply", NULL}, *const sums[] = {
                                                                                       "add", "sub",
                                                                                       NULL};
    if (c->view || c->call.op->flags & OP_IN_PLACE || !is_plain_float(c)) return 0;
    if (c->call.n_tensors == 1) {
        for (int i = 1; i < c->call.n_args; i++)
            if (c->call.arg[i].kind == OP_STRING) return 0; /* it rounds */
        return is_one_of(c, scalings);
    }
    const OpTensor *x = &c->call.tensor[1], *y = &c->call.result[0];
    if (c->call.n_tensors != 2 || !is_one_of(c, sums) || x->rank != 1 ||
        x->size[0] != y->size[y->rank - 1] || c->call.arg[2].number != 1)
        return 0;
    *vector = 1;
    return 1;
}

static int is_product(const GraphCall *c)
{
    static const char *const names[] = {"linear", "matmul", "mm", NULL};
    return is_one_of(c, names) && c->call.n_tensors > 1 && c->call.tensor[1].rank == 2 &&
           c->call.tensor[0].rank >= 1 && is_plain_float(c);
}

static int is_convolution(const GraphCall *c)
{
    static const char *const names[] = {
        "conv1d",           "conv2d",           "conv3d", "conv_transpose1d",
        "conv_transpose2d", "conv_transpose3d", NULL};
    const int rank = c->call.result[0].rank, groups = op_argument(c->call.op, "groups");
    const int stride = op_argument(c->call.op, "stride");
    if (!is_one_of(c, names) || c->call.n_tensors < 2 || rank != c->call.tensor[1].rank ||
        !is_plain_float(c) || c->call.arg[groups].integer[0] != 1 ||
        c->call.arg[op_argument(c->call.op, "padding")].kind == OP_STRING)
        return 0;
    for (int i = 0; i < c->call.arg[stride].n; i++)
        if (op_argument(c->call.op, "output_padding") < 0 && c->call.arg[stride].integer[i] != 1)
            return 0;
    return 1;
}

static int walk(const GraphBound *b, int value, Summed *out)
{
    int vectors = 0, node;
    out->n_chain = 0;
    while ((node = only_source(b, value)) >= 0) {
        const GraphCall *c = &b->calls[node];
        const unsigned last = 1u << (c->call.result[0].rank - 1);
        out->product = node;
        if (is_product(c)) return out->dims == last;
        if (is_convolution(c)) return !vectors && !out->group && !(out->dims & 3);
        if (out->n_chain == SUMMED_CHAIN || !is_linear(c, &vectors)) return 0;
        memmove(out->chain + 1, out->chain, (size_t)out->n_chain++ * sizeof *out->chain);
        out->chain[0] = node;
        value = c->in[0];
    }
    return 0;
}

/* A mean of neighbours along the last dimension, behind an unsqueeze of rows. */
static int is_pool(const GraphBound *b, const GraphCall *c, Summed *out)
{
    const OpValue *side = &c->call.arg[1], *step = &c->call.arg[2];
    const int source = only_source(b, c->in[0]);
    if (!is_named(c, "avg_pool1d") || c->call.tensor[0].rank != 3 || source < 0 ||
        !is_named(&b->calls[source], "unsqueeze") || c->call.tensor[0].size[1] != 1 ||
        b->calls[source].call.tensor[0].rank != 2 || b->calls[source].call.arg[1].integer[0] != 1)
        return 0;
    if ((step->n && step->integer[0] != side->integer[0]) || c->call.arg[3].integer[0] ||
        c->call.arg[4].integer[0])
        return 0;
    out->group = (int)side->integer[0];
    out->terms = out->group;
    out->dims = 2;
    return out->group > 1 && walk(b, b->calls[source].in[0], out) && !out->n_chain;
}

int graph_summed(const GraphBound *b, int node, Summed *out)
{
    const GraphCall *c = &b->calls[node];
    Reduction r;
    Error unused;
    *out = (Summed){0};
    if (!c->live || c->call.n_tensors != 1 || c->call.n_results != 1 || !is_plain_float(c))
        return 0;
    if (is_pool(b, c, out)) return 1;
    if ((!is_named(c, "sum") && !is_named(c, "mean")) || reduction_of(&c->call, 1, &r, &unused))
        return 0;
    *out = (Summed){.dims = r.dims, .terms = r.inputs};
    return r.dims && r.inputs > 1 && walk(b, c->in[0], out);
}

int graph_pooled(const GraphBound *b, int node, int64_t *stride)
{
    const GraphCall *c = &b->calls[node];
    Convolution v;
    *stride = 1;
    if (!c->live || c->call.n_tensors != 1 || !is_plain_float(c) ||
        (!is_named(c, "avg_pool1d") && !is_named(c, "avg_pool2d") && !is_named(c, "avg_pool3d")))
        return -1;
    const int source = only_source(b, c->in[0]),
              divisor = op_argument(c->call.op, "divisor_override");
    const OpValue *side = &c->call.arg[1], *step = c->call.arg[2].n ? &c->call.arg[2] : side,
                  *padding = &c->call.arg[3];
    if (source < 0 || source != node - 1 || !is_plain_float(&b->calls[source]) ||
        !convolution_read(&b->calls[source].call, &v) || v.transposed ||
        c->call.arg[4].integer[0] || (divisor >= 0 && c->call.arg[divisor].kind != OP_NONE))
        return -1;
    for (int d = 0; d < WINDOW_DIMS; d++)
        if (v.w[d].kernel != 1 || v.w[d].stride != 1 || v.w[d].padding) return -1;
    for (int i = 0; i < padding->n; i++)
        if (padding->integer[i]) return -1;
    for (int d = 0; d < v.dims; d++) *stride *= step->integer[d < step->n ? d : step->n - 1];
    return *stride > 1 ? source : -1;
}

/* The flops of a node that a sum of so many terms makes needless. Half of what is left stays: along borders
 * not all taps meet an element. */
static int needless(const GraphBound *b, int node, int64_t terms, double *flops, Error *err)
{
    OpCost cost;
    if (op_cost(&b->calls[node].call, &cost, err)) return -1;
    *flops += cost.flops - 0.5 * cost.flops / (double)terms;
    return 0;
}

/* ---- triangles ---- */

/* The columns from row + least to row + most. */
typedef struct {
    int64_t least, most;
} Band;

/* The elements that triu or tril leaves, by a node that is one of these. */
static int band_of(const GraphBound *b, int node, Band *out)
{
    const GraphCall *c = node < 0 ? NULL : &b->calls[node];
    const int upper = c && is_named(c, "triu");
    if (!upper && !(c && is_named(c, "tril"))) return 0;
    const int at = op_argument(c->call.op, "diagonal");
    const int64_t diagonal = at >= 0 ? c->call.arg[at].integer[0] : 0;
    *out = upper ? (Band){diagonal, INT64_MAX / 4} : (Band){-INT64_MAX / 4, diagonal};
    return 1;
}

/* The triangle that alone is needed of a product's results. */
static Band needed_band(const GraphBound *b, int node)
{
    Band own = {-INT64_MAX / 4, INT64_MAX / 4};
    const int value = b->graph->first[node];
    for (int i = 0; i < b->graph->n_nodes && uses(b, value) == 1; i++)
        if (b->calls[i].live && b->calls[i].call.n_tensors == 1 && b->calls[i].in[0] == value)
            band_of(b, i, &own);
    return own;
}

/* The band outside of which a factor is zero: a triangle, or a triangle of one. */
static Band factor_band(const GraphBound *b, int value)
{
    Band zeros = {-INT64_MAX / 4, INT64_MAX / 4}, own;
    while (value >= b->graph->n_inputs && band_of(b, b->values[value].node, &own)) {
        if (own.least > zeros.least) zeros.least = own.least;
        if (own.most < zeros.most) zeros.most = own.most;
        value = b->calls[b->values[value].node].in[0];
    }
    return zeros;
}

static int64_t clipped(int64_t x, int64_t least, int64_t most)
{
    return x < least ? least : x > most ? most : x;
}

/* The share of a matrix product's terms that triangles leave: counted at some rows and columns. */
static double left_of_product(const GraphBound *b, int node)
{
    enum { PLACES = 64 };
    static const char *const names[] = {"matmul", "mm", "bmm", NULL};
    const GraphCall *c = &b->calls[node];
    if (!is_one_of(c, names)) return 1;
    const OpTensor *x = op_tensor(&c->call, 0), *y = op_tensor(&c->call, 1);
    if (x->rank < 2 || y->rank < 2) return 1;
    const int64_t rows = x->size[x->rank - 2], depth = x->size[x->rank - 1],
                  columns = y->size[y->rank - 1];
    const Band sums = needed_band(b, node), left = factor_band(b, c->in[x - c->call.tensor]),
               right = factor_band(b, c->in[y - c->call.tensor]);
    double terms = 0;
    for (int i = 0; i < PLACES * PLACES; i++) {
        const int64_t row = (2 * (i / PLACES) + 1) * rows / (2 * PLACES),
                      column = (2 * (i % PLACES) + 1) * columns / (2 * PLACES);
        if (column - row < sums.least || column - row > sums.most) continue;
        const int64_t low = row + left.least > column - right.most ? row + left.least
                                                                   : column - right.most,
                      high = row + left.most < column - right.least ? row + left.most
                                                                    : column - right.least;
        const int64_t from = clipped(low, 0, depth), to = clipped(high + 1, from, depth);
        terms += (double)(to - from);
    }
    return depth > 0 ? terms / (double)depth / (PLACES * PLACES) : 1;
}

/* Takes the flops of terms that triangles leave out from a graph's. */
static int take_triangles(const GraphBound *b, int node, double *flops, Error *err)
{
    const double left = left_of_product(b, node);
    OpCost cost;
    if (left == 1) return 0;
    if (op_cost(&b->calls[node].call, &cost, err)) return -1;
    *flops -= (1 - left) * cost.flops;
    return 0;
}

/* Takes what no output needs from a graph's cost: flops, and the inputs that nothing else reads. */
static int take_settled(const GraphBound *b, OpCost *out, Error *err)
{
    int rc = 0, any = 0;
    for (int node = 0; node < b->graph->n_nodes; node++) any |= graph_settled(b, node) >= 0;
    if (!any) return 0;
    unsigned char *needed = graph_needed(b),
                  *read = memory_array((size_t)b->graph->n_values + 1, 1);
    for (int node = 0; node < b->graph->n_nodes && !rc; node++) {
        const GraphCall *c = &b->calls[node];
        const int only = graph_settled(b, node);
        OpCost cost;
        for (int i = 0; i < c->call.n_tensors && needed[node]; i++)
            if (only < 0 || i == only) read[b->values[c->in[i]].base] = 1;
        if ((needed[node] && only < 0) || !c->live || c->view || c->call.op->flags & OP_CONSTANT ||
            !b->values[b->graph->first[node]].varies)
            continue;
        rc = op_cost(&c->call, &cost, err);
        if (!rc) out->flops -= cost.flops;
    }
    for (int i = 0; i < b->graph->n_inputs && !rc; i++)
        if (b->values[i].live && !read[i])
            out->bytes -=
                (double)b->values[i].extent * (double)dtype_size(b->values[i].tensor.dtype);
    free(needed);
    free(read);
    return rc;
}

int graph_least_cost(const GraphBound *b, OpCost *out, Error *err)
{
    if (graph_cost(b, out, err) || take_settled(b, out, err)) return -1;
    for (int node = 0; node < b->graph->n_nodes; node++) {
        Summed s;
        double less = 0;
        if (b->calls[node].live && take_triangles(b, node, &out->flops, err)) return -1;
        int64_t stride;
        const int pooled = graph_pooled(b, node, &stride);
        if (pooled >= 0 && needless(b, pooled, stride, &less, err)) return -1;
        if (!graph_summed(b, node, &s)) {
            out->flops -= less;
            continue;
        }
        int rc =
            needless(b, s.product, s.terms, &less, err) || needless(b, node, s.terms, &less, err);
        for (int i = 0; i < s.n_chain && !rc; i++)
            rc = needless(b, s.chain[i], s.terms, &less, err);
        if (rc) return -1;
        out->flops -= less;
    }
    return 0;
}

/* Which op lines are attention, and whether a kernel is faster. */
#include "generate/attended.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/node_build.h"
#include "ops/nn/op_attention.h"

/* What takes how long (H200): a library's products of float32 do LIBRARY flops a second, of half types
 * LIBRARY_HALF; the kernel does OWN of float32 and OWN_HALF of half types; all move BYTES. */
static const double library_rate = 5e13, library_half = 4e14, own_rate = 1.2e14, own_half = 3e14,
                    bytes_rate = 3.5e12, launch = 3e-6;
static const double most_bytes = 1.6e9; /* of a plan's buffers, on a simulator */
enum { SHARED_MOST = 227 * 1024, LEAST_SCORES = 1 << 16 };

/* ---- the products ---- */

typedef struct {
    Product first[SIZE_BINDINGS], second[SIZE_BINDINGS];
    AttentionSteps *steps; /* of an op line of attention: by binding */
} Bindings;

/* The size and the steps of a group of one dimension, or none. */
static int take_group(const Product *p, const int side, int group, Size *count, Size *step)
{
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        if (p[k].rank[group] != p[0].rank[group] || p[k].rank[group] > 1) return 0;
        count->at[k] = p[k].count[group];
        step->at[k] = p[k].rank[group] ? p[k].step[side][group][0] : 0;
    }
    return 1;
}

static int take_batch(const Product *p, int side, AttendedTensor *out)
{
    out->rank = p[0].rank[PRODUCT_BATCH];
    if (out->rank > ATTENTION_DIMS) return 0;
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        if (p[k].rank[PRODUCT_BATCH] != out->rank) return 0;
        for (int d = 0; d < out->rank; d++) {
            out->size[d].at[k] = p[k].size[PRODUCT_BATCH][d];
            out->step[d].at[k] = p[k].step[side][PRODUCT_BATCH][d];
        }
    }
    return 1;
}

/* A tensor in C order: batch, lines of `inner`, and these. */
static int is_in_order(const Product *p, int side, int lines, int inner)
{
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        int64_t step = p[k].count[inner];
        if (p[k].rank[inner] && p[k].step[side][inner][0] != 1) return 0;
        if (p[k].rank[lines] && p[k].step[side][lines][0] != step) return 0;
        step *= p[k].count[lines];
        for (int d = p[k].rank[PRODUCT_BATCH] - 1; d >= 0; d--) {
            if (p[k].step[side][PRODUCT_BATCH][d] != step) return 0;
            step *= p[k].size[PRODUCT_BATCH][d];
        }
    }
    return 1;
}

static int read_products(const Bindings *b, Attended *a)
{
    Size keys, unused;
    AttendedTensor *q = &a->side[ATTENDS_QUERIES], *k = &a->side[ATTENDS_KEYS],
                   *v = &a->side[ATTENDS_VALUES];
    for (int i = 0; i < SIZE_BINDINGS; i++) {
        a->batch.at[i] = b->first[i].count[PRODUCT_BATCH];
        if (b->second[i].count[PRODUCT_BATCH] != a->batch.at[i] || b->first[i].beta != 0 ||
            b->second[i].beta != 0)
            return 0;
    }
    a->alpha = b->first[0].alpha, a->beta = b->second[0].alpha;
    return take_group(b->first, PRODUCT_A, PRODUCT_ROWS, &a->rows, &q->apart) &&
           take_group(b->first, PRODUCT_A, PRODUCT_DEPTH, &a->depth, &q->along) &&
           take_group(b->first, PRODUCT_B, PRODUCT_COLUMNS, &a->keys, &k->apart) &&
           take_group(b->first, PRODUCT_B, PRODUCT_DEPTH, &a->depth, &k->along) &&
           take_group(b->second, PRODUCT_B, PRODUCT_DEPTH, &keys, &v->apart) &&
           take_group(b->second, PRODUCT_B, PRODUCT_COLUMNS, &a->width, &v->along) &&
           size_same(keys, a->keys) &&
           take_group(b->second, PRODUCT_A, PRODUCT_ROWS, &keys, &unused) &&
           size_same(keys, a->rows) && take_batch(b->first, PRODUCT_A, q) &&
           take_batch(b->first, PRODUCT_B, k) && take_batch(b->second, PRODUCT_B, v) &&
           is_in_order(b->first, PRODUCT_C, PRODUCT_ROWS, PRODUCT_COLUMNS) &&
           is_in_order(b->second, PRODUCT_A, PRODUCT_ROWS, PRODUCT_DEPTH) &&
           is_in_order(b->second, PRODUCT_C, PRODUCT_ROWS, PRODUCT_COLUMNS);
}

/* The memory of an op line's tensor. What is a view of contents that have changed has other strides. */
static int read_side(const Nodes *n, int line, int tensor, AttendedTensor *out)
{
    const GraphBound *g = n->sizes->bound[0];
    const int value = g->calls[line].in[tensor], base = g->values[value].base;
    int node = n->kept[line][tensor];
    if (node < 0 || n->node[node].kind == NODE_COORD) return 0;
    if (n->node[node].kind == NODE_VIEW && base != value) {
        if (n->versions[base]) return 0;
        node = n->node[node].arg[0];
    }
    out->node = node;
    for (int k = 0; k < SIZE_BINDINGS; k++)
        out->offset.at[k] = n->sizes->bound[k]->calls[line].call.tensor[tensor].offset;
    return 1;
}

/* ---- what lies between them ---- */

/* The node whose elements these are, in the same order. */
static int same_elements(const Nodes *n, int node)
{
    for (;;) {
        const Node *x = &n->node[node];
        Size step = size_number(1);
        int whole = x->kind == NODE_VIEW && !x->stored && size_is(x->offset, 0) &&
                    size_same(node_count(x), node_count(&n->node[x->arg[0]]));
        for (int d = x->rank - 1; d >= 0 && whole; d--) {
            whole = size_is(x->size[d], 1) || size_same(x->step[d], step);
            step = size_times(step, x->size[d]);
        }
        const int cast = x->kind == NODE_POINT && !strcmp(x->text, "a") && x->arg[0] >= 0 &&
                         node_same_shape(x, &n->node[x->arg[0]]) &&
                         dtype_is_float(n->node[x->arg[0]].dtype);
        if (!whole && !cast) return node;
        node = x->arg[0];
    }
}

static int is_point(const Nodes *n, int node, const char *text)
{
    return node >= 0 && n->node[node].kind == NODE_POINT && !strcmp(n->node[node].text, text);
}

static int is_fold(const Nodes *n, int node, Fold how)
{
    const Node *x = &n->node[node];
    return x->kind == NODE_FOLD && x->fold == how && !x->parts &&
           x->dims == 1u << (n->node[x->arg[0]].rank - 1);
}

/* The node of which another is the softmax over the last dimension; -1: it is none. */
static int softmax_of_node(const Nodes *n, int node)
{
    if (!is_point(n, node, "a / b")) return -1;
    const int top = n->node[node].arg[0], sum = same_elements(n, n->node[node].arg[1]);
    if (!is_point(n, top, "exp(a)") || !is_fold(n, sum, FOLD_EXPSUM)) return -1;
    const int less = n->node[top].arg[0];
    if (!is_point(n, less, "a - b")) return -1;
    const int most = same_elements(n, n->node[less].arg[1]), x = n->node[less].arg[0];
    if (!is_fold(n, most, FOLD_MAX) || n->node[sum].pair != most || n->node[sum].arg[0] != x)
        return -1;
    return x;
}

/* The one product among the op lines on which a node depends elementwise; -1: there is none, -2: several. */
static int find_product(const Nodes *n, int node, int depth)
{
    const Node *x = &n->node[node];
    int found = -1;
    if (x->kind == NODE_KEPT) {
        Product p;
        return product_of_call(&n->sizes->bound[0]->calls[x->line].call, &p) ? node : -1;
    }
    if ((x->kind != NODE_POINT && x->kind != NODE_VIEW) || depth > 40) return -1;
    for (int i = 0; i < 3; i++) {
        int own = x->arg[i] < 0 ? -1 : find_product(n, x->arg[i], depth + 1);
        if (own == -2 || (own >= 0 && found >= 0 && own != found)) return -2;
        if (own >= 0) found = own;
    }
    return found;
}

/* ---- who reads what ---- */

typedef struct {
    const Nodes *n;
    unsigned char *needed,
        *inside; /* by node; inside: on the way from the weights to the product. 2: not */
    int line;    /* of the second product */
    int shared;
} Readers;

static int find_inside(Readers *r, int node, int given)
{
    const Node *x = &r->n->node[node];
    if (r->inside[node]) return r->inside[node] == 1;
    int is = node == given;
    for (int i = 0; i < 3 && node != given; i++)
        if (x->arg[i] >= 0) is |= find_inside(r, x->arg[i], given);
    r->inside[node] = is ? 1 : 2;
    return is;
}

/* 1: each element needs that of the product at its own place, and no other. */
static int is_elementwise(const Readers *r, int node, int given)
{
    const Nodes *n = r->n;
    const Node *x = &n->node[node];
    if (node == given) return 1;
    if (x->kind == NODE_VIEW && same_elements(n, node) == node) return 0;
    for (int i = 0; i < 3; i++)
        if (x->arg[i] >= 0 && r->inside[x->arg[i]] == 1 &&
            (!size_same(node_count(x), node_count(&n->node[x->arg[i]])) ||
             !is_elementwise(r, x->arg[i], given)))
            return 0;
    return x->kind == NODE_VIEW || x->kind == NODE_POINT;
}

static void read_all(Readers *r, int node)
{
    const Node *x = &r->n->node[node];
    if (r->needed[node]) return;
    r->needed[node] = 1;
    for (int i = 0; i < 3; i++) {
        if (x->arg[i] < 0) continue;
        r->shared |= r->inside[x->arg[i]] == 1 && r->inside[node] != 1;
        read_all(r, x->arg[i]);
    }
    const int *kept = x->kind == NODE_KEPT ? r->n->kept[x->line] : NULL;
    for (int i = 0; kept && i < r->n->sizes->bound[0]->calls[x->line].call.n_tensors; i++) {
        if (kept[i] < 0) continue;
        r->shared |= r->inside[kept[i]] == 1 && x->line != r->line;
        read_all(r, kept[i]);
    }
}

/* 1: nothing but the second product reads what lies between both, and the scores are pointwise. */
static int is_alone(const Nodes *n, const Attended *a, int weights)
{
    Readers r = {.n = n, .line = a->line};
    r.needed = memory_array((size_t)n->n + 1, 1);
    r.inside = memory_array((size_t)n->n + 1, 1);
    find_inside(&r, weights, a->given);
    for (int i = 0; i < n->graph->n_outputs; i++) {
        r.shared |= r.inside[n->output[i]] == 1;
        read_all(&r, n->output[i]);
    }
    const int alone = !r.shared && is_elementwise(&r, a->scores, a->given);
    free(r.needed);
    free(r.inside);
    return alone;
}

/* ---- reading ---- */

static int tensor_index(const OpCall *c, const Product *p, ProductOperand x)
{
    const OpTensor *t = p->side[x].tensor;
    return t >= c->tensor && t < c->tensor + c->n_tensors ? (int)(t - c->tensor) : -1;
}

static int read_pair(const Nodes *n, int node, Attended *a)
{
    Bindings *b = memory_alloc(sizeof *b);
    const OpCall *c = &n->sizes->bound[0]->calls[a->line].call;
    int ok = 1, weights = -1, line = -1;
    for (int k = 0; k < SIZE_BINDINGS && ok; k++)
        ok = product_of_call(&n->sizes->bound[k]->calls[a->line].call, &b->second[k]);
    int left = ok ? tensor_index(c, b->second, PRODUCT_A) : -1;
    if (left >= 0 && n->kept[a->line][left] >= 0)
        weights = same_elements(n, n->kept[a->line][left]);
    ok = weights >= 0 && n->node[weights].kind == NODE_POINT;
    if (ok) {
        const int x = softmax_of_node(n, weights);
        a->is_soft = x >= 0;
        a->scores = a->is_soft ? x : weights;
        a->given = find_product(n, a->scores, 0);
        ok = a->given >= 0;
    }
    if (ok) line = n->node[a->given].line;
    for (int k = 0; k < SIZE_BINDINGS && ok; k++)
        ok = product_of_call(&n->sizes->bound[k]->calls[line].call, &b->first[k]);
    if (ok) {
        const OpCall *f = &n->sizes->bound[0]->calls[line].call;
        ok = read_products(b, a) &&
             read_side(n, line, tensor_index(f, b->first, PRODUCT_A), &a->side[ATTENDS_QUERIES]) &&
             read_side(n, line, tensor_index(f, b->first, PRODUCT_B), &a->side[ATTENDS_KEYS]) &&
             read_side(n, a->line, tensor_index(c, b->second, PRODUCT_B),
                       &a->side[ATTENDS_VALUES]) &&
             size_same(node_count(&n->node[a->scores]), node_count(&n->node[a->given])) &&
             n->node[a->given].dtype == n->node[node].dtype && is_alone(n, a, weights);
    }
    a->causal = ok && attention_is_causal(n, a, &a->diagonal);
    free(b);
    return ok;
}

static int read_fused(const Nodes *n, Attended *a)
{
    Bindings *b = memory_alloc(sizeof *b);
    int ok = 1;
    b->steps = memory_array(SIZE_BINDINGS, sizeof *b->steps);
    for (int k = 0; k < SIZE_BINDINGS && ok; k++) {
        ok = attention_of_call(&n->sizes->bound[k]->calls[a->line].call, &b->steps[k]);
        b->first[k] = b->steps[k].first, b->second[k] = b->steps[k].second;
    }
    const Attention *s = &b->steps[0].a;
    int fixed = 1, rooted = 1;
    for (int k = 0; k < SIZE_BINDINGS && ok; k++) {
        fixed &= b->steps[k].a.scale == s->scale;
        rooted &= b->steps[k].a.scale == 1 / sqrt((double)b->steps[k].a.depth);
    }
    ok = ok && (fixed || rooted);
    a->by_depth = !fixed;
    for (int i = 0; i < ATTENDS && ok; i++) ok = read_side(n, a->line, s->index[i], &a->side[i]);
    ok = ok && read_products(b, a);
    a->is_soft = a->zeros = 1;
    a->causal = s->causal;
    free(b->steps);
    free(b);
    return ok;
}

/* Results of a longer head do not fit the registers, and scores made once for each part of it cost more than
 * the library's products and the memory between them. */
static int fits(const Attended *a, Dtype dtype)
{
    const double lines = (double)(a->rows.at[0] + 2 * a->keys.at[0] + 3 * ATTENTION_TILE),
                 head = (double)(a->depth.at[0] > a->width.at[0] ? a->depth : a->width).at[0] + 64;
    return a->depth.at[0] <= ATTENTION_HEAD && a->width.at[0] <= ATTENTION_HEAD &&
           2 * attention_parts(dtype) * (double)a->batch.at[0] * lines * head < most_bytes;
}

int attention_read(const Nodes *n, int node, Attended *out)
{
    const Node *x = &n->node[node];
    *out = (Attended){.of = node, .line = x->line, .given = -1, .scores = -1};
    if (x->kind != NODE_KEPT || x->last ||
        (x->dtype != DTYPE_F32 && x->dtype != DTYPE_F16 && x->dtype != DTYPE_BF16))
        return 0;
    const char *name = n->sizes->bound[0]->calls[x->line].call.op->name;
    const int ok =
        strstr(name, "scaled_dot_product_attention") ? read_fused(n, out) : read_pair(n, node, out);
    return ok && fits(out, x->dtype);
}

/* ---- the scores of an op line ---- */

void attention_scores(Nodes *n, Attended *a)
{
    const GraphBound *g = n->sizes->bound[0];
    const OpCall *c = &g->calls[a->line].call;
    const int *in = n->kept[a->line];
    const OpValue *mask = &c->arg[ATTENTION_MASK];
    if (a->given >= 0) return;
    Node x = n->node[a->of];
    x.size[x.rank - 1] = a->keys;
    x.dtype = DTYPE_F32;
    x.value = -1;
    x.stored = 1;
    a->given = a->scores = node_add(n, &x);
    if (a->causal) {
        int row = node_coordinate(n, a->given, x.rank - 2),
            column = node_coordinate(n, a->given, x.rank - 1);
        int seen = node_point(n, "b <= a", DTYPE_B8, row, column);
        n->node[seen].type = "long long";
        a->scores = node_point3(n, "a ? b : -INFINITY", (int[]){seen, a->given, -1}, DTYPE_F32);
    }
    if (mask->kind != OP_TENSOR) return;
    const int m = in[mask->integer[0]];
    a->scores = n->node[m].dtype == DTYPE_B8
                    ? node_point3(n, "a ? b : -INFINITY", (int[]){m, a->given, -1}, DTYPE_F32)
                    : node_point(n, "a + b", DTYPE_F32, a->given, m);
}

/* ---- times ---- */

int attention_parts(Dtype dtype)
{
    return dtype == DTYPE_F32 ? 2 : 1;
}

double attention_us(const Attended *a, Dtype dtype, double *library)
{
    const double batch = (double)a->batch.at[0], rows = (double)a->rows.at[0],
                 keys = (double)a->keys.at[0], depth = (double)a->depth.at[0],
                 width = (double)a->width.at[0], bytes = (double)dtype_size(dtype);
    const int single = dtype == DTYPE_F32;
    const double padded = ceil(rows / 128) * 128 * ceil(keys / 64) * 64 *
                          (ceil(depth / 16) * 16 + ceil(width / 32) * 32),
                 sides = batch * (rows * depth + keys * depth + keys * width),
                 scores = batch * rows * keys;
    /* Scores are written, read and written by what makes weights of them, and read. */
    *library = 1e6 * (2 * scores * (depth + width) / (single ? library_rate : library_half) +
                      4 * bytes * scores / bytes_rate + 3 * launch);
    return 1e6 * (2 * batch * padded * (a->causal ? 0.6 : 1) / (single ? own_rate : own_half) +
                  (2 * sides + batch * rows * width) * bytes / bytes_rate + 4 * launch);
}

int attention_choose(const Nodes *n, const Attended *a)
{
    char key[GRAPH_NAME];
    double library, own = attention_us(a, n->node[a->of].dtype, &library);
    node_key(n, a->of, key);
    const int flash = own < library && a->rows.at[0] * a->keys.at[0] >= LEAST_SCORES;
    return genes_choose(n->genes, key,
                        &(GenePoint){.gene = GENE_FUSE, .by_default = flash, .most = 1});
}

static int shared_bytes(const Attended *a, int parts, AttendedShape s)
{
    const int piece = parts * ATTENTION_TILE * 128,
              deep = (int)((a->depth.at[0] + 63) / 64) * piece,
              across = (int)((a->width.at[0] + 63) / 64) * piece;
    return s.groups * deep + s.stages * (deep + across) + 1024;
}

AttendedShape attention_shape(const Nodes *n, const Attended *a)
{
    const int parts = attention_parts(n->node[a->of].dtype);
    AttendedShape s = {2, 2};
    char key[GRAPH_NAME];
    node_key(n, a->of, key);
    if (a->rows.at[0] <= ATTENTION_TILE || shared_bytes(a, parts, s) > SHARED_MOST) s.groups = 1;
    if (shared_bytes(a, parts, s) > SHARED_MOST) s.stages = 1;
    int most = shared_bytes(a, parts, (AttendedShape){2, 1}) > SHARED_MOST ? 1 : 2;
    s.groups = genes_choose(
        n->genes, key,
        &(GenePoint){.gene = GENE_GROUPS, .by_default = s.groups, .least = 1, .most = most});
    most = 3;
    while (most > 1 && shared_bytes(a, parts, (AttendedShape){s.groups, most}) > SHARED_MOST)
        most--;
    s.stages = genes_choose(n->genes, key,
                            &(GenePoint){.gene = GENE_STAGES,
                                         .by_default = s.stages < most ? s.stages : most,
                                         .least = 1,
                                         .most = most});
    return s;
}

int attention_step(const Attended *a, const Kernel *k)
{
    int found = -1;
    for (int i = 0; i < k->n; i++) {
        if (k->step[i].node != a->given || k->step[i].arg[0] >= 0) continue;
        if (k->has_folds || found >= 0 || !index_same(&k->step[i].at, &k->root[0].at)) return -1;
        found = i;
    }
    for (int i = 0; i < k->axes.n && found >= 0; i++) {
        const Size by = k->root[0].at.by[i];
        if (!size_divides(a->keys, by) && !size_divides(size_times(by, k->axes.size[i]), a->keys))
            return -1;
    }
    return found;
}

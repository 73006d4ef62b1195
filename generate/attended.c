/* Which op lines are attention, and whether a kernel is faster; the texts of its kernels and of their
 * launches. The loops are in attended.cu. */
#include "generate/attended.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/memory.h"
#include "base/part.h"
#include "generate/node_build.h"
#include "generate/product.h"
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
static int find_product(const Nodes *n, int node)
{
    unsigned char *seen = memory_array((size_t)n->n, 1);
    int found = -1;
    node_mark(n, node, seen);
    for (int i = 0; i < n->n; i++) {
        Product p;
        if (seen[i] && n->node[i].kind == NODE_KEPT &&
            product_of_call(&n->sizes->bound[0]->calls[n->node[i].line].call, &p))
            found = found == -1 ? i : -2;
    }
    free(seen);
    return found;
}

/* ---- who reads what ---- */

typedef struct {
    const Nodes *n;
    unsigned char *needed, *looked,
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
    if (node == given || r->looked[node]) return 1;
    r->looked[node] = 1;
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
    r.looked = memory_array((size_t)n->n + 1, 1);
    find_inside(&r, weights, a->given);
    for (int i = 0; i < n->graph->n_outputs; i++) {
        r.shared |= r.inside[n->output[i]] == 1;
        read_all(&r, n->output[i]);
    }
    const int alone = !r.shared && is_elementwise(&r, a->scores, a->given);
    free(r.needed);
    free(r.inside);
    free(r.looked);
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
        a->given = find_product(n, a->scores);
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

/* ---- the text ---- */

EMBED(generate_attended, "generate/attended.cu")

enum { HELP_ATTENTION = 30, PACKERS = 256, BLOCK_SHARED = 228 * 1024, PIECE = ATTENTION_TILE * 64 };

static const char *const side_names[ATTENDS] = {"queries", "keys", "values"};

typedef struct {
    const Attended *a;
    Kernel *k;
    KernelText *t;
    Error *err;
    AttendedShape shape;
    Dtype dtype;
    const char *halves; /* the type of packed elements */
    int parts, steps, wide;
    Buffer body;
    int failed;
} AttentionWriter;

static const char *size_of(AttentionWriter *w, Size s)
{
    const char *name = kernel_size(w->k, s, w->err);
    if (!name) w->failed = 1;
    return name ? name : "0";
}

static Size lines_of(const Attended *a, AttendedSide x)
{
    return x == ATTENDS_QUERIES ? a->rows : a->keys;
}

static Size length_of(const Attended *a, AttendedSide x)
{
    return x == ATTENDS_VALUES ? a->width : a->depth;
}

static int chunks(int64_t elements)
{
    return (int)((elements + 63) / 64);
}

/* Where the batch's entry begins in memory: "+ batch % 8 * 64 + batch / 8 * 512". */
static void put_entry(AttentionWriter *w, const AttendedTensor *t)
{
    Size inner = size_number(1);
    if (!size_is(t->offset, 0)) buffer_printf(&w->body, " + %s", size_of(w, t->offset));
    for (int d = t->rank - 1; d >= 0; d--) {
        if (!size_is(t->step[d], 0)) {
            buffer_puts(&w->body, " + batch");
            if (d < t->rank - 1) buffer_printf(&w->body, " / %s", size_of(w, inner));
            if (d > 0) buffer_printf(&w->body, " %% %s", size_of(w, t->size[d]));
            buffer_printf(&w->body, " * %s", size_of(w, t->step[d]));
        }
        inner = size_times(inner, t->size[d]);
    }
}

/* "{x + ..., lines, length, apart, along}" */
static void put_side(AttentionWriter *w, AttendedSide x)
{
    const AttendedTensor *t = &w->a->side[x];
    buffer_printf(&w->body, "{%s", kernel_tensor(w->k, t->node, 0));
    put_entry(w, t);
    buffer_printf(&w->body, ", %s, ", size_of(w, lines_of(w->a, x)));
    buffer_printf(&w->body, "%s, ", size_of(w, length_of(w->a, x)));
    buffer_printf(&w->body, "%s, ", size_of(w, t->apart));
    buffer_printf(&w->body, "%s}", size_of(w, t->along));
}

/* Packed elements of a tile, as an expression over the tensor's sizes. */
static void tile_elements(AttentionWriter *w, AttendedSide x, const char *width,
                          char out[SIZE_TEXT + 80])
{
    if (x == ATTENDS_VALUES)
        snprintf(out, SIZE_TEXT + 80, "((%s + %d) / %d * %d)", width, w->wide - 1, w->wide,
                 chunks(w->wide) * w->parts * PIECE);
    else
        snprintf(out, SIZE_TEXT + 80, "%d", chunks(16 * w->steps) * w->parts * PIECE);
}

static int is_wide(const Attended *a, const Kernel *k)
{
    int wide = kernel_is_wide(k);
    for (int x = 0; x < ATTENDS; x++)
        wide |= node_count(&k->nodes->node[a->side[x].node]).at[0] >= 1 << 30;
    return wide;
}

/* ---- packing ---- */

static int put_pack_plan(AttentionWriter *w, AttendedSide x, int number)
{
    SizeTable *sizes = w->k->nodes->sizes;
    Buffer *p = w->t->plan;
    char lines[SIZE_TEXT], batch[SIZE_TEXT], width[SIZE_TEXT], of_tile[SIZE_TEXT + 80],
        bracket[SIZE_TEXT + 2];
    if (size_text(sizes, lines_of(w->a, x), lines, w->err) ||
        size_text(sizes, w->a->batch, batch, w->err) ||
        size_text(sizes, w->a->width, width, w->err))
        return -1;
    snprintf(bracket, sizeof bracket, "(%s)", width);
    tile_elements(w, x, bracket, of_tile);
    const char *name = side_names[x];
    buffer_printf(p, "//@ buffer %s packed_%s_%d[(%s) * ceil_div(%s, %d) * %s]\n", w->halves, name,
                  w->t->number, batch, lines, ATTENTION_TILE, of_tile);
    buffer_printf(p, "//@ buffer float factors_%s_%d[(%s) * ceil_div(%s, %d)]\n", name,
                  w->t->number, batch, lines, ATTENTION_TILE);
    buffer_printf(p, "//@ launch pack_%s_%d<<<(%s) * ceil_div(%s, %d), %d>>>(", name, number, batch,
                  lines, ATTENTION_TILE, PACKERS);
    if (kernel_put_arguments(w->k, p, w->err)) return -1;
    buffer_printf(p, ", packed_%s_%d, factors_%s_%d)\n", name, w->t->number, name, w->t->number);
    return 0;
}

static int put_pack(const AttentionWriter *main, AttendedSide x)
{
    AttentionWriter w = *main;
    Kernel *k = memory_alloc(sizeof *k);
    Buffer types, source;
    char of_tile[SIZE_TEXT + 80], width[32];
    const AttendedTensor *t = &w.a->side[x];
    *k = (Kernel){.nodes = main->k->nodes};
    w.k = k;
    buffer_init(&w.body, 1 << 16);
    buffer_init(&types, 1 << 16);
    buffer_init(&source, 1 << 17);
    const int turned = x == ATTENDS_VALUES, along = !size_is(t->apart, 1);
    buffer_printf(&w.body,
                  "    const long long tiles = (%s + %d) / %d, batch = blockIdx.x / tiles;\n",
                  size_of(&w, lines_of(w.a, x)), ATTENTION_TILE - 1, ATTENTION_TILE);
    buffer_printf(&w.body, "    const flash::Side<%s> side = ", dtype_ctype(w.dtype));
    put_side(&w, x);
    snprintf(width, sizeof width, "%s", turned ? size_of(&w, w.a->width) : "");
    tile_elements(&w, x, width, of_tile);
    buffer_printf(
        &w.body,
        ";\n    flash::pack<%d, %s, %s, %d>(side, blockIdx.x %% tiles, parts + blockIdx.x "
        "* (long long)%s, factors + blockIdx.x);\n",
        w.parts, turned ? "true" : "false", along ? "true" : "false",
        turned ? w.wide : chunks(16 * w.steps) * 64, of_tile);
    kernel_put_parameters(k, 1, is_wide(w.a, k), &types);
    buffer_printf(
        &source,
        "extern \"C\" __global__ void __launch_bounds__(%d) pack_%s_@(%s, %s *__restrict__ "
        "parts, float *__restrict__ factors)\n{\n%s}\n\n",
        PACKERS, side_names[x], types.data, w.halves, w.body.data);
    const int rc = w.failed ? -1 : put_pack_plan(&w, x, kernel_put_source(w.t, source.data));
    buffer_release(&w.body);
    buffer_release(&types);
    buffer_release(&source);
    free(k);
    return rc;
}

/* ---- the kernel ---- */

static void put_packed(AttentionWriter *w, AttendedSide x, const char *width)
{
    char of_tile[SIZE_TEXT + 80];
    const char *name = side_names[x];
    tile_elements(w, x, width, of_tile);
    buffer_printf(&w->body, "    const long long tiles_%s = (%s + %d) / %d;\n", name,
                  size_of(w, lines_of(w->a, x)), ATTENTION_TILE - 1, ATTENTION_TILE);
    buffer_printf(&w->body, "    const flash::Packed<%s, %s> from_%s = {", dtype_ctype(w->dtype),
                  w->halves, name);
    put_side(w, x);
    buffer_printf(&w->body,
                  ", packed_%s + batch * tiles_%s * %s, factors_%s + batch * tiles_%s};\n", name,
                  name, of_tile, name, name);
}

static void put_value(AttentionWriter *w, int step, const char *rows)
{
    char between[160], factor[48] = "";
    if (w->a->by_depth)
        snprintf(factor, sizeof factor, " * from_depth");
    else if (w->a->alpha != 1)
        snprintf(factor, sizeof factor, " * (float)%.17g", w->a->alpha);
    if (w->a->by_depth)
        buffer_printf(&w->body, "    const float from_depth = 1 / sqrtf((float)%s);\n",
                      size_of(w, w->a->depth));
    snprintf(between, sizeof between,
             "        return [=](int column, float total) {\n        const float sum = total%s;\n",
             factor);
    buffer_printf(&w->body,
                  "    const auto value = [&](int row) {\n"
                  "        const long long line = batch * %s + row;\n",
                  rows);
    KernelElement e = {.n_given = 1,
                       .given = {step},
                       .width = w->a->keys,
                       .between = between,
                       .is_small = !is_wide(w->a, w->k)};
    if (kernel_put_element(w->k, w->t, &e, &w->body, w->err)) w->failed = 1;
    buffer_puts(&w->body, "        };\n    };\n");
}

/* Stores two neighbouring results. */
static void put_store(AttentionWriter *w, const char *rows, const char *width, const char *out)
{
    const char *type = dtype_ctype(w->dtype);
    buffer_printf(&w->body,
                  "    const auto put = [&](long long row, long long column, float first, float "
                  "second, float sum) {\n"
                  "        if (row >= %s || column >= %s) return;\n"
                  "        const float r = %s%#.9gf / sum;\n"
                  "        %s *at = %s + (batch * %s + row) * %s + column;\n"
                  "        if (%s %% 2 == 0) {\n"
                  "            *(Pack<%s, 2> *)at = {(%s)(first * r), (%s)(second * r)};\n"
                  "        } else {\n"
                  "            at[0] = (%s)(first * r);\n"
                  "            if (column + 1 < %s) at[1] = (%s)(second * r);\n"
                  "        }\n    };\n",
                  rows, width, w->a->zeros ? "sum == 0 ? 0 : " : "", w->a->beta, type, out, rows,
                  width, width, type, type, type, type, width, type);
}

static void put_shape(const AttentionWriter *w, Buffer *to)
{
    buffer_printf(to, "flash::Attend<%d, %d, %d, %d, %d, %s>", w->shape.groups, w->shape.stages,
                  w->steps, w->wide, w->parts, w->a->is_soft ? "true" : "false");
}

static void put_body(AttentionWriter *w, int step)
{
    const Attended *a = w->a;
    const int down = w->shape.groups * ATTENTION_TILE;
    char rows[32], width[32], keys[32];
    snprintf(rows, sizeof rows, "%s", size_of(w, a->rows));
    snprintf(width, sizeof width, "%s", size_of(w, a->width));
    snprintf(keys, sizeof keys, "%s", size_of(w, a->keys));
    buffer_printf(&w->body,
                  "    const long long tiles = (%s + %d) / %d, pieces = (%s + %d) / %d;\n"
                  "    const long long piece = blockIdx.x %% pieces, batch = blockIdx.x / pieces / "
                  "tiles;\n"
                  "    const int tile = (int)(tiles - 1 - blockIdx.x / pieces %% tiles);\n",
                  rows, down - 1, down, width, w->wide - 1, w->wide);
    for (int x = 0; x < ATTENDS; x++) put_packed(w, x, width);
    put_value(w, step, rows);
    put_store(w, rows, width, kernel_tensor(w->k, a->of, 1));
    if (a->causal)
        buffer_printf(&w->body,
                      "    const long long seen = (tile + 1) * %d + %lldLL;\n"
                      "    const int end = seen < 0 ? 0 : seen < %s ? (int)seen : %s;\n",
                      down, (long long)a->diagonal, keys, keys);
    buffer_puts(&w->body, "    ");
    put_shape(w, &w->body);
    buffer_printf(&w->body,
                  "::run(from_queries, from_keys, from_values, tile, piece, %s, value, put);\n",
                  a->causal ? "end" : keys);
}

static void put_kernel_parameters(const AttentionWriter *w, Buffer *to)
{
    for (int x = 0; x < ATTENDS; x++)
        buffer_printf(to,
                      ", const %s *__restrict__ packed_%s, const float *__restrict__ factors_%s",
                      w->halves, side_names[x], side_names[x]);
}

static int shared_of(const AttentionWriter *w)
{
    const int piece = w->parts * PIECE * 2, deep = chunks(16 * w->steps) * piece,
              across = chunks(w->wide) * piece;
    return w->shape.groups * deep + w->shape.stages * (deep + across) + 1024;
}

/* Blocks that a multiprocessor has to hold: so many as fit, where a thread's results leave registers. */
static int blocks_of(const AttentionWriter *w)
{
    const int fit = BLOCK_SHARED / (shared_of(w) + 1024), warps = 4 * w->shape.groups,
              most = (w->wide <= 64    ? 16
                      : w->wide <= 128 ? 12
                                       : 8) /
                     warps;
    return most < 1 || fit < 1 ? 1 : most < fit ? most : fit;
}

static int put_launch(AttentionWriter *w, int number)
{
    const Attended *a = w->a;
    SizeTable *sizes = w->k->nodes->sizes;
    Buffer *p = w->t->plan;
    char rows[SIZE_TEXT], batch[SIZE_TEXT], width[SIZE_TEXT];
    if (size_text(sizes, a->rows, rows, w->err) || size_text(sizes, a->batch, batch, w->err) ||
        size_text(sizes, a->width, width, w->err))
        return -1;
    const int piece = w->parts * PIECE * 2, deep = chunks(16 * w->steps) * piece,
              across = chunks(w->wide) * piece;
    buffer_printf(
        p, "//@ launch kernel_%d<<<(%s) * ceil_div(%s, %d) * ceil_div(%s, %d), %d, %d>>>(", number,
        batch, rows, w->shape.groups * ATTENTION_TILE, width, w->wide, 128 * w->shape.groups,
        w->shape.groups * deep + w->shape.stages * (deep + across) + 1024);
    if (kernel_put_arguments(w->k, p, w->err)) return -1;
    for (int x = 0; x < ATTENDS; x++)
        buffer_printf(p, ", packed_%s_%d, factors_%s_%d", side_names[x], w->t->number,
                      side_names[x], w->t->number);
    buffer_puts(p, ")\n");
    return 0;
}

int attention_write(const Attended *a, Kernel *k, int step, KernelText *t, Error *err)
{
    const Dtype dtype = k->nodes->node[a->of].dtype;
    AttentionWriter w = {.a = a, .k = k, .t = t, .err = err, .dtype = dtype};
    Buffer types, source;
    w.shape = attention_shape(k->nodes, a);
    w.parts = attention_parts(dtype);
    w.halves = dtype == DTYPE_F32 ? "half" : dtype_ctype(dtype);
    w.steps = (int)((a->depth.at[0] + 15) / 16);
    w.wide = (int)((a->width.at[0] + 31) / 32 * 32);
    buffer_init(&w.body, 1 << 20);
    buffer_init(&types, 1 << 16);
    buffer_init(&source, 1 << 20);
    product_put_halves(t);
    if (!(t->helpers >> HELP_ATTENTION & 1)) part_put(t->source, generate_attended, "attention");
    t->helpers |= 1u << HELP_ATTENTION;
    put_body(&w, step);
    kernel_put_parameters(k, 1, is_wide(a, k), &types);
    put_kernel_parameters(&w, &types);
    for (int x = 0; x < ATTENDS && !w.failed; x++)
        if (put_pack(&w, x)) w.failed = 1;
    buffer_printf(&source,
                  "extern \"C\" __global__ void __launch_bounds__(%d, %d) kernel_@(%s)\n{\n%s}\n\n",
                  128 * w.shape.groups, blocks_of(&w), types.data, w.body.data);
    if (!w.failed && put_launch(&w, kernel_put_source(t, source.data))) w.failed = 1;
    buffer_release(&w.body);
    buffer_release(&types);
    buffer_release(&source);
    return w.failed ? -1 : 0;
}

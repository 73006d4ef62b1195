/* Scaled dot product attention: y = softmax(scale q k' + mask) v for each entry of the batch. A row
 * that is masked whole is zero. The reference computes a block of rows at a time. The kernels are a
 * product into scratch memory, a softmax of its rows, and a product with v; in a route the products are
 * the library's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/nn/op_attention.h"
#include "ops/op_element.h"
#include "ops/op_text.h"

enum { WARP_ROWS = 1024 }; /* the longest row that one warp takes */

/* ---- shapes ---- */

/* Splits dimension d of t in two, the inner one of `inner` elements. */
static void split(OpTensor *t, int d, int64_t inner)
{
    memmove(&t->size[d + 1], &t->size[d], (size_t)(t->rank - d) * sizeof *t->size);
    memmove(&t->stride[d + 1], &t->stride[d], (size_t)(t->rank - d) * sizeof *t->stride);
    t->rank++;
    t->size[d] /= inner;
    t->size[d + 1] = inner;
    t->stride[d] = t->stride[d + 1] * inner;
}

/* Gives t the batch's dimensions: those that it lacks or has once are repeated. */
static void repeat(OpTensor *t, int lead, const int64_t *size)
{
    OpTensor from = *t;
    int own = from.rank - 2;
    t->rank = lead + 2;
    for (int d = 0; d < lead; d++) {
        int at = d - (lead - own);
        t->size[d] = size[d];
        t->stride[d] = at < 0 || from.size[at] == 1 ? 0 : from.stride[at];
    }
    for (int d = 0; d < 2; d++) {
        t->size[lead + d] = from.size[own + d];
        t->stride[lead + d] = from.stride[own + d];
    }
}

static int check_sizes(const Attention *a, Error *err)
{
    const OpTensor *q = &a->t[ATTENTION_QUERY], *k = &a->t[ATTENTION_KEY],
                   *v = &a->t[ATTENTION_VALUE];
    for (int i = 0; i < 3; i++) {
        if (a->t[i].rank < 2)
            return error_set(err, ERROR_INVALID, "expected at least 2 dimensions, found %d",
                             a->t[i].rank);
        if (!dtype_is_float(a->t[i].dtype) || a->t[i].dtype != q->dtype)
            return error_set(err, ERROR_INVALID,
                             "expected one floating-point type, found %s and %s",
                             dtype_name(q->dtype), dtype_name(a->t[i].dtype));
    }
    if (q->size[q->rank - 1] != k->size[k->rank - 1])
        return error_set(err, ERROR_INVALID, "key: expected %lld elements in a row, found %lld",
                         (long long)q->size[q->rank - 1], (long long)k->size[k->rank - 1]);
    if (k->size[k->rank - 2] != v->size[v->rank - 2])
        return error_set(err, ERROR_INVALID, "value: expected %lld rows, found %lld",
                         (long long)k->size[k->rank - 2], (long long)v->size[v->rank - 2]);
    if (a->masked && a->causal)
        return error_set(err, ERROR_INVALID, "attn_mask and is_causal exclude each other");
    if (a->masked && a->t[ATTENTION_MASK].dtype != DTYPE_B8 &&
        a->t[ATTENTION_MASK].dtype != q->dtype)
        return error_set(err, ERROR_INVALID, "attn_mask: expected bool or %s, found %s",
                         dtype_name(q->dtype), dtype_name(a->t[ATTENTION_MASK].dtype));
    return 0;
}

/* Splits the heads, the dimension before the last two. */
static int group_heads(Attention *a, Error *err)
{
    OpTensor *q = &a->t[ATTENTION_QUERY], *mask = &a->t[ATTENTION_MASK];
    int64_t heads = 0, all = 0;
    for (int i = ATTENTION_QUERY; i <= ATTENTION_VALUE; i++) {
        OpTensor *t = &a->t[i];
        if (t->rank < 3 || t->rank >= OP_MAX_RANK)
            return error_set(err, ERROR_INVALID, "enable_gqa needs 3 to %d dimensions, found %d",
                             OP_MAX_RANK - 1, t->rank);
        int64_t n = t->size[t->rank - 3];
        if (i == ATTENTION_QUERY) all = n;
        if (i == ATTENTION_KEY) heads = n;
        if (i != ATTENTION_QUERY && (n != heads || !n || all % n))
            return error_set(err, ERROR_INVALID,
                             "enable_gqa: %lld heads of queries do not fall to %lld of keys",
                             (long long)all, (long long)n);
    }
    split(q, q->rank - 3, all / heads);
    split(&a->t[ATTENTION_KEY], a->t[ATTENTION_KEY].rank - 3, 1);
    split(&a->t[ATTENTION_VALUE], a->t[ATTENTION_VALUE].rank - 3, 1);
    if (a->masked && mask->rank > 2) {
        if (mask->rank >= OP_MAX_RANK)
            return error_set(err, ERROR_LIMIT, "attn_mask has too many dimensions");
        split(mask, mask->rank - 3, mask->size[mask->rank - 3] == 1 ? 1 : all / heads);
    }
    return 0;
}

/* The mask's last two dimensions broadcast, too. */
static int mask_sizes(Attention *a, Error *err)
{
    OpTensor *m = &a->t[ATTENTION_MASK];
    const int64_t want[] = {a->rows, a->keys};
    while (m->rank < 2) {
        memmove(&m->size[1], &m->size[0], sizeof *m->size);
        memmove(&m->stride[1], &m->stride[0], sizeof *m->stride);
        m->size[0] = 1;
        m->stride[0] = 0;
        if (!m->rank++) m->size[1] = 1, m->stride[1] = 0, m->rank = 2;
    }
    for (int d = 0; d < 2; d++) {
        int at = m->rank - 2 + d;
        if (m->size[at] != want[d] && m->size[at] != 1)
            return error_set(err, ERROR_INVALID, "attn_mask: size %lld does not broadcast to %lld",
                             (long long)m->size[at], (long long)want[d]);
        if (m->size[at] == 1) m->stride[at] = 0;
        m->size[at] = want[d];
    }
    return 0;
}

/* The sizes of the batch. */
static int batch_sizes(Attention *a, int64_t *size, Error *err)
{
    OpTensor own[ATTENTION_OPERANDS];
    const OpTensor *of[ATTENTION_OPERANDS] = {0};
    for (int i = 0; i < (a->masked ? 4 : 3); i++) {
        own[i] = a->t[i];
        own[i].rank -= 2;
        of[i] = &own[i];
    }
    if (op_broadcast(of, 3, size, &a->lead, err)) return -1;
    int64_t with_mask[OP_MAX_RANK];
    int lead;
    if (!a->masked) return 0;
    if (op_broadcast(of, 4, with_mask, &lead, err)) return -1;
    if (lead == a->lead && !memcmp(size, with_mask, (size_t)lead * sizeof *size)) return 0;
    return error_set(err, ERROR_INVALID, "attn_mask: the batch is larger than the queries'");
}

/* Also gives the sizes of the result, whose batch is not split. */
static int attention_of(const OpCall *c, int logical, Attention *a, int64_t *size, int *rank,
                        Error *err)
{
    int64_t batch[OP_MAX_RANK];
    const OpValue *dropout = &c->arg[4], *scale = &c->arg[6];
    int grouped = (int)c->arg[7].integer[0];
    *a = (Attention){.causal = (int)c->arg[5].integer[0], .batch = 1};
    for (int i = 0; i < ATTENTION_OPERANDS; i++) {
        if (!op_tensor(c, i)) continue;
        a->t[i] = *op_tensor(c, i);
        a->index[i] = (int)c->arg[i].integer[0];
        if (logical) op_contiguous(&a->t[i]);
    }
    a->masked = op_tensor(c, ATTENTION_MASK) != NULL;
    if (dropout->number != 0)
        return error_set(err, ERROR_UNSUPPORTED, "dropout_p: expected 0, found %g",
                         dropout->number);
    if (check_sizes(a, err) || (grouped && group_heads(a, err))) return -1;
    const OpTensor *q = &a->t[ATTENTION_QUERY], *k = &a->t[ATTENTION_KEY],
                   *v = &a->t[ATTENTION_VALUE];
    a->rows = q->size[q->rank - 2], a->depth = q->size[q->rank - 1];
    a->keys = k->size[k->rank - 2], a->width = v->size[v->rank - 1];
    a->scale = scale->kind == OP_NONE ? 1 / sqrt((double)a->depth) : scale->number;
    if ((a->masked && mask_sizes(a, err)) || batch_sizes(a, batch, err)) return -1;
    for (int i = 0; i < (a->masked ? 4 : 3); i++) repeat(&a->t[i], a->lead, batch);
    for (int d = 0; d < a->lead; d++) a->batch *= batch[d];
    if ((double)a->batch * (double)a->rows * (double)a->keys >= 0x1p48)
        return error_set(err, ERROR_LIMIT, "there are 2^48 scores or more");
    a->y = (OpTensor){.dtype = q->dtype, .rank = a->lead + 2};
    memcpy(a->y.size, batch, sizeof batch);
    a->y.size[a->lead] = a->rows, a->y.size[a->lead + 1] = a->width;
    op_contiguous(&a->y);
    *rank = a->y.rank;
    memcpy(size, a->y.size, sizeof a->y.size);
    if (grouped) {
        int d = a->lead - 2;
        size[d] *= size[d + 1];
        memmove(&size[d + 1], &size[d + 2], (size_t)(--*rank - d - 1) * sizeof *size);
    }
    return 0;
}

static int infer(OpCall *c, Error *err)
{
    Attention a;
    int64_t size[OP_MAX_RANK];
    int rank;
    if (attention_of(c, 0, &a, size, &rank, err)) return -1;
    return op_result(c, a.y.dtype, rank, size, err);
}

/* ---- reference ---- */

static int64_t place(const Attention *a, const OpTensor *t, int64_t batch)
{
    int64_t at = 0;
    for (int d = a->lead - 1; d >= 0; batch /= t->size[d--])
        at += batch % t->size[d] * t->stride[d];
    return at;
}

static int least(int64_t left, int largest)
{
    return left < largest ? (int)left : largest;
}

/* c[m][n] = a[m][k] b: rows of a are a_step apart; element (k, n) of b is at k * bk + n * bn. */
typedef struct {
    const double *a, *b;
    double *c;
    int64_t a_step, bk, bn, c_step, n, k;
    int m;
} Rows;

/* buffer has room for acc and a panel of b. */
static void rows_product(const Rows *r, double *buffer)
{
    double *acc = buffer, *pb = acc + TILE_M * TILE_N;
    for (int64_t column = 0; column < r->n; column += TILE_N) {
        int n = least(r->n - column, TILE_N);
        Panel panel = product_panel(n, r->k);
        product_clear(r->m, n, acc);
        product_pad(&panel, n, pb);
        for (int64_t first = 0; first < r->k; first += panel.terms) {
            int k = least(r->k - first, panel.terms);
            for (int j = 0; j < k; j++)
                for (int i = 0; i < n; i++)
                    pb[j * panel.step + i] = r->b[(first + j) * r->bk + (column + i) * r->bn];
            product_tile(&(Tile){r->a + first, r->a_step, r->m, k, n, panel.step}, pb, acc);
        }
        for (int i = 0; i < r->m; i++)
            memcpy(r->c + i * r->c_step + column, acc + i * TILE_N, (size_t)n * sizeof *acc);
    }
}

/* mask: of the row, or NULL. */
static void softmax_row(const Attention *a, int64_t row, const double *mask, double *s)
{
    const int64_t step = a->t[ATTENTION_MASK].stride[a->lead + 1];
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        s[j] *= a->scale;
        if (mask && a->t[ATTENTION_MASK].dtype != DTYPE_B8) s[j] += mask[j * step];
        if ((a->causal && j > row) ||
            (mask && a->t[ATTENTION_MASK].dtype == DTYPE_B8 && !mask[j * step]))
            s[j] = -INFINITY;
        if (s[j] > largest) largest = s[j];
    }
    for (int64_t j = 0; j < a->keys; j++) {
        s[j] = exp(s[j] - (isinf(largest) && largest < 0 ? 0 : largest));
        sum += s[j];
    }
    for (int64_t j = 0; j < a->keys; j++) s[j] = sum == 0 ? 0 : s[j] / sum;
}

/* Some rows of an entry of the batch. */
typedef struct {
    int64_t entry, row;
    int m;
} Queries;

static void block_of(const Attention *a, const double *const *in, const Queries *of, double *y)
{
    int64_t entry = of->entry, row = of->row;
    int m = of->m;
    double *scores = memory_array((size_t)m * (size_t)a->keys + 1, sizeof *scores),
           *buffer = memory_grow(NULL, TILE_M * TILE_N + PANEL_ELEMENTS, sizeof *buffer);
    const double *q = in[a->index[ATTENTION_QUERY]] + place(a, &a->t[ATTENTION_QUERY], entry) +
                      row * a->depth,
                 *k = in[a->index[ATTENTION_KEY]] + place(a, &a->t[ATTENTION_KEY], entry),
                 *v = in[a->index[ATTENTION_VALUE]] + place(a, &a->t[ATTENTION_VALUE], entry),
                 *mask = a->masked
                             ? in[a->index[ATTENTION_MASK]] + place(a, &a->t[ATTENTION_MASK], entry)
                             : NULL;
    Rows first = {q, k, scores, a->depth, 1, a->depth, a->keys, a->keys, a->depth, m},
         second = {scores, v, y, a->keys, a->width, 1, a->width, a->width, a->keys, m};
    rows_product(&first, buffer);
    for (int i = 0; i < m; i++)
        softmax_row(a, row + i,
                    mask ? mask + (row + i) * a->t[ATTENTION_MASK].stride[a->lead] : NULL,
                    scores + i * a->keys);
    rows_product(&second, buffer);
    free(scores), free(buffer);
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    Attention a;
    int64_t size[OP_MAX_RANK];
    int rank;
    if (attention_of(c, 1, &a, size, &rank, err)) return -1;
    int64_t down = (a.rows + TILE_M - 1) / TILE_M;
#pragma omp parallel for schedule(dynamic) if (a.batch * a.rows * a.keys >= 1 << 12)
    for (int64_t i = 0; i < a.batch * down; i++) {
        Queries q = {i / down, i % down * TILE_M, 0};
        q.m = least(a.rows - q.row, TILE_M);
        block_of(&a, in, &q, out[0] + (q.entry * a.rows + q.row) * a.width);
    }
    return 0;
}

/* ---- single elements: a query against all keys ---- */

static int attention_logical(const OpCall *c, Attention *a)
{
    int64_t size[OP_MAX_RANK];
    int rank;
    Error ignored;
    return attention_of(c, 1, a, size, &rank, &ignored);
}

static void element_rows(const OpCall *c, int result, const int64_t *at, int64_t n, int64_t *row)
{
    (void)result;
    for (int64_t k = 0; k < n; k++) row[k] = at[k] / c->result[0].size[c->result[0].rank - 1];
}

static void needs_row(const Attention *a, int64_t row, const OpNeeds *out)
{
    int64_t entry = row / a->rows, query = row % a->rows;
    const OpTensor *mask = &a->t[ATTENTION_MASK];
    out->add(out->of, a->index[ATTENTION_QUERY],
             place(a, &a->t[ATTENTION_QUERY], entry) + query * a->depth, 1, a->depth);
    out->add(out->of, a->index[ATTENTION_KEY], place(a, &a->t[ATTENTION_KEY], entry), 1,
             a->keys * a->depth);
    out->add(out->of, a->index[ATTENTION_VALUE], place(a, &a->t[ATTENTION_VALUE], entry), 1,
             a->keys * a->width);
    if (a->masked)
        out->add(out->of, a->index[ATTENTION_MASK],
                 place(a, mask, entry) + query * mask->stride[a->lead], mask->stride[a->lead + 1],
                 mask->stride[a->lead + 1] ? a->keys : 1);
}

static void element_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    int64_t before = -1;
    Attention a;
    if (attention_logical(c, &a)) return;
    for (int64_t k = 0; k < s->n; k++) {
        int64_t row = s->at[k] / a.width;
        if (row != before) needs_row(&a, row, out);
        before = row;
    }
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    int64_t before = -1;
    Attention a;
    if (attention_logical(c, &a)) return;
    double *values = memory_array((size_t)a.width + 1, sizeof *values);
    for (int64_t k = 0; k < s->n; k++) {
        int64_t row = s->at[k] / a.width;
        if (row != before) block_of(&a, in, &(Queries){row / a.rows, row % a.rows, 1}, values);
        before = row;
        y[k] = values[s->at[k] % a.width];
    }
    free(values);
}

static const OpElements elements = {element_needs, element_compute, element_rows, NULL};

/* ---- kernels ---- */

static void side(Product *p, ProductOperand x, const OpTensor *t, const char *name, int lead,
                 const char *last)
{
    static const char letters[] = "ABCDEFGH";
    ProductSide *s = &p->side[x];
    s->tensor = t;
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->letters, sizeof s->letters, "%.*s%s", lead, letters, last);
}

/* The statement that makes v of score j. */
static void score_text(Buffer *b, const Attention *a, const char *type)
{
    const OpTensor *m = &a->t[ATTENTION_MASK];
    buffer_printf(b, "        %s v = at[j];\n", type);
    if (a->causal) buffer_printf(b, "        if (j > row %% %lld) v = LOW;\n", (long long)a->rows);
    if (!a->masked) return;
    buffer_printf(b, "        const %s x%d_j = (%s)x%d[mask + j * %lld];\n", type,
                  a->index[ATTENTION_MASK], type, a->index[ATTENTION_MASK],
                  (long long)m->stride[a->lead + 1]);
    if (m->dtype == DTYPE_B8)
        buffer_printf(b, "        if (x%d_j == 0) v = LOW;\n", a->index[ATTENTION_MASK]);
    else
        buffer_printf(b, "        v += x%d_j;\n", a->index[ATTENTION_MASK]);
}

/* A warp or a block a row. */
static int softmax(const AttentionSteps *s, OpPlain *out, Error *err)
{
    const Attention *a = &s->a;
    const int scratch = s->t, to = s->to;
    const char *type = text_type(a->y.dtype);
    int along = a->keys <= WARP_ROWS ? 32 : 256, threads = along == 32 ? 128 : along;
    int64_t rows = a->batch * a->rows, blocks = (rows * along + threads - 1) / threads;
    char names[32];
    Buffer *b = out->source;
    size_t n = (size_t)snprintf(names, sizeof names, "t%d", scratch);
    if (a->masked)
        n += (size_t)snprintf(names + n, sizeof names - n, " x%d", a->index[ATTENTION_MASK]);
    if (to != scratch) snprintf(names + n, sizeof names - n, " t%d", to);
    if (along > 32) text_block_reduce(out);
    if (!text_begin(out, &(TextHead){"softmax", names, blocks, threads}, err)) return -1;
    buffer_printf(b,
                  "    const %s LOW = (%s)-__longlong_as_double(0x7ff0000000000000LL);\n"
                  "    const long long row = (blockIdx.x * %dLL + threadIdx.x) / %d;\n"
                  "    const int lane = threadIdx.x %% %d;\n"
                  "    %s most = LOW, sum = 0;\n"
                  "    if (row >= %lld) return;\n"
                  "    %s *const at = t%d + row * %lld;\n",
                  type, type, threads, along, along, type, (long long)rows, type, scratch,
                  (long long)a->keys);
    if (along > 32) buffer_printf(b, "    __shared__ %s shared[32];\n", type);
    if (a->masked) {
        buffer_puts(b, "    const long long mask = ");
        text_strided(b,
                     &(Strided){a->t[ATTENTION_MASK].offset, a->lead + 1, a->t[ATTENTION_MASK].size,
                                a->t[ATTENTION_MASK].stride},
                     "row");
        buffer_puts(b, ";\n");
    }
    const char *each = "    for (int j = lane; j < %lld; j += %d) {\n";
    buffer_printf(b, each, (long long)a->keys, along);
    score_text(b, a, type);
    buffer_puts(b, "        most = v > most ? v : most;\n    }\n");
    if (along == 32)
        buffer_printf(b,
                      "    for (int d = 16; d; d /= 2) {\n"
                      "        const %s o = __shfl_xor_sync(0xffffffffu, most, d);\n"
                      "        most = o > most ? o : most;\n    }\n",
                      type);
    else
        buffer_printf(b,
                      "    most = op_block_reduce(most, [](%s u, %s v) { return u > v ? u : v; }, "
                      "shared);\n",
                      type, type);
    buffer_puts(b, "    if (most == LOW) most = 0;\n");
    buffer_printf(b, each, (long long)a->keys, along);
    score_text(b, a, type);
    buffer_puts(b, "        v = exp(v - most);\n        sum += v;\n        at[j] = v;\n    }\n");
    if (along == 32)
        buffer_puts(b, "    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, "
                       "d);\n");
    else
        buffer_printf(b,
                      "    sum = op_block_reduce(sum, [](%s u, %s v) { return u + v; }, shared);\n",
                      type, type);
    buffer_puts(b, "    sum = sum == 0 ? 0 : 1 / sum;\n");
    buffer_printf(b, each, (long long)a->keys, along);
    buffer_printf(b, "        t%d[row * %lld + j] = (%s)(at[j] * sum);\n    }\n", to,
                  (long long)a->keys, dtype_ctype(s->weights.dtype));
    return text_end(out, err);
}

static int shapes_of(const OpCall *c, AttentionSteps *s, Error *err)
{
    int64_t size[OP_MAX_RANK];
    int rank;
    const Attention *a = &s->a;
    if (attention_of(c, 0, &s->a, size, &rank, err)) return -1;
    s->scores = a->y;
    s->scores.dtype = a->y.dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    s->scores.size[a->lead + 1] = a->keys;
    op_contiguous(&s->scores);
    s->weights = s->scores;
    return 0;
}

/* from and to: the names of the scores and of their softmax. */
static void describe(AttentionSteps *s, const char *from, const char *to)
{
    char name[ATTENTION_OPERANDS][8];
    const Attention *a = &s->a;
    for (int i = 0; i < ATTENTION_OPERANDS; i++)
        snprintf(name[i], sizeof name[i], "x%d", a->index[i]);
    s->first = (Product){.alpha = a->scale}, s->second = (Product){.alpha = 1};
    side(&s->first, PRODUCT_A, &a->t[ATTENTION_QUERY], name[ATTENTION_QUERY], a->lead, "mk");
    side(&s->first, PRODUCT_B, &a->t[ATTENTION_KEY], name[ATTENTION_KEY], a->lead, "nk");
    side(&s->first, PRODUCT_C, &s->scores, from, a->lead, "mn");
    side(&s->second, PRODUCT_A, &s->weights, to, a->lead, "mk");
    side(&s->second, PRODUCT_B, &a->t[ATTENTION_VALUE], name[ATTENTION_VALUE], a->lead, "kn");
    side(&s->second, PRODUCT_C, &a->y, "y0", a->lead, "mn");
    product_groups(&s->first, 0);
    product_groups(&s->second, 0);
}

int attention_of_call(const OpCall *c, AttentionSteps *out)
{
    Error ignored;
    if (c->op->infer != infer || shapes_of(c, out, &ignored)) return 0;
    describe(out, "", "");
    return 1;
}

static int steps_of(const OpCall *c, int routed, OpPlain *out, AttentionSteps *s, Error *err)
{
    char from[8], to[8];
    if (shapes_of(c, s, err)) return -1;
    s->to = s->t = text_scratch(out, s->scores.dtype, op_elements(&s->scores), err);
    if (s->t < 0) return -1;
    if (routed && s->a.y.dtype != s->scores.dtype) {
        s->weights.dtype = s->a.y.dtype;
        s->to = text_scratch(out, s->a.y.dtype, op_elements(&s->scores), err);
        if (s->to < 0) return -1;
    }
    snprintf(from, sizeof from, "t%d", s->t);
    snprintf(to, sizeof to, "t%d", s->to);
    describe(s, from, to);
    return 0;
}

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    AttentionSteps s;
    if (steps_of(c, 0, out, &s, err)) return -1;
    if (op_elements(&s.scores) && (product_plain(&s.first, out, err) || softmax(&s, out, err)))
        return -1;
    return product_plain(&s.second, out, err);
}

/* Two products of cuBLAS, with the softmax between them. */
static int route(const OpCall *c, OpRoute *out, Error *err)
{
    AttentionSteps s;
    if (c->result[0].dtype > DTYPE_BF16) return 0;
    if (steps_of(c, 1, out->kernels, &s, err)) return -1;
    int rc = op_elements(&s.scores) && s.a.depth ? product_route(&s.first, c, out, err) : 0;
    if (rc <= 0) return rc;
    if (softmax(&s, out->kernels, err)) return -1;
    rc = product_route(&s.second, c, out, err);
    if (rc) return rc;
    return error_set(err, ERROR_LIMIT, "the library has no product for these values");
}

/* Keys that no query may see are not read. */
static void cost(const OpCall *c, OpCost *out)
{
    Attention a;
    int64_t size[OP_MAX_RANK];
    int rank;
    if (attention_of(c, 0, &a, size, &rank, NULL)) return;
    double rows = (double)a.rows, keys = (double)a.keys, pairs = rows * keys;
    if (a.causal) {
        double seen = rows < keys ? rows : keys, row = (double)dtype_size(a.y.dtype) / keys;
        pairs = seen * (seen + 1) / 2 + (rows - seen) * seen;
        out->bytes -= (keys - seen) * row *
                      (double)(op_elements(op_tensor(c, ATTENTION_KEY)) +
                               op_elements(op_tensor(c, ATTENTION_VALUE)));
    }
    out->flops = 2 * (double)a.batch * pairs * (double)(a.depth + a.width);
}

static const Op table[] = {
    {.name = "aten.scaled_dot_product_attention.default",
     .schema = "Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
               "dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False",
     .infer = infer,
     .reference = reference,
     .plain = plain,
     .cost = cost,
     .route = route,
     .elements = &elements},
};

const OpFamily attention_family = {"attention", table, sizeof table / sizeof *table};

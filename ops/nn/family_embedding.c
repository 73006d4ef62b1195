/* Rows of a table by their numbers. The reference refuses a number that is no row; a kernel does not look. */
#include <string.h>

#include "ops/op_element.h"
#include "ops/op_text.h"

static int infer(OpCall *c, Error *err)
{
    const OpTensor *table = op_tensor(c, 0), *at = op_tensor(c, 1);
    int64_t size[OP_MAX_RANK];
    if (table->rank != 2)
        return error_set(err, ERROR_INVALID, "weight: expected 2 dimensions, found %d",
                         table->rank);
    if (at->dtype != DTYPE_I64 && at->dtype != DTYPE_I32)
        return error_set(err, ERROR_INVALID, "indices: expected int32 or int64, found %s",
                         dtype_name(at->dtype));
    if (at->rank == OP_MAX_RANK)
        return error_set(err, ERROR_LIMIT, "indices: expected at most %d dimensions",
                         OP_MAX_RANK - 1);
    memcpy(size, at->size, sizeof size);
    size[at->rank] = table->size[1];
    return op_result(c, table->dtype, at->rank + 1, size, err);
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const OpTensor *table = op_tensor(c, 0);
    const double *rows = in[c->arg[0].integer[0]], *at = in[c->arg[1].integer[0]];
    int64_t n = op_elements(op_tensor(c, 1)), width = table->size[1];
    for (int64_t i = 0; i < n; i++) {
        if (!(at[i] >= 0 && at[i] < (double)table->size[0]))
            return error_set(err, ERROR_INVALID, "indices: %g is no row of %lld", at[i],
                             (long long)table->size[0]);
        memcpy(out[0] + i * width, rows + (int64_t)at[i] * width, (size_t)width * sizeof **out);
    }
    return 0;
}

/* Where the numbers are not known, each of a column's elements may be needed. */
static void element_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    const OpTensor *table = op_tensor(c, 0);
    const int rows = (int)c->arg[0].integer[0], numbers = (int)c->arg[1].integer[0];
    const double *known = out->known[numbers];
    int64_t width = table->size[1];
    for (int64_t k = 0; k < s->n; k++) {
        int64_t column = s->at[k] % width, row = s->at[k] / width;
        out->add(out->of, numbers, row, 1, 1);
        if (!known)
            out->add(out->of, rows, column, width, table->size[0]);
        else if (known[row] >= 0 && known[row] < (double)table->size[0])
            out->add(out->of, rows, (int64_t)known[row] * width + column, 1, 1);
    }
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    const OpTensor *table = op_tensor(c, 0);
    int64_t width = table->size[1];
    for (int64_t k = 0; k < s->n; k++) {
        double row = in[c->arg[1].integer[0]][s->at[k] / width];
        int inside = row >= 0 && row < (double)table->size[0];
        y[k] = inside ? in[c->arg[0].integer[0]][(int64_t)row * width + s->at[k] % width] : 0;
    }
}

static const OpElements elements = {element_needs, element_compute, NULL, NULL};

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *table = op_tensor(c, 0), *at = op_tensor(c, 1), *y = &c->result[0];
    int t = (int)c->arg[0].integer[0], i = (int)c->arg[1].integer[0];
    if (!text_each(out, "embedding", NULL, op_elements(y), err)) return -1;
    Buffer *b = out->source;
    buffer_printf(b, "    const long long row = i / %lld, at = x%d[", (long long)table->size[1], i);
    text_index(b, at, at->rank, at->size, "row");
    buffer_printf(b, "];\n    y0[i] = x%d[%lld + at * %lldLL + i %% %lld * %lldLL];\n", t,
                  (long long)table->offset, (long long)table->stride[0], (long long)table->size[1],
                  (long long)table->stride[1]);
    return text_each_end(out, err);
}

/* All numbers may name one row. */
static void cost(const OpCall *c, OpCost *out)
{
    const OpTensor *table = op_tensor(c, 0), *y = &c->result[0];
    double row = (double)(table->size[1] * (int64_t)dtype_size(table->dtype));
    out->bytes = op_bytes(op_tensor(c, 1)) + op_bytes(y) + (op_elements(y) ? row : 0);
}

/* ---- bags: sums, means or maxima of rows, bag b from offsets[b] on ---- */

typedef enum { BAG_SUM, BAG_MEAN, BAG_MAX } BagMode;

typedef struct {
    const OpTensor *table, *indices, *offsets, *weights; /* weights: NULL, none */
    int table_at, indices_at, offsets_at, weights_at;    /* in OpCall.tensor */
    int64_t bags, n, padding; /* padding: a number that is left out; -1: none */
    BagMode mode;
} Bags;

static int index_of(const OpCall *c, const char *name)
{
    return (int)c->arg[op_argument(c->op, name)].integer[0];
}

static void bags_of(const OpCall *c, Bags *b)
{
    int weights = op_argument(c->op, "per_sample_weights"),
        padding = op_argument(c->op, "padding_idx");
    *b = (Bags){
        .table_at = index_of(c, "weight"),
        .indices_at = index_of(c, "indices"),
        .offsets_at = index_of(c, "offsets"),
        .padding = padding >= 0 && c->arg[padding].kind == OP_INT ? c->arg[padding].integer[0] : -1,
        .mode = (BagMode)index_of(c, "mode")};
    b->table = &c->tensor[b->table_at], b->indices = &c->tensor[b->indices_at];
    b->offsets = &c->tensor[b->offsets_at];
    if (c->arg[weights].kind == OP_TENSOR) {
        b->weights_at = (int)c->arg[weights].integer[0];
        b->weights = &c->tensor[b->weights_at];
    }
    b->n = op_elements(b->indices);
    b->bags = op_elements(b->offsets) - index_of(c, "include_last_offset");
}

static int infer_bags(OpCall *c, Error *err)
{
    Bags b;
    bags_of(c, &b);
    if (b.table->rank != 2 || b.indices->rank != 1 || b.offsets->rank != 1)
        return error_set(err, ERROR_INVALID,
                         "expected a weight of 2 dimensions, indices and offsets of 1");
    if (dtype_kind(b.indices->dtype) != KIND_INTEGER ||
        dtype_kind(b.offsets->dtype) != KIND_INTEGER)
        return error_set(err, ERROR_INVALID, "expected indices and offsets of int32 or int64");
    if ((int)b.mode < BAG_SUM || b.mode > BAG_MAX)
        return error_set(err, ERROR_INVALID, "mode: expected 0 to 2, found %d", (int)b.mode);
    if (b.weights &&
        (b.mode != BAG_SUM || b.weights->dtype != b.table->dtype || op_elements(b.weights) != b.n))
        return error_set(err, ERROR_INVALID,
                         "per_sample_weights: expected %lld of a sum, of the type %s",
                         (long long)b.n, dtype_name(b.table->dtype));
    int64_t size[] = {b.bags, b.table->size[1]};
    return op_result(c, b.table->dtype, 2, size, err);
}

/* One bag of indices [from, to). */
static int reference_bag(const Bags *b, const double *const *in, int64_t from, int64_t to,
                         double *y, Error *err)
{
    int64_t width = b->table->size[1], taken = 0;
    memset(y, 0, (size_t)width * sizeof *y);
    for (int64_t i = from; i < to; i++) {
        double row = in[b->indices_at][i], w = b->weights ? in[b->weights_at][i] : 1;
        if (!(row >= 0 && row < (double)b->table->size[0]))
            return error_set(err, ERROR_INVALID, "indices: %g is no row of %lld", row,
                             (long long)b->table->size[0]);
        if ((int64_t)row == b->padding) continue;
        const double *x = in[b->table_at] + (int64_t)row * width;
        for (int64_t k = 0; k < width; k++) {
            if (b->mode != BAG_MAX)
                y[k] += w * x[k];
            else if (!taken || x[k] > y[k])
                y[k] = x[k];
        }
        taken++;
    }
    for (int64_t k = 0; k < width && b->mode == BAG_MEAN && taken; k++) y[k] /= (double)taken;
    return 0;
}

static int reference_bags(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    Bags b;
    bags_of(c, &b);
    const double *offsets = in[b.offsets_at];
    for (int64_t i = 0; i < b.bags; i++) {
        double from = offsets[i],
               to = i + 1 < op_elements(b.offsets) ? offsets[i + 1] : (double)b.n;
        if (!(from >= 0 && from <= to && to <= (double)b.n))
            return error_set(err, ERROR_INVALID, "offsets: %g to %g is no bag of %lld", from, to,
                             (long long)b.n);
        if (reference_bag(&b, in, (int64_t)from, (int64_t)to, out[0] + i * b.table->size[1], err))
            return -1;
    }
    return 0;
}

/* An element of a one-dimensional tensor. */
static void element_text(Buffer *out, const OpTensor *t, int at, const char *i)
{
    buffer_printf(out, "x%d[%lldLL + (%s) * %lldLL]", at, (long long)t->offset, i,
                  (long long)t->stride[0]);
}

/* A thread for each feature of each bag, as eager PyTorch has it. */
static int plain_bags(const OpCall *c, OpPlain *out, Error *err)
{
    Bags b;
    bags_of(c, &b);
    const OpTensor *y = &c->result[0];
    const char *type = text_type(y->dtype);
    if (!text_each(out, "embedding_bag", NULL, op_elements(y), err)) return -1;
    Buffer *text = out->source;
    buffer_printf(text, "    const long long bag = i / %lld, column = i %% %lld, from = ",
                  (long long)y->size[1], (long long)y->size[1]);
    element_text(text, b.offsets, b.offsets_at, "bag");
    buffer_printf(text, ", to = bag + 1 < %lldLL ? (long long)", (long long)op_elements(b.offsets));
    element_text(text, b.offsets, b.offsets_at, "bag + 1");
    buffer_printf(text, " : %lldLL;\n    %s sum = 0;\n    long long taken = 0;\n", (long long)b.n,
                  type);
    buffer_puts(text,
                "    for (long long at = from; at < to; at++) {\n        const long long row = ");
    element_text(text, b.indices, b.indices_at, "at");
    buffer_printf(text, ";\n        if (row == %lldLL) continue;\n        const %s v = (%s)x%d[",
                  (long long)b.padding, type, type, b.table_at);
    buffer_printf(text, "%lldLL + row * %lldLL + column * %lldLL]", (long long)b.table->offset,
                  (long long)b.table->stride[0], (long long)b.table->stride[1]);
    if (b.weights) {
        buffer_printf(text, " * (%s)", type);
        element_text(text, b.weights, b.weights_at, "at");
    }
    buffer_printf(text, ";\n        sum = %s;\n        taken++;\n    }\n",
                  b.mode == BAG_MAX ? "!taken || v > sum ? v : sum" : "sum + v");
    buffer_printf(text, "    y0[i] = (%s)(%s);\n", dtype_ctype(y->dtype),
                  b.mode == BAG_MEAN ? "taken ? sum / taken : sum" : "sum");
    return text_each_end(out, err);
}

/* All numbers may name one row. */
static void cost_bags(const OpCall *c, OpCost *out)
{
    Bags b;
    bags_of(c, &b);
    out->bytes -= op_bytes(b.table);
    if (b.n) out->bytes += (double)(b.table->size[1] * (int64_t)dtype_size(b.table->dtype));
    out->flops = (double)(b.n * b.table->size[1]);
}

/* Of PyTorch's results the first is what a module takes. */
#define BAGS(overload, more)                                                                       \
    {                                                                                              \
        .name = "aten.embedding_bag." overload,                                                    \
        .schema = "Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, " \
                  "int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "               \
                  "bool include_last_offset=False" more,                                           \
        .infer = infer_bags, .reference = reference_bags, .plain = plain_bags, .cost = cost_bags   \
    }

static const Op table[] = {
    BAGS("default", ""),
    BAGS("padding_idx", ", int? padding_idx=None"),
    {.name = "aten.embedding.default",
     .schema = "Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, "
               "bool sparse=False",
     .infer = infer,
     .reference = reference,
     .plain = plain,
     .cost = cost,
     .elements = &elements},
};

const OpFamily embedding_family = {"embedding", table, sizeof table / sizeof *table};

/* Elements that are written, or added, at places that an index tensor says, as they come, as eager PyTorch
 * does. Of elements for one place that differ any may stay; in the reference it is the last one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/memory.h"
#include "base/part.h"
#include "ops/op_text.h"

EMBED(op_scatter_cu, "ops/row/family_scatter.cu")

typedef enum {
    SCATTER_WRITE = 0,
    SCATTER_ADD = 1,
    SCATTER_LINES = 2,
    SCATTER_REDUCE = 4
} ScatterKind;
/* What becomes of the elements for one place. */
typedef enum { REDUCE_WRITE, REDUCE_SUM, REDUCE_MEAN, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN } Reduce;

static const struct {
    const char *name, *text; /* of element a and what comes to it, v */
    double begin;            /* where self is not included */
} reduces[] = {[REDUCE_WRITE] = {"", "", 0},
               [REDUCE_SUM] = {"sum", "", 0},
               [REDUCE_MEAN] = {"mean", "", 0},
               [REDUCE_PROD] = {"prod", "a * v", 1},
               [REDUCE_MAX] = {"amax", "a != a || a > v ? a : v", -INFINITY},
               [REDUCE_MIN] = {"amin", "a != a || a < v ? a : v", INFINITY}};

/* Element i of the elements that are written, by their coordinates: where its index is, and where it
 * goes without the indexed dimension. */
typedef struct {
    Reduce reduce;
    int lines, dim, rank, source; /* source -1: a number */
    int fresh;                    /* self is not included where anything is written */
    int64_t n, size[OP_MAX_RANK], at[OP_MAX_RANK], to[OP_MAX_RANK], from[OP_MAX_RANK];
    double value, alpha;
} Scatter;

static int argument(const OpCall *c, const char *a, const char *b)
{
    int at = op_argument(c->op, a);
    return at >= 0 || !b ? at : op_argument(c->op, b);
}

/* REDUCE_WRITE: it has another name. */
static Reduce reduce_of(const OpCall *c)
{
    const char *name = c->arg[op_argument(c->op, "reduce")].text;
    int r = REDUCE_MIN;
    while (r && strcmp(reduces[r].name, name)) r--;
    return (Reduce)r;
}

/* logical: places are those of elements in C order, not in memory. */
static void scatter_of(const OpCall *c, int logical, Scatter *s)
{
    int kind = *(const int *)c->op->detail, src = argument(c, "src", "source");
    OpTensor x = *op_tensor(c, 0), index = *op_tensor(c, 2), y = x;
    OpTensor given = src >= 0 ? *op_tensor(c, src) : index;
    *s = (Scatter){.reduce = kind & SCATTER_ADD ? REDUCE_SUM : REDUCE_WRITE,
                   .lines = kind & SCATTER_LINES,
                   .alpha = 1};
    if (kind & SCATTER_REDUCE) {
        s->reduce = reduce_of(c);
        s->fresh = !c->arg[op_argument(c->op, "include_self")].integer[0];
    }
    if (c->n_results) y = c->result[0];
    if (logical) op_contiguous(&y), op_contiguous(&index), op_contiguous(&given);
    op_dim(c->arg[1].integer[0], x.rank, &s->dim, NULL);
    s->rank = x.rank;
    s->source = src >= 0 ? (int)c->arg[src].integer[0] : -1;
    if (src < 0) s->value = c->arg[op_argument(c->op, "value")].number;
    int alpha = op_argument(c->op, "alpha");
    if (alpha >= 0) s->alpha = c->arg[alpha].number;
    s->n = 1;
    for (int d = 0; d < x.rank; d++) {
        s->size[d] = s->lines ? given.size[d] : index.size[d];
        s->n *= s->size[d];
        s->at[d] = !s->lines ? index.stride[d] : d == s->dim && index.rank ? index.stride[0] : 0;
        s->to[d] = d == s->dim ? 0 : y.stride[d];
        s->from[d] = given.stride[d];
    }
}

static int check_sizes(const OpCall *c, const OpTensor *src, int dim, Error *err)
{
    const OpTensor *x = op_tensor(c, 0), *index = op_tensor(c, 2);
    int lines = *(const int *)c->op->detail & SCATTER_LINES;
    if (lines ? index->rank > 1 : index->rank != x->rank)
        return error_set(err, ERROR_INVALID, "index: expected %d dimensions, found %d",
                         lines ? 1 : x->rank, index->rank);
    if (src && src->rank != x->rank)
        return error_set(err, ERROR_INVALID, "the source: expected %d dimensions, found %d",
                         x->rank, src->rank);
    for (int d = 0; d < x->rank; d++) {
        int fits = lines ? src->size[d] == (d == dim ? op_elements(index) : x->size[d])
                         : (d == dim || index->size[d] <= x->size[d]) &&
                               (!src || index->size[d] <= src->size[d]);
        if (!fits) return error_set(err, ERROR_INVALID, "the sizes do not fit at dimension %d", d);
    }
    return 0;
}

static int check_reduce(const OpCall *c, const OpTensor *x, Error *err)
{
    Reduce r = reduce_of(c);
    if (!r)
        return error_set(err, ERROR_INVALID, "expected sum, prod, mean, amax or amin, found %s",
                         c->arg[op_argument(c->op, "reduce")].text);
    if (!dtype_is_float(x->dtype))
        return error_set(err, ERROR_UNSUPPORTED, "%s of %s is not supported; convert it to float32",
                         reduces[r].name, dtype_name(x->dtype));
    if (c->op->flags & OP_IN_PLACE && r == REDUCE_MEAN && !op_is_contiguous(x))
        return error_set(err, ERROR_UNSUPPORTED, "a mean in a view is not supported");
    return 0;
}

static int infer(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0), *index = op_tensor(c, 2);
    int src = argument(c, "src", "source"), dim;
    const OpTensor *given = src >= 0 ? op_tensor(c, src) : NULL;
    if (x->rank < 1) return error_set(err, ERROR_UNSUPPORTED, "self has no dimensions");
    if (op_dim(c->arg[1].integer[0], x->rank, &dim, err)) return -1;
    if (index->dtype != DTYPE_I64 && index->dtype != DTYPE_I32)
        return error_set(err, ERROR_INVALID, "index: expected integers, found %s",
                         dtype_name(index->dtype));
    if (given && given->dtype != x->dtype)
        return error_set(err, ERROR_INVALID, "the source: expected %s, found %s",
                         dtype_name(x->dtype), dtype_name(given->dtype));
    if (check_sizes(c, given, dim, err)) return -1;
    if (*(const int *)c->op->detail & SCATTER_ADD &&
        (x->dtype == DTYPE_B8 || dtype_is_small(x->dtype)))
        return error_set(err, ERROR_UNSUPPORTED, "a sum of %s is not supported",
                         dtype_name(x->dtype));
    if (*(const int *)c->op->detail & SCATTER_REDUCE && check_reduce(c, x, err)) return -1;
    if (c->op->flags & OP_IN_PLACE) return op_view(c, (int)c->arg[0].integer[0], x, err);
    return op_result(c, x->dtype, x->rank, x->size, err);
}

static double reduced(Reduce r, double a, double v)
{
    switch (r) {
    case REDUCE_WRITE: return v;
    case REDUCE_PROD: return a * v;
    case REDUCE_MAX: return isnan(a) || a > v ? a : v;
    case REDUCE_MIN: return isnan(a) || a < v ? a : v;
    default: return a + v;
    }
}

/* count: by place, how many elements were written. */
static int reference_write(const OpCall *c, const Scatter *s, const double *const *in, double *y,
                           int64_t *count, Error *err)
{
    const double *index = in[c->arg[2].integer[0]];
    OpTensor plain = c->result[0];
    op_contiguous(&plain);
    for (int64_t i = 0; i < s->n; i++) {
        int64_t at = 0, to = 0, from = 0, rest = i;
        for (int d = s->rank - 1; d >= 0; rest /= s->size[d--]) {
            int64_t o = rest % s->size[d];
            at += o * s->at[d], to += o * s->to[d], from += o * s->from[d];
        }
        int64_t k = (int64_t)index[at];
        if (k < 0 || k >= plain.size[s->dim])
            return error_set(err, ERROR_INVALID, "index %lld of %lld", (long long)k,
                             (long long)plain.size[s->dim]);
        double v = s->alpha * (s->source >= 0 ? in[s->source][from] : s->value);
        int64_t place = to + k * plain.stride[s->dim];
        double before = s->fresh && !count[place] ? reduces[s->reduce].begin : y[place];
        y[place] = reduced(s->reduce, before, v);
        if (count) count[place]++;
    }
    return 0;
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *self = in[c->arg[0].integer[0]];
    int64_t n = op_elements(&c->result[0]), *count = NULL;
    Scatter s;
    scatter_of(c, 1, &s);
    if (self != out[0]) memcpy(out[0], self, (size_t)n * sizeof **out);
    if (s.fresh || s.reduce == REDUCE_MEAN) count = memory_array((size_t)n, sizeof *count);
    int rc = reference_write(c, &s, in, out[0], count, err);
    for (int64_t i = 0; s.reduce == REDUCE_MEAN && i < n && !rc; i++)
        if (count[i]) out[0][i] /= (double)(count[i] + !s.fresh);
    free(count);
    return rc;
}

static void cost(const OpCall *c, OpCost *out)
{
    Scatter s;
    scatter_of(c, 1, &s);
    if (s.reduce != REDUCE_WRITE) out->flops = (double)s.n;
}

/* ---- kernels ---- */

static void operands(const OpCall *c, const Scatter *s, TextOperands *o)
{
    text_operand(o, 'x', (int)c->arg[2].integer[0]);
    if (s->source >= 0) text_operand(o, 'x', s->source);
    text_operand(o, 'y', 0);
}

/* The result is self. */
static int begin_launch(const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *x = op_tensor(c, 0), *y = &c->result[0];
    Buffer *b = out->source;
    TextOperands o = {""};
    if (c->op->flags & OP_IN_PLACE) return 0;
    text_operand(&o, 'x', (int)c->arg[0].integer[0]);
    text_operand(&o, 'y', 0);
    if (!text_each(out, "scatter_begin", o.text, op_elements(y), err)) return -1;
    buffer_printf(b, "    y0[i] = x%lld[", (long long)c->arg[0].integer[0]);
    text_index(b, x, x->rank, x->size, "i");
    buffer_puts(b, "];\n");
    return text_each_end(out, err);
}

/* `place`: of element i, in memory. */
static void place_text(const OpCall *c, const Scatter *s, Buffer *b)
{
    const OpTensor *index = op_tensor(c, 2), *y = &c->result[0];
    buffer_printf(b, "    const long long place = (long long)x%lld[",
                  (long long)c->arg[2].integer[0]);
    text_strided(b, &(Strided){index->offset, s->rank, s->size, s->at}, "i");
    buffer_printf(b, "] * %lldLL + ", (long long)y->stride[s->dim]);
    text_strided(b, &(Strided){y->offset, s->rank, s->size, s->to}, "i");
    buffer_puts(b, ";\n");
}

/* The element that is written, as a number of the arithmetic's type. */
static void value_text(const OpCall *c, const Scatter *s, Buffer *b)
{
    Dtype d = c->result[0].dtype;
    const char *type = text_type(d);
    buffer_printf(b, "    const %s v = ", type);
    if (s->source >= 0) {
        buffer_printf(b, "(%s)%sx%d[", type, text_cast(d, DTYPE_F32), s->source);
        text_strided(b, &(Strided){c->tensor[s->source].offset, s->rank, s->size, s->from}, "i");
        buffer_puts(b, "]");
    } else {
        buffer_printf(b, "(%s)", type);
        text_number(b, s->value);
    }
    if (s->alpha != 1) {
        buffer_printf(b, " * (%s)", type);
        text_number(b, s->alpha);
    }
    buffer_puts(b, ";\n");
}

static int add_launch(const OpCall *c, const Scatter *s, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    Dtype d = c->result[0].dtype;
    const char *element = dtype_ctype(d);
    operands(c, s, &o);
    if (!text_each(out, "scatter_add", o.text, s->n, err)) return -1;
    place_text(c, s, b);
    value_text(c, s, b);
    if (d == DTYPE_I64)
        buffer_puts(b, "    atomicAdd((unsigned long long *)&y0[place], (unsigned long long)v);\n");
    else
        buffer_printf(b, "    atomicAdd(&y0[place], (%s)v);\n", element);
    return text_each_end(out, err);
}

static int write_launch(const OpCall *c, const Scatter *s, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    operands(c, s, &o);
    if (!text_each(out, "scatter_write", o.text, s->n, err)) return -1;
    place_text(c, s, b);
    value_text(c, s, b);
    buffer_printf(b, "    y0[place] = (%s)v;\n", dtype_ctype(c->result[0].dtype));
    return text_each_end(out, err);
}

/* Places that are written begin anew. */
static int fresh_launch(const OpCall *c, const Scatter *s, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    text_operand(&o, 'x', (int)c->arg[2].integer[0]);
    text_operand(&o, 'y', 0);
    if (!text_each(out, "scatter_fresh", o.text, s->n, err)) return -1;
    place_text(c, s, b);
    buffer_printf(b, "    y0[place] = (%s)", dtype_ctype(c->result[0].dtype));
    text_number(b, reduces[s->reduce].begin);
    buffer_puts(b, ";\n");
    return text_each_end(out, err);
}

static int replace_launch(const OpCall *c, const Scatter *s, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    const char *type = dtype_ctype(c->result[0].dtype), *wide = text_type(c->result[0].dtype);
    operands(c, s, &o);
    part_put(b, op_scatter_cu, "replace");
    if (!text_each(out, "scatter_replace", o.text, s->n, err)) return -1;
    place_text(c, s, b);
    value_text(c, s, b);
    buffer_printf(b, "    op_replace(&y0[place], (%s)v, [](%s x, %s y) {\n", type, type, type);
    buffer_printf(b, "        const %s a = (%s)x, v = (%s)y;\n        return (%s)(%s);\n    });\n",
                  wide, wide, wide, type, reduces[s->reduce].text);
    return text_each_end(out, err);
}

/* Sums, the number of terms of each, and the quotients. */
static int mean_launches(const OpCall *c, const Scatter *s, OpPlain *out, Error *err)
{
    Buffer *b = out->source;
    TextOperands o = {""};
    const OpTensor *y = &c->result[0];
    char each[24];
    int t = text_scratch(out, DTYPE_I32, op_elements(y), err);
    if (t < 0) return -1;
    snprintf(each, sizeof each, "t%d", t);
    if (!text_each(out, "scatter_none", each, op_elements(y), err)) return -1;
    buffer_printf(b, "    t%d[i] = %d;\n", t, !s->fresh);
    if (text_each_end(out, err) || add_launch(c, s, out, err)) return -1;
    text_operand(&o, 'x', (int)c->arg[2].integer[0]);
    text_operand_named(&o, each);
    if (!text_each(out, "scatter_count", o.text, s->n, err)) return -1;
    place_text(c, s, b);
    buffer_printf(b, "    atomicAdd(&t%d[place], 1);\n", t);
    if (text_each_end(out, err)) return -1;
    snprintf(each, sizeof each, "t%d y0", t);
    if (!text_each(out, "scatter_mean", each, op_elements(y), err)) return -1;
    const char *wide = text_type(y->dtype);
    buffer_printf(b, "    if (t%d[i] > 1) y0[i] = (%s)((%s)y0[i] / (%s)t%d[i]);\n", t,
                  dtype_ctype(y->dtype), wide, wide, t);
    return text_each_end(out, err);
}

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    Scatter s;
    scatter_of(c, 0, &s);
    if (s.n > INT32_MAX) return error_set(err, ERROR_LIMIT, "more than 2^31 elements are written");
    if (begin_launch(c, out, err)) return -1;
    if (!s.n) return 0;
    if (s.fresh && fresh_launch(c, &s, out, err)) return -1;
    if (s.reduce == REDUCE_MEAN) return mean_launches(c, &s, out, err);
    if (s.reduce == REDUCE_SUM) return add_launch(c, &s, out, err);
    if (s.reduce != REDUCE_WRITE) return replace_launch(c, &s, out, err);
    return write_launch(c, &s, out, err);
}

/* ---- one_hot ---- */

static int infer_one_hot(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    int64_t size[OP_MAX_RANK], classes = c->arg[1].integer[0];
    if (x->dtype != DTYPE_I64) return error_set(err, ERROR_INVALID, "expected indices of int64");
    if (classes < 1)
        return error_set(err, ERROR_UNSUPPORTED,
                         "num_classes is not given: a size may not depend on the data");
    if (x->rank == OP_MAX_RANK)
        return error_set(err, ERROR_LIMIT, "expected a rank below %d", OP_MAX_RANK);
    memcpy(size, x->size, sizeof size);
    size[x->rank] = classes;
    return op_result(c, DTYPE_I64, x->rank + 1, size, err);
}

static int reference_one_hot(const OpCall *c, const double *const *in, double *const *out,
                             Error *err)
{
    const double *index = in[c->arg[0].integer[0]];
    int64_t n = op_elements(op_tensor(c, 0)), classes = c->arg[1].integer[0];
    memset(out[0], 0, (size_t)(n * classes) * sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        if (!(index[i] >= 0 && index[i] < (double)classes))
            return error_set(err, ERROR_INVALID, "index %g of %lld", index[i], (long long)classes);
        out[0][i * classes + (int64_t)index[i]] = 1;
    }
    return 0;
}

/* Zeros, and a scatter of ones, as eager PyTorch does it. */
static int plain_one_hot(const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    Buffer *b = out->source;
    if (!text_each(out, "one_hot_begin", "y0", op_elements(&c->result[0]), err)) return -1;
    buffer_puts(b, "    y0[i] = 0;\n");
    if (text_each_end(out, err) || !text_each(out, "one_hot", NULL, op_elements(x), err)) return -1;
    buffer_printf(b, "    y0[(long long)i * %lld + x0[", (long long)c->arg[1].integer[0]);
    text_index(b, x, x->rank, x->size, "i");
    buffer_puts(b, "]] = 1;\n");
    return text_each_end(out, err);
}

#define ROW(aten, text, kind, op_flags)                                                           \
    {                                                                                             \
        "aten." aten, "Tensor self, int dim, Tensor index, " text, infer, reference, plain, cost, \
            op_flags, &(const int)                                                                \
        {                                                                                         \
            kind                                                                                  \
        }                                                                                         \
    }
#define BOTH(packet, overload, text, kind) \
    ROW(packet "." overload, text, kind, 0), ROW(packet "_." overload, text, kind, OP_IN_PLACE)

static const Op table[] = {
    BOTH("scatter", "src", "Tensor src", SCATTER_WRITE),
    BOTH("scatter", "value", "Scalar value", SCATTER_WRITE),
    BOTH("scatter_add", "default", "Tensor src", SCATTER_ADD),
    BOTH("scatter_reduce", "two", "Tensor src, str reduce, *, bool include_self=True",
         SCATTER_REDUCE),
    BOTH("index_reduce", "default", "Tensor source, str reduce, *, bool include_self=True",
         SCATTER_REDUCE | SCATTER_LINES),
    BOTH("index_copy", "default", "Tensor source", SCATTER_WRITE | SCATTER_LINES),
    BOTH("index_add", "default", "Tensor source, *, Scalar alpha=1", SCATTER_ADD | SCATTER_LINES),
    {"aten.one_hot.default", "Tensor self, int num_classes=-1", infer_one_hot, reference_one_hot,
     plain_one_hot, NULL, 0, NULL},
};

const OpFamily scatter_family = {"scatter", table, sizeof table / sizeof *table};

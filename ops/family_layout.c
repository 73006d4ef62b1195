/* Operators that write memory without arithmetic: concatenation, triangles, constants, conversions. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/op_element.h"
#include "ops/op_strided.h"
#include "ops/op_text.h"

/* ---- conversion of dtype ---- */

static int convert(const OpCall *c, OpTensor *y, Error *err)
{
    int dtype = op_argument(c->op, "dtype"), copy = op_argument(c->op, "copy");
    Dtype from = y->dtype;
    (void)err;
    if (c->arg[dtype].kind == OP_DTYPE) y->dtype = (Dtype)c->arg[dtype].integer[0];
    return y->dtype != from || c->arg[copy].integer[0];
}

static int convert_as(const OpCall *c, OpTensor *y, Error *err)
{
    Dtype from = y->dtype;
    (void)err;
    y->dtype = op_tensor(c, 1)->dtype;
    return y->dtype != from;
}

/* ---- cat and stack ---- */

enum { MIN_ALIKE = 4 }; /* tensors that share their text, which two or three would not shorten */

static int is_stack(const OpCall *c)
{
    return !strcmp(c->op->name, "aten.stack.default");
}

/* Tensor i as a part of the result: stacked tensors have a dimension of size 1. 0: a 1-D tensor without
 * elements, which cat ignores whatever the others' rank is. */
static int part(const OpCall *c, int i, int dim, OpTensor *t)
{
    *t = c->tensor[c->arg[0].integer[i]];
    if (!is_stack(c)) return t->rank != 1 || t->size[0] != 0;
    for (int d = t->rank++; d > dim; d--) {
        t->size[d] = t->size[d - 1];
        t->stride[d] = t->stride[d - 1];
    }
    t->size[dim] = 1;
    t->stride[dim] = 0;
    return 1;
}

/* The dimension, by the first tensor that counts. */
static int cat_dim(const OpCall *c, int *dim, Error *err)
{
    OpTensor t = {0};
    if (!c->arg[0].n) return error_set(err, ERROR_INVALID, "the list of tensors is empty");
    for (int i = 0; i < c->arg[0].n && !(t.rank > 0 && !(t.rank == 1 && !t.size[0])); i++)
        t = c->tensor[c->arg[0].integer[i]];
    if (t.rank == 0 && !is_stack(c))
        return error_set(err, ERROR_INVALID, "tensors of rank 0 cannot be concatenated");
    if (t.rank + is_stack(c) > OP_MAX_RANK)
        return error_set(err, ERROR_LIMIT, "expected a rank below %d", OP_MAX_RANK);
    return op_dim(c->arg[1].integer[0], t.rank + is_stack(c), dim, err);
}

static int infer_cat(OpCall *c, Error *err)
{
    OpTensor y = {0}, t;
    int dim, have = 0;
    if (cat_dim(c, &dim, err)) return -1;
    Dtype dtype = op_promote_list(c, &c->arg[0]);
    for (int i = 0; i < c->arg[0].n; i++) {
        const OpTensor *first = &c->tensor[c->arg[0].integer[0]],
                       *own = &c->tensor[c->arg[0].integer[i]];
        if (is_stack(c) && own->rank != first->rank)
            return error_set(err, ERROR_INVALID, "tensor %d has another rank than the first one",
                             i);
        if (!part(c, i, dim, &t)) continue;
        if (!have++) {
            y = t;
            continue;
        }
        for (int d = 0; d < y.rank || d < t.rank; d++)
            if (y.rank != t.rank || (d != dim && y.size[d] != t.size[d]) ||
                (d == dim && y.size[d] > INT64_MAX - t.size[d]))
                return error_set(err, ERROR_INVALID, "tensor %d does not fit the first one", i);
        y.size[dim] += t.size[dim];
    }
    if (!have) y = c->tensor[c->arg[0].integer[0]];
    return op_result(c, dtype, y.rank, y.size, err);
}

static int reference_cat(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const OpTensor *y = &c->result[0];
    int dim;
    int64_t inner = 1, start = 0;
    OpTensor t;
    if (cat_dim(c, &dim, err)) return -1;
    for (int d = dim + 1; d < y->rank; d++) inner *= y->size[d];
    for (int i = 0; i < c->arg[0].n; i++) {
        if (!part(c, i, dim, &t)) continue;
        int64_t run = t.size[dim] * inner, n = op_elements(&t);
        for (int64_t k = 0; run && k < n / run; k++)
            memcpy(out[0] + k * y->size[dim] * inner + start * inner,
                   in[c->arg[0].integer[i]] + k * run, (size_t)run * sizeof(double));
        start += t.size[dim];
    }
    return 0;
}

/* Where element `at` of the result lies: in which input, and its place there. */
typedef struct {
    int tensor;
    int64_t at;
} CatPlace;

static CatPlace cat_place(const OpCall *c, int dim, int64_t at)
{
    const OpTensor *y = &c->result[0];
    int64_t inner = 1, start = 0;
    OpTensor t;
    for (int d = dim + 1; d < y->rank; d++) inner *= y->size[d];
    int64_t outer = at / inner / y->size[dim], along = at / inner % y->size[dim];
    for (int i = 0; i < c->arg[0].n; i++) {
        if (!part(c, i, dim, &t)) continue;
        if (along < start + t.size[dim])
            return (CatPlace){(int)c->arg[0].integer[i],
                              (outer * t.size[dim] + along - start) * inner + at % inner};
        start += t.size[dim];
    }
    return (CatPlace){0, 0};
}

static void cat_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    int dim = 0;
    cat_dim(c, &dim, NULL);
    for (int64_t k = 0; k < s->n; k++) {
        CatPlace p = cat_place(c, dim, s->at[k]);
        out->add(out->of, p.tensor, p.at, 1, 1);
    }
}

static void cat_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    int dim = 0;
    cat_dim(c, &dim, NULL);
    for (int64_t k = 0; k < s->n; k++) {
        CatPlace p = cat_place(c, dim, s->at[k]);
        y[k] = in[p.tensor][p.at];
    }
}

static const OpElements cat_elements = {cat_needs, cat_compute, NULL, NULL};

/* The end of the tensors from i on that differ in their address alone: in (i, to]. */
static int alike(const OpCall *c, int dim, int i, int to)
{
    OpTensor first, t;
    int end = i + 1;
    if (!part(c, i, dim, &first)) return end;
    while (end < to && part(c, end, dim, &t) && t.dtype == first.dtype &&
           t.offset == first.offset && t.rank == first.rank &&
           !memcmp(t.size, first.size, (size_t)t.rank * sizeof *t.size) &&
           !memcmp(t.stride, first.stride, (size_t)t.rank * sizeof *t.stride))
        end++;
    return end;
}

/* Tensors that are written one behind the other along a dimension. */
typedef struct {
    const OpCall *c;
    int dim;
    int64_t largest; /* elements of a tensor */
    OpTensor y;      /* where the next one goes */
} Cat;

/* Write the rows of blocks [row, row + n), for the n tensors from i on, which are alike. */
static void cat_rows(OpPlain *out, Cat *k, int row, int i, int n)
{
    Buffer *b = out->source;
    const int64_t *tensors = &k->c->arg[0].integer[i];
    const char *type = op_elements(&k->y) < 1 << 30 ? "int" : "long long";
    OpTensor t;
    if (!part(k->c, i, k->dim, &t)) return;
    int64_t step = t.size[k->dim] * k->y.stride[k->dim];
    if (n == 1) {
        buffer_printf(b, "  if (blockIdx.y == %d)\n", row);
    } else {
        buffer_printf(b,
                      "  if (blockIdx.y >= %d && blockIdx.y < %d) {\n"
                      "    const %s *x = x%lld;\n    switch (blockIdx.y) {\n",
                      row, row + n, dtype_ctype(t.dtype), (long long)tensors[0]);
        for (int at = 1; at < n; at++)
            buffer_printf(b, "    case %d: x = x%lld; break;\n", row + at, (long long)tensors[at]);
        buffer_puts(b, "    }\n");
    }
    buffer_printf(b,
                  "    for (int k = 0; k < 4; k++) {\n"
                  "      const %s i = (%s)blockIdx.x * 512 + k * 128 + threadIdx.x;\n"
                  "      if (i < %lld) y0[",
                  type, type, (long long)op_elements(&t));
    text_strided(b, &(Strided){k->y.offset, t.rank, t.size, k->y.stride}, "i");
    if (n > 1) buffer_printf(b, " + (%s)(blockIdx.y - %d) * %lld", type, row, (long long)step);
    buffer_printf(b, "] = (%s)%sx", dtype_ctype(k->y.dtype), text_cast(t.dtype, k->y.dtype));
    if (n == 1) buffer_printf(b, "%lld", (long long)tensors[0]);
    buffer_puts(b, "[");
    text_index(b, &t, t.rank, t.size, "i");
    buffer_puts(b, n == 1 ? "];\n    }\n" : "];\n    }\n  }\n");
    k->y.offset += n * step;
}

/* A kernel of the tensors [from, to) of the list, one row of blocks for each. */
static int cat_kernel(OpPlain *out, Cat *k, int from, int to, const char *operands, Error *err)
{
    OpLaunch *l = text_begin(out, &(TextHead){"cat", operands, (k->largest + 511) / 512, 128}, err);
    if (!l) return -1;
    l->grid[1] = to - from;
    for (int i = from, end; i < to; i = end) {
        end = alike(k->c, k->dim, i, to);
        if (end < i + MIN_ALIKE) end = i + 1;
        cat_rows(out, k, i - from, i, end - i);
    }
    return text_end(out, err);
}

/* The operands of such a kernel: its tensors, each once, and the result. */
static void cat_operands(const OpCall *c, int from, int to, char *out, size_t size)
{
    char named[OP_MAX_TENSORS] = {0};
    size_t n = 0;
    for (int i = from; i < to; i++) {
        int64_t tensor = c->arg[0].integer[i];
        if (named[tensor]++) continue;
        n += (size_t)snprintf(out + n, size - n, "x%d ", (int)tensor);
    }
    snprintf(out + n, size - n, "y0");
}

/* One launch for all tensors, as eager's batched copy; more where a kernel's pointers are too few. */
static int plain_cat(const OpCall *c, OpPlain *out, Error *err)
{
    enum { POINTERS = 64 };
    Cat k = {.c = c, .largest = 1, .y = c->result[0]};
    OpTensor t;
    char operands[5 * OP_MAX_TENSORS];
    int n = c->arg[0].n, each = c->n_tensors < POINTERS ? n : POINTERS / 2;
    if (cat_dim(c, &k.dim, err)) return -1;
    for (int i = 0; i < n; i++)
        if (part(c, i, k.dim, &t) && op_elements(&t) > k.largest) k.largest = op_elements(&t);
    for (int from = 0; from < n; from += each) {
        int to = from + each < n ? from + each : n;
        cat_operands(c, from, to, operands, sizeof operands);
        if (cat_kernel(out, &k, from, to, each < n ? operands : NULL, err)) return -1;
    }
    return 0;
}

/* ---- triangles ---- */

static int infer_triangle(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    if (x->rank < 2)
        return error_set(err, ERROR_INVALID, "expected a rank of 2 or more, found %d", x->rank);
    return op_result(c, x->dtype, x->rank, x->size, err);
}

static int is_upper(const OpCall *c)
{
    return !strcmp(c->op->name, "aten.triu.default");
}

static int reference_triangle(const OpCall *c, const double *const *in, double *const *out,
                              Error *err)
{
    const OpTensor *y = &c->result[0];
    const double *x = in[c->arg[0].integer[0]];
    int64_t n = op_elements(y), k = c->arg[1].integer[0], cols = y->size[y->rank - 1],
            rows = y->size[y->rank - 2];
    int upper = is_upper(c);
    (void)err;
    for (int64_t i = 0; i < n; i++) {
        int64_t over = i % cols - i / cols % rows;
        out[0][i] = (upper ? over >= k : over <= k) ? x[i] : 0;
    }
    return 0;
}

static int in_triangle(const OpCall *c, int64_t i)
{
    const OpTensor *y = &c->result[0];
    int64_t k = c->arg[1].integer[0], cols = y->size[y->rank - 1], rows = y->size[y->rank - 2],
            over = i % cols - i / cols % rows;
    return is_upper(c) ? over >= k : over <= k;
}

static void triangle_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    for (int64_t k = 0; k < s->n; k++)
        if (in_triangle(c, s->at[k])) out->add(out->of, (int)c->arg[0].integer[0], s->at[k], 1, 1);
}

static void triangle_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    const double *x = in[c->arg[0].integer[0]];
    for (int64_t k = 0; k < s->n; k++) y[k] = in_triangle(c, s->at[k]) ? x[s->at[k]] : 0;
}

static const OpElements triangle_elements = {triangle_needs, triangle_compute, NULL, NULL};

static int plain_triangle(const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *y = &c->result[0], *x = op_tensor(c, 0);
    int64_t cols = y->size[y->rank - 1], rows = y->size[y->rank - 2];
    if (!text_each(out, "triangle", NULL, op_elements(y), err)) return -1;
    buffer_printf(out->source,
                  "    const long long over = i %% %lld - i / %lld %% %lld;\n"
                  "    y0[i] = over %s %lldLL ? x0[",
                  (long long)cols, (long long)cols, (long long)rows,
                  is_upper(c) ? ">=" : "<=", (long long)c->arg[1].integer[0]);
    text_index(out->source, x, y->rank, y->size, "i");
    buffer_printf(out->source, "] : (%s)0;\n", dtype_ctype(y->dtype));
    return text_each_end(out, err);
}

static void cost_triangle(const OpCall *c, OpCost *out)
{
    out->bytes -= op_bytes(op_tensor(c, 0)) / 2; /* about half of the elements are read */
}

/* ---- constants ---- */

/* The value's argument; -1: the name says zeros or ones. */
static int value_argument(const OpCall *c)
{
    return op_argument(c->op, "fill_value");
}

static double constant(const OpCall *c)
{
    int at = value_argument(c);
    double v = at >= 0 ? c->arg[at].number : strstr(c->op->name, "ones") != NULL;
    return c->result[0].dtype == DTYPE_B8 ? v != 0 : v;
}

static int infer_constant(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    const OpValue *dtype = &c->arg[op_argument(c->op, "dtype")], *size = &c->arg[x ? 1 : 0];
    int value = value_argument(c), own = size->kind == OP_INTS;
    Dtype d = x                                             ? x->dtype
              : value >= 0 && c->arg[value].kind == OP_INT  ? DTYPE_I64
              : value >= 0 && c->arg[value].kind == OP_BOOL ? DTYPE_B8
                                                            : DTYPE_F32;
    if (dtype->kind == OP_DTYPE) d = (Dtype)dtype->integer[0];
    return op_result(c, d, own ? size->n : x->rank, own ? size->integer : x->size, err);
}

static int reference_constant(const OpCall *c, const double *const *in, double *const *out,
                              Error *err)
{
    double v = constant(c);
    (void)in, (void)err;
    for (int64_t i = 0; i < op_elements(&c->result[0]); i++) out[0][i] = v;
    return 0;
}

static void constant_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    (void)c, (void)s, (void)out;
}

static void constant_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    double v = constant(c);
    (void)in;
    for (int64_t k = 0; k < s->n; k++) y[k] = v;
}

static const OpElements constant_elements = {constant_needs, constant_compute, NULL, NULL};

static int plain_constant(const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *y = &c->result[0];
    if (!text_each(out, "fill", "y0", op_elements(y), err)) return -1;
    buffer_printf(out->source, "    y0[i] = (%s)", dtype_ctype(y->dtype));
    text_number(out->source, constant(c));
    buffer_puts(out->source, ";\n");
    return text_each_end(out, err);
}

static void cost_constant(const OpCall *c, OpCost *out)
{
    out->bytes = op_bytes(&c->result[0]);
}

/* ---- ranges ---- */

/* start, step and the number of elements; 0: the arguments give none. */
static int64_t range(const OpCall *c, double *start, double *step)
{
    int at = op_argument(c->op, "start"), by = op_argument(c->op, "step");
    double end = c->arg[op_argument(c->op, "end")].number;
    *start = at >= 0 ? c->arg[at].number : 0;
    *step = by >= 0 ? c->arg[by].number : 1;
    double n = *step != 0 ? ceil((end - *start) / *step) : -1;
    return n >= 0 && n < 0x1p48 ? (int64_t)n : -1;
}

static int infer_range(OpCall *c, Error *err)
{
    static const char *const numbers[] = {"start", "end", "step"};
    const OpValue *dtype = &c->arg[op_argument(c->op, "dtype")];
    double start, step;
    int64_t n = range(c, &start, &step);
    Dtype d = DTYPE_I64;
    for (int i = 0; i < 3; i++) {
        int at = op_argument(c->op, numbers[i]);
        if (at >= 0 && c->arg[at].kind == OP_FLOAT) d = DTYPE_F32;
    }
    if (dtype->kind == OP_DTYPE) d = (Dtype)dtype->integer[0];
    if (n < 0) return error_set(err, ERROR_INVALID, "expected a step that leads from start to end");
    return op_result(c, d, 1, &n, err);
}

static int reference_range(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    double start, step;
    int64_t n = range(c, &start, &step);
    (void)in, (void)err;
    for (int64_t i = 0; i < n; i++) out[0][i] = start + (double)i * step;
    return 0;
}

static int plain_range(const OpCall *c, OpPlain *out, Error *err)
{
    double start, step;
    int64_t n = range(c, &start, &step);
    Dtype d = c->result[0].dtype;
    const char *type = text_type(d);
    if (!text_each(out, "range", "y0", n, err)) return -1;
    buffer_printf(out->source, "    y0[i] = (%s)((%s)", dtype_ctype(d), type);
    text_number(out->source, start);
    buffer_printf(out->source, " + (%s)i * (%s)", type, type);
    text_number(out->source, step);
    buffer_puts(out->source, ");\n");
    return text_each_end(out, err);
}

/* ---- linspace ---- */

static int infer_steps(OpCall *c, Error *err)
{
    const OpValue *dtype = &c->arg[op_argument(c->op, "dtype")];
    int64_t n = c->arg[2].integer[0];
    Dtype d = dtype->kind == OP_DTYPE ? (Dtype)dtype->integer[0] : DTYPE_F32;
    if (n < 0) return error_set(err, ERROR_INVALID, "expected a number of steps");
    if (!dtype_is_float(d)) return error_set(err, ERROR_UNSUPPORTED, "steps of whole numbers");
    return op_result(c, d, 1, &n, err);
}

/* Both halves count from their own end. */
static int reference_steps(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    double start = c->arg[0].number, end = c->arg[1].number;
    int64_t n = c->arg[2].integer[0];
    double step = n > 1 ? (end - start) / (double)(n - 1) : 0;
    (void)in, (void)err;
    for (int64_t i = 0; i < n; i++)
        out[0][i] = i < (n + 1) / 2 ? start + step * (double)i : end - step * (double)(n - 1 - i);
    return 0;
}

static int plain_steps(const OpCall *c, OpPlain *out, Error *err)
{
    double start = c->arg[0].number, end = c->arg[1].number;
    int64_t n = c->arg[2].integer[0];
    Dtype d = c->result[0].dtype;
    const char *type = text_type(d);
    Buffer *b = out->source;
    if (!text_each(out, "steps", "y0", n, err)) return -1;
    buffer_printf(b, "    const %s step = (%s)", type, type);
    text_number(b, n > 1 ? (end - start) / (double)(n - 1) : 0);
    buffer_printf(b, ";\n    y0[i] = (%s)(i < %lld ? (%s)", dtype_ctype(d), (long long)(n + 1) / 2,
                  type);
    text_number(b, start);
    buffer_printf(b, " + step * (%s)i : (%s)", type, type);
    text_number(b, end);
    buffer_printf(b, " - step * (%s)(%lld - i));\n", type, (long long)n - 1);
    return text_each_end(out, err);
}

static int infer_random(OpCall *c, Error *err)
{
    (void)c;
    return error_set(err, ERROR_UNSUPPORTED, "a random tensor is not a function of the inputs");
}

#define ROW(aten, schema, kind, function)                                                   \
    {                                                                                       \
        "aten." aten, schema, strided_infer, strided_reference, strided_plain, NULL,        \
            kind == STRIDED_COPY ? 0 : OP_VIEW, &(const StridedView){kind, function}, NULL, \
            &strided_elements                                                               \
    }
#define CAT(aten)                                                                                  \
    {                                                                                              \
        "aten." aten, "Tensor[] tensors, int dim=0", infer_cat, reference_cat, plain_cat, NULL, 0, \
            NULL, NULL, &cat_elements                                                              \
    }
#define TRIANGLE(aten)                                                                   \
    {                                                                                    \
        "aten." aten, "Tensor self, int diagonal=0", infer_triangle, reference_triangle, \
            plain_triangle, cost_triangle, 0, NULL, NULL, &triangle_elements             \
    }
#define CONSTANT(aten, schema)                                                            \
    {                                                                                     \
        "aten." aten, schema OPTIONS, infer_constant, reference_constant, plain_constant, \
            cost_constant, OP_CONSTANT, NULL, NULL, &constant_elements                    \
    }
#define RANDOM(aten, schema)                                                  \
    {                                                                         \
        "aten." aten, schema OPTIONS, infer_random, NULL, NULL, NULL, 0, NULL \
    }
#define RANGE(aten, schema)                                                                     \
    {                                                                                           \
        "aten." aten, schema OPTIONS, infer_range, reference_range, plain_range, cost_constant, \
            OP_CONSTANT, NULL                                                                   \
    }
#define SELF "Tensor self"
#define OPTIONS                                                         \
    ", *, ScalarType? dtype=None, Any? layout=None, Any? device=None, " \
    "Any? pin_memory=None, Any? memory_format=None"
#define AS_BEFORE ", bool non_blocking=False, bool copy=False, Any? memory_format=None"

static const Op table[] = {
    ROW("to.dtype", SELF ", ScalarType dtype" AS_BEFORE, STRIDED_MAYBE, convert),
    ROW("to.dtype_layout",
        SELF ", *, ScalarType? dtype=None, Any? layout=None, Any? device=None, "
             "Any? pin_memory=None" AS_BEFORE,
        STRIDED_MAYBE, convert),
    ROW("type_as.default", SELF ", Tensor other", STRIDED_MAYBE, convert_as),
    CAT("cat.default"),
    CAT("concat.default"),
    CAT("stack.default"),
    TRIANGLE("triu.default"),
    TRIANGLE("tril.default"),
    CONSTANT("zeros_like.default", SELF),
    CONSTANT("ones_like.default", SELF),
    CONSTANT("full_like.default", SELF ", Scalar fill_value"),
    CONSTANT("new_zeros.default", SELF ", int[] size"),
    CONSTANT("new_ones.default", SELF ", int[] size"),
    CONSTANT("new_full.default", SELF ", int[] size, Scalar fill_value"),
    CONSTANT("zeros.default", "int[] size"),
    CONSTANT("ones.default", "int[] size"),
    CONSTANT("full.default", "int[] size, Scalar fill_value"),
    {"aten.linspace.default", "Scalar start, Scalar end, int steps" OPTIONS, infer_steps,
     reference_steps, plain_steps, cost_constant, OP_CONSTANT, NULL},
    RANGE("arange.default", "Scalar end"),
    RANGE("arange.start", "Scalar start, Scalar end"),
    RANGE("arange.start_step", "Scalar start, Scalar end, Scalar step=1"),
    RANDOM("randn.default", "int[] size"),
    RANDOM("rand.default", "int[] size"),
    RANDOM("randn_like.default", SELF),
    RANDOM("rand_like.default", SELF),
};

const OpFamily layout_family = {"layout", table, sizeof table / sizeof *table};

/* Other operators that ATen composes of views, products and element functions. */
#include <math.h>

#include "ops/op_chain.h"
#include "ops/op_pointwise.h"

#define T(v) CHAIN_TENSOR(v)
#define ARGS(...)                                                           \
    (int)(sizeof(ChainArg[]){__VA_ARGS__} / sizeof(ChainArg)), (ChainArg[]) \
    {                                                                       \
        __VA_ARGS__                                                         \
    }

POINT(f_prelu, a > 0 ? a : b * a)

static const Op prelu_element = POINTWISE("prelu element", "Tensor self, Tensor weight", f_prelu,
                                          "a > 0 ? a : b * a", 2, RESULT_SELF, NULL, 0);

/* One half times the sigmoid of the other. */
static int glu(Chain *k, const OpCall *c)
{
    const OpTensor *x = op_tensor(c, 0);
    int in = chain_input(k, 0), dim;
    Error err;
    if (x->rank < 1 || op_dim(c->arg[1].integer[0], x->rank, &dim, &err))
        return chain_fail(k, ERROR_INVALID, "the dimension is not one of the input's");
    if (x->size[dim] % 2)
        return chain_fail(k, ERROR_INVALID, "the halved dimension has an odd size");
    int64_t half = x->size[dim] / 2;
    int a = chain_call(k, "aten.narrow.default",
                       ARGS(T(in), CHAIN_INT(dim), CHAIN_INT(0), CHAIN_INT(half)));
    int b = chain_call(k, "aten.narrow.default",
                       ARGS(T(in), CHAIN_INT(dim), CHAIN_INT(half), CHAIN_INT(half)));
    b = chain_call(k, "aten.sigmoid.default", ARGS(T(b)));
    return chain_over(k, "aten.mul.Tensor", b, ARGS(T(a), T(b)));
}

/* A weight for each channel, or one for all. */
static int prelu(Chain *k, const OpCall *c)
{
    const OpTensor *x = op_tensor(c, 0), *w = op_tensor(c, 1);
    int in = chain_input(k, 0), weight = chain_input(k, 1);
    int64_t n = op_elements(w), channels = x->rank > 1 ? x->size[1] : 1;
    if (w->rank > 1 || (n != 1 && n != channels))
        return chain_fail(k, ERROR_INVALID, "weight has neither one element nor one a channel");
    ChainArg size = {.kind = OP_INTS, .n = x->rank};
    for (int d = 0; d < x->rank; d++) size.integer[d] = d == 1 ? n : 1;
    if (!x->rank || x->rank > 1 || w->rank != 1)
        weight = chain_call(k, "aten.reshape.default", ARGS(T(weight), size));
    return chain_step(k, &prelu_element, ARGS(T(in), T(weight)));
}

/* reshape, permute, reshape. */
static int rearrange(Chain *k, int x, const ChainArg *split, const ChainArg *order,
                     const ChainArg *joined)
{
    x = chain_call(k, "aten.reshape.default", ARGS(T(x), *split));
    x = chain_call(k, "aten.permute.default", ARGS(T(x), *order));
    return chain_call(k, "aten.reshape.default", ARGS(T(x), *joined));
}

/* The sizes of an image [..., C, H, W] as N, C, H, W; -1: err is set. */
static int image(Chain *k, const OpCall *c, int64_t n[4])
{
    const OpTensor *x = op_tensor(c, 0);
    if (x->rank < 3) return chain_fail(k, ERROR_INVALID, "expected 3 dimensions or more");
    if (c->arg[1].integer[0] < 1 || c->arg[1].integer[0] > 1 << 20)
        return chain_fail(k, ERROR_INVALID, "the factor is not positive");
    n[0] = 1;
    for (int d = 0; d < x->rank - 3; d++) n[0] *= x->size[d];
    for (int d = 0; d < 3; d++) n[1 + d] = x->size[x->rank - 3 + d];
    return 0;
}

static ChainArg joined_size(const OpCall *c, int64_t channels, int64_t h, int64_t w)
{
    const OpTensor *x = op_tensor(c, 0);
    ChainArg size = {.kind = OP_INTS, .n = x->rank};
    for (int d = 0; d < x->rank - 3; d++) size.integer[d] = x->size[d];
    size.integer[x->rank - 3] = channels;
    size.integer[x->rank - 2] = h;
    size.integer[x->rank - 1] = w;
    return size;
}

static int pixel_shuffle(Chain *k, const OpCall *c)
{
    int64_t n[4], r = c->arg[1].integer[0];
    int x = chain_input(k, 0);
    if (image(k, c, n)) return -1;
    if (n[1] % (r * r))
        return chain_fail(k, ERROR_INVALID, "the channels are no multiple of the squared factor");
    ChainArg split = {.kind = OP_INTS, .n = 6, .integer = {n[0], n[1] / (r * r), r, r, n[2], n[3]}},
             order = {.kind = OP_INTS, .n = 6, .integer = {0, 1, 4, 2, 5, 3}},
             joined = joined_size(c, n[1] / (r * r), n[2] * r, n[3] * r);
    return rearrange(k, x, &split, &order, &joined);
}

static int pixel_unshuffle(Chain *k, const OpCall *c)
{
    int64_t n[4], r = c->arg[1].integer[0];
    int x = chain_input(k, 0);
    if (image(k, c, n)) return -1;
    if (n[2] % r || n[3] % r)
        return chain_fail(k, ERROR_INVALID, "height and width are no multiples of the factor");
    ChainArg split = {.kind = OP_INTS, .n = 6, .integer = {n[0], n[1], n[2] / r, r, n[3] / r, r}},
             order = {.kind = OP_INTS, .n = 6, .integer = {0, 1, 3, 5, 2, 4}},
             joined = joined_size(c, n[1] * r * r, n[2] / r, n[3] / r);
    return rearrange(k, x, &split, &order, &joined);
}

static int channel_shuffle(Chain *k, const OpCall *c)
{
    const OpTensor *x = op_tensor(c, 0);
    int64_t groups = c->arg[1].integer[0], inner = 1;
    int in = chain_input(k, 0);
    if (x->rank < 3 || groups < 1 || x->size[1] % groups)
        return chain_fail(k, ERROR_INVALID, "the channels do not divide in the groups");
    ChainArg order = {.kind = OP_INTS, .n = 4, .integer = {0, 2, 1, 3}},
             joined = {.kind = OP_INTS, .n = x->rank};
    for (int d = 2; d < x->rank; d++) inner *= x->size[d];
    for (int d = 0; d < x->rank; d++) joined.integer[d] = x->size[d];
    ChainArg split = {
        .kind = OP_INTS, .n = 4, .integer = {x->size[0], groups, x->size[1] / groups, inner}};
    return rearrange(k, in, &split, &order, &joined);
}

static int outer(Chain *k, const OpCall *c)
{
    int a = chain_input(k, 0), b = chain_input(k, 1);
    if (op_tensor(c, 0)->rank != 1 || op_tensor(c, 1)->rank != 1)
        return chain_fail(k, ERROR_INVALID, "expected two vectors");
    a = chain_call(k, "aten.unsqueeze.default", ARGS(T(a), CHAIN_INT(1)));
    return chain_call(k, "aten.mul.Tensor", ARGS(T(a), T(b)));
}

/* The differences of neighbours, n times. */
static int diff(Chain *k, const OpCall *c)
{
    const OpTensor *x = op_tensor(c, 0);
    int y = chain_input(k, 0), dim;
    int64_t n = c->arg[1].integer[0];
    Error err;
    if (x->rank < 1 || op_dim(c->arg[2].integer[0], x->rank, &dim, &err))
        return chain_fail(k, ERROR_INVALID, "the dimension is not one of the input's");
    if (c->arg[3].kind != OP_NONE || c->arg[4].kind != OP_NONE)
        return chain_fail(k, ERROR_UNSUPPORTED, "a tensor that is put before or behind");
    if (x->dtype == DTYPE_B8) return chain_fail(k, ERROR_UNSUPPORTED, "differences of bool");
    if (n < 1 || n > 8 || n >= x->size[dim])
        return chain_fail(k, ERROR_UNSUPPORTED,
                          "expected 1 to 8 differences, and fewer than there are elements");
    for (int64_t i = 1, size = x->size[dim]; i <= n; i++, size--) {
        ChainArg later[] = {T(y), CHAIN_INT(dim), CHAIN_INT(1), CHAIN_INT(size - 1)},
                 sooner[] = {T(y), CHAIN_INT(dim), CHAIN_INT(0), CHAIN_INT(size - 1)};
        int a = chain_call(k, "aten.narrow.default", 4, later),
            b = chain_call(k, "aten.narrow.default", 4, sooner);
        y = chain_call(k, "aten.sub.Tensor", ARGS(T(a), T(b)));
    }
    return y;
}

/* A direction, and its length for each of one dimension's numbers. */
static int weight_norm(Chain *k, const OpCall *c)
{
    const OpTensor *v = op_tensor(c, 0);
    int in = chain_input(k, 0), g = chain_input(k, 1), dim;
    Error err;
    ChainArg dims = {.kind = OP_INTS};
    if (v->rank < 1 || op_dim(c->arg[2].integer[0], v->rank, &dim, &err))
        return chain_fail(k, ERROR_INVALID, "the dimension is not one of the weight's");
    for (int d = 0; d < v->rank; d++)
        if (d != dim) dims.integer[dims.n++] = d;
    if (!dims.n) return chain_fail(k, ERROR_UNSUPPORTED, "a weight of one dimension");
    int length = chain_call(k, "aten.linalg_vector_norm.default",
                            ARGS(T(in), CHAIN_INT(2), dims, CHAIN_BOOL(1)));
    int scale = chain_call(k, "aten.div.Tensor", ARGS(T(g), T(length)));
    return chain_call(k, "aten.mul.Tensor", ARGS(T(in), T(scale)));
}

static int trace(Chain *k, const OpCall *c)
{
    int x = chain_input(k, 0);
    if (op_tensor(c, 0)->rank != 2) return chain_fail(k, ERROR_INVALID, "expected a matrix");
    x = chain_call(k, "aten.diagonal.default", ARGS(T(x)));
    return chain_call(k, "aten.sum.default", ARGS(T(x)));
}

/* Each element of one tensor times the other: their dimensions alternate. */
static int kron(Chain *k, const OpCall *c)
{
    const OpTensor *x[] = {op_tensor(c, 0), op_tensor(c, 1)};
    int rank = x[0]->rank > x[1]->rank ? x[0]->rank : x[1]->rank, side[2];
    ChainArg joined = {.kind = OP_INTS, .n = rank};
    if (rank < 1 || rank > OP_MAX_RANK / 2)
        return chain_fail(k, ERROR_UNSUPPORTED, "expected 1 to 4 dimensions");
    for (int d = 0; d < rank; d++) joined.integer[d] = 1;
    for (int i = 0; i < 2; i++) {
        ChainArg apart = {.kind = OP_INTS, .n = 2 * rank};
        for (int d = 0; d < rank; d++) {
            int own = d - (rank - x[i]->rank);
            apart.integer[2 * d + i] = own < 0 ? 1 : x[i]->size[own];
            apart.integer[2 * d + 1 - i] = 1;
            joined.integer[d] *= apart.integer[2 * d + i];
        }
        side[i] = chain_call(k, "aten.reshape.default", ARGS(T(chain_input(k, i)), apart));
    }
    int y = chain_call(k, "aten.mul.Tensor", ARGS(T(side[0]), T(side[1])));
    return chain_call(k, "aten.reshape.default", ARGS(T(y), joined));
}

static int dist(Chain *k, const OpCall *c)
{
    int d = chain_call(k, "aten.sub.Tensor", ARGS(T(chain_input(k, 0)), T(chain_input(k, 1))));
    return chain_call(k, "aten.norm.Scalar", ARGS(T(d), CHAIN_FLOAT(c->arg[2].number)));
}

/* ---- numbers that are tensors on the way ---- */

/* A tensor of one number, which eager PyTorch fills on the device. */
static int number(Chain *k, const OpValue *v, Dtype dtype)
{
    ChainArg none = {.kind = OP_INTS},
             type = {.name = "dtype", .kind = OP_DTYPE, .integer = {dtype}};
    return chain_call(k, "aten.full.default", ARGS(none, CHAIN_FLOAT(v->number), type));
}

/* A choice between a tensor and a number, or two numbers. */
static int where(Chain *k, const OpCall *c)
{
    Dtype dtype = op_promote(c, (int[]){1, 2}, 2);
    int condition = chain_input(k, 0), side[2];
    for (int i = 0; i < 2; i++) {
        const OpTensor *t = op_tensor(c, 1 + i);
        ChainArg type = {.kind = OP_DTYPE, .integer = {dtype}};
        side[i] = t ? chain_input(k, 1 + i) : number(k, &c->arg[1 + i], dtype);
        if (t && t->dtype != dtype)
            side[i] = chain_call(k, "aten.to.dtype", ARGS(T(side[i]), type));
    }
    return chain_call(k, "aten.where.self", ARGS(T(condition), T(side[0]), T(side[1])));
}

/* ---- infinities ---- */

static int size_is_infinite(Chain *k, const OpCall *c, int x, const char *test)
{
    if (!dtype_is_float(op_tensor(c, 0)->dtype))
        return chain_fail(k, ERROR_UNSUPPORTED, "whole numbers, which are all finite");
    int size = chain_call(k, "aten.abs.default", ARGS(T(x)));
    return chain_call(k, test, ARGS(T(size), CHAIN_FLOAT(INFINITY)));
}

static int isinf_steps(Chain *k, const OpCall *c)
{
    return size_is_infinite(k, c, chain_input(k, 0), "aten.eq.Scalar");
}

static int isfinite_steps(Chain *k, const OpCall *c)
{
    int x = chain_input(k, 0);
    int bounded = size_is_infinite(k, c, x, "aten.ne.Scalar");
    int number = chain_call(k, "aten.eq.Tensor", ARGS(T(x), T(x)));
    return chain_call(k, "aten.mul.Tensor", ARGS(T(number), T(bounded)));
}

static const Op table[] = {
    CHAIN("aten.where.Scalar", "Tensor condition, Scalar self, Scalar other", where),
    CHAIN("aten.where.ScalarOther", "Tensor condition, Tensor self, Scalar other", where),
    CHAIN("aten.where.ScalarSelf", "Tensor condition, Scalar self, Tensor other", where),
    CHAIN("aten.trace.default", "Tensor self", trace),
    CHAIN("aten.kron.default", "Tensor self, Tensor other", kron),
    CHAIN("aten.dist.default", "Tensor self, Tensor other, Scalar p=2", dist),
    CHAIN("aten.isinf.default", "Tensor self", isinf_steps),
    CHAIN("aten.isfinite.default", "Tensor self", isfinite_steps),
    CHAIN("aten.glu.default", "Tensor self, int dim=-1", glu),
    CHAIN("aten.prelu.default", "Tensor self, Tensor weight", prelu),
    CHAIN("aten.pixel_shuffle.default", "Tensor self, int upscale_factor", pixel_shuffle),
    CHAIN("aten.pixel_unshuffle.default", "Tensor self, int downscale_factor", pixel_unshuffle),
    CHAIN("aten.channel_shuffle.default", "Tensor self, int groups", channel_shuffle),
    CHAIN("aten._weight_norm.default", "Tensor v, Tensor g, int dim=0", weight_norm),
    CHAIN("aten.diff.default",
          "Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None", diff),
    CHAIN("aten.outer.default", "Tensor self, Tensor vec2", outer),
};

const OpFamily composed_family = {"composed", table, sizeof table / sizeof *table};

/* Losses and distances: element functions, then a reduction, as ATen composes them. */
#include <math.h>
#include <string.h>

#include "ops/op_chain.h"
#include "ops/op_pointwise.h"
#include "ops/row/op_nll.h"

#define T(v) CHAIN_TENSOR(v)
#define F(x) CHAIN_FLOAT(x)
#define ARGS(...)                                                           \
    (int)(sizeof(ChainArg[]){__VA_ARGS__} / sizeof(ChainArg)), (ChainArg[]) \
    {                                                                       \
        __VA_ARGS__                                                         \
    }

static int64_t whole(const OpCall *c, const char *name)
{
    return c->arg[op_argument(c->op, name)].integer[0];
}

static double number(const OpCall *c, const char *name)
{
    return c->arg[op_argument(c->op, name)].number;
}

/* ---- elements of two tensors ---- */

POINT(f_mse, (a - b) * (a - b))
POINT(f_smooth_l1, fabs(a - b) < p[0] ? 0.5 * (a - b) * (a - b) / p[0] : fabs(a - b) - 0.5 * p[0])
POINT(f_huber, fabs(a - b) < p[0] ? 0.5 * (a - b) * (a - b) : p[0] * (fabs(a - b) - 0.5 * p[0]))
POINT(f_entropy, (b - 1) * fmax(log1p(-a), -100) - b * fmax(log(a), -100))
POINT(f_xlogy, a == 0 && !isnan(b) ? 0 : a * log(b))

#define PAIR "Tensor self, Tensor target"
#define ELEMENT(schema, function, text) \
    POINTWISE("elements", PAIR schema, function, text, 2, RESULT_PROMOTED, NULL, 0)

enum { MSE, SMOOTH_L1, HUBER, ENTROPY };

static const Op elements[] = {
    [MSE] = ELEMENT("", f_mse, "(a - b) * (a - b)"),
    [SMOOTH_L1] = ELEMENT(", float beta", f_smooth_l1,
                          "fabs(a - b) < p0 ? 0.5f * (a - b) * (a - b) / p0 : "
                          "fabs(a - b) - 0.5f * p0"),
    [HUBER] = ELEMENT(", float delta", f_huber,
                      "fabs(a - b) < p0 ? 0.5f * (a - b) * (a - b) : "
                      "p0 * (fabs(a - b) - 0.5f * p0)"),
    [ENTROPY] = ELEMENT("", f_entropy,
                        "(b - 1) * (log1p(-a) > -100 ? log1p(-a) : -100) - "
                        "b * (log(a) > -100 ? log(a) : -100)"),
};

/* The element function of both tensors, with one number where the loss has one. */
static int pair(Chain *k, const OpCall *c, int which, const char *parameter)
{
    int a = chain_input(k, 0), b = chain_input(k, 1);
    ChainArg args[] = {T(a), T(b), F(parameter ? number(c, parameter) : 0)};
    return chain_step(k, &elements[which], parameter ? 3 : 2, args);
}

static int mse_loss(Chain *k, const OpCall *c)
{
    return chain_reduce(k, pair(k, c, MSE, NULL), whole(c, "reduction"));
}

static int smooth_l1_loss(Chain *k, const OpCall *c)
{
    if (number(c, "beta") < 0) return chain_fail(k, ERROR_INVALID, "beta is negative");
    return chain_reduce(k, pair(k, c, SMOOTH_L1, "beta"), whole(c, "reduction"));
}

static int huber_loss(Chain *k, const OpCall *c)
{
    if (!(number(c, "delta") > 0)) return chain_fail(k, ERROR_INVALID, "delta is not positive");
    return chain_reduce(k, pair(k, c, HUBER, "delta"), whole(c, "reduction"));
}

static int l1_loss(Chain *k, const OpCall *c)
{
    int a = chain_input(k, 0), b = chain_input(k, 1);
    int d = chain_call(k, "aten.sub.Tensor", ARGS(T(a), T(b)));
    d = chain_over(k, "aten.abs.default", d, ARGS(T(d)));
    return chain_reduce(k, d, whole(c, "reduction"));
}

static int binary_cross_entropy(Chain *k, const OpCall *c)
{
    int w = chain_input(k, 2), y = pair(k, c, ENTROPY, NULL);
    if (w >= 0) y = chain_over(k, "aten.mul.Tensor", y, ARGS(T(y), T(w)));
    return chain_reduce(k, y, whole(c, "reduction"));
}

static int binary_cross_entropy_with_logits(Chain *k, const OpCall *c)
{
    int x = chain_input(k, 0), t = chain_input(k, 1), w = chain_input(k, 2), p = chain_input(k, 3);
    int log = chain_call(k, "aten.log_sigmoid.default", ARGS(T(x)));
    if (p >= 0) {
        int l = chain_call(k, "aten.sub.Scalar", ARGS(T(p), F(1)));
        l = chain_call(k, "aten.mul.Tensor", ARGS(T(l), T(t)));
        l = chain_over(k, "aten.add.Scalar", l, ARGS(T(l), F(1)));
        log = chain_over(k, "aten.mul.Tensor", log, ARGS(T(log), T(l)));
    }
    int y = chain_call(k, "aten.rsub.Scalar", ARGS(T(t), F(1)));
    y = chain_over(k, "aten.mul.Tensor", y, ARGS(T(y), T(x)));
    y = chain_over(k, "aten.sub.Tensor", y, ARGS(T(y), T(log)));
    if (w >= 0) y = chain_over(k, "aten.mul.Tensor", y, ARGS(T(y), T(w)));
    return chain_reduce(k, y, whole(c, "reduction"));
}

static int kl_div(Chain *k, const OpCall *c)
{
    int x = chain_input(k, 0), t = chain_input(k, 1), y;
    if (whole(c, "log_target")) {
        int e = chain_call(k, "aten.exp.default", ARGS(T(t)));
        int d = chain_call(k, "aten.sub.Tensor", ARGS(T(t), T(x)));
        y = chain_over(k, "aten.mul.Tensor", e, ARGS(T(e), T(d)));
    } else {
        int l = chain_call(k, "aten.xlogy.Tensor", ARGS(T(t), T(t)));
        int p = chain_call(k, "aten.mul.Tensor", ARGS(T(t), T(x)));
        y = chain_over(k, "aten.sub.Tensor", l, ARGS(T(l), T(p)));
    }
    return chain_reduce(k, y, whole(c, "reduction"));
}

static int soft_margin_loss(Chain *k, const OpCall *c)
{
    int x = chain_input(k, 0), t = chain_input(k, 1);
    int y = chain_call(k, "aten.neg.default", ARGS(T(x)));
    y = chain_over(k, "aten.mul.Tensor", y, ARGS(T(y), T(t)));
    y = chain_over(k, "aten.exp.default", y, ARGS(T(y)));
    y = chain_over(k, "aten.log1p.default", y, ARGS(T(y)));
    return chain_reduce(k, y, whole(c, "reduction"));
}

static int margin_ranking_loss(Chain *k, const OpCall *c)
{
    int a = chain_input(k, 0), b = chain_input(k, 1), t = chain_input(k, 2);
    int d = chain_call(k, "aten.sub.Tensor", ARGS(T(a), T(b)));
    int y = chain_call(k, "aten.neg.default", ARGS(T(t)));
    y = chain_call(k, "aten.mul.Tensor", ARGS(T(y), T(d)));
    y = chain_over(k, "aten.add.Scalar", y, ARGS(T(y), F(number(c, "margin"))));
    y = chain_over(k, "aten.clamp_min.default", y, ARGS(T(y), F(0)));
    return chain_reduce(k, y, whole(c, "reduction"));
}

static int hinge_embedding_loss(Chain *k, const OpCall *c)
{
    int x = chain_input(k, 0), t = chain_input(k, 1);
    int m = chain_call(k, "aten.rsub.Scalar", ARGS(T(x), F(number(c, "margin"))));
    m = chain_over(k, "aten.clamp_min.default", m, ARGS(T(m), F(0)));
    int apart = chain_call(k, "aten.ne.Scalar", ARGS(T(t), F(1)));
    int near = chain_call(k, "aten.ne.Scalar", ARGS(T(t), F(-1)));
    m = chain_over(k, "aten.where.self", m, ARGS(T(apart), T(m), F(0)));
    int own = chain_call(k, "aten.where.self", ARGS(T(near), T(x), F(0)));
    m = chain_over(k, "aten.add.Tensor", m, ARGS(T(m), T(own)));
    return chain_reduce(k, m, whole(c, "reduction"));
}

/* ---- distances ---- */

static ChainArg one_dim(int64_t dim)
{
    return (ChainArg){.kind = OP_INTS, .n = 1, .integer = {dim}};
}

static int distance(Chain *k, int a, int b, double p, double eps, int keep)
{
    int d = chain_call(k, "aten.sub.Tensor", ARGS(T(a), T(b)));
    d = chain_over(k, "aten.add.Scalar", d, ARGS(T(d), F(eps)));
    return chain_call(k, "aten.norm.ScalarOpt_dim",
                      ARGS(T(d), F(p), one_dim(-1), CHAIN_BOOL(keep)));
}

static int pairwise_distance(Chain *k, const OpCall *c)
{
    int a = chain_input(k, 0), b = chain_input(k, 1);
    return distance(k, a, b, number(c, "p"), number(c, "eps"), (int)whole(c, "keepdim"));
}

static int triplet_margin_loss(Chain *k, const OpCall *c)
{
    int a = chain_input(k, 0), b = chain_input(k, 1), n = chain_input(k, 2);
    double p = number(c, "p"), eps = number(c, "eps");
    int near = distance(k, a, b, p, eps, 0), far = distance(k, a, n, p, eps, 0);
    if (whole(c, "swap")) {
        int other = distance(k, b, n, p, eps, 0);
        far = chain_over(k, "aten.min.other", far, ARGS(T(far), T(other)));
    }
    near = chain_over(k, "aten.add.Scalar", near, ARGS(T(near), F(number(c, "margin"))));
    near = chain_over(k, "aten.sub.Tensor", near, ARGS(T(near), T(far)));
    near = chain_over(k, "aten.clamp_min.default", near, ARGS(T(near), F(0)));
    return chain_reduce(k, near, whole(c, "reduction"));
}

/* A tensor divided by its norms along a dimension. */
static int unit(Chain *k, int x, int64_t dim, double eps, const ChainArg *size)
{
    int all = chain_call(k, "aten.expand.default", ARGS(T(x), *size));
    int n = chain_call(k, "aten.linalg_vector_norm.default",
                       ARGS(T(all), F(2), one_dim(dim), CHAIN_BOOL(1)));
    n = chain_over(k, "aten.clamp_min.default", n, ARGS(T(n), F(eps)));
    return chain_call(k, "aten.div.Tensor", ARGS(T(all), T(n)));
}

static int cosine_similarity(Chain *k, const OpCall *c)
{
    const OpTensor *t[] = {op_tensor(c, 0), op_tensor(c, 1)};
    int64_t dim = whole(c, "dim");
    double eps = number(c, "eps");
    Error err;
    ChainArg size = {.kind = OP_INTS};
    if (op_broadcast(t, 2, size.integer, &size.n, &err)) return chain_fail(k, err.code, err.text);
    int a = chain_input(k, 0), b = chain_input(k, 1);
    int u = unit(k, a, dim, eps, &size), v = unit(k, b, dim, eps, &size);
    u = chain_over(k, "aten.mul.Tensor", u, ARGS(T(u), T(v)));
    return chain_call(k, "aten.sum.dim_IntList", ARGS(T(u), one_dim(dim)));
}

/* ---- cross entropy ---- */

/* The weights of classes, with a dimension for each of the input. */
static int class_weights(Chain *k, int w, const OpTensor *x)
{
    ChainArg size = {.kind = OP_INTS, .n = x->rank};
    if (w < 0 || x->rank < 2) return w;
    for (int d = 0; d < x->rank; d++) size.integer[d] = d == 1 ? x->size[1] : 1;
    return chain_call(k, "aten.view.default", ARGS(T(w), size));
}

/* The target has a probability for each class. */
static int probabilities(Chain *k, const OpCall *c, int log, int dim, double smooth)
{
    const OpTensor *x = op_tensor(c, 0);
    int64_t reduction = whole(c, "reduction"), classes = x->rank ? x->size[dim] : 1;
    int t = chain_input(k, 1), w = class_weights(k, chain_input(k, 2), x);
    if (smooth > 0) {
        t = chain_call(k, "aten.mul.Scalar", ARGS(T(t), F(1 - smooth)));
        t = chain_over(k, "aten.add.Scalar", t, ARGS(T(t), F(smooth / (double)classes)));
    }
    int y = chain_call(k, "aten.mul.Tensor", ARGS(T(log), T(t)));
    if (w >= 0) y = chain_over(k, "aten.mul.Tensor", y, ARGS(T(y), T(w)));
    y = reduction == 2 ? chain_call(k, "aten.sum.default", ARGS(T(y)))
                       : chain_call(k, "aten.sum.dim_IntList", ARGS(T(y), one_dim(dim)));
    if (reduction == 1) y = chain_call(k, "aten.mean.default", ARGS(T(y)));
    return chain_over(k, "aten.neg.default", y, ARGS(T(y)));
}

/* The part of the loss that spreads over all classes: a mean, whose number of classes no step has as a number
 * of its own. weight: the sum of the targets' weights. */
static int smoothed(Chain *k, const OpCall *c, int log, int target, int weight, int dim)
{
    int64_t reduction = whole(c, "reduction");
    int w = class_weights(k, chain_input(k, 2), op_tensor(c, 0)), y = log;
    if (w >= 0) y = chain_call(k, "aten.mul.Tensor", ARGS(T(y), T(w)));
    y = chain_call(k, "aten.mean.dim", ARGS(T(y), one_dim(dim)));
    y = chain_over(k, "aten.neg.default", y, ARGS(T(y)));
    int ignored =
        chain_call(k, "aten.eq.Scalar", ARGS(T(target), CHAIN_INT(whole(c, "ignore_index"))));
    y = chain_over(k, "aten.masked_fill.Scalar", y, ARGS(T(y), T(ignored), F(0)));
    if (reduction) y = chain_call(k, "aten.sum.default", ARGS(T(y)));
    if (reduction == 1) y = chain_over(k, "aten.div.Tensor", y, ARGS(T(y), T(weight)));
    return y;
}

static int cross_entropy_loss(Chain *k, const OpCall *c)
{
    const OpTensor *x = op_tensor(c, 0), *t = op_tensor(c, 1);
    int dim = x->rank > 1;
    double smooth = number(c, "label_smoothing");
    if (!(smooth >= 0 && smooth <= 1))
        return chain_fail(k, ERROR_INVALID, "label_smoothing is not between 0 and 1");
    int in = chain_input(k, 0);
    int log = chain_call(k, "aten.log_softmax.int", ARGS(T(in), CHAIN_INT(dim)));
    if (t->rank == x->rank && !memcmp(t->size, x->size, (size_t)x->rank * sizeof *x->size))
        return probabilities(k, c, log, dim, smooth);
    int target = chain_input(k, 1), w = chain_input(k, 2);
    int y = chain_step(k, &nll_op,
                       ARGS(T(log), T(target), w < 0 ? CHAIN_NONE : T(w),
                            CHAIN_INT(whole(c, "reduction")), CHAIN_INT(whole(c, "ignore_index"))));
    if (smooth == 0) return y;
    int s = smoothed(k, c, log, target, y + 1, dim);
    y = chain_over(k, "aten.mul.Scalar", y, ARGS(T(y), F(1 - smooth)));
    s = chain_over(k, "aten.mul.Scalar", s, ARGS(T(s), F(smooth)));
    return chain_over(k, "aten.add.Tensor", y, ARGS(T(y), T(s)));
}

#define REDUCTION ", int reduction=1"
#define LOSS(name, schema, function) CHAIN("aten." name ".default", schema REDUCTION, function)
#define NLL(name, schema)                                                                        \
    {                                                                                            \
        "aten." name, PAIR schema, nll_infer, nll_reference, nll_plain, nll_cost, 0, NULL, NULL, \
            &nll_elements                                                                        \
    }
#define CLASSES ", Tensor? weight=None, int reduction=1, int ignore_index=-100"

static const Op table[] = {
    LOSS("mse_loss", PAIR, mse_loss),
    LOSS("l1_loss", PAIR, l1_loss),
    CHAIN("aten.smooth_l1_loss.default", PAIR REDUCTION ", float beta=1.0", smooth_l1_loss),
    CHAIN("aten.huber_loss.default", PAIR REDUCTION ", float delta=1.0", huber_loss),
    LOSS("binary_cross_entropy", PAIR ", Tensor? weight=None", binary_cross_entropy),
    LOSS("binary_cross_entropy_with_logits", PAIR ", Tensor? weight=None, Tensor? pos_weight=None",
         binary_cross_entropy_with_logits),
    CHAIN("aten.kl_div.default", PAIR REDUCTION ", *, bool log_target=False", kl_div),
    LOSS("soft_margin_loss", PAIR, soft_margin_loss),
    LOSS("margin_ranking_loss", "Tensor input1, Tensor input2, Tensor target, float margin=0.0",
         margin_ranking_loss),
    LOSS("hinge_embedding_loss", PAIR ", float margin=1.0", hinge_embedding_loss),
    CHAIN("aten.pairwise_distance.default",
          "Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False",
          pairwise_distance),
    LOSS("triplet_margin_loss",
         "Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, "
         "float eps=1e-06, bool swap=False",
         triplet_margin_loss),
    CHAIN("aten.cosine_similarity.default", "Tensor x1, Tensor x2, int dim=1, float eps=1e-08",
          cosine_similarity),
    CHAIN("aten.cross_entropy_loss.default", PAIR CLASSES ", float label_smoothing=0.0",
          cross_entropy_loss),
    NLL("nll_loss_nd.default", CLASSES),
    NLL("nll_loss.default", CLASSES),
    NLL("nll_loss_forward.default", ", Tensor? weight, int reduction, int ignore_index"),
    POINTWISE("aten.xlogy.Tensor", "Tensor self, Tensor other", f_xlogy,
              "a == 0 && b == b ? 0 : a * log(b)", 2, RESULT_FLOAT, NULL, 0),
};

const OpFamily loss_family = {"loss", table, sizeof table / sizeof *table};

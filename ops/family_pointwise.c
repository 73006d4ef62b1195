/* The pointwise operators of common networks. */
#include <math.h>

#include "ops/op_pointwise.h"

static double log1p_exp(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

POINT(f_add, a + p[0] * b)
POINT(f_sub, a - p[0] * b)
POINT(f_rsub, p[0] - p[1] * a)
POINT(f_mul, a *b)
POINT(f_div, a / b)
POINT(f_relu, a < 0 ? 0 : a)
POINT(f_sigmoid, 1 / (1 + exp(-a)))
POINT(f_tanh, tanh(a))
POINT(f_gelu_erf, 0.5 * a * erfc(-a * M_SQRT1_2))
POINT(f_gelu_tanh, 0.5 * a * (1 + tanh(M_2_SQRTPI * M_SQRT1_2 * (a + 0.044715 * a * a * a))))
POINT(f_gelu, p[0] != 0 ? f_gelu_tanh(a, b, c, p) : f_gelu_erf(a, b, c, p))
POINT(f_abs, fabs(a))
POINT(f_sqrt, sqrt(a))
POINT(f_log, log(a))
POINT(f_clamp, pointwise_clamp(a, p[0], p[1]))
POINT(f_clamp_min, pointwise_clamp(a, p[0], NAN))
POINT(f_leaky_relu, a > 0 ? a : a * p[0])
POINT(f_mish, a *tanh(log1p_exp(a)))
POINT(f_hardswish, a *pointwise_clamp(a + 3, 0, 6) / 6)
POINT(f_hardsigmoid, pointwise_clamp(a + 3, 0, 6) / 6)
POINT(f_elu, a > 0 ? a * p[1] : expm1(a * p[2]) * p[0] * p[1])
POINT(f_selu, 1.0507009873554804934193349852946 *
                  (a > 0 ? a : 1.6732632423543772848170429916717 * expm1(a)))
POINT(f_softplus, a *p[0] > p[1] ? a : log1p(exp(a * p[0])) / p[0])
POINT(f_pow, pow(a, p[0]))
POINT(f_min, isnan(a) || a < b ? a : b)
POINT(f_eq, a == p[0])
POINT(f_masked_fill, b != 0 ? p[0] : a)
POINT(f_self, a)
POINT(f_other, b)

#define ROW(aten, ...) POINTWISE("aten." aten, __VA_ARGS__)

#define BINARY "Operand self, Operand other"
#define ALPHA BINARY ", *, Scalar alpha=1"
#define UNARY "Tensor self"
#define CLAMP_TEXT "a < p0 ? p0 : a > p1 ? p1 : a"
#define TANH_TEXT "0.5f * a * (1 + tanh(0.7978845608028653559f * (a + 0.044715f * a * a * a)))"
#define HARD_TEXT(a) a "(a < -3 ? 0 : a > 3 ? 6 : a + 3) * 0.16666666666666666667f"
#define SOFTPLUS_TEXT "(a > 0 ? a : 0) + log1p(exp(-fabs(a)))"

/* Powers that eager PyTorch does not compute by `pow`. */
static const char *power_text(const OpCall *c)
{
    static const struct {
        double power;
        int whole; /* whole numbers too */
        const char *text;
    } known[] = {{0, 1, "1"},         {1, 1, "a"},           {2, 1, "a * a"},
                 {3, 1, "a * a * a"}, {0.5, 0, "sqrt(a)"},   {-0.5, 0, "rsqrt(a)"},
                 {-1, 0, "1 / a"},    {-2, 0, "1 / (a * a)"}};
    const int whole = !dtype_is_float(c->result[0].dtype);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (c->arg[1].number == known[i].power && (known[i].whole || !whole)) return known[i].text;
    return NULL;
}

static const Pointwise power = {.f = run_f_pow,
                                .cuda = "pow(a, p0)",
                                .operands = 1,
                                .rule = RESULT_PROMOTED,
                                .special = power_text},
                       power_in_place = {.f = run_f_pow,
                                         .cuda = "pow(a, p0)",
                                         .operands = 1,
                                         .rule = RESULT_SELF,
                                         .special = power_text};

static const Op table[] = {
    ROW("add.Tensor", ALPHA, f_add, "a + p0 * b", 2, RESULT_PROMOTED, NULL, 0),
    ROW("add_.Tensor", ALPHA, f_add, "a + p0 * b", 2, RESULT_PROMOTED, NULL, OP_IN_PLACE),
    ROW("sub.Tensor", ALPHA, f_sub, "a - p0 * b", 2, RESULT_PROMOTED, NULL, 0),
    ROW("rsub.Scalar", "Tensor self, Scalar other, Scalar alpha=1", f_rsub, "p0 - p1 * a", 1,
        RESULT_PROMOTED, NULL, 0),
    ROW("mul.Tensor", BINARY, f_mul, "a * b", 2, RESULT_PROMOTED, NULL, 0),
    ROW("multiply.Tensor", BINARY, f_mul, "a * b", 2, RESULT_PROMOTED, NULL, 0),
    ROW("div.Tensor", BINARY, f_div, "a / b", 2, RESULT_FLOAT, NULL, 0),
    ROW("relu.default", UNARY, f_relu, "a < 0 ? 0 : a", 1, RESULT_SELF, NULL, 0),
    ROW("relu_.default", UNARY, f_relu, "a < 0 ? 0 : a", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("sigmoid.default", UNARY, f_sigmoid, "1 / (1 + exp(-a))", 1, RESULT_FLOAT, NULL, 0),
    ROW("tanh.default", UNARY, f_tanh, "tanh(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("gelu.default", "Tensor self, *, str approximate=none", f_gelu,
        "p0 != 0 ? " TANH_TEXT " : 0.5f * a * (1 + erf(a * 0.70710678118654752440f))", 1,
        RESULT_SELF, NULL, 0),
    ROW("abs.default", UNARY, f_abs, "a < 0 ? -a : a", 1, RESULT_SELF, NULL, 0),
    ROW("sqrt.default", UNARY, f_sqrt, "sqrt(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("log.default", UNARY, f_log, "log(a)", 1, RESULT_FLOAT, NULL, 0),
    POINTWISE_CLAMP("aten.clamp.default", f_clamp, RESULT_PROMOTED, 0),
    ROW("clamp_min.default", "Tensor self, Scalar min", f_clamp_min, "a < p0 ? p0 : a", 1,
        RESULT_PROMOTED, NULL, 0),
    ROW("clamp_min_.default", "Tensor self, Scalar min", f_clamp_min, "a < p0 ? p0 : a", 1,
        RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("leaky_relu.default", "Tensor self, Scalar negative_slope=0.01", f_leaky_relu,
        "a > 0 ? a : a * p0", 1, RESULT_SELF, NULL, 0),
    ROW("mish.default", UNARY, f_mish, "a * tanh(" SOFTPLUS_TEXT ")", 1, RESULT_SELF, NULL, 0),
    ROW("hardtanh.default", "Tensor self, Scalar min_val=-1, Scalar max_val=1", f_clamp, CLAMP_TEXT,
        1, RESULT_SELF, NULL, 0),
    ROW("hardtanh_.default", "Tensor self, Scalar min_val=-1, Scalar max_val=1", f_clamp,
        CLAMP_TEXT, 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("hardswish.default", UNARY, f_hardswish, HARD_TEXT("a * "), 1, RESULT_SELF, NULL, 0),
    ROW("hardsigmoid.default", UNARY, f_hardsigmoid, HARD_TEXT(""), 1, RESULT_SELF, NULL, 0),
    ROW("hardswish_.default", UNARY, f_hardswish, HARD_TEXT("a * "), 1, RESULT_SELF, NULL,
        OP_IN_PLACE),
    ROW("hardsigmoid_.default", UNARY, f_hardsigmoid, HARD_TEXT(""), 1, RESULT_SELF, NULL,
        OP_IN_PLACE),
    ROW("mish_.default", UNARY, f_mish, "a * tanh(" SOFTPLUS_TEXT ")", 1, RESULT_SELF, NULL,
        OP_IN_PLACE),
    ROW("elu_.default", "Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1", f_elu,
        "a > 0 ? a * p1 : expm1(a * p2) * p0 * p1", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("elu.default",
        "Tensor self, Scalar alpha=1, Scalar scale=1, "
        "Scalar input_scale=1",
        f_elu, "a > 0 ? a * p1 : expm1(a * p2) * p0 * p1", 1, RESULT_SELF, NULL, 0),
    ROW("selu.default", UNARY, f_selu,
        "1.0507009873554804935f * (a > 0 ? a : "
        "1.6732632423543772848f * expm1(a))",
        1, RESULT_SELF, NULL, 0),
    ROW("softplus.default", "Tensor self, Scalar beta=1, Scalar threshold=20", f_softplus,
        "a * p0 > p1 ? a : log1p(exp(a * p0)) / p0", 1, RESULT_SELF, NULL, 0),
    {"aten.pow.Tensor_Scalar", "Tensor self, Scalar exponent", pointwise_infer, pointwise_reference,
     pointwise_plain, pointwise_cost, 0, &power, NULL, &pointwise_elements},
    {"aten.pow_.Scalar", "Tensor self, Scalar exponent", pointwise_infer, pointwise_reference,
     pointwise_plain, pointwise_cost, OP_IN_PLACE, &power_in_place, NULL, &pointwise_elements},
    ROW("min.other", "Tensor self, Tensor other", f_min, "a != a || a < b ? a : b", 2,
        RESULT_PROMOTED, NULL, 0),
    ROW("eq.Scalar", "Tensor self, Scalar other", f_eq, "a == p0", 1, RESULT_BOOL, NULL, 0),
    ROW("masked_fill.Scalar", "Tensor self, Tensor mask, Scalar value", f_masked_fill,
        "b != 0 ? p0 : a", 2, RESULT_SELF, NULL, 0),
    ROW("dropout.default", "Tensor input, float p, bool train", f_self, "a", 1, RESULT_SELF,
        "train", OP_VIEW),
    ROW("copy_.default", "Tensor self, Tensor src, bool non_blocking=False", f_other, "b", 2,
        RESULT_SELF, NULL, OP_IN_PLACE),
};

const OpFamily pointwise_family = {"pointwise", table, sizeof table / sizeof *table};

/* The pointwise operators of common networks. */
#include <math.h>

#include "ops/op_pointwise.h"

static double log1p_exp(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

POINT(f_pow, pow(a, p[0]))
POINT(f_add, a + p[0] * b)
POINT(f_gelu_erf, 0.5 * a * erfc(-a * M_SQRT1_2))
POINT(f_gelu_tanh, 0.5 * a * (1 + tanh(M_2_SQRTPI * M_SQRT1_2 * (a + 0.044715 * a * a * a))))
POINT(f_clamp, pointwise_clamp(a, p[0], p[1]))
POINT(f_self, a)

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

/* clang-format off */
#define OPERATORS(NEW, BOTH, PLACE) \
    NEW(add, Tensor, ALPHA, 2, PROMOTED, "a + p0 * b", a + p[0] * b) \
    NEW(sub, Tensor, ALPHA, 2, PROMOTED, "a - p0 * b", a - p[0] * b) \
    NEW(rsub, Scalar, "Tensor self, Scalar other, Scalar alpha=1", 1, PROMOTED, "p0 - p1 * a", \
      p[0] - p[1] * a) \
    NEW(mul, Tensor, BINARY, 2, PROMOTED, "a * b", a * b) \
    NEW(multiply, Tensor, BINARY, 2, PROMOTED, "a * b", a * b) \
    NEW(div, Tensor, BINARY, 2, FLOAT, "a / b", a / b) \
    BOTH(relu, default, UNARY, 1, SELF, "a < 0 ? 0 : a", a < 0 ? 0 : a) \
    NEW(sigmoid, default, UNARY, 1, FLOAT, "1 / (1 + exp(-a))", 1 / (1 + exp(-a))) \
    NEW(tanh, default, UNARY, 1, FLOAT, "tanh(a)", tanh(a)) \
    NEW(gelu, default, "Tensor self, *, str approximate=none", 1, SELF, \
      "p0 != 0 ? " TANH_TEXT " : 0.5f * a * (1 + erf(a * 0.70710678118654752440f))", \
      p[0] != 0 ? f_gelu_tanh(a, b, c, p) : f_gelu_erf(a, b, c, p)) \
    NEW(abs, default, UNARY, 1, SELF, "a < 0 ? -a : a", fabs(a)) \
    NEW(sqrt, default, UNARY, 1, FLOAT, "sqrt(a)", sqrt(a)) \
    NEW(log, default, UNARY, 1, FLOAT, "log(a)", log(a)) \
    BOTH(clamp_min, default, "Tensor self, Scalar min", 1, PROMOTED, "a < p0 ? p0 : a", \
      pointwise_clamp(a, p[0], NAN)) \
    NEW(leaky_relu, default, "Tensor self, Scalar negative_slope=0.01", 1, SELF, "a > 0 ? a : a * p0", \
      a > 0 ? a : a * p[0]) \
    BOTH(mish, default, UNARY, 1, SELF, "a * tanh(" SOFTPLUS_TEXT ")", a * tanh(log1p_exp(a))) \
    BOTH(hardtanh, default, "Tensor self, Scalar min_val=-1, Scalar max_val=1", 1, SELF, CLAMP_TEXT, \
      pointwise_clamp(a, p[0], p[1])) \
    BOTH(hardswish, default, UNARY, 1, SELF, HARD_TEXT("a * "), a * pointwise_clamp(a + 3, 0, 6) / 6) \
    BOTH(hardsigmoid, default, UNARY, 1, SELF, HARD_TEXT(""), pointwise_clamp(a + 3, 0, 6) / 6) \
    PLACE(elu_, default, "Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1", 1, \
      "a > 0 ? a * p1 : expm1(a * p2) * p0 * p1", a > 0 ? a * p[1] : expm1(a * p[2]) * p[0] * p[1]) \
    NEW(elu, default, "Tensor self, Scalar alpha=1, Scalar scale=1, " "Scalar input_scale=1", 1, SELF, \
      "a > 0 ? a * p1 : expm1(a * p2) * p0 * p1", a > 0 ? a * p[1] : expm1(a * p[2]) * p[0] * p[1]) \
    NEW(selu, default, UNARY, 1, SELF, \
      "1.0507009873554804935f * (a > 0 ? a : " "1.6732632423543772848f * expm1(a))", \
      1.0507009873554804934193349852946 * (a > 0 ? a : 1.6732632423543772848170429916717 * expm1(a))) \
    NEW(softplus, default, "Tensor self, Scalar beta=1, Scalar threshold=20", 1, SELF, \
      "a * p0 > p1 ? a : log1p(exp(a * p0)) / p0", a * p[0] > p[1] ? a : log1p(exp(a * p[0])) / p[0]) \
    NEW(min, other, "Tensor self, Tensor other", 2, PROMOTED, "a != a || a < b ? a : b", \
      isnan(a) || a < b ? a : b) \
    NEW(eq, Scalar, "Tensor self, Scalar other", 1, BOOL, "a == p0", a == p[0]) \
    NEW(masked_fill, Scalar, "Tensor self, Tensor mask, Scalar value", 2, SELF, "b != 0 ? p0 : a", \
      b != 0 ? p[0] : a) \
    PLACE(copy_, default, "Tensor self, Tensor src, bool non_blocking=False", 2, "b", b)
/* clang-format on */

OPERATORS(POINT_NEW, POINT_NEW, POINT_PLACE)

static const Op table[] = {
    OPERATORS(ROW_NEW, ROW_BOTH, ROW_PLACE)
        POINTWISE_CLAMP("aten.clamp.default", f_clamp, RESULT_PROMOTED, 0),
    {"aten.pow.Tensor_Scalar", "Tensor self, Scalar exponent", pointwise_infer, pointwise_reference,
     pointwise_plain, pointwise_cost, 0, &power, NULL, &pointwise_elements},
    {"aten.pow_.Scalar", "Tensor self, Scalar exponent", pointwise_infer, pointwise_reference,
     pointwise_plain, pointwise_cost, OP_IN_PLACE, &power_in_place, NULL, &pointwise_elements},
    ROW("dropout.default", "Tensor input, float p, bool train", f_self, "a", 1, RESULT_SELF,
        "train", OP_VIEW),
    ROW("add_.Tensor", ALPHA, f_add, "a + p0 * b", 2, RESULT_PROMOTED, NULL, OP_IN_PLACE),
};

const OpFamily pointwise_family = {"pointwise", table, sizeof table / sizeof *table};

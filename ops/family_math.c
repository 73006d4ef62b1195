/* More functions of one operand: elementary functions, activations and their in-place forms. */
#include <float.h>
#include <math.h>

#include "ops/op_pointwise.h"

/* log(a / (1 - a)) of a within bounds; one of NaN is none. */
static double logit(double a, double low, double high)
{
    a = pointwise_clamp(a, low, high);
    return log(a / (1 - a));
}

/* The bounds in the type of the arithmetic: next to 1 it has few digits. */
static void logit_bounds(const OpCall *c, double *p)
{
    float low = (float)p[0];
    if (c->result[0].dtype == DTYPE_F64)
        p[1] = 1 - p[0];
    else
        p[0] = low, p[1] = (double)(1 - low);
}

/* Newton's steps for erf(x) = y from an approximation; erfc keeps the digits of a y next to 1. */
static double erfinv(double y)
{
    double size = fabs(y), l = log1p(-y * y), k = 2 / (M_PI * 0.147) + l / 2;
    if (!(size < 1)) return size == 1 ? copysign(INFINITY, y) : NAN;
    double x = sqrt(sqrt(k * k - l / 0.147) - k);
    for (int i = 0; i < 4; i++) {
        double off = size > 0.5 ? (1 - size) - erfc(x) : erf(x) - size;
        double step = off / (M_2_SQRTPI * exp(-x * x));
        x -= step / (1 + x * step);
    }
    return size == 0 ? y : copysign(x, y);
}

/* What takes the place of NaN and of infinities. */
static void replacements(const OpCall *c, double *p)
{
    Dtype d = op_tensor(c, 0)->dtype;
    double most = d == DTYPE_F64    ? DBL_MAX
                  : d == DTYPE_F16  ? 65504
                  : d == DTYPE_BF16 ? 0x1.fep127
                  : d == DTYPE_F32  ? FLT_MAX
                                    : 0;
    const double otherwise[] = {0, most, -most};
    for (int i = 0; i < 3; i++)
        if (c->arg[1 + i].kind == OP_NONE) p[i] = otherwise[i];
}

/* A power of ten that is multiplied with; a negative one is divided by. */
static void power_of_ten(const OpCall *c, double *p)
{
    double n = c->arg[1].number;
    p[0] = n >= 0 ? pow(10, n) : -pow(10, -n);
}

POINT(f_logit, logit(a, p[0], p[1]))
POINT(f_nan_to_num, isnan(a) ? p[0] : isinf(a) ? p[a < 0 ? 2 : 1] : a)
POINT(f_round_decimals, p[0] > 0 ? nearbyint(a * p[0]) / p[0] : nearbyint(a / -p[0]) * -p[0])
POINT(f_clamp_, pointwise_clamp(a, p[0], p[1]))

#define UNARY "Tensor self"
#define REPLACED "Tensor self, float? nan=None, float? posinf=None, float? neginf=None"
#define OFF "(a < p0 ? p0 : a > 1 - p0 ? 1 - p0 : a)"

/* A number with more digits has none behind its point in any type. */
static int infer_round(OpCall *c, Error *err)
{
    if (fabs(c->arg[1].number) > 20)
        return error_set(err, ERROR_UNSUPPORTED, "expected at most 20 decimals, found %g",
                         c->arg[1].number);
    if (!dtype_is_float(op_tensor(c, 0)->dtype))
        return error_set(err, ERROR_UNSUPPORTED, "decimals of whole numbers");
    return pointwise_infer(c, err);
}

static const Pointwise logit_of = {.f = run_f_logit,
                                   .cuda = "log(" OFF " / (1 - " OFF "))",
                                   .operands = 1,
                                   .rule = RESULT_FLOAT,
                                   .fill = logit_bounds};
static const Pointwise nan_to_num = {.f = run_f_nan_to_num,
                                     .cuda = "a != a ? p0 : a - a != 0 ? (a > 0 ? p1 : p2) : a",
                                     .operands = 1,
                                     .rule = RESULT_SELF,
                                     .fill = replacements},
                       round_decimals = {.f = run_f_round_decimals,
                                         .cuda = "p0 > 0 ? rint(a * p0) / p0 : rint(a / -p0) * -p0",
                                         .operands = 1,
                                         .rule = RESULT_SELF,
                                         .fill = power_of_ten};

/* clang-format off */
#define OPERATORS(NEW, BOTH, PLACE) \
    BOTH(exp, default, UNARY, 1, FLOAT, "exp(a)", exp(a)) \
    NEW(exp2, default, UNARY, 1, FLOAT, "exp2(a)", exp2(a)) \
    NEW(expm1, default, UNARY, 1, FLOAT, "expm1(a)", expm1(a)) \
    NEW(log2, default, UNARY, 1, FLOAT, "log2(a)", log2(a)) \
    NEW(log10, default, UNARY, 1, FLOAT, "log10(a)", log10(a)) \
    NEW(log1p, default, UNARY, 1, FLOAT, "log1p(a)", log1p(a)) \
    BOTH(sin, default, UNARY, 1, FLOAT, "sin(a)", sin(a)) \
    BOTH(cos, default, UNARY, 1, FLOAT, "cos(a)", cos(a)) \
    NEW(tan, default, UNARY, 1, FLOAT, "tan(a)", tan(a)) \
    NEW(atan, default, UNARY, 1, FLOAT, "atan(a)", atan(a)) \
    NEW(sinh, default, UNARY, 1, FLOAT, "sinh(a)", sinh(a)) \
    NEW(cosh, default, UNARY, 1, FLOAT, "cosh(a)", cosh(a)) \
    NEW(asin, default, UNARY, 1, FLOAT, "asin(a)", asin(a)) \
    NEW(acos, default, UNARY, 1, FLOAT, "acos(a)", acos(a)) \
    NEW(asinh, default, UNARY, 1, FLOAT, "asinh(a)", asinh(a)) \
    NEW(acosh, default, UNARY, 1, FLOAT, "acosh(a)", acosh(a)) \
    NEW(atanh, default, UNARY, 1, FLOAT, "atanh(a)", atanh(a)) \
    NEW(isnan, default, UNARY, 1, BOOL, "a != a", isnan(a)) \
    NEW(isposinf, default, UNARY, 1, BOOL, "a > 0 && a - a != 0", a > 0 && isinf(a)) \
    NEW(isneginf, default, UNARY, 1, BOOL, "a < 0 && a - a != 0", a < 0 && isinf(a)) \
    NEW(signbit, default, UNARY, 1, BOOL, "copysign(1.0f, 1.0f * a) < 0", signbit(a) != 0) \
    NEW(sinc, default, UNARY, 1, FLOAT, \
      "a == 0 ? 1 : sin(3.14159265358979323846f * a) / (3.14159265358979323846f * a)", \
      a == 0 ? 1 : sin(M_PI * a) / (M_PI * a)) \
    NEW(special_entr, default, UNARY, 1, FLOAT, "a != a ? a : a > 0 ? -a * log(a) : a == 0 ? 0 : log(0.0f)", \
      isnan(a) ? a : a > 0 ? -a * log(a) : a == 0 ? 0 : -INFINITY) \
    NEW(lgamma, default, UNARY, 1, FLOAT, "lgamma(a)", lgamma(a)) \
    NEW(erfinv, default, UNARY, 1, FLOAT, "erfinv(a)", erfinv(a)) \
    NEW(deg2rad, default, UNARY, 1, FLOAT, "a * 0.017453292519943295769f", a * M_PI / 180) \
    NEW(rad2deg, default, UNARY, 1, FLOAT, "a * 57.295779513082320877f", a * 180 / M_PI) \
    PLACE(log_, default, UNARY, 1, "log(a)", log(a)) \
    NEW(erf, default, UNARY, 1, FLOAT, "erf(a)", erf(a)) \
    NEW(erfc, default, UNARY, 1, FLOAT, "erfc(a)", erfc(a)) \
    BOTH(silu, default, UNARY, 1, SELF, "a / (1 + exp(-a))", a / (1 + exp(-a))) \
    NEW(log_sigmoid, default, UNARY, 1, SELF, "(a < 0 ? a : 0) - log1p(exp(-fabs(a)))", \
      (a < 0 ? a : 0) - log1p(exp(-fabs(a)))) \
    BOTH(rsqrt, default, UNARY, 1, FLOAT, "rsqrt(a)", 1 / sqrt(a)) \
    BOTH(reciprocal, default, UNARY, 1, FLOAT, "1 / a", 1 / a) \
    BOTH(neg, default, UNARY, 1, SELF, "-a", -a) \
    BOTH(square, default, UNARY, 1, SELF, "a * a", a * a) \
    NEW(sign, default, UNARY, 1, SELF, "(a > 0) - (a < 0)", (a > 0) - (a < 0)) \
    BOTH(floor, default, UNARY, 1, SELF, "floor(a)", floor(a)) \
    NEW(ceil, default, UNARY, 1, SELF, "ceil(a)", ceil(a)) \
    NEW(round, default, UNARY, 1, SELF, "rint(a)", nearbyint(a)) \
    NEW(trunc, default, UNARY, 1, SELF, "trunc(a)", trunc(a)) \
    NEW(frac, default, UNARY, 1, SELF, "a - trunc(a)", a - trunc(a)) \
    BOTH(relu6, default, UNARY, 1, SELF, "a < 0 ? 0 : a > 6 ? 6 : a", pointwise_clamp(a, 0, 6)) \
    PLACE(sigmoid_, default, UNARY, 1, "1 / (1 + exp(-a))", 1 / (1 + exp(-a))) \
    PLACE(tanh_, default, UNARY, 1, "tanh(a)", tanh(a)) \
    PLACE(sqrt_, default, UNARY, 1, "sqrt(a)", sqrt(a)) \
    PLACE(abs_, default, UNARY, 1, "a < 0 ? -a : a", fabs(a)) \
    NEW(celu, default, "Tensor self, Scalar alpha=1", 1, SELF, "a > 0 ? a : p0 * expm1(a * (1 / p0))", \
      a > 0 ? a : p[0] * expm1(a / p[0])) \
    NEW(hardshrink, default, "Tensor self, Scalar lambd=0.5", 1, SELF, "a >= -p0 && a <= p0 ? 0 : a", \
      a >= -p[0] && a <= p[0] ? 0 : a) \
    NEW(softshrink, default, "Tensor self, Scalar lambd=0.5", 1, SELF, \
      "a > p0 ? a - p0 : a < -p0 ? a + p0 : a * 0", a > p[0] ? a - p[0] : a < -p[0] ? a + p[0] : a * 0) \
    NEW(threshold, default, "Tensor self, Scalar threshold, Scalar value", 1, SELF, "a <= p0 ? p1 : a", \
      a <= p[0] ? p[1] : a) \
    BOTH(clamp_max, default, "Tensor self, Scalar max", 1, PROMOTED, "a > p0 ? p0 : a", \
      pointwise_clamp(a, NAN, p[0])) \
    PLACE(leaky_relu_, default, "Tensor self, Scalar negative_slope=0.01", 1, "a > 0 ? a : a * p0", \
      a > 0 ? a : a * p[0])
/* clang-format on */

OPERATORS(POINT_NEW, POINT_NEW, POINT_PLACE)

static const Op table[] = {
    OPERATORS(ROW_NEW, ROW_BOTH, ROW_PLACE){"aten.nan_to_num.default", REPLACED, pointwise_infer,
                                            pointwise_reference, pointwise_plain, pointwise_cost, 0,
                                            &nan_to_num, NULL, &pointwise_elements},
    {"aten.nan_to_num_.default", REPLACED, pointwise_infer, pointwise_reference, pointwise_plain,
     pointwise_cost, OP_IN_PLACE, &nan_to_num, NULL, &pointwise_elements},
    {"aten.round.decimals", "Tensor self, *, int decimals", infer_round, pointwise_reference,
     pointwise_plain, pointwise_cost, 0, &round_decimals, NULL, &pointwise_elements},
    {"aten.logit.default", "Tensor self, float? eps=None", pointwise_infer, pointwise_reference,
     pointwise_plain, pointwise_cost, 0, &logit_of, NULL, &pointwise_elements},
    POINTWISE_CLAMP("aten.clip.default", f_clamp_, RESULT_PROMOTED, 0),
    POINTWISE_CLAMP("aten.clamp_.default", f_clamp_, RESULT_SELF, OP_IN_PLACE),
};

const OpFamily math_family = {"math", table, sizeof table / sizeof *table};

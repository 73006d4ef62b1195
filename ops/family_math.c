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

POINT(f_exp, exp(a))
POINT(f_exp2, exp2(a))
POINT(f_expm1, expm1(a))
POINT(f_log, log(a))
POINT(f_log2, log2(a))
POINT(f_log10, log10(a))
POINT(f_log1p, log1p(a))
POINT(f_sin, sin(a))
POINT(f_cos, cos(a))
POINT(f_tan, tan(a))
POINT(f_atan, atan(a))
POINT(f_sinh, sinh(a))
POINT(f_asin, asin(a))
POINT(f_acos, acos(a))
POINT(f_asinh, asinh(a))
POINT(f_acosh, acosh(a))
POINT(f_atanh, atanh(a))
POINT(f_isnan, isnan(a))
POINT(f_isposinf, a > 0 && isinf(a))
POINT(f_isneginf, a < 0 && isinf(a))
POINT(f_signbit, signbit(a) != 0)
POINT(f_nan_to_num, isnan(a) ? p[0] : isinf(a) ? p[a < 0 ? 2 : 1] : a)
POINT(f_logit, logit(a, p[0], p[1]))
POINT(f_sinc, a == 0 ? 1 : sin(M_PI * a) / (M_PI * a))
POINT(f_entr, isnan(a) ? a : a > 0 ? -a * log(a) : a == 0 ? 0 : -INFINITY)
POINT(f_lgamma, lgamma(a))
POINT(f_erfinv, erfinv(a))
POINT(f_deg2rad, a *M_PI / 180)
POINT(f_rad2deg, a * 180 / M_PI)
POINT(f_round_decimals, p[0] > 0 ? nearbyint(a * p[0]) / p[0] : nearbyint(a / -p[0]) * -p[0])
POINT(f_cosh, cosh(a))
POINT(f_erf, erf(a))
POINT(f_erfc, erfc(a))
POINT(f_silu, a / (1 + exp(-a)))
POINT(f_log_sigmoid, (a < 0 ? a : 0) - log1p(exp(-fabs(a))))
POINT(f_rsqrt, 1 / sqrt(a))
POINT(f_reciprocal, 1 / a)
POINT(f_neg, -a)
POINT(f_square, a *a)
POINT(f_sign, (a > 0) - (a < 0))
POINT(f_floor, floor(a))
POINT(f_ceil, ceil(a))
POINT(f_round, nearbyint(a))
POINT(f_trunc, trunc(a))
POINT(f_frac, a - trunc(a))
POINT(f_relu6, pointwise_clamp(a, 0, 6))
POINT(f_sigmoid, 1 / (1 + exp(-a)))
POINT(f_tanh, tanh(a))
POINT(f_sqrt, sqrt(a))
POINT(f_abs, fabs(a))
POINT(f_celu, a > 0 ? a : p[0] * expm1(a / p[0]))
POINT(f_hardshrink, a >= -p[0] && a <= p[0] ? 0 : a)
POINT(f_softshrink, a > p[0] ? a - p[0] : a < -p[0] ? a + p[0] : a * 0)
POINT(f_threshold, a <= p[0] ? p[1] : a)
POINT(f_clamp_max, pointwise_clamp(a, NAN, p[0]))
POINT(f_clamp_, pointwise_clamp(a, p[0], p[1]))
POINT(f_leaky_relu_, a > 0 ? a : a * p[0])

#define ROW(aten, ...) POINTWISE("aten." aten, __VA_ARGS__)
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

static const Op table[] = {
    ROW("exp.default", UNARY, f_exp, "exp(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("exp_.default", UNARY, f_exp, "exp(a)", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("exp2.default", UNARY, f_exp2, "exp2(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("expm1.default", UNARY, f_expm1, "expm1(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("log2.default", UNARY, f_log2, "log2(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("log10.default", UNARY, f_log10, "log10(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("log1p.default", UNARY, f_log1p, "log1p(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("sin.default", UNARY, f_sin, "sin(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("cos.default", UNARY, f_cos, "cos(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("tan.default", UNARY, f_tan, "tan(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("atan.default", UNARY, f_atan, "atan(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("sinh.default", UNARY, f_sinh, "sinh(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("cosh.default", UNARY, f_cosh, "cosh(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("asin.default", UNARY, f_asin, "asin(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("acos.default", UNARY, f_acos, "acos(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("asinh.default", UNARY, f_asinh, "asinh(a)", 1, RESULT_FLOAT, NULL, 0),

    ROW("acosh.default", UNARY, f_acosh, "acosh(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("atanh.default", UNARY, f_atanh, "atanh(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("isnan.default", UNARY, f_isnan, "a != a", 1, RESULT_BOOL, NULL, 0),
    ROW("isposinf.default", UNARY, f_isposinf, "a > 0 && a - a != 0", 1, RESULT_BOOL, NULL, 0),
    ROW("isneginf.default", UNARY, f_isneginf, "a < 0 && a - a != 0", 1, RESULT_BOOL, NULL, 0),
    ROW("signbit.default", UNARY, f_signbit, "copysign(1.0f, 1.0f * a) < 0", 1, RESULT_BOOL, NULL,
        0),
    {"aten.nan_to_num.default", REPLACED, pointwise_infer, pointwise_reference, pointwise_plain,
     pointwise_cost, 0, &nan_to_num, NULL, &pointwise_elements},
    {"aten.nan_to_num_.default", REPLACED, pointwise_infer, pointwise_reference, pointwise_plain,
     pointwise_cost, OP_IN_PLACE, &nan_to_num, NULL, &pointwise_elements},
    {"aten.round.decimals", "Tensor self, *, int decimals", infer_round, pointwise_reference,
     pointwise_plain, pointwise_cost, 0, &round_decimals, NULL, &pointwise_elements},
    {"aten.logit.default", "Tensor self, float? eps=None", pointwise_infer, pointwise_reference,
     pointwise_plain, pointwise_cost, 0, &logit_of, NULL, &pointwise_elements},
    ROW("sinc.default", UNARY, f_sinc,
        "a == 0 ? 1 : sin(3.14159265358979323846f * a) / (3.14159265358979323846f * a)", 1,
        RESULT_FLOAT, NULL, 0),
    ROW("special_entr.default", UNARY, f_entr,
        "a != a ? a : a > 0 ? -a * log(a) : a == 0 ? 0 : log(0.0f)", 1, RESULT_FLOAT, NULL, 0),
    ROW("lgamma.default", UNARY, f_lgamma, "lgamma(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("erfinv.default", UNARY, f_erfinv, "erfinv(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("deg2rad.default", UNARY, f_deg2rad, "a * 0.017453292519943295769f", 1, RESULT_FLOAT, NULL,
        0),
    ROW("rad2deg.default", UNARY, f_rad2deg, "a * 57.295779513082320877f", 1, RESULT_FLOAT, NULL,
        0),
    ROW("log_.default", UNARY, f_log, "log(a)", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("sin_.default", UNARY, f_sin, "sin(a)", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("cos_.default", UNARY, f_cos, "cos(a)", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("square_.default", UNARY, f_square, "a * a", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("floor_.default", UNARY, f_floor, "floor(a)", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("erf.default", UNARY, f_erf, "erf(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("erfc.default", UNARY, f_erfc, "erfc(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("silu.default", UNARY, f_silu, "a / (1 + exp(-a))", 1, RESULT_SELF, NULL, 0),
    ROW("silu_.default", UNARY, f_silu, "a / (1 + exp(-a))", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("log_sigmoid.default", UNARY, f_log_sigmoid, "(a < 0 ? a : 0) - log1p(exp(-fabs(a)))", 1,
        RESULT_SELF, NULL, 0),
    ROW("rsqrt.default", UNARY, f_rsqrt, "rsqrt(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("reciprocal.default", UNARY, f_reciprocal, "1 / a", 1, RESULT_FLOAT, NULL, 0),
    ROW("neg.default", UNARY, f_neg, "-a", 1, RESULT_SELF, NULL, 0),
    ROW("neg_.default", UNARY, f_neg, "-a", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("square.default", UNARY, f_square, "a * a", 1, RESULT_SELF, NULL, 0),
    ROW("sign.default", UNARY, f_sign, "(a > 0) - (a < 0)", 1, RESULT_SELF, NULL, 0),
    ROW("floor.default", UNARY, f_floor, "floor(a)", 1, RESULT_SELF, NULL, 0),
    ROW("ceil.default", UNARY, f_ceil, "ceil(a)", 1, RESULT_SELF, NULL, 0),
    ROW("round.default", UNARY, f_round, "rint(a)", 1, RESULT_SELF, NULL, 0),
    ROW("trunc.default", UNARY, f_trunc, "trunc(a)", 1, RESULT_SELF, NULL, 0),
    ROW("frac.default", UNARY, f_frac, "a - trunc(a)", 1, RESULT_SELF, NULL, 0),
    ROW("relu6.default", UNARY, f_relu6, "a < 0 ? 0 : a > 6 ? 6 : a", 1, RESULT_SELF, NULL, 0),
    ROW("relu6_.default", UNARY, f_relu6, "a < 0 ? 0 : a > 6 ? 6 : a", 1, RESULT_SELF, NULL,
        OP_IN_PLACE),
    ROW("rsqrt_.default", UNARY, f_rsqrt, "rsqrt(a)", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("reciprocal_.default", UNARY, f_reciprocal, "1 / a", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("sigmoid_.default", UNARY, f_sigmoid, "1 / (1 + exp(-a))", 1, RESULT_SELF, NULL,
        OP_IN_PLACE),
    ROW("tanh_.default", UNARY, f_tanh, "tanh(a)", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("sqrt_.default", UNARY, f_sqrt, "sqrt(a)", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("abs_.default", UNARY, f_abs, "a < 0 ? -a : a", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("celu.default", "Tensor self, Scalar alpha=1", f_celu,
        "a > 0 ? a : p0 * expm1(a * (1 / p0))", 1, RESULT_SELF, NULL, 0),
    ROW("hardshrink.default", "Tensor self, Scalar lambd=0.5", f_hardshrink,
        "a >= -p0 && a <= p0 ? 0 : a", 1, RESULT_SELF, NULL, 0),
    ROW("softshrink.default", "Tensor self, Scalar lambd=0.5", f_softshrink,
        "a > p0 ? a - p0 : a < -p0 ? a + p0 : a * 0", 1, RESULT_SELF, NULL, 0),
    ROW("threshold.default", "Tensor self, Scalar threshold, Scalar value", f_threshold,
        "a <= p0 ? p1 : a", 1, RESULT_SELF, NULL, 0),
    ROW("clamp_max.default", "Tensor self, Scalar max", f_clamp_max, "a > p0 ? p0 : a", 1,
        RESULT_PROMOTED, NULL, 0),
    ROW("clamp_max_.default", "Tensor self, Scalar max", f_clamp_max, "a > p0 ? p0 : a", 1,
        RESULT_SELF, NULL, OP_IN_PLACE),
    POINTWISE_CLAMP("aten.clip.default", f_clamp_, RESULT_PROMOTED, 0),
    POINTWISE_CLAMP("aten.clamp_.default", f_clamp_, RESULT_SELF, OP_IN_PLACE),
    ROW("leaky_relu_.default", "Tensor self, Scalar negative_slope=0.01", f_leaky_relu_,
        "a > 0 ? a : a * p0", 1, RESULT_SELF, NULL, OP_IN_PLACE),
};

const OpFamily math_family = {"math", table, sizeof table / sizeof *table};

/* More functions of one operand: elementary functions, activations and their in-place forms. */
#include <math.h>

#include "ops/op_pointwise.h"

POINT(f_exp, exp(a))
POINT(f_exp2, exp2(a))
POINT(f_expm1, expm1(a))
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
POINT(f_atanh, atanh(a))
POINT(f_isnan, isnan(a))
POINT(f_isinf, isinf(a) != 0)
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

    ROW("atanh.default", UNARY, f_atanh, "atanh(a)", 1, RESULT_FLOAT, NULL, 0),
    ROW("isnan.default", UNARY, f_isnan, "a != a", 1, RESULT_BOOL, NULL, 0),
    ROW("isinf.default", UNARY, f_isinf, "a == a && a - a != 0", 1, RESULT_BOOL, NULL, 0),
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
    ROW("celu.default", "Tensor self, Scalar alpha=1", f_celu, "a > 0 ? a : p0 * expm1(a / p0)", 1,
        RESULT_SELF, NULL, 0),
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
    ROW("clip.default", "Tensor self, Scalar? min=None, Scalar? max=None", f_clamp_,
        "a < p0 ? p0 : a > p1 ? p1 : a", 1, RESULT_PROMOTED, NULL, 0),
    ROW("clamp_.default", "Tensor self, Scalar? min=None, Scalar? max=None", f_clamp_,
        "a < p0 ? p0 : a > p1 ? p1 : a", 1, RESULT_SELF, NULL, OP_IN_PLACE),
    ROW("leaky_relu_.default", "Tensor self, Scalar negative_slope=0.01", f_leaky_relu_,
        "a > 0 ? a : a * p0", 1, RESULT_SELF, NULL, OP_IN_PLACE),
};

OpFamily math_family(void)
{
    return (OpFamily){"math", table, (int)(sizeof table / sizeof *table)};
}

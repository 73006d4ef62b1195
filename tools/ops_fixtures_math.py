"""Argument sets of further functions of one operand for tools/ops_fixtures.py."""
from ops_draw import either, shape
from ops_fixtures_pointwise import clamp, low, need, slope, unary

exact = "neg neg_ square sign floor ceil round trunc frac relu6 abs_ hardshrink softshrink"
unit = lambda r: ([either(r, shape(r), "unit")], {})
EXACT = {
    **{n + ".default": unary() for n in exact.split()},
    "reciprocal.default": unary("positive"),
    "rsqrt.default": unary("positive"),
    "rsqrt_.default": unary("positive"),
    "reciprocal_.default": unary("positive"),
    "relu6_.default": unary(),
    "clamp_max_.default": need(unary(), low),
    "clip.default": clamp,
    "isnan.default": unary(),
    "isinf.default": unary(),
    "sqrt_.default": unary("positive"),
    "threshold.default": need(unary(), slope, low),
    "clamp_max.default": need(unary(), low),
    "clamp_.default": clamp,
    "leaky_relu_.default": unary("any", slope),
}
some = "exp exp_ exp2 expm1 sin cos tan atan sinh cosh erf erfc silu silu_ log_sigmoid sigmoid_ tanh_"
TRANSCENDENTAL = {
    **{n + ".default": unary() for n in some.split()},
    **{n + ".default": unary("positive") for n in ["log2", "log10", "log1p"]},
    **{n + ".default": unit for n in ["asin", "acos", "atanh"]},
    "asinh.default": unary(),
    "celu.default": unary("any", slope),
}

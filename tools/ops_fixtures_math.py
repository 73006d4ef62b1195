"""Argument sets of further functions of one operand for tools/ops_fixtures.py."""
from ops_fixtures_pointwise import clamp, low, need, slope, unary

exact = "neg neg_ square sign floor ceil round trunc relu6 abs_ hardshrink softshrink"
EXACT = {
    **{n + ".default": unary() for n in exact.split()},
    "reciprocal.default": unary("positive"),
    "rsqrt.default": unary("positive"),
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
    "celu.default": unary("any", slope),
}

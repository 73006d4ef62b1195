"""Argument sets of further functions of one operand for tests/ops/ops_fixtures.py."""
from ops_draw import either, shape
from ops_fixtures_pointwise import clamp, low, need, slope, unary

exact = "neg neg_ square sign floor ceil round trunc frac relu6 abs_ hardshrink softshrink"
unit = lambda r: ([either(r, shape(r), "unit")], {})



def replaced(r):
    given = {n: round(r.uniform(-9, 9), 3) for n in ["nan", "posinf", "neginf"] if r.random() < 0.3}
    return unary("special")(r)[0], given


def logit(r):
    return unit(r)[0] + r.choice([[], [None], [0.001], [0.2]]), {}


EXACT = {
    **{n + ".default": unary() for n in exact.split()},
    "reciprocal.default": unary("positive"),
    "rsqrt.default": unary("positive"),
    "rsqrt_.default": unary("positive"),
    "reciprocal_.default": unary("positive"),
    "relu6_.default": unary(),
    "clamp_max_.default": need(unary(), low),
    "clip.default": clamp,
    "isnan.default": unary("special"),
    "isposinf.default": unary("special"),
    "isneginf.default": unary("special"),
    "signbit.default": unary(),
    "nan_to_num.default": replaced,
    "nan_to_num_.default": replaced,
    "round.decimals": lambda r: (unary()(r)[0], {"decimals": r.randint(-2, 3)}),
    "deg2rad.default": unary(),
    "rad2deg.default": unary(),
    "square_.default": unary(),
    "floor_.default": unary(),
    "sqrt_.default": unary("positive"),
    "threshold.default": need(unary(), slope, low),
    "clamp_max.default": need(unary(), low),
    "clamp_.default": clamp,
    "leaky_relu_.default": unary("any", slope),
}
some = "exp exp_ exp2 expm1 sin cos tan atan sinh cosh erf erfc silu silu_ log_sigmoid sigmoid_ tanh_"
some += " sinc sin_ cos_"
TRANSCENDENTAL = {
    **{n + ".default": unary() for n in some.split()},
    **{n + ".default": unary("positive") for n in ["log2", "log10", "log1p", "log_", "lgamma"]},
    **{n + ".default": unit for n in ["asin", "acos", "atanh", "erfinv", "special_entr"]},
    "logit.default": logit,
    "asinh.default": unary(),
    "acosh.default": unary("positive"),
    "celu.default": unary("any", slope),
}

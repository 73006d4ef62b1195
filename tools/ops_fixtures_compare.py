"""Argument sets of arithmetic, comparisons and selection for tools/ops_fixtures.py."""
from ops_draw import broadcast, either, number, shape
from ops_fixtures_pointwise import binary, masked, need, unary


def ternary(first="any", last="any", **scalars):
    def make(r):
        a = shape(r)
        kwargs = {k: number(r) for k in scalars if r.random() < 0.5}
        return [either(r, s, d) for s, d in
                zip([a, broadcast(r, a), broadcast(r, a)], [first, "any", last])], kwargs

    return make


def lerp(r):
    a = shape(r)
    return [either(r, a), either(r, broadcast(r, a)), r.choice([0.25, 0.5, 0.875])], {}


def bounds(r):
    a = shape(r)
    low, high = [either(r, broadcast(r, a)) if r.random() < 0.7 else None for _ in range(2)]
    return [either(r, a), low if low or high else either(r, a), high], {}


def pairs(r):
    """Small integers, so that some elements are equal."""
    a = shape(r)
    return [either(r, a, "index 3"), either(r, broadcast(r, a), "index 3")], {}


def power(r):
    a = shape(r)
    return [either(r, a, "positive"), either(r, broadcast(r, a))], {}


def alpha(r):
    return [either(r, shape(r)), number(r)] + [number(r)] * r.randint(0, 1), {}


tensors = binary(scalar=False)
EXACT = {
    "mul.Scalar": need(unary(), number),
    "mul_.Tensor": binary(in_place=True),
    "add.Scalar": alpha,
    "sub.Scalar": alpha,
    "sub_.Tensor": binary(True, in_place=True),
    "rsub.Tensor": binary(True, scalar=False),
    "div.Scalar": need(unary(), lambda r: number(r, 1, 3)),
    "div_.Tensor": binary(draw="positive", in_place=True),
    "divide.Tensor": binary(draw="positive"),
    "maximum.default": tensors,
    "minimum.default": tensors,
    "max.other": tensors,
    "where.self": ternary("mask"),
    "addcmul.default": ternary(value=1),
    "addcdiv.default": ternary(last="positive", value=1),
    "clamp.Tensor": bounds,
    "lerp.Scalar": lerp,
    "masked_fill_.Scalar": masked,
    "fill_.Scalar": need(unary(), number),
    **{n + ".Tensor": pairs for n in "eq ne lt gt le ge".split()},
    **{n + ".Scalar": lambda r: ([either(r, shape(r), "index 3"), r.randint(0, 2)], {})
       for n in "ne lt gt le ge".split()},
    "logical_and.default": pairs,
    "logical_or.default": pairs,
    "bitwise_not.default": lambda r: ([either(r, shape(r), "mask")], {}),
    "logical_not.default": lambda r: ([either(r, shape(r), "index 2")], {}),
}
TRANSCENDENTAL = {
    "pow.Tensor_Tensor": power,
    "pow.Scalar": lambda r: ([number(r, 1, 3), either(r, shape(r))], {}),
    "atan2.default": tensors,
}

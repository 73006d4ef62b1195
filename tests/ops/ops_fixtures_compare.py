"""Argument sets of arithmetic, comparisons and selection for tests/ops/ops_fixtures.py."""
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


def in_place(make):
    """The result has the shape of the first tensor."""

    def made(r):
        args, kwargs = make(r)
        own = args[0]["shape"]
        return [args[0]] + [either(r, broadcast(r, own), a.get("draw", "any")) if isinstance(a, dict) else a
                            for a in args[1:]], kwargs

    return made


def masked_tensor(r):
    a = shape(r)
    return [either(r, a), either(r, broadcast(r, a), "mask"), either(r, [])], {}


def lerp_tensor(r):
    a = shape(r)
    return [either(r, a), either(r, broadcast(r, a)), either(r, broadcast(r, a), "unit")], {}


def whole(r):
    a = shape(r)
    draw = r.choice(["index 9", "index 9", "mask"])
    return [either(r, a, draw), either(r, broadcast(r, a), draw)], {}


def shift_by(r):
    a = shape(r)
    return [either(r, a, "index 99"), either(r, broadcast(r, a), "index 70")], {}


whole_scalar = lambda r: ([either(r, shape(r), "index 9"), r.randint(0, 5)], {})
def rounded(r):
    args, kwargs = binary(draw="positive")(r)
    return args, {"rounding_mode": r.choice(["floor", "trunc"])}


def steps(r):
    a = shape(r)
    return [either(r, a, r.choice(["any", "index 2"])), either(r, broadcast(r, a), "index 3")], {}


divisor = lambda r: r.choice([-2.5, 1.5, 2, 3])
tensors = binary(scalar=False)
positive = binary(draw="positive", scalar=False)
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
    "masked_fill.Tensor": masked_tensor,
    "lerp.Tensor": lerp_tensor,
    "lerp_.Scalar": in_place(lerp),
    "addcmul_.default": in_place(ternary(value=1)),
    "addcdiv_.default": in_place(ternary(last="positive", value=1)),
    "zero_.default": unary(),
    "logical_xor.default": pairs,
    "remainder.Tensor": positive,
    "remainder.Scalar": need(unary(), divisor),
    "fmod.Tensor": positive,
    "fmod.Scalar": need(unary(), divisor),
    "fmax.default": tensors,
    "fmin.default": tensors,
    "copysign.Tensor": tensors,
    "copysign.Scalar": need(unary(), number),
    "heaviside.default": lambda r: ([dict(t, dtype="float64") for t in steps(r)[0]], {}),
    "div.Tensor_mode": rounded,
    "floor_divide.default": positive,
    "floor_divide.Scalar": need(unary(), divisor),
    **{n + ".Tensor": whole for n in "bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__".split()},
    **{n + ".Scalar": whole_scalar
       for n in "bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__ __lshift__ __rshift__".split()},
    **{n + ".Tensor": shift_by
       for n in "bitwise_left_shift bitwise_right_shift __lshift__ __rshift__".split()},
    "bitwise_left_shift.Tensor_Scalar": whole_scalar,
    "bitwise_right_shift.Tensor_Scalar": whole_scalar,
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
    "hypot.default": tensors,
    "logaddexp.default": tensors,
}

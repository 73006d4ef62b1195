"""Argument sets of pointwise operators for tests/ops/ops_fixtures.py."""
from ops_draw import broadcast, either, number, shape, spec


def unary(draw="any", *args):
    return lambda r: ([either(r, shape(r), draw)] + [a(r) for a in args[: r.randint(0, len(args))]], {})


def binary(alpha=False, draw="any", scalar=True, in_place=False):
    def make(r):
        a = shape(r)
        b = broadcast(r, a)
        if not in_place and r.random() < 0.5:
            a, b = b, a
        other = number(r, 1, 4) if scalar and r.random() < 0.25 else either(r, b, draw)
        return [either(r, a), other], ({"alpha": number(r)} if alpha and r.random() < 0.5 else {})

    return make


def clamp(r):
    a, b = sorted([round(r.uniform(-2, 2), 3), round(r.uniform(-2, 2), 3)])
    return [spec(r, shape(r))], r.choice([{"min": a}, {"max": b}, {"min": a, "max": b}])


def need(make, *more):
    return lambda r: ([make(r)[0][0]] + [m(r) for m in more], {})


def masked(r):
    a = shape(r)
    return [spec(r, a), spec(r, broadcast(r, a), "mask"), number(r)], {}


slope = lambda r: round(r.uniform(0.01, 2), 3)
low = lambda r: round(r.uniform(-2, -0.1), 3)
EXACT = {
    "add.Tensor": binary(True),
    "add_.Tensor": binary(True, in_place=True),
    "sub.Tensor": binary(True),
    "rsub.Scalar": lambda r: ([spec(r, shape(r)), number(r)] + [number(r)] * r.randint(0, 1), {}),
    "mul.Tensor": binary(),
    "multiply.Tensor": binary(),
    "div.Tensor": binary(draw="positive"),
    "relu.default": unary(),
    "relu_.default": unary(),
    "abs.default": unary(),
    "sqrt.default": unary("positive"),
    "clamp.default": clamp,
    "clamp_min.default": need(unary(), number),
    "leaky_relu.default": unary("any", slope),
    "hardtanh.default": unary("any", low, slope),
    "hardtanh_.default": unary("any", low, slope),
    "hardswish.default": unary(),
    "hardsigmoid.default": unary(),
    "hardswish_.default": unary(),
    "hardsigmoid_.default": unary(),
    "clamp_min_.default": need(unary(), number),
    "min.other": binary(scalar=False),
    "eq.Scalar": need(unary(), number),
    "masked_fill.Scalar": masked,
    "dropout.default": need(unary(), lambda r: 0.5, lambda r: False),
    "copy_.default": binary(scalar=False, in_place=True),
}
TRANSCENDENTAL = {
    "sigmoid.default": unary(),
    "tanh.default": unary(),
    "gelu.default": lambda r: (unary()(r)[0], r.choice([{}, {"approximate": "tanh"}])),
    "log.default": unary("positive"),
    "mish.default": unary(),
    "mish_.default": unary(),
    "elu_.default": unary("any", slope, slope, slope),
    "pow_.Scalar": need(unary("positive"), number),
    "elu.default": unary("any", slope, slope, slope),
    "selu.default": unary(),
    "softplus.default": unary("any", slope, slope),
    "pow.Tensor_Scalar": need(unary("positive"), number),
}

"""Writes tests/fixtures/ops/*.json: for each operator 50 argument sets and torch's double results.

Runs where torch is: python3 tools/ops_fixtures.py. Inputs are not stored: the tests draw them again
from a seed by the same counter-based generator. Of a result at most 12 elements are stored.
"""
import json
import random

import torch

MASK = (1 << 64) - 1


def drawn(seed, n):
    out = []
    for i in range(n):
        z = (seed * 0x9E3779B97F4A7C15 + (i + 1) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        out.append((z >> 40) * 2.0**-22 - 2)
    return out


def tensor(spec):
    n = 1
    for s in spec["shape"]:
        n *= s
    x = torch.tensor(drawn(spec["seed"], n), dtype=torch.float64)
    if spec["draw"] == "positive":
        x = x.abs() + 0.125
    if spec["draw"] == "mask":
        x = x > 0
    return x.reshape(spec["shape"])


def shape(r, rank=None):
    return [r.choice([1, 2, 3, 5, 7]) for _ in range(r.randint(0, 4) if rank is None else rank)]


def broadcast(r, s):
    """A shape that broadcasts with s."""
    cut = r.randint(0, len(s))
    return [1 if r.random() < 0.3 else n for n in s[cut:]]


def spec(r, s, draw="any"):
    return {"shape": s, "seed": r.randint(1, 1 << 30), "draw": draw}


def number(r, low=-3, high=3):
    return r.choice([r.randint(low, high), round(r.uniform(low, high), 3)])


def unary(draw="any", *args):
    return lambda r: ([spec(r, shape(r), draw)] + [a(r) for a in args[: r.randint(0, len(args))]], {})


def binary(alpha=False, draw="any", scalar=True, in_place=False):
    def make(r):
        a = shape(r)
        b = broadcast(r, a)
        if not in_place and r.random() < 0.5:
            a, b = b, a
        other = number(r, 1, 4) if scalar and r.random() < 0.25 else spec(r, b, draw)
        return [spec(r, a), other], ({"alpha": number(r)} if alpha and r.random() < 0.5 else {})

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
POINTWISE = {
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
    "elu.default": unary("any", slope, slope, slope),
    "selu.default": unary(),
    "softplus.default": unary("any", slope, slope),
    "pow.Tensor_Scalar": need(unary("positive"), number),
}


def case(name, make, seed):
    args, kwargs = make(random.Random(seed))
    packet, overload = name.split(".")
    value = lambda a: tensor(a) if isinstance(a, dict) else a
    f = getattr(getattr(torch.ops.aten, packet), overload)
    y = f(*map(value, args), **{k: value(v) for k, v in kwargs.items()})
    flat = y.reshape(-1).to(torch.float64).tolist()
    at = sorted(random.Random(seed).sample(range(len(flat)), min(12, len(flat))))
    return {"args": args, "kwargs": kwargs, "shape": list(y.shape),
            "dtype": str(y.dtype).split(".")[1], "at": at, "want": [flat[i] for i in at]}


def write(path, table, transcendental):
    out = {}
    for name, make in sorted({**table, **transcendental}.items()):
        cases = [case(name, make, f"{name} {i}") for i in range(50)]
        out["aten." + name] = {"transcendental": name in transcendental, "cases": cases}
    with open(path, "w") as f:
        json.dump(out, f, separators=(",", ":"), sort_keys=True)
        f.write("\n")


if __name__ == "__main__":
    write("tests/fixtures/ops/pointwise.json", POINTWISE, TRANSCENDENTAL)

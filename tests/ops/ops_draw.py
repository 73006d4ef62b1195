"""What the families of tests/ops/ops_fixtures.py share: tensors drawn from seeds, random shapes and numbers.

A generator takes a random.Random and returns (args, kwargs) of a call. A tensor among them is the
result of spec(); tests/unit/ops/op_fixture.h draws its elements again and describes the form.
"""
import math

import torch

MASK = (1 << 64) - 1
DTYPES = {n: getattr(torch, n) for n in "float32 float16 bfloat16 float64 int32 int64 bool int8 uint8 int16 "
          "float8_e4m3fn float8_e5m2".split()}


def bits(seed, i):
    z = (seed * 0x9E3779B97F4A7C15 + (i + 1) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return (z ^ z >> 31) >> 40


def contiguous(shape):
    stride, step = [], 1
    for n in reversed(shape):
        stride.insert(0, step)
        step *= max(n, 1)
    return stride


def tensor(spec):
    shape, draw = spec["shape"], spec.get("draw", "any")
    stride, offset = spec.get("stride", contiguous(shape)), spec.get("offset", 0)
    extent = 1 if 0 in shape else offset + 1 + sum((n - 1) * s for n, s in zip(shape, stride))
    x = raw = [bits(spec["seed"], i) for i in range(extent)]
    if draw.startswith("index"):
        x = torch.tensor([b % int(draw[6:]) for b in x])
    elif draw.startswith("steps"):
        x = torch.arange(extent) * int(draw[6:])
    else:
        x = torch.tensor([b * 2.0**-22 - 2 for b in x], dtype=torch.float64)
    if draw == "special":
        of = [math.nan, math.inf, -math.inf, 0]
        x = torch.tensor([of[b % 8] if b % 8 < 4 else b * 2.0**-22 - 2 for b in raw], dtype=torch.float64)
    if draw == "positive":
        x = x.abs() + 0.125
    if draw == "unit":
        x = (x + 2) / 4
    if draw == "mask":
        x = x > 0
    if "dtype" in spec:
        x = x.to(DTYPES[spec["dtype"]])
    return x.as_strided(shape, stride, offset) if "stride" in spec else x.resize_(shape)


def value(a):
    """The argument that a value of a case stands for."""
    if isinstance(a, list):
        return [value(v) for v in a]
    if not isinstance(a, dict):
        return a
    if "shape" in a:
        return tensor(a)
    return float(a["number"]) if "number" in a else DTYPES[a["dtype"]]


def spec(r, s, draw="any", **more):
    out = {"shape": list(s), "seed": r.randint(1, 999), **more}
    return out if draw == "any" else {**out, "draw": draw}


def strided(r, s, draw="any", expand=False):
    """A tensor whose dimensions lie in memory in another order, with gaps, at an offset."""
    order = list(range(len(s)))
    r.shuffle(order)
    stride, step = [0] * len(s), r.choice([1, 1, 2])
    for d in order:
        stride[d] = step
        step *= max(s[d], 1) + r.choice([0, 0, 1])
    if expand and s and r.random() < 0.3:
        stride[r.randrange(len(s))] = 0
    offset = {"offset": 3} if r.random() < 0.5 else {}
    return spec(r, s, draw, stride=stride, **offset)


def either(r, s, draw="any", expand=False):
    """Contiguous, or strided in half of the cases."""
    return strided(r, s, draw, expand) if r.random() < 0.5 else spec(r, s, draw)


def shape(r, rank=None, low=0, high=4):
    return [r.choice([1, 2, 3, 5, 7]) for _ in range(r.randint(low, high) if rank is None else rank)]


def emptied(r, s):
    """The shape, now and then with a dimension of size 0."""
    if not s or r.random() > 0.05:
        return s
    s = list(s)
    s[r.randrange(len(s))] = 0
    return s


def broadcast(r, s):
    """A shape that broadcasts with s."""
    cut = r.randint(0, len(s))
    return [1 if r.random() < 0.3 else n for n in s[cut:]]


def dim(r, rank):
    """A dimension, negative in half of the cases."""
    d = r.randrange(max(rank, 1))
    return d if r.random() < 0.5 else d - max(rank, 1)


def number(r, low=-3, high=3):
    return r.choice([r.randint(low, high), round(r.uniform(low, high), 3)])

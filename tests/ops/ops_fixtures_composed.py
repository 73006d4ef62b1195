"""Argument sets of operators that ATen composes of views, products and element functions."""
from ops_draw import broadcast, dim, either, number, shape, spec
from ops_fixtures_pointwise import unary


def glu(r):
    s = shape(r, low=1)
    d = dim(r, len(s))
    s[d] = r.choice([2, 4, 6])
    return [either(r, s)] + ([d] if d not in (-1, len(s) - 1) or r.random() < 0.5 else []), {}


def prelu(r):
    s = shape(r, low=1)
    n = s[1] if len(s) > 1 and r.random() < 0.7 else 1
    return [either(r, s), either(r, [n])], {}


def image(r, channels, h, w):
    lead = [r.choice([1, 2, 3]) for _ in range(r.randint(0, 2))]
    return either(r, lead + [channels, h, w])


def chosen(first, second):
    def make(r):
        a = shape(r)
        made = [either(r, broadcast(r, a)) if one else number(r) for one in (first, second)]
        return [either(r, a, "mask")] + made, {}

    return make


def size(r):
    return r.choice([1, 2, 3, 5])


def pixel_shuffle(r):
    f = r.randint(1, 3)
    return [image(r, size(r) * f * f, size(r), size(r)), f], {}


def pixel_unshuffle(r):
    f = r.randint(1, 3)
    return [image(r, size(r), size(r) * f, size(r) * f), f], {}


def channel_shuffle(r):
    groups = size(r)
    rest = [size(r) for _ in range(r.randint(1, 3))]
    return [either(r, [size(r), groups * size(r)] + rest), groups], {}


def outer(r):
    return [either(r, [size(r)]), either(r, [r.choice([1, 7, 40])])], {}


def weight_norm(r):
    s = shape(r, low=2)
    d = r.choice([0, 0, len(s) - 1])
    return [either(r, s), either(r, [n if k == d else 1 for k, n in enumerate(s)]), d], {}


def kron(r):
    return [spec(r, shape(r, low=1, high=3)), spec(r, shape(r, low=1, high=2))], {}


def dist(r):
    s = shape(r)
    return [either(r, s), either(r, broadcast(r, s))] + [r.choice([1, 2, 0])] * r.randint(0, 1), {}


def diff(r):
    s = shape(r, low=1)
    d = dim(r, len(s))
    n = r.choice([1, 1, 1, 2])
    s[d] = n + r.choice([1, 2, 4])
    rest = [n] if n > 1 or r.random() < 0.3 else []
    return [either(r, s)] + rest, {"dim": d} if d not in (-1, len(s) - 1) or r.random() < 0.5 else {}


EXACT = {
    "where.ScalarOther": chosen(True, False),
    "where.ScalarSelf": chosen(False, True),
    "where.Scalar": lambda r: ([either(r, shape(r), "mask"), r.choice([-2.5, 3]), r.choice([0.125, 1])], {}),
    "isinf.default": unary("special"),
    "isfinite.default": unary("special"),
    "trace.default": lambda r: ([either(r, [size(r), size(r)], "positive")], {}),
    "kron.default": kron,
    "dist.default": dist,
    "diff.default": diff,
    "_weight_norm.default": weight_norm,
    "prelu.default": prelu,
    "pixel_shuffle.default": pixel_shuffle,
    "pixel_unshuffle.default": pixel_unshuffle,
    "channel_shuffle.default": channel_shuffle,
    "outer.default": outer,
}
TRANSCENDENTAL = {"glu.default": glu}

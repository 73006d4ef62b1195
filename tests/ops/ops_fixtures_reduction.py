"""Argument sets of reductions for tests/ops/ops_fixtures.py."""
from ops_draw import dim, either, shape
from ops_fixtures_view import rank


def some(r, draw="any", low=0):
    """Now and then a row that several blocks share."""
    if r.random() < 0.1:
        return either(r, r.choice([[1027], [2, 1031], [1033, 3], [16411]]), draw)
    return either(r, shape(r, low=low), draw)


def whole(draw="any"):
    return lambda r: ([some(r, draw)], {})


def dims(r, x):
    chosen = [d for d in range(rank(x)) if r.random() < 0.5]
    return [d if r.random() < 0.5 else d - rank(x) for d in chosen]


def over(draw="any", keep=True):
    """Some dimensions; an empty list is all of them."""

    def make(r):
        x = some(r, draw)
        return [x, dims(r, x)] + [r.random() < 0.5] * r.randint(0, keep), {}

    return make


def one(draw="any"):
    def make(r):
        x = some(r, draw, 1)
        return [x, dim(r, rank(x))] + [r.random() < 0.5] * r.randint(0, 1), {}

    return make


def maybe(r):
    x = some(r, low=1)
    return r.choice([([x], {}), ([x, dim(r, rank(x)), r.random() < 0.5], {}), ([x, None, True], {})])


def norm(orders):
    def make(r):
        x = some(r, low=1)
        p = r.choice(orders)
        p = {"number": str(p)} if abs(p) == float("inf") else p
        return [x, p, dims(r, x) or None, r.random() < 0.5][: r.randint(1, 4)], {}

    return make


def old_norm(r):
    x = some(r)
    return [x, r.choice([None, 1, 2]), dims(r, x), r.random() < 0.5], {}


def correction(r):
    x = either(r, [r.randint(2, 5) for _ in range(r.randint(1, 3))])
    kwargs = {"correction": r.choice([0, 1]), "keepdim": r.random() < 0.5}
    return [x, [r.randrange(rank(x))]], kwargs if r.random() < 0.7 else {}


def spread(dims):
    def make(r):
        x = either(r, [r.randint(2, 5) for _ in range(r.randint(1, 3))])
        return [x] + [[dim(r, rank(x))]] * dims + [r.random() < 0.5] * r.randint(0, 1), {}

    return make


def moments(r):
    """Also of a row that several blocks share, and of several dimensions."""
    small = [r.randint(2, 5) for _ in range(r.randint(1, 3))]
    x = some(r, "positive", 1) if r.random() < 0.3 else either(r, small)
    chosen = [d for d in range(rank(x)) if r.random() < 0.5]
    kwargs = {"correction": r.choice([0, 0.5, 1]), "keepdim": r.random() < 0.5}
    return [x, r.choice([chosen, chosen, None])], kwargs if r.random() < 0.7 else {}


def whole_numbers(r):
    return [some(r, "index 9")], {}


inf = float("inf")
EXACT = {
    "sum.default": lambda r: r.choice([whole("positive"), whole_numbers])(r),
    "sum.dim_IntList": over("positive"),
    "mean.default": whole("positive"),
    "mean.dim": over("positive"),
    "prod.default": lambda r: ([either(r, shape(r), "positive")], {}),
    "prod.dim_int": one("positive"),
    "max.default": whole(),
    "min.default": whole(),
    "amax.default": over(),
    "amin.default": over(),
    "max.dim": one(),
    "min.dim": one(),
    "argmax.default": maybe,
    "argmin.default": maybe,
    "linalg_vector_norm.default": norm([1, 2, 2, 0, inf, -inf]),
    "norm.ScalarOpt_dim": old_norm,
    "norm.Scalar": lambda r: ([some(r), r.choice([1, 2])], {}),
    "var.correction": correction,
    "std.correction": correction,
    "var.default": spread(0),
    "std.default": spread(0),
    "var.dim": spread(1),
    "std.dim": spread(1),
    "var_mean.correction": moments,
    "std_mean.correction": moments,
    "var_mean.default": spread(0),
    "std_mean.default": spread(0),
    "var_mean.dim": spread(1),
    "std_mean.dim": spread(1),
    "any.default": whole("mask"),
    "all.default": whole("mask"),
    "any.dim": one("mask"),
    "all.dim": one("mask"),
}
TRANSCENDENTAL = {}

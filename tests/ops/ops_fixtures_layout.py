"""Argument sets of operators that write memory without arithmetic, for tests/ops/ops_fixtures.py."""
from ops_draw import dim, either, number, shape
from ops_fixtures_view import rank, some, to


def cat(r):
    s = shape(r, low=1)
    d = dim(r, len(s))
    parts = []
    for _ in range(r.randint(1, 4)):
        t = list(s)
        t[d] = r.randint(1, 4)
        parts.append(either(r, t, expand=True))
    if r.random() < 0.2:
        parts.append(either(r, [0]))
    if r.random() < 0.2:
        parts.append(either(r, parts[0]["shape"], "index 9"))
    return [parts, d], {}


def stack(r):
    s = shape(r, high=3)
    return [[either(r, s, expand=True) for _ in range(r.randint(1, 4))], dim(r, len(s) + 1)], {}


def triangle(r):
    x = some(r, low=2)
    return [x] + [r.randint(-4, 4)] * r.randint(0, 1), {}


def dtyped(make):
    """With a dtype in half of the cases; float64 unless given, so that values are exact."""

    def made(r):
        args = make(r)
        own = isinstance(args[0], dict) and r.random() < 0.5
        return args, {} if own else {"dtype": {"dtype": r.choice(["float64", "int64", "bool"])}}

    return made


def type_as(r):
    return [some(r, low=0), either(r, shape(r), r.choice(["any", "mask", "index 9"]))], {}


def counted(n):
    """The last n of start, end and step; a step of the right sign."""

    def make(r):
        whole = r.random() < 0.6
        step = r.choice([1, 2, 3, -1]) if whole else r.choice([0.5, 1.25, -0.75])
        start = r.randint(-4, 4) if whole else round(r.uniform(-4, 4), 2)
        end = start + step * r.randint(1, 30)
        own = {1: [abs(end) + 1], 2: sorted([start, end]), 3: [start, end, step]}[n]
        return own, {} if whole else {"dtype": {"dtype": "float64"}}

    return make


like = lambda r: [some(r, low=0)]
sized = lambda r: [shape(r)]
new = lambda r: [some(r, low=0), shape(r)]
value = lambda make: lambda r: make(r) + [number(r)]


def linspace(r):
    start, end = r.choice([-1, 0, -2.5, 3]), r.choice([1, 2.0, 7.25, -3])
    return [start, end, r.choice([0, 1, 2, 5, 33])], {"dtype": {"dtype": "float64"}}


EXACT = {
    "to.dtype": to(False),
    "type_as.default": type_as,
    "linspace.default": linspace,
    "arange.default": counted(1),
    "arange.start": counted(2),
    "arange.start_step": counted(3),
    "to.dtype_layout": to(True),
    "cat.default": cat,
    "concat.default": cat,
    "stack.default": stack,
    "triu.default": triangle,
    "tril.default": triangle,
    "zeros_like.default": dtyped(like),
    "ones_like.default": dtyped(like),
    "full_like.default": lambda r: ([some(r, low=0), number(r)], {}),
    "new_zeros.default": dtyped(new),
    "new_ones.default": dtyped(new),
    "new_full.default": lambda r: ([some(r, low=0), shape(r), number(r)], {}),
    "zeros.default": dtyped(sized),
    "ones.default": dtyped(sized),
    "full.default": lambda r: ([shape(r), number(r)], {"dtype": {"dtype": "float64"}}),
}
TRANSCENDENTAL = {}
REFUSED = {
    "randn.default": sized,
    "rand.default": sized,
    "randn_like.default": like,
    "rand_like.default": like,
}

"""Argument sets of operators that write memory without arithmetic, for tools/ops_fixtures.py."""
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


like = lambda r: [some(r, low=0)]
sized = lambda r: [shape(r)]
new = lambda r: [some(r, low=0), shape(r)]
value = lambda make: lambda r: make(r) + [number(r)]
EXACT = {
    "to.dtype": to(False),
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

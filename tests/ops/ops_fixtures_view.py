"""Argument sets of operators that rename memory, for tests/ops/ops_fixtures.py."""
from ops_draw import DTYPES, broadcast, dim, either, shape, spec, strided


def some(r, rank=None, low=1):
    return either(r, shape(r, rank, low), expand=True)


def plain(low=0):
    return lambda r: ([some(r, low=low)], {})


def rank(x):
    return len(x["shape"])


def factors(r, n):
    """A shape of n elements."""
    out = []
    while n > 1 and len(out) < 3:
        f = r.choice([d for d in range(1, n + 1) if n % d == 0])
        out.append(f)
        n //= f
    return out + [n] if n > 1 or r.random() < 0.3 else out


def count(s):
    n = 1
    for k in s:
        n *= k
    return n


def reshape(contiguous):
    def make(r):
        x = spec(r, shape(r)) if contiguous else some(r, low=0)
        new = factors(r, count(x["shape"]))
        if new and r.random() < 0.5:
            new[r.randrange(len(new))] = -1
        return [x, new], {}

    return make


def view_as(r):
    x = spec(r, shape(r))
    return [x, spec(r, factors(r, count(x["shape"])))], {}


def flatten(r):
    x = some(r, low=0)
    a, b = sorted([r.randrange(max(rank(x), 1)), r.randrange(max(rank(x), 1))])
    return r.choice([([x], {}), ([x, a], {}), ([x, a, b], {}), ([x, a], {"end_dim": b - max(rank(x), 1)})])


def unflatten(r):
    x = some(r)
    d = dim(r, rank(x))
    sizes = factors(r, x["shape"][d]) or [1]
    if r.random() < 0.5:
        sizes[r.randrange(len(sizes))] = -1
    return [x, d, sizes], {}


def two_dims(r):
    x = some(r)
    return [x, dim(r, rank(x)), dim(r, rank(x))], {}


def permute(r):
    x = some(r)
    order = list(range(rank(x)))
    r.shuffle(order)
    return [x, [d if r.random() < 0.5 else d - rank(x) for d in order]], {}


def one_dim(r):
    x = some(r)
    return [x, dim(r, rank(x))], {}


def dims(r):
    x = some(r)
    chosen = [d for d in range(rank(x)) if r.random() < 0.5]
    return [x, [d if r.random() < 0.5 else d - rank(x) for d in chosen]], {}


def unsqueeze(r):
    x = some(r, low=0)
    return [x, dim(r, rank(x) + 1)], {}


def select(r):
    x = some(r)
    d = dim(r, rank(x))
    n = x["shape"][d]
    return [x, d, r.randrange(-n, n)], {}


def slices(r):
    x = some(r)
    bound = lambda: r.choice([None, r.randint(-9, 9), r.randint(0, 4), 9223372036854775807])
    return [x, dim(r, rank(x)), bound(), bound(), r.randint(1, 3)][: r.randint(1, 5)], {}


def narrow(r):
    x = some(r)
    d = dim(r, rank(x))
    n = x["shape"][d]
    start = r.randint(0, n)
    length = r.randint(0, n - start)
    return [x, d, start - n if start < n and r.random() < 0.3 else start, length], {}


def unfold(r):
    x = some(r)
    d = dim(r, rank(x))
    return [x, d, r.randint(1, x["shape"][d]), r.randint(1, 3)], {}


def expand(r):
    s = shape(r, low=0, high=3)
    x = either(r, broadcast(r, s))
    own = len(s) - rank(x)
    return [x, [-1 if d >= own and r.random() < 0.3 else n for d, n in enumerate(s)]], {}


def expand_as(r):
    s = shape(r, low=0, high=3)
    return [either(r, broadcast(r, s)), spec(r, s)], {}


def diagonal(r):
    x = some(r, low=2)
    a, b = r.sample(range(rank(x)), 2)
    return r.choice([([x], {}), ([x, r.randint(-3, 3)], {}), ([x, r.randint(-3, 3), a, b - rank(x)], {})])


def to(layout):
    def make(r):
        x = some(r, low=0)
        d = {"dtype": r.choice(["float64", "float64", "int64", "bool", "int8", "float8_e4m3fn",
                                "float8_e5m2"])}
        kwargs = {"copy": True} if r.random() < 0.3 else {}
        if not layout:
            return [x, d], kwargs
        return [x], {**kwargs, "dtype": d} if r.random() < 0.7 else kwargs

    return make


def split(r):
    x = some(r)
    d = dim(r, rank(x))
    return r.choice([([x, r.randint(2, 5), d], {}), ([x, r.randint(2, 5)], {})])


def sections(r):
    x = some(r)
    return [x, r.randint(1, 5), dim(r, rank(x))], {}


def cuts(r):
    x = some(r)
    return [x, [r.randint(-3, 8) for _ in range(r.randint(1, 3))], dim(r, rank(x))], {}


def split_sizes(r):
    x = some(r)
    d = dim(r, rank(x))
    n, sizes = x["shape"][d], []
    while n:
        sizes.append(r.randint(0, n))
        n -= sizes[-1]
    return [x, sizes, d], {}


def broadcast_tensors(r):
    s = shape(r)
    return [[either(r, broadcast(r, s)) for _ in range(r.randint(1, 2))] + [either(r, s)]], {}


def asserted(r):
    x = spec(r, shape(r))
    return [x, None, None, {"dtype": "float64"}], {}


EXACT = {
    **{n + ".default": plain() for n in "alias detach clone lift_fresh_copy contiguous".split()},
    "detach_.default": lambda r: ([spec(r, shape(r))], {}),
    "view.default": reshape(True),
    "_unsafe_view.default": reshape(True),
    "reshape.default": reshape(False),
    "view_as.default": view_as,
    "flatten.using_ints": flatten,
    "unflatten.int": unflatten,
    "transpose.int": two_dims,
    "permute.default": permute,
    "movedim.int": two_dims,
    "numpy_T.default": lambda r: ([some(r, 2)], {}),
    "t.default": lambda r: ([some(r, r.randint(0, 2))], {}),
    "mT.default": plain(2),
    "squeeze.default": plain(),
    "squeeze.dim": one_dim,
    "squeeze.dims": dims,
    "unsqueeze.default": unsqueeze,
    "select.int": select,
    "slice.Tensor": slices,
    "narrow.default": narrow,
    "unfold.default": unfold,
    "expand.default": expand,
    "expand_as.default": expand_as,
    "diagonal.default": diagonal,
    "flip.default": dims,
    "tensor_split.sections": sections,
    "tensor_split.indices": cuts,
    "split.Tensor": split,
    "split_with_sizes.default": split_sizes,
    "chunk.default": split,
    "unbind.int": one_dim,
    "broadcast_tensors.default": broadcast_tensors,
    "_assert_tensor_metadata.default": asserted,
}
TRANSCENDENTAL = {}

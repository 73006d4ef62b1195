"""Argument sets of padding, rolling, repeating and selections."""
from ops_draw import broadcast, dim, either, emptied, shape
from ops_fixtures_view import rank


def constant_pad(r):
    x = either(r, emptied(r, shape(r, low=1)))
    sides = [r.choice([0, 1, 2, 0, -1]) for _ in range(2 * r.randint(1, rank(x)))]
    for i in range(0, len(sides), 2):
        if x["shape"][-1 - i // 2] < 3:
            sides[i] = sides[i + 1] = 1
    return [x, sides] + [r.choice([0, 0.5, -2])] * r.randint(0, 1), {}


def pad(r):
    mode = r.choice(["constant", "reflect", "replicate", "circular"])
    if mode == "constant":
        args, _ = constant_pad(r)
        return args[:2] + [mode] + args[2:], {}
    n = r.randint(1, 3)
    x = either(r, [r.choice([1, 2])] * 2 + [r.choice([3, 4, 7]) for _ in range(n)])
    return [x, [r.choice([0, 1, 2, 2]) for _ in range(2 * n)], mode], {}


def roll(r):
    x = either(r, emptied(r, shape(r)))
    if not rank(x) or r.random() < 0.3:
        return [x, [r.randint(-9, 9)]], {}
    n = r.randint(1, rank(x))
    return [x, [r.randint(-9, 9) for _ in range(n)], [dim(r, rank(x)) for _ in range(n)]], {}


def repeat(r):
    x = either(r, shape(r, high=3))
    n = rank(x) + r.randint(0, 2)
    return [x, [r.choice([0, 1, 1, 2, 2, 3, 3]) for _ in range(n)]], {}


def tile(r):
    x = either(r, shape(r, high=3))
    return [x, [r.choice([0, 1, 1, 2, 2, 3]) for _ in range(r.randint(1, rank(x) + 2))]], {}


def interleave(r):
    x = either(r, shape(r, low=1, high=3))
    args = [x, r.choice([1, 2, 3])]
    return args + ([dim(r, rank(x))] if r.random() < 0.8 else []), {}


def index(r):
    s = shape(r, low=1)
    n, common = r.randint(1, len(s)), shape(r, high=2)
    shapes = [common] + [broadcast(r, common) for _ in range(n - 1)]
    r.shuffle(shapes)
    return [either(r, s), [either(r, t, f"index {s[i]}") for i, t in enumerate(shapes)]], {}


def index_select(r):
    s = shape(r, low=1)
    d = dim(r, len(s))
    return [either(r, s), d, either(r, [r.choice([1, 3, 40])], f"index {s[d]}")], {}


def gather(r):
    s = shape(r, low=1)
    d = dim(r, len(s))
    own = [r.randint(1, n) for n in s]
    own[d] = r.choice([1, 3, 9])
    return [either(r, s), d, either(r, own, f"index {s[d]}")], {}


EXACT = {
    "pad.default": pad,
    "constant_pad_nd.default": constant_pad,
    "roll.default": roll,
    "repeat.default": repeat,
    "tile.default": tile,
    "repeat_interleave.self_int": interleave,
    "index.Tensor": index,
    "index_select.default": index_select,
    "gather.default": gather,
}
TRANSCENDENTAL = {}

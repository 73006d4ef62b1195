"""Argument sets of writes and sums at indexed places. No place is written twice with different elements."""
from ops_draw import dim, either, number, shape, spec, tensor


def base(r):
    s = shape(r, low=1)
    return s, dim(r, len(s))


def one_index(r, s, d):
    own = [r.randint(1, n) for n in s]
    own[d] = r.choice([1, 2, 5])
    return own, either(r, own, f"index {s[d]}")


def distinct(make, d):
    """An index that names no place twice along dimension d."""
    while True:
        found = make()
        x = tensor(found[1])
        if x.numel() == 0 or all((x.sort(d).values.diff(dim=d) != 0).flatten()):
            return found


def scatter(r):
    s, d = base(r)
    own, index = distinct(lambda: one_index(r, s, d), d)
    src = [n + r.choice([0, 0, 2]) for n in own]
    return [either(r, s), d, index, either(r, src)], {}


def scatter_value(r):
    s, d = base(r)
    return [either(r, s), d, one_index(r, s, d)[1], number(r)], {}


def scatter_add(r):
    s, d = base(r)
    own = [r.randint(1, n) for n in s]
    own[d] = r.choice([1, 3, 9])
    return [either(r, s), d, either(r, own, f"index {s[d]}"), either(r, own)], {}


def index_copy(r):
    s, d = base(r)
    own = list(s)

    def make():
        n = r.choice([1, 2, 5])
        return n, spec(r, [n], f"index {s[d]}")

    own[d], index = distinct(make, 0)
    return [either(r, s), d, index, either(r, own)], {}


def index_add(r):
    s, d = base(r)
    own = list(s)
    own[d] = r.choice([1, 3, 9])
    return [either(r, s), d, either(r, [own[d]], f"index {s[d]}"), either(r, own)], (
        {"alpha": number(r)} if r.random() < 0.5 else {})


def scatter_reduce(r):
    s, d = base(r)
    own = [r.randint(1, n) for n in s]
    own[d] = r.choice([1, 3, 9])
    return [spec(r, s, "any"), d, either(r, own, f"index {s[d]}"), spec(r, own, "any"),
            r.choice(["sum", "prod", "mean", "amax", "amin"])], {"include_self": r.random() < 0.5}


def index_reduce(r):
    s, d = base(r)
    own = list(s)
    own[d] = r.choice([1, 3, 9])
    return [spec(r, s, "any"), d, either(r, [own[d]], f"index {s[d]}"), spec(r, own, "any"),
            r.choice(["prod", "mean", "amax", "amin"])], {"include_self": r.random() < 0.5}


def one_hot(r):
    n = r.choice([1, 2, 7, 40])
    return [either(r, shape(r, high=3), f"index {n}"), n], {}


EXACT = {
    n + end: make
    for name, overload, make in [
        ("scatter", ".src", scatter),
        ("scatter", ".value", scatter_value),
        ("scatter_add", ".default", scatter_add),
        ("scatter_reduce", ".two", scatter_reduce),
        ("index_reduce", ".default", index_reduce),
        ("index_copy", ".default", index_copy),
        ("index_add", ".default", index_add),
    ]
    for n, end in [(name, overload), (name + "_", overload)]
}
EXACT["one_hot.default"] = one_hot
TRANSCENDENTAL = {}

"""Argument sets of sorting. No two elements of a row are equal, of which torch's order is not stable."""
from ops_draw import dim, either, shape


def row(r):
    s = shape(r, low=1)
    d = dim(r, len(s))
    s[d] = r.choice([1, 2, 7, 33, 100]) if r.random() < 0.95 else 2100
    if s[d] > 1000:
        s = [s[d] if k == d % len(s) else min(n, 2) for k, n in enumerate(s)]
    return s, d


def sort(r):
    s, d = row(r)
    return [either(r, s), d, r.random() < 0.5], {}


def stable(r):
    s, d = row(r)
    draw = r.choice(["any", "index 4"])
    return [either(r, s, draw)], {"stable": True, "dim": d, "descending": r.random() < 0.5}


def topk(r):
    s, d = row(r)
    return [either(r, s), r.randint(1, s[d]), d, r.random() < 0.6], {}


EXACT = {
    "sort.default": sort,
    "sort.stable": stable,
    "argsort.default": sort,
    "argsort.stable": stable,
    "topk.default": topk,
}
TRANSCENDENTAL = {}

"""Argument sets of k-th smallest elements."""
from ops_draw import dim, either, shape
from ops_fixtures_view import rank


def row(r):
    s = r.choice([[70], [3, 65], [40, 33], [1031]]) if r.random() < 0.3 else shape(r, low=1)
    return either(r, s)


def median(r):
    x = row(r)
    return [x, dim(r, rank(x))] + [True] * r.randint(0, 1), {}


def kthvalue(r):
    x = row(r)
    d = dim(r, rank(x))
    return [x, r.randint(1, x["shape"][d]), d] + [True] * r.randint(0, 1), {}


EXACT = {"median.dim": median, "kthvalue.default": kthvalue}
TRANSCENDENTAL = {}

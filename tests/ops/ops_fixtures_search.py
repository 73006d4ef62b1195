"""Argument sets of searches in boundaries. Those in no order are halved in the same way."""
from ops_draw import either, shape


def bounds(r, lead):
    return either(r, lead + [r.choice([1, 2, 5, 16])], r.choice(["any", "positive", "index 9"]))


def flags(r):
    return {k: True for k in ["right", "out_int32"] if r.random() < 0.4}


def values(r, of, s):
    return either(r, s, "index 9" if of.get("draw") == "index 9" else "any")


def bucketize(r):
    b = bounds(r, [])
    return [values(r, b, shape(r)), b], flags(r)


def searchsorted(r):
    s = shape(r, low=1)
    b = bounds(r, r.choice([[], s[:-1]]))
    return [b, values(r, b, s)], {**flags(r), **({"side": "right"} if r.random() < 0.2 else {})}


EXACT = {"bucketize.Tensor": bucketize, "searchsorted.Tensor": searchsorted}
TRANSCENDENTAL = {}

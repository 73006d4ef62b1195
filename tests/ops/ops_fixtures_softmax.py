"""Argument sets of softmax, its logarithm and logsumexp."""
from ops_draw import dim, either, emptied, shape
from ops_fixtures_view import rank


def input_of(r):
    """Now and then a row of several warps, or one that shared memory does not hold."""
    if r.random() < 0.15:
        return either(r, r.choice([[1031], [2, 1537], [300, 2], [12007], [2, 70, 5]]))
    return either(r, emptied(r, shape(r)))


def softmax(r):
    x = input_of(r)
    kwargs = {"dtype": {"dtype": "float64"}} if r.random() < 0.2 else {}
    return [x, dim(r, rank(x))], kwargs, 20


def own(r):
    x = input_of(r)
    return [x, dim(r, rank(x)), False], {}, 20


def logsumexp(r):
    x = either(r, shape(r, low=1)) if r.random() < 0.9 else either(r, [2, 16411])
    n = rank(x)
    dims = [d if r.random() < 0.5 else d - n for d in range(n) if r.random() < 0.6] or [n - 1]
    return [x, dims] + [r.random() < 0.5] * r.randint(0, 1), {}, 20


EXACT = {}
TRANSCENDENTAL = {
    "softmax.int": softmax,
    "_softmax.default": own,
    "log_softmax.int": softmax,
    "_log_softmax.default": own,
    "logsumexp.default": logsumexp,
}

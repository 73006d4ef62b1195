"""Argument sets of scans. The third value of each is the number of terms of an element."""
from ops_draw import dim, either, emptied, shape, spec
from ops_fixtures_view import rank


def scan(draw, dtype=True):
    """Now and then a row of several tiles, or one that several blocks share."""

    def make(r):
        if r.random() < 0.15:
            x = either(r, r.choice([[1031], [2, 1537], [300, 2], [9001]]), draw)
        else:
            x = either(r, emptied(r, shape(r)), draw)
        if dtype and r.random() < 0.15:
            x = spec(r, shape(r, low=1), "index 5")
        kwargs = {"dtype": {"dtype": "float64"}} if dtype and r.random() < 0.2 else {}
        return [x, dim(r, rank(x))], kwargs, 20 + max(x["shape"] or [1])

    return make


def product(r):
    """Rows of a few factors, so that products stay finite."""
    x = either(r, shape(r))
    return [x, dim(r, rank(x))], {}, 20


EXACT = {"cumsum.default": scan("any"), "cumprod.default": product}
TRANSCENDENTAL = {"logcumsumexp.default": scan("any", False)}

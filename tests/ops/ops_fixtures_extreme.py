"""Argument sets of running extremes. Small integers and NaN among them, so that equal ones meet."""
from ops_draw import dim, either, shape
from ops_fixtures_view import rank


def extreme(r):
    s = r.choice([[70], [3, 65], [40, 33], [33, 40]]) if r.random() < 0.3 else shape(r, low=1)
    x = either(r, s, r.choice(["any", "any", "special", "index 3"]))
    return [x, dim(r, rank(x))], {}


EXACT = {"cummax.default": extreme, "cummin.default": extreme}
TRANSCENDENTAL = {}

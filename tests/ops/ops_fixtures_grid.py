"""Argument sets of images that are sampled. The third value of each is the number of terms of an element."""
from ops_draw import either


def grid_sampler(r):
    n, c = r.choice([1, 2, 3]), r.choice([1, 2, 5])
    h, w, oh, ow = [r.choice([1, 2, 3, 5, 8]) for _ in range(4)]
    modes = [r.randint(0, 1), r.randint(0, 1), r.random() < 0.5]
    return [either(r, [n, c, h, w]), either(r, [n, oh, ow, 2])] + modes, {}, 32


EXACT = {"grid_sampler.default": grid_sampler}
TRANSCENDENTAL = {}

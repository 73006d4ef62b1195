"""Argument sets of images of another size. The third value of each is the number of terms of an element."""
import math

from ops_draw import either


def resize(dims, taps):
    def make(r):
        size = [r.choice([1, 2, 3, 5, 8, 9]) for _ in range(dims)]
        out = [r.choice([1, 2, 3, 4, 7, 10, 16]) for _ in range(dims)]
        scales = []
        if r.random() < 0.4:
            scales = [r.choice([2.0, 1.5, 0.75, 3.0]) for _ in range(dims)]
            out = [max(1, math.floor(n * f)) for n, f in zip(size, scales)]
        x = either(r, [r.choice([1, 2]), r.choice([1, 3])] + size)
        corners = [r.random() < 0.5] if taps > 1 else []
        return [x, out] + corners + scales, {}, 4 * taps**dims

    return make


EXACT = {
    "upsample_nearest1d.default": resize(1, 1),
    "upsample_nearest2d.default": resize(2, 1),
    "upsample_nearest3d.default": resize(3, 1),
    "upsample_linear1d.default": resize(1, 2),
    "upsample_bilinear2d.default": resize(2, 2),
    "upsample_trilinear3d.default": resize(3, 2),
    "upsample_bicubic2d.default": resize(2, 4),
}
TRANSCENDENTAL = {}

"""Argument sets of columns of images. The third value of each is the number of terms of an element."""
from ops_draw import either


def windows(r):
    sizes, kernel, dilation, padding, stride, out = [], [], [], [], [], []
    for _ in range(2):
        n, k, p, s = [r.randint(*b) for b in [(1, 9), (1, 4), (0, 3), (1, 4)]]
        d = r.choice([1, 1, 2])
        n = max(n, d * (k - 1) + 1 - 2 * p)
        for values, v in zip([sizes, kernel, dilation, padding, stride], [n, k, d, p, s]):
            values.append(v)
        out.append((n + 2 * p - d * (k - 1) - 1) // s + 1)
    return sizes, kernel, dilation, padding, stride, out


def unfold(r):
    sizes, kernel, dilation, padding, stride, _ = windows(r)
    lead = [r.choice([1, 2, 3])] if r.random() < 0.7 else []
    return [either(r, lead + [r.choice([1, 2, 5])] + sizes), kernel, dilation, padding, stride], {}


def fold(r):
    sizes, kernel, dilation, padding, stride, out = windows(r)
    lead = [r.choice([1, 2, 3])] if r.random() < 0.7 else []
    x = either(r, lead + [r.choice([1, 2, 5]) * kernel[0] * kernel[1], out[0] * out[1]])
    return [x, sizes, kernel, dilation, padding, stride], {}, 16


EXACT = {"im2col.default": unfold, "col2im.default": fold}
TRANSCENDENTAL = {}

"""Generators of pools. Where elements are summed, the third value is the number of terms."""
import math

from ops_draw import either

TOP = {1: 20, 2: 8, 3: 5}


def plane(r, sizes):
    """One or two dimensions before those of the windows."""
    return ([r.choice([1, 2, 3])] if r.random() < 0.7 else []) + [r.choice([1, 2, 5])] + sizes


def draw(r, dims, dilated):
    kernel = [r.randint(1, 4 if dims < 3 else 3) for _ in range(dims)]
    if r.random() < 0.5:
        kernel = kernel[:1] * dims
    stride = [] if r.random() < 0.3 else [r.randint(1, 4) for _ in range(dims)]
    padding = [r.randint(0, k // 2) for k in kernel] if r.random() < 0.6 else [0] * dims
    dilation = [r.randint(1, 3) for _ in range(dims)] if dilated and r.random() < 0.4 else [1] * dims
    x = []
    for k, p, d in zip(kernel, padding, dilation):
        least = max(1, d * (k - 1) + 1 - 2 * p) if dilated else k
        x.append(r.randint(least, max(least, TOP[dims])))
    one = lambda v: v[:1] if v and len(set(v)) == 1 and r.random() < 0.5 else v
    return x, one(kernel), one(stride), one(padding), one(dilation)


def largest(dims):
    def generate(r):
        x, kernel, stride, padding, dilation = draw(r, dims, True)
        more = [dilation, r.random() < 0.5][: r.choice([0, 2, 2])]
        if not more:  # without dilation, every kernel fits
            padding = [0]
            x = [max(n, k) for n, k in zip(x, kernel * dims)]
        return [either(r, plane(r, x)), kernel, stride, padding] + more, {}

    return generate


def average(dims):
    def generate(r):
        x, kernel, stride, padding, _ = draw(r, dims, False)
        args = [either(r, plane(r, x)), kernel, stride, padding, r.random() < 0.5, r.random() < 0.5]
        if dims > 1 and r.random() < 0.3:
            args.append(r.choice([3, -2, 7]))
        return args, {}, math.prod(kernel * dims)

    return generate


def adaptive(dims):
    def generate(r):
        x = [r.randint(1, TOP[dims]) for _ in range(dims)]
        out = [1] * dims if r.random() < 0.3 else [r.randint(1, TOP[dims]) for _ in range(dims)]
        return [either(r, plane(r, x)), out], {}, math.prod(x)

    return generate


EXACT = {}
for n in (1, 2, 3):
    EXACT[f"max_pool{n}d.default"] = largest(n)
    EXACT[f"max_pool{n}d_with_indices.default"] = largest(n)
    EXACT[f"avg_pool{n}d.default"] = average(n)
    EXACT[f"adaptive_avg_pool{n}d.default"] = adaptive(n)
    EXACT[f"adaptive_max_pool{n}d.default"] = adaptive(n)
    if n > 1:
        EXACT[f"_adaptive_avg_pool{n}d.default"] = adaptive(n)
TRANSCENDENTAL = {}

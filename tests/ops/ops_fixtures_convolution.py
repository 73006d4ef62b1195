"""Generators of convolutions. The third value of each is the number of terms of an element."""
import math

from ops_draw import either


def sizes(r, dims, low, high):
    return [r.randint(low, high) for _ in range(dims)]


def one_or_all(r, v):
    """A list of ints; where all are equal, sometimes a list of one."""
    return v[:1] if len(set(v)) == 1 and r.random() < 0.5 else v


def draw(r, dims, transposed):
    top = {1: 24, 2: 9, 3: 5}[dims]
    groups, kernel = r.choice([1, 1, 2, 3]), sizes(r, dims, 1, {1: 5, 2: 4, 3: 3}[dims])
    a, b = r.choice([1, 2, 5]), r.choice([1, 3, 9, 20])
    if r.random() < 0.2:
        a, b, groups = 1, r.choice([1, 2]), 4
    if r.random() < 0.1:
        a, b, groups = 70, 66, 1
    stride = sizes(r, dims, 1, 3) if r.random() < 0.6 else [1] * dims
    dilation = sizes(r, dims, 1, 3) if r.random() < 0.4 else [1] * dims
    padding = sizes(r, dims, 0, 2)
    x = []
    for d in range(dims):
        span = dilation[d] * (kernel[d] - 1) + 1
        least = 1 if transposed else max(1, span - 2 * padding[d])
        x.append(r.randint(least, max(least, top)))
        if transposed and (x[d] - 1) * stride[d] - 2 * padding[d] + span < 1:
            padding[d] = 0
    batch = [r.choice([1, 2, 3])] if r.random() < 0.8 else []
    weight = [a * groups, b] if transposed else [b * groups, a]
    args = [either(r, batch + [a * groups] + x), either(r, weight + kernel)]
    args.append(either(r, [b * groups]) if r.random() < 0.6 else None)
    return args, stride, padding, dilation, groups, a * math.prod(kernel) + 1


def plain(dims):
    def generate(r):
        args, stride, padding, dilation, groups, terms = draw(r, dims, False)
        more = [one_or_all(r, stride), one_or_all(r, padding), one_or_all(r, dilation), groups]
        return args + more, {}, terms

    return generate


def named(dims):
    def generate(r):
        args, stride, padding, dilation, groups, terms = draw(r, dims, False)
        how = r.choice(["same", "same", "valid"])
        if how == "same":
            stride = [1] * dims
        else:  # every kernel fits
            dilation, kernel = [1] * dims, args[1]["shape"][2:]
            full = args[0]["shape"]
            full = full[:-dims] + [max(n, k) for n, k in zip(full[-dims:], kernel)]
            args[0] = either(r, full)
        return args + [stride, how, dilation, groups], {}, terms

    return generate


def transposed(dims):
    def generate(r):
        args, stride, padding, dilation, groups, terms = draw(r, dims, True)
        extra = [r.randrange(max(s, d)) for s, d in zip(stride, dilation)]
        return args + [stride, padding, extra, groups, dilation], {}, terms

    return generate


EXACT = {
    "conv1d.default": plain(1),
    "conv2d.default": plain(2),
    "conv3d.default": plain(3),
    "conv1d.padding": named(1),
    "conv2d.padding": named(2),
    "conv3d.padding": named(3),
    "conv_transpose1d.default": transposed(1),
    "conv_transpose2d.input": transposed(2),
    "conv_transpose3d.input": transposed(3),
}
TRANSCENDENTAL = {}

"""Argument sets of normalisations. The third value of each is the number of roundings of an element."""
from ops_draw import either, emptied, spec


def size(r, low=1, high=3):
    """Trailing dimensions of several elements; now and then a row that several warps share."""
    if r.random() < 0.15:
        return r.choice([[1031], [3, 401], [23, 29]])
    return [r.choice([2, 3, 5, 7]) for _ in range(r.randint(low, high))]


def maybe(r, s, draw="any"):
    return either(r, s, draw) if r.random() < 0.7 else None


def eps(r):
    return r.choice([1e-5, 1e-5, 1e-3, 0.5])


def terms(shape):
    n = 1
    for s in shape:
        n *= s
    return 20 + n


def channels(r):
    return r.choice([1, 2, 4, 6])


def image(r, low=0):
    """Batch, channels and up to three more dimensions; now and then rows that several blocks share."""
    if r.random() < 0.1:
        return [3, 2, 6007]
    return [r.choice([2, 3, 5]), channels(r)] + size(r, low, 3)


def batch(own, flags, eval_only=False):
    def make(r):
        s = image(r)
        train = not eval_only and r.random() < 0.5
        c = [s[1]]
        none = own and train and r.random() < 0.5
        stats = [None, None] if none else [either(r, c), either(r, c, "positive")]
        args = [either(r, s), maybe(r, c), maybe(r, c)] + stats
        args += [] if eval_only else [train]
        return args + [0.1, eps(r)] + flags, {}, terms([s[0]] + s[2:])

    return make


def instance(r):
    s = image(r, 1)
    c, train = [s[1]], r.random() < 0.7
    stats = [None, None] if train else [either(r, c), either(r, c, "positive")]
    return ([either(r, s), maybe(r, c), maybe(r, c)] + stats + [train, 0.1, eps(r), True], {},
            terms(s[2:]))


def group(r):
    s = image(r)
    groups = r.choice([g for g in (1, 2, 3, 4, 6) if s[1] % g == 0])
    if terms(s[1:]) == 20 + groups:  # one element a group
        s = s + [3]
    rest = [maybe(r, [s[1]]), maybe(r, [s[1]]), eps(r)][: r.randint(0, 3)]
    return [either(r, s), groups] + rest, {}, terms(s[1:])


def native_group(r):
    s = image(r, 1)
    groups = r.choice([g for g in (1, 2, 3, 4, 6) if s[1] % g == 0])
    inner = terms(s[2:]) - 20
    return ([spec(r, s), maybe(r, [s[1]]), maybe(r, [s[1]]), s[0], s[1], inner, groups, eps(r)], {},
            terms(s[1:]))


def layer(r):
    own = size(r)
    s = emptied(r, [r.choice([1, 2, 3, 5]) for _ in range(r.randint(0, 2))]) + own
    rest = [maybe(r, own), maybe(r, own), eps(r)][: r.randint(0, 3)]
    return [either(r, s), own] + rest, {}, terms(own)


def native_layer(r):
    own = size(r)
    s = emptied(r, [r.choice([1, 2, 3, 5]) for _ in range(r.randint(0, 2))]) + own
    return [either(r, s), own, maybe(r, own), maybe(r, own), eps(r)], {}, terms(own)


def rms(r):
    own = size(r)
    s = emptied(r, [r.choice([1, 2, 3, 5]) for _ in range(r.randint(0, 2))]) + own
    return [either(r, s), own] + [maybe(r, own), r.choice([None, 1e-6, 0.1])][: r.randint(0, 2)], {}


EXACT = {
    "batch_norm.default": batch(True, [True]),
    "_native_batch_norm_legit_no_training.default": batch(False, [], True),
    "_native_batch_norm_legit_functional.default": batch(False, []),
    "instance_norm.default": instance,
    "group_norm.default": group,
    "native_group_norm.default": native_group,
    "layer_norm.default": layer,
    "native_layer_norm.default": native_layer,
    "rms_norm.default": rms,
}
TRANSCENDENTAL = {}

"""Argument sets of losses. The third value of each is the number of roundings of an element."""
from ops_draw import broadcast, either, emptied, number, shape, spec
from ops_fixtures_view import rank


def cut(r, values):
    """Some of the default arguments."""
    return values[: r.randint(0, len(values))]


def reduction(r):
    return r.choice([0, 1, 1, 2])


def some(r, low=0):
    return r.choice([[1027], [2, 1031]]) if r.random() < 0.1 else emptied(r, shape(r, low=low))


def pair(parameter=None, draw="any", same=True):
    def make(r):
        s = some(r)
        other = s if same or r.random() < 0.7 else broadcast(r, s)
        more = [reduction(r)] + ([r.choice([0.5, 1, 2.25])] if parameter else [])
        return [either(r, s, draw), either(r, other, draw)] + cut(r, more), {}, 40

    return make


def entropy(draw, weights):
    def make(r):
        s = some(r, 1)
        w = [either(r, s[-1:], "positive") if r.random() < 0.4 else None for _ in range(weights)]
        return [either(r, s, draw), either(r, s, "unit")] + cut(r, w + [reduction(r)]), {}, 400

    return make


def kl_div(r):
    s = some(r)
    log = r.random() < 0.5
    kwargs = {"log_target": log} if log or r.random() < 0.5 else {}
    target = either(r, s, "any" if log else "positive")
    return [either(r, s), target] + cut(r, [reduction(r)]), kwargs, 40


def ranking(r):
    s = some(r)
    return [either(r, s), either(r, s), either(r, s)] + cut(r, [number(r), reduction(r)]), {}, 40


def hinge(r):
    s = some(r)
    target = spec(r, s, "index 3", dtype="float64")
    return [either(r, s), target] + cut(r, [r.choice([0.5, 1]), reduction(r)]), {}, 40


def distance(r):
    s = some(r, 1)
    rest = [r.choice([1, 2, 2.0, 0, {"number": "inf"}]), r.choice([1e-6, 0.125]), r.random() < 0.5]
    return [either(r, s), either(r, s)] + cut(r, rest), {}, 40


def triplet(r):
    """Short rows: the difference of two long ones' norms is lost in bfloat16."""
    s = shape(r, low=1)
    rest = [r.choice([1, 0.25]), r.choice([1, 2]), 1e-6, r.random() < 0.5, reduction(r)]
    return [either(r, s), either(r, s), either(r, s)] + cut(r, rest), {}, 60


def cosine(r):
    s = some(r, 2)
    other = s if r.random() < 0.7 else [1] + s[1:]
    rest = [r.choice([1, -1, 0]), r.choice([1e-8, 0.125])]
    return [either(r, s), either(r, other)] + cut(r, rest), {}, 60


def classes(r):
    """Log-probabilities and the targets' shape; now and then many targets, or many classes."""
    n = r.choice([2, 3, 5, 7])
    if r.random() < 0.1:
        return r.choice([([1, 2, 70001], [1, 70001]), ([3, 1031], [3]), ([1031, 3], [1031])])
    if r.random() < 0.1:
        return [n], []
    rest = shape(r, high=2)
    batch = r.choice([0, 1, 3, 3, 40, 40])
    return [batch, n] + rest, [batch] + rest


def target(r, x, t):
    n = x[1] if len(x) > 1 else x[0]
    return either(r, t, f"index {n}"), n


def nll(spatial, forward=False):
    def make(r):
        x, t = classes(r)
        if not spatial and len(x) > 2:
            x, t = x[:2], t[:1]
        y, n = target(r, x, t)
        w = either(r, [n], "positive") if r.random() < 0.4 else None
        rest = [w, reduction(r), r.choice([-100, -100, 0, 1])]
        return [either(r, x), y] + (rest if forward else cut(r, rest)), {}, 400

    return make


def cross_entropy(r):
    x, t = classes(r)
    y, n = target(r, x, t)
    if r.random() < 0.4:
        y = either(r, x, "unit")
    ignore = -100 if y.get("draw") == "unit" else r.choice([-100, -100, 0, 1])
    w = either(r, [n], "positive") if r.random() < 0.4 else None
    rest = [w, reduction(r), ignore, r.choice([0, 0.1, 0.3])]
    return [either(r, x), y] + cut(r, rest), {}, 400


def xlogy(r):
    s = shape(r)
    return [either(r, s), either(r, broadcast(r, s), "positive")], {}, 20


EXACT = {
    "mse_loss.default": pair(same=False),
    "l1_loss.default": pair(same=False),
    "smooth_l1_loss.default": pair(True),
    "huber_loss.default": pair(True),
    "margin_ranking_loss.default": ranking,
    "hinge_embedding_loss.default": hinge,
    "pairwise_distance.default": distance,
    "triplet_margin_loss.default": triplet,
    "cosine_similarity.default": cosine,
    "nll_loss_nd.default": nll(True),
    "nll_loss.default": nll(False),
    "nll_loss_forward.default": nll(False, True),
}
TRANSCENDENTAL = {
    "binary_cross_entropy.default": entropy("unit", 1),
    "binary_cross_entropy_with_logits.default": entropy("any", 2),
    "kl_div.default": kl_div,
    "soft_margin_loss.default": pair(),
    "cross_entropy_loss.default": cross_entropy,
    "xlogy.Tensor": xlogy,
}

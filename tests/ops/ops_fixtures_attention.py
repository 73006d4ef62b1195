"""Generators of attention. The third value of each is the number of terms of an element."""
from ops_draw import either


def attention(r):
    batch = [r.choice([1, 2, 3]) for _ in range(r.choice([0, 1, 2, 2, 2]))]
    rows, keys = r.choice([1, 3, 7, 40, 70]), r.choice([1, 2, 5, 33, 150])
    depth, width = r.choice([1, 4, 8, 24]), r.choice([1, 4, 8, 24])
    grouped = len(batch) > 1 and r.random() < 0.3
    q, kwargs = list(batch), {}
    if grouped:
        q[-1] *= r.choice([2, 3])
        kwargs["enable_gqa"] = True
    args = [either(r, q + [rows, depth]), either(r, batch + [keys, depth]),
            either(r, batch + [keys, width])]
    how = r.choice(["none", "causal", "bool", "float"])
    if how == "causal":
        args += [None, 0.0, True]
    if how in ("bool", "float"):
        lead = [1 if r.random() < 0.4 else n for n in q[r.randint(0, len(q)) :]]
        args.append(either(r, lead + [rows, keys], "mask" if how == "bool" else "any"))
    if r.random() < 0.3:
        kwargs["scale"] = round(r.uniform(0.1, 2), 3)
    return args, kwargs, keys


EXACT = {}
TRANSCENDENTAL = {"scaled_dot_product_attention.default": attention}

"""Writes tests/fixtures/ops/FAMILY.json: 50 argument sets an operator, and torch's double results.

Runs where torch is: python3 tests/ops/ops_fixtures.py [FAMILY...]. Inputs are not stored: the tests draw
them again from their seeds. Of a result at most three elements are stored.
"""
import importlib
import json
import math
import os
import random
import sys

import torch

from ops_draw import bits, value

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))  # export_complex

# Each is a module ops_fixtures_FAMILY with generators by operator in EXACT (relative difference below
# 1e-12) and TRANSCENDENTAL (1e-10).
FAMILIES = [
    "pointwise",
    "math",
    "compare",
    "matmul",
    "convolution",
    "view",
    "layout",
    "reduction",
    "pooling",
    "attention",
    "recurrent",
    "embedding",
    "norm",
    "softmax",
    "scan",
    "fft",
    "loss",
    "indexing",
    "composed",
    "sort",
    "scatter",
    "resize",
    "columns",
    "grid",
    "extreme",
    "search",
    "select",
]
# Sums of products cancel: an element may also differ by this much for each of its terms, about four
# roundings of the largest product. A generator then gives the number of terms as its third value.
FLOOR = 2e-15
# 1e-12) and TRANSCENDENTAL (1e-10), and those that the library refuses in REFUSED.


def tensors(values):
    """The tensors of arguments in the order in which OpCall numbers them."""
    for v in values:
        if isinstance(v, torch.Tensor):
            yield v
        elif isinstance(v, list):
            yield from tensors(v)


def number(v):
    return v if math.isfinite(v) else str(v)


def result(y, inputs, in_place):
    """A result that is a view is known by its strides, so that one element is enough."""
    n = y.numel()
    flat = y.reshape(-1).to(torch.float64).tolist()
    of = [i for i, x in enumerate(inputs)
          if x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()]
    at = range(n) if n <= 3 else [bits(n, k) % n for k in range(3)]
    out = {"shape": list(y.shape), "want": [number(flat[i]) for i in at[: 1 if of and not in_place else 3]]}
    if y.dtype != torch.float64:
        out["dtype"] = str(y.dtype).split(".")[1]
    if of:
        out.update(view=of[0], stride=list(y.stride()), offset=y.storage_offset())
    return out


def case(name, make, seed):
    args, kwargs, *terms = make(random.Random(seed))
    packet, overload = name.split(".")
    given, named = [value(a) for a in args], {k: value(v) for k, v in kwargs.items()}
    y = getattr(getattr(torch.ops.aten, packet), overload)(*given, **named)
    inputs = list(tensors(given + list(named.values())))
    if packet == "embedding_bag":  # of its results the library has the first
        y = y[0]
    ys = list(y) if isinstance(y, (tuple, list)) else [] if y is None else [y]
    out = {"args": args, "results": [result(v, inputs, packet.endswith("_")) for v in ys]}
    if terms:
        out["floor"] = FLOOR * terms[0]
    return {**out, "kwargs": kwargs} if kwargs else out


def write(family):
    module = importlib.import_module("ops_fixtures_" + family)
    limits = {**{n: 1e-12 for n in module.EXACT}, **{n: 1e-10 for n in module.TRANSCENDENTAL}}
    table = {**module.EXACT, **module.TRANSCENDENTAL}
    out = {}
    for name in sorted(table):
        cases = [case(name, table[name], f"{name} {i}") for i in range(50)]
        out["aten." + name] = {"limit": limits[name], "cases": cases}
    for name, make in getattr(module, "REFUSED", {}).items():
        out["aten." + name] = {"refused": True, "cases": [{"args": make(random.Random(name))}]}
    with open(f"tests/fixtures/ops/{family}.json", "w") as f:
        json.dump(out, f, separators=(",", ":"), sort_keys=True)
        f.write("\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or FAMILIES:
        write(name)

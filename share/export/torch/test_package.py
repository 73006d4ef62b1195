"""Compares the package's operator with the original on the current GPU: python test_package.py"""

import importlib
import os
import sys

import torch


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, os.path.dirname(folder))
    package = importlib.import_module(os.path.basename(folder))._package
    if not torch.cuda.is_available():
        print("skipped: no GPU")
        return 0
    failed = 0
    for case in package.json["cases"]:
        generator = torch.Generator("cuda").manual_seed(1)
        inputs = []
        for shape, dtype in zip(case["inputs"], package.dtypes):
            if dtype.is_floating_point:
                inputs.append(torch.randn(shape, device="cuda", generator=generator).to(dtype))
            else:
                inputs.append(torch.zeros(shape, device="cuda", dtype=dtype))
        got = package.op(*inputs)
        try:
            want = package._original(*[t.double() if t.dtype.is_floating_point else t for t in inputs])
        except NotImplementedError as e:
            print(f"skipped: {e}")
            return 0
        pairs = zip(
            [got] if isinstance(got, torch.Tensor) else got,
            [want] if isinstance(want, torch.Tensor) else want,
        )
        for (g, w), tolerance in zip(pairs, case["tolerance"]):
            right = torch.allclose(g.double(), w.double(), rtol=tolerance["rtol"], atol=tolerance["atol"])
            print(f"{'ok' if right else 'WRONG'} {case['sizes']}")
            failed += not right
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

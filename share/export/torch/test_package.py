"""Compares a package's operator with eager PyTorch on the current GPU, both beside double precision, on
inputs of the range and kind that were judged, and times package, eager and torch.compile:
python test_package.py"""

import importlib
import os
import statistics
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# A right kernel sums in another order than eager PyTorch: its error may be so many times eager's.
FACTOR, RUNS, FLUSH = 4, 30, 1 << 28
_CONVOLUTIONS, _PRODUCTS = ("convolution", "_convolution"), ("mm", "addmm", "bmm", "baddbmm")


# ---- inputs, as the task draws them ----

def draw(spec, shape, high, generator, device):
    """One input of the package. high: the largest of integers."""
    def normal():
        return torch.randn(shape, generator=generator, device=device, dtype=torch.float64)

    def uniform():
        return torch.rand(shape, generator=generator, device=device, dtype=torch.float64)

    kind, low = spec.get("draw", "normal"), spec.get("low", -1)
    if kind == "integer":
        x = torch.randint(low, high + 1, shape, generator=generator, device=device)
        if "distinct" in spec:
            d = spec["distinct"]
            every = torch.rand([*shape[:d], high - low + 1, *shape[d + 1:]], generator=generator,
                               device=device)
            x = every.argsort(d).narrow(d, 0, shape[d]) + low
    elif kind == "uniform":
        x = low + (spec.get("high", 1) - low) * uniform()
    elif kind == "positive":
        x = 0.5 + uniform()
    else:
        x = normal()
        if kind == "mixed":  # of 16 elements one is large, one tiny, one zero
            one = torch.randint(0, 16, shape, generator=generator, device=device)
            x = torch.where(one == 0, x * 16, torch.where(one == 1, x / 4096, torch.where(one == 2, 0, x)))
        x = spec.get("mean", 0) + spec.get("std", 1) * x
    return x


def inputs_of(package, case, device):
    plan = importlib.import_module(f"{type(package).__module__.rpartition('.')[0]}.plan")
    axes = plan.solve_axes(package.json, case["inputs"])
    generator = torch.Generator(device).manual_seed(1)
    out = []
    for spec, shape, dtype in zip(package.json["inputs"], case["inputs"], package.dtypes):
        high = plan.evaluate(spec.get("high", 0), axes) if spec.get("draw") == "integer" else 0
        out.append(draw(spec, shape, high, generator, device).to(dtype).contiguous())
    return axes, out


# ---- errors ----

def several(results):
    return [results] if isinstance(results, torch.Tensor) else results


def error(got, want):
    """The largest absolute error where both are finite. inf: where they should be equal, they are not."""
    got, want = got.double(), want.double()
    finite = want.isfinite()
    if not bool(((got == want) | (got != got) & (want != want))[~finite].all()):
        return float("inf")
    far = (got - want)[finite].abs()
    return float(far.nan_to_num(nan=float("inf")).max()) if far.numel() else 0.0


def within(got, want, tolerance, more):
    return torch.allclose(got.double(), want.double(), rtol=tolerance["rtol"], atol=tolerance["atol"] + more,
                          equal_nan=True)


class Rounded(TorchDispatchMode):
    """Factors in double precision are rounded to TF32 where PyTorch may do so: the package's way may, and
    eager PyTorch's not, where one has channels last."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().partition("::")[2].partition(".")[0]
        own = torch.backends.cudnn if name in _CONVOLUTIONS else torch.backends.cuda.matmul
        if name in _CONVOLUTIONS + _PRODUCTS and own.allow_tf32:
            args = [self.rounded(a) for a in args]
        return func(*args, **(kwargs or {}))

    @staticmethod
    def rounded(x):
        if not isinstance(x, torch.Tensor) or x.dtype != torch.float64 or x.dim() < 2:
            return x
        bits = x.float().view(torch.int32) + 0x1000
        return (bits & ~0x1FFF).view(torch.float32).double()


def compare(package, case, device):
    """(right, a line for each output) of one case."""
    _, inputs = inputs_of(package, case, device)
    with torch.no_grad():
        got, eager = several(package.op(*inputs)), several(package._original(*inputs))
        want = several(package._original(*inputs, wide=True))
        with Rounded():
            rough = several(package._original(*inputs, wide=True))
    right, lines = True, []
    for name, g, e, w, r, tolerance in zip(package.out_names, got, eager, want, rough, case["tolerance"]):
        own, theirs, more = error(g, w), error(e, w), 2 * error(r, w) if g.dtype == torch.float32 else 0
        good = within(g, w, tolerance, more) or own <= FACTOR * theirs < float("inf")
        lines.append(f"{'ok' if good else 'WRONG'} {name}: package errs {own:.3g}, eager {theirs:.3g} beside "
                     f"double precision; {case['sizes']}")
        right &= good
    return right, lines


# ---- times ----

def device_time(calls):
    """The median time of each call on the GPU in microseconds, in turns, L2 flushed before each."""
    flush = torch.zeros(FLUSH, dtype=torch.uint8, device="cuda")
    times = {name: [] for name in calls}
    for turn in range(RUNS + 3):
        for name, call in calls.items():
            flush.sum()
            torch.cuda._sleep(200000)
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            if turn >= 3:
                times[name].append(begin.elapsed_time(end) * 1000)
    return {name: statistics.median(t) for name, t in times.items()}


def calls_of(package, case):
    """Package, eager and torch.compile on one case's inputs."""
    graph = importlib.import_module(f"{type(package).__module__.rpartition('.')[0]}.graph")
    axes, inputs = inputs_of(package, case, "cuda")
    eager = graph.module_of(package.json["graph"], package.inputs, package.out_names, axes,
                            "cuda")
    compiled = torch.compile(eager, dynamic=False)
    inputs = laid(package, inputs)
    return {"package": package_call(package, inputs, eager), "eager": lambda: eager(*inputs),
            "torch.compile": lambda: compiled(*inputs)}


def laid(package, inputs):
    """The inputs in the memory formats that the module has them in."""
    return [x.contiguous(memory_format=getattr(torch, spec["format"])) if "format" in spec else x
            for spec, x in zip(package.json["inputs"], inputs)]


def package_call(package, inputs, eager):
    """The operator on inputs as the module has them: with the copies that Module makes of those in
    channels_last, and the results in eager's memory format."""
    if all(x.is_contiguous() for x in inputs):
        return lambda: package.op(*inputs)
    calls = importlib.import_module(f"{type(package).__module__.rpartition('.')[0]}.calls")
    formats = [calls.memory_format(t) or torch.preserve_format for t in eager(*inputs)]
    return lambda: [r.contiguous(memory_format=f) if f is not torch.preserve_format else r for r, f in zip(
        several(package.op(*[x.contiguous() for x in inputs])), formats)]


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, os.path.dirname(folder))
    package = importlib.import_module(os.path.basename(folder))._package
    if not torch.cuda.is_available():
        print("skipped: no GPU")
        return 0
    if not package.json.get("graph"):
        print("skipped: the task has no graph, so that there is no original to compare with")
        return 0
    wrong = 0
    for case in package.json["cases"]:
        right, lines = compare(package, case, "cuda")
        print("\n".join(lines))
        wrong += not right
    if package.warned:
        print("WRONG the package took the original's way: nothing of it was compared")
        wrong += 1
    for case in package.json["cases"]:
        if case["role"] == "time":
            with torch.no_grad():
                times = device_time(calls_of(package, case))
            print(", ".join(f"{name} {t:.1f} us" for name, t in times.items()) + f"; {case['sizes']}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""PyTorch's times of tasks at their timed workloads, to set beside Quern's baselines: of the twelve that are
written here, or of any task with a graph.

    python3 tests/gpu/eager.py [--tasks relu,kernelbench/level1] [--runs 100] [--task-root tasks] [--compile]
                               [--output ROWS.jsonl [--again]] [--seconds 480] [--limit 40] [--jobs 8]

One JSON line a task and timed workload: task, axes, us and what (eager, the expression that baseline_cuda.cu
follows launch for launch), and where PyTorch has a fused way too best_us and best (its text). --compile: the
fused way of a graph is torch.compile; --jobs tasks are compiled side by side and measured one by one. A task
that fails has "error" and no us, a fused way that fails "best_error". With --output the same command goes on
with the tasks that the file has no row of. Median of the runs; float32 without TF32; before each run L2 is
written over twice and the device kept busy until the launches are enqueued, so that the time is the GPU's and
not Python's.
"""

import argparse
import glob
import importlib
import json
import math
import os
import statistics
import sys
import time
import types

import eager_rows

if "--worker" in sys.argv:
    import torch
    import torch.nn.functional as F

    ZERO = torch.tensor(0.0)


def relu(x):
    return torch.relu(x)


def gelu(x):
    return F.gelu(x)


def row_sum(x):
    return x.sum(-1)


def softmax(x):
    return torch.softmax(x, -1)


def layernorm(x, gamma, beta):
    return F.layer_norm(x, (x.shape[-1],), gamma, beta, 1e-5)


def residual_rmsnorm(x, residual, weight):
    h = x + residual
    return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def residual_rmsnorm_fused(x, residual, weight):
    return F.rms_norm(x + residual, (x.shape[-1],), weight, 1e-6)


def transpose(x):
    return x.t().contiguous()


def matmul(a, b):
    return a @ b


def matmul_bias_relu(a, b, bias):
    return torch.relu(a @ b + bias)


def matmul_bias_relu_fused(a, b, bias):
    return torch._addmm_activation(bias, a, b)


def diag_matmul(d, b):
    return torch.diag(d) @ b


def diag_matmul_fused(d, b):
    return d[:, None] * b


def conv3d_norm_min_clamp(x, weight, bias, gamma, beta):
    y = F.group_norm(F.conv3d(x, weight, bias), 1, gamma, beta, 1e-5)
    return torch.clamp(torch.minimum(y, ZERO), 0.0, 1.0)


def attention(q, k, v):
    s = q @ k.transpose(-2, -1) * (1.0 / math.sqrt(q.shape[-1]))
    s += mask(q.shape[-2], q.device)
    return torch.softmax(s, -1) @ v


def attention_fused(q, k, v):
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]


MASKS = {}


def mask(seq, device):
    """Made once, as a model's buffer is."""
    if seq not in MASKS:
        MASKS[seq] = torch.full((seq, seq), -math.inf, device=device).triu(1)
    return MASKS[seq]


# task: (eager, its text), and the fused way where there is another
EAGER = {
    "relu": (relu, "torch.relu(x)"),
    "gelu": (gelu, "F.gelu(x)"),
    "row_sum": (row_sum, "x.sum(-1)"),
    "softmax": (softmax, "torch.softmax(x, -1)"),
    "layernorm": (layernorm, "F.layer_norm(x, (cols,), gamma, beta, 1e-5)"),
    "residual_rmsnorm": (
        residual_rmsnorm,
        "h = x + residual; h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * weight",
    ),
    "transpose": (transpose, "x.t().contiguous()"),
    "matmul": (matmul, "a @ b"),
    "matmul_bias_relu": (matmul_bias_relu, "torch.relu(a @ b + bias)"),
    "diag_matmul": (diag_matmul, "torch.diag(d) @ b"),
    "conv3d_norm_min_clamp": (
        conv3d_norm_min_clamp,
        "y = F.group_norm(F.conv3d(x, weight, bias), 1, gamma, beta, 1e-5); "
        "torch.clamp(torch.minimum(y, zero), 0.0, 1.0)",
    ),
    "attention": (attention, "s = q @ k.mT * scale; s += mask; torch.softmax(s, -1) @ v"),
}
FUSED = {
    "residual_rmsnorm": (residual_rmsnorm_fused, "F.rms_norm(x + residual, (cols,), weight, 1e-6)"),
    "matmul_bias_relu": (matmul_bias_relu_fused, "torch._addmm_activation(bias, a, b)"),
    "diag_matmul": (diag_matmul_fused, "d[:, None] * b"),
    "attention": (attention_fused, "F.scaled_dot_product_attention(q, k, v, is_causal=True)"),
}


def export_module(name):
    """plan or torch_op of the exported packages, which run the lines of a graph."""
    if "quern_export" not in sys.modules:
        package = types.ModuleType("quern_export")
        package.__path__ = [
            os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "share", "export", "torch")
        ]
        sys.modules["quern_export"] = package
    return importlib.import_module("quern_export." + name)


def shape_of(tensor, axes):
    return [e if isinstance(e, int) else export_module("plan").evaluate(e, axes) for e in tensor["shape"]]


def draw_one(x, axes, generator):
    shape, dtype = shape_of(x, axes), getattr(torch, x["dtype"])
    if x["draw"] == "integer":
        high = x["high"] if isinstance(x["high"], int) else export_module("plan").evaluate(x["high"], axes)
        if "distinct" in x:
            d, length = x["distinct"], high + 1 - x["low"]
            wide = torch.rand(shape[:d] + [length] + shape[d + 1 :], generator=generator, device="cuda")
            return (wide.argsort(d).narrow(d, 0, shape[d]) + x["low"]).to(dtype)
        return torch.randint(x["low"], high + 1, shape, generator=generator, device="cuda").to(dtype)
    if x["draw"] == "positive":
        return (torch.rand(shape, generator=generator, device="cuda") + 0.5).to(dtype)
    if x["draw"] == "uniform":
        low, high = x.get("low", -1), x.get("high", 1)
        return (torch.rand(shape, generator=generator, device="cuda") * (high - low) + low).to(dtype)
    return (torch.randn(shape, generator=generator, device="cuda") * x.get("std", 1) + x.get("mean", 0)).to(
        dtype
    )


def draw(task, axes):
    generator = torch.Generator(device="cuda").manual_seed(1)
    return [draw_one(x, axes, generator) for x in task["inputs"].values()]


MOST_SECONDS = 2  # of the runs of one way


class Named:
    """A tensor in the arguments of a line."""

    def __init__(self, name):
        self.name = name


def graph_function(task, axes):
    """The graph as a function of the inputs. Its lines are read once, so that a call costs the host
    little."""
    torch_op = export_module("torch_op")
    names = {name: Named(name) for name in task["inputs"]}
    steps = []
    for line in task["graph"]:
        results, operator, positional, keyword = torch_op.read_line(line, names, axes)
        names.update((r, Named(r)) for r in results)
        steps.append((results, operator, positional, keyword))
    inputs, outputs = list(task["inputs"]), list(task["outputs"])

    def value(argument, tensors):
        if isinstance(argument, Named):
            return tensors[argument.name]
        return [value(a, tensors) for a in argument] if isinstance(argument, list) else argument

    def run(*tensors):
        known = dict(zip(inputs, tensors))
        for results, operator, positional, keyword in steps:
            given = operator(
                *[value(a, known) for a in positional], **{k: value(a, known) for k, a in keyword.items()}
            )
            known.update(zip(results, [given] if isinstance(given, torch.Tensor) else given))
        return [known[name] for name in outputs]

    return run


def check(name, eager, fused, inputs):
    """Both ways compute the same thing, or the comparison means nothing."""
    a, b = eager(*inputs), fused(*inputs)
    pairs = [(a, b)] if isinstance(a, torch.Tensor) else zip(a, b)
    worst = max(((x.double() - y.double()).abs() / (1.0 + x.double().abs())).max().item() for x, y in pairs)
    if not worst < (1e-3 if inputs[0].dtype is torch.float32 else 5e-2):
        raise RuntimeError(f"{name}: the fused way differs from the eager one by {worst}")


def median_us(f, inputs, runs, flush):
    """Of so many runs, or of fewer, at least ten, where they take long."""
    times, begin = [], time.monotonic()
    for run in range(runs + 10):
        if len(times) >= 10 and time.monotonic() - begin > MOST_SECONDS:
            break
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flush.sum()  # read, as Quern does: lines that were written would have to be written back while f runs
        torch.cuda._sleep(400000)
        start.record()
        f(*inputs)
        end.record()
        end.synchronize()
        if run >= 10:
            times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times)


def find(root, words):
    """The names and folders of tasks: each word is a task, a set or a pattern, as TASKS has it."""
    for word in words:
        folders = glob.glob(os.path.join(root, word)) or glob.glob(
            os.path.join(root, "**", word), recursive=True
        )
        files = [
            f
            for folder in folders
            for f in glob.glob(os.path.join(folder, "**", "task.json"), recursive=True)
        ]
        if not files:
            sys.exit(f"eager.py: expected a task, a set or a pattern below {root}, found {word}")
        for file in sorted(files):
            yield os.path.relpath(os.path.dirname(file), root), file


def reason(e):
    return (str(e).splitlines() or [type(e).__name__])[0][:300]


class Measurer:
    """The worker's side: answers the questions of eager_rows."""

    def __init__(self, given):
        self.given, self.compiled = given, {}
        if not torch.cuda.is_available():
            sys.exit("eager.py: PyTorch sees no GPU")
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.set_grad_enabled(False)
        self.gpu = torch.cuda.get_device_properties(0)
        self.flush = torch.zeros(2 * self.gpu.L2_cache_size // 4, dtype=torch.int32, device="cuda")

    def eager(self, name, task, axes):
        return EAGER[name] if name in EAGER else (graph_function(task, axes), "its graph, by torch.ops.aten")

    def prepare(self, name, task, axes):
        """Compiles, and runs twice: the first time kernels are made, and chosen among a few."""
        self.compiled.clear()
        if name in FUSED:
            return {}
        torch._dynamo.reset()
        inputs, compiled = draw(task, axes), torch.compile(self.eager(name, task, axes)[0])
        for _ in range(2):
            compiled(*inputs)
        torch.cuda.synchronize()
        self.compiled[name] = compiled
        return {}

    def measure(self, name, task, axes):
        inputs, (eager, what) = draw(task, axes), self.eager(name, task, axes)
        line = {"us": median_us(eager, inputs, self.given.runs, self.flush), "what": what}
        fused, best = FUSED[name] if name in FUSED else (self.compiled.get(name), "torch.compile")
        if fused:
            try:
                check(name, eager, fused, inputs)
                line.update(best_us=median_us(fused, inputs, self.given.runs, self.flush), best=best)
            except Exception as e:
                line["best_error"] = reason(e)
        return line

    def answer(self, question):
        with open(question["path"]) as file:
            task = json.load(file)
        try:
            return getattr(self, question["do"])(question["name"], task, question["axes"])
        except Exception as e:  # out of memory, or an operator that torch refuses here
            return {"error": reason(e)}
        finally:
            MASKS.clear()
            torch.cuda.empty_cache()


def serve(given):
    """One answer a line on stdout, which nothing else writes to."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    measurer = Measurer(given)
    print(json.dumps({"torch": torch.__version__, "gpu": measurer.gpu.name}), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(measurer.answer(json.loads(line))), file=out, flush=True)


def timed(root, words):
    for name, path in find(root, words):
        with open(path) as file:
            task = json.load(file)
        for axes in [w["axes"] for w in task["workloads"] if w["role"] == "time"]:
            yield eager_rows.Task(task["name"], path, axes)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument(
        "--tasks", default="", help="tasks, sets or patterns, with commas; the twelve when left out"
    )
    options.add_argument("--compile", action="store_true", help="torch.compile of a graph as its fused way")
    options.add_argument("--output", help="file of rows; the tasks that it has are left out")
    options.add_argument(
        "--again", action="store_true", help="rows of the file with an error are measured again"
    )
    options.add_argument("--seconds", type=float, default=1e9, help="no task is begun after them")
    options.add_argument(
        "--limit", type=float, default=40, help="seconds of one task, to compile and to measure"
    )
    options.add_argument("--jobs", type=int, default=8, help="tasks that are compiled side by side")
    options.add_argument("--runs", type=int, default=100)
    options.add_argument(
        "--task-root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tasks")
    )
    options.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.worker:
        return serve(given)
    if not given.compile:
        given.jobs = 1
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "2")
    tasks = list(timed(given.task_root, given.tasks.split(",") if given.tasks else sorted(EAGER)))
    left = eager_rows.run(
        [sys.executable, os.path.abspath(__file__), "--worker", "--runs", str(given.runs)], tasks, given
    )
    if left:
        print(f"eager.py: {left} tasks are left; the same command with --output goes on", file=sys.stderr)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""PyTorch's times of the twelve tasks at their timed workloads, to set beside Quern's baselines.

    python3 tests/gpu/eager.py [--tasks relu,softmax] [--runs 100] [--task-root tasks]

One JSON line a task and timed workload: task, axes, us and what (eager, the expression that baseline_cuda.cu
follows launch for launch), and where PyTorch has a fused way too best_us and best (its text). Median of the runs;
float32 without TF32; before each run L2 is written over twice and the device kept busy until the launches are
enqueued, so that the time is the GPU's and not Python's.
"""
import argparse
import json
import math
import os
import statistics
import sys

import torch
import torch.nn.functional as F


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
ZERO = torch.tensor(0.0)


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
    "residual_rmsnorm": (residual_rmsnorm, "h = x + residual; h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * weight"),
    "transpose": (transpose, "x.t().contiguous()"),
    "matmul": (matmul, "a @ b"),
    "matmul_bias_relu": (matmul_bias_relu, "torch.relu(a @ b + bias)"),
    "diag_matmul": (diag_matmul, "torch.diag(d) @ b"),
    "conv3d_norm_min_clamp": (
        conv3d_norm_min_clamp,
        "y = F.group_norm(F.conv3d(x, weight, bias), 1, gamma, beta, 1e-5); torch.clamp(torch.minimum(y, zero), 0.0, 1.0)",
    ),
    "attention": (attention, "s = q @ k.mT * scale; s += mask; torch.softmax(s, -1) @ v"),
}
FUSED = {
    "residual_rmsnorm": (residual_rmsnorm_fused, "F.rms_norm(x + residual, (cols,), weight, 1e-6)"),
    "matmul_bias_relu": (matmul_bias_relu_fused, "torch._addmm_activation(bias, a, b)"),
    "diag_matmul": (diag_matmul_fused, "d[:, None] * b"),
    "attention": (attention_fused, "F.scaled_dot_product_attention(q, k, v, is_causal=True)"),
}


def shape_of(tensor, axes):
    return [e if isinstance(e, int) else eval(e.replace("/", "//"), {"__builtins__": {}}, dict(axes)) for e in tensor["shape"]]


def draw(task, axes):
    generator = torch.Generator(device="cuda").manual_seed(1)
    return [torch.randn(shape_of(x, axes), generator=generator, device="cuda") for x in task["inputs"].values()]


def check(name, eager, fused, inputs):
    """Both ways compute the same thing, or the comparison means nothing."""
    a, b = eager(*inputs), fused(*inputs)
    worst = ((a - b).abs() / (1.0 + a.abs())).max().item()
    if not worst < 1e-3:
        sys.exit(f"{name}: the fused way differs from the eager one by {worst}")


def median_us(f, inputs, runs, flush):
    times = []
    for run in range(runs + 10):
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


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tasks", default="", help="names, with commas; all when left out")
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--task-root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tasks"))
    given = options.parse_args()
    if not torch.cuda.is_available():
        sys.exit("eager.py: PyTorch sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_grad_enabled(False)
    properties = torch.cuda.get_device_properties(0)
    flush = torch.zeros(2 * properties.L2_cache_size // 4, dtype=torch.int32, device="cuda")
    names = given.tasks.split(",") if given.tasks else sorted(EAGER)
    for name in names:
        with open(os.path.join(given.task_root, name, "task.json")) as file:
            task = json.load(file)
        eager, what = EAGER[name]
        for axes in [w["axes"] for w in task["workloads"] if w["role"] == "time"]:
            inputs = draw(task, axes)
            line = {"task": name, "axes": axes, "us": median_us(eager, inputs, given.runs, flush), "what": what}
            if name in FUSED:
                fused, best_what = FUSED[name]
                check(name, eager, fused, inputs)
                line.update(best_us=median_us(fused, inputs, given.runs, flush), best=best_what)
            line.update(torch=torch.__version__, gpu=properties.name)
            print(json.dumps(line), flush=True)
            MASKS.clear()
            del inputs
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

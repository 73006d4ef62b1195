"""Tasks as functions for PyTorch: by the lines of their graphs, or, of those that have none, as eager code is
written."""

import importlib
import math
import os
import sys
import types

import torch
import torch.nn.functional as F

ZERO = torch.tensor(0.0)


def export_module(name):
    """plan or graph of the exported packages, which run the lines of a graph."""
    if "quern_export" not in sys.modules:
        package = types.ModuleType("quern_export")
        package.__path__ = [
            os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "share", "export", "torch")
        ]
        sys.modules["quern_export"] = package
    return importlib.import_module("quern_export." + name)


def shape_of(tensor, axes):
    return [e if isinstance(e, int) else export_module("plan").evaluate(e, axes) for e in tensor["shape"]]


def draw_one(x, axes, generator, device):
    shape, dtype = shape_of(x, axes), getattr(torch, x["dtype"])
    if x["draw"] == "integer":
        high = x["high"] if isinstance(x["high"], int) else export_module("plan").evaluate(x["high"], axes)
        if "distinct" in x:
            d, length = x["distinct"], high + 1 - x["low"]
            wide = torch.rand(shape[:d] + [length] + shape[d + 1 :], generator=generator, device=device)
            return (wide.argsort(d).narrow(d, 0, shape[d]) + x["low"]).to(dtype)
        return torch.randint(x["low"], high + 1, shape, generator=generator, device=device).to(dtype)
    if x["draw"] == "positive":
        return (torch.rand(shape, generator=generator, device=device) + 0.5).to(dtype)
    if x["draw"] == "uniform":
        low, high = x.get("low", -1), x.get("high", 1)
        return (torch.rand(shape, generator=generator, device=device) * (high - low) + low).to(dtype)
    return (torch.randn(shape, generator=generator, device=device) * x.get("std", 1) + x.get("mean", 0)).to(
        dtype
    )


def draw(task, axes, device):
    """The contents of a workload's inputs."""
    generator = torch.Generator(device=device).manual_seed(1)
    return [draw_one(x, axes, generator, device) for x in task["inputs"].values()]


def graph_function(task, axes, device):
    """The graph as a function of the inputs, on their device. Its lines are read once, so that a call costs
    the host little."""
    inputs, outputs = list(task["inputs"]), list(task["outputs"])
    return export_module("graph").function_of(task["graph"], inputs, outputs, axes, device)


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


def transpose(x):
    return x.t().contiguous()


def matmul(a, b):
    return a @ b


def matmul_bias_relu(a, b, bias):
    return torch.relu(a @ b + bias)


def diag_matmul(d, b):
    return torch.diag(d) @ b


def conv3d_norm_min_clamp(x, weight, bias, gamma, beta):
    y = F.group_norm(F.conv3d(x, weight, bias), 1, gamma, beta, 1e-5)
    return torch.clamp(torch.minimum(y, ZERO), 0.0, 1.0)


def attention(q, k, v):
    s = q @ k.transpose(-2, -1) * (1.0 / math.sqrt(q.shape[-1]))
    s += mask(q.shape[-2], q.device)
    return torch.softmax(s, -1) @ v


MASKS = {}


def mask(seq, device):
    """Made once, as a model's buffer is."""
    if seq not in MASKS:
        MASKS[seq] = torch.full((seq, seq), -math.inf, device=device).triu(1)
    return MASKS[seq]


WRITTEN = {f.__name__: f for f in (
    relu, gelu, row_sum, softmax, layernorm, residual_rmsnorm, transpose, matmul, matmul_bias_relu,
    diag_matmul, conv3d_norm_min_clamp, attention
)}


def function(task, axes, device):
    """A function of the task's inputs; axes: the sizes that its attributes follow."""
    if "graph" in task:
        return graph_function(task, axes, device)
    if task["name"] not in WRITTEN:
        raise RuntimeError(f"{task['name']} has no graph, and is not written for PyTorch")
    return WRITTEN[task["name"]]

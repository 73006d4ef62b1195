"""A kernel that Quern found, as a FlashInfer-Bench solution: run(inputs..., outputs...)."""

import base64
import json
import threading

import torch

from . import binaries, plan
from .driver import Driver, Kernels, Prepared

_package = json.loads(binaries.PACKAGE)
_inputs = [spec["name"] for spec in _package["inputs"]]
_outputs = [spec["name"] for spec in _package["outputs"]]
_kernels, _prepared, _lock = {}, {}, threading.Lock()


def _load(device):
    major, minor = torch.cuda.get_device_capability(device)
    fitting = [b for b in _package["binaries"] if b["major"] == major and b["minor"] <= minor]
    if not fitting:
        raise RuntimeError(f"{_package['name']} has no binary for {torch.cuda.get_device_name(device)}")
    best = max(fitting, key=lambda b: b["minor"])
    return Kernels(Driver(), base64.b64decode(binaries.CUBINS[best["file"]]), _package["kernels"])


def _prepare(device, shapes):
    axes = plan.solve_axes(_package, shapes)
    why = plan.unverified(_package, axes)
    if why:
        raise ValueError(f"{_package['name']}: {why}")
    _, buffers, launches = plan.resolve(_package, axes)
    with _lock:
        if device not in _kernels:
            _kernels[device] = _load(device)
    return Prepared(_kernels[device], launches), buffers


def run(*tensors):
    device = tensors[0].device
    for t in tensors:
        if not t.is_contiguous() or t.data_ptr() % 16:
            raise ValueError(f"{_package['name']} expects dense tensors, aligned to 16 bytes")
    key = (device.index,) + tuple(t.shape for t in tensors[:len(_inputs)])
    with torch.cuda.device(device):
        if key not in _prepared:
            _prepared[key] = _prepare(device, [tuple(t.shape) for t in tensors[:len(_inputs)]])
        prepared, sizes = _prepared[key]
        buffers = [torch.empty(n, dtype=torch.uint8, device=device) for n in sizes]
        addresses = {n: t.data_ptr() for n, t in zip(_inputs + _outputs, tensors)}
        addresses.update((b["name"], t.data_ptr()) for b, t in zip(_package["buffers"], buffers))
        prepared.run([addresses[name] for name in prepared.slots],
                     torch.cuda.current_stream(device).cuda_stream)

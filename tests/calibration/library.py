#!/usr/bin/env python3
"""Time the vendor library calls of eager PyTorch on a GPU, as the time model's table of library calls.

    tests/calibration/library.py >library_DEVICE.tsv

A line is: operator, dtype, sizes, microseconds; join.py puts these in the table. The time is the median of
cold runs: the L2 is overwritten before each. The sizes are those of eval/sim/library/library_time.h:

    gemm    batch x m x n x k x transposed b
    conv    (conv_last with channels last, convt and convt_last transposed)
            batch x cin x cout x depth x height x width x kernel (3 sizes) x stride x padding x groups
"""
import random
import statistics
import sys

import torch
import torch.nn.functional as F

torch.backends.cuda.matmul.allow_tf32 = False
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")


def microseconds(call, repeats):
    call()
    samples = []
    for _ in range(repeats):
        flush.zero_()
        torch.cuda._sleep(100000)  # the host is ahead: no gap between the launches of one call
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(samples)


def row(op, dtype, sizes, call, flops):
    try:
        us = microseconds(call, 9 if flops < 1e11 else 3)
    except RuntimeError as e:
        print(f"{op} {dtype} {sizes}: {str(e).splitlines()[0]}", file=sys.stderr)
        torch.cuda.empty_cache()
        return
    print(op, dtype, "x".join(map(str, sizes)), f"{us:.2f}", sep="\t", flush=True)


def gemm(dtype, batch, m, n, k, transposed):
    flops = 2.0 * batch * m * n * k
    if flops > (3e11 if dtype == "float32" else 2e12) or batch * max(m * n, m * k, n * k) > 1 << 29:
        return
    lead = (batch,) if batch > 1 else ()
    a = torch.randn(*lead, m, k, device="cuda", dtype=DTYPES[dtype])
    b = torch.randn(*lead, *((n, k) if transposed else (k, n)), device="cuda", dtype=DTYPES[dtype])
    if transposed:
        b = b.transpose(-1, -2)
    row("gemm", dtype, (batch, m, n, k, int(transposed)), lambda: torch.matmul(a, b), flops)


def conv(dtype, nd, batch, cin, cout, size, kernel, stride, padding, groups, transposed=False):
    out = [(s + 2 * padding - kernel) // stride + 1 for s in size]
    volume = 1
    for s in (size if transposed else out):
        volume *= s
    flops = 2.0 * batch * cout * cin // groups * volume * kernel**nd
    if min(out) < 1 or flops > 1e12 or batch * max(cin, cout) * volume > 1 << 28:
        return
    x = torch.randn(batch, cin, *size, device="cuda", dtype=DTYPES[dtype])
    first, second = (cin, cout // groups) if transposed else (cout, cin // groups)
    w = torch.randn(first, second, *([kernel] * nd), device="cuda", dtype=DTYPES[dtype])
    name = {1: "conv1d", 2: "conv2d", 3: "conv3d"}[nd]
    function = getattr(F, name.replace("conv", "conv_transpose") if transposed else name)
    sizes = [batch, cin, cout, *([1] * (3 - nd)), *size, *([1] * (3 - nd)), *([kernel] * nd)]
    row("convt" if transposed else "conv", dtype, (*sizes, stride, padding, groups),
        lambda: function(x, w, None, stride=stride, padding=padding, groups=groups), flops)
    last, back = [0, *range(2, nd + 2), 1], [0, nd + 1, *range(1, nd + 1)]
    x, w = (t.permute(last).contiguous().permute(back) for t in (x, w))
    row("convt_last" if transposed else "conv_last", dtype, (*sizes, stride, padding, groups),
        lambda: function(x, w, None, stride=stride, padding=padding, groups=groups), flops)


def main():
    p = torch.cuda.get_device_properties(0)
    print(f"# {p.name}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, no TF32")
    for dtype in DTYPES:
        for m in (1, 16, 64, 256, 1024, 2048, 4096, 8192):
            for n in (1, 64, 256, 1024, 4096, 8192):
                for k in (64, 256, 1024, 4096, 16384):
                    gemm(dtype, 1, m, n, k, False)
                    gemm(dtype, 1, m, n, k, True)
        for batch in (4, 16, 64, 256, 1024):
            for m, n in (
                (1, 64),
                (32, 32),
                (64, 64),
                (128, 128),
                (512, 64),
                (64, 512),
                (512, 512),
                (1024, 1024),
                (2048, 2048),
            ):
                for k in (32, 64, 128, 512, 2048):
                    gemm(dtype, batch, m, n, k, False)
                    gemm(dtype, batch, m, n, k, True)
    # those of the tasks' baselines
    gemm("float32", 1, 2048, 2048, 2048, False)
    gemm("float32", 1, 4096, 4096, 4096, False)
    gemm("float32", 32, 2048, 2048, 64, True)
    gemm("float32", 32, 2048, 64, 2048, False)
    conv("float32", 3, 16, 16, 32, [34] * 3, 3, 1, 0, 1)
    random.seed(1)
    channels, batches = (1, 3, 8, 16, 32, 64, 128, 256, 512), (1, 4, 16, 64, 128)
    spaces = {1: (64, 512, 4096, 65536), 2: (8, 16, 32, 64, 128, 256, 512), 3: (8, 16, 32, 64)}
    torch.backends.cudnn.allow_tf32 = False
    for nd, shapes in ((1, 240), (2, 1040), (3, 640)):
        for i in range(shapes):
            cin, cout, kernel = (
                random.choice(channels),
                random.choice(channels),
                random.choice((1, 3, 3, 3, 5, 7)),
            )
            size = [random.choice(spaces[nd])] * nd
            stride, padding = random.choice((1, 1, 1, 2)), random.choice((0, kernel // 2))
            groups = random.choice((1, 1, 1, 1, cin if cin == cout else 1))
            batch, transposed = random.choice(batches), i % 4 == 3
            for dtype in ("float32", "float16") if i % 3 == 0 else ("float32",):
                conv(dtype, nd, batch, cin, cout, size, kernel, stride, padding, groups, transposed)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The kernels that eager PyTorch launches for tasks with a graph, which their baselines are compared with.

    python3 tests/gpu/eager_kernels.py TASKS [TASK_ROOT]

For each task at its timed workload: its name, and a line a kernel: microseconds of one warm run, grid,
block, registers a thread, bytes of shared memory, name. TASKS: tasks, sets or patterns, with commas.
"""
import json
import os
import sys
import tempfile
import types

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import rival  # noqa: E402
import rival_tasks  # noqa: E402


def kernels(run):
    """The profiler's records of the kernels of run(), in their order."""
    run()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    return sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_grad_enabled(False)
    given = types.SimpleNamespace(tasks=sys.argv[1], task_root=(sys.argv + ["tasks"])[2], own=False)
    for subject in rival.of_tasks(given, []):
        with open(subject.given["path"]) as file:
            description = json.load(file)
        print(subject.task, flush=True)
        inputs = rival_tasks.draw(description, subject.axes, "cuda")
        run = rival_tasks.function(description, subject.axes, "cuda")
        for e in kernels(lambda: run(*inputs)):
            a = e["args"]
            print(f"  {e['dur']:10.2f} {a.get('grid')} {a.get('block')} {a.get('registers per thread')} "
                  f"{a.get('shared memory')} {e['name'][:200]}")
        del inputs, run
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

"""Compares imported tasks with their modules in double precision:
python3 tests/modules/compare_graphs.py KERNELBENCH [WORD...]

Each check workload of each task in tasks/kernelbench: the module runs on the inputs that Quern drew, its
parameters replaced by those of the task, in float64. Prints one line a task: the largest difference over the
largest absolute value of the output. Exit status 1 if one is above LIMIT. Runs where torch is, after make
build.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(HERE, "tools"))
import export  # noqa: E402

LIMIT = 1e-10
QUERN_TASK = os.path.join(os.environ.get("QUERN_BUILD", os.path.join(HERE, "build")), "bin", "quern-task")


def task_name(level, stem):
    """As tools/kernelbench.sh names it."""
    return re.sub("_+", "_", re.sub("[^a-z0-9]", "_", f"k{level}_{stem}".lower()))[:63].rstrip("_")


def load(folder, name, spec):
    x = torch.from_numpy(np.load(os.path.join(folder, name + ".npy")))
    return x if spec["dtype"].startswith(("float", "bfloat")) else x.to(getattr(torch, spec["dtype"]))


def run(module, task, folder, examples):
    """The module's results on one workload. Numbers among the example inputs stay as they are."""
    inputs = task["inputs"]
    given = {
        s["parameter"]: load(folder, n, s) for n, s in inputs.items() if isinstance(s.get("parameter"), str)
    }
    free = iter([load(folder, n, s) for n, s in inputs.items() if "parameter" not in s])
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    names = [n for n in given if n in own]
    # what no result depends on: as large as a tensor that had its shape, or as it was
    for n, t in own.items():
        if t.is_meta and n not in given:
            like = next((given[o] for o in names if own[o].shape == t.shape), None)
            given[n] = torch.zeros(t.shape) if like is None else like
            names.append(n)
    for m in module.modules():
        for n, t in [(n, t) for n, t in vars(m).items() if isinstance(t, torch.Tensor) and t.is_meta]:
            setattr(m, n, torch.zeros(t.shape))
    arguments = [next(free) if isinstance(x, torch.Tensor) else x for x in examples]
    out = export.Functional(module, names)([given[n] for n in names], arguments)
    return list(out) if isinstance(out, (tuple, list)) else [out]


def worst(task, folder, results):
    """The largest relative difference; a task that names a result once has it once."""
    most, at = 0.0, iter(results)
    for name in task["outputs"]:
        want, got = next(at).detach().double().numpy(), np.load(os.path.join(folder, name + ".npy"))
        if want.shape != got.shape:
            return float("inf")
        scale = max(float(np.nanmax(np.abs(np.where(np.isfinite(want), want, 0)))), 1e-300)
        same = (want == got) | (np.isnan(want) & np.isnan(got))
        if not same.all():
            most = max(most, float(np.abs(np.where(same, 0, want - got)).max()) / scale)
    return most


def compare(path, task_file):
    task = json.load(open(task_file))
    source = export.KernelBench(path, None)
    examples = export.example_inputs(source, "meta")
    # sizes that are not parameters, such as a causal mask's, are the module's own; it is built in double
    # precision
    torch.set_default_dtype(torch.float64)
    try:
        module = export.build(source, "meta", "eval")
        if any(
            n not in [s.get("parameter") for s in task["inputs"].values()] for n, _ in module.named_buffers()
        ):
            module = export.build(source, "cpu", "eval")
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            subprocess.run([QUERN_TASK, "example", task["name"], "-o", folder], check=True)
            most, n = 0.0, 0
            for work in sorted(glob.glob(os.path.join(folder, task["name"], "*"))):
                most = max(most, worst(task, work, run(module, task, work, examples)))
                n += 1
    finally:
        torch.set_default_dtype(torch.float32)
    return most, n


def main():
    words, bad, count, most = sys.argv[2:], 0, 0, 0.0
    torch.set_num_threads(1)
    for level in (1, 2, 3):
        for path in sorted(glob.glob(os.path.join(sys.argv[1], f"level{level}", "*.py")),
                           key=lambda p: int(re.match(r"\d+", os.path.basename(p))[0])):
            name = task_name(level, os.path.basename(path)[:-3])
            task = os.path.join(HERE, "tasks", "kernelbench", f"level{level}", name, "task.json")
            if not os.path.exists(task) or (words and not any(w in path for w in words)):
                continue
            try:
                difference, n = compare(path, task)
                print(f"{name}\t{n} workloads\t{difference:.2e}", flush=True)
            except Exception as e:
                difference = float("inf")
                print(
                    f"{name}\tfailed\t{type(e).__name__}: {str(e).splitlines()[0][:200] if str(e) else ''}",
                    flush=True,
                )
            bad += not difference <= LIMIT
            count += 1
            most = max(most, difference)
    print(f"{count} tasks, {bad} above {LIMIT}; the largest relative difference is {most:.2e}")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main())

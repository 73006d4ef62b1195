"""Imports the modules of this folder: python3 tests/modules/run.py [-o DIR] [--export] [NAME...]

Each class of each file is exported and imported, and the task's graph is compared with the module on its own
inputs. --export: the generator's first kernel is judged on the simulator and packaged in DIR, too. A line a
module: `imported`, `refused` or `cut` with operator, line and reason, or `WRONG`. Exit status 1 if
one is WRONG. Runs where torch is, after make build; QUERN_BUILD names another build's folder.
"""

import argparse
import glob
import importlib
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import types
import warnings

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BIN = os.path.join(os.environ.get("QUERN_BUILD", os.path.join(ROOT, "build")), "bin")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import export  # noqa: E402
import export_source  # noqa: E402
from export_trace import autocast_regions  # noqa: E402

NEAR = 2e-4  # of the largest element: another order of sums in float32
NEAR_HALF = 2e-2


def modules():
    """[(name, file, class)], in the order of the files."""
    out = []
    for path in sorted(glob.glob(os.path.join(HERE, "*.py"))):
        with open(path, encoding="utf-8") as f:
            kinds = re.findall(r"^class (\w+)\(nn\.Module\)", f.read(), re.M)
        out += [(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", k).lower(), path, k) for k in kinds]
    return out


def part_of_package(name):
    """A file of the PyTorch package by itself."""
    if "quern_package" not in sys.modules:
        package = types.ModuleType("quern_package")
        package.__path__ = [os.path.join(ROOT, "share", "export", "torch")]
        sys.modules["quern_package"] = package
    return importlib.import_module(f"quern_package.{name}")


def archive(path, kind, output):
    """None, or why the module is refused, and the notes."""
    args = argparse.Namespace(source=f"{path}:{kind}", output=output, mode="eval", init=None, input=None,
                              axes=None)
    notes = {}
    try:
        with autocast_regions():
            export.archive(args, notes)
        return None, list(notes)[1:]
    except export_source.Refused as e:
        return str(e), []


def results_of(task, path, kind):
    """(the graph's results, the module's): tensors of both on the module's own inputs."""
    args = argparse.Namespace(init=None, input=None)
    source = export_source.Named(f"{path}:{kind}", args)
    module = export.build(source, "cpu", "eval")
    inputs = export.example_inputs(source, module.forward, "cpu")
    own, free = export.tensors_of(module), iter(inputs.tensors)
    values = {}
    for name, spec in task["inputs"].items():
        key = spec.get("parameter")
        values[name] = (own[name if key is True else key] if key else next(free)).detach()
    graph, plan = part_of_package("graph"), part_of_package("plan")
    specs = [{"name": n, **s, "shape": [str(d) for d in s["shape"]]} for n, s in task["inputs"].items()]
    axes = plan.solve_axes({"axes": task["axes"], "inputs": specs}, [v.shape for v in values.values()])
    with torch.no_grad():
        want = module(*export_source.again(inputs.args, iter(inputs.tensors)), **export_source.again(
            inputs.keywords, iter(inputs.tensors[len(list(_tensors(inputs.args))):])))
        given = dict(values)
        for line in task["graph"]:
            graph.run_line(line, given, axes)
    named = []
    export_source.flat(want, "", named, [])
    places = task.get("results", range(len(task["outputs"])))
    outputs = [given[n] for n in task["outputs"]]
    return [outputs[p] if isinstance(p, int) else values[p] for p in places], [t for _, t in named]


def _tensors(values):
    return [t for t in torch.utils._pytree.tree_leaves(values) if isinstance(t, torch.Tensor)]


def apart(got, want):
    """Why the graph's results are not the module's, or None."""
    if len(got) != len(want):
        return f"{len(got)} results, {len(want)} expected"
    for g, w in zip(got, want):
        near = NEAR_HALF if w.dtype in (torch.float16, torch.bfloat16) else NEAR
        if g.shape != w.shape:
            return f"a result of the shape {list(g.shape)}, {list(w.shape)} expected"
        far, most = float((g.double() - w.double()).abs().max()), float(w.double().abs().max())
        if not far <= near * max(most, 1e-30):
            return f"a result {far:.3g} from the module's, of at most {most:.3g}"
    return None


def run(command, every=False):
    """The exit status and the last line that is said, or every one where it fails or warns."""
    p = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    own = p.stdout + p.stderr if every and p.returncode else p.stderr or p.stdout
    lines = own.strip().splitlines()
    return p.returncode, "; ".join(lines if every else lines[-1:])


def package_of(tasks, name, folder):
    """What became of the generator's first kernel."""
    kernel = os.path.join(folder, f"{name}.cu")
    status, said = run(["sh", "-c", f"'{BIN}/quern-kernel' --task {name} --task-root '{tasks}' > '{kernel}'"])
    if status:
        return f"no kernel: {said}"
    status, said = run([f"{BIN}/quern-export", "--task", name, "--task-root", tasks, "--to", "torch", "-o",
                        os.path.join(folder, name), kernel], True)
    return f"not packaged: {said}" if status else "packaged"


def one(name, path, kind, folder, package):
    """(word, text) of a module."""
    tasks, file = os.path.join(folder, "tasks"), os.path.join(folder, f"{name}.pt2")
    refused, notes = archive(path, kind, file)
    if refused:
        return "refused", refused
    status, said = run([f"{BIN}/quern-import", file, "-o", tasks, "--name", name], True)
    if status:
        return "refused", said.replace(f"{file}: ", "")
    with open(os.path.join(tasks, name, "task.json"), encoding="utf-8") as f:
        task = json.load(f)
    if "cut" in task["tags"]:
        return "cut", "; ".join([*notes, said])
    why = apart(*results_of(task, path, kind))
    if why:
        return "WRONG", why
    told = package_of(tasks, name, folder) if package else f"{len(task['graph'])} lines"
    told += "; degenerate" if "degenerate" in task else ""
    return ("WRONG" if told[:2] == "no" else "imported"), told


def main():
    p = argparse.ArgumentParser(description="Imports the modules of this folder.")
    p.add_argument("-o", "--output", help="folder for tasks and packages; else one that is removed")
    p.add_argument("--export", action="store_true", help="package the generator's first kernel, too")
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    counts = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.output or temporary
        os.makedirs(folder, exist_ok=True)
        for name, path, kind in modules():
            if args.names and name not in args.names:
                continue
            try:
                word, text = one(name, path, kind, folder, args.export)
            except Exception as e:  # of the module, not of this file: the others go on
                word, text = "WRONG", f"{type(e).__name__}: {e}".splitlines()[0]
            counts[word] = counts.get(word, 0) + 1
            print(f"{word}\t{name}\t{text}", flush=True)
    print(", ".join(f"{n} {word}" for word, n in counts.items()))
    return 1 if counts.get("WRONG") else 0


if __name__ == "__main__":
    sys.exit(main())

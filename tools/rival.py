#!/usr/bin/env python3
"""Times of PyTorch on this GPU: eager at a precision, torch.compile, and its mode="max-autotune".

    python3 tools/rival.py model.py                      a file with Model, get_inputs and get_init_inputs
    python3 tools/rival.py package.module:Class --init '[1024]' --input 'float32[128,1024]'
    python3 tools/rival.py FOLDER --output rivals.tsv    all such files below it
    python3 tools/rival.py --tasks relu,kernelbench/level1 --output rivals.tsv      tasks, by their graphs

One row a subject, precision and way: median and 95% interval of the times (us), and of the ratios of eager's
time to the way's. Ways are run in turn, in random order. Before each run L2 is filled by reading twice its
size, and the GPU is kept busy until all launches are enqueued, so that the time is the GPU's. --output: rows
are appended, what has a row is left out, and --seconds ends the call, so that the same command goes on.
"""

import argparse
import glob
import json
import os
import re
import sys

import rival_rows

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PRECISIONS = ("default", "highest", "high", "medium")
WAYS = ("eager", "compile", "max-autotune")


# ---- subjects ----

def kernelbench_name(path):
    """The task that tools/kernelbench.sh makes of the file, where its folder is a level; else the stem."""
    stem = os.path.splitext(os.path.basename(path))[0]
    level = re.fullmatch(r"level(\d)", os.path.basename(os.path.dirname(os.path.abspath(path))))
    if not level:
        return stem
    return re.sub(r"_+", "_", re.sub(r"[^a-z0-9]", "_", f"k{level[1]}_{stem}".lower()))[:63].rstrip("_")


def own_axes(workload):
    """The module's own sizes, which the note of a smaller workload names."""
    note = re.findall(r"(\w+) is \d+ of the module's (\d+)", workload.get("note", ""))
    return {**workload["axes"], **{name: int(size) for name, size in note}}


def time_workloads(path):
    with open(path) as file:
        return [w for w in json.load(file)["workloads"] if w["role"] == "time"]


def task_axes(root, name):
    files = glob.glob(os.path.join(root, "**", name, "task.json"), recursive=True)
    return own_axes(time_workloads(files[0])[0]) if files else {}


def natural(path):
    return [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", path)]


def of_sources(given, ways):
    """Subjects of the files, folders and classes of the command line; those of a high level first, since they
    compile longest."""
    files = []
    for source in given.source:
        found = glob.glob(os.path.join(source, "**", "*.py"), recursive=True) if os.path.isdir(source) else []
        files += sorted(found, key=natural) or [source]
    files.sort(key=lambda f: "level3" not in f)
    for file in files:
        name = file if ":" in file else kernelbench_name(file)
        source = {"source": file, "init": given.init, "input": given.input}
        yield rival_rows.Subject(name, task_axes(given.task_root, name), source, ways)


def of_tasks(given, ways):
    for word in filter(None, given.tasks.split(",")):
        folders = glob.glob(os.path.join(given.task_root, word)) or glob.glob(
            os.path.join(given.task_root, "**", word), recursive=True
        )
        files = [f for d in folders for f in glob.glob(os.path.join(d, "**", "task.json"), recursive=True)]
        if not files:
            sys.exit(f"rival.py: expected a task, a set or a pattern below {given.task_root}, found {word}")
        for path in sorted(files, key=natural):
            for workload in time_workloads(path):
                name = os.path.basename(os.path.dirname(path))
                axes = own_axes(workload) if given.own else workload["axes"]
                yield rival_rows.Subject(name, axes, {"path": path}, ways)


def words(text, known, option):
    chosen = text.split(",")
    for word in chosen:
        if word not in known:
            sys.exit(f"rival.py: {option}: expected some of {', '.join(known)}, found {word}")
    return chosen


def chosen_ways(given):
    """Eager at each precision; what is compiled at the first alone."""
    precisions = words(given.precision, PRECISIONS, "--precision")
    ways = words(given.ways, WAYS, "--ways")
    return [
        (p, w) for p in precisions for w in ways
        if w == "eager" or p == precisions[0]
    ]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("source", nargs="*", help="FILE.py, FOLDER or package.module:Class")
    options.add_argument("--init", metavar="JSON", help="arguments of Class: a list or an object")
    options.add_argument("--input", action="append", metavar="TYPE[N,...]", help="of Class; repeat it")
    options.add_argument("--tasks", default="", help="tasks, sets or patterns, with commas")
    options.add_argument("--own", action="store_true", help="tasks at their module's own sizes")
    options.add_argument("--precision", default="default", help="some of " + ",".join(PRECISIONS))
    options.add_argument("--ways", default="eager,compile", help="some of " + ",".join(WAYS))
    options.add_argument("--output", metavar="FILE.tsv", help="table of rows; what it has is left out")
    options.add_argument("--again", action="store_true", help="rows with an error are measured again")
    options.add_argument("--seconds", type=float, default=1e9, help="the call ends after them")
    options.add_argument("--limit", type=float, default=150, help="seconds of one, without its waits")
    options.add_argument("--jobs", type=int, default=min(12, os.cpu_count()), help="compiled at once")
    options.add_argument("--span", type=float, default=0.5, help="seconds of one subject's timed runs")
    options.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: to try it")
    options.add_argument("--task-root", default=os.path.join(ROOT, "tasks"))
    options.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.worker:
        import rival_worker
        return rival_worker.serve(given.span, given.device)
    if not (given.source or given.tasks):
        options.error("a FILE.py, a FOLDER, a package.module:Class or --tasks is needed")
    ways = chosen_ways(given)
    subjects = [*of_sources(given, ways), *of_tasks(given, ways)]
    command = [sys.executable, os.path.abspath(__file__), "--worker", "--span", str(given.span),
               "--device", given.device]
    left = rival_rows.Driver(command, subjects, given).run()
    if left:
        print(f"rival.py: {left} subjects are left; the same command with --output goes on", file=sys.stderr)
    return 3 if left else 0


if __name__ == "__main__":
    sys.exit(main())

"""The side of rival.py that runs PyTorch: it builds a subject, compiles it beside other workers, and measures
it with the GPU to itself.

What is compiled is not run until the worker has the GPU, so that no worker's kernels disturb the times, or
the choices that the compiler makes by timing.
"""

import contextlib
import fcntl
import functools
import gc
import json
import math
import os
import random
import struct
import sys
import time
import types

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # the driver has a worker for each core
import torch  # noqa: E402

import export  # noqa: E402
from export_source import arguments_of  # noqa: E402
import rival_tasks  # noqa: E402

LEAST_RUNS, MOST_RUNS = 7, 60
DIFFERENCE = 2e-2  # of the largest result, above which two ways do not compute the same thing
LEAST = 1e-4       # a smaller result is what rounding leaves of larger numbers
SLEEP_HZ = 2e9     # of torch.cuda._sleep, at most
PRECISION = {"highest": ("highest", False), "high": ("high", True), "medium": ("medium", True)}


class NotYet(Exception):
    """A compiled function is complete, and was to be run before its time."""


def set_precision(name):
    """Of matrix products, and whether cuDNN may use TF32; PyTorch's defaults are highest and True."""
    matmul, cudnn_tf32 = PRECISION.get(name, ("highest", True))
    torch.set_float32_matmul_precision(matmul)
    torch.backends.cudnn.allow_tf32 = cudnn_tf32


# ---- the clock ----

class Lock:
    """The lock of a GPU that the programs of Quern share (gpu/lock.c), held exclusively."""

    ENTRY, HOLD = 0, 1  # bytes of the file

    def __init__(self, uuid):
        folder = os.environ.get("QUERN_LOCK_DIR") or "/tmp"
        name = f"quern-gpu-{uuid if uuid.startswith('GPU-') else 'GPU-' + uuid}.lock"
        self.fd = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)

    def set(self, command, kind, byte):
        fcntl.fcntl(self.fd, command, struct.pack("hhqqi4x", kind, os.SEEK_SET, byte, 1, 0))

    def take(self):
        for byte in (self.ENTRY, self.HOLD):
            self.set(fcntl.F_OFD_SETLKW, fcntl.F_WRLCK, byte)

    def free(self):
        for byte in (self.HOLD, self.ENTRY):
            self.set(fcntl.F_OFD_SETLK, fcntl.F_UNLCK, byte)


class Cuda:
    """The GPU's clock."""

    def __init__(self):
        if not torch.cuda.is_available():
            sys.exit("rival.py: PyTorch sees no GPU")
        properties = torch.cuda.get_device_properties(0)
        self.name, self.device = properties.name, "cuda"
        self.lock = Lock(str(properties.uuid))
        self.flush = torch.zeros(2 * properties.L2_cache_size // 4, dtype=torch.int32, device="cuda")

    def wait(self):
        torch.cuda.synchronize()

    def time(self, f, inputs, host_s):
        """Microseconds of one run that begins with a cold L2. host_s: what the host needs to enqueue it."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.flush.sum()  # read, as Quern does: lines that were written would be written back while f runs
        torch.cuda._sleep(int((100e-6 + 1.5 * min(host_s, 0.05)) * SLEEP_HZ))
        start.record()
        f(*inputs)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e3

    def release(self):
        torch.cuda.empty_cache()


class Cpu:
    """Host time, to try this program where there is no GPU."""

    name, device = "CPU", "cpu"

    def __init__(self):
        self.lock = Lock("GPU-none")

    def wait(self):
        pass

    def time(self, f, inputs, host_s):
        begin = time.perf_counter()
        f(*inputs)
        return (time.perf_counter() - begin) * 1e6

    def release(self):
        pass


# ---- subjects ----

def of_source(given, device):
    """A module of a file or a class, in eval mode, and its inputs."""
    options = types.SimpleNamespace(init=given.get("init"), input=given.get("input"), axes=None)
    with torch.device(device):
        torch.manual_seed(0)
        source = export.Named(given["source"], options)
        module = source.build().eval().to(device)
        args, named = torch.utils._pytree.tree_map(
            lambda x: x.to(device) if isinstance(x, torch.Tensor) else x, arguments_of(source.inputs()))
        return functools.partial(module, **named) if named else module, list(args)


def of_task(given, axes, device):
    with open(given["path"]) as file:
        task = json.load(file)
    return rival_tasks.function(task, axes, device), rival_tasks.draw(task, axes, device)


# ---- compilation ----

def held_back(*_):
    raise NotYet


@contextlib.contextmanager
def not_run(gpu):
    """Compiled functions raise NotYet, and what the compiler times it times with the GPU to itself."""
    from torch._inductor import output_code
    from torch._inductor.runtime import benchmarking

    kind, own = output_code.CompiledFxGraph, output_code.CompiledFxGraph.__call__
    clock = type(benchmarking.benchmarker)
    timed = clock.benchmark_gpu

    def alone(*args, **keywords):
        with gpu:
            return timed(*args, **keywords)

    kind.__call__, clock.benchmark_gpu = held_back, alone
    try:
        yield
    finally:
        kind.__call__, clock.benchmark_gpu = own, timed


def compile_way(f, inputs, precision, way, gpu):
    set_precision(precision)
    compiled = torch.compile(f, **({"mode": way} if way == "max-autotune" else {}))
    try:
        with not_run(gpu):
            compiled(*inputs)
    except NotYet:
        pass
    return compiled


# ---- measuring ----

class Gpu:
    """The turn of this worker, which the driver gives to one at a time, and the GPU's lock. It may be entered
    again."""

    def __init__(self, ask, answer, lock):
        self.ask, self.answer, self.lock, self.depth = ask, answer, lock, 0

    def __enter__(self):
        if not self.depth:
            self.ask({"want": 1})
            self.answer()
            self.lock.take()
        self.depth += 1

    def __exit__(self, *error):
        self.depth -= 1
        if not self.depth:
            self.lock.free()
            self.ask({"done": 1})


def reason(e):
    return (str(e).strip().splitlines() or [type(e).__name__])[0][:200] or type(e).__name__


def tensors(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for r in result for t in tensors(r)] if isinstance(result, (list, tuple)) else []


def check(one, other):
    """Both ways compute the same thing, or their comparison means nothing."""
    for a, b in zip(tensors(one), tensors(other), strict=True):
        a, b = a.float(), b.float()
        off = (a - b).abs_().nan_to_num_(0, 0, 0).max().item() if a.numel() else 0
        most = a.abs().nan_to_num_(0, 0, 0).max().item() if a.numel() else 0
        if not off <= DIFFERENCE * max(most, LEAST):
            raise RuntimeError(f"the results differ from eager's by {off:.3g}; the largest is {most:.3g}")


def interval(values):
    """Median, and the 95% interval of it by order statistics."""
    v, half = sorted(values), 1.96 * math.sqrt(len(values)) / 2
    low, high = max(0, math.floor(len(v) / 2 - half) - 1), min(len(v), math.ceil(len(v) / 2 + half)) - 1
    middle = (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2
    return middle, v[low], v[max(high, low)]


class Subject:
    def __init__(self, question, clock, gpu):
        self.clock, self.gpu, self.ways = clock, gpu, [tuple(w) for w in question["ways"]]
        self.runs, self.errors, self.host_s, self.times = {}, {}, {}, {}
        with gpu:
            given = question["given"]
            self.module, self.inputs = (
                of_task(given, question["axes"], clock.device) if "path" in given
                else of_source(given, clock.device)
            )
            clock.wait()

    def prepare(self):
        for precision, way in self.ways:
            try:
                self.runs[precision, way] = (
                    self.module if way == "eager"
                    else compile_way(self.module, self.inputs, precision, way, self.gpu)
                )
            except torch.cuda.OutOfMemoryError:
                raise
            except Exception as e:
                self.errors[precision, way] = reason(e)
            # Ratios are of eager at the same precision, measured in the same turns.
            self.runs.setdefault((precision, "eager"), self.module)

    def first_runs(self):
        """Twice each: kernels are chosen among a few at first. Compiled ways must agree with eager."""
        for key in sorted(self.runs, key=lambda k: k[1] != "eager"):
            try:
                set_precision(key[0])
                for _ in range(2):
                    result = self.runs[key](*self.inputs)
                    self.clock.wait()
                if key[1] != "eager":
                    check(self.module(*self.inputs), result)
                begin = time.perf_counter()
                result = self.runs[key](*self.inputs)
                self.host_s[key] = time.perf_counter() - begin
                del result
                self.clock.wait()
            except torch.cuda.OutOfMemoryError:
                raise
            except Exception as e:
                self.errors[key] = reason(e)
        self.runs = {k: f for k, f in self.runs.items() if k not in self.errors}

    def measure(self, span):
        draw, begin = random.Random(1), time.monotonic()
        self.times = {key: [] for key in self.runs}
        keys = list(self.runs)
        for run in range(MOST_RUNS + 1):
            if run > LEAST_RUNS and time.monotonic() - begin > span:
                break
            for key in draw.sample(keys, len(keys)):
                set_precision(key[0])
                us = self.clock.time(self.runs[key], self.inputs, self.host_s[key])
                if run:  # the first warms up
                    self.times[key].append(us)

    def row(self, key):
        row = {"precision": key[0], "way": key[1]}
        if key in self.errors:
            return {**row, "error": self.errors[key]}
        times, eager = self.times[key], self.times.get((key[0], "eager"))
        row.update(zip(("us", "us_low", "us_high"), interval(times)), runs=len(times))
        if eager and key[1] != "eager":
            ratios = [e / t for e, t in zip(eager, times)]
            row.update(zip(("ratio", "ratio_low", "ratio_high"), interval(ratios)))
        return row


def rows(question, clock, gpu, span):
    subject = Subject(question, clock, gpu)
    subject.prepare()
    with gpu, nice_above():
        subject.first_runs()
        subject.measure(span)
    return [subject.row(tuple(key)) for key in question["ways"]]


@contextlib.contextmanager
def nice_above():
    """Before those that compile, where this process may: the host must not be late with a launch."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, 0)


def answer(question, clock, gpu, span):
    try:
        return rows(question, clock, gpu, span)
    except Exception as e:  # out of memory, or an operator that torch refuses here
        if "CUDA error" in str(e):
            raise  # this process cannot go on
        return [{"precision": p, "way": w, "error": reason(e)} for p, w in question["ways"]]


def serve(span, device):
    """One line on stdout for each that is read and each turn; nothing else writes there."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    clock = Cpu() if device == "cpu" else Cuda()
    torch.set_grad_enabled(False)

    def say(what):
        print(json.dumps(what), file=out, flush=True)

    gpu = Gpu(say, sys.stdin.readline, clock.lock)
    say({"gpu": clock.name, "torch": torch.__version__})
    for line in iter(sys.stdin.readline, ""):
        found = answer(json.loads(line), clock, gpu, span)
        torch._dynamo.reset()
        gc.collect()
        clock.release()
        say({"rows": found})

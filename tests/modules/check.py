"""One package inside a model of its module's kind: tests/modules/check.py NAME FILE CLASS FOLDER RESULTS.
FOLDER/NAME is the package. A line a check in RESULTS: module, check, ok / FAIL / skip, what. With --time
before NAME: what a call costs on the host."""

import copy
import dataclasses
import importlib
import io
import os
import pickle
import statistics
import subprocess
import sys
import time
import traceback
import types
import warnings

import torch
from torch.utils import _pytree as pytree

ROOT = os.getcwd()
sys.path[:0] = [os.path.join(ROOT, "tools")]
import export  # noqa: E402
import export_source  # noqa: E402

timing = sys.argv[1] == "--time"
name, path, kind, folder, results = sys.argv[-5:]
sys.path.insert(0, folder)
device = os.environ.get("DEVICE", "cuda")
if device == "cpu":  # as far as it goes without a GPU: launches are the task's graph
    sys.path.append(os.path.join(ROOT, "tests", "fixtures", "export"))
    import stub

    stub.one_device()
out = open(results, "a", buffering=1)


def say(check, word, what=""):
    out.write("\t".join((name, check, word, " ".join(str(what).split())[:400])) + "\n")


RECORDS = []  # the dataclasses of the module's file, which PyTorch has not registered


def record(value):
    return type(value) in RECORDS


def mapped(f, value):
    """The same with f of each leaf, in dataclasses too."""
    def each(leaf):
        if not record(leaf):
            return f(leaf)
        return type(leaf)(**{x.name: mapped(f, getattr(leaf, x.name)) for x in dataclasses.fields(leaf)})

    return pytree.tree_map(each, value, is_leaf=record)


class Around(torch.nn.Module):
    """The module among others: what it gives is scaled by a parameter."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.scale = inner, torch.nn.Parameter(torch.tensor(1.5))

    def forward(self, *args, **named):
        return mapped(lambda t: t * self.scale.to(t.dtype) if isinstance(t, torch.Tensor)
                               and t.is_floating_point() else t, self.inner(*args, **named))


def leaves(value):
    flat = []
    mapped(lambda leaf: flat.append(leaf) if isinstance(leaf, torch.Tensor) else None, value)
    return flat


def near(got, want, times=1.0):
    got, want = leaves(got), leaves(want)
    if len(got) != len(want):
        return f"{len(got)} results, {len(want)} expected"
    for i, (g, w) in enumerate(zip(got, want)):
        if g.dtype != w.dtype or g.shape != w.shape or g.device != w.device:
            return (f"result {i} is {g.dtype} {list(g.shape)} {g.device}, "
                    f"not {w.dtype} {list(w.shape)} {w.device}")
        if g.numel() == 0 or not w.is_floating_point():
            if not torch.equal(g, w) and (g != w).float().mean() > 0.01:
                return f"result {i} differs"
            continue
        rate = {torch.float16: 2e-2, torch.bfloat16: 4e-2}.get(w.dtype, 2e-3) * times
        a, b = (t.double().nan_to_num(posinf=1e30, neginf=-1e30) for t in (g, w))
        far, most = float((a - b).abs().max()), float(b.abs().max())
        if not far <= rate * max(most, 1e-6):
            return f"result {i}: {far:.3g} from the original's, of at most {most:.3g}"
    return None


def moved(value, to=device, dtype=None):
    def move(t):
        if not isinstance(t, torch.Tensor):
            return t
        t = t.to(to)
        return t.to(dtype) if dtype and t.dtype in (torch.float32, torch.float16, torch.bfloat16) else t
    return mapped(move, value)


source = export_source.Named(f"{path}:{kind}", types.SimpleNamespace(init=None, input=None))
plain_inner = export.build(source, "cpu", "eval").to(device)
RECORDS += [k for k in vars(sys.modules[type(plain_inner).__module__]).values()
            if isinstance(k, type) and dataclasses.is_dataclass(k)]
if any(isinstance(m, torch.nn.Conv2d) and not m.weight.is_contiguous() for m in plain_inner.modules()):
    plain_inner = plain_inner.to(memory_format=torch.channels_last)
given = source.inputs()
args, named = export_source.arguments_of(given)
if not isinstance(given, dict) and len(given) == 2 and isinstance(given[1], dict):
    args, named = list(given), {}
args, named = moved(args), moved(named)
module = stub.load(name) if device == "cpu" and not timing else importlib.import_module(name)
package = module._package
if device == "cpu" and timing:  # over a library whose launches do nothing: first calls are not compared
    importlib.import_module(f"{name}.driver").Driver.__init__.__defaults__ = (os.environ["NULL_DRIVER"],)
    binary = os.path.join(folder, name, package.json["binaries"][-1]["file"])
    type(package)._cubin = lambda self, device: open(binary, "rb").read()
    type(package).apart = lambda *given: None
    package.device_type = "cpu"
    package.implement(package._cuda, "CPU")
plain = Around(plain_inner).to(device).eval()
fast = copy.deepcopy(plain)
fast.inner = module.Module(fast.inner)


def launches(model, a=args, n=named):
    """None where the model's call is the kernels', which the compiled forward takes by itself."""
    package.warned = False
    with warnings.catch_warnings(record=True) as heard, torch.no_grad():
        warnings.simplefilter("always")
        first, second = model(*a, **n), model(*a, **n)
    bound = model.inner._quern_bound
    said = [str(w.message) for w in heard if "quern." in str(w.message)]
    return second, said[0] if said else None if bound.calls or bound.checked else "no call was noted"


def kernels(model, reference=plain, a=args, n=named):
    got, why = launches(model, a, n)
    with torch.no_grad():
        return why or near(got, reference(*a, **n))


def check(title):
    def wrap(f):
        try:
            why = f()
        except Exception as e:
            why = f"{type(e).__name__}: {e}"
            traceback.print_exc()
        word = "ok" if why is None else "skip" if str(why).startswith("skip") else "FAIL"
        say(title, word, why or "")
        if word == "FAIL":
            print(name, title, why, file=sys.stderr)
        return f
    return wrap


def plain_raises(model, a=args, n=named):
    try:
        with torch.no_grad():
            model(*a, **n)
        return None
    except Exception as e:
        return f"skip: the original raises {type(e).__name__}: {e}"


def unpicklable():
    """What the original cannot do: the dumps of some of PyTorch's types, and of a library's hooks."""
    plain(*args, **named)
    try:
        pickle.loads(pickle.dumps(plain))
    except Exception as e:
        return f"skip: the original raises {type(e).__name__}: {e}"
    return None


def checks():
    @check("first and second call")
    def _():
        return kernels(fast)

    @check("state_dict")
    def _():
        a, b = plain.state_dict(), fast.state_dict()
        if list(a) != list(b):
            return f"keys {list(b)}"
        return None if all(torch.equal(a[k].float(), b[k].float()) for k in a) else "values differ"

    @check("parameters")
    def _():
        a, b = dict(plain.named_parameters()), dict(fast.named_parameters())
        return None if list(a) == list(b) and [p.requires_grad for p in a.values()] == [
            p.requires_grad for p in b.values()] else "names differ"

    @check("checkpoint")
    def _():
        other = copy.deepcopy(plain)
        with torch.no_grad():
            for p in other.parameters():
                if p.is_floating_point():
                    p.mul_(1.05)
        file = io.BytesIO()
        torch.save(other.state_dict(), file)
        file.seek(0)
        again = copy.deepcopy(fast)
        again.load_state_dict(torch.load(file))
        return kernels(again, other)

    @check("torch.save")
    def _():
        why = unpicklable()
        if why:
            return why
        file = io.BytesIO()
        torch.save(fast, file)
        file.seek(0)
        return kernels(torch.load(file, weights_only=False))

    @check("pickle")
    def _():
        why = unpicklable()
        if why:
            return why
        return kernels(pickle.loads(pickle.dumps(fast)))

    @check("deepcopy")
    def _():
        again = copy.deepcopy(fast)
        with torch.no_grad():
            for p in again.parameters():
                p.mul_(1.1)
        return kernels(again, _scaled(plain)) or kernels(fast)

    @check("to cpu and back")
    def _():
        again, cpu = copy.deepcopy(fast).to("cpu"), copy.deepcopy(plain).to("cpu")
        why = plain_raises(cpu, moved(args, "cpu"), moved(named, "cpu"))
        if why is None:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                why = near(again(*moved(args, "cpu"), **moved(named, "cpu")),
                           cpu(*moved(args, "cpu"), **moved(named, "cpu")))
        return why if why and not why.startswith("skip") else kernels(again.to(device))

    for title, dtype in (("half", torch.float16), ("bfloat16", torch.bfloat16), ("double", torch.float64)):
        @check(title)
        def _():
            a, b = copy.deepcopy(plain).to(dtype), copy.deepcopy(fast).to(dtype)
            if dtype is torch.float16:
                a, b = copy.deepcopy(plain).half(), copy.deepcopy(fast).half()
            x, n = moved(args, device, dtype), moved(named, device, dtype)
            why = plain_raises(a, x, n)
            if why:
                return why
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return near(b(*x, **n), a(*x, **n), 2)

    @check("autocast")
    def _():
        with torch.no_grad(), warnings.catch_warnings(), torch.autocast(device, torch.bfloat16):
            warnings.simplefilter("ignore")
            why = plain_raises(plain)
            return why or near(fast(*args, **named), plain(*args, **named), 2)

    @check("training step")
    def _():
        a, b = copy.deepcopy(plain).train(), copy.deepcopy(fast).train()
        try:
            grads = [_step(a)]
        except RuntimeError as e:
            return f"skip: the original raises {type(e).__name__}: {e}"
        grads.append(_step(b))
        if [g is None for g in grads[0]] != [g is None for g in grads[1]]:
            return "other tensors have gradients"
        why = near([g for g in grads[1] if g is not None], [g for g in grads[0] if g is not None], 5)
        return why or kernels(b.eval(), a.eval())

    @check("other sizes")
    def _():
        batch = leaves((args, named))[0].shape[0]
        halve = lambda t: t[: max(1, batch // 2)] if isinstance(t, torch.Tensor) and t.dim() and \
            t.shape[0] == batch else t
        x, n = mapped(halve, args), mapped(halve, named)
        if any(not t.is_floating_point() and t.dtype != torch.bool and t.shape[:1] != (batch,)
               for t in leaves((args, named))):
            return "skip: indices into what is halved"
        why = plain_raises(plain, x, n)
        if why:
            return why
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = plain(*x, **n)
            return near(fast(*x, **n), want) or near(fast(*x, **n), want) or kernels(fast)

    @check("other strides")
    def _():
        def strided(t):
            return torch.stack((t, t), -1)[..., 0] if isinstance(t, torch.Tensor) and t.dim() else t
        x, n = mapped(strided, args), mapped(strided, named)
        why = plain_raises(plain, x, n)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return why or near(fast(*x, **n), plain(*x, **n))

    @check("CUDA graph")
    def _():
        if device != "cuda":
            return "skip: no GPU"
        static = mapped(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, (args, named))
        with torch.no_grad():
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    fast(*static[0], **static[1])
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            package.warned = False
            with torch.cuda.graph(graph):
                y = fast(*static[0], **static[1])
            for t in leaves(static):
                if t.is_floating_point() and t.dtype != torch.float8_e4m3fn:
                    t.mul_(0.9)
            graph.replay()
            torch.cuda.synchronize()
            return "the original's way" if package.warned else near(y, plain(*static[0], **static[1]))

    @check("torch.compile")
    def _():
        graphs = []

        def backend(graph, inputs):
            graphs.append(graph.code)
            return graph.forward

        torch._dynamo.reset()
        with torch.no_grad():
            got = torch.compile(fast, fullgraph=True, backend=backend)(*args, **named)
            if not any(f"quern.{package.name}" in g or f"quern_{package.name}" in g for g in graphs):
                return "the operator is not in the graph"
            why = near(got, plain(*args, **named))
            torch._dynamo.reset()
            return why or near(torch.compile(fast, fullgraph=True)(*args, **named), plain(*args, **named))

    @check("torch.export")
    def _():
        with torch.no_grad():
            try:
                own = torch.export.export(plain, tuple(args), dict(named), strict=False)
                file = io.BytesIO()
                torch.export.save(own, file)
                file.seek(0)
                torch.export.load(file)
            except Exception as e:
                return f"skip: the original raises {type(e).__name__}: {e}"
            program = torch.export.export(fast, tuple(args), dict(named), strict=False)
            if f"quern.{package.name}" not in str(program.graph):
                return "the operator is not in the graph"
            file = io.BytesIO()
            torch.export.save(program, file)
            file.seek(0)
            return near(torch.export.load(file).module()(*args, **named), plain(*args, **named))

    @check("opcheck")
    def _():
        tensors = [t.detach().contiguous() for t in type(fast.inner)._quern_given(fast.inner, *args, **named)]
        # Its test of the schema multiplies, which PyTorch has not for float8.
        kinds = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
        kinds += () if any("float8" in str(t.dtype) for t in tensors) else ("test_schema",)
        torch.library.opcheck(package.operator, package.arguments(tuple(tensors)), test_utils=kinds)

    @check("hook")
    def _():
        heard = []
        handle = fast.inner.register_forward_hook(lambda *a: heard.append(1))
        why = kernels(fast)
        handle.remove()
        return why or (None if heard else "not called")

    @check("test_package.py")
    def _():
        test = os.path.join(folder, name, "test_package.py")
        p = subprocess.run([sys.executable, test], capture_output=True,
                           text=True, timeout=110)
        text = p.stdout.strip().splitlines()
        wrong = [t for t in text if "WRONG" in t]
        say("test_package.py times", "note", "; ".join(t for t in text if " us" in t) or text[-1:])
        print(p.stderr[-2000:], file=sys.stderr)
        return None if p.returncode == 0 and not wrong else (wrong or [p.stderr[-300:]])[0]


def _leaf(t):
    if not isinstance(t, torch.Tensor) or t.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        return t
    return t.detach().clone().requires_grad_(True)


def _step(model):
    """The gradients of parameters and inputs, and a step by them."""
    torch.manual_seed(3)
    x, n = mapped(_leaf, args), mapped(_leaf, named)
    results = [t for t in leaves(model(*x, **n)) if t.is_floating_point()]
    if not results:
        raise RuntimeError("it has no result with gradients")
    sum(t.float().square().mean() for t in results).backward()
    torch.optim.SGD(model.parameters(), 1e-3).step()
    return [p.grad for p in model.parameters()] + [t.grad for t in leaves((x, n))]


def _scaled(model):
    other = copy.deepcopy(model)
    with torch.no_grad():
        for p in other.parameters():
            p.mul_(1.1)
    return other


# ---- the boundary ----

_QUEUED = 500  # launches that wait for the GPU in a round: the driver takes some 1,000 before it waits

def in_turns(calls, n, rounds=60):
    """Microseconds of the host a call, of rounds in which each has its turn behind an idle GPU: another
    program's work or a slower clock meets all of them."""
    times = [[] for _ in calls]
    for _ in range(rounds):
        for call, kept in zip(calls, times):
            if device == "cuda":
                torch.cuda.synchronize()
            begin = time.perf_counter_ns()
            for _ in range(n):
                call()
            kept.append((time.perf_counter_ns() - begin) / n / 1000)
    return times


def host(call, n=50, rounds=12):
    """The least of some rounds."""
    return min(in_turns([call], n, rounds)[0])


def in_a_row(steps):
    """A function of the steps without a loop, whose turns cost some tenths of a microsecond each."""
    scope, lines = {}, []
    for i, (f, given, named) in enumerate(steps):
        scope[f"f{i}"] = f
        scope.update((f"a{i}_{k}", v) for k, v in enumerate(given))
        scope.update((f"n{i}_{k}", v) for k, v in named.items())
        texts = [f"a{i}_{k}" for k in range(len(given))] + [f"{k}=n{i}_{k}" for k in named]
        lines.append(f"f{i}({', '.join(texts)})")
    exec("\n    ".join(["def bare():", *lines]), scope)
    return scope["bare"]


def steps_of(call, tensors, stream):
    """What one call launches, asks of PyTorch and copies, in order, as the plan says."""
    scope, steps = call.__globals__, []

    def step(f, counts=lambda *a: True):
        def record(*a, **n):
            if counts(*a):
                steps.append((f, a, n))
            return f(*a, **n)
        return record

    own = {k: f for k, f in scope.items() if k.startswith("_q_line_") or k in ("_q_launch", "_q_whole")}
    if device == "cpu":  # without the work
        for k in [k for k in own if "line" in k]:
            def empty(*a, f=own[k], result=[], **n):
                if not result:
                    result.append(f(*a, **n))
                return result[0]
            own[k] = empty
    scope.update((k, step(f, (lambda t: not t.is_contiguous()) if k == "_q_whole" else lambda *a: True))
                 for k, f in own.items())
    first, again = scope.get("_q_first"), call.__code__
    if first:
        call.__code__ = first.__code__  # with the views that the second source leaves out
    scope["_q_learn"] = lambda values: None
    with torch.no_grad():
        whole = [t.contiguous() for t in tensors]
        call(whole, [t.data_ptr() for t in whole], stream)
    call.__code__ = again
    scope.update(own)
    return steps, own["_q_launch"]


def sources_of(lines):
    """Keeps the sources that a package writes out."""
    kept, own = {}, lines.written

    def written(title, source, scope):
        kept[title] = source
        if os.environ.get("SHOW"):
            print(source)
        return own(title, source, scope)

    lines.written = written
    return kept


def breakdown(source, scope, tensors, stream):
    """Microseconds that each statement of a call adds, by calls that end behind it."""
    head, *body = source.split("\n")
    head = head.replace("def held", "def part")
    ends = [i for i, line in enumerate(body) if not line.startswith(("        ", "    except"))] + [len(body)]
    before = 0
    for begin, end in zip(ends, ends[1:]):
        last = [] if body[begin].startswith("    return") else ["    return None"]
        text = "\n".join([head, *body[:end], *last])
        part = {**scope}
        exec(text, part)
        now = host(lambda: part["part"](*tensors, stream))
        say("statement", "note", f"{now - before:6.2f} us, {now:7.2f}: {body[begin].strip()}")
        before = now


def steps_apart(steps):
    """The same of the plan's launches and calls by themselves."""
    before = 0
    for n in range(1, len(steps) + 1):
        now = host(in_a_row(steps[:n]))
        say("step", "note", f"{now - before:6.2f} us, {now:7.2f}: {getattr(steps[n - 1][0], '__name__', '')}")
        before = now


def boundary():
    lines, op = importlib.import_module(f"{name}.held"), importlib.import_module(f"{name}.torch_op")
    sources = sources_of(lines)
    package.calls.clear()
    inner = copy.deepcopy(fast.inner)
    with torch.no_grad():
        for _ in range(5):
            inner(*args, **named)
    call = next(iter(package.calls.values()))
    whole_of, bound = call.__globals__["_q_whole"], inner._quern_bound
    tensors = type(inner)._quern_given(inner, *args, **named)
    stream = op._stream(tensors[0].get_device())
    steps, launch = steps_of(call, tensors, stream)
    held = bound.last[1]  # whose lines are those of the plan: without the work where it has none
    held.__globals__.update((k, f) for k, f in call.__globals__.items() if k.startswith("_q_line_"))
    # Copies of what lies in channels_last, and of results back to it, are launches of PyTorch.
    with torch.no_grad():
        copies = [(torch.Tensor.contiguous, (t,), {}) for t in tensors if not t.is_contiguous()]
        copies += [(torch.Tensor.contiguous, (t.contiguous(),), {"memory_format": torch.channels_last})
                   for t in leaves(inner(*args, **named)) if not t.is_contiguous()]
        result = inner(*args, **named)
    own = [(type(result), (), {f.name: getattr(result, f.name) for f in dataclasses.fields(result)})
           ] if dataclasses.is_dataclass(result) else []  # which the original makes, too
    steps = [*steps, *copies, *own]
    copies += [s for s in steps if s[0] is whole_of]
    def module():
        inner(*args, **named)

    def direct():
        return held(*tensors, stream)

    def module_kept():
        return inner(*args, **named)

    def captured():  # what a module keeps is of no use in a graph
        taken = [t.contiguous() for t in tensors]
        return call(taken, [t.data_ptr() for t in taken], op._stream(tensors[0].get_device()))

    n, bare = sum(f is launch for f, _, _ in steps), in_a_row(steps)
    one, alone = torch.zeros(1, device=device), in_a_row([s for s in steps if s[0] is launch][:1])
    with torch.no_grad():
        times = in_turns([module, direct, bare, lambda: torch.neg(one), alone],
                         max(10, _QUEUED // len(steps)))
        whole, below, plan, eager_one, launch_one = map(min, times)
        above, dispatch = whole - plan, n * (eager_one - launch_one)
        low, middle, high = statistics.quantiles([a - b for a, b in zip(times[0], times[2])], n=4)
        eager = min(in_turns([lambda: plain_inner(*args, **named)], 10, 8)[0])
        say("boundary", "ok" if above - dispatch < 8 else "FAIL",
            f"{above - dispatch:.2f} us above eager's dispatch of the launches, {dispatch:.2f}; {above:.2f} "
            f"above the launches (half of the rounds {low:.2f} to {high:.2f}, median {middle:.2f}); module "
            f"{whole:.2f}, below the checks {below:.2f}, plan {plan:.2f}, eager {eager:.2f}; {n} launches, "
            f"{len(steps) - n - len(copies) - len(own)} calls of PyTorch, {len(copies)} copies, inputs "
            f"{len(tensors)}, outputs {len(package.out_dtypes)}, buffers {len(package.json['buffers'])}")
        if os.environ.get("BREAKDOWN"):
            breakdown(sources["held"].split("\n\n")[1], held.__globals__, tensors, stream)
            steps_apart(steps)
        if device == "cuda":
            graphs(module_kept, captured)


def graphs(whole, direct):
    def replayed(call):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = call()
        times = []
        for _ in range(40):
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            for _ in range(10):
                graph.replay()
            b.record()
            torch.cuda.synchronize()
            times.append(a.elapsed_time(b) * 100)
        return min(times), kept

    a, b = replayed(whole)[0], replayed(direct)[0]
    say("boundary in a CUDA graph", "ok" if a - b < 3 else "FAIL", f"{a - b:.2f} us: {a:.2f}, bare {b:.2f}")


if timing:
    check("boundary measured")(boundary)
else:
    checks()

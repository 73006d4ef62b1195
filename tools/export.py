"""Writes a PyTorch module as an archive for `quern import`: PyTorch's exported program without its weights,
and the shape and statistics of each parameter.

    python3 tools/export.py model.py -o model.pt2             # Model, get_inputs() and get_init_inputs()
    python3 tools/export.py package.module:Class --init '[1024, 512]' --input 'float32[128,1024]' -o layer.pt2
    python3 tools/export.py definition.json --axes M=4096 -o gemm.pt2    # a FlashInfer-Bench definition

Runs where torch (2.8 or later) is. The module is built and traced on the meta device, where tensors have
shapes and no contents; a module that cannot be built there is built on the CPU. Exit status 1 with one
sentence: the module cannot be imported. 2: a wrong command line.
"""

import argparse
import builtins
import importlib
import importlib.util
import inspect
import json
import linecache
import logging
import math
import os
import re
import sys
import tempfile
import traceback
import warnings

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

FORMAT = 1
MAX_BUILD = 6 << 30     # bytes of parameters and constants that are built on the CPU for their statistics
MAX_INPUTS = 256 << 20  # the same of example inputs
MAX_FREE = 130  # parameters and buffers; of more, dimensions are fixed, since tracing would take minutes
MAX_VALUES = 64         # elements of a constant that are stored as they are
DTYPES = {n: getattr(torch, n) for n in
          ("float32", "float16", "bfloat16", "float64", "int32", "int64", "bool")}
# Operators that draw random numbers, whatever their arguments are.
RANDOM = re.compile(
    r"aten\.(rand|randn|randint|randperm|normal|bernoulli|multinomial|poisson|uniform|exponential|"
    r"geometric|cauchy|log_normal|random|rrelu_with_noise|gumbel\w*)(_like|_)?(\.|$)"
)


class Refused(Exception):
    """What cannot be imported, as one sentence."""


# ---- the three kinds of sources: each gives build(), inputs() and the file whose lines errors name ----

class KernelBench:
    def __init__(self, path, args):
        spec = importlib.util.spec_from_file_location(
            "quern_module_of_" + re.sub(r"\W", "_", os.path.basename(path)), path
        )
        module = importlib.util.module_from_spec(spec)
        self.path, self.file, self.name = path, os.path.abspath(path), "Model"
        sys.modules[spec.name] = module
        sys.path.append(os.path.dirname(self.file))
        with watched(self.file, "when it is imported"):
            spec.loader.exec_module(module)
        for name in ("Model", "get_inputs"):
            if not hasattr(module, name):
                raise Refused(
                    f"{path} has no {name}; a file with Model, get_inputs and get_init_inputs is expected"
                )
        self.module = module

    def build(self):
        given = self.module.get_init_inputs() if hasattr(self.module, "get_init_inputs") else []
        if isinstance(given, dict):
            return self.module.Model(**given)
        if len(given) == 2 and isinstance(given[0], list) and isinstance(given[1], dict):
            return self.module.Model(*given[0], **given[1])
        return self.module.Model(*given)

    def inputs(self):
        given = self.module.get_inputs()
        return by_position(self.path, self.module.Model, given) if isinstance(given, dict) else list(given)


def by_position(path, model, given):
    """Inputs that are given by name, in the order of forward's arguments."""
    arguments, out = list(inspect.signature(model.forward).parameters.values())[1:], []
    names = [a.name for a in arguments]
    for name in given:
        if name not in names:
            raise Refused(f"{path}: get_inputs gives {name}, which is no argument of forward")
    for a in arguments[: max((names.index(n) + 1 for n in given), default=0)]:
        if a.name not in given and a.default is a.empty:
            raise Refused(f"{path}: get_inputs does not give {a.name}, an argument of forward")
        if a.kind not in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD):
            raise Refused(f"{path}: the argument {a.name} of forward can only be given by name")
        out.append(given.get(a.name, a.default))
    return out


class Class:
    def __init__(self, path, args):
        name, self.name = path.split(":", 1)
        self.path = path
        sys.path.insert(0, os.getcwd())
        try:
            module = importlib.import_module(name)
            self.type = getattr(module, self.name)
        except (ImportError, AttributeError) as e:
            raise Refused(f"{path} cannot be imported: {e}") from e
        self.file = os.path.abspath(module.__file__)
        self.init, self.given = json.loads(args.init or "[]"), [tensor_spec(t) for t in args.input or []]
        if not self.given:
            raise Refused(f"{path} has no example inputs; give --input 'float32[128,1024]' for each")

    def build(self):
        return self.type(**self.init) if isinstance(self.init, dict) else self.type(*self.init)

    def inputs(self):
        return [draw(dtype, shape) for dtype, shape in self.given]


class Definition:
    """A FlashInfer-Bench definition: axes, inputs, and `reference`, the source of run(...)."""

    def __init__(self, path, args):
        self.path, self.name = path, "run"
        with open(path, encoding="utf-8") as f:
            text = json.load(f)
        for field in ("axes", "inputs", "reference"):
            if field not in text:
                raise Refused(
                    f"{path} has no field {field}; a FlashInfer-Bench definition has axes, "
                    f"inputs and reference"
                )
        sizes = dict(pair.split("=", 1) for pair in (args.axes or "").split(",") if pair)
        self.axes = {n: int(sizes.pop(n, a.get("value", 64))) for n, a in text["axes"].items()}
        if sizes:
            raise Refused(f"{path} has no axis {sorted(sizes)[0]}")
        self.given = text["inputs"]
        self.file = f"<{path}, reference>"
        linecache.cache[self.file] = (
            len(text["reference"]),
            None,
            text["reference"].splitlines(True),
            self.file,
        )
        scope = {"__name__": "reference"}
        with watched(self.file, "when it is imported"):
            exec(compile(text["reference"], self.file, "exec"), scope)
        self.run = scope.get("run") or next((v for v in scope.values() if callable(v) and
                                             getattr(v, "__module__", "") == "reference"), None)
        if not self.run:
            raise Refused(f"{path}: the reference defines no function run")

    def build(self):
        code, names = self.run.__code__, list(self.given)
        if list(code.co_varnames[:code.co_argcount]) != names:
            names = code.co_varnames[:code.co_argcount]
        scope = {"torch": torch, "run": self.run}
        exec("class Reference(torch.nn.Module):\n    def forward(self, %s):\n        return run(%s)\n"
             % (", ".join(names), ", ".join(names)), scope)
        return scope["Reference"]()

    def inputs(self):
        out = []
        for name, spec in self.given.items():
            if spec.get("shape") is None:
                out.append(1.0)
                continue
            shape = [self.axes[d] if d in self.axes else int(d) for d in spec["shape"]]
            if spec["dtype"] not in DTYPES:
                raise Refused(
                    f"{self.path}: input {name} has the type {spec['dtype']}; one of "
                    f"{', '.join(DTYPES)} is expected"
                )
            out.append(draw(DTYPES[spec["dtype"]], shape))
        return out


def tensor_spec(text):
    m = re.fullmatch(r"(\w+)\[([\d, ]*)\]", text)
    if not m or m[1] not in DTYPES:
        raise Refused(f"--input {text}: a type and a shape such as float32[128,1024] are expected")
    return DTYPES[m[1]], [int(n) for n in m[2].split(",") if n.strip()]


def draw(dtype, shape):
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=dtype)
    return torch.randint(0, 2, shape).to(dtype)


# ---- what a module does beside computing ----

class watched:
    """Refuses a module that prints, opens a file or a socket, or starts a program while it is traced: an
    exported program would do none of it. What torch itself does in between is its own."""

    hook, active = None, None
    EVENTS = {"open": "opens a file", "socket.connect": "opens a socket", "socket.__new__": "opens a socket",
              "subprocess.Popen": "starts a program", "os.system": "starts a program"}

    def __init__(self, file, when):
        self.file, self.when, self.busy = file, when, False

    def __enter__(self):
        if not watched.hook:
            watched.hook = (
                lambda event, args: watched.active
                and event in watched.EVENTS
                and watched.active.seen(watched.EVENTS[event], sys._getframe(1))
            )
            sys.addaudithook(watched.hook)
        self.found, self.print, watched.active = None, builtins.print, self
        builtins.print = self.printed

    def printed(self, *args, **keywords):
        self.seen("prints", sys._getframe(1))

    def seen(self, what, frame):
        if self.busy:
            return
        self.busy = True  # naming the line reads the file
        while frame and not self.found:
            name = frame.f_code.co_filename
            if re.search(
                r"[/\\]torch[/\\](_?export|fx|_dynamo|_inductor|_subclasses)[/\\]|importlib|linecache", name
            ):
                break
            if name == self.file:
                self.found = f"{place(name, frame.f_lineno)} {what} {self.when}, which no graph can record"
            frame = frame.f_back
        self.busy = False

    def __exit__(self, kind, error, trace):
        builtins.print, watched.active = self.print, None
        if self.found:
            raise Refused(self.found) from None


class numbers_kept:
    """torch.tensor(2.0, device=x.device) keeps its number where x is on the meta device."""

    def __enter__(self):
        self.tensor = torch.tensor
        torch.tensor = self.make

    def make(self, data, *args, **keywords):
        if isinstance(data, (int, float, bool)) and str(keywords.get("device")) == "meta":
            del keywords["device"]
        return self.tensor(data, *args, **keywords)

    def __exit__(self, *error):
        torch.tensor = self.tensor


class autocast_off:
    """A region that turns torch.autocast off is none: one around it that turns it on is refused."""

    def __enter__(self):
        kind = torch.autocast
        init, enter, leave = self.own = kind.__init__, kind.__enter__, kind.__exit__

        def noted(region, device_type, dtype=None, enabled=True, cache_enabled=None):
            region.is_off = not enabled
            init(region, device_type, dtype, enabled, cache_enabled)

        def is_off(region):
            return getattr(region, "is_off", False)

        kind.__init__ = noted
        kind.__enter__ = lambda region: region if is_off(region) else enter(region)
        kind.__exit__ = lambda region, *error: None if is_off(region) else leave(region, *error)

    def __exit__(self, *error):
        torch.autocast.__init__, torch.autocast.__enter__, torch.autocast.__exit__ = self.own


class recurrent_shapes:
    """Recurrent operators give results of the right shapes while a module is traced, and run no step: torch
    would run each step of each layer, which takes minutes."""

    def __init__(self):
        self.ops = [
            getattr(getattr(torch.ops.aten, n), "input") for n in ("lstm", "gru", "rnn_tanh", "rnn_relu")
        ]

    @staticmethod
    def lstm(x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, gates=4):
        directions, each, h = 2 if bidirectional else 1, 4 if has_biases else 2, hx[0].shape[2]
        shapes = [[num_layers * directions, x.shape[0 if batch_first else 1], h]] * len(hx)
        for i in range(num_layers * directions):
            own = [[gates * h, x.shape[2] if i < directions else h * directions], [gates * h, h]]
            shapes += own + [[gates * h]] * (each - 2)
        for t, shape in zip([*hx, *params], shapes, strict=True):
            torch._check(t.dim() == len(shape), lambda: "a recurrent operator's tensor has another rank")
            for have, want in zip(t.shape, shape):
                torch._check(have == want, lambda: "the sizes of a recurrent operator's tensors do not agree")
        return x.new_empty([*x.shape[:2], h * directions]), *(torch.empty_like(s) for s in hx)

    @staticmethod
    def gru(x, hx, *args):
        return recurrent_shapes.lstm(x, [hx], *args, gates=3)

    @staticmethod
    def rnn(x, hx, *args):
        return recurrent_shapes.lstm(x, [hx], *args, gates=1)

    def __enter__(self):
        self.kept = [dict(op.py_kernels) for op in self.ops]
        for op in self.ops:
            shapes = getattr(self, re.search(r"lstm|gru|rnn", op.name())[0])
            for key in op.py_kernels:
                op.py_kernels[key] = shapes
            op._dispatch_cache.clear()

    def __exit__(self, *error):
        for op, kernels in zip(self.ops, self.kept):
            op.py_kernels.clear()
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()


def place(file, line):
    code = linecache.getline(file, line).strip()
    return (
        f"{os.path.basename(file.strip('<>'))}, line {line} (`{code}`)"
        if code
        else f"{os.path.basename(file)}, line {line}"
    )


def blame(source, error):
    """The last line of the module that led to an exception."""
    at = None
    while error and not at:
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == source.file:
                at = place(frame.filename, frame.lineno)
        if not at and (m := re.findall(r'File "%s", line (\d+)' % re.escape(source.file), str(error))):
            at = place(source.file, int(m[-1]))
        error = error.__cause__ or error.__context__
    return at or source.path


def reason(error):
    kind, text = type(error).__name__, str(error)
    first = next((line.strip() for line in text.splitlines() if line.strip()), kind)
    if (
        "data-dependent" in text
        or "DataDependent" in kind
        or "_local_scalar_dense" in text
        or "Tensor.item()" in text
    ):
        return "the contents of a tensor decide what is computed, which no graph can record"
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return "it needs more memory than this machine has"
    return f"{kind}: {first[:300]}"


# ---- export ----

def build(source, device, mode):
    with watched(source.file, "when it is built"), torch.device(device):
        torch.manual_seed(0)
        try:
            module = source.build()
        except Exception as e:
            raise Refused(f"{blame(source, e)}: the module cannot be built: {reason(e)}") from e
    if not isinstance(module, torch.nn.Module):
        raise Refused(f"{source.path}: {source.name} is no torch.nn.Module")
    return module.train(mode == "train")


def example_inputs(source, device):
    with watched(source.file, "in get_inputs"), torch.device(device):
        torch.manual_seed(1)
        try:
            inputs = source.inputs()
        except Exception as e:
            raise Refused(f"{blame(source, e)}: the example inputs cannot be made: {reason(e)}") from e
    for i, x in enumerate(inputs):
        if not isinstance(x, (torch.Tensor, int, float, bool, type(None))):
            raise Refused(
                f"{source.path}: example input {i} is a {type(x).__name__}; a tensor or a number is expected"
            )
        if isinstance(x, torch.Tensor) and x.numel() == 0:
            raise Refused(f"{source.path}: example input {i} has no element")
    return inputs


class Functional(torch.nn.Module):
    """A module as a function of its parameters and buffers, so that their dimensions are free too."""

    # Sizes that a module keeps as numbers beside its weights: attribute, weight, and the dimensions of the
    # weight.
    SIZES = {
        torch.nn.LayerNorm: [("normalized_shape", "weight", None)],
        getattr(torch.nn, "RMSNorm", torch.nn.LayerNorm): [("normalized_shape", "weight", None)],
        torch.nn.LSTM: [("input_size", "weight_ih_l0", 1)],
        torch.nn.GRU: [("input_size", "weight_ih_l0", 1)],
    }

    def __init__(self, module, names):
        super().__init__()
        self.held, self.names = [module], names

    def forward(self, tensors, inputs):
        module, given, kept = self.held[0], dict(zip(self.names, tensors)), []
        for prefix, m in module.named_modules():
            for attribute, weight, d in self.SIZES.get(type(m), []):
                t = given.get(f"{prefix}.{weight}" if prefix else weight)
                if t is not None:
                    kept.append((m, attribute, getattr(m, attribute)))
                    setattr(m, attribute, tuple(t.shape) if d is None else t.shape[d])
        try:
            return torch.func.functional_call(module, given, tuple(inputs))
        finally:
            for m, attribute, value in kept:
                setattr(m, attribute, value)


def trace(source, module, inputs):
    """The exported program and the names of its inputs: those of parameters first where they are inputs too,
    so that their dimensions are free. Where the module does not allow it, only its inputs' dimensions are, or
    the first ones, or none."""
    auto = torch.export.Dim.AUTO
    names = [n for n, _ in module.named_parameters()] + [n for n, _ in module.named_buffers()]
    own = tuple(t.detach() for t in [*module.parameters(), *module.buffers()])
    free = tuple({d: auto for d in range(x.dim())} if isinstance(x, torch.Tensor) else None for x in inputs)
    convolutions = {
        id(p)
        for m in module.modules()
        if isinstance(m, torch.nn.modules.conv._ConvNd)
        for p in m.parameters()
    }
    fixed = [
        2 if id(p) in convolutions else 8 for p in [*module.parameters(), *module.buffers()]
    ]  # a window keeps its size
    ways = [
        (
            Functional(module, names),
            (own, tuple(inputs)),
            (tuple({d: auto for d in range(min(t.dim(), f))} for t, f in zip(own, fixed)), free),
            names,
        ),
        (module, tuple(inputs), free, []),
        (
            module,
            tuple(inputs),
            tuple({0: auto} if isinstance(x, torch.Tensor) and x.dim() else None for x in inputs),
            [],
        ),
        (module, tuple(inputs), None, []),
    ]
    first = None
    for callee, given, shapes, parameters in ways[0 if 0 < len(own) <= MAX_FREE else 1:]:
        with watched(source.file, "when it is called"), numbers_kept(), recurrent_shapes(), \
                autocast_off(), torch.no_grad():
            try:
                program = torch.export.export(callee, given, dynamic_shapes=shapes, strict=False)
            except Exception as e:
                first = e
                continue
        if any(has_lost_rows(n) for n in program.graph.nodes):
            lost = "PyTorch gives the loss of each row the shape of a number"
            raise Refused(f"{source.path}: the module cannot be exported: {lost}")
        return program, parameters
    raise Refused(f"{blame(source, first)}: the module cannot be exported: {reason(first)}") from first


def has_lost_rows(node):
    """On the meta device torch gives a cross entropy of each row with free sizes the shape of a number."""
    if node.target is not torch.ops.aten.cross_entropy_loss.default:
        return False
    reduction = node.args[3] if len(node.args) > 3 else node.kwargs.get("reduction", 1)
    return reduction == 0 and node.meta["val"].dim() == 0 and node.args[0].meta["val"].dim() > 1


def export(source, mode):
    """On the meta device, else on the CPU. Returns the program, the names of parameters that are its inputs,
    and the module on its device."""
    errors = []
    for device in ("meta", "cpu"):
        try:
            module = build(source, device, mode)
            inputs = example_inputs(source, device)
            if device == "cpu" and size(tensors_of(module)) > MAX_BUILD:
                raise errors[0]
            return *trace(source, module, inputs), module
        except Refused as e:
            errors.append(e)
            if not re.search(r"cannot be (built|exported|made)", str(e)):
                break
    raise errors[-1] if "Meta" in str(errors[0]) or "meta" in str(errors[0]) else errors[0]


def node_place(source, node):
    m = re.findall(r'File "([^"]*)", line (\d+)', node.meta.get("stack_trace") or "")
    own = [x for x in m if x[0] == source.file] or m
    return place(own[-1][0], int(own[-1][1])) if own else source.path


def first_place(source, program, node):
    """Of a node that calls a graph: the place of its first node."""
    for arg in node.args:
        if getattr(arg, "op", "") == "get_attr":
            for inner in getattr(program.graph_module, arg.target).graph.nodes:
                if inner.meta.get("stack_trace"):
                    return node_place(source, inner)
    return node_place(source, node)


def check(source, program, mode):
    """Refuses results that are no tensors, and operators that draw random numbers."""
    spec, outputs = program.call_spec.out_spec, program.graph_signature.output_specs
    while spec is not None and not spec.is_leaf():
        if spec.type not in (tuple, list):
            raise Refused(
                f"{source.path}: {source.name} returns a {getattr(spec.type, '__name__', spec.type)}; "
                "a tensor or a tuple of tensors is expected"
            )
        inner = [c for c in spec.children() if not c.is_leaf()]
        spec = inner[0] if inner else None
    for o in outputs:
        if o.kind.name == "USER_OUTPUT" and type(o.arg).__name__ != "TensorArgument":
            what = "None" if getattr(o.arg, "value", 0) is None else "a Python number"
            raise Refused(
                f"{source.path}: {source.name} returns {what}; a tensor or a tuple of tensors is expected"
            )
    for node in program.graph.nodes:
        if node.op != "call_function":
            continue
        name = str(node.target)
        if "wrap_with_autocast" in name:
            raise Refused(
                f"{first_place(source, program, node)}: torch.autocast chooses an element type for each "
                "operator, which Quern does not follow; convert with .to()"
            )
        if RANDOM.match(name):
            raise Refused(
                f"{node_place(source, node)}: {name} draws random numbers, so that there is no right result"
            )
        if re.match(r"aten\.(item|_local_scalar_dense|nonzero|masked_select|unique\w*|_unique2?)\.", name):
            raise Refused(
                f"{node_place(source, node)}: {name}: the contents of a tensor decide what is computed, "
                f"which no "
                "graph can record"
            )
        if free_unbacked_symbols(node.meta.get("val")):
            raise Refused(
                f"{node_place(source, node)}: {name}: the contents of a tensor decide the size of the "
                "result, which no graph can record"
            )
        if "dropout" in name and len(node.args) > 2 and node.args[2] is True and node.args[1]:
            raise Refused(
                f"{node_place(source, node)}: {name} is active in training mode, so that there is no "
                f"right result; "
                "export with --mode eval, or with a rate of 0"
            )


# ---- statistics ----

def tensors_of(module):
    """Parameters, buffers and plain tensor attributes, by their names."""
    out = dict(module.named_parameters(remove_duplicate=False))
    out.update(module.named_buffers(remove_duplicate=False))
    for prefix, m in module.named_modules():
        for name, v in vars(m).items():
            if isinstance(v, torch.Tensor):
                out.setdefault(f"{prefix}.{name}" if prefix else name, v)
    return out


def size(tensors):
    return sum(t.numel() * t.element_size() for t in tensors.values() if isinstance(t, torch.Tensor))


def pattern(t):
    """The name of what a constant is made by: all elements equal, or a triangle of such elements."""
    if bool((t == t.flatten()[0]).all()):
        return "full", float(t.flatten()[0])
    if t.dim() >= 2:
        for name, corner in (("tril", t[..., -1, 0]), ("triu", t[..., 0, -1])):
            value = corner.flatten()[0]
            if bool((t == getattr(torch, name)(torch.full_like(t, value))).all()):
                return name, float(value)
    return None, None


def statistics(t):
    """mean, std, min and max, and what a constant is made of."""
    t = t.detach()
    out = {"shape": list(t.shape), "dtype": str(t.dtype).split(".")[1]}
    if t.device.type == "meta" or t.numel() == 0 or t.is_complex():
        return out
    sample = t.flatten()
    if sample.numel() > 1 << 22:
        sample = sample[:: sample.numel() // (1 << 22) + 1]
    sample = sample.double()
    out.update(mean=float(sample.mean()), std=float(sample.std(correction=0)), min=float(sample.min()),
               max=float(sample.max()))
    name, value = pattern(t)
    if name:
        out.update(pattern=name, value=value)
    if t.numel() <= MAX_VALUES:
        out["values"] = [float(v) for v in t.flatten().tolist()]
    for key in ("mean", "std", "min", "max", "value"):
        if key in out and not math.isfinite(out[key]):
            out[key] = str(out[key])
    if "values" in out:
        out["values"] = [v if math.isfinite(v) else str(v) for v in out["values"]]
    return out


def argument_names(source, module, n):
    """The names of the call's arguments; those of its example inputs, n in all."""
    code = getattr(type(module).forward, "__code__", None)
    names = list(code.co_varnames[1:code.co_argcount]) if code else []
    return [names[i] if i < len(names) else f"x{i}" for i in range(n)]


def describe(source, program, parameters, module, mode):
    """What the archive says beside the program: what each input of the graph is. Contents are drawn on the
    CPU where they are not too large."""
    tensors, examples, inputs = tensors_of(module), program.example_inputs[0], None
    examples = list(examples[1] if parameters else examples)
    if any(t.device.type == "meta" for t in tensors.values()) and size(tensors) <= MAX_BUILD:
        try:
            tensors = tensors_of(build(source, "cpu", mode))
        except (Refused, RuntimeError, MemoryError):
            pass
    if size(dict(enumerate(examples))) <= MAX_INPUTS:
        try:
            inputs = example_inputs(source, "cpu")
        except (Refused, RuntimeError, MemoryError):
            inputs = None
    specs, arguments, out = (
        program.graph_signature.input_specs,
        argument_names(source, module, len(examples)),
        [],
    )
    at = 0
    for s in specs:
        entry = {"placeholder": getattr(s.arg, "name", "")}
        if s.kind.name == "USER_INPUT":
            if at < len(parameters):
                entry.update(parameter=parameters[at], **statistics(tensors[parameters[at]]))
            else:
                k = at - len(parameters)
                entry["argument"] = arguments[k]
                if inputs and isinstance(inputs[k], torch.Tensor):
                    entry.update(statistics(inputs[k]))
                    entry.pop("values", None)
            at += 1
        else:
            value = tensors.get(s.target)
            value = program.constants.get(s.target) if value is None else value
            known = s.target in tensors and not s.target.startswith("lifted_tensor")
            entry.update(
                {"parameter" if known else "constant": s.target},
                **(statistics(value) if value is not None else {}),
            )
        out.append(entry)
    return {"format": FORMAT, "source": os.path.basename(source.path), "class": source.name, "mode": mode,
            "torch": torch.__version__, "inputs": out}


def save(program, path, text):
    """Writes the archive with weights that have no contents."""
    empty = {
        k: (
            torch.nn.Parameter(v.detach().to("meta"), v.requires_grad)
            if isinstance(v, torch.nn.Parameter)
            else v.to("meta")
        )
        for k, v in program.state_dict.items()
    }
    program._state_dict = empty
    program._constants = {
        k: v.to("meta") if isinstance(v, torch.Tensor) else v for k, v in program.constants.items()
    }
    program._example_inputs = None
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(path))) as folder:
        temporary = os.path.join(folder, os.path.basename(path))
        torch.export.save(program, temporary, extra_files={"quern.json": json.dumps(text, sort_keys=True)})
        os.replace(temporary, path)


def main():
    p = argparse.ArgumentParser(description="Writes a PyTorch module as an archive for `quern import`.")
    p.add_argument(
        "source",
        help="FILE.py with Model, get_inputs and get_init_inputs; package.module:Class; or a "
        "FlashInfer-Bench definition, FILE.json",
    )
    p.add_argument("-o", "--output", required=True, metavar="FILE.pt2")
    p.add_argument("--mode", choices=("eval", "train"), default="eval")
    p.add_argument("--init", metavar="JSON", help="arguments of Class: a list or an object")
    p.add_argument(
        "--input", action="append", metavar="TYPE[N,...]", help="an example input of Class; repeat it"
    )
    p.add_argument(
        "--axes", metavar="NAME=N,...", help="sizes of a definition's free axes; 64 where none is given"
    )
    args = p.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    kind = Definition if args.source.endswith(".json") else Class if ":" in args.source else KernelBench
    try:
        try:
            source = kind(args.source, args)
        except Refused:
            raise
        except (OSError, json.JSONDecodeError, UnicodeDecodeError, ValueError) as e:
            raise Refused(f"{args.source} cannot be read: {e}") from e
        except Exception as e:
            raise Refused(f"{args.source} cannot be imported: {reason(e)}") from e
        program, parameters, module = export(source, args.mode)
        check(source, program, args.mode)
        save(program, args.output, describe(source, program, parameters, module, args.mode))
    except Refused as e:
        print(f"export: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

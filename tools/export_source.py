"""The modules that tools/export.py exports: where they are found, how they and their example inputs are made,
and which line of theirs an error is of."""

import builtins
import copy
import dataclasses
import difflib
import importlib
import importlib.util
import inspect
import json
import linecache
import math
import os
import re
import sys
import traceback
from collections.abc import Mapping

import torch

DTYPES = {n: getattr(torch, n) for n in
          ("float32", "float16", "bfloat16", "float64", "int32", "int64", "bool", "int8", "uint8", "int16",
           "float8_e4m3fn", "float8_e5m2")}
# Arguments that are part of what is computed, not of its inputs.
CONSTANTS = (int, float, bool, complex, str, type(None), torch.dtype, torch.device, torch.Size, torch.SymInt,
             torch.SymFloat, torch.SymBool)


class Refused(Exception):
    """What cannot be imported, as one sentence."""


# ---- the kinds of sources: each gives build(), inputs(), the file that errors name, and what it found ----

FACTORIES = ("get_model", "make_model", "build_model", "create_model", "model")
EXAMPLES = ("get_inputs", "get_example_inputs", "make_inputs", "example_inputs", "sample_inputs", "inputs")


class Placed(torch.overrides.TorchFunctionMode):
    """Where a module names a GPU, as in get_inputs, its tensors lie on the device that the module is traced
    on."""

    def __init__(self, device):
        super().__init__()
        self.device = torch.device(device)

    def moved(self, value):
        is_named = isinstance(value, torch.device) or isinstance(value, str) and value.startswith("cuda")
        return self.device if is_named and torch.device(value).type == "cuda" else value

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.cuda:
            return args[0].to(self.device)
        return func(*map(self.moved, args), **{k: self.moved(v) for k, v in (kwargs or {}).items()})


def package_of(path):
    """The folder above the outermost package that holds a file, and the file's name below it as that of an
    import, such as net.layers.block; None: no package holds it."""
    folder, stem = os.path.split(os.path.abspath(path))
    names = [os.path.splitext(stem)[0]]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        names.insert(0, name)
    return (folder, ".".join(names)) if len(names) > 1 and all(n.isidentifier() for n in names) else None


def load_file(path):
    """The module of a Python file, as if it had been imported."""
    package = package_of(path)
    if package:  # for imports such as `from ..layers import Norm`
        sys.path.insert(0, package[0])
        return importlib.import_module(package[1])
    spec = importlib.util.spec_from_file_location(
        "quern_module_of_" + re.sub(r"\W", "_", os.path.basename(path)), path
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.append(os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    return module


def is_module_class(value):
    return isinstance(value, type) and issubclass(value, torch.nn.Module)


class Function(torch.nn.Module):
    """A function of tensors as a module without parameters."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **keywords):
        return self.function(*args, **keywords)


def public(scope):
    """Classes and functions that a module itself has, and modules that lie in it."""
    return [n for n, v in vars(scope).items() if n[0] != "_" and (isinstance(v, torch.nn.Module)
            or callable(v) and getattr(v, "__module__", None) == scope.__name__)]


class Named:
    """A module that a Python file or an importable module has: Model, a factory, the only class of a module,
    or the attribute that is named behind a colon."""

    def __init__(self, path, args):
        name, _, attribute = path.partition(":")
        self.path, self.init = path, json.loads(args.init) if args.init else None
        self.given = [tensor_spec(t) for t in args.input or []]
        try:
            sys.path.insert(0, os.getcwd())
            self.scope = load_file(name) if name.endswith(".py") else importlib.import_module(name)
            self.name = attribute or self.find(name)
            self.maker = self.scope
            for part in self.name.split("."):
                if not hasattr(self.maker, part):
                    raise Refused(f"{name} has no {self.name}; {self.has(part)}")
                self.maker = getattr(self.maker, part)
        except ModuleNotFoundError as e:
            raise Refused(
                f"{path} cannot be imported: {sys.executable} has no module {e.name}: install it there, "
                "or name another Python, PYTHON=PATH"
            ) from e
        except SyntaxError as e:
            raise Refused(f"{place(e.filename or path, e.lineno or 0)} is no Python: {e.msg}") from e
        except (ImportError, AttributeError) as e:
            raise Refused(f"{path} cannot be imported: {e}") from e
        except SystemExit as e:
            raise Refused(f"{path} cannot be imported: it ends Python (SystemExit: {e})") from e
        self.file = os.path.abspath(self.scope.__file__)
        self.example = next((n for n in EXAMPLES if hasattr(self.scope, n)), None)
        if not self.example and hasattr(self.maker, "example_input_array"):
            self.example = f"{self.name}.example_input_array"
        if not self.given and not self.example:
            raise Refused(
                f"{name} has no get_inputs(), which returns a list of example inputs of {self.name}: "
                "write one, or give --input 'float32[128,1024]' for each argument"
            )
        inputs = "inputs of --input" if self.given else self.example
        self.told = f"found {self.name} and {inputs} in {name}"

    def has(self, name):
        """What the file has in place of a name: names like it, else the first ones."""
        near = difflib.get_close_matches(name, [n for n in vars(self.scope) if n[0] != "_"], 3)
        if near:
            return f"is {' or '.join(near)} meant?"
        names = [n for n in public(self.scope) if n not in (*EXAMPLES, "get_init_inputs")]
        return f"it has {', '.join(names[:8]) or 'nothing'}"

    def find(self, path):
        """The name of what makes the module."""
        own = [(n, v) for n, v in vars(self.scope).items()
               if getattr(v, "__module__", None) == self.scope.__name__ or isinstance(v, torch.nn.Module)]
        classes = [n for n, v in own if is_module_class(v)]
        codes = [v.__init__.__code__ for n, v in own if n in classes and hasattr(v.__init__, "__code__")]
        used = {n for code in codes for n in code.co_names}
        makers = [n for n in FACTORIES if callable(getattr(self.scope, n, None))
                  and not isinstance(getattr(self.scope, n), torch.nn.Module)]
        is_plain = hasattr(self.scope, "Model") and (not makers or hasattr(self.scope, "get_init_inputs"))
        for names in (
            ["Model"] if is_plain else [],  # what a factory makes of it may have another type
            [n for n, v in own if isinstance(v, torch.nn.Module)],
            makers,
            [n for n in classes if n not in used],
            [n for n, v in own if inspect.isfunction(v) and n not in (*EXAMPLES, "get_init_inputs")],
        ):
            if len(names) == 1:
                return names[0]
            if names:
                raise Refused(f"{path} has several modules, {', '.join(names)}: name one, {path}:{names[-1]}")
        raise Refused(
            f"{path} has no Model; a file with Model, get_inputs and get_init_inputs, with a factory such as "
            f"get_model, or a name behind a colon, {path}:NAME, is expected"
        )

    def build(self):
        maker = self.maker
        if isinstance(maker, torch.nn.Module):
            device = str(torch.empty(0).device)
            return copy.deepcopy(maker).to(device)
        if not callable(maker):
            raise Refused(f"{self.path}: {self.name} is no torch.nn.Module")
        init = getattr(self.scope, "get_init_inputs", None)
        given = self.init if self.init is not None else init() if init and is_module_class(maker) else []
        args, keywords = arguments_of(given)
        if not isinstance(maker, type) and not given:
            parameters = inspect.signature(maker).parameters.values()
            if any(p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD for p in parameters):
                return Function(maker)
        if is_module_class(maker):
            try:
                inspect.signature(maker).bind(*args, **keywords)
            except TypeError as e:
                raise Refused(f"{self.path}: {self.name} is made without the arguments that it takes: {e}; "
                              "get_init_inputs() returns a list of them, or give --init '[1024]'") from e
        return maker(*args, **keywords)

    def inputs(self):
        if self.given:
            return [draw(dtype, shape) for dtype, shape in self.given]
        given = getattr(self.scope, self.example, None) if "." not in self.example else None
        given = self.maker.example_input_array if given is None else given
        return given() if callable(given) else given


def arguments_of(given):
    """Positional arguments and those by name of a list, of an object, or of both in a pair."""
    if isinstance(given, dict):
        return [], given
    if len(given) == 2 and isinstance(given[0], (list, tuple)) and isinstance(given[1], dict):
        return list(given[0]), given[1]
    return list(given), {}


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
        exec(compile(text["reference"], self.file, "exec"), scope)
        self.run = scope.get("run") or next((v for v in scope.values() if callable(v) and
                                             getattr(v, "__module__", "") == "reference"), None)
        if not self.run:
            raise Refused(f"{path}: the reference defines no function run")
        self.told = None

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
        return torch.randn(shape).to(dtype)
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

def place(file, line):
    code = linecache.getline(file, line).strip()
    return (
        f"{os.path.basename(file.strip('<>'))}, line {line} (`{code}`)"
        if code
        else f"{os.path.basename(file)}, line {line}"
    )


def blame(source, error):
    """The last line of the module's file that led to an exception, else the last one that is not of torch."""
    at = other = None
    while error and not at:
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == source.file:
                at = place(frame.filename, frame.lineno)
            elif not re.search(r"[/\\]torch[/\\]|[/\\]export\w*\.py$|^<", frame.filename):
                other = place(frame.filename, frame.lineno)
        if not at and (m := re.findall(r'File "%s", line (\d+)' % re.escape(source.file), str(error))):
            at = place(source.file, int(m[-1]))
        error = error.__cause__ or error.__context__
    return at or other or source.path


CONTENTS = "the contents of a tensor decide what is computed, which no graph can record"
MAX_EDGE = 8  # tensors that a part of a module gives
FILLED = re.compile(r"(new_)?(zeros|ones|empty|full|arange|eye)(_like)?$")  # functions of no contents


def reason(error):
    kind, text = type(error).__name__, str(error)
    first = next((line.strip() for line in text.splitlines() if line.strip()), kind)
    if (
        isinstance(error, Reached)
        or "data-dependent" in text
        or "DataDependent" in kind
        or "_local_scalar_dense" in text
        or "Tensor.item()" in text
    ):
        return CONTENTS
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return "it needs more memory than this machine has"
    return f"{kind}: {first[:300]}"


# ---- arguments and results that hold tensors ----

def is_record(value):
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def parts_of(value):
    """The parts of a dict, list, tuple or dataclass by their names; None: it is one value."""
    if isinstance(value, Mapping):
        return [(str(k), v) for k, v in value.items()]
    if is_record(value):
        return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return [(str(i), v) for i, v in enumerate(value)]
    return None


def flat(value, name, out, odd):
    """Adds the tensors of a value to out and what is neither tensor nor number to odd, with their names."""
    parts = parts_of(value)
    for key, part in parts or []:
        flat(part, f"{name}_{key}" if name else key, out, odd)
    if isinstance(value, torch.Tensor):
        out.append((name, value))
    elif parts is None and not isinstance(value, CONSTANTS):
        odd.append((name, value))


def decided(value, name=""):
    """The name of a number in a result that the contents of a tensor decide, or None."""
    parts = parts_of(value)
    if parts is not None:
        return next(filter(None, (decided(v, f"{name}_{k}" if name else k) for k, v in parts)), None)
    free = isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) and not value.node.has_hint()
    return (name or "the result") if free else None


def again(value, tensors):
    """The value with other tensors, which an iterator gives in the order of flat."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    parts = parts_of(value)
    if parts is None:
        return value
    parts = [(k, again(v, tensors)) for k, v in parts]
    if isinstance(value, Mapping):
        out = copy.copy(value)
        for key, (_, part) in zip(value, parts):
            out[key] = part
        return out
    if is_record(value):
        out = copy.copy(value)
        for key, part in parts:
            object.__setattr__(out, key, part)
        return out
    return type(value)(*(v for _, v in parts)) if hasattr(value, "_fields") else type(value)(
        v for _, v in parts)


def recorded(value):
    """An argument as packages compare it with those of a call (share/export/torch/calls.py), in JSON."""
    if isinstance(value, torch.Tensor):
        return {"tensor": True}
    parts = parts_of(value)
    if parts is None:
        plain = type(value) in (type(None), bool, int, str) or type(value) is float and math.isfinite(value)
        return value if plain else {"other": type(value).__name__}
    kind = "keys" if isinstance(value, Mapping) else "fields" if is_record(value) else "items"
    return {"type": type(value).__name__, kind: [[name, recorded(part)] for name, part in parts]}


class Inputs:
    """Example inputs as arguments of forward: the tensors in them, with their names, and how they are put
    together again."""

    def __init__(self, source, forward, given):
        self.forward, forward = forward, inspect.signature(forward).parameters.values()
        names = [p.name for p in forward if p.kind != p.VAR_POSITIONAL]
        if isinstance(given, torch.Tensor):
            given = [given]
        pair = not isinstance(given, dict) and len(given) == 2 and isinstance(given[1], dict)
        takes_all = any(p.kind == p.VAR_KEYWORD for p in forward)
        self.args, self.keywords = (
            arguments_of(given)
            if not pair or given[1] and (takes_all or set(given[1]) <= set(names))
            else (list(given), {})
        )
        for name in self.keywords:
            if name not in names and not takes_all:
                raise Refused(f"{source.path}: get_inputs gives {name}, which is no argument of forward")
        for p in forward if isinstance(given, dict) else []:
            if p.default is p.empty and p.name not in self.keywords and p.kind <= p.KEYWORD_ONLY \
                    and p.kind != p.VAR_POSITIONAL:
                raise Refused(f"{source.path}: get_inputs does not give {p.name}, an argument of forward")
        order = {n: i for i, n in enumerate(names)}
        self.keywords = dict(sorted(self.keywords.items(), key=lambda k: order.get(k[0], len(order))))
        named, odd = [], []
        for i, value in enumerate(self.args):
            flat(value, names[i] if i < len(names) else f"x{i}", named, odd)
        for name, value in self.keywords.items():
            flat(value, name, named, odd)
        for name, value in odd:
            raise Refused(
                f"{source.path}: the argument {name} is a {type(value).__name__}; tensors, numbers and "
                "lists, tuples, dicts and dataclasses of them are expected"
            )
        for name, x in named:
            if x.numel() == 0:
                raise Refused(f"{source.path}: the argument {name} has no element")
        seen = set()  # a tensor that is given twice is two inputs
        self.tensors = [x.clone() if id(x) in seen else seen.add(id(x)) or x for _, x in named]
        self.names = []
        for name, _ in named:
            name = re.sub(r"\W", "_", name)
            self.names.append(name if name not in self.names else f"{name}_{len(self.names)}")

    def record(self):
        """The call by the names of forward's parameters; a parameter that is left out has its default."""
        out, left, keywords = {}, list(self.args), dict(self.keywords)
        for p in inspect.signature(self.forward).parameters.values():
            if p.kind == p.VAR_POSITIONAL:
                out[p.name], left = recorded(tuple(left)), []
            elif p.kind == p.VAR_KEYWORD:
                out[p.name] = recorded(keywords)
            elif left and p.kind != p.KEYWORD_ONLY:
                out[p.name] = recorded(left.pop(0))
            elif p.name in keywords:
                out[p.name] = recorded(keywords.pop(p.name))
        return out


class Reached(Exception):
    """A number of Python is asked of a tensor."""


class until_contents(torch.overrides.TorchFunctionMode):
    """Records what is computed until the contents of a tensor are asked for."""

    ASKS = {getattr(torch.Tensor, n)
            for n in ("item", "tolist", "__bool__", "__int__", "__float__", "__index__")}

    def __init__(self):
        super().__init__()
        self.made, self.taken, self.filled = [], set(), set()  # filled: without contents of the inputs

    def __torch_function__(self, function, types, args=(), keywords=None):
        keywords = keywords or {}
        given = [t for t in torch.utils._pytree.tree_leaves((args, keywords)) if isinstance(t, torch.Tensor)]
        self.taken.update(id(t) for t in given)
        if function in self.ASKS:
            raise Reached(CONTENTS)
        result = function(*args, **keywords)
        sets = function is torch.Tensor.__setitem__
        written = [args[0]] if sets else torch.utils._pytree.tree_leaves(result)
        is_filled = FILLED.match(getattr(function, "__name__", ""))
        for t in written:
            if isinstance(t, torch.Tensor):
                self.taken.discard(id(t))  # written in place
                self.made.append(t)
                (self.filled.add if is_filled else self.filled.discard)(id(t))
        return result

    def edge(self):
        """The results that nothing takes, each once."""
        left = {id(t): t for t in self.made if id(t) not in self.taken | self.filled}
        return list(left.values())[-MAX_EDGE:]


def cut_forward(own):
    """A forward that ends, with the results that it has, where the contents of a tensor decide."""
    def forward(*args, **keywords):
        with until_contents() as seen:
            try:
                return own(*args, **keywords)
            except Exception as e:
                if reason(e) != CONTENTS or not seen.edge():
                    raise
                return tuple(seen.edge())

    return forward


def flatten(source, module, inputs, notes, cut=False):
    """Makes forward take the tensors of the inputs, one by one, and return those of its result. cut: up to
    where the contents of a tensor decide what is computed."""
    own = cut_forward(module.forward) if cut else module.forward
    inputs.decided = None

    def forward(*tensors):
        given = iter(tensors)
        args, keywords = again(inputs.args, given), again(inputs.keywords, given)
        result, named, odd = own(*args, **keywords), [], []
        flat(result, "", named, odd)
        inputs.decided = decided(result)
        for name, value in odd:
            what = f"{type(value).__name__}{' ' if name else ''}{name}"
            notes[f"{source.name} returns a {what}, which is left out"] = 1
        if not named:
            what = "None" if result is None else f"a {type(result).__name__} without a tensor"
            raise Refused(
                f"{source.path}: {source.name} returns {what}; a tensor, or tensors in tuples, lists, dicts "
                "or dataclasses, is expected"
            )
        return tuple(t for _, t in named)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    forward.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in inputs.names])
    module.forward = forward

"""The operator of a package: torch.ops.quern.NAME, and a module that uses it."""

import ast
import json
import keyword
import os
import threading
import warnings

import torch

from . import plan
from .driver import Driver, Kernels, Prepared

_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16,
           "int32": torch.int32, "int64": torch.int64, "bool": torch.bool}
_BUFFERS = {"float": torch.float32, "double": torch.float64, "__half": torch.float16, "half": torch.float16,
            "__nv_bfloat16": torch.bfloat16, "int": torch.int32, "long long": torch.int64}
_ALIGNMENT = 16
# The handle of the current stream. torch.cuda.current_stream makes an object of it, which costs microseconds.
_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
    lambda index: torch.cuda.current_stream(index).cuda_stream
)
# The current device, without the check that CUDA is there: a tensor lies on it.
_device = getattr(torch._C, "_cuda_getDevice", None) or torch.cuda.current_device
_PLAIN = (torch.Tensor, torch.nn.Parameter)


# Whether a mode of PyTorch must see the call: tracing, functorch, a default device.
try:
    _modes = (
        torch._C._len_torch_dispatch_stack,
        torch._C._len_torch_function_stack,
        torch._C._functorch.peek_interpreter_stack,
    )
except AttributeError:  # not in this PyTorch
    _modes = (lambda: True,) * 3
_compiling = getattr(torch.compiler, "is_dynamo_compiling", torch.compiler.is_compiling)
_fragment = torch.library.Library("quern", "FRAGMENT")


class Package:
    def __init__(self, folder):
        with open(os.path.join(folder, "package.json")) as f:
            self.json = json.load(f)
        with open(os.path.join(folder, "verdict.json")) as f:
            self.verdict = json.load(f)
        self.folder, self.name = folder, self.json["name"]
        self.inputs = [spec["name"] for spec in self.json["inputs"]]
        self.dtypes = [_DTYPES[spec["dtype"]] for spec in self.json["inputs"]]
        self.out_dtypes = [_DTYPES[spec["dtype"]] for spec in self.json["outputs"]]
        self.out_names = [spec["name"] for spec in self.json["outputs"]]
        self.driver, self.kernels = None, {}
        # By the device and the shapes: the function of a call; for the others, why there is none.
        self.calls, self.refused = {}, {}
        self.lock, self.warned = threading.Lock(), False
        self.registered = self._register()
        self.op = _quick(self)
        self.module_class = _module_class(self)

    # ---- registration ----

    def _register(self):
        arguments = ", ".join(f"Tensor {n}" for n in self.inputs)
        result = (
            "Tensor"
            if len(self.out_dtypes) == 1
            else "(" + ", ".join(["Tensor"] * len(self.out_dtypes)) + ")"
        )
        _fragment.define(f"{self.name}({arguments}) -> {result}")
        _fragment.impl(self.name, self._cuda, "CUDA")
        _fragment.impl(self.name, self._original, "CPU")
        _fragment.impl(self.name, self._meta, "Meta")
        return getattr(torch.ops.quern, self.name).default

    def _result(self, tensors):
        return tensors[0] if len(tensors) == 1 else tuple(tensors)

    def _meta(self, *tensors):
        axes = plan.solve_axes(self.json, [t.shape for t in tensors])
        return self._result([tensors[0].new_empty([plan.evaluate(e, axes) for e in spec["shape"]], dtype=d)
                             for spec, d in zip(self.json["outputs"], self.out_dtypes)])

    # ---- the way outside of what was verified ----

    def _original(self, *tensors):
        values = dict(zip(self.inputs, tensors))
        graph = self.json.get("graph")
        if not graph:
            raise NotImplementedError(
                f"quern.{self.name}: these inputs are outside of what was verified, and "
                f"the package has no original"
            )
        axes = plan.solve_axes(self.json, [t.shape for t in tensors])
        for line in graph:
            run_line(line, values, axes)
        return self._result([values[n].contiguous() for n in self.out_names])

    def _fallback(self, why, tensors):
        if not self.warned:
            self.warned = True
            warnings.warn(f"quern.{self.name} takes the original's way: {why}", RuntimeWarning, stacklevel=3)
        return self._original(*tensors)

    def _reason(self, tensors):
        """Why the kernels cannot take these inputs, or None."""
        device = tensors[0].device
        for name, t, dtype in zip(self.inputs, tensors, self.dtypes):
            if t.dtype is not dtype:
                return f"{name} is {t.dtype}, expected {dtype}"
            if t.device != device:
                return f"{name} is on {t.device}, expected {device}"
            if not t.is_contiguous():
                return f"{name} is not contiguous"
            if t.data_ptr() % _ALIGNMENT:
                return f"{name} is not aligned to {_ALIGNMENT} bytes"
        return None

    # ---- the kernels ----

    def _cubin(self, device):
        major, minor = torch.cuda.get_device_capability(device)
        fitting = [b for b in self.json["binaries"] if b["major"] == major and b["minor"] <= minor]
        if not fitting:
            return None
        best = max(fitting, key=lambda b: b["minor"])
        with open(os.path.join(self.folder, best["file"]), "rb") as f:
            return f.read()

    def _prepare(self, device, shapes):
        """A pair, one of which is None: the function of a call, a reason."""
        try:
            axes = plan.solve_axes(self.json, shapes)
            why = plan.unverified(self.json, axes)
            if why:
                return None, why
            outputs, buffers, launches = plan.resolve(self.json, axes)
        except plan.PlanError as e:
            return None, str(e)
        with self.lock:
            if device not in self.kernels:
                if self.driver is None:
                    self.driver = Driver()
                cubin = self._cubin(device)
                self.kernels[device] = cubin and Kernels(self.driver, cubin, self.json["kernels"])
        if not self.kernels[device]:
            return None, f"it has no binary for {torch.cuda.get_device_name(device)}"
        memory = [
            (name, tuple(shape), dtype)
            for name, shape, dtype in zip(self.out_names, outputs, self.out_dtypes)
        ]
        for buffer, size in zip(self.json["buffers"], buffers):
            dtype = _BUFFERS.get(buffer["type"], torch.uint8)
            memory.append((buffer["name"], (size // dtype.itemsize,), dtype))
        slots = {name: i for i, name in enumerate(self.inputs + [name for name, _, _ in memory])}
        for line in [l for l in launches if isinstance(l, str)]:
            for name in line.split("=", 1)[0].split(","):
                slots.setdefault(name.strip(), len(slots))
        segments = self._segments(device, launches, slots)
        if any(isinstance(s, str) for s in segments):
            return _call_with_lines(self, segments, memory, axes, device.type), None
        return _call(segments[0].run, memory, device.type, len(outputs)), None

    def _segments(self, device, launches, slots):
        """The steps in order: a Prepared for launches that follow one another, or the line of an operator."""
        segments = []
        for step in launches:
            if isinstance(step, str):
                segments.append(step)
            elif segments and isinstance(segments[-1], list):
                segments[-1].append(step)
            else:
                segments.append([step])
        return [s if isinstance(s, str) else Prepared(self.kernels[device], s, slots) for s in segments]

    def _addresses(self, tensors, index):
        """Of the inputs; None where the kernels cannot take them."""
        addresses = []
        for t, dtype in zip(tensors, self.dtypes):
            address = t.data_ptr()
            if (
                t.dtype is not dtype
                or t.get_device() != index
                or address % _ALIGNMENT
                or not t.is_contiguous()
            ):
                return None
            addresses.append(address)
        return addresses

    def _cuda(self, *tensors):
        index = tensors[0].get_device()
        addresses = self._addresses(tensors, index)
        if addresses is None:
            return self._fallback(self._reason(tensors), tensors)
        shapes = [t.shape for t in tensors]
        if _device() == index:
            return self._run(index, tensors, addresses, shapes)
        with torch.cuda.device(index):
            return self._run(index, tensors, addresses, shapes)

    def _run(self, index, tensors, addresses, shapes):
        """On the current device."""
        key = (index, *shapes)
        call = self.calls.get(key)
        if call is None and key not in self.refused:
            call, why = self._prepare(tensors[0].device, [tuple(s) for s in shapes])
            if call:
                self.calls[key] = call
            else:
                self.refused[key] = why
        if call is None:
            return self._fallback(self.refused[key], tensors)
        return call(tensors, addresses, _stream(index))


def _allocator(device):
    """Memory on the current device: without PyTorch's dispatcher, as the code of torch.compile takes it."""
    try:
        return getattr(torch._C._dynamo.guards, f"_empty_strided_{device}")
    except AttributeError:
        return lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype, device=device)


def _strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(1, size)
    return tuple(strides)


def _make(memory, device):
    """A function that allocates outputs and buffers, and appends their addresses to a list."""
    wanted, empty = [(shape, _strides(shape), dtype) for _, shape, dtype in memory], _allocator(device)

    def make(addresses):
        made = []
        for shape, strides, dtype in wanted:
            t = empty(shape, strides, dtype)
            made.append(t)
            addresses.append(t.data_ptr())
        return made

    return make


def _call(launch, memory, device, outputs):
    """A call for one set of shapes on one device, of launches alone: a function of the inputs, the list of
    their addresses, which it extends, and the stream."""
    make, empty = _make(memory, device), _allocator(device)
    _, shape, dtype = memory[0]
    strides = _strides(shape)

    def call(tensors, addresses, stream):
        made = make(addresses)
        launch(addresses, stream)
        return made[0] if outputs == 1 else tuple(made[:outputs])

    def call_of_one(tensors, addresses, stream):
        result = empty(shape, strides, dtype)
        addresses.append(result.data_ptr())
        launch(addresses, stream)
        return result

    return call_of_one if len(memory) == 1 else call


def _call_with_lines(package, segments, memory, axes, device):
    """The same, where operators run between the launches."""
    make, names = _make(memory, device), package.inputs + [name for name, _, _ in memory]

    def call(tensors, addresses, stream):
        values = dict(zip(names, (*tensors, *make(addresses))))
        for segment in segments:
            if isinstance(segment, str):
                run_line(segment, values, axes)
            else:
                at = [0] * len(segment.slots)
                for name in segment.names:
                    at[segment.slots[name]] = values[name].data_ptr()
                segment.run(at, stream)
        return package._result([values[n].contiguous() for n in package.out_names])

    return call


# The function of an operator: a call that the kernels take needs no dispatcher of PyTorch, which costs more
# than all the rest; any other call goes to the registered operator. The checks are written out for each
# input: a loop over them costs as much as they do.
_FUNCTION = """
def {name}({arguments}):
    if _compiling() or _dispatch() or _function() or _functorch() or {unfit}:
        return _registered({arguments})
    _index = {first}.get_device()
    if _index < 0 or _index != _device(){elsewhere}:
        return _registered({arguments})
    _addresses = [{addresses}]
    if {unaligned}:
        return _registered({arguments})
    _call = _calls((_index, {shapes}))
    if _call is None:
        return _run(_index, ({arguments},), _addresses, [{shapes}])
    return _call(({arguments},), _addresses, _stream(_index))
"""
_UNFIT = ("(_type({t}) is not _plain and _type({t}) is not _parameter) or {t}.dtype is not _dtype_{t} or "
          "not {t}.is_contiguous() or ({t}.requires_grad and _grad())")


def _quick(package):
    names = [n + "_" if keyword.iskeyword(n) or n.startswith("_") else n for n in package.inputs]

    def each(text, separator, of=names):
        return separator.join(text.format(t=n) for n in of)

    source = _FUNCTION.format(
        name=package.name, first=names[0], arguments=", ".join(names), unfit=each(_UNFIT, " or "),
        elsewhere=each(" or {t}.get_device() != _index", "", names[1:]),
        addresses=each("{t}.data_ptr()", ", "), shapes=each("{t}.shape", ", "),
        unaligned=" or ".join(f"_addresses[{i}] % {_ALIGNMENT}" for i in range(len(names))),
    )
    dispatch, function, functorch = _modes
    plain, parameter = _PLAIN
    scope = {
        "_compiling": _compiling, "_dispatch": dispatch, "_function": function, "_functorch": functorch,
        "_grad": torch.is_grad_enabled, "_type": type, "_plain": plain, "_parameter": parameter,
        "_device": _device, "_stream": _stream, "_registered": package.registered,
        "_calls": package.calls.get, "_run": package._run,
    }
    scope.update((f"_dtype_{n}", d) for n, d in zip(names, package.dtypes))
    exec(compile(source, f"<the function of {package.name}>", "exec"), scope)
    return scope[package.name]


# ---- a line of a graph, as PyTorch runs it ----

_CONSTANTS = {"True": True, "False": False, "None": None, "inf": float("inf"), "nan": float("nan")}


def _split(text):
    """The parts of a list at its commas."""
    parts, depth, begin = [], 0, 0
    quoted = False
    for i, c in enumerate(text):
        quoted ^= c == "'"
        depth += 0 if quoted else {"(": 1, "[": 1, ")": -1, "]": -1}.get(c, 0)
        if c == "," and not depth and not quoted:
            parts.append(text[begin:i].strip())
            begin = i + 1
    last = text[begin:].strip()
    return parts + [last] if last else parts


def _value(text, tensors, axes):
    if text.startswith("["):
        return [_value(t, tensors, axes) for t in _split(text[1:-1])]
    if text in tensors:
        return tensors[text]
    if text.startswith("'"):
        return ast.literal_eval(text)
    if text.startswith("torch."):
        return getattr(torch, text[6:])
    if text.lstrip("-") in _CONSTANTS:
        value = _CONSTANTS[text.lstrip("-")]
        return -value if text.startswith("-") else value
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return plan.evaluate(text, axes)


def _operator(name):
    parts = name.split(".")
    packet = getattr(getattr(torch.ops, parts[0]), parts[1])
    return getattr(packet, parts[2]) if len(parts) > 2 else packet


def read_line(line, tensors, axes):
    """(names of results, operator, positional and keyword arguments) of "h = aten.relu.default(x)"."""
    results, call = line.split("=", 1)
    name, arguments = call.strip().split("(", 1)
    positional, keyword = [], {}
    for part in _split(arguments.rstrip()[:-1]):
        head, equal, rest = part.partition("=")
        if equal and head.isidentifier() and not rest.startswith("="):
            keyword[head] = _value(rest.strip(), tensors, axes)
        else:
            positional.append(_value(part, tensors, axes))
    return [r.strip() for r in results.split(",")], _operator(name), positional, keyword


def run_line(line, tensors, axes):
    """Runs a line and puts its results into `tensors`."""
    names, operator, positional, keyword = read_line(line, tensors, axes)
    values = operator(*positional, **keyword)
    tensors.update(zip(names, [values] if isinstance(values, torch.Tensor) else values))


# ---- a module in place of the original ----

def _attribute(source, path):
    """A tensor that a module keeps as a plain attribute, or None."""
    for name in path.split("."):
        source = getattr(source, name, None)
    return source if isinstance(source, torch.Tensor) else None


def _module_class(package):
    class Module(torch.nn.Module):
        """Module(original) or Module(state_dict): takes the parameters by their names in the original.
        Its call takes the original's inputs in their order."""

        def __init__(self, source):
            super().__init__()
            state = source.state_dict() if isinstance(source, torch.nn.Module) else source
            self._order = []
            for spec in package.json["inputs"]:
                key = spec.get("parameter")
                if not key:
                    self._order.append(None)
                    continue
                key = spec["name"] if key is True else key
                value = state[key] if key in state else _attribute(source, key)
                if value is None:
                    raise KeyError(f"quern.{package.name}: the original has no parameter {key}")
                self._order.append(spec["name"])
                self.register_buffer(spec["name"], value.detach())

        def forward(self, *tensors):
            given = iter(tensors)
            return package.op(*[next(given) if n is None else getattr(self, n) for n in self._order])

    Module.__name__ = Module.__qualname__ = package.name
    return Module


def load(init_file):
    return Package(os.path.dirname(os.path.abspath(init_file)))

"""The operator of a package: torch.ops.quern.NAME."""

import contextlib
import json
import os
import threading
import warnings

import torch

from . import plan
from .calls import memory_format, operator_function
from .driver import Driver, Kernels
from .graph import apart, run_line
from .held import Store
from .lines import ALIGNMENT, Writer
from .module import module_class

_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16,
           "int32": torch.int32, "int64": torch.int64, "bool": torch.bool, "int8": torch.int8,
           "uint8": torch.uint8, "int16": torch.int16, "float8_e4m3fn": torch.float8_e4m3fn,
           "float8_e5m2": torch.float8_e5m2}
_BUFFERS = {"float": torch.float32, "double": torch.float64, "__half": torch.float16, "half": torch.float16,
            "__nv_bfloat16": torch.bfloat16, "int": torch.int32, "long long": torch.int64,
            "signed char": torch.int8, "int8_t": torch.int8, "unsigned char": torch.uint8,
            "uint8_t": torch.uint8, "short": torch.int16, "bool": torch.bool,
            "__nv_fp8_e4m3": torch.float8_e4m3fn, "__nv_fp8_e5m2": torch.float8_e5m2}
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
_autocast = getattr(torch._C, "_is_any_autocast_enabled", torch.is_autocast_enabled)
# Beyond the judge's tolerance: how far results of a kernel and of eager PyTorch lie apart, of the largest.
_APART = {torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 4e-2}
_CAPTURED = "its first call at these sizes is within a CUDA graph's capture; call it once before"
_MOST_ARGUMENTS = 64  # of an operator's schema, in PyTorch 2.11: more inputs are one list
_fragment = torch.library.Library("quern", "FRAGMENT")
_TAGS = (torch.Tag.pt2_compliant_tag,
         getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order))


class Package:
    alignment, device_type = ALIGNMENT, "cuda"

    def __init__(self, folder, name):
        with open(os.path.join(folder, "package.json")) as f:
            self.json = json.load(f)
        with open(os.path.join(folder, "verdict.json")) as f:
            self.verdict = json.load(f)
        self.folder, self.name = folder, self.json["name"]
        self.inputs = [spec["name"] for spec in self.json["inputs"]]
        self.many = len(self.inputs) > _MOST_ARGUMENTS
        self.dtypes = [_DTYPES[spec["dtype"]] for spec in self.json["inputs"]]
        self.out_dtypes = [_DTYPES[spec["dtype"]] for spec in self.json["outputs"]]
        self.out_names = [spec["name"] for spec in self.json["outputs"]]
        # Of each tensor that the module returns: the output's place, or behind them the input's.
        own = self.json.get("results", range(len(self.out_names)))
        self.results = [r if isinstance(r, int) else len(self.out_names) + self.inputs.index(r) for r in own]
        self.driver, self.kernels = None, {}
        # By the device and the shapes: the function of a call; for the others, why there is none.
        self.calls, self.refused = {}, {}
        self.lock, self.warned, self.store = threading.Lock(), False, Store()
        self.fits = plan.fits(self.json)
        # While torch.compile traces, the line is said then.
        self.say_traced = torch.compiler.assume_constant_result(lambda why: self.say(why))
        self.registered = self._register()
        self.op = operator_function(self)
        self.module_class = module_class(self, name)

    # ---- registration ----

    def _register(self):
        arguments = "Tensor[] tensors" if self.many else ", ".join(f"Tensor {n}" for n in self.inputs)
        result = (
            "Tensor"
            if len(self.out_dtypes) == 1
            else "(" + ", ".join(["Tensor"] * len(self.out_dtypes)) + ")"
        )
        _fragment.define(f"{self.name}({arguments}) -> {result}", tags=_TAGS)
        self.operator = getattr(torch.ops.quern, self.name).default
        for f, key in (self._cuda, "CUDA"), (self._original, "CPU"), (self._meta, "Meta"):
            self.implement(f, key)
        own = (lambda keys, tensors: self._autograd(keys, *tensors)) if self.many else self._autograd
        _fragment.impl(self.name, own, "Autograd", with_keyset=True)
        return (lambda *tensors: self.operator(list(tensors))) if self.many else self.operator

    def arguments(self, tensors):
        """Those of the operator."""
        return (list(tensors),) if self.many else tensors

    def implement(self, f, key):
        """f, of the tensors, as the operator's for a key of PyTorch's dispatcher."""
        own = (lambda tensors: f(*tensors)) if self.many else f
        _fragment.impl(self.name, own, key, allow_override=True)

    def _result(self, tensors):
        return tensors[0] if len(tensors) == 1 else tuple(tensors)

    def _meta(self, *tensors):
        """The fake implementation: results without contents."""
        if [t.dtype for t in tensors] != self.dtypes:
            return self._original(*tensors)
        axes = plan.solve_axes(self.json, [t.shape for t in tensors])
        return self._result([tensors[0].new_empty([plan.evaluate(e, axes) for e in spec["shape"]], dtype=d)
                             for spec, d in zip(self.json["outputs"], self.out_dtypes)])

    def _autograd(self, keys, *tensors):
        """Gradients are the original's: the kernels have none."""
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            return self._fallback("it has no gradients of its own", tensors)
        with torch._C._AutoDispatchBelowAutograd():
            return self.operator.redispatch(keys & torch._C._after_autograd_keyset,
                                            *self.arguments(tensors))

    # ---- the way outside of what was verified ----

    def _original(self, *tensors, wide=False):
        """The task's graph. wide: in double precision."""
        graph = self.json.get("graph")
        if not graph:
            raise NotImplementedError(
                f"quern.{self.name}: these inputs are outside of what was verified, and "
                f"the package has no original"
            )
        axes = plan.solve_axes(self.json, [t.shape for t in tensors])
        if wide:
            tensors = [t.double() if t.is_floating_point() else t for t in tensors]
        values = dict(zip(self.inputs, tensors))
        with _wide() if wide else contextlib.nullcontext():
            for line in graph:
                run_line(line, values, axes, wide)
        return self._result(apart([values[n].contiguous() for n in self.out_names], tensors))

    def say(self, why):
        """One line, once."""
        if not self.warned:
            self.warned = True
            warnings.warn(f"quern.{self.name} takes the original's way: {why}", RuntimeWarning, stacklevel=4)

    def _fallback(self, why, tensors):
        self.say(why)
        return self._original(*tensors)

    def _reason(self, tensors, traced=False, copied=False):
        """Why the kernels cannot take these inputs, or None. traced: their addresses are not known. copied:
        those in channels_last are made contiguous before."""
        device = tensors[0].device
        for name, t, dtype in zip(self.inputs, tensors, self.dtypes):
            if t.dtype != dtype:
                return f"{name} is {t.dtype}, expected {dtype}"
            if t.device != device or device.type != self.device_type:
                return f"{name} is on {t.device}, expected {self.device_type}"
            if not (t.is_contiguous() or copied and memory_format(t)):
                return f"{name} is not contiguous"
            if not traced and t.data_ptr() % ALIGNMENT:
                return f"{name} is not aligned to {ALIGNMENT} bytes"
        return None

    # ---- what a module asks ----

    def traced(self):
        """Whether a mode of PyTorch sees each operator, as a tracer's does."""
        return _modes[0]() > 0

    def unfit(self, tensors, traced):
        """Why the operator does not stand for the original with these inputs, or None."""
        for name, t in zip(self.inputs, tensors):
            if not isinstance(t, torch.Tensor):
                return f"{name} is no tensor"
            if not traced and type(t) not in _PLAIN:
                return f"{name} is a {type(t).__name__}"
            if t.requires_grad and torch.is_grad_enabled():
                return f"{name} needs gradients"
        if _autocast():
            return "autocast is on"
        if not traced and _modes[2]() is not None:
            return "it is called within torch.func"
        why = self._reason(tensors, traced, copied=True)
        if why is None and traced and not (self.fits and self.fits([t.shape for t in tensors])):
            return "sizes are outside of those that were judged"
        return why

    def refusal(self, tensors):
        """Why the kernels cannot be launched for these sizes on this device, or None."""
        index = tensors[0].get_device()
        with torch.cuda.device(index):
            key = (index, *[t.shape for t in tensors])
            return None if self._find(key, tensors) else self.refused.get(key, _CAPTURED)

    def capturing(self):
        return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()

    def scope(self):
        """The names of a function in calls.py."""
        dispatch, function, functorch = _modes
        names = {
            "compiling": _compiling, "dispatch": dispatch, "function": function, "functorch": functorch,
            "tracing": torch._C._get_tracing_state, "grad": torch.is_grad_enabled,
            "any": any, "type": type, "plain": torch.Tensor,
            "parameter": torch.nn.Parameter, "device": _device, "stream": _stream,
            "registered": self.registered, "calls": self.calls.get, "run": self._run,
        }
        names.update((f"dtype_{i}", d) for i, d in enumerate(self.dtypes))
        return {f"_q_{k}": v for k, v in names.items()}

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
            if why and not plan.is_own(self.json, axes):
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
        types = dict(zip(self.out_names, zip(map(tuple, outputs), self.out_dtypes)))
        for buffer, size in zip(self.json["buffers"], buffers):
            dtype = _BUFFERS.get(buffer["type"], torch.uint8)
            types[buffer["name"]] = (size // dtype.itemsize,), dtype
        sizes = [(name, 0) for name in self.out_names] + [
            (buffer["name"], size) for buffer, size in zip(self.json["buffers"], buffers)]
        sizes, launches = plan.one_workspace(sizes, len(outputs), launches)
        memory = [(name, *types.get(name, ((size,), torch.uint8))) for name, size in sizes]
        return Writer(self, self.kernels[device], launches, memory, axes, device).call(), None

    def _addresses(self, tensors, index):
        """Of the inputs; None where the kernels cannot take them."""
        addresses = []
        for t, dtype in zip(tensors, self.dtypes):
            address = t.data_ptr()
            if (
                t.dtype is not dtype
                or t.get_device() != index
                or address % ALIGNMENT
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
        call = self._find(key, tensors)
        if call is None:
            return self._fallback(self.refused.get(key, _CAPTURED), tensors)
        return call(tensors, addresses, _stream(index))

    def _find(self, key, tensors):
        """The function of a call, or None: it is refused."""
        call = self.calls.get(key)
        if call is None and key not in self.refused:
            call, why = self._prepare(tensors[0].device, [tuple(s) for s in key[1:]])
            if call and plan.unverified(self.json, plan.solve_axes(self.json, key[1:])):
                if self.capturing():
                    return None
                why = self._first(call, tensors, key[0])
            if why:
                self.refused[key], call = why, None
            else:
                self.calls[key] = call
        return call

    def _first(self, call, tensors, index):
        """The module's own sizes may be larger than what was judged: the first call compares, and a reason
        refuses them."""
        tensors = [t.contiguous() for t in tensors]
        got = call(tensors, [t.data_ptr() for t in tensors], _stream(index))
        return self.apart(got, self._original(*tensors))

    def apart(self, got, want):
        """A reason, where the operator's results are not eager PyTorch's on the same inputs, or None."""
        got, want = ([r] if isinstance(r, torch.Tensor) else r for r in (got, want))
        for i, (g, w) in enumerate(zip(got, want)):
            if g.shape != w.shape:
                return f"its result has the shape {list(w.shape)}, the kernel's {list(g.shape)}"
            if not w.numel():
                continue
            judged, rtol = [case["tolerance"][i] for case in self.json["cases"]], _APART.get(w.dtype, 0)
            both = torch.isfinite(w) & torch.isfinite(g)
            if not bool((both | (g == w) | (g != g) & (w != w)).all()):
                return "its results are finite where the kernel's are not, or the reverse"
            g, w = (torch.where(both, t, 0).double() for t in (g, w))
            far, size = float((g - w).abs().max()), float(w.abs().max())
            if far > max([c["atol"] for c in judged]) + max([rtol] + [c["rtol"] for c in judged]) * size:
                return f"the kernel's result is {far:.3g} from the original's, of at most {size:.3g}"
        return None


@contextlib.contextmanager
def _wide():
    """A float tensor that is made of numbers or of integers has double precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def load(init_file, name):
    return Package(os.path.dirname(os.path.abspath(init_file)), name)

"""Complex numbers as pairs of real tensors while a module is traced, so that its graph has real tensors
alone: products, conjugates and magnitudes become ordinary operators, and Fourier transforms the operators
aten._fft_*.pairs, which take and give complex numbers along a last dimension of two."""

import importlib.util
import itertools
import os

import torch
from torch.overrides import TorchFunctionMode

NORMS = {"backward": 0, "ortho": 1, "forward": 2}


def transforms():
    """The operators of transforms, which packages define for their op lines."""
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../share/export/torch/pairs.py")
    spec = importlib.util.spec_from_file_location("quern_pairs", place)
    pairs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pairs)
    pairs.define()
    return [getattr(torch.ops.aten, name).pairs for name in ("_fft_r2c", "_fft_c2c", "_fft_c2r")]


R2C, C2C, C2R = transforms()


class Unpaired(Exception):
    """A complex tensor meets what is not followed."""


class Pair:
    """A complex tensor: its real and its imaginary part."""

    is_cuda, requires_grad, grad_fn = False, False, None

    def __init__(self, real, imag):
        self.real, self.imag = real, imag

    shape = property(lambda self: self.real.shape)
    device = property(lambda self: self.real.device)
    ndim = property(lambda self: self.real.ndim)
    dtype = property(lambda self: torch.complex128 if self.real.dtype == torch.float64 else torch.complex64)
    mT = property(lambda self: self.transpose(-1, -2))
    T = property(lambda self: self.transpose(0, 1))

    def size(self, *dim):
        return self.real.size(*dim)

    def dim(self):
        return self.real.dim()

    def numel(self):
        return self.real.numel()

    def is_complex(self):
        return True

    def __len__(self):
        return len(self.real)

    def __iter__(self):
        return iter(self.unbind(0))

    def __setitem__(self, at, value):
        value = paired(value)
        self.real[at], self.imag[at] = value.real, value.imag

    def __getattr__(self, name):
        if name.startswith("__") or name not in FOLLOWED:
            raise AttributeError(name)
        return lambda *args, **kwargs: followed(name, (self, *args), kwargs)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return followed(name_of(func), args, kwargs or {})


def binary(name, turned=False):
    def call(self, other):
        return followed(name, (other, self) if turned else (self, other), {})

    return call


for _name in ("add", "sub", "mul", "truediv", "matmul", "pow"):
    setattr(Pair, f"__{_name}__", binary(_name))
    if _name != "pow":
        setattr(Pair, f"__r{_name}__", binary(_name, True))
Pair.__neg__ = lambda self: followed("neg", (self,), {})
Pair.__getitem__ = binary("getitem")
Pair.__abs__ = lambda self: followed("abs", (self,), {})


def name_of(func):
    name = getattr(func, "__name__", str(func))
    if name == "__get__":  # of a property, whose name its owner has
        name = getattr(func.__self__, "__name__", name)
    return name.strip("_") if name.startswith("__") else name


def paired(x):
    """A number or a tensor as a pair; a real one has no imaginary part: None."""
    if isinstance(x, Pair):
        return x
    if isinstance(x, complex):
        return Pair(x.real, x.imag)
    if isinstance(x, torch.Tensor) and x.is_complex():
        raise Unpaired("a complex tensor that no pair stands for")
    return Pair(x, 0)


def is_real(x):
    return not isinstance(x, (Pair, complex))


# ---- arithmetic ----

def add(x, y, sign=1):
    a, b = (t if is_real(t) else t.real for t in (x, y))
    real = a + b if sign > 0 else a - b
    if is_real(y):
        imag = x.imag
    elif is_real(x):
        imag = y.imag if sign > 0 else -y.imag
    else:
        imag = x.imag + y.imag if sign > 0 else x.imag - y.imag
    if not isinstance(imag, torch.Tensor):
        return Pair(real, torch.full_like(real, imag))
    return Pair(real, imag if imag.shape == real.shape else imag.expand(real.shape))


def product(x, y, times=lambda a, b: a * b):
    if isinstance(x, complex):
        x, y = y, x
    if isinstance(y, complex) and not y.real:  # a turn by a quarter
        y = y.imag
        return Pair(-(x.imag * y), x.real * y) if isinstance(x, Pair) else Pair(torch.zeros_like(x), x * y)
    if is_real(x):
        return Pair(times(x, y.real), times(x, y.imag))
    if is_real(y):
        return Pair(times(x.real, y), times(x.imag, y))
    return Pair(times(x.real, y.real) - times(x.imag, y.imag), times(x.real, y.imag) + times(x.imag, y.real))


def quotient(x, y):
    if is_real(y):
        return Pair(x.real / y, x.imag / y)
    if is_real(x):
        x = Pair(x, x * 0)
    square = y.real * y.real + y.imag * y.imag
    top = product(x, Pair(y.real, -y.imag))
    return Pair(top.real / square, top.imag / square)


def power(x, n):
    if n != 2:
        raise Unpaired("a power of a complex tensor")
    return product(x, x)


def exponential(x):
    size = x.real.exp()
    return Pair(size * x.imag.cos(), size * x.imag.sin())


def einsum(equation, *operands):
    """Each choice of a part of each complex operand is an einsum: an even number of imaginary parts makes a
    real one."""
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    parts, sums = [[(x, 0)] if is_real(x) else [(x.real, 0), (x.imag, 1)] for x in operands], [None, None]
    for choice in itertools.product(*parts):
        turns = sum(k for _, k in choice)
        term = torch.einsum(equation, *(x for x, _ in choice))
        at, negative = turns % 2, turns % 4 > 1
        sums[at] = term if sums[at] is None else sums[at] - term if negative else sums[at] + term
    return Pair(*sums)


# ---- transforms ----

def last(x, dim):
    return x if dim in (-1, x.dim() - 1) else x.transpose(dim, -1)


def resized(x, n):
    """Rows of n elements along the last dimension: a part, or zeros behind."""
    have = x.shape[-1]
    if n is None or n == have:
        return x
    if n < have:
        return x[..., :n]
    both = (x.real, x.imag) if isinstance(x, Pair) else (x,)
    both = [torch.nn.functional.pad(t, (0, n - have)) for t in both]
    return Pair(*both) if isinstance(x, Pair) else both[0]


def real_rows(x):
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    if x.dtype not in (torch.float32, torch.float64):
        raise Unpaired(f"a transform of {x.dtype}")
    return x


def along(x, n, dim, norm, inverse, half=False):
    """One transform. A real input of an inverse one is the conjugate of a forward one's."""
    by = NORMS[norm or "backward"]
    by = 2 - by if inverse else by
    x = resized(last(x, dim), n)
    if isinstance(x, Pair):
        y = C2C(torch.stack([x.real, x.imag], -1), by, not inverse)
    else:
        y = R2C(real_rows(x), by, half)
    turned = inverse and not isinstance(x, Pair)
    return last(Pair(y[..., 0], -y[..., 1] if turned else y[..., 1]), dim)


def to_real(x, n, dim, norm):
    n = 2 * (x.shape[dim] - 1) if n is None else n
    x = resized(last(x, dim), n // 2 + 1)
    x = x if isinstance(x, Pair) else Pair(real_rows(x), torch.zeros_like(real_rows(x)))
    return last(C2R(torch.stack([x.real, x.imag], -1), 2 - NORMS[norm or "backward"], n), dim)


def dims_of(x, s, dim):
    """(dimension, size or None) of each transform of several."""
    if dim is None:
        dim = list(range(-len(s), 0)) if s is not None else list(range(-x.dim(), 0))
    dim = [dim] if isinstance(dim, int) else list(dim)
    sizes = [None if n == -1 else n for n in s] if s is not None else [None] * len(dim)
    return list(zip(dim, sizes, strict=True))


def one(inverse=False):
    return lambda input, n=None, dim=-1, norm=None: along(input, n, dim, norm, inverse)


def many(inverse=False, dims=None):
    def call(input, s=None, dim=dims, norm=None):
        for d, n in reversed(dims_of(input, s, dim)):
            input = along(input, n, d, norm, inverse)
        return input

    return call


def many_half(dims=None):
    def call(input, s=None, dim=dims, norm=None):
        *others, (d, n) = dims_of(input, s, dim)
        y = along(input, n, d, norm, False, True)
        for d, n in reversed(others):
            y = along(y, n, d, norm, False)
        return y

    return call


def many_real(dims=None):
    def call(input, s=None, dim=dims, norm=None):
        *others, (d, n) = dims_of(input, s, dim)
        for e, m in others:
            input = along(input, m, e, norm, True)
        return to_real(input, n, d, norm)

    return call


TRANSFORMS = {
    "fft_fft": one(), "fft_ifft": one(True),
    "fft_rfft": lambda input, n=None, dim=-1, norm=None: along(input, n, dim, norm, False, True),
    "fft_irfft": lambda input, n=None, dim=-1, norm=None: to_real(input, n, dim, norm),
    "fft_fft2": many(False, (-2, -1)), "fft_ifft2": many(True, (-2, -1)),
    "fft_fftn": many(False), "fft_ifftn": many(True),
    "fft_rfft2": many_half((-2, -1)), "fft_rfftn": many_half(),
    "fft_irfft2": many_real((-2, -1)), "fft_irfftn": many_real(),
}


# ---- functions ----

def parts(name):
    """A function that moves elements or sums them: of both parts."""
    def call(x, *args, **kwargs):
        if isinstance(x, (list, tuple)):
            x = [paired(t) for t in x]
            real, imag = [t.real for t in x], [t.imag for t in x]
            if any(isinstance(t, int) for t in imag):
                imag = [torch.zeros_like(r) if isinstance(t, int) else t for r, t in zip(real, imag)]
        else:
            real, imag = x.real, x.imag
        function = getattr(torch, name, None) or getattr(torch.nn.functional, name, None)
        function = getattr(torch.Tensor, name, None) or function if not isinstance(real, list) else function
        r, i = function(real, *args, **kwargs), function(imag, *args, **kwargs)
        return tuple(map(Pair, r, i)) if isinstance(r, (list, tuple)) else Pair(r, i)

    return call


def to(x, *args, **kwargs):
    """To a device or to its own type."""
    if any(isinstance(a, torch.dtype) and a != x.dtype for a in (*args, *kwargs.values())):
        raise Unpaired("a conversion of a complex tensor")
    return x


def size_of(x):
    return (x.real * x.real + x.imag * x.imag).sqrt()


FOLLOWED = {
    **{n: parts(n) for n in (
        "reshape", "view", "transpose", "permute", "unsqueeze", "squeeze", "flatten", "contiguous", "expand",
        "cat", "concat", "stack", "roll", "flip", "movedim", "chunk", "split", "clone", "repeat", "unflatten",
        "swapaxes", "narrow", "select", "index_select", "sum", "mean", "cumsum", "pad", "detach", "unbind",
        "expand_as", "view_as", "reshape_as", "fft_fftshift", "fft_ifftshift", "diagonal", "tile",
        "repeat_interleave", "zeros_like", "swapdims", "moveaxis",
    )},
    "getitem": lambda x, at: Pair(x.real[at], x.imag[at]),
    "setitem": lambda x, at, value: x.__setitem__(at, value),
    "add": lambda x, y, alpha=1: add(x, y * alpha if alpha != 1 else y),
    "sub": lambda x, y, alpha=1: add(x, y * alpha if alpha != 1 else y, -1),
    "mul": product, "multiply": product, "div": quotient, "truediv": quotient, "pow": power,
    "square": lambda x: product(x, x),
    "matmul": lambda x, y: product(x, y, torch.matmul), "bmm": lambda x, y: product(x, y, torch.bmm),
    "mm": lambda x, y: product(x, y, torch.mm), "einsum": einsum, "exp": exponential,
    "neg": lambda x: Pair(-x.real, -x.imag), "conj": lambda x: Pair(x.real, -x.imag),
    "conj_physical": lambda x: Pair(x.real, -x.imag), "resolve_conj": lambda x: x, "resolve_neg": lambda x: x,
    "real": lambda x: x.real, "imag": lambda x: x.imag, "abs": size_of, "absolute": size_of,
    "angle": lambda x: torch.atan2(x.imag, x.real), "to": to, "is_complex": lambda x: True,
    "view_as_real": lambda x: torch.stack([x.real, x.imag], -1), "cfloat": lambda x: x,
    "is_floating_point": lambda x: False, "numel": lambda x: x.numel(),
    **TRANSFORMS,
}
for _name in ("add", "sub", "mul", "div"):
    FOLLOWED["r" + _name] = lambda x, y, _f=FOLLOWED[_name]: _f(y, x)

MADE = {
    "view_as_complex": lambda x: Pair(x[..., 0], x[..., 1]),
    "complex": lambda real, imag: Pair(real, imag),
    "polar": lambda abs, angle: Pair(abs * angle.cos(), abs * angle.sin()),
    **TRANSFORMS,
}
FACTORIES = ("zeros", "ones", "empty", "new_zeros", "new_ones", "new_empty")


def followed(name, args, kwargs):
    if name not in FOLLOWED:
        raise Unpaired(f"{name} of a complex tensor")
    return FOLLOWED[name](*args, **kwargs)


def filled(func, name, args, kwargs):
    kwargs = {**kwargs, "dtype": torch.float64 if kwargs["dtype"] == torch.complex128 else torch.float32}
    real = func(*args, **kwargs)
    return Pair(real, torch.zeros_like(real))


class Pairs(TorchFunctionMode):
    """Functions that make complex tensors make pairs."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name, kwargs = name_of(func), kwargs or {}
        if Pair in types or any(isinstance(a, (Pair, complex)) for a in args):
            return followed(name, args, kwargs)
        if name in MADE:
            return MADE[name](*args, **kwargs)
        if name in FACTORIES and getattr(kwargs.get("dtype"), "is_complex", False):
            return filled(func, name, args, kwargs)
        to = [a for a in (*args[1:], *kwargs.values()) if isinstance(a, torch.dtype)] if name == "to" else []
        if any(a.is_complex for a in to):
            return Pair(args[0], torch.zeros_like(args[0]))
        return func(*args, **kwargs)


def has_complex(program):
    def is_complex(value):
        if isinstance(value, (list, tuple)):
            return any(map(is_complex, value))
        return isinstance(value, torch.Tensor) and value.is_complex()

    return any(is_complex(n.meta.get("val")) for n in program.graph.nodes)

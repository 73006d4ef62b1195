"""How tools/export.py traces a module: with free sizes, without running recurrent steps, and with the
element types that torch.autocast chooses on a GPU."""

import contextlib
import math
import re
import signal
import threading

import torch

from export_answers import answered
from export_complex import Pairs, has_complex
from export_source import Placed, Refused, blame, reason, watched

MAX_FREE = 130  # parameters and buffers; of more, dimensions are fixed, since tracing would take minutes
MAX_CORNER = 64  # elements of a matrix, and of places in its corner: as many as an archive keeps
# CPU seconds of a trace with free sizes of all tensors, then of fewer: modules of 130 parameters take some
# 10, and a Swin's windows minutes (2026-11-30).
MAX_TRACE = 25, 12


class Late(BaseException):
    """A trace takes too long. PyTorch's own handlers of exceptions pass it on."""


@contextlib.contextmanager
def in_time(seconds):
    """Ends what takes more CPU seconds, by a signal, which the main thread alone can have."""
    def late(*given):
        raise Late(f"a trace with free sizes takes more than {seconds} s")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class attributes_kept:
    """What forward has set on modules is as it was before: Swin keeps the window of a trace, whose sizes
    another trace has not."""

    def __init__(self, module):
        self.module = module

    def __enter__(self):
        self.kept = [(vars(m), dict(vars(m))) for m in self.module.modules()]

    def __exit__(self, *error):
        for own, before in self.kept:
            own.clear()
            own.update(before)


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


class autocast_regions:
    """Regions of torch.autocast are recorded as those of a GPU, whatever device a module is traced on. A
    region that turns it off is none, where no other turns it on. The regions of decorators are made while a
    file is loaded, so this is entered before."""

    def __enter__(self):
        kind, on = torch.autocast, []
        init, enter, leave = self.own = kind.__init__, kind.__enter__, kind.__exit__

        def noted(region, device_type, dtype=None, enabled=True, cache_enabled=None):
            device = "cuda" if device_type in ("cpu", "meta") else device_type
            init(region, device, dtype, enabled, cache_enabled)
            region._enabled = region.is_on = enabled

        def entered(region):
            region.is_region = region.is_on or on
            on.extend([region] if region.is_region else [])
            return enter(region) if region.is_region else region

        def left(region, *error):
            if region.is_region:
                on.pop()
                return leave(region, *error)

        kind.__init__, kind.__enter__, kind.__exit__ = noted, entered, left

    def __exit__(self, *error):
        torch.autocast.__init__, torch.autocast.__enter__, torch.autocast.__exit__ = self.own


# What PyTorch's autocast converts for a GPU (docs, "Autocast Op Reference"), by names of ATen.
LOWER = set("""
    conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution
    prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linalg_multi_dot linear bmm baddbmm
    addbmm chain_matmul scaled_dot_product_attention lstm gru rnn_tanh rnn_relu lstm_cell gru_cell
    rnn_tanh_cell rnn_relu_cell
""".split())
FLOAT = set("""
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus
    layer_norm native_layer_norm group_norm rms_norm norm nuclear_norm cosine_similarity
    poisson_nll_loss nll_loss nll_loss_nd cross_entropy_loss cosine_embedding_loss
    hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss
    multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss
    binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp prod softmax log_softmax
    cumprod cumsum linalg_vector_norm sum upsample_nearest1d upsample_nearest2d upsample_nearest3d
    upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d
""".split())
WIDEST = {"addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put",
          "tensordot", "scatter_add", "cat", "stack"}
HALVES = (torch.float16, torch.bfloat16)


class Plain(torch.fx.Interpreter):
    """Runs a graph without regions: those of autocast are conversions, those of gradients nothing."""

    def __init__(self, module, dtype=None):
        super().__init__(module)
        self.dtype, self.kept = dtype, {}

    def converted(self, value, to):
        if isinstance(value, (list, tuple)):
            return type(value)(self.converted(v, to) for v in value)
        narrow = (torch.float32, *HALVES)
        if not isinstance(value, torch.Tensor) or value.dtype not in narrow or value.dtype == to:
            return value
        if not isinstance(value, torch.nn.Parameter):
            return value.to(to)
        if id(value) not in self.kept:  # autocast converts a weight once
            self.kept[id(value)] = value.to(to)
        return self.kept[id(value)]

    def call_function(self, target, args, kwargs):
        name = str(target)
        if "_assert_tensor_metadata" in name:  # of types before the conversions
            return None
        if "wrap_with_autocast" in name:
            dtype = (args[1] or torch.float16) if args[2] else None
            return Plain(args[4], dtype).run(*args[5:])
        if "wrap_with_set_grad_enabled" in name:
            return Plain(args[1], self.dtype).run(*args[2:])
        op = re.match(r"aten\.(\w+?)_?\.", name)
        if self.dtype and op:
            tensors = [t for a in args for t in (a if isinstance(a, (list, tuple)) else [a])]
            to = self.dtype if op[1] in LOWER else torch.float32 if op[1] in FLOAT else None
            if op[1] in WIDEST and any(getattr(t, "dtype", None) == torch.float32 for t in tensors):
                to = torch.float32
            if to:
                args = tuple(self.converted(a, to) for a in args)
                kwargs = {k: self.converted(v, to) for k, v in kwargs.items()}
        return super().call_function(target, args, kwargs)


class Retraced(torch.nn.Module):
    """An exported program whose regions are plain operators."""

    def __init__(self, program):
        super().__init__()
        self.program = program.module(check_guards=False)

    def forward(self, *args):
        with torch.fx.traceback.preserve_node_meta():
            return Plain(self.program).run(*args)


def has_regions(program):
    return any("wrap_with_" in str(n.target) for n in program.graph.nodes if n.op == "call_function")


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


def distances(x, y, p=2.0, compute_mode=None):
    """torch.cdist as eager PyTorch computes it of more than 25 rows, or None: a kernel of its own does it."""
    always, never = "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"
    mode = {1: always, 2: never}.get(compute_mode, compute_mode)
    if p != 2 or mode == never or mode != always and x.shape[-2] <= 25 and y.shape[-2] <= 25:
        return None
    norm, other = x.pow(2).sum(-1, keepdim=True), y.pow(2).sum(-1, keepdim=True)
    left = torch.cat((x.mul(-2), norm, torch.ones_like(norm)), -1)
    right = torch.cat((y, torch.ones_like(other), other), -1)
    return left.matmul(right.mT).clamp_min(0).sqrt()


def diagonal_filled(x, value, wrap=False):
    """Tensor.fill_diagonal_, or None: its diagonal wraps."""
    if wrap or x.dim() != 2:
        return None
    x.diagonal().fill_(value)
    return x


def bilinear(a, b, weight, bias=None):
    """nn.Bilinear: a form of two vectors for each feature."""
    rows = torch.einsum("bi,kij->bkj", a.reshape(-1, a.shape[-1]), weight)
    y = (rows * b.reshape(-1, 1, b.shape[-1])).sum(-1).reshape(*a.shape[:-1], -1)
    return y if bias is None else y + bias


def gaussian(x, target, var, full=False, eps=1e-6, reduction="mean"):
    """F.gaussian_nll_loss without its look at the variances, or None where they are one for a row."""
    if not isinstance(var, torch.Tensor) or var.dim() != x.dim():
        return None
    var = var.clamp(min=eps)
    loss = 0.5 * (var.log() + (x - target).square() / var) + (0.5 * math.log(2 * math.pi) if full else 0)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def poisson(x, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None,
            reduction="mean"):
    """F.poisson_nll_loss, or None with Stirling's term."""
    if full:
        return None
    loss = x.exp() - target * x if log_input else x - target * (x + eps).log()
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def cosine_embedding(a, b, target, margin=0.0, size_average=None, reduce=None, reduction="mean"):
    """F.cosine_embedding_loss as eager PyTorch computes it."""
    norms = ((a * a).sum(-1) + 1e-12) * ((b * b).sum(-1) + 1e-12)
    cos = (a * b).sum(-1) / norms.sqrt()
    apart = (cos - margin).clamp_min(0)
    loss = torch.where(target == 1, 1 - cos, 0.0) + torch.where(target == -1, apart, 0.0)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def dot(a, b):
    """torch.vdot of real vectors."""
    return None if a.is_complex() else torch.dot(a, b)


def rounded(x, scale, zero, low, high):
    """What fake_quantize gives: whole numbers of the scale."""
    return (((x * (1 / scale)).round() + zero).clamp(low, high) - zero) * scale


def rounded_rows(x, scale, zero, axis, low, high):
    """The same with a scale for each row along a dimension."""
    shape = [-1 if d == axis else 1 for d in range(x.dim())]
    return rounded(x, scale.view(shape), zero.view(shape), low, high)


def whole_window(n, periodic, device, dtype):
    """The places of a window as parts of a turn."""
    if not isinstance(n, int) or n < 2:
        return None
    turn = 2 * math.pi / (n if periodic else n - 1)
    return torch.arange(n, device=device, dtype=dtype or torch.get_default_dtype()) * turn


def hann(window_length, periodic=True, *, dtype=None, device=None, **others):
    """torch.hann_window, or None."""
    turned = whole_window(window_length, periodic, device, dtype)
    return None if turned is None else 0.5 - 0.5 * turned.cos()


def hamming(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, device=None, **others):
    """torch.hamming_window, or None."""
    turned = whole_window(window_length, periodic, device, dtype)
    return None if turned is None else alpha - beta * turned.cos()


def corner(kind):
    """torch.triu_indices or torch.tril_indices as a constant, or None: it has many elements."""
    sign = 1 if kind == "triu" else -1
    inside = lambda i, j, offset: sign * (j - i - offset) >= 0

    def indices(row, col, offset=0, *, dtype=torch.long, device=None, **others):
        if not (type(row) is type(col) is int) or row * col > MAX_CORNER:
            return None
        places = [(i, j) for i in range(row) for j in range(col) if inside(i, j, offset)]
        if 2 * len(places) > MAX_CORNER:
            return None
        return torch.tensor([[p[0] for p in places], [p[1] for p in places]], dtype=dtype, device=device)

    return indices


def one_place(index):
    """An index of one element as a form that a trace follows: of a tensor without dimensions PyTorch asks the
    contents, and a list of one negative number is a constant that counts from the end."""
    if isinstance(index, torch.Tensor) and index.dim() == 0 and index.dtype in (torch.int32, torch.int64):
        return index.reshape(1), True
    if isinstance(index, list) and len(index) == 1 and type(index[0]) is int and index[0] < 0:
        return slice(index[0], index[0] + 1 or None), False
    return index, False


def selected(x, index):
    """x[index] with such places, or None: there are none, or others beside them."""
    parts = index if isinstance(index, tuple) else (index,)
    placed = [one_place(p) for p in parts]
    others = sum(isinstance(p, (torch.Tensor, list)) for p in parts)
    if others > 1 or all(a is b for (a, _), b in zip(placed, parts)):
        return None
    y = x[tuple(p for p, _ in placed)]
    at = next((i for i, (_, one) in enumerate(placed) if one), None)
    if at is None:
        return y
    if any(p is None or p is Ellipsis for p in parts[:at]) or any(type(p) is int for p in parts):
        return None
    return y.squeeze(at)


class expanded(torch.overrides.TorchFunctionMode):
    """Functions that are operators of their own to PyTorch's tracer are those that they launch. Distributions
    do not look at the contents of their parameters."""

    KNOWN = {torch.cdist: distances, torch.Tensor.fill_diagonal_: diagonal_filled,
             torch.nn.functional.gaussian_nll_loss: gaussian,
             torch.nn.functional.poisson_nll_loss: poisson,
             torch.nn.functional.cosine_embedding_loss: cosine_embedding, torch.bilinear: bilinear,
             torch.vdot: dot, torch.hann_window: hann, torch.hamming_window: hamming,
             torch.triu_indices: corner("triu"), torch.tril_indices: corner("tril"),
             torch.Tensor.__getitem__: selected, torch.fake_quantize_per_tensor_affine: rounded,
             torch.fake_quantize_per_channel_affine: rounded_rows}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = self.KNOWN.get(func)
        result = made(*args, **(kwargs or {})) if made else None
        return func(*args, **(kwargs or {})) if result is None else result

    def __enter__(self):
        kind = torch.distributions.Distribution
        self.kept, kind._validate_args = kind._validate_args, False
        return super().__enter__()

    def __exit__(self, *error):
        torch.distributions.Distribution._validate_args = self.kept
        return super().__exit__(*error)


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


def unmarked(given):
    """The tensors anew: PyTorch notes on each of them which sizes are free, and a trace that fails leaves
    that."""
    return torch.utils._pytree.tree_map(lambda t: t.detach() if isinstance(t, torch.Tensor) else t, given)


def trace(source, module, inputs, answers=()):
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
    first, device = None, inputs[0].device if inputs else "meta"
    for callee, given, shapes, parameters in ways[0 if 0 < len(own) <= MAX_FREE else 1:]:
        seconds = MAX_TRACE[0 if first is None else 1]
        given = unmarked(given)
        with watched(source.file, "when it is called"), numbers_kept(), recurrent_shapes(), \
                Placed(device), torch.no_grad(), expanded(), answered(answers), attributes_kept(module):
            try:
                with in_time(seconds) if shapes else contextlib.nullcontext():
                    program = torch.export.export(callee, given, dynamic_shapes=shapes, strict=False)
                if has_regions(program):
                    program = torch.export.export(
                        Retraced(program), given, dynamic_shapes=(shapes,) if shapes else None, strict=False
                    )
                if has_complex(program):
                    program = without_complex(callee, given, shapes) or program
            except Refused:
                raise
            except (Exception, Late) as e:
                first = e
                continue
        if any(has_lost_rows(n) for n in program.graph.nodes):
            lost = "PyTorch gives the loss of each row the shape of a number"
            raise Refused(f"{source.path}: the module cannot be exported: {lost}")
        return program, parameters
    raise Refused(f"{blame(source, first)}: the module cannot be exported: {reason(first)}") from first


def without_complex(callee, given, shapes):
    """The program with complex tensors as pairs of real ones; None: not all of them are followed."""
    try:
        with Pairs():
            program = torch.export.export(callee, given, dynamic_shapes=shapes, strict=False)
    except Exception:  # the first program tells the line
        return None
    return None if has_complex(program) else program


def has_lost_rows(node):
    """On the meta device torch gives a cross entropy of each row with free sizes the shape of a number."""
    if node.target is not torch.ops.aten.cross_entropy_loss.default:
        return False
    reduction = node.args[3] if len(node.args) > 3 else node.kwargs.get("reduction", 1)
    return reduction == 0 and node.meta["val"].dim() == 0 and node.args[0].meta["val"].dim() > 1

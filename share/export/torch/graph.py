"""A task's graph as PyTorch runs it: lines such as "h = aten.linear.default(x, weight)"."""

import ast
from operator import getitem

import torch

from . import pairs, plan

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


def _value(text, tensors, axes, wide):
    if text.startswith("["):
        return [_value(t, tensors, axes, wide) for t in _split(text[1:-1])]
    if text in tensors:
        return tensors[text]
    if text.startswith("'"):
        return ast.literal_eval(text)
    if text.startswith("torch."):
        value = getattr(torch, text[6:])
        is_float = isinstance(value, torch.dtype) and value.is_floating_point
        return torch.float64 if wide and is_float else value
    if text.lstrip("-") in _CONSTANTS:
        value = _CONSTANTS[text.lstrip("-")]
        return -value if text.startswith("-") else value
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return plan.evaluate(text, axes)


def _operator(name):
    parts = name.split(".")
    if parts[-1] == "pairs":
        pairs.define()
    packet = getattr(getattr(torch.ops, parts[0]), parts[1])
    return getattr(packet, parts[2]) if len(parts) > 2 else packet


def _gives_tensor(operator):
    """Whether the result is a tensor, no tuple or list."""
    schema = getattr(operator, "_schema", None) or getattr(operator, operator.overloads()[0])._schema
    return len(schema.returns) == 1 and isinstance(schema.returns[0].type, torch.TensorType)


def _makes(operator):
    """Whether an operator makes a tensor of none, as zeros and arange do: on the CPU where it is not told."""
    schema = getattr(operator, "_schema", None) or getattr(operator, operator.overloads()[0])._schema
    return any(a.name == "device" for a in schema.arguments) and not any(
        "Tensor" in str(a.type) for a in schema.arguments)


def read_line(line, tensors, axes, wide=False, device=None):
    """(names of results, operator, positional and keyword arguments) of "h = aten.relu.default(x)". wide:
    each float type of the line is float64. device: of tensors that the line makes of none."""
    results, call = line.split("=", 1)
    name, arguments = call.strip().split("(", 1)
    positional, keyword = [], {}
    for part in _split(arguments.rstrip()[:-1]):
        head, equal, rest = part.partition("=")
        if equal and head.isidentifier() and not rest.startswith("="):
            keyword[head] = _value(rest.strip(), tensors, axes, wide)
        else:
            positional.append(_value(part, tensors, axes, wide))
    operator = _operator(name)
    if device is not None and _makes(operator):
        keyword["device"] = device
    return [r.strip() for r in results.split(",")], operator, positional, keyword


class _Named:
    """A tensor in the arguments of a line, which Python writes as its name."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


def local(name):
    """A tensor's name as a local variable."""
    return f"t_{name}"


def _names(value):
    """The tensors in a value of a line."""
    if isinstance(value, list):
        return [name for v in value for name in _names(v)]
    return [value.name] if isinstance(value, _Named) else []


def _schemas(operator):
    return [operator._schema] if hasattr(operator, "_schema") else [
        getattr(operator, o)._schema for o in operator.overloads()]


def _gives_views(operator):
    """Whether results lie in the first argument's memory wherever its strides allow it, and nothing is
    written."""
    return all(r.alias_info is not None and not r.alias_info.is_write
               for schema in _schemas(operator) for r in schema.returns)


class Line:
    """A line as a source on local variables, of which it has `names`. What is no number or tensor goes into
    scope under a name that begins with _q_."""

    def __init__(self, line, names, axes, device, scope):
        known = {n: _Named(local(n)) for n in names}
        self.results, operator, positional, keyword = read_line(line, known, axes, device=device)

        def text(value):
            if isinstance(value, list):
                return f"[{', '.join(map(text, value))}]"
            if isinstance(value, (_Named, bool, int, str, type(None))):
                return repr(value)
            scope[f"_q_value_{len(scope)}"] = value
            return f"_q_value_{len(scope) - 1}"

        call = f"_q_line_{len(scope)}"
        _settle(scope, call, operator)
        arguments = [text(a) for a in positional] + [f"{k}={text(v)}" for k, v in keyword.items()]
        rest = "" if _gives_tensor(operator) else ", *_"
        self.source = f"{', '.join(map(local, self.results))}{rest} = {call}({', '.join(arguments)})"
        taken = {local(n): n for n in names}
        self.taken = [taken[v] for v in _names([*positional, *keyword.values()])]
        first = positional[0] if positional else None
        self.first, self.operator = taken[first.name] if isinstance(first, _Named) else None, operator

    def base(self):
        """The tensor of which the results may be views, or None."""
        return self.first if self.first and _gives_views(self.operator) else None

    def fixed(self, values):
        """Whether sizes of the results follow from those of the arguments, as with an index of integers.
        values: the tensors of a call by their local names."""
        overloads = [self.operator] if hasattr(self.operator, "tags") else [
            getattr(self.operator, o) for o in self.operator.overloads()]
        if not any(torch.Tag.dynamic_output_shape in o.tags for o in overloads):
            return True
        masks = (torch.bool, torch.uint8)
        return self.operator in (torch.ops.aten.index, torch.ops.aten.index.Tensor) and not any(
            values[local(n)].dtype in masks for n in self.taken[1:])


def shared(results, inputs):
    """Of each result, which is contiguous, whether it lies in memory of an input or of one before it."""
    taken, before, out = {t.untyped_storage()._cdata for t in inputs}, {}, []
    for t in results:
        begin, lies = t.storage_offset() * t.element_size(), t.untyped_storage()._cdata
        end, others = begin + t.numel() * t.element_size(), before.setdefault(lies, [])
        out.append(lies in taken or any(begin < e and b < end for b, e in others))
        others.append((begin, end))
    return out


def apart(results, inputs):
    """Results of an operator share no memory with its inputs nor with one another: any may be changed."""
    return [t.clone() if s else t for t, s in zip(results, shared(results, inputs))]


def written(name, source, scope):
    """The function of a name in a source."""
    exec(compile(source, f"<{name}, written for a package>", "exec"), scope)
    return scope[name]


def function_of(lines, inputs, outputs, axes, device):
    """Lines as a function of the inputs that gives a list of the outputs. They are read once."""
    names, scope, body = list(inputs), {}, []
    for line in lines:
        read = Line(line, names, axes, device, scope)
        names += read.results
        body.append(f"    {read.source}\n")
    return written("run", f"def run({', '.join(map(local, inputs))}):\n{''.join(body)}"
                   f"    return [{', '.join(map(local, outputs))}]\n", scope)


# Where PyTorch's own functions for Python are: these cost half of what torch.ops does.
_BOUND = [getattr(torch._C, n, None) for n in ("_VariableFunctions", "_nn", "TensorBase")]


def _settle(scope, name, operator):
    """The first call of an operator in a scope chooses between it and Python's own function of its name."""
    own = operator.__name__.partition(".")[0]
    bound = next((f for f in (getattr(place, own, None) for place in _BOUND) if f is not None), None)
    if bound is None or own.endswith("_") or str(operator).partition(".")[0] != "aten":
        scope[name] = operator
        return

    def first(*given, **named):
        want = operator(*given, **named)
        scope[name] = bound if _alike(bound, want, given, named) else operator
        return want

    scope[name] = first


def _alike(bound, want, given, named):
    """Whether a function gives tensors like these, in memory of their own or in that of the same input."""
    try:
        got = bound(*given, **named)
    except (TypeError, ValueError, RuntimeError):
        return False
    got, want = ([r] if isinstance(r, torch.Tensor) else list(r) for r in (got, want))
    inputs = [t.untyped_storage()._cdata for t in given if isinstance(t, torch.Tensor)]

    def told(t):
        lies = t.untyped_storage()._cdata
        return t.dtype, t.device, t.shape, t.stride(), lies in inputs and (lies, t.storage_offset())

    return [told(t) for t in got] == [told(t) for t in want]


def run_line(line, tensors, axes, wide=False):
    """Runs a line and puts its results into `tensors`."""
    device = next(iter(tensors.values())).device
    names, operator, positional, keyword = read_line(line, tensors, axes, wide, device)
    values = operator(*positional, **keyword)
    tensors.update(zip(names, [values] if isinstance(values, torch.Tensor) else values))


def module_of(lines, inputs, outputs, axes, device):
    """The graph for given axes as a module that eager PyTorch and torch.compile run on a device: no line is
    parsed in a call. Its result is a tuple."""
    graph = torch.fx.Graph()
    values = {name: graph.placeholder(name) for name in inputs}
    for line in lines:
        names, operator, positional, keyword = read_line(line, values, axes, device=device)
        node = graph.call_function(operator, tuple(positional), keyword)
        for i, name in enumerate(names):
            values[name] = node if _gives_tensor(operator) else graph.call_function(getitem, (node, i))
    graph.output(tuple(values[name] for name in outputs))
    return torch.fx.GraphModule(torch.nn.Module(), graph)

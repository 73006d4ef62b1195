"""The functions of a package, written out for its inputs: a call that the kernels take needs no dispatcher of
PyTorch, which costs more than all the rest, and a loop over the inputs costs as much as their checks do."""

import inspect
import keyword

import torch

from .graph import written
from .held import REFUSED

# Any call that is no plain one goes to the registered operator: while PyTorch traces, under functorch and
# modes, and where a tensor is not as it was judged.
_FUNCTION = """
def {name}({signature}):
    if (_q_compiling() or _q_dispatch() or _q_function() or _q_functorch() or _q_tracing() or {unfit}):
        return _q_registered({signature})
    _q_index = {first}.get_device()
    if _q_index < 0 or _q_index != _q_device(){elsewhere}:
        return _q_registered({signature})
    {places}
    if ({bits}) & {low_bits}:
        return _q_registered({signature})
    _q_addresses = [{addresses}]
    _q_call = _q_calls((_q_index, {shapes}))
    if _q_call is None:
        return _q_run(_q_index, [{signature}], _q_addresses, [{shapes}])
    return _q_call([{signature}], _q_addresses, _q_stream(_q_index))
"""
_UNFIT = ("(_q_type({t}) is not _q_plain and _q_type({t}) is not _q_parameter) or "
          "{t}.dtype is not _q_dtype_{i} or not {t}.is_contiguous() or ({t}.requires_grad and _q_grad())")
# The forward of a module, and its __call__ for the arguments of the judged call in their places: that of
# torch.nn.Module costs as much as all that is here. One call of the guards of torch.compile checks types,
# shapes, strides, devices, whether gradients are asked for, and most modes of PyTorch's dispatcher.
_FORWARD = """
def {name}({signature}):
    {begin}if _q_compiling() or _q_dispatch() or _q_function() or self.training{unlike}:
        return {otherwise}
    _q = self._quern_bound
    if _q_any(_q.{hooks}) or _q.children != _q.kept or _q.recorders and _q.recorded():
        return {otherwise}
{find}    _q_same, _q_call, _q_index, _q_needs = _q.last
    if not _q_same({tensors}):
        try:
            _q.last = _q_same, _q_call, _q_index, _q_needs = _q.calls[{key}]
        except (KeyError, AttributeError):
            return {otherwise}
        if not _q_same({tensors}):
            return {otherwise}
    if _q_index != _q_device() or _q_needs and _q_grad():
        return {otherwise}
    _q_result = _q_call({tensors}, _q_stream(_q_index))
    return {otherwise} if _q_result is _q_refused else _q_result
"""
_BEGIN = """if self._compiled_call_impl or 'forward' in self.__dict__:
        return {otherwise}
    try:
        {names}, = {in_places}_q_filled(*_q_given, **_q_named)
    except _q_unbound:
        return {otherwise}
    """
# Python's own, under names that no argument has. torch.compile takes the name of a dict's class with some of
# its versions alone.
_OWN = {f"_q_{k.__name__}": k for k in (type, len, list, tuple, dict, bool, int, float, complex, str)}
_GIVEN = """
def given({signature}):
    _q_held = self._quern_bound.tensors()
    return None if {unlike} else [{tensors}]
"""


def _each(text, separator, names):
    return separator.join(text.format(t=n, i=i) for i, n in enumerate(names))


def operator_function(package):
    """The function of the operator."""
    names = [n + "_" if keyword.iskeyword(n) or n.startswith("_") else n for n in package.inputs]
    listed = ", ".join(names)
    source = _FUNCTION.format(
        name=package.name, signature=listed, first=names[0], unfit=_each(_UNFIT, " or ", names),
        elsewhere=_each(" or {t}.get_device() != _q_index", "", names[1:]),
        shapes=_each("{t}.shape", ", ", names), low_bits=package.alignment - 1,
        places=_each("_q_at_{i} = {t}.data_ptr()", "; ", names), addresses=_each("_q_at_{i}", ", ", names),
        bits=_each("_q_at_{i}", " | ", names))
    return written(package.name, source, package.scope())


# ---- the forward of a module ----

def _container(template, value):
    """The same of a tuple, list, dict or dataclass: a source, and each part with its template."""
    kind = template["type"]
    wrong = f"_q_type({value}) is not _q_{kind}" if f"_q_{kind}" in _OWN else \
        f"_q_type({value}).__name__ != {kind!r}"
    if "items" in template:
        return [f"{wrong} or _q_len({value}) != {len(template['items'])}"], [
            (t, f"{value}[{i}]") for i, (_, t) in enumerate(template["items"])]
    if "keys" in template:
        others = "".join(f" or {k!r} not in {value}" for k, _ in template["keys"])
        return [f"{wrong} or _q_len({value}) != {len(template['keys'])}{others}"], [
            (t, f"{value}[{k!r}]") for k, t in template["keys"]]
    return [wrong], [(t, f"{value}.{name}") for name, t in template["fields"]]


def _unlike(template, value, constants):
    """Conditions under which an argument is not the template's, and the tensors in it: both as sources."""
    if isinstance(template, dict) and "tensor" in template:
        return [], [value]
    if isinstance(template, dict) and "type" in template:
        wrong, parts = _container(template, value)
    elif isinstance(template, dict):  # an object of Python: a default, or, of a recorded call, another one
        constants.append(template.get("is", constants))
        return [f"{value} is not _q_constant_{len(constants) - 1}"], []
    elif template is None:
        return [f"{value} is not None"], []
    else:
        constants.append(template)
        own = f"_q_constant_{len(constants) - 1}"
        return [f"_q_type({value}) is not _q_{type(template).__name__} or {value} != {own}"], []
    tensors = []
    for t, place in parts:
        more, found = _unlike(t, place, constants)
        wrong, tensors = wrong + more, tensors + found
    return wrong, tensors


def _templates(package, parameters):
    """What each argument of forward is in a call that was judged. Without a record of the call: tensors come
    first, and the others have their defaults."""
    wanted = sum(not s.get("parameter") for s in package.json["inputs"])
    record, out = package.json.get("call", {}), {}
    if sum(_tensors_in(t) for t in record.values()) != wanted:
        record = {}
    left = 0 if record else wanted
    for p in parameters:
        out[p.name] = record.get(p.name, None if p.default is None else {"is": p.default})
        if p.name in record:
            continue
        if p.kind is p.VAR_KEYWORD:
            out[p.name] = {"type": "dict", "keys": []}
        elif p.kind is p.VAR_POSITIONAL:
            out[p.name], left = {"type": "tuple", "items": [["", {"tensor": True}]] * left}, 0
        elif left and p.kind is not p.KEYWORD_ONLY:
            out[p.name], left = {"tensor": True}, left - 1
    return out


def _tensors_in(template):
    if not isinstance(template, dict):
        return 0
    parts = template.get("items") or template.get("keys") or template.get("fields") or []
    return "tensor" in template or sum(_tensors_in(t) for _, t in parts)


_STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def _listed(parameters, scope):
    """Parameters as they stand in a def. scope: has their defaults then."""
    texts, last = [], None
    for p in parameters:
        if last is p.POSITIONAL_ONLY and p.kind is not last:
            texts.append("/")
        if p.kind is p.KEYWORD_ONLY and last not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            texts.append("*")
        default = ""
        if p.default is not p.empty:
            default = f"=_q_default_{p.name}"
            scope[f"_q_default_{p.name}"] = p.default
        texts.append(_STARS.get(p.kind, "") + p.name + default)
        last = p.kind
    return texts + ["/"] if last is inspect.Parameter.POSITIONAL_ONLY else texts


class _Signature:
    """The original's forward as sources: its parameters, the arguments that give them to another function,
    and when the call is not one that was judged."""

    def __init__(self, package, kind):
        parameters = list(inspect.signature(kind.forward).parameters.values())[1:]
        templates, self.scope = _templates(package, parameters), dict(_OWN)
        self.unlike, self.tensors, self.constants = [], [], []
        self.positional, self.by_name = [], []
        self.each = []  # of each parameter: itself, its conditions, whether it has tensors
        for p in parameters:
            self._add(p)
            wrong, found = _unlike(templates[p.name], p.name, self.constants)
            self.unlike += wrong
            self.tensors += found
            self.each.append((p, wrong, bool(found)))
        self.text = ", ".join(["self", *_listed(parameters, self.scope)])
        self.arguments = f"({''.join(t + ', ' for t in self.positional)}), {{{', '.join(self.by_name)}}}"
        self.scope.update((f"_q_constant_{i}", c) for i, c in enumerate(self.constants))

    def _add(self, p):
        star = _STARS.get(p.kind, "")
        if p.kind is p.KEYWORD_ONLY:
            self.by_name.append(f"{p.name!r}: {p.name}")
        else:
            (self.by_name if p.kind is p.VAR_KEYWORD else self.positional).append(star + p.name)

    def in_place(self):
        """The parameters whose arguments a call gives, up to the last one that has tensors or is not its
        default, and the conditions of those; the others have defaults. None: the judged call is another."""
        n = max((i + 1 for i, (p, wrong, has) in enumerate(self.each)
                 if has or any(self._differs(p, w) for w in wrong)), default=0)
        given = [p for p, _, _ in self.each[:n]]
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in given):
            return None
        return (given, [w for _, wrong, _ in self.each[:n] for w in wrong]) if n else None

    def _differs(self, p, condition):
        """Whether a parameter that is left out is not as in the judged call."""
        value = {p.VAR_POSITIONAL: (), p.VAR_KEYWORD: {}}.get(p.kind, p.default)
        return value is p.empty or eval(condition, {**self.scope, p.name: value})


def _filled(given, defaults):
    """A function that gives a tuple of the first parameters' arguments, however a call gives them: Python's
    own binding costs less than any code for it. Others raise a TypeError."""
    names = "".join(f"{p.name}, " for p in given)
    listed = ", ".join(_listed(given, defaults))
    return written("filled", f"def filled({listed}):\n    return ({names})", defaults)


def given_function(package, kind):
    """The tensors of the operator in a call of the original's forward, or None where the call has others."""
    s = _Signature(package, kind)
    given, held = iter(s.tensors), iter(range(len(package.inputs)))
    listed = [f"_q_held[{next(held)}]" if spec.get("parameter") else next(given, "None")
              for spec in package.json["inputs"]]
    unlike = " or ".join(s.unlike) or "False"
    source = _GIVEN.format(signature=s.text, unlike=unlike, tensors=", ".join(listed))
    return written("given", source, s.scope)


def forward_functions(package, kind, otherwise):
    """The forward of a module in place of a `kind`, and its __call__ or None. Parameters are looked up in
    each call."""
    s, names, find = _Signature(package, kind), [], []
    given = iter(s.tensors)
    for spec in package.json["inputs"]:
        key = spec.get("parameter")
        names.append(f"_q_held_{len(find)}" if key else next(given, "None"))
        if key:
            leaf = (spec["name"] if key is True else key).rpartition(".")[2]
            find.append(f"    {names[-1]} = _q_places[{len(find)}].get({leaf!r})\n")
    if find:
        find.insert(0, "    _q_places = _q.places\n")
    for i, n in enumerate(names):  # what lies in a container is taken out once
        if not n.isidentifier():
            names[i] = f"_q_part_{i}"
            find.append(f"    {names[i]} = {n}\n")
    own = [n for n in names if not n.startswith("_q_held_")]
    parts = {"find": "".join(find), "key": f"({''.join(f'{n}.shape, ' for n in own)})",
             "tensors": ", ".join(names)}
    scope = {**package.scope(), **s.scope, "_q_otherwise": otherwise, "_q_module": torch.nn.Module,
             "_q_refused": REFUSED}
    forward = written("forward", _FORWARD.format(
        name="forward", signature=s.text, begin="", hooks="hooks",
        unlike="".join(f" or {w}" for w in s.unlike),
        otherwise=f"_q_otherwise(self, {s.arguments})", **parts), scope)
    quick = s.in_place() if kind.__call__ is torch.nn.Module.__call__ else None
    if not quick:
        return forward, None
    plain = "_q_module.__call__(self, *_q_given, **_q_named)"
    scope.update(_q_filled=_filled(quick[0], {}), _q_unbound=TypeError)
    alone = any(p.kind is p.KEYWORD_ONLY for p in quick[0])
    in_places = "" if alone else f"_q_given if _q_len(_q_given) == {len(quick[0])} and not _q_named else "
    begin = _BEGIN.format(in_places=in_places, otherwise=plain, names=", ".join(p.name for p in quick[0]))
    return forward, written("__call__", _FORWARD.format(
        name="__call__", signature="self, *_q_given, **_q_named", begin=begin, hooks="call_hooks",
        unlike="".join(f" or {w}" for w in quick[1]), otherwise=plain, **parts), scope)


def memory_format(t):
    """The memory format that a result is given, where it is not contiguous."""
    if t.is_contiguous():
        return None
    return next((f for f, rank in ((torch.channels_last, 4), (torch.channels_last_3d, 5))
                 if t.dim() == rank and t.is_contiguous(memory_format=f)), None)


def _modes():
    """The modes that PyTorch's guards see: functorch, tracing, autocast."""
    return (torch._C._functorch.peek_interpreter_stack() is not None,
            torch._C._get_tracing_state() is not None, torch.is_autocast_enabled())


def guard(tensors):
    """A function that tells whether tensors have the types, shapes, strides, devices and requires_grad of
    these, under the same modes of PyTorch."""
    firsts = [next(k for k, other in enumerate(tensors) if other is t) for t in tensors]
    if firsts != list(range(len(tensors))):  # PyTorch's takes each tensor once
        single = sorted(set(firsts))
        same = guard([tensors[i] for i in single])
        return lambda *given: all(given[i] is t for i, t in zip(firsts, given)) and same(
            *(given[i] for i in single))
    try:
        return torch._C._dynamo.guards.TensorGuards(
            *tensors, dynamic_dims_sizes=[list(t.shape) for t in tensors],
            dynamic_dims_strides=[list(t.stride()) for t in tensors]).check
    except (AttributeError, TypeError):  # not in this PyTorch
        def told(given):
            return _modes(), [(type(t), t.dtype, t.shape, t.stride(), t.device, t.requires_grad)
                              for t in given]

        want = told(tensors)
        return lambda *given: all(isinstance(t, torch.Tensor) for t in given) and told(given) == want

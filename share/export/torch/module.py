"""A module in place of the original: its class, parameters, buffers, submodules and hooks are the original's,
and its forward launches the kernels where they stand for the original's forward."""

import dataclasses
import itertools
import sys

import torch
from torch.utils import _pytree as pytree

from .calls import forward_functions, given_function, guard, memory_format
from .held import Results, held

_CONTAINERS, _MOST_CALLS = ("_parameters", "_buffers"), 4096
# With any of these, __call__ of torch.nn.Module does more than to call forward.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
# transformers puts hooks on submodules, which do nothing unless a call of its own records what they see.
_RECORDER = "transformers.utils.output_capturing"
_GLOBAL_HOOKS = [getattr(torch.nn.modules.module, f"_global{n}") for n in _HOOKS]


_VALUES = (int, float, str, bool)  # which a result may have beside tensors: they follow from its sizes


def _never(*tensors):
    return False


def _only_record(hooks):
    return all(getattr(hook, "__module__", None) == _RECORDER for hook in hooks.values())


def _recording():
    if _RECORDER not in sys.modules:
        return False
    own = sys.modules[_RECORDER]._active_collector
    # torch.compile follows no ContextVar: the library has the other one for it.
    return (own.global_var if torch.compiler.is_dynamo_compiling() else own.get()) is not None


def _formats(tensors):
    """The memory formats of those that are not contiguous, each with its place."""
    return tuple((i, memory_format(t)) for i, t in enumerate(tensors) if not t.is_contiguous())


def _outputs(package, leaves):
    """Of each output of the operator, the tensor of a result that it stands for."""
    found = dict(zip(package.results, (t for t in leaves if isinstance(t, torch.Tensor))))
    return [found[i] for i in range(len(package.out_dtypes))]


def _held(value):
    """The attributes of a dataclass, or None where it has others than a plain object has."""
    own = getattr(value, "__dict__", {})
    names = [*(f.name for f in dataclasses.fields(value) if f.name not in own), *own]
    return names if type(value).__new__ is object.__new__ else None


def _record(kind, names):
    """A function that makes a dataclass of its attributes' values. Neither __init__ nor what it calls runs
    again: only the original's call has its effects."""
    def make(*values):
        made = object.__new__(kind)
        for name, value in zip(names, values):
            object.__setattr__(made, name, value)
        return made

    return make


def _flatten(value):
    """The leaves of a result, and a function that puts as many together again. To PyTorch a dataclass is a
    leaf, unless its library has registered it."""
    leaves, spec = pytree.tree_flatten(value)
    own, parts = [], []  # parts: of each leaf, how many leaves it has, and what puts them together
    for leaf in leaves:
        names = _held(leaf) if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type) else None
        if names is not None:
            found, again = _flatten([getattr(leaf, n) for n in names])
            make = _record(type(leaf), names)
            parts.append((len(found), lambda given, make=make, again=again: make(*again(given))))
            own += found
        else:
            parts.append((1, None))
            own.append(leaf)

    def again(given):
        out, at = [], 0
        for n, put in parts:
            out.append(put(given[at:at + n]) if put else given[at])
            at += n
        return pytree.tree_unflatten(out, spec)

    return own, again


def _literal(value, texts, scope):
    """A source that makes a result of Python's own containers and dataclasses like this one, or None. texts:
    of each leaf by its identity. scope: has the classes then."""
    kind = type(value)
    if kind in (dict, list, tuple):
        return _container(value, texts, scope)
    node = pytree.SUPPORTED_NODES.get(kind)
    own = f"_q_kind_{len(scope)}"
    if node:  # as its library puts it together
        parts, context = node.flatten_fn(value)
        scope[own] = lambda *given: node.unflatten_fn(given, context)
    elif dataclasses.is_dataclass(kind) and _held(value) is not None:
        parts = [getattr(value, n) for n in _held(value)]
        scope[own] = _record(kind, _held(value))
    else:
        return "None" if value is None else texts.get(id(value))
    parts = [_literal(v, texts, scope) for v in parts]
    return f"{own}({', '.join(parts)})" if all(parts) else None


def _container(value, texts, scope):
    """The same of a dict, list or tuple."""
    kind = type(value)
    if kind is dict:
        parts = {k: _literal(v, texts, scope) for k, v in value.items()}
        fit = all(type(k) in (str, int) for k in parts) and all(parts.values())
        return f"{{{', '.join(f'{k!r}: {v}' for k, v in parts.items())}}}" if fit else None
    parts = [_literal(v, texts, scope) for v in value]
    inside = "".join(f"{p}, " for p in parts) if all(parts) else None
    return None if inside is None else f"[{inside}]" if kind is list else f"({inside})"


class Bound:
    """Where the tensors of a module's operator are, and what must be as it was for the kernels to stand for
    forward. It is made again for a copy."""

    def __init__(self, module, package):
        self.links, self.refused = [], None
        self.every = []  # the hooks of submodules
        self.children, self.kept = [], []  # of each submodule: the dictionary of its own, and a copy of that
        self.calls = {}  # by the shapes of the arguments
        self.last = (_never, None, None, False)  # of calls
        # By the formats of the tensors, and their sizes where results have values beside tensors: how results
        # are given, and whether a call was compared.
        self.puts, self.checked, self.values = {}, set(), False
        keys = [s["name"] if s["parameter"] is True else s["parameter"] for s in package.json["inputs"]
                if s.get("parameter")]
        for sub in module.modules():
            self.links += [(sub._modules, name, child) for name, child in sub._modules.items()]
            if sub._modules:
                self.children.append(sub._modules)
                self.kept.append(dict(sub._modules))
            if sub is not module:
                self.every += [sub._forward_hooks, sub._forward_pre_hooks]
        # torch.compile cannot tell one recurrent module from another.
        self.followed = [link for link in self.links if not isinstance(link[2], torch.nn.RNNBase)]
        self.own_hooks = [*(getattr(module, n) for n in _HOOKS), *_GLOBAL_HOOKS]
        self._sort_hooks()
        self.places = [self._place(module, *key.rpartition(".")[::2]) for key in keys]
        self.names = [key.rpartition(".")[2] for key in keys]
        if None in self.places:
            self.refused = f"the original has no parameter {keys[self.places.index(None)]}"

    @staticmethod
    def _place(module, path, name):
        """The dictionary of the module's that has a tensor, or None."""
        for part in path.split(".") if path else []:
            module = getattr(module, part, None)
        own = getattr(module, "__dict__", {})
        return next((d for d in (*(own.get(c, {}) for c in _CONTAINERS), own)
                     if isinstance(d.get(name), torch.Tensor)), None)

    def _sort_hooks(self):
        """Those that must stay empty: for forward, and for __call__. The others: each with a copy of it."""
        self.recorders = [(hooks, dict(hooks)) for hooks in self.every if hooks and _only_record(hooks)]
        self.hooks = [hooks for hooks in self.every if not any(hooks is r for r, _ in self.recorders)]
        self.call_hooks = [*self.hooks, *self.own_hooks]

    def recorded(self):
        return _recording() or any(hooks != kept for hooks, kept in self.recorders)

    def tensors(self):
        return [place.get(name) for place, name in zip(self.places, self.names)]

    def key(self, tensors, formats):
        return (formats, *(t.shape for t in tensors)) if self.values else formats

    def note(self, package, tensors, formats):
        """A call that the kernels took: forward takes those like it by itself."""
        if torch._C._get_tracing_state() is not None:
            return  # which records what the operator is given
        self._sort_hooks()
        index, shapes = tensors[0].get_device(), [t.shape for t in tensors]
        own = tuple(s for s, spec in zip(shapes, package.json["inputs"]) if not spec.get("parameter"))
        if len(self.calls) >= _MOST_CALLS:
            self.calls.clear()
        call = held(package.store, package.calls[(index, *shapes)], tensors, tuple(i for i, _ in formats),
                    self.puts[self.key(tensors, formats)])
        self.calls[own] = guard(tensors), call, index, any(t.requires_grad for t in tensors)

    def changed(self, traced):
        for place, name, child in self.followed if traced else self.links:
            if place.get(name) is not child:
                return "its submodules have changed"
        for hooks in self.every:
            if len(hooks) and (_recording() or not _only_record(hooks)):
                return "a submodule has a hook"
        return self.refused

    def learn(self, package, result, tensors, formats):
        """How forward gives its results for tensors of these formats: a function of the operator's results
        and the tensors, or None where it gives the former. Returns a reason, or None."""
        leaves, again = _flatten(result)
        own = [t for t in leaves if isinstance(t, torch.Tensor)]
        values = (None, *(t for t in leaves if type(t) in _VALUES))
        if len(own) != len(package.results) or any(
            type(t) not in (type(None), *_VALUES) and not isinstance(t, torch.Tensor) for t in leaves
        ):
            return "its results are of another number or kind"
        self.values = self.values or len(values) > 1
        n, at, beside = len(package.out_dtypes), iter(package.results), itertools.count(1)
        places = [next(at) if isinstance(t, torch.Tensor) else
                  n + len(tensors) + (0 if t is None else next(beside)) for t in leaves]
        if any(i >= n and t is not (*tensors, *values)[i - n] for i, t in zip(places, leaves)):
            return "a result is not the input that it was"
        outputs = _outputs(package, leaves)
        dtypes, laid = [t.dtype for t in outputs], [memory_format(t) for t in outputs]
        plain = isinstance(result, torch.Tensor) or type(result) is tuple and n == len(result) > 1 and all(
            a is b for a, b in zip(result, leaves))
        if plain and places == list(range(n)) and dtypes == package.out_dtypes and not any(laid):
            self.puts[self.key(tensors, formats)] = None
            return None

        casts = [(None if d is own else d, f) for d, own, f in zip(dtypes, package.out_dtypes, laid)]
        given = [*(f"r{i}" for i in range(n)), *(f"tensors[{i}]" for i in range(len(tensors))),
                 *(f"_q_own_{i}" for i in range(len(values)))]
        texts = [given[i] for i in places]
        if torch.compiler.is_compiling():  # which follows no function that is written out
            def put(results, tensors):
                results = [results] if isinstance(results, torch.Tensor) else results
                every = [r.to(d or r.dtype, memory_format=f or torch.preserve_format)
                         for r, (d, f) in zip(results, casts)]
                return again([(*every, *tensors, *values)[i] for i in places])
        else:
            scope = {f"_q_own_{i}": v for i, v in enumerate(values)}
            found = _literal(result, {id(leaf): text for leaf, text in zip(leaves, texts)}, scope)
            if not found:
                scope, found = {**scope, "_q_again": again}, f"_q_again([{', '.join(texts)}])"
            put = Results(casts, found, scope).function()
        self.puts[self.key(tensors, formats)] = put
        return None


def _otherwise(self, arguments, keywords):
    """Any call but those that forward takes by itself: of a copy's first call, while PyTorch traces, and
    outside of what was judged."""
    package, bound = self._quern_package, self._quern_bound
    traced = torch.compiler.is_compiling() or package.traced()
    tensors = type(self)._quern_given(self, *arguments, **keywords)
    if self.training:
        why = "it is in training mode"
    elif tensors is None:
        why = "its arguments are not those that were judged"
    else:
        why = bound.changed(traced) or package.unfit(tensors, traced)
    if why is None and not traced:
        why = package.refusal(tensors)
    formats = () if why else _formats(tensors)
    if why is None and not (traced or bound.key(tensors, formats) in bound.checked):
        return _first(self, (arguments, keywords), tensors, formats)
    if why is None and bound.key(tensors, formats) not in bound.puts:
        why = bound.learn(package, _original(self, arguments, keywords), tensors, formats)
    if why is not None:
        (package.say_traced if traced else package.say)(why)
        return _original(self, arguments, keywords)
    results, put = package.registered(*_contiguous(tensors, formats)), bound.puts[
        bound.key(tensors, formats)]
    if not traced:
        bound.note(package, tensors, formats)
    return put(results, tensors) if put else results


def _contiguous(tensors, formats):
    return [t.contiguous() for t in tensors] if formats else tensors


def _original(self, arguments, keywords):
    own = self.__dict__.get("_quern_forward")
    return own(*arguments, **keywords) if own else self._quern_kind.forward(self, *arguments, **keywords)


def _first(self, given, tensors, formats):
    """The first call of a module compares the kernels with the original, once for each set of memory formats,
    and gives the original's result: the original may have other constants than the module that was judged.
    given: its arguments."""
    package, bound = self._quern_package, self._quern_bound
    want = _original(self, *given)
    if package.capturing():
        package.say("its first call is within a CUDA graph's capture; call it once before")
        return want
    why = bound.learn(package, want, tensors, formats) or package.apart(
        package.registered(*_contiguous(tensors, formats)), _outputs(package, _flatten(want)[0]))
    bound.refused = why
    if why:
        package.say(why)
    else:
        bound.checked.add(bound.key(tensors, formats))
        bound.note(package, tensors, formats)
    return want


def _restore(kind):
    """For pickle and copy: an instance without its state."""
    from . import Module

    return torch.nn.Module.__new__(Module._quern_class(kind))


def module_class(package, name):
    """The class Module of a package, whose name as Python imports it is given."""
    classes = {}

    class Module(torch.nn.Module):
        """Module(original): a module in the original's place, which shares all that the original has. It
        takes the original's own way where the kernels were not judged."""

        def __new__(cls, original):
            kind = getattr(type(original), "_quern_kind", type(original))
            if not isinstance(original, torch.nn.Module):
                raise TypeError(f"quern.{package.name}: Module takes the original, a torch.nn.Module")
            if isinstance(original, (torch.fx.GraphModule, torch.jit.ScriptModule)):
                raise TypeError(f"quern.{package.name}: a traced module has no class to stand in for")
            if "cut" in package.json.get("tags", ()):
                raise TypeError(f"quern.{package.name}: the task is a part of the module, before or behind "
                                f"what Quern cannot follow; call {package.name}.op")
            fast = torch.nn.Module.__new__(Module._quern_class(kind))
            fast.__dict__.update(original.__dict__)
            own = fast.__dict__.pop("forward", None)  # one that replaces the class's
            if own is not None:
                fast.__dict__["_quern_forward"] = own
            fast.__dict__["_quern_bound"] = Bound(fast, package)
            if fast._quern_bound.refused:
                raise KeyError(f"quern.{package.name}: {fast._quern_bound.refused}")
            return fast

        def __init__(self, original):
            pass

        @staticmethod
        def _quern_class(kind):
            if kind not in classes:
                own = {"_quern_kind": kind, "_quern_package": package, "__doc__": kind.__doc__,
                       "__module__": kind.__module__, "_quern_given": given_function(package, kind)}
                own["forward"], call = forward_functions(package, kind, _otherwise)
                own.update({"__call__": call} if call else {})
                classes[kind] = type(kind)(f"{kind.__name__}_{package.name}", (Module, kind), own)
            return classes[kind]

        def __reduce_ex__(self, protocol):
            state = {k: v for k, v in self.__dict__.items() if k != "_quern_bound"}
            return _restore, (self._quern_kind,), state

        def __setstate__(self, state):
            super().__setstate__(state)
            self.__dict__["_quern_bound"] = Bound(self, package)

    Module.__module__, Module.__qualname__ = name, "Module"
    return Module

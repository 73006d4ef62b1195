"""The calls of a package, written out for one set of shapes on one device: memory, launches, and the op lines
between them.

A plan with op lines is written twice. The first call runs each line as it stands. It shows which results are
views of other tensors. The second source makes those that something takes without PyTorch's dispatcher, and
allocates once for all buffers of a type that lines take: to the host, a view of PyTorch's or an allocation
costs as much as a launch.
"""

import types

import torch

from . import plan
from .driver import Prepared
from .graph import Line, apart, local, shared, written

ALIGNMENT = 16  # bytes, of what kernels take
# Launches in a row beyond these, as of a loop over time, are a loop here, too.
_IN_A_ROW = 8


def _allocator(device):
    """Memory on the current device: without PyTorch's dispatcher, as the code of torch.compile takes it."""
    try:
        return getattr(torch._C._dynamo.guards, f"_empty_strided_{device}")
    except AttributeError:
        return lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype, device=device)


def _view():
    """A view by sizes, strides and elements from a tensor's first, without PyTorch's dispatcher."""
    try:
        return torch._C._dynamo.guards._reinterpret_tensor
    except AttributeError:
        return lambda t, shape, strides, ahead: t.as_strided(shape, strides, t.storage_offset() + ahead)


def _whole(t):
    """A tensor as kernels take it."""
    t = t.contiguous()
    return t if t.data_ptr() % ALIGNMENT == 0 else t.clone()


def strides_of(shape):
    """Of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(1, size)
    return tuple(strides)


def _slots(launches, first):
    """Places of the tensors that launches take: of those in `first` before those that operators make."""
    taken = dict.fromkeys(name for step in launches for name in _pointers(step))
    return {name: i for i, name in enumerate(sorted(taken, key=lambda n: n not in first))}


def _pointers(launch):
    return [value for kind, value, _ in launch[4] if kind in ("pointer", "map")]


class _Seen:
    """A tensor of the first call: `ahead` elements behind the first one of `root`, whose memory it shares, or
    with memory of its own."""

    def __init__(self, name, t, root=None, ahead=0):
        self.name, self.root, self.ahead = name, root or name, ahead
        self.shape, self.strides, self.size = tuple(t.shape), t.stride(), t.element_size()
        self.whole, self.aligned = t.is_contiguous(), t.data_ptr() % ALIGNMENT == 0


def _shown(steps, roots, values):
    """What the first call shows of each tensor. roots: inputs and own memory."""
    seen = {name: _Seen(name, values[local(name)]) for name in roots}
    for step in steps:
        if not isinstance(step, Line):
            continue
        base = seen.get(step.base())
        for name in step.results:
            t = values[local(name)]
            of = values[local(base.name)] if base else None
            if of is not None and t.dtype is of.dtype and \
                    t.untyped_storage()._cdata == of.untyped_storage()._cdata:
                ahead = base.ahead + t.storage_offset() - of.storage_offset()
                seen[name] = _Seen(name, t, base.root, ahead)
            else:
                seen[name] = _Seen(name, t)
    return seen


class Writer:
    """A call for one set of shapes: what both sources share. memory: (name, shape, type) of the outputs, then
    of the buffers."""

    def __init__(self, package, kernels, steps, memory, axes, device):
        self.inputs, self.outputs = package.inputs, package.out_names
        made = {r.strip() for step in steps if isinstance(step, str)
                for r in step.split("=", 1)[0].split(",")}
        self.memory = {name: (shape, dtype) for name, shape, dtype in memory if name not in made}
        self.scope, self.steps = {}, []
        known = self.inputs + [n for n in self.memory if n != plan.WORKSPACE]
        self.roots = list(known)
        for step in steps:
            if isinstance(step, str):
                step = Line(step, known, axes, device, self.scope)
                known = known + step.results
            self.steps.append(step)
        launches = [step for step in self.steps if not isinstance(step, Line)]
        slots = _slots(launches, [*self.inputs, *self.memory])
        self.prepared = lambda: Prepared(kernels, launches, slots)
        self.seen, self.copied, self.helds, run = None, (), {}, self.prepared()
        inside = [(list(slots)[slot], offset) for slot, offset in run.inside]
        self.cells, self.mapped = [(name, 0) for name in slots] + inside, run.mapped
        self.driver, self.cells_of = kernels.driver, run.cells_of
        self.scope.update(_q_empty=_allocator(device.type), _q_view=_view(), _q_begin=run.begin,
                          _q_whole=_whole, _q_contiguous=torch.Tensor.contiguous, _q_failed=run.failed,
                          _q_launch=kernels.driver.launch, _q_maps=run.refresh, _q_apart=apart)

    def _shared(self, values):
        """The outputs that need a copy, as the first call shows: those that share memory."""
        results = [values.get(f"c_{n}", values[local(n)]).contiguous() for n in self.outputs]
        copied = shared(results, [values[local(n)] for n in self.inputs])
        return {n for n, is_shared in zip(self.outputs, copied) if is_shared}

    def call(self):
        """The function of a call: of the inputs, the list of their addresses and the stream."""
        lined = any(isinstance(step, Line) for step in self.steps)
        call = written("call", Source(self).text(learn=lined), self.scope)
        call.writer, self.lined = self, lined
        if lined:
            first = types.FunctionType(call.__code__, self.scope)
            self.scope["_q_first"], code = first, call.__code__

            def learn(values):
                if call.__code__ is code and all(
                        s.fixed(values) for s in self.steps if isinstance(s, Line)):
                    self.seen, self.copied = _shown(self.steps, self.roots, values), self._shared(values)
                    again = written("again", Source(self, self.seen, self.copied).text(), self.scope)
                    call.__code__ = again.__code__

            self.scope["_q_learn"] = learn
        return call


class Source:
    """One source of a call. seen: of each tensor, what the first call has shown. copied: outputs that need a
    copy."""

    astray = "_q_first(tensors, addresses, stream)"  # where what an operator made lies in another way

    def __init__(self, writer, seen=None, copied=()):
        self.writer, self.seen, self.copied, self.lines = writer, seen, copied, []
        self.title = "again" if seen else "call"
        # Of each tensor: the source of an address, and bytes from there.
        self.address = {n: (f"addresses[{i}]", 0) for i, n in enumerate(writer.inputs)}
        self.have = set(writer.inputs)  # tensors with a local variable
        self.places = {}  # of buffers in an allocation for several: its variable, and elements from its begin
        self.contiguous, self.checked = set(), set()

    def text(self, learn=False):
        w = self.writer
        if any(isinstance(step, Line) for step in w.steps):
            self.lines.append(f"{', '.join(map(local, w.inputs))}, = tensors")
        self._allocate()
        self.lines.append("_q_cells, _q_launches = _q_begin(stream)")
        self._set({i: self._at(n, offset) for i, (n, offset) in enumerate(w.cells) if n in self.address})
        self._steps()
        if learn:
            self.lines.append("_q_learn(locals())")
        self.lines.append(f"return {self._results()}")
        return "\n    ".join([f"def {self.title}(tensors, addresses, stream):", *self.lines])

    def _steps(self):
        at = row = 0
        for step in self.writer.steps:
            if isinstance(step, Line):
                self._row(at - row, at)
                row = 0
                self._line(step)
                continue
            if self._take(step, at - row, at):
                row = 0
            row, at = row + 1, at + 1
        self._row(at - row, at)

    # ---- memory ----

    def _new(self, variable, shape, dtype):
        name = f"_q_{str(dtype).replace('.', '_')}"
        self.writer.scope[name] = dtype
        self.lines.append(f"{variable} = _q_empty({shape}, {strides_of(shape)}, {name})")

    def _allocate(self):
        """Outputs and buffers. What lines take of buffers of a type lies in one allocation, unless it becomes
        a result, and kernels' own workspace behind it."""
        kept = {self.seen[n].root for n in self.writer.outputs} if self.seen else set(self.writer.memory)
        groups, space = self._groups(kept)
        self._alone(kept)
        self._share(groups, space)

    def _groups(self, kept):
        """The buffers of each type that lie in one allocation, and the workspace. What has an allocation of
        its own is put into kept."""
        memory, groups = self.writer.memory, {}
        for name, (shape, dtype) in memory.items():
            if name not in kept and name != plan.WORKSPACE:
                groups.setdefault(dtype, []).append((name, shape))
        space = memory.get(plan.WORKSPACE)
        for dtype in list(groups):
            if len(groups[dtype]) + bool(space) == 1:
                kept.add(groups.pop(dtype)[0][0])
        if space and not groups:
            kept.add(plan.WORKSPACE)
        return groups, space

    def _alone(self, names):
        for name in self.writer.memory:
            if name in names:
                self._new(local(name), *self._laid(name))
                self.address[name] = f"p_{name}", 0
                self.lines.append(f"p_{name} = {local(name)}.data_ptr()")

    def _share(self, groups, space):
        for i, (dtype, members) in enumerate(groups.items()):
            self._together(f"_q_memory_{i}", dtype, members, space if not i else None)

    def _laid(self, name):
        """Shape and type of an allocation: that of its only view where it has one."""
        shape, dtype = self.writer.memory[name]
        if self.seen and name in self.writer.roots and name not in self.writer.outputs:
            views = [s for s in self.seen.values() if s.root == name and s.whole and
                     torch.Size(s.shape).numel() == torch.Size(shape).numel()]
            taken = any(name in step.taken for step in self.writer.steps
                        if isinstance(step, Line) and not self._views(step))
            if len(views) == 2 and not taken:
                self.seen[name].shape, self.seen[name].strides = views[1].shape, views[1].strides
                shape = views[1].shape
        self.have.add(name)
        return shape, dtype

    def _together(self, variable, dtype, members, space):
        n = 0
        for name, shape in members:
            self.places[name] = variable, n
            self.address[name] = f"p_{variable}", n * dtype.itemsize
            n += plan.apart(torch.Size(shape).numel() * dtype.itemsize) // dtype.itemsize
        if space:
            self.address[plan.WORKSPACE] = f"p_{variable}", n * dtype.itemsize
            n += plan.apart(space[0][0]) // dtype.itemsize
        self._new(variable, (n,), dtype)
        self.lines.append(f"p_{variable} = {variable}.data_ptr()")

    # ---- launches ----

    def _at(self, name, offset):
        base, inside = self.address[name]
        return f"{base} + {inside + offset}" if inside + offset else base

    def _set(self, cells):
        """Writes addresses into cells, those in a row at once."""
        rows = []
        for i in sorted(cells):
            if not rows or rows[-1][-1] != i - 1:
                rows.append([])
            rows[-1].append(i)
        for row in rows:
            found = [cells[i] for i in row]
            self.lines.append(f"_q_cells[{row[0]}] = {found[0]}" if len(row) == 1 else
                              f"_q_cells[{row[0]}:{row[-1] + 1}] = [{', '.join(found)}]")

    def _take(self, launch, begin, end):
        """The addresses of what operators have made for a launch, behind those before it. False: it takes
        none that is not there."""
        fresh = [n for n in dict.fromkeys(_pointers(launch)) if n not in self.address]
        if not fresh:
            return False
        self._row(begin, end)
        for name in fresh:
            self.address[name] = self._made(name)
        self._set({i: self._at(n, offset) for i, (n, offset) in enumerate(self.writer.cells) if n in fresh})
        return True

    def _made(self, name):
        """The address of what an operator has made, which may not be contiguous."""
        s = self.seen and self.seen[name]
        if s and s.whole and s.aligned and s.root != name:
            if s.root not in self.address:
                self._check(s.root)
            base, inside = self.address.get(s.root) or (f"{local(s.root)}.data_ptr()", 0)
            return base, inside + s.ahead * s.size
        self.contiguous.add(name)
        whole = "_q_contiguous" if s and s.aligned else "_q_whole"
        self.lines.append(f"c_{name} = {whole}({self._tensor(name)})")
        return f"c_{name}.data_ptr()", 0

    def _row(self, begin, end):
        self.lines += [f"_q_maps({at})" for at in self.writer.mapped if begin <= at < end]
        if end - begin > _IN_A_ROW:
            self.lines += [f"for _q_next in _q_launches[{begin}:{end}]:",
                           "    _q_status = _q_launch(*_q_next)", "    if _q_status: _q_failed(_q_status)"]
            return
        for at in range(begin, end):
            self.lines += [f"_q_status = _q_launch(*_q_launches[{at}])",
                           "if _q_status: _q_failed(_q_status)"]

    # ---- lines ----

    def _line(self, line):
        if self._views(line):
            return  # which are made where they are taken
        for name in line.taken:
            self._tensor(name)
        self.lines.append(line.source)
        self.have.update(line.results)

    def _views(self, line):
        return self.seen and all(self.seen[n].root != n for n in line.results)

    def _tensor(self, name):
        """The variable of a tensor, which is made where it is a view."""
        if name in self.have:
            return local(name)
        s = self.seen[name]
        base, ahead = self.places.get(s.root, (local(s.root), 0))
        if s.root not in self.places:
            self._check(s.root)
            root = self.seen[s.root]
            if (s.ahead, s.shape, s.strides) == (0, root.shape, root.strides):
                self.lines.append(f"{local(name)} = {base}")
                self.have.add(name)
                return local(name)
        self.lines.append(f"{local(name)} = _q_view({base}, {s.shape}, {s.strides}, {ahead + s.ahead})")
        self.have.add(name)
        return local(name)

    def _check(self, root):
        """Views are those of the first call where what an operator made lies as it did then."""
        if root in self.writer.roots or root in self.checked:
            return
        self.checked.add(root)
        self.lines.append(f"if {local(root)}.stride() != {self.seen[root].strides}: return {self.astray}")

    def _results(self):
        outputs = self.writer.outputs
        texts = [self._result(n) + ".clone()" * (n in self.copied) for n in outputs]
        if self.seen or all(n in self.writer.memory for n in outputs):
            return ", ".join(texts)
        own = f"_q_apart([{', '.join(texts)}], tensors)"
        return f"tuple({own})" if len(texts) > 1 else f"{own}[0]"

    def _result(self, name):
        if name in self.contiguous:
            return f"c_{name}"
        return self._tensor(name) if name in self.writer.memory else f"_q_contiguous({self._tensor(name)})"

"""The call of a module, written out over memory that stays from call to call on a stream: an allocation, a
view of PyTorch's or a tensor's address costs the host as much as a launch."""

import contextlib
import threading
from collections import deque

import torch

from .graph import local, written
from .lines import ALIGNMENT, Source, strides_of
from .row import Row

REFUSED = object()  # what a call gives that the kernels cannot take
_MOST_HELDS = 64  # calls of one set of shapes, by how results are given
# Results of at most _SMALL bytes are made for AHEAD calls at once: one costs the host of an H200 0.57 us, an
# allocation 1.02 (2026-12-01). Who keeps one keeps 4 KiB at most, where PyTorch's allocator gives 512 bytes.
_SMALL, AHEAD = 128, 32
# A call of as many launches without op lines enqueues a CUDA graph: on the host of an H200 a launch costs
# 4.0 us, a graph 2.1 to 3.0 with any number of launches, and 0.7 a launch that takes another address
# (2026-12-01).
_LEAST_IN_A_GRAPH = 2
# Without the check that CUDA is there: a tensor lies on it.
capturing = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None) or (
    torch.cuda.is_current_stream_capturing)


class Store:
    """The memory that the calls of a package keep. The oldest goes where there is more than MOST: 32 MiB,
    what cuBLAS keeps for itself on an H200 (2026-11-30)."""

    MOST, ENTRIES = 32 << 20, 256

    def __init__(self):
        self.kept, self.lock, self.size = deque(), threading.Lock(), 0

    def keep(self, states, stream, state, size):
        """states: of a thread and call, by the stream."""
        with self.lock:
            while self.kept and (self.size + size > self.MOST or len(self.kept) == self.ENTRIES):
                old, at, freed = self.kept.popleft()
                old.pop(at, None)
                self.size -= freed
            self.kept.append((states, stream, size))
            self.size += size
            states[stream] = state
        return state


def _ahead(empty, specs):
    """The results of AHEAD calls, of each call its tensors and their addresses. specs: shapes and types."""
    rows = []
    with torch.inference_mode(False), torch._C._AutoDispatchBelowADInplaceOrView():  # no views to autograd
        for shape, dtype in specs:
            step = -(-torch.Size(shape).numel() * dtype.itemsize // ALIGNMENT) * ALIGNMENT
            block = empty((AHEAD, *shape), (step // dtype.itemsize, *strides_of(shape)), dtype)
            begin = block.data_ptr()
            rows.append(zip(block.unbind(0), range(begin, begin + AHEAD * step, step)))
    calls = [tuple(zip(*call)) for call in zip(*rows)]
    return [(*tensors, *addresses) for tensors, addresses in calls]


class Held(Source):
    """The source of a module's call: of the inputs and the stream. copies: (shape, type) of the inputs that
    are made contiguous before, by name. results: a Results. stays: whether memory is kept."""

    astray = "_q_refused"

    def __init__(self, writer, copies, results, stays):
        super().__init__(writer, writer.seen, writer.copied)
        self.title, self.results, self.stays = "held", results, stays
        self.copies = copies
        self.made, self.size = [], 0  # what is done once for a stream; bytes of it
        self.owned = []  # the variables of memory that is made there
        self.ahead = {}  # shape and type of the results that are made for several calls at once
        self.kept, self.used = set(self.copies) if stays else set(), {}
        self.row = stays and _is_row(writer)
        self.changed = []  # launches whose results lie elsewhere in each call
        self.taken = self._taken()
        self.address = {n: (f"_q_now[{i}]", 0) for i, n in enumerate(self.taken)}

    def _taken(self):
        """The inputs that kernels take where they lie."""
        roots = dict.fromkeys(self.seen[n].root if self.seen and n in self.seen else n
                              for n, _ in self.writer.cells)
        return [n for n in self.writer.inputs if n in roots and n not in self.copies]

    @contextlib.contextmanager
    def _into(self, lines):
        own, self.lines = self.lines, lines
        yield
        self.lines = own

    def _making(self):
        return self._into(self.made if self.stays else self.lines)

    # ---- memory ----

    def _new(self, variable, shape, dtype):
        self.size += torch.Size(shape).numel() * dtype.itemsize
        super()._new(variable, shape, dtype)
        if self.lines is self.made:
            self.owned.append(variable)

    def _allocate(self):
        w, root = self.writer, lambda n: self.seen[n].root if self.seen else n
        fresh = {root(n) for i, n in enumerate(w.outputs) if i not in self.results.copied}
        own = set(fresh) if self.seen else set(w.outputs)  # of which views are known once seen
        groups, space = self._groups(own)
        with self._making():
            self._alone(own - fresh)
            self._share(groups, space)
        if self.stays:
            self.kept |= set(w.memory) - fresh
        laid = {n: self._laid(n) for n in w.memory if n in fresh}
        small = {n: (shape, dtype) for n, (shape, dtype) in laid.items()
                 if 0 < torch.Size(shape).numel() * dtype.itemsize <= _SMALL}
        if len(small) > 1:
            self._made_ahead(small)
        self._alone(fresh - set(self.ahead))

    def _made_ahead(self, small):
        self.ahead = small
        self.address.update((n, (f"p_{n}", 0)) for n in small)
        made = ", ".join([*map(local, small), *(f"p_{n}" for n in small)])
        self.lines += ["if not _q_ready: _q_ready[:] = _q_ahead()", f"{made} = _q_ready.pop()"]

    def _copy(self, name):
        """An input as its contiguous copy."""
        if not self.stays:
            self.lines += [f"{local(name)} = {local(name)}.contiguous()",
                           f"p_{name} = {local(name)}.data_ptr()"]
        else:
            with self._making():
                self._new(local(name), *self.copies[name])
                self.lines.append(f"p_{name} = {local(name)}.data_ptr()")
            self.used[f"k_{name}"] = local(name)
            self.lines.append(f"{local(name)} = k_{name}.copy_({local(name)})")
        self.address[name] = f"p_{name}", 0

    def _lie(self, name):
        """Where a view lies, of which the memory's place is known before the steps."""
        s = self.seen and self.seen.get(name)
        if s and name not in self.address and s.whole and s.aligned and s.root in self.address:
            base, inside = self.address[s.root]
            self.address[name] = base, inside + s.ahead * s.size

    def _tensor(self, name):
        s = self.seen and self.seen.get(name)
        if (s.root if s else name) not in self.kept or name in self.copies:
            return super()._tensor(name)
        with self._making():
            variable = super()._tensor(name)
        self.used[variable] = variable
        return variable

    # ---- the source ----

    def text(self):
        """The sources of two functions: what is made once for a stream, and the call."""
        w = self.writer
        for name in self.copies:
            self._copy(name)
        self._allocate()
        for name, _ in w.cells:
            self._lie(name)
        self._cells()
        self._steps()
        self._give()
        own = ["_q_cells", "_q_launches", "_q_run", *(["_q_ready"] if self.ahead else []),
               *(["_q_row", "_q_set", "_q_nodes"] if self.row else [])]
        making = ["def make(stream):", "_q_run = _q_prepared()",
                  "_q_cells, _q_launches = _q_run.begin(stream)", *self.made,
                  f"_q_run.memory = [{', '.join(self.owned)}]",  # kernels take it by its address alone
                  *(["_q_ready = []"] if self.ahead else []),
                  f"return {', '.join([*own, '[]', *self.used.values()])}"]
        return "\n    ".join(making) + "\n\n" + "\n    ".join(
            [*self._begin(", ".join([*own, "_q_places", *self.used])), *self.lines])

    def _begin(self, state):
        given = ", ".join(map(local, self.writer.inputs))
        lines = [f"def held({given}, stream):"]
        if self.stays and self.size or self.ahead or self.row:  # for a capture nothing is made
            lines.append("if _q_capturing(): return _q_refused")
        lines += ["try:", f"    {state} = _q_local.states[stream]",
                  "except (AttributeError, KeyError):", f"    {state} = _q_state(stream)"]
        if self.results.takes:
            lines.append(f"tensors = {given},")
        if self.writer.mapped:
            lines.append("_q_maps = _q_run.refresh")
        return lines

    def _give(self):
        texts = [self._result(n) + ".clone()" * (n in self.copied) for n in self.writer.outputs]
        self.lines += [f"r{i} = {text}" for i, text in enumerate(texts)]
        self.lines += [*self.results.lines, f"return {self.results.text}"]

    def _cells(self):
        """Writes the addresses that are known before the steps: of what stays once, of inputs where they lie
        elsewhere than in the last call, of what is new in each call."""
        inputs, stays, fresh = {}, {}, {}
        for i, (name, offset) in enumerate(self.writer.cells):
            if name not in self.address:
                continue
            root = self.seen[name].root if self.seen and name in self.seen else name
            into = inputs if root in self.taken else stays if root in self.kept else fresh
            into[i] = self._at(name, offset)
        with self._making():
            self._set(stays)
        if self.taken:
            self.lines.append(f"_q_now = [{', '.join(f'{local(n)}.data_ptr()' for n in self.taken)}]")
            moved = []
            with self._into(moved):
                self._set(inputs)
                self._changes(i for i in self._taking(inputs) if i not in self._taking(fresh))
            self.lines += ["if _q_now != _q_places:", "    if _q_unaligned(_q_now): return _q_refused",
                           "    _q_places[:] = _q_now", *(f"    {line}" for line in moved)]
        self._set(fresh)
        self.changed = self._taking(fresh)

    # ---- launches as a graph ----

    def _taking(self, cells):
        """The launches of the row that take an address of these cells."""
        return [i for i in range(len(self.writer.steps)) if self.writer.cells_of(i) & set(cells)] \
            if self.row else []

    def _changes(self, launches):
        for i in launches:
            self.lines += [f"_q_status = _q_set(*_q_nodes[{i}])", "if _q_status: _q_failed(_q_status)"]

    def _steps(self):
        if not self.row:
            super()._steps()
            return
        self.made.append("_q_row = _q_run.row = _q_rows(_q_run, stream)")
        self.made.append("_q_set, _q_nodes = _q_row.set, _q_row.change")
        self._changes(self.changed)
        self.lines += ["_q_status = _q_row.replay(*_q_row.launch)", "if _q_status: _q_failed(_q_status)"]


def _is_row(writer):
    """Whether launches alone follow one another, as a CUDA graph takes them."""
    return (not writer.lined and not writer.mapped and len(writer.steps) >= _LEAST_IN_A_GRAPH
            and not any(cooperative for *_, cooperative in writer.steps)
            and hasattr(writer.driver.lib, "cuGraphAddKernelNode_v2"))


def _rows(run, stream):
    """The launches of a Prepared of this thread as a Row."""
    return Row(run.kernels.driver, run.begin(stream)[1], run.local.ready[3], stream)


class Results:
    """How a module gives the results of the operator, r0, r1 and so on: casts, of each a type and a memory
    format or None, and the source of what it gives, of those and of the tensors that it takes."""

    def __init__(self, casts, text, scope):
        self.text, self.scope, self.lines = text, dict(scope), []
        self.key = tuple(casts), text, tuple(scope.items())
        self.copied = {i for i, cast in enumerate(casts) if any(cast)}
        self.takes = "tensors[" in text
        for i, (dtype, laid) in enumerate(casts):
            self.scope[f"_q_type_{i}"], self.scope[f"_q_format_{i}"] = dtype, laid
            if dtype:
                self.lines.append(f"r{i} = r{i}.to(_q_type_{i})")
            if laid:
                self.lines.append(f"r{i} = r{i}.contiguous(memory_format=_q_format_{i})")
        self.n = len(casts)

    def function(self):
        """The same of the operator's results and the tensors."""
        lines = ["def put(results, tensors):", f"{', '.join(f'r{i}' for i in range(self.n))} = results",
                 *self.lines, f"return {self.text}"]
        put = written("put", "\n    ".join(lines), {**self.scope})
        put.results = self
        return put


def plain(n):
    """The operator's own: a tensor or a tuple."""
    return Results([(None, None)] * n, ", ".join(f"r{i}" for i in range(n)), {})


def _loose(call, copies, put):
    """The call of a module whose operators give other sizes from call to call."""
    def given(*given):
        *tensors, stream = given
        taken = [t.contiguous() if i in copies else t for i, t in enumerate(tensors)]
        addresses = [t.data_ptr() for t in taken]
        if _unaligned(addresses):
            return REFUSED
        results = call(taken, addresses, stream)
        return put(results, tensors) if put else results

    return given


def _unaligned(addresses):
    return any(a % ALIGNMENT for a in addresses)


def held(store, call, tensors, copies, put):
    """The call of a module, of the tensors and the stream. call: that of the operator, of tensors like these.
    copies: the places of those that are made contiguous before. put: how results are given, or None."""
    writer, results = getattr(call, "writer", None), getattr(put, "results", None)
    if writer is None or writer.lined and not writer.seen or put and not results:
        return _loose(call, copies, put)
    results = results or plain(len(writer.outputs))
    key = copies, results.key
    if key not in writer.helds:
        if len(writer.helds) == _MOST_HELDS:
            writer.helds.clear()
        shapes = {writer.inputs[i]: (tuple(tensors[i].shape), tensors[i].dtype) for i in copies}
        writer.helds[key] = _function(store, writer, shapes, results)
    return writer.helds[key]


def _function(store, writer, copies, results):
    source = Held(writer, copies, results, True)
    text = source.text()
    if source.size > store.MOST // 2:
        source = Held(writer, copies, results, False)
        text = source.text()
    specs, empty = list(source.ahead.values()), writer.scope["_q_empty"]
    local, size = threading.local(), source.size if source.stays else 0

    def state(stream):
        with torch.inference_mode(False):  # what is made in it is of no use outside of it
            made = scope["make"](stream)
        return store.keep(local.__dict__.setdefault("states", {}), stream, made, size)

    scope = {**writer.scope, **results.scope, "_q_prepared": writer.prepared, "_q_local": local,
             "_q_state": state, "_q_ahead": lambda: _ahead(empty, specs), "_q_refused": REFUSED,
             "_q_unaligned": _unaligned, "_q_capturing": capturing, "_q_rows": _rows}
    return written("held", text, scope)

"""What a module asks of the contents of tensors while it runs, where every call has one answer: what forward
has made of sizes alone, such as a causal mask that is compared with one, and what ends in an error otherwise,
such as a check that variances are positive. tools/export.py traces a module with these answers."""

import time

import torch
from torch.utils import _pytree as pytree

MAX_ASKED = 8
MAX_RUN = 10  # seconds of a run, since each question may need another one; 2026-11-30


class _Asked(torch.overrides.TorchFunctionMode):
    """Notes each question, and answers number `turned` with the opposite."""

    def __init__(self, given, turned=None):
        super().__init__()
        self.own, self.kept = {id(t) for t in given}, list(given)  # tensors that inputs or weights decide
        self.turned, self.answers = turned, []  # of each question: the answer, and whether inputs decide it

    def __torch_function__(self, function, types, args=(), keywords=None):
        result = function(*args, **(keywords or {}))
        if function is torch.Tensor.__bool__:
            self.answers.append((result, id(args[0]) in self.own))
            return not result if len(self.answers) - 1 == self.turned else result
        if any(id(t) in self.own for t in pytree.tree_leaves((args, keywords))):
            written = [args[0]] if function is torch.Tensor.__setitem__ else pytree.tree_leaves(result)
            self.own.update(id(t) for t in written if isinstance(t, torch.Tensor))
        self.kept.append(result)  # so that no other tensor has its id
        return result


def _run(module, inputs, turned=None):
    weights = [*module.parameters(), *module.buffers()]
    with torch.no_grad(), _Asked([*inputs, *weights], turned) as asked:
        module(*inputs)
    return asked.answers


def _ends(module, inputs, turned):
    try:
        _run(module, inputs, turned)
    except Exception:  # of the module, whatever it is
        return True
    return False


def answers_of(module, inputs):
    """The answers of a module with contents, in their order; None: other inputs may have other ones."""
    begin = time.monotonic()
    try:
        found = _run(module, inputs)
    except Exception:  # which the export tells
        return None
    if not 0 < len(found) <= MAX_ASKED or time.monotonic() - begin > MAX_RUN:
        return None
    fixed = all(not own or _ends(module, inputs, i) for i, (_, own) in enumerate(found))
    return [answer for answer, _ in found] if fixed else None


class answered(torch.overrides.TorchFunctionMode):
    """Questions have these answers, again in each trace."""

    def __init__(self, answers):
        super().__init__()
        self.answers, self.next = answers, 0

    def __torch_function__(self, function, types, args=(), keywords=None):
        if function is torch.Tensor.__bool__ and self.next < len(self.answers):
            self.next += 1
            return self.answers[self.next - 1]
        return function(*args, **(keywords or {}))

"""A kernel that Quern found, as a PyTorch operator.

    import NAME
    y = NAME.op(x, ...)            # torch.ops.quern.NAME, in the order of NAME.inputs
    fast = NAME.Module(original)   # a module in place of `original`, with its parameters

The operator works under torch.compile and in CUDA graphs, on the current stream and device. Inputs
outside of what was verified take the original's way, with one warning.
"""

from .torch_op import load as _load

_package = _load(__file__)
op = _package.op
inputs = _package.inputs
verdict = _package.verdict
Module = _package.module_class

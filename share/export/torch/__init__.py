"""A kernel that Quern found, as a PyTorch operator.

    import NAME
    y = NAME.op(x, ...)            # torch.ops.quern.NAME, in the order of NAME.inputs
    fast = NAME.Module(original)   # a module in place of `original`, which shares its parameters

Both work under torch.compile, in torch.export and in CUDA graphs, on the current stream and device. What is
outside of what was judged takes the original's way, with one warning.
"""

from .torch_op import load as _load

_package = _load(__file__, __name__)
op = _package.op
inputs = _package.inputs
verdict = _package.verdict
Module = _package.module_class
accepts = _package.json.get("accepts", "")
__doc__ += f"\nIt takes {accepts}.\n" if accepts else ""

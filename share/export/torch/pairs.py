"""Fourier transforms along the last dimension that take and give complex numbers as pairs, along a dimension
of two behind it: the overloads "pairs" of operators of ATen, which op lines have and PyTorch has not."""

import torch

_aten, _libraries = torch.ops.aten, []


def _complex(x):
    x = x.contiguous()
    return torch.view_as_complex(x.clone() if x.storage_offset() % 2 else x)


def _real(y):
    return torch.view_as_real(y).contiguous()


# What follows the normalization in a schema, what computes it, and the shape of its result.
_OPERATORS = {
    "_fft_r2c": ("bool onesided", lambda x, by, half: _real(_aten._fft_r2c(x, [x.dim() - 1], by, half)),
                 lambda s, half: [*s[:-1], s[-1] // 2 + 1 if half else s[-1], 2]),
    "_fft_c2c": ("bool forward", lambda x, by, ahead: _real(
        _aten._fft_c2c(_complex(x), [x.dim() - 2], by, ahead)), lambda s, ahead: list(s)),
    "_fft_c2r": ("SymInt last_dim_size", lambda x, by, n: _aten._fft_c2r(
        _complex(x), [x.dim() - 2], by, n).contiguous(), lambda s, n: [*s[:-2], n]),
}


def define():
    """Makes them known to PyTorch, once a process."""
    if "pairs" in _aten._fft_r2c.overloads():
        return
    library = torch.library.Library("aten", "FRAGMENT")
    _libraries.append(library)
    for name, (argument, computed, shape) in _OPERATORS.items():
        library.define(f"{name}.pairs(Tensor self, int normalization, {argument}) -> Tensor")
        library.impl(f"{name}.pairs", computed, "CPU")
        library.impl(f"{name}.pairs", computed, "CUDA")
        torch.library.register_fake(f"aten::{name}.pairs", lambda x, by, last, _shape=shape: x.new_empty(
            _shape(x.shape, last)), lib=library)

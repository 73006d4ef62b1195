"""Modules whose numbers have few bits."""

import torch
import torch.nn.functional as F
from torch import nn


class PackedFour(nn.Module):
    """Two numbers of four bits a byte, with a scale for each group."""

    def __init__(self, inner=256, outer=128, group=64):
        super().__init__()
        self.group = group
        self.register_buffer("packed", torch.randint(0, 256, (outer, inner // 2), dtype=torch.uint8))
        self.register_buffer("scale", torch.rand(outer, inner // group) * 0.02 + 0.01)
        self.register_buffer("zero", torch.randint(6, 10, (outer, inner // group)).float())

    def forward(self, x):
        both = torch.stack((self.packed & 15, self.packed >> 4), -1).flatten(1).float()
        weight = both.unflatten(1, (-1, self.group))
        weight = (weight - self.zero[..., None]) * self.scale[..., None]
        return F.linear(x, weight.flatten(1))

    def example_input_array():
        return [torch.randn(64, 256)]


class LookedUp(nn.Module):
    """NF4: indices into sixteen numbers, a largest one for each block, in bfloat16."""

    def __init__(self, inner=128, outer=128, block=64):
        super().__init__()
        self.block, self.shape = block, (outer, inner)
        self.register_buffer("index", torch.randint(0, 16, (outer * inner // block, block)))
        self.register_buffer("largest", torch.rand(outer * inner // block) * 0.1 + 0.05)
        self.register_buffer("code", torch.linspace(-1, 1, 16))

    def forward(self, x):
        weight = (self.code[self.index] * self.largest[:, None]).view(self.shape).to(x.dtype)
        return F.linear(x, weight)

    def example_input_array():
        return [torch.randn(64, 128, dtype=torch.bfloat16)]


class PerToken(nn.Module):
    """Activations to eight bits by token, weights in int8 by row."""

    def __init__(self, inner=256, outer=128):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (outer, inner), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(outer) * 0.01 + 0.005)

    def forward(self, x):
        size = x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127
        q = (x / size).round().clamp(-128, 127)
        return (q @ self.weight.float().T) * size * self.scale

    def example_input_array():
        return [torch.randn(64, 256)]


class EightBitCache(nn.Module):
    """Attention over keys and values in int8."""

    def forward(self, query, key, key_scale, value, value_scale):
        k, v = key.to(query.dtype) * key_scale, value.to(query.dtype) * value_scale
        return F.scaled_dot_product_attention(query, k, v)

    def example_input_array():
        def whole():
            return torch.randint(-127, 128, (2, 4, 256, 64), dtype=torch.int8)
        scale = torch.rand(2, 4, 256, 1) * 0.01 + 0.005
        return [torch.randn(2, 4, 16, 64), whole(), scale, whole(), scale.clone()]


class ScaledFloats(nn.Module):
    """A weight in float8, with one scale."""

    def __init__(self, inner=256, outer=256):
        super().__init__()
        self.register_buffer("weight", torch.randn(outer, inner).to(torch.float8_e4m3fn))
        self.register_buffer("scale", torch.tensor(0.05))

    def forward(self, x):
        return F.linear(x, (self.weight.to(torch.float32) * self.scale).to(x.dtype))

    def example_input_array():
        return [torch.randn(64, 256, dtype=torch.float16)]


class LearntSteps(nn.Module):
    """A convolution whose weight is rounded to four bits."""

    def __init__(self, c=32):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, padding=1)
        self.step = nn.Parameter(torch.rand(c, 1, 1, 1) * 0.02 + 0.01)

    def forward(self, x):
        q = (self.conv.weight / self.step).clamp(-8, 7)
        q = q + (q.round() - q).detach()
        return F.conv2d(x, q * self.step, self.conv.bias, padding=1)

    def example_input_array():
        return [torch.randn(4, 32, 28, 28)]


class Signs(nn.Module):
    """A weight of signs, by the mean of its size."""

    def __init__(self, dim=256):
        super().__init__()
        self.weight, self.norm = nn.Parameter(torch.randn(dim, dim) * 0.05), nn.LayerNorm(dim)

    def forward(self, x):
        weight = self.weight - self.weight.mean()
        return F.linear(self.norm(x), weight.sign() * weight.abs().mean())

    def example_input_array():
        return [torch.randn(64, 256)]

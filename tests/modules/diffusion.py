"""Parts of diffusion models."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class AdaptiveBlock(nn.Module):
    """DiT's: shift, scale and gate by a condition."""

    def __init__(self, dim=192, n=6):
        super().__init__()
        self.n, self.modulation = n, nn.Linear(dim, 6 * dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.norm = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)

    def forward(self, x, condition):
        a, b, c, d, e, f = self.modulation(F.silu(condition))[:, None].chunk(6, -1)
        h = self.norm(x) * (1 + b) + a
        q, k, v = self.qkv(h).unflatten(-1, (3, self.n, -1)).permute(2, 0, 3, 1, 4)
        x = x + c * self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        h = self.norm(x) * (1 + e) + d
        return x + f * self.down(F.gelu(self.up(h), approximate="tanh"))

    def example_input_array():
        return [torch.randn(4, 256, 192), torch.randn(4, 192)]


class TimedResidual(nn.Module):
    """A U-Net's residual block, with sines of integer times."""

    def __init__(self, c=64, out=128):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, c), nn.Conv2d(c, out, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(32, out), nn.Conv2d(out, out, 3, padding=1)
        self.time, self.skip = nn.Linear(128, out), nn.Conv2d(c, out, 1)

    def forward(self, x, timestep):
        rate = torch.exp(-math.log(10000) * torch.arange(64, device=x.device) / 64)
        angle = timestep[:, None].float() * rate
        t = self.time(F.silu(torch.cat((angle.cos(), angle.sin()), -1)))
        h = self.conv1(F.silu(self.norm1(x))) + t[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))

    def example_input_array():
        return [torch.randn(4, 64, 16, 16), torch.tensor([0, 10, 500, 999])]


class CrossGated(nn.Module):
    """Cross attention to a text, then GEGLU, in float16."""

    def __init__(self, dim=128, text=96, n=4):
        super().__init__()
        self.n, self.norm1, self.norm2 = n, nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.q, self.k, self.v = (nn.Linear(s, dim, bias=False) for s in (dim, text, text))
        self.up, self.down = nn.Linear(dim, 8 * dim), nn.Linear(4 * dim, dim)
        self.half()

    def forward(self, x, encoder_hidden_states):
        q, k, v = (t.unflatten(-1, (self.n, -1)).transpose(1, 2) for t in (
            self.q(self.norm1(x)), self.k(encoder_hidden_states), self.v(encoder_hidden_states)))
        x = x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        h, gate = self.up(self.norm2(x)).chunk(2, -1)
        return x + self.down(h * F.gelu(gate))

    def example_input_array():
        return [torch.randn(2, 256, 128, dtype=torch.float16), torch.randn(2, 77, 96, dtype=torch.float16)]


class Upward(nn.Module):
    """A decoder's step to twice the size."""

    def __init__(self, c=64):
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(16, c), nn.Conv2d(c, c // 2, 3, padding=1)

    def forward(self, x):
        return self.conv(F.interpolate(F.silu(self.norm(x)), scale_factor=2.0, mode="nearest"))

    def example_input_array():
        return [torch.randn(4, 64, 32, 32)]


class ImplicitStep(nn.Module):
    """A DDIM step, with the noise's share by the time."""

    def __init__(self, steps=1000):
        super().__init__()
        share = torch.cumprod(1 - torch.linspace(1e-4, 0.02, steps), 0)
        self.register_buffer("share", share)

    def forward(self, sample, noise, timestep, before):
        a, b = (self.share[t][:, None, None, None] for t in (timestep, before))
        start = ((sample - (1 - a).sqrt() * noise) / a.sqrt()).clamp(-1, 1)
        noise = (sample - a.sqrt() * start) / (1 - a).sqrt()
        return b.sqrt() * start + (1 - b).sqrt() * noise

    def example_input_array():
        t = torch.tensor([999, 500, 100, 20])
        return [torch.randn(4, 4, 32, 32), torch.randn(4, 4, 32, 32), t, t - 20]


class RescaledGuidance(nn.Module):
    """Classifier-free guidance with the deviation of the conditional part."""

    def forward(self, noise, scale):
        plain, text = noise.chunk(2)
        guided = plain + scale * (text - plain)
        dims = list(range(1, text.ndim))
        fitted = guided * (text.std(dims, keepdim=True) / guided.std(dims, keepdim=True))
        return 0.7 * fitted + 0.3 * guided

    def example_input_array():
        return [torch.randn(8, 4, 32, 32), torch.full((4, 1, 1, 1), 7.5)]


class Preconditioned(nn.Module):
    """EDM's: inputs and outputs scaled by a positive deviation."""

    def __init__(self, c=16):
        super().__init__()
        self.net = nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x, sigma):
        s = sigma.reshape(-1, 1, 1, 1)
        total = s ** 2 + 0.25
        y = self.net(x / total.sqrt()) + (s.log() / 4)
        return 0.25 / total * x + s * 0.5 / total.sqrt() * y

    def example_input_array():
        return [torch.randn(4, 16, 32, 32), torch.rand(4) * 10 + 0.02]

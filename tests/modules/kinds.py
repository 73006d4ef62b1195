"""Modules whose packages or imports were wrong when they were first tried: results that are cast, parts of a
tensor that are written, values beside tensors, contents that decide a number; and windows by roll."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class RolledWindows(nn.Module):
    """Window attention after a cyclic shift, with a mask of what came around and biases by table."""

    def __init__(self, d=32, heads=4, window=4, shift=2, size=8):
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.1)
        c = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        r = (c[:, :, None] - c[:, None]) + window - 1
        self.register_buffer("places", r[0] * (2 * window - 1) + r[1])
        parts = torch.zeros(size, size)
        for i, a in enumerate((slice(0, -window), slice(-window, -shift), slice(-shift, None))):
            for j, b in enumerate((slice(0, -window), slice(-window, -shift), slice(-shift, None))):
                parts[a, b] = 3 * i + j
        m = self._windows(parts[None, ..., None]).squeeze(-1)
        self.register_buffer("mask", (m[:, None] != m[:, :, None]).float() * -100)

    def _windows(self, x):
        b, h, w, c = x.shape
        x = x.view(b, h // self.window, self.window, w // self.window, self.window, c)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, self.window ** 2, c)

    def forward(self, x):
        b, h, w, c = x.shape
        y = self._windows(torch.roll(x, (-self.shift, -self.shift), (1, 2)))
        q, k, v = self.qkv(y).view(y.shape[0], y.shape[1], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        s = s + self.table[self.places.view(-1)].view(*self.places.shape, -1).permute(2, 0, 1)
        n = self.mask.shape[0]
        s = (s.view(b, n, self.heads, *s.shape[-2:]) + self.mask[None, :, None]).view_as(s).softmax(-1)
        y = self.out((s @ v).transpose(1, 2).reshape(y.shape))
        y = y.view(b, h // self.window, w // self.window, self.window, self.window, c)
        y = y.permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return x + torch.roll(y, (self.shift, self.shift), (1, 2))

    def example_input_array():
        return [torch.randn(2, 8, 8, 32)]


class GreedyCollapse(nn.Module):
    """The best class of each frame; repeats and blanks become -1."""

    def forward(self, logits, lengths):
        best = logits.argmax(-1)
        before = F.pad(best, (1, 0), value=-1)[:, :-1]
        there = torch.arange(best.shape[1], device=best.device)[None] < lengths[:, None]
        kept = (best != before) & (best != 0) & there
        score = logits.log_softmax(-1).amax(-1).masked_fill(~there, 0).sum(-1)
        return torch.where(kept, best, -1), kept.sum(-1), score

    def example_input_array():
        return [torch.randn(3, 30, 12), torch.tensor([30, 18, 25])]


class BlockNorms(nn.Module):
    """Activations in int8 by blocks of 16 with a scale each, and back: MX-like."""

    def forward(self, x):
        y = x.unflatten(-1, (-1, 16))
        e = torch.floor(torch.log2(y.abs().amax(-1, keepdim=True).clamp(min=2 ** -20)))
        q = torch.clamp(torch.round(y * torch.exp2(6 - e)), -127, 127).to(torch.int8)
        return q.flatten(-2), e.squeeze(-1).to(torch.int8), (q.to(x.dtype) * torch.exp2(e - 6)).flatten(-2)

    def example_input_array():
        return [torch.randn(8, 64)]


class SlotWrites(nn.Module):
    """A cache that is written at places: slices and a column in steps, on a copy."""

    def __init__(self, d=16):
        super().__init__()
        self.lin = nn.Linear(d, d)

    def forward(self, cache, new):
        y = cache.clone()
        y[:, -new.shape[1]:] = self.lin(new)
        y[:, 0] = y[:, 0] * 0.5
        z = torch.zeros_like(y)
        z[..., 0::2] = y[..., : y.shape[-1] // 2].sin()
        z[..., 1::2] = y[..., y.shape[-1] // 2:].cos()
        return y, z

    def example_input_array():
        return [torch.randn(2, 12, 16), torch.randn(2, 3, 16)]


class ChunkedStates(nn.Module):
    """A state space with scalar decays in chunks: sums of segments by cumsum and a triangle."""

    def __init__(self, d=16, heads=2, states=8, chunk=8):
        super().__init__()
        self.heads, self.states, self.chunk = heads, states, chunk
        self.inner = nn.Linear(d, heads * 8 + 2 * states + heads)
        self.rate, self.skip = nn.Parameter(torch.rand(heads)), nn.Parameter(torch.ones(heads))
        self.out = nn.Linear(heads * 8, d)

    def forward(self, u):
        b, n, _ = u.shape
        x, k, q, dt = self.inner(u).split([self.heads * 8, self.states, self.states, self.heads], -1)
        dt = F.softplus(dt)
        a = (-self.rate.exp() * dt).view(b, -1, self.chunk, self.heads)
        x = x.view(b, -1, self.chunk, self.heads, 8)
        k, q = (t.view(b, -1, self.chunk, self.states) for t in (k, q))
        s = a.cumsum(2)
        seg = (s[:, :, :, None] - s[:, :, None]).permute(0, 1, 4, 2, 3)
        low = torch.ones(self.chunk, self.chunk, dtype=torch.bool, device=u.device).tril()
        seg = seg.masked_fill(~low, -torch.inf).exp()
        xd = x * dt.view(b, -1, self.chunk, self.heads)[..., None]
        y = torch.einsum("bcis,bcjs,bchij,bcjhp->bcihp", q, k, seg, xd)
        own = torch.einsum("bcjs,bcjh,bcjhp->bchsp", k, (s[:, :, -1:] - s).exp(), xd)
        state, states = torch.zeros_like(own[:, 0]), []
        for c in range(own.shape[1]):
            states.append(state)
            state = state * s[:, c, -1].exp()[..., None, None] + own[:, c]
        y = y + torch.einsum("bcis,bchsp,bcih->bcihp", q, torch.stack(states, 1), s.exp())
        y = y + x * self.skip[:, None]
        return self.out(y.reshape(b, n, -1))

    def example_input_array():
        return [torch.randn(2, 24, 16)]


class EveryResult(nn.Module):
    """An input as it came, one result twice, None, bools, numbers of four types, a list in a dict."""

    def __init__(self, d=32):
        super().__init__()
        self.lin = nn.Linear(d, d)

    def forward(self, x):
        y = self.lin(x)
        return {"x": x, "y": y, "again": y, "none": None, "mask": y > 0, "best": y.argmax(-1),
                "bytes": (y.sigmoid() * 255).round().to(torch.uint8), "many": [y.amax(-1), (y * 2,)],
                "short": (y * 100).to(torch.int16), "row": (y > 0).sum(-1).to(torch.int32)}

    def example_input_array():
        return [torch.randn(8, 32)]


class NumbersBeside(nn.Module):
    """Python's own values beside tensors, as dicts of losses have them."""

    def forward(self, x, target, mode="mean"):
        loss = F.smooth_l1_loss(x, target, reduction=mode)
        return {"loss": loss, "mode": mode, "weight": 0.5, "samples": x.shape[0]}

    def example_input_array():
        return [torch.randn(16, 8), torch.randn(16, 8)]


class MeanBeside(nn.Module):
    def forward(self, x):
        return {"loss": x.square().mean(), "n": x.mean().item()}

    def example_input_array():
        return [torch.randn(16, 8)]


class VolumeLast(nn.Module):
    """Convolutions of volumes in channels_last_3d."""

    def __init__(self, c=8):
        super().__init__()
        self.a, self.norm = nn.Conv3d(c, c, 3, padding=1), nn.InstanceNorm3d(c, affine=True)
        self.to(memory_format=torch.channels_last_3d)

    def forward(self, x):
        return F.leaky_relu(self.norm(self.a(x)), 0.01) + x

    def example_input_array():
        return [torch.randn(1, 8, 6, 8, 8).to(memory_format=torch.channels_last_3d)]

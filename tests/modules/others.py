"""What is no other file's."""

import torch
import torch.nn.functional as F
from torch import nn


class Splines(nn.Module):
    """A layer of learnt splines over bounded inputs."""

    def __init__(self, inner=32, outer=32, size=5, order=3):
        super().__init__()
        self.order = order
        grid = torch.arange(-order, size + order + 1) * (2 / size) - 1
        self.register_buffer("grid", grid.expand(inner, -1).contiguous())
        self.base = nn.Parameter(torch.randn(outer, inner) * 0.1)
        self.spline = nn.Parameter(torch.randn(outer, inner, size + order) * 0.1)

    def forward(self, x):
        g, y = self.grid, x[..., None]
        basis = ((y >= g[:, :-1]) & (y < g[:, 1:])).to(x.dtype)
        for k in range(1, self.order + 1):
            left = (y - g[:, :-(k + 1)]) / (g[:, k:-1] - g[:, :-(k + 1)])
            right = (g[:, k + 1:] - y) / (g[:, k + 1:] - g[:, 1:-k])
            basis = left * basis[..., :-1] + right * basis[..., 1:]
        return F.linear(F.silu(x), self.base) + F.linear(basis.flatten(1), self.spline.flatten(1))

    def example_input_array():
        return [torch.rand(128, 32) * 1.8 - 0.9]


class ChainScores(nn.Module):
    """A conditional random field's forward sums over sixteen tokens."""

    def __init__(self, tags=12):
        super().__init__()
        self.begin = nn.Parameter(torch.randn(tags) * 0.1)
        self.move = nn.Parameter(torch.randn(tags, tags) * 0.1)

    def forward(self, emissions, mask):
        score = self.begin + emissions[:, 0]
        for t in range(1, 16):
            after = torch.logsumexp(score[:, :, None] + self.move + emissions[:, t, None], 1)
            score = torch.where(mask[:, t, None], after, score)
        return torch.logsumexp(score, 1)

    def example_input_array():
        return [torch.randn(32, 16, 12), (torch.arange(16) < 12).expand(32, 16).contiguous()]


class Capsules(nn.Module):
    """Three rounds of routing."""

    def __init__(self, inner=64, outer=10, size=8, out_size=16):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outer, inner, size, out_size) * 0.1)

    def forward(self, x):
        vote = torch.einsum("bis,oist->boit", x, self.weight)
        logit = torch.zeros_like(vote[..., 0])
        for _ in range(3):
            s = (logit.softmax(1)[..., None] * vote).sum(2)
            square = (s * s).sum(-1, keepdim=True)
            out = square / (1 + square) * s / (square + 1e-8).sqrt()
            logit = logit + (vote * out[:, :, None]).sum(-1)
        return out

    def example_input_array():
        return [torch.randn(16, 64, 8)]


class GatedPooling(nn.Module):
    """Attention of a bag's instances, with the weights."""

    def __init__(self, dim=256, hidden=64):
        super().__init__()
        self.v, self.u, self.w = nn.Linear(dim, hidden), nn.Linear(dim, hidden), nn.Linear(hidden, 1)

    def forward(self, bag, mask=None):
        score = self.w(torch.tanh(self.v(bag)) * torch.sigmoid(self.u(bag))).squeeze(-1)
        if mask is not None:
            score = score.masked_fill(~mask, float("-inf"))
        weight = score.softmax(1)
        return {"pooled": (weight[:, None] @ bag).squeeze(1), "weight": weight}

    def example_input_array():
        return {"bag": torch.randn(8, 100, 256), "mask": torch.rand(8, 100) > 0.2}


class Wavelets(nn.Module):
    """One level of Haar's transform and back, small details set to zero."""

    def forward(self, x):
        a, b, c, d = x[..., ::2, ::2], x[..., ::2, 1::2], x[..., 1::2, ::2], x[..., 1::2, 1::2]
        low = (a + b + c + d) / 2
        details = [F.softshrink(t / 2, 0.1) for t in (a - b + c - d, a + b - c - d, a - b - c + d)]
        return F.pixel_shuffle(torch.cat([low, *details], 1), 2), low

    def example_input_array():
        return [torch.randn(4, 16, 64, 64)]

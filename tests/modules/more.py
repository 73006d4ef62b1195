"""Losses, graph layers, recurrences and quantised layers that lean on seldom operators."""

import collections
import math

import torch
import torch.nn.functional as F
from torch import nn

Pair = collections.namedtuple("Pair", "mean spread")


class Structure(nn.Module):
    """The structural similarity of two images by Gaussian windows."""

    def __init__(self, size=7, sigma=1.5):
        super().__init__()
        g = torch.exp(-((torch.arange(size) - size // 2) ** 2) / (2 * sigma ** 2))
        g = g / g.sum()
        self.register_buffer("window", (g[:, None] * g)[None, None].repeat(3, 1, 1, 1))

    def forward(self, x, y):
        blur = lambda t: F.conv2d(t, self.window, padding=3, groups=3)
        mx, my = blur(x), blur(y)
        sx, sy, sxy = blur(x * x) - mx ** 2, blur(y * y) - my ** 2, blur(x * y) - mx * my
        s = (2 * mx * my + 1e-4) * (2 * sxy + 9e-4) / ((mx ** 2 + my ** 2 + 1e-4) * (sx + sy + 9e-4))
        return 1 - s.mean((1, 2, 3))

    def example_input_array():
        return [torch.rand(2, 3, 48, 48), torch.rand(2, 3, 48, 48)]


class Decorrelated(nn.Module):
    """Variance, invariance and covariance of two views."""

    def forward(self, x, y):
        n, d = x.shape
        same = F.mse_loss(x, y)
        x, y = x - x.mean(0), y - y.mean(0)
        spread = [F.relu(1 - (t.var(0) + 1e-4).sqrt()).mean() for t in (x, y)]
        cov = [(t.T @ t / (n - 1)).fill_diagonal_(0).pow(2).sum() / d for t in (x, y)]
        return 25 * same + 12.5 * sum(spread) + sum(cov)

    def example_input_array():
        return [torch.randn(64, 32), torch.randn(64, 32)]


class HardestPixels(nn.Module):
    """The mean of the largest losses."""

    def forward(self, logits, labels):
        loss = F.cross_entropy(logits, labels, ignore_index=255, reduction="none").flatten()
        return loss.topk(loss.numel() // 4).values.mean()

    def example_input_array():
        labels = torch.randint(0, 6, (2, 24, 24))
        labels[:, :3] = 255
        return [torch.randn(2, 6, 24, 24), labels]


class Transported(nn.Module):
    """The distance between sorted projections of two clouds."""

    def forward(self, x, y, directions):
        d = F.normalize(directions, dim=-1)
        a, b = (torch.sort(t @ d.T, dim=1).values for t in (x, y))
        return (a - b).abs().pow(2).mean((1, 2)).sqrt()

    def example_input_array():
        return [torch.randn(4, 64, 8), torch.randn(4, 64, 8), torch.randn(32, 8)]


class Supervised(nn.Module):
    """A contrastive loss with labels: a mask without the diagonal."""

    def forward(self, features, labels):
        f = F.normalize(features, dim=1)
        logits = f @ f.t() / 0.1
        logits = logits - logits.max(1, keepdim=True).values.detach()
        other = ~torch.eye(f.shape[0], dtype=torch.bool, device=f.device)
        same = labels[:, None].eq(labels[None]) & other
        log = logits - torch.log((logits.exp() * other).sum(1, keepdim=True))
        return -((same * log).sum(1) / same.sum(1).clamp(min=1)).mean()

    def example_input_array():
        return [torch.randn(48, 16), torch.randint(0, 6, (48,))]


class BoundedPolicy(nn.Module):
    """The clipped objective of PPO with entropy and a clipped value loss."""

    def forward(self, logits, actions, before, advantage, value, old_value, returns):
        d = torch.distributions.Categorical(logits=logits)
        ratio = (d.log_prob(actions) - before).exp()
        a = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        policy = -torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
        clipped = old_value + (value - old_value).clamp(-0.2, 0.2)
        loss = 0.5 * torch.max((value - returns) ** 2, (clipped - returns) ** 2).mean()
        return policy + 0.5 * loss - 0.01 * d.entropy().mean()

    def example_input_array():
        n = 256
        return [torch.randn(n, 6), torch.randint(0, 6, (n,)), -torch.rand(n) - 1, torch.randn(n),
                torch.randn(n), torch.randn(n), torch.randn(n)]


class Equivariant(nn.Module):
    """E(n) messages along edges: features and places."""

    def __init__(self, dim=16):
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(2 * dim + 1, dim), nn.SiLU(), nn.Linear(dim, dim), nn.SiLU())
        self.node = nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.place = nn.Linear(dim, 1, bias=False)

    def forward(self, h, x, edges):
        row, col = edges
        apart = x[row] - x[col]
        m = self.edge(torch.cat((h[row], h[col], apart.pow(2).sum(1, keepdim=True)), 1))
        push = apart / (apart.norm(dim=1, keepdim=True) + 1) * self.place(m)
        x = x + torch.zeros_like(x).index_add_(0, row, push)
        total = torch.zeros_like(h).index_add_(0, row, m)
        return h + self.node(torch.cat((h, total), 1)), x

    def example_input_array():
        return [torch.randn(40, 16), torch.randn(40, 3), torch.randint(0, 40, (2, 160))]


class GraphNorm(nn.Module):
    """Nodes are normalised by the mean and spread of their graph."""

    def __init__(self, dim=16, graphs=6):
        super().__init__()
        self.graphs = graphs
        self.scale, self.weight = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def mean(self, x, batch):
        total = x.new_zeros(self.graphs, x.shape[1]).scatter_add_(0, batch[:, None].expand_as(x), x)
        count = torch.bincount(batch, minlength=self.graphs).clamp(min=1)
        return total / count[:, None]

    def forward(self, x, batch):
        out = x - self.scale * self.mean(x, batch)[batch]
        var = self.mean(out * out, batch)
        return self.weight * out / (var + 1e-5).sqrt()[batch] + self.bias

    def example_input_array():
        return [torch.randn(60, 16), torch.arange(60) // 10]


class EdgePooled(nn.Module):
    """The greatest message of each node, and the place where it came from."""

    def __init__(self, dim=16):
        super().__init__()
        self.mlp = nn.Linear(2 * dim, dim)

    def forward(self, x, edges):
        m = self.mlp(torch.cat((x[edges[1]], x[edges[0]] - x[edges[1]]), -1))
        at = edges[1][:, None].expand(-1, m.shape[1])
        return x.new_full(x.shape, -1e9).scatter_reduce(0, at, m, "amax", include_self=True)

    def example_input_array():
        return [torch.randn(40, 16), torch.randint(0, 40, (2, 160))]


class MatrixMemory(nn.Module):
    """xLSTM's matrix memory in its parallel form."""

    def forward(self, q, k, v, i, f):
        n = q.shape[2]
        log_f = F.logsigmoid(f)
        total = F.pad(log_f.cumsum(-1), (1, 0))
        decay = total[..., 1:, None] - total[..., None, 1:] + i[..., None, :]
        below = torch.tril(torch.ones(n, n, dtype=torch.bool, device=q.device))
        decay = torch.where(below, decay, -float("inf"))
        most = decay.max(-1, keepdim=True).values
        c = (q @ k.mT) * q.shape[-1] ** -0.5 * torch.exp(decay - most)
        scale = torch.maximum(c.sum(-1, keepdim=True).abs(), torch.exp(-most))
        return (c / (scale + 1e-6)) @ v

    def example_input_array():
        t = [torch.randn(2, 4, 48, 16) for _ in range(3)]
        return [*t, torch.randn(2, 4, 48), torch.randn(2, 4, 48) + 3]


class ChunkedDelta(nn.Module):
    """A delta rule within chunks of sixteen, by a triangular solve."""

    def forward(self, q, k, v, beta):
        b, h, n, d = q.shape
        c = 16
        q, k, v = (t.reshape(b, h, n // c, c, d) for t in (q, F.normalize(k, dim=-1), v))
        beta = beta.reshape(b, h, n // c, c, 1)
        kb, vb = k * beta, v * beta
        lower = torch.tril(kb @ k.mT, -1)
        solve = torch.linalg.solve_triangular(lower + torch.eye(c, device=q.device), torch.cat((vb, kb), -1),
                                              upper=False, unitriangular=True)
        u, w = solve.split(d, -1)
        state, out = q.new_zeros(b, h, d, d), []
        for i in range(n // c):
            new = u[:, :, i] - w[:, :, i] @ state
            out.append(q[:, :, i] @ state + torch.tril(q[:, :, i] @ k[:, :, i].mT) @ new)
            state = state + k[:, :, i].mT @ new
        return torch.stack(out, 2).reshape(b, h, n, d)

    def example_input_array():
        t = [torch.randn(2, 2, 48, 16) for _ in range(3)]
        return [*t, torch.rand(2, 2, 48)]


class Imaged(nn.Module):
    """One step of a convolutional LSTM, whose state is a pair."""

    def __init__(self, dim=8):
        super().__init__()
        self.gates = nn.Conv2d(2 * dim, 4 * dim, 3, padding=1)

    def forward(self, x, state):
        h, c = state
        i, f, o, g = self.gates(torch.cat((x, h), 1)).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return {"out": o.sigmoid() * c.tanh(), "state": (h, c)}

    def example_input_array():
        return [torch.randn(2, 8, 16, 16), (torch.randn(2, 8, 16, 16), torch.randn(2, 8, 16, 16))]


class LatentPair(nn.Module):
    """A named tuple of a mean and a spread, and a loss of both."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 16)

    def forward(self, x, scale: float = 1.0):
        mean, log = self.layer(x).chunk(2, -1)
        log = log.clamp(-30, 20)
        return Pair(mean * scale, torch.exp(0.5 * log)), 0.5 * (mean ** 2 + log.exp() - 1 - log).sum(-1)

    def example_input_array():
        return [torch.randn(16, 32)]


class BlockScaled(nn.Module):
    """A linear layer whose float8 weight has a scale for each block of 16 by 16."""

    def __init__(self, inner=64, outer=48):
        super().__init__()
        self.register_buffer("weight", torch.randn(outer, inner).to(torch.float8_e4m3fn))
        self.register_buffer("scale", torch.rand(outer // 16, inner // 16) + 0.5)

    def forward(self, x):
        w = self.weight.to(torch.bfloat16).unflatten(0, (-1, 16)).unflatten(2, (-1, 16))
        w = (w * self.scale[:, None, :, None].to(torch.bfloat16)).flatten(2).flatten(0, 1)
        return F.linear(x.to(torch.bfloat16), w).float()

    def example_input_array():
        return [torch.randn(8, 64)]


class FourBitNormal(nn.Module):
    """NF4: two codes a byte, a table of sixteen, a scale for each 32."""

    def __init__(self, inner=64, outer=32):
        super().__init__()
        self.register_buffer("codes", torch.randint(0, 256, (outer * inner // 2,), dtype=torch.uint8))
        self.register_buffer("table", torch.tensor(
            [-1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0, 0.0796, 0.1609, 0.2461, 0.3379,
             0.4407, 0.5626, 0.7230, 1.0]))
        self.register_buffer("scale", torch.rand(outer * inner // 32) + 0.1)
        self.shape = outer, inner

    def forward(self, x):
        pair = torch.stack((self.codes >> 4, self.codes & 15), -1).flatten().to(torch.int64)
        w = (self.table[pair].view(-1, 32) * self.scale[:, None]).view(self.shape)
        return x @ w.t()

    def example_input_array():
        return [torch.randn(8, 64)]


class ZeroPoints(nn.Module):
    """An asymmetric product of eight-bit numbers in whole numbers."""

    def __init__(self, inner=64, outer=32):
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 128, (outer, inner), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(outer) * 0.01 + 0.001)

    def forward(self, x):
        low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
        step = (high - low).clamp(min=1e-5) / 255
        zero = (-low / step).round()
        q = (x / step + zero).round().clamp(0, 255)
        total = (q - zero).to(torch.float32) @ self.weight.to(torch.float32).t()
        return total * step * self.scale

    def example_input_array():
        return [torch.randn(16, 64)]


class Spherical(nn.Module):
    """Real harmonics of the second degree that colour a splat."""

    def forward(self, c, d):
        d = d / d.norm(dim=-1, keepdim=True)
        x, y, z = d[..., 0:1], d[..., 1:2], d[..., 2:3]
        y0 = 0.28209479 * c[..., 0, :] - 0.48860251 * (y * c[..., 1, :] - z * c[..., 2, :] + x * c[..., 3, :])
        y2 = (1.0925484 * (x * y * c[..., 4, :] - y * z * c[..., 5, :] - x * z * c[..., 7, :])
              + 0.31539157 * (2 * z * z - x * x - y * y) * c[..., 6, :]
              + 0.54627421 * (x * x - y * y) * c[..., 8, :])
        return torch.clamp_min(y0 + y2 + 0.5, 0.0)

    def example_input_array():
        return [torch.randn(500, 9, 3), torch.randn(500, 3)]


class Polynomials(nn.Module):
    """Chebyshev features of bounded inputs, by the recurrence."""

    def __init__(self, inner=16, outer=8, degree=4):
        super().__init__()
        self.degree = degree
        self.coefficients = nn.Parameter(torch.randn(inner, outer, degree + 1) / (inner * (degree + 1)))

    def forward(self, x):
        x = torch.tanh(x)
        t = [torch.ones_like(x), x]
        for _ in range(2, self.degree + 1):
            t.append(2 * x * t[-1] - t[-2])
        return torch.einsum("bid,iod->bo", torch.stack(t, -1), self.coefficients)

    def example_input_array():
        return [torch.randn(64, 16)]


class Distances(nn.Module):
    """Gaussian bases of the distances within a window, with a cosine cutoff."""

    def __init__(self, bases=16, cutoff=5.0):
        super().__init__()
        self.cutoff = cutoff
        self.register_buffer("centres", torch.linspace(0, cutoff, bases))

    def forward(self, x):
        r = torch.cdist(x, x)
        window = 0.5 * (torch.cos(r * math.pi / self.cutoff) + 1) * (r < self.cutoff)
        return torch.exp(-10 * (r[..., None] - self.centres) ** 2) * window[..., None]

    def example_input_array():
        return [torch.rand(2, 48, 3) * 6]

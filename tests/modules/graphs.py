"""Graph networks and scores of pairs: inputs are indices."""

import torch
import torch.nn.functional as F
from torch import nn


def edges(nodes, n):
    return torch.randint(0, nodes, (2, n))


class NormalisedConvolution(nn.Module):
    """GCN's: by the roots of the degrees."""

    def __init__(self, dim=64):
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x, edge_index):
        source, target = edge_index
        degree = torch.zeros(x.shape[0], device=x.device).index_add(
            0, target, torch.ones(target.shape[0], device=x.device)) + 1
        weight = degree.rsqrt()[source] * degree.rsqrt()[target]
        h = self.linear(x)
        y = torch.zeros_like(h).index_add(0, target, h[source] * weight[:, None])
        return F.relu(y + h / degree[:, None])

    def example_input_array():
        return [torch.randn(500, 64), edges(500, 2000)]


class Isomorphism(nn.Module):
    """GIN's: sums of neighbours by scatter_add."""

    def __init__(self, dim=64):
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(1))
        self.net = nn.Sequential(nn.Linear(dim, 2 * dim), nn.BatchNorm1d(2 * dim), nn.ReLU(),
                                 nn.Linear(2 * dim, dim))

    def forward(self, x, edge_index):
        index = edge_index[1][:, None].expand(-1, x.shape[1])
        total = torch.zeros_like(x).scatter_add(0, index, x[edge_index[0]])
        return self.net((1 + self.eps) * x + total)

    def example_input_array():
        return [torch.randn(500, 64), edges(500, 2000)]


class NearestNeighbours(nn.Module):
    """EdgeConv: the eight nearest points, gathered, their maximum."""

    def __init__(self, c=16, out=32):
        super().__init__()
        self.net = nn.Conv2d(2 * c, out, 1)

    def forward(self, x):
        far = torch.cdist(x.mT, x.mT)
        index = far.topk(8, -1, largest=False).indices
        b, c, n = x.shape
        near = torch.gather(x[:, :, None].expand(-1, -1, n, -1), 3, index[:, None].expand(-1, c, -1, -1))
        middle = x[..., None].expand_as(near)
        return F.leaky_relu(self.net(torch.cat((near - middle, middle), 1)), 0.2).amax(-1)

    def example_input_array():
        return [torch.randn(4, 16, 128)]


class SeveralAggregates(nn.Module):
    """PNA's: mean, largest and smallest of the neighbours."""

    def __init__(self, dim=32):
        super().__init__()
        self.linear = nn.Linear(3 * dim, dim)

    def forward(self, x, edge_index):
        index = edge_index[1][:, None].expand(-1, x.shape[1])
        given, zero = x[edge_index[0]], torch.zeros_like(x)
        parts = [zero.scatter_reduce(0, index, given, how, include_self=False)
                 for how in ("mean", "amax", "amin")]
        return self.linear(torch.cat(parts, -1))

    def example_input_array():
        return [torch.randn(300, 32), edges(300, 1500)]


class ContinuousFilter(nn.Module):
    """SchNet's: Gaussians of positive distances, cut off smoothly."""

    def __init__(self, dim=64, n=32, cutoff=5.0):
        super().__init__()
        self.cutoff = cutoff
        self.register_buffer("centres", torch.linspace(0, cutoff, n))
        self.net = nn.Sequential(nn.Linear(n, dim), nn.Softplus(), nn.Linear(dim, dim))

    def forward(self, x, distance, source, target):
        wave = torch.exp(-10.0 * (distance[:, None] - self.centres) ** 2)
        smooth = 0.5 * (torch.cos(distance * torch.pi / self.cutoff) + 1) * (distance < self.cutoff)
        weight = self.net(wave) * smooth[:, None]
        return torch.zeros_like(x).index_add(0, target, x[source] * weight)

    def example_input_array():
        return [torch.randn(200, 64), torch.rand(1000) * 6, *edges(200, 1000).unbind(0)]


class RotatedTriples(nn.Module):
    """RotatE's score of head, relation and tail."""

    def __init__(self, entities=1000, relations=50, dim=64):
        super().__init__()
        self.entity, self.relation = nn.Embedding(entities, 2 * dim), nn.Embedding(relations, dim)

    def forward(self, head, relation, tail):
        a, b = self.entity(head).chunk(2, -1)
        c, d = self.entity(tail).chunk(2, -1)
        angle = self.relation(relation)
        real, imaginary = a * angle.cos() - b * angle.sin() - c, a * angle.sin() + b * angle.cos() - d
        return 12 - torch.stack((real, imaginary)).norm(dim=0).sum(-1)

    def example_input_array():
        return [torch.randint(0, 1000, (256,)), torch.randint(0, 50, (256,)), torch.randint(0, 1000, (256,))]


class FeatureCrosses(nn.Module):
    """DLRM's: bags of indices, a dense part, products of all pairs."""

    def __init__(self, rows=1000, dim=32, tables=4):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, dim, mode="sum") for _ in range(tables))
        self.dense, n = nn.Linear(13, dim), tables + 1
        low = torch.tril_indices(n, n, -1)
        self.register_buffer("row", low[0])
        self.register_buffer("column", low[1])

    def forward(self, dense, sparse):
        parts = [F.relu(self.dense(dense))] + [bag(sparse[:, i]) for i, bag in enumerate(self.bags)]
        t = torch.stack(parts, 1)
        return torch.cat((parts[0], (t @ t.mT)[:, self.row, self.column]), 1)

    def example_input_array():
        return [torch.randn(128, 13), torch.randint(0, 1000, (128, 4, 10))]


class HyperbolicDistance(nn.Module):
    """Of points within the unit ball."""

    def forward(self, x, y):
        gap = ((x - y) ** 2).sum(-1)
        room = (1 - (x ** 2).sum(-1)).clamp_min(1e-5) * (1 - (y ** 2).sum(-1)).clamp_min(1e-5)
        return torch.acosh(1 + 2 * gap / room + 1e-7)

    def example_input_array():
        return [torch.rand(512, 8) * 0.3, torch.rand(512, 8) * 0.3]


class PrincipalAggregation(nn.Module):
    """PNA: mean, max, min and deviation over neighbours by scatter, with degree scalers."""

    def __init__(self, d=8):
        super().__init__()
        self.post = nn.Linear(12 * d, d)

    def forward(self, x, src, dst, degree):
        m = x[src]
        index = dst[:, None].expand_as(m)
        zero = torch.zeros_like(x)
        mean = zero.scatter_reduce(0, index, m, "mean", include_self=False)
        high = zero.scatter_reduce(0, index, m, "amax", include_self=False)
        low = zero.scatter_reduce(0, index, m, "amin", include_self=False)
        second = zero.scatter_reduce(0, index, m * m, "mean", include_self=False)
        dev = (F.relu(second - mean * mean) + 1e-5).sqrt()
        h = torch.cat((mean, high, low), -1)
        h = torch.cat((h, dev), -1)
        s = (degree + 1).log()[:, None]
        return self.post(torch.cat((h, h * s, h / s), -1))

    def example_input_array():
        return [torch.randn(10, 8), torch.randint(0, 10, (30,)), torch.randint(0, 10, (30,)),
                torch.rand(10) * 3 + 1]

"""Parts of detectors."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class DecodedBoxes(nn.Module):
    """Boxes from anchors and their changes, within the image."""

    def forward(self, deltas, anchors):
        size = anchors[:, 2:] - anchors[:, :2]
        middle = anchors[:, :2] + 0.5 * size
        move, grow = deltas[:, :2] * 0.1, (deltas[:, 2:] * 0.2).clamp(max=math.log(1000 / 16))
        middle, size = middle + move * size, grow.exp() * size
        return torch.cat((middle - size / 2, middle + size / 2), 1).clamp(0, 800)

    def example_input_array():
        corner = torch.rand(2000, 2) * 700
        return [torch.randn(2000, 4), torch.cat((corner, corner + 10 + torch.rand(2000, 2) * 90), 1)]


class Pyramid(nn.Module):
    """A feature pyramid's way down: a tuple of maps in and out."""

    def __init__(self, sizes=(32, 64, 128), out=64):
        super().__init__()
        self.side = nn.ModuleList(nn.Conv2d(c, out, 1) for c in sizes)
        self.smooth = nn.ModuleList(nn.Conv2d(out, out, 3, padding=1) for _ in sizes)

    def forward(self, maps):
        side = [f(m) for f, m in zip(self.side, maps)]
        for i in range(len(side) - 1, 0, -1):
            side[i - 1] = side[i - 1] + F.interpolate(side[i], size=side[i - 1].shape[-2:], mode="nearest")
        return tuple(f(s) for f, s in zip(self.smooth, side))

    def example_input_array():
        return [tuple(torch.randn(2, c, s, s) for c, s in ((32, 32), (64, 16), (128, 8)))]


class SampledPoints(nn.Module):
    """Deformable attention on one map: values at places that are learnt."""

    def __init__(self, dim=64, n=4, points=4):
        super().__init__()
        self.n, self.points = n, points
        self.offset, self.weight = nn.Linear(dim, n * points * 2), nn.Linear(dim, n * points)
        self.value, self.out = nn.Conv2d(dim, dim, 1), nn.Linear(dim, dim)

    def forward(self, query, reference, feature):
        b, q, c = query.shape
        offset = self.offset(query).view(b, q, self.n, self.points, 2).tanh()
        where = reference[:, :, None, None] + 0.1 * offset
        weight = self.weight(query).view(b, q, self.n, self.points).softmax(-1)
        value = self.value(feature).reshape(b * self.n, c // self.n, *feature.shape[-2:])
        grid = (2 * where - 1).transpose(1, 2).flatten(0, 1)
        seen = F.grid_sample(value, grid, align_corners=False)
        y = (seen * weight.transpose(1, 2).reshape(b * self.n, 1, q, self.points)).sum(-1)
        return self.out(y.view(b, c, q).transpose(1, 2))

    def example_input_array():
        return [torch.randn(2, 100, 64), torch.rand(2, 100, 2), torch.randn(2, 64, 20, 20)]


class SoftArgmax(nn.Module):
    """Key points from heat maps, with how sure they are."""

    def forward(self, heat):
        b, k, h, w = heat.shape
        p = heat.flatten(2).softmax(-1).view(b, k, h, w)
        x = (p.sum(2) * torch.arange(w, device=heat.device)).sum(-1)
        y = (p.sum(3) * torch.arange(h, device=heat.device)).sum(-1)
        return torch.stack((x, y), -1), p.amax((2, 3))

    def example_input_array():
        return [torch.randn(8, 17, 64, 48)]


class DistributedEdges(nn.Module):
    """YOLOv8's head: the mean of a distribution for each edge."""

    def __init__(self, bins=16):
        super().__init__()
        self.register_buffer("places", torch.arange(bins).float())

    def forward(self, edges, points, strides):
        b, _, n = edges.shape
        far = edges.view(b, 4, -1, n).permute(0, 1, 3, 2).softmax(-1) @ self.places
        low, high = points - far[:, :2], points + far[:, 2:]
        return torch.cat(((low + high) / 2, high - low), 1) * strides

    def example_input_array():
        return [torch.randn(4, 64, 400), torch.rand(2, 400) * 20, torch.full((1, 400), 8.0)]


class MatchingCost(nn.Module):
    """DETR's cost of each pair of a prediction and a target."""

    def forward(self, logits, boxes, labels, targets):
        kind = -logits.softmax(-1)[:, labels]
        far = torch.cdist(boxes, targets, p=1)
        a, b = (torch.cat((t[:, :2] - t[:, 2:] / 2, t[:, :2] + t[:, 2:] / 2), 1) for t in (boxes, targets))
        low, high = torch.max(a[:, None, :2], b[:, :2]), torch.min(a[:, None, 2:], b[:, 2:])
        both = (high - low).clamp(min=0).prod(-1)
        union = boxes[:, None, 2:].prod(-1) + targets[:, 2:].prod(-1) - both
        return 5 * far + kind - 2 * both / union

    def example_input_array():
        return [torch.randn(300, 92), torch.rand(300, 4) * 0.5 + 0.1, torch.randint(0, 91, (40,)),
                torch.rand(40, 4) * 0.5 + 0.1]


class CompleteOverlap(nn.Module):
    """The loss of complete overlaps, with an angle's term."""

    def forward(self, a, b):
        low, high = torch.max(a[:, :2], b[:, :2]), torch.min(a[:, 2:], b[:, 2:])
        both = (high - low).clamp(0).prod(1)
        sa, sb = a[:, 2:] - a[:, :2], b[:, 2:] - b[:, :2]
        overlap = both / (sa.prod(1) + sb.prod(1) - both + 1e-7)
        hull = (torch.max(a[:, 2:], b[:, 2:]) - torch.min(a[:, :2], b[:, :2])).pow(2).sum(1) + 1e-7
        far = ((a[:, :2] + a[:, 2:] - b[:, :2] - b[:, 2:]) ** 2).sum(1) / 4
        v = 4 / math.pi ** 2 * (torch.atan(sb[:, 0] / sb[:, 1]) - torch.atan(sa[:, 0] / sa[:, 1])) ** 2
        alpha = v / (1 - overlap + v + 1e-7)
        return (1 - overlap + far / hull + alpha * v).mean()

    def example_input_array():
        def boxes():
            corner = torch.rand(512, 2)
            return torch.cat((corner, corner + 0.2 + torch.rand(512, 2)), 1)
        return [boxes(), boxes()]

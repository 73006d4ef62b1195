"""Parts of networks that engineers write by hand: U-Nets, decoders, detectors, graphs, forecasts."""

import torch
import torch.nn.functional as F
from torch import nn


class SpatialDecoder(nn.Module):
    """A variational decoder's middle: residual, attention over places in one head, an upsampling."""

    def __init__(self, dim=32):
        super().__init__()
        self.norm, self.norm2 = nn.GroupNorm(8, dim), nn.GroupNorm(8, dim)
        self.conv = nn.Conv2d(dim, dim, 3, padding=1)
        self.q, self.k, self.v, self.out = (nn.Conv2d(dim, dim, 1) for _ in range(4))
        self.up = nn.Conv2d(dim, dim, 3, padding=1)

    def forward(self, z):
        z = z + self.conv(F.silu(self.norm(z)))
        x = self.norm2(z)
        q, k, v = (f(x).flatten(2).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(z.shape)
        return self.up(F.interpolate(z + self.out(y), scale_factor=2.0, mode="nearest"))

    def example_input_array():
        return [torch.randn(2, 32, 12, 12)]


class UShape(nn.Module):
    """Two levels down and up, with skips, pooling and transposed convolutions."""

    def __init__(self, dim=16):
        super().__init__()
        def block(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(True))
        self.a, self.b, self.c = block(3, dim), block(dim, 2 * dim), block(2 * dim, dim)
        self.up, self.out = nn.ConvTranspose2d(2 * dim, dim, 2, 2), nn.Conv2d(dim, 4, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        return self.out(self.c(torch.cat((a, self.up(b)), 1)))

    def example_input_array():
        return [torch.randn(2, 3, 32, 32)]


class SplitStages(nn.Module):
    """YOLO's C2f and SPPF: halves that go through bottlenecks, and three poolings in a row."""

    def __init__(self, dim=32):
        super().__init__()
        self.into, self.out = nn.Conv2d(dim, dim, 1), nn.Conv2d(2 * dim, dim, 1)
        self.steps = nn.ModuleList(nn.Conv2d(dim // 2, dim // 2, 3, padding=1) for _ in range(2))
        self.pool, self.last = nn.MaxPool2d(5, 1, 2), nn.Conv2d(4 * dim, dim, 1)

    def forward(self, x):
        y = list(F.silu(self.into(x)).chunk(2, 1))
        y.extend(y[-1] + F.silu(m(y[-1])) for m in self.steps)
        x = F.silu(self.out(torch.cat(y, 1)))
        p = [x]
        for _ in range(3):
            p.append(self.pool(p[-1]))
        return F.silu(self.last(torch.cat(p, 1)))

    def example_input_array():
        return [torch.randn(2, 32, 20, 20)]


class ThreeScales(nn.Module):
    """A detector's head over three maps: boxes and classes of all cells in one tensor."""

    def __init__(self, dims=(16, 32, 64), classes=5):
        super().__init__()
        self.box = nn.ModuleList(nn.Conv2d(d, 4, 1) for d in dims)
        self.kind = nn.ModuleList(nn.Conv2d(d, classes, 1) for d in dims)

    def forward(self, maps):
        out = []
        for i, m in enumerate(maps):
            both = torch.cat((self.box[i](m).exp() * 8 * 2 ** i, self.kind[i](m).sigmoid()), 1)
            out.append(both.flatten(2))
        return torch.cat(out, 2).transpose(1, 2)

    def example_input_array():
        return [[torch.randn(2, 16, 16, 16), torch.randn(2, 32, 8, 8), torch.randn(2, 64, 4, 4)]]


class PixelQueries(nn.Module):
    """DETR's encoder layer: sines of places are added to queries and keys, not to values."""

    def __init__(self, dim=64, heads=4):
        super().__init__()
        self.heads, self.qk, self.v = heads, nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)
        self.out, self.norm, self.norm2 = nn.Linear(dim, dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 128), nn.ReLU(), nn.Linear(128, dim))

    def places(self, mask):
        y, x = (~mask).cumsum(1).float(), (~mask).cumsum(2).float()
        y, x = y / (y[:, -1:, :] + 1e-6) * 6.2832, x / (x[:, :, -1:] + 1e-6) * 6.2832
        at = 10000 ** (2 * (torch.arange(32, device=mask.device) // 2) / 32)
        y, x = y[..., None] / at, x[..., None] / at
        both = [torch.stack((t[..., 0::2].sin(), t[..., 1::2].cos()), 4).flatten(3) for t in (y, x)]
        return torch.cat(both, 3).flatten(1, 2)

    def forward(self, x, mask):
        q, k = self.qk(x + self.places(mask)).chunk(2, -1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, self.v(x)))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=~mask.flatten(1)[:, None, None])
        x = self.norm(x + self.out(y.transpose(1, 2).flatten(2)))
        return self.norm2(x + self.mlp(x))

    def example_input_array():
        mask = torch.zeros(2, 8, 8, dtype=torch.bool)
        mask[1, :, 6:] = True
        return [torch.randn(2, 64, 64), mask]


class MeanSage(nn.Module):
    """GraphSAGE with the mean of neighbours, then rows of length one."""

    def __init__(self):
        super().__init__()
        self.own, self.other = nn.Linear(32, 32), nn.Linear(32, 32, bias=False)

    def forward(self, x, edges):
        source, target = edges
        total = torch.zeros_like(x).index_add_(0, target, x[source])
        count = torch.zeros(x.shape[0], device=x.device).index_add_(0, target, x.new_ones(target.shape))
        return F.normalize(self.own(x) + self.other(total / count.clamp(min=1)[:, None]), dim=-1)

    def example_input_array():
        return [torch.randn(40, 32), torch.randint(0, 40, (2, 160))]


class EdgeSoftmax(nn.Module):
    """GAT's: scores of edges become weights among those with one target."""

    def __init__(self, heads=4):
        super().__init__()
        self.heads, self.w = heads, nn.Linear(32, 32, bias=False)
        self.a = nn.Parameter(torch.randn(2, heads, 8) / 3)

    def forward(self, x, source, target):
        h = self.w(x).view(-1, self.heads, 8)
        score = F.leaky_relu((h * self.a[0]).sum(-1)[source] + (h * self.a[1]).sum(-1)[target], 0.2)
        most = score.new_full((x.shape[0], self.heads), -1e30).scatter_reduce(
            0, target[:, None].expand_as(score), score, "amax")
        e = (score - most[target]).exp()
        total = e.new_zeros(x.shape[0], self.heads).index_add(0, target, e)
        weight = e / (total[target] + 1e-9)
        return torch.zeros_like(h).index_add(0, target, weight[..., None] * h[source]).flatten(1)

    def example_input_array():
        return [torch.randn(40, 32), torch.randint(0, 40, (160,)), torch.randint(0, 40, (160,))]


class Decomposed(nn.Module):
    """DLinear: a moving average and the rest, each by a linear layer over time."""

    def __init__(self, past=32, ahead=8, window=7):
        super().__init__()
        self.window, self.trend, self.rest = window, nn.Linear(past, ahead), nn.Linear(past, ahead)

    def forward(self, x):
        x = x.transpose(1, 2)
        side = (self.window - 1) // 2
        trend = F.avg_pool1d(F.pad(x, (side, side), mode="replicate"), self.window, 1)
        return (self.trend(trend) + self.rest(x - trend)).transpose(1, 2)

    def example_input_array():
        return [torch.randn(4, 32, 5)]


class ReversibleNorm(nn.Module):
    """Instance normalization over time, undone behind a temporal convolution with gates."""

    def __init__(self, dim=6):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.conv = nn.Conv1d(dim, 2 * dim, 3, dilation=2)

    def forward(self, x):
        mean, std = x.mean(1, keepdim=True), x.var(1, keepdim=True, unbiased=False).add(1e-5).sqrt()
        y = ((x - mean) / std * self.w + self.b).transpose(1, 2)
        a, g = self.conv(F.pad(y, (4, 0))).chunk(2, 1)
        y = (a.tanh() * g.sigmoid()).transpose(1, 2)
        return (y - self.b) / (self.w + 1e-5) * std + mean

    def example_input_array():
        return [torch.randn(4, 24, 6)]


class Warped(nn.Module):
    """A flow warps an image, and the difference is weighted by where it is seen."""

    def forward(self, image, other, flow):
        b, _, h, w = image.shape
        y, x = torch.meshgrid(torch.arange(h, device=flow.device), torch.arange(w, device=flow.device),
                              indexing="ij")
        at = torch.stack((x, y), -1).float() + flow.permute(0, 2, 3, 1)
        at = 2 * at / at.new_tensor([w - 1, h - 1]) - 1
        seen = (at.abs() <= 1).all(-1, keepdim=True).permute(0, 3, 1, 2)
        far = (F.grid_sample(other, at, align_corners=True) - image).abs() * seen
        return far.sum() / seen.sum().clamp(min=1)

    def example_input_array():
        return [torch.rand(2, 3, 16, 20), torch.rand(2, 3, 16, 20), torch.randn(2, 2, 16, 20) * 2]


class LowRank(nn.Module):
    """A frozen linear layer with an adapter of rank four, scaled, and a magnitude by row (DoRA)."""

    def __init__(self, dim=64, rank=4):
        super().__init__()
        self.base = nn.Linear(dim, dim)
        self.a, self.b = nn.Parameter(torch.randn(rank, dim) / 8), nn.Parameter(torch.randn(dim, rank) / 8)
        self.m = nn.Parameter(self.base.weight.detach().norm(dim=1))

    def forward(self, x):
        w = self.base.weight + 2.0 * self.b @ self.a
        return F.linear(x, w * (self.m / w.norm(dim=1))[:, None], self.base.bias)

    def example_input_array():
        return [torch.randn(8, 16, 64)]


class SoftMixture(nn.Module):
    """Soft MoE: slots are mixtures of tokens, and tokens are mixtures of what experts make."""

    def __init__(self, dim=32, experts=4, slots=3):
        super().__init__()
        self.phi = nn.Parameter(torch.randn(dim, experts, slots) / 6)
        self.w1 = nn.Parameter(torch.randn(experts, dim, 2 * dim) / 6)
        self.w2 = nn.Parameter(torch.randn(experts, 2 * dim, dim) / 8)

    def forward(self, x):
        logits = torch.einsum("bnd,des->bnes", x, self.phi)
        slots = torch.einsum("bnd,bnes->besd", x, logits.softmax(1))
        y = torch.einsum("besh,ehd->besd", F.gelu(torch.einsum("besd,edh->besh", slots, self.w1)), self.w2)
        return torch.einsum("besd,bnes->bnd", y, logits.flatten(2).softmax(-1).view_as(logits))

    def example_input_array():
        return [torch.randn(2, 20, 32)]


class Wrapped(nn.Module):
    """A dict of a batch in, a dict of losses out; a mask may be None."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 32), nn.SELU(), nn.Linear(32, 3))

    def forward(self, batch, mask=None):
        y = self.net(batch["x"])
        far = F.smooth_l1_loss(y, batch["y"], reduction="none", beta=0.5).mean(-1)
        if mask is not None:
            far = far * mask
        return {"loss": far.mean(), "parts": (far, y), "mask": mask}

    def example_input_array():
        return [{"x": torch.randn(16, 12), "y": torch.randn(16, 3)}]

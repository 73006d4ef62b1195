"""Blocks of image models, of detectors and of diffusion models, as their libraries write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class EfficientBlock(nn.Module):
    """Expansion, depthwise convolution, squeeze and excitation, and a residual, in evaluation."""

    def __init__(self, dim=24, expand=4):
        super().__init__()
        inner = dim * expand
        self.expand = nn.Sequential(nn.Conv2d(dim, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.SiLU())
        self.depthwise = nn.Sequential(nn.Conv2d(inner, inner, 5, padding=2, groups=inner, bias=False),
                                       nn.BatchNorm2d(inner), nn.SiLU())
        self.reduce, self.gate = nn.Conv2d(inner, dim // 4, 1), nn.Conv2d(dim // 4, inner, 1)
        self.project = nn.Sequential(nn.Conv2d(inner, dim, 1, bias=False), nn.BatchNorm2d(dim))

    def forward(self, x):
        h = self.depthwise(self.expand(x))
        h = h * self.gate(F.silu(self.reduce(h.mean((2, 3), keepdim=True)))).sigmoid()
        return self.project(h) + x

    def example_input_array():
        return [torch.randn(4, 24, 28, 28)]


class HaloAttention(nn.Module):
    """Blocks of an image that see their neighbours, too."""

    def __init__(self, dim=32, heads=4, block=8, halo=3):
        super().__init__()
        self.heads, self.block, self.halo, self.dim = heads, block, halo, dim
        self.q, self.kv = nn.Conv2d(dim, dim, 1, bias=False), nn.Conv2d(dim, 2 * dim, 1, bias=False)

    def forward(self, x):
        b, c, h, w = x.shape
        n, d = self.block, c // self.heads
        q = self.q(x).reshape(-1, d, h // n, n, w // n, n).permute(0, 1, 3, 5, 2, 4)
        q = q.reshape(b * self.heads, d, n * n, -1).transpose(1, 3)
        kv = F.pad(self.kv(x), [self.halo] * 4)
        size = n + 2 * self.halo
        kv = kv.unfold(2, size, n).unfold(3, size, n).reshape(b * self.heads, 2 * d, -1, size * size)
        k, v = kv.permute(0, 2, 3, 1).split(d, -1)
        attn = (q @ k.transpose(-1, -2) * d ** -0.5).softmax(-1)
        out = (attn @ v).transpose(1, 3).reshape(-1, n, n, h // n, w // n).permute(0, 3, 1, 4, 2)
        return out.contiguous().view(b, c, h, w)

    def example_input_array():
        return [torch.randn(2, 32, 32, 32)]


class Grouped(nn.Module):
    """ResNeSt's split attention."""

    def __init__(self, dim=32, radix=2):
        super().__init__()
        self.radix = radix
        self.conv = nn.Conv2d(dim, dim * radix, 3, padding=1, groups=2 * radix)
        self.norm = nn.BatchNorm2d(dim * radix)
        self.down, self.up = nn.Conv2d(dim, 16, 1, groups=2), nn.Conv2d(16, dim * radix, 1, groups=2)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)))
        b, rc, h, w = x.shape
        x = x.reshape(b, self.radix, rc // self.radix, h, w)
        gap = F.adaptive_avg_pool2d(x.sum(1), 1)
        a = self.up(F.relu(self.down(gap)))
        a = F.softmax(a.view(b, 2, self.radix, -1).transpose(1, 2), 1).reshape(b, -1)
        a = a.view(b, -1, 1, 1).reshape(b, self.radix, rc // self.radix, 1, 1)
        return (x * a).sum(1).contiguous()

    def example_input_array():
        return [torch.randn(2, 32, 20, 20)]


class MultiAxis(nn.Module):
    """Grid attention with a relative bias looked up by a table."""

    def __init__(self, dim=32, heads=2, grid=4):
        super().__init__()
        self.heads, self.grid = heads, grid
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.table = nn.Parameter(torch.randn((2 * grid - 1) ** 2, heads) * 0.1)
        at = torch.stack(torch.meshgrid(torch.arange(grid), torch.arange(grid), indexing="ij")).flatten(1)
        apart = (at[:, :, None] - at[:, None]).permute(1, 2, 0) + grid - 1
        self.register_buffer("places", apart[..., 0] * (2 * grid - 1) + apart[..., 1])

    def forward(self, x):
        b, h, w, c = x.shape
        g = self.grid
        t = x.view(b, g, h // g, g, w // g, c).permute(0, 2, 4, 1, 3, 5).reshape(-1, g * g, c)
        q, k, v = self.qkv(t).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        bias = self.table[self.places.view(-1)].view(g * g, g * g, -1).permute(2, 0, 1)
        attn = q * (c // self.heads) ** -0.5 @ k.mT + bias
        t = self.out((attn.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return t.view(b, h // g, w // g, g, g, c).permute(0, 3, 1, 4, 2, 5).reshape(b, h, w, c)

    def example_input_array():
        return [torch.randn(2, 16, 16, 32)]


class ReLayer(nn.Module):
    """RepVGG's three branches in evaluation."""

    def __init__(self, dim=32):
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(dim, dim, 3, padding=1, bias=False), nn.BatchNorm2d(dim))
        self.thin = nn.Sequential(nn.Conv2d(dim, dim, 1, bias=False), nn.BatchNorm2d(dim))
        self.same = nn.BatchNorm2d(dim)

    def forward(self, x):
        return F.relu(self.wide(x) + self.thin(x) + self.same(x))

    def example_input_array():
        return [torch.randn(2, 32, 24, 24)]


class Anchors(nn.Module):
    """A YOLO head: boxes and scores of an image's cells."""

    def __init__(self, dim=32, anchors=3, classes=5):
        super().__init__()
        self.anchors, self.size = anchors, classes + 5
        self.conv = nn.Conv2d(dim, anchors * (classes + 5), 1)
        self.register_buffer("sizes", torch.tensor([[10.0, 13], [16, 30], [33, 23]]))

    def forward(self, x):
        b, _, h, w = x.shape
        y = self.conv(x).view(b, self.anchors, self.size, h, w).permute(0, 1, 3, 4, 2).sigmoid()
        ys, xs = torch.meshgrid(torch.arange(h, device=x.device), torch.arange(w, device=x.device),
                                indexing="ij")
        grid = torch.stack((xs, ys), -1).to(x.dtype) - 0.5
        centre = (y[..., :2] * 2 + grid) * 8
        size = (y[..., 2:4] * 2) ** 2 * self.sizes.view(1, -1, 1, 1, 2)
        return torch.cat((centre, size, y[..., 4:]), -1).view(b, -1, self.size)

    def example_input_array():
        return [torch.randn(2, 32, 20, 20)]


class Deformed(nn.Module):
    """Deformable attention of one level: points are sampled where the queries say."""

    def __init__(self, dim=32, heads=4, points=4):
        super().__init__()
        self.heads, self.points = heads, points
        self.value, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.offsets, self.weights = nn.Linear(dim, heads * points * 2), nn.Linear(dim, heads * points)

    def forward(self, query, value, reference):
        b, n, c = query.shape
        h, d = self.heads, c // self.heads
        v = self.value(value.flatten(2).transpose(1, 2)).view(b, 16, 16, h, d)
        v = v.permute(0, 3, 4, 1, 2).reshape(b * h, d, 16, 16)
        at = reference[:, :, None, None] + self.offsets(query).view(b, n, h, self.points, 2) / 16
        grid = (2 * at - 1).transpose(1, 2).flatten(0, 1)
        weight = self.weights(query).view(b, n, h, self.points).softmax(-1).transpose(1, 2)
        seen = F.grid_sample(v, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        out = (seen * weight.reshape(b * h, 1, n, self.points)).sum(-1)
        return self.out(out.view(b, c, n).transpose(1, 2))

    def example_input_array():
        return [torch.randn(2, 50, 32), torch.randn(2, 32, 16, 16), torch.rand(2, 50, 2)]


class QueryMasks(nn.Module):
    """Masks of queries, and their attention mask for the next layer."""

    def forward(self, queries, pixels, scores):
        masks = torch.einsum("bqc,bchw->bqhw", queries, pixels)
        small = F.interpolate(masks, size=(8, 8), mode="bilinear", align_corners=False)
        hidden = (small.sigmoid().flatten(2) < 0.5).unsqueeze(1).repeat(1, 2, 1, 1).flatten(0, 1)
        hidden = hidden & ~hidden.all(-1, keepdim=True)
        return {"masks": masks, "hidden": hidden, "label": scores.softmax(-1)[..., :-1].max(-1).values}

    def example_input_array():
        return [torch.randn(2, 20, 32), torch.randn(2, 32, 32, 32), torch.randn(2, 20, 6)]


class JointBlock(nn.Module):
    """A double-stream block: images and text with modulations of their own attend to both."""

    def __init__(self, dim=64, heads=4):
        super().__init__()
        self.heads = heads
        self.image_mod, self.text_mod = nn.Linear(dim, 3 * dim), nn.Linear(dim, 3 * dim)
        self.image_qkv, self.text_qkv = nn.Linear(dim, 3 * dim), nn.Linear(dim, 3 * dim)
        self.image_out, self.text_out = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.q_norm, self.k_norm = nn.RMSNorm(dim // heads), nn.RMSNorm(dim // heads)

    def parts(self, x, mod, qkv, condition):
        shift, scale, gate = mod(F.silu(condition)).unsqueeze(1).chunk(3, -1)
        h = (1 + scale) * F.layer_norm(x, x.shape[-1:]) + shift
        q, k, v = qkv(h).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.q_norm(q), self.k_norm(k), v, gate

    def forward(self, image, text, condition):
        q, k, v, gate = self.parts(image, self.image_mod, self.image_qkv, condition)
        tq, tk, tv, text_gate = self.parts(text, self.text_mod, self.text_qkv, condition)
        out = F.scaled_dot_product_attention(*(torch.cat(p, 2) for p in ((tq, q), (tk, k), (tv, v))))
        out = out.transpose(1, 2).flatten(2)
        n = text.shape[1]
        return image + gate * self.image_out(out[:, n:]), text + text_gate * self.text_out(out[:, :n])

    def example_input_array():
        return [torch.randn(2, 64, 64), torch.randn(2, 16, 64), torch.randn(2, 64)]


class NoiseLevels(nn.Module):
    """The loss of a diffusion model with weights of its signal-to-noise ratio."""

    def __init__(self, steps=100):
        super().__init__()
        self.register_buffer("kept", torch.linspace(0.9999, 0.98, steps).cumprod(0))

    def forward(self, predicted, noise, steps):
        kept = self.kept[steps]
        ratio = kept / (1 - kept)
        weight = torch.stack((ratio, 5 * torch.ones_like(ratio)), 1).min(1)[0] / ratio
        loss = F.mse_loss(predicted, noise, reduction="none").mean(dim=list(range(1, noise.dim())))
        return (loss * weight).mean()

    def example_input_array():
        return [torch.randn(8, 4, 16, 16), torch.randn(8, 4, 16, 16), torch.randint(0, 100, (8,))]


class Quantizer(nn.Module):
    """Finite scalar quantization of a video's latents."""

    def __init__(self, levels=(8, 5, 5, 5)):
        super().__init__()
        levels = torch.tensor(levels)
        self.register_buffer("levels", levels)
        self.register_buffer("basis", torch.cat((torch.ones(1, dtype=torch.int64), levels[:-1].cumprod(0))))

    def forward(self, z):
        half = (self.levels - 1) * (1 - 1e-3) / 2
        offset = torch.where(self.levels % 2 == 1, 0.0, 0.5)
        bounded = (z + (offset / half).tan()).tanh() * half - offset
        code = bounded.round() / (self.levels // 2)
        index = ((code * (self.levels // 2) + self.levels // 2) * self.basis).sum(-1).to(torch.int32)
        return code, index

    def example_input_array():
        return [torch.randn(4, 128, 4)]


class Waves(nn.Module):
    """Snake activations between transposed convolutions, as in a vocoder."""

    def __init__(self, dim=16):
        super().__init__()
        self.up = nn.ConvTranspose1d(dim, dim // 2, 8, 4, padding=2)
        self.alpha, self.beta = nn.Parameter(torch.zeros(dim)), nn.Parameter(torch.zeros(dim // 2))
        self.dilated = nn.Conv1d(dim // 2, dim // 2, 7, padding=9, dilation=3)

    def snake(self, x, alpha):
        alpha = alpha.exp()[:, None]
        return x + torch.sin(alpha * x).pow(2) / (alpha + 1e-9)

    def forward(self, x):
        h = self.up(self.snake(x, self.alpha))
        return torch.tanh(h + self.dilated(self.snake(h, self.beta)))

    def example_input_array():
        return [torch.randn(2, 16, 100)]


class Fourier(nn.Module):
    """An encoding of places by frequencies, and an MLP with a skip, as in radiance fields."""

    def __init__(self, bands=6, dim=64):
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(bands) * math.pi)
        self.first, self.second = nn.Linear(3 + 6 * bands, dim), nn.Linear(dim + 3 + 6 * bands, dim)
        self.density, self.colour = nn.Linear(dim, 1), nn.Linear(dim, 3)

    def forward(self, x):
        a = (x[..., None, :] * self.bands[:, None]).flatten(-2)
        e = torch.cat((x, a.sin(), a.cos()), -1)
        h = F.relu(self.second(torch.cat((F.relu(self.first(e)), e), -1)))
        return F.softplus(self.density(h) - 1), torch.sigmoid(self.colour(h))

    def example_input_array():
        return [torch.rand(512, 3) * 2 - 1]

"""Blocks of image models."""

import torch
import torch.nn.functional as F
from torch import nn


class ConvNext(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(dim, dim, 7, padding=3, groups=dim), nn.LayerNorm(dim, eps=1e-6)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.scale = nn.Parameter(1e-6 * torch.ones(dim))

    def forward(self, x):
        h = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(h)))).permute(0, 3, 1, 2)

    def example_input_array():
        return [torch.randn(4, 96, 28, 28)]


class ShiftedWindows(nn.Module):
    """Swin's: windows that are rolled, with a table of biases by the place."""

    def __init__(self, dim=96, n=3, window=7):
        super().__init__()
        self.n, self.window = n, window
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, n) * 0.02)
        at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        far = (at[:, :, None] - at[:, None, :]) + window - 1
        self.register_buffer("index", far[0] * (2 * window - 1) + far[1])

    def forward(self, x):
        b, h, w, c = x.shape
        s = self.window
        x = torch.roll(x, (-(s // 2), -(s // 2)), (1, 2))
        x = x.view(b, h // s, s, w // s, s, c).transpose(2, 3).reshape(-1, s * s, c)
        q, k, v = self.qkv(x).view(-1, s * s, 3, self.n, c // self.n).permute(2, 0, 3, 1, 4).unbind(0)
        bias = self.table[self.index.view(-1)].view(s * s, s * s, self.n).permute(2, 0, 1)
        y = ((q * (c // self.n) ** -0.5) @ k.mT + bias).softmax(-1) @ v
        y = self.out(y.transpose(1, 2).reshape(-1, s * s, c))
        y = y.view(b, h // s, w // s, s, s, c).transpose(2, 3).reshape(b, h, w, c)
        return torch.roll(y, (s // 2, s // 2), (1, 2))

    def example_input_array():
        return [torch.randn(4, 28, 28, 96)]


class Inverted(nn.Module):
    """MobileNetV3's block with squeeze and excitation."""

    def __init__(self, dim=40, hidden=120):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(dim, hidden, 1, bias=False), nn.BatchNorm2d(hidden),
                                    nn.Hardswish())
        self.spatial = nn.Sequential(nn.Conv2d(hidden, hidden, 5, padding=2, groups=hidden, bias=False),
                                     nn.BatchNorm2d(hidden), nn.Hardswish())
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(hidden, 32, 1), nn.ReLU(),
                                     nn.Conv2d(32, hidden, 1), nn.Hardsigmoid())
        self.project = nn.Sequential(nn.Conv2d(hidden, dim, 1, bias=False), nn.BatchNorm2d(dim))

    def forward(self, x):
        h = self.spatial(self.expand(x))
        return x + self.project(h * self.squeeze(h))

    def example_input_array():
        return [torch.randn(8, 40, 28, 28)]


class Ghost(nn.Module):
    """GhostNet's cheap channels."""

    def __init__(self, c=32, out=64):
        super().__init__()
        self.primary, self.norm = nn.Conv2d(c, out // 2, 1, bias=False), nn.BatchNorm2d(out // 2)
        self.cheap = nn.Conv2d(out // 2, out // 2, 3, padding=1, groups=out // 2, bias=False)

    def forward(self, x):
        a = F.relu(self.norm(self.primary(x)))
        return torch.cat((a, F.relu(self.cheap(a))), 1)

    def example_input_array():
        return [torch.randn(8, 32, 56, 56)]


class PoolMixer(nn.Module):
    """PoolFormer's: an average in place of attention."""

    def __init__(self, dim=64):
        super().__init__()
        self.norm, self.scale = nn.GroupNorm(1, dim), nn.Parameter(torch.ones(dim, 1, 1) * 1e-5)

    def forward(self, x):
        h = self.norm(x)
        return x + self.scale * (F.avg_pool2d(h, 3, 1, 1, count_include_pad=False) - h)

    def example_input_array():
        return [torch.randn(8, 64, 56, 56)]


class BlurPool(nn.Module):
    """An image is smoothed before it is halved."""

    def __init__(self, c=64):
        super().__init__()
        row = torch.tensor([1.0, 3.0, 3.0, 1.0])
        kernel = row[:, None] * row[None, :]
        self.register_buffer("kernel", (kernel / kernel.sum()).expand(c, 1, 4, 4).contiguous())

    def forward(self, x):
        return F.conv2d(F.pad(x, (1, 2, 1, 2), mode="reflect"), self.kernel, stride=2, groups=x.shape[1])

    def example_input_array():
        return [torch.randn(8, 64, 56, 56)]


class CrossCovariance(nn.Module):
    """XCiT's attention among channels."""

    def __init__(self, dim=192, n=4):
        super().__init__()
        self.n, self.qkv, self.out = n, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.temperature = nn.Parameter(torch.ones(n, 1, 1))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.n, c // self.n).permute(2, 0, 3, 4, 1)
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        y = ((q @ k.mT) * self.temperature).softmax(-1) @ v
        return self.out(y.permute(0, 3, 1, 2).reshape(b, t, c))

    def example_input_array():
        return [torch.randn(4, 196, 192)]


class FocalModulation(nn.Module):
    def __init__(self, dim=64, levels=2):
        super().__init__()
        self.levels, self.dim = levels, dim
        self.inner = nn.Linear(dim, 2 * dim + levels + 1)
        self.layers = nn.ModuleList(nn.Conv2d(dim, dim, 3 + 2 * i, padding=1 + i, groups=dim, bias=False)
                                    for i in range(levels))
        self.mix, self.out = nn.Conv2d(dim, dim, 1), nn.Linear(dim, dim)

    def forward(self, x):
        q, context, gates = self.inner(x).permute(0, 3, 1, 2).split((self.dim, self.dim, self.levels + 1), 1)
        total = 0
        for i, layer in enumerate(self.layers):
            context = F.gelu(layer(context))
            total = total + context * gates[:, i:i + 1]
        total = total + F.gelu(context.mean((2, 3), keepdim=True)) * gates[:, self.levels:]
        return self.out((q * self.mix(total)).permute(0, 2, 3, 1))

    def example_input_array():
        return [torch.randn(4, 28, 28, 64)]


class LastFormat(nn.Module):
    """RepVGG's three branches in channels_last, in a dict."""

    def __init__(self, c=32):
        super().__init__()
        self.dense, self.point = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 1)
        self.norm = nn.BatchNorm2d(c)
        self.to(memory_format=torch.channels_last)

    def forward(self, batch):
        x = batch["image"]
        y = F.relu(self.dense(x) + self.point(x) + self.norm(x))
        return {"feature": y, "pooled": y.mean((2, 3))}

    def example_input_array():
        return [{"image": torch.randn(8, 32, 28, 28).to(memory_format=torch.channels_last)}]

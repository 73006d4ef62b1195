"""Modules of several kinds: relative positions, stages of an image model, edges, containers of inputs and
results, complex numbers."""

import collections
import dataclasses

import torch
import transformers
from torch import nn
from torch.nn import functional as F

Pair = collections.namedtuple("Pair", "mean logvar")


@dataclasses.dataclass
class Batch:
    image: torch.Tensor
    mask: torch.Tensor = None


@dataclasses.dataclass
class Output:
    features: torch.Tensor
    pooled: torch.Tensor
    note: object = None


class RecordsInOut(nn.Module):
    """A dataclass in and out, a field of None."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)

    def forward(self, batch: Batch):
        y = self.conv(batch.image) * batch.mask[:, None]
        return Output(F.relu(y), y.mean((2, 3)))

    def example_input_array():
        return [Batch(torch.randn(2, 3, 16, 16), (torch.rand(2, 16, 16) > 0.3).float())]


class NamedPair(nn.Module):
    """A tuple by name of a VAE's encoder, with keyword arguments."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(32, 32)

    def forward(self, x, *, scale=1.0, prior=None):
        mean, logvar = self.lin(x).chunk(2, -1)
        logvar = logvar.clamp(-30, 20)
        return Pair(mean * scale, logvar if prior is None else logvar + prior)

    def example_input_array():
        return {"x": torch.randn(8, 32), "scale": 0.5, "prior": torch.randn(16)}


class GatLayer(nn.Module):
    """Attention along edges: a softmax by segments."""

    def __init__(self, i=16, heads=2, o=8):
        super().__init__()
        self.heads, self.o = heads, o
        self.lin = nn.Linear(i, heads * o, bias=False)
        self.a = nn.Parameter(torch.randn(2, heads, o) * 0.3)

    def forward(self, x, src, dst):
        n = x.shape[0]
        h = self.lin(x).view(n, self.heads, self.o)
        s = (h * self.a[0]).sum(-1)[src] + (h * self.a[1]).sum(-1)[dst]
        s = F.leaky_relu(s, 0.2)
        index = dst[:, None].expand_as(s)
        top = torch.full((n, self.heads), -1e9, device=x.device).scatter_reduce(0, index, s, "amax")
        e = (s - top[dst]).exp()
        z = torch.zeros(n, self.heads, device=x.device).scatter_add(0, index, e)
        w = e / z[dst].clamp(min=1e-9)
        return torch.zeros_like(h).index_add(0, dst, h[src] * w[..., None]).flatten(1)

    def example_input_array():
        return [torch.randn(20, 16), torch.randint(0, 20, (60,)), torch.randint(0, 20, (60,))]


class ComplexRotary(nn.Module):
    """Rotary positions by complex numbers, as in the first Llama."""

    def __init__(self, d=16):
        super().__init__()
        self.d = d

    def forward(self, q, k):
        f = 1.0 / 10000 ** (torch.arange(0, self.d, 2, device=q.device).float() / self.d)
        a = torch.outer(torch.arange(q.shape[1], device=q.device).float(), f)
        turn = torch.polar(torch.ones_like(a), a)[None, :, None]
        out = []
        for t in (q, k):
            z = torch.view_as_complex(t.float().reshape(*t.shape[:-1], -1, 2))
            out.append(torch.view_as_real(z * turn).flatten(3).type_as(t))
        return tuple(out)

    def example_input_array():
        return [torch.randn(2, 12, 4, 16), torch.randn(2, 12, 4, 16)]


class AcoshDistance(nn.Module):
    """A distance on the hyperboloid."""

    def forward(self, x, y):
        inner = (x * y).sum(-1) - 2 * x[..., 0] * y[..., 0]
        return torch.acosh((-inner).clamp(min=1 + 1e-6))

    def example_input_array():
        return [torch.randn(16, 8) + 3, torch.randn(16, 8) + 3]


class InPlace(nn.Module):
    """In-place steps on a clone, masked_fill_, add_, an assignment to a slice."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(32, 32)

    def forward(self, x, mask):
        y = self.lin(x).clone()
        y.masked_fill_(mask, 0.0).add_(x, alpha=0.5)
        y[:, :4] *= 2
        y[:, -1] = x[:, 0]
        return y.relu_()

    def example_input_array():
        return [torch.randn(8, 32), torch.rand(8, 32) > 0.5]


class RelativeEncoder(nn.Module):
    """T5's encoder alone with its mask."""

    def __init__(self):
        super().__init__()
        self.model = transformers.T5EncoderModel(transformers.T5Config(
            vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=1, num_heads=4, use_cache=False))

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    def example_input_array():
        mask = torch.ones(2, 24, dtype=torch.long)
        mask[1, 15:] = 0
        return [torch.randint(3, 100, (2, 24)), mask]


class SegmentWhole(nn.Module):
    """A Segformer of two stages with its head."""

    def __init__(self):
        super().__init__()
        self.model = transformers.SegformerForSemanticSegmentation(transformers.SegformerConfig(
            num_encoder_blocks=2, depths=[1, 1], sr_ratios=[4, 2], hidden_sizes=[16, 32], patch_sizes=[7, 3],
            strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=32))

    def forward(self, pixel_values):
        return self.model(pixel_values).logits

    def example_input_array():
        return [torch.randn(1, 3, 64, 64)]


class NeoxTokens(nn.Module):
    """GPT-NeoX: parallel residual, rotary on a part of the head."""

    def __init__(self):
        super().__init__()
        self.model = transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(
            hidden_size=64, num_hidden_layers=1, num_attention_heads=4, intermediate_size=128,
            vocab_size=100, max_position_embeddings=64, rotary_pct=0.25, use_cache=False))

    def forward(self, input_ids):
        return self.model(input_ids).logits

    def example_input_array():
        return [torch.randint(3, 100, (2, 24))]

"""Attention and the other parts of transformers."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def heads(x, n):
    return x.unflatten(-1, (n, -1)).transpose(-3, -2)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class RotaryGrouped(nn.Module):
    """Llama's: grouped keys, rotations by the positions that are given."""

    def __init__(self, dim=256, n=8, groups=2):
        super().__init__()
        self.n, self.groups, size = n, groups, dim // n
        self.q = nn.Linear(dim, dim, bias=False)
        self.kv = nn.Linear(dim, 2 * groups * size, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.register_buffer("frequency", 10000 ** (-torch.arange(0, size, 2).float() / size))

    def forward(self, x, positions):
        angle = positions[..., None].float() * self.frequency
        cos, sin = (torch.cat((f(angle), f(angle)), -1)[:, None] for f in (torch.cos, torch.sin))
        k, v = (heads(t, self.groups) for t in self.kv(x).chunk(2, -1))
        q, k = rotate(heads(self.q(x), self.n), cos, sin), rotate(k, cos, sin)
        k, v = (t.repeat_interleave(self.n // self.groups, 1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))

    def example_input_array():
        return [torch.randn(4, 128, 256), torch.arange(128).expand(4, 128).contiguous()]


class Alibi(nn.Module):
    """Bloom's: slopes by the distance, in bfloat16."""

    def __init__(self, dim=256, n=8):
        super().__init__()
        self.n = n
        self.qkv = nn.Linear(dim, 3 * dim).bfloat16()
        self.register_buffer("slopes", 2 ** -torch.arange(1, n + 1).float())

    def forward(self, x):
        q, k, v = (heads(t, self.n) for t in self.qkv(x).chunk(3, -1))
        at = torch.arange(x.shape[1], device=x.device)
        far = (at[None, :] - at[:, None]).float()
        score = q @ k.mT / math.sqrt(q.shape[-1]) + (self.slopes[:, None, None] * far)
        score = score.masked_fill(far > 0, torch.finfo(torch.float32).min)
        return (score.softmax(-1).to(v.dtype) @ v).transpose(1, 2).flatten(2)

    def example_input_array():
        return [torch.randn(4, 128, 256, dtype=torch.bfloat16)]


class ParallelBlock(nn.Module):
    """Falcon's: attention of one key head and a perceptron beside each other."""

    def __init__(self, dim=256, n=8):
        super().__init__()
        self.n, self.norm = n, nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, dim + 2 * dim // n)
        self.up, self.down, self.out = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim), nn.Linear(dim, dim)

    def forward(self, x):
        h = self.norm(x)
        size = x.shape[-1] // self.n
        q, k, v = self.qkv(h).split((x.shape[-1], size, size), -1)
        y = F.scaled_dot_product_attention(heads(q, self.n), k[:, None], v[:, None], is_causal=True)
        return x + self.out(y.transpose(1, 2).flatten(2)) + self.down(F.gelu(self.up(h)))

    def example_input_array():
        return [torch.randn(4, 128, 256)]


class Disentangled(nn.Module):
    """DeBERTa's: contents by positions, gathered by the relative distance."""

    def __init__(self, dim=128, n=4, span=32):
        super().__init__()
        self.n, self.span = n, span
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.relative = nn.Embedding(2 * span, dim)

    def forward(self, x, mask):
        q, k, v = (heads(f(x), self.n) for f in (self.q, self.k, self.v))
        place = heads(self.k(self.relative.weight), self.n)
        at = torch.arange(x.shape[1], device=x.device)
        far = (at[:, None] - at[None, :] + self.span).clamp(0, 2 * self.span - 1)
        by_place = torch.gather(q @ place.mT, -1, far.expand(*q.shape[:2], -1, -1))
        score = (q @ k.mT + by_place) / math.sqrt(2 * q.shape[-1])
        score = score.masked_fill(~mask[:, None, None, :], float("-inf"))
        return (score.softmax(-1) @ v).transpose(1, 2).flatten(2)

    def example_input_array():
        return [torch.randn(4, 96, 128), (torch.arange(96) < 80).expand(4, 96).contiguous()]


class LatentCross(nn.Module):
    """Perceiver's: few learnt queries over many tokens, some of them padding."""

    def __init__(self, dim=128, latents=32, n=4):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(latents, dim) * 0.02)
        self.norm, self.attention = nn.LayerNorm(dim), nn.MultiheadAttention(dim, n, batch_first=True)

    def forward(self, tokens, padding):
        q = self.latents.expand(tokens.shape[0], -1, -1)
        kv = self.norm(tokens)
        y, _ = self.attention(q, kv, kv, key_padding_mask=padding, need_weights=False)
        return q + y

    def example_input_array():
        return [torch.randn(4, 200, 128), (torch.arange(200) >= 180).expand(4, 200).contiguous()]


class TopTwoExperts(nn.Module):
    """Mixtral's mixture, each expert over all tokens."""

    def __init__(self, dim=128, experts=8, hidden=256):
        super().__init__()
        self.gate = nn.Linear(dim, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, dim, hidden) * 0.05)
        self.down = nn.Parameter(torch.randn(experts, hidden, dim) * 0.05)

    def forward(self, x):
        weight = self.gate(x).softmax(-1)
        top, index = weight.topk(2, -1)
        kept = torch.zeros_like(weight).scatter(-1, index, top / top.sum(-1, keepdim=True))
        h = F.silu(torch.einsum("td,edh->eth", x, self.up))
        return torch.einsum("eth,ehd,te->td", h, self.down, kept)

    def example_input_array():
        return [torch.randn(256, 128)]


class QueryKeyNorm(nn.Module):
    """ViT-22B's: norms on queries and keys, a temperature for each head, float16."""

    def __init__(self, dim=256, n=8):
        super().__init__()
        self.n = n
        self.qkv = nn.Linear(dim, 3 * dim, bias=False).half()
        self.q_norm, self.k_norm = nn.LayerNorm(dim // n).half(), nn.LayerNorm(dim // n).half()
        self.temperature = nn.Parameter(torch.ones(n, 1, 1, dtype=torch.float16))

    def forward(self, x):
        q, k, v = (heads(t, self.n) for t in self.qkv(x).chunk(3, -1))
        q = self.q_norm(q) * self.temperature
        return F.scaled_dot_product_attention(q, self.k_norm(k), v).transpose(1, 2).flatten(2)

    def example_input_array():
        return [torch.randn(2, 197, 256, dtype=torch.float16)]


class GatedUnit(nn.Module):
    """SwiGLU in float16."""

    def __init__(self, dim=512, hidden=1024):
        super().__init__()
        self.gate_up = nn.Linear(dim, 2 * hidden, bias=False).half()
        self.down = nn.Linear(hidden, dim, bias=False).half()

    def forward(self, hidden_states):
        gate, up = self.gate_up(hidden_states).chunk(2, -1)
        return self.down(F.silu(gate) * up)

    def example_input_array():
        return [torch.randn(2, 128, 512, dtype=torch.float16)]


class LinearAttention(nn.Module):
    """Positive features in place of a softmax."""

    def __init__(self, dim=128, n=4):
        super().__init__()
        self.n, self.qkv = n, nn.Linear(dim, 3 * dim)

    def forward(self, x, mask):
        q, k, v = (heads(t, self.n) for t in self.qkv(x).chunk(3, -1))
        q, k = F.elu(q) + 1, (F.elu(k) + 1) * mask[:, None, :, None]
        total = torch.einsum("bhnd,bhd->bhn", q, k.sum(2)).clamp_min(1e-6)
        y = torch.einsum("bhnd,bhde->bhne", q, torch.einsum("bhnd,bhne->bhde", k, v))
        return (y / total[..., None]).transpose(1, 2).flatten(2)

    def example_input_array():
        return [torch.randn(4, 256, 128), (torch.arange(256) < 200).expand(4, 256).contiguous()]


class RelativeShift(nn.Module):
    """Transformer-XL's: scores of positions, shifted by a view."""

    def __init__(self, dim=128, n=4):
        super().__init__()
        self.n = n
        self.qkv, self.place = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim, bias=False)
        self.u, self.v = (nn.Parameter(torch.randn(n, 1, dim // n) * 0.1) for _ in range(2))

    def forward(self, x, positions):
        q, k, v = (heads(t, self.n) for t in self.qkv(x).chunk(3, -1))
        by_place = (q + self.v) @ heads(self.place(positions), self.n).mT
        b, n, i, j = by_place.shape
        by_place = F.pad(by_place, (1, 0)).view(b, n, j + 1, i)[:, :, 1:].reshape(b, n, i, j)
        score = ((q + self.u) @ k.mT + by_place) / math.sqrt(q.shape[-1])
        return (score.softmax(-1) @ v).transpose(1, 2).flatten(2)

    def example_input_array():
        return [torch.randn(4, 128, 128), torch.randn(128, 128)]


class CachedStep(nn.Module):
    """One token beside a cache in a dict; the cache with the token in its place comes back."""

    def __init__(self, dim=256, n=8):
        super().__init__()
        self.n, self.qkv = n, nn.Linear(dim, 3 * dim)

    def forward(self, x, past, at):
        q, k, v = (heads(t, self.n) for t in self.qkv(x).chunk(3, -1))
        index = at[:, None, None, None].expand(-1, self.n, 1, q.shape[-1])
        keys, values = past["key"].scatter(2, index, k), past["value"].scatter(2, index, v)
        seen = torch.arange(keys.shape[2], device=x.device) <= at[:, None]
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen[:, None, None])
        return {"hidden": y.transpose(1, 2).flatten(2), "past": {"key": keys, "value": values}}

    def example_input_array():
        cache = {k: torch.randn(4, 8, 256, 32) for k in ("key", "value")}
        return [torch.randn(4, 1, 256), cache, torch.tensor([3, 200, 17, 255])]


class MeanPooled(nn.Module):
    """A sentence encoder's last step: the mean of what is no padding, of length one."""

    def forward(self, last_hidden_state, attention_mask):
        mask = attention_mask.unsqueeze(-1).to(last_hidden_state.dtype)
        total = (last_hidden_state * mask).sum(1)
        return F.normalize(total / mask.sum(1).clamp(min=1e-9), p=2, dim=1)

    def example_input_array():
        return [torch.randn(16, 128, 384), (torch.arange(128) < 100).long().expand(16, 128).contiguous()]


class SoftCapped(nn.Module):
    """Gemma 2's: scores bounded by a tangent, a window, bfloat16."""

    def __init__(self, cap=50.0, window=64):
        super().__init__()
        self.cap, self.window = cap, window

    def forward(self, query, key, value):
        score = self.cap * torch.tanh(query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5 / self.cap)
        n = query.shape[-2]
        near = torch.ones(n, n, dtype=torch.bool, device=query.device).tril()
        near = near & ~near.tril(-self.window)
        weight = score.masked_fill(~near, float("-inf")).softmax(-1, dtype=torch.float32)
        return weight.to(value.dtype) @ value

    def example_input_array():
        return [torch.randn(2, 4, 192, 64, dtype=torch.bfloat16) for _ in range(3)]

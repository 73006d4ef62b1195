"""Models, steps of diffusion, heads, losses of reinforcement learning, recommenders and scenes, whose inputs
are in dicts, tuples and dataclasses, options by name, and None."""

import collections
import dataclasses
import math
import typing

import torch
import transformers
from torch import nn
from torch.nn import functional as F


def _ids(rows=2, cols=24, high=100):
    return torch.randint(3, high, (rows, cols))


class FalconTokens(nn.Module):
    """One key and value for all heads, which lists of one negative number select."""

    def __init__(self):
        super().__init__()
        self.model = transformers.FalconModel(transformers.FalconConfig(
            vocab_size=100, hidden_size=64, num_hidden_layers=1, num_attention_heads=4, multi_query=True,
            parallel_attn=True, bias=False, max_position_embeddings=64))

    def forward(self, input_ids):
        return self.model(input_ids, use_cache=False).last_hidden_state

    def example_input_array():
        return [_ids()]


class BeitClasses(nn.Module):
    """Relative positions that sizes are assigned to."""

    def __init__(self):
        super().__init__()
        self.model = transformers.BeitModel(transformers.BeitConfig(
            hidden_size=64, num_hidden_layers=1, num_attention_heads=4, intermediate_size=128, image_size=32,
            patch_size=8, use_relative_position_bias=True, use_mean_pooling=True, vocab_size=100))

    def forward(self, pixel_values):
        out = self.model(pixel_values)
        return out.pooler_output, out.last_hidden_state

    def example_input_array():
        return [torch.randn(2, 3, 32, 32)]


class OptLogits(nn.Module):
    """A batch in a dict, results in another."""

    def __init__(self):
        super().__init__()
        self.model = transformers.OPTForCausalLM(transformers.OPTConfig(
            vocab_size=100, hidden_size=64, num_hidden_layers=1, ffn_dim=128, num_attention_heads=4,
            max_position_embeddings=64, word_embed_proj_dim=32))

    def forward(self, batch):
        out = self.model(**batch, use_cache=False)
        return {"logits": out.logits, "last": out.logits[:, -1].softmax(-1)}

    def example_input_array():
        m = torch.ones(2, 24, dtype=torch.long)
        m[0, :4] = 0
        return [{"input_ids": _ids(), "attention_mask": m}]


class ShiftedChannels(nn.Module):
    """S2-MLP / AS-MLP: parts rolled in several directions."""

    def __init__(self, c=20):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        p = self.a(x).chunk(5, 1)
        p = [torch.roll(t, s, 2) for t, s in zip(p, range(-2, 3))]
        y = F.gelu(torch.cat(p, 1))
        return self.b(torch.roll(y, 1)) + torch.roll(x, (3, -1), (3, 2)).roll(1, 0)

    def example_input_array():
        return [torch.randn(2, 20, 9, 11)]


class DdimSampler(nn.Module):
    """Four steps of DDIM, whose times are numbers in a tensor."""

    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(4, 4, 3, padding=1)
        self.register_buffer("alphas", torch.cumprod(torch.linspace(0.9999, 0.98, 50), 0))

    def forward(self, x):
        steps = torch.linspace(49, 0, 5).long()
        for i in range(4):
            a, b = self.alphas[steps[i]], self.alphas[steps[i + 1]]
            eps = self.net(x)
            x0 = (x - (1 - a).sqrt() * eps) / a.sqrt()
            x = b.sqrt() * x0 + (1 - b).sqrt() * eps
        return x

    def example_input_array():
        return [torch.randn(2, 4, 8, 8)]


class VelocityLoss(nn.Module):
    """v-prediction with min-SNR weights, a dict of statistics out."""

    def forward(self, pred, x0, noise, snr):
        a = (snr / (1 + snr)).sqrt()[:, None, None, None]
        s = (1 / (1 + snr)).sqrt()[:, None, None, None]
        loss = F.mse_loss(pred, a * noise - s * x0, reduction="none").mean((1, 2, 3))
        w = torch.minimum(snr, torch.full_like(snr, 5.0)) / (snr + 1)
        return {"loss": (w * loss).mean(), "each": loss.detach(), "weights": w}

    def example_input_array():
        return [*(torch.randn(4, 3, 8, 8) for _ in range(3)), torch.rand(4) * 8 + 0.1]


Dit = collections.namedtuple("Dit", "out gates")


class DitBlock(nn.Module):
    """Gates beside the result, in a tuple by name."""

    def __init__(self, d=64, h=4):
        super().__init__()
        self.h = h
        self.n1, self.n2 = (nn.LayerNorm(d, elementwise_affine=False, eps=1e-6) for _ in range(2))
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU("tanh"), nn.Linear(4 * d, d))
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(d, 6 * d))

    def forward(self, x, c, pos=None):
        s1, g1, a1, s2, g2, a2 = self.ada(c)[:, None].chunk(6, -1)
        if pos is not None:
            x = x + pos
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x) * (1 + g1) + s1).view(b, n, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d)
        x = x + a1 * self.proj(y)
        x = x + a2 * self.mlp(self.n2(x) * (1 + g2) + s2)
        return Dit(x, (a1.squeeze(1), a2.squeeze(1)))

    def example_input_array():
        return {"x": torch.randn(2, 16, 64), "c": torch.randn(2, 64), "pos": torch.randn(16, 64)}


class CenterHeat(nn.Module):
    """CenterNet: peaks by max pooling, topk, gathered offsets."""

    def __init__(self, k=10):
        super().__init__()
        self.k = k

    def forward(self, heat, offset, size):
        h = heat.sigmoid()
        h = h * (F.max_pool2d(h, 3, 1, 1) == h)
        b, c, hh, ww = h.shape
        score, at = h.flatten(1).topk(self.k)
        cls, at = at // (hh * ww), at % (hh * ww)
        pick = lambda t: t.flatten(2).gather(2, at[:, None].expand(-1, t.shape[1], -1)).transpose(1, 2)
        xy = torch.stack((at % ww, at // ww), -1) + pick(offset)
        wh = pick(size)
        return torch.cat((xy - wh / 2, xy + wh / 2), -1), score, cls

    def example_input_array():
        return [torch.randn(2, 3, 16, 16), torch.rand(2, 2, 16, 16), torch.rand(2, 2, 16, 16) * 5]


@dataclasses.dataclass
class Molecule:
    z: torch.Tensor
    pos: torch.Tensor
    edges: tuple
    batch: torch.Tensor = None


class SchnetPair(nn.Module):
    """A molecule in a dataclass, whose edges are a tuple."""

    def __init__(self, d=32, g=16):
        super().__init__()
        self.emb = nn.Embedding(20, d)
        self.register_buffer("offset", torch.linspace(0, 5, g))
        self.filter = nn.Sequential(nn.Linear(g, d), nn.Softplus(), nn.Linear(d, d))
        self.out = nn.Linear(d, 1)

    def forward(self, mol: Molecule):
        i, j = mol.edges
        r = (mol.pos[i] - mol.pos[j]).norm(dim=-1)
        w = self.filter(torch.exp(-10 * (r[:, None] - self.offset) ** 2))
        w = w * (0.5 * (torch.cos(r * math.pi / 5) + 1) * (r < 5))[:, None]
        h = self.emb(mol.z)
        y = h + torch.zeros_like(h).index_add(0, i, h[j] * w)
        e = self.out(F.softplus(y) - math.log(2.0))[:, 0]
        return torch.zeros(3, device=e.device).index_add(0, mol.batch, e)

    def example_input_array():
        return [Molecule(torch.randint(1, 20, (18,)), torch.randn(18, 3) * 2,
                         (torch.randint(0, 9, (50,)), torch.randint(9, 18, (50,))), torch.arange(18) // 6)]


class LovaszHinge(nn.Module):
    """A sort, a cumulative Jaccard, differences of it."""

    def forward(self, logits, labels):
        signs = 2.0 * labels.float() - 1
        errors, perm = torch.sort(1 - logits * signs, dim=1, descending=True)
        gt = labels.float().gather(1, perm)
        inter = gt.sum(1, keepdim=True) - gt.cumsum(1)
        union = gt.sum(1, keepdim=True) + (1 - gt).cumsum(1)
        j = 1 - inter / union
        j = torch.cat((j[:, :1], j[:, 1:] - j[:, :-1]), 1)
        return (F.relu(errors) * j).sum(1).mean()

    def example_input_array():
        return [torch.randn(4, 64), torch.rand(4, 64) > 0.5]


class GptqLinear(nn.Module):
    """int4 in int32, groups, act order."""

    def __init__(self, i=64, o=48, g=16):
        super().__init__()
        words = lambda *shape: torch.randint(-2 ** 31, 2 ** 31 - 1, shape, dtype=torch.int32)
        self.register_buffer("qweight", words(i // 8, o))
        self.register_buffer("qzeros", words(i // g, o // 8))
        self.register_buffer("scales", torch.rand(i // g, o) * 0.02 + 0.01)
        self.register_buffer("g_idx", torch.arange(i) // g)
        self.register_buffer("wf", torch.arange(0, 32, 4, dtype=torch.int32))

    def forward(self, x):
        z = (self.qzeros[:, :, None] >> self.wf[None, None]) & 15
        z = z.reshape(self.scales.shape) + 1
        w = ((self.qweight[:, None] >> self.wf[None, :, None]) & 15).reshape(-1, self.scales.shape[1])
        w = self.scales[self.g_idx] * (w - z[self.g_idx])
        return x @ w.to(x.dtype)

    def example_input_array():
        return [torch.randn(4, 64)]


class PpoLoss(nn.Module):
    """A batch in a dict, with a clip of values that may be None."""

    def forward(self, batch, clip=0.2, value_clip=None, entropy=0.01):
        logp = batch["logits"].log_softmax(-1)
        lp = logp.gather(-1, batch["actions"][:, None])[:, 0]
        r = (lp - batch["old"]).exp()
        adv = (batch["adv"] - batch["adv"].mean()) / (batch["adv"].std() + 1e-8)
        pi = -torch.min(r * adv, r.clamp(1 - clip, 1 + clip) * adv).mean()
        v = batch["values"]
        if value_clip is not None:
            v = batch["old_values"] + (v - batch["old_values"]).clamp(-value_clip, value_clip)
        vl = 0.5 * (v - batch["returns"]).square().mean()
        ent = -(logp.exp() * logp).sum(-1).mean()
        clipped = ((r - 1).abs() > clip).float().mean()
        return {"loss": pi + 0.5 * vl - entropy * ent, "pi": pi, "v": vl, "clipped": clipped}

    def example_input_array():
        n = 64
        batch = {k: torch.randn(n) for k in ("adv", "values", "old_values", "returns")}
        batch.update(logits=torch.randn(n, 6), actions=torch.randint(0, 6, (n,)), old=-torch.rand(n) * 2)
        return {"batch": batch, "value_clip": 0.2}


class DpoLoss(nn.Module):
    """Options by name alone."""

    def forward(self, chosen, rejected, ref_chosen, ref_rejected, *, beta=0.1, label_smoothing=0.0):
        d = (chosen - rejected) - (ref_chosen - ref_rejected)
        loss = -F.logsigmoid(beta * d) * (1 - label_smoothing) - F.logsigmoid(-beta * d) * label_smoothing
        return loss.mean(), (beta * (chosen - ref_chosen)).detach(), (d > 0).float().mean()

    def example_input_array():
        r = lambda: -torch.rand(32) * 50
        names = ("chosen", "rejected", "ref_chosen", "ref_rejected")
        return {**{n: r() for n in names}, "label_smoothing": 0.1}


class ReturnDistribution(nn.Module):
    """Distributional Q projection with index_add of probabilities."""

    def __init__(self, n=21):
        super().__init__()
        self.register_buffer("support", torch.linspace(-5, 5, n))
        self.n = n

    def forward(self, probs, rewards, dones):
        dz = 10 / (self.n - 1)
        tz = (rewards[:, None] + 0.99 * (~dones)[:, None] * self.support).clamp(-5, 5)
        b = ((tz + 5) / dz).clamp(0, self.n - 1)
        lo, up = b.floor().long(), b.ceil().long()
        lo = torch.where((up > 0) & (lo == up), lo - 1, lo)
        up = torch.where((lo < self.n - 1) & (lo == up), up + 1, up)
        out = torch.zeros_like(probs)
        out = out.scatter_add(1, lo, probs * (up.float() - b))
        return out.scatter_add(1, up, probs * (b - lo.float()))

    def example_input_array():
        return [torch.rand(16, 21).softmax(-1), torch.randn(16), torch.rand(16) > 0.8]


class StftLoss(nn.Module):
    """Multi-resolution spectra, spectral convergence."""

    def forward(self, a, b):
        total = 0.0
        for n in (64, 128):
            w = torch.hann_window(n, device=a.device)
            sa, sb = (torch.stft(t, n, n // 4, n, w, return_complex=True).abs().clamp(min=1e-7)
                      for t in (a, b))
            total = total + (sb - sa).norm() / sb.norm() + (sb.log() - sa.log()).abs().mean()
        return total / 2

    def example_input_array():
        return [torch.randn(2, 512), torch.randn(2, 512)]


class DlrmDots(nn.Module):
    """Pairs' dots of a list of embeddings, lower triangle by index."""

    def __init__(self, n=4, d=16):
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(50, d, mode="sum") for _ in range(n)])
        self.bottom = nn.Sequential(nn.Linear(8, d), nn.ReLU())
        self.top = nn.Linear(d + n * (n + 1) // 2, 1)
        i, j = torch.tril_indices(n + 1, n + 1, -1)
        self.register_buffer("i", i)
        self.register_buffer("j", j)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        t = torch.stack([x] + [e(s) for e, s in zip(self.tables, sparse)], 1)
        z = torch.bmm(t, t.transpose(1, 2))[:, self.i, self.j]
        return self.top(torch.cat((x, z), 1)).sigmoid()[:, 0]

    def example_input_array():
        return [torch.randn(8, 8), [torch.randint(0, 50, (8, 3)) for _ in range(4)]]


class Gaussians(nn.Module):
    """Splatting's covariances of scales and quaternions."""

    def forward(self, scale, quat):
        q = F.normalize(quat, dim=-1)
        r, x, y, z = q.unbind(-1)
        m = torch.stack((1 - 2 * (y * y + z * z), 2 * (x * y - r * z), 2 * (x * z + r * y),
                         2 * (x * y + r * z), 1 - 2 * (x * x + z * z), 2 * (y * z - r * x),
                         2 * (x * z - r * y), 2 * (y * z + r * x), 1 - 2 * (x * x + y * y)), -1)
        m = m.view(-1, 3, 3)
        m = m * scale.exp()[:, None]
        c = m @ m.transpose(1, 2)
        i, j = torch.triu_indices(3, 3)
        return c[:, i, j]

    def example_input_array():
        return [torch.randn(32, 3) * 0.3, torch.randn(32, 4)]


class RopeTable(nn.Module):
    """Positions by a table that a cache holds, sliced at an offset; None and a tuple of caches."""

    def __init__(self, d=16, n=64):
        super().__init__()
        f = 1.0 / 10000 ** (torch.arange(0, d, 2).float() / d)
        a = torch.outer(torch.arange(n).float(), f)
        self.register_buffer("cos", a.cos(), persistent=False)
        self.register_buffer("sin", a.sin(), persistent=False)

    def forward(self, q, k, v, past: typing.Optional[typing.Tuple] = None, offset=0):
        n = q.shape[2]
        c, s = self.cos[offset:offset + n], self.sin[offset:offset + n]

        def turn(t):
            even, odd = t[..., ::2], t[..., 1::2]
            return torch.stack((even * c - odd * s, even * s + odd * c), -1).flatten(-2)

        q, k = turn(q), turn(k)
        if past is not None:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        m = torch.ones(n, k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - n)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=m), (k, v)

    def example_input_array():
        t = lambda n=6: torch.randn(2, 2, n, 16)
        return {"q": t(), "k": t(), "v": t(), "past": (t(4), t(4)), "offset": 4}

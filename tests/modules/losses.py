"""Losses."""

import torch
import torch.nn.functional as F
from torch import nn


class Contrastive(nn.Module):
    """SimCLR's, with a mask on the diagonal."""

    def forward(self, a, b):
        z = F.normalize(torch.cat((a, b)), dim=1)
        score = (z @ z.T) / 0.5
        score = score.masked_fill(torch.eye(z.shape[0], dtype=torch.bool, device=z.device), float("-inf"))
        return F.cross_entropy(score, (torch.arange(z.shape[0], device=z.device) + a.shape[0]) % z.shape[0])

    def example_input_array():
        return [torch.randn(128, 64), torch.randn(128, 64)]


class AngularMargin(nn.Module):
    """ArcFace's: an angle grows by a margin, of the right class alone."""

    def __init__(self, dim=128, classes=100):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, dim) * 0.1)

    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight)).clamp(-1 + 1e-6, 1 - 1e-6)
        one = F.one_hot(label, self.weight.shape[0]).to(x.dtype)
        return F.cross_entropy(64 * torch.where(one > 0, torch.cos(torch.acos(cosine) + 0.5), cosine), label)

    def example_input_array():
        return [torch.randn(64, 128), torch.randint(0, 100, (64,))]


class FocalTversky(nn.Module):
    def forward(self, logits, mask):
        p = logits.sigmoid().flatten(1)
        t = mask.flatten(1).float()
        hit, wrong, missed = (p * t).sum(1), (p * (1 - t)).sum(1), ((1 - p) * t).sum(1)
        index = (hit + 1) / (hit + 0.3 * wrong + 0.7 * missed + 1)
        return ((1 - index) ** 0.75).mean()

    def example_input_array():
        return [torch.randn(8, 1, 64, 64), torch.rand(8, 1, 64, 64) > 0.5]


class MaskedHuber(nn.Module):
    """Of dicts, where a mask is set."""

    def forward(self, prediction, batch):
        loss = F.huber_loss(prediction, batch["target"], reduction="none", delta=0.5)
        mask = batch["mask"]
        return (loss * mask).sum() / mask.sum().clamp(min=1)

    def example_input_array():
        return [torch.randn(64, 256), {"target": torch.randn(64, 256), "mask": torch.rand(64, 256) > 0.3}]


class Distilled(nn.Module):
    """A student beside its teacher and the labels. Some labels are ignored."""

    def forward(self, student, teacher, label):
        t = 2.0
        soft = F.kl_div(F.log_softmax(student / t, -1), F.softmax(teacher / t, -1), reduction="batchmean")
        hard = F.cross_entropy(student, label, ignore_index=-100, label_smoothing=0.1)
        return 0.7 * t * t * soft + 0.3 * hard

    def example_input_array():
        label = torch.randint(0, 200, (64,))
        label[::7] = -100
        return [torch.randn(64, 200), torch.randn(64, 200), label]


class NegativeBinomial(nn.Module):
    """Of counts, with logarithms of gamma: means and dispersions are positive."""

    def forward(self, count, mean, dispersion):
        total = dispersion + mean
        y = torch.lgamma(count + dispersion) - torch.lgamma(dispersion) - torch.lgamma(count + 1)
        y = y + dispersion * (dispersion / total).log() + count * (mean / total).log()
        return -y.mean(-1)

    def example_input_array():
        return [torch.randint(0, 20, (64, 128)).float(), torch.rand(64, 128) * 5 + 0.1,
                torch.rand(64, 128) + 0.5]


class RankedScore(nn.Module):
    """The continuous ranked probability score of normal forecasts."""

    def forward(self, mean, deviation, value):
        z = (value - mean) / deviation
        density = torch.exp(-0.5 * z * z) * 0.3989422804014327
        return (deviation * (z * torch.erf(z * 0.7071067811865476) + 2 * density - 0.5641895835477563)).mean()

    def example_input_array():
        return [torch.randn(4096), torch.rand(4096) + 0.1, torch.randn(4096)]


class Sinkhorn(nn.Module):
    """Ten rounds of optimal transport between two clouds."""

    def forward(self, x, y):
        cost = torch.cdist(x, y) ** 2
        u, v = torch.zeros_like(cost[..., 0]), torch.zeros_like(cost[..., 0, :])
        for _ in range(10):
            u = -torch.logsumexp(v[..., None, :] - cost, -1)
            v = -torch.logsumexp(u[..., :, None] - cost, -2)
        return (torch.exp(u[..., :, None] + v[..., None, :] - cost) * cost).sum((-2, -1))

    def example_input_array():
        return [torch.randn(4, 48, 3), torch.randn(4, 48, 3)]


class Triplet(nn.Module):
    """The hardest positive and negative of each row of a batch."""

    def forward(self, x, label):
        far = torch.cdist(x, x)
        same = label[:, None] == label[None, :]
        positive = far.masked_fill(~same, 0).amax(1)
        negative = far.masked_fill(same, float("inf")).amin(1)
        return F.relu(positive - negative + 0.3).mean()

    def example_input_array():
        return [torch.randn(64, 128), torch.arange(64) % 8]


class DistributionFocal(nn.Module):
    """Generalised focal loss: quality and distribution parts."""

    def forward(self, logits, quality, label, dist, target):
        p = logits.sigmoid()
        onehot = F.one_hot(label, logits.shape[1] + 1)[:, :-1].to(logits.dtype) * quality[:, None]
        qfl = (F.binary_cross_entropy_with_logits(logits, onehot, reduction="none") *
               (p - onehot).abs().pow(2)).sum(1).mean()
        low = target.long()
        wl = (low + 1).float() - target
        dfl = F.cross_entropy(dist, low, reduction="none") * wl
        dfl = dfl + F.cross_entropy(dist, low + 1, reduction="none") * (1 - wl)
        return qfl + 0.25 * dfl.mean()

    def example_input_array():
        return [torch.randn(12, 5), torch.rand(12), torch.randint(0, 6, (12,)),
                torch.randn(12, 9), torch.rand(12) * 7]

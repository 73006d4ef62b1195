"""Layers and losses of torch.nn as they are used in models."""

import torch
import torch.nn.functional as F
from torch import nn


class EncoderLayer(nn.Module):
    """nn.TransformerEncoderLayer with a padding mask, norm first."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=True,
                                                activation="gelu")

    def forward(self, src, padding):
        return self.layer(src, src_key_padding_mask=padding)

    def example_input_array():
        return [torch.randn(2, 16, 64), torch.arange(16).expand(2, 16) > torch.tensor([[15], [10]])]


class DecoderStack(nn.Module):
    """nn.TransformerDecoder of two layers with a causal mask, sequence first."""

    def __init__(self):
        super().__init__()
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(64, 4, 128), 2, nn.LayerNorm(64))

    def forward(self, tgt, memory):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[0], device=tgt.device)
        return self.decoder(tgt, memory, tgt_mask=mask)

    def example_input_array():
        return [torch.randn(12, 2, 64), torch.randn(20, 2, 64)]


class WeightsToo(nn.Module):
    """nn.MultiheadAttention that gives its weights, too."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(64, 4, kdim=32, vdim=48, batch_first=True)

    def forward(self, query, key, value):
        return self.attention(query, key, value, average_attn_weights=True)

    def example_input_array():
        return [torch.randn(2, 10, 64), torch.randn(2, 18, 32), torch.randn(2, 18, 48)]


class CellLoop(nn.Module):
    """nn.LSTMCell over eight steps with a projection of each."""

    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(16, 32), nn.Linear(32, 8)

    def forward(self, x, state):
        h, c = state
        every = []
        for step in x.unbind(1):
            h, c = self.cell(step, (h, c))
            every.append(self.out(h))
        return torch.stack(every, 1), (h, c)

    def example_input_array():
        return [torch.randn(4, 8, 16), (torch.randn(4, 32), torch.randn(4, 32))]


class BothWays(nn.Module):
    """A GRU in both directions, and the mean of its steps."""

    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(16, 24, batch_first=True, bidirectional=True), nn.Linear(48, 10)

    def forward(self, x):
        return self.out(self.gru(x)[0].mean(1))

    def example_input_array():
        return [torch.randn(4, 12, 16)]


class SmoothedLabels(nn.Module):
    """Cross entropy with an ignored class, weights and smoothing, over pixels."""

    def __init__(self):
        super().__init__()
        self.loss = nn.CrossEntropyLoss(weight=torch.rand(6) + 0.5, ignore_index=255, label_smoothing=0.1)

    def forward(self, logits, target):
        return self.loss(logits, target)

    def example_input_array():
        target = torch.randint(0, 6, (2, 12, 12))
        target[:, :3] = 255
        return [torch.randn(2, 6, 12, 12), target]


class Margins(nn.Module):
    """A sum of losses: triplet, cosine, Poisson and Gaussian."""

    def forward(self, a, b, c, rate):
        return (F.triplet_margin_loss(a, b, c, margin=0.5, swap=True)
                + F.cosine_embedding_loss(a, b, torch.ones(a.shape[0], device=a.device), margin=0.1)
                + F.poisson_nll_loss(a, rate) + F.gaussian_nll_loss(a, b, rate))

    def example_input_array():
        return [torch.randn(16, 32), torch.randn(16, 32), torch.randn(16, 32), torch.rand(16, 32) + 0.1]


class Calibrated(nn.Module):
    """Binary cross entropy with weights of positives, and a divergence of logarithms."""

    def __init__(self):
        super().__init__()
        self.register_buffer("positive", torch.rand(10) * 4 + 1)

    def forward(self, logits, labels, teacher):
        own = F.binary_cross_entropy_with_logits(logits, labels, pos_weight=self.positive)
        return own, F.kl_div(logits.log_softmax(-1), teacher.log_softmax(-1), reduction="batchmean",
                             log_target=True)

    def example_input_array():
        return [torch.randn(32, 10), (torch.rand(32, 10) > 0.7).float(), torch.randn(32, 10)]


class NormedWeights(nn.Module):
    """Weight norm on a convolution and spectral norm on a linear layer, as parametrizations."""

    def __init__(self):
        super().__init__()
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 16, 5, padding=2))
        self.out = nn.utils.parametrizations.spectral_norm(nn.Linear(16, 4))

    def forward(self, x):
        return self.out(F.leaky_relu(self.conv(x), 0.1).mean(-1))

    def example_input_array():
        return [torch.randn(4, 8, 40)]


class Bilinears(nn.Module):
    """nn.Bilinear of two features, with a gate."""

    def __init__(self):
        super().__init__()
        self.both, self.gate = nn.Bilinear(16, 24, 8), nn.Linear(16, 16)

    def forward(self, a, b):
        return self.both(F.glu(torch.cat((a, self.gate(a)), -1)), b)

    def example_input_array():
        return [torch.randn(32, 16), torch.randn(32, 24)]


class WeightedBags(nn.Module):
    """Bags of words with weights of their own, from a padded table."""

    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(50, 16, mode="sum", padding_idx=0)
        self.out = nn.Linear(16, 4)

    def forward(self, words, weights):
        return self.out(self.bag(words, per_sample_weights=weights))

    def example_input_array():
        return [torch.randint(0, 50, (8, 6)), torch.rand(8, 6)]


class FakeQuantised(nn.Module):
    """A linear layer with rounded weights and activations, as in quantisation-aware training."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 32)
        self.register_buffer("scale", self.linear.weight.detach().abs().amax(1) / 127)
        self.register_buffer("zero", torch.zeros(32, dtype=torch.int32))

    def forward(self, x):
        w = torch.fake_quantize_per_channel_affine(self.linear.weight, self.scale, self.zero, 0, -128, 127)
        x = torch.fake_quantize_per_tensor_affine(x, 0.05, 3, 0, 255)
        return F.linear(x, w, self.linear.bias)

    def example_input_array():
        return [torch.randn(16, 64)]

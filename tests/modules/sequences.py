"""State spaces, scans and filters."""

import torch
import torch.nn.functional as F
from torch import nn


class DiagonalState(nn.Module):
    """S4D: a kernel of complex powers, applied by transforms."""

    def __init__(self, dim=16, states=8):
        super().__init__()
        self.log_step = nn.Parameter(torch.rand(dim) * 2 - 5)
        self.c = nn.Parameter(torch.randn(dim, states, 2) * 0.5)
        self.log_real = nn.Parameter(torch.log(0.5 * torch.ones(dim, states)))
        self.imaginary = nn.Parameter(3.14159 * torch.arange(states).float().repeat(dim, 1))
        self.d = nn.Parameter(torch.randn(dim))

    def forward(self, u):
        n = u.shape[-1]
        step, c = self.log_step.exp(), torch.view_as_complex(self.c)
        a = -self.log_real.exp() + 1j * self.imaginary
        power = (a * step[:, None])[..., None] * torch.arange(n, device=u.device)
        c = c * (torch.exp(a * step[:, None]) - 1) / a
        kernel = 2 * torch.einsum("hn,hnl->hl", c, torch.exp(power)).real
        y = torch.fft.irfft(torch.fft.rfft(u, n=2 * n) * torch.fft.rfft(kernel, n=2 * n), n=2 * n)[..., :n]
        return F.gelu(y + u * self.d[:, None])

    def example_input_array():
        return [torch.randn(4, 16, 256)]


class SelectiveScan(nn.Module):
    """Mamba's recurrence of sixteen steps."""

    def __init__(self, dim=64, states=8):
        super().__init__()
        self.states, self.project = states, nn.Linear(dim, 2 * states + dim)
        self.a_log = nn.Parameter(torch.log(torch.arange(1, states + 1).float()).repeat(dim, 1))
        self.d = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        b, c, step = self.project(x).split((self.states, self.states, x.shape[-1]), -1)
        step, a = F.softplus(step), -self.a_log.exp()
        decay = torch.exp(step[..., None] * a)
        add = step[..., None] * b[:, :, None] * x[..., None]
        h, out = torch.zeros_like(add[:, 0]), []
        for t in range(16):
            h = decay[:, t] * h + add[:, t]
            out.append((h * c[:, t, None]).sum(-1))
        return torch.stack(out, 1) + x * self.d

    def example_input_array():
        return [torch.randn(8, 16, 64)]


class Retention(nn.Module):
    """RetNet's: scores that decay with the distance, normalised by head."""

    def __init__(self, dim=128, n=4):
        super().__init__()
        self.n, self.qkvg, self.norm = n, nn.Linear(dim, 4 * dim), nn.GroupNorm(n, dim)
        self.register_buffer("decay", torch.log(1 - 2 ** (-5 - torch.arange(n).float())))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v, g = self.qkvg(x).chunk(4, -1)
        q, k, v = (y.view(b, t, self.n, -1).transpose(1, 2) for y in (q, k, v))
        far = torch.arange(t, device=x.device)
        far = (far[:, None] - far[None, :]).float()
        mask = torch.where(far >= 0, torch.exp(far * self.decay[:, None, None]), 0.0)
        y = ((q @ k.mT) * (c // self.n) ** -0.5 * mask) @ v
        return F.silu(g) * self.norm(y.transpose(1, 2).reshape(b * t, c)).view(b, t, c)

    def example_input_array():
        return [torch.randn(4, 128, 128)]


class ShiftedMix(nn.Module):
    """RWKV's channel mix: each token beside the one before it."""

    def __init__(self, dim=256):
        super().__init__()
        self.mix_k, self.mix_r = nn.Parameter(torch.rand(dim)), nn.Parameter(torch.rand(dim))
        self.key, self.value = nn.Linear(dim, 2 * dim, bias=False), nn.Linear(2 * dim, dim, bias=False)
        self.receptance = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        before = F.pad(x, (0, 0, 1, -1))
        k, r = before + (x - before) * self.mix_k, before + (x - before) * self.mix_r
        return torch.sigmoid(self.receptance(r)) * self.value(torch.relu(self.key(k)) ** 2)

    def example_input_array():
        return [torch.randn(4, 128, 256)]


class LongFilter(nn.Module):
    """Hyena's: a filter as long as the sequence, between two gates."""

    def __init__(self, dim=32, n=256):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(dim, n) * torch.exp(-torch.arange(n) / 40) * 0.1)
        self.short = nn.Conv1d(3 * dim, 3 * dim, 3, padding=2, groups=3 * dim)

    def forward(self, x):
        n = x.shape[-1]
        a, b, v = self.short(x)[..., :n].chunk(3, 1)
        v = v * b
        spectrum = torch.fft.rfft(self.filter, n=2 * n) / (2 * n)
        y = torch.fft.irfft(torch.fft.rfft(v, n=2 * n) * spectrum, n=2 * n, norm="forward")[..., :n]
        return y * a

    def example_input_array():
        return [torch.randn(4, 96, 256)]


class DecayedSum(nn.Module):
    """A gated recurrence as sums of logarithms: gates are between zero and one."""

    def forward(self, value, gate):
        log = gate.log().cumsum(1)
        return torch.exp(log) * torch.cumsum(value * torch.exp(-log), 1)

    def example_input_array():
        return [torch.randn(8, 32, 64), torch.rand(8, 32, 64) * 0.2 + 0.8]


class MelEnergies(nn.Module):
    """Frames by unfold, a transform by a product, a filter bank and a logarithm."""

    def __init__(self, size=256, hop=128, mels=40):
        super().__init__()
        self.size, self.hop = size, hop
        at = torch.arange(size).float()
        angle = 2 * torch.pi * torch.arange(size // 2 + 1)[:, None] * at / size
        self.register_buffer("window", 0.5 - 0.5 * torch.cos(2 * torch.pi * at / size))
        self.register_buffer("basis", torch.stack((angle.cos(), -angle.sin())))
        self.register_buffer("bank", torch.rand(mels, size // 2 + 1) * 0.1)

    def forward(self, wave):
        frames = wave.unfold(-1, self.size, self.hop) * self.window
        real, imaginary = frames @ self.basis[0].T, frames @ self.basis[1].T
        return ((real ** 2 + imaginary ** 2) @ self.bank.T).clamp(min=1e-10).log10()

    def example_input_array():
        return [torch.randn(4, 4096)]


class Spectrogram(nn.Module):
    """torch.stft, which is refused by name."""

    def forward(self, wave):
        s = torch.stft(wave, 256, 128, window=torch.hann_window(256, device=wave.device), return_complex=True)
        return s.abs()

    def example_input_array():
        return [torch.randn(4, 4096)]


class HermitianFilter(nn.Module):
    """torch.fft.hfft, which is refused by name."""

    def forward(self, x):
        return torch.fft.hfft(torch.fft.rfft(x), n=x.shape[-1]) * 0.5

    def example_input_array():
        return [torch.randn(4, 128)]


class ComplexGains(nn.Module):
    """A complex parameter, which is refused by name."""

    def __init__(self, n=65):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(n, dtype=torch.complex64))

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x) * self.gain)

    def example_input_array():
        return [torch.randn(8, 128)]

"""Argument sets of Fourier transforms along the last dimension, of complex numbers as pairs."""
import export_complex  # noqa: F401  defines the operators (tools/export_complex.py)
from ops_draw import either

ROWS = [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 17, 25, 30, 36, 49, 64, 97, 100, 127, 210, 256, 360, 509, 1000,
        1024, 1155, 2048, 2401, 4096]


def rows(r, last):
    return [r.choice([1, 2, 3]) for _ in range(r.randrange(3))] + last


def real(r):
    n = r.choice(ROWS)
    return [either(r, rows(r, [n])), r.randrange(3), r.random() < 0.6], {}, 16 * n


def complex_(r):
    n = r.choice(ROWS)
    return [either(r, rows(r, [n, 2])), r.randrange(3), r.random() < 0.5], {}, 16 * n


def to_real(r):
    n = r.choice(ROWS)
    return [either(r, rows(r, [n // 2 + 1, 2])), r.randrange(3), n], {}, 16 * n


EXACT = {"_fft_r2c.pairs": real, "_fft_c2c.pairs": complex_, "_fft_c2r.pairs": to_real}
TRANSCENDENTAL = {}

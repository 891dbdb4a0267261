"""Complex numbers beside the stock torch.compile and eager: rotations, spectra, long convolutions, Fourier layers and state spaces.

    PYTHONPATH=build/release/python:tests python tests/bench/complex_numbers.py [--device cuda] [--programs rotary …] [--json results.json]

Measured as fields.py: a process each, empty caches, compared with eager. Ratios are stock / Fusebox: above 1, Fusebox is faster.
"""

import os
import sys

import torch
import torch.nn as nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measured_program import main
from measured_step import registry

PROGRAMS, program = registry()


class Of(nn.Module):
    """A function as a module, with what it learns."""

    def __init__(self, function, **learned):
        super().__init__()
        self.function = function
        for name, value in learned.items():
            self.register_parameter(name, nn.Parameter(value))

    def forward(self, *args):
        return self.function(*args, *self.parameters())


def numbers(*sizes):
    return torch.randn(*sizes, dtype=torch.cfloat)


def pointwise(name, function):
    def build(pick):
        rows, columns = pick(4096, 128), pick(2048, 96)
        return Of(function), numbers(rows, columns), numbers(rows, columns)
    build.__name__ = name
    program()(build)


pointwise("product", lambda a, b: a * b)
pointwise("product_and_sum", lambda a, b: (a * b + a) * 0.5)
pointwise("quotient", lambda a, b: a / b)
pointwise("sizes_and_angles", lambda a, b: (a.abs(), b.angle()))
pointwise("from_sizes_and_angles", lambda a, b: torch.polar(a.real * 1, b.imag * 1))
pointwise("exponential", lambda a, b: (a * 0.1).exp())
pointwise("product_with_a_conjugate", lambda a, b: (a.conj() * b).real)
pointwise("sum_of_products", lambda a, b: (a * b).sum(-1))
pointwise("joined", lambda a, b: torch.cat([a[:, :17], b[:, 17:]], 1))
pointwise("rolled", lambda a, b: a.roll(5, 1))


def rotated(x, turns):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(3).type_as(x)


def rotation(pick, dtype):
    batch, length, heads, width = pick(4, 2), pick(4096, 33), pick(32, 3), pick(128, 16)
    return Of(rotated), torch.randn(batch, length, heads, width).to(dtype), torch.polar(torch.ones(length, 1, width // 2), torch.randn(length, 1, width // 2))


@program()
def rotary(pick):
    return rotation(pick, torch.float32)


@program()
def rotary_in_bfloat16(pick):
    return rotation(pick, torch.bfloat16)


@program(train=True)
def spectra_train(pick):
    """Half the size, the same angle."""
    def halved(x, window):
        spectrum = torch.stft(x, 64, 16, window=window, return_complex=True)
        return torch.istft(torch.polar(spectrum.abs() * 0.5, spectrum.angle()), 64, 16, window=window)
    return Of(halved), torch.randn(pick(32, 2), pick(64000, 999), requires_grad=True), torch.hann_window(64)


@program(train=True)
def long_filter_train(pick):
    def filtered(x, taps):
        n = x.shape[-1]
        return torch.fft.irfft(torch.fft.rfft(x, n=2 * n) * torch.fft.rfft(taps, n=2 * n), n=2 * n)[..., :n]
    channels, length = pick(256, 5), pick(4096, 127)
    return Of(filtered, taps=torch.randn(channels, length)), torch.randn(pick(16, 2), channels, length)


@program(train=True)
def fourier_layer_train(pick):
    modes, channels = pick(64, 5), pick(64, 3)

    def layer(x, weight):
        spectrum = torch.fft.rfft(x)
        out = torch.zeros_like(spectrum)
        out[:, :, :modes] = torch.einsum("bix,iox->box", spectrum[:, :, :modes], torch.view_as_complex(weight))
        return torch.fft.irfft(out, n=x.shape[-1])
    return Of(layer, weight=torch.randn(channels, channels, modes, 2) / channels), torch.randn(pick(64, 2), channels, pick(2048, 62))


@program(train=True)
def state_space_train(pick):
    """The kernel of diagonal states (S4D)."""
    states, length = (pick(128, 3), pick(32, 4)), pick(2048, 65)

    def kernel(x, decay, turn, weight):
        rate = -torch.exp(decay) + 1j * turn
        powers = torch.exp(rate[..., None] * torch.arange(length, device=x.device))
        return x * 2 * torch.einsum("hn,hnl->hl", torch.view_as_complex(weight), powers).real
    return Of(kernel, decay=torch.randn(states), turn=torch.randn(states), weight=torch.randn(*states, 2)), torch.randn(states[0], length)


if __name__ == "__main__":
    main(__file__, PROGRAMS, __doc__)

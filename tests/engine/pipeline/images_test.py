"""Images on the CPU: what is computed in loops rather than by eager's kernels, because those are slower; as near float64 as eager is."""

import unittest

import torch
import torch.nn.functional as F

import fusebox

IMAGES = (2, 3, 40, 53)


class Loops(unittest.TestCase):
    def check(self, f, x, calls=0):
        fusebox.reset()
        before = fusebox.counters()["extern_calls"]
        ours, theirs, exact = (x.clone().to(dtype).requires_grad_() for dtype in (x.dtype, x.dtype, torch.float64))
        got, want, truth = fusebox.compile(f)(ours), f(theirs), f(exact)
        self.assertEqual((got.shape, got.stride(), got.dtype), (want.shape, want.stride(), want.dtype))
        self.assertEqual(fusebox.counters()["extern_calls"] - before, calls)
        pairs = [(got, want, truth)]
        g = torch.randn_like(truth)
        pairs.append([torch.autograd.grad(y, x, g.to(y.dtype))[0] for y, x in ((got, ours), (want, theirs), (truth, exact))])
        for a, b, t in pairs:
            self.assertLessEqual((a - t).square().mean().sqrt().item(), 1.5 * (b - t).square().mean().sqrt().item() + 1e-9 * t.abs().max().item())

    def test_resampled(self):
        for mode in "bilinear", "bicubic":
            for size in (64, 64), (17, 90), (40, 106):
                for aligned in False, True:
                    with self.subTest(mode=mode, size=size, aligned=aligned):
                        torch.manual_seed(0)
                        self.check(lambda x: F.interpolate(x * 2, size=size, mode=mode, align_corners=aligned).sin(), torch.randn(IMAGES))

    def test_resampled_channels_last(self):
        """Eager's kernel for these takes channels together."""
        torch.manual_seed(0)
        x = torch.randn(2, 32, 14, 14).contiguous(memory_format=torch.channels_last)
        self.check(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), x, calls=1)

    def test_large_windows_of_few_channels(self):
        for channels, window in (3, 7), (2, 11), (8, 5):
            with self.subTest(channels=channels, window=window):
                torch.manual_seed(0)
                w = torch.randn(1, 1, window, window).expand(channels, 1, window, window)
                self.check(lambda x: F.conv2d(x, w.to(x.dtype), padding=2, groups=channels) * 2, torch.randn(2, channels, 30, 41))


if __name__ == "__main__":
    unittest.main()

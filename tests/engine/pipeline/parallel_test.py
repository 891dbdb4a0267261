"""Kernels that several threads carry out: large enough for that, small enough to be carried out beside each other."""
import unittest

import torch
import torch.nn.functional as F

import fusebox

N = 100_003


def scaled_and(fn):
    def program(x):
        y = x * 2
        return y, fn(y)
    return program


PROGRAMS = {
    "flipped": scaled_and(lambda y: y.flip(0)),
    "rolled": scaled_and(lambda y: y.roll(1)),
    "first replaced": scaled_and(lambda y: torch.select_scatter(y, y[0] * 2, 0, 0)),
    "of the last": scaled_and(lambda y: y + y[-1]),
    "joined": scaled_and(lambda y: torch.cat([(y > 0).float(), y.double()])),
    "padded": scaled_and(lambda y: F.pad(y, (3, 2), value=1.0)),
    "gathered": scaled_and(lambda y: y[torch.arange(N - 1, -1, -1)]),
    "a chain": lambda x: (y := x * 2, z := y.flip(0) + 1, z.roll(5) - 1, x + 3),
}


class Parallel(unittest.TestCase):
    def setUp(self):
        self.addCleanup(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(4)

    def test_what_reads_a_result_waits_for_it(self):
        for name, program in PROGRAMS.items():
            with self.subTest(name):
                compiled = fusebox.compile(program, fullgraph=True)
                for _ in range(20):
                    x = torch.randn(N)
                    torch.testing.assert_close(compiled(x), program(x))


if __name__ == "__main__":
    unittest.main()

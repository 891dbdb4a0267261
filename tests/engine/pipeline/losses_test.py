"""Cross-entropy and what it is made of, compiled: values and gradients as eager's, with the least traffic."""

import os
import re
import sqlite3
import tempfile
import unittest

import torch
import torch.nn.functional as F

import fusebox

ROWS, CLASSES = 24, 300


def kernels_of(run):
    """(name, loop IR) of the kernels that `run` compiles."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.fusebox")
        with fusebox.record(path):
            run()
        with sqlite3.connect(path) as db:
            return db.execute("SELECT name, loop_ir FROM kernels WHERE kind = 'generated' ORDER BY kernel_id").fetchall()


def reductions(kernels):
    return [name for name, text in kernels if re.search(r"section \d+ reduce", text)]


class OneHotSums(unittest.TestCase):
    def setUp(self):
        fusebox.reset()
        torch.manual_seed(0)
        self.classes = torch.randint(0, CLASSES, (ROWS,))
        self.classes[:4] = torch.tensor([-100, CLASSES, 0, CLASSES - 1])
        self.rows = torch.randn(ROWS, 1)
        self.rows[5:9, 0] = torch.tensor([float("nan"), float("inf"), -0.0, 0.0])

    def check(self, f, *args, exact=True):
        want, got = f(*args), []
        kernels = kernels_of(lambda: got.append(fusebox.compile(f)(*args)))
        self.assertEqual(reductions(kernels), [], f.__name__)
        self.assertEqual(got[0].dtype, want.dtype)
        torch.testing.assert_close(got[0], want, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-5, equal_nan=True)
        if exact and want.is_floating_point():
            self.assertTrue(torch.equal(got[0].signbit(), want.signbit()) or want.isnan().any())

    def test_selected_value(self):
        for dtype in torch.float32, torch.float64, torch.bfloat16:
            def selected(classes, rows):
                return torch.where(torch.arange(CLASSES) == classes[:, None], rows, 0).sum(1)
            self.check(selected, self.classes, self.rows.to(dtype))

    def test_shifted_positions(self):
        def selected(classes, rows):
            return torch.where(7 - (torch.arange(2, CLASSES) - 3) == classes[:, None], rows, 0).sum(1)
        self.check(selected, 7 - self.classes, self.rows)

    def test_narrow_integers(self):
        def counted(classes):
            return (torch.arange(CLASSES, dtype=torch.int32) == classes[:, None].int()).sum(1)
        self.check(counted, self.classes)

    def test_mean_under_a_mask(self):
        def share(classes, rows):
            return ((torch.arange(CLASSES) == classes[:, None]) & (rows > 0)).float().mean(1)
        self.check(share, self.classes, self.rows)

    def test_value_elsewhere(self):
        def smoothed(classes, rows):
            return torch.where(torch.arange(CLASSES) != classes[:, None], rows * 0.001, rows).sum(1)
        self.check(smoothed, self.classes, self.rows, exact=False)

    def test_element_at_the_position(self):
        table = torch.randn(ROWS, CLASSES)
        table[9] = float("nan")
        table[9, self.classes[9]] = 2.5

        def picked(classes, table):
            return torch.where(torch.arange(CLASSES) == classes[:, None], table, 0).sum(1)
        self.check(picked, self.classes, table)

    def test_infinite_factor(self):
        factor = torch.full((ROWS, 1), float("inf"))

        def scaled(classes, rows, factor):
            return (torch.where(torch.arange(CLASSES) == classes[:, None], rows, 0) * factor).sum(1)
        self.check(scaled, self.classes, self.rows, factor)


if __name__ == "__main__":
    unittest.main()

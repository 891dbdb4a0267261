"""What forward hands to backward: where values can be computed again of less, that is kept."""

import json
import os
import sqlite3
import tempfile
import unittest

import torch
import torch.nn.functional as F

import fusebox


def kept(f, *inputs):
    """Sizes of the values that are kept beside the inputs, once the gradients are seen to be eager's."""
    want = torch.autograd.grad(f(*inputs).sum(), inputs)
    fusebox.reset()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.fusebox")
        with fusebox.record(path):
            got = torch.autograd.grad(fusebox.compile(f)(*inputs).sum(), inputs)
        with sqlite3.connect(path) as db:
            text, = db.execute("SELECT s.text FROM t_saved_graph s JOIN t_graph g ON g.id = s.graph_id WHERE g.direction = 'backward'").fetchone()
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b)
    nodes = json.loads(text)["nodes"]
    saved = [tuple(n["out"][0]["sizes"]) for n in nodes if str(n.get("name", "")).startswith("saved_")]
    for x in inputs:
        if tuple(x.shape) in saved:
            saved.remove(tuple(x.shape))
    return saved


class Kept(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(8, 16, requires_grad=True)

    def test_what_is_padded_rather_than_the_padded(self):
        self.assertEqual(kept(lambda x: F.pad(x.sin(), (100, 100)).square(), self.x), [(8, 16)])

    def test_what_is_repeated_rather_than_the_repeated(self):
        self.assertEqual(kept(lambda x: (x.sin().repeat(9, 1) ** 2), self.x), [(8, 16)])

    def test_pixels_rather_than_the_enlarged(self):
        self.assertEqual(kept(lambda x: F.interpolate(x[None, None].sin(), scale_factor=4)[0, 0] ** 2, self.x), [(1, 1, 8, 16)])

    def test_what_a_product_reads_is_kept_once(self):
        weight = torch.randn(32, 5, requires_grad=True)
        self.assertEqual(kept(lambda x, weight: torch.cat([x, x.sin()], 1) @ weight, self.x, weight), [(8, 32)])

    def test_softmax_that_a_product_reads_is_kept(self):
        weight = torch.randn(12, 5, requires_grad=True)
        self.assertEqual(kept(lambda x, weight: x[:, :12].softmax(-1) @ weight, self.x, weight), [(8, 12)])


if __name__ == "__main__":
    unittest.main()

"""Masks of attention that hide nothing whatever the data are: they are none. All others stay."""

import json
import os
import sqlite3
import tempfile
import unittest

import torch
import torch.nn.functional as F

import fusebox

LENGTH, KEYS = 5, 7


def positions(n):
    return torch.arange(n)


IDLE = {
    "positions of queries": lambda x: (positions(LENGTH)[None, None, :, None] >= 0).expand(2, -1, LENGTH, KEYS),
    "positions of both": lambda x: (positions(LENGTH)[:, None] + 3 >= 0) & (positions(KEYS)[None, :] > -1),
    "ones": lambda x: torch.ones(1, 1, 1, 1, dtype=torch.bool).expand(2, 3, LENGTH, KEYS),
    "full": lambda x: torch.full((LENGTH, KEYS), True),
    "either": lambda x: (x.sum() > 0) | torch.ones(LENGTH, KEYS, dtype=torch.bool),
}
HIDING = {
    "one position": lambda x: (positions(LENGTH)[:, None] - 1 >= 0) & (positions(KEYS)[None, :] >= 0),
    "causal": lambda x: positions(LENGTH)[:, None] >= positions(KEYS)[None, :],
    "data": lambda x: (x.sum() > -1e9) & torch.ones(LENGTH, KEYS, dtype=torch.bool),
    "falls": lambda x: torch.arange(4, -1, -1)[:, None].expand(LENGTH, KEYS) >= 1,
    "a number": lambda x: torch.ones(LENGTH, KEYS),
    "written": lambda x: _written(),
}


def _written():
    mask = torch.ones(LENGTH, KEYS, dtype=torch.bool)
    mask[:, 2] = False
    return mask


def attention(make):
    def f(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=make(q))
    return f


class IdleMasks(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.inputs = torch.randn(2, 3, LENGTH, 8), torch.randn(2, 3, KEYS, 8), torch.randn(2, 3, KEYS, 8)

    def has_mask(self, make):
        fusebox.reset()
        f = attention(make)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s.fusebox")
            with fusebox.record(path):
                torch.testing.assert_close(fusebox.compile(f)(*self.inputs), f(*self.inputs))
            with sqlite3.connect(path) as db:
                text, = db.execute("SELECT text FROM t_saved_graph").fetchone()
        call, = (n for n in json.loads(text)["nodes"] if "scaled_dot_product" in n.get("op", ""))
        return any(isinstance(a, dict) for a in call["args"][3:])  # beside query, key and value

    def test_masks_that_hide_nothing(self):
        for name, make in IDLE.items():
            with self.subTest(name):
                self.assertFalse(self.has_mask(make))

    def test_masks_that_may_hide(self):
        for name, make in HIDING.items():
            with self.subTest(name):
                self.assertTrue(self.has_mask(make))

    def test_a_mask_of_other_sizes_is_refused(self):
        f = attention(lambda x: torch.ones(LENGTH, KEYS + 1, dtype=torch.bool))
        for called in f, fusebox.compile(f):
            with self.assertRaises(RuntimeError):
                called(*self.inputs)


if __name__ == "__main__":
    unittest.main()

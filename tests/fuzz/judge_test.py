"""What the judge of generated programs lets pass, and what it does not."""

import sys
import unittest

import torch

from fuzz.harness import judge
from fuzz.harness.execute import tensors_after
from fuzz.harness.walk import Difference, Walk

SUMS = """
import torch
def inputs(call):
    return torch.randn(3000) * 100,
def f(a):
    return (a.sum().double(), (a.to(torch.bfloat16) * 0.003).tanh() * 0.3, a[:5].clone().sin())
"""
BITS = SUMS.replace("a.sum().double()", "a.sum().view(torch.int32)")


def runs(source):
    exact = tensors_after(source, 1, is_exact=True)
    plain = tensors_after(source, 1)
    others = [tensors_after(source, 1, rounding=k) for k in range(6)]
    return exact, plain, others


class Judge(unittest.TestCase):
    def judged(self, path, change, source=SUMS):
        exact, plain, others = runs(source)
        want, e = plain[path], exact.get(path)
        return judge.as_near_as_eager(change(want), want, e if e is not None and e.shape == want.shape else None, [o[path] for o in others])

    def test_rounding_of_a_sum_passes_also_as_float64_and_as_bits(self):
        off = float(runs(SUMS)[1]["result[0]"]) * 2e-7
        self.assertTrue(self.judged("result[0]", lambda t: t + off))
        self.assertTrue(self.judged("result[0]", lambda t: t + 1, BITS))

    def test_an_error_beyond_rounding_does_not(self):
        self.assertFalse(self.judged("result[0]", lambda t: t * (1 + 1e-3)))
        self.assertFalse(self.judged("result[0]", lambda t: t + 1000000, BITS))
        self.assertFalse(self.judged("result[2]", lambda t: t * (1 + 1e-4)))

    def test_one_wrong_element_among_many_is_seen(self):
        for value in (0.5, float("nan"), float("inf")):
            def change(t, value=value):
                t = t.clone()
                t[17] = value
                return t
            self.assertFalse(self.judged("result[1]", change))

    def test_nearer_than_eager_passes(self):
        exact, plain, _ = runs(SUMS)
        nearest = exact["result[1]"].to(torch.bfloat16)
        self.assertTrue(judge.as_near_as_eager(nearest, plain["result[1]"], exact["result[1]"]))

    def test_copies_are_not_rounded(self):
        source = "import torch\ndef inputs(call):\n    return torch.randn(50),\ndef f(a):\n    return (a.clone().t().flip(0) - a.flip(0),)\n"
        _, _, others = runs(source)
        self.assertTrue(all(not o["result[0]"].any() for o in others))

    def test_gradients_of_zeros_are_judged_by_themselves(self):
        walk = Walk("home")
        a, b = torch.zeros(3, requires_grad=True), torch.zeros(3, requires_grad=True)
        a.grad, b.grad = torch.tensor([0.0, 1e-3, 0.0]), torch.zeros(3)
        with self.assertRaises(Difference):
            walk.compare(a, b, "leaf")


if __name__ == "__main__":
    sys.exit(unittest.main())

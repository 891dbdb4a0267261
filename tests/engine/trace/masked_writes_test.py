"""Writes through a mask while gradients are recorded are one graph, whose values and gradients are eager's."""

import unittest

import torch

import fusebox


def put(a, index, v):
    a = a * 1
    a[index] = v
    return a


def add(a, index, v):
    a = a * 1
    return a.index_put_(index if isinstance(index, tuple) else (index,), v, accumulate=True)


def transposed(a, index, v):
    a = (a * 1).transpose(0, 1)
    a[index.transpose(0, 1)] = v
    return a


def functional(a, index, v):
    return a.transpose(0, 2).index_put((index.transpose(0, 1)[None].expand(a.shape[2], -1, -1),), v)


MASK = torch.tensor([[True, False, True], [False, False, True]])
SHAPE = 2, 3, 4
PROGRAMS = {  # the mask, the shape of what is written
    "rows": (put, MASK, (4,)), "one row": (put, MASK, (1, 4)), "a number": (put, MASK, ()), "one number": (put, MASK, (1,)),
    "whole": (put, MASK[:, :, None].expand(SHAPE), (1,)), "behind": (put, (slice(None), MASK[0]), (2, 1, 4)), "behind, all": (put, (slice(None), MASK[0]), (4,)),
    "last": (put, (..., torch.tensor([True, False, False, True])), (2, 3, 1)), "added": (add, MASK, (4,)), "added number": (add, MASK, ()),
    "transposed": (transposed, MASK, (4,)), "functional": (functional, MASK, ()), "as many": (put, MASK, (3, 4)), "as many behind": (put, (slice(None), MASK[0]), (2, 2, 4)), "as many added": (add, MASK, (3, 1)),
    "none": (put, torch.zeros_like(MASK), (4,)), "all": (put, torch.ones_like(MASK), (4,)),
}


class MaskedWrites(unittest.TestCase):
    def results(self, f, mask, shape, needed):
        torch.manual_seed(0)
        a, v = torch.randn(SHAPE), torch.randn(shape)
        inputs = [t.requires_grad_() for t, is_needed in zip((a, v), needed) if is_needed]
        made = f(a, mask, v)
        return made, made.stride(), *torch.autograd.grad((made * torch.arange(24.0).reshape(SHAPE).as_strided(made.shape, made.stride())).sum(), inputs)

    def test_programs(self):
        for name, (f, mask, shape) in PROGRAMS.items():
            for needed in ((True, True), (True, False), (False, True)):
                with self.subTest(name, needed=needed):
                    fusebox.reset()
                    torch.testing.assert_close(self.results(fusebox.compile(f, fullgraph=True), mask, shape, needed), self.results(f, mask, shape, needed))

    def test_sizes_that_change(self):
        fusebox.reset()
        compiled, before = fusebox.compile(put, fullgraph=True), fusebox.counters()["frames"] + fusebox.counters()["recompiles"]
        for n in (3, 5, 8):
            a, v, mask = torch.randn(n, 4, requires_grad=True), torch.randn(4, requires_grad=True), torch.arange(n) % 2 == 0
            for f in put, compiled:
                f(a, mask, v).square().sum().backward()
                if f is put:
                    expected, a.grad, v.grad = (a.grad, v.grad), None, None
            torch.testing.assert_close((a.grad, v.grad), expected)
        self.assertEqual(fusebox.counters()["frames"] + fusebox.counters()["recompiles"] - before, 2)

    def test_one_break_where_a_gradient_has_no_size(self):
        """Two masks together: the gradient of what is written has a size that nobody knows beforehand."""
        def f(a, rows, columns, v):
            a = (a * 2).sin()
            b = a.sum() + 1
            a[rows, columns] = v
            return a.tanh() * b

        rows, columns = torch.tensor([True, False, True]), torch.tensor([False, True, True, False])
        a, v = torch.randn(3, 4, requires_grad=True), torch.randn(2, requires_grad=True)
        fusebox.reset()
        before = fusebox.counters()
        made = fusebox.compile(f)(a, rows, columns, v)
        torch.testing.assert_close(torch.autograd.grad(made.sum(), (a, v)), torch.autograd.grad(f(a, rows, columns, v).sum(), (a, v)))
        now = fusebox.counters()
        self.assertEqual((now["graphs"] - before["graphs"], now["graph_breaks"] - before["graph_breaks"]), (2, 1))

    def test_other_counts_are_refused(self):
        a, v, compiled = torch.randn(2, 3, requires_grad=True), torch.randn(3), fusebox.compile(put)
        for mask, fits in (MASK, True), (~MASK, True), (MASK & False, False), (MASK, True):
            if fits:
                torch.testing.assert_close(compiled(a, mask, v), put(a, mask, v))
                continue
            for f in put, compiled:
                with self.assertRaisesRegex(RuntimeError, "shape mismatch: value tensor of shape .3. cannot be broadcast to indexing result of shape .0."):
                    f(a, mask, v)

    def test_other_sizes_are_refused(self):
        a, mask = torch.randn(2, 3, requires_grad=True), torch.tensor([True, False, True])
        for f in put, fusebox.compile(put):
            with self.assertRaises(IndexError):
                f(a, mask, torch.tensor(1.0))


if __name__ == "__main__":
    unittest.main()

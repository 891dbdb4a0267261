"""Writes to inputs, caches and views: what is written, what is returned, which memory it shares and how far version counters go are eager's,
whether the write happened in place or not; and where it must happen in place, it does."""

import copy
import math
import os
import re
import sqlite3
import tempfile
import unittest

import torch
import torch.nn as nn

import fusebox
from fusebox import _engine

R, I = torch.randn, torch.tensor


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []


def version(t):
    return 0 if t.is_inference() else t._version


def memory(t):
    return t.untyped_storage().data_ptr()


def decisions(f, *args):
    """(in place, reason) of the writes of what compiling `f` makes."""
    fusebox.reset()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.fusebox")
        with fusebox.record(path):
            fusebox.compile(f)(*args)
        with sqlite3.connect(path) as db:
            return db.execute("SELECT fused, reason FROM fusion_decisions WHERE kind = 'in place' ORDER BY position").fetchall()


def put(t, key, value):
    t[key] = value
    return t


def views_of_one():
    base = R(10)
    return [base[:5], base[5:]]


def overlapping_views():
    base = R(10)
    return [base[:6], base[4:]]


def one_twice():
    t = R(10)
    return [t, t]


def inference_tensor():
    with torch.inference_mode():
        return [R(4)]


def rolled(cache, row):
    cache.copy_(torch.roll(cache, -1, 0))
    cache[-1:].copy_(row)
    return cache.sum()


def swapped(a, b):
    t = a.clone()
    a.copy_(b)
    b.copy_(t)


def read_between(a, u, v):
    a[0:2].copy_(u)
    first = a * 2
    a[1:3].copy_(v)
    return first, a + 1


def along(a, v):
    for j in range(1, 5):
        a[j].copy_(a[j - 1] * v)
    return a.sum()


SLICES = (slice(0, 2), slice(2, 5))
WRITES = {
    "index_copy": (lambda c, i, v: (c.index_copy_(1, i, v), c.sum(0))[1], lambda: [R(2, 8, 4), I([3, 1]), R(2, 2, 4)]),
    "index_put": (lambda c, i, v: put(c, (slice(None), i), v).sum(0), lambda: [R(2, 8, 4), I([3, 1]), R(2, 2, 4)]),
    "accumulate": (lambda a, i, v: a.index_put_((i,), v, accumulate=True), lambda: [R(4, 4), I([3, 3]), R(2, 4)]),
    "slice": (lambda c, v: put(c, (slice(None), slice(2, 5)), v).sum(), lambda: [R(2, 8, 4), R(2, 3, 4)]),
    "slice of slice": (lambda c, v: put(c, SLICES, v).sum(), lambda: [R(3, 8, 4), R(2, 3, 4)]),
    "whole slice of slice": (lambda c, v: put(c, SLICES, v).sum(), lambda: [R(2, 8, 4), R(2, 3, 4)]),
    "broadcast source": (lambda c, v: put(c, SLICES, v).sum(), lambda: [R(3, 8, 4), R(4)]),
    "narrow type": (lambda c, v: put(c, SLICES, v).sum(), lambda: [R(3, 8, 4).bfloat16(), R(2, 3, 4)]),
    "integers": (lambda c, v: put(c, SLICES, v).sum(), lambda: [torch.randint(0, 2**30, (3, 8, 4)), R(2, 3, 4) * 100]),
    "transposed": (lambda c, v: put(c, SLICES, v).sum(), lambda: [R(4, 8, 3).transpose(0, 2), R(2, 3, 4)]),
    "view of more": (lambda c, v: put(c, SLICES, v).sum(), lambda: [R(6, 8, 4)[1:5], R(2, 3, 4)]),
    "with gaps": (lambda c, v: put(c, SLICES, v).sum(), lambda: [R(6, 8, 8)[::2, :, ::2], R(2, 3, 4)]),
    "shifted": (lambda x: put(x, slice(1, None), x[:-1] * 2 + 1).sum(), lambda: [R(64, 3)]),
    "read before": (lambda x: x * 3 + put(x, slice(2, 4), 1), lambda: [R(8, 3)]),
    "copied before": (lambda x: (x.clone(), x.add_(1))[0], lambda: [R(8, 3)]),
    "old value returned": (lambda x: (x.clone(), x.zero_())[0], lambda: [R(4)]),
    "reversed": (lambda x: x.copy_(x.flip(0)), lambda: [R(100)]),
    "swapped": (swapped, lambda: [R(100), R(100)]),
    "each by the other": (lambda a, b: (a.add_(b), b.add_(a)), lambda: [R(100), R(100)]),
    "given twice": (lambda a, b: (a.add_(1), a + b)[1], one_twice),
    "views of one": (lambda a, b: (a.add_(1), a + b)[1], views_of_one),
    "overlapping views": (lambda a, b: (a.add_(1), b.sum())[1], overlapping_views),
    "expanded": (lambda a: a.add_(1), lambda: [R(4, 1).expand(4, 3)]),
    "returned": (lambda a: a.add_(1), lambda: [R(4, 3)]),
    "view returned": (lambda a: (a.add_(1).t(), a[0]), lambda: [R(4, 3)]),
    "row": (lambda a: a[1].add_(2), lambda: [R(4, 3)]),
    "row of rows": (lambda c, v: (put(c[1], (slice(None), 5), v).sum(), c * 2), lambda: [R(3, 2, 8, 4), R(2, 4)]),
    "row of rows at places": (lambda c, i, v: (put(c[1], (slice(None), i), v).sum(), c * 2), lambda: [R(3, 2, 8, 4), I([3, 1]), R(2, 2, 4)]),
    "places of a row": (lambda c, i, v: (c[2].index_copy_(1, i, v), c.sum())[1], lambda: [R(3, 2, 8, 4), I([3]), R(2, 1, 4)]),
    "added to places of a row": (lambda c, i, v: (c[2][1:].index_add_(1, i, v), c.sum())[1], lambda: [R(3, 3, 8, 4), I([3, 3]), R(2, 2, 4)]),
    "diagonal of a row": (lambda c, v: (c[1].diagonal().copy_(v), c[1].sum())[1], lambda: [R(3, 4, 4), R(4)]),
    "row of rows read before": (lambda c, v: (c[1] * 2, put(c[1], 2, v), c[0] + 1), lambda: [R(3, 4, 5), R(5)]),
    "row of rows read later": (lambda c, v: (c[1].clone(), put(c[1], 2, v).sum(), c[1, 2] * 3)[::2], lambda: [R(3, 4, 5), R(5)]),
    "rows by each other": (lambda c: put(c[1], slice(0, 2), c[0, 1:3]).sum(), lambda: [R(3, 4, 5)]),
    "diagonal": (lambda a: (a.diagonal().fill_(2), a.sum())[1], lambda: [R(4, 4)]),
    "flat view": (lambda a, i, v: (a.view(-1).index_copy_(0, i, v), a * 2)[1], lambda: [R(4, 4), I([3, 7]), R(2)]),
    "transposed view": (lambda a, i, v: (a.t().index_copy_(0, i, v), a * 2)[1], lambda: [R(4, 4), I([3, 1]), R(2, 4)]),
    "scatter": (lambda a, i, v: (a.scatter_(1, i, v), a.sum())[1], lambda: [R(4, 4), I([[3, 1]]), R(1, 2)]),
    "scatter_add": (lambda a, i, v: (a.scatter_add_(1, i, v), a.sum())[1], lambda: [R(4, 4), I([[3, 1]]), R(1, 2)]),
    "masked": (lambda a, m, v: (a.masked_scatter_(m, v), put(a, m, 3.0).sum())[1], lambda: [R(4, 4), R(4, 4) > 0, R(16)]),
    "lerp": (lambda a, b: a.lerp_(b, 0.1), lambda: [R(4, 4), R(4, 4)]),
    "leaf": (lambda p, g: (p.add_(g), p.mul_(2), p[1:2].add_(1)), lambda: [R(4, 4, requires_grad=True), R(4, 4)]),
    "inference tensor": (lambda a: a.add_(1), inference_tensor),
    "part of an inference tensor": (lambda a: a[1:2].fill_(1), inference_tensor),
    "complex": (lambda a, i, v: (a.index_copy_(0, i, v), a.add_(1j), a.sum())[2],
                lambda: [R(4, 4, dtype=torch.complex64), I([3]), R(1, 4, dtype=torch.complex64)]),
    "along": (along, lambda: [R(6, 3), R(3)]),
    "two writes": (read_between, lambda: [R(4, 3), R(2, 3), R(2, 3)]),
    "rolled": (rolled, lambda: [R(5, 3), R(1, 3)]),
    "one number": (lambda a: (a.add_(1), a * 2)[1], lambda: [R(())]),
    "nothing": (lambda a: (a.add_(1), a * 2)[1], lambda: [R(0, 3)]),
    "new tensor": (lambda v, i: torch.zeros(4, 3).index_copy_(0, i, v).index_add_(0, i, v), lambda: [R(2, 3), I([1, 3])]),
    "restrided": (lambda a: a.t_().add_(1), lambda: [R(4, 3)]),
    "foreach": (lambda a, b: (torch._foreach_add_([a, b], 1.0), torch._foreach_mul_([a], [b]))[:0], lambda: [R(4), R(4)]),
}
RAISING = {
    "before": lambda a, b, w, i: (w[i].sum(), a.mul_(2), b[1:2].fill_(1)),
    "after": lambda a, b, w, i: (a.mul_(2), b[1:2].fill_(1), w[i].sum()),
    "after a change of a part": lambda a, b, w, i: (a[1:2].mul_(2), w[i].sum()),
    "while": lambda a, b, w, i: (b.add_(1), a.index_add_(0, i, w[:1, None].expand(1, 4)), a * 2),
    "while copying": lambda a, b, w, i: (b.add_(1), a.index_copy_(0, i, w[:1, None].expand(1, 4)), a * 2),
}


class Writes(unittest.TestCase):
    calls = 2

    def compile(self, f):
        return fusebox.compile(f)

    def check(self, f, make, calls=None):
        fusebox.reset()
        torch.manual_seed(0)
        theirs = make()
        torch.manual_seed(0)
        ours = make()
        compiled = self.compile(f)
        before = [(version(a), version(b)) for a, b in zip(theirs, ours)]
        for _ in range(calls or self.calls):
            raised = []
            results = []
            for run, args in ((f, theirs), (compiled, ours)):
                try:
                    with torch.no_grad():
                        results.append(tensors(run(*args)))
                    raised.append(None)
                except Exception as error:
                    raised.append(type(error))
                    results.append([])
            self.assertEqual(raised[0], raised[1])
            for a, b in zip(theirs + results[0], ours + results[1]):
                torch.testing.assert_close(b.detach().clone(), a.detach().clone())
            if raised[0] is None:
                for (x, y), a, b in zip(before, theirs, ours):
                    self.assertEqual(version(b) - y, version(a) - x)
                before = [(version(a), version(b)) for a, b in zip(theirs, ours)]
            for a, b in zip(*results):
                self.assertEqual([memory(a) == memory(t) for t in theirs], [memory(b) == memory(t) for t in ours])

    def test_as_eager(self):
        for name, (f, make) in WRITES.items():
            with self.subTest(name):
                self.check(f, make, 1 if name == "restrided" else None)

    def test_cut_short_by_an_error(self):
        for name, f in RAISING.items():
            for position in 0, 9:
                with self.subTest(name, position=position):
                    self.check(f, lambda: [R(4, 4), R(4, 4), R(3), I([position])])

    def test_happens_in_place(self):
        for name in ("index_copy", "index_put", "slice", "slice of slice", "whole slice of slice", "broadcast source", "transposed",
                     "copied before", "returned", "row", "row of rows", "row of rows at places", "places of a row", "diagonal of a row", "flat view", "transposed view", "lerp", "one number"):
            f, make = WRITES[name]
            with self.subTest(name), torch.no_grad():
                made = decisions(f, *make())
                self.assertTrue(made and made[-1][0], made)

    def test_goes_through_the_part_alone(self):
        """What is written of a large cache does not depend on how large it is."""
        calls = {"a row": lambda c, v, i: put(c[1], (slice(None), 5), v[:, 0]), "rows": lambda c, v, i: c[0][:, 7:8].copy_(v), "at places": lambda c, v, i: put(c[1], (slice(None), i), v)}
        for name, write in calls.items():
            with self.subTest(name), torch.no_grad(), tempfile.TemporaryDirectory() as folder:
                fusebox.reset()
                path = os.path.join(folder, "s.fusebox")
                with fusebox.record(path):
                    fusebox.compile(lambda c, v, i, write=write: (write(c, v, i), None)[1])(torch.zeros(2, 4, 4096, 64), R(4, 1, 64), I([5]))
                with sqlite3.connect(path) as db:
                    kernels = db.execute("SELECT loop_ir, reason FROM kernels").fetchall()
                self.assertTrue(kernels)
                for loops, reason in kernels:
                    points = math.prod(int(n) for n in re.findall(r"\bi\d+ < (\d+)", loops or ""))
                    self.assertTrue(points == 4 * 64 or "in place" in (reason or ""), (loops, reason))

    def test_is_refused_with_a_reason(self):
        for f, make, why in ((WRITES["reversed"][0], WRITES["reversed"][1], "at other points"),
                             (RAISING["after"], lambda: [R(4, 4), R(4, 4), R(3), I([1])], "may raise afterwards"),
                             (lambda x: (x.mul_(2) * 1, x * 1, x.sin())[2], lambda: [R(4, requires_grad=True).clone()], "has a gradient")):
            if why == "may raise afterwards" and torch.get_default_device().type == "cuda":
                continue  # an assertion of the device there
            made = decisions(f, *make())
            self.assertTrue(any(not done and why in reason for done, reason in made), made)

    def test_optimiser_states(self):
        for make in (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
                     lambda p: torch.optim.Adam(p, lr=0.01, foreach=True), lambda p: torch.optim.RMSprop(p, lr=0.01)):
            fusebox.reset()
            torch.manual_seed(0)
            theirs = [R(5, 3, requires_grad=True), R(7, requires_grad=True)]
            ours = [p.detach().clone().requires_grad_() for p in theirs]
            a, b = make(theirs), make(ours)
            step = fusebox.compile(b.step)
            for _ in range(3):
                for p, q in zip(theirs, ours):
                    p.grad = R(*p.shape)
                    q.grad = p.grad.clone()
                a.step(), step()
                for p, q in zip(theirs, ours):
                    pairs = [(p, q)] + [(v, b.state[q][k]) for k, v in a.state[p].items() if isinstance(v, torch.Tensor)]
                    for x, y in pairs:
                        torch.testing.assert_close(y.detach(), x.detach())
                        self.assertEqual(y._version, x._version, type(a))

    def test_running_statistics_in_training(self):
        torch.manual_seed(0)
        theirs = nn.Sequential(nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3), nn.ReLU())
        ours = copy.deepcopy(theirs)
        fusebox.reset()
        compiled = fusebox.compile(ours)
        start = [(a._version, b._version) for a, b in zip(theirs.buffers(), ours.buffers())]
        for _ in range(3):
            x = R(4, 3, 8, 8)
            theirs(x).sum().backward()
            compiled(x).sum().backward()
        for (x, y), a, b in zip(start, theirs.buffers(), ours.buffers()):
            torch.testing.assert_close(b, a)
            self.assertEqual(b._version - y, a._version - x)
        for a, b in zip(theirs.parameters(), ours.parameters()):
            torch.testing.assert_close(b.grad, a.grad, rtol=1e-4, atol=1e-5)

    def test_saved_tensors_go_as_backward_reads_them(self):
        """Twice through the same graph where it is asked for, and an error where it is not, as in eager."""
        fusebox.reset()
        w = R(8, 8, requires_grad=True)
        f = fusebox.compile(lambda x: ((x @ w).sin() @ w).exp().sum())
        for _ in range(3):
            x = R(8, 8, requires_grad=True)
            y = f(x)
            first = torch.autograd.grad(y, (x, w), retain_graph=True)
            second = torch.autograd.grad(y, (x, w))
            for a, b in zip(first, second):
                self.assertTrue(torch.equal(a, b))
            with self.assertRaises(RuntimeError):
                torch.autograd.grad(y, x)


class WritesUnderGraphs(Writes):
    """With CUDA graphs; without a GPU the CPU is taken for one."""

    calls = 5

    def setUp(self):
        if not torch.cuda.is_available():
            _engine.simulate_cuda_graphs(True)

    def tearDown(self):
        fusebox.reset()
        if not torch.cuda.is_available():
            _engine.simulate_cuda_graphs(False)

    def compile(self, f):
        return fusebox.compile(f, mode="reduce-overhead")

    def test_under_autocast_nothing_breaks(self):
        """Kernels composed of operators that write to what they make: autocast has a say in what they are composed of."""
        def f(x):
            mask = x.new_zeros(8, 8)
            mask[0:3, 1:5] = 2
            return mask, torch.diag(x[0]), torch.block_diag(x, x), mask.index_fill(0, I([1]), 7.0), mask.rot90()

        fusebox.reset()
        x = R(2, 3)
        with torch.autocast("cpu", torch.bfloat16):
            for got, want in zip(fusebox.compile(f, fullgraph=True)(x), f(x), strict=True):
                torch.testing.assert_close(got, want)

    def test_written_inputs_that_move(self):
        def f(cache, position, value):
            cache.index_copy_(0, position, value)
            cache.mul_(2)
            return cache.sum(0)

        g = self.compile(f)
        kept = []
        for i in range(12):
            ours = R(6, 4)
            theirs = ours.clone()
            kept.append(ours)
            position, value = I([i % 6]), R(1, 4)
            torch.testing.assert_close(g(ours, position, value), f(theirs, position, value))
            torch.testing.assert_close(ours, theirs)

    def test_sparse_tensors_keep_what_they_are_made_of(self):
        """Their parts are buffers of the graph, whose memory later steps would take."""
        def made(x, places):
            sparse = torch.sparse_coo_tensor(places.flip(0) * 1, (x * 2 + 1)[0], (40, 40))
            y = x
            for _ in range(6):
                y = torch.softmax(y @ y.T, -1) @ x
            return sparse, y

        def branching(x, places):
            n = x.size(0)
            sparse = torch.sparse_coo_tensor(torch.stack(list(places.flip(0))), (x * x)[0], (n, n))
            return torch.relu(torch.sparse.mm(sparse, x @ x.T) if n % 2 else x @ x.T) @ x

        for f in (made, branching):
            fusebox.reset()
            g = fusebox.compile(f)
            for n in (64, 72, 65, 71):
                x = R(n, 300, requires_grad=f is branching)
                places = torch.stack([torch.randint(0, 40, (300,)), torch.randint(0, 40, (300,))])
                ours, theirs = g(x, places), f(x, places)
                for got, want in zip(tensors(ours), tensors(theirs)):
                    torch.testing.assert_close(*(t.to_dense() if t.is_sparse else t for t in (got, want)), rtol=1e-4, atol=1e-3)
                if f is branching:
                    torch.testing.assert_close(*(torch.autograd.grad(y.sum(), x)[0] for y in (ours, theirs)), rtol=1e-3, atol=1e-2)


if __name__ == "__main__":
    unittest.main()

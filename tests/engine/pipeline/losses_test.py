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


class OneOfEveryLine(unittest.TestCase):
    """What picks one element of every row, and its gradient, is a formula: no scattered writes into zeros."""

    def check(self, f, *args):
        fusebox.reset()
        torch.manual_seed(0)
        ours, theirs = ([a.clone().requires_grad_(a.is_floating_point()) for a in args] for _ in range(2))
        before = fusebox.counters()
        got, want = fusebox.compile(f)(*ours), f(*theirs)
        self.assertEqual(got.dtype, want.dtype)
        torch.testing.assert_close(got, want)
        if want.requires_grad:
            upstream = torch.randn_like(want)
            got.backward(upstream)
            want.backward(upstream)
            for a, b in zip(ours, theirs):
                if b.grad is not None:
                    torch.testing.assert_close(a.grad, b.grad)
        self.assertEqual(fusebox.counters()["extern_calls"], before["extern_calls"])

    def setUp(self):
        torch.manual_seed(0)
        self.index = torch.randint(0, 50, (64,))

    def test_log_probabilities(self):
        def chosen(x, labels):
            labels = labels[:, 1:]
            logp = x[:, :-1].float().log_softmax(-1).gather(2, labels.clamp(min=0)[..., None]).squeeze(2)
            return (logp * (labels != -100)).sum(-1)
        for dtype in torch.float32, torch.bfloat16:
            self.check(chosen, torch.randn(4, 17, 300).to(dtype), torch.randint(-1, 300, (4, 17)) * 100 % 300 - (torch.rand(4, 17) < 0.2) * 100)

    def test_written_values(self):
        self.check(lambda i: torch.zeros(64, 50).scatter_(1, i[:, None], 1.5) * 2, self.index)
        self.check(lambda i: torch.zeros(50, 64).scatter(0, i[None], 3) + 1, self.index)
        self.check(lambda i: ~torch.zeros(64, 50, dtype=torch.bool).scatter(1, i[:, None], True), self.index)
        self.check(lambda i, s: torch.ones(64, 50, dtype=torch.int32).scatter(1, i[:, None], s) * 2, self.index, torch.randint(9, (64, 3), dtype=torch.int32))
        self.check(lambda i, x, s: torch.zeros_like(x).scatter(1, i[:, None], s) * x, self.index, torch.randn(64, 50), torch.randn(64, 1))

    def test_added_values(self):
        self.check(lambda i, s: torch.ones(64, 50, dtype=torch.bfloat16).scatter_add(1, i[:, None], s) + 1, self.index, torch.randn(64, 1).bfloat16())
        self.check(lambda i, s: torch.full((64, 50), 250, dtype=torch.uint8).scatter_add(1, i[:, None], s) >> 1, self.index, torch.full((64, 1), 10, dtype=torch.uint8))

    def test_positions_outside(self):
        for wrong in (50, -1):
            with self.assertRaisesRegex(RuntimeError, f"index {wrong} is out of bounds for dimension 1 with size 50"):
                fusebox.compile(lambda i: torch.ones(64, 50).scatter_add(1, i[:, None], torch.ones(64, 1)) * 2)(torch.full((64,), wrong))


class OneHotSums(unittest.TestCase):
    def setUp(self):
        fusebox.reset()
        torch.manual_seed(0)
        self.classes = torch.randint(0, CLASSES, (ROWS,))
        self.classes[:4] = torch.tensor([-100, CLASSES, 0, CLASSES - 1])
        self.rows = torch.randn(ROWS, 1)
        self.rows[5:9, 0] = torch.tensor([float("nan"), float("inf"), -0.0, 0.0])

    def check(self, f, *args, exact=True):
        fusebox.reset()
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


def step(f, leaf, *args):
    """f's result and the gradient of its sum at `leaf`."""
    leaf.grad = None
    result = f(leaf, *args)
    result.sum().backward()
    return result.detach(), leaf.grad


class CrossEntropy(unittest.TestCase):
    def setUp(self):
        fusebox.reset()
        torch.manual_seed(0)
        self.logits = torch.randn(ROWS, CLASSES, requires_grad=True)
        self.classes = torch.randint(0, CLASSES, (ROWS,))
        self.classes[3] = -100

    def check(self, f, leaf, *args, tolerance=1e-5):
        fusebox.reset()  # or the limit of recompilations leaves the later forms to eager
        want = step(f, leaf, *args)
        got = []
        kernels = kernels_of(lambda: got.extend(step(fusebox.compile(f), leaf, *args)))
        self.assertGreater(len(kernels), 1)
        for a, b in zip(got, want, strict=True):
            self.assertEqual(a.dtype, b.dtype)
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
        return kernels

    def large(self, kernels, role):
        """Types of the kernels' parameters in that role with an element for every row and class."""
        return [t for _, text in kernels for t in re.findall(rf"^  {role} \w+: (\w+)\[{ROWS * CLASSES}\]", text, re.M)]

    def test_only_the_gradient_is_written(self):
        def loss(logits, classes):
            return F.cross_entropy(logits, classes)
        kernels = self.check(loss, self.logits, self.classes)
        self.assertEqual(self.large(kernels, "out"), ["float32"])
        self.assertEqual(len([name for name in reductions(kernels) if "arange" in name]), 0)

    def test_smoothed_gradient_needs_no_loop(self):
        def loss(logits, classes):
            return F.cross_entropy(logits, classes, label_smoothing=0.1)
        kernels = self.check(loss, self.logits, self.classes)
        self.assertEqual(self.large(kernels, "out"), ["float32"])
        self.assertEqual(len([name for name in reductions(kernels) if "arange" in name]), 0)

    def test_autocast_keeps_the_product(self):
        weight = torch.randn(16, CLASSES, requires_grad=True)
        x = torch.randn(ROWS, 16)

        def loss(weight, x, classes):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return F.cross_entropy(x @ weight, classes)
        kernels = self.check(loss, weight, x, self.classes, tolerance=1e-2)
        self.assertEqual(set(self.large(kernels, "in")), {"bfloat16"})
        self.assertEqual(self.large(kernels, "out"), ["bfloat16"])

    def test_shifted_logits_are_not_copied(self):
        weight = torch.randn(16, CLASSES, requires_grad=True)
        hidden = torch.randn(2, ROWS // 2 + 1, 16)

        def loss(weight, hidden, classes):
            logits = hidden @ weight
            return F.cross_entropy(logits[:, :-1].contiguous().view(-1, CLASSES), classes)
        kernels = self.check(loss, weight, hidden, self.classes)
        self.assertEqual(self.large(kernels, "out"), [])

    def test_result_that_is_seen_is_kept(self):
        def both(x, classes):
            y = (x * 2).log_softmax(-1)
            return y * 1, F.nll_loss(y, classes)
        compiled = fusebox.compile(both)
        for f in both, compiled:
            self.logits.grad = None
            y, loss = f(self.logits, self.classes)
            (loss + (y * y).mean()).backward()
            if f is both:
                want = [y.detach(), loss.detach(), self.logits.grad]
        for a, b in zip([y.detach(), loss.detach(), self.logits.grad], want, strict=True):
            torch.testing.assert_close(a, b)

    def test_every_form(self):
        weight = torch.rand(CLASSES)
        for dtype, tolerance in (torch.float32, 1e-5), (torch.float64, 1e-11), (torch.bfloat16, 5e-2):
            logits = (self.logits.detach() * 3).to(dtype).requires_grad_()
            for reduction in "none", "mean", "sum":
                for options in {}, {"ignore_index": 7}, {"label_smoothing": 0.2}, {"weight": weight.to(dtype), "label_smoothing": 0.1}:
                    classes = torch.where(self.classes < 0, 7, self.classes) if "ignore_index" in options else self.classes

                    def loss(logits, classes):
                        return F.cross_entropy(logits, classes, reduction=reduction, **options)
                    with self.subTest(dtype=dtype, reduction=reduction, options=list(options)):
                        self.check(loss, logits, classes, tolerance=tolerance)

    def test_images_and_distributions(self):
        image = torch.randn(2, 11, 25, 6, requires_grad=True)  # larger than what backward copies
        labels = torch.randint(0, 11, (2, 25, 6))
        labels[0, 0, 0] = -100
        for options in {}, {"weight": torch.rand(11)}, {"label_smoothing": 0.1, "reduction": "sum"}:
            def loss(image, labels):
                return F.cross_entropy(image, labels, **options)
            kernels = self.check(loss, image, labels)
            self.assertEqual([t for _, text in kernels for t in re.findall(r"^  out \w+: (\w+)\[3300\]", text, re.M)], ["float32"])
        with self.assertRaises(IndexError):
            fusebox.compile(lambda x, t: F.cross_entropy(x, t))(image, labels + 11)
        self.check(lambda x, p: F.cross_entropy(x, p), self.logits, torch.randn(ROWS, CLASSES).softmax(-1))
        self.check(lambda x, p: F.kl_div(x.log_softmax(0), p, reduction="batchmean"), self.logits, torch.randn(ROWS, CLASSES).softmax(0))

    def test_extreme_logits(self):
        logits = torch.zeros(ROWS, CLASSES)
        logits[0, :] = 3e38
        logits[1, 5:] = float("-inf")
        logits[2, 7] = 1e4
        self.check(lambda x, t: F.cross_entropy(x, t.clamp(0, 4), reduction="none"), logits.requires_grad_(), self.classes)

    def test_gradient_of_the_gradient(self):
        x = self.logits.detach().double().requires_grad_()

        def loss(x, classes):
            return F.cross_entropy(x, classes)
        direction = torch.randn_like(x)
        made = []
        for f in loss, fusebox.compile(loss):
            gradient, = torch.autograd.grad(f(x, self.classes), x, create_graph=True)
            made.append(torch.autograd.grad((gradient * direction).sum(), x)[0])
        torch.testing.assert_close(made[1], made[0])


class WeightsUsedSeveralTimes(unittest.TestCase):
    def test_one_product_over_all_steps(self):
        class Cell(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.kept = torch.nn.Linear(32, 32, bias=False)

            def forward(self, x):
                h = torch.zeros_like(x[0])
                for part in x:
                    h = torch.tanh(self.kept(h) + part)
                return h.square().sum()
        torch.manual_seed(0)
        for dtype in torch.float32, torch.float64:
            cell, x = Cell().to(dtype), torch.randn(10, 4, 32, dtype=dtype)
            want, = torch.autograd.grad(cell(x), cell.kept.weight)
            counts = []
            for left_out in [], ["joined_products"]:
                fusebox.reset()
                with fusebox.config.patch(skip_passes=left_out):
                    loss = fusebox.compile(cell)(x)
                    before = fusebox.counters()["extern_calls"]
                    got, = torch.autograd.grad(loss, cell.kept.weight)
                    counts.append(fusebox.counters()["extern_calls"] - before)
                torch.testing.assert_close(got, want)
            self.assertLessEqual(counts[0], counts[1] - 6)  # of ten products of the weight, most

    def test_terms_are_added_as_they_come(self):
        """A gradient of many large terms, each made with what the next one needs: they do not wait for each other in memory."""
        def turns(c, count):
            f, g = torch.zeros_like(c[:, 0]), torch.zeros_like(c[0])
            for _ in range(count):
                f = -torch.logsumexp(g - c, 1)
                g = -torch.logsumexp(f[:, None] - c, 0)
            return (f.sin().sum() + g.cos().sum())
        torch.manual_seed(0)
        peaks = []
        for count in 4, 10:
            c = torch.rand(2048, 2048, dtype=torch.float64).requires_grad_()
            want, = torch.autograd.grad(turns(c, count), c)
            fusebox.reset()
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "s.fusebox")
                with fusebox.record(path):
                    got, = torch.autograd.grad(fusebox.compile(turns)(c, count), c)
                torch.testing.assert_close(got, want)
                with sqlite3.connect(path) as db:
                    lives = db.execute("SELECT first_use, last_use, bytes FROM buffers WHERE pool_offset IS NOT NULL AND graph_id = (SELECT max(graph_id) FROM buffers)").fetchall()
            peaks.append(max(sum(size for first, last, size in lives if first <= step <= last) for step in range(200)))
        self.assertLess(peaks[1], peaks[0] + c.nbytes / 2)


if __name__ == "__main__":
    unittest.main()

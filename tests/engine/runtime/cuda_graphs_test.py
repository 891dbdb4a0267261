"""CUDA graphs against eager: recordings, static and copied inputs, results in use, mutations, random numbers, partitions, reasons.

On a machine with a GPU it runs there (tests/gpu/run), else with the CPU taken for one: what is recorded is then kept and carried out
again at every replay, over the same memory, which is what the books are about.
"""
import gc
import os
import subprocess
import sys
import tempfile
import unittest

import torch
import torch.nn.functional as F
from torch import nn

import fusebox
from fusebox import _engine

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"


def graphed(f, **options):
    if options:
        return fusebox.compile(f, options={"triton.cudagraphs": True, **options})
    return fusebox.compile(f, mode="reduce-overhead")


def randn(*shape):
    return torch.randn(*shape, device=DEVICE)


def events(run):
    """Rows of cuda_graphs of a session of `run`."""
    import sqlite3
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.fusebox")
        with fusebox.record(path):
            run()
        with sqlite3.connect(path) as db:
            db.row_factory = sqlite3.Row
            rows = [dict(r) for r in db.execute("SELECT * FROM cuda_graphs ORDER BY cuda_graph_id")]
            nodes = db.execute("SELECT count(*) FROM cuda_graph_nodes WHERE kernel IS NOT NULL").fetchone()[0]
    return rows, nodes


class CudaGraphs(unittest.TestCase):
    def setUp(self):
        if not GPU:
            _engine.simulate_cuda_graphs(True)
        fusebox.reset()
        torch.manual_seed(0)

    def tearDown(self):
        fusebox.reset()
        if not GPU:
            _engine.simulate_cuda_graphs(False)

    def same(self, got, want, **tolerance):
        torch.testing.assert_close(got, want, **tolerance)

    def test_inputs_that_move(self):
        w = randn(64, 64)
        def f(x):
            return torch.relu(x @ w) + 1
        g = graphed(f)
        kept = []
        for i in range(8):
            x = randn(32, 64)
            kept.append(x)  # so that the next one lies elsewhere
            self.same(g(x), f(x))

    def test_results_stay_good_while_they_are_held(self):
        def f(x):
            y = x * 2
            return y, y[1:] + 1, y.sum()
        g = graphed(f)
        held = []
        for i in range(12):
            x = randn(100, 10)
            held.append((g(x), f(x)))
        for got, want in held:
            self.same(got, want)

    def test_large_results_take_turns(self):
        def f(x):
            return x + 1
        g = graphed(f)
        xs = [randn(3000, 2000) for _ in range(3)]
        def run():
            held = []
            for i in range(10):
                held.append((g(xs[i % 3]), xs[i % 3]))
                held = held[-3:]
                for got, x in held:
                    self.same(got, x + 1)
        rows, _ = events(run)
        self.assertTrue(any("still in use" in (r["reason"] or "") for r in rows if r["event"] == "recorded"), rows)

    def test_views_of_results_and_inputs(self):
        def f(x):
            y = x.sin()
            return y.t(), y[2:], x[1:], x, y.view(-1)
        g = graphed(f)
        for i in range(5):
            x = randn(6, 7)
            got, want = g(x), f(x)
            self.same(got, want)
            self.assertEqual([t.stride() for t in got], [t.stride() for t in want])
            self.assertEqual(got[2].data_ptr(), x.data_ptr() + 7 * 4)
            got[1].zero_()  # the results are one tensor's views, as in eager
            self.assertEqual(got[4].view(6, 7)[2:].abs().sum().item(), 0)

    def test_writes_to_inputs(self):
        def f(x, total):
            total += x.sum(0)
            return total * 2
        g = graphed(f)
        a, b = torch.zeros(5, device=DEVICE), torch.zeros(5, device=DEVICE)
        for i in range(6):
            x = randn(4, 5)
            self.same(g(x, a), f(x, b))
            self.same(a, b)

    def test_training(self):
        def make():
            torch.manual_seed(1)
            return nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 5)).to(DEVICE)
        ours, theirs = make(), make()
        g = graphed(ours)
        optimisers = [torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (ours, theirs)]
        for i in range(8):
            x, y = randn(16, 20), torch.randint(0, 5, (16,), device=DEVICE)
            losses = []
            for model, optimiser in zip((g, theirs), optimisers):
                optimiser.zero_grad(set_to_none=bool(i % 2))
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimiser.step()
                losses.append(loss.detach())
            self.same(*losses, rtol=1e-4, atol=1e-5)
        for a, b in zip(ours.parameters(), theirs.parameters()):
            self.same(a, b, rtol=1e-4, atol=1e-5)
        for a, b in zip(ours.buffers(), theirs.buffers()):
            self.same(a, b, rtol=1e-4, atol=1e-5)

    def test_two_forwards_before_the_backwards(self):
        w = randn(8, 8).requires_grad_()
        def f(x):
            return torch.tanh(x @ w).sum()
        g = graphed(f)
        for i in range(6):
            x, y = randn(4, 8), randn(4, 8)
            a, b = g(x), g(y)
            (got,) = torch.autograd.grad(a * 2 + b, w)
            (want,) = torch.autograd.grad(f(x) * 2 + f(y), w)
            self.same(got, want)

    def test_accumulated_gradients(self):
        w, v = randn(8, 8).requires_grad_(), None
        v = w.detach().clone().requires_grad_()
        def f(x, w):
            return (torch.tanh(x @ w) ** 2).sum()
        g = graphed(f)
        for i in range(6):
            x = randn(4, 8)
            g(x, w).backward()
            f(x, v).backward()
            self.same(w.grad, v.grad)

    def test_random_numbers(self):
        """Eager's, and torch's generator is afterwards where eager leaves it."""
        def f(x):
            return F.dropout(x, 0.5) + torch.rand_like(x)
        g = graphed(f, fallback_random=True)
        x = torch.ones(1000, device=DEVICE)
        torch.manual_seed(5)
        got = [g(x) for _ in range(5)]
        after = torch.rand(3, device=DEVICE)
        torch.manual_seed(5)
        want = [f(x) for _ in range(5)]
        self.same(got, want)
        self.same(after, torch.rand(3, device=DEVICE))

    @unittest.skipUnless(GPU, "generated code draws random numbers on GPUs only")
    def test_random_numbers_of_generated_code(self):
        def f(x):
            return F.dropout(x, 0.25), torch.rand_like(x), torch.randn_like(x), torch.bernoulli(x * 0.5)
        g = graphed(f)
        x = torch.ones(100000, device=DEVICE)
        def draw():
            torch.manual_seed(7)
            return [g(x) for _ in range(5)]
        first, again = draw(), draw()
        self.same(first, again)
        for kept, uniform, normal, coin in first:
            self.assertAlmostEqual((kept == 0).float().mean().item(), 0.25, delta=0.01)
            self.same(kept[kept != 0], torch.full_like(kept[kept != 0], 4 / 3))
            self.assertAlmostEqual(uniform.mean().item(), 0.5, delta=0.01)
            self.assertTrue(0 <= uniform.min().item() and uniform.max().item() < 1)
            self.assertAlmostEqual(normal.std().item(), 1, delta=0.02)
            self.assertAlmostEqual(normal.mean().item(), 0, delta=0.02)
            self.assertAlmostEqual(coin.mean().item(), 0.5, delta=0.01)
        self.assertFalse(torch.equal(first[1][1], first[2][1]))
        self.assertLess(abs(torch.corrcoef(torch.stack([first[3][1], first[3][2]]))[0, 1].item()), 0.02)

    def test_partition(self):
        """What cannot be captured runs between two recordings."""
        def f(x, m):
            y = torch.relu(x) * 2
            z = torch.linalg.inv(m * 2 + 1)  # waits for the device
            return (z @ y).sin() + 1, z * 2, z
        g = graphed(f)
        held = []
        def run():
            for i in range(6):
                x, m = randn(6, 6), randn(6, 6) + 6 * torch.eye(6, device=DEVICE)
                held.append((g(x, m), f(x, m)))
        rows, nodes = events(run)
        for got, want in held:
            self.same(got, want, rtol=1e-3, atol=1e-3)
        made = [r for r in rows if r["event"] == "recorded"]
        self.assertTrue(made, rows)
        self.assertEqual(made[0]["stretches"], 2)
        self.assertIn("linalg", made[0]["plain_reason"])

    def test_refusals_say_why(self):
        def f(x):
            return torch.linalg.inv(x)
        g = graphed(f)
        def run():
            for i in range(3):
                g(torch.eye(3, device=DEVICE))
        rows, _ = events(run)
        self.assertEqual([r["event"] for r in rows], ["refused"])
        self.assertIn("linalg", rows[0]["reason"])

    def test_refusal_as_an_error(self):
        g = graphed(lambda x: torch.linalg.inv(x), **{"triton.cudagraph_or_error": True})
        def run():
            with self.assertRaisesRegex(RuntimeError, "cudagraph_or_error.*linalg"):
                g(torch.eye(3, device=DEVICE))
        rows, _ = events(run)
        self.assertEqual(rows[0]["event"], "refused")

    def test_refusal_in_backward_as_an_error(self):
        g = graphed(lambda x: x.sum(), **{"triton.cudagraph_or_error": True})
        y = g(randn(5).requires_grad_())  # its gradient is a view: nothing to capture
        with self.assertRaisesRegex(RuntimeError, "cudagraph_or_error"):
            y.backward()

    def test_results_that_are_resized(self):
        def f(x):
            return x * 2 + 1
        g = graphed(f)
        for shrink in (False, True):
            held = []
            for _ in range(6):
                x = randn(4, 4)
                y = g(x)
                self.same(y, f(x))
                if shrink:
                    y.untyped_storage().resize_(0)
                else:
                    y.resize_(64)
                held.append(y)

    def test_an_error_between_recordings_leaves_nothing_behind(self):
        def f(a, b):
            return torch.histc(a[1:], min=0, max=0), torch.histc(b, min=0, max=0), b.sin() * 2
        g = graphed(f)
        for i in range(6):
            a, b = randn(50), randn(50)
            if i == 3:
                bad = b.clone()
                bad[0] = float("nan")
                with self.assertRaises(RuntimeError):
                    g(a, bad)
                continue
            self.same(g(a, b), f(a, b))

    @unittest.skipUnless(GPU, "needs a GPU")
    def test_a_graph_of_the_programs_own_does_not_end_ours(self):
        def f(x):
            return torch.tanh(x) * 2
        g, x = graphed(f), randn(100)
        g(x)  # the next call would record
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = g(x)
        graph.replay()
        self.same(y, f(x))
        h = graphed(lambda x: x.sin() + 1)
        def run():
            for _ in range(4):
                self.same(h(x), x.sin() + 1)
        rows, _ = events(run)
        self.assertTrue(any(r["event"] == "recorded" for r in rows), rows)

    def test_what_a_session_says(self):
        w = randn(64, 64)
        def f(x):
            return torch.relu(x @ w) + 1
        g = graphed(f)
        x = randn(8, 64)
        def run():
            for i in range(10):
                g(x)
        rows, nodes = events(run)
        self.assertEqual([r["event"] for r in rows], ["warm_up", "recorded"])
        made = rows[1]
        self.assertEqual(made["replays"], 8)
        self.assertEqual((made["static_inputs"], made["copied_inputs"], made["stretches"], made["plain_steps"]), (2, 0, 1, 0))
        self.assertEqual(made["kept_bytes"], 8 * 64 * 4)
        if GPU:
            self.assertGreater(made["pool_bytes"], 0)
        else:
            self.assertIsNone(made["pool_bytes"])  # nothing of a torch allocator
        self.assertGreaterEqual(made["nodes"], 2)
        self.assertGreaterEqual(nodes, 2)

    def test_moved_parameter(self):
        model = nn.Linear(10, 10).to(DEVICE)
        g = graphed(model)
        for i in range(25):
            if i in (5, 18):
                model.weight = nn.Parameter(randn(10, 10))
            x = randn(4, 10)
            with torch.no_grad():
                self.same(g(x), F.linear(x, model.weight, model.bias))

    def test_memory_goes_with_the_results(self):
        g = graphed(lambda x: x * 3)
        x = randn(1000)
        for i in range(4):
            y = g(x)
        fusebox.reset()
        gc.collect()
        self.same(y, x * 3)

    def test_backend_cudagraphs(self):
        def f(x, y):
            return torch.softmax(x @ y, -1).sum(0), x * 2
        g = fusebox.compile(f, backend="cudagraphs")
        kernels = fusebox.counters()["kernels"]
        for i in range(5):
            x, y = randn(5, 6), randn(6, 7)
            self.same(g(x, y), f(x, y))
        self.assertEqual(fusebox.counters()["kernels"], kernels)

    def test_expanded_input(self):
        g = graphed(lambda x: x + 1)
        for i in range(5):
            x = randn(1, 7).expand(5, 7)
            self.same(g(x), x + 1)

    def test_marking_steps(self):
        g = graphed(lambda x: x * 2)
        for i in range(4):
            fusebox.compiler.cudagraph_mark_step_begin()
            x = randn(4)
            self.same(g(x), x * 2)

    @unittest.skipUnless(GPU, "no GPU")
    def test_streams(self):
        w = randn(256, 256)
        def f(x):
            return torch.relu(x @ w) @ w
        g = graphed(f)
        x = randn(256, 256)
        want = f(x)
        for i in range(12):
            stream = torch.cuda.Stream() if i % 2 else torch.cuda.current_stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                got = g(x)
            torch.cuda.current_stream().wait_stream(stream)
            self.same(got, want, rtol=1e-3, atol=1e-3)


if __name__ == "__main__":
    unittest.main()

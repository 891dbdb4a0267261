"""Eight threads that call, change and compile again at once: no deadlock, no crash, no wrong result."""

import gc
import subprocess
import sys
import textwrap
import threading
import time
import unittest

import torch
from torch import nn

import fusebox

THREADS = 8
SECONDS = 4


def together(work):
    """Runs work(number, until) on all threads; what they raised."""
    barrier, errors = threading.Barrier(THREADS), []

    def run(number):
        try:
            barrier.wait()
            work(number, time.monotonic() + SECONDS)
        except BaseException as error:
            errors.append(repr(error))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(THREADS)]
    [t.start() for t in threads]
    [t.join(20 * SECONDS) for t in threads]
    return errors + ["a thread hangs" for t in threads if t.is_alive()]


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None


class ThreadsTest(unittest.TestCase):
    def test_objects_of_their_own_in_one_function(self):
        class State:
            def __init__(self):
                self.k, self.calls, self.last = 1.0, 0, None

        def f(x, s):
            s.calls += 1
            s.last = x.sum()
            return torch.sin(x * s.k) + s.k

        c = fusebox.compile(f)

        def work(number, until):
            s, i = State(), 0
            while time.monotonic() < until:
                s.k = float(number % 3 + i % 2)
                x = torch.full((3 + i % 3,), float(number))
                got = c(x, s)
                i += 1
                assert torch.allclose(got, torch.sin(x * s.k) + s.k), (number, i)
                assert s.calls == i and torch.equal(s.last, x.sum()), (number, i, s.calls)

        self.assertEqual(together(work), [])

    def test_code_that_is_made_and_dropped(self):
        def work(number, until):
            i = 0
            while time.monotonic() < until:
                scope = {"torch": torch, "k": float(number * 1000 + i)}
                exec("def f(x):\n  return torch.relu(x) * k", scope)
                got = fusebox.compile(scope["f"])(torch.ones(2))
                assert got.tolist() == [scope["k"]] * 2
                i += 1
                if number == 0 and i % 7 == 0:
                    gc.collect()

        self.assertEqual(together(work), [])

    def test_gradients_and_reset(self):
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        x = torch.randn(3, 4)
        want = torch.autograd.grad(Scaled.apply(model(x), 3.0).sum(), list(model.parameters()))
        c = fusebox.compile(lambda x, k: Scaled.apply(model(x), k).sum())

        def work(number, until):
            i = 0
            while time.monotonic() < until:
                got = torch.autograd.grad(c(x, 3.0), list(model.parameters()))
                assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(got, want)), number
                i += 1
                if number == 0 and i % 5 == 0:
                    torch.compiler.reset()

        self.assertEqual(together(work), [])

    def test_captures_that_overlap_leave_nothing_on(self):
        """The first capture ends while the second goes on: nothing is being compiled when both have ended."""
        first_began, second_began, first_ended = threading.Event(), threading.Event(), threading.Event()

        def operator(name, shape_known):
            op = torch.library.custom_op(f"fusebox_threads_test::{name}", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
            op.register_fake(lambda x: shape_known() and torch.empty_like(x))
            return op

        first = operator("first", lambda: first_began.set() or second_began.wait(60))
        second = operator("second", lambda: second_began.set() or first_ended.wait(60))
        while_second, errors = [], []

        def capture(op, ended):
            try:
                fusebox.compile(lambda x: op(x) + 1, backend="aot_eager")(torch.ones(3))
            except BaseException as error:
                errors.append(repr(error))
            ended()

        threads = [threading.Thread(target=capture, args=args) for args in (
            (first, lambda: (while_second.append(torch.compiler.is_compiling()), first_ended.set())), (second, lambda: None))]
        threads[0].start()
        first_began.wait(60)
        threads[1].start()
        [t.join(120) for t in threads]
        self.assertEqual((errors, while_second), ([], [True]))
        self.assertFalse(torch.compiler.is_compiling())

    def test_first_use_in_many_threads(self):
        """What is made once a process is made in all threads at once."""
        code = textwrap.dedent("""
            import threading, torch, fusebox
            sys_barrier, out = threading.Barrier(8), []
            def work(n):
                f = fusebox.compile(lambda x: torch.nn.functional.gelu(x).sum() + isinstance(x, torch.Tensor))
                sys_barrier.wait()
                out.append(f(torch.zeros(n + 1)).item())
            threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
            [t.start() for t in threads]
            [t.join(60) for t in threads]
            assert out == [1.0] * 8, out
            print("fine")
        """)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "fine"), done.stderr[-2000:])


if __name__ == "__main__":
    sys.setswitchinterval(1e-4)
    unittest.main()

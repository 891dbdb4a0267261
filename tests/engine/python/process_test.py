"""What a process does around compiled code: threads, forks, signals, memory, and its end. Each case is a script of its own."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest


def start(code, **options):
    prelude = "import os, signal, sys, threading, time\nimport torch\nfrom torch import nn\nimport fusebox\ntorch.set_num_threads(1)\n"
    return subprocess.Popen([sys.executable, "-c", prelude + textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, **options)


def run(code, timeout=240):
    process = start(code)
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out.strip(), err


class ProcessTest(unittest.TestCase):
    def passes(self, code):
        status, out, err = run(code)
        self.assertEqual((status, out), (0, "fine"), err[-2000:])

    def test_fork_after_compiling(self):
        self.passes("""
            import multiprocessing
            f = fusebox.compile(lambda x: (x.sin() * 2).sum(-1))
            x = torch.randn(4, 5)
            want = (x.sin() * 2).sum(-1)
            assert torch.allclose(f(x), want)

            def child(queue):
                y = torch.randn(3, 7)
                ok = torch.allclose(f(x), want) and torch.allclose(f(y), (y.sin() * 2).sum(-1))  # a hit, and a recompile
                queue.put(ok)

            context = multiprocessing.get_context("fork")
            queue = context.Queue()
            children = [context.Process(target=child, args=(queue,)) for _ in range(2)]
            [c.start() for c in children]
            assert all(queue.get(timeout=100) for _ in children)
            [c.join() for c in children]
            assert [c.exitcode for c in children] == [0, 0]
            print("fine")
        """)

    def test_a_child_has_a_background_of_its_own(self):
        """What waits for optimised code (artifacts, sessions, files) waited for a thread that only the parent has."""
        self.passes("""
            import faulthandler
            fusebox.install()
            f = fusebox.compile(lambda x: (x.sin() * 2).sum(-1))
            f(torch.randn(4, 5))
            child = os.fork()
            if not child:
                faulthandler.dump_traceback_later(60, exit=True)
                fusebox.compile(lambda x: (x.cos() * 3).sum(-1))(torch.randn(4, 5))
                torch.compiler.save_cache_artifacts()
                fusebox._engine.drain()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            print("fine")
        """)

    def test_a_first_call_loads_nothing_that_takes_seconds(self):
        """PyTorch's shape functions in Python load sympy and TorchDynamo, which takes longer than all compiling."""
        self.passes("""
            import torch.nn.functional as F
            before = set(sys.modules)
            net = nn.Sequential(nn.Linear(6, 8), nn.ReLU6(), nn.Linear(8, 8), nn.PReLU(), nn.LogSigmoid())

            @fusebox.compile
            def loss(x, y):
                x = (x - x.mean(0)) / (x.std(0) + 1e-3) + x.var(-1, keepdim=True)
                z = torch.nan_to_num(net(x))
                p = z.sigmoid()
                parts = F.mse_loss(z, y), F.huber_loss(z, y), F.smooth_l1_loss(z, y), F.binary_cross_entropy(p, y), torch.dot(z[0], z[1])
                return sum(parts) + torch.logit(p, 1e-3).mean()

            @fusebox.compile
            def others(x):
                image, volume = x[None, None], x.expand(1, 4, 8, 8)
                numbers = x.median(), x.median(0).values.sum(), x.kthvalue(2).values.sum(), x.trace(), F.glu(x).sum()
                numbers += x.count_nonzero() * x.take(torch.tensor(3)),
                at = torch.searchsorted(torch.arange(3.0), x.detach()) + torch.histc(x.detach(), 8)
                matrices = torch.cdist(x, x + 1), torch.matrix_exp(x), torch.linalg.solve_triangular(x, x.detach(), upper=True), at
                windows = F.unfold(image, 2), F.grid_sample(image, torch.zeros(1, 3, 3, 2), align_corners=False)
                windows += F.max_pool3d(volume, 2), F.adaptive_avg_pool3d(volume, 2)
                return sum(numbers) + sum(m.sum() for m in matrices + windows)

            loss(torch.randn(4, 6), torch.rand(4, 8)).backward()
            others(torch.randn(8, 8, requires_grad=True)).backward()
            loaded = set(sys.modules) - before
            print("fine" if not loaded & {"sympy", "torch._dynamo", "torch._inductor"} else sorted(loaded)[:40])
        """)

    def test_spawned_processes_have_the_engine_of_their_parent(self):
        script = textwrap.dedent("""
            import multiprocessing, sys

            def engine(_):
                import torch
                return torch.compile.__module__.partition(".")[0]

            if __name__ == "__main__":
                assert "torch" not in sys.modules
                for method in ("spawn", "fork"):
                    with multiprocessing.get_context(method).Pool(1) as pool:
                        print(method, pool.map(engine, [0])[0])
        """)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script.py")
            with open(path, "w") as file:
                file.write(script)
            for name, compiler in (("fusebox", "fusebox"), ("stock", "torch")):
                done = subprocess.run([sys.executable, "-m", "fusebox.host", path], capture_output=True, text=True, timeout=240,
                                      env={**os.environ, "FUSEBOX_ENGINE": name, "FUSEBOX_RECORD": "0"})
                self.assertEqual((done.returncode, done.stdout), (0, f"spawn {compiler}\nfork {compiler}\n"), done.stderr[-2000:])

    def test_threads_that_recompile_one_function(self):
        self.passes("""
            net = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 4))
            f = fusebox.compile(net)
            errors = []

            def work(seed):
                generator = torch.Generator().manual_seed(seed)
                try:
                    for i in range(40):
                        x = torch.randn(1 + (seed + i) % 6, 8, generator=generator)
                        if i % 3:
                            with torch.no_grad():
                                assert torch.allclose(f(x), net(x), atol=1e-5)
                        else:
                            torch.autograd.grad(f(x).sum(), list(net.parameters()))
                except BaseException as error:
                    errors.append(repr(error))

            threads = [threading.Thread(target=work, args=(s,)) for s in range(8)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            assert not errors, errors
            print("fine")
        """)

    def test_interrupt_while_capturing_and_running(self):
        self.passes("""
            import warnings
            warnings.simplefilter("ignore")

            def slow(x, n):
                for i in range(n):
                    x = torch.sin(x) * 1.01 + i
                return x

            class Late(Exception):
                def __init__(self, why, number):
                    super().__init__(why, number)

            def ring(number, frame):
                raise Late("the time is over", number)

            f = fusebox.compile(slow)
            x = torch.randn(64)
            for handler, error in ((signal.default_int_handler, KeyboardInterrupt), (ring, Late)):
                signal.signal(signal.SIGALRM, handler)
                for k in range(120):
                    if k % 12 == 0:
                        fusebox.reset()
                    signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.0037 * (k % 12) + 0.0003 * (k // 12))
                    end = time.monotonic() + 60
                    try:
                        while time.monotonic() < end:
                            f(x, 300 + k % 12)
                        raise AssertionError(f"{error.__name__} number {k} is lost")
                    except error as raised:
                        assert error is KeyboardInterrupt or raised.args == ("the time is over", signal.SIGALRM), raised.args
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
            assert torch.allclose(f(x, 50), slow(x, 50), atol=1e-4)
            assert not torch.compiler.is_compiling()
            print("fine")
        """)

    def test_memory_of_calls_and_of_recompiles(self):
        self.passes("""
            import gc
            import warnings
            warnings.simplefilter("ignore")

            def resident():
                gc.collect()
                with open("/proc/self/statm") as f:
                    return int(f.read().split()[1]) * 4096 / 1e6

            def g(x, d):
                d["n"] = d["n"] + 1
                return {"y": x * 2 + d["n"] % 2, "parts": [x[0], x.sum()]}

            f = fusebox.compile(g)
            x, d = torch.randn(64, 64), {"n": 0}
            for _ in range(500):
                f(x, {"n": 0})
            before = resident()
            for _ in range(10000):
                f(x, {"n": 0})
            calls = resident() - before
            for i in range(60):
                fusebox.reset()
                fusebox.compile(lambda x: x * 2 + 1)(x)
            before = resident()
            for i in range(300):
                fusebox.reset()
                fusebox.compile(lambda x: x * 2 + 1)(x)
            recompiles = resident() - before
            assert calls < 8, calls
            assert recompiles < 30, recompiles
            print("fine")
        """)

    def test_ends_with_live_compiled_objects(self):
        status, out, err = run("""
            net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
            f = fusebox.compile(net)
            y = f(torch.randn(8, 64, requires_grad=True)).sum()
            sys.compiled = f
            keep = [y, f]
            thread = threading.Thread(target=lambda: [f(torch.randn(i + 1, 64)) for i in range(5)])
            thread.start()
            thread.join()
            sys.exit(7)
        """)
        self.assertEqual((status, out), (7, ""), err[-2000:])
        self.assertNotIn("Fatal", err)

    def test_uncaught_error_in_a_compiled_function(self):
        status, out, err = run("""
            def inner(x):
                raise ValueError("wrong " + str(tuple(x.shape)))

            @fusebox.compile
            def f(x):
                y = x + 1
                return inner(y)

            f(torch.randn(2))
        """)
        self.assertEqual(status, 1)
        self.assertIn("ValueError: wrong (2,)", err)
        self.assertIn("in inner", err)

    def test_killed_while_compiling(self):
        process = start("""
            import itertools
            for i in itertools.count():
                fusebox.reset()
                fusebox.compile(lambda x: (x.sin() + i).cos().softmax(-1))(torch.randn(16, 16))
                if i == 0:
                    print("ready", flush=True)  # from now on it does nothing else
        """)
        self.assertEqual(process.stdout.readline().strip(), "ready")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGTERM)

    def test_recursion_without_end(self):
        self.passes("""
            def down(x):
                return down(x + 1)

            try:
                fusebox.compile(down)(torch.ones(1))
            except RecursionError:
                print("fine")
        """)


if __name__ == "__main__":
    unittest.main()

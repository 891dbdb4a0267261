"""What must neither end the process nor be lost without a word: settings, modes, interrupts, recursion; what is freed with what."""

import gc
import os
import pathlib
import signal
import sys
import textwrap
import unittest
import warnings
import weakref

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import fusebox

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import processes  # noqa: E402

OF_MODULE = 1.0


def run(code):
    prelude = "import gc, os, signal, sys, threading, weakref\nimport torch\nimport fusebox\nx = torch.ones(2)\n"
    done = processes.run_python(["-c", prelude + textwrap.dedent(code)], env=os.environ, timeout=240)
    return done.returncode, done.stdout.strip(), done.stderr[-2000:]


class ProcessTest(unittest.TestCase):
    def passes(self, code):
        status, out, err = run(code)
        self.assertEqual((status, out), (0, "fine"), err)

    def test_names_that_are_no_utf8(self):
        """Files, modules and attributes may have them: surrogates stand for bytes that no encoding knows."""
        self.passes("""
            space = {}
            exec(compile("def f(x, k):\\n    k = getattr(k, 'a\\\\udcff')\\n    return x.sin() + k", "/tmp/bad\\udcff/p.py", "exec"), space)
            sys.modules["mod\\udcff"] = module = type(sys)("mod\\udcff")
            exec("C = 3\\ndef q(x): return x + C", module.__dict__)
            class Holder: pass
            holder = Holder()
            setattr(holder, "a\\udcff", 2)
            f = fusebox.compile(space["f"])
            assert torch.equal(f(x, holder), x.sin() + 2)
            setattr(holder, "a\\udcff", 5)
            assert torch.equal(f(x, holder), x.sin() + 5)
            assert torch.equal(fusebox.compile(lambda x: module.q(x) * 2)(x), (x + 3) * 2)
            print("fine")
        """)

    def test_precision_by_the_newer_interface(self):
        self.passes("""
            f = fusebox.compile(lambda x: x @ x, fullgraph=True)
            for holder, value in ((torch.backends, "tf32"), (torch.backends.mkldnn.matmul, "bf16"), (torch.backends.cudnn, "ieee")):
                holder.fp32_precision = value
                assert f(torch.ones(2, 2)).tolist() == [[2.0, 2.0], [2.0, 2.0]]
            assert fusebox.counters()["capture_failures"] == 0, fusebox.counters()
            print("fine")
        """)

    def test_deep_recursion_does_not_use_up_the_stack(self):
        self.passes("""
            sys.setrecursionlimit(40000)
            def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
            f = fusebox.compile(lambda x: x + deep(30000))
            assert f(torch.zeros(1)).item() == 30000
            g = fusebox.compile(lambda x: x * 2, fullgraph=True)  # hooks are back
            before = fusebox.counters()["graphs"]
            assert g(x).tolist() == [2.0, 2.0] and fusebox.counters()["graphs"] == before + 1
            print("fine")
        """)

    def test_ctrl_c_while_capturing(self):
        self.passes("""
            def f(x):
                for i in range(10 ** 7): x = x + 1
                return x
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            try:
                fusebox.compile(f)(x)
            except KeyboardInterrupt:
                g = fusebox.compile(lambda x: x * 2, fullgraph=True)
                assert g(x).tolist() == [2.0, 2.0]
                print("fine")
        """)

    def test_a_custom_function_without_a_python_object_behind_its_tensors(self):
        self.passes("""
            import io
            stored = io.BytesIO()
            torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2).eval()), stored)
            stored.seek(0)
            loaded = torch.jit.load(stored)
            class F(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x): return loaded(x)
                @staticmethod
                def backward(ctx, g): return g
            f = fusebox.compile(lambda x: F.apply(x) * 2)
            for _ in range(3): assert torch.equal(f(x), loaded(x) * 2)
            print("fine")
        """)


class Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class ModesTest(unittest.TestCase):
    def setUp(self):
        torch.compiler.reset()

    def test_the_default_device_is_compiled_and_guarded(self):
        def f(x):
            return torch.zeros(2), torch.nn.functional.relu(x) + torch.arange(2, device="cpu"), x.new_ones(2)

        whole, x = fusebox.compile(f, fullgraph=True), torch.ones(2)
        parts = fusebox.compile(f)  # what has no data is made outside of graphs
        for device in (None, "cpu", "meta", "cpu"):
            torch.set_default_device(device)
            try:
                want, got = f(x), (parts if device == "meta" else whole)(x)
            finally:
                torch.set_default_device(None)
            self.assertEqual([t.device for t in got], [t.device for t in want], device)
            self.assertTrue(torch.equal(got[1], want[1]))
        with torch.device("meta"):
            self.assertEqual(parts(x)[0].device.type, "meta")

    def test_dispatch_modes_are_told(self):
        said = fusebox.explain(lambda x: x * 2)
        with Dispatched():
            told = said(torch.ones(2))
            self.assertTrue(any("mode is active" in failure for failure in told.failures), told)
            with self.assertRaisesRegex(Exception, "mode is active"):
                fusebox.compile(lambda x: x * 2, fullgraph=True)(torch.ones(2))
            self.assertEqual(fusebox.compile(lambda x: x * 2)(torch.ones(2)).tolist(), [2.0, 2.0])

    def test_function_modes_are_followed(self):
        class Doubled(TorchFunctionMode):
            asked = 0

            def __torch_function__(self, function, types, args=(), kwargs=None):
                self.asked = self.asked + 1
                return function(*args, **(kwargs or {})) * 2

        f = fusebox.compile(lambda x: x * 3 + 1, fullgraph=True)
        for asked in (2, 4, 6):
            x, mode = torch.randn(2), Doubled()
            mode.asked = asked - 2
            with mode:
                got = f(x)
            self.assertEqual(mode.asked, asked)
            self.assertTrue(torch.equal(got, (x * 3 * 2 + 1) * 2))
        self.assertTrue(torch.equal(f(x), x * 3 + 1))
        ones = torch.ones(2)
        with Doubled() as mode:  # a function of Python is not asked again
            got = fusebox.compile(lambda x: x * 2, fullgraph=True, backend=lambda module, inputs: module)(ones)
        self.assertEqual((mode.asked, got.tolist()), (1, [4.0, 4.0]))
        with torch.device("cpu"), Doubled(), self.assertRaisesRegex(Exception, "mode is active"):  # what it runs makes needs the device's mode
            fusebox.compile(lambda x: x * 2, fullgraph=True, backend=lambda module, inputs: module)(ones)


class CustomFunctionTest(unittest.TestCase):
    def setUp(self):
        torch.compiler.reset()

    def test_backward_that_only_computes_is_in_the_graph(self):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, k):
                ctx.save_for_backward(x, x.exp())
                ctx.k = k
                ctx.mark_non_differentiable(mask := x > 0)
                return x * k, mask

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx, g, _):
                x, e = ctx.saved_tensors
                return (torch.where(x > 0, g * ctx.k, e.to(torch.float32)) if ctx.needs_input_grad[0] else None), None

        c = fusebox.compile(lambda x, k: F.apply(x, k)[0].sum(), fullgraph=True)
        for k in (2.0, 3.0):
            x = torch.randn(5, requires_grad=True)
            (want,) = torch.autograd.grad(F.apply(x, k)[0].sum(), x)
            (got,) = torch.autograd.grad(c(x, k), x)
            self.assertTrue(torch.allclose(got, want))

    def test_what_forward_reads_is_guarded_and_what_it_does_is_done(self):
        log, state = [], {"k": 2.0}

        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                log.append(state["k"])
                return x * state["k"]

            @staticmethod
            def backward(ctx, g):
                return g

        c, x = fusebox.compile(lambda x: F.apply(x) + 1, fullgraph=True), torch.ones(1, requires_grad=True)
        out = []
        for k in (2.0, 2.0, 3.0):
            state["k"] = k
            out.append(c(x).item())
        self.assertEqual((out, log), ([3.0, 3.0, 4.0], [2.0, 2.0, 3.0]))

    def test_backward_that_reads_or_writes_runs_when_it_is_due(self):
        state, log = {"k": 2.0}, []

        class Reads(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                return g * state["k"]

        class Writes(Reads):
            @staticmethod
            def backward(ctx, g):
                log.append("backward")
                return g

        for cls, want in ((Reads, [5.0]), (Writes, [1.0])):
            y = fusebox.compile(lambda x: cls.apply(x * 1).sum())(x := torch.ones(1, requires_grad=True))
            state["k"] = 5.0
            self.assertEqual(log, [])
            y.backward()
            self.assertEqual(x.grad.tolist(), want)
            with self.assertRaisesRegex(Exception, "backward of"):
                fusebox.compile(lambda x: cls.apply(x * 1).sum(), fullgraph=True)(x)
        self.assertEqual(log, ["backward"])

    def test_constants_that_backward_reads_are_looked_at_again_when_it_is_due(self):
        class OfModule(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                return g * OF_MODULE

        class OfClass(OfModule):
            own = 2.0

            @staticmethod
            def backward(ctx, g):
                return g * OfClass.own

        def of_module(value):
            global OF_MODULE
            OF_MODULE = value

        def of_class(value):
            OfClass.own = value

        def gradient(f, between=lambda: None):
            y = f(x := torch.ones(1, requires_grad=True))
            between()
            y.backward()
            return x.grad.item()

        for cls, change in ((OfModule, of_module), (OfClass, of_class)):
            f = lambda x, cls=cls: cls.apply(x * 1).sum()  # noqa: E731
            change(3.0)
            c = fusebox.compile(f, fullgraph=True)
            self.assertEqual(gradient(c), gradient(f))
            change(4.0)
            self.assertEqual(gradient(c), gradient(f))
            c = fusebox.compile(f)
            with self.assertRaisesRegex(RuntimeError, "which has changed since"):
                gradient(c, lambda: change(5.0))
            for value in (5.0, 6.0, 4.0):  # from then on it runs when it is due
                self.assertEqual(gradient(c, lambda: change(value)), gradient(f, lambda: change(value)))


class LifetimeTest(unittest.TestCase):
    def test_code_dies_with_everything_that_was_compiled_for_it(self):
        source = """
class Base:
    scale = 2.0
    @property
    def twice(self): return self.scale * 2
    @staticmethod
    def one(): return 1.0
class Model(Base, torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
    def forward(self, x): return helper(x, self) * self.twice
def helper(x, m, k=1.0): return x * m.weight + m.one() * k
class Result:
    __slots__ = ("value",)
    def __init__(self, value): self.value = value
def step(x): return Result(model(x)), helper, lambda y: step(y)
model = Model()
"""
        refs = []
        for _ in range(3):
            scope = {"torch": torch}
            exec(source, scope)
            refs += [weakref.ref(scope[n]) for n in ("step", "helper", "Model", "Base", "Result", "model")]
            refs += [weakref.ref(scope["step"].__code__), weakref.ref(scope["model"].weight)]
            for _ in range(2):
                fusebox.compile(scope["step"])(torch.ones(2))
            del scope
        gc.collect()
        self.assertEqual([r() for r in refs if r() is not None], [])

    def test_an_object_that_dies_ends_its_entry_and_recompiling_has_an_end(self):
        class Key:
            pass

        def f(x, a, b):
            return x * (2.0 if a == b else 1.0)

        before = fusebox.counters()["graphs"]
        c, x = fusebox.compile(f), torch.ones(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(40):
                self.assertEqual(c(x, Key(), Key()).tolist(), [1.0, 1.0])
        self.assertLessEqual(fusebox.counters()["graphs"] - before, 8)


if __name__ == "__main__":
    unittest.main()

"""Floats that are made of sizes, beside tensors: values of the graph, not constants of a size."""

import collections
import math
import os
import random
import sqlite3
import tempfile
import unittest

import torch
import torch.nn.functional as F

import fusebox


def number(x):
    return math.sqrt(x.shape[0]) / 3


def written(x):
    y = x.clone()
    y[0] = number(x)
    y[:, 1:2] = 2 * number(x)
    return y


@torch.jit.script
def scripted(x: torch.Tensor, n: int, a: float):
    return x[:n] * a


@torch.library.custom_op("fusebox_floats::reckoned", mutates_args=())
def reckoned(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@reckoned.register_fake
def _(x):
    n = x.shape[0]
    sizes = [math.trunc(n / 2), torch.sym_int(n * 1.5), torch.sym_sum([n, n, 1]), torch._sym_sqrt(n), +n]
    return torch.empty_like(x) if all(s is not None for s in sizes) else None


# Without another compile after the one that makes sizes symbols.
ONE_ENTRY = {
    "operators": lambda x: (x + number(x), number(x) - x, x * number(x), number(x) / (x.abs() + 1), x / number(x)),
    "powers": lambda x: (x.abs() ** number(x), number(x) ** x, x // number(x), x % number(x), number(x) % (x.abs() + 1)),
    "comparisons": lambda x: (x < number(x) - 0.5, x >= number(x) - 0.5, x == number(x)),
    "choices": lambda x: (torch.where(x > 0, x, number(x)), x.masked_fill(x > 0, number(x)), x.clamp(-number(x), number(x))),
    "filled": lambda x: (torch.full((3,), number(x)), torch.full_like(x, number(x)), x.new_full((2,), number(x)), x.clone().fill_(number(x))),
    "factors": lambda x: (torch.add(x, x, alpha=number(x)), torch.addcmul(x, x, x, value=number(x)), torch.lerp(x, x * 2, number(x))),
    "activations": lambda x: (F.leaky_relu(x, number(x)), F.elu(x, number(x)), F.hardtanh(x, -number(x), number(x)), F.threshold(x, 0.1, number(x))),
    "written": written,
    "resized": lambda x: F.interpolate(x[None, None], scale_factor=1.5, recompute_scale_factor=True),
    "described": lambda x: torch.ops.fusebox_floats.reckoned(x) + 1,
    "in_place": lambda x: x.clone().mul_(number(x)).add_(number(x)),
    "beside_ints": lambda x: (torch.arange(x.shape[0]) * number(x), torch.arange(x.shape[0]) / number(x)),
    "beside_truths": lambda x: (x > 0) * number(x),
    "beside_single_numbers": lambda x: (x.sum() * number(x), x.double().sum() + number(x)),
    "lists": lambda x: torch._foreach_mul([x, x * 2], number(x)),
    "other_types": lambda x: (x.double() * number(x), x.bfloat16() * number(x)),
    "functions": lambda x: x * math.exp(-number(x)) + math.log(number(x) + 1) + max(number(x), 0.1) + abs(-number(x)) + 0.9 ** x.shape[0],
    "means": lambda x: x.sum() * (1 / x.numel()) + x / math.sqrt(x.shape[-1]),
    "returned": lambda x: (x * 2, number(x)),
}
# With one for each value, because the value decides: of sizes, or of a type.
EACH_VALUE = {
    "steps": lambda x: torch.arange(0, 1, 1 / x.shape[0]),
    "ints_compared": lambda x: torch.arange(x.shape[0]) < number(x),
    "narrow_number": lambda x: x.bfloat16().sum() * number(x),
    "decisions": lambda x: x * 2 if number(x) > 0.9 else x * 3,
    "text": lambda x: (x, f"{number(x):.3f}"),
}


def same(test, got, want):
    if isinstance(want, torch.Tensor):
        test.assertEqual((got.dtype, got.stride()), (want.dtype, want.stride()))
        tolerance = 1e-2 if want.dtype == torch.bfloat16 else 1e-5
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)
    elif isinstance(want, (tuple, list)):
        for a, b in zip(got, want, strict=True):
            same(test, a, b)
    else:
        test.assertEqual((type(got), got), (type(want), want))


class FloatsOfSizes(unittest.TestCase):
    SIZES = 5, 6, 7, 9, 12, 4

    def recompiles(self, f, backend, train=False):
        fusebox.reset()
        compiled, before = fusebox.compile(f, backend=backend), fusebox.counters()
        for n in self.SIZES:
            torch.manual_seed(n)
            x = torch.randn(n, n + 3, requires_grad=train)
            want, got = f(x), compiled(x)
            same(self, got, want)
            if train:
                grads = [torch.autograd.grad(sum(t.float().sum() for t in (r if isinstance(r, (tuple, list)) else [r])), x)[0] for r in (got, want)]
                torch.testing.assert_close(*grads, rtol=1e-2, atol=1e-2)
        after = fusebox.counters()
        self.assertEqual(after["graph_breaks"], before["graph_breaks"])
        return after["recompiles"] - before["recompiles"]

    def test_one_entry_serves_all_sizes(self):
        for name, f in ONE_ENTRY.items():
            for backend in "inductor", "aot_eager":
                with self.subTest(name, backend=backend):
                    self.assertEqual(self.recompiles(f, backend), 1)

    def test_values_that_decide(self):
        for name, f in EACH_VALUE.items():
            with self.subTest(name):
                self.recompiles(f, "inductor")

    def test_gradients(self):
        for name in "operators", "choices", "means", "beside_single_numbers", "written", "in_place":
            with self.subTest(name):
                self.assertEqual(self.recompiles(ONE_ENTRY[name], "inductor", train=True), 1)


class Scaled(torch.nn.Module):
    def forward(self, x, scale, **kwargs):
        return x * scale, kwargs


scaled = Scaled()


def keywords_handed_on(x, **kwargs):
    kwargs["flag"] = True
    return scaled(x, **kwargs), kwargs | {"scale": 2}


def averaged(x, a, b):
    """A running average, of a float that changes and of what is read from a tensor, beside tensors."""
    loss = x.square().mean()
    average = 0.9 * a[0] + 0.1 * loss.item()
    return loss * average, x - average, average


def after_an_append(x, a, b):
    rows = []
    rows.extend(tuple(a))
    rows.append((b, b * 2))
    return rows, x * rows[0]


@torch.compiler.disable
def numbers(x, value):
    return value, value * 2


def over_breaks(x, value):
    rows = [numbers(x, value)]
    torch._dynamo.graph_break()
    rows.append((1.0, x + 1))
    return rows, x + 2


class Said:
    value = 0.0

    def text(self):
        torch._dynamo.graph_break()
        return f"loss {self.value:.3f}"

    __str__ = text


class FloatsThatChange(unittest.TestCase):
    def test_texts_that_a_call_with_a_break_gives(self):
        for program in (lambda said, x: str(said), lambda said, x: (said.text(), x + 1), lambda said, x: (x * 2, said.text() + "!")):
            fusebox.reset()
            compiled, said, before = fusebox.compile(program), Said(), fusebox.counters()
            for n in range(14):
                said.value, x = n / 7, torch.randn(3)
                self.assertEqual(str(compiled(said, x)), str(program(said, x)))
            self.assertEqual(fusebox.counters()["recompile_limits"], before["recompile_limits"])

    def test_those_that_lie_on_the_stack_over_a_break(self):
        fusebox.reset()
        compiled, before = fusebox.compile(over_breaks), fusebox.counters()
        for n in range(12):
            x = torch.randn(3)
            torch.testing.assert_close(compiled(x, n / 8), over_breaks(x, n / 8))
        after = fusebox.counters()
        self.assertLess(after["recompiles"] - before["recompiles"], 4)
        self.assertEqual(after["recompile_limits"], before["recompile_limits"])

    def test_all_that_changed_at_once(self):
        programs = {
            "arguments": (lambda x, a, b: x * a + b, lambda n: (torch.randn(3), n / 8, n / 16)),
            "beside_sizes": (lambda x, a, b: x * a + x.shape[0] * b, lambda n: (torch.randn(n), n / 8, n)),
            "in_a_list": (lambda x, a, b: x * a[0] + a[1], lambda n: (torch.randn(3), [n / 8, n / 16], 0)),
            "moved_in_lists": (lambda x, a, b: ([*a, 2.0], a + [b], [1.0] + a, a.copy(), a[:1], a * 2, tuple(a), x + 1), lambda n: (torch.randn(3), [n / 8, n / 16], 0.5)),
            "moved_in_tuples": (lambda x, a, b: (a + (b,), list(a), a * 2, [1] + [*a], sum(a), x + 1), lambda n: (torch.randn(3), (n / 8, n / 16), 0.5)),
            "moved_in_dicts": (lambda x, a, b: (a.copy(), {**a, "c": b}, dict(a), dict(c=a), x + 1), lambda n: (torch.randn(3), {"a": n / 8, "b": n / 16}, 0.5)),
            "tuples_in_lists": (lambda x, a, b: (a + a, a[:], a * 2, list(a[0]), x + 1), lambda n: (torch.randn(3), [(n / 8, 1), (n / 16, 2)], 0.5)),
            "looked_through": (lambda x, a, b: (sorted(a), max(a), min(a), x * sum(a)), lambda n: (torch.randn(3), (n / 8, n / 16), 0.5)),
            "keywords_handed_on": (lambda x, a, b: keywords_handed_on(x, **a), lambda n: (torch.randn(3), {"scale": n / 8, "more": n / 16}, 0.5)),
            "scripted": (lambda x, a, b: scripted(x, b, a) + 1, lambda n: (torch.randn(20), n / 8, n)),
            "averaged": (averaged, lambda n: (torch.randn(3), [n / 8], 0.5)),
            "after_an_append": (after_an_append, lambda n: (torch.randn(3), [n / 8], n / 16)),
            "that_decide": (lambda x, a, b: (x * a if a > 0 else x) + b, lambda n: (torch.randn(3), n / 8, n / 16)),
        }
        for name, (f, draw) in programs.items():
            with self.subTest(name):
                fusebox.reset()
                compiled, before = fusebox.compile(f), fusebox.counters()
                for n in 3, 5, 7, 6:
                    arguments = draw(n)
                    torch.testing.assert_close(compiled(*arguments), f(*arguments))
                self.assertEqual(fusebox.counters()["recompiles"] - before["recompiles"], 1)

    def test_histories_that_are_written_and_read(self):
        """What a list or deque holds moves with each write; each element stays one that changes, wherever it lies now."""
        def window(x, w, v):
            w.append(v)
            return x * (sum(w) / len(w)), sum(w) / len(w)

        def queue(x, w, v):
            w.append(v)
            oldest = w.popleft() if isinstance(w, collections.deque) else w.pop(0)
            return x * oldest + w[0], list(w), oldest, w[-1]

        def turned(x, w, v):
            w.rotate(1)
            w.appendleft(w.pop() + v)
            w.extendleft([v, 2 * v])
            w.popleft(), w.pop(), w.reverse()
            return x + w[0], w[1], x - w[-1]

        def spliced(x, w, v):
            w.insert(1, v)
            del w[3]
            w.reverse()
            w[0:2] = [v + 1, v + 2]
            w += [w.pop(), v]
            w.pop(-2)
            return x * w[0] + w[1] * w[2], [e * 2 for e in w], max(w), sum(w[-2:])

        kinds = {window: (collections.deque, list), queue: (collections.deque, list), turned: (collections.deque,), spliced: (list,)}
        for f, makes in kinds.items():
            for make in makes:
                with self.subTest(f.__name__, kind=make.__name__):
                    fusebox.reset()
                    compiled, before = fusebox.compile(f), fusebox.counters()
                    full = {"maxlen": 3} if f is window and make is collections.deque else {}
                    mine, eagers = make([0.5, 1.5, 2.5], **full), make([0.5, 1.5, 2.5], **full)
                    for step in range(9):
                        x, v = torch.rand(3), step * 1.37 + 0.1
                        torch.testing.assert_close(compiled(x, mine, v), f(x, eagers, v))
                        self.assertEqual(list(mine), list(eagers))
                        if f is window and not full:
                            del mine[:1], eagers[:1]
                    after = fusebox.counters()
                    self.assertLessEqual(after["recompiles"] - before["recompiles"], 2)
                    self.assertEqual(after["graph_breaks"], before["graph_breaks"])

    def test_sums_keep_what_python_keeps(self):
        """Since 3.12 CPython adds what additions round off: to the last bit, with ints, a start and tensors among the floats."""
        programs = {
            "mean": lambda x, l: (x + 1, sum(l) / len(l)),
            "start": lambda x, l: (x, sum(l, 0.5), sum(l, l[1])),
            "ints": lambda x, l: (x, sum([1, True, *l, 3]), sum(v * 2 for v in l)),
            "tensor": lambda x, l: (sum([*l, x, l[0]]), x * sum(l)),
        }
        draws = random.Random(7)
        for name, f in programs.items():
            with self.subTest(name):
                fusebox.reset()
                compiled, before = fusebox.compile(f), fusebox.counters()
                for _ in range(9):
                    numbers = [draws.uniform(-1e3, 1e3) * 10 ** draws.randint(-8, 8) for _ in range(7)]
                    x = torch.ones(3, dtype=torch.float64)
                    self.assertEqual(str(compiled(x, numbers)), str(f(x, numbers)))
                    self.assertEqual(compiled(x, numbers)[1].tolist() if name == "tensor" else compiled(x, numbers)[1:],
                                     f(x, numbers)[1].tolist() if name == "tensor" else f(x, numbers)[1:])
                self.assertEqual(fusebox.counters()["recompiles"] - before["recompiles"], 1)
        for numbers in ([1e308, 1e308, 1.5], [math.inf, 1.0, -math.inf], [-0.0, -0.0], [1.0] * 100):
            self.assertEqual(repr(fusebox.compile(programs["mean"])(torch.ones(1), numbers)[1]), repr(programs["mean"](torch.ones(1), numbers)[1]))

    def test_texts_of_them_are_made_when_the_graph_has_run(self):
        """A number that is told does not make a graph for each value, and breaks none; nor does a text that is handed on."""
        programs = {
            "f-string": lambda x, v: (x + 1, f"{v:.3f} of {v!r}"),
            "format": lambda x, v: (x + 1, "{} {:>9.2f}".format(v, v), format(v, "8.3f"), str(v)),
            "percent": lambda x, v: (x + 1, "%s %5.1f%%" % (v, v), "%.2f" % v),
            "put together": lambda x, v: (x + 1, ", ".join(f"{k}={u:.1f}" for k, u in {"a": v, "b": v * 2}.items()).upper().rjust(30)),
            "in containers": lambda x, v: (x + 1, {"loss": [f"{v}"]}, str([v])),
            "of data": lambda x, v: (x + v, f"{(x * v).sum().item():.3f}", str(x.sum().item())),
            "given": lambda x, v: (x + 1, v, [v], f"<{v}>"),
        }
        for name, f in programs.items():
            for kind in (str,) if name == "given" else (float, int):
                with self.subTest(name, kind=kind):
                    fusebox.reset()
                    compiled, before = fusebox.compile(f), fusebox.counters()
                    for step in range(12):
                        x, v = torch.ones(3), kind(step * 7.37 + 3.1)
                        self.assertEqual(compiled(x, v)[1:], f(x, v)[1:])
                    after = fusebox.counters()
                    self.assertEqual([after[key] - before[key] for key in ("recompiles", "graph_breaks")], [1, 0])

    def test_sessions_say_what_they_are(self):
        def scaled(x, rate):
            return x * 2 if rate > 0.5 else x * math.sqrt(rate)

        fusebox.reset()
        compiled, x = fusebox.compile(scaled), torch.randn(4)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s.fusebox")
            with fusebox.record(path):
                for rate in 0.1, 0.25, 0.3:
                    torch.testing.assert_close(compiled(x, rate), scaled(x, rate))
            with sqlite3.connect(path) as db:
                self.assertEqual(db.execute("SELECT kind, hint FROM symbols WHERE source = 'L[''rate'']'").fetchall(), [("float", 0.25)])


if __name__ == "__main__":
    unittest.main()

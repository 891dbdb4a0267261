"""What is captured whole, and into how few graphs: constructs that must not break, and loops whose body is compiled once."""

import functools
import importlib
import itertools
import operator
import pathlib
import sys
import tempfile
import warnings

import torch
from torch import nn

import fusebox
from checks.script_checks import expect, run


def whole(what, f, *args):
    """f(*args) is one graph, and equals eager."""
    fusebox.reset()
    try:
        got = fusebox.compile(f, fullgraph=True)(*args)
    except Exception as error:
        expect(False, f"{what}: {type(error).__name__}: {error}")
        return
    torch.testing.assert_close(got, f(*args), msg=lambda m: f"{what}: {m}")


def counted(f, *args, calls=1):
    fusebox.reset()
    before = fusebox.counters()
    compiled = fusebox.compile(f)
    for _ in range(calls):
        got = compiled(*args)
    after = fusebox.counters()
    return got, {k: after[k] - before[k] for k in ("graphs", "graph_breaks", "recompiles", "recompile_limits")}


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


class Squared(torch.autograd.Function):
    """x² k, with a gradient that tells it from autograd's own."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 5 * x * grad * ctx.k, None


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.sin(), x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, grad, _):
        (x,) = ctx.saved_tensors
        return grad * 3 * x


def test_functions_with_a_gradient_of_their_own():
    def f(x):
        return Squared.apply(x, 3.0).sum() + Sine.apply(x)[0].sum()

    inputs = torch.randn(5)
    whole("autograd.Function", f, inputs)
    grads = []
    for g in (f, fusebox.compile(f, fullgraph=True)):
        x = inputs.clone().requires_grad_()
        g(x).backward()
        grads.append(x.grad)
    torch.testing.assert_close(*grads)
    torch.testing.assert_close(grads[0], 15 * inputs + 3 * inputs)


class Reversed(torch.autograd.Function):
    """A view, or the input itself, with another gradient than a view's."""

    @staticmethod
    def forward(ctx, x, as_view):
        return x.view_as(x) if as_view else x

    @staticmethod
    def backward(ctx, grad):
        return -3 * grad, None


def test_views_by_functions_keep_their_gradient():
    programs = {
        "of an input": lambda x, v: Reversed.apply(x, v),
        "of an inner value": lambda x, v: Reversed.apply(x.sin(), v),
        "beside its base": lambda x, v: (lambda h: (h, Reversed.apply(h, v)))(x.sin()),
        "behind a view": lambda x, v: Reversed.apply(x.view(2, 3), v),
        "and viewed": lambda x, v: Reversed.apply(x, v).view(3, 2),
        "beside its view": lambda x, v: (lambda r: (r, r.view(3, 2)))(Reversed.apply(x.cos(), v)),
        "twice": lambda x, v: Reversed.apply(Reversed.apply(x, v), not v),
        "and an operator": lambda x, v: (lambda r: (r, r[0]))(Reversed.apply(x, v) * 2),
    }
    for name, f in programs.items():
        for as_view in (True, False):
            fusebox.reset()
            inputs, results = torch.randn(6, requires_grad=True), []
            for g in (f, fusebox.compile(f, fullgraph=True)):
                got = g(inputs, as_view)
                got = got if isinstance(got, tuple) else (got,)
                weights = [torch.linspace(1, 2, t.numel()).view(t.shape) for t in got]
                results.append((got, torch.autograd.grad(sum((t * w).sum() for t, w in zip(got, weights)), inputs)))
            torch.testing.assert_close(*results, msg=lambda m: f"{name}, as_view={as_view}: {m}")


def test_match_statements():
    def f(t, command):
        match command:
            case Point(0, y=k):
                return t * k
            case {"scale": s, **rest}:
                return t * s + len(rest)
            case ["add", *values]:
                return t + sum(values)
            case str() | None:
                return t - 1
            case _:
                return t

    for command in (Point(0, 3), Point(1, 3), {"scale": 2, "a": 1}, ["add", 1, 2], "text", None, 5):
        whole(f"match {command!r}", f, torch.ones(3), command)


def test_iterators():
    def tools(x):
        groups = [(k, sum(g)) for k, g in itertools.groupby([1, 1, 2], lambda v: v)]
        taken = sum(itertools.takewhile(lambda v: v < 3, itertools.count())) + len(list(itertools.dropwhile(bool, [1, 0, 2])))
        runs = list(itertools.accumulate([x, x, x], operator.mul))
        return runs[-1] * taken + groups[0][1] + sum(itertools.starmap(pow, [(2, 3)])) + len(list(itertools.compress("abc", [1, 0, 1])))

    whole("itertools", tools, torch.full((2,), 2.0))
    whole("an iterator from outside", lambda x, it: [x * v for v in it][0] + 1, torch.ones(2), [1, 2])

    given = iter([torch.ones(2), torch.full((2,), 2.0), torch.full((2,), 3.0)])

    def two(it):
        return next(it) + next(it)

    got = fusebox.compile(two, fullgraph=True)(given)
    expect(got.tolist() == [3, 3] and next(given).tolist() == [3, 3], "an iterator from outside is advanced as far as it was read")


def test_generators_that_are_dropped():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    whole("next() of generators inside each other", lambda x: model(x.to(next(model.parameters()).dtype)), torch.ones(2, 3))
    whole("zip of two of them", lambda x: [p + q for p, q in zip(model.parameters(), model.parameters())], torch.ones(2, 3))


def test_modules_that_are_imported_late():
    def f(x):
        return x * 2 if importlib.import_module("this_is_not_there_yet").FLAG else x

    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "this_is_not_there_yet.py").write_text("FLAG = True\n")
        sys.path.insert(0, folder)
        try:
            whole("a module that the region imports", f, torch.ones(2))
            compiled = fusebox.compile(f)
            compiled(torch.ones(2))
            sys.modules["this_is_not_there_yet"].FLAG = False
            torch.testing.assert_close(compiled(torch.ones(2)), torch.ones(2))
        finally:
            sys.path.remove(folder)
            sys.modules.pop("this_is_not_there_yet", None)


def test_operator_objects():
    pick, name, call = operator.itemgetter(1, 0), operator.attrgetter("T.shape"), operator.methodcaller("mul", 3)

    def f(x):
        a, b = pick((x, x * 2))
        return call(a) + b, name(x)

    whole("operator objects", f, torch.ones(2, 3))


def test_loop_with_a_break_in_its_body():
    def f(x, n):
        values = []
        for i in range(n):
            x = torch.sin(x) * 2
            values.append(x.sum().item())
        return x, values

    x = torch.linspace(0, 1, 8)
    got, counts = counted(f, x, 40)
    want = f(x, 40)
    torch.testing.assert_close(got, want)
    expect(counts["recompile_limits"] == 0 and counts["graphs"] <= 3, f"range: {counts}")

    def g(items):
        values = []
        for k, (x, y) in enumerate(zip(items, items)):
            values.append((x * y).sum().item())
        return values

    items = [torch.full((4,), float(i)) for i in range(20)]
    got, counts = counted(g, items)
    expect(got == g(items) and counts["recompile_limits"] == 0 and counts["graphs"] <= 3, f"enumerate of zip: {counts}")


def test_cached_functions():
    calls = []

    @functools.lru_cache
    def table(n):
        calls.append(n)
        return torch.arange(n, dtype=torch.float32)

    f = fusebox.compile(lambda x: x + table(4), fullgraph=True)
    for _ in range(3):
        torch.testing.assert_close(f(torch.ones(4)), torch.ones(4) + torch.arange(4.0))
    expect(calls == [4], f"a cached function ran {len(calls)} times")


def test_numbers_read_from_constants():
    whole("item() of what is computed from constants", lambda x: x * 2 + (torch.tensor([3, 4]).sum() * 2).item(), torch.ones(4, 2))


def test_compiled_inside_compiled():
    inner = fusebox.compile(lambda x: x * 2)
    layer = fusebox.compile(nn.Linear(3, 3))
    whole("a compiled function inside another", lambda x: inner(x) + layer(x), torch.ones(2, 3))


def test_gradients_that_nobody_asked_for():
    a, b = nn.Linear(3, 2), nn.Linear(3, 2)
    f = fusebox.compile(lambda x: (a(x), b(x)))
    f(torch.ones(1, 3))[0].sum().backward()
    expect(a.weight.grad is not None and b.weight.grad is None, "a parameter behind an unused result gets no gradient")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run(globals())

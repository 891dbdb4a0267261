"""torch's operators of functions under the engine's own backends: followed in one graph, or a break where that would not be the same."""

import warnings

import torch
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import fusebox
from checks.script_checks import expect, run

fusebox.install()

weight = torch.tensor([2.0, 3.0, 4.0], requires_grad=True)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


INPUTS = (torch.tensor([1.0, 2.0, 3.0]), torch.tensor([-1.0, 2.0, -3.0]))


def nested(x):
    return torch.cond(x.sum() > 0, lambda x: torch.cond(x[0] > 5, lambda x: x + 1, lambda x: x - 1, (x,)), lambda x: x * 3, (x,))


def from_around(x):
    y = x * 2
    return torch.cond(x.sum() > 0, lambda: (y, {"more": x + 1}, None), lambda: (y - x, {"more": x * 2}, None), ())


def by_keywords(x):
    return torch.cond(pred=x.sum() > 0, true_fn=lambda x: x * 2, false_fn=lambda x: x * 3, operands=(x,))


def on_a_number(x):
    return torch.cond(x[0] + 1, lambda x: x * 2, lambda x: x * 3, (x,))


def on_a_size(x):
    return torch.cond(x.shape[0] > 2, lambda x: x * 2, lambda x: x * 3, (x,))


def raising_where_it_is_not_chosen(x):
    places = torch.tensor([0, 1, 9])
    return torch.cond(x.sum() > 0, lambda x: x * 1, lambda x: x[torch.where(x.sum() > 0, places, places.clamp(max=2))], (x,))


EXPECTED = {
    nested: ([0.0, 1.0, 2.0], [-3.0, 6.0, -9.0]),
    by_keywords: ([2.0, 4.0, 6.0], [-3.0, 6.0, -9.0]),
    on_a_number: ([2.0, 4.0, 6.0], [-3.0, 6.0, -9.0]),
    on_a_size: ([2.0, 4.0, 6.0], [-2.0, 4.0, -6.0]),
    raising_where_it_is_not_chosen: ([1.0, 2.0, 3.0], [-1.0, 2.0, -3.0]),
}


def test_conditions():
    for f, wanted in EXPECTED.items():
        g = torch.compile(f, fullgraph=True)
        got = [g(x).tolist() for x in INPUTS for _ in range(2)][::2]
        expect(got == list(wanted), f"{f.__name__}: {got}")
    first, more, none = torch.compile(from_around, fullgraph=True)(INPUTS[1])
    expect(first.tolist() == [-1.0, 2.0, -3.0] and more["more"].tolist() == [-2.0, 4.0, -6.0] and none is None, f"{first}, {more}")


def in_python(condition, true_fn, false_fn, operands=()):
    return (true_fn if bool(condition) else false_fn)(*operands)


def test_gradients_of_conditions():
    """Those of the function that is chosen, also where the other has infinite derivatives, for operands and for what is around."""

    def roots(x, cond):
        return cond(x.sum() > 0, lambda x: x.relu().sqrt(), lambda x: (-x).relu().sqrt(), (x,)) * x

    def around(x, cond):
        y = x * weight
        return cond(x.sum() > 0, lambda: (y * weight).relu().sqrt(), lambda: (-y).relu().sqrt() + weight)

    def inside_of_each_other(x, cond):
        def first(x):
            return cond(x[0] > 0, lambda x: x.relu().sqrt() * weight, lambda x: (1 - x).log() * weight, (x,))

        def second(x):
            return cond(x[0] > -5, lambda x: (x + 1).relu().sqrt(), lambda x: x / x.floor(), (x,))

        return cond(x.sum() > 0, first, second, (x,))

    def gradients(f, cond, x):
        x = x.clone().requires_grad_()
        weight.grad = None
        result = f(x, cond)
        result.sum().backward()
        return [result.detach(), x.grad, torch.zeros(3) if weight.grad is None else weight.grad]

    inputs = [torch.tensor(v) for v in ([1.0, 0.0, 2.0], [-1.0, 0.0, -3.0], [0.0, -2.0, 1.0], [-0.5, 0.0, 3.0])]
    for f in (roots, around, inside_of_each_other):
        compiled = torch.compile(f, fullgraph=True)
        for x in inputs:
            got, want = gradients(compiled, torch.cond, x), gradients(f, in_python, x)
            expect(all(torch.allclose(a, b, equal_nan=True) for a, b in zip(got, want)), f"{f.__name__} of {x.tolist()}: {got}, in Python {want}")


def test_conditions_that_break():
    """Where calling the function that is not chosen would be noticed: by what it draws, writes or keeps."""
    kept = []
    functions = {
        "draws": lambda x: torch.rand_like(x),
        "writes": lambda x: x.mul_(2),
        "keeps": lambda x: (kept.append(1), x * 2)[1],
        "has a derivative of its own": lambda x: Cube.apply(weight) * x,
        "fits not": lambda x: x[:2],
    }
    for name, function in functions.items():
        f = torch.compile(lambda x: torch.cond(x.sum() > 0, function, lambda x: x * 3, (x,)), fullgraph=True)
        try:
            f(INPUTS[1])
            expect(False, f"a function that {name} is followed")
        except RuntimeError as error:
            expect("cond" in str(error), f"{name}: {error}")
        torch._dynamo.reset()
    expect(kept == [], "what is not chosen has left nothing behind")


class Choosing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.inner(x), lambda x: x.cos(), (x,))


def test_exported_functions_find_what_they_read():
    """Functions under a mode that hears of every operator: weights are inputs of the operator, no constants."""
    program, other, x = torch.export.export(Choosing(), (torch.ones(2, 3),), strict=False).module(), Choosing(), torch.ones(2, 3)
    program.load_state_dict(other.state_dict())
    torch.testing.assert_close(program(x), other.inner(x))
    torch.testing.assert_close(program(-x), x.cos())
    rows = torch.vmap(lambda x: torch.cond(x.sum() > 0, lambda x: other.inner(x), lambda x: x.cos(), (x,)))(torch.tensor([[1.0, 2, 3], [-1, -2, -3]]))
    expect(isinstance(rows, torch.Tensor) and rows.shape == (2, 3), f"under vmap it gives {type(rows).__name__}")


def test_functions_that_nobody_captures():
    said = []
    result = torch.cond(torch.tensor(True), lambda x: (said.append(1), x + 1)[1], lambda x: x - 1, (torch.ones(2),))
    expect(bool((result == 2).all()) and said == [1], f"functions are called: {result}, {said}")


def test_scan_runs_without_our_asking():
    """What torch makes at run time, the methods of its dataclasses among it, is torch's machinery as the files are."""
    def f(x, first):
        return scan(lambda c, y: (c + y, c * y), first, x)

    x, first = torch.randn(4, 3, requires_grad=True), torch.randn(3)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        got = fusebox.compile(f)(x, first)
    want = f(x, first)
    for a, b in zip(got, want):
        torch.testing.assert_close(a, b)
        expect(a.requires_grad == b.requires_grad, f"requires_grad is {a.requires_grad}")
    limits = [str(w.message) for w in said if "recompile_limit" in str(w.message)]
    expect(not limits, f"{limits[:1]}")


def test_scan_is_in_the_graph():
    def sums(x, first):
        return scan(lambda c, y: (c + y, c * y), first, x)

    def trees(x, first):
        def step(c, y):
            return {"sum": c["sum"] + y[0] * weight, "last": y[1].sin()}, [c["last"] * 2, (y[0].sum(),)]
        return scan(step, {"sum": first, "last": first * 2}, [x, x.cos()], dim=1, reverse=True)

    for program in (sums, trees):
        x = torch.randn(4, 3) if program is sums else torch.randn(3, 5)
        results = []
        for call in (program, torch.compile(program, fullgraph=True)):
            given, first = x.clone().requires_grad_(), torch.full((3,), 0.5, requires_grad=True)
            made = torch.utils._pytree.tree_leaves(call(given, first))
            results.append([*made, *torch.autograd.grad(sum(t.sum() for t in made), [given, first])])
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(a, b)
            expect(a.is_contiguous() == b.is_contiguous(), f"{program.__name__}: strides {a.stride()}, {b.stride()}")


def test_loops_are_in_the_graph():
    """A loop that data end is one operator, whose functions are graphs: of what they are given and what is around, none or many turns, for all sizes."""
    layer, table = torch.nn.Linear(4, 4), torch.randn(4, 4)

    def counted(x, n):
        return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 1.1 + i), (torch.tensor(0), x))

    def around(x, n):
        more = x.sum(-1, keepdim=True) * 0.01
        i, (y, z) = while_loop(lambda i, parts: (i < n) & (parts[0].norm() < 100), lambda i, parts: (i + 1, [layer(parts[0]) + more, parts[1] @ table]),
                               (torch.tensor(0), [x, x.cos()]))
        return i, y + 1, z * more

    def writing_to_its_own(x, n):
        def body(i, x):
            y = x.clone()
            y[0] = y[1] + i
            y.add_(1)
            return i + 1, y
        return while_loop(lambda i, x: i < n, body, (torch.tensor(0), x))

    def unchanged(x, n):
        return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x.clone()), (torch.tensor(0), x))

    for program in (counted, around, writing_to_its_own, unchanged):
        for backend in ("inductor", "aot_eager"):
            inputs = [(torch.randn(rows, 4), torch.tensor(turns)) for rows, turns in ((3, 2), (5, 4), (7, 0), (4, 1))]
            with torch.no_grad():
                wanted = [program(*each) for each in inputs]
                torch._dynamo.reset()
                compiled, before = torch.compile(program, fullgraph=True, backend=backend), fusebox.counters()["recompiles"]
                for (x, turns), want in zip(inputs, wanted):
                    kept, got = x.clone(), compiled(x, turns)
                    torch.testing.assert_close(got, want)
                    got[1].add_(1)
                    expect(torch.equal(x, kept), f"{program.__name__}: a result shares memory with what was given")
            expect(fusebox.counters()["recompiles"] - before == 1, f"{program.__name__}: {fusebox.counters()['recompiles'] - before} recompiles")


def test_loops_that_break():
    """Where following the functions once is not what they do, the reason says so, and nothing is left behind."""
    kept, weight = [], torch.ones(3, requires_grad=True)
    functions = {
        "draw": lambda i, x: (i + 1, torch.rand_like(x)),
        "write": lambda i, x: (i + 1, x.mul_(2) + 0),
        "side effects": lambda i, x: (i + 1, (kept.append(1), x * 2)[1]),
        "other types": lambda i, x: (i + 1, x.double()),
        "gradients": lambda i, x: (i + 1, x * weight),
        "number of tensors": lambda i, x: (i + 1,),
        "data-dependent": lambda i, x: (i + 1, x * (1.0, 2.0, 3.0)[int(i)]),  # which is the first one in the first turn alone
    }
    for reason, body in functions.items():
        torch._dynamo.reset()
        x = torch.ones(3)
        try:
            torch.compile(lambda x: while_loop(lambda i, x: i < 3, body, (torch.tensor(0), x)), fullgraph=True)(x)
            expect(False, f"{reason}: it is followed")
        except RuntimeError as error:
            expect(reason in str(error), f"{reason}: {error}")
        expect(torch.equal(x, torch.ones(3)) and not kept, f"{reason}: something is left behind")


def test_loops_that_torch_traces_say_nothing():
    """What torch's own tracing calls (sympy among it) is not the program's, and not looked at."""
    def f(x, n):
        return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 1.1 + i + torch.rand(())), (torch.tensor(0), x))

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for n in (2, 3):
            fusebox.compile(f)(torch.ones(n), torch.tensor(n))
    ours = [str(w.message) for w in said if "fusebox" in str(w.message)]
    expect(not ours, f"{ours[:2]}")


def test_a_gradient_of_what_a_function_reads():
    """What the operator was not given has its gradient too, or the operator raises as in eager mode: never a result without it."""
    table = torch.randn(4, 3, requires_grad=True)
    x, row = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor(1)

    def grown(x):
        return x * table[row] * len(repr(x.sum() > 0))  # nobody captures this

    try:
        y = torch.cond(x.sum() > 0, grown, lambda x: x + 1, (x,))
        expect(torch.autograd.grad(y.sum(), table, allow_unused=True)[0] is not None, "a gradient is lost")
    except torch._dynamo.exc.UncapturedHigherOrderOpError:
        pass
    y = torch.cond(x.sum() > 0, lambda x: x * table[0] + table.sum(), lambda x: x + table.sum(), (x,))
    expect(torch.autograd.grad(y.sum(), table)[0].abs().sum() > 0, "a gradient is lost")


def test_steps_of_several_tensors():
    """The form that optimizers take on GPUs, of parameters of one and of two types: also where they refuse it in compiled code, or call what no overload fits."""
    for name in ("Adafactor", "Adamax", "AdamW", "NAdam", "RAdam", "Rprop", "ASGD"):
        for types in ((torch.float32,), (torch.float32, torch.float64)):
            results = []
            for compiler in (lambda f: f, fusebox.compile):
                fusebox.reset()
                torch.manual_seed(0)
                params = [torch.nn.Parameter(torch.randn(shape, dtype=dtype)) for dtype in types for shape in ((4, 3), (3,))]
                step = compiler(getattr(torch.optim, name)(params, lr=0.05, foreach=True).step)
                for i in range(4):
                    for p in params:
                        p.grad = torch.full_like(p, 0.1 + i) * p.detach()
                    step()
                results.append(params)
            for ours, eagers in zip(*results[::-1]):
                torch.testing.assert_close(ours, eagers, rtol=1e-6, atol=1e-7, msg=f"{name} of {types}")


def test_functions_of_lists():
    """foreach_map over operators, functions of the program, numbers and gradients: the elements one after the other, in one graph."""
    from torch._higher_order_ops.foreach_map import foreach_map

    def f(xs, ys):
        return foreach_map(torch.add, foreach_map(lambda a, b: a * b + 1, xs, ys), xs), foreach_map(torch.mul, ys, 3)

    fusebox.reset()
    compiled = fusebox.compile(f, fullgraph=True)
    for n in (2, 3):
        xs, ys = ([torch.arange(k + 1.0, n + k + 1, requires_grad=True) for k in range(3)] for _ in range(2))
        got, want = compiled(xs, ys), ([x * y + 1 + x for x, y in zip(xs, ys)], [y * 3 for y in ys])
        torch.testing.assert_close(got, want)
        gradients = [torch.autograd.grad(sum(t.sum() for part in result for t in part), xs + ys) for result in (got, want)]
        torch.testing.assert_close(*gradients)


if __name__ == "__main__":
    run(globals())

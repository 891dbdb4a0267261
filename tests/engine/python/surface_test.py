"""The public Python names: what can be given to torch.compile, and that the engine compiled it rather than eager having run it."""

import contextlib
import functools
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

import fusebox
from fusebox import _engine
from checks.script_checks import expect, run


@contextlib.contextmanager
def expect_error(kind, part, what):
    try:
        yield
    except kind as error:
        expect(part in str(error), f"{what}: {error}")
    except Exception as error:
        expect(False, f"{what}: {type(error).__name__} instead of {kind.__name__}: {error}")
    else:
        expect(False, f"{what}: no error")


def graphs_of(call):
    """The result of call() and how many graphs were compiled meanwhile."""
    since = _engine.latest_event()
    result = call()
    return result, sum(e["kind"] == "compiled" and e["operators"] > 0 for e in _engine.events_since(since))


def compiled_alike(what, make, eager, *args):
    """make() compiles one graph that gives what eager gives; a second call compiles nothing."""
    fusebox.reset()
    f = make()
    result, graphs = graphs_of(lambda: f(*args))
    expect(graphs == 1, f"{what}: {graphs} graphs")
    result_again, graphs = graphs_of(lambda: f(*args))
    expect(graphs == 0, f"{what}: compiled again")
    torch.testing.assert_close((result, result_again), (eager(*args),) * 2)


class Doubles:
    def __call__(self, x):
        return x * 2

    def method(self, x):
        return x * 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(x).relu()


def plain(x):
    return x.sin() + 1


def test_every_kind_of_callable():
    x = torch.randn(4, 8)
    net = Net()
    for what, f, args in [
        ("function", plain, (x,)), ("lambda", lambda x: x + 1, (x,)), ("builtin", torch.sin, (x,)), ("builtin of nn", F.gelu, (x,)),
        ("function of nn.functional", F.layer_norm, (x, (8,))), ("operator", torch.ops.aten.add.Tensor, (x, x)),
        ("operator packet", torch.ops.aten.add, (x, x)), ("partial", functools.partial(torch.add, alpha=2), (x, x)),
        ("partial of a function", functools.partial(plain), (x,)), ("object", Doubles(), (x,)), ("method", Doubles().method, (x,)),
        ("builtin method", x.add, (x,)), ("method descriptor", torch.Tensor.sin, (x,)), ("forward", net.forward, (x,)), ("module", net, (x,)),
    ]:
        compiled_alike(what, lambda: fusebox.compile(f), f, *args)
    compiled_alike("decorator", lambda: fusebox.compile(fullgraph=True)(plain), plain, x)
    compiled_alike("compiled twice", lambda: fusebox.compile(fusebox.compile(plain)), plain, x)
    seen, hooked = [], []
    inner = fusebox.compile(net)
    outer = fusebox.compile(inner, backend=lambda graph, inputs: seen.append(graph) or graph.forward)
    torch.testing.assert_close(outer(x), net(x))
    expect(len(seen) == 1, "a module compiled twice is the outer compiler's")
    inner.register_forward_hook(lambda *_: hooked.append(1))
    outer(x)
    expect(hooked == [1], f"hooks of the inner wrapper: {hooked}")
    query = fusebox.compile(lambda x: x + (torch.accelerator.current_accelerator() is None), fullgraph=True)
    torch.testing.assert_close(query(x), x + (torch.accelerator.current_accelerator() is None))


def test_builtins_have_limits_of_their_own():
    x = torch.randn(3)
    fusebox.reset()
    for name in ("sin", "cos", "tan", "exp", "tanh", "sigmoid", "relu", "abs", "neg", "sqrt", "log1p", "floor"):
        f = fusebox.compile(getattr(torch, name))
        _, graphs = graphs_of(lambda: f(x.abs()))
        expect(graphs == 1, f"{name}: {graphs} graphs")


def test_install():
    x = torch.randn(4, 8)
    stock = torch.compile
    fusebox.install()
    fusebox.install()
    try:
        compiled_alike("torch.compile", lambda: torch.compile(plain), plain, x)
        net = Net()
        eager = net(x)
        fusebox.reset()
        net.compile()
        result, graphs = graphs_of(lambda: net(x))
        expect(graphs == 1, f"Module.compile: {graphs} graphs")
        torch.testing.assert_close(result, eager)
    finally:
        fusebox.uninstall()
    expect(torch.compile is stock, "uninstall gives torch.compile back")


def test_backend_of_stock():
    """PyTorch captures, this engine compiles, also backwards and for sizes that stock made symbolic."""
    import torch._dynamo
    fusebox.reset()
    torch._dynamo.reset()
    f = torch.compile(lambda x: (x.sin() * x).sum(-1), backend="fusebox")
    counts = []
    for rows in (3, 3, 5, 7):
        x = torch.randn(rows, 6, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        result, graphs = graphs_of(lambda: f(x))
        counts.append(graphs)
        result.sum().backward()
        expected = (y.sin() * y).sum(-1)
        expected.sum().backward()
        torch.testing.assert_close((result, x.grad), (expected, y.grad))
    expect(counts[:2] == [1, 0], f"graphs of the first two calls: {counts}")


def test_modules_that_a_library_compiles_again():
    net, x = Net(), torch.randn(3, 8)
    wrapper = fusebox.compile(net)
    again = torch.compile(wrapper._orig_mod, **wrapper._compile_kwargs)
    result, graphs = graphs_of(lambda: again(x))
    torch.testing.assert_close(result, net(x))
    expect(graphs == 1, f"the engine compiles what PyTorch captures: {graphs} graphs")
    wrapper._compile_kwargs = {"backend": "eager"}
    expect("_compile_kwargs" not in vars(net) and wrapper._compile_kwargs == {"backend": "eager"}, "the wrapper keeps what a library notes of it")


def test_forwards_that_a_library_puts_around_a_compiled_module():
    """As accelerate does for mixed precision: what is a method is taken apart, anything else is wrapped as it is."""
    def run_as_bfloat16(module):
        forward, calls = module.forward, []

        def around(function):
            @functools.wraps(function)
            def wider(*args):
                calls.append(args)
                with torch.autocast("cpu", torch.bfloat16):
                    return function(*args)
            return wider

        module.forward = around(forward.__func__).__get__(module) if hasattr(forward, "__func__") else around(forward)
        return calls

    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.randn(3, 4)
    compiled = fusebox.compile(model)
    calls = run_as_bfloat16(compiled)
    with torch.autocast("cpu", torch.bfloat16):
        want = model(x)
    got, graphs = graphs_of(lambda: compiled(x))
    torch.testing.assert_close(got, want)
    expect(graphs == 1 and len(calls) == 1, f"compiled inside of what was put around it: {graphs} graphs, {len(calls)} calls")
    for made in (fusebox.compile(model.forward), torch.compiler.disable(model.forward)):
        expect(not hasattr(made, "__func__") and not hasattr(made, "__self__") and hasattr(made, "__wrapped__"), f"no method, as stock's: {made}")


def test_what_is_left_to_python_is_told_of_the_first_function():
    """What that calls is left for the same reason."""
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), Net()), torch.randn(3, 4)
    model[2] = nn.Tanh()
    compiled = fusebox.compile(model)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            torch.testing.assert_close(torch.func.vmap(compiled)(x), model(x))
    said = [str(w.message) for w in told]
    expect(len(said) == 1 and "container.py" in said[0] and "functorch" in said[0], f"{said}")


def test_disable_and_stance():
    x = torch.randn(4)

    @fusebox.compiler.disable
    def helper(x):
        return x + 1

    def f(x):
        return helper(x * 2) * 3

    fusebox.reset()
    g = fusebox.compile(f)
    result, graphs = graphs_of(lambda: g(x))
    expect(graphs == 2, f"around a disabled call: {graphs} graphs")
    torch.testing.assert_close(result, f(x))
    fusebox.reset()
    with fusebox.compiler.set_stance("force_eager"):
        _, graphs = graphs_of(lambda: g(x))
        expect(graphs == 0, f"force_eager: {graphs} graphs")
    with fusebox.compiler.set_stance("fail_on_recompile"):
        with expect_error(RuntimeError, "recompile", "fail_on_recompile"):
            fusebox.compile(plain)(torch.randn(2, 3, 4))


def test_the_stance_of_pytorch_itself():
    def f(x):
        return x * 2 + 1

    x, longer, longest, stance = torch.randn(3), torch.randn(5), torch.randn(1, 5), torch.compiler.set_stance
    fusebox.reset()
    g = fusebox.compile(f)
    expect(graphs_of(lambda: g(x))[1] == 1, "the standard stance compiles")
    with stance("force_eager"):
        _, graphs = graphs_of(lambda: fusebox.compile(lambda x: x + 3)(x))
        expect(graphs == 0, f"force_eager: {graphs} graphs")
    with stance("eager_on_recompile"):
        result, graphs = graphs_of(lambda: g(longer))
        expect(graphs == 0 and torch.equal(result, f(longer)), f"eager_on_recompile: {graphs} graphs")
    with stance("fail_on_recompile"):
        g(x)
        with expect_error(RuntimeError, "recompile", "fail_on_recompile"):
            g(longer)
    with stance("eager_then_compile"):
        other = fusebox.compile(lambda x: x - 1)
        expect([graphs_of(lambda: other(x))[1] for _ in range(2)] == [0, 1], "eager_then_compile")
    seen = []
    with stance(force_backend=lambda graph, inputs: seen.append(graph) or graph.forward):
        torch.testing.assert_close(fusebox.compile(lambda x: x.sin() + 1)(x), x.sin() + 1)
        expect(len(seen) == 1, "force_backend")
    expect(graphs_of(lambda: g(longest))[1] == 1 and len(seen) == 1, "and the standard stance again")
    with fusebox.compiler.set_stance("force_eager"):
        expect(graphs_of(lambda: fusebox.compile(lambda x: x + 4)(x))[1] == 0, "ours counts where PyTorch's did not change")


class Settings:
    scale = 2.0
    steps = 0

    @classmethod
    def factor(cls):
        return cls.scale


class OwnSettings(Settings):
    pass


def test_class_attributes():
    """An entry depends on the attributes that were read, wherever in the bases they may appear, and on no others."""
    fusebox.reset()
    f = fusebox.compile(lambda x: x * OwnSettings.scale + OwnSettings.factor())
    x = torch.ones(3)

    def graphs_and_value():
        result, graphs = graphs_of(lambda: f(x))
        return graphs, result[0].item()

    expect(graphs_and_value() == (1, 4.0), "first call")
    for _ in range(3):
        Settings.steps += 1
        OwnSettings.other = object()
        expect(graphs_and_value() == (0, 4.0), "an attribute that was not read changed")
    OwnSettings.scale = 3.0
    expect(graphs_and_value() == (1, 6.0), "an attribute that was read appeared nearer")
    del OwnSettings.scale
    expect(graphs_and_value()[1] == 4.0, "and disappeared")
    OwnSettings.factor = classmethod(lambda cls: 10.0)
    expect(graphs_and_value() == (1, 12.0), "a method was overridden")


def test_errors():
    with expect_error(TypeError, "callable", "a number"):
        fusebox.compile(3)
    with expect_error(RuntimeError, "mode or options", "mode and options"):
        fusebox.compile(plain, mode="default", options={"max_autotune": True})
    with expect_error(RuntimeError, "nope", "an unknown mode"):
        fusebox.compile(plain, mode="nope")
    with expect_error(Exception, "nope", "an unknown backend"):
        fusebox.compile(plain, backend="nope")
    with expect_error(RuntimeError, "nope", "an unknown option"):
        fusebox.compile(plain, options={"nope": 1})
    with expect_error(AttributeError, "nope", "an unknown setting"):
        fusebox.config.nope = 1

    def breaks(x):
        print(end="")
        return x + len(str(x.item()))

    with expect_error(fusebox.GraphBreakError, "surface_test.py", "fullgraph"):
        fusebox.compile(breaks, fullgraph=True)(torch.ones(()))


def test_explain():
    report = fusebox.explain(lambda x: x.sin() + len(str(x.item())))(torch.ones(()))
    expect(report.graph_break_count == 1 and "_local_scalar_dense" in str(report), f"explain: {report}")


def test_words_of_conditions():
    """A break on tensor data is told in the words of the program."""
    for f, words in ((lambda x: x if x.sum() > 0 else -x, "a condition on a tensor (bool(tensor))"),
                     (lambda x: x if not (x > 0).all() else -x, "a condition on a tensor (bool(tensor))"),
                     (lambda x: range(x.sum().long()), "range(tensor)"), (lambda x: torch.zeros(int(x.sum())), "int(tensor)")):
        with expect_error(fusebox.GraphBreakError, words, "turns tensor data into a Python value"):
            fusebox.compile(f, fullgraph=True)(torch.ones(3))


def test_code_that_is_asked_for():
    """Who wants to see what a call was compiled to gets a listing of each graph."""
    from torch._inductor.utils import run_and_get_code

    x, w = torch.ones(4), torch.full((4,), 0.5, requires_grad=True)
    loss, listings = run_and_get_code(fusebox.compile(lambda x, w: (x * w).tanh().sum()), x, w.detach())
    expect(len(listings) == 1 and "tanh" in listings[0] and "def call(args)" in listings[0], f"{len(listings)} listings")
    expect(torch.allclose(loss, torch.tensor(0.5).tanh() * 4), "and the call's result")
    compiled = fusebox.compile(lambda x, w: (x * w).tanh().sum())
    _, listings = run_and_get_code(lambda: compiled(x, w).backward())
    expect(len(listings) == 2, f"forward and backward: {len(listings)} listings")


if __name__ == "__main__":
    run(globals())

"""Names of torch._dynamo and torch.compiler after fusebox.install(): they mean here what they mean in PyTorch."""

import colorsys
import contextlib
import copy
import gc
import io
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import threading

import torch
import torch.nn as nn

import fusebox
from fusebox._compile import engine_options
from checks.script_checks import expect, run

BOUND_BEFORE = torch.compile
fusebox.install()
x = torch.linspace(-1, 1, 12).view(3, 4)


def plain(a):
    return (a * 2).sin() + 1


def breaks(a):
    b = a + 1
    torch._dynamo.graph_break()
    return b * 2


@torch.compile
def compiled_here(a):
    return a + 1


class Counting:
    """A backend that notes its graphs."""

    def __init__(self):
        self.graphs = []

    def __call__(self, module, inputs):
        self.graphs.append([getattr(n.target, "__name__", n.target) for n in module.graph.nodes if n.op.startswith("call_")])
        return module.forward


def raised(call):
    try:
        call()
    except Exception as error:
        return error
    return None


def test_errors_are_dynamos_too():
    """In a process that has not imported torch._dynamo when the error is raised."""
    script = """if True:
        import fusebox, sys, torch
        fusebox.install()
        f = torch.compile(lambda x: x * 2 if x.sum().item() > 1 else x, fullgraph=True, backend="eager")
        assert "torch._dynamo" not in sys.modules
        try:
            f(torch.ones(3))
        except fusebox.GraphBreakError as error:
            assert isinstance(error, torch._dynamo.exc.Unsupported) and "_local_scalar_dense" in str(error), type(error).__mro__
        else:
            raise SystemExit("no error")
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)


def test_frames_that_the_program_skips():
    for leave in (torch._dynamo.skip_frame, torch._dynamo.step_unsupported):
        def inner(x):
            leave()
            return x + 1

        x = torch.ones(3)
        for program, graphs in ((inner, 0), (lambda x: inner(x * 2).sin() * 3, 2)):
            torch._dynamo.reset()
            before = fusebox.counters()["graphs"]
            result = torch.compile(program)(x)
            made = fusebox.counters()["graphs"] - before
            expect(torch.allclose(result, program(x)) and made == graphs, f"{leave.__name__}: {made} graphs")


def test_error_on_graph_break():
    error_on_graph_break = torch._dynamo.error_on_graph_break

    def inside(a, on):
        with error_on_graph_break(on):
            return breaks(a)

    def behind(a):
        with error_on_graph_break(True):
            b = a + 1
        torch._dynamo.graph_break()
        return b

    def allowed_deeper(a):
        with error_on_graph_break(True):
            with error_on_graph_break(False):
                b = breaks(a)
            return b + 1

    def refused_behind_a_break(a):
        with error_on_graph_break(True):
            with error_on_graph_break(False):
                a = breaks(a)
            return breaks(a)

    def refuses(function, *args):
        try:
            torch.compile(function)(*args)
        except torch._dynamo.exc.Unsupported as error:
            return "in breaks" in str(error) and "error_on_graph_break" in str(error)
        return False

    expect(refuses(inside, x, True), "a break inside")
    expect(refuses(error_on_graph_break(True)(breaks), x), "as a decorator")
    expect(refuses(refused_behind_a_break, x), "after a break that was allowed")
    for function, args in ((inside, (x, False)), (behind, (x,)), (allowed_deeper, (x,)), (error_on_graph_break(False)(breaks), (x,))):
        torch.testing.assert_close(torch.compile(function)(*args), function(*args))
    try:
        torch.compile(inside, fullgraph=True)(x, False)
    except torch._dynamo.exc.Unsupported:
        pass
    else:
        expect(False, "fullgraph goes before")
    expect(torch._dynamo.utils._get_error_on_graph_break() is False, "the switch is as it was")


def test_recompile_errors():
    def grows(a, k):
        return a + k

    with torch._dynamo.config.patch(recompile_limit=2):
        c = torch.compile(grows, backend="eager", dynamic=False, fullgraph=True)
        error = raised(lambda: [c(x, k) for k in range(5)])
        expect(isinstance(error, torch._dynamo.exc.FailOnRecompileLimitHit), f"limit under fullgraph: {error!r}")
    with torch._dynamo.config.patch(error_on_recompile=True):
        c = torch.compile(plain, backend="eager")
        c(x)
        expect(isinstance(raised(lambda: c(x.double())), torch._dynamo.exc.RecompileError), "error_on_recompile")
    c(x.double())


def test_settings_reach_the_engine():
    before = fusebox.config.recompile_limit
    with torch._dynamo.config.patch(cache_size_limit=3):
        expect(fusebox.config.recompile_limit == 3, "an alias is the setting")
        backend = Counting()
        c = torch.compile(lambda a, k: a + k, backend=backend, dynamic=False)
        for k in range(6):
            c(x, k)
        expect(len(backend.graphs) == 3, f"{len(backend.graphs)} graphs at a limit of 3")
    expect(fusebox.config.recompile_limit == before, "what was patched comes back")


def test_explain():
    report = torch._dynamo.explain(breaks)(x)
    expect((report.graph_count, report.graph_break_count, report.op_count) == (2, 1, 2), str(report))
    expect(isinstance(report.graphs[0], torch.fx.GraphModule), "graphs are graph modules")
    torch.testing.assert_close(report.graphs[0](x)[0], x + 1)
    expect("graph_break" in report.break_reasons[0].reason and report.break_reasons[0].user_stack[0].name == "breaks", str(report))


def test_resets():
    for reset in (torch._dynamo.reset, torch._dynamo.reset_code_caches, torch.compiler.reset):
        backend = Counting()
        c = torch.compile(plain, backend=backend)
        c(x)
        reset()
        c(x)
        expect(len(backend.graphs) == 2, f"{reset}: {len(backend.graphs)} graphs")


def test_compile_that_was_bound_before():
    """`from torch import compile` above install() means the engine all the same."""
    for how in ({}, {"mode": "reduce-overhead"}, {"options": {"max_autotune": True}}, {"fullgraph": True, "dynamic": True}):
        fusebox.reset()
        before, f = fusebox.counters(), BOUND_BEFORE(plain, **how)
        torch.testing.assert_close(f(x), plain(x))
        now = fusebox.counters()
        expect(now["kernels"] > before["kernels"] and now["graphs"] == before["graphs"] + 1, f"{how}: {now['kernels'] - before['kernels']} kernels of the engine")


def test_run_compiles_nothing():
    backend = Counting()
    c = torch.compile(plain, backend=backend)
    c(x)
    only = torch._dynamo.run(c)
    torch.testing.assert_close((only(x), only(x.double())), (plain(x), plain(x.double())))
    expect(len(backend.graphs) == 1, "a call that fits nothing runs eagerly")


def test_forced_backend():
    own, forced = Counting(), Counting()
    c = torch.compile(plain, backend=own)
    with torch.compiler.set_stance("default", force_backend=forced):
        torch.testing.assert_close(c(x), plain(x))
    expect((len(own.graphs), len(forced.graphs)) == (0, 1), f"{own.graphs} {forced.graphs}")
    c(x)
    expect((len(own.graphs), len(forced.graphs)) == (1, 1), "its own again")
    with torch.compiler.set_stance("default", force_backend=forced):
        c(x)
    expect((len(own.graphs), len(forced.graphs)) == (1, 1), "both are kept")
    expect(isinstance(raised(lambda: torch.compiler.set_stance("force_eager", force_backend="eager")), RuntimeError), "only with the default stance")


def test_stances():
    backend = Counting()
    c = torch.compile(plain, backend=backend)

    @torch.compiler.set_stance("force_eager")
    def under(a):
        return c(a)

    under(x)
    expect(not backend.graphs, "a decorator")
    c(x)
    with torch.compiler.set_stance(skip_guard_eval_unsafe=True):
        c(x.double())
    expect(len(backend.graphs) == 2, "guards are evaluated nevertheless")

    def sets(a):
        torch.compiler.set_stance("force_eager")
        return a + 1

    expect(isinstance(raised(lambda: torch.compile(sets, backend="eager")(x)), RuntimeError), "not within a region")


def test_what_is_allowed_in_a_graph():
    @torch._dynamo.allow_in_graph
    def special(a):
        return a.sin() * 2

    backend = Counting()
    torch.compile(lambda a: special(a + 1) - 1, backend=backend)(x)
    expect(backend.graphs == [["add", "special", "sub"]], str(backend.graphs))

    def subtracts(a):
        return torch.add(torch.sub(torch.add(a, 1), 1), 2)

    torch._dynamo.disallow_in_graph(torch.sub)
    backend = Counting()
    torch.testing.assert_close(torch.compile(subtracts, backend=backend)(x), subtracts(x))
    expect(backend.graphs == [["add"], ["add"]], str(backend.graphs))


def test_ignored_functions_are_left_out():
    import logging
    one, other, said = logging.getLogger("fusebox.one"), logging.getLogger("fusebox.other"), []

    def tell(x):
        said.append(x.shape[0])

    def program(x):
        one.error("one")
        other.error("other")
        tell(x)
        return x * 2

    f, x = torch.compile(program), torch.ones(2)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    for logger in (one, other):
        logger.addHandler(handler)
        logger.propagate = False
    for ignored, wanted, told in (({one.error, tell}, "other\n", 0), (set(), "one\nother\n", 1), ({logging.Logger.error}, "", 1)):
        stream.truncate(0), stream.seek(0), said.clear()
        with torch._dynamo.config.patch(ignore_logging_functions=ignored):
            torch.testing.assert_close(f(x), x * 2)
        expect((stream.getvalue(), len(said)) == (wanted, told), f"{ignored}: {stream.getvalue()!r} {said}")


def test_substitutes_are_followed():
    called = []
    real = colorsys.rgb_to_yiq

    @torch.compiler.substitute_in_graph(real)
    def followed(r, g, b):
        called.append(1)
        return 0.5, r, g

    torch.testing.assert_close(torch.compile(lambda a: a * real(1.0, 0.0, 0.0)[0], backend="eager", fullgraph=True)(x), x * 0.5)
    expect(real(1.0, 0.0, 0.0)[0] != 0.5, "eager calls are the original's")

    def other(r, g):
        return r

    expect(isinstance(raised(lambda: torch.compiler.substitute_in_graph(real)(other)), TypeError), "signatures are compared")


def test_assumed_constants():
    calls = []

    class Settings:
        @torch._dynamo.assume_constant_result
        def scale(self):
            calls.append(1)
            with open("/proc/self/stat") as file:
                return 3.0 if file.read() else 0.0

        def __call__(self, a):
            return a * self.scale()

    c = torch.compile(Settings(), fullgraph=True, backend="eager")
    for _ in range(3):
        torch.testing.assert_close(c(x), x * 3)
    expect(len(calls) == 1, f"called {len(calls)} times")

    @torch.compiler.assume_constant_result
    def fails():
        raise KeyError("gone")

    expect(isinstance(raised(lambda: torch.compile(lambda a: a + fails(), backend="eager")(x)), KeyError), "its errors are the program's")


def test_comptime_is_called_while_capturing():
    from torch._dynamo.comptime import comptime
    seen = []

    def inner(n, a):
        k = "constant"

        @comptime
        def _(ctx):
            seen.append((ctx.get_local("k").as_python_constant(), tuple(ctx.get_local("a").as_fake().size()), ctx.get_local("n").is_dynamic(),
                         ctx.get_local("b", stacklevel=1).size(0), ctx.get_local("a").is_python_constant(), "aten::add" in ctx.graph()))
            ctx.print_locals()
            ctx.print_bt(stacklevel=0)
        comptime.print(n)
        comptime.print_graph()
        comptime.print_guards()
        comptime.print_disas()
        return a * n

    def outer(a, n):
        b = a + 1
        return inner(n, b) + b

    def breaks_there(a):
        comptime(lambda ctx: ctx.graph_break())
        return a + 1

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        compiled = torch.compile(outer, fullgraph=True)
        torch.testing.assert_close(compiled(x, 3), outer(x, 3))
        compiled(x, 3)
    expect(seen == [("constant", (3, 4), False, 3, False, True)], seen)
    text = printed.getvalue()
    for words in ("k = 'constant'", "FakeTensor(..., size=(3, 4))", "in inner", "in outer", "aten::add", "BINARY_OP", "L['a']"):
        expect(words in text, (words, text))
    with contextlib.redirect_stdout(io.StringIO()):
        compiled(x, 4)
    expect(seen[-1][2] and len(seen) == 2, "the int that changed is symbolic")
    before = fusebox.counters()["graph_breaks"]
    torch.testing.assert_close(torch.compile(breaks_there)(x), x + 1)
    expect(fusebox.counters()["graph_breaks"] == before + 1, "a break that was asked for")

    def static(a, n):
        comptime.force_static(n)
        comptime.assert_static(n)
        return a * n

    compiled = torch.compile(static, dynamic=True)
    for n in (3, 5):
        torch.testing.assert_close(compiled(x, n), x * n)


def test_what_a_comptime_function_raises_is_told():
    from torch._dynamo import config
    from torch._dynamo.comptime import comptime
    from torch._dynamo.exc import InternalTorchDynamoError

    def refuse(error):
        def program(x):
            comptime(lambda ctx: (_ for _ in ()).throw(error))
            return x + 1
        return program

    for error, kind in ((AssertionError("too wide"), AssertionError), (OSError("no such file"), InternalTorchDynamoError)):
        try:
            torch.compile(refuse(error))(x)
        except kind as told:
            expect(str(error) in str(told) and "in program" in str(told), f"the error and where: {told}")
        else:
            expect(False, f"{error!r} is lost")

    @torch.compile(dynamic=True)
    def demands(x):
        comptime.assert_static(x.size(0))
        return x + 1

    try:
        demands(torch.ones(5))
    except AssertionError as told:
        expect("dynamic" in str(told), str(told))
    else:
        expect(False, "a size that is a symbol passes for a static one")
    log = logging.getLogger("torch._dynamo.convert_frame")
    heard = []
    listener = logging.Handler()
    listener.emit = lambda record: heard.append(record.getMessage())
    log.addHandler(listener)
    torch._dynamo.reset()
    try:
        with config.patch(suppress_errors=True):
            expect(torch.equal(torch.compile(refuse(OSError("no such file")))(x), x + 1), "suppressed: the frame runs")
    finally:
        log.removeHandler(listener)
    expect(len(heard) == 1 and "no such file" in heard[0], f"and it is logged: {heard}")


def test_export_follows_what_is_compiled():
    compiled = torch.compile(lambda a: 1 + torch._shape_as_tensor(a)[0], backend="eager", fullgraph=True)
    exported, _ = torch._dynamo.export(compiled)(torch.ones(6))
    expect(exported(torch.ones(6)) == 7, "PyTorch's own capture goes through")
    expect([compiled(torch.ones(*sizes)).item() for sizes in ((6,), (7, 4), (8, 4), (9, 5))] == [7, 8, 9, 10], "sizes as a tensor")


def test_bounds_that_meet_leave_a_constant():
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

    def program(a):
        if a.shape[0] > 3:
            return a.cos()
        return a * 2 if a.shape[0] < 3 else a.sin()

    given = torch.randn(3, 3)
    torch._dynamo.mark_dynamic(given, 0)
    error = raised(lambda: torch.compile(program, backend="eager")(given))
    expect(isinstance(error, ConstraintViolationError), f"a size that was marked dynamic has one value: {error!r}")


def test_why_saved_tensor_hooks_are_forbidden():
    """The reason from outside holds again after a region that had one of its own, and is guarded."""
    graph, reason = torch.autograd.graph, torch._C._autograd._saved_tensors_hooks_get_disabled_error_message

    def program(a):
        with graph.disable_saved_tensors_hooks("inside"):
            b = a * 2
        return b, reason()

    for backend in ("eager", lambda gm, given: gm.forward):
        fusebox.reset()
        compiled = torch.compile(program, backend=backend)
        for outer in ("outside", None, "elsewhere", "outside", None):
            with graph.disable_saved_tensors_hooks(outer) if outer else contextlib.nullcontext():
                seen = compiled(x)[1], reason()
            expect(seen == (outer, outer), f"{backend}: {seen} where {outer!r} holds")
        expect(reason() is None, "and nothing stays")


def test_comptime_sees_the_value_stack():
    from torch._dynamo.comptime import comptime
    printed = io.StringIO()

    def inner(a):
        comptime(lambda ctx: ctx.print_value_stack(stacklevel=1, file=printed))
        return a

    torch.compile(lambda a: (a * 2) - inner(a + 1), backend="eager")(x.double())
    expect(printed.getvalue() == "- FakeTensor(..., size=(3, 4), dtype=torch.float64)\n", f"below the call that goes on: {printed.getvalue()}")


def test_errors_that_the_program_can_mend():
    """Where data decide, or the program raises, the error is also torch._dynamo's UserError."""
    def decides(a):
        return a + 1 if a.sum() > 0 else a - 1

    def raises(a):
        return a + [1, 2][a.dim() + 5]

    def cannot(a):
        torch._dynamo.graph_break()
        return a

    for program, is_users in ((decides, True), (raises, True), (cannot, False)):
        error = raised(lambda: torch.compile(program, fullgraph=True, backend="eager")(x))
        expect(isinstance(error, fusebox.GraphBreakError) and isinstance(error, torch._dynamo.exc.Unsupported), f"{program.__name__}: {type(error)}")
        expect(isinstance(error, torch._dynamo.exc.UserError) == is_users, f"{program.__name__}: {type(error).__mro__}")


def test_classes_whose_ints_stay():
    @torch._dynamo.mark_static
    class Times(torch.nn.Module):
        def __init__(self, n):
            super().__init__()
            self.settings = [n, 1]

        def forward(self, a):
            return a * self.settings[0]

    class Free(Times):
        _dynamo_marked_static = False

    for cls, wanted in ((Free, 2), (Times, 3)):
        graphs = []
        module = cls(2)
        compiled = torch.compile(module, backend=lambda gm, given, kept=graphs: kept.append(gm) or gm.forward)
        for n in (2, 3, 4):
            module.settings[0] = n
            torch.testing.assert_close(compiled(x), x * n)
        expect(len(graphs) == wanted, f"{cls.__name__}: {len(graphs)} graphs")


def test_sizes_that_share_no_symbol():
    from torch.fx.experimental import _config
    recompiled = []
    for shares in (True, False):
        fusebox.reset()
        with _config.patch(use_duck_shape=shares):
            compiled = torch.compile(lambda a: a * 2, backend="eager", dynamic=True)
            before = fusebox.counters()["recompiles"]
            for sizes in ((6, 6), (5, 7)):
                torch.testing.assert_close(compiled(torch.ones(sizes)), torch.full(sizes, 2.0))
            recompiled.append(fusebox.counters()["recompiles"] - before)
    expect(recompiled == [1, 0], f"equal sizes are one symbol, unless torch's setting says otherwise: {recompiled}")


def test_what_comptime_lacks_is_a_break():
    from torch._dynamo.comptime import comptime

    def program(x):
        y = x + 1
        comptime(lambda ctx: ctx.get_local("y").as_proxy() + 4)
        return y * 2

    reasons = torch._dynamo.explain(program)(x).break_reasons
    expect(len(reasons) == 1 and "as_proxy" in reasons[0].reason, f"a break that names it: {reasons}")
    expect(torch.equal(torch.compile(program)(x), program(x)), "and the program goes on")


def test_comptime_sees_what_was_assigned():
    from torch._dynamo.comptime import comptime
    texts = []

    def program(x):
        y = None
        comptime(lambda ctx: texts.append(repr(ctx.get_local("y"))))
        y = 3
        comptime(lambda ctx: texts.append(repr(ctx.get_local("y"))))
        return x * y

    x = torch.ones(2)
    torch.testing.assert_close(torch.compile(program, backend="eager", fullgraph=True)(x), program(x))
    expect(texts == ["None", "3"], str(texts))


def test_reasons_of_disabled_functions():
    @torch.compiler.disable(reason="writes to a socket")
    def disabled(a):
        return a + 3

    error = raised(lambda: torch.compile(lambda a: disabled(a), fullgraph=True, backend="eager")(x))
    expect("writes to a socket" in str(error), str(error))
    torch.testing.assert_close(torch.compile(lambda a: disabled(a) * 2, backend="eager")(x), (x + 3) * 2)
    from fusebox import _engine
    before = _engine.latest_event()
    of_torch = torch._disable_dynamo(lambda a: (a + 3).sin())
    torch.testing.assert_close(torch.compile(lambda a: of_torch(a) * 2, backend="eager")(x), (x + 3).sin() * 2)
    operators = sum(e["operators"] for e in _engine.events_since(before) if e["kind"] == "compiled")
    expect(operators == 1, f"what PyTorch disables itself is left alone with all that it calls: {operators} operators")


def test_optimizers_are_followed_behind_the_marks_of_torch():
    # torch.compile of torch's own marks parts of the optimizers, which its tracer plays back; it does so to the classes, for good.
    script = """
import torch, fusebox
torch._dynamo.eval_frame.TorchPatcher.patch()
fusebox.install()
for make in (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.Adam(p, lr=0.1), lambda p: torch.optim.AdamW(p, fused=True)):
    found = []
    for compiled in (False, True):
        torch.manual_seed(4)
        weights = [torch.randn(3, 5, requires_grad=True), torch.randn(7, requires_grad=True)]
        optimizer = make(weights)
        plain = type(optimizer).step.__wrapped__.__wrapped__
        step = lambda: plain(optimizer)
        for _ in range(3):
            for w in weights:
                w.grad = w.detach().sin()
            with torch.no_grad():
                (torch.compile(step, fullgraph=True) if compiled else step)()
        found.append(weights)
    for want, got in zip(*found):
        torch.testing.assert_close(got, want)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)


def test_counters_and_callbacks():
    from torch._dynamo.callback import callback_handler
    from torch._dynamo.utils import clear_compilation_metrics, counters, get_compilation_metrics
    seen = []
    torch._dynamo.reset()
    clear_compilation_metrics()
    start = callback_handler.register_start_callback(lambda _: seen.append("start"))
    end = callback_handler.register_end_callback(lambda _: seen.append("end"))
    counters.clear()
    try:
        torch.compile(breaks, backend="eager")(x)
    finally:
        callback_handler.remove_start_callback(start)
        callback_handler.remove_end_callback(end)
    expect(counters["stats"]["unique_graphs"] == 2 and counters["stats"]["calls_captured"] == 2, str(counters))
    expect(sum(counters["graph_break"].values()) == 1, str(counters))
    expect(seen == ["start", "end"] * (len(seen) // 2) and seen, str(seen))
    measured = [(m.co_name, m.graph_op_count, m.entire_frame_compile_time_s > 0) for m in get_compilation_metrics()]
    expect(measured == [("breaks", 1, True)] * 2, f"what compiling cost: {measured}")
    counters.clear()
    torch.compile(breaks, backend="eager")(x)
    expect(not counters["stats"], "nothing was compiled again")
    from torch._inductor import metrics
    torch.compile(lambda x: (x + 1).sum(0) * 2)(x)
    metrics.reset()
    torch.compile(lambda x: (x + 2).sum(0) * 3)(x)
    expect(metrics.generated_kernel_count == 1, f"kernels made: {metrics.generated_kernel_count}")


COUNTED = """
import torch, fusebox, torch._dynamo, torch._inductor.config
from torch._dynamo.utils import counters
fusebox.install()
def found():
    torch._dynamo.reset()
    counters.clear()
    torch.compile(lambda a: (a * 3).cos())(torch.ones(3))
    return {name: n for name, n in counters["inductor"].items() if name.startswith("fxgraph_cache")}
first = found()
torch.compiler.save_cache_artifacts()  # waits until it is kept
second = found()
with torch._inductor.config.patch(force_disable_caches=True):
    print(first, second, found())
"""


def test_counters_of_graphs_that_are_kept():
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder}
        environment.pop("TORCHINDUCTOR_FORCE_DISABLE_CACHES", None)
        done = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, env=environment)
    expect(done.stdout == "{'fxgraph_cache_miss': 1} {'fxgraph_cache_hit': 1} {}\n", done.stdout + done.stderr)


def test_what_a_callback_raises_is_the_programs():
    from torch._dynamo.callback import callback_handler

    def refuses(_):
        raise LookupError("not now")

    torch._dynamo.reset()
    start = callback_handler.register_start_callback(refuses)
    f = torch.compile(lambda x: x + 3, backend="eager")
    try:
        f(x)
        raised = None
    except LookupError as error:
        raised = str(error)
    finally:
        callback_handler.remove_start_callback(start)
    expect(raised == "not now", f"an error of a callback: {raised}")
    expect(torch.equal(f(x), x + 3), "the next call compiles")


def test_guard_failures_are_told():
    told = []
    c = torch._dynamo.optimize("eager", guard_fail_fn=told.append, dynamic=False)(plain)
    c(x)
    c(x[:2])
    expect(len(told) == 1 and told[0].reason.startswith("tensor 'L["), str(told))

    def refuses(failure):
        told.append(failure)
        raise LookupError("a listener's own")

    torch._dynamo.reset()
    log = logging.getLogger("torch._dynamo")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        c = torch._dynamo.optimize("eager", guard_fail_fn=refuses, dynamic=False)(plain)
        expect(torch.equal(c(x), plain(x)) and torch.equal(c(x[:2]), plain(x[:2])) and len(told) == 2, f"what a listener raises is not the call's: {told}")
    finally:
        log.setLevel(level)


def test_guard_filters_are_accepted():
    backend = Counting()
    for options in ({"guard_filter_fn": torch.compiler.skip_all_guards_unsafe}, None):
        c = torch.compile(plain, backend=backend, options=options)
        torch.testing.assert_close((c(x), c(x.double())), (plain(x), plain(x.double())))


def test_modes():
    for mode in torch._inductor.list_mode_options():
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(plain, mode=mode)(x), plain(x))


def test_compiled_functions_are_copied_and_pickled_as_functions_are():
    holder = {"f": compiled_here}
    expect(copy.deepcopy(holder)["f"] is compiled_here and copy.copy(compiled_here) is compiled_here, "copies")
    expect(pickle.loads(pickle.dumps(compiled_here)) is compiled_here, "by name")
    local = torch.compile(lambda a: a)
    expect(raised(lambda: pickle.dumps(local)) is not None, "what has no name is not pickled")


def test_entries_of_a_code_object():
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list as entries_of
    from torch._dynamo.guards import DeletedGuardManagerWrapper

    def scaled(x, n):
        return x * n

    compiled = torch.compile(scaled, dynamic=False)
    expect(entries_of(scaled) == [], "none before a call")
    for n in (2, 3, 4):
        compiled(torch.ones(3), n)
    first = entries_of(scaled.__code__)
    compiled(torch.ones(3), 3)
    second = entries_of(scaled)
    expect(len(first) == len(second) == 3 and second[0] is first[1], f"the one that was met last comes first: {first}, {second}")
    expect(second[0].hits == 1 and second[0].code is scaled.__code__, "how often it was met")
    try:
        entries_of(1)
    except TypeError:
        pass
    else:
        expect(False, "a number has entries")
    torch._dynamo.reset()
    expect(entries_of(scaled) == [], "none after a reset")

    def applied(x, made):
        return made.scale(x)

    def new_class():
        return type("Scale", (), {"scale": lambda self, x: x + 1})

    torch.compile(applied)(torch.ones(3), new_class()())
    gc.collect()
    gone = entries_of(applied)
    expect(len(gone) == 1 and isinstance(gone[0].guard_manager, DeletedGuardManagerWrapper), f"what a dead object ends: {[e.guard_manager for e in gone]}")


def test_traced_by_torchscript():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    c = torch.compile(net, backend="eager")
    c(x)
    traced = torch.jit.trace(c, x)
    torch.testing.assert_close(traced(x * 2), net(x * 2))
    names = [n.kind() for n in traced.inlined_graph.nodes()]
    expect("aten::linear" in names and "aten::relu" in names, str(names))


def test_hooks_of_the_wrapper():
    seen = []
    net = nn.Linear(4, 4)
    net.register_forward_hook(lambda *_: seen.append("inner"))
    c = torch.compile(net, backend="eager")
    handle = c.register_forward_hook(lambda m, args, out: (seen.append("outer"), out + 1)[1])
    torch.testing.assert_close(c(x), net.forward(x) + 1)
    expect(seen == ["inner", "outer"], str(seen))
    handle.remove()
    torch.testing.assert_close(c(x), net.forward(x))
    expect(seen == ["inner", "outer", "inner"], str(seen))


def test_containers_that_are_compiled():
    expect(bool(torch.compile(nn.Linear(2, 2))), "a module without a length is true")
    both = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    expect(len(both) == 2 and isinstance(both[1], nn.ReLU), "a sequence")
    named = torch.compile(nn.ModuleDict({"a": nn.ReLU()}))
    expect("a" in named and "b" not in named and isinstance(named["a"], nn.ReLU), "a dict")


def test_names_come_back():
    fusebox.uninstall()
    try:
        expect(torch._dynamo.explain.__module__ == "torch._dynamo.eval_frame", torch._dynamo.explain.__module__)
        before = fusebox.config.recompile_limit
        with torch._dynamo.config.patch(recompile_limit=before + 1):
            expect(fusebox.config.recompile_limit == before, "settings are no longer handed on")
    finally:
        fusebox.install()


def test_calls_that_may_come_later():
    """torch._dynamo.config.reorderable_logging_functions: no break, in their order, with values as they were; other functions break as ever."""
    said = []

    def note(text, *values):
        said.append((text, *(v.tolist() if isinstance(v, torch.Tensor) else v for v in values)))

    def program(x):
        y = x + 1
        note("first", y, x.shape[0])
        y.mul_(2)
        note("second", y)
        return y

    counts = []
    with torch._dynamo.config.patch(reorderable_logging_functions={note}):
        for backend in ("inductor", lambda gm, inputs: counts.append(len(gm.graph.nodes)) or gm.forward):
            said.clear()
            got = torch.compile(program, backend=backend, fullgraph=True)(torch.ones(2))
            expect(torch.equal(got, torch.full((2,), 4.0)) and said == [("first", [2.0, 2.0], 2), ("second", [4.0, 4.0])], f"calls that come later: {said}")
    expect(len(counts) == 1, f"one graph: {counts}")
    said.clear()
    torch.compile(program)(torch.ones(2))
    expect(said == [("first", [2.0, 2.0], 2), ("second", [4.0, 4.0])], f"without the setting: {said}")


def test_optimize_is_a_context_too():
    outer, inner = Counting(), Counting()
    double, triple = (lambda a: a * 2), (lambda a: a * 3)
    with torch._dynamo.optimize(outer):
        a = double(x)
        double(x)
        with torch._dynamo.optimize(inner):
            b = triple(x)
        with torch._dynamo.optimize(inner, disable=True):
            plain(x)
    expect(outer.graphs == [["mul"]] and inner.graphs == [["mul"]], f"each compiles what is called in it: {outer.graphs}, {inner.graphs}")
    expect(torch.equal(a, x * 2) and torch.equal(b, x * 3), "results")
    try:
        with torch._dynamo.optimize(outer, nopython=True):
            breaks(x)
        expect(False, "a break was let through")
    except torch._dynamo.exc.Unsupported:
        pass
    (lambda a: a - 7)(x)
    expect(len(outer.graphs) == 1, "afterwards nothing is compiled")
    region = fusebox._engine.OpenRegion(engine_options(backend="eager"))
    caught = []
    thread = threading.Thread(target=lambda: caught.append(raised(region.close)))
    thread.start()
    thread.join()
    expect(isinstance(caught[0], RuntimeError) and "another thread" in str(caught[0]), f"closed elsewhere: {caught}")
    region.close()
    left = []
    thread = threading.Thread(target=lambda: left.append(fusebox._engine.OpenRegion(engine_options(backend="eager"))))
    thread.start()
    thread.join()
    with torch._dynamo.optimize(outer):
        left.clear()  # another thread's, dropped here, ends nothing here
        (lambda a: a - 8)(x)
    expect(len(outer.graphs) == 2, f"a region outlived another's: {outer.graphs}")


def test_forbidden_functions():
    import torch._dynamo

    @torch._dynamo.forbid_in_graph
    def never(x):
        return x + 1

    for f in (never, lambda x: torch._dynamo.mark_dynamic(x, 0)):
        try:
            torch.compile(lambda x: f(x))(torch.ones(3))
            expect(False, "a forbidden function was followed")
        except AssertionError as error:
            expect("forbidden" in str(error), f"forbidden: {error}")
    expect(torch.equal(never(torch.ones(2)), torch.full((2,), 2.0)), "outside it is a function like others")


if __name__ == "__main__":
    run(globals())

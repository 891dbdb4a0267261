"""Backends that are functions of Python: the FX graphs that they are given, and that running them gives what eager gives."""

import contextlib
import copy
import functools
import inspect
import io
import math
import operator
import warnings

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import fusebox
from checks.script_checks import expect, run

fusebox.install()


class Recorder:
    """Keeps what it is given and runs it as it is."""

    def __init__(self):
        self.graphs, self.inputs = [], []

    def __call__(self, gm, example_inputs):
        self.graphs.append(gm)
        self.inputs.append(example_inputs)
        return gm.forward

    def calls(self):
        return [[n for n in gm.graph.nodes if n.op.startswith("call_")] for gm in self.graphs]

    def targets(self):
        return [[n.target for n in calls] for calls in self.calls()]


class CountingCompiler:
    """Counts graphs and operators and runs them as they are, in the manner of torch._dynamo.testing.CompileCounter."""

    def __init__(self):
        self.frames = self.operators = 0

    def __call__(self, gm, example_inputs):
        self.frames += 1
        self.operators += sum(n.op.startswith("call_") for n in gm.graph.nodes)
        return gm.forward


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in flat(v)]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in flat(v)]
    return []


def plain_parts(value):
    if isinstance(value, torch.Tensor):
        return torch.Tensor
    if isinstance(value, dict):
        return {k: plain_parts(v) for k, v in value.items()}
    return [plain_parts(v) for v in value] if isinstance(value, (tuple, list)) else value


def same(what, ours, eagers):
    expect(plain_parts(ours) == plain_parts(eagers), f"{what}: {plain_parts(ours)}")
    try:
        torch.testing.assert_close(flat(ours), flat(eagers), equal_nan=True)
    except AssertionError as error:
        expect(False, f"{what}: {error}")
    ours, eagers = flat(ours), flat(eagers)
    expect([t.requires_grad for t in ours] == [t.requires_grad for t in eagers], f"{what}: requires_grad")
    expect([t.stride() for t in ours] == [t.stride() for t in eagers], f"{what}: strides")


def gradients(value, leaves):
    wanted = [t for t in flat(value) if t.requires_grad]
    if not wanted:
        return []
    return torch.autograd.grad(sum(t.sum() * (i + 1) for i, t in enumerate(wanted)), leaves, allow_unused=True)


def alike(what, program, *args, graphs=1, calls=2, backend=None, leaves=True):
    """Eager and compiled runs from the same start: results, inputs afterwards, gradients; twice, the second time compiled already."""
    fusebox.reset()
    recorder = backend or Recorder()
    for turn in range(calls):
        eager_program, eager_args = copy.deepcopy((program, args))
        our_program, our_args = (program, args) if turn == 0 and not isinstance(program, nn.Module) else copy.deepcopy((program, args))
        if isinstance(program, nn.Module):
            compiled = torch.compile(our_program, backend=recorder)
        else:
            our_args = copy.deepcopy(args)
            compiled = torch.compile(our_program, backend=recorder)
        torch.manual_seed(turn)
        eagers = eager_program(*eager_args)
        torch.manual_seed(turn)
        ours = compiled(*our_args)
        same(what, ours, eagers)
        same(what + ", inputs", [t.detach() for t in flat(our_args)], [t.detach() for t in flat(eager_args)])
        if leaves:
            def of(program, arguments):
                own = list(program.parameters()) if isinstance(program, nn.Module) else []
                return [t for t in flat(arguments) if t.requires_grad and t.is_leaf] + own
            eager_leaves, our_leaves = of(eager_program, eager_args), of(our_program, our_args)
            if eager_leaves:
                same(what + ", gradients", gradients(ours, our_leaves), gradients(eagers, eager_leaves))
        if isinstance(program, nn.Module):
            same(what + ", buffers", dict(our_program.named_buffers()), dict(eager_program.named_buffers()))
    if graphs is not None and isinstance(recorder, Recorder) and not isinstance(program, nn.Module):
        expect(len(recorder.graphs) == graphs, f"{what}: {len(recorder.graphs)} graphs instead of {graphs}")
    return recorder


def x(*sizes, grad=False):
    return torch.randn(*(sizes or (4, 6)), requires_grad=grad)


# --- the graph -----------------------------------------------------------------------------------------------------------------------


def test_targets():
    """Calls are what the program wrote, as stock's capture has them."""
    def program(a, b):
        c = torch.relu(a) + b.view(4, 6)
        c += 1
        d = F.softmax(c, -1) @ b.t()
        e = F.linear(d, d)
        e[0] = 3
        values, places = e.max(dim=1)
        return (-values).sum(), e.T, e[1:, ::2], 1 - e > 0, abs(e), F.dropout(e, 0.5, False)

    recorder = alike("targets", program, x(), x())
    wanted = [torch.relu, "view", operator.add, operator.iadd, F.softmax, "t", operator.matmul, torch._C._nn.linear, operator.setitem, "max",
              operator.getitem, operator.neg, "sum", getattr, operator.getitem, operator.sub, operator.gt, abs, F.dropout]
    targets = recorder.targets()[0]
    expect(targets == wanted, f"targets: {targets}")
    gm = recorder.graphs[0]
    expect(type(gm).__name__ == "GraphModule" and isinstance(gm, torch.fx.GraphModule), "a GraphModule")
    names = [n.target for n in gm.graph.nodes if n.op == "placeholder"]
    expect(names == ["L_a_", "L_b_"], f"placeholders: {names}")
    expect([type(t) for t in recorder.inputs[0]] == [torch.Tensor, torch.Tensor], "example inputs")
    output = list(gm.graph.nodes)[-1]
    expect(output.op == "output" and isinstance(output.args[0], tuple) and len(output.args[0]) == 6, f"output: {output.args}")
    by_name = {n.name for n in gm.graph.nodes}
    expect({"c", "d", "e"} <= by_name, f"names of locals: {by_name}")


def test_metadata():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(6, 6), nn.ReLU())

        def forward(self, a):
            return self.inner(a).sum(0)

    recorder = Recorder()
    torch.compile(Net(), backend=recorder)(x())
    gm = recorder.graphs[0]
    for node in gm.graph.nodes:
        if node.op == "output":
            continue
        value = node.meta.get("example_value")
        expect(isinstance(value, torch._subclasses.FakeTensor), f"{node.name}: example_value {type(value)}")
        if node.op.startswith("call_"):
            expect("backends_test.py" in node.meta["stack_trace"], f"{node.name}: {node.stack_trace}")
            expect(node.meta["source_fn_stack"][-1][1] == node.target, f"{node.name}: source_fn_stack")
    linear = next(n for n in gm.graph.nodes if n.target is torch._C._nn.linear)
    expect(tuple(linear.meta["example_value"].shape) == (4, 6), "the shape of a value")
    path, cls = list(linear.meta["nn_module_stack"].values())[-1]
    expect(path == "L['self'].inner.0" and cls is nn.Linear, f"nn_module_stack: {path} {cls}")
    names = [n.target for n in gm.graph.nodes if n.op == "placeholder"]
    expect("L_self_modules_inner_modules_0_parameters_weight_" in names, f"parameters are placeholders: {names}")
    expect([type(t) for t in recorder.inputs[0]].count(nn.Parameter) == 2, "parameters are given as such")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        gm.print_readable()
    expect("linear" in out.getvalue() and "backends_test" in out.getvalue(), f"print_readable: {out.getvalue()}")
    expect("call_function" in str(gm.graph) or "linear" in str(gm.graph), "the graph prints")


def test_values_are_named_as_the_program_names_them():
    from torch._higher_order_ops.wrap import wrap

    def program(x):
        def inner(a):
            return -a
        made = inner(x)
        held = made * 2
        total = wrap(lambda t: t + held, made)
        first, second = total.chunk(2)
        return first * 3 + second + (x + 1).sum()

    recorder = alike("names", program, x(4))
    names = [n.name for n in recorder.graphs[0].graph.nodes if n.op.startswith("call_")]
    expect(names == ["made", "held", "wrap", "total", "chunk", "first", "second", "mul_1", "add", "add_1", "sum_1", "add_2"], f"{names}")
    given = next(iter(recorder.graphs[0].graph.nodes))
    expect(given.type is torch.Tensor, f"an input is annotated: {given.type}")


# --- programs ------------------------------------------------------------------------------------------------------------------------


class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.bn = nn.Linear(6, 8), nn.LayerNorm(8), nn.BatchNorm1d(8)
        self.embedding, self.dropout = nn.Embedding(5, 8), nn.Dropout(0.5)
        self.register_buffer("scale", torch.full((8,), 2.0))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, a, kind="plain", *, extra=None):
        self.count += 1
        h = self.dropout(self.norm(self.bn(self.linear(a)))) * self.scale
        h = h + self.embedding(torch.tensor([0, 1, 2, 3]))
        if extra is not None:
            h = h + extra
        return {"loss": F.cross_entropy(h, torch.arange(4)), "all": [h.relu(), (h.mean(0), kind)]}


def test_modules():
    alike("a module", Everything(), x(4, 6, grad=True))
    alike("a module in eval", Everything().eval(), x(4, 6))
    conv = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5))
    alike("a convolution", conv, x(2, 3, 8, 8, grad=True))
    alike("attention", nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0), x(2, 5, 8, grad=True))
    alike("a recurrent net", nn.LSTM(6, 5, batch_first=True), x(2, 3, 6))


def test_kinds_of_arguments():
    def keywords(a, *rest, scale=1.0, **more):
        return a * scale + sum(rest) + more["bias"]

    recorder = Recorder()
    compiled = torch.compile(keywords, backend=recorder)
    a, b, c = x(), x(), x()
    same("keywords", compiled(a, b, c, scale=3.0, bias=a), keywords(a, b, c, scale=3.0, bias=a))
    same("other keywords", compiled(a, scale=2.0, bias=b), keywords(a, scale=2.0, bias=b))
    expect(len(recorder.graphs) == 2, f"a changed keyword is a recompile: {len(recorder.graphs)}")
    captured = x()

    def closure(a):
        return a + captured, {"nested": [(a * captured, None), 3]}

    alike("a closure", closure, x())
    alike("lists", lambda parts: torch.cat([p * i for i, p in enumerate(parts)]) + torch.stack(parts).sum(), [x(3, 2), x(3, 2)])


def test_views_and_writes():
    def writes(a, b):
        a.add_(b)
        a[0] = 7
        v = a.view(-1)
        v.mul_(2)
        return v[:3], a * 2, a

    alike("writes to an input", writes, x(), x())
    alike("a result that is a view of an input", lambda a: (a.t(), a[1], a.view(-1)), x())

    def aliases(a):
        h = a * 2
        first, second = h[0], h.view(-1)
        first.zero_()
        return h, first, second

    alike("results that alias", aliases, x(4, 6))
    recorder = Recorder()
    ours = torch.compile(aliases, backend=recorder)(x())
    ours[0].fill_(5)
    expect(ours[1].eq(5).all() and ours[2].eq(5).all(), "results alias each other as in eager")

    def split(a):
        first, second, third = torch.split(a, 2, 1)
        return first + third, torch.unbind(second, 1)

    alike("parts", split, x(4, 6, grad=True))
    alike("out=", lambda a, b, o: torch.add(a, b, out=o) * 2, x(), x(), torch.empty(4, 6))
    alike("iteration over a tensor", lambda a: sum(row * i for i, row in enumerate(a)), x(4, 6, grad=True))
    alike("foreach", lambda a, b: torch._foreach_add([a, b], 1.5), x(), x())
    bn = nn.BatchNorm1d(6)
    alike("running statistics once a call", bn, x(8, 6, grad=True))


def test_inputs_that_share_memory():
    """A backend that computes before it writes knows the inputs of the capture: others that share memory in another way get a graph of their own."""
    from torch._dynamo.backends.common import aot_autograd
    computes_first = aot_autograd(fw_compiler=lambda gm, given: gm.forward)

    def program(a, b):
        a.mul_(3)
        return b + 1

    def reads(a, b):
        return a + b

    shares = (lambda m: (m[:4], m[4:8]), lambda m: (m[:4], m[2:6]), lambda m: (m[2:6], m[:4]), lambda m: (m[:4], m[:4]), lambda m: (m[:4],) * 2,
              lambda m: (m[:8].view(4, 2)[:, 0], m[:8].view(4, 2)[:, 1]), lambda m: (m[4:8], m[:4]), lambda m: (m[:4], m[2:6]))
    for dynamic in (None, True):
        fusebox.reset()
        graphs = []
        compiled, others = (torch.compile(f, backend=lambda gm, given: graphs.append(gm) or computes_first(gm, given), dynamic=dynamic) for f in (program, reads))
        for i, share in enumerate(shares):
            ours, eagers = torch.arange(8.0), torch.arange(8.0)
            same(f"shared memory, {i}", (compiled(*share(ours)), ours), (program(*share(eagers)), eagers))
        before = len(graphs)
        for share in shares[:2]:
            same("without a write", others(*share(ours)), reads(*share(ours)))
        expect(len(graphs) == before + 1, f"which is the same however they lie: {len(graphs) - before}")


def test_random_state():
    alike("dropout", lambda a: F.dropout(a, 0.5) + torch.rand_like(a) + torch.randn(6), x(4, 6, grad=True))
    alike("bernoulli", lambda a: a.bernoulli(0.5) + torch.randint(0, 5, (6,)), x())


def test_breaks():
    def program(a, b):
        a = a.sin() + b
        torch._dynamo.graph_break()
        c = a.cos() * b
        if c.sum() > 0:
            c = c + 1
        else:
            c = c - 1
        return c.exp(), a

    alike("graph breaks", program, x(grad=True), x(), graphs=3)
    recorder = Recorder()
    try:
        torch.compile(program, backend=recorder, fullgraph=True)(x(), x())
    except fusebox.GraphBreakError as error:
        expect("graph_break" in str(error), f"fullgraph: {error}")
    else:
        expect(False, "fullgraph: no error")

    def in_the_middle(a):
        with torch.no_grad():
            b = a * 2
            torch._dynamo.graph_break()
            c = b + a
        return c * a, b

    recorder = alike("a break under no_grad", in_the_middle, x(grad=True), graphs=2)
    for targets in recorder.targets():
        modes = [t for t in targets if t is torch._C._set_grad_enabled]
        expect(len(modes) % 2 == 0, f"grad mode is given back at the end of a graph: {targets}")

    def autocast(a):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            b = a @ a.t()
            torch._dynamo.graph_break()
            c = b @ b
        return c, a @ a.t()

    alike("a break under autocast", autocast, x(grad=True), graphs=2)


def test_modes():
    def program(a, b):
        with torch.no_grad():
            c = a * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            d = a @ b
        with torch.enable_grad(), torch.no_grad():
            pass
        return c, d, c * a

    recorder = alike("modes", program, x(grad=True), x(6, 3, grad=True))
    wanted = [torch._C._set_grad_enabled, operator.mul, torch._C._set_grad_enabled, torch.amp.autocast_mode._enter_autocast, operator.matmul,
              torch.amp.autocast_mode._exit_autocast, operator.mul]  # of four switches, two change nothing and two take each other back
    expect(recorder.targets()[0] == wanted, f"modes: {recorder.targets()[0]}")
    with torch.no_grad():
        recorder = Recorder()
        torch.compile(lambda a: torch.no_grad()(torch.sin)(a) + 1, backend=recorder)(x())
        expect(recorder.targets()[0] == [torch.sin, operator.add], f"a switch to the mode that holds: {recorder.targets()[0]}")
        recorder = Recorder()
        torch.compile(lambda a: (torch._C._set_grad_enabled(False), a + 1)[1], backend=recorder)(x())
        expect(recorder.targets()[0] == [torch._C._set_grad_enabled, operator.add], f"one of the program's own: {recorder.targets()[0]}")
    fusebox.reset()
    recorder = Recorder()
    compiled = torch.compile(lambda a: a * 2, backend=recorder)
    leaf = x(grad=True)
    expect(compiled(leaf).requires_grad, "with gradients")
    with torch.no_grad():
        expect(not compiled(leaf).requires_grad, "without")
    expect(len(recorder.graphs) == 2, f"grad mode is guarded: {len(recorder.graphs)}")


def test_function_modes():
    """The graph has what the modes make of the program's calls, and runs without them."""
    class Scaling(torch.overrides.TorchFunctionMode):
        def __init__(self, by, *functions):
            super().__init__()
            self.by, self.functions = by, functions

        def __torch_function__(self, func, types, args=(), kwargs=None):
            made = func(*args, **(kwargs or {}))
            return made * self.by if func in self.functions else made

    def program(a):
        with Scaling(5, torch.neg):
            b = torch.neg(a)
        return torch.add(a, 1), F.relu(a) + a.T, b

    recorder = Recorder()
    compiled, a = torch.compile(program, backend=recorder, fullgraph=True), torch.randn(3, 3)
    modes = Scaling(2, torch.add, torch.neg), Scaling(3, F.relu)
    for entered in ((), modes[:1], modes, modes[::-1], modes):
        with contextlib.ExitStack() as stack:
            for mode in entered:
                stack.enter_context(mode)
            same(f"{len(entered)} modes", compiled(a), program(a))
    expect(len(recorder.graphs) == 4, f"modes are guarded, in their order: {len(recorder.graphs)}")


def test_autograd():
    class Triples(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, factor):
            ctx.save_for_backward(a)
            ctx.factor = factor
            return a * 2

        @staticmethod
        def backward(ctx, grad):
            (a,) = ctx.saved_tensors
            return grad * 3 + a * ctx.factor, None

    alike("autograd.Function", lambda a: Triples.apply(a.sin(), 2.0) + 1, x(grad=True))

    def gradient_inside(a):
        b = a.detach().requires_grad_()
        (g,) = torch.autograd.grad((b.sin() * b).sum(), b)
        return g * a

    alike("a gradient inside", gradient_inside, x(grad=True))
    alike("requires_grad", lambda a: torch.zeros(3, requires_grad=False) + a[0, :3], x(grad=True))
    net, data = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)), x(16, 6)
    other = copy.deepcopy(net)
    compiled = torch.compile(other, backend=Recorder())
    for module, forward in ((net, net), (other, compiled)):
        optimizer = torch.optim.Adam(module.parameters(), 0.01)
        for _ in range(4):
            optimizer.zero_grad()
            (forward(data) ** 2).mean().backward()
            optimizer.step()
    same("four steps of training", list(other.parameters()), list(net.parameters()))


def test_recompiles():
    recorder = Recorder()

    def program(a, n, flag):
        return a * n if flag else a + n

    compiled = torch.compile(program, backend=recorder)
    for args in ((x(3), 2, True), (x(3), 2, False), (x(3).double(), 2, True), (x(3), 2, True)):
        same("a recompile", compiled(*args), program(*args))
    expect(len(recorder.graphs) == 3, f"recompiles: {len(recorder.graphs)}")
    other = Recorder()
    same("another backend", torch.compile(program, backend=other)(x(3), 2, True).shape, torch.Size([3]))
    expect(len(other.graphs) == 1, "another backend compiles anew")
    a = x(3)
    expect(torch.equal(compiled(a, 2, True), a * 2) and len(recorder.graphs) == 3, "and the first one keeps its own")


def test_arrays_of_numpy():
    def program(t, a):
        b = t.numpy() * 2 + a
        b[0] = 1
        return torch.from_numpy(np.sqrt(b * b)) + t, b.sum(axis=0), a.astype(np.float32).max(), np.array([a, a + 1]), np.arange(3.0) / 2

    recorder = Recorder()
    compiled = torch.compile(program, backend=recorder, fullgraph=True)
    for seed in range(2):
        t, a = torch.randn(4, 3), np.random.default_rng(seed).standard_normal((4, 3))
        for ours, eagers in zip(compiled(t, a), program(t, a)):
            expect(type(ours) is type(eagers), f"numpy: {type(ours)} instead of {type(eagers)}")
            torch.testing.assert_close(torch.as_tensor(ours), torch.as_tensor(eagers), msg=lambda m: f"numpy: {m}")
    expect(len(recorder.graphs) == 1, f"numpy: {len(recorder.graphs)} graphs")
    expect(isinstance(recorder.inputs[0][1], torch.Tensor), "a backend is given tensors in the place of arrays")


def test_complex_arrays():
    def program(a):
        spectrum = np.fft.fft(a) * (1 + 2j)
        return spectrum.real + spectrum.imag, np.abs(-spectrum), np.real(a), np.fft.ifft(a).conj()

    for a in (np.arange(6.0).reshape(2, 3), np.arange(6.0) - 2j):
        recorder = Recorder()
        got, want = torch.compile(program, backend=recorder, fullgraph=True)(a), program(a)
        for ours, eagers in zip(got, want):
            expect(ours.dtype == eagers.dtype and np.allclose(ours, eagers), f"complex arrays: {ours}, not {eagers}")
        expect(len(recorder.graphs) == 1, "complex arrays: one graph")


def test_numbers_of_numpy_that_change():
    """A constant first, then a tensor without dimensions that the graph is given."""
    x = torch.randn(4, 3, dtype=torch.float64)
    for kind in (np.int64, np.float32, np.float64):
        counting = CountingCompiler()
        fusebox.reset()
        program = lambda x, n: {"a": x + 1, "b": x / n, "c": n * x - n}
        compiled = torch.compile(program, backend=counting, fullgraph=True)
        for n in (3, 2, 5, 7, 4):
            same(f"a {kind.__name__} that changes", list(compiled(x, kind(n)).values()), list(program(x, kind(n)).values()))
        expect(counting.frames == 2, f"{kind.__name__}: {counting.frames} graphs")


def test_types_of_numbers_of_numpy():
    """A graph has them as numbers of Python, and says of which type a tensor is that is made of them."""
    program = lambda t, n, m: (torch.tensor(n), torch.as_tensor(m) + t, torch.tensor([n, n]))
    for n, m in ((np.int32(3), np.float64(2)), (np.bool_(True), np.float32(1.5)), (np.float64(3), np.int8(4))):
        fusebox.reset()
        t = torch.arange(3)
        got, want = torch.compile(program, backend=Recorder(), fullgraph=True)(t, n, m), program(t, n, m)
        expect([g.dtype for g in got] == [w.dtype for w in want], f"{[g.dtype for g in got]} of {type(n).__name__} and {type(m).__name__}, not {[w.dtype for w in want]}")
        same("made of numbers of numpy", got, want)


def test_data_that_numpy_warns_of():
    """The graph says whether numpy would have warned; then the call is Python's, and where that is the rule so is the program."""
    recorder = Recorder()

    def program(a):
        return 1 / a

    compiled = torch.compile(program, backend=recorder)
    expect(compiled(np.ones(3)).tolist() == [1, 1, 1] and len(recorder.graphs) == 1, "numpy: a quiet call")
    for turn in range(8):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            expect(compiled(np.zeros(3)).tolist() == [np.inf] * 3, "numpy: a division by zero")
        expect([str(w.message) for w in heard] == ["divide by zero encountered in divide"], f"numpy: {[str(w.message) for w in heard]}")
    runs = len(recorder.graphs)
    expect(runs == 1, f"numpy: {runs} graphs after calls that do not fit")

    def writes(a):
        a += 1.5
        return a * 2

    recorder = Recorder()
    a, b = np.ones(3), np.ones(3)
    expect(torch.compile(writes, backend=recorder)(a).tolist() == writes(b).tolist() and a.tolist() == b.tolist(), "numpy: an array of the program is written to")

    class Raising(Recorder):
        def __call__(self, gm, example_inputs):
            def raises(*args):
                raise RuntimeError("broken")
            return raises

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        expect(torch.compile(lambda a: 1 / a, backend=Raising())(np.full(3, 2.0)).tolist() == [0.5] * 3, "numpy: a backend that raises")
    expect(any("broken" in str(w.message) for w in heard), f"numpy: what a backend raised is told: {[str(w.message) for w in heard]}")


def test_conditions_that_raise():
    def program(t):
        y = t.sin()
        if not t.gt(0).all():
            raise ValueError("not positive")
        assert t[0] != 3, "three"
        t.sum().item()
        return y + t.cos()

    import torch._dynamo
    recorder = Recorder()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(program, backend=recorder, fullgraph=True)
        for values in ([1.0, 2.0], [2.0, 1.0], [-1.0, 2.0], [3.0, 1.0], [1.0, 1.0]):
            t, outcomes = torch.tensor(values), []
            for f in (program, compiled):
                try:
                    outcomes.append(f(t).tolist())
                except (ValueError, AssertionError) as error:
                    outcomes.append(f"{type(error).__name__}: {error}")
            expect(outcomes[0] == outcomes[1], f"a condition that raises, of {values}: {outcomes}")
    expect(len(recorder.graphs) == 1, f"conditions that raise: {len(recorder.graphs)} graphs")
    expect("sum" not in str(recorder.targets()[0]) or "clone" not in str(recorder.targets()[0]), "a number that nobody uses is not read in the graph")

    def writes(t, o):
        o.add_(1)
        assert t[0] > 0
        return t * 2

    recorder, o = Recorder(), torch.zeros(1)
    compiled = torch.compile(writes, backend=recorder)
    expect(compiled(torch.ones(1), o).tolist() == [2] and o.tolist() == [1], "a condition behind a write")
    try:
        compiled(-torch.ones(1), o)
        expect(False, "a condition behind a write holds although it does not")
    except AssertionError:
        expect(o.tolist() == [2], f"what was written before a condition is written once: {o}")


def test_arguments_of_other_kinds():
    """What torch takes for a type or a number is one in the graph."""
    recorder = Recorder()
    program = lambda t: (t * np.int64(3)).to(bool).to(float) + np.array([2.0], dtype=np.dtype("float64")).size + torch.LongTensor([np.arange(3)[1]])
    t = torch.randn(4)
    same("types and numbers of numpy", torch.compile(program, backend=recorder, fullgraph=True)(t), program(t))
    expect(torch.float64 in {a for n in recorder.graphs[0].graph.nodes for a in n.args}, "a type of Python's is one of torch's")


def test_numbers_that_are_read():
    import torch._dynamo

    def program(t, ints):
        whole = [[n * 2 for n in row] for row in ints.tolist()]
        ints.add_(1)
        return whole, t.sum().item() / 2, float(t[0]), t.cos()

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        recorder = Recorder()
        compiled = torch.compile(program, backend=recorder, fullgraph=True)
        for _ in range(2):
            t, ints = torch.randn(4), torch.randint(9, (2, 3))
            again = ints.clone()
            ours, eagers = compiled(t, ints), program(t, again)
            expect(ours[:3] == eagers[:3] and torch.equal(ints, again), f"numbers that are read: {ours[:3]} instead of {eagers[:3]}")
            same("beside numbers that are read", ours[3], eagers[3])
        expect(len(recorder.graphs) == 1, f"numbers that are read: {len(recorder.graphs)} graphs")
    recorder = Recorder()
    torch.compile(lambda t: (t * 2).sum().item() + t, backend=recorder)(torch.ones(3))
    expect(len(recorder.graphs) == 2, f"a graph ends where item() reads a number: {len(recorder.graphs)}")


def test_nothing_to_compile():
    recorder = Recorder()
    a = x()
    expect(torch.compile(lambda a: a, backend=recorder)(a) is a, "an input is handed on")
    expect(torch.compile(lambda a: a.shape, backend=recorder)(a) == a.shape, "sizes")
    expect(not recorder.graphs, "no graph is compiled for them")


def test_higher_order():
    def cond(p, a, b):
        return torch.cond(p, lambda t: t.sin() + b, lambda t: t.cos() * 2, (a,))

    for flag in (True, False):
        p, a, b = torch.tensor(flag), x(), x()
        wanted = a.sin() + b if flag else a.cos() * 2
        same(f"cond {flag}, eager", cond(p, a, b), wanted)
        fusebox.reset()
        recorder = Recorder()
        compiled = torch.compile(cond, backend=recorder, fullgraph=True)
        same(f"cond {flag}, compiled", compiled(p, a, b), wanted)
        expect(torch.ops.higher_order.cond in recorder.targets()[0], f"cond is a call of the graph: {recorder.targets()}")
        same("cond, the other way", compiled(torch.tensor(not flag), a, b), a.cos() * 2 if flag else a.sin() + b)
        expect(len(recorder.graphs) == 1, "one graph holds both branches")
        same("cond under the engine's own backend", torch.compile(cond)(p, a, b), wanted)

    from torch._higher_order_ops.while_loop import while_loop

    def loop(n, a):
        return while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t * 2 + a), (torch.tensor(0), a))

    for compile_ in (lambda f: f, lambda f: torch.compile(f, backend=Recorder()), torch.compile):
        a = x()
        i, t = compile_(loop)(torch.tensor(3), a)
        same("while_loop", t, ((a * 2 + a) * 2 + a) * 2 + a)
        expect(i.item() == 3, "while_loop counts")


    from torch._higher_order_ops.associative_scan import associative_scan
    from torch._higher_order_ops.map import map as mapped
    from torch._higher_order_ops.scan import scan
    programs = {
        "map": (lambda a, b: mapped(lambda row, other: row.sin() + other * b, a, 2.0 * b), lambda a, b: a.sin() + 2.0 * b * b),
        "scan": (lambda a, b: scan(lambda total, row: (total + row, total * row + b), torch.zeros(6), a)[0], lambda a, b: a.sum(0)),
        "associative_scan": (lambda a, b: associative_scan(torch.add, a, 0, combine_mode="generic"), lambda a, b: a.cumsum(0)),
    }
    for name, (program, wanted) in programs.items():
        for how in (lambda f: f, lambda f: torch.compile(f, backend=Recorder()), torch.compile):
            fusebox.reset()
            a, b = x(), x(6)
            same(name, how(program)(a, b), wanted(a, b))

    def rows(a, b):
        return mapped(lambda row, other: {"sum": row.sum(), "parts": (row * other, [row.sin()])}, a, b)

    for backend in (Recorder(), "eager", "inductor"):
        fusebox.reset()
        a, b = x(), x(6)
        made = torch.compile(rows, backend=backend, fullgraph=True)(a, b)
        same(f"rows, {backend}", made, {"sum": a.sum(1), "parts": (a * b, [a.sin()])})
        if isinstance(backend, Recorder):
            expect(backend.targets()[0][0] is torch.ops.higher_order.map_impl, f"a call of the graph: {backend.targets()[0]}")
        else:
            a.requires_grad_()
            compiled = torch.compile(lambda a, b: mapped(lambda row: (row * b).sum(), a), backend=backend, fullgraph=True)
            (found,) = torch.autograd.grad(compiled(a, b).sum(), a)
            torch.testing.assert_close(found, b.expand(4, 6), msg=lambda m: f"gradients of rows: {m}")


def test_higher_order_operators_of_their_own_tracing():
    from torch._dynamo.backends.common import aot_autograd

    @torch.library.custom_op("backends_test::halve", mutates_args=("a",))
    def halve(a: torch.Tensor) -> None:
        a.div_(2)

    def program(p, a):
        made = a.clone()
        halve(made[1:])
        return torch.cond(p, lambda t: t.sin(), lambda t: t.cos() * 2, (made,))

    for backend in (aot_autograd(fw_compiler=lambda gm, example_inputs: gm.forward), "aot_eager_decomp_partition"):
        fusebox.reset()
        a = x()
        made = torch.cat([a[:1], a[1:] / 2])
        same("cond and a write", torch.compile(program, backend=backend, fullgraph=True)(torch.tensor(True), a), made.sin())


def test_tensors_as_positions():
    """A tensor without dimensions in an index is given as it is, whichever row it picks."""
    def written(a, i):
        b = a * 2
        b[i] = a[0] + 1
        b[i, 1:] += a[i, 1:]
        return b

    for name, program in {"read": lambda a, i: a[i] * 2, "a view": lambda a, i: a[i], "beside others": lambda a, i: a[i, :2] + a[:2, i], "written": written}.items():
        for position in (0, 2, -1):
            alike(f"{name} at {position}", program, x(3, 4, grad=True), torch.tensor(position))
    recorder = Recorder()
    compiled = torch.compile(lambda a, i: a[i] * 2, backend=recorder)
    a = x(3, 4)
    for position in (1, -3, 2):
        same("another row", compiled(a, torch.tensor(position)), a[position] * 2)
    expect(len(recorder.graphs) == 1, f"{len(recorder.graphs)} graphs for three rows")


def test_functions_in_graphs_of_their_own():
    from torch._higher_order_ops.wrap import wrap
    outside, number = x(6), np.float32(0.5)

    def inner(a, pair, *, scale):
        first, (second,) = pair
        return {"sum": a * scale + first, "rest": [wrap(lambda t: t - second, a) * number, outside]}

    def program(a, b, c):
        made = wrap(inner, a, (b, (c,)), scale=3)
        return made["sum"].sin(), made["rest"]

    recorder = alike("a function in a graph of its own", program, x(grad=True), x(), x())
    gm = recorder.graphs[0]
    node = next(n for n in gm.graph.nodes if n.target is wrap)
    expect([n.op for n in node.args] == ["get_attr"] + ["placeholder"] * 4, f"what it uses is given: {node.args}")
    names = [name for name, _ in gm.named_modules()]
    expect(names == ["", "wrap_body_1", "wrap_body_1.wrap_body_0"], f"names: {names}")
    for body in (gm.wrap_body_1, gm.wrap_body_1.wrap_body_0):
        expect(all("example_value" in n.meta for n in body.graph.nodes if n.op != "output" and n.op != "get_attr"), f"sizes inside: {body.graph}")
    stacks = [[name for name, _ in n.meta["source_fn_stack"]] for n in gm.wrap_body_1.wrap_body_0.graph.nodes if n.op == "call_function"]
    expect(stacks == [["wrap", "wrap", "sub"]], f"where a call is: {stacks}")
    same("the engine's own backend", torch.compile(program, fullgraph=True)(a := x(), b := x(), c := x()), program(a, b, c))

    def counts(a):
        seen = [0]

        def add(t):
            seen[0] += 1
            return t + seen[0]

        return wrap(add, a), seen

    alike("a function that writes to what was made before", counts, x(), graphs=None)
    for flag in (True, False):
        def chooses(p, a):
            way, seen = 0, []

            def one(t):
                nonlocal way
                way = 1
                seen.append("one")
                return t + 1

            def two(t):
                nonlocal way
                way = 2
                seen.append("two")
                return t - 1

            return torch.cond(p, one, two, (a,)) * way, way, seen

        fusebox.reset()
        p, a = torch.tensor(flag), x()
        (ours, *state), (eagers, *wanted) = torch.compile(chooses, backend=Recorder())(p, a), chooses(p, a)
        same("branches that write", ours, eagers)
        expect(state == wanted, f"only the branch that is taken writes: {state}, {wanted}")


def test_functions_that_operators_call():
    from torch._higher_order_ops.wrap import wrap_with_autocast, wrap_with_set_grad_enabled

    @torch.compiler.nested_compile_region
    def block(a, *, scale):
        return (a * scale).sin(), a.shape[0]

    def program(a, w):
        first, rows = block(a, scale=2)
        second, _ = block(first, scale=rows)
        quiet = wrap_with_set_grad_enabled(False, lambda t: t * 3, second)
        low = wrap_with_autocast("cpu", torch.bfloat16, True, True, lambda t, u: t @ u, second, w)
        return second, quiet, low

    alike("functions that operators call", program, x(grad=True), x(6, 3), graphs=1)
    alike("the same, compiled here", program, x(grad=True), x(6, 3), graphs=None, backend="aot_eager")


def test_what_a_backend_may_ask():
    reasons, ids = [], []

    def backend(gm, example_inputs):
        reasons.append(gm.compile_subgraph_reason.graph_break)
        ids.append(torch._guards.CompileContext.get().compile_id)
        return gm.forward

    def program(a):
        a = a + 1
        torch._dynamo.graph_break()
        return a * 2

    torch.compile(program, backend=backend)(x())
    expect(reasons == [True, False], f"whether a graph ends at a break: {reasons}")
    expect(len(set(ids)) == 2, f"graphs have numbers: {ids}")

    keeps = {}
    scale = x(6)

    def outer(a):
        return {name: value + scale for name, value in (("a", a),)}

    def named(gm, example_inputs):
        keeps["names"] = [n.name for n in gm.graph.nodes if n.op == "placeholder"]
        return gm.forward

    torch.compile(outer, backend=named)(x())
    expect(sorted(keeps["names"]) == ["l_a_", "l_scale_"], f"a variable of an enclosing function is named as the function's own: {keeps}")


def test_what_a_backend_traces_fits_every_size():
    from torch._dynamo.backends.common import aot_autograd
    backend = aot_autograd(fw_compiler=lambda gm, example_inputs: gm.forward)
    program = lambda a: (torch.diagonal_copy(a), a.view(-1)[: a.shape[0]])  # noqa: E731
    for dynamic in (None, True):
        fusebox.reset()
        compiled = torch.compile(program, backend=lambda gm, given: backend(gm, given), dynamic=dynamic, fullgraph=True)
        for shape in ((2, 3), (3, 2), (4, 4)):
            a = x(*shape)
            for ours, eagers in zip(compiled(a), program(a)):
                same(f"sizes {shape}", ours, eagers)


def test_sizes_are_symbols():
    def unpacked(a):
        first, _, last = a.permute(2, 0, 1)
        return (first * last).reshape(a.shape[0], a.shape[1], 1)

    layer, recurrent = nn.Linear(6, 6), nn.GRU(6, 4, bidirectional=True, batch_first=True)
    programs = {
        "a layer": (lambda a: layer(a) * a.shape[0], lambda n: (torch.randn(n, 6),)),
        "views": (lambda a: a.view(2 * a.shape[0], -1)[: a.shape[0]], lambda n: (torch.randn(n, 6),)),
        "an index": (lambda a, b: a[b.size(0) - 1] + b[: b.size(0) // 2].sum(), lambda n: (torch.randn(n), torch.randn(n))),
        "two sizes": (lambda a, b: torch.cat([a, b]).mean(0) / (a.shape[0] + b.shape[0]), lambda n: (torch.randn(n, 6), torch.randn(2 * n + 1, 6))),
        "sizes that meet": (lambda a, b: a * b + (a.shape[0] - b.shape[0]), lambda n: (torch.randn(n), torch.randn(n))),
        "sizes that meet later": (lambda a, b, c: (a.sum(1) + b[: b.shape[0] // 2]) @ c, lambda n: (torch.randn(n, 3), torch.randn(2 * n), torch.randn(n, 2))),
        "made inside": (lambda a: a + torch.arange(a.shape[0])[:, None] - max(a.shape[0], 3), lambda n: (torch.randn(n, 6),)),
        "a result": (lambda a: (a * 2, a.shape[0] * 3), lambda n: (torch.randn(n, 6),)),
        "an int": (lambda a, n: a.view(n, -1) * (n // 2), lambda n: (torch.randn(n * 6), n)),
        "sizes that must be equal": (lambda a, b: F.grid_sample(a, b, align_corners=False), lambda n: (torch.randn(n, 2, 3, 3), torch.randn(n, 10, 11, 2))),
        "sizes of a sum": (lambda a, b: a + b.mean(1, keepdim=True), lambda n: (torch.randn(n, n + 1), torch.randn(n, n + 1))),
        "parts of a tensor": (unpacked, lambda n: (torch.randn(n, n + 2, 3),)),
        "a torch.Size": (lambda a: F.interpolate(a[..., ::2], size=a.shape[-1:]) + F.layer_norm(a, a.shape[2:]), lambda n: (torch.randn(2, 3, 3 * n),)),
        "numbers that guards compute": (lambda a: a.new_ones(int(math.sqrt(a.shape[0])) + round(a.shape[0] / 3), math.isqrt(a.shape[0] * 3)) * a.sum(),
                                        lambda n: (torch.randn(n * n, 2),)),
        "a number that is compared": (lambda a: a.topk(math.floor(a.shape[0] * 0.6), 0).values, lambda n: (torch.randn(n, 3),)),
        "a float": (lambda a: a * (a.shape[0] * 0.3) + torch.clamp(a, max=math.sqrt(a.shape[0]) / (a.shape[0] + 1)), lambda n: (torch.randn(n, 3),)),
        "steps of a network": (lambda a: recurrent(a)[0].sum(-1) + recurrent(a.transpose(0, 1))[1][0, 0, 0], lambda n: (torch.randn(n, n + 1, 6),)),
    }
    for what, (program, inputs) in programs.items():
        for dynamic in (None, True):
            fusebox.reset()
            recorder = Recorder()
            compiled = torch.compile(program, backend=recorder, dynamic=dynamic, fullgraph=True)
            for n in (4, 7, 5, 9, 12):
                given = inputs(n)
                ours, eagers = compiled(*given), program(*given)
                torch.testing.assert_close(ours, eagers, msg=lambda m: f"{what}, {n}: {m}")
            expect(len(recorder.graphs) == (1 if dynamic else 2), f"{what}: one graph for all sizes: {len(recorder.graphs)}")
            first = next(iter(recorder.graphs[-1].graph.nodes))
            expect(isinstance(first.meta["example_value"], torch.SymInt), f"{what}: the sizes come first: {first.meta}")
    # What the backend itself asks of sizes holds for all of them, or they are constants.
    from torch._dynamo.backends.common import aot_autograd
    fusebox.reset()
    made = []
    asks = aot_autograd(fw_compiler=lambda gm, given: made.append(gm) or gm.forward if given[-1].shape[0] % 4 else (lambda *values: [values[-1] * 0 + 7]))
    compiled = torch.compile(lambda a: a * 2, backend=asks, dynamic=True)
    for n in (3, 5, 6, 8, 9, 12, 13):
        a = torch.randn(n)
        same(f"a backend that asks, {n}", compiled(a), torch.full((n,), 7.0) if n % 4 == 0 else a * 2)
    expect(len(made) == 1, f"what it asks is guarded: {len(made)} graphs for sizes that are no multiples of four")


def test_data_in_graphs():
    """Where torch's settings ask for it, numbers that are read from tensors and sizes that data decide are in the graph."""
    from torch._dynamo.backends.common import aot_autograd

    def counted(n):
        n = n.item()
        torch._check(n >= 0)
        return torch.arange(n) * 2, [n] * 2

    def parts(a, lengths):
        return torch.split(a, lengths.tolist())

    def several(n):
        h, w = n.tolist()
        torch._check(h < 100)
        return torch.zeros(h, w) + torch.arange(w), h * w

    def places(a):
        found = a.nonzero()
        return found + 1, found.shape[0] * 2

    def one_more(a, n):
        a.add_(1)
        return torch.ones(n.item())

    table = lambda *rows: [(torch.tensor(row),) for row in rows]  # noqa: E731
    cases = {
        "a number as a size": (counted, table(3, 4, 0, 1, 7), True),
        "lengths of parts": (parts, [(torch.arange(9.0), torch.tensor(row)) for row in ([4, 5], [6, 3], [0, 9], [8, 1])], True),
        "two numbers": (several, table([3, 4], [5, 2], [9, 8]), True),
        "how many are found": (places, table([1, 0, 2, 0], [0, 0, 0, 0], [0, 1, 0, 0], [3, 3, 3, 3]), True),
        "a write that cannot be taken back": (one_more, [(torch.ones(3), torch.tensor(n)) for n in (3, 5, 1)], False),
    }
    for what, (program, calls, whole) in cases.items():
        for inner in (None, aot_autograd(fw_compiler=lambda gm, given: gm.forward)):
            for dynamic in (None, True):
                fusebox.reset()
                graphs = []

                def backend(gm, given):
                    graphs.append(gm)
                    return inner(gm, given) if inner else gm.forward

                with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
                    compiled = torch.compile(program, backend=backend, fullgraph=whole, dynamic=dynamic)
                    for given in calls:
                        ours, eagers = copy.deepcopy(given), copy.deepcopy(given)
                        same(f"{what}, {given[-1].tolist()}", (compiled(*ours), ours), (program(*eagers), eagers))
                expect(not whole or len(graphs) == 1, f"{what}: {len(graphs)} graphs")
    expect(not torch._dynamo.config.capture_scalar_outputs, "the setting is as it was")
    fusebox.reset()
    recorder = Recorder()
    same("a number without the setting", torch.compile(counted, backend=recorder)(torch.tensor(3)), counted(torch.tensor(3)))
    expect(all(n.target != "item" for gm in recorder.graphs for n in gm.graph.nodes), "and it is in no graph")


def test_ints_that_were_none_and_one():
    """An int that changes is a symbol, whatever it was."""
    def closed_over(n):
        return lambda a: a * n

    recorder = Recorder()
    compiled = torch.compile(lambda a, f: f(a), backend=recorder)
    for n in range(6):
        a = x(3)
        same(f"an int, {n}", compiled(a, closed_over(n)), a * n)
    expect(len(recorder.graphs) == 2, f"one graph for 0, one for the others: {len(recorder.graphs)}")

    def program(a, n):
        return a.sum(n) if n < 2 else a * n, n / 2

    compiled = torch.compile(program, backend=Recorder())
    for n in (0, 1, 2, 1, 3, 0, 4):
        a = x()
        same(f"a dimension, or a factor, {n}", compiled(a, n), program(a, n))


def test_functions_of_an_operator_return_containers():
    """What one function gives is never taken for what the other gives."""
    def first(given):
        return {"made": [given["a"], (given["b"] + 1,)], "last": given["a"] * 2}

    def second(given):
        return {"made": [given["b"], (given["a"] - 1,)], "last": given["b"] * 3}

    def other(given):
        return {"last": given["b"] * 3, "made": [given["b"], (given["a"] - 1,)]}

    def program(choice, given):
        return torch.cond(choice, first, second, (given,))

    a, b = x(), x() + 1
    for backend in (Recorder(), "eager", "inductor"):
        torch._dynamo.reset()
        compiled = torch.compile(program, backend=backend)
        for choice, function in ((True, first), (False, second)):
            same(f"containers, {choice}", compiled(torch.tensor(choice), {"a": a, "b": b}), function({"a": a, "b": b}))
    for choice, function in ((True, first), (False, second)):
        same(f"called eagerly, {choice}", program(torch.tensor(choice), {"a": a, "b": b}), function({"a": a, "b": b}))
    for choice, function in ((True, first), (False, other)):
        try:
            got = torch.compile(lambda c: torch.cond(c, first, other, ({"a": a, "b": b},)), backend=Recorder())(torch.tensor(choice))
        except Exception:  # PyTorch refuses functions that return containers in another order
            continue
        for key, value in function({"a": a, "b": b}).items():
            same(f"another order, {choice}, {key}", got[key], value)


def test_items_that_are_written_at_a_symbol():
    def program(a, n):
        a[n] = n * 2
        a[:n, 1] += 1
        return a

    recorder = Recorder()
    compiled = torch.compile(program, backend=recorder)
    for n in (2, 3, 5, 7):
        given, other = torch.zeros(9, 3), torch.zeros(9, 3)
        same(f"place {n}", compiled(given, n), program(other, n))
        same(f"the tensor itself, place {n}", given, other)
    expect(len(recorder.graphs) == 2, f"a place that changes is a symbol: {len(recorder.graphs)} graphs")


def test_operators_in_place_of_numbers():
    def total(values):
        made, product = 0, 2
        for value in values:
            made += value
            product *= value
        return made, product

    alike("numbers at the left", total, [x(3), x(3)])


def test_classes_that_answer_are_asked_once():
    heard = []

    class Named(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            heard.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs)

    def program(a):
        b = torch.tanh(a)
        return b.tanh() + b

    recorder = Recorder()
    compiled = torch.compile(program, backend=recorder, fullgraph=True)
    a = torch.randn(3)
    ours = compiled(a.as_subclass(Named))
    asked, heard[:] = list(heard), []
    eagers = program(a.as_subclass(Named))
    expect(asked == heard, f"the class is asked as in eager: {asked} {heard}")
    expect(type(ours) is Named and torch.equal(ours.as_subclass(torch.Tensor), eagers.as_subclass(torch.Tensor)), "and gives its tensors")
    expect(len(recorder.targets()[0]) == 3, f"no call gives a class: {recorder.targets()[0]}")


def test_inputs_that_stay():
    """Backends are told which inputs a module has, and how the program marked the others."""
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(3))
            self.shift = torch.ones(3)

        def forward(self, a):
            return a * self.scale + self.shift

    module, marked, tagged = Scaled(), torch.ones(3), torch.ones(3)
    torch._dynamo.mark_static_address(marked, guard=True)
    tagged.tag = "mine"
    recorder = Recorder()
    torch.compile(lambda a, b, c, scale: module(a) + b + c + scale, backend=recorder)(x(3), marked, tagged, module.scale)
    said = {n.name: n.meta["tensor_dict"] for n in recorder.graphs[0].graph.nodes if n.op == "placeholder"}
    stays = {name: marks.get("_dynamo_static_input_type") for name, marks in said.items()}
    expect(sorted(map(str, stays.values())) == ["None", "None", "guarded", "unguarded", "unguarded"], f"which stay: {stays}")
    expect(any(marks.get("tag") == "mine" for marks in said.values()), f"tags: {said}")


def test_transforms_from_outside():
    compiled = torch.compile(lambda a: a.sin() * a)
    a = torch.randn(5, requires_grad=True)
    out, plain = compiled(a), a.sin() * a
    given = [torch.func.vjp(lambda v: torch.autograd.grad(y, a, v), torch.ones(5))[0] for y in (out, plain)]
    torch.testing.assert_close(*given, msg="compiled backward in a transform")
    try:
        torch.func.vmap(torch.compile(lambda a: a + 1, fullgraph=True))(torch.ones(3, 2))
    except torch._dynamo.exc.Unsupported as error:
        expect("torch.func.vmap(compiled_fn)" in str(error), f"compiled inside of vmap: {error}")
    else:
        expect(False, "compiled inside of vmap: no error")


def test_transforms():
    recorder = alike("vmap", lambda a: torch.vmap(lambda row: row.sum() * row)(a), x(), graphs=None)  # a guard of its may die with garbage: compiled again
    names = [n.name for n in recorder.graphs[0].graph.nodes if n.op == "call_function"]
    expect(names[0] == "lazy_load_decompositions", f"what torch sets up for a transform is a call of the graph: {names}")


def test_as_stock():
    """The calls of a graph are those that stock's capture of the installed PyTorch finds."""
    net = Everything().eval()

    def views(a, b):
        c = a.view(2, 12).transpose(0, 1)[1:, None].contiguous()
        first, second = torch.chunk(b, 2, dim=1)
        return c.expand(-1, 3, -1).reshape(-1), first @ second.mT, torch.stack([a, b]).permute(1, 0, 2), b[..., :2]

    def in_place(a, b):
        a = a.clone()
        a.mul_(2).add_(b)
        a[1] = 0
        b = b * a
        b -= 1
        return torch.where(a > b, a, b), a.clamp_(0, 1)

    def functions(a, b):
        c = F.layer_norm(a, (6,)) + F.gelu(b, approximate="tanh")
        d = F.log_softmax(c, dim=-1)
        e = F.nll_loss(d, torch.tensor([0, 1, 2, 3]))
        return e, F.mse_loss(a, b), F.normalize(a), F.dropout(a, 0.0, True), torch.einsum("ij,ij->i", a, b), a.norm(dim=1)

    def modes(a, b):
        with torch.no_grad():
            c = a * b
        with torch.autocast("cpu", dtype=torch.bfloat16):
            d = a @ b.t()
        return c + d.float().sum()

    def containers(a, b):
        parts = {"a": [a, b], "b": (a + 1,)}
        values, places = torch.sort(parts["a"][0], dim=0)
        return {"values": values, "rest": [p.max() for p in parts["a"]], "x": torch.cat(parts["a"] + list(parts["b"]))}

    def numbers(a, b):
        return a ** 2 / (b.abs() + 1e-3) - 3 * a + (1 - b), a // 2, a % 3, -a, ~(a > 0), (a > 0) & (b < 0), a.sum().sqrt(), a.to(torch.float64)

    def random(a, b):
        return torch.rand_like(a) + torch.randn(4, 6) * b, torch.zeros(3, dtype=torch.int64), torch.arange(0, 10, 2)

    def writes(a, b):
        a.add_(b)
        b.zero_()
        return a * 2

    def broken(a, b):
        c = a.sin()
        torch._dynamo.graph_break()
        return c.cos() + b

    def attention(a, b):
        q = a.view(1, 2, 2, 6)
        return F.scaled_dot_product_attention(q, q, q, is_causal=True), torch.softmax(q, -1), torch.tril(torch.ones(3, 3))

    programs = [views, in_place, functions, modes, containers, numbers, random, writes, broken, attention, lambda a, b: net(a)["all"],
                nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.LayerNorm(6), nn.Dropout(0.1)), lambda a, b: a]
    for program in programs:
        found = []
        for uses_ours in (True, False):
            recorder, args = Recorder(), (x(), x())
            (fusebox.install if uses_ours else fusebox.uninstall)()
            fusebox.reset()
            torch._dynamo.reset()
            try:
                torch.compile(copy.deepcopy(program) if isinstance(program, nn.Module) else program, backend=recorder)(
                    *args[:1 if isinstance(program, nn.Module) else 2])
            finally:
                fusebox.install()
            found.append([[(n.op, getattr(n.target, "__name__", n.target), len(n.all_input_nodes)) for n in gm.graph.nodes] for gm in recorder.graphs])
        what = getattr(program, "__name__", type(program).__name__)
        for ours, stocks in zip(*found):
            ours, stocks = ([row for row in rows if row[0] not in ("placeholder", "output")] for rows in (ours, stocks))
            expect(ours == stocks, f"{what}: {[r for r in ours if r not in stocks]} instead of {[r for r in stocks if r not in ours]}")
        expect(len(found[0]) == len(found[1]), f"{what}: {len(found[0])} graphs, stock {len(found[1])}")


def test_allowed_in_graph():
    @torch.compiler.allow_in_graph
    def own(a, b):
        return a * 2 + b.sin()

    recorder = alike("allow_in_graph", lambda a, b: own(a + 1, b) * 3, x(grad=True), x())
    expect(recorder.targets()[0] == [operator.add, own, operator.mul], f"allow_in_graph: {recorder.targets()[0]}")

    def sets_data(a):
        b = a * 2
        b.data = torch.zeros(3)
        return b + 1

    alike("what is no call is a break", sets_data, x(), graphs=2)


# --- backends of all kinds -----------------------------------------------------------------------------------------------------------


def program(a, b):
    return (a.sin() + b).relu().sum(0), a * b


def test_kinds_of_backends():
    counter = CountingCompiler()
    a, b = x(), x()
    compiled = torch.compile(program, backend=counter)
    same("a counter", compiled(a, b), program(a, b))
    compiled(a, b)
    expect((counter.frames, counter.operators) == (1, 5), f"a counter: {counter.frames}, {counter.operators}")

    def with_option(gm, inputs, *, factor):
        return lambda *args: [r * factor for r in gm(*args)]

    same("functools.partial", torch.compile(program, backend=functools.partial(with_option, factor=2))(a, b), [r * 2 for r in program(a, b)])

    def with_options(gm, inputs, mode=None, options=None):
        return lambda *args: [r * options["factor"] for r in gm(*args)]

    same("options", torch.compile(program, backend=with_options, options={"factor": 3})(a, b), [r * 3 for r in program(a, b)])

    class Rewrites:
        def compile(self, gm, inputs):
            for node in list(gm.graph.nodes):
                if node.target is operator.add:
                    node.target = operator.sub
            gm.graph.lint()
            gm.recompile()
            return gm.forward

    same("a method that rewrites", torch.compile(program, backend=Rewrites().compile)(a, b), ((a.sin() - b).relu().sum(0), a * b))

    def nested(gm, inputs):
        inner = torch.compile(gm, backend="aot_eager")
        return lambda *args: inner(*args)

    same("torch.compile of the graph inside a backend", torch.compile(program, backend=nested)(a, b), program(a, b))

    def engines_own(gm, inputs):
        return fusebox.compile(gm)

    same("and by the engine", torch.compile(program, backend=engines_own)(a, b), program(a, b))


def test_piecewise():
    """A backend that cuts the graph at some calls and compiles the pieces, as vLLM's does."""
    from torch.fx.passes.split_module import split_module

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

        def forward(self, a):
            for layer in self.layers:
                a = F.softmax(layer(a), -1) + a
            return a, a.sum()

    pieces = []

    def piecewise(gm, inputs):
        part, parts = 0, {}
        for node in gm.graph.nodes:
            part += node.target is F.softmax
            parts[node] = part
        split = split_module(gm, None, parts.__getitem__)
        for name, child in list(split.named_children()):
            pieces.append(name)
            setattr(split, name, fusebox.compile(child))
        return split

    net = Net()
    a = x(grad=True)
    compiled = torch.compile(net, backend=piecewise)
    ours, eagers = compiled(a), net(a)
    same("piecewise", ours, eagers)
    same("piecewise, gradients", gradients(ours, [a, *net.parameters()]), gradients(eagers, [a, *net.parameters()]))
    expect(len(pieces) == 4, f"pieces: {pieces}")


def test_operators_that_write():
    """One that returns nothing but what it writes is part of a graph, and of that of a backend in Python."""
    @torch.library.custom_op("fusebox_backends::fill", mutates_args={"out"})
    def fill(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
        out.copy_(x.softmax(-1) * n)

    def f(x, n):
        out = torch.empty_like(x)
        torch.ops.fusebox_backends.fill(x * 2, out, n)
        return out + x

    for backend in ("inductor", "aot_eager", CountingCompiler()):
        fusebox.reset()
        before = fusebox.counters()["recompiles"]
        compiled = fusebox.compile(f, backend=backend, fullgraph=True)
        for rows, n in ((3, 2), (4, 3), (5, 4), (6, 5), (7, 6)):
            x = torch.randn(rows, 4)
            same("an operator that writes", compiled(x, n), f(x, n))
        if backend == "inductor":
            recompiles = fusebox.counters()["recompiles"] - before
            expect(recompiles <= 2, f"sizes and numbers that change are symbols: {recompiles} recompiles")


def test_operators_that_are_registered_anew():
    for schema, more in (("note(Tensor(a!) x, Tensor(b!)? y=None) -> ()", False), ("note(Tensor x, Tensor(a!) y) -> ()", True)):
        library = torch.library.Library("fusebox_anew", "DEF")
        library.define(schema)

        def note(x, y=None):
            (x if y is None else y).add_(1)

        library.impl("note", note, "CompositeExplicitAutograd")

        def f(a, b):
            torch.ops.fusebox_anew.note(*((a, b) if more else (a,)))
            return a + b

        fusebox.reset()
        ours, eagers = [torch.zeros(3), torch.zeros(3)], [torch.zeros(3), torch.zeros(3)]
        same(f"{schema}: result", fusebox.compile(f, fullgraph=True)(*ours), f(*eagers))
        same(f"{schema}: written", ours, eagers)
        library._destroy()


KEPT = []  # operators that went would stay in torch.ops, where torch.export looks for all of them


def test_operators_that_write_and_return():
    """Also into lists, into what may be missing, and beside results."""
    library = torch.library.Library("fusebox_writes", "DEF")
    KEPT.append(library)
    library.define("spread(Tensor x, Tensor(a!)[] outs, Tensor(b!)? count=None) -> Tensor")

    def spread(x, outs, count=None):
        for i, out in enumerate(outs):
            out.add_(x * (i + 1))
        if count is not None:
            count += len(outs)
        return x.sum(0)

    library.impl("spread", spread, "CPU")
    library.impl("spread", lambda x, outs, count=None: x.new_empty(x.shape[1:]), "Meta")

    def f(x, outs, count):
        first = torch.ops.fusebox_writes.spread(x, outs, count)
        return first + torch.ops.fusebox_writes.spread(x, outs[:1])

    def given(counted):
        return torch.arange(6.0).view(2, 3), [torch.zeros(2, 3), torch.zeros(3, 2).t()], torch.zeros(()) if counted else None

    for counted in (True, False):
        fusebox.reset()
        expected, got = given(counted), given(counted)
        compiled = fusebox.compile(f, fullgraph=True)
        for _ in range(2):
            same("what it returns", compiled(*got), f(*expected))
        same("what it writes", got[1], expected[1])
        expect(not counted or got[2] == expected[2], "a number that it counts")
    fusebox.reset()
    shared = torch.zeros(2, 3)
    torch.library.impl(library, "spread", "Autograd")(lambda x, outs, count=None: x.sum(0) * 0)
    y = fusebox.compile(f)(torch.ones(2, 3), [shared, shared], None)
    same("an operator with a kernel of its own for autograd is Python's", y, f(torch.ones(2, 3), [shared, shared], None))


def test_pytorchs_backends():
    import torch._dynamo.testing as testing
    from torch._dynamo.backends.common import aot_autograd
    from torch._dynamo.backends.registry import register_backend
    a, b = x(grad=True), x()
    counter = testing.CompileCounter()
    same("CompileCounter", torch.compile(program, backend=counter)(a, b), program(a, b))
    expect((counter.frame_count, counter.op_count) == (1, 5), f"CompileCounter: {counter.frame_count}, {counter.op_count}")
    counter = testing.CompileCounterWithBackend("eager")
    same("CompileCounterWithBackend", torch.compile(program, backend=counter)(a, b), program(a, b))
    expect(counter.frame_count == 1 and len(counter.graphs) == 1, "CompileCounterWithBackend counts")
    counter = testing.CompileCounter()
    same("torch._dynamo.optimize", torch._dynamo.optimize(counter)(program)(a, b), program(a, b))
    expect(counter.frame_count == 1, "torch._dynamo.optimize compiles with this engine's capture")
    torch._dynamo.reset()
    torch._dynamo.optimize(counter)(program)(a, b)
    expect(counter.frame_count == 2, "torch._dynamo.reset forgets what this engine compiled")
    keeper = testing.EagerAndRecordGraphs()
    torch.compile(program, backend=keeper)(a, b)
    expect(len(keeper.graphs) == 1, "EagerAndRecordGraphs")

    @register_backend
    def of_this_test(gm, inputs):
        return lambda *args: [r + 1 for r in gm(*args)]

    expect("of_this_test" in torch.compiler.list_backends() and "of_this_test" in torch._dynamo.list_backends(), "a registered backend is listed")
    same("a registered backend", torch.compile(program, backend="of_this_test")(a, b), [r + 1 for r in program(a, b)])
    for name in ("eager_noexcept", "pre_dispatch_eager", "aot_eager_decomp_partition", "aot_eager_default_partitioner"):
        fusebox.reset()
        ours, eagers = torch.compile(program, backend=name)(a, b), program(a, b)
        same(name, ours, eagers)
        same(name + ", gradients", gradients(ours, [a]), gradients(eagers, [a]))
    seen = []

    def compiler(gm, inputs):
        seen.append(gm)
        return gm.forward

    net = Everything()
    other = copy.deepcopy(net)
    compiled = torch.compile(other, backend=aot_autograd(fw_compiler=compiler, bw_compiler=compiler))
    torch.manual_seed(0)
    eagers = net(a.detach())
    torch.manual_seed(0)
    ours = compiled(a.detach())
    same("aot_autograd", ours["loss"], eagers["loss"])
    same("aot_autograd, gradients", gradients(ours["loss"], list(other.parameters())), gradients(eagers["loss"], list(net.parameters())))
    same("aot_autograd, buffers", dict(other.named_buffers()), dict(net.named_buffers()))
    expect(len(seen) == 2, f"aot_autograd compiles forward and backward: {len(seen)}")


def test_errors():
    from torch._dynamo.exc import BackendCompilerFailed, InvalidBackend

    def broken(gm, inputs):
        raise ValueError("no such thing")

    compiled = torch.compile(program, backend=broken)
    for _ in range(2):
        try:
            compiled(x(), x())
        except BackendCompilerFailed as error:
            expect("broken" in str(error) and "no such thing" in str(error) and isinstance(error.inner_exception, ValueError)
                   and isinstance(error.__cause__, ValueError), f"what a backend raises: {error}")
        else:
            expect(False, "what a backend raises is lost")
    try:
        torch.compile(program, backend=lambda gm, inputs: 3)(x(), x())
    except BackendCompilerFailed as error:
        expect("int" in str(error), f"a backend that returns no callable: {error}")
    else:
        expect(False, "a backend that returns no callable: no error")
    try:
        torch.compile(program, backend=lambda gm, inputs: lambda *args: 3)(x(), x())
    except TypeError as error:
        expect("2 tensors" in str(error), f"a callable that returns something else: {error}")
    else:
        expect(False, "a callable that returns something else: no error")

    def raises(gm, inputs):
        def call(*args):
            raise KeyError("at run time")
        return call

    try:
        torch.compile(program, backend=raises)(x(), x())
    except KeyError as error:
        expect("at run time" in str(error), f"what the callable raises: {error}")
    else:
        expect(False, "what the callable raises is lost")
    for kind in (InvalidBackend, fusebox.InvalidBackendError):
        try:
            torch.compile(program, backend="nowhere")
        except kind as error:
            expect("nowhere" in str(error), f"an unknown name: {error}")
        else:
            expect(False, "an unknown name: no error")


def no_cosine(gm, example_inputs):
    if any(n.target is torch.cos for n in gm.graph.nodes):
        raise ValueError("no cosine here")
    return gm.forward


def test_failures_are_made_small():
    import os
    import tempfile
    from torch._dynamo import config
    torch._dynamo.register_backend(no_cosine, name="no_cosine")

    def program(x):
        return torch.cos(torch.sin(x) + 1) * 2

    with tempfile.TemporaryDirectory() as folder, config.patch(repro_after="dynamo", repro_level=2, debug_dir_root=folder):
        try:
            torch.compile(program, backend="no_cosine")(torch.ones(3))
        except Exception as error:
            expect("no cosine here" in str(error), f"the error: {error}")
        else:
            expect(False, "no error")
        found = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name == "minifier_launcher.py"]
        expect(len(found) == 1, f"a script that makes it small: {found}")
        expect(found and "no_cosine" in open(found[0]).read(), "the script names the backend")


def test_data_of_inputs():
    def program(x, y, w):
        x.data = y
        x.mul_(2)
        w.data = y * 3
        y.data = torch.zeros(0)
        return x + 1

    def uses(w, y):
        w.data = y
        return w * 2

    def made():
        return torch.ones(4), torch.arange(4.0), torch.ones(4, requires_grad=True)

    ours, theirs, kept = made(), made(), Recorder()
    versions = [t._version for t in ours]
    same("data that are exchanged", torch.compile(program, backend=kept, fullgraph=True)(*ours), program(*theirs))
    for name, got, wanted in zip("xyw", ours, theirs):
        same(f"data of {name}", got.detach(), wanted.detach())
    expect([t._version for t in ours] == [t._version for t in theirs], f"counted writes: {versions}, {[t._version for t in ours]}")
    expect(len(kept.graphs) == 1, f"one graph: {len(kept.graphs)}")
    for backend in (Recorder(), "aot_eager"):
        w = torch.ones(4, requires_grad=True)  # its gradient goes through no value that the graph has for it
        torch.compile(uses, backend=backend)(w, torch.arange(4.0)).sum().backward()
        same("the gradient of what has other data", w.grad, torch.full((4,), 2.0))


def test_optimized_module():
    import torch._dynamo

    class Net(nn.Module):
        def forward(self, input_ids, labels=None, *, scale: float = 1.0):
            return input_ids * scale

    net = Net()
    for backend in ("inductor", CountingCompiler()):
        compiled = torch.compile(net, backend=backend)
        expect(isinstance(compiled, torch._dynamo.OptimizedModule) and isinstance(compiled, nn.Module), "OptimizedModule to isinstance")
        expect(inspect.signature(compiled.forward) == inspect.signature(net.forward), f"signature: {inspect.signature(compiled.forward)}")
        same("a compiled module", compiled(torch.ones(3), scale=2.0), torch.full((3,), 2.0))
        expect(compiled._orig_mod is net, "_orig_mod")
        method = compiled.dynamo_ctx(net.forward)
        same("a method, compiled as its module is", method(torch.ones(3), scale=2.0), torch.full((3,), 2.0))
        expect(isinstance(method, fusebox._engine.CompiledFunction), "dynamo_ctx compiles")


def test_numbers_that_random_draws():
    """They are inputs of one graph, other ones in each call, and the generators go on as in eager."""
    import random

    def program(x, generator):
        made = random.Random(8)
        return random.uniform(1, 2) / (x * 3) + generator.gauss(0, 1), made.randint(1, 1000), x.new_zeros(2) + made.random()

    for backend in ("inductor", "aot_eager", Recorder()):
        ours, theirs, got, wanted = random.Random(2), random.Random(2), [], []
        compiled = torch.compile(program, backend=backend, fullgraph=True)
        for f, generator, into in ((compiled, ours, got), (program, theirs, wanted)):
            random.seed(5)
            into += [f(torch.ones(3), generator) for _ in range(3)] + [random.random(), generator.random()]
        same(f"numbers that are drawn, {backend}", got[:3], wanted[:3])
        expect([g[1] for g in got[:3]] == [w[1] for w in wanted[:3]] and got[3:] == wanted[3:], f"ints and states: {got} {wanted}")
    expect(len(backend.graphs) == 1, f"one graph: {len(backend.graphs)}")


def test_functions_that_are_made_or_allowed():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * 5

    @torch._dynamo.allow_in_graph
    class Breaking(Scale):
        @staticmethod
        def forward(ctx, x):
            torch._dynamo.graph_break()
            return x + 1

    for backend in ("inductor", Recorder()):
        x = torch.ones(3, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            y = torch.compile(lambda x: Scale().apply(x) + Breaking.apply(x), backend=backend, fullgraph=True)(x)
        y.sum().backward()
        same("an instance of a function, and one in which nobody looks for breaks", [y.detach(), x.grad], [torch.full((3,), 5.0), torch.full((3,), 10.0)])
    expect(len(backend.graphs) == 1, f"one graph: {len(backend.graphs)}")


def test_arrays_of_constants():
    def program(n):
        rows, columns = np.meshgrid(np.linspace(0, 1, n), np.ones(n + 1, int))
        return rows * columns + np.full((n + 1, n), 2.0) - np.eye(n + 1, n)

    got, wanted = torch.compile(program, fullgraph=True)(4), program(4)
    expect(got.dtype == wanted.dtype and got.strides == wanted.strides and np.array_equal(got, wanted), f"arrays of constants: {got}")


if __name__ == "__main__":
    run(globals())

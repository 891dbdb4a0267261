"""Sizes and ints that change from call to call: which become symbols, how often is compiled, what marks and settings do, and what is said.

Every call is compared with eager, forward and gradients.
"""

import math
import os
import random
import sqlite3
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

import fusebox
import fusebox._engine_access  # noqa: F401
from fusebox import _engine
from checks.script_checks import expect, run

BACKEND = "inductor"


class Compiled:
    """A compiled function whose every call is compared with eager."""

    def __init__(self, f, **options):
        fusebox.reset()
        self.f, self.compiled, self.before = f, fusebox.compile(f, backend=BACKEND, **options), fusebox.counters()

    def __call__(self, *args):
        expected, got = self.f(*args), self.compiled(*args)
        for a, b in zip(flat(got), flat(expected), strict=True):
            if isinstance(b, torch.Tensor):
                expect(a.shape == b.shape and a.stride() == b.stride() and torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True),
                       f"{[tuple(t.shape) for t in flat(args) if isinstance(t, torch.Tensor)]}: another result than eager's")
            else:
                expect(type(a) is type(b) and a == b, f"{a!r} where eager gives {b!r}")
        return got

    def since(self, name):
        return fusebox.counters()[name] - self.before[name]

    def entries(self):
        expect(self.since("eager_runs") == 0, "something ran eagerly")
        return self.since("frames") + self.since("recompiles")


def flat(value):
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in flat(v)]
    return [value]


SIZES = (6, 9, 12, 5, 17, 8, 3, 24, 1, 11, 2, 0, 31, 64, 7, 100, 13, 4, 55, 10)


def pointwise(x, w):
    return F.relu(x * w + 1).sum(-1), x * 2


def test_twenty_sizes():
    f, w = Compiled(pointwise), torch.randn(4)
    for n in SIZES:
        f(torch.randn(n, 4), w)
    expect(f.entries() <= 4, f"{f.entries()} entries: a static and a symbolic one, and those of 0 and 1")
    before = f.entries()
    for n in SIZES:
        f(torch.randn(n, 4), w)
    expect(f.entries() == before, "all of them fit")


def test_gradients():
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3))

    def step(x, y):
        layer.zero_grad()
        x = x.clone().requires_grad_()
        loss = (layer(x) - y).pow(2).mean()
        loss.backward()
        return [loss.detach(), x.grad] + [p.grad.clone() for p in layer.parameters()]

    def loss_of(x, y):
        return (layer(x) - y).pow(2).mean()

    f = Compiled(step)
    for n in (6, 9, 12, 5, 17, 8, 3, 24, 11, 2):
        f(torch.randn(n, 6), torch.randn(n, 3))
    f = Compiled(loss_of)
    for n in SIZES:
        if n == 0:
            continue
        x, y = torch.randn(n, 6), torch.randn(n, 3)
        gradients = []
        for g in (f.f, f.compiled):
            layer.zero_grad()
            own = x.clone().requires_grad_()
            g(own, y).backward()
            gradients.append([own.grad] + [p.grad.clone() for p in layer.parameters()])
        for a, b in zip(*gradients, strict=True):
            expect(torch.allclose(a, b, rtol=1e-4, atol=1e-5), f"size {n}: gradients differ")
    expect(f.entries() <= 3, f"{f.entries()} entries")


def test_gradients_of_slopes_that_are_learned():
    layer = nn.PReLU(3)
    f = Compiled(lambda x: torch.autograd.grad(layer(x).sum(), [x, *layer.parameters()]))
    for n in (6, 9, 12, 5, 17):
        f(torch.randn(n, 3, n + 1, requires_grad=True))
    expect(f.entries() <= 2, f"{f.entries()} entries")


def test_several_at_once():
    def f(x, y, w):
        return (x @ w).relu(), y.sum(0) * 2

    f, w = Compiled(f), torch.randn(5, 3)
    for n, m, k in ((4, 6, 2), (7, 9, 3), (8, 12, 5), (30, 2, 40)):
        f(torch.randn(n, 5), torch.randn(m, k), w)
    expect(f.entries() == 2, f"{f.entries()} entries: all that changed became symbols at once")


def test_equal_sizes():
    f = Compiled(lambda x, y: x + y)
    for n in (4, 6, 8):
        f(torch.randn(n, 3), torch.randn(n, 3))
    expect(f.entries() == 2, f"{f.entries()} entries while they are equal")
    apart = lambda x, y: (x.sum(0), y.sum(0))  # noqa: E731
    for options, most in ({}, 2), ({"dynamic": True}, 2):
        own = Compiled(apart, **options)
        for n, m in ((4, 4), (6, 6), (8, 9), (5, 5), (12, 3)):
            own(torch.randn(n, 3), torch.randn(m, 3))
        expect(own.entries() == most, f"{own.entries()} entries where equal sizes need not be ({options})")
    square = Compiled(lambda x: x * 2)
    for n, m in ((4, 4), (6, 9), (7, 3)):
        x = torch.randn(n, m)
        fusebox.mark_dynamic(x, [0, 1])
        square(x)
    expect(square.entries() == 1, f"{square.entries()} entries of what was marked")
    never = Compiled(lambda x, y: (x.sum(0), y.sum(0)))
    for n, m in ((4, 5), (6, 6), (8, 9)):
        never(torch.randn(n, 3), torch.randn(m, 3))
    expect(never.entries() == 2, f"{never.entries()} entries: what differed once is not taken for equal")


def test_storm():
    torch.manual_seed(1)
    rng = random.Random(5)
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.ReLU())

    def f(x):
        return model(x).mean(1)

    f = Compiled(f)
    for _ in range(150):
        f(torch.randn(rng.randint(1, 64), rng.randint(1, 512), 8))
    expect(f.entries() <= 4, f"{f.entries()} entries")


def test_through_breaks_and_modules():
    class Inner(nn.Module):
        def forward(self, x):
            return x.relu().sum(-1)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ModuleList(Inner() for _ in range(2))

        def forward(self, x):
            a = self.inner[0](x)
            torch._dynamo.graph_break()
            return a + self.inner[1](x * 2)

    f = Compiled(Outer())
    for n in (4, 7, 9, 12, 30):
        f(torch.randn(n, 6))
    expect(f.entries() <= 4, f"{f.entries()} entries of two places")


def test_dynamic_option():
    x = [torch.randn(n, 3) for n in (4, 9, 17)]
    always = Compiled(lambda x: x.sin() + 1, dynamic=True)
    for t in x:
        always(t)
    expect(always.entries() == 1, f"dynamic=True: {always.entries()} entries")
    never = Compiled(lambda x: x.sin() + 1, dynamic=False)
    for t in x:
        never(t)
    expect(never.entries() == 3, f"dynamic=False: {never.entries()} entries")
    with fusebox.config.patch(automatic_dynamic_shapes=False):
        off = Compiled(lambda x: x.sin() + 1)
        for t in x:
            off(t)
        expect(off.entries() == 3, f"automatic_dynamic_shapes=False: {off.entries()} entries")
    with fusebox.config.patch(assume_static_by_default=False):
        all_of = Compiled(lambda x: x.sin() + 1)
        for t in x:
            all_of(t)
        expect(all_of.entries() == 1, f"assume_static_by_default=False: {all_of.entries()} entries")
    import torch._dynamo.config as stock
    with stock.patch(automatic_dynamic_shapes=False):
        off = Compiled(lambda x: x.sin() + 1)
        for t in x:
            off(t)
        expect(off.entries() == 3, f"torch._dynamo.config says so too: {off.entries()} entries")


def test_dynamic_sources():
    import torch.compiler
    with torch.compiler.config.patch(dynamic_sources="L['y']"):
        f = Compiled(lambda x, y: (x + 1, y * 2), dynamic=False)
        for n, m in ((4, 6), (4, 9), (4, 20)):
            f(torch.randn(n), torch.randn(m))
        expect(f.entries() == 1, f"{f.entries()} entries: y was named")
        f(torch.randn(5), torch.randn(3))
        expect(f.entries() == 2, "x was not")


def test_eager_then_compile():
    f = lambda x, parts: x.sin() + parts[0].sum() + parts[1]["y"].sum()  # noqa: E731
    fusebox.reset()
    before, compiled = fusebox.counters(), fusebox.compile(f, backend=BACKEND)
    with fusebox.compiler.set_stance("eager_then_compile"):
        for n in (4, 6, 9, 30):
            x, parts = torch.randn(n, 3), [torch.randn(n + 1), {"y": torch.randn(2 * n)}]
            expect(torch.allclose(compiled(x, parts), f(x, parts), atol=1e-5), f"size {n}")
    after = fusebox.counters()
    expect(after["frames"] - before["frames"] == 1 and after["recompiles"] == before["recompiles"], "one entry, for all sizes")


def violation(what, call):
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError
    try:
        call()
    except ConstraintViolationError as error:
        return str(error)
    raise AssertionError(f"{what}: no ConstraintViolationError")


def specialises(x):
    if x.shape[0] == 8:
        return x + 1
    return x * 2


def test_marks():
    import torch._dynamo
    for module in (fusebox, torch._dynamo):
        f = Compiled(lambda x: x.cos() * 3)
        x = torch.randn(8, 3)
        module.mark_dynamic(x, 0)
        f(x)
        f(torch.randn(12, 3))
        expect(f.entries() == 1, f"{module.__name__}.mark_dynamic: {f.entries()} entries")
        weak = Compiled(lambda x: x.cos() * 3)
        x = torch.randn(8, 3)
        module.maybe_mark_dynamic(x, 0)
        weak(x)
        weak(torch.randn(12, 3))
        expect(weak.entries() == 1, f"{module.__name__}.maybe_mark_dynamic: {weak.entries()} entries")
        ranged = Compiled(lambda x: x.cos() * 3)
        x = torch.randn(8, 3)
        module.mark_dynamic(x, 0, min=4, max=16)
        ranged(x)
        ranged(torch.randn(16, 3))
        expect(ranged.entries() == 1, "within the range")
        ranged(torch.randn(17, 3))
        expect(ranged.entries() == 2, "beyond it is compiled anew")
        x = torch.randn(40, 3)
        module.mark_dynamic(x, 0, min=4, max=16)
        text = violation("a size beyond its mark", lambda: fusebox.compile(lambda x: x + 1, backend=BACKEND)(x))
        expect("40 not in range [4, 16]" in text, text)
        any_size = Compiled(lambda x: (x.cos() * 3, x @ torch.ones(3, 2), x.sum(-1), x.repeat(2, 1)))
        for n in (4, 7, 1, 30):
            x = torch.randn(n, 3)
            module.mark_unbacked(x, 0) if module is fusebox else module.decorators.mark_unbacked(x, 0)
            any_size(x)
        expect(any_size.entries() == 1, f"{module.__name__}.mark_unbacked: {any_size.entries()} entries, with one of 1")
        static = Compiled(lambda x: x.cos() * 3)
        for n in (4, 5, 6):
            x = torch.randn(n, 3)
            module.mark_static(x, 0)
            static(x)
        expect(static.entries() == 3, f"{module.__name__}.mark_static: {static.entries()} entries")


def test_marked_size_that_is_a_constant():
    x = torch.randn(8, 3)
    fusebox.mark_dynamic(x, 0)
    fusebox.reset()
    text = violation("x.shape[0] == 8", lambda: fusebox.compile(specialises, backend=BACKEND)(x))
    line = specialises.__code__.co_firstlineno + 1
    expect("L['x'].size()[0]" in text and f"line {line}" in text and "symbolic_test.py" in text, text)
    weak = torch.randn(8, 3)
    fusebox.maybe_mark_dynamic(weak, 0)
    f = Compiled(specialises)
    f(weak)
    f(torch.randn(9, 3))
    f(torch.randn(12, 3))
    f(torch.randn(8, 3))
    expect(f.entries() == 2, f"{f.entries()} entries")
    f = Compiled(specialises, dynamic=True)
    for n in (8, 9, 12):
        f(torch.randn(n, 3))
    expect(f.entries() == 2, f"dynamic=True with a specialised size is no error: {f.entries()} entries")


def test_parameters_are_static():
    def f(x, w):
        return x @ w

    compiled = Compiled(f)
    for n in (3, 4, 5):
        compiled(torch.randn(2, n), nn.Parameter(torch.randn(n, 2)).requires_grad_(False))
    expect(compiled.entries() == 3, f"{compiled.entries()} entries: a parameter is compiled for as it is")
    with fusebox.config.patch(force_parameter_static_shapes=False):
        compiled = Compiled(f)
        for n in (3, 4, 5):
            compiled(torch.randn(2, n), nn.Parameter(torch.randn(n, 2)).requires_grad_(False))
        expect(compiled.entries() == 2, f"force_parameter_static_shapes=False: {compiled.entries()} entries")


def test_strides():
    f = Compiled(lambda x: x.sum(1) + 1)
    for n, m in ((4, 6), (5, 8), (9, 3), (12, 12)):
        f(torch.randn(m, n).t())
    expect(f.entries() == 2, f"{f.entries()} entries: strides of a transposed tensor follow from its sizes")
    f = Compiled(lambda x: x * 2)
    for width in (8, 10, 12, 30):
        f(torch.randn(4, width)[:, :4])
    expect(f.entries() == 2, f"{f.entries()} entries: a stride that varies on its own is a symbol")
    f, buffer = Compiled(lambda x: x.as_strided((2, 2), (2, 1)) + 1), torch.randn(64)
    for start in (4, 8, 9, 20):
        f(buffer[start:start + 4])
    expect(f.entries() == 2, f"{f.entries()} entries where the storage is looked at")
    f = Compiled(lambda x: x + x.storage_offset())
    for n in (8, 5, 7, 3):
        f(torch.randn(n, 6)[:, 2:])
    expect(f.entries() == 1 + 1, f"{f.entries()} entries: how large the storage is does not matter")
    f = Compiled(lambda x: x + x.storage_offset())
    for n in (3, 6, 5, 9):
        f(torch.randn(8, n)[2:])
    expect(f.entries() == 2, f"{f.entries()} entries: an offset that changes is a symbol at once")
    f = Compiled(lambda x: x * 2)
    for n in (4, 6, 8):
        f(torch.randn(1, n).expand(3, n))
    expect(f.entries() == 2, f"{f.entries()} entries: expanded")


def filled_in_the_layout_of(x):
    made = torch.empty_strided(x.shape, x.stride())
    made[:] = x * 3
    return made, made[1:] + 1


def test_strides_of_results():
    """Rows may be nearer to each other than they are long, as far as symbols tell: results lie as eager's all the same."""
    f = Compiled(filled_in_the_layout_of, dynamic=True)
    for rows, row, width in ((16, 8, 16), (5, 4, 9), (7, 7, 7)):
        f(torch.randn(rows, width)[:, :row])
    expect(f.entries() < 4, f"{f.entries()} entries")


def test_writes_to_views_of_views():
    """A write to a part of a part whose sizes are symbols is followed, whatever lies around."""
    def f(x, v):
        y = x.new_zeros(x.shape[0], x.shape[1] + 1, x.shape[2] * 2)
        y[:, :-1, 2:] = v[:, : x.shape[1], : x.shape[2] * 2 - 2]
        y[:, 1:, :2][0] = 3
        y[:, 1:].diagonal(0, 1, 2).add_(1)
        return y * 2, y[:, 1:]

    c = Compiled(f)
    for n in (3, 5, 6):
        c(torch.randn(2, n, 4 + n), torch.randn(2, n, 40))
    expect(c.entries() == 2 and c.since("graph_breaks") == 0, f"{c.entries()} entries, {c.since('graph_breaks')} breaks")


def test_writes_to_rows_taken_apart():
    """Images padded to the largest, as detectors put them together: the rows of a batch are written through the views that iterating gives."""
    def padded(a, b):
        sizes = [max(n) for n in zip(a.shape, b.shape)]
        batch, mask = a.new_zeros(2, *sizes), torch.ones(2, *sizes[1:], dtype=torch.bool)
        for image, place, seen in zip((a, b), batch, mask):
            place[:, : image.shape[1], : image.shape[2]].copy_(image)
            seen[: image.shape[1], : image.shape[2]] = False
        first, last = batch.unbind(1)[0], mask.unbind(-3)[-1]
        first.add_(1)
        last.logical_not_()
        return batch, mask

    c = Compiled(padded)
    for k in range(12):
        c(torch.randn(3, 9 + k, 30 - k), torch.randn(3, 8 + k, 29 - k))
    expect(c.entries() == 2 and c.since("graph_breaks") == 0, f"{c.entries()} entries, {c.since('graph_breaks')} breaks")


def test_gradients_of_views_of_memory_that_many_elements_share():
    """What a row is given belongs to that row alone, whichever other rows lie in the same memory."""
    def rows(x):
        return x[:1].expand(x.shape[0], -1), x * 2

    fusebox.reset()
    compiled = fusebox.compile(rows, backend=BACKEND)
    for n, m in ((4, 3), (5, 3), (7, 4), (6, 5)):
        gradients = []
        for call in (rows, compiled):
            x = torch.arange(float(m))[None].expand(n, -1).detach().requires_grad_()
            view, twice = call(x)
            (view * torch.arange(1.0, 1 + view.numel()).reshape(view.shape)).sum().backward()
            gradients.append(x.grad)
        expect(torch.equal(*gradients), f"{(n, m)}: {gradients[1]} where eager gives {gradients[0]}")


def test_what_views_take_apart_and_put_together():
    def halved(x):
        """A prefix sum by halves, in place, of what is filled up to a power of two: each view takes apart what the one before has put together."""
        n = x.size(1)
        y = F.pad(x, (0, 0, 0, 2 ** math.ceil(math.log2(n)) - n))
        part = y
        while part.size(1) > 1:
            part = part.view(part.size(0), part.size(1) // 2, 2, -1)
            part[:, :, 1] += part[:, :, 0]
            part = part[:, :, 1]
        step = y.size(1) // 4
        while step >= 1:
            rows = y[:, step - 1 :: step]
            pairs = rows.view(rows.size(0), rows.size(1) // 2, 2, -1)
            pairs[:, 1:, 0] += pairs[:, :-1, 1]
            step //= 2
        return y[:, :n]

    fusebox.reset()
    before, compiled = fusebox.counters()["graphs"], fusebox.compile(halved)
    for n in (8, 13, 29, 27, 50, 61, 120, 250):
        x = torch.rand(2, n, 3)
        expect(torch.allclose(compiled(x), x.cumsum(1), atol=1e-4), f"{n} rows")
    made = fusebox.counters()["graphs"] - before
    expect(made == 6, f"{made} graphs, one for each power of two")


def test_nothing_left_for_an_inferred_size():
    """view(-1, n), where n is the size of another tensor that is as long."""
    layer = torch.nn.Linear(2, 1)

    def heads_of(x):
        x = x.detach().clone().requires_grad_()
        return torch.autograd.grad(layer(x).sum(), x, create_graph=True)[0].pow(2).mean()

    programs = (lambda x, y: y.reshape(-1, len(x)) + 1, lambda x, y: torch.eye(len(x)).view(-1, len(y), len(y)) + y, lambda x, y: y.reshape(-1, 1, 1, len(x)) * x,
                lambda x, y: x.sum().expand(len(y), 1) @ torch.ones(1, 3), lambda x, y: heads_of(torch.stack([x, y], 1)))
    for k, program in enumerate(programs):
        f = Compiled(program)
        for n in (4, 7, 9, 12, 5, 31, 17):
            f(torch.randn(n), torch.randn(n))
        expect(f.entries() == 2, f"program {k}: {f.entries()} entries")
    f = Compiled(lambda x, y: y.reshape(-1, len(x)).sum(0))
    for n, times in ((4, 1), (6, 1), (6, 2), (8, 3), (5, 5), (9, 1)):
        f(torch.randn(n), torch.randn(n * times))
    expect(f.entries() <= 4, f"{f.entries()} entries of one row and of several")


def test_memory_made_inside_is_no_input():
    """Pooling to one pixel strides over what it computed: that looks at nobody's storage."""
    pooled = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()).to(memory_format=torch.channels_last)
    f = Compiled(lambda x: pooled(x) * 2)
    for n in (8, 6, 4, 2, 9):
        f(torch.randn(n, 3, 7, 7).to(memory_format=torch.channels_last))
    expect(f.entries() == 2, f"{f.entries()} entries for 5 batches")


def test_dimensions_that_an_index_adds():
    f = Compiled(lambda x, n: (x[..., None, n], x[None, n, None], x[n, None, 1:], x[:, None, n:]))
    for rows, n in (5, 1), (6, 2), (9, 3), (7, 4):
        f(torch.randn(rows, 6), n)
    expect(f.entries() == 2, f"{f.entries()} entries")


def test_ranges_with_float_steps():
    def f(x):
        n = x.shape[0]
        return torch.arange(n, -n, -1.0, dtype=torch.int64), torch.arange(n, 3 * n, 2.0), torch.arange(0.0, n), torch.arange(n, 2 * n, dtype=torch.float64), \
            torch.arange(float(n)), torch.arange(1, float(n)), torch.arange(0, n, 0.5), torch.arange(-n, n, 0.25), x * x.nbytes

    f = Compiled(f)
    for n in (5, 7, 12, 4):
        f(torch.randn(n))
    expect(f.entries() == 2, f"{f.entries()} entries")


def test_operators_that_libtorch_composes_of_numbers():
    def f(a, b):
        square = a @ a.t()
        return (nn.utils.rnn.pad_sequence([a, b, a[1:]], batch_first=True), nn.utils.rnn.pad_sequence([b, a], padding_value=2.0, padding_side="left"),
                [torch.rot90(a, turns) * 1 for turns in range(-1, 4)], torch.kron(a, b[:2]), torch.kron(a[0], a), square.trace(), torch.cdist(a, b),
                torch.block_diag(a, b[0], a[:, :2]), torch.take_along_dim(a, a.argsort(0) - 3, 0), torch.take_along_dim(a, a[:, :1].argsort(1), 1),
                F.pdist(a), F.bilinear(a, a * 2, torch.ones(3, 4, 4)), a.view(torch.int16) + 1)

    f = Compiled(f)
    for rows, others in (30, 27), (33, 40), (28, 28), (41, 26):
        f(torch.randn(rows, 4), torch.randn(others, 4))
    expect(f.entries() == 2, f"{f.entries()} entries")


def test_operators_of_libraries():
    """Those that distributions, graph networks and linear algebra call, and sizes that are put together of tuples."""
    from torch import distributions as D

    def f(x):
        p, u = x.abs() + 0.5, x.sigmoid()
        made = [D.Normal(x, p).log_prob(x + 1), D.Bernoulli(probs=u).log_prob((x > 0).float()), D.Gamma(p, p).log_prob(u), D.Beta(p, p).log_prob(u),
                D.Dirichlet(p).log_prob(u / u.sum(-1, keepdim=True)), D.kl_divergence(D.Normal(x, p), D.Normal(0.0, 1.0)), D.Binomial(10, u).mean]
        drawn = [torch._standard_gamma(p), torch._sample_dirichlet(p), torch.binomial(p.round(), u), torch._standard_gamma_grad(p, u)]
        made += [torch.zeros_like(d) * d for d in drawn]
        solved = torch.cholesky_solve(x.T, torch.linalg.cholesky(x.T @ x + 9 * torch.eye(8)))
        batched = torch.cholesky_solve(x[:, :, None], torch.eye(8)[None] * 2)
        made += [solved, batched, *torch.geqrf(x), *torch._weight_norm_interface(x, x[:, :1].abs() + 1, 0), *torch.aminmax(x, dim=1, keepdim=True),
                 *torch.aminmax(x), F.affine_grid(x[:, :6].reshape(-1, 2, 3), (x.shape[0], 3, 5, x.shape[0])), torch.searchsorted(x.flatten().sort()[0], 0.5),
                 torch.isin(x.round(), 1.0), torch.isin(1.0, x.round()), torch.nonzero_static(x > 0, size=5), torch.floor_divide(x, 0.5),
                 F.fractional_max_pool2d(x[None], 2, (3, 4), _random_samples=torch.full((1, 1, 2), 0.4))]
        joined = x.shape[:0]
        for size in x.shape:
            joined += (size, 1)
        return *made, x.new_ones((x.shape[0] + 3,) + x.size()[1:]), x.new_zeros(x.size()[:0] + (x.shape[0],) + x.size()[1:]), x.reshape(joined)

    f = Compiled(f)
    for rows in (9, 12, 15, 10):
        f(torch.randn(rows, 8))
    expect(f.entries() == 2, f"{f.entries()} entries")


def test_spectra():
    def f(x):
        window = torch.hann_window(16)
        parts = torch.stft(x, 16, 4, window=window, return_complex=True)
        short = torch.stft(x[0], 16, win_length=12, window=window[:12], center=False, normalized=True, return_complex=True)
        return parts.abs(), torch.view_as_real(short), torch.istft(parts * 2, 16, 4, window=window), torch.istft(parts[0], 16, 4, window=window, normalized=True), torch.istft(parts, 16, 4, window=window, length=45)

    f = Compiled(f, fullgraph=True)
    for n in (64, 52, 103, 80):
        f(torch.randn(2, n))
    expect(f.entries() == 2, f"{f.entries()} entries")
    x, y = torch.randn(2, 96).requires_grad_(), torch.randn(2, 96).requires_grad_()
    y.data.copy_(x.data)
    for t, g in (x, f.f), (y, f.compiled):
        sum(r.pow(2).sum() for r in g(t)).backward()
    expect(torch.allclose(x.grad, y.grad, rtol=1e-4, atol=1e-4), "another gradient than eager's")

    gaps = fusebox.compile(lambda p: torch.istft(p, 16, 4, window=torch.zeros(16)), fullgraph=True)
    try:
        gaps(torch.randn(9, 12, dtype=torch.complex64))
    except RuntimeError as error:
        expect("window overlap add min" in str(error), str(error))
    else:
        expect(False, "windows that leave gaps are divided by")


def test_rows_added_of_none():
    """A graph without edges."""
    def f(x, to, rows):
        y = x.index_add(0, to, rows)
        return y, torch.zeros_like(x).index_add_(0, to, rows * 2)

    f = Compiled(f, fullgraph=True)
    for n in (0, 4, 3):
        f(torch.randn(5, 6), torch.arange(n), torch.randn(n, 6))


def test_ints():
    f = Compiled(lambda x, n: x * n)
    for n in (3, 5, 7, 2**40, -4):
        f(torch.arange(4), n)
    expect(f.entries() == 2, f"{f.entries()} entries: an int that changes is a symbol")
    with fusebox.config.patch(specialize_int=True):
        f = Compiled(lambda x, n: x * n)
        for n in (3, 5, 7):
            f(torch.arange(4), n)
        expect(f.entries() == 3, f"specialize_int: {f.entries()} entries")
    f = Compiled(lambda x, shape: (x.sum() + torch.zeros(shape), shape[0] + 1))
    for shape in ((3, 4), (5, 4), (6, 4), (9, 4)):
        f(torch.ones(2), shape)
    expect(f.entries() == 2, f"{f.entries()} entries: an int in a tuple")
    f = Compiled(lambda x, flag: x * 2 if flag else x)
    for flag in (True, False, True):
        f(torch.arange(4), flag)
    expect(f.entries() == 2, "a bool is none")


def branches(x):
    if x.shape[0] > 10:
        return x + 1
    return x * 2


def test_what_is_said():
    f, start = Compiled(branches), _engine.latest_event()
    for n in (4, 6, 20):
        f(torch.randn(n, 2))
    said = [e for e in _engine.events_since(start) if e["kind"] == "recompile"]
    first = next(e for e in said if e["what"].startswith("TENSOR_MATCH"))
    expect("[4, 2]" in first["detail"] and "[6, 2]" in first["hint"], f"{first}")
    relation = next((e for e in said if e["what"].startswith("SHAPE_ENV")), None)
    expect(relation is not None, f"no relation failed: {said}")
    line = branches.__code__.co_firstlineno + 1
    expect("L['x'].size()[0]" in relation["detail"] and f"symbolic_test.py:{line}" in relation["detail"], f"{relation}")
    expect("L['x'].size()[0] = 20" in relation["hint"] and relation["line"] == line, f"{relation}")


def recorded(calls, *queries):
    """The rows of each query over the session in which `calls` ran, from nothing compiled."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s.fusebox")
        fusebox.reset()
        with fusebox.record(path):
            calls()
        db = sqlite3.connect(path)
        return [db.execute(query).fetchall() for query in queries]


def test_session_lists_symbols():
    def calls():
        compiled = fusebox.compile(branches, backend=BACKEND)
        for n in (4, 6, 20, 1):
            compiled(torch.randn(n, 2))

    symbols, relations, kept = recorded(calls, "SELECT name, source, kind, hint, lower, policy, before, after FROM symbols",
                                        "SELECT op, reason, file, line, guard_id FROM relations WHERE kind = 'guard'",
                                        "SELECT kind, source, value FROM specialisations")
    expect(any(s[1:4] == ("L['x'].size()[0]", "size", 6) and s[4] == 2 and s[5:] == ("automatic", "4", "6") for s in symbols), f"{symbols}")
    expect(relations and all(r[2].endswith("symbolic_test.py") and r[3] and r[4] for r in relations), f"{relations}")
    expect(("zero_one", "L['x'].size()[0]", 1) in kept, f"{kept}")


def test_halves_of_halves_are_told_as_quarters():
    def f(x):
        for _ in range(4):
            x = x.view(x.shape[0], x.shape[1] // 2, 2).mean(2)
        return x

    def calls():
        compiled = fusebox.compile(f, backend=BACKEND)
        for n in (64, 96, 128):
            compiled(torch.randn(2, n))

    (rows,) = recorded(calls, "SELECT left, op, right FROM relations WHERE kind = 'guard'")
    told = [" ".join(map(str, row)) for row in rows]
    expect(any("// 16" in text for text in told) and not any("// 2) //" in text for text in told), f"{told}")
    expect(len(told) == len(set(told)), f"{told}")


def test_a_size_that_one_branch_fixes_is_a_symbol_again_elsewhere():
    def added(x, parts, word):
        for part in parts:
            x = x + part
        return x if word == "plus" else -x

    f = Compiled(added)
    for rows, count, word in ((64, 1, "plus"), (22, 1, "plus"), (64, 2, "plus"), (64, 2, "minus")):  # twice what is new has fixed it
        f(torch.randn(rows, 4), [torch.randn(rows, 4) for _ in range(count)], word)
    before = f.entries()
    for rows in (22, 30, 9, 64):
        f(torch.randn(rows, 4), [torch.randn(rows, 4) for _ in range(2)], "plus")
    expect(f.entries() == before + 1, f"{f.entries() - before} entries for four sizes")


def test_a_symbol_that_becomes_known_between_two_writes():
    """The second write meets a tensor whose size was a symbol when it was made and is a number now."""
    def written(moment, param, n):
        moment = moment * 1
        moment.mul_(2).add_(param)
        moment.mul_(3)
        return moment * n

    f = Compiled(written)
    params = {size: nn.Parameter(torch.randn(size)) for size in (4, 6, 8)}
    with torch.no_grad():
        for n, size in enumerate((4, 6, 8, 4, 6, 8, 8, 8, 8)):
            f(torch.randn(size), params[size], n)
    expect(f.entries() <= 4, f"{f.entries()} entries: the symbols were given up")


def test_states_of_two_parameters_are_two_places():
    params = [nn.Parameter(torch.randn(3 + i, 5)) for i in range(3)]
    state = {p: {"moment": torch.zeros_like(p), "step": 0} for p in params}

    def step(scale):
        out = []
        for p in params:
            state[p]["step"] += 1
            out.append(state[p]["moment"] * scale + state[p]["step"])
        return out

    def calls():
        compiled = fusebox.compile(step, backend=BACKEND)
        for _ in range(4):
            compiled(2.0)

    (sources,) = recorded(calls, "SELECT source FROM symbols")
    expect(sources and all(source.endswith("['step']") for source, in sources), f"{sources}")


if __name__ == "__main__":
    run(globals())

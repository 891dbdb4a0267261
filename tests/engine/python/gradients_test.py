"""Hooks that are set inside of compiled code, gradients that are assigned there, and compiled autograd: one graph, and what eager gives."""

import torch
import torch.nn.functional as F
from torch._dynamo import compiled_autograd
from torch.nn.attention import SDPBackend, sdpa_kernel

import fusebox
from checks.script_checks import expect, run

fusebox.install()


def observed(f, times=2):
    """What f(x, log) gives, its gradients and what it notes, for new inputs each time."""
    seen = []
    for i in range(times):
        x, log = (torch.arange(6.0).reshape(2, 3) + i).requires_grad_(), []
        results = f(x, log)
        sum(r.sum() for r in results if r.requires_grad).backward()
        seen.append((x.grad, [r.detach() for r in results], log))
    return seen


def same(a, b, equal=torch.equal):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(p, q, equal) for p, q in zip(a, b))
    return a == b


def check(f, **how):
    want = observed(f)
    got = observed(torch.compile(f, **how))
    expect(same(want, got), f"{f.__name__}: {got}, eager {want}")


def tripling(log):
    return lambda g: (log.append(g.clone()), g * 3)[1]


def test_hooks_of_results():
    def one(x, log):
        y = x * 2
        y.register_hook(tripling(log))
        return (y * y,)

    def along_a_chain(x, log):
        y = x * 2
        y.register_hook(tripling(log))
        z = y + 1
        handle = z.register_hook(tripling(log))
        z.register_hook(lambda g: log.append("seen"))
        handle.remove()
        return z * z, y

    def removed(x, log):
        y = x * 2
        with y.register_hook(tripling(log)):
            z = y * y
        return (z,)

    for f in (one, along_a_chain, removed):
        for backend in ("fusebox", "aot_eager"):
            check(f, fullgraph=True, backend=backend)


def test_hooks_that_break():
    """Where what a hook would see once the graph has run is not what eager's sees."""

    def written_later(x, log):
        y = x * 2
        y.register_hook(tripling(log))
        y.mul_(3)
        return (y * y,)

    def a_view(x, log):
        y = x.view(-1)
        y.register_hook(tripling(log))
        return y * y, y

    def a_part(x, log):
        first, second = (x * 2).chunk(2)
        first.register_hook(tripling(log))
        return (first * second,)

    def asked_inside(x, log):
        y = x * 2
        y.register_hook(tripling(log))
        return (torch.autograd.grad((y * y).sum(), x)[0] * x,)

    for f in (written_later, a_view, a_part, asked_inside):
        check(f)
        try:
            torch.compile(f, fullgraph=True)(torch.ones(2, 3, requires_grad=True), [])
        except RuntimeError:
            continue
        expect(False, f"{f.__name__} is one graph")


def test_assigned_gradients():
    def other(x, log):
        log.append(x.grad is None)
        x.grad = x.detach() + 1
        log.append(x.grad * 2)
        x.grad.add_(1)
        return x * 2, x.grad

    def cleared(x, log):
        x.grad = torch.ones(2, 3)
        kept = x.grad
        x.grad = None
        log.append(x.grad is None)
        return x * 2, kept

    for f in (other, cleared):
        check(f, fullgraph=True)

    def misfit(x, log):
        try:
            x.grad = torch.ones(3, 2)
        except RuntimeError:
            log.append("refused")
        return (x * 2,)

    check(misfit)


def regions():
    def plain(x, log):
        return (x.sin() * x,)

    def with_results_inside(x, log):
        y = x.sin()
        return y, y * y, (y * x).sum()

    def hooked(x, log):
        y = x.sin()
        y.register_hook(tripling(log))
        return (y * y,)

    def split(x, log):
        return x[0] * 2, x[1].sin()

    def with_views(x, log):
        a, b = (x * 2).unbind(0)
        return a, b, x.view(-1), (a * b).sum() * x.view(-1)

    return plain, with_results_inside, hooked, split, with_views


def views():
    """Functions whose results but the last are views, or are computed from each other, and which the last is computed from."""

    def of_an_input(x):
        y = x.view(-1)
        return y, y * y

    def made_twice(x):
        y = x.view(-1)[1:]
        return y, y * x.view(-1)[1:]

    def parts(x):
        a, b = (x * 2).chunk(2)
        return a, b, a * b + a

    def rows(x):
        a, b = x.unbind(0)
        return a, b, a * b

    def views_of_views(x):
        b = x * 2
        y = b.view(-1)
        c = y[1:]
        d = c[1:]
        return b, y, c, d, d * c[:-1] + y[2:]

    def along_a_chain(x):
        y = x.view(-1)
        z = y * y
        return y, z, z * y

    def written(x):
        x.mul_(2)
        return x, x * x

    def views_of_written(x):
        y = x.view(-1)
        x.mul_(2)
        z = x.t()
        return y, z, x, z * x.t()

    def saved_by_its_operator(x):
        return (x.softmax(-1),)

    def changed_inside(x):
        b = x * 1
        b[0].mul_(x[1])
        return b, b[1:], b * b

    return saved_by_its_operator, changed_inside, of_an_input, made_twice, parts, rows, views_of_views, along_a_chain, written, views_of_written


def looked_at(f, how):
    """What can be seen of the gradients of f's results, for inputs of three sizes; `how`: in which way somebody looks."""
    seen = []
    for n in (3, 4, 5):
        leaf = torch.arange(2.0 * n, dtype=torch.float64).reshape(2, n).requires_grad_()
        *inner, last = f(leaf * 1 if "written" in f.__name__ else leaf)
        log = []
        if how == "hooks":
            for i, y in enumerate(inner):
                y.grad_fn  # eager's register_hook crashes where a view has been written since and nobody has looked
                y.register_hook(lambda g, i=i: (log.append((i, g.clone())), g * (3 + i))[1])
            last.sum().backward(retain_graph=True)
            (last.sum() + sum((y * y).sum() for y in inner)).backward()
        elif how == "retain_grad":
            for y in inner:
                y.retain_grad()
            last.sum().backward()
            log = [y.grad for y in inner]
        else:
            asked = [leaf, *inner, last]
            log = list(torch.autograd.grad((last**3).sum(), asked, allow_unused=True, create_graph=how == "twice", retain_graph=True))
            if how == "twice":
                log += torch.autograd.grad(sum((g**2).sum() for g in log if g is not None), asked, allow_unused=True)
        seen.append([leaf.grad, log, [y._version for y in inner]])
    return seen


def test_gradients_of_views():
    """Views that a region gives, and inputs that it writes to: whoever looks at their gradients sees what comes by way of other results too."""
    for f in views():
        for how in ("hooks", "retain_grad", "grad", "twice"):
            if how == "twice" and "written" in f.__name__:
                continue  # refused
            want = looked_at(f, how)
            for options in ({}, {"dynamic": True}, {"backend": "aot_eager"}):
                compiled = torch.compile(f, fullgraph=True, **options)
                compiled.__name__ = f.__name__
                got = looked_at(compiled, how)
                expect(same(want, got, torch.allclose), f"{f.__name__}, {how}, {options}: {got}, eager {want}")


def test_detached_memory_that_gets_a_history():
    def f(x, w):
        b = x * 2
        for t in (x.detach(), b.detach()):
            t.copy_(w * 3)
            yield t
        yield b.sum()

    results = []
    for g in (lambda x, w: list(f(x, w)), torch.compile(lambda x, w: list(f(x, w)))):
        x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
        a, b, c = g(x, w)
        (a.sum() + b.sum() + c).backward()
        results.append([x.grad, w.grad, a, b, a.requires_grad, b.requires_grad])
    expect(same(*results), f"{results}")


def test_versions_of_results():
    def f(x):
        y, apart = x * 2, x.detach().clone()
        y.mul_(3)
        apart[0].add_(1)
        apart.relu_()
        return y, apart, apart[1:], y * y

    x = torch.randn(3, 2, requires_grad=True)
    got, want = ([t._version for t in g(x)] for g in (torch.compile(f, fullgraph=True), f))
    expect(got == want, f"{got}, eager {want}")


def test_versions_of_inputs_that_share_a_counter():
    def f(a, b):
        a.add_(1)
        b.mul_(2).mul_(3)
        return a.sum() + b.sum()

    base = torch.ones(6)
    torch.compile(f, fullgraph=True)(base[:3], base[3:])
    expect(base._version == 3, f"{base._version} writes")


def test_compiled_autograd():
    """Backward of a compiled region, written down by compiled autograd, and compiled again or run as it is."""
    makers = {"as it is": lambda gm: gm, "whole": lambda gm: torch.compile(gm, fullgraph=True), "eager": lambda gm: torch.compile(gm, backend="eager")}
    for f in regions():
        want = observed(f)
        for name, maker in makers.items():
            compiled = torch.compile(f, fullgraph=True)
            with compiled_autograd._enable(maker):
                got = observed(compiled)
            close = all(torch.allclose(a[0], b[0]) and len(a[2]) == len(b[2]) for a, b in zip(want, got))
            expect(close, f"{f.__name__}, {name}: {got}, eager {want}")


def test_compiled_autograd_of_two_leaves():
    f = torch.compile(lambda x, w: (x * 2, (w * w).sin(), x * w))
    for i in range(2):
        leaves = [torch.full((3,), 1.0 + i, requires_grad=True) for _ in range(2)]
        others = [t.detach().clone().requires_grad_() for t in leaves]
        with compiled_autograd._enable(lambda gm: gm):
            sum(r.sum() for r in f(*[t * 1 for t in leaves])).backward()
        sum(r.sum() for r in (others[0] * 2, (others[1] * others[1]).sin(), others[0] * others[1])).backward()
        expect(all(torch.allclose(a.grad, b.grad) for a, b in zip(leaves, others)), f"{[t.grad for t in leaves]}")


def test_backends_of_attention():
    """`sdpa_kernel` inside: what it chooses holds for what is inside of it, and is as before afterwards."""

    def f(q):
        with sdpa_kernel(SDPBackend.MATH):
            with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.OVERRIDEABLE]):
                inside = F.scaled_dot_product_attention(q, q, q)
            flash = torch.backends.cuda.flash_sdp_enabled()
        return inside, flash, torch.backends.cuda.flash_sdp_enabled()

    q = torch.randn(1, 2, 4, 8)
    got, want = torch.compile(f, fullgraph=True)(q), f(q)
    expect(torch.allclose(got[0], want[0], atol=1e-6) and got[1:] == want[1:], f"{got}")

    def left(q):
        torch.backends.cuda.enable_math_sdp(False)
        return q + 1

    torch.compile(left, fullgraph=True)(q)
    was = torch.backends.cuda.math_sdp_enabled()
    torch.backends.cuda.enable_math_sdp(True)
    expect(not was, "a backend of attention that the region switches off is off behind it")


def test_cumulative_products():
    """libtorch asks whether there are zeros, and of what has no data takes an operator for each element."""
    for dtype in torch.float64, torch.complex128:
        for shape, dim in ((5,), 0), ((3, 7), 1), ((3, 7), 0), ((2, 3, 4), -2), ((3, 1), 1), ((4, 0), 1), ((), 0):
            fusebox.reset()
            compiled = torch.compile(lambda x, dim=dim: x.cumprod(dim), fullgraph=True)
            for share in 0, 0.1, 0.4, 1:
                x = torch.where(torch.rand(shape) < share, 0, torch.randn(shape, dtype=dtype)).requires_grad_()
                g = torch.randn(shape, dtype=dtype)
                want, = torch.autograd.grad(x.cumprod(dim), x, g)
                got, = torch.autograd.grad(compiled(x), x, g)
                expect(same(want, got, torch.allclose), f"{dtype} {shape} {dim} {share}: {got}, eager {want}")
    x = torch.randn(3, 5000, dtype=torch.float64, requires_grad=True)
    before = fusebox.counters()["kernels"]
    torch.compile(lambda x: x.cumprod(1))(x).sum().backward()
    kernels = fusebox.counters()["kernels"] - before
    expect(kernels < 30, f"{kernels} kernels")


def test_gradients_of_gradients_of_norms():
    """Norms are cut as simple operators, whose results lie otherwise than eager's until a view asks."""
    x, w = torch.randn(6, 8, requires_grad=True), torch.randn(8, requires_grad=True)

    def rms(x, w):
        return torch.ops.aten._fused_rms_norm(x, [8], w, 1e-5)[0].sin()

    def turned_layer(x, w):
        return F.layer_norm(x.t().contiguous().t().unsqueeze(0).transpose(0, 1), (8,), w, None).reshape(-1, 4).sin()

    def image_groups(x, w):
        image = x.view(1, 6, 8, 1).to(memory_format=torch.channels_last)
        return F.group_norm(image, 3).permute(0, 2, 3, 1).reshape(8, 6).sin() * w[:, None]

    def twice(f):
        first = torch.autograd.grad((f(x, w) ** 2).sum(), (x, w), create_graph=True)
        return (*first, *torch.autograd.grad(sum((g * g).sum() for g in first), (x, w)))

    for f in (rms, turned_layer, image_groups):
        got, want = twice(torch.compile(f, fullgraph=True)), twice(f)
        expect(same(got, want, lambda a, b: torch.allclose(a, b, rtol=1e-3, atol=1e-4)), f"{f.__name__}: {got}, eager {want}")


if __name__ == "__main__":
    run(globals())

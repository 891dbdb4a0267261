"""Function transforms, gradients and functions of the user's own, hooks, checkpoints, subclasses and modes."""

import torch
from torch import nn
import torch.nn.functional as F
from torch.func import vmap, grad, jvp, vjp, jacrev, jacfwd, hessian, functional_call, stack_module_state
from . import script


def rows(*s):
    return torch.randn(*(s or (4, 5)))


@script
def vmap_simple(compile):
    @compile
    def f(x, w):
        y = x * 2
        z = vmap(lambda r: (r * w).sum())(y)
        return z + 1

    return f(rows(), rows(5)), f(rows(), rows(5))


@script
def vmap_in_dims(compile):
    @compile
    def f(x, y):
        return (
            vmap(torch.dot, in_dims=(0, 1))(x, y),
            vmap(lambda a, b: a @ b, in_dims=(None, 0))(x, x),
            vmap(vmap(torch.mul))(x, x),
        )

    return f(rows(4, 5), rows(5, 4))


@script
def grad_func(compile):
    @compile
    def f(w, x):
        loss = lambda w: (F.linear(x, w) ** 2).mean()
        g = grad(loss)(w)
        return w - 0.1 * g

    w = rows(3, 5)
    return f(w, rows()), f(w, rows())


@script
def per_sample_grads(compile):
    net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))
    params = {k: v.detach() for k, v in net.named_parameters()}

    def loss(params, x, y):
        return ((functional_call(net, params, (x.unsqueeze(0),)) - y) ** 2).mean()

    @compile
    def f(params, x, y):
        return vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)

    return f(params, rows(), rows(4)), f(params, rows(), rows(4))


@script
def jacobians(compile):
    @compile
    def f(x):
        g = lambda v: torch.sin(v) * v.sum()
        return jacrev(g)(x), jacfwd(g)(x), hessian(lambda v: (v**3).sum())(x)

    return f(rows(5)), f(rows(5))


@script
def jvp_vjp(compile):
    @compile
    def f(x, t):
        out, d = jvp(torch.sin, (x,), (t,))
        o2, pull = vjp(lambda v: v * v.exp(), x)
        return out, d, o2, pull(t)[0]

    return f(rows(), rows())


@script
def grad_and_value_aux(compile):
    @compile
    def f(w, x):
        def loss(w):
            y = F.linear(x, w)
            return (y**2).sum(), y

        g, (l, aux) = torch.func.grad_and_value(loss, has_aux=True)(w)[0], torch.func.grad_and_value(loss, has_aux=True)(w)[1]
        return g, l, aux

    return f(rows(3, 5), rows())


@script
def ensemble(compile):
    nets = [nn.Linear(5, 3) for _ in range(3)]
    params, buffers = stack_module_state(nets)
    base = nn.Linear(5, 3)

    @compile
    def f(params, buffers, x):
        return vmap(lambda p, b: functional_call(base, (p, b), (x,)))(params, buffers)

    return f(params, buffers, rows())


@script
def vmap_of_compiled(compile):
    @compile
    def inner(r):
        return torch.sin(r) * 2

    def f(x):
        return vmap(inner)(x)

    return f(rows()), f(rows(3, 5)), inner(rows(5))


@script
def grad_of_compiled(compile):
    @compile
    def inner(r):
        return (torch.sin(r) * 2).sum()

    return grad(inner)(rows()), jvp(inner, (rows(),), (rows(),)), torch.func.vjp(inner, rows())[0]


@script
def double_backward_one_graph(compile):
    @compile
    def f(x):
        y = (x**3).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return (g**2).sum()

    x = rows().requires_grad_()
    l = f(x)
    l.backward()
    return l, x.grad


@script
def double_backward_outside(compile):
    @compile
    def f(x):
        return (x**3).sum()

    x = rows().requires_grad_()
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    (g**2).sum().backward()
    return g, x.grad


@script
def gradient_penalty_across_break(compile):
    net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))

    @compile
    def step(x):
        y = net(x)
        torch._dynamo.graph_break()
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return ((g.norm(dim=1) - 1) ** 2).mean()

    x = rows().requires_grad_()
    l = step(x)
    l.backward()
    return l, [p.grad for p in net.parameters()]


@script
def wgan_gp(compile):
    D = nn.Sequential(nn.Linear(5, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    d = compile(D)
    real, fake = rows(), rows()
    eps = torch.rand(4, 1)
    mix = (eps * real + (1 - eps) * fake).requires_grad_()
    score = d(mix)
    (g,) = torch.autograd.grad(score, mix, torch.ones_like(score), create_graph=True, retain_graph=True)
    gp = ((g.norm(2, dim=1) - 1) ** 2).mean()
    loss = d(fake).mean() - d(real).mean() + 10 * gp
    loss.backward()
    return loss, [p.grad for p in D.parameters()]


@script
def hvp(compile):
    @compile
    def f(w, x):
        return torch.tanh(x @ w).pow(2).sum()

    w = rows(5, 2).requires_grad_()
    x = rows()
    v = rows(5, 2)
    (g,) = torch.autograd.grad(f(w, x), w, create_graph=True)
    (h,) = torch.autograd.grad((g * v).sum(), w)
    return torch.autograd.functional.hvp(lambda w: f(w, x), w.detach(), v), h


@script
def autograd_functional(compile):
    @compile
    def f(x):
        return (x**2).sum(1)

    x = rows()
    return (
        torch.autograd.functional.jacobian(f, x),
        torch.autograd.functional.vjp(f, x, rows(4)),
        torch.autograd.functional.jacobian(f, x, create_graph=True),
    )


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        ctx.mark_non_differentiable
        return x * x * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False)
        return g * 2 * x * ctx.scale, None


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.save_for_backward(x)
        ctx.lo, ctx.hi = lo, hi
        return x.clamp(lo, hi)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ((x >= ctx.lo) & (x <= ctx.hi)), None, None


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


class TwoOut(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        i = x.argmax(1)
        ctx.mark_non_differentiable(i)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.exp(), i

    @staticmethod
    def backward(ctx, g, gi):
        assert gi is None
        (x,) = ctx.saved_tensors
        return g * x.exp()


class NewStyle(torch.autograd.Function):
    @staticmethod
    def forward(x, k):
        return x * k, x.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, k = inputs
        ctx.k = k
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g, gs):
        (x,) = ctx.saved_tensors
        return g * ctx.k + gs, None


@script
def custom_function_variants(compile):
    @compile
    def f(x):
        a = Square.apply(x, 3.0)
        b = Clamp.apply(a, -1.0, 2.0)
        e, i = TwoOut.apply(b)
        n, s = NewStyle.apply(e, 2)
        return n * s, i

    x = rows().requires_grad_()
    out, i = f(x)
    out.sum().backward()
    y = rows()
    return out, i, x.grad, f(y)


@script
def custom_function_dirty(compile):
    @compile
    def f(x):
        y = x * 1
        z = InPlace.apply(y)
        return z + y

    x = rows().requires_grad_()
    f(x).sum().backward()
    return x.grad, f(rows())


@script
def straight_through(compile):
    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g

    class Q(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(5, 3)
            self.s = nn.Parameter(torch.tensor(0.1))

        def forward(self, x):
            w = Round.apply(self.l.weight / self.s) * self.s
            return F.linear(x, w, self.l.bias), x + (x.round() - x).detach()

    q = Q()
    f = compile(q)
    a, b = f(rows())
    (a.sum() + b.sum()).backward()
    return a, b, [p.grad for p in q.parameters()]


@script
def grad_reversal(compile):
    class Rev(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, a):
            ctx.a = a
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g.neg() * ctx.a, None

    @compile
    def f(x, w):
        return Rev.apply(x @ w, 0.5)

    w = rows(5, 2).requires_grad_()
    f(rows(), w).sum().backward()
    return w.grad


@script
def hooks_forward_and_back(compile):
    net = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2))
    seen = []
    net[0].register_forward_pre_hook(lambda m, a: (a[0] * 2,))
    net[0].register_forward_hook(lambda m, a, o: o + 1)
    net[2].register_forward_hook(lambda m, a, kw, o: seen.append(tuple(o.shape)), with_kwargs=True)
    h = net[1].register_full_backward_hook(lambda m, gi, go: seen.append(("bw", tuple(go[0].shape))))
    net[2].register_full_backward_pre_hook(lambda m, go: seen.append("pre"))
    f = compile(net)
    f(rows()).sum().backward()
    h.remove()
    f(rows()).sum().backward()
    return seen, [p.grad for p in net.parameters()]


@script
def tensor_hooks_inside(compile):
    seen = []

    @compile
    def f(x, w):
        y = x @ w
        y.register_hook(lambda g: g * 2)
        z = y.relu()
        z.register_hook(lambda g: seen.append(g.sum().item()))
        return z.sum()

    w = rows(5, 2).requires_grad_()
    f(rows(), w).backward()
    return w.grad, [round(s, 3) for s in seen]


@script
def hooks_on_parameters(compile):
    net = nn.Linear(5, 2)
    seen = []
    net.weight.register_hook(lambda g: seen.append(float(g.abs().sum()) > 0) or g * 0.5)
    net.weight.register_post_accumulate_grad_hook(lambda p: seen.append(tuple(p.grad.shape)))
    f = compile(net)
    for _ in range(2):
        f(rows()).sum().backward()
    return seen, net.weight.grad


@script
def multi_grad_hook(compile):
    a, b = rows().requires_grad_(), rows().requires_grad_()
    seen = []
    torch.autograd.graph.register_multi_grad_hook(
        (a, b), lambda gs: seen.append([None if g is None else tuple(g.shape) for g in gs])
    )
    f = compile(lambda a, b: (a * b).sum())
    f(a, b).backward()
    return seen, a.grad


@script
def saved_tensor_hooks(compile):
    log = []
    f = compile(lambda a: (a.sin() * a).sum())
    a = rows().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (log.append(1), t)[1], lambda t: t):
        l = f(a)
    l.backward()
    return a.grad


@script
def checkpoints(compile):
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential

    blocks = nn.ModuleList([nn.Sequential(nn.Linear(5, 5), nn.GELU()) for _ in range(3)])

    @compile
    def f(x):
        for i, b in enumerate(blocks):
            x = checkpoint(b, x, use_reentrant=bool(i % 2)) + x
        return checkpoint_sequential(list(blocks), 2, x, use_reentrant=False)

    x = rows().requires_grad_()
    f(x).sum().backward()
    return x.grad, [p.grad for p in blocks.parameters()]


@script
def checkpoint_outside(compile):
    from torch.utils.checkpoint import checkpoint

    b = nn.Sequential(nn.Linear(5, 5), nn.GELU(), nn.Linear(5, 5))
    c = compile(b)
    x = rows().requires_grad_()
    y = checkpoint(c, x, use_reentrant=False) + checkpoint(c, x, use_reentrant=True)
    y.sum().backward()
    return x.grad, [p.grad for p in b.parameters()]


@script
def selective_checkpoint(compile):
    from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts, CheckpointPolicy
    import functools

    def policy(ctx, op, *a, **k):
        return CheckpointPolicy.MUST_SAVE if op == torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE

    w = rows(5, 5).requires_grad_()

    @compile
    def f(x):
        return checkpoint(
            lambda x: (x @ w).sin() @ w,
            x,
            use_reentrant=False,
            context_fn=functools.partial(create_selective_checkpoint_contexts, policy),
        )

    x = rows().requires_grad_()
    f(x).sum().backward()
    return x.grad, w.grad


class Scaled(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        return out


@script
def subclass_through(compile):
    @compile
    def f(x):
        return (x * 2).sum(0)

    y = f(rows().as_subclass(Scaled))
    return type(y).__name__, y.as_subclass(torch.Tensor), f(rows())


@script
def subclass_made_inside(compile):
    @compile
    def f(x):
        y = (x * 2).as_subclass(Scaled)
        return (y + 1).as_subclass(torch.Tensor), isinstance(y, Scaled), type(y).__name__

    return f(rows())


@script
def function_mode(compile):
    from torch.overrides import TorchFunctionMode

    class Count(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.n = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.add:
                self.n += 1
            return func(*args, **(kwargs or {}))

    c = Count()

    @compile
    def f(x):
        return torch.add(x, 1)

    with c:
        y = f(rows())

    @compile
    def g(x):
        with Count() as m:
            y = torch.add(x, x)
        return y, m.n

    return y, c.n, g(rows())


@script
def dispatch_mode(compile):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Log(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    @compile
    def f(x):
        return (x + 1).relu()

    with Log() as l:
        y = f(rows())
    return y, f(rows()), l.names


@script
def forward_ad(compile):
    import torch.autograd.forward_ad as fwAD

    f = compile(lambda x: (x.sin() * x).sum(0))
    x, t = rows(), rows()
    with fwAD.dual_level():
        d = fwAD.make_dual(x, t)
        y = f(d)
        return fwAD.unpack_dual(y).primal, fwAD.unpack_dual(y).tangent


@script
def detach_and_set_detect(compile):
    @compile
    def f(x):
        with torch.autograd.set_detect_anomaly(False):
            y = x.detach() * x
        return y.sum()

    x = rows().requires_grad_()
    f(x).backward()
    with torch.autograd.detect_anomaly(check_nan=False):
        l = f(x)
        l.backward()
    return x.grad


@script
def requires_grad_inside(compile):
    @compile
    def f(x):
        y = x.detach().clone().requires_grad_(True)
        z = (y * y).sum()
        z.backward()
        return y.grad

    return f(rows()), f(rows())


@script
def custom_op(compile):
    if not hasattr(torch.ops.fusebox_small, "twice"):

        @torch.library.custom_op("fusebox_small::twice", mutates_args=())
        def twice(x: torch.Tensor, n: int) -> torch.Tensor:
            return x * n

        @twice.register_fake
        def _(x, n):
            return torch.empty_like(x)

        twice.register_autograd(
            lambda ctx, g: (g * ctx.n, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "n", inputs[1])
        )

        @torch.library.custom_op("fusebox_small::bump", mutates_args={"x"})
        def bump(x: torch.Tensor) -> None:
            x.add_(1)

    @compile
    def f(x):
        y = torch.ops.fusebox_small.twice(x, 3)
        z = y * 1
        torch.ops.fusebox_small.bump(z)
        return y, z

    x = rows().requires_grad_()
    y, z = f(x)
    (y.sum() + z.sum()).backward()
    return y, z, x.grad, f(rows())


@script
def operators_that_write(compile):
    if not hasattr(torch.ops.fusebox_small, "put"):

        @torch.library.custom_op("fusebox_small::put", mutates_args={"keys", "values"})
        def put(keys: torch.Tensor, values: torch.Tensor, new: torch.Tensor, at: int) -> None:
            keys[:, at] = new
            values[:, at] = new * 2

    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("both", torch.zeros(2, 3, 12, 4))

        def forward(self, x, at):
            keys, values = self.both.unbind(0)
            torch.ops.fusebox_small.put(keys, values, x, at)
            return keys.sum(1) + values[:, 0], keys[:, at]

    @compile
    def given(keys, values, x, at):
        before = keys + 0
        torch.ops.fusebox_small.put(keys, values, x, at)
        return keys - before, values._version, keys._version

    @compile
    def reads_what_it_writes(x):
        y = x * 1
        torch.ops.fusebox_small.put(y[:1], y[1:2], y[:1, 0], 1)
        return y

    cache = Cache()
    call = compile(cache)
    buffers = [(torch.zeros(3, n, 4), torch.ones(3, 4, n).transpose(1, 2)) for n in (5, 6, 7)]
    with torch.no_grad():
        steps = [call(torch.randn(3, 4), at) for at in range(5)]
        others = [given(*pair, torch.randn(3, 4), 2) for pair in buffers]
        return steps, cache.both, others, buffers, reads_what_it_writes(torch.randn(3, 12, 4))


@script
def triton_like_where(compile):
    @compile
    def f(x):
        return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,))

    return f(rows().abs()), f(-rows().abs())


@script
def while_loop_hop(compile):
    @compile
    def f(x):
        from torch._higher_order_ops import while_loop

        return torch._higher_order_ops.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (torch.tensor(0), x))

    return f(rows())


@script
def flex(compile):
    from torch.nn.attention.flex_attention import flex_attention

    @compile
    def f(q, k, v):
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + (i - j))

    return f(rows(1, 2, 16, 16), rows(1, 2, 16, 16), rows(1, 2, 16, 16))


@script
def a_scan_over_tensors_is_followed(compile):
    from torch._higher_order_ops.associative_scan import associative_scan_op

    @compile
    def steps(a, b):
        return associative_scan_op(lambda m, n, p, q: (m * p, n * p + q), [a.sigmoid(), b], ())

    @compile
    def products(x):
        return associative_scan_op(lambda m, n: (m * n,), [x.exp()], ())[0]

    x = torch.randn(9, 4, requires_grad=True)
    products(x).sum().backward()
    recorded = steps(torch.randn(9, 4, requires_grad=True), x.detach().requires_grad_())
    with torch.no_grad():
        unrecorded = steps(torch.randn(9, 4), torch.randn(9, 4)), type(steps(recorded[0], x))
    of_one = steps(torch.randn(9, 4), x), steps(torch.randn(9, 4, dtype=torch.complex64), x)
    return unrecorded, x.grad, type(recorded), [t.requires_grad for made in of_one for t in made]

"""Derivatives taken by the program itself: torch.autograd.grad, torch.func's transforms, hooks, checkpoints, leaves that are made inside."""

from .grammar import feature, statement

FUNCTIONS = ["lambda t: t.sin()", "lambda t: (t * t).tanh()", "lambda t: t.exp().clamp(max=3.0)", "lambda t: t * 2 + 1", "lambda t: F.relu(t) * t",
             "lambda t: torch.where(t > 0, t, t * 0.5)", "lambda t: t.square().sum(-1, keepdim=True) + t"]


@feature(1.2)
def derivatives(g):
    g.declared.append("from torch.func import grad, jacrev, jvp, vjp, vmap\nfrom torch.utils.checkpoint import checkpoint")
    g.statements.append((2, use))


def use(g):
    x, f = g.variable("x") or "x", g.pick(FUNCTIONS)
    g.line(g.pick([f"{x} = {x} + vmap({f})({x})", f"{x} = {x} + vmap({f}, in_dims=1, out_dims=1)({x})", f"{x} = grad(lambda t: ({f})(t).sum())({x}) * 0.5",
                   f"a, b = jvp({f}, ({x},), (torch.ones_like({x}),))\n{x} = a + b", f"a, back = vjp({f}, {x})\n{x} = back(a)[0]",
                   f"{x} = {x} + vmap(grad(lambda t: ({f})(t).sum()))({x})", f"{x} = checkpoint({f}, {x}, use_reentrant=False)",
                   f"{x} = {x} + jacrev(lambda t: ({f})(t).sum())({x})", f"{x} = checkpoint(lambda t, k: t * k, {x}, {g.factor()}, use_reentrant=False)",
                   f"{x} = {x} + vmap(lambda t, s: t * s, in_dims=(0, None))({x}, {g.factor()})", f"{x} = vmap(lambda t: t - t.mean())({x})",
                   f"{x} = {x} * vmap(vmap(lambda t: t * 2))({x})"]))


@statement(0.25)
def gradient_inside(g):
    x, f = g.variable("x") or "x", g.pick(FUNCTIONS)
    leaf = g.name("leaf")
    g.line(f"{leaf} = {x}.detach().clone().requires_grad_()")
    with g.block("with torch.enable_grad():"):
        g.line(g.pick([f"({f})({leaf}).sum().backward()", f"{leaf}.grad = torch.autograd.grad(({f})({leaf}).sum(), {leaf})[0]",
                       f"once, = torch.autograd.grad(({f})({leaf}).sum(), {leaf}, create_graph=True)\n{leaf}.grad = once.detach() + 1",
                       f"({f})({leaf}).mean().backward()\n{leaf}.grad.mul_(2)"]))
    g.line(f"{x} = {x} + {leaf}.grad")


@statement(0.2)
def hook_of_a_tensor(g):
    x = g.variable("x") or "x"
    with g.block(f"if {x}.requires_grad:"):
        g.line(g.pick([f"{x}.register_hook(lambda grad: grad * 2)", f"{x}.register_hook(lambda grad: LOG.append('hook'))", f"{x}.retain_grad()",
                       f"handle = {x}.register_hook(lambda grad: grad + 1)\nhandle.remove()"]))

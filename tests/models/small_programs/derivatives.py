"""torch.func inside of what is compiled: gradients, products with Jacobians, Hessians, of one sample each."""

import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap
from . import script


class Refused(Exception):
    pass


def model():
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 1))


def loss(net, parameters, x, y):
    return (functional_call(net, parameters, (x,)) - y).square().mean()


@script
def gradients_of_parameters(compile):
    net = model()
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    f = compile(lambda p, x, y: grad_and_value(lambda q: loss(net, q, x, y))(p))
    return [f(parameters, torch.randn(n, 4), torch.randn(n, 1)) for n in (6, 6, 9, 3)]


@script
def gradients_of_each_sample(compile):
    net = model()
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    f = compile(lambda p, x, y: vmap(grad(lambda q, a, b: loss(net, q, a, b)), in_dims=(None, 0, 0))(p, x, y))
    return [f(parameters, torch.randn(n, 4), torch.randn(n, 1)) for n in (5, 7, 8, 2)]


@script
def gradients_of_gradients(compile):
    """A loss of a second derivative, trained: the gradient of what torch.func computes."""
    net = model()

    @compile
    def residual(x):
        value = lambda t: functional_call(net, dict(net.named_parameters()), (t,)).sum()
        return grad(lambda t: grad(value)(t).sum())(x)

    residual(torch.randn(6, 4)).square().mean().backward()
    return [p.grad for p in net.parameters()]


@script
def derivatives_forward_and_back(compile):
    f = lambda t: (t.sin() * t.sum() + t.relu() / (2 + t.cos())).cumsum(0)
    s = lambda t: f(t).square().sum()
    x, v = torch.randn(5), torch.randn(5)
    forms = [lambda: jvp(f, (x,), (v,)), lambda: vjp(f, x)[1](v), lambda: jacfwd(f)(x), lambda: jacrev(f)(x), lambda: hessian(s)(x),
             lambda: jvp(grad(s), (x,), (v,))[1], lambda: jacfwd(jacfwd(s))(x), lambda: jacrev(f, chunk_size=2)(x),
             lambda: vmap(hessian(s))(torch.stack([x, v])), lambda: jvp(lambda t: jvp(f, (t,), (v,))[1], (x,), (v,))]
    return [compile(form)() for form in forms]


@script
def jacobians_of_any_size(compile):
    f = compile(lambda t: (jacfwd(lambda s: s.exp() * s.sum())(t), vmap(lambda s: s * s.sum())(jacrev(torch.sin)(t))))
    return [f(torch.randn(n)) for n in (4, 6, 7, 3)]


@script
def zero_tangents_stay_zero(compile):
    """What does not depend on an argument has a derivative of zero, whatever it is multiplied by."""
    x = torch.tensor([0.0, 1.0, 4.0])
    f = lambda t: t * (t.detach() / 0.0).sqrt() + (torch.ones(3) * x).sqrt()
    return compile(lambda: (jvp(f, (x,), (torch.ones(3),)), jacfwd(lambda t: x.reciprocal() + t)(x)))()


@script
def transforms_that_end_early(compile):
    @compile
    def f(x):
        def refuses(t):
            if t.dim() == 2:
                raise Refused("two dimensions")
            return t.sum()

        try:
            return grad(refuses)(x)
        except Refused as error:
            return grad(lambda t: (t * len(str(error))).sum())(x)

    def depends(x):
        return grad(lambda t: t.sum() if t.sum() > 0 else (t * t).sum())(x)

    return f(torch.randn(3, 2)), f(torch.randn(3)), [compile(depends)(x) for x in (torch.ones(2), -torch.ones(2))]


@script
def what_is_printed_inside(compile):
    seen = []

    @compile
    def f(x):
        def noted(t):
            seen.append(t.shape)
            t = t.clone()
            t[0] = t[1] * 2
            with torch.no_grad():
                c = t.sin()
            return (t * c * len(seen)).sum()

        return grad(noted)(x)

    return f(torch.randn(3, 2)), f(torch.randn(3, 2)), seen


@script
def penalties_of_gradients_behind_norms_and_written_buffers(compile):
    """What backward needs of a buffer that forward has written to, or of a batch's statistics, is no function of the inputs."""
    out = []
    layers = (lambda: torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(4, 4)), lambda: torch.nn.utils.spectral_norm(torch.nn.Linear(4, 4)),
              lambda: torch.nn.BatchNorm1d(4), lambda: torch.nn.LayerNorm(4))
    for layer in layers:
        model = torch.nn.Sequential(layer(), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        run = compile(model)
        for _ in range(2):
            x = torch.randn(6, 4, requires_grad=True)
            gradient, = torch.autograd.grad(run(x).sum(), x, create_graph=True)
            penalty = ((gradient.norm(2, 1) - 1) ** 2).mean()
            model.zero_grad()
            penalty.backward()
            out.append((penalty, x.grad, [p.grad for p in model.parameters()], list(model.buffers())))
    return out


@script
def gradients_of_gradients_take_formulas_that_have_a_derivative(compile):
    """Where eager takes another formula with gradients on than without. In float64, since third derivatives of inverses are large."""
    functions = (torch.nn.functional.silu, lambda x: torch.nn.functional.group_norm(x, 2, torch.ones(4).double(), torch.zeros(4).double()),
                 lambda x: torch.nn.functional.group_norm(x, 1), lambda x: torch.fft.rfft(x).abs(),
                 lambda x: torch.logit(x.sigmoid()), lambda x: torch.logit(x.sigmoid(), 0.1), lambda x: torch.linalg.det(x[:, :3]),
                 lambda x: torch.linalg.slogdet(x[:, :3])[1], lambda x: torch.linalg.solve(x[:, :3] + 4 * torch.eye(3).double(), x),
                 lambda x: torch.linalg.solve(x[:, :3].mT + 4 * torch.eye(3).double(), x[:, 0]))
    out = []
    for function in functions:
        run = compile(function)
        x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
        first, = torch.autograd.grad(run(x).sin().sum(), x, create_graph=True)
        second, = torch.autograd.grad((first * x).sum(), x, create_graph=True)
        third, = torch.autograd.grad(second.sin().sum(), x)
        out.append((first, second, third.contiguous()))  # how it lies goes by the way it was summed up
    return out


@script
def what_is_written_without_gradients_keeps_its_history(compile):
    """Under no_grad, by detached aliases and by parts: gradients of gradients go through what was there before."""

    def clamped(n):
        with torch.no_grad():
            n.clamp_min_(1.5)

    def part(n):
        with torch.no_grad():
            n[:2].mul_(3)

    def part_of_before(n):
        part = n[1:]
        with torch.no_grad():
            part.add_(1)
            part.sum()
        return part

    def several(n):
        with torch.no_grad():
            torch._foreach_mul_([n, n.view(-1)[:3]], 2)

    def zeroed(n):
        with torch.no_grad():
            n.zero_().add_(2)

    def other(n):
        with torch.no_grad():
            n.copy_(torch.arange(4.0)).exp_()

    def detached(n):
        n.detach().clamp_(0.1, 0.7)

    def data(n):
        n.data.mul_(2)

    def turned(n):
        with torch.no_grad():
            n.unsqueeze_(0).transpose_(0, 1).squeeze_(1)

    out = []
    for write in (clamped, part, part_of_before, several, zeroed, other, detached, data, turned):
        def function(x):
            n = (x * x).cos()
            read = write(n)
            read = n if read is None else read
            return (read * read * read).sum() + (n * n).sum() * x.sum()

        run = compile(function)
        x = torch.tensor([0.3, 0.9, 1.4, 2.0], requires_grad=True)
        with torch._dynamo.config.patch(recompile_limit=16):
            first, = torch.autograd.grad(run(x), x, create_graph=True)
        out.append((first, *torch.autograd.grad(first.sin().sum(), x)))
    a, b = torch.randn(3, 5, requires_grad=True), torch.randn(3, 5)
    similar = compile(lambda a: torch.nn.functional.cosine_similarity(a, b))
    first, = torch.autograd.grad(similar(a).exp().sum(), a, create_graph=True)
    out.append((first, *torch.autograd.grad(first.square().sum(), a)))
    return out


@script
def gradients_of_gradients_of_recurrent_networks(compile):
    """With the sizes of the first call, and with numbers of steps that changed."""
    out = []
    for make in (lambda: torch.nn.LSTM(3, 4), lambda: torch.nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True),
                 lambda: torch.nn.LSTM(3, 4, proj_size=2), lambda: torch.nn.GRU(3, 4, bias=False), lambda: torch.nn.LSTMCell(3, 4)):
        network = make()
        run = compile(lambda x: network(x)[0])
        for steps in (2, 3, 5):
            x = (torch.randn(steps, 3) if isinstance(network, torch.nn.LSTMCell) else torch.randn(steps, 2, 3)).requires_grad_()
            gradients = torch.autograd.grad(run(x).square().sum(), (x, *network.parameters()), create_graph=True, allow_unused=True)
            penalty = sum(g.square().sum() for g in gradients if g is not None)
            second = torch.autograd.grad(penalty, (x, *network.parameters()), allow_unused=True)
            out.append([g if g is None else g.contiguous() for g in (*gradients, *second)])  # how they lie goes by the way they were computed
    return out

"""Compiled optimiser steps, operators over lists of tensors, and numbers that change from call to call."""

import torch
from torch import nn

from . import script


def parameters():
    torch.manual_seed(3)
    return [nn.Parameter(torch.randn(shape)) for shape in [(8, 16), (16,), (4, 8), (), (8, 16)]]


def trained(compile, make, steps=6, rate=None):
    """Parameters and state after some steps of a compiled `step` with a rate that a schedule changes."""
    params = parameters()
    optimiser = make(params)
    step = compile(optimiser.step)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate or (lambda n: 1 / (1 + n)))
    gradients = torch.Generator().manual_seed(5)
    for _ in range(steps):
        for p in params:
            p.grad = torch.randn(p.shape, generator=gradients)
        step()
        schedule.step()
    state = [(k, v) for s in optimiser.state_dict()["state"].values() for k, v in s.items()]
    return [p.detach().clone() for p in params], state, [g["lr"] for g in optimiser.param_groups]


@script
def sgd_with_momentum(compile):
    return trained(compile, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01))


@script
def sgd_over_lists(compile):
    return trained(compile, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True))


@script
def fused_sgd(compile):
    return trained(compile, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, fused=True))


@script
def fused_adamw(compile):
    return trained(compile, lambda p: torch.optim.AdamW(p, lr=0.01, fused=True))


@script
def fused_adam_with_amsgrad(compile):
    return trained(compile, lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1, maximize=True, fused=True))


@script
def fused_adamw_with_a_rate_in_a_tensor(compile):
    return trained(compile, lambda p: torch.optim.AdamW(p, lr=torch.tensor(0.01), fused=True), rate=lambda n: 1.0)


@script
def rmsprop_over_lists(compile):
    return trained(compile, lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True, momentum=0.5, foreach=True))


@script
def two_groups_with_rates_of_their_own(compile):
    return trained(compile, lambda p: torch.optim.SGD([{"params": p[:2], "lr": 0.1}, {"params": p[2:], "weight_decay": 0.1}], lr=0.3))


@script
def state_by_tensor(compile):
    seen = {}

    @compile
    def f(x, p):
        if p in seen:
            seen[p]["count"] += 1
            return x * seen[p]["factor"]
        seen[p] = {"count": 1, "factor": p.detach() * 2}
        return x

    a, b = torch.ones(3), torch.full((3,), 2.0)
    x = torch.arange(3.0)
    results = [f(x, a), f(x, b), f(x, a), f(x, b), f(x, torch.zeros(3))]
    return results, [(s["count"], s["factor"]) for s in seen.values()]


@script
def moving_average_and_clipping(compile):
    averages, params = parameters(), parameters()
    for p in params:
        p.grad = torch.ones_like(p) * 3

    @compile
    def after(rate):
        norm = torch.nn.utils.clip_grad_norm_(params, 1.0)
        with torch.no_grad():
            torch._foreach_lerp_(averages, params, rate)
            torch._foreach_mul_(params, 1 - rate)
        return norm

    norms = [after(r) for r in (0.1, 0.2, 0.3, 0.4)]
    return norms, [a.detach() for a in averages], [p.grad for p in params], [p.detach() for p in params]


@script
def operators_over_lists(compile):
    x = [torch.randn(3, 4), torch.randn(5), torch.tensor(0.5)]
    y = [t.abs() + 1 for t in x]

    @compile
    def f(x, y, numbers):
        a = torch._foreach_addcdiv(x, y, y, numbers)
        b = torch._foreach_addcmul(a, x, y, value=0.5)
        c = torch._foreach_maximum(b, y)
        torch._foreach_sqrt_(y)
        return a, b, c, torch._foreach_norm(c), torch._foreach_div(c, [1.0, 2.0, 4.0]), torch._foreach_pow(y, 2), torch._foreach_neg(x)

    return f(x, y, torch.tensor([1.0, 2.0, 3.0])), y


@script
def a_number_that_changes(compile):
    x = torch.randn(4, 5)
    outs = []

    @compile
    def scale(x, s):
        return x * s + (1 - s) * x.abs(), x.sum() / s, s

    @compile
    def decide(x, s):
        return x * s if s > 0.5 else x - s

    @compile
    def text(x, s):
        return x.sum(), f"{s:.2f}", type(s) is float, isinstance(s, float), isinstance(s, torch.Tensor)

    @compile
    def whole(x, s):
        return x.int() * s, torch.tensor(s), torch.full((2,), s), {0.25: 1}.get(s, 2)

    @compile
    def divides(x, s):
        return x * (1 / s)

    for s in (0.25, 0.75, -2.0, 3.5):
        outs += [scale(x, s), decide(x, s), text(x, s), whole(x, s), divides(x, s)]
    try:
        divides(x, 0.0)
    except ZeroDivisionError as error:
        outs.append(str(error))
    return outs


@script
def a_number_kept_by_the_program(compile):
    class Keeper:
        rate = 0.5

    keeper = Keeper()
    seen = []

    @compile
    def f(x):
        seen.append(keeper.rate)
        keeper.last = keeper.rate
        return x * keeper.rate

    outs = []
    for rate in (0.5, 0.25, 0.125):
        keeper.rate = rate
        outs.append(f(torch.ones(3)))
        outs.append(keeper.last)
    return outs, seen, [type(v) for v in seen]


@script
def a_tensor_where_a_number_is_taken(compile):
    @compile
    def f(x, y, n):
        x.add_(y, alpha=n)
        return x.addcdiv(y, y.exp(), value=-n), torch.add(x, y, alpha=n * 2)

    return f(torch.randn(4), torch.randn(4), torch.tensor(0.3))

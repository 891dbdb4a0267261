"""Operators that somebody sees happen and random numbers: kept, in order, once; large enough for loops around them to be fused."""

import torch
import torch.nn.functional as F
from torch import nn

from . import script

LOG = []


def note(x, n):
    LOG.append(n)
    return x.clone()


def note_gradient(context, gradient):
    return torch.ops.small_effects.note(gradient, 9) * 2, None


def say(x, n):
    LOG.append((n, tuple(x.shape)))


def tick(n):
    LOG.append(n)


def operators():
    """Defined once in the process: the dispatcher keeps them."""
    if not hasattr(torch.ops, "small_effects") or not hasattr(torch.ops.small_effects, "note"):
        made = torch.library.custom_op("small_effects::note", note, mutates_args=(), schema="(Tensor x, int n) -> Tensor")
        made.register_fake(lambda x, n: torch.empty_like(x))
        made.register_autograd(note_gradient)
        torch.library.custom_op("small_effects::say", say, mutates_args=(), schema="(Tensor x, int n) -> ()").register_fake(lambda x, n: None)
        torch.library.custom_op("small_effects::tick", tick, mutates_args=(), schema="(int n) -> ()").register_fake(lambda n: None)
        torch.library.custom_op("small_effects::count", lambda x: x.numel(), mutates_args=(), schema="(Tensor x) -> int").register_fake(lambda x: 7)
        torch.library.custom_op("small_effects::crop", lambda x: x[1:].clone(), mutates_args=(),
                                schema="(Tensor x) -> Tensor").register_fake(lambda x: torch.empty_like(x))
    LOG.clear()
    return torch.ops.small_effects


def grid():
    return torch.linspace(-1, 1, 64 * 64).view(64, 64)


def seeded(f, x):
    torch.manual_seed(0)
    return f(x), f(x), torch.rand(2)


@script
def draws_around_fused_loops(compile):
    @compile
    def vertical(x):
        p = torch.sigmoid(x)
        y = torch.bernoulli(p)
        n = torch.randn(64)
        return y, n, p + 1

    @compile
    def siblings(x):
        y = torch.bernoulli(x.sigmoid())
        n = torch.rand_like(x)
        m = torch.randn(64, 1)
        return y * x.cos(), n * x.cos(), x.cos() + m, torch.randperm(64)

    @compile
    def unread(x):
        torch.rand(5)
        q = F.dropout(x.exp(), 0.3)
        x.clone().normal_()
        return q, x.exp() + torch.randn(64, 64)

    return [seeded(f, grid()) for f in (vertical, siblings, unread)]


@script
def equal_draws_are_two(compile):
    @compile
    def f(x, high):
        return torch.randint_like(x, high) + torch.randint_like(x, high) * 1000, torch.rrelu(x - 1, training=True) - torch.rrelu(x - 1, training=True)

    torch.manual_seed(1)
    return f(torch.zeros(64, 64), torch.tensor(1000)), torch.rand(1)


@script
def calls_are_kept_in_order(compile):
    ops = operators()

    @compile
    def f(x):
        p = torch.sigmoid(x)
        y = ops.note(p, 1)
        ops.tick(2)
        z = ops.note(x, 3)
        ops.say(p, 4)
        ops.note(z, 5)
        ops.note(z, 5)
        return y, z, p + 1

    return f(grid()), f(grid()), list(LOG)


@script
def calls_and_draws(compile):
    ops = operators()

    @compile
    def f(x):
        p = torch.sigmoid(x)
        a = torch.bernoulli(p)
        b = ops.note(x, 1)
        return a, b + torch.randn(64, 64), p + 1

    return seeded(f, grid()), list(LOG)


@script
def a_function_that_is_only_an_effect(compile):
    ops = operators()

    @compile
    def f(x):
        ops.say(x, 1)
        ops.tick(2)
        return 3

    return f(grid()), f(grid()), list(LOG)


@script
def calls_in_backward_are_kept(compile):
    ops = operators()

    @compile
    def f(x, w):
        h = torch.tanh(x @ w)
        return (ops.note(h, 1) * torch.sigmoid(h)).sum()

    x, w = grid().requires_grad_(), (grid() / 8).requires_grad_()
    f(x, w).backward()
    return x.grad, w.grad, list(LOG)


@script
def a_call_that_gives_a_number(compile):
    ops = operators()

    @compile
    def f(x):
        return x + ops.count(x)

    return f(grid()), f(grid()[:3])


@script
def what_was_seen_is_not_done_again_when_a_graph_raises(compile):
    ops = operators()

    @compile
    def f(x, i):
        n = ops.note(x.exp(), 1)
        ops.tick(2)
        r = torch.rand(64)
        try:
            y = n[i] + r
        except IndexError:
            y = n - r
        ops.say(y, 3)
        return y

    torch.manual_seed(0)
    good, bad = f(grid(), torch.tensor([1])), f(grid(), torch.tensor([70]))
    return good, bad, torch.rand(1), list(LOG)


@script
def a_call_that_raises_is_handled(compile):
    ops = operators()

    @compile
    def f(x):
        ops.tick(1)
        try:
            inverse = torch.linalg.inv(x)
        except RuntimeError:
            ops.tick(2)
            inverse = x
        return inverse + 1

    return f(torch.eye(64) * 2), f(torch.zeros(64, 64)), list(LOG)


@script
def checks_before_effects(compile):
    ops = operators()

    @compile
    def f(table, i, x):
        rows = F.embedding(i, table)
        ops.note(x, 1)
        return rows * 2

    def outcome(i):
        try:
            return f(grid(), i, grid())
        except IndexError:
            return "IndexError"

    return outcome(torch.arange(3)), outcome(torch.tensor([99])), list(LOG)


@script
def asserts_on_data(compile):
    @compile
    def f(x):
        torch._assert_async((x > 0).all(), "not positive")
        return x + 1

    def outcome(x):
        try:
            return f(x)
        except RuntimeError as error:
            return "not positive" in str(error)

    return outcome(torch.ones(64, 64)), outcome(-torch.ones(64, 64)), outcome(torch.ones(64, 64))


@script
def recurrent_networks(compile):
    out = []
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        torch.manual_seed(0)
        net, x = kind(64, 32, num_layers=2, dropout=0.5, bidirectional=True), torch.randn(7, 8, 64)
        f = compile(net)
        torch.manual_seed(1)
        y, _ = f(x)
        (y * torch.rand_like(y)).sum().backward()
        out += [y, [p.grad for p in net.parameters()], torch.rand(1)]
        with torch.no_grad():
            out.append(f(x)[0])
        net.eval()
        with torch.no_grad():
            out.append(f(x)[0])
    return out


@script
def types_without_code(compile):
    @compile
    def complexes(x):
        return torch.fft.fft(torch.fft.fft(x).transpose(0, 1)), x.exp() * 2 + 1, torch.view_as_complex(x.view(64, 32, 2))[:, 1:].real + 1

    @compile
    def views(z):
        return z[:, 0].real * 2, z.t().imag[1:], z.permute(1, 0)[::2], z.reshape(-1)[::3].abs(), z.conj().t()

    @compile
    def eights(x):
        a = x.to(torch.float8_e4m3fn)
        return a.t().to(torch.float32) * 2 + 1, a[1:], x.exp() + 1

    @compile
    def unsigned(x):
        a = x.to(torch.uint16)
        return a.t()[1:].to(torch.int32) + 1, a.view(-1)[::2], (x + 1) * 2

    z = torch.complex(grid(), grid().t())
    return complexes(grid()), views(z), [t.float() for t in eights(grid())], [t.int() for t in unsigned(torch.arange(4096).view(64, 64))]


@script
def an_operator_that_gives_another_shape_than_it_said(compile):
    ops = operators()

    @compile
    def f(x):
        y = ops.crop(x.exp())
        ops.tick(1)
        return y * 2, y.shape[0], torch.rand(2)

    torch.manual_seed(0)
    return f(grid()), f(grid()), list(LOG)


@script
def prints_go_where_they_went(compile):
    import contextlib
    import io
    inside, outside = io.StringIO(), io.StringIO()

    @compile
    def f(x, n):
        print("before", n)
        with contextlib.redirect_stdout(inside):
            x = x * 2
            print("inside", n, sep="-")
        print("after", x.shape[0])
        return x

    with contextlib.redirect_stdout(outside):
        results = [f(torch.ones(2), n) for n in range(3)]
    return results, inside.getvalue(), outside.getvalue()

"""What one backward pass reads, what it gives up, and what a second one finds."""

import torch

from . import script


def leaf(*shape):
    return torch.randn(*(shape or (4, 4)), requires_grad=True)


def outcome(act):
    try:
        return act()
    except RuntimeError as error:
        return str(error)[:50]


@script
def a_written_input_is_missed_only_on_its_way(compile):
    """By the results that are walked from, and by the inputs whose gradients are wanted."""
    f = compile(lambda h, w: (h.var(), h * 3, h.sin() * w))
    out = []
    for position in (0, 1, 2):
        x, w = leaf(), leaf()
        h = x * 1
        results = f(h, w)
        h.add_(1)
        out.append(outcome(lambda: torch.autograd.grad(results[position].sum(), x)))
    for wanted in (0, 1):
        x, w = leaf(), leaf()
        h = x * 1
        results = f(h, w)
        h.add_(1)
        out.append(outcome(lambda: torch.autograd.grad(results[2].sum(), (x, w)[wanted], retain_graph=True)))
        out.append(outcome(lambda: torch.autograd.grad(results[2].sum(), (x, w))))
    return out


@script
def a_written_input_is_missed_only_on_its_way_twice_differentiated(compile):
    f = compile(lambda h, w: (h.var(), h * 3, h.pow(2) * w))
    out = []
    for position in (0, 1, 2):
        x, w = leaf(), leaf()
        h = x * 1
        results = f(h, w)
        if position < 2:
            h.add_(1)

        def penalty():
            (g,) = torch.autograd.grad((results[position] * x).sum(), x, create_graph=True)
            g.square().sum().backward()
            return x.grad, w.grad
        out.append(outcome(penalty))
    return out


@script
def only_what_is_read_is_unpacked(compile):
    unpacked = []
    f = compile(lambda x: (x.exp(), x.sum()))
    x = leaf()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (unpacked.append(1), t)[1]):
        a, b = f(x)
    b.backward()
    before = len(unpacked)
    a.sum().backward()
    return before, len(unpacked) > 0, x.grad


@script
def losses_one_after_the_other(compile):
    """Each gives up only what its own operators kept."""
    f = compile(lambda x, w: (x.sin(), x + w, w.exp(), (x * w).tanh()))
    x, w = leaf(), leaf()
    out = []
    for result in f(x, w):
        out.append(outcome(lambda: result.sum().backward()))
        out.append([None if t.grad is None else t.grad.clone() for t in (x, w)])
    return out


@script
def one_input_after_the_other(compile):
    f = compile(lambda x, w: x.sin() * 2 + w.exp())
    x, w = leaf(), leaf()
    y = f(x, w).sum()
    out = []
    for wanted in (x, w, x, w):
        out.append(outcome(lambda: torch.autograd.grad(y, wanted, retain_graph=len(out) == 0)))
    return out


@script
def a_second_backward_finds_what_was_kept_gone(compile):
    """Also where compiled code needs nothing of it, and only where eager's operators kept something on the way."""
    calls = [lambda x, w: x * 1, lambda x, w: x + 1, lambda x, w: x.t() / 2, lambda x, w: x.sum(), lambda x, w: x * w, lambda x, w: x.sin(),
             lambda x, w: (x * 2, w * 3), lambda x, w: ((x + w) * 2, x + w), lambda x, w: (x + w).neg(), lambda x, w: (x + w) * 2,
             lambda x, w: -(x * w.detach()), lambda x, w: x.expand(2, 4, 4).sum(0), lambda x, w: (x * 2 + 1, x * 2), lambda x, w: (x.sin(), w.sin()),
             lambda x, w: (x.sin(), x.sin() * w), lambda x, w: x * torch.tensor(2.), lambda x, w: x * torch.arange(4.), lambda x, w: x.mean(),
             lambda x, w: x[torch.tensor([0, 2])], lambda x, w: (x.exp(), x.exp() + 1), lambda x, w: (x * 3)[1:].add_(w[0]),
             lambda x, w: torch.addmm(w, x.detach(), x.detach()), lambda x, w: (x + 0)[:, 1].mul_(2)]
    out = []
    for call in calls:
        f = compile(call)
        for keep in (False, True):
            x, w = leaf(), leaf()
            results = f(x, w)
            results = results if isinstance(results, tuple) else (results,)
            for result in (*results, *results):
                out.append(outcome(lambda: result.sum().backward(retain_graph=keep)))
                if out[-1] is None:  # which leaves got something ahead of an error is the order in which operators were met
                    out.append([None if t.grad is None else t.grad.clone() for t in (x, w)])
    return out


@script
def a_last_pass_after_kept_ones(compile):
    f = compile(lambda x: (x.sin(), x.cos(), x + 1))
    x = leaf()
    a, b, c = f(x)
    out = []
    for result, keep in ((a, True), (b, False), (a, True), (a, False), (c, False), (b, True), (c, False), (a, False)):
        out.append(outcome(lambda: result.sum().backward(retain_graph=keep)))
        out.append(x.grad.clone())
    return out


@script
def a_state_that_leads_to_an_earlier_call(compile):
    """The second call's backward would walk the first one's again."""
    kept = []

    def step(x):
        old = kept[-1] if kept else 0
        kept.append(x * 1)
        return kept[-1] + old

    f = compile(step)
    out = []
    for _ in range(3):
        x = leaf()
        y = f(x)
        out.append(outcome(lambda: y.sum().backward()))
        out.append(x.grad)
    return out


@script
def memory_is_given_up_with_the_loss(compile):
    """Although other results could still be walked from, their operators' values are gone."""
    import weakref

    f = compile(lambda x, w: ((x @ w).relu().sum(), x @ w))
    x, w = leaf(), leaf()
    h = x * 1
    loss, logits = f(h, w)
    alive = weakref.ref(h.untyped_storage())
    loss.backward()
    del h
    return alive() is None, logits.requires_grad, outcome(lambda: logits.sum().backward())

"""Gradients of results that other results of the same call are computed from: retain_grad, hooks, autograd.grad, penalties."""

import torch
import torch.nn.functional as F

from . import script


def features_and_score(compile):
    w, v = torch.randn(5, 6).requires_grad_(), torch.randn(6, 2).requires_grad_()

    @compile
    def f(x):
        features = torch.tanh(x @ w)
        return features, (features * features.sum()) @ v

    return f, w, v


def rows(*shape):
    return torch.randn(*(shape or (4, 5))).requires_grad_()


@script
def grad_of_one_result_by_another(compile):
    f, w, v = features_and_score(compile)
    features, score = f(rows())
    return torch.autograd.grad(score.sum(), features), f(rows())


@script
def more_results_than_bits_in_a_word(compile):
    @compile
    def f(x, y):
        results = []
        for i in range(70):
            x = torch.tanh(x * 1.1)
            results.append(x if i % 3 else x * y)
        return (*results, y.sin())

    seen = []
    for chosen in ([0], [69], [70], [65, 66], [5, 64, 70], range(71)):
        x, y = rows(4), rows(4)
        results = f(x, y)
        results[64].retain_grad()
        sum(results[i].sum() for i in chosen).backward()
        seen += [x.grad, y.grad, results[64].grad]
    return seen


@script
def retain_grad_of_a_result(compile):
    f, w, v = features_and_score(compile)
    x = rows()
    features, score = f(x)
    features.retain_grad()
    (score.pow(2).sum() + 3 * features.sum()).backward()
    return features.grad, x.grad, w.grad, v.grad


@script
def class_activation_map(compile):
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 5, 3))

    @compile
    def f(x):
        maps = net(x)
        return maps, maps.mean((2, 3))

    maps, logits = f(torch.randn(2, 3, 8, 8))
    maps.retain_grad()
    logits[:, 1].sum().backward()
    weights = maps.grad.mean((2, 3), keepdim=True)
    return maps.grad, F.relu((weights * maps).sum(1)), [p.grad for p in net.parameters()]


@script
def hook_changes_the_gradient_of_a_result(compile):
    f, w, v = features_and_score(compile)
    x = rows()
    for _ in range(2):
        features, score = f(x)
        features.register_hook(lambda g: g * 2 + 1)
        score.sum().backward()
    return x.grad, w.grad, v.grad


@script
def hook_that_takes_itself_away(compile):
    f, w, v = features_and_score(compile)
    x, seen = rows(), []
    features, score = f(x)

    def once(g):
        seen.append(g)
        handle.remove()

    handle = features.register_hook(once)
    (score.sum() + features.mean()).backward(retain_graph=True)
    (score.sum() + features.mean()).backward()
    return seen, x.grad, w.grad, v.grad


@script
def watched_and_not_watched(compile):
    f, w, v = features_and_score(compile)
    x = rows()
    features, score = f(x)
    (features.sum() * score.sum()).backward(retain_graph=True)
    handle = features.register_hook(lambda g: g.clamp(-1, 1))
    score.mean().backward(retain_graph=True)
    handle.remove()
    features.sum().backward(retain_graph=True)
    score.mean().backward()
    return x.grad, w.grad, v.grad


@script
def chain_of_results(compile):
    w = rows(5, 5)

    @compile
    def f(x):
        a = (x @ w).sin()
        b = (a @ w + x).cos()
        c = a * b
        return a, b, c, c.sum() + b.mean(), x * 3

    x, seen = rows(), []
    a, b, c, d, e = f(x)
    for name, t in dict(a=a, b=b, c=c).items():
        t.register_hook(lambda g, name=name: seen.append((name, g)))
    (d * 2 + e.sum() + b.pow(2).sum()).backward()
    seen.sort(key=lambda pair: pair[0])
    return [g for _, g in seen], x.grad, w.grad


@script
def grads_of_a_chain(compile):
    w = rows(5, 5)

    @compile
    def f(x):
        a = (x @ w).sin()
        b = (a @ w).cos()
        return a, b, (a * b).sum()

    x = rows()
    a, b, c = f(x)
    out = torch.autograd.grad(c, [a, b, x, w], retain_graph=True)
    out += torch.autograd.grad(b.sum(), [a], retain_graph=True)
    return out, torch.autograd.grad(b.sum() + a.mean(), [x], retain_graph=True), torch.autograd.grad(a.sum(), [b], allow_unused=True)


@script
def penalty_on_a_result(compile):
    f, w, v = features_and_score(compile)
    x = rows()
    features, score = f(x)
    (g,) = torch.autograd.grad(score.sum(), features, create_graph=True)
    (g.norm() + score.mean()).backward()
    return g, x.grad, w.grad, v.grad


@script
def views_of_a_result(compile):
    @compile
    def f(x):
        y = x.exp()
        return y[0], y.t(), (y * y).sum()

    x = rows()
    first, turned, total = f(x)
    first.retain_grad()
    turned.register_hook(lambda g: g * 3)
    (total + turned.sum() + first.sum()).backward()
    return first.grad, x.grad


@script
def results_die_before_backward(compile):
    f, w, v = features_and_score(compile)
    x = rows()
    score = f(x)[1]
    score.sum().backward()
    features = f(x)[0]
    features.sum().backward()
    return x.grad, w.grad, v.grad


@script
def dropout_between_results(compile):
    @compile
    def f(x):
        y = F.dropout(x * 2, 0.5)
        return y, y.pow(2).sum(), y == 0

    x = rows(20, 20)
    y, z, dropped = f(x)
    y.retain_grad()
    z.backward()
    return torch.equal(y.grad, 2 * y), torch.equal(x.grad != 0, ~dropped)


@script
def backward_twice_is_refused(compile):
    f, w, v = features_and_score(compile)
    features, score = f(rows())
    features.retain_grad()
    score.sum().backward()
    try:
        score.sum().backward()
    except RuntimeError as error:
        return "a second time" in str(error)


@script
def hooks_on_parts_of_one_tensor(compile):
    """Called in the order in which they were set, as those of one operator."""
    out = []
    for way in (lambda x: (x * 2).split(2), lambda x: (x * 2).unbind(), lambda x: x.chunk(3)):
        order = []

        def parts(x):
            made = way(x)
            for i, part in enumerate(made):
                part.register_hook(lambda g, i=i: order.append(i))
            return sum((part * (i + 1)).sum() for i, part in enumerate(made))

        x = torch.randn(6, requires_grad=True)
        compile(parts)(x).backward()
        out += [order, x.grad]

        order = []
        x = torch.randn(6, requires_grad=True)
        made = compile(way)(x)
        for i, part in enumerate(made):
            part.register_hook(lambda g, i=i: order.append((i, g is None)))
        sum((part * (i + 1)).sum() for i, part in enumerate(made) if i != 1).backward()
        out += [order, x.grad]
    return out

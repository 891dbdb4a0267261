"""Tensors that share memory come into a graph from outside, and one of them is written to."""

import torch

from . import edge


def memory(*shape, dtype=torch.float64):
    return (torch.arange(torch.Size(shape).numel()) * 7 % 11 - 4).to(dtype).view(shape)  # integers: sums are exact in every order


def counted(engine, call):
    """What the call gives, and whether it did not break."""
    before = engine.counters()["graph_breaks"] if engine else 0
    return call(), not engine or engine.counters()["graph_breaks"] == before


PARTS = {"a row": lambda a: a[1], "rows": lambda a: a[1:3], "itself": lambda a: a, "detached": lambda a: a.detach(), "data": lambda a: a.data,
         "transposed": lambda a: a.t(), "a column": lambda a: a[:, 1], "every other": lambda a: a[::2, ::3], "an element": lambda a: a[1, 2],
         "flat": lambda a: a.detach().flatten(), "a square": lambda a: a[1:3, 1:3], "a diagonal": lambda a: a.diagonal(), "spread": lambda a: a[:1].expand(3, 5),
         "windows": lambda a: a.unfold(0, 2, 1)}


@edge
def written_through_one_and_read_through_the_other(compile, engine):
    def first(a, b):
        seen = b * 2
        a.mul_(3)
        return seen, a + 1, b - 1, b.sum()

    def second(a, b):
        seen = a.square()
        if b.is_contiguous() or b.dim() == 1:
            b.add_(1)
        a[0, 0] = 7
        return seen, a + b.sum(), b * 2

    out = []
    for whole in (lambda: memory(4, 5), lambda: memory(5, 4).t(), lambda: memory(8, 5)[2:6], lambda: memory(8, 7)[2:6, 1:6]):
        for part in PARTS.values():
            for f in (first, second):
                c = compile(f)
                for _ in range(3):
                    a = whole()
                    b = part(a)
                    if f is second and (b.numel() > a.numel() or 0 in b.stride()):
                        continue
                    out += [c(a, b), a.clone(), a._version, b._version]
    return out


@edge
def one_graph_where_one_lies_in_the_other(compile, engine):
    def f(a, b):
        a.add_(1)
        return a + b.sum(), b * 2

    out, wholly = [], True
    for name, part in PARTS.items():
        c = compile(f)
        for _ in range(3):
            a = memory(4, 5)
            given, captured = counted(engine, lambda: c(a, part(a)))
            wholly &= captured or name in ("itself",)
            out += [given, a.clone()]
    return out, wholly


@edge
def entries_tell_how_memory_is_shared(compile, engine):
    def f(a, b, c):
        a.mul_(2)
        b.add_(c)
        return a.sum(), b * 3, c.clone()

    compiled, out = compile(f), []
    for _ in range(2):
        base = memory(6, 4)
        for a, b, c in ((base[:2], base[2:4], base[4:]), (base[:2], base[:2], base[4:]), (base[:2], base[:2], base[:2]), (base[:2].data, base[1:3], base[1:3]),
                        (memory(2, 4), memory(2, 4), base[4:]), (base[2:4], base[2:4].detach(), base[2:4].data)):
            out += [compiled(a, b, c), base.clone(), a._version, b._version, c._version]
    return out


@edge
def weights_and_what_was_detached_of_them(compile, engine):
    torch.manual_seed(3)
    model, average = torch.nn.Linear(5, 3), torch.nn.Linear(5, 3)
    pairs = [(a.detach(), b.detach()) for a, b in zip(average.parameters(), model.parameters())]
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    data = model.weight.data

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        for a, b in pairs:
            a.mul_(0.9).add_(b, alpha=0.1)
        return loss.detach()

    def forward(x):
        with torch.no_grad():
            data.mul_(1.5)
        return model(x)

    a, b = compile(step), compile(forward)
    out = []
    for k in range(3):
        out.append(a(torch.full((2, 5), 0.1 * k + 0.3)))
        x = torch.ones(2, 5, requires_grad=True)
        y = b(x)
        model.zero_grad()
        y.square().sum().backward()
        out += [y, x.grad, model.weight.grad, model.weight._version, data._version]
    return out + [list(model.parameters()), list(average.parameters())]


@edge
def parameters_of_one_storage_are_stepped(compile, engine):
    a = torch.nn.Parameter(memory(3))
    b = torch.nn.Parameter(a)
    optimizer = torch.optim.Adam([a, b], 0.1)

    def step(x):
        (a * x).sum().backward()
        (b * x * 2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        return a.detach() + b.detach()

    c = compile(step)
    return [c(torch.full((3,), k + 1.0)) for k in range(3)], a, b, a._version, b._version


@edge
def what_is_kept_for_backward_is_what_was_there(compile, engine):
    """Memory that is written to after it was read for backward: eager's error, or eager's gradient where writes are not counted."""
    def f(w, a, b):
        y = (w * b).sum()
        a.add_(1)
        return y

    def g(w, a, b):
        a.add_(1)
        y = (w * b).sum()
        return y, b.view(-1)

    out = []
    for part in (lambda a: a, lambda a: a[0], lambda a: a.detach(), lambda a: a.data, lambda a: a.data[1]):
        for h in (f, g):
            c = compile(h)
            for _ in range(2):
                w, a = memory(5).requires_grad_(), memory(4, 5)
                try:
                    y = c(w, a, part(a))
                    (y if h is f else y[0]).backward()
                    out += [y, w.grad]
                except RuntimeError as e:
                    out.append("modified by an inplace operation" in str(e))
                out.append(a)
    return out


@edge
def results_that_are_views_of_shared_inputs(compile, engine):
    def f(a, b):
        a.mul_(2)
        return a[0], b[1:], b.t(), a.detach(), b

    out = []
    for part in (lambda a: a, lambda a: a[1:3], lambda a: a.detach(), lambda a: a.t()):
        c = compile(f)
        for _ in range(2):
            a = memory(4, 5)
            b = part(a)
            given = c(a, b)
            out += [[t.clone() for t in given], [t._is_view() for t in given], [t.storage_offset() for t in given], given[4] is b]
            a.add_(100)
            out += [[t.clone() for t in given], [t._version for t in given]]
    return out


@edge
def sizes_that_change_with_shared_memory(compile, engine):
    def f(a, b):
        a.add_(b.sum())
        return b * 2, a.sum()

    out = []
    for dynamic in (None, True):
        c = compile(f, dynamic=dynamic)
        for n in (4, 7, 9, 3, 12):
            for part in (lambda a: a.detach(), lambda a: a[1], lambda a: a[: n // 2]):
                a = memory(n, 3)
                out += [c(a, part(a)), a.clone()]
    return out


@edge
def later_writes_are_noticed_by_backward(compile, engine):
    """Of three that share memory two count their writes together; what backward keeps is told of these, and differentiated again by its own history."""
    def three(d, e, x):
        k, y = d.sum(), (x * x).sum()
        with torch.no_grad():
            e.mul_(2)
        return y * k

    def two(a, b):
        with torch.no_grad():
            a.add_(1)
        return (b ** 3).sum()

    def detached(a, b):
        a.add_(1)
        b.mul_(2)
        return b.detach()

    def gradient(y, x):
        try:
            first, = torch.autograd.grad(y, x, create_graph=True)
            return first, torch.autograd.grad(first.sum(), x)
        except RuntimeError as e:
            return "modified by an inplace operation" in str(e)

    c, out = compile(three), []
    for _ in range(2):
        x = memory(4).requires_grad_()
        out.append(gradient(c(x.data, x.detach()[1:], x), x))
    for part in (lambda t: t.detach(), lambda t: t.data):
        c, x = compile(two), memory(4).requires_grad_()
        out.append(gradient(c(part(x), x), x))
    for part in (lambda t: t.data[1], lambda t: t[1], lambda t: t.data):
        a, w = memory(4, 5), memory(5).requires_grad_()
        b = part(a)
        o = compile(detached)(a, b)
        out.append((o._version, b._version, a._version))
        y = (w * b).sum()
        o.zero_()
        out.append(gradient(y, w))
    return out


@edge
def calls_of_two_kinds_have_an_entry_each(compile, engine):
    def f(a, b, c):
        a.add_(1)
        return b + c + a

    compiled, out = compile(f), []
    before = engine.counters()["recompile_limits"] if engine else 0
    for _ in range(12):
        a, b = memory(5), memory(5)
        out += [compiled(a, b, b.detach()), compiled(a, a.detach(), b), a]
    return out, not engine or engine.counters()["recompile_limits"] == before

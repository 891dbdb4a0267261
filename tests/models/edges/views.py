"""What a program can see of views: their bases, and what libtorch refuses to do with them."""

import torch
from torch.nn import functional as F

from . import edge, raised


def views_of(x, y):
    """Views of what a region makes, some of a part of it, some with a history."""
    h = x * 2
    with torch.no_grad():
        unrecorded = (y * 3)[1]
    return [torch.zeros(5)[::2], (y * 2).view(4, 3)[1:].t(), h[1], (y + 1).sum(1)[1:3], torch.matmul(y, y.t()).diagonal(),
            torch.zeros(3, 1).expand(3, 4), torch.view_as_complex(torch.ones(3, 2)), unrecorded, (y * 2).detach(), *(x * 4).unbind(1)[:1],
            torch.rot90(y), (y * 2).reshape(-1), torch.stft(y.flatten(), 4, return_complex=True, center=False, window=torch.ones(4)),
            F.max_pool1d((y * 2).unsqueeze(0), 2), F.linear(y.view(1, 3, 4), y)[0], torch.kron(y, y)[0], (x * 2).detach()[1], y.t().reshape(-1)[1:],
            (y * 2).view(torch.uint8)[:, 1]]


@edge
def bases_of_views_that_leave_a_region(compile, engine):
    def seen(t):
        base = t._base
        of = base is not None and (base.shape, base.stride(), base._version, base.requires_grad, base.is_leaf, base.detach().clone())
        return t._is_view(), t._version, t.is_leaf, t.storage_offset(), t.untyped_storage().nbytes(), of

    def written(views):
        for view in views[:4]:
            with torch.no_grad():
                view.add_(3)
        return views

    def inside(x, y):
        return written(views_of(x, y))

    def before(x, y):
        views = views_of(x, y)
        torch._dynamo.graph_break()
        return written(views), (views[0]._base, views[1]._base, views[2]._base, views[3]._base)

    def callee(x, y):
        views = inside(x, y)
        torch._dynamo.graph_break()
        return views

    def after(x, y):
        views = callee(x, y)
        return views, (views[0]._base, views[1]._base, views[2]._base * 2, views[3]._base)

    def args():
        return torch.arange(1.0, 13).reshape(3, 4).requires_grad_(), torch.arange(1.0, 13).reshape(3, 4)
    out = [[seen(t) for t in compile(inside)(*args())]]
    for f in before, after:
        views, bases = compile(f)(*args())
        out += [[seen(t) for t in views], [b is t._base for b, t in zip(bases, views)], bases]
    return out


@edge
def parts_of_what_another_write_gave_a_history(compile, engine):
    """libtorch refuses writes to a part until its history was asked for."""
    def own(x, y):
        h = y * 2
        a, b = h[0], h[1]
        a.add_(x[0])
        b.add_(1)
        return h

    def asked(x, y):
        h = y * 2
        a, b = h[0], h[1]
        a.add_(x[0])
        c = b * 1
        b.add_(1)
        return h, c

    def given(x, a, b):
        a.add_(x[0])
        b.add_(1)
        return a * 1, b * 1

    def lists(x, a, b):
        torch._foreach_add_([a, b], [x[0], a])
        return a * 1, b * 1
    x = torch.ones(3, 4, requires_grad=True)
    out = [raised(lambda f=f: compile(f)(x, torch.ones(3, 4))) for f in (own, asked)]
    for f in given, lists:
        for parts in (torch.ones(3, 4).unbind()[:2], [torch.ones(3, 4)[0], torch.ones(3, 4)[1]], torch.ones(3, 4).split(1), [(t := torch.ones(3, 4))[0], t[1]]):
            out.append((raised(lambda: compile(f)(x, *parts)), [part.requires_grad for part in parts], [part.detach().clone() for part in parts]))
    return out


@edge
def views_without_a_history_that_were_written(compile, engine):
    def of_a_result(x):
        h = x * 2
        with torch.no_grad():
            part = h[1]
            part.add_(3)
        return part * 2

    def of_a_leaf(x):
        with torch.no_grad():
            part = x[1]
            part.add_(1)
        return part * 2

    def beside(x):
        h = x * 2
        with torch.no_grad():
            part = h[1]
            part.add_(3)
        return h * 2, part.detach() + 1
    return [raised(lambda f=f: compile(f)(torch.ones(2, 3, requires_grad=True))) for f in (of_a_result, of_a_leaf, beside)]


@edge
def writes_with_a_history_to_views_that_left(compile, engine):
    def unrecorded(x):
        with torch.no_grad():
            return x.sin()[1:], x[0]
    programs = (lambda x: x.sin()[:, :4], lambda x: x.sin().chunk(2), lambda x: x.sin().unbind(0)[1].view(2, 4), lambda x: x.sin().split(2)[1][:, 1:],
                lambda x: torch.view_as_complex(x.sin().view(4, 4, 2)).imag, lambda x: (x.t(), *x.split(2)), lambda x: x.sin().data[1:], unrecorded,
                lambda x: x.sum(1, keepdim=True).expand(4, 8), lambda x: x.sin().narrow(1, 2, 3).select(0, 1), lambda x: x.detach()[1:],
                lambda x: x.detach(), lambda x: x.sin().detach())

    def written(t):
        factor = torch.ones(t.shape, requires_grad=True)
        t.mul_(factor)
        t.sum().backward()
        return factor.grad, t.grad_fn is None
    out = []
    for f in programs:
        for rows in (slice(0, 4), slice(2, 6), slice(0, 8, 2)):
            base = torch.linspace(-1, 1, 64).view(8, 8)
            for x in (base[rows], base[rows].clone(), base[rows].clone().requires_grad_() * 1):
                views = compile(f)(x)
                for t in views if isinstance(views, (tuple, list)) else [views]:
                    whole = t._base
                    out += [(t.stride(), t.storage_offset(), t._version, t.is_neg()), raised(written, t), t._version, t.detach().clone()]
                    out.append(whole is not None and (whole is x, whole._version, whole.requires_grad, whole.shape, whole.grad_fn is None, whole.detach().clone()))
    return out


class Turned(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -2 * g


class Halves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x[:2], x[2:]

    @staticmethod
    def backward(ctx, a, b):
        return torch.cat([a, b]) * 3


@edge
def views_that_functions_give_share_memory(compile, engine):
    """A view by an autograd.Function has the function's gradient and the memory of what it is a view of."""
    def whole_and_halves(x):
        y = x * 1
        return (*Halves.apply(y), y)

    def written(x):
        with torch.no_grad():
            x.mul_(3)
        return Halves.apply(x)

    def written_before(x):
        y = x * 1
        y.add_(1)
        return Halves.apply(y)

    def beside_a_part(x):
        y = x * 1
        part = y[:2].detach()
        return part[:1], Turned.apply(y[2:])

    def unnamed(said):
        return said[1].split(" is ")[1:] if isinstance(said, tuple) else said  # "Output 0 of TurnedBackward", whose node is another here

    ways = [Turned.apply, Halves.apply, lambda x: Turned.apply(x)[1:], lambda x: (Turned.apply(x), x[1:]), lambda x: Turned.apply(x * 2), lambda x: Turned.apply(x).t(),
            lambda x: Halves.apply(x * 1), whole_and_halves, lambda x: Halves.apply(x.t()), lambda x: Turned.apply(x[1:].double()).float(), written, written_before, beside_a_part,
            lambda x: [Turned.apply(part) for part in (x * 1).chunk(2)], lambda x: (Turned.apply(x.detach()), Turned.apply(x) * 2)]
    said = []
    for way in ways:
        for dynamic in (False, True):
            step = compile(way, dynamic=dynamic)
            for rows in (4, 6):
                source = torch.arange(rows * 3.0).reshape(rows, 3).requires_grad_()
                x = source.view(rows, 3) * 1
                try:
                    results = step(x)
                    results = [results] if torch.is_tensor(results) else list(results)
                except RuntimeError as error:  # halves of six rows do not fit
                    said.append(str(error))
                    continue
                said.append([r.detach().clone() for r in results])
                said.append([(r.storage_offset(), r.stride(), r.untyped_storage().data_ptr() == x.untyped_storage().data_ptr(), r._is_view()) for r in results])
                said.append([a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() for a in results for b in results])
                said.append(raised(torch.autograd.grad, sum((r * (i + 2)).sum() for i, r in enumerate(results)), source))
                before = [r._version for r in results]
                with torch.no_grad():
                    x.add_(1)
                said.append((before if way is not written else [], [r._version - v for r, v in zip(results, before)]))
                said.append([unnamed(raised(lambda r: r.grad_fn is None, r)) for r in results])
                said.append([r.detach().clone() for r in results])
                said.append([unnamed(raised(lambda r: r.mul_(2).sum(), r)) for r in results])
    return said


@edge
def parts_of_larger_memory_are_written(compile, engine):
    """An input that is a part of a tensor, written to in parts: one graph, and what lies around it stays as it is."""
    def rows_and_columns(x):
        x[:, 1:3] = 1.0
        x[1] += 2
        x[:, 0].mul_(3)
        return x.sum(), x.stride(), x[1:].stride()

    def nested(x):
        y = x[1:]
        y.mul_(2)
        z = y[:, :2]
        z.add_(1)
        return z * 1, y

    def whole(x):
        v = x[:, 1:3]
        x.mul_(2)
        x[:, -1] = 0
        v.zero_()
        return v, x.t() if x.dim() == 2 else x

    def selected(x):
        x.select(0, 1).copy_(x.select(0, 2) + 1)
        x.diagonal(0, 0, 1).fill_(7)
        return x + 1

    def placed(x):
        x[0].zero_()
        return x.storage_offset(), x[1:].storage_offset()

    parts = (((3, 6, 8), lambda b: b[1]), ((3, 6, 8), lambda b: b[1, :, 2:7]), ((3, 6, 8), lambda b: b[:, 1]), ((6, 8), lambda b: b.t()),
             ((4, 6, 8), lambda b: b[::2, 1:5, ::2].transpose(0, 1)), ((6, 8), lambda b: b))
    out, breaks = [], engine.counters()["graph_breaks"] if engine else 0
    for f in (rows_and_columns, nested, whole, selected, placed):
        for shape, part in parts:
            c = compile(f)
            for start in (0.0, 1.0):
                base = torch.arange(start, start + torch.Size(shape).numel()).reshape(shape)
                result = c(part(base))
                for t in result if isinstance(result, tuple) else ():
                    if isinstance(t, torch.Tensor) and t.dim():
                        t.add_(100)  # also seen through the memory that it shares
                out += [result, base]
        if f is selected:
            out.append(not engine or engine.counters()["graph_breaks"] == breaks)
    return out


@edge
def views_that_lie_otherwise_are_written_in_place(compile, engine):
    """What is written lies as before, so that the base has it; gradients go through."""
    one = torch.zeros(1, 1, 1, 1, dtype=torch.long)
    writes = (lambda v: v.masked_fill_(v > 1, 0.0), lambda v: v.masked_scatter_(v > 1, v.new_ones(120)), lambda v: v.scatter_(1, one, 5.0),
              lambda v: v.cumsum_(2), lambda v: v.cumprod_(2), lambda v: v.tril_(), lambda v: v.index_add_(2, torch.tensor([0]), v.new_ones(3, 2, 1, 4)),
              lambda v: v.index_copy_(2, torch.tensor([0]), v.new_ones(3, 2, 1, 4)), lambda v: v.renorm_(2, 1, 1.0), lambda v: v.mul_(3),
              lambda v: v.index_fill_(1, torch.tensor([1]), 2.0), lambda v: v.fill_diagonal_(3.0) if v.dim() == 2 else v.triu_())
    out, breaks = [], engine.counters()["graph_breaks"] if engine else 0
    for write in writes:
        def f(x, write=write):
            base = x * 2
            v = base.view(3, 5, 2, 4).transpose(1, 2)
            write(v)
            return v, base, v.stride(), base.stride()

        c = compile(f)
        x = torch.linspace(-1, 2, 120).reshape(3, 5, 8).requires_grad_()
        v, base, *strides = c(x)
        (v * v).sum().backward()
        out += [v, base, strides, x.grad, c(x.detach())]
    return out, not engine or engine.counters()["graph_breaks"] == breaks


@edge
def products_of_more_dimensions_and_their_parts_are_results(compile, engine):
    """What a linear layer without bias gives is a view in the graph and none to the program."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 6, bias=False).double()
    programs = (lambda z: (z[:, -1], z), lambda z: (z[:, 1:], z.transpose(1, 2), z), lambda z: (z.sum(), z[:, -1], z, z.detach()), lambda z: (z[:, -1].mul_(2), z),
                lambda z: (*z.chunk(2, -1), z), lambda z: (z.view(-1, 6), z), lambda z: (z[:, 0], z[:, 1:], z.detach()[0]))
    products = (layer, lambda x: x @ layer.weight.t(), lambda x: torch.nn.functional.scaled_dot_product_attention(layer(x), layer(x), layer(x)))
    out, before = [], engine.counters()["graph_breaks"] if engine else 0
    for part in programs:
        for product in products:
            c = compile(lambda x, part=part, product=product: part(product(x)))
            for sizes in ((3, 5, 4), (2, 7, 4)):
                layer.weight.grad, x = None, torch.ones(sizes, dtype=torch.float64).mul_(0.5).requires_grad_()
                try:
                    given = c(x)
                    sum((t * (i + 2)).square().sum() for i, t in enumerate(given) if t.requires_grad).backward()
                    out.append([[round(v, 6) for v in t.flatten().tolist()] for t in (*given, x.grad, layer.weight.grad)])
                    with torch.no_grad():
                        given[0].mul_(3)
                    out.append([(t._is_view(), t._base is given[-1], t._version, t.storage_offset(), round(t.sum().item(), 6)) for t in given])
                except RuntimeError as e:
                    out.append(str(e)[:60])
    return out, not engine or engine.counters()["graph_breaks"] == before

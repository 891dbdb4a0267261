"""Blocks of inference mode inside of what is compiled: which tensors are of the mode, what may be done with them afterwards, and what a block leaves behind."""

import functools

import torch

from . import edge, raised


def facts(*tensors):
    """What a person can ask of tensors about the mode, and what libtorch allows with them."""
    out = []
    for t in tensors:
        base = t._base if t._is_view() else None
        out.append((t.tolist(), t.is_inference(), t.requires_grad, t.is_leaf, t._is_view(), None if base is None else list(base.shape)))
        out.append(raised(lambda t=t: t._version))
        w = torch.ones(t.shape, requires_grad=True)
        out.append(raised(lambda t=t, w=w: (t * w).sum().backward() or w.grad.tolist()))
        out.append(raised(lambda t=t: t.clone().mul_(2).tolist()))
    return out


def without_breaks(engine, before):
    return not engine or engine.counters()["graph_breaks"] == before


def breaks(engine):
    return engine.counters()["graph_breaks"] if engine else 0


@edge
def what_a_block_makes_is_of_the_mode(compile, engine):
    before = breaks(engine)

    @compile
    def f(x, w):
        with torch.inference_mode():
            y = x * 2
            rows, turned = y[0], y.t()
            on, off = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
        z = x * w
        return y, rows, turned, z, x[1], on, off, y.is_inference(), z.is_inference(), torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    out = []
    for n in (3, 3, 4):
        x, w = torch.arange(2.0 * n).reshape(2, n), torch.full((n,), 3.0, requires_grad=True)
        y, rows, turned, z, part, *states = f(x, w)
        z.sum().backward()
        out.append((facts(y, rows, turned, part), w.grad.tolist(), z.requires_grad, rows.data_ptr() == y.data_ptr(), states))
    return out, without_breaks(engine, before)


@edge
def functions_of_the_mode(compile, engine):
    before = breaks(engine)

    @torch.inference_mode()
    def decorated(x):
        return torch.relu(x) + 1

    @torch.inference_mode
    def without_call(x):
        return x.exp()

    @torch.inference_mode(False)
    def plain(x):
        return x + 1, torch.is_inference_mode_enabled()

    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.0))
    run = compile(lambda x: (decorated(x), without_call(x), plain(x), net(x)))
    out = []
    for n in (2, 5, 7):
        a, b, (c, on), d = run(torch.arange(4.0 * n).reshape(n, 4).sin())
        (d * d).cos().sum().backward()
        out.append(([t.is_inference() for t in (a, b, c)], facts(c), on, d.requires_grad, [(p.grad * 1e3).round().int().tolist() for p in net.parameters()]))
    whole = compile(decorated)
    out.append(facts(whole(torch.ones(3))))
    return out, net[1].num_batches_tracked.item(), without_breaks(engine, before)


@edge
def a_mode_inside_of_the_other(compile, engine):
    @compile
    def f(x):
        a = x + 1
        with torch.inference_mode(False):
            b = x * 2
            with torch.inference_mode():
                c = b + a
                with torch.enable_grad():
                    on = torch.is_grad_enabled()
        return a, b, c, on

    x = torch.ones(3)
    with torch.inference_mode():
        inside = torch.ones(3)
        first, second = f(x), f(inside)
    out = [facts(*first[:3]), first[3], facts(*second[:3]), second[3], facts(*f(x)[:3])]
    return out


@edge
def views_of_what_was_before(compile, engine):
    @compile
    def f(x):
        with torch.inference_mode():
            row = x[0]
            flat = x.view(-1)
        return row, flat

    out = []
    for grad in (False, True):
        x = torch.ones(2, 3)
        row, flat = f(x)
        out.append((facts(row, flat), raised(lambda: row.mul_(torch.full((3,), 2.0, requires_grad=grad)).tolist()), x.tolist()))
    p = torch.nn.Parameter(torch.ones(2, 3))
    row, flat = f(p)
    out.append((row.requires_grad, flat.is_inference(), raised(lambda: row.add_(1).tolist())))
    return out


@edge
def writes_inside(compile, engine):
    before = breaks(engine)

    @compile
    def f(cache, x, at):
        with torch.inference_mode():
            cache[:, at] = x
            cache.add_(1)
            fresh = torch.zeros(3)
            fresh[at] = 5
            fresh.mul_(2)
        return cache.sum(), fresh

    out = []
    for at in range(3):
        cache = torch.zeros(2, 3)
        total, fresh = f(cache, torch.ones(2), at)
        out.append((total.item(), cache.tolist(), cache._version, facts(fresh)))
    with torch.inference_mode():
        kept = torch.zeros(2, 3)
    out.append((raised(lambda: f(kept, torch.ones(2), 0)[0].tolist()), kept.tolist()))
    leaf = torch.nn.Parameter(torch.zeros(2, 3))
    out.append((raised(lambda: f(leaf, torch.ones(2), 1)[0].tolist()), leaf.tolist()))
    return out, without_breaks(engine, before)


@edge
def refused_afterwards(compile, engine):
    w = torch.ones(3, requires_grad=True)

    @compile
    def saved(x):
        with torch.inference_mode():
            y = x + 1
        return (y * w).sum()

    @compile
    def written(x):
        with torch.inference_mode():
            y = x + 1
        y.add_(1)
        return y

    @compile
    def added(x):
        with torch.inference_mode():
            y = x + 1
        return (y + w).sum()

    out = [raised(lambda: saved(torch.ones(3)).item()), raised(lambda: written(torch.ones(3)).tolist())]
    added(torch.ones(3)).backward()
    with torch.no_grad():
        out.append(raised(lambda: saved(torch.ones(3)).item()))
    return out, w.grad.tolist(), torch.is_inference_mode_enabled(), torch.is_grad_enabled()


@edge
def left_by_exceptions_and_generators(compile, engine):
    def steps(x):
        with torch.inference_mode():
            yield x + 1
            yield x + 2

    @compile
    def f(x, fail):
        seen = []
        try:
            with torch.inference_mode():
                if fail:
                    raise KeyError("out")
                seen.append(torch.is_inference_mode_enabled())
        except KeyError as error:
            seen.append(str(error))
        seen.append(torch.is_inference_mode_enabled())
        made = list(steps(x))
        seen.append(torch.is_inference_mode_enabled())
        return made, seen

    @compile
    def left_open(x):
        generator = steps(x)
        first = next(generator)
        inside = torch.is_inference_mode_enabled()
        generator.close()
        return first, inside, torch.is_inference_mode_enabled()

    out = []
    for fail in (False, True, False):
        made, seen = f(torch.ones(2), fail)
        out.append((facts(*made), seen))
    first, *states = left_open(torch.ones(2))
    out.append((facts(first), states, torch.is_inference_mode_enabled()))
    return out


@edge
def a_break_inside(compile, engine):
    @compile
    def f(x):
        a = x * 2
        with torch.inference_mode():
            b = a + 1
            if b.sum() > 5:
                b = b * 3
            print("inside", torch.is_inference_mode_enabled(), b.is_inference())
            c = b.neg()
        return a, b, c, torch.is_inference_mode_enabled()

    out = []
    for n in (1, 4, 2, 9):
        *made, on = f(torch.ones(n))
        out.append((facts(*made), on))
    return out


class Kept(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.mode = torch.nn.Linear(3, 3), torch.inference_mode()

    def forward(self, x):
        with self.mode:
            target = self.layer(x).softmax(-1)
        target = target.clone()
        return torch.nn.functional.mse_loss(self.layer(x), target)


@edge
def a_block_that_a_module_keeps(compile, engine):
    before = breaks(engine)
    torch.manual_seed(1)
    module = Kept()
    run, optimizer, out = compile(module), torch.optim.SGD(module.parameters(), 0.1), []
    for _ in range(4):
        optimizer.zero_grad()
        loss = run(torch.ones(2, 3))
        loss.backward()
        optimizer.step()
        out.append(round(loss.item(), 5))
    return out, without_breaks(engine, before)


@edge
def a_teacher_in_the_mode(compile, engine):
    before = breaks(engine)
    torch.manual_seed(2)
    teacher, student = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)

    @functools.partial(compile, fullgraph=True)
    def loss(x):
        with torch.inference_mode():
            wanted = teacher(x).argmax(-1)
        return torch.nn.functional.cross_entropy(student(x), wanted.clone())

    out = []
    for n in (3, 5, 6):
        student.zero_grad()
        value = loss(torch.arange(4.0 * n).reshape(n, 4).cos())
        value.backward()
        out.append((round(value.item(), 5), [(p.grad * 1e4).round().tolist() for p in student.parameters()], teacher.weight.grad))
    return out, without_breaks(engine, before)


@edge
def views_of_what_was_written_before(compile, engine):
    @compile
    def f(x):
        t = x.sin()
        v = t[:]
        x.mul_(2)
        t.zero_()
        with torch.inference_mode():
            v.add_(1)
            made = x[0].abs() + v[0]
        t.mul_(3)
        return v, t, made, made.is_inference()

    out = []
    for n in (2, 2, 3):
        x = torch.arange(2.0 * n).reshape(n, 2)
        *made, known = f(x)
        out.append((made, known, x, x._version, facts(made[0], made[2])))
    return out


@edge
def a_tensor_of_the_mode_is_written_outside(compile, engine):
    @compile
    def f(x):
        try:
            x.add_(1)
        except RuntimeError as error:
            return x * 2, str(error)[:25]
        return x * 2, ""

    with torch.inference_mode():
        x, y = torch.ones(3), torch.ones(3)
    out = [f(x), x, f(x), x]
    with torch.inference_mode():
        out += [f(y), y]
    return out, raised(lambda: compile(lambda t: t.mul_(3))(x)), x

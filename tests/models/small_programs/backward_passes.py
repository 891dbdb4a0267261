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
def hooks_that_change_what_is_saved(compile):
    """Every value that a formula reads goes through them, in whatever pass, inside of the compiled function too."""
    ways = (lambda x: (x + 1) * x, lambda x: (x * x).exp(), lambda x: (x.sin() * x).softmax(0),
            lambda x: torch.autograd.grad((x * x).exp().sum(), x, create_graph=True)[0])
    out = []
    for way in ways:
        x = torch.linspace(0.1, 1, 4, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t * 3):
            y = compile(way)(x)
        out += [y.detach(), torch.autograd.grad(y.sum(), x, retain_graph=True)] if way is not ways[3] else [y.detach()]
        if way is not ways[3]:
            out.append([g.detach() for g in torch.autograd.grad(y.sum(), x, create_graph=True)])
    return out


@script
def hooks_that_give_back_what_is_saved(compile):
    """As those do that put it elsewhere in between: gradients can be differentiated."""
    out = []
    for way in (lambda x: (x + 1) * x, lambda x: (x.sin() * x).softmax(0)):
        for pack, unpack in ((lambda t: t.clone(), lambda t: t), (lambda t: (t.dtype, t.double()), lambda kept: kept[1].to(kept[0]))):
            x = torch.linspace(0.1, 1, 4, requires_grad=True)
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                y = compile(way)(x)
            (g,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
            out += [g.detach(), torch.autograd.grad(g.square().sum(), x)]
    return out


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


class Noted(torch.autograd.Function):
    """Says when its backward runs, and what it was given."""
    seen = []

    @staticmethod
    def forward(ctx, x, name):
        ctx.save_for_backward(x)
        ctx.name = name
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Noted.seen.append((ctx.name, g.sum().item()))
        return g * ctx.saved_tensors[0], None


def three_results(y, x, w):
    return y * w, w.exp() * x, x.sin() + y.sum()


@script
def what_lies_behind_an_input_is_met_only_on_its_way(compile):
    """Results that contribute to different inputs: hooks, user's formulas and what is kept ahead of the others stay as they are."""
    f = compile(three_results)
    out = []
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 0, 1)):
        for keep in (False, True):
            Noted.seen.clear()
            x, y, w = leaf(), leaf(), leaf()
            hx, hy = Noted.apply(x, "x"), Noted.apply(y, "y")
            hooked = []
            for name, t in (("hx", hx), ("hy", hy), ("w", w)):
                t.register_hook(lambda g, name=name: hooked.append((name, None if g is None else g.sum().item())))
            results = f(hy, hx, w)
            for position in order:
                out.append(outcome(lambda: results[position].sum().backward(retain_graph=keep)))
                # Which of them ran ahead of an error is the order in which operators were met.
                if out[-1] is None:
                    out.append((sorted(hooked), sorted(Noted.seen), [None if t.grad is None else t.grad.clone() for t in (x, y, w)]))
                hooked.clear()
                Noted.seen.clear()
    return out


@script
def results_together_are_one_pass(compile):
    f = compile(three_results)
    Noted.seen.clear()
    x, y, w = leaf(), leaf(), leaf()
    results = f(Noted.apply(y, "y"), Noted.apply(x, "x"), w)
    (results[0].sum() * 2 + results[1].sum() + results[2].square().sum()).backward()
    first = [t.grad.clone() for t in (x, y, w)], sorted(Noted.seen)
    results = f(y * 1, x * 1, w)
    some = torch.autograd.grad(results[1].sum() + results[2].sum(), [x, w, results[2]], retain_graph=True)
    other = torch.autograd.grad(results[0].sum() + results[2].sum() * 3, [y], retain_graph=True)
    return first, some, other, torch.autograd.grad(results[0].sum(), [x], allow_unused=True)


@script
def results_together_twice_differentiated(compile):
    f = compile(three_results)
    x, y, w = leaf(), leaf(), leaf()
    out = []
    for _ in range(2):
        results = f(y * 1, x * 1, w)
        gradients = torch.autograd.grad(sum(r.square().sum() for r in results), (x, y, w), create_graph=True)
        sum(g.square().sum() for g in gradients).backward()
        out += gradients
    return out, x.grad, y.grad, w.grad


@script
def hooks_on_inner_and_other_results(compile):
    def regional(y, x, w):
        h = y * w
        return h, h.sin() + x, w.exp() * 2

    f = compile(regional)
    seen = []
    for watched in ((), (0,), (0, 1)):
        x, y, w = leaf(), leaf(), leaf()
        results = f(y * 1, x * 1, w)
        for i in watched:
            results[i].register_hook(lambda g: seen.append(g.clone()))
        (results[1].sum() + results[2].sum()).backward(retain_graph=True)
        results[0].sum().backward()
        seen += [x.grad, y.grad, w.grad]
    return seen


@script
def a_long_chain_of_parts_is_freed(compile):
    f = compile(lambda x, y: (x * 1.5, y.sin()))
    x, y = leaf(2), leaf(2)
    a, b = x * 1, y * 1
    for _ in range(3000):
        a, b = f(a, b)
        a, b = b, a * 0.5
    before = a.sum().item()
    del a, b
    return before


@script
def an_undefined_gradient_reaches_nobody(compile):
    """A value that nobody uses, and another: the walk from this one does not call the first one's formula."""
    kept = []

    def f(x, y):
        kept.append(y)
        y = Noted.apply(y, "y")
        for t in [1]:
            y = y + t
        return x * 2 + 1, y

    Noted.seen.clear()
    x, y = leaf(), leaf()
    compile(f)(x * 1, y * 1)[0].sum().backward()
    return x.grad, y.grad, Noted.seen


@script
def counters_move_on_before_backward(compile):
    """Eager keeps what it computed from them. Where it keeps the counter itself, it misses it."""
    step, mean = torch.zeros(()), torch.zeros(5)
    f = compile(lambda x: (x * (1 / (1 + step * 0.5)) * (mean.abs() + 1)).sum() + (x.square() * (step + 1)).mean())
    g = compile(lambda x: (x * mean).sum() + (x * step.view(1)).sum())
    out = []
    for _ in range(3):
        x = leaf(4, 5)
        losses = [f(x), f(x * 2)]
        step.add_(1)
        mean.mul_(0.9).add_(x.detach().mean(0))
        out.append(outcome(lambda: sum(losses).backward()))
        loss = g(x)
        if len(out) > 2:
            step.add_(1)
        out += [outcome(lambda: loss.backward()), x.grad]
    return out


@script
def hooks_on_results_without_a_gradient_are_not_called(compile):
    """The first time and later; torch's own that waits for several results, once the region has seen one."""
    f = compile(lambda x, y: (x.sin() * y, x.cos() + y, x * 3))
    seen = []
    for wanted in ((0,), (1,), (0, 2), (0, 1, 2), ()):
        x, y = leaf(), leaf()
        results = f(x, y)
        if len(seen) > 0:
            torch.autograd.graph.register_multi_grad_hook(results, lambda gs: seen.append([None if g is None else g.sum() for g in gs]))
        handles = [r.register_hook(lambda g, i=i: (seen.append((i, g.sum())), g * (i + 2))[1]) for i, r in enumerate(results)]
        handles[2].remove()
        results[1].retain_grad()
        sum((results[i].sum() for i in wanted), start=x.sum()).backward()
        seen.append((x.grad, y.grad, results[1].grad))
    return seen


@script
def writes_through_data_are_not_counted(compile):
    """Backward reads what lies there by then, and does not complain."""
    weight, buffer = torch.nn.Parameter(torch.ones(4)), torch.ones(4)

    @compile
    def clamped(x):
        loss = (x * weight * buffer).sum()
        weight.data.clamp_(0, 0.25)
        buffer.data.mul_(3)
        return loss

    @compile
    def of_a_result(x):
        y = x * 1
        z = y * y
        y.data.add_(1)
        return z, y

    out = []
    for _ in range(3):
        x, before = leaf(), (weight._version, buffer._version)
        clamped(x).backward()
        out.append((x.grad, weight.grad, weight._version - before[0], buffer._version - before[1]))
        x = leaf()
        z, y = of_a_result(x)
        z.sum().backward()
        out.append((x.grad, y.detach()))
    return out


@script
def empty_vectors_that_cat_passes_over_get_a_gradient(compile):
    f = compile(lambda t: (torch.cat([t, t[:2]]), t.sum(), t * 3))
    out = []
    for position in (0, 1, 2):
        x = leaf(0)
        f(x * 2)[position].sum().backward()
        out.append(x.grad)
    return out


@script
def zeros_that_read_no_gradient(compile):
    """Something leads to the input all the same, so that its gradient is zeros and not None."""
    class Ones(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sign()

        @staticmethod
        def backward(ctx, gradient):
            return torch.ones(3)

    def f(a):
        b = a * 1
        return b, b.repeat(0), b[:0] * 2, b.norm(p=0), torch.cat([b[:0], b.new_ones(2)]), b[torch.zeros(0, dtype=torch.long)], Ones.apply(b)

    out = []
    for position in range(7):
        a = leaf(3)
        results = compile(f)(a)
        out.append(torch.autograd.grad(results[position].sum(), [results[0], a], allow_unused=True, retain_graph=True))
        results[position].sum().backward()
        out.append(a.grad)
    return out


@script
def masks_with_gaps_in_memory_are_kept(compile):
    """Backward reads a copy, which has no gaps, of a mask whose sizes and strides change."""
    out = []
    for f in (lambda x, m: x * m.float(), lambda x, m: torch.addcmul(x, x, m + x * 0, value=0.5)):
        run = compile(f, dynamic=True)
        for rows, columns in ((4, 5), (5, 6), (7, 3)):
            for mask in ((torch.rand(rows, 2 * columns + 1) > 0.5)[:, 1::2], (torch.rand(rows, columns + 1) > 0.5)[:, 1:]):
                x = leaf(rows, columns)
                run(x, mask).sum().backward()
                out.append(x.grad)
    return out


@script
def what_eager_does_not_keep_may_be_written_before_backward(compile):
    """A mask is kept there, or a value in another type, and not the result that it was made of."""
    out = []
    for gate in (lambda y: y > 0, lambda y: y.double()):
        f = compile(lambda x, w: (y := x * 3, (w * gate(y)).sum()))
        for n in (8, 4096):
            if n == 4096 and gate(torch.ones(1)).dtype == torch.float64:
                continue  # a large one that is only cast is kept as it is, and such a write an error
            x, w = leaf(n), leaf(n)
            y, total = f(x, w)
            y.detach().add_(1)
            total.backward()
            out.append((w.grad, x.grad))
    return out


@script
def parts_of_a_changing_number_refuse_writes(compile):
    """What eager refuses writes to is refused them too where it is made anew of its base, after a break or in another process."""
    ways = (lambda x: x.chunk(2)[-1], lambda x: x.chunk(2)[-1][1:], lambda x: x.split([2, x.shape[0] - 2])[0], lambda x: x.unbind(1)[0])
    out = []
    for way in ways:
        def zeroed(x):
            part = way(x * 1)
            part.zero_()
            return part

        f = compile(zeroed, dynamic=True)
        for n in (6, 8):
            try:
                out.append(f(leaf(n, 3)))
            except RuntimeError as error:
                out.append("returns multiple views" in str(error))
    return out


@script
def views_that_a_function_gives_together_refuse_writes(compile):
    class Halves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:2], x[2:]

        @staticmethod
        def backward(ctx, a, b):
            return torch.cat([a, b]) * 3

    def written(x):
        a, b = Halves.apply(x * 1)
        a.mul_(2)
        return a.sum() + b.sum()

    said = []
    for way, write in ((lambda x: Halves.apply(x * 1), True), (Halves.apply, True), (written, False)):
        try:
            result = compile(way)(leaf(4, 1))
            said.append(result[1].mul_(2) if write else result)
        except RuntimeError as error:
            said.append("returns multiple views" in str(error))
    return said


@script
def past_a_zero_no_factor_counts(compile):
    f = compile(lambda x: x.cumprod(0))
    inf, nan = float("inf"), float("nan")
    out = []
    for values in ([0.0, nan, 2.0], [3.0, 0.0, inf, 2.0, 0.0], [2.0, 0.0, 3.0, 4.0, 0.0, nan], [0.0, 0.0, inf], [1.0, 2.0, 0.0, 3.0]):
        x = torch.tensor(values, requires_grad=True)
        f(x).backward(torch.arange(1.0, len(values) + 1))
        out.append(x.grad)
    x = torch.tensor([[0.0], [nan], [2.0]], requires_grad=True)
    compile(lambda x: x.cumprod(1))(x).sum().backward()
    return out, x.grad


@script
def what_is_written_after_it_was_written_inside(compile):
    """An input that the function wrote, and whose new value is kept for backward, is missed where the program writes it again."""
    out = []
    for write in (lambda x: x.tanh_(), lambda x: x.mul_(2).exp_(), lambda x: x[1:].sigmoid_(), lambda x: x.mul_(x.detach())):
        f = compile(write)
        for again in (lambda x: x, lambda x: x.select(0, 0).fill_(1), lambda x: x.add_(1)):
            source = leaf(4, 5)
            x = source * 1
            f(x)
            again(x)
            out += [outcome(lambda: x.sum().backward()), source.grad, x._version]
    mean = torch.zeros(5)

    @compile
    def centred(x):
        with torch.no_grad():
            mean.mul_(0.9).add_(x.mean(0))
        return ((x - mean) * mean).sum()

    x = leaf(4, 5)
    losses = [centred(x), centred(x)]
    out += [outcome(lambda: losses[1].backward()), outcome(lambda: losses[0].backward()), x.grad, mean]
    return out


@script
def infinite_gradients_reach_only_what_was_selected(compile):
    """The others get zero, not zero times them; products of what is infinite, no number or several zeros have eager's gradients."""
    inf, nan = float("inf"), float("nan")

    def pair(f, values, grad, again):
        x = torch.tensor(values, requires_grad=True)
        y = f(x)
        g, = torch.autograd.grad(y, x, torch.full_like(y, grad), create_graph=again)
        return [g, torch.autograd.grad(g.sum(), x)[0]] if again else [g]

    out = []
    for f in (torch.min, torch.max, torch.median, torch.nanmedian, lambda x: torch.func.grad(torch.max)(x) * x):
        g = compile(f)
        for values in ([3.0, 1.0, 2.0, 1.0], [nan, 1.0, 2.0], [inf, inf, -inf]):
            out += [pair(g, values, grad, False) for grad in (1.0, nan, inf)]
    for f in (torch.prod, lambda x: torch.stack([x, x * 2]).prod(1, keepdim=True), lambda x: x[None].prod(0), lambda x: x.half().prod(dtype=torch.float32)):
        g = compile(f)
        for values in ([2.0, 3.0, 4.0], [nan, 0.0, 0.0, 2.0], [0.0, nan, 2.0], [inf, 2.0], [1e4, 3e4, 1e-3], [inf, 0.0, 3.0], [0.0, 0.0, 4.0]):
            out += [pair(g, values, grad, False) for grad in (1.0, inf)]
    for values in ([2.0, 4.0, 8.0], [0.0, 0.0, 4.0], [0.0, 3.0, 4.0]):
        out += pair(compile(torch.prod), values, 1.0, True)
    return out


@script
def products_of_zeros_are_differentiated_twice(compile):
    out = []
    for f in (lambda x: x.cumprod(0), lambda x: x.prod(), lambda x: torch.autograd.grad(x.cumprod(0).sum(), x, create_graph=True)[0],
              lambda x: torch.autograd.grad(x.prod(), x, create_graph=True)[0]):
        f = compile(f)
        for values in ([2.0, 0.0, 4.0, 8.0], [0.0, 0.0, 4.0], [0.0, 4.0, 0.0, 2.0], [0.0, 2.0, 4.0], [2.0, 4.0, 8.0]):
            x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
            once, = torch.autograd.grad(f(x).sum(), x, create_graph=True)
            out += [once.detach(), torch.autograd.grad((once * torch.arange(1, len(values) + 1)).sum(), x)[0]]
    return out


@script
def compiled_inside_a_gradient(compile):
    """A backward that wants the gradients of some tensors only meets compiled functions, and is differentiated again."""

    def slope(g, x, y):
        return g * 2 * y / x

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x ** 2
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            return inside(g, *ctx.saved_tensors)

    inside = compile(slope)
    hooked = compile(lambda g: g.sin() * g)

    def differentiate(x, g0):
        (first,) = torch.autograd.grad(Square.apply(x), x, g0, create_graph=True)
        own = torch.autograd.grad(first.sum(), (x, g0))
        z = x.exp()
        z.register_hook(hooked)
        (first,) = torch.autograd.grad((z * g0).sum(), x, create_graph=True)
        return own, torch.autograd.grad(first.sum(), (x, g0))

    return [differentiate(torch.rand(4).add(1).requires_grad_(), torch.randn(4, requires_grad=True)) for _ in range(3)]


@script
def functions_and_hooks_that_eager_refuses(compile):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

        @staticmethod
        def vjp(ctx, g):
            return g

    hooks, forbidden = torch.autograd.graph.saved_tensors_hooks, torch.autograd.graph.disable_saved_tensors_hooks

    def both(x):
        Both.apply(x).sum().backward()

    def hooks_forbidden(x):
        with hooks(lambda t: t, lambda t: t):
            with forbidden("not here"):
                return x * 2

    def forbidden_hooks(x):
        with forbidden("not here"):
            with hooks(lambda t: t, lambda t: t):
                return x * 2

    def transform(x):
        with hooks(lambda t: t, lambda t: t):
            return torch.func.grad(lambda x: x.sin().sum())(x)

    said = []
    for f in (both, hooks_forbidden, forbidden_hooks, transform):
        try:
            said.append(compile(f)(torch.randn(4, requires_grad=True)))
        except RuntimeError as error:
            said.append(str(error)[:60])
    return said


@script
def gradients_for_several_at_once(compile):
    def f(x, w):
        y = (x @ w).softmax(-1)
        return y, y.detach() * x.sum() + w.exp().sum(0)

    run, out = compile(f), []
    for n in (3, 4):
        x, w = torch.randn(n, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)
        y, z = run(x, w)
        given = torch.randn(5, n, 3)
        out += torch.autograd.grad(y, (x, w), given, retain_graph=True, is_grads_batched=True)
        first = torch.autograd.grad(y, (x, w), given, create_graph=True, is_grads_batched=True)
        out += [*first, *torch.autograd.grad(sum(g.square().sum() for g in first), (x, w))]
        if n == 3:
            out += torch.func.vmap(lambda v: torch.autograd.grad(z, (x, w), v))(torch.randn(2, n, 3))
    row = torch.ones(3, requires_grad=True)
    out += [torch.autograd.functional.jacobian(compile(lambda x: (x.sin() * x.sum()).exp()), row, vectorize=True)]
    return out

"""What a program can see of a tensor besides its values."""

import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from . import edge, raised


def noting(heard, heeds=lambda func, args: func.__name__):
    """A class of tensors that puts down in a list what it hears of each call."""
    class Noting(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            heard.append(heeds(func, args))
            return super().__torch_function__(func, types, args, kwargs or {})

    return Noting


@edge
def storage_offset_is_seen(compile, engine):
    base = torch.arange(10.0)
    f, g = compile(lambda x: torch.as_strided(x, (2,), (1,), 1) * 2), compile(lambda x: x * 0 + x.storage_offset())
    h = compile(lambda x: x.as_strided((4,), (1,), 0) + 1)
    return ([f(base[a:b]) for a, b in ((0, 4), (4, 8), (2, 6))], [g(base[a:b]) for a, b in ((0, 2), (4, 6))],
            [h(base[a:b]) for a, b in ((0, 4), (2, 6))])


@edge
def length_of_a_tensor_whose_class_answers(compile, engine):
    """Its class hears of each len() once, in every call."""
    heard = []
    Noting = noting(heard)
    f = compile(lambda x: len(x) + 1)
    x = torch.ones(3, 2).as_subclass(Noting)
    out = [f(x), f(x), f(torch.ones(4)), f(x)]
    return out + [f(torch.ones(n, 2).as_subclass(Noting)) for n in (4, 5, 6)], heard


@edge
def operators_between_a_changing_number_and_a_tensor_whose_class_answers(compile, engine):
    """Its class hears of each operator once, with the number, in every call; also where the number is a symbol."""
    heard = []
    Noting = noting(heard, lambda func, args: (func.__name__, *args[1:]))
    fs = [compile(f) for f in (lambda x, i: x + i, lambda x, i: (i + 1) * x, lambda x, i: x < i, lambda x, i: x * sum([i, 0.5]) / (i * 0.25))]
    kinds = [type(f(torch.ones(2).as_subclass(Noting), i)) is Noting for f in fs for i in (3, 4, 5, 6)]

    @compile
    def refuses(x):
        if (x < 0).any():
            raise ValueError("below zero")
        return x * 2
    refuses(torch.ones(2).as_subclass(Noting))
    numbers = [1.0, 2.0]

    @compile
    def computed(x):
        numbers.append(numbers[-1] + 1)
        return x * sum(numbers) / len(numbers)
    return kinds, [type(computed(torch.ones(2).as_subclass(Noting))) is Noting for _ in range(4)], heard


@edge
def errors_of_operators_on_tensors_of_a_class(compile, engine):
    """They are the operators' own, and the program may catch them."""
    def caught(x):
        try:
            return x.view(7)
        except RuntimeError as error:
            return x + len(str(error))

    told = []
    for _ in range(3):
        class Own(torch.Tensor):
            pass
        for f in (lambda x: x.t(), lambda x: x.unfold(0, 9, 1), caught):
            f = compile(f)
            told += [raised(f, x) for x in (torch.ones(2, 2, 2).as_subclass(Own), torch.ones(2, 2, 2))]
    return told


@edge
def views_of_tensors_of_inference_mode(compile, engine):
    """They are tensors of inference mode; a write outside of it raises after it has written, once."""
    def written(x):
        part = x[0]
        part.mul_(2)
        return x + 1

    def lists(xs):
        torch._foreach_add_([x[0] for x in xs], 1.0)

    with torch.inference_mode():
        a, b = torch.ones(2, 2) * 3, torch.ones(2, 2)
    told = []
    for _ in range(2):
        told += [raised(compile(written), a), a[0, 0].item(), compile(lambda x: x[0].is_inference())(a), raised(compile(lists), [a, b]), b[0, 0].item()]
        with torch.inference_mode():
            told += [compile(written)(a), compile(lambda x: x[0].is_inference())(torch.ones(2, 2)), compile(lists)([a, b]), b[0, 0].item()]
    return told


@edge
def lists_with_a_tensor_that_is_there_twice(compile, engine):
    """Operators over lists write one tensor after another, and the next sees it."""
    def within(xs, numbers):
        torch._foreach_sqrt_(xs)
        torch._foreach_mul_(xs, [2.0, 3.0, 4.0])
        torch._foreach_addcdiv_(xs, xs, [x + 1 for x in xs], numbers)
        return [x * 1 for x in xs]

    def between(xs, ys):
        torch._foreach_add_(xs, ys)
        return [x * 1 for x in xs]

    told, numbers = [], torch.tensor([1.0, 2.0, 3.0])
    for dynamic in (None, True):
        f, g = (compile(fn, dynamic=dynamic) for fn in (within, between))
        for order in ((0, 1, 2), (0, 0, 1), (2, 1, 2)):
            base = torch.arange(1.0, 13).reshape(3, 4)
            rows = [base[i] for i in range(3)]
            xs = [rows[i] for i in order]
            told += [f(xs, numbers), base.clone(), g(xs[:2], [xs[1], xs[0]]), base]
            told.append(raised(g, [torch.ones(4), xs[1]], [xs[1]]))
            told.append(raised(g, xs[:2], [xs[1].clone().requires_grad_(), xs[0]]))
    return told


@edge
def parts_of_a_memory_are_written_and_restrided(compile, engine):
    """Where an input, or a view of it, begins in its memory afterwards, and how often it was written."""
    def transposed(x):
        y = x[-1:]
        x.zero_()
        x.t_()
        return x + 0, y

    def viewed(x):
        y = x.t()
        x.mul_(2)
        x.unsqueeze_(0)
        x.squeeze_(0)
        y.add_(1)
        return y, x[1:]

    def counted(x):
        y = x.as_strided((2,), (1,), 12)
        x.add_(1)
        return y + 0, x.as_strided((2,), (1,), 14) + 0

    def moved(x):
        x.as_strided_((2,), (1,), 14)
        x.mul_(2)
        return x + 0

    def squeezed(x):
        x.squeeze_()
        return x.sum()

    told = []
    for f in (transposed, viewed, counted, moved, squeezed):
        for dynamic in (False, True):
            g = compile(f, dynamic=dynamic)
            for part in (lambda m: m[2:6], lambda m: m[2:6, ::2], lambda m: m.t()[1:3], lambda m: m[3:4], lambda m: m):
                memory = torch.arange(40.0).view(8, 5)
                x = part(memory)
                told += [g(x), memory, x.shape, x.stride(), x.storage_offset(), x._version]
    return told


@edge
def strides_of_results_of_several_types(compile, engine):
    """The CPU converts in copies, which have no gaps; elements that are turned round lie as they lay."""
    overlapping = torch.arange(16).as_strided((9, 7), (1, 1))
    apart, column = torch.ones(7, 2, 9, dtype=torch.bool).permute(2, 1, 0)[:, 1], torch.arange(27).view(9, 3)[:, :1]
    row = torch.arange(14.0).as_strided((1, 7), (1, 2))

    def f(x, y):
        return x + y, x / 2, torch.atan2(x, y), x.lt(y), torch.where(y > 1, x, y), torch.add(x, y, out=torch.empty(0)), x.sin(), x.flip(0, 1), y.flip(1)

    return [t.stride() for dynamic in (False, True) for pair in ((overlapping, apart.double()), (overlapping, apart.t().contiguous().t().double()), (column, row), (row, column))
            for t in compile(f, dynamic=dynamic)(*pair)]


@edge
def types_that_an_operator_lacks(compile, engine):
    truth, numbers = torch.tensor([True, False, True]), torch.arange(8)[None]
    told = [raised(compile(f), truth) for f in (lambda x: 1 - x, lambda x: True - x, lambda x: torch.rsub(x, 0.5), lambda x: torch.rsub(x, torch.ones(3)))]
    for dtype in (torch.uint8, torch.int64, torch.float16):
        told += [raised(compile(lambda x: F.max_pool1d(x, 2)), numbers.to(dtype)), raised(compile(lambda x: 3 - x), numbers.to(dtype))]
    return told


@edge
def a_bias_does_not_widen_the_product(compile, engine):
    cases = [((4,), (4,), (2, 4)), ((4,), (3, 4), (2, 3)), ((2, 2, 4), (3, 4), (2, 2, 2, 3)), ((2, 1, 2, 4), (3, 4), (2, 2, 3)), ((2, 2, 4), (3, 4), (2, 3))]
    return [raised(compile(F.linear), *(torch.ones(sizes) for sizes in case)) for case in cases]


@edge
def strides_of_what_has_length_one(compile, engine):
    convolved, activated = torch.nn.Conv1d(6, 5, 3, padding=1), torch.nn.PReLU()

    def f(x):
        y = convolved(x.transpose(1, 2))
        return y.stride(), y.transpose(1, 2)[0], activated(x.transpose(0, 1)), activated(x.transpose(0, 1)).stride()

    return [compile(f, dynamic=dynamic)(torch.ones(n, length, 6)) for dynamic in (False, True) for n, length in ((1, 1), (1, 3), (2, 1), (2, 4))]


@edge
def as_strided_does_not_leave_the_storage(compile, engine):
    big = torch.arange(1000.0)
    f, g = compile(lambda x: torch.as_strided(x, (2,), (1,), 1) * 2), compile(lambda x: x.as_strided((8,), (1,), 0) + 1)
    out = [f(big[600:604]), f(torch.arange(4.0)), f(big[0:4])]
    return out + [g(big[:4]), raised(g, torch.arange(4.0))[0]]


@edge
def views_of_inputs_say_so(compile, engine):
    view, leaf = torch.arange(4.0)[1:3], torch.ones(2, requires_grad=True)
    parts, kept, hooked = torch.stack([leaf, leaf]).unbind(0), leaf * 2, leaf * 2
    kept.retain_grad()
    hooked.register_hook(lambda g: g)
    fs = [(lambda x: x._is_view(), view), (lambda x: x._base is not None, view), (lambda x: x.output_nr, parts[1]),
          (lambda x: x.retains_grad, kept),
          (lambda x: bool(x._backward_hooks), hooked), (lambda x: x.grad_fn is not None, hooked), (lambda x: x.is_leaf, hooked),
          (lambda x: x.grad is None, leaf), (lambda x: x._version, leaf), (lambda x: x.is_inference(), view),
          (lambda x: x.is_pinned(), view)]
    out = []
    for f, t in fs:
        c = compile(f)
        out += [c(t), c(torch.ones(2)), c(t)]
    return out


@edge
def histories_made_inside_are_eagers(compile, engine):
    leaf, breaks = torch.ones(3, requires_grad=True), engine.counters()["graph_breaks"] if engine else 0

    def f(x):
        y, z = x * 2, (x @ x).sin()
        return x + 1 if y.grad_fn is None else x + 2, type(y.grad_fn).__name__, z.grad_fn.name() if z.requires_grad else "", y.detach().grad_fn is None

    out = [compile(f)(leaf), compile(f)(leaf.detach())]
    return out, not engine or engine.counters()["graph_breaks"] == breaks


@edge
def counts_of_writes_are_eagers(compile, engine):
    breaks = engine.counters()["graph_breaks"] if engine else 0

    def f(x):
        before, y = x._version, x * 2
        x.add_(1)
        y.mul_(2).add_(1)
        return before, x._version, y._version, y if y._version == 2 else x

    c, x = compile(f), torch.ones(3)
    out = [c(x), c(x), c(torch.ones(3)), x._version]
    return out, not engine or engine.counters()["graph_breaks"] == breaks


@edge
def views_of_one_call_are_refused_where_they_are_used(compile, engine):
    """The base was written since: what lies between the write and the use still happens."""
    said = []

    def f(x):
        y = x * 1
        a, b = y.unbind(0)
        y.add_(1)
        said.append("written")
        return a * 2 + b

    def g(x, rows):
        said.append("before")
        return x + rows[0]

    base = torch.ones(2, 3, requires_grad=True) * 1
    rows = base.unbind(0)
    c, out = compile(g), []
    out.append(c(base, [r.clone() for r in rows]))
    base.add_(1)
    return out, [raised(compile(f), torch.ones(2, 3, requires_grad=True)) for _ in range(2)], raised(c, base, rows), said


@edge
def attributes_put_on_tensors(compile, engine):
    t = torch.ones(2)
    t.scale = 2.0
    f, g = compile(lambda x: x * x.scale), compile(lambda x: hasattr(x, "other"))
    out = [f(t), g(t)]
    t.scale, t.other = 3.0, 1
    return out + [f(t), g(t), g(torch.ones(2))]


@edge
def same_tensor_and_overlapping_tensors(compile, engine):
    def f(a, b):
        a.add_(1)
        return a * b, a is b

    def g(a, b):
        a.mul_(2)
        b.add_(a)
        return a + b

    c, d, base = compile(f), compile(g), torch.ones(6)
    x = torch.ones(3)
    out = [c(torch.ones(3), x), c(x, x), c(x, x.view(3)), c(base[:3], base[3:]), raised(c, base[:3], base[1:4]), c(torch.ones(3), x)]
    return out, [raised(d, base[:4], base[2:]), d(torch.ones(4), torch.ones(4)), raised(d, base[:4], base[:4])], base


@edge
def results_that_are_inputs_or_views(compile, engine):
    def f(x):
        return x, x.view(-1), x[0], x.detach(), x.t().t(), x + 0

    c = compile(f)
    out = []
    for x in (torch.ones(2, 2), torch.ones(3, 3), torch.ones(2, 2)):
        r = c(x)
        out.append([r[0] is x] + [v.data_ptr() == x.data_ptr() for v in r] + [v._base is x for v in r])
    return out


@edge
def gradients_appear_and_vanish(compile, engine):
    w = torch.ones(2, requires_grad=True)
    f = compile(lambda x: x + w.grad if w.grad is not None else x)
    out, x = [f(torch.ones(2))], torch.ones(2)
    w.sum().backward()
    out.append(f(x))
    w.grad.mul_(3)
    out.append(f(x))
    w.grad = None
    return out + [f(x)]


@edge
def data_and_requires_grad_are_replaced(compile, engine):
    w = torch.nn.Parameter(torch.ones(2))
    f, x = compile(lambda x: (x * w).sum()), torch.ones(2)
    out = [f(x), f(x).requires_grad]
    w.data = torch.full((2,), 3.0)
    out.append(f(x))
    w.data = torch.full((2,), 4.0, dtype=torch.float64)
    out.append(f(x))
    w.requires_grad_(False)
    return out + [f(x), f(x).requires_grad]


@edge
def other_tensors_than_dense_ones(compile, engine):
    f, dense = compile(lambda x: x * 2), torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    out = [f(dense)]
    for x in (dense.to_sparse(), dense.to_sparse_csr(), torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
              dense.to(torch.complex64).conj(),
              torch.ones(2, 2, names=("a", "b")), dense.to("meta"), dense.to_mkldnn(),
              torch.nested.nested_tensor([torch.ones(1)], layout=torch.jagged)):
        y = f(x)
        out.append((type(y).__name__, str(y.layout), y.device.type, y.is_conj(), y.is_nested))
    return out + [f(dense)]


@edge
def checkpoint_recomputes(compile, engine):
    linear, runs = torch.nn.Linear(2, 2), []

    class Counted(torch.nn.Module):
        def forward(self, x):
            runs.append(1)
            return x.sin().sin()

    counted, x = Counted(), torch.ones(1, 2)
    f = compile(lambda x: checkpoint(linear, x, use_reentrant=True))
    out = [f(x).requires_grad]
    g = compile(lambda x: checkpoint(counted, x, use_reentrant=False).sum())
    x.requires_grad_()
    g(x).backward()
    return out, len(runs)


@edge
def what_is_written_in_place_lies_as_it_lay(compile, engine):
    """A tensor with gaps keeps its strides through every kind of write, and what asks for its memory order gets that answer."""
    ones = lambda x, *sizes: torch.ones(sizes, dtype=x.dtype)
    column = lambda x: torch.zeros(1, x.shape[1], dtype=torch.int64)
    writes = [lambda x: x.add_(1), lambda x: x.copy_(x + 1), lambda x: x.masked_fill_(x < 5, 0.25), lambda x: x.cumsum_(0), lambda x: x.tril_(),
              lambda x: x.index_add_(0, torch.tensor([0]), ones(x, 1, x.shape[1])), lambda x: x.scatter_(0, column(x), 1.0),
              lambda x: x.index_put_((torch.tensor([0]),), torch.tensor(1.0)), lambda x: x.clamp_(0, 9), lambda x: torch.add(x, 1, out=x),
              lambda x: x.__setitem__(x > 7, 1.0), lambda x: x[:1].fill_(3), lambda x: x.diagonal().zero_()]
    layouts = [lambda t: t[1:, 2:5], lambda t: t[:, ::2], lambda t: t.t()[1:4], lambda t: t.t(), lambda t: t]
    out = []
    for write in writes:
        def asked(x):
            write(x)
            y = x.contiguous()
            return x.stride(), x.is_contiguous(), y is x, y.stride(), x * 2, raised(lambda: x.view(-1).shape)
        f = compile(asked)
        for layout in layouts:
            x = layout(torch.arange(24.0).view(4, 6))
            out.append((f(x), x, x.stride()))
    return out


@edge
def views_of_what_a_function_returns(compile, engine):
    """They share its memory, so that writes through them are seen."""
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def returned(x):
        y = Double.apply(x)
        return y, y[0], y.view(-1)

    def written(x):
        y = Double.apply(x)
        first = y[0]
        torch._dynamo.graph_break()
        first.mul_(3)
        return y

    out = []
    for f in (compile(returned), compile(written)):
        x = torch.ones(2, 3, requires_grad=True)
        results = f(x)
        results = results if isinstance(results, tuple) else (results,)
        sum((t * (i + 1)).sum() for i, t in enumerate(results)).backward()
        out.append(([t.detach() for t in results], [t._base is results[0] for t in results], x.grad))
    return out


@edge
def parts_of_what_is_computed_begin_where_eagers_do(compile, engine):
    """In their storage, also where they are computed by themselves; of constant sizes and of others."""
    parts = [lambda x: (x + 1).as_strided((2, 2), (1, 2), 1), lambda x: (x + 1)[1:].as_strided((2, x.shape[1] - 2), (1, 2)),
             lambda x: (x + 1)[1:].view(torch.int32), lambda x: (x + 1)[2:].view(torch.int16), lambda x: (x + 1)[1:].unflatten(1, (2, -1)),
             lambda x: F.glu(x, 1)[1:], lambda x: (x * x.shape[0])[x.shape[0] // 2:, 1:].view(torch.int32), lambda x: ((x + 1)[:0].view(torch.int32), x[1:].sum())]
    out = []
    for f in parts:
        for dynamic in (None, True):
            c = compile(f, dynamic=dynamic)
            for n in (2, 3, 5):
                given = torch.arange(float((n + 3) * 2 * n)).view(n + 3, 2 * n).requires_grad_(n == 3)
                results = c(given)
                out += [(t.detach().double().sum().round(), t.shape, t.stride(), t.storage_offset()) for t in (results if isinstance(results, tuple) else (results,))]
    return out


@edge
def views_made_without_gradients_refuse_writes(compile, engine):
    """That have a gradient: inside, in front of a break, and where the program got them; others have the history that they have in eager."""
    def written(x, b):
        with torch.no_grad():
            view = b.view(-1)
        view.mul_(x.view(-1))
        return b * 1

    def computed(x, b):
        b = b + 0
        with torch.no_grad():
            view = b[0]
        print("break")
        view.mul_(x[0])
        return b * 1

    def late(x, b):
        y = b.clone()
        with torch.no_grad():
            view = y[0]
        y.requires_grad_()
        view.add_(1)
        return y * 1

    def beside(x, b):
        y = x * 2
        with torch.no_grad():
            view = y[0]
        return y, y[1], view, b[0]

    out = []
    for f in (written, computed, late):
        c = compile(f)
        for _ in range(2):
            x, b = torch.arange(4.0).view(2, 2).requires_grad_(), torch.ones(2, 2)
            out += [raised(c, x, b), b.detach().clone(), b._version]
    c = compile(beside)
    for write in (lambda y, s, v, b: s.add_(1), lambda y, s, v, b: v.add_(1), lambda y, s, v, b: b.add_(s), lambda y, s, v, b: b.add_(1)):
        results = c(torch.arange(4.0).view(2, 2).requires_grad_(), torch.ones(2, 2))
        out += [[t.requires_grad for t in results], results[1].grad_fn is not None, results[2].grad_fn is None, raised(write, *results)]
    return out


@edge
def views_by_functions_refuse_writes(compile, engine):
    class Flat(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t.view(-1)

        @staticmethod
        def backward(ctx, g):
            return g.view(2, 2)

    def inside(x):
        flat = Flat.apply(x)
        flat.add_(1)
        return flat

    out = []
    for f in (inside, lambda x: Flat.apply(x).add_(1), Flat.apply):
        c = compile(f)
        for made in (lambda: torch.ones(2, 2, requires_grad=True), lambda: torch.ones(2, 2, requires_grad=True) * 2, lambda: torch.ones(2, 2)):
            result = raised(lambda: c(made()).add_(1))
            out.append(result if isinstance(result, torch.Tensor) else result[0])
    return out


@edge
def functions_that_return_their_argument_under_a_mode(compile, engine):
    """PyTorch makes a view of it, of which a function mode or the tensor's class hears."""
    heard = []

    class Hearing(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            heard.append(func.__name__)
            return func(*args, **(kwargs or {}))

    Noting = noting(heard)

    model = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU())
    model[1].register_full_backward_hook(lambda module, gradients, outer: None)
    f, told = compile(model), []
    for x in (torch.ones(2, requires_grad=True), torch.ones(2).as_subclass(Noting).requires_grad_()):
        told.append(f(x))
        with Hearing():
            told.append(f(x))
    return told, heard


@edge
def attributes_of_tensors_of_a_class_are_written(compile, engine):
    """The class hears of it, and it is done."""
    heard = []
    Noting = noting(heard)

    def tracked(x):
        x.requires_grad = True
        return x * 2

    def given(x):
        x.grad = torch.ones(2)
        return x * 2

    def emptied(x):
        x.data = torch.zeros(0)
        return x + 1

    told = []
    for f in map(compile, (tracked, given, emptied)):
        for _ in range(2):
            x = torch.ones(2).as_subclass(Noting)
            told.append(f(x))
            heard_so_far = list(heard)
            with torch._C.DisableTorchFunctionSubclass():
                told += [heard_so_far, x.requires_grad, x.grad is None, tuple(x.shape)]
    return told


@edge
def operators_with_equals_do_not_ask_those_without(compile, engine):
    """Whatever the program has made of Tensor.__add__: a += b is the tensor's own."""
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, held):
            made = torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)
            made.held = held
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args, kwargs=None):
            asked.append(str(func))
            func(*(a.held if isinstance(a, Wrapper) else a for a in args), **kwargs or {})
            return args[0]

    def changed(a, b):
        a += b
        a *= 3
        return b * 2

    asked, out, own = [], [], (torch.Tensor.__add__, torch.Tensor.__mul__)
    c = compile(changed)
    for replaced in (own, (lambda a, b: a - b, lambda a, b: a / b), own):
        torch.Tensor.__add__, torch.Tensor.__mul__ = replaced
        try:
            for a in (torch.ones(2), Wrapper(torch.ones(2)), noting(asked)(torch.ones(2))):
                out += [c(a, torch.ones(2)), getattr(a, "held", a).detach().tolist(), list(asked)]
                asked.clear()
        finally:
            torch.Tensor.__add__, torch.Tensor.__mul__ = own
    return out


@edge
def written_tensors_of_a_class_keep_their_hooks_to_themselves(compile, engine):
    heard, out = [], []
    Noting = noting(heard)

    def changed(a, b):
        a += b
        a.mul_(b)
        return b * 2

    c = compile(changed)
    for _ in range(2):
        for a in ((torch.ones(2, requires_grad=True) * 1).as_subclass(Noting), torch.ones(2).as_subclass(Noting)):
            for b in (torch.ones(2), torch.ones(2).as_subclass(Noting)):
                heard.clear()
                out += [c(a, b), list(heard)]
    return out


@edge
def scripted_functions_ask_torch_alone(compile, engine):
    heard, out = [], []
    Noting = noting(heard)

    @torch.jit.script
    def scripted(x):
        return x + x * 2

    traced, own = torch.jit.trace(lambda x: x + 1, torch.ones(2)), torch.Tensor.__add__
    c = compile(lambda x: (scripted(x), traced(x)))
    for replaced in (own, lambda a, b: a * b, own):
        torch.Tensor.__add__ = replaced
        try:
            for x in (torch.ones(2), torch.ones(2).as_subclass(Noting)):
                out += [[(type(t).__name__, t.as_subclass(torch.Tensor).tolist()) for t in c(x)], list(heard)]
                heard.clear()
        finally:
            torch.Tensor.__add__ = own
    return out


@edge
def counts_of_writes_are_read_without_asking_a_class(compile, engine):
    """A check of an entry made for plain tensors asks the class of another nothing."""
    heard = []
    Noting, f = noting(heard), compile(lambda x: x._version + x.add_(1)._version)
    return [f(x) for x in (torch.ones(2), torch.ones(2).as_subclass(Noting), torch.ones(2).as_subclass(Noting), torch.ones(2))], heard


@edge
def a_number_of_the_trace_comes_second_to_a_tensor_whose_class_answers(compile, engine):
    heard = []
    Noting = noting(heard, lambda func, args: (func.__name__, *(type(a).__name__ for a in args)))
    f = compile(lambda x, n: (n + 1 + x, n * x, x - n))
    return [f(torch.ones(2).as_subclass(Noting), n) for n in (3, 4.0, 4.5, 5.5, 6)], heard


@edge
def wrappers_hear_of_operators_below_autograd(compile, engine):
    """There is no history there, and memory is read as it lies: what a wrapper keeps in a slot included."""
    class Slotted(torch.Tensor):
        __slots__ = ["inner"]

        def __new__(cls, inner):
            made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            return cls(function(*(a.inner if isinstance(a, cls) else a for a in args), **kwargs or {}))

    def wrapped(x):
        return (Slotted(x) + 1).inner

    def written(wrapper):
        wrapper.add_(1)
        return (wrapper * 2).inner

    out = []
    for make in (lambda: torch.arange(3.0), lambda: torch._neg_view(torch.arange(3.0)), lambda: torch.arange(3.0).requires_grad_(), lambda: torch.arange(3.0).requires_grad_() * 1):
        f, x = compile(wrapped), make()
        out += [(made, made.requires_grad) for made in (f(x), f(make()))]
        if not x.requires_grad:
            wrapper = Slotted(x)
            out += [compile(written)(wrapper), wrapper.inner]
    return out


@edge
def hooks_put_on_inputs_between_calls(compile, engine):
    def inside(x, w):
        return torch.autograd.grad((x * x * w).sum(), (x, w))

    f, out = compile(inside), []
    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    for change in (lambda: None, lambda: x.register_hook(lambda g: g * 2), lambda: w.register_hook(lambda g: g + 1), lambda: x.detach().requires_grad_()):
        given = change()
        out.append(f(given if isinstance(given, torch.Tensor) else x, w))
    both = torch.ones(3, requires_grad=True)
    return out + [f(both, both), f(both, torch.ones(3, requires_grad=True)), f(both, both)]


@edge
def writes_have_a_history_in_the_mode_of_their_moment(compile, engine):
    """A region that a break lets begin under no_grad, and leaves it."""
    def after(y):
        with torch.no_grad():
            torch._dynamo.graph_break()
        y.masked_fill_(y < 0, 0.25)
        return y

    def part(y):
        with torch.no_grad():
            z = y * 3
            torch._dynamo.graph_break()
            z.add_(1)
        y[0] = 7
        return y + z

    def inside(y):
        with torch.no_grad():
            torch._dynamo.graph_break()
            y.mul_(2)
        return y * 1

    def switched(y):
        torch.set_grad_enabled(False)
        torch._dynamo.graph_break()
        torch.set_grad_enabled(True)
        y.mul_(2)
        return y

    out = []
    for f in (after, part, inside, switched):
        for outer in (True, False):
            x = torch.tensor([-1.0, 2.0, -3.0, 0.5], requires_grad=True)
            y = x * 2
            with torch.set_grad_enabled(outer):
                made = compile(f)(y)
            out.append([made, made.requires_grad, made is y])
            if made.requires_grad:
                made.sum().backward()
            out.append(x.grad)
    return out


@edge
def gradients_are_set_to_none_by_an_optimizer_inside(compile, engine):
    out = []
    for options in ({}, {"foreach": True}, {"fused": True}):
        for to_none in (True, False):
            torch.manual_seed(0)
            layer = torch.nn.Linear(3, 3)
            optimizer = torch.optim.Adam(layer.parameters(), lr=0.1, **options)

            def f(x):
                optimizer.zero_grad(set_to_none=to_none)
                return layer(x).sum()

            if engine:
                engine.reset()
            c = compile(f, fullgraph=True)
            for i in range(3):
                c(torch.full((2, 3), 1.0 + i)).backward()
                out += [p.grad.mul(16).round() for p in layer.parameters()]
            c(torch.ones(2, 3))
            out.append([p.grad for p in layer.parameters()])
    return out


@edge
def derivatives_in_what_was_computed_of_inputs_with_histories(compile, engine):
    """Such an input may lie between the result and another input, but not between it and what is computed here."""
    def inner(x, w):
        h = x * 2 + w
        return torch.autograd.grad(h.pow(3).sum(), h, create_graph=True)[0] * 2

    def own(x, w):
        return torch.autograd.grad(x.pow(3).sum(), [x], create_graph=True)[0] * w

    def behind(x, w):
        return torch.autograd.grad((x * w).pow(2).sum(), w, create_graph=True)[0]

    def both(x, w):
        return sum(torch.autograd.grad((x * w).pow(3).sum(), (x, w), create_graph=True))

    out = []
    for f, breaks in ((inner, 0), (own, 0), (behind, 1), (both, 1)):
        c, before = compile(f), engine.counters()["graph_breaks"] if engine else 0
        for make in (lambda w: w * 2, torch.sin, lambda w: torch.ones(3, requires_grad=True)):
            w = torch.linspace(0.5, 1, 3, requires_grad=True)
            given = make(w)
            result = c(given, w)
            out += [result, torch.autograd.grad(result.sum(), [w, given], allow_unused=True)]
        out.append(not engine or (engine.counters()["graph_breaks"] > before) == (breaks > 0))
    return out


@edge
def parts_of_inputs_are_kept_for_backward_as_they_are_copied(compile, engine):
    """What backward reads of a part of a tensor that others may write to is a copy, which has no gaps."""
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(8, 5, dtype=torch.float64))

    def f(values, masks, given):
        h, total = values.new_zeros(4, 8), values.new_zeros(())
        for t in range(2):
            x, m, d = values[:, t], masks[:, t], given[:, t]
            made = torch.nn.functional.linear(d, weight)
            torch._dynamo.graph_break()
            h = h + made
            seen = h[:, :5]
            assert not torch.isnan(seen).any()
            total += seen.abs().mean()
            filled = m * x + (1 - m) * seen
            again = m * x + (1 - m) * filled
            h = torch.cat([again, m[:, :3]], 1)
        return total

    c, out = compile(f), []
    for _ in range(2):
        values, masks, given = torch.randn(4, 2, 5).double(), (torch.rand(4, 2, 5) > 0.3).double(), torch.rand(4, 2, 5).double()
        junk = [torch.full((n,), 1e200, dtype=torch.float64) for n in range(1, 60)]
        del junk
        weight.grad = None
        c(values, masks, given).backward()
        out.append(weight.grad.clone())
    return out


@edge
def gradients_of_leaves_are_written_apart(compile, engine):
    """What scales gradients in place scales each once, also where one leaf's gradient is a part of another's."""
    def joined(cls, pos, x):
        return (torch.cat([cls.expand(x.shape[0], -1, -1), x], 1) + pos).square().sum()

    def viewed(a, b, x):
        return (a.view(-1) + b).square().sum() + x.sum()

    def stacked(a, b, x):
        return ((torch.stack([a, a * 2]) + b) * x.sum()).square().sum()

    ones = lambda *sizes: torch.ones(sizes, dtype=torch.float64)  # noqa: E731
    out = []
    for f, sizes in ((joined, ((1, 1, 4), (1, 3, 4))), (viewed, ((3, 4), (12,))), (stacked, ((4,), (2, 4)))):
        for whole in (False, True):
            leaves = [ones(*size).requires_grad_() for size in sizes]
            forward = f if whole else compile(f)

            def step(x):
                for leaf in leaves:
                    leaf.grad = None
                loss = forward(*leaves, x)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(leaves, 1.0)
                with torch.no_grad():
                    torch._foreach_sub_(leaves, [leaf.grad for leaf in leaves])
                return loss.detach()

            run = compile(step) if whole else step
            for _ in range(3):
                out.append(round(run(ones(1, 2, 4)).item(), 9))
            out += [[round(v, 9) for v in leaf.flatten().tolist()] for leaf in leaves]
    return out


@edge
def losses_with_many_hooks_go_backward_one_by_one(compile, engine):
    """Each pass has a way of its own through what both losses were computed with; there are more ways than graphs are compiled for."""
    out = []
    for n in (1, 3, 6, 9):
        seen = []

        def chain(x, w):
            for _ in range(n):
                x = (x * w).sigmoid()
                x.register_hook(seen.append)
            return x.sum()

        def f(x, w, v):
            a, b = chain(x, w), chain(x, v)
            a.backward()
            b.backward()
            return a.detach()

        c = compile(f)
        for k in range(2):
            w, v = (torch.full((3,), 0.5 + k + d, dtype=torch.float64, requires_grad=True) for d in (0, 0.2))
            out += [round(c(torch.ones(3, dtype=torch.float64), w, v).item(), 9), len(seen), [round(t.grad.sum().item(), 9) for t in (w, v)]]
    return out


@edge
def gradients_lie_in_memory_as_formulas_expect(compile, engine):
    """A result that is alive and gets no gradient leaves out an addition; what comes of it lies as the sum would, on which formulas rely."""
    torch.manual_seed(0)
    norms = [torch.nn.GroupNorm(4, 8), torch.nn.InstanceNorm1d(8, affine=True), torch.nn.BatchNorm1d(8), torch.nn.Conv1d(8, 8, 1)]
    programs = (lambda y: (torch.cat([torch.zeros(len(y), 2, 8).double(), y.transpose(1, 2)], 1), y), lambda y: (y.transpose(1, 2).cumsum(1), y, y.sum()),
                lambda y: (y.transpose(0, 2), y.transpose(1, 2), y))
    out = []
    for norm in norms:
        norm.double()
        for part in programs:
            for length in (1, 2):
                if length == 1 and isinstance(norm, torch.nn.InstanceNorm1d):
                    continue
                for backend in ("eager", "inductor"):
                    c = compile(lambda z, norm=norm, part=part: part(norm(z)), backend=backend) if engine else lambda z, norm=norm, part=part: part(norm(z))
                    z = torch.arange(3.0 * 8 * length).reshape(3, 8, length).sin().double().requires_grad_()
                    norm.zero_grad()
                    first = c(z)[0]
                    (first * torch.arange(first.numel()).reshape(first.shape).cos()).sum().backward()
                    out.append([[round(v, 6) for v in g.flatten().tolist()] for g in (z.grad, *(p.grad for p in norm.parameters()))])
    return out


class Scaled(torch.Tensor):
    """A tensor that is computed of two others: quantised weights of libraries."""

    @staticmethod
    def __new__(cls, data, scale, requires_grad=False):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=scale.dtype, requires_grad=requires_grad)

    def __init__(self, data, scale, requires_grad=False):
        self.data_, self.scale = data, scale

    def __tensor_flatten__(self):
        return ["data_", "scale"], self.requires_grad

    @staticmethod
    def __tensor_unflatten__(inner, requires_grad, size, stride):
        return Scaled(inner["data_"], inner["scale"], requires_grad)

    @classmethod
    def __torch_dispatch__(cls, op, types, args, kwargs=None):
        if op is torch.ops.aten.detach.default:
            return Scaled(args[0].data_, args[0].scale)
        args, kwargs = torch.utils._pytree.tree_map_only(Scaled, lambda q: q.data_ * q.scale, (args, kwargs or {}))
        return op(*args, **kwargs)


@edge
def views_of_computed_wrappers(compile, engine):
    breaks = engine.counters()["graph_breaks"] if engine else 0
    torch.manual_seed(3)
    data, scale = torch.randint(-9, 9, (4, 4)).to(torch.int8), torch.tensor([[0.5], [2], [1], [0.25]])
    q = Scaled(data, scale)
    layer = torch.nn.Linear(4, 4, bias=False)
    layer.weight = torch.nn.Parameter(Scaled(data, scale))

    @compile
    def f(x):
        first, second = q.split(2)
        part = q.view(2, 8)[:, ::2]
        part.add_(1)
        return x @ q.t() + q[1], first - second, part, [row.sum() for row in q.unbind(1)], q.data_

    @compile
    def g(x):
        with torch.no_grad():
            fixed = torch.nn.functional.linear(x, layer.weight)
        return fixed, layer.weight.requires_grad

    out = []
    for n in (2, 2, 3):
        x = torch.arange(4.0 * n).reshape(n, 4).requires_grad_()
        *made, kept = f(x)
        made[0].sum().backward()
        out.append((made, kept is data, x.grad, g(x)))
    same = not engine or engine.counters()["graph_breaks"] == breaks
    out.append(compile(layer)(torch.ones(1, 4)).requires_grad)  # its gradient is wanted
    return out, same


@edge
def detached_in_place(compile, engine):
    breaks = engine.counters()["graph_breaks"] if engine else 0
    state = torch.nn.Module()
    state.register_buffer("total", torch.zeros(1))
    layer = torch.nn.Linear(3, 3)

    @compile
    def f(x):
        y = x.sin()
        kept, z = y * 2, y * 3
        further = z + z
        kept.detach_().add_(1)
        z.detach_()
        state.total = state.total + x.sum()
        state.total.detach_().mul_(0.5)
        layer.weight.grad.detach_().zero_()
        return (y * kept).sum(), further, z, kept

    out = []
    for n in (2, 2, 3):
        layer.weight.grad = torch.ones(3, 3)
        x = torch.arange(3.0 * n).reshape(n, 3).requires_grad_()
        loss, further, z, kept = f(x)
        (loss + further.sum() + z.sum()).backward()
        near = [(t * 1e3).round() for t in (further, z, kept, x.grad, state.total)]
        out.append((near, kept._version, z.is_leaf, kept.requires_grad, layer.weight.grad))
    same = not engine or engine.counters()["graph_breaks"] == breaks
    g = compile(lambda x: x.detach_())
    leaf, made = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True) * 2
    out.append((g(torch.ones(2)), g(leaf), leaf.requires_grad, g(made).requires_grad, raised(lambda: g(torch.ones(2, 2)[0]))))
    return out, same


@edge
def sets_that_hold_tensors(compile, engine):
    """They are asked by identity; who is in one may change from call to call."""
    def told(x, params, chosen):
        for p in params:
            x = x * 2 + p if p in chosen else x - p
        return x, (x * 1) in chosen, params[0] not in chosen

    def written(x, params, chosen):
        chosen.add(params[1])
        return x + (params[1] in chosen), params[0] in chosen

    params = [torch.full((2,), float(k)) for k in range(3)]
    results = []
    for f in (told, written):
        c = compile(f)
        for kind in (set, frozenset):
            for members in ((0, 2), (0, 2), (1,), (), (0, 1, 2), (0, 2)):
                chosen = kind(params[k] for k in members)
                results.append((f.__name__, raised(c, torch.ones(2), params, chosen), sorted(p[0].item() for p in chosen)))
        results.append((f.__name__, raised(c, torch.ones(2), [torch.ones(2)] * 3, {1, "a", None})))
    return results

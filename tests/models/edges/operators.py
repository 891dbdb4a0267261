"""Operators with effects and random numbers: never lost, repeated, merged or moved. And one that has no code costs no graph."""

import torch
from torch import nn

from . import edge, raised


def library(log):
    """Custom operators that write what they do: with a result, without one, in place."""
    @torch.library.custom_op("edges::note", mutates_args=())
    def note(x: torch.Tensor, n: int) -> torch.Tensor:
        log.append(n)
        return x.clone()

    @note.register_fake
    def _(x, n):
        return torch.empty_like(x)

    @torch.library.custom_op("edges::say", mutates_args=())
    def say(x: torch.Tensor, n: int) -> None:
        log.append(("say", n, tuple(x.shape)))

    @say.register_fake
    def _(x, n):
        return None

    @torch.library.custom_op("edges::bump", mutates_args=("x",))
    def bump(x: torch.Tensor, n: int) -> None:
        log.append(("bump", n))
        x.add_(n)

    return note, say, bump


def draws(compile, f, x, calls=2):
    """Results of one seed, and what the generator gives next."""
    torch.manual_seed(0)
    c = compile(f)
    out = [c(x) for _ in range(calls)]
    return [[t.double().sum().round(decimals=3).item() for t in r] for r in out], torch.rand(1)


@edge
def custom_operators_keep_their_order(compile, engine):
    log = []
    note, say, bump = library(log)

    def f(x):
        p = torch.sigmoid(x)
        y = note(p, 1)
        say(x, 2)
        z = note(x, 3)
        bump(z, 4)
        return y, z, p + 1, x.cos() * 2 + note(torch.ones(64, 64), 5)

    c = compile(f)
    out = [[t.sum().round(decimals=1).item() for t in c(torch.zeros(64, 64))] for _ in range(2)]
    return out, log


@edge
def custom_operators_without_a_reader_are_kept(compile, engine):
    log = []
    note, say, bump = library(log)

    def f(x):
        say(x, 1)
        note(x, 2)
        bump(x.clone(), 3)
        return x + 1

    c, x = compile(f), torch.ones(2)
    return [c(x) for _ in range(2)], log


@edge
def custom_operators_are_not_repeated_when_a_graph_raises(compile, engine):
    log = []
    note, _, bump = library(log)

    def f(x, i):
        n = note(x, 1)
        bump(n, 2)
        return n[i] + 1

    c, x = compile(f), torch.ones(3)
    return c(x, torch.tensor([0])), raised(c, x, torch.tensor([7]))[0], log


@edge
def equal_custom_operators_are_both_called(compile, engine):
    log = []
    note, _, _ = library(log)
    c, x = compile(lambda x: note(x, 1) + note(x, 1)), torch.ones(3)
    return c(x), log


@edge
def random_draws_keep_their_order_when_loops_are_fused(compile, engine):
    x = torch.linspace(-1, 1, 64 * 64).view(64, 64)

    def siblings(x):
        p = torch.bernoulli(x.sigmoid())
        u = torch.rand(64, 64)
        return p, x.cos() * 2 + u

    def pair(x):
        p = torch.sigmoid(x)
        y = torch.bernoulli(p)
        return y, torch.randn(4), p + 1

    def likes(x):
        a = x.exp()
        first = torch.randn_like(a)
        second = torch.randn(8)
        return a * first, a[0, :8] + second

    def dropped(x):
        torch.rand(3)
        return torch.nn.functional.dropout(x, 0.5), torch.randperm(5), x.clone().normal_(), torch.randint(0, 10, (3,))

    return [draws(compile, f, x) for f in (siblings, pair, likes, dropped)]


@edge
def random_draws_with_fallback_random(compile, engine):
    def f(x):
        p = torch.bernoulli(x.sigmoid())
        return p, x.cos() * 2 + torch.rand(64, 64)

    def with_option(f):
        return compile(f, options={"fallback_random": True})

    return draws(with_option, f, torch.linspace(-1, 1, 64 * 64).view(64, 64))


@edge
def equal_random_draws_are_both_drawn(compile, engine):
    def f(x):
        high = torch.tensor(1000)
        return [torch.randint_like(x, high), torch.randint_like(x, high), torch.rand_like(x), torch.rand_like(x), torch.rand(5),
                torch.rand(5),
                torch.rrelu(x - 1, training=True), torch.rrelu(x - 1, training=True)]

    def with_generator(x):
        g = torch.Generator().manual_seed(3)
        return [torch.rand(5, generator=g), torch.rand(5, generator=g), torch.randn(5, generator=g)]

    x = torch.zeros(100)
    return draws(compile, f, x), draws(compile, with_generator, x)


@edge
def random_draws_of_a_graph_that_raises(compile, engine):
    c, x = compile(lambda x, i: torch.randn(8) + x[i]), torch.ones(8)
    torch.manual_seed(0)
    first = c(x, torch.arange(8))
    kind = raised(c, x, torch.tensor([9]))[0]
    return first.sum().round(decimals=3), kind, torch.rand(1)


@edge
def assertions_are_kept(compile, engine):
    def f(x):
        torch._assert_async((x > 0).all(), "negative")
        return x + 1

    def g(x):
        torch._assert((x > 0).all(), "negative")
        return x + 1

    def h(x):
        torch._check(x.shape[0] == 3, lambda: "three")
        return x + 1

    cs = [compile(k) for k in (f, g, h)]
    return [raised(c, x) for c in cs for x in (torch.ones(3), -torch.ones(3), torch.ones(2))]


@edge
def lstm_is_compiled(compile, engine):
    torch.manual_seed(0)
    model, x = nn.LSTM(4, 6), torch.randn(5, 2, 4)
    c, out = compile(model), []
    for training in (True, False):
        model.train(training)
        with torch.set_grad_enabled(training):
            y = c(x)[0]
        out.append(y.double().sum().round(decimals=3))
        if training:
            y.sum().backward()
    is_compiled = engine is None or engine.counters()["eager_runs"] == 0 and engine.counters()["graphs"] > 0
    return out, model.weight_ih_l0.grad.double().sum().round(decimals=2), is_compiled


@edge
def lstm_of_random_input_draws_once(compile, engine):
    torch.manual_seed(0)
    model = nn.LSTM(4, 6)
    return draws(compile, lambda x: [model(x + torch.randn(4))[0]], torch.zeros(5, 2, 4))


@edge
def real_part_of_a_complex_view(compile, engine):
    torch.manual_seed(0)
    model, x = nn.LSTM(4, 6), torch.randn(5, 2, 2, 4, dtype=torch.complex64)
    c = compile(lambda x: model(x[:, 0].real)[0])
    return [c(x).double().sum().round(decimals=3) for _ in range(2)]


@edge
def what_nobody_reads_may_be_anything(compile, engine):
    @torch.library.custom_op("edges::halves", mutates_args=())
    def halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[:2].clone(), x[2:].clone()

    halves.register_fake(lambda x: (x.new_empty(2, x.shape[1]), torch.empty_like(x)))  # the second has another size
    x = torch.arange(16.0).view(4, 4)
    out = compile(lambda x: halves(x * 2)[0] + 1)(x)
    return out, engine is None or engine.counters()["eager_runs"] == 0


@edge
def one_operator_without_code_costs_no_graph(compile, engine):
    def complexes(x):
        return torch.fft.fft(torch.fft.fft(x).transpose(0, 1)).abs().sum(), (x * 2 + 1).relu().sum()

    def eights(x):
        a = x.to(torch.float8_e4m3fn)
        return (a.to(torch.float32) * 2 + 1).sum(), (x * 2).sum()

    x = torch.arange(16.0).view(4, 4)
    out = [[t.round(decimals=1) for t in compile(f)(x)] for f in (complexes, eights)]
    return out, engine is None or engine.counters()["eager_runs"] == 0


@edge
def strided_convolution_of_few_channels(compile, engine):
    torch.manual_seed(0)
    model = nn.Conv2d(3, 48, 1, stride=2, bias=False)
    c, out = compile(model), []
    for size in (256, 64):
        model.weight.grad = None
        c(torch.randn(2, 3, size, size)).sin().sum().backward()
        out.append(model.weight.grad.norm().round(decimals=0))
        torch.empty(10 ** 6)
    return out


@edge
def batch_norm_behind_a_transpose(compile, engine):
    """Eager's gradient is wrong here (a fault of PyTorch's), so the formula is the judge."""
    torch.manual_seed(0)
    x, r = torch.randn(1, 4, 3, 3), torch.randn(1, 9, 4)
    c = compile(lambda x: nn.functional.batch_norm(x, torch.zeros(4), torch.ones(4)).flatten(2).transpose(1, 2))
    want, y = r.transpose(1, 2).reshape(x.shape) / (1 + 1e-5) ** 0.5, x.clone().requires_grad_()
    c(y).backward(r)
    return engine is None or torch.allclose(y.grad, want, atol=1e-5)


@edge
def types_that_eager_refuses(compile, engine):
    """Shape functions take them; kernels do not."""
    relu, relu_in_place = compile(lambda x: torch.relu(x)), compile(lambda x: torch.relu_(x.clone()))
    log_softmax, softmax = compile(lambda x: torch.log_softmax(x, 0)), compile(lambda x: torch.softmax(x, -1) * 2)
    truths, integers, large = torch.ones(3, 4, dtype=torch.bool), torch.arange(12).view(3, 4), torch.ones(70, 90, dtype=torch.int64)
    return [raised(f, x) for f in (relu, relu_in_place, log_softmax, softmax) for x in (truths, integers, large)]


@edge
def strides_beyond_the_storage(compile, engine):
    """An error, whether the storage is an input's or the graph's own, and for inputs of the same sizes in storages of other sizes."""
    own = compile(lambda x: (x + 1).as_strided((2,), (1,), 3) * 2)
    given, backwards = compile(lambda x: x.as_strided((6,), (1,)) + 1), compile(lambda x: x.as_strided((2,), (-1,), 3))
    within = compile(lambda x: torch.relu(x).as_strided((2, 2), (1, 1), 1) + 1)
    nothing = compile(lambda x: x.as_strided((1,), (1,)))
    wide, narrow = torch.arange(8.0), torch.arange(4.0)
    return [raised(own, narrow), own(torch.arange(5.0)), given(wide[:4]), given(wide[2:6]), raised(given, narrow), raised(given, wide[4:]),
            given(wide[:4]), raised(backwards, narrow), within(narrow), raised(nothing, torch.empty(0))]


@edge
def strides_of_types_without_code(compile, engine):
    """What looks at other places of a complex or float8 tensor's memory keeps all of that memory, as eager's does."""
    def looks(x):
        part = x[1::3]
        return x.clone().as_strided((2, 3), (7, 1), 3), torch.slice_scatter(part, part[1:], 0, 0, -1), torch.select_scatter(part, part[1], 0, 0)
    out = []
    for dtype in (torch.float32, torch.complex64, torch.float8_e4m3fn):
        for made in compile(looks)(torch.arange(42.0).view(14, 3).to(dtype)):
            out += [made.stride(), made.storage_offset(), made.untyped_storage().nbytes(), made.to(torch.complex64)]
    return out


@edge
def memory_as_found(compile, engine):
    """It is filled where the program asks for deterministic algorithms."""
    def f(x):
        return (torch.empty(3), torch.empty_like(x), x.new_empty(2), torch.empty_strided((2, 3), (1, 2)), torch.empty(2, dtype=torch.int8),
                torch.empty(2, dtype=torch.bool), torch.empty(2, dtype=torch.complex64))

    g = compile(f)
    torch.use_deterministic_algorithms(True)
    try:
        return g(torch.ones(2, 2)), g(torch.ones(2, 2))
    finally:
        torch.use_deterministic_algorithms(False)


@edge
def writes_through_expansions(compile, engine):
    """What is written through an expansion is written as it is, whatever stood there: not as what stood there plus a difference."""
    def fills(x):
        x.broadcast_to(x.shape).zero_()

    def fills_a_part(x):
        x.expand(2, *x.shape)[0].fill_(1e-3)

    def adds(x):
        x.expand(-1, 4).add_(1)
        x.expand_as(x)[1:].fill_(2)
    out = []
    for write in (fills, fills_a_part, adds):
        compiled = compile(write)
        for rows in (3, 5, 6):
            x = torch.full((rows, 4), 1e8)
            x[0] = float("nan")
            x[-1] = float("inf")
            compiled(x)
            out.append(x)
    return out


@edge
def unused_results_of_bad_sizes_raise(compile, engine):
    """Sizes that an operator refuses are an error also where its result is not used."""
    def refusals(f, *args):
        def unused(*args):
            f(*args)
            return args[0] * 2
        try:
            return compile(unused)(*args)
        except RuntimeError as error:
            return str(error)
    r = torch.randn
    return [refusals(f, *args) for f, *args in [
        (lambda w, x: nn.functional.conv1d(x, w), r(4, 4, 3), r(1, 3, 9)), (lambda w, x, b: nn.functional.conv1d(x, w, b), r(4, 3, 3), r(1, 3, 9), r(3)),
        (lambda w, x: nn.functional.conv1d(x, w, groups=2), r(3, 3, 3), r(1, 6, 9)), (lambda w, x: nn.functional.conv2d(x, w), r(4, 3, 3, 3), r(1, 2, 9, 9)),
        (lambda w, x, b: nn.functional.conv_transpose1d(x, w, b), r(3, 4, 3), r(1, 3, 9), r(3)), (lambda w, x: nn.functional.conv_transpose1d(x, w), r(4, 4, 3), r(1, 3, 9)),
        (lambda w, x, b: nn.functional.linear(x, w, b), r(4, 4), r(3, 4), r(3)), (lambda a, b, c: torch.addmv(c, a, b), r(4, 4), r(4), r(3)),
        (lambda a, b: a @ b, r(4, 4), r(3, 4)), (lambda w, x: nn.functional.conv1d(x, w), r(4, 3, 3), r(1, 3, 9))]]


@edge
def sums_over_no_dimension_are_over_all(compile, engine):
    """`dim=()` of the sums that PyTorch computes without NaN is every dimension, with and without keepdim."""
    def sums(x):
        return [f(x, dim=(), keepdim=k) for f in (torch.nansum, torch.nanmean, torch.sum, torch.mean) for k in (False, True)]
    x = torch.arange(12.0).view(3, 4)
    x[1, 1] = float("nan")
    return compile(sums)(x), compile(lambda x: x.nansum(()).isinf())(torch.arange(3))


@edge
def parts_of_several_are_not_written(compile, engine):
    """A view that an operator gives with others refuses writes where gradients are recorded, also where nothing else shares its memory."""
    def by(split):
        def write(x):
            part = split(x * 1)[0]
            part -= 1
            return part
        return write
    ways = (lambda x: x.chunk(2), lambda x: x.split(3), lambda x: x.split([2, x.shape[0] - 2]), lambda x: x.unbind(0), lambda x: x[1:])
    out = []
    for way in ways:
        f = compile(by(way))
        for said in (raised(f, torch.ones(6, 4, requires_grad=grad)) for grad in (True, False)):
            out.append(said[0] if isinstance(said, tuple) else said)
    return out


@edge
def checkpoints_refuse_what_eager_refuses(compile, engine):
    from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts as selective
    entered = []

    class Noted:
        def __enter__(self):
            entered.append("in")

        def __exit__(self, *_):
            entered.append("out")

    def told(**how):
        return compile(lambda x: checkpoint(torch.sin, x, use_reentrant=False, **how))
    ways = ({"context_fn": lambda: selective(3)}, {"context_fn": lambda: selective(["sin"])}, {"context_fn": lambda: (1, 2)}, {"context_fn": 3},
            {"determinism_check": "never"}, {"context_fn": lambda: selective([torch.ops.aten.sin.default])}, {"context_fn": lambda: (Noted(), Noted())})
    return [raised(told(**how), torch.ones(3, requires_grad=grad)) for how in ways for grad in (True, False)] + entered


@edge
def pieces_share_memory(compile, engine):
    """Those of unsafe_split and unsafe_chunk too, with their input and each other."""
    out = []
    for split in (lambda x: torch.unsafe_chunk(x, 2), lambda x: torch.unsafe_split(x, 2), lambda x: torch.unsafe_split_with_sizes(x, [1, 3])):
        for x in (torch.ones(4, 3), torch.ones(4, 3, requires_grad=True)):
            pieces = compile(split)(x)
            x.detach().zero_()
            out += [p.sum().item() for p in pieces] + [p.storage_offset() for p in pieces]
    return out


@edge
def places_of_results(compile, engine):
    """Row-major where eager's kernel starts from an empty tensor, as the operands lie where it does not."""
    x, y = torch.arange(1.0, 251.0).view(5, 10, 5).permute(2, 1, 0), torch.arange(1.0, 51.0).view(5, 10).t()
    z = torch.ones(7, 20, dtype=torch.complex64).t()
    results = [compile(torch.floor_divide)(x, y), compile(torch.floor_divide)(x, 3), compile(torch.angle)(z), compile(torch.angle)(z.real),
               compile(torch.angle)(x.long())]
    return results, [r.stride() for r in results]


@edge
def options_that_are_accepted_act(compile, engine):
    """Or what they do not do is an error or a warning."""
    import warnings

    def acts(f, x, options, wanted):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                y = compile(f, options=options)(x)
            except Exception as error:
                return type(error).__name__ != "TypeError"
        return engine is None or bool(caught) or wanted(y)

    return [acts(lambda x: x * 300 * 300 / 90000, torch.ones(100, dtype=torch.float16), {"emulate_precision_casts": True},
                 lambda y: y.isinf().all().item()),
            acts(lambda x: x.log(), torch.tensor([-1.0]), {"nan_asserts": True}, lambda y: False),
            acts(lambda x: x + 1, torch.ones(2), {"freezing": True}, lambda y: False)]


@edge
def arguments_that_eager_refuses(compile, engine):
    """Also where nobody reads the result."""
    def unread(x):
        torch.nn.functional.conv1d(x, torch.ones(2, 2, 1))
        return 1

    cases = [(unread, torch.ones(1, 2, 0)), (unread, torch.ones(1, 2, 3)),
             (lambda x: x.slice_scatter(torch.ones(1, 5), 1, 9, 12), torch.ones(4, 3)),
             (lambda x: x.slice_scatter(torch.ones(1, 5), 0, 1), torch.ones(4, 5)),
             (lambda x: x.select_scatter(torch.ones(5), 0, 1), torch.ones(4, 3)),
             (lambda x: x.select_scatter(torch.tensor(5.0), 0, 1), torch.ones(4, 3)),
             (lambda x: x.diagonal_scatter(torch.ones(5), 0), torch.ones(4, 3)), (lambda x: torch.where(x, x, x), torch.ones(4, 3))]
    return [raised(compile(f), x) for f, x in cases]


@edge
def lists_of_another_length_than_the_dimensions(compile, engine):
    """They raise as in eager, and are not read beyond their ends."""
    F, x, w = torch.nn.functional, torch.ones(1, 2, 4, 4), torch.ones(2, 2, 1, 1)
    made = [lambda x: F.conv1d(x[0], w[..., 0], stride=[]), lambda x: F.conv2d(x, w, padding=[1, 1, 1]), lambda x: F.conv2d(x, w, dilation=[]),
            lambda x: F.conv_transpose2d(x, w, output_padding=[]), lambda x: F.conv2d(x, w, stride=[1]),
            lambda x: torch.ops.aten._adaptive_avg_pool2d(x.flatten(), [2, 2])]
    return [raised(compile(f), x)[0] for f in made]


@edge
def masks_that_are_no_booleans(compile, engine):
    mask = torch.tensor([1, 0, 1], dtype=torch.uint8)
    f = compile(lambda x: x.masked_fill(mask, 0.0))
    g = compile(lambda x: (x + 1).masked_fill_(mask, 0.0))
    return [raised(f, torch.ones(3)), raised(g, torch.ones(3))]


@edge
def factors_of_different_types_are_refused(compile, engine):
    narrow, wide = torch.ones(6, 8, dtype=torch.float16), torch.ones(8, 4)
    image, weight = torch.ones(1, 3, 9, dtype=torch.float16), torch.ones(2, 3, 1)
    mixed = [raised(compile(torch.mm), narrow, wide), raised(compile(torch.bmm), narrow[None], wide[None]),
             raised(compile(nn.functional.conv1d), image, weight), raised(compile(lambda a, b: nn.functional.linear(a, b)), narrow, wide.t())]
    return mixed, compile(torch.mm)(narrow, wide.half()), compile(nn.functional.conv1d)(image, weight.half())


@edge
def lists_of_types_that_are_refused(compile, engine):
    """Nothing behind the refusal happens."""
    def f(xs, ys, numbers):
        made = torch._foreach_addcdiv(xs, ys, ys, numbers)
        torch._foreach_sqrt_(ys)
        return made

    told = []
    for kind in (torch.bool, torch.int64):
        xs, ys = [torch.ones(3), torch.ones(2)], [torch.full((3,), 4.0), torch.ones(2, dtype=kind)]
        told += [raised(compile(f), xs, ys, torch.tensor([1.0, 2.0])), ys, raised(compile(torch._foreach_addcdiv_), ys, xs, xs, torch.tensor([1.0, 2.0])), ys]
    return told


@edge
def conjugates_that_custom_operators_write(compile, engine):
    """libtorch writes to no conjugate for an operator without a result."""
    _, _, bump = library([])

    def f(x):
        bump(x, 2)
        return x + 0

    made = [torch.full((2,), 1 + 2j), torch.full((2,), 1 + 2j).conj(), torch.full((2,), 1 + 2j).conj().imag]
    return [(raised(compile(f), x), x.resolve_conj().resolve_neg()) for x in made]


@edge
def writes_to_parts_of_what_meets_itself(compile, engine):
    """Windows into one memory, made here or given, in this call or a later one."""
    def inside(x):
        u = x.as_strided((3, 3), (2, 1))
        u[0] = 5
        return u.sum(), u[1:2].add_(7) * 1

    def windows(x):
        x.unfold(0, 3, 2)[0] = 5
        return x * 1

    def given(u):
        u[0] = 5
        return u.sum()

    told = []
    for f in (inside, windows):
        x = torch.arange(8.0)
        told += [compile(f)(x), x, compile(lambda: (y := torch.arange(8.0), f(y)))()]
    for dynamic in (None, True):
        c = compile(given, dynamic=dynamic)
        for sizes, strides in (((3, 3), (5, 1)), ((3, 4), (7, 1)), ((4, 3), (6, 1)), ((3, 3), (2, 1)), ((4, 3), (1, 1)), ((3, 5), (4, 1))):
            memory = torch.arange(40.0)
            told += [c(memory.as_strided(sizes, strides)), memory]
    return told


@edge
def results_that_do_not_fit_where_they_are_written(compile, engine):
    """Also where the tensor was made here."""
    uses = [lambda a, b: a.clone().logical_and_(b), lambda a, b: a.clone().logical_xor_(b), lambda a, b: a.clone().floor_divide_(b),
            lambda a, b: a.clone().remainder_(b), lambda a, b: a.clone().add_(b)]
    told = []
    for f in map(compile, uses):
        told += [raised(f, a, b) for a, b in ((torch.ones(1), torch.ones(1, 1)), (torch.ones(1), torch.ones(0)), (torch.ones(2, 3), torch.ones(3)), (torch.tensor(1.0), torch.ones(1)))]
    return told


@edge
def numbers_beyond_the_type_of_integers(compile, engine):
    """Of a number a type keeps the lowest bits; what is written from a tensor must fit."""
    x = torch.tensor([7, 8], dtype=torch.int32)
    uses = [lambda a: a // 2 ** 40, lambda a: torch.div(a, 2 ** 40, rounding_mode="trunc"), lambda a: a // (2 ** 33 + 2), lambda a: a % (2 ** 33 + 2),
            lambda a: a.to(torch.uint8) // 256, lambda a: a.clone().logical_and_(torch.as_tensor(2 ** 40)), lambda a: torch.logical_or(a - a, torch.as_tensor(2 ** 40)),
            lambda a: a.masked_fill(a > 7, torch.tensor(float("inf"))), lambda a: a.to(torch.int8).masked_fill_(a > 7, torch.tensor(300)),
            lambda a: a.masked_fill(a > 7, torch.tensor(2.5))]
    return [raised(compile(f), x) for f in uses]


@edge
def frames_of_other_sizes_are_no_abort(compile, engine):
    """Of these PyTorch's kernel adds up what it finds: the shape is all that can be compared."""
    f = compile(lambda frames, sizes: torch.ops.aten.unfold_backward(frames * 2, sizes, 0, 3, 1))
    return [f(torch.randn(5, 3), [7]), f(torch.randn(5, 3), [7, 7]).shape]


@edge
def a_size_beside_few_elements(compile, engine):
    """An operator that is asked what it refuses is asked with a size that fits its tensors."""
    out = []
    for batch in (8, 1, 33):
        theta = torch.linspace(0, 1, batch * 6).view(batch, 2, 3)
        c = compile(lambda t: torch.nn.functional.affine_grid(t, [t.shape[0], 1, 5, 4], align_corners=False), fullgraph=True)
        out.append(c(theta).mul(64).round() + 0.0)
    return out


@edge
def what_is_asked_of_known_tensors(compile, engine):
    def f(x):
        here = torch.tensor([1.0, 2.0])
        same = torch.equal(here, torch.tensor([1.0, 2.0])), torch.allclose(here, here + 1)
        return torch.quantile(x, 0.75, dim=1), torch.nanquantile(x, 0.25), same

    return compile(f, fullgraph=True)(torch.arange(20.0).view(4, 5))


@edge
def operators_that_trust_their_arguments_are_not_tried(compile, engine):
    def f():
        return torch.quasirandom.SobolEngine(5, scramble=True, seed=3).draw(7), torch._sobol_engine_initialize_state_(torch.zeros(3, 30, dtype=torch.long), 3).sum()

    c = compile(f)
    return [(*c(), [torch.zeros(n).sum() for n in range(50)][-1]) for _ in range(10)]

"""Arithmetic at its edges: empty dims, extents of one, NaN, infinities, long sums."""

import enum
import math

import torch

from . import edge, raised

NAN, INF = float("nan"), float("inf")


@edge
def any_and_all_of_no_dims(compile, engine):
    x, y = torch.tensor([[0.0, 1.0], [0.0, 0.0]]), torch.zeros(64, 64)
    y[1, 1] = 1
    out = [compile(lambda x: f(x, dim=()))(x) for f in (torch.any, torch.all)]
    big = compile(lambda x: torch.any(x, dim=()))(y)
    return out, tuple(big.shape), big.sum()


@edge
def reductions_over_no_dims(compile, engine):
    x = torch.arange(6.0).view(2, 3)
    fs = [lambda x: x.sum(dim=()), lambda x: x.mean(dim=()), lambda x: x.amax(dim=()), lambda x: x.amin(dim=()), lambda x: x.var(dim=()),
          lambda x: x.nansum(dim=()), lambda x: torch.logsumexp(x, dim=()), lambda x: x.std(dim=()),
          lambda x: torch.count_nonzero(x, dim=()),
          lambda x: torch.linalg.vector_norm(x, dim=())]

    def plain(f):
        try:
            return f(x).round(decimals=4)
        except Exception as error:
            return type(error).__name__

    return [plain(compile(f)) for f in fs]


@edge
def joins_of_tensors_without_elements(compile, engine):
    """One-dimensional tensors without elements are joined with anything, along any dimension where there is nothing else."""
    empty, x = torch.ones(0), torch.ones(2, 3, 2)
    fs = [lambda: torch.cat([empty, empty], dim=1), lambda: torch.cat([empty, empty.clone() * 2], dim=-1), lambda: torch.cat([x, empty], dim=1),
          lambda: torch.cat([empty, x.exp(), empty], dim=2)]
    return [compile(f)() for f in fs]


@edge
def norms_over_an_extent_of_one(compile, engine):
    x = torch.tensor([[1e30], [1e-30], [-2.0], [0.0]])
    fs = [lambda x: torch.linalg.vector_norm(x, dim=1), lambda x: x.norm(dim=-1), lambda x: torch.nn.functional.normalize(x, dim=1),
          lambda x: x.norm(p=3, dim=1) > 1e20, lambda x: torch.linalg.vector_norm(x[:1])]
    return [compile(f)(x) for f in fs]


@edge
def reductions_over_an_extent_of_one(compile, engine):
    x = torch.tensor([[3.0], [NAN], [INF], [-0.0]])
    fs = [lambda x: x.sum(1), lambda x: x.mean(1), lambda x: x.var(1), lambda x: x.var(1, correction=0), lambda x: x.std(1),
          lambda x: x.amax(1),
          lambda x: x.argmax(1), lambda x: x.prod(1), lambda x: x.logsumexp(1), lambda x: x.softmax(1),
          lambda x: torch.nn.functional.layer_norm(x, (1,))]
    return [compile(f)(x) for f in fs]


@edge
def nan_and_infinities(compile, engine):
    x, v = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0]), torch.tensor([5.0, NAN, 1.0, 7.0, 7.0, 2.0, 2.0])
    fs = [lambda x, v: torch.heaviside(x, v), lambda x, v: torch.maximum(x, v), lambda x, v: torch.fmax(x, v), lambda x,
          v: x.clamp(-v.abs(), v), lambda x, v: x.clamp(-1, 1),
          lambda x, v: torch.nan_to_num(x), lambda x, v: x.sign(), lambda x, v: torch.copysign(v, x), lambda x, v: torch.where(x > 0, x, v),
          lambda x, v: x.relu(),
          lambda x, v: torch.sort(x).values, lambda x, v: x.argmax(), lambda x, v: x.amin(), lambda x, v: x.nansum(), lambda x,
          v: torch.hypot(x, v),
          lambda x, v: torch.logaddexp(x, v).round(decimals=4), lambda x, v: x == v, lambda x, v: torch.isclose(x, v, equal_nan=True),
          lambda x, v: torch.fmod(v, x),
          lambda x, v: torch.remainder(v, x), lambda x, v: v // x, lambda x, v: torch.nn.functional.hardtanh(x), lambda x,
          v: torch.nn.functional.relu6(x)]
    return [compile(f)(x, v) for f in fs]


@edge
def sign_of_zero(compile, engine):
    a, b = torch.tensor([0.0, -0.0]), torch.tensor([-0.0, 0.0])
    fs = [lambda a, b: 1 / torch.maximum(a, b), lambda a, b: 1 / torch.minimum(a, b), lambda a, b: 1 / (a + b), lambda a, b: 1 / a.round(),
          lambda a, b: 1 / torch.clamp(a, min=b), lambda a, b: 1 / a.abs(), lambda a, b: 1 / -a, lambda a, b: 1 / a.relu(), lambda a,
          b: 1 / (a * b)]
    return [compile(f)(a, b) for f in fs]


@edge
def long_columns_are_summed_as_well_as_eager(compile, engine):
    def error(f, x, wanted):
        """Eager's rounding is what it is; ours may be twice that, or a few units in the last place."""
        ours, eagers = (((g(x).double() - wanted) / wanted).abs().max().item() for g in (compile(f), f))
        return ours > max(4e-6, 2 * eagers)

    x = torch.full((16384, 1100), 0.1)
    exact = torch.tensor(0.1).double()
    ramp = torch.linspace(1, 2, 1 << 21)
    results = {"mean of columns": error(lambda x: x.mean(0), x, exact), "sum of columns": error(lambda x: x.sum(0), x, exact * 16384),
               "sum of a long row": error(lambda x: x.sum(), ramp, ramp.double().sum()),
               "variance of a long row": error(lambda x: x.var(), ramp, ramp.double().var()),
               "variance of columns": error(lambda x: x.var(0, correction=0), ramp.view(-1, 1024)[:2048],
                                            ramp.view(-1, 1024)[:2048].double().var(0, correction=0)),
               "norm of columns": error(lambda x: torch.linalg.vector_norm(x, dim=0), x, exact * 128)}
    return [name for name, is_worse in results.items() if is_worse]


@edge
def sum_of_python_floats(compile, engine):
    c = compile(lambda x: x * sum([0.1] * 10))
    return c(torch.ones(1, dtype=torch.float64)).item() == sum([0.1] * 10), compile(lambda x: (x, sum([1e16, 1.0, -1e16])))(torch.ones(1))[1]


@edge
def integers_at_their_ends(compile, engine):
    low, x = torch.iinfo(torch.int32).min, torch.tensor([7, -7, 0, 2 ** 31 - 1, -2 ** 31], dtype=torch.int32)
    fs = [lambda x: x // 3, lambda x: x % -3, lambda x: torch.div(x, 2, rounding_mode="trunc"), lambda x: x.abs(), lambda x: -x,
          lambda x: x + 1, lambda x: x * x,
          lambda x: x.float().to(torch.int64), lambda x: x >> 3, lambda x: x << 1, lambda x: x.to(torch.int8), lambda x: x.to(torch.uint8),
          lambda x: x / 2,
          lambda x: torch.tensor([NAN]).to(torch.bool), lambda x: x.sum(), lambda x: x.to(torch.int16).sum(dtype=torch.int16),
          lambda x: x - low]
    return [compile(f)(x) for f in fs]


@edge
def empty_tensors(compile, engine):
    x = torch.ones(0, 3)
    fs = [lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.mean(0), lambda x: x.prod(1), lambda x: x.any(), lambda x: x.all(0),
          lambda x: x.var(0),
          lambda x: torch.cat([x, torch.ones(2, 3)]), lambda x: x @ torch.ones(3, 2), lambda x: torch.ones(2, 0) @ x,
          lambda x: x.softmax(1), lambda x: x.logsumexp(0),
          lambda x: torch.linalg.vector_norm(x, dim=0), lambda x: x.cumsum(0), lambda x: torch.nn.functional.layer_norm(x, (3,))]
    return [compile(f)(x) for f in fs]


@edge
def deterministic_algorithms_give_the_same_bits(compile, engine):
    torch.use_deterministic_algorithms(True)
    x, i = torch.linspace(0, 1, 1 << 18), torch.arange(1 << 18) % 7
    f, g = compile(lambda x: x.sum()), compile(lambda x: torch.zeros(7).index_add_(0, i, x))
    return f(x) == f(x), torch.equal(g(x), g(x))


@edge
def sixteen_bits_are_one_number_to_all_that_read_them(compile, engine):
    """Statistics and what they are subtracted from or compared with, in one kernel, in several, in backward: rows of one element have no spread, and
    an extreme is equal to one of those that it was taken of."""
    layer_norm, index = torch.nn.functional.layer_norm, torch.zeros(8, dtype=torch.int64)
    fs = [lambda x: layer_norm(x * x * 0.3, (1,)), lambda x: (x * 0.7, layer_norm(x * 0.7, (1,))),
          lambda x: torch.var_mean((x * 1.003 + 100).flatten(), 0, correction=0)[0],
          lambda x: x.new_zeros(1).scatter_reduce(0, index, (x * 0.7 - 0.1).flatten(), "amax", include_self=False),
          lambda x: (x * 0.7 - 0.1).abs().amax(0), lambda x: (x * 0.7).sin().square().max(dim=0)[0],
          lambda x: torch.eq(x * 0.7, (x * 0.7).amax()).sum() + 0 * x.sum()]
    out = []
    for f in fs:
        for dtype in (torch.bfloat16, torch.float16):
            x = (torch.arange(8.0).view(8, 1) / 7 - 0.4).to(dtype).requires_grad_()
            made = compile(f)(x)
            made = made if isinstance(made, tuple) else (made,)
            torch.autograd.backward(made, [torch.ones_like(t) for t in made])
            out.append([t.float().round(decimals=1) + 0.0 for t in (made[-1], x.grad)])
    return out


@edge
def rows_that_rounding_makes_equal_have_no_spread(compile, engine):
    """A row that is returned is rounded; every number made of it is of the rounded one."""
    def shifted(x):
        x = x + 100
        return x, torch.nn.functional.layer_norm(x, x.shape[-1:])

    out = []
    for columns in (6, 40, 600):
        x = (torch.arange(float(columns)) / (columns * 64)).expand(3, columns).to(torch.bfloat16)
        made = compile(shifted)(x)
        out.append((made[0], made[1].round(decimals=1) + 0.0))
    return out


@edge
def sixteen_bits_where_results_jump(compile, engine):
    """What becomes an int, a place in a list, a truth or a whole number is the rounded number, however it gets there."""
    fs = [lambda a, b: (a * 3.1).int(), lambda a, b: (a * 3.1).float().floor(), lambda a, b: (a * 3.1)[::2].reshape(-1).trunc(), lambda a, b: (a * 3.1 + b).argmax(-1),
          lambda a, b: (a * b).relu().topk(3)[1], lambda a, b: a * 3.1 / b > 100, lambda a, b: torch.where(a * b > 5.5, a, b), lambda a, b: (a * 3.1 + b).remainder(3),
          lambda a, b: (a * 1.7).max(-1), lambda a, b: torch.bucketize(a * 1.3, torch.arange(100.0)), lambda a, b: torch.stack([a * 1.1, b * 1.1]).ceil()]
    out = []
    for dtype in (torch.bfloat16, torch.float16):
        generator = torch.Generator().manual_seed(1)
        a, b = (torch.randn(40, 101, generator=generator).mul(size).to(dtype) for size in (1000, 10))
        out += [compile(f)(a, b) for f in fs]
    return out


@edge
def members_of_flags_are_made_of_plain_numbers(compile, engine):
    """They outlive the call that made them."""
    class Way(enum.IntFlag):
        IN, OUT, BACK = 1, 2, 4

    f = compile(lambda x, way: (x + (way & Way.OUT).value, way | Way.IN, Way(way.value | 16)))
    out = [f(torch.ones(2), way) for way in Way]
    return out, [(repr(member), type(member.value) is int) for _, *made in out for member in made]


@edge
def numbers_of_numpy_that_lose_a_part_warn(compile, engine):
    """At the line that makes a real number of a complex one, in every call."""
    import warnings

    import numpy as np
    number = np.complex64(1 + 2j)
    told = []
    for f in map(compile, (lambda x: x * float(number), lambda x: x * int(number), lambda x: x * math.sqrt(number), lambda x: x * number.real)):
        for _ in range(3):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                told.append(f(torch.ones(2)))
            told.append([(str(w.message), w.lineno) for w in said])
    return told


@edge
def numbers_are_no_containers(compile, engine):
    """Whatever stands for a number that changes from call to call, the program may do with it what it may do with the number."""
    def unpacked(v):
        a, b = v

    def stored(v):
        v[0] = 1

    def matched(v):
        match v:
            case [_, _]:
                return 1
            case float() | int():
                return 2

    uses = [lambda v: v[0], lambda v: v[False], lambda v: v[...], lambda v: [*v], lambda v: [a for a in v], len, lambda v: 1 in v, lambda v: v(), list, sum, set,
            lambda v: list(zip(v)), lambda v: [].extend(v), lambda v: torch.ones(3)[v], lambda v: v @ v, lambda v: isinstance(v, torch.Tensor), stored, unpacked, matched]
    out = []
    for use in uses:
        def f(x, v):
            return x * v, use(v)

        c = compile(f)
        out += [raised(c, torch.ones(2), v) for numbers in ((1.5, 2.5, 1.0), (2, 3, 1)) for v in numbers]
    return out


@edge
def numbers_have_no_methods_of_tensors(compile, engine):
    """That is found before the arguments are looked up."""
    def f(x, v):
        return x * v, v.as_subclass(unknown)  # noqa: F821

    c = compile(f)
    return [raised(c, torch.ones(2), v) for numbers in ((1.5, 2.5, 1.0, -0.0), (2, 3, 1)) for v in numbers]


@edge
def parts_of_complex_numbers_that_are_not_finite(compile, engine):
    """Infinities and NaN get where they do in eager, in sums too, whose second term eager multiplies; the rest to a few digits."""
    ends = torch.tensor([0.0, -0.0, 1.0, -1.5, 1e-30, 1e19, 3e38, float("inf"), -float("inf"), float("nan"), 90.0], dtype=torch.float64)
    re, im = (part.reshape(-1) for part in torch.meshgrid(ends, ends, indexing="ij"))
    a, out = torch.complex(re, im), []
    for z, w in ((a, a.flip(0).roll(7)), (a[:5].to(torch.complex64), a[3:8].to(torch.complex64))):
        for use in (lambda z, w: z * w, lambda z, w: z + w, lambda z, w: z - w, lambda z, w: z / w, lambda z, w: 1 / z, lambda z, w: z * (1 - 2j), lambda z, w: 2 - z,
                    lambda z, w: z + w.real, lambda z, w: z.abs(), lambda z, w: z.angle(), lambda z, w: z.sgn(), lambda z, w: z.exp(), lambda z, w: z.conj() * w,
                    lambda z, w: torch.polar(z.real.abs(), w.imag), lambda z, w: z == w, lambda z, w: z.isinf(), lambda z, w: (z * 1).mean()):
            made = compile(use)(z, w)
            parts = torch.view_as_real(made.resolve_conj()) if made.is_complex() else made
            out.append([parts.isnan(), parts.isposinf(), parts.isneginf()] if parts.is_floating_point() else parts)
            if parts.is_floating_point():
                finite = parts[parts.isfinite()]
                out.append([f"{v:.4e}" for v in finite.tolist()] if z is not a else finite.shape)
    return out


@edge
def complex_numbers_between_calls(compile, engine):
    """Where operators stay calls they get the numbers, whatever made them: parts, views of them, conjugates; empty ones too."""
    def f(z, w):
        spectrum = torch.fft.fft(z * w)
        moved = torch.cat([spectrum[:, 1:], w[:, :1]], 1)
        return torch.fft.ifft(moved.conj()), (z @ (w * 2).mT.conj()).real, torch.view_as_real(moved.T * 1j), moved.abs().sum()

    out = []
    for rows, columns in ((4, 6), (1, 5), (3, 1), (7, 33)):
        z, w = (torch.complex(torch.arange(rows * columns * 1.0).reshape(rows, columns) + k, torch.full((rows, columns), 2.0 - k)) for k in (0, 1))
        made = compile(f)(z, w)
        out.append([(m.dtype, m.shape, m.stride(), f"{m.abs().sum().item():.3e}") for m in made])
    out.append(compile(lambda z: (z * 2, (z + 1).abs()))(torch.zeros(0, 3, dtype=torch.complex64)))
    return out

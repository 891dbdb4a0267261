"""numpy's arrays in compiled functions: everything about a result that plain numpy decides."""

import math
import warnings

import numpy as np
import torch

from . import script

TYPES = ("bool", "uint8", "int16", "int32", "int64", "float32", "float64")


class Floats:
    """Values that numpy and torch round each in their way, by a few units in the last place of their type. A plain copy has no such difference."""

    def __init__(self, values):
        self.values = np.array(values)

    def __eq__(self, other):
        a, b = self.values, other.values
        numbers = ~np.isnan(a)
        signs = a.shape == b.shape and np.array_equal(np.signbit(a)[numbers], np.signbit(b)[numbers])
        return bool(signs and np.allclose(a, b, rtol=8 * np.finfo(a.dtype).eps, atol=0, equal_nan=True))

    def __repr__(self):
        return repr(self.values)


def facts(value):
    """What a person can observe of a value of numpy's."""
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [facts(v) for v in value]
    if isinstance(value, np.ndarray):
        flags = value.flags.writeable, value.base is None
        values = Floats(value) if value.dtype.kind == "f" else repr(value.tolist())
        return type(value).__name__, str(value.dtype), value.shape, value.strides, flags, values
    if isinstance(value, np.generic):
        return type(value).__name__, str(value.dtype), Floats(value) if value.dtype.kind == "f" else repr(value.item())
    return type(value).__name__, repr(value)


def shown(value):
    """Tensors as they are, arrays by their facts."""
    return [shown(v) for v in value] if isinstance(value, tuple) else facts(value) if isinstance(value, np.ndarray) else value


def bytes_of(args):
    return [a.tobytes() for a in args if isinstance(a, np.ndarray)]


def outcome(f, *args):
    before = bytes_of(args)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = f(*args)
        except Exception as error:
            result = type(error).__name__, str(error)
        said = [(w.category.__name__, str(w.message)) for w in caught if issubclass(w.category, RuntimeWarning) and not str(w.message).startswith("fusebox")]
    arrays = isinstance(result, np.ndarray)
    shared = [arrays and isinstance(a, np.ndarray) and np.shares_memory(result, a) for a in args]
    kept = [a == b for a, b in zip(before, bytes_of(args))]
    return facts(result), said, shared, [result is a for a in args], [facts(a) for a in args], kept


def array(generator, dtype, shape=(3, 4)):
    return (generator.standard_normal(shape) * 3).astype(dtype)


def layouts(a):
    return a, np.asfortranarray(a), a[::2], a[:, ::-1], a.T, np.broadcast_to(a[0], a.shape)


@script
def arithmetic_of_types(compile):
    @compile
    def f(a, b):
        return a + b, a * 2, b - 1.5, np.maximum(a, b), a > b, np.sqrt(np.abs(b)), a / 3

    g = np.random.default_rng(0)
    return [outcome(f, array(g, s), array(g, t)) for s, t in zip(TYPES, TYPES[2:] + TYPES[:2])]


@script
def layouts_of_arrays(compile):
    @compile
    def f(a):
        return np.exp(a), a.sum(axis=0), a.reshape(-1), a[1:], a.copy(), np.where(a > 0, a, 0), a.mean()

    return [outcome(f, a) for a in layouts(array(np.random.default_rng(1), "float32"))]


@script
def arrays_like_others(compile):
    """Zeros, ones and a value in another array's shape, layout and type, or in another type."""

    @compile
    def f(a, v):
        return np.zeros_like(a), np.ones_like(a, dtype="int64"), np.full_like(a, 3), np.full_like(a, 2.5, dtype=np.dtype("float")), np.full_like(a, v)

    @compile
    def of_data(a):
        b = np.full_like(a, a[0].max(), dtype="float64")
        b += 1
        return b, np.full_like(a, a[0]), a.reshape([a.size]), np.reshape(a, [2, -1])

    g = np.random.default_rng(3)
    out = [outcome(f, array(g, t), v) for t in TYPES for v in (1, 2.7, -3)] + [outcome(of_data, array(g, t)) for t in ("float32", "int64")]
    return out + [outcome(f, a, float("nan")) for a in layouts(array(g, "float32"))] + [outcome(of_data, a) for a in layouts(array(g, "float64", (4, 6)))]


@script
def views_and_writes(compile):
    @compile
    def view(a):
        return a[1:, ::2]

    @compile
    def same(a):
        a += 1
        return a

    @compile
    def out(a, b):
        return np.add(a, 1, out=b)

    g = np.random.default_rng(2)
    results = [outcome(f, a.copy(order="K")) for f in (view, same) for a in layouts(array(g, "float64"))]
    a = array(g, "float32")
    return results, [outcome(out, a, np.zeros(a.shape, t)) for t in ("float32", "float64", "int32")], outcome(out, a, a)


@script
def errors_and_warnings(compile):
    @compile
    def f(a, b):
        return np.log(a) @ b

    g = np.random.default_rng(3)
    a = np.abs(array(g, "float64")) + 1
    return [outcome(f, *args) for args in ((a, a), (a, a.T), (a - a, a.T), (-a, a.T), (a, "text"))]


@script
def scalars(compile):
    @compile
    def f(a):
        return a[0, 1], a.sum(), a.max(), np.float32(2) * a[0, 0], a[0] @ a[1], a.dtype.type(3)

    return [outcome(f, array(np.random.default_rng(4), t)) for t in TYPES[1:]]


@script
def warnings_of_constants(compile):
    """Each call warns as numpy does, under whatever np.errstate there is, also where nothing but constants is computed with."""
    small, large = np.float32(1e-38), np.float32(1e38)

    def product(x):
        return x * float(large * np.float32(10)), np.int8(100) + np.int8(100)

    def function(x):
        return x * float(np.divide(1.0, 0)), np.exp(1000.0), np.float32(1e39)

    def whole(x):
        return x, np.floor_divide(1, 0), -np.int8(-128), abs(np.int8(-128))

    def tiny(x):
        return x, small * small

    def quiet(x):
        return x * float(np.sqrt(2.0)), np.float32(3) * np.float32(4), np.complex64(1j)

    def cut(x):
        return x, np.abs(3 + 4j), np.add(1j, 1, dtype=np.complex64)

    results = []
    for f in (product, function, whole, tiny, quiet, cut):
        g = compile(f)
        for state in ("warn", "ignore", "raise", "warn"):
            with np.errstate(all=state):
                results.append(outcome(g, torch.ones(2)))
    return results


@script
def tensors_and_arrays(compile):
    """Both ways between them, with the memory that they share."""

    @compile
    def read(t):
        return torch.from_numpy(np.sin(t.numpy())) + t, t[1:].numpy() * 2

    @compile
    def write(t):
        a = t.numpy()
        a[0] = 7
        a[1:] += 1
        return t * 2, a

    @compile
    def share(a):
        t = torch.from_numpy(a)
        t.mul_(2)
        return a + 1, t, torch.tensor(a), torch.as_tensor(a, dtype=torch.float64)

    @compile
    def made(a):
        b = a * 2
        t = torch.from_numpy(b)
        t.add_(1)
        return t, b

    @compile
    def kept(t, weight):
        loss = (t * weight).sum()
        a = t.numpy()
        a += 1
        return loss

    @compile
    def both(t, a):
        a += 1
        return t * 2

    def memory():
        return np.arange(12, dtype="float32").reshape(3, 4)

    results = []
    for _ in range(2):
        t, a, b, c = torch.from_numpy(memory()), memory(), memory(), memory()
        results += [shown(v) for v in (read(t), write(t), t, share(a), a, both(torch.from_numpy(b), b), b)]
        weight = torch.ones(3, 4, requires_grad=True)
        kept(torch.from_numpy(memory()), weight).backward()
        results.append(weight.grad)
        t, b = made(c)
        results += [t, facts(b), np.shares_memory(t.numpy(), b)]
    return results


@script
def guards_of_arrays(compile):
    """What is taken for granted of an array that is an argument: type, layout, whether it may be written, and what numpy does at an error."""

    @compile
    def types(a):
        a *= 2
        return np.sqrt(a), a.dtype == np.float32, a.shape, len(a), isinstance(a, np.ndarray)

    @compile
    def states(a):
        a *= 2
        return np.sqrt(a)

    g = np.random.default_rng(5)
    results = [outcome(types, lay.copy(order="K")) for lay in layouts(np.abs(array(g, "float32")))[:3]]
    results += [outcome(types, np.abs(array(g, dtype))) for dtype in ("float64", "int32", "float16", "complex64")]
    frozen = np.abs(array(g, "float32"))
    frozen.flags.writeable = False
    results += [outcome(states, a) for a in (frozen.copy(), frozen, np.zeros((0, 4), "float32"), frozen.view(np.matrix).copy())]
    for state in ("ignore", "warn", "raise", "warn"):
        with np.errstate(all=state):
            results += [outcome(states, np.full((3, 4), v, "float32")) for v in (2, -1, 1e-45, 3e38)]
    return results


@script
def arrays_in_objects(compile):
    """Arrays that are kept, made in a loop, read from globals and attributes, and beside random numbers and gradients."""

    class Store:
        pass

    store, weight = Store(), torch.ones(4, requires_grad=True)
    store.scale = np.arange(4, dtype="float32")

    @compile
    def keep(a):
        store.last = a + store.scale
        return {"parts": [a * i for i in range(3)], "view": store.last[1:]}

    @compile
    def learn(a):
        return (torch.from_numpy(a * store.scale) * weight).sum()

    @compile
    def draw(a):
        return torch.rand(4) + torch.from_numpy(np.log(a))

    g = np.random.default_rng(6)
    results = []
    for k in range(3):
        a = np.abs(array(g, "float32"))
        results += [outcome(keep, a), facts(store.last)]
        loss = learn(a)
        loss.backward()
        results += [loss, weight.grad.clone()]
        torch.manual_seed(k)
        results += [outcome(draw, a), outcome(draw, a * (k - 1)), torch.rand(2)]
        store.scale = store.scale + 1
    return results


@script
def arrays_of_constants(compile):
    """Arrays that numpy makes of numbers, sizes and types."""

    @compile
    def f(t, n):
        a, b = np.linspace(0, 1, n), np.arange(n).astype(np.float32)
        c, d = np.zeros((n,), dtype="float32"), np.full((2, n), 3)
        c[1:] += 2
        return torch.from_numpy(np.sin(t.numpy()) + b + c + a.astype(np.float32)), a, c, d, np.eye(n), np.array([[1, 2.5]] * n), np.arange(n, 0, -1), np.array(t.shape)

    @compile
    def large():
        return np.zeros((300, 300)), np.ones(3, dtype=int), np.array(2.5), np.arange(1e5)[:3], np.zeros((0, 3)), np.arange(3, dtype="int8") + np.int8(1)

    @compile
    def copies(a):
        b = np.asarray(a)
        c, d = np.array(a), np.asarray(a, dtype="float64")
        b += 1
        return a is b, c, d, np.asarray([1, 2]) * a[0, :2], np.ravel(a), np.expand_dims(a, 1), np.expand_dims(a, -1)

    @compile
    def overflows(t):
        return np.array([1e39, 1.0], dtype="float32"), t

    results = [[shown(v) for v in f(torch.ones(n), n)] for n in (4, 4, 5)] + [outcome(large), outcome(large)]
    g = np.random.default_rng(7)
    return results, [outcome(copies, array(g, t)) for t in TYPES[1:]], [outcome(overflows, torch.ones(2)) for _ in range(3)]


def numbers(compile, dtype):
    """Numbers that numpy makes of data: their types, arithmetic with arrays, tensors and Python's numbers, and what numpy warns of."""

    @compile
    def reduced(a):
        return a.sum(), a.max(), a[0, 1], np.mean(a), a.argmin(), a.any(), a[0].dot(a[1]), np.linalg.norm(a), a.max().item(), float(a.min()), int(a.max())

    @compile
    def computed(a):
        low, high = a.min(), a.max()
        span = high + high - low
        scaled = (a - low) / span
        return scaled, span * 2, 2.5 * span, span + np.float64(1), np.int8(1) + span, span > 3, -span, abs(low), np.sqrt(span), np.array([low, high]), span.dtype, span.shape

    @compile
    def typed(a):
        s = a.mean()
        return isinstance(s, float), isinstance(s, np.floating), type(s).__name__, s is s, s.astype("float32"), np.float32(s), np.where(a > s, a, s), bool(s), not s

    @compile
    def written(a):
        a[0, 0] = a.max()
        a[a < 0] = 0
        a //= 2
        return a.std(), a.cumsum(0), np.sort(a), a % 3

    @compile
    def checked(a):
        if a.max() > 100:
            raise ValueError("too large")
        return a / a.max()

    @compile
    def beside(a, t):
        s = a.max()
        return t * s, s * t, t - a[0, 0], s / t, torch.tensor(s)

    @compile
    def shown_number(a):
        s = a.mean()
        return f"{s:.2f}", max(s, 1), math.sqrt(abs(a.max())), [1, 2, 3][a.argmax() % 3], {a.argmax(): 1}

    @compile
    def wide(a):
        return a.max() * a.max() + a.max(), -a.min(), abs(a.min()), a.max() - a.min(), a.argmax() // a.max(), a.max() ** a[0, 0]

    g, results = np.random.default_rng(8), []
    for k in range(2):
        for f in (reduced, computed, typed, written, checked, shown_number):
            results.append(outcome(f, np.abs(array(g, dtype)) + 1 if f is not written else array(g, dtype)))
        results.append([shown(v) for v in beside(np.abs(array(g, dtype)), torch.rand(3, generator=torch.Generator().manual_seed(8)) + 1)])
    ends = (np.finfo if dtype[0] == "f" else np.iinfo)(dtype)
    for values in ([1, 2, 3, 4], [ends.max, 1, 1, 2], [ends.min, 1, 1, 1], [0, 0, 0, 0]):
        a = np.array(values, dtype=dtype).reshape(2, 2)
        results += [outcome(wide, a), outcome(checked, a)]
    return results


@script
def numbers_of_integers(compile):
    return numbers(compile, "int16")


@script
def numbers_of_floats(compile):
    return numbers(compile, "float32")


@script
def grids(compile):
    @compile
    def f(a, b, n):
        rows, columns = np.meshgrid(a, np.linspace(0, 1, n))
        planes = np.meshgrid(a, b, a[:2], indexing="ij")
        rows += columns
        rows *= np.full(rows.shape, 3.0) - np.ones(rows.shape[1]) + np.eye(*rows.shape)
        return rows.tolist(), (planes[0] * planes[2]).tolist(), [p.strides for p in planes], np.meshgrid(b)[0].tolist(), type(planes) is type(np.meshgrid(b))

    return [f(np.arange(k) / 2, np.arange(2.0 * k).reshape(2, k), k + 1) for k in (3, 3, 4)]


@script
def rows_one_after_the_other(compile):
    def go(a, t):
        sums = [row.sum() for row in a]
        for i, row in enumerate(a[:-1]):
            a[i + 1] += row  # the next row is read as it is by then
        first, *rest = a
        running = [x * 2 for x in a[0]]
        return sums, first.real + 1, len(rest), running, t.numpy(force=True) * 2, a

    run, seen = compile(go), []
    for n in (3, 3, 4):
        rng = np.random.default_rng(n)
        sums, first, count, running, forced, a = run(rng.random((n, 2)), torch.ones(n, requires_grad=n == 3))
        seen.append([[float(s) for s in sums], first.tolist(), count, [float(r) for r in running], forced.tolist(), a.tolist(), type(running[0])])
    return seen


@script
def arrays_of_tensors(compile):
    """Functions of numpy that take a tensor for the array of its values."""

    @compile
    def f(x, a):
        joined = np.concatenate([x, a])
        return np.ones_like(x, dtype=np.float64), np.stack([x, x]) * a, joined.sum(axis=0), np.where(a > 1, a, x), np.asarray(x) + 1

    x = torch.randn(3, 4)
    return shown(f(x, x.numpy() * 2)), shown(f(x + 1, x.numpy() - 2))


@script
def ufuncs_of_tensors(compile):
    """A ufunc makes an array of a tensor, and a tensor of what it gives; numpy says each time that it would like to say more to torch."""

    @compile
    def f(x, y, a):
        made = np.exp(x), np.add(x, 2), np.greater(x, a), np.maximum(y, x), np.isnan(x[0, 0]), np.sqrt(y[0, 0])
        made[0].add_(1)
        return made

    @compile
    def refused(x):
        try:
            return np.sin(x.requires_grad_())
        except RuntimeError as error:
            return str(error)

    def said(f, *args):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = f(*args)
        return result, [str(w.message) for w in caught if w.category is DeprecationWarning]

    out = [said(f, torch.randn(n, 3), torch.rand(n, 3).double(), np.ones(3)) for n in (4, 4, 5)]
    return out, refused(torch.ones(2))


@script
def spectra(compile):
    @compile
    def f(a):
        spectrum = np.fft.rfft(a)
        return np.abs(spectrum), spectrum.real, spectrum.imag, np.fft.irfft(spectrum * np.conj(spectrum)), np.fft.fftshift(a), a.imag

    a = np.arange(12.0).reshape(3, 4)
    return [(v.dtype, v.shape, v.strides, (np.round(v, 6) + 0.0).tolist()) for given in (a, a - 3) for v in f(given)]

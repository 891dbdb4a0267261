"""Numbers of numpy's that change between calls are values of the graph or symbols, whatever is done with them: two graphs, whose results are eager's."""

import math

import numpy as np
import torch

import fusebox
import fusebox._engine_access  # noqa: F401
from checks.script_checks import expect, run

X = torch.arange(60.0 * 7) / 7 - 20


def below(x, n):
    return x + 1 if n * 2 + 1 < 100 else x - 1


def steps(x, n):
    return x * (n ** 2 // 3 % 5) + (-n) / 2


def kept(x, n):
    return x[:3] * n, n + 1, n * 2.5, type(n)


class Holder:
    def __init__(self, n):
        self.n = n


BOTH = {
    "condition": below, "exponent": lambda x, n: x.abs() ** n, "clamp": lambda x, n: x.clamp(max=n), "filled": lambda x, n: torch.full_like(x, n),
    "compared": lambda x, n: x > n, "chosen": lambda x, n: torch.where(x > n, x, 0.0), "alpha": lambda x, n: torch.add(x, x, alpha=n), "int": lambda x, n: x * int(n),
    "float": lambda x, n: x * float(n), "larger": lambda x, n: x * max(n, 2), "divided": lambda x, n: x // n, "steps": steps, "kept": kept,
    "slope": lambda x, n: torch.nn.functional.leaky_relu(x, n), "tensor": lambda x, n: x + torch.tensor(n), "text": lambda x, n: (x + 1) * n if n else x,
}
INTS = {
    "size": lambda x, n: torch.ones(n) * x.sum(), "index": lambda x, n: x[n] * 2, "slice": lambda x, n: x[:n] * 2, "both": lambda x, n: x.view(-1, 6)[1:n, n - 3],
    "view": lambda x, n: x.view(n, -1).sum(0), "arange": lambda x, n: torch.arange(n) + x.sum(), "repeat": lambda x, n: x.repeat(n), "roll": lambda x, n: x.roll(n, 0),
}
VALUES = {np.int64: (3, 4, 5, 6, 7), np.int32: (3, 4, 5, 6, 7), np.float64: (3.5, 4.25, 5.5, 6.125, 7.0)}


def graphs(f, calls, of=lambda v: v, wholly=True):
    fusebox.reset()
    compiled, before = fusebox.compile(f), fusebox.counters()
    for v in calls:
        got, expected = compiled(X, of(v)), f(X, of(v))
        for a, b in zip(got, expected) if isinstance(expected, tuple) else [(got, expected)]:
            same = torch.allclose(a, b, rtol=1e-6) and a.dtype == b.dtype if isinstance(b, torch.Tensor) else repr(a) == repr(b)
            expect(same, f"{v!r}: {a!r} where eager gives {b!r}"[:300])
    now = fusebox.counters()
    if wholly:
        expect(now["graph_breaks"] == before["graph_breaks"] and now["eager_runs"] == before["eager_runs"], "there were breaks")
    return now["graphs"] - before["graphs"]


def test_ufuncs_of_tensors():
    def f(x, n):
        return np.sin(x), np.add(x, n), np.greater(x, np.zeros(60 * 7)), np.isnan(x[0]), np.cos(x[1])

    expect(graphs(f, (2.0, 2.0)) == 1, "they are no one graph")


def test_whatever_is_done():
    for kind, values in VALUES.items():
        for name, f in (BOTH if kind is np.float64 else BOTH | INTS).items():
            made = graphs(f, [kind(v) for v in values])
            expect(made == 2, f"{name} of {kind.__name__}: {made} graphs")


def test_a_backend_gets_ints():
    given = []
    def backend(module, inputs):
        return lambda *args: given.append([type(a) for a in args if not isinstance(a, torch.Tensor)]) or module(*args)
    fusebox.reset()
    f = fusebox.compile(lambda x, n: x.clamp(max=n) + torch.ones(n).sum(), backend=backend)
    for n in 3, 4, 5, 6:
        expect(torch.equal(f(X, np.int64(n)), X.clamp(max=n) + n), f"another result for {n}")
    expect(given == [[], [int], [int], [int]], f"the graphs were given {given}")


def test_a_tensor_beside_an_array():
    for backend in "aot_eager", lambda module, inputs: module.forward:
        for f in (lambda x, a: x + a), (lambda x, a: x * a), (lambda x, a: x - a):
            fusebox.reset()
            a = np.arange(4.0)
            got = fusebox.compile(f, backend=backend)(X[:4], a)
            expect(torch.equal(got, f(X[:4], a)), "a tensor beside an array gives another result")


def test_conditions_hold():
    made = graphs(below, [np.int64(v) for v in (3, 4, 60, 70, 5, 80)])
    expect(made == 3, f"{made} graphs, where both sides of a condition make three")


def test_attributes():
    made = graphs(lambda x, h: x.clamp(max=h.n), [np.float64(v) for v in (1.5, 2.5, 3.5)], Holder)
    expect(made == 2, f"{made} graphs")


def test_other_types_are_others():
    for first, *others in ([np.int64(3), np.int64(4), 5, 6.5, np.float64(7.5)], [np.float64(1.5), np.float64(2.5), 3.5, np.int64(4), True]):
        graphs(lambda x, n: (x.clamp(max=n), type(n)), [first, *others, first])


class Running:
    """Moments of all that was seen, as environments keep them."""

    def __init__(self):
        self.mean, self.var, self.count = np.zeros(4), np.ones(4), 1e-4

    def update(self, x):
        n = len(x)
        away, total = x.mean(0) - self.mean, self.count + n
        self.mean = self.mean + away * n / total
        self.var = (self.var * self.count + x.var(0) * n + away**2 * self.count * n / total) / total
        self.count = total


HOP, RATE = np.prod([2, 4]), np.float64(2.5)


def test_sizes_beside_numbers_of_numpy():
    """What codecs make of a length and the product of their rates."""
    def padded(x):
        n = x.shape[-1]
        return torch.nn.functional.pad(x, (0, math.ceil(n / HOP) * HOP - n)) * 2

    def numbers(x):
        n = x.shape[0]
        made = [n * HOP, n / HOP, HOP - n, n % HOP, n // HOP, n * RATE, round(n / HOP), math.floor(-n * RATE), math.trunc(n * RATE), math.ceil(n * HOP), int(n * RATE), n < HOP * 99]
        return x.sum(), made, [type(v) for v in made]

    programs = {
        "padded": (padded, 2), "whole": (lambda x: x[: x.shape[0] // HOP * HOP].reshape(-1, int(HOP)).mean(-1), 3), "scaled": (lambda x: x * (x.shape[0] * HOP), 2),
        "sized": (lambda x: torch.zeros(HOP + x.shape[0]) + x.sum(), 2), "decided": (lambda x: x + 1 if x.shape[0] > HOP else x - 1, 2), "numbers": (numbers, 2),
        "least": (lambda x: x[: min(x.shape[0], HOP * 99)] * 2, 2), "denied": (lambda x: (x * 2, not x.shape[0] * HOP, not HOP), 2),
    }
    for name, (f, most) in programs.items():
        fusebox.reset()
        compiled, before = fusebox.compile(f), fusebox.counters()["graphs"]
        for n in 101, 109, 112, 130, 143, 160:
            x = torch.arange(float(n))
            got, wanted = compiled(x), f(x)
            same = got[1:] == wanted[1:] and torch.allclose(got[0], wanted[0]) if isinstance(got, tuple) else torch.allclose(got, wanted)
            expect(same, f"{name} of {n}: {got} where eager gives {wanted}")
        made = fusebox.counters()["graphs"] - before
        expect(made <= most, f"{name}: {made} graphs")


def test_draws_up_to_what_changes():
    class Buffer:
        filled = 20

    def draw(buffer, n):
        buffer.filled += 1
        return np.random.randint(0, buffer.filled, size=4), np.random.uniform(n, buffer.filled, 3), np.random.randint(low=0, high=n, size=2), torch.ones(2) * buffer.filled

    fusebox.reset()
    compiled, before, mine, eager = fusebox.compile(draw), fusebox.counters()["graphs"], Buffer(), Buffer()
    for n in range(3, 13):
        np.random.seed(n)
        got, after = compiled(mine, n), np.random.rand()
        np.random.seed(n)
        expect(all(np.array_equal(a, b) for a, b in zip(got, draw(eager, n))) and after == np.random.rand(), f"other draws for {n}")
    made = fusebox.counters()["graphs"] - before
    expect(made <= 3, f"{made} graphs")


def test_floats_beside_arrays():
    """A float of Python's that changes takes its type from the array."""
    beside = {
        "added": lambda a, v: a + v, "to": lambda a, v: v - a, "divided": lambda a, v: v / a, "power": lambda a, v: a**v, "of": lambda a, v: v**a, "compared": lambda a, v: a > v,
        "rest": lambda a, v: a % v, "chosen": lambda a, v: np.where(a > v, a, v), "clipped": lambda a, v: np.clip(a, None, v), "filled": lambda a, v: np.full_like(a, v),
        "function": lambda a, v: np.hypot(v, a), "written": lambda a, v: np.add(a, v, out=np.zeros(a.shape, a.dtype)), "summed": lambda a, v: (a * v).sum(),
        "number": lambda a, v: a[0, 0] * v,
    }
    for kind in np.float32, np.float64:
        for name, f in beside.items():
            fusebox.reset()
            compiled, before = fusebox.compile(f), fusebox.counters()["graphs"]
            for v in 0.5, 1.25, 2.5, 3.5, 7.75:
                a = np.arange(1, 13, dtype=kind).reshape(3, 4) / 4
                got, wanted = compiled(a.copy(), v), f(a.copy(), v)
                expect(type(got) is type(wanted) and got.dtype == wanted.dtype and np.allclose(got, wanted, rtol=1e-6), f"{name} of {kind.__name__} and {v}: another result")
            made = fusebox.counters()["graphs"] - before
            expect(made == 2, f"{name} of {kind.__name__}: {made} graphs")
    ints = fusebox.compile(lambda a, v: np.full_like(a, v))
    for v in 1.5, 2.5, 3.5:
        expect(ints(np.arange(3), v).tolist() == [int(v)] * 3, f"ints of {v}")


def test_what_torch_does_not_take():
    """An array that is seen backwards."""
    said = []
    for f in (f := lambda a: torch.tensor(a[::-1]) * 2), fusebox.compile(f):
        try:
            f(np.arange(3.0))
        except ValueError as error:
            said.append(str(error))
    expect(len(said) == 2 and said[0] == said[1], f"{said}")


def test_places_that_change():
    """So many elements from a place on that changes are the same view: it is read, written, given to tensors, and shares the memory of its array."""
    def written(places, x, s):
        places[s] = -7
        places[s + 1:s + 3] += 10
        return places[s:s + 4].sum()

    programs = {
        "slice": lambda places, x, s: places[s:s + 16], "tensor": lambda places, x, s: x[places[s:s + 16]], "number": lambda places, x, s: places[s] * 2,
        "from_the_end": lambda places, x, s: places[-s], "of_rows": lambda places, x, s: places.reshape(40, 10)[s:s + 3, 1:],
        "of_columns": lambda places, x, s: places.reshape(4, 100)[:, s], "shared": lambda places, x, s: torch.from_numpy(places[s:s + 2]).add_(1),
        "batches": lambda places, x, s: sum(x[places[k + s:k + s + 8]].sum() for k in range(0, 32, 8)), "written": written,
    }
    for name, f in programs.items():
        fusebox.reset()
        compiled, before = fusebox.compile(f), fusebox.counters()
        for s in (3, 5, 9, 30, 17, 8, 21, 4, 6, 7, 11, 2):
            given, other, x = np.arange(400), np.arange(400), torch.randn(500, 3)
            got, wanted = compiled(given, x, s), f(other, x, s)
            expect(type(got) is type(wanted) and np.allclose(np.asarray(got), np.asarray(wanted), rtol=1e-4), f"{name} at {s}: {got!r} where eager gives {wanted!r}"[:300])
            expect((given == other).all(), f"{name} at {s}: another array afterwards")
            if isinstance(got, np.ndarray):
                expect(got.strides == wanted.strides and np.shares_memory(got, given), f"{name} at {s}: no view of the array")
        now = fusebox.counters()
        expect(now["graphs"] - before["graphs"] == 2 and now["recompile_limits"] == before["recompile_limits"], f"{name}: {now['graphs'] - before['graphs']} graphs")
    for f in (lambda places, s: places[s:], lambda places, s: places[s:s + 16:2], lambda places, s: places[s - 8:s + 8]):
        compiled = fusebox.compile(f)
        for s in (9, 12, 5, 7, 398, 15):  # how many there are changes, or it goes over an end
            got, wanted = compiled(np.arange(400), s), f(np.arange(400), s)
            expect(got.tolist() == wanted.tolist(), f"{s}: {got.tolist()[:5]} where eager gives {wanted.tolist()[:5]}")


def test_moments():
    fusebox.reset()
    mine, wanted, before = Running(), Running(), fusebox.counters()["graphs"]
    update = fusebox.compile(Running.update)
    for k in range(12):
        x = np.random.default_rng(k).normal(size=(8, 4))
        update(mine, x), wanted.update(x)
        expect(np.allclose(mine.mean, wanted.mean) and np.allclose(mine.var, wanted.var) and mine.count == wanted.count, f"other moments after {k + 1} steps")
    made = fusebox.counters()["graphs"] - before
    expect(made == 2, f"{made} graphs")


def test_overflow_is_eagers():
    graphs(lambda x, n: (x[:2] * (n + n > 4), n * 2), [np.int64(3), np.int64(4), np.int64(2**62)], wholly=False)


if __name__ == "__main__":
    run(globals())

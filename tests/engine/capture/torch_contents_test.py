"""Called functions that have nothing to do with torch are CPython's where they are not part of a caller's capture; those that may have are captured."""

import os

import numpy
import torch

import fusebox
import fusebox._engine_access  # noqa: F401
from checks.script_checks import expect, run

LAYER = torch.nn.Linear(4, 4)


def numbers(n):
    draws = numpy.random.default_rng(0).integers(1, 3, n).tolist()  # a break
    table = numpy.zeros((n, 2))
    for i, d in enumerate(draws):
        table[i, d % 2] = max(int(d * 1.5), 1)
    return table


class Box:
    def __init__(self, value):
        self.value = value


def places(f, *args):
    """Functions that something was compiled of."""
    fusebox.reset()
    expected = f(*args)
    before = len(fusebox._engine.events_since(0))
    got = fusebox.compile(f, backend="aot_eager")(*args)
    expect(repr(got) == repr(expected), f"{f.__name__}: {got!r} where eager gives {expected!r}")
    return {e["function"] for e in fusebox._engine.events_since(before) if e["kind"] == "compiled"}


def test_numbers_are_left_to_python():
    def f(x):
        return x * torch.from_numpy(numbers(3)).sum()
    expect(places(f, torch.ones(2)) == {"f"}, "a function of numbers was captured in pieces")


def test_what_was_asked_for_is_captured():
    expect(places(numbers, 3) == {"numbers"}, "the function itself was not captured")


def test_anything_of_torch_is_captured():
    def argument(x):
        open(os.devnull).close()  # a break
        return x + 1
    def inside(box):
        open(os.devnull).close()  # a break
        return box.value["a"][0] + 1
    def named(n):
        open(os.devnull).close()  # a break
        return torch.ones(n)
    def comprehension(n):
        open(os.devnull).close()  # a break
        return [torch.ones(i) for i in range(n)]
    def of_module(n):
        open(os.devnull).close()  # a break
        return LAYER.weight[n]
    def bound(method):
        open(os.devnull).close()  # a break
        return method()
    def iterated(values):
        open(os.devnull).close()  # a break
        return next(values) + 1
    x = torch.ones(2)
    for inner, make in (argument, lambda: x), (inside, lambda: Box({"a": [x]})), (named, lambda: 3), (comprehension, lambda: 3), (of_module, lambda: 1), \
            (bound, lambda: x.sum), (iterated, lambda: iter([x])):
        def f(given):
            return inner(given)
        compiled = places(lambda: f(make()))
        expect(inner.__name__ in compiled, f"{inner.__name__} was not captured, only {sorted(compiled)}")


if __name__ == "__main__":
    run(globals())

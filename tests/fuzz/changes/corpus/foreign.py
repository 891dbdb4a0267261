"""C code that calls Python back: conversions, comparisons, formatting, custom functions, hooks."""

import abc
import dataclasses
import functools
import math
import operator
from typing import Protocol, runtime_checkable

import torch


class Number:
    def __init__(self, v):
        self.v = v

    def __float__(self):
        return float(self.v)

    def __index__(self):
        return int(self.v)

    def __bool__(self):
        return self.v > 0

    def __str__(self):
        return f"<{self.v}>"

    def __repr__(self):
        return f"N({self.v})"

    def __format__(self, spec):
        return f"{self.v}{spec}"

    def __eq__(self, other):
        return isinstance(other, Number) and self.v == other.v

    def __hash__(self):
        return int(self.v)

    def __lt__(self, other):
        return self.v < other.v

    def __add__(self, other):
        return other * self.v

    def __radd__(self, other):
        return other + self.v

    def __call__(self, x):
        return x * self.v

    def __len__(self):
        return abs(int(self.v))

    def __iter__(self):
        return iter(range(len(self)))

    def __contains__(self, item):
        return item == self.v

    def __getitem__(self, key):
        return self.v * key

    def __abs__(self):
        return abs(self.v)


class typed_property(property):
    pass


@runtime_checkable
class HasScale(Protocol):
    scale: float


class Base(abc.ABC):
    @abc.abstractmethod
    def run(self, x):
        ...


class Impl(Base):
    k = 2.0

    @typed_property
    def scale(self):
        return self.k

    @functools.cached_property
    def once(self):
        return self.k + 1

    def run(self, x):
        return x * self.scale + self.once


def world_conversions():
    n = Number(2)

    def f(x):
        return (x * math.sqrt(n), x * float(n), x + int(n), x[n], [1.0, 2.0, 3.0, 4.0][n], x * abs(n), x * operator.index(n),
                list(range(n)),
                x * (2 if n else 3), n(x), n + x, len(n))
    return f, (torch.arange(5.0),)


def world_formats():
    n = Number(1)

    def f(x):
        return x + 1, "%s" % n, "%r" % (n,), "{}".format(n), f"{n:x}", repr([n]), str((n,)), str({"k": n}), f"{n!s} {n!r}", "{k}".format(k=n), ",".join(map(str, [n]))
    return f, (torch.ones(1),)


def world_comparisons():
    a, b = Number(1), Number(2)
    items, pair, d = [Number(1), Number(3)], (1, Number(2)), {"k": Number(1)}

    def f(x):
        return (x * (2 if items == [Number(1), Number(3)] else 3), pair == (1, Number(2)), d == {"k": Number(1)}, a in items,
                items.count(a), sorted(items + [b])[0].v,
                max(a, b).v, min(items).v, a == b, {a: 1}.get(Number(1)), a != b, [a, b] < [b, a])
    return f, (torch.ones(1),)


def world_iteration_protocol():
    n = Number(3)

    def f(x):
        return x + sum(n), [*n], n[2], 3 in n, list(zip(n, n)), tuple(enumerate(n)), dict.fromkeys(n, 1), set(n), max(n, default=0), all(n), any(n)
    return f, (torch.ones(1),)


def world_properties():
    o = Impl()

    def f(x):
        return o.run(x), isinstance(o, HasScale), isinstance(o, Base), hasattr(o, "other"), o.scale
    return f, (torch.ones(2),)


SCALE, LOG = [2.0], []


def world_custom_function():
    factor = {"k": 3.0}

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k=1.0):
            LOG.append("forward")
            ctx.save_for_backward(x)
            ctx.k = k
            return x * SCALE[0] * k

        @staticmethod
        def backward(ctx, g):
            LOG.append("backward")
            return g * factor["k"] * ctx.k, None

    def f(x, k):
        return Scaled.apply(x, k).sum(), LOG[-2:]
    return f, (torch.ones(2, requires_grad=True), 2.0)


def world_hooks():
    seen = []
    w = torch.ones(2, requires_grad=True)
    w.register_hook(lambda g: seen.append(1) or g * 2)

    def f(x):
        y = x * w
        y.register_hook(lambda g: seen.append(2))
        return y.sum(), len(seen)
    return f, (torch.ones(2),)


@dataclasses.dataclass
class State:
    step: int = 0
    best: float = float("inf")
    last: torch.Tensor = None
    history: list = dataclasses.field(default_factory=list)


def world_state():
    state = State()

    def f(x, lr):
        state.step += 1
        loss = (x * lr).sum()
        state.last = loss.detach()
        if state.step % 2 == 0:
            state.history.append(state.step)
        return loss, state, state.best > 1
    return f, (torch.ones(3, requires_grad=True), 0.1)


def world_sentinels():
    missing = object()

    def f(x, value=missing, kind=None):
        if value is missing:
            return x, "missing"
        return x * 2, type(value).__name__, kind, value == 1, value is True, isinstance(value, int), bool(value)
    return f, (torch.ones(1), 1), {"kind": "k"}

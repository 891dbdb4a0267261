"""C code that calls Python back: conversions, comparisons, formatting, autograd.Function."""

import dataclasses
import math
import operator
import sys
import warnings

import torch

from . import edge, raised


@edge
def comparing_containers_of_objects(compile, engine):
    @dataclasses.dataclass
    class Item:
        v: int

    a, b, c, d = (1, Item(1)), (1, Item(1)), {"k": Item(1)}, {"k": Item(1)}
    items = [Item(1)]
    fs = [compile(lambda x: x * 2 if items == [Item(1)] else x * 3), compile(lambda x: x * 2 if a == b else x * 3),
          compile(lambda x: x * 2 if c == d else x * 3), compile(lambda x: x * 2 if Item(1) in items else x * 3),
          compile(lambda x: x * items.count(Item(1))), compile(lambda x: x * 2 if a < (1, Item(9), 3) and a != b else x * 3)]
    x = torch.ones(1)
    Item.__lt__ = lambda self, other: self.v < other.v
    out = [f(x) for f in fs]
    items[0].v = a[1].v = c["k"].v = 7
    return out + [f(x) for f in fs]


@edge
def numbers_made_of_objects(compile, engine):
    class Number:
        v = 1

        def __float__(self):
            return float(self.v)

        def __index__(self):
            return self.v

        def __abs__(self):
            return self.v

        def __round__(self, digits=None):
            return self.v

        def __divmod__(self, other):
            return self.v, other

    n, x, items = Number(), torch.tensor([1.0, 2.0, 3.0, 4.0]), [0.0, 1.0, 2.0, 3.0]
    fs = [lambda x: x * math.sqrt(n), lambda x: x * int(n), lambda x: x * float(n), lambda x: x * x[n], lambda x: x * items[n],
          lambda x: x * abs(n), lambda x: x * round(n), lambda x: x * divmod(n, 5)[0], lambda x: x * len(range(n)),
          lambda x: x * operator.index(n), lambda x: x[:n].sum() * x, lambda x: torch.zeros(n).numel() + x, lambda x: x * math.hypot(n, 0),
          lambda x: x * bin(n).count("1"), lambda x: x * complex(n).real, lambda x: x * len(bytes(n)), lambda x: x * sum([n, 1][1:], n.v)]
    compiled = [compile(f) for f in fs]
    out = [f(x) for f in compiled]
    n.v = 3
    return out, [f(x) for f in compiled]


@edge
def text_made_of_objects(compile, engine):
    class Named:
        v = "1"

        def __str__(self):
            return self.v

        def __repr__(self):
            return self.v

        def __format__(self, spec):
            return self.v + spec

    n, x = Named(), torch.ones(1)
    table = {"1": 1.0, "3": 3.0, "[1]": 1.0, "[3]": 3.0, "1x": 1.0, "3x": 3.0, "(1,)": 1.0, "(3,)": 3.0, "{'k': 1}": 1.0, "{'k': 3}": 3.0}
    fs = [lambda x: x * table["%s" % n], lambda x: x * table["%r" % n], lambda x: x * table["{}".format(n)], lambda x: x * table[f"{n:x}"],
          lambda x: x * table[repr([n])], lambda x: x * table[str((n,))], lambda x: x * table[str(n)], lambda x: x * table[f"{n!r}"],
          lambda x: x * table[format(n, "x")], lambda x: x * table["{0.v}".format(n)], lambda x: x * table["".join([str(n)])],
          lambda x: x * table["%(k)s" % {"k": n}], lambda x: x * table[f"{ {'k': n} }"], lambda x: x * table["{k}".format_map({"k": n})]]
    compiled = [compile(f) for f in fs]
    out = [f(x) for f in compiled]
    n.v = "3"
    return out, [f(x) for f in compiled]


@edge
def sorting_and_folding_with_python_comparisons(compile, engine):
    @dataclasses.dataclass(order=True)
    class Item:
        v: int

    a, b = Item(1), Item(2)
    fs = [lambda x: x * sorted([a, b])[0].v, lambda x: x * max(a, b).v, lambda x: x * min([a, b]).v, lambda x: x * [a, b].index(Item(2)),
          lambda x: x * max([a, b], key=lambda i: -i.v).v]
    x = torch.ones(1)
    compiled = [compile(f) for f in fs]
    out = [f(x) for f in compiled]
    a.v = 2
    b.v = 1
    return out, [compile(f)(x) for f in fs[:3]], [f(x) for f in compiled[:3] + compiled[4:]]


@edge
def truth_and_length_of_objects(compile, engine):
    class Sized:
        n = 0

        def __len__(self):
            return self.n

        def __iter__(self):
            return iter(range(self.n))

        def __contains__(self, item):
            return item < self.n

    s, x = Sized(), torch.ones(1)
    fs = [lambda x: x * 2 if s else x * 3, lambda x: x * 2 if any([s]) else x * 3, lambda x: x * 2 if not s else x * 3,
          lambda x: x + len(s),
          lambda x: x + sum(s), lambda x: x + len(list(s)), lambda x: x * 2 if 1 in s else x,
          lambda x: x * 2 if list(filter(None, [s])) else x,
          lambda x: x + len({*s}), lambda x: x + max([0, *s])]
    compiled = [compile(f) for f in fs]
    out = [f(x) for f in compiled]
    s.n = 4
    return out, [f(x) for f in compiled]


SCALE, LOG = 2.0, []


@edge
def function_that_reads_globals(compile, engine):
    global SCALE

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            LOG.append("forward")
            return x * SCALE

        @staticmethod
        def backward(ctx, g):
            LOG.append("backward")
            return g * SCALE

    c, x = compile(lambda x: Scale.apply(x).sum()), torch.ones(2, requires_grad=True)
    out = []
    for SCALE in (2.0, 3.0, 2.0):
        x.grad = None
        y = c(x)
        y.backward()
        out += [y, x.grad.clone()]
    return out, LOG


@edge
def function_with_a_scale_changed_before_backward(compile, engine):
    scale = [2.0]

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * scale[0]

    c, x = compile(lambda x: Scale.apply(x).sum()), torch.ones(2, requires_grad=True)
    y = c(x)
    scale[0] = 5.0
    y.backward()
    z = c(x)
    scale[0] = 7.0
    z.backward()
    return x.grad


@edge
def function_that_reads_a_module_through_its_context(compile, engine):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, module):
            ctx.module = module
            return x * module.k

        @staticmethod
        def backward(ctx, g):
            ctx.module.calls += 1
            return g * ctx.module.k, None

    class Quantised(torch.nn.Module):
        k, calls = 2.0, 0

        def forward(self, x):
            return Scale.apply(x, self).sum()

    module, x, out = Quantised(), torch.ones(2, requires_grad=True), []
    c = compile(module)
    for i in range(3):
        module.k, x.grad = 2.0 + i, None
        y = c(x)
        y.backward()
        out += [y, x.grad.clone(), module.calls]
    return out


@edge
def function_with_print_and_random(compile, engine):
    class Noisy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            print("forward", tuple(x.shape))
            noise = torch.rand(2)
            ctx.save_for_backward(noise)
            return x + noise

        @staticmethod
        def backward(ctx, g):
            print("backward")
            return g * ctx.saved_tensors[0]

    c, x = compile(lambda x: Noisy.apply(x) * 2), torch.ones(2, requires_grad=True)
    torch.manual_seed(0)
    out = []
    for _ in range(2):
        y = c(x)
        y.sum().backward()
        out.append(y.detach())
    return out, x.grad, torch.rand(1)


@edge
def descriptors_written_in_python(compile, engine):
    class Described:
        def __get__(self, instance, owner):
            return instance.k * 2

        def __set__(self, instance, value):
            instance.k = value

        def __delete__(self, instance):
            instance.k = -1.0

    class Holder:
        d = Described()
        k = 1.0

    h, x = Holder(), torch.ones(1)

    def f(x):
        y = x * h.d
        h.d = h.k + 1
        return y

    def g(x):
        del h.d
        return x * h.k

    c, e = compile(f), compile(g)
    out = [c(x), h.k, c(x), h.k, e(x), h.k]
    h.k = 5.0
    return out + [c(x), h.k]


@edge
def keys_that_note_that_they_are_hashed(compile, engine):
    log = []

    class Key:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            log.append(("equal", self.n))
            return isinstance(other, Key) and self.n % 2 == other.n % 2

        def __hash__(self):
            log.append(("hash", self.n))
            return self.n % 2

    def made(x):
        return x + len(set([Key(1), Key(3)])), len(frozenset((Key(2), Key(4)))), len({Key(1), Key(5)}), len(dict.fromkeys([Key(1), Key(3)], 1))

    def nested(x):
        return x * 2, len(set((Key(i), 1) for i in (1, 3))), len({Key(1): 1} | {Key(3): 1}), len(dict([(Key(2), 1), (Key(4), 2)]))

    def changed(x, members):
        own = set()
        own.update([Key(1), Key(3)])
        members.update([Key(1), Key(3)], (Key(6),))
        members.difference_update([Key(5)])
        members.discard(Key(7))
        return x - 1, len(own), len(members), len(own | {Key(2)}), own.isdisjoint([Key(9)])

    out, x = [], torch.ones(2)
    f, g, h = map(compile, (made, nested, changed))
    for _ in range(3):
        out += [f(x), g(x), h(x, {Key(2)}), list(log)]
        log.clear()
    return out


class Bell(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).float()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (1 + (math.pi * x).square()) * min(2, sys.maxsize)


@edge
def gradients_may_read_constants_of_built_in_modules(compile, engine):
    """Such modules have no file; `math` is one of them in some builds of Python, `sys` in all."""
    f = compile(lambda x: Bell.apply(x * 2).sum(), fullgraph=True) if engine else lambda x: Bell.apply(x * 2).sum()
    x = torch.linspace(-1, 1, 7, requires_grad=True)
    return f(x), torch.autograd.grad(f(x), x)


@edge
def arrays_beside_tensors(compile, engine):
    """Operators, indices and old constructors; what numpy makes of a tensor has numpy's type and is a tensor."""
    import numpy as np

    whole, floats, places, mask, small = np.array([1, 2, 3]), np.ones(3, np.float32), np.array([1, 0]), np.array([True, False]), np.array([1, 1], np.int32)

    def computed(x):
        return x + whole, x - floats, x * whole, x / whole, x ** whole, x // floats, x % whole, x @ floats

    def indexed(x):
        return x[places], x[:, places], x[mask], x[small], x[places, places], x[None, places], x[..., places]

    def stored(x):
        y = x.clone()
        y[places] = 5.0
        y[:, places] += 1
        y[mask] = y[mask] * 2
        return y

    def constructed(x):
        same = torch.Tensor(x)
        same.add_(1)
        return (torch.FloatTensor(floats), torch.LongTensor(whole), torch.Tensor(whole), torch.FloatTensor(x), x.new(x), x.new_tensor(whole), x.new(floats),
                torch.Tensor(x * 2), same)

    def refused(x):
        return torch.LongTensor(x)

    out, breaks = [], engine.counters()["graph_breaks"] if engine else 0
    for f in (computed, indexed, stored, constructed):
        c = compile(f)
        for start in (1.0, 2.0):
            x = torch.arange(6.0).reshape(2, 3) + start
            out.append((c(x), x))
    out.append(not engine or engine.counters()["graph_breaks"] == breaks)
    leaf = torch.ones(3, requires_grad=True)
    compile(lambda x: torch.Tensor(x * 2).sum())(leaf).backward()
    return out, leaf.grad, raised(compile(refused), torch.ones(2)), raised(compile(lambda x: x + whole), leaf)


@edge
def warnings_inside_try(compile, engine):
    def f(x):
        try:
            warnings.warn("of the program", UserWarning)
            y = x * 2
        except UserWarning:
            y = x * 3
        return y

    def wrong(x):
        try:
            warnings.warn("of the program", int)
        except TypeError:
            return x + 1
        return x

    c, out = compile(f), []
    for action in ("always", "error", "ignore"):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter(action)
            out.append((c(torch.ones(2)), [str(w.message) for w in said]))
    return out, compile(wrong)(torch.ones(2))

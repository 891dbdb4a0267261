"""A constant needs a reason: what a program can see changes between calls where no argument does."""

import abc
import collections
import copy
import dataclasses
import enum
import functools
import importlib.machinery
import math
import sys
import types
import warnings

import torch
import torch.nn.functional as F
from torch import nn

from . import script


def rows(*shape):
    return torch.arange(1.0, 1 + math.prod(shape or (4, 5))).reshape(shape or (4, 5)) / 7


def around(change, undo, *calls):
    """What the calls give before a change, with it, and without it again."""
    out = [c() for c in calls]
    change()
    try:
        out += [c() for c in calls]
    finally:
        undo()
    return out + [c() for c in calls]


@script
def functions_of_torch_replaced(compile):
    relu, linear, dropout, x = F.relu, F.linear, F.dropout, rows()
    layer, attention = nn.Linear(5, 3), nn.MultiheadAttention(4, 2).eval()
    a, b, c = compile(lambda: F.relu(x)), compile(lambda: layer(x)), compile(lambda: attention(x[:, :4], x[:, :4], x[:, :4])[0])

    def change():
        F.relu = lambda t: t - 1
        F.linear = lambda *args: linear(*args) * 2

    def undo():
        F.relu, F.linear, F.dropout = relu, linear, dropout

    return around(change, undo, a, b, c)


@script
def methods_of_tensor_replaced(compile):
    x = rows()
    a, b, c, d = compile(lambda: x.sigmoid()), compile(lambda: x + 1), compile(lambda: x @ x.t()), compile(lambda: F.softsign(x))
    sigmoid, absolute = torch.Tensor.sigmoid, torch.Tensor.abs

    def change():
        torch.Tensor.sigmoid = lambda t: t * 5
        torch.Tensor.abs = lambda t: absolute(t) * 2
        torch.Tensor.__add__ = lambda t, other: t * other * 3
        torch.Tensor.__matmul__ = lambda t, other: t * 2

    def undo():
        torch.Tensor.sigmoid, torch.Tensor.abs = sigmoid, absolute
        del torch.Tensor.sigmoid, torch.Tensor.abs, torch.Tensor.__add__, torch.Tensor.__matmul__

    return around(change, undo, a, b, c, d)


@script
def properties_put_on_tensors(compile):
    torch.Tensor.halved, scale = property(lambda t: t / scale[0]), [2.0]
    try:
        f, x = compile(lambda x: x.halved), rows()
        out = [f(x)]
        scale[0] = 4.0
        return out + [f(x)]
    finally:
        del torch.Tensor.halved


@script
def parts_of_functions(compile):
    def g(x, k=2, *, b=1.0):
        return x * k + b

    def name():
        return g.__name__

    holder = {"g": g}
    exec("def f(x): return g(x)\ndef h(x): return x * len(g.__defaults__) + g.__defaults__[0]\ndef n(x): return x, g.__name__, g.__doc__", holder)
    fs, x = [compile(holder[n]) for n in "fhn"], rows()
    out = [f(x) for f in fs]
    g.__defaults__ = (3,)
    out += [f(x) for f in fs]
    g.__kwdefaults__ = {"b": 5.0}
    out += [f(x) for f in fs]
    g.__kwdefaults__["b"] = 6.0
    g.__name__, g.__doc__ = "other", "words"
    out += [f(x) for f in fs]
    g.__code__ = (lambda x, k=0, *, b=0: x - k - b).__code__
    return out + [f(x) for f in fs]


@script
def defaults_of_local_functions_grow(compile):
    def g(x, a, b=2):
        return x * a + b

    f, x = compile(lambda x, g: g(x, 7)), rows()
    out = [f(x, g)]
    g.__defaults__ = (2, 9)
    return out + [f(x, g)]


@script
def names_of_classes(compile):
    class Layer:
        k = 2

    f, x = compile(lambda x: (x * 2, Layer.__name__, type(layer).__qualname__.split(".")[-1], Layer.__doc__, Layer.__module__)), rows()
    layer = Layer()
    out = [f(x)]
    Layer.__name__ = Layer.__qualname__ = "Renamed"
    out.append(f(x))
    Layer.__doc__, Layer.__module__ = "words", "elsewhere"
    return out + [f(x)]


@script
def instances_held_by_classes(compile):
    class A:
        def scale(self):
            return 2.0

    class B:
        def scale(self):
            return 3.0

    class Config:
        inner = A()
        table = {"k": A()}

    f, g, x = compile(lambda x: x * Config.inner.scale()), compile(lambda x: x * Config.table["k"].scale()), rows()
    out = [f(x), g(x)]
    Config.inner.__class__ = Config.table["k"].__class__ = B
    return out + [f(x), g(x)]


@script
def views_of_dicts(compile):
    class Config:
        a, b = 2.0, 3.0

    settings = {"a": 2.0}
    view = types.MappingProxyType(settings)
    fs = [compile(lambda x: x * view["a"]), compile(lambda x: x * sum(view.values())), compile(lambda x: x * len(view)),
          compile(lambda x: x * ("b" in vars(Config))), compile(lambda x: (x, [k for k in Config.__dict__ if k[0] != "_"])),
          compile(lambda x: x * len([v for v in vars(Config).values() if isinstance(v, float)]))]
    x = rows()
    out = [f(x) for f in fs]
    settings.update(a=4.0, b=5.0)
    del Config.a
    Config.a, Config.c = 5.0, 6.0
    return out + [f(x) for f in fs]


@script
def classes_with_their_own_lookup(compile):
    class Lazy(type):
        table = {"k": 2.0}

        def __getattr__(cls, name):
            return Lazy.table[name]

    class Config(metaclass=Lazy):
        pass

    module = types.ModuleType("settings")
    exec("table = {'k': 2.0}\ndef __getattr__(name):\n    if name not in table: raise AttributeError(name)\n    return table[name]", module.__dict__)
    f, g, x = compile(lambda x: x * Config.k), compile(lambda x: (x * module.k, hasattr(module, "other"), getattr(module, "third", 9))), rows()
    out = [f(x), g(x)]
    Lazy.table["k"], module.table["k"], module.table["other"] = 3.0, 4.0, 1
    return out + [f(x), g(x)]


@script
def enumerations(compile):
    class Mode(enum.Enum):
        FAST, SLOW = 1, 2

        @property
        def scale(self):
            return self.value * Mode.factor

        @classmethod
        def _missing_(cls, value):
            return cls.SLOW

    class Bits(enum.IntFlag):
        A, B = 1, 2

    Mode.factor = 2.0
    fs = [compile(lambda x: x * Mode.FAST.scale), compile(lambda x: x * Mode(2).scale), compile(lambda x: x * Mode["SLOW"].value),
          compile(lambda x: x * len(Mode)), compile(lambda x: (x, str(Mode.FAST), Mode.SLOW.name, [m.name for m in Mode])),
          compile(lambda x: x * (Bits.A | Bits.B)), compile(lambda x: x * math.sqrt(Bits.B)), compile(lambda x: x * Mode(7).value),
          compile(lambda x: x if Mode.FAST is Mode(1) else -x), compile(lambda x: x * {Mode.FAST: 2.0, Mode.SLOW: 3.0}[Mode.SLOW])]
    x = rows()
    out = [f(x) for f in fs]
    Mode.factor = 5.0
    return out + [f(x) for f in fs]


@script
def class_checks(compile):
    class Sized:
        def __len__(self):
            return 3

    class Hooked(abc.ABC):
        answer = False

        @classmethod
        def __subclasshook__(cls, other):
            return Hooked.answer

    class Registered(abc.ABC):
        pass

    class Claims:
        @property
        def __class__(self):
            return claimed[0]

    class Remembers(abc.ABC):
        @classmethod
        def __subclasshook__(cls, other):
            return Hooked.answer if other is Sized else NotImplemented

    class Counts(abc.ABC):
        @classmethod
        def __subclasshook__(cls, other):
            asked.append(other.__name__)
            return True

    claimed, s, c, x, asked = [int], Sized(), Claims(), rows(), []
    fs = [compile(lambda x: (x, isinstance(s, Remembers), isinstance(c, Remembers), issubclass(int, Remembers))),
          compile(lambda x: (x, isinstance(s, Counts), issubclass(bool, Counts), len(asked))),
          compile(lambda x: (x, isinstance(s, collections.abc.Sized), isinstance(s, collections.abc.Iterable), isinstance([], collections.abc.Sequence))),
          compile(lambda x: (x, isinstance(s, Hooked), isinstance(s, (Registered, int)))), compile(lambda x: (x, isinstance(c, int), isinstance(c, (str, float)))),
          compile(lambda x: (x, issubclass(Sized, Registered), isinstance(3, int | str), isinstance(x, nn.Parameter), isinstance(x, torch.Tensor)))]
    out = [f(x) for f in fs]
    Sized.__iter__ = lambda self: iter(())
    Hooked.answer, claimed[0] = True, str
    out += [f(x) for f in fs[:2]]
    Registered.register(Sized)
    return out + [f(x) for f in fs], asked


@script
def keys_that_compare_themselves(compile):
    @dataclasses.dataclass(frozen=True)
    class Key:
        a: int
        b: str = "b"

    class Fickle:
        v = 1

        def __hash__(self):
            return self.v

        def __eq__(self, other):
            return isinstance(other, Fickle) and self.v == other.v

    first, fickle, x = Key(1), Fickle(), rows()
    table = {Key(1): 2.0, Key(2): 3.0, ("t", Key(3)): 4.0}
    other = {1: 5.0, Fickle(): 6.0}
    fs = [compile(lambda x: x * table[first]), compile(lambda x: x * table.get(Key(2), 9.0)), compile(lambda x: x * table[("t", Key(3))]),
          compile(lambda x: x * table.get(Key(4), 9.0)), compile(lambda x: x * (Key(2) in table)), compile(lambda x: x * other.get(fickle, 7.0)),
          compile(lambda x: x * len({Key(1): 1, Key(2): 2, Key(1, "b"): 3})), compile(lambda x: (x, hash(fickle)))]
    out = [f(x) for f in fs]
    table[Key(1)], table[Key(4)] = 8.0, 10.0
    fickle.v = 2
    return out + [f(x) for f in fs]


@script
def comparisons(compile):
    @dataclasses.dataclass
    class Point:
        v: int

    class Plain:
        pass

    p, q, a, b = Point(1), Point(2), Plain(), Plain()
    fs = [lambda x: [p, 1] == [Point(1), 1], lambda x: (p, q) != (Point(1), Point(2)), lambda x: {"k": [p]} == {"k": [Point(1)]}, lambda x: a == b, lambda x: a != b,
          lambda x: [a] == [b], lambda x: (a, 1) == (a, 1), lambda x: [1, [2, p]] == [1, [2, Point(1)]], lambda x: p in (Point(3), Point(1)), lambda x: [q].count(Point(2)),
          lambda x: (1, "a") < (1, "b"), lambda x: [1, 2] <= [1, 2, 3], lambda x: {1, 2} == {2, 1}, lambda x: 1 in [p, 1], lambda x: a.__eq__(b) is NotImplemented]
    compiled, x = [compile(lambda x, f=f: (x + 1, f(x))) for f in fs], rows()
    out = [f(x) for f in compiled]
    p.v, q.v = 5, 6
    return out, [f(x) for f in compiled]


@script
def equality_of_short_lived_objects(compile):
    class Request:
        pass

    kept = Request()
    f, x = compile(lambda x, r: x + 1 if r == kept else x - 1), rows()
    return [f(x, r) for r in (Request(), Request(), kept, Request())]


@script
def texts(compile):
    class Named:
        v = 3

        def __str__(self):
            return f"s{self.v}"

        def __repr__(self):
            return f"r{self.v}"

        def __index__(self):
            return self.v

        def __float__(self):
            return self.v / 2

        def __getitem__(self, key):
            return f"{key}{self.v}"

    Pair = collections.namedtuple("Pair", "a b")
    n = Named()
    fs = [lambda: "%s|%r|%5s|%-5s|" % (n, n, n, n), lambda: "%d %5.2f %x %o" % (n, n, n, n), lambda: "%s" % [n, 1], lambda: "%(k)s %(j)r" % {"k": n, "j": (n,)},
          lambda: "%s %%" % n, lambda: "%*d" % (5, n), lambda: "{} {!r:>6} {0.v}".format if False else "{} {!r:>6}".format(n, n), lambda: "{0.v} {0[k]} {x}".format(n, x=n),
          lambda: "{:{}}".format("a", 5), lambda: f"{n} {n!r} {n!s:>4} {[n]} {(n,)} {({'k': n})}", lambda: str([n, "a", (n,), {1: n}]), lambda: repr(Pair(n, 2)),
          lambda: "{k}".format_map({"k": n}), lambda: str(Pair(1, 2)), lambda: "%s %s" % Pair(1, n), lambda: ascii(["é", n]), lambda: str(()), lambda: "%s" % (("a", 1),)]
    compiled, x = [compile(lambda x, f=f: (x + 1, f())) for f in fs], rows()
    out = [f(x) for f in compiled]
    n.v = 4
    return out, [f(x) for f in compiled]


@script
def numbers(compile):
    class Number:
        v = 2

        def __float__(self):
            return float(self.v)

        def __index__(self):
            return self.v

        def __floor__(self):
            return self.v * 10

        def __round__(self, digits=None):
            return self.v + (digits or 0)

        def __divmod__(self, other):
            return self.v, other

        def __pow__(self, other):
            return self.v ** other

        def __invert__(self):
            return -self.v

    n, items, x = Number(), list(range(10)), rows(8)
    fs = [lambda: math.sqrt(n), lambda: math.floor(n), lambda: round(n, 1), lambda: divmod(n, 3), lambda: pow(n, 2), lambda: ~n, lambda: items[n], lambda: items[:n],
          lambda: x[n], lambda: x[:n], lambda: x[n:, None], lambda: int(n), lambda: float(n), lambda: complex(n), lambda: list(range(n)), lambda: [0] * n, lambda: "ab" * n,
          lambda: math.gcd(n, 4), lambda: hex(n), lambda: max(n.v, 1), lambda: torch.full((2,), n.v), lambda: x.narrow(0, 0, int(n)), lambda: bytes(n), lambda: math.pow(n, 3)]
    compiled = [compile(lambda x, f=f: (x + 1, f())) for f in fs]
    out = [f(x) for f in compiled]
    n.v = 3
    return out, [f(x) for f in compiled]


@script
def descriptors(compile):
    class Twice(property):
        pass

    class Static(staticmethod):
        pass

    class Holder:
        k = 2.0
        scale = Twice(lambda self: self.k)
        fixed = Static(lambda: factor[0])
        part = functools.partialmethod(lambda self, a: self.k * a, 3.0)

        @Twice
        def written(self):
            return self.k

        @written.setter
        def written(self, value):
            self.k = value * factor[0]

    factor, h, x = [2.0], Holder(), rows()

    def assign(x):
        h.written = 5.0
        return x * h.k

    fs = [compile(lambda x: x * h.scale), compile(lambda x: x * h.fixed()), compile(lambda x: x * h.part()), compile(assign)]
    out = [f(x) for f in fs]
    h.k, factor[0] = 3.0, 4.0
    return out + [f(x) for f in fs] + [h.k]


@script
def modules_with_getattribute(compile):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.ReLU()
            self.k = 2.0

        def __getattribute__(self, name):
            if name == "k":
                return table["k"]
            return super().__getattribute__(name)

        def forward(self, x):
            return self.inner(x) * self.k

    table, model, x = {"k": 3.0}, Model(), rows()
    f = compile(model)
    out = [f(x)]
    table["k"] = 5.0
    return out + [f(x)]


@script
def offsets_into_storages(compile):
    base = torch.arange(40.0)
    f, g = compile(lambda x: x.as_strided((2, 2), (2, 1)) + 1), compile(lambda x: x[1:].as_strided((3,), (2,), 2) * x.storage_offset())
    return [f(base[a:b]) for a, b in ((0, 8), (4, 12), (8, 16))], [g(base[a:b]) for a, b in ((0, 8), (4, 12), (0, 8))], f(torch.arange(8.0)), g(torch.arange(8.0))


@script
def what_a_tensor_says_of_itself(compile):
    leaf = rows().requires_grad_()
    hidden = leaf * 2
    tagged = rows()
    tagged.tag = 2
    fs = [lambda x: x._is_view(), lambda x: x._base is None, lambda x: x.output_nr, lambda x: x.retains_grad, lambda x: x.grad_fn is None, lambda x: x.is_leaf,
          lambda x: sorted(x.__dict__), lambda x: getattr(x, "tag", 0), lambda x: x.nbytes, lambda x: x.is_cuda]
    compiled = [compile(lambda x, f=f: (x * 2, f(x))) for f in fs]
    out = [[f(t) for t in (rows(), rows()[1:], leaf, hidden, tagged, rows())] for f in compiled]
    tagged.tag, tagged.more = 3, 4
    return out, [f(tagged) for f in compiled]


# --- found by the fuzzer of changes -------------------------------------------------------------------------------------------


@script
def equal_constants_by_identity(compile):
    limit = 1000.5
    config = {"a": [1, "xyz", 2.5, (1, 2.0)], "b": "hello"}

    @compile
    def with_default(x, d=limit):
        return x + (1 if d is limit else 2)

    @compile
    def same(x, a, b):
        return x + (1 if a is b else 2)

    @compile
    def copied(x, c):
        made = copy.deepcopy(c)
        made["a"].append(3)
        return x + len(made["a"]), made, made["b"] is c["b"], made["a"][2] is c["a"][2]

    x, one, other = rows(), 12345678, int("12345678")
    text = "some text"
    return (with_default(x), with_default(x, float("1000.5")), with_default(x, limit), same(x, one, one), same(x, one, other),
            same(x, other, one), same(x, text, text), same(x, text, "".join(["some", " text"])), copied(x, config),
            copied(x, {"a": [1, "x", 2.5, (1, 2.0)], "b": "y"}))


@script
def arguments_that_builtins_refuse(compile):
    ordered = list
    calls = [lambda x: ordered([3, 1], key=abs), lambda x: len(), lambda x: tuple([1], 2), lambda x: getattr(x, None), lambda x: setattr(x, 1, 2),
             lambda x: hasattr(x, 3), lambda x: max(1, 2, default=3), lambda x: sum([1], start=1, other=2), lambda x: [*None], lambda x: bool(1, 2)]

    def outcome(f):
        @compile
        def run(x):
            return x + 1, f(x)
        try:
            return run(rows())
        except TypeError as error:
            return str(error)

    return [outcome(f) for f in calls]


class Answers:
    """Special methods that give what C code refuses."""

    def __init__(self, value):
        self.value = value

    def answer(self, *_):
        return self.value

    __len__ = __bool__ = __index__ = __int__ = __float__ = __str__ = __repr__ = __iter__ = answer

    def __format__(self, spec):
        return self.value


@script
def special_methods_of_other_types(compile):
    asks = [len, bool, float, int, str, repr, range, list, lambda a: f"{a}", lambda a: [1, 2, 3][a], lambda a: "%s" % a, lambda a: rows()[a]]
    found = []
    for ask in asks:
        f = compile(lambda x, a: (x + 1, ask(a)))
        for value in (2, True, 1.5, -1, "two"):
            try:
                found.append(f(rows(), Answers(value)))
            except (TypeError, ValueError, IndexError, OverflowError) as error:
                found.append((type(error).__name__, str(error)))
    return found


@script
def an_iterator_that_ends(compile):
    @compile
    def f(x, r):
        it = iter(r)
        return it.__next__() + x, next(it, None)

    r, x = [rows()], rows()
    out = [f(x, r)]
    r.clear()
    for _ in range(2):
        try:
            out.append(f(x, r))
        except StopIteration as stop:
            out.append(repr(stop))
    return out


@script
def except_clauses_of_other_things(compile):
    kinds = [KeyError]

    @compile
    def f(x):
        try:
            raise ValueError(str(x.shape))
        except kinds[0]:
            return x
        except (ValueError, KeyError) as error:
            return x + 1, str(error)

    def outcome():
        try:
            return f(rows())
        except TypeError as error:
            return str(error)

    return around(lambda: kinds.__setitem__(0, None), lambda: kinds.__setitem__(0, KeyError), outcome)


@script
def what_super_finds(compile):
    class Base:
        def run(self, x):
            return x * 2

    class Derived(Base):
        def run(self, x):
            return super().run(x) + 1

    o, cell = Derived(), Derived.run.__closure__[0]
    f = compile(lambda x: o.run(x))

    def outcome():
        try:
            return f(rows())
        except (RuntimeError, NameError) as error:
            return str(error)

    out = [outcome()]
    for value in ("text", None):
        if value:
            cell.cell_contents = value
        else:
            del cell.cell_contents
        out.append(outcome())
    return out


@script
def hooks_on_inputs_without_a_gradient(compile):
    unused = compile(lambda a, b: (a.sum(), b.detach() * 2, b.argmax()))
    partly = compile(lambda a, b: (a.sum(), (a * b).sum()))
    out = []
    for f in (unused, partly):
        a, b = rows().requires_grad_(), rows().requires_grad_()
        b.register_hook(lambda g: g * 2)
        out.append(f(a, b)[0])
        out[-1].backward()
        out += [a.grad, b.grad]
        f(a, b)[1].sum().backward() if f is partly else None
        out += [a.grad, b.grad]
    inner = compile(lambda w: torch.autograd.grad((w * w).sum(), w)[0] + 1)
    w = rows().requires_grad_()
    w.register_hook(lambda g: g * 3)
    return out + [inner(w)]


@script
def tensors_of_inference_mode_beside_gradients(compile):
    with torch.inference_mode():
        y = rows() * 1
    w = rows().requires_grad_()
    out = []
    for f in (lambda w, y: w + y, lambda w, y: (y * y + w).sin(), lambda w, y: w * y, lambda w, y: torch.distributions.Normal(w, 1.0).log_prob(y)):
        try:
            result = compile(f)(w, y)
            out += [result.detach(), torch.autograd.grad((result * result).sum(), w)]
        except RuntimeError as error:
            out.append(str(error).partition(".")[0])
    return out


@script
def norms_that_refuse(compile):
    x, out = rows(2, 5, 3), []
    for batch_norm in (nn.BatchNorm1d(5), nn.BatchNorm1d(5).eval()):
        f = compile(lambda: batch_norm(x))
        out.append(f())
        for other in (torch.zeros(1), torch.zeros(0), torch.zeros(6), torch.zeros(5).double(), torch.zeros(5, 1), torch.zeros(5)):
            batch_norm.running_mean = other
            try:
                out.append(f())
            except RuntimeError as error:
                out.append(str(error))
    for make in (nn.LayerNorm(3), nn.GroupNorm(5, 5)):
        for parameter in (make.weight, make.bias):
            parameter.data = parameter.data.double()
            try:
                out.append(compile(make)(x))
            except RuntimeError as error:
                out.append(str(error))
    return out


@script
def warnings_of_torchs_functions(compile):
    f = compile(lambda a, b: (F.mse_loss(a, b), F.l1_loss(a, b), F.kl_div(a, b), F.softmax(a)))
    out = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            out.append(f(rows(4, 1), rows(4)))
        out.append([str(w.message)[:40] for w in said])
    return out


@script
def checkpoints_with_effects(compile):
    runs = []

    def noted(x):
        runs.append(1)
        return x.sin().sin()

    f = compile(lambda x: torch.utils.checkpoint.checkpoint(noted, x, use_reentrant=False).sum())
    g = compile(lambda x: torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=True))
    x = rows().requires_grad_()
    f(x).backward()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        out = g(rows()), g(rows())
    return len(runs), x.grad, out, [str(w.message)[:30] for w in said]


@script
def operators_of_tensor_replaced_beside_in_place_ones(compile):
    plus, x = torch.Tensor.__add__, rows()

    def step(x):
        y = x * 1
        y += 1
        y += x
        return y, x + 1, torch.add(x, 1)

    f = compile(step)

    def change():
        torch.Tensor.__add__ = lambda a, b: a * b * 3

    def undo():
        torch.Tensor.__add__ = plus

    return around(change, undo, lambda: f(x))


@script
def tables_of_enumerations(compile):
    class Mode(enum.Enum):
        A = 1
        B = 2

    f = compile(lambda x, n: (x + 1, Mode(n).name))

    def outcome():
        try:
            return f(rows(), 1)
        except (ValueError, AttributeError) as error:
            return type(error).__name__

    return around(lambda: Mode._value2member_map_.__setitem__(1, Mode.B), lambda: Mode._value2member_map_.__setitem__(1, Mode.A), outcome)


@script
def denormals(compile):
    f = compile(lambda x: (x + 1, torch.tensor([1e-40]).log()))
    x = torch.tensor([1e-40])

    def outcome():
        return [t.clone() for t in f(x)]

    return around(lambda: torch.set_flush_denormal(True), lambda: torch.set_flush_denormal(False), outcome)


@script
def imports_inside(compile):
    sys.modules.pop("this_is_not_there_yet", None)
    finder = types.SimpleNamespace(find_spec=lambda name, *_: importlib.machinery.ModuleSpec(name, finder) if name == "this_is_not_there_yet" else None,
                                   create_module=lambda spec: None, exec_module=lambda module: vars(module).update(K=3.0))
    sys.meta_path.insert(0, finder)

    @compile
    def f(x):
        import this_is_not_there_yet
        try:
            import this_is_nowhere
        except ImportError as error:
            return x * this_is_not_there_yet.K, str(error), error.name
        return this_is_nowhere

    try:
        return f(rows()), f(rows())
    finally:
        sys.meta_path.remove(finder)
        sys.modules.pop("this_is_not_there_yet", None)


@script
def out_arguments_of_other_shapes(compile):
    f, found = compile(lambda x, o: torch.add(x, x, out=o)), []
    for shape in ((0,), (4, 5), (1, 4, 5), (20,), (2, 3)):
        out = torch.zeros(shape)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            made = f(rows(), out)
        found.append((made is out, tuple(out.shape), out, sum("resized" in str(w.message) for w in said)))
    return found


class Told(torch.Tensor):
    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs)


@script
def a_subclass_that_is_made_inside_and_sees_every_function(compile):
    Told.seen.clear()
    f = compile(lambda x: ((x * 2).as_subclass(Told) + 1).as_subclass(torch.Tensor) * 3)
    return f(rows()), f(rows()), list(Told.seen)


@script
def deques_from_outside(compile):
    numbers, tensors = collections.deque([1, 2, 3], maxlen=4), collections.deque([rows(), rows() * 2], maxlen=3)

    @compile
    def f(x):
        for i, v in enumerate(numbers):
            x = x + v * i
        return x + sum(tensors), len(numbers), numbers[0], numbers[-1], list(numbers), 2 in numbers, max(numbers), torch.stack(list(tensors)), tensors[1] is tensors[0]

    @compile
    def changing(x):
        for v in numbers:
            numbers.append(v)
        return x

    out = [f(rows())]
    numbers.append(7)
    tensors.append(rows() * 5)
    out.append(f(rows()))
    numbers[1] = 9
    tensors[0] = tensors[1]
    out.append(f(rows()))
    try:
        changing(rows())
    except RuntimeError as error:
        out.append((str(error), list(numbers)))
    return out

"""User classes: attributes, descriptors, special methods, inheritance, metaclasses, enums, protocols."""

import abc
import enum
import functools
import typing
import unittest.mock

import torch

from . import script


def rows(*shape):
    return torch.randn(*(shape or (4, 5)))


@script
def a_slot_behind_a_property(compile):
    class Base:
        __slots__ = ("v", "__hidden")

        def fill(self, x):
            self.__hidden = x + 1
            Base.v.__set__(self, x * 2)

        def hidden(self):
            return self.__hidden

    class Shadowing(Base):
        v = property(lambda self: 42)

    @compile
    def f(x):
        empty, full = Shadowing(), Shadowing()
        empty.name = "empty"
        full.fill(x)
        return empty, full, x + 1

    empty, full, y = f(rows())
    return empty.name, empty.v, full.v, Base.v.__get__(full), full.hidden(), y


@script
def properties_and_setters(compile):
    class Box:
        def __init__(self, v):
            self._v = v

        @property
        def v(self):
            return self._v

        @v.setter
        def v(self, value):
            self._v = value * 2

        @v.deleter
        def v(self):
            self._v = None

        @functools.cached_property
        def doubled(self):
            return self._v * 2

    @compile
    def f(box, x):
        box.v = x
        mine = Box(x)
        mine.v = mine.v + 1
        d = mine.doubled + box.doubled
        del mine.v
        return box.v + 1, mine.v, d

    box = Box(1)
    return f(box, rows()), f(box, rows()), box._v, sorted(vars(box))


@script
def attribute_hooks(compile):
    class Lazy:
        def __init__(self):
            object.__setattr__(self, "store", {})

        def __getattr__(self, name):
            if name.startswith("no"):
                raise AttributeError(name)
            return self.store.setdefault(name, len(name))

        def __setattr__(self, name, value):
            self.store[name] = value

        def __delattr__(self, name):
            del self.store[name]

    class Loud:
        hits = 0

        def __getattribute__(self, name):
            if name == "magic":
                return 42
            return super().__getattribute__(name)

    @compile
    def f(lazy, x):
        lazy.weight = x
        n = lazy.abc + lazy.abcd
        has = hasattr(lazy, "nothing"), hasattr(lazy, "yes"), getattr(lazy, "nope", 5)
        del lazy.weight
        loud = Loud()
        loud.own = 3
        return x * n, has, loud.magic + loud.own + loud.hits

    lazy = Lazy()
    return f(lazy, rows()), f(lazy, rows()), lazy.store


@script
def descriptors(compile):
    class Scaled:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, obj, owner=None):
            return self if obj is None else getattr(obj, self.name) * 2

        def __set__(self, obj, value):
            setattr(obj, self.name, value + 1)

    class Thing:
        weight = Scaled()

        @staticmethod
        def helper(t):
            return t + 1

        @classmethod
        def make(cls, v):
            thing = cls()
            thing.weight = v
            return thing

    class Sub(Thing):
        pass

    @compile
    def f(thing, x):
        thing.weight = x
        mine = Sub.make(x)
        return thing.weight, mine.weight, mine.helper(x), Thing.helper(x), type(mine).__name__, isinstance(Thing.weight, Scaled)

    thing = Thing()
    return f(thing, rows()), f(thing, rows()), thing._weight


@script
def descriptors_that_only_set(compile):
    class Kept:
        def __set__(self, obj, value):
            obj.__dict__["kept"] = value * 2

    class Meta(type):
        on_class = Kept()

    class Holder(metaclass=Meta):
        kept = Kept()

    class Named(Holder):
        on_class = 5

    @compile
    def f(x):
        h = Holder()
        before = h.kept is vars(Holder)["kept"]
        h.kept = x
        return before, h.kept, Named.on_class, type(Holder.on_class).__name__

    return [f(rows()) for _ in range(3)]


@script
def operator_overloading(compile):
    class Vec:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def __add__(self, o):
            return Vec(self.a + o.a, self.b + o.b) if isinstance(o, Vec) else NotImplemented

        def __mul__(self, k):
            return Vec(self.a * k, self.b * k)

        __rmul__ = __mul__

        def __neg__(self):
            return self * -1

        def __iadd__(self, o):
            self.a = self.a + o.a
            return self

        def __eq__(self, o):
            return isinstance(o, Vec) and self.b == o.b

        def __hash__(self):
            return hash(self.b)

        def __lt__(self, o):
            return self.b < o.b

        def __matmul__(self, o):
            return (self.a * o.a).sum()

        def __getitem__(self, i):
            return (self.a, self.b)[i]

        def __len__(self):
            return 2

        def __bool__(self):
            return self.b != 0

        def __contains__(self, v):
            return v == self.b

        def __call__(self, t):
            return t * self.a

        def __repr__(self):
            return f"Vec({self.b})"

        def __iter__(self):
            yield self.a
            yield self.b

        def __abs__(self):
            return abs(self.b)

        def __int__(self):
            return int(self.b)

        def __index__(self):
            return int(self.b)

        def __radd__(self, o):
            return o + self.b

    @compile
    def f(x, outer):
        v = Vec(x, 1)
        w = v + Vec(x, 2) * 3
        w += v
        outer += v
        a, b = w
        return (a, b, (2 * v).a, (-v).b, v == Vec(x, 1), v != w, sorted([w, v])[0].b, v @ w, v[1], len(v), bool(Vec(x, 0)), 1 in v, v(x), repr(w), f"{v}",
                {v: "k"}[Vec(None, 1)], outer.a, list(v)[1], abs(-v), int(w), [10, 20][v], sum([v], 5), v < w, max(v, w).b, v if Vec(x, 0) else "falsy")

    outer = Vec(torch.zeros(5), 9)
    return f(rows(), outer), f(rows(), outer), outer.a


@script
def inheritance_and_super(compile):
    class Base:
        scale = 2

        def __init__(self, x):
            self.x = x

        def run(self):
            return self.x * self.scale

        @classmethod
        def name(cls):
            return cls.__name__

    class Mixin:
        def run(self):
            return super().run() + 1

    class Child(Mixin, Base):
        scale = 3

        def __init__(self, x, y):
            super().__init__(x)
            self.y = y

        def run(self):
            return super(Child, self).run() + self.y

        @classmethod
        def name(cls):
            return "child of " + super().name()

    @compile
    def f(x, obj):
        mine = Child(x, 4)
        return mine.run(), obj.run(), mine.name(), Child.__mro__[1].__name__, isinstance(mine, Base), issubclass(Child, Mixin), Base.run(mine)

    return f(rows(), Child(rows(), 1)), f(rows(), Base(rows()))


@script
def class_attributes_written(compile):
    class Stats:
        calls = 0
        table = {}

    @compile
    def f(x):
        Stats.calls += 1
        Stats.table[Stats.calls] = x.shape
        return x * Stats.calls

    x = rows()
    return [f(x) for _ in range(3)], Stats.calls, Stats.table


@script
def functions_given_to_classes(compile):
    class Base:
        def old(self):
            return 1

    class Derived(Base):
        pass

    class Module(torch.nn.Module):
        def forward(self, x):
            return x + 1

    def four(self):
        return 4

    def one_of_outside(x):
        Base.m = four
        return x * (Base().m() + Derived().m()), Base.m is four

    def one_of_the_region(x):
        n = 3
        Base.n = lambda self, y: y * n + x
        return Base().n(x), Derived().n(x + 1)

    def put_back(x):
        old, a = Base.old, Derived().old()
        Base.old = lambda self: old(self) + 10
        b = Derived().old()
        Base.old = old
        return x * a + b, Base().old()

    def other_kinds(x):
        Base.s, Base.c = staticmethod(lambda y: y + 1), classmethod(lambda cls, y: (cls.__name__, y))
        Base.p = property(lambda self: self.half * 2, lambda self, value: setattr(self, "half", value / 2), doc="of the half")
        b = Derived()
        b.p = x
        return Base.s(x), b.s(x), Base.c(2), b.c(x), b.p, b.half, "p" in vars(b), Base.p.__doc__

    def patched(x):
        with unittest.mock.patch.object(Base, "old", lambda self: 7):
            a = Base().old()
        return x * a, Base().old()

    def another_forward(x):
        m, old = Module(), Module.forward
        Module.forward = lambda self, x: x * 5
        a = m(x)
        Module.forward = old
        return a, m(x)

    def across_a_break(x):
        Base.b = lambda self: x + 9
        torch._dynamo.graph_break()
        return x * Base().b()

    out = []
    for program in (one_of_outside, one_of_the_region, put_back, other_kinds, patched, another_forward, across_a_break):
        f = compile(program)
        for i in range(3):
            out += [f(rows() + i), sorted(name for name in vars(Base) if not name.startswith("_"))]
            for name in ("m", "n", "s", "c", "p", "b"):
                if i != 1 and hasattr(Base, name):
                    out.append(Base.n(Base(), 2) if name == "n" else None)
                    delattr(Base, name)
    return out


@script
def objects_kept_by_classes(compile):
    class Context:
        active, last = (), None

    class Derived(Context):
        pass

    @compile
    def f(x, names):
        before = Derived.active, Context.last
        Context.active = tuple(names)
        Context.last = {"n": len(names)}
        Derived.own = [x * 2]
        return x * len(Derived.active), before, Derived.last["n"], Derived.own[0] + 1

    out = []
    for names in (["a"], ["a", "b"], [], ["c"]):
        out += [f(rows(), names), Context.active, Context.last, Derived.own, "last" in vars(Derived)]
    return out


@script
def slots_and_private_names(compile):
    class Slim:
        __slots__ = ("a", "b", "__dict__")

        def __init__(self, a):
            self.a = a
            self.__hidden = 5

        def read(self):
            return self.a + self.__hidden

    @compile
    def f(obj, x):
        obj.b = x
        obj.a += 1
        mine = Slim(x)
        return mine.read(), obj.read(), obj.b, hasattr(mine, "b")

    obj = Slim(2)
    return f(obj, rows()), f(obj, rows()), obj.a, obj.b


@script
def enums(compile):
    class Mode(enum.Enum):
        A = 1
        B = "b"

        @property
        def low(self):
            return self.name.lower()

    class Level(enum.IntEnum):
        LOW = 1
        HIGH = 5

    class Flags(enum.Flag):
        R = enum.auto()
        W = enum.auto()

    @compile
    def f(x, mode, level):
        if mode is Mode.A:
            x = x + 1
        elif mode == Mode.B:
            x = x - 1
        return x * level, mode.value, mode.low, Mode["A"], Mode(1).name, [m.name for m in Mode], level > Level.LOW, {Mode.A: 1}.get(mode), Flags.R in (Flags.R | Flags.W), level + 1, f"{level.name}"

    x = rows()
    out = f(x, Mode.A, Level.LOW), f(x, Mode.B, Level.HIGH), f(x, Mode.A, Level.LOW)
    return [[v.name if isinstance(v, enum.Enum) else v for v in o] for o in out]


@script
def abstract_and_generic_classes(compile):
    T = typing.TypeVar("T")

    class Layer(abc.ABC, typing.Generic[T]):
        @abc.abstractmethod
        def apply(self, x): ...

        def twice(self, x):
            return self.apply(self.apply(x))

    class Add(Layer[int]):
        def __init__(self, n):
            self.n = n

        def apply(self, x):
            return x + self.n

    @typing.runtime_checkable
    class Applies(typing.Protocol):
        def apply(self, x): ...

    @compile
    def f(x, layers: list[Layer]):
        for layer in layers:
            x = layer.twice(x)
        try:
            Layer()
        except TypeError:
            x = x + 100
        return x, isinstance(layers[0], Layer), isinstance(layers[0], Applies), typing.cast(int, 3)

    return f(rows(), [Add(1), Add(2)]), f(rows(), [Add(3)])


@script
def metaclasses_and_registries(compile):
    registry = {}

    class Meta(type):
        def __new__(mcs, name, bases, space):
            cls = super().__new__(mcs, name, bases, space)
            registry[name] = cls
            return cls

        def __call__(cls, *args):
            made = super().__call__(*args)
            made.tag = cls.__name__.lower()
            return made

        def __contains__(cls, v):
            return v == 7

    class Op(metaclass=Meta):
        def __init_subclass__(cls, **kw):
            cls.known = True

    class Plus(Op):
        def __init__(self, n):
            self.n = n

        def __call__(self, x):
            return x + self.n

    @compile
    def f(x, kind):
        op = registry[kind](3)
        return op(x), op.tag, op.known, 7 in Plus

    return f(rows(), "Plus"), f(rows(), "Plus")


@script
def singleton_and_new(compile):
    class One:
        made = None

        def __new__(cls, *args):
            if cls.made is None:
                cls.made = super().__new__(cls)
            return cls.made

        def __init__(self, v):
            self.v = v

    class Feet(float):
        def __new__(cls, v):
            return super().__new__(cls, v * 2)

        def name(self):
            return "feet"

    class Tagged(str):
        pass

    One(torch.zeros(()))

    @compile
    def f(x):
        a = One(x)
        b = One(x + 1)
        feet = Feet(1.5)
        return a is b, a.v, feet + 1, feet.name(), Tagged("z") + "!", isinstance(Tagged("z"), str)

    return f(rows()), f(rows())


@script
def callables_of_every_kind(compile):
    class Call:
        def __init__(self, k):
            self.k = k

        def __call__(self, x):
            return x * self.k

        def method(self, x):
            return x + self.k

    c = Call(3)
    functions = [c, c.method, functools.partial(c, ), lambda x: -x, torch.relu, torch.Tensor.abs, Call(4).__call__, "abc".count, torch.nn.ReLU()]

    @compile
    def f(x):
        return [g(x) if not isinstance(g("a") if g is functions[7] else 0, int) or g is not functions[7] else g("a") for g in functions]

    compiled = [compile(g)(rows()) for g in (c, c.method, functools.partial(c))]
    return f(rows()), compiled


@script
def methods_compiled_on_instances(compile):
    class Model:
        def __init__(self, k):
            self.k, self.calls = k, 0

        def step(self, x):
            self.calls += 1
            return self._inner(x) * self.k

        def _inner(self, x):
            return x + self.calls

    a, b = Model(2), Model(3)
    fa, fb = compile(a.step), compile(b.step)
    x = rows()
    return [fa(x), fb(x), fa(x)], a.calls, b.calls


@script
def method_decorated_in_the_class(compile):
    class Model:
        def __init__(self, k):
            self.k = k

        @compile
        def step(self, x):
            return x * self.k

    return Model(2).step(rows()), Model(5).step(rows())


@script
def exceptions_with_state(compile):
    class Problem(Exception):
        def __init__(self, where, value):
            super().__init__(f"{where}: {value}")
            self.where = where

    @compile
    def f(x, k):
        if k > 2:
            raise Problem("here", k)
        return x + k

    out = []
    for k in (1, 3, 2, 4):
        try:
            out.append(f(rows(), k))
        except Problem as e:
            out.append((str(e), e.where))
    return out


@script
def objects_made_and_returned(compile):
    class Result:
        def __init__(self, loss, extra):
            self.loss = loss
            self.extra = extra

        def total(self):
            return self.loss + sum(self.extra.values())

    @compile
    def f(x):
        r = Result(x.sum(), {"a": x.mean()})
        r.late = [r.loss]
        return r

    r = f(rows())
    return r.loss, r.extra, r.total(), r.late[0] is r.loss, type(r).__name__


@script
def weak_references(compile):
    import weakref

    class Holder:
        pass

    h = Holder()
    h.t = torch.ones(5)
    ref = weakref.ref(h)

    @compile
    def f(x):
        target = ref()
        return x + target.t if target is not None else x

    return f(rows()), f(rows())


@script
def a_cached_property_of_another_name(compile):
    """What it computes is kept under the name that it was defined by."""
    log = []

    class A:
        @functools.cached_property
        def first(self):
            log.append("first")
            return 2

        @functools.cached_property
        def second(self):
            log.append("second")
            return 3

    @compile
    def f(a, x):
        return x * a.second * a.first

    out = []
    for call in range(5):
        if call == 3:
            A.second = A.__dict__["first"]
        a = A()
        out.append((f(a, rows()), f(a, rows()), sorted(a.__dict__)))
    return out, log


class Lazy:
    """Computed when an instance is first asked, as torch.distributions has it: a class that is asked gets a property."""

    def __init__(self, compute):
        self.compute = compute

    def __get__(self, instance, owner=None):
        if instance is None:
            return LazyProperty(self.compute)
        value = self.compute(instance)
        setattr(instance, self.compute.__name__, value)
        return value


class LazyProperty(Lazy, property):
    def __init__(self, compute):
        property.__init__(self, compute)


@script
def properties_made_inside(compile):
    class Scaled:
        def __init__(self, x):
            self.x = x

        @Lazy
        def twice(self):
            return self.x * 2

    @compile
    def f(x):
        made = Scaled(x)
        asked = type(made).twice
        return isinstance(asked, property), isinstance(asked, Lazy), asked.fget is not None, made.twice + 1, "twice" in vars(made)

    return [f(torch.randn(3)) for _ in range(3)]


@script
def distributions_with_several_parameters(compile):
    @compile
    def f(logits, scale):
        chosen = torch.distributions.Categorical(logits=logits)
        bernoulli = torch.distributions.Bernoulli(logits=logits[0])
        return chosen.entropy(), chosen.probs, bernoulli.mean, torch.distributions.Gamma(scale, scale).log_prob(scale)

    return [f(torch.randn(2, 4), torch.rand(3) + 0.5) for _ in range(3)]


@script
def samples_of_distributions(compile):
    @compile
    def f(a, b):
        gamma = torch.distributions.Gamma(a, b).rsample()
        dirichlet = torch.distributions.Dirichlet(a).rsample((2,))
        binomial = torch.distributions.Binomial(5, probs=b / 4).sample()
        return gamma, dirichlet, binomial, torch._standard_gamma(a.t()), torch.distributions.Beta(a, b).rsample().sum()

    results = []
    for _ in range(3):
        a, b = (torch.rand(3, 4) + 0.5).requires_grad_(), torch.rand(3, 4) + 0.5
        made = f(a, b)
        sum(t.sum() for t in made).backward()
        results.append((made, made[3].stride(), a.grad))
    return results

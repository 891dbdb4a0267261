"""What an attribute, a class, a key or a comparison answers: everything that CPython asks may change its answer."""

import abc
import dataclasses
import enum
import threading
import types
from typing import Protocol, runtime_checkable

import torch
from torch import nn

from . import edge


@edge
def module_getattr(compile, engine):
    settings = types.ModuleType("settings")
    exec("values = {'scale': 2.0}\ndef __getattr__(name): return values[name]", settings.__dict__)
    c, x = compile(lambda x: x * settings.scale), torch.ones(2)
    out = [c(x)]
    settings.values["scale"] = 3.0
    out.append(c(x))
    settings.scale = 4.0
    return out + [c(x)]


@edge
def module_subclass_with_getattr(compile, engine):
    import torch._dynamo.config as config
    c, x = compile(lambda x: x * config.recompile_limit), torch.ones(1)
    out = [c(x)]
    with config.patch(recompile_limit=77):
        out.append(c(x))
    return out + [c(x)]


@edge
def subclasses_of_property(compile, engine):
    class typed_property(property):
        pass

    class Scaled:
        k = 2.0

        @typed_property
        def scale(self):
            return self.k

        @abc.abstractproperty
        def other(self):
            return self.k + 1

    s = Scaled()
    c, x = compile(lambda x: x * s.scale + s.other), torch.ones(2)
    out = [c(x)]
    s.k = 3.0
    return out + [c(x)]


@edge
def class_dictionaries(compile, engine):
    class Config:
        scale = 2.0
        table = []

    def counted(x):
        return x * len([k for k in vars(Config) if not k.startswith("_")])

    def appended(x):
        Config.__dict__.get("table").append(1)
        return x + 1

    item, get = compile(lambda x: x * vars(Config)["scale"]), compile(lambda x: x * Config.__dict__.get("more", 5.0))
    count, append = compile(counted), compile(appended)
    x = torch.ones(2)
    out = [f(x) for f in (item, get, count, append)]
    Config.scale, Config.more = 3.0, 1
    return out + [f(x) for f in (item, get, count, append)] + [Config.table]


@edge
def methods_and_attributes_of_tensor(compile, engine):
    torch.Tensor.scaled = lambda t: t * 2
    torch.Tensor.constant = 2.0
    fs = [compile(lambda x: x.scaled()), compile(lambda x: x * x.constant), compile(lambda x: x.relu()), compile(lambda x: x + x)]
    x = torch.ones(2)
    out = [f(x) for f in fs]
    torch.Tensor.scaled, torch.Tensor.constant = (lambda t: t * 3), 3.0
    torch.Tensor.relu, torch.Tensor.__add__ = (lambda t: t * 5), (lambda a, b: a - b)
    return out + [f(x) for f in fs]


@edge
def getattribute_of_classes(compile, engine):
    class Redirected(nn.Module):
        def __getattribute__(self, name):
            return torch.tanh if name == "act" else super().__getattribute__(name)

        def act(self, x):
            return x.relu()

        def forward(self, x):
            return self.act(x)

    class Meta(type):
        def __getattribute__(cls, name):
            return 5.0 if name == "k" else super().__getattribute__(name)

    class Constants(metaclass=Meta):
        k = 2.0

    class Namespace(types.ModuleType):
        def __getattribute__(self, name):
            return 5.0 if name == "k" else super().__getattribute__(name)

    namespace, x = Namespace("namespace"), torch.ones(2)
    namespace.__dict__["k"] = 2.0
    return (compile(Redirected())(x).round(decimals=4), compile(lambda x: x * Constants.k)(x), compile(lambda x: x * namespace.k)(x))


@edge
def calls_of_modules_wrapped_by_the_program(compile, engine):
    original = nn.Module.__call__
    nn.Module.__call__ = lambda self, *args: original(self, *args) * 2
    model, x = nn.Sequential(nn.ReLU(), nn.ReLU()), torch.ones(2)
    out = [compile(model)(x), compile(lambda x: model(x))(x)]
    nn.Module.__call__ = original
    return out + [compile(lambda x: model(x) + 0)(x)]


@edge
def attributes_of_enums(compile, engine):
    class Mode(enum.Enum):
        A = 1

        @classmethod
        def default(cls):
            return cls.scale

    Mode.extra = Mode.scale = 2.0
    attribute, method, x = compile(lambda x: x * Mode.extra), compile(lambda x: x * Mode.default()), torch.ones(2)
    out = [attribute(x), method(x)]
    Mode.extra = Mode.scale = 3.0
    return out + [attribute(x), method(x)]


@edge
def isinstance_that_runs_python(compile, engine):
    @runtime_checkable
    class HasScale(Protocol):
        scale: float

    class Base(abc.ABC):
        pass

    class Meta(type):
        answer = False

        def __instancecheck__(cls, instance):
            return Meta.answer

    class Checked(metaclass=Meta):
        pass

    class Plain:
        pass

    o, x = Plain(), torch.ones(1)
    fs = [compile(lambda x: x * 3 if isinstance(o, HasScale) else x * 2), compile(lambda x: x * 3 if isinstance(o, Base) else x * 2),
          compile(lambda x: x * 3 if isinstance(o, Checked) else x * 2), compile(lambda x: x * 3 if issubclass(Plain, Base) else x * 2)]
    out = [f(x) for f in fs]
    o.scale, Meta.answer = 1.0, True
    Base.register(Plain)
    return out + [f(x) for f in fs]


@edge
def sets_in_their_order(compile, engine):
    second = set()
    second.add(8)
    second.add(0)
    first = {0, 8}

    def folded(x, s):
        for k in s:
            x = x * 2 + k
        return x

    def by_type(x, s):
        for k in s:
            x = x * 2 if isinstance(k, bool) else x * 3
        return x

    f, g, h, x = compile(folded), compile(by_type), compile(lambda x, s: [x + k for k in s][0].dtype), torch.ones(2)
    i = torch.ones(2, dtype=torch.int64)
    return ([f(x, s) for s in (first, second, {1}, {1.5}, {True}, frozenset((0, 8)), first)], [g(x, s) for s in ({1}, {True}, {1.0})],
            [h(i, s) for s in ({1}, {1.0}, {1})])


@edge
def dict_keys_in_their_order(compile, engine):
    def folded(x, d):
        for k, v in d.items():
            x = x * 2 + v
        return x, list(d)

    f, x = compile(folded), torch.ones(2)
    return [f(x, d) for d in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {1: 1}, {True: 1}, {1.0: 1}, {"a": 1, "b": 2})]


@edge
def keys_that_hold_objects(compile, engine):
    class Key:
        pass

    a, b = Key(), Key()
    table = {("w", a): 2.0, ("w", b): 3.0, frozenset((a,)): 5.0, frozenset((b,)): 7.0}
    f, g = compile(lambda x, o: x * table[("w", o)]), compile(lambda x, o: x * table.get(frozenset((o,)), 1.0))
    h = compile(lambda x, o: x * (("w", o) in table))
    x, c = torch.ones(2), Key()
    return [k(x, o) for k in (f, g, h) for o in (a, b)] + [g(x, c), h(x, c)]


@edge
def identity_of_equal_constants(compile, engine):
    f, x = compile(lambda x, p, q: x + 1 if p is q else x), torch.zeros(1)
    out = []
    for make in (lambda: float("1.5"), lambda: "".join(["ab", "cd"]), lambda: tuple([1, 2.0]), lambda: int("1000"), lambda: complex("1j")):
        a, b = make(), make()
        out += [f(x, a, a), f(x, a, b), f(x, a, a)]
    return out


@edge
def hash_and_id_of_objects(compile, engine):
    class Plain:
        pass

    f, g, x = compile(lambda o, x: (hash(o), x + 1)), compile(lambda o, x: (id(o), x + 1)), torch.ones(1)
    a, b = Plain(), Plain()
    return [f(o, x)[0] == hash(o) for o in (a, b)], [g(o, x)[0] == id(o) for o in (a, b)]


@edge
def class_of_an_instance_changes(compile, engine):
    @dataclasses.dataclass
    class A:
        k: float = 2.0

        def scale(self):
            return self.k

    class B(A):
        def scale(self):
            return self.k + 10

    a, x = A(), torch.ones(2)
    f = compile(lambda x: x * a.scale())
    out = [f(x)]
    a.__class__ = B
    out.append(f(x))
    A.scale = lambda self: 100.0
    out.append(f(x))
    del B.scale
    return out + [f(x)]


@edge
def bases_of_a_class_change(compile, engine):
    class One:
        k = 1.0

    class Two:
        k = 2.0

    class Holder(One):
        pass

    f, x = compile(lambda x: x * Holder.k), torch.ones(2)
    out = [f(x)]
    Holder.__bases__ = (Two,)
    return out + [f(x)]


@edge
def enumerations_of_extensions_are_values(compile, engine):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.backends = [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]

        def forward(self, q):
            with sdpa_kernel(self.backends):
                q = torch.nn.functional.scaled_dot_product_attention(q, q, q)
            return q.round() + (1 if SDPBackend.MATH in self.backends else 2) + self.backends[0].value

    attention, out = Attention(), []
    c = compile(attention, fullgraph=True)
    for backends in ([SDPBackend.MATH], [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH], [SDPBackend.MATH], [SDPBackend(0)]):
        attention.backends = backends
        out.append(c(torch.ones(1, 2, 8, 16)))
    return out


@edge
def addresses_inside_of_tuples(compile, engine):
    """What id() gives is a number of one object, also inside of what is hashed, looked up and written as text."""
    first, second = types.SimpleNamespace(), types.SimpleNamespace()
    names, known = {(id(first), 1): "first", (id(second), 1): "second"}, frozenset([(id(first), 1)])
    programs = [
        lambda m, x: hash((1, (id(m), 2))),
        lambda m, x: hash(frozenset([id(m), 2])),
        lambda m, x: {(id(first), 1): 2}.get((id(m), 1)),
        lambda m, x: names.get((id(m), 1)),
        lambda m, x: ((id(m), 1) in {(id(first), 1)}, (id(m), 1) in known),
        lambda m, x: (str((id(m), 1)), f"{(id(m), 1)}", repr([(id(m),)])),
    ]
    out = []
    for program in programs:
        c = compile(lambda m, x: (program(m, x), x + 1))
        out += [c(m, torch.ones(2))[0] == program(m, None) for m in (first, second, first, second)]
        if engine:
            engine.reset()
    return out


@edge
def elements_of_sets_that_compare_themselves(compile, engine):
    asked = []

    class Key:
        def __init__(self, number):
            self.number = number

        def __hash__(self):
            return self.number

        def __eq__(self, other):
            asked.append((self.number, other.number))
            return False

    a, b, c = Key(1), Key(2), Key(1)
    programs = [
        lambda x: x + (b in {a}) + 2 * (a in {a, b}),
        lambda x: x + (b in {a, c}),
        lambda x: x + len({a, b} - {b}),
        lambda x: x + (b in frozenset([a, c])),
        lambda x: x + len({*[a, b], c}),
        lambda x: x + len(set([a, c, a])),
    ]
    out = []
    for program in programs:
        asked.clear()
        out += [compile(program)(torch.ones(1)), list(asked)]
    return out


@edge
def the_dictionary_of_a_thread(compile, engine):
    local = threading.local()
    local.a = 2
    c, out = compile(lambda x: (x + local.__dict__.get("a", 5) + local.__dict__.get("b", 7), sorted(local.__dict__)), fullgraph=True), []
    for name, value in (("a", 2), ("b", 3), ("a", 4)):
        setattr(local, name, value)
        out.append(c(torch.ones(2)))
    return out

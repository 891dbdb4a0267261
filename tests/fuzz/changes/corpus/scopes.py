"""Names: globals, closures, defaults, code, class attributes, module attributes."""

import functools
import types

import torch

SCALE = 2.0
TABLE = {"a": 1.0, "b": 2.0, 3: 4.0}
ORDER = ["sin", "cos"]
NAMES = {8, 0, 16}
settings = types.ModuleType("settings")
settings.scale, settings.flags = 1.5, {"on": True}


def keyword(x, *, k=2.0, flag=True):
    return x * k if flag else x


def positional(x, k=2.0, names=("a", "b")):
    return x * k + len(names)


def helper(x):
    return positional(keyword(x), 1.0) + SCALE


def world_globals():
    def f(x, y):
        total = x * SCALE + TABLE["a"]
        for name in ORDER:
            total = getattr(torch, name)(total)
        for n in NAMES:
            total = total * 2 + n
        return helper(total) + y, len(TABLE), settings.scale
    return f, (torch.ones(2, 3), torch.zeros(2, 3))


def world_defaults():
    def f(x, k=1.5, *, b=2, flag=False, table={"w": 1.0}, items=[1, 2]):
        y = x * k + b
        return (y if flag else -y) * table["w"] + sum(items), positional(x), keyword(x)
    return f, (torch.ones(3),)


def world_closures():
    k, items, config = 2.0, [1.0, 2.0], {"mode": "mul", "eps": 0.5}

    def inner(x, b=1.0):
        return x * k + b if config["mode"] == "mul" else x + k

    def f(x):
        nonlocal k
        y = inner(x) + sum(items)
        return y + config["eps"], [inner(i) for i in items]
    return f, (torch.ones(2),)


def world_module_attributes():
    def f(x):
        if settings.flags["on"]:
            x = x * settings.scale
        return x, hasattr(settings, "new"), getattr(settings, "new", 0), torch.sin(x)
    return f, (torch.ones(3),)


class Config:
    scale = 2.0
    sizes = (1, 2)
    table = {"x": 1.0}

    def __init__(self):
        self.bias = 0.5
        self.mode = "train"

    @property
    def gain(self):
        return self.scale * 2

    @staticmethod
    def shift(x, by=1.0):
        return x + by

    @classmethod
    def named(cls, x):
        return x * cls.scale, cls.__name__

    def apply(self, x, k=3.0):
        return x * self.gain + self.bias + k


class Derived(Config):
    extra = 1

    def apply(self, x, k=1.0):
        return super().apply(x, k) * self.extra


def world_classes():
    config = Derived()

    def f(x):
        y = config.apply(x)
        if config:
            y = y + 1
        return y, config.shift(x), config.named(x), Derived.sizes[0], config.mode, isinstance(config, Config), len(vars(config))
    return f, (torch.ones(2, 2),)


def world_class_dictionary():
    def f(x):
        count = len([k for k in vars(Config) if not k.startswith("_")])
        return x * vars(Config)["scale"] + count, Config.__dict__.get("table"), "scale" in Config.__dict__
    return f, (torch.ones(2),)


class Meta(type):
    factor = 2.0

    @property
    def twice(cls):
        return cls.k * cls.factor

    def __len__(cls):
        return 3

    def __contains__(cls, item):
        return item == 1


class Described:
    def __init__(self, k):
        self.k = k

    def __get__(self, instance, owner):
        return self.k * (instance.b if instance is not None else 1)

    def __set__(self, instance, value):
        instance.b = value


class WithMeta(metaclass=Meta):
    k = 3.0
    d = Described(2.0)

    def __init__(self):
        self.b = 1.0

    def __getattr__(self, name):
        if name.startswith("x_"):
            return float(len(name))
        raise AttributeError(name)


def world_metaclass():
    o = WithMeta()

    def f(x):
        y = x * WithMeta.twice + len(WithMeta) + o.d + o.x_abc
        o.d = o.b + 1
        return y, 1 in WithMeta, hasattr(o, "missing"), getattr(o, "missing", None)
    return f, (torch.ones(2),)


class Slotted:
    __slots__ = ("a", "b", "__weakref__")

    def __init__(self):
        self.a, self.b = 1.0, [1]


def world_slots():
    s = Slotted()

    def f(x):
        s.b = [*s.b[-2:], 1]
        return x * s.a, s.b, s
    return f, (torch.ones(2),)


def world_partials():
    p = functools.partial(keyword, k=3.0)
    q = functools.partial(positional, names=("a",))

    def f(x, g):
        return p(x), q(x, 2.0), g(x)
    return f, (torch.ones(2), functools.partial(helper))


@functools.lru_cache
def cached(n):
    return n * SCALE


def world_cached():
    def f(x, n):
        return x * cached(n), cached(2)
    return f, (torch.ones(2), 3)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return function(*args, **kwargs) * wrapper.scale
    wrapper.calls, wrapper.scale = 0, 2.0
    return wrapper


@decorated
def wrapped(x, y=1.0):
    return x + y


def world_decorated():
    def f(x):
        return wrapped(x), wrapped(x, y=2.0), wrapped.calls, wrapped.__name__
    return f, (torch.ones(2),)


def world_method():
    c = Config()
    return c.apply, (torch.ones(2), 2.0)


def world_functions_as_arguments():
    def f(x, g, h=None, *rest, **named):
        y = g(x)
        if h is not None:
            y = h(y)
        for r in rest:
            y = y + r
        return y, sorted(named), {k: v for k, v in named.items()}
    return f, (torch.ones(2), keyword, positional, 1.0, 2), {"a": 1, "b": "x"}


def world_identity():
    a, b = [1.0], [1.0]

    def f(x, p, q, o=None):
        return (x + 1 if p is q else x), p is a, a is b, o is None, p == q, type(p) is type(q)
    return f, (torch.ones(1), 1000, 1000.0, a)

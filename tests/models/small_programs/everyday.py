"""Names, scopes, strings, numbers, classes and attributes: the language as people write it."""

import collections
import dataclasses
import enum
import threading
import weakref

import torch

from . import script


def rows(*s):
    return torch.randn(*(s or (4, 5)))


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@script
def nonlocal_counter(compile):
    def make():
        n = 0
        hist = []

        def bump(x):
            nonlocal n
            n += 1
            hist.append(n)
            return x * n

        return bump, lambda: (n, list(hist))

    b, get = make()
    f = compile(b)
    return f(rows()), f(rows()), f(rows()), get()


@script
def global_writes(compile):
    global STATE
    STATE = 0

    @compile
    def f(x):
        global STATE
        STATE = STATE + x.shape[0]
        return x + STATE

    return f(rows()), f(rows()), STATE


@script
def dict_order_views(compile):
    @compile
    def f(x, d):
        d.pop("b")
        d["b"] = x
        d |= {"z": 1}
        ks = d.keys()
        d["q"] = 5
        return (
            list(ks),
            d,
            sorted(d, key=str, reverse=True),
            {**d, "a": 0},
            d.keys() & {"a", "z"},
            dict(zip(d, range(9))),
            ("q", 5) in d.items(),
        )

    return f(rows(), {"a": 1, "b": 2, "c": 3})


@script
def fstrings_with_tensors(compile):
    @compile
    def f(x):
        y = x.sum()
        s = f"{y:.3f} {y.item():8.2e} {x.shape!r} {x.dtype=} {list(x.size())}"
        return x * 2, s, "%d rows %s" % (x.shape[0], tuple(x.shape)), "{:>{w}}".format("a", w=4), repr(x[0, :2]), str(y)

    return f(rows()), f(rows())


@script
def classes_inside(compile):
    @compile
    def f(x):
        class Local:
            k = 3

            def __init__(self, v):
                self.v = v

            def __call__(self):
                return self.v * self.k

        @dataclasses.dataclass
        class D:
            a: object
            b: int = 1

        class E(enum.IntEnum):
            A = 1
            B = 2

        N = collections.namedtuple("N", "p q")
        return Local(x)(), D(x).a + D(x, 5).b, E.B + 1, N(x, 2).p, type("Dyn", (), {"z": 4}).z

    return f(rows()), f(rows())


@script
def attribute_magic(compile):
    class Meta(type):
        def __getitem__(cls, k):
            return cls.table[k]

        def __len__(cls):
            return 7

        @property
        def kind(cls):
            return "meta"

    class Lazy(metaclass=Meta):
        table = {"a": 5}

        def __init__(self):
            self.__dict__["data"] = {}

        def __getattr__(self, n):
            if n.startswith("_"):
                raise AttributeError(n)
            return self.data.setdefault(n, len(self.data))

        def __setattr__(self, n, v):
            self.data[n] = v

        def __delattr__(self, n):
            del self.data[n]

        def __dir__(self):
            return ["q"]

        def __contains__(self, k):
            return k in self.data

    l = Lazy()

    @compile
    def f(x):
        l.w = x * 2
        a = l.foo
        del l.foo
        return (
            l.w,
            a,
            "foo" in l,
            Lazy["a"],
            len(Lazy),
            Lazy.kind,
            dir(l),
            hasattr(l, "_no"),
            getattr(l, "bar", None),
            vars(l)["data"].keys() >= {"w"},
        )

    return f(rows()), f(rows()), sorted(l.data)


@script
def weak_and_locals(compile):
    tl = threading.local()
    tl.v = 3

    class N:
        pass

    n = N()
    n.t = rows()
    r = weakref.ref(n)
    d = weakref.WeakKeyDictionary({n: 2})
    wv = weakref.WeakValueDictionary({"n": n})

    @compile
    def f(x):
        tl.v += 1
        return x * tl.v + r().t, d[n], len(wv), wv["n"] is n, weakref.proxy(n).t.shape

    return f(rows()), f(rows()), tl.v


@script
def numbers_and_bits(compile):
    @compile
    def f(x, n):
        a, b = divmod(n, 3)
        return (
            x * (n**2 % 7) + (n << 1 | 1),
            a,
            b,
            n.bit_length(),
            int("ff", 16),
            round(n / 3, 2),
            (3.7).is_integer(),
            hash(n) == n,
            complex(1, 2).conjugate(),
            10 // -3,
            -7 % 3,
            2**-1,
            int.from_bytes(b"\x01\x02", "big"),
            float("inf") > n,
            bool(n & 1),
            abs(-n),
            pow(2, 10, 7),
            sum([0.1] * 3),
            max([1, 5], default=0),
            1_000,
        )

    return f(rows(), 7), f(rows(), 8)


@script
def string_things(compile):
    @compile
    def f(x, s):
        return (
            x + len(s.split(",")),
            s.title(),
            s.encode().decode(),
            s.partition(","),
            "".join(reversed(s)),
            s.translate(str.maketrans("a", "b")),
            s.zfill(8),
            [*s],
            s * 2,
            s.find("b"),
            s.startswith(("a", "b")),
            f"{s!r:>10}",
            s.center(9, "*"),
            ord(s[0]),
            s.isalpha(),
            "%s-%05.1f" % (s, 2.25),
            s.format_map({}),
            s[::-1],
            "x" in s,
            s.join("12"),
            s.casefold() == s,
            s.rsplit(",", 1),
            s.count(","),
            bytes(s, "utf8")[0],
            s.strip("a"),
            s.replace(",", ";"),
            s.splitlines(),
        )

    return f(rows(), "ab,c"), f(rows(), "b")


@script
def walrus_etc(compile):
    @compile
    def f(x, *args, k=(n := 3), **kw):
        if (m := x.shape[0]) > 2 and (z := m * 2):
            x = x + z
        return (
            x * k,
            args[::-1],
            {**kw, "m": m},
            [y for y in range(5) if (q := y) % 2],
            q,
            [*args, *range(2)],
            (lambda a, /, b, *, c: a + b + c)(1, 2, c=3),
            {i: j for i, j in zip("ab", [1, 2])},
            {*args},
        )

    return f(rows(), 1, 2, k=4, r=5), f(rows())


@script
def sentinel_and_identity(compile):
    MISSING = object()

    def get(d, k, default=MISSING):
        if k in d:
            return d[k]
        if default is MISSING:
            raise KeyError(k)
        return default

    @compile
    def f(x, d):
        try:
            a = get(d, "q")
        except KeyError as e:
            a = e.args[0]
        return x + get(d, "a", 5), a, NotImplemented is NotImplemented, ... is Ellipsis, x is x, (y := [1]) is not [1]

    return f(rows(), {"a": 2}), f(rows(), {"q": 1})


@script
def flags_and_strenum(compile):
    class P(enum.Flag):
        R = enum.auto()
        W = enum.auto()

    class S(str, enum.Enum):
        A = "a"

    @compile
    def f(x, p, s):
        if p & P.W:
            x = x * 2
        if s == "a" and s is S.A:
            x = x + 1
        return x, p | P.R, [c.name for c in P], S("a").value, P.R in p, Color["RED"], Color(2), {S.A: 1}["a"], s.upper()

    return f(rows(), P.W, S.A), f(rows(), P.R, S.A)


@script
def tensors_in_containers_args(compile):
    @compile
    def f(batch, *, opts):
        out = {k: v.float().mean() for k, v in batch.items() if isinstance(v, torch.Tensor)}
        batch["new"] = batch["x"] * opts["s"]
        batch["meta"].append(len(out))
        opts.update(done=True)
        del batch["y"]
        return out

    b = {"x": rows(), "y": torch.arange(3), "meta": []}
    o = {"s": 2}
    r = f(b, opts=o)
    return r, b, o, f({"x": rows(), "y": rows(), "meta": [1]}, opts=o)

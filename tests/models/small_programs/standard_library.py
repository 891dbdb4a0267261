"""The standard library and numpy around tensors."""

import bisect
import collections
import copy
import dataclasses
import datetime
import decimal
import fractions
import functools
import heapq
import inspect
import itertools
import json
import math
import operator
import pathlib
import random
import re
import statistics
import string
import textwrap
import time
import types
import typing
import uuid
from typing import Optional

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from . import script


def rows(*s):
    return torch.randn(*(s or (4, 5)))


@dataclasses.dataclass
class Point:
    x: object
    y: object = 2
    __match_args__ = ("x", "y")


@script
def sort_keys(compile):
    @compile
    def f(xs):
        a = sorted(xs, key=lambda t: t.shape[0])
        b = sorted(xs, key=lambda t: t.sum().item(), reverse=True)
        c = max(xs, key=lambda t: t.numel())
        d = min(enumerate(xs), key=lambda p: -p[0])
        l = [("b", 1), ("a", 2), ("a", 1)]
        l.sort(key=operator.itemgetter(0, 1))
        return a, b, c, d, l, heapq.nsmallest(2, [3, 1, 2]), bisect.bisect([1, 2, 3], 2)

    return f([rows(2, 3), rows(1, 3), rows(3, 3)])


@script
def functools_more(compile):
    calls = []

    @functools.lru_cache(None)
    def table(n):
        calls.append(n)
        return torch.arange(n).float()

    @functools.singledispatch
    def show(v):
        return "obj"

    @show.register
    def _(v: int):
        return "int"

    @show.register(torch.Tensor)
    def _(v):
        return "tensor"

    class A:
        def base(self, x, k):
            return x * k

        double = functools.partialmethod(base, 2)

        @functools.cached_property
        def cp(self):
            calls.append("cp")
            return 3

        @functools.singledispatchmethod
        def sd(self, v):
            return 0

        @sd.register
        def _(self, v: str):
            return 1

    a = A()

    @functools.wraps(A.base)
    def wrapped(x):
        return x

    @compile
    def f(x):
        return (
            x + table(5),
            show(3),
            show(x),
            show("a"),
            a.double(x),
            a.cp,
            a.sd("s"),
            a.sd(2),
            wrapped(x),
            functools.reduce(operator.add, [x, x], x),
            functools.cmp_to_key(lambda p, q: p - q)(3) < functools.cmp_to_key(lambda p, q: p - q)(4),
        )

    return f(rows()), f(rows()), calls


@script
def itertools_more(compile):
    @compile
    def f(x):
        c = itertools.count(2, 3)
        g = [(k, len(list(v))) for k, v in itertools.groupby([1, 1, 2, 3, 3])]
        return (
            x + next(c) + next(c),
            g,
            list(itertools.accumulate([1, 2, 3], operator.mul)),
            list(itertools.accumulate([x, x, x]))[2],
            list(itertools.takewhile(lambda v: v < 3, [1, 2, 3, 1])),
            list(itertools.dropwhile(lambda v: v < 3, [1, 2, 3, 1])),
            list(itertools.starmap(pow, [(2, 3), (3, 2)])),
            list(itertools.compress("abc", [1, 0, 1])),
            list(itertools.filterfalse(None, [0, 1, 2])),
            [list(t) for t in itertools.tee([1, 2])],
            list(itertools.zip_longest([1], [2, 3], fillvalue=0)),
            list(itertools.product([1, 2], repeat=2)),
            [sum(p) for p in itertools.combinations([x.sum(), x.mean(), x.max()], 2)],
            list(itertools.pairwise([1, 2, 3])),
            list(itertools.islice(itertools.cycle("ab"), 5)),
            list(itertools.batched([1, 2, 3], 2)) if hasattr(itertools, "batched") else None,
        )

    return f(rows())


@script
def typing_inspect(compile):
    class Cfg(typing.TypedDict, total=False):
        a: int

    T = typing.TypeVar("T")

    class Box(typing.Generic[T]):
        def __init__(self, v: T):
            self.v = v

    def fn(a, b: int = 3, *c, d=4, **e) -> int: ...
    @compile
    def f(x: torch.Tensor, c: Optional[int] = None):
        b = Box[int](3)
        cfg: Cfg = {"a": 1}
        y: list[int] = typing.cast(list, [1])
        s = inspect.signature(fn)
        return (
            x + b.v + cfg["a"],
            y,
            list(s.parameters),
            inspect.isfunction(fn),
            typing.get_type_hints(fn),
            fn.__name__,
            inspect.getfullargspec(fn).args,
            isinstance(x, typing.Iterable),
            callable(fn),
            inspect.isclass(Box),
        )

    return f(rows())


@script
def deep_copies(compile):
    net = nn.Linear(5, 2)
    cfg = {"a": [1, {"b": (2, 3)}], "p": Point(1, [2])}

    @compile
    def f(x):
        c = copy.deepcopy(cfg)
        c["a"][1]["b"] = 9
        s = copy.copy(cfg)
        s["a"].append(7)
        p = dataclasses.replace(cfg["p"], x=x * 2)
        n = copy.deepcopy(net)
        return net(x) + n(x), c, s, p.x, dataclasses.asdict(Point(1, 2)), dataclasses.astuple(Point(3)), copy.deepcopy(x)

    return f(rows()), f(rows()), cfg["a"]


@script
def numpy_round(compile):
    @compile
    def f(x):
        a = x.numpy() * 2
        b = np.sqrt(np.abs(a)).sum(axis=0)
        y = torch.from_numpy(b) + x[0]
        return (
            y,
            float(np.float32(2.5)),
            np.arange(3).tolist(),
            torch.tensor(np.ones((2, 2))),
            x.detach().cpu().numpy().shape,
            np.asarray(x[0]).tolist(),
            torch.as_tensor([np.int64(3)]),
        )

    return f(rows()), f(rows())


@script
def numpy_args(compile):
    @compile
    def f(a, s):
        return torch.from_numpy(a) * float(s) + s.item(), a.shape, a.dtype == np.float32, a.mean()

    return f(np.ones((2, 3), np.float32), np.float64(2)), f(np.zeros((3, 3), np.float32), np.float64(3))


@script
def async_things(compile):
    import asyncio

    @compile
    async def f(x):
        await asyncio.sleep(0)
        return x * 2

    @compile
    def g(x):
        return x + 1

    async def main():
        return await f(rows()), g(rows()), await asyncio.gather(f(rows()), f(rows()))

    return asyncio.run(main())


@script
def stdlib_values(compile):
    @compile
    def f(x):
        fr = fractions.Fraction(1, 3) + 1
        d = decimal.Decimal("1.1") * 2
        p = pathlib.Path("a") / "b.txt"
        dt = datetime.timedelta(seconds=x.shape[0])
        return (
            x * float(fr),
            str(d),
            p.suffix,
            dt.total_seconds(),
            json.dumps({"a": [1, 2]}),
            json.loads("[1, 2]"),
            re.sub("a", "b", "aa"),
            string.ascii_lowercase[:3],
            statistics.mean([1, 2, 3]),
            math.isclose(1.0, 1.0),
            textwrap.dedent("  a"),
        )

    return f(rows())


@script
def counters_and_chainmaps(compile):
    @compile
    def f(x):
        c = collections.Counter("abca")
        c.update("a")
        cm = collections.ChainMap({"a": 1}, {"b": 2})
        dd = collections.defaultdict(list)
        dd["k"].append(x)
        dq = collections.deque([1, 2, 3], maxlen=2)
        dq.rotate(1)
        od = collections.OrderedDict(b=1, a=2)
        od.move_to_end("b")
        return (
            x * c["a"],
            c.most_common(1),
            cm["b"],
            dd["k"][0],
            list(dq),
            list(od),
            types.MappingProxyType({"q": 1})["q"],
            collections.UserDict(a=1)["a"],
        )

    return f(rows())


@script
def operators_on_objects(compile):
    class V:
        def __init__(self, t):
            self.t = t

        def __add__(self, o):
            return V(self.t + (o.t if isinstance(o, V) else o))

        __radd__ = __add__

        def __mul__(self, o):
            return NotImplemented

        def __rmul__(self, o):
            return V(self.t * o)

        def __matmul__(self, o):
            return V(self.t @ o.t.t())

        def __neg__(self):
            return V(-self.t)

        def __getitem__(self, i):
            return V(self.t[i])

        def __setitem__(self, i, v):
            self.t[i] = v

        def __len__(self):
            return len(self.t)

        def __iter__(self):
            return (V(r) for r in self.t)

        def __eq__(self, o):
            return self.t.shape == o.t.shape

        def __hash__(self):
            return 3

        def __bool__(self):
            return True

        def __call__(self, k):
            return self.t * k

        def __iadd__(self, o):
            self.t = self.t + o
            return self

        def __lt__(self, o):
            return self.t.shape[0] < o.t.shape[0]

        def __format__(self, s):
            return f"V[{s}]"

        def __index__(self):
            return 2

        def __enter__(self):
            return self

        def __exit__(self, *a):
            pass

    @compile
    def f(x):
        v = V(x.clone())
        v[0] = 1.0
        v += 2
        w = 3 + v
        with v as q:
            z = q(2)
        return (
            (2 * w).t,
            (-w).t,
            len(v),
            [r.t for r in v],
            v == w,
            {v: 1}[w],
            z,
            sorted([V(x), V(x[:2])])[0].t,
            f"{v:abc}",
            [10, 20, 30][v],
            v in [w],
        )

    return f(rows())


@script
def pickle_results(compile):
    import pickle

    @compile
    def f(x):
        return {"a": x + 1, "l": [x * 2]}

    r = f(rows())
    return pickle.loads(pickle.dumps(r)), copy.deepcopy(r)


@script
def random_things(compile):
    @compile
    def f(x):
        torch.manual_seed(3)
        a = torch.rand(3)
        g = torch.Generator().manual_seed(5)
        b = torch.randn(2, generator=g)
        c = torch.randperm(5)
        d = torch.randint(0, 9, (3,))
        e = F.dropout(x, 0.5)
        return (
            a,
            b,
            c,
            d,
            e,
            torch.bernoulli(torch.full((4,), 0.5)),
            torch.multinomial(torch.ones(4), 2),
            torch.rand_like(x),
            torch.normal(0.0, 1.0, (2,)),
            x.uniform_(),
            torch.initial_seed(),
        )

    return f(rows()), f(rows()), torch.rand(2)


@script
def drawn_before_the_graph(compile):
    """What random gives is known when the graph runs: sizes, factors and results, from generators of the process, the caller and the region."""
    own, given = random.Random(11), random.Random(12)

    def seen(g):
        return g.getstate()[1][:5], g.getstate()[2]

    @compile
    def f(x, other):
        low = random.uniform(1, 2)
        made = random.Random(3)
        y = x * low + other.gauss(0, 1) - made.randint(-4, 4)
        own.seed(5)
        z = x.sum() * own.random() + torch.zeros(random.randint(2, 6)).add(other.randrange(0, x.shape[0]))
        return y, z, low, other.getrandbits(6), made

    @compile
    def fails(x, other, most):
        return x[: other.randint(2, most)] @ x[:, : other.randint(2, 3)]

    torch.manual_seed(0)
    results = []
    for n in (4, 5, 4, 7):
        y, z, low, bits, made = f(rows(n, 5), given)
        results += [y, z, low, bits, seen(made), seen(own), seen(given), seen(random._inst)]
    for most in (4, 4, 1, 4):  # wrong sizes, and an empty range: the generator goes on as in eager
        try:
            results.append(fails(rows(5, 5), given, most))
        except (RuntimeError, ValueError) as e:
            results.append(type(e).__name__)
        results.append(seen(given))
    return results


@script
def drawn_by_numpy(compile):
    old, new = np.random.RandomState(3), np.random.default_rng(4)

    @compile
    def f(x, n):
        noise = old.uniform(-1, 1, size=(n, 5))
        picked = x[: new.integers(1, 3)] * new.standard_normal() + old.randint(4)
        return x + torch.from_numpy(noise), picked, noise.sum(axis=0).tolist(), np.random.rand() * 2, new.integers(9), new.permutation(4).tolist()

    @compile
    def fails(x):
        return x @ torch.zeros(old.randint(4, 6), 2)

    np.random.seed(1)
    results = [f(rows(n, 5), n) for n in (2, 3, 3, 6)]
    for _ in range(4):
        try:
            results.append(fails(rows()))
        except RuntimeError:
            results.append("sizes")
    return results, old.random(), new.random(), np.random.random()


@script
def python_random(compile):
    rng = random.Random(4)
    nrng = np.random.default_rng(1)

    @compile
    def f(x):
        k = random.random()
        n = rng.randint(1, 5)
        p = [1, 2, 3]
        random.shuffle(p)
        if random.random() < 0.5:
            x = x * 2
        return x + k, n, p, random.choice("abc"), np.random.rand(), nrng.integers(10)

    return [f(rows()) for _ in range(4)], random.random()


@script
def generators_of_torch(compile):
    kept = torch.Generator().manual_seed(5)

    def every_kind(x, g):
        return (x + torch.randn(4, generator=g), torch.rand((2, 3), generator=g, dtype=torch.float64), torch.randint(0, 9, (4,), generator=g),
                torch.randperm(5, generator=g), torch.normal(0.0, 2.0, (3,), generator=g))

    def seeded(x, g):
        g.manual_seed(7)
        a = torch.randn(3, generator=g)
        return a, torch.randn(3, generator=g.manual_seed(7)), g.initial_seed() + 1, x + 1

    def made(x, g):
        new, by_device = torch.Generator(device="cpu").manual_seed(3), torch.Generator("cpu")
        return x + torch.randn(4, generator=new), torch.rand(2, generator=by_device), torch.rand(2, generator=torch.Generator()), new.initial_seed(), by_device

    def beside_the_default(x, g):
        return torch.randn(4) + torch.randn(4, generator=g) + torch.randn(4, generator=None) + torch.rand(4, generator=torch.default_generator), x + 1

    def written(x, g):
        a = torch.randn(4, generator=g)
        a.mul_(2).add_(x[0])
        a[1:].zero_()
        return a, a[:2]

    def trained(x, g):
        w = torch.randn(4, 2, generator=g).requires_grad_()
        (x @ w).pow(2).sum().backward()
        return w, w.grad

    def across_breaks(x, g):
        a = torch.randn(4, generator=g)
        torch._dynamo.graph_break()
        b = x + torch.randn(4, generator=g)
        return a, b.normal_(generator=g), torch.bernoulli(torch.full((4,), 0.5), generator=g), kept is g

    def decides(x, g):
        for i in range(3):
            x = x * i + 1 if torch.rand((), generator=g) > 0.5 else x - torch.randn(x.shape[0], 1, generator=g)
        return x

    def refused(x, g):
        try:
            return torch.randint(5, 2, (3,), generator=g)
        except RuntimeError as e:
            return str(e), torch.rand(4, generator=g) + x

    out = []
    for program in (every_kind, seeded, made, beside_the_default, written, trained, across_breaks, decides, refused):
        f = compile(program)
        for g in (kept, kept, torch.Generator().manual_seed(1), torch.Generator().manual_seed(2), kept):
            result = f(torch.randn(4, 4), g)
            out.append([(v.initial_seed(), torch.rand(2, generator=v)) if isinstance(v, torch.Generator) else v for v in result] if isinstance(result, tuple) else result)
    return out, torch.rand(3, generator=kept), torch.rand(3)


@script
def times_and_ids(compile):
    @compile
    def f(x):
        t = time.perf_counter()
        y = x * 2
        dt = time.perf_counter() - t
        return y, dt >= 0, id(x) == id(x), isinstance(uuid.uuid4(), uuid.UUID), datetime.datetime.now().year > 2000

    return f(rows()), f(rows())


@script
def numpy_on_constants(compile):
    import numpy as np

    @compile
    def f(x, n):
        x = x * float(np.sqrt(2.0)) + np.pi - np.float32(3)
        k = int(np.ceil(x.shape[0] / 2)) + np.prod(x.shape)
        return (x.reshape(np.prod(x.shape), 1) * np.log(n)).sum(), k, np.clip(n, 0, 3), np.int64(n) + 1, np.maximum(n, 2.5)

    @compile
    def warns(x, n):
        with np.errstate(all="ignore"):
            return x + np.log(n), np.divide(1.0, n)

    @compile
    def arrays(x, values):
        a = np.asarray([1.0, 2.0])
        a[0] = values[0]
        return x + torch.from_numpy(a), float(np.sum(values))

    out = [f(torch.ones(3, 4), 2), f(torch.ones(5, 4), 7), f(torch.ones(5, 4), 7.5)]
    out += [warns(torch.ones(2), n) for n in (1, 0)]
    out += [arrays(torch.ones(2, dtype=torch.float64), v) for v in ([3.0, 4.0], [5.0, 6.0])]
    return out, [type(v) for o in out for v in o]

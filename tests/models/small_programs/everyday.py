"""Python as people write it: language, standard library, numpy, and what they do to tensors with it."""

import collections, contextlib, copy, dataclasses, enum, functools, itertools, logging, operator, threading, typing, weakref, inspect, warnings, math, random, json, re, string, types, abc, heapq, bisect, statistics, decimal, fractions, datetime, pathlib, uuid, textwrap, time, traceback
from typing import NamedTuple, Optional
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
from . import script


def rows(*s):
    return torch.randn(*(s or (4, 5)))


@dataclasses.dataclass
class Point:
    x: object
    y: object = 2
    __match_args__ = ("x", "y")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@script
def match_class(compile):
    @compile
    def f(p, t):
        match p:
            case Point(x=0, y=y):
                return t * y
            case Point(int() as a, b) if a > 3:
                return t + a + b
            case [a, b, *rest]:
                return t - a - len(rest)
            case {"k": v, **rest}:
                return t * v + len(rest)
            case str(s):
                return t + len(s)
            case Color.RED:
                return t * 100
            case None | True:
                return t
            case torch.Tensor():
                return t + p
            case (1 | 2) as n:
                return t * n
            case _:
                return t * 0

    cases = [
        Point(0, 3),
        Point(5, 6),
        Point(1, 1),
        [1, 2, 3, 4],
        (7, 8),
        {"k": 4, "j": 1},
        {"z": 1},
        "abc",
        Color.RED,
        Color.BLUE,
        None,
        2,
        7,
        1.5,
        rows(),
        [],
        {},
    ]
    return [f(c, rows()) for c in cases]


@script
def match_nested(compile):
    @compile
    def f(op, x):
        def ev(op):
            match op:
                case ("add", a, b):
                    return ev(a) + ev(b)
                case ("mul", a, b):
                    return ev(a) * ev(b)
                case ("var",):
                    return x
                case {"const": float(c) | int(c)}:
                    return torch.full_like(x, c)
                case [("neg", a)]:
                    return -ev(a)
                case _:
                    raise ValueError(f"bad {op!r}")

        return ev(op)

    out = [f(("add", ("mul", ("var",), {"const": 2}), [("neg", ("var",))]), rows())]
    try:
        f(("sub",), rows())
    except ValueError as e:
        out.append(str(e))
    return out


@script
def match_with_break(compile):
    @compile
    def f(cmd, x):
        y = x * 2
        match cmd.split():
            case ["go", d]:
                n = y.sum().item()
                return y + n, d
            case ["stop"]:
                return y - 1, None
            case [*w]:
                return y, w

    return f("go north", rows()), f("stop", rows()), f("a b c", rows())


@script
def for_over_existing_iterator(compile):
    @compile
    def f(it, x):
        for v in it:
            x = x * v + 1
        return x

    return (
        f(iter([1, 2, 3]), rows()),
        f(iter(range(4)), rows()),
        f((i for i in [1, 2]), rows()),
        f(iter({1: 2}.items().__iter__().__next__()), rows()),
    )


@script
def for_with_break_inside(compile):
    net = nn.Linear(5, 5)

    @compile
    def f(x, n):
        tot = 0.0
        for i in range(n):
            x = net(x).relu()
            tot += x.sum().item()
            x = x * 2 - 1
        return x, tot

    return f(rows(), 3), f(rows(), 12)


@script
def loop_zip_enumerate_break(compile):
    @compile
    def f(xs, d):
        out = []
        for i, (a, (k, v)) in enumerate(zip(xs, d.items())):
            y = a * v
            if y.sum().item() > 0:
                y = y + i
            else:
                y = y - i
            out.append((k, y.relu() * 2))
        return out

    return f([rows() for _ in range(5)], {c: i for i, c in enumerate("abcde")})


@script
def training_style_loop(compile):
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    data = [(rows(), rows(4, 1)) for _ in range(6)]

    @compile
    def epoch(data):
        losses = []
        for step, (x, y) in enumerate(data):
            opt.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            opt.step()
            losses.append(loss.item())
            if step % 2 == 0:
                print(f"step {step} {loss.item():.3f}")
        return losses

    return epoch(data), epoch(data), list(net.parameters())


@script
def dataloader_loop(compile):
    from torch.utils.data import DataLoader, TensorDataset

    ds = TensorDataset(rows(10, 5), rows(10, 1))
    dl = DataLoader(ds, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(1))
    net = nn.Linear(5, 1)
    opt = torch.optim.AdamW(net.parameters())

    @compile
    def train():
        for x, y in dl:
            loss = F.mse_loss(net(x), y)
            loss.backward()
            opt.step()
            opt.zero_grad()
        return loss.detach()

    return train(), train(), list(net.parameters())


@script
def while_generation(compile):
    emb = nn.Embedding(11, 6)
    head = nn.Linear(6, 11)

    @compile
    def gen(ids, n):
        with torch.no_grad():
            while ids.shape[1] < n:
                logits = head(emb(ids).mean(1))
                nxt = logits.argmax(-1, keepdim=True)
                ids = torch.cat([ids, nxt], 1)
                if (nxt == 0).all():
                    break
        return ids

    return gen(torch.tensor([[1, 2]]), 8), gen(torch.tensor([[3, 4], [5, 6]]), 6)


@script
def beam_search(compile):
    W = rows(11, 11)

    @compile
    def beam(start, k, steps):
        beams = [([start], 0.0)]
        for _ in range(steps):
            cand = []
            for seq, score in beams:
                lp = torch.log_softmax(W[seq[-1]], 0)
                vals, idx = lp.topk(k)
                for v, i in zip(vals.tolist(), idx.tolist()):
                    cand.append((seq + [i], score + v))
            beams = sorted(cand, key=lambda b: -b[1])[:k]
        return [(s, round(v, 3)) for s, v in beams]

    return beam(1, 2, 3)


@script
def try_finally_returns(compile):
    log = []

    @compile
    def f(x, how):
        for i in range(3):
            try:
                if how == 0:
                    return x + i
                if how == 1:
                    raise KeyError("k")
                if how == 2:
                    continue
                if how == 3:
                    break
            except KeyError as e:
                log.append(repr(e))
                x = x * 2
            else:
                x = x - 1
            finally:
                log.append(i)
                x = x + 1
                if how == 4:
                    return x * 0
        else:
            x = x + 100
        return x

    return [f(rows(), h) for h in range(6)], log


@script
def exception_notes_groups(compile):
    @compile
    def f(x):
        try:
            try:
                raise ValueError("inner")
            except ValueError as e:
                e.add_note("a note")
                raise RuntimeError("outer") from e
        except RuntimeError as e:
            y = x + len(e.__cause__.__notes__)
            return y, str(e), repr(e.__cause__), e.__cause__.__notes__, e.__suppress_context__

    return f(rows())


@script
def exception_star(compile):
    @compile
    def f(x):
        out = []
        try:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2), ValueError(3)])
        except* ValueError as eg:
            out.append(len(eg.exceptions))
            x = x + 1
        except* TypeError as eg:
            out.append(str(eg.exceptions[0]))
            x = x * 2
        return x, out

    return f(rows())


@script
def traceback_text(compile):
    def g(x):
        if x.shape[0] == 4:
            raise ValueError("four " + str(tuple(x.shape)))

    @compile
    def f(x):
        y = x * 2
        g(y)
        return y

    try:
        f(rows())
    except ValueError as e:
        names = [fr.name for fr in traceback.extract_tb(e.__traceback__) if "capture" not in fr.filename]
        return names[-2:], str(e), [fr.line for fr in traceback.extract_tb(e.__traceback__)][-2:]


@script
def torch_errors(compile):
    @compile
    def f(x, y):
        return x @ y

    @compile
    def g(x):
        return x.view(7)

    @compile
    def h(x):
        return x.nope

    @compile
    def k(x):
        return torch.cat([x, x[0]])

    @compile
    def i(x):
        return x[10]

    @compile
    def m(x):
        return F.linear(x, x) + torch.zeros(3)

    out = []
    for fn, a in ((f, (rows(), rows())), (g, (rows(),)), (h, (rows(),)), (k, (rows(),)), (i, (rows(),)), (m, (rows(),))):
        try:
            fn(*a)
            out.append("no error")
        except Exception as e:
            out.append((type(e).__name__, str(e)))
    return out


@script
def generators_full(compile):
    @compile
    def f(x):
        log = []

        def g():
            total = 0
            try:
                while True:
                    try:
                        v = yield total
                    except ValueError as e:
                        log.append(str(e))
                        v = 10
                    total = total + v
            finally:
                log.append("closed")

        c = g()
        next(c)
        a = c.send(x)
        b = c.throw(ValueError("bad"))
        c.close()

        def h():
            r = yield from inner()
            yield r

        def inner():
            yield 1
            return 5

        return a, b, log, list(h())

    return f(rows())


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
def mutation_while_iterating(compile):
    @compile
    def f(x, d, l):
        out = []
        try:
            for k in d:
                d[k + 1] = 0
        except RuntimeError as e:
            out.append(str(e))
        for v in l:
            if v < 5:
                l.append(v + 2)
        return x + len(l), out, l, d

    return f(rows(), {1: 1}, [1, 2])


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
def logs_and_warnings(compile):
    log = logging.getLogger("users_test")
    log.setLevel("DEBUG")
    log.propagate = False
    got = []

    class H(logging.Handler):
        def emit(self, r):
            got.append((r.levelname, r.getMessage(), r.funcName, r.lineno > 0))

    log.handlers = [H()]

    @compile
    def f(x):
        y = x + 1
        log.info("mean %.3f of %s", y.mean(), tuple(y.shape))
        log.debug(f"shape {y.shape}")
        if log.isEnabledFor(logging.DEBUG):
            log.log(logging.WARNING, "custom")
        try:
            1 / 0
        except ZeroDivisionError:
            log.exception("boom")
        warnings.warn("depr", DeprecationWarning, stacklevel=2)
        return y

    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        out = f(rows()), f(rows())
    return out, got, [(x.category.__name__, str(x.message)) for x in w]


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
def context_managers(compile):
    log = []

    class CM:
        def __init__(self, n, eat=False):
            self.n, self.eat = n, eat

        def __enter__(self):
            log.append(("in", self.n))
            return self

        def __exit__(self, t, v, tb):
            log.append(("out", self.n, t.__name__ if t else None))
            return self.eat

    @contextlib.contextmanager
    def gen(n):
        log.append(n)
        try:
            yield n
        except ValueError as e:
            log.append(str(e))
        finally:
            log.append(-n)

    @compile
    def f(x):
        with CM(1) as a, CM(2, True):
            x = x * a.n
            raise KeyError("gone")
        with gen(5) as n:
            x = x + n
            raise ValueError("eaten")
        with contextlib.ExitStack() as st:
            st.enter_context(CM(7))
            st.callback(log.append, "cb")
            x = x + st.enter_context(gen(6))
        with contextlib.suppress(ZeroDivisionError):
            x = x / (1 // 0)
        with contextlib.closing(types.SimpleNamespace(close=lambda: log.append("close"))):
            x = x + 1
        return x

    return f(rows()), f(rows()), log


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
def recursion_deep(compile):
    @compile
    def f(x, n):
        return x if n == 0 else f(x + 1, n - 1)

    def fact(n):
        return 1 if n < 2 else n * fact(n - 1)

    @compile
    def g(x):
        return x * fact(20)

    def deep(x, n):
        return x if n == 0 else deep(x + 1, n - 1)

    h = compile(deep)
    return f(rows(), 5), g(rows()), h(rows(), 150)


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
def times_and_ids(compile):
    @compile
    def f(x):
        t = time.perf_counter()
        y = x * 2
        dt = time.perf_counter() - t
        return y, dt >= 0, id(x) == id(x), isinstance(uuid.uuid4(), uuid.UUID), datetime.datetime.now().year > 2000

    return f(rows()), f(rows())


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

"""Control flow, functions, generators, exceptions, context managers."""

import contextlib
import functools
import itertools
import operator
from collections.abc import Iterable

import torch

from . import script


def rows(*shape):
    return torch.randn(*(shape or (4, 5)))


@script
def while_else_and_break_else(compile):
    @compile
    def f(x, limit):
        n = 0
        while n < limit:
            x = x + n
            n += 1
            if n == 3:
                break
        else:
            x = x * 100
        for i in range(limit):
            if i > 4:
                break
        else:
            x = x - 1
        return x, n

    x = rows()
    return [f(x, k) for k in (0, 2, 3, 5, 9)]


@script
def match_statements(compile):
    @compile
    def f(x, command):
        match command:
            case "double":
                return x * 2
            case ("add", int() | float() as amount):
                return x + amount
            case {"scale": s, **rest}:
                return x * s + len(rest)
            case [first, *others] if others:
                return x * first + sum(others)
            case None:
                return x
            case _:
                return -x

    x = rows()
    return [f(x, c) for c in ("double", ("add", 2), ("add", 1.5), {"scale": 3, "a": 0}, [1, 2, 3], [1], None, 7)]


@script
def walrus_and_chained_comparison(compile):
    @compile
    def f(x, n):
        if (m := n * 2) > 5 and 0 < m <= 8 < 100:
            x = x + m
        y = [k for i in range(4) if (k := i * i) > 2]
        return x, y, m, 1 < n < 3, not 1 < n

    x = rows()
    return [f(x, n) for n in range(6)]


@script
def star_unpacking(compile):
    @compile
    def f(xs):
        first, *middle, last = xs
        a, (b, *c), d = 1, (2, 3, 4), 5
        *init, tail = "abc"
        return [*middle, first, *(last, a)], {**{"b": b}, "c": c}, (d, *init, tail), {*c, b}

    return [f([rows() for _ in range(n)]) for n in (2, 3, 5)]


@script
def nested_try_finally(compile):
    order = []

    @compile
    def f(x, mode):
        try:
            try:
                if mode == 1:
                    raise KeyError("one")
                if mode == 2:
                    return x * 2
                x = x + 1
            except KeyError as e:
                order.append(str(e))
                raise ValueError("two") from e
            else:
                order.append("else")
            finally:
                order.append(f"inner {mode}")
        except ValueError as e:
            x = x - len(str(e.__cause__))
        finally:
            order.append("outer")
        for i in range(3):
            try:
                if i == mode - 3:
                    continue
                if i == mode - 2:
                    break
                x = x + i
            finally:
                order.append(i)
        return x

    x = rows()
    return [f(x, m) for m in range(6)], order


@script
def custom_exceptions(compile):
    class Stop(Exception):
        def __init__(self, value, *, code=3):
            super().__init__(value)
            self.code = code

    def worker(x, n):
        if n > 1:
            raise Stop(n, code=n * 2)
        return x + n

    @compile
    def f(x):
        total = x
        for n in range(4):
            try:
                total = worker(total, n)
            except (Stop, TypeError) as e:
                total = total * e.code + e.args[0]
        try:
            assert total.shape[0] == 3, f"rows {total.shape[0]}"
        except AssertionError as e:
            return total, str(e), type(e).__name__
        return total, "", ""

    return f(rows()), f(rows(3, 3))


@script
def suppressed_and_reraised(compile):
    @compile
    def f(x):
        with contextlib.suppress(KeyError, IndexError):
            x = x + 1
            [][1]
            x = x + 100
        try:
            try:
                int("x")
            except ValueError:
                x = x * 2
                raise
        except Exception as e:
            name = type(e).__name__
        return x, name

    return f(rows())


@script
def class_context_managers(compile):
    log = []

    class Scope:
        def __init__(self, name, swallow=False):
            self.name, self.swallow = name, swallow

        def __enter__(self):
            log.append("enter " + self.name)
            return self

        def __exit__(self, kind, value, traceback):
            log.append(f"exit {self.name} {kind.__name__ if kind else None}")
            return self.swallow

    @compile
    def f(x, fail):
        with Scope("a") as a, Scope("b", swallow=True):
            x = x + len(a.name)
            if fail:
                raise RuntimeError("inside")
            x = x * 2
        with Scope("c"):
            return x - 1

    x = rows()
    return f(x, False), f(x, True), f(x, False), log


@script
def generator_based_managers(compile):
    log = []

    @contextlib.contextmanager
    def doubled(name):
        log.append("in " + name)
        try:
            yield 2
        except ZeroDivisionError:
            log.append("caught")
        finally:
            log.append("out " + name)

    @compile
    def f(x, n):
        with doubled("x") as k:
            x = x * k
            1 // n
            x = x + 1
        with contextlib.ExitStack() as stack:
            k = stack.enter_context(doubled("s"))
            x = x * k
        return x

    x = rows()
    return f(x, 1), f(x, 0), log


@script
def generators_send_and_return(compile):
    def accumulate():
        total = 0
        while True:
            value = yield total
            if value is None:
                return "done"
            total = total + value

    def delegate(out):
        result = yield from accumulate()
        out.append(result)

    @compile
    def f(x):
        out = []
        g = delegate(out)
        next(g)
        a = g.send(x)
        b = g.send(x * 2)
        try:
            g.send(None)
        except StopIteration:
            out.append("stop")
        return a, b, out

    return f(rows()), f(rows())


@script
def generator_pipeline(compile):
    def numbers(n):
        for i in range(n):
            yield i

    def squared(source):
        for i in source:
            yield i * i

    @compile
    def f(x, n):
        evens = (i for i in squared(numbers(n)) if i % 2 == 0)
        total = x
        for i in evens:
            total = total + i
        return total, list(itertools.takewhile(lambda i: i < 5, squared(numbers(n)))), dict(enumerate(squared(numbers(3))))

    x = rows()
    return [f(x, n) for n in (0, 1, 5)]


@script
def generator_returned_to_the_caller(compile):
    def split(x):
        for i in range(x.shape[0]):
            yield x[i] * i

    @compile
    def f(x):
        y = x + 1
        return split(y)

    return list(f(rows())), [t + 1 for t in f(rows(2, 2))]


@script
def generator_argument(compile):
    @compile
    def f(x, source):
        for i in source:
            x = x + i
        return x

    return f(rows(), (i for i in range(3))), f(rows(), iter([1.5, 2.5])), f(rows(), map(abs, [-1, 2]))


@script
def iterators_from_outside(compile):
    @compile
    def take(it, n):
        return [next(it) for _ in range(n)]

    source = iter([rows() for _ in range(6)])
    a = take(source, 2)
    b = take(source, 3)
    return a, b, len(list(source))


@script
def closures_and_cells(compile):
    def make(start):
        count = start

        def step(x):
            nonlocal count
            count += 1
            return x * count

        def read():
            return count

        return step, read

    step, read = make(0)
    compiled = compile(step)
    x = rows()
    out = [compiled(x) for _ in range(4)]
    other, read2 = make(10)
    out.append(compile(other)(x))
    return out, read(), read2()


@script
def functions_made_inside(compile):
    @compile
    def f(x):
        fs = []
        for i in range(3):
            def g(t, i=i, *, k=2):
                return t * i + k
            fs.append(g)
        late = [lambda t: t + i for i in range(3)]
        return sum(g(x) for g in fs), [h(x) for h in late], fs[1](x, k=5)

    return f(rows())


@script
def function_returned(compile):
    @compile
    def f(x, n):
        y = x * n

        def g(z):
            return y + z

        return g

    a, b = rows(), rows()
    return f(a, 2)(b), f(a, 3)(b)


@script
def recursion(compile):
    def power(x, n):
        return x if n <= 1 else x * power(x, n - 1)

    @compile
    def fib(x, n):
        return x if n < 2 else fib(x, n - 1) + fib(x + 1, n - 2)

    return compile(power)(rows(), 5), fib(rows(2), 5)


@script
def mutual_recursion_over_a_tree(compile):
    def leaves(tree):
        return sum(branch(t) for t in tree) if isinstance(tree, (list, tuple)) else tree

    def branch(tree):
        return leaves(tree) * 2

    x = rows()
    return compile(branch)([x, (x + 1, [x, x * 3])]), compile(branch)([x])


@script
def argument_binding(compile):
    @compile
    def f(a, b=2, /, c=3, *rest, d, e=5, **more):
        return a * b + c + sum(rest) + d * e + sum(more.values()), sorted(more)

    x = rows()
    out = [f(x, d=1), f(x, 3, d=2), f(x, 3, 4, 5, 6, d=1, e=2, z=3), f(x, d=1, c=9, q=x)]
    for call in (lambda: f(x), lambda: f(d=1), lambda: f(x, 1, 2, c=3, d=1)):
        try:
            call()
        except TypeError as e:
            out.append(str(e).split("() ")[-1])
    return out


@script
def wrong_calls_inside(compile):
    def g(a, b, *, c):
        return a + b + c

    @compile
    def f(x):
        messages = []
        for args, kwargs in (((x,), {}), ((x, 1), {}), ((x, 1, 2), {}), ((x, 1), {"c": 1, "d": 2}), ((x, 1), {"a": 2, "c": 1})):
            try:
                g(*args, **kwargs)
            except TypeError as e:
                messages.append(str(e).split("() ")[-1])
        return x + 1, messages

    return f(rows())


@script
def decorators(compile):
    calls = []

    def logged(scale):
        def decorate(f):
            @functools.wraps(f)
            def wrapper(*args, **kwargs):
                calls.append(f.__name__)
                return f(*args, **kwargs) * scale
            return wrapper
        return decorate

    @logged(3)
    def inner(x, y=1):
        return x + y

    @compile
    @logged(2)
    def outer(x):
        return inner(x) + inner(x, y=4)

    return outer(rows()), calls, outer(rows()), inner.__wrapped__(1)


@script
def functools_tools(compile):
    @functools.lru_cache(None)
    def table(n):
        return tuple(range(n))

    @functools.singledispatch
    def show(v):
        return 0

    @show.register
    def _(v: int):
        return v + 1

    @compile
    def f(x, n):
        scale = functools.partial(torch.mul, other=2)
        add3 = functools.partial(functools.partial(operator.add, 1), 2)
        total = functools.reduce(operator.add, table(n), 0)
        key = sorted(["bb", "a", "ccc"], key=functools.cmp_to_key(lambda p, q: len(q) - len(p)))
        return scale(x), add3(), total, show(n), show("s"), key

    x = rows()
    return f(x, 3), f(x, 5)


@script
def builtin_functions(compile):
    @compile
    def f(x, n):
        pairs = list(zip(range(n), "abcdef", strict=False))
        return (list(map(lambda a, b: a * b, [1, 2, 3], [4, 5, 6])), list(filter(None, [0, 1, 2])), list(reversed([1, 2, 3])),
                any(i > 2 for i in range(n)), all([]), sum([[1], [2]], []), min(3, n), max([1, n], key=lambda v: -v), min([], default=n),
                sorted({"b": 1, "a": 2}.items(), key=lambda kv: kv[1], reverse=True), pairs, divmod(7, n), pow(2, n), abs(-n), round(2.5),
                isinstance(n, (int, str)), callable(f), hasattr(x, "shape"), getattr(x, "nope", n), list(enumerate("ab", 1)), bin(n),
                hash((1, 2)) == hash((1, 2)), ord("a"), chr(98), repr([1, "a"]), str(1.5), int("12"), float("2.5"), bool([]), bytes(3),
                list(iter([1, 2])), next(iter([7])), next(iter([]), None), slice(1, n), x + n)

    x = rows()
    return f(x, 3), f(x, 5)


@script
def itertools_tools(compile):
    @compile
    def f(x, n):
        it = itertools
        return (list(it.chain([1], (2, 3), range(n))), list(it.islice(it.count(n, 2), 3)), list(it.product([0, 1], repeat=2)),
                list(it.combinations(range(n), 2)), list(it.permutations([1, 2, 3], 2))[:3], list(it.accumulate([1, 2, 3])),
                list(it.zip_longest([1, 2], [3], fillvalue=0)), [(k, list(g)) for k, g in it.groupby([1, 1, 2])],
                list(it.repeat(x, 2)), list(it.dropwhile(lambda v: v < 2, [1, 2, 1])), list(it.starmap(pow, [(2, 3), (3, 2)])),
                list(it.pairwise([1, 2, 3])), list(it.compress("abc", [1, 0, 1])), next(it.cycle([n])), x * n)

    x = rows()
    return f(x, 3), f(x, 4)


@script
def operator_module(compile):
    @compile
    def f(x, y):
        return (operator.add(x, y), operator.mul(x, 2), operator.neg(x), operator.getitem([x, y], 1), operator.itemgetter(1, 0)([x, y]),
                operator.attrgetter("shape")(x), operator.methodcaller("sum", 0)(x), operator.contains([1, 2], 2), operator.truth([1]),
                operator.is_(x, x), operator.iadd(3, 4), operator.matmul(x, y.t()), operator.not_(0), operator.index(3))

    return f(rows(), rows())


@script
def strings(compile):
    @compile
    def f(x, name):
        n = x.shape[0]
        text = f"{name!r:>8}|{n:04d}|{3.14159:.2f}|{n=}|{x.dtype}|{[1, 2]}|{'nested ' + f'{n}'}"
        return (text, "%s-%d" % (name, n), "{0}/{b}".format(name, b=n), name.split("_"), ",".join(map(str, x.shape)), name.replace("a", "b"),
                name.startswith("la"), name.strip("_").title(), name in "layers", name[::-1], name.encode(), "x" * n, name.partition("_"),
                sorted(name), name.find("y"), name.isidentifier(), "a\nb".splitlines(), name.zfill(10), name.rjust(9, "."), name < "m", x * len(name))

    x = rows()
    return f(x, "layer_1"), f(x, "bias")


@script
def numbers(compile):
    import cmath
    import fractions
    import math

    @compile
    def f(x, n):
        return (math.sqrt(n), math.ceil(2.1), math.floor(-2.1), math.log2(8), math.prod([1, 2, n]), math.gcd(12, n), math.isclose(0.1 + 0.2, 0.3),
                math.inf > n, math.isnan(math.nan), n ** -1, -n // 2, -n % 3, n << 2, n & 1, ~n, 0.1 + n, 1e300 * 1e10, complex(1, n) * 2j,
                cmath.phase(1j), int(-2.7), round(-2.567, 2), fractions.Fraction(n, 6) + 1, True + n, x * math.pi, x ** n, n / 3, 7.5 // 2)

    x = rows()
    return f(x, 2), f(x, 3)


@script
def slices_and_indices(compile):
    @compile
    def f(x, a, b):
        s = slice(a, b)
        items = list(range(10))
        items[1:3] = [7, 8, 9]
        del items[-2:]
        items[s] = []
        return x[s], x[..., a:b:2], items, x[a], x[a, b], x[None, ..., None].shape, x[:, -1:], x[[0, b]], (1, 2, 3)[::-1], "abcdef"[s], x[-a - 1]

    x = rows(4, 5)
    return f(x, 0, 2), f(x, 1, 3), f(x, 1, 3)


@script
def iteration_protocols(compile):
    class Countdown:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return self

        def __next__(self):
            if self.n <= 0:
                raise StopIteration
            self.n -= 1
            return self.n

    class Old:
        def __getitem__(self, i):
            if i > 2:
                raise IndexError
            return i * 10

    @compile
    def f(x):
        a, b, c = Old()
        return [x + i for i in Countdown(3)], list(Old()), 20 in Old(), isinstance(Old(), Iterable), (a, b, c), max(Countdown(4)), [*reversed(range(3))]

    return f(rows())


@script
def globals_read_and_written(compile):
    import sys
    module = sys.modules[__name__]
    module.GLOBAL_COUNT, module.GLOBAL_TENSOR = 0, torch.ones(5)

    @compile
    def f(x):
        global GLOBAL_COUNT, GLOBAL_TENSOR
        GLOBAL_COUNT += 1
        GLOBAL_TENSOR = GLOBAL_TENSOR * 2
        return x + GLOBAL_COUNT + GLOBAL_TENSOR

    x = rows()
    out = [f(x) for _ in range(3)]
    module.GLOBAL_COUNT = 100
    out.append(f(x))
    return out, module.GLOBAL_COUNT, module.GLOBAL_TENSOR


@script
def del_and_unbound(compile):
    @compile
    def f(x, drop):
        y = x + 1
        d = {"a": 1, "b": 2}
        del d["a"]
        if drop:
            del y
        try:
            return y, d
        except UnboundLocalError as e:
            return x, str(e)

    x = rows()
    return f(x, False), f(x, True)


@script
def conditional_expressions_and_short_circuits(compile):
    calls = []

    def note(v):
        calls.append(v)
        return v

    @compile
    def f(x, a, b):
        r = note(a) and note(b)
        s = note(a) or note(b)
        return (x if a else -x), r, s, (a or b or 7), not (a and b), x + (1 if b is None else 2)

    x = rows()
    return [f(x, a, b) for a, b in ((0, 1), (1, 0), ("", None), ([1], "z"))], calls


@script
def inner_classes_and_lambdas(compile):
    @compile
    def f(x):
        table = {"relu": torch.relu, "twice": lambda t: t * 2, "neg": operator.neg}
        out = {name: g(x) for name, g in table.items()}
        nested = [[i * j for j in range(3) if j != i] for i in range(3)]
        flat = [v for row in nested for v in row]
        return out, nested, flat, {k: v for k, v in zip("ab", (1, 2))}, {len(w) for w in ("a", "bb", "cc")}

    return f(rows())


class Noticed:
    last = None


@script
def ids_are_those_of_the_real_objects(compile):
    """As numbers, in constants and as keys, beside such that were there before."""
    def parting(n):
        torch._dynamo.graph_break()
        return n

    asked = [lambda x: (lambda y: id(x) == id(x))(x * 2),
             lambda x: (lambda y: -id(y) + id(y))(x * 2),
             lambda x: (lambda y: ~id(y) + parting(id(y)))(x * 2),
             lambda x: (lambda y: parting(id(y)) - id(y))(x * 2),
             lambda x: (lambda y: parting(id(y)) in (id(y), 1))(x * 2),
             lambda x: (lambda y: parting(id(y)) in {id(y)})(x * 2),
             lambda x: (lambda y: {id(y): 2}.get(parting(id(y))))(x * 2),
             lambda x: (lambda y: (parting(id(y)),) == (id(y),))(x * 2),
             lambda x: (lambda y: [id(y)].index(parting(id(y))))(x * 2),
             lambda x: (lambda y: {parting(id(y)): 1} == {id(y): 1})(x * 2),
             lambda x: (lambda y: hash(y) == parting(id(y)))(x * 2),
             lambda x: (lambda y: parting((id(y), 2))[0] - id(y))(x * 2),
             lambda x: (lambda y: id(x) == parting(id(y)))(x * 2)]
    out = []
    for ask in asked:
        f = compile(ask)
        alive = []
        for _ in range(4):
            alive.append(torch.randn(2))
            out.append(f(alive[-1]))

    kept = compile(lambda x: ((id(x), 1), [id(x)], x * 2))
    seen = Noticed()

    @compile
    def again(x):
        same = seen.last == id(x)
        seen.last = id(x)
        return x * 2 if same else x

    xs = [torch.ones(2) for _ in range(3)]
    for i in (0, 0, 1, 1, 2, 0, 0, 2):
        numbers, inside, _ = kept(xs[i])
        out += numbers[0] == id(xs[i]), inside == [id(xs[i])], again(xs[i])
    return out

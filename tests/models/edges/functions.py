"""Functions, defaults, code objects, globals and caches that change between calls."""

import builtins
import functools
import math
import types

import torch

from . import edge


@edge
def functions_changed_in_place(compile, engine):
    def keyword(x, *, k=2.0):
        return x * k

    def positional(x, k=2.0):
        return x * k

    def body(x):
        return x * 2

    scope = {"keyword": keyword, "positional": positional, "body": body}
    outer = {}
    for name in list(scope):
        exec(f"def f(x): return {name}(x)", scope)
        outer[name] = compile(scope["f"])
    x = torch.ones(2)
    out = [f(x) for f in outer.values()]
    keyword.__kwdefaults__["k"] = 3.0
    positional.__defaults__ = (3.0,)
    body.__code__ = (lambda x: x * 3).__code__
    out += [f(x) for f in outer.values()]
    keyword.__kwdefaults__ = {"k": 4.0}
    return out + [outer["keyword"](x)]


@edge
def methods_changed_in_place(compile, engine):
    class Scaled:
        def positional(self, x, k=2.0):
            return x * k

        def keyword(self, x, *, k=2.0):
            return x * k

        def body(self, x):
            return x * 2

        @staticmethod
        def static(x, k=2.0):
            return x * k

        @classmethod
        def of_class(cls, x, k=2.0):
            return x * k

    s = Scaled()
    fs = [compile(lambda x: s.positional(x)), compile(lambda x: s.keyword(x)), compile(lambda x: s.body(x)),
          compile(lambda x: Scaled.static(x)), compile(lambda x: s.of_class(x))]
    x = torch.ones(2)
    out = [f(x) for f in fs]
    Scaled.positional.__defaults__ = (3.0,)
    Scaled.keyword.__kwdefaults__["k"] = 3.0
    Scaled.body.__code__ = (lambda self, x: x * 3).__code__
    Scaled.static.__defaults__ = (3.0,)
    Scaled.of_class.__func__.__defaults__ = (3.0,)
    return out + [f(x) for f in fs]


@edge
def the_compiled_function_changed_in_place(compile, engine):
    def f(x, k=2.0, *, b=1.0):
        return x * k + b

    c, x = compile(f), torch.ones(2)
    out = [c(x)]
    f.__defaults__ = (5.0,)
    out.append(c(x))
    f.__kwdefaults__["b"] = 7.0
    out.append(c(x))
    f.__code__ = (lambda x, k=0, *, b=0: x - k - b).__code__
    return out + [c(x)]


@edge
def closures_of_global_functions(compile, engine):
    def make(k):
        def inner(x):
            return x * k
        return inner

    scope = {"inner": make(2.0)}
    exec("def f(x): return inner(x)", scope)
    c, x = compile(scope["f"]), torch.ones(2)
    out = [c(x)]
    scope["inner"].__closure__[0].cell_contents = 3.0
    out.append(c(x))
    scope["inner"] = make(4.0)
    return out + [c(x)]


@edge
def one_code_object_with_other_globals(compile, engine):
    code = (lambda x: x * k).__code__  # noqa: F821
    first, second = (types.FunctionType(code, {"k": k, "__builtins__": builtins}) for k in (2.0, 3.0))
    c, x = compile(lambda x, g: g(x)), torch.ones(2)
    return c(x, first), c(x, second), c(x, first)


@edge
def partials_changed_in_place(compile, engine):
    p = functools.partial(lambda x, k, b=1.0: x * k + b, k=2.0)
    c, x = compile(lambda x: p(x)), torch.ones(2)
    out = [c(x)]
    p.keywords["k"] = 3.0
    out.append(c(x))
    p.keywords["b"] = 5.0
    return out + [c(x)]


@edge
def cached_functions_answer_from_their_cache(compile, engine):
    class Scaled:
        k = 2.0

        @functools.lru_cache
        def scale(self):
            return self.k

    s = Scaled()
    s.scale()
    s.k = 3.0

    @functools.lru_cache(maxsize=None)
    def table(n):
        return torch.arange(float(n))

    f, g, x = compile(lambda x: x * s.scale()), compile(lambda x: (table(2), x + 1)), torch.ones(2)
    first, second = g(x)[0], g(x)[0]
    out = [f(x), f(x), first is second, first is table(2)]
    Scaled.scale.cache_clear()
    return out + [f(x)]


@edge
def builtins_replaced(compile, engine):
    scope = {"torch": torch}
    exec("def f(x): return x * len([1, 2])", scope)
    c, x = compile(scope["f"]), torch.ones(2)
    out = [c(x)]
    scope["len"] = lambda v: 7
    out.append(c(x))
    del scope["len"]
    out.append(c(x))
    original = builtins.len
    builtins.len = lambda v: 9
    try:
        out.append(c(x))
    finally:
        builtins.len = original
    return out


@edge
def wrapped_functions_keep_their_names(compile, engine):
    def f(x):
        def inner(y):
            "doc"
            return y + x

        @functools.wraps(inner)
        def outer(y):
            return inner(y)

        outer.tag = 3
        return outer, inner, x + 1

    outer, inner, _ = compile(f)(torch.ones(1))
    return ([(g.__name__, g.__qualname__, g.__doc__, g.__module__, g.__defaults__) for g in (outer, inner)],
            outer.tag, outer.__wrapped__ is inner, outer(torch.ones(1)))


@edge
def cached_results_that_are_forgotten(compile, engine):
    """A bounded cache forgets what was asked for longest ago: how often its function runs depends on every call."""
    runs = []

    @functools.lru_cache(maxsize=3)
    def doubled(k):
        runs.append(k)
        return k * 2

    @functools.lru_cache(maxsize=1)
    def latest(k):
        runs.append(-k)
        return k + 1

    @functools.lru_cache(maxsize=0)
    def never(k):
        runs.append(k * 100)
        return k

    @compile
    def f(x, i):
        for k in (1, 2, i, 1, i + 3, 2, i):
            x = x + doubled(k)
        return x * latest(i % 2) + latest(i % 2) + never(i)

    return [f(torch.ones(2), i) for i in (0, 1, 5, 1, 7)], runs


@edge
def tensors_that_are_keys_are_told_apart(compile, engine):
    """By identity, so that code for two of them is not for one that is given twice."""
    def added(x, y):
        both = set()
        both.add(x)
        both.update((y,))
        return len(both)

    makers = [lambda x, y: {x: "x", y: "y"}[x], lambda x, y: len({x, y}), lambda x, y: {x: 1}.get(y), lambda x, y: y in {x}, lambda x, y: x is y,
              lambda x, y: {t: 1 for t in (x,)}.get(y), added]
    a, b = torch.ones(2), torch.ones(2)
    return [[f(*given) for given in ((a, b), (a, a), (b, a), (b, b))] for f in map(compile, makers)]


@edge
def cached_functions_count_their_calls(compile, engine):
    """Misses, hits, and what was asked for last, over several calls, captures that start over, and functions that raise."""
    runs, out = [], []

    def cached(**settings):
        @functools.lru_cache(**settings)
        def f(*args, **kwargs):
            runs.append((args, kwargs))
            if args and args[0] == "raise":
                raise ValueError(len(runs))
            return len(runs)
        return f

    def loop(x, f, keys):
        return x + sum(f(k) for k in keys)

    def starts_over(x, f, keys):
        def inner(x, k):
            y = x * f(k)
            return y + 1 if y.sum() > 0 else y
        for k in keys:
            x = inner(x, k)
        return x * f(keys[0]), f.cache_info()

    def keywords(x, f, keys):
        return x + f(1, b=2), f(b=2), f(1), f(1.0), f(True), f((1, 2)), f(1, b=2), f.cache_info()

    def raises(x, f, keys):
        for _ in range(2):
            try:
                x = x + f("raise")
            except ValueError as e:
                x = x * e.args[0]
        return x

    for settings in ({"maxsize": 4}, {"maxsize": 2}, {"maxsize": 1}, {"maxsize": 0}, {"maxsize": None}, {"maxsize": 8, "typed": True}):
        for program in (loop, starts_over, keywords, raises):
            f, c = cached(**settings), compile(program)
            for keys in ((1, 2, 3, 1), (1, 2, 3, 1), (3, 4, 1)):
                out += [c(torch.ones(2), f, keys), f.cache_info(), len(runs)]
            f(3)
            out += [f(1), f.cache_info(), len(runs)]
    return out, runs


@edge
def cells_are_emptied_and_filled(compile, engine):
    def make():
        def inner(x):
            return x * 2

        def caught(x):
            try:
                return inner(x)
            except (NameError, TypeError) as error:
                return type(error).__name__

        def deleted(x):
            nonlocal inner
            try:
                del inner
            except NameError:
                return x + 1
            return x

        return caught, deleted, caught.__closure__[0]

    caught, deleted, cell = make()

    def asked(x):
        try:
            return x * 2 if cell.cell_contents else x
        except ValueError as error:
            return x * 10, str(error)

    f, g, h, x, out = compile(caught), compile(deleted), compile(asked), torch.ones(2), []
    for contents in (lambda x: x * 3, "empty", None, lambda x: x * 4, "empty", "empty", lambda x: x * 5):
        if contents == "empty":
            g(x)
        else:
            cell.cell_contents = contents
        for call in (h, f, g, h, f, g):
            out.append(call(x))
    return out


@edge
def slots_are_emptied_and_filled(compile, engine):
    class Slotted:
        __slots__ = ("value",)

    def asked(holder, x):
        try:
            return x * holder.value
        except AttributeError as error:
            return x * 10, str(error)

    f, holder, x, out = compile(asked), Slotted(), torch.ones(2), []
    for value in (None, 2, None, 3, 3, None):
        if value:
            holder.value = value
        elif hasattr(holder, "value"):
            del holder.value
        out.append(f(holder, x))
    return out


class Counted(list):
    """Methods of C that Python ones stand in front of."""

    def __init__(self, *args):
        super().__init__(*args)
        self.calls = []

    def append(self, value):
        self.calls.append("append")
        super().append(value)

    def extend(self, values):
        for value in values:
            self.append(value)

    def pop(self, *at):
        self.calls.append(("pop", at))
        return super().pop(*at)

    def sort(self, **keywords):
        return super().sort(**keywords) or self

    def clear(self):
        super().clear()

    def copy(self):
        return type(self)(super().copy())


class Registry(dict):
    def get(self, key, default="none"):
        return super().get(key, default)

    def update(self, *args, **keywords):
        for key, value in dict(*args, **keywords).items():
            self[key] = value

    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)

    def keys(self):
        return sorted(super().keys())

    def pop(self, key):
        return super().pop(key.lower(), None)

    def items(self):
        return [(k, v) for k, v in super().items()]


class Seen(set):
    def add(self, value):
        if value in self:
            return False
        super().add(value)
        return True

    def discard(self, value):
        super().discard(value)
        return len(self)


@edge
def methods_of_c_behind_overrides(compile, engine):
    breaks = engine.counters()["graph_breaks"] if engine else 0
    kept, registry, seen = Counted([3]), Registry(a=1), Seen()

    @compile
    def f(x, n):
        kept.append(n)
        kept.extend([x.sum(), n + 1])
        last = kept.pop()
        numbers = Counted([3, 1, n]).sort(reverse=True)
        copied = numbers.copy()
        numbers.clear()
        registry.update({"B": x, "C": n})
        registry["D"] = last
        new = seen.add(n), seen.add(n), seen.discard(n + 1)
        return (x + last, copied, numbers, registry.get("zz"), registry.get("b"), registry.keys(), registry.pop("C"), registry.items(), new, kept.pop(0), kept.calls[-2:])

    out = []
    for n in (5, 5, 7, 9):
        out.append(f(torch.ones(2) * n, n))
        out.append(([v if isinstance(v, int) else v.tolist() for v in kept], list(kept.calls), sorted(registry), sorted(seen)))
    return out, not engine or engine.counters()["graph_breaks"] == breaks


class Spoken(list):
    def __iter__(self):
        return iter([9] + list(super().__iter__()))

    def sort(self):
        super().sort(reverse=True)


class Alike(list):
    def __eq__(self, other):
        return True


class Seven(int):
    def __index__(self):
        return 7

    def __int__(self):
        return 8


class Half(float):
    def __float__(self):
        return 0.5


@edge
def what_c_code_reads_of_subclasses(compile, engine):
    """C code takes an instance of a subclass for what it is, whatever Python code says of it."""
    @compile
    def f(x):
        spoken = Spoken([1, 3, 2])
        spoken.sort()
        numbers = [10, 11, 12, 13, 14, 15, 16, 17, 18]
        return (list.__len__(spoken), list(list.__iter__(spoken)), Alike([1]) != [2], Alike([1]) == [2], list(range(Seven(3))), numbers[Seven(2)], int(Seven(4)),
                math.sqrt(Half(4.0)), float(Half(4.0)), x * 2)

    return [f(torch.ones(1)) for _ in range(3)]


@edge
def gradients_of_functions_inside_of_gradients_of_functions(compile, engine):
    """A function's backward computes a gradient through another function, which is taken down while the first one's is."""
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g @ b.mT, a.mT @ g

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, times):
            ctx.save_for_backward(a, b)
            ctx.times = times
            return Product.apply(a, b)

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            inner = a.detach().requires_grad_()
            with torch.enable_grad():
                for _ in range(ctx.times):  # each is one more that is known of while this runs
                    of_a, = torch.autograd.grad((g * Product.apply(inner, b)).sum(), [inner])
            return of_a, Product.apply(a.mT, g), None

    results = []
    for times in (1, 3, 9):
        c = compile(lambda a, b: Outer.apply(a.mT, b, times).square().sum())
        a = torch.arange(16.0).reshape(4, 4).div(8).requires_grad_()
        b = torch.arange(8.0).reshape(4, 2).sub(3).requires_grad_()
        for given in (a, a * 2):
            c(given, b).backward()
            results.append((a.grad.clone(), b.grad.clone()))
    return results

"""What belongs to a program lives and dies with it; what cannot be compiled comes to an end."""

import collections
import contextvars
import gc
import weakref

import torch

from . import edge, raised


@edge
def code_and_functions_die(compile, engine):
    functions, codes, weights = [], [], []

    def once(i):
        scope = {"torch": torch, "model": torch.nn.Linear(50, 50)}
        exec(f"def f(x):\n  return torch.sin(model(x)) + {i}", scope)
        functions.append(weakref.ref(scope["f"]))
        codes.append(weakref.ref(scope["f"].__code__))
        weights.append(weakref.ref(scope["model"].weight))
        compile(scope["f"])(torch.ones(1, 50))

    for i in range(12):
        once(i)
    gc.collect()
    alive = [sum(r() is not None for r in refs) for refs in (functions, codes, weights)]
    return [n <= 1 for n in alive]  # the last may be in use still


@edge
def compiled_builtins_die(compile, engine):
    x = torch.ones(4)
    for _ in range(30):
        compile(torch.relu)(x)
    gc.collect()
    return sum(type(o).__name__ == "function" and o.__name__ == "relu" and "function" in o.__globals__ for o in gc.get_objects()) <= 2


@edge
def modules_and_tensors_die(compile, engine):
    refs = []
    for _ in range(4):
        m, x = torch.nn.Linear(8, 8), torch.ones(2, 8)
        compile(m)(x).sum().backward()
        refs += [weakref.ref(m), weakref.ref(m.weight), weakref.ref(x)]
        del m, x
    gc.collect()
    return sum(r() is not None for r in refs)


@edge
def arguments_and_results_die(compile, engine):
    class Plain:
        pass

    def f(x, o):
        return x * 2, o, [x]

    c, refs = compile(f), []
    for _ in range(3):
        x, o = torch.ones(3), Plain()
        r = c(x, o)
        refs += [weakref.ref(v) for v in (x, o, r[0])]
        del x, o, r
    return [r() is not None for r in refs]


@edge
def leaves_whose_hooks_hold_results_die(compile, engine):
    def beside(x, y):
        scale = (y * y).sum()
        x.register_hook(lambda g: g + scale)
        return x * y

    def behind(x, y):
        scale = (y * y).sum()
        x.register_hook(lambda g: g * scale)
        return x * scale

    def managed(x, y):
        with x.register_hook(lambda g: g * 100):
            return x * y

    told = []
    for f in map(compile, (beside, behind, managed)):
        for n in (2, 3, 3):
            x, y = torch.arange(1.0, n + 1).requires_grad_(), torch.ones(n).requires_grad_()
            f(x, y).sum().backward()
            told += [x.grad, y.grad]
            r, refs = f(x, y), [weakref.ref(x), weakref.ref(y)]
            del x, y, r
            gc.collect()
            told.append([r() is None for r in refs])
    return told


@edge
def compiling_again_has_an_end(compile, engine):
    class Request:
        pass

    def f(x, a, b):
        return x * (2.0 if a == b else 1.0)

    def g(x, request, weights={}):
        return x * weights.get(request, 1.0)

    c, d, x = compile(f), compile(g), torch.ones(2)
    out = [(c(x, Request(), Request()), d(x, Request())) for _ in range(40)]
    return out[-1], engine is None or engine.counters()["graphs"] <= 20


@edge
def reset_forgets_what_was_not_worth_it(compile, engine):
    def helper(v):
        return v * 2 + 1

    def f(x, v):
        return contextvars.copy_context().run(helper, v)

    c, x = compile(f), torch.ones(4)
    out = [c(x, i) for i in range(6)]
    torch.compiler.reset()
    before = engine.counters()["compiled_graphs"] if engine else 0
    out += [c(x, x) for _ in range(3)]
    return out, engine is None or engine.counters()["compiled_graphs"] > before


@edge
def dynamic_sizes_do_not_compile_again_and_again(compile, engine):
    """dynamic=True acts, or what it does is said."""
    import warnings
    c = compile(lambda x: x * 2, dynamic=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = [c(torch.ones(n)).sum() for n in range(2, 14)]
    said = any("dynamic" in str(w.message) for w in caught)
    return out, engine is None or said or engine.counters()["graphs"] <= 3


@edge
def finalisers_run_when_objects_die(compile, engine):
    log = []

    class Resource:
        def __init__(self, n):
            self.n = n

        def __del__(self):
            log.append(self.n)

    def f(x):
        r = Resource(1)
        y = x + r.n
        del r
        log.append("deleted")
        return y * 2

    c, d, x, out = compile(f), compile(lambda x: (Resource(2), x + 1)), torch.ones(1), []
    for _ in range(3):
        c(x)
        out.append(list(log))
    log.clear()
    for _ in range(2):
        r, _ = d(x)
        out.append(list(log))
        del r
        out.append(list(log))
    return out


@edge
def finalisers_run_at_the_end_of_a_frame_that_caught_something(compile, engine):
    log = []

    class Resource:
        def __del__(self):
            log.append("gone")

    def f(x):
        r = Resource()
        try:
            x = x + 1
            collections.deque().popleft()
        except IndexError as e:
            log.append(str(e))
        return x * 2

    c, out = compile(f), []
    for _ in range(3):
        c(torch.ones(2))
        out.append(list(log))
    return out


@edge
def finalisers_of_objects_that_have_no_weak_references(compile, engine):
    """What asks which object it is (its text, its hash) must not keep it."""
    log = []

    class Resource:
        __slots__ = ()

        def __del__(self):
            log.append("gone")

    def asked(ask):
        def f(x):
            r = Resource()
            ask(r)
            return x + 1

        return f

    out = []
    for ask in (repr, hash, id, lambda r: {r: 1}, lambda r: r is None):
        c = compile(asked(ask))
        for _ in range(3):
            c(torch.ones(2))
            out.append(list(log))
    return out


@edge
def weak_references_notice_the_end(compile, engine):
    class Thing:
        pass

    log = []

    def of_a_variable(x):
        thing = Thing()
        ref = weakref.ref(thing, lambda r: log.append("variable"))
        kept = [thing]
        alive = ref() is thing
        del thing
        y = x + 1
        still = ref() is not None
        kept = None
        return y, alive, still, ref() is None, len(log), kept

    def of_an_attribute(x, owner, ref):
        y = x * 2
        owner.thing = None
        return y, ref() is None, len(log)

    def of_elements(x, table, refs):
        table["key"] = 1
        table["list"].clear()
        return x - 1, [r() is None for r in refs]

    def finalised(x):
        thing = Thing()
        end = weakref.finalize(thing, log.append, "finalised")
        before, thing = end.alive, 5
        return x + thing, before, end.alive, len(log)

    a, b, c, d = map(compile, (of_a_variable, of_an_attribute, of_elements, finalised))
    x, out = torch.ones(2), []
    for n in range(3):
        owner, table = Thing(), {"key": Thing(), "list": [Thing()]}
        owner.thing = Thing()
        refs = [weakref.ref(table["key"]), weakref.ref(table["list"][0])]
        out += [a(x), b(x, owner, weakref.ref(owner.thing, log.append if n == 2 else None)), c(x, table, refs), d(x), len(log)]
    return out


@edge
def weak_references_are_keys(compile, engine):
    class Plain:
        pass

    class Valued:
        def __init__(self, value):
            self.value = value

        def __eq__(self, other):
            return isinstance(other, Valued) and self.value == other.value

        def __hash__(self):
            return hash(self.value)

    counts, values, members = weakref.WeakKeyDictionary(), weakref.WeakValueDictionary(), weakref.WeakSet()

    def count(x, key):
        n = counts.get(key, 0)
        counts[key] = n + 1
        made = Plain()
        made.x = values[n] = x
        values[n + 10] = made
        return x * (n + 1), len(counts), sorted(values)

    def join(x, key):
        was = key in members
        members.add(key)
        return x + len(members), was

    def same(x, a, b):
        first = weakref.ref(a)
        y = x + 1
        return y, first == weakref.ref(b), first is weakref.ref(b), weakref.ref(a) != weakref.ref(b), hash(weakref.ref(a)) == hash(a)

    f, g, h, x, out = compile(count), compile(join), compile(same), torch.ones(2), []
    keys = [Plain(), Plain()]
    for n in range(6):
        out += [f(x + n, keys[n % 2]), len(values)]
        if n == 3:
            del keys[0]
            keys.append(Plain())
            gc.collect()
    things = [Plain(), Valued(1), Valued(1), Plain(), Valued(2)]
    out += [g(x, things[n]) for n in (0, 1, 2, 3, 0, 4, 1)]
    out += [h(x, a, b) for a in things for b in things]
    things[4].value = 1
    return out + [h(x, things[1], things[4])]


@edge
def weak_references_with_code_of_their_own(compile, engine):
    class Thing:
        k = 2

        def scaled(self, x):
            return x * self.k

    class Counting(weakref.ref):
        def __new__(cls, thing, note):
            made = super().__new__(cls, thing, note)
            made.calls = 0
            return made

        def __call__(self):
            self.calls += 1
            return super().__call__()

    log, kept = [], []

    def methods(x, thing):
        weak = weakref.WeakMethod(thing.scaled)
        return weak()(x), weak() == thing.scaled

    def counting(x):
        thing = Thing()
        kept.append(Counting(thing, lambda r: log.append(r.calls)))
        return x + 1, kept[-1]() is thing, kept[-1].calls, len(log)

    def proxied(x, proxy):
        return proxy.scaled(x), isinstance(proxy, Thing), type(proxy).__name__

    f, g, h, x, thing = compile(methods), compile(counting), compile(proxied), torch.ones(2), Thing()
    out = [f(x, thing), f(x, Thing()), g(x), g(x), len(log)]
    proxy = weakref.proxy(thing)
    out.append(h(x, proxy))
    thing.k = 3
    out.append(h(x, proxy))
    del thing
    gc.collect()
    return out + [raised(h, x, proxy)]

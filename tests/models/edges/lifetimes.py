"""What belongs to a program lives and dies with it; what cannot be compiled comes to an end."""

import collections
import contextvars
import gc
import weakref

import torch

from . import edge


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

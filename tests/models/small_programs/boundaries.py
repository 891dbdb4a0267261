"""Where compiled code meets the rest of Python: breaks, prints, numpy, threads, async, errors and their tracebacks, nesting."""

import asyncio
import threading
import traceback
import warnings

import torch
from torch import nn

from . import script


def rows(*shape):
    return torch.randn(*(shape or (4, 5)))


@script
def item_and_tolist(compile):
    @compile
    def f(x):
        n = int(x.abs().sum().item())
        values = x[0].tolist()
        b = bool(x.sum() > 0)
        return x + n, values, float(x[0, 0]), b, x[0].argmax().item(), [v * 2 for v in values], f"{n}"

    return f(rows()), f(rows())


@script
def data_dependent_loops(compile):
    @compile
    def f(x):
        steps = 0
        while x.norm() > 1:
            x = x / 2
            steps += 1
            if steps > 20:
                break
        out = []
        for v in x[0]:
            if v > 0:
                out.append(v)
        return x, steps, out, torch.nonzero(x > 0).shape[0], x[x > 0].sum(), torch.unique((x * 3).int())

    return f(rows() * 10), f(rows() * 100)


@script
def prints_between(compile):
    @compile
    def f(x):
        print("start")
        y = x * 2
        print("sum", round(y.sum().item(), 2))
        z = y + 1
        print(z.shape, end="|")
        print(z[0])
        return z

    return f(rows()), f(rows())


@script
def logging_and_warnings(compile):
    import logging
    log = logging.getLogger("small_programs")
    records = []

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    log.handlers[:] = [Keep()]
    log.setLevel(logging.INFO)

    @compile
    def f(x):
        log.info("rows %d", x.shape[0])
        log.debug("hidden")
        warnings.warn("careful")
        return x + 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = f(rows()), f(rows())
        return out, records, [str(w.message) for w in caught if "careful" in str(w.message)]


@script
def break_inside_a_callee(compile):
    def inner(x, scale):
        y = x * scale
        torch._dynamo.graph_break()
        return y + 1

    class Outer:
        def __init__(self):
            self.n = 0

        def run(self, x):
            self.n += 1
            a = inner(x, self.n)
            self.n += 1
            return a + inner(a, 3)

    o = Outer()
    f = compile(o.run)
    return f(rows()), f(rows()), o.n


@script
def break_inside_loops_and_comprehensions(compile):
    def opaque(v):
        torch._dynamo.graph_break()
        return v + 1

    @compile
    def f(x):
        a = [opaque(x * i) for i in range(3)]
        b = {i: opaque(t) for i, t in enumerate(a) if i != 1}
        c = sum(opaque(t) for t in a)
        for i, (p, q) in enumerate(zip(a, b.values())):
            c = c + opaque(p) * q + i
        try:
            c = opaque(c)
            raise ValueError(opaque(1))
        except ValueError as e:
            c = c + opaque(e.args[0])
        finally:
            c = opaque(c)
        return a, b, c

    return f(rows()), f(rows())


@script
def break_inside_with_blocks(compile):
    log = []

    class Scope:
        def __enter__(self):
            log.append("in")
            return 2

        def __exit__(self, *args):
            log.append("out")

    @compile
    def f(x):
        with Scope() as s:
            x = x * s
            torch._dynamo.graph_break()
            x = x + 1
        with torch.no_grad(), Scope():
            torch._dynamo.graph_break()
            x = x * 2
        return x, torch.is_grad_enabled()

    return f(rows()), f(rows()), log


@script
def break_with_live_values_of_many_kinds(compile):
    class Thing:
        def __init__(self, v):
            self.v = v

    @compile
    def f(x, k):
        items = [x + 1, {"a": x * 2}]
        thing = Thing(items)
        thing.me = thing
        add = lambda t: t + k  # noqa: E731
        it = iter([1, 2, 3])
        next(it)
        method = items.append
        p = range(3), slice(1, 2), {1, 2}, "s", 1.5, None
        torch._dynamo.graph_break()
        method(add(x))
        return thing.v[0], thing.me is thing, thing.v is items, len(items), list(it), p, items[1]["a"] + items[2]

    return f(rows(), 1), f(rows(), 2)


@script
def generator_across_a_break(compile):
    def gen(x):
        for i in range(3):
            yield x + i

    @compile
    def f(x):
        g = gen(x)
        a = next(g)
        torch._dynamo.graph_break()
        b = next(g)
        return a, b, list(g)

    return f(rows()), f(rows())


@script
def disabled_and_allowed_functions(compile):
    seen = []

    @torch.compiler.disable
    def hidden(x):
        seen.append(tuple(x.shape))
        return x.numpy().sum() if not x.requires_grad else 0

    @torch.compiler.disable(recursive=False)
    def outer_only(x):
        return helper(x)

    def helper(x):
        return x + 1

    @compile
    def f(x):
        return x * 2 + float(hidden(x)) + outer_only(x)

    return f(rows()), f(rows()), seen


@script
def nested_compile(compile):
    @compile
    def inner(x):
        return x * 2

    @compile
    def outer(x):
        return inner(x) + compile(lambda t: t + 1)(x)

    return outer(rows()), inner(rows()), compile(outer)(rows())


@script
def numpy_interop(compile):
    import numpy as np

    @compile
    def f(x):
        a = x.detach().numpy()
        b = np.sqrt(np.abs(a)) + np.arange(5)
        return torch.from_numpy(b.astype(np.float32)) + x, float(a.max()), np.prod([1, 2]), x * np.float32(2), torch.as_tensor(np.ones(5)), x.shape[0] * np.pi

    return f(rows()), f(rows())


@script
def numpy_functions_as_arguments(compile):
    import numpy as np

    @compile
    def binary(x, op):
        return x * float(op(2, 3))

    @compile
    def reduction(x, op):
        return x * float(op((2, 3)))

    x = rows()
    pairs = [binary(x, op) for op in (np.maximum, np.minimum, np.add, np.hypot, np.maximum)]
    return pairs, [reduction(x, op) for op in (np.prod, np.sum, np.max, np.prod)]


@script
def views_of_one_array(compile):
    import numpy as np

    def parts(shared):
        a = np.arange(32, dtype=np.float32)
        return torch.from_numpy(a[1:]), torch.from_numpy(a[:-1] if shared else a[:-1].copy())

    def write(x, y):
        z = y * 2
        x.add_(100)
        return z + y

    results = []
    for order in ((False, True, False), (True, False, True)):
        f = compile(lambda x, y: write(x, y))
        for shared in order:
            x, y = parts(shared)
            results.append((f(x, y), x, y))
    return results


@script
def wrapped_numpy(compile):
    import numpy as np

    from fusebox.compiler import wrap_numpy

    def f(x, *, parts):
        x += 1
        return {"root": np.sqrt(np.abs(x)), "parts": [p.sum(axis=0) for p in parts], "name": "f"}

    wrapped = wrap_numpy(f)
    x, part = rows(), rows(2, 3)
    results = [compile(wrapped)(x, parts=(part, part * 2)), x]
    try:
        compile(wrapped)(rows().requires_grad_(), parts=())
    except RuntimeError as error:
        results.append("requires grad" in str(error))
    return results, wrapped.__name__


@script
def errors_with_tracebacks(compile):
    def deep(x, k):
        if k == 0:
            raise LookupError("deep down")
        return deep(x + 1, k - 1)

    @compile
    def f(x, kind):
        y = x * 2
        if kind == "own":
            return deep(y, 2)
        if kind == "torch":
            return y @ torch.ones(3, 3)
        if kind == "type":
            return y + "text"
        if kind == "index":
            return y[100]
        if kind == "name":
            return missing_name  # noqa: F821
        if kind == "attribute":
            return y.no_such_thing
        if kind == "cause":
            try:
                {}["k"]
            except KeyError as e:
                raise RuntimeError("outer") from e
        return y

    out = []
    for kind in ("own", "torch", "type", "index", "name", "attribute", "cause", "fine"):
        try:
            out.append(f(rows(), kind))
        except Exception as e:
            frames = [(s.name, s.lineno) for s in traceback.extract_tb(e.__traceback__) if s.filename == __file__]
            out.append((type(e).__name__, str(e)[:80], frames, type(e.__cause__).__name__))
    return out


@script
def errors_do_not_half_apply(compile):
    log = []

    @compile
    def f(x, fail):
        log.append("a")
        x.add_(1)
        log.append("b")
        if fail:
            raise ValueError("after the writes")
        log.append("c")
        return x

    x = rows()
    for fail in (False, True, False):
        try:
            f(x, fail)
        except ValueError:
            log.append("error")
    return x, log


@script
def handled_exceptions_across_breaks(compile):
    import sys

    @compile
    def f(x, kind):
        try:
            if kind:
                raise KeyError(kind)
            x = x + 1
        except KeyError as e:
            torch._dynamo.graph_break()
            name = sys.exc_info()[0].__name__
            x = x * len(str(e)) + 1
            try:
                raise
            except KeyError as again:
                same = again is e
            if kind == 1:
                return x, name, same
            if kind == 2:
                raise ValueError("v") from None
            raise ValueError("w")
        return x, sys.exc_info()

    out = []
    for kind in (0, 1, 2, 3, 1, 12345, 0):
        try:
            out.append(f(rows(), kind))
        except ValueError as e:
            out.append((str(e), repr(e.__context__), repr(e.__cause__), e.__suppress_context__))
    return out


@script
def iterators_wrapped_across_breaks(compile):
    @compile
    def f(x):
        pairs = {0: x, 2: x * 2}
        total = x
        both = zip([1, 2, 3], pairs.values())
        torch._dynamo.graph_break()
        for i, (a, b) in enumerate(both):
            torch._dynamo.graph_break()
            total = total * a + b + i
        rest = iter([1, 2, 3, 4])
        torch._dynamo.graph_break()
        first = next(rest)
        return total, first, list(reversed([5, 6])), [v for v in map(lambda v: v + first, rest)]

    return f(rows()), f(rows())


@script
def system_exit_and_interrupts(compile):
    @compile
    def f(x, kind):
        y = x + 1
        if kind == 1:
            raise SystemExit(3)
        if kind == 2:
            raise KeyboardInterrupt
        if kind == 3:
            raise StopIteration(5)
        return y

    out = []
    for kind in range(4):
        try:
            out.append(f(rows(), kind))
        except BaseException as e:
            out.append((type(e).__name__, e.args))
    return out


@script
def threads_call_one_function(compile):
    net = nn.Sequential(nn.Linear(5, 5), nn.ReLU())
    f = compile(net)
    xs = [rows(1 + i % 3, 5) for i in range(6)]
    results = [None] * 6

    def work(i):
        for _ in range(3):
            results[i] = f(xs[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


@script
def coroutines_and_async(compile):
    @compile
    def f(x):
        return x * 2

    @compile
    async def g(x):
        y = x + 1
        await asyncio.sleep(0)
        return f(y)

    async def main():
        return await asyncio.gather(*(g(rows()) for _ in range(3)))

    return asyncio.run(main())


@script
def compiled_generator_function(compile):
    @compile
    def g(x):
        for i in range(3):
            yield x * i

    return list(g(rows())), [t + 1 for t in g(rows())]


@script
def callbacks_from_c(compile):
    @compile
    def f(x):
        items = sorted([3, 1, 2], key=lambda v: -v)
        order = sorted(range(x.shape[0]), key=lambda i: x[i].sum().item())
        return x[torch.tensor(order)], items, list(map(torch.sum, x))

    return f(rows()), f(rows())


@script
def introspection(compile):
    import inspect
    import sys

    def helper(x, a=1, *, b=2):
        """Doc."""
        return x

    @compile
    def f(x):
        names = sorted(inspect.signature(helper).parameters)
        local = sorted(locals())
        return x, names, local, helper.__name__, helper.__doc__, helper.__defaults__, f.__name__, sys.version_info >= (3, 11), sys.maxsize > 0, type(x).__name__, dir(x)[:1]

    return f(rows())


@script
def is_compiling_flags(compile):
    @compile
    def f(x):
        if torch.compiler.is_exporting() or torch.jit.is_scripting() or torch.jit.is_tracing():
            return x * 100
        return x + 1

    return f(rows())


@script
def eval_exec_and_imports(compile):
    @compile
    def f(x):
        import math
        from collections import OrderedDict as OD
        import os.path as p
        return x * eval("1 + 1"), math.floor(2.5), OD(a=1), p.join("a", "b"), __name__.rsplit(".", 1)[-1]

    return f(rows()), f(rows())


@script
def time_and_environment(compile):
    import os
    import time
    os.environ["SMALL_PROGRAMS"] = "1"

    @compile
    def f(x):
        started = time.perf_counter()
        y = x * int(os.environ["SMALL_PROGRAMS"])
        return y, time.perf_counter() >= started, os.environ.get("NOT_SET_HERE")

    out = [f(rows())]
    os.environ["SMALL_PROGRAMS"] = "3"
    return out, f(rows())


@script
def files_and_contexts(compile):
    import os
    import tempfile

    @compile
    def f(x, path):
        with open(path, "a") as out:
            out.write(f"{x.shape[0]}\n")
        y = x + 1
        with open(path) as source:
            return y, [int(line) for line in source]

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log")
        return f(rows(), path), f(rows(3, 5), path)


@script
def sets_of_modes(compile):
    f = compile(lambda x: torch.relu(x) + 1, dynamic=False) if compile(len) is not len else (lambda x: torch.relu(x) + 1)
    return f(rows()), f(rows(2, 2))


@script
def sparse_and_complex_inputs(compile):
    @compile
    def f(x):
        return x * 2

    sparse = torch.eye(3).to_sparse()
    return f(sparse).to_dense(), f(torch.randn(3, dtype=torch.complex64)), f(torch.tensor([1, 2])), f(torch.tensor(True))


@script
def tensor_subclass(compile):
    class Loud(torch.Tensor):
        pass

    @compile
    def f(x):
        return x * 2 + 1

    out = f(rows().as_subclass(Loud))
    return out.as_subclass(torch.Tensor), type(out).__name__


@script
def torch_function_mode(compile):
    from torch.overrides import TorchFunctionMode

    class Count(TorchFunctionMode):
        n = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            Count.n += func is torch.mul
            return func(*args, **(kwargs or {}))

    @compile
    def f(x):
        return torch.mul(x, 2)

    with Count():
        a = f(rows())
    return a, f(rows())


@script
def scripted_functions_convert_and_refuse(compile):
    """TorchScript converts numbers, copies lists, and refuses what has another type."""
    def scaled(x: torch.Tensor, by: float):
        return x * by, by

    def appended(x: torch.Tensor, to: list[torch.Tensor]):
        to.append(x)
        return len(to)

    traced, scaled, appended = torch.jit.trace(lambda x: x * 2 + 1, rows()), torch.jit.script(scaled), torch.jit.script(appended)
    kept, out = [], []
    f, g, h = compile(lambda x: traced(x) + 1), compile(lambda x, by: scaled(x, by)), compile(lambda x: (appended(x, kept), len(kept)))
    for x in (rows(), 1.5, 2.5, 3, rows()):
        try:
            out.append(f(x))
        except RuntimeError as error:
            out.append(str(error).partition("Position")[0])
    for by in (2, 2.0, 3, 3.5):
        result, number = g(rows(), by)
        out += [result, number, type(number).__name__]
    return out, h(rows()), h(rows()), len(kept)


@script
def scripted_and_compiled_callables(compile):
    traced = torch.jit.trace(lambda x: x * 2 + 1, rows())

    @compile
    def f(x):
        return traced(x) + 1

    return f(rows()), f(rows())


@script
def super_from_before_a_break(compile):
    """What it is bound to belongs to it."""
    class Meta(type):
        def __call__(cls, *args):
            parent = super()
            torch._dynamo.graph_break()
            return parent.__call__(*args)

    class First(metaclass=Meta):
        pass

    class Second(First):
        pass

    class Scaled(torch.nn.Module):
        def __init__(self, scale):
            torch.nn.Module.__init__(self)
            self.scale = scale

        def forward(self, x):
            return x * self.scale

    class Broken(Scaled):
        def forward(self, x):
            parent = super()
            torch._dynamo.graph_break()
            return parent.forward(x)

    make = compile(lambda kind, x: (type(kind()).__name__, x + 1))
    call = compile(lambda module, x: module(x))
    return [make(kind, torch.ones(2)) for kind in (First, Second, First, Second)], [call(Broken(k), torch.ones(2)) for k in (2, 3, 4.5, 5)]

"""Writes, prints, warnings and exceptions: in the program's order, to the object that was written, every time."""

import logging
import operator
import sys
import threading
import time
import traceback
import types
import warnings

import torch

from . import edge, raised

DONE = True


class Plain:
    pass


@edge
def attribute_written_with_the_value_it_had(compile, engine):
    s = Plain()
    s.ready = True

    def f(x):
        s.ready = True
        return x + 1

    c, x = compile(f), torch.ones(3)
    out = [c(x)]
    s.ready = False
    out += [c(x), s.ready]
    del s.ready
    return out + [c(x), s.ready]


@edge
def module_attribute_written_with_the_value_it_had(compile, engine):
    class Warm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.warm, self.stage, self.state = False, "new", None

        def forward(self, x):
            self.warm, self.stage = True, "done"
            self.state = x.detach() if self.training else None
            return x * 2

    m = Warm()
    c = compile(m)
    c(torch.ones(8, 2))
    c(torch.ones(3, 2))  # captured while warm is True
    m.warm, m.stage = False, "new epoch"
    c(torch.ones(3, 2))
    out = [m.warm, m.stage, m.state]
    m.eval()
    m.state = None
    c(torch.ones(3, 2))  # captured while state is None
    m.train()
    c(torch.ones(3, 2))
    out.append(m.state is None)
    m.eval()
    c(torch.ones(3, 2))
    return out + [m.state]


@edge
def names_written_with_the_value_they_had(compile, engine):
    global DONE

    class Slotted:
        __slots__ = ("last",)

    slotted, n, d, items = Slotted(), 5, {"k": 1}, [1, 2]
    slotted.last = None

    def f(x):
        global DONE
        nonlocal n
        DONE, n, slotted.last = True, 5, None
        d["k"], items[0] = 1, 1
        return x + 1

    c, x = compile(f), torch.ones(3)
    c(x)
    DONE, n, slotted.last, d["k"], items[0] = False, 7, 9, 8, 6
    return c(x), DONE, n, slotted.last, d, items


@edge
def activation_kept_in_a_dict(compile, engine):
    class Kept(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.outputs, self.items, self.last = torch.nn.Parameter(torch.ones(2)), {}, [None], None

        def forward(self, x):
            y = x * self.weight
            self.outputs[0] = self.items[0] = self.last = y
            return y * 2

    m, x = Kept(), torch.ones(2)
    c, out = compile(m), []
    for _ in range(4):
        out.append(raised(lambda: c(x).sum().backward()))
    return out, m.weight.grad, m.outputs[0] is m.last


@edge
def order_of_a_dict_changes(compile, engine):
    kept, items = Plain(), [1]
    cache = {"a": 1, "b": 2, "c": kept, "l": items}

    def f(x):
        v = cache.pop("a")
        cache["a"] = v
        return x + v

    c, x = compile(f), torch.ones(3)
    out = [c(x), cache["c"] is kept, cache["l"] is items, list(cache)]
    cache["b"], cache["new"] = 99, 7
    return out + [c(x), cache["b"], list(cache), cache["c"] is kept]


@edge
def order_of_an_instance_changes(compile, engine):
    s = Plain()
    s.a, s.b, s.c = 1, [1, 2], 5

    def f(x):
        v = s.a
        del s.a
        s.a = v
        return x + v

    c, x, old = compile(f), torch.ones(3), s.b
    out = [c(x), s.b is old, list(vars(s))]
    s.c, s.d = 6, 8
    return out + [c(x), s.c, s.b is old, list(vars(s))]


@edge
def made_object_as_key(compile, engine):
    registry, seen = {}, set()

    def f(x):
        h = Plain()
        registry[h] = 1
        seen.add(h)
        return x + 1, h

    c, out = compile(f), []
    for _ in range(2):
        _, h = c(torch.ones(2))
        out += [h in registry, h in seen, len(registry), len(seen)]
    return out


@edge
def print_before_a_write(compile, engine):
    def f(x, items, d):
        print(items, d)
        items.append(4)
        print(items, f"{d}")
        d["k"] = items
        print("%s" % d)
        return x + 1

    c, x = compile(f), torch.ones(2)
    return [c(x, [1], {}) for _ in range(3)]


@edge
def print_of_objects(compile, engine):
    class Shown(Plain):
        def __str__(self):
            return f"step {self.step}"

    s, x = Shown(), torch.ones(2)
    s.step = 0

    def f(x):
        print(s)
        s.step += 1
        print(s, s.step, sep="-", end="!\n")
        return x + s.step

    c = compile(f)
    return [c(x) for _ in range(3)], s.step


@edge
def print_of_tensors(compile, engine):
    def f(x, y):
        print(x)
        x.add_(1)
        print(x, y.sum())
        return x * 2

    c, x = compile(f), torch.zeros(2)
    return [c(x, torch.ones(2)) for _ in range(3)]


@edge
def logging_before_and_after_a_write(compile, engine):
    log = logging.getLogger("edges")
    handler = logging.StreamHandler(sys.stdout)
    log.addHandler(handler)
    log.setLevel("INFO")
    state = types.SimpleNamespace(step=0)

    def f(x):
        log.info("before %s", state.__dict__)
        state.step += 1
        log.info("after %s", state.__dict__)
        return x + 1

    c, x = compile(f), torch.ones(2)
    out = [c(x), c(x)]
    log.setLevel("ERROR")
    out.append(c(x))
    log.removeHandler(handler)
    return out, state.step


@edge
def warning_turned_into_an_error(compile, engine):
    def f(x):
        try:
            warnings.warn("careful")
        except UserWarning:
            return x + 1
        return x - 1

    c, x, out = compile(f), torch.ones(2), []
    for action in ("error", "ignore", "error", "always"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(action)
            out += [raised(c, x), [str(w.message) for w in caught]]
    return out


@edge
def variances_of_too_few_elements_warn(compile, engine):
    """libtorch's kernels warn at the program's line, also where nobody reads the result; a size that changes decides it in each call."""
    def f(x, correction):
        x.std(0, correction=correction)
        mean = torch.var_mean(x, 1, correction=correction)[1]
        return mean + torch.var(x.t(), 0, correction=correction).nan_to_num()

    out = []
    for dynamic in (None, True):
        g = compile(f, dynamic=dynamic)
        for shape, correction in (((3, 4), 1), ((1, 4), 1), ((3, 1), 1), ((3, 4), 3), ((3, 4), 0), ((5, 4), 4), ((5, 6), 4.5), ((5, 5), 4.5), ((0, 4), 1)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = g(torch.arange(float(shape[0] * shape[1])).reshape(shape), correction)
            out.append((shape, correction, tuple(result.shape), [(str(w.message).split(":")[0], w.lineno) for w in caught]))
    return out


@edge
def warnings_come_as_often_as_filters_say(compile, engine):
    def f(x):
        warnings.warn("once")
        return x + 1

    c, x = compile(f), torch.ones(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            c(x)
    return [str(w.message) for w in caught], [w.lineno - f.__code__.co_firstlineno for w in caught]


@edge
def writes_before_an_exception(compile, engine):
    log, state = [], Plain()

    def f(x, fail):
        log.append("before")
        state.v = x * 2
        print("printed")
        if fail:
            raise ValueError("stop")
        log.append("after")
        return x + 1

    c, x = compile(f), torch.ones(1)
    return [raised(c, x, fail) for fail in (False, True, True, False)], log, state.v


@edge
def writes_before_an_index_error_of_the_graph(compile, engine):
    log = []

    def f(x, i):
        log.append("before")
        y = x[i] + torch.rand(())
        log.append("after")
        return y

    c, x = compile(f), torch.ones(3)
    torch.manual_seed(0)
    first = c(x, torch.tensor([0]))
    kind = raised(c, x, torch.tensor([7]))
    return first, kind[0], log, torch.rand(1)


@edge
def deleted_attribute_that_is_not_there(compile, engine):
    log = []

    def f(x, s):
        del s.a
        return x + 1

    def g(x, s):
        try:
            del s.a
        except AttributeError:
            log.append("handled")
        return x + 1

    c, d, x, s, t = compile(f), compile(g), torch.zeros(1), Plain(), Plain()
    s.a = t.a = 1
    return c(x, s), raised(c, x, s), d(x, t), raised(d, x, t), log


@edge
def deleted_names_that_are_not_there(compile, engine):
    d, items = {"a": 1}, [1]

    def key(x):
        del d["a"]
        return x + 1

    def item(x):
        items.pop()
        return x + 1

    c, e, x = compile(key), compile(item), torch.zeros(1)
    return c(x), raised(c, x), e(x), raised(e, x)


@edge
def returned_exception_keeps_its_context(compile, engine):
    def f(x):
        try:
            try:
                raise KeyError("a")
            except KeyError:
                raise ValueError("b")
        except ValueError as error:
            return x + 1, error

    def g(x):
        try:
            raise KeyError("a")
        except KeyError as error:
            raise ValueError("b") from error

    _, error = compile(f)(torch.ones(1))
    out = [repr(error), repr(error.__context__), repr(error.__cause__), error.__traceback__ is not None]
    try:
        compile(g)(torch.ones(1))
    except ValueError as error:
        out += [repr(error), repr(error.__context__), repr(error.__cause__)]
    return out


@edge
def writes_of_another_thread_survive(compile, engine):
    s, running, added = types.SimpleNamespace(out=None, beat=0), True, 0

    def heart():
        nonlocal added
        while running:
            s.beat += 1
            setattr(s, f"k{added}", added)
            added += 1
            time.sleep(1e-4)

    def f(x):
        s.out = x.sin()
        for _ in range(200):
            x = x.cos()
        return x

    thread = threading.Thread(target=heart)
    thread.start()
    time.sleep(0.01)
    c, x, backwards = compile(f), torch.ones(4), 0
    c(x)
    for _ in range(4):
        time.sleep(0.02)
        before = s.beat
        c(x)
        backwards += s.beat < before
    running = False
    thread.join()
    missing = sum(not hasattr(s, f"k{i}") for i in range(added))
    for k in [k for k in vars(s) if k not in ("out", "beat")]:
        delattr(s, k)
    c(x)
    return backwards, missing, sorted(vars(s))


@edge
def what_may_not_be_written_is_refused_before_anything_is(compile, engine):
    """A leaf and views of one, while gradients are recorded: what comes after such a write in the program has not been done."""
    def f(x, y, v):
        x.sin()
        y[:1] = 2
        v[2:] = 0.5
        return x * 1, y * 3

    g, out = compile(f), []
    for view in (lambda x: x[:], lambda x: x.view(10), lambda x: x.t(), lambda x: x, lambda x: x.split(1)[0], lambda x: x.detach()[:]):
        x, v = torch.ones(2, 5, requires_grad=True), torch.zeros(4)
        y = view(x)
        out.append((raised(lambda: g(x, y, v)), v, x.detach(), x._version, y._version))
    return out


@edge
def tracebacks_of_caught_exceptions(compile, engine):
    """Of the exception, its cause and context, in whichever frame it was caught and by whichever way it is asked for."""
    def lines(e):
        return e.__traceback__ and [(frame.name, frame.lineno) for frame in traceback.extract_tb(e.__traceback__)]

    def caught(x):
        try:
            raise ValueError("a")
        except ValueError as e:
            return lines(e), getattr(e, "__traceback__") is None, operator.attrgetter("__traceback__")(e) is None, sys.exception().__traceback__ is None

    def chained(x):
        try:
            try:
                raise ValueError("a")
            except ValueError:
                raise KeyError("b")
        except KeyError as e:
            return lines(e), lines(e.__context__)

    def kept(x):
        try:
            raise ValueError("a")
        except ValueError as e:
            return e

    def thrown(x):
        def items():
            try:
                yield
            except ValueError as e:
                yield lines(e)

        made = items()
        next(made)
        return made.throw(ValueError("z"))

    def left(x):
        class Manager:
            def __enter__(self):
                return self

            def __exit__(self, kind, error, where):
                self.told = error.__traceback__ is where, where.tb_lineno
                return True

        with Manager() as manager:
            raise ValueError("q")
        return manager.told

    def given(x):
        try:
            kept(x).args[1]
        except IndexError as e:
            error = KeyError("k").with_traceback(e.__traceback__)
        return lines(error)

    out = []
    for inner in (caught, chained, lambda x: lines(kept(x)), thrown, left, given):
        f = compile(lambda x: (x + 1, inner(x)))
        out.append([f(torch.ones(2)) for _ in range(2)])
    return out


@edge
def an_exception_that_a_caller_handles(compile, engine):
    f, x = compile(lambda x: (x + 1, sys.exc_info()[0], sys.exception() is None)), torch.ones(1)
    out = [f(x)]
    for error in (KeyError, ValueError):
        try:
            raise error
        except error:
            out.append(f(x))
    return out + [f(x)]


@edge
def warnings_of_torch_come_as_in_eager(compile, engine):
    """At the program's line: what is said in every call, by bindings and by operators, and what is said once in a process."""
    double = torch.tensor([2.0])

    def every(x):
        copy = torch.tensor(x)
        return copy + x.new_tensor(x)

    def seldom(x):
        return x.T.sum() + torch.range(0, 1)[0]

    def extern(x):
        y = x + 1
        return torch.cholesky(y @ y.t()) + 1

    def searches(x):
        y = x * torch.ones(3, 3)
        return torch.bucketize(y.t(), torch.arange(6.0)[::2]) + torch.searchsorted(y.t(), y.t())

    def bytes_as_masks(x):
        mask = (x > 0).to(torch.uint8)
        return x[mask] + 1, torch.where(mask, x, 2 * x)

    def unread(x):
        torch.cholesky(x.diag())
        return x + 1, x[:0].index_reduce(0, torch.zeros(0, dtype=torch.long), x[:0], "amax")

    def grad(x):
        y = x * 2
        return y.grad is None

    class Crossed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.cross(x, torch.tensor(x))

        @staticmethod
        def backward(ctx, g):
            return g

    def quiet(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.tensor(x) + 1

    out = []
    given = ((every, torch.ones(2)), (seldom, torch.ones(2, 3, 4)), (extern, torch.eye(2)), (searches, torch.arange(3.0)), (bytes_as_masks, torch.arange(-3.0, 6.0)), (unread, torch.ones(3)), (grad, torch.ones(2, requires_grad=True)), (quiet, double),
             (lambda x: Crossed.apply(x) * 2, torch.ones(3, 3, requires_grad=True)), (lambda x: torch.nn.functional.mse_loss(x, x * 2, size_average=False), torch.ones(2)))
    for action in ("always", "default", "ignore", "error"):
        for f, x in given:
            c = compile(f)
            for _ in range(3):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter(action)
                    result = raised(c, x)
                out.append((action, result, [(w.category.__name__, str(w.message).split("(Triggered")[0], w.lineno, w.filename == __file__) for w in caught]))
    return out


@edge
def data_that_raise_inside_try_are_the_programs(compile, engine):
    """It is assumed that nothing raises, also where the program would handle that: a call for which it does is run by Python, with all its effects once."""
    seen = []

    def caught(a, b):
        seen.append(len(a))
        try:
            if (a > 50).any():
                raise ValueError(f"bad {tuple(a.shape)}")
            b.add_(1)
            y = a + b
        except ValueError as e:
            seen.append(str(e))
            b.sub_(1)
            y = a - b
        else:
            seen.append("fine")
        finally:
            seen.append("end")
        return y * 2

    def nested(a, b):
        out = []
        for k in range(3):
            try:
                try:
                    assert (a < 50 + k * 100).all(), "big"
                    out.append(a + k)
                finally:
                    out.append(k)
            except AssertionError as e:
                out.append(str(e))
        return out, b + 1

    def drawn(a, b):
        first = torch.rand(3)
        try:
            if (a > 50).any():
                raise KeyError(1)
        except KeyError:
            return first, torch.rand(2)
        return first, torch.rand(4)

    def validated(a, b):
        try:
            return torch.distributions.Normal(a.double(), b.double().exp()).log_prob(b.double()).mul(1e6).round()
        except TypeError:
            return a
        finally:
            seen.append("validated")

    out = []
    for f in (caught, nested, drawn, validated):
        for raises in (lambda i: False, lambda i: i % 2, lambda i: i == 5, lambda i: i < 3):
            c, before = compile(f), engine.counters()["graph_breaks"] if engine else 0
            for i in range(8):
                a, b = torch.linspace(-1, 1, 12).reshape(3, 4) + i, torch.linspace(1, 2, 12).reshape(3, 4)
                if raises(i):
                    a[0, 0] = 120.0 if i % 4 else float("nan")
                torch.manual_seed(i)
                seen.clear()
                try:
                    given = c(a, b)
                except Exception as e:
                    given = type(e).__name__, str(e)[:60]
                out += [given, b, list(seen), torch.rand(1)]
            if not raises(1) and not raises(5):
                out.append(not engine or engine.counters()["graph_breaks"] == before)
    return out


@edge
def writes_that_warn(compile, engine):
    """torch warns of these once in a process or every time: found out without a second write."""
    def bound(a, at, values):
        a = a.clone()
        write = a.scatter_
        write(0, at, values, reduce="add")
        return a

    def given(a, at, values):
        a.scatter_(0, at, values, reduce="multiply")
        b = a + 1
        b.scatter_(0, at, values, reduce="add")
        return b

    def restrided(a, at, values):
        write = a.T.scatter_
        write(0, at, values.T, reduce="add")
        return a * 2

    out = []
    for f in (bound, given, restrided):
        c, before = compile(f), engine and engine.counters()["graph_breaks"]
        for n in (5, 5, 6):
            a = torch.arange(4.0 * n).view(4, n)
            with warnings.catch_warnings(record=True):
                warnings.simplefilter("always")
                out += [c(a, torch.tensor([[1], [2], [3]]), torch.full((4, n), 2.0)), a, a._version]
        out.append(not engine or engine.counters()["graph_breaks"] == before)
    return out

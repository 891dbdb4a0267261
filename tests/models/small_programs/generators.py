"""Generators and context managers: when they are closed, what they are told, what they leave behind."""

import contextlib
import itertools

import torch

from . import script

LOG = []


def ones(n=3, value=1.0):
    return torch.full((n,), value)


def logged(run, *args):
    """The result (or error) of a call, what it logged, and the modes it left."""
    LOG.clear()
    try:
        result = run(*args)
    except BaseException as error:
        result = type(error).__name__, str(error)
    return result, list(LOG), torch.is_grad_enabled()


def counting(x, name="g"):
    try:
        for i in range(4):
            LOG.append((name, i))
            yield x + i
    finally:
        LOG.append((name, "closed"))


def halves(x):
    with torch.no_grad():
        yield x * 0.5
        yield x * 0.25


def times(c, run, *args):
    f = c(run)
    return [logged(f, *args) for _ in range(3)]


@script
def abandoned_generators(compile):
    def stopped(x):
        for a in counting(x):
            LOG.append("body")
            break
        LOG.append("after")
        return a

    def one_item(x):
        a = next(counting(x))
        LOG.append("after")
        return a

    def overwritten(x):
        g = counting(x, "first")
        a = next(g)
        g = counting(x, "second")
        LOG.append("between")
        a = a + next(g)
        del g
        LOG.append("after")
        return a

    def at_return(x):
        def inner():
            g = counting(x)
            a = next(g)
            LOG.append("returning")
            return a

        a = inner()
        LOG.append("after")
        return a

    def kept(x):
        g = counting(x)
        a = next(g)
        h = g
        del g
        LOG.append("still alive")
        a = a + next(h)
        h = None
        LOG.append("after")
        return a

    def never_started(x):
        g = counting(x)
        g = None
        LOG.append("after")
        return x + 1

    def through_zip(x):
        out = [a + b for a, b in zip(counting(x, "a"), [1, 2])]
        LOG.append("after")
        a, *_ = zip(counting(x, "c"), counting(x, "d"), range(1))
        LOG.append("again")
        return out, a

    def early_any(x):
        found = any(v is not None for v in counting(x))
        LOG.append("after")
        g = counting(x, "named")
        LOG.append(any(v is not None for v in g))
        LOG.append(len(list(g)))
        return found, x + 1

    def by_exception(x):
        try:
            for a in counting(x):
                raise ValueError("out")
        except ValueError as error:
            LOG.append(str(error))
        LOG.append("after")
        return x + 1

    def by_exception_in_callee(x):
        def inner():
            for a in counting(x):
                raise ValueError("out")

        try:
            inner()
        except ValueError as error:
            LOG.append(str(error))
        LOG.append("after")
        return x + 1

    def held_by_exception(x):
        def inner():
            g = counting(x)
            next(g)
            raise ValueError("out")

        try:
            inner()
        except ValueError:
            LOG.append("handler")
        LOG.append("after")
        return x + 1

    def in_container(x):
        box = [counting(x)]
        a = next(box[0])
        box.clear()
        LOG.append("after")
        return a

    def in_object(x):
        class Holder:
            pass

        h = Holder()
        h.g = counting(x)
        a = next(h.g)
        del h
        LOG.append("after")
        return a

    def sliced(x):
        import itertools
        out = list(itertools.islice(counting(x), 2))
        LOG.append("after")
        return out

    programs = (stopped, one_item, overwritten, at_return, kept, never_started, through_zip, early_any, by_exception,
                by_exception_in_callee, held_by_exception, in_container, in_object, sliced)
    return [times(compile, f, ones()) for f in programs]


@script
def modes_do_not_leak(compile):
    def taken(x):
        return (x * next(halves(x))).sum()

    def broken(x):
        for h in halves(x):
            break
        return (x * h).sum(), torch.is_grad_enabled()

    def kept_open(x):
        g = halves(x)
        h = next(g)
        inside = torch.is_grad_enabled()
        del g
        return (x * h).sum(), inside, torch.is_grad_enabled()

    def at_the_end(x):
        g = halves(x)
        return (x * next(g)).sum()

    out = []
    for f in (taken, broken, kept_open, at_the_end):
        c = compile(f)
        for _ in range(3):
            y = c(torch.ones(3, requires_grad=True))
            out += [y, torch.is_grad_enabled()]
            torch.set_grad_enabled(True)
    return out


@script
def methods_of_generators(compile):
    def echo(x):
        got = None
        while True:
            try:
                got = yield x if got is None else x * got
            except KeyError as error:
                LOG.append(str(error))
                got = 10
            finally:
                LOG.append("turn")

    def sends(x):
        g = echo(x)
        out = [next(g), g.send(2), g.throw(KeyError("k")), g.send(None)]
        g.close()
        g.close()
        LOG.append("closed")
        return out, next(g, "ended")

    def returns(x):
        def inner():
            got = yield x
            LOG.append(got)
            return 7

        def outer():
            value = yield from inner()
            LOG.append(value)
            yield x * value
            return "end"

        g = outer()
        first = next(g)
        second = g.send("sent")
        try:
            next(g)
        except StopIteration as stop:
            return first, second, stop.value

    def ignores(x):
        def stubborn():
            try:
                yield x
            except GeneratorExit:
                yield x * 2

        g = stubborn()
        a = next(g)
        try:
            g.close()
        except RuntimeError as error:
            return a, str(error)

    def throws_before_start(x):
        g = counting(x)
        try:
            g.throw(ValueError("early"))
        except ValueError as error:
            LOG.append(str(error))
        return list(g), x + 1

    def stop_inside(x):
        def bad():
            yield x
            raise StopIteration("inner")

        try:
            return list(bad())
        except RuntimeError as error:
            return str(error), type(error.__cause__).__name__, x + 1

    def sends_too_early(x):
        g = counting(x)
        try:
            g.send(1)
        except TypeError as error:
            return str(error), next(g), g.close()

    def reenters(x):
        def selfish():
            try:
                next(holder[0])
            except ValueError as error:
                yield str(error)

        holder = []
        holder.append(selfish())
        return next(holder[0]), x + 1

    def handles_while_suspended(x):
        def inside():
            try:
                raise KeyError("own")
            except KeyError:
                yield x
                try:
                    raise
                except KeyError as error:
                    LOG.append(repr(error))
                yield x * 2

        g = inside()
        a = next(g)
        try:
            raise ValueError("caller")
        except ValueError:
            b = next(g)
            try:
                raise
            except ValueError as error:
                LOG.append(repr(error))
        return a, b, list(g)

    def throw_with_class(x):
        def catching():
            try:
                yield x
            except ValueError as error:
                yield error.args

        g = catching()
        next(g)
        return g.throw(ValueError, "text"), x + 1

    programs = (sends, returns, ignores, throws_before_start, stop_inside, sends_too_early, reenters, handles_while_suspended, throw_with_class)
    return [times(compile, f, ones()) for f in programs]


@script
def delegation(compile):
    def inner(x, name):
        try:
            got = yield x
            LOG.append((name, got))
            yield x * 2
        except KeyError as error:
            LOG.append((name, str(error)))
            yield x * 3
        finally:
            LOG.append((name, "closed"))
        return name

    def outer(x):
        try:
            value = yield from inner(x, "in")
            LOG.append(value)
            value = yield from inner(x + 1, "second")
        except ValueError as error:
            LOG.append(("outer", str(error)))
            yield x * 5
        finally:
            LOG.append("outer closed")

    def closes(x):
        g = outer(x)
        a = next(g)
        g.close()
        LOG.append("after")
        return a

    def abandons(x):
        a = next(outer(x))
        LOG.append("after")
        return a

    def throws_into_inner(x):
        g = outer(x)
        next(g)
        a = g.throw(KeyError("k"))
        rest = list(g)
        return a, rest

    def throws_through(x):
        g = outer(x)
        next(g)
        a = g.throw(ValueError("v"))
        return a, list(g)

    def sends_through(x):
        g = outer(x)
        return [next(g), g.send("s"), *g]

    def over_a_list(x):
        def lists():
            yield from [x, x + 1]
            yield from {"a": x}.values()
            return (yield from (v * 2 for v in (x, x)))

        g = lists()
        a = next(g)
        try:
            g.throw(ValueError("list"))
        except ValueError as error:
            LOG.append(str(error))
        return a, list(lists())

    return [times(compile, f, ones()) for f in (closes, abandons, throws_into_inner, throws_through, sends_through, over_a_list)]


class Manager:
    def __init__(self, name, suppress=False, fail=None):
        self.name, self.suppress, self.fail = name, suppress, fail

    def __enter__(self):
        LOG.append(("enter", self.name))
        if self.fail == "enter":
            raise ValueError("in enter")
        return self

    def __exit__(self, kind, value, traceback):
        LOG.append(("exit", self.name, kind and kind.__name__, str(value), traceback is None))
        if self.fail == "exit":
            raise KeyError("in exit")
        return self.suppress


@contextlib.contextmanager
def managed(name, suppress=False):
    LOG.append(("enter", name))
    try:
        yield name
    except ValueError as error:
        LOG.append((name, str(error)))
        if not suppress:
            raise
    finally:
        LOG.append(("exit", name))


@script
def context_managers(compile):
    def plain(x):
        with Manager("a") as a, managed("b") as b:
            LOG.append((a.name, b))
            return x + 1

    def suppressed(x):
        with Manager("a", suppress=True), managed("b"):
            raise ValueError("gone")
        LOG.append("after")
        return x + 1

    def suppressed_by_generator(x):
        with Manager("a"), managed("b", suppress=True):
            raise ValueError("gone")
        LOG.append("after")
        return x + 1

    def enter_fails(x):
        try:
            with Manager("a"), Manager("b", fail="enter"), managed("c"):
                LOG.append("never")
        except ValueError as error:
            LOG.append(str(error))
        return x + 1

    def exit_fails(x):
        try:
            with Manager("a"), Manager("b", fail="exit"):
                raise ValueError("first")
        except KeyError as error:
            LOG.append((str(error), str(error.__context__)))
        return x + 1

    def stacked(x):
        with contextlib.ExitStack() as stack:
            for name in "ab":
                stack.enter_context(managed(name))
            stack.enter_context(Manager("m", suppress=len(x) == 3))
            stack.callback(LOG.append, "callback")
            raise ValueError("inside")
        return x + 1

    def leaves_loops(x):
        for i in range(3):
            with managed(f"loop{i}"):
                if i == 0:
                    continue
                if i == 1:
                    break
        while True:
            with Manager("w"):
                return x + i

    def suppresses(x):
        with contextlib.suppress(ZeroDivisionError, KeyError):
            {}["missing"]
        with contextlib.nullcontext(5) as five:
            return x + five

    def in_generator(x):
        def rows():
            with managed("inner"):
                yield x
                yield x * 2

        for row in rows():
            LOG.append("body")
            break
        LOG.append("after")
        return row

    def escapes(x):
        with managed("a"):
            raise TypeError("out")

    programs = (plain, suppressed, suppressed_by_generator, enter_fails, exit_fails, stacked, leaves_loops, suppresses, in_generator, escapes)
    return [times(compile, f, ones()) for f in programs]


@script
def generators_from_outside(compile):
    @compile
    def f(x, g):
        return x + next(g)

    @compile
    def handed_out(x):
        g = counting(x)
        first = next(g)
        return g, first

    @compile
    def stored(x, box):
        box.append(counting(x))
        return x + next(box[-1])

    LOG.clear()
    g = counting(ones())
    out = [f(ones(), g), f(ones(), g)]
    g.close()
    h, first = handed_out(ones())
    out += [first, next(h)]
    h.close()
    box = []
    out += [stored(ones(), box), next(box[0])]
    box.clear()
    return out, list(LOG)


@script
def suspended_across_breaks(compile):
    """A generator is made before a break and advanced behind it: by loops, send, throw and close, inside others and inside zip, enumerate, map, filter and chain."""
    def rows(x, n=3):
        for i in range(n):
            yield x * i

    def told(x, log):
        try:
            for i in range(3):
                got = yield x * i
                log.append((i, got))
        except ValueError as e:
            log.append(repr(e))
            yield x - 1
        finally:
            log.append("end")
        return x + 7

    def looped(x):
        out = []
        for v in rows(x):
            out.append(v + 1)
            torch._dynamo.graph_break()
            out.append(v.sin())
        return out

    def driven(x):
        log = []
        g = told(x, log)
        out = [next(g)]
        torch._dynamo.graph_break()
        out.append(g.send("hi"))
        torch._dynamo.graph_break()
        out.append(g.throw(ValueError("v")))
        torch._dynamo.graph_break()
        g.close()
        return out, log, next(g, None)

    def delegates(x):
        def outer():
            r = yield from told(x, log)
            yield r * 2

        log, out = [], []
        for v in outer():
            out.append(v + 1)
            torch._dynamo.graph_break()
        return out, log

    def nested(x):
        out = []
        for i, (v, w) in enumerate(zip(rows(x), itertools.chain(rows(x + 1, 1), rows(x + 2, 9))), 5):
            out.append(v * w + i)
            torch._dynamo.graph_break()
        for v in map(lambda t: t.cos() + x, filter(lambda t: t.shape[0] > 1, rows(x))):
            out.append(v)
            torch._dynamo.graph_break()
        return out, i

    def shared(x):
        g = rows(x, 5)
        next(g)
        torch._dynamo.graph_break()
        e = enumerate(g)
        next(e)
        torch._dynamo.graph_break()
        z = zip(g, e, strict=False)
        first = next(z)
        torch._dynamo.graph_break()
        return first, next(z, None), next(e, None), list(g)

    def with_a_cell(x):
        k = 2

        def g():
            nonlocal k
            for _ in range(3):
                k += 1
                yield x * k

        out = []
        for v in g():
            torch._dynamo.graph_break()
            out.append(v + k)
            k *= 2
        return out, k

    def all_kinds_of_arguments(x):
        def g(a, /, b, *c, d, **e):
            while True:
                y = yield a, b, c, d, e
                b = b + 1 if y is None else y

        h = g(x, 1, 2, 3, d=4, z=5)
        next(h)
        torch._dynamo.graph_break()
        out = h.send(x + 9)
        torch._dynamo.graph_break()
        return out, next(h)

    def managed_across(x):
        log = []
        with managed("m"):
            y = x + 1
            torch._dynamo.graph_break()
            log.append("body")
        return y, log

    def raises_inside(x):
        def g():
            yield 1
            raise KeyError("k")

        h = g()
        next(h)
        torch._dynamo.graph_break()
        try:
            next(h)
        except KeyError as e:
            said = repr(e)
        torch._dynamo.graph_break()
        return said, next(h, "ended"), x + 1

    def handed_out(x):
        g = rows(x)
        next(g)
        torch._dynamo.graph_break()
        two = [g, g]
        next(two[0])
        return next(two[1]), two[0] is g, next(g, None)

    def trampolined(x):
        def sums(n):
            if n == 0:
                return x, x + 1
            a, b = yield sums(n - 1)
            torch._dynamo.graph_break()
            return a * 2, b + a

        waiting, given = [sums(3)], None
        while waiting:
            try:
                waiting.append(next(waiting[-1]) if given is None else waiting[-1].send(given))
                given = None
            except StopIteration as stop:
                waiting.pop()
                given = stop.value
        return given

    programs = (trampolined, looped, driven, delegates, nested, shared, with_a_cell, all_kinds_of_arguments, managed_across, raises_inside, handed_out)
    return [times(compile, f, ones(n)) for f in programs for n in (3, 4)]

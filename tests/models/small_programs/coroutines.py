"""Coroutines that a compiled function drives itself: send, throw, close, await, async with and async for, and what they leave behind."""

import collections.abc
import inspect
import types

import torch

from . import script
from .generators import LOG, ones, times


class Waits:
    def __init__(self, value):
        self.value = value

    def __await__(self):
        got = yield self.value
        return (got or 0) + 5


class Entered:
    async def __aenter__(self):
        LOG.append("enter")
        return await Waits(1)

    async def __aexit__(self, kind, error, traceback):
        LOG.append(("exit", str(error)))
        await Waits(2)
        return kind is KeyError


class Counts:
    def __init__(self):
        self.n = 0

    def __aiter__(self):
        return self

    async def __anext__(self):
        self.n += 1
        if self.n > 3:
            raise StopAsyncIteration
        return self.n


class CountsWrongly(Counts):
    def __anext__(self):
        return 3


class AwaitsWrongly:
    def __init__(self, given):
        self.given = given

    def __await__(self):
        return self.given


def driven(coroutine, sent=3):
    """What a coroutine yields, and what it returns or raises."""
    yielded = []
    try:
        yielded.append(coroutine.send(None))
        while True:
            yielded.append(coroutine.send(sent))
    except StopIteration as stop:
        return yielded, stop.value
    except (TypeError, RuntimeError, ValueError) as error:
        return yielded, type(error).__name__, str(error), type(error.__cause__).__name__


async def doubled(x):
    return x * 2


async def waited(x):
    return x * await Waits(2)


@script
def driven_coroutines(compile):
    async def nested(x):
        a = await doubled(x)
        return a + await waited(a)

    async def entered(x):
        async with Entered() as n:
            x = x * n
        async with Entered():
            raise KeyError("swallowed")
        return x + 1

    async def leaves_by_an_error(x):
        async with Entered():
            raise ValueError("not swallowed")

    async def looped(x):
        async for i in Counts():
            x = x + i
        else:
            x = x * 2
        return x

    async def comprehension(x):
        return sum([x * i async for i in Counts() if i != 2]), {i: await doubled(i) async for i in Counts()}

    async def stops(x):
        raise StopIteration(3)

    async def awaits_a_number(x):
        await 3

    async def awaits_what_awaits_wrongly(x):
        await AwaitsWrongly([1])

    async def enters_a_tensor(x):
        async with x:
            pass

    async def loops_over_a_tensor(x):
        async for i in x:
            pass

    async def loops_wrongly(x):
        async for i in CountsWrongly():
            pass

    every = [doubled, waited, nested, entered, leaves_by_an_error, looped, comprehension, stops, awaits_a_number, awaits_what_awaits_wrongly, enters_a_tensor,
                loops_over_a_tensor, loops_wrongly]

    def driven_one_by_one(x):
        return [driven(f(x)) for f in every], x + 1

    return times(compile, driven_one_by_one, ones())


@script
def states_of_coroutines(compile):
    def used_again(x):
        c = doubled(x)
        first = driven(c)
        return first, driven(c), x * 2

    def closed(x):
        c = doubled(x)
        c.close()
        return driven(c), x * 2

    def sent_too_early(x):
        c = waited(x)
        try:
            c.send(3)
        except TypeError as e:
            said = str(e)
        c.close()
        return said, x * 2

    def thrown_into(x):
        async def falls():
            try:
                await Waits(1)
            finally:
                LOG.append("finally")

        c = falls()
        c.send(None)
        try:
            c.throw(ValueError("thrown"))
        except ValueError as e:
            return str(e), x * 2

    def no_iterator(x):
        c, said = waited(x), []
        for use in (iter, next, list):
            try:
                use(c)
            except TypeError as e:
                said.append(str(e))
        c.close()
        return said, x * 2

    def awaited_twice(x):
        c = waited(x)
        c.send(None)

        async def second():
            return await c

        said = driven(second())
        c.close()
        return said, x * 3

    def kinds(x):
        c, g = waited(x), (i for i in [1])
        of = [(inspect.iscoroutine(o), isinstance(o, types.GeneratorType), isinstance(o, types.CoroutineType), isinstance(o, collections.abc.Awaitable), type(o).__name__,
               "__await__" in dir(o), "__next__" in dir(o)) for o in (c, g, zip())]
        c.close()
        return of, x * 2

    return [times(compile, f, ones()) for f in (used_again, closed, sent_too_early, thrown_into, no_iterator, awaited_twice, kinds)]


@script
def coroutines_across_breaks(compile):
    def handed_out(x):
        c = waited(x * 2)
        return c.send(None), c

    def rest_of_it(x):
        value, c = compile(handed_out)(x)
        return value, driven(c)

    def broken(x):
        c = waited(x + 1)
        y = x * c.send(None)
        torch._dynamo.graph_break()
        try:
            c.send(4)
        except StopIteration as stop:
            return stop.value + y

    def from_outside(x, c):
        try:
            c.send(4)
        except StopIteration as stop:
            return stop.value + x

    def given(x):
        c = waited(x)
        c.send(None)
        return compile(from_outside)(x, c)

    def ended(x):
        c = doubled(x)
        driven(c)
        torch._dynamo.graph_break()
        return driven(c), x + 1

    return [rest_of_it(ones()) for _ in range(3)], [given(ones()) for _ in range(3)], times(compile, broken, ones()), times(compile, ended, ones())

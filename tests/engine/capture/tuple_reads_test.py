"""Tuples of constants from outside are guarded by what is read of them: other elements may change, whatever is looked at may not.

Every call is compared with eager.
"""

import collections
import copy
import functools

import torch
import torch._dynamo

import fusebox
import fusebox._engine_access  # noqa: F401
from checks.script_checks import expect, run

X = torch.arange(4.0)
Pair = collections.namedtuple("Pair", "left right")


class Holder:
    def __init__(self, sizes):
        self.sizes = sizes


def graphs(f, *calls, **options):
    """How often is compiled until each call; the results are compared with eager's."""
    fusebox.reset()
    compiled, counts = fusebox.compile(f, backend="aot_eager", **options), []
    before = fusebox.counters()
    for args in calls:
        expected, got = f(*args), compiled(*args)
        expect(repr(got) == repr(expected), f"{f.__name__}{args[1:]}: {got!r} where eager gives {expected!r}")
        now = fusebox.counters()
        counts.append(sum(now[name] - before[name] for name in ("frames", "recompiles")))
        expect(now["eager_runs"] == before["eager_runs"], f"{f.__name__}: something ran eagerly")
    return counts


def test_unread_elements_may_change():
    def item(x, y):
        return x * y[1]

    expect(graphs(item, (X, (1, 2, "a")), (X, (7, 2, "b")), (X, (7, 3, "b"))) == [1, 1, 2], "an element")
    expect(graphs(item, (X, (1, 2)), (X, (1, 2, 3))) == [1, 2], "its length is looked at")
    expect(graphs(item, (X, (1, 2)), (X, [1, 2])) == [1, 2], "its type is looked at")
    expect(graphs(item, (X, (0, 5)), (X, (1, 5)), (X, (1, 6)), (X, (9, 7)), dynamic=True) == [1, 1, 1, 1], "symbols")


def test_slices():
    def rest(x, y):
        return x * y[1:][0], (0.5, *y[1:]), y[:] is y

    expect(graphs(rest, (X, (1, 2, "a")), (X, (7, 2, "a")), (X, (7, 3, "a")), (X, (7, 3, "b"))) == [1, 1, 2, 3], "what was left out")
    expect(graphs(rest, (X, (1, 2)), (X, (1, 2, 3))) == [1, 2], "its length is looked at")

    def backwards(x, y):
        return x * y[-1:0:-1][0], y[5:], y[:-1]

    expect(graphs(backwards, (X, (1, 2, 3)), (X, (1, 2, 4)), (X, (4, 2, 4))) == [1, 2, 3], "a step")


def test_tuples_inside():
    def inner(x, y):
        return x * y[1][0]

    expect(graphs(inner, (X, ((1, 2), (3, 4))), (X, ((5, 6), (3, 7))), (X, ((5, 6), (4, 7)))) == [1, 1, 2], "a tuple in a tuple")

    def field(x, pair):
        return x * pair.right[0]

    expect(graphs(field, (X, Pair((1, 2), (3, 4))), (X, Pair((2, 2), (3, 5))), (X, Pair(0, (4, 5)))) == [1, 1, 2], "in a named tuple")

    def attribute(x, holder):
        return x * holder.sizes[0]

    expect(graphs(attribute, (X, Holder((2, 3))), (X, Holder((2, 4))), (X, Holder((3, 4)))) == [1, 1, 2], "in an attribute")

    def entry(x, table):
        return x * table["sizes"][0]

    expect(graphs(entry, (X, {"sizes": (2, 3)}), (X, {"sizes": (2, 4)}), (X, {"sizes": (3, 4)})) == [1, 1, 2], "in a dict")


def test_what_is_handed_on_is_not_read():
    def given_back(x, y):
        box = Holder(y)
        return x + box.sizes[0], y, [y], (y, 1)

    expect(graphs(given_back, (X, (1, 2)), (X, (1, 3))) == [1, 1], "given back")
    y = (1, 2)
    expect(fusebox.compile(given_back, backend="aot_eager")(X, y)[1] is y, "the program's own object comes back")

    def asked(x, y=None):
        if y is not None and isinstance(y, (tuple, list)) and y:
            return x * len(y)
        return x

    expect(graphs(asked, (X, (1, 2)), (X, (3, 4)), (X, None), (X, (5, 6)), (X, ())) == [1, 1, 2, 2, 3], "asked for its type and length")


def test_what_is_read_whole():
    def uses(x, y, z):
        table = {(1, 2): 3, ((1, 2), 5): 4}
        return x.new_zeros(y), y == z, y + z, y[1:], f"{y}", table.get(y), table.get((y, 5)), {y: 1}, {(y, 1)}, y in [z], sorted([y, z]), hash(y), y is z

    calls = [(X, (1, 2), (1, 2)), (X, (1, 3), (1, 2)), (X, (1, 3), (2, 1)), (X, (1, 2), (1, 2))]
    expect(graphs(uses, *calls) == [1, 2, 3, 3], "every element counts")

    @functools.lru_cache(None)
    def remembered(key):
        return key[0][0] + key[1]

    def asks_a_cache(x, y):
        return x * remembered((y, 1))

    expect(graphs(asks_a_cache, (X, (1, 2)), (X, (3, 2)), (X, (1, 2))) == [1, 2, 2], "a key of a cache, inside of another tuple")

    def across_a_break(x, y):
        x = x + y[0]
        torch._dynamo.graph_break()
        return x * y[1], y

    expect(graphs(across_a_break, (X, (1, 2, 3)), (X, (1, 2, 4)))[-1] == graphs(across_a_break, (X, (1, 2, 3)))[-1], "behind a break")


def test_copies_of_copies():
    def copied(x, holder):
        again = copy.deepcopy(copy.deepcopy(holder))
        again.sizes += (3,)
        return x * again.sizes[-2], again.sizes, holder.sizes

    holder = Holder((2, 50256))
    want = copied(X, holder)
    fusebox.reset()
    got = fusebox.compile(copied, fullgraph=True)(X, holder)
    expect(torch.equal(got[0], want[0]) and got[1:] == want[1:], f"{got}")
    holder.sizes = (2, 50257)
    expect(fusebox.compile(copied, fullgraph=True)(X, holder)[1] == (2, 50257, 3), "another tuple")


run(globals())

"""Iteration over containers that change, identity of what is iterated over, and iterators that outlive a break."""

import collections
import itertools

import torch
from torch import nn

from . import script


def ones(n=2, value=1.0):
    return torch.full((n,), value)


def attempt(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return type(error).__name__, str(error)


@script
def lengths_are_guessed(compile):
    """CPython asks what it makes a list of for its length, and goes on where that raises TypeError."""
    asked = []

    class Sized:
        def __init__(self, length):
            self.length = length

        def __iter__(self):
            asked.append("iter")
            return iter([torch.ones(1), torch.ones(1)])

        def __len__(self):
            asked.append("len")
            return self.length()

    class Hinted:
        count = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.count += 1
            if self.count > 2:
                raise StopIteration
            return self.count

        def __length_hint__(self):
            asked.append("hint")
            return NotImplemented if self.count else 1

    def extended(o):
        made = [1]
        made.extend(o)
        made += o
        made[1:2] = o
        return made

    def unpacked(o):
        first, *rest = o
        return first, rest

    def refused():
        raise TypeError("no length")

    def failed():
        raise KeyError("length")

    programs = [lambda o: [*o], lambda o: list(o), lambda o: tuple(o), lambda o: (0, *o), lambda o: len(sorted(o, key=float)), lambda o: (lambda *a: len(a))(*o), extended, unpacked,
                lambda o: [x for x in o], lambda o: list(enumerate(o)), lambda o: sum(o), lambda o: list(zip(o, [1, 2]))]
    out = []
    for program in programs:
        for make in (lambda: Sized(lambda: 2), lambda: Sized(refused), lambda: Sized(failed), Hinted):
            try:
                out.append(compile(program)(make()))
            except KeyError as error:
                out.append(repr(error))
            out.append(list(asked))
            asked.clear()
    return out


@script
def list_grows_while_iterated(compile):
    @compile
    def f(x, todo):
        for t in todo:
            x = x + t
            if len(todo) < 4:
                todo.append(t * 2)
        return x

    out = []
    for k in (1, 2, 6, 0, 1):
        todo = [ones() for _ in range(k)]
        out += [f(torch.zeros(2), todo), len(todo), todo]
    return out


@script
def list_shrinks_while_iterated(compile):
    @compile
    def f(x, items):
        seen = []
        for i, t in enumerate(items):
            seen.append(i)
            x = x + t
            if i % 2 == 0:
                items.pop()
        return x, seen

    @compile
    def clears(x, items):
        for t in items:
            x = x * t
            items.clear()
        items.append(x)
        return x

    out = []
    for k in (1, 4, 5, 3):
        items = [ones(value=float(i)) for i in range(k)]
        out += [f(torch.zeros(2), items), items]
        items = [ones(value=2.0) for _ in range(k)]
        out += [clears(ones(), items), items]
    return out


@script
def writes_through_loop_variables(compile):
    @compile
    def plain(r, x):
        for d in r:
            d["y"] = x + 1

    @compile
    def counted(r, x):
        for i, (d, e) in enumerate(zip(r, reversed(r))):
            d[i] = x * i
            e.setdefault("from", []).append(i)

    @compile
    def unpacked(r, x):
        first, *rest = r
        first["first"] = x
        for d in rest[:1] + r[1:]:
            d.setdefault("n", 0)
            d["n"] += 1

    @compile
    def mapped(d, x):
        for key, value in d.items():
            value.append(x if key == "a" else x * 2)
        for value in d.values():
            value.append(1)
        for value in [*d.values()] + list(d.values()) + sorted(d.values(), key=len):
            value.append(2)

    x, out = ones(), []
    for k in (1, 2, 3, 2):
        for f in (plain, counted, unpacked):
            r = [{"x": x, "k": i} for i in range(k)]
            f(r, x)
            out.append(r)
        d = {"a": [x], "b": [], "c": [x * 3]}
        mapped(d, x)
        out.append(d)
    return out


@script
def the_very_objects(compile):
    @compile
    def f(r, d, x):
        first = r[0]
        a, b = r[:2]
        got = [
            [v is r[i] for i, v in enumerate(r)], [p is q for p, q in zip(r, r)], [v is w for v, w in zip(reversed(r), r[::-1])],
            a is first, b is r[1], list(r)[0] is first, tuple(r)[0] is first, [*r][0] is first, r.copy()[0] is first,
            (r + r)[2] is first, (r * 2)[2] is first, next(iter(r)) is first, next(filter(None, r)) is first,
            next(map(lambda v: v, r)) is first, next(itertools.chain(r, r)) is first, max(r, key=len) is r[1], min(r, key=len) is first,
            sorted(r, key=len)[0] is first, list(d.values())[0] is d["k"], dict(d)["k"] is d["k"], d.copy()["k"] is d["k"],
            {**d}["k"] is d["k"], (d | {})["k"] is d["k"], next(iter(d.items()))[1] is d["k"], first in r, r.index(b), r.count(first),
            (lambda *v, **w: v[0] is first and w["k"] is d["k"])(*r, **d), collections.OrderedDict(d)["k"] is d["k"],
            next(itertools.islice(r, 1, None)) is b, list(itertools.product(r, [1]))[0][0] is first, next(itertools.cycle(r)) is first,
            next(itertools.repeat(first)) is first, list(itertools.zip_longest(r, [1]))[0][0] is first,
        ]
        r[0].append(x)
        return got, [len(v) for v in r], x + len(r)

    out = []
    for n in (2, 3, 2):
        r = [[ones() for _ in range(i + 1)] for i in range(n)]
        d = {"k": [ones()], "l": ones()}
        out += [f(r, d, ones()), r, d]
    return out


@script
def dict_views_are_live(compile):
    @compile
    def f(x, d):
        values, keys, items = d.values(), d.keys(), d.items()
        d["b"] = x * 2
        s = x
        for t in values:
            s = s + t
        shown = len(keys), len(values), len(items), "b" in keys, "zz" in keys, [k for k, _ in items], list(reversed(keys))
        d.pop("a")
        return s, shown, len(keys), list(keys), [v is d[k] for k, v in items]

    @compile
    def g(x, d):
        return d.keys(), x + 1, d.keys() & {"a", "zz"}, sorted(d.keys() | {"q"}), d.keys() == {"a"}, ("a", 1) in d.items()

    out = []
    for d in ({"a": ones()}, {"a": ones(), "c": ones()}, {"c": ones(), "a": ones()}):
        out += [f(ones(), d), list(d)]
        keys, *rest = g(ones(), d)
        d["later"] = 1
        out += [list(keys), rest]
    return out


@script
def sizes_that_change_raise(compile):
    @compile
    def grow(x, d):
        for k in d:
            d[k + "_"] = x
        return x

    @compile
    def shrink(x, d):
        for k, v in d.items():
            x = x + v
            del d[k]
        return x

    @compile
    def caught(x, d):
        try:
            for k in d:
                d[k + "_"] = x
        except RuntimeError as error:
            return x * 2, str(error)
        return x

    @compile
    def sets(x, s):
        for k in s:
            s.add(k + 10)
            x = x + k
        return x

    @compile
    def replaced(x, d):
        for k in d:
            d[k] = x
        return list(d)

    out = []
    for keys in ("a", "ab", "", "a"):
        for f in (grow, shrink, caught, replaced):
            d = {k: ones() for k in keys}
            out += [attempt(f, ones(), d), list(d)]
        d = collections.OrderedDict((k, ones()) for k in keys)
        out += [attempt(grow, ones(), d), list(d)]
    for s in ({1}, {1, 2}, set()):
        out += [attempt(sets, ones(), s), len(s)]
    return out


class Rewrites(nn.Module):
    def __init__(self):
        super().__init__()
        self.bufs = [torch.ones(2), torch.ones(2)]

    def forward(self, x):
        for i, b in enumerate(self.bufs):
            self.bufs[i] = b + x
            if i == 0:
                self.bufs[1] = x * 10
        return sum(self.bufs)


@script
def module_rewrites_its_list(compile):
    m = Rewrites()
    c = compile(m)
    return [(c(ones()), [b.clone() for b in m.bufs]) for _ in range(3)]


@script
def sets_keep_their_order(compile):
    @compile
    def f(x, s):
        for k in s:
            x = x * 2 + k
        return x, list(s), [type(k).__name__ for k in s]

    @compile
    def made(x, items):
        s = set()
        for i in items:
            s.add(i)
        return s, list(s), x + len(s)

    first, second = {0, 8}, set()
    second.add(8)
    second.add(0)
    out = [f(ones(), s) for s in (first, second, {1}, {True}, {1.0}, first, frozenset([3, 11]), frozenset([11, 3]))]
    for items in ((0, 8, 16), (16, 8, 0), (24, 0), (0, 24)):
        s, order, x = made(ones(), items)
        out += [list(s), order, x]
    return out


@script
def iterators_across_breaks(compile):
    def breaks(x):
        torch._dynamo.graph_break()
        return x

    @compile
    def f(x, r, d):
        log = []
        for i, (t, u) in enumerate(zip(r, reversed(r))):
            x = breaks(x + t * i - u)
            log.append(i)
        for k, v in d.items():
            x = breaks(x + v)
            log.append(k)
        for t in itertools.chain(r, d.values()):
            x = breaks(x * t)
        for t in itertools.islice(r, 1, 4, 2):
            x = breaks(x - t)
        for t in map(lambda v: v + 1, filter(lambda v: v is not None, r)):
            x = breaks(x + t)
        return x, log

    @compile
    def grows(x, r):
        for t in r:
            x = breaks(x + t)
            if len(r) < 4:
                r.append(x)
        return x

    @compile
    def handed_out(x, r, d):
        it, view = iter(r), d.items()
        first = next(it)
        return it, view, reversed(r), enumerate(r), zip(r, d), iter(d.values()), first + x

    out = []
    for n in (2, 3, 1, 2):
        r, d = [ones(value=float(i + 1)) for i in range(n)], {str(i): ones() for i in range(n)}
        out += [f(ones(), r, d), grows(ones(), r), len(r)]
        d = {str(i): ones() for i in range(n)}
        it, view, back, counted, pairs, values, first = handed_out(ones(), r, d)
        r.append(ones(value=9.0))
        out += [type(v).__name__ for v in (it, view, back, counted, pairs, values)]
        out += [list(v) for v in (it, view, back, counted, pairs, values)] + [first]
    return out


@script
def iterators_of_itertools(compile):
    @compile
    def f(x, items):
        it = iter(items)
        head = list(itertools.islice(it, 1, 4, 2))
        after = next(it, "none")
        cycled = [v for _, v in zip(range(5), itertools.cycle(items))]
        pairs = list(itertools.pairwise(items))
        longest = list(itertools.zip_longest(items, [1], fillvalue=0))
        counted = list(zip(itertools.count(1, 2), items))
        acc = list(itertools.accumulate(items))
        firsts = [next(iter(p), None) for p in pairs]
        return head, after, cycled, pairs, longest, counted, acc, firsts, x + len(items)

    @compile
    def g(x, a, b):
        try:
            return [x * p + q for p, q in zip(a, b, strict=True)]
        except ValueError as error:
            return str(error)

    items = [[1, 2, 3], [1, 2, 3, 4, 5, 6], [1], list(range(1, 10))]
    out = [f(ones(), v) for v in items] + [f(ones(), [ones(), ones(value=2.0)])]
    return out + [attempt(g, ones(), v, w) for v in items for w in items]


@script
def iterators_as_objects(compile):
    @compile
    def f(x, r, d):
        it = iter(r)
        kinds = [type(v).__name__ for v in (it, reversed(r), iter(d), iter(d.items()), zip(r), enumerate(r), map(len, r), (v for v in r))]
        return kinds, iter(it) is it, hasattr(it, "send"), isinstance(it, collections.abc.Iterator), bool(it), it.__next__() + x, next(it, None)

    return [f(ones(), [ones() for _ in range(n)], {"a": 1}) for n in (1, 2, 1)]


@script
def unpacking(compile):
    @compile
    def f(x, r):
        a, b = r
        c, *rest = r
        *front, d = r
        return a + x, b, c is a, rest[0] is b, front[0] is a, d is b

    @compile
    def wrong(x, r):
        try:
            a, b = r
        except (ValueError, TypeError) as error:
            return str(error)
        return a + b + x

    out = [f(ones(), r) for r in ([ones(), ones()], (ones(), ones()), [ones(value=3.0), ones()])]
    return out + [wrong(ones(), r) for r in ([ones()], [ones()] * 3, (ones(), ones()), {"a": 1}, 5)]


@script
def sorting(compile):
    nan = float("nan")

    class Key:
        def __init__(self, v, log):
            self.v, self.log = v, log

        def __lt__(self, other):
            self.log.append((self.v, other.v))
            return self.v < other.v

    @compile
    def f(x, values):
        back = list(values)
        back.sort(reverse=True)
        return sorted(values), back, max(values), min(values), sorted(values, key=lambda v: -v), x + 1

    @compile
    def asked(x, values):
        log = []
        order = [k.v for k in sorted([Key(v, log) for v in values], reverse=len(values) % 2 == 0)]
        return order, log, x + 1

    @compile
    def pairs(x, d):
        return [k for k, _ in sorted(d.items())], sorted(d.items(), key=lambda kv: kv[0], reverse=True)[0][0], x + 1

    @compile
    def sees_itself(x, values):
        lengths = []
        values.sort(key=lambda v: lengths.append(len(values)) or v)
        return lengths, x + 1

    @compile
    def spoils(x, values):
        try:
            values.sort(key=lambda v: values.append(1) or v)
        except ValueError as error:
            return str(error), x
        return x

    lists = [[3.0, nan, 1.0, 2.0, nan, 0.5, 9.0, nan, -1.0], [2, 1], [nan, 1.0], list(range(70, 0, -3)), [1.0, True, 1, 0, False]]
    out = [f(ones(), v) for v in lists] + [asked(ones(), v) for v in lists] + [pairs(ones(), {"b": ones(), "a": ones()})]
    for v in lists:
        copy, again = list(v), list(v)
        out += [sees_itself(ones(), copy), copy, spoils(ones(), again), sorted(map(str, again))]
    return [str(v) for v in out]


@script
def sums(compile):
    @compile
    def f(x, values):
        return x * sum(values), sum(values, 1.5), sum(v for v in values)

    @compile
    def mixed(x, values):
        return sum([*values, x, *values]), sum([[v] for v in values], []), sum([x, x], start=x)

    x = torch.ones(1, dtype=torch.float64)
    lists = [[0.1] * 10, [1, 2.5, True], [1e100, 1.0, -1e100], [], [10 ** 20, 0.5], [1e308, 1e308]]
    return [[repr(v) for v in f(x, values)] for values in lists] + [repr(mixed(x, values)) for values in lists[:4]]


@script
def containers_inside_containers(compile):
    class Tree:
        def __init__(self, value, children=()):
            self.value, self.children = value, list(children)

    @compile
    def walk(tree, x):
        todo = collections.deque([tree])
        while todo:
            node = todo.popleft()
            node.value = node.value + x
            for child in node.children:
                todo.append(child)
        return x * 2

    @compile
    def nested(batch, x):
        for sample in batch:
            for name, (a, b) in sample["pairs"].items():
                sample["out"].append(a * b + x)
            sample["count"] = len(sample["out"])
        return [s["out"][-1] for s in batch]

    out = []
    for n in (1, 2, 3, 2):
        tree = Tree(ones(), [Tree(ones(value=2.0), [Tree(ones())] * n) for _ in range(n)])
        out += [walk(tree, ones()), tree.value, tree.children[0].value, tree.children[-1].children[-1].value]
        batch = [{"pairs": {"a": (ones(), ones()), "b": [ones(), ones(value=3.0)]}, "out": []} for _ in range(n)]
        out += [nested(batch, ones()), batch]
    return out


@script
def c_functions_on_containers(compile):
    import bisect
    import functools
    import operator

    Pair = collections.namedtuple("Pair", "a b")

    @compile
    def f(x, r, d, numbers):
        bisect.insort(numbers, 2)
        operator.setitem(d, "set", x)
        operator.delitem(d, "gone")
        pair = Pair(r, d)
        fixed = functools.partial(lambda v, w: (v, w), r)
        got = fixed(d)
        return (pair.a is r, pair.b is d, got[0] is r, got[1] is d, operator.is_(r, pair.a), operator.contains(r, r[0]), operator.concat(r, r)[0] is r[0],
                functools.reduce(lambda s, v: s + v[0], r, x), operator.itemgetter(0)(r) is r[0], pair._replace(b=1).a is r)

    out = []
    for n in (1, 2, 1):
        r, d, numbers = [[ones()] for _ in range(n)], {"gone": 1, "t": ones()}, [1, 3]
        out += [f(ones(), r, d, numbers), numbers, d]
    return out

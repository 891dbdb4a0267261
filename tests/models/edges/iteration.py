"""Iteration over containers that change, and the identity of what lies in them."""

import collections
import itertools

import torch

from . import edge, raised


@edge
def list_that_grows_while_it_is_read(compile, engine):
    def f(x, todo):
        for t in todo:
            x = x + t
            if len(todo) < 4:
                todo.append(t * 2)
        return x

    c, out = compile(f), []
    for _ in range(2):
        todo = [torch.ones(2)]
        out += [c(torch.zeros(2), todo), todo]
    return out


@edge
def list_that_shrinks_while_it_is_read(compile, engine):
    def f(x, items):
        for t in items:
            x = x * 2 + t
            items.remove(t) if isinstance(t, int) else items.pop(0)
        return x

    c = compile(f)
    return [(c(torch.zeros(2), items), items) for items in ([1, 2, 3, 4], [torch.ones(2)] * 3, [1, 2, 3, 4])]


@edge
def views_of_dicts_are_live(compile, engine):
    def f(x, d):
        values, keys, items = d.values(), d.keys(), d.items()
        d["b"] = x * 2
        s = x
        for t in values:
            s = s + t
        return s, len(keys), "b" in keys, [k for k, _ in items]

    c = compile(f)
    return [c(torch.ones(2), {"a": torch.ones(2)}) for _ in range(2)]


@edge
def module_rewrites_its_buffers_while_it_reads_them(compile, engine):
    class Buffers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.buffers_ = [torch.ones(2), torch.ones(2)]

        def forward(self, x):
            for i, b in enumerate(self.buffers_):
                self.buffers_[i] = b + x
                if i == 0:
                    self.buffers_[1] = x * 10
            return sum(self.buffers_)

    m = Buffers()
    c = compile(m)
    return [(c(torch.ones(2)), list(m.buffers_)) for _ in range(2)]


@edge
def dict_that_changes_its_size_while_it_is_read(compile, engine):
    def grows(x, d):
        for k in d:
            d[k + "_"] = x
        return x + 1

    def shrinks(x, d):
        for k, v in d.items():
            x = x + v
            del d[k]
        return x

    def handled(x, s):
        try:
            for k in s:
                s.add(k + 1)
        except RuntimeError as error:
            return x, str(error)

    f, g, h, x = compile(grows), compile(shrinks), compile(handled), torch.zeros(2)
    out = []
    for _ in range(2):
        d, e, s = {"a": torch.ones(2)}, {"a": 1, "b": 2}, {1}
        out += [raised(f, x, d), list(d), raised(g, x, e), list(e), raised(h, x, s), sorted(s)]
    return out


@edge
def items_of_containers_keep_their_identity(compile, engine):
    def f(r):
        d = {"k": r[0], "l": r}
        return ([v is r[0] for v in r], [v is r[i] for i, v in enumerate(r)], [a is b for a, b in zip(r, r)],
                [v is r[0] for v in reversed(r)],
                [v is r[0] for v in [*r]], list(r)[0] is r[0], tuple(r)[0] is r[0], r[:][0] is r[0], r.copy()[0] is r[0],
                (r + r)[1] is r[0],
                max(r, key=len) is r[0], list(filter(None, r))[0] is r[0], next(itertools.chain(r)) is r[0],
                [v is r[0] for v in d.values()],
                [v is r for _, v in d.items()], sorted(r, key=len)[0] is r[0], next(iter(r)) is r[0], (lambda *a: a[0] is r[0])(*r),
                list(map(lambda v: v is r[0], r)), collections.deque(r)[0] is r[0], dict(d)["k"] is r[0], {**d}["l"] is r)

    c = compile(f)
    return [c([[torch.ones(2)]]) for _ in range(2)]


@edge
def writes_through_a_loop_variable(compile, engine):
    def f(results, table, x):
        for r in results:
            r["y"] = x + 1
        for _, r in table.items():
            r.append(x)
        for r, s in zip(results, reversed(results)):
            s["z"] = len(r)
        first, *rest = results
        first["first"] = True
        for r in rest:
            r["rest"] = True
        return [r is results[0] for r in results]

    c, x, out = compile(f), torch.ones(2), []
    for _ in range(2):
        results, table = [{"x": x}, {"x": x}], {"a": [x]}
        out += [c(results, table, x), [list(r) for r in results], len(table["a"])]
    return out


@edge
def abandoned_generators_are_closed(compile, engine):
    log = []

    def halves(x):
        with torch.no_grad():
            yield x * 0.5
            yield x * 0.25

    def closing(x):
        try:
            yield x + 1
            yield x + 2
        finally:
            log.append("closed")

    def leaves(x):
        for a in closing(x):
            break
        log.append("after")
        return a

    def held(x):
        g = closing(x)
        y = next(g)
        log.append("held")
        g = None
        log.append("dropped")
        return y

    def chained(x):
        def outer():
            yield from closing(x)

        return next(outer()) + next(v for v in closing(x))

    def handed_on(x):
        def consume(it):
            y = next(it)
            it = None
            log.append("in callee")
            return y

        return consume(closing(x))

    f, out = compile(lambda x: (x * next(halves(x))).sum()), []
    for _ in range(2):
        y = f(torch.ones(3, requires_grad=True))
        out += [y.requires_grad, torch.is_grad_enabled()]
        torch.set_grad_enabled(True)
    cs = [compile(g) for g in (leaves, held, chained, handed_on)]
    for _ in range(2):
        for c in cs:
            c(torch.ones(3))
            out.append(list(log))
            log.clear()
    return out


@edge
def generators_from_outside(compile, engine):
    def numbers():
        yield from (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)

    g = numbers()

    def f(x):
        return x * next(g)

    c, x = compile(f), torch.ones(1)
    out = [c(x), next(g), c(x), next(g)]
    i = iter([1, 2, 3, 4])
    e = compile(lambda x: x * next(i))
    return out + [e(x), next(i), e(x), raised(e, x), raised(e, x)]


@edge
def context_managers_exit_on_exceptions(compile, engine):
    log = []

    class Manager:
        def __init__(self, swallow):
            self.swallow = swallow

        def __enter__(self):
            log.append("enter")
            return self

        def __exit__(self, kind, error, traceback):
            log.append((kind and kind.__name__, str(error)))
            return self.swallow

    def f(x, swallow):
        with Manager(swallow), torch.no_grad():
            y = x * 2
            raise ValueError("inside")
        return y, torch.is_grad_enabled()

    c, x = compile(f), torch.ones(1, requires_grad=True)
    return [raised(c, x, swallow) for swallow in (True, False, True, False)], log, torch.is_grad_enabled()


@edge
def sorting_with_nan(compile, engine):
    nan = float("nan")
    items = [3.0, nan, 1.0, 2.0, nan, 0.5, 9.0, nan, -1.0]
    c = compile(lambda x, v: (sorted(v), sorted(v, reverse=True), max(v), min(v), x + 1))
    return c(torch.zeros(1), items), c(torch.zeros(1), items[::-1])


@edge
def elements_of_classes_that_iterate_otherwise(compile, engine):
    """A write is undone and made again in the container itself, whatever its class says of its elements."""
    class Row(list):
        def append(self, item):
            list.append(self, item)
            self.appended = getattr(self, "appended", 0) + 1

        def __iter__(self):
            return iter([7, 8])

    class Names(set):
        def __iter__(self):
            return iter("xy")

    class Line(collections.deque):
        def __iter__(self):
            return iter([5])

    class Table(dict):
        def __iter__(self):
            return iter(["none"])

        def keys(self):
            return ["none"]

    def f(x, row, names, line, table, key):
        row.append(x)
        names.add(key)
        line.append(key)
        table[key] = key
        made = Row([key])
        made.append(4)
        return x * 2, row[0], list(row), sum(row), len(row), sorted(names), key in names, line[-1], list(line), list(table), table.get(key), made[1], made

    def contents(row, names, line, table):
        return (list.__repr__(row), sorted(set.__iter__(names)), [collections.deque.__getitem__(line, n) for n in range(len(line))],
                list(dict.items(table)))

    c, arguments, out = compile(f), (Row(), Names(), Line(), Table()), []
    for key in ("a", "b", "a"):
        result = c(torch.ones(1), *arguments, key)
        out += [result[:-1], list.__repr__(result[-1]), contents(*arguments)]
    return out


@edge
def iterators_over_what_the_program_wrote(compile, engine):
    """Nothing is read ahead where reading runs the program's code."""
    class Sequence:
        def __init__(self, n):
            self.n, self.log = n, []

        def __getitem__(self, i):
            self.log.append(i)
            if i >= self.n:
                raise IndexError
            return i * 10

        def __len__(self):
            return self.n

    class Row(list):
        def __iter__(self):
            return iter([7, 8])

    class Step:
        def __float__(self):
            return 2.0

        def __radd__(self, other):
            log.append(other)
            return other + 2

    def all_of(x, iterator):
        return x * 2, list(iterator)

    def first(x, iterator):
        for item in iterator:
            return x * 2, item
        return x, None

    log, out, x = [], [], torch.ones(2)
    f, g = compile(all_of), compile(first)
    for n in (3, 3, 4):
        a, b = Sequence(n), Sequence(n)
        forwards, backwards = iter(a), reversed(b)
        out += [g(x, backwards), g(x, forwards), f(x, backwards), f(x, forwards), a.log, b.log]
        counted = itertools.count(n, Step())
        out += [g(x, counted), g(x, counted), g(x, counted), list(log)]
        out += [f(x, list.__iter__(Row([1, 2]))), g(x, enumerate(list.__iter__(Row([1, 2])))), f(x, zip(reversed(Sequence(2)), "ab"))]
    return out


@edge
def variables_of_a_frame_end_in_their_order(compile, engine):
    log = []

    def noting(x, n):
        try:
            yield x * n
            yield x
        finally:
            log.append(n)

    def quiet(x):
        with torch.no_grad():
            yield x * 0.5
            yield x * 0.25

    def of_a_frame(x):
        first = noting(x, 1)
        y = next(first)
        second = (t for t in noting(x, 2))
        y = y + next(second)
        text = f"{x.sum().item():.3f}"
        third = noting(x, 3)
        return y + next(third) + len(text)

    def exchanged(x):
        first, second, third = noting(x, 1), noting(x, 2), [noting(x, 4), noting(x, 5)]
        y = next(first) + next(second) + sum(next(g) for g in third)
        first, second = second, first
        return y + 1

    def modes(x):
        first = quiet(x)
        y = next(first)
        text = f"{x.sum().item():.3f}"
        second = quiet(x)
        return y + next(second) + len(text)

    out = []
    for f in map(compile, (of_a_frame, exchanged, modes)):
        for _ in range(3):
            out += [f(torch.ones(2)), list(log), torch.is_grad_enabled()]
            torch.set_grad_enabled(True)
            log.clear()
    return out


@edge
def containers_that_are_read_while_they_are_extended(compile, engine):
    def of_list(x, y):
        y.extend(y[-1] + 1 for _ in range(3))
        y += (y[-1] * len(y) for _ in range(2))
        y.extend(map(lambda t: y[-1] + t, (x, x)))
        return torch.stack(y)

    def of_deque(x, y):
        d = collections.deque(y, 4)
        d.extend(d[-1] + len(d) for _ in range(3))
        d.extendleft(d[0] * 2 for _ in range(2))
        return torch.stack(list(d))

    def of_dict(x, y):
        d, s = {0: y[0]}, {0}
        d.update((len(d), d[len(d) - 1] + 1) for _ in range(3))
        s.update((len(s) for _ in range(3)), (10 * len(s) for _ in range(2)))
        return torch.stack(list(d.values())), sorted(s)

    def of_ordered(x, y):
        d = collections.OrderedDict(a=y[0])
        d.update(((str(len(d)), next(reversed(d.values())) + 1) for _ in range(3)), last=x)
        return list(d), torch.stack(list(d.values()))

    def half_way(x, y):
        def values():
            yield x + 1
            raise KeyError(len(y))
        try:
            y.extend(values())
        except KeyError as error:
            return x + len(y) + 10 * error.args[0]

    out = []
    for f in (of_list, of_deque, of_dict, of_ordered, half_way):
        c = compile(f)
        for _ in range(2):
            outside = [torch.ones(2), torch.full((2,), 3.0)]
            out += [c(torch.full((2,), 2.0), outside), outside]
    return out


@edge
def iterators_over_dicts_and_sets_go_on_after_breaks(compile, engine):
    """Writes to what they go through are seen, or are errors; writes to other containers do not matter."""
    class Holder:
        pass

    def others(x, o, d, s):
        out = {}
        for k, v in d.items():
            torch._dynamo.graph_break()
            o.b, out[k] = v, x + v
            s.add(k)
        return out, vars(o), s

    def values(x, o, d, s):
        out = []
        for k, v in d.items():
            torch._dynamo.graph_break()
            d["c"] = v + 10
            out.append(x + v)
        return out

    def attributes(x, o, d, s):
        out = []
        for k, v in vars(o).items():
            torch._dynamo.graph_break()
            o.b = v + 5
            out.append(x + v)
        return out

    def keys(x, o, d, s):
        for k in d:
            torch._dynamo.graph_break()
            d[k + "more"] = 1
        return x

    def elements(x, o, d, s):
        for k in s:
            torch._dynamo.graph_break()
            s.add(k + 1)
            x = x + k
        return x

    def shrinks(x, o, d, s):
        for k in reversed(d):
            torch._dynamo.graph_break()
            x = x + d.pop("b")
        return x

    results = []
    for f in (others, values, attributes, keys, elements, shrinks):
        c = compile(f)
        for _ in range(2):
            o, d, s = Holder(), {"a": 1, "b": 2, "c": 3}, {7}
            o.a, o.b = 1, 2
            results.append((f.__name__, raised(c, torch.ones(2), o, d, s), vars(o), d, sorted(map(str, s))))
    return results


@edge
def deques_of_other_longest_lengths(compile, engine):
    """How long a deque may become decides what a write to it drops, however long it is."""
    def put(x, d):
        d.append(3.0)
        return x + len(d), d[0]

    def taken(x, d):
        d.appendleft(0.5)
        return d.pop(), x + d[0]

    results = []
    for f in (put, taken):
        c = compile(f)
        for longest in (2, 5, 2, None, 7, 3):
            d = collections.deque([1.0, 2.0], maxlen=longest)
            results.append((f.__name__, longest, raised(c, torch.ones(1), d), list(d)))
    return results

"""Containers read, iterated, compared and written; what a print shows of them."""

import collections
import dataclasses
import enum
import itertools
import warnings
from typing import NamedTuple

import torch


class Point(NamedTuple):
    x: object
    y: object = 2.0


@dataclasses.dataclass
class Item:
    v: object
    tags: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Key:
    name: str
    n: int = 1


class Mode(enum.Enum):
    A = 1
    B = 2

    @property
    def factor(self):
        return self.value * 2.0


class Plain:
    pass


def world_nested():
    def f(d, items, pair):
        total = d["x"] * pair[0] + items[0]
        for k, v in d.items():
            if isinstance(v, (int, float)):
                total = total + v
        for i, v in enumerate(items):
            total = total * (i + 1) + (v if isinstance(v, torch.Tensor) else float(v))
        return total, list(d), len(items), {**d}, [*items], pair
    return f, ({"x": torch.ones(2), "a": 1, "b": 2.5, "n": {"k": [1]}}, [torch.zeros(2), 2, 3.0], (2.0, "s"))


def world_written():
    d, items, s, counts = {"a": 1, "b": [1]}, [1, 2], {3, 1}, collections.defaultdict(int)

    def f(x):
        d["a"] += 1
        d["new"] = x.shape[0]
        d.setdefault("list", []).append(len(d))
        v = d.pop("b")
        d["b"] = v
        items.append(items[-1] + 1)
        items[0] = x * 2
        s.add(len(items))
        counts["calls"] += 1
        return x + len(s), d["b"], items[1:]
    return f, (torch.ones(2),)


def world_sets():
    def f(x, s, t):
        for k in s:
            x = x * 2 + hash(k) % 7
        return x, sorted(map(str, s | t)), len(s & t), 1 in s, s == t, s <= t, [type(k).__name__ for k in s]
    return f, (torch.ones(1), {8, 0, 16}, {1, 2})


def world_dict_order():
    def f(x, d):
        for k, v in d.items():
            x = x * 2 + (v if isinstance(v, (int, float)) else 1)
        first = next(iter(d), None)
        return x, first, list(d.values()), [type(k).__name__ for k in d], d.get(1), d.get("a", 5), tuple(reversed(d))
    return f, (torch.ones(1), {"a": 1, "b": 2, 1: 3, 2.5: 4})


def world_objects():
    items = [Item(1.0), Item(2, ["t"])]
    table = {Key("a"): 1.0, Key("b", 2): 2.0, ("t", Mode.A): 3.0}

    def f(x, p, mode):
        y = x * sum(i.v for i in items) + table[Key("a")] + table.get(("t", mode), 0.5)
        if items == [Item(1.0), Item(2, ["t"])]:
            y = y + 10
        items[-1].tags.append(len(items[-1].tags))
        return y * mode.factor, p._replace(y=items[0].v), p.x, mode is Mode.A, mode.name, Item(x, [1]), [i for i in items]
    return f, (torch.ones(2), Point(1.0), Mode.A)


def world_identity_in_containers():
    def f(rows, d):
        for r in rows:
            r["n"] = r.get("n", 0) + 1
        same = [r is rows[0] for r in rows]
        for k, v in d.items():
            v.append(k)
        last = rows[-1]
        rows.append(last)
        return same, last is rows[0], [*rows], rows[0]["x"] * 2
    return f, ([{"x": torch.ones(2)}, {"x": torch.zeros(2)}], {"a": [torch.ones(1)], "b": []})


def world_growing():
    def f(x, todo, d):
        for t in todo:
            x = x + t
            if len(todo) < 4:
                todo.append(t * 2)
        view = d.values()
        d["b"] = x * 2
        return x, len(view), [v for v in view], todo
    return f, (torch.ones(2), [torch.ones(2)], {"a": torch.ones(2)})


def world_changing_size():
    def f(x, d):
        try:
            for k in d:
                if k in ("a", "n"):
                    d[k + "_"] = x
        except RuntimeError as error:
            return x, str(error)
        return x + len(d), None
    return f, (torch.ones(2), {"b": 1, "c": 2})


def world_iterators():
    def f(x, i, items):
        y = x * next(i, 100)
        z = zip(items, itertools.count(1))
        return y, [(a, n) for a, n in z], list(itertools.accumulate(items)), list(map(float, items)), max(items), sorted(items, reverse=True), next(i, None)
    return f, (torch.ones(1), iter([1, 2, 3, 4, 5, 6, 7, 8, 9]), [3, 1.0, 2])


def world_generators():
    log = []

    def halves(x):
        try:
            with torch.no_grad():
                yield x * 0.5
                yield x * 0.25
        finally:
            log.append("closed")

    def f(x):
        for h in halves(x):
            break
        y = next(halves(x))
        log.append("end")
        return h, y, x * 2, sum(v.sum() for v in halves(x)), torch.is_grad_enabled(), list(log[-3:])
    return f, (torch.ones(2, requires_grad=True),)


def world_prints():
    state = {"step": 0, "items": [1]}

    def f(x, verbose):
        print("before", state, x.shape)
        state["step"] += 1
        if verbose:
            print(f"{state['step']:>3} {verbose!r}", state["items"], sep="|")
        state["items"].append(state["step"])
        print("after %s" % state)
        warnings.warn(f"step {state['step']}")
        return x * state["step"]
    return f, (torch.ones(2), True)


def world_warnings():
    def f(x):
        try:
            warnings.warn("careful", UserWarning)
        except UserWarning as error:
            return x + 1, str(error)
        return x - 1, None
    return f, (torch.ones(2),)


def world_exceptions():
    log = []

    class Refused(ValueError):
        pass

    def check(x, limit):
        if limit < 1:
            raise Refused("too small", limit)
        return x / limit

    def f(x, limit, d):
        log.append("enter")
        try:
            y = check(x, limit)
            y = y * d["k"]
        except (Refused, KeyError) as error:
            log.append(type(error).__name__)
            y, note = x, error.args
        else:
            note = None
        finally:
            log.append("leave")
        if limit > 5:
            raise RuntimeError(f"limit {limit}") from ValueError("cause")
        return y, note, log[-2:]
    return f, (torch.ones(2), 2, {"k": 1.5})


def world_context_managers():
    log = []

    class Manager:
        swallow = False

        def __init__(self, name):
            self.name = name

        def __enter__(self):
            log.append(("enter", self.name))
            return self.name

        def __exit__(self, kind, error, traceback):
            log.append(("exit", self.name, kind and kind.__name__))
            return self.swallow

    m = Manager("m")

    def f(x, fail):
        y = x
        with m as name, torch.no_grad():
            y = x * len(name)
            if fail:
                raise ValueError("inside")
            y = y + 1
        return y, torch.is_grad_enabled(), len(log)
    return f, (torch.ones(2, requires_grad=True), False)


def world_deletes():
    o, d = Plain(), {"a": 1, "b": 2}
    o.a, o.b, o.c = 1, [2], 3.0

    def f(x):
        v = o.a
        del o.a
        o.a = v + 1
        try:
            del d["c"]
        except KeyError as error:
            note = repr(error)
        else:
            note = None
        d["c"] = d.pop("a") + 1
        d["a"] = 0
        return x * v, list(vars(o)), note
    return f, (torch.ones(2),)


def world_keys_made():
    registry, seen = {}, set()

    def f(x):
        o = Plain()
        o.n = len(registry)
        registry[o] = o.n
        registry["last"] = o
        seen.add(("k", o.n))
        return x + 1, o, registry[o]
    return f, (torch.ones(1),)


def world_deque():
    q = collections.deque([1, 2], maxlen=3)
    counts = collections.Counter("aab")

    def f(x):
        return x + sum(v for v in q if isinstance(v, int)), len(q), counts["a"], counts.most_common(1), q[0]
    return f, (torch.ones(1),)


def world_same_value():
    o = Plain()
    o.ready, o.last, o.items = True, None, [1]
    done = True

    def f(x):
        nonlocal done
        o.ready, o.last, done = True, None, True
        o.items[0] = 1
        return x + 1
    return f, (torch.ones(2),)

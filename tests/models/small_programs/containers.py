"""dict, list, set, tuple, collections, dataclasses as containers: fresh ones, ones from outside, mutated, aliased."""

import collections
import copy
import dataclasses
from typing import NamedTuple

import torch

from . import script


def rows(*shape):
    return torch.randn(*(shape or (4, 5)))


@script
def list_methods(compile):
    @compile
    def f(x, xs):
        ys = [3, 1, 2]
        ys.sort()
        ys.sort(key=lambda v: -v)
        ys.insert(1, 9)
        ys.extend(i for i in range(2))
        ys += (5,)
        ys *= 2
        popped = ys.pop(), ys.pop(0)
        ys.remove(9)
        ys.reverse()
        xs.append(x)
        xs[0] = x * 2
        return ys, popped, ys.index(1), ys.count(0), ys.copy() == ys, xs[-1], [1] + [2], [1, 2] < [1, 3], 3 in ys

    xs = [rows()]
    out = f(rows(), xs), f(rows(), xs)
    return out, xs


@script
def dict_methods(compile):
    @compile
    def f(x, d):
        e = dict(a=1, b=x)
        e.update({"c": 3}, d=4)
        e.setdefault("z", []).append(1)
        e.setdefault("z", []).append(2)
        popped = e.pop("a"), e.pop("nope", None)
        merged = e | {"m": 1}
        e |= {"n": 2}
        d["seen"] = d.get("seen", 0) + 1
        d["last"] = x
        if "once" in d:
            del d["once"]
        return e, popped, list(merged), sorted(d), dict.fromkeys("ab", 0), [k for k, v in e.items() if v is x], len(e), d.keys() & {"seen"}

    d = {"once": 1}
    return f(rows(), d), f(rows(), d), f(rows(), d), d


@script
def set_methods(compile):
    @compile
    def f(x, s):
        t = {1, 2, 3}
        t.add(4)
        t.discard(1)
        t |= {9}
        t -= {2}
        s.add(x.shape[0])
        return sorted(t & {3, 4, 5}), sorted(t ^ {3}), t <= {3, 4, 9}, sorted(s), frozenset([1, 2]) == {1, 2}, t.isdisjoint([7]), sorted(t.union([0], [8])), x + len(s)

    s = {100}
    return f(rows(4, 2), s), f(rows(3, 2), s), sorted(s)


@script
def ordered_dicts(compile):
    @compile
    def f(x, od):
        od["new"] = x
        od.move_to_end("a")
        mine = collections.OrderedDict([("p", 1), ("q", 2)])
        mine.move_to_end("p")
        mine["r"] = 3
        return list(od), list(mine.items()), mine.popitem(last=False), list(reversed(mine)), mine == collections.OrderedDict(p=1, r=3)

    od = collections.OrderedDict(a=1, b=2)
    return f(rows(), od), list(od), f(rows(), od), list(od)


@script
def default_dicts_and_counters(compile):
    @compile
    def f(x, words, outside):
        groups = collections.defaultdict(list)
        for w in words:
            groups[len(w)].append(w)
            outside[w] += 1
        count = collections.Counter(words)
        count.update(["a"])
        chain = collections.ChainMap({"a": 1}, {"b": 2})
        return dict(groups), sorted(count.items()), count.most_common(1), chain["b"], x + count["a"]

    outside = collections.defaultdict(int)
    x = rows()
    return f(x, ["a", "bb", "a"], outside), f(x, ["cc"], outside), dict(outside)


@script
def windows_of_frames(compile):
    """Deques from outside that are written to and gone through in the same call."""
    frames, rest = collections.deque(maxlen=3), collections.deque([1, 2])

    @compile
    def push(x):
        frames.append(x)
        rest.rotate(1)
        rest.appendleft(len(rest))
        stacked = torch.stack(list(frames)).sum(0) + sum(frames) * rest[0]
        return stacked, [2 * v for v in rest], tuple(reversed(list(frames))), 7 in rest, 1 in rest, max(rest), sum(v.sum() for v in frames)

    @compile
    def changes_meanwhile(x):
        seen = []
        try:
            for v in rest:
                seen.append(v * x)
                rest.append(v)
        except RuntimeError as error:
            seen.append(str(error))
        return seen

    @compile
    def part(x):
        rest.append(3)
        ahead = iter(rest)
        x = x * next(ahead)
        print(end="")
        return x, next(ahead), list(ahead)

    out = [push(torch.randn(2)) for _ in range(5)] + [part(torch.ones(2)) for _ in range(2)]
    return out, changes_meanwhile(torch.ones(1)), list(frames), list(rest)


@script
def deques(compile):
    @compile
    def f(x, window):
        q = collections.deque([1, 2, 3], maxlen=3)
        q.append(4)
        q.appendleft(0)
        q.rotate(1)
        window.append(x)
        return list(q), q.pop(), q.popleft(), len(window), sum(window), q.maxlen

    window = collections.deque(maxlen=2)
    return [f(rows(), window) for _ in range(4)], list(window)


class Point(NamedTuple):
    x: torch.Tensor
    y: int = 3

    def moved(self, by):
        return self._replace(x=self.x + by)


@script
def named_tuples(compile):
    Pair = collections.namedtuple("Pair", "a b", defaults=[7])

    @compile
    def f(x, p):
        q = Pair(x)
        a, b = q
        r = p.moved(2)
        return q, a + b, r, r.y, p._asdict()["y"], Point._fields, p == p, q[1], len(p), Pair(a=1, b=2)._replace(a=5), isinstance(q, tuple)

    p = Point(rows())
    return f(rows(), p), f(rows(), Point(rows(), 8))


@dataclasses.dataclass
class Config:
    width: int = 5
    names: list = dataclasses.field(default_factory=list)
    scale: float = dataclasses.field(default=2.0, repr=False)

    def __post_init__(self):
        self.half = self.width // 2


@dataclasses.dataclass(frozen=True, order=True)
class Key:
    a: int
    b: str = "x"


@dataclasses.dataclass(slots=True)
class Slotted:
    value: torch.Tensor
    count: int = 0


@script
def dataclass_instances(compile):
    @compile
    def f(x, config):
        mine = Config(width=3, names=["n"])
        mine.names.append("m")
        config.names.append(x.shape[0])
        config.width += 1
        slot = Slotted(x)
        slot.count += 2
        other = dataclasses.replace(mine, width=8)
        return (x * config.scale + mine.half, mine, other.width, Key(1) < Key(2), {Key(1): "v"}[Key(1)], [f.name for f in dataclasses.fields(mine)],
                slot.value + slot.count, Config() == Config(), repr(Key(3)), dataclasses.asdict(Key(4)), dataclasses.is_dataclass(mine))

    config = Config()
    x = rows()
    out = f(x, config), f(x, config)
    return [(o[0], vars(o[1]), *o[2:]) for o in out], vars(config)


@script
def dataclass_returned_and_passed(compile):
    @compile
    def make(x):
        return Slotted(x * 2, 3)

    @compile
    def use(s):
        s.count += 1
        s.value = s.value + s.count
        return s.value

    s = make(rows())
    return use(s), use(s), s.count, s.value


@script
def nested_structures(compile):
    @compile
    def f(tree):
        def walk(t):
            if isinstance(t, torch.Tensor):
                return t * 2
            if isinstance(t, dict):
                return {k: walk(v) for k, v in t.items()}
            if isinstance(t, (list, tuple)):
                return type(t)(walk(v) for v in t)
            return t
        return walk(tree)

    return f({"a": rows(), "b": [rows(), (1, rows())]}), f({"a": rows(), "b": [2, (1, "s")]})


@script
def pytrees(compile):
    import torch.utils._pytree as pytree

    @compile
    def f(tree):
        leaves, spec = pytree.tree_flatten(tree)
        return pytree.tree_unflatten([leaf * 2 for leaf in leaves], spec), pytree.tree_map(lambda t: t + 1, tree), len(leaves)

    return f({"a": rows(), "b": [rows(), (rows(),)]})


@script
def aliased_containers(compile):
    @compile
    def f(a, b, x):
        a.append(x)
        return len(b), b[-1] if b else None, a is b

    shared, other = [], [rows()]
    x = rows()
    out = [f(shared, other, x), f(shared, shared, x), f([], [], x)]
    return out, len(shared), len(other)


@script
def aliased_results(compile):
    @compile
    def f(x):
        inner = [x]
        pair = {"a": inner, "b": inner}
        loop = []
        loop.append(loop)
        return pair, (inner, inner), loop

    p, (i, j), loop = f(rows())
    return p["a"] is p["b"], i is j, i is p["a"], loop[0] is loop, p


@script
def object_graph_from_outside(compile):
    class Node:
        def __init__(self, value, child=None):
            self.value, self.child, self.seen = value, child, 0

    @compile
    def f(node, x):
        while node is not None:
            node.seen += 1
            x = x + node.value
            node = node.child
        return x

    chain = Node(1, Node(2, Node(3)))
    x = rows()
    out = [f(chain, x)]
    chain.child.child = None
    out.append(f(chain, x))
    chain.child = Node(torch.ones(5), chain.child)
    out.append(f(chain, x))
    return out, chain.seen, chain.child.child.seen


@script
def copies(compile):
    @compile
    def f(x, config):
        mine = copy.deepcopy(config)
        mine["n"].append(4)
        shallow = copy.copy(config)
        shallow["k"] = 1
        return x + len(mine["n"]), mine, shallow

    config = {"n": [1, 2], "t": (1, 2)}
    return f(rows(), config), config


@script
def dict_of_tensors_updated_in_place(compile):
    state = {"sum": torch.zeros(5), "n": 0}

    @compile
    def f(x):
        state["sum"] += x.sum(0)
        state["n"] += x.shape[0]
        return state["sum"] / state["n"]

    before = state["sum"]
    return [f(rows()) for _ in range(3)], state["n"], state["sum"], before is state["sum"]


@script
def caches_that_grow(compile):
    cache = {}

    @compile
    def f(x, key):
        if key not in cache:
            cache[key] = torch.arange(5.0) * len(cache)
        return x + cache[key]

    x = rows()
    return [f(x, k) for k in ("a", "b", "a", "c")], cache


@script
def lists_of_tensors_change_length(compile):
    @compile
    def f(xs):
        return sum(xs), torch.stack(list(xs)).mean(0), len(xs)

    return [f([rows() for _ in range(n)]) for n in (1, 3, 2, 3)], f(tuple(rows() for _ in range(2)))


@script
def keys_of_many_kinds(compile):
    @compile
    def f(x, table):
        table[(1, "a")] = x
        table[None] = 1
        table[3.5] = "f"
        table[torch.float32] = "dtype"
        del table["old"]
        return sorted(map(str, table)), table[(1, "a")] + 1, (1, "a") in table

    t = {"old": 0, True: 1}
    out = f(rows(), t)
    t["old"] = 1
    return out, f(rows(), t), sorted(map(str, t))


@script
def tensors_as_dict_keys_and_in_sets(compile):
    @compile
    def f(x, y):
        names = {x: "x", y: "y"}
        unique = {x, y, x}
        return names[x], len(unique), x in names, [names[t] for t in (y, x)]

    return f(rows(), rows())


@script
def subclassed_containers(compile):
    class Stack(list):
        def push(self, v):
            self.append(v)
            return self

    class Attr(dict):
        __getattr__ = dict.__getitem__

        def __missing__(self, key):
            return key + "?"

    @compile
    def f(x, stack, attr):
        stack.push(x).push(x * 2)
        attr["y"] = x
        return stack[-1] + attr.y, attr["zz"], len(stack), isinstance(stack, list), Attr(a=1).a, list(Stack([1, 2]).push(3))

    stack, attr = Stack(), Attr()
    return f(rows(), stack, attr), f(rows(), stack, attr), len(stack), sorted(attr)


@script
def slots_of_sets(compile):
    @compile
    def f(x, shared):
        left, written = {24, 0, 8, 1}, {3, 24, 16, 8, 1, 0, 9}
        left.discard(0)
        left.add(16)
        shared.discard(8)
        shared.update({40, 8, 48})
        order = list(shared)
        shared.intersection_update({8, 0, 16, 24})
        return x + 1, list(left), left, list(left | written), list(written ^ {5, 13, 24}), order, frozenset(written) - {9}

    results = []
    for _ in range(2):
        shared = {8, 0, 16, 24}
        x, listed, left, *rest, frozen = f(rows(), shared)
        results.append((x, listed, list(left), list(left | {0, 32}), rest, list(frozen), list(shared), list(shared | {32, 40, 56})))
    return results


@script
def ordered_dicts_that_hear_of_what_is_set(compile):
    heard = []

    class Heard(collections.OrderedDict):
        def __setitem__(self, key, value):
            heard.append(key)
            super().__setitem__(key, value)

    def f(x, old):
        made = Heard()
        made["a"], made["b"] = x.sin(), x + 1
        made.move_to_end("a")
        old["c"] = x * 2
        old.move_to_end("c", last=False)
        return made

    g, kept = compile(f), Heard(z=1)
    results = [g(rows(2), kept) for _ in range(3)]
    return [list(r) for r in results], list(kept), heard

"""Writes to what existed before, calls that say something, and objects made and handed out; the state changes between the calls."""

import array
import collections
import copy
import dataclasses
import functools
import gc
import logging
import sys
import threading
import types
import warnings
import weakref

import torch

from . import script


class Thing:
    pass


class Slotted:
    __slots__ = ("last", "count")


def ones(n=3):
    return torch.ones(n)


# --- every write is made, whether or not it leaves in place what was there --------------------------------------------------


@script
def write_of_the_same_value(compile):
    s, slots = Thing(), Slotted()
    s.ready, slots.last, seen = True, None, []

    @compile
    def f(x):
        s.ready = True
        slots.last = None
        return x + 1

    for ready in (True, False, 1, "no"):
        s.ready = slots.last = ready
        f(ones())
        seen.append((s.ready, slots.last))
    return seen


@script
def module_flag_of_the_same_value(compile):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(2, 2)
            self.state, self.stage, self.seen = None, "new", 0

        def forward(self, x):
            y = self.lin(x)
            self.state = y.detach() if self.training else None
            self.stage = "done"
            self.seen = self.seen + 1
            return y

    m = M().eval()
    f = compile(m)
    out = []
    for training in (False, True, False, True, False):
        m.train(training)
        m.stage = "epoch"
        f(torch.ones(1, 2))
        out.append((m.state is None, m.stage, m.seen))
    return out


FLAG, COUNT = True, 0


@script
def global_and_nonlocal_of_the_same_value(compile):
    global FLAG, COUNT
    FLAG, COUNT = True, 0
    n = 5

    @compile
    def f(x):
        global FLAG, COUNT
        nonlocal n
        FLAG = True
        COUNT += 2
        n = 5
        return x * n

    seen = []
    for value in (True, False, None):
        FLAG, n = value, 7
        f(ones())
        seen.append((FLAG, n, COUNT))
    COUNT = 40
    f(ones())
    return seen, COUNT


@script
def module_attributes(compile):
    module = types.ModuleType("settings")
    module.scale, module.used = 2.0, False

    @compile
    def f(x):
        module.used = True
        module.calls = getattr(module, "calls", 0) + 1
        return x * module.scale

    out = [f(ones())]
    module.used, module.scale = False, 3.0
    out.append(f(ones()))
    del module.calls
    out.append(f(ones()))
    return out, module.used, module.calls


@script
def class_attributes(compile):
    class C:
        count, last = 0, None

    @compile
    def f(x):
        C.count += 1
        C.last = x.shape
        return x + C.count

    out = [f(ones()), f(ones())]
    C.count = 10
    return out, f(ones(2)), C.count, C.last


# --- keys: order, identity, absence ----------------------------------------------------------------------------------------


@script
def least_recently_used(compile):
    obj, lst = Thing(), [1]
    cache = {"a": 1, "b": 2, "c": obj, "l": lst}

    @compile
    def f(x):
        v = cache.pop("a")
        cache["a"] = v
        return x + v

    out = [f(ones()), cache["c"] is obj, cache["l"] is lst, list(cache)]
    cache["b"], cache["new"] = 99, 7
    out += [f(ones()), cache["b"], list(cache), cache["c"] is obj]
    return out


@script
def attribute_deleted_and_set(compile):
    s, lst = Thing(), [1]
    s.a, s.b, s.c = 1, lst, 5

    @compile
    def f(x):
        v = s.a
        del s.a
        s.a = v + 1
        return x + v

    out = [f(ones()), s.b is lst, list(vars(s))]
    s.c = 6
    out += [f(ones()), s.c, list(vars(s)), s.b is lst]
    return out


@script
def ordered_dict_moves(compile):
    od, keep = collections.OrderedDict(a=1, b=[2], c=3), None
    keep = od["b"]

    @compile
    def f(x, key):
        od.move_to_end(key)
        od["new"] = x.shape[0]
        od.move_to_end("c", last=False)
        return x + od[key][0] if key == "b" else x

    f(ones(), "b")
    out = [list(od.items())]
    od["z"] = 4
    f(ones(2), "a")
    out.append(list(od.items()))
    first = od.popitem(last=False)
    od["c"] = 8
    f(ones(2), "a")
    return out, first, list(od.items()), od["b"] is keep


@script
def keys_made_and_deleted(compile):
    d = {"x": 1, "keep": [1]}

    @compile
    def f(x):
        d["tmp"] = x * 2
        y = d["tmp"] + 1
        del d["tmp"]
        d["n"] = len(d)
        d["first"] = next(iter(d))
        return y

    out = [f(ones()), list(d.items())]
    d["tmp"] = "mine"
    d.pop("x")
    out += [f(ones()), list(d.items())]
    d.clear()
    return out, f(ones()), list(d.items())


@script
def dict_methods(compile):
    d = {"a": 1, "b": 2, "c": 3}

    @compile
    def f(x, k):
        nonlocal d
        out = [d.pop("zz", None), d.setdefault(k, k), len(d)]
        d.update(a=5, q=k)
        d.update([("r", 1)])
        d |= {"s": 2}
        out.append(d.popitem())
        if k == "drop":
            d.clear()
            d["only"] = k
        return x + len(d), out, "a" in d, list(d)

    out = [f(ones(), "k1"), dict(d)]
    d["s"] = 9
    out += [f(ones(), "k2"), dict(d)]
    out += [f(ones(), "drop"), dict(d), f(ones(), "k3"), dict(d)]
    return out


@script
def missing_attribute_is_deleted(compile):
    s, log = Thing(), []
    s.a = 1

    @compile
    def f(x):
        try:
            del s.a
        except AttributeError as error:
            log.append((str(error), error.name))
        return x + 1

    out = [f(ones()), f(ones())]
    s.a = 2
    out.append(f(ones()))
    return out, log, vars(s)


@script
def missing_things_are_deleted(compile):
    s, d, module, slots = Thing(), {}, types.ModuleType("m"), Slotted()

    def delete(x, what):
        if what == "attribute":
            del s.a
        elif what == "key":
            del d["k"]
        elif what == "module":
            del module.k
        elif what == "slot":
            del slots.last
        return x + 1

    f, out = compile(delete), []
    for what in ("attribute", "key", "module", "slot"):
        s.a, d["k"], module.k, slots.last = 1, 1, 1, 1
        for _ in range(3):
            try:
                out.append(f(ones(), what))
            except Exception as error:
                out.append((type(error).__name__, str(error)))
    return out


@script
def missing_global_is_deleted(compile):
    def f(x):
        global PASSING
        del PASSING
        return x

    g, out = compile(f), []
    globals()["PASSING"] = 1
    for _ in range(2):
        try:
            out.append(g(ones()))
        except NameError as error:
            out.append(str(error))
    return out


@script
def made_objects_as_keys(compile):
    registry, handles, table = {}, set(), {}

    @compile
    def f(x, name):
        h = Thing()
        registry[h] = name
        handles.add(h)
        table[name, h] = h
        return h, x + 1

    out = []
    for name in ("a", "b", "a"):
        h, _ = f(ones(), name)
        out.append((h in registry, h in handles, table[name, h] is h, len(registry), len(handles), len(table), registry[h]))
    return out


@dataclasses.dataclass(frozen=True)
class Key:
    name: str
    n: int


@script
def keys_that_compare_by_value(compile):
    table = {Key("a", 1): [1]}

    @compile
    def f(x, n):
        table[Key("a", n)] = n
        table.setdefault(Key("b", n), []).append(n)
        return x + len(table)

    return [f(ones(), n) for n in (1, 2, 1)], table


# --- containers ------------------------------------------------------------------------------------------------------------


@script
def growing_history(compile):
    history, alias = [Thing()], None
    alias, first = history, history[0]

    @compile
    def f(x):
        history.append(x * 2)
        history.append("s")
        return x + 1

    for _ in range(12):
        f(ones())
    history.insert(0, 3)
    f(ones())
    return alias is history, history[1] is first, len(history), history[-2], [type(h).__name__ for h in history]


@script
def list_methods(compile):
    todo = [3, 1, 2]

    @compile
    def f(x, k):
        nonlocal todo
        todo.append(k)
        todo.insert(1, k * 10)
        n, last = len(todo), todo[-1]
        todo.sort()
        popped = todo.pop(0), todo.pop()
        todo.remove(k * 10) if k * 10 in todo else None
        todo.reverse()
        todo.extend(i for i in range(2))
        todo[0] = k
        todo[1:2] = [7, 8]
        del todo[-1]
        todo += (k,)
        return x + n, last, popped, sum(todo)

    out = [f(ones(), 4), list(todo)]
    todo[:] = [100, 5]
    out += [f(ones(), 5), list(todo), f(ones(), 6), list(todo)]
    todo.clear()
    for _ in range(2):
        try:
            out.append(f(ones(), 1))
        except Exception as error:
            out.append(str(error))
    return out, todo


@script
def blind_appends_are_read_later(compile):
    a, b = [1, 2], [ones(), ones()]

    @compile
    def f(x):
        a.append(3)
        b.append(x)
        total = sum(a)
        a.clear()
        a.append(total)
        return x * total + b[0] + b[-1], len(b), [t.shape[0] for t in b]

    out = [f(ones())]
    a[:] = [5, 5]
    b[0] = ones() * 4
    out.append(f(ones()))
    a.append(1)
    del b[0]
    out.append(f(ones()))
    return out, a, b


@script
def list_repeated_in_place(compile):
    items = [1, 2]

    @compile
    def f(x):
        nonlocal items
        items *= 2
        return x

    f(ones())
    items[:] = [3]
    f(ones())
    return items


@script
def sets_of_the_program(compile):
    seen, tags = {1, 2}, set()

    @compile
    def f(x, k):
        seen.add(k)
        seen.discard(1)
        tags.update([k, "t"], (k + 1,))
        tags.symmetric_difference_update({k})
        seen.__ior__({50})
        return x + len(seen), k in tags

    out = [f(ones(), 3), sorted(seen), sorted(map(str, tags))]
    seen.add(1), seen.discard(50), tags.clear()
    out += [f(ones(), 3), sorted(seen), sorted(map(str, tags))]
    out += [f(ones(), 4), sorted(seen), sorted(map(str, tags))]
    return out


@script
def set_operators_in_place(compile):
    s = {1, 2, 3}

    @compile
    def f(x, other):
        nonlocal s
        s |= other
        s &= {1, 2, 3, 9}
        s -= {2}
        s ^= {9, 11}
        return x + 1

    alias = s
    f(ones(), {9})
    out = [sorted(s), alias is s]
    s.add(2)
    f(ones(), {4})
    return out, sorted(s), sorted(alias)


@script
def deques_and_bounded_windows(compile):
    window, queue = collections.deque([0, 0], maxlen=3), collections.deque()

    @compile
    def f(x, k):
        window.append(k)
        queue.appendleft(x * k)
        queue.extend([k, k + 1])
        window.rotate(1)
        return x + 1

    for k in range(4):
        f(ones(), k)
    queue.popleft()
    f(ones(), 9)
    return list(window), window.maxlen, list(queue)


@script
def deque_read_back(compile):
    window = collections.deque([1.0, 2.0], maxlen=3)

    @compile
    def f(x, k):
        window.append(k)
        return x * sum(window) / len(window), window[-1]

    out = [f(ones(), 3.0), f(ones(), 4.0)]
    window.clear()
    return out, f(ones(), 5.0), list(window)


@script
def counters_and_defaultdicts(compile):
    counter, groups, nested = collections.Counter(), collections.defaultdict(list), collections.defaultdict(lambda: collections.defaultdict(int))

    @compile
    def f(x, word):
        counter[word] += 1
        counter.update([word, "all"])
        groups[word].append(x.shape[0])
        nested[word]["n"] += 2
        return x + counter[word]

    out = [f(ones(), w) for w in ("a", "b", "a")]
    counter["a"], groups["b"] = 40, [0]
    out.append(f(ones(2), "a"))
    out.append(f(ones(2), "b"))
    return out, dict(counter), dict(groups), {k: dict(v) for k, v in nested.items()}, list(groups)


@script
def bytes_and_arrays(compile):
    data, numbers = bytearray(b"abc"), array.array("i", [1, 2])

    @compile
    def f(x, k):
        data[0] = k
        data.append(k)
        numbers.append(k)
        numbers[0] = k
        return x + len(data)

    return f(ones(), 65), f(ones(), 66), data, numbers


@script
def nested_containers_and_aliases(compile):
    shared = [1]
    state = {"a": {"b": shared}, "c": shared, "t": (shared, {"k": 0})}
    box = Thing()
    box.inner, box.shared = Thing(), shared

    @compile
    def f(x):
        state["a"]["b"].append(x.shape[0])
        state["t"][1]["k"] += 1
        box.inner.value = state["c"]
        box.pair = pair = [x, x]
        box.same = pair
        fresh = {"pair": pair}
        state["fresh"] = fresh
        return fresh, pair, x + len(shared)

    out = []
    for n in (2, 3, 3):
        fresh, pair, y = f(ones(n))
        out.append((fresh is state["fresh"], fresh["pair"] is pair, box.same is box.pair is pair, pair[0] is pair[1],
                    box.inner.value is shared, state["t"][0] is shared, list(shared), state["t"][1]["k"], y))
        shared.insert(0, 0)
    return out


@script
def two_names_of_one_container(compile):
    @compile
    def f(x, a, b):
        a.append(1)
        b["n"] = len(a)
        return x + len(a)

    l, d = [], {}
    out = [f(ones(), l, d), f(ones(), [5], {"n": 1})]

    @compile
    def g(x, a, b):
        a.append(1)
        return x + len(b)

    p = []
    return out, l, d, g(ones(), [], []), g(ones(), p, p), p


@script
def own_dictionary(compile):
    s = Thing()
    s.a = 1

    @compile
    def f(x):
        vars(s)["b"] = 2
        s.__dict__.update(c=3)
        made = Thing()
        made.x = x
        d = made.__dict__
        d["later"] = 1
        return made, d, x + len(vars(s))

    made, d, y = f(ones())
    vars(s).pop("b")
    made2, d2, y2 = f(ones())
    return list(vars(s).items()), d is vars(made), made.later, y, y2, d2 is vars(made2)


@script
def counters_of_loops(compile):
    s = Thing()
    s.n, s.h, s.log, s.states = 0, None, [], [None, None]

    @compile
    def f(x):
        for i in range(4):
            s.n += 1
            s.h = x = x.sin() + s.n
            s.log.append(i)
            s.states[i % 2] = x
        return x

    out = [f(ones())]
    s.n = 10
    s.states.append(0)
    out.append(f(ones()))
    return out, s.n, s.h, s.log, s.states


@script
def setters_and_descriptors(compile):
    class Field:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, o, t):
            return getattr(o, self.name)

        def __set__(self, o, value):
            setattr(o, self.name, value)
            o.log.append(value)

    class C:
        f = Field()

        def __init__(self):
            self.log = []
            self.f = 0

        @property
        def p(self):
            return self._p

        @p.setter
        def p(self, v):
            self._p = v
            self.log.append(("p", v))

        @functools.cached_property
        def cached(self):
            self.log.append("cached")
            return self._f + 1

    c = C()

    @compile
    def f(x, k):
        c.f = k
        c.p = k * 2
        return x + c.f + c.p + c.cached

    out = [f(ones(), 1), f(ones(), 1)]
    del c.cached
    c.f = 9
    out.append(f(ones(), 1))
    return out, c.log, list(vars(c))


# --- what a program says -----------------------------------------------------------------------------------------------------


@script
def prints_see_their_moment(compile):
    s = Thing()
    s.n = 0

    @compile
    def f(x, lst, d):
        print("before", lst, d)
        lst.append(4)
        d["k"] = 1
        fresh = [1, 2]
        print("fresh", fresh, {"a": fresh})
        fresh.append(3)
        print(fresh, sep="|")
        s.n += 1
        print(s.n, vars(s))
        s.n += 1
        print("after", lst, d, s.n)
        return x + 1, fresh

    out = [f(ones(), [1], {}), f(ones(), [1, 2], {"z": 0})]
    s.n = 7
    return out, f(ones(), [1], {}), s.n


class Loud:
    def __init__(self):
        self.said = 0

    def __repr__(self):
        self.said += 1
        return f"<loud {self.said}>"


@script
def prints_that_run_python(compile):
    loud = Loud()

    @compile
    def f(x):
        print(loud)
        loud.said += 10
        print(1, [loud])
        return x + loud.said

    return f(ones()), f(ones()), loud.said


class Tee:
    def __init__(self):
        self.lines = []

    def write(self, text):
        self.lines.append(text)


@script
def prints_to_a_writer_of_the_program(compile):
    tee = Tee()

    @compile
    def f(x):
        print("one", file=tee)
        n = len(tee.lines)
        print("two", n, file=tee)
        return x + n

    return f(ones()), f(ones()), tee.lines


class Keep(logging.Handler):
    def __init__(self, state):
        super().__init__()
        self.state, self.records = state, []

    def emit(self, record):
        self.records.append((record.levelname, record.getMessage(), record.funcName, dict(vars(self.state))))


@script
def logs_see_their_moment(compile):
    state = Thing()
    state.step = 0
    log = logging.getLogger("effects_log.moments")
    log.propagate = False
    log.setLevel(logging.INFO)
    handler = Keep(state)
    log.addHandler(handler)

    def deeper(x):
        state.h = 1
        log.warning("deeper")
        state.h = 2
        return x

    @compile
    def f(x):
        log.info("before %s", state.__dict__)
        state.step += 1
        log.debug("never %s", state)
        log.info("between %d %s", 3, [1, 2])
        state.step += 1
        log.info("after %s", state.__dict__)
        return deeper(x) + state.step

    out = [f(ones()), f(ones())]
    state.step = 10
    out.append(f(ones()))
    log.setLevel(logging.DEBUG)
    out.append(f(ones()))
    log.setLevel(logging.ERROR)
    out.append(f(ones()))
    log.removeHandler(handler)
    return out, [r if "never" not in r[1] else r[0] for r in handler.records], vars(state)


@script
def warnings_that_raise(compile):
    def g(x):
        try:
            warnings.warn("careful")
        except UserWarning as error:
            return x + 1, str(error)
        return x - 1, None

    def h(x):
        warnings.warn("plain", DeprecationWarning, stacklevel=2)
        return x * 2

    f, k, out = compile(g), compile(h), []
    for action in ("ignore", "error", "ignore", "always", "error"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(action)
            out.append(f(ones()))
            try:
                out.append(k(ones()))
            except DeprecationWarning as error:
                out.append(str(error))
            out.append([str(w.message) for w in caught])
    return out


@script
def warnings_caught_inside(compile):
    @compile
    def f(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn("one")
            x = x + len(caught)
        return x

    return f(ones()), f(ones())


# --- objects that are made and handed out -------------------------------------------------------------------------------------


@script
def functions_keep_what_describes_them(compile):
    @compile
    def f(x, k):
        def inner(y: int, *, z: float = 2.0) -> str:
            "doc of inner"
            return y + x

        @functools.wraps(inner)
        def outer(y):
            return inner(y)

        def renamed():
            "not this"
            return k

        outer.tag = 3
        renamed.__name__, renamed.__qualname__, renamed.__doc__ = "other", "some.other", None
        renamed.__module__ = "elsewhere"
        renamed.__defaults__ = None
        return outer, inner, renamed, x + 1

    out = []
    for k in (1, 2):
        o, i, r, _ = f(ones(), k)
        out.append([(g.__name__, g.__qualname__, g.__doc__, g.__module__, g.__annotations__, g.__kwdefaults__) for g in (o, i, r)])
        out.append((o.tag, o.__wrapped__ is i, o(ones()), r(), o.__closure__[0].cell_contents is i))
    return out


@script
def exceptions_keep_what_belongs_to_them(compile):
    def causes(x):
        try:
            try:
                raise KeyError("a")
            except KeyError as k:
                raise ValueError("b", 3) from k
        except ValueError as e:
            e.add_note("noted")
            return x + 1, e

    def context(x):
        try:
            try:
                raise KeyError("a")
            except KeyError:
                raise ValueError("b")
        except ValueError as e:
            return x + 1, e

    def suppressed(x):
        try:
            try:
                raise KeyError("a")
            except KeyError:
                raise ValueError("b") from None
        except ValueError as e:
            return x + 1, e

    def made(x):
        e = OSError(2, "missing", "file.txt")
        s = StopIteration(7)
        s.__cause__ = e
        n = AttributeError("gone", name="n", obj=None)
        return x, n, s

    def describe(e, depth=0):
        if e is None or depth > 4:
            return None
        own = {k: getattr(e, k, None) for k in ("value", "errno", "filename", "name", "obj", "__notes__")}
        return (repr(e), own, e.__suppress_context__, e.__traceback__ is not None, describe(e.__cause__, depth + 1), describe(e.__context__, depth + 1))

    out = []
    for g in (causes, context, suppressed, made):
        f = compile(g)
        out.append([[describe(e) for e in f(ones())[1:]] for _ in range(2)])
    return out


@script
def objects_with_finalizers(compile):
    log = []

    class R:
        def __init__(self, n):
            self.n = n

        def __del__(self):
            log.append(self.n)

    @compile
    def f(x):
        r = R(1)
        y = x + r.n
        del r
        return y * 2

    @compile
    def g(x):
        return R(2), x + 1

    out = []
    for _ in range(3):
        f(ones())
        out.append(list(log))
    log.clear()
    r, _ = g(ones())
    out.append(list(log))
    del r
    return out, log


@script
def weak_references(compile):
    kept = [Thing(), Thing()]

    @compile
    def f(x, o):
        t = Thing()
        return t, weakref.ref(t), weakref.ref(o), x + 1

    out = []
    for o in kept:
        t, w, v, _ = f(ones(), o)
        out.append((w() is t, v() is o))
        del t
        gc.collect()
        out.append(w() is None)
    return out


@script
def copies_of_what_was_written(compile):
    d = {"l": [1, [2]]}

    @compile
    def f(x):
        before = copy.copy(d["l"])
        d["l"].append(3)
        deep = [list(d["l"]), dict(d)]
        d["l"].append(4)
        return before, deep, x

    out = [f(ones())]
    d["l"][0] = 9
    before, deep, _ = f(ones())
    return out, before, deep, before[1] is d["l"][1], deep[1]["l"] is d["l"]


# --- other threads -----------------------------------------------------------------------------------------------------------


@script
def another_thread_writes_meanwhile(compile):
    s, log, seen = types.SimpleNamespace(out=None, beat=0), [0], {}
    running = True

    def heart():
        while running:
            s.beat += 1
            setattr(s, f"k{s.beat}", s.beat)
            log.append(s.beat)
            seen[s.beat] = True

    @compile
    def f(x):
        s.out = x.sin()
        log.append("f")
        seen["f"] = len(log) > 0
        for _ in range(60):
            x = x.cos()
        return x

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    t = threading.Thread(target=heart)
    t.start()
    try:
        jumps = 0
        for _ in range(5):
            before = s.beat
            f(ones())
            jumps += s.beat < before
    finally:
        running = False
        t.join()
        sys.setswitchinterval(interval)
    n = s.beat
    missing = [i for i in range(1, n + 1) if not hasattr(s, f"k{i}") or i not in seen]
    beats = [i for i in log if isinstance(i, int)]
    lost = sorted(set(range(1, n + 1)) - set(beats))
    for i in range(1, n + 1):
        delattr(s, f"k{i}")
    f(ones())
    return jumps, missing, lost, len(beats) == len(set(beats)), log.count("f"), sorted(vars(s))


@script
def a_closure_that_was_begun_before_the_segment(compile):
    """Nothing can be handed over between the transform and the exception, so that segments end within the making of the function."""
    seen = []

    @compile
    def f(y, total):
        def count():
            nonlocal total
            total += 1

        count()
        seen.append(total)
        a, back = torch.func.vjp(lambda t: t.sin(), y)
        y = back(a)[0]
        raise ValueError(total)

    for start in (0, 5):
        try:
            f(torch.ones(2), start)
        except ValueError as error:
            seen.append(str(error))
    return seen


@script
def tensors_that_are_printed(compile):
    @compile
    def f(x, fails):
        print("given", x)
        y = x + 1
        print(y, [y * 2, {"sum": y.sum()}], sep="|")
        y.mul_(3)
        print(f"{y.shape[0]}", y[0], y.long(), y > 4)
        x.add_(1)
        return y @ torch.ones(4, 2) if fails else y

    results = []
    for n, fails in ((3, False), (4, False), (4, True), (5, True)):
        try:
            results.append(f(torch.arange(float(n)), fails))
        except RuntimeError:
            results.append("sizes")
    return results


@script
def warnings_that_are_recorded(compile):
    def g(x):
        y = x + 1
        warnings.warn("recorded")
        return y * 2

    def reads(x, caught):
        warnings.warn("recorded")
        return x + len(caught)

    f, h, out = compile(g), compile(reads), []
    for _ in range(3):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            out.append((f(ones()), h(ones(), caught), h(ones(), caught), [str(w.message) for w in caught]))
    return out

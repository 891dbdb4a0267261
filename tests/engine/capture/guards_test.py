"""Every kind of guard accepts what it was made from and rejects what differs, explains itself, and runs no Python code.

Guards are made, compiled and checked through fusebox._engine.GuardProbe: a list of objects stands for the locals of a frame.
"""

import collections
import copy
import gc
import math
import sys
import types
import weakref

import torch
import torch.nn as nn

import fusebox
from fusebox import _engine
from checks.script_checks import expect, run


def probe(*guards, outputs=()):
    p = _engine.GuardProbe()
    for guard in guards:
        kind, path, *rest = guard
        keywords = {}
        if rest and isinstance(rest[-1], dict) and rest[-1].keys() <= {"number", "other"}:
            keywords = rest.pop()
        p.add(kind, path, rest[0] if rest else None, **keywords)
    p.build(list(outputs))
    return p


def fastest(p, values, checks):
    """Nanoseconds a check, where nothing interrupts: of many short stretches, each far below what a scheduler gives at a time."""
    return min(p.time(values, 20) for _ in range(checks // 4))


def accepts(p, value, what):
    for _ in range(3):  # the second and third go over remembered dictionary versions
        expect(p.check([value]), f"{what}: should accept")


def rejects(p, value, what, found=None):
    expect(not p.check([value]), f"{what}: should reject")
    guard, expected, seen, file, line = p.explain([value])
    expect(guard, f"{what}: no guard named")
    expect((file, line) == ("model.py", 7), f"{what}: place {file}:{line}")
    if found is not None:
        expect(found in seen, f"{what}: explanation {seen!r} lacks {found!r}")


class Loud:
    """Every hook that a check must not run raises."""

    def __eq__(self, other):
        raise AssertionError("__eq__ ran")

    def __hash__(self):
        raise AssertionError("__hash__ ran")

    def __getattr__(self, name):
        raise AssertionError("__getattr__ ran")

    def __len__(self):
        raise AssertionError("__len__ ran")

    def __bool__(self):
        raise AssertionError("__bool__ ran")

    def __repr__(self):
        raise AssertionError("__repr__ ran")


def test_types_and_identities():
    p = probe(("TYPE_MATCH", [0], int))
    accepts(p, 5, "type int")
    rejects(p, True, "type int", "bool")
    rejects(p, Loud(), "type int", "Loud")
    thing = types.SimpleNamespace()
    p = probe(("ID_MATCH", [0], thing))
    accepts(p, thing, "identity")
    rejects(p, types.SimpleNamespace(), "identity")

    def f():
        pass

    p = probe(("CODE_MATCH", [0], f.__code__))
    accepts(p, f, "code")
    rejects(p, lambda: 0, "code")
    rejects(p, 3, "code")


def test_constants():
    pairs = [(1, 2), (1, True), (1, 1.0), (0.0, -0.0), ("a", "b"), (b"a", b"b"), (None, 0), ((1, "x"), (1, "y")), ((1,), [1]),
             (frozenset({1, 2}), frozenset({1, 3})), (torch.float32, torch.float64), (torch.device("cpu"), torch.device("meta")),
             (torch.Size([2, 3]), torch.Size([3, 2])), (2 ** 80, 2 ** 80 + 1), (1 + 2j, 1 - 2j), (Ellipsis, None),
             (torch.strided, torch.sparse_coo)]
    for good, bad in pairs:
        p = probe(("CONSTANT_MATCH", [0], good))
        accepts(p, good, f"constant {good!r}")
        rejects(p, bad, f"constant {good!r} against {bad!r}")
    p = probe(("CONSTANT_MATCH", [0], math.nan))
    accepts(p, float("nan"), "NaN equals NaN")
    p = probe(("CONSTANT_MATCH", [0], "layer"))
    accepts(p, "".join(["la", "yer"]), "an equal string of another identity")
    rejects(p, Loud(), "constant against an object with hooks")


def test_tensors():
    x = torch.randn(2, 3)
    p = probe(("TENSOR_MATCH", [0], x))
    accepts(p, torch.zeros(2, 3), "tensor of equal properties")
    rejects(p, torch.randn(3, 2), "tensor size", "[3, 2]")
    rejects(p, torch.randn(3, 2).t(), "tensor strides", "strides [1, 2]")
    rejects(p, torch.randn(2, 3).double(), "tensor dtype", "Double")
    rejects(p, torch.randn(2, 3, requires_grad=True), "tensor grad", "requires_grad")
    rejects(p, torch.randn(2, 3, device="meta"), "tensor device", "meta")
    rejects(p, nn.Parameter(torch.randn(2, 3)), "tensor class", "Parameter")
    rejects(p, torch.randn(2, 3).to_sparse(), "tensor layout")
    rejects(p, "tensor", "no tensor", "str")
    with torch.inference_mode():
        rejects(p, torch.randn(2, 3), "inference tensor")
    rejects(p, torch.randn(2, 3, dtype=torch.complex64).conj().imag, "a view with a negative bit")
    leaf = torch.randn(2, requires_grad=True)
    p = probe(("TENSOR_MATCH", [0], leaf))
    rejects(p, leaf * 1, "not a leaf", "not a leaf")
    weak = weakref.ref(x)
    del x
    expect(weak() is None, "a tensor guard keeps no tensor alive")


class Holder:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def test_dictionaries():
    d = {"a": 1, "b": 2}
    p = probe(("DICT_KEYS_MATCH", [0], ("a", "b")), ("DICT_LENGTH", [0], {"number": 2}), ("DICT_CONTAINS", [0], "a"),
              ("NOT_PRESENT_IN_DICT", [0], "c"), ("CONSTANT_MATCH", [0, ("item", "a")], 1))
    accepts(p, d, "dictionary")
    accepts(p, {"a": 1, "b": 3}, "dictionary with another unguarded value")
    rejects(p, {"b": 2, "a": 1}, "key order")
    rejects(p, {"a": 1, "b": 2, "c": 3}, "one key more")
    rejects(p, {"a": 5, "b": 2}, "another value")
    d["a"] = 5
    rejects(p, d, "the same dictionary, changed in place", "5")
    d["a"] = 1
    accepts(p, d, "and changed back")
    p = probe(("DICT_EMPTY", [0]))
    accepts(p, {}, "empty")
    rejects(p, {1: 1}, "empty", "length 1")
    accepts(p, collections.OrderedDict(), "empty ordered")
    ordered = collections.OrderedDict(a=1, b=2)
    p = probe(("DICT_KEYS_MATCH", [0], ("a", "b")))
    accepts(p, ordered, "ordered")
    ordered.move_to_end("a")
    rejects(p, ordered, "order changed by move_to_end")
    p = probe(("CONSTANT_MATCH", [0, ("key", 1)], "b"))
    accepts(p, {"a": 0, "b": 0}, "second key")
    rejects(p, {"a": 0, "c": 0}, "second key")


def test_attributes():
    h = Holder(size=3, name="x", inner=Holder(scale=2.0), weight=torch.ones(2))
    p = probe(("TYPE_MATCH", [0], Holder), ("CONSTANT_MATCH", [0, ("dict",), ("item", "size")], 3),
              ("NOT_PRESENT_IN_DICT", [0, ("dict",)], "bias"), ("TYPE_MATCH", [0, ("dict",), ("item", "inner")], Holder),
              ("CONSTANT_MATCH", [0, ("dict",), ("item", "inner"), ("dict",), ("item", "scale")], 2.0),
              ("TENSOR_MATCH", [0, ("dict",), ("item", "weight")], h.weight))
    accepts(p, h, "object tree")
    h.unrelated = 1
    accepts(p, h, "an attribute that no guard reads")
    h.inner.scale = 3.0
    rejects(p, h, "inner attribute", "3.0")
    h.inner.scale = 2.0
    accepts(p, h, "inner attribute restored")
    h.weight = torch.ones(3)
    rejects(p, h, "tensor attribute", "[3]")
    h.weight = torch.ones(2)
    h.weight.data = torch.ones(5)
    rejects(p, h, "tensor changed in place under an unchanged dictionary", "[5]")
    h.weight.data = torch.ones(2)
    h.bias = None
    rejects(p, h, "attribute that was absent")
    del h.bias
    accepts(p, h, "attribute absent again")
    h.inner = Holder(scale=2.0)
    accepts(p, h, "an equal inner object")
    h.inner.__class__ = types.SimpleNamespace if False else type("Other", (), {})
    rejects(p, h, "class of an inner object assigned", "Other")
    del h.inner
    rejects(p, h, "attribute gone", "not there")

    class Slotted:
        __slots__ = ("a",)

    s = Slotted()
    s.a = 4
    p = probe(("CONSTANT_MATCH", [0, ("slot", "a")], 4))
    accepts(p, s, "slot")
    s.a = 5
    rejects(p, s, "slot", "5")
    del s.a
    rejects(p, s, "slot emptied")
    p = probe(("CONSTANT_MATCH", [0, ("slot", "requires_grad")], False))
    accepts(p, torch.ones(1), "C getset of a tensor")
    rejects(p, torch.ones(1, requires_grad=True), "C getset of a tensor")


def test_sequences_and_parts():
    p = probe(("SEQUENCE_LENGTH", [0], {"number": 2}), ("CONSTANT_MATCH", [0, ("index", 1)], "b"))
    accepts(p, ["a", "b"], "list")
    accepts(p, ("a", "b"), "tuple")
    rejects(p, ["a"], "length", "length 1")
    rejects(p, ["a", "c"], "item", "'c'")
    rejects(p, 5, "no sequence")
    p = probe(("SEQUENCE_LENGTH", [0], {"number": 2}))
    accepts(p, collections.deque([1, 2]), "deque")
    rejects(p, Loud(), "length of an object with __len__")

    def make(k, default=1, *, option="o"):
        def f(x, d=default, *, o=option):
            return x + k
        return f

    f = make(10)
    p = probe(("CONSTANT_MATCH", [0, ("closure",), ("index", 0), ("cell",)], 10),
              ("CONSTANT_MATCH", [0, ("defaults",), ("index", 0)], 1),
              ("CONSTANT_MATCH", [0, ("kwdefaults",), ("item", "o")], "o"), ("ID_MATCH", [0, ("code",)], f.__code__))
    accepts(p, f, "function parts")
    accepts(p, make(10), "another function of the same code and parts")
    rejects(p, make(11), "closure", "11")
    rejects(p, make(10, 2), "default", "2")
    rejects(p, make(10, option="p"), "keyword default", "'p'")
    h = Holder(v=1)
    h2 = Holder(v=2)
    method = types.MethodType(f, h)
    p = probe(("ID_MATCH", [0, ("func",)], f), ("CONSTANT_MATCH", [0, ("self",), ("dict",), ("item", "v")], 1))
    accepts(p, method, "bound method")
    rejects(p, types.MethodType(f, h2), "self of a bound method", "2")
    t = torch.ones(2, requires_grad=True)
    p = probe(("TYPE_MATCH", [0, ("grad",)], type(None)))
    accepts(p, t, "no gradient")
    t.sum().backward()
    rejects(p, t, "a gradient", "Tensor")


def test_types_change():
    class Base:
        def f(self):
            return 1

    class Derived(Base):
        pass

    p = probe(("TYPE_VERSION", [(Derived,)], Derived))
    accepts(p, 0, "class unchanged")
    Base.f = lambda self: 2
    rejects(p, 0, "method of a base replaced", "base")
    p = probe(("TYPE_VERSION", [(Derived,)], Derived))
    accepts(p, 0, "class as it is now")
    Derived.extra = 1
    rejects(p, 0, "attribute added")
    del Derived.extra
    accepts(p, 0, "attribute taken away again")


def test_the_first_copy_of_an_instance():
    """copyreg notes in the class what it found there, which changes nothing."""
    Pair = collections.namedtuple("Pair", "a b")
    run = fusebox.compile(lambda pair: Pair(pair.a * 2, pair.b))
    pair = Pair(torch.ones(2), torch.ones(3))
    run(pair)
    before = fusebox.counters()["recompiles"]
    copy.copy(pair)
    expect("__slotnames__" in vars(Pair), "a copy leaves its note")
    run(pair)
    expect(fusebox.counters()["recompiles"] == before, "a copy is no reason to compile again")


def test_relations():
    x, y = torch.ones(2), torch.ones(2)
    p = probe(("TENSOR_MATCH", [0, ("index", 0)], x), ("TENSOR_MATCH", [0, ("index", 1)], y),
              ("DUPLICATE_INPUT", [0, ("index", 0)], {"other": [0, ("index", 1)]}))
    accepts(p, (x, x), "the same twice")
    rejects(p, (x, y), "the same twice")
    p = probe(*[("NO_ALIASING", [0, ("index", i)]) for i in range(3)])
    z = torch.ones(2)
    accepts(p, (x, y, z), "three tensors")
    rejects(p, (x, y, x), "one of them twice", "is")
    accepts(p, (z, y, x), "three tensors in another order")


def test_global_state():
    p = probe(("GLOBAL_STATE", None))
    accepts(p, 0, "state as it was")

    def rejected(what, found):
        expect(not p.check([0]), f"global state: {what} should reject")
        seen = p.explain([0])[2]
        expect(found in seen, f"global state: {what}: {seen!r} lacks {found!r}")

    with torch.no_grad():
        rejected("no_grad", "grad_mode: False, was True")
    with torch.inference_mode():
        rejected("inference mode", "inference_mode: True")
    with torch.autocast("cpu", torch.bfloat16):
        rejected("autocast", "autocast (cpu): True")
    torch.set_default_dtype(torch.float64)
    rejected("default dtype", "Double, was Float")
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(True)
    rejected("deterministic", "deterministic algorithms: True")
    torch.use_deterministic_algorithms(False)
    with torch.device("meta"):
        rejected("default device", "default device: meta")
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        rejected("saved tensor hooks", "saved tensor hooks: 1")
    torch.set_num_threads(max(1, torch.get_num_threads()))
    accepts(p, 0, "state restored")


def test_lifetime():
    class Thing:
        pass

    thing = Thing()
    weak = weakref.ref(thing)
    p = probe(("ID_MATCH", [0], thing))
    expect(p.check([thing]) and p.alive, "the object lives")
    del thing
    gc.collect()
    expect(weak() is None, "an identity guard keeps nothing alive")
    expect(not p.alive, "the tree is dead with its object")
    rejects(p, Thing(), "another object after the first died", "no longer exists")


def test_no_python_code_runs():
    key = Loud()
    loud = Holder(a=Loud(), b=[Loud()], c={"k": Loud()})
    p = probe(("TYPE_MATCH", [0, ("dict",), ("item", "a")], Loud), ("SEQUENCE_LENGTH", [0, ("dict",), ("item", "b")], {"number": 1}),
              ("DICT_LENGTH", [0, ("dict",), ("item", "c")], {"number": 1}))
    accepts(p, loud, "objects with hooks")
    loud.b.append(key)
    rejects(p, loud, "objects with hooks", "length 2")


def test_outputs_and_references():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    path = [0, ("dict",), ("item", "_modules"), ("item", "0"), ("dict",), ("item", "_parameters"), ("item", "weight")]
    p = probe(("TENSOR_MATCH", path, model[0].weight), outputs=[path, [0]])
    accepts(p, model, "parameter of a module")
    expect(p.outputs()[0] is model[0].weight and p.outputs()[1] is model, "outputs are the objects themselves")
    before = sys.getrefcount(model[0].weight)
    for _ in range(1000):
        p.check([model])
    expect(sys.getrefcount(model[0].weight) == before, "no reference is left behind")
    model[0].weight = nn.Parameter(torch.randn(3, 2))
    accepts(p, model, "another parameter of the same kind")
    expect(p.outputs()[0] is model[0].weight, "outputs follow the change")


def test_deep_sources_are_named():
    """The work grows with the depth, not with its power."""
    depth, path = 40, [0]
    h = Holder(size=3)
    for _ in range(depth):
        h = Holder(inner=h)
        path += [("dict",), ("item", "inner")]
    p = probe(("CONSTANT_MATCH", path + [("dict",), ("item", "size")], 3))
    accepts(p, h, "deep")
    last = h
    for _ in range(depth):
        last = last.inner
    last.size = 4
    rejects(p, h, "deep", "4")
    expect(p.explain([h])[0].endswith(".inner" * depth + ".size"), "the whole path is named")


def test_duplicates_are_dropped():
    p = _engine.GuardProbe()
    expect(p.add("TYPE_MATCH", [0], int), "first")
    expect(not p.add("TYPE_MATCH", [0], int), "second of the same")
    expect(p.add("TYPE_MATCH", [1], int), "another source")
    expect(p.add("CONSTANT_MATCH", [0], "ab") and not p.add("CONSTANT_MATCH", [0], "".join(["a", "b"])), "equal keys")
    expect(p.guards == 3, f"three are kept, not {p.guards}")


def test_speed():
    """Well under a microsecond an input, about ten nanoseconds a guard."""
    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(50))
    guards = []
    for i in range(50):
        base = [0, ("dict",), ("item", "_modules"), ("item", str(i))]
        guards.append(("TYPE_MATCH", base, nn.Linear))
        guards.append(("CONSTANT_MATCH", base + [("dict",), ("item", "training")], True))
        guards.append(("CONSTANT_MATCH", base + [("dict",), ("item", "in_features")], 4))
        for hooks in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks"):
            guards.append(("DICT_EMPTY", base + [("dict",), ("item", hooks)]))
        for name in ("weight", "bias"):
            guards.append(("TENSOR_MATCH", base + [("dict",), ("item", "_parameters"), ("item", name)], getattr(layers[i], name)))
    p = probe(*guards)
    ns = fastest(p, [layers], 2000)
    print(f"{len(guards)} guards, {ns:.0f} ns a check, {ns / len(guards):.1f} ns a guard")
    expect(ns / len(guards) < 60, f"{ns / len(guards):.1f} ns a guard")


def shape_probe(symbols, numbers, decisions, tensors):
    """`symbols`: name -> (hint, lower, upper); `numbers`: (local, kind, dim, expression); `decisions`: (op, left, right)."""
    p = _engine.GuardProbe()
    for name, values in symbols.items():
        p.symbol(name, *values)
    for i, t in enumerate(tensors):
        if isinstance(t, torch.Tensor):
            p.add("TENSOR_MATCH", [i], t)
    for local, kind, dim, expression in numbers:
        p.number([local], kind, dim, expression)
    for decision in decisions:
        p.decide(*decision)
    p.build([])
    return p


def test_symbolic_sizes():
    p = shape_probe({"s0": (8,), "s1": (6,)},
                    [(0, "size", 0, "s0"), (0, "size", 1, "s1"), (0, "stride", 0, "s1"), (1, "size", 0, "s0")],
                    [("==", ("%", "s0", 4), 0), ("<=", "s1", 64)], [torch.zeros(8, 6), torch.zeros(8)])
    for n, m in ((8, 6), (4, 2), (400, 64), (12, 5)):
        expect(p.check([torch.zeros(n, m), torch.zeros(n)]), f"sizes {n}, {m} fit")
        expect(p.symbol_values() == [n, m], f"values {p.symbol_values()}")

    def misses(tensors, guard, expected, found):
        expect(not p.check(tensors), f"{[t.shape for t in tensors]} should not fit")
        said = p.explain(tensors)
        expect(said[0].startswith(guard) and expected in said[1] and found in said[2], f"{said}")

    misses([torch.zeros(6, 6), torch.zeros(6)], "SHAPE_ENV", "L[0].size()[0] % 4", "L[0].size()[0] = 6")
    misses([torch.zeros(6, 6), torch.zeros(6)], "SHAPE_ENV", "asked by the program in model.py:12", "= 6")
    misses([torch.zeros(8, 65), torch.zeros(8)], "SHAPE_ENV", "64", "= 65")
    misses([torch.zeros(8, 6), torch.zeros(4)], "SYMBOL_MATCH", "L[1].size()[0] == L[0].size()[0]", "L[1].size()[0] = 4")
    misses([torch.zeros(8, 12)[:, ::2], torch.zeros(8)], "TENSOR_MATCH", "", "strides [12, 2]")
    misses([torch.zeros(8, 12)[:, :6], torch.zeros(8)], "SYMBOL_MATCH", "L[0].stride()[0]", "L[0].stride()[0] = 12")
    misses([torch.zeros(1, 6), torch.zeros(1)], "SYMBOL_RANGE", ">= 2", "= 1")
    misses([torch.zeros(0, 6), torch.zeros(0)], "SYMBOL_RANGE", ">= 2", "= 0")
    misses([torch.zeros(8, 6, 1), torch.zeros(8)], "TENSOR_MATCH", "[s0, s1]", "[8, 6, 1]")
    misses([torch.zeros(8, 6).double(), torch.zeros(8)], "TENSOR_MATCH", "Float", "Double")
    expect(p.check([torch.zeros(8, 6), torch.zeros(8)]), "fits again after all that")


def test_symbolic_integers():
    lowest, highest = -2**63, 2**63 - 1
    p = shape_probe({"n": (5, lowest, highest), "m": (7, lowest, highest)}, [(0, "value", -1, "n"), (1, "value", -1, "m")],
                    [("<", "n", "m"), ("!=", ("*", "n", "m"), 36), ("<=", ("//", "n", 2), 100)], [5, 7])
    expect(p.check([-3, 200]) and p.symbol_values() == [-3, 200], "any int of 64 bits")
    expect(p.check([lowest, 1]), "-2**63 // 2 and -2**63 * 1 are within 64 bits")
    for pair in ([7, 7], [4, 9], [202, 300], [5, 2**63], [2**70, 7], [True, 7], [5.0, 7], [5, None], [highest - 1, highest], [lowest, 3]):
        expect(not p.check(pair), f"{pair} should not fit")
        guard, expected, found, _, _ = p.explain(pair)
        expect(guard and expected and found, f"{pair}: {guard} {expected} {found}")
    expect("64 bits" in p.explain([2**70, 7])[2], "an int beyond 64 bits is called that")


def test_relations_are_python_arithmetic():
    """Against Python's own integers, on random expressions and values, overflow included: a guard holds only where it is true."""
    import operator
    import random
    random.seed(3)
    compute = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod, "min": min, "max": max}
    compare = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le}
    names = ["a", "b", "c"]

    def expression(depth):
        if depth == 0 or random.random() < 0.2:
            return random.choice(names) if random.random() < 0.7 else random.choice([-7, -1, 0, 2, 3, 8, 16])
        op = random.choice(list(compute))
        # Divisors are constants, which no range rules out.
        return (op, expression(depth - 1), random.choice([-5, -2, 2, 3, 16]) if op in ("//", "%") else expression(depth - 1))

    def value(e, v):
        if isinstance(e, tuple):
            return compute[e[0]](value(e[1], v), value(e[2], v))
        return v[e] if isinstance(e, str) else e

    held = refused = 0
    for _ in range(300):
        op, left, right = random.choice(list(compare)), expression(3), expression(3)
        p = _engine.GuardProbe()
        hints = {n: random.choice([-9, -1, 0, 2, 5, 24]) for n in names}
        for i, n in enumerate(names):
            p.symbol(n, hints[n], -2**63, 2**63 - 1)
            p.number([i], "value", -1, n)
        wanted = p.decide(op, left, right)
        expect(wanted == compare[op](value(left, hints), value(right, hints)), f"{left} {op} {right} at {hints}")
        p.build([])
        for _ in range(40):
            v = {n: random.choice([random.randint(-40, 40), random.randint(-2**63, 2**63 - 1), 2**62, -2**63, 2**31]) for n in names}
            if p.check([v[n] for n in names]):
                held += 1
                expect(compare[op](value(left, v), value(right, v)) == wanted, f"{left} {op} {right} at {v} is not {wanted}")
            else:
                refused += 1
        expect(p.check([hints[n] for n in names]), f"{left} {op} {right} holds at {hints}")
    expect(held > 1000 and refused > 1000, f"both happen: {held}, {refused}")


def test_symbolic_speed():
    """50 symbols and 100 relations in less than 3 microseconds."""
    tensors = [torch.zeros(8, 16) for _ in range(25)]
    symbols = {f"s{i}": (8 if i % 2 == 0 else 16,) for i in range(50)}
    numbers = [(i // 2, "size", i % 2, f"s{i}") for i in range(50)]
    numbers = sorted(numbers + [(i, "stride", 0, f"s{2 * i + 1}") for i in range(25)], key=lambda n: (n[0], n[1]))
    decisions = []
    for i in range(50):
        decisions.append(("==", ("%", f"s{i}", 4), 0))
        decisions.append(("<=", ("+", ("*", f"s{i}", f"s{(i + 1) % 50}"), i), 4096))
    p = shape_probe(symbols, numbers, decisions, tensors)
    expect(p.guards >= 25 + 75 + 100, f"all are guards: {p.guards}")
    ns = fastest(p, tensors, 5000)
    larger = [torch.zeros(12, 20) for _ in range(25)]
    expect(p.check(larger) and p.symbol_values() == [12, 20] * 25, "other sizes fit")
    expect(not p.check(tensors[:-1] + [torch.zeros(8, 18)]), "one relation fails")
    print(f"50 symbols, {p.guards} guards, {p.operations} operations: {ns:.0f} ns a check")
    expect(ns < 3000, f"{ns:.0f} ns a check")


if __name__ == "__main__":
    run(globals())

"""What is captured whole, and into how few graphs: constructs that must not break, and loops whose body is compiled once."""

import builtins
import collections
import collections.abc
import copy
import functools
import importlib
import itertools
import math
import operator
import pathlib
import pickle
import sys
import tempfile
import time
import typing
import warnings

import numpy
import torch
import torch._dynamo
from torch import nn

import fusebox
from fusebox._engine_access import _engine
from checks.script_checks import expect, run


def whole(what, f, *args):
    """f(*args) is one graph, and equals eager."""
    fusebox.reset()
    try:
        got = fusebox.compile(f, fullgraph=True)(*args)
    except Exception as error:
        expect(False, f"{what}: {type(error).__name__}: {error}")
        return
    torch.testing.assert_close(got, f(*args), msg=lambda m: f"{what}: {m}")


def counted(f, *args, calls=1):
    fusebox.reset()
    before = fusebox.counters()
    compiled = fusebox.compile(f)
    for _ in range(calls):
        got = compiled(*args)
    after = fusebox.counters()
    return got, {k: after[k] - before[k] for k in ("graphs", "graph_breaks", "recompiles", "recompile_limits")}


class SizedByList(nn.modules.lazy.LazyModuleMixin, nn.Module):
    """Gets its sizes from the first of a list that its caller makes."""

    def initialize_parameters(self, given):
        self.weight = nn.Parameter(torch.full(given[0].shape, 0.5))

    def forward(self, given):
        return sum(given) * self.weight


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


class Squared(torch.autograd.Function):
    """x² k, with a gradient that tells it from autograd's own."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 5 * x * grad * ctx.k, None


class Sine(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.sin(), x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, grad, _):
        (x,) = ctx.saved_tensors
        return grad * 3 * x


class Named:
    first = 1
    __slots__ = ("second", "__dict__")

    def __init__(self):
        self.second, self.third = 2, 3


class Listing(Named):
    def __dir__(self):
        return ["b", "a"]


def test_names_of_classes_and_objects():
    plain, own, layer = Named(), Listing(), nn.Linear(2, 2)

    def f(x):
        names = dir(plain) + dir(Named) + dir(own) + dir(layer)
        made = Named()
        made.fourth = 4
        return x + len(names), names, dir(made)

    whole("dir", lambda x: f(x)[0], torch.ones(2))
    compiled = fusebox.compile(f)
    for change in (lambda: None, lambda: setattr(Named, "other", 1), lambda: setattr(plain, "fifth", 5), lambda: delattr(Named, "other")):
        change()
        expect(compiled(torch.ones(2))[1:] == f(torch.ones(2))[1:], "dir() gives other names than eager")

    def of_method(x):
        return x + 1, dir(own.__dir__)

    Listing.__dir__.known = True  # bound methods have what their functions have
    expect("known" in fusebox.compile(of_method)(torch.ones(2))[1], "dir() of a bound method lacks a name of its function")


def test_whether_a_gradient_is_retained():
    whole("retains_grad", lambda x: (x * 2) + (x * 3).retains_grad, torch.ones(2, requires_grad=True))


def test_tensors_of_numbers_and_tensors():
    x, n, b = torch.randn(4), torch.arange(3), torch.tensor([True])
    for what, f in {
        "a float beside": lambda: torch.tensor([x.sum(), 1.0, 2]),
        "one element of more dimensions": lambda: torch.tensor([n[0], n[1:2], n[2].reshape(1, 1, 1)]),
        "types": lambda: torch.tensor([[x[0].double(), x[1].half()], [n[2], 3]]),
        "a wider float": lambda: torch.tensor([x[0].double(), 1.5]),
        "ints and a float": lambda: torch.tensor((n[1], 2.5)),
        "a truth value": lambda: torch.tensor([b, n[2], 4]),
        "a type that is given": lambda: torch.tensor([x[0], 3], dtype=torch.float64),
        "numbers of data": lambda: torch.tensor([x.sum().item(), x[0]]),
    }.items():
        whole(what, f)
    for f in (lambda: torch.tensor([x[0], 2], dtype=torch.int64), lambda: torch.tensor([x, x])):
        try:
            expect(False, f"{fusebox.compile(f)()}, where eager raises")
        except (TypeError, ValueError) as error:
            expect("element" in str(error), f"eager's words: {error}")


def test_generators_that_fill_a_tensor():
    g = torch.Generator()
    for what, f in {
        "uniform_": lambda x: x.clone().uniform_(generator=g),
        "normal_": lambda x: torch.empty_like(x).normal_(1.0, 2.0, generator=g),
        "a view": lambda x: (y := x * 2, y[:, 1].exponential_(2.0, generator=g), y.t().bernoulli_(0.3, generator=g)),
        "ints": lambda x: torch.zeros(3, 2, dtype=torch.int64).random_(2, 9, generator=g),
        "one after the other": lambda x: x.clone().log_normal_(generator=g) + x.clone().cauchy_(generator=g) + torch.rand(3, generator=g),
    }.items():
        def seeded(x, f=f):
            g.manual_seed(7)
            return f(x)

        whole(what, seeded, torch.ones(2, 3))
    g.manual_seed(3)
    c = fusebox.compile(lambda x: x.clone().uniform_(generator=g), fullgraph=True)
    got = [c(torch.ones(4)) for _ in range(3)]
    g.manual_seed(3)
    expect(all(torch.equal(t, torch.ones(4).uniform_(generator=g)) for t in got), "numbers go on from call to call")


def test_functions_with_a_gradient_of_their_own():
    def f(x):
        return Squared.apply(x, 3.0).sum() + Sine.apply(x)[0].sum()

    inputs = torch.randn(5)
    whole("autograd.Function", f, inputs)
    grads = []
    for g in (f, fusebox.compile(f, fullgraph=True)):
        x = inputs.clone().requires_grad_()
        g(x).backward()
        grads.append(x.grad)
    torch.testing.assert_close(*grads)
    torch.testing.assert_close(grads[0], 15 * inputs + 3 * inputs)


class Reversed(torch.autograd.Function):
    """A view, or the input itself, with another gradient than a view's."""

    @staticmethod
    def forward(ctx, x, as_view):
        return x.view_as(x) if as_view else x

    @staticmethod
    def backward(ctx, grad):
        return -3 * grad, None


def test_views_by_functions_keep_their_gradient():
    programs = {
        "of an input": lambda x, v: Reversed.apply(x, v),
        "of an inner value": lambda x, v: Reversed.apply(x.sin(), v),
        "beside its base": lambda x, v: (lambda h: (h, Reversed.apply(h, v)))(x.sin()),
        "behind a view": lambda x, v: Reversed.apply(x.view(2, 3), v),
        "and viewed": lambda x, v: Reversed.apply(x, v).view(3, 2),
        "beside its view": lambda x, v: (lambda r: (r, r.view(3, 2)))(Reversed.apply(x.cos(), v)),
        "twice": lambda x, v: Reversed.apply(Reversed.apply(x, v), not v),
        "and an operator": lambda x, v: (lambda r: (r, r[0]))(Reversed.apply(x, v) * 2),
    }
    for name, f in programs.items():
        for as_view in (True, False):
            fusebox.reset()
            inputs, results = torch.randn(6, requires_grad=True), []
            for g in (f, fusebox.compile(f, fullgraph=True)):
                got = g(inputs, as_view)
                got = got if isinstance(got, tuple) else (got,)
                weights = [torch.linspace(1, 2, t.numel()).view(t.shape) for t in got]
                results.append((got, torch.autograd.grad(sum((t * w).sum() for t, w in zip(got, weights)), inputs)))
            torch.testing.assert_close(*results, msg=lambda m: f"{name}, as_view={as_view}: {m}")


def test_match_statements():
    def f(t, command):
        match command:
            case Point(0, y=k):
                return t * k
            case {"scale": s, **rest}:
                return t * s + len(rest)
            case ["add", *values]:
                return t + sum(values)
            case str() | None:
                return t - 1
            case _:
                return t

    for command in (Point(0, 3), Point(1, 3), {"scale": 2, "a": 1}, ["add", 1, 2], "text", None, 5):
        whole(f"match {command!r}", f, torch.ones(3), command)


def test_iterators():
    def tools(x):
        groups = [(k, sum(g)) for k, g in itertools.groupby([1, 1, 2], lambda v: v)]
        taken = sum(itertools.takewhile(lambda v: v < 3, itertools.count())) + len(list(itertools.dropwhile(bool, [1, 0, 2])))
        runs = list(itertools.accumulate([x, x, x], operator.mul))
        return runs[-1] * taken + groups[0][1] + sum(itertools.starmap(pow, [(2, 3)])) + len(list(itertools.compress("abc", [1, 0, 1])))

    whole("itertools", tools, torch.full((2,), 2.0))
    whole("an iterator from outside", lambda x, it: [x * v for v in it][0] + 1, torch.ones(2), [1, 2])

    given = iter([torch.ones(2), torch.full((2,), 2.0), torch.full((2,), 3.0)])

    def two(it):
        return next(it) + next(it)

    got = fusebox.compile(two, fullgraph=True)(given)
    expect(got.tolist() == [3, 3] and next(given).tolist() == [3, 3], "an iterator from outside is advanced as far as it was read")


def test_generators_across_breaks():
    """A break inside a loop over a generator is one break in each turn, whatever the generator is inside of, and turns share their code."""
    def rows(x):
        for k in range(3):
            yield x * k

    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    makers = {"a generator": rows, "zip": lambda x: zip(rows(x), rows(x)), "enumerate": lambda x: enumerate(rows(x)), "map": lambda x: map(torch.sin, rows(x)),
              "parameters": lambda x: net.parameters(), "modules": lambda x: enumerate(net.children())}
    for name, make in makers.items():
        def program(x):
            for item in make(x):
                x = x + len(str(type(item)))
                torch._dynamo.graph_break()
            return x

        _, counts = counted(program, torch.ones(2), calls=3)
        expect(counts["graph_breaks"] <= 4, f"{name}: nothing but graph_break() is a break: {counts}")


def test_leaves_that_are_frozen():
    def step(net, x):
        net.requires_grad_(False)
        y = net(x)
        net.requires_grad_(True)
        return y

    _, counts = counted(step, nn.Linear(2, 2), torch.ones(3, 2, requires_grad=True), calls=3)
    expect(counts["graph_breaks"] == 0 and counts["graphs"] == 1, f"parameters are frozen and thawed in one graph: {counts}")


def test_settings_of_the_process():
    """What a setting is already may be set again."""
    def step(x):
        torch.use_deterministic_algorithms(False)
        torch.set_float32_matmul_precision(torch.get_float32_matmul_precision())
        torch.backends.cudnn.benchmark = False
        torch.set_num_threads(torch.get_num_threads())
        return x + 1

    step(torch.ones(2))
    _, counts = counted(step, torch.ones(2), calls=2)
    expect(counts["graph_breaks"] == 0, f"nothing is changed: {counts}")

    def changes(x):
        torch.backends.cudnn.benchmark = True
        return x * 2

    try:
        _, counts = counted(changes, torch.ones(2), calls=3)
        expect(counts["graph_breaks"] == 1 and torch.backends.cudnn.benchmark, f"changed once, then as it is: {counts}")
    finally:
        torch.backends.cudnn.benchmark = False


def test_rows_that_data_choose():
    def step(scores, table):
        table[scores.argmax()] += 1
        return table * 2

    compiled, before = fusebox.compile(step), fusebox.counters()
    for best in (0, 1, 2, 0):
        table = torch.zeros(3, 2)
        compiled(torch.eye(3)[best], table)
        expect(table.sum(1).tolist() == [2.0 * (k == best) for k in range(3)], f"row {best} is written")
    after = fusebox.counters()
    expect(after["eager_runs"] == before["eager_runs"] and after["graphs"] == before["graphs"] + 1, "the first and second row are no exception")


def test_iterators_that_are_handed_on():
    """What is left of an iterator of itertools when the region ends comes to its caller, as an iterator of the same class."""
    def advanced(iterator, n):
        return [next(iterator) for _ in range(n)], iterator

    makers = {
        "accumulate": lambda v: itertools.accumulate(v), "accumulate a function": lambda v: itertools.accumulate(v, operator.mul, initial=v[0] + 1),
        "compress": lambda v: itertools.compress(v, [1, 0, 1, 1, 0, 1]), "cycle": lambda v: itertools.islice(itertools.cycle(v[:3]), 8),
        "pairwise": lambda v: itertools.pairwise(v), "zip_longest": lambda v: itertools.zip_longest(v, v[:2], fillvalue=0),
        "takewhile": lambda v: itertools.takewhile(lambda t: t is not v[4], v), "filterfalse": lambda v: itertools.filterfalse(lambda t: t is v[1], v)}
    for name, make in makers.items():
        for n in (0, 1, 3):
            def program(x):
                return advanced(make([x * k for k in range(6)]), n)

            fusebox.reset()
            x = torch.randn(3)
            begun, rest = fusebox.compile(program, fullgraph=True)(x)
            expected, others = program(x)
            expect(type(rest) is type(others), f"{name} after {n}: {type(rest)}")
            torch.testing.assert_close((begun, list(rest)), (expected, list(others)), msg=lambda m: f"{name} after {n}: {m}")


def test_deques_from_outside():
    def program(d, x):
        d.appendleft(x)
        last, first = d.pop(), d.popleft()
        d.append(last * 2)
        return first + d.popleft() + last + d[-1], len(d)

    compiled = fusebox.compile(program, fullgraph=True)
    for k in range(3):
        ours = collections.deque([torch.full((2,), 1.0 + i) for i in range(3)], maxlen=4)
        eagers, x = copy.deepcopy(ours), torch.randn(2)
        torch.testing.assert_close(compiled(ours, x), program(eagers, x))
        torch.testing.assert_close(list(ours), list(eagers))
        expect(ours.maxlen == 4, "a deque from outside keeps its length")
    try:
        fusebox.compile(lambda d: d.pop())(collections.deque())
        expect(False, "an empty deque gives something")
    except IndexError:
        pass


def test_ids_of_objects_from_outside():
    """Such an object is guarded to be the one, so that its id is a number and its text known."""
    class Thing:
        pass

    def helper():
        pass

    def program(x, thing, tensor, wanted):
        y = x + 1 if id(thing) == wanted or id(tensor) == wanted else x - 1
        return y, id(thing), id(tensor) // 2, repr(thing), f"{helper}", str(helper)

    things, tensors = [Thing(), Thing()], [torch.ones(1), torch.ones(1)]
    compiled = fusebox.compile(program, fullgraph=True)
    for thing in things:
        for tensor in tensors:
            for wanted in (things[0], tensors[1]):
                ours, eagers = compiled(torch.ones(2), thing, tensor, id(wanted)), program(torch.ones(2), thing, tensor, id(wanted))
                expect(ours[0].tolist() == eagers[0].tolist() and ours[1:] == eagers[1:], f"ids: {ours} instead of {eagers}")
    Thing.__qualname__ = "Renamed"
    expect(compiled(torch.ones(2), things[0], tensors[0], 0)[3] == repr(things[0]), "text of an object whose class has another name since")


def test_index_of_a_deque():
    def program(x, d):
        made = collections.deque([3, "a", x.shape, 3])
        return x * made.index(3, 1) + made.index("a") + d.index(2, -3, 4), made.index(x.shape)

    whole("index of a deque", program, torch.ones(2), collections.deque([2, 1, 2, 5]))


def test_super_without_an_instance():
    class Lone:
        @staticmethod
        def make():
            return super().__init__()

    for compiled in (lambda f: f, fusebox.compile):
        try:
            compiled(lambda o, x: (x + 1, o.make()))(Lone(), torch.ones(1))
            expect(False, "super() without arguments in a static method")
        except RuntimeError as error:
            expect(str(error) == "super(): no arguments", f"super() in a static method: {error}")


def test_warnings_that_are_caught():
    def program(x):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            y = x.sin()
        return y + 1, heard

    before = list(warnings.filters)
    whole("catch_warnings", program, torch.ones(2))
    expect(warnings.filters == before, "filters are as they were")


def test_compiled_and_disabled_inside_compiled():
    def inner(x, k=2):
        return x * k

    whole("torch.compile inside", lambda x: fusebox.compile(inner)(x) + fusebox.compile(inner)(x, 3), torch.ones(2))

    @fusebox.compiler.allow_in_graph
    def opaque(x):
        torch._dynamo.graph_break()
        return x.cos()

    whole("graph_break() where nobody looks for one", lambda x: opaque(x) + 1, torch.ones(2))
    for allow in (fusebox.compiler.allow_in_graph, torch._dynamo.allow_in_graph):
        def made():
            def unseen(x, n):
                return x.cos() * len(sys._getframe().f_locals) * n

            return unseen

        f, other, inside = allow(made()), made(), lambda x, n: f(x + 1, n) + n
        whole("what cannot be followed is called as it is", inside, torch.ones(2), 3)
        g = fusebox.compile(inside, fullgraph=True)
        for n in (2, 3, 5):
            expect(torch.allclose(g(torch.ones(2), n), inside(torch.ones(2), n)), f"with {n}")
        counts = counted(lambda x: other(x + 1, 2) + 1, torch.ones(2))[1]
        expect(counts["graph_breaks"] > 0, f"a function of the same code that nobody marked: {counts}")
    for disable in (fusebox.compiler.disable, torch._dynamo.disable):
        @disable(recursive=False)
        def own(x):
            return inner(x) * 2 + 1

        got, counts = counted(lambda x: own(x + 1) + 1, torch.ones(2))
        expect(got.tolist() == [10, 10] and counts["graphs"] == 3, f"what a disabled function calls is compiled: {counts}")


def test_operators_with_the_name_of_another():
    for schema, write in (("(Tensor x) -> Tensor", False), ("(Tensor(a!) x) -> Tensor", True), ("(Tensor x) -> Tensor", False)):
        with torch.library._scoped_library("fusebox_renamed", "FRAGMENT") as library:
            torch.library.define("fusebox_renamed::twice", schema, lib=library)
            torch.library.impl("fusebox_renamed::twice", "CompositeExplicitAutograd", lambda x: x.add_(1) * 2 if write else x * 2, lib=library)
            torch.library.register_fake("fusebox_renamed::twice", torch.empty_like, lib=library)

            def program(x):
                y = x + 1
                return torch.ops.fusebox_renamed.twice(y), y

            fusebox.reset()
            ours, eagers = fusebox.compile(program)(torch.ones(2)), program(torch.ones(2))
            torch.testing.assert_close(ours, eagers, msg=lambda m: f"an operator {schema}: {m}")


def test_subclasses_of_a_class():
    class Base:
        pass

    class First(Base):
        pass

    def program(x):
        return x * len(Base.__subclasses__()), [c.__name__ for c in Base.__subclasses__()]

    compiled = fusebox.compile(program, fullgraph=True)
    expect(compiled(torch.ones(1)) == (1, ["First"]), "one subclass")

    class Second(Base):
        pass

    expect(compiled(torch.ones(1)) == (2, ["First", "Second"]), "a subclass that was made since")


def test_what_torch_says_of_objects():
    class Likes:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return "asked"

    def kinds(x, o):
        y = torch.empty(2, dtype=torch.float64)
        types = (torch.FloatTensor, torch.DoubleTensor, torch.LongTensor, torch.cuda.FloatTensor)
        return [isinstance(t, c) for t in (x, y, x > 0, 3) for c in types], [torch.overrides.is_tensor_like(v) for v in (x, o, 3)]

    whole("types of tensors", kinds, torch.ones(2), Likes())
    whole("tensors made by their type", lambda x: torch.LongTensor([1, 2]) + torch.HalfTensor([[1.5], [x.shape[0]]]), torch.ones(2))
    whole("a getter that is bound by hand", lambda x, shape: (shape.__get__(x.cos()), x.sin().sum(), shape.__get__(x)), torch.ones(2, 3), torch.Tensor.shape)


def test_tee():
    def program(x):
        first, second = itertools.tee(t * 2 for t in (x, x + 1, x + 2))
        a = next(first)
        three = itertools.tee([x], 3)
        return a, list(second), list(first), len(three), [next(t) for t in three], itertools.tee([x], 0)

    whole("tee", program, torch.randn(3))


def test_generators_that_are_dropped():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    whole("next() of generators inside each other", lambda x: model(x.to(next(model.parameters()).dtype)), torch.ones(2, 3))
    whole("zip of two of them", lambda x: [p + q for p, q in zip(model.parameters(), model.parameters())], torch.ones(2, 3))


def test_modules_that_are_imported_late():
    def f(x):
        return x * 2 if importlib.import_module("this_is_not_there_yet").FLAG else x

    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "this_is_not_there_yet.py").write_text("FLAG = True\n")
        sys.path.insert(0, folder)
        try:
            whole("a module that the region imports", f, torch.ones(2))
            compiled = fusebox.compile(f)
            compiled(torch.ones(2))
            sys.modules["this_is_not_there_yet"].FLAG = False
            torch.testing.assert_close(compiled(torch.ones(2)), torch.ones(2))
        finally:
            sys.path.remove(folder)
            sys.modules.pop("this_is_not_there_yet", None)


def test_types_of_annotations_and_signatures():
    import inspect
    import typing

    def signed(a, b=2, *rest, c=3, **more):
        pass

    def program(x):
        bound = inspect.signature(signed).bind(1, 2, 3, c=4, d=5)
        T = typing.Callable[[float], int]
        return x + 1, bound, bound.args, bound.kwargs, typing.get_args(T), type.__dict__["mro"].__name__

    fusebox.reset()
    ours, eagers = fusebox.compile(program, fullgraph=True)(torch.ones(2)), program(torch.ones(2))
    expect(ours[1:] == eagers[1:] and list(ours[1].signature.parameters) == list(eagers[1].signature.parameters), f"a bound signature: {ours}")


def test_operator_objects():
    pick, name, call = operator.itemgetter(1, 0), operator.attrgetter("T.shape"), operator.methodcaller("mul", 3)

    def f(x):
        a, b = pick((x, x * 2))
        return call(a) + b, name(x)

    whole("operator objects", f, torch.ones(2, 3))
    added = torch.ones(2, 3)
    whole("made inside, with keywords", lambda x: operator.methodcaller("add", x * added, alpha=2)(x) + operator.methodcaller("dim")(x), torch.ones(2, 3))


def test_loop_with_a_break_in_its_body():
    def f(x, n):
        values = []
        for i in range(n):
            x = torch.sin(x) * 2
            values.append(x.sum().item())
        return x, values

    x = torch.linspace(0, 1, 8)
    got, counts = counted(f, x, 40)
    want = f(x, 40)
    torch.testing.assert_close(got, want)
    expect(counts["recompile_limits"] == 0 and counts["graphs"] <= 3, f"range: {counts}")

    def g(items):
        values = []
        for k, (x, y) in enumerate(zip(items, items)):
            values.append((x * y).sum().item())
        return values

    items = [torch.full((4,), float(i)) for i in range(20)]
    got, counts = counted(g, items)
    expect(got == g(items) and counts["recompile_limits"] == 0 and counts["graphs"] <= 3, f"enumerate of zip: {counts}")


def test_calls_beyond_the_limit_compile_nothing():
    """Nor do they ask what compiling asks about the process, which takes longer than a small function."""
    fusebox.reset()
    begun = []
    hear = begun.append
    compiled = fusebox.compile(lambda x, word: x + len(word) if word else x)
    x = torch.ones(3)
    _engine.listen_to_compiling(hear, True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i in range(12):
                torch.testing.assert_close(compiled(x, "w" * i), x + i)
        so_far, limits = len(begun), fusebox.counters()["recompile_limits"]
        for i in range(5):
            torch.testing.assert_close(compiled(x, "v" * i), x + i)
        expect(so_far > 0 and len(begun) == so_far, f"compiling begun {so_far} times, then {len(begun)}")
        expect(fusebox.counters()["recompile_limits"] > limits, "such calls are counted")
    finally:
        _engine.listen_to_compiling(hear, False)


def test_cached_functions():
    calls = []

    @functools.lru_cache
    def table(n):
        calls.append(n)
        return torch.arange(n, dtype=torch.float32)

    f = fusebox.compile(lambda x: x + table(4), fullgraph=True)
    for _ in range(3):
        torch.testing.assert_close(f(torch.ones(4)), torch.ones(4) + torch.arange(4.0))
    expect(calls == [4], f"a cached function ran {len(calls)} times")


def test_what_torch_remembers_is_asked_after_a_write():
    def f(x):
        x.add_(1)
        return x * (2 if torch.get_device_module("cpu").is_available() else 3)

    torch.get_device_module.cache_clear()
    fusebox.reset()
    x = torch.zeros(3)
    torch.testing.assert_close(fusebox.compile(f, fullgraph=True)(x), torch.full((3,), 2.0))
    torch.testing.assert_close(x, torch.ones(3))

    def told(x):
        print("told", end=" ")
        return x * (2 if torch.get_device_module("cpu").is_available() else 3)

    torch.get_device_module.cache_clear()
    whole("after a call that the program makes later", told, torch.ones(3))


class Label(str):
    """Text that compares in Python: C code that reads its characters does not ask it."""

    def __eq__(self, other):
        return str(self).lower() == str(other).lower()

    __hash__ = str.__hash__


def test_text_of_a_class_with_its_own_equality():
    here = {"label": Label("12")}
    digits = lambda x: x + int(here["label"]) + frozenset("123").issuperset(here["label"])
    compiled = fusebox.compile(digits, fullgraph=True)
    for text in ("12", "31", "45"):
        here["label"] = Label(text)
        torch.testing.assert_close(compiled(torch.zeros(2)), digits(torch.zeros(2)))
    keys = lambda x: x + len({Label("a")}.union([Label("A"), "b"]))
    fusebox.reset()
    torch.testing.assert_close(fusebox.compile(keys)(torch.zeros(2)), keys(torch.zeros(2)))


def test_ordered_dicts_from_keys():
    def f(x):
        d = collections.OrderedDict.fromkeys(["b", "a"], x)
        d.move_to_end("b")
        return d, collections.OrderedDict.fromkeys("zy")

    whole("its value by name", lambda x: sum(collections.OrderedDict.fromkeys(["b", "a"], value=x).values()), torch.ones(3))
    whole("all by name", lambda x: sum(collections.OrderedDict.fromkeys(value=x, iterable=["b", "a"]).values()), torch.ones(3))

    whole("OrderedDict.fromkeys", lambda x: sum(f(x)[0].values()), torch.ones(3))
    fusebox.reset()
    made, empty = fusebox.compile(f, fullgraph=True)(torch.ones(3))
    expect(type(made) is collections.OrderedDict and list(made) == ["a", "b"], f"keys, in order: {made}")
    expect(list(empty.items()) == [("z", None), ("y", None)], f"values are None: {empty}")


def test_arrays_of_a_shape():
    array = numpy.arange(12, dtype="float32").reshape(3, 4)
    whole("a shape in a list", lambda a: torch.from_numpy(a.reshape([2, 6]) + numpy.reshape(a, [2, -1])), array)
    whole("another type", lambda a: torch.from_numpy(numpy.ones_like(a, dtype="float64") + numpy.full_like(a, 2.5, dtype=numpy.dtype("float"))), array)
    whole("a value of the data", lambda a: torch.from_numpy(numpy.full_like(a, a[0].sum())), array)


def test_types_that_are_named_after_effects():
    made, log = [0], []

    def doubled(x):
        made[0] += 1
        log.clear()

        def twice(points: typing.Dict[str, typing.List[Point]]) -> typing.Tuple[Point, ...]:
            return tuple(p * 2 for p in points["all"])

        return twice({"all": [x, x + 1]})

    whole("annotations after writes", doubled, torch.ones(3))


def test_attributes_of_classes():
    class Switch:
        on, count = False, 0

        @classmethod
        def turn(cls, value):
            cls.on = value

        def __enter__(self):
            self.before = type(self).on
            self.turn(True)

        def __exit__(self, *error):
            self.turn(self.before)

    class Other(Switch):
        pass

    def f(x):
        with Other():
            x = x * 2 if Other.on and not Switch.on else x
        Switch.count += 1
        return x + Switch.count, Other.on, "on" in vars(Other)

    compiled = fusebox.compile(f, fullgraph=True)
    for kind in range(3):
        got = compiled(torch.ones(2))
        expect(Switch.count == kind + 1, "a count of the class")
        Switch.count -= 1
        torch.testing.assert_close(got, f(torch.ones(2)))
    fusebox.reset()

    def g(x):
        Switch.on = [1]  # made anew in each call
        return x + len(Switch.on)

    expect(fusebox.compile(g)(torch.ones(1)).item() == 2 and Switch.on == [1], "an object that the region makes is given by Python")


def test_pickled_values():
    def key(x, **settings):
        return x + len(pickle.dumps(settings)), pickle.dumps(settings), pickle.dumps((x.shape[0], [1.5, None], {"a": (True, b"b")}), 2)

    whole("pickle.dumps of values", lambda x: key(x), torch.ones(3))
    whole("pickle.dumps of keywords", lambda x: key(x, upper=True, name="a name"), torch.ones(3))
    expect(counted(lambda x: (x, pickle.dumps(("one", "one"))), torch.ones(3))[1]["graph_breaks"] == 1, "pickle says which objects are one")


def test_views_of_dicts_from_outside():
    for kind in (dict, collections.OrderedDict):
        class Holder:
            def __init__(self):
                self.table = kind(a=torch.ones(2), b=torch.full((2,), 3.0))
                self.keys, self.values, self.items = self.table.keys(), self.table.values(), self.table.items()

        def f(x, held):
            named = dict(zip(held.keys, held.values))
            for _, value in held.items:
                x = x + value
            return x * len(held.keys), "a" in held.keys, ",".join(named).startswith("a,b"), next(reversed(held.keys)) == list(named)[-1], x - named["b"]

        held = Holder()
        whole(f"views of a {kind.__name__}", f, torch.ones(2), held)
        compiled = fusebox.compile(f, fullgraph=True)
        compiled(torch.ones(2), held)
        held.table["c"] = torch.ones(2)
        torch.testing.assert_close(compiled(torch.ones(2), held), f(torch.ones(2), held))


def test_lazy_modules():
    """They are set up by their first call, also where it is captured, with the same random numbers."""
    def made():
        torch.manual_seed(3)
        return nn.Sequential(nn.LazyConv1d(4, 3), nn.ReLU(), nn.LazyBatchNorm1d(), nn.Flatten(), nn.LazyLinear(5), nn.Linear(5, 2))

    x = torch.randn(3, 2, 7)
    for forms in (lambda model: lambda x: model(x), lambda model: model):
        eager, model = made(), made()
        fusebox.reset()
        before = fusebox.counters()["graph_breaks"]
        compiled = fusebox.compile(forms(model))
        for seed in range(2):
            results = []
            for call in (compiled, eager):
                torch.manual_seed(seed)
                results.append(call(x))
            torch.testing.assert_close(*results)
        torch.testing.assert_close(model.state_dict(), eager.state_dict())
        expect([type(m) for m in model] == [type(m) for m in eager], "the classes that they become")
        expect(fusebox.counters()["graph_breaks"] == before, "no break")
    # One that the program sets up gets the call's own arguments.
    class Calibrated(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def initialize_parameters(self, pair):
            self.first, self.scale = pair, nn.Parameter(pair["x"].abs().amax())
            self.inner = nn.LazyLinear(2) if pair["deep"] else nn.Identity()

        def forward(self, pair):
            return self.inner(pair["x"] / self.scale)

    for deep in (False, True):
        pair, layer = {"x": torch.randn(3, 4), "deep": deep}, Calibrated()
        got = fusebox.compile(layer, fullgraph=True)(pair)
        torch.testing.assert_close(got, layer(pair))
        expect(layer.first is pair and layer.scale == pair["x"].abs().amax(), "what it keeps of them is theirs")
    # What the program does before the call comes before it.
    def f(x, model, seen):
        seen.append(1)
        return model(torch.nn.functional.dropout(x))

    seen, results = [], []
    for compile in (lambda f: f, fusebox.compile):
        model = made()
        results.append((compile(f)(x, model, seen), [p for p in model.parameters()]))
    torch.testing.assert_close(results[1], results[0])
    expect(seen == [1, 1], "effects once")


def test_modules_of_torch_imported_inside():
    """Modules of PyTorch look at nothing of the program: they are imported while capturing, after writes too. Others are not."""
    names = [name for name in ("torch.utils.mkldnn", "torch.utils.mobile_optimizer", "torch.utils.show_pickle") if name not in sys.modules]
    expect(len(names) > 1, "modules that nobody has imported")

    def f(x, seen):
        seen.append(len(seen))
        module = importlib.import_module(names[0])
        return x * 2, module.__name__, len(seen)

    seen = []
    compiled = fusebox.compile(f, fullgraph=True)
    expect(compiled(torch.ones(1), seen)[1:] == (names[0], 1) and compiled(torch.ones(1), seen)[2] == 2, "a module is imported, and the write stays")
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "imported_after_a_write.py").write_text("import builtins\nseen = list(builtins.seen_by_imports)\n")
        builtins.seen_by_imports = written = []
        sys.path.insert(0, folder)

        def g(x):
            written.append("before")
            import imported_after_a_write
            return x + 1, imported_after_a_write.seen

        try:
            expect(fusebox.compile(g)(torch.ones(1))[1] == ["before"], "a module of the program sees what was written before")
        finally:
            sys.path.remove(folder)
            del builtins.seen_by_imports


def test_ints_of_data_beside_ints():
    def program(x, y):
        n, m = x.tolist()
        return n + y, y * m, y - n, n - y, (y + 1) * x[0].item()

    for y in (torch.arange(3), torch.tensor(5)):
        whole("ints of data beside a tensor of ints", program, torch.tensor([3, 4]), y)


def test_numbers_read_from_constants():
    whole("item() of what is computed from constants", lambda x: x * 2 + (torch.tensor([3, 4]).sum() * 2).item(), torch.ones(4, 2))


def test_compiled_inside_compiled():
    inner = fusebox.compile(lambda x: x * 2)
    layer = fusebox.compile(nn.Linear(3, 3))
    whole("a compiled function inside another", lambda x: inner(x) + layer(x), torch.ones(2, 3))


def test_gradients_that_nobody_asked_for():
    a, b = nn.Linear(3, 2), nn.Linear(3, 2)
    f = fusebox.compile(lambda x: (a(x), b(x)))
    f(torch.ones(1, 3))[0].sum().backward()
    expect(a.weight.grad is not None and b.weight.grad is None, "a parameter behind an unused result gets no gradient")


@torch.jit.script
def scripted(x, factor: int):
    return torch.sin(x) * factor


def test_constants_compared_by_identity():
    class Settings:
        def __init__(self):
            self.name, self.scale, self.sizes = "a name", 0.25, {"width": 1000, "depth": [3, 4]}

    settings = Settings()

    def f(x):
        copied = copy.deepcopy(settings)
        return x * copied.scale + copied.sizes["width"] + len(copied.name) + sum(copied.sizes["depth"])

    whole("deepcopy of settings", f, torch.ones(3))
    fusebox.reset()
    text = "".join(["one ", "text"])
    same = fusebox.compile(lambda x, a, b: x + (1 if a is b else 2))
    expect(same(torch.zeros(1), text, text).item() == 1, "one object")
    expect(same(torch.zeros(1), text, "".join(["one ", "text"])).item() == 2, "an equal one is another object")


def test_sizes_computed_by_torch():
    whole("torch.div of numbers as a size", lambda x: x.view(torch.div(x.size(0), 2, rounding_mode="trunc"), -1) * 2, torch.ones(4, 3))
    whole("torch.div of numbers", lambda x: x + torch.div(7, 2, rounding_mode="floor"), torch.ones(4))
    whole("new_tensor", lambda x: torch.cat([x.new_tensor([-1, 2]), x]), torch.ones(4, dtype=torch.float64))
    whole("new_tensor with a type", lambda x: x.new_tensor([1.5], dtype=torch.float32) * 2, torch.ones(4, dtype=torch.int64))


def test_scripted_function():
    whole("torch.jit.script", lambda x: scripted(x, 3) + 1, torch.ones(3))


def test_derivatives():
    from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
    f, x = lambda t: (t.sin() * t.sum()).sum(), torch.randn(3, 4)
    for what, form in {"grad": grad(f), "gradient of a gradient": grad(lambda t: grad(f)(t).sum()), "per sample": vmap(grad(f)), "hessian": hessian(f),
                       "jacrev": jacrev(torch.sin), "jacfwd": jacfwd(torch.sin), "vjp": lambda t: vjp(torch.sin, t)[1](t),
                       "jvp": lambda t: jvp(torch.sin, (t,), (t,)), "hessian of each": vmap(hessian(f))}.items():
        whole(what, form, x)
    fusebox.reset()
    before = fusebox.counters()["recompiles"]
    each = fusebox.compile(vmap(grad(f)), fullgraph=True)
    for rows in (3, 5, 6, 9):
        each(torch.randn(rows, rows + 1))
    expect(fusebox.counters()["recompiles"] - before <= 2, "sizes under transforms are symbols")


def test_operators_of_python():
    """An operator written in Python comes after what the program wrote, unless its code does nothing but compute."""
    said = []

    @torch.library.custom_op("capture_test::rows", mutates_args=())
    def rows(x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        out, start = torch.zeros_like(x), 0
        for i, end in enumerate(ends.tolist()):
            out[start:end] = x[start:end] * (i + 1)
            start = end
        return out

    @torch.library.custom_op("capture_test::says", mutates_args=())
    def says(x: torch.Tensor) -> torch.Tensor:
        print("operator", len(said))
        return x.clone()

    for op in (rows, says):
        op.register_fake(lambda x, *_: torch.empty_like(x))
    for name, program, breaks in (("rows", lambda x: (said.append(1), rows(x, torch.tensor([1, 3])) + 1)[1], 0), ("says", lambda x: (said.append(1), says(x) + 1)[1], 1)):
        fusebox.reset()
        report = fusebox.explain(program)(torch.ones(4))
        expect(report.graph_break_count == breaks, f"{name} after a write: {report.break_reasons}")
        torch.testing.assert_close(report.result, program(torch.ones(4)))


def test_conditions_of_data():
    """Where one outcome of a condition raises, what data decide is one graph; where both go on, a break."""
    from models.small_programs import conditions

    for script in (conditions.refused_by_a_condition, conditions.asserted_of_data, conditions.checked_numbers_are_sizes,
                   conditions.bools_of_data_are_results, conditions.floats_beside_conditions, conditions.indices_that_were_checked):
        fusebox.reset()
        before = fusebox.counters()
        script(fusebox.compile)
        counts = {k: v - before[k] for k, v in fusebox.counters().items() if isinstance(v, int)}
        expect(counts["graph_breaks"] == 0 and counts["graphs"] == 1 and counts["recompiles"] == 0, f"{script.__name__} is one graph, not {counts}")
    def branches(x):
        return x * 2 if (x > 0).any() else x * 3
    try:
        fusebox.compile(branches, fullgraph=True)(torch.ones(3))
    except fusebox.GraphBreakError as error:
        expect("a condition on a tensor" in str(error), f"the break says what: {error}")
    else:
        expect(False, "a condition with two ways to go on is a break")


def test_greatest_of_tensors():
    def program(x, y):
        return max(x, y), min(x, y, x * y), max(x, 2), min(y, 1.5), max(torch.stack([x, y]))

    for values in ((1.0, 3.0), (4.0, 2.0), (float("nan"), 2.0), (2.0, float("nan"))):
        given = [torch.tensor(v, requires_grad=True) for v in values]
        expected, got = program(*given), fusebox.compile(program, fullgraph=True)(*given)
        expect(all(torch.equal(torch.as_tensor(a).nan_to_num(7), torch.as_tensor(b).nan_to_num(7)) for a, b in zip(expected, got)),
               f"{got} of {values}, where eager has {expected}")
    several = torch.ones(3)
    try:
        fusebox.compile(program, fullgraph=True)(several, several)
        expect(False, "which of several elements is the greater is no question")
    except Exception:
        pass


def test_rows_of_arrays():
    """Going through an array, its real part and numpy(force=True) are no break."""
    import numpy as np

    def rows(a, t):
        total = 0
        for i, row in enumerate(a[:-1].real):
            a[i + 1] += row
            total += row.sum()
        first, *rest = a
        return total, first, len(rest), t.numpy(force=True) + 1

    for n in (3, 4):
        fusebox.reset()
        a, t = np.arange(2.0 * n).reshape(n, 2), torch.ones(n, requires_grad=True)
        got, want = fusebox.compile(rows, fullgraph=True)(a.copy(), t), rows(a.copy(), t)
        expect([np.asarray(g).tolist() for g in got] == [np.asarray(w).tolist() for w in want], f"{got}, not {want}")


def test_numbers_of_numpy_that_change():
    """They are compiled for twice: as a constant, then for any value; ints that a program computes with beside arrays too."""
    import numpy as np
    x, a = torch.arange(4.0), np.arange(4.0)
    programs = (("beside a tensor", lambda n: (x * n + 1, n)), ("beside an array", lambda n: a * n - n), ("as a size", lambda n: x.new_ones(int(n)).sum() + x))
    for name, f in programs:
        for kind in (np.int64, np.int32, np.uint8, np.float32, np.float64):
            if name == "as a size" and not issubclass(kind, np.integer):
                continue
            fusebox.reset()
            compiled, before = fusebox.compile(f), fusebox.counters()["recompiles"]
            for n in (3, 2, 5, 7, 4, 9):
                got, want = compiled(kind(n)), f(kind(n))
                for g, w in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, want))):
                    expect(type(g) is type(w) and g.dtype == w.dtype and np.array_equal(g, w), f"{name}, {kind.__name__}: {g}, not {w}")
            expect(fusebox.counters()["recompiles"] - before == 1, f"{name}, {kind.__name__}: {fusebox.counters()['recompiles'] - before} recompiles")
    for name, f in (("arithmetic", lambda a, n: n - a * n), ("a choice", lambda a, n: np.where(a < n, n, a)), ("in place", lambda a, n: operator.imul(a + 1, n))):
        for dtype in ("int64", "float64", "int32"):
            fusebox.reset()
            compiled, before = fusebox.compile(f, fullgraph=True), fusebox.counters()["recompiles"]
            for n in (3, 2, 5, 7, 4):
                got, want = compiled(np.arange(5).astype(dtype), n), f(np.arange(5).astype(dtype), n)
                expect(got.dtype == want.dtype and np.array_equal(got, want), f"{name}, {dtype}: {got}, not {want}")
            expect(dtype == "int32" or fusebox.counters()["recompiles"] - before == 1, f"{name}, {dtype}: recompiles")


def test_nested_tensors():
    """A nested tensor, given or made inside, is part of one graph, for batches of any lengths; what has no followed form is a named break."""
    from models.small_programs.nested_tensors import jagged
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.LayerNorm(4))
    for name, f in (("layers", model), ("made inside", lambda x: torch.nested.nested_tensor_from_jagged(x.values() * 2, x.offsets()).sin())):
        fusebox.reset()
        before = fusebox.counters()
        compiled = fusebox.compile(f, fullgraph=True)
        for lengths in ([2, 3, 4], [3, 3, 5], [1, 2, 2], [4, 4, 6]):
            x, _, _ = jagged(lengths, 4)
            got, want = compiled(x), f(x)
            torch.testing.assert_close(got.values(), want.values())
            expect(got.shape == want.shape, f"{name}: sizes, the ragged one of the same offsets: {got.shape}, not {want.shape}")
        counts = {k: v - before[k] for k, v in fusebox.counters().items() if isinstance(v, int)}
        expect(counts["recompiles"] <= 1, f"{name}: lengths of sequences are no reason to compile again, {counts}")
    fusebox.reset()
    apart = fusebox.compile(lambda x: x.unbind(), fullgraph=True)
    for lengths in ([2, 3, 4], [3, 2, 5], [6, 2, 2]):
        x, _, _ = jagged(lengths, 4)
        torch.testing.assert_close(apart(x), x.unbind())
    x, _, _ = jagged([2, 3], 4, grad=True)
    for name, f in (("in place", lambda x: x.clone().mul_(2)), ("attention", lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x)),
                    ("strides", lambda x: x.stride())):
        fusebox.reset()
        try:
            fusebox.compile(f, fullgraph=True)(x)
        except fusebox.GraphBreakError as error:
            expect("nested tensor" in str(error), f"{name}: the break says what it is about: {error}")
        else:
            expect(False, f"{name}: is a break")


def test_tensor_subclasses():
    """What a tensor's class answers is one graph, for whole calls and whatever the sizes are; what would reach its dispatcher is a named break."""
    from models.small_programs.tensor_subclasses import Quantised, layer
    fusebox.reset()
    torch.manual_seed(0)
    model = torch.nn.Sequential(layer(8, 16), torch.nn.SiLU(), layer(16, 4))
    compiled = fusebox.compile(model, fullgraph=True)
    before = fusebox.counters()
    for n in (3, 5, 9, 4, 7):
        x = torch.randn(n, 8)
        torch.testing.assert_close(compiled(x), model(x))
    counts = {k: v - before[k] for k, v in fusebox.counters().items() if isinstance(v, int)}
    expect(counts["graphs"] == 2 and counts["recompiles"] == 1, f"one graph, then one for all sizes, not {counts}")
    quantising = fusebox.compile(lambda x, w: torch.nn.functional.linear(Quantised.of(x), w), fullgraph=True)
    w = Quantised.of(torch.randn(4, 8))
    torch.testing.assert_close(quantising(x, w), torch.nn.functional.linear(Quantised.of(x), w))
    from models.small_programs.tensor_subclasses import Paired, Tagged, Units
    with_history = Paired(torch.randn(3, requires_grad=True), torch.zeros(3))
    try:
        fusebox.compile(lambda w: w.exp(), fullgraph=True)(with_history)
    except fusebox.GraphBreakError as error:
        expect("tensor subclass" in str(error), f"the break says what it is about: {error}")
    else:
        expect(False, "parts of a wrapper with a history are a break")

    def parts(f, *args):
        made = f(*args)
        return [type(made).__name__, made.value, made.error, tuple(made.shape), made.stride(), made.is_alias_of(args[0]) if hasattr(made, "is_alias_of") else None]

    pair = Paired(torch.randn(3, 4), torch.rand(3, 4))
    for name, f in (("arithmetic", lambda p: 2 * p + p.abs()), ("a view", lambda p: p.t()[1:].unsqueeze(0)), ("made inside", lambda p: Paired(p.value * 2, p.error) - 1),
                    ("written to", lambda p: p.clone().mul_(3)), ("beside a tensor", lambda p: torch.ones(4) * p)):
        for backend in (None, "eager"):
            fusebox.reset()
            compiled = fusebox.compile(f, fullgraph=True, **({"backend": backend} if backend else {}))
            expect(parts(compiled, pair)[0] == "Paired", f"{name}: a wrapper comes out")
            torch.testing.assert_close(parts(compiled, pair)[1:3], parts(f, pair)[1:3])
            expect(parts(compiled, pair)[3:5] == parts(f, pair)[3:5], f"{name}: sizes and strides")
    view = fusebox.compile(lambda p: p.t(), fullgraph=True)(pair)
    expect(view.untyped_storage()._cdata == pair.untyped_storage()._cdata, "a view has its base's storage")

    tagged = torch.arange(6.0).view(2, 3).as_subclass(Tagged)
    for name, f in (("operators", lambda t: (2 - t) / (t > 1) ** 2), ("an attribute", lambda t: t.T[0]), ("made inside", lambda t: Tagged(t + 1) @ t.mT),
                    ("items", lambda t: sum(row for row in t) * len(t))):
        for backend in (None, "eager"):
            fusebox.reset()
            got = fusebox.compile(f, fullgraph=True, **({"backend": backend} if backend else {}))(tagged)
            expect(type(got) is Tagged, f"{name}: {type(got)}")
            torch.testing.assert_close(got.as_subclass(torch.Tensor), f(tagged).as_subclass(torch.Tensor))
    speed = Units(torch.ones(3), "m")
    got = fusebox.compile(lambda a: torch.cat([a, Units(a.value, "m")]), fullgraph=True)(speed)
    expect(got.unit == "m" and got.value.shape == (6,), "objects that are no tensors answer too")


def test_history_asks_no_class():
    """The history of a view of what was written is made when it is asked for, which sets an attribute of the tensor."""
    asked = []

    class Heard(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(getattr(func, "__name__", "?"))
            return super().__torch_function__(func, types, args, kwargs)

    def f(x, w):
        y = x * w
        v = y[1:]
        v.mul_(2)
        y.t()[2].add_(1)
        return y.sum(), v

    x, w = torch.randn(4, 5).as_subclass(Heard), torch.randn(4, 5, requires_grad=True)
    f(x, w)
    plain = list(asked)
    asked.clear()
    fusebox.compile(f)(x, w)
    expect(asked == plain, f"{asked} against {plain}")


def test_function_modes_left_entered():
    class Noting(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def program(x, mode):
        torch._C._push_on_torch_function_stack(mode)
        return x + 1

    mode = Noting()
    got = fusebox.compile(program, fullgraph=True)(torch.ones(2), mode)
    left = torch._C._pop_torch_function_stack()
    expect(left is mode and got.tolist() == [2, 2] and torch._C._len_torch_function_stack() == 0, "the mode is entered when the frame has returned")


def test_attributes_of_tensors():
    def program(x, y, scale):
        x.partner, x.scale = y + 1, scale
        del x.old
        return x * x.partner * x.scale

    for scale in (3, torch.tensor(2.0)):
        x, other = (torch.arange(4.0) for _ in range(2))
        x.old = other.old = "gone"
        got, want = fusebox.compile(program, fullgraph=True)(x, torch.ones(4), scale), program(other, torch.ones(4), scale)
        torch.testing.assert_close((got, x.partner), (want, other.partner))
        expect(x.scale is scale and not hasattr(x, "old"), "what is written stays")


def test_data_sizes():
    """Sizes that data decide are symbols of one graph, whatever they are; where the program branches on them is a break that says so."""
    mask = lambda n: torch.rand(n) > 0.5
    programs = {
        "mask": (lambda x, m: x[m] * 2, lambda: (torch.randn(9, 3), mask(9))), "nonzero": (lambda x: x.nonzero().float().sum(0), lambda: (torch.randn(5, 6).relu(),)),
        "where": (lambda x, m: x[torch.where(m)[0]].sum(0), lambda: (torch.randn(7, 3), mask(7))),
        "masked_select": (lambda x: torch.masked_select(x, x > 0).exp(), lambda: (torch.randn(12),)),
        "unique": (lambda x: torch.unique(x, return_counts=True), lambda: (torch.randint(0, 5, (20,)),)),
        "repeat_interleave": (lambda x, n: torch.repeat_interleave(x, n, dim=0), lambda: (torch.randn(5, 2), torch.randint(0, 4, (5,)))),
        "item": (lambda x, n: (torch.arange(n.max().item()) * 2, x[: n.max().item()]), lambda: (torch.randn(20), torch.randint(2, 20, (3,)))),
    }
    for what, (f, make) in programs.items():
        fusebox.reset()
        before = fusebox.counters()
        compiled = fusebox.compile(f, fullgraph=True)
        torch.manual_seed(3)
        for _ in range(10):
            args = make()
            torch.testing.assert_close(compiled(*args), f(*args), msg=what)
        counts = {k: v - before[k] for k, v in fusebox.counters().items() if isinstance(v, int)}
        expect(counts["graphs"] == 1 and counts["recompiles"] == 0 and counts["graph_breaks"] == 0, f"{what}: one graph, not {counts}")
        expect(counts["eager_runs"] == 0, f"{what}: nothing runs eagerly")
    fusebox.reset()
    try:
        fusebox.compile(lambda x: x[x > 0].sum() if x[x > 0].shape[0] > 4 else x, fullgraph=True)(torch.randn(20))
    except fusebox.GraphBreakError as error:
        expect("4 < u0" in str(error) and "aten::nonzero" in str(error), f"the break names the decision and the operator: {error}")
    else:
        expect(False, "a branch on what data decide is a break")


def test_variance_of_one_row():
    """Eager warns of it, for which capture stops, but not under fullgraph."""
    f = lambda x: (x.std(0), x.var(0), *torch.std_mean(x, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rows in torch.ones(1, 3), torch.ones(2, 3):
            fusebox.reset()
            torch.testing.assert_close(fusebox.compile(f, fullgraph=True)(rows), f(rows), equal_nan=True)


def test_vmap():
    x, w = torch.randn(4, 5), torch.randn(5)
    whole("vmap", lambda x: torch.vmap(lambda row: row.sin() * 2)(x), x)
    whole("vmap over another axis", lambda x: torch.vmap(lambda c: (c * c).sum(), in_dims=1)(x), x)
    whole("vmap in vmap", lambda x, w: torch.vmap(lambda row: torch.vmap(lambda a: a * w)(row))(x), x, w)
    got, counts = counted(lambda x: torch.vmap(lambda row: row * x.sum().item())(x) + 1, x)
    torch.testing.assert_close(got, x * x.sum().item() + 1)
    expect(counts["graph_breaks"] > 0, "item() of what is not batched is a break")
    expect(torch.vmap(torch.neg)(x).equal(-x), "no level is left behind")


def test_unions_of_types():
    def f(x):
        def inner(g: collections.abc.Callable[[int], bool] | None = None, h: list[int] | int = 1):
            return x + h

        return inner()

    whole("annotations of a function inside", f, torch.ones(2))


def test_embedding_bag():
    weight, indices, offsets = torch.randn(10, 8), torch.randint(0, 10, (12,)), torch.tensor([0, 4, 8])
    for mode in ("sum", "mean", "max"):
        for type in (torch.float32, torch.float64, torch.bfloat16):
            bag = nn.EmbeddingBag(10, 8, mode=mode, dtype=type)
            before = fusebox.counters()["eager_runs"]
            whole(f"EmbeddingBag {mode} {type}", lambda i, o: bag(i, o), indices, offsets)
            expect(fusebox.counters()["eager_runs"] == before, f"EmbeddingBag {mode} {type} ran eagerly")
            fusebox.compile(bag)(indices, offsets).float().sum().backward()


def test_operator_whose_gradient_cannot_be_traced():
    @torch.library.custom_op("fusebox_tests::scaled", mutates_args=())
    def scaled(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a * b

    scaled.register_fake(lambda a, b: torch.empty_like(a))

    def backward(ctx, gradient):
        a, b = ctx.saved_tensors
        return gradient * torch.tensor(b.tolist()), gradient * a

    scaled.register_autograd(backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def f(x):
        y = ((x * 2).sin() + 1).cos() * weight
        return (scaled(y, weight.detach()) * 3).exp().sum()

    x = torch.ones(3)
    got, counts = counted(f, x)
    expect(counts["graph_breaks"] <= 3, f"one break at the operator and those inside it: {counts}")
    got.backward()
    compiled, weight.grad = weight.grad, None
    f(x).backward()
    torch.testing.assert_close(compiled, weight.grad)


def test_tensors_of_inference_mode_are_written():
    def step(cache, at, row):
        cache[at] = row * 2
        cache[:, 0].add_(1)
        return cache.sum(0)

    with torch.inference_mode():
        ours, eagers, row = torch.zeros(4, 3), torch.zeros(4, 3), torch.ones(3)
        compiled = fusebox.compile(step, fullgraph=True)
        for at in (0, 2, 3):
            torch.testing.assert_close(compiled(ours, at, row), step(eagers, at, row))
            torch.testing.assert_close(ours, eagers)


def test_hooks_on_inputs():
    def f(x):
        handle = x.register_hook(lambda g: g * 3)
        y = x.sin()
        handle.remove()
        x.register_hook(lambda g: g + y)
        return y * 2, handle

    grads = []
    for g in (f, fusebox.compile(f, fullgraph=True)):
        x = torch.ones(4, requires_grad=True)
        y, handle = g(x)
        y.sum().backward()
        grads.append(x.grad)
        expect(len(x._backward_hooks) == 1 and isinstance(handle.id, int), "the first is removed")
    torch.testing.assert_close(*grads)
    for asks in (lambda x: x.register_hook(abs).id, lambda x: (x.register_hook(abs), torch.autograd.grad(x.sum(), x))[1]):
        try:
            fusebox.compile(asks, fullgraph=True)(torch.ones(3, requires_grad=True))
            expect(False, "a hook is asked for before it is set")
        except fusebox.GraphBreakError:
            pass


def test_hooks_on_gradients_of_modules():
    def model(heard):
        made = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        for layer in made:
            layer.register_full_backward_hook(lambda m, given, got: heard.append((type(m).__name__, given, got)))
        made[1].register_full_backward_hook(lambda m, given, got: (given[0] * 3,))
        made[2].register_full_backward_pre_hook(lambda m, got: (got[0] + 1,))
        return made

    runs = []
    for compile in (lambda m: m, lambda m: fusebox.compile(m, fullgraph=True)):
        torch.manual_seed(0)
        heard = []
        made = model(heard)
        x = torch.randn(5, 3, requires_grad=True)
        y = compile(made)(x).sin()
        y.sum().backward()
        runs.append((y, x.grad, [p.grad for p in made.parameters()], [h[1:] for h in heard], [h[0] for h in heard]))
    torch.testing.assert_close(runs[0][:-1], runs[1][:-1])
    expect(runs[0][-1] == runs[1][-1] == ["Linear", "Tanh", "Linear"], f"in the order of eager's: {runs[1][-1]}")


def test_a_break_deep_in_calls_counts_once():
    def chosen(x, table):
        return x * table[x.argmax().item()]

    def inner(x, table):
        return chosen(x.sin(), table) + 1

    def outer(x, table):
        return inner(x.cos(), table) * 2

    x, table = torch.ones(3), [2, 3, 4]
    got, counts = counted(outer, x, table)
    torch.testing.assert_close(got, outer(x, table))
    expect(counts["graph_breaks"] == 1, f"a number that an index needs: {counts}")


def test_lists_that_are_written_to_beside_the_one_that_a_loop_goes_through():
    def f(x, rows):
        seen = []
        for i, row in enumerate(reversed(rows)):
            if row.sum() > 3:
                x = x + 1
            seen.append(i)
        return x, seen

    rows = [torch.full((2,), float(i)) for i in range(6)]
    got, counts = counted(f, torch.ones(2), rows)
    torch.testing.assert_close(got, f(torch.ones(2), rows))
    expect(counts["graph_breaks"] <= 4, f"conditions alone are breaks: {counts}")


class Stopping(torch.autograd.Function):
    """Its forward is called by libtorch, since it stops in the middle."""

    @staticmethod
    def forward(ctx, x, k):
        torch._dynamo.graph_break()
        y = x.sin() * k
        place = y.argmax(0)
        ctx.mark_non_differentiable(place)
        ctx.save_for_backward(x, y)
        ctx.k = k
        return y, place

    @staticmethod
    def backward(ctx, g, _):
        x, y = ctx.saved_tensors
        return g * (x.cos() * ctx.k + y), None


def test_what_a_forward_leaves_for_autograd():
    def f(x):
        y, place = Stopping.apply(x * 2, 3)
        return y + place

    runs = []
    for g in (f, fusebox.compile(f)):
        before = fusebox.counters()["graph_breaks"]
        for _ in range(2):
            x = torch.arange(6.0).reshape(3, 2).requires_grad_()
            y = g(x)
            y.sum().backward()
        runs.append((y, x.grad))
    torch.testing.assert_close(*runs)
    expect(fusebox.counters()["graph_breaks"] - before <= 2, "graph_break() and what reads its result are the only breaks")


def test_lazy_modules_that_are_given_a_list():
    fusebox.reset()
    layer, x = SizedByList(), torch.randn(2, 3)
    got = fusebox.compile(lambda parts: layer(parts[:-1]) + 1, fullgraph=True)([x, x, None])
    torch.testing.assert_close(got, x + 1)


def test_named_tuples_that_a_function_defines():
    def f(x):
        pair = collections.namedtuple("pair", ["left", "right"], defaults=(2,))
        made = pair(x.sin())
        return made, made.left * made.right, made._replace(right=x)._asdict()["right"]

    whole("a named tuple", f, torch.ones(3))
    made = fusebox.compile(f)(torch.ones(3))[0]
    expect(type(made).__name__ == "pair" and type(made).__module__ == __name__ and made._fields == ("left", "right") and made.right == 2, f"{made}")


def test_what_cannot_be_traced_is_read_where_it_is_used():
    def mixed(a, x):
        y = x.sin()
        z = a @ y
        return z.cos() + y

    for a in (torch.eye(4).to_sparse_csr(), torch.eye(4).to_sparse()):
        got, counts = counted(mixed, a, torch.ones(4, 2))
        torch.testing.assert_close(got, mixed(a, torch.ones(4, 2)))
        expect((counts["graphs"], counts["graph_breaks"]) == (2, 1), f"one product is a break: {counts}")
    before, x = fusebox.counters(), torch.ones(4, 2)
    torch.testing.assert_close(fusebox.compile(mixed)(torch.eye(4), x), mixed(torch.eye(4), x))
    after = fusebox.counters()
    expect([after[k] - before[k] for k in ("graphs", "graph_breaks")] == [1, 0], f"a dense one in its place is captured: {after}")

    def inner(q):
        return torch.relu(q).dequantize()

    def outer(x):
        return inner(torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)) + 1

    got, counts = counted(outer, torch.randn(5))
    expect(counts["graph_breaks"] <= 2, f"a function of nothing else is left to Python: {counts}")


def test_what_is_not_compiled_is_told():
    @torch.library.custom_op("fusebox_tests::longer", mutates_args=())
    def longer(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x])

    longer.register_fake(lambda x: torch.empty_like(x))
    f = fusebox.compile(lambda x: longer(x * 2) + 1)
    x = torch.ones(3)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        got = [f(x) for _ in range(3)]
    for each in got:
        torch.testing.assert_close(each, torch.full((6,), 3.0))
    told = [str(w.message) for w in said if "fusebox" in str(w.message)]
    expect(len(told) == 1 and "fusebox_tests::longer" in told[0], f"one warning with the operator: {told}")
    fusebox.reset()
    before = fusebox.counters()
    f(x), f(x)
    after = fusebox.counters()
    expect(after["eager_runs"] == before["eager_runs"] and after["graph_breaks"] == before["graph_breaks"] + 1, "from then on a break at the operator")
    fusebox.reset()
    try:
        fusebox.compile(lambda x: longer(x * 2) + 2, fullgraph=True)(x)
        expect(False, "fullgraph=True: no error")
    except fusebox.GraphBreakError as error:
        expect("longer" in str(error), str(error))


def test_arguments_that_share_memory_are_written():
    library = torch.library.Library("fusebox_tests_shared", "FRAGMENT")
    library.define("both(Tensor(a!) x, Tensor(b!) y) -> ()")
    library.define("add_to(Tensor(a!) x, Tensor y) -> None")
    library.define("all(Tensor(a!)[] xs, Tensor y) -> Tensor")

    def both(x, y):
        x.add_(1)
        y.mul_(2)

    def everything(xs, y):
        for x in xs:
            x.add_(y)
        return y * 2

    for name, kernel in (("both", both), ("add_to", lambda x, y: (x.add_(y.sum()), None)[1]), ("all", everything)):
        library.impl(name, torch.compiler.disable(kernel), "CompositeExplicitAutograd")
    ops = torch.ops.fusebox_tests_shared

    def same(what, f, *sizes, dynamic=None):
        fusebox.reset()
        compiled = fusebox.compile(f, fullgraph=True, dynamic=dynamic)
        for size in sizes:
            a, b = (torch.arange(size[0] * size[1], dtype=torch.float32).view(size) for _ in range(2))
            torch.testing.assert_close(compiled(a), f(b), msg=what)
            torch.testing.assert_close(a, b, msg=what)

    for dynamic in (None, True):
        sizes = ((4, 10), (7, 10), (9, 12))
        same("parts of rows", lambda x: (*(p := x.split([4, x.shape[1] - 4], -1)), ops.both(*p), x + 1)[:-1], *sizes, dynamic=dynamic)
        same("the same", lambda x: (ops.both(x[:], x[:]), x * 1)[1], *sizes, dynamic=dynamic)
        same("crossing", lambda x: (a := x[1:3], b := x[:, 2:5], ops.both(a, b), a + 1, b + 1)[:-3], *sizes, dynamic=dynamic)
        same("a result's memory", lambda x: (y := x * 2, ops.both(y[::2], y.t()[1:]), y)[2], *sizes, dynamic=dynamic)
        same("read", lambda x: (ops.add_to(x[1:], x[:-1]), x * 1)[1], *sizes, dynamic=dynamic)
        same("lists", lambda x: (ops.all([x[0], x[:2, 1], x[-1]], x[1, 0]), x * 1), *sizes, dynamic=dynamic)


def test_results_that_nobody_reads():
    @torch.library.custom_op("fusebox_tests::two", mutates_args=())
    def two(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, torch.empty(0)

    two.register_fake(lambda x: (torch.empty_like(x), torch.empty_like(x)))
    before = fusebox.counters()["eager_runs"]
    whole("a result that is not as predicted and not read", lambda x: two(x * 2)[0] * 3, torch.ones(3))
    expect(fusebox.counters()["eager_runs"] == before, "it ran eagerly")



def test_numbers_that_change_are_values_of_the_graph():
    def recompiles(f, *calls):
        fusebox.reset()
        before, compiled = fusebox.counters()["recompiles"], fusebox.compile(f)
        for arguments in calls:
            torch.testing.assert_close(compiled(*arguments), f(*arguments))
        return fusebox.counters()["recompiles"] - before

    x, rates = torch.randn(4, 5), (0.1, 0.2, 0.3, 0.4, 0.5)
    expect(recompiles(lambda x, r: x * r + (1 - r) * x.abs(), *((x, r) for r in rates)) == 1, "arithmetic with a number")
    expect(recompiles(lambda x, r: x.add(x, alpha=-r), *((x, r) for r in rates)) == 1, "a number as a factor")
    expect(recompiles(lambda x, r: x * r if r > 0.25 else x, *((x, r) for r in rates)) == 2, "a number that decides costs an entry for each way")
    expect(recompiles(lambda x, r: x * int(r * 10) + x * round(r * 100), *((x, r) for r in rates)) == 1, "a number that is rounded")
    expect(recompiles(lambda x, r: x * math.sqrt(r) + r**2 / (1 + math.tanh(r)), *((x, r) for r in rates)) == 1, "functions of a number")
    expect(recompiles(lambda x, r: x[: int(r * 10)] * r, *((x, r) for r in rates)) <= 2, "a number that is a size")
    expect(recompiles(lambda x, r: x.half() * r, *((x, r) for r in rates)) == 1, "a number beside float16, within what that holds")
    expect(recompiles(lambda x, r: (r + x.sum().item(), (r - (x > r).sum().item()) / 2), *((x, r) for r in rates)) == 1, "a number beside one that is read")
    for r in 0.0, -1.0, math.inf, math.nan, 1e200, -0.0:  # after entries for others
        compiled = fusebox.compile(lambda x, r: (x * r, r > 0, x + math.atan(r), 1 / (x + 2 + r)))
        for value in (*rates, r):
            (a, b, c, d), (e, f, g, h) = compiled(x, value), (x * value, value > 0, x + math.atan(value), 1 / (x + 2 + value))
            torch.testing.assert_close((a, c, d), (e, g, h), equal_nan=True)
            expect(b is f, f"a comparison of {value}")
    compiled = fusebox.compile(lambda x, r: x * math.sqrt(r))
    for value in rates:
        compiled(x, value)
    try:
        compiled(x, -1.0)
        expect(False, "the root of a negative number raises")
    except ValueError:
        pass
    for make in (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, lr=0.1), lambda p: torch.optim.Adam(p, lr=0.1, foreach=True),
                 lambda p: torch.optim.AdamW(p, lr=0.1, fused=True)):
        fusebox.reset()
        params = [torch.randn(5, 3, requires_grad=True), torch.randn(7, requires_grad=True)]
        optimiser = make(params)
        before, step = fusebox.counters(), fusebox.compile(optimiser.step)
        for rate in rates:
            for p in params:
                p.grad = torch.randn_like(p)
            optimiser.param_groups[0]["lr"] = rate
            step()
        after = fusebox.counters()
        expect(after["recompiles"] - before["recompiles"] <= 2, f"{type(optimiser).__name__}: once for its state, once for the rate")
        expect(after["graphs"] - before["graphs"] <= 3, f"{type(optimiser).__name__}: one graph a step")


def test_sums_of_numbers_that_a_loop_reads():
    def batches():
        for i in range(7):
            yield torch.full((3,), i + 0.5)

    def mean(source):
        total = 0.0
        for x in source:
            total += (x * 2).sum().item()
        return total / 7

    fusebox.reset()
    before, compiled = fusebox.counters(), fusebox.compile(mean)
    for _ in range(2):
        expect(compiled(batches()) == mean(batches()), "the mean")
    after = fusebox.counters()
    expect(after["recompiles"] - before["recompiles"] <= 2, f"a turn of the loop is compiled for every sum: {after}")


def test_a_break_is_told_once():
    def inner(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    def middle(x):
        return inner(x.sin()).cos()

    def outer(x):
        return middle(x * 2) + 1

    def twice(x):
        x = outer(x)
        torch._dynamo.graph_break()
        return inner(x[:2]) - 1

    fusebox.reset()
    since, before = fusebox._engine.latest_event(), fusebox.counters()
    fusebox.compile(twice)(torch.ones(3))
    lines = [event["line"] for event in fusebox._engine.events_since(since) if event["kind"] == "graph_break"]
    first = inner.__code__.co_firstlineno
    expect(lines == [first + 2, twice.__code__.co_firstlineno + 2, first + 2], f"frames around it stop there, too; another call, for other sizes, is another: {lines}")
    after = fusebox.counters()
    expect(after["graph_breaks"] - before["graph_breaks"] == 3, f"{after['graph_breaks'] - before['graph_breaks']} breaks")
    fusebox.compile(middle)(torch.ones(3, 2))
    expect(fusebox.counters()["graph_breaks"] == after["graph_breaks"] + 1, "what is captured again for other sizes stops again")


def test_steps_of_optimizers_are_one_graph_from_the_first():
    def trained(optimizer, compile, **options):
        torch.manual_seed(2)
        params = [torch.randn(5, 3, requires_grad=True), torch.randn(7, requires_grad=True), torch.randn(2, requires_grad=True)]
        groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.02}]
        made, heard = optimizer(groups, lr=0.1, **options), []
        made.register_step_post_hook(lambda *_: heard.append(len(made.state)))
        step = compile(made.step)
        for _ in range(3):
            for p in params[:2]:  # the third has no gradient, and so no state
                p.grad = p.detach().sin()
            step()
        expect(heard == [2, 2, 2], f"{optimizer.__name__}: parameters that have a state after each step: {heard}")
        return [params, [list(made.state[p].values()) for p in params[:2]]]

    optim = torch.optim
    for optimizer, options in ((optim.Adam, {}), (optim.AdamW, {"amsgrad": True}), (optim.Adam, {"foreach": True}), (optim.RMSprop, {"momentum": 0.5}),
                               (optim.NAdam, {}), (optim.Adamax, {}), (optim.Adadelta, {}), (optim.Rprop, {})):
        fusebox.reset()
        want, before = trained(optimizer, lambda f: f, **options), fusebox.counters()
        got = trained(optimizer, lambda f: fusebox.compile(f, fullgraph=True), **options)
        graphs = fusebox.counters()["graphs"] - before["graphs"]
        expect(graphs == 1, f"{optimizer.__name__}: {graphs} graphs")
        torch.testing.assert_close(got, want, msg=lambda m: f"{optimizer.__name__}: {m}")


def test_operators_that_broke_graphs():
    x = torch.randn(4, 5)
    whole("no shape function", lambda a: (a.cummax(0).values, a.logcumsumexp(1), torch.histogram(a, 3).hist), x)
    whole("one_hot", lambda c: nn.functional.one_hot(c, 6) + 1, torch.arange(6).view(2, 3))
    whole("old constructors", lambda a: (torch.Tensor(4, 5).zero_() + a, torch.LongTensor([1, 2]), torch.FloatTensor([[1, 2.5]])), x)
    whole("a size that data decide and a check", lambda a: (p := a.nonzero(), torch._check(p.shape[0] == 20), p * 2)[2], x)
    whole("masked", lambda a, m: (torch.masked.mean(a, 1, mask=m), torch.masked.softmax(a, 1, mask=m[0]), torch.masked.sum(a, mask=None)), x, x > -1)
    whole("a packet", lambda a, i, b: torch.ops.aten.scatter(a, 1, i, b), torch.zeros(2, 3), torch.tensor([[0]]), torch.ones(2, 3))


def test_overloads_that_nobody_named_before():
    library = torch.library.Library("fusebox_tests_named", "FRAGMENT")
    library.define("scaled(Tensor x) -> Tensor")
    library.define("scaled.times(Tensor x, int n) -> Tensor")
    library.impl("scaled", torch.compiler.disable(lambda x: x * 2), "CompositeExplicitAutograd")
    library.impl("scaled.times", torch.compiler.disable(lambda x, n: x * n), "CompositeExplicitAutograd")
    ops = torch.ops.fusebox_tests_named
    whole("an overload", lambda x: ops.scaled.times(x, 3) + ops.scaled.default(x), torch.randn(4))
    expect(fusebox.compile(lambda: hasattr(ops.scaled, "thrice"), fullgraph=True)() is False, "an overload that is not there")


def test_signs_that_are_pending():
    z = torch.randn(5, dtype=torch.complex64)
    for name, x in ("a conjugate", z.conj()), ("its imaginary part", z.conj().imag), ("a negative view", torch._neg_view(z.real.contiguous())):
        whole(name, lambda x: (x * 2, x.sum(), x.conj(), x[1:], x.abs()), x)
    whole("a product of numbers and a gradient", lambda z: torch.autograd.grad((1j * z).real.sum() + (z @ z).abs(), z)[0], z.requires_grad_())


def test_tensors_without_data():
    def program(x):
        plan = torch.empty((4, x.shape[0], 2), dtype=torch.float16, device="meta").transpose(0, 1)
        return plan.sin() + 1, x * plan.shape[0], torch.empty_like(plan)

    for _ in range(2):
        made, scaled, alike = fusebox.compile(program, fullgraph=True)(torch.ones(3))
        expected = program(torch.ones(3))
        for a, b in ((made, expected[0]), (alike, expected[2])):
            expect(a.device.type == "meta" and (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype), f"{a.shape} {a.stride()}")
        torch.testing.assert_close(scaled, expected[1])
    same = fusebox.compile(lambda: [torch.empty(2, device="meta")] * 2, fullgraph=True)()
    expect(same[0] is same[1], "one tensor is one")

    def views():
        plan = torch.empty(6, device="meta")
        return plan, plan.view(2, 3)

    plan, rows = fusebox.compile(views)()
    expect(plan.untyped_storage()._cdata == rows.untyped_storage()._cdata, "views share what there is of memory")


class Reweighted(nn.Module):
    """Makes its weights parameters in each call."""

    def __init__(self):
        super().__init__()
        self.inner, self.weight, self.bias = nn.Linear(4, 3), torch.randn(3, 4), torch.randn(3)

    def forward(self, x):
        self.inner.weight = nn.Parameter(self.weight)
        self.inner.bias = nn.Parameter(self.bias * 2, requires_grad=False)
        self.inner.bias.origin = "here"
        return self.inner(x).relu(), self.inner.weight.requires_grad


def test_parameters_that_are_made():
    module, x = Reweighted(), torch.randn(2, 4)
    with torch.no_grad():
        fusebox.reset()
        compiled, expected = fusebox.compile(module, fullgraph=True), module(x)
        for _ in range(2):
            torch.testing.assert_close(compiled(x), expected)
            made = module.inner.weight, module.inner.bias
            expect([type(p) for p in made] == [nn.Parameter] * 2 and [p.requires_grad for p in made] == [True, False], f"{made}")
            expect(all(p.is_leaf for p in made) and made[1].origin == "here" and made[0].data_ptr() == module.weight.data_ptr(), "as eager makes them")

    def followed(x):
        p = nn.Parameter(x)
        with torch.enable_grad():
            y = (p * 2).sum()
        return p, y

    with torch.no_grad():
        p, y = fusebox.compile(followed)(torch.ones(3))
    y.backward()
    expect(p.grad is not None and p.grad.tolist() == [2, 2, 2], f"its gradient arrives: {p.grad}")


def by_numbers(x, n):
    for i in range(n):
        x = torch.sin(x) * 0.5 + i
    return x * 2


def by_hand(x, n):
    i = 0
    while i < n:
        x, i = x * 0.5 + 1, i + 1
    return x.cos()


def by_parts(x, n):
    kept = [(x * 0.5 + i) for i in range(n)]
    return torch.stack(kept[-2:]) + len(kept)


def in_a_function(x, n):
    return by_hand(x + 1, n) + 1


def in_turns(x, n):
    for i in range(n // 4):
        for j in range(4):
            x = x * 0.5 + i - j
    return x


def test_long_loops():
    for f in (by_numbers, by_hand, by_parts, in_a_function, in_turns):
        x, own = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        fusebox.reset()
        compiled, before = fusebox.compile(f), fusebox.counters()
        expected = f(own, 2_000)
        torch.autograd.backward(expected.sum())
        with fusebox.config.patch(loop_operators=1000):
            for _ in range(2):
                x.grad = None
                got = compiled(x, 2_000)
                torch.autograd.backward(got.sum())
                torch.testing.assert_close((got, x.grad), (expected, own.grad))
        counts = {name: value - before[name] for name, value in fusebox.counters().items()}
        expect(counts["operators"] < 2_000 and counts["graph_breaks"] > 0, f"{f.__name__}: no graph has all turns: {counts}")
        expect(counts["graphs"] <= 8 and counts["recompile_limits"] == 0, f"{f.__name__}: a turn's code serves the others: {counts}")
    with fusebox.config.patch(loop_operators=50):
        whole("a loop that is asked for whole", by_hand, torch.ones(3), 100)
        counts = counted(by_hand, torch.ones(3), 20)[1]
        expect(counts["graphs"] == 1 and counts["graph_breaks"] == 0, f"a short one: {counts}")
        try:
            report = fusebox.explain(by_hand)(torch.ones(3), 100)
            expect(any("the loop at line" in str(r) for r in report.break_reasons), f"{report.break_reasons}")
        finally:
            fusebox.reset()


def test_numbers_of_a_long_loop():
    def f(x, n):
        total = 0
        for i in range(n):
            total += i * i % 7
        return x + total

    got, counts = counted(f, torch.ones(3), 500_000, calls=2)
    expect(torch.equal(got, f(torch.ones(3), 500_000)) and counts["graph_breaks"] > 0, f"Python computes them: {counts}")


def test_many_parts_of_one_result():
    def spent(n):
        def f(x):
            return torch.stack([x * i for i in range(n)])

        fusebox.reset()
        began, x = time.process_time(), torch.ones(4)
        torch.testing.assert_close(fusebox.compile(f)(x), f(x))
        return time.process_time() - began

    few, many = spent(600), spent(2400)
    expect(many < 9 * few + 1, f"kernels that write parts of one tensor are not tried against each other: {few:.2f} s for 600, {many:.2f} s for 2,400")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run(globals())

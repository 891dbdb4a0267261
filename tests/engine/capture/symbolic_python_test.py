"""Python over sizes that are symbols: each construct at several sizes beside eager, types included, and how often it was compiled.

CASES says of each how often at most: once where nothing asks for the number, more often where a branch or the number itself was taken.
Programs that nobody chose are made of random expressions over shapes (`--programs N --seed S` for more of them).
"""

import argparse
import collections
import contextlib
import copy
import dataclasses
import fractions
import functools
import io
import itertools
import math
import operator
import random
import typing

import torch
import torch.nn.functional as F

import fusebox
from checks.script_checks import expect, run

SIZES = ((4, 6), (5, 9), (7, 3), (4, 6), (12, 8), (9, 9), (2, 5))
CASES = []


def case(at_most=1, sizes=SIZES, breaks=0):
    def add(f):
        CASES.append((f, at_most, sizes, breaks))
        return f
    return add


def same(got, want, where):
    """Equal with types, containers included."""
    expect(type(got) is type(want), f"{where}: {type(got).__name__} instead of {type(want).__name__}")
    if isinstance(want, torch.Tensor):
        expect(got.shape == want.shape and got.dtype == want.dtype, f"{where}: {tuple(got.shape)} {got.dtype}, eager {tuple(want.shape)} {want.dtype}")
        if got.shape == want.shape:
            expect(torch.allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True), f"{where}: values")
        for n in got.shape:
            expect(type(n) is int, f"{where}: a size is a {type(n).__name__}")
    elif isinstance(want, (tuple, list)):
        expect(len(got) == len(want), f"{where}: {len(got)} elements, eager {len(want)}")
        for i, (a, b) in enumerate(zip(got, want)):
            same(a, b, f"{where}[{i}]")
    elif isinstance(want, dict):
        expect(list(got) == list(want), f"{where}: keys {list(got)}, eager {list(want)}")
        for k in want:
            expect(type(k) in {type(g) for g in got}, f"{where}: types of keys")
            if k in got:
                same(got[k], want[k], f"{where}[{k!r}]")
    elif dataclasses.is_dataclass(want):
        same(vars(got), vars(want), where)
    elif isinstance(want, float) and want != want:
        expect(got != got, f"{where}: {got!r}, eager nan")
    else:
        expect(got == want, f"{where}: {got!r}, eager {want!r}")


def inputs(a, b):
    g = torch.Generator().manual_seed(a * 100 + b)
    return torch.randn(a, b, generator=g), torch.randn(b, generator=g)


def check(name, f, at_most, sizes, breaks, arguments=inputs):
    fusebox.reset()
    compiled = fusebox.compile(f, dynamic=True)
    before = fusebox.counters()
    for size in sizes:
        where = f"{name} at {size}"
        try:
            want = f(*arguments(*size))
        except Exception as error:
            want = error
        try:
            got = compiled(*arguments(*size))
        except Exception as error:
            got = error
        if isinstance(want, Exception) or isinstance(got, Exception):
            expect(type(got) is type(want) and str(got) == str(want), f"{where}: {got!r}, eager {want!r}")
        else:
            same(got, want, where)
    after = fusebox.counters()
    compiles = 1 + after["recompiles"] - before["recompiles"]
    found = after["graph_breaks"] - before["graph_breaks"]
    expect(compiles <= at_most, f"{name}: compiled {compiles} times, at most {at_most}")
    if breaks is not None:
        expect(found <= breaks * compiles, f"{name}: {found} graph breaks")
    return compiles


# --- what shapes give ---------------------------------------------------------------------------------------------------------

@case()
def shape_queries(x, y):
    return x + 1, x.shape[0], x.size(1), x.size(-1), x.numel(), len(x), x.stride(0), x.dim(), x.ndim, x.nelement()


class Stored:
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return self.rows.shape[0] * 2

    def __iter__(self):
        return iter((self.rows + 1, self.rows - 1))


@case()
def lengths_that_classes_tell(x, y):
    held = Stored(x)
    return x[:, 0] + torch.arange(len(held), len(held) + x.shape[0]), len(held), len(held) // 2 == len(x), bool(held), 1 if held else 2, not held, list(held)


@case()
def shapes_whole(x, y):
    return x * 2, x.shape, x.size(), x.stride(), tuple(x.shape), list(x.shape), x.shape[-2:], x.shape[1:], x.shape[::-1]


@case()
def shape_types(x, y):
    n = x.shape[0]
    return (x + 1, type(n) is int, isinstance(n, int), isinstance(n, (float, int)), isinstance(n, str), type(x.shape) is torch.Size,
            isinstance(x.shape, tuple), type(x.shape[1:]) is torch.Size, type(n).__name__, isinstance(n, typing.Hashable), n.__class__ is int,
            callable(n), issubclass(type(n), int), isinstance(n, torch.SymInt), torch.is_tensor(n))


@case()
def unpacking(x, y):
    a, b = x.shape
    first, *rest = x.shape
    (c, d), e = x.shape, len(y)
    return x.sum(), a, b, first, rest, c, d, e


@case(at_most=2)
def shape_tuples(x, y):
    return (x + 1, x.shape + (3,), (2,) + x.shape, x.shape[:1] + y.shape, x.shape * 2, [*x.shape, 5], (*x.shape, *y.shape), x.shape.numel(),
            torch.Size([x.shape[0], 3]), x.shape == y.shape, x.shape == x.size(), x.shape[1:] == y.shape, len(x.shape))


@case()
def iteration_over_shapes(x, y):
    out = []
    for n in x.shape:
        out.append(n * 2)
    return x + 1, out, [n + 1 for n in x.shape], {i: n for i, n in enumerate(x.shape)}, list(zip(x.shape, y.shape)), [*map(lambda n: n - 1, x.shape)], list(reversed(x.shape))


# --- arithmetic ---------------------------------------------------------------------------------------------------------------

@case()
def arithmetic(x, y):
    a, b = x.shape
    return x + a, a + b, a - b, a * b, a // 2, b % 3, -a, +b, ~a, a + 1, 10 - b, 3 * a, a ** 2, a << 2, a >> 1, a & 3, (a + 7) // 8 * 8, a * True


@case()
def divisions(x, y):
    a, b = x.shape
    return x / a, a // b, a % b, divmod(a, b), a / b, a / 2, 1 / b, 1.0 / a, a * 0.5, a + 0.5, 2.5 - b, -(a / b), float(a), (a / b) * 2 + 1


@case()
def rounded(x, y):
    a, b = x.shape
    return (x + 1, int(a / 2), math.floor(a / b), math.ceil(a / 2), int(a * 0.5), math.ceil(b * 0.75), int(float(b)), math.trunc(a / 3), round(a), int(a), abs(a - 100) + 1,
            math.floor(a), math.ceil(b), int(b // 2.0) if False else 0)


@case()
def functions_of_sizes(x, y):
    a, b = x.shape
    return x + 1, sum(x.shape), math.prod(x.shape), math.prod([a, b, 2]), functools.reduce(operator.mul, x.shape), operator.add(a, 1), operator.index(a), sum([a, b], 10), pow(a, 2)


@case(at_most=4)
def extremes(x, y):
    a, b = x.shape
    return x + 1, max(a, b), min(a, b), max(x.shape), min(a, 100), max([a, b, 3]), sorted(x.shape), abs(a - b), torch.sym_max(a, b), torch.sym_min(a, 5)


@case(at_most=7)
def numbers_that_are_needed(x, y):
    a, b = x.shape
    return x + 1, math.sqrt(a), math.gcd(a, 12), a | 1, a ^ 3, 2 ** a, hash(a) == hash(int(a)), a.bit_length(), math.log2(a), b ** 0.5, a ** -1, math.isqrt(b), bin(a), complex(a)


# --- decisions ----------------------------------------------------------------------------------------------------------------

@case(at_most=2)
def branch(x, y):
    if x.shape[0] > 6:
        return x * 2, "large"
    return x - 1, "small"


@case(at_most=2)
def branch_on_equality(x, y):
    return (x + 1, 1) if x.shape[0] == x.shape[1] else (x + 2, 2)


@case(at_most=6)
def chained_comparisons(x, y):
    a, b = x.shape
    return x + 1, 3 < a < 8, a <= b, a != b, not a, a and b, a or b, bool(a), a > 2.5, a < 6.5, a == 4.0, a == "a", a is None, a is not None, a != None  # noqa: E711


@case(at_most=3)
def parity(x, y):
    return x[::2] if x.shape[0] % 2 == 0 else x[1::2]


@case()
def torch_checks(x, y):
    a, b = x.shape
    torch._check(a > 0)
    torch._check(a < 1000, lambda: "too large")
    assert a >= 2, f"{a} rows"
    assert x.shape[1] == y.shape[0]
    return x + y, torch.sym_int(a / 2), torch.sym_float(a), torch.sym_not(a > 1000)


@case(at_most=6)
def membership(x, y):
    return x + 1, x.shape[0] in (4, 5), x.shape[0] not in [1, 1000], 1000 in x.shape


@case(at_most=2)
def conditional_expression(x, y):
    n = x.shape[0] if x.shape[0] < 8 else 8
    return x[:n], n


@case(at_most=3)
def matching(x, y):
    match x.shape:
        case [4, n]:
            return x + 1, n
        case [int(a), b]:
            return x - 1, a, b


# --- the number itself --------------------------------------------------------------------------------------------------------

@case(at_most=7)
def text(x, y):
    a, b = x.shape
    return x + 1, f"{a}", f"{a:>5}|{b!r}", str(a), "%d of %s" % (a, b), "{} {:03d}".format(a, b), repr(a), str(x.shape), f"{x.shape}", str([a])


@case(at_most=7)
def keys(x, y):
    a, b = x.shape
    d = {a: "rows", b: "columns"}
    return x + 1, d, d[a], {4: 1, 5: 2}.get(a), a in {4, 7}, {a, b} == {a, b}, {x.shape: 1}[x.shape], set([a]), d.get(1000)


TABLE = {4: "four", (5, 9): "pair", torch.Size([7, 3]): "shape"}


@case(at_most=7)
def keys_of_a_table(x, y):
    a, b = x.shape
    return x + 1, TABLE.get(a), (a, b) in TABLE, TABLE.get(x.shape), TABLE.get((a, b), a), a in TABLE


@case()
def started_at_sizes(x, y):
    return x + 1, list(enumerate("abc", x.shape[0])), next(itertools.count(x.shape[1])), [n for n, _ in zip(itertools.repeat(x.shape[0]), "ab")]


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.n = n
        ctx.rows = x.shape[0]
        return x * n

    @staticmethod
    def backward(ctx, g):
        return g * ctx.n + ctx.rows, None


@case(breaks=None, at_most=3)
def autograd_functions(x, y):
    x = x.detach().requires_grad_()
    out = Scale.apply(x, x.shape[1])
    return out.detach(), torch.autograd.grad(out.sum(), x)[0]


@case(at_most=7)
def positions(x, y):
    a, b = x.shape
    items = list(range(20))
    return x + 1, items[a], items[:b], items[a:], "abcdefghijklmnop"[a], [0] * a, (1, 2) * b, list(range(a)), items[-b:], "ab" * a, bytes(a), items.pop(a), items.insert(b, 7), items


@case(at_most=7)
def loops(x, y):
    total = x.new_zeros(())
    for i in range(x.shape[0]):
        total = total + x[i].sum() * i
    return total, [i for i in range(x.shape[1])]


@case(at_most=7)
def attributes_of_ints(x, y):
    n = x.shape[0]
    return x + 1, n.real, n.numerator, n.denominator, n.imag, n.bit_length(), n.__add__(1), n.conjugate(), n.to_bytes(2, "little"), n.__index__()


@functools.lru_cache
def remembered(n):
    return n * 3


@case(at_most=7)
def caches(x, y):
    return x + remembered(x.shape[0]), remembered(2)


@case(at_most=7)
def other_types(x, y):
    a = x.shape[0]
    return x + 1, a + 1j, a * (1 + 2j), fractions.Fraction(a, 3), a == 4 + 0j, a + fractions.Fraction(1, 2)


@case(at_most=7)
def errors(x, y):
    a = x.shape[0]
    made = []
    for wrong in (lambda: a + "s", lambda: a[0], lambda: len(a), lambda: a(), lambda: iter(a), lambda: a < "s", lambda: a // 0, lambda: a / 0, lambda: a % 0,
                  lambda: a.nothing, lambda: [1][a], lambda: a @ a, lambda: int("x" * 2, a)):
        try:
            wrong()
        except Exception as error:
            made.append((type(error).__name__, str(error)))
    return x + 1, made


# --- tensors made with sizes --------------------------------------------------------------------------------------------------

@case()
def scalar_operands(x, y):
    a, b = x.shape
    return x * a, a * x, x / b, b / x, x - a, a - x, x + a * b, x ** 2 / a, x % b, x == a, a < x, x.clone().add_(b), torch.add(x, a, alpha=b), torch.mul(x, a)


@case(at_most=7)
def divided_downwards(x, y):
    return x // x.shape[0], x // (x.shape[1] / 2)


@case()
def views(x, y):
    a, b = x.shape
    return (x.view(a * b), x.reshape(b, a), x.view(-1), x.view(a, 1, b), x.unsqueeze(0).expand(3, a, b), y.expand(a, -1), x.flatten(), x.reshape(x.shape), x.view(x.size(0), -1),
            x.permute(1, 0), x.t().reshape(-1, a), x.view(*x.shape, 1), y.view(1, b).repeat(a, 1), x.unflatten(1, (b, 1)))


@case()
def factories(x, y):
    a, b = x.shape
    return (torch.zeros(a, b), torch.ones((b, a)), torch.full((a,), 2.5), torch.arange(a), torch.arange(1, b + 1), torch.empty(a, b).fill_(1.0), x.new_zeros(b), x.new_ones(a, 2),
            torch.eye(a), torch.zeros(x.shape), torch.zeros_like(x), torch.ones(*x.shape), torch.full((a, b), 1.0).sum())


@case(at_most=2)
def slices(x, y):
    a, b = x.shape
    n = a // 2
    return x[:n], x[n:], x[1:a], x[:, : b - 1], x[: a - 1, 1:], x.narrow(0, 0, n), x[n], x[-1], x[..., b // 2], x[:, None, :n], torch.split(x, a - 1)[0]


@case()
def padding(x, y):
    a, b = x.shape
    return F.pad(x, (0, 1)), F.pad(x, (a, 2)), F.pad(x, (0, (8 - b % 8) % 8)), torch.cat([x, x.new_zeros(a, 3)], dim=1)


@case()
def masks(x, y):
    a, b = x.shape
    causal = torch.ones(a, a, dtype=torch.bool).tril()
    positions = torch.arange(a)[:, None] - torch.arange(b)[None, :]
    return causal, positions, torch.where(positions > 0, x, y), (torch.arange(b) < b - 1).float() * y


@case(at_most=7)
def writes_to_slices(x, y):
    a, b = x.shape
    out = torch.zeros(a + 1, b)
    out[:a] = x
    out[a, : b - 1] = 1.0
    out[0] = a
    return out


# --- where ints go ------------------------------------------------------------------------------------------------------------

class Holder:
    def __init__(self):
        self.n, self.sizes, self.log = 0, [], {}


@case()
def written_attributes(x, y):
    h = Holder()
    h.n = x.shape[0] * 2
    h.sizes.append(x.shape[1])
    h.log["shape"] = x.shape
    return x + h.n, h.n, h.sizes, h.log


@dataclasses.dataclass
class Result:
    out: torch.Tensor
    rows: int
    ratio: float


Pair = collections.namedtuple("Pair", "a b")


@case()
def returned_in_objects(x, y):
    a, b = x.shape
    return Result(x + 1, a, a / b), Pair(a, b), {"rows": a, "nested": [(a, {"b": b})]}, slice(0, a), collections.OrderedDict(a=a), collections.deque([a, b])


@case()
def closures(x, y):
    n = x.shape[0]

    def scale(t):
        return t * n

    return scale(x), functools.partial(operator.add, n)(1), (lambda m=n: m + 1)()


@case(breaks=1, at_most=2)
def across_a_break(x, y):
    n = x.shape[0] * 3
    sizes = x.shape
    z = x + 1
    torch._dynamo.graph_break()
    return z * n, n, type(n) is int, sizes, type(sizes) is torch.Size, isinstance(sizes[0], torch.SymInt)


@case(at_most=2)
def generators(x, y):
    def sizes():
        yield x.shape[0]
        yield from x.shape
    return x + 1, list(sizes()), max(n for n in sizes()) >= 2, all(n > 1 for n in x.shape), any(n > 1000 for n in x.shape)


@case()
def copied(x, y):
    return x + 1, copy.copy(x.shape[0]), copy.deepcopy([x.shape[0]]), list(itertools.chain(x.shape, y.shape)), [*itertools.product(x.shape, [1])]


@case(breaks=None, at_most=7)
def raised(x, y):
    if x.shape[0] == 5:
        raise ValueError("five rows", x.shape[0])
    return x + 1


# --- writes to what exists, and output ----------------------------------------------------------------------------------------

def test_written_outside():
    holder, seen = [Holder(), Holder()], [{}, {}]

    def f(h, d, x):
        h.n = x.shape[0]
        h.sizes.append(x.shape[1] + 1)
        d["size"] = x.shape
        d["ratio"] = x.shape[0] / x.shape[1]
        return x * h.n

    fusebox.reset()
    before = fusebox.counters()["recompiles"]
    compiled = fusebox.compile(f, dynamic=True)
    for size in SIZES:
        x, _ = inputs(*size)
        same(compiled(holder[0], seen[0], x), f(holder[1], seen[1], x), f"written outside at {size}")
        same(vars(holder[0]), vars(holder[1]), f"written outside at {size}, attributes")
        same(seen[0], seen[1], f"written outside at {size}, dict")
    expect(fusebox.counters()["recompiles"] - before <= 1, "written outside: compiled too often")


def test_printed():
    def f(x):
        print("rows", x.shape[0], x.shape, [x.shape[1] * 2], x.shape[0] / 4)
        return x + 1

    fusebox.reset()
    before = fusebox.counters()["recompiles"]
    compiled = fusebox.compile(f, dynamic=True)
    for size in SIZES:
        x, _ = inputs(*size)
        texts = []
        for function in (compiled, f):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                function(x)
            texts.append(out.getvalue())
        expect(texts[0] == texts[1], f"printed at {size}: {texts[0]!r}, eager {texts[1]!r}")
    expect(fusebox.counters()["recompiles"] - before <= 0, "printed: compiled too often")


def test_ints_as_arguments():
    def f(x, n, sizes):
        return x * n + sizes[1], n * 2, n // 3, x[:n], type(n) is int, sizes, n / 2

    fusebox.reset()
    before = fusebox.counters()["recompiles"]
    compiled = fusebox.compile(f, dynamic=True)
    for n in (3, 5, 8, 3, 21):
        x = torch.arange(30.0)
        same(compiled(x, n, [n + 1, n * 7]), f(x, n, [n + 1, n * 7]), f"ints as arguments, {n}")
    expect(fusebox.counters()["recompiles"] - before <= 1, "ints as arguments: compiled too often")


def test_tuples_of_ints():
    def f(x, sizes, shape):
        return x.view(sizes) * sizes[0], sizes, shape, sizes[1] * 2, sizes + (1,), shape[:1], x.reshape(shape).sum(), sizes == (4, 6)

    fusebox.reset()
    before = fusebox.counters()["recompiles"]
    compiled = fusebox.compile(f, dynamic=True)
    for a, b in SIZES:
        sizes, shape, x = (a, b), torch.Size([b, a]), torch.arange(float(a * b))
        got = compiled(x, sizes, shape)
        same(got, f(x, sizes, shape), f"tuples of ints, {a} {b}")
        expect(got[1] is sizes and got[2] is shape, f"tuples of ints, {a} {b}: another object is given back")
    expect(fusebox.counters()["recompiles"] - before <= 4, "tuples of ints: compiled too often")


def test_positions_beyond_the_end():
    def f(x, n):
        return x[n], x[:n], x[n:], x[-n]

    fusebox.reset()
    compiled = fusebox.compile(f, dynamic=True)
    x = torch.arange(30.0).reshape(10, 3)
    for n in (2, 5, 9, 3, 10, 12, 1, 0, -1, -3, -10, -11, 4):
        try:
            want = f(x, n)
        except IndexError as error:
            want = error
        try:
            got = compiled(x, n)
        except IndexError as error:
            got = error
        if isinstance(want, IndexError):
            expect(isinstance(got, IndexError) and str(got) == str(want), f"position {n}: {got!r}, eager {want!r}")
        else:
            same(got, want, f"position {n}")


# --- programs that nobody chose -----------------------------------------------------------------------------------------------

def expression(r, depth):
    if depth == 0 or r.random() < 0.15:
        return r.choice("abc") if r.random() < 0.75 else str(r.choice([0, 1, 2, 3, 4, 7, 8, 16, -1, -3, 0.5, 2.0]))
    e = lambda: expression(r, depth - 1)  # noqa: E731
    forms = (lambda: f"({e()} {r.choice('+-*+-*')} {e()})", lambda: f"({e()} // {e()})", lambda: f"({e()} % {e()})", lambda: f"({e()} / {e()})", lambda: f"(-{e()})",
             lambda: f"abs({e()})", lambda: f"int({e()})", lambda: f"math.floor({e()})", lambda: f"max({e()}, {e()})", lambda: f"min({e()}, {e()})",
             lambda: f"({e()} if {e()} {r.choice(['<', '<=', '==', '!=', '>', '>='])} {e()} else {e()})", lambda: f"sum([{e()}, {e()}])", lambda: f"divmod({e()}, {e()})[{r.choice('01')}]",
             lambda: f"({e()} and {e()})", lambda: f"(not {e()})", lambda: f"(a, b, c)[int({e()}) % 3]", lambda: f"len(str({e()}))", lambda: f"(int({e()}) << 1)", lambda: f"math.ceil({e()})")
    weights = (9, 2, 2, 2, 1, 1, 2, 1, 1, 1, 3, 1, 1, 1, 1, 0.3, 0.2, 0.5, 1)
    return r.choices(forms, weights)[0]()


def program(seed):
    """A function of two tensors over random integer expressions of their sizes."""
    r = random.Random(seed)
    lines = ["def f(x, y):", "    a, b = x.shape", "    c = y.shape[0] + a"]
    for i in range(r.randint(1, 3)):
        lines.append(f"    {r.choice('abc')} = {expression(r, r.randint(1, 3))}")
    lines.append(f"    if {expression(r, 2)} {r.choice(['<', '==', '>='])} {expression(r, 1)}:")
    lines.append(f"        {r.choice('abc')} = {expression(r, 2)}")
    lines.append(f"    z = x * {r.choice('abc')} + {r.choice('abc')}")
    lines.append("    w = torch.zeros(min(max(int(a), 1), 50), x.shape[0]) + 1")
    lines.append("    return z, w, a, b, c, type(a) is int, (a, [b])")
    namespace = {"torch": torch, "math": math}
    text = "\n".join(lines)
    exec(compile(text, f"<program {seed}>", "exec"), namespace)
    return namespace["f"], text


def random_programs(first, count):
    for seed in range(first, first + count):
        f, text = program(seed)
        r = random.Random(seed)
        sizes = [(r.randint(2, 12), r.randint(2, 12)) for _ in range(4)] + [(1, 3)]
        check(f"program {seed}\n{text}\n", f, 5, sizes, None)


def constructs(only=()):
    for f, at_most, sizes, breaks in CASES:
        if not only or f.__name__ in only:
            compiles = check(f.__name__, f, at_most, sizes, breaks)
            if only:
                print(f.__name__, compiles, "compiles")


# --- counters of classes --------------------------------------------------------------------------------------------------------

class Counted:
    made, total = 2, 0.5

    def __init__(self):
        type(self).made += 1


class CountedToo(Counted):
    pass


class CountingModule(torch.nn.Module):
    calls = 2

    def forward(self, x):
        CountingModule.calls += x.shape[0]
        return x * self.calls


def check_class(name, f, at_most=2, calls=8):
    """Every call beside eager, with the numbers of the classes as each has left them."""
    worlds = []
    for compiled in (False, True):
        Counted.made, Counted.total, CountingModule.calls = 2, 0.5, 2
        if "made" in vars(CountedToo):
            del CountedToo.made
        fusebox.reset()
        g, before, seen = fusebox.compile(f) if compiled else f, fusebox.counters()["graphs"], []
        for n in range(calls):
            seen.append((g(torch.ones(3, 2) * n, n), Counted.made, Counted.total, CountingModule.calls))
        worlds.append(seen)
    same(worlds[1], worlds[0], name)
    graphs = fusebox.counters()["graphs"] - before
    expect(graphs <= at_most, f"{name}: {graphs} graphs, at most {at_most}")


def test_counters_of_classes():
    module = CountingModule()
    check_class("of a module", lambda x, n: module(x))
    check_class("of instances", lambda x, n: (x * Counted().made, CountedToo().made), at_most=3)
    check_class("read through a subclass", lambda x, n: x * CountedToo.made + CountedToo.__dict__.get("made", n))

    def decays(x, n):
        Counted.total *= 0.9
        return x * Counted.total

    def written_first(x, n):
        Counted.made = x.shape[0] + n
        return x * CountedToo.made

    def through_super(x, n):
        Counted.made += 1
        return x * super(CountedToo, CountedToo).made

    def branches(x, n):
        Counted.made += 1
        return x * 2 if Counted.made % 2 else x + 1

    for f, at_most in (decays, 2), (written_first, 2), (through_super, 2), (branches, 3):
        check_class(f.__name__, f, at_most)


RATES = {"lr": 0.5}
STATE = type("State", (), {})()


def test_numbers_of_objects_in_globals():
    """Counters and rates that a program keeps beside its functions, and a scheduler's beside its optimizer."""
    def counts(x, n):
        STATE.steps += 1
        return x + 1 if STATE.steps == 3 else x * STATE.steps

    def negated(x, n):
        y = x * -RATES["lr"]
        RATES["lr"] = RATES["lr"] * 0.9
        return y

    def negated_and_kept(x, n):
        RATES["minus"] = -RATES["lr"]
        return x * n

    weight = torch.nn.Parameter(torch.ones(3))

    def scheduled(x, n):
        STATE.optimizer.step()
        STATE.scheduler.step()
        return weight.detach().clone()

    for f, at_most in (counts, 3), (negated, 2), (negated_and_kept, 2), (scheduled, 3):
        worlds = []
        for compiled in (False, True):
            STATE.steps, RATES["lr"] = 4, 0.5
            with torch.no_grad():
                weight.fill_(1)
            weight.grad = torch.ones(3)
            STATE.optimizer = torch.optim.SGD([weight], 0.1)
            STATE.scheduler = torch.optim.lr_scheduler.ExponentialLR(STATE.optimizer, 0.9)
            fusebox.reset()
            g, before, seen = fusebox.compile(f) if compiled else f, fusebox.counters()["graphs"], []
            for n in range(9):
                RATES["lr"] *= 0.97
                seen.append((g(torch.ones(3), 2), STATE.steps, dict(RATES), STATE.optimizer.param_groups[0]["lr"], STATE.scheduler.last_epoch))
            worlds.append(seen)
        same(worlds[1], worlds[0], f.__name__)
        graphs = fusebox.counters()["graphs"] - before
        expect(graphs <= at_most, f"{f.__name__}: {graphs} graphs, at most {at_most}")


def test_counters_in_lists():
    """Elements of a list that was written to are read: those that changed are no constants."""
    def counts(x, n, state=[0, 5, 2.5]):
        state[0] += 1
        state[1], state[-1] = state[0] + state[1], state[2] * 0.5
        return x * state[0] + state[1] + state[2]

    def whole(x, n, state=[3, 4]):
        state[0] = n
        return x * sum(state) + len(state)

    def moved(x, n, state=[3, 4, 5]):
        state[0] += 1
        state.insert(0, state.pop())
        return x * state[0] + state[1]

    for f, at_most in (counts, 2), (whole, 8), (moved, 8):
        defaults, worlds = f.__defaults__, []
        for compiled in (False, True):
            f.__defaults__ = copy.deepcopy(defaults)
            fusebox.reset()
            g, before = fusebox.compile(f) if compiled else f, fusebox.counters()["graphs"]
            worlds.append([(g(torch.ones(2) * n, n), list(f.__defaults__[0])) for n in range(6)])
        same(worlds[1], worlds[0], f.__name__)
        graphs = fusebox.counters()["graphs"] - before
        expect(graphs <= at_most, f"{f.__name__}: {graphs} graphs")


def test_class_attribute_becomes_another():
    """A number that is followed by what is none, and one that a subclass has from some call on."""
    def f(x):
        return x * CountedToo().value

    Counted.value = 2
    try:
        compiled, x = fusebox.compile(f), torch.ones(3)
        for value in 2, 3, 4, 2.5, property(lambda self: 7), 5, True:
            Counted.value = value
            same(compiled(x), f(x), f"of the base {value}")
        CountedToo.value = 11
        same(compiled(x), f(x), "of the class")
        Counted.value = 12
        same(compiled(x), f(x), "of the class, still")
        del CountedToo.value
        same(compiled(x), f(x), "of the base again")
    finally:
        del Counted.value


# --- under transforms -----------------------------------------------------------------------------------------------------------

def test_composites_under_transforms():
    """Composite operators whose kernels read sizes as numbers: once for all sizes, whatever the level holds."""
    from torch.func import grad, jacrev, jvp, vmap

    def squared(f):
        return lambda t: f(t).pow(2).sum()

    bodies = {
        "interpolate": lambda t: F.interpolate(t[None], scale_factor=2.0),
        "probabilities": lambda t: F.cross_entropy(t, t.softmax(-1), weight=torch.arange(1.0, t.shape[1] + 1), label_smoothing=0.1),
        "probabilities, each": lambda t: F.cross_entropy(t, t.softmax(-1), reduction="none"),
        "dropout": lambda t: F.dropout(t, 0.0) + F.dropout(t, 1.0),
        "unsafe_chunk": lambda t: t.unsafe_chunk(2, 1)[0] * 2,
        "take_along_dim": lambda t: torch.take_along_dim(t, t.argsort(-1), -1),
        "kron": lambda t: torch.kron(t, t),
        "block_diag": lambda t: torch.block_diag(t, t),
        "matmul": lambda t: t.reshape(1, 3, -1) @ t.T,
    }
    rules = {"interpolate", "unsafe_chunk", "take_along_dim", "block_diag"}  # those for batches take some of their sizes as numbers
    for name, body in bodies.items():
        each = vmap(grad(squared(body)), randomness="different")
        compare_sizes(f"{name}, grad", grad(squared(body)), at_most=3)
        compare_sizes(f"{name}, vmap", lambda x: vmap(body, randomness="different")(torch.stack([x, x * 2])), 4 if name in rules else 2)
        compare_sizes(f"{name}, vmap of grad", lambda x: each(torch.stack([x, x * 2])), 4 if name in rules else 2)
    compare_sizes("kron, jacrev", lambda x: jacrev(lambda t: torch.kron(t, t))(x[0]))
    for name, f in {"norm": lambda t: t.norm(dim=0), "std": lambda t: t.std(0), "normalize": lambda t: F.normalize(t, dim=-1),
                    "layer_norm": lambda t: F.layer_norm(t, (t.shape[-1],)), "group_norm": lambda t: F.group_norm(t[None], 3), "batch_norm": lambda t: F.batch_norm(t, None, None, training=True)}.items():
        compare_sizes(f"{name}, jvp", lambda x: jvp(f, (x.double(),), (x.double().cos(),)))  # rounding apart


def compare_sizes(name, f, at_most=2):
    fusebox.reset()
    compiled, before = fusebox.compile(f), fusebox.counters()["graphs"]
    for n in 4, 6, 8, 10:
        x = torch.randn(3, n, generator=torch.Generator().manual_seed(n))
        same(compiled(x), f(x), f"{name} at {n}")
    graphs = fusebox.counters()["graphs"] - before
    expect(graphs <= at_most, f"{name}: {graphs} graphs, at most {at_most}")


def test_constructs():
    constructs()


def test_random_programs():
    random_programs(OPTIONS.seed * 1000003, OPTIONS.programs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=(), help="of CASES; says how often each is compiled")
    OPTIONS = parser.parse_args()
    run({"test_only": lambda: constructs(OPTIONS.only)} if OPTIONS.only else globals())

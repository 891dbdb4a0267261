"""Small programs, each compiled against eager on random inputs, whole and with a break forced at every k-th instruction.

A program is a function with a maker of inputs, drawn anew for every call, or a script of `small_programs`, which compiles what
it likes itself. Results, printed output, raised errors and what was written to objects outside must all be equal.
"""

import argparse
import collections
import contextlib
import dataclasses
import functools
import io
import math
import os
import random
import subprocess
import sys
import tempfile
import warnings
from typing import NamedTuple

import numpy
import torch
import torch.nn.functional as F
from torch import nn

import fusebox
from models import small_programs

PROGRAMS = []


def program(make_args=lambda: (torch.randn(4, 5), torch.randn(4, 5))):
    def add(f):
        PROGRAMS.append((f, make_args))
        return f
    return add


@program()
def arithmetic(x, y):
    return (x + y * 2 - x / (y.abs() + 1)) ** 2


@program()
def branches_on_constants(x, y, flag=True):
    if flag and x.shape[0] == 4:
        x = x + 1
    else:
        x = x - 1
    return x if y.ndim == 2 else y


@program()
def branch_on_data(x, y):
    if x.sum() > 0:
        return x + y
    return x - y


@program()
def item_in_the_middle(x, y):
    s = (x * y).sum().item()
    return (x + s).relu(), s


@program()
def loops_and_lists(x, y):
    parts = []
    for i, row in enumerate(x):
        parts.append(row * i + y[i])
    total = sum(parts)
    return torch.stack(parts), total, [p.shape for p in parts]


@program()
def orders_of_set_displays(x, y):
    written = {"a", "b", "c", "d", "e", "f", "g"}
    return x + y, list(written), [name for name in {"a", "b", "c", "d"} | written], "".join({*"abcdefg"})


@program()
def recursion_limit(x, y):
    return x + sys.getrecursionlimit(), y


@program()
def comprehension(x, y):
    d = {i: x[i] * 2 for i in range(x.shape[0]) if i % 2}
    s = {k for k in d}
    return [v + y[0] for v in d.values()], sorted(s)


@program()
def generator_expression(x, y):
    return sum(a * b for a, b in zip(x, y)), all(v is not None for v in (x, y)), max(i for i in range(4))


def _pairs(x):
    try:
        for i in range(x.shape[0]):
            yield i, x[i]
    finally:
        pass


@program()
def generator_function(x, y):
    out = y
    for i, row in _pairs(x):
        if i == 3:
            break
        out = out + row * i
    return out


@program()
def closures(x, y):
    scale = 3.0

    def inner(t, *, shift=1):
        nonlocal scale
        scale = scale + 1
        return t * scale + shift

    return inner(x) + inner(y, shift=2), scale


@program()
def star_arguments(x, y):
    def f(a, *rest, k=1, **more):
        return a * k + sum(rest) + more.get("z", 0)

    return f(x, y, y, k=2, z=x), f(*(x, y), **{"k": 3})


@program()
def exceptions_as_control_flow(x, y):
    try:
        {}["missing"]
    except KeyError as error:
        x = x + len(error.args)
    finally:
        y = y * 2
    for value in (1, 2, "three"):
        try:
            y = y + value
        except TypeError:
            break
    return x + y


@program()
def raises(x, y):
    z = x + y
    if z.shape[1] == 5:
        raise ValueError(f"five columns in {tuple(z.shape)}")
    return z


@program()
def no_grad_blocks(x, y):
    with torch.no_grad():
        a = x * y
    with torch.enable_grad():
        b = x + y
    return a, b, torch.is_grad_enabled()


@program()
def no_grad_with_a_break(x, y):
    with torch.no_grad():
        a = x * y
        s = a.sum().item()
        b = a + s
    return b, torch.is_grad_enabled()


@program()
def in_place_on_fresh(x, y):
    z = x.clone()
    z += y
    z.mul_(2).relu_()
    z[0] = 1.0
    z[:, 1:3] *= 3
    return z


@program()
def in_place_on_input(x, y):
    x.add_(y)
    x[0].mul_(2)
    return x.sum()


@program()
def views(x, y):
    a = x.t().reshape(2, 10)
    b = a.view(5, 4)[:, ::2]
    c = torch.cat([b.flatten(), y[..., 0]], 0)
    d, e = c.split([4, 10])
    return a, b, d.unsqueeze(0).expand(3, -1), e.chunk(2), x[:, None, :] * y[None].squeeze(0)


@program()
def returns_a_view_of_its_input(x, y):
    return x[1:], x.t(), x


@program()
def indexing(x, y):
    i = torch.tensor([2, 0, 1])
    return x[i], x[i, i], x[1, 2], x[..., -1], x[:, [0, 2]], torch.gather(x, 1, i[None].expand(4, 3)), x[-1]


@program()
def masks(x, y):
    return torch.where(x > y, x, y), x.masked_fill(x < 0, 0.0), (x > 0) & (y > 0), (x > 0).any(), (y == y).all()


@program()
def boolean_mask_index(x, y):
    return x[x > 0], (y > 0).nonzero()


@program()
def reductions(x, y):
    return (x.sum(), x.mean(0), x.amax(1), x.argmax(1), x.var(1), x.std(0, unbiased=False), x.norm(), x.prod(0), y.min(1),
            x.logsumexp(1), x.max(), x.cumsum(1), x.sort(1).values, torch.topk(y, 2).indices, x.any(), x.median())


@program()
def softmaxes(x, y):
    return x.softmax(-1), F.log_softmax(y, 0), F.cross_entropy(x, torch.tensor([0, 1, 2, 3])), F.softmin(x, 0)


@program()
def activations(x, y):
    return [f(x) for f in (F.relu, F.gelu, F.silu, F.mish, F.elu, F.hardswish, F.softplus, F.leaky_relu, torch.sigmoid,
                           torch.tanh, torch.erf, F.hardsigmoid, F.selu, F.celu, F.logsigmoid, F.softsign, F.relu6)]


@program()
def special_values(x, y):
    z = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-40, -1e38, 1e38])
    return [f(z) for f in (torch.exp, torch.log, torch.sqrt, torch.rsqrt, torch.sin, torch.tanh, torch.erf, torch.floor,
                           torch.sign, torch.abs, torch.sigmoid, torch.log1p, torch.expm1, torch.isnan, torch.reciprocal)]


@program()
def integers(x, y):
    a = (x * 10).to(torch.int64)
    b = (y * 5).to(torch.int32) + 7
    return a // 3, a % 3, a * b, a - b, a & 7, a ^ b, a << 2, a >> 1, -a, a.float() / 3, ~a, a / 4, (a == b).int(), a.to(torch.uint8)


@program()
def type_promotion(x, y):
    h, i = x.half(), (y * 3).int()
    return h + 1, h * y, i + 1.5, i * True, x + i, h.float() + h, x.double() * 2, torch.add(i, i, alpha=2), x.bfloat16() * h


@program()
def factories(x, y):
    return (torch.arange(5), torch.arange(0, 1, 0.25), torch.zeros(2, 3), torch.ones_like(x), torch.full((2,), 3.5), torch.eye(3),
            torch.linspace(0, 1, 5), x.new_zeros(2), torch.tensor([1.0, 2.0]) * 2, torch.tril(x), torch.triu(torch.ones(3, 3)))


@program(lambda: (torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)))
def convolution_and_pooling(x, w):
    z = F.conv2d(x, w, padding=1)
    return F.max_pool2d(z, 2), F.avg_pool2d(z, 2), F.adaptive_avg_pool2d(z, 1), F.interpolate(z, scale_factor=2), F.pad(z, (1, 2, 0, 1))


@program()
def norms(x, y):
    return F.layer_norm(x, (5,), y[0], y[1]), F.normalize(x, dim=1), F.group_norm(x[None].view(1, 4, 5), 2), F.rms_norm(x, (5,))


@program()
def matmuls(x, y):
    return x @ y.t(), torch.einsum("ij,kj->ik", x, y), torch.bmm(x[None], y.t()[None]), F.linear(x, y), x.mv(y[0]), torch.outer(x[0], y[0])


class Pair(NamedTuple):
    first: torch.Tensor
    second: object


@dataclasses.dataclass
class Record:
    value: torch.Tensor
    names: list = dataclasses.field(default_factory=list)

    @property
    def doubled(self):
        return self.value * 2


@program()
def records(x, y):
    p = Pair(x + 1, "name")
    r = Record(p.first, ["a"])
    r.names.append("b")
    r.value = r.doubled + y
    od = collections.OrderedDict(a=x, b=r.value)
    od.move_to_end("a")
    return p, r.value, r.names, list(od), dict(od), p._replace(second=3).second


@program()
def strings_and_formats(x, y):
    label = f"{x.shape[0]}x{x.shape[1]:>3} {x.dtype} {'yes' if x.ndim == 2 else 'no'!r}"
    return x + len(label), label, "-".join(str(s) for s in y.shape), label.upper().split()


@program()
def functools_and_math(x, y):
    f = functools.partial(torch.add, alpha=2)
    return f(x, y), functools.reduce(lambda a, b: a * b, [x, y, x]), x * math.sqrt(x.shape[1]) + math.pi, max(1, 2, 3), round(2.567, 1)


@program()
def prints(x, y):
    print("before", x.shape)
    z = x + y
    print("after")
    return z * 2


COUNTER = {"calls": 0}
LOG = []


@program()
def writes_outside(x, y):
    COUNTER["calls"] += 1
    LOG.append(x.shape[0])
    return x * 2


@program()
def is_compiling_is_hidden(x, y):
    return x + (0 if isinstance(x, torch.Tensor) else 1), type(x) is torch.Tensor, hasattr(x, "nope"), isinstance(y, nn.Parameter)


@program()
def contextlib_manager(x, y):
    @contextlib.contextmanager
    def scaled():
        yield 3.0

    with scaled() as s, contextlib.nullcontext():
        z = x * s
    return z


@program()
def while_and_slices(x, y):
    i = 0
    while i < x.shape[0] - 1:
        x = x[1:] + x[:-1]
        i = 0 if x.shape[0] > 2 else 10
    return x, [1, 2, 3, 4][::-1], (1, 2, 3)[1:], "abc"[-1]


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 5)
        self.norm = nn.BatchNorm1d(5)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.last_shape = None
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(5, 5), nn.Tanh()) for _ in range(2)])

    def forward(self, x, y):
        self.steps += 1
        self.last_shape = x.shape
        for name, block in self.blocks.named_children():
            x = block(x) + int(name)
        return self.norm(self.linear(x)) + y


STATEFUL = [Stateful(), None]
STATEFUL[1] = __import__("copy").deepcopy(STATEFUL[0])


def equal(a, b):
    if isinstance(b, torch.Tensor):
        if not isinstance(a, torch.Tensor):
            raise AssertionError(f"{type(a)} in place of a tensor")
        loose = b.dtype in (torch.float16, torch.bfloat16)
        torch.testing.assert_close(a, b, equal_nan=True, rtol=1e-2 if loose else 5e-5, atol=1e-2 if loose else 1e-5, check_stride=True)
        if a.requires_grad != b.requires_grad:
            raise AssertionError(f"requires_grad {a.requires_grad} against {b.requires_grad}")
    elif isinstance(b, (list, tuple)):
        if type(a).__qualname__ != type(b).__qualname__ or len(a) != len(b):
            raise AssertionError(f"{type(a)} of {len(a)} against {type(b)} of {len(b)}")
        for i, (p, q) in enumerate(zip(a, b)):
            try:
                equal(p, q)
            except AssertionError as error:
                raise AssertionError(f"[{i}] {error}") from None
    elif isinstance(b, dict):
        equal(list(a), list(b))
        equal(list(a.values()), list(b.values()))
    elif isinstance(b, (float, complex)):
        equal(type(a), type(b))
        torch.testing.assert_close(a, b, equal_nan=True, rtol=1e-5, atol=1e-5)
    elif dataclasses.is_dataclass(b) and not isinstance(b, type):
        equal([getattr(a, f.name) for f in dataclasses.fields(a)], [getattr(b, f.name) for f in dataclasses.fields(b)])
    elif type(a).__qualname__ != type(b).__qualname__ or (type(b).__eq__ is not object.__eq__ and type(a) is type(b) and a != b):
        raise AssertionError(f"{a!r} against {b!r}")


def outcome(f, args):
    """Result or error, printed text, arguments afterwards, objects written to."""
    COUNTER["calls"] = 0
    LOG.clear()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = f(*args)
        except Exception as error:
            result = (type(error).__name__, str(error))
    return result, printed.getvalue(), list(args), dict(COUNTER), list(LOG)


def check(f, make_args, break_every, calls=3):
    fusebox.reset()
    fusebox.config.break_every = break_every
    try:
        compiled = fusebox.compile(f)
        for _ in range(calls):
            args = make_args()
            want = outcome(f, [a.clone() for a in args])
            got = outcome(compiled, [a.clone() for a in args])
            equal(got, want)
    finally:
        fusebox.config.break_every = 0


def check_script(script, break_every):
    """The script with and without compiling, from the same seed; it makes its own objects each time."""
    def run(compile):
        torch.manual_seed(0)
        random.seed(0)
        numpy.random.seed(0)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            result = script(compile)
        return result, printed.getvalue()

    want = run(lambda f, **options: f)
    fusebox.reset()
    fusebox.config.break_every = break_every
    try:
        equal(run(fusebox.compile), want)
    finally:
        fusebox.config.break_every = 0


def check_module(break_every):
    fusebox.reset()
    fusebox.config.break_every = break_every
    reference, module = STATEFUL
    compiled = fusebox.compile(module)
    try:
        for _ in range(3):
            x, y = torch.randn(4, 5), torch.randn(4, 5)
            equal(compiled(x, y), reference(x, y))
            equal(dict(module.named_buffers()), dict(reference.named_buffers()))
            equal(module.last_shape, reference.last_shape)
    finally:
        fusebox.config.break_every = 0


def run_twice(arguments):
    """The larger exit status of two processes that are given `arguments`, and one new cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "0"}
        return max(subprocess.run([sys.executable, __file__, "--captures", way, *arguments], env=environment).returncode for way in ("keep", "take"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--break-every", type=int, nargs="*", default=list(range(13)))
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--shard", default="0/1", help="i/n: every n-th program from the i-th on")
    parser.add_argument("--loops", type=int, help="operators that a loop may give a graph, in place of fusebox.config.loop_operators")
    parser.add_argument("--warm", action="store_true", help="twice, in processes that share a cache: the second is given the captures of the first")
    parser.add_argument("--captures", choices=["keep", "take"], help="keep captures of any length; there must be some to take")
    options = parser.parse_args()
    if options.warm:
        sys.exit(run_twice([a for a in sys.argv[1:] if a != "--warm"]))
    if options.loops is not None:
        fusebox.config.loop_operators = options.loops
    if options.captures:
        fusebox.config.cache_captures_from = 0
    passed = failed = 0
    first, shards = map(int, options.shard.split("/"))
    warnings.filterwarnings("ignore", message="fusebox: .*recompile_limit")
    for k in options.break_every:
        cases = [(f.__name__, functools.partial(check, f, make, k)) for f, make in PROGRAMS]
        cases += [(f.__name__, functools.partial(check_script, f, k)) for f in small_programs.load() if small_programs.runs_with(f, k)]
        cases.append(("stateful_module", functools.partial(check_module, k)))
        for name, case in cases[first::shards]:
            if options.only and name not in options.only:
                continue
            without_code = fusebox.counters()["failed_stages"]
            try:
                case()
                assert fusebox.counters()["failed_stages"] == without_code, "a kernel has no code (FUSEBOX_DEBUG=1 says why)"
                passed += 1
            except Exception as error:
                failed += 1
                text = str(error).replace("\n", " ")[:300]
                print(f"FAIL {name} (break every {k}): {type(error).__name__}: {text}", flush=True)
    if options.captures == "take":
        taken = fusebox.counters()["captures_recalled"]
        print(f"{taken} captures were taken from the cache")
        failed += taken < passed
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""Exceptions, context managers, warnings and logs: what is raised, caught, chained and reported."""

import contextlib
import logging
import traceback
import types
import warnings

import torch
import torch.nn.functional as F

from . import script


def rows(*s):
    return torch.randn(*(s or (4, 5)))


@script
def try_finally_returns(compile):
    log = []

    @compile
    def f(x, how):
        for i in range(3):
            try:
                if how == 0:
                    return x + i
                if how == 1:
                    raise KeyError("k")
                if how == 2:
                    continue
                if how == 3:
                    break
            except KeyError as e:
                log.append(repr(e))
                x = x * 2
            else:
                x = x - 1
            finally:
                log.append(i)
                x = x + 1
                if how == 4:
                    return x * 0
        else:
            x = x + 100
        return x

    return [f(rows(), h) for h in range(6)], log


@script
def exception_notes_groups(compile):
    @compile
    def f(x):
        try:
            try:
                raise ValueError("inner")
            except ValueError as e:
                e.add_note("a note")
                raise RuntimeError("outer") from e
        except RuntimeError as e:
            y = x + len(e.__cause__.__notes__)
            return y, str(e), repr(e.__cause__), e.__cause__.__notes__, e.__suppress_context__

    return f(rows())


@script
def exception_star(compile):
    @compile
    def f(x):
        out = []
        try:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2), ValueError(3)])
        except* ValueError as eg:
            out.append(len(eg.exceptions))
            x = x + 1
        except* TypeError as eg:
            out.append(str(eg.exceptions[0]))
            x = x * 2
        return x, out

    return f(rows())


@script
def traceback_text(compile):
    def g(x):
        if x.shape[0] == 4:
            raise ValueError("four " + str(tuple(x.shape)))

    @compile
    def f(x):
        y = x * 2
        g(y)
        return y

    try:
        f(rows())
    except ValueError as e:
        names = [fr.name for fr in traceback.extract_tb(e.__traceback__) if "capture" not in fr.filename]
        return names[-2:], str(e), [fr.line for fr in traceback.extract_tb(e.__traceback__)][-2:]


@script
def torch_errors(compile):
    @compile
    def f(x, y):
        return x @ y

    @compile
    def g(x):
        return x.view(7)

    @compile
    def h(x):
        return x.nope

    @compile
    def k(x):
        return torch.cat([x, x[0]])

    @compile
    def i(x):
        return x[10]

    @compile
    def m(x):
        return F.linear(x, x) + torch.zeros(3)

    out = []
    for fn, a in ((f, (rows(), rows())), (g, (rows(),)), (h, (rows(),)), (k, (rows(),)), (i, (rows(),)), (m, (rows(),))):
        try:
            fn(*a)
            out.append("no error")
        except Exception as e:
            out.append((type(e).__name__, str(e)))
    return out


@script
def logs_and_warnings(compile):
    log = logging.getLogger("users_test")
    log.setLevel("DEBUG")
    log.propagate = False
    got = []

    class H(logging.Handler):
        def emit(self, r):
            got.append((r.levelname, r.getMessage(), r.funcName, r.lineno > 0))

    log.handlers = [H()]

    @compile
    def f(x):
        y = x + 1
        log.info("mean %.3f of %s", y.mean(), tuple(y.shape))
        log.debug(f"shape {y.shape}")
        if log.isEnabledFor(logging.DEBUG):
            log.log(logging.WARNING, "custom")
        try:
            1 / 0
        except ZeroDivisionError:
            log.exception("boom")
        warnings.warn("depr", DeprecationWarning, stacklevel=2)
        return y

    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        out = f(rows()), f(rows())
    return out, got, [(x.category.__name__, str(x.message)) for x in w]


@script
def context_managers(compile):
    log = []

    class CM:
        def __init__(self, n, eat=False):
            self.n, self.eat = n, eat

        def __enter__(self):
            log.append(("in", self.n))
            return self

        def __exit__(self, t, v, tb):
            log.append(("out", self.n, t.__name__ if t else None))
            return self.eat

    @contextlib.contextmanager
    def gen(n):
        log.append(n)
        try:
            yield n
        except ValueError as e:
            log.append(str(e))
        finally:
            log.append(-n)

    @compile
    def f(x):
        with CM(1) as a, CM(2, True):
            x = x * a.n
            raise KeyError("gone")
        with gen(5) as n:
            x = x + n
            raise ValueError("eaten")
        with contextlib.ExitStack() as st:
            st.enter_context(CM(7))
            st.callback(log.append, "cb")
            x = x + st.enter_context(gen(6))
        with contextlib.suppress(ZeroDivisionError):
            x = x / (1 // 0)
        with contextlib.closing(types.SimpleNamespace(close=lambda: log.append("close"))):
            x = x + 1
        return x

    return f(rows()), f(rows()), log


def lines_of(f, *args):
    """The type and notes of what the call raises, and the lines of its traceback in the called function and below, from its first line on."""
    try:
        return f(*args)
    except Exception as e:
        inner = [s for s in traceback.walk_tb(e.__traceback__) if s[0].f_code.co_filename == __file__ and s[0].f_code.co_name in ("again", "helper")]
        return (type(e).__name__, str(e), getattr(e, "__notes__", None), getattr(e.__context__, "__notes__", None),
                [(frame.f_code.co_name, line and line - frame.f_code.co_firstlineno) for frame, line in inner])


@script
def what_is_raised_again_keeps_its_lines(compile):
    def bare(x):
        @compile
        def again(x):
            try:
                [][x.shape[0]]
            except LookupError as e:
                x = x + 1
                e.add_note("n")
                raise
        return again(x)

    def through_finally(x):
        @compile
        def again(x):
            try:
                if x.shape[0]:
                    raise KeyError(x.shape[0])
            finally:
                x = [x * k for k in (1, 2, 3) if k]
        return again(x)

    def out_of_with(x):
        @contextlib.contextmanager
        def scope():
            yield 2

        @compile
        def again(x):
            for _ in range(2):
                with scope() as k, scope():
                    x = x * k
                    if x.shape[0] > 1:
                        raise ValueError("v")
        return again(x)

    def inside_another(x):
        def helper(x):
            raise

        @compile
        def again(x):
            with torch.enable_grad():
                try:
                    None + 1
                except Exception as e:
                    try:
                        x = x * x.nowhere
                    except AttributeError as other:
                        x = x + len(other.args)
                    e.add_note("m")
                    helper(x)
        return again(x)

    def chained(x):
        @compile
        def again(x):
            try:
                {}["missing"]
            except KeyError as e:
                e.add_note("first")
                x = x + 1
                raise ValueError(x.shape[1])
        return again(x)

    return [[lines_of(f, rows()) for _ in range(2)] for f in (bare, through_finally, out_of_with, inside_another, chained)]


@script
def an_exception_from_outside_is_raised(compile):
    error = ValueError("kept")

    @compile
    def f(x):
        try:
            1 / 0
        except ZeroDivisionError:
            try:
                raise error
            except ValueError as e:
                x = x + len(e.args)
        return x

    return f(rows()), f(rows()), repr(error.__context__), len(list(traceback.walk_tb(error.__traceback__)))


@script
def calls_that_cannot_be(compile):
    """Too few, too many and unknown arguments of C functions; special methods that answer nonsense."""
    class Odd:
        def __len__(self):
            return -2

        def __bool__(self):
            return 3

        def __iter__(self):
            return None

    def said(f):
        try:
            return f()
        except (TypeError, ValueError) as e:
            return str(e)

    @compile
    def f(x):
        d, s, q, odd, plain = {"a": 1}, {1}, [1], Odd(), object()
        out = [said(lambda: d.pop()), said(lambda: d.setdefault()), said(lambda: d.get()), said(lambda: s.add()), said(lambda: q.append()),
               said(lambda: q.append(1, 2)), said(lambda: d.pop("a", 1, 2)), said(lambda: sorted(q, up=1)), said(lambda: len()),
               said(lambda: len(odd)), said(lambda: bool(odd)), said(lambda: list(odd)), said(lambda: 1 in odd), said(lambda: 1 in plain),
               said(lambda: vars(plain)), said(lambda: isinstance(1)), said(lambda: dict.fromkeys()), said(lambda: "a".join()),
               said(lambda: int.from_bytes()), said(lambda: dict.fromkeys("ab", 2)), said(lambda: int.from_bytes(b"a", byteorder="big"))]
        return x + len(out), out

    return f(rows()), f(rows())


def outcome(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return type(error).__name__, str(error)


@script
def data_that_do_not_fit_raise_though_nobody_needs_the_result(compile):
    x, fits, beyond = torch.rand(4, 5), torch.tensor([0, 3, 1]), torch.tensor([0, 3, 9])
    calls = [
        lambda x, i: x[i], lambda x, i: x.index_select(0, i), lambda x, i: x.gather(1, i[None]), lambda x, i: F.embedding(i, x),
        lambda x, i: x.scatter_add(1, i[None], x), lambda x, i: x.index_put((i,), x[0]), lambda x, i: F.cross_entropy(x[:3], i),
        lambda x, i: i // (i[2] - 9), lambda x, i: i % (i[2] - 9), lambda x, i: x.clone().index_fill_(0, i, 0.0),
        lambda x, i: F.binary_cross_entropy(x + (i[2] > 5), x), lambda x, i: torch.histc(x / (i[2] < 5))]
    out = []
    for call in calls:
        @compile
        def f(x, i):
            call(x, i)
            return x + 1

        out.append([outcome(f, x, i) for i in (fits, beyond)])
    return out


@script
def data_that_do_not_fit_raise_where_only_others_are_read(compile):
    x, fits, beyond = torch.rand(4, 5), torch.tensor([0, 3, 1]), torch.tensor([0, 3, 9])
    calls = [lambda x, i: x[i][:1], lambda x, i: (x[i] * 2)[0], lambda x, i: F.embedding(i, x).exp()[:2].sum(),
             lambda x, i: F.pad(x[i], (0, 0, 0, -1)), lambda x, i: (i // (i[2] - 9))[:1], lambda x, i: torch.zeros_like(x[i])]
    return [[outcome(compile(call), x, i) for i in (fits, beyond)] for call in calls]


@script
def binary_cross_entropy_wants_probabilities(compile):
    inside, outside, unknown = torch.tensor([0.5, 0.2, 0.0]), torch.tensor([0.5, 1.5, 0.1]), torch.tensor([0.5, float("nan"), 0.1])
    f = compile(lambda x, t: F.binary_cross_entropy(x, t))
    return [outcome(f, x, t) for x in (inside, outside, unknown) for t in (inside, outside, unknown)]


@script
def arguments_that_cannot_be_unpacked_name_the_function(compile):
    def callee(*args, **kwargs):
        return args, sorted(kwargs)

    def merged(x, given):
        return callee(x, **(given or {}))

    def twice(x, given):
        return callee(x, k=1, **given)

    def spread(x, given):
        return callee(x, *given)

    def displayed(x, given):
        return {"a": x, **given}

    def of_torch(x, given):
        return torch.add(x, 1, **given)

    def of_builtin(x, given):
        return len(*given), x + 1

    out = []
    for f in (merged, twice, spread, displayed, of_torch, of_builtin):
        g = compile(f)
        out.append([outcome(g, torch.ones(2), given) for given in ({}, 1.5, True, {"k": 2}, {3: 4}, {"k": 2, None: 1}, [(1, 2)], "k")])
    return out


@script
def numbers_that_are_no_floats_get_a_gradient(compile):
    """A loss written to counts: eager lets it be, and refuses what is computed from them."""
    def into_an_input(x, counts):
        counts[:1] = x.sum()

    def into_an_input_that_is_read(x, counts):
        counts[:1] = x.sum()
        return counts * 2

    def into_a_result(x, counts):
        made = counts * 2
        made[:1] = x.sum()
        return made, x * 2

    out = []
    for f in (into_an_input, into_an_input_that_is_read, into_a_result):
        x, counts = torch.randn(5, requires_grad=True), torch.tensor([3])
        try:
            results = compile(f)(x, counts)
            out.append([None if t is None else (t.detach(), t.requires_grad) for t in (results or (None,))])
        except RuntimeError as error:
            out.append(str(error))
        out.append((counts.detach().clone(), counts.requires_grad))
    return out


@script
def losses_refuse_types_whatever_their_sizes(compile):
    """What a formula of a derivative refuses does not go by what was asked first."""
    f = compile(lambda x, w: F.mse_loss(x > 0, (x > 0) * w, reduction="none"), dynamic=False)
    out = []
    for n in (100, 3):
        w = torch.ones((), dtype=torch.bfloat16, requires_grad=True)
        total = f(torch.randn(n, n, dtype=torch.bfloat16), w).sum()
        try:
            total.backward()
        except RuntimeError as error:
            out.append(str(error))
    return out


@script
def numbers_that_do_not_fit(compile):
    """Beside float32, half or ints: eager raises what its kernels raise, where the number reaches one."""
    out = []
    half, floats, ints = torch.tensor([1.0, 0.0, 2.0]).half(), torch.tensor([1.0, 0.0, 2.0]), torch.tensor([1, 0, 2], dtype=torch.int32)
    for x in (half, floats, ints):
        for number in (1e200, 70000.0, 2**40, -1, float("inf"), float("nan"), 0.0):
            for f in (lambda x: x.clone().fill_(number), lambda x: x.new_full((2,), number), lambda x: torch.full((2,), number, dtype=x.dtype),
                      lambda x: x.clamp(min=number), lambda x: torch.clamp_max(x, number), lambda x: x.masked_fill(x > 0, number), lambda x: F.pad(x, (1, 1), value=number),
                      lambda x: F.celu(x, number), lambda x: F.elu(x, number), lambda x: torch.add(x, x, alpha=number), lambda x: torch.addcmul(x, x, x, value=number),
                      lambda x: torch.logit(x, number), lambda x: x.clone().floor_divide_(number) if 0 < abs(number) < 1e6 else x, lambda x: x**number):
                with torch._dynamo.config.patch(recompile_limit=64):
                    try:
                        out.append(compile(f, dynamic=False)(x))
                    except RuntimeError as error:
                        out.append(str(error).split("\n")[0])
    return out


@script
def groups_that_may_not_be_named(compile):
    def single(x):
        try:
            raise OSError("one")
        except* ExceptionGroup:
            pass

    def among_others(x):
        try:
            raise ExceptionGroup("group", [ValueError(42)])
        except* (TypeError, ExceptionGroup):
            pass

    def run(f, x):
        try:
            return f(x)
        except Exception as error:
            return x + 1, type(error).__name__, str(error), type(error.__context__).__name__

    return [compile(lambda x, f=f: run(f, x))(torch.ones(3)) for f in (single, among_others)], [run(compile(f), torch.ones(3)) for f in (single, among_others)]

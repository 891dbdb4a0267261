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

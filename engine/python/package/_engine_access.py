"""Loads the extension module (PyTorch first: it brings the libraries) and what everything else needs of it."""

import functools
import os

import torch  # noqa: F401

from . import _engine


class GraphBreakError(RuntimeError):
    """fullgraph=True, and the program cannot be captured as one graph. The message has the reason, the place and a hint. Who catches
    torch._dynamo.exc.Unsupported catches it too, and torch._dynamo.exc.UserError where data decide what happens or the program raises."""

    def __new__(cls, *args):
        return super().__new__(_as_dynamos(cls, *args), *args)


class RecompileError(RuntimeError):
    """A recompilation was needed where the user forbade it (error_on_recompile, fail_on_recompile_limit_hit, set_stance). Also
    torch._dynamo.exc's RecompileError and FailOnRecompileLimitHit."""

    def __new__(cls, *args):
        return super().__new__(_as_dynamos(cls), *args)


@functools.cache
def _classes():
    """The same errors as classes of PyTorch's as well. Importing those takes seconds, so it is put off until one is raised."""
    from torch._dynamo import exc

    class Unsupported(GraphBreakError, exc.Unsupported):
        def __init__(self, text=""):
            exc.Unsupported.__init__(self, text)

    class User(Unsupported, exc.UserError):
        def __init__(self, text=""):
            Unsupported.__init__(self, text)
            self.error_type, self.message = exc.UserErrorType.DYNAMIC_CONTROL_FLOW, text

    class Recompile(RecompileError, exc.RecompileError, exc.FailOnRecompileLimitHit):
        pass

    for made, shown in ((Unsupported, GraphBreakError), (User, GraphBreakError), (Recompile, RecompileError)):
        made.__name__, made.__qualname__, made.__module__, made.__doc__ = shown.__name__, shown.__qualname__, shown.__module__, shown.__doc__
    return {GraphBreakError: Unsupported, "user": User, RecompileError: Recompile}


def _as_dynamos(cls, text=""):
    of_the_program = cls is GraphBreakError and str(text).startswith(("data-dependent value: ", "exception: "))
    try:
        return _classes().get("user" if of_the_program else cls, cls)
    except ImportError:
        return cls


_engine.add_skipped_folder(os.path.dirname(os.path.abspath(__file__)))
_engine.set_exceptions(GraphBreakError, RecompileError)


def reset():
    """Forgets everything compiled in this process (files on disk stay)."""
    _engine.reset()


def counters():
    """Counts since the start of the process: frames, graphs, graph breaks, recompiles, kernels, ..."""
    return dict(_engine.counters())

"""torch.compiler's names over this engine."""

import functools
import inspect
import types

import torch
import torch.compiler as _stock
from torch.compiler import config  # noqa: F401  (PyTorch's own settings)
from torch.utils._pytree import tree_map_only

from . import precompile
from ._ahead_of_time import load_compiled_function
from ._compile import compile, engine_options  # noqa: A004
from ._engine_access import _engine, reset
from ._options import list_backends
from ._rank_exchange import set_enable_guard_collectives
from ._unused_options import once
from .precompile import PrecompiledRunnable, PrecompileError

# Names that install() puts into torch.compiler. The queries (is_compiling, ...) are not among them: capture answers the
# original functions, which user code may have imported long before.
REPLACED = ["compile", "reset", "list_backends", "disable", "set_stance", "allow_in_graph", "assume_constant_result",
            "substitute_in_graph", "nested_compile_region", "cudagraph_mark_step_begin", "set_enable_guard_collectives",
            "save_cache_artifacts", "load_cache_artifacts", "load_compiled_function", "precompile", "PrecompileError", "PrecompiledRunnable"]

__all__ = sorted(set(REPLACED) | {"config", "is_compiling", "is_dynamo_compiling", "is_exporting", "wrap_numpy",
                                  "skip_guard_on_inbuilt_nn_modules_unsafe", "skip_guard_on_all_nn_modules_unsafe",
                                  "keep_tensor_guards_unsafe", "skip_guard_on_globals_unsafe", "skip_all_guards_unsafe"})


def is_compiling():
    """True while this engine (or PyTorch's) captures a program."""
    return _engine.is_capturing() or _stock.is_compiling()


def is_dynamo_compiling():
    return _engine.is_capturing() or _stock.is_dynamo_compiling()


def is_exporting():
    return _stock.is_exporting()


def disable(fn=None, recursive=True, *, reason=None):
    """Leaves `fn` to Python: itself and everything it calls, or (recursive=False) only its own frame."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(fn, torch.nn.Module):
        fn.forward = disable(fn.forward, recursive, reason=reason)
        return fn
    if inspect.isclass(fn):
        return fn
    if not callable(fn):
        raise TypeError(f"torch.compiler.disable expects a callable, got {type(fn).__name__}")
    original = getattr(fn, "_torchdynamo_orig_callable", fn)
    if not recursive:
        code = getattr(getattr(original, "__func__", original), "__code__", None)
        if code is not None:
            _engine.skip_code(code)
            function = getattr(original, "__func__", original)
            function._torchdynamo_disable = True
            function._torchdynamo_disable_recursive = False
            function._torchdynamo_disable_msg = reason
        return original
    wrapper = _engine.disabled(original)
    wrapper._torchdynamo_disable_recursive = True
    wrapper._torchdynamo_disable_msg = reason
    return wrapper


class set_stance:
    """Function, context manager or decorator that says how compiled calls behave: default, force_eager, eager_on_recompile,
    fail_on_recompile, eager_then_compile (the first call of a place runs eagerly; what changed at the second is symbolic at once) and,
    the same here, aot_eager_then_compile. `force_backend` takes the place of every compiled function's own. Guards are evaluated
    with `skip_guard_eval_unsafe` too: their check is cheap, and no wrong entry is taken."""

    _current = ("default", None)
    _followed = ("default", None)
    _STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile")

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if stance not in self._STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}: choose from {', '.join(self._STANCES)}")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        if _engine.is_capturing() or _engine.in_region():
            raise RuntimeError("set_stance cannot be called inside a compiled region")
        self._wanted = (stance, force_backend if force_backend is None else engine_options(backend=force_backend))
        self._before = set_stance._current
        self._set(self._wanted)

    @staticmethod
    def _set(wanted):
        stance, options = wanted
        _engine.set_stance(stance)
        _engine.force_backend(options)
        set_stance._current = wanted

    def __enter__(self):
        self._set(self._wanted)

    def __exit__(self, *exc):
        self._set(self._before)

    def __call__(self, fn):
        self._set(self._before)

        @functools.wraps(fn)
        def under_stance(*args, **kwargs):
            before = set_stance._current
            self._set(self._wanted)
            try:
                return fn(*args, **kwargs)
            finally:
                self._set(before)

        return under_stance


def follow_stance(theirs):
    """Called by the engine: `theirs`, a DynamoStance, is what torch.compiler.set_stance of PyTorch itself was given last."""
    wanted = (theirs.stance, theirs.backend)
    if wanted != set_stance._followed:
        if theirs.stance not in set_stance._STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{theirs}'")
        set_stance._set((theirs.stance, theirs.backend if theirs.backend is None else engine_options(backend=theirs.backend)))
        set_stance._followed = wanted


def allow_in_graph(fn):
    """`fn` is one call of the graph that a backend in Python is given. It is followed all the same: the engine's own backends see its
    operators. Where it cannot be, capture calls it once as it is, and nothing guards what it reads."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(f) for f in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    # Of an autograd.Function nobody looks for breaks inside forward; a call of it is one of the graph anyway.
    marked = fn.forward if isinstance(fn, type) and issubclass(fn, torch.autograd.Function) else fn
    if isinstance(marked, types.FunctionType):
        marked._fusebox_in_graph = True
    return fn


def assume_constant_result(fn):
    """Marks `fn`: capture calls it as it is and takes what it gives for a constant, which nothing checks later. Where tensors go in
    or no constant comes out, it is followed like any other function."""
    fn._dynamo_marked_constant = True
    return fn


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False):
    """Capture follows the decorated function of Python where `original_fn` is called; eager calls stay what they are."""
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a function, got {type(original_fn).__name__}")

    def decorator(traceable_fn):
        if not isinstance(traceable_fn, types.FunctionType):
            raise TypeError(f"@substitute_in_graph(...) expects a function of Python, got {type(traceable_fn).__name__}")
        if not skip_signature_check:
            _compare_signatures(original_fn, traceable_fn)
        _engine.substitute_in_graph(original_fn, traceable_fn)
        return traceable_fn

    return decorator


def _compare_signatures(original, traceable):
    try:
        wanted = inspect.signature(original)
    except ValueError:  # C functions that do not say
        return
    given = inspect.signature(traceable)

    def parts(signature):
        return [(p.name, p.kind, p.default) for p in signature.parameters.values()]

    if parts(wanted) != parts(given):
        raise TypeError(f"Signature mismatch between {original} and {traceable}: {wanted} != {given}")


def nested_compile_region(fn=None, *args, **kwargs):
    """Accepted: the region is captured where it is called, as every function is."""
    return fn if fn is not None else (lambda f: f)


def cudagraph_mark_step_begin():
    """Accepted: there is nothing to mark. Results of CUDA graphs stay good here for as long as the program holds them (a replay
    moves them away first), so no step has to say that they are no longer wanted."""


def _cache_info(ids):
    from torch.compiler._cache import CacheInfo

    class Info(CacheInfo):  # PyTorch defines the property where its own compiler is imported
        inductor_artifacts = property(lambda self: self.artifacts["inductor"])

    info = Info()
    info.artifacts["inductor"].extend(ids)
    return info


def save_cache_artifacts():
    """What this process has taken from the cache of compiled graphs or put there: (bytes, CacheInfo), None where there is nothing. Waits until
    its code is of the best tier."""
    artifacts, ids = _engine.save_cache_artifacts()
    return (artifacts, _cache_info(ids)) if ids else None


def load_cache_artifacts(serialized_artifacts):
    """Puts what save_cache_artifacts() gave into this machine's cache. The bytes hold machine code: they are believed as they are, or, where
    FUSEBOX_CACHE_KEY is set, only with its signature."""
    try:
        ids, refusals = _engine.load_cache_artifacts(serialized_artifacts)
    except ValueError as error:
        once(f"load_cache_artifacts: {error}")
        return None
    for reason in sorted(set(refusals)):
        once(f"load_cache_artifacts: {reason}")
    return _cache_info(ids)


def wrap_numpy(fn):
    """`fn`, a function from numpy's arrays to arrays, as one from tensors to tensors. They share memory, as Tensor.numpy() and
    torch.as_tensor() have it."""
    try:
        import numpy
    except ImportError:
        return fn

    @functools.wraps(fn)
    def wrap(*args, **kwargs):
        args, kwargs = tree_map_only(torch.Tensor, lambda tensor: tensor.numpy(), (args, kwargs))
        return tree_map_only(numpy.ndarray, torch.as_tensor, fn(*args, **kwargs))

    return wrap


def __getattr__(name):
    # Guard filters and the rest of the module: as PyTorch has them.
    return getattr(_stock, name)

"""fusebox.compile: torch.compile's signature over this engine."""

import builtins
import copyreg
import functools
import inspect
import sys
import types
from typing import Callable, Optional, Union

import torch

from . import (_compile_debug, _config, _ddp_buckets, _graph_passes, _kept_captures, _logs, _rank_agreement, _records, _settings_record,
               _structured_trace)  # noqa: F401  _records and the logs hear of compiling from now on; the engine calls _kept_captures
from ._engine_access import GraphBreakError, _engine
from ._options import cache_options, check_options, cuda_graph_options, engine_backend, inductor_setting, list_mode_options
from ._unused_options import loaded_config, once, tell_unused, tell_unused_settings


def _forward_of(callable_):
    """The function whose frame is to be captured when calling `callable_` first runs nn.Module's own machinery."""
    callable_ = getattr(callable_, "_torchdynamo_orig_callable", callable_)
    owner = getattr(callable_, "__self__", None)
    if isinstance(owner, torch.nn.Module):
        name = getattr(callable_, "__name__", "")
        if name in ("_call_impl", "_wrapped_call_impl", "__call__", "_slow_forward"):
            return _function_of(owner.forward)
    return None


def _function_of(callable_):
    """Unwraps what is written in Python: methods, and wrappers of this engine."""
    callable_ = getattr(callable_, "_torchdynamo_orig_callable", callable_)
    function = getattr(callable_, "__func__", callable_)
    return function if hasattr(function, "__code__") else None


def _is_disabled():
    import os
    config = sys.modules.get("torch._dynamo.config")
    return bool(config and config.disable) or os.environ.get("TORCH_COMPILE_DISABLE", "0") == "1" or os.environ.get("TORCHDYNAMO_DISABLE", "0") == "1"


def engine_options(fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, ahead_of_time=False):
    """The engine's form of torch.compile's arguments, checked."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if dynamic not in (None, True, False):
        raise TypeError(f"dynamic has to be True, False or None, not {dynamic!r}")
    if mode is None and options is None:
        mode = "default"
    name = engine_backend(backend)
    tell_unused_settings(with_compiler=name == "inductor")
    if callable(name):
        return _function_options(name, fullgraph, dynamic, mode, options)
    if mode is not None:
        list_mode_options(mode)
    if mode == "lite" and name == "inductor":
        name = "aot_eager"  # operators as they are, without passes
    checked = check_options(options)
    if name == "inductor":
        tell_unused(checked, list_mode_options(mode) if mode else {}, mode)
    settings = {
        "backend": name, "cuda_graphs": cuda_graph_options(name, mode, checked),
        "fallback_random": bool(inductor_setting("fallback_random", mode, checked)),
        "max_autotune": bool(inductor_setting("max_autotune", mode, checked)),
        "emulate_precision_casts": bool(inductor_setting("emulate_precision_casts", mode, checked)),
        "nan_asserts": bool(inductor_setting("nan_asserts", mode, checked)),
        # torch.use_deterministic_algorithms sets it too, but may be taken back: the engine asks that flag at every compile.
        "deterministic": bool(inductor_setting("deterministic", mode, checked)) and (
            "deterministic" in checked or not torch.are_deterministic_algorithms_enabled()),
        **cache_options(checked),
        "fullgraph": bool(fullgraph), "mode": mode or "options", "dynamic": dynamic,
        "break_every": _config.config.break_every, "logs": _compile_debug.handle(checked),
    }
    passes = _graph_passes.chosen(checked, loaded_config()) if name == "inductor" else {}
    if passes and ahead_of_time:
        once(f"{', '.join(passes)}: passes over graphs have no effect on programs that are compiled ahead of time")
    elif passes:
        return _function_options(_graph_passes.backend(passes, settings), fullgraph, dynamic, None, None)
    return settings


def _function_options(function, fullgraph, dynamic, mode, options):
    """The same for a backend in Python, which gets mode and options as they are."""
    from . import _function_backends
    backend = _function_backends.of(function, mode, options)
    return {"backend": backend.name, "function": backend, "fullgraph": bool(fullgraph), "mode": mode or "options", "dynamic": dynamic,
            "break_every": _config.config.break_every}


def compile(
    model: Optional[Callable] = None,
    *,
    fullgraph: bool = False,
    dynamic: Optional[bool] = None,
    backend: Union[str, Callable] = "inductor",
    mode: Optional[str] = None,
    options: Optional[dict] = None,
    disable: bool = False,
):
    """Compiles a function, method or nn.Module; the arguments are torch.compile's. Without `model`: a decorator."""
    if model is None:
        def decorator(model):
            if model is None:
                raise RuntimeError("Model can't be None")
            return compile(model, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable)

        return decorator
    return compile_as(model, engine_options(fullgraph, dynamic, backend, mode, options), disable or _is_disabled())


def compile_as(model, settings, off=False):
    """The same with the engine's settings. `off`: what is given stays as it is."""
    if isinstance(model, torch.nn.Module):
        from ._module import OptimizedModule
        return OptimizedModule(model, None if off else settings)
    if isinstance(model, type):
        if issubclass(model, torch.nn.Module):
            return _compile_class(model, settings, off)
        raise RuntimeError("torch.compile of a class is possible for nn.Module classes only")
    if not callable(model):
        raise TypeError(f"torch.compile expects a callable or an nn.Module, got {type(model).__name__}")
    if off:
        return model
    function = _innermost(model)
    if settings.get("function") and _is_within_operator():
        return _followed_here_or_there(function, settings)
    return compiled_with(function if _runs_python(function) else _with_frame(function), settings, _forward_of(model))


def compiled_with(function, settings, root):
    made = _engine.compiled(function, settings, root)
    made.aot_compile = functools.partial(_aot_compile, function, settings)
    return made


def _aot_compile(function, settings, example_inputs):
    from ._ahead_of_time import aot_compile
    return aot_compile(function, settings, example_inputs)


def _is_within_operator():
    """Whether cond, map and the like are being called: PyTorch compiles what they do, for the graph of it."""
    utils = sys.modules.get("torch._higher_order_ops.utils")
    return bool(utils and utils._in_hop_compile())


def _followed_here_or_there(function, settings):
    """What cannot be captured of such an operator's functions is captured by PyTorch itself, as in eager mode. What that cannot either is called as it is,
    unless its functions read something that has a gradient: the operator takes only those of what it was given."""
    compiled = _engine.compiled(function, settings, None)

    def call(*args, **kwargs):
        try:
            return compiled(*args, **kwargs)
        except GraphBreakError as why:
            reason = str(why).splitlines()[0]
        from torch._dynamo import eval_frame, exc
        backend = torch._TorchCompileWrapper(settings["function"].function, None, None, settings["dynamic"])  # as torch.compile hands it on
        try:
            return eval_frame.optimize(backend, nopython=True, dynamic=settings["dynamic"])(function)(*args, **kwargs)
        except exc.TorchDynamoException:
            if torch._C._len_torch_dispatch_stack() > 0 or torch._C._functorch.peek_interpreter_stack() is not None or _read_gradients((args, kwargs)):
                raise
        once(f"an operator of higher order calls its functions as they are: {reason}")
        return function(*args, **kwargs)

    return call


def _read_gradients(given):
    """Whether functions within `given` read tensors with gradients, by their closures, globals, owners and defaults."""
    if not torch.is_grad_enabled():
        return False
    seen, left = set(), [value for value in torch.utils._pytree.tree_leaves(given) if callable(value)]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            if value.requires_grad:
                return True
        elif isinstance(value, types.FunctionType):
            read = inspect.getclosurevars(value)
            left += [*read.nonlocals.values(), *read.globals.values(), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        elif isinstance(value, (list, tuple, set)):
            left += value
        elif isinstance(value, dict):
            left += value.values()
        elif not isinstance(value, (type, types.ModuleType)):
            left += [*(getattr(value, part, None) for part in ("__self__", "__func__", "func", "__wrapped__")), vars(value) if hasattr(value, "__dict__") else None]
    return False


def _runs_python(function):
    """Whether calling `function` runs a Python frame of the user's, which the engine then captures."""
    if _function_of(function) is not None:
        return True
    call = getattr(type(function), "__call__", None)
    return hasattr(call, "__code__") and not type(function).__module__.startswith("torch.")


_FRAME = """\
def call(*args, **kwargs):
    return function(*args, **kwargs)
"""


def _with_frame(function):
    """A frame to capture around what has none: builtin functions, operators of torch.ops, functools.partial.

    Its code object is its own, since entries and recompile limits are counted for each."""
    scope = {"function": function, "__name__": getattr(function, "__module__", None) or "builtins"}
    exec(builtins.compile(_FRAME, f"<{getattr(function, '__name__', type(function).__name__)}>", "exec"), scope)
    return functools.update_wrapper(scope["call"], function)


def _innermost(function):
    """Compiling what is compiled already replaces its settings, as in stock."""
    while isinstance(function, _engine.CompiledFunction) and not getattr(function, "_torchdynamo_disable", False):
        function = function._torchdynamo_orig_callable
    return function


def _global_name(function):
    """Like a function of Python, a compiled one is copied by reference and pickled by name."""
    return function.__qualname__


copyreg.pickle(_engine.CompiledFunction, _global_name)
for _listener in (_settings_record.compiling, _rank_agreement.compiling, _ddp_buckets.compiling):
    _engine.listen_to_compiling(_listener, True)


def _compile_class(cls, settings, off):
    """@torch.compile on a Module class: its instances' calls are compiled."""
    if not off:
        cls.__call__ = _engine.compiled(cls.__call__, settings, _function_of(cls.forward))
    return cls

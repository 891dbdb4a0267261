"""What torch.compile's backend=, mode= and options= may be, with stock's errors for what they may not."""

import functools
import os
import sys

from ._engine_access import _engine  # noqa: F401
from ._unused_options import once

# As torch/_inductor/__init__.py of 2.11 has them.
_MODES = {
    "default": {},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "lite": {"fallback_by_default": True, "selective_decompose": True, "reorder_for_peak_memory": False, "reorder_for_compute_comm_overlap": False,
             "triton.reorder_for_reducing_graph_partitions": False, "use_pre_grad_passes": False, "use_joint_graph_passes": False,
             "use_post_grad_passes": False, "use_dce": False, "allow_buffer_reuse": False},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}

# Our backends, under every name by which they may be asked for, and what the engine calls them.
_BACKENDS = {"inductor": "inductor", "fusebox": "inductor", "cudagraphs": "cudagraphs", "eager": "eager", "aot_eager": "aot_eager"}


class InvalidBackendError(RuntimeError):
    """backend= names nothing that exists."""


def list_mode_options(mode=None, dynamic=None):
    """The options that each mode sets, or those of one mode."""
    if mode is None:
        return {name: dict(options) for name, options in _MODES.items()}
    if mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    return dict(_MODES[mode])


@functools.cache
def _inductor_config():
    from torch._inductor import config
    return config


def list_options():
    """Names that options= understands: those of the installed PyTorch."""
    return list(_inductor_config().get_config_copy())


def list_backends(exclude_tags=("debug", "experimental")):
    """Names that backend= understands: the engine's own, those registered with PyTorch and the entry points of installed packages."""
    from torch._dynamo.backends.registry import list_backends as registered
    debug = {"eager", "aot_eager"}
    hidden = debug if exclude_tags and "debug" in exclude_tags else set()
    return sorted({name for name in _BACKENDS if name not in hidden} | set(registered(exclude_tags=exclude_tags)))


def check_options(options):
    """Raises as stock does for an unknown option or one of the wrong type."""
    if not options:
        return {}
    known = _inductor_config().get_config_copy()
    checked = {}
    for key, value in options.items():
        name = key.replace("-", "_")
        if name == "guard_filter_fn":
            once("options={'guard_filter_fn': ...} has no effect under Fusebox: guards are never dropped; their check is cheap")
            continue
        if name not in known:
            raise RuntimeError(f"Unexpected optimization option {key}, known options are {list(known)}")
        expected = _inductor_config().get_type(name)
        if getattr(expected, "__origin__", None) is None and isinstance(expected, type) and not isinstance(value, expected):
            raise RuntimeError(f"Unexpected type of attr {key}, got {type(value).__name__} should be {type(known[name]).__name__}")
        checked[name] = value
    return checked


def cuda_graph_options(backend, mode, options):
    """The engine's settings of CUDA graphs: what the mode or options= say, else PyTorch's configuration."""
    config = sys.modules.get("torch._inductor.config")

    def setting(name, default):
        if name in options:
            return options[name]
        return getattr(config.triton, name.partition(".")[2]) if config else default

    if backend not in ("inductor", "cudagraphs"):
        return {"use": False, "record_limit": 0, "or_error": False}
    use = backend == "cudagraphs" or (_MODES[mode].get("triton.cudagraphs") if mode in _MODES else None)
    if not use:
        use = setting("triton.cudagraphs", os.environ.get("TORCHINDUCTOR_CUDAGRAPHS") == "1")
    if os.environ.get("FUSEBOX_GPU_COUNTERS"):
        use = False  # hardware counters are read around single kernels
    limit = setting("triton.cudagraph_unexpected_rerecord_limit", 128)
    return {"use": bool(use), "record_limit": 1 << 30 if limit is None else limit, "or_error": bool(setting("triton.cudagraph_or_error", False))}


def inductor_setting(name, mode, options):
    """A setting of torch._inductor: what options= or the mode say, else PyTorch's configuration where it has been looked at."""
    if name in options:
        return options[name]
    config = sys.modules.get("torch._inductor.config")
    return _MODES.get(mode, {}).get(name, getattr(config, name) if config else False)


def cache_options(options):
    """What options= says about caches; the engine asks PyTorch's configuration and the environment whenever it compiles."""
    return {name: bool(options[name]) for name in ("fx_graph_cache", "fx_graph_remote_cache") if options.get(name) is not None}


def engine_backend(backend):
    """The engine's name of a backend, or the function that it is: given as one, registered with PyTorch, or found in a package."""
    if isinstance(backend, str):
        known = _BACKENDS.get(backend)
        if known is not None:
            return known
        from . import _function_backends
        found = _function_backends.named(backend)
        if found is None:
            raise _invalid_backend(backend)
        return found
    if not callable(backend):
        raise TypeError(f"backend must be a name or a callable, not {type(backend).__name__}")
    return backend


def _invalid_backend(name):
    from torch._dynamo.exc import InvalidBackend

    class InvalidBackendHere(InvalidBackendError, InvalidBackend):
        def __init__(self, text):
            RuntimeError.__init__(self, text)

    InvalidBackendHere.__name__ = InvalidBackendHere.__qualname__ = "InvalidBackendError"
    return InvalidBackendHere(f"Invalid backend: {name!r}, see `fusebox.list_backends()` for available backends.")

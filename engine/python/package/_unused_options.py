"""What is accepted for PyTorch's sake and has no effect here: said once, with the reason."""

import sys
import warnings

# Settings of torch._inductor.config that do what they say.
ACTING = {
    "fallback_random", "fx_graph_cache", "fx_graph_remote_cache", "force_disable_caches", "max_autotune", "emulate_precision_casts", "nan_asserts", "size_asserts",
    "deterministic",
    "triton.cudagraphs", "triton.cudagraph_unexpected_rerecord_limit", "triton.cudagraph_or_error",
    # the folder of TORCH_COMPILE_DEBUG (_compile_debug.py)
    "trace.enabled", "trace.debug_dir", "trace.fx_graph", "trace.fx_graph_transformed", "trace.ir_pre_fusion", "trace.ir_post_fusion", "trace.output_code",
    "trace.graph_diagram", "trace.draw_orig_fx_graph", "trace.provenance_tracking_level", "trace.debug_log", "trace.info_log", "trace.upload_tar",
    "trace.log_autotuning_results",
}

# Of these the engine tells when it compiles, since they may be patched until then.
_TOLD_LATER = {"autotune_remote_cache", "bundled_autotune_remote_cache"}
_TIMED = "what was timed is part of the compiled graph, which fx_graph_remote_cache shares"

# Why the others do not: the first name or beginning of a name that fits. Sizes are always checked, so size_asserts cannot be switched off.
_REASONS = (
    ("triton.cudagraph", "CUDA graphs are recorded by another scheme, which has no such setting"),
    ("triton.", "kernels are generated without Triton"),
    ("cpp", "machine code is generated without a C++ compiler"),
    ("aot_inductor", "programs are compiled where they run, not packaged"),
    ("cuda.", "no CUDA source is compiled"), ("cutlass", "there are no CUTLASS kernels"), ("rocm.", "there is no code for ROCm"),
    ("xpu.", "there is no code for XPU"), ("halide.", "Halide is not used"),
    ("trace.save_real_tensors", "graphs are kept without their data; `fusebox numerics` looks at values"),
    ("trace.dot_graph_shape", "diagrams have plain boxes"),
    ("trace.log_url_for_graph_xform", "TORCH_LOGS=graph_code_verbose tells of each pass, `fusebox debug --break 'pass * after'` shows what it changed"),
    ("trace.compile_profile", "the compiler is no Python; TORCH_TRACE and `fusebox run --session` have the time of each stage"),
    ("trace.", "TORCH_COMPILE_DEBUG and `fusebox run --session` show every stage"), ("debug", "TORCH_LOGS, `fusebox debug` and `fusebox run --session` show every stage"),
    ("freezing", "parameters stay the module's own"), ("max_autotune", "matrix products and convolutions are the libraries'; of generated "
                                                                      "kernels max_autotune alone decides"),
    ("coordinate_descent", "launch shapes are chosen among a few that are timed"),
    ("compile_threads", "kernels are compiled by threads of this process"), ("worker", "kernels are compiled by threads of this process"),
    ("autotune_remote", _TIMED), ("bundled_autotune_remote", _TIMED), ("autotune_local", _TIMED), ("shape_padding", "operands are not padded"),
    ("use_fast_math", "arithmetic is IEEE's"), ("size_asserts", "sizes and strides are always checked"),
)
_PASSES = ("pass", "partitioner", "hook")

_said = set()


def once(text):
    if text not in _said:
        _said.add(text)
        warnings.warn(text, UserWarning, stacklevel=4)


def _reason(name):
    for beginning, reason in _REASONS:
        if name.startswith(beginning):
            return reason
    if any(part in name for part in _PASSES):
        return "graphs are not handed to functions in Python"
    return "it is a setting of TorchInductor's own code, which does not run"


def _acts(name, value):
    return name in ACTING and not (name == "size_asserts" and not value)


def tell_unused(options, mode_options, mode, config):
    """One warning for every setting that somebody made and that changes nothing. `config`: torch._inductor.config, or None if nobody has
    looked at it."""
    for name, value in options.items():
        if not _acts(name, value) and not _is(config, name, value):
            once(f"torch.compile option {name!r} has no effect under Fusebox: {_reason(name)}")
    for name in mode_options:
        if not _acts(name, mode_options[name]):
            once(f"torch.compile mode {mode!r}: {name!r} has no effect under Fusebox: {_reason(name)}")
    if config is not None:
        for name in _changed(config):
            if name not in _TOLD_LATER and not _acts(name, None if name != "size_asserts" else config.size_asserts):
                once(f"torch._inductor.config.{name} has no effect under Fusebox: {_reason(name)}")


def _is(config, name, value):
    """Whether an option says what holds anyway."""
    entry = getattr(config, "_config", {}).get(name)
    default = getattr(entry, "default", value is None)
    return type(default) is type(value) and default == value


def _changed(config):
    is_default, entries = getattr(config, "_is_default", None), getattr(config, "_config", None)
    if is_default is None or entries is None:
        return []
    changed = [name for name, entry in entries.items() if entry.alias is None and not is_default(name)]
    return [name for name in changed if not _is(config, name, entries[name].user_override)]  # patches that ended leave the default behind


def loaded_config():
    return sys.modules.get("torch._inductor.config")

"""Switches of the process and the thread, which a program may read and set between calls."""

import os
import tempfile

import torch

from . import edge


def both(compile, read, *changes):
    """What a function that reads the state gives, before and after each change."""
    c, x = compile(read), torch.zeros(1)
    out = [c(x)]
    for change in changes:
        change()
        out.append(c(x))
    return out


@edge
def numbers_of_threads(compile, engine):
    torch.set_num_threads(1)
    return both(compile, lambda x: x + torch.get_num_threads(), lambda: torch.set_num_threads(2), lambda: torch.set_num_threads(1))


@edge
def number_of_interop_threads(compile, engine):
    return both(compile, lambda x: x + torch.get_num_interop_threads(), lambda: torch.set_num_interop_threads(3))


@edge
def switches_of_autograd(compile, engine):
    return [both(compile, lambda x: x + 1 if torch.is_anomaly_enabled() else x, lambda: torch.autograd.set_detect_anomaly(True)),
            both(compile, lambda x: x + 1 if torch.is_anomaly_check_nan_enabled() else x,
                 lambda: torch.autograd.set_detect_anomaly(True, check_nan=False)),
            both(compile, lambda x: x + 1 if torch.is_warn_always_enabled() else x, lambda: torch.set_warn_always(True)),
            both(compile, lambda x: x + 1 if torch.autograd._profiler_enabled() else x),
            both(compile, lambda x: x + 1 if torch.is_grad_enabled() else x, lambda: torch.set_grad_enabled(False))]


@edge
def switches_of_backends(compile, engine):
    b, m = torch.backends, torch.backends.cuda.matmul

    def put(holder, name, value):
        return lambda: setattr(holder, name, value)

    return [both(compile, lambda x: x + 1 if b.cudnn.allow_tf32 else x, put(b.cudnn, "allow_tf32", False)),
            both(compile, lambda x: x + 1 if m.allow_tf32 else x, put(m, "allow_tf32", True)),
            both(compile, lambda x: x + 1 if m.allow_bf16_reduced_precision_reduction else x,
                 put(m, "allow_bf16_reduced_precision_reduction", False)),
            both(compile, lambda x: x + 1 if m.allow_fp16_reduced_precision_reduction else x,
                 put(m, "allow_fp16_reduced_precision_reduction", False)),
            both(compile, lambda x: x + 1 if m.allow_fp16_accumulation else x, put(m, "allow_fp16_accumulation", True)),
            both(compile, lambda x: x + 1 if b.cudnn.benchmark else x, put(b.cudnn, "benchmark", True)),
            both(compile, lambda x: x + 1 if b.cudnn.deterministic else x, put(b.cudnn, "deterministic", True)),
            both(compile, lambda x: x + 1 if b.mkldnn.enabled else x, put(b.mkldnn, "enabled", False)),
            both(compile, lambda x: x + 1 if b.cuda.flash_sdp_enabled() else x, lambda: b.cuda.enable_flash_sdp(False)),
            both(compile, lambda x: x + 1 if b.opt_einsum.enabled else x, put(b.opt_einsum, "enabled", False)),
            both(compile, lambda x: x + {"default": 0, "cusolver": 1,
                                         "magma": 2}[str(b.cuda.preferred_linalg_library()).split(".")[-1].lower()],
                 lambda: b.cuda.preferred_linalg_library("default"))]


@edge
def precision_and_determinism(compile, engine):
    level = {"highest": 0.0, "high": 1.0, "medium": 2.0}
    return [both(compile, lambda x: x + level[torch.get_float32_matmul_precision()], lambda: torch.set_float32_matmul_precision("high")),
            both(compile, lambda x: x + torch.get_deterministic_debug_mode(), lambda: torch.set_deterministic_debug_mode(1)),
            both(compile, lambda x: x + torch.are_deterministic_algorithms_enabled(), lambda: torch.use_deterministic_algorithms(False)),
            both(compile, lambda x: x + torch.utils.deterministic.fill_uninitialized_memory,
                 lambda: setattr(torch.utils.deterministic, "fill_uninitialized_memory", False))]


@edge
def default_dtype_and_device(compile, engine):
    return [both(compile, lambda x: torch.ones(2) + 0.5, lambda: torch.set_default_dtype(torch.float64)),
            both(compile, lambda x: torch.get_default_device().type == "cpu", lambda: torch.set_default_device("meta"),
                 lambda: torch.set_default_device(None))]


@edge
def autocast_and_its_cache(compile, engine):
    def entered(dtype):
        return lambda: torch.autocast("cpu", dtype).__enter__()

    return [both(compile, lambda x: (x[None] @ x[:, None]).dtype, entered(torch.bfloat16), entered(torch.float16)),
            both(compile, lambda x: x + torch.is_autocast_cache_enabled(), lambda: torch.set_autocast_cache_enabled(False)),
            both(compile, lambda x: torch.get_autocast_dtype("cpu"), lambda: torch.set_autocast_dtype("cpu", torch.float16)),
            both(compile, lambda x: torch.is_autocast_enabled("cuda"), lambda: torch.set_autocast_enabled("cuda", True))]


@edge
def random_state_is_read(compile, engine):
    torch.manual_seed(1)
    out = both(compile, lambda x: x + torch.initial_seed(), lambda: torch.manual_seed(7))
    return out, both(compile, lambda x: x + torch.default_generator.initial_seed(), lambda: torch.manual_seed(9))


@edge
def environment_and_working_folder(compile, engine):
    folder = tempfile.mkdtemp()
    os.environ["EDGE"] = "1"
    return [both(compile, lambda x: x + int(os.environ["EDGE"]), lambda: os.environ.update(EDGE="2")),
            both(compile, lambda x: x + int(os.environ.get("OTHER", 0)), lambda: os.environ.update(OTHER="2")),
            both(compile, lambda x: x + int(os.getenv("EDGE")), lambda: os.environ.update(EDGE="3")),
            both(compile, lambda x: os.getcwd() == folder, lambda: os.chdir(folder))]


@edge
def process_group_comes_and_goes(compile, engine):
    import torch.distributed as dist

    def f(x):
        return x * 10 if dist.is_initialized() else x

    def g(x):
        if dist.is_available() and dist.is_initialized():
            x = x * dist.get_world_size() + dist.get_rank() + 5
        return x + 1

    def start():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

    c, d, x = compile(f), compile(g), torch.ones(2)
    out = [c(x), d(x)]
    start()
    out += [c(x), d(x)]
    dist.destroy_process_group()
    return out + [c(x), d(x)]


@edge
def default_device_mode_is_said(compile, engine):
    """Under torch.set_default_device nothing may run eagerly without a word, and fullgraph=True means what it says."""
    torch.set_default_device("cpu")

    def f(x):
        return torch.ones(2) + x

    def g(x):
        return x + 1 if x.sum() > 0 else x

    c, x = compile(f, fullgraph=True), torch.ones(2)
    out = [c(x)]
    if engine is None:
        return out + ["an error or a graph", "an error"]
    out.append("an error or a graph" if engine.counters()["graphs"] else f"nothing: {engine.counters()}")
    try:
        compile(g, fullgraph=True)(x)
        return out + ["no error though there is a break"]
    except Exception:
        return out + ["an error"]


@edge
def settings_that_are_written(compile, engine):
    """Modules of torch's settings are of a class of their own, whose __setattr__ writes by object's."""
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    def f(x, v):
        inductor.max_autotune = v
        y = x + 1 if inductor.max_autotune else x - 1
        functorch.donated_buffer = not v
        return y, inductor.max_autotune, inductor._is_dirty

    c, x = compile(f), torch.zeros(1)
    return [c(x, v) for v in (True, False, True)], inductor.max_autotune, functorch.donated_buffer

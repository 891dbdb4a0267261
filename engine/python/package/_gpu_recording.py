"""The GPU half of a recording: CUPTI from the moment that CUDA is in use, and out of torch.profiler's way while that runs.

FUSEBOX_GPU_TIMES=0 leaves CUPTI alone. FUSEBOX_GPU_COUNTERS (names of CUPTI metrics with commas, or "default") reads hardware counters
around kernels, of at most FUSEBOX_GPU_COUNTERS_LAUNCHES (1000) launches. FUSEBOX_GPU_SAMPLING (an interval in microseconds) samples
counters of the whole device while kernels run as they would: those that FUSEBOX_GPU_SAMPLING_METRICS names (default: "default").
"""

import os
import sys

from ._engine_access import _engine

_wrapped = None  # (torch.autograd.profiler, its own _prepare_profiler, its own _disable_profiler) while we stand before them


def begin():
    """Records GPUs from now on, or from the first use of CUDA: switching CUPTI on earlier would initialise the driver, and a
    process that forks its workers must not do that before them."""
    import torch

    if os.environ.get("FUSEBOX_GPU_TIMES", "1") == "0":
        _engine.record_fact("gpu_times", "off: FUSEBOX_GPU_TIMES=0")
    elif torch.version.cuda:
        torch.cuda._lazy_call(_start)


def end():
    """Waits for the devices, so that nothing under way is lost, and gives torch.profiler its own functions back."""
    if _engine.records_gpu():
        _synchronize()
    _unwrap()


def _start():
    import torch

    if not _engine.is_recording() or _engine.records_gpu():
        return
    try:
        index = torch.cuda.current_device()
        _engine.record_fact("device", f"{torch.cuda.get_device_name(index)}")
        _engine.record_fact("cuda", torch.version.cuda)
        _wrap()
        if torch._C._autograd._profiler_enabled():
            return  # torch.profiler has CUPTI; _disable_profiler starts us
        _start_now(index)
    except Exception as error:  # a script must not fail because it is being watched
        print(f"fusebox: GPU times are not recorded: {error}", file=sys.stderr)


def _start_now(device):
    if _engine.start_gpu_recording():
        _start_counters(device)
        _start_sampling(device)


def _start_counters(device):
    metrics = os.environ.get("FUSEBOX_GPU_COUNTERS")
    if not metrics:
        return
    why = _engine.start_gpu_counters(device, metrics, int(os.environ.get("FUSEBOX_GPU_COUNTERS_LAUNCHES", "1000")))
    if why:
        print(f"fusebox: {why}", file=sys.stderr)


def _start_sampling(device):
    interval = os.environ.get("FUSEBOX_GPU_SAMPLING")
    if not interval:
        return
    why = _engine.start_gpu_sampling(device, int(interval), os.environ.get("FUSEBOX_GPU_SAMPLING_METRICS") or "default")
    if why:
        print(f"fusebox: GPU counters are not sampled: {why}", file=sys.stderr)


def _synchronize():
    import torch

    for device in range(torch.cuda.device_count()):
        try:
            if torch.cuda.memory_reserved(device) > 0:
                torch.cuda.synchronize(device)
        except RuntimeError:
            pass  # a device that failed has told the program already


def _wrap():
    global _wrapped
    if _wrapped is not None:
        return
    import torch.autograd.profiler as profiler
    from torch._C._profiler import ProfilerActivity

    prepare, disable = profiler._prepare_profiler, profiler._disable_profiler

    def _prepare_profiler(config, activities, *rest, **more):
        if ProfilerActivity.CUDA in activities and _engine.records_gpu():
            _synchronize()
            _engine.pause_gpu_recording("torch.profiler")
        return prepare(config, activities, *rest, **more)

    def _disable_profiler(*args, **kwargs):
        try:
            return disable(*args, **kwargs)
        finally:
            if _engine.is_recording() and not _engine.records_gpu() and not _engine.resume_gpu_recording():
                import torch

                _start_now(torch.cuda.current_device())

    profiler._prepare_profiler, profiler._disable_profiler = _prepare_profiler, _disable_profiler
    _wrapped = profiler, prepare, disable


def _unwrap():
    global _wrapped
    if _wrapped is None:
        return
    profiler, prepare, disable = _wrapped
    profiler._prepare_profiler, profiler._disable_profiler = prepare, disable
    _wrapped = None

"""Writing a session: fusebox.record(path), and what the host process uses."""

import contextlib
import os
import platform
import sys

from . import _gpu_recording, _settings_record
from ._engine_access import _engine


def facts(engine="fusebox"):
    """What a session says about its origin."""
    import torch

    ranks = {name.lower(): os.environ[name] for name in ("RANK", "WORLD_SIZE") if name in os.environ}
    settings = {f"config.{name}": str(value) for name, value in _engine.configuration().items()}
    return {"engine": engine, "torch": torch.__version__, "python": platform.python_version(), "device": "cpu",
            "command": " ".join(sys.orig_argv), "platform": platform.platform(), "torch_threads": str(torch.get_num_threads()),
            **ranks, **settings}


def _memory_at_start():
    """Resident bytes now; the peak since the process began is only known at the end."""
    try:
        with open("/proc/self/statm") as file:
            return {"memory.start_rss_bytes": int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")}
    except (OSError, ValueError, IndexError):
        return {}


def _memory_at_end():
    """Peaks of the process and of torch's allocators, for devices that were used."""
    import resource

    import torch

    found = {"memory.peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    if torch.cuda.is_initialized():
        for index in range(torch.cuda.device_count()):
            allocated = torch.cuda.max_memory_allocated(index)
            if allocated:
                found[f"memory.device.cuda:{index}.peak_allocated_bytes"] = allocated
                found[f"memory.device.cuda:{index}.peak_reserved_bytes"] = torch.cuda.max_memory_reserved(index)
    return found


def start(path, engine="fusebox", **more):
    more.update(_memory_at_start())
    _engine.start_recording(os.fsdecode(path), {**facts(engine), **{k: str(v) for k, v in more.items()}})
    if engine != "fusebox":
        # Ours times its kernels itself. Kernels of torch.compile's C++ code are only announced on request.
        os.environ.setdefault("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE", "1")
    if engine != "fusebox" or os.environ.get("FUSEBOX_OPERATORS") == "1":
        _engine.record_fact("operators", "on")
        _engine.record_operators()
    _gpu_recording.begin()


def fact(key, value):
    """Adds a row to the session's session_info."""
    _engine.record_fact(key, str(value))


def flush():
    """Blocks until all that was recorded is in the file; in a process that this one forked, which records nothing, at once."""
    _engine.flush_recording()


def stop():
    try:
        _settings_record.record()
        _gpu_recording.end()
        with contextlib.suppress(RuntimeError):  # not recording any more
            for key, value in _memory_at_end().items():
                fact(key, value)
    finally:
        _engine.stop_recording()


def discard(path):
    """Ends the recording and removes its file."""
    try:
        stop()
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                os.remove(f"{path}{ending}")


@contextlib.contextmanager
def record(path):
    """Records everything compiled and run inside the with block into the session file `path`."""
    start(path)
    try:
        yield
    finally:
        stop()

"""Writing a session: fusebox.record(path), and what the host process uses."""

import contextlib
import platform
import sys

from ._engine_access import _engine


def facts(engine="fusebox"):
    """What a session says about its origin."""
    import torch

    settings = {f"config.{name}": str(value) for name, value in _engine.configuration().items()}
    return {"engine": engine, "torch": torch.__version__, "python": platform.python_version(), "device": "cpu",
            "command": " ".join(sys.orig_argv), "platform": platform.platform(), "torch_threads": str(torch.get_num_threads()),
            **settings}


def start(path, engine="fusebox", **more):
    _engine.start_recording(str(path), {**facts(engine), **{k: str(v) for k, v in more.items()}})


def fact(key, value):
    """Adds a row to the session's session_info."""
    _engine.record_fact(key, str(value))


def stop():
    _engine.stop_recording()


@contextlib.contextmanager
def record(path):
    """Records everything compiled and run inside the with block into the session file `path`."""
    start(path)
    try:
        yield
    finally:
        stop()

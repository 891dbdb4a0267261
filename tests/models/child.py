"""Work in a forked process, with a limit on its time: what it does to itself, or that it ends its process, concerns nobody else."""

import gc
import importlib
import os
import select
import signal
import sys
import time
import traceback


def import_once(*modules):
    """Before the first child: what many would import for themselves, and that none need copy or visit what is there."""
    for module in modules:
        importlib.import_module(module)
    gc.freeze()


def run(work, limit):
    """What `work()` gives in a child (bytes), and how that ended: its wait status, or None where it, with all that it started, was killed after
    `limit` seconds."""
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(read)
        try:
            data = work()
            while data:
                data = data[os.write(write, data):]
        except BaseException:  # nothing of the parent's may run here
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(write)
    given, end = b"", time.monotonic() + limit
    while True:
        ready, _, _ = select.select([read], [], [], max(0, end - time.monotonic()))
        part = os.read(read, 1 << 16) if ready else b""
        if not part:
            break
        given += part
    if not ready:
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:  # it has no group of its own yet, or is gone
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(read)
    return given, status if ready else None


def ending(status):
    """A wait status in words: "SIGSEGV", "exit 3"."""
    return signal.Signals(status & 127).name if status & 127 else f"exit {status >> 8}"

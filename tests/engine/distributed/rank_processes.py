"""Programs on several ranks (this machine; over gloo by run_rank()), each a process of its own with a time limit; what a rank prints as JSON comes back."""

import atexit
import concurrent.futures
import json
import os
import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import processes  # noqa: E402


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Hangs(AssertionError):
    """Ranks did not end in time."""


def run_ranks(file, program, size=2, limit=120, **environment):
    """[(what the rank gave, its stderr, its exit code)] of `program`, a function of `file`, on `size` ranks."""
    shared = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1", **environment}

    def run(rank):
        return processes.run_python([file, "--rank", program], env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}, timeout=limit)

    with concurrent.futures.ThreadPoolExecutor(size) as threads:
        ranks = [threads.submit(run, rank) for rank in range(size)]
    given = []
    for rank in ranks:
        try:
            done = rank.result()
        except subprocess.TimeoutExpired:
            raise Hangs(f"{program} did not end within {limit} s") from None
        lines = done.stdout.strip().splitlines()
        given.append((json.loads(lines[-1]) if lines else None, done.stderr, done.returncode))
    return given


def is_rank():
    return "--rank" in sys.argv


def run_rank(scope):
    """In a rank's process: initialises the process group, runs the program, prints what it gives and ends the process.

    The interpreter is not finalized: gloo's threads drop the Python callbacks of communication hooks when they come to it, and a thread that asks
    for the GIL inside a destructor once finalizing has begun ends the process ("terminate called without an active exception"), in eager too.
    """
    import torch.distributed as dist
    dist.init_process_group("gloo")
    try:
        given = scope[sys.argv[-1]](dist.get_rank())
        dist.barrier()
    finally:
        dist.destroy_process_group()
    print(json.dumps(given), flush=True)
    atexit._run_exitfuncs()
    os._exit(0)

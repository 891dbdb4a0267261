"""Fresh processes of Python for tests that need many: `run_python` is `subprocess.run` of one, forked from a process that has imported torch and
nothing else (what takes most of the time of a small program). Two such servers, of different hash seeds and addresses, take turns, so that what
one process leaves for the next cannot lean on either."""

import atexit
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

# Variables that Python and torch read while they begin, but for some: forked processes have those of their server.
_EARLY = ("PYTHON", "TORCH", "PYTORCH", "LD_", "OMP_", "MKL_", "KMP_", "OPENBLAS_")
_LATE = ("TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_FX_", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
_SERVE = "import sys; sys.path.insert(0, {folder!r}); import processes; exec(processes.next_program())"


def run_python(arguments, *, env, cwd=None, timeout=300):
    """`subprocess.run([sys.executable, *arguments])` with its output as text; `arguments` begin with "-c", code or with a file.

    The first process of an environment is one from the start; later ones are forked. Raises subprocess.TimeoutExpired as `subprocess.run` does."""
    early = tuple(sorted((name, value) for name, value in env.items() if name.startswith(_EARLY) and not name.startswith(_LATE)))
    with _guard:
        turns = _servers.get(early)
        if turns is None:
            _servers[early] = itertools.cycle([_Server(env), _Server(env)])
        server = next(turns) if turns else None
    if server is None or not server.lock.acquire(blocking=False):
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env, cwd=cwd, timeout=timeout)
    try:
        return server.run(arguments, env, cwd, timeout)
    finally:
        server.lock.release()


class _Server:
    """A process that forks; begun by its first program."""

    def __init__(self, env):
        self.env, self.lock, self.process = env, threading.Lock(), None

    def run(self, arguments, env, cwd, timeout):
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, "-c", _SERVE.format(folder=str(pathlib.Path(__file__).parent))], env=self.env,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
            atexit.register(self.stop)
        with tempfile.TemporaryDirectory() as folder:
            out, err = os.path.join(folder, "out"), os.path.join(folder, "err")
            job = {"arguments": list(arguments), "env": dict(env), "cwd": str(cwd or os.getcwd()), "out": out, "err": err}
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            late = threading.Timer(timeout, self.stop)
            late.start()
            answer = self.process.stdout.readline()
            late.cancel()
            if not answer:
                raise subprocess.TimeoutExpired([sys.executable, *arguments], timeout)
            texts = [pathlib.Path(file).read_text(errors="replace") for file in (out, err)]
        return subprocess.CompletedProcess([sys.executable, *arguments], int(answer), *texts)

    def stop(self):
        process, self.process = self.process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdin.close()


_guard = threading.Lock()
_servers = {}


def next_program():
    """In a server: forks for each program asked for. Returns in the forked process only, which then is that program's, with its code."""
    import torch  # noqa: F401

    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            return _become(job)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    os._exit(0)


def _become(job):
    for fd, path in ((1, job["out"]), (2, job["err"])):
        to = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        os.dup2(to, fd)
        os.close(to)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    sys.dont_write_bytecode = bool(job["env"].get("PYTHONDONTWRITEBYTECODE"))
    first, *rest = job["arguments"]
    name, text, folder, argv = ("<string>", rest[0], "", ["-c", *rest[1:]]) if first == "-c" else (
        first, pathlib.Path(first).read_text(), os.path.dirname(os.path.abspath(first)), job["arguments"])
    sys.argv = argv
    paths = [path for path in job["env"].get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = list(dict.fromkeys([folder, *paths, *(path for path in sys.path[1:] if path != os.path.dirname(__file__))]))
    main = vars(sys.modules["__main__"])
    for extra in ("processes", "sys"):
        del main[extra]
    if first != "-c":
        main["__file__"] = first
    return compile(text, name, "exec")

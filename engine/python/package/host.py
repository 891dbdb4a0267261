"""Runs a script, module or command as Python itself would, under an engine of choice, recording a session.

    python -m fusebox.host script.py [args...] | -m module [args...] | -c code [args...]

Environment: FUSEBOX_ENGINE (fusebox, stock or eager), FUSEBOX_SESSION (file to write), FUSEBOX_RECORD ("0": write none),
FUSEBOX_RANKS ("1": this is a rank that torchrun started, with a file of its own beside that),
FUSEBOX_SPAWNED (the number of the parent's last call of torch.multiprocessing.spawn: what that started is recorded as a rank),
FUSEBOX_WORKERS (file in which a process that is not recorded notes that it compiles),
FUSEBOX_CONTROL and FUSEBOX_CONTROL_TOKEN (socket of the window or console that debugs the compiler).
PyTorch is not imported before the program does it: engine and recorder start with that import.
"""

import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import runpy
import signal
import sys
import types

_HERE = os.path.abspath(__file__)
_LAUNCHER = "torch.distributed.run"
_SPAWN = "torch.multiprocessing.spawn"


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls `then` once, when the import of a module has finished."""

    def __init__(self, module, then):
        self._module = module
        self._then = then
        self._busy = False

    def find_spec(self, name, path=None, target=None):
        if name != self._module or self._busy:
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy = False
        if spec is None or spec.loader is None:
            return None
        spec.loader = _Loader(spec.loader, self)
        return spec

    def finished(self):
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._then()


class _Loader(importlib.abc.Loader):
    def __init__(self, loader, finder):
        self._loader = loader
        self._finder = finder

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._finder.finished()

    def __getattr__(self, name):
        return getattr(self._loader, name)


class Host:
    """One run of a program."""

    def __init__(self, environment):
        self.engine = environment.get("FUSEBOX_ENGINE", "fusebox")
        self.session = environment.get("FUSEBOX_SESSION", "") if environment.get("FUSEBOX_RECORD", "1") != "0" else ""
        if self.session and environment.get("FUSEBOX_RANKS") == "1":
            self.session = _session_of_rank(self.session, environment)
        self.recording = False
        # Where processes that this one starts, and nothing records, note their names when they compile.
        self.workers = environment.get("FUSEBOX_WORKERS", "")
        self.spawns = 0  # calls of torch.multiprocessing.spawn
        # Recorded when it begins to run as one of several, not as a worker of anything else.
        self.spawned_by = int(environment.get("FUSEBOX_SPAWNED", "0"))
        self.kept_for, self.session = (self.session, "") if self.spawned_by else ("", self.session)
        # Taken out of the environment: programs that this one starts are not being debugged.
        self.control = environment.pop("FUSEBOX_CONTROL", ""), environment.pop("FUSEBOX_CONTROL_TOKEN", "")

    def start_engine(self):
        if self.engine == "eager":
            _compile_nothing()
        elif self.engine == "fusebox":
            try:
                from . import _install
            except ImportError as error:
                print(f"fusebox: the engine cannot be loaded into this Python: {error}\n"
                      "  It is built for one version of Python and of PyTorch. `fusebox doctor` says what fits here; "
                      "`fusebox run --engine stock` runs the script with PyTorch's own compiler.", file=sys.stderr)
                raise SystemExit(3) from None
            _install.install()
            if self.control[0]:
                self.attach_debugger()
            if self.workers and not self.kept_for:
                self.tell_as_worker()
        if self.session:
            self.start_recording()

    def attach_debugger(self):
        from . import _engine
        try:
            _engine.attach_debugger(*self.control)
        except RuntimeError as error:
            print(f"fusebox: running without the debugger: {error}", file=sys.stderr)

    def start_recording(self, **more):
        from . import _recording
        try:
            debugged = {"debugger": "times include those for which the program was stopped"} if self.control[0] else {}
            _recording.start(self.session, self.engine, script=" ".join(sys.argv), **debugged, **more)
            self.recording = True
            _flush_before_exit(_recording)
            if self.engine == "fusebox":
                self.workers = os.path.abspath(self.session) + ".workers"
                with contextlib.suppress(OSError):
                    os.unlink(self.workers)
                os.register_at_fork(after_in_child=self.tell_as_worker)
        except RuntimeError as error:
            print(f"fusebox: no session is recorded: {error}", file=sys.stderr)
            self.session = ""

    def tell_as_worker(self):
        """In a process that no session records: notes its name, once, when it compiles."""
        from . import _engine

        def compiling(begins):
            _engine.listen_to_compiling(compiling, False)
            multiprocessing = sys.modules.get("multiprocessing.process")
            with contextlib.suppress(OSError), open(self.workers, "a") as notes:
                notes.write(f"{multiprocessing.current_process().name if multiprocessing else 'forked'} ({os.getpid()})\n")

        if self.workers:
            _engine.listen_to_compiling(compiling, True)

    def record_workers(self):
        with contextlib.suppress(OSError):
            with open(self.workers) as notes:
                names = list(dict.fromkeys(notes.read().splitlines()))
            os.unlink(self.workers)
            from . import _engine
            _engine.record_loss("worker_processes", len(names), "processes that this one started compiled programs of their own, which is in no session: "
                                + ", ".join(names[:8]) + (", ..." if len(names) > 8 else ""))

    def forget_recording(self):
        """This process compiles nothing: it starts others, which are recorded."""
        if self.recording:
            from . import _recording
            _recording.stop()
            for part in ("", "-wal", "-shm"):
                if os.path.exists(self.session + part):
                    os.unlink(self.session + part)
        self.recording, self.session, self.workers = False, "", ""

    def record_as_rank(self, index):
        stem, ending = os.path.splitext(self.kept_for)
        self.session = f"{stem}-rank{index}{'' if self.spawned_by == 1 else f'-spawn{self.spawned_by}'}{ending}"
        self.start_recording(rank=os.environ.get("RANK", str(index)))

    def finish(self, ok, exit_code=0):
        """Ends the session. A program that never imported torch gets one too, so that there is always a file to open."""
        try:
            if self.session and not self.recording and ok:
                sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, _AfterImport)]
                self.start_recording()
            if self.recording:
                from . import _recording
                self.recording = False
                self.record_workers()
                _recording.fact("exit_code", exit_code)
                _recording.stop()
        except Exception as error:  # the program's own end is worth more than ours
            print(f"fusebox: the session could not be finished: {error}", file=sys.stderr)


def _flush_before_exit(recording):
    """os._exit ends the process as a crash does: without its exit functions."""
    own = os._exit

    @functools.wraps(own)
    def _exit(status):
        recording.flush()
        own(status)

    os._exit = _exit


def _session_of_rank(session, environment):
    """train.fusebox: train-rank0.fusebox, and train-rank0-restart1.fusebox where torchrun starts its ranks again."""
    stem, ending = os.path.splitext(session)
    restart = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    return f"{stem}-rank{environment.get('RANK', '0')}{'' if restart == '0' else '-restart' + restart}{ending}"


def _compile_nothing():
    """engine "eager": torch.compile hands back what it was given."""
    import torch

    def compile(model=None, **kwargs):
        return model if model is not None else (lambda f: f)

    torch.compile = compile


def follow(host):
    """Starts the engine with the program's import of torch, here, in the processes that multiprocessing spawns or has a server
    fork (those that this process forks have it already) and in ranks that torchrun starts. This process is recorded, or the ranks in its place; and those that
    torch.multiprocessing.spawn starts, as ranks beside it."""
    sys.meta_path.insert(0, _AfterImport("torch", host.start_engine))
    sys.meta_path.insert(0, _AfterImport(_LAUNCHER, lambda: _launch_with(host)))
    sys.meta_path.insert(0, _AfterImport("multiprocessing.util", lambda: _spawn_with(host)))
    if host.session or host.kept_for:
        sys.meta_path.insert(0, _AfterImport(_SPAWN, lambda: _spawn_ranks(host)))


_MAINS = tuple(f"from multiprocessing.{how} import " for how in ("spawn", "forkserver"))


def _spawn_with(host):
    util = sys.modules["multiprocessing.util"]
    own = util.spawnv_passfds

    def spawnv_passfds(path, args, passfds):
        at = args.index("-c") + 1 if "-c" in args else 0
        if at and args[at].startswith(_MAINS):
            environment = {"FUSEBOX_ENGINE": host.engine, "FUSEBOX_WORKERS": host.workers}
            # A server is started once and outlives the call whose number this is.
            if host.spawns and args[at].startswith(_MAINS[0]):
                environment.update(FUSEBOX_SESSION=os.path.abspath(host.session), FUSEBOX_SPAWNED=str(host.spawns))
            code = f"from fusebox import host; host.follow(host.Host({environment!r})); {args[at]}"
            args = [*args[:at], code, *args[at + 1:]]
        return own(path, args, passfds)

    util.spawnv_passfds = spawnv_passfds


def _spawn_ranks(host):
    """Counts what starts processes, and records this one if it was started so."""
    spawn = sys.modules[_SPAWN]
    start, wrap = spawn.start_processes, spawn._wrap

    @functools.wraps(start)
    def start_processes(*args, **words):
        host.spawns += bool(host.session)
        return start(*args, **words)

    @functools.wraps(wrap)
    def run(function, index, *rest):
        if not host.kept_for:
            return wrap(function, index, *rest)
        host.record_as_rank(index)
        ok = False
        try:
            wrap(function, index, *rest)
            ok = True
        finally:
            host.finish(ok, 0 if ok else 1)

    spawn.start_processes, spawn._wrap = start_processes, run


def _launch_with(host):
    """What torchrun starts runs under this host too."""
    launcher = sys.modules[_LAUNCHER]
    own = launcher.config_from_args

    def config_from_args(args):
        config, command, words = own(args)
        if not isinstance(command, str) or words[:1] != ["-u"]:
            return config, command, words  # no program in Python
        os.environ["FUSEBOX_RANKS"] = "1"
        host.forget_recording()
        return config, command, ["-u", "-m", "fusebox.host", *words[1:]]

    launcher.config_from_args = config_from_args


def _new_main(file):
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=sys.modules["builtins"], __spec__=None, __package__=None, __cached__=None, __doc__=None)
    if file is not None:
        main.__file__ = file
    else:
        del main.__dict__["__cached__"]
    sys.modules["__main__"] = main
    return main


def _run_command(code, args):
    sys.argv = ["-c", *args]
    sys.path[0] = ""
    main = _new_main(None)
    main.__loader__ = importlib.machinery.BuiltinImporter
    exec(compile(code, "<string>", "exec"), main.__dict__)


def _run_module(name, args):
    sys.argv = [name, *args]
    sys.path[0] = os.getcwd()
    if name == _LAUNCHER:
        importlib.import_module(name).main()  # as torchrun does; under __main__ it would be another module
        return
    _new_main(None)
    runpy._run_module_as_main(name)


def _run_script(path, args):
    sys.argv = [path, *args]
    if os.path.isdir(path) or _is_archive(path):
        sys.path[0] = os.path.dirname(os.path.realpath(path))
        sys.path.pop(0)
        runpy.run_path(path, run_name="__main__")
        return
    try:
        with io.open_code(os.path.abspath(path)) as stream:
            source = stream.read()
    except OSError as error:
        print(f"{sys.executable}: can't open file {os.path.abspath(path)!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    main = _new_main(path)
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    exec(compile(source, path, "exec"), main.__dict__)


def _is_archive(path):
    import zipfile
    return os.path.isfile(path) and zipfile.is_zipfile(path)


def run_program(argv):
    """Runs what `argv` names as __main__; returns when it ends, raises what it raises."""
    if not argv:
        print("usage: python -m fusebox.host (script.py | -m module | -c code) [args...]", file=sys.stderr)
        raise SystemExit(2)
    kind, rest = argv[0], argv[1:]
    if kind in ("-m", "-c"):
        if not rest:
            print(f"Argument expected for the {kind} option", file=sys.stderr)
            raise SystemExit(2)
        return (_run_module if kind == "-m" else _run_command)(rest[0], rest[1:])
    return _run_script(kind, rest)


def _user_traceback(tb):
    """The traceback from the program's first frame on."""
    ours = {_HERE, os.path.abspath(runpy.__file__), "<frozen runpy>"}
    while tb is not None and (tb.tb_frame.f_code.co_filename in ours or os.path.abspath(tb.tb_frame.f_code.co_filename) in ours):
        tb = tb.tb_next
    return tb


def _report(error):
    """Prints an uncaught exception as the interpreter would."""
    tb = _user_traceback(error.__traceback__)
    error.__traceback__ = tb
    try:
        sys.excepthook(type(error), error, tb)
    except SystemExit:
        raise
    except BaseException:
        sys.__excepthook__(type(error), error, tb)


def main(argv=None):
    host = Host(os.environ)
    follow(host)
    status = 0
    interrupted = False
    try:
        run_program(list(sys.argv[1:] if argv is None else argv))
    except SystemExit as end:
        status = end.code
        end.__traceback__ = None
    except KeyboardInterrupt as error:
        interrupted = True
        _report(error)
    except BaseException as error:
        status = 1
        _report(error)
    _run_at_exit(host, status in (0, None), _exit_code(status, interrupted))
    if interrupted:
        _flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    sys.exit(status)


def _exit_code(status, interrupted):
    """What the shell will see of sys.exit(status)."""
    if interrupted:
        return 128 + signal.SIGINT
    if status is None:
        return 0
    return status & 0xFF if isinstance(status, int) else 1


def _run_at_exit(host, ok, exit_code):
    """The session ends after the program's threads and its own exit functions, which may still compute."""
    import atexit
    import threading

    # Exit functions run last-registered first; a helper registered now would run before the program's. So the program's threads
    # are awaited and its exit functions run here, then the session is finished.
    if host.session and not host.recording:
        import concurrent.futures.thread  # noqa: F401  torch, imported for the session below, needs it; too late after the shutdown
    try:
        threading._shutdown()
    except BaseException:  # interrupted while waiting: the interpreter itself gives up waiting as well
        pass
    atexit._run_exitfuncs()
    host.finish(ok, exit_code)


def _flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


if __name__ == "__main__":
    main()

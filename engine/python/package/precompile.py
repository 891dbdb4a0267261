"""torch.compiler.precompile (new in PyTorch 2.15) over this engine: a computation is captured from a call that the caller makes, and written as two files, of which another
process makes a callable without compiling.

    with torch.compiler.precompile.capture(fn, artifact_path="m.py", cache_path="m.cache") as call:
        y = call(model, x)
    f = torch.compiler.precompile.load("m.py", "m.cache")

The artifact is Python that says what was captured, for people and tools; the cache holds the code, and is what aot_compile writes (_ahead_of_time.py), with the artifact's
digest under its signature. Loading executes nothing of either. Here every guard is checked in every call, where PyTorch leaves it to the caller to keep to the contract."""

import contextlib
import dataclasses
import functools
import hashlib
import os
import pprint
import stat

import torch
from torch.utils._pytree import tree_leaves

from . import _ahead_of_time
from ._compile import engine_options
from ._engine_access import _engine

_FORMAT = 1


class PrecompileError(RuntimeError):
    """A computation cannot be captured or written down, files cannot be used here, or a call does not fit what was captured."""

    result = None  # of a call that ran before what raised this


@dataclasses.dataclass(frozen=True)
class MakeFxTracer:
    """How a computation is captured: from one call, for its sizes, except for dimensions that are marked (torch._dynamo.decorators.mark_unbacked)."""

    decompositions: dict | None = None


@dataclasses.dataclass(frozen=True)
class PrecompileSummary:
    """What a capture consists of: one frame, all of whose guards are kept (what cannot be is an error), so that it is complete."""

    frames: int = 1
    resume_functions: int = 0
    guarded_codes: int = 1
    backend_graphs: int = 1
    guards: int = 0
    operators: int = 0
    bypassed: tuple = ()
    truncated: tuple = ()
    uncovered_frames: tuple = ()
    dropped_guards: tuple = ()
    kept_guards: tuple = ()

    @property
    def complete(self):
        return not (self.bypassed or self.truncated or self.uncovered_frames)

    @property
    def dropped_guard_types(self):
        return _types_of(self.dropped_guards)

    @property
    def kept_guard_types(self):
        return _types_of(self.kept_guards)

    def __str__(self):
        return f"{self.operators} operators in {self.backend_graphs} graph(s) of {self.frames} frame(s), {self.guards} guards, none of them dropped"


def _types_of(guards):
    return {kind: sum(each[0] == kind for each in guards) for kind in sorted({guard[0] for guard in guards})}


# --- the process's state that a call finds

def _autocast():
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    return [[device, torch.is_autocast_enabled(device), str(torch.get_autocast_dtype(device)).removeprefix("torch.")] for device in devices]


@contextlib.contextmanager
def _under(training, autocast):
    """Gradients and autocast as they were for the call that was captured."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.set_grad_enabled(training))
        if autocast != _autocast():
            for device, enabled, dtype in autocast:
                stack.enter_context(torch.autocast(device, dtype=getattr(torch, dtype), enabled=enabled))
        yield


# --- capturing

def _require_files(artifact_path, cache_path):
    paths = [os.path.realpath(os.fspath(path)) for path in (artifact_path, cache_path)]
    if paths[0] == paths[1]:
        raise ValueError(f"artifact_path and cache_path are one file: {paths[0]}")
    for path in paths:
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            raise ValueError(f"{path} is no regular file")
    return paths


def _require_nothing_held(fn):
    """Models and tensors are arguments, so that no weights are part of the files."""
    held = []
    inner = fn
    while isinstance(inner, functools.partial):
        held += tree_leaves((inner.args, inner.keywords))
        inner = inner.func
    held += [inner, getattr(getattr(inner, "_torchdynamo_orig_callable", inner), "__self__", None)]
    for value in held:
        if isinstance(value, (torch.nn.Module, torch.Tensor)):
            raise PrecompileError(f"fn holds a {type(value).__name__}, which would become part of the files: pass models and tensors as arguments of the call")


class Capture:
    """What capture() gives: a context manager that is called once, as fn would be."""

    def __init__(self, fn, paths, training):
        self._fn, self._paths, self._training = fn, paths, training
        self._files = None
        self._is_open = False
        self.summary = None

    def __enter__(self):
        self._is_open = True
        return self

    def __call__(self, *args, **kwargs):
        if kwargs:
            raise TypeError("a capture is called with positional arguments only")
        if not self._is_open:
            raise PrecompileError("a capture is called inside of its with block")
        if self._files:
            raise PrecompileError("this capture has its call already: a capture is of one call")
        autocast = _autocast()
        with _under(self._training, autocast):
            compiled, event = self._compile(args)
        code = _source(self._fn, self._training, autocast, event)
        digest = hashlib.sha256(code.encode()).hexdigest()
        compiled = compiled.with_notes({"format": _FORMAT, "artifact": digest, "training": self._training, "autocast": autocast})
        self._files = code.encode(), compiled.data
        self.summary = PrecompileSummary(backend_graphs=int(event["operators"] > 0), guards=event["guards"], operators=event["operators"])
        return PrecompiledRunnable(compiled)(*args)

    def _compile(self, args):
        since = _engine.latest_event()
        _engine.keep_graph_text(True)
        try:
            compiled = _ahead_of_time.aot_compile(self._fn, engine_options(fullgraph=True, ahead_of_time=True), (args, {}))
        except (_ahead_of_time.AheadOfTimeError, RuntimeError, ValueError) as problem:
            raise PrecompileError(str(problem)) from problem
        finally:
            _engine.keep_graph_text(False)
        return compiled, next(event for event in reversed(_engine.events_since(since)) if event["kind"] == "compiled")

    def save(self):
        """Writes both files now; none of them where that fails."""
        if not self._files:
            raise PrecompileError("nothing is captured yet: call the capture first")
        waiting = [f"{path}.{os.getpid()}.part" for path in self._paths]
        try:
            for path, content in zip(waiting, self._files):
                with open(path, "wb") as file:
                    file.write(content)
            for path, final in zip(waiting, self._paths):
                os.replace(path, final)
        finally:
            for path in waiting:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)

    def __exit__(self, kind, error, traceback):
        self._is_open = False
        if kind is None:
            self.save()


def capture(fn, /, *, artifact_path, cache_path, tracer=MakeFxTracer(), backend="inductor", training=False):
    """A Capture of fn, a computation that gets models and inputs as positional arguments. `training`: with gradients enabled, and with the backward of what it
    returns; else the call runs without gradients."""
    if not isinstance(tracer, MakeFxTracer):
        raise TypeError(f"tracer is a MakeFxTracer, not {type(tracer).__name__}")
    if backend not in ("inductor", "eager"):
        raise ValueError(f"unknown backend {backend!r}: inductor or eager")
    if backend == "eager" or tracer.decompositions:
        what = "backend='eager'" if backend == "eager" else "MakeFxTracer(decompositions=…)"
        raise NotImplementedError(f"precompile.capture({what}) is not supported by Fusebox: graphs are compiled by its own lowering")
    paths = _require_files(artifact_path, cache_path)
    _require_nothing_held(fn)
    return Capture(fn, paths, bool(training))


def _source(fn, training, autocast, event):
    """Python that says what was captured. Nobody runs it."""
    name = getattr(fn, "__qualname__", type(fn).__name__)
    facts = {"format": _FORMAT, "function": name, "file": event["file"], "line": event["line"], "torch": torch.__version__, "engine": _engine.build(),
             "training": training, "autocast": autocast, "guards": event["guards"]}
    graph = event["graph"].replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return (f'"""{name}, captured by torch.compiler.precompile under Fusebox: what the cache beside this file computes. It is read, not run."""\n\n'
            f"ARTIFACT = {pprint.pformat(facts, sort_dicts=False)}\n\nGRAPH = \"\"\"\\\n{graph}\"\"\"\n")


# --- loading

class PrecompiledRunnable:
    """What load() gives: called as fn was. It installs nothing, so entering and unloading it do nothing."""

    installed = False

    def __init__(self, compiled):
        self._compiled = compiled
        self.__name__ = compiled.__name__

    def __call__(self, *args):
        notes = self._compiled.notes
        try:
            with _under(notes["training"], notes["autocast"]):
                return self._compiled(*args)
        except RuntimeError as problem:
            if isinstance(problem, _ahead_of_time.AheadOfTimeError) or f"{self.__name__} was compiled ahead of time, and" in str(problem):
                raise PrecompileError(str(problem)) from problem
            raise

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.unload()

    def unload(self):
        """Nothing to take back."""


def load(artifact_path, cache_path, /):
    """The callable that a capture wrote. With FUSEBOX_CACHE_KEY only what was signed with that key is loaded."""
    contents = []
    for path in _require_files(artifact_path, cache_path):
        try:
            with open(path, "rb") as file:
                contents.append(file.read())
        except OSError as problem:
            raise PrecompileError(f"{path} cannot be read: {problem.strerror}") from problem
    try:
        compiled = _ahead_of_time.AOTCompiledFunction(contents[1])
    except _ahead_of_time.AheadOfTimeError as problem:
        raise PrecompileError(f"{cache_path}: {problem}") from problem
    notes = compiled.notes
    if notes.get("format") != _FORMAT:
        raise PrecompileError(f"{cache_path} is no cache that precompile.capture() wrote")
    if notes["artifact"] != hashlib.sha256(contents[0]).hexdigest():
        raise PrecompileError(f"{artifact_path} and {cache_path} are not of one capture, or one of them was changed")
    return PrecompiledRunnable(compiled)

"""What is compiled, for the logs of the program: TORCH_LOGS, TORCH_TRACE and TORCH_COMPILE_DEBUG.

The engine tells of frames, graphs, guards, fusions and kernels record by record, to a session and to this module alike. Here they become
compilations, which are handed to the logs that are on when they are complete. While all are off the engine tells nothing: what is asked then,
once before each compilation, is whether that has changed.
"""

import atexit
import threading
import time

from ._engine_access import _engine
from ._graph_text import GraphText, ModuleText


class Frame:
    """A code object, or one that goes on at an instruction where a graph broke."""

    def __init__(self, number, record):
        self.number, self.compiles = number, 0
        self.name = self.code_name = record["name"]
        self.file, self.line = record["place"]["file"], record["place"]["line"]
        if record["offset"] >= 0:
            self.name = f"torch_dynamo_resume_in_{self.name}_at_{self.line}"


class Lowered:
    """One graph after its passes, and the kernels that it became."""

    def __init__(self, record):
        self.direction, self.name = record["direction"], record["name"]
        self.graph, self.graph_id = GraphText(record["saved"]), record["id"]
        self.origin = record["from"]
        self.ir, self.kernels, self.groups, self.decisions, self.buffers = {}, {}, [], [], []
        self.number = None  # of the graph in this process, once it is handed out

    @property
    def label(self):
        return f"{self.number}_{self.direction}"


class Compilation:
    """All that was told between the begin and the end of a compilation."""

    def __init__(self, record, frame, parent):
        self.record, self.frame, self.parent = record, frame, parent
        self.number = frame.compiles if frame else 0
        if frame:
            frame.compiles += 1
        self.begin_ns = self.end_ns = record["time_ns"]
        self.ok, self.error = True, ""
        self.causes, self.breaks, self.guards, self.symbols, self.relations, self.specialisations = [], [], [], [], [], []
        self.stages, self.caches, self.effects, self.instructions, self.bytecode, self.notes = [], [], [], [], [], []
        self.graphs, self.lowered = [], []
        self.graph_number = None  # of its graph in this process

    def forget(self):
        """Later ones refer to its place in the program and to its symbols, not to what it was made of."""
        for name in ("causes", "breaks", "guards", "relations", "specialisations", "stages", "caches", "effects", "instructions", "bytecode", "notes",
                     "graphs", "lowered"):
            setattr(self, name, [])

    @property
    def owner(self):
        """The compilation of the frame that this one belongs to: a backward graph's forward."""
        return self.parent.owner if self.parent else self

    @property
    def id(self):
        """"0/1": as everywhere in PyTorch's logs; None of a graph that no frame of this engine's led to."""
        owner = self.owner
        return f"{owner.frame.number}/{owner.number}" if owner.frame else None

    def graphs_of(self, *stages):
        return [graph for stage in stages for graph in self.graphs if graph["stage"] == stage]

    def stack(self):
        """The call that was compiled for, outermost frame first, without this engine's own frames."""
        return [p for p in self.owner.record["stack"] if not is_ours(p["file"])]


def is_ours(file):
    return "/fusebox/" in file and file.endswith(("host.py", "_compile.py", "_module.py")) or file.startswith("<frozen ")


class _Recent(dict):
    """Forgets the oldest of more than `limit`."""

    def __init__(self, limit):
        self._limit = limit

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        if len(self) > self._limit:
            del self[next(iter(self))]


class Assembly:
    """Records into compilations."""

    def __init__(self):
        self.frames, self.compilations, self.code, self.graphs = {}, {}, _Recent(4096), _Recent(64)
        self._failures, self._numbers, self._frame_count, self._open = [], 0, 0, []

    def take(self, records):
        """Yields ("compilation", Compilation), ("limit", (Frame, failures)), ("cuda_graph", (Compilation or None, record)),
        ("note", (Compilation or None, record))."""
        for record in records:
            handler = getattr(self, "_on_" + record["kind"], None)
            if handler is not None:
                yield from handler(record) or ()

    def _on_session(self, record):
        """Numbers of an earlier session mean nothing in this one."""
        for known in (self.frames, self.compilations, self.code, self.graphs):
            for number in [number for number in known if number < record["first_other_id"]]:
                del known[number]

    def _of(self, record):
        return self.compilations.get(record["compile"])

    def _on_frame(self, record):
        self.frames[record["id"]] = Frame(self._frame_count, record)
        self._frame_count += 1

    def _on_guard_failure(self, record):
        entry = self._of(record)
        record["entry"] = entry.id if entry else None
        self._failures.append(record)

    def _on_frame_status(self, record):
        if record["status"] == "limit":
            yield "limit", (self.frames.get(record["frame"]), [f for f in self._failures if f["frame"] == record["frame"]], record["reason"])
            self._failures = [f for f in self._failures if f["frame"] != record["frame"]]

    def _on_compile(self, record):
        frame, parent = self.frames.get(record["frame"]), self.compilations.get(record["parent"])
        made = self.compilations[record["id"]] = Compilation(record, frame, parent)
        made.causes = [f for f in self._failures if f["frame"] == record["frame"]]
        self._failures = [f for f in self._failures if f["frame"] != record["frame"]]
        self._open.append(made)

    def _on_compile_end(self, record):
        made = self._of(record)
        if made is None or made not in self._open:
            return
        self._open.remove(made)
        made.ok, made.error, made.end_ns = record["ok"], record["error"], record["time_ns"]
        if _handed_out and made.frame and made.record["of"] != "backward" and not made.graphs and _handed_out[-1][0] == made.frame.code_name:
            made.graphs.append({"stage": "captured", "direction": "inference", "name": made.frame.name, "id": 0, "text": ModuleText(_handed_out.pop()[1])})
        for lowered in made.lowered:
            owner = made.owner
            if owner.graph_number is None:
                owner.graph_number, self._numbers = self._numbers, self._numbers + 1
            lowered.number = owner.graph_number
        yield "compilation", made
        made.forget()

    def _on_graph(self, record):
        made = self._of(record)
        if made is None:
            return
        if record["stage"] == "post_fusion":
            if made.lowered:
                made.lowered[-1].graph_id = record["id"]
            return
        if record["stage"] == "post_grad":
            made.lowered.append(Lowered(record))
            self.graphs[record["id"]] = made.lowered[-1].graph, record["from"]
            return
        record["text"] = GraphText(record.pop("saved"))
        self.graphs[record["id"]] = record["text"], record["from"]
        made.graphs.append(record)

    def _append(self, name, record):
        made = self._of(record)
        if made is not None:
            getattr(made, name).append(record)

    def _on_graph_break(self, record):
        self._append("breaks", record)

    def _on_stage(self, record):
        self._append("stages", record)

    def _on_cache(self, record):
        self._append("caches", record)

    def _on_instruction(self, record):
        if self._open:
            self._open[-1].instructions.append(record)

    def _on_effects(self, record):
        self._append("effects", record)

    def _on_bytecode(self, record):
        self._append("bytecode", record)

    def _extend(self, name, record):
        made = self._of(record)
        if made is not None:
            getattr(made, name).extend(record["rows"])

    def _on_guards(self, record):
        self._extend("guards", record)

    def _on_symbols(self, record):
        self._extend("symbols", record)

    def _on_relations(self, record):
        self._extend("relations", record)

    def _on_specialisations(self, record):
        self._extend("specialisations", record)

    def _lowered(self, record):
        made = self._of(record)
        return made.lowered[-1] if made and made.lowered else None

    def _on_ir(self, record):
        if lowered := self._lowered(record):
            lowered.ir[record["stage"]] = record["text"]

    def _on_kernel(self, record):
        if lowered := self._lowered(record):
            lowered.kernels[record["id"]] = record

    def _on_kernel_code(self, record):
        self.code[record["kernel"]] = record

    def _on_group(self, record):
        if lowered := self._lowered(record):
            lowered.groups.append(record)

    def _on_decision(self, record):
        if lowered := self._lowered(record):
            lowered.decisions.append(record)

    def _on_buffer(self, record):
        if lowered := self._lowered(record):
            lowered.buffers.append(record)

    def _on_cuda_graph(self, record):
        yield "cuda_graph", (self._of(record), record)

    def _on_loss(self, record):
        if self._open:
            self._open[-1].notes.append(record)
        else:
            yield "note", (None, record)

    def captured_names(self, lowered):
        """For each node of a graph after its passes, the names of the captured nodes that it was made from."""
        found, origin = [[i] for i in range(len(lowered.graph.nodes))], lowered.origin
        text = lowered.graph
        while True:
            if origin not in self.graphs:
                return [[text.names[i] for i in one] for one in found] if text is not lowered.graph else [[] for _ in found]
            before, before_origin = self.graphs[origin]
            found = [sorted({f for i in one for f in text.nodes[i].get("from", ()) if f < len(before.nodes)}) for one in found]
            text, origin = before, before_origin


_handed_out = []  # (function, module) that backends in Python were given by compilations that have not ended
_assembly = Assembly()
_lock = threading.Lock()
_state = (False, False, False)


def _sinks():
    from . import _compile_debug, _logs, _saved_code, _structured_trace
    return _logs, _structured_trace, _compile_debug, _saved_code


def refresh():
    """Makes the engine tell what the logs that are on now want to hear."""
    global _state
    sinks = _sinks()
    wanted = [sink.wants() for sink in sinks]
    state = tuple(any(column) for column in zip(*wanted))
    if state != _state:
        _state = state
        on, code, instructions = state
        _engine.listen_to_records(drain if on else None, code, instructions)


def _tell(sink, what, value):
    """The program goes on where its logs cannot be written."""
    try:
        sink.hear(what, value, _assembly)
    except Exception as error:
        from ._unused_options import once
        once(f"{sink.__name__.rpartition('.')[2]}: a log of the compiler could not be written: {type(error).__name__}: {error}")


def handed_out(function, module):
    """A backend in Python is about to be given a graph."""
    if _state[0]:
        _handed_out.append((function, module))
        del _handed_out[:-16]


def drain():
    """Hands what has been told to the logs."""
    if not _lock.acquire(blocking=False):
        return  # a log that compiles something: whoever holds the lock goes on until nothing is left
    try:
        while records := _engine.take_records():
            for what, value in _assembly.take(records):
                for sink in _sinks():
                    _tell(sink, what, value)
    finally:
        _lock.release()


def _compiling(begins):
    if begins:
        refresh()
    elif _state[0]:
        drain()


def unix_ns(monotonic_ns):
    return monotonic_ns + time.time_ns() - time.monotonic_ns()


def context(compilation):
    """PyTorch's compile context, by which its loggers name a compilation; nothing where there is none."""
    import contextlib

    owner = compilation.owner if compilation else None
    if owner is None or owner.frame is None:
        return contextlib.nullcontext()
    from torch._guards import CompileContext, CompileId, compile_context
    return compile_context(CompileContext(CompileId(frame_id=owner.frame.number, frame_compile_id=owner.number)))


_engine.listen_to_compiling(_compiling, True)
atexit.register(drain)

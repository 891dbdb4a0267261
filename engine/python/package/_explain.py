"""fusebox.explain(f)(*args): what capture makes of one call."""

import dataclasses

from ._compile import compile as _compile
from ._engine_access import _engine, reset


@dataclasses.dataclass
class BreakReason:
    reason: str
    kind: str
    hint: str
    file: str
    line: int
    function: str

    def __str__(self):
        return f"{self.file}:{self.line} in {self.function}: {self.kind}: {self.reason}" + (f" ({self.hint})" if self.hint else "")


@dataclasses.dataclass
class ExplainOutput:
    """Graphs and breaks of one call, with the fields of torch._dynamo.explain's result."""

    graphs: list
    graph_count: int
    graph_break_count: int
    break_reasons: list
    op_count: int
    ops_per_graph: list
    guard_counts: list
    compile_times: str
    failures: list
    result: object = dataclasses.field(repr=False, default=None)

    def __str__(self):
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}", f"Op Count: {self.op_count}",
                 "Break Reasons:"]
        lines += [f"  Break Reason {i + 1}: {reason}" for i, reason in enumerate(self.break_reasons)]
        lines += [f"Ops per Graph: {self.ops_per_graph}", f"Guards per Entry: {self.guard_counts}"]
        lines += [f"Failed: {failure}" for failure in self.failures]
        lines.append(self.compile_times)
        return "\n".join(lines)


def explain(f, **compile_options):
    """Returns a callable: explain(f)(*args, **kwargs) resets the engine, runs f compiled once and reports. The call's own result
    is in `.result`."""

    def run(*args, **kwargs):
        reset()
        since = _engine.latest_event()
        _engine.keep_graph_text(True)
        try:
            result = _compile(f, **compile_options)(*args, **kwargs)
        finally:
            _engine.keep_graph_text(False)
        return _summarise(_engine.events_since(since), result)

    return run


def _summarise(events, result):
    compiled = [e for e in events if e["kind"] == "compiled"]
    graphs = [e for e in compiled if e["operators"] or e["graph"]]
    breaks = [BreakReason(e["detail"], e["what"], e["hint"], e["file"], e["line"], e["function"])
              for e in events if e["kind"] == "graph_break"]
    failures = [f"{e['file']}:{e['line']} in {e['function']}: {e['what']}: {e['detail']}" for e in events if e["kind"] in ("failed", "ran_eagerly")]
    times = "\n".join(f"{e['function']}: capture {e['capture_ms']:.1f} ms, compile {e['compile_ms']:.1f} ms" for e in compiled)
    return ExplainOutput(graphs=[e["graph"] for e in graphs], graph_count=len(graphs), graph_break_count=len(breaks),
                         break_reasons=breaks, op_count=sum(e["operators"] for e in graphs),
                         ops_per_graph=[e["operators"] for e in graphs], guard_counts=[e["guards"] for e in compiled],
                         compile_times=times, failures=failures, result=result)

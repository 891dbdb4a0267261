"""torch._dynamo.utils.counters and callbacks on compiling, kept up with what this engine does."""

import sys

from ._engine_access import _engine

_seen = 0
_depth = 0


def _compiling(begins):
    """Called by the engine before and after it captures and compiles something."""
    global _depth
    callbacks = sys.modules.get("torch._dynamo.callback")
    if begins:
        _depth += 1
        if _depth == 1 and callbacks:
            callbacks.callback_handler.run_start_callbacks(_arguments(callbacks))
        return
    _depth = max(_depth - 1, 0)
    catch_up()
    if _depth == 0 and callbacks:
        callbacks.callback_handler.run_end_callbacks(_arguments(callbacks))


def _arguments(callbacks):
    return callbacks.CallbackArgs(callbacks.CallbackTrigger.DYNAMO, "0")


def catch_up():
    """Counts what happened since the last time; while nobody has imported torch._dynamo, later."""
    global _seen
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    if counters is None:
        return
    events, _seen = _engine.events_since(_seen), _engine.latest_event()
    for event in events:
        kind = event["kind"]
        if kind == "compiled":
            counters["frames"]["total"] += 1
            counters["frames"]["ok"] += 1
            if event["operators"]:
                counters["stats"]["calls_captured"] += event["operators"]
                counters["stats"]["unique_graphs"] += 1
        elif kind == "graph_break":
            counters["graph_break"][f"{event['what']}: {event['detail']}"] += 1
        elif kind == "recompile":
            counters["recompiles"][event["what"]] += 1
        elif kind in ("failed", "ran_eagerly"):
            counters["frames"]["total"] += 1
            counters["unimplemented"][f"{event['what']}: {event['detail']}"] += 1


def listen(on):
    """Whether to, from now on."""
    global _seen
    _seen = _engine.latest_event()
    _engine.listen_to_compiling(_compiling, on)

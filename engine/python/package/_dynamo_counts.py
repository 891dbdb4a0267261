"""torch._dynamo.utils.counters and callbacks on compiling, kept up with what this engine does."""

import sys

from ._engine_access import _engine

_seen = 0
_depth = 0
_GRAPH_CACHE = {"cache_hits": "fxgraph_cache_hit", "cache_misses": "fxgraph_cache_miss", "cache_bypasses": "fxgraph_cache_bypass"}
_looked_up = {}  # how many of them there were
_kernels = 0


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
    _count_kernels()
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", None)
    if counters is None:
        return
    _count_cache(counters)
    events, _seen = _engine.events_since(_seen), _engine.latest_event()
    for event in events:
        kind = event["kind"]
        if kind == "compiled":
            counters["frames"]["total"] += 1
            counters["frames"]["ok"] += 1
            _measure(utils, event, guard_count=event["guards"], shape_env_guard_count=event["relations"], graph_op_count=event["operators"], has_guarded_code=True)
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


def _count_kernels():
    """In torch._inductor.metrics, which a program sets back itself; what was before it is imported is not counted."""
    global _kernels
    before, _kernels = _kernels, _engine.counters()["kernels"]
    metrics = sys.modules.get("torch._inductor.metrics")
    if metrics is not None:
        metrics.generated_kernel_count += _kernels - before


def _count_cache(counters):
    """Graphs that were looked up among the compiled ones, unless nobody wants them kept."""
    now = _engine.counters()
    config = sys.modules.get("torch._inductor.config")
    is_on = config is None or (config.fx_graph_cache and not config.force_disable_caches)
    for name, stock in _GRAPH_CACHE.items():
        if is_on and now[name] > _looked_up.get(name, 0):
            counters["inductor"][stock] += now[name] - _looked_up.get(name, 0)
        _looked_up[name] = now[name]


def _measure(utils, event, **facts):
    """What torch._dynamo.utils.get_compilation_metrics() tells of it."""
    utils._compilation_metrics.append(utils.CompilationMetrics(
        co_name=event["function"], co_filename=event["file"], co_firstlineno=event["line"], is_forward=True,
        entire_frame_compile_time_s=(event["capture_ms"] + event["compile_ms"]) / 1e3, backend_compile_time_s=event["compile_ms"] / 1e3, **facts))


def listen(on):
    """Whether to, from now on."""
    global _seen
    _seen = _engine.latest_event()
    _looked_up.update({name: count for name, count in _engine.counters().items() if name in _GRAPH_CACHE})
    _engine.listen_to_compiling(_compiling, on)

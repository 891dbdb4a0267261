"""TORCH_TRACE: what this engine compiles as PyTorch's structured log, which tlparse, Fusebox and others read.

The records go through PyTorch's own writer, so files, ranks, checksums and the table of strings are its. Names of records and of their fields are those
of torch._dynamo and torch._inductor 2.11; where the engine has no such thing (a wrapper in Python, hashes of Triton kernels) there is no record.
"""

import json
import linecache
import platform

from . import _log_text, _output_code
from ._graph_text import ModuleText
from ._records import context, unix_ns

# Stages by the names that they have in PyTorch's traces; of others the phase says what they belong to.
_SPANS = {"capture": "bytecode_tracing", "functionalise and partition": "create_aot_dispatcher_function", "graph passes": "_recursive_post_grad_passes",
          "lowering": "GraphLowering.run", "scheduling": "Scheduler.__init__", "code generation": "GraphLowering.codegen",
          "launch shapes": "CachingAutotuner.benchmark_all_configs", "assembly": "GraphLowering.compile_to_fn", "cache": "inductor_codecache_lookup"}
# Spans round all stages of some phases, and the metric that gives their time.
_ROUND = {"backend_compile": ("aot", "inductor", "codegen"), "inductor_compile": ("inductor", "codegen"), "code_gen": ("codegen",)}
_PHASES = {"capture": "dynamo.", "aot": "aot_", "inductor": "post_grad_passes.", "codegen": "code_gen."}


def _internal():
    from torch._logging import _internal
    return _internal


def wants():
    internal = _internal()
    handlers = internal.trace_log.handlers
    on = any(not isinstance(h, internal.LazyTraceHandler) or h.root_dir is not None for h in handlers)
    return on, on, False


def _put(name, about=None, payload=None):
    _internal().trace_structured(name, lambda: about or {}, payload_fn=lambda: payload, expect_trace_id=False)


def _artifact(name, payload, encoding="string"):
    if encoding == "json":
        payload = json.dumps(payload, indent=0)
    _put("artifact", {"name": name, "encoding": encoding}, payload)


def _stack(places):
    from torch._logging.structured import intern_string
    frames = []
    for p in places:
        frame = {"line": p["line"], "name": p["function"], "filename": intern_string(p["file"])}
        if code := linecache.getline(p["file"], p["line"]).strip():
            frame["loc"] = code
        frames.append(frame)
    return frames


def hear(what, value, assembly):
    if not wants()[0]:
        return
    if what == "compilation":
        with context(value):
            (_backward if value.parent else _frame)(value, assembly)
    elif what == "cuda_graph":
        with context(value[0]):
            _artifact(f"cudagraph_{value[1]['event']}", {k: v for k, v in value[1].items() if k not in ("kind", "id", "compile")}, "json")


def _frame(c, assembly):
    _spans(c, begin=True)
    if c.causes:
        _artifact("recompile_reasons", [_log_text.guard_failure(f) for f in c.causes], "json")
    own = {"file": c.frame.file, "line": c.frame.line, "function": c.frame.name} if c.frame else None
    stack = c.stack()[:-1] + ([own] if own else [])
    _put("dynamo_start", {"stack": _stack(stack)})
    _shapes(c)
    _inputs(c)
    for record in c.breaks:
        _artifact("dynamo_graph_break_reason", _log_text.graph_break(c, record))
    if c.effects:
        _artifact("dynamo_side_effects", "\n".join(line for record in c.effects for line in record["lines"]))
    for graph in c.graphs_of("captured"):
        if graph["text"].calls():
            _put("dynamo_output_graph", {"sizes": graph["text"].sizes()}, graph["text"].readable())
    for graph in c.graphs_of("joint"):
        _put("aot_joint_graph", {}, graph["text"].readable("joint_helper"))
    for graph in c.graphs_of("forward", "backward"):
        stage = "inference" if graph["direction"] == "inference" or not c.graphs_of("joint") else graph["stage"]
        _put(f"aot_{stage}_graph", {}, graph["text"].readable("<lambda>"))
    _lowered(c, assembly)
    if c.guards:
        _put("dynamo_cpp_guards_str", {}, _log_text.guard_tree(c.guards))
    if not c.ok:
        _artifact("dynamo_error", f"{_fail_type(c)}: {c.error}")
    for note in c.notes:
        _artifact("fusebox_note", f"{note['what']}: {note['detail']}")
    _put("compilation_metrics", _metrics(c, "compilation"))
    _spans(c, begin=False)


def _backward(c, assembly):
    _spans(c, begin=True)
    _lowered(c, assembly)
    _put("bwd_compilation_metrics", _metrics(c, "backward"))
    _spans(c, begin=False)


def _shapes(c):
    for row in c.symbols:
        name, hint, bounds = _log_text.symbol(row)
        kind = "create_unbacked_symbol" if row["of"] == "unbacked" else "create_symbol"
        about = {"symbol": name, "val": hint, "vr": bounds, "source": row["source"]}
        _put(kind, {**about, "user_stack": _stack(_places(row)), "stack": _stack(c.stack())})
    for row in c.relations:
        if row["of"] != "duck":
            _put("guard_added_fast", {"expr": row["expression"], "user_stack": _stack(_places(row)), "stack": _stack(c.stack())})
    for row in c.specialisations:
        if row["symbols"]:
            _put("symbolic_shape_specialization", {"symbol": row["symbols"][0], "sources": [row["source"]], "value": f"{row['value']:g}",
                                                   "reason": row["reason"], "user_stack": _stack(_places(row)), "stack": _stack(c.stack())})


def _places(row):
    return row["stack"] or ([row["place"]] if row["place"]["file"] else [])


_describers = 0


def _inputs(c):
    """Inputs of the captured graph, with the places where calls find them."""
    global _describers
    hints = _hints(c)
    for graph in c.graphs_of("captured"):
        text, describer = graph["text"], _describers
        if isinstance(text, ModuleText):
            continue
        _describers += 1
        sources = [guard["source"] for guard in c.guards if guard["guard"] == "TENSOR_MATCH"]
        for number, i in enumerate(text.placeholders()):
            node, meta = text.nodes[i], text.nodes[i]["out"][0]
            if not meta or "sizes" not in meta:
                continue
            source = next((s for s in sources if s.endswith(f"['{node['name']}']") or s.removeprefix("L['").replace("']", "") == node["name"]), node["name"])
            sizes, strides, size = text.layout(meta, hints)
            _put("describe_storage", {"id": number, "describer_id": describer, "size": size})
            device = meta.get("device", [0, -1])
            index = f", index={max(0, device[1])}" if device[0] == 1 else ""
            _put("describe_tensor", {"id": number, "ndim": len(meta["sizes"]), "dtype": f"torch.{meta['dtype']}",
                                     "device": f"device(type={text_device(device)!r}{index})", "size": sizes,
                                     "is_leaf": True, "requires_grad": bool(meta.get("grad")), "stride": strides,
                                     "storage": number, "describer_id": describer})
            _put("describe_source", {"describer_id": describer, "id": number, "source": source})


def text_device(pair):
    return {0: "cpu", 1: "cuda", 2: "meta"}.get(pair[0], "other")


def _hints(c):
    return {row["name"]: int(row["hint"]) for row in c.owner.symbols if row["hint"] is not None}


def _lowered(c, assembly):
    for cache in c.caches:
        if cache["cache"] == "graph" and cache["outcome"] in ("hit", "miss", "bypass"):
            about = {"key": cache["key"], "cache_status_detailed": cache["outcome"], "components": []}
            if cache["outcome"] == "bypass":
                about["cache_bypass_reason"] = cache["reason"]
            elif cache["reason"]:
                about["cache_status_reason"] = cache["reason"]
            if cache["saved_ns"] > 0:
                about["time_saved_ns"] = cache["saved_ns"]
            _artifact(f"fx_graph_cache_{cache['outcome']}", about, "json")
        elif cache["cache"] == "graph" and cache["outcome"] == "disabled":  # PyTorch, too, has no artifact of that
            _instant(c, "fx_graph_cache_disabled", c.end_ns, {"cache_bypass_reason": cache["reason"]})
        elif cache["cache"] == "autotune":
            _artifact("fusebox_launch_shape", f"{cache['key']}: {cache['reason']}")
    hints = _hints(c)
    for lowered in c.lowered:
        _artifact("fx_graph_runnable", lowered.graph.runnable(hints))
        _artifact("inductor_post_grad_graph", lowered.graph.readable("<lambda>"))
        for stage, text in lowered.ir.items():
            _artifact(f"ir_{stage}", text)
        file = f"fusebox_output_code_{lowered.label}.py"
        _put("inductor_output_code", {"filename": file, "file_path": file}, _output_code.listing(lowered, assembly.code))
        _artifact("inductor_provenance_tracking_node_mappings", _output_code.node_mappings(lowered, assembly.captured_names(lowered)), "json")


def _fail_type(c):
    return "Unsupported" if c.breaks else "InternalError"


def _runs(c, phases):
    """The stretches [(start, end)] of a compilation's time that stages of some phases take, with nothing of another phase between them."""
    ordered = sorted(c.stages, key=lambda s: (s["start_ns"], -s["end_ns"]))
    edges = [ns for s in ordered if s["phase"] not in phases for ns in (s["start_ns"], s["end_ns"])]
    runs = []
    for start, end in ((s["start_ns"], s["end_ns"]) for s in ordered if s["phase"] in phases):
        if runs and start < runs[-1][1]:
            continue  # within the stage before
        if runs and not any(runs[-1][1] <= ns <= start for ns in edges):
            runs[-1] = runs[-1][0], end
        else:
            runs.append((start, end))
    return runs


def _seconds(c, phases):
    """None where no such stage ran."""
    runs = _runs(c, phases)
    return sum(end - start for start, end in runs) / 1e9 if runs else None


def _microseconds(seconds):
    return None if seconds is None else int(seconds * 1e6)


def _metrics(c, of):
    import torch
    whole = (c.end_ns - c.begin_ns) / 1e9
    captured = next((g["text"] for g in c.graphs_of("captured")), None)
    symbols = len(captured.symbols) if captured else 0  # placeholders, too, as the graph is printed
    backend, inductor, codegen = (_seconds(c, phases) for phases in _ROUND.values())
    outcomes = [cache["outcome"] for cache in c.caches if cache["cache"] == "graph"]
    failed = not c.ok
    start_us = unix_ns(c.begin_ns) // 1000
    about = {
        "compile_id": c.id, "start_time": start_us / 1e6, "start_time_us": start_us, "end_time_us": unix_ns(c.end_ns) // 1000,
        "duration_us": int(whole * 1e6), "inductor_compile_time_s": inductor, "code_gen_time_s": codegen,
        "inductor_cumulative_compile_time_us": _microseconds(inductor), "inductor_code_gen_cumulative_compile_time_us": _microseconds(codegen),
        "fail_type": _fail_type(c) if failed else None, "fail_reason": c.error if failed else None,
        "is_forward": of == "compilation", "is_runtime": False, "log_format_version": 3, "python_version": platform.python_version(),
        "pytorch_version": torch.__version__, "cuda_version": torch.version.cuda, "ir_count": sum(len(low.groups) for low in c.lowered),
        "inductor_fx_local_cache_hit_count": outcomes.count("hit"), "inductor_fx_local_cache_miss_count": outcomes.count("miss"),
        "compiler_config": json.dumps({"compiler": "fusebox", "backend": c.record["backend"], "mode": c.record["mode"]}),
    }
    if of == "backward":
        return {**about, "backward_cumulative_compile_time_us": int(whole * 1e6), "fail_user_frame_filename": None, "fail_user_frame_lineno": None}
    place = c.breaks[0]["place"] if failed and c.breaks else None
    shape_guards = sum(1 for guard in c.guards if guard["guard"] in ("SHAPE_ENV", "SYMBOL_MATCH", "SYMBOL_RANGE"))
    # What capture stopped at is why it began again: here a restart is within the compilation.
    about.update({
        "frame_key": str(c.frame.number + 1) if c.frame else None, "co_name": c.frame.name if c.frame else None,
        "co_filename": c.frame.file if c.frame else None, "co_firstlineno": c.frame.line if c.frame else None,
        "cache_size": c.number, "accumulated_cache_size": c.number, "guard_count": len(c.guards), "shape_env_guard_count": shape_guards,
        "graph_op_count": len(captured.calls()) if captured else 0, "graph_node_count": symbols + len(captured.nodes) if captured else 0,
        "graph_input_count": symbols + len(captured.placeholders()) if captured else 0, "entire_frame_compile_time_s": whole,
        "backend_compile_time_s": backend, "fail_user_frame_filename": place["file"] if place else None,
        "fail_user_frame_lineno": place["line"] if place else None, "non_compliant_ops": [], "compliant_custom_ops": [],
        "restart_reasons": [f"{b['what']}: {b['reason']}" for b in c.breaks], "dynamo_time_before_restart_s": 0.0, "has_guarded_code": c.ok,
        "stack_trace": [f"Line: {p['line']}, Name: {p['function']}, Filename: {p['file']}" for p in c.stack()],
        "graph_node_shapes": str(captured.sizes()) if captured else "{}", "num_graph_breaks": len(c.breaks),
        "recompile_reason": _log_text.guard_failure(c.causes[0]) if c.causes else None,
        "dynamo_cumulative_compile_time_us": int(whole * 1e6), "aot_autograd_cumulative_compile_time_us": _microseconds(backend),
    })
    return about


def _spans(c, begin):
    """The stages of a compilation as the edges of spans, in order of time: what began before the compilation's own records, then the rest."""
    names = ["dynamo", "entire_frame_compile"] if not c.parent else ["entire_backward_compile"]
    if begin:
        for name in names:
            _edge(c, name, "B", c.begin_ns)
        return
    around = [{"name": name, "phase": "", "start_ns": start, "end_ns": end} for name, phases in _ROUND.items() if not c.parent or name != "backend_compile"
              for start, end in _runs(c, phases)]
    open_spans = []
    for stage in sorted([*around, *c.stages], key=lambda s: (s["start_ns"], -s["end_ns"])):
        while open_spans and open_spans[-1]["end_ns"] <= stage["start_ns"]:
            ended = open_spans.pop()
            _edge(c, _span_name(ended), "E", ended["end_ns"])
        _edge(c, _span_name(stage), "B", stage["start_ns"])
        open_spans.append(stage)
    for ended in reversed(open_spans):
        _edge(c, _span_name(ended), "E", ended["end_ns"])
    for name in reversed(names):
        _edge(c, name, "E", max([c.end_ns, *(s["end_ns"] for s in c.stages)]), {"cache_size": c.number} if name == "dynamo" else {})


def _span_name(stage):
    return _SPANS.get(stage["name"]) or _PHASES.get(stage["phase"], "") + stage["name"]


def _instant(c, name, time_ns, more):
    about = {"name": name, "ts": unix_ns(time_ns) / 1000, "args": {"compile_id": c.id, **more}, "ph": "i", "cat": "dynamo_timed", "tid": 0, "pid": 0, "s": "p"}
    _put("chromium_event", {}, json.dumps(about, indent=0))


def _edge(c, name, phase, time_ns, more=None):
    about = {"name": name, "ts": unix_ns(time_ns) / 1000, "args": {"compile_id": c.id, **(more or {})}, "ph": phase, "cat": "dynamo_timed", "tid": 0, "pid": 0}
    _put("chromium_event", {}, json.dumps(about, indent=0))

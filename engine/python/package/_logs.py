"""TORCH_LOGS and torch._logging.set_logs: what this engine compiles, through PyTorch's own loggers.

So levels, formats, ranks, files and colours are PyTorch's. An artifact is a function here; one that has no meaning for this engine has a reason, which
is said once. Compilations are told when they are complete.
"""

import functools
import linecache
import logging

from . import _log_text, _output_code
from ._records import context
from ._unused_options import once

_DEBUG, _INFO, _WARNING = logging.DEBUG, logging.INFO, logging.WARNING


def _graph_name(compilation):
    return f"__compiled_fn_{compilation.owner.graph_number or 0}"


def _captured(compilation):
    graphs = compilation.graphs_of("captured")
    return graphs[0]["text"] if graphs and graphs[0]["text"].calls() else None


def _traced(title, text):
    return f"TRACED GRAPH\n ===== {title} =====\n {text}"


def _graph(c, assembly):
    if graph := _captured(c):
        yield _traced(_graph_name(c), graph.table())


def _graph_code(c, assembly):
    if graph := _captured(c):
        yield _traced(_graph_name(c), graph.readable())


def _graph_sizes(c, assembly):
    if graph := _captured(c):
        sizes = "\n".join(f"{name}: {tuple(size)}" for name, size in graph.sizes().items())
        yield f"TRACED GRAPH TENSOR SIZES\n===== {_graph_name(c)} =====\n{sizes}\n"


def _graph_passes(c, assembly):
    for stage in c.stages:
        if stage["phase"] == "inductor" and stage["changed"] >= 0:
            changed = f"{stage['nodes_before']} nodes before, {stage['nodes_after']} after" if stage["changed"] else "unchanged"
            yield f"pass {stage['name']}: {changed}{'; ' + stage['detail'] if stage['detail'] else ''}"


def _aot_graphs(c, assembly):
    number = c.owner.graph_number or 0
    for graph in c.graphs_of("forward", "backward"):
        yield _traced(f"{graph['stage'].capitalize()} graph {number}", graph["text"].readable("<lambda>"))


def _aot_joint_graph(c, assembly):
    for graph in c.graphs_of("joint"):
        yield _traced(f"Joint graph {c.owner.graph_number or 0}", graph["text"].readable("joint_fn"))


def _post_grad_graphs(c, assembly):
    for lowered in c.lowered:
        yield _traced("AFTER POST GRAD", lowered.graph.readable("<lambda>"))


def _graph_breaks(c, assembly):
    for record in c.breaks:
        yield _log_text.graph_break(c, record)


def _recompiles(c, assembly):
    if c.causes and c.frame:
        yield _log_text.recompiling(c.frame.name, c.frame.file, c.frame.line, [_log_text.guard_failure(f) for f in c.causes])


def _recompiles_verbose(c, assembly):
    if c.causes and c.frame:
        reasons = [f"guard {i} failures:\n    - {_log_text.guard_failure(f)}\n{_indented(_log_text.traceback_text(f['stack']))}"
                   for i, f in enumerate(c.causes)]
        yield _log_text.recompiling(c.frame.name, c.frame.file, c.frame.line, reasons)


def _indented(text):
    return "\n".join("    " + line for line in text.splitlines())


def _guards(c, assembly):
    if c.guards:
        yield "GUARDS:\n" + _log_text.guard_tree(c.guards)


def _verbose_guards(c, assembly):
    if c.guards:
        yield "GUARDS:\n" + _log_text.guard_tree(c.guards, stacks=True)


def _bytecode(c, assembly):
    for record in c.bytecode:
        if c.frame:
            yield _log_text.bytecode(c.frame.name, c.frame.file, c.frame.line, record["instructions"])
    if c.bytecode:
        once("TORCH_LOGS=bytecode shows original bytecode alone under Fusebox: none is generated, frames are replaced at the frame hook")


def _trace_source(c, assembly):
    told = None
    for i in c.instructions:
        place = (i["place"]["file"], i["place"]["line"], i["depth"])
        if place != told:
            told = place
            yield f"TRACE starts_line {_log_text.line_header(i)}\n    {linecache.getline(place[0], place[1]).rstrip()}"


def _trace_call(c, assembly):
    before = None
    for i in c.instructions:
        if before:
            for op in i["made"]:
                yield f"TRACE FX call {_log_text.operator_name(op)} from {_log_text.line_header(before)}\n{_log_text.underlined(before)}"
            if i["depth"] > before["depth"]:
                yield f"TRACE inlined call {i['place']['function']} from {_log_text.line_header(before)}\n{_log_text.underlined(before)}"
        before = i


def _trace_bytecode(c, assembly):
    for i in c.instructions:
        yield f"TRACE {i['op']} {_log_text.instruction_argument(i)} [{i['stack']} on the stack]"


def _side_effects(c, assembly):
    for record in c.effects:
        yield "Side effects that are carried out after the graph:\n" + _indented("\n".join(record["lines"]))


def _ir(stage, title):
    def text(c, assembly):
        for lowered in c.lowered:
            if stage in lowered.ir:
                yield f"{title}\n{lowered.ir[stage]}"
    return text


def _fusion(c, assembly):
    for lowered in c.lowered:
        fused = sum(d["fused"] for d in lowered.decisions)
        count = len(lowered.groups) + fused
        yield f"===== attempting fusion (1/1): {count} nodes ====="
        for d in lowered.decisions:
            if d["fused"]:
                yield f"fusing {d['a']} with {d['b']}: {d['reason']}"
            else:
                yield f"cannot fuse {d['a']} with {d['b']}: {d['reason']}"
        yield f"completed fusion round (1/1): fused {count} nodes into {len(lowered.groups)} nodes"


def _schedule(c, assembly):
    for lowered in c.lowered:
        lines = [f"Schedule of {lowered.label}: {len(lowered.groups)} kernels and calls"]
        for group in lowered.groups:
            nodes = ", ".join(lowered.graph.names[i] for i in group["nodes"])
            saved = f", saves {group['bytes_saved']} bytes" if group["bytes_saved"] else ""
            moved = f"reads {group['read_bytes']}, writes {group['write_bytes']} bytes{saved}"
            lines.append(f"  {group['position']}: {group['name']} ({group['of']}, {moved}): {nodes}")
        yield "\n".join(lines)


def _output_code_text(c, assembly):
    for lowered in c.lowered:
        yield "Output code: \n" + _output_code.listing(lowered, assembly.code)


def _kernel_code(c, assembly):
    for lowered in c.lowered:
        for group in lowered.groups:
            kernel = lowered.kernels.get(group["kernel"])
            if kernel and kernel["of"] != "extern":
                yield f"Generated kernel {group['name']}:\n" + _output_code.kernel_text(group, lowered, assembly.code)


def _perf_hints(c, assembly):
    for note in c.notes:
        yield f"{note['what']}: {note['detail']}"
    for lowered in c.lowered:
        for reason in dict.fromkeys(group["reason"] for group in lowered.groups if group["reason"]):
            yield reason


def _metrics(c, assembly):
    for lowered in c.lowered:
        generated = sum(1 for k in lowered.kernels.values() if k["of"] != "extern")
        moved = sum(group["read_bytes"] + group["write_bytes"] for group in lowered.groups)
        flops = sum(k["flops"] for k in lowered.kernels.values())
        yield (f"Graph {lowered.label}: num_bytes_accessed={moved}, flops={flops}, generated_kernel_count={generated}, "
               f"extern_kernel_count={len(lowered.groups) - generated}, nodes={len(lowered.graph.calls())}")


def _caching(c, assembly):
    for cache in c.caches:
        if cache["cache"] != "autotune":
            key, reason = (f" for key {cache['key']}" if cache["key"] else ""), (f": {cache['reason']}" if cache["reason"] else "")
            yield f"{cache['cache']} cache {cache['outcome']}{key}{reason}"


def _autotuning(c, assembly):
    for cache in c.caches:
        if cache["cache"] == "autotune":
            yield f"launch shape of {cache['key']}: {cache['reason']}"


def _dynamic(c, assembly):
    if not (c.symbols or c.relations or c.specialisations):
        return
    yield "create_env"
    for row in c.symbols:
        name, hint, bounds = _log_text.symbol(row)
        yield f"create_symbol {name} = {hint} for {row['source'] or 'data'} {bounds} {row['reason']}  # {_log_text.place_text(row['place'])}"
    for row in c.relations:
        what = "eval" if row["of"] == "guard" else "runtime_assert" if row["of"] == "runtime" else "duck"
        yield f"{what} {row['expression']} [guard added] {row['reason']}  # {_log_text.place_text(row['place'])}"
    for row in c.specialisations:
        what = ", ".join(row["symbols"]) or row["source"]
        yield f"set_replacement {what} = {row['value']:g} (specialisation: {row['reason']})"


def _dynamo_steps(c, assembly):
    if not c.frame:
        return
    yield f"torchdynamo start tracing {c.frame.name} {c.frame.file}:{c.frame.line}"
    yield f"torchdynamo done tracing {c.frame.name}" + ("" if c.ok else f": {c.error}")
    if c.graphs:
        yield f"Calling compiler function {c.record['backend']}"


def _inductor_steps(c, assembly):
    for lowered in c.lowered:
        which = "BACKWARDS" if lowered.direction == "backward" else "FORWARDS"
        yield f"Step 3: torchinductor compiling {which} graph {lowered.number}"
        yield f"Step 3: torchinductor done compiling {which} graph {lowered.number}"


def _aot_steps(c, assembly):
    for stage in c.stages:
        if stage["phase"] == "aot":
            yield f"{stage['name']}: {(stage['end_ns'] - stage['start_ns']) / 1e6:.1f} ms"


# Artifact -> (module whose logger it is in PyTorch, level, texts of a compilation).
_ARTIFACTS = {
    "trace_source": ("torch._dynamo.symbolic_convert", _DEBUG, _trace_source),
    "trace_call": ("torch._dynamo.symbolic_convert", _DEBUG, _trace_call),
    "trace_bytecode": ("torch._dynamo.symbolic_convert", _DEBUG, _trace_bytecode),
    "recompiles": ("torch._dynamo.guards", _DEBUG, _recompiles),
    "recompiles_verbose": ("torch._dynamo.guards", _DEBUG, _recompiles_verbose),
    "bytecode": ("torch._dynamo.convert_frame", _DEBUG, _bytecode),
    "graph_breaks": ("torch._dynamo.symbolic_convert", _DEBUG, _graph_breaks),
    "graph": ("torch._dynamo.output_graph", _DEBUG, _graph),
    "graph_code": ("torch._dynamo.output_graph", _DEBUG, _graph_code),
    "graph_sizes": ("torch._dynamo.output_graph", _DEBUG, _graph_sizes),
    "side_effects": ("torch._dynamo.side_effects", _DEBUG, _side_effects),
    "aot_joint_graph": ("torch._functorch._aot_autograd.graph_capture", _INFO, _aot_joint_graph),
    "aot_graphs": ("torch._functorch._aot_autograd.graph_capture", _INFO, _aot_graphs),
    "graph_code_verbose": ("torch._inductor.compile_fx", _DEBUG, _graph_passes),
    "post_grad_graphs": ("torch._inductor.compile_fx", _DEBUG, _post_grad_graphs),
    "ir_pre_fusion": ("torch._inductor.debug", _INFO, _ir("pre_fusion", "BEFORE FUSION")),
    "fusion": ("torch._inductor.scheduler", _DEBUG, _fusion),
    "schedule": ("torch._inductor.scheduler", _DEBUG, _schedule),
    "ir_post_fusion": ("torch._inductor.debug", _INFO, _ir("post_fusion", "AFTER FUSION")),
    "autotuning": ("torch._inductor.select_algorithm", _DEBUG, _autotuning),
    "benchmarking": ("torch._inductor.runtime.benchmarking", _DEBUG, _autotuning),
    "kernel_code": ("torch._inductor.codecache", _INFO, _kernel_code),
    "output_code": ("torch._inductor.graph", _DEBUG, _output_code_text),
    "inductor_metrics": ("torch._inductor.compile_fx", _INFO, _metrics),
    "perf_hints": ("torch._inductor.compile_fx", _INFO, _perf_hints),
    "caching": ("torch._inductor.codecache", _DEBUG, _caching),
    "guards": ("torch._dynamo.guards", _DEBUG, _guards),
    "verbose_guards": ("torch._dynamo.guards", _DEBUG, _verbose_guards),
    "cudagraphs": ("torch._inductor.cudagraph_trees", _DEBUG, None),
    "cudagraph_static_inputs": ("torch._inductor.cudagraph_trees", _DEBUG, None),
}

# Logger of a component -> (level, texts).
_COMPONENTS = {
    "torch._dynamo.convert_frame": (_INFO, _dynamo_steps),
    "torch.fx.experimental.symbolic_shapes": (_INFO, _dynamic),
    "torch._functorch.aot_autograd": (_INFO, _aot_steps),
    "torch._inductor.compile_fx": (_INFO, _inductor_steps),
    "torch._inductor.remote_cache": (_INFO, _caching),
}

_OF_INDUCTOR = "it shows a pass of TorchInductor's own"
_NOT_HERE = {
    "pre_grad_graphs": "graphs are captured as ATen operators and go through no passes before autograd; aot_graphs shows what the compiler is given",
    "aot_graphs_effects": "effects are kept in order without tokens in the graph; aot_graphs shows them",
    "compiled_autograd": "backward graphs are compiled region by region; aot_graphs shows them",
    "compiled_autograd_verbose": "backward graphs are compiled region by region; aot_graphs shows them",
    "ddp_graphs": "graphs are not split for DistributedDataParallel",
    "not_implemented": "no NotImplemented is dispatched on while capturing",
    "sym_node": "sizes are expressions of the engine's own; dynamic shows what is asked of them",
    "trace_shape_events": "shape expressions are not replayed; dynamic shows what is asked of them",
    "compute_dependencies": _OF_INDUCTOR + "; schedule shows what reads what", "loop_ordering": _OF_INDUCTOR, "loop_tiling": _OF_INDUCTOR,
    "auto_chunker": _OF_INDUCTOR, "overlap": _OF_INDUCTOR, "overlap_scheduling": _OF_INDUCTOR, "partitioned_scatter": _OF_INDUCTOR,
    "node_runtime_estimation": "no decision is made by estimated run times; `fusebox run --session` measures them",
    "graph_region_expansion": "equal regions of a graph are not looked for", "hierarchical_compile": "regions are compiled in place",
    "onnx_diagnostics": "torch.onnx tells it, whose exporter this engine has no part in", "custom_format_test_artifact": "it is for PyTorch's own tests",
    "annotation": "nodes of graphs carry no annotations", "joint_graph_passes": "aot_joint_graph and graph_code_verbose show graph and passes",
}
_NO_COMPONENT = {
    "torch._inductor.async_compile": ("async_compile", "kernels are compiled by threads of this process"),
    "torch._subclasses.fake_tensor": ("fake_tensor", "stand-ins of the engine's own take the place of fake tensors"),
}
_FOR_CODE = ("ir_pre_fusion", "ir_post_fusion", "kernel_code", "output_code")
_FOR_INSTRUCTIONS = ("trace_source", "trace_call", "trace_bytecode", "bytecode")


@functools.cache
def _loggers():
    """Artifact -> logger, of those that the installed PyTorch knows."""
    from torch._logging import _internal
    return {name: _internal.getArtifactLogger(module, name) for name, (module, _, _) in _ARTIFACTS.items() if name in _internal.log_registry.artifact_names}


def _is_on(logger, level):
    return logger.isEnabledFor(level) and (logger.propagate or logger.handlers)


def _on():
    return [name for name, logger in _loggers().items() if _is_on(logger, _ARTIFACTS[name][1])]


def wants():
    """(anything, code as text, each instruction)."""
    from torch._logging import _internal
    artifacts = _on()
    state = _internal.log_state
    for name in state.artifact_names & _NOT_HERE.keys():
        once(f"TORCH_LOGS={name} has no effect under Fusebox: {_NOT_HERE[name]}")
    for name in state.log_qname_to_level.keys() & _NO_COMPONENT.keys():
        once(f"TORCH_LOGS={_NO_COMPONENT[name][0]} has no effect under Fusebox: {_NO_COMPONENT[name][1]}")
    components = any(logging.getLogger(name).isEnabledFor(level) for name, (level, _) in _COMPONENTS.items())
    return bool(artifacts) or components, any(n in artifacts for n in _FOR_CODE), any(n in artifacts for n in _FOR_INSTRUCTIONS)


def hear(what, value, assembly):
    if what == "compilation":
        with context(value):
            _tell(value, assembly)
    elif what == "limit":
        frame, failures, reason = value
        if frame and failures:
            text = _log_text.recompiling(frame.name, frame.file, frame.line, [_log_text.guard_failure(f) for f in failures])
            _say("recompiles", f"{text}\n    {reason}")
    elif what == "cuda_graph":
        with context(value[0]):
            _tell_cuda_graph(value[1])
    elif what == "note":
        _say("perf_hints", f"{value[1]['what']}: {value[1]['detail']}")


def _tell(compilation, assembly):
    for name, (level, texts) in _COMPONENTS.items():
        logger = logging.getLogger(name)
        if logger.isEnabledFor(level):
            for text in texts(compilation, assembly):
                logger.log(level, "%s", text)
    loggers = _loggers()
    for name in _on():
        level, texts = _ARTIFACTS[name][1:]
        if texts:
            for text in texts(compilation, assembly):
                loggers[name].log(level, "%s", text)


def _say(name, text, level=None):
    logger = _loggers().get(name)
    level = level or _ARTIFACTS[name][1]
    if logger is not None and _is_on(logger, level):
        logger.log(level, "%s", text)


def _tell_cuda_graph(record):
    if record["event"] == "refused":
        _say("cudagraphs", f"skipping cudagraphs due to {record['reason']}", _WARNING)
        _say("perf_hints", f"skipping cudagraphs due to {record['reason']}")
        return
    counts = f", {record['nodes']} nodes in {record['stretches']} stretches, {record['plain_steps']} steps outside" if record["nodes"] >= 0 else ""
    why = f": {record['reason'] or record['plain_reason']}" if record["reason"] or record["plain_reason"] else ""
    _say("cudagraphs", f"CUDA graph {record['event']} (recording {record['number']} on {record['device'] or 'the device'}{counts}){why}")
    if record["static_inputs"] >= 0:
        _say("cudagraph_static_inputs",
             f"{record['static_inputs']} inputs are read where they lie, {record['copied_inputs']} ({record['copied_bytes']} bytes) are copied")

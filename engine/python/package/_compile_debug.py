"""TORCH_COMPILE_DEBUG and torch._inductor.config.trace: a folder for each compiled graph, with PyTorch's names for what is in it."""

import datetime
import functools
import itertools
import json
import logging
import os
import shutil
import subprocess
import sys

from . import _log_text, _output_code
from ._unused_options import loaded_config, once

# The settings of torch._inductor.config.trace that act, with their defaults where nobody has imported the configuration.
DEFAULTS = {
    "enabled": False, "debug_dir": None, "fx_graph": True, "fx_graph_transformed": True, "ir_pre_fusion": True, "ir_post_fusion": True,
    "output_code": True, "graph_diagram": False, "draw_orig_fx_graph": False, "provenance_tracking_level": 0, "debug_log": False, "info_log": False, "upload_tar": None,
    "log_autotuning_results": False,
}
_ENVIRONMENT = {"enabled": "TORCH_COMPILE_DEBUG", "graph_diagram": "INDUCTOR_POST_FUSION_SVG",
                "draw_orig_fx_graph": "INDUCTOR_ORIG_FX_SVG", "provenance_tracking_level": "INDUCTOR_PROVENANCE",
                "log_autotuning_results": "LOG_AUTOTUNE_RESULTS"}
_compiled_with = [{}]  # what options= of torch.compile say of trace, by the number that the engine hands on


def handle(options):
    """The number under which compilations tell that they are of these options."""
    chosen = {name.partition(".")[2]: value for name, value in options.items() if name.startswith("trace.")}
    if not chosen:
        return 0
    if chosen not in _compiled_with:
        _compiled_with.append(chosen)
    return _compiled_with.index(chosen)


def _of_process(name):
    config = loaded_config()
    if config is not None and hasattr(config.trace, name):
        return getattr(config.trace, name)
    value = os.environ.get(_ENVIRONMENT.get(name, ""))
    return DEFAULTS[name] if value is None else value == "1"


def _setting(compilation, name):
    chosen = _compiled_with[compilation.owner.record["logs"]]
    return chosen[name] if name in chosen else _of_process(name)


def wants():
    on = _of_process("enabled") or any(chosen.get("enabled") for chosen in _compiled_with)
    return bool(on), bool(on), False


@functools.cache
def _run_folder():
    """torch_compile_debug/run_TIME-pid_PID, of this process."""
    dynamo = sys.modules.get("torch._dynamo.config")
    root = getattr(dynamo, "debug_dir_root", None) or os.path.join(os.environ.get("TORCH_COMPILE_DEBUG_DIR", os.getcwd()), "torch_compile_debug")
    return os.path.join(root, f"run_{datetime.datetime.now():%Y_%m_%d_%H_%M_%S_%f}-pid_{os.getpid()}")


_numbers = itertools.count()


def _new_folder(compilation, lowered):
    root = _setting(compilation, "debug_dir") or _run_folder()
    for number in _numbers:
        folder = os.path.join(root, "torchinductor", f"model__{lowered.label}.{number}")
        if not os.path.exists(folder):
            os.makedirs(folder)
            return folder


def hear(what, value, assembly):
    if what != "compilation" or not _setting(value, "enabled"):
        return
    try:
        _dynamo_log(value)
        for lowered in value.lowered:
            _write(value, lowered, assembly)
    except OSError as error:
        once(f"the folder of TORCH_COMPILE_DEBUG cannot be written: {error}")


def _dynamo_log(c):
    if c.frame is None:
        return
    folder = os.path.join(_setting(c, "debug_dir") or _run_folder(), "torchdynamo")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "debug.log"), "a") as log:
        log.write(f"[{c.id}] torchdynamo start tracing {c.frame.name} {c.frame.file}:{c.frame.line}\n")
        if c.causes:
            log.write(_log_text.recompiling(c.frame.name, c.frame.file, c.frame.line, [_log_text.guard_failure(f) for f in c.causes]) + "\n")
        for record in c.breaks:
            log.write(_log_text.graph_break(c, record) + "\n")
        for graph in c.graphs_of("captured"):
            log.write(f"TRACED GRAPH\n{graph['text'].table()}\n")
        if c.guards:
            log.write("GUARDS:\n" + _log_text.guard_tree(c.guards) + "\n")
        log.write(f"[{c.id}] torchdynamo done tracing {c.frame.name}{'' if c.ok else ': ' + c.error}\n")


def _write(c, lowered, assembly):
    folder = _new_folder(c, lowered)

    def put(setting, name, text):
        if _setting(c, setting) and text is not None:
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)

    before = assembly.graphs.get(lowered.origin, (lowered.graph,))[0]  # what went into the passes
    hints = {row["name"]: int(row["hint"]) for row in c.owner.symbols if row["hint"] is not None}
    put("fx_graph", "fx_graph_readable.py", before.readable("<lambda>"))
    put("fx_graph", "fx_graph_runnable.py", before.runnable(hints))
    put("fx_graph_transformed", "fx_graph_transformed.py", lowered.graph.readable("<lambda>"))
    put("ir_pre_fusion", "ir_pre_fusion.txt", lowered.ir.get("pre_fusion"))
    put("ir_post_fusion", "ir_post_fusion.txt", _buffers(lowered) + lowered.ir.get("post_fusion", ""))
    put("output_code", "output_code.py", _output_code.listing(lowered, assembly.code))
    put("enabled", "inductor_provenance_tracking_node_mappings.json",
        json.dumps(_output_code.node_mappings(lowered, assembly.captured_names(lowered))))
    stages = "".join(f"{stage['name']}: {(stage['end_ns'] - stage['start_ns']) / 1e6:.2f} ms {stage['detail']}\n" for stage in c.stages)
    put("debug_log", "debug.log", stages)
    put("info_log", "info.log", stages)
    tuned = "".join(f"{cache['key']}: {cache['reason']}\n" for cache in c.caches if cache["cache"] == "autotune")
    put("log_autotuning_results", "autotuning_result.txt", tuned or None)
    if _setting(c, "graph_diagram"):
        _draw(diagram(lowered.graph, lowered.groups), folder, "graph_diagram")
    if _setting(c, "draw_orig_fx_graph"):
        _draw(diagram(before), folder, "orig_fx_graph_diagram")
    if upload := _setting(c, "upload_tar"):
        upload(shutil.make_archive(os.path.join(folder, os.path.basename(folder)), "gztar", os.path.dirname(folder), os.path.basename(folder)))
    logging.getLogger("torch._inductor.debug").warning("model__%s debug trace: %s", lowered.label, folder)


def _buffers(lowered):
    """The layouts of buffers, as TorchInductor's scheduler prints them."""
    lines = []
    for b in lowered.buffers:
        if b["of"] in ("planned", "owned"):
            lines.append(f"{b['name']}.layout = FixedLayout('{b['device']}', torch.{b['dtype']}, size={b['shape']})")
    return "\n".join(lines) + ("\n\n" if lines else "")


def _draw(text, folder, name):
    dot = os.path.join(folder, name + ".dot")
    with open(dot, "w") as file:
        file.write(text)
    try:
        subprocess.run(["dot", "-Tsvg", "-o", os.path.join(folder, name + ".svg"), dot], check=True, capture_output=True, timeout=120)
        os.remove(dot)
    except FileNotFoundError:
        once(f"trace.{name}: Graphviz draws it, which is not installed (apt install graphviz); {name}.dot is left to be drawn elsewhere")
    except (subprocess.SubprocessError, OSError) as error:
        once(f"trace.{name}: Graphviz did not draw it ({error}); {name}.dot is left to be drawn elsewhere")


def diagram(graph, groups=()):
    """A graph in Graphviz' language, with a cluster for each kernel."""
    lines = ["digraph {", '  node [shape=box fontname="monospace" fontsize=10];', '  graph [fontname="monospace" fontsize=11];']
    grouped = set()
    for position, group in enumerate(groups):
        lines += [f"  subgraph cluster_{position} {{", f"    label={json.dumps(group['name'])};"]
        for i in group["nodes"]:
            grouped.add(i)
            lines.append(f"    n{i} [label={json.dumps(_label(graph, i))}];")
        lines.append("  }")
    for i, node in enumerate(graph.nodes):
        if i not in grouped:
            shape = "" if node["kind"] == "call" else " shape=ellipse"
            lines.append(f"  n{i} [label={json.dumps(_label(graph, i))}{shape}];")
        lines += [f"  n{source} -> n{i};" for source in dict.fromkeys(n for n, _ in graph.inputs_of(i))]
    return "\n".join([*lines, "}"]) + "\n"


def _label(graph, i):
    node = graph.nodes[i]
    annotation = graph.annotation(node["out"][0]) if len(node["out"]) == 1 else ""
    return "\n".join(part for part in (graph.names[i] if node["kind"] != "output" else "output", node.get("op", ""), annotation) if part)

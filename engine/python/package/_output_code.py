"""What a graph became, as one text: its kernels and the calls that run them, laid out as TorchInductor lays out its output code."""


def listing(lowered, code, handles=True):
    """`code`: by id of a kernel, what was generated for it. The text is a listing, not a program: machine code needs no wrapper."""
    lines = [f"# AOT ID: ['{lowered.label}']",
             "# A listing: kernels as loop IR, LLVM IR and machine code (PTX for GPUs), then the calls in the order in which they are made.",
             "import torch", "from torch import device, inf, nan", ""]
    for group in _generated(lowered):
        kernel = lowered.kernels[group["kernel"]]
        lines += [f"# kernel path: {name_of(group)}", *_origin(lowered, group), "# Graph fragment:", *lowered.graph.fragment(group["nodes"]),
                  f"{name_of(group)} = async_compile.{_language(kernel)}('{name_of(group)}', '''", *kernel_text(group, lowered, code).splitlines(),
                  f"''', device_str='{kernel['device'].partition(':')[0]}')", "", ""]
    names = [lowered.graph.names[i] for i in lowered.graph.placeholders()]
    lines += ["def call(args):", f"    {''.join(name + ', ' for name in [*lowered.graph.symbols, *names]).strip() or '_'} = args"]
    for position, group in enumerate(lowered.groups):
        lines += [f"    {line}" for line in _call(lowered, group, position if handles else None)]
    output = lowered.graph.nodes[-1]
    results = ", ".join(lowered.graph.argument(a) for a in output["args"]) if output["kind"] == "output" else ""
    lines += [f"    return ({results}{',' if results and ', ' not in results else ''})"]
    return "\n".join(lines) + "\n"


def _generated(lowered):
    """One group for each kernel that has code of its own."""
    return [group for group in lowered.groups if lowered.kernels.get(group["kernel"], {}).get("of") != "extern" and group["kernel"] in lowered.kernels]


def name_of(group):
    return "".join(c if c.isalnum() or c == "_" else "_" for c in group["name"])


def _language(kernel):
    return "llvm" if kernel["device"].startswith("cpu") else "ptx"


def kernel_text(group, lowered, code):
    """Loop IR and code of a generated kernel."""
    kernel = lowered.kernels[group["kernel"]]
    parts = [kernel["loop_ir"]]
    made = code.get(group["kernel"]) or code.get(kernel["code_of"])
    if kernel["code_of"]:
        parts.append("# the code is that of an equal kernel")
    if made:
        parts += [f"# {made['target']}, tier {made['tier']}, {made['compile_ns'] / 1e6:.1f} ms"]
        parts += [text for text in (made["llvm_ir"], made["assembly"]) if text]
    return "\n\n".join(part.rstrip("\n") for part in parts).replace("'''", "' ' '")


def _origin(lowered, group):
    ops = dict.fromkeys(lowered.graph.nodes[i]["op"].replace("::", ".").partition(".")[::2] for i in group["nodes"] if lowered.graph.nodes[i]["kind"] == "call")
    aten = ", ".join(f"{namespace}.{rest.partition('.')[0]}" for namespace, rest in ops)
    return [f"# Topologically Sorted Source Nodes: [{', '.join(lowered.graph.names[i] for i in group['nodes'])}], Original ATen: [{aten}]"]


def _call(lowered, group, handle):
    graph, inside = lowered.graph, set(group["nodes"])
    read = dict.fromkeys(graph.value(ref) for i in group["nodes"] for ref in graph.inputs_of(i) if ref[0] not in inside)
    results = [graph.names[i] for i in group["results"] if i < len(graph.names)] or [graph.names[i] for i in group["nodes"][-1:]]
    lines = [*_origin(lowered, group), *([] if handle is None else [f"# [Provenance debug handles] {name_or_op(lowered, group)}:{handle}"])]
    kernel = lowered.kernels.get(group["kernel"])
    if kernel and kernel["of"] != "extern":
        return [*lines, f"{name_of(group)}.run({', '.join([*read, 'out=[' + ', '.join(results) + ']'])})"]
    if group["reason"]:
        lines.append(f"# {group['reason']}")
    calls = [i for i in group["nodes"] if graph.nodes[i]["kind"] == "call"]
    return [*lines, *(f"{graph.names[i]} = {graph.call(graph.nodes[i])}" for i in calls)]


def name_or_op(lowered, group):
    """By which the call of a group is named."""
    kernel = lowered.kernels.get(group["kernel"])
    calls = [i for i in group["nodes"] if lowered.graph.nodes[i]["kind"] == "call"]
    if kernel and kernel["of"] == "extern" and calls:
        return lowered.graph.target(lowered.graph.nodes[calls[-1]])
    return name_of(group)


def node_mappings(lowered, captured_names):
    """As torch._inductor's provenance tracking has them: between kernels, nodes after the graph passes and captured nodes."""
    names = lowered.graph.names
    post_to_pre = {names[i]: captured for i, captured in enumerate(captured_names) if captured and lowered.graph.nodes[i]["kind"] == "call"}
    code_to_post = {f"{name_or_op(lowered, group)}:{position}": [names[i] for i in group["nodes"]] for position, group in enumerate(lowered.groups)}
    return {"preToPost": _turned(post_to_pre), "postToPre": post_to_pre, "cppCodeToPost": code_to_post, "postToCppCode": _turned(code_to_post), "version": 2.0}


def _turned(mapping):
    turned = {}
    for key, values in mapping.items():
        for value in values:
            turned.setdefault(value, []).append(key)
    return turned

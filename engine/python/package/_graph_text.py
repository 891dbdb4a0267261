"""A saved graph (engine/graph/serialize.h says how it is written) in the form in which people read graphs: FX's."""

import builtins
import json
import keyword
import linecache
import math
import re

from ._saved_graph import operator

_LONGEST_TEXT = 160  # a graph as text is not for people
_SHORT = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
          "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "b8", "complex64": "c64", "complex128": "c128",
          "complex32": "c32", "float8_e5m2": "f8e5m2", "float8_e4m3fn": "f8e4m3fn"}
_DEVICES = {0: "cpu", 1: "cuda", 2: "meta"}
_FORMATS = {0: "torch.contiguous_format", 1: "torch.preserve_format", 2: "torch.channels_last", 3: "torch.channels_last_3d"}
_PRECEDENCE = {"div": " // ", "mod": " % "}


def device_text(pair):
    kind = _DEVICES.get(pair[0], "other")
    return f"{kind}:{max(0, pair[1])}" if kind == "cuda" else kind


class GraphText:
    """A graph by name. What is printed of it is Python that PyTorch can run, unless it holds operators of this engine's own."""

    def __init__(self, saved):
        self.data = json.loads(saved) if isinstance(saved, str) else saved
        self.nodes = self.data["nodes"]
        self.symbols = [s["name"] for s in self.data["symbols"]]
        self._taken = {*self.symbols, *dir(builtins), "self", "torch", "device", "inf", "nan"}
        self.names = [self._free(node["name"]) for node in self.nodes]
        self._items = {}  # (node, output) -> name, of nodes with several results
        for i, node in enumerate(self.nodes):
            if node["kind"] == "call" and (len(node["out"]) > 1 or node.get("list")):
                for output, meta in enumerate(node["out"]):
                    if meta is not None:
                        self._items[i, output] = self._free("getitem")

    def _free(self, name):
        name = re.sub(r"\W", "_", name) or "value"
        if name[0].isdigit() or keyword.iskeyword(name):
            name = "_" + name
        free, count = name, 0
        while free in self._taken:
            count += 1
            free = f"{name}_{count}"
        self._taken.add(free)
        return free

    # --- words ---
    def value(self, ref):
        return self._items.get(tuple(ref)) or self.names[ref[0]]

    def expression(self, e):
        if isinstance(e, int):
            return str(e)
        terms = []
        for coefficient, *factors in e:
            words = [self._factor(f) for f in factors]
            if coefficient != 1 or not words:
                words.insert(0, str(coefficient))
            terms.append("*".join(words))
        return " + ".join(terms).replace("+ -", "- ") or "0"

    def _factor(self, f):
        if isinstance(f, int):
            return self.symbols[f]
        kind, a, b = f[0], self.expression(f[1]), self.expression(f[2])
        if kind in _PRECEDENCE:
            return f"(({a}){_PRECEDENCE[kind]}({b}))"
        return f"{kind}({a}, {b})"

    def annotation(self, meta):
        """"f32[8, s0][s0, 1]cpu", as FX has it."""
        if meta is None:
            return ""
        if "int" in meta:
            return f"Sym({self.expression(meta['int'])})"
        sizes, strides = (", ".join(self.expression(e) for e in meta[key]) for key in ("sizes", "strides"))
        return f"{_SHORT.get(meta['dtype'], meta['dtype'])}[{sizes}][{strides}]{device_text(meta.get('device', [0, -1]))}"

    def argument(self, a):
        if isinstance(a, list):
            return "[" + ", ".join(self.argument(item) for item in a) + "]"
        if not isinstance(a, dict):
            return repr(a) if not isinstance(a, str) or len(a) <= _LONGEST_TEXT else f"{a[:40] + '…'!r}"
        (key, v), = a.items()
        if key == "v":
            return self.value(v)
        if key == "e":
            return self.expression(v)
        if key == "dtype":
            return f"torch.{v}"
        if key == "device":
            index = f", index={v[1]}" if v[0] == 1 and v[1] >= 0 else ""
            return f"device(type={_DEVICES.get(v[0], 'other')!r}{index})"
        if key == "memory_format":
            return _FORMATS.get(v, str(v))
        if key == "layout":
            return "torch.strided" if v == 0 else "torch.sparse_coo"
        if key == "f":
            return v
        if key == "c":
            return "complex(" + ", ".join(self.argument(part) for part in v) + ")"
        return "None"

    def target(self, node):
        """"torch.ops.aten.add.Tensor"."""
        namespace, _, rest = node["op"].partition("::")
        packet, _, overload = rest.partition(".")
        return f"torch.ops.{namespace}.{packet}.{overload or 'default'}"

    def arguments(self, node):
        """(positional, by name), as texts, without those at the end that are defaults anyway."""
        try:
            schema = operator(node["op"])._schema.arguments
        except (ValueError, RuntimeError):
            return [self.argument(a) for a in node["args"]], {}
        args, kwargs = [], {}
        given = list(zip(schema, node["args"]))
        for parameter, a in given:
            if parameter.kwarg_only and not _is_default(parameter, a):
                kwargs[parameter.name] = self.argument(a)
        positional = [(p, a) for p, a in given if not p.kwarg_only]
        while positional and _is_default(*positional[-1]):
            positional.pop()
        args = [self.argument(a) for _, a in positional]
        return args, kwargs

    def call(self, node):
        args, kwargs = self.arguments(node)
        return f"{self.target(node)}({', '.join([*args, *(f'{k} = {v}' for k, v in kwargs.items())])})"

    def placeholders(self):
        return [i for i, node in enumerate(self.nodes) if node["kind"] == "placeholder"]

    def calls(self):
        return [i for i, node in enumerate(self.nodes) if node["kind"] == "call"]

    def inputs_of(self, index):
        """The values (node, output) that a node reads, in order."""
        return list(dict.fromkeys(_values(self.nodes[index]["args"])))

    def place(self, node):
        """(file, line, function) of the user's line, or None."""
        if "stack" not in node:
            return None
        stack = self.data["stacks"][node["stack"]]
        if not stack:
            return None
        own = [line for line in stack if "/site-packages/torch/" not in line[0]]
        return tuple((own or stack)[-1])

    def sizes(self):
        """{name: sizes} of the inputs and of what calls give."""
        found = {}
        for i, node in enumerate(self.nodes):
            if node["kind"] in ("placeholder", "call"):
                for output, meta in enumerate(node["out"]):
                    if meta and "sizes" in meta:
                        found[self.value((i, output))] = [e if isinstance(e, int) else self.expression(e) for e in meta["sizes"]]
        return found

    # --- printed ---
    def readable(self, class_name="GraphModule"):
        """As GraphModule.print_readable prints it."""
        heads = [f'{s}: "Sym({s})"' for s in self.symbols]
        heads += [f'{self.names[i]}: "{self.annotation(self.nodes[i]["out"][0])}"' for i in self.placeholders()]
        lines = [f"class {class_name}(torch.nn.Module):", f"    def forward({', '.join(['self', *heads])}):"]
        last = self._last_uses()
        told = None
        for i, node in enumerate(self.nodes):
            if node["kind"] == "constant":
                lines.append(f'        {self.names[i]}: "{self.annotation(node["out"][0])}" = self._tensor_constant{node["index"]}')
            elif node["kind"] == "output":
                lines.append(f"        return {_tuple([self.argument(a) for a in node['args']])}")
            elif node["kind"] == "call":
                place = self.place(node)
                if place != told:
                    told = place
                    lines += ["", f"        # File: {place[0]}:{place[1]} in {place[2]}, code: {linecache.getline(place[0], place[1]).strip()}" if place
                              else "        # No stacktrace found for following nodes"]
                lines += self._statements(i, node, last)
        return "\n".join(lines) + "\n"

    def _statements(self, i, node, last):
        freed = last.get(i, [])
        release = f";  {' = '.join(freed)} = None" if freed else ""
        items = {o: name for (n, o), name in self._items.items() if n == i} if (len(node["out"]) > 1 or node.get("list")) else None
        if items is None:
            annotation = self.annotation(node["out"][0]) if node["out"] else ""
            typed = f': "{annotation}"' if annotation else ""
            return [f"        {self.names[i]}{typed} = {self.call(node)}{release}"]
        lines = [f"        {self.names[i]} = {self.call(node)}{release}"]
        for count, (o, name) in enumerate(items.items()):
            end = f";  {self.names[i]} = None" if count == len(items) - 1 else ""
            lines.append(f'        {name}: "{self.annotation(node["out"][o])}" = {self.names[i]}[{o}]{end}')
        return lines

    def _last_uses(self):
        """For each call, the names that nothing reads after it."""
        last = {}
        for i, node in enumerate(self.nodes):
            for ref in _values(node["args"]):
                last[self.value(ref)] = (i, node["kind"])
        freed = {}
        for name, (i, kind) in last.items():
            if kind == "call":
                freed.setdefault(i, []).append(name)
        return freed

    def table(self):
        """As torch.fx.Graph.print_tabular prints it."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        for i, node in enumerate(self.nodes):
            if node["kind"] == "placeholder":
                rows.append(("placeholder", self.names[i], self.names[i], "()", "{}"))
            elif node["kind"] == "constant":
                rows.append(("get_attr", self.names[i], f"_tensor_constant{node['index']}", "()", "{}"))
            elif node["kind"] == "call":
                args, kwargs = self.arguments(node)
                rows.append(("call_function", self.names[i], self.target(node).removeprefix("torch.ops."), _tuple(args),
                             "{" + ", ".join(f"{k!r}: {v}" for k, v in kwargs.items()) + "}"))
                for (n, o), name in self._items.items():
                    if n == i:
                        rows.append(("call_function", name, "<built-in function getitem>", f"({self.names[i]}, {o})", "{}"))
            else:
                rows.append(("output", "output", "output", f"({_tuple([self.argument(a) for a in node['args']])},)", "{}"))
        return _in_columns(rows)

    def fragment(self, indices):
        """Comment lines of the nodes that a kernel computes, as TorchInductor writes them above its kernels."""
        users = [0] * len(self.nodes)
        for node in self.nodes:
            for n, _ in set(_values(node["args"])):
                users[n] += 1
        lines = []
        for i in indices:
            node = self.nodes[i]
            if node["kind"] != "call":
                continue
            args, kwargs = self.arguments(node)
            read = {self.value(ref) for ref in _values(node["args"])}

            def marked(text, read=read):
                return re.sub(r"[A-Za-z_]\w*", lambda word: "%" + word[0] if word[0] in read else word[0], text)

            annotation = self.annotation(node["out"][0]) if len(node["out"]) == 1 else ""
            typed = f' : Tensor "{annotation}"' if annotation else " "
            named = ", ".join(f"{k}: {marked(v)}" for k, v in kwargs.items())
            lines.append(f"#   %{self.names[i]}{typed}[num_users={users[i]}] = call_function[target={self.target(node)}]"
                         f"(args = {_tuple([marked(a) for a in args])}, kwargs = {{{named}}})")
        return lines

    def runnable(self, hints=None):
        """A script that runs the graph on random inputs, under torch.compile."""
        hints = hints or {}
        lines = ["import torch", "from torch import device, inf, nan", "from math import prod  # noqa: F401", "", "", self.readable("Repro"), ""]
        lines += [f"{s} = {hints.get(s, 16)}" for s in self.symbols]
        constants = [node for node in self.nodes if node["kind"] == "constant"]
        lines += ["module = Repro()"] + [f"module._tensor_constant{node['index']} = {self._made(node['out'][0])}" for node in constants]
        inputs = [*self.symbols, *(self._made(self.nodes[i]["out"][0]) for i in self.placeholders())]
        lines += ["arguments = [", *(f"    {one}," for one in inputs), "]", "", 'if __name__ == "__main__":', "    with torch.no_grad():",
                  "        print(torch.compile(module)(*arguments))"]
        return "\n".join(lines) + "\n"

    def _made(self, meta):
        """An expression that makes a tensor so described."""
        sizes, strides = ("(" + "".join(self.expression(e) + ", " for e in meta[key]) + ")" for key in ("sizes", "strides"))
        where = f"dtype=torch.{meta['dtype']}, device={device_text(meta.get('device', [0, -1]))!r}"
        if meta["dtype"].startswith(("float", "bfloat")) and not meta["dtype"].startswith("float8"):
            return f"torch.empty_strided({sizes}, {strides}, {where}).normal_()"
        return f"torch.empty_strided({sizes}, {strides}, {where}).zero_()"

    def number(self, e, hints):
        """The value of an expression where symbols have their hints."""
        if isinstance(e, int):
            return e
        return sum(term[0] * math.prod(self._factor_number(f, hints) for f in term[1:]) for term in e)

    def _factor_number(self, f, hints):
        if isinstance(f, int):
            return hints.get(self.symbols[f], 16)
        a, b = self.number(f[1], hints), self.number(f[2], hints)
        return {"div": lambda: a // b, "mod": lambda: a % b, "min": lambda: min(a, b), "max": lambda: max(a, b)}[f[0]]()

    def layout(self, meta, hints):
        """(sizes, strides, bytes from the first element to the last) of a tensor."""
        import torch
        sizes, strides = ([self.number(e, hints) for e in meta[key]] for key in ("sizes", "strides"))
        reach = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides)) if math.prod(sizes) else 0
        return sizes, strides, reach * torch.empty((), dtype=getattr(torch, meta["dtype"])).element_size()


class ModuleText:
    """The same of a torch.fx.GraphModule, which a backend in Python was given."""

    symbols = ()

    def __init__(self, module):
        self.module, self.nodes = module, list(module.graph.nodes)

    def calls(self):
        return [node for node in self.nodes if node.op.startswith("call_")]

    def placeholders(self):
        return [node for node in self.nodes if node.op == "placeholder"]

    def readable(self, class_name=""):
        return self.module.print_readable(print_output=False, include_stride=True, include_device=True)

    def table(self):
        return _in_columns([("opcode", "name", "target", "args", "kwargs"),
                            *((node.op, node.name, str(node.target), str(node.args), str(node.kwargs)) for node in self.nodes)])

    def sizes(self):
        values = {node.name: node.meta.get("example_value", node.meta.get("val")) for node in self.nodes}
        return {name: [size if isinstance(size, int) else str(size) for size in value.shape] for name, value in values.items() if hasattr(value, "shape")}


def _in_columns(rows):
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _values(args):
    for a in args:
        if isinstance(a, list):
            yield from _values(a)
        elif isinstance(a, dict) and "v" in a:
            yield tuple(a["v"])


def _tuple(words):
    return "(" + ", ".join(words) + ("," if len(words) == 1 else "") + ")"


def _is_default(parameter, a):
    if not parameter.has_default_value():
        return False
    default = parameter.default_value
    if isinstance(a, dict):
        return False
    return type(a) is type(default) and a == default

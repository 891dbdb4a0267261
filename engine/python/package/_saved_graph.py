"""A saved graph (engine/graph/serialize.h says how it is written) as Python works with it: node by node, on real tensors."""

import json
import math
import re

import torch

_MEMORY_FORMATS = {0: torch.contiguous_format, 1: torch.preserve_format, 2: torch.channels_last, 3: torch.channels_last_3d}
_DEVICES = {0: "cpu", 1: "cuda", 2: "meta"}
VIEW_LIKE = {"view", "reshape", "_unsafe_view", "expand", "permute", "transpose", "t", "squeeze", "unsqueeze", "slice", "select",
             "clone", "contiguous", "alias", "detach", "_to_copy", "to", "flatten", "as_strided", "_reshape_alias"}


def dtype_of(name):
    return getattr(torch, name)


def device_of(pair):
    kind = _DEVICES.get(pair[0])
    if kind is None:
        raise ValueError(f"the graph runs on a device that this PyTorch has no name for ({pair[0]})")
    return torch.device(kind, pair[1]) if kind == "cuda" and pair[1] >= 0 else torch.device(kind)


def short_name(op):
    return op.rpartition("::")[2].partition(".")[0]


def operator(name):
    """The torch.ops overload of "aten::add.Tensor"."""
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
    except AttributeError:
        raise ValueError(f"this PyTorch has no operator {name}; import the library that defines it") from None


def is_random(op):
    return torch.Tag.nondeterministic_seeded in op.tags


def is_uninitialised(op):
    """Whether the results are memory as it was found."""
    return op.namespace == "aten" and op._opname.removeprefix("new_") in ("empty", "empty_like", "empty_strided", "empty_permuted")


class Program:
    """Nodes, in order. `sizes`: values of size symbols by name, for graphs with dynamic shapes; without, those at capture. `numbers`: values of
    inputs that are single floats, by name. `text` has the sizes as those at capture: what is said of traffic is said of them."""

    def __init__(self, text, sizes=None, numbers=None):
        self.text = text
        self.data = json.loads(text)
        self.nodes = self.data["nodes"]
        self.inputs = [i for i, node in enumerate(self.nodes) if node["kind"] == "placeholder"]
        self.symbols = [self._symbol_value(s, sizes or {}) for s in self.data["symbols"]]
        self.sizes = {s["name"]: value for s, value in zip(self.data["symbols"], self.symbols)}
        if any(s.get("hint") != value for s, value in zip(self.data["symbols"], self.symbols)):
            self.data["symbols"] = [{**s, "hint": value} for s, value in zip(self.data["symbols"], self.symbols)]
            self.text = json.dumps(self.data)
        self.floats = [self.nodes[i]["name"] for i in self.inputs if self._is_float(i)]
        self.numbers = {name: value for name, value in (numbers or {}).items() if name in self.floats}
        self._operators = {}

    def _is_float(self, node):
        meta = self.meta(node)
        return meta is not None and not meta[0] and meta[3].is_floating_point

    @staticmethod
    def _symbol_value(symbol, sizes):
        lower, upper = max(2, symbol["lower"]), symbol["upper"]
        value = sizes.get(symbol["name"], symbol.get("hint", min(max(lower, 16), upper)))
        if not symbol["lower"] <= value <= upper:
            until = "on" if upper == 2 ** 63 - 1 else f"to {upper}"
            raise ValueError(f"{symbol['name']}={value}: this graph holds for {symbol['name']} from {symbol['lower']} {until}")
        return value

    @property
    def name(self):
        return self.data["name"]

    def operator(self, node):
        name = node["op"]
        if name not in self._operators:
            self._operators[name] = operator(name)
        return self._operators[name]

    def expression(self, e):
        """Value of a size expression."""
        if isinstance(e, int):
            return e
        return sum(term[0] * math.prod(self._factor(f) for f in term[1:]) for term in e)

    def _factor(self, f):
        if isinstance(f, int):
            return self.symbols[f]
        a, b = self.expression(f[1]), self.expression(f[2])
        return {"div": lambda: a // b, "mod": lambda: a % b, "min": lambda: min(a, b), "max": lambda: max(a, b)}[f[0]]()

    def meta(self, node, output=0):
        """(sizes, strides, offset, dtype, device) of a tensor output, or None."""
        out = self.nodes[node]["out"]
        if output >= len(out) or out[output] is None or "int" in out[output]:
            return None
        o = out[output]
        return ([self.expression(e) for e in o["sizes"]], [self.expression(e) for e in o["strides"]],
                self.expression(o.get("offset", 0)), dtype_of(o["dtype"]), device_of(o.get("device", [0, -1])))

    def argument(self, a, value, dtype=lambda d: d):
        """An argument as PyTorch takes it. `value(node, output)` gives tensors; `dtype` may replace types."""
        if isinstance(a, list):
            return [self.argument(item, value, dtype) for item in a]
        if not isinstance(a, dict):
            return a
        (key, v), = a.items()
        if key == "v":
            return value(v[0], v[1])
        if key == "e":
            return self.expression(v)
        if key == "dtype":
            return dtype(dtype_of(v))
        if key == "device":
            return device_of(v)
        if key == "memory_format":
            return _MEMORY_FORMATS[v]
        if key == "layout":
            if v != 0:
                raise ValueError("the graph has a tensor that is not strided")
            return torch.strided
        if key == "f":
            return float(v)
        if key == "c":
            return complex(*(float(p["f"]) if isinstance(p, dict) else p for p in v))
        if key == "generator":
            return None
        raise ValueError(f"argument {key} of a saved graph is not known here")

    def call(self, node, value, dtype=lambda d: d):
        """Carries out a call node; a list of its outputs."""
        op = self.operator(node)
        arguments = op._schema.arguments
        args, kwargs = [], {}
        for parameter, a in zip(arguments, node["args"]):
            v = self.argument(a, value, dtype)
            if parameter.kwarg_only:
                kwargs[parameter.name] = v
            else:
                args.append(v)
        result = op(*args, **kwargs)
        if isinstance(result, (tuple, list)):
            flat = []
            for item in result:
                flat.extend(item if isinstance(item, (tuple, list)) else [item])
            return flat
        return [result]

    def values_in(self, args):
        """(node, output) of every value in an argument list."""
        for a in args:
            if isinstance(a, list):
                yield from self.values_in(a)
            elif isinstance(a, dict) and "v" in a:
                yield tuple(a["v"])

    def users(self):
        """For each value, (node, output), the calls that read it: (node, position of the argument)."""
        users = {}
        for i, node in enumerate(self.nodes):
            for position, a in enumerate(node["args"]):
                for value in self.values_in([a]):
                    users.setdefault(value, []).append((i, position))
        return users

    def reaches(self, start, users):
        """(call, position) where the value of the node `start` arrives, seen through views and casts."""
        todo, seen = [start], {start}
        while todo:
            for call, position in users.get((todo.pop(), 0), ()):
                node = self.nodes[call]
                yield node, position
                if node["kind"] == "call" and position == 0 and short_name(node["op"]) in VIEW_LIKE and call not in seen:
                    seen.add(call)
                    todo.append(call)

    def fixed(self):
        """Text of the same graph with numbers instead of size symbols."""
        if not self.symbols:
            return self.text

        def tensor(meta):
            if meta is None:
                return None
            if "int" in meta:
                return {"int": self.expression(meta["int"])}
            out = {**meta, "sizes": [self.expression(e) for e in meta["sizes"]], "strides": [self.expression(e) for e in meta["strides"]]}
            return {**out, "offset": self.expression(meta["offset"])} if "offset" in meta else out

        def argument(a):
            if isinstance(a, list):
                return [argument(item) for item in a]
            return self.expression(a["e"]) if isinstance(a, dict) and "e" in a else a

        nodes = [{**node, "args": [argument(a) for a in node["args"]], "out": [tensor(meta) for meta in node["out"]]} for node in self.nodes]
        constants = [{**c, **tensor({key: c[key] for key in ("sizes", "strides", "offset") if key in c})} for c in self.data["constants"]]
        return json.dumps({**self.data, "symbols": [], "nodes": nodes, "constants": constants})

    def with_outputs(self, extra):
        """Text of the same graph with the values (node, output) of `extra` as further results."""
        data = dict(self.data)
        last = dict(self.nodes[-1])
        last["args"] = [*last["args"], *({"v": list(v)} for v in extra)]
        data["nodes"] = [*self.nodes[:-1], last]
        return json.dumps(data)

    def alone(self, index):
        """Text of a graph of one call, and the values that are its inputs."""
        node = dict(self.nodes[index])
        values = list(dict.fromkeys(self.values_in(node["args"])))
        position = {v: i for i, v in enumerate(values)}

        def moved(a):
            if isinstance(a, list):
                return [moved(item) for item in a]
            if isinstance(a, dict) and "v" in a:
                return {"v": [position[tuple(a["v"])], 0]}
            return a

        inputs = [{"kind": "placeholder", "name": f"in_{i}", "args": [], "index": i, "out": [self.nodes[n]["out"][o]]}
                  for i, (n, o) in enumerate(values)]
        node["args"] = moved(node["args"])
        node.pop("from", None)
        outputs = [{"v": [len(inputs), o]} for o, meta in enumerate(node["out"]) if meta is not None]
        nodes = [*inputs, node, {"kind": "output", "name": "output", "args": outputs, "out": []}]
        return json.dumps({**self.data, "nodes": nodes, "constants": []}), values

    def module(self, constants):
        """The graph as an fx.GraphModule, for other compilers. Its arguments are the graph's inputs."""
        graph = torch.fx.Graph()
        root = torch.nn.Module()
        made = {}
        for i, node in enumerate(self.nodes):
            if node["kind"] == "placeholder":
                made[i, 0] = graph.placeholder(f"in_{i}_{re.sub('[^0-9A-Za-z_]', '_', node['name'])}")
            elif node["kind"] == "constant":
                name = f"constant_{node['index']}"
                root.register_buffer(name, constants[node["index"]])
                made[i, 0] = graph.get_attr(name)
            elif node["kind"] == "call":
                self._fx_call(graph, i, node, made)
            else:
                graph.output(tuple(self.argument(a, lambda n, o: made[n, o]) for a in node["args"]))
        return torch.fx.GraphModule(root, graph)

    def _fx_call(self, graph, index, node, made):
        op = self.operator(node)
        args, kwargs = [], {}
        for parameter, a in zip(op._schema.arguments, node["args"]):
            v = self.argument(a, lambda n, o: made[n, o])
            if parameter.kwarg_only:
                kwargs[parameter.name] = v
            else:
                args.append(v)
        call = graph.call_function(op, tuple(args), kwargs)
        if len(op._schema.returns) == 1 and not node.get("list"):
            made[index, 0] = call
        else:
            import operator as python_operator
            for o in range(len(node["out"])):
                made[index, o] = graph.call_function(python_operator.getitem, (call, o))

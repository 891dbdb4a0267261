"""Evaluates what lowering made of a graph, point by point in meaning, with plain torch operators: an independent reference."""

import json
import os
import subprocess
import struct

import torch

DTYPES = {0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16, 6: torch.float32,
          7: torch.float64, 8: torch.complex32, 9: torch.complex64, 10: torch.complex128, 11: torch.bool, 15: torch.bfloat16}
NUMBERS = {t: n for n, t in DTYPES.items()}
FORMATS = [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d]

UNARY = {"neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "reciprocal": torch.reciprocal, "sqrt": torch.sqrt,
         "rsqrt": torch.rsqrt, "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log, "log2": torch.log2,
         "log10": torch.log10, "log1p": torch.log1p, "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": torch.asin,
         "acos": torch.acos, "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh,
         "asinh": torch.asinh, "acosh": torch.acosh, "atanh": torch.atanh, "erf": torch.erf, "erfc": torch.erfc,
         "erfinv": torch.erfinv, "lgamma": torch.lgamma, "digamma": torch.digamma, "sigmoid": torch.sigmoid,
         "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc, "round_even": torch.round,
         "logical_not": torch.logical_not, "bit_not": torch.bitwise_not, "isnan": torch.isnan, "isinf": torch.isinf,
         "signbit": torch.signbit}
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
          "trunc_div": lambda a, b: torch.div(a, b, rounding_mode="trunc"), "floor_div": torch.floor_divide,
          "fmod": torch.fmod, "remainder": torch.remainder, "pow": torch.pow, "atan2": torch.atan2, "hypot": torch.hypot,
          "copysign": torch.copysign, "nextafter": torch.nextafter, "maximum": torch.maximum, "minimum": torch.minimum,
          "bit_and": torch.bitwise_and, "bit_or": torch.bitwise_or, "bit_xor": torch.bitwise_xor,
          "shift_left": torch.bitwise_left_shift, "shift_right": torch.bitwise_right_shift, "eq": torch.eq, "ne": torch.ne,
          "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}


class Tool:
    """The lower_tool program, asked over a pipe."""

    def __init__(self):
        folder = os.path.dirname(os.environ.get("FUSEBOX_BIN", os.path.join(os.path.dirname(__file__), "../../../build/release/bin/fusebox")))
        self.process = subprocess.Popen([os.path.join(folder, "lower_tool")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def lower(self, nodes, text=False):
        self.process.stdin.write(json.dumps({"nodes": nodes, "text": text}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"lower_tool died: {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


def meta(t):
    return {"sizes": list(t.shape), "strides": list(t.stride()), "offset": t.storage_offset(), "dtype": NUMBERS[t.dtype]}


def as_tensor(x):
    return x if isinstance(x, torch.Tensor) else torch.tensor(x)


class Section:
    def __init__(self, json_section, dims, buffers, results):
        self.s, self.buffers, self.results = json_section, buffers, results
        rank = len(dims)
        self.shape = [e for _, e in dims]
        self.env = {"lesser": lambda a, b: torch.minimum(as_tensor(a), as_tensor(b)),
                    "greater": lambda a, b: torch.maximum(as_tensor(a), as_tensor(b))}
        for i, (symbol, extent) in enumerate(dims):
            self.env[f"s{symbol}"] = torch.arange(extent).reshape([extent if j == i else 1 for j in range(rank)])
        self.values = []
        self.indirect = {v: s for s, v in json_section["indirect"]}

    def index(self, text):
        return as_tensor(eval(text, {}, self.env))

    def run(self):
        for i, v in enumerate(self.s["values"]):
            out = self.value(v)
            want = DTYPES[v["type"]]
            assert out.dtype == want, f"{v['op']} gives {out.dtype}, declared {want}"
            self.values.append(out)
            if i in self.indirect:
                self.env[f"s{self.indirect[i]}"] = out
        return self

    def value(self, v):
        op, dtype = v["op"], DTYPES[v["type"]]
        a = [self.values[i] for i in v["args"] if i >= 0] if op != "reduced" else []
        if op == "constant":
            number = struct.unpack("d", struct.pack("q", v["imm"]))[0] if dtype.is_floating_point else v["imm"]
            return torch.tensor(number, dtype=dtype)
        if op == "index":
            return self.index(v["index"])
        if op == "load":
            flat, at = self.buffers[v["buffer"]], self.index(v["index"])
            if v["mask"] < 0:
                return flat[at]
            mask = self.values[v["mask"]]
            if flat.numel() == 0:
                return torch.zeros(mask.shape, dtype=dtype)
            at, mask = torch.broadcast_tensors(at, mask)
            return torch.where(mask, flat[torch.where(mask, at, 0)], torch.zeros((), dtype=dtype))
        if op == "reduced":
            return self.results[v["args"][0]][v["imm"]]
        if op == "cast":
            return a[0].to(dtype)
        if op == "check":
            return a[0]
        if op == "where":
            assert a[1].dtype == a[2].dtype
            return torch.where(a[0], a[1], a[2])
        if op in UNARY:
            return UNARY[op](a[0])
        assert a[0].dtype == a[1].dtype, f"{op} of {a[0].dtype} and {a[1].dtype}"
        return BINARY[op](a[0], a[1])

    def full(self, v):
        return self.values[v].expand(self.shape)

    def statements(self, inner):
        for t in self.s["body"]:
            if t["kind"] == 0:
                at = self.index(t["index"]).expand(self.shape).reshape(-1)
                value = self.full(t["value"]).reshape(-1)
                flat = self.buffers[t["buffer"]]
                assert value.dtype == flat.dtype, f"store of {value.dtype} in {flat.dtype}"
                assert len(set(at.tolist())) == at.numel() or at.numel() > 5000, "points collide"
                flat[at] = value
            else:
                self.results[t["reduction"]] = self.reduce(t["reduce"], self.full(t["inputs"][0]), inner)

    @staticmethod
    def reduce(kind, x, inner):
        x = x.reshape(list(x.shape[:x.dim() - inner]) + [-1])
        keep = lambda y: [y.reshape(list(y.shape) + [1] * 0)]
        if kind == "sum":
            return keep(x.sum(-1, dtype=x.dtype))
        if kind == "prod":
            return keep(x.prod(-1, dtype=x.dtype))
        if kind == "welford":
            mean = x.mean(-1)
            return [mean, ((x - mean.unsqueeze(-1)) ** 2).sum(-1), torch.full_like(mean, x.shape[-1])]
        return keep({"max": lambda: x.amax(-1), "min": lambda: x.amin(-1), "any": lambda: x.any(-1), "all": lambda: x.all(-1),
                     "argmax": lambda: x.argmax(-1), "argmin": lambda: x.argmin(-1)}[kind]())


class Program:
    """A lowered graph that can be called."""

    def __init__(self, lowered, constants):
        self.g, self.constants = lowered, constants
        self.mismatches = []

    def reasons(self):
        return [o["call"]["op"] + ": " + o["call"]["reason"] for o in self.g["operations"] if "call" in o]

    def kernels(self):
        return sum("call" not in o for o in self.g["operations"])

    def __call__(self, *inputs):
        g, flats = self.g, {}
        for i, b in enumerate(g["buffers"]):
            reach = 1 + sum((s - 1) * t for s, t in zip(b["sizes"], b["strides"])) if 0 not in b["sizes"] else 0
            if b["kind"] in (0, 1):
                t = (inputs if b["kind"] == 0 else self.constants)[b["index"]]
                flats[i] = t.as_strided([reach], [1])
            elif b["kind"] == 2:
                flats[i] = torch.full([reach], 77, dtype=DTYPES[b["dtype"]])

        def tensor(i):
            b = g["buffers"][i]
            if b["kind"] == 3:
                return flats[b["base"]].as_strided(b["sizes"], b["strides"], b["offset"] + flats[b["base"]].storage_offset())
            return flats[i].as_strided(b["sizes"], b["strides"], flats[i].storage_offset())

        for op in g["operations"]:
            if "call" in op:
                self.extern(op["call"], tensor, flats)
                continue
            results = {}
            for s in op["sections"]:
                section = Section(s, op["outer"] + s["axes"], flats, results)
                section.run().statements(len(s["axes"]))
        return [None if r is None else tensor(r["v"]) for r in g["results"]]

    def extern(self, call, tensor, flats):
        namespace, name = call["op"].split("::")
        name, _, overload = name.partition(".")
        packet = getattr(getattr(torch.ops, namespace), name)
        op = getattr(packet, overload or "default")
        args, kwargs = [], {}
        for a, schema in zip(call["args"], op._schema.arguments):
            value = decode(a, tensor)
            if schema.kwarg_only:
                kwargs[schema.name] = value
            else:
                args.append(value)
        out = op(*args, **kwargs)
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        for i, t in zip(call["results"], outs):
            if i < 0:
                continue
            b = self.g["buffers"][i]
            assert list(t.shape) == b["sizes"] and NUMBERS[t.dtype] == b["dtype"], (call["op"], t.shape, b)
            if any(s != w and n > 1 for s, w, n in zip(t.stride(), b["strides"], b["sizes"])):
                self.mismatches.append(f"{call['op']}: strides {t.stride()}, lowered for {b['strides']}")
            tensor(i).copy_(t)


def decode(a, tensor):
    if a is None:
        return None
    key, v = next(iter(a.items()))
    if key == "v":
        return tensor(v)
    if key == "l":
        return [decode(e, tensor) for e in v]
    if key == "d":
        return float(v)
    if key == "dt":
        return DTYPES[v]
    if key == "dev":
        return torch.device("cpu")
    if key == "lay":
        return torch.strided
    if key == "mf":
        return FORMATS[v]
    return v


def encode(x, refs):
    if x is None:
        return None
    if isinstance(x, torch.fx.Node):
        return {"v": refs[x]} if not isinstance(refs[x], dict) else refs[x]
    if isinstance(x, bool):
        return {"b": x}
    if isinstance(x, int):
        return {"i": x}
    if isinstance(x, float):
        return {"d": repr(x).replace("inf", "inf")}
    if isinstance(x, str):
        return {"s": x}
    if isinstance(x, torch.dtype):
        return {"dt": NUMBERS[x]}
    if isinstance(x, torch.device):
        return {"dev": str(x)}
    if isinstance(x, torch.layout):
        return {"lay": 0}
    if isinstance(x, torch.memory_format):
        return {"mf": FORMATS.index(x)}
    if isinstance(x, (list, tuple)):
        return {"l": [encode(e, refs) for e in x]}
    raise TypeError(f"argument {x!r}")


def nodes_of(gm):
    """An FX graph of ATen operators as lower_tool's JSON, and its constants."""
    import operator

    nodes, refs, constants = [], {}, []
    for n in gm.graph.nodes:
        if n.op == "placeholder":
            refs[n] = [len(nodes), 0]
            nodes.append({"kind": "placeholder", "outputs": [meta(n.meta["val"])]})
        elif n.op == "get_attr":
            refs[n] = [len(nodes), 0]
            constants.append(getattr(gm, n.target))
            nodes.append({"kind": "constant", "index": len(constants) - 1, "outputs": [meta(constants[-1])]})
        elif n.op == "output":
            nodes.append({"kind": "output", "args": [encode(a, refs) for a in n.args[0]]})
        elif n.target is operator.getitem:
            source, i = n.args
            refs[n] = [refs[source][0], i]
        else:
            schema, args = n.target._schema, []
            for i, a in enumerate(schema.arguments):
                value = n.args[i] if i < len(n.args) else n.kwargs.get(a.name, a.default_value)
                args.append(encode(value, refs))
            value = n.meta["val"]
            outs = list(value) if isinstance(value, (list, tuple)) else [value]
            refs[n] = [len(nodes), 0]
            overload = "" if schema.overload_name in ("", "default") else "." + schema.overload_name
            nodes.append({"kind": "call", "op": schema.name + overload, "args": args, "outputs": [None if o is None else meta(o) for o in outs],
                          "list": isinstance(value, list)})
    return nodes, constants

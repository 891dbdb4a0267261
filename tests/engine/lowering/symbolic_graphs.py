"""Graphs whose sizes are expressions, made from captures at several sizes, compiled once and run at many, against eager.

`symbolic_graphs.py [--filter PART] [--time]`: with `--time`, symbolic code beside code for the very sizes.
"""

import argparse
import json
import os
import sqlite3
import sys
import tempfile
import time
from fractions import Fraction

import torch
import torch.nn as nn
import torch.nn.functional as F

import fusebox
from fusebox._engine_access import _engine


class Unlike(Exception):
    """Two captures are not the same graph with other sizes."""


def captured(fn, inputs, train):
    """Saved graphs of one call (and its backward), by direction."""
    with tempfile.TemporaryDirectory() as folder:
        session = os.path.join(folder, "one.fusebox")
        if not train:
            inputs = [i.detach() for i in inputs]
        compiled = fusebox.compile(fn, dynamic=False, fullgraph=True)
        with fusebox.record(session), torch.set_grad_enabled(train):
            out = compiled(*inputs)
            if train:
                out.float().sum().backward()
        rows = sqlite3.connect(session).execute(
            "SELECT g.direction, s.text FROM t_saved_graph s JOIN t_graph g ON g.id = s.graph_id ORDER BY g.id").fetchall()
    return {direction: json.loads(text) for direction, text in rows}  # the last ones: earlier entries of the code are told as well


def expression(values, sizes):
    """c*s*s + a*s + b, which is `values` at `sizes`, of which there are more than it takes; as the file has it."""
    (v0, v1, v2, *_), (s0, s1, s2, *_) = values, sizes
    slope0, slope1 = Fraction(v1 - v0, s1 - s0), Fraction(v2 - v1, s2 - s1)
    c = (slope1 - slope0) / (s2 - s0)
    a = slope0 - c * (s0 + s1)
    b = v0 - a * s0 - c * s0 * s0
    if any(x.denominator != 1 for x in (a, b, c)) or any(c * s * s + a * s + b != v for v, s in zip(values, sizes)):
        raise Unlike(f"{values} at {sizes} is no polynomial")
    return [[int(x)] + [0] * power for power, x in enumerate((b, a, c)) if x]


def joined(versions, sizes, key=None, is_size=False):
    """The versions of one graph as one, with an expression wherever they differ."""
    first = versions[0]
    if all(v == first and type(v) is type(first) for v in versions):
        return first
    if isinstance(first, dict):
        if any(v.keys() != first.keys() for v in versions):
            raise Unlike(f"other keys in {key}")
        return {k: joined([v[k] for v in versions], sizes, k, is_size or k in ("sizes", "strides", "offset")) for k in first}
    if isinstance(first, list):
        if any(len(v) != len(first) for v in versions):
            raise Unlike(f"other lengths in {key}")
        return [joined(list(items), sizes, key, is_size) for items in zip(*versions)]
    if isinstance(first, int) and not isinstance(first, bool):
        made = expression(versions, sizes)
        return made if is_size or key == "e" else {"e": made}
    raise Unlike(f"{key}: {versions}")


def symbolic(versions, sizes, hint):
    """The graph for all sizes, as the text of a saved graph."""
    for version in versions:
        for field in ("stacks", "name", "operators"):
            version[field] = versions[0][field]
        for node in version["nodes"]:
            node.pop("stack", None)
    made = joined(versions, sizes)
    made["symbols"] = [{"name": "s0", "lower": 2, "upper": 2**31, "hint": hint}]
    return json.dumps(made)


class Both:
    """A graph for all sizes, and the same for one size: made of the same captures."""

    def __init__(self, name, make, sizes, train, hint):
        self.name, self.make = name, make
        versions = []
        for size in sizes:
            torch.manual_seed(0)
            fn, inputs = make(size)
            versions.append(captured(fn, inputs, train))
        self.directions = [d for d in versions[0] if self.tells_size([v[d] for v in versions])]
        self.texts = {d: symbolic([json.loads(json.dumps(v[d])) for v in versions], sizes, hint) for d in self.directions}
        self.handles = {d: _engine.SavedGraph(self.texts[d]) for d in self.directions}
        self.regions = {d: _engine.CompiledGraph(self.handles[d], self.handles[d].constants(), d) for d in self.directions}

    @staticmethod
    def tells_size(versions):
        """Whether some input has the size: a graph by itself reads it there."""
        first, second = ([n["out"] for n in v["nodes"] if n["kind"] == "placeholder"] for v in versions[:2])
        return first != second

    def static(self, direction, size):
        """The same graph for one size, as text."""
        return json.dumps(at(json.loads(self.texts[direction]), size))

    def inputs(self, direction, size):
        made = []
        for node in json.loads(self.static(direction, size))["nodes"]:
            if node["kind"] != "placeholder":
                continue
            meta = node["out"][0]
            dtype = getattr(torch, meta["dtype"])
            extent = 1 + sum((n - 1) * s for n, s in zip(meta["sizes"], meta["strides"]))
            if dtype.is_floating_point:
                flat = torch.rand(max(extent, 0), dtype=torch.float64).mul(2).sub(0.9).to(dtype)
            elif dtype == torch.bool:
                flat = torch.rand(max(extent, 0)) > 0.5
            else:
                flat = torch.randint(0, 8, (max(extent, 0),), dtype=dtype)
            made.append(flat.as_strided(meta["sizes"], meta["strides"]) if meta["sizes"] else flat[0].clone())
        return made


def at(item, size, is_size=False):
    """A graph with expressions as the graph for `size`."""
    if isinstance(item, dict):
        if set(item) == {"e"}:
            return value(item["e"], size)
        made = {k: at(v, size, k in ("sizes", "strides")) if k != "offset" else value(v, size) for k, v in item.items() if k != "symbols"}
        return made | {"symbols": []} if "symbols" in item else made
    if isinstance(item, list):
        return [value(v, size) for v in item] if is_size else [at(v, size) for v in item]
    return item


def value(e, size):
    return e if isinstance(e, int) else sum(t[0] * size ** (len(t) - 1) for t in e)


def differences(name, got, want):
    for i, (g, w) in enumerate(zip(got, want)):
        if (g is None) != (w is None):
            yield f"{name}: result {i} is missing"
        if g is None or w is None:
            continue
        if g.shape != w.shape or g.dtype != w.dtype:
            yield f"{name}: result {i} is {g.dtype}{list(g.shape)} instead of {w.dtype}{list(w.shape)}"
            continue
        if not g.is_floating_point():
            if (g != w).double().sum() > 1e-3 * g.numel():  # which of nearly equal values is larger is nobody's to say
                yield f"{name}: result {i} differs in {int((g != w).sum())} elements"
            continue
        if g.numel() == 0:
            continue
        scale = max(1e-3, float(w.abs().nan_to_num().max()))
        worst = float((g.double() - w.double()).abs().nan_to_num().max()) / scale
        limit = {torch.float32: 2e-3, torch.float64: 1e-9}.get(g.dtype, 4e-2)
        if worst > limit or not torch.equal(g.isnan(), w.isnan()):
            yield f"{name}: result {i} is off by {worst:.2g}"


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.c2, self.b2 = nn.Conv2d(16, 32, 3, padding=1, stride=2), nn.BatchNorm2d(32)
        self.g, self.out = nn.GroupNorm(4, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.b1(self.c1(x)))
        x = F.max_pool2d(F.silu(self.g(self.b2(self.c2(x)))), 2)
        return self.out(x.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads, self.qkv, self.o, self.norm = heads, nn.Linear(width, 3 * width), nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.norm(x)).split(c, 2))
        w = (q @ k.transpose(-1, -2) / (c // self.heads) ** 0.5).softmax(-1)
        return x + self.o((w @ v).transpose(1, 2).reshape(b, t, c))


class Sdpa(Attention):
    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.norm(x)).split(c, 2))
        return x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c))


class Mlp(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.a, self.m, self.head = nn.Embedding(50, 64), Attention(), Mlp(), nn.Linear(64, 50)

    def forward(self, ids):
        x = self.head(self.m(self.a(self.e(ids))))
        return F.cross_entropy(x[:, :-1].reshape(-1, 50), ids[:, 1:].reshape(-1))


def ops(fn, *shape):
    """A function of tensors; `None` in a shape is the size that changes."""
    return lambda s: (fn, tuple(torch.randn([s if n is None else n for n in one]).requires_grad_() for one in shape))


def model(make, *shape):
    return lambda s: (make(), (torch.randn([s if n is None else n for n in shape]),))


def running(x):
    return torch.cat([x * 2, x[:, 1:3]], 1).cumsum(1) + x.flip(0).sum(1, keepdim=True)


PROGRAMS = {
    "pointwise": ops(lambda x, y: (x * y + 1).tanh() / 2, (None, 33), (None, 33)),
    "broadcast": ops(lambda x, y, z: torch.where(x > y, x * z, y - z), (None, 1, 17), (5, 17), (None, 5, 1)),
    "softmax": ops(lambda x: x.softmax(-1), (None, 100)),
    "softmax over the size": ops(lambda x: x.softmax(0) + x.log_softmax(0), (None, 20)),
    "softmax of a row": ops(lambda x: (x * 2).softmax(-1), (7, None)),
    "mean": ops(lambda x: (x * x).mean() + x.mean(0).sum() + x.mean(1).amax(), (None, 24)),
    "variance": ops(lambda x: x.var(0).sum() + x.std(1).sum() + x.var(), (None, 24)),
    "norms": ops(lambda x: x.norm() + x.norm(1, dim=0).sum() + F.normalize(x, dim=1).sum(), (None, 24)),
    "extremes": ops(lambda x: x.amax(1) * x.amin(1) + x.max(1)[0] + x.argmax(1), (None, 24)),
    "layer norm": ops(lambda x: F.layer_norm(x, (48,)) * 2, (None, 5, 48)),
    "layer norm of images": ops(lambda x: F.group_norm(x, 2) + F.instance_norm(x), (3, 4, None, 6)),
    "batch norm": ops(lambda x: F.batch_norm(x, None, None, training=True), (None, 6, 5)),
    "transposed": ops(lambda x, y: (x.transpose(0, 1) * y).sum(0) + x.t().contiguous().view(-1)[0], (None, 37), (37, None)),
    "flattened": ops(lambda x: x.view(-1) * 3 + x.reshape(-1), (None, 9, 4)),
    "split": ops(lambda x: torch.cat([a * i for i, a in enumerate(x.view(-1, 3, 8).unbind(1))], 1), (None, 24)),
    "shifted": ops(lambda x: x[1:] * x[:-1] + F.pad(x, (0, 0, 1, 0))[:-2], (None, 13)),
    "stacked": ops(lambda x, y: torch.stack([x, y], 1).sum(2) + torch.cat([x, y], 0)[:3].sum(), (None, 11), (None, 11)),
    "chosen": ops(lambda x: x[torch.arange(3)] + x.index_select(0, torch.tensor([1, 0, 1])) + x.gather(0, torch.zeros(3, 11, dtype=torch.long)), (None, 11)),
    "triangle": ops(lambda x: x.tril().masked_fill(x > 1, 0).sum(-1), (40, None, 90)),  # larger than what backward copies, at any size
    "running": ops(running, (None, 12)),
    "losses": ops(lambda x, y: F.mse_loss(x, y) + F.smooth_l1_loss(x, y) + F.binary_cross_entropy_with_logits(x, y.sigmoid()) + F.l1_loss(x, y), (None, 7), (None, 7)),
    "two widths": ops(lambda x: (x.half() * 2).float() + x.double().sum(1, keepdim=True), (None, 21)),
    "products": ops(lambda x, y: F.gelu(x @ y) @ y.t() + x.sum(0), (None, 16), (16, 24)),
    "outer product": ops(lambda x: (x[:, None] - x[None, :]).abs().sum(1), (None,)),
    "MLP": model(Mlp, None, 6, 64),
    "attention of batches": model(Attention, None, 9, 64),
    "attention of lengths": model(Attention, 3, None, 64),
    "sdpa": model(Sdpa, 2, None, 64),
    "conv net": model(Conv, None, 3, 16, 16),
    "tokens": lambda s: (Tokens(), (torch.randint(0, 50, (s, 12)),)),
    "lengths of tokens": lambda s: (Tokens(), (torch.randint(0, 50, (2, s)),)),
}
INFERENCE = {"variance", "conv net"}  # where captures with gradients have constants of the size
LEAST = {"chosen": 3}
CAPTURED = (12, 16, 22, 30)  # sizes that are captured; the hint is the second
RUN = (2, 3, 5, 8, 12, 16, 17, 31, 64, 97)


def check(name, make):
    both = Both(name, make, CAPTURED, name not in INFERENCE, CAPTURED[1])
    faults = []
    for direction in both.directions:
        for size in RUN:
            if size < LEAST.get(name, 2):
                continue
            inputs = both.inputs(direction, size)
            want = _engine.SavedGraph(both.static(direction, size)).run_eager([i.clone() for i in inputs], both.handles[direction].constants())
            got = both.regions[direction].run(inputs)
            faults += differences(f"{name}, {direction}, size {size}", got, want)
    externs = {d: sum(g["kind"] == "extern" for g in both.regions[d].facts()["groups"]) for d in both.directions}
    static = {}
    for d in both.directions:
        handle = _engine.SavedGraph(both.static(d, CAPTURED[1]))
        static[d] = _engine.CompiledGraph(handle, both.handles[d].constants(), d).facts()
    parts = []
    for d in both.directions:
        groups, other = both.regions[d].facts()["groups"], static[d]["groups"]
        parts.append(f"{d} {len(groups) - externs[d]}+{externs[d]}" +
                     (f" (static {sum(g['kind'] != 'extern' for g in other)}+{sum(g['kind'] == 'extern' for g in other)})"
                      if [g["kind"] for g in groups] != [g["kind"] for g in other] else ""))
    return faults, "; ".join(parts)


def milliseconds(runs, seconds=0.4):
    """The quickest of runs that take turns: other work on the machine only adds."""
    times = [[] for _ in runs]
    for run in runs:
        for _ in range(5):
            run()
    end = time.perf_counter() + seconds * len(runs)
    while time.perf_counter() < end:
        for run, list_ in zip(runs, times):
            start = time.perf_counter()
            run()
            list_.append(time.perf_counter() - start)
    return [1e3 * min(t) for t in times]


TIMED = {
    "softmax": (ops(lambda x: x.softmax(-1), (None, 1000)), 1024),
    "softmax of rows": (ops(lambda x: x.softmax(-1), (1024, None)), 1000),
    "layer norm": (ops(lambda x: F.layer_norm(x, (768,)), (None, 128, 768)), 8),
    "GELU MLP": (model(lambda: Mlp(256), None, 64, 256), 8),
    "attention of batches": (model(lambda: Attention(256, 8), None, 128, 256), 4),
    "attention of lengths": (model(lambda: Attention(256, 8), 4, None, 256), 128),
    "conv net": (model(Conv, None, 3, 64, 64), 8),
    "pointwise": (ops(lambda x, y: (x * y + 1).tanh() / 2, (None, 1000), (None, 1000)), 1000),
    "mean": (ops(lambda x: (x * x).mean(), (None, 1000)), 1000),
    "column sums": (ops(lambda x: x.sum(0), (None, 1000)), 1000),
    "variance": (ops(lambda x: x.var(1), (None, 1000)), 1000),
}


def measure(name, make, hint):
    both = Both(name, make, (hint, hint + 4, hint + 10, hint + 18), True, hint)
    for d in both.directions:
        inputs = both.inputs(d, hint)
        handle = _engine.SavedGraph(both.static(d, hint))
        static = _engine.CompiledGraph(handle, both.handles[d].constants(), d)
        fusebox.drain() if hasattr(fusebox, "drain") else time.sleep(1)
        one, other = milliseconds([lambda: both.regions[d].run(inputs), lambda: static.run(inputs)])
        print(f"{name:24} {d:9} symbolic {one:8.4f} ms, static {other:8.4f} ms: {other / one:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--filter", default="")
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    if options.time:
        for name, (make, hint) in TIMED.items():
            if options.filter in name:
                measure(name, make, hint)
        return 0
    failed = 0
    for name, make in PROGRAMS.items():
        if options.filter not in name:
            continue
        try:
            faults, text = check(name, make)
        except (Unlike, RuntimeError) as error:
            faults, text = [f"{name}: {type(error).__name__}: {str(error)[:300]}"], ""
        failed += bool(faults)
        print(f"{'FAIL' if faults else 'ok  '} {name}: {text}", flush=True)
        for fault in faults[:4]:
            print("     " + fault)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""How exact a compiled graph is, node by node: eager and compiled against the same graph in float64.

    python -m fusebox.numerics --graph FILE.json [options]

Every value of the graph is compared where the compiled graph hands it out (it is compiled once more with its inner values as
results, which keeps the kernels' arithmetic). Where compiled is clearly worse than eager and its type explain, the node is
divergent; what made the first one so is then looked for among the fusions and the graph passes.
"""

import argparse
import math
import sys

import torch

from ._config import config
from ._engine_access import _engine
from ._graph_inputs import random_constants, random_inputs, saved_inputs
from ._saved_graph import Program, is_random, is_uninitialised
from .replay import arguments, program_for, recorded_rules, region_at, run_host

_CHUNK_BYTES = 512 << 20   # of inner values handed out by one compiled graph
_MAX_LOCAL = 48            # nodes that are compiled alone
_ROUNDINGS = 16            # of the type, relative to the largest value: what every implementation may be off by
_WIDE = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
         torch.complex64: torch.complex128}


def wide(dtype):
    return _WIDE.get(dtype, dtype)


def widened(value):
    return value.to(wide(value.dtype)) if isinstance(value, torch.Tensor) else value


def ulp_distance(a, b, magnitude):
    """Largest distance of two tensors of one floating-point type in units in the last place, over elements of at least a
    thousandth of `magnitude` (smaller ones are what is left of larger ones that cancelled). None for other types."""
    bits = {torch.float32: torch.int32, torch.float64: torch.int64, torch.float16: torch.int16, torch.bfloat16: torch.int16}.get(a.dtype)
    if bits is None:
        return None
    keep = a.isfinite() & b.isfinite() & (b.to(torch.float64).abs() >= magnitude / 1000)
    if not keep.any():
        return None

    def ordered(x):
        i = x[keep].contiguous().view(bits).to(torch.int64)
        return torch.where(i < 0, -(i & (2 ** (8 * x.element_size() - 1) - 1)), i)

    return float((ordered(a) - ordered(b)).abs().max())


def errors_of(value, eager, exact):
    """Errors of a compiled value and of the eager one: a row of `numerics` without its place."""
    row = {"dtype": str(eager.dtype).removeprefix("torch."), "elements": eager.numel(), "mismatches": 0, "note": "",
           "is_divergent": False}
    if not eager.numel():
        return row
    if not (eager.dtype.is_floating_point or eager.dtype.is_complex):
        row["mismatches"] = int((value != eager).sum()) if value is not None else 0
        row["is_divergent"] = row["mismatches"] > 0
        return row
    reference = exact.to(wide(eager.dtype))
    finite = reference.isfinite()
    magnitude = float(reference[finite].abs().max()) if finite.any() else 0.0
    row["magnitude"] = magnitude

    def against_exact(x):
        both = finite & x.isfinite()
        return float((x.to(reference.dtype) - reference)[both].abs().max()) if both.any() else 0.0

    row["eager_abs"] = against_exact(eager)
    row["eager_rel"] = row["eager_abs"] / magnitude if magnitude else 0.0
    if value is None:
        return row
    row["compiled_abs"] = against_exact(value)
    row["compiled_rel"] = row["compiled_abs"] / magnitude if magnitude else 0.0
    both = value.isfinite() & eager.isfinite()
    row["difference_abs"] = float((value.to(reference.dtype) - eager.to(reference.dtype))[both].abs().max()) if both.any() else 0.0
    row["difference_ulp"] = ulp_distance(value, eager, magnitude)
    row["mismatches"] = int((value.isfinite() != eager.isfinite()).sum())
    rounding = torch.finfo(eager.dtype).eps * magnitude
    row["is_divergent"] = row["mismatches"] > 0 or row["compiled_abs"] > 4 * row["eager_abs"] + _ROUNDINGS * rounding
    return row


def compile_text(text, direction="inference", sizes=None):
    """The compiler under test: text of a saved graph and its constants in, a function of the inputs out. `sizes`: values of its symbols."""
    handle = _engine.SavedGraph(text)

    def build(constants):
        region = _engine.CompiledGraph(handle, constants, direction, "numerics")
        return region_at(region, sizes or {}), region.facts()

    return build


class Walk:
    """Runs a graph in eager and in float64 side by side, node by node; values live as long as they are needed."""

    def __init__(self, program, inputs, constants):
        self.program = program
        self.values, self.exact = {}, {}
        self.tainted = {}   # nodes whose values nobody can compare, and why
        self.notes = {}
        self.inputs, self.constants = inputs, constants
        self.last = {}
        for i, node in enumerate(program.nodes):
            for source, _ in program.values_in(node["args"]):
                self.last[source] = i

    def steps(self):
        """Yields (index, node) when the node's outputs can be read from `values` and `exact`."""
        for i, node in enumerate(self.program.nodes):
            if node["kind"] == "output":
                return
            self._step(i, node)
            yield i, node
            sources = {s for s, _ in self.program.values_in(node["args"])} | {i}
            for s in sources:
                if self.last.get(s, -1) <= i:
                    for o in range(len(self.program.nodes[s]["out"])):
                        self.values.pop((s, o), None)
                        self.exact.pop((s, o), None)

    def _step(self, i, node):
        if node["kind"] != "call":
            source = self.inputs if node["kind"] == "placeholder" else self.constants
            self.values[i, 0] = source[node["index"]]
            self.exact[i, 0] = widened(source[node["index"]])
            return
        for s, _ in self.program.values_in(node["args"]):
            if s in self.tainted:
                self.tainted[i] = self.tainted[s]
        results = self.program.call(node, lambda n, o: self.values[n, o])
        operator = self.program.operator(node)
        if is_random(operator) or is_uninitialised(operator):
            self.tainted[i] = ("depends on random numbers, which compiled and eager draw differently" if is_random(operator)
                               else "depends on memory that is not initialised")
            exact = [widened(r) for r in results]
        else:
            try:
                exact = self.program.call(node, lambda n, o: self.exact[n, o], wide)
            except (RuntimeError, NotImplementedError) as error:
                self.notes[i] = "no float64 result: " + str(error).splitlines()[0][:120]
                exact = [widened(r) for r in results]
        for o, (value, reference) in enumerate(zip(results, exact)):
            self.values[i, o], self.exact[i, o] = value, reference


class Numerics:
    """The comparison of one graph. `compiler`: what compile_text() is; another one may be given to examine it."""

    def __init__(self, program, inputs, constants, direction="inference", compiler=None):
        self.program, self.inputs, self.constants, self.direction = program, inputs, constants, direction
        self.compiler = compiler or (lambda text: compile_text(text, direction, program.sizes))

    def chunks(self):
        """Values to be handed out, a bounded number of bytes at a time."""
        chunk, size = [], 0
        for i, node in enumerate(self.program.nodes):
            if node["kind"] != "call":
                continue
            for o in range(len(node["out"])):
                meta = self.program.meta(i, o)
                if meta is None:
                    continue
                size += torch.Size(meta[0]).numel() * 8
                chunk.append((i, o))
            if size > _CHUNK_BYTES:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    def compiled_values(self, values):
        run, facts = self.compiler(self.program.with_outputs(values))(self.constants)
        results = run(self.inputs)
        return dict(zip(values, results[len(results) - len(values):])), facts

    def rows(self):
        """A row for every tensor that a call makes, in order."""
        rows = []
        for chunk in self.chunks():
            compiled, _ = self.compiled_values(chunk)
            walk = Walk(self.program, self.inputs, self.constants)
            wanted = {i for i, _ in chunk}
            last = max(wanted)
            for i, node in walk.steps():
                if i in wanted:
                    rows.extend(self._row(walk, i, node, o, compiled.get((i, o))) for o in range(len(node["out"])) if (i, o) in compiled)
                if i == last:
                    break
        return rows

    @staticmethod
    def _row(walk, i, node, o, value):
        eager = walk.values.get((i, o))
        place = {"node": i, "name": node["name"], "op": node["op"], "output": o}
        if eager is None:
            return {**place, "dtype": "", "elements": 0, "mismatches": 0, "is_divergent": False, "note": "no value"}
        row = {**place, **errors_of(None if i in walk.tainted else value, eager, walk.exact[i, o])}
        if i in walk.tainted:
            row["note"] = walk.tainted[i]
        elif i in walk.notes:
            row.update(note=walk.notes[i], is_divergent=row["mismatches"] > 0)
        return row

    def local_errors(self, rows):
        """Compiles the divergent and the least exact nodes alone, from eager's inputs: what the node itself adds."""
        ranked = sorted((r for r in rows if "compiled_abs" in r), key=lambda r: (not r["is_divergent"], -r["compiled_rel"]))
        wanted = {}
        for row in ranked[:_MAX_LOCAL]:
            wanted.setdefault(row["node"], []).append(row)
        walk = Walk(self.program, self.inputs, self.constants)
        before = {}
        for i, node in enumerate(self.program.nodes):
            if i in wanted:
                before[i] = list(dict.fromkeys(self.program.values_in(node["args"])))
        needed = {v for values in before.values() for v in values}
        kept = {}
        for i, node in walk.steps():
            if i in wanted:
                self._local(i, [kept[v] for v in before[i]], wanted[i], walk)
                for v in before[i]:
                    if all(v not in before[k] for k in before if k > i):
                        kept.pop(v, None)
            for o in range(len(node["out"])):
                if (i, o) in needed:
                    kept[i, o] = walk.values[i, o]

    def _local(self, i, inputs, rows, walk):
        text, values = self.program.alone(i)
        node = self.program.nodes[i]
        made = {v: t for v, t in zip(values, inputs)}
        try:
            results = self.compiler(text)([])[0](inputs)
            exact = self.program.call(node, lambda n, o: widened(made[n, o]), wide)
        except (RuntimeError, NotImplementedError, ValueError) as error:
            for row in rows:
                row["note"] = row["note"] or "not compiled alone: " + str(error).splitlines()[0][:120]
            return
        outputs = [o for o, meta in enumerate(node["out"]) if meta is not None]
        for row in rows:
            if row["output"] in outputs:
                value = results[outputs.index(row["output"])]
                row["local_abs"] = errors_of(value, walk.values[i, row["output"]], exact[row["output"]]).get("compiled_abs")

    # --- whose fault it is ---

    def diverges(self, row, **settings):
        """Whether the value of `row` is still divergent when the graph is compiled with `settings`."""
        with config.patch(**settings):
            compiled, facts = self.compiled_values([(row["node"], row["output"])])
        walk = Walk(self.program, self.inputs, self.constants)
        for i, node in walk.steps():
            if i == row["node"]:
                found = self._row(walk, i, node, row["output"], compiled[i, row["output"]])
                return found["is_divergent"], facts
        raise AssertionError("a row names no node of its graph")

    def bisect(self, row):
        """What makes `row` divergent: {"cause": fusion, pass, code or none, "detail", "tried"}."""
        tried = []

        def test(what, **settings):
            bad, facts = self.diverges(row, **settings)
            tried.append({"what": what, "divergent": bad})
            return bad, facts

        bad, facts = test("as compiled")
        if not bad:
            return {"cause": "none", "detail": "with only this value handed out, the graph is as exact as eager: what stores the inner "
                    "values changes it", "tried": tried}
        if not test("without fusion", fuse=False)[0]:
            pairs = [f"{d['a']},{d['b']}" for d in facts["decisions"] if d["fused"]]
            guilty = smallest(pairs, lambda some: not test(f"forbidding {len(some)} fusions", forbid_fusion=some)[0])
            return {"cause": "fusion", "detail": " and ".join(guilty), "forbid": guilty, "tried": tried}
        for name in _engine.graph_pass_names():
            try:
                if not test(f"without pass {name}", skip_passes=[name])[0]:
                    return {"cause": "pass", "detail": name, "tried": tried}
            except RuntimeError as error:
                tried.append({"what": f"without pass {name}", "error": str(error).splitlines()[0]})
        return {"cause": "code", "detail": f"neither fusion nor a graph pass: the code of {row['op']} ({row['name']}) itself, or of a "
                "node before it", "tried": tried}


def smallest(items, works):
    """A small part of `items` for which `works` holds (it holds for all of them): delta debugging."""
    parts = 2
    while len(items) > 1:
        size = math.ceil(len(items) / parts)
        pieces = [items[k:k + size] for k in range(0, len(items), size)]
        for k, piece in enumerate(pieces):
            rest = [x for m, other in enumerate(pieces) if m != k for x in other]
            if works(piece):
                items, parts = piece, 2
                break
            if rest and len(pieces) > 2 and works(rest):
                items, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1:
                return items
            parts = min(len(items), parts * 2)
    return items


def examine(program, inputs, constants, direction="inference", compiler=None, bisect=True):
    """Everything: {"rows", "first_divergence", "bisect"}."""
    work = Numerics(program, inputs, constants, direction, compiler)
    rows = work.rows()
    work.local_errors(rows)
    first = next((r for r in rows if r["is_divergent"]), None)
    report = {"rows": rows, "first_divergence": first and {k: first[k] for k in ("node", "name", "op", "output")},
              "divergent": sum(r["is_divergent"] for r in rows)}
    if first and bisect:
        report["bisect"] = work.bisect(first)
    return report


def _work(options):
    with open(options.graph, encoding="utf-8") as file:
        text = file.read()
    program = program_for(text, options)
    handle = _engine.SavedGraph(program.text)
    handle.record(program.name, "numerics", "backward" if options.direction == "backward" else "forward", options.direction)
    constants, made = random_constants(program, handle.constants(), options.seed)
    inputs = saved_inputs(program, options.inputs) if options.inputs else random_inputs(program, options.seed)
    with torch.no_grad():
        report = examine(program, inputs, constants, options.direction, bisect=not options.no_bisect)
    for row in report["rows"]:
        handle.record_numerics(row["node"], {k: v for k, v in row.items() if k not in ("node", "name", "op")})
    handle.finish("")
    return {"graph": program.name, "nodes": len(program.nodes), "graph_id": handle.graph_id, "constants_made": made,
            "inputs": options.inputs or f"random, seed {options.seed}", **report}


def main(argv=None):
    parser = argparse.ArgumentParser(prog="fusebox.numerics", description=__doc__.splitlines()[0])
    arguments(parser)
    parser.add_argument("--no-bisect", action="store_true")
    options = parser.parse_args(argv)
    if options.program:
        print("fusebox: numerics are of one graph: replay the program with --session first, then name the graph", file=sys.stderr)
        return 2
    asked = {"forbid_fusion": options.forbid, "force_fusion": options.force, "skip_passes": options.skip_pass}
    if not (options.changed or any(asked.values())):
        asked = recorded_rules(options)
    with config.patch(**{k: v for k, v in asked.items() if v}):
        return run_host(_work, options, "fusebox")


if __name__ == "__main__":
    sys.exit(main())

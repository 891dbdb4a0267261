"""Compiles and runs a graph without the program that it came from.

    python -m fusebox.replay --graph FILE.json | --program FILE.pt2|FILE.pt [options]

FILE.json is a saved graph (engine/graph/serialize.h), as `fusebox replay` takes it out of a session. With --forbid, --force or
--skip-pass the graph is compiled twice, as it was and as asked, and the two take turns, so that their times compare.
--size gives the sizes that are symbols in the graph, and the floats that are its inputs, values: one (s0=37, f0=0.5), several (s0=8,37) or a
range (s0=1:512:x2, s0=8:64:8), for each of which the graph is timed; without it they have the values of the capture. --fixed compiles it for each size anew, with numbers.
Loading a .pt2 or .pt file runs code that the file brings: only for files that you trust.
"""

import argparse
import json
import math
import statistics
import sys
import time

import torch

from . import _recording, _size_relations
from ._config import config
from ._engine_access import _engine
from ._graph_inputs import random_constants, random_inputs, saved_inputs
from ._program_file import load_exported
from ._saved_graph import Program, is_random

# Relative to the largest value: what two correct results of these types may differ by.
_TOLERANCE = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float32: 1e-4, torch.float64: 1e-8}


class Failure(Exception):
    """Something that the caller must mend; its text says what, where and what next."""


class Misuse(Failure):
    """An option with a value that it cannot have; its text says which it can."""


class Variant:
    """One way of running the graph: how it was made, how to run it, how long it took."""

    def __init__(self, label, engine, run, compile_ms, facts=None, settings=None):
        self.label, self.engine, self.run, self.compile_ms, self.facts = label, engine, run, compile_ms, facts
        self.settings = settings or {}
        self.times = []

    def measure(self):
        _synchronise()
        start = time.perf_counter_ns()
        self.run()
        _synchronise()
        self.times.append(time.perf_counter_ns() - start)

    def report(self):
        ms = sorted(t / 1e6 for t in self.times)
        out = {"label": self.label, "engine": self.engine, "compile_ms": round(self.compile_ms, 3), **self.settings}
        if ms:
            out["times_ms"] = {"count": len(ms), "min": ms[0], "median": statistics.median(ms), "mean": statistics.fmean(ms),
                               "max": ms[-1]}
        if self.facts:
            groups = self.facts["groups"]
            out.update(kernels=self.facts["kernels"], launches=sum(g["kind"] == "generated" for g in groups),
                       extern_calls=sum(g["kind"] == "extern" for g in groups), bytes=self.facts["bytes"],
                       decisions=[d for d in self.facts["decisions"] if d["by_rule"]],
                       groups=[{"name": g["name"], "operations": g["operations"], "bytes": g["bytes"]} for g in groups])
        return out


def _synchronise():
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _timed(make):
    start = time.perf_counter_ns()
    made = make()
    return made, (time.perf_counter_ns() - start) / 1e6


# --- a saved graph ---

def region_at(region, sizes):
    """A compiled graph as a function of inputs for which its size symbols have the values `sizes`."""
    return lambda inputs: region.run(inputs, sizes)


def eager_at(handle, inputs, constants, sizes):
    return handle.run_eager(inputs, constants, sizes)


def graph_variants(program, inputs, constants, options):
    """The ways of running a saved graph that were asked for, compiled."""
    asked = {"forbid_fusion": options.forbid, "force_fusion": options.force, "skip_passes": options.skip_pass}
    isChanged = options.changed or any(asked.values())
    if isChanged and options.engine != "fusebox":
        raise Failure("--forbid, --force, --allow and --skip-pass are about Fusebox's own compiler: leave --engine out")
    original = _graph_variant("original", program, inputs, constants, options)
    if not isChanged:
        return [original]
    changed = _graph_variant("what-if", program, inputs, constants, options, asked)
    unknown = changed.facts["unknown_names"]
    if unknown:
        names = sorted({name for d in original.facts["groups"] for name in d["operations"]})
        raise Failure(f"no operation or node of this graph is called {', '.join(unknown)}; its operations are "
                      f"{', '.join(names[:30])}{', …' if len(names) > 30 else ''}")
    return [original, changed]


def recorded_rules(options):
    """Settings: the fusions that were forbidden and forced when the graph was recorded."""
    return {"forbid_fusion": options.base_forbid, "force_fusion": options.base_force}


def _graph_variant(label, program, inputs, constants, options, settings=None):
    handle = _engine.SavedGraph(program.text)
    stage = "backward" if options.direction == "backward" else "forward"
    handle.record(f"{program.name} ({label})" if label != "original" else program.name, options.engine, stage, options.direction)
    error = ""
    try:
        if options.engine == "fusebox":
            with config.patch(**(settings or recorded_rules(options))):
                region, ms = _timed(lambda: _engine.CompiledGraph(handle, constants, options.direction, program.name))
            asked = {k: v for k, v in settings.items() if v} if settings else None
            variant = Variant(label, "fusebox", lambda: region_at(region, program.sizes)(inputs), ms, region.facts(), asked)
            variant.region = region
            return variant
        if options.engine == "eager":
            return Variant(label, "eager", lambda: eager_at(handle, inputs, constants, program.sizes), 0.0)
        module = program.module(constants)
        compiled = torch.compile(module)
        tensors = [t for t in inputs]

        def run():
            start = time.monotonic_ns()
            with torch.no_grad():
                results = list(compiled(*tensors))
            _engine.record_call(handle.compile_id, start, time.monotonic_ns() - start)
            return results

        _, ms = _timed(run)
        return Variant(label, "stock", run, ms)
    except RuntimeError as problem:
        error = str(problem)
        raise Failure(f"the graph could not be compiled: {error}") from None
    finally:
        handle.finish(error)


def compare_results(results, reference):
    """Largest difference of `results` from `reference`, relative to each tensor's largest value, and whether all lie in the tolerance."""
    worst, agrees = 0.0, True
    for a, b in zip(results, reference):
        if b is None or a is None:
            agrees &= a is None and b is None
            continue
        if not (b.dtype.is_floating_point or b.dtype.is_complex):
            agrees &= bool(torch.equal(a, b))
            continue
        wide = torch.complex128 if b.dtype.is_complex else torch.float64
        x, y = a.to(wide), b.to(wide)
        finite = x.isfinite() & y.isfinite()
        agrees &= bool(((x == y) | finite | (x.isnan() & y.isnan())).all())
        if not finite.any():
            continue
        scale = max(float(y[finite].abs().max()), 1e-30)
        difference = float((x - y)[finite].abs().max()) / scale
        worst = max(worst, difference)
        agrees &= difference <= _TOLERANCE.get(b.dtype, 1e-4)
    return {"max_relative": worst, "agrees": agrees}


def check_passes(options):
    known = _engine.graph_pass_names()
    unknown = [name for name in options.skip_pass if name not in known]
    if unknown:
        raise Misuse(f"--skip-pass {unknown[0]}: there is no such graph pass; they are {', '.join(known)}")


def program_for(text, options):
    """The Program of a saved graph with the sizes that were asked for, one each."""
    check_passes(options)
    if options.shape:
        raise Misuse("--shape is for programs that do not say their own shapes: a graph of a session does")
    program = Program(text, known_sizes(text, dict(options.hint)), dict(options.hint))
    points = sweep(program, options.size)
    if len(points) > 1:
        raise Misuse("--size: several values of a size are for `fusebox replay`")
    return sized(program, points[0], _size_relations.read(options.relations))


def known_sizes(text, hints):
    """Of `hints`, those that are sizes of the graph within its bounds."""
    symbols = {s["name"]: s for s in json.loads(text)["symbols"]}
    return {name: value for name, value in hints.items()
            if name in symbols and "hint" not in symbols[name] and symbols[name]["lower"] <= value <= symbols[name]["upper"]}


def sized(program, sizes, relations):
    """The program at `sizes`, which hold `relations` as those at capture do."""
    if not sizes:
        return program
    numbers = {name: sizes[name] for name in sizes if name in program.floats}
    try:
        made = Program(program.text, {**program.sizes, **{k: v for k, v in sizes.items() if k not in numbers}}, {**program.numbers, **numbers})
    except ValueError as problem:
        raise Misuse(f"--size {problem}") from None
    broken = _size_relations.broken(relations, made.sizes | made.numbers)
    if broken:
        asked = ", ".join(f"{name}={value}" for name, value in sizes.items())
        raise Misuse(f"--size {asked}: this graph holds for {broken['relation']}{broken['place'] and ', asked for at ' + broken['place']}; "
                     "for other sizes the program runs another one")
    return made


def replay_graph(options):
    with open(options.graph, encoding="utf-8") as file:
        text = file.read()
    _engine.SavedGraph(text)  # bounded and verified there; what follows may rely on it
    check_passes(options)
    points = sweep(Program(text), options.size)
    if len(points) > 1:
        return replay_sizes(text, points, options)
    program = program_for(text, options)
    if options.fixed:
        program = Program(program.fixed(), numbers=program.numbers)
    handle = _engine.SavedGraph(program.text)
    random = any(n["kind"] == "call" and is_random(program.operator(n)) for n in program.nodes)
    constants, made = random_constants(program, handle.constants(), options.seed)
    if made:
        _engine.record_loss("constants", made, "captured constants whose data the session does not hold: random values stand in")
    inputs = saved_inputs(program, options.inputs) if options.inputs else random_inputs(program, options.seed)
    variants = graph_variants(program, inputs, constants, options)
    reference = eager_at(handle, inputs, constants, program.sizes)
    report = {"graph": program.name, "nodes": len(program.nodes), "direction": options.direction,
              "inputs": options.inputs or f"random, seed {options.seed}", "constants_made": made, "sizes": program.sizes | program.numbers}
    for variant in variants:
        result = variant.run()
        if not random:
            report.setdefault("against_eager", {})[variant.label] = compare_results(result, reference)
    return report, variants


def replay_sizes(text, points, options):
    """The graph at every one of `points`: compiled once with symbols, or with --fixed (and for other engines) for each anew."""
    if options.inputs:
        raise Misuse("--inputs has the sizes of its tensors: leave it out, or give --size one value")
    if options.shape:
        raise Misuse("--shape is for programs that do not say their own shapes: a graph of a session does")
    if options.changed or options.forbid or options.force or options.skip_pass:
        raise Misuse("--forbid, --force and --skip-pass are compared at one size: give --size one value")
    base = Program(text, known_sizes(text, dict(options.hint)), dict(options.hint))
    fixed = options.fixed or options.engine != "fusebox"
    report = {"graph": base.name, "nodes": len(base.nodes), "direction": options.direction, "inputs": f"random, seed {options.seed}",
              "sizes": base.sizes | base.numbers, "fixed": fixed, "sweep": []}
    relations = _size_relations.read(options.relations)
    variants, shared = [], {}
    for sizes in points:
        try:
            program = sized(base, sizes, relations)
        except Misuse as problem:
            report["sweep"].append({"sizes": sizes, "left_out": str(problem).removeprefix("--size ")})
            continue
        label = ", ".join(f"{name}={value}" for name, value in sizes.items())
        try:
            variant, exact = _sized_variant(Program(program.fixed(), numbers=program.numbers) if fixed else program, label, shared, options)
        except Failure as problem:
            report["sweep"].append({"sizes": sizes, "left_out": str(problem)})
            continue
        variants.append(variant)
        report["sweep"].append({"sizes": sizes, "label": label, "against_eager": exact})
    if not variants:
        raise Failure("none of these sizes could be run: " + "; ".join(sorted({p["left_out"] for p in report["sweep"]})[:3]))
    return report, variants


def _sized_variant(program, label, shared, options):
    """A Variant that runs the graph at the program's sizes, and how far its results are from eager's. `shared` keeps what all sizes have."""
    handle = _engine.SavedGraph(program.text)
    random = any(n["kind"] == "call" and is_random(program.operator(n)) for n in program.nodes)
    constants, _ = random_constants(program, handle.constants(), options.seed)
    inputs = random_inputs(program, options.seed)
    if program.sizes:  # compiled with symbols: once
        if "region" not in shared:
            shared["region"] = _graph_variant("all sizes", program, inputs, constants, options)
        first = shared["region"]
        run = region_at(first.region, program.sizes)
        variant = Variant(label, first.engine, lambda: run(inputs), 0.0 if shared.get("used") else first.compile_ms)
        shared["used"] = True
    else:
        variant = _graph_variant(label, program, inputs, constants, options)
        variant.facts = None
    variant.settings = {"sizes": label}
    try:
        result = variant.run()
    except RuntimeError as problem:
        raise Failure(f"{label}: {str(problem).splitlines()[0]}") from None
    return variant, None if random else compare_results(result, eager_at(handle, inputs, constants, program.sizes))


# --- an exported or scripted program ---

def _example_inputs(options, specs):
    if options.inputs:
        try:
            saved = torch.load(options.inputs, weights_only=True, map_location="cpu")
        except Exception as error:
            raise Failure(f"{options.inputs}: cannot be read as tensors ({str(error).splitlines()[0]})") from None
        return (tuple(saved) if isinstance(saved, (list, tuple)) else (saved,)), {}
    generator = torch.Generator().manual_seed(options.seed)
    tensors = []
    for text in specs:
        try:
            dtype, _, sizes = text.rpartition("[")
            kind = getattr(torch, dtype.strip() or "float32")
            shape = [int(n) for n in sizes.rstrip("]").split(",") if n.strip()]
        except (AttributeError, ValueError):
            raise Failure(f"--shape {text}: write it as float32[2,3]") from None
        made = torch.randn(shape, generator=generator) if kind.is_floating_point else torch.randint(0, 8, shape, generator=generator)
        tensors.append(made.to(kind))
    return tuple(tensors), {}


def load_program(path, options):
    """(callable, args, kwargs) of an exported or TorchScript program."""
    if path.endswith(".pt2"):
        try:
            exported = load_exported(path)
        except (OSError, ValueError) as error:
            raise Failure(f"{path}: {getattr(error, 'strerror', None) or error}") from None
        args, kwargs = _example_inputs(options, options.shape)
        if not args:
            if exported.example_inputs is None:
                raise Failure(f"{path}: holds no sample inputs; give --inputs FILE.pt, or --shape float32[2,3] once for every input")
            args, kwargs = exported.example_inputs
        return exported.module(), args, kwargs
    try:
        script = torch.jit.load(path, map_location="cpu")
    except Exception as error:
        raise Failure(f"{path}: PyTorch cannot load this TorchScript program: {str(error).splitlines()[0]}") from None
    args, kwargs = _example_inputs(options, options.shape)
    if not args:
        raise Failure(f"{path}: TorchScript does not say what shapes its inputs have; give --inputs FILE.pt, or --shape float32[2,3] "
                      "once for every input")
    try:
        from torch._export.converter import TS2EPConverter
        return TS2EPConverter(script.eval(), args).convert().module(), args, kwargs
    except Exception as error:
        raise Failure(f"{path}: this TorchScript program cannot be turned into a graph for these inputs: "
                      f"{str(error).splitlines()[0] if str(error) else type(error).__name__}") from None


def replay_program(options):
    from . import _compile
    check_passes(options)
    if options.size:
        raise Misuse("--size is for graphs of a session: the shapes of a program are those of its inputs (--inputs, --shape)")
    module, args, kwargs = load_program(options.program, options)
    with torch.no_grad():
        reference = _flat(module(*args, **kwargs))

    def variant(label, settings=None):
        if options.engine == "eager":
            compiled = module
        else:
            if options.engine == "fusebox":
                from ._engine_access import reset
                reset()
            compiled = _compile.compile(module) if options.engine == "fusebox" else torch.compile(module)

        def run():
            with torch.no_grad():
                return _flat(compiled(*args, **kwargs))

        _, ms = _timed(run)
        return Variant(label, options.engine, run, 0.0 if options.engine == "eager" else ms, None, settings)

    asked = {"forbid_fusion": options.forbid, "force_fusion": options.force, "skip_passes": options.skip_pass}
    asked = {k: v for k, v in asked.items() if v}
    if asked:
        raise Failure("--forbid, --force and --skip-pass name operations of one graph: replay this program once with --session OUT, "
                      "then that session with --graph ID")
    made = variant("original")
    report = {"graph": options.program, "direction": "inference", "inputs": options.inputs or "sample",
              "against_eager": {"original": compare_results(made.run(), reference)}}
    return report, [made]


def _flat(results):
    return [t for t in torch.utils._pytree.tree_leaves(results) if isinstance(t, torch.Tensor)]


# --- both ---

def measure(variants, options):
    for variant in variants:
        for _ in range(options.warmup):
            variant.run()
    _engine.drain()  # the optimised tier of code generation
    for turn in range(options.repeat):
        for variant in variants if turn % 2 == 0 else reversed(variants):
            variant.measure()


def change_of(variants):
    """What the second variant changed. Its time is that of runs side by side: the median of their ratios, and between which
    values it lies with what confidence: 95 %, of less than six runs what their extremes give (order statistics: no distribution is assumed)."""
    ratios = sorted(100 * (b / a - 1) for a, b in zip(variants[0].times, variants[1].times))
    n = len(ratios)
    end = max(0, int((n - 1.96 * n ** 0.5) / 2))
    a, b = variants[0].report(), variants[1].report()
    return {"time_percent": statistics.median(ratios), "time_percent_from": ratios[end], "time_percent_to": ratios[n - 1 - end],
            "time_percent_confidence": min(0.95, 1 - 2 ** (1 - n)),
            "bytes": b["bytes"] - a["bytes"], "launches": b["launches"] - a["launches"]}


def _pair(text):
    name, _, value = text.partition("=")
    try:
        return name, int(value) if value.isdecimal() else float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: write it as s0=32") from None


_MOST_POINTS, _LARGEST = 256, 2 ** 62


def _size(text, whole):
    if not text.isascii() or not text.isdecimal() or int(text) > _LARGEST:
        raise Misuse(f"--size {whole}: '{text}' is no size; write s0=37, s0=8,37, s0=8:64:8 (steps of 8) or s0=1:512:x2 (doubling)")
    return int(text)


def _float(text, whole):
    try:
        return float(text)
    except ValueError:
        raise Misuse(f"--size {whole}: '{text}' is no number; write f0=0.5, f0=0.1,1e-3, f0=0.1:0.5:0.1 (steps of 0.1) or f0=1:512:x2 (doubling)") from None


def size_values(text, floats=()):
    """(name, values) of "s0=37", "s0=8,37", "s0=8:64:8" or "s0=1:512:x2"; of "f0=0.5" where the name is one of `floats`."""
    name, equals, values = text.partition("=")
    if not name or not equals:
        raise Misuse(f"--size {text}: write s0=37, s0=8,37, s0=8:64:8 (steps of 8) or s0=1:512:x2 (doubling)")
    found, _number = [], _float if name in floats else _size
    for part in values.split(","):
        ends = part.split(":")
        if len(ends) == 1:
            found.append(_number(part, text))
            continue
        if len(ends) != 3:
            raise Misuse(f"--size {text}: a range has a first value, a last one and a step: s0=8:64:8 or s0=1:512:x2")
        value, last = _number(ends[0], text), _number(ends[1], text)
        factor = ends[2].startswith("x")
        step = _number(ends[2][factor:], text)
        if name in floats:
            if not (math.isfinite(last) and (step > 1 and value > 0 if factor else step > 0)):
                raise Misuse(f"--size {text}: this range never ends; its step is {'more than x1, and it starts above 0' if factor else 'above 0'}")
        elif step < (2 if factor else 1) or (factor and value < 1):
            raise Misuse(f"--size {text}: this range never ends; its step is at least {'x2, and it starts at 1 or more' if factor else '1'}")
        while value <= last and len(found) <= _MOST_POINTS:
            found.append(value)
            value = value * step if factor else value + step
            if name in floats:
                value = float(f"{value:.12g}")  # ten steps of 0.1 are 1
    if not found:
        raise Misuse(f"--size {text}: this range is empty; its last value is smaller than its first")
    return name, list(dict.fromkeys(found))


def sweep(program, texts):
    """Every combination of the sizes asked for, as dicts by name; one empty one where none was."""
    known = [s["name"] for s in program.data["symbols"]]
    points = [{}]
    for text in texts:
        name, equals, _ = text.partition("=")
        if name and equals and name not in known and name not in program.floats:
            there = f"the sizes of this graph are {', '.join(known)}" if known else \
                "all sizes of this graph are fixed; compile the program with dynamic=True, or mark a size"
            raise Misuse(f"--size {text}: {there}" + (f"; its floats are {', '.join(program.floats)}" if program.floats else ""))
        name, values = size_values(text, program.floats)
        if any(name in p for p in points):
            raise Misuse(f"--size {text}: {name} is named twice; give all its values at once, as {name}=8,37")
        points = [{**p, name: value} for p in points for value in values]
        if len(points) > _MOST_POINTS:
            raise Misuse(f"--size {text}: that is more than {_MOST_POINTS} sizes to time; take larger steps")
    return points


def arguments(parser):
    """Options that replay and numerics share."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--graph", help="a saved graph")
    what.add_argument("--program", help="a .pt2 or TorchScript file")
    parser.add_argument("--direction", choices=["inference", "forward", "backward"], default="inference")
    parser.add_argument("--inputs", help="file of torch.save with the inputs: a list in order, or a dict by name")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", action="append", default=[], help="value of a size symbol or a float: s0=32, f0=0.5; several: s0=8,37, s0=8:64:8, s0=1:512:x2")
    parser.add_argument("--hint", type=_pair, action="append", default=[], help="value of a size symbol where --size gives it none")
    parser.add_argument("--relations", help="JSON file of what the sizes must be to each other: [{\"relation\": \"s0 <= 64\", \"place\": \"model.py:5\"}]")
    parser.add_argument("--shape", action="append", default=[], help="an input of a program that does not say its own: float32[2,3]")
    parser.add_argument("--forbid", action="append", default=[], help="A,B: do not fuse these operations")
    parser.add_argument("--force", action="append", default=[], help="A,B: fuse these operations")
    parser.add_argument("--base-forbid", action="append", default=[], help="A,B: was forbidden when the graph was recorded")
    parser.add_argument("--base-force", action="append", default=[], help="A,B: was forced when the graph was recorded")
    parser.add_argument("--changed", action="store_true", help="--forbid, --force and --skip-pass are all that holds for what-if, if they are empty too")
    parser.add_argument("--skip-pass", action="append", default=[], help="leave a graph pass out")
    parser.add_argument("--session", help="session file to write")
    parser.add_argument("--out", help="file for the report (JSON)")


def parse(argv):
    parser = argparse.ArgumentParser(prog="fusebox.replay", description=__doc__.splitlines()[0])
    arguments(parser)
    parser.add_argument("--engine", choices=["fusebox", "eager", "stock"], default="fusebox")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--fixed", action="store_true", help="compile for these sizes alone, with numbers instead of symbols")
    return parser.parse_args(argv)


def _finite(report):
    """With null for numbers that JSON does not know."""
    if isinstance(report, dict):
        return {key: _finite(value) for key, value in report.items()}
    if isinstance(report, (list, tuple)):
        return [_finite(value) for value in report]
    return None if isinstance(report, float) and not math.isfinite(report) else report


def run_host(work, options, engine):
    """Runs `work(options)` -> report inside a session, and hands the report on. Returns the exit code."""
    try:
        if options.session:
            _recording.start(options.session, engine, replay=options.graph or options.program)
        try:
            report = work(options)
        except BaseException:
            if options.session:
                _recording.discard(options.session)
            raise
        if options.session:
            _recording.stop()
    except IndexError as problem:  # of an operator
        hint = "" if options.inputs else "; the inputs are random numbers, give the program's own with --inputs FILE.pt"
        print(f"fusebox: {problem}{hint}", file=sys.stderr)
        return 3
    except (Failure, ValueError, RuntimeError, OSError) as problem:
        print(f"fusebox: {problem}", file=sys.stderr)
        return 2 if isinstance(problem, Misuse) else 3
    report["session"] = options.session
    text = json.dumps(_finite(report), indent=1, allow_nan=False)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    else:
        print(text)
    return 0


def _work(options):
    if options.engine == "stock":
        torch.set_grad_enabled(False)
    report, variants = replay_graph(options) if options.graph else replay_program(options)
    measure(variants, options)
    report["engine"] = options.engine
    report["runs"] = [v.report() for v in variants]
    if "sweep" in report:
        timed = {run["label"]: run for run in report.pop("runs")}
        for point in report["sweep"]:
            run = timed.get(point.get("label"), {})
            point.update({key: run[key] for key in ("times_ms", "compile_ms", "engine") if key in run})
    elif len(variants) == 2 and options.repeat:
        report["change"] = change_of(variants)
    return report


def main(argv=None):
    options = parse(argv)
    return run_host(_work, options, options.engine)


if __name__ == "__main__":
    sys.exit(main())

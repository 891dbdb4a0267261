"""Graphs without their programs: saved in sessions, compiled again, with rules about fusions, and measured against float64."""

import base64
import contextlib
import io
import json
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
import types
import unittest

import torch
import torch.nn as nn
import torch.nn.functional as F

import fusebox
from fusebox import numerics, replay
from fusebox._engine_access import _engine
from fusebox._graph_inputs import random_inputs, saved_inputs
from fusebox._saved_graph import Program


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.up = nn.Linear(16, 32)
        self.norm = nn.LayerNorm(32)
        self.down = nn.Linear(32, 8)

    def forward(self, ids, target):
        x = torch.nn.functional.gelu(self.norm(self.up(self.embedding(ids))))
        scores = self.down(x)[..., torch.tensor([3, 1, 0, 2])]
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten()), torch.softmax(scores, -1)


class Recorded:
    """One recorded training step, and its saved graphs by direction."""

    def __init__(self):
        self.dir = tempfile.TemporaryDirectory()
        self.session = self.path("net.fusebox")
        torch.manual_seed(0)
        net = fusebox.compile(Net())
        with fusebox.record(self.session):
            for _ in range(2):
                net(torch.randint(0, 50, (6, 7)), torch.randint(0, 4, (6, 7)))[0].backward()
        rows = sqlite3.connect(self.session).execute(
            "SELECT g.direction, s.text FROM t_saved_graph s JOIN t_graph g ON g.id = s.graph_id").fetchall()
        self.texts = dict(rows)
        self.files = {}
        for direction, text in rows:
            self.files[direction] = self.path(direction + ".json")
            with open(self.files[direction], "w") as file:
                file.write(text)

    def path(self, name):
        return os.path.join(self.dir.name, name)


recorded = Recorded()


def report_of(main, *words):
    """Runs a host's main in this process; its exit code and report."""
    out, complaints = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaints):
        code = main(list(words))
    return code, json.loads(out.getvalue()) if code == 0 else complaints.getvalue()


def graph(direction="forward"):
    return Program(recorded.texts[direction])


class SavedGraphs(unittest.TestCase):
    def test_every_compiled_graph_is_saved(self):
        self.assertEqual(set(recorded.texts), {"forward", "backward"})
        program = graph()
        self.assertEqual([n["kind"] for n in program.nodes].count("placeholder"), len(program.inputs))

    def test_small_constants_keep_their_data(self):
        constants = _engine.SavedGraph(recorded.texts["forward"]).constants()
        self.assertTrue(any(c is not None and c.dtype == torch.int64 and c.tolist() == [3, 1, 0, 2] for c in constants))

    def test_constants_lie_as_they_were_recorded(self):
        saved = json.loads(recorded.texts["forward"])
        constant = next(c for c in saved["constants"] if "data" in c and c["sizes"] == [4])
        for sizes, strides in (([2, 2], [1, 2]), ([2, 2], [4, 2]), ([1, 4], [0, 1])):
            constant.update(sizes=sizes, strides=strides)
            made = [c for c in _engine.SavedGraph(json.dumps(saved)).constants() if c is not None and list(c.shape) == sizes]
            self.assertEqual([(c.stride(), c.flatten().tolist()) for c in made], [(tuple(strides), [3, 1, 0, 2])])
        # An expanded one: four values, each twice.
        constant.update(sizes=[4, 2], strides=[1, 0], data=base64.b64encode(torch.tensor([5, 5, 6, 6, 7, 7, 8, 8]).numpy().tobytes()).decode())
        made = [c for c in _engine.SavedGraph(json.dumps(saved)).constants() if c is not None and list(c.shape) == [4, 2]]
        self.assertEqual([(c.stride(), c.tolist()) for c in made], [((1, 0), [[5, 5], [6, 6], [7, 7], [8, 8]])])

    def test_inputs_are_as_recorded_and_indices_stay_inside(self):
        program = graph()
        tensors = random_inputs(program, 1)
        for index, tensor in zip(program.inputs, tensors):
            sizes, strides, _, dtype, _ = program.meta(index)
            self.assertEqual((list(tensor.shape), list(tensor.stride()), tensor.dtype), (sizes, strides, dtype))
        integers = {program.nodes[i]["name"]: t for i, t in zip(program.inputs, tensors) if t.dtype == torch.int64}
        self.assertLess(max(int(t.max()) for t in integers.values()), 50)
        self.assertTrue(any(int(t.max()) > 8 for t in integers.values()), "indices of 50 rows come from all of them")
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(tensors, random_inputs(program, 1))))

    def test_indices_stay_inside_through_what_the_graph_makes_of_them(self):
        def work(ids, kinds, positions, fields, mask, words, types, places, joined):
            kind = torch.gather(kinds.expand(2, -1), 1, positions.expand(2, -1))  # an index, and what is looked up with it
            field = fields + 10 * torch.arange(4)
            place = mask.cumsum(1) * mask + 1
            target = torch.cat([ids, ids.flip(1)], 1) - 3
            return (F.embedding(ids, words), F.embedding(kind, types), F.embedding(field, joined), F.embedding(place, places), words[target // 2],
                    F.one_hot(kinds, 2), words.index_select(0, positions[0] * 2))

        made = (torch.full((2, 6), 5), torch.zeros(1, 9, dtype=torch.int64), torch.zeros(1, 6, dtype=torch.int64), torch.zeros(2, 4, dtype=torch.int64),
                torch.ones(2, 6, dtype=torch.int64), torch.randn(50, 3), torch.randn(2, 3), torch.randn(8, 3), torch.randn(40, 3))
        session = recorded.path("indices.fusebox")
        with fusebox.record(session), torch.no_grad():
            fusebox.compile(work)(*made)
        (text,), = sqlite3.connect(session).execute("SELECT text FROM t_saved_graph").fetchall()
        program, handle = Program(text), _engine.SavedGraph(text)
        highest = {}
        for seed in range(20):
            tensors = random_inputs(program, seed)
            handle.run_eager(tensors, [c for c in handle.constants()], {})
            for i, t in zip(program.inputs, tensors):
                if not t.is_floating_point():
                    highest[program.nodes[i]["name"]] = max(highest.get(program.nodes[i]["name"], 0), int(t.max()))
        self.assertEqual({**highest, "mask": 0, "ids": 0}, {"ids": 0, "kinds": 1, "positions": 8, "fields": 9, "mask": 0})
        self.assertGreater(highest["ids"], 40)

    def test_saved_inputs(self):
        program = graph()
        tensors = random_inputs(program, 5)
        torch.save(tensors, recorded.path("inputs.pt"))
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(tensors, saved_inputs(program, recorded.path("inputs.pt")))))
        torch.save(tensors[:-1], recorded.path("few.pt"))
        with self.assertRaisesRegex(ValueError, "but the graph has"):
            saved_inputs(program, recorded.path("few.pt"))
        torch.save([t.double() if t.is_floating_point() else t for t in tensors], recorded.path("wide.pt"))
        with self.assertRaisesRegex(ValueError, "was compiled for"):
            saved_inputs(program, recorded.path("wide.pt"))

    def test_code_in_a_file_of_inputs_is_not_run(self):
        marker = recorded.path("ran")

        class Bomb:
            def __reduce__(self):
                return (open, (marker, "w"))

        torch.save([Bomb()], recorded.path("bomb.pt"))
        with self.assertRaises(ValueError):
            saved_inputs(graph(), recorded.path("bomb.pt"))
        self.assertFalse(os.path.exists(marker))


class Replay(unittest.TestCase):
    def run_graph(self, direction="forward", *words):
        return report_of(replay.main, "--graph", recorded.files[direction], "--direction", direction, "--repeat", "3", *words)

    def test_each_engine_computes_the_same(self):
        for direction in ("forward", "backward"):
            for engine in ("fusebox", "eager"):
                code, report = self.run_graph(direction, "--engine", engine)
                self.assertEqual(code, 0, report)
                self.assertTrue(report["against_eager"]["original"]["agrees"], report["against_eager"])
                self.assertEqual(report["runs"][0]["times_ms"]["count"], 3)

    def test_a_change_of_time_says_what_it_is_sure_of(self):
        def variant(times):
            return types.SimpleNamespace(times=times, report=lambda: {"bytes": 8, "launches": 1})

        base = [100, 101, 99, 100, 5000, 100, 102, 98, 100, 100, 101, 99, 100, 100, 103, 100, 97, 100, 100, 100]  # one disturbed run
        slower = replay.change_of([variant(base), variant([t * 1.2 for t in base])])
        self.assertAlmostEqual(slower["time_percent"], 20)
        self.assertGreater(slower["time_percent_from"], 15)
        same = replay.change_of([variant(base), variant(base[3:] + base[:3])])
        self.assertLess(same["time_percent_from"], 0.5)
        self.assertGreater(same["time_percent_to"], -0.5)
        self.assertLess(abs(same["time_percent"]), 2)
        self.assertEqual(slower["time_percent_confidence"], 0.95)
        few = replay.change_of([variant(base[:3]), variant([t * 1.2 for t in base[:3]])])
        self.assertEqual(few["time_percent_confidence"], 0.75)  # that the median of three lies between their extremes

    def test_what_if(self):
        _, plain = self.run_graph()
        pair = next(d for d in self.decisions(plain) if d["fused"])
        rule = f"{pair['a']},{pair['b']}"
        code, report = self.run_graph("forward", "--forbid", rule, "--session", recorded.path("what_if.fusebox"))
        self.assertEqual(code, 0, report)
        original, changed = report["runs"]
        self.assertEqual(report["change"]["bytes"], changed["bytes"] - original["bytes"])
        self.assertGreater(report["change"]["bytes"], 0)
        self.assertIn("forbidden by user", [d["reason"] for d in changed["decisions"]])
        self.assertFalse(any(pair["a"] in g["operations"] and pair["b"] in g["operations"] for g in changed["groups"]))
        self.assertTrue(all(r["agrees"] for r in report["against_eager"].values()))
        database = sqlite3.connect(recorded.path("what_if.fusebox"))
        names = [n for n, in database.execute("SELECT DISTINCT name FROM t_graph WHERE stage = 'forward'")]
        self.assertEqual(len(names), 2, names)
        self.assertEqual(database.execute("SELECT count(*) FROM t_saved_graph").fetchone(), (2,))
        self.assertEqual(database.execute("SELECT count(*) FROM t_call_stats WHERE calls >= 3").fetchone(), (2,))

    def test_what_was_in_force_holds_for_the_original(self):
        _, plain = self.run_graph()
        pair = next(d for d in self.decisions(plain) if d["fused"])
        rule = f"{pair['a']},{pair['b']}"
        apart = lambda run: not any(pair["a"] in g["operations"] and pair["b"] in g["operations"] for g in run["groups"])
        code, report = self.run_graph("forward", "--base-forbid", rule)
        self.assertEqual((code, len(report["runs"])), (0, 1), report)
        self.assertTrue(apart(report["runs"][0]))
        code, report = self.run_graph("forward", "--base-forbid", rule, "--changed")  # the rule is taken back
        self.assertEqual(code, 0, report)
        original, changed = report["runs"]
        self.assertTrue(apart(original))
        self.assertFalse(apart(changed))
        self.assertLess(report["change"]["bytes"], 0)

    @staticmethod
    def decisions(report):
        text = recorded.texts["forward"]
        handle = _engine.SavedGraph(text)
        constants = [c if c is not None else torch.empty(0) for c in handle.constants()]
        return _engine.CompiledGraph(handle, constants, "forward", "x").facts()["decisions"]

    def test_rules_leave_no_trace(self):
        self.run_graph("forward", "--forbid", "nothing_0")
        self.assertEqual(fusebox.config.forbid_fusion, [])

    def test_unknown_names_and_passes(self):
        code, complaint = self.run_graph("forward", "--forbid", "no_such_operation")
        self.assertEqual(code, 3)
        self.assertIn("no_such_operation", complaint)
        self.assertIn("its operations are", complaint)
        code, report = self.run_graph("forward", "--skip-pass", "common_subexpressions")
        self.assertEqual(code, 0, report)

    # A graph of x[s0, 8] @ w + x's sum by rows, saved as a session holds it.
    SIZES = json.dumps({
        "format": "fusebox-graph", "version": 1, "name": "rows", "stacks": [], "constants": [], "operators": {},
        "symbols": [{"name": "s0", "lower": 2, "upper": 64, "hint": 6}],
        "nodes": [
            {"kind": "placeholder", "name": "x", "args": [], "index": 0,
             "out": [{"dtype": "float32", "sizes": [[[1, 0]], 8], "strides": [8, 1]}]},
            {"kind": "call", "name": "mul", "op": "aten::mul.Tensor", "args": [{"v": [0, 0]}, {"v": [0, 0]}],
             "out": [{"dtype": "float32", "sizes": [[[1, 0]], 8], "strides": [8, 1]}]},
            {"kind": "call", "name": "sum", "op": "aten::sum.dim_IntList", "args": [{"v": [1, 0]}, [1], False, None],
             "out": [{"dtype": "float32", "sizes": [[[1, 0]]], "strides": [1]}]},
            {"kind": "output", "name": "output", "args": [{"v": [2, 0]}], "out": []}]})

    def run_sizes(self, *words):
        with open(recorded.path("sizes.json"), "w") as file:
            file.write(self.SIZES)
        return report_of(replay.main, "--graph", recorded.path("sizes.json"), "--repeat", "2", *words)

    def test_sizes_are_those_of_the_capture_or_what_was_asked_for(self):
        self.assertEqual(random_inputs(Program(self.SIZES))[0].shape, (6, 8))
        for words, rows in (((), 6), (("--size", "s0=37"), 37), (("--size", "s0=37", "--fixed"), None)):
            code, report = self.run_sizes(*words)
            self.assertEqual(code, 0, report)
            self.assertEqual(report["sizes"].get("s0"), rows)
            self.assertTrue(report["against_eager"]["original"]["agrees"])
        fixed = json.loads(Program(self.SIZES, {"s0": 5}).fixed())
        self.assertEqual((fixed["symbols"], fixed["nodes"][0]["out"][0]["sizes"]), ([], [5, 8]))

    def test_floats_that_changed_take_values(self):
        def f(x, rate, shift):
            return (x * rate if rate > 0 else x) + shift

        session, x = recorded.path("floats.fusebox"), torch.ones(3)
        fusebox.reset()
        compiled = fusebox.compile(f)
        with fusebox.record(session):
            for rate, shift in (0.5, 0.25), (0.75, 0.125):
                compiled(x, rate, shift)
        with contextlib.closing(sqlite3.connect(session)) as db:
            text = db.execute("SELECT text FROM t_saved_graph ORDER BY graph_id DESC").fetchone()[0]
            names = {row[0]: row[1] for row in db.execute("SELECT source, name FROM symbols WHERE kind = 'float'")}
        rate, shift = names["L['rate']"], names["L['shift']"]
        program = Program(text, numbers={rate: 3.0, shift: 4.0, "x": 5.0})
        self.assertEqual(sorted(program.floats), sorted([rate, shift]))
        by_name = dict(zip((program.nodes[i]["name"] for i in program.inputs), random_inputs(program)))
        self.assertEqual((by_name[rate].item(), by_name[shift].item()), (3, 4))
        path = recorded.path("floats.json")
        with open(path, "w") as file:
            file.write(text)
        sweep = lambda *words: report_of(replay.main, "--graph", path, "--repeat", "2", "--hint", f"{rate}=0.5", *words)  # noqa: E731
        code, report = sweep("--size", f"{rate}=0.1:0.4:0.1")
        self.assertEqual((code, [p["sizes"][rate] for p in report["sweep"]]), (0, [0.1, 0.2, 0.3, 0.4]))
        self.assertTrue(all(p["against_eager"]["agrees"] for p in report["sweep"]), report)
        code, report = sweep("--size", f"{shift}=-1e-3")
        self.assertEqual((code, report["sizes"]), (0, {rate: 0.5, shift: -0.001}))
        for size, words in ((f"{rate}=x", "is no number"), (f"{rate}=1:2:0", "never ends"), (f"{rate}=0:2:x2", "never ends"), ("s9=4", f"its floats are {rate}")):
            code, complaint = sweep("--size", size)
            self.assertEqual((code, words in complaint), (2, True), complaint)

    def test_a_name_that_no_float_has_is_no_size(self):
        code, complaint = self.run_sizes("--size", "f0=0.5")
        self.assertEqual(code, 2)
        self.assertIn("--size f0=0.5: the sizes of this graph are s0", complaint)

    def test_traffic_is_that_of_the_sizes(self):
        traffic = {rows: self.run_sizes("--size", f"s0={rows}")[1]["runs"][0]["bytes"] for rows in (6, 12, 60)}
        self.assertEqual(traffic, {rows: rows * 8 * 4 + rows * 4 for rows in traffic})

    def test_sizes_for_which_the_program_runs_another_graph(self):
        with open(recorded.path("relations.json"), "w") as file:
            json.dump([{"relation": "L['x'].stride()[0] == s0", "place": ""}, {"relation": "2*(s0 // 2) != 40", "place": "model.py:4"},
                       {"relation": "min(s0, s9) <= 3", "place": ""}, {"relation": "s0 <= 50", "place": "model.py:5"}], file)
        rules = ("--relations", recorded.path("relations.json"))
        for size, words in (("s0=51", "s0 <= 50, asked for at model.py:5"), ("s0=41", "2*(s0 // 2) != 40, asked for at model.py:4")):
            code, complaint = self.run_sizes("--size", size, *rules)
            self.assertEqual(code, 2)
            self.assertIn(f"--size {size}: this graph holds for {words}", complaint)
        code, report = self.run_sizes("--size", "s0=49,50,51", *rules)
        self.assertEqual((code, [p.get("left_out", "")[:35] for p in report["sweep"]]), (0, ["", "", "s0=51: this graph holds for s0 <= 5"]))

    def test_a_sweep_runs_one_compiled_graph_at_every_size(self):
        code, report = self.run_sizes("--size", "s0=1:64:x2", "--session", recorded.path("sweep.fusebox"))
        self.assertEqual(code, 0, report)
        self.assertEqual([p["sizes"]["s0"] for p in report["sweep"]], [1, 2, 4, 8, 16, 32, 64])
        self.assertIn("from 2 to 64", report["sweep"][0]["left_out"])
        for point in report["sweep"][1:]:
            self.assertTrue(point["against_eager"]["agrees"], point)
            self.assertGreater(point["times_ms"]["median"], 0)
        self.assertFalse(report["fixed"])
        code, report = self.run_sizes("--size", "s0=4,6", "--engine", "eager")
        self.assertEqual((code, report["fixed"], len(report["sweep"])), (0, True, 2), report)

    def test_sizes_that_make_no_sense(self):
        for size, words in (("s0=1", "from 2 to 64"), ("s0=99", "from 2 to 64"), ("s7=4", "the sizes of this graph are s0"), ("s0", "write s0=37"),
                            ("s0=", "is no size"), ("s0=-3", "is no size"), ("s0=x", "is no size"), ("s0=9999999999999999999999", "is no size"),
                            ("s0=8:64", "first value, a last one and a step"), ("s0=8:64:0", "never ends"), ("s0=8:64:x1", "never ends"),
                            ("s0=0:64:x2", "never ends"), ("s0=64:8:8", "empty"), ("s0=1:100000:1", "larger steps")):
            code, complaint = self.run_sizes("--size", size)
            self.assertEqual(code, 2, (size, complaint))
            self.assertIn(words, complaint)
            self.assertNotIn("Traceback", complaint)
        self.assertIn("named twice", self.run_sizes("--size", "s0=4", "--size", "s0=5")[1])
        self.assertIn("none of these sizes", self.run_sizes("--size", "s0=100:200:50")[1])

    def test_values_that_options_cannot_have(self):
        for main in (replay.main, numerics.main):
            for words, allowed in ((["--skip-pass", "nosuch"], "common_subexpressions"), (["--size", "s0=4"], "fixed"),
                                   (["--shape", "float32[2]"], "--shape")):
                code, complaint = report_of(main, "--graph", recorded.files["forward"], "--direction", "forward", *words)
                self.assertEqual(code, 2, (words, complaint))
                self.assertIn(allowed, complaint)

    def test_what_fails_leaves_no_session(self):
        session = recorded.path("indices_of_floats.fusebox")
        with fusebox.record(session), torch.no_grad():
            fusebox.compile(lambda x, table: table[(x * 1000).long()])(torch.zeros(4), torch.randn(5, 2))
        (text,), = sqlite3.connect(session).execute("SELECT text FROM t_saved_graph").fetchall()
        with open(recorded.path("floats.json"), "w") as file:
            file.write(text)
        for main in (replay.main, numerics.main):
            code, complaint = report_of(main, "--graph", recorded.path("floats.json"), "--session", recorded.path("half.fusebox"))
            self.assertEqual(code, 3)
            self.assertIn("give the program's own with --inputs FILE.pt", complaint)
            self.assertFalse([name for name in os.listdir(recorded.dir.name) if name.startswith("half.fusebox")])

    def test_damaged_graph(self):
        with open(recorded.path("cut.json"), "w") as file:
            file.write(recorded.texts["forward"][:-40])
        code, complaint = report_of(replay.main, "--graph", recorded.path("cut.json"))
        self.assertEqual(code, 3)
        self.assertIn("not a saved graph", complaint)

    def test_a_graph_that_opens_a_file_is_refused(self):
        saved = json.loads(recorded.texts["forward"])
        node = next(n for n in saved["nodes"] if n.get("op", "").startswith("aten::"))
        _engine.SavedGraph(json.dumps(saved))
        node["op"] = "aten::from_file"
        with self.assertRaisesRegex(RuntimeError, "not run from a saved graph: aten::from_file"):
            _engine.SavedGraph(json.dumps(saved))

    def test_exported_and_scripted_programs(self):
        model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()
        x = torch.randn(3, 8)
        torch.export.save(torch.export.export(model, (x,)), recorded.path("model.pt2"))
        code, report = report_of(replay.main, "--program", recorded.path("model.pt2"), "--repeat", "2", "--session", recorded.path("pt2.fusebox"))
        self.assertEqual(code, 0, report)
        self.assertTrue(report["against_eager"]["original"]["agrees"])
        self.assertGreater(sqlite3.connect(recorded.path("pt2.fusebox")).execute("SELECT count(*) FROM t_kernel WHERE kind = 'generated'").fetchone()[0], 0)
        torch.jit.trace(model, (x,)).save(recorded.path("model.pt"))
        code, complaint = report_of(replay.main, "--program", recorded.path("model.pt"))
        self.assertEqual(code, 3)
        self.assertIn("--shape", complaint)
        code, report = report_of(replay.main, "--program", recorded.path("model.pt"), "--shape", "float32[3,8]", "--repeat", "2")
        self.assertEqual(code, 0, report)
        self.assertTrue(report["against_eager"]["original"]["agrees"])


class Numerics(unittest.TestCase):
    def examine(self, compiler=None, direction="forward"):
        program = graph(direction)
        constants = [c for c in _engine.SavedGraph(program.text).constants()]
        with torch.no_grad():
            return numerics.examine(program, random_inputs(program, 3), constants, direction, compiler)

    def test_values_behind_random_and_uninitialised_memory_are_not_judged(self):
        def work(x):
            mask = torch.empty_like(x).bernoulli_(0.5)
            return x * mask, x.new_empty(4, 4).abs(), x.exp()

        session = recorded.path("random.fusebox")
        with fusebox.record(session), torch.no_grad():
            fusebox.compile(work)(torch.randn(4, 4))
        program = Program(sqlite3.connect(session).execute("SELECT text FROM t_saved_graph").fetchone()[0])
        for _ in range(3):
            report = numerics.examine(program, random_inputs(program, 0), [], "inference", None)
            notes = {row["op"]: row["note"] for row in report["rows"]}
            self.assertEqual(report["divergent"], 0, report)
            self.assertIn("memory that is not initialised", notes["aten::abs"])
            self.assertIn("random numbers", notes["aten::mul.Tensor"])
            self.assertEqual(notes["aten::exp"], "")

    def test_numbers_that_json_does_not_know_are_null(self):
        self.assertEqual(replay._finite({"a": [1.5, math.inf], "b": {"c": math.nan, "d": "inf"}}), {"a": [1.5, None], "b": {"c": None, "d": "inf"}})

    def test_correct_code_has_no_divergence(self):
        for direction in ("forward", "backward"):
            report = self.examine(direction=direction)
            self.assertEqual(report["divergent"], 0, [r for r in report["rows"] if r["is_divergent"]])
            self.assertIsNone(report["first_divergence"])
            measured = [r for r in report["rows"] if "compiled_abs" in r]
            self.assertGreater(len(measured), 8)
            self.assertTrue(any(r["compiled_abs"] > 0 for r in measured), "float32 is not exact")
            self.assertTrue(any(r.get("local_abs") is not None for r in measured))

    @staticmethod
    def broken(is_wrong, name):
        """A compiler that spoils the value `name` whenever `is_wrong(facts)`."""

        def compiler(text):
            build = numerics.compile_text(text, "forward")
            program = Program(text)
            spoiled = [i for i, a in enumerate(program.nodes[-1]["args"]) if isinstance(a, dict) and program.nodes[a["v"][0]]["name"] == name]

            def made(constants):
                run, facts = build(constants)

                def wrong(inputs):
                    results = list(run(inputs))
                    for i in spoiled:
                        results[i] = results[i] * 1.01
                    return results

                return (wrong if is_wrong(facts) else run), facts

            return made

        return compiler

    def test_a_wrong_fusion_is_found(self):
        program = graph()
        gelu = next(n["name"] for n in program.nodes if n.get("op", "").startswith("aten::gelu"))

        def is_wrong(facts):
            return any(d["fused"] and "gelu" in d["a"] + d["b"] for d in facts["decisions"])

        report = self.examine(self.broken(is_wrong, gelu))
        self.assertEqual(report["first_divergence"]["name"], gelu)
        self.assertEqual(report["bisect"]["cause"], "fusion", report["bisect"])
        self.assertTrue(all("gelu" in pair for pair in report["bisect"]["forbid"]), report["bisect"])

    def test_a_wrong_pass_is_found(self):
        gelu = next(n["name"] for n in graph().nodes if n.get("op", "").startswith("aten::gelu"))
        report = self.examine(self.broken(lambda facts: "decompose" not in fusebox.config.skip_passes, gelu))
        self.assertEqual((report["bisect"]["cause"], report["bisect"]["detail"]), ("pass", "decompose"), report["bisect"])

    def test_wrong_code_is_said(self):
        gelu = next(n["name"] for n in graph().nodes if n.get("op", "").startswith("aten::gelu"))
        report = self.examine(self.broken(lambda facts: True, gelu))
        self.assertEqual(report["bisect"]["cause"], "code")
        row = next(r for r in report["rows"] if r["name"] == gelu)
        self.assertAlmostEqual(row["compiled_rel"], 0.01, places=3)
        self.assertTrue(row["is_divergent"])

    def test_ulps(self):
        one = torch.tensor([1.0, -2.0, 0.0])
        up = torch.nextafter(one, torch.tensor([9.0, -9.0, 0.0]))
        self.assertEqual(numerics.ulp_distance(up, one, 2.0), 1.0)
        self.assertEqual(numerics.ulp_distance(torch.tensor([1e-9]), torch.tensor([-1e-9]), 1.0), None)  # cancelled away
        self.assertEqual(numerics.ulp_distance(torch.tensor([1.0078125], dtype=torch.bfloat16), torch.tensor([1.0], dtype=torch.bfloat16), 1.0), 1.0)

    def test_smallest(self):
        items = [str(i) for i in range(37)]
        self.assertEqual(numerics.smallest(items, lambda some: "17" in some), ["17"])
        self.assertEqual(set(numerics.smallest(items, lambda some: {"3", "30"} <= set(some))), {"3", "30"})

    def test_graphs_with_sizes(self):
        session = recorded.path("flat.fusebox")
        with fusebox.record(session), torch.no_grad():
            fusebox.compile(lambda x, n: (x * 2).reshape(-1).softmax(0) + n, dynamic=True)(torch.ones(4, 3), 7)
        (text,), = sqlite3.connect(session).execute("SELECT text FROM t_saved_graph").fetchall()
        with open(recorded.path("flat.json"), "w") as file:
            file.write(text)
        for words, rows in (((), 4), (("--size", "s0=9"), 9)):
            code, report = report_of(numerics.main, "--graph", recorded.path("flat.json"), *words)
            self.assertEqual(code, 0, report)
            self.assertEqual({(r["elements"], r["note"], "local_abs" in r) for r in report["rows"]}, {(3 * rows, "", True)})

    def test_rows_are_in_the_session(self):
        session = recorded.path("numerics.fusebox")
        code, report = report_of(numerics.main, "--graph", recorded.files["forward"], "--direction", "forward", "--session", session)
        self.assertEqual(code, 0, report)
        stored = sqlite3.connect(session).execute("SELECT count(*), count(compiled_abs), sum(is_divergent) FROM numerics").fetchone()
        self.assertEqual(stored, (len(report["rows"]), sum("compiled_abs" in r for r in report["rows"]), 0))
        names = [n for n, in sqlite3.connect(session).execute("SELECT name FROM numerics ORDER BY node_id, output")]
        self.assertEqual(names, [r["name"] for r in report["rows"]])


@unittest.skipUnless(os.path.exists(os.environ.get("FUSEBOX_BIN", "")), "the program was not built")
class CommandLine(unittest.TestCase):
    def run_fusebox(self, *words):
        return subprocess.run([os.environ["FUSEBOX_BIN"], *words, "--python", sys.executable], capture_output=True, text=True,
                              cwd=recorded.dir.name, timeout=240)

    def test_replay_and_numerics(self):
        # Any stage of a graph leads to the one that can be compiled.
        stages = dict(sqlite3.connect(recorded.session).execute("SELECT stage, id FROM t_graph WHERE direction = 'forward'"))
        done = self.run_fusebox("replay", recorded.session, "--graph", str(stages["post_fusion"]), "--repeat", "2", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["direction"], "forward")
        self.assertTrue(os.path.exists(report["session"]))
        done = self.run_fusebox("numerics", recorded.session, "--graph", str(stages["post_grad"]), "--session", "n.fusebox")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no divergence", done.stdout)
        done = self.run_fusebox("replay", recorded.session, "--forbid", "no_such,thing")
        self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)

    def test_a_size_beyond_a_comparison_of_the_program(self):
        session = recorded.path("compares.fusebox")
        script = "import torch\n\ndef f(x):\n    return x.sin() if x.shape[0] > 64 else x * 2\n\ntorch.compile(f, dynamic=True)(torch.ones(8, 3))\n"
        with open(recorded.path("compares.py"), "w") as file:
            file.write(script)
        done = self.run_fusebox("run", "--session", session, recorded.path("compares.py"))
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_fusebox("replay", session, "--size", "s0=100")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("this graph holds for s0 <= 64, asked for at " + recorded.path("compares.py:4"), done.stderr)
        self.assertEqual(self.run_fusebox("replay", session, "--size", "s0=64", "--repeat", "2").returncode, 0)

    def test_what_cannot_be(self):
        done = self.run_fusebox("replay", recorded.session, "--graph", "4711")
        self.assertEqual(done.returncode, 3)
        self.assertIn("no graph 4711", done.stderr)
        done = self.run_fusebox("replay", recorded.session, "--session", recorded.session)
        self.assertEqual(done.returncode, 2)
        self.assertIn("another file", done.stderr)
        done = self.run_fusebox("numerics", recorded.path("none.fusebox"))
        self.assertEqual(done.returncode, 3)


if __name__ == "__main__":
    unittest.main()

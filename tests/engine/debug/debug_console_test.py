"""The debugger through its console: every kind of stop at its place with its facts, stepping and changing."""
import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from console import Console  # noqa: E402
from programs import BREAKS, CANNOT_COMPILE, FUSES, RECOMPILES, SMALL, SPECIALISES, TRAINS, line_of  # noqa: E402


class Stops(unittest.TestCase):
    """Loading PyTorch takes longer than all the rest, so that one program shows as much as it can."""

    def test_first_compile_lines_and_functions(self):
        with Console(SMALL) as c:
            stop = c.stopped()
            self.assertEqual((stop["kind"], stop["function"], stop["line"]), ("compile", "f", line_of(SMALL, "@torch.compile")))
            self.assertNotIn("result", c.printed())
            self.assertEqual([(row["name"], row["value"]) for row in c.ask("locals")][0], ("x", "Float[4, 8] strides [8, 1] cpu"))

            c.ask("break helper")  # a function by name
            stop = c.go("continue")
            self.assertEqual((stop["kind"], stop["function"], stop["offset"]), ("line", "helper", 0))

            c.ask(f"break program.py:{line_of(SMALL, 'return y + 1')}")  # a line in an inlined function
            stop = c.go("continue")
            self.assertEqual((stop["kind"], stop["function"], stop["line"], stop["depth"]), ("line", "helper", 6, 1))
            locals_ = {row["name"]: row for row in c.ask("locals")}
            self.assertEqual(locals_["x"]["source"], "x")
            self.assertEqual(locals_["y"]["source"], "made while capturing")
            frames = c.ask("frames")
            self.assertEqual([frame["function"] for frame in frames], ["helper", "f"])
            self.assertTrue(frames[1]["root"])
            self.assertEqual({row["name"] for row in c.ask("locals 1")}, {"x", "a", "b"})
            self.assertIn("aten::mul", c.ask("graph")["text"])
            guards = c.ask("guards")
            self.assertGreater(guards["count"], 1)
            self.assertTrue(any(g["kind"] == "TENSOR_MATCH" for g in guards["guards"]), guards)
            code = c.ask("code")
            self.assertEqual([row["line"] for row in code if row.get("current")], [6])
            self.assertEqual(c.finish(), 0)
            self.assertIn("result [24.0", c.printed())

    def test_passes_kernels_and_launches(self):
        text = SMALL.replace("torch.relu(a)", "torch.softmax(a, -1)")
        with Console(text, "--go", "--break", "pass decompose after", "--break", "pass dead_code") as c:
            self.assertEqual(c.stopped()["names"], ["decompose"])
            ir = c.ask("ir")
            self.assertTrue(ir["changed"])
            self.assertIn("softmax", ir["before"])
            self.assertNotIn("softmax", ir["after"])

            before = c.go("continue")
            self.assertEqual((before["kind"], before["when"], before["names"]), ("pass", "before", ["dead_code"]))
            self.assertFalse(c.ask("ir")["done"])
            after = c.go("next")
            self.assertEqual((after["when"], after["names"]), ("after", ["dead_code"]))
            ir = c.ask("ir")
            self.assertTrue(ir["done"])
            self.assertIn("aten::", ir["before"])
            self.assertEqual(ir["changed"], ir["before"] != ir["after"])

            c.ask("break kernel_compile after")
            c.ask("break kernel_launch")
            made = c.go("continue")
            while made["kind"] == "pass":
                made = c.go("continue")
            self.assertEqual((made["kind"], made["when"]), ("kernel_compile", "after"))
            kernel = c.ask("kernel")
            self.assertEqual(kernel["name"], made["kernel"])
            self.assertIn("ret", kernel["assembly"])
            launch = c.go("continue")
            while launch["kind"] != "kernel_launch":
                launch = c.go("continue")
            first = next(row for row in c.ask("arguments") if row["role"] == "input")
            self.assertEqual((first["sizes"], float(first["first_values"][0])), ([4, 8], 1.0))

    def test_graph_break_has_the_frame_that_broke(self):
        with Console(BREAKS, "--go", "--break", "graph_break") as c:
            stop = c.stopped()
            self.assertEqual((stop["kind"], stop["function"], stop["line"]), ("graph_break", "inner", line_of(BREAKS, "item()")))
            self.assertTrue(stop["break_reason"])
            self.assertEqual(c.ask("frames")[1]["function"], "f")
            self.assertIn("x", {row["name"] for row in c.ask("locals")})
            self.assertIn("aten::mul", c.ask("graph")["text"])
            again = c.go("continue")  # the function that broke is run by itself, and breaks there
            self.assertEqual((again["kind"], again["function"], again["depth"]), ("graph_break", "inner", 0))
            self.assertEqual(c.go("continue")["event"], "ended")
            self.assertIn("result [8.0", c.printed())

    def test_guard_failure_and_recompile(self):
        with Console(RECOMPILES, "--go", "--break", "guard_failure", "--break", "recompile") as c:
            failure = c.stopped()
            self.assertEqual(failure["kind"], "guard_failure")
            self.assertIn("k", failure["guard"])
            self.assertEqual((failure["expected"], failure["found"], failure["outcome"]), ("2", "3", "recompile"))
            self.assertIn(("k", "3"), [(row["name"], row["value"]) for row in c.ask("locals")])
            recompile = c.go("continue")
            self.assertEqual((recompile["kind"], recompile["function"], recompile["entries"]), ("recompile", "f", 1))
            self.assertEqual((recompile["expected"], recompile["found"]), ("2", "3"))
            self.assertEqual(c.go("continue")["event"], "ended")

    def test_a_size_that_becomes_a_constant(self):
        with Console(SPECIALISES, "--go", "--break", "specialise") as c:
            stop = c.stopped()
            self.assertEqual((stop["kind"], stop["function"], stop["line"], stop["value"]), ("specialise", "f", line_of(SPECIALISES, "== 6"), 6))
            values = {row["name"]: row["value"] for row in c.ask("locals")}
            self.assertRegex(values["x"], r"^Float\[s\d+, s\d+\] cpu$")
            shapes = c.ask("shapes")
            symbols = {row["name"]: row["hint"] for row in shapes["symbols"]}
            self.assertIn(6, symbols.values())
            self.assertTrue(any("6" in row["relation"] for row in shapes["relations"]), shapes)
            self.assertEqual(c.go("continue")["event"], "ended")
            self.assertIn("result 96.0", c.printed())

    def test_a_stage_that_makes_code_is_done_without_a_text(self):
        with Console(SMALL, "--go", "--break", "pass code_generation") as c:
            self.assertEqual((c.stopped()["when"], c.ask("ir")["done"]), ("before", False))
            self.assertEqual(c.go("continue")["when"], "after")
            ir = c.ask("ir")
            self.assertTrue(ir["done"])
            self.assertIn("launch", ir["before"])
            self.assertNotIn("after", ir)

    def test_backward_and_errors(self):
        with Console(TRAINS + CANNOT_COMPILE, "--go", "--break", "pass scheduling before", "--break", "error") as c:
            c.stopped()
            self.assertEqual(c.go("continue")["names"], ["scheduling"])  # the backward graph
            error = c.go("continue")
            while error["kind"] == "pass":
                error = c.go("continue")
            self.assertEqual(error["kind"], "error", error)
            self.assertIn("no_such_operator", error["title"])
            self.assertEqual(c.go("continue")["event"], "ended")
            self.assertIn("grad 0.19661", c.printed())
            self.assertIn("raised: ", c.printed())
            self.assertIn("no_such_operator", c.printed().split("raised: ")[1])


class Stepping(unittest.TestCase):
    def test_lines_instructions_and_passes(self):
        with Console(SMALL) as c:
            c.stopped()
            stop = c.go("step")
            self.assertEqual(stop["kind"], "line")
            while stop["line"] != line_of(SMALL, "a = helper"):
                stop = c.go("next")
            into = c.go("step")
            self.assertEqual(into["function"], "helper")
            inside = c.go("next")
            self.assertEqual((inside["function"], inside["line"]), ("helper", 5))
            out = c.go("finish")
            self.assertEqual(out["function"], "f")
            while out["line"] != line_of(SMALL, "b = torch.relu"):
                out = c.go("next")
            offsets = [out["offset"]]
            for _ in range(4):
                stop = c.go("nexti")
                self.assertEqual((stop["function"], stop["reason"]), ("f", "step"))
                offsets.append(stop["offset"])
            self.assertEqual(offsets, sorted(set(offsets)))

            c.ask("break pass graph_passes before")
            c.go("continue")
            self.assertEqual(c.go("step")["names"], ["sums_of_products"])
            after = c.go("next")
            self.assertEqual((after["names"], after["when"]), (["sums_of_products"], "after"))
            out = c.go("finish")
            self.assertEqual((out["names"], out["when"]), (["graph_passes"], "after"))
            over = c.go("next")
            self.assertEqual((over["names"], over["when"]), (["lowering"], "before"))

    def test_over_a_call(self):
        with Console(SMALL) as c:
            c.stopped()
            stop = c.go("step")
            while stop["line"] != line_of(SMALL, "a = helper"):
                stop = c.go("next")
            over = c.go("next")
            self.assertEqual((over["function"], over["line"]), ("f", line_of(SMALL, "b = torch.relu")))

    def test_a_breakpoint_on_a_line_that_calls_stops_there_once(self):
        call = line_of(SMALL, "a = helper")
        with Console(SMALL, "--go", "--break", f"program.py:{call}") as c:
            stop = c.stopped()
            self.assertEqual((stop["function"], stop["line"]), ("f", call))
            c.ask(f"break program.py:{line_of(SMALL, 'return y + 1')}")
            self.assertEqual(c.go("continue")["function"], "helper")
            self.assertEqual(c.finish(), 0)

    def test_until_and_pause(self):
        loop = RECOMPILES + "while True:\n    f(torch.ones(4), 2)\n"
        with Console(loop) as c:
            c.stopped()
            self.assertEqual(c.go("until recompile")["kind"], "recompile")
            c.send("continue &")
            c.wait_printed(lambda text: text.count("result") == 2)
            stop = c.go("pause")
            self.assertEqual(stop["reason"], "pause")

    def test_a_thousand_steps_do_not_grow_and_are_shown_at_once(self):
        """The worst of them depends on the machine: stepping_bench says that."""
        loop = SMALL.replace("    b = torch.relu(a)\n", "    b = a\n    for i in range(400):\n        b = b + (i % 3 == 7)\n")
        with Console(loop, "--go", "--break", f"program.py:{line_of(SMALL, 'a = helper')}") as c:
            c.stopped()
            for _ in range(200):
                c.go("stepi")
            before = c.memory()
            shown = []
            for _ in range(1000):
                stop = c.go("stepi")
                self.assertEqual(stop["event"], "stopped")
                shown.append(stop["shown_after_ns"])
            grown = c.memory() - before
            median = sorted(shown)[500]
            print(f"1000 steps: {grown / 1024:.0f} KiB more, shown after {median / 1e6:.2f} ms (median)", flush=True)
            self.assertLess(grown, 4 << 20)
            self.assertLess(median, 100e6)


class Changing(unittest.TestCase):
    def kernels(self, c, *commands):
        """Kernels of the next compilation, after these commands before its scheduling. Ends before its code generation."""
        stop = c.go("continue") if c.events[-1]["event"] != "stopped" or c.events[-1]["names"] != ["scheduling"] else c.events[-1]
        self.assertEqual(stop["names"], ["scheduling"])
        for command in commands:
            c.ask(command)
        self.assertEqual(c.go("continue")["names"], ["code_generation"])
        return c.ask("ir")["before"].count("group ")

    def test_options_and_rules_hold_from_the_next_scheduling(self):
        with Console(FUSES.format(times=6), "--go", "--break", "fusion") as c:
            stop = c.stopped()
            rule = f"{stop['a']},{stop['b']}"
            c.ask("delete 1")
            self.assertIn("max_fusion_size", c.ask("options"))
            self.assertIn("no option", c.refused("set colour blue"))
            self.assertIn("no value", c.refused("set fuse 7"))
            self.assertIn("two operations", c.refused("force a"))
            self.assertIn("no rule", c.refused("allow a,b"))
            c.ask("break pass scheduling before")
            c.ask("break pass code_generation before")
            c.go("continue")  # the first one's code generation
            fused = self.kernels(c)
            self.assertIn("no fusion is about to be decided", c.refused("forbid"))
            apart = self.kernels(c, f"forbid {rule}")
            self.assertLess(fused, apart)
            self.assertEqual(self.kernels(c, f"allow {rule}"), fused)
            alone = self.kernels(c, "set fuse false")
            self.assertLess(fused, alone)
            self.assertEqual(self.kernels(c, f"force {rule}"), alone - 1)
            self.assertEqual(c.go("continue")["event"], "ended")
            self.assertEqual(c.printed().count("right True True"), 6)

    def test_forbidding_a_fusion_changes_the_kernels_not_the_result(self):
        with Console(FUSES.format(times=2), "--go", "--break", "pass scheduling before", "--break", "pass code_generation before", record=True) as c:
            c.stopped()
            fused = self.kernels(c)
            c.ask("break fusion")
            c.go("continue")
            stop = c.go("continue")
            self.assertEqual(stop["kind"], "fusion")
            fusions = c.ask("fusions")
            self.assertEqual((fusions["a"], fusions["b"]), (stop["a"], stop["b"]))
            self.assertIn("will", fusions["outlook"])
            pairs = []
            while stop["kind"] == "fusion":
                pairs.append((stop["a"], stop["b"]))
                c.ask("forbid")
                stop = c.go("continue")
            self.assertGreater(c.ask("ir")["before"].count("group "), fused)
            self.assertEqual(c.go("continue")["event"], "ended")
            self.assertEqual(c.printed().count("right True True"), 2)
            with sqlite3.connect(c.session) as session:
                rows = session.execute("SELECT a, b, fused, reason FROM fusion_decisions WHERE graph_id = (SELECT max(graph_id) FROM fusion_decisions)").fetchall()
            self.assertFalse(any(row[2] for row in rows), rows)
            self.assertIn((*pairs[0], 0, "forbidden by user"), rows)

    def test_skip_frame(self):
        with Console(SMALL, record=True) as c:
            c.stopped()
            end = c.go("skip")
            while end["event"] != "ended":
                self.assertNotEqual(end.get("function"), "f")
                end = c.go("continue")
            self.assertIn("result [24.0", c.printed())
            with sqlite3.connect(c.session) as session:
                rows = session.execute("SELECT name, status, reason FROM frames WHERE name = 'f'").fetchall()
            self.assertEqual([(r[0], r[1]) for r in rows], [("f", "skipped")])
            self.assertIn("skipped in the debugger", rows[0][2])

    def test_skip_in_the_middle_of_capture(self):
        with Console(BREAKS, "--go", "--break", "graph_break") as c:
            c.stopped()
            self.assertEqual(c.go("skip")["kind"], "graph_break")  # f is Python's now, what it calls is still compiled
            self.assertEqual(c.go("continue")["event"], "ended")
            self.assertIn("result [8.0", c.printed())


if __name__ == "__main__":
    unittest.main(verbosity=1)

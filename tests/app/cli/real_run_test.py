"""`fusebox run` with the real engine: what a session holds of a real program, and that the program's behaviour stays its own."""
import json
import os
import signal
import sqlite3
import subprocess
import time
import unittest

from program import FUSEBOX, folder, fusebox

PROGRAM = '''
import torch
from torch import nn
from torch.nn import functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.up = nn.Linear(32, 64)
        self.down = nn.Linear(64, 32)
    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))

@torch.compile
def spread(x):
    peak = round(x.max().item())
    return torch.tanh(x * 3) / (1 + peak)

torch.manual_seed(0)
net = Net()
fast = torch.compile(net)
with torch.no_grad():
    for batch in (8, 8, 3):
        fast(torch.randn(batch, 32))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    loss = fast(torch.randn(8, 32)).square().mean()
    loss.backward()
    optimizer.step()
print("spread", round(spread(torch.arange(12.).reshape(3, 4)).sum().item(), 4))
'''


class Session(unittest.TestCase):
    """One real program, recorded once; every promise of the session is looked at."""

    @classmethod
    def setUpClass(cls):
        cls.dir = folder()
        cls.script = os.path.join(cls.dir.name, "program.py")
        cls.file = os.path.join(cls.dir.name, "program.fusebox")
        with open(cls.script, "w") as out:
            out.write(PROGRAM)
        cls.run_result = fusebox("run", "--session", cls.file, "--summary", cls.file + ".json", cls.script, timeout=170)
        cls.database = sqlite3.connect(cls.file)

    @classmethod
    def tearDownClass(cls):
        cls.database.close()
        cls.dir.cleanup()

    def rows(self, sql, *values):
        return self.database.execute(sql, values).fetchall()

    def none(self, sql, *values):
        self.assertEqual(self.rows(sql, *values)[:5], [], sql)

    def line(self, text):
        return 1 + PROGRAM.split("\n").index(next(l for l in PROGRAM.split("\n") if text in l))

    def test_program(self):
        self.assertEqual((self.run_result.returncode, self.run_result.stdout), (0, "spread 0.9163\n"), self.run_result.stderr)
        self.none("SELECT * FROM losses")

    def test_stages(self):
        for compile_id, kind in self.rows("SELECT compile_id, kind FROM compiles"):
            phases = {phase for phase, in self.rows("SELECT DISTINCT phase FROM stages WHERE compile_id = ?", compile_id)}
            expected = {"inductor", "codegen"} | (set() if kind == "backward" else {"capture", "aot"})
            self.assertEqual(phases, expected, kind)
        self.none("SELECT * FROM stages WHERE end_ns IS NULL OR dur_ns <= 0 OR file IS NULL")
        self.none("SELECT * FROM stages s JOIN stages p ON p.stage_id = s.parent_stage_id WHERE s.start_ns < p.start_ns OR s.end_ns > p.end_ns")
        self.none("SELECT * FROM stages WHERE name IN ('decompose', 'dead_code', 'lowering', 'scheduling') AND nodes_after IS NULL")

    def test_graphs(self):
        stages = {stage for stage, in self.rows("SELECT DISTINCT stage FROM graphs")}
        self.assertEqual(stages, {"captured", "joint", "forward", "backward", "post_grad", "post_fusion"})
        # Every later graph says what it was made from, down to its nodes.
        self.none("SELECT * FROM graphs WHERE stage <> 'captured' AND parent_graph_id IS NULL")
        self.none("SELECT * FROM node_origins o JOIN nodes n USING(node_id) JOIN graphs g USING(graph_id) "
                  "JOIN nodes m ON m.node_id = o.origin_node_id WHERE m.graph_id <> g.parent_graph_id")
        self.none("SELECT n.name FROM nodes n JOIN graphs g USING(graph_id) WHERE n.kind = 'call' AND g.stage = 'post_fusion' "
                  "AND NOT EXISTS(SELECT 1 FROM node_origins o WHERE o.node_id = n.node_id)")
        self.none("SELECT name FROM nodes WHERE kind = 'call' AND NOT is_backward AND file IS NULL")
        # The captured graph is what the program did: no gradients in it.
        self.none("SELECT n.name FROM nodes n JOIN graphs g USING(graph_id) WHERE g.stage = 'captured' AND n.is_backward")
        gelu = self.rows("SELECT DISTINCT line, module_path FROM nodes WHERE op = 'aten::gelu' AND NOT is_backward")
        self.assertIn(self.line("F.gelu"), [row[0] for row in gelu])
        self.assertTrue(self.rows("SELECT 1 FROM nodes WHERE module_path = 'up' AND op LIKE 'aten::addmm'"))
        self.assertTrue(self.rows("SELECT 1 FROM nodes WHERE kind = 'placeholder' AND name = 'self.norm.weight'"))

    def test_break(self):
        rows = self.rows("SELECT file, line, kind, hint, col, opcode, frame FROM graph_breaks")
        self.assertEqual(len(rows), 1)
        file, line, kind, hint, column, opcode, frame = rows[0]
        self.assertEqual((file, line, frame), (self.script, self.line(".item()"), "spread"))
        self.assertTrue(kind and hint and opcode)
        self.assertGreater(column, 0)

    def test_guards(self):
        failures = self.rows("SELECT guard, expected, found, line, guard_id, recompile_id FROM guard_failures f "
                             "WHERE EXISTS(SELECT 1 FROM compiles c WHERE c.failure_id = f.failure_id) ORDER BY failure_id")
        self.assertEqual([f[0].split()[0] for f in failures], ["TENSOR_MATCH", "GLOBAL_STATE"])
        self.assertIn("[8, 32]", failures[0][1])
        self.assertIn("[3, 32]", failures[0][2])
        self.assertIn("grad_mode: False", failures[1][1])
        for failure in failures:
            self.assertTrue(failure[3] and failure[5], failure)
            kind, count = self.rows("SELECT kind, failures FROM guards WHERE guard_id = ?", failure[4])[0]
            self.assertEqual((kind, count >= 1), (failure[0].split()[0], True))
        self.none("SELECT * FROM guards WHERE file IS NULL OR expected IS NULL")

    def test_fusion(self):
        self.none("SELECT * FROM fusion_decisions WHERE reason IS NULL OR a_node_id IS NULL")
        self.assertEqual({f for f, in self.rows("SELECT DISTINCT fused FROM fusion_decisions")}, {0, 1})
        self.none("SELECT * FROM fusion_groups WHERE read_bytes + write_bytes <= 0 OR launches = 0 OR total_ns <= 0 OR file IS NULL")
        self.none("SELECT group_id FROM fusion_groups g WHERE NOT EXISTS(SELECT 1 FROM fusion_members m WHERE m.group_id = g.group_id "
                  "AND m.role = 'result')")
        self.none("SELECT * FROM fusion_groups WHERE kind = 'extern' AND reason IS NULL")

    def test_kernels(self):
        self.none("SELECT name FROM kernels WHERE kind = 'generated' AND (loop_ir IS NULL OR llvm_ir NOT LIKE '%define%' "
                  "OR assembly NOT LIKE '%ret%' OR code_bytes <= 0 OR target IS NULL OR group_id IS NULL)")
        # Assembly names lines of the loop IR, and these the nodes that they are parts of.
        self.none("SELECT name FROM kernels WHERE kind = 'generated' AND assembly NOT LIKE '%.loc%1 %'")
        members = {}
        for kernel, node in self.rows("SELECT g.kernel_id, n.name FROM fusion_groups g JOIN fusion_members m USING (group_id) JOIN nodes n USING (node_id)"):
            members.setdefault(kernel, set()).add(node)
        for kernel, text in self.rows("SELECT kernel_id, loop_ir FROM kernels WHERE kind = 'generated'"):
            named = {line.split("  # ")[1] for line in text.splitlines() if "  # " in line}
            self.assertTrue(named and named <= members[kernel], (named, members[kernel]))
        # The optimised tier came in the background, and the session has it.
        self.none("SELECT name FROM kernels WHERE kind = 'generated' AND tier IS NOT 1")
        flops, = self.rows("SELECT max(flops) FROM kernels WHERE op = 'aten::addmm'")[0]
        self.assertEqual(flops, 2 * 8 * 32 * 64)

    def test_launches(self):
        self.none("SELECT * FROM launches WHERE dur_ns <= 0 OR bytes <= 0 OR kernel IS NULL OR line IS NULL OR group_id IS NULL")
        # Every launch is within a call of its own compilation.
        self.none("SELECT launch_id FROM launches l WHERE NOT EXISTS(SELECT 1 FROM cpu_events e WHERE e.kind = 'call' AND "
                  "e.compile_id = l.compile_id AND e.start_ns <= l.start_ns AND e.end_ns >= l.end_ns)")
        kinds = dict(self.rows("SELECT kind, sum(calls) FROM calls GROUP BY kind"))
        self.assertGreaterEqual(kinds["call"], 9)   # 5 forward, 2 backward, 2 of the broken frame
        self.assertGreaterEqual(kinds["guard_check"], 2)
        self.assertTrue(self.rows("SELECT 1 FROM calls WHERE frame LIKE '%(backward)'"))

    def test_buffers(self):
        self.none("SELECT * FROM buffers WHERE kind <> 'constant' AND node_id IS NULL AND kind IN ('input', 'planned')")
        self.none("SELECT * FROM buffers WHERE shape NOT LIKE '[%' OR last_use < first_use")
        self.assertTrue(self.rows("SELECT 1 FROM buffers WHERE kind = 'planned' AND pool_offset IS NOT NULL AND last_use > first_use"))

    def test_sources_and_facts(self):
        text, = self.rows("SELECT text FROM source_files WHERE file = ?", self.script)[0]
        self.assertEqual(text, PROGRAM)
        facts = dict(self.rows("SELECT key, value FROM session_info"))
        for key in ("engine", "torch", "python", "device", "cpu", "cpu_features", "hostname", "command", "cwd", "pid", "state",
                    "config.recompile_limit", "config.fuse", "exit_code"):
            self.assertTrue(facts.get(key), key)
        self.assertEqual(facts["state"], "finished")
        self.assertEqual(facts["exit_code"], "0")

    def test_summary(self):
        with open(self.file + ".json") as file:
            summary = json.load(file)
        self.assertEqual(len(summary["recompiles"]), 2)
        self.assertEqual(len(summary["graph_breaks"]), 1)
        for phase in ("capture", "aot", "inductor", "codegen"):
            self.assertGreater(summary["compile_ms"][phase], 0)
        self.assertGreater(summary["run_ms"], 0)
        self.assertEqual(summary["launches"], self.rows("SELECT count(*) FROM launches")[0][0])

    def test_pictures_of_every_kind(self):
        for stage in ("captured", "post_grad", "post_fusion", "backward"):
            for kind, start in (("svg", b"<?xml"), ("png", b"\\x89PNG"), ("pdf", b"%PDF"), ("dot", b"digraph")):
                if kind != "svg" and stage != "post_fusion":
                    continue
                out = os.path.join(self.dir.name, f"{stage}.{kind}")
                done = fusebox("diagram", self.file, "--stage", stage, "-o", out)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(out, "rb") as file:
                    self.assertTrue(file.read(8).startswith(start.decode("unicode_escape").encode("latin-1")), out)


PARTS = '''
import torch

@torch.compile
def kept(x):
    rows = (x > 0).nonzero().squeeze(-1)
    return torch.relu(x[rows] * 2 + 1)

for n in (16, 16, 16):
    kept(torch.randn(n))
'''


class Tutorial(unittest.TestCase):
    """What the manual's page tells of its two scripts is so."""

    def test_what_the_page_says(self):
        with folder() as there:
            examples = os.path.join(os.path.dirname(__file__), "../../../resources/examples")
            for name in ("slow", "fast"):
                done = fusebox("run", "--session", f"{there}/{name}.fusebox", os.path.join(examples, name + ".py"), timeout=170)
                self.assertEqual(done.returncode, 0, done.stderr)
            breaks = json.loads(fusebox("breaks", f"{there}/slow.fusebox", "--json").stdout)["breaks"]
            self.assertEqual([(b["line"], b["crossings"]) for b in breaks if b["kind"] == "data-dependent value"], [(18, 240)])  # not its callers' too
            fast = sqlite3.connect(f"{there}/fast.fusebox")
            self.assertEqual(fast.execute("SELECT (SELECT count(*) FROM t_graph_break), (SELECT count(*) FROM t_compile)").fetchone(), (0, 2))
            compared = fusebox("compare", f"{there}/slow.fusebox", f"{there}/fast.fusebox").stdout
            self.assertRegex(compared, r"a step of the program +\d.*s +\d.*s ")  # of both: no turns of different loops


class Parts(unittest.TestCase):
    """A graph whose sizes data decide runs in parts, and between them the operators that say the sizes."""

    def test_operators_between_parts(self):
        with folder() as directory:
            script, file = os.path.join(directory, "parts.py"), os.path.join(directory, "parts.fusebox")
            with open(script, "w") as out:
                out.write(PARTS)
            run = fusebox("run", "--session", file, script, timeout=170)
            self.assertEqual(run.returncode, 0, run.stderr)
            database = sqlite3.connect(file)
            asked = database.execute("SELECT kernel_id, kind, launches, total_ns > 0, line, reason FROM kernels WHERE op = 'aten::nonzero'").fetchall()
            self.assertEqual([row[1:5] for row in asked], [("extern", 3, 1, 1 + PARTS.split("\n").index("    rows = (x > 0).nonzero().squeeze(-1)"))])
            self.assertIn("data decide", asked[0][5])
            # Within the calls, as every launch.
            inside = database.execute("SELECT count(*) FROM launches l JOIN cpu_events c ON c.kind = 'call' AND c.thread = l.thread AND c.start_ns <= l.start_ns "
                                      "AND c.end_ns >= l.end_ns WHERE l.kernel_id = ?", (asked[0][0],)).fetchone()[0]
            self.assertEqual(inside, 3)
            database.close()
            memory = fusebox("memory", file).stdout
            for part in ("kept, part 1 of 2", "kept, part 2 of 2"):
                self.assertIn(part, memory)


OUTSIDE = """import torch
weight = torch.ones(8, requires_grad=True)
step = torch.optim.SGD([weight], 0.1)
double = torch.compile(lambda x: x * 2 + 1)
for i in range(20):
    loss = double(weight).sum()
    loss.backward()
    step.step()
"""


class Outside(unittest.TestCase):
    """Operators that torch runs outside compiled code, where somebody asks for them."""

    def test_operators_are_recorded_on_request(self):
        with folder() as directory:
            script, file = os.path.join(directory, "outside.py"), os.path.join(directory, "outside.fusebox")
            with open(script, "w") as out:
                out.write(OUTSIDE)
            for asked in (False, True):
                run = fusebox("run", "--session", file, *["--operators"] * asked, script, timeout=170)
                self.assertEqual(run.returncode, 0, run.stderr)
                database = sqlite3.connect(file)
                found = database.execute("SELECT op, line, sum(launches) FROM kernels WHERE kind = 'eager' GROUP BY 1, 2").fetchall()
                database.close()
                outside = next(r for r in json.loads(fusebox("why", "--json", file).stdout)["rows"] if r["kind"] == "outside")
                self.assertEqual("--operators" in outside["sentence"], not asked)
                if not asked:
                    self.assertEqual(found, [])
                    continue
                self.assertIn(("aten::sum", 6, 20), found)
                self.assertTrue([r for r in found if r[1] == 8 and r[2] % 20 == 0], found)  # the optimizer's
                # What compiled code computes, and what the compiler tries while it captures, is not outside.
                self.assertFalse([r for r in found if r[1] == 4 or r[0] == "aten::mul"], found)


class Behaviour(unittest.TestCase):
    """The program's own exit code, streams and signals."""

    HEAD = "import os, signal, sys, torch\nf = torch.compile(lambda x: torch.relu(x) + 1)\nf(torch.ones(4))\n"

    @classmethod
    def setUpClass(cls):
        cls.dir = folder()

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def go(self, body, *arguments, **options):
        with open(self.path("job.py"), "w") as out:
            out.write(self.HEAD + body)
        return fusebox("run", "--session", self.path("job.fusebox"), self.path("job.py"), *arguments, timeout=120, cwd=self.dir.name, **options)

    def state(self):
        database = sqlite3.connect(self.path("job.fusebox"))
        try:
            launches, = database.execute("SELECT count(*) FROM launches").fetchone()
            return dict(database.execute("SELECT key, value FROM session_info")).get("state"), launches
        finally:
            database.close()

    def test_exit_code_and_arguments(self):
        done = self.go("print(sys.argv[1:], sys.stdin.read())\nsys.exit(3)\n", "--lr", "0.1", input="typed")
        self.assertEqual((done.returncode, done.stdout), (3, "['--lr', '0.1'] typed\n"))
        self.assertEqual(self.state(), ("finished", 1))

    def test_exception(self):
        done = self.go("def deep():\n    raise ValueError('mine')\ndeep()\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ValueError: mine", done.stderr)
        self.assertIn("job.py", done.stderr)
        self.assertNotIn("fusebox/host.py", done.stderr)
        self.assertEqual(self.state(), ("finished", 1))

    def test_interrupt_reaches_the_script(self):
        done = self.go("try:\n    os.kill(os.getpid(), signal.SIGINT)\n    import time; time.sleep(5)\nexcept KeyboardInterrupt:\n"
                       "    print('caught'); sys.exit(9)\n")
        self.assertEqual((done.returncode, done.stdout), (9, "caught\n"))

    def test_killed_host_leaves_a_readable_session(self):
        with open(self.path("job.py"), "w") as out:
            out.write(self.HEAD + "import time\nfor _ in range(100): f(torch.ones(4))\nprint(os.getpid(), flush=True)\ntime.sleep(100)\n")
        for part in ("", "-wal"):  # of an earlier run: gone when this one's is begun, however it ends
            open(self.path("job.fusebox") + part, "w").close()
        process = subprocess.Popen([FUSEBOX, "run", "--session", self.path("job.fusebox"), self.path("job.py")], cwd=self.dir.name,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        host = int(process.stdout.readline())
        self.assertEqual([name for name in os.listdir(self.dir.name) if "replaced" in name], [])
        end = time.monotonic() + 60
        while self.state()[1] < 101 and time.monotonic() < end:  # the writer works beside the program
            time.sleep(0.05)
        os.kill(host, signal.SIGKILL)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        summary = fusebox("summary", self.path("job.fusebox"), "--json")
        self.assertEqual(summary.returncode, 0, summary.stderr)
        self.assertEqual(json.loads(summary.stdout)["state"], "abandoned")
        self.assertGreaterEqual(json.loads(summary.stdout)["launches"], 101)

    def test_a_crash_in_the_first_call_leaves_what_was_compiled(self):
        for end in ("os.abort()", "import ctypes; ctypes.string_at(0)", "os._exit(5)"):
            done = self.go("torch.compile(lambda x: torch.tanh(x) * 3)(torch.ones(4))\n" + end + "\n")
            self.assertNotEqual(done.returncode, 0)
            summary = json.loads(fusebox("summary", self.path("job.fusebox"), "--json").stdout)
            self.assertEqual((summary["state"], summary["compiles"], summary["graphs"], summary["kernels"]), ("abandoned", 2, 2, 2), end)
            self.assertEqual([f["verdict"] for f in summary["functions"]], ["whole", "whole"], end)

    def test_every_way_to_start_a_process_brings_the_engine(self):
        done = self.go("import multiprocessing\n"
                       "def work(n):\n    return torch.compile.__module__, torch.compile(lambda x: x + n)(torch.ones(1)).item()\n"
                       "if __name__ == '__main__':\n"
                       "    for how in ('fork', 'spawn', 'forkserver'):\n"
                       "        with multiprocessing.get_context(how).Pool(1) as pool: print(how, *pool.map(work, [2]), flush=True)\n")
        self.assertEqual(done.stdout.splitlines(), [f"{how} ('fusebox._compile', 3.0)" for how in ("fork", "spawn", "forkserver")], done.stderr)
        lost = json.loads(fusebox("query", self.path("job.fusebox"), "--format", "json", "SELECT count, detail FROM losses WHERE what = 'worker_processes'").stdout)
        self.assertEqual([row["count"] for row in lost], [3], "what the workers compiled is told of, once for each")
        self.assertIn("SpawnPoolWorker-", lost[0]["detail"])
        self.assertEqual([name for name in os.listdir(self.dir.name) if name.endswith(".workers")], [])

    def test_launches_that_run_together_are_told_with_what_each_took(self):
        """Both move as many bytes; one computes much more."""
        done = self.go("@torch.compile\ndef g(x, y):\n    a, b = x, y + 1\n    for _ in range(8): a = a.sin().exp()\n    return a, b\n"
                       "for _ in range(20): g(torch.rand(400, 100), torch.rand(41000))\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        took = json.loads(fusebox("query", self.path("job.fusebox"), "--format", "json",
                                  "SELECT kernel, min(dur_ns) AS ns, max(bytes) AS bytes FROM launches WHERE bytes > 100000 GROUP BY kernel ORDER BY ns").stdout)
        self.assertEqual(len(took), 2, took)
        self.assertLess(max(row["bytes"] for row in took), 1.1 * min(row["bytes"] for row in took))
        self.assertGreater(took[1]["ns"], 4 * took[0]["ns"], took)

    def test_calls_at_the_recompile_limit(self):
        """Python runs the function then; its calls are recorded, each a step of the program."""
        done = self.go("import torch._dynamo\ntorch._dynamo.config.recompile_limit = 2\n"
                       "class Net(torch.nn.Module):\n    step = 0\n    def forward(self, x):\n        self.step += 1\n        return inner(x) * self.step\n"
                       "def inner(x):\n    return x.sin() + 1\n"
                       "net = torch.compile(Net(), dynamic=False)\nfor i in range(30): net(torch.ones(4))\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(fusebox("query", self.path("job.fusebox"), "--format", "json", "SELECT name, line, count(*) AS calls, min(dur_ns) AS least FROM cpu_events "
                                  "WHERE kind = 'python_call' GROUP BY name").stdout)
        self.assertEqual([(r["name"], r["calls"]) for r in rows], [("Net.forward", 28)])
        self.assertGreater(rows[0]["least"], 0)
        why = json.loads(fusebox("why", self.path("job.fusebox"), "--json").stdout)
        self.assertGreaterEqual(why["steps"], 20)
        outside = next(row for row in why["rows"] if row["kind"] == "outside")
        self.assertEqual([part["name"] for part in outside["parts"]], ["Net.forward"])
        self.assertTrue(any(limit.endswith("where no entry fits: Net.forward") for limit in why["limits"]), why["limits"])

    def test_out_of_memory(self):
        done = self.go("import resource\nresource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\nx = bytearray(1 << 40)\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("MemoryError", done.stderr)
        self.assertEqual(self.state()[0], "finished")

    def test_fork_and_threads(self):
        done = self.go("import threading\nfrom torch.utils.data import DataLoader\n"
                       "t = threading.Thread(target=lambda: f(torch.ones(4))); t.start(); t.join()\n"
                       "print(sum(float(f(b).sum()) for b in DataLoader(torch.arange(8.), batch_size=4, num_workers=2)))\n")
        self.assertEqual((done.returncode, done.stdout), (0, "36.0\n"), done.stderr)
        self.assertEqual(self.state(), ("finished", 4))

    def test_module_with_relative_imports(self):
        os.makedirs(self.path("pack/inner"), exist_ok=True)
        for name, text in (("pack/__init__.py", ""), ("pack/inner/__init__.py", "from ..leaf import value\n"), ("pack/leaf.py", "value = 5\n"),
                           ("pack/tool.py", "import sys, torch\nfrom .inner import value\nprint(torch.compile(lambda x: x * value)(torch.ones(1)).item(), sys.argv[1:])\n")):
            with open(self.path(name), "w") as out:
                out.write(text)
        done = fusebox("run", "--session", self.path("job.fusebox"), "-m", "pack.tool", "a", timeout=120, cwd=self.dir.name)
        self.assertEqual((done.returncode, done.stdout), (0, "5.0 ['a']\n"), done.stderr)

    def test_a_program_without_torch_gets_a_session_too(self):
        done = fusebox("run", "--session", self.path("job.fusebox"), "-c", "print(1)", timeout=120, cwd=self.dir.name)
        self.assertEqual((done.returncode, done.stdout), (0, "1\n"), done.stderr)
        self.assertEqual(self.state(), ("finished", 0))

    def test_bad_scripts(self):
        with open(self.path("bad.py"), "w") as out:
            out.write("x = = 1\n")
        for arguments, said in ((["bad.py"], "SyntaxError"), (["absent.py"], "absent.py"), (["-m", "no_such_module"], "no_such_module")):
            done = fusebox("run", "--session", self.path("job.fusebox"), *arguments, timeout=60, cwd=self.dir.name)
            self.assertIn(done.returncode, (1, 2, 3), arguments)
            self.assertIn(said, done.stderr)

    def test_full_disk(self):
        """The file cannot grow: the script runs on, and what was lost is said."""
        with open(self.path("job.py"), "w") as out:
            out.write("import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
                      "resource.setrlimit(resource.RLIMIT_FSIZE, (500000, 500000))\n" + self.HEAD +
                      "for i in range(30000): f(torch.ones(4))\nprint('done')\n")
        done = fusebox("run", "--session", self.path("job.fusebox"), self.path("job.py"), timeout=120, cwd=self.dir.name)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)
        self.assertRegex(done.stderr, r"full|lost|incomplete")
        self.assertEqual(fusebox("summary", self.path("job.fusebox")).returncode, 0)

    def test_recording_from_python(self):
        """fusebox.record() twice around calls of a model that was compiled before: each session is complete in itself."""
        done = self.go(f'''
import fusebox
g = torch.compile(lambda x: torch.tanh(x).sum(0), dynamic=False)
g(torch.ones(3, 3))
fusebox._recording.stop() if hasattr(fusebox, "_recording") else None
from fusebox import _recording
_recording.stop()
for name in ("a", "b"):
    with fusebox.record({self.dir.name!r} + "/" + name + ".fusebox"):
        g(torch.ones(3, 3))
        g(torch.ones(5 if name == "a" else 6, 3))
''')
        self.assertEqual(done.returncode, 0, done.stderr)
        # Entries that were there before are known once they run, or once their guards fail.
        for name, entries in (("a", 2), ("b", 3)):
            database = sqlite3.connect(self.path(name + ".fusebox"))
            self.assertEqual(database.execute("SELECT count(*), count(frame), count(file) FROM compiles").fetchone(), (entries,) * 3, name)
            # One call of each of two compilations: every kernel ran once.
            self.assertEqual(database.execute("SELECT count(*), min(launches), max(launches) FROM kernels").fetchone()[1:], (1, 1))
            self.assertEqual(database.execute("SELECT count(DISTINCT compile_id) FROM launches WHERE line IS NOT NULL").fetchone()[0], 2)
            self.assertEqual(database.execute("SELECT count(*) FROM calls WHERE frame IS NULL").fetchone()[0], 0)
            self.assertEqual(database.execute("SELECT count(*) FROM graphs WHERE stage = 'captured'").fetchone()[0], entries)
            self.assertGreaterEqual(database.execute("SELECT count(*) FROM guard_failures WHERE guard_id IS NOT NULL").fetchone()[0], 1)
            database.close()

    def test_cause_of_a_recompile_is_of_the_entry_that_came_nearest(self):
        """Only the global changes; the entry used last was made for another dtype, and fails at that."""
        done = self.go("""
G = 2.0
g = torch.compile(lambda x: (x * G).exp(), dynamic=False)
g(torch.ones(2, 3)); g(torch.ones(5, 3)); g(torch.ones(2, 3, dtype=torch.float64))
G = 3.0
g(torch.ones(2, 3))
""")
        self.assertEqual(done.returncode, 0, done.stderr)
        last = json.loads(fusebox("recompiles", "--json", self.path("job.fusebox")).stdout)["code_objects"][-1]
        cause = next(m for m in last["causes"] if m["failure"] == last["entries"][-1]["failure"])
        self.assertEqual((cause["kind"], cause["source"], cause["expected"], cause["found"]), ("CONSTANT_MATCH", "G['G']", "2.0", "3.0"))
        self.assertEqual(cause["entry"], last["entries"][0]["compile"])
        self.assertIn("found 3.0", fusebox("summary", self.path("job.fusebox")).stdout)

    def test_cause_of_a_recompile_is_what_alone_differs_from_an_entry(self):
        """Entries of earlier changes differ in these as well, and may check them first."""
        programs = {
            "L['self'].scale: expected 1.0, found 0.5": """
class Scaled(torch.nn.Module):
    scale = 1.0
    def forward(self, x, step):
        y = x * self.scale
        return y + 1 if step % 3 == 0 else y
m = Scaled(); m.scale = 1.0; g = torch.compile(m)
for step in range(5): g(torch.ones(4), step)
m.scale = 0.5
g(torch.ones(4), 5)
""",
            "L['flag']: expected False, found True": """
@torch.compile
def g(x, flag, names, cfg):
    y = x + 1 if flag else x
    for n in names: y = y + len(n)
    return y * cfg["a"]
for flag, names, a in ((True, ["a"], 1), (False, ["a"], 1), (False, ["a", "b"], 1), (False, ["a", "b"], 2), (True, ["a", "b"], 2)):
    g(torch.ones(4), flag, names, {"a": a})
""",
            "L['x']: expected Float[s0] strides [1] cpu, found Float[12] strides [1] cpu requires_grad": """
@torch.compile
def g(x, n): return (x * n).relu()
g(torch.ones(8), 1); g(torch.ones(12), 1); g(torch.ones(12, dtype=torch.float64), 1); g(torch.ones(12), 1.5); g(torch.ones(12), 2.5)
with torch.no_grad(): g(torch.ones(12), 1)
g(torch.ones(12, requires_grad=True), 1)
"""}
        for cause, program in programs.items():
            done = self.go(program)
            self.assertEqual(done.returncode, 0, done.stderr)
            summary = json.loads(fusebox("summary", "--json", self.path("job.fusebox")).stdout)
            last = summary["recompiles"][-1]
            self.assertEqual("{guard}: expected {expected}, found {found}".format(**last).split(" ", 1)[1], cause)

    def test_names_are_the_modules_own_behind_a_break_in_a_loop(self):
        """Layers that a loop over a ModuleList gives after a break are called by their place in the model."""
        done = self.go("""
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.n1 = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.n1(x).relu()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = layer(x)
            torch._dynamo.graph_break()
        return x


torch.compile(Net())(torch.ones(2, 4))
""")
        self.assertEqual(done.returncode, 0, done.stderr)
        database = sqlite3.connect(self.path("job.fusebox"))
        self.addCleanup(database.close)
        names = {name for name, in database.execute("SELECT name FROM nodes WHERE kind = 'placeholder'")}
        self.assertLessEqual({f"self.layers.{i}.n1.weight" for i in range(2)}, names)  # the third uses the code of the second
        self.assertFalse([n for n in names if "upcoming" in n])
        # Behind the break the loop's jump comes, which has no line of its own.
        self.assertEqual({line for line, in database.execute("SELECT f.line - p.line FROM t_frame f JOIN t_frame p ON p.id = f.parent_id")}, {3})
        modules = {module for module, in database.execute("SELECT module_path FROM nodes WHERE module_path <> ''")}
        self.assertLessEqual({f"layers.{i}.n1" for i in range(2)}, modules)

    def test_breaks_inside_a_library(self):
        os.makedirs(self.path("site-packages"))
        with open(self.path("site-packages/library.py"), "w") as out:
            out.write("import torch\n\ndef inner(x):\n    torch._dynamo.graph_break()\n    y = x + 1\n    torch._dynamo.graph_break()\n    return y\n\n"
                      "def work(x):\n    return inner(x * 2)\n")
        with open(self.path("user.py"), "w") as out:
            out.write("import torch, library\n\n@torch.compile\ndef step(x):\n    return library.work(x).sin()\n\nstep(torch.ones(3))\n")
        done = fusebox("run", "--session", self.path("user.fusebox"), self.path("user.py"), timeout=120,
                       env={**os.environ, "PYTHONPATH": self.path("site-packages")})
        self.assertEqual(done.returncode, 0, done.stderr)
        database = sqlite3.connect(self.path("user.fusebox"))
        self.addCleanup(database.close)
        rows = database.execute("SELECT file, line, col, json_extract(stack, '$[#-1].line') FROM graph_breaks").fetchall()
        self.assertEqual({row[3] for row in rows}, {4, 6})
        self.assertEqual({row[:3] for row in rows}, {(self.path("user.py"), 5, None)})
        text = fusebox("breaks", self.path("user.fusebox")).stdout
        self.assertIn(f"inside inner, at {self.path('site-packages/library.py')}:6", text)
        self.assertNotIn("host.py", text)

    def test_what_library_calls_make_is_freed(self):
        """Only what a graph hands out lives on; the rest of what convolutions and sorts make ends with its last use."""
        done = self.go("""
@torch.compile
def f(x, w):
    y = torch.conv2d(torch.conv2d(x, w, padding=1).relu(), w, padding=1)
    return torch.sort(y.flatten())[0].sin()

f(torch.randn(2, 8, 16, 16), torch.randn(8, 8, 3, 3))
""")
        self.assertEqual(done.returncode, 0, done.stderr)
        database = sqlite3.connect(self.path("job.fusebox"))
        self.addCleanup(database.close)
        # A copy into the layout of a convolution is made for that line.
        self.assertEqual(database.execute("SELECT count(*) FROM kernels WHERE file IS NULL OR line IS NULL").fetchone(), (0,))
        graph, = database.execute("SELECT DISTINCT graph_id FROM buffers WHERE kind = 'allocated'").fetchone()
        kinds = dict(database.execute("SELECT kind, count(*) FROM buffers WHERE graph_id = ? GROUP BY kind", [graph]))
        self.assertEqual((kinds["allocated"], kinds["owned"]), (4, 1))  # two convolutions, values and places of the sort; the sine
        shown = json.loads(fusebox("memory", self.path("job.fusebox"), "--graph", str(graph), "--json").stdout)
        self.assertLess(max(shown["alive_bytes"]), shown["allocated_bytes"] + shown["result_bytes"])

    def test_recompiles_inside_a_library(self):
        """A guard on a library's line is told at the program's line that led there, and nobody is told to edit the library."""
        done = self.go("""
net = torch.compile(torch.nn.Linear(4, 4))
net(torch.ones(2, 4))
net(torch.ones(3, 4))
with torch.no_grad(): net(torch.ones(3, 4))
""")
        self.assertEqual(done.returncode, 0, done.stderr)
        database = sqlite3.connect(self.path("job.fusebox"))
        self.addCleanup(database.close)
        with open(self.path("job.py")) as script:
            line = script.read().split("\n").index("net(torch.ones(3, 4))") + 1
        self.assertEqual(database.execute("SELECT DISTINCT file, line FROM guard_failures WHERE outcome = 'recompile' ORDER BY line").fetchall(),
                         [(self.path("job.py"), line), (self.path("job.py"), line + 1)])
        self.assertNotIn("/torch/", "".join(l for l in fusebox("recompiles", self.path("job.fusebox")).stdout.split("\n") if l.strip().startswith(("+++", "---"))))

    def test_what_advice_changes_runs_as_before(self):
        """Each diff that `recompiles` offers is applied: the program prints what it printed, gradients among it, and breaks no more often."""
        program = """
class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
    def forward(self, x):
        h = self.linear(x)
        if h.sum() > 0:
            h = h * 2
        return h

class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x):
        return self.inner(x).sum()

@torch.compile
def layer(linear, x):
    return linear(x).relu()

@torch.compile
def scaled(x, k, n):
    return x[n:] * k if k > 2.5 else x * n

torch.manual_seed(0)
outer = Outer()
net = torch.compile(outer)
layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
for n in (2, 3, 4):
    x = torch.ones(n, 4)
    net(x).backward()
    for linear in layers:
        x = layer(linear, x)
    x.sum().backward()
for n in range(2, 5): x = scaled(torch.ones(8), n / 2 + 1, n)
print([None if p.grad is None else round(p.grad.sum().item(), 3) for m in (outer, layers) for p in m.parameters()], x.sum().item())
"""
        done = self.go(program)
        self.assertEqual(done.returncode, 0, done.stderr)
        breaks = len(json.loads(fusebox("breaks", "--json", self.path("job.fusebox")).stdout)["breaks"])
        code = json.loads(fusebox("recompiles", "--json", self.path("job.fusebox")).stdout)["code_objects"]
        misses = [miss for each in code for miss in each["causes"]]
        titles = {advice["title"] for miss in misses for advice in miss["advice"]}
        self.assertLessEqual({"Expect one entry more", "Expect an entry with a gradient and one without", "Mark the dimension dynamic", "Mark what the program hands in"}, titles)
        diffs = {advice["diff"] for miss in misses for advice in miss["advice"] if advice["diff"]}
        self.assertTrue(any("mark_dynamic(x, 0)" in diff for diff in diffs), diffs)
        with open(self.path("job.py")) as script:
            text = script.read()
        for diff in sorted(diffs):
            with open(self.path("job.py"), "w") as script:
                script.write(text)
            subprocess.run(["patch", "--silent", self.path("job.py")], input=diff, text=True, check=True)
            again = fusebox("run", "--session", self.path("again.fusebox"), self.path("job.py"), timeout=120)
            self.assertEqual((again.returncode, again.stdout), (0, done.stdout), diff + again.stderr)
            self.assertLessEqual(len(json.loads(fusebox("breaks", "--json", self.path("again.fusebox")).stdout)["breaks"]), breaks, diff)

    def test_backend_of_stock_torch_compile(self):
        done = fusebox("run", "--engine", "stock", "--session", self.path("stock.fusebox"), "-c",
                       "import torch, fusebox\nf = torch.compile(lambda x: torch.sin(x) * 2, backend='fusebox')\nprint(f(torch.zeros(3)).sum().item())",
                       timeout=120, cwd=self.dir.name)
        self.assertEqual((done.returncode, done.stdout), (0, "0.0\n"), done.stderr)

    def test_kernels_of_one_name_in_two_graphs_of_stock(self):
        done = fusebox("run", "--engine", "stock", "--session", self.path("two.fusebox"), "-c",
                       "import torch\ndef f(x): return torch.sin(x) * 2\ndef g(x): return torch.sin(x) * 2\nf, g = torch.compile(f), torch.compile(g)\n"
                       "for _ in range(3): f(torch.zeros(300)), f(torch.zeros(300)), g(torch.zeros(300))", timeout=240, cwd=self.dir.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        asked = fusebox("query", self.path("two.fusebox"), "SELECT kind, launches FROM kernels WHERE name LIKE '%fused%' ORDER BY launches", "--format", "json")
        self.assertEqual([(k["kind"], k["launches"]) for k in json.loads(asked.stdout)], [("generated", 3), ("generated", 6)])


COMPARED = """
import torch

@torch.compile
def f(x):
    y = torch.tanh(x) * 2
    %s
    return y.relu() + x

for _ in range(12):
    f(torch.ones(64, 64))
"""


class Compared(unittest.TestCase):
    """Two versions of a program, and one program under three engines: what is named as the first difference is what was done."""

    @classmethod
    def setUpClass(cls):
        cls.dir = folder()
        for name, line in (("before", "pass"), ("after", "torch._dynamo.graph_break()")):
            os.mkdir(cls.path(name))
            with open(os.path.join(cls.path(name), "program.py"), "w") as out:
                out.write(COMPARED % line)
        cls.runs = {name: cls.record(name, engine) for name, engine in
                    (("before", "fusebox"), ("after", "fusebox"), ("before", "stock"), ("before", "eager"))
                    for name in [name + "-" + engine]}

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.dir.name, name)

    @classmethod
    def record(cls, run, engine):
        session = cls.path(run + ".fusebox")
        script = os.path.join(cls.path(run.split("-")[0]), "program.py")
        done = fusebox("run", "--engine", engine, "--session", session, script, timeout=170)
        assert done.returncode == 0, done.stderr
        return session

    def compare(self, a, b):
        done = fusebox("compare", "--json", self.runs[a], self.runs[b])
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def query(self, run, sql):
        return json.loads(fusebox("query", self.runs[run], sql, "--format", "json").stdout)

    def entries(self, comparison, subject, kind=None):
        return [e for e in comparison["entries"] if e["subject"] == subject and kind in (None, e["kind"])]

    def test_a_changed_line_explains_its_break(self):
        result = self.compare("before-fusebox", "after-fusebox")
        cause = result["cause"]
        self.assertTrue(cause["found"])
        root = result["entries"][cause["chain"][0]["entry"]]
        self.assertEqual((root["subject"], root["name"]), ("program", "program.py"))
        self.assertEqual(root["b"]["text"], "7: torch._dynamo.graph_break()")
        breaks = self.entries(result, "graph break", "added")
        self.assertEqual([b["b"]["place"]["line"] for b in breaks], [7])
        self.assertIn("graph break", cause["chain"][1]["text"])
        self.assertEqual(cause["explained"], cause["effects"])
        graphs = [e for e in result["entries"] if e["name"] == "graphs" and e["subject"] == "count"]
        self.assertEqual([(g["a"]["value"], g["b"]["value"]) for g in graphs], [(1, 2)])

    def test_ours_beside_stock(self):
        result = self.compare("before-fusebox", "before-stock")
        self.assertEqual((result["a"]["engine"], result["b"]["engine"]), ("fusebox", "stock"))
        functions = self.entries(result, "function")
        self.assertEqual([f["kind"] for f in functions], ["same"])  # the same function, though stock does not say its qualified name
        graphs = self.entries(result, "graph")
        self.assertEqual(len(graphs), 1)
        self.assertTrue(graphs[0]["a"] and graphs[0]["b"])
        self.assertEqual(self.entries(result, "node"), [])  # tanh, mul, relu, add on both sides
        kernels = self.entries(result, "kernel")
        self.assertEqual([(bool(k["a"]), bool(k["b"])) for k in kernels], [(True, True)])
        cause = result["cause"]
        named = [c["entry"] for c in cause["chain"]] + cause["others"]
        self.assertIn("engine", [result["entries"][e]["subject"] for e in named])
        for link in cause["chain"][1:]:  # both made one kernel of the same four nodes: it may be quicker, and is the same
            self.assertRegex(link["text"], r"^(kernel .* 4 nodes.* 4 nodes|a step of the program)")
        self.assertTrue(kernels[0]["a"]["time"]["count"] > 0 and kernels[0]["b"]["time"]["count"] > 0)  # both sides have run times
        timed = self.query("before-stock", "SELECT k.name, k.kind, k.compile_id, k.launches, g.launches AS grouped FROM kernels k JOIN fusion_groups g USING(kernel_id) "
                           "WHERE k.kind = 'generated'")
        self.assertEqual(len(timed), 1)
        self.assertTrue(timed[0]["launches"] >= 10 and timed[0]["launches"] == timed[0]["grouped"], timed)
        self.assertEqual(self.query("before-stock", "SELECT name FROM kernels WHERE name LIKE 'graph_%'"), [])  # they are the log's kernels now
        rows = json.loads(fusebox("query", self.runs["before-stock"], "SELECT text FROM source_files WHERE file LIKE '%program.py'", "--format", "json").stdout)
        self.assertEqual(rows[0]["text"], COMPARED % "pass")

    def test_beside_eager(self):
        result = self.compare("before-fusebox", "before-eager")
        self.assertTrue(any("no compiled functions" in limit for limit in result["limits"]))
        ran = self.query("before-eager", "SELECT name, kind, line, launches, total_ns FROM kernels ORDER BY total_ns DESC")
        self.assertLessEqual({"aten::tanh", "aten::relu"}, {r["name"] for r in ran})
        self.assertTrue(all(r["kind"] == "eager" and r["line"] and r["launches"] > 0 and r["total_ns"] > 0 for r in ran), ran)
        self.assertTrue(self.entries(result, "line"))  # so lines can be compared

    def test_run_both_and_compare(self):
        script = os.path.join(self.path("before"), "program.py")
        page = self.path("page.html")
        done = fusebox("compare", "--engines", "fusebox,eager", "--html", page, "--run", script, cwd=self.dir.name, timeout=170)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("program.py", done.stdout)
        self.assertTrue(os.path.getsize(page) > 1000)
        with open(self.path("fails.py"), "w") as out:
            out.write("import sys; sys.exit(7)")
        self.assertEqual(fusebox("compare", "--run", self.path("fails.py"), cwd=self.dir.name, timeout=170).returncode, 7)

    def test_steps_and_memory(self):
        why = json.loads(fusebox("why", "--json", self.runs["before-fusebox"]).stdout)
        self.assertFalse(why["whole_run"])
        self.assertGreaterEqual(why["steps"], 10)
        self.assertAlmostEqual(sum(r["ns"] for r in why["rows"]), why["step_ns"], delta=1)
        broken = json.loads(fusebox("why", "--json", self.runs["after-fusebox"]).stdout)
        self.assertIn("breaks", [r["kind"] for r in broken["rows"]])
        memory = json.loads(fusebox("memory", "--json", self.runs["before-fusebox"]).stdout)
        self.assertGreater(memory["measured"]["peak_rss_bytes"], memory["measured"]["start_rss_bytes"] // 2)
        self.assertEqual(len(memory["graphs"]), 1)
        self.assertEqual(memory["graphs"][0]["result_bytes"], 64 * 64 * 4)


if __name__ == "__main__":
    unittest.main()

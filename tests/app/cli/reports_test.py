"""summary, query, diagram, export, doctor, usage: output, --json and exit codes of the real program."""
import csv
import gzip
import io
import json
import os
import pty
import re
import shutil
import sqlite3
import stat
import subprocess
import unittest

from program import FUSEBOX, folder, fusebox, synthesize

DATA = os.path.join(os.path.dirname(__file__), "..", "..", "profiler", "importers", "data")
GPU_DATA = os.path.join(os.path.dirname(__file__), "..", "..", "profiler", "cupti", "data")
SUMMARY_KEYS = {"engine", "torch", "python", "device", "frames", "graphs", "graph_breaks", "recompiles", "kernels", "launches",
                "extern_calls", "compile_ms", "run_ms", "cache", "losses"}


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = folder()
        cls.session = synthesize(os.path.join(cls.dir.name, "s.fusebox"))

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def test_summary(self):
        text = fusebox("summary", self.session)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn("print of a traced tensor", text.stdout)
        self.assertIn("expected float32[8, 64], found float32[16, 64]", text.stdout)
        data = json.loads(fusebox("summary", "--json", self.session).stdout)
        self.assertLessEqual(SUMMARY_KEYS, set(data))
        self.assertEqual(set(data["compile_ms"]), {"capture", "aot", "inductor", "codegen", "total"})
        self.assertEqual(set(data["cache"]), {"hits", "misses", "bypasses", "disabled", "disabled_by"})
        self.assertEqual(data["launches"], 2000)
        self.assertEqual(data["graph_breaks"][0]["line"], 19)

    def test_gpu(self):
        graph = os.path.join(GPU_DATA, "graph.fusebox")
        text = fusebox("gpu", graph)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn("CUDA graphs", text.stdout)
        recordings = [g for g in json.loads(fusebox("gpu", "--json", graph).stdout)["cuda_graphs"] if g["event"] == "recorded"]
        self.assertTrue(recordings)
        most = max(recordings, key=lambda g: g["replays"])
        self.assertEqual(sum(n["device_ns"] for n in most["node_list"]), most["device_ns"])
        self.assertEqual(sum(n["node_count"] for n in most["node_list"]), most["nodes"])
        self.assertIn("No counters", fusebox("gpu", "--counters", graph).stdout)
        counted = os.path.join(GPU_DATA, "counters.fusebox")
        self.assertIn("DRAM read", fusebox("gpu", "--counters", counted).stdout)
        kernel = next(k for k in json.loads(fusebox("gpu", "--json", counted).stdout)["kernels"] if k["kind"] == "generated")
        self.assertGreater(kernel["counters"]["dram__bytes_read.sum"]["mean"], 1e6)
        code = json.loads(fusebox("gpu", "--json", "--code", str(kernel["kernel_id"]), counted).stdout)
        self.assertIn(".entry", code["assembly"])
        self.assertTrue(code["loop_ir"])
        self.assertTrue("EXIT" in code["sass"] if code["sass"] else "nvdisasm" in code["sass_missing"], code["sass_missing"])
        self.assertEqual(fusebox("gpu", "--code", "99999", counted).returncode, 2)

    def test_recompiles(self):
        text = fusebox("recompiles", self.session)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn("size 0: 8, now 16", text.stdout)
        data = json.loads(fusebox("recompiles", "--json", self.session).stdout)
        (code,) = data["code_objects"]
        self.assertEqual([e["attempt"] for e in code["entries"]], [0, 1])
        (cause,) = code["causes"]
        self.assertEqual((cause["kind"], cause["expected"], cause["found"]), ("TENSOR_MATCH", "float32[8, 64]", "float32[16, 64]"))
        self.assertTrue(cause["advice"])
        first, second = (str(e["compile"]) for e in code["entries"])
        guards = json.loads(fusebox("recompiles", "--json", self.session, "--guards", first, second).stdout)["guards"]
        self.assertEqual([g["a"] for g in guards if g["label"] == "TENSOR_MATCH"], ["float32[8, 64]"])
        self.assertEqual(fusebox("recompiles", self.session, "--guards", "99").returncode, 2)

    def test_shapes(self):
        log = os.path.join(DATA, "sizes.log.gz")
        text = fusebox("shapes", log)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn("s77 = L['x'].size()[0], at least 2, 10 at capture", text.stdout)
        self.assertIn("s77 was specialised to 5 at /tmp/demo/sizes.py:13", text.stdout)
        data = json.loads(fusebox("shapes", "--json", log).stdout)
        frames = {frame["name"]: frame for frame in data["frames"]}
        (rows,) = [v for v in frames["table"]["varied"]]
        self.assertEqual((rows["source"], rows["values"], rows["outcome"]), ("L['x'].size()[0]", [4, 5, 6, 7], "specialised"))
        self.assertEqual(rows["cost"]["recompiles"], 3)
        self.assertTrue(rows["advice"])
        relation = frames["scale"]["entries"][1]["relations"][0]
        self.assertEqual((relation["relation"], relation["line"], relation["cost"]["recompiles"]), ("s77 <= 64", 6, 1))
        self.assertEqual((data["symbols"], data["specialisations"]), (24, 5))
        self.assertIn("became symbolic (s77): it was 8, now 10", fusebox("recompiles", log).stdout)
        varied = json.loads(fusebox("shapes", "--json", self.session).stdout)["frames"][0]["varied"]
        self.assertEqual([(v["source"], v["values"], v["outcome"]) for v in varied], [("L['x'].size()[0]", [8, 16], "static")])
        self.assertEqual(fusebox("shapes", "/nonexistent.fusebox").returncode, 3)

    def test_breaks(self):
        text = fusebox("breaks", "--bytecode", self.session)
        self.assertEqual(text.returncode, 0, text.stderr)
        for words in ("print of a traced tensor", "+    if not torch.compiler.is_compiling():", ">>    34 CALL"):
            self.assertIn(words, text.stdout)
        (one,) = json.loads(fusebox("breaks", "--json", self.session).stdout)["breaks"]
        self.assertEqual((one["line"], one["count"], one["opcode"]), (19, 1, "CALL"))
        self.assertTrue(any(a["diff"] for a in one["advice"]))

    def test_find(self):
        data = json.loads(fusebox("find", "--json", self.session, "GELU").stdout)
        gelu = sqlite3.connect(self.session).execute("SELECT count(*) FROM nodes WHERE lower(name) LIKE '%gelu%' OR lower(op) LIKE '%gelu%'").fetchone()[0]
        self.assertEqual(len(data["nodes"]["hits"]) + 100 * data["nodes"]["more"], min(gelu, 100) + 100 * (gelu > 100))
        self.assertEqual([hit["line"] for hit in data["lines"]["hits"]], [12])
        self.assertEqual(data["kernels"]["hits"][0]["title"], "fused_add_gelu_mul_0")
        self.assertEqual(fusebox("find", self.session, "no%such_thing").stdout, "Nothing found.\n")

    def test_find_searches_what_is_shown(self):
        session = self.path("words.fusebox")
        shutil.copy(self.session, session)
        with sqlite3.connect(session) as database:
            database.execute("UPDATE t_graph_break SET reason = 'the number that aten::_local_scalar_dense reads is needed'")
        database.close()
        for words in ("tensor.ITEM", "_local_scalar_dense", "is needed"):
            hits = json.loads(fusebox("find", "--json", session, words).stdout)["breaks"]["hits"]
            self.assertEqual([hit["detail"] for hit in hits], ["the number that Tensor.item() reads is needed"], words)

    def test_find_has_operators_of_traces(self):
        trace = self.path("operators.json")
        with open(trace, "w") as out:
            json.dump({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::op17", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5} for i in range(3)]}, out)
        (hit,) = json.loads(fusebox("find", "--json", trace, "aten::op1").stdout)["operators"]["hits"]
        self.assertEqual((hit["title"], hit["detail"]), ("aten::op17", "cpu_op, 3 ×"))

    def test_breaks_are_counted_alike_alone_and_beside_others(self):
        session = self.path("breaks.fusebox")
        shutil.copy(self.session, session)
        with sqlite3.connect(session) as database:  # a second call that stops at the same place
            columns = [row[1] for row in database.execute("PRAGMA table_info(t_graph_break)") if row[1] != "id"]
            database.execute(f"INSERT INTO t_graph_break({', '.join(columns)}) SELECT {', '.join(columns)} FROM t_graph_break")
        database.close()
        alone = re.search(r"^  breaks +(\d+)$", fusebox("summary", session).stdout, re.M).group(1)
        header, row, _ = fusebox("summary", session, self.session).stdout.split("\n", 2)
        self.assertEqual(row[header.index("breaks") - 1:header.index("breaks") + 6].strip(), alone)

    def test_sessions_that_are_no_ranks(self):
        text = fusebox("summary", self.session, synthesize(self.path("other.fusebox"), 100)).stdout
        self.assertNotIn("rank", text)
        self.assertEqual([line.split()[0] for line in text.split("\n")[1:3]], ["1", "2"])
        trace = os.path.join(DATA, "cudagraphs.json.gz")
        report = json.loads(fusebox("summary", "--json", self.session, trace).stdout)
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [None, None])
        self.assertEqual(report["ranks"][1]["file"], trace)

    def test_query_agrees_with_plain_sqlite(self):
        sql = "SELECT kernel_id, name, launches, total_ns FROM kernels ORDER BY kernel_id"
        expected = sqlite3.connect(self.session).execute(sql).fetchall()
        self.assertEqual(len(expected), 48)
        rows = json.loads(fusebox("query", self.session, sql, "--format", "json").stdout)
        self.assertEqual([tuple(r.values()) for r in rows], expected)
        table = list(csv.reader(io.StringIO(fusebox("query", self.session, sql, "--format", "csv").stdout)))
        self.assertEqual(table[0], ["kernel_id", "name", "launches", "total_ns"])
        self.assertEqual([tuple(map(str, r)) for r in expected], [tuple(r) for r in table[1:]])
        text = fusebox("query", self.session, sql, "--limit", 3).stdout
        self.assertIn("(3 rows, cut by --limit)", text)

    def test_query_drops_no_column_of_a_name_that_comes_again(self):
        rows = json.loads(fusebox("query", self.session, "SELECT 1 AS a, 2 AS a, 3 AS b, 4 AS a", "--format", "json").stdout)
        self.assertEqual(rows, [{"a": 1, "a:1": 2, "b": 3, "a:2": 4}])

    def test_query_holds_no_rows(self):
        def peak(rows, form):
            sql = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i, i * 2 AS b, 'a text that is longer than most' AS c FROM n"
            with open(self.path("rows"), "w") as out:
                process = subprocess.Popen([FUSEBOX, "query", self.session, sql, "--format", form], stdout=out)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            with open(self.path("rows")) as out:
                self.assertGreater(sum(1 for _ in out), rows)
            return usage.ru_maxrss
        for form in ("table", "csv", "json"):
            self.assertLess(peak(400_000, form), peak(20_000, form) + 8_000, form)  # KiB
        text = fusebox("query", self.session, "SELECT 7 AS number, 'x' AS name UNION ALL SELECT 10, 'yy'").stdout
        self.assertEqual(text, "number  name\n------  ----\n     7  x\n    10  yy\n(2 rows)\n")

    def test_query_refuses(self):
        for sql in ("DELETE FROM t_launch", "SELECT nothing FROM nowhere", "SELECT 1; SELECT 2"):
            result = fusebox("query", self.session, sql)
            self.assertEqual(result.returncode, 2, sql)
            self.assertTrue(result.stderr)
            self.assertEqual(result.stdout, "")

    @unittest.skipUnless(shutil.which("dot"), "dot is not installed")
    def test_diagram(self):
        starts = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF", "dot": b"digraph"}
        for ending, start in starts.items():
            out = self.path("g." + ending)
            result = fusebox("diagram", self.session, "-o", out, "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(json.loads(result.stdout)["stage"], "post_fusion")
            with open(out, "rb") as file:
                self.assertTrue(file.read().startswith(start), ending)
        with open(self.path("g.svg")) as file:
            svg = file.read()
        for text in ("gelu", "float32 [8, 64]", "fused_add_gelu_mul_0", "cluster"):
            self.assertIn(text, svg)
        captured = json.loads(fusebox("diagram", self.session, "--stage", "captured", "-o", out, "--json").stdout)
        self.assertEqual((captured["stage"], captured["groups"]), ("captured", 24))

    def test_diagram_complaints(self):
        self.assertEqual(fusebox("diagram", self.session, "-o", "x.gif").returncode, 2)
        self.assertEqual(fusebox("diagram", self.session, "--stage", "nonsense", "-o", "x.svg").returncode, 2)
        self.assertEqual(fusebox("diagram", self.session, "--graph", 999, "-o", "x.dot").returncode, 3)
        unwritable = fusebox("diagram", self.session, "-o", "/nonexistent/x.svg")
        self.assertEqual(unwritable.returncode, 3)
        self.assertIn("/nonexistent/x.svg", unwritable.stderr)

    def test_diagram_without_dot(self):
        for ending, start in {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}.items():
            out = self.path("own." + ending)
            own = fusebox("diagram", self.session, "-o", out, env={**os.environ, "PATH": "/nonexistent"})
            self.assertEqual(own.returncode, 0, own.stderr)
            self.assertIn("graphviz", own.stdout)
            with open(out, "rb") as file:
                self.assertTrue(file.read().startswith(start), ending)
        with open(self.path("own.svg")) as file:
            svg = file.read()
        for text in ("gelu", "f32[8, 64]"):
            self.assertIn(text, svg)
        report = json.loads(fusebox("diagram", self.session, "-o", out, "--json", env={**os.environ, "PATH": "/nonexistent"}).stdout)
        self.assertEqual(report["layout"], "own")

    def test_diagram_of_ten_thousand_nodes(self):
        large = self.path("large.fusebox")
        shutil.copy(self.session, large)
        database = sqlite3.connect(large)
        database.execute("INSERT INTO t_graph(id, compile_id, stage, direction, name, node_count) VALUES(777, 1, 'captured', 'inference', 'large', 10000)")
        database.executemany("INSERT INTO t_node(id, graph_id, position, name, kind, op, dtype, shape) VALUES(?, 777, ?, ?, 'call', 'aten::add', 'float32', '[8]')",
                             [(900000 + i, i, f"add_{i}") for i in range(10000)])
        database.executemany("INSERT INTO t_edge VALUES(777, ?, ?, 0, 0)",
                             [(900000 + source, 900000 + i) for i in range(1, 10000) for source in {i - 1, i // 2}])
        database.commit()
        database.close()
        for ending in ("svg", "png", "pdf", "dot"):
            out = self.path("large." + ending)
            result = fusebox("diagram", large, "--graph", 777, "-o", out, "--json", timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(json.loads(result.stdout)["nodes"], 10000)
            self.assertGreater(os.path.getsize(out), 10000)
            if ending == "png":  # too large for pixels: said, with what to do
                self.assertLess(json.loads(result.stdout)["scale"], 1)
                self.assertIn("scaled down", result.stderr)
                self.assertIn(".svg or .pdf", result.stderr)
            else:
                self.assertNotIn("scaled down", result.stderr)
        with open(self.path("large.dot")) as file:
            self.assertIn("add_9999", file.read())

    def test_diagram_does_not_wait_for_a_slow_dot(self):
        bin_dir = self.path("slowbin")
        os.mkdir(bin_dir)
        with open(os.path.join(bin_dir, "dot"), "w") as file:
            file.write("#!/bin/sh\nexec sleep 60\n")
        os.chmod(os.path.join(bin_dir, "dot"), stat.S_IRWXU)
        slow = fusebox("diagram", self.session, "-o", self.path("x.svg"), env={**os.environ, "PATH": bin_dir + ":/usr/bin:/bin"},
                       timeout=30)
        self.assertEqual(slow.returncode, 0)
        self.assertIn("10 s", slow.stdout)

    def test_export(self):
        out = self.path("t.json")
        self.assertEqual(fusebox("export", self.session, "-o", out).returncode, 0)
        with open(out) as file:
            trace = json.load(file)
        spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(sum(e["cat"] == "kernel" for e in spans), 2000)
        total = sqlite3.connect(self.session).execute("SELECT sum(dur_ns) FROM launches").fetchone()[0]
        self.assertAlmostEqual(sum(e["dur"] for e in spans if e["cat"] == "kernel"), total / 1000, delta=5)
        self.assertIn("post_fusion", {e["name"] for e in spans})
        out = self.path("t.csv")
        self.assertEqual(fusebox("export", self.session, "-o", out).returncode, 0)
        with open(out, newline="") as file:
            self.assertEqual(len(list(csv.DictReader(file))), 2000)
        self.assertEqual(fusebox("export", self.session, "-o", self.path("t.xyz")).returncode, 2)
        for name, counted in (("t.html", "rows of tables"), ("t.pftrace", "events")):
            done = fusebox("export", self.session, "-o", self.path(name))
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, rf"{name}: \d+ {counted}\n")
            self.assertGreater(os.path.getsize(self.path(name)), 1000)
        self.assertEqual(fusebox("export", self.session, "--redact", "-o", self.path("t.json")).returncode, 2)
        self.assertEqual(fusebox("export", self.session, "--redact", "-o", self.path("given.fusebox")).returncode, 0)
        self.assertEqual(json.loads(fusebox("summary", "--json", self.path("given.fusebox")).stdout)["launches"], 2000)

    def test_compressed_exports(self):
        for ending in (".json", ".csv", ".html"):
            plain, packed = self.path("plain" + ending), self.path("packed" + ending + ".gz")
            for output in (plain, packed):
                self.assertEqual(fusebox("export", self.session, "-o", output).returncode, 0)
            with open(plain, "rb") as expected, gzip.open(packed, "rb") as found:
                self.assertTrue(expected.read() == found.read(), ending)
        self.assertEqual(fusebox("export", self.session, "-o", "/dev/full/x.json.gz").returncode, 3)

    def test_why_and_memory(self):
        text = fusebox("why", self.session)
        self.assertEqual(text.returncode, 0, text.stderr)
        for flags in ([], ["--run"]):
            why = json.loads(fusebox("why", "--json", *flags, self.session).stdout)
            self.assertAlmostEqual(sum(r["ns"] for r in why["rows"]), why["step_ns"], delta=1 + 1e-9 * why["step_ns"])
            self.assertAlmostEqual(sum(r["share"] for r in why["rows"]), 1)
        memory = json.loads(fusebox("memory", "--json", self.session).stdout)
        self.assertEqual(set(memory), {"graphs", "measured"})
        self.assertEqual(fusebox("memory", self.session).returncode, 0)
        self.assertEqual(fusebox("memory", "--graph", 99999, self.session).returncode, 3)

    def test_compare(self):
        other = synthesize(self.path("other.fusebox"))
        page = self.path("compared.html")
        text = fusebox("compare", self.session, other, "--html", page)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn(self.session, text.stdout)
        with open(page) as file:
            text_of_page = file.read()
        self.assertIn("Two sessions compared", text_of_page)
        self.assertRegex(text_of_page, "Content-Security-Policy[^>]*default-src 'none'")
        same = json.loads(fusebox("compare", "--json", self.session, self.session).stdout)
        self.assertEqual((same["differences"], same["cause"]["found"]), (0, False))
        self.assertEqual(same["a"]["path"], self.session)
        self.assertEqual(fusebox("compare", "--exit-code", self.session, self.session).returncode, 0)
        stock = os.path.join(DATA, "recompile.log.gz")
        differ = fusebox("compare", "--exit-code", stock, os.path.join(DATA, "graph_break.log.gz"), env={**os.environ, "XDG_CACHE_HOME": self.path("cache-compare")})
        self.assertEqual(differ.returncode, 1, differ.stderr)
        self.assertIn("different programs", differ.stdout)
        self.assertEqual(fusebox("compare", self.session).returncode, 2)
        self.assertEqual(fusebox("compare", self.session, "/nonexistent").returncode, 3)
        self.assertEqual(fusebox("compare", "--engines", "fusebox,nonsense", "--run", "x.py").returncode, 2)

    def test_names_are_no_commands_for_a_terminal(self):
        name = "relu\x1b]0;title\x07\x1b[2J"
        events = [{"ph": "X", "cat": "kernel", "name": name + str(i), "pid": 0, "tid": 7, "ts": 100 * (i + 1), "dur": 10 + 40 * i,
                   "args": {"device": 0, "stream": 7, "correlation": i}} for i in range(3)]
        events += [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 50, "dur": 400, "args": {}}]
        files = [self.path("terminal.json"), self.path("terminal2.json")]
        for file, kept in zip(files, (events, events[1:])):
            with open(file, "w") as out:
                json.dump({"traceEvents": kept, "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}]}, out)
        env = {**os.environ, "XDG_CACHE_HOME": self.path("cache-terminal")}
        for command in (["gpu", files[0]], ["gpu", "--counters", files[0]], ["compare", *files]):
            result = fusebox(*command, env=env)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("relu ", result.stdout, command)
            self.assertNotRegex(result.stdout, "[\x1b\x07]", command)
        query = ["query", "--format", "csv", files[0], "SELECT name FROM cpu_events"]
        self.assertIn(name, fusebox(*query, env=env).stdout)  # a program gets each byte
        terminal, end = pty.openpty()
        try:
            subprocess.run([FUSEBOX, *query], env=env, stdout=end, timeout=60, check=True)
            shown = os.read(terminal, 4096)
        finally:
            os.close(terminal)
            os.close(end)
        self.assertIn(b"relu ", shown)
        self.assertNotIn(b"\x1b", shown)

    def test_texts_are_no_formulas(self):
        rows = fusebox("query", "--format", "csv", self.session, "SELECT '=HYPERLINK(1)' AS a, '+1' AS b, 'plain' AS c").stdout
        self.assertEqual(rows.splitlines(), ["a,b,c", "'=HYPERLINK(1),'+1,plain"])

    def test_foreign_files(self):
        env = {**os.environ, "XDG_CACHE_HOME": self.path("cache")}
        log, trace = (os.path.join(DATA, name) for name in ("graph_break.log.gz", "compiled_plain.json.gz"))
        data = json.loads(fusebox("summary", "--json", log, env=env).stdout)
        self.assertEqual((data["engine"], data["frames"], len(data["graph_breaks"]), data["kernels"], data["kernels_run"]), ("stock", 6, 3, 5, None))
        self.assertIn("  run       not recorded; 5 kernels and 1 extern call in the code that was made\n", fusebox("summary", log, env=env).stdout)
        self.assertIn("TORCH_TRACE", data["imported_format"])
        self.assertEqual(json.loads(fusebox("summary", "--json", trace, env=env).stdout)["launches"], 48)
        rows = fusebox("query", "--format", "csv", log, "SELECT line FROM graph_breaks", env=env).stdout.split()
        self.assertEqual(rows, ["line", "8", "8", "8", "16"])
        self.assertEqual(fusebox("diagram", log, "-o", self.path("foreign.dot"), env=env).returncode, 0)
        self.assertEqual(fusebox("export", log, "-o", self.path("foreign.html"), env=env).returncode, 0)
        with open(self.path("foreign.html")) as page:  # its graphs are drawn
            pictures = [part.split("</div>")[0] for part in page.read().split('<div class=graph>')[1:]]
        self.assertTrue(pictures and all(picture.startswith("<svg") for picture in pictures))
        names = fusebox("query", "--format", "csv", log, "SELECT name FROM nodes WHERE kind = 'call' AND graph_id = (SELECT min(graph_id) FROM graphs WHERE stage = 'post_grad')", env=env).stdout.split()[1:]
        self.assertTrue(names)
        drawn = [set(re.findall(r">\s*(\w+)\s*</text>", picture)) for picture in pictures]
        self.assertTrue(any(set(names) <= texts for texts in drawn), (names, drawn))
        self.assertEqual(len(os.listdir(os.path.join(self.path("cache"), "fusebox", "imported"))), 2)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_output_that_cannot_be_written(self):
        for command in (["query", self.session, "SELECT * FROM nodes"], ["summary", self.session], ["summary", "--json", self.session],
                        ["recompiles", self.session], ["breaks", self.session], ["why", self.session], ["compare", self.session, self.session], ["--help"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([FUSEBOX, *command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(done.returncode, 3, command)
            self.assertIn("standard output", done.stderr)
        # Who has read enough is no failure.
        done = subprocess.run(["bash", "-c", '"$0" query "$1" "SELECT * FROM nodes" | head -1', FUSEBOX, self.session], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr, done.stdout.count("\n")), (0, "", 1))

    def test_unreadable_input(self):
        with open(self.path("text.fusebox"), "w") as file:
            file.write("not a session\n" * 100)
        open(self.path("empty.fusebox"), "w").close()
        with open(self.session, "rb") as file:
            whole = file.read()
        with open(self.path("cut.fusebox"), "wb") as file:
            file.write(whole[:len(whole) // 2])
        with open(self.path("newer.fusebox"), "wb") as file:
            file.write(whole[:60] + (9).to_bytes(4, "big") + whole[64:])
        words = {"text": "not a Fusebox session", "empty": "empty", "cut": "cut short", "newer": "newer", "missing": "no such file"}
        for name, word in words.items():
            path = self.path(name + ".fusebox")
            for command in (["summary", path], ["summary", "--json", path], ["query", path, "SELECT 1"],
                            ["diagram", path, "-o", "x.svg"], ["export", path, "-o", self.path("x.json")], ["open", path]):
                result = fusebox(*command)
                self.assertEqual(result.returncode, 3, command)
                self.assertIn(word, result.stderr)
                self.assertIn(path, result.stderr)
                self.assertEqual(result.stdout, "")

    def test_a_compressed_session_is_read(self):
        packed, cut = self.path("packed.fusebox.gz"), self.path("half.fusebox.gz")
        with open(self.session, "rb") as file, gzip.open(packed, "wb") as out:
            shutil.copyfileobj(file, out)
        plain, read = (json.loads(fusebox("summary", "--json", path).stdout) for path in (self.session, packed))
        self.assertEqual(read, plain)
        self.assertIn(packed + ": there is no graph 999", fusebox("diagram", packed, "--graph", 999, "-o", self.path("x.svg")).stderr)
        with open(packed, "rb") as file, open(cut, "wb") as out:
            out.write(file.read()[:-2000])
        result = fusebox("summary", cut)
        self.assertEqual(result.returncode, 3)
        self.assertIn(cut + ": the compressed file is cut short", result.stderr)

    def test_what_is_advised_for_a_damaged_session_works(self):
        cut = self.path("end_is_missing.fusebox")
        with open(self.session, "rb") as file, open(cut, "wb") as out:
            out.write(file.read()[:-4096])
        advised = re.search(r"`sqlite3 FILE (\S+)`", fusebox("summary", cut).stderr).group(1)
        if shutil.which("sqlite3"):
            rescued = subprocess.run(["sqlite3", cut, advised], capture_output=True, text=True, timeout=60).stdout
            self.assertIn("INSERT INTO t_frame", rescued)

    def test_a_trace_without_graphs_is_no_program_that_was_not_compiled(self):
        trace = os.path.join(DATA, "cudagraphs.json.gz")
        result = fusebox("diagram", trace, "-o", self.path("x.svg"))
        self.assertEqual(result.returncode, 3)
        self.assertTrue(result.stderr.startswith(f"fusebox: {trace}: "), result.stderr)
        self.assertIn("a format that holds no graphs (Kineto", result.stderr)
        self.assertNotIn("nothing was compiled", result.stderr)

    def test_a_report_needs_no_desktop(self):
        environment = {key: value for key, value in os.environ.items() if key not in ("XDG_RUNTIME_DIR", "QT_QPA_PLATFORM")}
        self.assertEqual(fusebox("export", self.session, "-o", self.path("desktop.html"), env=environment).stderr, "")

    def test_a_cache_is_imported_from_a_file(self):
        result = fusebox("cache", "import", self.dir.name, "--dir", self.path("cached"))
        self.assertEqual(result.returncode, 3)
        self.assertIn(f"{self.dir.name}: Is a directory", result.stderr)

    def test_a_compiled_program_takes_the_place_of_nothing_else(self):
        program = self.path("model.pt2")
        shutil.copy(os.path.join(DATA, "exported.pt2"), program)
        for output, said in ((program, "the program itself"), (self.dir.name, "a directory")):
            result = fusebox("compile", program, "-o", output)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"{output}: this is {said}", result.stderr)
        with open(program, "rb") as kept, open(os.path.join(DATA, "exported.pt2"), "rb") as was:
            self.assertEqual(kept.read(), was.read())

    def test_doctor(self):
        result = fusebox("doctor", "--json", timeout=120)
        self.assertEqual(result.returncode, 0 if json.loads(result.stdout)["ok"] else 1, result.stderr)
        subjects = {f["subject"]: f for f in json.loads(result.stdout)["findings"]}
        self.assertLessEqual({"python", "cpu", "cuda driver", "cupti", "dot", "working directory", "display"}, set(subjects))
        self.assertIn(subjects["cpu"]["state"], {"works", "absent", "broken"})
        broken = fusebox("doctor", "--json", "--python", "/no/python")
        self.assertEqual(broken.returncode, 1)
        wrong = json.loads(broken.stdout)
        self.assertFalse(wrong["ok"])

    def test_usage(self):
        self.assertRegex(fusebox("--version").stdout, r"^fusebox \d+\.\d+\.\d+\n$")
        self.assertIn("fusebox run train.py", fusebox("--help").stdout)
        views = set(re.split(r"\s+", fusebox("query", "--help").stdout.replace(".", " ")))
        known = json.loads(fusebox("query", self.session, "--format", "json", "SELECT name FROM sqlite_temp_schema WHERE type = 'view' UNION SELECT name FROM sqlite_schema WHERE type = 'view'").stdout)
        self.assertLessEqual({row["name"] for row in known}, views)
        self.assertIn("cuda_graph_nodes", views)
        for command in ("run", "open", "summary", "diagram", "query", "export", "recompiles", "breaks", "doctor", "debug", "compare"):
            result = fusebox(command, "--help")
            self.assertEqual(result.returncode, 0, command)
        for wrong in (["nonsense"], ["--nonsense"], ["summary"], ["query", self.session], ["diagram", self.session],
                      ["run"], ["run", "--engine", "other", "x.py"], ["debug"], ["compare", "a"]):
            result = fusebox(*wrong)
            self.assertEqual(result.returncode, 2, wrong)
            self.assertTrue(result.stderr)
        self.assertIn("there is no command 'nonsense'", fusebox("nonsense", "x").stderr)
        unstarted = fusebox("compare", "--run", self.path("absent.py")).stderr
        self.assertIn("no such script", unstarted)
        self.assertIn("the run under fusebox ended with code 3; nothing is compared", unstarted)
        for wrong in (["query", self.session, "SELECT 1", "--limit", -5], ["diagram", self.session, "--graph", -1, "-o", "x.svg"],
                      ["replay", self.session, "--graph", -1], ["numerics", self.session, "--graph", 0], ["memory", self.session, "--graph", -1],
                      ["gpu", self.session, "--gaps", -1], ["recompiles", self.session, "--guards", -1]):
            result = fusebox(*wrong)
            self.assertEqual((result.returncode, result.stdout), (2, ""), wrong)
            self.assertIn("--", result.stderr, wrong)
        environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
        headless = fusebox("open", self.session, env=environment)
        self.assertEqual(headless.returncode, 2)
        self.assertIn("no display", headless.stderr)


if __name__ == "__main__":
    unittest.main()

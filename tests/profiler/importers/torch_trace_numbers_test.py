"""Every number that tlparse prints of a TORCH_TRACE log, worked out of the log's own lines here and looked for in what the importer stored.

Where the program `tlparse` is on the PATH, the pages that it writes are compared too.
Usage: torch_trace_numbers_test.py [LOG or FOLDER ...] (none: those of data/)."""
import collections, gzip, html, itertools, json, math, os, pathlib, re, shutil, subprocess, sys, tempfile, unittest

BIN = os.environ["FUSEBOX_BIN"]
DATA = pathlib.Path(__file__).parent / "data"
LINE = re.compile(r"^[VIWEC]\d{4} [\d:.]+ +\d+ [^\]]*?:\d+\] (\{.*)$")
CONTEXT = {"compiled_autograd_id", "frame_id", "frame_compile_id", "attempt", "has_payload", "stack", "rank", "payload", "key"}
# A phase as the metrics call it, and its span.
PHASES = {"entire_frame_compile_time_s": "entire_frame_compile", "backend_compile_time_s": "backend_compile",
          "inductor_compile_time_s": "inductor_compile", "code_gen_time_s": "code_gen"}
# What tlparse counts or lists beside a compile's own records.
NO_FILES = {"str", "dynamo_start", "chromium_event", "describe_storage", "describe_tensor", "describe_source", "guard_added_fast",
            "symbolic_shape_specialization", "create_symbol", "create_unbacked_symbol", "compilation_metrics_runtime",
            "bwd_compilation_metrics_runtime", "dump_file", "expression_created", "guard_added", "link"}


def read(path):
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")
    found = []
    for line in text.split("\n"):
        if match := LINE.match(line):
            record = json.loads(match[1])
            record["key"] = next((k for k in record if k not in CONTEXT), None)
            record["payload"] = []
            found.append(record)
        elif line.startswith("\t") and found:
            found[-1]["payload"].append(line[1:])
    return found


def log_id(record):
    """As PyTorch's logs and tlparse print it."""
    if record.get("frame_id") is None: return None
    autograd, attempt = record.get("compiled_autograd_id"), record.get("attempt") or 0
    return f"[{'' if autograd is None else f'!{autograd}/'}{record['frame_id']}/{record['frame_compile_id']}{f'_{attempt}' if attempt else ''}]"


def values(record): return record[record["key"]]


def ask(path, sql):
    done = subprocess.run([BIN, "query", str(path), sql, "--format", "json"], capture_output=True, text=True)
    if done.returncode: raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def truth(text):
    """What an expression over symbols says for many values of them; None where it is none."""
    text = text.replace(" & ", " and ")
    names = sorted(set(re.findall(r"\b[a-z]+\d+\b", text)))
    words = {"Eq": lambda a, b: a == b, "Ne": lambda a, b: a != b, "Max": max, "Min": min, "max": max, "min": min,
             "Mod": lambda a, b: a % b, "PythonMod": lambda a, b: a % b, "FloorDiv": lambda a, b: a // b}
    try:
        return tuple(names), tuple(bool(eval(text, dict(words, **dict(zip(names, at)))))
                                   for at in itertools.product((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 63, 64, 65, 128, 129, 4096), repeat=len(names)))
    except Exception:
        return None


class Numbers(unittest.TestCase):
    maxDiff = 2000

    def __init__(self, name, path):
        super().__init__(name)
        self.path, self.records = path, read(path)

    def __str__(self): return f"{self._testMethodName} of {self.path.name}"

    def metrics(self, records, *keys):
        return [r for r in records if r["key"] in (keys or ("compilation_metrics", "bwd_compilation_metrics"))]

    def test_metrics_are_as_the_log_has_them(self):
        path, records = self.path, self.records
        want = collections.Counter()
        for r in self.metrics(records, "compilation_metrics", "bwd_compilation_metrics", "compilation_metrics_runtime", "bwd_compilation_metrics_runtime"):
            for name, value in values(r).items(): want[r["key"], name, json.dumps(value, sort_keys=True)] += 1
        got = collections.Counter()
        for row in ask(path, "SELECT kind, name, value FROM compile_metrics WHERE kind GLOB '*compilation_metrics*'"):
            got[row["kind"], row["name"], row["value"]] += 1
        self.assertEqual(sum(want.values()), sum(n for (_, name, _), n in got.items() if name not in CONTEXT))
        stored = {(kind, name, str(value)) for kind, name, value in got}
        for kind, name, value in want:
            plain = json.loads(value)
            shown = "None" if plain is None else str(int(plain)) if isinstance(plain, bool) else str(plain)
            self.assertTrue((kind, name, shown) in stored or
                            any(k == kind and n == name and self.same(plain, v) for k, n, v in got), (kind, name, value[:200]))

    def same(self, plain, value):
        if isinstance(plain, (list, dict)): return isinstance(value, str) and json.loads(value) == plain
        return isinstance(plain, float) and isinstance(value, (int, float)) and math.isclose(plain, value)

    def test_compiles_have_their_ids_states_and_lengths(self):
        path, records = self.path, self.records
        got = ask(path, "SELECT log_id, kind = 'backward' AS back, status, error, dur_ns FROM compiles WHERE log_id IS NOT NULL")
        self.assertEqual(sorted(log_id(r) for r in self.metrics(records, "compilation_metrics")), sorted(row["log_id"] for row in got if not row["back"]))
        for r in self.metrics(records):
            metrics, back = values(r), r["key"] != "compilation_metrics"
            length = metrics.get("duration_us", 1e6 * (metrics.get("entire_frame_compile_time_s") or 0))
            # A graph that was cut into parts has a backward pass for each.
            rows = [row for row in got if (row["log_id"], row["back"]) == (log_id(r), back) and abs(row["dur_ns"] / 1e3 - length) <= 2]
            self.assertTrue(rows, (log_id(r), length))
            self.assertEqual({row["status"] for row in rows}, {"failed" if metrics.get("fail_type") else "ok"})
            if metrics.get("fail_type"):
                said = metrics["fail_type"] + (": " + metrics["fail_reason"] if metrics.get("fail_reason") else "")
                self.assertTrue(rows[0]["error"].startswith(said), rows[0]["error"])

    def test_phases_take_the_time_that_the_metrics_say(self):
        path, records = self.path, self.records
        spans = collections.defaultdict(list)
        for row in ask(path, "SELECT c.log_id, c.kind, s.name, sum(s.dur_ns) AS ns FROM stages s JOIN compiles c USING(compile_id) GROUP BY c.compile_id, s.name"):
            spans[row["log_id"], row["kind"] == "backward", row["name"]].append(row["ns"] / 1e9)
        for r in self.metrics(records):
            back = r["key"] != "compilation_metrics"
            for name, span in PHASES.items():
                want = values(r).get(name)
                if back and span == "entire_frame_compile": continue
                got = spans.get((log_id(r), back, span), [])
                if want is None: self.assertFalse(got, (log_id(r), name))
                else: self.assertTrue(any(abs(s - want) < 3e-6 for s in got), (log_id(r), name, want, got))

    def test_every_span_of_the_log_is_there_with_its_time(self):
        path, records = self.path, self.records
        open_, want = collections.defaultdict(list), collections.Counter()
        for r in records:
            if r["key"] != "chromium_event": continue
            event = json.loads("\n".join(r["payload"]))
            place = r.get("frame_id"), r.get("frame_compile_id"), event["name"]  # an attempt may end what the one before began
            if event["ph"] == "B": open_[place].append(event["ts"])
            elif event["ph"] == "E": want[event["name"], round(event["ts"] - open_[place].pop())] += 1
            else: want[event["name"], 0] += 1
        got = collections.Counter()
        for row in ask(path, "SELECT name, dur_ns FROM stages UNION ALL SELECT name, dur_ns FROM cpu_events WHERE kind <> 'stage'"):
            got[row["name"], round(row["dur_ns"] / 1e3)] += 1
        names = lambda counts: sum((collections.Counter({name: n}) for (name, _), n in counts.items()), collections.Counter())
        self.assertEqual(names(want), names(got))
        for (name, us), n in want.items():  # times are floats of microseconds since 1970: a quarter of one is their last digit
            self.assertGreaterEqual(sum(got[name, us + d] for d in (-1, 0, 1)), n, (name, us))

    def test_captured_graphs_have_the_size_that_the_metrics_say(self):
        path, records = self.path, self.records
        got = {row["log_id"]: row for row in ask(path, "SELECT g.log_id, g.node_count, g.input_count, (SELECT count(*) FROM nodes n WHERE "
            "n.graph_id = g.graph_id AND n.kind = 'call') AS calls FROM graphs g WHERE g.stage = 'captured'")}
        captured = {log_id(r) for r in records if r["key"] == "dynamo_output_graph"}
        self.assertEqual(captured, set(got))
        for r in self.metrics(records, "compilation_metrics"):
            metrics, row = values(r), got.get(log_id(r))
            if metrics.get("graph_node_count") is None: continue
            if row is None: self.assertEqual(metrics["graph_op_count"], 0)  # an empty graph is not written
            else: self.assertEqual((row["node_count"], row["input_count"], row["calls"]),
                                   (metrics["graph_node_count"], metrics["graph_input_count"], metrics["graph_op_count"]), log_id(r))

    def test_guards_are_those_of_the_printed_tree(self):
        path, records = self.path, self.records
        want = {}
        for r in records:
            if r["key"] != "dynamo_cpp_guards_str": continue
            leaves = [re.sub(r"^[| ]*\+- ", "", line) for line in r["payload"] if re.match(r"^[| ]*\+- (?!\w*Manager\b)", line)]
            # One check of several values stands in the tree once with its words and, for the others, without.
            want[log_id(r)] = sum(1 for leaf in leaves if leaf not in ("NO_TENSOR_ALIASING", "OBJECT_ALIASING"))
        got = {row["log_id"]: row["n"] for row in ask(path, "SELECT c.log_id, count(*) AS n FROM guards JOIN compiles c USING(compile_id) GROUP BY c.compile_id")}
        self.assertEqual({i: n for i, n in want.items() if n}, got)

    def test_relations_and_specialisations_are_those_of_the_log(self):
        path, records = self.path, self.records
        relations = collections.defaultdict(set)
        for row in ask(path, "SELECT c.log_id, r.relation FROM relations r JOIN compiles c USING(compile_id)"):
            relations[row["log_id"]].add(truth(row["relation"]))
        captured, later = set(), set()
        for r in records:
            if r["key"] == "dynamo_output_graph": captured.add(log_id(r))
            # A captured graph is traced again, with data-dependent symbols of its own: that tells nothing new.
            if r["key"] == "create_unbacked_symbol" and log_id(r) in captured: later.add((log_id(r), values(r)["symbol"]))
            if r["key"] != "guard_added_fast": continue
            said = truth(values(r)["expr"])
            if said and not any((log_id(r), name) in later for name in said[0]): self.assertIn(said, relations[log_id(r)], (log_id(r), values(r)["expr"]))
        want = collections.Counter((log_id(r), values(r)["symbol"], str(values(r)["value"])) for r in records if r["key"] == "symbolic_shape_specialization")
        got = collections.Counter((row["log_id"], re.sub(r"\W", "", row["expression"] or ""), str(row["value"])) for row in
                                  ask(path, "SELECT c.log_id, s.expression, s.value FROM specialisations s JOIN compiles c USING(compile_id)"))
        self.assertEqual(want, got)

    def test_restarts_and_caches(self):
        path, records = self.path, self.records
        breaks = ask(path, "SELECT c.log_id, b.kind, b.reason FROM graph_breaks b JOIN compiles c USING(compile_id)")
        for r in self.metrics(records, "compilation_metrics"):
            for reason in values(r).get("restart_reasons") or []:
                first = reason.strip().split("\n")[0]
                self.assertTrue(any(row["log_id"] == log_id(r) and (row["kind"] in reason or first in row["reason"]) for row in breaks), (log_id(r), first))
        want = collections.Counter()
        for r in records:
            if r["key"] == "artifact" and (m := re.match(r"(fx_graph|aotautograd)_cache_(hit|miss|bypass)$", values(r)["name"])): want[m[1], m[2]] += 1
        got = {(row["cache"], row["outcome"]): row["n"] for row in
               ask(path, "SELECT cache, outcome, count(*) AS n FROM cache_events WHERE outcome <> 'disabled' GROUP BY cache, outcome")}
        self.assertEqual(dict(want), got)

    @unittest.skipUnless(shutil.which("tlparse"), "tlparse is not installed")
    def test_pages_of_tlparse(self):
        path, records = self.path, self.records
        with tempfile.TemporaryDirectory() as folder:
            log, out = pathlib.Path(folder) / "plain.log", pathlib.Path(folder) / "out"
            data = path.read_bytes()
            log.write_bytes(gzip.decompress(data) if path.suffix == ".gz" else data)
            done = subprocess.run(["tlparse", "--no-browser", "-o", str(out), str(log)], capture_output=True, text=True)
            stats = dict((k, int(v)) for k, v in re.findall(r"(\w+): (\d+)", (done.stdout + done.stderr).split("Stats {")[1].split("}")[0]))
            known = ask(path, "SELECT count(*) AS n, count(damaged) AS damaged FROM artifacts")[0]
            self.assertEqual((known["n"], known["damaged"]), (stats["ok"], stats.get("fail_payload_md5", 0)))
            directory = {i: d["artifacts"] for i, d in json.loads((out / "compile_directory.json").read_text()).items() if i != "[-/-]"}
            ours = collections.Counter(row["i"] for row in ask(path, "SELECT CASE WHEN json_extract(a.detail, '$.attempt') > 0 THEN rtrim(substr(c.log_id, 1, "
                "CASE WHEN instr(c.log_id, '_') THEN instr(c.log_id, '_') - 1 ELSE length(c.log_id) - 1 END), ']') || '_' || json_extract(a.detail, '$.attempt') || ']' "
                "ELSE replace(substr(c.log_id, 1, CASE WHEN instr(c.log_id, '_') THEN instr(c.log_id, '_') - 1 ELSE length(c.log_id) - 1 END) || ']', ']]', ']') END AS i "
                "FROM artifacts a JOIN compiles c USING(compile_id) WHERE a.kind NOT IN (%s)" % ", ".join(f"'{k}'" for k in sorted(NO_FILES))))
            self.assertEqual({i: len(a) for i, a in directory.items() if a}, dict(ours))
            got = collections.defaultdict(list)
            for row in ask(path, "SELECT c.log_id, m.direction, m.name, m.value FROM compile_metrics m JOIN compiles c USING(compile_id) WHERE m.kind NOT GLOB '*runtime'"):
                got[row["log_id"], row["direction"], row["name"]].append(row["value"])
            for page in out.glob("*/*compilation_metrics*.html"):
                text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<(style|script).*?</\1>", "", page.read_text(), flags=re.S))))
                autograd, frame, again, attempt = page.parent.name.split("_")
                back = "backward" if page.name.startswith("bwd") else "forward"
                i = f"[{'' if autograd == '-' else f'!{autograd}/'}{frame}/{again}{f'_{attempt}' if attempt != '0' else ''}]"
                shown = {name: re.search(title + r"(?: \[\?\] )?: ([\d.]+)", text) for name, title in
                         {"entire_frame_compile_time_s": "Entire Frame", "backend_compile_time_s": "Backend", "inductor_compile_time_s": "Inductor",
                          "code_gen_time_s": "Code Gen Time", "cache_size": "[^d] Cache Size", "accumulated_cache_size": "Accumulated Cache Size",
                          "guard_count": "Guard Count", "shape_env_guard_count": "Shape Env Guards", "graph_op_count": "Graph Ops",
                          "graph_node_count": "Graph Nodes", "graph_input_count": "Graph Inputs"}.items()}
                for name, match in shown.items():
                    if match: self.assertTrue(any(math.isclose(float(match[1]), v, abs_tol=1e-6) for v in got[i, back, name] if v is not None), (i, name, match[1]))


if __name__ == "__main__":
    logs = [pathlib.Path(a) for a in sys.argv[1:]] or sorted(DATA.glob("*.log.gz")) + sorted((DATA / "ranks").glob("*.log*"))
    suite = unittest.TestSuite(Numbers(name, log) for log in logs for name in unittest.TestLoader().getTestCaseNames(Numbers))
    sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())

"""TORCH_LOGS, set_logs, TORCH_TRACE and TORCH_COMPILE_DEBUG under this engine. Each case is a process of its own, since PyTorch reads its environment
when it is imported; what can be compared is compared with PyTorch's own compiler on the same script."""

import glob
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

SCRIPT = """\
import torch
torch.manual_seed(0)


def inner(h):
    if h.sum() > 0:
        h = h * 2
    return torch.relu(h) + 1


def step(x, w):
    h = torch.tanh(x @ w)
    return inner(h).softmax(-1)


class Counter:
    calls = 0


counter = Counter()


def count(x):
    counter.calls = 1
    return (x.sin() * 3 + x.cos()).sum(-1)


def train(x, w):
    return torch.nn.functional.gelu(x @ w).square().mean()
"""
CALLS = {
    "breaks": "f = compile(step)\nf(torch.ones(8, 16), torch.ones(16, 16))\n",
    "sizes": "f = compile(count)\nfor n in (8, 12, 20):\n    f(torch.ones(n, 16))\nf(torch.ones(8, 16, dtype=torch.float64))\n",
    "train": "f = compile(train)\nw = torch.randn(16, 16, requires_grad=True)\nf(torch.randn(8, 16), w).backward()\n",
}
OURS = "import fusebox\nfusebox.install()\ncompile = torch.compile\n"
STOCK = "def compile(f): return torch.compile(f, backend='eager')\n"


class Process(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def run_script(self, calls, engine=OURS, more="", **environment):
        path = os.path.join(self.folder, "script.py")
        with open(path, "w") as file:
            file.write(SCRIPT + "\n\n" + engine + more + CALLS.get(calls, calls))
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=280, cwd=self.folder,
                              env={**os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", **environment})
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done.stderr

    def logs(self, text, artifact):
        """Lines of one artifact, without their prefixes."""
        return re.findall(rf"^[VIWE]\d{{4}} .*?\[(?:\d+/\d+(?:_\d+)?)\] \[__{artifact}\] ?(.*)$", text, re.M)


class Logs(Process):
    def test_breaks_are_where_stock_has_them(self):
        ours, stock = (self.run_script("breaks", engine, TORCH_LOGS="graph_breaks") for engine in (OURS, STOCK))
        places = [[line for line in self.logs(text, "graph_breaks") if line.startswith("Graph break in user code at")] for text in (ours, stock)]
        self.assertIn("script.py:6", places[0][0])
        self.assertEqual(places[0][0], places[1][0])
        lines = self.logs(ours, "graph_breaks")
        callers = [[line.rpartition(" in ")[2] for line in self.logs(text, "graph_breaks") if line.startswith('  File "')][:3] for text in (ours, stock)]
        self.assertEqual(callers, [["<module>", "step", "inner"]] * 2)
        self.assertIn("User code traceback:", lines)
        self.assertIn("    if h.sum() > 0:", lines)
        self.assertTrue(any(line.endswith("in step") for line in lines), lines)
        self.assertTrue(any("Hint:" in line for line in lines), lines)

    def test_recompiles_have_stocks_words(self):
        ours, stock = (self.run_script("sizes", engine, TORCH_LOGS="recompiles") for engine in (OURS, STOCK))
        ours, stock = self.logs(ours, "recompiles"), self.logs(stock, "recompiles")
        line = 1 + SCRIPT.splitlines().index("def count(x):")
        place = f"Recompiling function count in {self.folder}/script.py:{line}"
        self.assertEqual((ours[0], stock[0]), (place, place))
        self.assertEqual(ours[1].strip(), stock[1].strip())
        self.assertEqual(ours[2].strip(), stock[2].strip())  # the size that changed
        self.assertIn("size mismatch at index 0. expected 8, actual 12", ours[2])
        self.assertTrue(any("dtype mismatch. expected Float, actual Double" in line for line in ours), ours)

    def test_graphs_guards_and_kernels(self):
        names = ["graph", "graph_code", "graph_sizes", "aot_graphs", "post_grad_graphs", "ir_pre_fusion", "ir_post_fusion", "fusion", "schedule", "output_code",
                 "kernel_code", "guards", "verbose_guards", "side_effects", "inductor_metrics", "bytecode", "trace_source", "trace_call", "trace_bytecode", "caching",
                 "graph_code_verbose"]
        text = self.run_script("sizes", TORCH_LOGS=",".join(names))
        told = {name: "\n".join(self.logs(text, name)) for name in names}
        for name in names:
            self.assertTrue(told[name], f"{name} tells nothing:\n{text[-1500:]}")
        self.assertIn("TRACED GRAPH", told["graph"])
        self.assertRegex(told["graph"], r"opcode +name +target +args +kwargs")
        self.assertIn("torch.ops.aten.sin.default(", told["graph_code"])
        self.assertIn("code: return (x.sin() * 3 + x.cos()).sum(-1)", told["graph_code"])
        self.assertRegex(told["graph_code"], r'"f32\[8, 16\]\[16, 1\]cpu"')
        self.assertRegex(told["graph_code"], r'"f32\[s\d+, 16\]\[16, 1\]cpu"')  # of the recompile
        self.assertIn("(8, 16)", told["graph_sizes"])
        self.assertIn("===== Forward graph 0 =====", told["aot_graphs"])
        self.assertIn("BEFORE FUSION", told["ir_pre_fusion"])
        self.assertIn("AFTER FUSION", told["ir_post_fusion"])
        self.assertIn("completed fusion round", told["fusion"])
        self.assertIn("GUARDS:", told["guards"])
        self.assertRegex(told["guards"], r"\| \| \+- TENSOR_MATCH: check_tensor\(L\['x'\]")
        self.assertIn("calls", told["side_effects"])
        self.assertIn("define", told["output_code"])  # LLVM's
        self.assertIn("ORIGINAL BYTECODE count", told["bytecode"])
        self.assertIn("TRACE starts_line", told["trace_source"])
        self.assertRegex(told["trace_call"], r"TRACE FX call \w+ from \S+:\d+ in \w+")
        self.assertRegex(told["trace_call"], r"\n +~*\^~*")
        self.assertIn("RETURN_VALUE", told["trace_bytecode"])

    def test_backward_is_told_with_its_forward(self):
        text = self.run_script("train", TORCH_LOGS="aot_joint_graph,aot_graphs,post_grad_graphs,output_code")
        self.assertIn("===== Joint graph 0 =====", "\n".join(self.logs(text, "aot_joint_graph")))
        self.assertIn("===== Backward graph 0 =====", "\n".join(self.logs(text, "aot_graphs")))
        self.assertEqual([line for line in self.logs(text, "output_code") if "AOT ID" in line], ["# AOT ID: ['0_forward']", "# AOT ID: ['0_backward']"])

    def test_graphs_of_a_backend_in_python(self):
        text = self.run_script("torch.compile(count, backend=lambda module, inputs: module.forward)(torch.ones(8, 16))\n", TORCH_LOGS="graph_code,graph_sizes")
        code = "\n".join(self.logs(text, "graph_code"))
        self.assertRegex(code, r"class \w*\(torch.nn.Module\)")
        self.assertIn("sin", code)
        self.assertIn("(8, 16)", "\n".join(self.logs(text, "graph_sizes")))

    def test_dynamic_is_a_component(self):
        text = self.run_script("sizes", TORCH_LOGS="dynamic")
        self.assertRegex(text, r"\[0/1\] create_symbol s\d+ = 12 for L\['x'\].size\(\)\[0\] \[2, int_oo\]")

    def test_to_a_file_and_switched_while_running(self):
        more = textwrap.dedent("""
            import torch._logging
            from fusebox import _records
            compile(lambda x: x + 1)(torch.ones(3))
            assert not _records._state[0], "nothing is told while no log is on"
            torch._logging.set_logs(recompiles=True)
        """)
        calls = CALLS["sizes"] + "torch._logging.set_logs()\nf(torch.ones(3, 3))\nassert not _records._state[0]\n"
        text = self.run_script(calls, more=more)
        self.assertEqual(sum("Recompiling function" in line for line in self.logs(text, "recompiles")), 2, text)
        out = os.path.join(self.folder, "out.log")
        self.run_script("breaks", TORCH_LOGS="graph_breaks", TORCH_LOGS_OUT=out)
        with open(out) as file:
            self.assertIn("Graph break in user code at", file.read())

    def test_every_artifact_acts_or_says_why_not(self):
        code = textwrap.dedent("""
            import warnings
            from torch._logging import _internal
            from fusebox import _logs
            known = set(_logs._ARTIFACTS) | set(_logs._NOT_HERE)
            missing = _internal.log_registry.artifact_names - known
            assert not missing, missing
            torch._logging.set_logs(ddp_graphs=True)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                for n in (1, 2):
                    compile(lambda x: x * n)(torch.ones(n))
            said = [str(w.message) for w in said if "ddp_graphs" in str(w.message)]
            assert len(said) == 1 and "DistributedDataParallel" in said[0], said
        """)
        self.run_script(code)

    def test_beside_a_session(self):
        session = os.path.join(self.folder, "s.fusebox")
        text = self.run_script(f"with fusebox.record({session!r}):\n    compile(count)(torch.ones(8, 16))\n", TORCH_LOGS="guards,output_code")
        self.assertTrue(self.logs(text, "guards") and self.logs(text, "output_code"))
        import sqlite3
        with sqlite3.connect(session) as db:
            self.assertEqual(db.execute("SELECT count(*) FROM compiles").fetchone()[0], 1)
            self.assertGreater(db.execute("SELECT count(*) FROM kernels WHERE llvm_ir LIKE '%define%'").fetchone()[0], 0)


class Trace(Process):
    def trace(self, calls, **environment):
        folder = os.path.join(self.folder, "trace")
        shutil.rmtree(folder, ignore_errors=True)
        self.run_script(calls, TORCH_TRACE=folder, **environment)
        (self.file,) = glob.glob(os.path.join(folder, "*.log"))
        return list(self.records(self.file))

    def records(self, path):
        """(about, payload) of each record, checksums and tables of strings checked."""
        with open(path) as file:
            text = file.read()
        strings = 0
        for block in re.split(r"^(?=[VIWEC]\d{4} )", text, flags=re.M)[1:]:
            head, *payload = block.rstrip("\n").split("\n")
            about = json.loads(head[head.index("] ") + 2:])
            payload = "\n".join(line[1:] for line in payload)
            if "has_payload" in about:
                self.assertEqual(about["has_payload"], hashlib.md5(payload.encode()).hexdigest())
            if "str" in about:
                self.assertEqual(about["str"][1], strings)
                strings += 1
            yield about, payload

    def named(self, records, name):
        return [(about, payload) for about, payload in records if name in about or about.get("artifact", {}).get("name") == name]

    def test_records(self):
        records = self.trace("breaks")
        for name in ("dynamo_start", "describe_tensor", "describe_source", "dynamo_output_graph", "dynamo_cpp_guards_str", "aot_inference_graph",
                     "inductor_post_grad_graph", "inductor_output_code", "compilation_metrics", "chromium_event", "dynamo_graph_break_reason", "fx_graph_runnable",
                     "inductor_provenance_tracking_node_mappings"):
            self.assertTrue(self.named(records, name), name)
        self.assertTrue([payload for _, payload in self.named(records, "chromium_event") if "fx_graph_cache_disabled" in payload])
        metrics = [about["compilation_metrics"] for about, _ in self.named(records, "compilation_metrics")]
        self.assertEqual([(m["compile_id"], m["co_name"]) for m in metrics][0], ("0/0", "step"))
        self.assertTrue(all(m["fail_type"] is None for m in metrics))
        self.assertEqual(metrics[0]["num_graph_breaks"], 1)
        self.assertTrue(all(about["frame_id"] is not None for about, _ in self.named(records, "dynamo_start")))
        # Spans nest.
        open_spans = []
        for _, payload in self.named(records, "chromium_event"):
            span = json.loads(payload)
            if span["ph"] == "B":
                open_spans.append(span["name"])
            elif span["ph"] == "E":
                self.assertEqual(open_spans.pop(), span["name"])
        self.assertEqual(open_spans, [])

    def test_sizes_and_recompiles(self):
        records = self.trace("sizes")
        reasons = [json.loads(payload) for _, payload in self.named(records, "recompile_reasons")]
        self.assertIn("size mismatch at index 0. expected 8, actual 12", reasons[0][0])
        self.assertTrue(reasons[0][0].startswith("0/0: "))
        symbols = [about["create_symbol"] for about, _ in self.named(records, "create_symbol")]
        self.assertEqual((symbols[0]["source"], symbols[0]["val"]), ("L['x'].size()[0]", "12"))
        self.assertTrue(self.named(records, "dynamo_side_effects"))

    def test_training(self):
        records = self.trace("train")
        for name in ("aot_joint_graph", "aot_forward_graph", "aot_backward_graph", "bwd_compilation_metrics"):
            self.assertEqual(len(self.named(records, name)), 1, name)
        codes = [about for about, _ in self.named(records, "inductor_output_code")]
        self.assertEqual([(c["frame_id"], c["frame_compile_id"]) for c in codes], [(0, 0), (0, 0)])

    def test_fusebox_reads_it(self):
        program = os.environ.get("FUSEBOX_BIN", "")
        if not os.path.exists(program):
            self.skipTest("the program is not built")
        for calls, graphs, breaks, recompiles in (("breaks", 3, 1, 0), ("sizes", 3, 0, 2), ("train", 1, 0, 0)):
            self.trace(calls)
            summary = json.loads(subprocess.run([program, "summary", self.file, "--json"], capture_output=True, text=True, timeout=100,
                                                env={**os.environ, "XDG_CACHE_HOME": self.folder}, check=True).stdout)
            self.assertEqual(len(summary["graph_breaks"]), breaks, calls)
            self.assertEqual(len({r["found"] for r in summary["recompiles"]}), recompiles, summary["recompiles"])
            self.assertGreaterEqual(summary["kernels"], 1)
            self.assertEqual([loss for loss in summary["losses"] if loss["what"] != "source_text"], [], calls)

    @unittest.skipUnless(shutil.which("tlparse"), "tlparse is not installed")
    def test_tlparse_reads_it(self):
        self.trace("breaks")
        done = subprocess.run(["tlparse", self.file, "-o", os.path.join(self.folder, "out"), "--no-browser"], capture_output=True, text=True,
                              timeout=100, check=True)
        self.assertNotIn("fail", (done.stdout + done.stderr).replace("failures", ""))


class CompileDebug(Process):
    def folders(self):
        return sorted(glob.glob(os.path.join(self.folder, "torch_compile_debug", "run_*", "torchinductor", "*")), key=lambda f: int(f.rpartition(".")[2]))

    def test_files(self):
        self.run_script("train", TORCH_COMPILE_DEBUG="1")
        forward, backward = self.folders()
        self.assertTrue(os.path.basename(forward) == "model__0_forward.0" and os.path.basename(backward) == "model__0_backward.1", self.folders())
        for folder in (forward, backward):
            self.assertEqual(sorted(os.listdir(folder)), ["fx_graph_readable.py", "fx_graph_runnable.py", "fx_graph_transformed.py",
                                                          "inductor_provenance_tracking_node_mappings.json", "ir_post_fusion.txt", "ir_pre_fusion.txt", "output_code.py"])
        (log,) = glob.glob(os.path.join(self.folder, "torch_compile_debug", "run_*", "torchdynamo", "debug.log"))
        with open(log) as file:
            self.assertIn("torchdynamo start tracing train", file.read())
        kernels_of, captured_of = [], []
        for folder in (forward, backward):
            with open(os.path.join(folder, "inductor_provenance_tracking_node_mappings.json")) as file:
                mappings = json.load(file)
            kernels_of.append(mappings["cppCodeToPost"])
            captured_of.append(mappings["postToPre"])
        self.assertTrue(all(kernels_of), kernels_of)
        self.assertEqual(captured_of[0]["gelu"], ["gelu"])
        self.opens(forward)

    def opens(self, folder):
        program = os.environ.get("FUSEBOX_BIN", "")
        if os.path.exists(program):
            summary = json.loads(subprocess.run([program, "summary", folder, "--json"], capture_output=True, text=True, timeout=100, check=True,
                                                env={**os.environ, "XDG_CACHE_HOME": self.folder}).stdout)
            self.assertGreaterEqual(summary["kernels"], 1)

    def test_printed_graphs_run(self):
        """What is printed of a graph computes what the program does."""
        self.run_script("sizes", TORCH_COMPILE_DEBUG="1")
        import torch
        for folder, rows in zip(self.folders(), (8, 12)):
            spec = importlib.util.spec_from_file_location("printed", os.path.join(folder, "fx_graph_runnable.py"))
            printed = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(printed)
            x = torch.randn(rows, 16)
            sizes = [a for a in printed.arguments if isinstance(a, int)]
            (got,) = printed.module(*sizes, x)[:1]
            torch.testing.assert_close(got, (x.sin() * 3 + x.cos()).sum(-1))
            self.assertEqual(sizes, [] if rows == 8 else [12])

    def test_options_of_one_function(self):
        target = os.path.join(self.folder, "elsewhere")
        calls = textwrap.dedent(f"""
            options = {{"trace.enabled": True, "trace.debug_dir": {target!r}, "trace.output_code": False, "trace.graph_diagram": True}}
            torch.compile(count, options=options)(torch.ones(3, 3))
            torch.compile(inner)(torch.ones(3, 3))
        """)
        self.run_script(calls)
        (folder,) = glob.glob(os.path.join(target, "torchinductor", "*"))
        files = os.listdir(folder)
        self.assertNotIn("output_code.py", files)
        self.assertIn("graph_diagram.svg" if shutil.which("dot") else "graph_diagram.dot", files)
        self.assertEqual(self.folders(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)

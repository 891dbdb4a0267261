"""The compiled-graph cache across processes: what comes from it is what compiling gives, bit by bit; whatever happens to its files, results are
right, and the session says what happened."""

import json
import os
import pathlib
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))
import processes  # noqa: E402

NAMES = ["mlp", "softmax_and_sums", "long_reduction", "sizes_that_change", "written_inputs", "captured_constant", "checked_index", "training"]


class Processes(unittest.TestCase):
    """Programs in processes of their own, on a cache of the test's."""

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    @classmethod
    def compiled_once(cls):
        """A cache directory with the entries of all programs, and what compiling them printed; not to be changed."""
        if not hasattr(Processes, "seed"):
            Processes.seed_directory = tempfile.TemporaryDirectory()
            test = cls()
            test.directory = Processes.seed_directory.name
            Processes.seed = test.process(*NAMES)[0]
        return Processes.seed_directory.name, Processes.seed

    def begin_with_entries(self):
        directory, answers = self.compiled_once()
        shutil.copytree(os.path.join(directory, "fusebox"), os.path.join(self.directory, "fusebox"))
        return answers

    def process(self, *names, code=None, **environment):
        """What a fresh process of `programs.py` (or of `code`) prints, and its standard error."""
        env = {k: v for k, v in os.environ.items() if "CACHE" not in k and not k.startswith("FUSEBOX_")}
        env.update({"TORCHINDUCTOR_CACHE_DIR": self.directory, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.environ.get("PYTHONPATH", "") + f":{FOLDER}"})
        env.update(environment)
        run = processes.run_python(["-c", code, *names] if code else [str(FOLDER / "programs.py"), *names], env=env)
        self.assertEqual(run.returncode, 0, run.stderr[-3000:])
        return json.loads(run.stdout.strip().splitlines()[-1]), run.stderr

    def entries(self, kind="graph"):
        """Files of one kind of entry."""
        files = [p for p in pathlib.Path(self.directory).glob("fusebox/??/*") if not p.name.startswith(".")]
        return [p for p in files if f'"kind":"{kind}"'.encode() in p.read_bytes()[:1 << 16]]

    def events(self, name, **environment):
        """(outcome, reason, saved_ns) of the cache's events in a session of one program."""
        session = os.path.join(self.directory, "s.fusebox")
        code = f"""
import sys, json, fusebox, programs
with fusebox.record({session!r}):
    found = programs.run(sys.argv[1])
fusebox._engine.drain()
print(json.dumps([programs.digest(found)]))
"""
        answer, _ = self.process(name, code=code, **environment)
        with sqlite3.connect(session) as db:
            rows = db.execute("SELECT outcome, reason, saved_ns FROM cache_events WHERE cache = 'graph' ORDER BY event_id").fetchall()
        os.unlink(session)
        return answer[0], rows


class CacheTest(Processes):
    def test_warm_is_cold(self):
        cold = self.begin_with_entries()
        for name in NAMES:
            self.assertGreater(cold[name]["cache_misses"], 0, name)
            self.assertEqual(cold[name]["cache_hits"], 0, name)
            self.assertEqual(cold[name]["cache_stores"], cold[name]["cache_misses"], name)
        warm, _ = self.process(*NAMES)
        for name in NAMES:
            self.assertEqual(warm[name]["cache_misses"], 0, name)
            self.assertEqual(warm[name]["cache_stores"], 0, name)
            self.assertEqual(warm[name]["cache_hits"], cold[name]["cache_misses"], name)
            # Calls before ran code of the first tier, which may round differently: each was compared with eager in its process.
            self.assertLessEqual(abs(warm[name]["worst"] - cold[name]["worst"]), 1e-5, name)
        again, _ = self.process(*NAMES)
        self.assertEqual({n: again[n]["digest"] for n in NAMES}, {n: warm[n]["digest"] for n in NAMES})

    def test_constants_are_the_process_s_own(self):
        one = self.begin_with_entries()
        two, _ = self.process("captured_constant", PROGRAM_SCALE="5")
        self.assertEqual(two["captured_constant"]["cache_hits"], 1)
        self.assertNotEqual(one["captured_constant"]["digest"], two["captured_constant"]["digest"])  # each was compared with eager there

    def test_session_says_what_happened(self):
        _, first = self.events("mlp")
        self.assertEqual([r[0] for r in first], ["miss", "store"])
        self.assertEqual(first[0][1], "no entry to compare with")
        _, second = self.events("mlp")
        self.assertEqual([r[0] for r in second], ["hit"])
        self.assertGreater(second[0][2], 0)
        _, tagged = self.events("mlp", TORCH_COMPILE_CACHE_KEY_TAG="other")
        self.assertEqual(tagged[0][0], "miss")
        self.assertEqual(tagged[0][1], "nearest entry: cache key tag: other here, none there")
        _, elsewhere = self.events("mlp", FUSEBOX_TARGET="avx2")
        self.assertEqual(elsewhere[0][0], "miss")
        self.assertIn("CPU", elsewhere[0][1])
        self.assertIn("haswell here", elsewhere[0][1])
        for variable in ({"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}, {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0"}):
            _, off = self.events("mlp", **variable)
            self.assertEqual([r[0] for r in off], ["disabled"])
            self.assertIn(next(iter(variable)), off[0][1])

    def test_a_session_of_a_hit_shows_what_was_compiled(self):
        """Groups, kernels, buffers and graphs are those of the session that compiled."""
        def rows(path):
            with sqlite3.connect(path) as db:
                return {view: db.execute(sql).fetchall() for view, sql in {
                    "groups": "SELECT name, kind, read_bytes, write_bytes FROM fusion_groups ORDER BY group_id",
                    "kernels": "SELECT name, kind, device, loop_ir FROM kernels ORDER BY kernel_id",
                    "decisions": "SELECT a, b, fused, kind, reason FROM fusion_decisions ORDER BY position",
                    "buffers": "SELECT name, kind, dtype, shape, bytes, first_use, last_use FROM buffers ORDER BY buffer_id",
                    "nodes": "SELECT n.name, n.op, n.file, n.line FROM nodes n ORDER BY node_id"}.items()}
        sessions = []
        for number in range(2):
            path = os.path.join(self.directory, f"{number}.fusebox")
            self.process("training", code=f"""
import sys, json, fusebox, programs
with fusebox.record({path!r}):
    programs.run(sys.argv[1])
fusebox._engine.drain()
print(json.dumps(fusebox.counters()))
""")
            sessions.append(rows(path))
        self.assertGreater(len(sessions[0]["kernels"]), 3)
        for view in sessions[0]:
            self.assertEqual(sessions[0][view], sessions[1][view], view)

    def test_configuration_switches_it_off(self):
        code = """
import sys, json, torch, fusebox, programs
import torch._inductor.config as config
torch._dynamo.config
name, value = sys.argv[1].split("=")
setattr(config, name, value == "True")
programs.run("mlp")
print(json.dumps(fusebox.counters()))
"""
        for setting in ("force_disable_caches=True", "fx_graph_cache=False"):
            counters, errors = self.process(setting, code=code)
            self.assertEqual((counters["cache_bypasses"], counters["cache_misses"]), (1, 0), setting)
            self.assertNotIn("has no effect", errors)
        self.assertEqual(self.entries(), [])

    def test_configuration_counts_when_it_compiles(self):
        """However late it is set, in a patch, in options=, and by PyTorch's own rule of what goes before what."""
        code = """
import sys, json, torch, fusebox
import torch._inductor.config as config
def f(x):
    return torch.softmax(x * 2, -1).sum()
compiled = fusebox.compile(f, options=json.loads(sys.argv[2]) or None)
x = torch.randn(9, 7)
with config.patch(json.loads(sys.argv[1])):
    torch.testing.assert_close(compiled(x), f(x))
fusebox._engine.drain()
print(json.dumps([fusebox.counters()["cache_" + name] for name in ("bypasses", "misses", "hits")]))
"""
        def found(patch=None, options=None, **environment):
            counts, errors = self.process(json.dumps(patch or {}), json.dumps(options or {}), code=code, **environment)
            self.assertNotIn("has no effect", errors)
            return counts
        off = [1, 0, 0]
        for name, value in (("force_disable_caches", True), ("fx_graph_cache", False)):
            self.assertEqual(found({name: value}), off)
        self.assertEqual(found(options={"fx_graph_cache": False}), off)
        self.assertEqual(found(TORCHINDUCTOR_FORCE_DISABLE_CACHES="1"), off)
        self.assertEqual(self.entries(), [])
        self.assertEqual(found({"fx_graph_cache": False}, {"fx_graph_cache": True}), [0, 1, 0])
        self.assertEqual(found({"fx_graph_cache": True}), [0, 0, 1])
        self.assertEqual(found({"fx_graph_cache": False}, TORCHINDUCTOR_FX_GRAPH_CACHE="1"), [0, 0, 1])
        self.assertEqual(found({"force_disable_caches": True}, {"fx_graph_cache": True}), off)

    def test_the_key_tag_is_the_configuration_s(self):
        code = """
import json, torch, fusebox
for tag in ("", "a", "a"):
    torch.compiler.config.cache_key_tag = tag
    fusebox.reset()
    fusebox.compile(lambda x: x.sin() + 1)(torch.ones(3))
    fusebox._engine.drain()
print(json.dumps([fusebox.counters()["cache_" + name] for name in ("misses", "hits")]))
"""
        self.assertEqual(self.process(code="import torch.compiler.config\n" + code)[0], [2, 1])

    def test_what_was_timed_has_no_cache_of_its_own(self):
        code = """
import json, sys, torch, fusebox
import torch._inductor.config as config
compiled = fusebox.compile(lambda x: x.sin() + 1)
with config.patch(json.loads(sys.argv[1])):
    compiled(torch.ones(3))
    fusebox.compile(lambda x: x.cos() + 1)(torch.ones(3))
print(0)
"""
        name = "autotune_remote_cache"
        for setting, environment, times in (({}, {}, 0), ({name: True}, {}, 1), ({name: False}, {}, 0), ({}, {"TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE": "1"}, 1)):
            _, errors = self.process(json.dumps(setting), code=code, **environment)
            self.assertEqual(errors.count(name + " has no effect"), times, errors)

    def test_damaged_entries_are_dropped_and_made_again(self):
        cold = self.begin_with_entries()
        whole = {p: p.read_bytes() for p in self.entries()}
        self.assertGreater(len(whole), len(NAMES))
        rng, paths = random.Random(5), list(whole)
        damages = ["bit", "short", "empty", "noise", "swapped"]
        for i, path in enumerate(paths):
            data = bytearray(whole[path])
            damage = damages[i % len(damages)]
            if damage == "bit":
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            elif damage == "short":
                data = data[:rng.randrange(len(data))]
            elif damage == "empty":
                data = b""
            elif damage == "noise":
                data = rng.randbytes(5000)
            else:
                data = whole[paths[(i + 1) % len(paths)]]  # another entry, whole in itself
            path.write_bytes(data)
        found, errors = self.process(*NAMES)
        for name in NAMES:
            self.assertEqual(found[name]["cache_hits"], 0, name)
            for count in ("cache_misses", "cache_problems", "cache_stores"):
                self.assertEqual(found[name][count], cold[name]["cache_misses"], name)
        self.assertRegex(errors, "damaged|cache entry is another one")
        again, _ = self.process(*NAMES)
        for name in NAMES:
            self.assertEqual((again[name]["cache_hits"], again[name]["cache_problems"]), (cold[name]["cache_misses"], 0), name)

    def test_shared_folders_need_the_key(self):
        self.process("mlp")
        os.chmod(os.path.join(self.directory, "fusebox"), 0o775)
        for environment, word in (({}, "FUSEBOX_CACHE_KEY"), ({"FUSEBOX_CACHE_KEY": "k"}, "no signature")):
            found, errors = self.process("mlp", **environment)
            self.assertEqual(found["mlp"]["cache_hits"], 0)
            self.assertIn(word, errors)
        found, _ = self.process("mlp", FUSEBOX_CACHE_KEY="k")  # the last one stored it with a signature
        self.assertEqual(found["mlp"]["cache_hits"], 1)
        key = os.path.join(self.directory, "key")
        pathlib.Path(key).write_text("k\n")
        found, _ = self.process("mlp", FUSEBOX_CACHE_KEY_FILE=key)
        self.assertEqual(found["mlp"]["cache_hits"], 1)
        found, errors = self.process("mlp", FUSEBOX_CACHE_KEY="another")
        self.assertEqual(found["mlp"]["cache_hits"], 0)
        self.assertIn("signature is not that of", errors)

    def test_folders_that_cannot_be_used(self):
        blocked = os.path.join(self.directory, "file")
        pathlib.Path(blocked).write_text("in the way")
        found, errors = self.process("mlp", "training", TORCHINDUCTOR_CACHE_DIR=os.path.join(blocked, "below"))
        self.assertEqual((found["mlp"]["cache_misses"], found["mlp"]["cache_stores"]), (1, 0))
        self.assertEqual(errors.count("compiled graphs are not kept"), 1)

    def test_many_processes_on_one_empty_cache(self):
        code = """
import json, os, sys
import torch, fusebox, programs
torch.set_num_threads(1)
ends = []
for _ in range(32):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = [programs.digest(programs.run("mlp")), fusebox.counters()["cache_problems"]]
            fusebox._engine.drain()
            os.write(write, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(write)
    ends.append((pid, read))
answers = []
for pid, read in ends:
    answers.append(json.loads(os.read(read, 10000) or b"null"))
    os.waitpid(pid, 0)
print(json.dumps(answers))
"""
        answers, _ = self.process(code=code)
        self.assertEqual(len(answers), 32)
        eager, _ = self.process("mlp")
        self.assertEqual(eager["mlp"]["cache_hits"], 1)  # and was right beside eager
        self.assertTrue(all(a and a[1] == 0 for a in answers), answers)
        self.assertLessEqual(len({a[0] for a in answers}), 2)  # code of either tier
        self.assertEqual((len(self.entries()), len(self.entries("capture"))), (1, 1))
        self.assertEqual([p for p in pathlib.Path(self.directory).glob("fusebox/*/.tmp-*")], [])

    def test_the_folder_does_not_outgrow_its_limit(self):
        found, _ = self.process("mlp", FUSEBOX_CACHE_SIZE="0")
        self.assertEqual(found["mlp"]["cache_stores"], 1)
        self.assertEqual(self.entries(), [])


    def test_graphs_that_share_a_kernel(self):
        """The code of a kernel that an earlier graph of the process compiled, over other symbols, is kept with each graph over its own."""
        code = """
import json, sys, torch, fusebox
torch.manual_seed(6)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(16, 16), torch.nn.LayerNorm(16)
    def forward(self, x, k):
        return self.b(torch.nn.functional.gelu(self.a(x)) * k).softmax(-1)
model = Model()
run = fusebox.compile(model)
for n, k, with_gradient in json.loads(sys.argv[1]):
    x = torch.randn(n, 16, requires_grad=with_gradient)
    torch.testing.assert_close(run(x, k), model(x, k), rtol=1e-4, atol=1e-4)
fusebox._engine.drain()
print(json.dumps(fusebox.counters()["cache_hits"]))
"""
        first = [(33, 3, True), (64, 2, True), (64, 2, False), (3, 3, False)]
        self.process(json.dumps(first), code=code)
        for calls, hits in (([(16, 2, False), (3, 3, False), (8, 1, False)], 1), (first, 3)):
            self.assertGreaterEqual(self.process(json.dumps(calls), code=code)[0], hits)

    def test_artifacts_are_carried_elsewhere(self):
        code = """
import json, sys, torch, fusebox, programs
import fusebox.compiler as compiler
how, path = sys.argv[1:]
if how == "load":
    info = compiler.load_cache_artifacts(open(path, "rb").read())
    loaded = None if info is None else info.inductor_artifacts
found = programs.run("training")
answer = {"digest": programs.digest(found)}
if how == "save":
    artifacts, info = compiler.save_cache_artifacts()
    open(path, "wb").write(artifacts)
    loaded = info.inductor_artifacts
print(json.dumps({**answer, "entries": loaded, **fusebox.counters()}))
"""
        path = os.path.join(self.directory, "artifacts")
        saved, _ = self.process("save", path, code=code)
        self.assertEqual(len(saved["entries"]), 3)  # forward, backward and what was captured
        other = os.path.join(self.directory, "elsewhere")
        loaded, _ = self.process("load", path, code=code, TORCHINDUCTOR_CACHE_DIR=other)
        self.assertEqual((loaded["cache_hits"], loaded["cache_misses"]), (2, 0))
        self.assertEqual(sorted(loaded["entries"]), sorted(saved["entries"]))
        _, errors = self.process("load", path, code=code, TORCHINDUCTOR_CACHE_DIR=other + "2", FUSEBOX_CACHE_KEY="k")
        self.assertIn("no signature", errors)
        data = pathlib.Path(path).read_bytes()
        pathlib.Path(path).write_bytes(data[:len(data) // 2])
        cut, errors = self.process("load", path, code=code, TORCHINDUCTOR_CACHE_DIR=other + "3")
        self.assertIsNone(cut["entries"])
        self.assertIn("cut off", errors)

    def fusebox(self, *words, status=0, **environment):
        env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": self.directory, **environment}
        run = subprocess.run([os.environ["FUSEBOX_BIN"], "cache", *words, "--json"], env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, status, run.stderr)
        return json.loads(run.stdout) if run.stdout else run.stderr

    @unittest.skipUnless(os.path.exists(os.environ.get("FUSEBOX_BIN", "")), "the program is not built")
    def test_command_line(self):
        self.assertEqual(self.fusebox("list")["entries"], [])
        self.process("mlp")
        self.process("mlp", TORCH_COMPILE_CACHE_KEY_TAG="tag")
        everything = self.fusebox("list")["entries"]
        listed = [e for e in everything if e["kind"] == "graph"]
        self.assertEqual((len(listed), len(everything)), (2, 4))
        self.assertTrue(all(e["kernels"] > 0 and e["optimised"] and e["compile_ns"] > 0 for e in listed))
        a, b = (e["key"] for e in listed)
        shown = self.fusebox("show", a[:10])
        self.assertIn("operators", [c["name"] for c in shown["components"]])
        why = self.fusebox("why", a[:12], b[:12])
        self.assertEqual([d["name"] for d in why["differences"]], ["cache key tag"])
        self.assertIn("no such cache entry", self.fusebox("show", "0" * 64, status=3))
        bundle = os.path.join(self.directory, "bundle")
        self.assertEqual(self.fusebox("export", bundle, a)["entries"], [a])
        elsewhere = os.path.join(self.directory, "elsewhere")
        self.assertEqual(self.fusebox("import", bundle, "--dir", elsewhere)["entries"], [a])
        self.assertEqual(len(self.fusebox("import", bundle, "--dir", elsewhere, status=3, FUSEBOX_CACHE_KEY="k")["refusals"]), 1)
        self.assertEqual(self.fusebox("verify")["good"], 4)
        path = next(p for p in self.entries() if p.name == b)
        path.write_bytes(path.read_bytes()[:-1])
        verified = self.fusebox("verify", status=1)
        self.assertEqual((verified["good"], verified["problems"][0]["key"]), (3, b))
        self.assertEqual(self.fusebox("prune", "--to", "0")["removed"], 4)
        self.assertEqual(self.fusebox("list")["entries"], [])


@unittest.skipUnless(shutil.which("redis-server"), "there is no Redis here")
class RemoteCacheTest(Processes):
    """Processes with folders of their own share a Redis."""

    def setUp(self):
        super().setUp()
        self.socket = os.path.join(self.directory, "redis.sock")
        self.server = self.start("--maxmemory", "100mb")
        self.remote = {"TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "1", "TORCHINDUCTOR_REDIS_URL": f"unix://{self.socket}", "FUSEBOX_CACHE_KEY": "shared"}

    def start(self, *arguments):
        server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no", *arguments],
                                  stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (server.kill(), server.wait()))
        for _ in range(200):
            if os.path.exists(self.socket):
                return server
            time.sleep(0.05)
        self.fail("redis-server does not start")

    def redis(self, *words, data=None):
        run = subprocess.run(["redis-cli", "-s", self.socket, *(["-x"] if data is not None else []), *words], input=data, capture_output=True, timeout=30)
        return run.stdout

    def at(self, number):
        return {**self.remote, "TORCHINDUCTOR_CACHE_DIR": os.path.join(self.directory, str(number))}

    def test_the_second_compiles_nothing(self):
        first, _ = self.process("mlp", "training", **self.at(1))
        self.assertEqual((first["training"]["cache_misses"], first["training"]["cache_remote_stores"]), (2, 2))
        second, errors = self.process("mlp", "training", **self.at(2))
        self.assertEqual((second["training"]["cache_misses"], second["training"]["cache_remote_hits"]), (0, 2), errors)
        third, _ = self.process("mlp", "training", **{**self.at(2), "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "0"})
        self.assertEqual((third["training"]["cache_hits"], third["training"]["cache_remote_hits"]), (2, 0))  # kept locally too

    def test_configuration_switches_it_on_and_off(self):
        code = """
import sys, json, torch, fusebox
import torch._inductor.config as config
setting = json.loads(sys.argv[1])
compiled = fusebox.compile(lambda x: x.sin().sum() + 1, options=setting["options"])
with config.patch(fx_graph_remote_cache=setting["patch"]):
    compiled(torch.ones(5))
fusebox._engine.drain()
print(json.dumps([fusebox.counters()["cache_remote_" + name] for name in ("stores", "hits")]))
"""
        def found(number, patch, options=None, environment="0"):
            words = json.dumps({"patch": patch, "options": options})
            counts, errors = self.process(words, code=code, **{**self.at(number), "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": environment})
            self.assertNotIn("has no effect", errors)
            return counts
        self.assertEqual(found(1, None), [0, 0])
        self.assertEqual(found(2, False, environment="1"), [0, 0])
        self.assertEqual(found(3, True), [1, 0])
        self.assertEqual(found(4, None, environment="1"), [0, 1])
        self.assertEqual(found(5, False), [0, 0])
        self.assertEqual(found(6, False, {"fx_graph_remote_cache": True}), [0, 1])
        self.assertEqual(found(7, True, {"fx_graph_remote_cache": False}), [0, 0])

    def test_without_a_key_it_is_not_used(self):
        found, errors = self.process("mlp", "training", **{**self.at(1), "FUSEBOX_CACHE_KEY": ""})
        self.assertEqual(found["training"]["cache_remote_stores"], 0)
        self.assertEqual(errors.count("the remote cache is not used"), 1)
        self.assertIn("FUSEBOX_CACHE_KEY", errors)
        self.assertEqual(self.redis("DBSIZE").split()[-1], b"0")

    def test_what_others_wrote_is_refused(self):
        self.process("mlp", **{**self.at(1), "FUSEBOX_CACHE_KEY": "another key"})
        names = self.redis("KEYS", "*").split()  # of the graph and of its capture
        entries = [self.redis("--raw", "GET", name)[:-1] for name in names]
        rng = random.Random(3)
        values = [lambda entry: entry, lambda entry: b"", lambda entry: b"x", lambda entry: rng.randbytes(100_000), lambda entry: entry[:500],
                  lambda entry: b"FBXCACHE" + rng.randbytes(500), lambda entry: b"\x00" * 4_000_000]
        for number, value in enumerate(values):
            for name, entry in zip(names, entries):
                self.redis("SET", name, data=value(entry))
            found, errors = self.process("mlp", **self.at(10 + number))
            self.assertEqual((found["mlp"]["cache_hits"], found["mlp"]["cache_misses"]), (0, 1))
            self.assertRegex(errors, "refused|damaged|another format")
            good, _ = self.process("mlp", **self.at(100 + number))  # was written over
            self.assertEqual(good["mlp"]["cache_remote_hits"], 1)
        for name in names:
            self.redis("DEL", name)
            self.redis("LPUSH", name, "a list")
        found, errors = self.process("mlp", **self.at(200))
        self.assertEqual(found["mlp"]["cache_misses"], 1)
        self.assertIn("not used any more", errors)

    def test_an_absent_full_or_silent_one_is_one_warning(self):
        def check(word, number, **environment):
            start = time.monotonic()
            found, errors = self.process("mlp", "training", **{**self.at(number), **environment})
            self.assertEqual(found["training"]["cache_stores"], 2, word)
            self.assertEqual(errors.count("the remote cache is not used"), 1, errors)
            self.assertIn(word, errors)
            return time.monotonic() - start

        check("No such file", 1, TORCHINDUCTOR_REDIS_URL="unix:///nowhere")
        check("refused", 2, TORCHINDUCTOR_REDIS_URL="redis://127.0.0.1:1")
        check("TLS", 3, TORCHINDUCTOR_REDIS_URL="rediss://127.0.0.1:1")
        check("port", 4, TORCHINDUCTOR_REDIS_URL="redis://127.0.0.1:port")
        self.redis("CONFIG", "SET", "maxmemory", "1")
        check("OOM", 5)
        listener = socket.socket()  # takes connections and never answers
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        check("temporarily unavailable", 6, TORCHINDUCTOR_REDIS_URL="", TORCHINDUCTOR_REDIS_HOST="127.0.0.1",
              TORCHINDUCTOR_REDIS_PORT=str(listener.getsockname()[1]))

    def test_one_that_goes_away_in_between(self):
        code = """
import json, os, signal, sys, fusebox, programs
found = programs.run("mlp")
fusebox._engine.drain()
os.kill(int(sys.argv[1]), signal.SIGKILL)
found = programs.run("training")
fusebox._engine.drain()
print(json.dumps(fusebox.counters()))
"""
        counters, errors = self.process(str(self.server.pid), code=code, **self.at(1))
        self.assertEqual((counters["cache_stores"], counters["cache_remote_stores"]), (3, 1))
        self.assertEqual(errors.count("not used any more"), 1)


if __name__ == "__main__":
    unittest.main()

"""What runs of a job hand on: sizes and numbers that changed in one run are symbols in the first compile of the next. Only speed may depend on it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import processes  # noqa: E402

PROGRAM = """
import json, sys, torch, fusebox
{setup}
def f(x, n=3):
    return torch.softmax(x * n + 1, -1).sum(0) * x.shape[0]

def g(x, y):
    return (x.sum() + y.sum()).reshape(1) * (x.shape[0] - y.shape[0])

calls = json.loads(sys.argv[1])
compiled = dict(f=fusebox.compile(f, dynamic=calls.get("dynamic")), g=fusebox.compile(g))
torch.manual_seed(0)
for name, *shapes in calls["calls"]:
    arguments = [torch.randn(s) if isinstance(s, list) else s for s in shapes]
    torch.testing.assert_close(compiled[name](*arguments), dict(f=f, g=g)[name](*arguments))
counters = fusebox.counters()
print(json.dumps([counters["graphs"], counters["recompiles"]]))
"""
GROWING = [["f", [4, 8]], ["f", [6, 8]], ["f", [7, 8]]]
LATER = [["f", [9, 8]], ["f", [11, 8]], ["f", [5, 8]]]


class ProfileTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.script = os.path.join(self.directory, "program.py")

    def prepare(self, calls, setup="", dynamic=None, where=None, **environment):
        """Arguments of Python and the environment of a run."""
        env = {k: v for k, v in os.environ.items() if not any(w in k for w in ("CACHE", "FUSEBOX_", "PGO", "JOB_ID", "REDIS"))}
        env.update({"TORCHINDUCTOR_CACHE_DIR": where or os.path.join(self.directory, "cache"), "OMP_NUM_THREADS": "1"})
        env.update(environment)
        pathlib.Path(self.script).write_text(PROGRAM.replace("{setup}", setup))
        return [self.script, json.dumps({"calls": calls, "dynamic": dynamic})], env

    def start(self, calls, **how):
        arguments, env = self.prepare(calls, **how)
        return subprocess.Popen([sys.executable, *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_program(self, calls, *, fails=False, **how):
        """([graphs compiled, recompiles], standard error) of a process; results were compared with eager's there."""
        arguments, env = self.prepare(calls, **how)
        done = processes.run_python(arguments, env=env)
        self.assertEqual(done.returncode != 0, fails, done.stderr[-3000:])
        return None if fails else json.loads(done.stdout.strip().splitlines()[-1]), done.stderr

    def profiles(self):
        found = []
        for path in pathlib.Path(self.directory).glob("cache/fusebox/??/*"):
            if b'"kind":"profile"' in path.read_bytes():
                found.append(path)
        return found

    def test_the_second_run_compiles_a_varying_size_once(self):
        job = {"TORCH_COMPILE_JOB_ID": "train"}
        self.assertEqual(self.run_program(GROWING, **job)[0], [2, 1])
        self.assertEqual(self.run_program(LATER, **job)[0], [1, 0])
        self.assertEqual(len(self.profiles()), 1)

    def test_numbers_and_one_size_a_run(self):
        job = {"TORCH_COMPILE_JOB_ID": "train"}
        self.run_program([["f", [4, 8], 3]], **job)
        # Another size than that of the run before is one that changes.
        self.assertEqual(self.run_program([["f", [6, 8], 3], ["f", [7, 8], 3]], **job)[0], [1, 0])
        self.assertEqual(self.run_program([["f", [6, 8], 3], ["f", [7, 8], 5]], **job)[0], [2, 1])
        self.assertEqual(self.run_program([["f", [6, 8], 7], ["f", [7, 8], 9]], **job)[0], [1, 0])

    def test_sizes_that_changed_are_one_each(self):
        job = {"TORCH_COMPILE_JOB_ID": "train"}
        self.run_program([["g", [4, 8], [4, 8]], ["g", [6, 8], [5, 8]]], **job)
        self.assertEqual(self.run_program([["g", [7, 8], [7, 8]], ["g", [9, 8], [3, 8]]], **job)[0], [1, 0])
        other = {"TORCH_COMPILE_JOB_ID": "equal"}
        self.run_program([["g", [4, 8], [4, 8]], ["g", [6, 8], [6, 8]]], **other)
        self.assertEqual(self.run_program([["g", [7, 8], [7, 8]], ["g", [9, 8], [9, 8]]], **other)[0], [1, 0])
        self.assertEqual(self.run_program([["g", [7, 8], [7, 8]], ["g", [9, 8], [3, 8]]], **other)[0], [1, 0])

    def test_only_the_same_job_is_helped(self):
        self.run_program(GROWING)
        self.assertEqual(self.profiles(), [])
        self.run_program(GROWING, TORCH_COMPILE_JOB_ID="train")
        for environment in ({}, {"TORCH_COMPILE_JOB_ID": "other"}, {"TORCH_COMPILE_JOB_ID": "train", "TORCH_COMPILE_CACHE_KEY_TAG": "v2"},
                            {"TORCH_COMPILE_JOB_ID": "train", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"},
                            {"TORCH_COMPILE_JOB_ID": "train", "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_LOCAL_PGO": "0"}):
            self.assertEqual(self.run_program(LATER, **environment)[0], [2, 1], environment)
        self.assertEqual(self.run_program(LATER, TORCH_COMPILE_STICKY_PGO_KEY="train")[0], [1, 0])
        setup = "import torch.compiler.config; torch.compiler.config.job_id = 'train'"
        self.assertEqual(self.run_program(LATER, setup=setup)[0], [1, 0])
        self.assertEqual(self.run_program(LATER, setup=setup + "\n")[0], [2, 1])  # a line further down it is other code
        self.assertEqual(self.run_program(LATER, TORCH_COMPILE_JOB_ID="train", dynamic=False)[0], [3, 2])

    def test_other_keys_are_read_and_written_too(self):
        self.run_program(GROWING, TORCH_COMPILE_JOB_ID="one", TORCH_COMPILE_STICKY_PGO_WRITE="shared")
        self.assertEqual(self.run_program(LATER, TORCH_COMPILE_JOB_ID="two", TORCH_COMPILE_STICKY_PGO_READ="shared")[0], [1, 0])
        self.assertEqual(self.run_program(LATER, TORCH_COMPILE_JOB_ID="three")[0], [2, 1])

    def test_a_reserved_job_is_refused(self):
        for setup, name in (("", "ValueError"), ("import torch._dynamo.pgo", "ReservedWorkflowIdUserError")):
            _, errors = self.run_program(GROWING, setup=setup, fails=True, TORCH_COMPILE_JOB_ID="mast:train:1")
            self.assertIn(name + ": torch.compiler.config.job_id may not begin with 'mast:'", errors)

    def test_artifacts_take_it_along(self):
        save = "import atexit, fusebox\natexit.register(lambda: open('{0}', 'wb').write(fusebox.compiler.save_cache_artifacts()[0]))"
        load = "import fusebox\nfusebox.compiler.load_cache_artifacts(open('{0}', 'rb').read())"
        bundle = os.path.join(self.directory, "bundle")
        job = {"TORCH_COMPILE_JOB_ID": "train"}
        self.run_program(GROWING, setup=save.format(bundle), **job)
        elsewhere = os.path.join(self.directory, "elsewhere")
        self.assertEqual(self.run_program(LATER, setup=load.format(bundle), where=elsewhere, **job)[0], [1, 0])
        self.assertEqual(self.run_program(LATER, where=os.path.join(self.directory, "empty"), **job)[0], [2, 1])

    def test_what_is_damaged_is_left_out_with_a_warning(self):
        job = {"TORCH_COMPILE_JOB_ID": "train"}
        self.run_program(GROWING, **job)
        [path] = self.profiles()
        good = path.read_bytes()
        flipped = bytearray(good)
        flipped[-20] ^= 4
        for bad in (b"", b"x" * 300, good[:100], bytes(flipped), b"\x80\x04pickle"):
            path.write_bytes(bad)
            found, errors = self.run_program(GROWING, **job)
            self.assertEqual(found, [2, 1])
            self.assertEqual(errors.count("a profile in the cache folder is not used"), 1, errors)
            self.assertEqual(self.run_program(LATER, **job), ([1, 0], ""))  # was written anew

    def test_killed_at_any_time_it_is_whole(self):
        """A profile is replaced as a whole: a process that is killed leaves the old one or the new one."""
        job = {"TORCH_COMPILE_JOB_ID": "train"}
        self.run_program(GROWING, **job)
        for i in range(6):
            process = self.start([["f", [4 + i, 8 + j]] for j in range(20)], **job)
            time.sleep(1 + 0.4 * i)
            process.kill()
            process.communicate(timeout=60)
        found, errors = self.run_program(LATER, **job)
        self.assertEqual((found[1], errors), (0, ""))

    def test_processes_at_once_lose_nothing(self):
        job = {"TORCH_COMPILE_JOB_ID": "train"}
        calls = [[["f", [4, 8]], ["f", [6, 8]]], [["f", [4, 8], 3], ["f", [4, 8], 5]], [["f", [4, 8]], ["f", [4, 10]]],
                 [["g", [4, 8], [4, 8]], ["g", [4, 8], [6, 8]]]]
        processes = [self.start(c, **job) for c in calls]
        for process in processes:
            _, errors = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(self.run_program([["f", [7, 12], 9], ["f", [3, 5], 4], ["g", [4, 8], [8, 8]], ["g", [4, 8], [5, 8]]], **job)[0], [2, 0])

    @unittest.skipUnless(shutil.which("redis-server"), "there is no Redis here")
    def test_processes_without_a_common_folder_share_it_by_redis(self):
        socket = os.path.join(self.directory, "redis.sock")
        server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (server.kill(), server.wait()))
        for _ in range(200):
            if os.path.exists(socket):
                break
            time.sleep(0.05)
        remote = {"TORCH_COMPILE_JOB_ID": "train", "TORCHINDUCTOR_REDIS_URL": f"unix://{socket}", "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_REMOTE_PGO": "1"}
        folder = [os.path.join(self.directory, str(i)) for i in range(5)]
        self.run_program(GROWING, where=folder[0], **remote)
        self.assertEqual(self.run_program(LATER, where=folder[1], **remote), ([1, 0], ""))
        self.assertEqual(self.run_program(LATER, where=folder[2], **{**remote, "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_REMOTE_PGO": "0"})[0], [2, 1])
        found, errors = self.run_program(LATER, where=folder[3], **remote, FUSEBOX_CACHE_KEY="secret")
        self.assertEqual(found, [2, 1])
        self.assertIn("no signature", errors)
        server.kill()
        server.wait()
        found, errors = self.run_program(LATER, where=folder[4], **remote)
        self.assertEqual(found, [2, 1])
        self.assertEqual(errors.count("is not used any more"), 1, errors)


if __name__ == "__main__":
    unittest.main()

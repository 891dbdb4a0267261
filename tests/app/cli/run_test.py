"""`fusebox run` with a host of our own in place of the engine: what the script gets and what comes back."""
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
import unittest

from program import FUSEBOX, folder, fusebox, synthesize

# Stands for the engine's host: puts a session where it was asked to and runs the script form as Python would.
HOST = r'''
import os, runpy, shutil, sys
assert os.environ["FUSEBOX_ENGINE"] in ("fusebox", "stock", "eager")
if os.environ["FUSEBOX_RECORD"] == "1" and os.environ.get("TEST_SESSION"):
    shutil.copy(os.environ["TEST_SESSION"], os.environ["FUSEBOX_SESSION"])
args = sys.argv[1:]
if args[0] == "-c":
    sys.argv = ["-c"] + args[2:]
    exec(compile(args[1], "<string>", "exec"), {"__name__": "__main__"})
elif args[0] == "-m":
    sys.argv = args[1:]
    runpy.run_module(args[1], run_name="__main__", alter_sys=True)
else:
    sys.argv = args
    sys.path[0] = os.path.dirname(os.path.abspath(args[0]))
    runpy.run_path(args[0], run_name="__main__")
'''


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = folder()
        os.makedirs(cls.path("bin"))
        os.makedirs(cls.path("python/fusebox"))
        os.makedirs(cls.path("work"))
        cls.program = shutil.copy(FUSEBOX, cls.path("bin/fusebox"))
        open(cls.path("python/fusebox/__init__.py"), "w").close()
        with open(cls.path("python/fusebox/host.py"), "w") as file:
            file.write(HOST)
        cls.sample = synthesize(cls.path("sample.fusebox"))
        cls.environment = {**os.environ, "TEST_SESSION": cls.sample, "FUSEBOX_PYTHON": sys.executable}

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.dir.name, name)

    def setUp(self):
        for name in os.listdir(self.path("work")):
            os.remove(self.path("work/" + name))

    def script(self, text, name="job.py"):
        with open(self.path("work/" + name), "w") as file:
            file.write(text)
        return name

    def run_it(self, *args, **options):
        options.setdefault("env", self.environment)
        return subprocess.run([self.program, "run", *args], cwd=self.path("work"), capture_output=True, text=True, timeout=60,
                              **options)

    def start(self, *args, **options):
        return subprocess.Popen([self.program, "run", *args], cwd=self.path("work"), env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def sessions(self):
        return [n for n in os.listdir(self.path("work")) if n.endswith(".fusebox")]

    def test_arguments_stdin_stdout_and_code_are_the_scripts(self):
        self.script("import sys\nprint(sys.argv)\nprint(sys.stdin.read())\nsys.exit(7)\n")
        result = self.run_it("job.py", "--session", "x", "-o", "--help", "a b", "", input="from stdin")
        self.assertEqual(result.returncode, 7)
        self.assertEqual(result.stdout, "['job.py', '--session', 'x', '-o', '--help', 'a b', '']\nfrom stdin\n")
        self.assertIn("recorded job-", result.stderr)
        self.assertIn("print of a traced tensor", result.stderr)
        self.assertRegex(self.sessions()[0], r"^job-\d{8}-\d{6}\.fusebox$")

    def test_module_and_code(self):
        self.script("import sys; print('module', sys.argv[1:])", "mod.py")
        result = self.run_it("--no-record", "-m", "mod", "--json", env={**self.environment, "PYTHONPATH": self.path("work")})
        self.assertEqual(result.stdout, "module ['--json']\n", result.stderr)
        result = self.run_it("--no-record", "-c", "import sys; print(sys.argv)", "-m", "x")
        self.assertEqual(result.stdout, "['-c', '-m', 'x']\n")
        self.assertEqual(self.sessions(), [])
        self.assertEqual(result.stderr, "")

    def test_session_and_summary_go_where_they_are_asked(self):
        self.script("import os; os.chdir('/')")
        result = self.run_it("--session", "here.fusebox", "--summary", "out.json", "--engine", "stock", "job.py")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.sessions(), ["here.fusebox"])
        with open(self.path("work/out.json")) as file:
            summary = json.load(file)
        self.assertEqual(summary["launches"], 2000)
        self.assertEqual(summary["exit_code"], 0)
        as_json = self.run_it("--json", "job.py")
        self.assertEqual(json.loads(as_json.stderr)["kernels"], 24)

    def test_a_command_is_no_file(self):
        self.script("", "summary")
        result = subprocess.run([self.program, "summary"], cwd=self.path("work"), capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 2)
        self.assertIn("FILE", result.stderr)

    def test_errors_of_the_script_are_its_own(self):
        self.script("def broken(:\n")
        result = self.run_it("job.py")
        self.assertEqual(result.returncode, 1)
        self.assertIn("SyntaxError", result.stderr)
        self.script("raise RuntimeError('mine')")
        result = self.run_it("job.py")
        self.assertEqual(result.returncode, 1)
        self.assertIn("RuntimeError: mine", result.stderr)

    def test_bad_input(self):
        self.script("pass")
        cases = [(["missing.py"], 3, "no such script"), (["-m"], 2, "module's name"), ([], 2, "nothing to run"),
                 (["--python", "/no/python", "job.py"], 2, "no such Python"),
                 (["--session", "no/dir/x.fusebox", "job.py"], 2, "does not exist"),
                 (["--no-record", "--summary", "x.json", "job.py"], 2, "--no-record"),
                 (["--summary", "no/such/o.json", "job.py"], 3, "the summary's directory does not exist"),
                 (["--no-record", "--gpu-sampling", "job.py"], 2, "--no-record"),
                 (["--no-record", "--operators", "job.py"], 2, "--no-record"),
                 (["--gpu-counters", "--gpu-sampling", "job.py"], 2, "ask for one of them"),
                 (["--gpu-sampling=5", "job.py"], 2, "microseconds from 10 to 10000, not 5"),
                 (["--gpu-sampling=often", "job.py"], 2, "not often"),
                 (["--gpu-sampling-metrics=a.sum", "job.py"], 2, "needs --gpu-sampling"),
                 (["--session", "job.py", "job.py"], 2, "left alone"), (["."], 3, "__main__.py")]
        for args, code, words in cases:
            result = self.run_it(*args)
            self.assertEqual((result.returncode, result.stdout), (code, ""), args)
            self.assertIn(words, result.stderr)
        nothing = self.run_it("job.py", env={k: v for k, v in self.environment.items() if k != "TEST_SESSION"})
        self.assertEqual(nothing.returncode, 0)
        self.assertIn("nothing was recorded", nothing.stderr)

    def test_a_run_that_records_nothing_leaves_the_old_session_alone(self):
        self.script("pass")
        shutil.copy(self.sample, self.path("work/good.fusebox"))
        headless = {k: v for k, v in self.environment.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
        result = subprocess.run([self.program, "debug", "--session", "good.fusebox", "job.py"], cwd=self.path("work"), env=headless,
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 2)
        self.assertIn("no display", result.stderr)
        self.assertTrue(os.path.exists(self.path("work/good.fusebox")))
        self.script("#!/no/such/interpreter\n", "python")
        os.chmod(self.path("work/python"), 0o700)
        gone = self.run_it("--session", "good.fusebox", "--python", self.path("work/python"), "job.py")
        self.assertNotEqual(gone.returncode, 0)
        self.assertEqual(os.path.getsize(self.path("work/good.fusebox")), os.path.getsize(self.sample))
        # Where nothing is recorded in its place it stays, and that is said.
        nothing = {k: v for k, v in self.environment.items() if k != "TEST_SESSION"}
        ended = self.run_it("--session", "good.fusebox", "job.py", env=nothing)
        self.assertEqual(ended.returncode, 0)
        self.assertIn("good.fusebox is still the session of an earlier run", ended.stderr)
        self.assertEqual(os.path.getsize(self.path("work/good.fusebox")), os.path.getsize(self.sample))
        # Killed before anything was recorded, it comes back with the next run.
        self.script("import time\nprint('begun', flush=True)\ntime.sleep(60)\n", "long.py")
        process = subprocess.Popen([self.program, "run", "--session", "good.fusebox", "long.py"], cwd=self.path("work"), env=nothing, text=True, stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "begun\n")
        process.kill()
        process.communicate(timeout=30)
        self.assertEqual(self.sessions(), [])
        self.assertEqual(self.run_it("--session", "good.fusebox", "job.py", env=nothing).returncode, 0)
        self.assertEqual(os.path.getsize(self.path("work/good.fusebox")), os.path.getsize(self.sample))
        self.assertEqual(self.run_it("--session", "good.fusebox", "job.py").returncode, 0)
        self.assertEqual(self.sessions() + [n for n in os.listdir(self.path("work")) if n.endswith(".replaced")], ["good.fusebox"])

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_directory_without_write_permission(self):
        self.script("pass")
        os.chmod(self.path("work"), 0o500)
        try:
            result = self.run_it("job.py")
        finally:
            os.chmod(self.path("work"), 0o700)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--no-record", result.stderr)

    def test_death_by_signal(self):
        self.script("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
        result = self.run_it("job.py")
        self.assertEqual(result.returncode, 137)
        self.assertIn("signal 9", result.stderr)
        self.assertIn("memory", result.stderr)
        self.assertIn("recorded job-", result.stderr)
        self.script("import ctypes\nctypes.string_at(0)")
        self.assertEqual(self.run_it("job.py").returncode, 139)

    # Waits for four signals, and a little longer for one that comes twice.
    COUNT = ("import signal, sys, time\ngot = []\n"
             "for s in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):\n"
             "    signal.signal(s, lambda n, f: got.append(n))\n"
             "print('ready', flush=True)\nend = time.monotonic() + 20\n"
             "while len(got) < 4 and time.monotonic() < end: time.sleep(0.02)\n"
             "time.sleep(0.5)\n"
             "print(sorted(got), flush=True)\nsys.exit(5)\n")

    def test_signals_reach_the_script_once(self):
        self.script(self.COUNT)
        for to_group in (False, True):
            process = self.start("job.py", start_new_session=True)
            self.assertEqual(process.stdout.readline(), "ready\n")
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
                (os.killpg if to_group else os.kill)(process.pid, number)
                time.sleep(0.1)
            out, err = process.communicate(timeout=60)
            expected = sorted(map(int, (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)))
            self.assertEqual(out, f"{expected}\n", f"group: {to_group}")
            self.assertEqual(process.returncode, 5, err)

    def test_unhandled_signals(self):
        self.script("import time\nprint('ready', flush=True)\ntime.sleep(30)\n")
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            process = self.start("job.py")
            process.stdout.readline()
            process.send_signal(number)
            process.communicate(timeout=30)
            self.assertEqual(process.returncode, code)

    def test_script_dies_with_us(self):
        self.script("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
        process = self.start("job.py")
        script = int(process.stdout.readline())
        process.kill()
        process.communicate(timeout=30)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                with open(f"/proc/{script}/status") as status:
                    if "zombie" in status.read():
                        return
            except (FileNotFoundError, ProcessLookupError):
                return
            time.sleep(0.05)
        self.fail("the script lives on")

    def test_stop_and_continue(self):
        """A stopped script stops us too, as a shell wants it, and both go on together."""
        self.script("print('ready', flush=True)\ninput()\nprint('done')\n")
        process = self.start("job.py", preexec_fn=os.setpgrp, stdin=subprocess.PIPE)
        self.addCleanup(process.kill)
        process.stdout.readline()
        process.send_signal(signal.SIGTSTP)
        end = time.monotonic() + 20
        state = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG)
        while state is None and time.monotonic() < end:
            time.sleep(0.02)
            state = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG)
        self.assertIsNotNone(state, "still running")
        self.assertEqual(state.si_code, os.CLD_STOPPED)
        os.killpg(process.pid, signal.SIGCONT)
        out, _ = process.communicate("\n", timeout=30)
        self.assertEqual(out, "done\n")
        self.assertEqual(process.returncode, 0)

    def test_terminal(self):
        """On a terminal the script has it: isatty, and Ctrl-C arrives once."""
        self.script("import sys, time\ncount = 0\n"
                    "try:\n    print(sys.stdin.isatty(), sys.stdout.isatty(), flush=True)\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    count += 1\n"
                    "try:\n    time.sleep(0.5)\nexcept KeyboardInterrupt:\n    count += 1\nprint('count', count, flush=True)\n")
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.path("work"))
            os.execve(self.program, [self.program, "run", "--no-record", "job.py"], self.environment)
        text = b""
        pressed = False
        while True:
            try:
                part = os.read(terminal, 4096)
            except OSError:
                break
            if not part:
                break
            text += part
            if b"True True" in text and not pressed:
                pressed = True
                os.write(terminal, b"\x03")
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.WEXITSTATUS(status), 0, text)
        self.assertIn(b"count 1", text)


if __name__ == "__main__":
    unittest.main()

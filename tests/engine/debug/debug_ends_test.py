"""Every way that debugging ends, and the control channel against an end that does not behave."""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from console import FUSEBOX, Console  # noqa: E402
from programs import BREAKS, SMALL, SPINS  # noqa: E402


class Ends(unittest.TestCase):
    def test_detach(self):
        with Console(SMALL) as c:
            c.stopped()
            c.send("detach")
            c.wait("ended")
            self.assertIn("result [24.0", c.printed())

    def test_kill(self):
        with Console(SMALL) as c:
            c.stopped()
            c.send("kill")
            self.assertEqual(c.wait("ended")["signal"], signal.SIGKILL)
            self.assertEqual(c.finish(), 128 + signal.SIGKILL)

    def test_host_death_is_told(self):
        with Console(SMALL) as c:
            c.stopped()
            os.kill(c.host(), signal.SIGSEGV)
            self.assertEqual(c.wait("ended")["signal"], signal.SIGSEGV)

    def test_death_of_the_console_leaves_no_program_behind(self):
        with Console(SMALL) as c:
            c.stopped()
            host = c.host()
            c.process.kill()
            c.process.wait()
            end = time.monotonic() + 30
            while time.monotonic() < end:
                try:
                    with open(f"/proc/{host}/stat") as file:
                        if file.read().split(")")[1].split()[0] == "Z":
                            return
                except OSError:
                    return
                time.sleep(0.1)
            self.fail("the program is still there")

    def test_exit_code_and_arguments(self):
        with Console("import sys, torch\nprint(sys.argv[1:])\nsys.exit(7)\n", args=["--json", "a b"]) as c:
            self.assertEqual(c.finish(), 7)
            self.assertIn("['--json', 'a b']", c.printed())

    def test_other_threads_go_on(self):
        tick = "def tick():\n    while True:\n        os.write(1, b'tick\\n')\n        time.sleep(0.01)\n\n\n"
        text = "import os, threading, time\n" + tick + SMALL.replace(
            'print("result"', 'threading.Thread(target=tick, daemon=True).start()\nprint("result"')
        with Console(text, "--go", "--break", "helper") as c:
            c.stopped()
            before = c.printed().count("tick")
            c.wait_printed(lambda text: text.count("tick") > before + 20)
            self.assertEqual(c.finish(), 0)

    def test_console_for_people(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "program.py")
            with open(script, "w") as file:
                file.write(BREAKS)
            done = subprocess.run([FUSEBOX, "debug", "--console", "--no-record", "--python", sys.executable, script], text=True,
                                  input="until graph_break\nlocals\nbt\nguards\ngraph\nhelp until\nnonsense\ncontinue\n",
                                  capture_output=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            for words in ("stop 1 (breakpoint 1): compile of f", "graph break:", "#0 inner (program.py:5)", "TENSOR_MATCH",
                          "aten::mul", "Go on to the next event", 'no command "nonsense"', "result [8.0", "ended with exit code 0"):
                self.assertIn(words, done.stdout)


class Leaving(unittest.TestCase):
    """Whatever the program does, the console can be told something."""

    def spin(self, c):
        """Until it runs and compiles no more."""
        c.stopped()
        c.send("continue")
        for _ in range(600):
            if "spinning" in c.printed():
                return c
            time.sleep(0.1)
        self.fail(c.printed())

    def spinning(self):
        return self.spin(Console(SPINS))

    def test_interrupt_gives_the_prompt_back_where_nothing_compiles(self):
        with self.spinning() as c:
            c.process.send_signal(signal.SIGINT)
            self.assertTrue(c.wait("running")["pausing"])
            self.assertFalse(c.ask("status")["stopped"])
            self.assertEqual(c.ask("break f")["name"], "f")
            c.send("kill")
            self.assertEqual(c.wait("ended")["signal"], signal.SIGKILL)

    def test_interrupt_pauses_a_program_that_launches(self):
        with Console(SPINS.replace("    time.sleep(0.01)", "    f(torch.ones(4))")) as c:
            self.spin(c)
            c.process.send_signal(signal.SIGINT)
            self.assertEqual(c.stopped()["reason"], "pause")
            c.send("quit")
            c.wait("ended")

    def test_second_interrupt_is_the_programs(self):
        with self.spinning() as c:
            c.process.send_signal(signal.SIGINT)
            c.wait("running")
            c.process.send_signal(signal.SIGINT)
            c.wait("interrupted")
            c.wait("ended")
            self.assertIn("KeyboardInterrupt", c.printed())

    def test_detached_programs_can_be_killed_and_waited_for(self):
        with self.spinning() as c:
            c.process.send_signal(signal.SIGINT)
            c.wait("running")
            c.send("detach")
            c.wait("detached")
            self.assertIn("no program is being debugged", c.refused("pause"))
            c.send("wait")
            time.sleep(0.5)
            c.process.send_signal(signal.SIGINT)
            c.wait("interrupted")
            c.wait("ended")

    def test_kill_after_detach(self):
        with Console(SPINS) as c:
            c.stopped()
            c.send("detach")
            c.wait("detached")
            c.send("kill")
            self.assertEqual(c.wait("ended")["signal"], signal.SIGKILL)

    def test_breakpoints_that_nothing_reached_are_named_at_the_end(self):
        with Console(SMALL, "--break", "program.py:99999") as c:
            c.stopped()
            c.ask("break f")
            c.ask("break graph_break")
            c.send("delete 4")
            c.wait("reply")
            while (event := c.go("continue"))["event"] != "ended":
                pass
            self.assertEqual(event["never_reached"], ["program.py:99999"])


class Wire(unittest.TestCase):
    """The control channel against an end that does not behave."""

    def serve(self, answer):
        """Runs SMALL against a listener of our own that sends `answer` after the hello; what the host wrote, and the finished process."""
        with tempfile.TemporaryDirectory() as folder:
            path, script = os.path.join(folder, "socket"), os.path.join(folder, "program.py")
            with open(script, "w") as file:
                file.write(SMALL)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen(1)
            listener.settimeout(60)
            host = subprocess.Popen([sys.executable, "-m", "fusebox.host", script], text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT,
                                    env={**os.environ, "FUSEBOX_CONTROL": path, "FUSEBOX_CONTROL_TOKEN": "t", "FUSEBOX_RECORD": "0"})
            connection, _ = listener.accept()
            connection.settimeout(60)
            hello = connection.recv(4096)
            if answer is not None:
                connection.sendall(answer)
            else:
                connection.close()
            out, _ = host.communicate(timeout=90)
            connection.close()
            listener.close()
            return hello, out, host.returncode

    @staticmethod
    def frame(text):
        return len(text).to_bytes(4, "little") + text

    HELLO = frame.__func__(b'{"type":"hello","protocol":1,"breakpoints":[]}')

    def test_hello_names_version_and_token(self):
        hello, out, code = self.serve(self.HELLO + self.frame(b'{"do":"detach","id":1}'))
        self.assertIn(b'"protocol":1', hello)
        self.assertIn(b'"token":"t"', hello)
        self.assertEqual(code, 0, out)

    def test_garbage_detaches_and_the_program_goes_on(self):
        stop = b'{"type":"hello","protocol":1,"breakpoints":[{"kind":"compile"}]}'
        # One kind of garbage stands for all: the others are read by debug_test and reader_fuzz without a program.
        _, out, code = self.serve(self.frame(stop) + self.frame(b"no json") + (b"\xff" * 8))
        self.assertEqual(code, 0, out)
        self.assertIn("result [24.0", out)

    def test_nobody_or_another_version(self):
        for answer in (None, self.frame(b'{"type":"hello","protocol":99}')):
            _, out, code = self.serve(answer)
            self.assertEqual(code, 0)
            self.assertIn("running without the debugger", out)
            self.assertIn("result [24.0", out)

    def test_odd_requests_are_answered_not_believed(self):
        odd = [b'{"id":1}', b'{"do":7,"id":2}', b'{"do":"break.add","kind":"line","id":3}', b'{"do":"break.add","kind":"line","file":"x","line":"y","id":4}',
               b'{"do":"break.remove","breakpoint":99999999999999999999,"id":5}', b'{"do":"step","id":6}', b'{"do":"ask","what":[],"id":7}',
               b'{"do":"break.add","kind":["x"],"id":8}', b'{"do":"detach"}']
        _, out, code = self.serve(self.HELLO + b"".join(map(self.frame, odd)))
        self.assertEqual(code, 0, out)
        self.assertIn("result [24.0", out)

    def test_a_stranger_at_the_consoles_socket_is_turned_away(self):
        waits = "import os, time\nprint('here', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\n"
        with Console(waits + SMALL) as c:
            c.wait_printed(lambda text: "here" in text)
            with open(f"/proc/{c.host()}/environ", "rb") as file:
                path = next(v.split(b"=", 1)[1] for v in file.read().split(b"\0") if v.startswith(b"FUSEBOX_CONTROL="))
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            self.assertEqual(os.stat(os.path.dirname(path)).st_mode & 0o777, 0o700)
            stranger = socket.socket(socket.AF_UNIX)
            stranger.settimeout(10)
            stranger.connect(path)
            stranger.sendall(self.frame(b'{"type":"hello","protocol":1,"token":"wrong"}'))
            self.assertEqual(stranger.recv(100), b"")
            stranger.close()
            with open(os.path.join(c.folder.name, "go"), "w"):
                pass
            self.assertEqual(c.stopped()["kind"], "compile")


if __name__ == "__main__":
    unittest.main(verbosity=1)

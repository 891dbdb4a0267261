"""Driving `fusebox debug --console --json` from a test: commands go in line by line, events come out as objects."""
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

FUSEBOX = os.path.abspath(os.environ.get("FUSEBOX_BIN", "build/release/bin/fusebox"))


class Console:
    """One debugged program. `text` is the script; its own prints go to `printed()`."""

    def __init__(self, text, *options, args=(), record=False, environment=None):
        self.folder = tempfile.TemporaryDirectory(prefix="fusebox-debug-test-")
        self.script = os.path.join(self.folder.name, "program.py")
        with open(self.script, "w") as file:
            file.write(text)
        self.session = os.path.join(self.folder.name, "s.fusebox")
        words = ["--session", self.session] if record else ["--no-record"]
        self.errors = open(os.path.join(self.folder.name, "errors"), "w+")
        self.process = subprocess.Popen(
            [FUSEBOX, "debug", "--console", "--json", "--python", sys.executable, *words, *options, self.script, *args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, bufsize=1,
            cwd=self.folder.name, env={**os.environ, **(environment or {})})
        self.events = []
        self.clock = threading.Timer(120, self.process.kill)
        self.clock.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.clock.cancel()
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()
        self.folder.cleanup()

    def next(self):
        """The next line of the console as an object; None at its end."""
        line = self.process.stdout.readline()
        if not line:
            return None
        event = json.loads(line)
        self.events.append(event)
        return event

    def wait(self, *kinds):
        """Reads on until an event of one of these kinds."""
        while (event := self.next()) is not None:
            if event["event"] in kinds:
                return event
        raise AssertionError(f"the console ended without {kinds}; it said {self.events[-3:]}\n{self.printed()}")

    def send(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def ask(self, command):
        """The result of a command that does not resume."""
        self.send(command)
        reply = self.wait("reply", "ended")
        assert reply["event"] == "reply" and reply["ok"], reply
        return reply["result"]

    def refused(self, command):
        """The error of a command that must not work."""
        self.send(command)
        reply = self.wait("reply")
        assert not reply["ok"], reply
        return reply["error"]

    def go(self, command):
        """Resumes; the next stop, or the end."""
        self.send(command)
        event = self.wait("stopped", "ended", "reply")
        if event["event"] == "reply":
            assert event["ok"], event
            event = self.wait("stopped", "ended")
        return event

    def stopped(self):
        return self.wait("stopped")

    def host(self):
        """Process id of the debugged program."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return int(file.read().split()[0])

    def memory(self):
        """Resident bytes of the debugged program."""
        with open(f"/proc/{self.host()}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def finish(self):
        """Lets it run to its end; the exit code of the console."""
        self.process.stdin.close()
        while self.next() is not None:
            pass
        return self.process.wait()

    def printed(self):
        self.errors.flush()
        with open(self.errors.name) as file:
            return file.read()

    def wait_printed(self, condition):
        """Waits until what the program has printed satisfies `condition`; the text."""
        end = time.monotonic() + 60
        while not condition(text := self.printed()):
            assert time.monotonic() < end and self.process.poll() is None, text
            time.sleep(0.02)
        return text

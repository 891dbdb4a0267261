"""Processes that measure: each compiles at once, with empty caches, and times when told to, so that nobody else uses the device meanwhile.

The script of such a process prints READY when it has compiled, reads a line, and prints RESULT and one JSON object.
"""

import json
import math
import os
import subprocess
import sys
import tempfile


class Child:
    """`script` with these arguments."""

    def __init__(self, script, *arguments):
        self.cache = tempfile.TemporaryDirectory()
        self.errors = tempfile.TemporaryFile("w+")
        c = self.cache.name
        env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=c, TRITON_CACHE_DIR=c + "/triton", FUSEBOX_CACHE_DIR=c)
        self.process = subprocess.Popen([sys.executable, script, *map(str, arguments)], env=env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)

    def wait_for(self, word):
        for line in self.process.stdout:
            if line.startswith(word):
                return line[len(word):].strip()
        return None

    def ready(self):
        self.is_ready = self.wait_for("READY") is not None

    def result(self):
        """What it measured, or {"error": its last words}."""
        answer = None
        if self.is_ready:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
            answer = self.wait_for("RESULT ")
        self.process.kill()
        self.process.wait()
        if answer is None:
            self.errors.seek(0)
            return {"error": self.errors.read().strip().splitlines()[-1:]}
        return json.loads(answer)


def measured(script, programs, engines, together, *arguments):
    """(program, {engine: what it measured}) of each program, in order. The processes of `together` programs compile at once; each measures alone."""
    for first in range(0, len(programs), together):
        names = programs[first:first + together]
        children = {(name, engine): Child(script, "--child", name, engine, *arguments) for name in names for engine in engines}
        for each in children.values():
            each.ready()
        for name in names:
            yield name, {engine: children[name, engine].result() for engine in engines}


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")

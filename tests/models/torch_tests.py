"""PyTorch's own tests, each method compiled: lists what passes plainly only.

PyTorch's wheels do not carry them; give the folder `test` of its sources, of the installed version or one near it:

    python tests/models/torch_tests.py --tests ~/pytorch/test test_autograd functorch/test_eager_transforms --jobs 8 --report FOUND.json

Each file runs twice, in processes of their own, plainly and compiled. What a test says of itself (the names of nodes, reference counts, messages
of anomaly mode) is no fault of the compiled program: read what is listed.
"""

import argparse
import concurrent.futures
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

RESTARTS = 20  # processes that one file may end


class Journal(unittest.TestResult):
    """Writes what began and how it ended, a line each: what the process dies of is the last that began."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def write(self, test, outcome, why=""):
        with open(self.path, "a") as file:
            file.write(json.dumps([test.id().split(".", 1)[-1], outcome, why]) + "\n")

    def startTest(self, test):
        super().startTest(test)
        self.write(test, "died")

    def addSuccess(self, test):
        self.write(test, "passed")

    def addSkip(self, test, reason):
        self.write(test, "skipped")

    def addExpectedFailure(self, test, error):
        self.write(test, "passed")

    def addUnexpectedSuccess(self, test):
        self.write(test, "failed", "unexpected success")

    def addError(self, test, error):
        self.write(test, "failed", f"{error[0].__name__}: {error[1]}"[:400])

    addFailure = addError


def ended(path):
    """How each test of a journal ended: {name: (outcome, why)}."""
    if not Path(path).exists():
        return {}
    return {name: (outcome, why) for name, outcome, why in map(json.loads, Path(path).read_text().splitlines())}


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def child(arguments):
    """Runs one file's tests that the journal does not have yet."""
    file = Path(arguments.tests, arguments.files[0])
    sys.path[:0] = [str(file.parent), arguments.tests]
    if arguments.compiled:
        import fusebox

        def compiled(self, method):
            fusebox.reset()
            try:
                fusebox.compile(method)()
            finally:
                fusebox.reset()

        unittest.TestCase._callTestMethod = compiled

    def late(*_):
        raise TimeoutError(f"longer than {arguments.seconds} s")

    signal.signal(signal.SIGALRM, late)
    known = ended(arguments.journal)
    journal = Journal(arguments.journal)
    every, position = arguments.sample
    module = importlib.import_module(file.name)
    vars(module).pop("load_tests", None)  # torch's refuses where the file is not the script that runs
    for test in tests_of(unittest.defaultTestLoader.loadTestsFromModule(module)):
        name = test.id().split(".", 1)[-1]
        if name in known or zlib.crc32(name.encode()) % every != position:
            continue
        signal.alarm(arguments.seconds)
        test.run(journal)
        signal.alarm(0)


def run(arguments, file, compiled, folder):
    """{name: (outcome, why)} of a file's tests."""
    journal = Path(folder, file.replace("/", ".") + (".compiled" if compiled else ".plain"))
    command = [sys.executable, __file__, "--tests", arguments.tests, file, "--journal", str(journal), "--seconds", str(arguments.seconds),
               "--sample", *map(str, arguments.sample), *(["--compiled"] if compiled else [])]
    paths = os.pathsep.join(os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    for _ in range(RESTARTS):
        done = subprocess.run(command, cwd=arguments.tests, capture_output=True, text=True, env=environment)
        if done.returncode == 0:
            break
        if not ended(journal):
            return {"": ("not begun", "".join(done.stderr.strip().splitlines()[-1:]))}
    return ended(journal)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="as test_autograd or nn/test_pooling")
    parser.add_argument("--tests", required=True, metavar="FOLDER", help="folder `test` of PyTorch's sources")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=60, help="for one test")
    parser.add_argument("--sample", type=int, nargs=2, default=(1, 0), metavar=("N", "I"), help="every Nth test, the Ith of them")
    parser.add_argument("--report", metavar="FILE", help="what differs, as JSON")
    parser.add_argument("--journal", help=argparse.SUPPRESS)
    parser.add_argument("--compiled", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.tests = str(Path(arguments.tests).resolve())
    if arguments.journal:
        return child(arguments)
    for file in arguments.files:
        if not Path(arguments.tests, file + ".py").exists():
            parser.error(f"{arguments.tests}/{file}.py is not there: give names of test files without .py")
    found, passed = {}, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        jobs = {(file, way): pool.submit(run, arguments, file, way, folder) for file in arguments.files for way in (False, True)}
        for file in arguments.files:
            plain, compiled = jobs[file, False].result(), jobs[file, True].result()
            broken = plain.get("") or compiled.get("")
            if broken:
                print(f"-- {file} cannot be loaded: {broken[1][:200]}")
                found[file] = broken
                continue
            right = [name for name, (outcome, _) in plain.items() if outcome == "passed"]
            wrong = {name: compiled.get(name, ("not run", "")) for name in right if compiled.get(name, ("",))[0] not in ("passed", "skipped")}
            print(f"-- {file}: {len(right) - len(wrong)} of {len(right)}")
            for name, (outcome, why) in wrong.items():
                print(f"   {outcome} {name}: {why.splitlines()[0][:200] if why else ''}")
            passed += len(right) - len(wrong)
            found |= {f"{file}.{name}": how for name, how in wrong.items()}
    if arguments.report:
        Path(arguments.report).write_text(json.dumps(found, indent=1))
    print(f"{passed} passed, {len(found)} failed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

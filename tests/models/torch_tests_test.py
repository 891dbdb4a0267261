"""torch_tests.py lists what passes plainly only, and survives a process that dies and a test that hangs."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = '''
import os, time, unittest
import torch

class TestSome(unittest.TestCase):
    def test_right(self):
        self.assertEqual((torch.ones(3) * 2).sum().item(), 6)

    def test_knows(self):
        self.assertFalse(torch.compiler.is_compiling())

    def test_dies(self):
        if torch.compiler.is_compiling():
            os._exit(3)

    def test_hangs(self):
        if torch.compiler.is_compiling():
            time.sleep(60)

    def test_wrong_anyway(self):
        self.fail("plainly too")

    @unittest.skip("not here")
    def test_skipped(self):
        pass

def load_tests(loader, tests, pattern):
    raise AssertionError("not the script that runs")

if __name__ == "__main__":
    unittest.main()
'''

with tempfile.TemporaryDirectory() as folder:
    Path(folder, "test_some.py").write_text(TESTS)
    Path(folder, "test_broken.py").write_text("import no_such_module\n")
    report = Path(folder, "report.json")
    tool = [sys.executable, str(Path(__file__).with_name("torch_tests.py")), "--tests", folder]
    done = subprocess.run([*tool, "test_some", "test_broken", "--seconds", "3", "--jobs", "2", "--report", str(report)], capture_output=True, text=True)
    found = {name: outcome for name, (outcome, _) in json.loads(report.read_text()).items()}
    expected = {"test_some.TestSome.test_knows": "failed", "test_some.TestSome.test_dies": "died", "test_some.TestSome.test_hangs": "failed",
                "test_broken": "not begun"}
    assert found == expected, (found, done.stdout, done.stderr)
    assert done.returncode == 1 and "test_some: 1 of 4" in done.stdout and "test_broken cannot be loaded" in done.stdout, done.stdout
    missing = subprocess.run([*tool, "test_absent"], capture_output=True, text=True)
    assert missing.returncode == 2 and "test_absent.py is not there" in missing.stderr, missing.stderr
print("torch_tests: lists what passes plainly only")

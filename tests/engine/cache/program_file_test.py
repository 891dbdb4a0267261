"""Exported programs as compiled files: `fusebox compile`, loading from Python, and the example in C++."""

import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

import torch

import fusebox
from fusebox._program_file import compile_program

_BIN = os.path.dirname(os.environ.get("FUSEBOX_BIN", ""))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, other, *, scale=2.0):
        self.calls += 1
        y = torch.softmax(self.linear(x) * scale, -1) + self.calls
        return {"y": y, "more": (y.amax(0), x, other.cumsum(0))}


def exported(varies=True):
    torch.manual_seed(0)
    rows = torch.export.Dim("rows", min=2, max=64)
    shapes = {"x": {0: rows}, "other": None, "scale": None} if varies else None
    return torch.export.export(Net().eval(), (torch.randn(3, 8), torch.randn(5)), {"scale": 3.0}, dynamic_shapes=shapes)


class ProgramFileTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = holder.name

    def load(self, data):
        return fusebox.load_program(io.BytesIO(data))

    def test_results_that_are_no_tensors(self):
        class Some(torch.nn.Module):
            def forward(self, x, k):
                return (x * k, None, [k, {"name": "some"}], x.sum())
        loaded = self.load(compile_program(torch.export.export(Some(), (torch.ones(3), 2)), "some"))
        made = loaded(torch.ones(3), 2)
        self.assertEqual((made[0].tolist(), made[1:3], made[3].item()), ([2.0, 2.0, 2.0], (None, [2, {"name": "some"}]), 3.0))

    def test_it_computes_what_the_exported_program_does(self):
        program = exported()
        data = compile_program(program, "net")
        before = fusebox.counters()
        loaded, module = self.load(data), program.module()
        torch.manual_seed(1)
        for rows in (2, 3, 9, 64):
            x, other = torch.randn(rows, 8), torch.randn(5)
            mine, theirs = loaded(x, other, scale=3.0), module(x, other, scale=3.0)
            torch.testing.assert_close(mine, theirs)  # buffers count up on both sides
            self.assertIs(type(mine["more"]), tuple)
        x = torch.randn(8, 5).T
        torch.testing.assert_close(loaded(x, other, scale=3.0), module(x, other, scale=3.0))
        after = fusebox.counters()
        self.assertEqual(after["cache_misses"], before["cache_misses"])
        torch.testing.assert_close(self.load(data)(x, other, scale=3.0)["y"], exported().module()(x, other, scale=3.0)["y"])

    def test_what_does_not_fit_is_refused_in_words(self):
        loaded, x, other = self.load(compile_program(exported(), "net")), torch.randn(3, 8), torch.randn(5)
        for call, words in ((lambda: loaded(torch.randn(65, 8), other, scale=3.0), "65"), (lambda: loaded(torch.randn(3, 9), other, scale=3.0), r"\[3, 8\]"),
                            (lambda: loaded(x.double(), other, scale=3.0), "Float is needed, not Double"), (lambda: loaded(x, other[:4], scale=3.0), r"\[5\]"),
                            (lambda: loaded(x, other), "takes the keyword arguments scale, not none"), (lambda: loaded(x, scale=3.0), "takes 2 positional arguments, not 1"),
                            (lambda: loaded([x], other, scale=3.0), "takes its arguments as"), (lambda: loaded(x, other, scale=4.0), "was 3.0"),
                            (lambda: loaded(x, 1, scale=3.0), "has to be a tensor")):
            with self.assertRaisesRegex(fusebox.AheadOfTimeError, words):
                call()

    def test_a_result_that_follows_from_sizes_is_named(self):
        class Counted(torch.nn.Module):
            def forward(self, x):
                return {"y": x * 2, "none": None, "rows": x.shape[0]}
        rows = torch.export.Dim("rows", min=2, max=16)
        program = torch.export.export(Counted(), (torch.randn(3, 8),), dynamic_shapes={"x": {0: rows}})
        with self.assertRaisesRegex(fusebox.AheadOfTimeError, r"result 2 \(sym_size\w*\) is a number that changes with the sizes"):
            compile_program(program, "counted")
        self.assertEqual(self.load(compile_program(torch.export.export(Counted(), (torch.randn(3, 8),)), "counted"))(torch.ones(3, 8))["rows"], 3)

    def test_a_size_that_may_be_one(self):
        class Image(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.convolution, self.norm, self.last = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.Linear(8, 5)

            def forward(self, x):
                return torch.softmax(self.last(torch.relu(self.norm(self.convolution(x))).mean((2, 3))), -1)
        torch.manual_seed(0)
        images = torch.export.Dim("images", min=1, max=16)
        program = torch.export.export(Image().eval(), (torch.randn(3, 3, 8, 8),), dynamic_shapes={"x": {0: images}})
        loaded, module = self.load(compile_program(program, "image")), program.module()
        for count in (1, 2, 3, 16):
            x = torch.randn(count, 3, 8, 8)
            torch.testing.assert_close(loaded(x), module(x))
        for count in (0, 17):
            with self.assertRaises(fusebox.AheadOfTimeError):
                loaded(torch.randn(count, 3, 8, 8))

    def test_damage_is_refused(self):
        data, rng = compile_program(exported(False), "net"), random.Random(3)
        for at in [*range(300), *(rng.randrange(len(data)) for _ in range(700))]:
            changed = bytearray(data)
            changed[at] ^= 1 << rng.randrange(8)
            with self.assertRaises(fusebox.AheadOfTimeError, msg=str(at)):
                self.load(bytes(changed))
        for at in (0, 5, 11, 100, len(data) - 1, *(rng.randrange(len(data)) for _ in range(50))):
            with self.assertRaises(fusebox.AheadOfTimeError, msg=str(at)):
                self.load(data[:at])

    def test_the_command_and_the_example(self):
        if not os.path.exists(os.path.join(_BIN, "fusebox")):
            self.skipTest("the program is not built")
        program, pt2, fbx = exported(), os.path.join(self.directory, "net.pt2"), os.path.join(self.directory, "net.fbx")
        torch.export.save(program, pt2)
        done = subprocess.run([os.path.join(_BIN, "fusebox"), "compile", pt2, "-o", fbx, "--json", "--python", sys.executable], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["bytes"], os.path.getsize(fbx))
        missing = subprocess.run([os.path.join(_BIN, "fusebox"), "compile", pt2 + "x", "-o", fbx], capture_output=True, text=True)
        self.assertEqual(missing.returncode, 3)
        damaged = os.path.join(self.directory, "damaged.pt2")
        with open(pt2, "rb") as whole, open(damaged, "wb") as half:
            half.write(whole.read()[:1000])
        for words in (("compile", damaged, "-o", fbx + "x"), ("replay", damaged)):
            refused = subprocess.run([os.path.join(_BIN, "fusebox"), *words, "--python", sys.executable], capture_output=True, text=True)
            self.assertEqual(refused.returncode, 3)
            self.assertRegex(refused.stderr, r"\Afusebox: .*cannot load this exported program: .*zip.*\n\Z")
        example = os.path.join(_BIN, "run_program")
        if not os.path.exists(example):
            self.skipTest("the example is not built")
        x, other = (torch.arange(24.0) * 0.01).reshape(3, 8), torch.arange(5.0) * 0.01
        wanted = torch.utils._pytree.tree_leaves(program.module()(x, other, scale=3.0))
        ran = subprocess.run([example, fbx, "3,8", "5"], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        lines = ran.stdout.splitlines()
        self.assertEqual(len(lines), len(wanted))
        for line, tensor in zip(lines, wanted):
            found = [float(n) for n in re.sub(r"^.*?:", "", line).split()]
            torch.testing.assert_close(torch.tensor(found), tensor.flatten()[:8], rtol=1e-4, atol=1e-5)
        refused = subprocess.run([example, fbx, "3,9", "5"], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 3)
        self.assertIn("sizes [3, 8] are needed, not [3, 9]", refused.stderr)


if __name__ == "__main__":
    unittest.main()

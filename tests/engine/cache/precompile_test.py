"""torch.compiler.precompile: what a capture writes, other processes call without compiling; what does not fit is an error."""

import json
import os
import pathlib
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import processes  # noqa: E402

_PROGRAM = '''
import functools
import torch, fusebox
fusebox.install()
from torch.compiler import precompile, PrecompileError

class Model(torch.nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.first, self.norm, self.last = torch.nn.Linear(4, width), torch.nn.LayerNorm(width), torch.nn.Linear(width, 3)

    def forward(self, x):
        return self.last(torch.nn.functional.gelu(self.norm(self.first(x))))

def model(seed=0, width=4):
    torch.manual_seed(seed)
    return Model(width)

def predict(m, x):
    return {"y": m(x).softmax(-1), "rows": x.shape[0]}

def loss(m, x):
    return m(x).square().mean()

def train(m, x):
    m(x).sum().backward()

def refusal(what):
    try:
        what()
    except Exception as error:
        return type(error).__name__ + ": " + str(error)
    return "none"

def write(fn, *args, training=False, name="m"):
    with precompile.capture(fn, artifact_path=name + ".py", cache_path=name + ".cache", training=training) as call:
        result = call(*args)
    return result, call
'''


class PrecompileTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = holder.name
        with open(self.path("program.py"), "w") as file:
            file.write(_PROGRAM)

    def path(self, name):
        return os.path.join(self.directory, name)

    def python(self, code, **environment):
        """What a process of its own, in the directory, prints as JSON in its last line."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TORCHINDUCTOR_", "FUSEBOX_", "TORCH_COMPILE_"))}
        env = {**kept, "PYTHONPATH": os.pathsep.join([self.directory, *sys.path]), "PYTHONDONTWRITEBYTECODE": "1",
               "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", **environment}
        done = processes.run_python(["-c", "import json, os\nfrom program import *\n" + textwrap.dedent(code)], env=env, cwd=self.directory)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return json.loads(done.stdout.splitlines()[-1])

    def test_another_process_calls_it_without_compiling_with_other_weights(self):
        said = self.python('''
            x = torch.randn(5, 4)
            given, call = write(predict, model(), x)
            torch.testing.assert_close(given["y"], predict(model(), x)["y"])
            print(json.dumps([given["y"].requires_grad, call.summary.complete, call.summary.operators > 3, str(call.summary), sorted(os.listdir("."))]))
        ''')
        self.assertEqual(said[:3], [False, True, True], said)
        self.assertEqual(said[4], ["m.cache", "m.py", "program.py"])
        with open(self.path("m.py")) as file:
            scope, text = {}, file.read()
        exec(compile(text, "m.py", "exec"), scope)
        self.assertEqual((scope["ARTIFACT"]["function"], scope["ARTIFACT"]["training"]), ("predict", False))
        self.assertIn("aten::native_layer_norm", scope["GRAPH"])
        self.assertEqual(self.python('''
            f = precompile.load("m.py", "m.cache")
            with f as entered:
                for seed in (0, 7):
                    m, x = model(seed), torch.randn(5, 4)
                    given = f(m, x)
                    torch.testing.assert_close(given["y"], predict(m, x)["y"])
                    with torch.autocast("cpu"):
                        torch.testing.assert_close(f(m, x)["y"], given["y"], rtol=0, atol=0)
            counts = fusebox.counters()
            print(json.dumps([entered is f, f.installed, given["rows"], counts["graphs"], isinstance(f, torch.compiler.PrecompiledRunnable)]))
        '''), [True, False, 5, 0, True])

    def test_training_carries_its_backward(self):
        self.assertEqual(self.python('''
            x = torch.randn(5, 4)
            with torch.no_grad():
                given, _ = write(loss, model(), x, training=True)
            f = precompile.load("m.py", "m.cache")
            ours, eager = model(3), model(3)
            with torch.no_grad():
                result = f(ours, x)
            result.backward()
            loss(eager, x).backward()
            for a, b in zip(ours.parameters(), eager.parameters()):
                torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-6)
            print(json.dumps(given.requires_grad))
        '''), True)

    def test_autocast_is_that_of_the_capture(self):
        self.assertEqual(self.python('''
            with torch.autocast("cpu"):
                write(lambda m, x: m.first(x), model(), torch.randn(5, 4))
            f = precompile.load("m.py", "m.cache")
            print(json.dumps(str(f(model(), torch.randn(5, 4)).dtype)))
        '''), "torch.bfloat16")

    def test_calls_that_do_not_fit_are_refused(self):
        sizes, width, kind = self.python('''
            write(predict, model(), torch.randn(5, 4))
            f = precompile.load("m.py", "m.cache")
            print(json.dumps([refusal(lambda: f(model(), torch.randn(6, 4))), refusal(lambda: f(model(width=5), torch.randn(5, 4))),
                              refusal(lambda: f(model(), torch.randn(5, 4).double()))]))
        ''')
        for said in (sizes, width, kind):
            self.assertRegex(said, "^PrecompileError: predict was compiled ahead of time, and this call does not fit")

    def test_a_marked_dimension_is_of_any_size(self):
        self.assertEqual(self.python('''
            x = torch.randn(5, 4)
            torch._dynamo.decorators.mark_unbacked(x, 0)
            write(lambda m, x: m(x).relu(), model(), x)
            f = precompile.load("m.py", "m.cache")
            for rows in (5, 9, 2):
                x = torch.randn(rows, 4)
                torch.testing.assert_close(f(model(), x), model()(x).relu())
            print(json.dumps("right"))
        '''), "right")

    def test_what_cannot_be_captured_leaves_no_files(self):
        said = self.python('''
            def state(fn, *args, **how):
                return [refusal(lambda: write(fn, *args, **how)), os.path.exists("m.py") or os.path.exists("m.cache")]
            x = torch.randn(5, 4)
            def twice(call):
                call(model(), x)
                call(model(), x)
            def in_block(body):
                with precompile.capture(predict, artifact_path="m.py", cache_path="m.cache") as call:
                    body(call)
            print(json.dumps([
                state(model(), x), state(model().forward, x), state(functools.partial(predict, model()), x), state(train, model(), x, training=True),
                state(lambda m, x: m(x) if x.sum() > 0 else x, model(), x),
                [refusal(lambda: in_block(twice)), os.path.exists("m.py")],
                [refusal(lambda: in_block(lambda call: None)), os.path.exists("m.py")],
                [refusal(lambda: in_block(lambda call: call.save())), os.path.exists("m.py")],
                [refusal(lambda: in_block(lambda call: call(m=model(), x=x))), os.path.exists("m.py")],
                [refusal(lambda: precompile.capture(predict, artifact_path="m.py", cache_path="./m.py")), False],
                [refusal(lambda: precompile.capture(predict, artifact_path=".", cache_path="m.cache")), False],
                [refusal(lambda: precompile.capture(predict, artifact_path="m.py", cache_path="m.cache", backend="other")), False],
                [refusal(lambda: precompile.capture(predict, artifact_path="m.py", cache_path="m.cache", backend="eager")), False],
                [refusal(lambda: precompile.capture(predict, artifact_path="m.py", cache_path="m.cache", tracer="make_fx")), False],
            ]))
        ''')
        wanted = ["PrecompileError: fn holds a Model", "PrecompileError: fn holds a Model", "PrecompileError: fn holds a Model", "PrecompileError: backward: ", "PrecompileError: ",
                  "PrecompileError: this capture has its call", "PrecompileError: nothing is captured", "PrecompileError: nothing is captured", "TypeError: ",
                  "ValueError: artifact_path and cache_path are one file", "ValueError: ", "ValueError: unknown backend", "NotImplementedError: ", "TypeError: "]
        for (text, exists), start in zip(said, wanted, strict=True):
            self.assertTrue(text.startswith(start) and not exists, (start, text, exists))

    def test_files_that_were_changed_or_exchanged_are_refused(self):
        self.python('''
            write(predict, model(), torch.randn(5, 4), name="a")
            write(loss, model(), torch.randn(5, 4), name="b")
            print(json.dumps(0))
        ''')
        with open(self.path("a.cache"), "rb") as file:
            good = file.read()
        with open(self.path("damaged.cache"), "wb") as file:
            file.write(good[:1000] + bytes([good[1000] ^ 1]) + good[1001:])
        with open(self.path("a.py")) as file:
            text = file.read()
        with open(self.path("changed.py"), "w") as file:
            file.write(text + "\nimport os\nos.mkdir('executed')\n")
        said = self.python('''
            pairs = [("a.py", "b.cache"), ("changed.py", "a.cache"), ("a.py", "damaged.cache"), ("a.cache", "a.py"), ("none.py", "a.cache")]
            print(json.dumps([refusal(lambda: precompile.load(*pair)) for pair in pairs] + [os.path.exists("executed")]))
        ''')
        self.assertFalse(said.pop(), "loading executes nothing")
        self.assertTrue(all(each.startswith("PrecompileError: ") for each in said), said)
        self.assertIn("not of one capture", said[0])
        self.assertIn("not of one capture", said[1])
        key = {"FUSEBOX_CACHE_KEY": "a secret of ours"}
        self.assertIn("PrecompileError", self.python('print(json.dumps(refusal(lambda: precompile.load("a.py", "a.cache"))))', **key), "not signed")
        self.python('write(predict, model(), torch.randn(5, 4), name="a"); print(json.dumps(0))', **key)
        self.assertEqual(self.python('print(json.dumps(refusal(lambda: precompile.load("a.py", "a.cache"))))', **key), "none")

    def test_names_go_away_with_the_engine(self):
        self.assertEqual(self.python('''
            import sys
            before = hasattr(torch.compiler, "precompile"), "torch.compiler.precompile" in sys.modules
            fusebox.uninstall()
            print(json.dumps([before, hasattr(torch.compiler, "precompile"), "torch.compiler.precompile" in sys.modules]))
        '''), [[True, True], False, False])


if __name__ == "__main__":
    unittest.main()

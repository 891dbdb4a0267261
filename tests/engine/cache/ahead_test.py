"""Functions that are compiled ahead of time: what a file of one process does in others."""

import json
import os
import pathlib
import struct
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import processes  # noqa: E402

_PROGRAM = '''
import collections.abc

import numpy as np
import torch

SCALE = 2.0
TABLE = torch.arange(4.0)
COUNTS = {}


def helper(t):
    return t * SCALE


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.rest = torch.nn.Sequential(torch.nn.GELU(), torch.nn.Linear(4, 3))
        self.count = 3

    def forward(self, x, *, named=True):
        y = self.rest(helper(self.norm(torch.relu(self.first(x))))) + self.count
        return {"y": y, "sizes": (x.shape[0], self.count)} if named else y


def model():
    torch.manual_seed(0)
    return Model()


def encoder():
    torch.manual_seed(0)
    return torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)


def attend(x, factor=2, *rest, **more):
    y = torch.softmax(x * factor, -1)
    return y.sum(0), x.shape[0] * 2, [x[1:], more.get("q")], y


def product(x, w):
    return torch.tanh(x @ w).sum()


def write(cache, new):
    cache[:, 1:3] = new * 3
    return cache.sum(1)


def constant(x):
    return x * torch.tensor([1.0, 2.0, 3.0, 4.0])


def positive(x):
    return x[x > 0] * 2


def uses_a_global_tensor(x):
    return x + TABLE


def says_so(x):
    print("said")
    return x + 1


def scaled_by_threads(x):
    return x * torch.get_num_threads()


def exponential(x):
    return torch.from_numpy(np.exp(x.numpy()))


def registered(x, shape):
    return x * 2 if isinstance(shape, collections.abc.Sequence) else x


def by_order(x):
    return x * len(torch._C._get_sdp_priority_order())


def breaks(x):
    return x + 1 if x.sum() > 0 else x - 1


def counts(m, seen, x):
    m.count = m.count + 1
    seen["last"] = x * 2
    COUNTS["calls"] = m.count
    return x + m.count


def inner():
    torch.manual_seed(5)
    kept = torch.randn(4)
    return lambda x: x + kept


def applied(function, x):
    return function(x) + 1
'''

# (name, how it is made, the arguments it is compiled for)
_CASES = {
    "model": ("p.model().forward", "(torch.randn(5, 4),), {}"),
    "model_of_module": ("compiled(p.model()).forward", "(torch.randn(5, 4),), {}"),
    "encoder": ("p.encoder().forward", "(torch.randn(2, 6, 16),), {}"),
    "attend": ("p.attend", "(torch.randn(5, 4),), {'q': torch.ones(2)}"),
    "attend_dynamic": ("p.attend", "(torch.randn(5, 4),), {'q': torch.ones(2)}"),
    "product": ("p.product", "(torch.randn(5, 4, requires_grad=True), torch.randn(4, 3, requires_grad=True)), {}"),
    "write": ("p.write", "(torch.zeros(6, 4), torch.randn(6, 2)), {}"),
    "constant": ("p.constant", "(torch.randn(3, 4),), {}"),
}

_SAVE = '''
import json, sys
import torch, fusebox
fusebox.install()
import program as p
compiled = lambda f, **how: torch.compile(f, fullgraph=True, **how)
answers = {}
for name, (made, arguments) in json.loads(sys.argv[1]).items():
    torch.manual_seed(1)
    f, how = eval(made), {"dynamic": True} if name.endswith("_dynamic") else {}
    c = f if hasattr(f, "aot_compile") else compiled(f, **how)
    try:
        c.aot_compile(eval(arguments)).save_compiled_function(sys.argv[2] + "/" + name)
        answers[name] = "saved"
    except Exception as error:
        answers[name] = type(error).__name__ + ": " + str(error)
print(json.dumps(answers))
'''

_LOAD = '''
import json, sys, copy
import torch, fusebox
fusebox.install()
import program as p

def load(name):
    with open(sys.argv[1] + "/" + name, "rb") as file:
        return torch.compiler.load_compiled_function(file)

def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else []
    return [t for item in items for t in tensors(item)]

def shape(value):
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    return [type(value).__name__, *map(shape, value)] if isinstance(value, (list, tuple)) else "tensor" if isinstance(value, torch.Tensor) else value

def same(mine, theirs):
    assert str(shape(mine)) == str(shape(theirs)), (shape(mine), shape(theirs))
    for a, b in zip(tensors(mine), tensors(theirs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        assert a.stride() == b.stride()

def refusal(what):
    try:
        what()
    except Exception as error:
        return type(error).__name__ + ": " + str(error)
    return "none"
'''


class AheadTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = holder.name
        self.write_program(_PROGRAM)

    def write_program(self, text):
        with open(os.path.join(self.directory, "program.py"), "w") as file:
            file.write(text)

    def python(self, code, *arguments, **environment):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TORCHINDUCTOR_", "FUSEBOX_", "TORCH_COMPILE_"))}
        env = {**kept, "PYTHONPATH": os.pathsep.join([self.directory, *sys.path]), "PYTHONDONTWRITEBYTECODE": "1",
               "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", **environment}
        done = processes.run_python(["-c", textwrap.dedent(code), *arguments], env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def save(self, *names, cases=None, **environment):
        cases = cases or {name: _CASES[name] for name in names}
        return self.python(_SAVE, json.dumps(cases), self.directory, **environment)

    def saved(self, *names, **environment):
        answers = self.save(*names, **environment)
        self.assertEqual(set(answers.values()), {"saved"}, answers)

    def load(self, code, **environment):
        return self.python(_LOAD + textwrap.dedent(code), self.directory, **environment)

    def test_another_process_runs_what_was_saved(self):
        self.saved(*_CASES)
        counters = self.load("""
            torch.manual_seed(3)
            for name in ("model", "model_of_module"):
                c, mine, theirs, x = load(name), p.model(), p.model(), torch.randn(5, 4)
                a, b = c(mine, x), theirs(x)
                same(a, b)
                a["y"].pow(2).sum().backward()
                b["y"].pow(2).sum().backward()
                same([q.grad for q in mine.parameters()], [q.grad for q in theirs.parameters()])
                same(list(mine.buffers()), list(theirs.buffers()))
            m, x = p.encoder(), torch.randn(2, 6, 16)
            same(load("encoder")(m, x), p.encoder()(x))
            for name, sizes in (("attend", (5,)), ("attend_dynamic", (5, 9, 31))):
                c, q = load(name), torch.ones(2)
                for n in sizes:
                    x = torch.randn(n, 4)
                    a, b = c(x, q=q), p.attend(x, q=q)
                    same(a, b)
                    assert a[2][1] is q and a[2][0].data_ptr() == b[2][0].data_ptr()
            c = load("product")
            x, w = torch.randn(5, 4, requires_grad=True), torch.randn(4, 3, requires_grad=True)
            y, v = x.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
            c(x, w).backward(), p.product(y, v).backward()
            same([x.grad, w.grad], [y.grad, v.grad])
            one, two, new = torch.zeros(6, 4), torch.zeros(6, 4), torch.randn(6, 2)
            same([load("write")(one, new), one], [p.write(two, new), two])
            x = torch.randn(3, 4)
            same(load("constant")(x), p.constant(x))
            torch.compiler.reset()
            same(c(x.T[:, :3].T.contiguous()[:, :4].repeat(2, 1)[:5].requires_grad_(), w).detach(),
                 p.product(x.T[:, :3].T.contiguous()[:, :4].repeat(2, 1)[:5], w).detach())
            print(json.dumps(fusebox.counters()))
        """)
        self.assertEqual(counters["frames"], 0)
        self.assertEqual(counters["cache_misses"], 0)
        self.assertGreaterEqual(counters["cache_hits"], len(_CASES))

    def test_calls_that_do_not_fit_say_why(self):
        self.saved("model", "attend", "product")
        found = self.load("""
            m, c, a = p.model(), load("model"), load("attend")
            x, q = torch.randn(5, 4), torch.ones(2)
            changed = p.model()
            changed.count = 4
            hooked = p.model()
            hooked.first.register_forward_hook(lambda *_: None)
            def scaled():
                p.SCALE = 3.0
                try:
                    c(m, x)
                finally:
                    p.SCALE = 2.0
            with torch.no_grad():
                mode = refusal(lambda: c(m, x))
            answers = [refusal(lambda: a(torch.randn(6, 4), q=q)), refusal(lambda: a(x.double(), q=q)), refusal(lambda: a(x, 3, q=q)), refusal(lambda: a()),
                       refusal(lambda: c(changed, x)), refusal(lambda: c(hooked, x)), refusal(scaled), mode,
                       refusal(lambda: c(torch.nn.Linear(4, 4), x)), refusal(lambda: c(m, x))]
            print(json.dumps(answers))
        """)
        words = ["TENSOR_MATCH L['x']", "TENSOR_MATCH L['x']", "L['factor']: expected 2, found 3", "TypeError", "L['self'].count: expected 3, found 4",
                 "_forward_hooks", "G(program)['SCALE']: expected 2.0, found 3.0", "grad_mode", "TYPE_MATCH L['self']", "none"]
        for answer, word in zip(found, words, strict=True):
            self.assertIn(word, answer)
        for answer in (found[0], *found[4:9]):
            self.assertIn("RuntimeError", answer)
            self.assertIn("was compiled ahead of time, and this call does not fit", answer)

    def test_what_cannot_be_saved_is_named(self):
        x = "(torch.randn(4),), {}"
        found = self.save(cases={
            "global": ("p.uses_a_global_tensor", x), "closure": ("p.inner()", x), "identity": ("p.encoder().eval().forward", "(torch.randn(2, 6, 16),), {}"), "print": ("p.says_so", x), "break": ("p.breaks", x),
            "partial": ("torch.compile(p.product)", "(torch.randn(5, 4), torch.randn(4, 3)), {}"),
            "eager": ("torch.compile(p.constant, fullgraph=True, backend='eager')", x),
            "unnamed": ("p.applied", "(lambda t: t * 2, torch.randn(4)), {}")})
        self.assertIn("TABLE", found["global"])
        self.assertIn("none of its arguments", found["global"])
        self.assertIn("kept", found["closure"])
        self.assertIn("prints", found["print"])
        self.assertIn("ID_MATCH L['self']", found["identity"])
        self.assertIn("fullgraph=True asks for one graph", found["break"])
        self.assertIn("Please use torch.compile(fullgraph=True)", found["partial"])
        self.assertIn("backend eager", found["eager"])
        self.assertIn("L['function']", found["unnamed"])
        for name, answer in found.items():
            self.assertNotEqual(answer, "saved", name)
            self.assertFalse(os.path.exists(os.path.join(self.directory, name)))

    def test_objects_that_change_are_changed(self):
        self.assertEqual(self.save(cases={"counts": ("p.counts", "(p.model(), {}, torch.randn(4)), {}")}), {"counts": "saved"})
        self.load("""
            c, x, m, seen = load("counts"), torch.randn(4), p.model(), {}
            same(c(m, seen, x), x + 4)
            assert m.count == 4 and p.COUNTS == {"calls": 4}
            same(seen["last"], x * 2)
            assert "L['m'].count: expected 3, found 4" in refusal(lambda: c(m, {}, x))
            print("0")
        """)

    def test_the_state_of_the_process_is_asked_for_again(self):
        x = "(torch.randn(4),), {}"
        names = ("scaled_by_threads", "exponential", "registered", "by_order")
        cases = {name: ("p." + name, "(torch.randn(4), (2, 2)), {}" if name == "registered" else x) for name in names}
        found = self.save(cases=cases, OMP_NUM_THREADS="1")
        self.assertIn("cannot be written down: _get_sdp_priority_order", found.pop("by_order"))
        self.assertEqual(set(found.values()), {"saved"}, found)
        answers = self.load("""
            import collections.abc
            import numpy as np
            collections.abc.Sequence.register(type("Mine", (), {}))  # tells nothing of tuples
            x = torch.randn(4)
            threads, exponential = load("scaled_by_threads"), load("exponential")
            same(threads(x), p.scaled_by_threads(x))
            same(exponential(x), p.exponential(x))
            same(load("registered")(x, (2, 2)), x * 2)
            with np.errstate(under="raise"):
                answers = [refusal(lambda: exponential(torch.full((4,), -100.0)))]
            torch.set_num_threads(2)
            print(json.dumps([*answers, refusal(lambda: threads(x)), refusal(lambda: exponential(x))]))
        """, OMP_NUM_THREADS="1")
        for answer, word in zip(answers, ("numpy ignores an underflow", "get_num_threads", "none"), strict=True):
            self.assertIn(word, answer)

    def test_functions_among_the_arguments_are_known_by_name(self):
        self.assertEqual(self.save(cases={"applied": ("p.applied", "(p.helper, torch.randn(4)), {}")}), {"applied": "saved"})
        found = self.load("""
            c, x = load("applied"), torch.randn(4)
            same(c(p.helper, x), p.applied(p.helper, x))
            print(json.dumps([refusal(lambda: c(p.constant, x)), refusal(lambda: c(lambda t: t * p.SCALE, x))]))
        """)
        for answer in found:
            self.assertIn("L['function']", answer)

    def test_a_program_that_changed_is_refused(self):
        self.saved("model")
        load = "print(json.dumps(refusal(lambda: load('model'))))"
        self.assertEqual(self.load(load), "none")
        self.write_program("# moved by a line\n" + _PROGRAM)
        self.assertEqual(self.load(load), "none")
        self.write_program(_PROGRAM.replace("return t * SCALE", "return t * SCALE + 1"))
        self.assertIn("program.helper is not what it was", self.load(load))
        self.write_program(_PROGRAM.replace("+ self.count\n", "- self.count\n"))
        self.assertIn("program.Model", self.load(load))
        self.write_program(_PROGRAM.replace("class Model", "class Other").replace("return Model()", "return Other()"))
        self.assertIn("program has no Model", self.load(load))

    def test_damage_is_refused_wherever_it_is(self):
        self.saved("product")
        found = self.load("""
            import io, random
            with open(sys.argv[1] + "/product", "rb") as file:
                whole = file.read()
            def outcome(data):
                return refusal(lambda: torch.compiler.load_compiled_function(io.BytesIO(data)))
            assert outcome(whole) == "none"
            rng, answers = random.Random(7), {}
            positions = list(range(0, 600)) + [rng.randrange(len(whole)) for _ in range(1500)]
            for at in positions:
                data = bytearray(whole)
                data[at] ^= 1 << rng.randrange(8)
                answers[at] = outcome(bytes(data))
            for at in [0, 1, 11, 19, *(rng.randrange(len(whole)) for _ in range(300))]:
                answers[f"cut {at}"] = outcome(whole[:at])
            answers["more"] = outcome(whole + b"x")
            print(json.dumps([{str(k): v for k, v in answers.items() if not v.startswith("AheadOfTimeError: ")}, len(answers)]))
        """)
        self.assertEqual(found[0], {})
        self.assertGreater(found[1], 1500)

    def test_other_versions_and_machines_are_refused(self):
        self.saved("product")
        path = os.path.join(self.directory, "product")
        load = "print(json.dumps(refusal(lambda: load('product'))))"
        self.assertIn("CPU", self.load(load, FUSEBOX_TARGET="baseline"))
        with open(path, "rb") as file:
            whole = file.read()
        version = bytearray(whole)
        start = len(b"FBXBUNDLE1\n") + 8
        number = version.index(struct.pack("<I", 1), start)
        version[number:number + 4] = struct.pack("<I", 99)
        with open(path, "wb") as file:
            file.write(version)
        self.assertIn("has another format (99)", self.load(load))

    def test_signatures_decide_where_there_is_a_key(self):
        self.saved("product")
        load = "print(json.dumps(refusal(lambda: load('product'))))"
        self.assertIn("signature", self.load(load, FUSEBOX_CACHE_KEY="secret"))
        self.saved("product", FUSEBOX_CACHE_KEY="secret")
        self.assertEqual(self.load(load, FUSEBOX_CACHE_KEY="secret"), "none")
        self.assertIn("signature", self.load(load, FUSEBOX_CACHE_KEY="another"))
        self.assertEqual(self.load(load), "none")

    def test_graphs_around_it_break_there(self):
        self.saved("constant")
        self.load("""
            c = load("constant")
            x = torch.randn(3, 4)
            outer = torch.compile(lambda x: torch.relu(c(x + 1)) * 2)
            same(outer(x), torch.relu(p.constant(x + 1)) * 2)
            print(json.dumps(fusebox.counters()["graph_breaks"]))
        """)

    def test_nothing_is_executed_by_loading(self):
        """A file names modules; those that are not there stay away."""
        self.saved("constant")
        found = self.python("""
            import json, sys, torch, fusebox
            fusebox.install()
            before = set(sys.modules)
            with open(sys.argv[1] + "/constant", "rb") as file:
                c = torch.compiler.load_compiled_function(file)
            x = torch.randn(3, 4)
            torch.testing.assert_close(c(x), x * torch.tensor([1.0, 2.0, 3.0, 4.0]))
            print(json.dumps(sorted(m for m in set(sys.modules) - before if m.startswith("program"))))
        """, self.directory)
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()

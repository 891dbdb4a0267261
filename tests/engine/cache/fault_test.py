"""Many processes at once, processes that are killed, full disks and damaged bits: nothing wrong runs, nothing hangs, and what is left is whole."""

import json
import pathlib
import random
import unittest

import cache_test

# Children of one process that has imported everything: each compiles in its own right, as its engine starts in the child.
CHILDREN = """
import json, os, random, shutil, signal, sys, time, torch, fusebox, programs
torch.set_num_threads(1)
def start(kill_after=None):
    child = os.fork()
    if child == 0:
        signal.alarm(200)
        code = 1
        try:
            for name in ("mlp", "training"):
                found = programs.run(name)
                fusebox._engine.drain()
                for mine, theirs in zip(found, programs.run(name, "eager"), strict=True):
                    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
            code = 0
        finally:
            os._exit(code)
    return child
"""


class FaultTest(cache_test.Processes):
    def verified(self):
        """Ids of entries, all of them whole; what is beside them."""
        entries, rest = [], []
        for path in pathlib.Path(self.directory).glob("fusebox/??/*"):
            (rest if path.name.startswith(".") else entries).append(path)
        return entries, rest

    def assert_whole(self, count):
        """A fresh process takes all from the cache and complains of nothing."""
        found, errors = self.process("mlp", "training")
        self.assertEqual((found["training"]["cache_hits"] + found["mlp"]["cache_hits"], found["training"]["cache_misses"] + found["mlp"]["cache_misses"]),
                         (count, 0))
        self.assertEqual(errors, "")

    def test_many_processes_at_once(self):
        codes, errors = self.process(code=CHILDREN + """
children = [start() for _ in range(32)]
print(json.dumps([os.waitpid(child, 0)[1] for child in children]))
""")
        self.assertEqual(codes, [0] * 32, errors)
        self.assertEqual(errors, "")
        entries, rest = self.verified()
        self.assertEqual((len(entries), rest), (5, []))  # three graphs, two captures
        self.assert_whole(3)

    def test_killed_while_they_write(self):
        """At times that are spread over compiling and writing."""
        died, errors = self.process(code=CHILDREN + """
rng, died = random.Random(1), 0
begin = time.monotonic()
os.waitpid(start(), 0)
takes = time.monotonic() - begin
for i in range(40):
    if i % 4 == 0:
        shutil.rmtree(os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], "fusebox"), ignore_errors=True)
    child = start()
    time.sleep(takes * rng.random())
    os.kill(child, signal.SIGKILL)
    killed = os.waitpid(child, 0)[1] == signal.SIGKILL
    died += killed
    takes *= 1 if killed else 0.8  # the first one may have had less of the machine
os.waitpid(start(), 0)
print(json.dumps(died))
""")
        self.assertGreater(died, 20)
        self.assertNotIn("damaged", errors)
        self.assertEqual(len(self.verified()[0]), 5)
        self.assert_whole(3)

    def test_no_room(self):
        """Files may not grow: what cannot be written is told once, and nothing of it stays."""
        code = """
import json, resource, fusebox, programs
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
for name in ("mlp", "training"):
    programs.run(name)
fusebox._engine.drain()
print(json.dumps(fusebox.counters()["cache_stores"]))
"""
        stores, errors = self.process(code=code)
        self.assertEqual(stores, 0)
        self.assertEqual(errors.count("cannot be written"), 1, errors)
        self.assertEqual(self.verified(), ([], []))

    def test_any_bit(self):
        """A thousand single bits, and cut ends: always a miss, never another result."""
        self.process("mlp")
        [path] = self.entries()
        good = path.read_bytes()
        rng = random.Random(7)
        bits = sorted({rng.randrange(len(good) * 8) for _ in range(1000)} | set(range(0, 64 * 8, 5)))
        found, errors = self.process(json.dumps([str(path), bits]), code="""
import json, sys, torch, fusebox
path, bits = json.loads(sys.argv[1])
good = open(path, "rb").read()
import programs
make, calls = programs.mlp()
arguments = calls[0]
with torch.no_grad():
    want = make(*arguments)
counters = fusebox.counters
outcomes = {"hits": 0, "misses": 0, "wrong": 0}
def attempt():
    before = counters()
    fusebox.reset()
    with torch.no_grad():
        got = fusebox.compile(make)(*arguments)
    after = counters()
    for name in ("hits", "misses"):
        outcomes[name] += after["cache_" + name] - before["cache_" + name]
    outcomes["wrong"] += not torch.allclose(got, want, atol=1e-5)
    fusebox._engine.drain()
for bit in bits:
    data = bytearray(good)
    data[bit // 8] ^= 1 << bit % 8
    open(path, "wb").write(data)
    attempt()
for length in list(range(0, 200, 7)) + [len(good) - 1]:
    open(path, "wb").write(good[:length])
    attempt()
damaged = outcomes.copy()
open(path, "wb").write(good)
attempt()
print(json.dumps([damaged, outcomes["hits"]]))
""")
        self.assertEqual(found[0], {"hits": 0, "misses": len(bits) + 30, "wrong": 0})
        self.assertEqual(found[1], 1)


if __name__ == "__main__":
    unittest.main()

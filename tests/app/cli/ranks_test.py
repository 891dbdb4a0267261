"""`fusebox run torchrun`, and programs that spawn their ranks: every rank is recorded, and the ranks' sessions are told beside each other."""
import json
import os
import sqlite3
import unittest

from program import folder, fusebox

PROGRAM = '''
import sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()

def step(x, way):
    return torch.tanh(x * 2) if way else torch.relu(x * 3)

step = torch.compile(step)
x = torch.ones(4, 3)
step(x, sys.argv[1] == "same" or rank == 0)
time.sleep(1)  # what ranks compiled is compared beside the program
dist.barrier()
print(f"rank {rank} is done\\n", end="")  # one write, since ranks share the pipe
dist.destroy_process_group()
'''


SPAWNS = '''
import sys, torch, torch.multiprocessing
from torch.utils.data import DataLoader

def work(index, word):
    step = torch.compile(lambda x: torch.tanh(x * 2) if word == "same" or index == 0 else torch.relu(x * 3))
    step(torch.ones(4, 3))
    if word == "fails" and index == 1:
        raise ValueError("on purpose")

if __name__ == "__main__":
    for word in sys.argv[1:]:
        torch.multiprocessing.spawn(work, args=(word,), nprocs=2)
    print(next(iter(DataLoader([torch.ones(2)], num_workers=1, multiprocessing_context="spawn"))))
'''


def facts_of(file):
    database = sqlite3.connect(file)
    facts = dict(database.execute("SELECT key, value FROM session_info"))
    compiled = database.execute("SELECT count(*) FROM compiles WHERE status = 'ok'").fetchone()[0]
    database.close()
    return facts, compiled


class Ranks(unittest.TestCase):
    def setUp(self):
        self.dir = folder()
        self.script = os.path.join(self.dir.name, "program.py")
        with open(self.script, "w") as out:
            out.write(PROGRAM)

    def spawn(self, *words):
        with open(self.script, "w") as out:
            out.write(SPAWNS)
        session = os.path.join(self.dir.name, "run.fusebox")
        result = fusebox("run", "--session", session, self.script, *words, timeout=170, env={**os.environ, "OMP_NUM_THREADS": "1"})
        return result, {name: facts_of(os.path.join(self.dir.name, name)) for name in os.listdir(self.dir.name) if name.endswith(".fusebox")}

    def test_ranks_that_the_program_spawns_are_recorded(self):
        result, found = self.spawn("same", "other")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(found), ["run-rank0-spawn2.fusebox", "run-rank0.fusebox", "run-rank1-spawn2.fusebox", "run-rank1.fusebox", "run.fusebox"],
                         "two calls of spawn, the program itself, and no worker of a data loader")
        for name, (facts, compiled) in found.items():
            self.assertEqual((facts["state"], facts["exit_code"], compiled), ("finished", "0", int("rank" in name)), name)
        self.assertEqual(found["run-rank1.fusebox"][0]["rank"], "1")
        self.assertIn("4 ranks", result.stderr)
        self.assertIn("run.fusebox, of the process that started them", result.stderr)

    def test_a_spawned_rank_that_fails_is_recorded_to_its_end(self):
        result, found = self.spawn("fails")
        self.assertEqual(result.returncode, 1)
        self.assertIn("ValueError: on purpose", result.stderr)
        self.assertEqual((found["run-rank1.fusebox"][0]["exit_code"], found["run-rank1.fusebox"][1]), ("1", 1))

    def tearDown(self):
        self.dir.cleanup()

    def run_ranks(self, size, word):
        session = os.path.join(self.dir.name, word + ".fusebox")
        result = fusebox("run", "--session", session, "torchrun", "--nproc-per-node", size, self.script, word, timeout=170,
                         env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertEqual(result.returncode, 0, result.stderr)
        for rank in range(size):
            self.assertIn(f"rank {rank} is done", result.stdout)
        files = [os.path.join(self.dir.name, f"{word}-rank{rank}.fusebox") for rank in range(size)]
        self.assertFalse(os.path.exists(session), "the launcher compiles nothing")
        return result, files

    def test_each_rank_has_a_session(self):
        result, files = self.run_ranks(2, "same")
        for rank, file in enumerate(files):
            facts, compiled = facts_of(file)
            self.assertEqual((facts["rank"], facts["world_size"], facts["state"], compiled), (str(rank), "2", "finished", 1))
            self.assertIn(file, result.stderr)
        self.assertIn("All ranks compiled the same.", result.stderr)

    def test_ranks_that_differ_are_named(self):
        result, files = self.run_ranks(2, "other")
        self.assertIn("rank 1", result.stderr.split("What ranks found")[1])
        report = json.loads(fusebox("summary", "--json", *files).stdout)
        self.assertEqual([rank["rank"] for rank in report["ranks"]], ["0", "1"])
        self.assertEqual([rank["summary"]["graphs"] for rank in report["ranks"]], [1, 1])
        self.assertTrue(any("step" in text and "aten::relu" in text for text in report["told"]), report["told"])
        self.assertTrue(report["differences"] and all(each["rank"] == "1" for each in report["differences"]), report["differences"])


if __name__ == "__main__":
    unittest.main()

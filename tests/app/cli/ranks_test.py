"""`fusebox run torchrun`: every rank is recorded, and the ranks' sessions are told beside each other."""
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


class Ranks(unittest.TestCase):
    def setUp(self):
        self.dir = folder()
        self.script = os.path.join(self.dir.name, "program.py")
        with open(self.script, "w") as out:
            out.write(PROGRAM)

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
            database = sqlite3.connect(file)
            facts = dict(database.execute("SELECT key, value FROM session_info"))
            self.assertEqual((facts["rank"], facts["world_size"], facts["state"]), (str(rank), "2", "finished"))
            self.assertEqual(database.execute("SELECT count(*) FROM compiles WHERE status = 'ok'").fetchone()[0], 1)
            database.close()
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

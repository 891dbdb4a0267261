"""Files that commands write are whole or not there, and what could not be written is named: exit code 3."""
import os
import resource
import signal
import unittest

from program import folder, fusebox, synthesize


def short_of_room(most):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


class Outputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = folder()
        cls.session = synthesize(os.path.join(cls.dir.name, "s.fusebox"))

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    def setUp(self):
        self.out = os.path.join(self.dir.name, self.id())
        os.mkdir(self.out)

    def commands(self, where):
        for name in ("x.json", "x.json.gz", "x.html", "x.pftrace", "x.csv", "x.fusebox"):
            yield ["export", self.session, "-o", os.path.join(where, name)], {}
        yield ["export", self.session, "--redact", "-o", os.path.join(where, "r.fusebox")], {}
        yield ["compare", self.session, self.session, "--html", os.path.join(where, "c.html")], {}
        for name in ("g.svg", "g.pdf", "g.png", "g.dot"):  # without Graphviz: painted by the program itself
            yield ["diagram", self.session, "-o", os.path.join(where, name)], {"env": {**os.environ, "PATH": "/nonexistent"}}

    def test_a_full_disk_leaves_no_half_file(self):
        whole = os.path.join(self.dir.name, "whole")
        os.mkdir(whole)
        for (command, options), (plain, _) in zip(self.commands(self.out), self.commands(whole)):
            self.assertEqual(fusebox(*plain, **options).returncode, 0, plain)
            most = os.path.getsize(plain[-1]) * 9 // 10  # bytes of a file: stands in for a full disk
            done = fusebox(*command, preexec_fn=lambda most=most: short_of_room(most), restore_signals=False, **options)
            self.assertEqual((done.returncode, done.stdout), (3, ""), (command, done.stderr))
            self.assertIn(command[-1] + ": ", done.stderr)
            self.assertNotIn(self.session, done.stderr)
            self.assertEqual(os.listdir(self.out), [], command)
        self.assertEqual(len(os.listdir(whole)), 12)  # and nothing beside them

    def test_what_was_there_stays_until_the_new_file_is_whole(self):
        for command, options in self.commands(self.out):
            if command[-1].endswith(".fusebox"):
                continue  # replaces nothing
            with open(command[-1], "w") as file:
                file.write("before")
            os.chmod(command[-1], 0o640)
            fusebox(*command, preexec_fn=lambda: short_of_room(10), restore_signals=False, **options)
            with open(command[-1]) as file:
                self.assertEqual(file.read(), "before", command)
            self.assertEqual(fusebox(*command, **options).returncode, 0)
            self.assertGreater(os.path.getsize(command[-1]), 6)
            self.assertEqual(os.stat(command[-1]).st_mode & 0o777, 0o640, command)
            os.remove(command[-1])
        self.assertEqual(os.listdir(self.out), [])

    def test_folders_that_are_not_there(self):
        for command, options in self.commands("/nonexistent"):
            done = fusebox(*command, **options)
            self.assertEqual((done.returncode, done.stdout), (3, ""), (command, done.stderr))
            self.assertIn(command[-1] + ": ", done.stderr)

    def test_an_output_that_is_no_file(self):
        self.assertEqual(fusebox("export", self.session, "-o", os.path.join(self.out, "real.json")).returncode, 0)
        os.symlink("real.json", os.path.join(self.out, "link.json"))
        self.assertEqual(fusebox("export", self.session, "-o", os.path.join(self.out, "link.json")).returncode, 0)
        self.assertTrue(os.path.islink(os.path.join(self.out, "link.json")))
        os.symlink("/dev/null", os.path.join(self.out, "null.csv"))
        self.assertEqual(fusebox("export", self.session, "-o", os.path.join(self.out, "null.csv")).returncode, 0)
        self.assertEqual(sorted(os.listdir(self.out)), ["link.json", "null.csv", "real.json"])


if __name__ == "__main__":
    unittest.main()

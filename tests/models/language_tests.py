"""CPython's own tests of the language, each run plainly and compiled: as many must pass compiled as plainly.

The installed Python's package `test` is taken under another path than the standard library's, whose functions a compiled region leaves to
CPython; each test method is compiled, so that it and all that it calls go through the evaluator. A test runs in a process of its own,
forked off one that has imported everything, with limits on time and memory.
"""

import argparse
import collections
import faulthandler
import fnmatch
import importlib
import io
import json
import multiprocessing
import os
import pathlib
import resource
import shutil
import sys
import sysconfig
import tempfile
import time
import unittest
import warnings

import torch

import fusebox
from fusebox._engine_access import _engine
from models import child

MODULES = """
    abc array asyncgen augassign baseexception binop bisect bool builtin bytes call class cmath collections compare complex contains context
    contextlib contextlib_async copy coroutines dataclasses decorators defaultdict deque descr descrtut dict dictcomps dictviews
    dynamicclassattribute dynamic enum enumerate except_star exception_group exception_hierarchy exception_variations exceptions extcall
    float format fractions fstring funcattrs functools generator_stop generators genericalias genericclass genexps global
    grammar graphlib hash heapq index int isinstance iter iterlen itertools keywordonlyarg list listcomps long math metaclass
    module named_expressions numeric_tower opcodes operator ordered_dict patma positional_only_arg pow print property raise random range reprlib
    richcmp scope set setcomps slice sort statistics string structseq subclassinit super traceback tuple type_annotations typechecks types
    typing unary unicode unpack unpack_ex userdict userlist userstring weakref weakset with yield_from""".split()

# Those for ctest: together about fifty seconds of one core.
SELECTION = """
    baseexception binop bool contextlib descrtut dictcomps dictviews dynamicclassattribute exception_variations extcall format fractions funcattrs
    generator_stop generators genericalias genericclass genexps global graphlib isinstance keywordonlyarg listcomps metaclass numeric_tower
    opcodes positional_only_arg print property raise reprlib richcmp scope setcomps slice typechecks""".split()

COUNTS = "counts references or objects exactly: compiled code holds some of its own"
MEMORY = "asks how much memory a dict takes, which depends on how it was filled"
TRACED = "a trace function that is set in compiled code hears of no frame that the evaluator follows"

# What compiled code cannot keep, and why. Told with every run. Patterns of `module.Class.method`.
OPEN = {
    "array.*.test_bug_782369": COUNTS,
    "coroutines.CoroutineTest.test_for_2": COUNTS,
    "descr.ClassPropertiesAndMethods.test_slots": COUNTS,
    "dict.DictTest.test_splittable_popitem": MEMORY,
    "ordered_dict.*.test_sizeof_exact": MEMORY,
    "patma.TestTracing.*": TRACED,
}


def standard_tests():
    """The folder that holds the installed Python's package `test`, by another path than its own; None where it is not installed."""
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    if not (library / "test" / "support").is_dir():
        return None
    folder = tempfile.mkdtemp(prefix="language_tests_")
    os.symlink(library / "test", os.path.join(folder, "test"))
    return folder


def load(name):
    """The tests of one module, doctests included; [] where it cannot be run here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = importlib.import_module("test.test_" + name)
            suite = unittest.defaultTestLoader.loadTestsFromModule(module)
        except (unittest.SkipTest, ModuleNotFoundError):
            return []
    return list(flattened(suite))


def flattened(suite):
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from flattened(part)
        else:
            yield part


def name_of(module, test):
    parts = test.id().split(".")
    return ".".join([module, *(part for part in parts if part not in ("test", "test_" + module))])


class Reasons(unittest.TestResult):
    """What became of one test, as ("ok" | "skipped" | "failed", the text of the first failure)."""

    def outcome(self):
        wrong = [text for _, text in self.errors + self.failures] + ["unexpected success"] * len(self.unexpectedSuccesses)
        return ("failed", wrong[0]) if wrong else ("skipped", self.skipped[0][1]) if self.skipped else ("ok", "")


def called_compiled(test):
    """What unittest calls a test method by, with the method compiled; a coroutine's frame is the event loop's, and only what it calls is."""
    if isinstance(test, unittest.IsolatedAsyncioTestCase):
        return fusebox.compile(test._callTestMethod, backend="eager")
    return lambda method: fusebox.compile(method, backend="eager")() and None


def perform(test, options, compiled):
    """Runs in the child."""
    if compiled:
        fusebox.config.break_every = options.break_every
        fusebox.config.recompile_limit = 64
        fusebox.config.accumulated_recompile_limit = 4096
        test._callTestMethod = called_compiled(test)
    result = Reasons()
    executed = count_instructions(test, result) if options.share and not compiled else unittest.TestSuite([test]).run(result) and 0
    counts = fusebox.counters()
    breaks = [f"{e['what']}: {e['detail']}" for e in _engine.events_since(0) if e["kind"] in ("graph_break", "failed", "ran_eagerly")]
    return {"outcome": result.outcome(), "executed": executed, "followed": counts["instructions"], "breaks": breaks,
            "failures": counts["capture_failures"]}


def count_instructions(test, result):
    """Runs a test and counts the instructions of Python's functions in it."""
    count = 0

    def local(frame, event, argument):
        nonlocal count
        count += event == "opcode"
        return local

    def entered(frame, event, argument):
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return local

    original = test._callTestMethod

    def traced(method):
        sys.settrace(entered)
        try:
            original(method)
        finally:
            sys.settrace(None)

    test._callTestMethod = traced
    unittest.TestSuite([test]).run(result)
    return count


def in_a_child(test, options, compiled):
    """What perform() gives, or how the process ended."""
    errors = tempfile.TemporaryFile()

    def work():
        os.dup2(errors.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
        sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
        faulthandler.enable(errors)
        resource.setrlimit(resource.RLIMIT_AS, (options.memory << 30, options.memory << 30))
        try:
            return json.dumps(perform(test, options, compiled)).encode()
        except BaseException as error:
            return json.dumps({"outcome": ("ended", f"{type(error).__name__}: {error}")}).encode()

    text, status = child.run(work, options.limit)
    if status is None:
        return {"outcome": ("hangs", f"no end within {options.limit} s")}
    if text and status == 0:
        return json.loads(text)
    errors.seek(0)
    said = errors.read().decode(errors="replace")
    return {"outcome": ("crashed", f"{child.ending(status)}\n{said[-3000:]}")}


def run_module(job):
    """Runs in a worker: rows (name, plain, compiled)."""
    module, options = job
    folder = tempfile.mkdtemp(prefix="language_test_")
    os.chdir(folder)
    rows = []
    try:
        tests = load(module)
    except BaseException as error:
        return module, [(module, {"outcome": ("failed", f"cannot be loaded: {error!r}")}, None, 0)]
    child.import_once()
    for test in tests:
        name = name_of(module, test)
        if options.tests and not any(fnmatch.fnmatch(name, pattern) for pattern in options.tests):
            continue
        started = time.monotonic()
        plain = in_a_child(test, options, False)
        if plain["outcome"][0] == "ok":
            rows.append((name, plain, in_a_child(test, options, True), time.monotonic() - started))
        else:
            rows.append((name, plain, None, time.monotonic() - started))
    shutil.rmtree(folder, ignore_errors=True)
    return module, rows


def reason_of(name):
    return next((reason for pattern, reason in OPEN.items() if fnmatch.fnmatch(name, pattern)), None)


def last_lines(text, count=1):
    return "\n    ".join([line for line in text.strip().splitlines() if line.strip()][-count:])


class Tally:
    def __init__(self, options):
        self.options = options
        self.plain = self.passed = self.failed = self.open = self.executed = self.followed = 0
        self.breaks = collections.Counter()
        self.log = open(options.log, "w") if options.log else None

    def add(self, module, rows):
        plain = passed = 0
        for name, first, second, seconds in rows:
            if self.log:
                self.log.write(json.dumps({"name": name, "plain": first, "compiled": second, "seconds": seconds}) + "\n")
                self.log.flush()
            if second is None:
                if first["outcome"][0] != "skipped":
                    print(f"  left out {name}, which does not pass plainly: {first['outcome'][0]}: {last_lines(first['outcome'][1])}")
                continue
            plain += 1
            self.executed += first.get("executed", 0)
            self.followed += second.get("followed", 0)
            self.breaks.update(second.get("breaks", ()))
            kind, text = second["outcome"]
            if kind == "ok":
                passed += 1
            elif reason := reason_of(name):
                self.open += 1
                print(f"  open {name}: {reason}")
            else:
                self.failed += 1
                print(f"  FAIL {name}: {kind}: {text if self.options.verbose else last_lines(text, 2)}")
        self.plain += plain
        self.passed += passed
        print(f"{module}: {passed} of {plain}, {sum(row[3] for row in rows):.0f} s", flush=True)

    def close(self):
        if self.options.breaks:
            for text, count in self.breaks.most_common(self.options.breaks):
                print(f"{count:7} {text[:200]}")
        if self.options.share and self.executed:
            print(f"{self.followed} of {self.executed} instructions ({100 * self.followed / self.executed:.0f} %) in captured segments")
        print(f"{self.passed} of {self.plain} tests that pass plainly pass compiled, {self.failed} do not, {self.open} open")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="as `dict` for test.test_dict; all of them without")
    parser.add_argument("--tests", nargs="*", help="patterns of module.Class.method")
    parser.add_argument("--selection", action="store_true", help="only what ctest runs")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one test")
    parser.add_argument("--memory", type=int, default=8, help="GiB of address space for one test")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--break-every", type=int, default=0)
    parser.add_argument("--share", action="store_true", help="count which share of the instructions the evaluator followed (slow)")
    parser.add_argument("--breaks", type=int, default=0, help="so many of the most frequent graph breaks")
    parser.add_argument("--log", help="a file for everything, one JSON a line")
    parser.add_argument("--verbose", action="store_true", help="whole tracebacks")
    options = parser.parse_args()
    folder = standard_tests()
    if folder is None:
        print("this Python has no package `test`")
        sys.exit(77)
    sys.path.insert(0, folder)
    torch.set_num_threads(1)
    fusebox.compile(lambda: None)()
    names = options.modules or (SELECTION if options.selection else MODULES)
    tally = Tally(options)
    context = multiprocessing.get_context("fork")
    try:
        with context.Pool(options.jobs, maxtasksperchild=1) as pool:
            for module, rows in pool.imap_unordered(run_module, [(name, options) for name in names], chunksize=1):
                tally.add(module, rows)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    tally.close()
    sys.exit(1 if tally.failed else 0)


if __name__ == "__main__":
    main()

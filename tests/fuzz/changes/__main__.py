"""python -m fuzz.changes: changes one thing at a time in two copies of a program, one eager, one compiled, and compares them.

A round takes a program, calls it and makes changes, each followed by a call; it depends on seed and number only. What differs is
reduced to the fewest changes and printed as a program.
"""

import argparse
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback

if "--kept" in sys.argv:
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "0"  # which torch reads when it is imported

import torch

import fusebox

from . import standalone, worlds
from .compare import Difference
from .sites import sites
from .twins import Twins

KINDS = ["TYPE_MATCH", "ID_MATCH", "CONSTANT_MATCH", "TENSOR_MATCH", "SEQUENCE_LENGTH", "DICT_KEYS_MATCH", "DICT_LENGTH", "DICT_CONTAINS",
         "NOT_PRESENT_IN_DICT", "DICT_EMPTY", "TYPE_VERSION", "DUPLICATE_INPUT", "NO_ALIASING", "CODE_MATCH", "GLOBAL_STATE",
         "CUSTOM"]  # capture makes no WEAKREF_ALIVE
WITHOUT = "FUSEBOX_WITHOUT_GUARDS"
HANG = 400  # seconds without progress on a busy machine; computing without end is noticed sooner


class Round:
    """One program and its changes, told to whoever listens as they come."""

    def __init__(self, all_worlds, seed, number, options):
        self.random = random.Random(f"{seed}:{number}")
        self.world = self.random.choice(all_worlds)
        self.settings = {"backend": self.random.choice(options.backends), "backward": self.random.random() < 0.7, "kept": options.kept}
        self.changes, self.length, self.only_kinds = [], options.changes, options.kinds

    def run(self, tell):
        """Makes changes until one makes a difference (raised) or enough are made; returns the number of pairs."""
        tell({"world": self.world.label, "settings": self.settings, "changes": []})
        try:
            return self.steps(Twins(self.world, self.settings), tell)
        except worlds.Unusable:
            return len(self.changes)

    def steps(self, twins, tell):
        twins.step()
        pairs = 0
        found = sites(twins.eager)
        for _ in range(self.length):
            kinds = [k for k in found if found[k] and (not self.only_kinds or k in self.only_kinds)]
            if not kinds:
                break
            kind = self.random.choice(kinds)
            statement = self.random.choice(found[kind])
            self.changes.append(statement)
            tell({"world": self.world.label, "settings": self.settings, "changes": self.changes})
            if not twins.step(statement):
                self.changes.pop()
                continue
            pairs += 1
            if self.random.random() < 0.4:
                pairs += twins.step()
            found = sites(twins.eager)
        return pairs


def replay(world, settings, changes):
    """What a sequence of changes leads to: the text of a difference, or None."""
    try:
        twins = Twins(world, settings)
        twins.step()
        for statement in changes:
            twins.step(statement)
            twins.step()
    except Difference as difference:
        return str(difference)
    except worlds.Unusable:
        return None


def in_a_child(work):
    """The text that `work()` returns, in a process forked off this one; a child that ends early or hangs says so."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            text = work() or ""
        except BaseException as error:
            text = f"harness: {type(error).__name__}: {error}"
        os.write(write, text.encode(errors="replace")[:60000])
        os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], HANG)
    text = os.read(read, 60000).decode(errors="replace") if ready else ""
    if not ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(read)
    if not ready:
        return "hangs"
    if is_due_to_eager(status):
        return ""
    return how_it_ended(status) if status & 127 else text


def is_due_to_eager(status):
    return status & 127 == signal.SIGALRM


def how_it_ended(status):
    """How a process ended by a signal."""
    kind = signal.Signals(status & 127)
    return "computes without end" if kind == signal.SIGPROF else f"process ended: {kind.name}"


def reduced(world, settings, changes):
    """The fewest changes that make a difference, and what it is. Every trial has a process of its own."""
    text = in_a_child(lambda: replay(world, settings, changes))
    if not text:
        return changes, ""
    last = changes[-1:]
    if len(changes) > 1 and (alone := in_a_child(lambda: replay(world, settings, last))):
        changes, text = last, alone
    for statement in list(changes[:-1]):
        if len(changes) == 1:
            break
        fewer = [s for s in changes if s is not statement]
        if shorter := in_a_child(lambda: replay(world, settings, fewer)):
            changes, text = fewer, shorter
    return changes, text


def work(all_worlds, numbers, options, pipe):
    """The loop of a worker: a line of JSON for each thing that happens."""
    def tell(message):
        os.write(pipe, json.dumps(message).encode() + b"\n")

    for number in numbers:
        current = Round(all_worlds, options.seed, number, options)
        try:
            tell({"number": number})
            recalled = fusebox.counters()["captures_recalled"]
            pairs = current.run(tell)
            tell({"pairs": pairs, "recalled": fusebox.counters()["captures_recalled"] - recalled})
        except Difference as difference:
            tell({"found": str(difference), "world": current.world.label, "settings": current.settings, "changes": current.changes})
        except Exception as error:
            if options.verbose:
                traceback.print_exc()
            tell({"harness": f"{current.world.label}: {type(error).__name__}: {error}"})


class Supervisor:
    """Runs workers one after another, each from where the last one ended, and keeps count."""

    def __init__(self, options, all_worlds):
        self.options, self.worlds = options, all_worlds
        self.by_label = {w.label: w for w in all_worlds}
        self.pairs, self.recalled, self.findings, self.seen, self.begin = 0, 0, [], {}, time.monotonic()
        self.harness = {}
        shard, shards = map(int, options.shard.split("/"))
        self.next, self.stride = options.round if options.round is not None else shard, shards

    def is_done(self):
        o = self.options
        return (o.seconds and time.monotonic() - self.begin > o.seconds or o.pairs and self.pairs >= o.pairs
                or o.first and self.findings or o.round is not None and self.next != o.round)

    def run(self):
        while not self.is_done():
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(read)
                if not self.options.verbose:
                    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                try:
                    work(self.worlds, range(self.next, self.next + 150 * self.stride, self.stride), self.options, write)
                finally:
                    os._exit(0 if sys.exc_info()[0] is None else 1)
            os.close(write)
            self.listen(read, child)
            os.close(read)

    def listen(self, read, child):
        """Until the worker ends, or does nothing for long, or enough has been done."""
        rest, last, stopped = b"", None, False
        while not stopped:
            ready, _, _ = select.select([read], [], [], HANG)
            part = os.read(read, 1 << 16) if ready else b""
            if not part:
                break
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if "number" in message:
                    self.next = message["number"] + self.stride
                elif "pairs" in message:
                    self.pairs += message["pairs"]
                    self.recalled += message["recalled"]
                elif "harness" in message:
                    self.harness[message["harness"]] = self.harness.get(message["harness"], 0) + 1
                elif "found" in message:
                    self.pairs += len(message["changes"])
                    self.report(message)
                    last = None
                else:
                    last = message
            stopped = self.is_done()
        if stopped or not ready:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if last and not stopped and (not ready or status & 127) and not is_due_to_eager(status):
            self.report({**last, "found": "hangs" if not ready else how_it_ended(status)})

    def report(self, message):
        """Reduces what is new and writes it down."""
        last = message["changes"][-1] if message["changes"] else "first call"
        times = self.seen[message["world"], last] = self.seen.get((message["world"], last), 0) + 1
        if times > 1 or sum(1 for world, _ in self.seen if world == message["world"]) > self.options.each:
            return
        world = self.by_label[message["world"]]
        changes, text = reduced(world, message["settings"], message["changes"])
        finding = {"world": world.label, "changes": changes, "text": text or message["found"], "repeats": bool(text),
                   "settings": message["settings"]}
        if self.options.without and not self.is_due_to_the_guards(finding):
            return
        self.findings.append(finding)
        when = "after " + "; ".join(changes) if changes else "at the first call"
        lines = [f"DIFFERENCE {world.label} ({message['settings']['backend']}), {when}: {finding['text'][:400]}"]
        if not text:
            lines[0] += "   [does not repeat alone]"
        if self.options.programs:
            lines.append("```python\n" + standalone.program(world, changes, message["settings"]["backend"]) + "\n```")
        print("\n".join(lines), flush=True)
        if self.options.report:
            with open(self.options.report, "a") as file:
                file.write("\n".join(lines) + "\n")

    def is_due_to_the_guards(self, finding):
        """Whether the difference goes when the guards are back."""
        def with_guards():
            del os.environ[WITHOUT]  # read at the first compile, which no parent of this process has done
            return replay(self.by_label[finding["world"]], finding["settings"], finding["changes"])

        return finding["repeats"] and not in_a_child(with_guards)


def without(kinds, options, all_worlds):
    """Each kind of guard switched off in turn, in the program named after it; those that the fuzzer did not notice."""
    options.first, missed = True, []
    for kind in kinds:
        os.environ[WITHOUT] = kind
        own = [w for w in all_worlds if w.path.stem == "guard_kinds" and w.name == f"world_{kind.lower()}"]
        supervisor = Supervisor(options, own or all_worlds)
        supervisor.run()
        seconds = time.monotonic() - supervisor.begin
        print(f"{'noticed' if supervisor.findings else 'NOT noticed'} without {kind}: {supervisor.pairs} pairs, {seconds:.0f} s",
              flush=True)
        missed += [] if supervisor.findings else [kind]
    return missed


def main():
    parser = argparse.ArgumentParser(prog="python -m fuzz.changes", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, help="stop after this time")
    parser.add_argument("--pairs", type=int, help="stop after so many changes with a call")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="programs: names, files, or FILE.NAME")
    parser.add_argument("--kinds", nargs="*", help="kinds of changes, as in sites.py: constant, dict, process, hook, …")
    parser.add_argument("--sources", nargs="*", default=["corpus", "program", "script", "edge"])
    parser.add_argument("--shard", default="0/1", help="I/N: every N-th round from the I-th on")
    parser.add_argument("--round", type=int, help="this round only")
    parser.add_argument("--changes", type=int, default=15, help="changes of a round")
    parser.add_argument("--backends", nargs="*", default=["aot_eager", "aot_eager", "aot_eager", "inductor"])
    parser.add_argument("--each", type=int, default=4, help="differences to report of one program")
    parser.add_argument("--report", help="file to which differences are appended")
    parser.add_argument("--programs", action="store_true", help="print each difference as a program")
    parser.add_argument("--first", action="store_true", help="stop at the first difference")
    parser.add_argument("--without", nargs="*", help="kinds of guards to switch off, one at a time ('all'): each must be found")
    parser.add_argument("--kept", action="store_true", help="between calls all that was compiled is forgotten but for captures in the cache")
    parser.add_argument("--list", action="store_true", help="names of all programs")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.kept:
        directory = tempfile.TemporaryDirectory()
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = directory.name
        fusebox.config.cache_captures_from = 0
    fusebox.config.recompile_limit = 1000
    fusebox.config.accumulated_recompile_limit = 100000
    all_worlds = worlds.load(options.sources)
    if options.only:
        all_worlds = [w for w in all_worlds if {w.name, w.path.stem, w.label, w.label.partition("#")[0]} & set(options.only)]
    if options.list:
        print("\n".join(w.label for w in all_worlds))
        return
    if options.without:
        sys.exit(1 if without(KINDS if options.without == ["all"] else options.without, options, all_worlds) else 0)
    supervisor = Supervisor(options, all_worlds)
    supervisor.run()
    seconds = time.monotonic() - supervisor.begin
    for text, times in sorted(supervisor.harness.items(), key=lambda item: -item[1])[:8]:
        print(f"harness: {text} ({times} times)"[:300])
    if options.kept:
        print(f"{supervisor.recalled} captures were taken from the cache")
    print(f"{supervisor.pairs} pairs in {seconds:.0f} s ({supervisor.pairs / seconds:.0f} a second), {len(supervisor.findings)} differences, "
          f"seed {options.seed}, rounds up to {supervisor.next}")
    sys.exit(1 if supervisor.findings else 0)


if __name__ == "__main__":
    main()

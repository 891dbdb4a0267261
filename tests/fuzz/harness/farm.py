"""Runs generated programs in forked workers, so that a crash or a hang is a finding too; reduces what differs."""

import argparse
import collections
import json
import os
import pathlib
import select
import signal
import sys
import time
import traceback
import warnings

import torch

from . import reduce as reducing
from .execute import check
from .walk import Difference

BATCH = 50
PROGRAM_SECONDS = 60     # of computing
STUCK_SECONDS = 600      # without an end, however busy the machine is


def outcome_of(source):
    """{kind, text} of a difference, or the counters of a program without one."""
    try:
        return check(source)
    except Difference as difference:
        return {"kind": difference.kind, "text": str(difference), "eager": getattr(difference, "eager_error",
            "NoneType"), "call": getattr(difference, "call", -1)}
    except BaseException as error:  # the harness itself, or what escaped from the compiler
        last = traceback.extract_tb(error.__traceback__)[-1]
        return {"kind": "harness",
                "text": f"{type(error).__name__}: {error} at {last.filename.rpartition('/')[2]}:{last.lineno}",
                "eager": "", "call": -1}


class Worker:
    """A forked process with (name, source) pairs to run; what it says comes over a pipe, a line each."""

    threads = 1  # of torch, in each

    def __init__(self, jobs):
        self.jobs = list(jobs)
        self.read, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            os.close(self.read)
            self.child(write)
        os.close(write)
        self.text, self.current, self.since = b"", None, time.monotonic()

    def child(self, write):
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 2)
        torch.set_num_threads(self.threads)
        warnings.filterwarnings("ignore", message="fusebox")
        torch.set_warn_always(True)  # what torch says once only, the first of two worlds would hear
        for name, source in self.jobs:
            os.write(write, f"start {name}\n".encode())
            signal.setitimer(signal.ITIMER_PROF, PROGRAM_SECONDS)  # ends the process by SIGPROF
            text = source() if callable(source) else source
            os.write(write, (json.dumps([name, outcome_of(text)]) + "\n").encode())
        os._exit(0)

    def lines(self):
        """Outcomes that have come; None at the end of the process."""
        data = os.read(self.read, 1 << 16)
        self.text += data
        *whole, self.text = self.text.split(b"\n")
        for line in whole:
            if line.startswith(b"start "):
                self.current, self.since = int(line[6:]), time.monotonic()
            else:
                name, outcome = json.loads(line)
                self.current = None
                yield name, outcome
        if not data:
            yield None

    def end(self):
        os.close(self.read)
        _, status = os.waitpid(self.pid, 0)
        return status

    def stop(self):
        os.kill(self.pid, signal.SIGKILL)


def ended_by(status):
    """The outcome of a process that did not say one."""
    kind = "hang" if status in (signal.SIGPROF, signal.SIGKILL) else "crash"
    return {"kind": kind, "text": f"{kind}: ended with status {status}", "eager": "", "call": -1}


def alone(source, seconds=STUCK_SECONDS):
    """The outcome of one program in a process of its own."""
    worker = Worker([(0, source)])
    ends, found = time.monotonic() + seconds, None
    while True:
        ready, _, _ = select.select([worker.read], [], [], max(0.0, ends - time.monotonic()))
        if not ready:
            worker.stop()
            return ended_by(worker.end())
        over = False
        for item in worker.lines():
            if item is None:
                over = True
            else:
                found = item[1]
        if over:
            status = worker.end()
            return found or {"kind": "crash", "text": f"status {status}: signal {status & 127}", "eager": "",
                             "call": -1}


class Farm:
    """Feeds workers with programs from `make(index)`, gathers what differs."""

    def __init__(self, make, options, standalone):
        self.make, self.options, self.standalone = make, options, standalone
        first, of = map(int, options.shard.split("/"))
        self.indices = iter(range(first, 1 << 60, of)) if options.index is None else iter(options.index)
        self.left = options.programs if options.index is None else len(options.index)
        self.ends = time.monotonic() + options.seconds if options.seconds else None
        self.found = []
        self.known = json.loads(pathlib.Path(options.known).read_text()) if options.known else {}
        self.counts = collections.Counter()

    def batch(self):
        if self.ends and time.monotonic() > self.ends:
            self.left = 0
        jobs = []
        while self.left and len(jobs) < BATCH:
            index = next(self.indices)
            jobs.append((index, lambda index=index: self.make(index)))
            self.left -= 1
        return jobs

    def take(self, worker, name, outcome):
        worker.jobs = [job for job in worker.jobs if job[0] != name]
        self.counts["programs"] += 1
        reason = self.known.get(f"{self.options.seed}:{name}")
        if "kind" in outcome and reason:
            self.counts["known"] += 1
            print(f"  program {name} differs, as is known: {reason}", flush=True)
        elif "kind" in outcome:
            self.found.append((name, outcome))
            print(f"  program {name}: {outcome['text'][:300]}", flush=True)
        else:
            self.counts.update({k: v for k, v in outcome.items() if isinstance(v, int)})

    def run(self):
        workers = []
        while True:
            while len(workers) < self.options.jobs:
                jobs = self.batch()
                if not jobs:
                    break
                workers.append(Worker(jobs))
            if not workers:
                return
            ready, _, _ = select.select([w.read for w in workers], [], [], 1.0)
            for worker in list(workers):
                if worker.read in ready:
                    for item in worker.lines():
                        if item is None:
                            workers.remove(worker)
                            self.ended(worker, workers)
                        else:
                            self.take(worker, *item)
                elif worker.current is not None and time.monotonic() - worker.since > STUCK_SECONDS:
                    worker.stop()

    def ended(self, worker, workers):
        """A worker that ended before its programs did: the one it was at crashed it, or took too long."""
        status = worker.end()
        if worker.current is not None:
            self.take(worker, worker.current, ended_by(status))
            if worker.jobs and not (self.ends and time.monotonic() > self.ends):
                workers.append(Worker(worker.jobs))

    def report(self):
        groups, budget = {}, time.monotonic() + self.options.reduce_seconds
        for index, outcome in self.found:
            source = self.make(index)
            again = alone(source)
            if "kind" not in again:
                again = {"kind": "not alone", "text": outcome["text"]}
                small = source
            else:
                small = self.reduced(source, again, budget)
            key = (again["kind"], reducing.shape_of(small) if small is not source else index)
            members = groups.setdefault(key, [])
            members.append(index)
            if len(members) == 1:
                self.tell(index, again, small)
        for (kind, _), members in sorted(groups.items(), key=lambda item: -len(item[1])):
            print(f"{len(members)} programs differ in {kind} as {members[0]} does: {members[:12]}", flush=True)

    def tell(self, index, outcome, small):
        text = "\n".join([f"## program {index}: {outcome['kind']}", f"    {outcome['text'][:500]}", "```python",
                          self.standalone(small).rstrip(), "```", ""])
        print(text, flush=True)
        if self.options.report:
            with open(self.options.report, "a") as out:
                out.write(text + "\n")

    def reduced(self, source, outcome, budget):
        if time.monotonic() > budget:
            return source

        def still(text):
            other = alone(text, STUCK_SECONDS if outcome["kind"] == "hang" else PROGRAM_SECONDS)
            return other.get("kind") == outcome["kind"] and other["eager"] in (outcome["eager"], "NoneType")

        return reducing.reduce(source, still, min(self.options.reduce_each, budget - time.monotonic()))


def main(description, make, standalone, add_arguments=None):
    """`make(seed, index, options)` gives the text of a program, `standalone(text)` one that runs by itself."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=1 << 60)
    parser.add_argument("--seconds", type=float, default=0, help="time for running programs; reducing comes after")
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--break-every", type=int,
                        help="of every program; left out: many have none, some have one to twelve")
    parser.add_argument("--backend", help="of every program")
    parser.add_argument("--dynamic", action="store_true", help="dynamic=True, with sizes that change from call to call (graphs of operators)")
    parser.add_argument("--report", help="append what was found, reduced")
    parser.add_argument("--known", help='JSON {"SEED:INDEX": reason} of differences that are told but are no failure')
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--index", type=int, nargs="*", help="only these programs")
    parser.add_argument("--show", action="store_true", help="print the programs, run nothing")
    parser.add_argument("--reduce-seconds", type=float, default=600, help="for all that is found")
    parser.add_argument("--reduce-each", type=float, default=60)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    if add_arguments:
        add_arguments(parser)
    options = parser.parse_args()
    if options.programs == 1 << 60 and not options.seconds and options.index is None:
        parser.error("--programs, --seconds or --index")
    torch.set_num_threads(1)  # a team of threads that is started here would not be there in forked workers
    Worker.threads = max(1, min(4, (os.cpu_count() or 1) // options.jobs))
    produce = lambda index: make(options.seed, index, options)
    if options.show:
        for index in options.index if options.index is not None else range(options.programs):
            print(standalone(produce(index)))
        return 0
    if options.device == "cuda":
        from torch._inductor import config
        config.fallback_random = True  # random numbers are eager's then
    import fusebox
    fusebox.counters()
    farm = Farm(produce, options, standalone)
    started = time.monotonic()
    farm.run()
    seconds = time.monotonic() - started
    counts = farm.counts
    print(f"{counts['programs']} programs in {seconds:.0f} s ({counts['programs'] / max(seconds, 1e-9):.1f}/s), {len(farm.found)} differ; "
          f"{dict(counts)}", flush=True)
    farm.report()
    return 1 if farm.found else 0


__all__ = ["main", "alone"]

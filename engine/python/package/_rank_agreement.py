"""Whether all ranks of a process group compile the same: which rank differs, at which graph, why. Each rank puts down what it compiled in the
group's store; a thread beside the program compares. Nothing waits for it, and nothing is looked at but when something was compiled."""

import atexit
import collections
import json
import os
import queue
import threading
import time
import warnings
import zlib

from . import _config, _rank_store
from ._engine_access import _engine

_MOST_WARNINGS = 5
_MOST_LINES = 5000
_ENDINGS = ("compiled", "failed", "ran_eagerly", "limit")

_checker = None
_seen = 0
_warned = 0


def compiling(begins):
    """Told by the engine before and after it compiles something."""
    global _checker, _seen
    store = _store() if _config.config.rank_agreement else None
    _engine.keep_operators(store is not None)
    if store is None:
        return
    if begins:
        _seen = _engine.latest_event()
        return
    if _checker is None or _checker.store is not store:
        _checker = _Checker(store)
    events, _seen = _engine.events_since(_seen), _engine.latest_event()
    breaks = None
    for event in events:
        if event["kind"] == "graph_break":
            breaks = event
        elif event["kind"] in _ENDINGS:
            _checker.compiled(event, _lines(event, breaks))
            breaks = None


def _store():
    """The group's store; None where there is none, or it cannot be reached, which is no error of the program's."""
    try:
        return _rank_store.current()
    except RuntimeError as error:
        _engine.record_loss("ranks are not compared", 1, str(error).splitlines()[0])
        return None


def _place(event):
    return f"{event['function']} ({os.path.basename(event['file'])}:{event['line']})"


def _lines(event, breaks):
    """What was compiled, line by line: where two ranks differ, the first line that does is told."""
    if event["kind"] != "compiled":
        return [f"no graph, {event['what']}: {event['detail']}"]
    lines = [f"a graph with symbols for {', '.join(event['symbols'])}" if event["symbols"] else "a graph of constant sizes", *event["operators_at"]]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"{len(lines) - _MOST_LINES} more operators"]
    return [*lines, f"a graph break, {breaks['what']}, at {os.path.basename(breaks['file'])}:{breaks['line']}" if breaks else "the end, without a break"]


class _Checker:
    """A thread that puts down what this rank compiled and compares it with what others did: rank 0 with all, the others with rank 0."""

    def __init__(self, store):
        self.store = store
        self._counts = collections.Counter()
        self._queue = queue.SimpleQueue()
        self._pid = os.getpid()
        _engine.record_fact("rank", str(store.rank))
        _engine.record_fact("world_size", str(store.size))
        self._ends = False
        self._thread = threading.Thread(target=self._work, name="fusebox-ranks", daemon=True)
        self._thread.start()
        # A thread that is inside of the store's C++ when the interpreter ends would end the process with an abort.
        atexit.register(self._end)

    def _end(self):
        self._ends = True
        self._queue.put(None)
        self._thread.join(timeout=5)

    def compiled(self, event, lines):
        if self._pid != os.getpid():  # a child of a rank is none
            return
        place = _place(event)
        self._counts[place] += 1
        self._queue.put((place, (event["file"], event["line"]), self._counts[place], lines, time.monotonic() + _config.config.rank_report_s))

    def _work(self):
        pending = []
        try:
            connection = self.store.connection()
            while not self._ends:
                for work in self._arrived(bool(pending)):
                    pending.append(_Comparison(self.store, connection, *work))
                pending = [each for each in pending if not each.step()]
        except Exception as error:  # the store is gone: the run ends
            _engine.record_loss("ranks are not compared any more", 1, str(error).splitlines()[0])

    def _arrived(self, soon):
        """What has come: at once if anything has, else after a moment, or whenever it comes."""
        work = []
        try:
            work.append(self._queue.get(timeout=0.1 if soon else None))
            while True:
                work.append(self._queue.get_nowait())
        except queue.Empty:
            return [each for each in work if each is not None]


class _Comparison:
    """One compile of this rank beside those of the others."""

    def __init__(self, store, connection, place, line, number, lines, deadline):
        self._store, self._connection, self._place, self._number, self._lines, self._deadline = store, connection, place, number, lines, deadline
        self._line = line
        self._key = f"graph/{place}/{number}"
        self._others = set(range(store.size)) - {store.rank} if store.rank == 0 else {0}
        connection.set(f"{self._key}/{store.rank}", zlib.compress(json.dumps(lines).encode()))
        connection.set(f"last/{store.rank}", place)

    def step(self):
        """Compares what has come; true when there is nothing left to do."""
        for rank in sorted(self._others):
            key = f"{self._key}/{rank}"
            if self._connection.check([key]):
                self._others.discard(rank)
                self._compare(rank, json.loads(zlib.decompress(self._connection.get(key))))
        if self._others and time.monotonic() > self._deadline:
            self._never_came()
            self._others.clear()
        return not self._others

    def _compare(self, rank, lines):
        if lines == self._lines:
            return
        at = next((i for i, (mine, theirs) in enumerate(zip(self._lines, lines)) if mine != theirs), min(len(lines), len(self._lines)))
        mine, theirs = (each[at] if at < len(each) else "nothing more" for each in (self._lines, lines))
        where = f", from operator {at} on" if at and at < len(self._lines) - 1 else ""
        # Sizes that varied on one rank alone make symbols there alone: no error, and torch._dynamo.config.enable_compiler_collectives is the remedy.
        only_symbols = at == 0 and lines[1:] == self._lines[1:]
        remedy = "; torch._dynamo.config.enable_compiler_collectives makes symbols of what differs between ranks" if only_symbols else ""
        self._report(f"rank {rank} compiled another graph than rank {self._store.rank} for {self._what()}{where}: rank {rank} has {theirs}, rank "
                f"{self._store.rank} has {mine}{remedy}", not only_symbols)

    def _never_came(self):
        ranks = sorted(self._others)
        last = {rank: self._connection.get(f"last/{rank}").decode() if self._connection.check([f"last/{rank}"]) else "" for rank in ranks}
        known = [f"the last that rank {rank} compiled is {place}" if place else f"rank {rank} has compiled nothing" for rank, place in last.items()][:3]
        # A rank whose sizes did not change has nothing to compile again.
        self._report(f"{_rank_store.rank_names(ranks)} did not compile {self._what()} within {_config.config.rank_report_s:g} s of rank {self._store.rank}: "
                f"{', '.join(known)}", self._number == 1)

    def _what(self):
        return self._place if self._number == 1 else f"{self._place}, compile {self._number}"

    def _report(self, text, warn):
        global _warned
        _engine.record_loss("ranks differ", 1, text)
        if warn and _warned < _MOST_WARNINGS:
            _warned += 1
            warnings.warn_explicit("fusebox: " + text, UserWarning, *self._line)

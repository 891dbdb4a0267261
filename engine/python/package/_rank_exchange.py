"""Decisions that ranks take together: which sizes are symbols (torch._dynamo.config.enable_compiler_collectives), and whether to compile again
(torch.compiler.set_enable_guard_collectives). A rank that is waited for in vain is named, and the others go on alone."""

import os
import sys
import warnings

from . import _config, _rank_store
from ._engine_access import _engine

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_counts = {}         # of a generation of ranks: how often each key was used
_store = None
_enabled = False


def _next(kind, place):
    """A key that is new each time, and the same on every rank."""
    global _store
    store = _rank_store.current()
    if store is not _store:
        _store = store
        _counts.clear()
    if store is None:
        return None, 0
    number = _counts[kind, place] = _counts.get((kind, place), 0) + 1
    return store, number


def _gather(store, key, value, place, doing):
    def notice(missing):
        _say(f"rank {store.rank} waits for {_rank_store.rank_names(missing)} {doing} {place}")

    given = store.gather(key, value, _config.config.rank_wait_s, notice, _config.config.rank_report_s)
    missing = [rank for rank, each in enumerate(given) if each is None]
    if missing:
        _say(f"{_rank_store.rank_names(missing)} did not come within {_config.config.rank_wait_s:g} s {doing} {place}: rank {store.rank} goes on alone")
    return given, missing


def _say(text):
    _engine.record_loss("ranks differ", 1, text)
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    warnings.warn_explicit("fusebox: " + text, UserWarning, frame.f_code.co_filename, frame.f_lineno)


def exchange_numbers(place, numbers):
    """Called by the engine after a capture: `numbers` (text of a profile) as all other ranks have them at this place."""
    store, number = _next("numbers", place)
    if store is None:
        return []
    given, _ = _gather(store, f"numbers/{place}/{number}", numbers, place, "to compile")
    return [each.decode() for rank, each in enumerate(given) if each is not None and rank != store.rank]


def all_hit(place, hit):
    """Called by the engine for each call of what has been compiled: whether every rank has code that fits."""
    store, number = _next("guards", place)
    if store is None:
        return hit
    key = "guards/" + place
    given, missing = _gather(store, f"{key}/{number}", "1" if hit else "0", place, "to check the guards of")
    if missing:
        set_enable_guard_collectives(False)
        _say("guard collectives are off from now on: each rank decides for itself")
        return hit
    if number > 2:
        store.forget(f"{key}/{number - 2}")  # who has the values of the last call had those of the one before
    return all(each == b"1" for each in given)


def set_enable_guard_collectives(enabled):
    """Whether ranks agree, at every call of compiled code, if it is compiled again; the previous setting is returned. Every rank must make the
    same calls."""
    global _enabled
    before, _enabled = _enabled, bool(enabled)
    _engine.set_guard_agreement(all_hit if _enabled else None)
    return before


_engine.set_number_exchange(exchange_numbers)

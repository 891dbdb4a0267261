"""What the ranks of the default process group tell each other over its store: no collective, so that no rank hangs because another never comes."""

import sys
import time

_current = None
_generation = 0


class RankStore:
    """Keys of this engine in a process group's store, by a connection of their own: one that waits in a collective holds up nobody here."""

    def __init__(self, group, generation):
        from torch.distributed import PrefixStore
        from torch.distributed.distributed_c10d import _get_default_store
        self.group, self.rank, self.size = group, group.rank(), group.size()
        self._open = lambda: PrefixStore(f"fusebox/{generation}", _get_default_store().clone())
        self._store = self._open()

    def connection(self):
        """Another connection, for another thread."""
        return self._open()

    def keys(self, key):
        return [f"{key}/{rank}" for rank in range(self.size)]

    def gather(self, key, value, limit, notice, notice_after):
        """Puts a value and gives those of all ranks, in order; None for each that has not come within `limit` seconds. `notice(missing)` is
        called once if ranks are missing after `notice_after` seconds."""
        keys, begin = self.keys(key), time.monotonic()
        self._store.set(keys[self.rank], value)
        pause = 0.0
        while not self._store.check(keys):
            waited = time.monotonic() - begin
            if notice and waited > notice_after:
                notice, _ = None, notice(self._missing(keys))
            if waited > limit:
                return [self._store.get(each) if self._store.check([each]) else None for each in keys]
            time.sleep(pause)
            pause = min(0.02, waited / 8)
        return self._store.multi_get(keys)

    def _missing(self, keys):
        return [rank for rank, key in enumerate(keys) if not self._store.check([key])]

    def forget(self, key):
        """This rank's value under a key that everybody has read."""
        self._store.delete_key(f"{key}/{self.rank}")


def current():
    """The store of the default process group; None where there is none, or one rank alone."""
    global _current, _generation
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    group = distributed.group.WORLD
    if _current is None or _current.group is not group:
        if group.size() == 1 or distributed.get_backend(group) == "fake":
            return None
        _generation += 1
        _current = RankStore(group, _generation)
    return _current


def rank_names(ranks):
    """"rank 1", "ranks 1, 4 and 7"."""
    words = [str(rank) for rank in ranks]
    return f"rank {words[0]}" if len(words) == 1 else f"ranks {', '.join(words[:-1])} and {words[-1]}"

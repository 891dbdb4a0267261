"""fusebox.config: switches of the process, by PyTorch's names where PyTorch has them."""

import contextlib

from ._engine_access import _engine
from ._unused_options import once

# Names that the Python side keeps itself, with their defaults.
_LOCAL = {"break_every": 0, "rank_agreement": True, "rank_report_s": 8.0, "rank_wait_s": 60.0}
_LOCAL_DEFAULTS = dict(_LOCAL)
_ENGINE_DEFAULTS = _engine.configuration()  # before anybody can have set any

MEANINGS = {
    "accumulated_recompile_limit": "entries that a code object may have", "assume_static_by_default": "sizes are symbols only where they changed",
    "automatic_dynamic_shapes": "sizes that changed are symbols in the next compile",
    "background": "optimised code is made on a thread of its own while quick code runs",
    "break_every": "forces a graph break at every k-th instruction (for tests); 0: nowhere",
    "cache_captures": "what was captured is kept in the cache, and a further process takes it where it fits",
    "cache_captures_from": "instructions that a capture must have followed to be kept: others are captured again as fast as they are read",
    "error_on_recompile": "a recompile is an error", "fail_on_recompile_limit_hit": "the limit is an error in place of a warning",
    "forbid_fusion": "nodes or pairs of nodes that are never fused: name, or name,name", "force_fusion": "pairs of nodes that are fused where that is right",
    "force_parameter_static_shapes": "sizes of parameters are constants", "fuse": "whether kernels are fused", "max_fusion_size": "operations in one kernel",
    "loop_operators": "operators that one loop may give a graph: a longer one is compiled turn by turn (fullgraph follows every loop to its end)",
    "rank_agreement": "ranks of a process group tell each other what they compiled, and a difference is a warning; nothing waits for it",
    "rank_report_s": "seconds after which a rank that has not compiled the same is named",
    "rank_wait_s": "seconds for which ranks wait for each other where they decide together (compiler and guard collectives)",
    "recompile_limit": "entries that a place of a code object may have; those of constant sizes that a later one has symbols for do not count", "skip_passes": "graph passes that are left out",
    "specialize_float": "floats that changed stay constants", "specialize_int": "ints that changed stay constants",
    "target": "processor that code is made for",
}
# Settings that the first kernel fixes.
_ONCE = ("target", "background")


class _Config:
    """Attributes are settings; an unknown name raises. `patch(name=value)` sets them for a while."""

    def __getattr__(self, name):
        if name in _LOCAL:
            return _LOCAL[name]
        settings = _engine.configuration()
        if name in settings:
            return settings[name]
        raise AttributeError(f"fusebox.config has no setting {name!r}; there are: {', '.join(self.names())}")

    def __setattr__(self, name, value):
        if name in _LOCAL:
            _LOCAL[name] = type(_LOCAL[name])(value)
            return
        if name in _ONCE and _engine.counters()["kernels"] and getattr(self, name) != value:
            once(f"fusebox.config.{name} has no effect any more: it is read with the first kernel of the process")
        try:
            _engine.configure(name, value)
        except KeyError:
            raise AttributeError(f"fusebox.config has no setting {name!r}; there are: {', '.join(self.names())}") from None

    def names(self):
        return sorted([*_LOCAL, *_engine.configuration()])

    def defaults(self):
        return {**_LOCAL_DEFAULTS, **_ENGINE_DEFAULTS}

    def __dir__(self):
        return [*self.names(), "names", "defaults", "patch"]

    @contextlib.contextmanager
    def patch(self, **settings):
        before = {name: getattr(self, name) for name in settings}
        try:
            for name, value in settings.items():
                setattr(self, name, value)
            yield self
        finally:
            for name, value in before.items():
                setattr(self, name, value)


config = _Config()

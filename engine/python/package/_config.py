"""fusebox.config: switches of the process, by PyTorch's names where PyTorch has them."""

import contextlib

from ._engine_access import _engine
from ._unused_options import once

# Names that the Python side keeps itself, with their defaults.
_LOCAL = {"break_every": 0}
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

    def __dir__(self):
        return [*self.names(), "names", "patch"]

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

"""Settings are looked at where something is compiled: those without effect are said, and a session has those in force."""

from . import _settings_table
from ._engine_access import _engine
from ._unused_options import tell_unused_settings

_recorded = {}


def compiling(begins):
    """Told by the engine before and after it compiles something."""
    if begins:
        tell_unused_settings(with_compiler=False)  # torch.compile has told those, and knows whether the backend is ours
        record()


def record():
    """Writes settings of PyTorch's modules that are not the default's into the session, and those that are the default's again."""
    global _recorded
    if not _engine.is_recording():
        _recorded = {}
        return
    found = _settings_table.recorded_settings()
    for name in found.keys() | _recorded.keys():
        if found.get(name) != _recorded.get(name):
            _engine.record_fact(name, found.get(name, "default"))
    _recorded = found

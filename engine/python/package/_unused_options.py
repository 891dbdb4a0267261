"""What is accepted for PyTorch's sake and has no effect here: said once, with the reason (_settings_table)."""

import sys
import warnings

from . import _settings_table as settings

_INDUCTOR = "torch._inductor.config"
_CAPTURE = tuple(module for module in settings.MODULES if module != _INDUCTOR)

# Of these the engine tells when it compiles, since the environment alone may say them.
_TOLD_LATER = {"autotune_remote_cache", "bundled_autotune_remote_cache"}

_said = set()


def once(text):
    if text not in _said:
        _said.add(text)
        warnings.warn(text, UserWarning, stacklevel=4)


def _why(row):
    return row.why if row.here == "none" else f"it is always {row.value!r}: {row.why}"


def tell_unused(options, mode_options, mode):
    """One warning for every option of torch.compile that changes nothing."""
    entries = getattr(loaded_config(), "_config", {})
    for name, value in options.items():
        row = settings.row_of(_INDUCTOR, name)
        if settings.changes_nothing(row, value) and not (name in entries and settings.says_default(entries[name], value)):
            once(f"torch.compile option {name!r} has no effect under Fusebox: {_why(row)}")
    for name, value in mode_options.items():
        row = settings.row_of(_INDUCTOR, name)
        if settings.changes_nothing(row, value):
            once(f"torch.compile mode {mode!r}: {name!r} has no effect under Fusebox: {_why(row)}")


def tell_unused_settings(with_compiler):
    """The same for settings of PyTorch's configuration modules. `with_compiler`: torch._inductor's too, which are not asked where a backend in
    Python compiles."""
    for module in settings.MODULES if with_compiler else _CAPTURE:
        for name, value in settings.changed(module).items():
            row = settings.row_of(module, name)
            if name not in _TOLD_LATER and settings.changes_nothing(row, value):
                once(f"{module}.{name} has no effect under Fusebox: {_why(row)}")


def loaded_config():
    return sys.modules.get(_INDUCTOR)

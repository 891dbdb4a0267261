"""Fusebox: a compiler engine for PyTorch programs, and a recorder of what it does.

    import fusebox
    fusebox.install()            # torch.compile, torch.compiler.* and nn.Module.compile now reach this engine

or, without touching torch, `fusebox.compile(f)`. PyTorch is imported with the first use, not with the package.
"""

import importlib

__version__ = "0.1.0"

__all__ = ["install", "uninstall", "compile", "compiler", "explain", "record", "config", "list_options", "list_mode_options",
           "list_backends", "reset", "counters", "mark_dynamic", "maybe_mark_dynamic", "mark_static", "mark_static_address",
           "mark_unbacked", "load_program", "AheadOfTimeError", "GraphBreakError", "RecompileError", "InvalidBackendError", "__version__"]

# Public name -> module of the package that defines it.
_HOMES = {
    "install": "_install", "uninstall": "_install",
    "compile": "_compile", "GraphBreakError": "_engine_access", "RecompileError": "_engine_access",
    "InvalidBackendError": "_options", "list_options": "_options", "list_mode_options": "_options", "list_backends": "_options",
    "explain": "_explain", "record": "_recording", "reset": "_engine_access", "counters": "_engine_access",
    "config": "_config", "load_program": "_program_file", "AheadOfTimeError": "_ahead_of_time",
    "mark_dynamic": "_marks", "maybe_mark_dynamic": "_marks", "mark_static": "_marks", "mark_static_address": "_marks", "mark_unbacked": "_marks",
}


def __getattr__(name):
    if name == "compiler":
        return importlib.import_module(".compiler", __name__)
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'fusebox' has no attribute {name!r}")
    value = getattr(importlib.import_module("." + home, __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(__all__))

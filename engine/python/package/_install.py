"""install() and uninstall(): whether torch.compile means this engine."""

import torch
import torch.compiler

from . import compiler as _compiler
from ._compile import compile as _compile

_saved = {}


def install():
    """Makes torch.compile, torch.compiler.* and (through them) nn.Module.compile reach this engine. Idempotent."""
    if _saved:
        return
    _saved["compile"] = torch.compile
    torch.compile = _compile
    for name in _compiler.REPLACED:
        _saved["compiler." + name] = getattr(torch.compiler, name, None)
        setattr(torch.compiler, name, getattr(_compiler, name))


def uninstall():
    """Gives torch back its own functions. What was compiled stays compiled and keeps working."""
    if not _saved:
        return
    torch.compile = _saved.pop("compile")
    for name in _compiler.REPLACED:
        original = _saved.pop("compiler." + name)
        if original is not None:
            setattr(torch.compiler, name, original)
    _saved.clear()


def is_installed():
    return bool(_saved)

"""install() and uninstall(): whether torch.compile means this engine."""

import importlib.util
import sys

import torch
import torch.compiler

from . import _dynamo_counts, _dynamo_names
from . import compiler as _compiler
from ._compile import compile as _compile

_saved = {}
_ABSENT = object()  # PyTorch has no such name yet
_PRECOMPILE = "torch.compiler.precompile"


def _patch_dynamo(dynamo):
    _saved["restore_config"] = _dynamo_names.put_into(dynamo, _saved)


class _WhenImported:
    """Sees torch._dynamo being imported for the first time: install() does not import it, since most programs do without."""

    name = "torch._dynamo"

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def execute_and_patch(module):
            execute(module)
            if _saved:
                _patch_dynamo(module)

        spec.loader.exec_module = execute_and_patch
        return spec


_waiting = _WhenImported()


def install():
    """Makes torch.compile, torch.compiler.* and (through them) nn.Module.compile reach this engine. Idempotent."""
    if _saved:
        return
    _saved["compile"] = torch.compile
    torch.compile = _compile
    for name in _compiler.REPLACED:
        _saved["compiler." + name] = getattr(torch.compiler, name, _ABSENT)
        setattr(torch.compiler, name, getattr(_compiler, name))
    _saved["module"] = sys.modules.get(_PRECOMPILE, _ABSENT)
    sys.modules[_PRECOMPILE] = _compiler.precompile
    _dynamo_counts.listen(True)
    if _WhenImported.name in sys.modules:
        _patch_dynamo(sys.modules[_WhenImported.name])
    elif _waiting not in sys.meta_path:
        sys.meta_path.insert(0, _waiting)


def uninstall():
    """Gives torch back its own functions. What was compiled stays compiled and keeps working."""
    if not _saved:
        return
    torch.compile = _saved.pop("compile")
    _dynamo_counts.listen(False)
    _saved.pop("restore_config", lambda: None)()
    for name in [name for name in _saved if name.startswith("dynamo.")]:
        setattr(sys.modules[_WhenImported.name], name.partition(".")[2], _saved.pop(name))
    if _waiting in sys.meta_path:
        sys.meta_path.remove(_waiting)
    for name in _compiler.REPLACED:
        original = _saved.pop("compiler." + name)
        if original is _ABSENT:
            delattr(torch.compiler, name)
        else:
            setattr(torch.compiler, name, original)
    if (module := _saved.pop("module")) is _ABSENT:
        del sys.modules[_PRECOMPILE]
    else:
        sys.modules[_PRECOMPILE] = module
    _saved.clear()


def is_installed():
    return bool(_saved)

"""What compiling an nn.Module gives: a module that stands for the original one."""

import contextlib
import functools
import inspect
import sys

import torch

from ._compile import _function_of, compile_as, compiled_with
from ._dynamo_backend import backend_with


def _has_hooks(module):
    return module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks


def _compiled_before(module):
    """The wrappers around a module that is compiled once more, and the module: of two ways to compile it the outer one counts, as with functions."""
    wrappers = []
    while type(module) is OptimizedModule and module._settings is not None:
        wrappers.append(module)
        module = module._orig_mod
    return wrappers, module


def _unless_hooked(wrappers, compiled, module):
    """`compiled`, but where a wrapper has been given hooks of its own, which only its own call runs."""
    def forward(*args, **kwargs):
        return module(*args, **kwargs) if any(map(_has_hooks, wrappers)) else compiled(*args, **kwargs)
    return forward


class OptimizedModule(torch.nn.Module):
    """Calls the wrapped module compiled and answers for all its attributes; setting or deleting one reaches the original.
    Parameters and buffers are the original's, under the name `_orig_mod`, as stock's wrapper has them."""

    _own = {"_orig_mod", "_settings", "_is_full_backward_hook", "forward", "_torchdynamo_orig_callable", "_ready", "__dict__", "_compile_kwargs"}

    def __init__(self, module, settings):
        object.__setattr__(self, "_orig_mod", module)
        object.__setattr__(self, "_ready", False)
        super().__init__()
        object.__setattr__(self, "_ready", True)
        self._orig_mod = module
        self._settings = settings
        self._initialize()

    def _initialize(self):
        module = self._orig_mod
        if self._settings is None:
            self.forward = module.__call__
        else:
            # The module's own hooks run as always; the frame of its forward is what is captured.
            wrappers, innermost = _compiled_before(module)
            compiled = compiled_with(innermost.__call__, self._settings, _function_of(innermost.forward))
            self.forward = _unless_hooked(wrappers, compiled, module) if wrappers else compiled
            with contextlib.suppress(TypeError, ValueError):  # what asks which arguments the model takes
                self.forward.__signature__ = inspect.signature(module.forward)
        self._torchdynamo_orig_callable = module.forward
        if self._settings is not None:
            # What a library that unwraps the module and knows torch.compile alone (Lightning) compiles it with again.
            self._compile_kwargs = {"backend": functools.partial(backend_with, self._settings),
                                    "fullgraph": self._settings["fullgraph"], "dynamic": self._settings["dynamic"]}

    def __call__(self, *args, **kwargs):
        if _has_hooks(self):
            return super().__call__(*args, **kwargs)  # hooks of the wrapper itself
        return self.forward(*args, **kwargs)

    @property
    def __class__(self):
        """torch._dynamo.OptimizedModule to isinstance(), for whoever has imported it."""
        frame = sys.modules.get("torch._dynamo.eval_frame")
        return getattr(frame, "OptimizedModule", OptimizedModule)

    @property
    def dynamo_ctx(self):
        """Compiles a function as this module is compiled: stock's name, which libraries that take the wrapper apart ask for."""
        return functools.partial(compile_as, settings=self._settings, off=self._settings is None)

    def __len__(self):
        return len(self._orig_mod)

    def __bool__(self):
        return bool(self._orig_mod)

    def __getitem__(self, key):
        return self._orig_mod[key]

    def __contains__(self, key):
        return key in self._orig_mod

    def __reduce__(self):
        return (type(self), (self._orig_mod, self._settings))

    @property
    def training(self):
        return self._orig_mod.training

    @training.setter
    def training(self, value):
        if self._ready:
            self._orig_mod.training = value

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value):
        if name in OptimizedModule._own or hasattr(type(self), name):
            return super().__setattr__(name, value)
        return setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        if name in OptimizedModule._own or hasattr(type(self), name):
            return super().__delattr__(name)
        return delattr(self._orig_mod, name)

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(dir(self._orig_mod)))

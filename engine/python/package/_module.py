"""What compiling an nn.Module gives: a module that stands for the original one."""

import contextlib
import functools
import inspect
import sys

import torch

from ._compile import _function_of, compile_as, compiled_with


class OptimizedModule(torch.nn.Module):
    """Calls the wrapped module compiled and answers for all its attributes; setting or deleting one reaches the original.
    Parameters and buffers are the original's, under the name `_orig_mod`, as stock's wrapper has them."""

    _own = {"_orig_mod", "_settings", "forward", "_torchdynamo_orig_callable", "_ready", "__dict__"}

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
            self.forward = compiled_with(module.__call__, self._settings, _function_of(module.forward))
            with contextlib.suppress(TypeError, ValueError):  # what asks which arguments the model takes
                self.forward.__signature__ = inspect.signature(module.forward)
        self._torchdynamo_orig_callable = module.forward

    def __call__(self, *args, **kwargs):
        if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks:
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

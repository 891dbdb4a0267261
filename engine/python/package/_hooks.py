"""Hooks on the gradients of tensors from outside, which are set when the graph has run."""


def register(handle, method, tensor, hook):
    """Makes `handle`, which the program has already, that of the hook."""
    handle.__dict__.update(method(tensor, hook).__dict__)


def remove(handle):
    """RemovableHandle.remove of a hook that is set."""
    for ref in (handle.hooks_dict_ref, *handle.extra_dict_ref):
        hooks = ref()
        if hooks is not None and handle.id in hooks:
            del hooks[handle.id]

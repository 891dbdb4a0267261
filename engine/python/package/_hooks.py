"""Hooks on the gradients of tensors, which are set when the graph has run."""

import torch


def register(handle, method, tensor, hook):
    """Makes `handle`, which the program has already, that of the hook."""
    handle.__dict__.update(method(tensor, hook).__dict__)


def remove(handle):
    """RemovableHandle.remove of a hook that is set."""
    for ref in (handle.hooks_dict_ref, *handle.extra_dict_ref):
        hooks = ref()
        if hooks is not None and handle.id in hooks:
            del hooks[handle.id]


class _Node:
    """Where one tensor passes: what a hook on the node of its history hears, one on the tensor hears, too."""

    def __init__(self, tensor):
        self.tensor = tensor

    def register_hook(self, hook):
        def of_tensor(gradient):
            made = hook((gradient,), (gradient,))
            if made is None:
                return None
            return torch.zeros_like(gradient) if made[0] is None else made[0]

        return self.tensor.register_hook(of_tensor)


def on_tensors(_, set_hook, args):
    """BackwardHook._apply_on_tensors, for not more than one tensor."""
    places = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor)]
    if not torch.is_grad_enabled() or not any(args[i].requires_grad for i in places):
        return args, None
    if len(places) > 1:
        torch._dynamo.graph_break(msg="hooks on the gradients of a module with several tensors are set")
    behind = args[places[0]].clone()
    set_hook(_Node(behind))
    given = list(args)
    given[places[0]] = behind.clone()  # whose own hooks come before what the node hears of
    return tuple(given) if type(args) is tuple else type(args)(*given), places

"""Tensors without data of their own that a compiled region made, as it made them."""

import torch


def aliased(base, *args, **kwargs):
    """A wrapper over the storage of another, as views of wrappers have it: what `_make_wrapper_subclass` gives, with `base`'s storage."""
    made = torch.Tensor._make_wrapper_subclass(*args, **kwargs)
    torch._functionalize_unsafe_set(made, base)
    return made

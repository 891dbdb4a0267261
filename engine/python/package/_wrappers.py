"""Tensors without data of their own: those that a compiled region made, as it made them, and those that stand for others while capturing."""

import torch


def aliased(base, *args, **kwargs):
    """A wrapper over the storage of another, as views of wrappers have it: what `_make_wrapper_subclass` gives, with `base`'s storage."""
    made = torch.Tensor._make_wrapper_subclass(*args, **kwargs)
    torch._functionalize_unsafe_set(made, base)
    return made


def of_sizes(wrapper, sizes, strides, offset):
    """A wrapper of the class, type and device of another, of other sizes."""
    return torch.Tensor._make_wrapper_subclass(
        type(wrapper), sizes, strides=strides, storage_offset=offset, dtype=wrapper.dtype, device=wrapper.device, layout=wrapper.layout)

"""Marks on tensors that say which of their sizes vary: PyTorch's names, and its notes on the tensor, so that either's are understood."""

from typing import NamedTuple, Optional

import torch


class _DimRange(NamedTuple):
    dim: int
    min: Optional[int]
    max: Optional[int]


def _note(t, name, index):
    """Adds dimensions to one of the sets that PyTorch keeps on a tensor."""
    noted = t.__dict__.setdefault(name, set())
    for dim in _dims(t, index):
        noted.add(dim)


def _dims(t, index):
    if not isinstance(t, torch.Tensor):
        raise TypeError(f"sizes of a tensor can be marked, not of a {type(t).__name__}")
    if isinstance(index, int):
        index = [index]
    if not isinstance(index, (list, tuple)) or not all(isinstance(dim, int) for dim in index):
        raise TypeError("a dimension is an int, several are a list or tuple of them")
    for dim in index:
        if not 0 <= dim < t.dim():
            raise IndexError(f"dimension {dim} of a tensor with {t.dim()} dimensions")
    return index


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):  # noqa: A002
    """These sizes vary (between `min` and `max`): compiled code is for any, and it is an error where the program needs one of them
    to be a constant. `hint_override` and `specialize_on` are accepted for PyTorch's sake."""
    _note(t, "_dynamo_dynamic_indices", index)
    ranges = t.__dict__.setdefault("_dynamo_dynamic_range", set())
    for dim in _dims(t, index):
        ranges.difference_update([r for r in ranges if r.dim == dim])
        ranges.add(_DimRange(dim, min, max))


def maybe_mark_dynamic(t, index):
    """The same, where being a constant is no error."""
    _note(t, "_dynamo_weak_dynamic_indices", index)


def mark_unbacked(t, index, hint_override=None, strict=False, specialize_on=None, shape_id=None):
    """These sizes vary, and nothing is concluded from equal ones. `strict`: being a constant is an error."""
    _note(t, "_dynamo_strict_unbacked_indices" if strict else "_dynamo_unbacked_indices", index)


def mark_static(t, index=None):
    """These sizes (None: all) stay constants of compiled code, whatever is found between calls."""
    if isinstance(t, type):
        t._dynamo_marked_static = True
        return
    _note(t, "_dynamo_static_indices", list(range(t.dim())) if index is None else index)


def mark_static_address(t, guard=False):
    """The tensor stays at its address. CUDA graphs find that out by themselves, so it changes nothing here."""
    if not isinstance(t, torch.Tensor):
        raise TypeError(f"mark_static_address expects a tensor, not a {type(t).__name__}")
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"

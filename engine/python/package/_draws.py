"""What is asked of a program's own torch.Generator before a graph runs."""

import torch


def filled(method, sizes, strides, dtype, device, arguments, generator):
    """What a method of a tensor of that layout that draws numbers in place leaves in it."""
    return getattr(torch.empty_strided(sizes, strides, dtype=dtype, device=device), method)(*arguments, generator=generator)

"""Inputs for a saved graph: generated in the recorded shapes and types, or taken from a file."""

import math

import torch

from ._index_ranges import IndexRanges
from ._saved_graph import short_name

# Inputs that make no sense below zero: variances, and what roots and logarithms are taken of.
_POSITIVE = {("native_batch_norm", 4), ("_native_batch_norm_legit_no_training", 4), ("batch_norm", 4), ("cudnn_batch_norm", 4),
             ("_batch_norm_no_update", 4), ("native_batch_norm_backward", 4), ("native_batch_norm_backward", 6), ("sqrt", 0),
             ("rsqrt", 0), ("log", 0), ("log2", 0), ("log10", 0), ("native_layer_norm_backward", 4), ("native_group_norm_backward", 3)}
_DEFAULT_RANGE = 8


def _is_positive(program, index, users):
    return any(node["kind"] == "call" and (short_name(node["op"]), position) in _POSITIVE
               for node, position in program.reaches(index, users))


def _elements(program, index, count, dtype, generator, users, ranges):
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).bool()
    if not (dtype.is_floating_point or dtype.is_complex):
        low, high = _drawn_between(*ranges.of((index, 0)), dtype)
        return torch.randint(low, high + 1, (count,), generator=generator).to(dtype)
    values = torch.randn(count, generator=generator, dtype=torch.complex64 if dtype.is_complex else torch.float32)
    out = program.nodes[index]["out"][0]
    if out.get("grad") and len(out["sizes"]) > 1:  # a weight: activations keep their scale through layers
        rows = max(1, program.expression(out["sizes"][0]))
        values /= max(1.0, count / rows) ** 0.5
    if _is_positive(program, index, users):
        values = values.abs() + 0.1
    return values.to(dtype)


def _drawn_between(low, high, dtype):
    """Where integers are drawn that may be from `low` to `high`: from 0 up where that is allowed, and few where nothing says how many."""
    low = max(low, 0) if high >= 0 else low if low > -math.inf else high
    high = low + _DEFAULT_RANGE - 1 if high == math.inf else max(low, high)
    most = torch.iinfo(dtype).max
    return min(int(low), most), min(int(high), most)


def tensor_like(program, index, generator, users, ranges):
    """A random tensor of the recorded sizes, strides, offset, dtype and device."""
    meta = program.meta(index)
    if meta is None:
        return None
    sizes, strides, offset, dtype, device = meta
    reach = offset + sum((n - 1) * s for n, s in zip(sizes, strides)) + 1 if all(sizes) else offset
    base = _elements(program, index, max(reach, 0), dtype, generator, users, ranges).to(device)
    return base.as_strided(sizes, strides, offset)


def random_inputs(program, seed=0):
    generator = torch.Generator().manual_seed(seed)
    users = program.users()
    ranges = IndexRanges(program, users)
    return with_numbers(program, [tensor_like(program, i, generator, users, ranges) for i in program.inputs])


def with_numbers(program, inputs):
    """`inputs` with the floats that the program has values for."""
    names = [program.nodes[i]["name"] for i in program.inputs]
    return [torch.full_like(t, program.numbers[name]) if name in program.numbers else t for name, t in zip(names, inputs)]


def random_constants(program, kept, seed=0):
    """The captured constants: kept data, or where a session does not hold them random values. Returns (tensors, how many were made)."""
    generator = torch.Generator().manual_seed(seed + 1)
    users = program.users()
    ranges = IndexRanges(program, users)
    tensors, made = list(kept), 0
    for i, node in enumerate(program.nodes):
        if node["kind"] == "constant" and tensors[node["index"]] is None:
            tensors[node["index"]] = tensor_like(program, i, generator, users, ranges)
            made += 1
    return [t if t is not None else torch.empty(0) for t in tensors], made


def saved_inputs(program, path):
    """Inputs from a file that torch.save wrote: a list in order, or a dictionary by name. Nothing but tensors is read."""
    try:
        saved = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:
        raise ValueError(f"{path}: cannot be read as tensors ({str(error).splitlines()[0]}); save a list or dict of tensors with "
                         "torch.save") from None
    if isinstance(saved, torch.Tensor):
        saved = [saved]
    names = [program.nodes[i]["name"] for i in program.inputs]
    if isinstance(saved, dict):
        missing = [n for n in names if n not in saved]
        if missing:
            raise ValueError(f"{path}: has no input named {', '.join(missing[:5])}; the graph's inputs are {', '.join(names[:20])}")
        saved = [saved[n] for n in names]
    if len(saved) != len(names):
        raise ValueError(f"{path}: holds {len(saved)} tensors, but the graph has {len(names)} inputs ({', '.join(names[:20])})")
    return with_numbers(program, [_fitted(program, i, t, name, path) for i, t, name in zip(program.inputs, saved, names)])


def _fitted(program, index, tensor, name, path):
    meta = program.meta(index)
    if meta is None:
        return None
    sizes, strides, _, dtype, device = meta
    if not isinstance(tensor, torch.Tensor) or list(tensor.shape) != sizes or tensor.dtype != dtype:
        found = f"{tensor.dtype}{list(tensor.shape)}" if isinstance(tensor, torch.Tensor) else type(tensor).__name__
        raise ValueError(f"{path}: input {name} is {found}, but the graph was compiled for {dtype}{sizes}")
    if list(tensor.stride()) == strides and tensor.storage_offset() == 0:
        return tensor.to(device)
    made = torch.empty_strided(sizes, strides, dtype=dtype)
    return made.copy_(tensor).to(device)

"""Every operator that PyTorch describes for its own tests, called as one of its samples is, on tensors of the graph."""

import functools
import inspect
import random

import numpy
import torch

from .table import operator

SAMPLES = 24      # of an operator and type
LITERAL = 48      # elements of an index or mask that is written into the program
TYPES = [torch.float32] * 4 + [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.bool, torch.complex64]
# Nothing follows from a small error in what they read, but a step.
STEPS = {"floor", "ceil", "round", "trunc", "frac", "sign", "sgn", "fmod", "remainder", "heaviside", "floor_divide", "div", "signbit",
         "nn.functional.hardshrink", "nn.functional.threshold", "fake_quantize_per_tensor_affine", "bucketize", "searchsorted", "histc"}
UNDEFINED = ("empty", "resize", "new_empty", "svd", "eig", "pca_lowrank", "geqrf", "jiterator", "set_", "linalg.qr", "qr", "lobpcg",
             "item", "tolist", "sparse", "to_sparse", "allclose", "equal", "nonzero_static", "torch.ops", "ormqr", "householder")


@functools.cache
def descriptions():
    from torch.testing._internal.common_methods_invocations import op_db
    return [op for op in op_db if not any(op.name.startswith(p) or op.name.startswith("linalg." + p) for p in UNDEFINED) and path_of(op)]


def path_of(op):
    """How a program writes the function; None where it is one of the tests alone."""
    owner = torch
    for part in op.name.split("."):
        owner = getattr(owner, part, None)
    if callable(owner) and not inspect.isclass(owner):
        return "torch." + op.name
    return "torch.Tensor." + op.name if callable(getattr(torch.Tensor, op.name, None)) else None


def samples_of(op, dtype):
    if (op.full_name, dtype) not in _samples:
        _samples[op.full_name, dtype] = fresh_samples(op, dtype)
    return _samples[op.full_name, dtype]


def fresh_samples(op, dtype):
    """The same in every process, whatever was asked for before."""
    state = torch.get_rng_state(), random.getstate(), numpy.random.get_state()
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)
    made = []
    try:
        for sample in op.sample_inputs("cpu", dtype):
            made.append(sample)
            if len(made) == SAMPLES:
                break
    except Exception:
        pass
    torch.set_rng_state(state[0])
    random.setstate(state[1])
    numpy.random.set_state(state[2])
    return made


_samples = {}


class Unwritable(Exception):
    pass


def written(g, value, taken):
    """An argument as text: tensors come from the graph, or are new ones in some layout."""
    if isinstance(value, torch.Tensor):
        return tensor(g, value, taken)
    if isinstance(value, (list, tuple)):
        inner = [written(g, v, taken) for v in value]
        return f"[{', '.join(inner)}]" if isinstance(value, list) else f"({', '.join(inner)}{',' if inner else ''})"
    if value is None or isinstance(value, (bool, int, float, complex, str, torch.dtype)):
        text = repr(value)
        return f"float({text!r})" if text in ("inf", "-inf", "nan") else text
    raise Unwritable


def tensor(g, value, taken):
    if value.layout != torch.strided or value.is_quantized or value.numel() > 5000:
        raise Unwritable
    device = f", device={g.device!r}" if g.device != "cpu" else ""
    dtype = str(value.dtype)[6:]
    if not value.is_floating_point() and value.numel() <= LITERAL:
        shape = "" if value.numel() else f".reshape({tuple(value.shape)})"  # lu_unpack ends the process where pivots have too few dimensions
        return f"torch.tensor({value.tolist()!r}, dtype=torch.{dtype}{device}){shape}"
    node = g.any(lambda t: t.dtype == value.dtype and t.numel() > 0 and t.dim() > 0, is_exact=taken["exact"])
    if node is None or g.chance(0.25):
        return g.new_input(list(value.shape), dtype)
    taken["nodes"].append(node)
    if node.value.shape == value.shape:
        return node.name
    n = value.numel()
    times = -(-n // node.value.numel())
    whole = f"{node.name}.flatten()" if times == 1 else f"{node.name}.flatten().repeat({times})"
    return f"{whole}[:{n}].reshape({tuple(value.shape)})"


@operator(4)
def described(g):
    op = g.pick(descriptions())
    dtype = g.pick([t for t in TYPES if t in op.dtypes] or [None])
    samples = samples_of(op, dtype) if dtype else []
    if not samples:
        return None
    sample = g.pick(samples)
    taken = {"exact": op.name in STEPS or g.chance(0.5), "nodes": []}
    try:
        parts = [written(g, v, taken) for v in (sample.input, *sample.args)]
        parts += [f"{k}={written(g, v, taken)}" for k, v in sample.kwargs.items()]
    except Unwritable:
        return None
    text = f"{path_of(op)}({', '.join(parts)})"
    if g.chance(0.5) and isinstance(sample.input, torch.Tensor) and parts and callable(getattr(torch.Tensor, op.name, None)):
        text = f"({parts[0]}).{op.name}({', '.join(parts[1:])})"
    return text, False

"""Nested tensors of the jagged layout: batches of sequences of any length, given, made, computed with and differentiated."""

import torch
from torch import nn
from torch.nn import functional as F
from . import script


def jagged(lengths, width, seed=0, grad=False):
    values = torch.randn(sum(lengths), width, generator=torch.Generator().manual_seed(seed + sum(lengths))).requires_grad_(grad)
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return torch.nested.nested_tensor_from_jagged(values, offsets), values, offsets


def plain(x):
    """What can be compared: sizes without the numbers of ragged ones, values and offsets."""
    if not isinstance(x, torch.Tensor) or not x.is_nested:
        return x
    return [s if isinstance(s, int) else "ragged" for s in x.shape], x.values(), x.offsets(), x.requires_grad, x.is_leaf


BATCHES = ([2, 3, 4], [3, 1, 5], [1, 1, 6, 2], [2, 3, 4], [4, 1])


@script
def sequences_through_layers(compile):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 6))
    run, seen = compile(model), []
    for lengths in BATCHES:
        nested, values, _ = jagged(lengths, 6, grad=True)
        out = run(nested)
        model.zero_grad()
        (out.values() ** 2).sum().backward()
        seen += [plain(out), values.grad, *(p.grad.clone() for p in model.parameters())]
    return seen


@script
def made_and_taken_apart(compile):
    def encode(values, lengths):
        nested = torch.nested.nested_tensor_from_jagged(values * 2, lengths=lengths)
        heads = nested.unflatten(-1, [2, 3]).transpose(1, 2)
        padded = torch.nested.to_padded_tensor(nested, -1.0)
        return nested.sin(), heads * 2, padded, nested.sum(1), nested.size(0), nested.dim(), nested.values().mean()

    run, seen = compile(encode), []
    for lengths in BATCHES:
        values = torch.randn(sum(lengths), 6, generator=torch.Generator().manual_seed(sum(lengths)), requires_grad=len(lengths) == 3)
        got = run(values, torch.tensor(lengths))
        if values.requires_grad:
            (got[0].values().sum() + got[1].values().sum() + (got[2] ** 2).sum()).backward()
        seen += [*map(plain, got), values.grad]
    return seen


@script
def raggedness_decides(compile):
    def join(a, b):
        return a + b if a.shape == b.shape else (a * 2, b * 3)

    run, seen = compile(join), []
    for lengths in BATCHES:
        a, _, offsets = jagged(lengths, 4)
        same = torch.nested.nested_tensor_from_jagged(torch.randn(sum(lengths), 4, generator=torch.Generator().manual_seed(7)), offsets)
        other, _, _ = jagged(lengths, 4, seed=5)
        seen.append(plain(run(a, same)))
        seen += map(plain, run(a, other))
        seen.append(plain(run(a, a)))
    return seen


@script
def a_nested_tensor_with_and_without_a_history(compile):
    def step(x):
        y = x.cos() * x
        return y if x.requires_grad else y.detach() * 3

    run, seen = compile(step), []
    for i, lengths in enumerate(BATCHES * 2):
        nested, values, _ = jagged(lengths, 5, grad=i % 3 != 0)
        with torch.set_grad_enabled(i % 4 != 3):
            out = run(nested)
        if out.requires_grad:
            out.values().cos().sum().backward()
        seen += [plain(out), values.grad]
    # Made without a history of values that have one.
    values = torch.randn(6, 5, generator=torch.Generator().manual_seed(1), requires_grad=True)
    with torch.no_grad():
        nested = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 2, 6]))
    return seen + [plain(run(nested)), plain(run(nested.detach()))]


@script
def sizes_and_parts_leave_a_region(compile):
    class Batch:
        def __init__(self, nested):
            self.nested, self.shape = nested, nested.shape

    def pack(a, b, offsets):
        x = torch.nested.nested_tensor_from_jagged(a, offsets)
        y = torch.nested.nested_tensor_from_jagged(b, offsets.clone())
        return Batch(x * 2), {"y": y}, x.shape == y.shape, x.offsets() is offsets

    run, seen = compile(pack), []
    for lengths in BATCHES:
        _, a, offsets = jagged(lengths, 3)
        batch, named, same, kept = run(a, a + 1, offsets)
        back = torch.nested.nested_tensor_from_jagged(a, offsets)
        seen += [plain(batch.nested), plain(named["y"]), same, kept, batch.shape == batch.nested.shape, batch.shape == back.shape,
                 plain(batch.nested + back)]
    return seen


@script
def lengths_are_known_beforehand(compile):
    def scaled(x):
        return x * x._get_max_seqlen() + x._get_min_seqlen(), torch.where(x > 0, x, -x), F.dropout(x, 0.0)

    run, seen = compile(scaled), []
    for lengths in BATCHES:
        nested, _, _ = jagged(lengths, 4)
        seen += map(plain, run(nested))
        seen += map(plain, run(torch.nested.as_nested_tensor([torch.ones(n, 2) * n for n in lengths], layout=torch.jagged)))
    return seen

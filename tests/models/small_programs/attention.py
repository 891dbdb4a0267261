"""Attention whose scores and masks are Python functions (flex_attention)."""

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from . import script


def heads(*shape, dtype=torch.float32):
    return [torch.randn(*(shape or (2, 4, 128, 16)), dtype=dtype) for _ in range(3)]


@script
def score_functions(compile):
    slopes, bias = torch.tensor([0.5, 0.25, 0.1, 0.7]), torch.randn(2, 4, 128, 128)
    functions = [
        None,
        lambda score, b, h, q, kv: score + slopes[h] * (kv - q),
        lambda score, b, h, q, kv: score + bias[b, h, q, kv],
        lambda score, b, h, q, kv: torch.tanh(score / 20) * 20,
        lambda score, b, h, q, kv: torch.where(q >= kv, score, -float("inf")),
        lambda score, b, h, q, kv: torch.where((q - kv).abs() < 30, score * (h + 1), -float("inf")),
    ]
    query, key, value = heads()
    return [compile(lambda q, k, v: flex_attention(q, k, v, score_mod=f))(query, key, value) for f in functions]


@script
def block_masks(compile):
    documents = torch.arange(128) // 50
    masks = [
        lambda b, h, q, kv: q >= kv,
        lambda b, h, q, kv: (documents[q] == documents[kv]) & (q >= kv),
        lambda b, h, q, kv: (q > 5) & (q >= kv),  # rows that see nothing
        lambda b, h, q, kv: (q >= kv) & (q - kv < 20 * (h + 1)),
    ]
    query, key, value = heads()
    out = []
    for mask in masks:
        blocks = create_block_mask(mask, None, 4, 128, 128, device="cpu")
        out.append(compile(lambda q, k, v: flex_attention(q, k, v, block_mask=blocks, return_lse=True))(query, key, value))
    return out


@script
def layouts_and_types(compile):
    @compile
    def attend(q, k, v):
        return flex_attention(q, k, v, score_mod=lambda score, b, h, m, n: score - n)

    @compile
    def shared(q, k, v):
        return flex_attention(q, k, v, enable_gqa=True, scale=0.3)

    query, key, value = heads()
    swapped = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in (query, key, value)]
    low = [t.bfloat16() for t in (query, key, value)]
    out = [attend(query, key, value), attend(*swapped), attend(query[:, :, :1], key, value), attend(*low), shared(query, key[:, :2], value[:, :2])]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out.append(attend(query, key, value))
    return out, [t.stride() for t in out]

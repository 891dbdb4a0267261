"""Views, reshapes, concatenation, padding, indexing, gathering and scattering."""

import math

import torch

from .table import axis_of, operator

VIEWS = ["{a}.t()", "{a}.transpose(0, -1)", "{a}.flatten()", "{a}.unsqueeze({e})", "{a}.squeeze()", "{a}.view(-1)",
         "{a}.reshape(-1)", "{a}[0]", "{a}[1:]", "{a}[..., ::2]", "{a}[None]", "{a}[-1]", "{a}.narrow({d}, 0, 1)",
         "{a}.select({d}, 0)", "{a}.diagonal()", "{a}.unfold({d}, 2, 1)", "{a}.movedim(0, -1)", "{a}.split(2, {d})[0]",
         "{a}.chunk(2, {d})[-1]", "{a}.unbind({d})[0]", "{a}.T", "{a}.mT", "{a}.permute(*range({a}.dim() - 1, -1, -1))",
         "{a}[..., 1:-1]", "{a}.expand(3, *{a}.shape)", "{a}.swapaxes(0, -1)", "{a}.detach()", "{a}.view({a}.shape)",
         "{a}.reshape({a}.shape[::-1])", "{a}.unflatten({d}, (-1, 1))",
         "{a}.tensor_split(2)[1]", "{a}[..., None].expand(*{a}.shape, 2)", "{a}.ravel()", "{a}[:, None]", "{a}[2:, :1]",
         "{a}.squeeze({d})", "{a}.broadcast_to((2, *{a}.shape))", "{a}.contiguous(memory_format=torch.channels_last)",
         "{a}.view(torch.int32)", "{a}.swapdims(0, 1).contiguous()"]
COPIES = ["torch.cat([{a}, {a}], {d})", "torch.stack([{a}, {a}], {d})", "{a}.flip({d})", "{a}.roll(1, {d})",
          "{a}.repeat(2, *[1] * max(0, {a}.dim() - 1))", "{a}.tile((2,))", "{a}.repeat_interleave(2, {d})",
          "{a}.tril()", "{a}.triu(1)", "F.pad({a}, (1, 2))", "F.pad({a}, (1, 0, 0, 2), value=3.0)",
          "F.pad({a}, (-1, 1))", "F.pad({a}, (1, 1), mode='reflect')", "F.pad({a}, (1, 1), mode='replicate')",
          "F.pad({a}, (1, 1), mode='circular')", "torch.rot90({a})", "torch.cat([{a}.flatten(), {a}.flatten()[:2]])",
          "torch.hstack([{a}, {a}])", "torch.block_diag({a}, {a})", "torch.diag_embed({a})",
          "torch.constant_pad_nd({a}, (0, 1), 2.0)", "torch.cat([{a}[:0], {a}])", "torch.vstack([{a}, {a} * 2])",
          "{a}.fliplr()", "torch.meshgrid({a}.flatten(), {a}.flatten()[:3], indexing='ij')[1]",
          "torch.cat([{a}, {a}.double()], {d})", "torch.cat([{a}[..., :1], {a}], -1)",
          "{a}.clone(memory_format=torch.contiguous_format)", "torch.dstack([{a}, {a}])", "torch.atleast_2d({a})",
          "torch.tril_indices(3, 3, device={a}.device)", "torch.cartesian_prod({a}.flatten()[:3], {a}.flatten()[:2])",
          "F.pixel_shuffle({a}, 1)", "{a}.expand(2, *{a}.shape).reshape(-1)"]
INDEXED = ["{a}[{i}]", "{a}.index_select({d}, {i})", "{a}[..., {i}]", "{a}[{i}, 0]", "{a}[:, {i}]",
           "{a}[{i}[:, None], {i}]", "{a}.take({i})", "F.embedding({i}, {a})", "{a}[{i}].sum(0)",
           "{a}.index_fill({d}, {i}, 2)", "{a}.index_add({d}, {i}, {a}.index_select({d}, {i}))",
           "{a}.index_copy({d}, {u}, {a}.index_select({d}, {u}) * 2)", "{a}.index_put(({i},), {a}[0], accumulate=True)",
           "{a}.index_put(({i},), torch.zeros((), dtype={a}.dtype, device={a}.device))", "F.one_hot({i}, 9)",
           "{a}.index_reduce({d}, {i}, {a}.index_select({d}, {i}), 'amax')", "{a}[{i} > 0]", "{a}[..., {i}, :]",
           "{a}[[0, -1]]", "{a}[{i}, ..., 0]", "F.embedding_bag({i}[None], {a})", "{a}[:, {i}, None]",
           "torch.ops.aten._unsafe_index({a}, [{i}])"]
ALONG = ["{a}.gather({d}, {i})", "torch.take_along_dim({a}, {i}, {d})", "{a}.scatter({d}, {i}, 2.0)",
         "{a}.scatter_add({d}, {i}, {a})", "{a}.scatter({d}, {i}, {a} * 2)",
         "{a}.scatter_reduce({d}, {i}, {a}, 'amax')", "{a}.scatter_reduce({d}, {i}, {a}, 'sum', include_self=False)",
         "{a}.scatter_reduce({d}, {i}, {a}, 'mean')", "{a}.scatter_reduce({d}, {i}, {a}, 'prod')"]
MASKED = ["{a}.masked_fill({m}, 2)", "torch.where({m}, {a}, 0)", "{a}[{m}]", "{a}.masked_select({m})",
          "{a}.masked_scatter({m}, {a} * 2)", "torch.where({m}, {a}, {a} * 2)", "{a} * {m}", "{m}.nonzero()",
          "torch.where({m})[0]", "{a}.masked_fill({m}, float('-inf')).softmax(-1)",
          "{a}.index_put(({m},), torch.ones((), dtype={a}.dtype, device={a}.device))", "torch.argwhere({m})"]
SLICED = ["torch.select_scatter({a}, {a}[0] * 2, 0, 0)", "torch.slice_scatter({a}, {a}[:1] + 1, 0, 0, 1)",
          "torch.diagonal_scatter({a}, {a}.diagonal() * 2)", "torch.slice_scatter({a}, {a}[1:], 0, 0, -1)",
          "torch.select_scatter({a}, {a}[..., 0], -1, -1)"]


@operator(5)
def view(g):
    a = g.any()
    if a is None:
        return None
    text = g.pick(VIEWS)
    if "int32" in text and not a.is_exact:
        return None  # bits of a rounded number are compared as integers
    return (text.format(a=a.name, d=axis_of(g, a.value), e=g.int(-a.value.dim() - 1, a.value.dim())), a.is_exact and not g.has_specials)


@operator(0.3)
def restrided(g):
    a = g.any(lambda t: t.numel() > 1)  # beyond its elements a result lies in memory that nobody wrote
    return a and (f"{a.name}.as_strided((2,), (1,))", a.is_exact and not g.has_specials)


@operator(3)
def copy(g):
    a = g.any()
    return a and (g.pick(COPIES).format(a=a.name, d=axis_of(g, a.value)), a.is_exact)


@operator(1)
def other_shape(g):
    """The same elements in a shape of other factors."""
    a = g.any(lambda t: t.numel() > 1)
    if a is None:
        return None
    total, shape = a.value.numel(), []
    while total > 1 and len(shape) < 4:
        factors = [k for k in (2, 3, 5, 7, 11, 13, total) if total % k == 0]
        shape.append(g.pick(factors))
        total //= shape[-1]
    shape.append(total)
    g.rng.shuffle(shape)
    return (f"{a.name}.{g.pick(['reshape', 'view'])}({', '.join(map(str, shape))})",
            a.is_exact) if math.prod(shape) == a.value.numel() else None


def different(g, n):
    device = f", device={g.device!r}" if g.device != "cpu" else ""
    return f"torch.tensor({g.rng.sample(range(n), g.int(1, n))}{device})"


def indices(g, low, high):
    count = g.pick([1, 2, 3, 5, 33] if high else [0])
    device = f", device={g.device!r}" if g.device != "cpu" else ""
    return f"torch.tensor({[g.int(low, high) for _ in range(count)]}{device})"


@operator(2.5)
def indexed(g):
    a = g.any(lambda t: t.dim() > 0 and t.shape[0] > 0)
    if a is None:
        return None
    n = min(a.value.shape)
    if n == 0:
        return None
    text = g.pick(INDEXED)
    negative = g.chance(0.25) and "." not in text
    i, u = indices(g, -n if negative else 0, n - 1), different(g, n)
    return text.format(a=a.name, d=axis_of(g, a.value), i=i, u=u), a.is_exact and "add" not in text


@operator(1.5)
def along(g):
    a = g.any(lambda t: t.dim() > 0 and t.numel() > 0 and not t.is_complex())
    if a is None:
        return None
    d = axis_of(g, a.value)
    device = f", device={g.device!r}" if g.device != "cpu" else ""
    i = f"(torch.arange({a.value.numel()}{device}) * {g.int(1, 7)} % {a.value.shape[d]}).reshape({tuple(a.value.shape)})"
    text = g.pick(ALONG)
    if "scatter(" in text and "2.0" not in text:
        # Every place once: which of two values stays is not defined.
        shape = [a.value.shape[d] if k == d % a.value.dim() else 1 for k in range(a.value.dim())]
        i = f"torch.arange({a.value.shape[d]}{device}).flip(0).reshape({shape}).expand({tuple(a.value.shape)})"
    return text.format(a=a.name, d=d, i=i), a.is_exact and "scatter_" not in text


@operator(1.5)
def masked(g):
    a = g.any(lambda t: not t.is_complex())
    m = g.any(lambda t: t.dtype == torch.bool and (a is None or t.shape == a.value.shape))
    if a is None:
        return None
    mask = m.name if m else f"({a.name} > 0)" if a.is_exact else f"torch.zeros_like({a.name}, dtype=torch.bool)"
    return g.pick(MASKED).format(a=a.name, m=mask), a.is_exact


@operator(0.7)
def sliced(g):
    a = g.any(lambda t: t.dim() > 0)
    return a and (g.pick(SLICED).format(a=a.name), a.is_exact)

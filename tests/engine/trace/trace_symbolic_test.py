"""Symbolic traces against concrete ones: every operator's sizes, strides, offset and integer arguments, forward and backward, evaluated at other
sizes than those of the capture, are what a trace made at those sizes has."""
import argparse
import sys
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/aot")
import fusebox_trace_probe as probe  # noqa: E402
from aot_compare import tensors_of  # noqa: E402

warnings.filterwarnings("ignore")
HINTS = {"b": 5, "s": 7, "t": 12}
OTHERS = [{"b": 9, "s": 11, "t": 24}, {"b": 6, "s": 13, "t": 36}, {"b": 3, "s": 4, "t": 8}]


def make(shape, values, grad):
    t = torch.rand([values.get(n, n) for n in shape]) + 0.5
    return t.requires_grad_() if grad else t


def geometry(outputs):
    """What matters of results: strides of dimensions of size 1 do not."""
    made = []
    for o in outputs:
        if isinstance(o, int):
            made.append(o)
            continue
        sizes, strides, offset = o
        made.append((sizes, tuple(s for n, s in zip(sizes, strides) if n > 1), offset))
    return made




OF_NUMBERS = {"aten::" + op for op in ("scalar_tensor", "div.Tensor", "add.Tensor", "sub.Tensor", "mul.Tensor", "pow.Tensor_Tensor", "neg", "sqrt", "_to_copy")}


def aligned(at, there):
    """The symbolic trace's nodes without those that compute a float of sizes when the graph runs, where the other one has a number."""
    made, i = [], 0
    for node in there:
        while i < len(at) and (at[i][0], at[i][1]) != (node[0], node[1]) and at[i][0] in OF_NUMBERS and at[i][1] == [((), (), 0)]:
            i += 1
        if i < len(at):
            made.append(at[i])
        i += 1
    return made + at[i:]


def plain(args):
    """Arguments that say something of sizes: integers and lists of them."""
    return [plain(a) if isinstance(a, list) else a if isinstance(a, int) else None for a in args]


def compare(name, symbolic, concrete, values):
    """Problems of a symbolic trace at `values`, as text."""
    there = concrete.nodes()
    at = aligned(symbolic.nodes(values), there)
    ops, theirs = [n[0] for n in at], [n[0] for n in there]
    if ops != theirs:
        i = next((i for i, (a, b) in enumerate(zip(ops, theirs)) if a != b), min(len(ops), len(theirs)))
        return [f"{name}: operator {i} is {ops[i:i + 3]} instead of {theirs[i:i + 3]}"]
    wrong = []
    for i, (a, b) in enumerate(zip(at, there)):
        if geometry(a[1]) != geometry(b[1]):
            wrong.append(f"{name}: {a[0]} ({i}) gives {a[1]} instead of {b[1]}")
        elif plain(a[2]) != plain(b[2]):
            wrong.append(f"{name}: {a[0]} ({i}) is called with {a[2]} instead of {b[2]}")
    return wrong


def gradients(outputs, inputs):
    roots = [o.float().sum() for o in outputs if o.requires_grad]
    wanted = [t for t in inputs if t.requires_grad]
    return torch.autograd.grad(sum(roots), wanted, allow_unused=True) if roots and wanted else ()


def execute(name, symbolic, flat, args, values):
    """The symbolic graph run by the interpreter on tensors of other sizes beside eager."""
    ours = symbolic.call([*args, *symbolic.inputs[len(args):]], values)
    theirs = flat(*args)
    wrong = []
    for i, (a, b) in enumerate(zip(ours, theirs)):
        strides = [(x, y) for x, y, n in zip(a.stride(), b.stride(), b.shape) if n > 1 and x != y]
        if a.shape != b.shape or strides or not torch.allclose(a.float(), b.float(), 1e-4, 1e-4, equal_nan=True):
            wrong.append(f"{name}: output {i} is another: {a.shape, a.stride()} and {b.shape, b.stride()}")
    for i, (a, b) in enumerate(zip(gradients(ours, args), gradients(theirs, args))):
        if (a is None) != (b is None) or (a is not None and (a.shape != b.shape or not torch.allclose(a, b, 1e-3, 1e-3, equal_nan=True))):
            wrong.append(f"{name}: gradient {i} is another")
    return wrong


def check(name, fn, shapes, grad=True):
    """Returns (problems, specialisations, whether other sizes were compared)."""
    def arguments(values):
        return [make(s, values, grad) if not isinstance(s, dict) else s["make"](values) for s in shapes]

    def flat(*a):
        return tensors_of(fn(*a))

    args = arguments(HINTS)
    dynamic = [[d for d, n in enumerate((s["shape"] if isinstance(s, dict) else s)) if isinstance(n, str)] for s in shapes]
    symbols = []
    for s, t in zip(shapes, args):
        for n in (s["shape"] if isinstance(s, dict) else s):
            if isinstance(n, str) and n not in symbols:
                symbols.append(n)
    symbolic = probe.trace(flat, args, dynamic)
    assert symbolic.hints == [HINTS[n] for n in symbols], (symbolic.hints, symbols)
    wrong = compare(name + " at capture", symbolic, probe.trace(flat, arguments(HINTS)), symbolic.hints)
    compared = False
    for other in OTHERS:
        values = [other[n] for n in symbols]
        if symbolic.broken(values):
            continue
        compared = True
        wrong += compare(f"{name} at {other}", symbolic, probe.trace(flat, arguments(other)), values)
        if grad and not wrong and name not in RANDOM:
            wrong += execute(f"{name} at {other}", symbolic, flat, arguments(other), values)
    return wrong, symbolic.specialised(), compared, symbolic.relations


def ids(*shape):
    return {"shape": shape, "make": lambda values: torch.zeros([values.get(n, n) for n in shape], dtype=torch.long)}


def mask(*shape):
    return {"shape": shape, "make": lambda values: torch.ones([values.get(n, n) for n in shape], dtype=torch.bool)}


BAGS = torch.rand(8, 4)
W, W2, V = torch.rand(8, 8), torch.rand(16, 8), torch.rand(8)
C1, C2, CT = torch.rand(6, 3, 3, 3), torch.rand(6, 1, 3, 3), torch.rand(3, 4, 2, 2)
E = torch.rand(50, 8, requires_grad=True)
C3 = torch.rand(4, 3, 3)
X, XI = ("b", "s", 8), ("b", 3, "t", "t")
#: Programs over symbolic sizes. The value is (function, shapes); what specialises stands in SPECIALISED.
CASES = {
    "pointwise": (lambda x, y: (x + y, x * 2, x.relu(), torch.where(x > 0, x, y), x.clamp(0, 1), F.gelu(x), x / y.exp()), [X, X]),
    "broadcast": (lambda x, y, z: (x + y, x * z, y + z), [X, ("s", 8), ("b", 1, 1)]),
    "sizes_in_arithmetic": (lambda x: (x * x.shape[0], x / x.shape[1], x + (x.shape[0] * 2 + 1), x - x.shape[1] // 2), [X]),
    "view": (lambda x: (x.view(-1, 8) * 1, x.view(x.shape[0], -1) * 1, x.reshape(-1) * 1, x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2) * 1), [X]),
    "reshape_transposed": (lambda x: (x.transpose(0, 1).reshape(-1, 8), x.transpose(1, 2).reshape(x.shape[0], -1), x.flatten(), x.transpose(0, 1).flatten(1)), [X]),
    "heads": (lambda x: x.view(x.size(0), x.size(1), 2, 4).permute(0, 2, 1, 3).reshape(x.size(0) * 2, x.size(1), 4).unflatten(0, (-1, 2)), [X]),
    "expand": (lambda x, y: (x.unsqueeze(1).expand(-1, 3, -1, -1) * 1, y.expand(x.shape[0], -1, 8) * 1, y.expand_as(x) + x), [X, (1, "s", 1)]),
    "expand_number": (lambda x: (x.sum().expand(x.shape[0], 1), x.sum().expand(1, x.shape[0], 1), x.sum().expand(1)), [X]),
    "slice": (lambda x: (x[:, 1:], x[:, :-1] * 2, x[1:, ::2], x[:, -1], x[:, 0] + 1, x[..., 2:6].contiguous(), x.narrow(1, 1, 2)), [X]),
    "slice_by_size": (lambda x, y: (x[:, :y.shape[0]] * 2, y[:x.shape[0]] + 1, x[: x.shape[0] // 2]), [("b", "t"), ("s", 8)]),
    "squeeze": (lambda x: (x.unsqueeze(1).squeeze(1) * 1, x.unsqueeze(-1).squeeze() * 1, x[None].squeeze(0) + 1), [X]),
    "split": (lambda x: [p * 2 for p in x.split(4, -1)] + [p + 1 for p in x.chunk(2, -1)] + [p + 1 for p in x.split([3, 5], -1)] + [p.sum() for p in x.unbind(-1)], [X]),
    "split_by_size": (lambda x: [p * 2 for p in x.split(x.shape[1] // 2, 1)] + [p + 1 for p in x.split([1, x.shape[1] - 1], 1)], [("b", "t", 4)]),
    "as_strided": (lambda x: (x.as_strided((x.shape[0], 8), (x.stride(0), 1)) * 1, torch.as_strided(x * 1, (x.shape[1], 4), (8, 2))), [X]),
    "diagonal": (lambda x: (x.diagonal(0, 0, 1) * 1, x.diagonal(1, 1, 2) * 1, torch.diag_embed(x[:, :, 0])), [("b", "t", "t")]),
    "windows": (lambda x: x.unfold(1, 3, 1) * 1, [("b", "s")]),
    "unfold": (lambda x: (x.unfold(1, 3, 1) * 1, x.unfold(1, 4, 2).sum(-1)), [("b", "t", 4)]),
    "factories": (lambda x: (torch.zeros(x.shape[0], 3) + 1, x.new_ones(x.shape[1]) + 1, torch.full((x.shape[0],), 2.0) * 3, torch.empty_like(x).fill_(1.0),
                             torch.zeros_like(x) + 1, torch.arange(x.shape[1]) + 1, torch.arange(1, x.shape[1], 2) + 1, torch.ones(x.size()) * x,
                             torch.arange(x.shape[0], dtype=torch.float32), torch.eye(x.shape[1]) + 1, x.new_zeros((x.shape[0], x.shape[1])) + 1), [X]),
    "full_of_size": (lambda x: (torch.full((3, x.shape[0]), x.shape[1]) + 1, x.new_full((2,), x.shape[0]) + 1), [X]),
    "reductions": (lambda x: (x.sum(), x.sum(1), x.mean((0, 2)), x.amax(-1, True), x.var(1), x.std(0), x.argmax(1), x.max(1)[0], x.norm(dim=1), x.prod(1),
                              x.any(1), x.logsumexp(1), torch.var_mean(x, 1)[0], x.mean()), [X]),
    "softmax": (lambda x: (x.softmax(-1), x.log_softmax(1), x.softmax(0)), [X]),
    "scans": (lambda x: (x.cumsum(1), x.cumprod(0), x.sort(1)[0], x.topk(3, 1)[0], x.flip(1), x.roll(2, 1), x.argsort(0), x.cummax(1)[0]), [X]),
    "linear": (lambda x: (F.linear(x, W2, torch.zeros(16)), F.linear(x, W), x @ W), [X]),
    "linear_2d": (lambda x: (F.linear(x, W2, torch.zeros(16)), F.linear(x, W), x @ W, x.t() @ x, x @ V), [("b", 8)]),
    "matmul": (lambda x, y: (x @ y.transpose(1, 2), torch.bmm(x, y.transpose(1, 2)), torch.baddbmm(x @ y.mT, x, y.mT), x @ y[0].t(), x[0] @ y.mT, x @ V), [X, X]),
    "matmul_4d": (lambda x, y: ((x @ y.transpose(-1, -2)).softmax(-1) @ y, x @ y[:, :1].transpose(-1, -2), x[0] @ y.mT), [("b", 2, "s", 4), ("b", 2, "s", 4)]),
    "einsum": (lambda x, y: (torch.einsum("bsd,btd->bst", x, y), torch.einsum("bsd,de->bse", x, W), torch.einsum("bsd->bd", x)), [X, X]),
    "convolution": (lambda x: (F.conv2d(x, C1), F.conv2d(x, C1, stride=2, padding=1), F.conv_transpose2d(x, CT, stride=2), F.conv2d(x, C1, dilation=2, padding="same")), [XI]),
    "depthwise": (lambda x: F.conv2d(x.repeat(1, 2, 1, 1), C2, groups=6, padding=1), [XI]),
    "conv1d": (lambda x: F.conv1d(x, C3, torch.zeros(4), padding=1), [("b", 3, "t")]),
    "channels_last": (lambda x: F.conv2d(x.to(memory_format=torch.channels_last), C1.to(memory_format=torch.channels_last), padding=1).relu(), [XI]),
    "pooling": (lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1), F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (2, 3)), F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
                           F.avg_pool1d(x[0], 2), F.max_pool1d(x[0], 2), F.adaptive_max_pool2d(x, 2)), [XI]),
    "padding": (lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, 1, 2, 2), mode="reflect"), F.pad(x, (1, 1, 1, 1), mode="replicate"), F.pad(x, (0, -1))), [XI]),
    "interpolate": (lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 5), mode="bilinear"), F.interpolate(x, scale_factor=0.5, mode="bilinear"),
                               F.interpolate(x, size=x.shape[2:]), F.interpolate(x, scale_factor=2.0, mode="bicubic")), [XI]),
    "norms": (lambda x: (F.layer_norm(x, (8,), V, V), F.rms_norm(x, (8,)), F.group_norm(x.transpose(1, 2), 2), F.normalize(x, dim=-1)), [X]),
    "batch_norm": (lambda x: F.batch_norm(x, torch.zeros(3), torch.ones(3), torch.ones(3), torch.zeros(3), training=True), [XI]),
    "batch_norm_eval": (lambda x: F.batch_norm(x, torch.zeros(3), torch.ones(3)), [XI]),
    "instance_norm": (lambda x: F.instance_norm(x), [XI]),
    "cat": (lambda x, y: (torch.cat([x, y], 1), torch.stack([x, x]), torch.cat([x, x], 0), torch.stack([x, x], -1), torch.cat([x, y[:, :2]], 1)), [X, ("b", "t", 8)]),
    "embedding": (lambda i: (F.embedding(i, E), F.embedding(i[:, 0], E)), [ids("b", "s")]),
    "indexing": (lambda x, i: (x.index_select(1, i[0]), x.gather(1, i.unsqueeze(-1).expand(-1, -1, 8)), x[:, i[0]], x[i[:, 0]], x[i, i], x[:, :, i[0]]), [X, ids("b", "s")]),
    "index_put": (lambda x, i: (x.index_add(1, i[0], x), x.scatter(1, i.unsqueeze(-1), 1.0), x.index_put((i[:, 0],), V), x.scatter_add(1, i.unsqueeze(-1).expand(-1, -1, 8), x),
                                x.index_copy(1, i[0], x)), [X, ids("b", "s")]),
    "masked": (lambda x, m: (x.masked_fill(m.unsqueeze(-1), 0.0), x.where(m.unsqueeze(-1), 0.0), x.tril(), x.triu(1)), [X, mask("b", "s")]),
    "causal_mask": (lambda x: x[:, :, 0, None].expand(-1, -1, x.shape[1]).masked_fill(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril().logical_not(), float("-inf")).softmax(-1), [X]),
    "positions": (lambda x: x + E[: x.shape[1]] + E[torch.arange(x.shape[1])], [X]),
    "attention": (lambda q, k: (F.scaled_dot_product_attention(q, k, k), F.scaled_dot_product_attention(q, q, q, is_causal=True), F.scaled_dot_product_attention(q, k, k, dropout_p=0.1)),
                  [("b", 2, "s", 4), ("b", 2, "t", 4)]),
    "attention_of_views": (lambda x: F.scaled_dot_product_attention(*x.view(x.size(0), x.size(1), 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)).transpose(1, 2).reshape(x.size(0), x.size(1), 8), [("b", "s", 24)]),
    "dropout": (lambda x: (F.dropout(x, 0.5), F.dropout2d(x.unsqueeze(-1)), F.alpha_dropout(x, 0.1)), [X]),
    "repeat": (lambda x: (x.repeat(1, 2, 1), x.repeat(2, 1, 1, 1), x.repeat_interleave(2, 1), x.tile(2)), [X]),
    "losses": (lambda x, i: (F.cross_entropy(x.transpose(1, 2), i), F.cross_entropy(x.view(-1, 8), i.view(-1)), F.mse_loss(x, x * 2), F.smooth_l1_loss(x, x + 1), F.nll_loss(x[:, 0].log_softmax(-1), i[:, 0]),
                             F.binary_cross_entropy_with_logits(x, x), F.kl_div(x, x), F.cross_entropy(x.view(-1, 8), i.view(-1), reduction="none")), [X, ids("b", "s")]),
    "in_place": (lambda x: ((x * 1).add_(1), (x * 2).mul_(x), (x * 1).transpose_(0, 1), (x * 1).unsqueeze_(0), (x * 1).fill_(2.0)), [X]),
    "write_to_part": (lambda x: slice_write(x), [X], False),
    "circular": (lambda x: F.pad(x, (1, 1), mode="circular"), [("b", 3, "t")], False),
    "write_to_input": (lambda x: x.add_(1) * 2, [X], False),
    "write_to_slice_of_input": (lambda x: (x[:, 1:].mul_(2), x + 1), [X], False),
    "view_of_input": (lambda x: (x.view(-1), x[:, 1:], x.transpose(0, 1), x + 1), [X], False),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2), [XI]),
    "grid_sample": (lambda x, g: F.grid_sample(x, g), [XI, ("b", "s", "s", 2)]),
    "fold": (lambda x: F.unfold(x, 3, padding=1), [XI]),
    "embedding_bag": (lambda i: (F.embedding_bag(i, BAGS), F.embedding_bag(i, BAGS, mode="max"), F.embedding_bag(i.view(-1), BAGS, torch.arange(i.shape[0]) * i.shape[1], mode="sum")),
                      [ids("b", "s")]),
    "factorisations": (lambda x, b: (torch.linalg.solve(x, b), torch.linalg.qr(x)[1], torch.linalg.svdvals(x), torch.linalg.lu_factor(x)[0], torch.linalg.solve_triangular(x, b, upper=True),
                                     torch.linalg.inv(x), torch.linalg.eigvals(x).real), [("b", "s", "s"), ("b", "s", 3)], False),
    "margins": (lambda x, i: (F.multi_margin_loss(x.view(-1, 8), i.view(-1)), F.multi_margin_loss(x.view(-1, 8), i.view(-1), reduction="none")), [X, ids("b", "s")]),
    "unpooled": (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), [("b", 3, "t", "t")]),
    "distance": (lambda x: torch.dist(x, x + 1), [X]),
    "one_hot": (lambda i: (i.unsqueeze(-1) == torch.arange(8)).float(), [ids("b", "s")]),
    "rotary": (lambda x: rotary(x), [("b", 2, "s", 8)]),
    "mean_by_size": (lambda x: (x.sum(1) / x.shape[1], x.sum() / x.numel(), x * (1.0 / x.shape[-1])), [X]),
    "branch": (lambda x: x + 1 if x.shape[1] > 3 else x - 1, [X]),
    "glu": (lambda x: F.glu(x, 1), [("b", "t", 4)]),
    "cdist": (lambda x, y: (torch.cdist(x, y), torch.cdist(x, y, compute_mode="use_mm_for_euclid_dist")), [X, ("b", "t", 8)]),
    "lists": (lambda x, y: torch._foreach_add([x, y], 1.0) + torch._foreach_mul([x, y], [y, x]), [X, X]),
    "meshgrid": (lambda x, y: (*torch.meshgrid(x, y, indexing="ij"), torch.outer(x, y), torch.cartesian_prod(x, y)), [("b",), ("s",)]),
    "triangles": (lambda x: (torch.tril(torch.ones(x.shape[1], x.shape[1])), torch.triu(torch.full((x.shape[1], x.shape[1]), 1.0), 1)), [X]),
    "lstm_cell": (lambda x: lstm_cell(x), [("b", 8)]),
    "transposed_linear": (lambda x: F.linear(x.transpose(0, 1), W).transpose(0, 1) + x, [X]),
    "movedim": (lambda x: (x.movedim(0, -1) * 1, x.swapaxes(0, 2).contiguous(), x.mT + 1), [X]),
}
#: Cases that draw random numbers, or memory that nobody filled.
RANDOM = {"dropout", "attention", "mlp", "batch_norm", "conv_net"}

#: Cases that cannot but specialise, with the operators that do.
SPECIALISED = {"scans": "cumprod_backward reads sizes"}


def slice_write(x):
    y = x.clone()
    y[:, 1:] = 0
    y[:, 0] += 1
    y.view(-1)[:4] = 3
    return y


def rotary(x):
    angles = torch.outer(torch.arange(x.shape[2], dtype=torch.float32), torch.ones(4))
    cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
    half = torch.cat([-x[..., 4:], x[..., :4]], -1)
    return x * cos[None, None] + half * sin[None, None]


CELL = nn.LSTMCell(8, 8)


def lstm_cell(x):
    h, c = CELL(x)
    return CELL(x, (h, c))[0]


def models():
    """(name, function of the arguments, shapes): modules of real programs."""
    encoder = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
    yield "encoder_layer", lambda x: encoder(x), [("b", "s", 16)]
    conv = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    yield "conv_net", lambda x: conv(x), [XI]
    mlp = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 8))
    yield "mlp", lambda x: mlp(x), [X]
    attention = nn.MultiheadAttention(16, 2, batch_first=True)
    yield "multihead", lambda x: attention(x, x, x)[0], [("b", "s", 16)]
    gru = nn.GRUCell(8, 8)
    yield "gru_cell", lambda x: gru(x), [("b", 8)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    failures, special = [], {}
    cases = [(name, *case) for name, case in CASES.items()] + list(models())
    for name, fn, shapes, *grad in cases:
        if options.only and name not in options.only:
            continue
        try:
            wrong, specialised, compared, relations = check(name, fn, shapes, grad=grad[0] if grad else True)
        except Exception as error:  # noqa: BLE001: a trace that fails is a finding
            wrong, specialised, compared, relations = [f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}"], [], True, []
        if options.verbose:
            print(name, "relations:", relations)
        if specialised:
            special[name] = specialised
        if not compared and not specialised:
            wrong.append(f"{name}: no other sizes satisfy the relations: {relations}")
        if specialised and name not in SPECIALISED:
            wrong.append(f"{name}: specialises {specialised}")
        failures += wrong
    for line in failures:
        print(line[:600])
    print(f"{len(failures)} problems in {len(cases)} cases")
    assert not failures


if __name__ == "__main__":
    main()

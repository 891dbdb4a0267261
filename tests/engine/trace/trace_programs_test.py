"""Traced metadata against real kernels: every operator's sizes, strides and dtype, over many operators and layouts."""
import re
import sys
import warnings

import torch
import torch.nn.functional as F

sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/aot")
import fusebox_trace_probe as probe  # noqa: E402
from aot_compare import run, tensors_of  # noqa: E402

warnings.filterwarnings("ignore")
CL = torch.channels_last


def agree(fn, *args):
    """Traced outputs have the geometry that eager outputs have."""
    seen = []

    def traced(*a):
        outs = tensors_of(fn(*a))
        seen.extend((t.shape, t.stride(), t.storage_offset(), t.dtype, t.device) for t in outs)
        return []

    probe.trace(traced, list(args))
    real = tensors_of(fn(*args))
    assert len(seen) == len(real)
    for i, (s, t) in enumerate(zip(seen, real)):
        strides = tuple((a, b) for a, b, n in zip(s[1], t.stride(), t.shape) if n > 1 and a != b)
        assert s[0] == t.shape and not strides and s[3] == t.dtype and s[4] == t.device, f"output {i}: {s} instead of {(t.shape, t.stride(), t.dtype)}"


def layouts(*shape):
    x = torch.randn(*shape)
    yield x
    yield torch.randn(*shape[::-1]).permute(*range(len(shape) - 1, -1, -1))
    yield torch.randn(*(2 * s for s in shape))[tuple(slice(None, None, 2) for _ in shape)]
    yield torch.randn(*shape[:-1], 1).expand(*shape)
    if len(shape) == 4:
        yield x.to(memory_format=CL)


def unary(name, op, *shape):
    def check():
        for x in layouts(*shape):
            agree(op, x)
    return name, check


CASES = dict(
    unary(name, op, 2, 3, 4, 6) for name, op in {
        "relu": torch.relu, "hardswish": F.hardswish, "gelu": F.gelu, "silu": F.silu, "where": lambda x: torch.where(x > 0, x, x.t() if x.dim() < 3 else x + 1),
        "softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(1), "clone": torch.clone, "half": lambda x: x.half(),
        "contiguous": lambda x: x.contiguous(), "reductions": lambda x: (x.sum(1), x.mean((2, 3)), x.amax(-1, True), x.var(1), x.argmax(2), x.max(1)),
        "cumsum": lambda x: x.cumsum(1), "flip": lambda x: x.flip(1), "roll": lambda x: x.roll(2, 1), "repeat": lambda x: x.repeat(1, 2, 1, 1),
        "layer_norm": lambda x: F.layer_norm(x, x.shape[2:]), "group_norm": lambda x: F.group_norm(x, 3),
        "batch_norm": lambda x: F.batch_norm(x, torch.zeros(3), torch.ones(3)), "max_pool": lambda x: F.max_pool2d(x, 2),
        "avg_pool": lambda x: F.avg_pool2d(x, 2), "adaptive_pool": lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
        "interpolate": lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 5), mode="bilinear")),
        "pad": lambda x: (F.pad(x, (1, 1)), F.pad(x, (1, 1, 1, 1), mode="reflect")), "dropout": lambda x: F.dropout(x, 0.5),
        "convolution": lambda x: F.conv2d(x, torch.ones(5, 3, 3, 3), padding=1), "grouped": lambda x: F.conv2d(x, torch.ones(6, 1, 3, 3), groups=3, padding=1, stride=2),
        "transposed": lambda x: F.conv_transpose2d(x, torch.ones(3, 4, 2, 2), stride=2), "cat": lambda x: torch.cat([x, x * 2], 1),
        "stack": lambda x: torch.stack([x, x], 1), "index": lambda x: (x[:, [0, 2]], x[[1, 0]], x.index_select(1, torch.tensor([0, 2]))),
        "sort": lambda x: (x.sort(1), x.topk(2, -1)), "tril": lambda x: x.tril(), "unfold": lambda x: x.unfold(3, 2, 2),
        "masked_fill": lambda x: x.masked_fill(x > 0, 0), "like": lambda x: (torch.empty_like(x), torch.zeros_like(x), x.new_ones(3)),
        "arithmetic": lambda x: (x + 1, x * x, x / 2, x - x.mean(1, True), x.pow(2), x > 0, x.clamp(0, 1), x.abs().sqrt(), x.round()),
        "linear_algebra": lambda x: (x @ x.transpose(-1, -2), torch.einsum("bchw,bchv->bwv", x, x)),
        "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
        "fft": lambda x: torch.fft.rfft(x).abs(), "norm": lambda x: (x.norm(dim=1), F.normalize(x), torch.linalg.vector_norm(x, dim=2)),
    }.items())


def convolution_1d_3d():
    agree(lambda x: F.conv1d(x, torch.ones(4, 3, 3), padding=1), torch.randn(2, 3, 8))
    agree(lambda x: F.conv3d(x, torch.ones(4, 3, 2, 2, 2)), torch.randn(2, 3, 4, 4, 4))
    agree(lambda x: F.conv3d(x, torch.ones(4, 3, 2, 2, 2)), torch.randn(2, 3, 4, 4, 4).to(memory_format=torch.channels_last_3d))


def bfloat16():
    x = torch.randn(2, 6, dtype=torch.bfloat16)
    agree(lambda a: (F.layer_norm(a, (6,)), a.softmax(-1), F.gelu(a), a.sum(), a + 1.0, a.float(), F.linear(a, a)), x)


def promotion():
    i, x = torch.arange(6), torch.randn(6)
    agree(lambda a, b: (a + b, a / 2, a // 2, a * 1.5, a + 1, b + a[0], a > 2, a.float(), torch.where(a > 2, a, b)), i, x)


def recurrent():
    m = torch.nn.LSTM(4, 5, batch_first=True)
    agree(lambda x: m(x), torch.randn(2, 3, 4))


def graph_has_no_writes():
    traced = probe.trace(lambda x: [x.clone().add_(1).mul_(2).relu_(), torch.zeros(3).fill_(2)], [torch.randn(3)])
    assert not [op for op in traced.ops if re.search(r"_(\.|$)", op)], traced.ops


def every_torch_function_over_layouts():
    """All functions of the torch namespace that take one or two tensors: geometry as eager's, whatever the operand's layout."""
    skip = {"rrelu"}  # eager keeps no layout there; values agree
    breaks = 0
    for name in dir(torch):
        op = getattr(torch, name)
        if name in skip or name[0] == "_" or name[-1] == "_" or not callable(op) or isinstance(op, type) or "dlpack" in name:
            continue
        for arity in (1, 2):
            for x in layouts(2, 3, 4, 6):
                args = (x, x + 1)[:arity]
                try:
                    if not isinstance(op(*args), torch.Tensor):
                        break
                except BaseException:  # noqa: BLE001 - not a function of so many tensors
                    break
                try:
                    agree(op, *args)
                except AssertionError as error:
                    raise AssertionError(f"torch.{name}: {error}") from None
                except Exception:  # noqa: BLE001 - a break is an answer too
                    breaks += 1
    return f"{breaks} breaks"


def attention_layouts():
    for s in ((2, 3, 4, 8), (1, 2, 5, 16)):
        x, y = torch.randn(*s), torch.randn(s[0], s[2], s[1], s[3]).transpose(1, 2)
        repeated = [x[:, :, :1].expand(s), x[:1, :1].expand(s), y[:1].expand(s), y[:, :1].expand(s)]
        for q in (x, y, *repeated):
            for k in (x, y):
                agree(lambda q, k: F.scaled_dot_product_attention(q, k, k), q, k)


CASES.update({f.__name__: f for f in (every_torch_function_over_layouts, attention_layouts, convolution_1d_3d, bfloat16, promotion, recurrent, graph_has_no_writes)})
if __name__ == "__main__":
    run(CASES)

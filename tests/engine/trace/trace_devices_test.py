"""Geometry and devices of what operators give on CUDA, traced with tensors that have no memory, so that no GPU is needed.

What eager gives was read off an H100 with PyTorch 2.11 (`models/op_sweep.py --device cuda`), and off its sources for the devices.
"""
import sys
import warnings

import torch
import torch.nn.functional as F

sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/aot")
import fusebox_trace_probe as probe  # noqa: E402
from aot_compare import run, tensors_of  # noqa: E402

warnings.filterwarnings("ignore")
F32, BF16, I64 = torch.float32, torch.bfloat16, torch.int64


def row_major(sizes):
    return torch.empty(sizes, device="meta").stride()


def permuted(sizes):
    """Dimensions the other way round in memory; channels last where there are four."""
    if len(sizes) == 4:
        return torch.empty(sizes, device="meta").to(memory_format=torch.channels_last).stride()
    return torch.empty(sizes[::-1], device="meta").permute(*reversed(range(len(sizes)))).stride()


def cuda(*sizes, strides=None, dtype=F32, index=0):
    return probe.cuda_tensor(list(sizes), list(strides or row_major(sizes)), dtype, index)


def results(fn, *args):
    """What the traced function gives: (sizes, strides, dtype, device) of each tensor, or the trace if it fails."""
    seen = []

    def traced(*a):
        seen.extend((tuple(t.shape), t.stride(), t.dtype, str(t.device)) for t in tensors_of(fn(*a)))
        return []

    with torch.no_grad():
        probe.trace(traced, list(args))
    return seen


def graph_of(fn, *args):
    with torch.no_grad():
        return probe.trace(lambda *a: tensors_of(fn(*a)), list(args)).forward


def strides_are(fn, wanted, *args):
    got = [s for _, s, _, _ in results(fn, *args)]
    assert got == wanted, f"strides {got} instead of {wanted}"


def moved(*sizes, **more):
    return cuda(*sizes, strides=permuted(sizes), **more)


def shuffles():
    for dtype in (F32, BF16, I64):
        strides_are(lambda x: F.pixel_shuffle(x, 1), [(36, 4, 2, 1)], moved(1, 9, 2, 2, dtype=dtype))
        strides_are(lambda x: F.channel_shuffle(x, 2), [(400, 100, 10, 1)], moved(1, 4, 10, 10, dtype=dtype))
    strides_are(lambda x: F.pixel_unshuffle(x, 2), [(36, 9, 3, 1)], moved(1, 1, 6, 6))
    strides_are(lambda x: torch.native_channel_shuffle(x, 2), [(400, 100, 10, 1)], moved(1, 4, 10, 10))


def rolling():
    strides_are(lambda x: (x.roll(1, 2), x.roll((1, 2), (2, 3))), [(48, 16, 4, 1)] * 2, moved(5, 3, 4, 4))


def padding():
    strides_are(lambda x: F.pad(x, (-4, 5, 0, 0), mode="replicate"), [(60, 20, 5, 1)], moved(5, 3, 4, 4))
    strides_are(lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), [(108, 36, 6, 1)], moved(5, 3, 4, 4))
    strides_are(lambda x: F.pad(x, (1, 1, 1, 1, 1, 1), mode="replicate"), [(648, 216, 36, 6, 1)], moved(5, 3, 4, 4, 4))


def unpooling():
    index = moved(1, 2, 1, 3, dtype=I64)
    strides_are(lambda x, i: F.max_unpool2d(x, i, 3, 2, 0, [1, 2, 3, 6]), [(36, 18, 6, 1)], moved(1, 2, 1, 3), index)
    strides_are(lambda x, i: F.max_unpool3d(x, i, 2), [(192, 96, 24, 6, 1)],
                cuda(1, 2, 2, 2, 3, strides=(24, 1, 12, 6, 2)), cuda(1, 2, 2, 2, 3, strides=(24, 1, 12, 6, 2), dtype=I64))


def transforms():
    strides_are(lambda x: torch.fft.irfft(x, n=10, dim=1, norm="ortho"), [(70, 1, 10)], moved(5, 6, 7))
    strides_are(lambda x: torch.fft.rfftn(x, norm="ortho"), [(6, 1, 30)], cuda(5, 6, 7))
    strides_are(torch.fft.rfft, [(24, 4, 1)], cuda(5, 6, 7))


def convolutions():
    """Numbers of float64 are given to cuDNN row by row, others as they lie."""
    F64 = torch.float64
    for dtype, first in ((F32, (27, 1, 9, 3)), (F64, (27, 9, 3, 1))):
        x, w = moved(2, 4, 5, 5, dtype=dtype), cuda(3, 4, 3, 3, dtype=dtype)
        strides_are(F.conv2d, [first], x, w)
        strides_are(lambda x, w, g: torch.ops.aten.convolution_backward(g, x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False])[:2],
                    [(100, 1, 20, 4), (36, 1, 12, 4)] if dtype == F32 else [row_major((2, 4, 5, 5)), row_major((3, 4, 3, 3))], x, w, cuda(2, 3, 3, 3, dtype=dtype))


def batch_norm_statistics():
    def native(x, w, b, m, v, training=True):
        return torch.native_batch_norm(x, w, b, m, v, training, 0.5, 0.6)

    def legit(x, w, b, m, v):
        return torch.ops.aten._native_batch_norm_legit(x, w, b, m, v, True, 0.5, 0.6)

    for dtype in (BF16, torch.float16, F32):
        parameters = [cuda(5, dtype=dtype) for _ in range(4)]
        for f in (native, legit):
            got = results(f, cuda(5, 5, 5, dtype=dtype), *parameters)
            assert [d for _, _, d, _ in got] == [dtype, F32, F32], got
            # The layout of the input is kept, where the CPU's kernel makes a row-major result.
            assert results(f, moved(5, 5, 5, dtype=dtype), *parameters)[0][1] == (1, 5, 25)
        got = results(lambda *a: native(*a, training=False), cuda(2, 5, 3, dtype=dtype), *parameters)
        assert [(s, d) for s, _, d, _ in got] == [((2, 5, 3), dtype), ((5,), F32), ((5,), F32)], got


def batch_norm_of_a_layer():
    """Eager asks cuDNN where the types allow it; that makes its input dense in its memory format first."""
    for training in (True, False):
        for dtype, wanted in ((F32, (25, 5, 1)), (BF16, (1, 5, 25))):
            stats = [cuda(5, dtype=dtype) for _ in range(4)]
            strides_are(lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b, training, 0.5, 0.6), [wanted], moved(5, 5, 5, dtype=dtype), *stats)
    # What cuDNN keeps for its backward has a size that only cuDNN knows: it is in no graph that trains.
    x, w, b = cuda(2, 6, 3), cuda(6), cuda(6)
    for f in (lambda x, w, b: F.instance_norm(x, None, None, w, b), lambda x, w, b: F.batch_norm(x, None, None, w, b, True)):
        assert "cudnn" not in graph_of(f, x, w, b), graph_of(f, x, w, b)
    try:
        results(lambda x, w, b: torch.cudnn_batch_norm(x, w, b, None, None, True, 0.1, 1e-5), x, w, b)
    except Exception:
        assert "only cuDNN knows" in probe.last_break()[1]
    else:
        raise AssertionError("cudnn_batch_norm was traced in training")


def devices_are(fn, wanted, *args):
    got = [d for _, _, _, d in results(fn, *args)]
    assert got == wanted, f"{got} instead of {wanted}"


def device_of_mixed_operands():
    x, y = cuda(4, 3), cuda(4, 3, index=1)
    loss, loss1, scalar = cuda(), cuda(index=1), torch.tensor(2.0)
    index = torch.tensor([0, 2])
    aten = torch.ops.aten
    devices_are(lambda x, i: aten.index(x, [i]), ["cuda:0"], x, index)
    devices_are(lambda x, i: aten.index(x, [None, i]).sum(), ["cuda:1"], y, index)
    devices_are(lambda x, i, s: x.index_put((i,), s), ["cuda:0"], x, index, scalar)
    devices_are(lambda s, l: (s * l, l * s, s + s), ["cuda:0", "cuda:0", "cpu"], scalar, loss)
    devices_are(lambda s, x: (s - x, torch.where(x > 0, s, x)), ["cuda:1", "cuda:1"], scalar, y)
    devices_are(lambda x, y: (aten.copy(x, y), aten.copy(y, x)), ["cuda:0", "cuda:1"], x, y)
    devices_are(lambda s, l: s.clone().copy_(l), ["cpu"], scalar, loss1)
    devices_are(lambda s, l: s.clone().fill_(l), ["cpu"], scalar, loss)
    devices_are(lambda x, y: (aten._to_copy(x, device=y.device) + y, aten._to_copy(y, device=x.device) * x), ["cuda:1", "cuda:0"], x, y)
    devices_are(lambda x, y: (x.cpu() + 1, y.cpu()), ["cpu", "cpu"], x, y)
    devices_are(lambda x, y: (aten.new_zeros(y, [3]), aten.zeros_like(y), aten.ones_like(x, device=y.device)), ["cuda:1"] * 3, x, y)


def lists_of_several_devices():
    x, y = cuda(3), cuda(3, index=1)
    devices_are(lambda x, s: torch._foreach_mul([x, x], [s, s]), ["cuda:0"] * 2, x, torch.tensor(2.0))
    try:
        results(lambda x, y: torch._foreach_mul([x, y], 2.0), x, y)
    except Exception:
        assert "cuda:0 and cuda:1" in probe.last_break()[1], probe.last_break()
    else:
        raise AssertionError("tensors of two devices in one list were traced as one node")


def factories_say_where():
    """A device without an index means the current one when the function is called, also in a graph that runs on another thread."""
    text = graph_of(lambda x: x + torch.ops.aten.zeros([3], device="cuda"), cuda(3))
    assert "cuda:0" in text and "cuda:-1" not in text, text


CASES = {f.__name__: f for f in (shuffles, rolling, padding, unpooling, transforms, convolutions, batch_norm_statistics, batch_norm_of_a_layer, device_of_mixed_operands,
                                 lists_of_several_devices, factories_say_where)}
if __name__ == "__main__":
    run(CASES)

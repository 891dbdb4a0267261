"""Kernels on a CUDA device: Fusebox beside eager and the stock torch.compile, milliseconds by CUDA events and seconds to compile.

Each row is checked against eager before it is timed. Inputs are larger than the cache.
"""

import argparse
import functools
import json
import statistics
import time

import torch
import torch.nn.functional as F

import fusebox

FLOAT = "float32"  # a gradient of that type, without dimensions


def cross_entropy_of_half(x, t):
    """As under autocast: logits of 16 bits, the loss of float32."""
    return F.cross_entropy(x.float(), t)


CASES = {
    "gelu(sin x + cos y)*x+1, 64 Mi": (lambda x, y: F.gelu(torch.sin(x) + torch.cos(y)) * x + 1, [(1 << 26,), (1 << 26,)], torch.float32),
    "softmax 32768x2048": (lambda x: torch.softmax(x, -1), [(32768, 2048)], torch.float32),
    "layer_norm 32768x2048": (lambda x, w, b: F.layer_norm(x, (2048,), w, b), [(32768, 2048), (2048,), (2048,)], torch.float32),
    "sum of rows 16384x4096": (lambda x: x.sum(1), [(16384, 4096)], torch.float32),
    "sum of columns 16384x4096": (lambda x: x.sum(0), [(16384, 4096)], torch.float32),
    "sum of all, 64 Mi": (lambda x: x.sum(), [(1 << 26,)], torch.float32),
    "transpose 8192x8192": (lambda x: x.t().contiguous() + 1, [(8192, 8192)], torch.float32),
    "silu(x)*y bf16, 64 Mi": (lambda x, y: F.silu(x) * y, [(1 << 26,), (1 << 26,)], torch.bfloat16),
    "layer_norm backward 32768x2048": (lambda x, w, b: F.layer_norm(x, (2048,), w, b), [(32768, 2048), (2048,), (2048,), (32768, 2048)], torch.float32),
    "cross_entropy 4096x50257": (lambda x, t: F.cross_entropy(x, t), [(4096, 50257), 4096], torch.float32),
    "cross_entropy backward 4096x50257": (lambda x, t: F.cross_entropy(x, t), [(4096, 50257), 4096, ()], torch.float32),
    "softmax 4096x50257": (lambda x: torch.softmax(x, -1), [(4096, 50257)], torch.float32),
    "transpose 8192x16384 bf16": (lambda x: x.t().contiguous() + 1, [(8192, 16384)], torch.bfloat16),
    "rms_norm backward 32768x2048 bf16": (lambda x, w: F.rms_norm(x, (2048,), w), [(32768, 2048), (2048,), (32768, 2048)], torch.bfloat16),
    "cross_entropy of bf16 8192x50257": (cross_entropy_of_half, [(8192, 50257), 8192], torch.bfloat16),
    "cross_entropy of bf16 backward 8192x50257": (cross_entropy_of_half, [(8192, 50257), 8192, FLOAT], torch.bfloat16),
    "cross_entropy of bf16 8192x32003": (cross_entropy_of_half, [(8192, 32003), 8192], torch.bfloat16),
    "cross_entropy of bf16 backward 8192x32003": (cross_entropy_of_half, [(8192, 32003), 8192, FLOAT], torch.bfloat16),
    "softmax bf16 4096x50257": (lambda x: torch.softmax(x, -1), [(4096, 50257)], torch.bfloat16),
    "softmax bf16 8192x32003": (lambda x: torch.softmax(x, -1), [(8192, 32003)], torch.bfloat16),
    "layer_norm bf16 32768x2051": (lambda x, w, b: F.layer_norm(x, (2051,), w, b), [(32768, 2051), (2051,), (2051,)], torch.bfloat16),
    "layer_norm backward bf16 32768x2051": (lambda x, w, b: F.layer_norm(x, (2051,), w, b), [(32768, 2051), (2051,), (2051,), (32768, 2051)], torch.bfloat16),
    "layer_norm backward bf16 32768x2048": (lambda x, w, b: F.layer_norm(x, (2048,), w, b), [(32768, 2048), (2048,), (2048,), (32768, 2048)], torch.bfloat16),
    "rms_norm backward bf16 32768x2051": (lambda x, w: F.rms_norm(x, (2051,), w), [(32768, 2051), (2051,), (32768, 2051)], torch.bfloat16),
    "silu(x)*y bf16, 64 Mi + 1": (lambda x, y: F.silu(x) * y, [((1 << 26) + 1,), ((1 << 26) + 1,)], torch.bfloat16),
    "cumsum of rows 32768x2048": (lambda x: torch.cumsum(x, -1), [(32768, 2048)], torch.float32),
    "index_add 65536x512": (lambda x, i, v: x.index_add(0, i, v), [(65536, 512), 65536, (65536, 512)], torch.float32),
    "dropout and add, 64 Mi": (lambda x, y: F.dropout(x, 0.1) + y, [(1 << 26,), (1 << 26,)], torch.float32),
    "call of a small add, 1024": (lambda x, y: x * 2 + y, [(1024,), (1024,)], torch.float32),
}


QUEUEING = 4_000_000  # cycles, about 2 ms


def milliseconds(f, inputs, repeat=15, together=8, queued=True):
    """Of one call among several that the device carries out back to back. `queued`: what the host needs does not count where the device
    needs more, since the device is kept busy until all of them are in its queue; else the longer of the two counts. Inputs are larger
    than the cache, so that a call finds nothing of the one before."""
    for _ in range(5):
        f(*inputs)
    times = []
    for _ in range(repeat):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if queued:
            torch.cuda._sleep(QUEUEING)
        start.record()
        for _ in range(together):
            f(*inputs)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / together)
    return statistics.median(times)


class Backward:
    """The gradients of `f` of its inputs that want one; the last of what is given is the gradient that comes in. The forward runs once."""

    def __init__(self, f):
        self.f, self.out = f, None

    def __call__(self, *inputs):
        if self.out is None:
            self.out = self.f(*inputs[:-1])
        return torch.autograd.grad(self.out, [t for t in inputs if t.requires_grad], inputs[-1], retain_graph=True)


def first_call(f, inputs):
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = f(*inputs)
    torch.cuda.synchronize()
    return time.perf_counter() - start, result


def made(size, dtype, classes):
    if isinstance(size, int):
        return torch.randint(0, classes, (size,), device="cuda")
    if size == FLOAT:
        return torch.ones((), device="cuda")
    return torch.randn(size, device="cuda").to(dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    parser.add_argument("--no-stock", action="store_true")
    parser.add_argument("--only", nargs="*", help="cases whose name contains one of these")
    options = parser.parse_args()
    big = torch.empty(1 << 28, device="cuda")
    copy = milliseconds(lambda a: a.clone(), [big])
    print(f"{torch.cuda.get_device_name()}: copy of 1 GiB {2 * big.numel() * 4 / copy / 1e6:.0f} GB/s")
    del big
    rows = []
    for name, (f, shapes, dtype) in CASES.items():
        if options.only and not any(part in name for part in options.only):
            continue
        inputs = [made(s, dtype, shapes[0][-1] if "cross_entropy" in name else 50257) for s in shapes]
        if "backward" in name:
            for t in inputs[:-1]:
                t.requires_grad_(t.is_floating_point())
        kind = Backward if "backward" in name else lambda run: run
        eager, compiled = kind(f), kind(fusebox.compile(f))
        timed = functools.partial(milliseconds, inputs=inputs, queued=not name.startswith("call"))
        row = {"case": name, "eager_ms": timed(eager)}
        want = eager(*inputs)
        row["fusebox_first_s"], got = first_call(compiled, inputs)
        outputs = list(want) if isinstance(want, tuple) else [want]
        for a, b in zip(got if isinstance(got, tuple) else [got], outputs):
            if "dropout" in name:  # other random numbers than eager's
                assert abs(a.mean().item() - b.mean().item()) < 1e-3 and abs(a.std().item() - b.std().item()) < 1e-3
            else:
                rtol, atol = (2e-2, 1e-2) if dtype == torch.bfloat16 else (1e-4, 1e-5)
                torch.testing.assert_close(a, b, rtol=rtol, atol=max(1e-3, atol * b.abs().max().item()))
        row["fusebox_ms"] = timed(compiled)
        if not options.no_stock:
            stock = kind(torch.compile(f, dynamic=False))
            row["stock_first_s"], _ = first_call(stock, inputs)
            turns = [(timed(compiled), timed(stock)) for _ in range(3)]
            row["fusebox_ms"], row["stock_ms"] = (min(t[i] for t in turns) for i in (0, 1))
            torch._dynamo.reset()
        fusebox.reset()
        moved = (sum(t.numel() * t.element_size() for t in inputs) + sum(t.numel() * t.element_size() for t in outputs)) / 1e6
        row["fusebox_gbps"] = moved / row["fusebox_ms"]
        rows.append(row)
        print("  ".join(f"{k} {v:.4g}" if isinstance(v, float) else v for k, v in row.items()), flush=True)
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "copy_ms": copy, "rows": rows}, out, indent=1)


if __name__ == "__main__":
    main()

"""Kernels on a CUDA device: Fusebox beside eager and the stock torch.compile, milliseconds by CUDA events and seconds to compile.

Each row is checked against eager before it is timed. Inputs are larger than the cache.
"""

import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F

import fusebox

CASES = {
    "gelu(sin x + cos y)*x+1, 64 Mi": (lambda x, y: F.gelu(torch.sin(x) + torch.cos(y)) * x + 1, [(1 << 26,), (1 << 26,)], torch.float32),
    "softmax 32768x2048": (lambda x: torch.softmax(x, -1), [(32768, 2048)], torch.float32),
    "layer_norm 32768x2048": (lambda x, w, b: F.layer_norm(x, (2048,), w, b), [(32768, 2048), (2048,), (2048,)], torch.float32),
    "sum of rows 16384x4096": (lambda x: x.sum(1), [(16384, 4096)], torch.float32),
    "sum of columns 16384x4096": (lambda x: x.sum(0), [(16384, 4096)], torch.float32),
    "sum of all, 64 Mi": (lambda x: x.sum(), [(1 << 26,)], torch.float32),
    "transpose 8192x8192": (lambda x: x.t().contiguous() + 1, [(8192, 8192)], torch.float32),
    "silu(x)*y bf16, 64 Mi": (lambda x, y: F.silu(x) * y, [(1 << 26,), (1 << 26,)], torch.bfloat16),
    "small add, 1024": (lambda x, y: x * 2 + y, [(1024,), (1024,)], torch.float32),
}


def milliseconds(f, inputs, repeat=30):
    for _ in range(5):
        f(*inputs)
    times = []
    for _ in range(repeat):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        f(*inputs)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def first_call(f, inputs):
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = f(*inputs)
    torch.cuda.synchronize()
    return time.perf_counter() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    parser.add_argument("--no-stock", action="store_true")
    options = parser.parse_args()
    big = torch.empty(1 << 28, device="cuda")
    copy = milliseconds(lambda a: a.clone(), [big])
    print(f"{torch.cuda.get_device_name()}: copy of 1 GiB {2 * big.numel() * 4 / copy / 1e6:.0f} GB/s")
    del big
    rows = []
    for name, (f, shapes, dtype) in CASES.items():
        inputs = [torch.randn(s, device="cuda").to(dtype) for s in shapes]
        row = {"case": name, "eager_ms": milliseconds(f, inputs)}
        want = f(*inputs)
        compiled = fusebox.compile(f)
        row["fusebox_first_s"], got = first_call(compiled, inputs)
        torch.testing.assert_close(got, want, rtol=2e-2 if dtype == torch.bfloat16 else 1e-4, atol=1e-3 * max(1.0, want.abs().max().item() * 1e-2))
        row["fusebox_ms"] = milliseconds(compiled, inputs)
        if not options.no_stock:
            stock = torch.compile(f, dynamic=False)
            row["stock_first_s"], _ = first_call(stock, inputs)
            turns = [(milliseconds(compiled, inputs), milliseconds(stock, inputs)) for _ in range(3)]
            row["fusebox_ms"], row["stock_ms"] = (min(t[i] for t in turns) for i in (0, 1))
            torch._dynamo.reset()
        fusebox.reset()
        moved = (sum(t.numel() * t.element_size() for t in inputs) + want.numel() * want.element_size()) / 1e6
        row["fusebox_gbps"] = moved / row["fusebox_ms"]
        rows.append(row)
        print("  ".join(f"{k} {v:.4g}" if isinstance(v, float) else v for k, v in row.items()), flush=True)
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "copy_ms": copy, "rows": rows}, out, indent=1)


if __name__ == "__main__":
    main()

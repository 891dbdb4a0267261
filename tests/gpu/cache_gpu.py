"""The compiled-graph cache with graphs of a CUDA device, across processes: what comes from it is right against eager and is not compiled
again, and damaged entries are made anew.

Exit code 77, with the reason, where there is no CUDA device.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

LIMIT = 2e-2  # of bfloat16; the others keep to it easily


def softmax_rows(compiler):
    import torch
    f = compiler(lambda x, y: (torch.softmax(x * 2, -1) + y.sum(0)).relu())
    return [f(torch.randn(300, 257, device="cuda"), torch.randn(64, 257, device="cuda"))]


def unaligned(compiler):
    import torch
    f = compiler(lambda x: torch.exp(x) * 3 + 1)
    return [f(torch.randn(1000, device="cuda")[1:]), f(torch.randn(999, device="cuda"))]


def training(compiler):
    import torch
    from torch import nn
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 10)).cuda()
    x, y = torch.randn(128, 64, device="cuda"), torch.randint(0, 10, (128,), device="cuda")
    run, found = compiler(model), []
    for _ in range(3):
        model.zero_grad()
        loss = nn.functional.cross_entropy(run(x), y)
        loss.backward()
        found += [loss.detach(), *[p.grad.clone() for p in model.parameters()]]
    return found


def attention(compiler):
    import torch
    import torch.nn.functional as F

    def scores(q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) / 8, -1) @ v
    found = []
    for f in (scores, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)):
        q, k, v = (torch.randn(2, 4, 256, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
        out = compiler(f)(q, k, v)
        out.float().square().mean().backward()
        found += [out.detach(), q.grad, k.grad, v.grad]
    return found


def sizes_that_change(compiler):
    import torch
    f = compiler(lambda x: (x - x.mean(0)).cumsum(1).sum(-1) * x.shape[0])
    return [f(torch.randn(n, 40, device="cuda")) for n in (5, 12, 77, 1000)]


def written_inputs(compiler):
    import torch

    def f(cache, x):
        cache[:, 3:5] = x
        return cache.sum()
    cache = torch.zeros(8, 16, device="cuda")
    g = compiler(f)
    return [t.clone() for _ in range(3) for t in (g(cache, torch.randn(8, 2, device="cuda")), cache)]


def large_reduction(compiler):
    import torch
    return [compiler(lambda x: x.square().sum(0) + x.amax(0))(torch.randn(8192, 4096, device="cuda"))]


def cuda_graphs(compiler):
    import torch
    f = compiler(lambda x: torch.tanh(x @ x).sum(-1), mode="reduce-overhead")
    return [f(torch.randn(64, 64, device="cuda")).clone() for _ in range(5)]


PROGRAMS = [softmax_rows, unaligned, training, attention, sizes_that_change, written_inputs, large_reduction, cuda_graphs]


def child():
    import torch
    import fusebox
    answers = {}
    for seed, program in enumerate(PROGRAMS, int(sys.argv[2])):
        results, start = [], 0.0
        for compiler in (lambda f, **_: f, fusebox.compile):
            torch.manual_seed(seed)
            before, start = fusebox.counters(), time.perf_counter()
            results.append(program(compiler))
            torch.cuda.synchronize()
            seconds = time.perf_counter() - start
        after = fusebox.counters()
        worst = 0.0
        for want, got in zip(*results, strict=True):
            assert want.shape == got.shape and want.dtype == got.dtype, program.__name__
            want, got = want.double(), got.double()
            worst = max(worst, ((got - want).norm() / want.norm().clamp_min(1e-12)).item())
        assert worst < LIMIT, (program.__name__, worst)
        assert after["eager_runs"] == before["eager_runs"], program.__name__
        counts = {key: after[key] - before[key] for key in after if key.startswith("cache_") and isinstance(after[key], int)}
        answers[program.__name__] = {"seconds": round(seconds, 3), "error": worst, **counts}
    print(json.dumps(answers))


def process(directory, seed):
    env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=directory)
    run = subprocess.run([sys.executable, __file__, "--child", str(seed)], env=env, capture_output=True, text=True, timeout=300)
    if run.returncode:
        raise SystemExit(run.stdout[-2000:] + run.stderr[-4000:])
    return json.loads(run.stdout.strip().splitlines()[-1]), run.stderr


def main():
    import torch
    if not torch.cuda.is_available():
        print("no CUDA device")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        cold, _ = process(directory, 1)
        warm, _ = process(directory, 101)
        for name, seen in cold.items():
            print(f"{name}: cold {seen['seconds']} s, warm {warm[name]['seconds']} s, errors {seen['error']:.1e} {warm[name]['error']:.1e}")
            assert seen["cache_misses"] > 0 and seen["cache_bypasses"] == 0, (name, seen)
            assert warm[name]["cache_hits"] == seen["cache_misses"] + seen["cache_hits"], (name, seen, warm[name])
            assert warm[name]["cache_misses"] == 0 and warm[name]["cache_bypasses"] == 0, (name, warm[name])
        entries = [p for p in pathlib.Path(directory).glob("fusebox/??/*") if not p.name.startswith(".")]
        for i, entry in enumerate(entries):
            content = bytearray(entry.read_bytes())
            content[len(content) * (i % 7 + 1) // 9] ^= 1 << i % 8
            entry.write_bytes(content)
        damaged, errors = process(directory, 201)
        assert sum(seen["cache_hits"] for seen in damaged.values()) <= sum(seen["cache_hits"] for seen in cold.values()), damaged
        assert "removed" in errors, errors
        again, _ = process(directory, 301)
        assert all(seen["cache_misses"] == 0 for seen in again.values()), again
    print(f"{len(cold)} programs, {len(entries)} entries: all from the cache")
    return 0


if __name__ == "__main__":
    sys.exit(child() if sys.argv[1:2] == ["--child"] else main())

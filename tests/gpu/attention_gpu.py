"""Attention as one generated kernel on a CUDA device, flex_attention's and what people write, against float64.

    python tests/gpu/attention_gpu.py [--only NAME …] [--bench [--stock] [--eager]] [--json results.json]

Every case runs with fresh random inputs, must be one kernel, and one more for its gradients (no product is called), and must be as
near to float64 as eager is, gradients too. `--bench` times the kernels, with `--stock` beside stock torch.compile. Exit code 77, with the reason, where
there is no CUDA device.
"""

import argparse
import json
import math
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import fusebox

CASES = []
# (batch, heads, heads of keys, rows, columns, width, depth)
USUAL = [(2, 4, 4, 256, 256, 64, 64), (1, 3, 3, 100, 77, 64, 64), (2, 4, 2, 128, 192, 128, 128),
         (1, 2, 2, 130, 66, 96, 96)]
EDGES = [(1, 8, 1, 1, 333, 64, 64), (1, 2, 2, 64, 64, 16, 16), (1, 2, 1, 130, 66, 256, 256),
         (2, 2, 2, 50, 40, 72, 40), (1, 4, 2, 7, 5, 32, 32), (3, 6, 2, 65, 640, 128, 64),
         (1, 1, 1, 1, 1, 64, 64), (1, 2, 2, 513, 1025, 64, 64)]


# Without heads that are wider than gradients' kernels.
TRAINED = USUAL + [s for s in EDGES if s[5] <= 128]


def case(shapes=USUAL, dtypes=(torch.bfloat16, torch.float16)):
    """A function of the shape that gives (score_mod or None, mask_mod or None)."""
    def add(f):
        CASES.append((f, shapes, dtypes))
        return f
    return add


@case(USUAL + EDGES)
def plain(shape):
    return None, None


@case(USUAL + EDGES)
def alibi(shape):
    slopes = torch.rand(shape[1], device="cuda")
    return lambda score, b, h, m, n: score + slopes[h] * (n - m), None


@case(USUAL + EDGES)
def causal(shape):
    return None, lambda b, h, m, n: m >= n


@case()
def window(shape):
    return None, lambda b, h, m, n: (m >= n) & (m - n < 50)


@case()
def rows_without_columns(shape):
    return None, lambda b, h, m, n: m >= n + 30


@case()
def no_columns_at_all(shape):
    return None, lambda b, h, m, n: n < -1


@case()
def lengths(shape):
    length = torch.randint(1, shape[4] + 1, (shape[0],), device="cuda")
    return None, lambda b, h, m, n: n < length[b]


@case()
def documents(shape):
    size = max(shape[3], shape[4])
    ids = (torch.arange(size, device="cuda") * 5 // size).to(torch.int32)
    return None, lambda b, h, m, n: (ids[m] == ids[n]) | (n == 0)


@case()
def capped(shape):
    return lambda score, b, h, m, n: 5 * torch.tanh(score / 5), lambda b, h, m, n: m + 3 >= n


@case()
def table(shape):
    bias = torch.randn(shape[1], shape[3], shape[4], device="cuda", dtype=torch.bfloat16)
    return lambda score, b, h, m, n: score + bias[h, m, n], None


@case()
def relative_positions(shape):
    rows, columns = shape[3], shape[4]
    bias = torch.randn(rows + columns, shape[1], device="cuda")
    return lambda score, b, h, m, n: score + bias[m - n + columns, h], lambda b, h, m, n: (m - n).abs() < 100


@case()
def scores_of_batches(shape):
    factor = torch.rand(shape[0], shape[1], device="cuda")
    return lambda score, b, h, m, n: torch.where(h % 2 == 0, score * factor[b, h], -score.abs()), None


def reference(q, k, v, score_mod, mask_mod, scale):
    """In float64, scores of functions' values from float32."""
    batch, heads, rows, _ = q.shape
    columns = k.shape[2]
    k, v = (t.repeat_interleave(heads // t.shape[1], 1).double() for t in (k, v))
    scores = q.double() @ k.transpose(-1, -2) * scale
    b, h, m, n = (torch.arange(s, device="cuda").view(shape) for s, shape in
                  ((batch, (-1, 1, 1, 1)), (heads, (-1, 1, 1)), (rows, (-1, 1)), (columns, (-1,))))
    if score_mod:
        scores = score_mod(scores, b, h, m, n)
    if mask_mod:
        scores = torch.where(mask_mod(b, h, m, n), scores, -math.inf)
    scores = scores.expand(batch, heads, rows, columns)
    weights = torch.where((scores == -math.inf).all(-1, keepdim=True), 0.0, torch.softmax(scores, -1))
    return weights @ v


def inputs(shape, dtype):
    batch, heads, kv, rows, columns, width, depth = shape
    shapes = (batch, heads, rows, width), (batch, kv, columns, width), (batch, kv, columns, depth)
    return tuple(torch.randn(s, device="cuda", dtype=dtype) for s in shapes)


def worse(got, eager, want, least_size, dtype):
    """What is wrong with errors against float64 that are beyond twice eager's; the largest of some thousands may be chance, their mean is none."""
    limit = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}[dtype]
    size = want.abs().amax().clamp(min=least_size)
    (error, mean), (eagers, eagers_mean) = ((d.amax().item(), d.mean().item()) for d in ((t.double() - want).abs() / size for t in (got, eager)))
    allowed = 2 * max(eagers, limit)
    if error <= allowed or (error <= 2 * allowed and mean <= 1.1 * eagers_mean):
        return None
    return f"error {error:.2e}, {mean:.2e} in the mean, where eager has {eagers:.2e}, {eagers_mean:.2e}"


def check(name, run, args, want, dtype, calls=0):
    fusebox.reset()
    before = fusebox.counters()
    with torch.no_grad():
        got = fusebox.compile(run)(*args)
        torch.cuda.synchronize()
        eager = run(*args)
    after = fusebox.counters()
    made = after["extern_calls"] - before["extern_calls"]
    strides = [[s for s, size in zip(t.stride(), t.shape) if size > 1] for t in (got, eager)]
    if got.shape != want.shape or got.dtype != eager.dtype or strides[0] != strides[1]:
        return f"{tuple(got.shape)} {got.dtype} {got.stride()} for {tuple(want.shape)} {eager.dtype} {eager.stride()}"
    if wrong := worse(got, eager, want, 1e-3, dtype):
        return wrong
    if made != calls:
        return f"{made} operators are library calls"
    if after["eager_runs"] > before["eager_runs"] or after["failed_stages"] > before["failed_stages"]:
        return "a stage of the compiler failed"
    return None


def check_gradients(run, args, reference, dtype, calls=0):
    """Of every argument, and that nothing but the two kernels and what is made of rows runs."""
    fusebox.reset()
    before = fusebox.counters()
    leaves = [t.detach().clone().requires_grad_() for t in args]
    out = fusebox.compile(run)(*leaves)
    arriving = torch.randn_like(out)
    got = torch.autograd.grad(out, leaves, arriving)
    torch.cuda.synchronize()
    after = fusebox.counters()
    eager = torch.autograd.grad(run(*leaves), leaves, arriving)
    wide = [t.detach().double().requires_grad_() for t in args]
    wanted = torch.autograd.grad(reference(*wide), wide, arriving.double())
    for i, (g, e, w) in enumerate(zip(got, eager, wanted)):
        # Gradients of values come from weights, the others from differences of theirs: of nothing but rounding where all cancels out.
        if g.shape != e.shape or g.dtype != e.dtype:
            return f"gradient {i} is {tuple(g.shape)} {g.dtype} for {tuple(e.shape)} {e.dtype}"
        if wrong := worse(g, e, w, 1e-2, dtype):
            return f"gradient {i}: {wrong}"
    made = after["extern_calls"] - before["extern_calls"]
    if made != calls:
        return f"{made} operators are library calls"
    if after["eager_runs"] > before["eager_runs"] or after["failed_stages"] > before["failed_stages"]:
        return "a stage of the compiler failed"
    return None


def flex_cases(only):
    for make, shapes, dtypes in CASES:
        if only and make.__name__ not in only:
            continue
        for shape in shapes:
            for dtype in dtypes:
                q, k, v = inputs(shape, dtype)
                score_mod, mask_mod = make(shape)
                batch = shape[0] if make is lengths else None
                mask = mask_mod and create_block_mask(mask_mod, batch, None, shape[3], shape[4], device="cuda")
                run = lambda q, k, v: flex_attention(q, k, v, score_mod=score_mod, block_mask=mask, enable_gqa=True)
                name = f"{make.__name__} {shape} {str(dtype)[6:]}"
                eager = lambda q, k, v: reference(q, k, v, score_mod, mask_mod, 1 / math.sqrt(shape[5]))
                want = eager(q, k, v)
                yield name, lambda: check(name, run, (q, k, v), want, dtype)
                if shape in TRAINED:
                    yield name + " gradients", lambda: check_gradients(run, (q, k, v), eager, dtype)


def by_hand(q, k, v):
    return F.softmax((q @ k.transpose(-1, -2) * 0.1).float(), -1).to(q.dtype) @ v


def by_hand_masked(q, k, v):
    scores = q @ k.transpose(-1, -2) / 8
    mask = torch.ones(q.shape[-2], k.shape[-2], device=q.device, dtype=torch.bool).tril()
    return torch.softmax(scores.masked_fill(~mask, -math.inf), -1) @ v


def packed(x):
    """Heads side by side in a row, as projections leave them."""
    q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in x.chunk(3, -1))
    return flex_attention(q, k, v, score_mod=lambda score, b, h, m, n: score - (m - n).abs() * 0.1)


def misaligned(x, y, z):
    """Rows that begin at no multiple of 16 bytes."""
    return flex_attention(x[..., 1:], y[..., :-1], z[..., 1:])


def hand_cases(only):
    for dtype in (torch.bfloat16, torch.float16):
        for shape in ((2, 4, 4, 256, 256, 64, 64), (1, 3, 3, 100, 78, 64, 64)):
            q, k, v = inputs(shape, dtype)
            for run, mask, scale in ((by_hand, None, 0.1), (by_hand_masked, lambda b, h, m, n: m >= n, 0.125)):
                eager = lambda q, k, v: reference(q, k, v, None, mask, scale)
                name = f"{run.__name__} {shape} {str(dtype)[6:]}"
                yield name, lambda: check(name, run, (q, k, v), eager(q, k, v), dtype)
                yield name + " gradients", lambda: check_gradients(run, (q, k, v), eager, dtype)
        x = torch.randn(2, 200, 3 * 4 * 64, device="cuda", dtype=dtype)
        def unpacked(x):
            q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in x.chunk(3, -1))
            return reference(q, k, v, lambda s, b, h, m, n: s - (m - n).abs() * 0.1, None, 0.125)
        yield "packed", lambda: check("packed", packed, (x,), unpacked(x), dtype)
        # Operands are copied for the product: forward keeps the copy, gradients are products with another one, and five library calls.
        yield "packed gradients", lambda: check_gradients(packed, (x,), unpacked, dtype, calls=5)
        x, y, z = (torch.randn(2, 3, n, 65, device="cuda", dtype=dtype) for n in (90, 70, 70))
        shifted = lambda x, y, z: reference(x[..., 1:], y[..., :-1], z[..., 1:], None, None, 0.125)
        yield "misaligned", lambda: check("misaligned", misaligned, (x, y, z), shifted(x, y, z), dtype)
        yield "misaligned gradients", lambda: check_gradients(misaligned, (x, y, z), shifted, dtype, calls=5)


def milliseconds(step, args):
    for _ in range(5):
        step(*args)
    times = []
    for _ in range(30):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step(*args)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def bench(only, stock, eager):
    rows = []
    usual = (4, 16, 16, 4096, 4096, 64, 64)
    for name, make, shape in (("alibi", alibi, usual), ("plain", plain, usual), ("causal", causal, usual),
                              ("causal", causal, (2, 16, 16, 4096, 4096, 128, 128)), ("window", window, usual),
                              ("capped gqa", capped, (2, 32, 8, 2048, 2048, 128, 128)), ("documents", documents, usual),
                              ("alibi", alibi, (1, 8, 8, 2048, 2048, 256, 256))):
        if only and name not in only:
            continue
        q, k, v = inputs(shape, torch.bfloat16)
        score_mod, mask_mod = make(shape)
        block_mask = create_block_mask(mask_mod, None, None, shape[3], shape[4], device="cuda") if mask_mod else None
        gqa = shape[1] != shape[2]
        run = lambda q, k, v: flex_attention(q, k, v, score_mod=score_mod, block_mask=block_mask, enable_gqa=gqa)
        row = {"name": name, "shape": shape}
        with torch.no_grad():
            fusebox.reset()
            row["fusebox_ms"] = milliseconds(fusebox.compile(run), (q, k, v))
            if stock:
                torch._dynamo.reset()
                row["stock_ms"] = milliseconds(torch.compile(run), (q, k, v))
            if eager:
                row["eager_ms"] = milliseconds(run, (q, k, v))
        row["tflops"] = 2e-9 * shape[0] * shape[1] * shape[3] * shape[4] * (shape[5] + shape[6]) / row["fusebox_ms"]
        leaves = [t.requires_grad_() for t in (q, k, v)]
        arriving = torch.randn(*shape[:2], shape[3], shape[6], device="cuda", dtype=torch.bfloat16)

        def training(run):
            def step(q, k, v):
                torch.autograd.grad(run(q, k, v), leaves, arriving)
            return step

        fusebox.reset()
        row["fusebox_training_ms"] = milliseconds(training(fusebox.compile(run)), leaves)
        if stock:
            torch._dynamo.reset()
            row["stock_training_ms"] = milliseconds(training(torch.compile(run)), leaves)
        if eager:
            row["eager_training_ms"] = milliseconds(training(run), leaves)
        rows.append(row)
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--bench", action="store_true")
    parser.add_argument("--stock", action="store_true")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no CUDA device")
        return 77
    torch.manual_seed(1)
    if options.bench:
        rows = bench(options.only, options.stock, options.eager)
        if options.json:
            with open(options.json, "w") as out:
                facts = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
                json.dump(facts | {"rows": rows}, out, indent=1)
        return 0
    failed = count = 0
    for cases in (flex_cases, hand_cases):
        for name, run in cases(options.only):
            if options.only and name.split()[0] not in options.only:
                continue
            count += 1
            try:
                problem = run()
            except Exception as error:
                problem = f"{type(error).__name__}: {str(error)[:300]}"
            if problem:
                failed += 1
                print(f"FAIL {name}: {problem}", flush=True)
                if "CUDA" in problem:
                    break
    print(f"{failed} of {count} attentions failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

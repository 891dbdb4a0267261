"""Programs whose sizes vary between calls: Fusebox beside the stock torch.compile, eager and our own static code.

    python tests/bench/sizes.py [--device cuda] [--programs decoder_train …] [--engines stock fusebox static] [--json results.json]

A program is called with a first size, with a second one (at which one dimension becomes symbolic: the hint of what is compiled) and with
five others. Every engine runs in a process of its own with empty caches. Told are, for each size, the medians of steps that end with a
synchronisation, the compiles, the two first calls, and the greatest difference to eager's results and gradients (relative to their norm).
Ratios: `stock / fusebox` for each size (above 1, Fusebox is faster); `static / fusebox` at the hinted size only, where `static` is Fusebox
with `dynamic=False`.
"""

import argparse
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from measured_child import geomean, measured
from measured_step import apart, median_ms, step_of, synchronise

PROGRAMS = {}


def program(*sizes, cpu):
    """Registers a builder; sizes: the first, the hint, five others. `cpu`: what sizes are divided by on a CPU."""
    def keep(build):
        PROGRAMS[build.__name__] = (build, sizes, cpu)
        return build
    return keep


def autocast(device):
    return torch.autocast(device, torch.bfloat16)


class Block(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask=None):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.first(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))


@program(1024, 896, 1000, 512, 333, 777, 1024, cpu=8)
def decoder_train(device):
    width, layers, vocabulary, batch = (768, 6, 50257, 8) if device == "cuda" else (128, 2, 1001, 2)

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
            self.blocks = nn.ModuleList(Block(width, width // 64, True) for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, ids):
            with autocast(device):
                x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
                for block in self.blocks:
                    x = block(x)
                logits = self.head(self.norm(x))
                return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]).float(), ids[:, 1:].reshape(-1))
    return Decoder().to(device), lambda n: (torch.randint(0, vocabulary, (batch, n), device=device),), True


@program(512, 384, 500, 256, 129, 77, 448, cpu=4)
def encoder_masked(device):
    width, layers, batch = (768, 6, 16) if device == "cuda" else (128, 2, 2)

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block(width, width // 64, False) for _ in range(layers))

        def forward(self, x, kept):
            mask = kept[:, None, None, :].expand(-1, 1, x.shape[1], -1)
            for block in self.blocks:
                x = block(x, mask)
            return (x * kept[..., None]).sum(1) / kept.sum(1, keepdim=True)
    kind = torch.bfloat16 if device == "cuda" else torch.float32

    def inputs(n):
        kept = torch.arange(n, device=device)[None] < torch.randint(n // 2, n + 1, (batch, 1), device=device)
        return torch.randn(batch, n, width, device=device, dtype=kind), kept
    return Encoder().to(device, kind), inputs, False


@program(2048, 1536, 2000, 1024, 555, 1111, 2047, cpu=32)
def rotary_prefill(device):
    width, heads, groups, layers, batch = (1024, 16, 4, 6, 4) if device == "cuda" else (128, 4, 2, 2, 1)
    size = width // heads
    kind = torch.bfloat16 if device == "cuda" else torch.float32

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.RMSNorm(width), nn.RMSNorm(width)
            self.q, self.kv, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * groups * size, bias=False), nn.Linear(width, width, bias=False)
            self.gate, self.up, self.down = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False), nn.Linear(3 * width, width, bias=False)

        def forward(self, x, cos, sin):
            batch, length, _ = x.shape
            h = self.one(x)
            q = self.q(h).view(batch, length, heads, size).transpose(1, 2)
            k, v = self.kv(h).view(batch, length, 2 * groups, size).transpose(1, 2).chunk(2, 1)

            def turned(t):
                a, b = t.chunk(2, -1)
                return t * cos + torch.cat((-b, a), -1) * sin
            y = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True, enable_gqa=True)
            x = x + self.o(y.transpose(1, 2).reshape(batch, length, width))
            h = self.two(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Layer() for _ in range(layers))
            self.register_buffer("steps", 1 / 10000 ** (torch.arange(0, size, 2) / size))

        def forward(self, x):
            angles = torch.outer(torch.arange(x.shape[1], device=x.device).float(), self.steps.float())
            cos, sin = (f(torch.cat((angles, angles), -1)).to(x.dtype) for f in (torch.cos, torch.sin))
            for layer in self.layers:
                x = layer(x, cos, sin)
            return x
    return Model().to(device, kind), lambda n: (torch.randn(batch, n, width, device=device, dtype=kind),), False


@program(64, 48, 33, 17, 64, 7, 56, cpu=8)
def resnet_train(device):
    import torchvision
    model = torchvision.models.resnet18().to(device, memory_format=torch.channels_last)

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            with autocast(device):
                return self.model(x).float().logsumexp(1).mean()
    side = 224 if device == "cuda" else 64
    return Loss(), lambda n: (torch.randn(n, 3, side, side, device=device).to(memory_format=torch.channels_last),), True


@program(32, 24, 31, 16, 9, 20, 28, cpu=4)
def unet_images(device):
    width = 96 if device == "cuda" else 16

    class Step(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.norm, self.conv = nn.GroupNorm(8, a), nn.Conv2d(a, b, 3, padding=1)

        def forward(self, x):
            return self.conv(F.silu(self.norm(x)))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            w = width
            self.start, self.down1, self.down2 = nn.Conv2d(3, w, 3, padding=1), Step(w, 2 * w), Step(2 * w, 4 * w)
            self.middle, self.up2, self.up1, self.end = Step(4 * w, 4 * w), Step(6 * w, 2 * w), Step(3 * w, w), nn.Conv2d(w, 3, 1)

        def forward(self, x):
            a = self.start(x)
            b = self.down1(F.avg_pool2d(a, 2))
            c = self.middle(self.down2(F.avg_pool2d(b, 2)))
            b = self.up2(torch.cat((F.interpolate(c, scale_factor=2, mode="nearest"), b), 1))
            return self.end(self.up1(torch.cat((F.interpolate(b, scale_factor=2, mode="nearest"), a), 1)))
    kind = torch.float16 if device == "cuda" else torch.float32
    return UNet().to(device, kind), lambda n: (torch.randn(4, 3, 8 * n, 8 * n, device=device, dtype=kind),), False


@program(16384, 12000, 16383, 8192, 5000, 1001, 14001, cpu=32)
def perceptron_train(device):
    width = 1024 if device == "cuda" else 256
    layers = [part for _ in range(4) for part in (nn.Linear(width, width), nn.LayerNorm(width), nn.GELU(), nn.Dropout(0.0))]
    model = nn.Sequential(*layers, nn.Linear(width, 10)).to(device)
    return model, lambda n: (torch.randn(n, width, device=device),), True


@program(8192, 6144, 5000, 4097, 2000, 8191, 999, cpu=16)
def vocabulary_loss_train(device):
    vocabulary = 32000 if device == "cuda" else 2003
    head = nn.Linear(512, vocabulary, bias=False).to(device)

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = head

        def forward(self, x, labels):
            with autocast(device):
                return F.cross_entropy(self.head(x), labels, ignore_index=-100, label_smoothing=0.1)
    return Loss(), lambda n: (torch.randn(n, 512, device=device), torch.randint(0, vocabulary, (n,), device=device)), True


@program(2**24, 2**23 + 5, 2**24 - 1, 5_000_001, 1_000_000, 3_333_333, 2**22, cpu=16)
def pointwise_chain(device):
    def chain(x, y):
        a = torch.where(x > 0, x.sigmoid() * y, y.tanh() + x)
        return (a * 2 - y).clamp(-1, 1), a.square().to(torch.float16)
    return chain, lambda n: (torch.randn(n, device=device), torch.randn(n, device=device)), False


@program(4096, 3000, 4095, 2048, 777, 1500, 3777, cpu=4)
def softmax_rows_train(device):
    def rows(x, w):
        y = F.softmax(F.layer_norm(x.float(), x.shape[-1:]) * 3, -1)
        return (y * w).sum(-1)
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    count = 8192 if device == "cuda" else 256
    return rows, lambda n: (torch.randn(count, n, device=device, dtype=kind, requires_grad=True), torch.randn(n, device=device)), True


@program(100_000, 80_000, 99_999, 50_001, 12_345, 70_000, 90_001, cpu=32)
def graph_messages_train(device):
    layer = nn.Linear(128, 128).to(device)

    class Messages(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x, start, end):
            for _ in range(2):
                x = F.relu(self.layer(torch.zeros_like(x).index_add_(0, end, x[start]) / 8 + x))
            return x

    def inputs(n):
        return torch.randn(n, 128, device=device), torch.randint(0, n, (8 * n,), device=device), torch.randint(0, n, (8 * n,), device=device)
    return Messages(), inputs, True


@program(65536, 50000, 65535, 32768, 20001, 44100, 60001, cpu=32)
def dilated_audio_train(device):
    width, layers = (64, 8) if device == "cuda" else (16, 4)

    class Wave(nn.Module):
        def __init__(self):
            super().__init__()
            self.start = nn.Conv1d(1, width, 1)
            self.both = nn.ModuleList(nn.Conv1d(width, 2 * width, 3, padding=2**i, dilation=2**i) for i in range(layers))
            self.out = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))

        def forward(self, x):
            x = self.start(x)
            for both, out in zip(self.both, self.out):
                a, b = both(x).chunk(2, 1)
                x = x + out(a.tanh() * b.sigmoid())
            return x.mean(1)
    return Wave().to(device), lambda n: (torch.randn(4, 1, n, device=device),), True


@program(512, 513, 514, 600, 777, 1024, 2000, cpu=2)
def growing_cache(device):
    width, heads, batch, layers = (1024, 16, 8, 6) if device == "cuda" else (128, 4, 2, 2)
    size, kind = width // heads, torch.bfloat16 if device == "cuda" else torch.float32
    weights = [nn.Linear(width, 3 * width, bias=False).to(device, kind) for _ in range(layers)]

    def decode(x, keys, values):
        kept = []
        for layer, k0, v0 in zip(weights, keys, values):
            q, k, v = (t.view(batch, 1, heads, size).transpose(1, 2) for t in layer(F.rms_norm(x, (width,))).chunk(3, -1))
            k, v = torch.cat((k0, k), 2), torch.cat((v0, v), 2)
            x = x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, 1, width)
            kept += [k, v]
        return x, kept

    def inputs(n):
        make = lambda *sizes: torch.randn(*sizes, device=device, dtype=kind)
        return make(batch, 1, width), [make(batch, heads, n, size) for _ in range(layers)], [make(batch, heads, n, size) for _ in range(layers)]
    return decode, inputs, False


@program(4096, 3000, 4095, 2048, 100, 1777, 3500, cpu=8)
def recommender_train(device):
    class Recommender(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(20000, 64, mode="sum") for _ in range(8))
            self.bottom = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU())
            self.top = nn.Sequential(nn.Linear(64 + 36, 256), nn.ReLU(), nn.Linear(256, 1))
            self.register_buffer("rows", torch.tril_indices(9, 9, -1))

        def forward(self, dense, sparse):
            x = self.bottom(dense)
            all = torch.stack([x] + [table(ids) for table, ids in zip(self.tables, sparse)], 1)
            pairs = torch.bmm(all, all.transpose(1, 2))[:, self.rows[0], self.rows[1]]
            return self.top(torch.cat((x, pairs), 1)).sigmoid()
    return Recommender().to(device), lambda n: (torch.randn(n, 13, device=device), torch.randint(0, 20000, (8, n, 10), device=device)), True


def child(name, engine, device, seconds):
    build, sizes, divisor = PROGRAMS[name]
    if device == "cpu":
        sizes = [max(2, size // divisor) for size in sizes]
    torch.manual_seed(0)
    target, inputs, train = build(device)
    if engine == "stock":
        from torch._dynamo.utils import counters
        compiled, entries = torch.compile(target), lambda: counters["stats"]["unique_graphs"]
    elif engine == "eager":
        compiled, entries = target, lambda: 0
    else:
        import fusebox
        compiled = fusebox.compile(target, dynamic=False if engine == "static" else None)
        entries = lambda: fusebox.counters()["graphs"]
    rows = {}

    def called(index):
        """The first call of a size, beside eager's; returns the step to measure."""
        torch.manual_seed(index)
        args = inputs(sizes[index])
        want = step_of(target, args, train)()
        step = step_of(compiled, args, train)
        synchronise(device)
        start = time.perf_counter()
        got = step()
        synchronise(device)
        rows.setdefault(str(sizes[index]), {"first_s": time.perf_counter() - start, "error": apart(got, want)})
        return step
    for index in range(2) if engine != "static" else (1,):
        called(index)
    print("READY", flush=True)
    sys.stdin.readline()
    for index, size in enumerate(sizes):
        if engine != "static" or index == 1:
            step = called(index)
            rows[str(size)] |= {"ms": median_ms(step, device, seconds), "graphs": entries()}
    result = {"rows": rows}
    if engine not in ("stock", "eager"):
        result["counters"] = {key: fusebox.counters()[key] for key in ("graphs", "graph_breaks", "recompiles", "eager_runs")}
    print("RESULT " + json.dumps(result), flush=True)


def report(row):
    """The row as text; adds `stock_ratios` (by size) and `static_ratio`."""
    ours, stock, static = (row.get(engine, {}).get("rows", {}) for engine in ("fusebox", "stock", "static"))
    lines = [f"{row['program']}: {row.get('fusebox', {}).get('counters', '')}"]
    row["stock_ratios"] = {size: stock[size]["ms"] / ours[size]["ms"] for size in ours if size in stock}
    for size, made in ours.items():
        if size in static:
            row["static_ratio"] = static[size]["ms"] / made["ms"]
    for size in ours or stock:
        parts = [f"{engine} {row[engine]['rows'][size]['ms']:.3f} ms (first {row[engine]['rows'][size]['first_s']:.2f} s, graphs {row[engine]['rows'][size]['graphs']}, "
                 f"error {row[engine]['rows'][size]['error']:.0e})" for engine in row["engines"] if size in row[engine].get("rows", {})]
        lines.append(f"{size:>9}: {row['stock_ratios'].get(size, float('nan')):.2f}  " + "; ".join(parts))
    lines += [f"{engine}: {row[engine]['error']}" for engine in row["engines"] if "error" in row[engine]]
    return "\n  ".join(lines + ([f"static / fusebox {row['static_ratio']:.3f}"] if "static_ratio" in row else []))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--engines", nargs="*", default=["stock", "fusebox", "static"], choices=["stock", "fusebox", "static", "eager"])
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--together", type=int, default=1, help="so many programs compile at once (first calls are slower then)")
    parser.add_argument("--json")
    parser.add_argument("--child", nargs=2)
    options = parser.parse_args()
    if options.child:
        child(*options.child, options.device, options.seconds)
        return
    rows = []
    for name, made in measured(__file__, options.programs, options.engines, options.together, "--device", options.device, "--seconds", options.seconds):
        rows.append({"program": name, "engines": options.engines} | made)
        print(report(rows[-1]), flush=True)
    stock = [ratio for row in rows for ratio in row["stock_ratios"].values()]
    static = [row["static_ratio"] for row in rows if "static_ratio" in row]
    print(f"stock / fusebox: geomean {geomean(stock):.3f}, least {min(stock, default=float('nan')):.3f}; "
          f"static / fusebox: geomean {geomean(static):.3f}, least {min(static, default=float('nan')):.3f}")
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu", "torch": torch.__version__, "rows": rows,
                       "stock_geomean": geomean(stock), "stock_least": min(stock, default=None),
                       "static_geomean": geomean(static), "static_least": min(static, default=None)}, out, indent=1)


if __name__ == "__main__":
    main()

"""Small programs of many kinds on a CPU: Fusebox beside the stock torch.compile and eager.

    python tests/bench/cpu_programs.py [--programs images_blurred …] [--threads 1] [--together 4] [--json results.json]

Every engine runs in a process of its own with empty caches; `--together` programs compile at once, then one process measures at a time, so that
all have the same cores. Told are medians of steps, the first call, and the greatest difference to eager's results and gradients (relative to
their norm). Ratios are stock / Fusebox: above 1, Fusebox is faster.
"""

import argparse
import json
import math
import platform
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from measured_child import geomean, measured
from measured_step import apart, median_ms, registry, step_of

# Builders return a function and its arguments.
PROGRAMS, program = registry()


def leaf(*sizes, kind=torch.float32, scale=1.0):
    return (torch.randn(*sizes, dtype=kind) * scale).requires_grad_()


@program()
def images_blurred():
    taps = torch.exp(-torch.arange(-3.0, 4) ** 2 / 4)
    down, across = (taps / taps.sum()).view(1, 1, 7, 1).repeat(3, 1, 1, 1), (taps / taps.sum()).view(1, 1, 1, 7).repeat(3, 1, 1, 1)
    return lambda x: F.conv2d(F.conv2d(F.pad(x, (3, 3, 3, 3), "reflect"), down, groups=3), across, groups=3), torch.rand(8, 3, 256, 256)


@program()
def images_blurred_at_once():
    taps = torch.exp(-torch.arange(-3.0, 4) ** 2 / 4)
    taps = taps / taps.sum()
    window = (taps[:, None] * taps).expand(3, 1, 7, 7)
    return lambda x: F.conv2d(F.pad(x, (3, 3, 3, 3), "reflect"), window, groups=3), torch.rand(8, 3, 224, 224)


@program()
def images_resized():
    return lambda x: F.interpolate(x / 255, size=(224, 224), mode="bilinear"), torch.rand(8, 3, 256, 300) * 255


@program()
def images_enlarged():
    return lambda x: F.interpolate(x, size=(640, 640), mode="bicubic").clamp(0, 1), torch.rand(2, 3, 480, 600)


@program()
def features_enlarged():
    return lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True).relu(), torch.rand(2, 256, 32, 32)


@program()
def images_from_bytes():
    mean, spread = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    images = torch.randint(0, 256, (16, 256, 256, 3), dtype=torch.uint8)
    return lambda x: ((x.float() / 255 - mean) / spread).permute(0, 3, 1, 2).contiguous(), images


@program()
def images_to_hue():
    def hue(x):
        most, which = x.max(1)
        span = most - x.min(1)[0] + 1e-8
        r, g, b = x.unbind(1)
        turn = torch.where(which == 0, (g - b) / span % 6, torch.where(which == 1, (b - r) / span + 2, (r - g) / span + 4)) / 6
        return torch.stack([turn, span / (most + 1e-8), most], 1)
    return hue, torch.rand(8, 3, 256, 256)


@program()
def images_of_float16():
    weight = torch.randn(64, 12, 3, 3).half() * 0.1
    return lambda x: F.leaky_relu(F.conv2d(F.pad(F.pixel_unshuffle(x * 2 - 1, 2), (1, 1, 1, 1), mode="reflect"), weight), 0.2), torch.rand(4, 3, 128, 128).half()


@program()
def separable_convolutions():
    net = nn.Sequential(nn.Conv2d(64, 64, 5, padding=2, groups=64), nn.BatchNorm2d(64), nn.Hardswish(), nn.Conv2d(64, 128, 1), nn.BatchNorm2d(128), nn.SiLU())
    return net.eval(), torch.randn(8, 64, 56, 56)


@program(train=True)
def convolutions_train():
    blocks = [part for a, b in ((3, 32), (32, 64), (64, 128)) for part in (nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2))]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)), torch.randn(16, 3, 64, 64)


@program(train=True)
def group_norm_channels_last_train():
    x = torch.randn(4, 320, 16, 16, dtype=torch.bfloat16).to(memory_format=torch.channels_last).requires_grad_()
    return lambda x, w, b: F.silu(F.group_norm(x, 32, w, b)), x, leaf(320, kind=torch.bfloat16), leaf(320, kind=torch.bfloat16)


@program()
def heat_in_slices():
    def heat(u):
        v = u.clone()
        v[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        return v
    return heat, torch.randn(1024, 1024)


@program()
def power_of_spectra():
    def power(spectra):
        return spectra.real ** 2 + spectra.imag ** 2
    return power, torch.randn(64, 200, 257, dtype=torch.complex64).transpose(1, 2)  # as torch.stft gives them


@program()
def sound_of_spectra():
    window = torch.hann_window(400)
    spectra = torch.stft(torch.randn(4, 16000), 400, 160, window=window, return_complex=True)
    return lambda s: torch.istft(s, 400, 160, window=window), spectra


@program()
def normal_quantiles():
    def quantiles(u):
        return torch.erfinv(u * 2 - 1) * math.sqrt(2)
    return quantiles, torch.rand(820_000)


@program()
def cell_in_a_loop():
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRUCell(64, 64)

        def forward(self, x):
            h, made = x[0], []
            for row in x:
                h = torch.tanh(self.cell(row, h)) * 0.9 + row
                made.append(h * 2)
            return torch.stack(made)
    return Steps(), torch.randn(60, 8, 64)


@program()
def mandelbrot():
    a, b = torch.meshgrid(torch.linspace(-2, 1, 600), torch.linspace(-1, 1, 400), indexing="ij")

    def escapes(a, b):
        x = y = count = torch.zeros_like(a)
        for _ in range(20):
            x, y = x * x - y * y + a, 2 * x * y + b
            count = count + (x * x + y * y < 4)
        return count
    return escapes, a, b


@program()
def bodies():
    def pulls(x):
        apart = x[None] - x[:, None]
        return (apart * (apart.square().sum(-1) + 1e-3).rsqrt()[..., None] ** 3).sum(1)
    return pulls, torch.randn(1024, 3)


@program(train=True)
def chains_of_turns_train():
    def places(angles, bones):
        c, s, none, one = angles.cos(), angles.sin(), torch.zeros_like(angles), torch.ones_like(angles)
        turns = torch.stack([c, -s, none, s, c, none, none, none, one], -1).unflatten(-1, (3, 3))
        turn, at, made = turns[:, 0], bones[:, 0], []
        for k in range(1, 6):
            at = at + (turn @ bones[:, k, :, None])[..., 0]
            turn = turn @ turns[:, k]
            made.append(at)
        return torch.stack(made, 1), turn
    return places, leaf(8192, 6), leaf(8192, 6, 3)


@program()
def option_prices():
    def normal(x):
        return 0.5 * (1 + torch.erf(x / math.sqrt(2)))

    def price(spot, strike, years):
        first = (torch.log(spot / strike) + 0.065 * years) / (0.3 * years.sqrt())
        return spot * normal(first) - strike * torch.exp(-0.02 * years) * normal(first - 0.3 * years.sqrt())
    return price, *(torch.rand(1_000_000) * scale + 1e-3 for scale in (100, 100, 1))


@program()
def moments_of_float64():
    return lambda x: torch.stack([x.mean(), x.var(), (x**3).mean(), (x**4).mean(), x.max(), x.min()]), torch.randn(500_000, dtype=torch.float64)


@program()
def rolling_scores():
    def scores(x):
        windows = x.unfold(1, 20, 1)
        return windows.mean(-1) / (windows.std(-1) + 1e-6)
    return scores, torch.randn(64, 10_000)


@program()
def nearest_centres():
    def step(x, centres):
        nearest = ((x[:, None] - centres[None]) ** 2).sum(-1).argmin(1)
        return torch.zeros_like(centres).index_add_(0, nearest, x) / torch.bincount(nearest, minlength=32).clamp(min=1)[:, None]
    return step, torch.randn(20_000, 16), torch.randn(32, 16)


@program()
def overlaps_of_boxes():
    def overlaps(b):
        sides = (torch.min(b[:, None, 2:], b[None, :, 2:]) - torch.max(b[:, None, :2], b[None, :, :2])).clamp(min=0)
        common, areas = sides[..., 0] * sides[..., 1], (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        return common / (areas[:, None] + areas[None] - common)
    corners = torch.rand(1024, 2)
    return overlaps, torch.cat((corners, corners + torch.rand(1024, 2)), 1)


@program()
def positions_joined():
    return lambda x, p: torch.cat([x + p, x * p, x.flip(1)], -1).transpose(1, 2).contiguous(), torch.randn(32, 100, 64), torch.randn(100, 64)


@program(train=True)
def rotary_interleaved_train():
    angles = torch.arange(512.0)[:, None] / 10000 ** (torch.arange(0, 128, 2) / 128)
    c, s = angles.cos()[None, :, None], angles.sin()[None, :, None]

    def rotate(q):
        a, b = q[..., ::2].float(), q[..., 1::2].float()
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2).to(q.dtype)
    return rotate, leaf(1, 512, 32, 128, kind=torch.bfloat16)


@program(train=True)
def windows_with_biases_train():
    where = torch.randint(0, 169, (49 * 49,))

    def attend(q, k, v, table):
        scores = (q * 32**-0.5) @ k.transpose(-2, -1) + table[where].view(49, 49, -1).permute(2, 0, 1).unsqueeze(0).to(q.dtype)
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, 49, 256)
    return attend, *(leaf(128, 8, 49, 32, kind=torch.bfloat16) for _ in range(3)), leaf(169, 8)


@program(train=True)
def encoder_layer_train():
    return nn.TransformerEncoderLayer(256, 8, 1024, 0.0, batch_first=True), torch.randn(8, 128, 256)


@program(train=True)
def pairs_mixed_train():
    weights = [leaf(128, 128, scale=0.05) for _ in range(5)]

    def mix(z, *w):
        x = F.layer_norm(z, (128,))
        a, b = torch.sigmoid(x @ w[0]) * (x @ w[1]), torch.sigmoid(x @ w[2]) * (x @ w[3])
        return z + torch.sigmoid(x @ w[4]) * F.layer_norm(torch.einsum("ikc,jkc->ijc", a, b), (128,))
    return mix, leaf(64, 64, 128), *weights


@program(train=True)
def recurrent_cell_train():
    cell = nn.LSTMCell(256, 256).bfloat16()

    class Unrolled(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = cell

        def forward(self, x):
            h = c = x.new_zeros(x.shape[0], 256)
            rows = []
            for row in x.unbind(1):
                h, c = self.cell(row, (h, c))
                rows.append(h)
            return torch.stack(rows, 1)
    return Unrolled(), torch.randn(32, 12, 256, dtype=torch.bfloat16)


@program(train=True)
def messages_on_edges_train():
    start, end = torch.randint(0, 5000, (2, 40_000))

    def attend(x, w):
        scores = (x @ w)[start]
        most = torch.full((5000, 4), -1e9).scatter_reduce(0, end[:, None].expand(-1, 4), scores.detach(), "amax")
        weights = (scores - most[end]).exp()
        return torch.zeros(5000, 4).index_add(0, end, weights).log1p().sum(1)
    return attend, leaf(5000, 64), leaf(64, 4, scale=0.1)


@program(train=True)
def vocabulary_loss_train():
    labels = torch.randint(0, 8000, (512,))
    return lambda x: F.cross_entropy(x / 0.7, labels, label_smoothing=0.1) + 1e-4 * torch.logsumexp(x, -1).square().mean(), leaf(512, 8000)


def child(name, engine, threads, seconds):
    build, train = PROGRAMS[name]
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    target, *args = build()
    if engine == "fusebox":
        import fusebox
        compiled = fusebox.compile(target)
    else:
        compiled = torch.compile(target)
    eager, step = step_of(target, args, train), step_of(compiled, args, train)
    torch.manual_seed(1)
    want = eager()
    want = [t.clone() for t in want]
    torch.manual_seed(1)
    start = time.perf_counter()
    got = step()
    result = {"first_s": time.perf_counter() - start, "error": apart(got, want)}
    step()
    print("READY", flush=True)
    sys.stdin.readline()
    result["ms"] = median_ms(step, "cpu", seconds)
    if engine == "fusebox":
        result["eager_ms"] = median_ms(eager, "cpu", seconds)
    print("RESULT " + json.dumps(result), flush=True)


def report(row):
    """The row as text; adds `ratio` and `cold_ratio`."""
    stock, ours = row["stock"], row["fusebox"]
    if "ms" in stock and "ms" in ours:
        row["ratio"], row["cold_ratio"] = stock["ms"] / ours["ms"], stock["first_s"] / ours["first_s"]
    return f"{row.get('ratio', float('nan')):6.2f}  {row['program']:32}" + "".join(
        f"  {engine} " + (f"{made['ms']:.3f} ms (first {made['first_s']:.2f} s, error {made['error']:.0e})" if "ms" in made else str(made["error"]))
        for engine, made in (("stock", stock), ("fusebox", ours))) + (f"  eager {ours['eager_ms']:.3f} ms" if "eager_ms" in ours else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--together", type=int, default=1, help="so many programs compile at once (first calls are slower then)")
    parser.add_argument("--json")
    parser.add_argument("--child", nargs=2)
    options = parser.parse_args()
    if options.child:
        child(*options.child, options.threads, options.seconds)
        return
    rows = []
    for name, made in measured(__file__, options.programs, ("stock", "fusebox"), options.together, "--threads", options.threads, "--seconds", options.seconds):
        rows.append({"program": name} | made)
        print(report(rows[-1]), flush=True)
    ratios, cold = ([row[key] for row in rows if key in row] for key in ("ratio", "cold_ratio"))
    print(f"steady geomean {geomean(ratios):.3f}, least {min(ratios, default=float('nan')):.3f}; first calls geomean {geomean(cold):.1f}")
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"machine": platform.processor() or platform.machine(), "torch": torch.__version__, "threads": options.threads,
                       "compiled_together": options.together, "rows": rows, "steady_geomean": geomean(ratios),
                       "steady_least": min(ratios, default=None), "cold_geomean": geomean(cold)}, out, indent=1)


if __name__ == "__main__":
    main()

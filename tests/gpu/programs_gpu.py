"""Programs on a CUDA device against eager: forward, gradients, mutations, many types and layouts; then how they ran.

Exit code 77, with the reason, where there is no CUDA device.
"""

import argparse
import sys
import traceback

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

import fusebox

PROGRAMS = []
LIMIT = {torch.float32: 1e-4, torch.float64: 1e-11, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def program(*makers, grad=False, extern=0):
    """`extern`: how many operators may stay calls of libraries; more is a failure."""
    def add(f):
        PROGRAMS.append((f, makers, grad, extern))
        return f
    return add


def normal(*shape, dtype=torch.float32, transpose=None):
    def make(device):
        t = torch.randn(*shape, device=device).to(dtype)
        return t.transpose(*transpose) if transpose else t
    return make


def integers(high, *shape, dtype=torch.int64):
    return lambda device: torch.randint(0, high, shape, device=device).to(dtype)


@program(normal(600))
def whole_numbers_below_fractional_steps(x):
    """Which of them it is depends on the digits that eager computes them with."""
    steps = [torch.arange(0, 600 * step - step / 2, step, device=x.device) for step in (1.3, 0.1, 0.7)]
    return *(s.long() for s in steps), *(torch.floor(s / 0.1) for s in steps), torch.arange(0.5, 60, 0.1, device=x.device, dtype=torch.float16), x * (steps[0] % 1)


@program(normal(1024, 1024), normal(1024, 1024), grad=True)
def activation(x, y):
    return F.gelu(torch.sin(x) + torch.cos(y)) * x + 1


@program(normal(999), normal(999))
def odd_size(x, y):
    return torch.tanh(x) * torch.sigmoid(y) + torch.exp(-x.abs()) - torch.log1p(y.abs())


@program(normal(512, 300, dtype=torch.bfloat16), normal(300, dtype=torch.bfloat16))
def bfloat16_broadcast(x, y):
    return F.silu(x + y) * 2


@program(normal(512, 300, dtype=torch.float16), normal(512, 1, dtype=torch.float16))
def float16_broadcast(x, y):
    return F.relu(x * y) - 0.5


@program(normal(300, 70, dtype=torch.float64), grad=True)
def float64_math(x):
    return torch.sin(x) * torch.exp(x * 0.1) + torch.atan(x) + torch.sqrt(x.abs() + 1)


@program(integers(100, 1000), integers(9, 1000, dtype=torch.int32), extern=1)
def integer_arithmetic(x, y):
    return (x // (y + 1)) + (x % (y + 1)) * 2, x > y, (x & 3) | y, x << 1


@program(normal(64, 128), normal(128, 64))
def transposed_operands(x, y):
    return x.t() + y, (x + y.t()).t().contiguous()


@program(normal(8, 32, 40, 24))
def permuted_copy(x):
    return (x * 2).permute(0, 2, 3, 1).contiguous(), x.permute(3, 1, 0, 2).contiguous() + 1


@program(normal(4096))
def sliced_at_odd_offsets(x):
    return x[1:-2] * 2 + x[3:], x[::3] - 1


@program(normal(1000, 1000))
def whole_sums(x):
    return x.sum(), x.mean(), x.max(), x.min(), (x * x).sum().sqrt()


@program(normal(64, 1000))
def row_reductions(x):
    return x.sum(1), x.amax(1), x.argmax(1), x.var(1), x.prod(1), (x > 1).any(1), torch.logsumexp(x, 1)


@program(normal(3000, 48))
def column_reductions(x):
    return x.sum(0), x.amax(0), x.argmin(0), x.std(0), x.mean(0)


@program(normal(16, 33, 65))
def middle_reduction(x):
    return x.sum(1), x.mean((0, 2)), x.amax((1, 2))


@program(normal(128, 2048), grad=True)
def softmax_rows(x):
    return torch.softmax(x, -1), torch.log_softmax(x * 2, -1)


@program(normal(3, 70000))
def softmax_long_rows(x):
    return torch.softmax(x, -1)


@program(normal(64, 30, 20), grad=True)
def softmax_of_columns(x):
    return torch.softmax(x, 1)


@program(normal(96, 768), normal(768), normal(768), grad=True)
def layer_norm(x, w, b):
    return F.layer_norm(x, (768,), w, b)


@program(normal(8, 64, 28, 28), normal(64), normal(64), grad=True)
def group_norm(x, w, b):
    return F.group_norm(x, 8, w, b)


@program(normal(96, 512, dtype=torch.bfloat16), normal(512, dtype=torch.bfloat16))
def rms_norm(x, w):
    return F.rms_norm(x, (512,), w, eps=1e-6)


@program(normal(1500, 1024), normal(1024), normal(1024), grad=True)
def layer_norm_of_many_rows(x, w, b):
    return F.layer_norm(x, (1024,), w, b)


@program(normal(2, 1100, 333, dtype=torch.bfloat16), normal(333, dtype=torch.bfloat16), grad=True)
def rms_norm_of_odd_rows(x, w):
    return F.rms_norm(x, (333,), w, eps=1e-6)


@program(normal(1100, 768), normal(768), grad=True)
def bias_under_softmax(x, b):
    return torch.softmax(x + b, -1) * x


@program(normal(96, 20001), grad=True)
def softmax_of_wide_odd_rows(x):
    return torch.log_softmax(x, -1), torch.softmax(x * 3, -1)


@program(lambda d: torch.tensor([[1.0, 2.0, 3.0], [-float("inf")] * 3, [float("inf"), 1.0, 2.0], [float("nan"), 1.0, 2.0]], device=d).repeat(1, 4000))
def softmax_of_wide_infinities(x):
    return torch.softmax(x, -1), torch.log_softmax(x, -1), torch.logsumexp(x, -1)


@program(normal(300, 20011), normal(20011), normal(20011), grad=True)
def normalised_rows_of_several_blocks(x, w, b):
    return F.layer_norm(x, (20011,), w, b)


@program(normal(140, 50257), normal(140, 131072, dtype=torch.bfloat16), normal(70, 2, 30000, dtype=torch.float64))
def rows_of_several_blocks(x, y, z):
    wide = y.float()
    return (torch.softmax(x, -1), x - x.argmax(-1, keepdim=True), wide / wide.abs().amax(-1, keepdim=True), torch.log_softmax(z, -1),
            (z > z.mean(-1, keepdim=True)) & (z < z.amax(-1, keepdim=True)), torch.softmax(z, -1) * torch.isnan(z).any(-1, keepdim=True))


@program(normal(3, 72, 136, dtype=torch.bfloat16), normal(50, 62, dtype=torch.float64), normal(64, 128))
def transposes(x, y, z):
    return x.transpose(1, 2).contiguous() * 2, y.t().contiguous() + 1, (z + 1, (z + 1).t().contiguous())[1], z.t().contiguous()


@program(normal(60, 1000), normal(9, 30001))
def scans_of_rows(x, y):
    return torch.cumsum(x * 2, -1) + 1, torch.cumprod(x * 0.1 + 1, 1), torch.logcumsumexp(y, -1), torch.cummax(x, 1), torch.cummin(y, -1)[1]


@program(normal(40, 7, 300), integers(5, 40, 50), normal(64, 33, dtype=torch.float64))
def scans_of_columns(x, i, y):
    return torch.cumsum(x, 1), torch.cumsum(i, 0), torch.cummax(i, 1), torch.cumsum(x, 0), torch.cumprod(y, 0)


@program(normal(6, 500), grad=True)
def scan_gradients(x):
    return torch.cumsum(x, -1), torch.logcumsumexp(x, -1)


@program(lambda d: torch.tensor([[1.0, 3.0, 3.0, float("nan"), 5.0, float("nan")], [-float("inf")] * 6], device=d).repeat(1, 30))
def scans_of_infinities(x):
    return torch.cummax(x, -1), torch.cummin(x, 1), torch.logcumsumexp(x, -1), torch.cumsum(x.nan_to_num(0.5), -1)


@program(normal(1000, 64), integers(1000, 500), grad=True)
def embedding(w, i):
    return F.embedding(i, w) * 2


@program(normal(50, 60), integers(50, 20), integers(60, 20))
def indexing(x, i, j):
    return x[i, j], x[i], x[:, j].contiguous(), x.gather(1, j.expand(50, 20))


@program(normal(50, 60), integers(50, 20), normal(20, 60))
def scattering(x, i, v):
    return x.index_add(0, i, v, alpha=2), torch.zeros_like(x).scatter_add(0, i[:, None].expand(20, 60), v)


@program(normal(40, 70, dtype=torch.bfloat16), integers(70, 40), normal(40, dtype=torch.bfloat16), grad=True)
def one_of_every_row(x, i, v):
    chosen = x.float().log_softmax(-1).gather(1, i[:, None])[:, 0]
    return chosen * v, torch.zeros_like(x).scatter(1, i[:, None], 2.0) * x, torch.ones_like(x).scatter_add(1, i[:, None], v[:, None].to(x.dtype)).sin()


@program(normal(50, 60), integers(50, 20), integers(60, 20), normal(20), grad=True)
def put_at_indices(x, i, j, v):
    y = (x * 2).index_put((i, j), v * 3, accumulate=True).sin()
    return y, y.index_put((i - 50,), v[:, None], accumulate=True), x[:, j].cos(), x[i, 3:50]


@program(normal(50, 6, 30), integers(50, 20), integers(30, 20), integers(9, 20, 6))
def put_at_separated_indices(x, i, j, v):
    return x.index_put((i, torch.arange(6, device=x.device)[:, None, None], j), v.float()[0, 0], accumulate=True), x[i, :, j]


@program(normal(30, 16), integers(30, 80), grad=True)
def embedding_with_padding(w, i):
    return F.embedding(i, w, padding_idx=3)


@program(normal(30, 16, dtype=torch.bfloat16), integers(30, 80), grad=True, extern=1)
def embedding_bf16(w, i):
    return F.embedding(i, w) * 2


@program(normal(256, 512, dtype=torch.bfloat16), normal(1024, 512, dtype=torch.bfloat16), normal(1024, dtype=torch.bfloat16),
         normal(512, 1024, dtype=torch.bfloat16), extern=3)
def matmul_epilogues(x, w, b, v):
    h = F.gelu(F.linear(x, w / 32, b), approximate="tanh")
    return F.linear(F.relu(F.linear(h, v / 32, b[:512])), w / 32, b)


@program(*[normal(2, 4, 256, 64, dtype=torch.bfloat16)] * 3, extern=1)
def attention_without_gradients(q, k, v):
    return F.scaled_dot_product_attention(q * 2, k, v, is_causal=True) + 1


@program(*[normal(2, 4, 256, 64, dtype=torch.bfloat16)] * 3, grad=True, extern=2)
def attention(q, k, v):
    return F.scaled_dot_product_attention(q * 2, k, v, is_causal=True) + 1


@program(*[normal(2, 4, 256, 64, dtype=torch.bfloat16)] * 3, extern=2)
def attention_with_a_score_function(q, k, v):
    return flex_attention(q, k, v, score_mod=lambda score, b, h, m, n: score + (n - m) * 0.1 * (h + 1))


@program(*[normal(2, 4, 128, 64)] * 3, grad=True, extern=6)
def gradients_through_a_score_function(q, k, v):
    return flex_attention(q, k, v, score_mod=lambda score, b, h, m, n: torch.where(m >= n, torch.tanh(score), -float("inf")))


@program(normal(2, 4, 96, 64, dtype=torch.bfloat16), normal(2, 4, 80, 64, dtype=torch.bfloat16), grad=True, extern=4)
def products_of_narrow_numbers(x, y):
    return (x.float() * 0.35) @ (y.float().transpose(-1, -2) * 0.35) + 1


@program(normal(300, 200, dtype=torch.float16), normal(150, 200, dtype=torch.float16), extern=1)
def product_of_narrow_rows(x, y):
    return x.float() @ y.float().t() + 1


@program(normal(64, 32))
def device_facts(x):
    major, minor = torch.cuda.get_device_capability()
    properties = torch.cuda.get_device_properties(x.device)
    return x + major * 10 + minor + properties.multi_processor_count, torch.cuda.get_device_name()


@program(normal(30, 40), normal(30, 8))
def joins(x, y):
    return torch.cat([x, y, x[:, 1:]], 1) + 1, torch.stack([x, x * 2]), F.pad(y, (1, 2, 3, 4), value=2.0)


@program(normal(2, 3, 17, 23))
def images_resampled(x):
    return tuple(F.interpolate(x, mode=mode, align_corners=corners, **to) for mode in ("bilinear", "bicubic") for corners in (False, True)
            for to in ({"size": (40, 31)}, {"size": (9, 23)}, {"scale_factor": 2.5, "recompute_scale_factor": False}))


@program(normal(2, 5, 16, 24, dtype=torch.bfloat16))
def cubic_images_of_16_bits(x):
    return F.interpolate(x, size=(33, 50), mode="bicubic")


@program(normal(4, 21, 24, 24), integers(21, 4, 96, 96), grad=True, extern=1)  # the enlargement's gradient
def enlarged_scores(x, labels):
    scores = F.interpolate(x.tanh(), size=(96, 96), mode="bilinear")
    return F.cross_entropy(scores, labels) + (scores.softmax(1) * F.pad(x, (36, 36, 36, 36))).sum() / 1e3


@program(normal(2, 3, 32, 32), grad=True, extern=2)
def pooling(x):
    return F.max_pool2d(x, 2) + F.avg_pool2d(x, 2)


@program(normal(40, 30))
def masks(x):
    return torch.where(x > 0, x, -x), x.masked_fill(x < -1, 0.0), torch.tril(x), x.clamp(-1, 1)


@program(normal(40, 30), normal(40, 30), extern=1)
def mutation(x, y):
    x.mul_(2).add_(y)
    y[1:3] = 5
    return x.sum(0)


@program(normal(64, 256), normal(256, 128), normal(128), grad=True, extern=4)
def linear_relu(x, w, b):
    return F.relu(x @ w + b).square()


@program(normal(128, 10), integers(10, 128), grad=True)
def cross_entropy(x, t):
    return F.cross_entropy(x, t)


@program(normal(20), extern=2)
def without_code(x):
    return torch.lgamma(x.abs() + 1) + torch.erfinv(x.clamp(-0.9, 0.9))


@program(lambda d: torch.tensor([1e20, -3e30, float("inf"), float("nan"), 1e9, -1e6, 48001.0, 2.0 ** 100], device=d))
def extreme_angles(x):
    return torch.sin(x), torch.cos(x), torch.tan(x), torch.exp(x), torch.remainder(x, 7.0), torch.fmod(x, 0.3)


@program(normal(5, 7), lambda d: torch.tensor(2.5))
def host_scalar(x, s):
    return x * s + 1


def windows(*size, channels, kernel, dtype=torch.float32, last=False, of=1):
    """Images and filters of a depthwise convolution with biases."""
    def images(device):
        t = torch.randn(3, channels, *size, device=device).to(dtype)
        return t.to(memory_format=torch.channels_last) if last else t
    return images, normal(channels * of, 1, *kernel, dtype=dtype), normal(channels * of, dtype=dtype)


@program(*windows(15, 18, channels=6, kernel=(3, 3)), grad=True, extern=2)
def depthwise_images(x, w, b):
    return F.relu(F.conv2d(x, w, b, padding=1, groups=6)) * 2


@program(*windows(33, 31, channels=32, kernel=(5, 5), dtype=torch.bfloat16, last=True), grad=True, extern=2)
def depthwise_channels_last(x, w, b):
    return F.silu(F.conv2d(x, w, b, stride=2, padding=2, groups=32))


@program(*windows(20, 22, channels=4, kernel=(3, 2), dtype=torch.float16, of=3))
def depthwise_with_several_filters(x, w, b):
    return F.conv2d(x, w, None, padding=(0, 2), dilation=(2, 3), groups=4)


@program(*windows(65, channels=24, kernel=(4,)), grad=True, extern=2)
def depthwise_of_a_sequence(x, w, b):
    return F.silu(F.conv1d(x, w, b, padding=3, groups=24)[..., :65])


@program(*windows(9, 9, channels=8, kernel=(7, 7)), extern=1)
def depthwise_with_a_large_window(x, w, b):
    return F.conv2d(x, w, b, padding=3, groups=8).sigmoid()


@program(normal(3, 200, 96), normal(3, 130, 96), grad=True, extern=3)
def sums_of_products(x, y):
    return (x[:, :, None] * y[:, None]).sum(-1).exp2().clamp(max=10)


@program(normal(2, 4, 128, 96, 6, dtype=torch.bfloat16), normal(2, 4, 96, 6, 64, dtype=torch.bfloat16), grad=True, extern=3)
def sums_of_products_in_the_middle(x, y):
    return (x[..., None] * y[:, :, None]).sum(3, keepdim=True) + 1


@program(normal(300, 5, 64), normal(300, 64), grad=True)
def repeated_sums(x, y):
    return ((x * torch.arange(5.0, device=x.device)[:, None] + 1).sum(1)[:, None, :] * y[None, :, :]).amax(-1)


@program(lambda device: torch.randn(2, 64, 96, 96, device=device).to(memory_format=torch.channels_last), normal(64), normal(64), grad=True, extern=2)
def group_norm_of_channels_last_images(x, w, b):
    return F.silu(F.group_norm(x, 8, w, b))


def flat(value):
    return [t for v in value for t in flat(v)] if isinstance(value, tuple) else [value]


def compare(f, makers, grad, device):
    torch.manual_seed(1)
    compiled = fusebox.compile(f)
    worst = 0.0
    for _ in range(2):
        fresh = [m(device) for m in makers]
        mine = [t.detach().clone(memory_format=torch.preserve_format).requires_grad_(grad and t.is_floating_point()) for t in fresh]
        theirs = [t.detach().clone(memory_format=torch.preserve_format).requires_grad_(grad and t.is_floating_point()) for t in fresh]
        got, want = compiled(*mine), f(*theirs)
        got, want = flat(got), flat(want)
        if grad:
            for results, inputs in ((got, mine), (want, theirs)):
                sum(r.float().mul(torch.linspace(-1, 1, r.numel(), device=device).view(r.shape)).sum() for r in results if r.requires_grad).backward()
                results += [t.grad for t in inputs if t.requires_grad]
        got += [t.detach() for t in mine]
        want += [t.detach() for t in theirs]
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            if not isinstance(w, torch.Tensor):
                if g != w:
                    raise AssertionError(f"value {i}: {g!r} against {w!r}")
                continue
            if g.shape != w.shape or g.dtype != w.dtype or g.device != w.device:
                raise AssertionError(f"value {i}: {g.shape} {g.dtype} {g.device} against {w.shape} {w.dtype} {w.device}")
            if g.numel() > 1 and g.stride() != w.stride():
                raise AssertionError(f"value {i}: strides {g.stride()} against {w.stride()}")
            if not g.is_floating_point():
                if not torch.equal(g, w):
                    raise AssertionError(f"value {i} differs")
                continue
            a, b = g.detach().double(), w.detach().double()
            if not torch.equal(a.isnan(), b.isnan()) or not torch.equal(a.isinf(), b.isinf()):
                raise AssertionError(f"value {i}: NaN or infinity in other places: {g.flatten()[:8]} against {w.flatten()[:8]}")
            a, b = a.nan_to_num(0, 0, 0), b.nan_to_num(0, 0, 0)
            error = ((a - b).abs().max() / (b.abs().max() + 1e-8)).item() if a.numel() else 0.0
            worst = max(worst, error)
            if not error <= LIMIT[g.dtype]:
                raise AssertionError(f"value {i}: error {error:.2e}")
    return worst


def side_stream():
    """Kernels run on the current stream: a busy default stream does not hold them up."""
    compiled, x = fusebox.compile(activation), torch.randn(1000, device="cuda")
    compiled(x, x)
    torch.cuda.synchronize()
    busy, side = torch.cuda.Event(), torch.cuda.Stream()
    torch.cuda._sleep(2_000_000_000)
    busy.record()
    with torch.cuda.stream(side):
        y = compiled(x, x)
    side.synchronize()
    assert not busy.query(), "the kernel waited for the default stream"
    torch.testing.assert_close(y, activation(x, x))


def captured_in_a_cuda_graph():
    compiled, x = fusebox.compile(lambda x: torch.softmax(x.sin(), -1).sum(0)), torch.randn(100, 300, device="cuda")
    compiled(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = compiled(x)
    for _ in range(3):
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.testing.assert_close(y, torch.softmax(x.sin(), -1).sum(0))


def derivatives():
    """Of torch.func and torch.autograd.grad: libtorch's engine would work on threads of the device."""
    from torch.func import grad, hessian, jacfwd, jvp, vmap
    value = lambda t: (t.sin() * t.sum()).sum()
    inside = lambda t: torch.autograd.grad(value(t), t)[0].cos()
    x = torch.randn(6, 5, device="cuda")
    forms = [grad(value), vmap(grad(value)), vmap(hessian(value)), jacfwd(torch.exp), lambda t: jvp(torch.sin, (t,), (t,)),
             lambda t: inside(t.clone().requires_grad_())]
    for form in forms:
        torch.testing.assert_close(fusebox.compile(form, fullgraph=True)(x), form(x), rtol=1e-4, atol=1e-4)


def changing_sizes():
    compiled = fusebox.compile(lambda x: (F.layer_norm(x, x.shape[-1:]), (x * 2).sum(0)))
    for rows, columns in ((8, 100), (9, 100), (200, 100), (9, 333), (3, 4097)):
        x = torch.randn(rows, columns, device="cuda")
        for got, want in zip(compiled(x), (F.layer_norm(x, x.shape[-1:]), (x * 2).sum(0))):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def second_device():
    if torch.cuda.device_count() < 2:
        return "skipped: one device"
    compiled = fusebox.compile(activation)
    for device in ("cuda:1", "cuda:0", "cuda:1"):
        x = torch.randn(5000, device=device)
        y = compiled(x, x)
        assert y.device == x.device
        torch.testing.assert_close(y, activation(x, x))


def random_numbers():
    """A seed gives the same numbers again, another one others; `fallback_random` gives eager's own."""
    def draws(x):
        return F.dropout(x, 0.3), torch.rand_like(x), torch.randn(1000, device="cuda"), torch.bernoulli(torch.sigmoid(x)), torch.rand(77, device="cuda", dtype=torch.bfloat16)

    x = torch.randn(1001, 30, device="cuda")
    compiled = fusebox.compile(draws)
    def run(f, seed):
        torch.manual_seed(seed)
        return f(x), f(x)
    first, again, other = run(compiled, 5), run(compiled, 5), run(compiled, 6)
    for one, two, three in zip(first, again, other):
        for a, b, c in zip(one, two, three):
            assert torch.equal(a, b), "the same seed gives other numbers"
            assert not torch.equal(a, c), "another seed gives the same numbers"
    assert not torch.equal(first[0][1], first[1][1]), "two calls give the same numbers"
    uniform, normals = first[0][1].double(), first[0][2].double()
    assert 0 <= uniform.min() and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.01 and abs(normals.std() - 1) < 0.1
    eager = run(draws, 5)
    torch._inductor.config.fallback_random = True
    try:
        fusebox.reset()
        for one, two in zip(run(fusebox.compile(draws), 5), eager):
            for a, b in zip(one, two):
                assert torch.equal(a, b), "fallback_random gives other numbers than eager"
    finally:
        torch._inductor.config.fallback_random = False


def redrawn_masks():
    """Backward meets the mask of forward, be it computed again from the seed, be it by operators one by one; nothing keeps it."""
    def drop(x, p=0.3):
        return F.dropout(x * 1.0, p) * F.dropout(torch.ones_like(x), 0.5)

    for rows, columns, dtype in ((1001, 30, torch.float32), (64, 4096, torch.bfloat16), (7, 1, torch.float16)):
        x = torch.randn(rows, columns, device="cuda", dtype=dtype, requires_grad=True)
        compiled = fusebox.compile(drop)
        results = []
        for _ in range(2):
            x.grad = None
            got = compiled(x)
            got.sum().backward()
            torch.testing.assert_close(got.detach(), x.detach() * x.grad, rtol=2e-2, atol=1e-3)
            results.append(x.grad)
        kept = (results[0] != 0).float().mean().item()
        assert rows < 100 or abs(kept - 0.35) < 0.02, kept
        assert rows < 100 or not torch.equal(*results), "two calls draw the same mask"
        # Operators one by one (a graph that is not compiled) draw what generated code does.
        alone = fusebox.compile(lambda x: F.dropout(x * 1.0, 0.3))
        torch.manual_seed(9)
        got = alone(x)
        torch.manual_seed(9)
        seed = torch.randint(2**63 - 1, (1,), device="cuda")
        assert torch.equal(got != 0, (torch.ops.fusebox.uniform(seed, 0, x.shape) < 0.7) & (x != 0)), "the operator draws other numbers"
        fusebox.reset()
    x = torch.randn(1 << 20, device="cuda", requires_grad=True)
    layer = fusebox.compile(lambda x: F.dropout(x.sin(), 0.1))
    layer(x).sum().backward()
    before = torch.cuda.memory_allocated()
    result = layer(x)
    assert torch.cuda.memory_allocated() - before < 4.5 * x.numel(), "something is kept beside the result"


def quotients_by_numbers():
    """Quantisation asks for eager's very quotients: CUDA's kernel multiplies with the reciprocal of a number, and divides by a tensor."""
    def quotients(x, rows, count):
        return x / 448, x.half() / 7.3, x.bfloat16() / 0.1, x.double() / 3, x / rows, x / torch.tensor(7.3), x.half() / torch.tensor(7.3), x.double() / torch.tensor(7), x / count, (x.abs().amax(-1, keepdim=True) / 127) * 2

    x, rows = torch.randn(999, 130, device="cuda"), torch.rand(999, 1, device="cuda") + 0.1
    count = torch.tensor(11)
    for i, (got, want) in enumerate(zip(fusebox.compile(quotients)(x, rows, count), quotients(x, rows, count))):
        assert torch.equal(got, want), (i, (got != want).sum().item())


def deterministic_algorithms():
    """Atomic additions of floats have no order: they stay eager's operators where that matters."""
    def add(x, i, v):
        return (x * 2).index_add(0, i, v)

    x, i, v = torch.randn(30, 40, device="cuda"), torch.randint(0, 30, (5000,), device="cuda"), torch.randn(5000, 40, device="cuda")
    torch.use_deterministic_algorithms(True)
    try:
        compiled = fusebox.compile(add)
        before = fusebox.counters()["extern_calls"]
        assert torch.equal(compiled(x, i, v), compiled(x, i, v)) and torch.equal(compiled(x, i, v), add(x, i, v))
        assert fusebox.counters()["extern_calls"] == before + 1
    finally:
        torch.use_deterministic_algorithms(False)
    before = fusebox.counters()["extern_calls"]
    torch.testing.assert_close(compiled(x, i, v), add(x, i, v), rtol=1e-4, atol=1e-3)
    assert fusebox.counters()["extern_calls"] == before, "compiled again without the flag, additions are generated code"


def relu_between_products():
    """A NaN stays one, in sizes that different kernels of the library serve: some of its relu epilogues lose it."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for rows, inner, columns in ((64, 64, 64), (1, 512, 2048), (2048, 768, 3072), (37, 129, 250), (4096, 1024, 64), (8, 8192, 16)):
            x, w, b, v = (torch.randn(*s, device="cuda").to(dtype) for s in ((rows, inner), (columns, inner), (columns,), (8, columns)))
            x[0, 0] = float("nan")
            got = fusebox.compile(lambda: F.linear(F.relu(F.linear(x, w, b)), v))()
            assert got[0].isnan().all(), (dtype, rows, inner, columns)
            assert rows == 1 or not got[1:].isnan().any(), (dtype, rows, inner, columns)
            fusebox.reset()


def sizes_that_data_decide():
    """One graph, whatever they are; with gradients."""
    def experts(x, expert, w):
        out = torch.zeros_like(x)
        for i in range(4):
            (rows,) = torch.where(expert == i)
            out.index_add_(0, rows, torch.nn.functional.silu(x[rows] @ w[i]))
        return out

    draw = lambda *sizes: torch.randn(*sizes, device="cuda", dtype=torch.float64)
    mask = lambda n: torch.rand(n, device="cuda") > 0.5
    programs = [
        (lambda x, m: x[m].sin() * 2, lambda: (draw(700, 3), mask(700))), (lambda x: (x > 0.5).nonzero().double().sum(0) + x.sum(), lambda: (draw(60, 50),)),
        (lambda x: torch.masked_select(x, x > 0).exp().sum(), lambda: (draw(2000),)), (experts, lambda: (draw(5, 8), torch.randint(0, 4, (5,), device="cuda"), draw(4, 8, 8))),
        (lambda x, n: torch.repeat_interleave(x, n, dim=0) + 1, lambda: (draw(9, 4), torch.randint(0, 4, (9,), device="cuda"))),
        (lambda x, n: (x[: n.max().item()] * 2, torch.arange(n.max().item(), device="cuda")), lambda: (draw(40), torch.randint(2, 40, (6,), device="cuda"))),
    ]
    for program, make in programs:
        fusebox.reset()
        before, compiled = fusebox.counters()["eager_runs"], fusebox.compile(program, fullgraph=True)
        for i in range(8):
            results = []
            args = make()
            for f in (compiled, program):
                given = [t.clone().requires_grad_(i % 2 == 1 and t.is_floating_point()) for t in args]
                result = f(*given)
                first = result[0] if isinstance(result, tuple) else result
                if first.requires_grad:
                    first.square().sum().backward()
                results.append((result, [t.grad for t in given if t.grad is not None]))
            torch.testing.assert_close(*results)
        assert fusebox.counters()["eager_runs"] == before, "no call runs eagerly"


SITUATIONS = [sizes_that_data_decide, random_numbers, redrawn_masks, quotients_by_numbers, deterministic_algorithms, side_stream, captured_in_a_cuda_graph, derivatives, changing_sizes, relu_between_products, second_device]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--traceback", action="store_true")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("skipped: PyTorch sees no CUDA device")
        return 77
    failed = 0
    for f, makers, grad, extern in PROGRAMS:
        if options.only and f.__name__ not in options.only:
            continue
        before = fusebox.counters()
        try:
            worst = compare(f, makers, grad, options.device)
            if options.device == "cuda":
                torch.cuda.synchronize()
            after = fusebox.counters()
            calls = after["extern_calls"] - before["extern_calls"]
            if after["eager_runs"] > before["eager_runs"]:
                raise AssertionError("a graph ran operator by operator")
            if after["failed_stages"] > before["failed_stages"]:
                raise AssertionError("a stage of the compiler failed (FUSEBOX_DEBUG=1 says why)")
            if f.__name__ != "host_scalar" and calls > extern:
                raise AssertionError(f"{calls} operators are library calls, at most {extern} expected")
            if after["kernels"] == before["kernels"] and f.__name__ != "host_scalar":
                torch.manual_seed(1)
                raise AssertionError(f"no kernel was generated: {fusebox.explain(f)(*[m(options.device) for m in makers])}")
            print(f"ok   {f.__name__}: worst relative error {worst:.1e}, {calls} library calls", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAIL {f.__name__}: {type(error).__name__}: {str(error)[:600]}", flush=True)
            if options.traceback:
                traceback.print_exc()
            if "CUDA" in str(error) and "assert" in str(error):
                break
        finally:
            fusebox.reset()
    for situation in SITUATIONS if options.device == "cuda" and not options.only else []:
        try:
            torch.manual_seed(1)
            print(f"ok   {situation.__name__} {situation() or ''}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAIL {situation.__name__}: {type(error).__name__}: {str(error)[:600]}", flush=True)
        finally:
            fusebox.reset()
    print(f"{failed} of {len(PROGRAMS) + len(SITUATIONS)} programs failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

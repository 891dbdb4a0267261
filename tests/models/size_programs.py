"""Programs whose sizes change from call to call, as people write them: every call beside eager, and how often each was compiled.

A program is a maker: it gives `(function, draw)`, where `draw(n)` makes the arguments of a call of size `n`. Functions that train give
loss and gradients. `python -m models.size_programs [NAME …] [--engine stock] [--dynamic] [--sizes 5 9 1 17 …]`; as a test a few sizes each.
"""

import argparse
import copy
import math
import os
import random
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import torch.nn as nn
import torch.nn.functional as F

PROGRAMS = {}
SIZES = (6, 9, 12, 5, 17, 8, 3, 24, 1, 11)


def program(maker):
    PROGRAMS[maker.__name__] = maker
    return maker


def trained(model, loss_of=lambda out: out.float().pow(2).mean()):
    """A training step that changes nothing but gradients."""
    def step(*args):
        model.zero_grad()
        loss = loss_of(model(*args))
        loss.backward()
        return [loss.detach()] + [p.grad for p in model.parameters() if p.grad is not None]
    return step


@program
def mlp_batch():
    model = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 10)).eval()
    return model, lambda n: (torch.randn(n, 24),)


@program
def mlp_batch_training():
    model = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 10))
    return trained(model), lambda n: (torch.randn(n, 24),)


@program
def classifier_training():
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(0.0), nn.Linear(32, 7))

    def step(x, y):
        model.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return [loss.detach()] + [p.grad for p in model.parameters()]
    return step, lambda n: (torch.randn(n, 20), torch.randint(0, 7, (n,)))


@program
def convolution_images():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, stride=2),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)).eval()
    return model, lambda n: (torch.randn(2, 3, 12 + 2 * n, 14 + 3 * n),)


@program
def convolution_batch_training():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2),
                          nn.GroupNorm(4, 16), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16 * 9, 5))
    return trained(model), lambda n: (torch.randn(n + 1, 3, 14, 14),)


@program
def crops_of_images():
    first, last, other = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Conv2d(8, 3, 1), nn.Conv2d(3, 4, 1)

    def run(x):
        height, width = x.shape[2:]
        y = last(F.interpolate(first(F.pad(x, (0, width % 2, 0, height % 2))).relu(), scale_factor=2))
        return y[..., :height, :width], y.relu()[1:, :, 1:5], other(x).permute(0, 2, 3, 1)[:, ::2, 1:]
    return run, lambda n: (torch.randn(3, 3, n + 3, 2 * n + 5),)


@program
def audio_lengths():
    model = nn.Sequential(nn.Conv1d(1, 8, 5, stride=2), nn.GELU(), nn.Conv1d(8, 8, 3, groups=8, padding=1), nn.InstanceNorm1d(8)).eval()
    return model, lambda n: (torch.randn(3, 1, 64 + 7 * n),)


@program
def encoder_with_mask():
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    model.train()

    def run(x, lengths):
        mask = torch.arange(x.shape[1])[None, :] >= lengths[:, None]
        return model(x, src_key_padding_mask=mask)
    return run, lambda n: (torch.randn(3, n + 1, 32), torch.randint(1, n + 2, (3,)))


class Attention(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / (k.size(-1) ** 0.5))
        mask = torch.tril(torch.ones(t, t, dtype=torch.bool)).view(1, 1, t, t)
        scores = scores.masked_fill(~mask, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(b, t, c))


@program
def attention_by_hand():
    return Attention().eval(), lambda n: (torch.randn(2, n, 32),)


@program
def attention_by_hand_training():
    return trained(Attention()), lambda n: (torch.randn(n % 4 + 2, n + 1, 32),)


@program
def scaled_dot_product():
    def run(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return run, lambda n: tuple(torch.randn(2, 4, n + 1, 16) for _ in range(3))


@program
def growing_cache():
    """Decoding with a cache that torch.cat makes longer."""
    project = nn.Linear(16, 48)

    def run(x, k, v):
        q, k1, v1 = project(x).chunk(3, -1)
        k, v = torch.cat([k, k1], 1), torch.cat([v, v1], 1)
        return F.scaled_dot_product_attention(q, k, v), k, v
    return run, lambda n: (torch.randn(2, 1, 16), torch.randn(2, n, 16), torch.randn(2, n, 16))


@program
def rotary_embedding():
    inverse = 1.0 / (10000 ** (torch.arange(0, 16, 2).float() / 16))

    def run(x):
        t = torch.arange(x.shape[-2], dtype=torch.float32)
        angles = torch.outer(t, inverse)
        cos, sin = torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()
        half = x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * cos + turned * sin
    return run, lambda n: (torch.randn(2, 3, n, 16),)


@program
def learned_positions():
    words, positions = nn.Embedding(50, 16), nn.Embedding(64, 16)

    def run(ids):
        where = torch.arange(ids.size(1), device=ids.device).unsqueeze(0).expand_as(ids)
        return F.layer_norm(words(ids) + positions(where), (16,))
    return run, lambda n: (torch.randint(0, 50, (3, n)),)


@program
def words_of_bounded_length():
    """nn.Embedding that scales the rows it reads, in place."""
    words = nn.Embedding(50, 16, max_norm=1.0)
    return (lambda ids: words(ids).sum(-1)), lambda n: (torch.randint(0, 50, (n,)),)


@program
def sliced_positions():
    table = nn.Parameter(torch.randn(1, 64, 16))
    return (lambda x: (x + table[:, :x.shape[1]]).relu()), lambda n: (torch.randn(2, n, 16),)


@program
def contrastive_loss():
    a, b = nn.Linear(12, 8), nn.Linear(10, 8)

    def step(x, y):
        a.zero_grad(), b.zero_grad()
        logits = F.normalize(a(x), dim=-1) @ F.normalize(b(y), dim=-1).t() * 10
        target = torch.arange(x.shape[0])
        loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2
        loss.backward()
        return loss.detach(), a.weight.grad, b.weight.grad
    return step, lambda n: (torch.randn(n, 12), torch.randn(n, 10))


@program
def masked_mean():
    def run(x, mask):
        m = mask.unsqueeze(-1).float()
        return (x * m).sum(1) / m.sum(1).clamp(min=1), x.masked_fill(~mask.unsqueeze(-1), -1e9).max(dim=1).values
    return run, lambda n: (torch.randn(3, n, 8), torch.rand(3, n) > 0.3)


@program
def windows():
    """Window attention's partition: pads where the size is no multiple."""
    def run(x, size=4):
        b, h, w, c = x.shape
        pad_h, pad_w = (size - h % size) % size, (size - w % size) % size
        if pad_h or pad_w:
            x = F.pad(x, (0, 0, 0, pad_w, 0, pad_h))
        hp, wp = x.shape[1:3]
        x = x.view(b, hp // size, size, wp // size, size, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, size * size, c)
        x = x.softmax(1)
        x = x.view(b, hp // size, wp // size, size, size, c).permute(0, 1, 3, 2, 4, 5).reshape(b, hp, wp, c)
        return x[:, :h, :w].contiguous()
    return run, lambda n: (torch.randn(2, n + 3, 2 * n + 3, 6),)


@program
def pixel_shuffles():
    return (lambda x: F.pixel_unshuffle(F.pixel_shuffle(x * 2, 2), 2).tanh()), lambda n: (torch.randn(2, 8, n, n + 1),)


@program
def upsampling_net():
    down, up = nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.Conv2d(6, 3, 3, padding=1)

    def run(x):
        y = down(x).relu()
        y = F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)
        return up(y) + F.interpolate(x, scale_factor=2.0, mode="nearest")[..., ::2, ::2]
    return run, lambda n: (torch.randn(1, 3, 8 + n, 9 + 2 * n),)


@program
def recurrent_by_hand():
    cell = nn.GRUCell(6, 8)

    def run(x):
        h = torch.zeros(x.shape[0], 8)
        for t in range(4):
            h = cell(x[:, t], h)
        return h
    return run, lambda n: (torch.randn(n, 4, 6),)


@program
def lstm_lengths():
    model = nn.LSTM(6, 8, batch_first=True, bidirectional=True).eval()
    return (lambda x: model(x)[0]), lambda n: (torch.randn(2, n, 6),)


@program
def lstm_training():
    model = nn.LSTM(6, 8, num_layers=2, batch_first=True, dropout=0.0)
    return trained(model, lambda out: out[0].pow(2).mean() + out[1][1].sum()), lambda n: (torch.randn(n % 3 + 2, n, 6),)


@program
def lstm_in_autocast():
    """oneDNN computes all of it in bfloat16, whatever is a symbol; on a CPU for which it has no such kernel eager refuses, and sizes of float32 vary."""
    model = nn.LSTM(6, 8, num_layers=2)
    try:
        with torch.autocast("cpu", torch.bfloat16):
            model(torch.ones(2, 2, 6))
        narrow = True
    except RuntimeError:
        narrow = False

    def run(x, h):
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            out, state = model(x, (h, h))
        assert (out.dtype == state[0].dtype == torch.bfloat16) == narrow
        return out, state
    return run, lambda n: (torch.randn(4, n, 6), torch.randn(2, n, 8))


@program
def gru_training():
    model = nn.GRU(6, 8, num_layers=2, bidirectional=True)
    return trained(model, lambda out: out[0].pow(2).mean() + out[1].sum()), lambda n: (torch.randn(n, n % 4 + 1, 6),)


@program
def packed_sequences():
    """Batches of the same lengths: what is packed is made outside, as a collating function does."""
    model = nn.GRU(6, 8, batch_first=True).eval()

    def draw(n):
        packed = nn.utils.rnn.pack_padded_sequence(torch.randn(3, n + 2, 6), [n + 2, n // 2 + 2, 2], batch_first=True)
        return packed.data, packed.batch_sizes, torch.randn(1, 3, 8)
    return (lambda data, batch_sizes, h: torch._VF.gru(data, batch_sizes, h, model._flat_weights, True, 1, 0.0, False, False)), draw


@program
def graph_convolution():
    weight = nn.Linear(8, 8)

    def run(x, edges):
        message = weight(x)[edges[0]]
        out = torch.zeros_like(x).index_add_(0, edges[1], message)
        degree = torch.zeros(x.shape[0]).index_add_(0, edges[1], torch.ones(edges.shape[1]))
        return out / degree.clamp(min=1).unsqueeze(-1)
    return run, lambda n: (torch.randn(n + 2, 8), torch.randint(0, n + 2, (2, 3 * n)))


@program
def list_of_images():
    conv = nn.Conv2d(3, 4, 3)

    def run(images):
        return torch.stack([conv(i.unsqueeze(0)).mean((0, 2, 3)) for i in images])
    return run, lambda n: ([torch.randn(3, 8 + n, 9), torch.randn(3, 10, 8 + 2 * n)],)


@program
def boxes_overlap():
    def run(a, b):
        area = lambda x: (x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1])
        low, high = torch.max(a[:, None, :2], b[:, :2]), torch.min(a[:, None, 2:], b[:, 2:])
        inside = (high - low).clamp(min=0).prod(-1)
        return inside / (area(a)[:, None] + area(b) - inside)
    return run, lambda n: (torch.rand(n, 4).cumsum(1), torch.rand(2 * n + 1, 4).cumsum(1))


@program
def keeps_top():
    def run(x):
        k = min(5, x.shape[1])
        values, indices = x.topk(k, dim=1)
        return values.softmax(-1), indices
    return run, lambda n: (torch.randn(3, n),)


@program
def chunked_rows():
    def run(x):
        return torch.cat([c.cumsum(0) for c in x.split(4)]) if x.shape[0] > 4 else x.cumsum(0)
    return run, lambda n: (torch.randn(n, 5),)


@program
def branches_on_size():
    def run(x):
        if x.shape[0] % 2 == 0:
            x = x.view(x.shape[0] // 2, 2, -1).sum(1)
        if x.numel() > 60:
            x = x * 0.5
        return x.relu(), x.shape[0], f"{x.ndim}"
    return run, lambda n: (torch.randn(n, 6),)


@program
def sizes_in_arithmetic():
    def run(x):
        n, m = x.shape
        scale = (n * m) ** -0.5
        return x.sum() * scale + x.mean() / n, torch.full((m, 2 * n + 1), float(m)), x.new_zeros(n // 2 + 1, m), n / m, max(n, m) - min(n, 7)
    return run, lambda n: (torch.randn(n, 7),)


@program
def scales_of_sizes():
    """Floats that are made of sizes, as factors, divisors and arguments of operators."""
    def run(x, y):
        n, m = x.shape
        log = math.log(n + 1)
        scaled = x * n ** -0.5 + x / math.sqrt(m + n) - log * x + x * 0.9 ** n
        return scaled.softmax(0), torch.add(x, y, alpha=1.0 / n), x.clamp(max=n / 8), x.sum() * (n / m), torch.full((m,), 1.0 / n), log, y * (n % 2.5)
    return run, lambda n: (torch.randn(n + 2, 7), torch.randn(n + 2, 7))


@program
def scales_of_sizes_training():
    net = nn.Linear(7, 7)

    def step(x):
        net.zero_grad()
        n = x.shape[0]
        loss = (net(x) * n ** -0.5 / math.log(n + 1)).pow(2).sum() * (1 / math.sqrt(n)) + net(x).mean() / n
        loss.backward()
        return loss.detach(), net.weight.grad, net.bias.grad
    return step, lambda n: (torch.randn(n + 2, 7),)


@program
def rounded_sizes():
    """Ints that are made of floats of sizes, as lengths."""
    def run(x):
        n = x.shape[0]
        parts = [x[:int(0.3 * n) + 1], x[:math.ceil(math.log2(n))], x[:round(n / 2)], x[:math.isqrt(n)], x[:int(n ** 0.5)], x[:int(n * 0.7)]]
        return [p.sum(0) for p in parts], [p.shape[0] for p in parts], n // -3, n % -4
    return run, lambda n: (torch.randn(n + 4, 3),)


@program
def bits_of_sizes():
    def run(x):
        n = x.shape[0]
        a, b = divmod(n, 4)
        return x * ((n & 6) + (n | 1) + (n ^ 2)), x[:a + 1] + b, (n >> 1) + (n << 2), x * math.gcd(n, 12), n ** 5 % 1000, 2 ** (n % 8), ~n
    return run, lambda n: (torch.randn(n + 2, 3),)


@program
def floats_compared():
    def run(x):
        n, m = x.shape
        x = x * 2 if n / m > 1.5 else x * 3
        return x + 1 if math.sqrt(n) * 0.5 <= 2.0 else x - 1, max(n, m) - min(n, 7), x * min(1.0, n / 10), x[:min(n, 5)], x[:max(2, n // 2)]
    return run, lambda n: (torch.randn(n + 2, 5),)


@program
def tensors_of_sizes():
    def run(x):
        n, m = x.shape
        return torch.tensor(n), torch.tensor([n, m, 3]), torch.tensor([[n, 1], [m, n]]) * 2, torch.tensor(n / m), x * torch.tensor([float(n)] * m), x.new_tensor([n])
    return run, lambda n: (torch.randn(n + 2, 5),)


@program
def statistics_kept():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = 0
            self.register_buffer("mean", torch.zeros(6))

        def forward(self, x):
            self.seen += x.shape[0]
            self.mean += (x.mean(0) - self.mean) * 0.1
            return x - self.mean
    model = Counter()

    def run(x):
        out = model(x)
        return out, model.mean.clone(), model.seen
    return run, lambda n: (torch.randn(n, 6),)


@program
def dictionary_of_inputs():
    words, head = nn.Embedding(30, 12), nn.Linear(12, 4)

    def run(batch):
        h = words(batch["ids"]) * batch["mask"].unsqueeze(-1)
        return {"logits": head(h.sum(1) / batch["mask"].sum(1, keepdim=True)), "length": batch["ids"].shape[1]}
    return run, lambda n: ({"ids": torch.randint(0, 30, (2, n)), "mask": (torch.rand(2, n) > 0.2).float() + 0.01},)


@program
def numbers_of_the_program():
    def run(x, n, limit):
        return x[:n].sum() + torch.arange(n).sum() * limit, n * 2 + 1
    return run, lambda n: (torch.randn(32), n, n * 3 + 1)


@program
def sub_batches():
    net = nn.Linear(5, 5)

    def run(x):
        out = []
        for start in range(0, 12, 4):
            out.append(net(x[start:start + 4]))
        return torch.cat(out)
    return run, lambda n: (torch.randn(n + 8, 5),)


@program
def half_precision_rows():
    norm = nn.LayerNorm(40).to(torch.bfloat16)
    return (lambda x: F.silu(norm(x)) * x.softmax(-1)), lambda n: (torch.randn(n, 3, 40, dtype=torch.bfloat16),)


@program
def transposed_input():
    return (lambda x: (x.t() @ x).relu().sum(0) + x.mean(0)), lambda n: (torch.randn(9, n).t(),)


@program
def sizes_in_sets():
    class Kept:
        seen, times = set(), []

    def run(x, k):
        Kept.seen.update((5, (k * 3 + 3) % 7))
        Kept.seen.add(k % 4)
        Kept.seen |= {x.shape[0]}
        Kept.seen.discard(k)
        fresh = {k, x.shape[0]} | set(x.shape)
        Kept.times.append(k)
        Kept.times *= k % 3
        return x + len(Kept.seen), sorted(Kept.seen), sorted(fresh), dict.fromkeys(x.shape, k), list(Kept.times)
    return run, lambda n: (torch.randn(n, 3), n % 7)


@program
def breaks_between():
    net = nn.Linear(6, 6)

    def run(x):
        y = net(x).relu()
        torch._dynamo.graph_break()
        return y.view(-1, 3).sum(1) + x.shape[0]
    return run, lambda n: (torch.randn(n, 6),)


def _language_model(build, train=False):
    def make():
        model = build()
        model.train(train)
        if not train:
            return (lambda ids: model(input_ids=ids).logits), lambda n: (torch.randint(0, 100, (2, n + 2)),)

        def step(ids):
            model.zero_grad()
            loss = model(input_ids=ids, labels=ids).loss
            loss.backward()
            return [loss.detach()] + [p.grad for p in model.parameters() if p.grad is not None]
        return step, lambda n: (torch.randint(0, 100, (n % 3 + 2, n + 3)),)
    return make


def _gpt2():
    import transformers
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2, n_head=4, n_embd=32, vocab_size=100, n_positions=64,
                                                                resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))


def _llama():
    import transformers
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, vocab_size=100,
                                                                  num_attention_heads=4, num_key_value_heads=2))


def _bert():
    import transformers
    return transformers.BertForMaskedLM(transformers.BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=100,
                                                                intermediate_size=64, hidden_dropout_prob=0, attention_probs_dropout_prob=0))


PROGRAMS.update(gpt2=_language_model(_gpt2), gpt2_training=_language_model(_gpt2, True), llama=_language_model(_llama),
                llama_training=_language_model(_llama, True), bert=_language_model(_bert), bert_training=_language_model(_bert, True))


@program
def resnet_batch():
    import torchvision
    model = torchvision.models.resnet18(weights=None).eval()
    return model, lambda n: (torch.randn(min(n, 5), 3, 32 + 32 * (n % 2), 64),)


@program
def vit_batch():
    import timm
    model = timm.create_model("vit_tiny_patch16_224", pretrained=False, depth=2, img_size=64).eval()
    return model, lambda n: (torch.randn(n, 3, 64, 64),)


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors_of(v)] if isinstance(value, (list, tuple)) else []


def others_of(value):
    """What is no tensor, with its types."""
    if isinstance(value, torch.Tensor):
        return "tensor", value.dtype, tuple(value.shape), value.stride()
    if isinstance(value, dict):
        return {k: others_of(v) for k, v in value.items()}
    return [others_of(v) for v in value] if isinstance(value, (list, tuple)) else (type(value), value)


def differs(got, expected):
    if others_of(got) != others_of(expected):
        return f"{others_of(got)} where eager gives {others_of(expected)}"
    for a, b in zip(tensors_of(got), tensors_of(expected)):
        tolerance = 3e-2 if b.dtype == torch.bfloat16 else 2e-4
        if not torch.allclose(a.double(), b.double(), rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"off by {(a.double() - b.double()).abs().max().item():.3g} in {tuple(b.shape)}"
    return None


def called(function, arguments):
    """(result, None) or (None, what was raised)."""
    try:
        return function(*arguments), None
    except Exception as error:
        return None, error


def run(name, compile, counters, sizes, seed):
    """(what went wrong or None, graphs compiled, breaks, seconds). Eager and compiled programs live in worlds of their own."""
    torch.manual_seed(seed)
    eager, draw = PROGRAMS[name]()
    torch.manual_seed(seed)
    function, _ = PROGRAMS[name]()
    before, compiled, spent, wrong = counters(), compile(function), 0.0, None
    for n in sizes:
        arguments = draw(n)
        expected, refused = called(eager, copy.deepcopy(arguments))
        start = time.perf_counter()
        got, raised = called(compiled, arguments)
        spent += time.perf_counter() - start
        if raised or refused:
            wrong = None if type(raised) is type(refused) else f"{raised!r:.300} where eager gives {refused!r:.300}"
        else:
            wrong = differs(got, expected)
        if wrong:
            wrong = f"size {n}: {wrong}"
            break
    after = counters()
    return wrong, after["graphs"] - before["graphs"], after["graph_breaks"] - before["graph_breaks"], spent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--engine", choices=("fusebox", "stock"), default="fusebox")
    parser.add_argument("--dynamic", action="store_true", help="dynamic=True")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--draw", type=int, default=0, help="this many sizes from 0 to 40, drawn anew for every program")
    parser.add_argument("--device", help="torch.set_default_device, which is a mode of its own")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--most", type=int, default=0, help="fail where a program is compiled into more graphs than this")
    o = parser.parse_args()
    dynamic = True if o.dynamic else None
    if o.engine == "stock":
        from torch._dynamo.utils import counters as stock
        compile = lambda f: torch.compile(f, dynamic=dynamic, backend=o.backend)
        counters = lambda: {"graphs": stock["stats"]["unique_graphs"], "graph_breaks": sum(stock["graph_break"].values())}
    else:
        import fusebox
        compile, counters = (lambda f: fusebox.compile(f, dynamic=dynamic, backend=o.backend)), fusebox.counters
    failed = 0
    random.seed(o.seed)
    if o.device:
        torch.set_default_device(o.device)
    print(f"seed {o.seed}, sizes {o.draw or list(o.sizes)}")
    for name in o.names or PROGRAMS:
        if o.engine == "stock":
            torch._dynamo.reset()
        sizes = random.choices(range(41), k=o.draw) if o.draw else o.sizes
        wrong, graphs, breaks, spent = run(name, compile, counters, sizes, o.seed)
        too_many = o.most and graphs > o.most * (breaks + 1)
        failed += bool(wrong or too_many)
        print(f"{name:28} {graphs:3} graphs {breaks:3} breaks {spent * 1e3:8.1f} ms  {wrong or ('too many graphs' if too_many else 'ok')}", flush=True)
    print(f"{len(o.names or PROGRAMS) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

"""Programs of many fields, beside the stock torch.compile and eager: what scientists, artists and engineers compile besides language models.

    PYTHONPATH=build/release/python:tests python tests/bench/fields.py [--device cuda] [--mode reduce-overhead] [--programs nerf_train …] [--json results.json]

Every engine runs in a process of its own with empty caches. On a CPU the programs are smaller. The first step's results and gradients are
compared with eager's. Ratios are stock / Fusebox: above 1, Fusebox is faster.
"""

import math
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measured_program import Mixed, layers, main
from measured_step import registry

# Builders take a function that chooses between a size for a GPU and one for a CPU, and return a function and its arguments.
PROGRAMS, program = registry()


@program(train=True)
def nerf_train(pick):
    """Rays through a field of density and colour, volume rendering."""
    rays, samples = pick(1024, 128), 64

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.density, self.colour = layers(63, 256, 256, 256, 256), nn.Linear(256, 1), layers(256 + 27, 128, 3)

        @staticmethod
        def encoded(x, bands):
            angles = x[..., None] * (2.0 ** torch.arange(bands, device=x.device)) * math.pi
            return torch.cat([x, angles.sin().flatten(-2), angles.cos().flatten(-2)], -1)

        def forward(self, origins, directions, target):
            t = torch.linspace(2, 6, samples, device=origins.device) + torch.rand(rays, samples, device=origins.device) * (4 / samples)
            points = origins[:, None] + directions[:, None] * t[..., None]
            hidden = F.relu(self.body(self.encoded(points, 10)))
            density = F.softplus(self.density(hidden).squeeze(-1))
            view = self.encoded(F.normalize(directions, dim=-1), 4)[:, None].expand(-1, samples, -1)
            colour = torch.sigmoid(self.colour(torch.cat([hidden, view], -1)))
            step = torch.diff(t, append=t[:, -1:] + 1e2)
            alpha = 1 - torch.exp(-density * step)
            weights = alpha * torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
            return F.mse_loss((weights[..., None] * colour).sum(1), target)
    return Field(), torch.randn(rays, 3), torch.randn(rays, 3), torch.rand(rays, 3)


@program(train=True)
def point_cloud_train(pick):
    """Edge convolutions over nearest neighbours."""
    batch, points, near = pick(16, 2), pick(1024, 256), 20

    class Edges(nn.Module):
        def __init__(self, width, out):
            super().__init__()
            self.net = nn.Sequential(nn.Conv2d(2 * width, out, 1, bias=False), nn.BatchNorm2d(out), nn.LeakyReLU(0.2))

        def forward(self, x):
            closeness = 2 * x.transpose(1, 2) @ x - x.square().sum(1, keepdim=True) - x.square().sum(1)[:, :, None]
            which = closeness.topk(near, -1)[1]
            rows = x.transpose(1, 2)
            neighbours = rows.gather(1, which.flatten(1)[..., None].expand(-1, -1, rows.size(-1))).view(batch, points, near, -1)
            centre = rows[:, :, None].expand_as(neighbours)
            return self.net(torch.cat([neighbours - centre, centre], -1).permute(0, 3, 1, 2)).amax(-1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.three, self.head = Edges(3, 64), Edges(64, 64), Edges(64, 128), nn.Linear(256, 40)

        def forward(self, x, labels):
            a = self.one(x)
            b = self.two(a)
            c = self.three(b)
            return F.cross_entropy(self.head(torch.cat([a, b, c], 1).amax(-1)), labels, label_smoothing=0.2)
    return Net(), torch.randn(batch, 3, points), torch.randint(0, 40, (batch,))


@program(train=True)
def gan_generator_train(pick):
    """Transposed convolutions against a discriminator under spectral norm."""
    from torch.nn.utils.parametrizations import spectral_norm

    def up(i, o):
        return nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())

    def down(i, o):
        return nn.Sequential(spectral_norm(nn.Conv2d(i, o, 4, 2, 1)), nn.LeakyReLU(0.2))

    class Game(nn.Module):
        def __init__(self):
            super().__init__()
            self.make = nn.Sequential(nn.ConvTranspose2d(100, 512, 4), up(512, 256), up(256, 128), up(128, 64), nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())
            self.judge = nn.Sequential(down(3, 64), down(64, 128), down(128, 256), nn.Conv2d(256, 1, 8))

        def forward(self, noise):
            return F.softplus(-self.judge(self.make(noise))).mean()
    return Game(), torch.randn(pick(64, 2), 100, 1, 1)


@program(train=True)
def vector_quantised_train(pick):
    """An autoencoder of images with a codebook and the straight-through estimator."""
    class Coder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode = nn.Sequential(nn.Conv2d(3, 128, 4, 2, 1), nn.ReLU(), nn.Conv2d(128, 64, 4, 2, 1))
            self.decode = nn.Sequential(nn.ConvTranspose2d(64, 128, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(128, 3, 4, 2, 1))
            self.book = nn.Embedding(1024, 64)

        def forward(self, x):
            z = self.encode(x)
            rows = z.permute(0, 2, 3, 1).reshape(-1, 64)
            which = torch.cdist(rows, self.book.weight).argmin(1)
            code = self.book(which).view(z.size(0), z.size(2), z.size(3), 64).permute(0, 3, 1, 2)
            loss = F.mse_loss(code, z.detach()) + 0.25 * F.mse_loss(z, code.detach())
            used = torch.zeros(1024, device=x.device).scatter_add_(0, which, torch.ones_like(which, dtype=x.dtype))
            share = used / used.sum()
            code = z + (code - z).detach()
            return F.mse_loss(self.decode(code), x) + loss, torch.exp(-(share * (share + 1e-10).log()).sum())
    return Coder(), torch.rand(pick(32, 2), 3, 128, 128)


@program(train=True)
def image_and_text_train(pick):
    """A contrastive loss of two encoders."""
    width, batch = 512, pick(256, 8)

    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(width, 8, 2048, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
            self.patch = nn.Conv2d(3, width, 16, 16)
            self.see, self.read = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            self.word, self.place = nn.Embedding(49408, width), nn.Parameter(torch.randn(77, width) * 0.01)
            self.scale = nn.Parameter(torch.tensor(2.6593))

        def forward(self, image, text):
            with torch.autocast(image.device.type, torch.bfloat16):
                seen = self.see(self.patch(image).flatten(2).transpose(1, 2)).mean(1)
                mask = torch.full((77, 77), -torch.inf, device=text.device).triu(1)
                hidden = self.read(self.word(text) + self.place, mask=mask)
                read = hidden[torch.arange(text.size(0), device=text.device), text.argmax(-1)]
                scores = self.scale.exp() * F.normalize(seen, dim=-1) @ F.normalize(read, dim=-1).t()
                labels = torch.arange(image.size(0), device=image.device)
                return (F.cross_entropy(scores, labels) + F.cross_entropy(scores.t(), labels)) / 2
    return Pair(), torch.randn(batch, 3, 96, 96), torch.randint(0, 49408, (batch, 77))


@program(train=True)
def diffusion_train(pick):
    """Noise on images, a small network with time embeddings, group norms and attention."""
    class Block(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.a, self.b, self.time = nn.Sequential(nn.GroupNorm(8, i), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1)), nn.Sequential(nn.GroupNorm(8, o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1)), nn.Linear(256, o)
            self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

        def forward(self, x, t):
            return self.b(self.a(x) + self.time(t)[:, :, None, None]) + self.skip(x)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Conv2d(3, 64, 3, padding=1), nn.Conv2d(64, 3, 3, padding=1)
            self.down1, self.down2, self.middle, self.up2, self.up1 = Block(64, 64), Block(64, 128), Block(128, 128), Block(256, 64), Block(128, 64)
            self.attend, self.norm, self.time = nn.MultiheadAttention(128, 4, batch_first=True), nn.GroupNorm(8, 128), layers(64, 256, 256, act=nn.SiLU)

        def forward(self, clean, noise, when, kept):
            with torch.autocast(clean.device.type, torch.bfloat16):
                k = kept[when][:, None, None, None]
                x = k.sqrt() * clean + (1 - k).sqrt() * noise
                angle = when[:, None].float() * torch.exp(-math.log(10000) * torch.arange(32, device=x.device) / 32)
                t = F.silu(self.time(torch.cat([angle.sin(), angle.cos()], -1)))
                x = self.first(x)
                a = self.down1(x, t)
                b = self.down2(F.avg_pool2d(a, 2), t)
                m = self.middle(F.avg_pool2d(b, 2), t)
                rows = self.norm(m).flatten(2).transpose(1, 2)
                m = m + self.attend(rows, rows, rows, need_weights=False)[0].transpose(1, 2).view_as(m)
                u = self.up2(torch.cat([F.interpolate(m, scale_factor=2), b], 1), t)
                u = self.up1(torch.cat([F.interpolate(u, scale_factor=2), a], 1), t)
                return F.mse_loss(self.last(F.silu(u)).float(), noise)
    batch, size = pick(64, 2), pick(64, 32)
    return Net(), torch.randn(batch, 3, size, size), torch.randn(batch, 3, size, size), torch.randint(0, 1000, (batch,)), torch.linspace(0.9999, 0.02, 1000)


@program(train=True)
def fourier_operator_train(pick):
    """Products with complex weights among the low frequencies (a Fourier neural operator)."""
    width, modes, size = 32, 12, pick(128, 64)

    class Spectral(nn.Module):
        def __init__(self):
            super().__init__()
            self.low, self.high = (nn.Parameter(torch.randn(width, width, modes, modes, dtype=torch.cfloat) / width**2) for _ in range(2))

        def forward(self, x):
            f = torch.fft.rfft2(x)
            out = torch.zeros(x.size(0), width, f.size(-2), f.size(-1), dtype=torch.cfloat, device=x.device)
            out[:, :, :modes, :modes] = torch.einsum("bixy,ioxy->boxy", f[:, :, :modes, :modes], self.low)
            out[:, :, -modes:, :modes] = torch.einsum("bixy,ioxy->boxy", f[:, :, -modes:, :modes], self.high)
            return torch.fft.irfft2(out, s=x.shape[-2:])

    class Operator(nn.Module):
        def __init__(self):
            super().__init__()
            self.lift, self.down = nn.Conv2d(3, width, 1), nn.Sequential(nn.Conv2d(width, 128, 1), nn.GELU(), nn.Conv2d(128, 1, 1))
            self.spectral, self.plain = nn.ModuleList(Spectral() for _ in range(4)), nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(4))

        def forward(self, x, target):
            x = self.lift(x)
            for spectral, plain in zip(self.spectral, self.plain):
                x = F.gelu(spectral(x) + plain(x))
            wrong = self.down(x) - target
            return (wrong.flatten(1).norm(dim=1) / target.flatten(1).norm(dim=1)).mean()
    batch = pick(20, 2)
    return Operator(), torch.randn(batch, 3, size, size), torch.randn(batch, 1, size, size)


@program(train=True)
def conformer_train(pick):
    """Speech: gated and depthwise convolutions, attention, connectionist temporal classification."""
    width, batch, length = 256, pick(16, 2), pick(400, 100)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ff1, self.ff2 = (nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1024), nn.SiLU(), nn.Dropout(0.0), nn.Linear(1024, width)) for _ in range(2))
            self.norm, self.attend, self.last = nn.LayerNorm(width), nn.MultiheadAttention(width, 4, batch_first=True), nn.LayerNorm(width)
            self.pre, self.conv = nn.LayerNorm(width), nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.GLU(1), nn.Conv1d(width, width, 31, padding=15, groups=width), nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1))

        def forward(self, x, padded):
            x = x + 0.5 * self.ff1(x)
            y = self.norm(x)
            x = x + self.attend(y, y, y, key_padding_mask=padded, need_weights=False)[0]
            x = x + self.conv(self.pre(x).transpose(1, 2)).transpose(1, 2)
            return self.last(x + 0.5 * self.ff2(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.blocks, self.head = nn.Linear(80, width), nn.ModuleList(Block() for _ in range(4)), nn.Linear(width, 500)

        def forward(self, x, lengths, labels, label_lengths):
            padded = torch.arange(x.size(1), device=x.device) >= lengths[:, None]
            x = self.first(x)
            for block in self.blocks:
                x = block(x, padded)
            return F.ctc_loss(self.head(x).log_softmax(-1).transpose(0, 1), labels, lengths, label_lengths, zero_infinity=True)
    return Net(), torch.randn(batch, length, 80), torch.randint(length // 2, length + 1, (batch,)), torch.randint(1, 500, (batch, 30)), torch.randint(10, 31, (batch,))


@program()
def mel_spectrogram(pick):
    """Windowed spectra of sound, mel filters, decibels, mean and variance normalised."""
    window, filters = torch.hann_window(400), torch.rand(80, 201)

    def features(sound, window, filters):
        power = torch.stft(sound, 400, 160, window=window, return_complex=True).abs().square()
        mel = torch.matmul(filters, power).clamp(min=1e-10).log10()
        mel = torch.maximum(mel, mel.amax((1, 2), keepdim=True) - 8)
        return (mel - mel.mean(-1, keepdim=True)) / (mel.std(-1, keepdim=True) + 1e-5)
    return features, torch.randn(pick(32, 4), 160000), window, filters


@program(train=True)
def optical_flow_train(pick):
    """Correlation of two images' features looked up around a flow that is refined."""
    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(nn.Conv2d(3, 64, 7, 4, 3), nn.InstanceNorm2d(64), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1))
            self.update = nn.Sequential(nn.Conv2d(81 + 2, 96, 3, padding=1), nn.ReLU(), nn.Conv2d(96, 2, 3, padding=1))

        def forward(self, a, b):
            fa, fb = self.features(a), self.features(b)
            n, c, h, w = fa.shape
            volume = (fa.flatten(2).transpose(1, 2) @ fb.flatten(2) / c**0.5).view(n * h * w, 1, h, w)
            y, x = torch.meshgrid(torch.arange(h, device=a.device), torch.arange(w, device=a.device), indexing="ij")
            place = torch.stack([x, y]).float()[None].expand(n, -1, -1, -1)
            d = torch.arange(-4, 5, device=a.device).float()
            around = torch.stack(torch.meshgrid(d, d, indexing="xy"), -1).view(1, 9, 9, 2)
            flow, loss = torch.zeros_like(place), 0.0
            for _ in range(4):
                centre = (place + flow.detach()).permute(0, 2, 3, 1).reshape(-1, 1, 1, 2)
                grid = (centre + around) * 2 / torch.tensor([w - 1, h - 1], device=a.device) - 1
                found = F.grid_sample(volume, grid, align_corners=True).view(n, h, w, 81).permute(0, 3, 1, 2)
                flow = flow.detach() + self.update(torch.cat([found, flow.detach()], 1))
                loss = loss + flow.abs().mean()
            return loss
    size = pick((256, 320), (64, 96))
    return Flow(), torch.rand(pick(4, 1), 3, *size), torch.rand(pick(4, 1), 3, *size)


@program()
def detections(pick):
    """Anchors decoded, overlaps, suppression by a matrix, the best kept."""
    def decode(anchors, moves, scores):
        centre, size = (anchors[:, :2] + anchors[:, 2:]) / 2, anchors[:, 2:] - anchors[:, :2]
        centre, size = centre + moves[..., :2] * size, size * moves[..., 2:].clamp(max=4.0).exp()
        boxes = torch.cat([centre - size / 2, centre + size / 2], -1).clamp(0, 640)
        best, kind = scores.sigmoid().max(-1)
        value, which = best.topk(400, 1)
        boxes, kind = boxes.gather(1, which[..., None].expand(-1, -1, 4)), kind.gather(1, which)
        moved = boxes + kind[..., None] * 1000.0
        low, high = torch.maximum(moved[:, :, None, :2], moved[:, None, :, :2]), torch.minimum(moved[:, :, None, 2:], moved[:, None, :, 2:])
        inner, area = (high - low).clamp(min=0).prod(-1), (moved[..., 2:] - moved[..., :2]).prod(-1)
        overlap = (inner / (area[:, :, None] + area[:, None] - inner)).triu(1)
        most = overlap.amax(1)
        decay = ((1 - overlap.square()) / (1 - most[:, :, None].square()).clamp(min=1e-6)).amin(1).clamp(max=1)
        value, order = (value * decay).sort(descending=True)
        return value[:, :100], boxes.gather(1, order[:, :100, None].expand(-1, -1, 4)), kind.gather(1, order[:, :100])
    n = pick(8400, 2100)
    corner = torch.rand(n, 2) * 600
    return decode, torch.cat([corner, corner + 8 + torch.rand(n, 2) * 60], -1), torch.randn(pick(16, 2), n, 4) * 0.2, torch.randn(pick(16, 2), n, 80)


@program(train=True)
def segmentation_train(pick):
    """Dilated convolutions at several rates, bilinear enlargement, cross entropy and Dice over pixels."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(64, 256, 3, 2, 1, bias=False), nn.BatchNorm2d(256), nn.ReLU())
            self.rates = nn.ModuleList(nn.Sequential(nn.Conv2d(256, 128, 3, padding=r, dilation=r, bias=False), nn.BatchNorm2d(128), nn.ReLU()) for r in (1, 6, 12))
            self.pool, self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(256, 128, 1), nn.ReLU()), nn.Conv2d(512, 21, 1)

        def forward(self, x, labels):
            f = self.stem(x)
            f = torch.cat([rate(f) for rate in self.rates] + [self.pool(f).expand(-1, -1, *f.shape[-2:])], 1)
            scores = F.interpolate(self.head(f), size=x.shape[-2:], mode="bilinear", align_corners=False)
            share = scores.float().softmax(1)
            known = (labels != 255)
            truth = F.one_hot(labels.where(known, 0), 21).permute(0, 3, 1, 2) * known[:, None]
            dice = 1 - (2 * (share * truth).sum((0, 2, 3)) + 1) / ((share + truth).sum((0, 2, 3)) + 1)
            return F.cross_entropy(scores, labels, ignore_index=255) + dice.mean()
    size = pick(384, 96)
    labels = torch.randint(0, 21, (pick(8, 2), size, size))
    return Mixed(Net()), torch.rand(pick(8, 2), 3, size, size), labels.masked_fill(torch.rand(labels.shape) < 0.1, 255)


@program(train=True)
def two_towers_train(pick):
    """Retrieval: embeddings of users and items, negatives within the batch, corrected by their frequency."""
    class Towers(nn.Module):
        def __init__(self):
            super().__init__()
            self.user, self.item = nn.EmbeddingBag(200000, 64, mode="mean"), nn.Embedding(100000, 64)
            self.a, self.b = layers(64 + 8, 256, 128), layers(64, 256, 128)

        def forward(self, history, offsets, dense, items, often):
            u = F.normalize(self.a(torch.cat([self.user(history, offsets), dense], -1)), dim=-1)
            v = F.normalize(self.b(self.item(items)), dim=-1)
            scores = u @ v.t() / 0.05 - often.log()
            same = (items[:, None] == items) & ~torch.eye(items.size(0), dtype=torch.bool, device=items.device)
            return F.cross_entropy(scores.masked_fill(same, -1e9), torch.arange(items.size(0), device=items.device))
    batch = pick(4096, 512)
    return Towers(), torch.randint(0, 200000, (batch * 20,)), torch.arange(0, batch * 20, 20), torch.randn(batch, 8), torch.randint(0, 100000, (batch,)), torch.rand(batch) + 1e-3


@program(train=True)
def video_train(pick):
    """Convolutions in three dimensions, split in space and time."""
    def block(i, o, stride=1):
        return nn.Sequential(nn.Conv3d(i, o, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False), nn.BatchNorm3d(o), nn.ReLU(),
                             nn.Conv3d(o, o, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False), nn.BatchNorm3d(o), nn.ReLU())
    net = nn.Sequential(block(3, 32, 2), block(32, 64), block(64, 128, 2), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(128, 400))
    return Mixed(net, F.cross_entropy), torch.randn(pick(8, 1), 3, pick(16, 8), pick(112, 56), pick(112, 56)), torch.randint(0, 400, (pick(8, 1),))


@program(train=True)
def splines_train(pick):
    """Layers of learned splines (Kolmogorov-Arnold)."""
    class Splines(nn.Module):
        def __init__(self, i, o, grid=8, order=3):
            super().__init__()
            self.order = order
            self.register_buffer("knots", torch.arange(-order, grid + order + 1) * (2 / grid) - 1)
            self.base, self.weight = nn.Linear(i, o), nn.Parameter(torch.randn(o, i, grid + order) * 0.1)

        def forward(self, x):
            t, p = self.knots, x[..., None]
            b = ((p >= t[:-1]) & (p < t[1:])).to(x.dtype)
            for k in range(1, self.order + 1):
                b = (p - t[:-(k + 1)]) / (t[k:-1] - t[:-(k + 1)]) * b[..., :-1] + (t[k + 1:] - p) / (t[k + 1:] - t[1:-k]) * b[..., 1:]
            return self.base(F.silu(x)) + torch.einsum("bik,oik->bo", b, self.weight)
    return nn.Sequential(Splines(64, 128), Splines(128, 128), Splines(128, 10)), torch.rand(pick(4096, 512), 64) * 2 - 1


@program()
def muon_step(pick):
    """Momentum made orthogonal by Newton and Schulz's iteration, of 24 matrices."""
    def step(gradients, momenta, weights):
        out = []
        for g, m, w in zip(gradients, momenta, weights):
            m = 0.95 * m + g
            x = (g + 0.95 * m).bfloat16()
            wide = x.size(0) > x.size(1)
            x = x.mT if wide else x
            x = x / (x.norm() + 1e-7)
            for _ in range(5):
                a = x @ x.mT
                x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
            x = x.mT if wide else x
            out += [w * (1 - 0.02 * 0.01) - 0.02 * max(1, w.size(0) / w.size(1)) ** 0.5 * x.to(w.dtype), m]
        return out
    n = pick(768, 96)
    sizes = [(n, n), (n, n), (n, 4 * n), (4 * n, n)] * 6
    return step, *([torch.randn(s) for s in sizes] for _ in range(3))


@program(train=True)
def experts_dispatched_train(pick):
    """A mixture of experts with a capacity: tokens sorted by expert, products in a batch, added back."""
    width, experts, count = pick(1024, 128), 8, pick(8192, 512)
    capacity = count * 2 // experts * 5 // 4

    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(width, experts, bias=False)
            self.up, self.down = nn.Parameter(torch.randn(experts, width, 2 * width) * width**-0.5), nn.Parameter(torch.randn(experts, 2 * width, width) * width**-0.5)

        def forward(self, x):
            share = self.gate(x).float().softmax(-1)
            weight, which = share.topk(2, -1)
            weight = weight / weight.sum(-1, keepdim=True)
            flat = which.flatten()
            chosen = F.one_hot(flat, experts)
            rank = (chosen.cumsum(0) - 1).gather(1, flat[:, None]).squeeze(1)
            kept = rank < capacity
            place = torch.where(kept, flat * capacity + rank, experts * capacity)
            rows = torch.zeros(experts * capacity + 1, width, dtype=x.dtype, device=x.device).index_copy(0, place, x.repeat_interleave(2, 0))
            h = F.silu(torch.bmm(rows[:-1].view(experts, capacity, width), self.up))
            y = torch.bmm(h, self.down).reshape(-1, width)
            y = torch.cat([y, torch.zeros_like(y[:1])])[place] * (weight.flatten() * kept)[:, None]
            balance = (share.mean(0) * chosen.float().mean(0)).sum() * experts
            return y.view(-1, 2, width).sum(1), balance
    return Mixed(Experts()), torch.randn(count, width)


@program()
def sampled_tokens(pick):
    """A token of a vocabulary: penalties, temperature, the k best, the nucleus, a draw by exponentials."""
    def sample(logits, before, noise):
        seen = torch.zeros_like(logits).scatter_add_(1, before, torch.ones_like(before, dtype=logits.dtype))
        logits = torch.where(seen > 0, torch.where(logits > 0, logits / 1.1, logits * 1.1), logits) / 0.8
        least = logits.topk(50, -1)[0][:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
        ordered, which = logits.sort(-1, descending=True)
        beyond = ordered.softmax(-1).cumsum(-1) > 0.95
        beyond = torch.cat([torch.zeros_like(beyond[:, :1]), beyond[:, :-1]], -1)
        logits = logits.masked_fill(beyond.scatter(1, which, beyond), -torch.inf)
        share = logits.softmax(-1)
        return (share / noise).argmax(-1), share.log().nan_to_num(neginf=0.0).mul(share).sum(-1)
    batch, words = pick(64, 4), 32000
    return sample, torch.randn(batch, words) * 3, torch.randint(0, words, (batch, 256)), torch.empty(batch, words).exponential_()


@program()
def four_bit_linear(pick):
    """Weights of four bits, two in a byte, a scale and zero for each 128; a token at a time."""
    n = pick(4096, 512)

    def linear(x, packed, scale, zero):
        w = torch.stack([packed & 15, packed >> 4], -1).view(packed.size(0), -1, 128)
        w = ((w.to(x.dtype) - zero) * scale).view(packed.size(0), -1)
        return x @ w.t()
    return linear, torch.randn(1, n).bfloat16(), torch.randint(0, 256, (n, n // 2), dtype=torch.uint8), torch.rand(n, n // 128, 1).bfloat16() * 0.1, torch.full((n, n // 128, 1), 8.0).bfloat16()


@program()
def lattice_flow(pick):
    """Lattice Boltzmann in two dimensions: collision and streaming by rolls, ten steps."""
    weight = torch.tensor([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    cx, cy = [0, 1, 0, -1, 0, 1, -1, -1, 1], [0, 0, 1, 0, -1, 1, 1, -1, -1]

    def run(f, wall, weight):
        for _ in range(10):
            f = torch.stack([torch.roll(f[i], (cy[i], cx[i]), (0, 1)) for i in range(9)])
            rho = f.sum(0)
            ux, uy = sum(c * f[i] for i, c in enumerate(cx)) / rho, sum(c * f[i] for i, c in enumerate(cy)) / rho
            u2 = 1.5 * (ux * ux + uy * uy)
            even = torch.stack([weight[i] * rho * (1 + 3 * (cx[i] * ux + cy[i] * uy) + 4.5 * (cx[i] * ux + cy[i] * uy) ** 2 - u2) for i in range(9)])
            f = torch.where(wall, f[[0, 3, 4, 1, 2, 7, 8, 5, 6]], f + (even - f) / 0.6)
        return f
    size = pick(1024, 128)
    return run, weight[:, None, None] * (1 + 0.01 * torch.randn(9, size, size)), torch.rand(size, size) < 0.02, weight


@program(train=True)
def kalman_train(pick):
    """Filters in a batch: products, factorisations and solutions of small matrices over time."""
    batch, steps, n, m = pick(512, 32), 20, 8, 4

    class Filter(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.h = nn.Parameter(torch.eye(n) + 0.01 * torch.randn(n, n)), nn.Parameter(torch.randn(m, n))
            self.q, self.r = nn.Parameter(torch.zeros(n)), nn.Parameter(torch.zeros(m))

        def forward(self, seen):
            x, p = seen.new_zeros(batch, n, 1), torch.eye(n, device=seen.device).expand(batch, n, n)
            loss = 0.0
            for t in range(steps):
                x, p = self.a @ x, self.a @ p @ self.a.mT + torch.diag(self.q.exp())
                s = self.h @ p @ self.h.mT + torch.diag(self.r.exp())
                wrong = seen[:, t, :, None] - self.h @ x
                root = torch.linalg.cholesky(s)
                gain = torch.cholesky_solve(self.h @ p, root).mT
                loss = loss + (torch.linalg.solve_triangular(root, wrong, upper=False) ** 2).sum((1, 2)).mean() + 2 * root.diagonal(dim1=-2, dim2=-1).log().sum(-1).mean()
                x, p = x + gain @ wrong, (torch.eye(n, device=seen.device) - gain @ self.h) @ p
            return loss / steps
    return Filter(), torch.randn(batch, steps, m)


@program(train=True)
def attended_decoder_train(pick):
    """Recurrent cells over time that attend to what was encoded."""
    batch, source, target, width = pick(128, 16), 40, 25, 512 if pick(1, 0) else 128

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.word, self.encode, self.cell = nn.Embedding(10000, width), nn.GRU(width, width // 2, bidirectional=True, batch_first=True), nn.GRUCell(2 * width, width)
            self.key, self.score, self.out = nn.Linear(width, width), nn.Linear(width, 1), nn.Linear(2 * width, 10000)

        def forward(self, x, y):
            memory, _ = self.encode(self.word(x))
            keys, h, outs = self.key(memory), memory.mean(1), []
            for t in range(target - 1):
                share = self.score(torch.tanh(keys + h[:, None])).softmax(1)
                context = (share * memory).sum(1)
                h = self.cell(torch.cat([self.word(y[:, t]), context], -1), h)
                outs.append(torch.cat([h, context], -1))
            return F.cross_entropy(self.out(torch.stack(outs, 1)).flatten(0, 1), y[:, 1:].flatten())
    return Net(), torch.randint(0, 10000, (batch, source)), torch.randint(0, 10000, (batch, target))


@program()
def colour_and_turn(pick):
    """Augmentation of images: contrast, saturation, hue by a matrix, an affine grid, erased boxes."""
    def augment(x, angle, gain):
        n, _, h, w = x.shape
        grey = (x * x.new_tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)).sum(1, keepdim=True)
        x = (grey.mean((2, 3), keepdim=True) + (x - grey.mean((2, 3), keepdim=True)) * gain[:, 0, None, None, None]).clamp(0, 1)
        x = torch.lerp(grey, x, gain[:, 1, None, None, None]).clamp(0, 1)
        theta = torch.stack([torch.stack([angle.cos(), -angle.sin(), 0 * angle], -1), torch.stack([angle.sin(), angle.cos(), 0 * angle], -1)], 1)
        x = F.grid_sample(x, F.affine_grid(theta, [n, 3, h, w], align_corners=False), padding_mode="reflection", align_corners=False)
        top, left = (gain[:, 2] * h / 2).long(), (gain[:, 3] * w / 2).long()
        rows, cols = torch.arange(h, device=x.device), torch.arange(w, device=x.device)
        inside = ((rows >= top[:, None]) & (rows < top[:, None] + h // 4))[:, :, None] & ((cols >= left[:, None]) & (cols < left[:, None] + w // 4))[:, None]
        return x.masked_fill(inside[:, None], 0.5).flip(-1)
    n = pick(128, 8)
    return augment, torch.rand(n, 3, pick(224, 112), pick(224, 112)), torch.randn(n) * 0.3, torch.rand(n, 4) + 0.1


@program(train=True)
def structural_similarity_train(pick):
    """A loss of windows' means and variances at five scales."""
    g = torch.exp(-(torch.arange(11.0) - 5) ** 2 / 4.5)
    window = (g[:, None] * g / g.sum() ** 2).expand(3, 1, 11, 11).contiguous()

    def loss(a, b, window):
        total = 0.0
        for scale in range(4):
            ma, mb = F.conv2d(a, window, groups=3), F.conv2d(b, window, groups=3)
            va, vb, ab = F.conv2d(a * a, window, groups=3) - ma**2, F.conv2d(b * b, window, groups=3) - mb**2, F.conv2d(a * b, window, groups=3) - ma * mb
            total = total + ((2 * ma * mb + 1e-4) * (2 * ab + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4))).mean()
            a, b = F.avg_pool2d(a, 2), F.avg_pool2d(b, 2)
        return 1 - total / 4
    n, size = pick(16, 2), pick(256, 128)
    return loss, torch.rand(n, 3, size, size).requires_grad_(), torch.rand(n, 3, size, size), window


@program(train=True)
def linear_attention_train(pick):
    """Retention in chunks: decays within a chunk, a state between chunks."""
    b, h, n, d, chunk = pick(8, 1), 8, pick(2048, 256), 64, 64

    def retain(q, k, v):
        decay = 1 - 2.0 ** (-5 - torch.arange(h, device=q.device))
        i = torch.arange(chunk, device=q.device)
        inner = torch.where(i[:, None] >= i, decay[:, None, None] ** (i[:, None] - i).clamp(min=0), 0.0)
        q, k, v = (t.view(b, h, n // chunk, chunk, d) for t in (q, k, v))
        within = ((q @ k.mT) * inner[None, :, None].to(q.dtype)) @ v
        states, s = [], q.new_zeros(b, h, d, d)
        keep = (decay[:, None] ** (chunk - 1 - i)).to(q.dtype)[None, :, :, None]
        for c in range(n // chunk):
            states.append(s)
            s = s * (decay**chunk).to(q.dtype)[None, :, None, None] + (k[:, :, c] * keep).mT @ v[:, :, c]
        across = (q * (decay[:, None] ** (i + 1)).to(q.dtype)[None, :, None, :, None]) @ torch.stack(states, 2)
        out = (within + across).view(b, h, n, d)
        return F.layer_norm(out, (d,))
    return retain, *((torch.randn(b, h, n, d) * 0.1).bfloat16().requires_grad_() for _ in range(3))


@program(train=True)
def tables_train(pick):
    """A transformer over columns of a table: numbers and categories as tokens, gated units."""
    rows, numbers, kinds, width = pick(2048, 128), 20, 10, 192

    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b, self.cls = nn.Parameter(torch.randn(numbers, width)), nn.Parameter(torch.randn(numbers, width)), nn.Parameter(torch.randn(width))
            self.kind, self.out = nn.ModuleList(nn.Embedding(100, width) for _ in range(kinds)), nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, 1))
            self.qkv, self.proj = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(3)), nn.ModuleList(nn.Linear(width, width) for _ in range(3))
            self.up, self.down = nn.ModuleList(nn.Linear(width, 512) for _ in range(3)), nn.ModuleList(nn.Linear(256, width) for _ in range(3))
            self.n1, self.n2 = nn.ModuleList(nn.LayerNorm(width) for _ in range(3)), nn.ModuleList(nn.LayerNorm(width) for _ in range(3))

        def forward(self, x, k, y):
            t = torch.cat([self.cls.expand(rows, 1, -1), x[..., None] * self.w + self.b] + [e(k[:, i, None]) for i, e in enumerate(self.kind)], 1)
            for qkv, proj, up, down, n1, n2 in zip(self.qkv, self.proj, self.up, self.down, self.n1, self.n2):
                q, key, v = qkv(n1(t)).unflatten(-1, (3, 8, -1)).permute(2, 0, 3, 1, 4)
                t = t + proj(F.scaled_dot_product_attention(q, key, v).transpose(1, 2).flatten(2))
                a, g = up(n2(t)).chunk(2, -1)
                t = t + down(a * F.relu(g))
            return F.binary_cross_entropy_with_logits(self.out(t[:, 0]).squeeze(-1), y)
    return Table(), torch.randn(rows, numbers), torch.randint(0, 100, (rows, kinds)), torch.randint(0, 2, (rows,)).float()


@program(train=True)
def policy_train(pick):
    """Proximal policy optimisation of one minibatch, advantages by a scan backwards in time."""
    envs, steps = pick(256, 32), 128

    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.actor, self.critic, self.spread = layers(64, 256, 256, 8, act=nn.Tanh), layers(64, 256, 256, 1, act=nn.Tanh), nn.Parameter(torch.zeros(8))

        def forward(self, seen, action, before, reward, done, value):
            with torch.no_grad():
                last, advantages = torch.zeros_like(reward[0]), []
                for t in reversed(range(steps - 1)):
                    delta = reward[t] + 0.99 * value[t + 1] * (1 - done[t]) - value[t]
                    last = delta + 0.99 * 0.95 * (1 - done[t]) * last
                    advantages.append(last)
                advantage = torch.stack(advantages[::-1])
                returned = advantage + value[:-1]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            mean, spread = self.actor(seen), self.spread.exp()
            logp = (-((action - mean) / spread) ** 2 / 2 - self.spread - 0.9189).sum(-1)[:-1]
            ratio = (logp - before[:-1]).exp()
            gain = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
            v = self.critic(seen).squeeze(-1)[:-1]
            clipped = value[:-1] + (v - value[:-1]).clamp(-0.2, 0.2)
            return -gain + 0.25 * torch.max((v - returned) ** 2, (clipped - returned) ** 2).mean() - 0.01 * (self.spread + 1.4189).sum()
    r = torch.randn
    return Policy(), r(steps, envs, 64), r(steps, envs, 8), r(steps, envs) - 11, r(steps, envs), (torch.rand(steps, envs) < 0.02).float(), r(steps, envs)


@program(train=True)
def gaussian_process_train(pick):
    """The marginal likelihood of a Gaussian process of a learned kernel."""
    class Process(nn.Module):
        def __init__(self):
            super().__init__()
            self.length, self.scale, self.noise = nn.Parameter(torch.zeros(8)), nn.Parameter(torch.zeros(())), nn.Parameter(torch.tensor(-2.0))

        def forward(self, x, y):
            z = x / F.softplus(self.length)
            apart = torch.cdist(z, z)
            k = F.softplus(self.scale) * (1 + 5**0.5 * apart + 5 / 3 * apart**2) * torch.exp(-(5**0.5) * apart)
            root = torch.linalg.cholesky(k + (F.softplus(self.noise) + 1e-4) * torch.eye(x.size(0), device=x.device))
            alpha = torch.cholesky_solve(y[:, None], root).squeeze(-1)
            return 0.5 * y @ alpha + root.diagonal().log().sum()
    n = pick(1500, 300)
    return Process(), torch.rand(n, 8), torch.randn(n)


@program(train=True)
def neural_equation_train(pick):
    """A differential equation by Runge and Kutta's fourth order."""
    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = layers(65, 128, 128, 64, act=nn.Tanh)

        def forward(self, x):
            def f(x, t):
                return self.f(torch.cat([x, torch.full_like(x[:, :1], t)], -1))
            h = 0.1
            for i in range(10):
                t = i * h
                a = f(x, t)
                b = f(x + h / 2 * a, t + h / 2)
                c = f(x + h / 2 * b, t + h / 2)
                d = f(x + h * c, t + h)
                x = x + h / 6 * (a + 2 * b + 2 * c + d)
            return x.square().mean()
    return Flow(), torch.randn(pick(4096, 256), 64)


@program(train=True)
def molecules_train(pick):
    """Messages along bonds by radial functions, added to atoms, energies and forces."""
    atoms, bonds = pick(8192, 512), pick(131072, 4096)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.kind, self.filters, self.mix = nn.Embedding(100, 128), nn.ModuleList(layers(50, 128, 128, act=nn.Softplus) for _ in range(3)), nn.ModuleList(layers(128, 128, 128, act=nn.Softplus) for _ in range(3))
            self.out = layers(128, 64, 1, act=nn.Softplus)

        def forward(self, kind, place, source, target, molecule):
            apart = (place[source] - place[target]).norm(dim=-1).clamp(min=1e-3)
            radial = torch.exp(-10 * (apart[:, None] - torch.linspace(0, 5, 50, device=place.device)) ** 2)
            cut = 0.5 * (torch.cos(apart * math.pi / 5) + 1) * (apart < 5)
            x = self.kind(kind)
            for filters, mix in zip(self.filters, self.mix):
                message = x[source] * filters(radial) * cut[:, None]
                x = x + mix(torch.zeros_like(x).index_add(0, target, message))
            return torch.zeros(atoms // 16, 1, device=place.device).index_add(0, molecule, self.out(x))
    ends = torch.randint(0, atoms, (2, bonds))
    return Net(), torch.randint(0, 100, (atoms,)), (torch.rand(atoms, 3) * 8).requires_grad_(), ends[0], ends[1].sort()[0], torch.arange(atoms) // 16


@program(train=True)
def forecast_train(pick):
    """Series in patches, each normalised and restored; trend by a moving mean; quantile losses."""
    batch, channels, length = pick(256, 16), 7, 336

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.place = nn.Linear(16, 128), nn.Parameter(torch.zeros(41, 128))
            self.encode = nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 8, 256, dropout=0.0, activation="gelu", batch_first=True), 3, enable_nested_tensor=False)
            self.head, self.trend = nn.Linear(41 * 128, 96 * 3), nn.Linear(length, 96)

        def forward(self, x, future):
            mean, spread = x.mean(-1, keepdim=True), (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
            z = (x - mean) / spread
            slow = F.avg_pool1d(F.pad(z, (12, 12), mode="replicate"), 25, 1)
            patches = (z - slow).unfold(-1, 16, 8).flatten(0, 1)
            fast = self.head(self.encode(self.embed(patches) + self.place).flatten(1)).view(batch, channels, 3, 96)
            out = (fast + self.trend(slow)[:, :, None]) * spread[..., None] + mean[..., None]
            wrong = future[:, :, None] - out
            q = torch.tensor([0.1, 0.5, 0.9], device=x.device)[:, None]
            return torch.maximum(q * wrong, (q - 1) * wrong).mean()
    return Net(), torch.randn(batch, channels, length).cumsum(-1), torch.randn(batch, channels, 96)


@program()
def super_resolution(pick):
    """Residual blocks of float16 images, channels last, pixels shuffled."""
    class Up(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.body = nn.Conv2d(3, 64, 3, padding=1), nn.ModuleList(nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.PReLU(), nn.Conv2d(64, 64, 3, padding=1)) for _ in range(8))
            self.up, self.last = nn.Sequential(nn.Conv2d(64, 256, 3, padding=1), nn.PixelShuffle(2), nn.PReLU()), nn.Conv2d(64, 3, 3, padding=1)

        def forward(self, x):
            y = self.first(x)
            for block in self.body:
                y = y + 0.1 * block(y)
            return (F.interpolate(x.float(), scale_factor=2, mode="bicubic") + self.last(self.up(y)).float()).clamp(0, 1)
    kind = torch.float16 if pick(1, 0) else torch.float32
    return Up().to(kind).to(memory_format=torch.channels_last), torch.rand(pick(4, 1), 3, pick(256, 64), pick(256, 64), dtype=kind).contiguous(memory_format=torch.channels_last)


@program(train=True)
def variational_train(pick):
    """An autoencoder with normal latents, bits per dimension by a mixture of logistics."""
    class Coder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.decode, self.mix = layers(784, 512, 256, 64, act=nn.GELU), layers(32, 256, 512, act=nn.GELU), nn.Linear(512, 784 * 9)

        def forward(self, x, noise):
            mean, log = self.encode(x).chunk(2, -1)
            z = mean + (0.5 * log).exp() * noise
            kl = -0.5 * (1 + log - mean**2 - log.exp()).sum(-1)
            w, m, s = self.mix(F.gelu(self.decode(z))).view(-1, 784, 3, 3).unbind(-1)
            scale = F.softplus(s) + 1e-3
            p = (x[..., None] - m)
            high, low = (p + 1 / 255) / scale, (p - 1 / 255) / scale
            mass = torch.where(x[..., None] > 0.999, F.logsigmoid(low).exp().neg() + 1, torch.sigmoid(high) - torch.sigmoid(low)).clamp(min=1e-9).log()
            return (kl - torch.logsumexp(w.log_softmax(-1) + mass, -1).sum(-1)).mean() / 784
    batch = pick(512, 64)
    return Coder(), torch.rand(batch, 784), torch.randn(batch, 32)


if __name__ == "__main__":
    main(__file__, PROGRAMS, __doc__)

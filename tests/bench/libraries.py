"""Programs that users of libraries run, beside the stock torch.compile and eager: detectors, recurrences written out, quantisers, rendering, agents.

    PYTHONPATH=build/release/python:tests python tests/bench/libraries.py [--device cuda] [--mode reduce-overhead] [--programs detector_train …] [--json results.json]

Measured as tasks.py: a process each, empty caches, compared with eager. Ratios are stock / Fusebox: above 1, Fusebox is faster.
"""

import math
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measured_program import layers, main
from measured_step import registry

PROGRAMS, program = registry()


@program(train=True)
def detector_train(pick):
    """A detector's backbone of split bottlenecks that extend a list by itself, a pyramid, heads on three scales; bfloat16, channels last."""
    batch, size, width = pick(16, 1), pick(640, 64), pick(32, 8)

    def conv(i, o, k=1, s=1):
        return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o), nn.SiLU())

    class Split(nn.Module):
        def __init__(self, i, o, n):
            super().__init__()
            self.one, self.two = conv(i, o), conv((2 + n) * o // 2, o)
            self.parts = nn.ModuleList(nn.Sequential(conv(o // 2, o // 2, 3), conv(o // 2, o // 2, 3)) for _ in range(n))

        def forward(self, x):
            y = list(self.one(x).chunk(2, 1))
            y.extend(y[-1] + m(y[-1]) for m in self.parts)
            return self.two(torch.cat(y, 1))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            w = width
            self.stem = nn.Sequential(conv(3, w, 3, 2), conv(w, 2 * w, 3, 2), Split(2 * w, 2 * w, 1))
            self.c3, self.c4 = nn.Sequential(conv(2 * w, 4 * w, 3, 2), Split(4 * w, 4 * w, 2)), nn.Sequential(conv(4 * w, 8 * w, 3, 2), Split(8 * w, 8 * w, 2))
            self.c5 = nn.Sequential(conv(8 * w, 8 * w, 3, 2), Split(8 * w, 8 * w, 1))
            self.up4, self.up3 = Split(16 * w, 8 * w, 1), Split(12 * w, 4 * w, 1)
            self.heads = nn.ModuleList(nn.Sequential(conv(i, 64, 3), nn.Conv2d(64, 64 + 80, 1)) for i in (4 * w, 8 * w, 8 * w))

        def forward(self, x):
            with torch.autocast(x.device.type, torch.bfloat16):
                c3 = self.c3(self.stem(x / 255))
                c4 = self.c4(c3)
                c5 = self.c5(c4)
                p4 = self.up4(torch.cat([F.interpolate(c5, scale_factor=2), c4], 1))
                p3 = self.up3(torch.cat([F.interpolate(p4, scale_factor=2), c3], 1))
                made = torch.cat([h(p).flatten(2) for h, p in zip(self.heads, (p3, p4, c5))], 2)
            box, cls = made.float().split((64, 80), 1)
            places = torch.arange(16, device=x.device, dtype=torch.float)
            sides = (box.view(batch, 4, 16, -1).softmax(2) * places[:, None]).sum(2)
            return sides.mean() + F.binary_cross_entropy_with_logits(cls, (cls.detach() > 1).float(), reduction="mean")
    return Net().to(memory_format=torch.channels_last), (torch.rand(batch, 3, size, size) * 255).to(memory_format=torch.channels_last)


@program(train=True)
def delta_rule_train(pick):
    """A layer of the delta rule in chunks: a triangular system solved by substitution in each, a state carried over; bfloat16 in, float32 inside."""
    batch, heads, length, dim, chunk = pick(4, 1), pick(16, 2), pick(2048, 128), pick(64, 16), pick(64, 16)

    def run(q, k, v, beta):
        q, k, v = (t.float() for t in (q, k, v))
        q, k = F.normalize(q, dim=-1) * dim**-0.5, F.normalize(k, dim=-1)
        v, kb = v * beta[..., None], k * beta[..., None]
        q, k, v, kb = (t.unflatten(2, (-1, chunk)) for t in (q, k, v, kb))
        above = torch.triu(torch.ones(chunk, chunk, dtype=torch.bool, device=q.device))
        attn = -(kb @ k.transpose(-1, -2)).masked_fill(above, 0)
        for i in range(1, chunk):
            row = attn[..., i, :i].clone()
            attn = attn.clone()
            attn[..., i, :i] = row + (row[..., None] * attn[..., :i, :i].clone()).sum(-2)
        attn = attn + torch.eye(chunk, device=q.device)
        u, w = attn @ v, attn @ kb
        state, outs = q.new_zeros(batch, heads, dim, dim), []
        for i in range(length // chunk):
            qi, ki = q[:, :, i], k[:, :, i]
            inner = (qi @ ki.transpose(-1, -2)).masked_fill(above.triu(1), 0)
            ui = u[:, :, i] - w[:, :, i] @ state
            outs.append(qi @ state + inner @ ui)
            state = state + ki.transpose(-1, -2) @ ui
        return torch.stack(outs, 2).flatten(2, 3)
    t = lambda: torch.randn(batch, heads, length, dim, dtype=torch.bfloat16, requires_grad=True)  # noqa: E731
    return run, t(), t(), t(), torch.rand(batch, heads, length)


@program(train=True)
def residual_codes_train(pick):
    """Residual vector quantisation with a straight-through gradient and moving averages of its codebooks, written in place."""
    batch, length, dim, codes, levels = pick(8, 2), pick(1500, 50), pick(256, 16), pick(1024, 32), 4

    class Quantiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(dim, dim), nn.Linear(dim, dim)
            self.register_buffer("books", torch.randn(levels, codes, dim))
            self.register_buffer("sizes", torch.ones(levels, codes))

        def forward(self, x):
            left, total, loss, chosen = self.inner(x), 0.0, 0.0, []
            for i in range(levels):
                flat, book = left.flatten(0, 1).detach(), self.books[i].clone()
                apart = flat.square().sum(1, keepdim=True) - 2 * flat @ book.T + book.square().sum(1)
                which = apart.argmin(1)
                hot = F.one_hot(which, codes).type_as(flat)
                near = F.embedding(which, book).view_as(left)
                loss = loss + F.mse_loss(left, near)
                with torch.no_grad():
                    self.sizes[i].lerp_(hot.sum(0), 0.0)
                    self.books[i].lerp_((hot.T @ flat) / (hot.sum(0)[:, None] + 1e-3), 0.0)
                total, left = total + left + (near - left).detach(), left - near.detach()
                chosen.append(which)
            return self.outer(total), loss, torch.stack(chosen)
    return Quantiser(), torch.randn(batch, length, dim)


@program(train=True)
def radiance_train(pick):
    """Rays through a field: stratified places, positions in frequencies, a network under autocast, transmittance by an exclusive product."""
    rays, places, width = pick(4096, 64), pick(128, 16), pick(256, 32)

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = layers(63, width, width, width, width), layers(width + 63, width, width, width, width)
            self.density, self.colour = nn.Linear(width, 1), layers(width + 27, width // 2, 3)

        def forward(self, origins, directions, wanted, noise):
            near, far = 2.0, 6.0
            t = near + (far - near) * (torch.arange(places, device=origins.device) + noise) / places
            points = origins[:, None] + directions[:, None] * t[..., None]
            enc = lambda x, n: torch.cat([x] + [f(2.0**i * x) for i in range(n) for f in (torch.sin, torch.cos)], -1)  # noqa: E731
            p, d = enc(points, 10), enc(F.normalize(directions, dim=-1), 4)[:, None].expand(-1, places, -1)
            with torch.autocast(origins.device.type, torch.bfloat16):
                h = self.second(torch.cat([F.relu(self.first(p)), p], -1))
                sigma, rgb = self.density(h), self.colour(torch.cat([h, d], -1))
            step = torch.cat([t[:, 1:] - t[:, :-1], torch.full_like(t[:, :1], 1e10)], 1) * directions.norm(dim=-1, keepdim=True)
            alpha = 1 - torch.exp(-F.relu(sigma.float().squeeze(-1)) * step)
            through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
            weights = alpha * through
            colour = (weights[..., None] * rgb.float().sigmoid()).sum(1)
            return F.mse_loss(colour, wanted), (weights * t).sum(1)
    return Field(), torch.randn(rays, 3), torch.randn(rays, 3), torch.rand(rays, 3), torch.rand(rays, places)


@program(train=True)
def actor_critic_train(pick):
    """Soft actor-critic's three losses in one: squashed normals, two critics and their slow copies by functional calls over stacked weights."""
    batch, seen, acts, width = pick(4096, 32), 67, 17, pick(256, 32)

    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.actor, self.critics = layers(seen, width, width, 2 * acts), nn.ModuleList(layers(seen + acts, width, width, 1) for _ in range(2))
            self.slow = nn.ModuleList(layers(seen + acts, width, width, 1) for _ in range(2)).requires_grad_(False)
            self.temperature = nn.Parameter(torch.zeros(()))

        def draw(self, s, noise):
            mean, spread = self.actor(s).chunk(2, -1)
            spread = spread.clamp(-20, 2)
            raw = mean + spread.exp() * noise
            logp = (-0.5 * noise.square() - spread - 0.5 * math.log(2 * math.pi) - 2 * (math.log(2) - raw - F.softplus(-2 * raw))).sum(-1)
            return raw.tanh(), logp

        def forward(self, s, a, r, after, done, noise):
            alpha = self.temperature.exp()
            with torch.no_grad():
                a2, logp2 = self.draw(after, noise[0])
                ahead = torch.stack([c(torch.cat([after, a2], -1)).squeeze(-1) for c in self.slow]).amin(0) - alpha * logp2
                target = r + 0.99 * torch.where(done, 0.0, ahead)
            values = torch.stack([c(torch.cat([s, a], -1)).squeeze(-1) for c in self.critics])
            fits = F.smooth_l1_loss(values, target.expand_as(values), reduction="none").mean(1).sum()
            mine, logp = self.draw(s, noise[1])
            frozen = [{n: p.detach() for n, p in c.named_parameters()} for c in self.critics]
            q = torch.stack([torch.func.functional_call(c, w, (torch.cat([s, mine], -1),)).squeeze(-1) for c, w in zip(self.critics, frozen)]).amin(0)
            return fits, (alpha.detach() * logp - q).mean(), -(self.temperature * (logp.detach() - acts)).mean()
    r = torch.randn
    return Agent(), r(batch, seen), r(batch, acts).tanh(), r(batch), r(batch, seen), torch.rand(batch) < 0.1, r(2, batch, acts)


@program(train=True)
def correlation_flow_train(pick):
    """Optical flow by a recurrent update over a pyramid of all pairs' correlations, looked up around moving places with grid_sample."""
    batch, h, w, dim, rounds = pick(2, 1), pick(55, 16), pick(90, 18), pick(128, 16), pick(6, 2)

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.see = nn.Sequential(nn.Conv2d(dim, dim, 3, padding=1), nn.InstanceNorm2d(dim), nn.ReLU(), nn.Conv2d(dim, dim, 1))
            self.motion = nn.Sequential(nn.Conv2d(4 * 49 + 2, dim, 1), nn.ReLU(), nn.Conv2d(dim, dim - 2, 3, padding=1), nn.ReLU())
            self.z, self.r, self.q = (nn.Conv2d(2 * dim, dim, 3, padding=1) for _ in range(3))
            self.out = nn.Conv2d(dim, 2, 3, padding=1)

        def forward(self, a, b, hidden):
            fa, fb = self.see(a), self.see(b)
            corr = (fa.flatten(2).transpose(1, 2) @ fb.flatten(2) / math.sqrt(dim)).view(batch * h * w, 1, h, w)
            levels = [corr]
            for _ in range(3):
                levels.append(F.avg_pool2d(levels[-1], 2))
            y, x = torch.meshgrid(torch.arange(h, device=a.device), torch.arange(w, device=a.device), indexing="ij")
            base = torch.stack([x, y]).float()[None].expand(batch, -1, -1, -1)
            d = torch.linspace(-3, 3, 7, device=a.device)
            window = torch.stack(torch.meshgrid(d, d, indexing="ij")[::-1], -1).view(1, 7, 7, 2)
            at, flows = base.clone(), []
            for _ in range(rounds):
                at = at.detach()
                seen = []
                for i, level in enumerate(levels):
                    hh, ww = level.shape[-2:]
                    place = at.permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) / 2**i + window
                    grid = 2 * place / torch.tensor([ww - 1, hh - 1], device=a.device) - 1
                    seen.append(F.grid_sample(level, grid, align_corners=True).view(batch, h, w, 49))
                seen = torch.cat(seen, -1).permute(0, 3, 1, 2)
                m = torch.cat([self.motion(torch.cat([seen, at - base], 1)), at - base], 1)
                hx = torch.cat([hidden, m], 1)
                z, r = self.z(hx).sigmoid(), self.r(hx).sigmoid()
                hidden = (1 - z) * hidden + z * self.q(torch.cat([r * hidden, m], 1)).tanh()
                at = at + self.out(hidden)
                flows.append(at - base)
            return torch.stack([0.8 ** (rounds - 1 - i) * f.abs().mean() for i, f in enumerate(flows)]).sum(), flows[-1]
    return Flow(), torch.randn(batch, dim, h, w), torch.randn(batch, dim, h, w), torch.randn(batch, dim, h, w).tanh()


@program(train=True)
def performer_train(pick):
    """Linear attention by positive random features, causal by cumulative sums over chunks, with a convolutional feed-forward part; bfloat16."""
    batch, heads, length, dim, features = pick(4, 1), pick(8, 2), pick(4096, 128), 64, pick(128, 16)

    def run(q, k, v, projection):
        def phi(x):
            x = x.float() * dim**-0.25
            y = x @ projection.T
            return torch.exp(y - x.square().sum(-1, keepdim=True) / 2 - y.amax(-1, keepdim=True).detach()) + 1e-4
        chunk = 128
        q, k, v = phi(q).unflatten(2, (-1, chunk)), phi(k).unflatten(2, (-1, chunk)), v.float().unflatten(2, (-1, chunk))
        kv = torch.einsum("bhncf,bhncd->bhnfd", k, v)
        before = kv.cumsum(2) - kv
        ksum = k.sum(3)
        kbefore = ksum.cumsum(2) - ksum
        inner = torch.einsum("bhncf,bhnmf->bhncm", q, k).tril()
        num = torch.einsum("bhncf,bhnfd->bhncd", q, before) + inner @ v
        den = torch.einsum("bhncf,bhnf->bhnc", q, kbefore) + inner.sum(-1)
        return (num / den[..., None]).flatten(2, 3).to(torch.bfloat16)
    t = lambda: torch.randn(batch, heads, length, dim, dtype=torch.bfloat16, requires_grad=True)  # noqa: E731
    return run, t(), t(), t(), torch.randn(features, dim)


@program()
def augmentations(pick):
    """Images warped, blurred, with colours shifted in HSV and parts erased, each image by numbers of its own."""
    batch, size = pick(64, 2), pick(256, 32)

    def run(x, angle, hue, blur, cut):
        c, s = angle.cos(), angle.sin()
        theta = torch.stack([torch.stack([c, -s, 0.1 * s], -1), torch.stack([s, c, 0.1 * c], -1)], 1)
        x = F.grid_sample(x, F.affine_grid(theta, x.size(), align_corners=False), padding_mode="reflection", align_corners=False)
        top, which = x.max(1)
        low = x.amin(1)
        delta = top - low
        safe = torch.where(delta == 0, 1.0, delta)
        r, g, b = x.unbind(1)
        h = torch.stack([(g - b) / safe, (b - r) / safe + 2, (r - g) / safe + 4], 0).gather(0, which[None])[0] / 6 % 1
        sat = delta / (top + 1e-6)
        h = (h + hue[:, None, None]) % 1
        k = (torch.tensor([5.0, 3.0, 1.0], device=x.device)[None, :, None, None] + h[:, None] * 6) % 6
        x = top[:, None] * (1 - sat[:, None] * torch.minimum(k, 4 - k).clamp(0, 1))
        taps = torch.arange(-4, 5, device=x.device)
        kernel = torch.exp(-taps**2 / (2 * blur[:, None] ** 2))
        kernel = kernel / kernel.sum(1, keepdim=True)
        y = F.pad(x.reshape(1, -1, size, size), (4, 4, 4, 4), mode="reflect")
        each = kernel.repeat_interleave(3, 0)
        y = F.conv2d(F.conv2d(y, each[:, None, None, :], groups=3 * batch), each[:, None, :, None], groups=3 * batch).view_as(x)
        rows = torch.arange(size, device=x.device)
        hole = ((rows - cut[:, :1]).abs() < size // 8)[:, :, None] & ((rows - cut[:, 1:]).abs() < size // 8)[:, None, :]
        return y.masked_fill(hole[:, None], 0.5).clamp(0, 1)
    r = torch.rand
    return run, r(batch, 3, size, size), r(batch) - 0.5, r(batch) - 0.5, r(batch) * 2 + 0.1, torch.randint(0, size, (batch, 2))


@program(train=True)
def crf_train(pick):
    """A conditional random field over tags: the forward algorithm in logarithms and the score of the true path, with lengths."""
    batch, length, tags = pick(128, 4), pick(64, 12), pick(47, 9)

    def run(scores, moves, start, end, truth, mask):
        alpha = start + scores[:, 0]
        for t in range(1, length):
            following = torch.logsumexp(alpha[:, :, None] + moves + scores[:, t, None, :], 1)
            alpha = torch.where(mask[:, t, None], following, alpha)
        whole = torch.logsumexp(alpha + end, 1)
        m = mask.float()
        path = start[truth[:, 0]] + (scores.gather(2, truth[..., None])[..., 0] * m).sum(1) + (moves[truth[:, :-1], truth[:, 1:]] * m[:, 1:]).sum(1)
        path = path + end[truth.gather(1, mask.long().sum(1, keepdim=True) - 1)[:, 0]]
        return (whole - path).mean()
    p = lambda *s: torch.randn(*s, requires_grad=True)  # noqa: E731
    lengths = torch.randint(2, length + 1, (batch, 1))
    return run, p(batch, length, tags), p(tags, tags), p(tags), p(tags), torch.randint(0, tags, (batch, length)), torch.arange(length) < lengths


if __name__ == "__main__":
    main(__file__, PROGRAMS, __doc__)

"""Tasks of today, beside the stock torch.compile and eager: adapters, quantisation, caches, routing, solvers, sound, scenes and losses of many terms.

    PYTHONPATH=build/release/python:tests python tests/bench/tasks.py [--device cuda] [--mode reduce-overhead] [--programs dora_train …] [--json results.json]

Measured as fields.py: a process each, empty caches, compared with eager. Ratios are stock / Fusebox: above 1, Fusebox is faster.
A program that writes its buffers gives the same results when it is called again.
"""

import math
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measured_program import Mixed, layers, main
from measured_step import registry

PROGRAMS, program = registry()


@program(train=True)
def dora_train(pick):
    """Frozen bfloat16 layers whose weights' sizes and directions are adapted (DoRA), by hooks after the layers, with dropout."""
    batch, length, width, rank = pick(4, 2), pick(1021, 37), pick(1536, 64), 16

    class Adapter(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base
            self.down, self.up = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5), nn.Parameter(torch.randn(base.out_features, rank) * 0.01)
            self.size = nn.Parameter(base.weight.detach().float().norm(dim=1))
            base.register_forward_hook(self.after)

        def after(self, base, args, out):
            direction = base.weight.float() + 2 * (self.up @ self.down)
            ratio = self.size / direction.norm(dim=1).detach()
            low = F.linear(F.linear(F.dropout(args[0].float(), 0.05), self.down), self.up)
            return (ratio * (out.float() + 2 * low)).to(out.dtype)

        def forward(self, x):
            return self.base(x)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.RMSNorm(width, dtype=torch.bfloat16)
            self.gate, self.up, self.down = (nn.Linear(i, o, bias=False, dtype=torch.bfloat16) for i, o in ((width, 4 * width), (width, 4 * width), (4 * width, width)))
            self.requires_grad_(False)
            self.adapters = nn.ModuleList(Adapter(layer) for layer in (self.gate, self.up, self.down))

        def forward(self, x):
            h = self.norm(x)
            gate, up, down = self.adapters
            return x + down(F.silu(gate(h)) * up(h))
    return nn.Sequential(Block(), Block()), torch.randn(batch, length, width, dtype=torch.bfloat16)


class LearnedStep(torch.autograd.Function):
    """Rounds to whole steps; the step's gradient as of Esser and others."""

    @staticmethod
    def forward(ctx, x, step, low, high):
        scaled = x / step
        ctx.save_for_backward(scaled, step)
        ctx.low, ctx.high = low, high
        return scaled.clamp(low, high).round() * step

    @staticmethod
    def backward(ctx, g):
        scaled, step = ctx.saved_tensors
        inside = (scaled >= ctx.low) & (scaled <= ctx.high)
        wrong = torch.where(inside, scaled.round() - scaled, scaled.clamp(ctx.low, ctx.high))
        over = [d for d in range(step.dim()) if step.size(d) == 1]
        share = (ctx.high * scaled.numel() / step.numel()) ** -0.5
        return g * inside, (g * wrong).sum(over, keepdim=True) * share, None, None


@program(train=True)
def learned_steps_train(pick):
    """Training for eight bits: weights and activations rounded by a custom function, depthwise convolutions, channels last, odd sizes."""
    batch, size, base = pick(64, 2), pick(97, 33), pick(32, 8)

    class Conv(nn.Module):
        def __init__(self, i, o, k, stride=1, groups=1):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)
            self.step, self.weight_step = nn.Parameter(torch.full((1, 1, 1, 1), 4 / 255)), nn.Parameter(self.conv.weight.detach().abs().amax((1, 2, 3), keepdim=True) / 100)

        def forward(self, x):
            weight = LearnedStep.apply(self.conv.weight, self.weight_step, -128, 127)
            x = LearnedStep.apply(x, self.step, -128, 127)
            return self.norm(F.conv2d(x, weight, None, self.conv.stride, self.conv.padding, 1, self.conv.groups))

    class Block(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.wide, self.depth, self.thin = Conv(i, 4 * i, 1), Conv(4 * i, 4 * i, 3, stride, 4 * i), Conv(4 * i, o, 1)

        def forward(self, x):
            y = self.thin(F.hardswish(self.depth(F.hardswish(self.wide(x)))))
            return x + y if x.shape == y.shape else y
    net = nn.Sequential(Conv(3, base, 3, 2), nn.Hardswish(), Block(base, base, 1), Block(base, 2 * base, 2), Block(2 * base, 2 * base, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * base, 101))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x, labels):
            return F.cross_entropy(self.net(x), labels)
    return Net().to(memory_format=torch.channels_last), torch.randn(batch, 3, size, size).contiguous(memory_format=torch.channels_last), torch.randint(0, 101, (batch,))


@program()
def rolling_cache_decode(pick):
    """A token of each of odd many sequences: caches written in place as rings behind fixed first tokens, keys turned by their place in the cache."""
    batch, span, sinks, heads, groups, width, depth = pick(7, 3), pick(2044, 60), 4, pick(24, 4), pick(8, 2), pick(128, 16), pick(6, 2)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            n, kind = heads * width, torch.bfloat16
            self.norm, self.norm2 = nn.RMSNorm(n, dtype=kind), nn.RMSNorm(n, dtype=kind)
            self.qkv, self.out = nn.Linear(n, (heads + 2 * groups) * width, bias=False, dtype=kind), nn.Linear(n, n, bias=False, dtype=kind)
            self.up, self.down = nn.Linear(n, 4 * n, bias=False, dtype=kind), nn.Linear(2 * n, n, bias=False, dtype=kind)
            self.register_buffer("keys", torch.randn(batch, groups, sinks + span, width).to(kind))
            self.register_buffer("values", torch.randn(batch, groups, sinks + span, width).to(kind))

        def forward(self, x, slot, turns, last, mask):
            q, k, v = self.qkv(self.norm(x)).view(batch, heads + 2 * groups, width).split([heads, groups, groups], 1)
            rows = torch.arange(batch, device=x.device)
            self.keys[rows, :, slot] = k
            self.values[rows, :, slot] = v
            keys, query = (torch.view_as_real(torch.view_as_complex(t.float().unflatten(-1, (-1, 2))) * turn).flatten(-2).to(x.dtype) for t, turn in ((self.keys, turns), (q[:, :, None], last)))
            y = F.scaled_dot_product_attention(query, keys, self.values, attn_mask=mask, enable_gqa=True)
            x = x + self.out(y.flatten(1))
            a, b = self.up(self.norm2(x)).chunk(2, -1)
            return x + self.down(F.silu(a) * b)

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.stack = nn.ModuleList(Layer() for _ in range(depth))

        def forward(self, x, place):
            place = place.long()
            slot = torch.where(place < sinks, place, sinks + (place - sinks) % span)
            slots = torch.arange(sinks + span, device=x.device)
            behind = torch.where(slots < sinks, place[:, None] - slots, (place[:, None] - slots) % span)
            filled = torch.where(slots < sinks, slots <= place[:, None], behind <= (place - sinks)[:, None])
            count = place.clamp(max=sinks + span - 1)
            order = torch.where(slots < sinks, slots, (count[:, None] - behind).clamp(min=0))
            speeds = 10000.0 ** (-torch.arange(0, width, 2, device=x.device) / width)
            turns, last = (torch.polar(torch.ones_like(angle), angle) for angle in (order[:, None, :, None] * speeds, count[:, None, None, None] * speeds))
            for layer in self.stack:
                x = layer(x, slot, turns, last, filled[:, None, None])
            return x
    return Decoder(), torch.randn(batch, heads * width, dtype=torch.bfloat16), torch.randint(span // 2, 3 * span, (batch,), dtype=torch.int32)


@program()
def beam_step(pick):
    """A step of beam search: an eight-bit head multiplied in integers, repeated triples forbidden, finished beams, caches in a new order."""
    batch, beams, length, width, words = pick(31, 5), 5, pick(127, 19), pick(1024, 64), pick(50264, 504)

    def step(hidden, codes, scale, scores, tokens, finished, keys):
        size = hidden.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127
        whole = torch._int_mm((hidden / size).round().to(torch.int8), codes.t())
        logp = (whole.float() * size * scale).view(batch, beams, words).log_softmax(-1)
        again = (tokens[..., :-2] == tokens[..., -2, None]) & (tokens[..., 1:-1] == tokens[..., -1, None])
        forbidden = torch.zeros_like(logp, dtype=torch.int32).scatter_add(2, tokens[..., 2:].long(), again.int()) > 0
        logp = logp.masked_fill(forbidden, -1e9)
        only_end = torch.full_like(logp[0, 0], -1e9).index_fill(0, torch.zeros(1, dtype=torch.long, device=logp.device), 0.0)
        logp = torch.where(finished[..., None], only_end, logp)
        lengths = (tokens != 0).sum(-1, dtype=torch.int32) + (~finished).int()
        penalty = ((5 + lengths.float()) / 6) ** 0.6
        total = scores[..., None] + logp
        best, which = (total / penalty[..., None]).flatten(1).topk(beams, -1)
        parent, word = which // words, which % words
        rows = torch.arange(batch, device=hidden.device)[:, None]
        tokens = torch.cat([tokens[rows, parent], word[..., None].int()], -1)
        return total.flatten(1).gather(1, which), best, tokens, finished[rows, parent] | (word == 0), keys[rows, parent]
    tokens = torch.randint(1, 9, (batch, beams, length), dtype=torch.int32)
    return (step, torch.randn(batch * beams, width), torch.randint(-127, 128, (words, width), dtype=torch.int8), torch.rand(words) * 1e-3, -torch.rand(batch, beams), tokens,
            torch.rand(batch, beams) < 0.2, torch.randn(batch, beams, pick(12, 2), length, pick(64, 8)).bfloat16())


@program(train=True)
def queue_train(pick):
    """Contrast against a queue of keys: a slow copy of the encoder by functional calls, a queue written in place around its end."""
    batch, size, queued, width = pick(256, 8), pick(64, 32), pick(16381, 127), 128

    def encoder():
        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.1))
        base = pick(64, 8)
        return nn.Sequential(block(3, base), block(base, 2 * base), block(2 * base, 4 * base), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * base, 4 * base), nn.ReLU(), nn.Linear(4 * base, width))

    class Queue(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.slow = encoder(), encoder().requires_grad_(False)
            self.register_buffer("keys", F.normalize(torch.randn(width, queued), dim=0))

        def forward(self, a, b, place):
            q = F.normalize(self.query(a), dim=-1)
            with torch.no_grad():
                weights = {name: torch.lerp(w, new.detach(), 0.01) for (name, w), new in zip(self.slow.named_parameters(), self.query.parameters())}
                shuffled = torch.arange(batch, device=a.device).roll(3)
                k = F.normalize(torch.func.functional_call(self.slow, weights, (b[shuffled],)), dim=-1)[shuffled.argsort()]
                slots = (place + torch.arange(batch, device=a.device)) % queued
                stale = torch.zeros(queued, dtype=torch.bool, device=a.device).index_fill(0, slots, True)
            same, other = torch.einsum("nc,nc->n", q, k)[:, None], (q @ self.keys.clone()).masked_fill(stale, -torch.inf)
            scores = torch.cat([same, other], 1) / 0.07
            self.keys.index_copy_(1, slots, k.T)
            return F.cross_entropy(scores, torch.zeros(batch, dtype=torch.long, device=a.device)), (scores.argmax(1) == 0).float().mean()
    images = torch.rand(batch, 3, size, size)
    return Queue(), images, images + 0.1 * torch.rand(batch, 3, size, size), torch.tensor(queued - 3)


@program(train=True)
def vtrace_train(pick):
    """Actors and a learner: byte frames, recurrent cells reset where episodes end, off-policy returns with clipped ratios (IMPALA)."""
    steps, envs, size, actions, width = pick(20, 5), pick(33, 2), pick(84, 36), 17, pick(256, 32)
    side = ((size - 8) // 4 + 1 - 4) // 2 + 1

    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.see = nn.Sequential(nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(32 * side * side, width), nn.ReLU())
            self.cell, self.policy, self.value = nn.LSTMCell(width + actions + 1, width), nn.Linear(width, actions), nn.Linear(width, 1)

        def forward(self, frames, action, before, reward, done, h, c):
            seen = self.see(frames.flatten(0, 1).float() / 255).unflatten(0, (steps, envs))
            last = F.one_hot(action.long(), actions).roll(1, 0)
            x = torch.cat([seen, last, reward.clamp(-1, 1)[..., None]], -1)
            outs = []
            for t in range(steps):
                keep = (~done[t]).float()[:, None]
                h, c = self.cell(x[t], (h * keep, c * keep))
                outs.append(h)
            core = torch.stack(outs)
            logp, value = self.policy(core).log_softmax(-1), self.value(core).squeeze(-1)
            mine = logp.gather(-1, action.long()[..., None]).squeeze(-1)
            with torch.no_grad():
                ratio = (mine - before.log_softmax(-1).gather(-1, action.long()[..., None]).squeeze(-1)).exp()
                rho, cut, discount = ratio.clamp(max=1), ratio.clamp(max=1) * 0.95, 0.99 * (~done)
                after = torch.cat([value[1:], value[-1:]])
                delta = rho * (reward + discount * after - value)
                total, sums = torch.zeros_like(delta[0]), []
                for t in range(steps - 1, -1, -1):
                    total = delta[t] + discount[t] * cut[t] * total
                    sums.insert(0, total)
                target = torch.stack(sums) + value
                gain = rho * (reward + discount * torch.cat([target[1:], value[-1:]]) - value)
            return -(mine * gain).mean() + 0.5 * (target - value).square().mean() + 0.01 * (logp.exp() * logp).sum(-1).mean(), h, c
    return (Agent(), torch.randint(0, 256, (steps, envs, 4, size, size), dtype=torch.uint8), torch.randint(0, actions, (steps, envs), dtype=torch.int32), torch.randn(steps, envs, actions),
            torch.randn(steps, envs), torch.rand(steps, envs) < 0.05, torch.zeros(envs, width), torch.zeros(envs, width))


@program()
def particles(pick):
    """Filters of particles in float64: weights in logarithms, draws at even places where few count, found by searching cumulative sums."""
    filters, count, steps = pick(256, 4), pick(4093, 61), pick(12, 6)

    def run(x, seen, noise, start):
        logw, likelihood, means = torch.zeros_like(x), torch.zeros_like(x[:, 0]), []
        places = torch.arange(count, device=x.device, dtype=x.dtype)
        for t in range(steps):
            x = 0.5 * x + 25 * x / (1 + x * x) + 8 * math.cos(1.2 * t) + 3.2 * noise[t]
            logw = logw - 0.5 * (seen[t, :, None] - x * x / 20) ** 2
            whole = torch.logsumexp(logw, 1, keepdim=True)
            likelihood = likelihood + whole[:, 0] - math.log(count)
            w = (logw - whole).exp()
            means.append(torch.stack([(w * x).sum(1), (w * x * x).sum(1)], -1))
            few = 1 / w.square().sum(1, keepdim=True) < count / 2
            sums = w.cumsum(1)
            ask = (places + start[t, :, None]) / count * sums[:, -1:]
            which = torch.searchsorted(sums, ask.contiguous()).clamp(max=count - 1)
            x = torch.where(few, x.gather(1, which), x)
            logw = torch.where(few, 0.0, logw - whole + math.log(count))
        return torch.stack(means, 1), likelihood, x
    r = lambda *size: torch.randn(*size, dtype=torch.float64)  # noqa: E731
    return run, r(filters, count), r(steps, filters).abs() * 5, r(steps, filters, count), torch.rand(steps, filters, dtype=torch.float64)


@program()
def phase_vocoder(pick):
    """Sound stretched in time and brought back to its length: complex spectra, phases unwrapped and summed, the inverse transform."""
    batch, samples, size, hop, rate = pick(31, 2), pick(160000, 8000), pick(1024, 256), pick(256, 64), 1.3

    def shift(sound, window):
        spectrum = torch.stft(sound, size, hop, window=window, return_complex=True)
        times = torch.arange(0, spectrum.size(-1), rate, device=sound.device)
        share, at = times % 1, times.long()
        padded = F.pad(spectrum, (0, 2))
        one, two = padded[..., at], padded[..., at + 1]
        advance = torch.linspace(0, math.pi * hop, size // 2 + 1, device=sound.device)[:, None]
        phase = two.angle() - one.angle() - advance
        phase = phase - 2 * math.pi * torch.round(phase / (2 * math.pi)) + advance
        phase = torch.cat([padded[..., :1].angle(), phase[..., :-1]], -1).double().cumsum(-1)
        phase = torch.remainder(phase, 2 * math.pi).float()
        loud = share * two.abs() + (1 - share) * one.abs()
        made = torch.istft(torch.polar(loud, phase), size, hop, window=window)
        return F.interpolate(made[:, None], samples, mode="linear", align_corners=False)[:, 0]
    return shift, torch.randn(batch, samples), torch.hann_window(size)


@program(train=True)
def waveform_inversion_train(pick):
    """Speeds of the ground from echoes: waves on a grid of odd sides in slices, sources added in place, absorbing edges, derivatives through time."""
    shots, deep, wide, steps = pick(16, 2), pick(211, 41), pick(307, 53), pick(32, 12)

    class Ground(nn.Module):
        def __init__(self):
            super().__init__()
            self.speed = nn.Parameter(1.5 + torch.linspace(0, 1, deep)[:, None].expand(deep, wide).clone())
            edge = torch.minimum(torch.arange(deep).clamp(max=10)[:, None], torch.minimum(torch.arange(wide), torch.arange(wide - 1, -1, -1)).clamp(max=10))
            self.register_buffer("fade", torch.exp(-((0.03 * (10 - edge)) ** 2)))

        def forward(self, wavelet, source, heard):
            before = torch.zeros(shots, deep, wide, device=wavelet.device)
            now, rows, echoes = torch.zeros_like(before), torch.arange(shots, device=wavelet.device), []
            slow = (self.speed * 0.2) ** 2
            for t in range(steps):
                bend = torch.zeros_like(now)
                bend[:, 2:-2, 2:-2] = (16 * (now[:, 1:-3, 2:-2] + now[:, 3:-1, 2:-2] + now[:, 2:-2, 1:-3] + now[:, 2:-2, 3:-1])
                                       - now[:, :-4, 2:-2] - now[:, 4:, 2:-2] - now[:, 2:-2, :-4] - now[:, 2:-2, 4:] - 60 * now[:, 2:-2, 2:-2]) / 12
                after = (2 * now - before * self.fade + slow * bend) * self.fade
                after[rows, 4, source] += wavelet[t]
                before, now = now, after
                echoes.append(now[:, 6, ::3])
            rough = (self.speed.diff(dim=0).square() + 1e-6).sqrt().mean() + (self.speed.diff(dim=1).square() + 1e-6).sqrt().mean()
            return (torch.stack(echoes, 1) - heard).square().mean() + 1e-3 * rough
    t = torch.arange(steps) / steps * 6 - 3
    return Ground(), (1 - 2 * t**2) * torch.exp(-(t**2)), torch.randint(12, wide - 12, (shots,)), torch.randn(shots, steps, (wide + 2) // 3) * 0.1


@program(train=True)
def hash_grid_train(pick):
    """A scene in hashed grids: whole numbers multiplied and mixed by exclusive or, corners weighted, light along rays, a loss of distortion."""
    rays, samples, levels, slots = pick(2048, 32), 37, pick(8, 4), pick(2**17, 2**10)

    class Scene(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter((torch.rand(levels, slots, 2) * 2 - 1) * 0.1)
            self.net, self.colour = layers(2 * levels, 64, 16), layers(15 + 9, 64, 3)
            self.register_buffer("primes", torch.tensor([1, 2654435761, 805459861]))
            self.register_buffer("corners", torch.stack(torch.meshgrid(*[torch.arange(2)] * 3, indexing="ij"), -1).view(8, 3))

        def encoded(self, x):
            found = []
            for level in range(levels):
                scaled = x * int(16 * 1.38**level)
                low = scaled.floor()
                share = (scaled - low)[:, None]
                corner = (low.long()[:, None] + self.corners) * self.primes
                slot = (corner[..., 0] ^ corner[..., 1] ^ corner[..., 2]) & (slots - 1)
                weight = torch.where(self.corners == 1, share, 1 - share).prod(-1)
                found.append((self.table[level][slot] * weight[..., None]).sum(1))
            return torch.cat(found, -1)

        def forward(self, origin, direction, target, jitter):
            edges = torch.linspace(0.05, 0.95, samples + 1, device=origin.device)
            t = edges[:-1] + jitter * (0.9 / samples)
            h = self.net(self.encoded((origin[:, None] + direction[:, None] * t[..., None]).clamp(0, 1).view(-1, 3))).view(rays, samples, 16)
            x, y, z = direction.unbind(-1)
            harmonics = torch.stack([torch.ones_like(x), x, y, z, x * y, y * z, 3 * z * z - 1, x * z, x * x - y * y], -1)[:, None].expand(-1, samples, -1)
            colour = self.colour(torch.cat([h[..., 1:], harmonics], -1)).sigmoid()
            depth = (h[..., 0].clamp(max=11) - 1).exp() * torch.diff(t, append=t[:, -1:] + 0.02)
            passed = torch.exp(-(depth.cumsum(-1) - depth))
            weight = passed * -torch.expm1(-depth)
            image = (weight[..., None] * colour).sum(1) + (1 - weight.sum(1, keepdim=True))
            w, wt = weight.cumsum(-1) - weight, (weight * t).cumsum(-1) - weight * t
            apart = 2 * (weight * (t * w - wt)).sum(-1) + (weight.square() * (0.9 / samples)).sum(-1) / 3
            return F.huber_loss(image, target, delta=0.1) + 1e-3 * apart.mean(), (weight * t).sum(-1)
    return Scene(), torch.rand(rays, 3) * 0.5, F.normalize(torch.rand(rays, 3), dim=-1) * 0.8, torch.rand(rays, 3), torch.rand(rays, samples)


@program(train=True)
def forces_train(pick):
    """Molecules with scalars and vectors on atoms (PaiNN): forces by a derivative that is itself differentiated, energies by index."""
    atoms, bonds, width, radial, molecules = pick(2039, 59), pick(40009, 401), pick(64, 16), 20, pick(97, 7)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.kind = nn.Embedding(100, width)
            self.filters, self.mix = nn.ModuleList(nn.Linear(radial, 3 * width) for _ in range(2)), nn.ModuleList(layers(width, width, 3 * width, act=nn.SiLU) for _ in range(2))
            self.turn, self.update = nn.ModuleList(nn.Linear(width, 2 * width, bias=False) for _ in range(2)), nn.ModuleList(layers(2 * width, width, 3 * width, act=nn.SiLU) for _ in range(2))
            self.out = layers(width, width, 1, act=nn.SiLU)

        def energy(self, kind, place, source, target, molecule):
            way = place[source] - place[target]
            far = (way.square().sum(-1, keepdim=True) + 1e-6).sqrt()
            way = way / far
            waves = torch.sin(torch.arange(1, radial + 1, device=place.device) * math.pi / 5 * far) / far
            cut = torch.where(far < 5, 0.5 * (torch.cos(far * math.pi / 5) + 1), 0.0)
            s, v = self.kind(kind), torch.zeros(atoms, 3, width, device=place.device)
            for filters, mix, turn, update in zip(self.filters, self.mix, self.turn, self.update):
                a, b, c = (filters(waves) * cut * mix(s)[source]).chunk(3, -1)
                s = s + torch.zeros_like(s).index_add(0, target, a)
                v = v + torch.zeros_like(v).index_add(0, target, b[:, None] * way[..., None] + c[:, None] * v[source])
                left, right = turn(v).chunk(2, -1)
                a, b, c = update(torch.cat([s, (right.square().sum(1) + 1e-6).sqrt()], -1)).chunk(3, -1)
                s, v = s + a + b * (left * right).sum(1), v + c[:, None] * left
            return torch.zeros(molecules, device=place.device).index_add(0, molecule, self.out(s).squeeze(-1))

        def forward(self, kind, place, source, target, molecule, energy, force):
            place = place.detach().requires_grad_()
            made = self.energy(kind, place, source, target, molecule)
            slope, = torch.autograd.grad(made.sum(), place, create_graph=True)
            return F.l1_loss(made, energy) + 10 * (slope + force).norm(dim=-1).mean(), -slope.detach()
    ends = torch.randint(0, atoms, (2, bonds))
    return (Net(), torch.randint(0, 100, (atoms,)), torch.rand(atoms, 3) * 6, ends[0], ends[1].sort()[0], torch.randint(0, molecules, (atoms,)).sort()[0],
            torch.randn(molecules), torch.randn(atoms, 3))


@program(train=True)
def ranking_train(pick):
    """Documents in order: ranks by sorting twice, pairs weighted by what a swap would cost, the likelihood of the whole list, lists of odd lengths."""
    lists, documents, features = pick(1024, 16), pick(101, 23), 46

    class Ranker(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.BatchNorm1d(features), layers(features, 256, 128), nn.ReLU(), nn.Linear(128, 1, bias=False))

        def forward(self, x, grade, count):
            known = torch.arange(documents, device=x.device) < count[:, None]
            scores = self.net(x.flatten(0, 1)).view(lists, documents).masked_fill(~known, -1e4)
            gain = (2.0 ** grade.float() - 1) * known
            with torch.no_grad():
                rank = scores.argsort(dim=1, descending=True, stable=True).argsort(1)
                discount = 1 / (rank + 2.0).log2()
                ideal = (gain.sort(1, descending=True)[0] / torch.arange(2.0, documents + 2, device=x.device).log2()).sum(1).clamp(min=1e-6)
                cost = (gain[:, :, None] - gain[:, None]).abs() * (discount[:, :, None] - discount[:, None]).abs() / ideal[:, None, None]
                better = (grade[:, :, None] > grade[:, None]) & known[:, :, None] & known[:, None]
            apart = (scores[:, :, None] - scores[:, None]).clamp(-50, 50)
            pairs = (F.softplus(-apart) * cost * better).sum((1, 2))
            order = torch.where(known, grade.float(), -1.0).argsort(dim=1, descending=True, stable=True)
            ordered = scores.gather(1, order)
            rest = ordered.flip(1).logcumsumexp(1).flip(1)
            listed = ((rest - ordered) * known.gather(1, order)).sum(1) / count
            soft = 0.5 + (torch.sigmoid(-apart / 0.1) * known[:, None]).sum(2)
            approximate = (gain / (1 + soft).log2()).sum(1) / ideal
            return pairs.mean() + 0.1 * listed.mean() - approximate.mean(), (gain * discount).sum(1) / ideal
    return Ranker(), torch.randn(lists, documents, features), torch.randint(0, 5, (lists, documents), dtype=torch.int8), torch.randint(documents // 2, documents + 1, (lists,))


@program(train=True)
def byte_patches_train(pick):
    """Bytes without a tokeniser: hashes of runs of bytes, patches cut where text breaks, means of segments, a transformer over them, bytes again."""
    batch, length, width, hidden, heads, patches, slots = pick(8, 2), pick(2039, 61), pick(256, 32), pick(768, 48), pick(12, 2), pick(512, 23), pick(50021, 499)

    class Local(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.conv, self.up, self.down = nn.LayerNorm(width), nn.Conv1d(width, width, 5, groups=width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            y = self.conv(F.pad(self.norm(x).transpose(1, 2), (4, 0))).transpose(1, 2)
            return x + self.down(F.gelu(self.up(y)))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.norm2, self.qkv, self.out = nn.RMSNorm(hidden), nn.RMSNorm(hidden), nn.Linear(hidden, 3 * hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
            self.mlp = nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden))

        def forward(self, x):
            q, k, v = self.qkv(self.norm(x)).view(batch, patches, 3, heads, -1).permute(2, 0, 3, 1, 4)
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.byte, self.runs = nn.Embedding(256, width), nn.ModuleList(nn.Embedding(slots, width) for _ in range(3))
            self.encode, self.decode = Local(), nn.Sequential(Local(), Local())
            self.into, self.back, self.blocks = nn.Linear(2 * width, hidden), nn.Linear(hidden, width), nn.Sequential(Block(), Block(), Block())

        def forward(self, text):
            given, wanted = text[:, :-1], text[:, 1:].long()
            x, codes = self.byte(given.int()), given.long()
            for n, table in enumerate(self.runs, 3):
                run = sum(F.pad(codes, (i, 0))[:, :codes.size(1)] * 257**i for i in range(n))
                x = x + table(run % slots) / 3
            x = self.encode(x)
            breaks = (given < 48) | ((given > 57) & (given < 65))
            segment = (F.pad(breaks[:, :-1], (1, 0)).cumsum(1)).clamp(max=patches - 1)
            count = torch.zeros(batch, patches, device=x.device).scatter_add_(1, segment, torch.ones_like(segment, dtype=torch.float32))
            where = segment[..., None].expand(-1, -1, width)
            mean = torch.zeros(batch, patches, width, device=x.device).scatter_add(1, where, x.float()) / count.clamp(min=1)[..., None]
            most = torch.zeros(batch, patches, width, device=x.device).scatter_reduce(1, where, x.float(), "amax", include_self=False)
            h = self.back(self.blocks(self.into(torch.cat([mean, most], -1))))
            before = F.pad(h, (0, 0, 1, 0))[:, :-1].gather(1, where)
            logits = F.linear(self.decode(x + before), self.byte.weight)
            return F.cross_entropy(logits.flatten(0, 1).float(), wanted.flatten())
    return Mixed(Model()), torch.randint(0, 256, (batch, length), dtype=torch.uint8)


@program()
def rounded_bits_step(pick):
    """An optimiser by lists (Lion), a clipped norm, a slow copy, and bfloat16 weights written in place by adding random bits before the cut."""
    def step(weights, gradients, momenta, slow, low):
        norm = torch.stack(torch._foreach_norm(gradients)).norm()
        gradients = torch._foreach_mul(gradients, (1 / (norm + 1e-6)).clamp(max=1.0))
        update = torch._foreach_sign(torch._foreach_lerp(momenta, gradients, 0.1))
        weights = torch._foreach_mul(weights, 1 - 1e-4)
        torch._foreach_add_(weights, update, alpha=-1e-4)
        momenta = torch._foreach_lerp(momenta, gradients, 0.01)
        slow = torch._foreach_lerp(slow, weights, 0.001)
        for w, kept in zip(weights, low):
            bits = w.view(torch.int32)
            bits = (bits + torch.randint_like(bits, 0, 1 << 16)) & -65536
            kept.copy_(bits.view(torch.float32))
        return [*weights, *momenta, *slow, *low]
    n, count = pick(1021, 37), pick(16, 3)
    sizes = [(n, n), (n,), (n, 3 * n), (3 * n,), (5, 1, 7)] * count
    return step, *([torch.randn(s) * 0.02 for s in sizes] for _ in range(4)), [torch.zeros(s, dtype=torch.bfloat16) for s in sizes]


@program()
def guided_sampler(pick):
    """Six steps of a solver of second order over half-precision images, with and without the class at once, thresholds by quantiles."""
    batch, base, size, kind = pick(5, 1), pick(128, 8), pick(64, 16), pick(torch.float16, torch.float32)

    class Block(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.norm, self.norm2, self.skip = nn.GroupNorm(8, i), nn.GroupNorm(8, o), nn.Conv2d(i, o, 1)
            self.conv, self.conv2, self.change = nn.Conv2d(i, o, 3, padding=1), nn.Conv2d(o, o, 3, padding=1), nn.Linear(4 * base, 2 * o)

        def forward(self, x, c):
            scale, shift = self.change(c)[:, :, None, None].chunk(2, 1)
            h = self.norm2(self.conv(F.silu(self.norm(x)))) * (1 + scale) + shift
            return self.skip(x) + self.conv2(F.silu(h))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.kind, self.time = nn.Embedding(11, 4 * base), layers(2 * 32, 4 * base, 4 * base, act=nn.SiLU)
            self.first, self.a, self.b, self.c, self.last = nn.Conv2d(3, base, 3, padding=1), Block(base, base), Block(base, 2 * base), Block(3 * base, base), nn.Conv2d(base, 3, 3, padding=1)

        def forward(self, x, t, label):
            angle = t[:, None] * torch.exp(-math.log(10000) * torch.arange(32, device=x.device) / 32)
            c = F.silu(self.time(torch.cat([angle.sin(), angle.cos()], -1).to(x.dtype)) + self.kind(label))
            a = self.a(self.first(x), c)
            b = self.b(F.avg_pool2d(a, 2), c)
            return self.last(self.c(torch.cat([F.interpolate(b, scale_factor=2.0, mode="nearest"), a], 1), c))

    class Sampler(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Net().to(kind)

        def forward(self, x, label, alphas):
            labels, old = torch.cat([label, torch.full_like(label, 10)]), None
            sigmas = (1 - alphas**2).sqrt()
            lambdas = alphas.log() - sigmas.log()
            for i in range(6):
                twice = torch.cat([x, x]).to(kind).contiguous(memory_format=torch.channels_last)
                given, free = self.net(twice, (lambdas[i] * 100).expand(2 * batch), labels).float().chunk(2)
                clean = (x - sigmas[i] * (free + 3 * (given - free))) / alphas[i]
                most = torch.quantile(clean.flatten(1).abs(), 0.995, dim=1).clamp(min=1)[:, None, None, None]
                clean = torch.maximum(torch.minimum(clean, most), -most) / most
                h = lambdas[i + 1] - lambdas[i]
                if old is None:
                    d = clean
                else:
                    r = (lambdas[i] - lambdas[i - 1]) / h
                    d = (1 + 1 / (2 * r)) * clean - old / (2 * r)
                x = sigmas[i + 1] / sigmas[i] * x - alphas[i + 1] * torch.expm1(-h) * d
                old = clean
            return ((x.clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8), x
    return Sampler().to(memory_format=torch.channels_last), torch.randn(batch, 3, size, size), torch.randint(0, 10, (batch,)), torch.linspace(0.1, 0.995, 7)


@program(train=True)
def depths_train(pick):
    """Blocks that most tokens skip: a router's best places in order, gathered with their turns and documents, put back where they were."""
    batch, length, width, heads = pick(4, 2), pick(1531, 51), pick(768, 32), pick(12, 2)
    kept = length // 8

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.norm2, self.qkv, self.out = nn.RMSNorm(width), nn.RMSNorm(width), nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.up, self.down = nn.Linear(width, 8 * width // 3 * 2, bias=False), nn.Linear(8 * width // 3, width, bias=False)

        def forward(self, x, cos, sin, document):
            q, k, v = self.qkv(self.norm(x)).view(*x.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
            q, k = ((t.float() * cos + torch.cat([-t[..., t.size(-1) // 2:], t[..., : t.size(-1) // 2]], -1).float() * sin).to(v.dtype) for t in (q, k))
            n = x.size(1)
            seen = (document[:, :, None] == document[:, None]) & torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
            y = self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None]).transpose(1, 2).flatten(2))
            a, b = self.up(self.norm2(x + y)).chunk(2, -1)
            return y + self.down(F.silu(a) * b)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks, self.routers = nn.ModuleList(Block() for _ in range(4)), nn.ModuleList(nn.Linear(width, 1, bias=False) for _ in range(2))

        def forward(self, x, starts):
            document = starts.cumsum(1, dtype=torch.int32)
            place = torch.arange(length, device=x.device)
            place = place - torch.where(starts, place, 0).cummax(1)[0]
            angle = place[:, None, :, None] * 500000.0 ** (-torch.arange(0, width // heads, 2, device=x.device) / (width // heads))
            cos, sin = (torch.cat([t, t], -1) for t in (angle.cos(), angle.sin()))
            extra = 0.0
            for i, block in enumerate(self.blocks):
                if i % 2 == 0:
                    x = x + block(x, cos, sin, document)
                    continue
                with torch.autocast(x.device.type, enabled=False):
                    weight = self.routers[i // 2](x.float()).squeeze(-1)
                which = weight.topk(kept, 1)[1].sort(1)[0]
                rows = which[..., None].expand(-1, -1, width)
                turned = [t.gather(2, which[:, None, :, None].expand(-1, -1, -1, t.size(-1))) for t in (cos, sin)]
                y = block(x.gather(1, rows), *turned, document.gather(1, which))
                x = x.scatter_add(1, rows, y.to(x.dtype) * weight.gather(1, which)[..., None].sigmoid().to(x.dtype))
                extra = extra + F.binary_cross_entropy_with_logits(weight, torch.zeros_like(weight).scatter_(1, which, 1.0))
            return x.float().square().mean() + 0.01 * extra, x[:, -1]
    starts = torch.rand(batch, length) < 0.004
    starts[:, 0] = True
    return Mixed(Net()), torch.randn(batch, length, width), starts


@program(train=True)
def latent_attention_train(pick):
    """Keys and values from a narrow code, turns of part of the width in pairs, wider keys than values; gates of every second column, clamped."""
    batch, length, width, heads, code, plain, turned, value = pick(3, 2), pick(1021, 43), pick(1024, 32), pick(16, 2), pick(256, 16), pick(64, 8), pick(32, 4), pick(64, 8)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.norm2, self.code_norm = nn.RMSNorm(width), nn.RMSNorm(width), nn.RMSNorm(code)
            self.q, self.down = nn.Linear(width, heads * (plain + turned), bias=False), nn.Linear(width, code + turned, bias=False)
            self.up, self.out = nn.Linear(code, heads * (plain + value), bias=False), nn.Linear(heads * value, width, bias=False)
            self.into, self.back = nn.Linear(width, 6 * width), nn.Linear(3 * width, width)

        def forward(self, x, angle):
            def turn(t):
                a, b = t[..., ::2].float(), t[..., 1::2].float()
                return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2).to(t.dtype)
            h = self.norm(x)
            q, q2 = self.q(h).view(batch, length, heads, -1).transpose(1, 2).split([plain, turned], -1)
            c, k2 = self.down(h).split([code, turned], -1)
            k, v = self.up(self.code_norm(c)).view(batch, length, heads, -1).transpose(1, 2).split([plain, value], -1)
            q, k = torch.cat([q, turn(q2)], -1), torch.cat([k, turn(k2)[:, None].expand(-1, heads, -1, -1)], -1)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=(plain + turned) ** -0.5 * 1.2)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, -1))
            h = self.into(self.norm2(x))
            gate, up = h[..., ::2].clamp(max=7), h[..., 1::2].clamp(-7, 7)
            return x + self.back(gate * torch.sigmoid(1.702 * gate) * (up + 1))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(3))

        def forward(self, x):
            speed = 10000.0 ** (-torch.arange(0, turned, 2, device=x.device) / turned)
            share = ((torch.arange(turned // 2, device=x.device) - turned / 8) / (turned / 4)).clamp(0, 1)
            angle = torch.arange(length, device=x.device)[:, None] * (speed * (1 - share) + speed / 40 * share)
            for block in self.blocks:
                x = block(x, angle)
            return x
    return Mixed(Net()), torch.randn(batch, length, width)


@program(train=True)
def sparse_codes_train(pick):
    """A sparse autoencoder of activations: the most active of odd many codes kept, codes long idle counted in a buffer and given what is left over."""
    count, width, codes, kept = pick(2039, 67), pick(768, 48), pick(8191, 257), pick(32, 4)

    class Coder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.decode, self.bias = nn.Linear(width, codes), nn.Parameter(torch.randn(codes, width)), nn.Parameter(torch.zeros(width))
            self.register_buffer("idle", torch.zeros(codes, dtype=torch.int32))

        def forward(self, x, idle):
            book = F.normalize(self.decode, dim=-1)
            active = F.relu(self.encode(x - self.bias))
            value, which = active.topk(kept, -1)
            sparse = torch.zeros_like(active).scatter(-1, which, value)
            made = sparse @ book + self.bias
            fired = torch.zeros(codes, dtype=torch.bool, device=x.device)
            fired[which.flatten()] = True
            self.idle.copy_(idle + 1).masked_fill_(fired, 0)
            dead = self.idle > 100
            value, which = torch.where(dead, active, 0.0).topk(2 * kept, -1)
            rest = torch.zeros_like(active).scatter(-1, which, value) @ book
            spread = (x - x.mean(0)).square().mean()
            wrong = (x - made).square().mean() / spread
            extra = ((x - made).detach() - rest).square().mean() / spread
            return wrong + extra.nan_to_num(0.0) / 32, dead.float().mean(), (sparse > 0).sum(-1, dtype=torch.int32)
    return Coder(), torch.randn(count, width), torch.randint(0, 200, (codes,), dtype=torch.int32)


@program()
def byte_augment(pick):
    """Images of bytes: fewer bits, turned tones, histograms made even by tables, a blur of each image's own, boxes from another image, then float16."""
    batch, height, width = pick(61, 5), pick(224, 48), pick(227, 51)

    def augment(images, bits, threshold, sigma, box, share):
        shift = bits[:, None, None, None].to(torch.uint8)
        x = (images >> shift) << shift
        x = torch.where(x > threshold[:, None, None, None], 255 - x, x)
        flat = x.flatten(2).long()
        counts = torch.zeros(batch, 3, 256, device=x.device, dtype=torch.int32).scatter_add_(2, flat, torch.ones_like(flat, dtype=torch.int32))
        sums = counts.cumsum(2)
        first = sums.masked_fill(sums == 0, height * width).amin(2, keepdim=True)
        table = ((sums - first) * 255 // (height * width - first).clamp(min=1)).clamp(0, 255).to(torch.uint8)
        even = table.gather(2, flat).view_as(x)
        x = torch.where((bits % 2 == 0)[:, None, None, None], even, x).float() / 255
        at = torch.arange(-4, 5, device=x.device)
        kernel = torch.exp(-(at**2) / (2 * sigma[:, None] ** 2))
        kernel = (kernel / kernel.sum(1, keepdim=True)).repeat_interleave(3, 0)
        x = F.pad(x, (4, 4, 4, 4), mode="reflect").view(1, batch * 3, height + 8, width + 8)
        x = F.conv2d(F.conv2d(x, kernel[:, None, None], groups=3 * batch), kernel[:, None, :, None], groups=3 * batch).view(batch, 3, height, width)
        rows, columns = torch.arange(height, device=x.device), torch.arange(width, device=x.device)
        inside = ((rows >= box[:, :1]) & (rows < box[:, 2:3]))[:, :, None] & ((columns >= box[:, 1:2]) & (columns < box[:, 3:]))[:, None]
        mixed = torch.where(inside[:, None], x.flip(0), x)
        mixed = torch.where(share[:, None, None, None] > 0.5, torch.lerp(mixed, mixed.roll(1, 0), 0.3), mixed)
        mean, spread = mixed.new_tensor([0.485, 0.456, 0.406]).view(3, 1, 1), mixed.new_tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
        return ((mixed - mean) / spread).half().contiguous(memory_format=torch.channels_last), inside.float().mean((1, 2)), table
    corner = torch.randint(0, height // 2, (batch, 2), dtype=torch.int16)
    images = torch.randint(0, 256, (batch, height, width, 3), dtype=torch.uint8).permute(0, 3, 1, 2)
    return (augment, images, torch.randint(0, 5, (batch,), dtype=torch.int32), torch.randint(100, 256, (batch,), dtype=torch.uint8), torch.rand(batch) + 0.5,
            torch.cat([corner, corner + height // 3], 1), torch.rand(batch))


@program(train=True)
def triangles_train(pick):
    """Pairs of residues: products over both sides of triangles, attention along rows and columns with biases, each recomputed for the gradient."""
    n, width, heads = pick(193, 17), pick(96, 16), 4

    class Product(nn.Module):
        def __init__(self, outgoing):
            super().__init__()
            self.outgoing, self.norm, self.norm2 = outgoing, nn.LayerNorm(width), nn.LayerNorm(width)
            self.sides, self.gates, self.gate, self.out = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width), nn.Linear(width, width), nn.Linear(width, width)

        def forward(self, z, mask):
            z = self.norm(z)
            a, b = (self.sides(z) * self.gates(z).sigmoid() * mask[..., None]).chunk(2, -1)
            x = torch.einsum("bikc,bjkc->bijc", a, b) if self.outgoing else torch.einsum("bkic,bkjc->bijc", a, b)
            return self.gate(z).sigmoid() * self.out(self.norm2(x))

    class Attention(nn.Module):
        def __init__(self, across):
            super().__init__()
            self.across, self.norm, self.qkv = across, nn.LayerNorm(width), nn.Linear(width, 3 * width, bias=False)
            self.bias, self.gate, self.out = nn.Linear(width, heads, bias=False), nn.Linear(width, width), nn.Linear(width, width)

        def forward(self, z, mask):
            if self.across:
                z, mask = z.transpose(1, 2), mask.transpose(1, 2)
            z = self.norm(z)
            q, k, v = (t.unflatten(-1, (heads, -1)).transpose(2, 3) for t in self.qkv(z).chunk(3, -1))
            scores = q @ k.transpose(-1, -2) * (width // heads) ** -0.5 + self.bias(z).permute(0, 3, 1, 2)[:, None]
            scores = scores.float() + (mask.float() - 1)[:, :, None, None] * 1e9
            x = (scores.softmax(-1).to(v.dtype) @ v).transpose(2, 3).flatten(-2)
            x = self.out(self.gate(z).sigmoid() * x)
            return x.transpose(1, 2) if self.across else x

    class Pairs(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList([Product(True), Product(False), Attention(False), Attention(True)])
            self.near, self.far = nn.Embedding(64, width), nn.Linear(width, 37)

        def forward(self, z, mask, place):
            z = z + self.near((place[:, :, None] - place[:, None]).clamp(-32, 31) + 32)
            for part in self.parts:
                z = z + checkpoint(part, z, mask, use_reentrant=False)
            logits = self.far(z + z.transpose(1, 2)).float()
            wanted = (place[:, :, None] - place[:, None]).abs().clamp(max=36).long()
            return (F.cross_entropy(logits.permute(0, 3, 1, 2), wanted, reduction="none") * mask).sum() / mask.sum()
    known = torch.rand(1, n) < 0.9
    return Mixed(Pairs()), torch.randn(1, n, n, width), known[:, :, None] & known[:, None], torch.arange(n, dtype=torch.int32)[None]


class Spike(torch.autograd.Function):
    """One where the potential is above zero; the gradient of an arctangent."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g / (1 + (math.pi * x).square())


@program(train=True)
def spiking_train(pick):
    """Neurons that leak and fire over time: a custom function as surrogate, learned leaks, convolutions of events in int8, gradients clipped by hooks."""
    steps, batch, size, base = pick(12, 4), pick(16, 2), pick(48, 16), pick(32, 8)

    class Cells(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.leak = nn.Parameter(torch.full((channels, 1, 1), 0.5))

        def forward(self, currents):
            v, leak, out = torch.zeros_like(currents[0]), self.leak.sigmoid(), []
            for now in currents:
                v = leak * v + (1 - leak) * now
                spike = Spike.apply(v - 0.5)
                v = v * (1 - spike.detach())
                out.append(spike)
            out = torch.stack(out)
            if out.requires_grad:
                out.register_hook(lambda g: g.clamp(-1, 1))
            return out

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            sizes = (2, base, 2 * base, 2 * base)
            self.convs, self.norms = nn.ModuleList(nn.Conv2d(i, o, 3, padding=1, bias=False) for i, o in zip(sizes, sizes[1:])), nn.ModuleList(nn.BatchNorm2d(o) for o in sizes[1:])
            self.cells, self.head = nn.ModuleList(Cells(o) for o in sizes[1:]), nn.Linear(2 * base, 11)

        def forward(self, events, labels):
            x, rates = events.float(), []
            for conv, norm, cells in zip(self.convs, self.norms, self.cells):
                x = cells(norm(conv(x.flatten(0, 1))).unflatten(0, (steps, batch)))
                rates.append(x.mean((0, 1, 3, 4)))
                x = F.max_pool2d(x.flatten(0, 1), 2).unflatten(0, (steps, batch))
            scores = self.head(x.mean((3, 4)))
            often = torch.cat(rates)
            return F.cross_entropy(scores.flatten(0, 1), labels.repeat(steps)) + 0.1 * (often - 0.1).square().sum(), scores.mean(0).softmax(-1)
    return Net(), torch.randint(-1, 2, (steps, batch, 2, size, size), dtype=torch.int8), torch.randint(0, 11, (batch,))


class ChunkedLoss(torch.autograd.Function):
    """Cross entropy of a head, with its gradients made in the forward pass, chunk by chunk of rows."""

    @staticmethod
    def forward(ctx, hidden, weight, target, rows):
        slope, of_weight = torch.empty_like(hidden), torch.zeros_like(weight, dtype=torch.float32)
        total, kept = hidden.new_zeros((), dtype=torch.float32), (target != -100).sum()
        for start in range(0, hidden.size(0), rows):
            h, t = hidden[start:start + rows], target[start:start + rows]
            known, t = (t != -100)[:, None], t.clamp(min=0)[:, None]
            logits = (h @ weight.t()).float()
            lse = logits.logsumexp(-1, keepdim=True)
            total += ((lse - logits.gather(1, t) + 1e-4 * lse.square()) * known).sum()
            g = (logits - lse).exp() * (1 + 2e-4 * lse)
            g.scatter_add_(1, t, torch.full_like(lse, -1.0))
            g = (g * known / kept).to(h.dtype)
            slope[start:start + rows] = g @ weight
            of_weight += g.t() @ h
        ctx.save_for_backward(slope, of_weight.to(weight.dtype))
        return total / kept

    @staticmethod
    def backward(ctx, g):
        slope, of_weight = ctx.saved_tensors
        return g.to(slope.dtype) * slope, g.to(of_weight.dtype) * of_weight, None, None


@program(train=True)
def chunked_loss_train(pick):
    """A tied embedding of an odd vocabulary in bfloat16, and a loss whose custom function makes its gradients in chunks of rows, in place."""
    batch, length, width, words = pick(2, 2), pick(2039, 53), pick(768, 32), pick(32003, 307)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.word = nn.Embedding(words, width)
            self.norms, self.mix = nn.ModuleList(nn.RMSNorm(width) for _ in range(3)), nn.ModuleList(nn.Linear(2 * width, 2 * width) for _ in range(3))
            self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(3))

        def forward(self, tokens):
            x = self.word(tokens[:, :-1]) * 0.05
            for i, (norm, mix, out) in enumerate(zip(self.norms, self.mix, self.out)):
                h = norm(x)
                x = x + out(F.glu(mix(torch.cat([h, F.pad(h, (0, 0, 1 << i, 0))[:, : h.size(1)]], -1)), -1))
            return ChunkedLoss.apply(x.flatten(0, 1), self.word.weight, tokens[:, 1:].masked_fill(tokens[:, 1:] < 5, -100).flatten(), pick(1024, 40))
    return Model().bfloat16(), torch.randint(0, words, (batch, length))


@program(train=True)
def mean_flow_train(pick):
    """Mean velocities between two times: a derivative forwards through the network beside its value, an adaptive weight, one step of sampling."""
    batch, tokens, width, heads, depth = pick(64, 4), pick(65, 9), pick(384, 32), pick(6, 2), pick(4, 2)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.change = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Linear(width, 6 * width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, c):
            s1, m1, g1, s2, m2, g2 = self.change(F.silu(c))[:, None].chunk(6, -1)
            q, k, v = self.qkv(F.layer_norm(x, (width,)) * (1 + m1) + s1).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            x = x + g1 * self.out(((q @ k.mT * q.size(-1) ** -0.5).softmax(-1) @ v).transpose(1, 2).flatten(2))
            return x + g2 * self.down(F.gelu(self.up(F.layer_norm(x, (width,)) * (1 + m2) + s2), approximate="tanh"))

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.last, self.place = nn.Linear(16, width), nn.Linear(width, 16), nn.Parameter(torch.randn(tokens, width) * 0.02)
            self.time, self.span, self.blocks = layers(64, width, width, act=nn.SiLU), layers(64, width, width, act=nn.SiLU), nn.ModuleList(Block() for _ in range(depth))

        def velocity(self, z, r, t):
            speed = torch.exp(-math.log(10000) * torch.arange(32, device=z.device) / 32)
            c = sum(net(torch.cat([(v[:, None] * 100 * speed).sin(), (v[:, None] * 100 * speed).cos()], -1)) for net, v in ((self.time, t), (self.span, t - r)))
            x = self.into(z) + self.place
            for block in self.blocks:
                x = block(x, c)
            return self.last(F.layer_norm(x, (width,)))

        def forward(self, x, noise, times):
            t, r = times.amax(1), torch.where(times[:, 2] < 0.25, times.amax(1), times[:, :2].amin(1))
            z, v = torch.lerp(x, noise, t[:, None, None]), noise - x
            u, slope = torch.func.jvp(self.velocity, (z, r, t), (v, torch.zeros_like(r), torch.ones_like(t)))
            target = (v - (t - r)[:, None, None] * slope).detach()
            wrong = (u - target).square().mean((1, 2))
            return (wrong / (wrong.detach() + 1e-3)).mean(), (z - (t - r)[:, None, None] * u).detach()
    return Flow(), torch.randn(batch, tokens, 16), torch.randn(batch, tokens, 16), torch.rand(batch, 3)


@program(train=True)
def harmonics_train(pick):
    """Sound of sums of harmonics and filtered noise (DDSP): phases summed in float64, impulses by inverse transforms, frames laid over each other, losses of spectra at several sizes."""
    batch, frames, hop, harmonics, bands = pick(8, 1), pick(250, 25), pick(64, 32), pick(60, 12), 65
    samples, rate = frames * hop, 16000

    class Synth(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.conv = layers(2, 128, 128, act=nn.GELU), nn.Conv1d(128, 128, 5, padding=4, dilation=2)
            self.loud, self.noise = nn.Linear(128, 1 + harmonics), nn.Linear(128, bands)

        def forward(self, pitch, loudness, noise, wanted):
            h = self.net(torch.stack([pitch.log2() / 10, loudness], -1))
            h = h + F.silu(self.conv(h.transpose(1, 2))).transpose(1, 2)
            whole, share = (2 * self.loud(h).sigmoid() ** math.log(10) + 1e-7).split([1, harmonics], -1)
            number = torch.arange(1, harmonics + 1, device=h.device)
            share = share * (pitch[..., None] * number < rate / 2)
            share = whole * share / share.sum(-1, keepdim=True)
            grown = lambda t: F.interpolate(t.transpose(1, 2), samples, mode="linear").transpose(1, 2)  # noqa: E731
            turns = ((grown(pitch[..., None]).double() / rate).cumsum(1) % 1).float()
            tone = (grown(share) * torch.sin(2 * math.pi * turns * number)).sum(-1)
            impulse = torch.fft.irfft(2 * self.noise(h).sigmoid().to(torch.cfloat)).roll(bands - 1, -1)
            impulse = impulse * torch.hann_window(impulse.size(-1), device=h.device)
            size = hop + impulse.size(-1) - 1
            parts = torch.fft.irfft(torch.fft.rfft(noise.view(batch, frames, hop), size) * torch.fft.rfft(impulse, size), size)
            laid = F.fold(parts.transpose(1, 2), (1, samples + size - hop), (1, size), stride=(1, hop))[:, 0, 0]
            sound = tone + laid[:, bands - 1:][:, :samples]
            loss = 0.0
            for n in (512, 256, 128, 64):
                window = torch.hann_window(n, device=h.device)
                made, real = (torch.stft(s, n, n // 4, window=window, return_complex=True).abs() for s in (sound, wanted))
                loss = loss + F.l1_loss(made, real) + F.l1_loss((made + 1e-5).log(), (real + 1e-5).log())
            return loss, sound
    return Synth(), torch.rand(batch, frames) * 400 + 80, torch.rand(batch, frames), torch.rand(batch, samples) * 2 - 1, torch.randn(batch, samples) * 0.3


if __name__ == "__main__":
    main(__file__, PROGRAMS, __doc__)

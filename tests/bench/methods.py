"""Methods of papers, beside the stock torch.compile and eager: losses, samplers, attentions, recurrences and optimisers as people write them by hand.

    PYTHONPATH=build/release/python:tests python tests/bench/methods.py [--device cuda] [--mode reduce-overhead] [--programs dpo_train …] [--json results.json]

Measured as fields.py: a process each, empty caches, compared with eager. Ratios are stock / Fusebox: above 1, Fusebox is faster.
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

PROGRAMS, program = registry()


@program(train=True)
def dpo_train(pick):
    """Preferences: log probabilities of tokens of a large vocabulary, masked sums, a logistic loss."""
    batch, length, width, words = pick(8, 2), pick(512, 32), pick(1024, 64), pick(32000, 500)

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(width, words, bias=False)

        def forward(self, hidden, labels, reference):
            logits = self.head(hidden[:, :-1]).float()
            labels = labels[:, 1:]
            kept = labels != -100
            chosen = logits.log_softmax(-1).gather(2, labels.clamp(min=0)[..., None]).squeeze(2)
            score = (chosen * kept).sum(-1) - reference
            better, worse = score.chunk(2)
            margin = 0.1 * (better - worse)
            return -F.logsigmoid(margin).mean(), (margin > 0).float().mean().detach()
    labels = torch.randint(0, words, (batch, length))
    labels[:, : length // 4] = -100
    return Mixed(Loss()), torch.randn(batch, length, width, requires_grad=True), labels, torch.randn(batch)


@program(train=True)
def group_policy_train(pick):
    """Group-relative policy loss: ratios clipped, a divergence, entropies of the vocabulary, per-token means."""
    batch, length, words = pick(16, 2), pick(256, 16), pick(32000, 300)

    def loss(logits, tokens, old, reference, rewards, mask):
        logp = logits.float().log_softmax(-1)
        entropy = -(logp.exp() * logp).sum(-1)
        mine = logp.gather(-1, tokens[..., None])[..., 0]
        groups = rewards.view(-1, 2)
        gain = ((groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)).view(-1, 1)
        ratio = (mine - old).exp()
        apart = reference - mine
        kl = apart.exp() - apart - 1
        token = -torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain) + 0.04 * kl - 0.001 * entropy
        return ((token * mask).sum(-1) / mask.sum(-1).clamp(min=1)).mean()
    shape = (batch, length)
    return loss, torch.randn(*shape, words).bfloat16().requires_grad_(), torch.randint(0, words, shape), -10 * torch.rand(shape), -10 * torch.rand(shape), torch.rand(batch), (torch.rand(shape) < 0.8).float()


@program(train=True)
def penalised_critic_train(pick):
    """A critic with a penalty on its gradient: a derivative within the compiled step."""
    class Critic(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = layers(512, 1024, 1024, 1024, 1, act=lambda: nn.LeakyReLU(0.2))

        def forward(self, real, made, share):
            between = (share * real + (1 - share) * made).requires_grad_()
            slope, = torch.autograd.grad(self.net(between).sum(), between, create_graph=True)
            return self.net(made).mean() - self.net(real).mean() + 10 * ((slope.norm(dim=1) - 1) ** 2).mean()
    n = pick(4096, 64)
    return Critic(), torch.randn(n, 512), torch.randn(n, 512), torch.rand(n, 1)


@program(train=True)
def physics_train(pick):
    """A network under Burgers' equation: derivatives of first and second order to its inputs."""
    class Equation(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = layers(2, 128, 128, 128, 128, 1, act=nn.Tanh)

        def forward(self, x, t):
            x, t = x.detach().requires_grad_(), t.detach().requires_grad_()
            u = self.net(torch.stack([x, t], -1))[:, 0]
            ux, ut = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
            uxx, = torch.autograd.grad(ux.sum(), x, create_graph=True)
            return (ut + u * ux - 0.01 / math.pi * uxx).square().mean()
    n = pick(65536, 512)
    return Equation(), torch.rand(n) * 2 - 1, torch.rand(n)


@program(train=True)
def selective_scan_train(pick):
    """A state space with gates from its inputs, scanned in chunks by cumulative sums."""
    batch, length, width, state, chunk = pick(8, 1), pick(1024, 64), pick(512, 32), 16, 32

    class Scan(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.gates, self.out = nn.Linear(width, 2 * width), nn.Linear(width, 2 * state + 1), nn.Linear(width, width)
            self.conv = nn.Conv1d(width, width, 4, padding=3, groups=width)
            self.decay = nn.Parameter(torch.rand(width).log())

        def forward(self, x):
            u, z = self.into(x).chunk(2, -1)
            u = F.silu(self.conv(u.transpose(1, 2))[..., :length].transpose(1, 2))
            b, c, dt = self.gates(u).split([state, state, 1], -1)
            dt = F.softplus(dt.float())
            a = (-self.decay.exp() * dt).view(batch, -1, chunk, width)
            v = (dt * u).view(batch, -1, chunk, width)
            b, c = b.view(batch, -1, chunk, state).float(), c.view(batch, -1, chunk, state).float()
            total = a.cumsum(2)
            carry = torch.zeros(batch, width, state, device=x.device)
            scores = torch.einsum("bkin,bkjn->bkij", c, b).tril()
            ys = []
            for k in range(length // chunk):
                s = total[:, k]
                decay = (s[:, :, None] - s[:, None]).clamp(max=0).exp()
                y = torch.einsum("bij,bijw,bjw->biw", scores[:, k], decay, v[:, k])
                y = y + torch.einsum("bin,bwn,biw->biw", c[:, k], carry, s.exp())
                ys.append(y)
                left = (s[:, -1:] - s).exp() * v[:, k]
                carry = carry * s[:, -1, :, None].exp() + torch.einsum("bjw,bjn->bwn", left, b[:, k])
            return self.out(torch.cat(ys, 1).to(z.dtype) * F.silu(z))
    return Mixed(Scan()), torch.randn(batch, length, width)


@program(train=True)
def delta_rule_train(pick):
    """Linear attention with the delta rule: triangular solutions within chunks, a state between them."""
    batch, heads, length, width, chunk = pick(8, 1), pick(8, 2), pick(1024, 64), 64, pick(64, 16)

    def attend(q, k, v, beta):
        q, k, v = (F.normalize(t.float(), dim=-1).unflatten(2, (-1, chunk)) for t in (q, k, v))
        beta = beta.float().sigmoid().unflatten(2, (-1, chunk))[..., None]
        within = (k * beta @ k.mT).tril(-1)
        eye = torch.eye(chunk, device=q.device)
        solved = torch.linalg.solve_triangular(eye + within, torch.cat([v * beta, k * beta], -1), upper=False, unitriangular=True)
        values, keys = solved.chunk(2, -1)
        scores = (q @ k.mT).tril()
        state, out = torch.zeros(batch, heads, width, width, device=q.device), []
        for i in range(length // chunk):
            fresh = values[:, :, i] - keys[:, :, i] @ state
            out.append(q[:, :, i] @ state + scores[:, :, i] @ fresh)
            state = state + k[:, :, i].mT @ fresh
        return torch.cat(out, 2)
    part = lambda: torch.randn(batch, heads, length, width, requires_grad=True)  # noqa: E731
    return attend, part(), part(), part(), torch.randn(batch, heads, length, requires_grad=True)


@program(train=True)
def receptance_train(pick):
    """A recurrence of weighted keys and values (RWKV): token shift, squared units, a loop over time."""
    batch, length, width = pick(32, 2), pick(64, 12), pick(768, 48)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mix = nn.Parameter(torch.rand(5, width))
            self.k, self.v, self.r, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
            self.up, self.down, self.gate = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False), nn.Linear(width, width, bias=False)
            self.decay, self.first = nn.Parameter(torch.randn(width)), nn.Parameter(torch.randn(width))

        def forward(self, x):
            h = self.norm(x)
            before = F.pad(h, (0, 0, 1, -1))
            k, v, r = (linear(torch.lerp(before, h, self.mix[i])) for i, linear in enumerate((self.k, self.v, self.r)))
            k, v, decay = k.float(), v.float(), -self.decay.exp()
            top, bottom, most, out = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]), torch.full_like(k[:, 0], -1e38), []
            for t in range(length):
                high = torch.maximum(most, self.first + k[:, t])
                a, b = (most - high).exp(), (self.first + k[:, t] - high).exp()
                out.append((a * top + b * v[:, t]) / (a * bottom + b))
                high = torch.maximum(most + decay, k[:, t])
                a, b = (most + decay - high).exp(), (k[:, t] - high).exp()
                top, bottom, most = a * top + b * v[:, t], a * bottom + b, high
            x = x + self.o(r.sigmoid() * torch.stack(out, 1))
            h = self.norm2(x)
            before = F.pad(h, (0, 0, 1, -1))
            return x + self.gate(h).sigmoid() * self.down(F.relu(self.up(torch.lerp(before, h, self.mix[4]))).square())
    return Mixed(nn.Sequential(Block(), Block())), torch.randn(batch, length, width)


@program(train=True)
def diffusion_transformer_train(pick):
    """Patches modulated by time and class, normalised queries and keys, a velocity as target."""
    batch, width, heads, depth, side = pick(32, 2), pick(1024, 64), pick(16, 2), pick(6, 2), pick(32, 8)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.change = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Linear(width, 6 * width)
            self.q, self.k = nn.RMSNorm(width // heads), nn.RMSNorm(width // heads)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, c):
            s1, m1, g1, s2, m2, g2 = self.change(F.silu(c))[:, None].chunk(6, -1)
            h = F.layer_norm(x, (width,)) * (1 + m1) + s1
            q, k, v = self.qkv(h).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            x = x + g1 * self.out(F.scaled_dot_product_attention(self.q(q), self.k(k), v).transpose(1, 2).flatten(2))
            h = F.layer_norm(x, (width,)) * (1 + m2) + s2
            return x + g2 * self.down(F.gelu(self.up(h), approximate="tanh"))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch, self.label, self.time = nn.Conv2d(4, width, 2, 2), nn.Embedding(1001, width), layers(256, width, width, act=nn.SiLU)
            self.place = nn.Parameter(torch.randn(1, (side // 2) ** 2, width) * 0.02)
            self.blocks, self.last = nn.ModuleList(Block() for _ in range(depth)), nn.Linear(width, 16)

        def forward(self, x, noise, t, label):
            mixed = (1 - t)[:, None, None, None] * x + t[:, None, None, None] * noise
            angles = t[:, None] * 1000 * torch.exp(-math.log(10000) * torch.arange(128, device=x.device) / 128)
            c = self.time(torch.cat([angles.cos(), angles.sin()], -1)) + self.label(label)
            h = self.patch(mixed).flatten(2).transpose(1, 2) + self.place
            for block in self.blocks:
                h = block(h, c)
            made = self.last(F.layer_norm(h, (width,)))
            made = made.view(batch, side // 2, side // 2, 2, 2, 4).permute(0, 5, 1, 3, 2, 4).reshape(x.shape)
            return F.mse_loss(made.float(), noise - x)
    return Mixed(Net()), torch.randn(batch, 4, side, side), torch.randn(batch, 4, side, side), torch.rand(batch), torch.randint(0, 1001, (batch,))


@program(train=True)
def sinkhorn_train(pick):
    """Optimal transport of point clouds: fifty logarithmic iterations, then the cost."""
    def cost(x, y, points_of_a, points_of_b):
        c = torch.cdist(x, y).square()
        f, g = torch.zeros_like(c[:, :, 0]), torch.zeros_like(c[:, 0])
        for _ in range(20):
            f = -0.1 * torch.logsumexp((g[:, None] - c) / 0.1 + points_of_b[:, None], 2)
            g = -0.1 * torch.logsumexp((f[:, :, None] - c) / 0.1 + points_of_a[:, :, None], 1)
        plan = ((f[:, :, None] + g[:, None] - c) / 0.1 + points_of_a[:, :, None] + points_of_b[:, None]).exp()
        return (plan * c).sum((1, 2)).mean()
    batch, n = pick(16, 2), pick(512, 48)
    weights = torch.randn(batch, n).log_softmax(-1)
    return cost, torch.rand(batch, n, 16, requires_grad=True), torch.rand(batch, n, 16), weights, weights.flip(0)


@program(train=True)
def conditional_field_train(pick):
    """Sequence labels: the forward recursion of logsumexp, the path's score, a mask of lengths."""
    batch, length, tags = pick(128, 8), pick(64, 10), 32

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.turn, self.start, self.stop = nn.Parameter(torch.randn(tags, tags) * 0.1), nn.Parameter(torch.randn(tags) * 0.1), nn.Parameter(torch.randn(tags) * 0.1)

        def forward(self, scores, labels, mask):
            alpha = self.start + scores[:, 0]
            for t in range(1, length):
                new = torch.logsumexp(alpha[:, :, None] + self.turn, 1) + scores[:, t]
                alpha = torch.where(mask[:, t, None], new, alpha)
            whole = torch.logsumexp(alpha + self.stop, 1)
            path = scores.gather(2, labels[..., None])[..., 0] * mask
            steps = self.turn[labels[:, :-1], labels[:, 1:]] * mask[:, 1:]
            last = labels.gather(1, mask.sum(1, keepdim=True) - 1)[:, 0]
            return (whole - path.sum(1) - steps.sum(1) - self.start[labels[:, 0]] - self.stop[last]).mean()
    lengths = torch.randint(length // 2, length + 1, (batch,))
    return Field(), torch.randn(batch, length, tags, requires_grad=True), torch.randint(0, tags, (batch, length)), torch.arange(length)[None] < lengths[:, None]


@program(train=True)
def contrastive_train(pick):
    """Two views of images: normalised projections, a decorrelating loss and a cross entropy of all pairs."""
    batch, width = pick(2048, 64), pick(2048, 64)

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width, bias=False), nn.BatchNorm1d(width, affine=False))

        def forward(self, a, b):
            a, b = self.net(a), self.net(b)
            c = (a.T @ b).float() / batch
            on = (c.diagonal() - 1).square().sum()
            off = c.flatten()[:-1].view(width - 1, width + 1)[:, 1:].square().sum()
            z = F.normalize(torch.cat([a, b]).float(), dim=-1)
            likeness = (z @ z.T / 0.1).masked_fill(torch.eye(2 * batch, dtype=torch.bool, device=z.device), -torch.inf)
            return on + 0.005 * off + F.cross_entropy(likeness, torch.arange(2 * batch, device=z.device).roll(batch))
    return Mixed(Loss()), torch.randn(batch, width), torch.randn(batch, width)


@program(train=True)
def coupling_flow_train(pick):
    """Rational quadratic splines in coupling layers: bins found by searching, gathered, logarithms of slopes."""
    n, dims, bins = pick(16384, 128), 16, 16

    class Coupling(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = layers(dims // 2, 256, 256, dims // 2 * (3 * bins - 1))

        def forward(self, x):
            kept, moved = x.chunk(2, -1)
            w, h, d = self.net(kept).view(*moved.shape, -1).split([bins, bins, bins - 1], -1)
            w, h = (1e-3 + (1 - 1e-3 * bins) * t.softmax(-1) for t in (w, h))
            d = F.pad(1e-3 + F.softplus(d), (1, 1), value=1.0)
            across, up = (F.pad(t.cumsum(-1), (1, 0)) * 6 - 3 for t in (w, h))
            inside = (moved > -3) & (moved < 3)
            y = moved.clamp(-2.999, 2.999)
            which = (torch.searchsorted(across.detach().contiguous(), y[..., None].contiguous()) - 1).clamp(0, bins - 1)
            at = lambda t: t.gather(-1, which)[..., 0]  # noqa: E731
            x0, y0, wide, high, d0, d1 = at(across), at(up), at(6 * w), at(6 * h), at(d), d.gather(-1, which + 1)[..., 0]
            s, t = high / wide, (y - x0) / wide
            u = t * (1 - t)
            below = s + (d1 + d0 - 2 * s) * u
            made = y0 + high * (s * t * t + d0 * u) / below
            slope = 2 * s.log() + (d1 * t * t + 2 * s * u + d0 * (1 - t) ** 2).log() - 2 * below.log()
            return torch.cat([torch.where(inside, made, moved), kept], -1), (slope * inside).sum(-1)

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = nn.ModuleList(Coupling() for _ in range(4))

        def forward(self, x):
            logs = 0
            for step in self.steps:
                x, log = step(x)
                logs = logs + log
            return (0.5 * x.square().sum(-1) - logs).mean()
    return Flow(), torch.randn(n, dims)


@program()
def langevin_samples(pick):
    """Samples of an energy by its gradient: ten noisy steps within one compiled function."""
    net = layers(64, 512, 512, 1, act=nn.SiLU)

    class Sampler(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x, noises):
            for noise in noises:
                with torch.enable_grad():
                    x = x.detach().requires_grad_()
                    slope, = torch.autograd.grad(self.net(x).sum(), x)
                x = (x - 0.05 * slope.clamp(-1, 1) + 0.01 * noise).clamp(-3, 3)
            return x.detach()
    n = pick(16384, 128)
    return Sampler(), torch.randn(n, 64), torch.randn(10, n, 64)


@program(train=True)
def distributional_train(pick):
    """Values as distributions: projection on fixed atoms by scattered additions, five ensembles by vmap."""
    batch, atoms, actions, members = pick(4096, 64), 51, 6, 5

    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.Parameter(torch.randn(members, 32, 256) * 0.1)
            self.down = nn.Parameter(torch.randn(members, 256, actions * atoms) * 0.1)
            self.register_buffer("support", torch.linspace(-10, 10, atoms))

        def forward(self, state, action, reward, done, after):
            def values(up, down, s):
                return (F.relu(s @ up) @ down).unflatten(-1, (actions, atoms))
            logits = torch.vmap(values, (0, 0, None))(self.up, self.down, state)
            with torch.no_grad():
                share = torch.vmap(values, (0, 0, None))(self.up, self.down, after).softmax(-1)
                best = (share * self.support).sum(-1).mean(0).argmax(-1)
                share = share[:, torch.arange(batch, device=state.device), best].mean(0)
                place = (reward[:, None] + 0.99 * (1 - done[:, None]) * self.support).clamp(-10, 10)
                b = (place + 10) / (20 / (atoms - 1))
                low, high = b.floor().long().clamp(0, atoms - 1), b.ceil().long().clamp(0, atoms - 1)
                target = torch.zeros_like(share).scatter_add_(1, low, share * (high.float() - b + (low == high).float())).scatter_add_(1, high, share * (b - low.float()))
            logp = logits.log_softmax(-1)[:, torch.arange(batch, device=state.device), action]
            return -(target * logp).sum(-1).mean()
    return Agent(), torch.randn(batch, 32), torch.randint(0, actions, (batch,)), torch.randn(batch), (torch.rand(batch) < 0.1).float(), torch.randn(batch, 32)


@program(train=True)
def graph_attention_train(pick):
    """Attention along edges: softmax by scattered maxima and sums, heads joined."""
    nodes, edges, heads, width = pick(20000, 200), pick(200000, 1000), 8, 32

    class Layer(nn.Module):
        def __init__(self, into):
            super().__init__()
            self.lin = nn.Linear(into, heads * width, bias=False)
            self.a, self.b = nn.Parameter(torch.randn(heads, width) * 0.1), nn.Parameter(torch.randn(heads, width) * 0.1)

        def forward(self, x, source, target):
            h = self.lin(x).view(-1, heads, width)
            e = F.leaky_relu((h * self.a).sum(-1)[source] + (h * self.b).sum(-1)[target], 0.2)
            most = torch.full((nodes, heads), -torch.inf, device=x.device).scatter_reduce(0, target[:, None].expand_as(e), e, "amax", include_self=False)
            e = (e - most.detach()[target]).exp()
            total = torch.zeros(nodes, heads, device=x.device).index_add(0, target, e)
            weight = e / (total[target] + 1e-16)
            out = torch.zeros(nodes, heads, width, device=x.device).index_add(0, target, weight[..., None] * h[source])
            return F.elu(out.flatten(1))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.head = Layer(128), Layer(heads * width), nn.Linear(heads * width, 40)

        def forward(self, x, edges, labels):
            source, target = edges
            return F.cross_entropy(self.head(self.two(self.one(x, source, target), source, target)), labels)
    return Net(), torch.randn(nodes, 128), torch.randint(0, nodes, (2, edges)), torch.randint(0, 40, (nodes,))


@program(train=True)
def deformable_attention_train(pick):
    """Features of four scales sampled where queries ask, weighted and summed."""
    batch, queries, heads, points, width = pick(4, 1), pick(900, 20), 8, 4, pick(256, 32)
    sides = pick([64, 32, 16, 8], [8, 4, 2, 1])

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.offsets, self.weights = nn.Linear(width, heads * 4 * points * 2), nn.Linear(width, heads * 4 * points)
            self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)

        def forward(self, query, reference, memory):
            value = self.value(memory).unflatten(-1, (heads, -1)).split([s * s for s in sides], 1)
            where = reference[:, :, None, None, None] + self.offsets(query).view(batch, queries, heads, 4, points, 2) / torch.tensor(sides, device=query.device)[:, None, None]
            weight = self.weights(query).view(batch, queries, heads, -1).softmax(-1)
            picked = []
            for i, s in enumerate(sides):
                image = value[i].permute(0, 2, 3, 1).reshape(batch * heads, -1, s, s)
                grid = (2 * where[:, :, :, i] - 1).transpose(1, 2).flatten(0, 1)
                picked.append(F.grid_sample(image, grid, align_corners=False))
            weight = weight.transpose(1, 2).flatten(0, 1)[:, None]
            out = (torch.cat(picked, -1) * weight).sum(-1)
            return self.out(out.view(batch, width, queries).transpose(1, 2))
    return Attention(), torch.randn(batch, queries, width), torch.rand(batch, queries, 2), torch.randn(batch, sum(s * s for s in sides), width)


@program(train=True)
def long_convolution_train(pick):
    """Gated convolutions as long as the sequence, by Fourier transforms; filters by a network of positions."""
    batch, length, width = pick(8, 1), pick(4096, 64), pick(512, 32)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.short, self.out = nn.Linear(width, 3 * width), nn.Conv1d(3 * width, 3 * width, 3, padding=2, groups=3 * width), nn.Linear(width, width)
            self.filter, self.decay, self.bias = layers(9, 64, 64, width, act=nn.SiLU), nn.Parameter(torch.linspace(1, 8, width)), nn.Parameter(torch.randn(width))

        def forward(self, x):
            q, k, v = self.short(self.into(x).transpose(1, 2))[..., :length].chunk(3, 1)
            t = torch.linspace(0, 1, length, device=x.device)
            places = torch.cat([t[:, None], *(f(2 * math.pi * (i + 1) * t)[:, None] for i in range(4) for f in (torch.sin, torch.cos))], -1)
            kernel = self.filter(places).T.float() * torch.exp(-self.decay[:, None] * t)
            u = (k * v).float()
            y = torch.fft.irfft(torch.fft.rfft(u, 2 * length) * torch.fft.rfft(kernel, 2 * length), 2 * length)[..., :length]
            return self.out((q * (y + self.bias[:, None] * u).to(q.dtype)).transpose(1, 2))
    return Mixed(nn.Sequential(Layer(), Layer())), torch.randn(batch, length, width)


@program(train=True)
def relative_attention_train(pick):
    """Scores of contents and of relative places, shifted by padding (Transformer-XL), with a memory."""
    batch, length, memory, heads, width = pick(8, 1), pick(512, 24), pick(512, 24), pick(12, 2), 64

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            n = heads * width
            self.q, self.kv, self.r, self.o = nn.Linear(n, n, bias=False), nn.Linear(n, 2 * n, bias=False), nn.Linear(n, n, bias=False), nn.Linear(n, n, bias=False)
            self.u, self.v, self.norm = nn.Parameter(torch.randn(heads, width) * 0.1), nn.Parameter(torch.randn(heads, width) * 0.1), nn.LayerNorm(n)

        def forward(self, x, past):
            whole = torch.cat([past, x], 1)
            span = length + memory
            place = torch.arange(span - 1, -1, -1.0, device=x.device)
            angles = place[:, None] * 10000 ** (-torch.arange(0, heads * width, 2.0, device=x.device) / (heads * width))
            r = self.r(torch.cat([angles.sin(), angles.cos()], -1)).view(span, heads, width)
            q = self.q(x).view(batch, length, heads, width)
            k, v = self.kv(whole).view(batch, span, 2, heads, width).unbind(2)
            content = torch.einsum("bihd,bjhd->bhij", q + self.u, k)
            places = F.pad(torch.einsum("bihd,jhd->bhij", q + self.v, r), (1, 0)).view(batch, heads, span + 1, length)[:, :, 1:].reshape(batch, heads, length, span)
            scores = (content + places).float() * width**-0.5
            hidden = torch.ones(length, span, dtype=torch.bool, device=x.device).triu(1 + memory)
            share = scores.masked_fill(hidden, -torch.inf).softmax(-1).to(v.dtype)
            return self.norm(x + self.o(torch.einsum("bhij,bjhd->bihd", share, v).flatten(2)))
    n = heads * width
    return Mixed(Attention()), torch.randn(batch, length, n, requires_grad=True), torch.randn(batch, memory, n)


@program()
def eight_bit_adam_step(pick):
    """Adam with states of eight bits: blocks with a scale, a table of values, nearest codes by bucketing."""
    def step(weights, gradients, first, scale1, second, scale2, table, mids):
        out = []
        for w, g, m, s1, v, s2 in zip(weights, gradients, first, scale1, second, scale2):
            m = (table[m.int()] * s1).view(-1) * 0.9 + 0.1 * g.view(-1)
            v = (table[v.int()].abs() * s2).view(-1) * 0.999 + 0.001 * g.view(-1).square()
            w = w * (1 - 1e-5) - 1e-3 * (m / (v.sqrt() + 1e-8)).view_as(w)
            row = [w]
            for t in (m, v):
                blocks = t.view(-1, 256)
                top = blocks.abs().amax(1, keepdim=True).clamp(min=1e-12)
                row += [torch.bucketize(blocks / top, mids).to(torch.uint8), top]
            out += row
        return out
    n, count = pick(1024, 64), pick(24, 4)
    table = torch.cat([-torch.logspace(0, -4, 128), torch.logspace(-4, 0, 128)])
    blocks = n * n // 256
    codes = lambda: [torch.randint(0, 256, (blocks, 256), dtype=torch.uint8) for _ in range(count)]  # noqa: E731
    scales = lambda: [torch.rand(blocks, 1) for _ in range(count)]  # noqa: E731
    return step, [torch.randn(n, n) for _ in range(count)], [torch.randn(n, n) for _ in range(count)], codes(), scales(), codes(), scales(), table, (table[1:] + table[:-1]) / 2


@program()
def layerwise_step(pick):
    """Adaptive rates of whole layers (LAMB): moments, norms of weights and updates, a clipped global norm."""
    def step(weights, gradients, first, second, count):
        whole = torch.stack([g.square().sum() for g in gradients]).sum().sqrt()
        shrink = (1 / (whole + 1e-6)).clamp(max=1)
        out = []
        for w, g, m, v in zip(weights, gradients, first, second):
            g = g * shrink
            m, v = torch.lerp(g, m, 0.9), v * 0.999 + 0.001 * g * g
            update = (m / (1 - 0.9**count)) / ((v / (1 - 0.999**count)).sqrt() + 1e-6) + 0.01 * w
            trust = torch.where(update.norm() > 0, w.norm() / update.norm(), 1.0).clamp(max=10)
            out += [w - 1e-3 * trust * update, m, v]
        return out
    n = pick(1024, 48)
    sizes = [(n, n), (n,), (4 * n, n), (4 * n,), (n, 4 * n), (n,)] * pick(8, 2)
    return step, *([torch.randn(s).abs() for s in sizes] for _ in range(4)), torch.tensor(7.0)


@program()
def verified_draft(pick):
    """A drafted continuation against the large model's logits: accepted length, a residual draw, a cache cut."""
    batch, drafted, words = pick(64, 4), 8, pick(32000, 500)

    def verify(large, small, tokens, uniform, noise):
        p, q = large.float().softmax(-1), small.float().softmax(-1)
        mine = p[:, :-1].gather(-1, tokens[..., None])[..., 0] / q.gather(-1, tokens[..., None])[..., 0].clamp(min=1e-9)
        accepted = (uniform < mine).long().cumprod(1).sum(1)
        rows = torch.arange(batch, device=large.device)
        left = torch.where((accepted < drafted)[:, None], (p[rows, accepted] - q[rows, accepted.clamp(max=drafted - 1)]).clamp(min=0), p[:, -1])
        left = left / left.sum(-1, keepdim=True)
        fresh = (left / noise).argmax(-1)
        out = torch.where(torch.arange(drafted + 1, device=large.device) < accepted[:, None], F.pad(tokens, (0, 1)), 0)
        return out.scatter(1, accepted[:, None], fresh[:, None]), accepted
    return verify, 2 * torch.randn(batch, drafted + 1, words).bfloat16(), 2 * torch.randn(batch, drafted, words).bfloat16(), torch.randint(0, words, (batch, drafted)), torch.rand(batch, drafted), torch.empty(batch, words).exponential_()


@program()
def byte_cache_decode(pick):
    """A token attends to a cache of eight-bit keys and values with scales, grouped heads, rotated places."""
    batch, heads, groups, span, width = pick(16, 2), 32, 8, pick(4096, 64), 128

    def decode(q, k, ks, v, vs, cos, sin, length):
        half = torch.cat([-q[..., width // 2:], q[..., : width // 2]], -1)
        q = (q * cos + half * sin).view(batch, groups, heads // groups, width)
        keys, values = k.to(q.dtype) * ks, v.to(q.dtype) * vs
        scores = (q @ keys.mT).float() * width**-0.5
        scores = scores.masked_fill(torch.arange(span, device=q.device) >= length[:, None, None, None], -torch.inf)
        return (scores.softmax(-1).to(q.dtype) @ values).flatten(1)
    byte = lambda: torch.randint(-127, 128, (batch, groups, span, width), dtype=torch.int8)  # noqa: E731
    scale = lambda: (torch.rand(batch, groups, span, 1) * 0.01).bfloat16()  # noqa: E731
    return decode, torch.randn(batch, heads, width).bfloat16(), byte(), scale(), byte(), scale(), torch.randn(width).bfloat16(), torch.randn(width).bfloat16(), torch.randint(span // 2, span, (batch,))


@program()
def clusters(pick):
    """Means of clusters: distances, nearest, sums by index, ten rounds."""
    def run(x, centres):
        for _ in range(10):
            far = x.square().sum(1, keepdim=True) - 2 * x @ centres.T + centres.square().sum(1)
            which = far.argmin(1)
            total = torch.zeros_like(centres).index_add_(0, which, x)
            count = torch.zeros(centres.size(0), device=x.device).index_add_(0, which, torch.ones_like(x[:, 0]))
            centres = torch.where(count[:, None] > 0, total / count.clamp(min=1)[:, None], centres)
        return centres, which
    n = pick(200000, 1000)
    x = torch.randn(n, 64)
    return run, x, x[:256].clone()


@program()
def splats(pick):
    """Gaussians in the plane blended front to back over tiles of pixels."""
    tiles, near, side = pick(256, 8), pick(128, 32), 16

    def render(mean, conic, opacity, colour):
        at = torch.arange(side, device=mean.device) + 0.5
        pixels = torch.stack(torch.meshgrid(at, at, indexing="xy"), -1).view(1, -1, 1, 2)
        d = pixels - mean[:, None]
        power = -0.5 * (conic[:, None, :, 0] * d[..., 0] ** 2 + conic[:, None, :, 2] * d[..., 1] ** 2) - conic[:, None, :, 1] * d[..., 0] * d[..., 1]
        alpha = (opacity[:, None] * power.exp()).clamp(max=0.99)
        alpha = torch.where((power > 0) | (alpha < 1 / 255), 0.0, alpha)
        light = F.pad((1 - alpha).cumprod(-1)[..., :-1], (1, 0), value=1.0)
        weight = alpha * light
        return weight @ colour, weight.sum(-1)
    conic = torch.stack([torch.rand(tiles, near) + 0.1, 0.05 * torch.randn(tiles, near), torch.rand(tiles, near) + 0.1], -1) * 0.1
    return render, torch.rand(tiles, near, 2) * side, conic, torch.rand(tiles, near), torch.rand(tiles, near, 3)


@program(train=True)
def inner_loop_train(pick):
    """Learning to learn: five steps of gradient descent inside, per task by vmap, the outer loss after them."""
    tasks, shots = pick(64, 4), 10

    class Meta(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Parameter(torch.randn(1, 64)), nn.Parameter(torch.randn(64, 64) / 8), nn.Parameter(torch.randn(64, 1) / 8)

        def forward(self, x, y, x2, y2):
            def made(p, x):
                return F.gelu(F.gelu(x @ p[0]) @ p[1]) @ p[2]

            def task(x, y, x2, y2):
                p = (self.a, self.b, self.c)
                for _ in range(5):
                    slopes = torch.func.grad(lambda p: F.mse_loss(made(p, x), y))(p)
                    p = tuple(w - 0.01 * g for w, g in zip(p, slopes))
                return F.mse_loss(made(p, x2), y2)
            return torch.vmap(task)(x, y, x2, y2).mean()
    part = lambda: torch.randn(tasks, shots, 1)  # noqa: E731
    return Meta(), part(), part(), part(), part()


@program(train=True)
def world_model_train(pick):
    """A recurrent state of thirty-two classes, straight-through draws, balanced divergences over time."""
    batch, length, deter, classes = pick(16, 2), pick(32, 6), pick(512, 32), 32

    class World(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.cell = nn.Sequential(nn.Linear(classes * classes + 6, deter), nn.LayerNorm(deter), nn.SiLU()), nn.GRUCell(deter, deter)
            self.prior, self.post, self.head = layers(deter, deter, classes**2, act=nn.SiLU), layers(deter + 256, deter, classes**2, act=nn.SiLU), layers(deter + classes**2, deter, 256, act=nn.SiLU)

        def forward(self, seen, actions, noise):
            h, z, loss = seen.new_zeros(batch, deter), seen.new_zeros(batch, classes**2), 0
            for t in range(length):
                h = self.cell(self.into(torch.cat([z, actions[:, t]], -1)), h)
                prior = self.prior(h).unflatten(-1, (classes, classes)).log_softmax(-1)
                post = self.post(torch.cat([h, seen[:, t]], -1)).unflatten(-1, (classes, classes))
                share = 0.99 * post.softmax(-1) + 0.01 / classes
                hard = F.one_hot((share.log() + noise[:, t]).argmax(-1), classes).to(share.dtype)
                z = (hard + share - share.detach()).flatten(1)
                kl = lambda p, q: (p.exp() * (p - q)).sum((-1, -2)).clamp(min=1).mean()  # noqa: E731
                loss = loss + F.mse_loss(self.head(torch.cat([h, z], -1)), seen[:, t]) + 0.5 * kl(share.log().detach(), prior) + 0.1 * kl(share.log(), prior.detach())
            return loss / length
    gumbel = -torch.empty(batch, length, classes, classes).exponential_().log()
    return World(), torch.randn(batch, length, 256), torch.randn(batch, length, 6), gumbel


@program(train=True)
def half_scaled_train(pick):
    """A hand-written transformer in float16 with a scaled loss, fused heads, dropout of paths by a given draw."""
    batch, length, width, heads = pick(16, 2), pick(512, 32), pick(768, 64), pick(12, 2)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.qkv, self.o = nn.LayerNorm(width), nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x, keep, bias):
            q, k, v = self.qkv(self.a(x)).chunk(3, -1)
            q, k, v = (t.view(batch, length, heads, -1).transpose(1, 2) for t in (q, k, v))
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)) + bias
            x = x + keep * self.o((scores.float().softmax(-1).type_as(v) @ v).transpose(1, 2).reshape(batch, length, width))
            return x + keep * self.mlp(self.b(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks, self.slopes = nn.ModuleList(Block() for _ in range(4)), nn.Parameter(torch.rand(heads))

        def forward(self, x, keep):
            place = torch.arange(length, device=x.device)
            bias = -(place[:, None] - place).abs() * self.slopes[:, None, None]
            with torch.autocast(x.device.type, torch.float16 if x.is_cuda else torch.bfloat16):
                for i, block in enumerate(self.blocks):
                    x = block(x, keep[i], bias)
            return x.float().square().mean() * 1024
    return Net(), torch.randn(batch, length, width), (torch.rand(4, batch, 1, 1) < 0.9).float() / 0.9


@program(train=True)
def shifted_windows_train(pick):
    """Windows with cosine attention, biases by a network of logarithmic places, cyclic shifts, merged patches."""
    batch, side, width, heads, w = pick(32, 2), pick(56, 16), pick(128, 32), pick(4, 2), pick(7, 4)

    class Block(nn.Module):
        def __init__(self, shift):
            super().__init__()
            self.shift, self.qkv, self.o, self.a, self.b = shift, nn.Linear(width, 3 * width), nn.Linear(width, width), nn.LayerNorm(width), nn.LayerNorm(width)
            self.places, self.scale = layers(2, 512, heads), nn.Parameter(torch.full((heads, 1, 1), math.log(10)))
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            at = torch.stack(torch.meshgrid(torch.arange(w), torch.arange(w), indexing="ij")).flatten(1)
            apart = (at[:, :, None] - at[:, None]).permute(1, 2, 0).float()
            self.register_buffer("apart", apart.sign() * (1 + apart.abs()).log2() / 3)
            region = torch.zeros(side, side)
            for i, rows in enumerate((slice(0, -w), slice(-w, -shift or None), slice(-shift, None) if shift else slice(0, 0))):
                for j, columns in enumerate((slice(0, -w), slice(-w, -shift or None), slice(-shift, None) if shift else slice(0, 0))):
                    region[rows, columns] = 3 * i + j
            region = region.view(side // w, w, side // w, w).transpose(1, 2).reshape(-1, w * w)
            self.register_buffer("mask", torch.where(region[:, :, None] == region[:, None], 0.0, -100.0)[:, None])

        def forward(self, x):
            h = torch.roll(x, (-self.shift, -self.shift), (1, 2)).view(batch, side // w, w, side // w, w, width).transpose(2, 3).reshape(-1, w * w, width)
            q, k, v = self.qkv(h).view(-1, w * w, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT * self.scale.clamp(max=math.log(100)).exp()
            scores = scores + 16 * self.places(self.apart).permute(2, 0, 1).sigmoid()
            if self.shift:
                scores = (scores.view(batch, -1, heads, w * w, w * w) + self.mask).flatten(0, 1)
            h = self.o((scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2).flatten(2))
            h = torch.roll(h.view(batch, side // w, side // w, w, w, width).transpose(2, 3).reshape(x.shape), (self.shift, self.shift), (1, 2))
            x = x + self.a(h)
            return x + self.b(self.mlp(x))
    return Mixed(nn.Sequential(Block(0), Block(w // 2), Block(0), Block(w // 2))), torch.randn(batch, side, side, width)


if __name__ == "__main__":
    main(__file__, PROGRAMS, __doc__)

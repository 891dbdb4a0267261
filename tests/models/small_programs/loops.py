"""Loops, generators and iterators, with and without breaks inside, as training and decoding loops have them."""

import torch
import torch.nn.functional as F
from torch import nn

from . import script


def rows(*s):
    return torch.randn(*(s or (4, 5)))


@script
def for_over_existing_iterator(compile):
    @compile
    def f(it, x):
        for v in it:
            x = x * v + 1
        return x

    return (
        f(iter([1, 2, 3]), rows()),
        f(iter(range(4)), rows()),
        f((i for i in [1, 2]), rows()),
        f(iter({1: 2}.items().__iter__().__next__()), rows()),
    )


@script
def for_with_break_inside(compile):
    net = nn.Linear(5, 5)

    @compile
    def f(x, n):
        tot = 0.0
        for i in range(n):
            x = net(x).relu()
            tot += x.sum().item()
            x = x * 2 - 1
        return x, tot

    return f(rows(), 3), f(rows(), 12)


@script
def loop_zip_enumerate_break(compile):
    @compile
    def f(xs, d):
        out = []
        for i, (a, (k, v)) in enumerate(zip(xs, d.items())):
            y = a * v
            if y.sum().item() > 0:
                y = y + i
            else:
                y = y - i
            out.append((k, y.relu() * 2))
        return out

    return f([rows() for _ in range(5)], {c: i for i, c in enumerate("abcde")})


@script
def training_style_loop(compile):
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    data = [(rows(), rows(4, 1)) for _ in range(6)]

    @compile
    def epoch(data):
        losses = []
        for step, (x, y) in enumerate(data):
            opt.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            opt.step()
            losses.append(loss.item())
            if step % 2 == 0:
                print(f"step {step} {loss.item():.3f}")
        return losses

    return epoch(data), epoch(data), list(net.parameters())


@script
def dataloader_loop(compile):
    from torch.utils.data import DataLoader, TensorDataset

    ds = TensorDataset(rows(10, 5), rows(10, 1))
    dl = DataLoader(ds, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(1))
    net = nn.Linear(5, 1)
    opt = torch.optim.AdamW(net.parameters())

    @compile
    def train():
        for x, y in dl:
            loss = F.mse_loss(net(x), y)
            loss.backward()
            opt.step()
            opt.zero_grad()
        return loss.detach()

    return train(), train(), list(net.parameters())


@script
def while_generation(compile):
    emb = nn.Embedding(11, 6)
    head = nn.Linear(6, 11)

    @compile
    def gen(ids, n):
        with torch.no_grad():
            while ids.shape[1] < n:
                logits = head(emb(ids).mean(1))
                nxt = logits.argmax(-1, keepdim=True)
                ids = torch.cat([ids, nxt], 1)
                if (nxt == 0).all():
                    break
        return ids

    return gen(torch.tensor([[1, 2]]), 8), gen(torch.tensor([[3, 4], [5, 6]]), 6)


@script
def beam_search(compile):
    W = rows(11, 11)

    @compile
    def beam(start, k, steps):
        beams = [([start], 0.0)]
        for _ in range(steps):
            cand = []
            for seq, score in beams:
                lp = torch.log_softmax(W[seq[-1]], 0)
                vals, idx = lp.topk(k)
                for v, i in zip(vals.tolist(), idx.tolist()):
                    cand.append((seq + [i], score + v))
            beams = sorted(cand, key=lambda b: -b[1])[:k]
        return [(s, round(v, 3)) for s, v in beams]

    return beam(1, 2, 3)


@script
def generators_full(compile):
    @compile
    def f(x):
        log = []

        def g():
            total = 0
            try:
                while True:
                    try:
                        v = yield total
                    except ValueError as e:
                        log.append(str(e))
                        v = 10
                    total = total + v
            finally:
                log.append("closed")

        c = g()
        next(c)
        a = c.send(x)
        b = c.throw(ValueError("bad"))
        c.close()

        def h():
            r = yield from inner()
            yield r

        def inner():
            yield 1
            return 5

        return a, b, log, list(h())

    return f(rows())


@script
def mutation_while_iterating(compile):
    @compile
    def f(x, d, l):
        out = []
        try:
            for k in d:
                d[k + 1] = 0
        except RuntimeError as e:
            out.append(str(e))
        for v in l:
            if v < 5:
                l.append(v + 2)
        return x + len(l), out, l, d

    return f(rows(), {1: 1}, [1, 2])


@script
def recursion_deep(compile):
    @compile
    def f(x, n):
        return x if n == 0 else f(x + 1, n - 1)

    def fact(n):
        return 1 if n < 2 else n * fact(n - 1)

    @compile
    def g(x):
        return x * fact(20)

    def deep(x, n):
        return x if n == 0 else deep(x + 1, n - 1)

    h = compile(deep)
    return f(rows(), 5), g(rows()), h(rows(), 150)

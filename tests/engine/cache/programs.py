"""Run as a script: one of these programs, compiled, in a process of its own; prints what it gave and what the cache did, as JSON."""

import hashlib
import json
import sys


def mlp():
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 4)).eval()
    return model, [(torch.randn(8, 16),)]


def softmax_and_sums():
    import torch
    torch.manual_seed(1)

    def f(x, y):
        return torch.softmax(x * 2 + y, -1), (x - y).abs().sum(0), x.cumsum(1).max()
    return f, [(torch.randn(33, 17), torch.randn(33, 17))]


def long_reduction():
    """In phases, with working memory: its code asks for sizes at run time."""
    import torch
    torch.manual_seed(2)
    return (lambda x: (x * x).sum() + x.mean()), [(torch.randn(1 << 20),)]


def sizes_that_change():
    import torch
    torch.manual_seed(3)

    def f(x):
        return torch.softmax(x + 1, -1).sum(0) * x.shape[0]
    return f, [(torch.randn(n, 24),) for n in (5, 7, 11, 64, 3)]


def written_inputs():
    import torch
    torch.manual_seed(4)

    def f(cache, new):
        cache[:, 2:4] = new * 3
        return cache.sum(1)
    return f, [(torch.zeros(6, 9), torch.randn(6, 2))]


def captured_constant():
    """The constant's contents are no part of the key: each process reads its own."""
    import os

    import torch
    scale = torch.arange(8.0) + float(os.environ.get("PROGRAM_SCALE", "1"))
    return (lambda x: torch.relu(x) * scale + 1), [(torch.ones(4, 8),)]


def checked_index():
    import torch
    torch.manual_seed(5)
    return (lambda x, i: x[i] * 2 + x[i].sum()), [(torch.randn(10, 6), torch.tensor([1, 9, 0]))]


def training():
    import torch
    torch.manual_seed(6)
    model = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.Tanh(), torch.nn.BatchNorm1d(32), torch.nn.Linear(32, 3))

    def step(x, y):
        model.zero_grad()
        loss = torch.nn.functional.cross_entropy(run(x), y)
        loss.backward()
        return (loss, *[p.grad for p in model.parameters()], *model.buffers())
    run = compiled(model)
    step.is_compiled = True
    return step, [(torch.randn(16, 12), torch.randint(0, 3, (16,)))] * 3


PROGRAMS = [mlp, softmax_and_sums, long_reduction, sizes_that_change, written_inputs, captured_constant, checked_index, training]
compiled = None


def tensors(value):
    import torch
    if isinstance(value, torch.Tensor):
        return [value.detach()]
    return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []


def run(name, engine="fusebox"):
    """Lists of the results of each call."""
    global compiled
    import torch
    if engine == "fusebox":
        import fusebox
        compiled = fusebox.compile
    else:
        compiled = lambda f: f  # noqa: E731
    f, calls = globals()[name]()
    if not getattr(f, "is_compiled", False):
        f = compiled(f)
    found = []
    for arguments in calls:
        copies = [a.clone() for a in arguments]
        with torch.set_grad_enabled(getattr(f, "is_compiled", False)):
            found.append([t.clone() for t in tensors(f(*copies))] + copies)
    return found


def digest(results):
    import torch
    whole = hashlib.sha256()
    for call in results:
        for t in call:
            whole.update(str((t.shape, t.dtype)).encode() + t.reshape(-1).view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()


def main():
    import torch

    import fusebox
    answer = {}
    for name in sys.argv[1:]:
        before = dict(fusebox.counters())
        found = run(name)
        fusebox._engine.drain()
        worst = 0.0
        for mine, theirs in zip(found, run(name, "eager"), strict=True):
            for a, b in zip(mine, theirs, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
                worst = max(worst, float((a.double() - b.double()).abs().max()) if a.numel() else 0.0)
        counters = fusebox.counters()
        answer[name] = {"digest": digest(found), "worst": worst, **{k: counters[k] - before[k] for k in counters if k.startswith(("cache_", "compiled"))}}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()

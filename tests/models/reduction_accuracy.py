"""Reductions over many elements on the CPU, judged by float64: the compiled result is as near as eager's, at any length and along any axis."""

import itertools
import sys

import torch
import torch.nn.functional as F

import fusebox

# Errors below this many units of the last place are nothing to compare.
FREE = 8
SHAPES = [(16384, 1100), (3, 700000), (1, 3000001), (300, 9, 700), (100003, 3)]


def data(kind, shape):
    torch.manual_seed(0)
    if kind == "constant":
        return torch.full(shape, 0.1)
    if kind == "positive":
        return torch.rand(shape)
    return torch.randn(shape) + (10_000 if kind == "very far" else 100)


def functions(rank):
    dims = [(0,), (rank - 1,), tuple(range(rank))] + ([(0, 2)] if rank == 3 else [])
    for dim in dims:
        for name in ("sum", "mean", "var", "std", "norm", "logsumexp", "softmax"):
            if name == "softmax":
                if len(dim) == 1:
                    yield f"softmax {dim}", lambda x, d=dim: torch.softmax(x, d[0])
            elif name == "norm":
                yield f"norm {dim}", lambda x, d=dim: torch.linalg.vector_norm(x, dim=d)
            else:
                yield f"{name} {dim}", lambda x, d=dim, f=getattr(torch, name): f(x, dim=d)


def error_of(result, exact):
    """Largest relative error in units of float32's last place."""
    r, e = result.double(), exact.double()
    return ((r - e).abs() / e.abs().clamp_min(1e-30)).max().item() / torch.finfo(torch.float32).eps


def norm_gradients(f, shape):
    """Gradients of a normalisation's weight and bias: sums over rows."""
    x, w, b = torch.randn(shape), torch.rand(shape[1]) + 1, torch.randn(shape[1])

    def gradients(call, dtype):
        leaves = [t.to(dtype).requires_grad_() for t in (x, w, b)]
        y = call(*leaves)
        return torch.autograd.grad(y, leaves, torch.full_like(y, 0.1))[1:]

    fusebox.reset()
    return gradients(fusebox.compile(f), torch.float32), gradients(f, torch.float32), gradients(f, torch.float64)


def normalisations():
    """Of few elements: by how much an error is larger than eager's, over all elements and several draws."""
    layouts = {"rows": lambda t: t.contiguous(), "channels last": lambda t: t.contiguous(memory_format=torch.channels_last)}
    functions = {"instance_norm": F.instance_norm, "batch_norm": lambda x: F.batch_norm(x, None, None, None, None, True)}
    for (name, f), (layout, laid), size in itertools.product(functions.items(), layouts.items(), (8, 32)):
        fusebox.reset()
        compiled, logarithms = fusebox.compile(f), torch.zeros(2, dtype=torch.float64)
        for seed in range(8):
            torch.manual_seed(seed)
            x, g = laid(torch.randn(4, 32, size, size) * 0.3 + 0.1), torch.randn(4, 32, size, size)

            def results(call, dtype):
                leaf = laid(x.to(dtype)).detach().requires_grad_()
                y = call(leaf)
                return [t.double() for t in (y.detach(), *torch.autograd.grad(y, leaf, g.to(dtype)))]

            exact, ours, eagers = results(f, torch.float64), results(compiled, torch.float32), results(f, torch.float32)
            logarithms += torch.stack([((o - t).norm() / (e - t).norm()).log() for t, o, e in zip(exact, ours, eagers)])
        yield f"{name} of {layout} {size}", (logarithms / 8).exp().tolist()


def main():
    problems, count = [], 0
    for name, ratios in normalisations():
        count += 2
        if max(ratios) > 1.75:
            problems.append(f"{name}: {ratios[0]:.2f} times eager's error, its gradient {ratios[1]:.2f} times")
    for shape in SHAPES:
        for kind in ("constant", "positive", "far", "very far"):
            x = data(kind, shape)
            for name, f in functions(len(shape)):
                if name[:3] in ("var", "std") and kind == "constant":
                    continue  # there is nothing that an error could be relative to
                fusebox.reset()
                exact = f(x.double())
                ours, eagers = error_of(fusebox.compile(f)(x), exact), error_of(f(x), exact)
                count += 1
                if ours > max(FREE, 2 * eagers):
                    problems.append(f"{name} of {kind} {shape}: {ours:.1f} units, eager {eagers:.1f}")
    for name, f in {"layer_norm": lambda x, w, b: F.layer_norm(x, x.shape[1:], w, b),
                    "group_norm": lambda x, w, b: F.group_norm(x, 4, w, b),
                    "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True)}.items():
        for part, (got, want, exact) in enumerate(zip(*norm_gradients(f, (60000, 64)))):
            scale = exact.abs().max()
            ours, eagers = [((t.double() - exact).abs().max() / scale).item() / torch.finfo(torch.float32).eps for t in (got, want)]
            count += 1
            if ours > max(FREE, 2 * eagers):
                problems.append(f"{name} gradient {part}: {ours:.1f} units, eager {eagers:.1f}")
    print(*problems, sep="\n")
    print(f"{count} reductions compared, {len(problems)} less exact than eager")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()

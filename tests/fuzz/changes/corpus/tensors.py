"""Tensors: layouts, views, aliases, gradients, writes, random numbers."""

import random

import torch
import torch.nn.functional as F


def world_pointwise():
    def f(x, y):
        z = x * 2 + y
        return z, z.relu(), (x > 0).sum(), x.dtype, x.shape, x.stride(), x.is_contiguous(), x.requires_grad
    return f, (torch.randn(3, 4), torch.randn(3, 4))


def world_writes():
    def f(x, y):
        x.add_(1)
        y[0] = x[0]
        y.mul_(2)
        return x * y, x is y
    return f, (torch.ones(3, 2), torch.zeros(3, 2))


def world_views():
    def f(x):
        return x, x.view(-1) if x.is_contiguous() else x.reshape(-1), x[0], x.t() if x.dim() == 2 else x, x.detach(), x[..., None], x + 0
    return f, (torch.randn(2, 3),)


def world_views_written():
    def f(x):
        v = x[1:]
        v.zero_()
        w = x.view(-1)
        w[0] = 5
        return v, w, x.sum()
    return f, (torch.ones(3, 2),)


def world_offsets():
    def f(x):
        return x.as_strided((2,), (1,), 1) * 2, x.storage_offset(), x * 0 + x.storage_offset(), x.as_strided((2,), (1,))
    return f, (torch.arange(10.0)[2:7],)


def world_facts():
    def f(x):
        return (x + 1, x._is_view(), x.is_leaf, x.grad is None, x.ndim, x.numel(), x.element_size(), x.is_floating_point(), x.device,
                x.layout, x._base is None,
                x.retains_grad, x.is_conj(), type(x).__name__, isinstance(x, torch.nn.Parameter), hasattr(x, "tag"),
                getattr(x, "tag", None), x.output_nr)
    return f, (torch.ones(2, 2),)


def world_gradients():
    w = torch.ones(3, requires_grad=True)

    def f(x):
        y = (x * w).sum()
        return y + (w.grad.sum() if w.grad is not None else 0), w.requires_grad
    return f, (torch.arange(3.0),)


def world_modes():
    def f(x):
        with torch.no_grad():
            a = x * 2
        with torch.enable_grad():
            b = x * 3
        return a, b, torch.is_grad_enabled(), torch.get_default_dtype(), torch.zeros(2).dtype, torch.tensor(1.5).dtype, torch.is_inference_mode_enabled()
    return f, (torch.ones(2, requires_grad=True),)


def world_process():
    b = torch.backends

    def f(x):
        return (x @ x, torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), torch.is_autocast_enabled("cpu"),
                b.cudnn.allow_tf32,
                b.cuda.matmul.allow_tf32, torch.get_float32_matmul_precision(), torch.is_anomaly_enabled(), torch.is_warn_always_enabled(),
                b.mkldnn.enabled,
                b.cuda.flash_sdp_enabled(), torch.initial_seed(), b.cudnn.benchmark, b.cuda.matmul.allow_bf16_reduced_precision_reduction)
    return f, (torch.eye(3),)


def world_random():
    def f(x, p):
        a = torch.rand_like(x)
        b = F.dropout(x, p)
        c = torch.randn(2)
        return a + b, c, torch.randperm(4), x.clone().uniform_(), random.random(), torch.bernoulli(x.sigmoid())
    return f, (torch.ones(4), 0.5)


def world_reductions():
    def f(x, dim, keepdim):
        return x.sum(dim), x.mean(dim, keepdim=keepdim), x.amax(dim), x.softmax(dim), x.argmax(dim), x.std(dim)
    return f, (torch.randn(3, 4), 1, False)


def world_indexing():
    def f(x, i, n, s):
        return x[i], x[:n], x[n], x[..., -1], x[s], x.narrow(0, 0, n), x.index_select(0, torch.tensor([n, 0]))
    return f, (torch.randn(4, 3), torch.tensor([2, 0]), 1, slice(0, 2))


def world_shapes():
    def f(x, k):
        b = x.shape[0]
        y = x.reshape(b, -1)
        return y.repeat(1, k), torch.zeros(b, k), x.new_ones(k), y if b > 2 else -y, x.expand(2, *x.shape), list(x.shape), x.numel() // max(b, 1)
    return f, (torch.randn(3, 2, 2), 2)


def world_data_dependent():
    def f(x, limit):
        total = x.sum().item()
        if total > limit:
            x = x / total
        while x.abs().max() > 2:
            x = x / 2
        return x, total > limit, x.tolist()
    return f, (torch.arange(3.0), 1.0)


def world_scalars():
    def f(x, a, b, c):
        y = x * a + b
        return y if c else -y, a == 1, type(a).__name__, isinstance(b, int), -b, a + b, [a] * 2, str(a), c is True
    return f, (torch.ones(2), 2, 1.5, True)


def world_pytrees():
    def f(batch, state=None):
        x = batch["x"] * batch["scale"]
        state = {} if state is None else state
        state["h"] = x.mean()
        batch["seen"] = True
        return {"y": x, "same": batch["x"], "state": state, "shape": tuple(x.shape)}
    return f, ({"x": torch.ones(2, 2), "scale": 2.0, "mask": None},), {"state": {"h": torch.zeros(()), "n": 1}}


def world_attributes_written():
    class Holder:
        pass
    h = Holder()
    h.cache, h.n = torch.zeros(2), 0

    def f(x):
        h.cache = h.cache + x
        h.n += 1
        h.last = x
        x.tag = h.n
        return h.cache, h.n
    return f, (torch.ones(2),)


def world_deterministic_operators():
    def f(x, i):
        out = torch.zeros(3).index_add(0, i, x)
        return out, x.cumsum(0), torch.zeros(3).scatter_add(0, i, x), x.sort().values
    return f, (torch.arange(4.0), torch.tensor([0, 1, 2, 0]))


def world_several_gradients():
    def f(a, b):
        c = a * b
        return c, c.detach() * 2, (c * c).sum(), a
    return f, (torch.randn(2, requires_grad=True), torch.randn(2, requires_grad=True))

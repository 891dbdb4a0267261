"""What a program can see of a tensor besides its values."""

import torch
from torch.utils.checkpoint import checkpoint

from . import edge, raised


@edge
def storage_offset_is_seen(compile, engine):
    base = torch.arange(10.0)
    f, g = compile(lambda x: torch.as_strided(x, (2,), (1,), 1) * 2), compile(lambda x: x * 0 + x.storage_offset())
    h = compile(lambda x: x.as_strided((4,), (1,), 0) + 1)
    return ([f(base[a:b]) for a, b in ((0, 4), (4, 8), (2, 6))], [g(base[a:b]) for a, b in ((0, 2), (4, 6))],
            [h(base[a:b]) for a, b in ((0, 4), (2, 6))])


@edge
def as_strided_does_not_leave_the_storage(compile, engine):
    big = torch.arange(1000.0)
    f, g = compile(lambda x: torch.as_strided(x, (2,), (1,), 1) * 2), compile(lambda x: x.as_strided((8,), (1,), 0) + 1)
    out = [f(big[600:604]), f(torch.arange(4.0)), f(big[0:4])]
    return out + [g(big[:4]), raised(g, torch.arange(4.0))[0]]


@edge
def views_of_inputs_say_so(compile, engine):
    view, leaf = torch.arange(4.0)[1:3], torch.ones(2, requires_grad=True)
    parts, kept, hooked = torch.stack([leaf, leaf]).unbind(0), leaf * 2, leaf * 2
    kept.retain_grad()
    hooked.register_hook(lambda g: g)
    fs = [(lambda x: x._is_view(), view), (lambda x: x._base is not None, view), (lambda x: x.output_nr, parts[1]),
          (lambda x: x.retains_grad, kept),
          (lambda x: bool(x._backward_hooks), hooked), (lambda x: x.grad_fn is not None, hooked), (lambda x: x.is_leaf, hooked),
          (lambda x: x.grad is None, leaf), (lambda x: x._version, leaf), (lambda x: x.is_inference(), view),
          (lambda x: x.is_pinned(), view)]
    out = []
    for f, t in fs:
        c = compile(f)
        out += [c(t), c(torch.ones(2)), c(t)]
    return out


@edge
def attributes_put_on_tensors(compile, engine):
    t = torch.ones(2)
    t.scale = 2.0
    f, g = compile(lambda x: x * x.scale), compile(lambda x: hasattr(x, "other"))
    out = [f(t), g(t)]
    t.scale, t.other = 3.0, 1
    return out + [f(t), g(t), g(torch.ones(2))]


@edge
def same_tensor_and_overlapping_tensors(compile, engine):
    def f(a, b):
        a.add_(1)
        return a * b, a is b

    def g(a, b):
        a.mul_(2)
        b.add_(a)
        return a + b

    c, d, base = compile(f), compile(g), torch.ones(6)
    x = torch.ones(3)
    out = [c(torch.ones(3), x), c(x, x), c(x, x.view(3)), c(base[:3], base[3:]), raised(c, base[:3], base[1:4]), c(torch.ones(3), x)]
    return out, [raised(d, base[:4], base[2:]), d(torch.ones(4), torch.ones(4)), raised(d, base[:4], base[:4])], base


@edge
def results_that_are_inputs_or_views(compile, engine):
    def f(x):
        return x, x.view(-1), x[0], x.detach(), x.t().t(), x + 0

    c = compile(f)
    out = []
    for x in (torch.ones(2, 2), torch.ones(3, 3), torch.ones(2, 2)):
        r = c(x)
        out.append([r[0] is x] + [v.data_ptr() == x.data_ptr() for v in r] + [v._base is x for v in r])
    return out


@edge
def gradients_appear_and_vanish(compile, engine):
    w = torch.ones(2, requires_grad=True)
    f = compile(lambda x: x + w.grad if w.grad is not None else x)
    out, x = [f(torch.ones(2))], torch.ones(2)
    w.sum().backward()
    out.append(f(x))
    w.grad.mul_(3)
    out.append(f(x))
    w.grad = None
    return out + [f(x)]


@edge
def data_and_requires_grad_are_replaced(compile, engine):
    w = torch.nn.Parameter(torch.ones(2))
    f, x = compile(lambda x: (x * w).sum()), torch.ones(2)
    out = [f(x), f(x).requires_grad]
    w.data = torch.full((2,), 3.0)
    out.append(f(x))
    w.data = torch.full((2,), 4.0, dtype=torch.float64)
    out.append(f(x))
    w.requires_grad_(False)
    return out + [f(x), f(x).requires_grad]


@edge
def other_tensors_than_dense_ones(compile, engine):
    f, dense = compile(lambda x: x * 2), torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    out = [f(dense)]
    for x in (dense.to_sparse(), dense.to_sparse_csr(), torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
              dense.to(torch.complex64).conj(),
              torch.ones(2, 2, names=("a", "b")), dense.to("meta"), dense.to_mkldnn(),
              torch.nested.nested_tensor([torch.ones(1)], layout=torch.jagged)):
        y = f(x)
        out.append((type(y).__name__, str(y.layout), y.device.type, y.is_conj(), y.is_nested))
    return out + [f(dense)]


@edge
def checkpoint_recomputes(compile, engine):
    linear, runs = torch.nn.Linear(2, 2), []

    class Counted(torch.nn.Module):
        def forward(self, x):
            runs.append(1)
            return x.sin().sin()

    counted, x = Counted(), torch.ones(1, 2)
    f = compile(lambda x: checkpoint(linear, x, use_reentrant=True))
    out = [f(x).requires_grad]
    g = compile(lambda x: checkpoint(counted, x, use_reentrant=False).sum())
    x.requires_grad_()
    g(x).backward()
    return out, len(runs)

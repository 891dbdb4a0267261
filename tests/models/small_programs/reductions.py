"""Reductions that meet in one kernel, over axes of every extent, and values at the ends of their range."""

import torch
import torch.nn.functional as F
from . import script


def flat(*results):
    return tuple(part for r in results for part in (r if isinstance(r, tuple) else (r,)))


@script
def over_a_row_and_over_an_extent_of_one(compile):
    rows, planes = torch.randn(1, 1009), torch.randn(5, 300, 1)
    return (
        compile(lambda x: (x.argmax(-1), x.argmin(0)))(rows),
        compile(lambda x: flat(*x.max(1), *x.max(0)))(rows),
        compile(lambda x: flat(x.var(1), x.var(0, unbiased=False), x.std(0, unbiased=False)))(rows),
        compile(lambda x: (x.sum(1), x.argmin(0), x.prod(0), x.logsumexp(0)))(rows),
        compile(lambda x: flat(*x.max(1), *x.min(2)))(planes),
        compile(lambda x: (x.sum(0), x.argmax(1)))(torch.randn(2000, 1)),
        compile(lambda x: (torch.softmax(x, -1), x.argmin(0) + 1, x.cumsum(0)))(rows),
    )


@script
def of_products_of_broadcast_tensors(compile):
    """What a matrix product computes: several summed and several common dimensions, in any order, with gradients, in each precision."""
    def rows(a, b):
        return (a[:, :, None, :] * b[:, None, :, :]).sum(-1)

    def middle(m, x):
        return (m[..., None] * x[:, :, None]).sum(dim=3)

    def ends(a, b):
        return (b[:, None] * a[:, :, None].expand(-1, -1, b.shape[1], -1)).sum((0, 3), keepdim=True)

    a, b = torch.randn(2, 128, 200), torch.randn(2, 130, 200)
    m, x = torch.randn(2, 3, 64, 96, 4), torch.randn(2, 3, 96, 4, 64)
    results = []
    for precision in ("highest", "medium"):
        torch.set_float32_matmul_precision(precision)
        for f, operands in ((rows, (a, b)), (middle, (m, x)), (ends, (a, b)), (rows, (a.double(), b.double())), (rows, (a.bfloat16(), b.bfloat16()))):
            operands = [t.clone().requires_grad_() for t in operands]
            result = compile(f)(*operands)
            result.square().mean().backward()
            results += [result.detach() / 16, *(t.grad for t in operands)]
    torch.set_float32_matmul_precision("highest")
    numbers = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)  # without dimensions there is nothing to multiply
    compile(lambda a, b: (a * b).sum(0) + F.cosine_similarity(a, b, dim=0))(*numbers).backward()
    return (*results, *(n.grad for n in numbers))


@script
def sigmoids_of_very_negative_values(compile):
    x = torch.tensor([-50.0, -89.0, -100.0, -1e4, -1e30, -1e38, torch.finfo(torch.float32).min, -float("inf"), float("nan")])
    x = x.repeat(4)  # vectors and a tail
    results = []
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        f = compile(lambda x: (torch.sigmoid(x), F.silu(x), F.glu(torch.cat([x, x]))))
        results += f(x.to(dtype))
    masked = compile(lambda x: F.silu(x.masked_fill(x < -50, torch.finfo(x.dtype).min)))
    a = x.clone().requires_grad_()
    masked(a).nan_to_num().sum().backward()
    return results, a.grad, masked(x)


@script
def a_softmax_beside_a_copy_that_is_broadcast(compile):
    """Two axes of one extent in one kernel stay two."""
    x = torch.randn(16, 1)[1::3]
    a = compile(lambda x: (x.swapdims(0, 1).contiguous(), x.swapdims(0, 1).contiguous() * x.softmax(0)))
    b = compile(lambda x: ((x + 1).t().contiguous(), (x + 1).t().contiguous() - x.log_softmax(0), x.sum(0)))
    return a(x), b(x), a(torch.randn(7, 1).t().t()), b(torch.randn(9, 2)[:, :1])


@script
def variances_far_from_zero(compile):
    f = compile(lambda x: flat(x.var(-1), x.std(0), torch.var_mean(x), torch.std_mean(x, 0, correction=0)))
    return [f(torch.randn(40, 70) + mean) for mean in (1e2, 1e4, -3e5)], f((torch.randn(33, 5) + 200).bfloat16())


@script
def extremes_of_16_bit_floats_find_their_elements_again(compile):
    @compile
    def f(x):
        y = torch.special.xlog1py(x.abs(), x.abs())
        return torch.linalg.vector_norm(y, float("inf")) + (y * 1.1).amax()

    x = (torch.randint(-8, 9, (33,)) / 4).to(torch.bfloat16).requires_grad_()
    f(x).backward()
    return x.grad

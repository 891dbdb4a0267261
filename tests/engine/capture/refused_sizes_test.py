"""Sizes that change to what eager refuses: code that was compiled for sizes that fit must raise too, not read beyond a tensor's end.

Each program is compiled at sizes that eager takes, with symbols for them; what stays beside them (parameters, literals) has constant sizes.
"""

import torch
import torch.nn.functional as F

import fusebox
from checks.script_checks import expect, run


def parameter(*sizes):
    return torch.nn.Parameter(torch.randn(sizes), requires_grad=False)


W8, W88, B3 = parameter(8), parameter(8, 8), parameter(1, 3, 8)
ROWS = parameter(6, 8).detach().sort(-1).values
OTHERS = torch.nn.Parameter(ROWS)

# name: (program, arguments of the first call, of calls that eager takes, of calls that it refuses); tensors by their sizes
PROGRAMS = {
    "layer_norm": (lambda x: F.layer_norm(x, x.shape[-1:], W8), [(4, 8)], [[(5, 8)]], [[(4, 9)], [(4, 6)]]),
    "group_norm": (lambda x: F.group_norm(x, 2, W8, W8), [(4, 8, 3)], [[(5, 8, 4)]], [[(4, 10, 3)], [(4, 6, 3)]]),
    "native_group_norm": (lambda x: torch.native_group_norm(x, W8, W8, x.shape[0], x.shape[1], x.shape[2], 2, 1e-5)[0],
                          [(4, 8, 3)], [[(5, 8, 4)]], [[(4, 10, 3)], [(4, 9, 3)]]),
    "nll_loss": (lambda x: F.nll_loss(x, torch.zeros(x.shape[0], dtype=torch.long), W8), [(4, 8)], [[(5, 8)]], [[(4, 9)], [(4, 6)]]),
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.zeros(x.shape[0], dtype=torch.long), W8), [(4, 8)], [[(5, 8)]], [[(4, 9)], [(4, 6)]]),
    "nll_loss2d": (lambda x: F.nll_loss(x, torch.zeros(3, 5, 5, dtype=torch.long)), [(3, 8, 5, 5)], [[(3, 9, 5, 5)]],
                   [[(3, 8, 6, 5)], [(3, 8, 5, 4)], [(4, 8, 5, 5)]]),
    "binary_cross_entropy": (lambda x: F.binary_cross_entropy(x.sigmoid(), x.sigmoid(), W8.abs()), [(4, 8)], [[(5, 8)]], [[(4, 9)], [(4, 6)]]),
    "diagonal_scatter": (lambda x: torch.diagonal_scatter(x, torch.ones(4)), [(4, 9)], [[(4, 7)], [(6, 4)]], [[(6, 7)], [(3, 9)]]),
    "select_scatter": (lambda x: torch.select_scatter(x, torch.ones(4), 0, 1), [(6, 4)], [[(5, 4)]], [[(6, 5)], [(6, 3)]]),
    "slice_scatter": (lambda x: torch.slice_scatter(x, torch.ones(3, 4), 0, 0, 3), [(6, 4)], [[(5, 4)], [(3, 4)]], [[(2, 4)], [(6, 5)]]),
    "as_strided_scatter": (lambda x: torch.as_strided_scatter(x, torch.ones(3), (x.shape[0] - 3,), (1,)), [(6, 4)], [[(6, 5)]], [[(7, 4)], [(5, 4)]]),
    "masked_scatter": (lambda x: torch.masked_scatter(x, torch.ones(4, dtype=torch.bool), torch.ones(100)), [(6, 4)], [[(5, 4)]], [[(6, 5)], [(6, 3)]]),
    "put": (lambda x: x.put(torch.tensor([0, 1]), x[0, :2] * 0 if x.dim() > 1 else x), [(2,)], [], [[(3,)], [(4,)]]),
    "kthvalue": (lambda x: torch.kthvalue(x, 4)[0], [(5, 6)], [[(5, 8)]], [[(5, 3)]]),
    "multinomial": (lambda x: torch.multinomial(x.abs() + 1, 4).shape, [(5, 6)], [[(5, 8)]], [[(5, 3)]]),
    "reflection_pad": (lambda x: F.pad(x, (4, 4), mode="reflect"), [(3, 8)], [[(3, 6)]], [[(3, 4)], [(3, 3)]]),
    "fold": (lambda x: F.fold(x, (4, 5), (2, 2)), [(3, 8, 12)], [[(4, 8, 12)], [(4, 4, 12)]], [[(3, 8, 13)], [(3, 6, 12)]]),
    "addbmm": (lambda x: torch.addbmm(W88, x, x.mT), [(3, 8, 4)], [[(4, 8, 5)]], [[(3, 6, 4)], [(3, 9, 4)]]),
    "addr": (lambda x: torch.addr(W88, x, x), [(8,)], [], [[(6,)], [(9,)]]),
    "addmv": (lambda x: torch.addmv(W8, x, x[0]), [(8, 4)], [[(8, 5)]], [[(6, 4)], [(9, 4)]]),
    "conv1d": (lambda x, w: F.conv1d(x, w, W8), [(2, 3, 9), (8, 3, 3)], [[(3, 3, 7), (8, 3, 4)]], [[(2, 3, 9), (7, 3, 3)], [(2, 3, 9), (9, 3, 3)]]),
    "searchsorted": (lambda x: torch.searchsorted(OTHERS, x), [(6, 5)], [[(6, 4)]], [[(7, 5)], [(5, 5)]]),
    "attention": (lambda q: F.scaled_dot_product_attention(q, q, q, attn_mask=W88), [(2, 3, 8, 4)], [[(3, 2, 8, 4)]], [[(2, 3, 6, 4)], [(2, 3, 9, 4)]]),
    "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), [(2, 3, 5, 5), (2, 4, 4, 2)], [[(2, 3, 6, 5), (2, 3, 3, 2)]],
                    [[(2, 3, 5, 5), (2, 4, 4, 3)], [(3, 3, 5, 5), (2, 4, 4, 2)]]),
    "bernoulli": (lambda x: torch.bernoulli(x, p=0.5).bernoulli_(W8.sigmoid()).shape, [(4, 8)], [[(5, 8)]], [[(4, 9)], [(4, 6)]]),
}


def outcome(f, args):
    torch.manual_seed(0)
    try:
        return f(*args)
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error)


def check_program(name):
    f, first, accepted, refused = PROGRAMS[name]
    for sizes in refused:
        expect(isinstance(outcome(f, [torch.randn(s) for s in sizes]), type), f"{name}: eager takes {sizes}")
    for order in ([*accepted, *refused], [*refused, *accepted]):
        fusebox.reset()
        compiled = fusebox.compile(f, dynamic=True)
        for sizes in (first, *order):
            args = [torch.randn(s) for s in sizes]
            want, got = outcome(f, args), outcome(compiled, args)
            if isinstance(want, torch.Tensor):
                same = isinstance(got, torch.Tensor) and torch.allclose(got, want, rtol=1e-4, atol=1e-5)
            else:
                same = got == want
            expect(same, f"{name} {sizes}: {str(got)[:200]} instead of {str(want)[:200]}")


def test_what_eager_refuses():
    for name in PROGRAMS:
        check_program(name)


def test_data_of_a_stand_in():
    """C++ that reads the memory of a tensor whose sizes are symbols meets a break, not a null pointer."""
    fusebox.reset()
    compiled = fusebox.compile(lambda x, at: torch.tensor_split(x, at), dynamic=True)
    for n in (6, 9):
        x, at = torch.randn(n, 3), torch.tensor([1, 2, 4])
        expect(all(torch.equal(a, b) for a, b in zip(compiled(x, at), torch.tensor_split(x, at), strict=True)), "other parts")


def test_order_of_equal_strides():
    """New memory lies as eager's, where what decides is which of two sizes is larger."""
    for make in (lambda n: torch.randn(n + 2).unfold(0, 3, 1), lambda n: torch.randn(n + 2, 3).unfold(0, 3, 1).movedim(-1, 1)):
        for sizes in ((2, 3, 4), (4, 3, 2), (3, 2, 4)):
            fusebox.reset()
            compiled = fusebox.compile(lambda x: x * 0.5, dynamic=True)
            for n in sizes:
                x = make(n)
                expect(compiled(x).stride() == (x * 0.5).stride(), f"{tuple(x.shape)}, {x.stride()}: {compiled(x).stride()}")


if __name__ == "__main__":
    run(globals())

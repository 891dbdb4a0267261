"""Operators whose results' shapes the engine computes itself: sizes, strides and types are eager's in every layout of the operands, and what
eager refuses is refused in the same words."""
import itertools
import unittest

import torch
import torch.nn.functional as F

import fusebox

A = torch.ops.aten
CASES = {}


def layouts(x):
    """The same values, laid out as programs do."""
    yield x
    if not x.is_floating_point():
        return
    if x.dim() >= 2:
        yield x.mT.contiguous().mT
    if x.dim() == 4:
        yield x.contiguous(memory_format=torch.channels_last)
    if x.dim() == 5:
        yield x.contiguous(memory_format=torch.channels_last_3d)
    if x.dim() >= 1:
        yield torch.stack([x, x], -1)[..., 0]


def outcome(fn, inputs):
    try:
        made = fn(*inputs)
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {str(error).splitlines()[0]}", []
    made = made if isinstance(made, (tuple, list)) else [made]
    return [m is not None and (m.shape, m.stride(), m.dtype) for m in made], [m for m in made if m is not None]


def case(name, fn, *inputs, refused=False):
    assert name not in CASES
    CASES[name] = fn, inputs, refused


torch.manual_seed(0)
R = torch.randn

# What reduces, and what chooses elements
for fn in torch.median, torch.nanmedian:
    case(f"{fn.__name__}", fn, R(4, 5, 7))
    case(f"{fn.__name__} of integers", fn, torch.arange(12).view(3, 4))
    case(f"{fn.__name__} of a dimension", lambda x, fn=fn: fn(x, 1), R(4, 5, 7))
    case(f"{fn.__name__} of a dimension that is kept", lambda x, fn=fn: fn(x, -1, True), R(4, 5, 7))
    case(f"{fn.__name__} of a number", lambda x, fn=fn: fn(x, 0), R(()))
    case(f"{fn.__name__} of nothing", lambda x, fn=fn: fn(x, 0), R(0, 3), refused=True)
    case(f"{fn.__name__} of a dimension that is not there", lambda x, fn=fn: fn(x, 5), R(3, 4), refused=True)
case("kthvalue", lambda x: torch.kthvalue(x, 2, 1, True), R(4, 5, 7))
case("kthvalue of the last", lambda x: torch.kthvalue(x, 2), R(4, 5))
case("kthvalue beyond the end", lambda x: torch.kthvalue(x, 9), R(4, 5), refused=True)
case("count_nonzero", torch.count_nonzero, R(4, 5).relu())
case("count_nonzero of a dimension", lambda x: torch.count_nonzero(x, 1), R(4, 5, 6).relu())
case("count_nonzero of two", lambda x: torch.count_nonzero(x, (0, 2)), R(4, 5, 6).relu())
case("count_nonzero of none named", lambda x: torch.count_nonzero(x, ()), R(4, 5, 6).relu())
case("trace", torch.trace, R(4, 5))
case("trace of integers", torch.trace, torch.arange(12).view(3, 4))
case("trace of truths", torch.trace, R(4, 5) > 0, refused=True)
case("trace of no matrix", torch.trace, R(4, 5, 6), refused=True)
case("histc", lambda x: torch.histc(x, 7), R(40))
case("histc without bins", lambda x: torch.histc(x, 0), R(40), refused=True)
case("histc of no range", lambda x: torch.histc(x, 5, 2, 1), R(40), refused=True)
case("histc of integers", lambda x: torch.histc(x, 5), torch.arange(9), refused=True)
case("take", lambda x: torch.take(x, torch.tensor([[0, 3], [2, 1]])), R(4, 5))
case("take by int32", lambda x: torch.take(x, torch.tensor([0], dtype=torch.int32)), R(4, 5), refused=True)
case("take from nothing", lambda x: torch.take(x, torch.tensor([0])), R(0), refused=True)
case("searchsorted", lambda x: torch.searchsorted(torch.arange(-2.0, 2.0), x), R(4, 5))
case("searchsorted from the right", lambda x: torch.searchsorted(torch.arange(-2.0, 2.0), x, right=True, out_int32=True), R(4, 5))
case("searchsorted row by row", lambda x: torch.searchsorted(x.sort().values, x.flip(0)), R(4, 5))
case("searchsorted of other rows", lambda x: torch.searchsorted(x.sort().values, torch.zeros(3, 5)), R(4, 5), refused=True)
case("searchsorted of a number", lambda x: torch.searchsorted(x.sort().values, 0.3), R(9))
case("searchsorted of two sides", lambda x: torch.searchsorted(x, 0.3, side="left", right=True), R(9), refused=True)
case("searchsorted by an order", lambda x: torch.searchsorted(x, torch.zeros(3), sorter=x.sort().indices), R(9))
case("searchsorted by an order of other size", lambda x: torch.searchsorted(x, torch.zeros(3), sorter=torch.arange(4)), R(9), refused=True)
for shifts, dims in ((2, ()), (0, 1), (1, 1), (3, 1), (1, 2), ((1, 0), (1, 2)), ((1, 1), (2, 3))):
    case(f"roll by {shifts} along {dims}", eval(f"lambda x: x.roll({shifts}, {dims})"), R(2, 3, 5, 5))  # code that holds no symbol

# Matrices
case("addbmm", lambda x: torch.addbmm(torch.ones(5), x, x.mT), R(3, 5, 4))
case("addbmm of other sizes", lambda x: torch.addbmm(torch.ones(7), x, x.mT), R(3, 5, 4), refused=True)
case("addbmm of what does not fit", lambda x: torch.addbmm(torch.ones(5, 5), x, x), R(3, 5, 4), refused=True)
case("cdist", torch.cdist, R(3, 6, 4), R(3, 5, 4))
case("cdist by products", torch.cdist, R(40, 4), R(30, 4))
case("cdist of one for all", lambda x, y: torch.cdist(x, y, p=1.0), R(3, 6, 4), R(1, 5, 4))
case("cdist of other columns", torch.cdist, R(6, 4), R(3, 5), refused=True)
case("cdist of vectors", torch.cdist, R(6), R(6), refused=True)
case("cdist of no norm", lambda x: torch.cdist(x, x, p=-1.0), R(6, 3), refused=True)
case("gradient of cdist", lambda g, x, y: A._cdist_backward(g, x, y, 2.0, torch.cdist(x, y)), R(3, 4, 5), R(3, 4, 2), R(1, 5, 2))
for sizes in ((0, 4, 5), (3, 5)), ((3, 5), (0, 4, 5)), ((2, 3, 5), (0, 5)), ((3, 0), (2, 4, 0)):
    case(f"gradient of cdist of {sizes}", lambda x, y: A._cdist_backward(torch.ones_like(torch.cdist(x, y)), x, y, 1.0, torch.cdist(x, y)),
         R(sizes[0]), R(sizes[1]))
case("cholesky_inverse", lambda x: torch.cholesky_inverse(torch.linalg.cholesky(x @ x.mT + 4 * torch.eye(4))), R(3, 4, 4))
case("cholesky_inverse of no square", torch.cholesky_inverse, R(3, 4), refused=True)
case("solve_triangular", lambda x: torch.linalg.solve_triangular(x.triu() + 4 * torch.eye(4), torch.ones(4, 2), upper=True), R(3, 4, 4))
case("solve_triangular from the right",
     lambda x: torch.linalg.solve_triangular(x.triu() + 4 * torch.eye(4), torch.ones(2, 4), upper=True, left=False), R(4, 4))
case("solve_triangular of other rows", lambda x: torch.linalg.solve_triangular(x, torch.ones(3, 2), upper=True), R(4, 4), refused=True)
case("solve_triangular of a vector", lambda x: torch.linalg.solve_triangular(x, torch.ones(4), upper=True), R(4, 4), refused=True)
case("matrix_exp", torch.matrix_exp, R(3, 4, 4))
case("matrix_exp of no square", torch.matrix_exp, R(3, 4, 5), refused=True)
case("matrix_exp of integers", torch.matrix_exp, torch.ones(3, 3, dtype=torch.int64), refused=True)

# Windows, and places between points
case("unfold", lambda x: F.unfold(x, (2, 3), 2, 1, 2), R(2, 3, 8, 9))
case("unfold of one image", lambda x: F.unfold(x, 2), R(3, 8, 9))
case("unfold of no image", lambda x: F.unfold(x, 2), R(0, 3, 8, 9))
case("unfold of too small an image", lambda x: F.unfold(x, 12), R(2, 3, 8, 9), refused=True)
case("fold", lambda x: F.fold(x, (5, 6), (2, 3), padding=(0, 1)), R(2, 18, 24))
case("fold of one image", lambda x: F.fold(x, (5, 6), (2, 3), padding=(0, 1)), R(18, 24))
case("fold of other windows", lambda x: F.fold(x, (5, 6), (2, 3), padding=(0, 1)), R(18, 23), refused=True)
case("grid_sample", lambda x: F.grid_sample(x, torch.zeros(2, 4, 5, 2), align_corners=False), R(2, 3, 8, 9))
case("grid_sample of the nearest",
     lambda x: F.grid_sample(x, torch.zeros(2, 4, 5, 2), mode="nearest", padding_mode="border", align_corners=True), R(2, 3, 8, 9))
case("grid_sample of volumes", lambda x: F.grid_sample(x, torch.zeros(2, 2, 4, 5, 3), align_corners=False), R(2, 3, 4, 8, 9))
case("grid_sample of volumes by cubes",
     lambda x: F.grid_sample(x, torch.zeros(2, 2, 4, 5, 3), mode="bicubic", align_corners=False), R(2, 3, 4, 8, 9), refused=True)
case("grid_sample of other images", lambda x: F.grid_sample(x, torch.zeros(3, 4, 5, 2), align_corners=False), R(2, 3, 8, 9), refused=True)
for mask in [True, True], [False, True]:
    case(f"gradient of grid_sample {mask}", lambda g, x, at, mask=mask: A.grid_sampler_2d_backward(g, x, at, 0, 0, False, mask),
         R(2, 3, 4, 5), R(2, 3, 6, 7), R(2, 4, 5, 2))
case("gradient of grid_sample of volumes", lambda g, x, at: A.grid_sampler_3d_backward(g, x, at, 0, 0, False, [True, True]),
     R(2, 3, 2, 4, 5), R(2, 3, 3, 6, 7), R(2, 2, 4, 5, 3))


def gradient_of_max_pool3d(g, x):
    return A.max_pool3d_with_indices_backward(g, x, 2, 2, 0, 1, False, F.max_pool3d(x, 2, return_indices=True)[1])


case("max_pool3d", lambda x: F.max_pool3d(x, 2, return_indices=True), R(2, 3, 6, 8, 9))
case("max_pool3d of everything", lambda x: F.max_pool3d(x, (2, 3, 2), (1, 2, 2), 1, 1, True, True), R(2, 3, 6, 8, 9))
case("max_pool3d of one volume", lambda x: F.max_pool3d(x, 2), R(3, 6, 8, 9))
case("max_pool3d of too small a volume", lambda x: F.max_pool3d(x, 20), R(2, 3, 6, 8, 9), refused=True)
case("max_pool3d of too wide a rim", lambda x: F.max_pool3d(x, 2, padding=3), R(2, 3, 6, 8, 9), refused=True)
case("max_pool3d of no volume", lambda x: F.max_pool3d(x, 2), R(6, 8, 9), refused=True)
case("gradient of max_pool3d", gradient_of_max_pool3d, R(2, 3, 2, 3, 4), R(2, 3, 4, 6, 8))
case("gradient of max_pool3d of one volume", gradient_of_max_pool3d, R(3, 2, 3, 4), R(3, 4, 6, 8))
case("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), R(2, 3, 6, 8, 9))
case("adaptive_avg_pool3d of one volume", lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), R(3, 6, 8, 9))
case("adaptive_avg_pool3d of no volume", lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), R(6, 8, 9), refused=True)
case("gradient of adaptive_avg_pool3d", A._adaptive_avg_pool3d_backward, R(2, 3, 2, 3, 4), R(2, 3, 4, 6, 8))
case("gradient of glu", lambda g, x: A.glu_backward(g, x, 1), R(4, 3, 5), R(4, 6, 5))


class ShapeRules(unittest.TestCase):
    def check(self, fn, inputs, refused):
        for laid in itertools.product(*map(layouts, inputs)):  # the first as given
            torch.compiler.reset()
            want, values = outcome(fn, laid)
            if all(x is y for x, y in zip(laid, inputs)):  # eager itself refuses some layouts of what it takes row by row
                self.assertEqual(isinstance(want, str), refused, want)
            got, found = outcome(fusebox.compile(fn), laid)
            self.assertEqual(got, want, [(tuple(x.shape), x.stride()) for x in laid])
            for a, b in zip(found, values):
                torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4, equal_nan=True)

    def test_every_layout(self):
        for name, case in CASES.items():
            with self.subTest(name):
                self.check(*case)


if __name__ == "__main__":
    unittest.main()

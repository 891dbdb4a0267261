"""numpy's functions in compiled code against numpy alone: types, shapes, strides, values, warnings, errors, for arrays of several types and layouts, with
ordinary and with special values."""

import argparse
import itertools
import operator
import sys
import types
import warnings

import fusebox
import numpy as np

TYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128")
UNARY = ("square reciprocal negative absolute positive fabs sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh arcsin arccos arctan "
         "floor ceil trunc rint logical_not invert isnan isinf isfinite signbit sign conjugate").split()
BINARY = ("add subtract multiply true_divide floor_divide remainder arctan2 hypot power logaddexp copysign maximum minimum equal not_equal less less_equal "
          "greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor").split()
REDUCTIONS = "sum mean max min any all prod std var argmax argmin cumsum cumprod sort".split()
OTHERS = {
    "where": lambda a, b: np.where(a > b, a, b), "where_number": lambda a, b: np.where(a > 0, a, 1), "clip": lambda a, b: np.clip(a, 1, 3),
    "clip_ends": lambda a, b: (a.clip(max=3), np.clip(b, 1, None)), "clip_arrays": lambda a, b: a.clip(b, b + b), "concatenate": lambda a, b: np.concatenate([a, b]), "stack": lambda a, b: np.stack((a, b), 1),
    "joined_list": lambda a, b: np.concatenate([a[0], [1, 2], b[0]]), "hstack": lambda a, b: np.hstack([a, b]), "hstack_rows": lambda a, b: np.hstack((a[0], b[1], 3)),
    "vstack": lambda a, b: np.vstack([a, b[0]]), "round": lambda a, b: np.round(a / 2), "round_method": lambda a, b: (a.round(), np.around(b)), "repeat": lambda a, b: np.repeat(a, 2),
    "repeat_axis": lambda a, b: (np.repeat(a, 3, axis=1), b.repeat(2, 0)), "tile": lambda a, b: (np.tile(a, 2), np.tile(b, (2, 1, 2))),
    "copy": lambda a, b: a.copy(), "flatten": lambda a, b: a.flatten(), "ravel": lambda a, b: np.ravel(a), "reshape": lambda a, b: a.reshape(2, 6),
    "reshape_order": lambda a, b: np.reshape(a, (2, 6), order="F"), "item": lambda a, b: a[1:, None, ::2], "row": lambda a, b: a[0], "last": lambda a, b: a[..., -1],
    "backwards": lambda a, b: a[::-1], "mask": lambda a, b: a[a > 1], "transpose": lambda a, b: a.T, "axes": lambda a, b: np.transpose(a, (1, 0)),
    "squeeze": lambda a, b: np.squeeze(a[None]), "expand": lambda a, b: np.expand_dims(a, 1), "swapaxes": lambda a, b: a.swapaxes(0, 1),
    "zeros_like": lambda a, b: np.zeros_like(a), "ones_like": lambda a, b: np.ones_like(a), "matmul": lambda a, b: a @ b.T, "broadcast": lambda a, b: a[:, :1] + b[0],
    "add_int": lambda a, b: a + 2, "float_minus": lambda a, b: 0.1 - a, "times_scalar": lambda a, b: np.float32(3) * a, "over_wide": lambda a, b: a / np.float64(3),
    "square": lambda a, b: a**2, "root": lambda a, b: a**0.5, "large": lambda a, b: a + 300, "in_place": lambda a, b: operator.iadd(a, b),
    "in_place_float": lambda a, b: operator.imul(a, 1.5), "divided": lambda a, b: operator.itruediv(a, 2), "written": lambda a, b: (operator.setitem(a, 0, b[1]), a)[1],
    "filled": lambda a, b: (operator.setitem(a, (slice(None), 1), 3), a)[1], "view_written": lambda a, b: (operator.iadd(a[1:], 1), a)[1],
    **{f"astype_{t}": lambda a, b, t=t: a.astype(t) for t in TYPES}, "astype_same": lambda a, b: a.astype(a.dtype, copy=False),
    "item_number": lambda a, b: (a[0, 1], a[-1, 2] * b[1, 1], -a[0, 0]), "number_python": lambda a, b: (a[0, 0] + 1, 2 * a[0, 0], a[1, 1] - 0.5, a[1, 1] / 3),
    "number_array": lambda a, b: (a.max() - b, b * a[0, 0]), "number_loops": lambda a, b: (a[0, 0] + np.float32(2), np.sqrt(a[0, 1]), np.maximum(a[0, 0], b[0, 0])),
    "number_compared": lambda a, b: (a[0, 0] > b[0, 0], a.min() == 1, 2 <= b[0, 1], not a[0, 0], bool(a[1, 1])), "number_read": lambda a, b: (a[0, 0].item(), float(a.max()), a[0].tolist()),
    "number_types": lambda a, b: (a[0, 0].dtype, type(a.max()), isinstance(a.max(), float), isinstance(a.max(), np.generic), a[0, 0].shape, a.max().ndim),
    "number_cast": lambda a, b: (a[0, 0].astype(b.dtype), np.float32(a[0, 1]), np.int64(a[1, 1]), np.float64(b[0, 0])), "number_written": lambda a, b: (operator.setitem(a, (0, 0), b.max()), a)[1],
    "numbers_stacked": lambda a, b: (np.array([a[0, 0], a[0, 1]]), np.stack([a.max(), b.max()])), "number_branch": lambda a, b: a / a.max() if a.max() > 0 else b,
    "dot": lambda a, b: (a[0].dot(b[0]), np.dot(a, b.T)), "norm": lambda a, b: (np.linalg.norm(a), np.linalg.norm(b, axis=1)), "mask_written": lambda a, b: (operator.setitem(a, a > 1, 0), a)[1],
    "rows": lambda a, b: a[np.array([2, 0, -1])], "rows_of_data": lambda a, b: a[b.argmax(axis=1) % 3], "power_int": lambda a, b: (a**3, 2**a), "floor_in_place": lambda a, b: operator.ifloordiv(a, b),
    "out": lambda a, b: np.add(a, a, out=b), "two": lambda a, b: (a - b, (a - b)[1:]), "same": lambda a, b: [a, a],
}
FUNCTIONS = {
    **{n: lambda a, b, f=getattr(np, n): f(a) for n in UNARY}, **{n: lambda a, b, f=getattr(np, n): f(a, b) for n in BINARY},
    **{f"{n}_{axis}": lambda a, b, f=getattr(np, n), axis=axis: f(a, axis=axis) for n in REDUCTIONS for axis in (0, 1)},
    "method_mean": lambda a, b: a.mean(1, keepdims=True), "method_max": lambda a, b: a.max(axis=0), **{f"{n}_all": lambda a, b, f=getattr(np, n): f(a) for n in REDUCTIONS}, **OTHERS,
}
# Sums of all elements, that two orders of adding round otherwise.
SUMS = {
    **{f"fft_{n}": lambda a, b, f=getattr(np.fft, n): f(a) for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "fftn", "irfftn")},
    "fft_axis": lambda a, b: np.fft.fft(a, 5, 0, "ortho"), "einsum": lambda a, b: np.einsum("ij,kj->ik", a, b),
}
FUNCTIONS.update(SUMS)
FUNCTIONS.update({
    "parts": lambda a, b: ((a + b).real, (a + b).imag), "parts_written": lambda a, b: (operator.setitem((a := a + b).real, 0, 1), a)[1], "shifted": lambda a, b: np.fft.fftshift(a),
    "shifted_back": lambda a, b: np.fft.ifftshift(a, 1), "complex_number": lambda a, b: a * 2j + (1 - 1j), "made_complex": lambda a, b: a + 1j * b, "reshape_list": lambda a, b: a.reshape([1, a.size]),
    "conj": lambda a, b: a.conj(), "frequencies": lambda a, b: a + np.fft.fftfreq(4),
})
ROWS = np.array([2, 0, 1])
POINTS, LEVELS = np.array([0.0, 1.0, 3.0]), np.array([1.0, 5.0, 2.0])
FUNCTIONS.update({
    **{n: lambda a, b, f=getattr(np, n): f(a) for n in ("cbrt", "deg2rad", "radians", "rad2deg", "degrees", "sinc", "nan_to_num", "modf", "ptp", "count_nonzero", "trace", "diagonal", "triu",
                                                        "diff", "median", "nanmean", "nansum", "nanprod", "nanmax", "nanmin", "nanvar", "nanstd", "gradient", "trapezoid", "argsort", "angle",
                                                        "cov", "corrcoef", "average", "atleast_1d", "atleast_3d", "unstack", "matrix_transpose", "ndim", "size", "shape", "diag", "diagflat")},
    **{n: lambda a, b, f=getattr(np, n): f(a, b) for n in ("heaviside", "fmin", "fmax", "fmod", "float_power", "divmod", "isclose", "allclose", "array_equal", "append", "isin", "kron")},
    **{f"{n}_axis": lambda a, b, f=getattr(np, n): f(a, axis=0) for n in ("median", "nanmean", "nansum", "nanmax", "nanmin", "nanstd", "ptp", "diff", "gradient", "argsort", "count_nonzero", "average", "trapezoid", "unstack")},
    "median_keepdims": lambda a, b: (np.median(a, axis=1, keepdims=True), np.median(b, keepdims=True)), "percentile": lambda a, b: np.percentile(a, 30), "percentiles": lambda a, b: np.percentile(a, [10, 50, 90], axis=0),
    "quantile": lambda a, b: (np.quantile(a, 0.3, axis=1), np.quantile(b, 0.75, keepdims=True)), "quantile_ends": lambda a, b: (np.quantile(a, 0, axis=0), np.quantile(a, 1.0), np.quantile(b, (0, 0.5, 1), axis=-1)),
    "argsort_stable": lambda a, b: (np.argsort(a, axis=None, kind="stable"), a.argsort(axis=0, kind="stable"), np.argsort(b, stable=True)), "sort_kind": lambda a, b: (np.sort(a, kind="stable"), np.sort(b, axis=None)), "sort_method": lambda a, b: (a.sort(), a, b.sort(0), b),
    "outer": lambda a, b: np.outer(a[0], b[:, 0]), "outer_all": lambda a, b: np.outer(a, b), "cross": lambda a, b: np.cross(a[:, :3], b[:, 1:]), "cross_axis": lambda a, b: (np.cross(a, b, axis=0), np.cross(a.T, b, axisb=0, axisc=0)),
    "diag_row": lambda a, b: (np.diag(a[0]), np.diag(b[:, 1], -1), np.diag(a, 1)), "diagonal_method": lambda a, b: (a.diagonal(1), a[None].diagonal(0, 1, 2)), "trace_method": lambda a, b: (a.trace(1), np.trace(b[None], axis1=1, axis2=2)),
    "tril": lambda a, b: (np.tril(a, -1), np.triu(b, 2)), "diff_two": lambda a, b: np.diff(a, n=2, axis=0), "roll": lambda a, b: (np.roll(a, 1), np.roll(b, -2, axis=1)), "roll_axes": lambda a, b: np.roll(a, (1, -2), axis=(0, 1)),
    "moveaxis": lambda a, b: (np.moveaxis(a[None], 0, -1), np.moveaxis(b, (0, 1), (1, 0))), "rollaxis": lambda a, b: (np.rollaxis(a[None], 2), np.rollaxis(b, 0)), "moved_written": lambda a, b: (operator.setitem(np.moveaxis(a, 0, 1), 0, 1), a)[1],
    "broadcast_to": lambda a, b: (np.broadcast_to(a[0], (3, 4)), np.broadcast_to(b, (2, 3, 4)) + 1), "take": lambda a, b: (np.take(a, ROWS, axis=0), a.take(ROWS), np.take(b, 1, axis=1), b.take([-1, 0], 1)),
    "take_of_data": lambda a, b: a.take(b.argmax(axis=1) - 1, axis=1), "take_outside": lambda a, b: a[0].take(b.argmax(axis=1) * 2), "take_along_axis": lambda a, b: (np.take_along_axis(a, b.argmax(axis=1)[:, None], axis=1), np.take_along_axis(a[0], ROWS, 0)),
    "put_along_axis": lambda a, b: (np.put_along_axis(a, a.argmax(axis=1)[:, None], 0, axis=1), a), "put_along_axis_arrays": lambda a, b: (np.put_along_axis(a, a.argmax(axis=0)[None], b[:1], axis=0), a),
    "split": lambda a, b: (np.split(a, 2, axis=1), np.split(b, [1, 2]), np.split(b, 3)), "array_split": lambda a, b: np.array_split(a, 3, axis=1), "split_sides": lambda a, b: (np.hsplit(a, 2), np.vsplit(b, [1]), np.dsplit(a[None], 4)), "split_written": lambda a, b: (operator.iadd(np.split(a, 3)[1], 1), a)[1],
    "column_stack": lambda a, b: (np.column_stack((a[0], b[0])), np.column_stack([a, b])), "dstack": lambda a, b: (np.dstack((a, b)), np.dstack([a[0], b[0]])), "atleast_2d": lambda a, b: (np.atleast_2d(a[0]), np.atleast_2d(a, b[1])), "append_axis": lambda a, b: (np.append(a, b, axis=0), np.append(a, 3)),
    "pad": lambda a, b: (np.pad(a, 1), np.pad(b, (1, 2), constant_values=1)), **{f"pad_{m}": lambda a, b, m=m: (np.pad(a, ((1, 2), (0, 1)), mode=m), np.pad(b, 2, m)) for m in ("edge", "reflect", "symmetric", "wrap")},
    "average_weights": lambda a, b: (np.average(a, axis=1, weights=b), np.average(a, weights=b), np.average(a, axis=0, weights=b[:, 0])), "cov_two": lambda a, b: np.cov(a[0], b[0]), "cov_columns": lambda a, b: (np.cov(a, rowvar=False), np.cov(b, bias=True), np.cov(a, ddof=0)),
    "corrcoef_two": lambda a, b: (np.corrcoef(a[0], b[0]), np.corrcoef(a, rowvar=False)), "nan_to_num_values": lambda a, b: np.nan_to_num(a, nan=1.0, posinf=2, neginf=-3.5), "isclose_number": lambda a, b: (np.isclose(a, 1), np.isclose(a, a, equal_nan=True), np.isclose(a, 0.5, rtol=0.1)),
    "searchsorted": lambda a, b: (np.searchsorted(np.sort(a[0]), b), np.sort(b[1]).searchsorted(a[0], side="right"), np.searchsorted(POINTS, a[0, 0])), "searchsorted_any": lambda a, b: np.searchsorted(a[0], b), "digitize": lambda a, b: (np.digitize(a, POINTS), np.digitize(a, POINTS, right=True)),
    "interp": lambda a, b: np.interp(a, POINTS, LEVELS), "interp_of_data": lambda a, b: (np.interp(a[0], np.sort(b[0]), a[1]), np.interp(b, POINTS, LEVELS, left=-1, right=9.5)), "gradient_distance": lambda a, b: (np.gradient(a[0], 2.0), np.gradient(a, 2, 0.5, edge_order=1), np.gradient(b, axis=1, edge_order=2)),
    "trapezoid_along": lambda a, b: (np.trapezoid(a, b, axis=0), np.trapezoid(a, dx=0.5)), "linspace": lambda a, b: a + np.linspace(0, 1, 4), "select": lambda a, b: np.select([a > 3, a > 1], [a, b], 0), "polyval": lambda a, b: np.polyval([1, 2, 3], a),
    "filled_method": lambda a, b: (a.fill(1), a), "fill_diagonal": lambda a, b: (np.fill_diagonal(a, 1), a), "mean_of_type": lambda a, b: (a.mean(dtype=np.float64), np.sum(a, axis=0, dtype=np.float32), np.sum(b, dtype=np.int64)),
    "nothing": lambda a, b: (a[2:1], a[:0].T, a[3:].reshape(4, 0), b[:, :0].copy(), a[:0] + b[:0]), "nothing_added": lambda a, b: (a[:0].sum(axis=0), b[:, :0].prod(1), a[:0].any(), a[:0].all(axis=0), a[:0].sum() + 1.0), "nothing_joined": lambda a, b: (np.concatenate([a, b[3:]]), np.append(a, b[:0]), np.stack([a[:0], b[:0]]), np.hstack([a[:, :0], b])),
    "nothing_averaged": lambda a, b: (a[:0].mean(axis=0), b), "nothing_greatest": lambda a, b: a[:, :0].max(axis=1), "nothing_made": lambda a, b: (a[:0].astype(np.float32), np.zeros((0, 4)) + a[:0], np.zeros_like(b[:0]), np.where(a[:0] > 1, a[:0], 0)), "nothing_written": lambda a, b: (operator.iadd(a[:0], 1), operator.setitem(a, slice(0, 0), 1), a),
    "split_to_nothing": lambda a, b: (np.array_split(a, 5), np.split(b, [3])), 
    "flip": lambda a, b: (np.flip(a), np.flip(b, 1), np.fliplr(a), np.flipud(b), np.flip(a, (0, 1))), "flip_computed": lambda a, b: np.flip(a) + b, "rot90": lambda a, b: (np.rot90(a), np.rot90(a, 2), np.rot90(b, 3), np.rot90(b, 4), np.rot90(a[None], -1, (1, 2))),
    "backwards_some": lambda a, b: (a[2:0:-1, None, ::-2], b[-1::-3], a[..., ::-1], b[::-1, 1], a[0, ::-1], a[1:1:-1]), "backwards_joined": lambda a, b: (np.concatenate([a, a[:, ::-1]]), a[::-1].copy(), (a + b)[::-1], a[::-1].sum(), b[0, ::-1].tolist()),
    "backwards_views": lambda a, b: (a[::-1][1:], a[::-1].T, a[::-1, ::-1].reshape(-1), b[::-1][::-1], b[::-1][0], np.diag(b[:, ::-1])), "backwards_written": lambda a, b: (x := a[::-1], operator.setitem(x, 0, 1), a),
    "backwards_source": lambda a, b: (x := a[::-1], operator.setitem(a, 0, 1), x.tolist(), a), "backwards_beside": lambda a, b: (x := a[::-1], y := a[::-1] + b, operator.iadd(y, x), operator.iadd(b, 1), x + 0), "backwards_parts": lambda a, b: (a[::-1].real + 1, (a[:, ::-1] + b).imag),
    "backwards_to": lambda a, b: (operator.setitem(a, slice(None, None, -1), b), a), "backwards_in_place": lambda a, b: (x := (a + b)[:, ::-1], operator.iadd(x, x), x + 0),
    "places": lambda a, b: (a[ROWS, ROWS], a[:, ROWS], a[[0, -1]], b[[0, 2], 1], b[ROWS[:, None], ROWS], a[None, ..., [1, 0]]), "places_apart": lambda a, b: (a[None, :, :][[0], :, ROWS], a[ROWS, None, ROWS]), "places_and_int": lambda a, b: (a[1, ROWS], a[None][0, :, ROWS]),
    "places_of_data": lambda a, b: a[np.arange(3), b.argmax(axis=1) - 1], "places_outside": lambda a, b: a[b.argmax(axis=1) + 1, 0], "places_written": lambda a, b: (operator.setitem(a, (ROWS, ROWS), 1), operator.setitem(b, (slice(None), a.argmax(axis=1)), 1), operator.setitem(b, [0, 0], 0), a, b),
    "places_written_arrays": lambda a, b: (operator.setitem(a, (ROWS, ROWS), b[0, :3]), a), "places_written_outside": lambda a, b: (operator.setitem(a, b.argmax(axis=1), 1), a), "of_lists": lambda a, b: (a + [1, 2, 3, 4], np.outer(a, [1, 2]), np.interp(b, [0, 1, 3], [1.0, 2.0, 5.0]), np.digitize(a, [0, 1.5]), np.maximum(a[:, :2], [1, 0])),
    **{n: lambda a, b, f=getattr(np, n): f(a) for n in ("arcsinh", "arccosh", "arctanh", "isposinf", "isneginf", "ediff1d", "nanargmax", "nancumsum")}, **{n: lambda a, b, f=getattr(np, n): f(a, b) for n in ("logaddexp2", "nextafter", "gcd")},
    "cumsum_of_zeros": lambda a, b: (np.cumsum(a * 0 * -1), (-np.abs(b) * 0).cumsum(axis=0)),
    "nanargmin_axis": lambda a, b: (np.nanargmin(a, axis=1), np.nancumsum(b, axis=0)), "expand_several": lambda a, b: np.expand_dims(a, (0, 2)), "compress": lambda a, b: (np.compress([True, False, True], a, axis=0), a.compress([False, True])), "resize": lambda a, b: np.resize(a, (2, 2)),
    "delete": lambda a, b: (np.delete(a, 1, axis=0), np.delete(b, [0, 5]), np.delete(a, slice(1, 3), 1)), "insert": lambda a, b: (np.insert(a, 1, 0, axis=0), np.insert(b, [0, 2], 1, axis=1), np.insert(a, 3, 1)),
    "norms": lambda a, b: (np.linalg.norm(a[0], 1), np.linalg.norm(a, np.inf, axis=1), np.linalg.norm(a, "fro"), np.linalg.norm(b[0], 2), np.linalg.norm(b, -np.inf, 0)),
})
SUMS.update({
    "inner": lambda a, b: (np.inner(a, b), np.inner(a[0], b[0])), "tensordot": lambda a, b: (np.tensordot(a, b, axes=([1], [1])), np.tensordot(a, b.T, 1), np.tensordot(a, b), np.tensordot(a[0], b[0], 0)), "vdot": lambda a, b: np.vdot(a[0], b[0]), "vecdot": lambda a, b: np.vecdot(a, b),
    "convolve": lambda a, b: (np.convolve(a[0], b[0]), np.convolve(a[0, :2], b[0]), np.correlate(a[0], b[0, :3])), "convolve_same": lambda a, b: (np.convolve(a[0], b[0, :3], mode="same"), np.convolve(a[0], b[0, :2], "same"), np.convolve(a[0], b[0, :3], "valid"), np.correlate(a[0], b[0, :2], "full")),
})
# Of matrices far from ones without an inverse.
SOLVED = {
    "inv": lambda a, b: np.linalg.inv(a[:, :3] + np.eye(3, dtype=a.dtype) * 9), "det": lambda a, b: np.linalg.det(a[:, :3] + np.eye(3, dtype=a.dtype) * 9), "solve": lambda a, b: (np.linalg.solve(a[:, :3] + np.eye(3, dtype=a.dtype) * 9, b), np.linalg.solve(a[:, :3] + np.eye(3, dtype=a.dtype) * 9, b[:, 0])),
    "cholesky": lambda a, b: np.linalg.cholesky(a @ a.T + np.eye(3, dtype=a.dtype) * 9), "eigvalsh": lambda a, b: np.linalg.eigvalsh(a @ a.T + np.eye(3, dtype=a.dtype)), "svdvals": lambda a, b: (np.linalg.svdvals(a), np.linalg.svd(b, compute_uv=False)), "pinv": lambda a, b: np.linalg.pinv(a[:, :3] + np.eye(3, dtype=a.dtype) * 9),
    "matrix_power": lambda a, b: (np.linalg.matrix_power(a[:, :3], 3), np.linalg.matrix_power(a[:, :3], 1), np.linalg.matrix_power(b[:, :3], 2)), "matrix_power_inverse": lambda a, b: np.linalg.matrix_power(a[:, :3] + np.eye(3, dtype=a.dtype) * 9, -2), "stacked": lambda a, b: (np.linalg.inv((a[:, :3] + np.eye(3) * 9)[None]), np.linalg.solve(np.eye(3)[None] * 2, b)),
    "inv_singular": lambda a, b: np.linalg.inv(a[:, :3] * 0),
}
ENDLESS = {"svdvals", "pinv"}  # LAPACK does not come back from every infinity
FUNCTIONS.update(SUMS | SOLVED)
LAYOUTS = {
    "plain": lambda a: a, "fortran": lambda a: np.asfortranarray(a), "part": lambda a: np.repeat(a, 2, axis=1)[:, ::2], "row": lambda a: a[:, :1].copy(),
    "read_only": lambda a: np.broadcast_to(a[0], a.shape), "backwards": lambda a: a[::-1],
}
LINES = itertools.count(1)
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e38, -1e38, 1e-40, 1e300, 3.5]


def ordinary(g, dtype):
    values = g.integers(1, 9, (3, 4)) if dtype[0] in "iu" else g.random((3, 4)) * 0.8 + 0.1
    if dtype[0] == "c":
        values = values + 1j * (g.random((3, 4)) - 0.5)
    return (values > 0.5 if dtype == "bool" else values).astype(dtype)


def special(g, dtype):
    if dtype[0] in "fc":
        with np.errstate(all="ignore"):
            values = g.permutation(np.array(SPECIAL))
            if dtype[0] == "c":
                values = np.array([complex(r, i) for r, i in zip(values, g.permutation(values))])
            return values.astype(dtype).reshape(3, 4)
    ends = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, 2)
    return g.choice(np.array(ends, dtype=dtype), (3, 4))


def layout_of(value):
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [layout_of(v) for v in value]
    if isinstance(value, np.ndarray):
        return "ndarray", str(value.dtype), value.shape, value.strides, value.flags.writeable, value.base is None
    return type(value).__name__, value if isinstance(value, str) else ""


def arrays_in(value):
    return [a for v in value for a in arrays_in(v)] if isinstance(value, (tuple, list)) else [] if isinstance(value, str) else [np.asarray(value)]


def observed(f, args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = f(*args)
        except Exception as error:
            result = (type(error).__name__, str(error))
    said = sorted((w.category.__name__, str(w.message)) for w in caught if "fusebox" not in str(w.message))
    shared = [[np.shares_memory(r, a) for a in args] for r in arrays_in(result)] if not isinstance(result, str) else []
    return (layout_of(result), said, shared), arrays_in(result) + list(args)


def near(a, b, units=0):
    """Equal, or floats that two ways of rounding give; `units` in the last place of the largest, where what is added decides."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    if a.dtype.kind == "c" and np.isfinite(a).all() and np.isfinite(b).all():
        a, b, units = np.stack([a.real, a.imag]), np.stack([b.real, b.imag]), units or 16  # each part is as near as the larger one
    if units and a.size and np.isfinite(a).all() and np.isfinite(b).all():
        return bool(np.abs(a - b).max() <= units * np.finfo(a.dtype).eps * np.abs(a).max())
    if a.dtype.kind == "c":
        return near(a.real, b.real) and near(a.imag, b.imag)
    if not np.array_equal(np.isnan(a), np.isnan(b)) or not np.array_equal(np.signbit(a)[~np.isnan(a)], np.signbit(b)[~np.isnan(b)]):
        return False
    return np.allclose(a, b, rtol=8 * np.finfo(a.dtype).eps, atol=0, equal_nan=True)


def anew(f, name):
    """The function with code of its own, of which nothing is compiled yet."""
    return types.FunctionType(f.__code__.replace(co_name=name, co_firstlineno=next(LINES)), f.__globals__, name, f.__defaults__, f.__closure__)


def graphs_without_breaks(f, args):
    try:
        explained = fusebox.explain(f)(*args)
    except Exception:
        return False
    return explained.graph_count > 0 and explained.graph_break_count == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--followed", action="store_true", help="say which functions are followed for which types")
    parser.add_argument("--least", type=int, default=0, help="so many functions and types are whole graphs")
    options = parser.parse_args()
    wrong = calls = whole = 0
    for name, f in FUNCTIONS.items():
        if options.only and name not in options.only.split(","):
            continue
        followed = []
        for seed, (first, second) in enumerate([(t, t) for t in TYPES] + [("float32", "int64"), ("int8", "uint8"), ("float64", "float32"), ("bool", "float32")]):
            for layout, laid in LAYOUTS.items():
                if layout != "plain" and seed % 3:
                    continue
                g = np.random.default_rng(seed)
                compiled = fusebox.compile(anew(f, name))
                for make in (ordinary, ordinary if name in ENDLESS else special, ordinary):
                    a, b = make(g, first), make(g, second)
                    want, values = observed(f, (laid(a.copy()), laid(b.copy())))
                    got, found = observed(compiled, (laid(a.copy()), laid(b.copy())))
                    calls += 1
                    units = 256 if name in SOLVED else 16 if name in SUMS else 0
                    is_compared = name not in SOLVED or make is ordinary  # special values make matrices that any rounding decides about
                    if want != got or (is_compared and not all(near(a, b, units) for a, b in zip(values, found))):
                        wrong += 1
                        print(f"{name} {first} {second} {layout} {make.__name__}: {got} {[v.tolist() for v in found]}\n    numpy: {want} {[v.tolist() for v in values]}")
                if layout == "plain" and graphs_without_breaks(anew(f, name), (laid(ordinary(g, first)), laid(ordinary(g, second)))):
                    followed.append(first)
        if options.followed:
            print(name, *followed)
        whole += len(followed)
    print(f"{calls} calls, {wrong} differ; {whole} functions and types are whole graphs")
    return wrong > 0 or whole < options.least


if __name__ == "__main__":
    sys.exit(main())

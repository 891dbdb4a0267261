"""What stands in the place of functions of numpy that are several others: the evaluator goes into it, and what it calls is followed in turn. Each does what
numpy's own does, operation by operation, so that types and layouts are numpy's; what numpy would refuse or warn of is left to numpy."""

import numpy

_GRIDS = type(numpy.meshgrid(numpy.zeros(1)))  # a list before numpy 2
_COUNTS_ARE_INTS = type(numpy.count_nonzero(numpy.zeros(1))) is int


def refuse(why):
    """Here the graph ends, before numpy's function is called for real."""


def _require(holds):
    if not holds:
        refuse("a function of numpy is called in a way that is not followed")


def _is_array(a, dimensions=1):
    return type(a) is numpy.ndarray and a.ndim >= dimensions


def _is_float(a):
    return type(a) is numpy.ndarray and a.dtype.kind == "f"


def _array_of(a):
    return numpy.asarray(a) if type(a) in (tuple, list) else a


def _axis_of(axis, dimensions):
    _require(type(axis) is int and -dimensions <= axis < dimensions)
    return axis % dimensions


def _axes_of(axes, dimensions):
    return [_axis_of(axis, dimensions) for axis in (axes if type(axes) in (tuple, list) else (axes,))]


def _part(axis, start, stop):
    return (slice(None),) * axis + (slice(start, stop),)


def _meshgrid(*arrays, copy=True, sparse=False, indexing="xy"):
    _require(copy is True and sparse is False and indexing in ("xy", "ij") and all(type(array) is numpy.ndarray for array in arrays))
    places = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        places[:2] = 1, 0
    sizes = [0] * len(arrays)
    for place, array in zip(places, arrays):
        sizes[place] = array.size
    columns = [array.reshape(tuple(-1 if i == place else 1 for i in range(len(arrays)))) for place, array in zip(places, arrays)]
    everywhere = numpy.ones(tuple(sizes), bool)
    return _GRIDS([numpy.where(everywhere, column, column) for column in columns])


# Views.


def _moveaxis(a, source, destination):
    _require(_is_array(a))
    source, destination = _axes_of(source, a.ndim), _axes_of(destination, a.ndim)
    _require(len(source) == len(destination) == len(set(source)) == len(set(destination)))
    order = [n for n in range(a.ndim) if n not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return a.transpose(tuple(order))


def _rollaxis(a, axis, start=0):
    _require(_is_array(a) and type(start) is int and -a.ndim <= start <= a.ndim)
    axis, start = _axis_of(axis, a.ndim), start + a.ndim if start < 0 else start
    start = start - 1 if axis < start else start
    if axis == start:
        return a[...]
    order = [n for n in range(a.ndim) if n != axis]
    order.insert(start, axis)
    return a.transpose(tuple(order))


def _flip(a, axis=None):
    _require(type(a) is numpy.ndarray)
    axes = range(a.ndim) if axis is None else _axes_of(axis, a.ndim)
    return a[tuple([slice(None, None, -1) if n in axes else slice(None) for n in range(a.ndim)])]


def _fliplr(a):
    _require(_is_array(a, 2))
    return a[:, ::-1]


def _flipud(a):
    _require(_is_array(a))
    return a[::-1, ...]


def _rot90(a, k=1, axes=(0, 1)):
    _require(_is_array(a, 2) and type(k) is int and type(axes) in (tuple, list) and len(axes) == 2)
    first, second = _axes_of(axes, a.ndim)
    _require(first != second)
    order = list(range(a.ndim))
    order[first], order[second] = second, first
    k %= 4
    if k == 0:
        return a[:]
    if k == 2:
        return _flip(_flip(a, first), second)
    return _flip(a, second).transpose(tuple(order)) if k == 1 else _flip(a.transpose(tuple(order)), second)


def _array_split(a, sections, axis=0):
    _require(_is_array(a))
    axis, size = _axis_of(axis, a.ndim), a.shape[axis]
    if type(sections) is int:
        _require(sections > 0)
        least, more = divmod(size, sections)
        ends = [0]
        for i in range(sections):
            ends.append(ends[-1] + least + (i < more))
    else:
        _require(type(sections) in (tuple, list) and all(type(end) is int for end in sections))
        ends = [0, *sections, size]
    return [a[_part(axis, start, end)] for start, end in zip(ends, ends[1:])]


def _split(a, sections, axis=0):
    _require(_is_array(a))
    _require(type(sections) is not int or (sections > 0 and a.shape[_axis_of(axis, a.ndim)] % sections == 0))
    return _array_split(a, sections, axis)


def _hsplit(a, sections):
    _require(_is_array(a))
    return _split(a, sections, 1 if a.ndim > 1 else 0)


def _vsplit(a, sections):
    _require(_is_array(a, 2))
    return _split(a, sections, 0)


def _dsplit(a, sections):
    _require(_is_array(a, 3))
    return _split(a, sections, 2)


def _unstack(a, /, *, axis=0):
    moved = _moveaxis(a, axis, 0)
    return tuple([moved[i] for i in range(moved.shape[0])])


# Products and differences.


def _outer(a, b):
    a, b = _array_of(a), _array_of(b)
    _require(_is_array(a) and _is_array(b))
    return numpy.multiply(a.ravel()[:, None], b.ravel()[None, :])


def _kron(a, b):
    a, b = _array_of(a), _array_of(b)
    _require(_is_array(a) and _is_array(b))
    n = max(a.ndim, b.ndim)
    of_a, of_b = (1,) * (n - a.ndim) + a.shape, (1,) * (n - b.ndim) + b.shape
    wide_a = a.reshape(tuple(of for size in of_a for of in (size, 1)))
    wide_b = b.reshape(tuple(of for size in of_b for of in (1, size)))
    return numpy.multiply(wide_a, wide_b).reshape(tuple(i * k for i, k in zip(of_a, of_b)))


def _cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    a, b = _array_of(a), _array_of(b)
    _require(_is_array(a) and _is_array(b))
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    a, b = _moveaxis(a, axisa, -1), _moveaxis(b, axisb, -1)
    _require(a.shape[-1] == b.shape[-1] == 3)  # of two numpy warns
    a0, a1, a2, b0, b1, b2 = a[..., 0], a[..., 1], a[..., 2], b[..., 0], b[..., 1], b[..., 2]
    return _moveaxis(numpy.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1), -1, axisc)


def _diff(a, n=1, axis=-1):
    _require(_is_array(a) and type(n) is int and n >= 0)
    axis = _axis_of(axis, a.ndim)
    for _ in range(n):
        after, before = a[_part(axis, 1, None)], a[_part(axis, None, -1)]
        a = after != before if a.dtype == bool else after - before
    return a


def _gradient(f, *spacing, axis=None, edge_order=1):
    """With one distance for each dimension."""
    _require(_is_array(f) and type(edge_order) is int and edge_order in (1, 2))
    axes = list(range(f.ndim)) if axis is None else _axes_of(axis, f.ndim)
    spacing = spacing or (1.0,)
    spacing = spacing * len(axes) if len(spacing) == 1 else spacing
    _require(len(spacing) == len(axes) and all(type(h) in (int, float) and h != 0 for h in spacing))
    _require(all(f.shape[n] > edge_order for n in axes) and f.dtype != bool)
    f = f.astype(numpy.float64) if f.dtype.kind in "iu" else f
    found = [_slopes(f, n, h, edge_order) for n, h in zip(axes, spacing)]
    return found[0] if len(axes) == 1 else tuple(found)


def _slopes(f, axis, h, edge_order):
    def at(i):
        return f[_part(axis, i, i + 1 or None)]

    result = numpy.zeros_like(f)
    result[_part(axis, 1, -1)] = (f[_part(axis, 2, None)] - f[_part(axis, None, -2)]) / (2.0 * h)
    if edge_order == 1:
        first, last = (at(1) - at(0)) / h, (at(-1) - at(-2)) / h
    else:
        first = -1.5 / h * at(0) + 2.0 / h * at(1) + -0.5 / h * at(2)
        last = 0.5 / h * at(-3) + -2.0 / h * at(-2) + 1.5 / h * at(-1)
    result[_part(axis, 0, 1)] = first
    result[_part(axis, -1, None)] = last
    return result


def _divmod(a, b):
    return numpy.floor_divide(a, b), numpy.remainder(a, b)


def _modf(a):
    _require(_is_array(a) and a.dtype.kind == "f")
    whole = numpy.trunc(a)
    return numpy.copysign(a - whole, a), whole


def _ediff1d(a):
    _require(_is_array(a))
    a = a.ravel()
    return numpy.subtract(a[1:], a[:-1])


# Statistics.


def _ptp(a, axis=None):
    _require(_is_array(a))
    return numpy.subtract(a.max(axis), a.min(axis))


def _average(a, axis=None, weights=None, returned=False):
    _require(_is_array(a) and returned is False and (axis is None or type(axis) is int))
    if weights is None:
        return a.mean(axis)
    _require(_is_array(weights) and (a.dtype.kind != "c") and weights.dtype.kind != "c")
    if weights.shape != a.shape:
        _require(axis is not None and weights.ndim == 1)
        axis = _axis_of(axis, a.ndim)
        _require(weights.shape[0] == a.shape[axis])
        weights = weights.reshape(tuple(-1 if n == axis else 1 for n in range(a.ndim)))
    dtype = (a * weights).dtype if a.dtype.kind in "fc" else numpy.float64
    total = weights.sum(axis, dtype=dtype)
    return (a.astype(dtype) * weights.astype(dtype)).sum(axis) / total


def _cov(m, y=None, rowvar=True, bias=False, ddof=None):
    _require(_is_array(m) and m.ndim <= 2 and m.dtype.kind != "c" and type(rowvar) is bool and type(bias) is bool)
    rows = _variables(m, rowvar)
    if y is not None:
        _require(_is_array(y) and y.ndim <= 2 and y.dtype.kind != "c")
        rows = numpy.concatenate((rows, _variables(y, rowvar)), axis=0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    _require(type(ddof) is int and rows.shape[1] > ddof)
    away = rows - rows.mean(1)[:, None]
    return (numpy.dot(away, away.T) * (1 / (rows.shape[1] - ddof))).squeeze()


def _variables(a, rowvar):
    rows = (a if a.ndim == 2 else a[None]).astype(numpy.float64)
    return rows if rowvar or a.ndim == 1 else rows.T


def _corrcoef(x, y=None, rowvar=True):
    c = _cov(x, y, rowvar)
    _require(c.ndim == 2)
    deviations = numpy.sqrt(c.diagonal())
    c = c / deviations[:, None] / deviations[None, :]
    return numpy.clip(c, -1, 1)


# What is not a number.


def _replaced(a, value):
    """As numpy copies it, with another value for what is not a number."""
    _require(_is_array(a))
    if a.dtype.kind in "iub":
        return a
    result = numpy.array(a)
    if a.dtype.kind == "f":
        result[numpy.isnan(a)] = value
    return result


def _nansum(a, axis=None, *, keepdims=False):
    return _replaced(a, 0).sum(axis, keepdims=keepdims)


def _nanprod(a, axis=None, *, keepdims=False):
    return _replaced(a, 1).prod(axis, keepdims=keepdims)


def _nanmax(a, axis=None, *, keepdims=False):
    _require(_is_array(a))
    return (numpy.where(numpy.isnan(a), -numpy.inf, a) if a.dtype.kind == "f" else a).max(axis, keepdims=keepdims)


def _nanmin(a, axis=None, *, keepdims=False):
    _require(_is_array(a))
    return (numpy.where(numpy.isnan(a), numpy.inf, a) if a.dtype.kind == "f" else a).min(axis, keepdims=keepdims)


def _nanmean(a, axis=None, *, keepdims=False):
    _require(_is_array(a))
    if a.dtype.kind != "f":
        return a.mean(axis, keepdims=keepdims)
    return (_replaced(a, 0).sum(axis, keepdims=keepdims) / (~numpy.isnan(a)).sum(axis, keepdims=keepdims)).astype(a.dtype)


def _nanvar(a, axis=None, *, ddof=0, keepdims=False):
    _require(_is_array(a) and type(ddof) is int)
    if a.dtype.kind != "f":
        return a.var(axis, ddof=ddof, keepdims=keepdims)
    missing = numpy.isnan(a)
    away = _replaced(a, 0) - _nanmean(a, axis, keepdims=True)
    away[missing] = 0
    count = numpy.maximum((~missing).sum(axis, keepdims=keepdims) - ddof, 0)  # numpy warns of none, as a division by zero is not followed
    return ((away * away).sum(axis, keepdims=keepdims) / count).astype(a.dtype)


def _nanstd(a, axis=None, *, ddof=0, keepdims=False):
    return numpy.sqrt(_nanvar(a, axis, ddof=ddof, keepdims=keepdims))


def _nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    _require(_is_array(x) and copy is True and x.dtype.kind != "c")
    if x.dtype.kind != "f":
        return numpy.array(x)
    _require(type(nan) in (int, float) and all(end is None or type(end) in (int, float) for end in (posinf, neginf)))
    largest = 3.4028234663852886e38 if x.dtype.itemsize == 4 else 1.7976931348623157e308
    result = numpy.array(x)
    result[numpy.isnan(x)] = nan
    result[x == numpy.inf] = largest if posinf is None else posinf
    result[x == -numpy.inf] = -largest if neginf is None else neginf
    return result


def _nanargmax(a, axis=None):
    _nanmax(a, axis)  # which asks whether there is a number everywhere
    return (numpy.where(numpy.isnan(a), -numpy.inf, a) if _is_float(a) else a).argmax(axis)


def _nanargmin(a, axis=None):
    _nanmin(a, axis)
    return (numpy.where(numpy.isnan(a), numpy.inf, a) if _is_float(a) else a).argmin(axis)


def _nancumsum(a, axis=None):
    return _replaced(a, 0).cumsum(axis)


# Comparisons.


def _isposinf(x):
    _require(_is_float(x))
    return x == numpy.inf


def _isneginf(x):
    _require(_is_float(x))
    return x == -numpy.inf


def _isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    _require(_is_array(a) or _is_array(b))
    numbers = [rtol, atol] + [o for o in (a, b) if not _is_array(o)]
    _require(all(type(o) in (int, float) and o - o == 0 for o in numbers) and type(equal_nan) is bool)
    b = float(b) if type(b) is int else b.astype(numpy.float64) if type(b) is not float and b.dtype.kind in "iub" else b
    result = (abs(a - b) <= atol + rtol * abs(b)) & numpy.isfinite(b) | (a == b)
    if equal_nan and _is_float(a) and _is_float(b):
        result = result | numpy.isnan(a) & numpy.isnan(b)
    return result[()]


def _allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return bool(_isclose(a, b, rtol, atol, equal_nan).all())


def _count_nonzero(a, axis=None, *, keepdims=False):
    _require(_is_array(a))
    count = (a != 0).sum(axis, keepdims=keepdims)
    return count.item() if _COUNTS_ARE_INTS and axis is None and not keepdims else count


def _digitize(x, bins, right=False):
    """For bins that ascend."""
    bins = _array_of(bins)
    _require(_is_array(bins) and bins.ndim == 1 and _is_array(x) and type(right) is bool)
    return numpy.searchsorted(bins, x, side="left" if right else "right")


# Writes.


def _sort_in_place(a, axis=-1):
    a[...] = numpy.sort(a, axis)


def _fill(a, value):
    a[...] = value


def _compress(condition, a, axis=None):
    _require(_is_array(a) and type(condition) in (tuple, list) and all(type(c) is bool for c in condition))
    return a.take([i for i, kept in enumerate(condition) if kept], axis)


def _compressed(a, condition, axis=None):
    return _compress(condition, a, axis)


def _fill_diagonal(a, value, wrap=False):
    _require(_is_array(a) and a.ndim == 2 and wrap is False and (type(value) is not numpy.ndarray))
    a[numpy.eye(a.shape[0], a.shape[1], dtype=bool)] = value


def _put_along_axis(a, indices, values, axis=-1):
    """Of one element along the axis."""
    _require(_is_array(a) and type(indices) is numpy.ndarray and indices.ndim == a.ndim and indices.dtype.kind in "iu")
    axis = _axis_of(axis, a.ndim)
    n = a.shape[axis]
    _require(indices.shape == a.shape[:axis] + (1,) + a.shape[axis + 1:] and indices.dtype == numpy.int64)
    numpy.take_along_axis(a, indices, axis)  # which asks whether they are inside
    places = numpy.arange(n).reshape(tuple(-1 if i == axis else 1 for i in range(a.ndim)))
    here = (places == indices) | (places - n == indices)
    if type(values) is numpy.ndarray:
        _require(values.dtype == a.dtype)
        a[...] = numpy.where(here, values, a)
    else:
        a[here] = values


FOLLOWED = {
    numpy.meshgrid: _meshgrid, numpy.moveaxis: _moveaxis, numpy.rollaxis: _rollaxis, numpy.flip: _flip, numpy.fliplr: _fliplr, numpy.flipud: _flipud,
    numpy.rot90: _rot90, numpy.array_split: _array_split, numpy.split: _split, numpy.hsplit: _hsplit, numpy.vsplit: _vsplit, numpy.dsplit: _dsplit,
    numpy.outer: _outer, numpy.kron: _kron, numpy.cross: _cross, numpy.diff: _diff, numpy.gradient: _gradient, numpy.divmod: _divmod, numpy.modf: _modf,
    numpy.ptp: _ptp, numpy.average: _average, numpy.cov: _cov, numpy.corrcoef: _corrcoef, numpy.nansum: _nansum, numpy.nanargmax: _nanargmax,
    numpy.nanargmin: _nanargmin, numpy.nancumsum: _nancumsum, numpy.isposinf: _isposinf, numpy.isneginf: _isneginf, numpy.ediff1d: _ediff1d,
    numpy.compress: _compress, numpy.ndarray.compress: _compressed, numpy.nanprod: _nanprod, numpy.nanmax: _nanmax, numpy.nanmin: _nanmin,
    numpy.nanmean: _nanmean, numpy.nanvar: _nanvar, numpy.nanstd: _nanstd, numpy.nan_to_num: _nan_to_num, numpy.isclose: _isclose, numpy.allclose: _allclose,
    numpy.count_nonzero: _count_nonzero, numpy.digitize: _digitize, numpy.ndarray.sort: _sort_in_place, numpy.ndarray.fill: _fill,
    numpy.fill_diagonal: _fill_diagonal, numpy.put_along_axis: _put_along_axis,
}
# numpy's own Python, where it calls nothing that is not followed.
for _module, _names in {
    numpy: ("trapezoid", "trapz", "sinc", "angle", "polyval", "array_equal", "isin", "matrix_transpose", "atleast_1d", "atleast_2d", "atleast_3d", "ndim", "shape",
            "size", "resize", "array_equiv"),
    numpy.linalg: ("matrix_power", "matmul", "vector_norm", "outer", "diagonal", "trace"),
}.items():
    for _name in _names:
        _function = getattr(_module, _name, None)
        if hasattr(_function, "_implementation"):
            FOLLOWED[_function] = _function._implementation
if hasattr(numpy, "unstack"):
    FOLLOWED[numpy.unstack] = _unstack

"""What torch computes for functions of numpy beyond the elementwise ones and plain reductions; _arrays.py has these and says what they are given."""

import numpy
import torch


class Refused(Exception):
    """Why a call cannot be followed."""


def _known(holds):
    if not holds:
        raise Refused("is called in a way that is not followed")


def _is_one(axis):
    return axis is None or type(axis) is int


# Orders.


def without_negative_zeros(call, tensor):
    """Of two zeros neither is the first."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.clone())
    if tensor.is_floating_point():
        call.conditions.append((tensor.ne(0) | ~torch.signbit(tensor)).all())


def _numbers_only(call, *tensors):
    for tensor in tensors:
        if tensor.is_floating_point():
            call.conditions.append(~tensor.isnan().any())


def _sorted(call, a, axis):
    """What is sorted, and along which dimension."""
    _known(_is_one(axis))
    tensor = call.real(a)
    _known(tensor.dim() > 0)
    return (tensor.reshape(-1), 0) if axis is None else (tensor, axis % tensor.dim())


def sort(call, a, axis=-1, kind=None):
    tensor, dim = _sorted(call, a, axis)
    without_negative_zeros(call, tensor)
    return torch.sort(tensor, dim).values


def argsort(call, a, axis=-1, kind=None, *, stable=None):
    """Where nothing decides between equal elements there are none."""
    tensor, dim = _sorted(call, a, axis)
    is_stable = kind in ("stable", "mergesort") or stable is True
    _known(kind in (None, "quicksort", "heapsort", "stable", "mergesort") and (is_stable or tensor.dtype is not torch.bool))
    values, places = torch.sort(tensor, dim=dim, stable=True)
    _numbers_only(call, tensor)
    if not is_stable:
        n = tensor.shape[dim] - 1
        call.conditions.append(values.narrow(dim, 0, n).ne(values.narrow(dim, 1, n)).all())
    return places


def median(call, a, axis=None, *, keepdims=False):
    tensor, dim = _sorted(call, a, axis)
    without_negative_zeros(call, tensor)
    _numbers_only(call, tensor)
    n = tensor.shape[dim]
    middle = torch.sort(tensor, dim).values.narrow(dim, (n - 1) // 2, 2 - n % 2).to(call.dtype)
    return call.quiet(middle.mean(dim, True)).reshape(call.expected.shape)


def quantile(scale):
    """numpy.quantile (1) or percentile (100) of numbers that are no data."""

    def values(call, a, q, axis=None, *, method="linear", keepdims=False):
        _known(method == "linear" and isinstance(q, (int, float, tuple, list)))
        places = numpy.asarray(q) if scale == 1 else numpy.true_divide(q, scale)
        tensor, dim = _sorted(call, a, axis)
        without_negative_zeros(call, tensor)
        _numbers_only(call, tensor)
        ordered = torch.sort(tensor, dim).values.movedim(dim, 0)
        virtual = (ordered.shape[0] - 1) * places
        parts = [_between(call, ordered, at.item(), call.dtype) for at in virtual.reshape(-1)]
        return call.quiet(torch.stack(parts)).reshape(call.expected.shape)

    return values


def _between(call, ordered, at, dtype):
    """As numpy._lerp."""
    last = ordered.shape[0] - 1
    if type(at) is int:
        return ordered[at]
    below = min(int(at), last)
    low, high, part = ordered[below], ordered[min(below + 1, last)], at - below
    if not ordered.is_floating_point():
        call.fits(high.to(torch.float64) - low.to(torch.float64), ordered.dtype)
    away = (high - low).to(dtype)
    return high.to(dtype) - away * (1 - part) if part >= 0.5 else low.to(dtype) + away * part


def _ascend(call, tensor):
    call.conditions.append(tensor[1:].ge(tensor[:-1]).all())


def searchsorted(call, a, v, side="left"):
    _known(side in ("left", "right"))
    dtype = numpy.promote_types(call.type_of(a), call.type_of(v))
    ordered, wanted = call.value(a, dtype), call.value(v, dtype)
    _known(not ordered.is_complex() and ordered.dtype is not torch.bool)
    _ascend(call, ordered)
    _numbers_only(call, ordered, wanted)
    return torch.searchsorted(ordered.contiguous(), wanted.contiguous(), right=side == "right")


def interp(call, x, xp, fp, left=None, right=None):
    """Between points that ascend."""
    _known(all(end is None or type(end) in (int, float) for end in (left, right)))
    x, xp, fp = (call.value(o, numpy.dtype(float)) for o in (x, xp, fp))
    _known(xp.dim() == 1 and xp.shape[0] > 1)
    _ascend(call, xp)
    for tensor in (x, xp, fp):
        call.quiet(tensor)
    below = (torch.searchsorted(xp.contiguous(), x.contiguous(), right=True) - 1).clamp(0, xp.shape[0] - 2)
    x0, f0 = xp[below], fp[below]
    slope = (fp[below + 1] - f0) / (xp[below + 1] - x0)
    result = torch.where(x.eq(x0), f0, slope * (x - x0) + f0)
    result = torch.where(x.lt(xp[0]), fp[0] if left is None else float(left), result)
    last = fp[-1] if right is None else float(right)
    return call.quiet(torch.where(x.gt(xp[-1]), last, torch.where(x.eq(xp[-1]), fp[-1], result)))


# Elements at places.


def _inside(call, places, n):
    """Places that data say; numpy raises where they are outside."""
    inside = (places >= -n) & (places < n)
    call.conditions.append(inside.all())
    places = torch.where(inside, places, 0)
    return torch.where(places < 0, places + n, places)


def each_part(tensor, key):
    """A key with an index for each dimension, and for those that it adds."""
    key = key if any(part is Ellipsis for part in key) else (*key, Ellipsis)
    missing = tensor.dim() - sum(part is not None and part is not Ellipsis for part in key)
    return [part for given in key for part in ([slice(None)] * missing if given is Ellipsis else [given])]


def _places(call, tensor, key):
    """A key with arrays of ints as torch takes it. Ints beside them are such arrays too, which torch does not say: they must not be apart."""
    parts, sizes = each_part(tensor, key), iter(tensor.shape)
    at = [i for i, part in enumerate(parts) if part is not None and not isinstance(part, slice)]
    _known(all(type(parts[i]) is not int for i in at) or at == [*range(at[0], at[-1] + 1)])
    for i, part in enumerate(parts):
        size = next(sizes) if part is not None else 1
        if isinstance(part, list):
            constant = numpy.asarray(part)
            _known(constant.dtype.kind == "i")
            parts[i] = torch.tensor((constant % size).tolist(), dtype=torch.int64, device="cpu")
        elif isinstance(part, numpy.ndarray):
            _known(part.ndim > 0 and part.dtype.kind in "iu")
            parts[i] = _inside(call, call.value(part).to(torch.int64), size)
        else:
            _known(part is None or type(part) is int or (isinstance(part, slice) and (part.step is None or part.step > 0)))
    return tuple(parts)


def items(call, tensor, key):
    """Those at the places that arrays of ints say."""
    return tensor[_places(call, tensor, key)]


def write_items(call, tensor, key, value):
    """One value to each of the places, of which any may be said twice."""
    _known(value.dim() == 0)
    tensor[_places(call, tensor, key)] = value


def take(call, a, indices, axis=None):
    _known(_is_one(axis))
    tensor = call.value(a)
    tensor, dim = (tensor.reshape(-1), 0) if axis is None else (tensor, axis)
    if isinstance(indices, numpy.ndarray):
        _known(indices.dtype.kind in "iu")
        places = _inside(call, call.value(indices).to(torch.int64), tensor.shape[dim])
    else:
        constant = numpy.asarray(indices)
        _known(constant.dtype.kind == "i")
        places = torch.tensor((constant % tensor.shape[dim]).tolist(), dtype=torch.int64, device="cpu")
    return tensor.index_select(dim, places.reshape(-1)).reshape(call.expected.shape)


def take_along_axis(call, a, indices, axis=-1):
    _known(_is_one(axis) and isinstance(indices, numpy.ndarray))
    tensor = call.value(a)
    tensor, dim = (tensor.reshape(-1), 0) if axis is None else (tensor, axis)
    return torch.take_along_dim(tensor, _inside(call, call.value(indices).to(torch.int64), tensor.shape[dim]), dim)


def roll(call, a, shift, axis=None):
    tensor = call.value(a)
    if axis is None:
        _known(type(shift) is int)
        return tensor.reshape(-1).roll(shift, 0).reshape(tensor.shape)
    shifts, axes = numpy.broadcast_arrays(shift, axis)
    _known(shifts.dtype.kind == "i" and axes.dtype.kind == "i")
    return tensor.roll(shifts.reshape(-1).tolist(), axes.reshape(-1).tolist())


def select(call, conditions, choices, default=0):
    result = call.value(default, call.expected.dtype)
    for condition, choice in reversed([*zip(conditions, choices)]):
        result = torch.where(call.value(condition), call.value(choice, call.expected.dtype), result)
    return result.expand(call.expected.shape)


def delete(call, a, where, axis=None):
    _known(_is_one(axis))
    tensor = call.value(a)
    tensor, dim = (tensor.reshape(-1), 0) if axis is None else (tensor, axis)
    _known(type(where) in (int, slice, tuple, list))
    kept = numpy.delete(numpy.arange(tensor.shape[dim]), where)
    return tensor.index_select(dim, torch.tensor(kept.tolist(), dtype=torch.int64, device="cpu"))


def insert(call, a, where, value, axis=None):
    """One number, at one place or several."""
    _known(_is_one(axis) and type(where) in (int, slice, tuple, list) and type(value) in (bool, int, float))
    _known(type(value) is not float or call.expected.dtype.kind in "fc")
    tensor = call.value(a)
    tensor, dim = (tensor.reshape(-1), 0) if axis is None else (tensor, axis % tensor.dim())
    places = torch.tensor(numpy.insert(numpy.arange(tensor.shape[dim]), where, -1).tolist(), dtype=torch.int64, device="cpu")
    is_new = places.lt(0).reshape([-1 if n == dim else 1 for n in range(tensor.dim())])
    return torch.where(is_new, call.value(value, call.expected.dtype), tensor.index_select(dim, places.clamp(min=0)))


def pad(call, a, width, mode="constant", **kwargs):
    constants = kwargs.pop("constant_values", 0)
    _known(not kwargs and mode in ("constant", "edge", "reflect", "symmetric", "wrap"))
    tensor = call.value(a)
    widths = numpy.broadcast_to(width, (tensor.dim(), 2)).tolist()
    if mode == "constant":
        _known(type(constants) is int or (type(constants) is float and call.expected.dtype.kind in "fc"))
        flat = [n for pair in reversed(widths) for n in pair]
        filled = torch.nn.functional.pad(torch.zeros_like(tensor, dtype=torch.bool), flat, value=True)
        return torch.where(filled, call.value(constants, call.expected.dtype), torch.nn.functional.pad(tensor, flat))
    for dim, pair in enumerate(widths):
        places = numpy.pad(numpy.arange(tensor.shape[dim]), pair, mode=mode)
        tensor = tensor.index_select(dim, torch.tensor(places.tolist(), dtype=torch.int64, device="cpu"))
    return tensor


# Products.


def _factors(call, a, b):
    _known(call.expected.dtype.kind in "iufc")  # torch multiplies no matrices of bools
    return call.value(a, call.expected.dtype), call.value(b, call.expected.dtype)


def inner(call, a, b):
    a, b = _factors(call, a, b)
    _known(a.dim() > 0 and b.dim() > 0)
    return call.quiet(torch.tensordot(a, b, ([-1], [-1])))


def vdot(call, a, b):
    a, b = _factors(call, a, b)
    return call.quiet(torch.dot(a.reshape(-1), b.reshape(-1)))


def vecdot(call, a, b):
    a, b = _factors(call, a, b)
    return call.quiet((torch.conj_physical(a) * b if a.is_complex() else a * b).sum(-1, dtype=a.dtype))


def tensordot(call, a, b, axes=2):
    a, b = _factors(call, a, b)
    if type(axes) is not int:
        axes = [list(part) if isinstance(part, (tuple, list)) else [part] for part in axes]
    return call.quiet(torch.tensordot(a, b, axes))


def trace(call, a, offset=0, axis1=0, axis2=1):
    return call.quiet(call.value(a).diagonal(offset, axis1, axis2).sum(-1, dtype=call.dtype))


def convolve(turned):
    """numpy.convolve, or correlate, which turns the other one."""

    def values(call, a, v, mode="full" if turned else "valid"):
        a, v = _factors(call, a, v)
        _known(a.dim() == v.dim() == 1 and mode in ("full", "same", "valid") and (turned or not v.is_complex()))
        if v.shape[0] > a.shape[0]:
            _known(turned)
            a, v = v, a
        n, m = a.shape[0], v.shape[0]
        around = torch.nn.functional.pad(a, (m - 1, m - 1)).unfold(0, m, 1)
        whole = torch.matmul(around, v.flip(0) if turned else v)
        start, size = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[mode]
        return call.quiet(whole.narrow(0, start, size))

    return values


# Linear algebra.


def of_matrices(compute):
    """A function of numpy.linalg: in double precision but for float32 and complex64."""

    def values(call, a, *others):
        if not isinstance(a, numpy.ndarray) or a.ndim < 2 or any(not isinstance(o, numpy.ndarray) or o.ndim < 1 for o in others):
            raise Refused("is called in a way that is not followed")
        is_single = call.expected.dtype in (numpy.float32, numpy.complex64)
        is_complex = any(o.dtype.kind == "c" for o in (a, *others))
        dtype = numpy.dtype(("complex64" if is_single else "complex128") if is_complex else "float32" if is_single else "float64")
        return call.quiet(compute(*(_finite(call, call.value(o, dtype)) for o in (a, *others))))

    return values


def svd(call, a, full_matrices=True, compute_uv=True, hermitian=False):
    _known(not compute_uv and hermitian is False)
    return of_matrices(torch.linalg.svdvals)(call, a)


def _finite(call, matrices):
    """LAPACK prints what it thinks of others."""
    call.quiet(matrices)
    return torch.where(torch.isfinite(matrices), matrices, 0)


def norm(call, a, ord=None, axis=None, keepdims=False):
    tensor = call.real(a).to(call.dtype)
    dims = tuple(range(tensor.dim())) if axis is None else axis
    keepdims = bool(keepdims)
    is_vector = type(axis) is int or (axis is None and tensor.dim() == 1)
    if (ord is None and not isinstance(axis, tuple)) or (ord == 2 and is_vector) or (ord == "fro" and tensor.dim() == 2 and axis in (None, (0, 1))):
        return call.quiet((tensor * tensor).sum(dims, keepdims)).sqrt()
    if ord == 1 and is_vector:
        return call.quiet(tensor.abs().sum(dims, keepdims))
    if ord in (numpy.inf, -numpy.inf) and is_vector:
        return call.quiet((torch.amax if ord > 0 else torch.amin)(tensor.abs(), dims, keepdims))
    raise Refused("is of a kind that is not followed")

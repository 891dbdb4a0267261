"""numpy's functions over arrays that a capture follows. numpy itself is called on arrays of the same type and layout, and says all about
the result but its values: its type, shape and strides, whether it is a view, and that there is none. torch computes the values."""

import functools
import operator

import numpy
import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from . import _array_values
from ._array_functions import FOLLOWED, refuse  # noqa: F401
from ._array_values import Refused, each_part, items, without_negative_zeros, write_items

TYPES = {numpy.dtype(name): getattr(torch, name) for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128")}
FRESH, VIEW, SAME, NUMBER = range(4)


class Scalar(numpy.ndarray):
    """In the place of a number of numpy's that data decide."""

    def __new__(cls, type):
        made = super().__new__(cls, (), type)
        made[()] = 1
        return made


class Float(float):
    """In the place of a float of Python's that changes from call to call: its type follows the arrays beside it."""

    def __new__(cls):
        return super().__new__(cls, 1.0)


class Index(int):
    """In the place of an int of Python's that changes from call to call, among the places of an array: what it is in this call, which no graph may keep."""


def scalar(tensor):
    """A number of numpy's, of a graph's result."""
    return tensor.numpy()[()]


def _checked(array):
    known = type(array) in (numpy.ndarray, Scalar) or (isinstance(array, numpy.generic) and type(array) is array.dtype.type)
    if not known or array.dtype not in TYPES or numpy.dtype(array.dtype.name) is not array.dtype:
        raise Refused(f"works on an array of {array.dtype}" if isinstance(array, (numpy.generic, numpy.ndarray)) else f"gives a {type(array).__name__}")
    return array


def is_followed(array):
    """Whether an array of the program can be an input of a graph."""
    try:
        return bool(_checked(array).flags.aligned and all(s >= 0 and s % array.itemsize == 0 for s in array.strides))
    except Refused:
        return False


def strides(array):
    return [s // array.itemsize for s in array.strides]


def whole(array):
    """Shape and strides of the array that a result of numpy is a view of, where it is all of it and nobody else has that; None: it is its own."""
    base = array.base
    if base is None:
        return None
    address = operator.itemgetter("data")
    fits = type(base) is numpy.ndarray and base.base is None and base.dtype is array.dtype and base.nbytes == array.nbytes and base.flags.writeable
    if not fits or address(base.__array_interface__) != address(array.__array_interface__):
        raise Refused("gives a part of an array that nobody else has")
    return base.shape, base.strides


def made(tensor, dtype, strides, base):
    """An array with the values of a graph's result, of its own or as whole() says."""
    values = tensor.numpy()
    owner = base and numpy.ndarray(base[0], dtype, strides=base[1])
    array = numpy.ndarray(values.shape, dtype, owner, strides=strides)
    array[...] = values
    return array


# What follows gets a Call and the arguments as numpy does, and gives a tensor.


class Call:
    def __init__(self, tensors, expected):
        self.tensors, self.expected, self.conditions = tensors, expected, []
        self.dtype, self.shares, self.is_copy = TYPES[expected.dtype], False, False

    def value(self, operand, dtype=None):
        """An operand as a tensor."""
        if isinstance(operand, numpy.ndarray):
            tensor = self.tensors[id(operand)]
            return tensor if dtype is None else tensor.to(TYPES[dtype])
        if isinstance(operand, (tuple, list)) and dtype is not None and operand:
            return torch.stack([self.value(part, dtype) for part in operand])
        if type(operand) is Float:
            if dtype is not None and dtype.kind not in "fc":
                raise Refused("makes an integer of a float, of which numpy may warn")
            return self.quiet(self.tensors[id(operand)].to(TYPES[dtype or numpy.dtype(float)]))
        if type(operand) not in (bool, int, float, complex) and not isinstance(operand, numpy.generic):
            raise Refused(f"is given a {type(operand).__name__}")
        dtype = dtype or numpy.asarray(operand).dtype
        return torch.full((), dtype.type(operand).item(), dtype=TYPES[dtype], device="cpu")

    def type_of(self, operand):
        """numpy's type of an operand."""
        return operand.dtype if isinstance(operand, numpy.ndarray) else numpy.asarray(operand).dtype

    def quiet(self, result):
        """numpy warns of nothing where all that it computed is finite."""
        if result.is_floating_point() or result.is_complex():
            self.conditions.append(torch.isfinite(result).all())
        return result

    def real(self, operand):
        """The value of an operand that is not complex."""
        tensor = self.value(operand)
        if tensor.is_complex():
            raise Refused("orders or squares complex numbers")
        return tensor

    def fits(self, value, dtype):
        """An int, computed in float64, is one of the type; ends that rounding blurs are left out."""
        ends, blur = torch.iinfo(dtype), 4096 if dtype is torch.int64 else 0
        self.conditions.append(((value >= float(ends.min + blur)) & (value <= float(ends.max - blur))).all())

    def cast(self, operand, dtype):
        """An operand in another type. What integers floats become that do not fit is the processor's, and numpy warns of them."""
        tensor, to = self.value(operand), TYPES[dtype]
        if tensor.is_floating_point() and dtype.kind in "iu":
            ends = torch.iinfo(to)
            self.conditions.append(((tensor > float(ends.min - 1)) & (tensor < float(ends.max + 1))).all())
        elif isinstance(operand, Scalar) and dtype.kind in "iu" and tensor.dtype is not torch.bool:
            self.fits(tensor.to(torch.float64), to)  # numpy may raise
        result = tensor.to(to, copy=True)
        return self.quiet(result) if tensor.dtype in (torch.float64, torch.complex128) and to in (torch.float32, torch.complex64) else result

    def extreme(self, compute, a, b):
        """The greater or less of two. Which of two zeros it is depends on the processor, so that there are no two."""
        if a.is_floating_point():
            self.conditions.append((a.ne(b) | torch.signbit(a).eq(torch.signbit(b))).all())
        return compute(a, b)


def _weak(operand):
    return float if type(operand) is Float else type(operand) if type(operand) in (int, float, complex) else numpy.asarray(operand).dtype


def _loop(ufunc, operands):
    types = ufunc.resolve_dtypes((*map(_weak, operands), None))
    if any(t not in TYPES for t in types):
        raise Refused(f"computes in {', '.join(str(t) for t in types)}")
    return types


def _elementwise(ufunc):
    compute, kinds, warns = ELEMENTWISE[ufunc]

    def values(call, *operands):
        types = _loop(ufunc, operands)
        if any(t.kind not in kinds for t in types[:-1]):
            raise Refused(f"computes in {types[0]}")
        if types[-1] != call.expected.dtype:
            raise Refused("has another type by value than by type")
        result = _computed(call, ufunc, operands, types).to(TYPES[types[-1]])
        return call.quiet(result) if warns else result

    return values


def _computed(call, ufunc, operands, types):
    compute = ELEMENTWISE[ufunc][0]
    tensors = [call.value(o, t) for o, t in zip(operands, types)]
    if isinstance(call.expected, numpy.generic) and types[-1].kind in "iu" and ufunc in MAY_OVERFLOW:
        # Of numbers, as opposed to arrays, numpy says that they overflow.
        exact = [t.to(torch.float64) for t in tensors]
        call.fits(compute(call, *exact) if compute in WITH_CONDITIONS else compute(*exact), TYPES[types[-1]])
    return compute(call, *tensors) if compute in WITH_CONDITIONS else compute(*tensors)


def _maximum(call, a, b):
    return call.extreme(torch.maximum, a, b)


def _minimum(call, a, b):
    return call.extreme(torch.minimum, a, b)


def _divided(compute):
    def values(call, a, b):
        if a.is_floating_point():
            result = compute(a, b)
            return torch.where(result.eq(0), torch.copysign(result, b), result) if compute is torch.remainder else result
        never = b.eq(0)  # for which numpy has a warning and the processor a trap
        if a.dtype.is_signed:
            never = never | (a.eq(torch.iinfo(a.dtype).min) & b.eq(-1))
        call.conditions.append(~never.any())
        return compute(a, torch.where(never, 1, b))

    return values


def _negative(a):
    return torch.view_as_complex(torch.view_as_real(a).neg()) if a.is_complex() else a.neg()  # torch gives a zero another sign


def _power(call, a, b):
    if not a.is_floating_point():
        call.conditions.append(b.ge(0).all())  # else numpy raises
        b = b.clamp(min=0)
    return torch.pow(a, b)


def _fmax(call, a, b):
    return call.extreme(torch.fmax, a, b)


def _fmin(call, a, b):
    return call.extreme(torch.fmin, a, b)


def _sign(a):
    return torch.where(a.isnan(), a, torch.sign(a)) if a.is_floating_point() else torch.sign(a)


def _heaviside(a, b):
    return torch.where(a.isnan(), a, torch.heaviside(a, b))


def _cbrt(a):
    """One step of Newton's method from a root that a third of a rounded logarithm gives."""
    wide = a.to(torch.float64)
    size = wide.abs()
    root = size.pow(1 / 3)
    root = torch.where(torch.isfinite(root) & root.ne(0), root - (root * root * root - size) / (3 * root * root), root)
    return torch.copysign(root, wide).to(a.dtype)


_floor_divide, _remainder, _fmod = _divided(torch.floor_divide), _divided(torch.remainder), _divided(torch.fmod)
MAY_OVERFLOW = {numpy.add, numpy.subtract, numpy.multiply, numpy.negative, numpy.absolute, numpy.power, numpy.square}
WITH_CONDITIONS = {_maximum, _minimum, _floor_divide, _remainder, _fmod, _fmax, _fmin, _power}

# By ufunc: torch's function, the kinds of types that it is the same for (those of numpy's loop), and whether numpy may warn.
ELEMENTWISE = {
    numpy.add: (torch.add, "biufc", True), numpy.subtract: (torch.sub, "iufc", True), numpy.multiply: (torch.mul, "biufc", True),
    numpy.true_divide: (torch.true_divide, "fc", True), numpy.square: (torch.square, "iufc", True), numpy.reciprocal: (torch.reciprocal, "f", True),
    numpy.negative: (_negative, "ifc", False), numpy.absolute: (torch.abs, "iufc", True), numpy.positive: (torch.clone, "iufc", False),
    numpy.conjugate: (lambda a: torch.conj_physical(a) if a.is_complex() else a.clone(), "iufc", False),
    numpy.fabs: (torch.abs, "f", False), numpy.sqrt: (torch.sqrt, "f", True), numpy.exp: (torch.exp, "fc", True),
    numpy.exp2: (torch.exp2, "f", True), numpy.expm1: (torch.expm1, "f", True), numpy.log: (torch.log, "f", True),
    numpy.log2: (torch.log2, "f", True), numpy.log10: (torch.log10, "f", True), numpy.log1p: (torch.log1p, "f", True),
    numpy.sin: (torch.sin, "f", True), numpy.cos: (torch.cos, "f", True), numpy.tan: (torch.tan, "f", True),
    numpy.sinh: (torch.sinh, "f", True), numpy.cosh: (torch.cosh, "f", True), numpy.tanh: (torch.tanh, "f", True),
    numpy.arcsin: (torch.asin, "f", True), numpy.arccos: (torch.acos, "f", True), numpy.arctan: (torch.atan, "f", True),
    numpy.arctan2: (torch.atan2, "f", True), numpy.hypot: (torch.hypot, "f", True), numpy.power: (_power, "iuf", True),
    numpy.logaddexp: (torch.logaddexp, "f", True), numpy.copysign: (torch.copysign, "f", False),
    numpy.floor: (torch.floor, "iuf", False), numpy.ceil: (torch.ceil, "iuf", False), numpy.trunc: (torch.trunc, "iuf", False),
    numpy.sign: (_sign, "iuf", True), numpy.cbrt: (_cbrt, "f", False), numpy.deg2rad: (torch.deg2rad, "f", True), numpy.radians: (torch.deg2rad, "f", True),
    numpy.rad2deg: (torch.rad2deg, "f", True), numpy.degrees: (torch.rad2deg, "f", True), numpy.heaviside: (_heaviside, "f", True),
    numpy.fmax: (_fmax, "biuf", False), numpy.fmin: (_fmin, "biuf", False), numpy.fmod: (_fmod, "iuf", True), numpy.float_power: (torch.pow, "f", True),
    numpy.arcsinh: (torch.asinh, "f", True), numpy.arccosh: (torch.acosh, "f", True), numpy.arctanh: (torch.atanh, "f", True),
    numpy.logaddexp2: (torch.logaddexp2, "f", True), numpy.nextafter: (torch.nextafter, "f", True),
    numpy.gcd: (lambda a, b: torch.gcd(a, b).abs(), "iu", False),
    numpy.rint: (torch.round, "f", False), numpy.maximum: (_maximum, "biuf", False), numpy.minimum: (_minimum, "biuf", False),
    numpy.equal: (torch.eq, "biufc", False), numpy.not_equal: (torch.ne, "biufc", False), numpy.less: (torch.lt, "biuf", False),
    numpy.less_equal: (torch.le, "biuf", False), numpy.greater: (torch.gt, "biuf", False), numpy.greater_equal: (torch.ge, "biuf", False),
    numpy.logical_and: (torch.logical_and, "biuf", False), numpy.logical_or: (torch.logical_or, "biuf", False),
    numpy.logical_xor: (torch.logical_xor, "biuf", False), numpy.logical_not: (torch.logical_not, "biuf", False),
    numpy.bitwise_and: (torch.bitwise_and, "biu", False), numpy.bitwise_or: (torch.bitwise_or, "biu", False),
    numpy.bitwise_xor: (torch.bitwise_xor, "biu", False), numpy.invert: (torch.bitwise_not, "biu", False),
    numpy.floor_divide: (_floor_divide, "iuf", True), numpy.remainder: (_remainder, "iuf", True),
    numpy.isnan: (torch.isnan, "biufc", False), numpy.isinf: (torch.isinf, "biufc", False), numpy.isfinite: (torch.isfinite, "biufc", False),
    numpy.signbit: (torch.signbit, "f", False),
}


def _dims(tensor, axis):
    return tuple(range(tensor.dim())) if axis is None else axis


def _reduction(compute):
    def values(call, a, axis=None, *, dtype=None, keepdims=False):
        if dtype is not None and call.type_of(a).kind == "f" and call.expected.dtype.kind != "f":
            raise Refused("makes integers of floats before it adds")
        tensor = call.real(a) if compute in (torch.amax, torch.amin) else call.value(a)
        if compute in (torch.amax, torch.amin):
            without_negative_zeros(call, tensor)
        return call.quiet(compute(tensor.to(call.dtype), _dims(tensor, axis), bool(keepdims)))

    return values


def _truth(compute):
    def values(call, a, axis=None, *, keepdims=False):
        if isinstance(axis, tuple):
            raise Refused("reduces over several dimensions")
        tensor = call.value(a).ne(0)
        return compute(tensor, axis, bool(keepdims)) if axis is not None else compute(tensor).reshape(call.expected.shape)

    return values


def _prod(call, a, axis=None, *, keepdims=False):
    tensor = call.value(a).to(call.dtype)
    return call.quiet(tensor.prod(axis, bool(keepdims)) if isinstance(axis, int) else tensor.prod().reshape(call.expected.shape) if axis is None else None)


def _variance(call, a, axis=None, *, ddof=0, keepdims=False, root=False):
    tensor = call.real(a).to(call.dtype)
    dims = _dims(tensor, axis)
    away = tensor - tensor.mean(dims, True)
    total = (away * away).sum(dims, bool(keepdims))
    count = tensor.numel() // total.numel() - ddof
    if type(ddof) is not int or count <= 0:
        raise Refused("divides by the number of elements and another one")
    result = call.quiet(total / count)
    return result.sqrt() if root else result


def _place(compute):
    def values(call, a, axis=None, *, keepdims=False):
        tensor = call.real(a)
        if tensor.is_floating_point():
            call.conditions.append(~tensor.isnan().any())
        tensor = tensor.to(torch.uint8) if tensor.dtype is torch.bool else tensor
        return compute(tensor, axis, bool(keepdims)) if axis is not None else compute(tensor.reshape(-1)).reshape(call.expected.shape)

    return values


def _running(compute):
    def values(call, a, axis=None):
        tensor = call.value(a)
        tensor, dim = (tensor.reshape(-1), 0) if axis is None else (tensor, axis)
        if compute is torch.cumsum and tensor.numel():
            without_negative_zeros(call, tensor.narrow(dim, 0, 1))  # torch begins with a zero that is none
        return call.quiet(compute(tensor, dim, dtype=call.dtype))

    return values


def _where(call, condition, a, b):
    return torch.where(call.value(condition).ne(0), call.value(a, call.expected.dtype), call.value(b, call.expected.dtype))


def _clip(call, a, low=None, high=None, *, min=None, max=None):
    """As numpy has it: the least of the greater ones."""
    low, high = min if low is None else low, max if high is None else high
    call.real(a)
    dtype, result = call.expected.dtype, call.value(a, call.expected.dtype)
    result = result if low is None else call.extreme(torch.maximum, result, call.value(low, dtype))
    return result if high is None else call.extreme(torch.minimum, result, call.value(high, dtype))


def _astype(call, a, dtype=None, *, copy=True):
    return call.cast(a, call.expected.dtype)


def _array(call, data, dtype=None, *, copy=True):
    """numpy.array, of nested lists too."""
    if not isinstance(data, (tuple, list)):
        return _astype(call, data)
    return call.value(data, call.expected.dtype) if dtype is None else None


def _joined(compute):
    def values(call, arrays, axis=0):
        return compute([call.value(a, call.expected.dtype) for a in arrays], axis)

    return values


def _beside(call, arrays):
    """numpy.hstack."""
    parts = [torch.atleast_1d(call.value(a, call.expected.dtype)) for a in arrays]
    return torch.cat(parts, 0 if parts[0].dim() == 1 else 1)


def _below(call, arrays):
    """numpy.vstack."""
    return torch.cat([torch.atleast_2d(call.value(a, call.expected.dtype)) for a in arrays])


def _joined_parts(compute):
    """numpy.column_stack, dstack."""
    return lambda call, arrays: compute([call.value(a, call.expected.dtype) for a in arrays])


def _append(call, a, values, axis=None):
    parts = call.value(a, call.expected.dtype), call.value(values, call.expected.dtype)
    return torch.cat([part.reshape(-1) for part in parts] if axis is None else parts, axis or 0)


def _round(call, a, decimals=0):
    tensor = call.real(a)
    if decimals != 0:
        return None
    return torch.round(tensor) if tensor.is_floating_point() else tensor.clone()


def _repeat(call, a, repeats, axis=None):
    if type(repeats) is not int:
        return None
    tensor = call.value(a)
    return torch.repeat_interleave(tensor.reshape(-1) if axis is None else tensor, repeats, 0 if axis is None else axis)


def _tile(call, a, reps):
    reps = reps if isinstance(reps, (tuple, list)) else (reps,)
    return torch.tile(call.value(a), tuple(reps)) if all(type(n) is int for n in reps) else None


def _matmul(call, a, b):
    types = _loop(numpy.matmul, (a, b))
    if types[0].kind == "b":
        raise Refused("multiplies matrices of bools, which torch does not")
    return call.quiet(torch.matmul(call.value(a, types[0]), call.value(b, types[1])))


def _filled(call, a, value, dtype=None):
    to = call.expected.dtype
    return (call.cast(value, to) if isinstance(value, (numpy.ndarray, Scalar)) else call.value(value, to)).expand(call.expected.shape)


def _reshape(call, a, *shape):
    if any(type(n) is not int for part in shape for n in (part if isinstance(part, tuple) else (part,))):
        raise Refused("is called in a way that is not followed")
    tensor = call.value(a)
    return tensor.view(call.expected.shape) if call.shares else tensor.reshape(call.expected.shape)


def _transpose(call, a, *axes):
    tensor = call.value(a)
    axes = axes[0] if len(axes) == 1 else axes
    return tensor.permute(tuple(axes) if axes else tuple(reversed(range(tensor.dim()))))


def _dot(call, a, b):
    if numpy.ndim(a) == 0 or numpy.ndim(b) == 0:
        return VALUES[numpy.multiply](call, a, b)
    return _matmul(call, a, b) if max(numpy.ndim(a), numpy.ndim(b)) <= 2 else None


def _item(call, a, key):
    if not call.shares and any(_is_places(part) for part in (key if isinstance(key, tuple) else (key,))):
        return items(call, call.value(a), key if isinstance(key, tuple) else (key,))
    for part in key if isinstance(key, tuple) else (key,):
        if not (part is None or part is Ellipsis or type(part) in (int, Index) or isinstance(part, slice)):
            raise Refused(f"is given a {type(part).__name__} as an index")
    return _turned(call, *_at_symbols(call, call.value(a), key if isinstance(key, tuple) else (key,)))


def _at_symbols(call, tensor, key):
    """A tensor and a key without ints that change: as many elements from one on are a part of the tensor. Where the int decides how many, it is a constant."""
    symbol = lambda part: call.tensors[id(part)] if type(part) is Index else part  # noqa: E731
    constant = lambda part: int(symbol(part)) if type(part) is Index else part  # noqa: E731
    if all(type(end) is not Index for part in key for end in ((part.start, part.stop, part.step) if isinstance(part, slice) else (part,))):
        return tensor, key
    left, d = [], 0
    for part in each_part(tensor, key):
        if type(part) is Index:
            place = symbol(part)
            tensor = tensor.select(d, place + tensor.shape[d] if place < 0 else place)
            continue
        if isinstance(part, slice):
            start, stop = symbol(part.start), symbol(part.stop)
            count = None if part.step not in (None, 1) or start is None or stop is None else stop - start
            if type(count) is int and count > 0 and start >= 0 and stop <= tensor.shape[d]:
                tensor, part = tensor.narrow(d, start, count), slice(None)
            else:
                part = slice(*map(constant, (part.start, part.stop, part.step)))
        elif type(part) is int:
            tensor = tensor.select(d, part)
            continue
        left.append(part)
        d += part is not None
    return tensor, tuple(left)


def _is_places(part):
    return isinstance(part, list) or (isinstance(part, numpy.ndarray) and part.ndim > 0 and part.dtype.kind in "iu")


def _turned(call, tensor, key):
    """The elements at a key, which may go backwards: of these no tensor is a view."""
    parts = each_part(tensor, key)
    sizes, turned, to = iter(tensor.shape), [], 0
    for i, part in enumerate(parts):
        size = next(sizes) if part is not None else 1
        if isinstance(part, slice) and part.step is not None and part.step < 0:
            places = range(size)[part]
            parts[i] = slice(places[-1], places[0] + 1, -part.step) if places else slice(0, 0)
            turned.append(to)
        to += type(part) is not int
    call.is_copy = bool(turned)
    return tensor[tuple(parts)].flip(turned) if turned else tensor[tuple(parts)]


def _part(call, a, name):
    """a.real, a.imag: a view, but of numbers that are not complex, whose imaginary part is zeros of its own that nobody may write to."""
    tensor = call.value(a)
    if not tensor.is_complex():
        return tensor if name == "real" else torch.zeros_like(tensor)
    return torch.real(tensor) if name == "real" else torch.imag(tensor)  # calls that a graph can hold


def _transformed(compute, shifts=False, inverse=False):
    """A function of numpy.fft."""
    def values(call, a, *args, **kwargs):
        tensor = call.value(a)
        if shifts:
            return compute(tensor, *args, **kwargs)
        single = call.expected.dtype.itemsize == (8 if call.expected.dtype.kind == "c" else 4)
        # Of real numbers torch's inverse gives the conjugate of another tensor.
        is_complex = tensor.is_complex() or inverse
        narrow, wide = (torch.complex64, torch.complex128) if is_complex else (torch.float32, torch.float64)
        return call.quiet(compute(tensor.to(narrow if single else wide), *args, **kwargs))

    return values


def _einsum(call, equation, *operands):
    if not isinstance(equation, str) or call.expected.dtype.kind not in "fc":
        raise Refused("is called in a way that is not followed")
    return call.quiet(torch.einsum(equation, *(call.value(a, call.expected.dtype) for a in operands)))


VIEWS = {
    getattr: _part,
    operator.getitem: _item, numpy.ndarray.reshape: _reshape, numpy.ndarray.ravel: lambda call, a: _reshape(call, a),
    numpy.ndarray.transpose: _transpose, numpy.ndarray.swapaxes: lambda call, a, i, j: call.value(a).transpose(i, j),
    numpy.ndarray.diagonal: lambda call, a, offset=0, axis1=0, axis2=1: call.value(a).diagonal(offset, axis1, axis2),
    numpy.broadcast_to: lambda call, a, shape: call.value(a).expand(shape),
    numpy.ndarray.squeeze: lambda call, a, axis=None: call.value(a).view(call.expected.shape) if call.shares else None,
}
# Functions that call a method of their first argument. A view is made again by a call of C code, which nobody follows.
METHODS = {getattr(numpy, name): getattr(numpy.ndarray, name) for name in (
    "reshape", "ravel", "transpose", "swapaxes", "squeeze", "diagonal", "trace", "take", "argsort", "searchsorted")}

VALUES = {
    numpy.matmul: _matmul, operator.matmul: _matmul, numpy.where: _where, numpy.clip: _clip, numpy.ndarray.clip: _clip,
    numpy.ndarray.astype: _astype, numpy.array: _array, numpy.asarray: _array, numpy.asanyarray: _array, numpy.ascontiguousarray: _astype,
    numpy.dot: _dot, numpy.ndarray.dot: _dot, numpy.linalg.norm: _array_values.norm,
    numpy.concatenate: _joined(torch.cat), numpy.stack: _joined(torch.stack), numpy.hstack: _beside, numpy.vstack: _below,
    numpy.round: _round, numpy.ndarray.round: _round, numpy.repeat: _repeat, numpy.ndarray.repeat: _repeat, numpy.tile: _tile,
    numpy.copy: lambda call, a: call.value(a).clone(), numpy.ndarray.copy: lambda call, a: call.value(a).clone(),
    numpy.ndarray.flatten: lambda call, a: call.value(a).reshape(-1).clone(),
    numpy.zeros_like: lambda call, a, dtype=None: _filled(call, a, 0), numpy.ones_like: lambda call, a, dtype=None: _filled(call, a, 1),
    numpy.full_like: _filled, numpy.einsum: _einsum,
}
for _name in ("fft", "ifft", "rfft", "irfft"):
    VALUES[getattr(numpy.fft, _name)] = _transformed(lambda a, n=None, axis=-1, norm=None, f=getattr(torch.fft, _name): f(a, n, axis, norm), inverse=_name.startswith("i"))
for _name in ("fft2", "ifft2", "rfft2", "irfft2"):
    VALUES[getattr(numpy.fft, _name)] = _transformed(lambda a, s=None, axes=(-2, -1), norm=None, f=getattr(torch.fft, _name): f(a, s, axes, norm), inverse=_name.startswith("i"))
for _name in ("fftn", "ifftn", "rfftn", "irfftn"):
    VALUES[getattr(numpy.fft, _name)] = _transformed(lambda a, s=None, axes=None, norm=None, f=getattr(torch.fft, _name): f(a, s, axes, norm), inverse=_name.startswith("i"))
for _name in ("fftshift", "ifftshift"):
    VALUES[getattr(numpy.fft, _name)] = _transformed(lambda a, axes=None, f=getattr(torch.fft, _name): f(a, axes), shifts=True)
# Functions that make arrays of tensors as numpy.asarray does, and give arrays. Those that call a method of what they are given, or wrap what they give
# in its class, do not.
OF_TENSORS = {numpy.asarray, numpy.stack, numpy.concatenate, numpy.where, numpy.ones_like, numpy.zeros_like, numpy.full_like, numpy.sort, numpy.linalg.norm,
              numpy.einsum, *(getattr(numpy.fft, name) for name in ("fft", "ifft", "rfft", "irfft", "fft2", "fftn", "ifftn"))}
for _names, _values in {
    ("sum",): _reduction(torch.sum), ("mean",): _reduction(torch.mean), ("max", "amax"): _reduction(torch.amax), ("min", "amin"): _reduction(torch.amin),
    ("any",): _truth(torch.any), ("all",): _truth(torch.all), ("prod",): _prod, ("var",): _variance, ("std",): functools.partial(_variance, root=True),
    ("argmax",): _place(torch.argmax), ("argmin",): _place(torch.argmin), ("cumsum",): _running(torch.cumsum), ("cumprod",): _running(torch.cumprod),
}.items():
    for _name in _names:
        VALUES[getattr(numpy, _name)] = _values
        if hasattr(numpy.ndarray, _name):
            VALUES[getattr(numpy.ndarray, _name)] = _values
VALUES.update({getattr(numpy, name): getattr(_array_values, name) for name in (
    "sort", "argsort", "median", "searchsorted", "interp", "take", "take_along_axis", "roll", "select", "pad", "inner", "vdot", "vecdot",
    "tensordot", "trace", "delete", "insert") if hasattr(numpy, name)})
VALUES.update({
    numpy.quantile: _array_values.quantile(1), numpy.percentile: _array_values.quantile(100), numpy.convolve: _array_values.convolve(True),
    numpy.correlate: _array_values.convolve(False), numpy.triu: lambda call, a, k=0: call.value(a).triu(k), numpy.tril: lambda call, a, k=0: call.value(a).tril(k),
    numpy.diagflat: lambda call, a, k=0: torch.diagflat(call.value(a), k), numpy.column_stack: _joined_parts(torch.column_stack),
    numpy.dstack: _joined_parts(torch.dstack), numpy.append: _append, numpy.linalg.inv: _array_values.of_matrices(torch.linalg.inv),
    numpy.linalg.det: _array_values.of_matrices(torch.linalg.det), numpy.linalg.solve: _array_values.of_matrices(torch.linalg.solve),
    numpy.linalg.cholesky: _array_values.of_matrices(torch.linalg.cholesky), numpy.linalg.eigvalsh: _array_values.of_matrices(torch.linalg.eigvalsh),
    numpy.linalg.svdvals: _array_values.of_matrices(torch.linalg.svdvals), numpy.linalg.svd: _array_values.svd,
    numpy.linalg.pinv: _array_values.of_matrices(lambda a: torch.linalg.pinv(a, rtol=1e-15, atol=0)),
})
VALUES.update({getattr(numpy.ndarray, name): getattr(_array_values, name) for name in ("argsort", "searchsorted", "take", "trace")})
VALUES.update((ufunc, _elementwise(ufunc)) for ufunc in ELEMENTWISE)
VALUES[numpy.ndarray.conj] = VALUES[numpy.ndarray.conjugate] = VALUES[numpy.conjugate]
VALUES.update((dtype.type, _astype) for dtype in TYPES)
for _method, _values in [*VALUES.items()]:
    if getattr(numpy.ndarray, _method.__name__, None) is _method and hasattr(numpy.generic, _method.__name__):
        VALUES[getattr(numpy.generic, _method.__name__)] = _values

OF_PLACES = {operator.getitem, numpy.ndarray.take, numpy.take_along_axis}
OF_MATRICES = {getattr(numpy.linalg, name) for name in ("inv", "det", "solve", "cholesky", "eigvalsh", "svdvals", "svd", "pinv")}


def _regular(array):
    """As an array, with values that numpy.linalg has nothing to say about."""
    made = numpy.zeros_like(array)
    if array.ndim > 1:
        made[...] = numpy.eye(*array.shape[-2:])
    return made


# Operators of Python, as numpy has them for arrays.
OPERATORS = {
    operator.add: numpy.add, operator.sub: numpy.subtract, operator.mul: numpy.multiply, operator.truediv: numpy.true_divide, operator.pow: numpy.power,
    operator.and_: numpy.bitwise_and, operator.or_: numpy.bitwise_or, operator.xor: numpy.bitwise_xor, operator.neg: numpy.negative,
    operator.pos: numpy.positive, operator.invert: numpy.invert, abs: numpy.absolute, operator.eq: numpy.equal, operator.ne: numpy.not_equal,
    operator.floordiv: numpy.floor_divide, operator.mod: numpy.remainder, operator.lt: numpy.less, operator.le: numpy.less_equal,
    operator.gt: numpy.greater, operator.ge: numpy.greater_equal,
}
VALUES.update((function, VALUES[ufunc]) for function, ufunc in OPERATORS.items())
IN_PLACE = {
    operator.iadd: numpy.add, operator.isub: numpy.subtract, operator.imul: numpy.multiply, operator.itruediv: numpy.true_divide,
    operator.ifloordiv: numpy.floor_divide, operator.imod: numpy.remainder, operator.ipow: numpy.power, operator.iand: numpy.bitwise_and,
    operator.ior: numpy.bitwise_or, operator.ixor: numpy.bitwise_xor,
}
# What computes with a float of Python's as a value, whatever it is.
TAKE_FLOATS = {*ELEMENTWISE, *OPERATORS, *IN_PLACE, operator.setitem, numpy.where, numpy.clip, numpy.ndarray.clip, numpy.full_like}

# Functions that are the same for arrays without elements.
OF_NOTHING = {
    getattr, operator.getitem, numpy.ndarray.reshape, numpy.ndarray.ravel, numpy.ndarray.transpose, numpy.ndarray.swapaxes, numpy.concatenate, numpy.stack,
    numpy.hstack, numpy.vstack, numpy.append, numpy.array, numpy.asarray, numpy.copy, numpy.ndarray.copy, numpy.ndarray.flatten, numpy.ndarray.astype,
    numpy.zeros_like, numpy.ones_like, numpy.full_like, numpy.where, numpy.broadcast_to,
    *(getattr(owner, name) for owner in (numpy, numpy.ndarray) for name in ("sum", "prod", "any", "all", "cumsum", "cumprod")), *ELEMENTWISE, *OPERATORS, *IN_PLACE,
    operator.setitem,
}


def _numbers(args):
    for arg in args:
        if isinstance(arg, (numpy.ndarray, numpy.generic, complex)):
            yield arg
        elif isinstance(arg, (tuple, list)):
            yield from _numbers(arg)


def _arrays(args):
    for arg in args:
        if isinstance(arg, numpy.ndarray):
            yield arg
        elif isinstance(arg, (tuple, list)):
            yield from _arrays(arg)


def _real(arg):
    if isinstance(arg, (tuple, list)):
        return type(arg)(map(_real, arg))
    return arg.dtype.type(1) if isinstance(arg, Scalar) else 1.0 if type(arg) is Float else arg


def _call(function, *args, **kwargs):
    """What numpy gives, of which only the values mean nothing."""
    try:
        with numpy.errstate(all="ignore"):
            return function(*map(_real, args), **kwargs)
    except Exception as error:
        raise Refused(f"raises {type(error).__name__}") from None


def _drops_imaginary(function, args, kwargs):
    """Whether numpy makes real numbers of complex ones, of which it warns."""
    if all(numpy.asarray(a).dtype.kind != "c" for a in _numbers(args)):
        return False
    to = kwargs.get("dtype")
    if function is operator.setitem:
        to = args[0].dtype
    elif isinstance(function, type):
        to = function
    elif function in (numpy.ndarray.astype, numpy.generic.astype, numpy.array, numpy.asarray, numpy.asanyarray, numpy.ascontiguousarray) and len(args) > 1:
        to = args[1]
    elif function in (numpy.ones_like, numpy.zeros_like, numpy.full_like) and to is None:
        to = args[0].dtype
    return to is not None and numpy.dtype(to).kind != "c"


def _like(tensor, expected):
    """The tensor with numpy's shape, type and layout."""
    if tuple(tensor.shape) != expected.shape:
        raise Refused("has no function of torch that gives the same shape")
    tensor = tensor.to(TYPES[expected.dtype])
    if list(tensor.stride()) != strides(expected):
        tensor = torch.empty_strided(expected.shape, strides(expected), dtype=tensor.dtype, device="cpu").copy_(tensor)
    return tensor


# Where numpy gives a view that no tensor is, the graph has a copy, made again for each use. By the copy: what it was copied from, and how. While there is
# one, numpy writes to no memory that may be the same.
_COPIES = WeakIdKeyDictionary()
_SHARED = WeakIdKeyDictionary()  # tensors whose memory tensors of the program are too
_MADE = WeakIdKeyDictionary()  # tensors of arrays that the graph makes


def _memory(tensor):
    return tensor.untyped_storage()._cdata


def _has_memory_of(tensor, others):
    return any(_memory(tensor) == _memory(other) for other in others)


def _is_copied(tensor):
    return bool(_COPIES) and (tensor in _COPIES or _has_memory_of(tensor, [source for source, _ in _COPIES.values()]))


def _require_no_copies(tensor):
    if _is_copied(tensor) or (_COPIES and not _has_memory_of(tensor, _MADE)):
        raise Refused("writes to memory that may be seen backwards")


def _again(tensor):
    """A copy as it is now."""
    if not _COPIES or tensor not in _COPIES:
        return tensor
    source, copy = _COPIES[tensor]
    return copy(_again(source))


def _noted_copy(function, args, kwargs, expected, tensor, source):
    """A view that no tensor is: of memory that is no tensor's of the program, which may write to it."""
    base = args[0]
    while isinstance(base, numpy.ndarray):
        base = base.base
    if isinstance(base, torch.Tensor) or _has_memory_of(source, _SHARED):
        raise Refused("gives a view backwards of a tensor's memory")

    def copy(source):
        call = Call({id(args[0]): source}, expected)
        call.shares = True
        return VIEWS[function](call, *args, **kwargs)

    _COPIES[tensor] = source, copy


def _written(function, args, tensors):
    """Writes to the first argument."""
    target = args[0]
    _require_no_copies(tensors[id(target)])
    if not target.flags.writeable or 0 in target.strides:
        raise Refused("writes to an array that must not be written to")
    tried = (_first_places(args[1]), *args[2:]) if function is operator.setitem else args[1:]
    _call(function, target.copy(order="K"), *tried)
    call = Call(tensors, target)
    tensor = tensors[id(target)]
    if function is operator.setitem:
        value = args[2]
        if isinstance(value, numpy.ndarray):
            value = call.quiet(call.cast(_checked(value), target.dtype))
        elif type(value) in (float, Float) and target.dtype.kind in "iu":
            raise Refused("makes an integer of a float, of which numpy may warn")
        else:
            value = call.value(value, target.dtype)
        key = args[1]
        if isinstance(key, numpy.ndarray) and key.dtype.kind == "b" and key.ndim:
            if value.dim():
                raise Refused("writes several values where a mask is true")
            mask = call.value(key)
            tensor.copy_(torch.where(mask.reshape(*mask.shape, *[1] * (target.ndim - key.ndim)), value, tensor))
        elif any(_is_places(part) for part in (key if isinstance(key, tuple) else (key,))):
            write_items(call, tensor, key if isinstance(key, tuple) else (key,), value)
        else:
            call.shares = True
            place = _item(call, target, key)
            if call.is_copy:
                raise Refused("writes backwards")
            place.copy_(value.reshape(value.shape[max(value.dim() - place.dim(), 0):]))
    else:
        _write(call, IN_PLACE[function], args, target)
    return target, tensor, SAME, call.conditions


def _write(call, ufunc, operands, target):
    """What a ufunc gives, to an array."""
    types = ufunc.resolve_dtypes((*map(_weak, operands), target.dtype))
    if any(t not in TYPES for t in types) or any(t.kind not in ELEMENTWISE[ufunc][1] for t in types[:-1]):
        raise Refused(f"computes in {types[0]}")
    result = _computed(call, ufunc, operands, types)
    result = call.quiet(result) if ELEMENTWISE[ufunc][2] else result
    call.tensors[id(target)].copy_(call.quiet(result.to(TYPES[target.dtype])))


def _written_out(function, args, out, tensors):
    if not isinstance(out, numpy.ndarray) or function not in ELEMENTWISE or not out.flags.writeable or 0 in out.strides:
        raise Refused("writes to what it is given as out")
    if _call(function, *args, out=out.copy(order="K")).shape != out.shape:
        raise Refused("writes to an array of another shape")
    _require_no_copies(tensors[id(out)])
    call = Call(tensors, _checked(out))
    _write(call, function, args, out)
    return out, tensors[id(out)], SAME, call.conditions


def _is_of(array, other):
    """Whether an array is a view of another one, or of what that is a view of."""
    return numpy.may_share_memory(array, other) if array.size else array.base is not None and (array.base is other or array.base is other.base)


def _first_places(key):
    """A key without places that data say, whose values mean nothing."""
    if isinstance(key, tuple):
        return tuple(map(_first_places, key))
    return numpy.zeros_like(key) if isinstance(key, numpy.ndarray) and key.dtype.kind in "iu" else key


def _applied(function, args, kwargs, tensors):
    if _drops_imaginary(function, args, kwargs):
        raise Refused("drops an imaginary part, of which it warns")
    if function is operator.setitem or function in IN_PLACE:
        return _written(function, args, tensors)
    sources, tensors = tensors, {key: _again(tensor) for key, tensor in tensors.items()}
    values = VIEWS.get(function) or VALUES.get(function)
    if values is None:
        raise Refused("has no function of torch that is known to be the same")
    if set(kwargs) == {"out"}:
        out = kwargs["out"]
        return _written_out(function, args, out[0] if isinstance(out, tuple) and len(out) == 1 else out, tensors)
    if any(isinstance(v, numpy.ndarray) for v in kwargs.values()):
        raise Refused("is given an array by keyword")
    if function not in OF_NOTHING and any(a.size == 0 for a in _arrays(args)):
        raise Refused("works on an array without elements")
    tried = args
    if function in OF_PLACES:
        tried = args[0], _first_places(args[1]), *args[2:]
    elif function in OF_MATRICES:
        tried = tuple(_regular(a) for a in args)
    expected = _call(function, *tried, **kwargs)
    if function not in OF_NOTHING and numpy.size(expected) == 0:
        raise Refused("gives an array without elements")
    if isinstance(expected, numpy.generic):
        if expected.dtype.kind == "c":
            raise Refused("gives a complex number")
        call = Call(tensors, _checked(expected))
        tensor = values(call, *args, **kwargs)
        if tensor is None or tensor.dim():
            raise Refused("is called in a way that is not followed")
        return None, tensor.to(call.dtype), NUMBER, call.conditions
    if any(expected is a for a in args):
        return expected, tensors[id(expected)], SAME, ()
    call = Call(tensors, _checked(expected))
    call.shares = any(_is_of(expected, a) for a in _arrays(args))
    if function is getattr:
        if sources[id(args[0])] in _COPIES:
            raise Refused("is asked for a part of the numbers of a view backwards")
        return expected, _part(call, *args), VIEW, ()
    if call.shares and (function not in VIEWS or kwargs):
        raise Refused("gives a view")
    if not call.shares:
        whole(expected)
    tensor = values(call, *args, **kwargs)
    if tensor is None:
        raise Refused("is called in a way that is not followed")
    if not call.shares:
        result = _like(tensor.clone() if function in VIEWS else tensor, expected)
        _MADE[result] = True
        return expected, result, FRESH, call.conditions
    if tuple(tensor.shape) == expected.shape and (call.is_copy or sources[id(args[0])] in _COPIES):
        _noted_copy(function, args, kwargs, expected, tensor, sources[id(args[0])])
        return expected, tensor, VIEW, call.conditions
    differs = [i for i, n in enumerate(expected.shape) if n > 1 and tensor.stride(i) != strides(expected)[i]]
    if tuple(tensor.shape) != expected.shape or differs:
        raise Refused("gives a view that no tensor is")
    return expected, tensor, VIEW, call.conditions


def apply(function, args, kwargs, tensors):
    """(array, tensor, FRESH, VIEW or SAME, a tensor of a bool that says that numpy does not warn, a call of C code that gives the same), or a text:
    why not. `tensors`: by the id of each array among the arguments."""
    try:
        for array in _arrays(args):
            _checked(array)
        if function is numpy.expand_dims and not kwargs and len(args) == 2 and type(args[1]) in (int, tuple):
            shape = _call(function, *args).shape
            function, args = numpy.ndarray.reshape, (args[0], shape)
        if function in (numpy.real, numpy.imag) and len(args) == 1:
            function, args = getattr, (args[0], function.__name__)
        if function is numpy.diag and isinstance(args[0], numpy.ndarray) and not kwargs:
            function = numpy.ndarray.diagonal if args[0].ndim == 2 else numpy.diagflat
        function = METHODS.get(function, function) if args and isinstance(args[0], numpy.ndarray) else function
        if function is numpy.ndarray.reshape:
            args = tuple(tuple(arg) if isinstance(arg, list) else arg for arg in args)
        with numpy.errstate(all="raise"):  # a number of the program that does not fit a type
            array, tensor, kind, conditions = _applied(function, args, kwargs, tensors)
    except Refused as why:
        return str(why)
    except (TypeError, ValueError, OverflowError, FloatingPointError) as error:
        return f"is called in a way that is not followed ({error})"
    condition = torch.stack(conditions).all() if len(conditions) > 1 else conditions[0] if conditions else None
    return array, tensor, kind, condition, function, args


class _Recording(TorchFunctionMode):
    """Writes down the calls that give tensors."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if any(isinstance(part, torch.Tensor) for part in (result if isinstance(result, (tuple, list)) else (result,))):
            self.calls.append((function, args, kwargs or {}, result))
        return result


def recorded(calls, function, *args):
    """function(*args); `calls` gets (function, arguments, keywords, result) of each call of torch's that it makes."""
    with _Recording(calls):
        return function(*args)


def both(condition, other):
    return condition.logical_and(other)


def as_bytes(truth):
    """What torch.Tensor.__array_wrap__ makes of one that numpy gives."""
    return truth.to(torch.uint8)


MOST_CONSTANTS = 1 << 16


def constant(array):
    """What numpy made of constants, as a tensor of the graph; a text: why not."""
    try:
        expected, first = _checked(array), array.reshape(-1)[:1]
        whole(array)
        if not array.flags.writeable:
            raise Refused("is read-only")
        if array.size == 0:
            tensor = torch.zeros(array.shape, dtype=TYPES[array.dtype], device="cpu")
        elif array.tobytes() == first.tobytes() * array.size:
            tensor = torch.full(array.shape, first.item(), dtype=TYPES[array.dtype], device="cpu")
        elif array.size > MOST_CONSTANTS:
            raise Refused("has many constants")
        else:
            tensor = torch.tensor(array.tolist(), dtype=TYPES[array.dtype], device="cpu")
        result = _like(tensor, expected)
        _MADE[result] = True
        return result
    except Refused as why:
        return str(why)


def tensor_of_numbers(tensors, dtype, device):
    """torch.tensor of a list of numbers of one type; None: it would convert some."""
    return torch.stack(tensors).to(device) if {t.dtype for t in tensors} == {dtype or tensors[0].dtype} else None


def tensor_of(function, array, tensor, dtype, device):
    """torch.from_numpy, as_tensor or tensor of an array; a text: why not."""
    if isinstance(array, numpy.ndarray) and any(stride < 0 for stride in array.strides):
        return "is given an array that is seen backwards, which torch does not take"
    if function is torch.tensor:
        return tensor.to(dtype or tensor.dtype, copy=True).to(device)
    if _is_copied(tensor):
        return "is given an array that is seen backwards"
    if not array.flags.writeable:
        return "is given an array that must not be written to"
    _SHARED[tensor] = True
    return tensor.detach() if dtype in (None, tensor.dtype) and device is None else tensor.to(device=device, dtype=dtype)


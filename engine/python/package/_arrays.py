"""numpy's functions over arrays that a capture follows. numpy itself is called on arrays of the same type and layout, and says all about
the result but its values: its type, shape and strides, whether it is a view, and that there is none. torch computes the values."""

import operator

import numpy
import torch

TYPES = {numpy.dtype(name): getattr(torch, name) for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")}
FRESH, VIEW, SAME = range(3)


class Refused(Exception):
    """Why a call cannot be followed."""


def _checked(array):
    if type(array) is not numpy.ndarray or array.dtype not in TYPES or numpy.dtype(array.dtype.name) is not array.dtype:
        raise Refused(f"works on {'a number' if isinstance(array, numpy.generic) else f'an array of {array.dtype}'}"
                      if isinstance(array, (numpy.generic, numpy.ndarray)) else f"gives a {type(array).__name__}")
    if array.size == 0:
        raise Refused("works on an array without elements")
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
        self.dtype = TYPES[expected.dtype]

    def value(self, operand, dtype=None):
        """An operand as a tensor."""
        if isinstance(operand, numpy.ndarray):
            tensor = self.tensors[id(operand)]
            return tensor if dtype is None else tensor.to(TYPES[dtype])
        if type(operand) not in (bool, int, float) and not isinstance(operand, numpy.generic):
            raise Refused(f"is given a {type(operand).__name__}")
        dtype = dtype or numpy.asarray(operand).dtype
        return torch.full((), dtype.type(operand).item(), dtype=TYPES[dtype], device="cpu")

    def quiet(self, result):
        """numpy warns of nothing where all that it computed is finite."""
        if result.is_floating_point():
            self.conditions.append(torch.isfinite(result).all())
        return result


    def extreme(self, compute, a, b):
        """The greater or less of two. Which of two zeros it is depends on the processor, so that there are no two."""
        if a.is_floating_point():
            self.conditions.append((a.ne(b) | torch.signbit(a).eq(torch.signbit(b))).all())
        return compute(a, b)


def _weak(operand):
    return type(operand) if type(operand) in (int, float) else numpy.asarray(operand).dtype


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
        tensors = [call.value(o, t) for o, t in zip(operands, types)]
        result = call.extreme(compute, *tensors) if compute in (torch.maximum, torch.minimum) else compute(*tensors)
        result = result.to(TYPES[types[-1]])
        return call.quiet(result) if warns else result

    return values


# By ufunc: torch's function, the kinds of types that it is the same for (those of numpy's loop), and whether numpy may warn.
ELEMENTWISE = {
    numpy.add: (torch.add, "biuf", True), numpy.subtract: (torch.sub, "iuf", True), numpy.multiply: (torch.mul, "biuf", True),
    numpy.true_divide: (torch.true_divide, "f", True), numpy.square: (torch.square, "iuf", True), numpy.reciprocal: (torch.reciprocal, "f", True),
    numpy.negative: (torch.neg, "if", False), numpy.absolute: (torch.abs, "iuf", False), numpy.positive: (torch.clone, "iuf", False),
    numpy.fabs: (torch.abs, "f", False), numpy.sqrt: (torch.sqrt, "f", True), numpy.exp: (torch.exp, "f", True),
    numpy.exp2: (torch.exp2, "f", True), numpy.expm1: (torch.expm1, "f", True), numpy.log: (torch.log, "f", True),
    numpy.log2: (torch.log2, "f", True), numpy.log10: (torch.log10, "f", True), numpy.log1p: (torch.log1p, "f", True),
    numpy.sin: (torch.sin, "f", True), numpy.cos: (torch.cos, "f", True), numpy.tan: (torch.tan, "f", True),
    numpy.sinh: (torch.sinh, "f", True), numpy.cosh: (torch.cosh, "f", True), numpy.tanh: (torch.tanh, "f", True),
    numpy.arcsin: (torch.asin, "f", True), numpy.arccos: (torch.acos, "f", True), numpy.arctan: (torch.atan, "f", True),
    numpy.arctan2: (torch.atan2, "f", True), numpy.hypot: (torch.hypot, "f", True), numpy.power: (torch.pow, "f", True),
    numpy.logaddexp: (torch.logaddexp, "f", True), numpy.copysign: (torch.copysign, "f", False),
    numpy.floor: (torch.floor, "f", False), numpy.ceil: (torch.ceil, "f", False), numpy.trunc: (torch.trunc, "f", False),
    numpy.rint: (torch.round, "f", False), numpy.maximum: (torch.maximum, "biuf", False), numpy.minimum: (torch.minimum, "biuf", False),
    numpy.equal: (torch.eq, "biuf", False), numpy.not_equal: (torch.ne, "biuf", False), numpy.less: (torch.lt, "biuf", False),
    numpy.less_equal: (torch.le, "biuf", False), numpy.greater: (torch.gt, "biuf", False), numpy.greater_equal: (torch.ge, "biuf", False),
    numpy.logical_and: (torch.logical_and, "biuf", False), numpy.logical_or: (torch.logical_or, "biuf", False),
    numpy.logical_xor: (torch.logical_xor, "biuf", False), numpy.logical_not: (torch.logical_not, "biuf", False),
    numpy.bitwise_and: (torch.bitwise_and, "biu", False), numpy.bitwise_or: (torch.bitwise_or, "biu", False),
    numpy.bitwise_xor: (torch.bitwise_xor, "biu", False), numpy.invert: (torch.bitwise_not, "biu", False),
    numpy.isnan: (torch.isnan, "f", False), numpy.isinf: (torch.isinf, "f", False), numpy.isfinite: (torch.isfinite, "f", False),
    numpy.signbit: (torch.signbit, "f", False),
}


def _dims(tensor, axis):
    return tuple(range(tensor.dim())) if axis is None else axis


def _reduction(compute):
    def values(call, a, axis=None, *, keepdims=False):
        tensor = call.value(a)
        if compute in (torch.amax, torch.amin) and tensor.is_floating_point():
            call.conditions.append((tensor.ne(0) | ~torch.signbit(tensor)).all())  # as in extreme()
        return call.quiet(compute(tensor.to(call.dtype), _dims(tensor, axis), bool(keepdims)))

    return values


def _truth(compute):
    def values(call, a, axis=None, *, keepdims=False):
        if not isinstance(axis, int):
            raise Refused("reduces over several dimensions")
        return compute(call.value(a).ne(0), axis, bool(keepdims))

    return values


def _where(call, condition, a, b):
    return torch.where(call.value(condition).ne(0), call.value(a, call.expected.dtype), call.value(b, call.expected.dtype))


def _clip(call, a, low, high):
    """As numpy has it: the least of the greater ones."""
    dtype, result = call.expected.dtype, call.value(a, call.expected.dtype)
    result = result if low is None else call.extreme(torch.maximum, result, call.value(low, dtype))
    return result if high is None else call.extreme(torch.minimum, result, call.value(high, dtype))


def _astype(call, a, dtype=None, *, copy=True):
    tensor, to = call.value(a), call.dtype
    if tensor.is_floating_point() and not to.is_floating_point and to is not torch.bool:
        raise Refused("makes integers of floats, of which numpy may warn")
    result = tensor.to(to, copy=True)
    return call.quiet(result) if tensor.dtype is torch.float64 and to is torch.float32 else result


def _joined(compute):
    def values(call, arrays, axis=0):
        return compute([call.value(a, call.expected.dtype) for a in arrays], axis)

    return values


def _matmul(call, a, b):
    types = _loop(numpy.matmul, (a, b))
    return call.quiet(torch.matmul(call.value(a, types[0]), call.value(b, types[1])))


def _reshape(call, a, *shape):
    if any(type(n) is not int for part in shape for n in (part if isinstance(part, tuple) else (part,))):
        raise Refused("is called in a way that is not followed")
    tensor = call.value(a)
    return tensor.view(call.expected.shape) if call.shares else tensor.reshape(call.expected.shape)


def _transpose(call, a, *axes):
    tensor = call.value(a)
    axes = axes[0] if len(axes) == 1 else axes
    return tensor.permute(tuple(axes) if axes else tuple(reversed(range(tensor.dim()))))


def _item(call, a, key):
    for part in key if isinstance(key, tuple) else (key,):
        if not (part is None or part is Ellipsis or type(part) is int or (isinstance(part, slice) and (part.step is None or part.step > 0))):
            raise Refused(f"is given {'a step backwards' if isinstance(part, slice) else f'a {type(part).__name__}'} as an index")
    return call.value(a)[key]


VIEWS = {
    operator.getitem: _item, numpy.ndarray.reshape: _reshape, numpy.ndarray.ravel: lambda call, a: _reshape(call, a),
    numpy.ndarray.transpose: _transpose, numpy.ndarray.swapaxes: lambda call, a, i, j: call.value(a).transpose(i, j),
    numpy.ndarray.squeeze: lambda call, a, axis=None: call.value(a).view(call.expected.shape) if call.shares else None,
}
# Functions that call a method of their first argument. A view is made again by a call of C code, which nobody follows.
METHODS = {getattr(numpy, name): getattr(numpy.ndarray, name) for name in ("reshape", "ravel", "transpose", "swapaxes", "squeeze")}

VALUES = {
    numpy.matmul: _matmul, operator.matmul: _matmul, numpy.where: _where, numpy.clip: _clip, numpy.ndarray.clip: _clip,
    numpy.ndarray.astype: _astype, numpy.array: _astype, numpy.asarray: _astype, numpy.asanyarray: _astype, numpy.ascontiguousarray: _astype,
    numpy.concatenate: _joined(torch.cat), numpy.stack: _joined(torch.stack),
    numpy.copy: lambda call, a: call.value(a).clone(), numpy.ndarray.copy: lambda call, a: call.value(a).clone(),
    numpy.ndarray.flatten: lambda call, a: call.value(a).reshape(-1).clone(),
    numpy.zeros_like: lambda call, a: torch.zeros_like(call.value(a)), numpy.ones_like: lambda call, a: torch.ones_like(call.value(a)),
}
for _names, _values in {
    ("sum",): _reduction(torch.sum), ("mean",): _reduction(torch.mean), ("max", "amax"): _reduction(torch.amax), ("min", "amin"): _reduction(torch.amin),
    ("any",): _truth(torch.any), ("all",): _truth(torch.all),
}.items():
    for _name in _names:
        VALUES[getattr(numpy, _name)] = _values
        if hasattr(numpy.ndarray, _name):
            VALUES[getattr(numpy.ndarray, _name)] = _values
VALUES.update((ufunc, _elementwise(ufunc)) for ufunc in ELEMENTWISE)

# Operators of Python, as numpy has them for arrays.
OPERATORS = {
    operator.add: numpy.add, operator.sub: numpy.subtract, operator.mul: numpy.multiply, operator.truediv: numpy.true_divide, operator.pow: numpy.power,
    operator.and_: numpy.bitwise_and, operator.or_: numpy.bitwise_or, operator.xor: numpy.bitwise_xor, operator.neg: numpy.negative,
    operator.pos: numpy.positive, operator.invert: numpy.invert, abs: numpy.absolute, operator.eq: numpy.equal, operator.ne: numpy.not_equal,
    operator.lt: numpy.less, operator.le: numpy.less_equal, operator.gt: numpy.greater, operator.ge: numpy.greater_equal,
}
VALUES.update((function, VALUES[ufunc]) for function, ufunc in OPERATORS.items())
IN_PLACE = {operator.iadd: numpy.add, operator.isub: numpy.subtract, operator.imul: numpy.multiply, operator.itruediv: numpy.true_divide}


def _arrays(args):
    for arg in args:
        if isinstance(arg, numpy.ndarray):
            yield arg
        elif isinstance(arg, (tuple, list)):
            yield from _arrays(arg)


def _call(function, *args, **kwargs):
    """What numpy gives, of which only the values mean nothing."""
    try:
        with numpy.errstate(all="ignore"):
            return function(*args, **kwargs)
    except Exception as error:
        raise Refused(f"raises {type(error).__name__}") from None


def _like(tensor, expected):
    """The tensor with numpy's shape, type and layout."""
    if tuple(tensor.shape) != expected.shape:
        raise Refused("has no function of torch that gives the same shape")
    tensor = tensor.to(TYPES[expected.dtype])
    if list(tensor.stride()) != strides(expected):
        tensor = torch.empty_strided(expected.shape, strides(expected), dtype=tensor.dtype, device="cpu").copy_(tensor)
    return tensor


def _written(function, args, tensors):
    """Writes to the first argument."""
    target = args[0]
    if not target.flags.writeable or 0 in target.strides:
        raise Refused("writes to an array that must not be written to")
    _call(function, target.copy(order="K"), *args[1:])
    call = Call(tensors, target)
    tensor = tensors[id(target)]
    if function is operator.setitem:
        value = args[2]
        place = _item(call, target, args[1])
        source = numpy.asarray(value).dtype if type(value) in (bool, int, float) or isinstance(value, numpy.generic) else _checked(value).dtype
        if source.kind == "f" and target.dtype.kind in "iu":
            raise Refused("makes integers of floats, of which numpy may warn")
        if isinstance(value, numpy.ndarray):
            value = call.value(value, target.dtype)
            if source.kind == "f":
                call.quiet(value)
            value = value.reshape(value.shape[max(value.dim() - place.dim(), 0):])
            place.copy_(value)
        else:
            place.copy_(call.value(value, target.dtype))
    else:
        ufunc = IN_PLACE[function]
        types = ufunc.resolve_dtypes((*map(_weak, args), target.dtype))
        if any(t not in TYPES for t in types) or any(t.kind not in ELEMENTWISE[ufunc][1] for t in types):
            raise Refused(f"computes in {types[0]}")
        result = call.quiet(ELEMENTWISE[ufunc][0](*(call.value(o, t) for o, t in zip(args, types))))
        tensor.copy_(call.quiet(result.to(TYPES[target.dtype])))
    return target, tensor, SAME, call.conditions


def _applied(function, args, kwargs, tensors):
    if function is operator.setitem or function in IN_PLACE:
        return _written(function, args, tensors)
    values = VIEWS.get(function) or VALUES.get(function)
    if values is None:
        raise Refused("has no function of torch that is known to be the same")
    if any(isinstance(v, numpy.ndarray) for v in kwargs.values()):
        raise Refused("is given an array by keyword")
    expected = _call(function, *args, **kwargs)
    if isinstance(expected, numpy.generic):
        raise Refused("gives a number that data decide")
    if any(expected is a for a in args):
        return expected, tensors[id(expected)], SAME, ()
    call = Call(tensors, _checked(expected))
    call.shares = any(numpy.may_share_memory(expected, a) for a in _arrays(args))
    if call.shares and (function not in VIEWS or kwargs):
        raise Refused("gives a view")
    if not call.shares:
        whole(expected)
    tensor = values(call, *args, **kwargs)
    if tensor is None:
        raise Refused("is called in a way that is not followed")
    if not call.shares:
        return expected, _like(tensor.clone() if function in VIEWS else tensor, expected), FRESH, call.conditions
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
        if function is numpy.expand_dims and not kwargs and len(args) == 2 and type(args[1]) is int:
            shape = _call(function, *args).shape
            function, args = numpy.ndarray.reshape, (args[0], shape)
        function = METHODS.get(function, function)
        with numpy.errstate(all="raise"):  # a number of the program that does not fit a type
            array, tensor, kind, conditions = _applied(function, args, kwargs, tensors)
    except Refused as why:
        return str(why)
    except (TypeError, ValueError, OverflowError, FloatingPointError) as error:
        return f"is called in a way that is not followed ({error})"
    condition = torch.stack(conditions).all() if len(conditions) > 1 else conditions[0] if conditions else None
    return array, tensor, kind, condition, function, args


MOST_CONSTANTS = 1 << 16


def constant(array):
    """What numpy made of constants, as a tensor of the graph; a text: why not."""
    try:
        expected, first = _checked(array), array.reshape(-1)[:1]
        whole(array)
        if not array.flags.writeable:
            raise Refused("is read-only")
        if array.tobytes() == first.tobytes() * array.size:
            tensor = torch.full(array.shape, first.item(), dtype=TYPES[array.dtype], device="cpu")
        elif array.size > MOST_CONSTANTS:
            raise Refused("has many constants")
        else:
            tensor = torch.tensor(array.tolist(), dtype=TYPES[array.dtype], device="cpu")
        return _like(tensor, expected)
    except Refused as why:
        return str(why)


def tensor_of(function, array, tensor, dtype):
    """torch.from_numpy, as_tensor or tensor of an array; a text: why not."""
    if function is torch.tensor:
        return tensor.to(dtype or tensor.dtype, copy=True)
    if not array.flags.writeable:
        return "is given an array that must not be written to"
    return tensor.detach() if dtype in (None, tensor.dtype) else tensor.to(dtype)


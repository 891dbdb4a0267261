"""numpy's arrays in compiled functions: everything about a result that plain numpy decides."""

import warnings

import numpy as np
import torch

from . import script

TYPES = ("bool", "uint8", "int16", "int32", "int64", "float32", "float64")


def facts(value):
    """What a person can observe of a value of numpy's."""
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [facts(v) for v in value]
    if isinstance(value, np.ndarray):
        flags = value.flags.writeable, value.base is None
        return type(value).__name__, str(value.dtype), value.shape, value.strides, flags, repr(value.tolist())
    if isinstance(value, np.generic):
        return type(value).__name__, str(value.dtype), repr(value.item())
    return type(value).__name__, repr(value)


def outcome(f, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = f(*args)
        except Exception as error:
            result = type(error).__name__, str(error)
        said = [(w.category.__name__, str(w.message)) for w in caught if issubclass(w.category, RuntimeWarning)]
    arrays = isinstance(result, np.ndarray)
    shared = [arrays and isinstance(a, np.ndarray) and np.shares_memory(result, a) for a in args]
    return facts(result), said, shared, [result is a for a in args], [facts(a) for a in args]


def array(generator, dtype, shape=(3, 4)):
    return (generator.standard_normal(shape) * 3).astype(dtype)


def layouts(a):
    return a, np.asfortranarray(a), a[::2], a[:, ::-1], a.T, np.broadcast_to(a[0], a.shape)


@script
def arithmetic_of_types(compile):
    @compile
    def f(a, b):
        return a + b, a * 2, b - 1.5, np.maximum(a, b), a > b, np.sqrt(np.abs(b)), a / 3

    g = np.random.default_rng(0)
    return [outcome(f, array(g, s), array(g, t)) for s, t in zip(TYPES, TYPES[2:] + TYPES[:2])]


@script
def layouts_of_arrays(compile):
    @compile
    def f(a):
        return np.exp(a), a.sum(axis=0), a.reshape(-1), a[1:], a.copy(), np.where(a > 0, a, 0), a.mean()

    return [outcome(f, a) for a in layouts(array(np.random.default_rng(1), "float32"))]


@script
def views_and_writes(compile):
    @compile
    def view(a):
        return a[1:, ::2]

    @compile
    def same(a):
        a += 1
        return a

    @compile
    def out(a, b):
        return np.add(a, 1, out=b)

    g = np.random.default_rng(2)
    results = [outcome(f, a.copy(order="K")) for f in (view, same) for a in layouts(array(g, "float64"))]
    a = array(g, "float32")
    return results, [outcome(out, a, np.empty(a.shape, t)) for t in ("float32", "float64", "int32")], outcome(out, a, a)


@script
def errors_and_warnings(compile):
    @compile
    def f(a, b):
        return np.log(a) @ b

    g = np.random.default_rng(3)
    a = np.abs(array(g, "float64")) + 1
    return [outcome(f, *args) for args in ((a, a), (a, a.T), (a - a, a.T), (-a, a.T), (a, "text"))]


@script
def scalars(compile):
    @compile
    def f(a):
        return a[0, 1], a.sum(), a.max(), np.float32(2) * a[0, 0], a[0] @ a[1], a.dtype.type(3)

    return [outcome(f, array(np.random.default_rng(4), t)) for t in TYPES[1:]]


@script
def warnings_of_constants(compile):
    """Each call warns as numpy does, under whatever np.errstate there is, also where nothing but constants is computed with."""
    small, large = np.float32(1e-38), np.float32(1e38)

    def product(x):
        return x * float(large * np.float32(10)), np.int8(100) + np.int8(100)

    def function(x):
        return x * float(np.divide(1.0, 0)), np.exp(1000.0), np.float32(1e39)

    def whole(x):
        return x, np.floor_divide(1, 0), -np.int8(-128), abs(np.int8(-128))

    def tiny(x):
        return x, small * small

    def quiet(x):
        return x * float(np.sqrt(2.0)), np.float32(3) * np.float32(4), np.complex64(1j)

    def cut(x):
        return x, np.abs(3 + 4j), np.add(1j, 1, dtype=np.complex64)

    results = []
    for f in (product, function, whole, tiny, quiet, cut):
        g = compile(f)
        for state in ("warn", "ignore", "raise", "warn"):
            with np.errstate(all=state):
                results.append(outcome(g, torch.ones(2)))
    return results

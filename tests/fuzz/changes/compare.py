"""Whether two worlds look the same: values, types, layouts, aliases, and which object is which."""

import collections
import enum
import functools
import re
import sys
import types
import weakref

import numpy
import torch

from .worlds import OF_WORLD

ATOMS = (int, float, complex, str, bytes, bool, type(None), type(...), type(NotImplemented), torch.dtype, torch.device, torch.layout,
         torch.memory_format, range, slice)
INTERNAL = {"__module__", "__dict__", "__weakref__", "__doc__", "__abstractmethods__", "_abc_impl", "__qualname__", "__match_args__",
            "__annotations__", "__firstlineno__", "__static_attributes__", "__parameters__", "__orig_bases__", "__dataclass_params__",
            "_backward_cls"}
OF_TORCH = {"_torchdynamo_wrapper_id", "_torch_dynamo_tracer_output",  # attributes that name objects of the process
            "t_id",                                                       # or count them: sizes of nested tensors
            "_dynamo_weak_dynamic_indices"}                               # and that these leave for torch's own compiler
WORLD = "world"


class Difference(Exception):
    """Says where two worlds differ: the message begins with the path."""


def fail(path, text):
    raise Difference(f"{path}: {text}")


def describe(value):
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) < 160 else text[:160] + "…"


def is_of_world(thing):
    """Whether a class or function was made by the program's file."""
    return getattr(thing, "__module__", None) == WORLD


def is_made(cls):
    """Whether a class was made by the program, or for it (as torch.nn.utils.parametrize does)."""
    home = sys.modules.get(cls.__module__)
    return is_of_world(cls) or getattr(home, cls.__qualname__, None) is not cls


class Comparison:
    """One walk through both worlds at once. `eager` and `compiled` objects are matched one to one. `is_cast`: float32 may come from bfloat16."""

    def __init__(self, limit=4000, is_cast=False):
        self.is_cast = is_cast
        self.matched, self.matched_back, self.kept = {}, {}, []
        self.storages, self.storages_back = {}, {}
        self.limit = limit

    def pair(self, a, b, path):
        """True if these are met for the first time; raises if one of them was met with another."""
        known, back = self.matched.get(id(a)), self.matched_back.get(id(b))
        if known is None and back is None:
            self.matched[id(a)], self.matched_back[id(b)] = (id(b), path), (id(a), path)
            self.kept.append((a, b))
            return True
        if known is None or known[0] != id(b):
            first = (known or back)[1]
            fail(path, f"identity: is {first} in {'eager' if known else 'compiled'}, another object in the other")
        return False

    def walk(self, a, b, path):
        if isinstance(a, ATOMS) and not isinstance(a, enum.Enum):
            return self.atom(a, b, path)
        if type(a) is not type(b):
            if not (is_made(type(a)) and is_made(type(b)) and type(a).__qualname__ == type(b).__qualname__):
                fail(path, f"type {type(a).__name__} in eager, {type(b).__name__} compiled: {describe(a)} and {describe(b)}")
            self.walk(type(a), type(b), f"type({path})")
        if len(self.kept) > self.limit:
            return
        for kind, compare in KINDS:
            if isinstance(a, kind):
                return compare(self, a, b, path)
        self.instance(a, b, path)

    def atom(self, a, b, path):
        if type(a) is not type(b):
            fail(path, f"type {type(a).__name__} in eager, {type(b).__name__} compiled: {describe(a)} and {describe(b)}")
        if a == b and (not isinstance(a, float) or str(a) == str(b)) or a != a and b != b:
            return
        if isinstance(a, (float, complex, numpy.inexact)) and abs(a - b) <= 1e-4 * max(abs(a), 1):
            return
        if isinstance(a, str) and same_text(a, b):
            return
        fail(path, f"{describe(a)} in eager, {describe(b)} compiled")

    def sequence(self, a, b, path):
        if not self.pair(a, b, path) and type(a) is not tuple:
            return
        if len(a) != len(b):
            fail(path, f"{len(a)} elements in eager, {len(b)} compiled: {describe(a)} and {describe(b)}")
        for i, (x, y) in enumerate(zip(list(a), list(b))):
            self.walk(x, y, f"{path}[{i}]")
        self.attributes(a, b, path)

    def small_tuple(self, a, b, path):
        # Equal tuples may be one object or several: who can tell them apart by `is` gets what CPython's constants give.
        if len(a) != len(b):
            fail(path, f"{len(a)} elements in eager, {len(b)} compiled: {describe(a)} and {describe(b)}")
        for i, (x, y) in enumerate(zip(a, b)):
            self.walk(x, y, f"{path}[{i}]")

    def mapping(self, a, b, path):
        if not self.pair(a, b, path):
            return
        self.items(a, b, path)
        self.attributes(a, b, path)

    def items(self, a, b, path):
        keys, others = list(a), list(b)
        if len(keys) != len(others):
            fail(path, f"keys {describe(keys)} in eager, {describe(others)} compiled")
        for k, other in zip(keys, others):
            self.walk(k, other, f"key of {path}")
            self.walk(dict.__getitem__(a, k) if isinstance(a, dict) else a[k],
                      dict.__getitem__(b, other) if isinstance(b, dict) else b[other],
                      f"{path}[{k!r}]" if isinstance(k, ATOMS) else f"{path}[…]")

    def set(self, a, b, path):
        if not self.pair(a, b, path):
            return
        if all(isinstance(k, ATOMS) for k in a):
            if list(map(repr, a)) != list(map(repr, b)):
                fail(path, f"{describe(list(a))} in eager, {describe(list(b))} compiled")
        elif len(a) != len(b):
            fail(path, f"{len(a)} elements in eager, {len(b)} compiled")

    def tensor(self, a, b, path):
        if not self.pair(a, b, path):
            return
        for name, read in TENSOR_FACTS:
            x, y = read(a), read(b)
            if x != y:
                fail(path, f"{name} {x} in eager, {y} compiled")
        if a.layout is not torch.strided or a.is_nested or a.device.type == "meta" or torch._C._functorch.is_functorch_wrapped_tensor(a):
            return
        if not has_memory(a) and not has_memory(b):  # of a class that keeps its tensors as attributes
            self.attributes(a, b, path)
            return
        p, q = a.untyped_storage(), b.untyped_storage()
        if p.nbytes() and q.nbytes():
            x, y = p.data_ptr(), q.data_ptr()
            if self.storages.setdefault(x, (y, path))[0] != y:
                fail(path, f"alias: shares memory with {self.storages[x][1]} in eager, not compiled")
            if self.storages_back.setdefault(y, (x, path))[0] != x:
                fail(path, f"alias: shares memory with {self.storages_back[y][1]} compiled, not in eager")
        self.elements(a.detach(), b.detach(), path)
        if a.is_leaf and a.requires_grad:
            self.walk(a.grad, b.grad, path + ".grad")
        self.attributes(a, b, path)

    def elements(self, a, b, path):
        """Loosely: how exact numbers are is asked elsewhere."""
        if torch.equal(a, b):
            return
        x, y = a.to(torch.complex128), b.to(torch.complex128)
        largest = x.abs().nan_to_num(0, 0).max().item()
        is_short = a.dtype in (torch.float16, torch.bfloat16) or self.is_cast and a.dtype == torch.float32
        if is_short and (x - y).norm() <= 5e-2 * x.norm():  # a rounding that opens one gate of a rectifier changes what lies around it
            return
        if not torch.allclose(x, y, rtol=3e-2 if is_short else 1e-3, atol=1e-2 * largest + 1e-3, equal_nan=True):
            fail(path, f"values {describe(a.tolist())} in eager, {describe(b.tolist())} compiled")

    def function(self, a, b, path):
        if not is_of_world(a) and not a.__code__.co_filename == b.__code__.co_filename:
            return self.outside(a, b, path)
        if a is b or not self.pair(a, b, path):
            return
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            self.walk(getattr(a, name), getattr(b, name), f"{path}.{name}")
        self.walk(a.__defaults__, b.__defaults__, path + ".__defaults__")
        self.walk(a.__kwdefaults__, b.__kwdefaults__, path + ".__kwdefaults__")
        if (a.__code__.co_code, own_names(a.__code__)) != (b.__code__.co_code, own_names(b.__code__)):
            fail(path, "other code")
        for i, (x, y) in enumerate(zip(a.__closure__ or (), b.__closure__ or ())):
            self.walk(x, y, f"{path}.__closure__[{i}]")
        self.attributes(a, b, path)
        for name in names_of(a.__code__):
            if name in a.__globals__ or name in b.__globals__:
                self.walk(a.__globals__.get(name), b.__globals__.get(name), f"g[{name!r}]")

    def cell(self, a, b, path):
        if self.pair(a, b, path):
            self.walk(content(a), content(b), path + ".cell_contents")

    def method(self, a, b, path):
        self.walk(a.__self__, b.__self__, path + ".__self__")
        self.walk(a.__func__, b.__func__, path + ".__func__")

    def partial(self, a, b, path):
        if self.pair(a, b, path):
            for name in ("func", "args", "keywords"):
                self.walk(getattr(a, name), getattr(b, name), f"{path}.{name}")

    def class_(self, a, b, path):
        if a is b or not is_made(a):
            return self.outside(a, b, path)
        if not self.pair(a, b, path):
            return
        self.small_tuple(a.__bases__, b.__bases__, path + ".__bases__")
        hidden = INTERNAL | ({k for k in vars(a) if k.startswith("_")} if isinstance(a, enum.EnumMeta) else set())
        x, y = ({k: v for k, v in vars(c).items() if k not in hidden} for c in (a, b))
        if list(x) != list(y):
            fail(path, f"attributes {list(x)} in eager, {list(y)} compiled")
        for k in x:
            self.walk(x[k], y[k], f"{path}.{k}")

    def descriptor(self, a, b, path):
        for name in ("__func__", "fget", "fset", "fdel", "func"):
            if hasattr(a, name):
                self.walk(getattr(a, name), getattr(b, name), f"{path}.{name}")

    def module(self, a, b, path):
        if a is b or not self.pair(a, b, path):
            return
        self.items({k: v for k, v in vars(a).items() if k not in ("__builtins__", "__spec__", "__loader__")},
                   {k: v for k, v in vars(b).items() if k not in ("__builtins__", "__spec__", "__loader__")}, path)

    def exception(self, a, b, path):
        if not self.pair(a, b, path):
            return
        if not isinstance(a, RecursionError):  # whose words tell where C code happened to count last
            self.walk(*map(tuple, plain_errors(a.args, b.args)), path + ".args")
        self.attributes(a, b, path)
        for name in ("__cause__", "__context__"):
            self.walk(getattr(a, name), getattr(b, name), f"{path}.{name}")

    def reference(self, a, b, path):
        self.walk(a(), b(), path + "()")

    def outside(self, a, b, path):
        if a is not b:
            fail(path, f"{describe(a)} in eager, {describe(b)} compiled")

    def enumerated(self, a, b, path):
        if a.name != b.name:
            fail(path, f"{a} in eager, {b} compiled")

    def opaque(self, a, b, path):
        self.pair(a, b, path)

    def array(self, a, b, path):
        if not self.pair(a, b, path):
            return
        if a.dtype != b.dtype or a.shape != b.shape or a.dtype.kind not in "fc" and a.tolist() != b.tolist():
            fail(path, f"{describe(a)} in eager, {describe(b)} compiled")
        if a.dtype.kind in "fc" and a.size:
            self.elements(torch.from_numpy(a.copy()), torch.from_numpy(b.copy()), path)

    def instance(self, a, b, path):
        if not self.pair(a, b, path) or type(a).__module__ == "torch._ops":
            return
        self.attributes(a, b, path)

    def attributes(self, a, b, path):
        x, y = ({k: v for k, v in d.items() if k not in OF_TORCH} if isinstance(d := getattr(o, "__dict__", None), dict) else None
                for o in (a, b))
        if isinstance(x, dict) and isinstance(y, dict) and (x or y):
            if list(x) != list(y):
                fail(path, f"attributes {list(x)} in eager, {list(y)} compiled")
            for k in x:
                self.walk(x[k], y[k], f"{path}.{k}")
        for cls in type(a).__mro__ if is_of_world(type(a)) else ():
            for name in vars(cls).get("__slots__", ()):
                self.walk(getattr(a, name, "(not there)"), getattr(b, name, "(not there)"), f"{path}.{name}")


NODE = re.compile(r"grad_fn=<\w+>")
NUMBER = re.compile(r"-?\d+\.\d*(?:e[-+]?\d+)?|nan|inf")


def same_text(a, b):
    """Equal but for the last digits of numbers in it, the names of autograd nodes and those of operators."""
    a, b = (OF_WORLD.sub("", NODE.sub("grad_fn=<>", t)) for t in (a, b))
    return NUMBER.sub("#", a) == NUMBER.sub("#", b) and all(
        abs(float(x) - float(y)) <= 1e-3 * max(1, abs(float(x))) or x == y for x, y in zip(NUMBER.findall(a), NUMBER.findall(b)))


def plain_errors(eager, compiled):
    """The arguments of both errors without libtorch's own stack; where one of ours names the compiled graph's node, or the tensor that it kept and
    that was written, with the names that eager has for what it kept taken out of both."""
    def without(texts, pattern, name):
        return [re.sub(pattern, name, t) if isinstance(t, str) else t for t in texts]

    eager, compiled = ([t.partition("Exception raised from")[0] if isinstance(t, str) else t for t in texts] for texts in (eager, compiled))
    said = " ".join(t for t in compiled if isinstance(t, str))
    for words, pattern, name in OF_GRAPHS:
        if words in said:
            eager, compiled = without(eager, pattern, name), without(compiled, pattern, name)
    return eager, compiled


#: What an error of ours says, and what of its words is then the graph's: of several tensors that were written autograd names one.
OF_GRAPHS = [("modified by an inplace operation", r"\[torch\.\w+ \[[\d, ]*\]\]", "[a tensor]"),
             ("is a view and is being modified inplace", r"\bOutput \d+ of \w+Backward\d*\b", "A result"),  # of a graph: a view is made again
             ("CompiledFunctionBackward", r"\b(Output \d+ of |output \d+ of )?\w+Backward\d*\b", "Backward")]


def content(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return "(empty)"


def has_memory(t):
    try:
        t.untyped_storage().data_ptr()
    except RuntimeError:
        return False
    return True


def sizes_of(t):
    return str(t.layout) if t.layout is not torch.strided or t.is_nested else (tuple(t.shape), t.stride() if t.numel() > 1 else ())


TENSOR_FACTS = [("type", lambda t: type(t).__name__), ("dtype", lambda t: t.dtype), ("device", lambda t: t.device),
                ("sizes and strides", sizes_of),
                ("requires_grad", lambda t: t.requires_grad), ("is_leaf", lambda t: t.is_leaf),
                ("has grad_fn", lambda t: t.grad_fn is not None),
                ("is_inference", lambda t: t.is_inference()), ("is_conj", lambda t: t.is_conj()), ("is_neg", lambda t: t.is_neg()),
                ("names", lambda t: t.names if t.layout is torch.strided and not t.is_nested else ())]


def own_names(code):
    return [OF_WORLD.sub("", name) for name in code.co_names]


@functools.lru_cache(maxsize=4096)
def names_of(code):
    """Names that a code object and those in it may look up among globals."""
    names = list(code.co_names)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            names += names_of(c)
    return tuple(dict.fromkeys(names))


def _kinds():
    c = Comparison
    return [(torch.Tensor, c.tensor), (type, c.class_), (enum.Enum, c.enumerated), (types.FunctionType, c.function),
            (types.CellType, c.cell),
            (types.MethodType, c.method), (functools.partial, c.partial), (types.ModuleType, c.module),
            ((staticmethod, classmethod, property, functools.cached_property), c.descriptor), (BaseException, c.exception),
            (weakref.ref, c.reference), (tuple, c.small_tuple), ((list, collections.deque), c.sequence),
            ((dict, types.MappingProxyType), c.mapping),
            ((set, frozenset), c.set), (numpy.ndarray, c.array), (numpy.generic, c.atom),
            ((types.BuiltinFunctionType, types.WrapperDescriptorType, types.MethodDescriptorType, types.GetSetDescriptorType), c.opaque)]


KINDS = _kinds()

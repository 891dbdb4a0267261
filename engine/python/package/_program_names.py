"""Objects of a program by names that other processes know them by, and digests of its code, for files that speak of them.

Names are looked up in modules that have been imported, and in parts of PyTorch and of Fusebox that are imported when somebody asks for them; nothing is unpickled
or executed."""

import collections
import collections.abc
import enum
import functools
import importlib
import inspect
import json
import logging
import operator
import os
import re
import sys
import types
import typing

import torch

from ._engine_access import _engine

ALL = "*"  # attributes of a class
MISSING = NotImplemented  # an object that this process does not have
# What an annotation may be: the class of an alias, and how it is called here.
_ALIASES = {types.GenericAlias: ["generic"], types.UnionType: ["either"], typing._UnionGenericAlias: ["union"]}
# Without running a metaclass's code.
_BASES, _ATTRIBUTES = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__
_SINGLETONS = {"None": None, "True": True, "False": False, "Ellipsis": Ellipsis}
# Where what says nothing, or something else, of its module is found.
_USUAL = ("builtins", "types", "torch", "torch._C", "torch._C._nn", "torch._C._VariableFunctions", "torch.nn.functional", "operator", "math")
_TORCH_KINDS = (torch.dtype, torch.layout, torch.memory_format)


class Unnamed(Exception):
    """An object that only its process has."""


# --- objects by name ---

def _find(module, qualname):
    """The object with this name in a module that has been imported; MISSING if there is none."""
    module = _module(module)
    # torch.backends and its kin put an object in a module's place, which holds the module.
    for holder in (module, (_namespace(module) or {}).get("m")):
        found = _within(holder, qualname) if isinstance(holder, types.ModuleType) else MISSING
        if found is not MISSING:
            return found
    return MISSING


def _module(name):
    """None where nobody has imported it."""
    if name not in sys.modules and name.startswith(("torch.", "fusebox.")):
        try:
            importlib.import_module(name)
        except ImportError:
            return None
    return sys.modules.get(name)


def _within(found, qualname):
    for part in qualname.split("."):
        held = _held(found, part)
        try:
            found = inspect.getattr_static(found, part) if held is MISSING else held
        except AttributeError:
            return MISSING
    return found


def _held(holder, name):
    """What inspect.getattr_static finds where it is plain to see: it asks ten times as long, and a capture names hundreds of objects."""
    if isinstance(holder, types.ModuleType):
        return MISSING if name.startswith("__") else _namespace(holder).get(name, MISSING)
    if isinstance(holder, type):
        for base in _BASES(holder):
            if name in (attributes := _ATTRIBUTES(base)):
                return attributes[name]
    return MISSING


def _program():
    """Which program __main__ is."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.realpath(path) if path else ""


def _names_of(value):
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if isinstance(value, (types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType)):
        yield value.__objclass__.__module__, value.__qualname__
    elif isinstance(name, str) and "<" not in name:
        if isinstance(value, type):  # of the interpreter
            yield from (("types", known) for known, one in vars(types).items() if one is value)
        if isinstance(getattr(value, "__module__", None), str):
            yield value.__module__, name
            if isinstance(value, types.BuiltinFunctionType):  # pybind11 puts the name of a class of its own before it
                yield value.__module__, value.__name__
        for module in _USUAL:
            yield module, name
            yield module, name.rsplit(".", 1)[-1]
    elif isinstance(value, types.FunctionType) and isinstance(value.__module__, str):  # a module's, made inside a function
        yield value.__module__, value.__name__


# Parts of a named object that have its name, or none: what a decorator or a descriptor wraps.
_WRAPPING = {property: ("fget", "fset", "fdel"), staticmethod: ("__func__",), classmethod: ("__func__",), functools.cached_property: ("func",),
             types.FunctionType: ("__wrapped__",), types.MethodType: ("__func__",)}
_DEEPEST = 8


def _steps(holder):
    """Numbers are those of a function's cells."""
    yield from _WRAPPING.get(type(holder), ())
    if type(holder) is types.FunctionType:
        yield from range(len(holder.__closure__ or ()))


def _part(holder, step):
    """What `holder` wraps, without running the program's code; MISSING: nothing."""
    if isinstance(step, int):
        cells = holder.__closure__ or () if type(holder) is types.FunctionType else ()
        try:
            return cells[step].cell_contents
        except (IndexError, ValueError):
            return MISSING
    if step not in _WRAPPING.get(type(holder), ()):
        return MISSING
    if step == "__wrapped__":
        return types.FunctionType.__dict__["__dict__"].__get__(holder).get(step, MISSING)
    return getattr(holder, step)


def _way_to(value, holder):
    """The shortest list of steps of _part() that leads there, None if none does."""
    seen, ways = {id(holder)}, [(holder, [])]
    for place, way in ways:
        for step in _steps(place):
            part = _part(place, step)
            if part is value:
                return [*way, step]
            if part is not MISSING and len(way) < _DEEPEST and id(part) not in seen:
                seen.add(id(part))
                ways.append((part, [*way, step]))
    return None


def _operator_form(value):
    if isinstance(value, torch._ops.OpOverload):
        return ["operator", *str(value._schema.name).split("::"), value._overloadname]
    return ["operator", *value._qualified_op_name.split("::")]


def _operator(form):
    found = torch.ops
    for name in form:
        found = getattr(found, name, MISSING)
    return found


def form_of(value):
    """`value` as JSON; raises Unnamed."""
    for name, one in _SINGLETONS.items():
        if value is one:
            return ["one", name]
    kind = type(value)
    if kind is int:
        return ["int", str(value)]
    if kind is float:
        return ["float", value.hex()]
    if kind is complex:
        return ["complex", value.real.hex(), value.imag.hex()]
    if kind is str:
        return ["str", value]
    if kind is bytes:
        return ["bytes", value.hex()]
    if kind is tuple or kind is torch.Size:
        return ["tuple" if kind is tuple else "size", [form_of(item) for item in value]]
    if kind is frozenset:
        return ["frozenset", sorted((form_of(item) for item in value), key=json.dumps)]
    if kind is range:
        return ["range", [form_of(value.start), form_of(value.stop), form_of(value.step)]]
    if kind is slice:
        return ["slice", [form_of(value.start), form_of(value.stop), form_of(value.step)]]
    if kind in _TORCH_KINDS:
        return ["torch", str(value).removeprefix("torch.")]
    if kind is torch.device:
        return ["device", str(value)]
    if (numpy := sys.modules.get("numpy")) is not None and numpy.dtype in _BASES(kind):
        return ["numpy", value.str] if _numpy_type(value.str) is value else _unnamed()
    if kind is typing.ForwardRef:
        return ["forward", form_of(value.__forward_arg__)] if value == typing.ForwardRef(value.__forward_arg__) and not value.__forward_evaluated__ else _unnamed()
    if kind in _ALIASES:
        return [*_ALIASES[kind], [form_of(item) if _hashes_plainly(item) else _unnamed() for item in _alias_items(value)]]
    if kind is types.CodeType:
        return _code_form(value)
    if isinstance(value, types.ModuleType):
        if sys.modules.get(value.__name__) is value:
            return ["module", value.__name__, *([_program()] if value.__name__ == "__main__" else [])]
        raise Unnamed
    if value is sys.modules:
        return ["name", "sys", "modules"]
    if kind is dict:  # of globals
        name = value.get("__name__")
        if not isinstance(name, str):
            raise Unnamed
        if _namespace(module := sys.modules.get(name)) is not value:
            if (method := _method_within(module, value)) is not None:
                return ["namespace", name, method]
            name = next((known for known, one in list(sys.modules.items()) if _namespace(one) is value), None) or _unnamed()
        return ["globals", name, *([_program()] if name == "__main__" else [])]
    if isinstance(value, enum.Enum):
        return ["member", form_of(kind), value._name_, _member_content(value)] if kind._member_map_.get(value._name_) is value else _unnamed()
    if kind is logging.Logger:
        return ["logger", value.name] if logging.Logger.manager.loggerDict.get(value.name) is value else _unnamed()
    if isinstance(value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        form = _operator_form(value)
        return form if _operator(form[1:]) is value else _unnamed()
    if isinstance(value, type) and type(module := sys.modules.get(value.__module__)) is value:
        return ["type of module", value.__module__]
    for module, name in _names_of(value):
        found = _find(module, name)
        if found is value:
            return ["name", module, name]
        if (way := _way_to(value, found)) is not None:
            return ["part", module, name, way]
    if kind is types.FunctionType and (parts := _engine.caller_parts(value)):
        return ["caller", *parts[:4], form_of(parts[4])]
    raise Unnamed


def _member_content(member):
    """Of an enum whose members are numbers or texts as well; what is read of others is guarded."""
    return None if _engine.is_of_python(member) else _scalar_content(member) or _unnamed()


def _unnamed():
    raise Unnamed


def _alias_items(value):
    """Of list[int], typing.Optional[int] or int | None: what they are made of."""
    if type(value) is types.GenericAlias:
        return [value.__origin__, *value.__args__]
    return value.__args__


def _hashes_plainly(value):
    """typing looks an alias up in a cache, by what it is made of."""
    return type(value) in (*_ALIASES, typing.ForwardRef) or (isinstance(value, type) and all(_owner_of(type(value), name) in (object, type) for name in ("__hash__", "__eq__")))


def _owner_of(cls, name):
    return next((base for base in _BASES(cls) if name in _ATTRIBUTES(base)), None)


def _numpy_type(text):
    return MISSING if (numpy := sys.modules.get("numpy")) is None else numpy.dtype(text)


def _method_within(module, namespace):
    """Of an object that has put itself in its module's place (torch._VF): the method of its class whose globals are what the module was."""
    methods = {} if isinstance(module, types.ModuleType) and type(module) is types.ModuleType else _ATTRIBUTES(type(module))
    return next((name for name, one in methods.items() if isinstance(one, types.FunctionType) and one.__globals__ is namespace), None)


def _namespace(module):
    """Of a module, whatever its class does with attributes."""
    return object.__getattribute__(module, "__dict__") if isinstance(module, types.ModuleType) else None


def _code_form(code):
    """Of a function with a name, in the modules of its file."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == code.co_filename or getattr(module, "__name__", None) == "__main__":
            function = _find(module.__name__, code.co_qualname) if "<" not in code.co_qualname else MISSING
            if isinstance(function, types.FunctionType) and function.__code__ is code:
                return ["code", module.__name__, code.co_qualname, digest_of(code)]
    raise Unnamed


def is_named(value):
    try:
        form_of(value)
    except (Unnamed, RecursionError):
        return False
    return True


def _items_of(make):
    def made(forms):
        items = [object_of(item) for item in forms]
        return MISSING if any(item is MISSING for item in items) else make(items)
    return made


def _torch_of(name):
    value = getattr(torch, name)
    if not isinstance(value, _TORCH_KINDS):
        raise ValueError("no type, layout or memory format")
    return value


def _module_of(name, program=None):
    module = _module(name)
    return MISSING if module is None or (name == "__main__" and _program() != program) else module


def _globals_of(name, program=None):
    return MISSING if (module := _module_of(name, program)) is MISSING else module.__dict__


def _namespace_of(name, method):
    function = MISSING if (module := _module(name)) is None else _ATTRIBUTES(type(module)).get(method, MISSING)
    return function.__globals__ if isinstance(function, types.FunctionType) else MISSING


def _type_of_module(name):
    return MISSING if (module := _module(name)) is None else type(module)


def _part_of(module, qualname, way):
    found = _find(module, qualname)
    for step in way:
        found = _part(found, step)
    return found


def _member_of(owner, name, content):
    owner = object_of(owner)
    member = owner._member_map_.get(name, MISSING) if isinstance(owner, enum.EnumMeta) else MISSING
    return member if member is not MISSING and _member_content(member) == content else MISSING


def _logger_of(name):
    found = logging.Logger.manager.loggerDict.get(name, MISSING)
    return found if isinstance(found, logging.Logger) else MISSING


def _code_of(module, qualname, digest):
    function = _find(module, qualname)
    same = isinstance(function, types.FunctionType) and digest_of(function.__code__) == digest
    return function.__code__ if same else MISSING


def _caller_of(*parts):
    namespace = object_of(parts[4])
    return MISSING if namespace is MISSING else _engine.caller_at(*parts[:4], namespace)


_MAKERS = {
    "one": _SINGLETONS.__getitem__, "int": int, "float": float.fromhex, "complex": lambda real, imaginary: complex(float.fromhex(real), float.fromhex(imaginary)), "str": str,
    "bytes": bytes.fromhex, "tuple": _items_of(tuple), "size": _items_of(torch.Size), "frozenset": _items_of(frozenset), "slice": _items_of(lambda parts: slice(*parts)),
    "range": _items_of(lambda parts: range(*parts)), "torch": _torch_of, "device": torch.device, "numpy": _numpy_type,
    "generic": _items_of(lambda parts: types.GenericAlias(parts[0], tuple(parts[1:]))), "either": _items_of(lambda parts: functools.reduce(operator.or_, parts)),
    "forward": lambda text: typing.ForwardRef(object_of(text)), "union": _items_of(lambda parts: typing.Union[tuple(parts)]), "module": _module_of, "globals": _globals_of,
    "namespace": _namespace_of, "name": _find, "type of module": _type_of_module, "part": _part_of, "member": _member_of, "logger": _logger_of,
    "operator": lambda *names: _operator(names), "code": _code_of, "caller": _caller_of,
}


def object_of(form):
    """What form_of() was given; MISSING where this process does not have it."""
    kind, *rest = form
    if kind not in _MAKERS:
        raise ValueError("an unknown kind of object")
    return _MAKERS[kind](*rest)


# --- whether the program is still the same ---

def _type_form(value):
    return ["of", type(value).__qualname__]


def plain_form(value):
    """What stands in a digest for an object that is neither text, number nor code."""
    try:
        return form_of(value)
    except (Unnamed, RecursionError):
        return _type_form(value)


def digest_of(parts, lines=False):
    """Of lists of plain values and of code; with `lines`, also of where the code stands."""
    return _engine.digest_of(parts, lines, plain_form)


_LEAVES = (types.NoneType, bool, int, float, complex, str, bytes, types.CodeType)


_SCALARS = {str: str.__str__, int: int.__int__, float: float.__float__, complex: complex.__complex__, bytes: lambda value: bytes.__getitem__(value, slice(None))}
# What is read of these is guarded part by part; what is registered with an abstract class is asked for again.
_READ_BY_PARTS = (list, dict, set, tuple, collections.deque, types.MappingProxyType, torch.Tensor, type(collections.abc.Sequence.__dict__["_abc_impl"]))


def _scalar_content(value):
    """Of a number or text that has a class of its own; None: it is none."""
    return next(([type(value).__qualname__, form_of(read(value))] for base, read in _SCALARS.items() if issubclass(type(value), base)), None)


def _content(value):
    """What an object of C's holds, as plain values, without running the program's code; raises Unnamed where nobody knows."""
    kind = type(value)
    if kind in (list, tuple):
        return [_content(item) for item in value]
    if kind is dict:
        return [[_content(key), _content(item)] for key, item in value.items()]
    if kind is re.Pattern:
        return ["pattern", form_of(value.pattern), value.flags]
    if kind in (types.BuiltinMethodType, types.MethodWrapperType) and not isinstance(value.__self__, types.ModuleType):
        return ["method", _content(value.__self__), value.__name__]
    if kind not in _LEAVES and (scalar := _scalar_content(value)):
        return scalar
    try:
        return form_of(value)
    except Unnamed:
        return [_content(part) for part in _reduced(value)]


def _reduced(value):
    """What C code says that it takes to make it again."""
    for base in _BASES(type(value)):
        for name, given in (("__reduce_ex__", (2,)), ("__reduce__", ())):
            if (method := base.__dict__.get(name)) is None:
                continue
            if base is object or not isinstance(method, types.MethodDescriptorType):
                raise Unnamed
            try:
                made = method(value, *given)
            except Exception:
                raise Unnamed from None
            return made if isinstance(made, tuple) else (made,)
    raise Unnamed


def _leaf(value):
    """Raises Unnamed where no guard, and no digest, would notice that it holds something else."""
    if type(value) in _LEAVES:
        return value
    if (form := plain_form(value)) != _type_form(value):
        return form
    if isinstance(value, type):
        return _class_parts(value)  # what is read of it is guarded, too
    return form if issubclass(type(value), _READ_BY_PARTS) or _engine.is_of_python(value) else _content(value)


def _function_parts(function, leaf):
    keywords = function.__kwdefaults__ or {}
    return [function.__code__, [leaf(value) for value in function.__defaults__ or ()], [[name, leaf(value)] for name, value in sorted(keywords.items())]]


def _attribute_parts(value, leaf=_leaf):
    if isinstance(value, (staticmethod, classmethod)):
        return [type(value).__name__, _attribute_parts(value.__func__, leaf)]
    if isinstance(value, property):
        return ["property", *(_attribute_parts(part, leaf) for part in (value.fget, value.fset, value.fdel))]
    if isinstance(value, functools.cached_property):
        return ["property", _attribute_parts(value.func, leaf)]
    return _function_parts(value, leaf) if isinstance(value, types.FunctionType) else leaf(value)


def label_of(cls):
    """Without running the program's code."""
    return [_ATTRIBUTES(cls).get("__module__"), type.__dict__["__qualname__"].__get__(cls)]


def _is_programs(cls):
    """Not of the interpreter, nor of PyTorch, whose builds are known."""
    module = label_of(cls)[0]
    return bool(type.__dict__["__flags__"].__get__(cls) & 1 << 9) and not (isinstance(module, str) and module.partition(".")[0] == "torch")


def classes_among(objects):
    """As what captures followed: of what else they are, and what can be done with their instances, is asked without reading an attribute."""
    return [(value, []) for value in objects if issubclass(type(value), type) and _is_programs(value)]


def _class_parts(cls):
    bases = _BASES(cls)
    # Of methods alone: copying and pickling leave notes in a class.
    special = {name for base in bases if _is_programs(base) for name, part in base.__dict__.items()
               if name.startswith("__") and name != "__doc__" and (part is None or callable(part) or isinstance(part, classmethod))}
    return [[label_of(base) for base in bases], label_of(type(cls)), sorted(special)]


def _digest(value, names, lines):
    """Of a function's code, or of those attributes of a class."""
    if isinstance(value, types.FunctionType):
        return digest_of(_function_parts(value, plain_form), lines)
    bases = _BASES(value)
    parts = _class_parts(value)
    if ALL in names:
        parts += [[name, _attribute_parts(part, plain_form)] for base in bases if base is not object for name, part in base.__dict__.items()]
    for name in names:
        owner = _owner_of(value, name)
        try:
            parts.append([name, None if owner is None else _attribute_parts(owner.__dict__[name])])
        except (Unnamed, RecursionError):
            raise Unnamed(f"nobody knows what {owner.__qualname__}.{name} holds") from None
    return digest_of(parts, lines)


def facts_of(followed, lines=False, form_of=form_of):
    """Digests of what the capture relied on, where a loading process can look it up; with `lines`, also of where code stands."""
    facts = {}
    for value, names in followed:
        if isinstance(value, types.FunctionType) or names is not None:
            try:
                form = form_of(value)
            except (Unnamed, RecursionError):
                continue
            names = [] if names is None else sorted(ALL if name is None else name for name in names)
            facts[json.dumps([form, names])] = _digest(value, names, lines)
    return [[*json.loads(key), digest] for key, digest in facts.items()]


def difference(facts, lines=False, object_of=object_of):
    """Which of these functions and classes is not what it was; None: all are."""
    for form, names, digest in facts:
        value = object_of(form)
        if value is MISSING:
            if isinstance(form[1], list):
                return f"{form[-1]} is not there"
            if form[1] in sys.modules and form[1] != "__main__":
                return f"{form[1]} has no {form[2]} any more"
        elif not isinstance(value, (types.FunctionType, type)) or not _is_same(value, names, lines, digest):
            return f"{'.'.join(part for part in form[1:] if isinstance(part, str))} is not what it was"
    return None


def _is_same(value, names, lines, digest):
    try:
        return _digest(value, names, lines) == digest
    except Unnamed:
        return False

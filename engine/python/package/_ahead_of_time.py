"""Functions that are compiled ahead of time: captured once, written to a file, and called elsewhere without their program.

A file is a bundle of signed entries (engine/cache/bundle.h): the capture, and the code of each of its graphs. Reading one executes nothing of
it: objects are named by module and name and looked up in modules that this process has imported already; there is no pickle."""

import hashlib
import inspect
import json
import os
import sys
import types

import torch

from ._compile import _function_of
from ._engine_access import _engine

_FORMAT = 1
_MISSING = NotImplemented  # an object that this process does not have
_SINGLETONS = {"None": None, "True": True, "False": False, "Ellipsis": Ellipsis}
# Where what says nothing, or something else, of its module is found.
_USUAL = ("builtins", "types", "torch", "torch._C", "torch._C._nn", "torch._C._VariableFunctions", "torch.nn.functional", "operator", "math")
_TORCH_KINDS = (torch.dtype, torch.layout, torch.memory_format)
_VARIABLE_ARGUMENTS, _VARIABLE_KEYWORDS = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS


class AheadOfTimeError(RuntimeError):
    """A function cannot be written down, a file cannot be used here, or a call does not fit what was compiled."""


class _Unnamed(Exception):
    """An object that only its process has."""


# --- objects by name ---

def _find(module, qualname):
    """The object with this name in a module that has been imported; _MISSING if there is none."""
    found = sys.modules.get(module, _MISSING)
    for part in qualname.split(".") if found is not _MISSING else ():
        try:
            found = inspect.getattr_static(found, part)
        except AttributeError:
            return _MISSING
    return found


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
        for module in _USUAL:
            yield module, name
            yield module, name.rsplit(".", 1)[-1]


def _form(value):
    """`value` as JSON; raises _Unnamed."""
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
        return ["tuple" if kind is tuple else "size", [_form(item) for item in value]]
    if kind is frozenset:
        return ["frozenset", sorted((_form(item) for item in value), key=json.dumps)]
    if kind is slice:
        return ["slice", [_form(value.start), _form(value.stop), _form(value.step)]]
    if kind in _TORCH_KINDS:
        return ["torch", str(value).removeprefix("torch.")]
    if kind is torch.device:
        return ["device", str(value)]
    if kind is types.CodeType:
        return _code_form(value)
    if isinstance(value, types.ModuleType):
        if sys.modules.get(value.__name__) is value:
            return ["module", value.__name__, *([_program()] if value.__name__ == "__main__" else [])]
        raise _Unnamed
    if kind is dict:  # of globals
        module = sys.modules.get(value.get("__name__")) if isinstance(value.get("__name__"), str) else None
        if module is not None and module.__dict__ is value:
            return ["globals", module.__name__, *([_program()] if module.__name__ == "__main__" else [])]
        raise _Unnamed
    for module, name in _names_of(value):
        if _find(module, name) is value:
            return ["name", module, name]
    raise _Unnamed


def _code_form(code):
    """Of a function with a name, in the modules of its file."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == code.co_filename or getattr(module, "__name__", None) == "__main__":
            function = _find(module.__name__, code.co_qualname) if "<" not in code.co_qualname else _MISSING
            if isinstance(function, types.FunctionType) and function.__code__ is code:
                return ["code", module.__name__, code.co_qualname, _hash(_code_parts(code))]
    raise _Unnamed


def _is_named(value):
    try:
        _form(value)
    except (_Unnamed, RecursionError):
        return False
    return True


def _object(form):
    """What _form() was given; _MISSING where this process does not have it."""
    kind, *rest = form
    if kind == "one":
        return _SINGLETONS[rest[0]]
    if kind == "int":
        return int(rest[0])
    if kind == "float":
        return float.fromhex(rest[0])
    if kind == "complex":
        return complex(float.fromhex(rest[0]), float.fromhex(rest[1]))
    if kind == "str":
        return str(rest[0])
    if kind == "bytes":
        return bytes.fromhex(rest[0])
    if kind in ("tuple", "size", "frozenset", "slice"):
        items = [_object(item) for item in rest[0]]
        if any(item is _MISSING for item in items):
            return _MISSING
        return {"tuple": tuple, "size": torch.Size, "frozenset": frozenset, "slice": lambda parts: slice(*parts)}[kind](items)
    if kind == "torch":
        value = getattr(torch, rest[0])
        if not isinstance(value, _TORCH_KINDS):
            raise ValueError("no type, layout or memory format")
        return value
    if kind == "device":
        return torch.device(rest[0])
    if kind in ("module", "globals"):
        module = sys.modules.get(rest[0])
        if module is None or (rest[0] == "__main__" and _program() != rest[1]):
            return _MISSING
        return module if kind == "module" else module.__dict__
    if kind == "name":
        return _find(rest[0], rest[1])
    if kind == "code":
        function = _find(rest[0], rest[1])
        same = isinstance(function, types.FunctionType) and _hash(_code_parts(function.__code__)) == rest[2]
        return function.__code__ if same else _MISSING
    raise ValueError("an unknown kind of object")


# --- whether the program is still the same ---

def _plain(value):
    if isinstance(value, types.CodeType):
        return _code_parts(value)
    try:
        return _form(value)
    except (_Unnamed, RecursionError):
        return ["of", type(value).__qualname__]


def _code_parts(code):
    return [code.co_code.hex(), [_plain(constant) for constant in code.co_consts], list(code.co_names), list(code.co_varnames),
            list(code.co_freevars), list(code.co_cellvars), code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags,
            code.co_exceptiontable.hex()]


def _hash(parts):
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _function_parts(function):
    keywords = function.__kwdefaults__ or {}
    return [_code_parts(function.__code__), [_plain(value) for value in function.__defaults__ or ()],
            [[name, _plain(value)] for name, value in sorted(keywords.items())]]


def _attribute_parts(value):
    if isinstance(value, (staticmethod, classmethod)):
        return [type(value).__name__, _attribute_parts(value.__func__)]
    if isinstance(value, property):
        return ["property", *(_attribute_parts(part) for part in (value.fget, value.fset, value.fdel))]
    return _function_parts(value) if isinstance(value, types.FunctionType) else _plain(value)


def _digest(value, names):
    """Of a function's code, or of those attributes of a class."""
    if isinstance(value, types.FunctionType):
        parts = _function_parts(value)
    else:
        bases = type.__dict__["__mro__"].__get__(value)
        parts = [[base.__qualname__ for base in bases]]
        for name in names:
            owner = next((base for base in bases if name in base.__dict__), None)
            parts.append([name, None if owner is None else _attribute_parts(owner.__dict__[name])])
    return _hash(parts)


def _facts(followed):
    """Digests of what the capture relied on, where a loading process can look it up."""
    facts = {}
    for value, names in followed:
        if _is_named(value) and (isinstance(value, types.FunctionType) or names is not None):
            names = sorted(names) if names is not None else []
            facts[json.dumps([_form(value), names])] = _digest(value, names)
    return [[*json.loads(key), digest] for key, digest in facts.items()]


def _require_same_program(name, facts):
    for form, names, digest in facts:
        value = _object(form)
        if value is _MISSING:
            module = sys.modules.get(form[1])
            if module is not None and form[1] != "__main__":
                raise AheadOfTimeError(f"{name} cannot be loaded: {form[1]} has no {form[2]} any more, whose code is compiled in")
            continue
        if not isinstance(value, (types.FunctionType, type)) or _digest(value, names) != digest:
            raise AheadOfTimeError(f"{name} cannot be loaded: {form[1]}.{form[2]} is not what it was when {name} was compiled. Compile it again.")


# --- the function that stands for the program ---

def _stands_for_it():
    raise _fusebox_error("a function that was compiled ahead of time was called where no compiled code may run")  # noqa: F821


def _signature_of(function):
    code = function.__code__
    arguments = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & _VARIABLE_ARGUMENTS) + bool(code.co_flags & _VARIABLE_KEYWORDS)
    try:
        return {"name": function.__name__, "qualname": function.__qualname__, "file": code.co_filename, "line": code.co_firstlineno,
                "arguments": list(code.co_varnames[:arguments]), "positional": code.co_argcount, "positional_only": code.co_posonlyargcount,
                "keyword_only": code.co_kwonlyargcount, "flags": code.co_flags & (_VARIABLE_ARGUMENTS | _VARIABLE_KEYWORDS),
                "defaults": [_form(value) for value in function.__defaults__ or ()],
                "keyword_defaults": [[name, _form(value)] for name, value in (function.__kwdefaults__ or {}).items()]}
    except _Unnamed:
        raise AheadOfTimeError(f"{function.__qualname__} cannot be compiled ahead of time: the default of an argument is an object that has no "
                               "name outside of this process") from None


def _stand_in(signature):
    """A function with this signature. Its code raises: compiled code runs in its place."""
    names = tuple(signature["arguments"])
    code = _stands_for_it.__code__.replace(
        co_argcount=signature["positional"], co_posonlyargcount=signature["positional_only"], co_kwonlyargcount=signature["keyword_only"],
        co_nlocals=len(names), co_varnames=names, co_flags=_stands_for_it.__code__.co_flags | signature["flags"], co_name=signature["name"],
        co_qualname=signature["qualname"], co_filename=signature["file"], co_firstlineno=signature["line"])
    made = types.FunctionType(code, {"_fusebox_error": AheadOfTimeError, "__builtins__": {}}, signature["name"],
                              tuple(_object(form) for form in signature["defaults"]))
    made.__kwdefaults__ = {name: _object(form) for name, form in signature["keyword_defaults"]} or None
    made.__qualname__ = signature["qualname"]
    return made


def _locals_of(function, args, kwargs):
    """Values of the arguments as a frame of `function` begins with them."""
    bound = inspect.signature(function, follow_wrapped=False).bind(*args, **kwargs)
    bound.apply_defaults()
    return [bound.arguments[name] for name in _signature_of(function)["arguments"]]


# --- what users see ---

class AOTCompiledFunction:
    """A function that is compiled for the inputs it was given, and for all others that its guards let through."""

    def __init__(self, data):
        self.data = data
        try:
            text, archive, graphs = _engine.read_ahead(data)
            content = json.loads(text)
            if content["format"] != _FORMAT:
                raise AheadOfTimeError("the file is of another version of Fusebox")
            self.__name__ = content["signature"]["name"]
            self.notes = content.get("notes", {})
            _require_same_program(self.__name__, content["facts"])
            objects = [_object(form) for form in content["objects"]]
            self._compiled = _engine.stored_function(_stand_in(content["signature"]), content["options"], archive, objects, graphs)
        except AheadOfTimeError:
            raise
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError, RuntimeError) as problem:
            missing = sorted({".".join(form[1:3]) for form, value in zip(content["objects"], objects) if value is _MISSING and form[0] in ("name", "code")}) \
                if "objects" in locals() else []
            hint = f". These are not there: {', '.join(missing[:5])}; import their modules before" if missing else ""
            raise AheadOfTimeError(f"the compiled function cannot be loaded: {problem}{hint}") from None
        self._call = _engine.disabled(self._compiled)  # a break of whatever is captured around it

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def __repr__(self):
        return f"<compiled ahead of time: {self.__name__}>"

    def with_notes(self, notes):
        """The same, with JSON of whoever writes it in the file."""
        text, archive, graphs = _engine.read_ahead(self.data)
        return AOTCompiledFunction(_engine.write_ahead(self.__name__, json.dumps({**json.loads(text), "notes": notes}), archive, graphs))

    def save_compiled_function(self, path, external_data=None):
        """Writes the file that torch.compiler.load_compiled_function reads."""
        if external_data:
            raise NotImplementedError("save_compiled_function(external_data=…) is not supported by Fusebox: what a function reads from outside "
                                      "is an argument of it")
        waiting = f"{os.fspath(path)}.{os.getpid()}.part"
        try:
            with open(waiting, "wb") as file:
                file.write(self.data)
            os.replace(waiting, path)
        except OSError:
            if os.path.exists(waiting):
                os.unlink(waiting)
            raise


def aot_compile(compiled, settings, example_inputs):
    """Of torch.compile(…).aot_compile((args, kwargs)): captures and compiles for these inputs, without a call."""
    if not settings["fullgraph"]:
        raise RuntimeError("Graph breaks are not supported with aot compile. Please use torch.compile(fullgraph=True).")
    if settings["backend"] != "inductor":
        raise AheadOfTimeError(f"backend {settings['backend']} leaves nothing to write down: leave it out")
    args, kwargs = example_inputs
    owner = getattr(compiled, "__self__", None)
    if isinstance(owner, torch.nn.Module) and compiled.__name__ in ("_call_impl", "_wrapped_call_impl", "__call__"):
        compiled = owner.forward
    owner = getattr(compiled, "__self__", None)
    function = _function_of(compiled)
    if not isinstance(function, types.FunctionType):
        raise AheadOfTimeError(f"{compiled!r} is no function or method written in Python")
    if inspect.ismethod(compiled):
        args = (owner, *args)
    name = function.__qualname__
    try:
        archive, objects, graphs, followed = _engine.capture_ahead(function, _locals_of(function, args, kwargs), settings, _is_named)
    except RuntimeError as problem:
        if type(problem) is not RuntimeError:
            raise
        raise AheadOfTimeError(f"{name} cannot be compiled ahead of time: {problem}") from None
    content = {"format": _FORMAT, "signature": _signature_of(function), "options": settings, "facts": _facts([(function, None), *followed]),
               "objects": [_form(value) for value in objects]}
    return AOTCompiledFunction(_engine.write_ahead(name, json.dumps(content), archive, graphs))


def load_compiled_function(file, *, f_globals=None, external_data=None):
    """Of torch.compiler: the callable that a file holds, whose functions and classes this process has. Nothing is compiled, and nothing of
    the file is executed until it is called. With FUSEBOX_CACHE_KEY only what was signed with that key is loaded."""
    if f_globals is not None or external_data:
        raise NotImplementedError("load_compiled_function(f_globals=…, external_data=…) is not supported by Fusebox: the function reads nothing "
                                  "from outside but its arguments")
    return AOTCompiledFunction(file.read())

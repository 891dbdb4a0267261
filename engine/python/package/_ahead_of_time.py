"""Functions that are compiled ahead of time: captured once, written to a file, and called elsewhere without their program.

A file is a bundle of signed entries (engine/cache/bundle.h): the capture, and the code of each of its graphs. Reading one executes nothing of
it: objects are named by module and name and looked up in modules that this process has imported already; there is no pickle."""

import inspect
import json
import os
import types

import torch

from ._compile import _function_of
from ._engine_access import _engine
from ._program_names import MISSING, Unnamed, classes_among, difference, facts_of, form_of, is_named, object_of

_FORMAT = 2
_VARIABLE_ARGUMENTS, _VARIABLE_KEYWORDS = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS


class AheadOfTimeError(RuntimeError):
    """A function cannot be written down, a file cannot be used here, or a call does not fit what was compiled."""


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
                "defaults": [form_of(value) for value in function.__defaults__ or ()],
                "keyword_defaults": [[name, form_of(value)] for name, value in (function.__kwdefaults__ or {}).items()]}
    except Unnamed:
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
                              tuple(object_of(form) for form in signature["defaults"]))
    made.__kwdefaults__ = {name: object_of(form) for name, form in signature["keyword_defaults"]} or None
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
            if problem := difference(content["facts"]):
                raise AheadOfTimeError(f"{self.__name__} cannot be loaded: {problem}, whose code is compiled in. Compile it again.")
            objects = [object_of(form) for form in content["objects"]]
            self._compiled = _engine.stored_function(_stand_in(content["signature"]), content["options"], archive, objects, graphs)
        except AheadOfTimeError:
            raise
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError, RuntimeError) as problem:
            missing = sorted({".".join(form[1:3]) for form, value in zip(content["objects"], objects) if value is MISSING and form[0] in ("name", "code")}) \
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
        archive, objects, graphs, followed = _engine.capture_ahead(function, _locals_of(function, args, kwargs), settings, is_named)
    except RuntimeError as problem:
        if type(problem) is not RuntimeError:
            raise
        raise AheadOfTimeError(f"{name} cannot be compiled ahead of time: {problem}") from None
    try:
        facts = facts_of([(function, None), *followed, *classes_among(objects)])
    except Unnamed as problem:
        raise AheadOfTimeError(f"{name} cannot be compiled ahead of time: {problem}") from None
    content = {"format": _FORMAT, "signature": _signature_of(function), "options": settings, "facts": facts,
               "objects": [form_of(value) for value in objects]}
    return AOTCompiledFunction(_engine.write_ahead(name, json.dumps(content), archive, graphs))


def load_compiled_function(file, *, f_globals=None, external_data=None):
    """Of torch.compiler: the callable that a file holds, whose functions and classes this process has. Nothing is compiled, and nothing of
    the file is executed until it is called. With FUSEBOX_CACHE_KEY only what was signed with that key is loaded."""
    if f_globals is not None or external_data:
        raise NotImplementedError("load_compiled_function(f_globals=…, external_data=…) is not supported by Fusebox: the function reads nothing "
                                  "from outside but its arguments")
    return AOTCompiledFunction(file.read())

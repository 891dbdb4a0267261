"""Operators written in Python of which can be told that they do nothing but compute: what the program wrote or printed before one is nothing to it."""

import builtins
import dis
import inspect
import math
import types

import torch

_OPAQUE = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "STORE_NAME", "LOAD_NAME", "IMPORT_NAME", "IMPORT_STAR", "LOAD_BUILD_CLASS",
           "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_LOCALS", "YIELD_VALUE", "RETURN_GENERATOR"}
_BUILTINS = {getattr(builtins, name) for name in (
    "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min", "pow", "range", "reversed", "round",
    "set", "slice", "sorted", "str", "sum", "tuple", "type", "zip")}
_CONSTANTS = (torch.dtype, torch.device, torch.layout, torch.memory_format, int, float, complex, bool, str, bytes, type(None))
# Whose attributes are read as what they are: the values of these modules are C functions and constants, besides the modules themselves.
_MODULES = (torch, torch.nn, torch.nn.functional, math)


def _is_harmless(value):
    if isinstance(value, type):
        return value in _BUILTINS or issubclass(value, Exception)
    if isinstance(value, _CONSTANTS) or any(value is b for b in _BUILTINS):
        return True
    homes = (math, torch._C._VariableFunctions, torch._C._nn)
    return isinstance(value, types.BuiltinFunctionType) and any(getattr(home, value.__name__, None) == value for home in homes)


def _code_computes(code, function_globals, own_cells=()):
    cells = {*own_cells, *code.co_cellvars}
    if any(isinstance(c, types.CodeType) and not _code_computes(c, function_globals, cells) for c in code.co_consts):
        return False
    module = None  # whose attribute the next instruction reads
    for instruction in dis.get_instructions(code):
        name, argument = instruction.opname, instruction.argval
        if name in ("PUSH_NULL", "EXTENDED_ARG", "CACHE", "NOP"):
            continue
        if name == "LOAD_GLOBAL" or module is not None:
            if module is not None and name not in ("LOAD_ATTR", "LOAD_METHOD"):
                return False  # a module goes elsewhere
            try:
                value = getattr(module, argument) if module is not None else function_globals[argument]
            except KeyError:
                value = getattr(builtins, argument, function_globals)
            except AttributeError:
                return False
            module = value if isinstance(value, types.ModuleType) and value in _MODULES else None
            if module is None and not _is_harmless(value):
                return False
        elif name in _OPAQUE or (name == "LOAD_DEREF" and argument not in cells):
            return False
    return module is None


def _kernels(definition):
    """The functions that a torch.library.custom_op may run; None: it cannot be told."""
    kernels = [definition._init_fn]
    for chooser in definition._backend_fns.values():
        # The library's own function around it chooses between the kernel and the first one.
        captured = inspect.getclosurevars(inspect.unwrap(chooser)).nonlocals
        kernels.append(captured.get("fn"))
    return kernels


def only_computes(name):
    """Whether the operator "namespace::name" reads nothing but its arguments and changes nothing: by its schema, and by each instruction of its functions."""
    from torch._library.custom_ops import OPDEFS

    definition = OPDEFS.get(name.partition(".")[0])
    if definition is None or definition._opoverload._schema.is_mutable:
        return False
    return all(isinstance(k, types.FunctionType) and not k.__closure__ and _code_computes(k.__code__, k.__globals__) for k in _kernels(definition))

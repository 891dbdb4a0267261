"""The nodes inside torch.SymInt, SymFloat and SymBool of a capture, for Python code of the program's that is given these."""

import torch

from . import _engine

_UNARY = ("trunc", "abs", "pos", "is_integer", *(f"sym_{name}" for name in (
    "sqrt", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")))
_OPERATORS = ("bitwise_and", "bitwise_or", "bitwise_xor", "lshift", "rshift")


def _method(name):
    from torch.fx.experimental.sym_node import to_node, wrap_node

    if name in _OPERATORS:
        return lambda node, other: to_node(node, _engine.symbol_method(name, wrap_node(node), wrap_node(other)))
    if name == "round":
        return lambda node, digits=None: to_node(node, _engine.symbol_method(name, wrap_node(node), digits))
    return lambda node: to_node(node, _engine.symbol_method(name, wrap_node(node), None))


def _sum(node, terms):
    total = terms[0]
    for term in terms[1:]:
        total = total.add(term)
    return total


def complete():
    """Gives `torch._C._SymNode` the methods that PyTorch's nodes in Python have and it has not; torch.SymInt has its operators from here on, too."""
    kind = torch._C._SymNode
    for name in (*_UNARY, "round", *_OPERATORS):
        if not hasattr(kind, name):
            setattr(kind, name, _method(name))
    if not hasattr(kind, "sym_sum"):
        kind.sym_sum = _sum

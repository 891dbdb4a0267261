"""What the sizes of a graph must be to each other: the comparisons that capture made, "s0 <= 64", as a session holds them."""

import ast
import json
import operator

_COMPARISONS = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
_OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
               ast.Div: operator.truediv}
_FUNCTIONS = {"min": min, "max": max}


class _Unknown(Exception):
    """A part of a relation that has no value here."""


def _value(node, values):
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.Name) and node.id in values:
        return values[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, values)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left, values), _value(node.right, values))
    if isinstance(node, ast.Compare):
        sides = [_value(side, values) for side in (node.left, *node.comparators)]
        if all(type(op) in _COMPARISONS for op in node.ops):
            return all(_COMPARISONS[type(op)](a, b) for op, a, b in zip(node.ops, sides, sides[1:]))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords:
        return _FUNCTIONS[node.func.id](*(_value(a, values) for a in node.args))
    raise _Unknown


def read(path):
    """The relations of a JSON file: a list of {"relation", "place"}."""
    if not path:
        return []
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def broken(relations, values):
    """The first of `relations` that does not hold at `values` (by name), or None. One that names anything else is not judged."""
    for relation in relations:
        try:
            if not _value(ast.parse(relation["relation"], mode="eval").body, values):
                return relation
        except (_Unknown, SyntaxError, ArithmeticError, RecursionError):
            continue
    return None

"""A found difference as a program that needs nothing of the fuzzer."""

import ast
import inspect

from . import changed
from .worlds import PACKAGE

HEAD = """import collections, copy, os, random, sys, types, warnings
import numpy, torch
"""
RECORDER = """
class Recorded(BaseException):
    pass


def record(f=None, **options):
    if f is None:
        return record

    def called(*args, **kwargs):
        if not any(g is f for g, _, _ in calls):
            calls.append((f, args, kwargs))
            if len(calls) == {number}:
                raise Recorded
        return f(*args, **kwargs)
    return called


calls = []
torch.manual_seed(1)
try:
    {name}(record{more})
except Recorded:
    pass
f, args, kwargs = calls[-1]
args = list(args)
"""
TAIL = """
if len(sys.argv) > 1:                      # any argument: compiled; none: eager
    import fusebox
    call = fusebox.compile(f, backend={backend!r})
else:
    call = f


def show(statement=None):
    if statement:
        try:
            exec(statement, {{**globals(), "g": globals()}})
        except Exception as error:
            print("the change raises", repr(error))
    torch.manual_seed(1)
    try:
        print(statement, "->", call(*args, **kwargs))
    except Exception as error:
        print(statement, "->", repr(error))


"""


def names_used(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def defined_by(node):
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def needed(text, wanted):
    """The parts of a file that the names need, in its order; imports always."""
    nodes = ast.parse(text).body
    todo, kept = set(wanted), set()
    while True:
        more = {i for i, n in enumerate(nodes) if i not in kept and not isinstance(n, (ast.Import, ast.ImportFrom)) and defined_by(n) & todo}
        if not more:
            break
        kept |= more
        for i in more:
            todo |= names_used(nodes[i])
    imports = [n for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom)) and not getattr(n, "level", 0)]
    return "\n".join([*map(ast.unparse, imports), *(f"\n{ast.unparse(nodes[i])}" for i in sorted(kept))])


def helpers(statements):
    """Source of the fuzzer's own functions that the statements call."""
    text = inspect.getsource(changed)
    wanted = {name for s in statements for name in names_used(ast.parse(s))} & set(vars(changed))
    return needed(text, wanted) if wanted else ""


def program(world, statements, backend):
    text = world.path.read_text()
    lines = [HEAD, needed(text, {world.name})]
    lines[1] = lines[1].replace(f"from {PACKAGE} import", "#")
    if world.kind == "corpus":
        lines.append(f"made = {world.name}()\nf, args, kwargs = made[0], list(made[1]), (made[2] if len(made) > 2 else {{}})")
    elif world.kind == "program":
        lines.append("f, make_args = PROGRAMS[0]\nargs, kwargs = list(make_args()), {{}}")
    else:
        lines[1] = "script = edge = lambda f: f\n" + lines[1]
        lines.append(RECORDER.format(number=world.index + 1, name=world.name, more=", None" if world.kind == "edge" else ""))
    lines += [helpers(statements), TAIL.format(backend=backend), "show()"]
    lines += [f"show({statement!r})" for statement in statements]
    return "\n".join(line for line in lines if line)

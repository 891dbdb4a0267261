"""The smallest program that still differs in the same way: statements, then expressions, are taken away while it does."""

import ast
import copy
import time

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
KEPT = {"inputs", "f"}


def holders(tree):
    """(node, field) of every list of statements."""
    for node in ast.walk(tree):
        for field in _BODIES:
            value = getattr(node, field, None)
            if isinstance(value, list) and value:
                yield node, field


def text_of(tree):
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def filled(node, field):
    if not getattr(node, field) and field == "body" and not isinstance(node, ast.Module):
        node.body = [ast.Pass()]
    if isinstance(node, (ast.Try,)) and not node.handlers and not node.finalbody:
        node.finalbody = [ast.Pass()]
    return node


class Reducer:
    def __init__(self, source, still_differs, seconds):
        self.tree = ast.parse(source)
        self.still_differs = still_differs
        self.ends = time.monotonic() + seconds
        self.tried = set()

    def attempt(self, tree):
        try:
            text = text_of(tree)
            ast.parse(text)
        except Exception:
            return False
        if text in self.tried or time.monotonic() > self.ends:
            return False
        self.tried.add(text)
        if not self.still_differs(text):
            return False
        self.tree = ast.parse(text)
        return True

    def without(self, index, first, count):
        tree = copy.deepcopy(self.tree)
        node, field = list(holders(tree))[index]
        items = getattr(node, field)
        removed = items[first:first + count]
        if any(isinstance(s, ast.FunctionDef) and s.name in KEPT for s in removed) and isinstance(node, ast.Module):
            return None
        del items[first:first + count]
        filled(node, field)
        return tree

    def statements(self):
        changed = self.imported_names()
        index = 0
        while index < len(list(holders(self.tree))) and time.monotonic() < self.ends:
            size = max(1, len(getattr(*list(holders(self.tree))[index])) // 2)
            while size:
                first = 0
                while index < len(list(holders(self.tree))) and first < len(getattr(*list(holders(self.tree))[index])):
                    tree = self.without(index, first, size)
                    if tree is not None and self.attempt(tree):
                        changed = True
                    else:
                        first += size
                size //= 2
            index += 1
        return changed

    def imported_names(self):
        changed = False
        for position, node in enumerate(self.tree.body):
            for k in reversed(range(len(node.names) if isinstance(node, ast.ImportFrom) else 0)):
                tree = copy.deepcopy(self.tree)
                if len(tree.body[position].names) > 1 and k < len(tree.body[position].names):
                    del tree.body[position].names[k]
                    changed |= self.attempt(tree)
        return changed

    def unwrap(self):
        """Bodies in place of the compound statements around them."""
        changed, index = False, 0
        while index < sum(len(getattr(n, f)) for n, f in holders(self.tree)) and time.monotonic() < self.ends:
            tree, seen, done = copy.deepcopy(self.tree), 0, False
            for node, field in list(holders(tree)):
                items = getattr(node, field)
                if seen + len(items) > index:
                    inner = items[index - seen]
                    if isinstance(inner, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
                        items[index - seen:index - seen + 1] = inner.body
                        done = self.attempt(tree)
                    break
                seen += len(items)
            changed |= done
            index += not done
        return changed

    def smaller(self, node):
        """Expressions that may stand in the place of this one."""
        if isinstance(node, (ast.Constant, ast.Name)):
            return []
        parts = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
        for k in getattr(node, "keywords", []):
            parts.append(k.value)
        shorter = []
        for field in ("args", "elts", "keywords", "values", "keys"):
            items = getattr(node, field, None)
            if isinstance(items, list) and items and not isinstance(node, ast.BoolOp):
                for i in range(len(items)):
                    other = copy.deepcopy(node)
                    del getattr(other, field)[i]
                    if isinstance(node, ast.Dict):
                        del getattr(other, "keys" if field == "values" else "values")[i]
                    shorter.append(other)
        return parts + shorter

    def expressions(self):
        changed, index = False, 0
        while time.monotonic() < self.ends:
            spots = [n for n in ast.walk(self.tree) if isinstance(n, ast.expr) and isinstance(getattr(n, "ctx",
                ast.Load()), ast.Load)]
            if index >= len(spots):
                return changed
            for choice in range(len(self.smaller(spots[index]))):
                tree = copy.deepcopy(self.tree)
                spot = [n for n in ast.walk(tree) if isinstance(n, ast.expr) and isinstance(getattr(n, "ctx",
                    ast.Load()), ast.Load)][index]
                if self.attempt(replaced(tree, spot, self.smaller(spot)[choice])):
                    changed = True
                    break
            else:
                index += 1
        return changed

    def run(self):
        while time.monotonic() < self.ends:
            changed = self.statements()
            changed |= self.unwrap()
            if changed:
                continue
            if not self.expressions():
                break
        return text_of(self.tree)


def replaced(tree, old, new):
    class Replace(ast.NodeTransformer):
        def visit(self, node):
            return new if node is old else self.generic_visit(node)

    return Replace().visit(tree)


def shape_of(source):
    """What a reduced program consists of, without its names and numbers: equal for the same fault found again."""
    words = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            words.append(node.attr)
        elif not isinstance(node, (ast.Load, ast.Store, ast.Name, ast.Constant, ast.alias, ast.arg, ast.arguments)):
            words.append(type(node).__name__)
    return " ".join(sorted(set(words)))


def reduce(source, still_differs, seconds=60):
    return Reducer(source, still_differs, seconds).run()

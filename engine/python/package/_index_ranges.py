"""Within which bounds an integer of a saved graph must lie for what the graph takes it for: an index of rows, a class, a position.

The bounds are those of the places where it is an index, carried back to it through what moves integers and through sums and products."""

import math

from ._saved_graph import VIEW_LIKE, short_name

# Where an integer is an index: operator, position of the argument -> how many rows there are, from (program, node).
_INDEXED = {
    ("embedding", 1): lambda p, n: _size(p, n, 0, 0),
    ("embedding_bag", 1): lambda p, n: _size(p, n, 0, 0),
    ("_embedding_bag", 1): lambda p, n: _size(p, n, 0, 0),
    ("_embedding_bag_forward_only", 1): lambda p, n: _size(p, n, 0, 0),
    ("embedding_bag", 2): lambda p, n: 1,  # where bags begin: the first at 0, none before the one that it follows
    ("_embedding_bag", 2): lambda p, n: 1,
    ("_embedding_bag_forward_only", 2): lambda p, n: 1,
    ("index_select", 2): lambda p, n: _size_along(p, n, 0, 1),
    ("gather", 2): lambda p, n: _size_along(p, n, 0, 1),
    ("scatter", 2): lambda p, n: _size_along(p, n, 0, 1),
    ("scatter_add", 2): lambda p, n: _size_along(p, n, 0, 1),
    ("scatter_reduce", 2): lambda p, n: _size_along(p, n, 0, 1),
    ("index_add", 2): lambda p, n: _size_along(p, n, 0, 1),
    ("index_copy", 2): lambda p, n: _size_along(p, n, 0, 1),
    ("index_fill", 2): lambda p, n: _size_along(p, n, 0, 1),
    ("index_reduce", 2): lambda p, n: _size_along(p, n, 0, 1),
    ("nll_loss_forward", 1): lambda p, n: _classes(p, n, 0),
    ("nll_loss2d_forward", 1): lambda p, n: _classes(p, n, 0),
    ("nll_loss", 1): lambda p, n: _classes(p, n, 0),
    ("nll_loss_nd", 1): lambda p, n: _classes(p, n, 0),
    ("nll_loss_backward", 2): lambda p, n: _classes(p, n, 1),
    ("nll_loss2d_backward", 2): lambda p, n: _classes(p, n, 1),
    ("multi_margin_loss", 1): lambda p, n: _classes(p, n, 0),
    ("cross_entropy_loss", 1): lambda p, n: _classes(p, n, 0),
    ("embedding_dense_backward", 1): lambda p, n: _number(p, n["args"][2]),
    ("one_hot", 0): lambda p, n: _number(p, n["args"][1]),
    ("take", 1): lambda p, n: _numel(p, n, 0),
    ("put", 1): lambda p, n: _numel(p, n, 0),
}
_INDEX_LISTS = {"index", "_unsafe_index", "index_put", "_unsafe_index_put"}
# Arguments whose integers arrive in the first result as they are, some of them or all.
_MOVED = {"gather": {0}, "index_select": {0}, "index": {0}, "_unsafe_index": {0}, "take": {0}, "flip": {0}, "roll": {0}, "repeat": {0},
          "cat": {0}, "stack": {0}, "where": {1, 2}, "masked_fill": {0, 2}, "masked_select": {0}, "constant_pad_nd": {0}, "slice_scatter": {0, 1},
          "select_scatter": {0, 1}, "scatter": {0, 3}, "index_put": {0, 2}, "index_copy": {0, 3}, "index_fill": {0}, "amax": {0}, "amin": {0},
          "max": {0}, "min": {0}, "maximum": {0, 1}, "minimum": {0, 1}, "clamp": {0}, "clamp_min": {0}, "clamp_max": {0}, "sort": {0}, "topk": {0},
          "unfold": {0}, "tril": {0}, "triu": {0}, **{name: {0} for name in VIEW_LIKE}}
_MOVED_TO_ALL = {"split", "split_with_sizes", "unbind", "chunk"}  # to every result
_ANY = (-math.inf, math.inf)


def _number(program, argument):
    """An integer argument's value, or None."""
    value = program.expression(argument["e"]) if isinstance(argument, dict) and "e" in argument else argument
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _meta_of(program, node, position):
    value = next(program.values_in([node["args"][position]]), None)
    return program.meta(*value) if value else None


def _size(program, node, position, dim):
    meta = _meta_of(program, node, position)
    return meta[0][dim] if meta and meta[0] else None


def _size_along(program, node, position, dim_position):
    meta, dim = _meta_of(program, node, position), _number(program, node["args"][dim_position])
    return meta[0][dim] if meta and meta[0] and dim is not None and -len(meta[0]) <= dim < len(meta[0]) else None


def _classes(program, node, position):
    meta = _meta_of(program, node, position)
    return meta[0][1 if len(meta[0]) > 1 else 0] if meta and meta[0] else None


def _numel(program, node, position):
    meta = _meta_of(program, node, position)
    return math.prod(meta[0]) if meta else None


class IndexRanges:
    """The bounds of a graph's integers, each looked up once."""

    def __init__(self, program, users):
        self.program, self.users = program, users
        self.found, self.extents = {}, {}

    def of(self, start):
        """(lowest, highest) of what the value `start`, (node, output), may be; infinite where nothing in the graph says."""
        # A call comes after what it reads: from the last value back, without recursion, which deep graphs would exhaust.
        todo, seen = [start], {start}
        while todo:
            for call, position in self.users.get(todo.pop(), ()):
                for value in self._results(call, position):
                    if value not in seen:
                        seen.add(value)
                        todo.append(value)
        for value in sorted(seen - self.found.keys(), reverse=True):
            self.found[value] = _common(self._bounds(value, call, position) for call, position in self.users.get(value, ()))
        return self.found[start]

    def _results(self, call, position):
        """The results of a call into which its argument's integers go."""
        node = self.program.nodes[call]
        if node["kind"] != "call":
            return []
        name = short_name(node["op"])
        if name in _MOVED_TO_ALL and position == 0:
            return [(call, o) for o in range(len(node["out"]))]
        return [(call, 0)] if position in _MOVED.get(name, ()) or name in _CARRIED else []

    def _bounds(self, value, call, position):
        """What one use of a value asks of it."""
        node = self.program.nodes[call]
        if node["kind"] != "call":
            return _ANY
        name = short_name(node["op"])
        rule = _INDEXED.get((name, position))
        rows = rule(self.program, node) if rule else self._indexed_rows(node, value) if name in _INDEX_LISTS and position == 1 else None
        asked = (0, rows - 1) if rows and rows > 0 else _ANY
        results = _common(self.found.get(result, _ANY) for result in self._results(call, position))
        if results == _ANY:
            return asked
        carried = _CARRIED[name](self, node, position, *results) if name in _CARRIED else results
        return _common([asked, carried])

    def _indexed_rows(self, node, value):
        meta = _meta_of(self.program, node, 0)
        if not meta:
            return None
        return min((meta[0][d] for d, a in enumerate(node["args"][1])
                    if isinstance(a, dict) and tuple(a.get("v", ())) == value and d < len(meta[0])), default=None)

    def extent(self, argument):
        """(lowest, highest) that an argument has whatever the inputs are: numbers, and what a graph makes of them. None elsewhere."""
        number = _number(self.program, argument)
        if number is not None:
            return number, number
        if not (isinstance(argument, dict) and "v" in argument):
            return None
        value = tuple(argument["v"])
        if value not in self.extents:
            self.extents[value] = self._made(self.program.nodes[value[0]])
        return self.extents[value]

    def _made(self, node):
        if node["kind"] != "call":
            return None
        name, args = short_name(node["op"]), node["args"]
        if name == "arange":
            numbers = [_number(self.program, a) for a in args[:3]]
            start = numbers[0] if node["op"].partition(".")[2].startswith("start") else 0
            end = numbers[1] if node["op"].partition(".")[2].startswith("start") else numbers[0]
            return (start, max(start, end - 1)) if start is not None and end is not None else None
        if name in VIEW_LIKE:
            return self.extent(args[0])
        if name in ("add", "mul"):
            a, b = self.extent(args[0]), self.extent(args[1])
            if a is None or b is None or (name == "add" and _number(self.program, args[2]) != 1):
                return None
            corners = [x + y if name == "add" else x * y for x in a for y in b]
            return min(corners), max(corners)
        return None

    # --- from the bounds of a result to those of an argument ---

    def _of_sum(self, node, position, low, high):
        other = self.extent(node["args"][1 - position])
        if other is None:  # of two that are drawn, each takes half
            return _up(low, 2), _down(high, 2)
        factor = _number(self.program, node["args"][2])
        if not factor or factor < 0:
            return _ANY
        if position == 1:
            return _up(low - other[0], factor), _down(high - other[1], factor)
        return low - factor * other[0], high - factor * other[1]

    def _of_difference(self, node, position, low, high):
        other, factor = self.extent(node["args"][1 - position]), _number(self.program, node["args"][2])
        if factor != 1:
            return _ANY
        if position == 0:
            return (low + other[0], high + other[1]) if other and other[0] == other[1] else (low, high)
        return (other[1] - high, other[0] - low) if other else (-high, max(0, -low))

    def _of_product(self, node, position, low, high):
        other = self.extent(node["args"][1 - position])
        if other is None:
            return (0 if low <= 0 else 1), (math.isqrt(high) if 0 <= high < math.inf else high)
        return (_up(low, other[1]), _down(high, other[1])) if other[0] >= 0 and other[1] > 0 else _ANY

    def _of_quotient(self, node, position, low, high):
        other = self.extent(node["args"][1])
        if position != 0 or not other or other[0] != other[1] or other[0] <= 0:
            return _ANY
        return low * other[0], high * other[0] + other[0] - 1

    def _of_total(self, node, position, low, high):
        whole, part = _meta_of(self.program, node, 0), node["out"][0]
        if not whole:
            return _ANY
        if short_name(node["op"]) == "cumsum":
            count = _size_along(self.program, node, 0, 1) or 1
            return low, _down(high, count)
        count = math.prod(whole[0]) // max(1, math.prod(self.program.expression(e) for e in part["sizes"]))
        return _up(low, max(1, count)), _down(high, max(1, count))


_CARRIED = {"add": IndexRanges._of_sum, "sub": IndexRanges._of_difference, "mul": IndexRanges._of_product, "floor_divide": IndexRanges._of_quotient,
            "div": IndexRanges._of_quotient, "cumsum": IndexRanges._of_total, "sum": IndexRanges._of_total}


def _common(bounds):
    low, high = _ANY
    for a, b in bounds:
        low, high = max(low, a), min(high, b)
    return low, high


def _up(bound, by):
    return bound if math.isinf(bound) else -(-bound // by)


def _down(bound, by):
    return bound if math.isinf(bound) else bound // by

"""The FX graph that a backend in Python is given: torch's calls as the program made them, which capture writes down one by one.

A row is (kind, target, arguments, keywords, result, places, modules, name): stand-ins of tensors are values of the graph, told apart by
identity.
"""

import ast
import copy
import linecache
import operator
import re
import types

import numpy as np
import torch
import torch.fx

# As TorchCalls::Kind has them.
_FUNCTION, _MODE, _ENTER_BLOCK, _LEAVE_BLOCK, _AUTOGRAD_FUNCTION, _CONDITION, _LOOP, _MAP, _SCAN, _WRAP, _READ = range(11)
_OF_GRAPHS = (_CONDITION, _LOOP, _MAP, _SCAN, _WRAP)  # operators that are given functions

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), torch.dtype, torch.device, torch.memory_format, torch.layout, range)
_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}  # as torch takes Python's types
_SET_GRAD = torch._C._set_grad_enabled
_GRAD_MODES = torch.autograd.grad_mode.__file__
# What an operator in place does where its left side is a number.
_NOT_IN_PLACE = {getattr(operator, "i" + name.rstrip("_")): getattr(operator, name) for name in (
    "add", "and_", "floordiv", "lshift", "matmul", "mod", "mul", "or_", "pow", "rshift", "sub", "truediv", "xor")}
# How expressions over sizes are computed in a graph.
_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
               ast.Div: operator.truediv, ast.Pow: operator.pow, "max": torch.sym_max, "min": torch.sym_min, "float": torch.sym_float,
               **{name: getattr(torch, "_sym_" + name) for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "log2")}}
# What autocast does for its cache of casted weights: the block that was entered before the graph still has it.
_OF_THE_CACHE = (torch.autocast_increment_nesting, torch.autocast_decrement_nesting, torch.clear_autocast_cache)

# What a tensor's class comes from that is given where the graph's results are.
_GIVE_CLASSES = (torch._tensor._convert, torch.Tensor.as_subclass)

_NO_LONGER = object()  # the value of a tensor that has other data now and requires a gradient


def exchanged(tensor, data):
    """As the target of a row: from here on `tensor` has the data of another value of the graph. The program's own is given them after it."""


class NotExpressible(Exception):
    """A call that an FX graph cannot show, and why."""

    def __init__(self, row, reason):
        super().__init__(reason)
        self.row, self.reason = row, reason


class TorchGraph:
    """A graph, and which of the region's inputs it reads; `inputs`: the tensors of these. `sizes`: where its first placeholders, the numbers that
    are symbols, are found, by name: (number of the input, dimension), or None for an input that is an int. `dynamic`: the symbol of each dimension
    of each tensor, or None. `own_sizes`: what the numbers are in the capture, `ints`: what those of the program are now, `symbols`: what PyTorch's
    description of the graph, `module`, has for them. `assumes`: its last result says whether the others count. `data_dims`: its last results before
    that have the values of symbols that data decide, as the sizes of these dimensions; -1: as their one element."""

    def __init__(self, root, graph, inputs, used_inputs, sizes, own_sizes, dynamic, assumes=False):
        self.root, self.graph, self.inputs, self.used_inputs, self.assumes = root, graph, inputs, used_inputs, assumes
        self.sizes, self.own_sizes, self.dynamic = sizes, own_sizes, dynamic
        self.symbols, self.module, self.ints, self.data_dims = (), None, {}, []
        self.operators = sum(node.op.startswith("call_") for node in graph.nodes)
        self.has_subgraphs = any(node.op == "get_attr" for node in graph.nodes)

    @property
    def text(self):
        return str(self.graph)

    def _number(self, name):
        return next(n for n in self.graph.nodes if n.op == "placeholder" and n.target == name)

    def _replace_size(self, name, value, symbol):
        node = self._number(name)
        node.replace_all_uses_with(value)
        self.graph.erase_node(node)
        del self.sizes[name]
        self.dynamic = [[symbol if known == name else known for known in dims] for dims in self.dynamic]

    def fix_size(self, name, value):
        """The symbol is that number."""
        self._replace_size(name, value, None)

    def unite_sizes(self, name, other):
        """Both are one number: that of `other`."""
        self._replace_size(name, self._number(other), other)


def _tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors_in(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors_in(part)


def _only_tensors(value):
    return isinstance(value, torch.Tensor) or (isinstance(value, (tuple, list)) and all(map(_only_tensors, value))) or (
        isinstance(value, dict) and all(map(_only_tensors, value.values())))


def _structure(value):
    """Of nested containers of tensors, in the order in which they lie there."""
    if isinstance(value, torch.Tensor):
        return None
    return type(value), list(value) if isinstance(value, dict) else None, [_structure(v) for v in (value.values() if isinstance(value, dict) else value)]


def _module_name(path):
    return "L__self__" + "".join("_" + part for part in path.split(".")) if path else "L__self__"


class _AutogradCall:
    """An autograd.Function as the target of a call."""

    def __init__(self, cls):
        self.cls = cls
        self.__name__ = self.__qualname__ = cls.__name__
        self.__module__ = cls.__module__

    def __call__(self, *args):
        return self.cls.apply(*args)

    def __repr__(self):
        return f"{self.__module__}.{self.__name__}.apply"


class _Builder:
    """Rows → nodes of one graph. `names`: of results. `outer`: of the graph that this one is a function in."""

    def __init__(self, root, names, outer=None, op=None):
        self.root, self.names, self.outer = root, names, outer
        self.depth = outer.depth + 1 if outer else 0
        self.within = [*outer.within, (op._name, op)] if outer else []  # operators whose functions these are, outermost first
        self.numbers = outer.numbers if outer else {}                   # how many subgraphs have a name that begins so
        self.graph = torch.fx.Graph()
        self.values = {}     # id of a tensor → its node, or (node, path) of a part that nobody has asked for
        self.named = set()   # nodes that have a name of the program's
        self.keep = []       # what the ids belong to
        self.lifted = []     # tensors of the outer graph that this one uses
        self.blocks = {}  # id of an autocast or inference_mode object → node
        self.sizes = {}      # a symbol of sizes, or an expression over them → node
        self.data = {}       # a symbol that data decide → (the tensor that has it as a size, which), or (row of ints, element, None)
        self.held = {}       # such a symbol → what holder() gives for it
        self.assumed = []    # what is assumed of these
        self.switches = set()  # of the gradient mode, by torch.no_grad() and its like
        self.reads = []      # nodes that only give numbers to the program
        self.last_placeholder = None
        self.row = -1

    # --- values ---------------------------------------------------------------------------------------------------------------------
    def placeholder(self, name, tensor, kind=None):
        with self.graph.inserting_after(self.last_placeholder) if self.last_placeholder else self.graph.inserting_before(self.first()):
            node = self.graph.placeholder(name, kind)
        self.last_placeholder = node
        if tensor is not None:
            self.bind(tensor, node)
        return node

    def first(self):
        return next(iter(self.graph.nodes), self.graph._root)

    def bind(self, tensor, value):
        if isinstance(value, torch.fx.Node) and id(tensor) not in self.values:
            self.name(value, tensor)
        self.values[id(tensor)] = value
        self.keep.append(tensor)

    def name(self, node, tensor):
        if name := self.names.get((id(tensor), self.depth)):
            self.rename(node, name)

    def rename(self, node, name):
        """As the program calls it, unless the node has a name of the program's."""
        if node.op in ("placeholder", "get_attr") or node in self.named:
            return
        self.named.add(node)
        if node.name != name:
            node._rename(name)

    def value_of(self, tensor):
        value = self.values.get(id(tensor))
        if isinstance(value, torch.fx.Node):
            return value
        if value is _NO_LONGER:
            raise NotExpressible(self.row, "a tensor that requires a gradient is used after its data have been exchanged")
        if value is not None:
            node, path, after = value
            for index in path:
                known = (node, index)
                made = self.values.get(known)
                if made is None:
                    with self.graph.inserting_after(after[-1]):
                        made = self.part(node, index)
                    self.values[known] = made
                    after.append(made)
                node = made
            self.values[id(tensor)] = node
            self.name(node, tensor)
            return node
        if self.outer is not None:
            self.lifted.append(tensor)
            return self.placeholder(self.outer.value_of(tensor).name, tensor)
        if self.is_constant(tensor):
            name = self.attribute("_tensor_constant", tensor)
            node = self.graph.get_attr(name)
            self.bind(tensor, node)
            return node
        raise NotExpressible(self.row, "a tensor is used that no call of torch's made")

    def size(self, text):
        """The node that computes a SymInt or SymFloat, which says so."""
        if text not in self.sizes:
            self.sizes[text] = self.computed(ast.parse(text, mode="eval").body)
        return self.sizes[text]

    def computed(self, tree):
        if isinstance(tree, ast.Constant):
            return tree.value
        if isinstance(tree, ast.Name) and tree.id in self.data:
            return self.number(tree.id)
        if isinstance(tree, ast.Name) and tree.id in self.sizes:
            return self.sizes[tree.id]
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            return self.graph.call_function(operator.neg, (self.size(ast.unparse(tree.operand)),))
        operands = [tree.left, tree.right] if isinstance(tree, ast.BinOp) else tree.args if isinstance(tree, ast.Call) else []
        kind = type(tree.op) if isinstance(tree, ast.BinOp) else tree.func.id if isinstance(tree, ast.Call) else None
        if kind not in _ARITHMETIC or not operands:
            raise NotExpressible(self.row, f"the size {ast.unparse(tree)} changes and is computed from no size of the graph's inputs")
        return self.graph.call_function(_ARITHMETIC[kind], tuple(self.size(ast.unparse(operand)) for operand in operands))

    def holder(self, name):
        """(Where the value of a symbol that data decide is, as the size of which dimension; -1: as its element)"""
        if self.data[name] is None:
            raise NotExpressible(self.row, "a size that data decide is none of a call's result")
        tensor, at, element = self.data[name]
        node = self.value_of(tensor)
        if element is None:
            return node, at
        if element >= 0:
            node = self.graph.call_method("select", (node, 0, element))
        return (node if tensor.dtype == torch.int64 else self.graph.call_method("long", (node,))), -1

    def number(self, name):
        """The node that is a symbol which data decide, and checks of what is assumed of it."""
        node, dim = self.held[name] = self.holder(name)
        del self.data[name]
        if dim < 0:
            made = self.graph.call_method("item", (node,))
        else:
            made = self.graph.call_function(torch.ops.aten.sym_size.int, (node, dim))
        self.sizes[name] = made
        for assumption in list(self.assumed):
            names = {leaf.id for text in assumption[1:] for leaf in ast.walk(ast.parse(text)) if isinstance(leaf, ast.Name)}
            if assumption in self.assumed and not (names - {"min", "max"}) - self.sizes.keys():
                self.assumed.remove(assumption)
                compare, left, right = assumption
                asked = self.graph.call_function(getattr(operator, compare), (self.size(left), self.size(right)))
                self.graph.call_function(torch._check, (asked,))
        return made

    def part(self, node, index):
        made = self.graph.call_function(operator.getitem, (node, index))
        made.meta.update({k: v for k, v in node.meta.items() if k in ("stack_trace", "nn_module_stack")})
        return made

    @staticmethod
    def is_constant(tensor):
        is_stand_in = torch._is_functional_tensor(tensor) or torch._C._functorch.is_functorch_wrapped_tensor(tensor)
        return type(tensor) is torch.Tensor and not is_stand_in

    def attribute(self, prefix, value):
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        setattr(self.root, f"{prefix}{number}", value)
        return f"{prefix}{number}"

    def argument(self, value):
        kind = type(value)
        if kind in _PLAIN:
            return value
        if isinstance(value, torch.Tensor):
            return self.value_of(value)
        if kind in (torch.SymInt, torch.SymFloat):
            return self.size(str(value))
        if kind is tuple or kind is torch.Size:
            return tuple(self.argument(part) for part in value)
        if kind is list:
            return [self.argument(part) for part in value]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return kind(*(self.argument(part) for part in value))
        if isinstance(value, tuple):
            return tuple(self.argument(part) for part in value)
        if isinstance(value, dict):
            return {key: self.argument(part) for key, part in value.items()}
        if kind is slice:
            return slice(self.argument(value.start), self.argument(value.stop), self.argument(value.step))
        if kind is torch.Generator:
            return self.graph.get_attr(self.attribute("_generator", value))
        if kind in (torch._ops.OpOverload,):
            return value
        if kind is type and value in _DTYPES:
            return _DTYPES[value]
        if isinstance(value, (np.bool_, np.number)):
            return value.item()  # to torch it is a number
        if isinstance(value, (bool, int, float, str)):
            for plain in (int, float, str):
                if isinstance(value, plain):
                    return plain(value)
        raise NotExpressible(self.row, f"a call of torch's is given a {kind.__module__}.{kind.__qualname__}, which a graph cannot hold")

    # --- calls ----------------------------------------------------------------------------------------------------------------------
    def call(self, op, target, args, kwargs):
        args, kwargs = self.argument(tuple(args)), self.argument(dict(kwargs))
        if target in _NOT_IN_PLACE and not isinstance(args[0], (torch.fx.Node, list)):
            target = _NOT_IN_PLACE[target]
        return self.graph.create_node(op, target, args, kwargs)

    def leave(self, entered):
        """Of what an _enter function of torch's gave."""
        leaves = torch.amp.autocast_mode._exit_autocast if entered.target is torch.amp.autocast_mode._enter_autocast else torch.autograd.grad_mode._exit_inference_mode
        return self.graph.call_function(leaves, (entered,))

    def add(self, row):
        kind, target, args, kwargs, result, places, modules, name = row
        if (kind == _MODE and target in _OF_THE_CACHE) or target is torch._C._functorch.unwrap_if_dead:
            return
        if target in _GIVE_CLASSES or getattr(target, "__name__", None) == "as_subclass":  # classes are given after the graph
            owner = getattr(target, "__self__", None)
            plain = _tensors_in(owner if isinstance(owner, torch.Tensor) else args[0])
            for tensor, given in zip(_tensors_in(result), plain):
                self.bind(tensor, self.value_of(given))
            return
        if target is exchanged:
            self.bind(args[0], _NO_LONGER if args[0].requires_grad else self.value_of(args[1]))
            return
        dropped, name = name is False, name if isinstance(name, str) and isinstance(result, torch.Tensor) else None
        if kind == _ENTER_BLOCK:
            block = args[0]
            if isinstance(block, torch.inference_mode):
                node = self.call("call_function", torch.autograd.grad_mode._enter_inference_mode, (block.mode,), {})
            else:
                node = self.call("call_function", torch.amp.autocast_mode._enter_autocast,
                                 (block.device, block.fast_dtype, block._enabled, block._cache_enabled), {})
            self.blocks[id(block)] = node
            self.keep.append(block)
        elif kind == _LEAVE_BLOCK:
            node = self.leave(self.blocks.pop(id(args[0])))
        elif kind == _AUTOGRAD_FUNCTION:
            node = self.call("call_function", _AutogradCall(target), args, {})
        elif kind == _WRAP:
            node = self.wrap(target, *args)
        elif kind in _OF_GRAPHS:
            node = {_CONDITION: self.condition, _LOOP: self.loop, _MAP: self.map, _SCAN: self.scan}[kind](target, *args)
            result = list(_tensors_in(result))
        else:
            node = self.plain(target, args, kwargs)
        if kind == _READ:
            self.reads.append(node)
        self.describe(node, places, modules, target)
        if name and kind not in _OF_GRAPHS:  # of what gives its operand too
            self.rename(node, name)
        for given in node.all_input_nodes:
            if given.op == "get_attr" and not given.stack_trace:
                given.meta["stack_trace"] = node.stack_trace
        if kind == _WRAP:
            for i, tensor in enumerate(_tensors_in(result)):
                self.bind(tensor, self.part(node, i))
            return
        is_operand = isinstance(result, torch.Tensor) and any(result is given for given in _tensors_in(args))
        if not (dropped and is_operand):  # a method in place gives its operand, which is what the program goes on with
            self.bind_results(node, result)

    def plain(self, target, args, kwargs):
        if target is operator.getitem and isinstance(args[1], torch.SymInt):  # which torch's indexing takes for a constant
            target, args = torch.select, (args[0], 0, args[1])
        if isinstance(target, (types.MethodDescriptorType, types.WrapperDescriptorType)) and issubclass(torch.Tensor, target.__objclass__):
            return self.call("call_method", target.__name__, args, kwargs)
        if isinstance(target, types.FunctionType) and args and getattr(torch.Tensor, target.__name__, None) is target:
            return self.call("call_method", target.__name__, args, kwargs)
        owner = getattr(target, "__self__", None)
        if isinstance(target, (types.BuiltinMethodType, types.MethodWrapperType)) and isinstance(owner, torch.Tensor):
            return self.call("call_method", target.__name__, (owner, *args), kwargs)
        if not isinstance(target, (types.FunctionType, types.BuiltinFunctionType, torch._ops.OpOverload, torch._ops.OpOverloadPacket)) \
                and not hasattr(target, "__name__"):
            raise NotExpressible(self.row, f"{target!r} is called, which has no name that code could be written with")
        return self.call("call_function", target, args, kwargs)

    def find_sizes(self, result):
        """Sizes that data decide, in what a call has given."""
        for tensor in _tensors_in(result):
            for dim, size in enumerate(tensor.shape):
                if isinstance(size, torch.SymInt) and self.data.get(str(size), ()) is None:
                    self.data[str(size)] = tensor, dim, None

    def bind_results(self, node, result):
        if None in self.data.values():
            self.find_sizes(result)
        if isinstance(result, torch.Tensor):
            self.bind(result, node)
            return
        after = [node]

        def walk(value, path):
            if isinstance(value, torch.Tensor):
                if path:
                    self.bind(value, (node, path, after))
            elif isinstance(value, (tuple, list)):
                for i, part in enumerate(value):
                    walk(part, (*path, i))
            elif isinstance(value, dict):
                for key, part in value.items():
                    walk(part, (*path, key))

        walk(result, ())

    def describe(self, node, places, modules, target):
        lines = []
        for file, line, function in places:
            code = linecache.getline(file, line).strip()
            lines.append(f'  File "{file}", line {line}, in {function}\n' + (f"    {code}\n" if code else ""))
        node.meta["stack_trace"] = "".join(lines)
        if target is _SET_GRAD and places and places[-1][0] == _GRAD_MODES:
            self.switches.add(node)
        if modules:
            node.meta["nn_module_stack"] = {_module_name(path): (f"L['self'].{path}" if path else "L['self']", cls) for path, cls in modules}
        if node.op in ("call_function", "call_method"):
            node.meta["source_fn_stack"] = [*self.within, (node.name, node.target)]

    # --- functions that are graphs of their own -----------------------------------------------------------------------------------------
    def subgraph(self, op, rows, arguments, results):
        """The builder of what a function did with its arguments; `lifted` is what it uses beside them."""
        if not _only_tensors(results):
            raise NotExpressible(self.row, "a function given to a higher-order operator returns something else than tensors")
        inner = _Builder(torch.nn.Module(), self.names, self, op)
        for i, tensor in enumerate(_tensors_in(arguments)):
            inner.placeholder(f"arg_{i}", tensor)
        for row in rows:
            inner.row = self.row
            inner.add(row)
        inner.finish(list(_tensors_in(results)))
        return inner

    def install(self, prefix, inner):
        module = torch.fx.GraphModule(inner.root, inner.graph, "GraphModule")
        number = self.numbers[prefix] = self.numbers.get(prefix, -1) + 1
        setattr(self.root, f"{prefix}{number}", module)
        return self.graph.get_attr(f"{prefix}{number}")

    def unite_lifted(self, *builders):
        """All graphs get what any of them uses from outside, in the same order after their own arguments."""
        tensors = []
        for builder in builders:
            tensors += [t for t in builder.lifted if all(t is not known for known in tensors)]
        for builder in builders:
            own = [n for n in builder.graph.nodes if n.op == "placeholder"]
            plain = own[:len(own) - len(builder.lifted)]
            last = plain[-1] if plain else None
            for tensor in tensors:
                with builder.graph.inserting_after(last) if last is not None else builder.graph.inserting_before(builder.first()):
                    node = builder.graph.placeholder(self.value_of(tensor).name)
                for old, known in zip(own[len(plain):], builder.lifted):
                    if known is tensor:
                        old.replace_all_uses_with(node)
                last = node
            for old in own[len(plain):]:
                builder.graph.erase_node(old)
        return tensors

    def wrap(self, op, body):
        inner = self.subgraph(op, *body)
        return self.graph.call_function(op, (self.install("wrap_body_", inner), *(self.value_of(t) for t in inner.lifted)))

    def condition(self, op, predicate, first, second, operands):
        yes, no = self.subgraph(op, *first), self.subgraph(op, *second)
        if _structure(first[2]) != _structure(second[2]):
            raise NotExpressible(self.row, "functions given to a conditional operator return other containers")
        lifted = self.unite_lifted(yes, no)
        given = tuple(self.argument(t) for t in (*_tensors_in(operands), *lifted))
        branches = self.install("cond_true_", yes), self.install("cond_false_", no)
        return self.graph.call_function(op, (self.argument(predicate), *branches, given))

    def loop(self, op, first, second, operands, others):
        test, body = self.subgraph(op, *first), self.subgraph(op, *second)
        self.require_equally_many(second[2], operands)
        self.one_result(test)
        lifted = self.unite_lifted(test, body)
        given = tuple(self.argument(t) for t in _tensors_in(operands))
        more = tuple(self.argument(t) for t in (*_tensors_in(others), *lifted))
        functions = self.install("while_loop_cond_", test), self.install("while_loop_body_", body)
        return self.graph.call_function(op, (*functions, given, more))

    def map(self, op, body, operands, others):
        inner = self.subgraph(op, *body)
        more = tuple(self.argument(t) for t in (*_tensors_in(others), *self.unite_lifted(inner)))
        given = [self.argument(t) for t in _tensors_in(operands)]
        return self.graph.call_function(op, (self.install("map_body_", inner), given, list(more)))

    def scan(self, op, body, initial, operands, others):
        inner = self.subgraph(op, *body)
        more = tuple(self.argument(t) for t in (*_tensors_in(others), *self.unite_lifted(inner)))
        first, given = ([self.argument(t) for t in _tensors_in(part)] for part in (initial, operands))
        return self.graph.call_function(op, (self.install("scan_combine_", inner), first, given, more))

    def require_equally_many(self, results, others):
        if len(list(_tensors_in(results))) != len(list(_tensors_in(others))):
            raise NotExpressible(self.row, "functions given to a higher-order operator return different numbers of tensors")

    def one_result(self, builder):
        """A test gives a tensor, not a tuple of one."""
        output = next(iter(reversed(builder.graph.nodes)))
        if len(output.args[0]) != 1:
            raise NotExpressible(self.row, "the test of a loop gives no single tensor")
        output.args = (output.args[0][0],)

    # --- the whole ----------------------------------------------------------------------------------------------------------------------
    def finish(self, results, grad_before=None, grad_after=None, data=(), assumes=False):
        """Where the values of the symbols `data` are among the last results."""
        self.row = -1
        results = [self.value_of(result) for result in results]
        held = [self.held[name] if name in self.held else self.holder(name) for name in data]
        results[len(results) - assumes:len(results) - assumes] = [node for node, _ in held]
        for node in reversed(self.blocks.values()):
            self.leave(node)
        if grad_before is not None and grad_before != grad_after:
            self.graph.call_function(_SET_GRAD, (grad_before,))
        self.graph.output(tuple(results))
        for node in reversed(self.reads):
            if not node.users:
                self.graph.erase_node(node)
        self.drop_idle_modes(grad_before)
        return [dim for _, dim in held]

    def drop_idle_modes(self, mode):
        """Switches of torch's own contexts to the mode that holds, and two with nothing between them of which the second takes back the first; the others stand where the
        program has them."""
        def switched(node):
            return node.args[0] if node.op == "call_function" and node.target is _SET_GRAD else None

        before = None  # the switch right before, and the mode before it
        for node in list(self.graph.nodes):
            to = switched(node)
            if to is not None and to == mode and node in self.switches:
                self.graph.erase_node(node)
            elif to is not None and before is not None and to == before[1] != switched(before[0]):
                self.graph.erase_node(before[0])
                self.graph.erase_node(node)
                mode, before = to, None
            elif to is not None:
                before, mode = (node, mode), to
            elif node.op != "placeholder":
                before = None


class Sized:
    """What a backend made of a graph whose first inputs are sizes of the others, or ints, which come last here."""

    def __init__(self, compiled, sizes, tensors):
        self.compiled, self.sizes, self.tensors = compiled, sizes, tensors

    def __call__(self, *inputs):
        numbers = [inputs[i] if dim is None else inputs[i].shape[dim] for i, dim in self.sizes]
        return self.compiled(*numbers, *inputs[:self.tensors])


class Misfit(Exception):
    """What was assumed of data does not hold in this call."""


class Assuming:
    """What a backend made of a graph that assumes something of data."""

    def __init__(self, compiled):
        self.compiled = compiled

    def __call__(self, *inputs):
        *results, fits = self.compiled(*inputs)
        if not fits:
            raise Misfit("what was captured does not fit the data of this call")
        return results


def _input_name(source):
    """A variable of the function's own is named as such, whether another function shares it or not."""
    source = re.sub(r"^(L\['\w+'\])\.cell_contents", r"\1", source)
    return re.sub(r"[^a-zA-Z0-9]+", "_", source)


def _marks_of(tensor, is_modules):
    """What PyTorch's backends are told of an input: that it stays where it is, and how it is tagged. What a module has stays."""
    noted = getattr(tensor, "__dict__", {})
    marks = {name: copy.copy(noted[name]) for name in ("_dynamo_static_input_type", "tag") if name in noted}
    return {"_dynamo_static_input_type": "unguarded", **marks} if is_modules else marks


def build(rows, names, inputs, results, grad_before, grad_after, assumes=False, data=(), assumptions=()):
    """TorchGraph of a region; None where it calls nothing. `names`: (id of a stand-in, depth of graphs) → the local that it was stored in.
    `inputs`: (stand-in, tensor, source, whether a module has it) each. `data`: (symbol, row of ints or None, element) of those that data decide, `assumptions`:
    (comparison, left, right) of them. NotExpressible says which row."""
    root = torch.nn.Module()
    builder = _Builder(root, names)
    found = {}  # a symbol of sizes → (input, dimension) each; None: the input itself
    for i, (stand_in, *_) in enumerate(inputs):
        for dim, size in enumerate(stand_in.shape) if isinstance(stand_in, torch.Tensor) else [(None, stand_in)]:
            if isinstance(size, torch.SymInt):
                found.setdefault(str(size), []).append((i, dim))
    if not all(name.isidentifier() for name in found):
        raise NotExpressible(-1, "a size of an input is an expression over others")
    for name in found:
        builder.sizes[name] = builder.placeholder(name, None, torch.SymInt)
    tensors = [given for given in inputs if isinstance(given[0], torch.Tensor)]
    nodes = [builder.placeholder(_input_name(source), stand_in, type(real)) for stand_in, real, source, _ in tensors]
    for node, (stand_in, real, source, is_modules) in zip(nodes, tensors):
        builder.bind(real, node)
        node.meta["source"], node.meta["tensor_dict"] = source, _marks_of(real, is_modules)
    builder.data = {name: None if tensor is None else (tensor, -1, element) for name, tensor, element in data}
    builder.assumed = list(assumptions)
    for i, row in enumerate(rows):
        builder.row = i
        builder.add(row)
    data_dims = builder.finish(results, grad_before, grad_after, [name for name, *_ in data], bool(assumes))
    graph = builder.graph
    works = any(n.op.startswith("call_") and n.target is not _SET_GRAD for n in graph.nodes)
    if not works and not results:
        return None
    needed = {found[name][0][0] for name in found if builder.sizes[name].users}
    used = []
    for i, node in enumerate(nodes):
        if node.users or i in needed:
            used.append(i)
        else:
            graph.erase_node(node)
    tensors = [inputs[i] for i in used]
    used += [i for i in range(len(nodes), len(inputs)) if i in needed]
    sizes = {}
    for name, places in found.items():
        place = next(((used.index(i), dim) for i, dim in places if i in used), None)
        if place is not None:
            sizes[name] = place
        else:
            graph.erase_node(builder.sizes[name])
    dynamic = [[str(size) if isinstance(size, torch.SymInt) else None for size in stand_in.shape] for stand_in, *_ in tensors]
    own_sizes = {name: inputs[used[i]][0] if dim is None else inputs[used[i]][0].shape[dim] for name, (i, dim) in sizes.items()}
    graph.lint()
    made = TorchGraph(root, graph, [real for _, real, *_ in tensors], used, sizes, own_sizes, dynamic, assumes)
    made.data_dims = data_dims
    made.ints = {name: inputs[used[i]][1] for name, (i, dim) in sizes.items() if dim is None}
    return made

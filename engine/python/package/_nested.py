"""Nested tensors of the jagged layout: what capture does in the place of torch.nested's code.

Functions that say so are run by CPython, the others are followed.
"""

import inspect
import itertools
import weakref

import torch

#: Operators that torch.nested computes by looking at what only tensors with data have: what is followed in its function's place.
_own = {}
#: By name of the functions of torch.nested that make nested tensors: the same, to be followed.
makers = {}
_sizes = None
_tables = None
_numbers = itertools.count(1)


def set_up():
    """Run by CPython, before the first nested tensor is followed."""
    global _sizes, _tables, _RaggedNode
    from fusebox import _engine
    from torch.fx.operator_schemas import normalize_function
    from torch.nested._internal import nested_tensor, ops
    from torch.nested._internal.nested_int import NestedIntNode
    from torch.utils.weak import WeakTensorKeyDictionary

    class _RaggedNode(NestedIntNode):
        """The ragged size of nested tensors whose offsets (or lengths) are a tensor of a capture."""

        def __init__(self, number, coeff, tensor):
            super().__init__(number, coeff)
            self.tensor = tensor

        def mul(self, other):
            made = super().mul(other)
            return _RaggedNode(made.t_id, made.coeff, self.tensor)

    _sizes = WeakTensorKeyDictionary()
    _tables = ops
    aten = torch.ops.aten
    _own.update({aten._to_copy.default: _to_copy, aten.view.default: _view, aten._unsafe_view.default: _view, aten._softmax.default: _softmax})
    # Attributes only once they are asked for.
    aten._jagged_to_padded_dense_forward, aten._padded_dense_to_jagged_forward  # noqa: B018
    nested_tensor._nt_view_dummy()
    _engine.substitute_in_graph(normalize_function, _normalized)


def maker(name):
    """Run by CPython: the function of torch.nested of that name as one that no rule knows."""
    if name not in makers:
        original = getattr(torch.nested, name)
        made = type(original)(original.__code__, original.__globals__, name, original.__defaults__, original.__closure__)
        made.__kwdefaults__ = original.__kwdefaults__
        makers[name] = made
    return makers[name]


def values_of(nested):
    """Run by CPython: the values of a nested tensor of the program, with its history. Their rows are of any number, as its own are."""
    values = torch._nested_get_values(nested)
    if marks := getattr(nested._values, "_dynamo_weak_dynamic_indices", None):
        values._dynamo_weak_dynamic_indices = set(marks)
    return values


def ragged_size(tensor):
    """Run by CPython: the size of a dimension that `tensor`, of the capture, describes."""
    size = _sizes.get(tensor)
    if size is None:
        size = _sizes[tensor] = torch.SymInt(_RaggedNode(-next(_numbers), 1, weakref.ref(tensor)))
    return size


def described_by(size):
    """Run by CPython: the tensor of such a size; None where it is a multiple of one."""
    return size.node.tensor() if size.node.coeff == 1 else None


def shell(dims, values):
    """Run by CPython: a nested tensor without attributes, which code in C asks for everything but the type of its elements and its device."""
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.NestedTensor).add(torch._C.DispatchKey.AutogradNestedTensor)
    return torch.Tensor._make_wrapper_subclass(_tables.NestedTensor, (2,) * dims, (1,) * dims, 0, torch.contiguous_format, values.dtype,
                                               torch.jagged, values.device, False, False, "sizes", False, True, keys, storage_size=0)


def size_of(values, offsets, lengths, ragged_idx):
    """The sizes of a nested tensor."""
    inside = ragged_idx - 1
    ragged = ragged_size(offsets if lengths is None else lengths)
    return (offsets.shape[0] - 1, *values.shape[:inside], ragged, *values.shape[inside + 1:])


def made(values, offsets, *, lengths=None, _ragged_idx=1, _metadata_cache=None, requires_grad=False):
    """NestedTensor(…)"""
    nested = shell(values.dim() + 1, values)
    nested._ragged_idx = _ragged_idx
    nested._size = size_of(values, offsets, lengths, _ragged_idx)
    nested._values = values
    nested._offsets = offsets
    nested._lengths = lengths
    nested._metadata_cache = _metadata_cache or {}
    return nested


def viewed(values, offsets, dummy, lengths=None, ragged_idx=1, min_seqlen=None, max_seqlen=None):
    """torch._nested_view_from_jagged(…)"""
    cache = {}
    if min_seqlen is not None:
        cache["min_seqlen"] = min_seqlen
    if max_seqlen is not None:
        cache["max_seqlen"] = max_seqlen
    return made(torch.ops.aten.alias.default(values), offsets, lengths=lengths, _ragged_idx=ragged_idx, _metadata_cache=cache)


def _like(nested, values):
    """A nested tensor with the raggedness of another."""
    return made(values, nested.offsets(), lengths=nested.lengths(), _ragged_idx=nested._ragged_idx, _metadata_cache=nested._metadata_cache)


def _to_copy(operator, nested, *, device=None, layout=None, **keywords):
    if device is not None and torch.device(device) != nested._values.device:
        torch._dynamo.graph_break("a nested tensor goes to another device")
    return _like(nested, operator(nested._values, **keywords))


def _softmax(operator, nested, dim, half_to_float):
    if (dim + nested.dim() if dim < 0 else dim) == nested._ragged_idx and nested.requires_grad:
        torch._dynamo.graph_break("the gradient of a softmax over a ragged dimension is PyTorch's own")  # and not that of its result
    return _tables.JAGGED_OPS_TABLE[operator](nested, dim, half_to_float)


def _view(operator, nested, size):
    at = nested._ragged_idx
    same = len(size) == len(nested._size) and all(a == b for a, b in zip(nested._size, size))
    if at != 1 and not same or len(size) < 3 or not _tables.raggedness_matches(nested, size):
        raise RuntimeError("view(): a nested tensor keeps its batch and its ragged dimension")
    inside = [nested._values.shape[i] if i == at - 1 else size[i + 1] for i in range(len(size) - 1)]
    return _like(nested, operator(nested._values, inside))


def padded(values, offsets, max_lengths, padding_value=0.0):
    """torch.ops.aten._jagged_to_padded_dense_forward(values, [offsets], [length], padding)"""
    begin = offsets[0]
    places = torch.arange(max_lengths[0], device=values.device)
    inside = places < begin.diff().unsqueeze(-1)
    rows = torch.where(inside, begin[:-1].unsqueeze(-1) + places, 0)
    shape = (*inside.shape, *(1 for _ in values.shape[1:]))
    return torch.where(inside.view(shape), values[rows], padding_value).to(values.dtype)


def packed(dense, offsets, total_L):
    """torch.ops.aten._padded_dense_to_jagged_forward(dense, [offsets], rows)"""
    begin = offsets[0]
    rows = torch.arange(total_L, device=dense.device)
    batch = (torch.searchsorted(begin, rows, right=True) - 1).clamp(0, dense.shape[0] - 1)
    place = rows - begin[batch]
    inside = (place < dense.shape[1]).view(-1, *(1 for _ in dense.shape[2:]))
    return torch.where(inside, dense[batch, place.clamp(max=dense.shape[1] - 1)], 0).to(dense.dtype)


def whole(values, offsets, lengths, ragged_idx, cache):
    """Run by CPython after the graph: the nested tensor of its results. One with a history is a view of its values. Classes of its parts have heard
    of what the program does."""
    with torch._C.DisableTorchFunctionSubclass():
        if not values.requires_grad:
            return _tables.NestedTensor(values, offsets, lengths=lengths, _ragged_idx=ragged_idx, _metadata_cache=cache)
        from torch.nested._internal.nested_tensor import _nt_view_dummy
        nested = torch._nested_view_from_jagged(values, offsets, _nt_view_dummy(), lengths, ragged_idx, cache.get("min_seqlen"), cache.get("max_seqlen"))
        nested._metadata_cache = cache
        return nested


def ragged_number(tensor):
    """Run by CPython after the graph: the size of the program's own."""
    from torch.nested._internal.nested_tensor import get_tensor_symint
    with torch._C.DisableTorchFunctionSubclass():
        return get_tensor_symint(tensor, coeff=1)


def handler(operator, arguments):
    """Run by CPython: (function, whether it wants the operator first) that computes an operator on nested tensors; None: what it consists of does."""
    if operator in _own:
        return _own[operator], True
    known = _tables.JAGGED_OPS_TABLE.get(operator)
    if known is not None:
        return known, False
    if torch.Tag.pointwise in operator.tags:
        count = sum(isinstance(a, torch.Tensor) for a in arguments)
        if count in (1, 2):
            return (_tables.jagged_unary_pointwise if count == 1 else _tables.jagged_binary_pointwise), True
    return None


def decomposed(operator, arguments, keywords):
    """Run by CPython: an operator by those that it consists of."""
    key = torch._C.DispatchKey
    for kernel in (key.CompositeImplicitAutogradNestedTensor, key.CompositeImplicitAutograd):
        if torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), kernel):
            return operator._op_dk(kernel, *arguments, **(keywords or {}))
    raise NotImplementedError(operator)


_parameters = {}


def parameters_of(target):
    """Run by CPython: names and defaults of an operator's or function's parameters; () stands for a parameter without one."""
    if target not in _parameters:
        if isinstance(target, torch._ops.OpOverload):
            rows = [("input" if a.name == "self" else a.name, (a.default_value,) if a.has_default_value() else ()) for a in target._schema.arguments]
        else:
            rows = [(p.name, () if p.default is p.empty else (p.default,)) for p in inspect.signature(target).parameters.values()]
        _parameters[target] = tuple((name, tuple(tuple(d) if isinstance(d, list) else d for d in default)) for name, default in rows)
    return _parameters[target]


def _normalized(target, args, kwargs=None, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
    """torch.fx.operator_schemas.normalize_function for operators of one overload."""
    given = {("input" if name == "self" else name): value for name, value in (kwargs or {}).items()}
    named = {}
    for index, (name, default) in enumerate(parameters_of(target)):
        if index < len(args):
            named[name] = args[index]
        elif name in given:
            named[name] = given[name]
        elif default:
            named[name] = list(default[0]) if isinstance(default[0], tuple) else default[0]
        else:
            return None
    if normalize_to_only_use_kwargs:
        return (), named
    values = list(named.items())
    return tuple(value for _, value in values[:len(args)]), dict(values[len(args):])

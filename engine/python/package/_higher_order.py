"""Operators, most of them of higher order, written in PyTorch's plain operators: capture follows these in the place of what it meets.

Each has the signature of what it stands for and gives what that gives in eager mode.
"""

import math

import torch
from torch.utils import _pytree as pytree


def _lacks_gradient(value):
    """Whether a value is a tensor that an operator with a history would give one."""
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()) and not value.requires_grad


def _in_layout_of(out, like):
    """`out` with its dimensions in memory in the order of `like`'s strides, the last one innermost."""
    inner_first = sorted(range(out.dim()), key=lambda d: like.stride(d))
    innermost = out.dim() - 1
    if math.prod(out.shape[d] for d in inner_first[:inner_first.index(innermost)]) != 1:
        inner_first = [innermost] + [d for d in inner_first if d != innermost]
    outer_first = inner_first[::-1]
    back = [outer_first.index(d) for d in range(out.dim())]
    return out.permute(outer_first).clone(memory_format=torch.contiguous_format).permute(back)


def _products(query, key):
    """query @ key^T of (B, H, M, E) and (B, H, N, E) in float32, or float64: the precision in which scores are modified."""
    if query.dtype == torch.float64:
        return query @ key.transpose(-2, -1)
    has_gradient = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad)
    if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16) and query.dtype == key.dtype and not has_gradient:
        # Tensor cores add products of 16-bit numbers, which are exact, in float32.
        batch, heads, rows, width = query.shape
        flat = torch.bmm(query.reshape(batch * heads, rows, width), key.reshape(batch * heads, -1, width).transpose(1, 2),
                         out_dtype=torch.float32)
        return flat.view(batch, heads, rows, -1)
    return query.float() @ key.float().transpose(-2, -1)


def ordered_to_dense(num_blocks, indices):
    """The int32 0/1 matrix (…, rows, columns) of the blocks that a BlockMask lists: the first `num_blocks` (…, rows) of `indices`."""
    columns = indices.shape[-1]
    listed = torch.arange(columns, device=indices.device) < num_blocks.unsqueeze(-1)
    places = torch.where(listed, indices, columns).long()
    dense = indices.new_zeros(*indices.shape[:-1], columns + 1, dtype=torch.int32)
    return dense.scatter(-1, places, 1)[..., :columns].contiguous()


def flex_attention(query, key, value, score_mod, block_mask, scale, kernel_options, score_mod_other_buffers=(),
                   mask_mod_other_buffers=()):
    """(output, logsumexp / ln 2, maxima / ln 2) of attention whose scores and mask are functions of score, batch, head, query and
    key index. They are called once, with indices that broadcast against the scores instead of one element at a time."""
    device = query.device
    if torch.is_autocast_enabled(device.type):
        low = torch.get_autocast_dtype(device.type)
        query, key, value = (t if t.dtype == torch.float64 else t.to(low) for t in (query, key, value))
    with torch.autocast(device.type, enabled=False):
        batch, heads, rows, width = query.shape
        key, value = (t.expand(batch, *t.shape[1:]) for t in (key, value))
        kv_heads, columns = key.shape[1], key.shape[2]
        # Query heads that share a key head are rows of one product.
        grouped = query.reshape(batch, kv_heads, heads // kv_heads * rows, width)
        scores = _products(grouped, key).view(batch, heads, rows, columns) * scale
        b = torch.arange(batch, device=device).view(-1, 1, 1, 1)
        h = torch.arange(heads, device=device).view(-1, 1, 1)
        m = torch.arange(rows, device=device).view(-1, 1)
        n = torch.arange(columns, device=device)
        modified = score_mod(scores, b, h, m, n, *score_mod_other_buffers)
        mask = block_mask[-1](b, h, m, n, *mask_mod_other_buffers)
        modified = torch.where(mask, modified, -float("inf")).expand(scores.shape)
        logsumexp = torch.where((modified == -float("inf")).all(-1), -float("inf"), modified.logsumexp(-1))
        weights = torch._safe_softmax(modified, -1).to(query.dtype)
        out = weights.view(batch, kv_heads, -1, columns) @ value.to(query.dtype)
        out = out.view(batch, heads, rows, value.shape[-1])
        return _in_layout_of(out, query), logsumexp / math.log(2), modified.amax(-1).detach() / math.log(2)


def wrap(func, *args, **kwargs):
    return func(*args, **kwargs)


def hints_wrapper(body_fn, args, kwargs, hints):
    return body_fn(*args)


def wrap_with_set_grad_enabled(enable_grad, wrapped_func, *args, **kwargs):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(enable_grad)
    made = wrapped_func(*args, **kwargs)
    torch.set_grad_enabled(before)
    return made


def wrap_with_autocast(device_type, dtype, enabled, cache_enabled, wrapped_func, *args, **kwargs):
    with torch.autocast(device_type, dtype, enabled, cache_enabled):
        return wrapped_func(*args, **kwargs)


def out_dtype(op, output_dtype, *args):
    """`op` in the type that the arguments and the result have in common, rounded to `output_dtype`; products of int8 that are int32 on a GPU
    are its tensor cores'."""
    from torch._higher_order_ops.out_dtype import is_int_mm, out_dtype_fallback
    if is_int_mm(op, output_dtype, args):
        return torch._int_mm(*args)
    return out_dtype_fallback(op, output_dtype, *args)


def map_rows(f, xs, pos_args):
    """What `f` gives for each row of `xs`, on top of each other. More rows than are worth a graph are called by eager."""
    from torch._higher_order_ops.utils import _stack_pytree
    if xs[0].shape[0] > 128:
        torch._dynamo.graph_break()
    made = _stack_pytree([f(*row, *pos_args) for row in zip(*xs)])
    differentiates = torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad for t in (*xs, *pos_args))
    if differentiates and any(map(_lacks_gradient, pytree.tree_leaves(made))):
        torch._dynamo.graph_break()  # the operator's results all require gradients
    return made


def scan_rows(combine_fn, init, xs, additional_inputs=()):
    """`combine_fn` takes what it carries, and a row of each of `xs`; its result, flat or not, has what it carries on first. The last of that, and the
    others on top of each other. More rows than are worth a graph, and what the operator refuses, are eager's."""
    carry, given, rows = list(init), [*init, *additional_inputs], []
    if xs[0].shape[0] > 128:
        torch._dynamo.graph_break()
    for row in zip(*xs):
        leaves, structure = pytree.tree_flatten(combine_fn(*carry, *row, *additional_inputs))
        taken = [*given, *carry, *row]
        if any(leaf is other for i, leaf in enumerate(leaves) if leaf is not None for other in [*taken, *leaves[:i]]):
            torch._dynamo.graph_break()
        carry = leaves[:len(init)]
        rows.append(leaves[len(init):])
        if any(type(c) is not torch.Tensor or c.shape != first.shape or c.dtype != first.dtype for c, first in zip(carry, init, strict=True)):
            torch._dynamo.graph_break()
    made = carry + [None if column[0] is None else torch.stack(column) for column in zip(*rows)]
    differentiates = torch.is_grad_enabled() and any(t.requires_grad for t in (*given, *xs) if isinstance(t, torch.Tensor))
    if differentiates and any(map(_lacks_gradient, made)):
        torch._dynamo.graph_break()  # the operator's results all require gradients
    return pytree.tree_unflatten(made, structure)


def associative_scan(combine_fn, xs, additional_inputs):
    """Every prefix of each tensor in `xs` along dimension 0, combined pair by pair in a tree. Gradients are those of what is computed;
    the operator's own autograd in PyTorch 2.11 leaves terms out where several tensors are combined."""
    from torch._higher_order_ops.associative_scan import generic_associative_scan
    has_gradient = torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad for t in (*xs, *additional_inputs))
    if has_gradient and additional_inputs:
        raise RuntimeError("Associative_scan does currently not support gradients for lifted parameters!")
    made = generic_associative_scan(combine_fn, xs, additional_inputs=tuple(additional_inputs))
    if has_gradient and any(map(_lacks_gradient, made)):
        torch._dynamo.graph_break()  # the operator's results all require gradients
    return tuple(made) if has_gradient else made


def chosen(condition, yes, no, operands):
    """(results,) of a condition's two functions, or what is to be said of these where the one that counts cannot be chosen among values of both."""
    yes, layout = pytree.tree_flatten(yes)
    no, other_layout = pytree.tree_flatten(no)
    if layout != other_layout:
        return "give results of different structure"
    differentiates = torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad for t in pytree.tree_leaves(operands))
    results = []
    for a, b in zip(yes, no):
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
            if a is not None or b is not None:
                return "give something else than tensors"
            results.append(None)
            continue
        if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device or a.stride() != b.stride():
            return "give tensors of different sizes, strides, type or device"
        result = torch.where(condition.to(a.device), a, b)
        if result.stride() != a.stride():
            return "give tensors with gaps in memory"
        if differentiates and _lacks_gradient(result):
            return "cut the gradients of operands"
        results.append(result)
    return (pytree.tree_unflatten(results, layout),)


def masked_input(op, input, mask, *args):
    """What torch.masked's `op` is given of a plain tensor: where the mask is not set, the number that changes nothing."""
    from torch.masked import _ops
    if mask is None:
        return input
    return _ops._where(_ops._input_mask(input, mask=mask), input, _ops._reduction_identity(op.__name__, input, *args))


def foreach_addcdiv_(self, tensors1, tensors2, numbers):
    """self[i] += tensors1[i] / tensors2[i] * numbers[i], of numbers that are tensors."""
    torch._foreach_add_(self, torch._foreach_mul(torch._foreach_div(tensors1, tensors2), numbers))


def grouped_by_device_and_dtype(tensorlistlist, with_indices=False):
    """As torch.optim groups parameters where it does not compile: what a step computes may depend on the type."""
    groups = {}
    for i, tensor in enumerate(tensorlistlist[0]):
        groups.setdefault((tensor.device, tensor.dtype), []).append(i)
    return {key: ([[tensors[i] for i in indices] if tensors else [] for tensors in tensorlistlist], indices) for key, indices in groups.items()}


def one_group(tensorlistlist, with_indices=False):
    """The same, of tensors that all have one device and type."""
    first = tensorlistlist[0][0]
    return {(first.device, first.dtype): (tensorlistlist, list(range(len(tensorlistlist[0]))))}


def optimizer_number(x):
    """A tensor on the host as torch.optim calculates with it where it does not compile: by its item, in double precision."""
    is_on_host = isinstance(x, torch.Tensor) and x.dim() == 0 and x.device.type == "cpu"
    return x.double() if is_on_host and x.dtype == torch.float32 else x

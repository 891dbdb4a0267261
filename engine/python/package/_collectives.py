"""Collectives of torch.distributed that write to their arguments, as operators of a graph: capture follows these in their place.

Each has its original's signature. What an operator of a graph cannot do as the original does it (a handle to wait for, a rank outside of the
group, calls that are put together, arguments that do not fit) is left to the original.
"""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

_c10d = dist.distributed_c10d
_ops = torch.ops._c10d_functional
_names = functional.REDUCE_OP_TO_STR


def _fits(group, async_op, tensors, op=dist.ReduceOp.SUM):
    """Whether the operator does what the original does, but for shapes."""
    if async_op or op not in _names or group is dist.GroupMember.NON_GROUP_MEMBER or _c10d._world.pg_coalesce_state:
        return False
    first = tensors[0]
    return all(type(t) is torch.Tensor and t.dtype == first.dtype and t.is_contiguous() and not t.is_complex() for t in tensors)


def _name(group):
    return (group or dist.group.WORLD).group_name


def _size(group):
    return dist.get_world_size(group)


def _is_whole(whole, part, group):
    """Whether `whole` is parts of all ranks on top of each other."""
    return part.dim() > 0 and tuple(whole.shape) == (_size(group) * part.shape[0], *part.shape[1:])


def _write(tensor, started):
    # Autograd does not hear of a collective's writes.
    tensor.detach().copy_(_ops.wait_tensor(started))


def all_reduce(tensor, op=dist.ReduceOp.SUM, group=None, async_op=False):
    if not _fits(group, async_op, [tensor], op):
        return dist.all_reduce.__wrapped__(tensor, op, group, async_op)
    _write(tensor, _ops.all_reduce(tensor.detach(), _names[op], _name(group)))


def all_gather(tensor_list, tensor, group=None, async_op=False):
    if not _fits(group, async_op, [tensor, *tensor_list]) or len(tensor_list) != _size(group) or any(t.shape != tensor.shape for t in tensor_list):
        return dist.all_gather.__wrapped__(tensor_list, tensor, group, async_op)
    rows = tensor.detach().reshape(1, -1)
    for one, row in zip(tensor_list, _ops.wait_tensor(_ops.all_gather_into_tensor(rows, len(tensor_list), _name(group)))):
        one.detach().copy_(row.view(one.shape))


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    if not _fits(group, async_op, [output_tensor, input_tensor]) or not _is_whole(output_tensor, input_tensor, group):
        return dist.all_gather_into_tensor.__wrapped__(output_tensor, input_tensor, group, async_op)
    _write(output_tensor, _ops.all_gather_into_tensor(input_tensor.detach(), _size(group), _name(group)))


def reduce_scatter_tensor(output, input, op=dist.ReduceOp.SUM, group=None, async_op=False):
    if not _fits(group, async_op, [output, input], op) or not _is_whole(input, output, group):
        return dist.reduce_scatter_tensor.__wrapped__(output, input, op, group, async_op)
    _write(output, _ops.reduce_scatter_tensor(input.detach(), _names[op], _size(group), _name(group)))


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    fits = _fits(group, async_op, [output, input]) and output.dim() > 0 and input.dim() > 0 and output.shape[1:] == input.shape[1:]
    if fits:
        size = _size(group)
        sent = input_split_sizes or [input.shape[0] // size] * size
        received = output_split_sizes or [output.shape[0] // size] * size
        fits = len(sent) == len(received) == size and sum(sent) == input.shape[0] and sum(received) == output.shape[0]
    if not fits:
        return dist.all_to_all_single.__wrapped__(output, input, output_split_sizes, input_split_sizes, group, async_op)
    _write(output, _ops.all_to_all_single(input.detach(), received, sent, _name(group)))

"""Distributed tensors (DTensor): what capture does with their parts. CPython runs all of it."""

import copy

import torch
from torch.distributed import _functional_collectives
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._api import _FromTorchTensor, _ToTorchTensor

from ._engine_access import _engine


class _OutsideTrace:
    """A function that is no part of a trace, whoever calls it."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return _engine.outside_trace(self.function, *args)

    def __getattr__(self, name):
        return getattr(self.function, name)


def set_up():
    """Before the first distributed tensor is followed: what torch's code for them decides by fake tensors is not part of a trace, and a collective that is
    traced is waited for by an operator of the graph."""
    propagator = DTensor._op_dispatcher.sharding_propagator
    for name in ("propagate_op_sharding", "propagate_op_sharding_non_cached"):
        setattr(propagator, name, _OutsideTrace(getattr(propagator, name)))
    is_traced = _functional_collectives._are_we_tracing
    _functional_collectives._are_we_tracing = lambda: _engine.is_tracing() or is_traced()


def settled(local):
    """A local tensor that a collective is still at work on, waited for."""
    return local.wait() if isinstance(local, _functional_collectives.AsyncCollectiveTensor) else local


class Gradient:
    """How the gradient of a distributed tensor of the program is laid over the mesh, once backward has been traced."""

    __slots__ = ("spec",)

    def of(self, local):
        """The gradient whose local tensor is `local`, which may have a history itself."""
        return whole(local, self.spec)


class _StandIn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, local, spec, gradient):
        ctx.gradient = gradient
        return DTensor(local.view_as(local), spec, requires_grad=local.requires_grad)

    @staticmethod
    def backward(ctx, whole):
        ctx.gradient.spec = whole._spec
        return settled(whole._local_tensor), None, None


def stand_in(local, spec, gradient):
    """A distributed tensor of the capture around the stand-in of a local tensor."""
    spec = copy.copy(spec)
    if not local.requires_grad:
        return DTensor(local, spec, requires_grad=False)
    with torch.enable_grad():
        return _StandIn.apply(local, spec, gradient)


class _Part(torch.autograd.Function):
    @staticmethod
    def forward(ctx, whole):
        ctx.dtensor_spec, ctx.grad_placements = whole._spec, None
        local = settled(whole._local_tensor)
        return local.view_as(local)

    @staticmethod
    def backward(ctx, local):
        return _ToTorchTensor.backward(ctx, local)[0]


def part(whole):
    """The local tensor of a distributed tensor of the capture, with its history. What arrives at it in backward is laid as the tensor is, replicated where
    that is partial: `whole` sees to that."""
    return _Part.apply(whole) if whole.requires_grad else settled(whole._local_tensor)


def whole(local, spec):
    """The distributed tensor whose part `local`, a result of the graph, is."""
    if local.requires_grad:
        return _FromTorchTensor.apply(local, spec.mesh, spec.placements, False, spec.tensor_meta.shape, spec.tensor_meta.stride)
    return DTensor(local, copy.copy(spec), requires_grad=False)

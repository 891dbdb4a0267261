"""Eager with every rounding done another way: how far results of a program move says what rounding may do to them."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_NARROW = (torch.float32, torch.bfloat16, torch.float16, torch.complex64)
_WIDE = {torch.float32: torch.float64, torch.bfloat16: torch.float64, torch.float16: torch.float64, torch.complex64: torch.complex128}


def mapped(f, value):
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(f, v) for v in value)
    if isinstance(value, dict):
        return {k: mapped(f, v) for k, v in value.items()}
    return f(value)


def wide(value):
    if isinstance(value, torch.Tensor):
        return value.to(_WIDE[value.dtype]) if value.dtype in _WIDE else value.clone()
    return _WIDE.get(value, value) if isinstance(value, torch.dtype) else value


class OtherRounding(TorchDispatchMode):
    """Moves what an operator gives by about what it lost: one unit in the last place, or twice what it is away from the same operator in
    float64. Operators that lose nothing (copies, comparisons, small whole numbers) are left alone, random draws and views too."""

    def __init__(self, seed, is_random):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        self.is_random = is_random

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        aliases = [r.alias_info for r in func._schema.returns]
        is_view = any(a is not None and not a.is_write for a in aliases)
        tensors = any(isinstance(a, torch.Tensor) for a in torch.utils._pytree.tree_leaves((args, kwargs)))
        if is_view or not tensors or self.is_random(str(func)):
            return func(*args, **kwargs)
        try:
            exact = func(*mapped(wide, args), **mapped(wide, kwargs))
        except Exception:
            exact = None
        out = func(*args, **kwargs)
        is_pointwise = torch.Tag.pointwise in func.tags
        many, exacts = (out, exact) if isinstance(out, (list, tuple)) else ([out], [exact])
        for i, t in enumerate(many):
            if isinstance(t, torch.Tensor) and t.dtype in _NARROW and t.layout == torch.strided and t.numel():
                self.move(t, exacts[i] if exacts is not None else None, is_pointwise)
        return out

    def move(self, t, exact, is_pointwise):
        info = torch.finfo(t.dtype)
        value, target = (torch.view_as_real(t.resolve_conj()).double(), t.resolve_conj()) if t.is_complex() else (t.double(), t)
        unit = value.abs().clamp(min=info.tiny) * info.eps
        if isinstance(exact, torch.Tensor) and exact.shape == t.shape:
            e = torch.view_as_real(exact.resolve_conj()) if exact.is_complex() else exact.double()
            if e.shape == value.shape:
                lost = torch.where((value - e).isfinite(), (value - e).abs(), 0.0)
                most = lost if is_pointwise else torch.maximum(lost, lost.square().mean().sqrt())
                unit = torch.where(lost == 0, 0.0 if is_pointwise else most, torch.maximum(unit, 2 * most))
        # By the value, so that equal rows stay equal: what they lose adds up.
        phase = torch.rand((), generator=self.generator, dtype=torch.float64).item()
        drawn = ((value.nan_to_num(0, 0, 0) * 12.9898 / unit.clamp(min=1e-300) * info.eps).remainder(1.0) * 43758.5453 + phase).remainder(1.0)
        moved = value + unit * (2 * drawn - 1)
        moved = torch.view_as_complex(moved.contiguous()) if t.is_complex() else moved
        keep = target.isfinite()
        target.copy_(torch.where(keep, moved.to(t.dtype), target))

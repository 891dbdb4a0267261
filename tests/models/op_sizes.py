"""A sample of an operator at other sizes."""

import torch

# Operators without other sizes, and why.
FIXED = {"nn.functional.embedding_bag": "offsets that are repeated do not grow, and eager gives what it finds in memory for such"}
# Which dimensions are twice as long: of each tensor all, the first, the last, all but the first. One that is 1 stays so, since 1 broadcasts.
WAYS = [lambda d, n: True, lambda d, n: d == 0, lambda d, n: d == n - 1, lambda d, n: d > 0]


def longer(t, way):
    """`t` repeated along some dimensions, which lie in the same order in memory. Numbers with a fraction come a little nearer to zero, or
    matrices would be singular."""
    if t.layout != torch.strided or t.is_quantized or t.is_nested:
        return t
    times = [2 if n > 1 and way(d, t.dim()) else 1 for d, n in enumerate(t.shape)]
    if max(times, default=1) == 1:
        return t
    order = sorted(range(t.dim()), key=lambda d: -t.stride(d))
    made = t.detach().permute(order).repeat([times[d] for d in order])
    if made.is_floating_point() or made.is_complex():
        made = made * (1 - torch.rand(made.shape, generator=torch.Generator().manual_seed(0)) / 4).to(made.dtype)
    return made.permute([order.index(d) for d in range(t.dim())]).requires_grad_(t.requires_grad)


def tensors_mapped(f, value):
    if isinstance(value, torch.Tensor):
        return f(value)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(tensors_mapped(f, v) for v in value)
    if isinstance(value, dict):
        return {k: tensors_mapped(f, v) for k, v in value.items()}
    return value


def at_other_sizes(f, args, kwargs):
    """At most one (args, kwargs): the first of WAYS that changes something and that eager takes."""
    for way in WAYS:
        changed = []

        def made(t):
            new = longer(t, way)
            changed.append(new is not t)
            return new

        new_args, new_kwargs = tensors_mapped(made, args), tensors_mapped(made, kwargs)
        if any(changed) and takes(f, new_args, new_kwargs):
            yield new_args, new_kwargs
            return


def takes(f, args, kwargs):
    copy = lambda t: t.detach().clone()
    torch.manual_seed(1)
    try:
        with torch.no_grad():
            f(*tensors_mapped(copy, args), **tensors_mapped(copy, kwargs))
    except Exception:
        return False
    return True

"""Are two tensors equal as far as their type allows, and where not, is ours as near to the exact values as eager's?"""

import torch

# Relative and absolute error up to which the exact result is not asked for.
LIMIT = {torch.float32: (1e-5, 1e-6), torch.float64: (1e-10, 1e-12), torch.bfloat16: (8e-3, 1e-5), torch.float16: (1e-3,
    1e-5), torch.complex64: (1e-5, 1e-6), torch.complex128: (1e-10, 1e-12), torch.complex32: (1e-3, 1e-5)}
ULPS = 8            # of rounding that nobody has to explain
WORSE_THAN_EAGER = 2


def plain(t):
    t = t.detach()
    return (t.to_dense() if t.layout != torch.strided else t).resolve_conj().resolve_neg()


def as_reals(t):
    t = plain(t)
    return torch.view_as_real(t.to(torch.complex128)) if t.is_complex() else t.to(torch.float64)


def wrong_elements(got, want):
    """Which elements (real and imaginary parts apart) differ by more than rounding in few operations."""
    if want.dtype not in LIMIT:
        return plain(got) != plain(want)
    g, w = as_reals(got), as_reals(want)
    rtol, atol = LIMIT[want.dtype]
    near = (g - w).abs() <= atol + rtol * w.abs()
    return ~(near | (g == w) | (g.isnan() & w.isnan()))


def eagers_error_around(eagers, e):
    """For every element eager's largest error among those not much larger: one lucky element is no measure."""
    size, errors = e.abs().flatten().nan_to_num(0, 0, 0), eagers.flatten()
    errors = torch.where(errors.isfinite(), errors, 0.0)
    order = size.argsort()
    worst = errors[order].cummax(0).values
    reach = torch.maximum(4 * size, size.median())
    return worst[torch.searchsorted(size[order], reach, right=True) - 1].reshape(e.shape)


def as_near_as_eager(got, want, exact, others=()):
    """Element by element: ours is the exact value rounded, or no further from it than eager is around there. `others` are results of
    eager with every rounding done another way: what one run loses is luck, what several lose is the program's."""
    if not want.numel() or (exact is not None and exact.shape != want.shape):
        return False
    others = [o for o in others if o.shape == want.shape and o.dtype == want.dtype]
    if exact is None:
        if not others:
            return False
        exact = want
    if want.dtype not in LIMIT:
        return whole_numbers(plain(got), plain(want), plain(exact), [plain(o) for o in others])
    g, e = as_reals(got), as_reals(exact)
    runs = [as_reals(want), *map(as_reals, others)]
    info = torch.finfo(want.dtype)
    rounded = as_reals(plain(exact).to(want.dtype))
    errors = torch.stack([torch.where((w - e).isfinite(), (w - e).abs(), 0.0) for w in runs]).amax(0)
    allowed = WORSE_THAN_EAGER * eagers_error_around(errors, e) + ULPS * info.eps * e.abs().clamp(min=info.tiny)
    fine = (g == rounded) | (g.isnan() & rounded.isnan()) | ((g - e).abs() <= allowed) | ~wrong_elements(got, want)
    fine = fine | (rounded.isfinite() & ~runs[0].isfinite() & ~g.isnan())  # eager's own overflow on the way: nothing is further off
    for w in runs[1:]:  # where rounding decides between a number and NaN or infinity
        fine = fine | ((g == w) & g.isinf()) | (g.isnan() & w.isnan())
    # At the largest number rounding decides between it and infinity.
    largest = info.max * (1 - 2 * info.eps)
    edge = (e.abs() >= largest) & (g.abs() >= largest) & (g.sign() == e.sign())
    return bool((fine | edge).all())


def whole_numbers(g, w, e, others):
    """Whole numbers made of rounded ones: as near to the exact ones as those that eager's roundings give."""
    g, e = g.to(torch.float64), e.to(torch.float64)
    errors = torch.stack([(t.to(torch.float64) - e).abs() for t in (w, *others)]).amax(0)
    moving = errors[errors > 0]
    if moving.numel() * 8 > errors.numel():  # the bits of rounded numbers, say: few runs do not move every element
        errors = errors.clamp(min=2 * moving.median())
    return bool(((g - e).abs() <= (errors if others else errors.max())).all())


def brief(t, mask=None):
    values = plain(t).flatten()
    if mask is not None and mask.shape == t.shape and bool(mask.any()):
        values = plain(t)[mask]
    return str(values[:5].tolist())

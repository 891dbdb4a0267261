"""One call, eager and compiled: whatever a program could tell apart is a Mismatch."""

import torch

import fusebox
from fuzz.harness import judge

EXACT = {torch.float32: torch.float64, torch.bfloat16: torch.float64, torch.float16: torch.float64,
         torch.complex64: torch.complex128, torch.complex32: torch.complex128}


class Mismatch(Exception):
    pass


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors_in(v)]
    return []


def copied(value, dtype=lambda d: d):
    """Tensors cloned with their layout and with what they share; the rest as it is."""
    bases = {}

    def copy(t):
        if t.layout != torch.strided or t.is_quantized or t.is_nested or t.device.type not in ("cpu", "cuda"):
            return t.detach().clone().requires_grad_(t.requires_grad)
        key = t.untyped_storage().data_ptr()
        to = dtype(t.dtype)
        if key not in bases or bases[key].dtype != to:
            whole = torch.empty(0, dtype=t.dtype, device=t.device).set_(t.untyped_storage())
            bases[key] = whole.clone().to(to)
        out = bases[key].as_strided(t.shape, t.stride(), t.storage_offset())
        if t.is_conj():
            out = out.conj()
        if t.is_neg():
            out = torch._neg_view(out)
        return out.detach().requires_grad_(t.requires_grad)

    def walk(v):
        if isinstance(v, torch.Tensor):
            return copy(v)
        if isinstance(v, (list, tuple)) and not hasattr(v, "_fields"):
            return type(v)(walk(x) for x in v)
        if isinstance(v, dict):
            return {k: walk(x) for k, x in v.items()}
        return dtype(v) if isinstance(v, torch.dtype) else v

    return walk(value)


def run(f, args, kwargs):
    torch.manual_seed(1)
    try:
        return f(*args, **kwargs), None
    except Exception as error:
        return None, error


def generators():
    """The states of torch's generators."""
    states = [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [])]
    return [bytes(state.numpy()) for state in states]


def same_geometry(g, w, what):
    for fact in ("dtype", "shape", "layout", "device", "is_conj", "is_neg"):
        a, b = getattr(g, fact), getattr(w, fact)
        a, b = (a(), b()) if callable(a) else (a, b)
        if a != b:
            raise Mismatch(f"{what}: {fact} {a} instead of {b}")
    if w.layout == torch.strided and w.numel() > 0:
        strides = [(a, b) for a, b, n in zip(g.stride(), w.stride(), w.shape) if n > 1]
        if any(a != b for a, b in strides):
            raise Mismatch(f"{what}: strides {g.stride()} instead of {w.stride()} of {tuple(w.shape)}")


def dense(t):
    t = t.detach()
    return (t.to_dense() if t.layout != torch.strided else t).resolve_conj().resolve_neg()


def same_values(got, want, exact, what):
    """Element by element, within the type's rounding or as near to the exact values as eager's."""
    g, w = dense(got), dense(want)
    wrong = judge.wrong_elements(g, w)
    if not bool(wrong.any()) or (exact is not None and judge.as_near_as_eager(g, w, dense(exact))):
        return
    where = wrong if not w.is_complex() else None
    reference = "" if exact is None else f", in double precision {judge.brief(dense(exact), where)}"
    values = f"{judge.brief(g, where)} instead of {judge.brief(w, where)}{reference}"
    raise Mismatch(f"{what}: {int(wrong.sum())} of {wrong.numel()} wrong, {values}")


def aliases(outs, inputs):
    """Which results share memory with which inputs and results."""
    def key(t):
        return t.untyped_storage().data_ptr() if t.layout == torch.strided and t.numel() else None
    known = [key(t) for t in inputs]
    found = []
    for i, t in enumerate(outs):
        k = key(t)
        found.append((tuple(j for j, other in enumerate(known) if k is not None and other == k),
                      t.storage_offset() if t.layout == torch.strided else 0))
        known.append(k)
    return [f if f[0] else () for f in found]


def exact_of(f, args, kwargs):
    """The call in double precision, or None where that is another function."""
    wide = lambda d: EXACT.get(d, d)
    try:
        result, error = run(f, copied(args, wide), copied(kwargs, wide))
    except Exception:
        return None
    return None if error is not None else result


def leaves(value):
    return [t for t in tensors_in(value) if t.requires_grad and t.is_leaf]


def gradients(result, args, kwargs, seed=3):
    outs = [t for t in tensors_in(result) if t.requires_grad and t.layout == torch.strided]
    inputs = leaves([args, kwargs])
    if not outs or not inputs:
        return None
    generator = torch.Generator().manual_seed(seed)
    tangents = [torch.randn(t.shape, generator=generator,
                            dtype=torch.complex128 if t.is_complex() else torch.float64).to(t) for t in outs]
    return torch.autograd.grad(outs, inputs, tangents, allow_unused=True)


def attempt(f, *args):
    try:
        return f(*args), None
    except Exception as error:
        return None, error


def compare_errors(got, want, what):
    if (got is None) != (want is None):
        raise Mismatch(f"{what}: eager: {brief(want)}, compiled: {brief(got)}")
    if want is not None and type(got) is not type(want):
        raise Mismatch(f"{what}: raised {brief(got)} instead of {brief(want)}")


def brief(error):
    return "no error" if error is None else f"{type(error).__name__} {str(error)[:160]!r}"


def compare_calls(f, args, kwargs, grad, compiled=None):
    """Raises Mismatch where `compiled`, or fusebox.compile(f), differs from f; False where only errors were compared. The arguments stay."""
    if getattr(f, "needs_out", False):
        result, error = run(lambda *a, **k: f.__closure__[0].cell_contents(*a, **k), copied(args), copied(kwargs))
        if error is not None or not isinstance(result, torch.Tensor) or result.layout != torch.strided:
            return False
        args = [torch.zeros_like(result.detach()), *copied(args)]
    want_args, want_kwargs = copied([args, kwargs])
    got_args, got_kwargs = copied([args, kwargs])
    want, want_error = run(f, want_args, want_kwargs)
    want_rng = generators()
    got, got_error = run(compiled or fusebox.compile(f), got_args, got_kwargs)
    compare_errors(got_error, want_error, "call")
    if want_error is not None:
        return False
    if generators() != want_rng:
        raise Mismatch("another state of the random generator afterwards")
    if type(got) is not type(want):
        raise Mismatch(f"result is a {type(got).__name__} instead of a {type(want).__name__}")
    got_flat, want_flat = tensors_in(got), tensors_in(want)
    if len(got_flat) != len(want_flat):
        raise Mismatch(f"{len(got_flat)} results instead of {len(want_flat)}")
    if not want_flat and got != want and not (got != got and want != want):
        raise Mismatch(f"result {got!r} instead of {want!r}")
    exact = []
    for i, (g, w) in enumerate(zip(got_flat, want_flat)):
        same_geometry(g, w, f"result {i}")
        if g.requires_grad != w.requires_grad:
            raise Mismatch(f"result {i}: requires_grad {g.requires_grad} instead of {w.requires_grad}")
        check_values(g, w, f, args, kwargs, exact, i, f"result {i}")
    got_inputs, want_inputs = tensors_in([got_args, got_kwargs]), tensors_in([want_args, want_kwargs])
    for i, (g, w) in enumerate(zip(got_inputs, want_inputs)):
        same_geometry(g, w, f"input {i} afterwards")
        if any(w is t for t in want_flat) or getattr(f, "catches", False):
            continue  # compared as a result; or resized and not filled when the error came
        check_values(g, w, None, args, kwargs, [], i, f"input {i} afterwards")
    if not grad and aliases(got_flat, got_inputs) != aliases(want_flat, want_inputs):
        raise Mismatch(f"shares memory as {aliases(got_flat, got_inputs)} instead of {aliases(want_flat, want_inputs)}")
    if grad:
        compare_gradients(f, args, kwargs, (got, got_args, got_kwargs), (want, want_args, want_kwargs))
    return True


def check_values(g, w, f, args, kwargs, exact, i, what):
    try:
        same_values(g, w, None, what)
    except Mismatch:
        if f is None:
            raise
        if not exact:
            exact.append(exact_of(f, args, kwargs))
        flat = tensors_in(exact[0])
        same_values(g, w, flat[i] if i < len(flat) and flat[i].shape == w.shape else None, what)


def compare_gradients(f, args, kwargs, got, want):
    want_grads, want_error = attempt(gradients, *want)
    got_grads, got_error = attempt(gradients, *got)
    compare_errors(got_error, want_error, "backward")
    if want_error is not None or want_grads is None:
        return
    exact_grads = None
    for i, (g, w) in enumerate(zip(got_grads, want_grads)):
        if g is None and w is not None and not w.any():
            continue
        if (g is None) != (w is None):
            if w is None and not g.any():
                continue
            raise Mismatch(f"gradient {i}: {'none' if g is None else 'one'} instead of {'none' if w is None else 'one'}")
        if w is None:
            continue
        if g.shape != w.shape or g.dtype != w.dtype:
            raise Mismatch(f"gradient {i}: {g.dtype} {tuple(g.shape)} instead of {w.dtype} {tuple(w.shape)}")
        try:
            same_values(g, w, None, f"gradient {i}")
        except Mismatch:
            if exact_grads is None:
                wide = lambda d: EXACT.get(d, d)
                wide_args, wide_kwargs = copied([args, kwargs], wide)
                result, error = run(f, wide_args, wide_kwargs)
                exact_grads = attempt(gradients, result, wide_args, wide_kwargs)[0] if error is None else None
                exact_grads = exact_grads or [None] * len(want_grads)
            same_values(g, w, exact_grads[i], f"gradient {i}")

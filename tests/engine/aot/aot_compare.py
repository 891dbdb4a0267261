"""Compares a traced function, run by the graph interpreter, with eager: outputs, gradients, buffers, random numbers."""
import copy
import sys

import torch

import fusebox_trace_probe as probe


def tensors_of(value):
    """Every tensor in nested containers and dataclass-like outputs, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors_of(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_of(v)]
    return []


def close(name, ours, theirs, tolerance):
    assert ours.shape == theirs.shape, f"{name}: shape {tuple(ours.shape)} instead of {tuple(theirs.shape)}"
    assert ours.dtype == theirs.dtype, f"{name}: {ours.dtype} instead of {theirs.dtype}"
    strides = [(a, b) for a, b, n in zip(ours.stride(), theirs.stride(), ours.shape) if n > 1]
    assert all(a == b for a, b in strides), f"{name}: strides {ours.stride()} instead of {theirs.stride()}"
    assert ours.requires_grad == theirs.requires_grad, f"{name}: requires_grad {ours.requires_grad}"
    torch.testing.assert_close(ours.detach(), theirs.detach(), rtol=tolerance, atol=tolerance, equal_nan=True, msg=lambda m: f"{name}: {m}")


def clone_arguments(args):
    """Fresh arguments with the same values, strides, leaf-ness and sharing: the same tensor object stays one object."""
    made = {}
    for t in args:
        if id(t) in made:
            continue
        with torch.no_grad():
            flat = t.detach().as_strided((1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride())),), (1,), t.storage_offset())
            copied = flat.clone().as_strided(t.size(), t.stride()).detach()
        if t.requires_grad:
            copied.requires_grad_()
            if not t.is_leaf:  # an identity whose gradient ends in a leaf of its own
                leaf, copied = copied, copied.clone(memory_format=torch.preserve_format)
                copied.leaf = leaf
        made[id(t)] = copied
    return [made[id(t)] for t in args]


def memory(t):
    return t.untyped_storage().data_ptr() if t.numel() else 0


def leaf_of(t):
    return getattr(t, "leaf", t)


def compare_function(fn, args, train=None, tolerance=1e-6, calls=2, same_views=True):
    """Traces `fn(*args) -> tensors` and compares with eager on fresh arguments: values, strides, requires_grad, what aliases what,
    writes to arguments, versions, gradients and the random state afterwards."""
    train = any(t.requires_grad for t in args) if train is None else train
    with torch.set_grad_enabled(train):
        traced = probe.trace(lambda *a: tensors_of(fn(*a)), clone_arguments(args))
        for call in range(calls):
            ours_in, theirs_in = clone_arguments(args), clone_arguments(args)
            lifted = traced.inputs[len({id(t) for t in args}):]
            unique = list({id(t): t for t in ours_in}.values())
            torch.manual_seed(call)
            ours = traced.call(unique + lifted)
            state = torch.get_rng_state()
            torch.manual_seed(call)
            theirs = tensors_of(fn(*theirs_in))
            assert torch.equal(state, torch.get_rng_state()), "the random generator was left in another state"
            assert len(ours) == len(theirs)
            for i, (a, b) in enumerate(zip(ours, theirs)):
                close(f"output {i}", a, b, tolerance)
                assert any(a is t for t in ours_in) == any(b is t for t in theirs_in), f"output {i} is (not) an argument itself"
            for i, (a, b) in enumerate(zip(ours_in, theirs_in)):
                close(f"argument {i}", a, b, tolerance)
                assert a.is_inference() or a._version > 0 or b._version == 0, f"argument {i}: a write left the version at 0"
            ours_all, theirs_all = ours + ours_in, theirs + theirs_in
            for i in range(len(ours)):
                for j in range(len(ours_all)):
                    a = memory(ours[i]) == memory(ours_all[j]) and ours[i].numel() > 0
                    b = memory(theirs[i]) == memory(theirs_all[j]) and theirs[i].numel() > 0
                    assert a == b, f"output {i} and {'output' if j < len(ours) else 'argument'} {j if j < len(ours) else j - len(ours)}: sharing memory is {a}"
            if not train or not any(t.requires_grad for t in theirs):
                continue
            for outs in (ours, theirs):
                total = sum((o.abs() if o.is_complex() else o).double().sin().sum() for o in outs if o.requires_grad)
                total.backward()
            for i, (a, b) in enumerate(zip(ours_in, theirs_in)):
                a, b = leaf_of(a), leaf_of(b)
                if b.is_leaf and b.requires_grad:
                    assert (a.grad is None) == (b.grad is None), f"argument {i}: gradient {a.grad} instead of {b.grad}"
                    if b.grad is not None:
                        torch.testing.assert_close(a.grad, b.grad, rtol=tolerance, atol=tolerance)
    return traced


def module_state(model):
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def compare_model(model, args, kwargs=None, train=False, tolerance=1e-5):
    """Traces `model(*args)`, runs it and (train) its backward twice, and compares everything with an untouched copy."""
    kwargs = kwargs or {}
    reference = copy.deepcopy(model)
    forward = lambda *a: tensors_of(model(*a, **kwargs))
    with torch.set_grad_enabled(train):
        traced = probe.trace(forward, list(args))
        for step in range(2):
            torch.manual_seed(step)
            ours = traced.call(traced.inputs)
            torch.manual_seed(step)
            theirs = tensors_of(reference(*args, **kwargs))
            assert len(ours) == len(theirs)
            for i, (a, b) in enumerate(zip(ours, theirs)):
                close(f"output {i}", a, b, tolerance)
            if train:
                for outs in (ours, theirs):
                    sum(o.float().square().mean() for o in outs if o.requires_grad).backward()
    state, expected = module_state(model), module_state(reference)
    for name in expected:
        close(name, state[name], expected[name], tolerance)
        if train and expected[name].requires_grad:
            a, b = state[name].grad, expected[name].grad
            assert (a is None) == (b is None), f"{name}.grad: {'missing' if a is None else 'unexpected'}"
            if a is not None:
                close(name + ".grad", a, b, tolerance)
    return traced


def run(cases):
    """Runs named checks (all, or those named on the command line) and exits non-zero when one failed."""
    wanted, failed = sys.argv[1:], []
    for name, check in cases.items():
        if wanted and name not in wanted:
            continue
        try:
            note = check()
            print(f"ok    {name}  {note or ''}", flush=True)
        except BaseException as error:  # noqa: BLE001 - every kind of failure is reported, then the rest goes on
            if isinstance(error, KeyboardInterrupt):
                raise
            failed.append(name)
            print(f"FAIL  {name}  {type(error).__name__}: {str(error)[:900]}", flush=True)
    print(f"{len(failed)} failed: {failed}" if failed else "all passed")
    sys.exit(1 if failed else 0)

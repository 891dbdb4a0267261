"""Every operator that PyTorch describes for its own tests, compiled against eager on PyTorch's own sample inputs.

A break or an extern call is fine; a wrong answer or a crash is not. `--shard I/N` runs every N-th operator.
"""

import argparse
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db

import fusebox

warnings.filterwarnings("ignore")

# Results that eager itself does not repeat: uninitialised memory, or an order left open.
UNREPEATABLE = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "svd_lowrank",
                "pca_lowrank", "linalg.svd", "svd", "linalg.eig", "linalg.eigh", "geqrf", "resize_", "resize_as_"}


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    return []


def clone(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone(memory_format=torch.preserve_format).requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(clone(v) for v in value)
    return value


def run(f, args, kwargs, seed):
    torch.manual_seed(seed)
    try:
        return f(*args, **kwargs), None
    except Exception as error:
        return None, error


def differences(op, dtype, grad, samples):
    count = 0
    for sample in op.sample_inputs("cpu", dtype, requires_grad=grad):
        if count == samples:
            break
        count += 1
        fusebox.reset()
        want_args, got_args = clone([sample.input, *sample.args]), clone([sample.input, *sample.args])

        def call(*args, **kwargs):
            return op(*args, **kwargs)

        want, want_error = run(call, want_args, sample.kwargs, 1)
        got, got_error = run(fusebox.compile(call), got_args, sample.kwargs, 1)
        if (want_error is None) != (got_error is None):
            yield f"eager: {str(want_error)[:100]!r}, compiled: {type(got_error).__name__} {str(got_error)[:200]!r}"
            continue
        if want_error is not None:
            continue
        for g, w in zip(flat(got), flat(want), strict=True):
            try:
                torch.testing.assert_close(g, w, equal_nan=True, check_stride=False, rtol=1e-4 if dtype == torch.float32 else None,
                                           atol=1e-5 if dtype == torch.float32 else None)
            except AssertionError as error:
                yield f"input {tuple(getattr(sample.input, 'shape', ()))} {sample.args!s:.80} {sample.kwargs!s:.80}: {str(error)[:160]}"
        if grad:
            outs = [(g, w) for g, w in zip(flat(got), flat(want)) if w.requires_grad and w.is_floating_point()]
            if any(g.requires_grad is False for g, _ in outs):
                yield "result does not require grad"
            elif outs:
                tangents = [torch.randn_like(w) for _, w in outs]
                inputs = [(a, b) for a, b in zip(flat(got_args), flat(want_args)) if b.requires_grad and b.is_leaf]
                if not inputs:
                    continue
                want_grads = torch.autograd.grad([w for _, w in outs], [b for _, b in inputs], tangents, allow_unused=True)
                got_grads = torch.autograd.grad([g for g, _ in outs], [a for a, _ in inputs], tangents, allow_unused=True)
                for g, w in zip(got_grads, want_grads):
                    try:
                        torch.testing.assert_close(g if g is not None else torch.zeros_like(w) if w is not None else None, w,
                                                   equal_nan=True, check_stride=False, rtol=1e-3, atol=1e-4)
                    except (AssertionError, TypeError) as error:
                        yield f"gradient, input {tuple(sample.input.shape)} {sample.kwargs!s:.80}: {str(error)[:160]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--grad", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    index, of = map(int, options.shard.split("/"))
    ops = [op for op in op_db if torch.float32 in op.supported_dtypes("cpu")]
    ops = [op for op in ops if op.name in options.only] if options.only else ops[index::of]
    failed = 0
    for op in ops:
        if op.name in UNREPEATABLE or (options.grad and not op.supports_autograd):
            continue
        if options.verbose:
            print(op.name, flush=True)
        try:
            problems = list(dict.fromkeys(differences(op, torch.float32, options.grad, options.samples)))
        except Exception as error:
            problems = [f"{type(error).__name__}: {error}"]
        if problems:
            failed += 1
            print(f"FAIL {op.name} {op.variant_test_name}: {problems[0]}", flush=True)
    print(f"{len(ops) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

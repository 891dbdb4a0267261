"""Every operator that PyTorch describes for its own tests, compiled against eager on PyTorch's own sample inputs.

A break or an extern call is fine; anything that a program could tell from eager is not: values, dtypes, shapes, strides, aliasing,
what was written to the inputs, random streams, gradients, and the type of an exception. `--shard I/N` runs every N-th operator.
"""

import argparse
import sys
import time
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db

import fusebox
from models.op_compare import Mismatch, compare_calls

warnings.filterwarnings("ignore")

# Operators whose results eager itself does not repeat, or that cannot be compared, and why.
UNREPEATABLE = {
    **dict.fromkeys(["empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_",
                     "resize_as_"], "uninitialised memory"),
    **dict.fromkeys(["linalg.svd", "svd", "linalg.eig", "linalg.eigh", "svd_lowrank", "pca_lowrank", "geqrf"],
                    "vectors are defined up to sign or phase, and LAPACK's choice depends on the alignment of its working memory"),
}
# (operator, kind of case) that differs from eager, and why it is left so.
KNOWN = {
    ("complex", "error input"): "eager refuses an out= of another type; the compiled call converts, as other operators do",
    ("logit", "in place"): "as ldexp",
    ("ldexp", "in place"): "eager refuses the promotion of an integer; the compiled call's values are the same",
    ("torch.ops.aten._safe_softmax.default", "permuted"): "strides only: eager's result is row-major",
    ("select_scatter", "gaps"): "strides only: eager's result keeps the gaps of its input",
    ("slice_scatter", "gaps"): "strides only: eager's result keeps the gaps of its input",
}
# On CUDA: (operator, part of what is found) that is left so, and why. What else differs in such a call is still told.
KNOWN_ON_CUDA = {
    **dict.fromkeys([(f"torch.ops.aten._{kind}_attention_forward", f"result {i}:") for kind in ("flash", "efficient") for i in (2, 3)],
                    "without dropout eager leaves the state of the random numbers uninitialised"),
    ("linalg.eigvals", "input 0 afterwards:"): "eager's solver overwrites an input that is stored by columns",
    ("narrow_copy", "Could not run 'aten::narrow_copy.out'"): "eager has no such kernel; the compiled call has a form that works",
    ("_softmax_backward_data", "expected scalar type Float but found Half"): "eager's kernel takes no float32 gradient for a half input",
    ("nn.functional.batch_norm", "input 1 afterwards:"):
        "eager hands cuDNN a dense copy of running statistics with gaps, so that their update is lost; compiled, they are updated",
}
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16,
          "int64": torch.int64, "int32": torch.int32, "bool": torch.bool, "uint8": torch.uint8, "complex64": torch.complex64}


def noncontiguous(value):
    """The same values with a gap between neighbours."""
    if isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_quantized and value.numel() > 1:
        wide = torch.stack([value.detach(), torch.zeros_like(value)], dim=-1)
        return wide[..., 0].requires_grad_(value.requires_grad)
    return value


def permuted(value):
    """The same values with the dimensions the other way round in memory; channels last where there are four."""
    if isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_quantized and value.dim() > 1:
        if value.dim() == 4:
            return value.detach().contiguous(memory_format=torch.channels_last).requires_grad_(value.requires_grad)
        order = tuple(reversed(range(value.dim())))
        return value.detach().permute(order).contiguous().permute(order).requires_grad_(value.requires_grad)
    return value


def mapped(f, value):
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(mapped(f, v) for v in value)
    if isinstance(value, dict):
        return {k: mapped(f, v) for k, v in value.items()}
    return f(value)


LAYOUTS = {"as given": None, "gaps": noncontiguous, "permuted": permuted}


def call_of(op):
    """A fresh function for every operator: what capture compiles."""
    operator = op.op

    def call(*args, **kwargs):
        return operator(*args, **kwargs)

    return call


def cases(op, dtype, options):
    """(what, function, args, kwargs) of one operator."""
    grad, variants = options.grad, options.variants
    samples = op.sample_inputs(options.device, dtype, requires_grad=grad)
    for sample in samples:
        args, kwargs = [sample.input, *sample.args], sample.kwargs
        for layout, change in LAYOUTS.items():
            if change is None:
                yield layout, call_of(op), args, kwargs
            elif "layouts" in variants:
                moved = mapped(change, args)
                if any(a is not b for a, b in zip(moved, args)):
                    yield layout, call_of(op), moved, mapped(change, kwargs)
        if "inplace" in variants and op.inplace_variant is not None and not sample.broadcasts_input and not grad:
            inplace = op.inplace_variant
            yield "in place", lambda *a, inplace=inplace, **k: inplace(*a, **k), args, kwargs
        if "out" in variants and op.supports_out and not grad and "out" not in kwargs:
            yield "out=", with_out(op), args, kwargs


def with_out(op):
    operator = op.op

    def call(out, *args, **kwargs):
        return operator(*args, out=out, **kwargs)

    call.needs_out = True
    return call


def error_cases(op, device):
    if op.error_inputs_func is None:
        return
    for error in op.error_inputs(device):
        sample = error.sample_input
        yield "error input", call_of(op), [sample.input, *sample.args], sample.kwargs


def is_known_on_device(name, mismatch, device):
    return device == "cuda" and any(name == known and part in mismatch for known, part in KNOWN_ON_CUDA)


def problems_of(op, dtype, options):
    count = 0
    for what, f, args, kwargs in cases(op, dtype, options):
        if options.samples and count == options.samples:
            break
        if (op.name, what) in KNOWN:
            continue
        count += 1
        fusebox.reset()
        try:
            compare_calls(f, args, kwargs, options.grad)
        except Mismatch as mismatch:
            if is_known_on_device(op.name, str(mismatch), options.device):
                continue
            shapes = mapped(lambda v: tuple(v.shape) if isinstance(v, torch.Tensor) else v, args)
            yield f"{what}: {str(shapes):.120} {str(kwargs):.120}: {mismatch}"
    options.count += count
    if "errors" in options.variants and dtype == torch.float32 and (op.name, "error input") not in KNOWN:
        for what, f, args, kwargs in error_cases(op, options.device):
            options.count += 1
            fusebox.reset()
            try:
                compare_calls(f, args, kwargs, False)
            except Mismatch as mismatch:
                yield f"{what}: {mismatch}"


def chosen(options):
    index, of = map(int, options.shard.split("/"))
    ops = [op for op in op_db if op.name not in UNREPEATABLE]
    if options.only:
        return [op for op in ops if op.name in options.only or op.full_name in options.only]
    return ops[index::of]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", help="cuda: without the variant errors, whose assertions would end the process's use of the device")
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--samples", type=int, default=3, help="cases an operator and dtype; 0 for all")
    parser.add_argument("--dtypes", nargs="*", default=["float32"], choices=list(DTYPES))
    parser.add_argument("--variants", nargs="*", default=[], choices=["layouts", "inplace", "out", "errors"])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--grad", action="store_true", help="compare gradients too")
    parser.add_argument("--seconds", type=float, default=0, help="skip the rest of an operator that takes longer")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--all-problems", action="store_true")
    options = parser.parse_args()
    if options.device == "cuda" and "errors" in options.variants:
        parser.error("--variants errors is for the CPU")
    if options.device == "cuda":
        import torch._inductor.config
        torch._inductor.config.fallback_random = True  # random numbers are eager's then
    options.count = 0
    passed = failed = 0
    for op in chosen(options):
        for name in options.dtypes:
            dtype = DTYPES[name]
            supported = op.supported_dtypes(options.device) if not options.grad else op.supported_backward_dtypes(options.device)
            if dtype not in supported or (options.grad and not op.supports_autograd):
                continue
            started = time.monotonic()
            if options.verbose:
                print(op.full_name, name, flush=True)
            problems = []
            try:
                for problem in problems_of(op, dtype, options):
                    problems.append(problem)
                    if options.seconds and time.monotonic() - started > options.seconds:
                        break
            except Exception as error:
                problems.append(f"{type(error).__name__}: {error}")
            passed, failed = passed + (not problems), failed + bool(problems)
            for problem in dict.fromkeys(problems if options.all_problems else problems[:1]):
                print(f"FAIL {op.full_name} {name} ({len(problems)}): {problem}", flush=True)
    print(f"{passed} passed, {failed} failed, {options.count} calls")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

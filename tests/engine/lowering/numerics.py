"""Lowered operators against eager: PyTorch's own sample inputs, traced by AOTAutograd, lowered, and evaluated by interpreter.py.

`numerics.py [--filter PART] [--samples N] [--dtype float32,...] [--verbose]`
"""

import argparse
import sys
import traceback
import warnings
from collections import Counter

import torch
from functorch.compile import aot_function, make_boxed_func
from torch.testing._internal.common_methods_invocations import op_db

from interpreter import Program, Tool, nodes_of

warnings.filterwarnings("ignore")

# Random, uninitialised, sparse or data-dependent: nothing for a point-by-point comparison.
SKIP = ("empty", "rand", "bernoulli", "multinomial", "normal", "uniform", "exponential", "cauchy", "geometric", "log_normal",
        "dropout", "sparse", "nonzero", "unique", "masked_select", "item", "tolist", "equal", "resize", "svd", "eig", "lowrank",
        "to_sparse", "jiterator", "torch.ops", "nn.functional.ctc", "lu", "qr", "lstsq", "geqrf", "stft", "fft", "rrelu",
        "fractional", "_segment", "histogram", "scaled_dot_product", "polar", "allclose", "masked.", "linalg", "special.",
        "argwhere", "combinations", "cdist", "corrcoef", "tensor_split", "view_as_complex", "__rpow__", "cholesky")


def run(tool, f, args, reasons, mismatches, grads):
    def compiler(gm, _):
        nodes, constants = nodes_of(gm)
        program = Program(tool.lower(nodes), constants)
        reasons.update(program.reasons())

        def call(*inputs):
            out = program(*inputs)
            mismatches.extend(program.mismatches)
            return out

        return make_boxed_func(call)

    return aot_function(f, fw_compiler=compiler, bw_compiler=compiler)(*args)


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    return []


def check(tool, op, dtype, count, grad, reasons):
    problems = []
    mismatches = []
    for i, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=grad)):
        if i == count:
            break

        def f(*tensors):
            it = iter(tensors)
            fill = lambda v: next(it) if isinstance(v, torch.Tensor) else type(v)(fill(e) for e in v) if isinstance(v, (list, tuple)) else v
            return op(fill(sample.input), *[fill(a) for a in sample.args], **sample.kwargs)

        tensors = flat([sample.input, *sample.args])
        if any(isinstance(v, torch.Tensor) for v in sample.kwargs.values()):
            continue
        try:
            want = flat(f(*tensors))
        except Exception:
            continue
        try:
            got = flat(run(tool, f, tensors, reasons, mismatches, grad))
            for g, w in zip(got, want, strict=True):
                tol = dict(rtol=2e-2, atol=1e-2) if dtype in (torch.bfloat16, torch.float16) else dict(rtol=1e-4, atol=1e-5)
                torch.testing.assert_close(g, w, equal_nan=True, check_stride=False, **tol)
                if grad and w.requires_grad and w.is_floating_point():
                    leaves = [t for t in tensors if t.requires_grad]
                    if not leaves:
                        continue
                    tangent = torch.randn_like(w)
                    gw = torch.autograd.grad(w, leaves, tangent, allow_unused=True, retain_graph=True)
                    gg = torch.autograd.grad(g, leaves, tangent, allow_unused=True, retain_graph=True)
                    for a, b in zip(gg, gw):
                        if b is not None and a is None:
                            a = torch.zeros_like(b)
                        if b is not None:
                            torch.testing.assert_close(a, b, equal_nan=True, check_stride=False, **tol)
        except Exception as e:
            text = str(e).strip().replace("\n", " ")[:260]
            problems.append(f"sample {i} {[tuple(t.shape) for t in tensors]} {str(sample.args)[:60]} {sample.kwargs}: {type(e).__name__}: {text}")
            if VERBOSE:
                traceback.print_exc()
    return problems, mismatches


def main():
    global VERBOSE
    parser = argparse.ArgumentParser()
    parser.add_argument("--filter", default="")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--grad", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    VERBOSE = args.verbose
    torch.set_num_threads(1)
    shard, of = map(int, args.shard.split("/"))
    tool, reasons, bad, good = Tool(), Counter(), 0, 0
    for number, op in enumerate(op_db):
        full = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        if number % of != shard or args.filter not in full or any(s in full for s in SKIP):
            continue
        for name in args.dtype.split(","):
            dtype = getattr(torch, name)
            if dtype not in op.supported_dtypes("cpu"):
                continue
            grad = args.grad and dtype in op.supported_backward_dtypes("cpu") and op.supports_autograd
            if tool.process.poll() is not None:
                tool = Tool()
            try:
                problems, mismatches = check(tool, op, dtype, args.samples, grad, reasons)
            except Exception as e:
                problems, mismatches = [f"{type(e).__name__}: {str(e)[:200]}"], []
            bad += bool(problems)
            good += not problems
            for p in problems[:2]:
                print(f"FAIL {full} {name} {p}", flush=True)
            for m in sorted(set(mismatches))[:2]:
                print(f"note {full} {name} {m}", flush=True)
    print(f"{good} good, {bad} bad")
    for reason, n in reasons.most_common(60 if VERBOSE or args.filter == "" else 20):
        print(f"{n:5} {reason}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

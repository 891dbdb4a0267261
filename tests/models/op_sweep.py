"""Every operator that PyTorch describes for its own tests, compiled against eager on PyTorch's own sample inputs.

A break or an extern call is fine; anything that a program could tell from eager is not: values, dtypes, shapes, strides, aliasing,
what was written to the inputs, random streams, gradients, and the type of an exception. `--shard I/N` runs every N-th operator.
All of it: `--jobs 64 --dtypes all --samples all --variants layouts inplace out errors`, and again with `--grad --variants layouts`.
`--dynamic` compiles for sizes that change: each sample is called, then the same one at other sizes, of which most must find the first one's code.
"""

import argparse
import json
import os
import pathlib
import random
import select
import signal
import sys
import time
import warnings

os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")  # what is tested is compiling

import numpy
import torch
from torch.testing._internal.common_methods_invocations import op_db

import fusebox
from models.op_compare import Mismatch, compare_calls
from models.op_sizes import FIXED, at_other_sizes

warnings.filterwarnings("ignore")

# Operators whose results eager itself does not repeat, or that cannot be compared, and why.
UNREPEATABLE = {
    **dict.fromkeys(["empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_",
                     "resize_as_"], "uninitialised memory"),
    **dict.fromkeys(["linalg.svd", "svd", "linalg.eig", "linalg.eigh", "svd_lowrank", "pca_lowrank", "geqrf"],
                    "vectors are defined up to sign or phase, and LAPACK's choice depends on the alignment of its working memory"),
}
# Operators whose samples all raise in eager.
ONLY_ERRORS = {op.full_name: "needs a GPU" for op in op_db if op.name.startswith("jiterator_")}
# (operator, kind of case) that differs from eager, and why it is left so.
KNOWN = {
    ("complex", "error input"): "eager refuses an out= of another type; the compiled call converts, as other operators do",
    ("logit", "in place"): "as ldexp",
    ("ldexp", "in place"): "eager refuses the promotion of an integer; the compiled call's values are the same",
    ("torch.ops.aten._safe_softmax.default", "permuted"): "strides only: eager's result is row-major",
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
# On CUDA: (operator, argument) for which eager is wrong where tensors have gaps or are permuted, and why.
LAYOUTS_WRONG_ON_CUDA = dict.fromkeys(
    [("nn.functional.embedding", "max_norm"), ("nn.functional.embedding_bag", "max_norm")],
    "embedding_renorm_ takes stride(0) for the number of columns: its kernels write beyond rows that are apart, another result in every run")
DTYPES = {str(d)[6:]: d for d in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32,
                                  torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128,
                                  torch.complex32)}
COUNTS = pathlib.Path(__file__).with_name("op_sample_counts.json")
OPERATOR_SECONDS = 900
PAIRS_A_PROCESS = 64
COUNTERS = ("count", "results", "resized", "kept")


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
LEAST_KEPT = 0.3  # of calls at other sizes that find compiled code, where sizes are symbols


def call_of(op):
    """A fresh function for every operator: what capture compiles."""
    operator = op.op

    def call(*args, **kwargs):
        return operator(*args, **kwargs)

    return call


def samples_of(op, dtype, options):
    """PyTorch's samples, the same in every run."""
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)
    return list(op.sample_inputs(options.device, dtype, requires_grad=options.grad))


def cases(op, samples, options):
    """(what, function, args, kwargs) of one operator, those known to differ left out."""
    variants = options.variants
    for sample in samples:
        args, kwargs = [sample.input, *sample.args], sample.kwargs
        for layout, change in LAYOUTS.items():
            if change is None:
                yield layout, call_of(op), args, kwargs
            elif "layouts" in variants and (op.name, layout) not in KNOWN:
                if options.device == "cuda" and any((op.name, given) in LAYOUTS_WRONG_ON_CUDA for given, v in kwargs.items() if v is not None):
                    continue
                moved = mapped(change, args)
                if any(a is not b for a, b in zip(moved, args)):
                    yield layout, call_of(op), moved, mapped(change, kwargs)
        if options.grad:
            continue
        if "inplace" in variants and op.inplace_variant is not None and not sample.broadcasts_input and (op.name,
            "in place") not in KNOWN:
            inplace = op.inplace_variant
            yield "in place", lambda *a, inplace=inplace, **k: inplace(*a, **k), args, kwargs
        if "out" in variants and op.supports_out and "out" not in kwargs:
            yield "out=", with_out(op), args, kwargs


def with_out(op):
    operator = op.op

    def call(out, *args, **kwargs):
        return operator(*args, out=out, **kwargs)

    call.needs_out = True
    return call


ERRORS = ("error input", "caught error")


def error_cases(op, device):
    if op.error_inputs_func is None:
        return
    for error in op.error_inputs(device):
        sample = error.sample_input
        for what, f in zip(ERRORS, (call_of(op), caught(call_of(op)))):
            yield what, f, [sample.input, *sample.args], sample.kwargs


def caught(call):
    """What the program sees that catches the call's error; nobody reads a result."""
    def f(*args, **kwargs):
        try:
            call(*args, **kwargs)
        except Exception as error:
            return type(error).__name__, str(error)
        return "accepted"
    f.catches = True
    return f


def spread(items, count):
    """`count` of them from the first to the last, the same in every run; all where there are fewer or `count` is 0."""
    if not count or len(items) <= count:
        return items
    return [items[i * (len(items) - 1) // max(1, count - 1)] for i in range(count)]


def is_known_on_device(name, mismatch, device):
    return device == "cuda" and any(name == known and part in mismatch for known, part in KNOWN_ON_CUDA)


def compared(op, chosen_cases, options):
    """Yields what differs; counts calls and those of them that gave results."""
    for what, f, args, kwargs in chosen_cases:
        fusebox.reset()
        compiled = fusebox.compile(f, dynamic=options.dynamic or None)
        grad = options.grad and what not in ERRORS
        for sizes, size_args, size_kwargs in sizes_of(op, what, f, args, kwargs, options):
            options.count += 1
            graphs = fusebox.counters()["graphs"]
            try:
                has_result = bool(compare_calls(f, size_args, size_kwargs, grad, compiled))
                options.results += has_result
                if sizes and has_result:
                    options.resized += 1
                    options.kept += fusebox.counters()["graphs"] == graphs
            except Mismatch as mismatch:
                options.results += 1
                if is_known_on_device(op.name, str(mismatch), options.device):
                    continue
                shapes = mapped(lambda v: tuple(v.shape) if isinstance(v, torch.Tensor) else v, size_args)
                yield f"{what}{sizes}: {str(shapes):.120} {str(size_kwargs):.120}: {mismatch}"
                break


def sizes_of(op, what, f, args, kwargs, options):
    """(words, args, kwargs): the sample, then where sizes are to change the same at the first other sizes that eager takes."""
    yield "", args, kwargs
    if options.dynamic and what not in ERRORS and not getattr(f, "needs_out", False) and op.name not in FIXED:
        yield from ((", other sizes", *other) for other in at_other_sizes(f, args, kwargs))


def problems_of(op, dtype, options):
    samples = samples_of(op, dtype, options)
    least = least_samples(op, dtype, options)
    if len(samples) < least:
        yield f"only {len(samples)} samples, there were {least}: update {COUNTS.name} if PyTorch has fewer"
    before = options.results
    # What is chosen does not depend on how long anything takes.
    few = samples if not options.samples else spread(samples, options.samples)
    yield from compared(op, spread(list(cases(op, few, options)), options.samples), options)
    if least and options.results == before and op.full_name not in ONLY_ERRORS:
        yield f"none of {len(few)} samples gave a result to compare"
    if "errors" in options.variants and dtype == torch.float32 and (op.name, "error input") not in KNOWN:
        yield from compared(op, error_cases(op, options.device), options)


def least_samples(op, dtype, options):
    """How many samples there have to be, by the stored table (which is of the CPU)."""
    entry = options.table.get(op.full_name, {}).get(str(dtype)[6:], [0, 0])
    return entry[1 if options.grad else 0] if options.device == "cpu" else 0


def dtypes_of(op, options):
    supported = op.supported_backward_dtypes(options.device) if options.grad else op.supported_dtypes(options.device)
    if options.grad and not op.supports_autograd:
        return []
    return [name for name in (DTYPES if options.dtypes == ["all"] else options.dtypes) if DTYPES[name] in supported]


def sweep(op, name, options):
    """What differs for one operator and type."""
    if options.verbose:
        print(op.full_name, name, flush=True)
    problems = []
    try:
        problems += problems_of(op, DTYPES[name], options)
    except Exception as error:
        problems.append(f"{type(error).__name__}: {error}")
    return problems


def count_samples(op, options):
    """An operator's entry in the table: {type: [forward, with gradients]}."""
    entry = {}
    for grad in (False, True):
        options.grad = grad
        for name in dtypes_of(op, options):
            try:
                entry.setdefault(name, [0, 0])[grad] = len(samples_of(op, DTYPES[name], options))
            except Exception:
                continue
    return entry


def in_child(pairs, options):
    """Starts a process for a few pairs, so that a crash is one pair's; a line of its pipe is an answer."""
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    os.close(read)
    with os.fdopen(write, "w") as out:
        for op, name in pairs:
            signal.alarm(OPERATOR_SECONDS)
            for counter in COUNTERS:
                setattr(options, counter, 0)
            result = sweep(op, name, options) if name else count_samples(op, options)
            print(json.dumps([result, *(getattr(options, counter) for counter in COUNTERS)]), file=out, flush=True)
    os._exit(0)


def run_children(pairs, options):
    """(operator, type, answer or None where its process died, status) with `jobs` processes at a time."""
    pairs, running = list(pairs), {}
    ends = time.monotonic() + options.seconds if options.seconds else None
    while pairs or running:
        if pairs and ends and time.monotonic() > ends:
            print(f"{len(pairs)} pairs are left out: the time is over", flush=True)
            pairs = []
        while pairs and len(running) < options.jobs:
            count = max(1, min(PAIRS_A_PROCESS, len(pairs) // (4 * options.jobs)))
            few, pairs = pairs[:count], pairs[count:]
            pid, pipe = in_child(few, options)
            running[pipe] = (few, pid, [b""])
        for pipe in select.select(list(running), [], [])[0]:
            few, pid, rest = running[pipe]
            data = os.read(pipe, 1 << 16)
            *lines, rest[0] = (rest[0] + data).split(b"\n")
            for line in lines:
                yield *few.pop(0), json.loads(line), 0
            if data:
                continue
            del running[pipe]
            os.close(pipe)
            _, status = os.waitpid(pid, 0)
            if few:
                yield *few.pop(0), None, status
                pairs = few + pairs if not ends or time.monotonic() < ends else []


def chosen(options):
    index, of = map(int, options.shard.split("/"))
    ops = [op for op in op_db if op.name not in UNREPEATABLE]
    if options.only:
        return [op for op in ops if op.name in options.only or op.full_name in options.only]
    return ops[index::of]


def pairs_of(options):
    """(operator, type) of all that was asked for, those with many samples first."""
    pairs = [(op, name) for op in chosen(options) for name in dtypes_of(op, options)]
    return sorted(pairs, key=lambda pair: -options.table.get(pair[0].full_name, {}).get(pair[1], [0, 0])[options.grad])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu",
                        help="cuda: without the variant errors, whose assertions would end the process's use of the device")
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--jobs", type=int, default=1, help="operators at a time, each in a process of its own")
    parser.add_argument("--samples", type=lambda v: 0 if v == "all" else int(v), default=3,
                        help="cases an operator and type, spread over all of them; 'all'")
    parser.add_argument("--dtypes", nargs="*", default=["float32"], choices=["all", *DTYPES])
    parser.add_argument("--variants", nargs="*", default=[], choices=["layouts", "inplace", "out", "errors"])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--seconds", type=float, help="begin no further operators after that")
    parser.add_argument("--grad", action="store_true", help="compare gradients too")
    parser.add_argument("--dynamic", action="store_true", help="dynamic=True, and each sample at two sizes")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--all-problems", action="store_true")
    parser.add_argument("--write-counts", action="store_true",
                        help=f"count PyTorch's samples into {COUNTS.name}, compare nothing")
    options = parser.parse_args()
    if options.device == "cuda" and "errors" in options.variants:
        parser.error("--variants errors is for the CPU")
    options.table = json.loads(COUNTS.read_text()) if COUNTS.exists() and not options.write_counts else {}
    for counter in COUNTERS:
        setattr(options, counter, 0)
    return options


def results_of(options):
    """(operator, type, problems) of all that was asked for."""
    if options.device == "cuda":  # which a forked process could not use
        for op, name in pairs_of(options):
            yield op, name, sweep(op, name, options)
        return
    for op, name, answer, status in run_children(pairs_of(options), options):
        if answer is None:
            yield op, name, [f"the process ended with status {status}"]
            continue
        for counter, value in zip(COUNTERS, answer[1:]):
            setattr(options, counter, getattr(options, counter) + value)
        yield op, name, answer[0]


def write_counts(options):
    options.dtypes = ["all"]
    pairs = [(op, None) for op in chosen(options)]
    table = {op.full_name: answer[0] for op, _, answer, _ in run_children(pairs, options) if answer}
    lines = [f"{json.dumps(name)}: {json.dumps(table[name])}" for name in sorted(table)]
    COUNTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def without_gpu():
    """PyTorch's table of operators starts CUDA where there is one; the CPU's operators run in forked processes, which could not use it."""
    if torch.cuda.is_initialized() or torch.cuda.device_count():
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "CUDA_VISIBLE_DEVICES": ""})


def main():
    options = arguments()
    if options.device == "cpu":
        without_gpu()
    if options.write_counts:
        return write_counts(options)
    if options.device == "cuda":
        import torch._inductor.config
        torch._inductor.config.fallback_random = True  # random numbers are eager's then
    passed = failed = 0
    for op, name, problems in results_of(options):
        passed, failed = passed + (not problems), failed + bool(problems)
        for problem in dict.fromkeys(problems if options.all_problems else problems[:1]):
            print(f"FAIL {op.full_name} {name} ({len(problems)}): {problem}", flush=True)
    print(f"{passed} passed, {failed} failed, {options.count} calls, {options.results} of them with results")
    if options.dynamic:
        print(f"{options.resized} calls at other sizes, {options.kept} of them with code of the first size")
        if not options.only and options.kept < LEAST_KEPT * options.resized:
            sys.exit("too few calls at other sizes found compiled code")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

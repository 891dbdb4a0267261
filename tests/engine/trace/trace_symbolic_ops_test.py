"""What trace_symbolic_test does, over the operators that PyTorch describes for its own tests: samples are traced with every size of at least 2
symbolic, and the trace is evaluated at sizes twice and three times as large beside traces made there."""
import argparse
import collections
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/aot")
import fusebox_trace_probe as probe  # noqa: E402
from aot_compare import tensors_of  # noqa: E402
from trace_symbolic_test import compare  # noqa: E402

warnings.filterwarnings("ignore")
SAMPLES = 3  # of each operator
#: Operators that cannot be traced with symbolic sizes (capture falls back to static ones), and why.
OPEN = {
    "resize_": "functionalisation reads the storage offset of what is resized",
    "resize_as_": "functionalisation reads the storage offset of what is resized",
    "nn.functional.interpolate.nearest": "PyTorch's symbolic floats have no __trunc__ without its own nodes",
    "nn.functional.interpolate.nearest-exact": "PyTorch's symbolic floats have no __trunc__ without its own nodes",
    "nn.functional.fractional_max_pool3d": "PyTorch's symbolic floats have no __trunc__ without its own nodes",
    "nn.functional.interpolate.area": "PyTorch's symbolic floats have no __trunc__ without its own nodes",
}


def traced(sample, op, factor, dynamic):
    """A trace of the sample with its sizes times `factor`."""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def larger(t):
        made = torch.zeros([n * factor if n > 1 else n for n in t.shape], dtype=t.dtype)
        return made.requires_grad_() if t.requires_grad else made

    arguments = [larger(leaves[i]) for i in places]

    def run(*tensors):
        filled = list(leaves)
        for i, t in zip(places, tensors):
            filled[i] = t
        first, args, kwargs = pytree.tree_unflatten(filled, spec)
        return [t for t in tensors_of(op.op(first, *args, **kwargs)) if isinstance(t, torch.Tensor)]

    return probe.trace(run, arguments, [[d for d, n in enumerate(t.shape) if n > 1] if dynamic else [] for t in arguments])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    wrong, specialised, counts = [], collections.Counter(), collections.Counter()
    for op in op_db:
        if options.only and op.name not in options.only:
            continue
        try:
            grad = op.supports_autograd
            samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=grad))
        except Exception:  # noqa: BLE001: no such samples on this machine
            continue
        # Samples of many sizes, not the first ones that differ in a flag.
        for sample in samples[:: max(1, len(samples) // options.samples)][: options.samples]:
            if sample.input is None or not tensors_of(pytree.tree_leaves((sample.input, sample.args, sample.kwargs))):
                continue
            name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
            try:
                concrete = traced(sample, op, 1, False)
            except Exception:  # noqa: BLE001: cannot be traced at all
                counts["untraceable"] += 1
                continue
            try:
                symbolic = traced(sample, op, 1, True)
            except Exception as error:  # noqa: BLE001
                counts["open"] += name in OPEN
                if name not in OPEN:
                    wrong.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}")
                continue
            wrong += compare(name + " at capture", symbolic, concrete, symbolic.hints)
            reasons = {reason for _, reason in symbolic.specialised()}
            for reason in reasons:
                specialised[reason] += 1
            counts["specialised" if reasons else "free"] += 1
            for factor in (2, 3):
                values = [n * factor for n in symbolic.hints]
                if symbolic.broken(values):
                    continue
                try:
                    there = traced(sample, op, factor, False)
                except Exception as error:  # noqa: BLE001: the relations should have said so
                    counts["eager refuses"] += 1
                    if options.show:
                        print("refused:", name, symbolic.relations, str(error).splitlines()[0])
                    continue
                counts["compared"] += 1
                wrong += compare(f"{name} x{factor}", symbolic, there, values)
    for line in wrong:
        print(line[:500])
    print("specialised by:", specialised.most_common())
    print(f"{len(wrong)} problems; {dict(counts)}")
    assert not wrong


if __name__ == "__main__":
    main()

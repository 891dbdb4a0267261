"""Compiled against eager: outputs, gradients and buffers, on fresh random inputs.

The measure is the error relative to the largest value of the eager result (running means: or of the running deviation, since the mean
behind another normalisation is nothing but rounding). Eager's own rounding error, found by running the
model in float64, widens the limit where the model amplifies rounding. For gradients the largest error that eager has in any
gradient of the model counts, and float32 gets a limit of 10 %: rounding that crosses a kink (relu at 0, behind a batch norm of
two images) moves gradients by several percent, each time others, in eager as here. Float64 is where wrong gradients have no
excuse; its limit is what the float32 steps inside of some models (a loss in float32) leave. In bfloat16 and under autocast all
gradients together must besides be as near to the model's in float64 as eager's are (relative L2 error, with half of it to spare).
"""

import argparse
import contextlib
import copy
import dataclasses
import sys

import torch

import fusebox
from models.zoo import MODELS, loss_of, tensors_of

LIMIT = {torch.float32: 2e-4, torch.bfloat16: 4e-2, torch.float16: 1e-2, torch.float64: 1e-7}
GRADIENT_LIMIT = {torch.float32: 1e-1, torch.bfloat16: 1e-1, torch.float64: 1e-6}
WORSE_THAN_EAGER = 1.5
DEVICE, FULLGRAPH = "cpu", True


@dataclasses.dataclass
class Precision:
    """What a model's parameters and inputs are, and what it computes in."""

    stored: torch.dtype
    autocast: torch.dtype | None = None

    @property
    def computed(self):
        return self.autocast or self.stored

    @property
    def is_low(self):
        return self.computed in (torch.bfloat16, torch.float16)

    @property
    def steps(self):
        """A second call shows what the first has left behind, whatever the type; eager computes slowly in low ones."""
        return 1 if self.is_low else 2

    def context(self):
        return torch.autocast(DEVICE, self.autocast) if self.autocast else contextlib.nullcontext()


PRECISIONS = {
    "float32": Precision(torch.float32),
    "bfloat16": Precision(torch.bfloat16),
    "autocast": Precision(torch.float32, torch.bfloat16),
    "float64": Precision(torch.float64),
}


def relative_error(a, b, scale=0.0):
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if a.stride() != b.stride() and a.numel() > 1 and not (a.is_contiguous() and b.is_contiguous()):
        return float("inf")
    if not a.is_floating_point():
        return 0.0 if torch.equal(a, b) else float("inf")
    a, b = a.detach().double(), b.detach().double()
    if torch.isnan(a).any() != torch.isnan(b).any():
        return float("inf")
    scale = max(scale, b.abs().max().item() if b.numel() else 0.0)
    return ((a - b).abs().max().item() / (scale + 1e-8)) if b.numel() else 0.0


class Report:
    def __init__(self):
        self.worst, self.failures = 0.0, []

    def add(self, what, got, want, limit, eager_error=0.0, scale=0.0):
        error = relative_error(got, want, scale)
        allowed = max(limit, 4 * eager_error)
        self.worst = max(self.worst, error)
        if not error <= allowed:
            self.failures.append(f"{what}: error {error:.2e} over {allowed:.2e}, {tuple(got.shape)} {got.stride()} {got.dtype}"
                                 f" against {tuple(want.shape)} {want.stride()} {want.dtype}")


def eager_error(want, exact, scale=0.0):
    return relative_error(want.double(), exact.double(), scale) if want.is_floating_point() else 0.0


def cast(value, dtype):
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.to(dtype)
    return value


def make(name):
    with torch.device(DEVICE):
        return MODELS[name]()


def inference(name, precision):
    torch.manual_seed(0)
    model, args, kwargs = make(name)
    dtype, limit = precision.stored, LIMIT[precision.computed]
    model.eval().to(dtype)
    exact_model = copy.deepcopy(model).double()
    compiled = fusebox.compile(copy.deepcopy(model), fullgraph=FULLGRAPH)
    report = Report()
    with torch.no_grad():
        for _ in range(precision.steps):
            _, args, kwargs = make(name)
            args = [cast(a, dtype) for a in args]
            exact = exact_model(*[cast(a, torch.float64) for a in args], **kwargs)
            with precision.context():
                want = model(*args, **kwargs)
                got = compiled(*args, **kwargs)
            if type(got) is not type(want):
                report.failures.append(f"output type {type(got)} against {type(want)}")
            for i, (g, w, e) in enumerate(zip(tensors_of(got), tensors_of(want), tensors_of(exact), strict=True)):
                report.add(f"output {i}", g, w, limit, eager_error(w, e))
    return report


def distance(model, exact):
    """Of all gradients together from those of `exact`: relative L2 error."""
    pairs = [(p.grad.double(), exact[n].grad) for n, p in model.named_parameters() if p.grad is not None]
    return (sum((a - b).square().sum() for a, b in pairs) / sum(b.square().sum() for _, b in pairs)).sqrt().item()


def training(name, precision):
    torch.manual_seed(0)
    model, args, kwargs = make(name)
    dtype, limit = precision.stored, LIMIT[precision.computed]
    model.train().to(dtype)
    for module in model.modules():  # random numbers are drawn from one generator: keep the two runs comparable
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    for attribute in ("attn_pdrop", "resid_pdrop", "embd_pdrop", "attention_probs_dropout_prob", "attention_dropout"):
        if hasattr(getattr(model, "config", None), attribute):
            setattr(model.config, attribute, 0.0)
    for module in model.modules():
        for attribute in ("attn_dropout_p", "dropout_prob", "attention_dropout"):
            if isinstance(getattr(module, attribute, None), float):
                setattr(module, attribute, 0.0)
    exact_model = copy.deepcopy(model).double()
    copied = copy.deepcopy(model)
    compiled = fusebox.compile(copied, fullgraph=FULLGRAPH)
    report = Report()
    for step in range(precision.steps):
        _, args, kwargs = make(name)
        for m, run, dt in ((model, model, dtype), (exact_model, exact_model, torch.float64), (copied, compiled, dtype)):
            m.zero_grad()
            with contextlib.nullcontext() if m is exact_model else precision.context():
                loss = loss_of(run(*[cast(a, dt) for a in args], **kwargs))
            loss.backward()
        if step == 0:
            exact = dict(exact_model.named_parameters())
            rounding = max(eager_error(p.grad, exact[n].grad) for n, p in model.named_parameters() if p.grad is not None)
            for (n, p), q in zip(model.named_parameters(), copied.parameters(), strict=True):
                if (p.grad is None) != (q.grad is None):
                    report.failures.append(f"gradient of {n}: {'missing' if q.grad is None else 'unexpected'}")
                elif p.grad is not None:
                    report.add(f"gradient of {n}", q.grad, p.grad, GRADIENT_LIMIT[precision.computed], rounding)
            if precision.is_low:
                ours, eagers = distance(copied, exact), distance(model, exact)
                if not ours <= WORSE_THAN_EAGER * eagers:
                    report.failures.append(f"gradients are {ours:.2e} from those of float64, eager's {eagers:.2e}")
    exact = dict(exact_model.named_buffers())
    for (n, b), c in zip(model.named_buffers(), copied.buffers(), strict=True):
        deviation = exact[n.replace("running_mean", "running_var")].sqrt().max().item() if n.endswith("running_mean") else 0.0
        report.add(f"buffer {n}", c, b, limit, eager_error(b, exact[n], deviation), deviation)
    return report


KINDS = {"inference": inference, "training": training}
MODES = [f"{kind}-{precision}" for kind in KINDS for precision in PRECISIONS if (kind, precision) != ("inference", "float64")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--modes", nargs="*", default=MODES, choices=MODES)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--allow-breaks", action="store_true", help="no fullgraph=True")
    options = parser.parse_args()
    global DEVICE, FULLGRAPH
    DEVICE, FULLGRAPH = options.device, not options.allow_breaks
    failed = 0
    for name in options.models:
        for mode in options.modes:
            try:
                kind, precision = mode.split("-")
                report = KINDS[kind](name, PRECISIONS[precision])
            except Exception as error:
                failed += 1
                print(f"FAIL {name} {mode}: {type(error).__name__}: {error}", flush=True)
                continue
            finally:
                fusebox.reset()
            if report.failures:
                failed += 1
                print(f"FAIL {name} {mode}: {len(report.failures)} differences, first: {report.failures[0]}", flush=True)
            else:
                print(f"ok   {name} {mode}: worst relative error {report.worst:.1e}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""Models through trace, AOT autograd, Inductor and code generation, without the evaluator: values and gradients against eager."""

import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.environ.get("PYTHONPATH", "").split(":")[0]), "tests"))
import fusebox_pipeline_probe as probe
from models.compare import relative_error
from models.zoo import MODELS, loss_of, tensors_of


def compare(name, training):
    torch.manual_seed(0)
    model, args, kwargs = MODELS[name]()
    model.train(training)
    if training:  # in float32 the gradients of these models are as good as their rounding, see compare.py
        model.double()
        args = [a.double() if a.is_floating_point() else a for a in args]
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for attribute in ("attn_dropout_p", "dropout_prob", "attention_dropout"):
            if isinstance(getattr(module, attribute, None), float):
                setattr(module, attribute, 0.0)
    keys = list(kwargs)
    tensors = [*args, *kwargs.values()]

    def run(*tensors):
        output = model(*tensors[:len(args)], **dict(zip(keys, tensors[len(args):])))
        return [loss_of(output)] if training else tensors_of(output)

    torch.compiler._is_compiling_flag = True
    try:
        with torch.set_grad_enabled(training):
            compiled = probe.compile(run, tensors, os.environ.get("BACKEND", "inductor"))
    finally:
        torch.compiler._is_compiling_flag = False
    parameters = [p for p in model.parameters()] if training else []
    state = {k: v.clone() for k, v in model.state_dict().items()}
    with torch.set_grad_enabled(training):
        want = run(*tensors)
        if training:
            model.zero_grad()
            want[0].backward()
            want += [p.grad.clone() if p.grad is not None else None for p in parameters]
            model.load_state_dict(state)
            model.zero_grad()
        start = time.perf_counter()
        got = compiled.call(compiled.inputs)
        if training:
            got[0].backward()
            got += [p.grad for p in parameters]
        first = time.perf_counter() - start
    worst = max(relative_error(g, w) for g, w in zip(got, want, strict=True) if w is not None)
    return worst, compiled.trace_ms, compiled.compile_ms, first * 1e3


def main():
    failed = 0
    for name in sys.argv[1:] or MODELS:
        for training in (False, True):
            try:
                before = probe.counters()
                worst, trace, compile_ms, first = compare(name, training)
                after = probe.counters()
                delta = {k: after[k] - before[k] for k in after}
                ok = worst < (1e-6 if training else 5e-3)
                failed += not ok or delta["failed_stages"] > 0
                print(f"{'ok  ' if ok else 'FAIL'} {name} {'training' if training else 'inference'} error {worst:.1e}, trace {trace:.0f} ms,"
                      f" compile {compile_ms:.0f} ms, first run {first:.0f} ms, {delta}", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAIL {name} {'training' if training else 'inference'}: {type(error).__name__} {str(error)[:600]}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

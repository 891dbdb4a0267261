"""Models on a CUDA device: a step of Fusebox beside the stock torch.compile and eager, and the first call of each.

    python tests/gpu/bench_models.py [--models gpt2 …] [--modes default reduce-overhead] [--json results.json]

Every engine runs in a process of its own with empty caches; seconds of the first call are of the first mode there, imports and model
building apart. A step ends with a synchronisation; medians. Ratios are stock / Fusebox: above 1, Fusebox is faster. Every step's
result is compared with eager's first.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
CASES = ("inference", "training")


def make(name):
    """The model and its inputs, full-sized, float32, on the device."""
    import torch
    torch.manual_seed(0)
    if name in ("resnet50", "vit_b_16"):
        import torchvision
        batch = 32 if name == "resnet50" else 16
        return getattr(torchvision.models, name)(weights=None).cuda(), {"x": torch.randn(batch, 3, 224, 224, device="cuda")}
    import transformers
    batch, length, vocabulary = {"gpt2": (4, 512, 50257), "bert": (8, 256, 30522), "llama_block": (2, 512, 1000)}[name]
    if name == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    elif name == "bert":
        model = transformers.BertForMaskedLM(transformers.BertConfig())
    else:
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(num_hidden_layers=1, vocab_size=vocabulary))
    ids = torch.randint(0, vocabulary, (batch, length), device="cuda")
    return model.cuda(), {"input_ids": ids, "labels": ids}


def loss_of(output):
    return output.loss if hasattr(output, "loss") else output.float().square().mean()


def step_of(model, run, inputs, case):
    import torch
    args = list(inputs.values()) if "x" in inputs else []
    kwargs = {} if args else inputs
    if case == "inference":
        def step():
            with torch.no_grad():
                return loss_of(run(*args, **kwargs))
    else:
        def step():
            model.zero_grad()
            loss = loss_of(run(*args, **kwargs))
            loss.backward()
            return loss
    return step


def median_ms(step, seconds):
    import torch
    for _ in range(4):
        step()
    torch.cuda.synchronize()
    times, stop = [], time.perf_counter() + seconds
    while len(times) < 10 or time.perf_counter() < stop:
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def child(name, engine, case, modes, seconds):
    import torch
    if engine == "fusebox":
        import fusebox
        compiler, reset = fusebox.compile, fusebox.reset
    else:
        import torch._dynamo
        compiler, reset = torch.compile, torch._dynamo.reset
    model, inputs = make(name)
    model.train(case == "training")
    result = {}
    eager = step_of(model, model, inputs, case)
    torch.manual_seed(3)
    want = eager().item()
    if engine == "eager":
        result["ms"] = median_ms(eager, seconds)
    for mode in modes if engine != "eager" else []:
        reset()
        run = compiler(model) if mode == "default" else compiler(model, mode=mode)
        step = step_of(model, run, inputs, case)
        torch.cuda.synchronize()
        torch.manual_seed(3)
        start = time.perf_counter()
        got = step().item()
        row = {"first_s": time.perf_counter() - start, "loss_error": abs(got - want) / max(1e-6, abs(want))}
        row["ms"] = median_ms(step, seconds)
        row["memory_gib"] = torch.cuda.max_memory_allocated() / 2**30
        torch.cuda.reset_peak_memory_stats()
        result[mode] = row
    print("RESULT " + json.dumps(result), flush=True)


def run_child(name, engine, case, options):
    with tempfile.TemporaryDirectory() as cache:
        env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=cache, TRITON_CACHE_DIR=cache + "/triton", FUSEBOX_CACHE_DIR=cache)
        command = [sys.executable, __file__, "--child", name, engine, case, "--modes", *options.modes, "--seconds", str(options.seconds)]
        try:
            done = subprocess.run(command, env=env, text=True, capture_output=True, timeout=options.limit)
        except subprocess.TimeoutExpired:
            return {"error": f"over {options.limit} s"}
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    return {"error": done.stderr.strip().splitlines()[-1:]}


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=["gpt2", "bert", "resnet50", "vit_b_16", "llama_block"])
    parser.add_argument("--modes", nargs="*", default=["default", "reduce-overhead"])
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--engines", nargs="*", default=["eager", "stock", "fusebox"])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--limit", type=int, default=120)
    parser.add_argument("--json")
    parser.add_argument("--child", nargs=3)
    options = parser.parse_args()
    if options.child:
        child(*options.child, options.modes, options.seconds)
        return
    rows, ratios, colds = [], [], []
    for name in options.models:
        for case in options.cases:
            row = {"model": name, "case": case}
            for engine in options.engines:
                row[engine] = run_child(name, engine, case, options)
            rows.append(row)
            parts = [f"{name} {case}: eager {row.get('eager', {}).get('ms', float('nan')):.2f} ms"]
            for mode in options.modes:
                both = [row.get(e, {}).get(mode) for e in ("stock", "fusebox")]
                if all(both):
                    row[mode + "_ratio"] = both[0]["ms"] / both[1]["ms"]
                    ratios.append(row[mode + "_ratio"])
                for engine, made in zip(("stock", "fusebox"), both):
                    if made:
                        parts.append(f"{engine} {mode} {made['ms']:.2f} ms (first {made['first_s']:.2f} s, {made['memory_gib']:.2f} GiB, "
                                     f"loss error {made['loss_error']:.0e})")
            firsts = [row.get(e, {}).get(options.modes[0], {}).get("first_s") for e in ("stock", "fusebox")]
            if all(firsts):
                row["cold_ratio"] = firsts[0] / firsts[1]
                colds.append(row["cold_ratio"])
            for engine in options.engines:
                if "error" in row[engine]:
                    parts.append(f"{engine}: {row[engine]['error']}")
            print("\n    ".join(parts), flush=True)
            if options.json:
                import torch
                with open(options.json, "w") as out:
                    json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows,
                               "steady_geomean": geomean(ratios), "cold_geomean": geomean(colds)}, out, indent=1)
    print(f"steady geomean {geomean(ratios):.3f}, least {min(ratios, default=float('nan')):.3f}; cold geomean {geomean(colds):.2f}")


if __name__ == "__main__":
    main()

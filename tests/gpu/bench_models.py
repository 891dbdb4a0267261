"""Models on a CUDA device: a step of Fusebox beside the stock torch.compile and eager, and the first call of each.

    python tests/gpu/bench_models.py [--models gpt2 …] [--modes default reduce-overhead] [--json results.json]

Every engine runs in a process of its own with empty caches; the cold ratio is of the first call in the first mode, imports and model
building apart. A step ends with a synchronisation; medians, one process at a time. Ratios are stock / Fusebox: above 1, Fusebox is
faster. The first step's loss is compared with eager's (random numbers differ where there is dropout).
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
    """Compiles everything first, says READY, and times when told to: so that nobody else uses the device meanwhile."""
    import torch
    if engine == "fusebox":
        import fusebox
        compiler = fusebox.compile
    else:
        import torch._dynamo
        compiler = torch.compile
    model, inputs = make(name)
    model.train(case == "training")
    eager = step_of(model, model, inputs, case)
    torch.manual_seed(3)
    want = eager().item()
    result, steps = {}, {}
    for mode in modes:
        run = compiler(model) if mode == "default" else compiler(model, mode=mode)
        steps[mode] = step_of(model, run, inputs, case)
        torch.cuda.synchronize()
        torch.manual_seed(3)
        start = time.perf_counter()
        got = steps[mode]().item()
        result[mode] = {"first_s": time.perf_counter() - start, "loss_error": abs(got - want) / max(1e-6, abs(want))}
        for _ in range(3):
            steps[mode]()
        torch.cuda.synchronize()
    print("READY", flush=True)
    sys.stdin.readline()
    if engine == "fusebox":
        result["eager_ms"] = median_ms(eager, seconds)
    for mode, step in steps.items():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        result[mode]["ms"] = median_ms(step, seconds)
        result[mode]["peak_gib"] = (torch.cuda.max_memory_allocated() - before) / 2**30
    print("RESULT " + json.dumps(result), flush=True)


class Child:
    """A process that measures one engine on one model."""

    def __init__(self, name, engine, case, options):
        self.cache = tempfile.TemporaryDirectory()
        self.errors = tempfile.TemporaryFile("w+")
        c = self.cache.name
        env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=c, TRITON_CACHE_DIR=c + "/triton", FUSEBOX_CACHE_DIR=c)
        command = [sys.executable, __file__, "--child", name, engine, case, "--modes", *options.modes, "--seconds", str(options.seconds)]
        self.process = subprocess.Popen(command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)

    def wait_for(self, word):
        for line in self.process.stdout:
            if line.startswith(word):
                return line[len(word):].strip()
        return None

    def ready(self):
        self.is_ready = self.wait_for("READY") is not None

    def result(self):
        answer = None
        if self.is_ready:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
            answer = self.wait_for("RESULT ")
        self.process.kill()
        self.process.wait()
        if answer is None:
            self.errors.seek(0)
            return {"error": self.errors.read().strip().splitlines()[-1:]}
        return json.loads(answer)


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def report(row, modes):
    """Adds the ratios; returns the row as text."""
    parts = [f"{row['model']} {row['case']}: eager {row.get('fusebox', {}).get('eager_ms', float('nan')):.2f} ms"]
    for mode in modes:
        both = [row.get(engine, {}).get(mode) for engine in ("stock", "fusebox")]
        if all(both):
            row[mode + "_ratio"] = both[0]["ms"] / both[1]["ms"]
        for engine, made in zip(("stock", "fusebox"), both):
            if made:
                parts.append(f"{engine} {mode} {made['ms']:.2f} ms (first {made['first_s']:.2f} s, {made['peak_gib']:.2f} GiB, loss error {made['loss_error']:.0e})")
    firsts = [row.get(engine, {}).get(modes[0], {}).get("first_s") for engine in ("stock", "fusebox")]
    if all(firsts):
        row["cold_ratio"] = firsts[0] / firsts[1]
    parts += [f"{engine}: {row[engine]['error']}" for engine in ("stock", "fusebox") if "error" in row.get(engine, {})]
    return "\n    ".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=["gpt2", "bert", "resnet50", "vit_b_16", "llama_block"])
    parser.add_argument("--modes", nargs="*", default=["default", "reduce-overhead"])
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--engines", nargs="*", default=["stock", "fusebox"])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--together", action="store_true", help="all models of a case compile at once (first calls are slower then)")
    parser.add_argument("--json")
    parser.add_argument("--child", nargs=3)
    options = parser.parse_args()
    if options.child:
        child(*options.child, options.modes, options.seconds)
        return
    rows = []
    for case in options.cases:
        for models in [options.models] if options.together else [[name] for name in options.models]:
            children = {}
            for engine in options.engines:
                for name in models:
                    children[name, engine] = Child(name, engine, case, options)
                for name in models:
                    children[name, engine].ready()
            for name in models:
                rows.append({"model": name, "case": case} | {engine: children[name, engine].result() for engine in options.engines})
                print(report(rows[-1], options.modes), flush=True)
    steady = [row[mode + "_ratio"] for row in rows for mode in options.modes if mode + "_ratio" in row]
    cold = [row["cold_ratio"] for row in rows if "cold_ratio" in row]
    print(f"steady geomean {geomean(steady):.3f}, least {min(steady, default=float('nan')):.3f}; cold geomean {geomean(cold):.2f}")
    if options.json:
        import torch
        with open(options.json, "w") as out:
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "compiled_together": options.together, "rows": rows,
                       "steady_geomean": geomean(steady), "steady_least": min(steady, default=None), "cold_geomean": geomean(cold)}, out, indent=1)


if __name__ == "__main__":
    main()

"""Fusebox beside the stock torch.compile of the same PyTorch: first call, without and with a cache, steady state, guard check and dispatch, recorder.

    PYTHONPATH=build/release/python:tests OMP_WAIT_POLICY=PASSIVE .venv/bin/python tests/bench/side_by_side.py [what…] -o results.json

`what` is any of cold, warm, depth, steady, dispatch, recorder. First calls are timed in fresh processes with empty caches (cold), or with what an earlier process left in them (warm, Fusebox alone), of a transformer of 4 and of 48 layers (depth, Fusebox alone, less a step); in the steady
state, engines take turns, each in a process of its own; dispatch and recorder are timed in one process. Ratios are
stock / Fusebox: above 1, Fusebox is faster.
"""

import argparse
import copy
import datetime
import gc
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

CASES = ["inference-float32", "inference-bfloat16", "training-float32"]
# A chain of pointwise operators over so many elements.
CHAINS = {"pointwise": 1 << 22, "pointwise-1Mi": 1 << 20, "pointwise-128Ki": 1 << 17, "pointwise-16Ki": 1 << 14, "pointwise-4Ki": 1 << 12}


def geomean(values):
    values = [v for v in values if v]
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else float("nan")


def compiler(engine):
    """torch.compile of one engine, without touching the other."""
    import torch
    if engine == "stock":
        return torch.compile
    if engine == "fusebox":
        import fusebox
        return fusebox.compile
    return lambda model: model


def pointwise_chain(x, y):
    import torch
    z = torch.sigmoid(x * 1.5 + y) * torch.tanh(y) + torch.exp(-x.abs())
    z = torch.where(z > 0.5, z * z + x, z - y)
    return torch.nn.functional.gelu(z) * (x + 1.0) + torch.sin(y) * torch.cos(x)


def make_step(name, case, engine):
    """A zero-argument callable that runs one step of `name`, not yet compiled."""
    import torch
    from models.zoo import MODELS, loss_of
    torch.manual_seed(0)
    if name in CHAINS:
        x, y = torch.randn(CHAINS[name]), torch.randn(CHAINS[name])
        f = compiler(engine)(pointwise_chain)
        return lambda: f(x, y)
    model, args, kwargs = (_small_transformer(int(name.removeprefix("layers-"))) if name.startswith("layers-") else MODELS[name])()
    dtype = torch.bfloat16 if "bfloat16" in case else torch.float32
    model.to(dtype)
    args = [a.to(dtype) if a.is_floating_point() else a for a in args]
    if case.startswith("inference"):
        model.eval()
        run = compiler(engine)(model)

        def step():
            with torch.no_grad():
                return run(*args, **kwargs)
    else:
        model.train()
        run = compiler(engine)(model)

        def step():
            model.zero_grad()
            loss = loss_of(run(*args, **kwargs))
            loss.backward()
            return loss
    return step


def cold_child(name, case, engine):
    """Runs in a fresh process: seconds of the first step, imports and model building apart."""
    import torch
    if engine == "fusebox":
        import fusebox  # noqa: F401
    step = make_step(name, case, engine)
    if engine == "stock":
        import torch._dynamo  # noqa: F401  (stock's own import is not charged)
    gc.collect()  # what imports left would be collected in some first calls, by chance, and in others not
    times = []
    for _ in range(1 if engine == "stock" else 4):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    print(json.dumps({"seconds": times[0], "step": min(times)}))


def cold(names, cases, engines=("stock", "fusebox")):
    rows = []
    for name in names:
        for case in cases if name not in CHAINS else cases[:1]:
            row = {"model": name, "case": case}
            for engine in engines:
                with tempfile.TemporaryDirectory() as cache:
                    env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=cache, FUSEBOX_CACHE_DIR=cache)
                    run = subprocess.run([sys.executable, __file__, "--child", name, case, engine], env=env, text=True,
                                         capture_output=True, timeout=900)
                try:
                    row[engine] = json.loads(run.stdout.strip().splitlines()[-1])["seconds"]
                except (IndexError, ValueError):
                    row[engine + "_error"] = run.stderr.strip().splitlines()[-1:] or [str(run.returncode)]
            if "stock" in row and "fusebox" in row:
                row["ratio"] = row["stock"] / row["fusebox"]
            rows.append(row)
            print("cold", row, flush=True)
    return rows


def warm(names, cases, rounds):
    """First calls in fresh processes: without an entry in the cache, with one, and without a compiler; medians."""
    rows = []
    for name in names:
        for case in cases if name not in CHAINS else cases[:1]:
            row = {"model": name, "case": case}
            found = {"cold": [], "warm": [], "eager": [], "eager_step": []}

            def first(kind, engine, cache):
                env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=cache)
                run = subprocess.run([sys.executable, __file__, "--child", name, case, engine], env=env, text=True, capture_output=True, timeout=900)
                answer = json.loads(run.stdout.strip().splitlines()[-1])
                found[kind].append(answer["seconds"])
                return answer

            try:
                for _ in range(rounds):
                    with tempfile.TemporaryDirectory() as cache:
                        first("cold", "fusebox", cache)
                        first("warm", "fusebox", cache)
                        found["eager_step"].append(first("eager", "eager", cache)["step"])
                row.update({kind: statistics.median(values) for kind, values in found.items()})
                row["ratio"] = row["cold"] / row["warm"]
                row["eager_steps"] = row["warm"] / row["eager_step"]
            except (IndexError, ValueError) as error:
                row["error"] = f"{type(error).__name__}: {error}"
            rows.append(row)
            print("warm", row, flush=True)
    return rows


def _small_transformer(layers):
    from models.zoo import _transformer
    return _transformer("GPT2LMHeadModel", "GPT2Config", n_layer=layers, n_head=4, n_embd=128, vocab_size=1000)


def depth(rounds):
    """Seconds that compiling takes for 4 and for 48 equal layers, without a cache; medians."""
    rows = []
    for case in ("inference-float32", "training-float32"):
        found = {4: [], 48: []}
        row = {"case": case}
        try:
            for _ in range(rounds):
                for layers, times in found.items():
                    env = dict(os.environ, TORCHINDUCTOR_FORCE_DISABLE_CACHES="1")
                    run = subprocess.run([sys.executable, __file__, "--child", f"layers-{layers}", case, "fusebox"], env=env, text=True, capture_output=True, timeout=900)
                    answer = json.loads(run.stdout.strip().splitlines()[-1])
                    times.append(answer["seconds"] - answer["step"])
            row.update({str(layers): statistics.median(times) for layers, times in found.items()})
            row["ratio"] = row["48"] / row["4"]
        except (IndexError, ValueError):
            row["error"] = run.stderr.strip().splitlines()[-1:] or [str(run.returncode)]
        rows.append(row)
        print("depth", row, flush=True)
    return rows


def steady_child(name, case, engine):
    """Runs in a process of its own, so that no engine meets the other's hooks and memory. For every line that it reads, it
    steps for a short while and answers with the seconds of each step."""
    step = make_step(name, case, engine)
    for _ in range(3):
        step()
    time.sleep(1.0)  # the optimised tier compiles in the background
    step()
    print(json.dumps([]), flush=True)
    for _ in sys.stdin:
        times, stop = [], time.perf_counter() + 0.05
        while not times or time.perf_counter() < stop:
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        print(json.dumps(times), flush=True)


def take_turns(children, seconds):
    """Median seconds a step of each engine, measured in turns."""
    def answer(child):
        for line in child.stdout:
            if line.startswith("["):
                return json.loads(line)
        raise RuntimeError(f"a process ended with {child.wait()}")

    times = {engine: answer(child) for engine, child in children.items()}
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop:
        for engine, child in children.items():
            child.stdin.write("go\n")
            child.stdin.flush()
            times[engine] += answer(child)
    return {engine: statistics.median(values) for engine, values in times.items()}


def steady(names, cases, engines=("eager", "stock", "fusebox")):
    rows = []
    for name in names:
        for case in cases if name not in CHAINS else cases[:1]:
            row = {"model": name, "case": case}
            children = {engine: subprocess.Popen([sys.executable, __file__, "--steady-child", name, case, engine], text=True,
                                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                        for engine in engines}
            try:
                row.update(take_turns(children, 12.0))
                row["ratio"] = row["stock"] / row["fusebox"]
                row["eager_ratio"] = row["eager"] / row["fusebox"]
            except (RuntimeError, OSError, statistics.StatisticsError) as error:
                row["error"] = f"{type(error).__name__}: {error}"[:300]
            for child in children.values():
                child.stdin.close()
                child.wait()
            rows.append(row)
            print("steady", row, flush=True)
    return rows


def per_call(f, *args, calls=2000):
    for _ in range(200):
        f(*args)
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(calls):
            f(*args)
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def dispatch():
    """Cost of one call when the kernel does next to nothing: guard check, dispatch, launch. Microseconds."""
    import torch
    from torch import nn

    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.LayerNorm(8) for _ in range(24)])

        def forward(self, x):
            for layer in self.layers:
                x = x + layer.weight * layer.bias
            return x

    rows = []
    with torch.no_grad():
        x = torch.randn(8)
        for label, target in (("one function", lambda a: a * 2 + 1), ("24 modules, 48 parameters", Deep().eval())):
            row = {"what": label, "eager": per_call(target, x, calls=300) * 1e6}
            for engine in ("stock", "fusebox"):
                row[engine] = per_call(compiler(engine)(copy.deepcopy(target)), x) * 1e6
            row["ratio"] = row["stock"] / row["fusebox"]
            rows.append(row)
            print("dispatch", row, flush=True)
    return rows


def recorder(names):
    """Steady-state cost of recording, as a fraction: the same step with and without a recorder, in turns. A session's start
    (static tables, the first pages) is not steady state: recording settles before it is timed."""
    import fusebox
    rows = []
    for name in names:
        step = make_step(name, CASES[0], "fusebox")
        step()
        time.sleep(0.5)

        def turn(seconds=1.0):
            calls, start = 0, time.perf_counter()
            while time.perf_counter() - start < seconds:
                step()
                calls += 1
            return (time.perf_counter() - start) / calls

        plain, recorded = [], []
        with tempfile.TemporaryDirectory() as folder:
            for number in range(15):
                turn(0.2)
                plain.append(turn())
                with fusebox.record(os.path.join(folder, f"{number}.fusebox")):
                    turn(0.5)
                    recorded.append(turn())
        row = {"model": name, "plain": statistics.median(plain), "recorded": statistics.median(recorded)}
        row["overhead"] = row["recorded"] / row["plain"] - 1
        rows.append(row)
        print("recorder", row, flush=True)
    return rows


def machine():
    import torch
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    return {"date": datetime.date.today().isoformat(), "cpu": cpu, "cores": os.cpu_count(), "torch": torch.__version__,
            "python": platform.python_version(), "threads": torch.get_num_threads()}


def main():
    from models.zoo import MODELS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["cold", "steady", "dispatch", "recorder"])
    parser.add_argument("--models", nargs="*", default=[*CHAINS, *MODELS])
    parser.add_argument("--cases", nargs="*", default=CASES)
    parser.add_argument("--rounds", type=int, default=3, help="of warm and depth")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    result = {"machine": machine()}
    if "dispatch" in options.what:
        result["dispatch"] = dispatch()
    if "recorder" in options.what:
        result["recorder"] = recorder([m for m in ("resnet18", "gpt2") if m in options.models] or options.models[:1])
    if "steady" in options.what:
        result["steady"] = steady(options.models, options.cases)
        rows = [r for r in result["steady"] if r.get("ratio") and r["case"].startswith("inference") and r["model"] not in CHAINS]
        result["steady_inference_geomean"] = geomean([r["ratio"] for r in rows])
    if "cold" in options.what:
        result["cold"] = cold([m for m in options.models if m not in list(CHAINS)[1:]], options.cases)
        result["cold_geomean"] = geomean([r.get("ratio") for r in result["cold"]])
    if "warm" in options.what:
        result["warm"] = warm([m for m in options.models if m not in list(CHAINS)[1:]], options.cases, options.rounds)
        result["warm_geomean"] = geomean([r.get("ratio") for r in result["warm"]])
        result["warm_eager_steps_geomean"] = geomean([r.get("eager_steps") for r in result["warm"]])
    if "depth" in options.what:
        result["depth"] = depth(options.rounds)
    print(json.dumps({k: v for k, v in result.items() if not isinstance(v, list)}, indent=1))
    if options.output:
        with open(options.output, "w") as f:
            json.dump(result, f, indent=1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        cold_child(*sys.argv[2:5])
    elif sys.argv[1:2] == ["--steady-child"]:
        steady_child(*sys.argv[2:5])
    else:
        main()

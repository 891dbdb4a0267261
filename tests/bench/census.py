"""Programs that nobody here chose, at real widths: every architecture of transformers (two layers of each) and one model of each family of timm,
as training steps and inference under bfloat16 autocast on a CUDA device (float32 on a CPU), beside eager and (--stock) the stock compiler.

    PYTHONPATH=build/release/python:tests python tests/bench/census.py [--device cuda] [--jobs 14] [--seconds 540] [--only NAME…]
        [--sample 40 [--seed 0]] [--forms train infer] [--stock] [--json FILE]

One line each, those that gain least first: device time and wall time of a step, eager (stock) / Fusebox, graphs, breaks, and the kernels that take longest
where little is gained. As many as there are jobs warm up beside each other; then they are timed one at a time. It is there to find what deserves a look.
"""

import argparse
import concurrent.futures
import contextlib
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
BATCH, LENGTH, IMAGES = 8, 512, 64  # of a GPU; a CPU has fewer and shorter ones


def timm_names():
    """One model of each family: the first of at most 40 million parameters."""
    import timm
    import torch

    chosen = []
    for family in timm.list_modules():
        for name in timm.list_models(module=family):
            with torch.device("meta"), contextlib.suppress(Exception):
                if sum(p.numel() for p in timm.create_model(name).parameters()) < 4e7:
                    chosen.append("timm." + name)
                    break
    return chosen


def transformers_names():
    from transformers import CONFIG_MAPPING

    return sorted(CONFIG_MAPPING.keys())


def build(name, device):
    """(model, keyword arguments of a call)"""
    import torch
    from models import architectures

    batch, most, images = (BATCH, LENGTH, IMAGES) if device == "cuda" else (BATCH // 4, LENGTH // 4, IMAGES // 16)
    if name.startswith("timm."):
        import timm

        model = timm.create_model(name[5:])
        size = model.default_cfg["input_size"][-1] if hasattr(model, "default_cfg") else 224
        return model, {"x": torch.randn(images, 3, size, size)}
    problem = None
    for sizes, cache in ((architectures.LAYERS, True), (architectures.LAYERS, False)):
        try:
            model = architectures.make_model(name, sizes, cache)
            text = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
            length = min(most, (getattr(text, "max_position_embeddings", None) or LENGTH) // 2)
            return model, architectures.labelled(model, architectures.inputs_of(model, batch, length))
        except ValueError as error:
            problem = error
    raise problem


def device_ms(step):
    """(milliseconds of all kernels of a step, [(kernel, milliseconds, launches)], longest first)"""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    rows = sorted(profile.key_averages(), key=lambda row: -row.self_device_time_total)
    return sum(row.self_device_time_total for row in rows) / 1e3, [(row.key[:70], round(row.self_device_time_total / 1e3, 3), row.count) for row in rows[:24]]


def wall_ms(step, wait):
    times = []
    for _ in range(7):
        start = time.perf_counter()
        step()
        wait()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


COUNTED = ("graphs", "graph_breaks", "recompiles", "eager_runs", "kernels", "extern_calls")


def compiled_by(engine, model):
    """(the compiled model, what the engine counts from here on)"""
    if engine == "stock":
        import torch

        torch._dynamo.reset()
        return torch.compile(model), dict
    import fusebox

    fusebox.reset()
    before = fusebox.counters()
    return fusebox.compile(model), lambda: {key: count - before[key] for key, count in fusebox.counters().items() if key in COUNTED}


def measure(name, form, engine, device):
    """Warms up, waits for a line of standard input, times. Returns the columns of a row."""
    import torch
    from models.zoo import loss_of

    torch.manual_seed(0)
    model, inputs = build(name, device)
    compiled, counted = compiled_by(engine, model)
    parameters = list(model.parameters())
    narrow = torch.autocast(device, torch.bfloat16, enabled=device == "cuda")
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    row = {}

    def step(called):
        if form != "train":
            with torch.no_grad(), narrow:
                return called(**inputs)
        for parameter in parameters:
            parameter.grad = None
        with narrow:
            loss = loss_of(called(**inputs))
        loss.backward()

    eager, fast = lambda: step(model), lambda: step(compiled)
    with contextlib.redirect_stdout(sys.stderr):
        model.to(device).train(form == "train")
        inputs = {k: v.to(device) for k, v in inputs.items()}
        for _ in range(2):
            eager()
        wait()
        try:
            start = time.perf_counter()
            fast()
            wait()
            row[engine + "_first_s"] = round(time.perf_counter() - start, 2)
            for _ in range(3):
                fast()
            wait()
        except Exception as problem:
            return {engine + "_wrong": f"{type(problem).__name__}: {problem}"[:300]}
    row |= counted()
    if device == "cuda":
        torch.cuda.empty_cache()
    print("READY", flush=True)
    sys.stdin.readline()
    for which, run in ((engine, fast),) if engine == "stock" else (("eager", eager), (engine, fast)):
        run()
        row[which + "_wall_ms"] = wall_ms(run, wait)
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
            row[which + "_device_ms"], row[which + "_kernels"] = device_ms(run)
            row[which + "_peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
    return row


def work(options):
    warnings.simplefilter("ignore")
    for line in iter(sys.stdin.readline, ""):
        name, form, engine = line.split()
        try:
            row = measure(name, form, engine, options.device)
        except Exception as problem:
            row = {engine + "_failed": f"{type(problem).__name__}: {problem}"[:300]}
        print("ANSWER " + json.dumps({"name": name, "form": form} | row), flush=True)
        if "CUDA error" in str(row):
            return
        import torch

        gc.collect()
        if options.device == "cuda":
            torch.cuda.empty_cache()


class Child:
    """A process that measures one program after the other."""

    def __init__(self, options):
        self.options, self.process = options, None

    def send(self, line):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen([sys.executable, __file__, "--work", "--device", self.options.device], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def hear(self):
        """Its next word of us; None if it died or took longer than the limit."""
        watch = threading.Timer(self.options.limit, self.process.kill)
        watch.start()
        line = next((line for line in self.process.stdout if line.startswith(("READY", "ANSWER "))), None)
        watch.cancel()
        return line

    def end(self):
        if self.process:
            self.process.kill()


def run_all(options):
    names = options.only or transformers_names() + timm_names()
    if options.sample:
        names = random.Random(options.seed).sample(names, options.sample)
    engines = ("stock", "ours") if options.stock else ("ours",)
    todo, rows = [(name, form, engine) for form in options.forms for name in names for engine in engines], {}
    end = time.monotonic() + options.seconds
    children = [Child(options) for _ in range(options.jobs)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        while todo and time.monotonic() < end:
            batch, todo = todo[: options.jobs], todo[options.jobs :]
            for child, program in zip(children, batch):
                child.send(" ".join(program))
            said = list(pool.map(Child.hear, children[: len(batch)]))
            for child, (name, form, engine), line in zip(children, batch, said):
                if line and line.startswith("READY"):
                    child.send("go")
                    line = child.hear()
                answer = json.loads(line[7:]) if line else {"name": name, "form": form, engine + "_failed": "died, or took too long"}
                rows.setdefault((name, form), {}).update(answer)
    for child in children:
        child.end()
    return list(rows.values()), len(todo)


def gain(row, what, beside):
    """How many times less of `what` we take than `beside` (stock or eager); None where it was not measured."""
    return row[f"{beside}_{what}"] / max(row[f"ours_{what}"], 1e-6) if f"{beside}_{what}" in row and f"ours_{what}" in row else None


def tell(rows, left, beside, device):
    for row in rows:
        for how in ("stock_failed", "stock_wrong", "ours_failed", "ours_wrong"):
            if how in row:
                print(how, row["name"], row["form"], row[how].splitlines()[0])
    measured = ("device_ms", "wall_ms", "peak_gib") if device == "cuda" else ("wall_ms",)
    ran = sorted((row for row in rows if gain(row, measured[0], beside)), key=lambda row: gain(row, measured[0], beside))
    for row in ran:
        columns = [" ".join([what, *(f"{row[key]:7.2f}" for engine in ("eager", "stock", "ours") if (key := f"{engine}_{what}") in row)])
                   for what in (*measured, "first_s")]
        gains = " ".join(f"{gain(row, what, beside):5.2f}" for what in measured)
        print(f"{gains} {row['name']:32} {row['form']:5} {'  '.join(columns)}  {[row[k] for k in COUNTED]}")
        if gain(row, measured[0], beside) < 1.05 and device == "cuda":
            print("\n".join(f"        {engine} {row[engine + '_kernels'][:4]}" for engine in ("ours", beside)))
    for what in measured:
        gains = [gain(row, what, beside) for row in ran]
        if gains:
            print(f"{what}: {beside} / ours geomean {statistics.geometric_mean(gains):.2f}, least {min(gains):.2f}")
    print(f"{len(ran)} compared, {len(rows) - len(ran)} not, {left} left")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--sample", type=int, help="so many, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stock", action="store_true", help="beside the stock compiler, which is run in processes of its own")
    parser.add_argument("--forms", nargs="*", default=["train", "infer"])
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=1e9, help="no new program after that")
    parser.add_argument("--limit", type=float, default=100, help="seconds that a program may take to warm up, and to be timed")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--json")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options)
    rows, left = run_all(options)
    tell(rows, left, "stock" if options.stock else "eager", options.device)
    if options.json:
        with open(options.json, "w") as out:
            json.dump(rows, out, indent=1)


if __name__ == "__main__":
    main()

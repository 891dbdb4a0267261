"""Programs that nobody here chose, at real widths: every architecture of transformers (two layers of each) and one model of each family of timm,
as training steps and inference under bfloat16 autocast on a CUDA device, beside eager.

    PYTHONPATH=build/release/python:tests python tests/bench/census.py [--jobs 14] [--seconds 540] [--only NAME…] [--forms train infer] [--json FILE]

One line each, those that gain least first: device time and wall time of a step, eager / Fusebox, graphs, breaks, and the kernels that take longest where
little is gained. Programs compile beside each other and are timed one at a time. It is there to find what deserves a look; `fields.py` and
`tests/gpu/bench_models.py` measure beside the stock compiler.
"""

import argparse
import contextlib
import fcntl
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
BATCH, LENGTH, IMAGES = 8, 512, 64


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


def build(name):
    """(model, keyword arguments by form)"""
    import torch
    from models import architectures

    if name.startswith("timm."):
        import timm

        model = timm.create_model(name[5:])
        size = model.default_cfg["input_size"][-1] if hasattr(model, "default_cfg") else 224
        return model, {"x": torch.randn(IMAGES, 3, size, size)}
    problem = None
    for sizes, cache in ((architectures.LAYERS, True), (architectures.LAYERS, False)):
        try:
            model = architectures.make_model(name, sizes, cache)
            text = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
            length = min(LENGTH, (getattr(text, "max_position_embeddings", None) or LENGTH) // 2)
            return model, architectures.labelled(model, architectures.inputs_of(model, BATCH, length))
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


def wall_ms(step):
    import torch

    times = []
    for _ in range(7):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


class Device:
    """Programs warm up beside each other; one that is timed is alone on the device. Who waits for that keeps newcomers out."""

    def __init__(self, folder):
        self.entrance, self.room = (os.path.join(folder, name) for name in ("entrance", "room"))

    @contextlib.contextmanager
    def held(self, how):
        with open(self.entrance, "w") as entrance, open(self.room, "w") as room:
            fcntl.flock(entrance, fcntl.LOCK_EX)
            fcntl.flock(room, how)
            fcntl.flock(entrance, fcntl.LOCK_UN)
            yield

    def shared(self):
        return self.held(fcntl.LOCK_SH)

    def alone(self):
        return self.held(fcntl.LOCK_EX)


COUNTED = ("graphs", "graph_breaks", "recompiles", "eager_runs", "kernels", "extern_calls")


def measure(name, form, device):
    import torch
    from models.zoo import loss_of

    import fusebox

    torch.manual_seed(0)
    model, inputs = build(name)
    fusebox.reset()
    before = fusebox.counters()
    compiled = fusebox.compile(model)
    parameters = list(model.parameters())
    row = {}

    def step(called):
        if form != "train":
            with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
                return called(**inputs)
        for parameter in parameters:
            parameter.grad = None
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(called(**inputs))
        loss.backward()

    eager, ours = lambda: step(model), lambda: step(compiled)
    with device.shared(), contextlib.redirect_stdout(sys.stderr):
        model.cuda().train(form == "train")
        inputs = {k: v.cuda() for k, v in inputs.items()}
        for _ in range(2):
            eager()
        torch.cuda.synchronize()
        try:
            start = time.perf_counter()
            ours()
            torch.cuda.synchronize()
            row["first_s"] = round(time.perf_counter() - start, 2)
            for _ in range(3):
                ours()
            torch.cuda.synchronize()
        except Exception as problem:
            return {"wrong": f"{type(problem).__name__}: {problem}"[:300]}
    counters = fusebox.counters()
    row |= {key: counters[key] - before[key] for key in COUNTED}
    torch.cuda.empty_cache()
    with device.alone():
        for which, run in (("eager", eager), ("ours", ours)):
            run()
            row[which + "_wall_ms"] = wall_ms(run)
            torch.cuda.reset_peak_memory_stats()
            row[which + "_device_ms"], row[which + "_kernels"] = device_ms(run)
            row[which + "_peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
    return row


def work(options):
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        name, form = line.split()
        try:
            row = measure(name, form, Device(options.work))
        except Exception as problem:
            row = {"failed": f"{type(problem).__name__}: {problem}"[:300]}
        print("ANSWER " + json.dumps({"name": name, "form": form} | row), flush=True)
        if "CUDA error" in str(row):
            return
        import torch

        gc.collect()
        torch.cuda.empty_cache()


def run_all(options):
    names = options.only or transformers_names() + timm_names()
    todo, rows, guard = [(name, form) for form in options.forms for name in names][::-1], [], threading.Lock()
    end = time.monotonic() + options.seconds
    folder = tempfile.TemporaryDirectory()

    def serve():
        child = None
        while True:
            with guard:
                if not todo or time.monotonic() > end:
                    break
                name, form = todo.pop()
            if child is None or child.poll() is not None:
                child = subprocess.Popen([sys.executable, __file__, "--work", folder.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            child.stdin.write(f"{name} {form}\n")
            child.stdin.flush()
            watch = threading.Timer(options.limit, child.kill)
            watch.start()
            line = next((line for line in child.stdout if line.startswith("ANSWER ")), None)
            watch.cancel()
            with guard:
                rows.append(json.loads(line[7:]) if line else {"name": name, "form": form, "failed": "died, or took too long"})
            if not line:
                child = None
        if child:
            child.kill()

    threads = [threading.Thread(target=serve) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return rows, len(todo)


def tell(rows, left):
    ran = sorted((row for row in rows if "ours_wall_ms" in row), key=lambda row: row["eager_device_ms"] / max(row["ours_device_ms"], 1e-6))
    for row in rows:
        for how in ("failed", "wrong"):
            if how in row:
                print(how, row["name"], row["form"], row[how].splitlines()[0])
    for row in ran:
        ratio, wall = row["eager_device_ms"] / max(row["ours_device_ms"], 1e-6), row["eager_wall_ms"] / row["ours_wall_ms"]
        print(f"{ratio:5.2f} {wall:5.2f} {row['name']:32} {row['form']:5} device {row['eager_device_ms']:8.2f} {row['ours_device_ms']:8.2f} wall {row['eager_wall_ms']:8.2f} {row['ours_wall_ms']:8.2f} "
              f"peak {row['eager_peak_gib']:5.2f} {row['ours_peak_gib']:5.2f} first {row['first_s']:5.1f} s  {[row[k] for k in COUNTED]}"
              + (f"\n        ours {row['ours_kernels'][:4]}\n        eager {row['eager_kernels'][:4]}" if ratio < 1.05 else ""))
    print(f"{len(ran)} ran, {len(rows) - len(ran)} failed, {left} left")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--forms", nargs="*", default=["train", "infer"])
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=1e9, help="no new program after that")
    parser.add_argument("--limit", type=float, default=100, help="seconds a program may take")
    parser.add_argument("--json")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options)
    rows, left = run_all(options)
    tell(rows, left)
    if options.json:
        with open(options.json, "w") as out:
            json.dump(rows, out, indent=1)


if __name__ == "__main__":
    main()

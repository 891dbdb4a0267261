"""Programs of real size (real_programs.py) on a CUDA device: Fusebox beside the stock torch.compile and eager, and the first call of each.

    python tests/gpu/bench_models.py [--programs gpt2_train …] [--modes default reduce-overhead] [--json results.json]

Every engine runs in a process of its own with empty caches; the cold ratio is of the first call in the first mode, imports and model
building apart. A step ends with a synchronisation; medians, one process at a time. Ratios are stock / Fusebox: above 1, Fusebox is
faster. The first step's loss is compared with eager's (random numbers differ where there is dropout).
"""

import argparse
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench"))
from measured_child import Child, geomean  # noqa: E402

os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Measured in the default mode and these; the others of real_programs.py in the default mode only.
MODES = {"llama_decode": ["reduce-overhead"], "gpt2_train": ["reduce-overhead"], "resnet50_train": ["reduce-overhead"]}


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


def kernels_of(step, count):
    """The kernels that take the most time in one step: [(name, milliseconds, launches)]."""
    import torch
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    rows = sorted(profile.key_averages(), key=lambda row: -row.self_device_time_total)[:count]
    return [(row.key[:60], round(row.self_device_time_total / 1e3, 3), row.count) for row in rows]


def child(name, engine, modes, seconds, kernels):
    """Compiles everything first, says READY, and times when told to: so that nobody else uses the device meanwhile."""
    import torch
    from real_programs import PROGRAMS
    target, step_of = PROGRAMS[name]("cuda", False)
    if engine == "fusebox":
        import fusebox
        compiler = fusebox.compile
    else:
        import torch._dynamo
        compiler = torch.compile
    eager = step_of(target)
    torch.manual_seed(3)
    want = eager().item()
    result, steps = {}, {}
    for mode in modes:
        steps[mode] = step_of(compiler(target) if mode == "default" else compiler(target, mode=mode))
        torch.cuda.synchronize()
        torch.manual_seed(3)
        start = time.perf_counter()
        got = steps[mode]().item()
        result[mode] = {"first_s": time.perf_counter() - start, "loss_error": abs(got - want) / max(1e-6, abs(want))}
        for _ in range(3):
            steps[mode]()
        torch.cuda.synchronize()
    torch.cuda.empty_cache()
    if engine == "fusebox":
        counters = fusebox.counters()
        result["counters"] = {key: counters[key] for key in ("graphs", "graph_breaks", "recompiles", "eager_runs", "kernels", "extern_calls")}
    print("READY", flush=True)
    sys.stdin.readline()
    if engine == "fusebox":
        result["eager_ms"] = median_ms(eager, seconds)
    for mode, step in steps.items():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        result[mode]["ms"] = median_ms(step, seconds)
        result[mode]["peak_gib"] = (torch.cuda.max_memory_allocated() - before) / 2**30
        if kernels:
            result[mode]["top"] = kernels_of(step, kernels)
    print("RESULT " + json.dumps(result), flush=True)


def report(row):
    """Adds the ratios; returns the row as text."""
    parts = [f"{row['program']}: eager {row.get('fusebox', {}).get('eager_ms', float('nan')):.2f} ms {row.get('fusebox', {}).get('counters', '')}"]
    for mode in row["modes"]:
        both = [row.get(engine, {}).get(mode) for engine in ("stock", "fusebox")]
        if all(both):
            row[mode + "_ratio"] = both[0]["ms"] / both[1]["ms"]
            if all(made["peak_gib"] for made in both):  # a recording allocates nothing while it runs
                row[mode + "_memory"] = both[1]["peak_gib"] / both[0]["peak_gib"]
        for engine, made in zip(("stock", "fusebox"), both):
            if made:
                parts.append(f"{engine} {mode} {made['ms']:.2f} ms (first {made['first_s']:.2f} s, {made['peak_gib']:.2f} GiB, loss error {made['loss_error']:.0e})")
                parts += [f"    {ms:8.3f} ms {count:4d}× {name}" for name, ms, count in made.get("top", [])]
    firsts = [row.get(engine, {}).get(row["modes"][0], {}).get("first_s") for engine in ("stock", "fusebox")]
    if all(firsts):
        row["cold_ratio"] = firsts[0] / firsts[1]
    parts += [f"{engine}: {row[engine]['error']}" for engine in ("stock", "fusebox") if "error" in row.get(engine, {})]
    return "\n    ".join(parts)


def conclude(rows, options):
    """Prints what the rows say together; writes all that is known so far, since a run may be cut off."""
    def of(suffix):
        return [row[mode + suffix] for row in rows for mode in row["modes"] if mode + suffix in row]
    steady, cold = of("_ratio"), [row["cold_ratio"] for row in rows if "cold_ratio" in row]
    made = {"steady_geomean": geomean(steady), "steady_least": min(steady, default=None), "cold_geomean": geomean(cold), "memory_geomean": geomean(of("_memory"))}
    print("; ".join(f"{name} {value:.3f}" for name, value in made.items() if value is not None), flush=True)
    if options.json:
        import torch
        with open(options.json, "w") as out:
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "compiled_together": options.together, "rows": rows} | made, out, indent=1)


def main():
    from real_programs import PROGRAMS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--modes", nargs="*", help="instead of the default mode and those of MODES")
    parser.add_argument("--engines", nargs="*", default=["stock", "fusebox"])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--together", type=int, default=1, help="so many programs compile at once (first calls are slower then)")
    parser.add_argument("--kernels", type=int, default=0, help="tells so many of the longest kernels of a step")
    parser.add_argument("--json")
    parser.add_argument("--child", nargs=2)
    options = parser.parse_args()
    if options.child:
        child(*options.child, options.modes, options.seconds, options.kernels)
        return
    rows = []
    for first in range(0, len(options.programs), options.together):
        names = options.programs[first:first + options.together]
        modes = {name: options.modes or ["default"] + MODES.get(name, []) for name in names}
        children = {(name, engine): Child(__file__, "--child", name, engine, "--modes", *modes[name], "--seconds", options.seconds, "--kernels", options.kernels) for name in names for engine in options.engines}
        for each in children.values():
            each.ready()
        for name in names:
            rows.append({"program": name, "modes": modes[name]} | {engine: children[name, engine].result() for engine in options.engines})
            print(report(rows[-1]), flush=True)
        conclude(rows, options)


if __name__ == "__main__":
    main()

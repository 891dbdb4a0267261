"""Programs in processes of their own, Fusebox beside the stock compiler and eager: the command line of the benches of programs.

A builder takes a function that chooses between a size for a GPU and one for a CPU, and returns a function or module and its arguments.
"""

import argparse
import json
import platform
import sys
import time

import torch
import torch.nn as nn

from measured_child import geomean, measured
from measured_step import apart, median_ms, step_of, synchronise


class Mixed(nn.Module):
    """A module under bfloat16 autocast."""

    def __init__(self, net, loss=None):
        super().__init__()
        self.net, self.loss = net, loss

    def forward(self, x, *rest):
        with torch.autocast(x.device.type, torch.bfloat16):
            return self.net(x, *rest) if self.loss is None else self.loss(self.net(x), *rest)


def layers(*sizes, act=nn.ReLU):
    return nn.Sequential(*(m for i, o in zip(sizes, sizes[1:]) for m in (nn.Linear(i, o), act())))[:-1]


def moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.detach().to(device).requires_grad_(value.requires_grad)
    return [moved(part, device) for part in value]


def child(programs, name, engine, device, mode, seconds):
    build, train = programs[name]
    torch.manual_seed(0)
    target, *args = build((lambda big, small: big) if device == "cuda" else (lambda big, small: small))
    args = moved(args, device)
    if isinstance(target, nn.Module):
        target = target.to(device)
    if engine == "fusebox":
        import fusebox
        compiler = fusebox.compile
    else:
        compiler = torch.compile
    eager, step = step_of(target, args, train), step_of(compiler(target, mode=mode), args, train)
    torch.manual_seed(1)
    want = [t.clone() for t in eager()]
    torch.manual_seed(1)
    synchronise(device)
    start = time.perf_counter()
    got = [t.clone() for t in step()]
    synchronise(device)
    result = {"first_s": time.perf_counter() - start, "error": apart(got, want)}
    for _ in range(3):
        step()
    synchronise(device)
    if engine == "fusebox":
        counters = fusebox.counters()
        result["counters"] = {key: counters[key] for key in ("graphs", "graph_breaks", "recompiles", "eager_runs", "kernels", "extern_calls")}
    print("READY", flush=True)
    sys.stdin.readline()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    result["ms"] = median_ms(step, device, seconds)
    if device == "cuda":
        result["peak_gib"] = (torch.cuda.max_memory_allocated() - before) / 2**30
    if engine == "fusebox":
        result["eager_ms"] = median_ms(eager, device, seconds)
    print("RESULT " + json.dumps(result), flush=True)


def report(row):
    """The row as text; adds `ratio`, `cold_ratio` and `peak_ratio`."""
    stock, ours = row["stock"], row["fusebox"]
    if "ms" in stock and "ms" in ours:
        row["ratio"], row["cold_ratio"] = stock["ms"] / ours["ms"], stock["first_s"] / ours["first_s"]
        if stock.get("peak_gib") and ours.get("peak_gib"):
            row["peak_ratio"] = stock["peak_gib"] / ours["peak_gib"]
    return f"{row.get('ratio', float('nan')):6.2f}  {row['program']:28}" + "".join(
        f"  {engine} " + (f"{made['ms']:.3f} ms ({made['first_s']:.1f} s, error {made['error']:.0e}{', %.2f GiB' % made['peak_gib'] if 'peak_gib' in made else ''})" if "ms" in made else str(made["error"]))
        for engine, made in (("stock", stock), ("fusebox", ours))) + (f"  eager {ours['eager_ms']:.3f} ms  {list(ours['counters'].values())}" if "eager_ms" in ours else "")


def main(script, programs, description):
    """Measures `programs`, {name: (builder, whether it trains)}, of this script."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--mode", default="default")
    parser.add_argument("--programs", nargs="*", default=list(programs))
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--together", type=int, default=1, help="so many programs compile at once (first calls are slower then)")
    parser.add_argument("--json")
    parser.add_argument("--child", nargs=2)
    options = parser.parse_args()
    if options.child:
        child(programs, *options.child, options.device, options.mode, options.seconds)
        return
    rows = []
    for name, made in measured(script, options.programs, ("stock", "fusebox"), options.together, "--device", options.device, "--mode", options.mode, "--seconds", options.seconds):
        rows.append({"program": name} | made)
        print(report(rows[-1]), flush=True)
    summary = {key + "_geomean": geomean([row[key] for row in rows if key in row]) for key in ("ratio", "cold_ratio", "peak_ratio")}
    summary["ratio_least"] = min((row["ratio"] for row in rows if "ratio" in row), default=None)
    print(summary)
    if options.json:
        device = torch.cuda.get_device_name() if options.device == "cuda" else platform.processor() or platform.machine()
        with open(options.json, "w") as out:
            json.dump({"device": device, "mode": options.mode, "torch": torch.__version__, "compiled_together": options.together, "rows": rows} | summary, out, indent=1)

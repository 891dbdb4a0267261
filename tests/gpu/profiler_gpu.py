"""What a session knows of a GPU: every kernel tied to who asked for it, torch.profiler unharmed, and what recording costs.

    profiler_gpu.py [--out FOLDER] [--json FILE] [--no-overhead]

Sessions of small runs under all three engines are left in FOLDER. Exit code 77, with the reason, without a CUDA device.
"""

import argparse
import json
import os
import pathlib
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
from torch import nn

import fusebox
from gpt2 import GPT2

HERE = pathlib.Path(__file__).resolve().parent
FAILED = []

# Run under `python -m fusebox.host` by each engine: a training step with a part that no graph holds.
SCRIPT = '''
import torch
from torch import nn
import torch.nn.functional as F

class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(512)
        self.up = nn.Linear(512, 2048)
        self.down = nn.Linear(2048, 512)

    def forward(self, x):
        h = self.norm(x)
        h = F.gelu(self.up(h))
        return torch.softmax(self.down(h) + x, -1)

torch.manual_seed(0)
model = Small().cuda()
step = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
x = torch.randn(4096, 512, device="cuda")
for i in range(4):
    loss = step(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"{i} {loss.item():.5f}")
'''


def check(what, ok, detail=""):
    print(f"{'ok  ' if ok else 'FAIL'} {what} {detail}", flush=True)
    if not ok:
        FAILED.append(what)


class Session:
    def __init__(self, path):
        self.path = path
        self.db = sqlite3.connect(path)

    def one(self, sql):
        row = self.db.execute(sql).fetchone()
        return row[0] if row and len(row) == 1 else row

    def all(self, sql):
        return self.db.execute(sql).fetchall()

    def info(self, key):
        return self.one(f"SELECT value FROM session_info WHERE key = '{key}'")


def check_times(s, name):
    check(f"{name}: recorded", s.info("gpu_times") == "on", s.info("gpu_times"))
    events = s.one("SELECT count(*) FROM gpu_events")
    check(f"{name}: there are events", events >= 20, events)
    start, end = s.info("start_ns"), s.info("end_ns")
    check(f"{name}: all inside the session", s.one(f"SELECT count(*) FROM gpu_events WHERE start_ns < {start} OR end_ns > {end}") == 0)
    check(f"{name}: none began before it was asked for",
          s.one("SELECT count(*) FROM gpu_events WHERE graph IS NULL AND start_ns < called_ns") == 0)
    check(f"{name}: all have their call", s.one("SELECT count(*) FROM gpu_events WHERE called_ns IS NULL") == 0,
          s.all("SELECT name, count(*) FROM gpu_events WHERE called_ns IS NULL GROUP BY name LIMIT 5"))
    lost = [row for row in s.all("SELECT what, count, detail FROM losses") if row[0].startswith("gpu")]
    check(f"{name}: nothing lost", not lost, lost)
    check(f"{name}: registers and occupancy",
          s.one("SELECT count(*) FROM gpu_events WHERE kind = 'kernel' AND (registers IS NULL OR occupancy IS NULL)") == 0)
    check(f"{name}: device known", s.one("SELECT count(*) FROM gpu_devices WHERE peak_bytes_per_s > 1e11 AND copy_bytes_per_s > 1e11") >= 1,
          s.all("SELECT name, multiprocessors, peak_bytes_per_s, peak_flops, copy_bytes_per_s FROM gpu_devices LIMIT 1"))
    print("    flush", s.info("gpu_flush_ns"), "overhead", s.info("gpu_overhead_ns"), "records", s.info("gpu_records"))


def engine_sessions(out):
    script = pathlib.Path(out) / "train_small.py"
    script.write_text(SCRIPT)
    losses = {}
    for engine in ("fusebox", "stock", "eager"):
        path = str(pathlib.Path(out) / f"{engine}.fusebox")
        env = {**os.environ, "FUSEBOX_ENGINE": engine, "FUSEBOX_SESSION": path}
        if engine == "fusebox":
            env["FUSEBOX_CUPTI_TAP"] = str(pathlib.Path(out) / "fusebox.tap")
        done = subprocess.run([sys.executable, "-m", "fusebox.host", "train_small.py"], cwd=out, env=env, capture_output=True, text=True, timeout=300)
        check(f"{engine}: ran", done.returncode == 0, done.stderr[-800:])
        if done.returncode:
            continue
        losses[engine] = done.stdout
        s = Session(path)
        check_times(s, engine)
        by = s.all("SELECT kind, count(*), sum(dur_ns), count(launch_id), count(kernel_id), count(operator), count(line) FROM gpu_events GROUP BY kind")
        print("    kind, events, ns, of launches, of kernels, with operator, with line:", by)
        if engine == "fusebox":
            check("every launch of a generated kernel has the device's time",
                  s.one("SELECT count(*) FROM launches l JOIN kernels k USING(kernel_id) WHERE k.kind = 'generated' AND k.device LIKE 'cuda%' "
                        "AND l.device_ns IS NULL") == 0)
            check("there are such launches", s.one("SELECT count(*) FROM launches WHERE device_ns > 0") > 20)
            named = s.all("SELECT k.name, e.name FROM gpu_events e JOIN kernels k USING(kernel_id) WHERE k.kind = 'generated'")
            check("generated kernels are functions of ours", named and all(re.fullmatch(r"\w+_[0-9a-f]{8}(_\d+)?", e) for _, e in named), named[:3])
            print("    ", s.all("SELECT name, device_function, timed_launches, launches, total_ns, host_ns, registers, occupancy, read_bytes + write_bytes "
                                "FROM kernels WHERE timed_launches > 0 ORDER BY total_ns DESC LIMIT 8"))
        lines = s.one("SELECT count(*) FROM gpu_events WHERE kind = 'kernel' AND line IS NOT NULL")
        kernels = s.one("SELECT count(*) FROM gpu_events WHERE kind = 'kernel'")
        check(f"{engine}: most kernels have a line", lines > 0.6 * kernels or engine == "stock", f"{lines} of {kernels}")
        print("    ", s.all("SELECT operator, file, line, count(*), sum(dur_ns) FROM gpu_events GROUP BY 1, 2, 3 ORDER BY 5 DESC LIMIT 8"))
        print("     no line:", s.all("SELECT name, operator, count(*) FROM gpu_events WHERE line IS NULL GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 6"))
    return losses


def against_events(out):
    """The device's time of a large kernel against CUDA events around it."""
    path = str(pathlib.Path(out) / "large.fusebox")
    x, y = (torch.randn(1 << 26, device="cuda") for _ in range(2))
    f = fusebox.compile(lambda x, y: F.gelu(torch.sin(x) + torch.cos(y)) * x + 1)
    for _ in range(3):
        f(x, y)
    times = []
    with fusebox.record(path):
        for _ in range(20):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            f(x, y)
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) * 1e6)
    s = Session(path)
    check_times(s, "large")
    name, count, mean, low, high, moved = s.one("SELECT name, timed_launches, total_ns / timed_launches, min_ns, max_ns, read_bytes + write_bytes "
                                                "FROM kernels WHERE kind = 'generated'")
    events = statistics.median(times)
    check("device times agree with CUDA events", count == 20 and 0.85 * events < mean < 1.02 * events,
          f"{name}: {count} launches, mean {mean} ns, {low}..{high}; events {events:.0f} ns; {moved / mean:.0f} GB/s of "
          f"{s.one('SELECT copy_bytes_per_s FROM gpu_devices') / 1e9:.0f}")


def with_torch_profiler(out):
    """torch.profiler in the middle of a recording: both are complete, and the gap is said."""
    from torch.profiler import ProfilerActivity, profile

    path = str(pathlib.Path(out) / "aside.fusebox")
    x = torch.randn(1 << 16, device="cuda")
    f = fusebox.compile(lambda x: torch.tanh(x) * 2)
    f(x)
    with fusebox.record(path):
        for _ in range(10):
            f(x)
        for _ in range(2):
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
                for _ in range(7):
                    f(x)
                torch.cuda.synchronize()
            seen = [e for e in p.profiler.kineto_results.events() if e.device_type() == torch.autograd.DeviceType.CUDA and "Sync" not in e.name()]
            check("torch.profiler saw its kernels", len(seen) == 7, len(seen))
            for _ in range(13):
                f(x)
    s = Session(path)
    check("ours saw the others", s.one("SELECT count(*) FROM gpu_events WHERE kind = 'kernel'") == 36, s.one("SELECT count(*) FROM gpu_events WHERE kind = 'kernel'"))
    check("the gaps are said", s.one("SELECT count FROM losses WHERE what = 'gpu_gap'") == 2, s.all("SELECT * FROM losses"))
    check("and times are on our clock", s.one(f"SELECT count(*) FROM gpu_events WHERE start_ns < {s.info('start_ns')} OR end_ns > {s.info('end_ns')}") == 0)
    import torch.autograd.profiler as profiler
    check("torch.profiler has its own functions back", profiler._prepare_profiler.__module__ != "fusebox._gpu_recording")

    path = str(pathlib.Path(out) / "inside.fusebox")
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        with fusebox.record(path):
            for _ in range(5):
                f(x)
            torch.cuda.synchronize()
    s = Session(path)
    check("a recording inside torch.profiler leaves it alone", s.one("SELECT count(*) FROM gpu_events") == 0 and
          len([e for e in p.profiler.kineto_results.events() if e.device_type() == torch.autograd.DeviceType.CUDA]) >= 5)


def cuda_graph(out):
    """Kernels of a replayed CUDA graph: each a row, with its node."""
    path = str(pathlib.Path(out) / "graph.fusebox")
    x = torch.randn(1 << 16, device="cuda")
    f = fusebox.compile(lambda x: torch.tanh(x) * 2 + x.sum())
    f(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = f(x) + 1
    with fusebox.record(path):
        for _ in range(10):
            graph.replay()
        torch.cuda.synchronize()
    s = Session(path)
    rows = s.all("SELECT graph, graph_node, name, count(*) FROM gpu_events WHERE graph IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 2")
    check("replayed kernels carry their nodes", rows and all(r[3] == 10 for r in rows), rows)
    check("and their calls", s.one("SELECT count(*) FROM gpu_events WHERE called_ns IS NULL") == 0, s.all("SELECT kind, name, count(*) FROM cpu_events GROUP BY 1, 2"))


class Block(nn.Module):
    """With a step in the middle that no CUDA graph can hold: a copy to the host and back."""

    def __init__(self, width, around):
        super().__init__()
        self.up, self.down, self.around = nn.Linear(width, 2 * width), nn.Linear(2 * width, width), around

    def forward(self, x):
        h = F.gelu(self.up(x))
        if self.around:
            h = h.cpu().cuda() * 2
        return torch.softmax(self.down(h) + x, -1)


def recorded_graphs(out):
    """The engine's own CUDA graphs: every node of a replay is the kernel that the recording says."""
    path = str(pathlib.Path(out) / "trees.fusebox")
    torch.manual_seed(0)
    x = torch.randn(512, 256, device="cuda")
    torch.cuda.synchronize()
    with fusebox.record(path):
        for around in (False, True):
            model = Block(256, around).cuda()
            f = fusebox.compile(model, mode="reduce-overhead")
            for _ in range(12):
                f(x).sum().backward() if not around else f(x.detach())
        y = torch.randn(512, 256, device="cuda")
        for _ in range(3):
            f(y)  # an input that moved: recorded again
        torch.cuda.synchronize()
    s = Session(path)
    check_times(s, "CUDA graphs")
    print("    ", s.all("SELECT frame, direction, event, number, reason, nodes, stretches, plain_reason, replays, replay_ns FROM cuda_graphs"))
    replayed = s.one("SELECT count(*) FROM gpu_events WHERE graph IS NOT NULL")
    check("replays have events", replayed > 100, replayed)
    check("each is a node of its recording",
          s.one("SELECT count(*) FROM gpu_events WHERE graph IS NOT NULL AND (kernel_id IS NULL OR kernel_id NOT IN (SELECT kernel_id FROM cuda_graph_nodes))") == 0,
          s.all("SELECT name, graph, graph_node, kernel_id FROM gpu_events WHERE graph IS NOT NULL AND (kernel_id IS NULL OR kernel_id NOT IN "
                "(SELECT kernel_id FROM cuda_graph_nodes)) LIMIT 5"))
    check("and the same device function that the kernel runs plainly",
          s.one("SELECT count(*) FROM gpu_events r WHERE graph IS NOT NULL AND kind = 'kernel' AND name NOT IN "
                "(SELECT name FROM gpu_events p WHERE p.graph IS NULL AND p.kernel_id = r.kernel_id)") == 0,
          s.all("SELECT DISTINCT r.name, k.name FROM gpu_events r JOIN kernels k USING(kernel_id) WHERE graph IS NOT NULL AND r.kind = 'kernel' AND r.name NOT IN "
                "(SELECT name FROM gpu_events p WHERE p.graph IS NULL AND p.kernel_id = r.kernel_id) LIMIT 5"))
    check("replays have the device's time",
          s.one("SELECT count(*) FROM kernels WHERE kind = 'cuda_graph' AND launches > 0 AND coalesce(timed_launches, 0) <> launches") == 0,
          s.all("SELECT name, launches, timed_launches, total_ns FROM kernels WHERE kind = 'cuda_graph'"))
    pools = s.all("SELECT number, pool_bytes, kept_bytes FROM cuda_graphs WHERE event = 'recorded'")
    check("recordings say what their pool holds", pools and all(p[1] and p[1] > 0 for p in pools), pools)
    check("one recording has two pieces", s.one("SELECT count(DISTINCT stretch) FROM cuda_graph_nodes GROUP BY cuda_graph_id ORDER BY 1 DESC LIMIT 1") >= 2)


def counters(out):
    """Hardware counters round every kernel, against what the compiler says that its kernel moves."""
    path = str(pathlib.Path(out) / "counters.fusebox")
    x, y = (torch.randn(1 << 24, device="cuda") for _ in range(2))
    f = fusebox.compile(lambda x, y: F.gelu(torch.sin(x) + torch.cos(y)) * x + 1)
    a = torch.randn(2048, 2048, device="cuda")
    f(x, y), torch.softmax(a @ a, -1)
    torch.cuda.synchronize()
    os.environ["FUSEBOX_GPU_COUNTERS"] = "default"
    begin = time.perf_counter()
    try:
        with fusebox.record(path):
            for _ in range(10):
                f(x, y)
                torch.softmax(a @ a, -1)
    finally:
        del os.environ["FUSEBOX_GPU_COUNTERS"]
    s = Session(path)
    print("    ", s.info("gpu_counters"), f"{time.perf_counter() - begin:.2f} s", s.all("SELECT * FROM losses"))
    if (s.info("gpu_counters") or "").startswith("off"):
        check("why counters are not read is said", len(s.info("gpu_counters")) > 20)
        return
    kernels = s.one("SELECT count(*) FROM gpu_events WHERE kind = 'kernel'")
    check("all kernels were counted", s.one("SELECT count(DISTINCT event_id) FROM gpu_counters") == kernels == 30, kernels)
    if not kernels or not s.one("SELECT count(*) FROM gpu_counters"):
        return
    read, written, moves = s.one("SELECT (SELECT avg(value) FROM gpu_counters c WHERE c.kernel_id = k.kernel_id AND metric = 'dram__bytes_read.sum'), "
                                 "(SELECT avg(value) FROM gpu_counters c WHERE c.kernel_id = k.kernel_id AND metric = 'dram__bytes_write.sum'), read_bytes "
                                 "FROM kernels k WHERE kind = 'generated'")
    check("a kernel reads what its tensors hold", 0.7 * moves < read < 1.2 * moves, f"{read} of {moves}, wrote {written}")
    print("    ", s.all("SELECT k.name, c.metric, avg(value), count(*), avg(dur_ns) FROM gpu_counters c JOIN kernels k USING(kernel_id) GROUP BY 1, 2"))
    hits = s.one("SELECT min(value), max(value), count(*) FROM gpu_counters WHERE metric = 'lts__t_sector_hit_rate.pct'")
    check("L2 hits are read, or it is said why not", 0 <= hits[0] <= hits[1] <= 100 if hits[2] else "lts__t_sector_hit_rate" in s.info("gpu_counters"), hits)


def sampling(out):
    """Counters sampled while kernels run: in order, over the kernels, high in a long product of matrices and low where nothing runs."""
    path = str(pathlib.Path(out) / "sampled.fusebox")
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    x = torch.randn(1 << 27, device="cuda")

    def work():
        torch.cuda.synchronize()
        begin = time.monotonic_ns()
        for _ in range(20):
            a @ b
        torch.cuda.synchronize()
        products = (begin, time.monotonic_ns())
        time.sleep(0.1)
        idle = (products[1], time.monotonic_ns())
        for _ in range(20):
            x * 2
        torch.cuda.synchronize()
        return products, idle, (idle[1], time.monotonic_ns())

    work()
    plain = [work()[0] for _ in range(3)]
    os.environ["FUSEBOX_GPU_SAMPLING"] = "50"
    cpu = time.process_time()
    try:
        with fusebox.record(path):
            products, idle, copies = work()
            again = [work()[0] for _ in range(2)]
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as p:
                a @ b
                torch.cuda.synchronize()
            work()
            graphed = fusebox.compile(lambda x: torch.tanh(x) * 2 + 1, mode="reduce-overhead")
            for _ in range(10):  # capturing while our thread asks CUPTI for samples
                graphed(b)
            torch.cuda.synchronize()
    finally:
        del os.environ["FUSEBOX_GPU_SAMPLING"]
    cpu = time.process_time() - cpu
    s = Session(path)
    about = s.info("gpu_sampling") or ""
    print("    ", about)
    if about.startswith("off"):
        check("why counters are not sampled is said", len(about) > 20)
        return
    span = lambda pair: (pair[1] - pair[0]) / 1e6
    print(f"     20 products: {min(map(span, plain)):.2f} ms plain, {min(map(span, [products] + again)):.2f} ms sampled; decoding took "
          f"{(s.info('gpu_sampling_ns') or 0) / 1e6:.1f} ms for {s.info('gpu_samples')} samples, the process {cpu * 1e3:.0f} ms; "
          f"{os.path.getsize(path) / 1e3:.0f} kB", s.all("SELECT what, count, detail FROM losses"))
    print("    ", s.all("SELECT metric, count(*), count(value), avg(value), min(value), max(value) FROM gpu_samples GROUP BY metric"))
    check("metrics are sampled", s.one("SELECT count(*) FROM gpu_sampled_metrics") >= 4, s.all("SELECT metric FROM gpu_sampled_metrics"))
    check("samples in order", s.one("SELECT count(*) FROM (SELECT start_ns - lag(start_ns + dur_ns) OVER (ORDER BY start_ns) AS gap FROM t_gpu_sample) WHERE gap < 0") == 0)
    lengths = s.one("SELECT min(dur_ns), avg(dur_ns), max(dur_ns) FROM t_gpu_sample")
    check("of the length that was asked for", 45_000 < lengths[1] < 55_000, lengths)
    kernels = s.one("SELECT count(*) FROM gpu_events WHERE kind = 'kernel' AND dur_ns > 200000")
    covered = s.one("SELECT count(*) FROM gpu_events e WHERE kind = 'kernel' AND dur_ns > 200000 AND (SELECT sum(dur_ns) FROM t_gpu_sample s WHERE s.device = 0 "
                    "AND s.start_ns >= e.start_ns AND s.start_ns + s.dur_ns <= e.end_ns) > 0.5 * e.dur_ns")
    check("long kernels are covered", kernels >= 40 and covered >= 0.95 * kernels, f"{covered} of {kernels}")

    def mean(metric, begin_end, margin=5_000_000):
        return s.one(f"SELECT avg(value) FROM gpu_samples WHERE device = 0 AND metric LIKE '{metric}%' AND start_ns > {begin_end[0] + margin} AND end_ns < {begin_end[1] - margin}")

    check("multiprocessors work in products", (mean("sm__cycles_active", products, 2_000_000) or 0) > 80, mean("sm__cycles_active", products, 2_000_000))
    quiet = mean("sm__cycles_active", idle)
    check("and rest in between", quiet is not None and quiet < 5, quiet)
    memory = [(mean("dram%read_throughput", when, 1_000_000) or 0) + (mean("dram%write_throughput", when, 1_000_000) or 0) for when in (products, copies)]
    check("memory works in copies more than in products", memory[1] > memory[0] and memory[1] > 40, memory)
    hits = s.one("SELECT min(value), max(value) FROM gpu_samples WHERE metric LIKE 'lts%hit_rate%'")
    check("L2 hits are a share", hits[0] is None or (0 <= hits[0] and hits[1] <= 100.01), hits)
    graphs = s.all("SELECT event, reason, replays FROM cuda_graphs")
    check("CUDA graphs are recorded meanwhile", any(g[0] == "recorded" and g[2] > 0 for g in graphs) and not any(g[0] == "stopped" for g in graphs), graphs)
    check("torch.profiler had its kernel", len([e for e in p.profiler.kineto_results.events() if e.device_type() == torch.autograd.DeviceType.CUDA]) >= 1)
    gap = s.one("SELECT max(gap) FROM (SELECT start_ns - lag(start_ns + dur_ns) OVER (ORDER BY start_ns) AS gap FROM t_gpu_sample)")
    check("and sampling stepped aside and went on", gap is not None and gap > 100_000, gap)
    after = span(work()[0])
    check("nothing of it stays", after < 1.3 * min(map(span, plain)) + 1, after)
    path = str(pathlib.Path(out) / "unknown.fusebox")
    os.environ.update(FUSEBOX_GPU_SAMPLING="50", FUSEBOX_GPU_SAMPLING_METRICS="lts__t_sector_nonsense.pct")
    try:
        with fusebox.record(path):
            (x * 2).sum().item()
    finally:
        del os.environ["FUSEBOX_GPU_SAMPLING"], os.environ["FUSEBOX_GPU_SAMPLING_METRICS"]
    why = Session(path).info("gpu_sampling") or ""
    check("an unknown metric is said", why.startswith("off:") and "is not a counter of this GPU" in why, why[:400])


def steps(f, count):
    times = []
    for _ in range(count):
        torch.cuda.synchronize()
        start = time.perf_counter()
        f()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return times


def overhead(out, results):
    """Steps of GPT-2 training without and with recording, in turns of one process."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = GPT2().cuda()
    (torch.ones(1, device="cuda", requires_grad=True) * 2).sum().backward()  # autograd's thread has used CUDA, as in any longer program
    compiled = fusebox.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(0, 50257, (4, 512), device="cuda")

    def step():
        loss = compiled(ids, ids)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    begin = time.perf_counter()
    steps(step, 1)
    results["first_step_s"] = time.perf_counter() - begin
    steps(step, 5)
    never = steps(step, 40)  # CUPTI has not been on in this stretch only if nothing above used it: run this first
    off, on, host, turns = [], [], [], []
    for turn in range(3):
        path = str(pathlib.Path(out) / "gpt2.fusebox")
        with fusebox.record(path):
            steps(step, 3)
            on += steps(step, 20)
        os.environ["FUSEBOX_GPU_TIMES"] = "0"
        with fusebox.record(str(pathlib.Path(out) / "gpt2_host.fusebox")):
            steps(step, 3)
            host += steps(step, 20)
        del os.environ["FUSEBOX_GPU_TIMES"]
        off += steps(step, 20)
        turns.append([round(statistics.median(times[-20:]) * 1e3, 3) for times in (on, host, off)])
    print("     turns, ms a step, recorded, host only, not recorded:", turns)
    s = Session(path)
    check_times(s, "gpt2")
    ms = {name: statistics.median(times) * 1e3 for name, times in dict(never=never, off=off, host=host, on=on).items()}
    results.update({f"step_{k}_ms": v for k, v in ms.items()})
    results["overhead"] = ms["on"] / ms["never"] - 1
    results["events_a_step"] = s.one("SELECT count(*) FROM gpu_events") / 23
    results["gpu_busy_ms_a_step"] = s.one("SELECT sum(dur_ns) FROM gpu_events") / 23 / 1e6
    results["session_bytes_a_step"] = os.path.getsize(path) / 23
    print("    ", {k: round(v, 4) if isinstance(v, float) else v for k, v in results.items()})
    check("recording costs less than 3 % of a step", results["overhead"] < 0.03, f"{results['overhead']:.2%}")
    check("no launch of a generated kernel without the device's time",
          s.one("SELECT count(*) FROM launches l JOIN kernels k USING(kernel_id) WHERE k.kind = 'generated' AND l.device_ns IS NULL") == 0,
          s.all("SELECT k.name, k.kind, count(*) FROM launches l JOIN kernels k USING(kernel_id) WHERE l.device_ns IS NULL GROUP BY 1, 2 LIMIT 8"))
    print("    ", s.all("SELECT name, kind, op, timed_launches, total_ns / timed_launches, host_ns / launches, flops, read_bytes + write_bytes FROM kernels "
                        "WHERE timed_launches > 0 ORDER BY total_ns DESC LIMIT 12"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out")
    parser.add_argument("--json")
    parser.add_argument("--no-overhead", action="store_true")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: no CUDA device")
        return 77
    out = options.out or tempfile.mkdtemp()
    os.makedirs(out, exist_ok=True)
    results = {"device": torch.cuda.get_device_name()}
    for part in ([] if options.no_overhead else [lambda: overhead(out, results)]) + [
            lambda: engine_sessions(out), lambda: against_events(out), lambda: with_torch_profiler(out), lambda: cuda_graph(out), lambda: recorded_graphs(out),
            lambda: counters(out), lambda: sampling(out)]:
        try:
            part()
        except Exception as error:
            import traceback
            traceback.print_exc()
            check(f"no exception: {error}", False)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1))
    print(f"{len(FAILED)} failed" if FAILED else "all fine", FAILED)
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())

"""Training on two GPUs over NCCL, at real widths: DDP, FSDP2, tensor parallelism and collectives in the graph, compiled beside eager (and --stock).

    ranks_gpu.py [--only NAME ...] [--stock] [--json FILE] [--limit SECONDS] [--tiny]

Each program runs in two processes of its own. A line each: whether losses and parameters after the steps are eager's, milliseconds of a step (eager /
compiled), the first step, peak memory, graphs, breaks and graphs that ran eagerly. --tiny: small sizes over gloo on the CPU, to try it. Exit code 77, with the reason, where there are
fewer than two GPUs.
"""

import argparse
import contextlib
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "engine" / "distributed"))

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from rank_processes import Hangs, run_ranks

TINY = "RANKS_TINY" in os.environ
DEVICE = "cpu" if TINY else "cuda"
WIDTH, LAYERS, HEADS, VOCABULARY, BATCH, LENGTH = (64, 3, 4, 300, 4, 256) if TINY else (1024, 8, 16, 32000, 8, 512)
PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (each(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for each in (self.query, self.key, self.value))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.attention, self.feed = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH), Attention(), FeedForward()

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.feed(self.second(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layers = nn.Embedding(VOCABULARY, WIDTH), nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def decoder():
    torch.manual_seed(0)
    return Decoder().to(DEVICE)


def ids_of(rank, step, batch=BATCH, length=LENGTH):
    return torch.randint(0, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(1000 * rank + step)).to(DEVICE)


def loss_of(model, ids):
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        return F.cross_entropy(model(ids).flatten(0, 1).float(), ids.roll(-1, 1).flatten())


def steps_of(model, optimizer, rank, accumulate=1, clip=None, sizes=None):
    """A training step as a function of its number; returns the loss."""
    def step(number):
        optimizer.zero_grad(set_to_none=True)
        for part in range(accumulate):
            last = part == accumulate - 1
            quiet = model.no_sync() if not last and hasattr(model, "no_sync") else contextlib.nullcontext()
            with quiet:
                loss = loss_of(model, ids_of(0 if sizes == "same" else rank, number * accumulate + part, *(sizes(number) if callable(sizes) else ())))
                (loss / accumulate).backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return loss.detach()
    return step


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)


def in_ddp(rank, prepare, inside, outside, **how):
    model = decoder()
    prepare(model)
    model = outside(nn.parallel.DistributedDataParallel(inside(model), device_ids=None if TINY else [rank], **how))
    return model


def same(module):
    return module


# --- programs: (rank, compile) -> (model, step)

@program
def ddp_of_compiled(rank, compiled):
    model = in_ddp(rank, same, compiled, same)
    return model, steps_of(model, adamw(model), rank)


@program
def compiled_ddp(rank, compiled):
    model = in_ddp(rank, same, same, compiled)
    return model, steps_of(model, adamw(model), rank)


@program
def ddp_views_static(rank, compiled):
    model = in_ddp(rank, same, same, compiled, gradient_as_bucket_view=True, static_graph=True)
    return model, steps_of(model, adamw(model), rank, clip=1.0)


@program
def ddp_accumulates(rank, compiled):
    model = in_ddp(rank, same, same, compiled)
    return model, steps_of(model, adamw(model), rank, accumulate=3)


@program
def ddp_of_compiled_blocks(rank, compiled):
    def blocks(model):
        for layer in model.layers:
            layer.forward = compiled(layer.forward)
    model = in_ddp(rank, blocks, same, same)
    return model, steps_of(model, adamw(model), rank)


@program
def ddp_half_hook(rank, compiled):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    model = nn.parallel.DistributedDataParallel(decoder(), device_ids=None if TINY else [rank])
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    run = compiled(model)
    return run, steps_of(run, adamw(run), rank)


@program
def ddp_sizes_vary(rank, compiled):
    model = in_ddp(rank, same, same, compiled)
    return model, steps_of(model, adamw(model), rank, sizes=lambda n: (BATCH - n % 3, LENGTH - 64 * (n % 4)))


def sharded(model, **how):
    from torch.distributed.fsdp import fully_shard
    for layer in model.layers:
        fully_shard(layer, **how)
    return fully_shard(model, **how)


@program
def fsdp_of_compiled_blocks(rank, compiled):
    model = decoder()
    for layer in model.layers:
        layer.compile() if compiled is not same else None
    sharded(model)
    return model, steps_of(model, adamw(model), rank, clip=1.0)


@program
def fsdp_half(rank, compiled):
    from torch.distributed.fsdp import MixedPrecisionPolicy
    model = decoder()
    sharded(model, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
    run = compiled(model)

    def step(number, optimizer=adamw(model)):
        optimizer.zero_grad(set_to_none=True)
        ids = ids_of(rank, number)
        loss = F.cross_entropy(run(ids).flatten(0, 1).float(), ids.roll(-1, 1).flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()
    return model, step


@program
def fsdp_checkpointed(rank, compiled):
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
    model = decoder()
    apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, Block))
    for layer in model.layers:
        layer.compile() if compiled is not same else None
    sharded(model)
    return model, steps_of(model, adamw(model), rank)


def parallel(model, sequence=False):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    mesh = init_device_mesh(DEVICE, (2,))
    for layer in model.layers:
        parallelize_module(layer, mesh, {
            "attention.query": ColwiseParallel(), "attention.key": ColwiseParallel(), "attention.value": ColwiseParallel(), "attention.out": RowwiseParallel(),
            "feed.gate": ColwiseParallel(), "feed.up": ColwiseParallel(), "feed.down": RowwiseParallel()})
    return model


@program
def tensor_parallel(rank, compiled):
    model = parallel(decoder())
    run = compiled(model)
    return run, steps_of(run, torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False), rank, sizes="same")


@program
def tensor_parallel_inference(rank, compiled):
    model = parallel(decoder()).to(torch.bfloat16).eval()
    run = compiled(model)

    def step(number):
        with torch.no_grad():
            return run(ids_of(0, number)).float().square().mean()
    return run, step


@program
def collectives_in_the_graph(rank, compiled):
    import torch.distributed._functional_collectives as fc
    torch.manual_seed(0)
    first, second = nn.Linear(WIDTH, 4 * WIDTH).to(DEVICE), nn.Linear(4 * WIDTH, WIDTH).to(DEVICE)
    both = nn.ModuleList([first, second])

    def forward(x):
        half = first(x)[:, rank * 2 * WIDTH:(rank + 1) * 2 * WIDTH]
        h = fc.all_gather_tensor(F.gelu(half).t().contiguous(), 0, dist.group.WORLD).t()
        y = second(h)
        part = fc.reduce_scatter_tensor(y.contiguous(), "sum", 0, dist.group.WORLD)
        total = fc.all_reduce(part.square().mean(), "avg", dist.group.WORLD)
        dist.all_reduce(part)
        return part.float().mean() + total
    run = compiled(forward)

    def step(number):
        with torch.no_grad():
            return run(torch.randn(8192, WIDTH, generator=torch.Generator().manual_seed(number)).to(DEVICE))
    return both, step


# --- one rank

def synchronize():
    if not TINY:
        torch.cuda.synchronize()


def measured(step, first_number, count=12):
    synchronize()
    dist.barrier()
    times = []
    for number in range(count):
        begin = time.perf_counter()
        step(first_number + number % 4)
        synchronize()
        times.append(time.perf_counter() - begin)
    return 1000 * sorted(times)[len(times) // 2]


def whole(model):
    return [(p.full_tensor() if hasattr(p, "full_tensor") else p).detach().float() for p in model.parameters()]


def run_program(name, engine, rank):
    counters = dict
    if engine == "fusebox":
        import fusebox
        fusebox.install()
        counters = fusebox.counters
    compiled = torch.compile
    row = {}
    for kind, form in (("eager", same), (engine, compiled)):
        model, step = PROGRAMS[name](rank, form)
        begin = time.perf_counter()
        losses = [step(0)]
        synchronize()
        first = time.perf_counter() - begin
        losses += [step(number) for number in range(1, 6)]
        if not TINY:
            torch.cuda.reset_peak_memory_stats()
        before = 0 if TINY else torch.cuda.memory_allocated()
        state = (torch.stack(losses).tolist(), whole(model))
        ms = measured(step, 6)
        row[kind] = {"first_s": round(first, 2), "ms": round(ms, 2), "peak_gib": 0 if TINY else round((torch.cuda.max_memory_allocated() - before) / 2**30, 2),
                     "losses": [round(each, 5) for each in state[0]]}
        if kind == "eager":
            wanted = state
        del model, step
    row["loss_error"] = max(abs(a - b) / max(1e-6, abs(a)) for a, b in zip(wanted[0], state[0], strict=True))
    # Adam moves each weight by about the learning rate a step whatever the gradient's size, so parameters are compared by how many moved elsewhere
    apart = [(a - b).abs().gt(1e-3).float().mean().item() for a, b in zip(wanted[1], state[1], strict=True)]
    row["parameters_apart"] = max(apart)
    row["counters"] = {key: value for key, value in counters().items() if key in ("graphs", "graph_breaks", "recompiles", "eager_runs", "kernels")}
    return row


def rank_main():
    name, engine = sys.argv[-1].split(":")
    rank = int(os.environ["RANK"])
    if not TINY:
        torch.cuda.set_device(rank)
    dist.init_process_group("gloo" if TINY else "nccl")
    row = run_program(name, engine, rank)
    dist.barrier()
    print(json.dumps(row), flush=True)
    os._exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--stock", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--limit", type=int, default=120)
    args = parser.parse_args()
    if args.tiny:
        os.environ["RANKS_TINY"] = "1"
    elif torch.cuda.device_count() < 2:
        print("skipped: needs two CUDA devices")
        return 77
    rows, failed = {}, 0
    for name in args.only:
        for engine in ("fusebox", "stock") if args.stock else ("fusebox",):
            try:
                ranks = run_ranks(__file__, f"{name}:{engine}", limit=args.limit)
            except Hangs as problem:
                ranks = [(None, str(problem), 1)]
            row, errors, code = ranks[0]
            if row is None or any(rank[2] for rank in ranks):
                worst = next((rank for rank in ranks if rank[2]), ranks[0])
                row = {"error": worst[1].strip().splitlines()[-6:]}
            right = "error" not in row and row["loss_error"] < 0.02 and row["parameters_apart"] < 0.02
            failed += engine == "fusebox" and not right
            rows[f"{name} {engine}"] = row
            print("ok    " if right else "FAILED", f"{name:26} {engine:8}", end=" ")
            print(row["error"] if "error" in row else f"eager {row['eager']['ms']:7.2f} ms, compiled {row[engine]['ms']:7.2f} ms, first {row[engine]['first_s']:6.2f} s, "
                  f"peak {row['eager']['peak_gib']:.2f} / {row[engine]['peak_gib']:.2f} GiB, loss {row['loss_error']:.1e}, apart {row['parameters_apart']:.1e}, "
                  f"{row['counters']}", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"device": "cpu" if args.tiny else torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, indent=1))
    print(f"{len(args.only) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if "--rank" in sys.argv:
        rank_main()
    sys.exit(main())

"""Programs on distributed tensors (DTensor) on two ranks: values, placements, gradients and effects are eager's, and what is captured whole stays so."""

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

import fusebox
from checks.script_checks import expect, run
from rank_processes import is_rank, run_rank, run_ranks

SITUATIONS = {}


def situation(breaks=0, graphs=1):
    """`f(mesh, compiled)` gives what is compared; `breaks` is the most that its compiled form may have, `graphs` how many it makes."""
    def noted(f):
        SITUATIONS[f.__name__] = (f, breaks, graphs)
        return f
    return noted


def api():
    import torch.distributed.tensor as tensors
    return tensors


def randn(*sizes, seed=0):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def sharded(mesh, tensor, *placements, wants=False):
    from torch.distributed.tensor import distribute_tensor
    return distribute_tensor(tensor, mesh, placements).detach().requires_grad_(wants)


@situation()
def made_of_local_tensors(mesh, compiled):
    t = api()

    def f(x):
        whole = t.DTensor.from_local(x, mesh, [t.Shard(0)])
        again = (whole * 2 + 1).redistribute(mesh, [t.Replicate()])
        return again.to_local(), whole.sum().full_tensor()
    return compiled(f)(randn(4, 3, seed=dist.get_rank()))


@situation()
def given_and_returned(mesh, compiled):
    t = api()
    a, b = sharded(mesh, randn(6, 4), t.Shard(0)), sharded(mesh, randn(4, 5, seed=1), t.Replicate())

    def f(a, b):
        return a @ b, a.t(), (a.relu() + 1).sum(1)
    return compiled(f)(a, b)


@situation()
def gradients_of_both_kinds(mesh, compiled):
    t = api()
    a, b = sharded(mesh, randn(6, 4), t.Shard(0), wants=True), sharded(mesh, randn(4, 5, seed=1), t.Replicate(), wants=True)
    c = randn(3, 4, seed=2 + dist.get_rank()).requires_grad_()

    def f(a, b, c):
        local = t.DTensor.from_local(c, mesh, [t.Shard(0)])
        return ((a + local).tanh() @ b).square().sum()
    out = compiled(f)(a, b, c)
    out.full_tensor().backward()
    return out, a.grad, b.grad, c.grad


@situation()
def partial_results_meet(mesh, compiled):
    t = api()
    a, b = sharded(mesh, randn(6, 4), t.Shard(1), wants=True), sharded(mesh, randn(4, 5, seed=1), t.Shard(0), wants=True)
    f = compiled(lambda a, b: (a @ b).redistribute(placements=[t.Shard(0)]).relu())
    out = f(a, b)
    out.sum().full_tensor().backward()
    return out, a.grad, b.grad


@situation(graphs=2)
def placements_change(mesh, compiled):
    t = api()
    f = compiled(lambda x: (x * 3).sum(0))
    return [f(sharded(mesh, randn(6, 4), placement)) for placement in (t.Shard(0), t.Shard(1), t.Shard(0))]


@situation()
def placements_are_read(mesh, compiled):
    t = api()

    def f(x):
        if x.placements[0].is_shard() and x.device_mesh.size() == 2:
            x = x + 1
        if x.placements != (t.Replicate(),):
            x = x.redistribute(x.device_mesh, (t.Replicate(),))
        return x * x.shape[0] + x.to_local().shape[0]
    return compiled(f)(sharded(mesh, randn(6, 4), t.Shard(0)))


@situation()
def uneven_shards(mesh, compiled):
    t = api()
    x = sharded(mesh, randn(5, 3), t.Shard(0), wants=True)
    out = compiled(lambda x: (x.exp() / 2).redistribute(placements=[t.Replicate()]))(x)
    out.to_local().square().sum().backward()
    return out, x.grad


@situation()
def parallel_layers(mesh, compiled):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    torch.manual_seed(3)
    net = parallelize_module(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    step, found = compiled(net), []
    for number in range(3):
        out = step(randn(4, 8, seed=number))
        out.square().sum().backward()
        found.append(out)
    return found + [p.grad for p in net.parameters()]


@situation()
def sequence_parallel_layers(mesh, compiled):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
    t = api()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

        def forward(self, x):
            return self.down(F.silu(self.up(self.norm(x))))
    torch.manual_seed(3)
    net = parallelize_module(Net(), mesh, {"norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=t.Shard(1)), "down": RowwiseParallel(output_layouts=t.Replicate())})
    step = compiled(net)
    out = step(randn(2, 4, 8))
    out.square().sum().backward()
    return [out] + [p.grad for p in net.parameters()]


@situation()
def written_without_gradient(mesh, compiled):
    t = api()
    x, y = sharded(mesh, randn(6, 4), t.Shard(0), wants=True), sharded(mesh, randn(6, 4, seed=1), t.Shard(0))

    @compiled
    def f(x, y):
        with torch.no_grad():
            x.mul_(0.5).add_(y, alpha=2)
    f(x, y)
    f(x, y)
    return x.detach(), y


@situation()
def optimizer_of_shards(mesh, compiled):
    t = api()
    parameters = [nn.Parameter(sharded(mesh, randn(6, 4, seed=i), t.Shard(0))) for i in range(3)]
    optimizer = torch.optim.AdamW(parameters, lr=0.1, foreach=True)
    for i, p in enumerate(parameters):
        p.grad = sharded(mesh, randn(6, 4, seed=10 + i), t.Shard(0))
    optimizer.step()
    step = compiled(optimizer.step)
    for _ in range(3):
        step()
    return [p.detach() for p in parameters]


@situation(breaks=3, graphs=2)
def alive_across_a_break(mesh, compiled):
    t = api()
    x = sharded(mesh, randn(6, 4), t.Shard(0), wants=True)

    def f(x):
        y = x.sin() * 2
        torch._dynamo.graph_break()
        return (y + x).cos()
    out = compiled(f)(x)
    out.sum().full_tensor().backward()
    return out, x.grad


@situation(breaks=4, graphs=2)
def random_numbers(mesh, compiled):
    t = api()
    x = sharded(mesh, torch.ones(6, 4), t.Shard(0))
    out = compiled(lambda x: F.dropout(x * 2, 0.5).ne(0).float() * 0 + x)(x)
    return out


@situation()
def kept_by_objects(mesh, compiled):
    t = api()

    class Holder:
        pass
    holder = Holder()

    @compiled
    def f(x):
        holder.last = {"whole": x * 2, "rows": [x.sum(0)]}
        return holder.last["whole"] + 1
    out = f(sharded(mesh, randn(6, 4), t.Shard(0)))
    return out, holder.last["whole"], holder.last["rows"][0]


@situation()
def gradients_of_gradients(mesh, compiled):
    t = api()
    x = sharded(mesh, randn(6, 4), t.Shard(0), wants=True)
    f = compiled(lambda x: (x * x * x).sum().full_tensor())
    (first,) = torch.autograd.grad(f(x), x, create_graph=True)
    try:
        (second,) = torch.autograd.grad(first.to_local().square().sum(), x)
        off = (second.to_local() - 36 * x.to_local() ** 3).detach()
    except RuntimeError as error:  # said, as of any compiled function with an autograd.Function inside
        assert "create_graph=True" in str(error), error
        off = torch.zeros(3, 4)
    return first.detach(), off.round()


@situation()
def two_dimensions_of_ranks(mesh, compiled):
    from torch.distributed.device_mesh import init_device_mesh
    t = api()
    grid = init_device_mesh("cpu", (2, 1), mesh_dim_names=("data", "model"))
    x = sharded(grid, randn(6, 4), t.Shard(0), t.Shard(1), wants=True)
    w = sharded(grid, randn(4, 2, seed=4), t.Replicate(), t.Shard(0), wants=True)
    out = compiled(lambda x, w: (x @ w).redistribute(placements=[t.Shard(0), t.Replicate()]).sigmoid())(x, w)
    out.sum().full_tensor().backward()
    return out, x.grad, w.grad


@situation(graphs=2)
def sizes_change(mesh, compiled):
    t = api()
    f = compiled(lambda x: t.DTensor.from_local(x, mesh, [t.Shard(0)]).sum(0).full_tensor())
    return [f(randn(n, 3, seed=n)) for n in (4, 4, 6, 6, 4)]


def described(value):
    """What is compared of a result, as lists."""
    if isinstance(value, (list, tuple)):
        return [described(each) for each in value]
    placements = [str(each) for each in value.placements] if hasattr(value, "placements") else None
    local = value.to_local() if placements else value
    local = local.wait() if hasattr(local, "wait") else local
    return {"class": type(value).__name__.replace("AsyncCollectiveTensor", "Tensor"), "placements": placements, "sizes": list(value.shape), "wants": value.requires_grad, "values": local.detach().double().tolist()}


def near(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(near(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(near, a, b))
    return abs(a - b) <= 1e-5 + 1e-4 * abs(a) if isinstance(a, float) and isinstance(b, float) else a == b


def everything(rank):
    from torch.distributed.device_mesh import init_device_mesh
    mesh, rows = init_device_mesh("cpu", (2,)), {}
    for name, (f, breaks, graphs) in SITUATIONS.items():
        wanted = described(f(mesh, lambda each: each))
        fusebox.reset()
        before = fusebox.counters()
        mark = len(fusebox._engine.events_since(0))
        try:
            got = described(f(mesh, torch.compile))
        except Exception as error:  # told as what the situation gave
            got = f"{type(error).__name__}: {error}"
        now = fusebox.counters()
        reasons = [f"{e['what']}: {e['detail']}" for e in fusebox._engine.events_since(0)[mark:] if e["kind"] == "graph_break"]
        rows[name] = {"same": not isinstance(got, str) and near(wanted, got), "wanted": wanted, "got": got, "reasons": reasons,
                      "breaks": now["graph_breaks"] - before["graph_breaks"], "graphs": now["graphs"] - before["graphs"],
                      "eager": now["eager_runs"] - before["eager_runs"], "failures": now["capture_failures"] - before["capture_failures"]}
    return rows


def test_programs_on_distributed_tensors():
    for rank, (rows, errors, code) in enumerate(run_ranks(__file__, "everything", limit=200)):
        expect(code == 0 and rows, f"rank {rank} ended with {code}: {errors[-3000:]}")
        for name, row in (rows or {}).items():
            _, breaks, graphs = SITUATIONS[name]
            expect(row["same"], f"{name}, rank {rank}: {str(row['got'])[:600]} where eager gives {str(row['wanted'])[:600]}")
            expect(row["breaks"] <= breaks and row["failures"] == 0, f"{name}, rank {rank}: {row['breaks']} breaks: {row['reasons']}")
            expect(row["graphs"] == graphs and (breaks or row["eager"] == 0), f"{name}, rank {rank}: {row['graphs']} graphs, {row['eager']} run eagerly")


if __name__ == "__main__":
    if is_rank():
        fusebox.install()
        run_rank(globals())
    run(globals())

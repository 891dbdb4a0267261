"""Programs of several ranks: DDP, FSDP2, tensor and sequence parallelism, collectives of both kinds. Results and gradients are eager's, nothing hangs, and
what cannot be captured is a graph break with its reason."""

import copy
import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch.nn as nn

import fusebox
from checks.script_checks import expect, run
from rank_processes import is_rank, run_rank, run_ranks


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Branch(Block):
    def forward(self, x):
        return self.down(torch.relu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.ModuleList([Block() for _ in range(3)]), nn.Linear(16, 4)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def net():
    torch.manual_seed(3)
    return Net()


def train(model, rank, batches=(8, 8, 8)):
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), []
    for step, batch in enumerate(batches):
        x = torch.randn(batch, 16, generator=torch.Generator().manual_seed(100 * rank + step))
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    whole = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in model.parameters()]
    return losses + [p.detach() for p in whole]


def compare(wanted, got):
    """What differs, and how the engine took part."""
    wanted, got = ([each.wait() if isinstance(each, fc.AsyncCollectiveTensor) else each for each in both] for both in (wanted, got))
    differs = [i for i, (a, b) in enumerate(zip(wanted, got, strict=True)) if not torch.allclose(a, b, rtol=1e-4, atol=1e-5)]
    events = fusebox._engine.events_since(0)
    breaks = [f"{e['what']}: {e['detail']}" for e in events if e["kind"] == "graph_break"]
    return {**fusebox.counters(), "differs": differs, "breaks": breaks, "operators": [line for e in events for line in e["operators_at"]]}


# --- programs, run by every rank

def compiled_in_ddp(rank):
    ddp = nn.parallel.DistributedDataParallel
    return compare(train(ddp(net()), rank), train(ddp(torch.compile(net())), rank))


def ddp_compiled(rank):
    ddp = nn.parallel.DistributedDataParallel
    return compare(train(ddp(net()), rank), train(torch.compile(ddp(net())), rank))


def batches_of_many_sizes(rank):
    ddp = nn.parallel.DistributedDataParallel
    batches = (4 + rank, 7 + 2 * rank, 5, 9 - rank)
    return compare(train(ddp(net()), rank, batches), train(ddp(torch.compile(net())), rank, batches))


LOG = []


@torch.library.custom_op("ranks_test::mark", mutates_args=())
def mark(x: torch.Tensor, name: str) -> torch.Tensor:
    LOG.append(name)
    return x.clone()


mark.register_fake(lambda x, name: torch.empty_like(x))
mark.register_autograd(lambda context, gradient: (mark(gradient, f"backward {context.name}"), None),
                       setup_context=lambda ctx, inputs, output: setattr(ctx, "name", inputs[1]))


class Marked(nn.Module):
    """Says when backward comes by each layer."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(32, 32) for _ in range(4)])

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = mark(torch.relu(layer(x)), str(number))
        return x


def _log_buckets(model):
    def reduce(state, bucket):
        LOG.append("bucket")
        return dist.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook(None, bucket)

    model.register_comm_hook(None, reduce)
    return model


def _train_marked(rank, on, **how):
    """Three steps in DDP, eager and compiled; what happened in the last backward of the compiled one."""
    import torch.distributed.algorithms.ddp_comm_hooks.default_hooks  # noqa: F401
    torch._dynamo.config.optimize_ddp = on
    torch.manual_seed(3)
    eager = Marked()
    compiled = copy.deepcopy(eager)
    models = [_log_buckets(nn.parallel.DistributedDataParallel(module, bucket_cap_mb=0.004, **how)) for module in (eager, torch.compile(compiled))]
    x, wanted, got = torch.randn(8, 32, generator=torch.Generator().manual_seed(rank)), [], []
    for model, found in zip(models, (wanted, got)):
        for _ in range(3):
            loss = model(x).square().mean()
            LOG.clear()
            loss.backward()
            found += [p.grad.clone() for p in model.parameters()]
        found += [p.detach() for p in model.parameters()]
    return {**compare(wanted, got), "log": list(LOG)}


def buckets_overlap(rank):
    return _train_marked(rank, True)


def buckets_in_views(rank):
    return _train_marked(rank, True, gradient_as_bucket_view=True)


def buckets_do_not_overlap(rank):
    return _train_marked(rank, False)


def buckets_and_other_passes(rank):
    """Passes that are not whole, and gradients of gradients, of a region whose backward has stages."""
    compiled = nn.parallel.DistributedDataParallel(torch.compile(net()), bucket_cap_mb=0.001)
    plain, x = net(), torch.randn(8, 16)
    wanted, got = [], []
    for model, inner, found in ((plain, plain, wanted), (compiled, compiled.module._orig_mod, got)):
        first, *rest = inner.parameters()
        last = rest[-1]
        given = x.clone().requires_grad_()
        found += torch.autograd.grad(model(given).square().mean(), [last])
        found += torch.autograd.grad(model(given).square().mean(), [given, first])
        loss = model(given).square().mean()
        for keeps in (True, True, False):
            found += torch.autograd.grad(loss, [given, *inner.parameters()], retain_graph=keeps)
        gradient, = torch.autograd.grad(model(given).square().mean(), [first], create_graph=True)
        found += torch.autograd.grad(gradient.square().sum(), [last, given])
        loss = model(given).square().mean()
        loss.backward()
        try:
            loss.backward()
            found.append(torch.zeros(()))
        except RuntimeError as error:
            found.append(torch.tensor(float("second time" in str(error))))
    return compare(wanted, got)


def _sharded(model):
    from torch.distributed.fsdp import fully_shard
    for layer in model.layers:
        fully_shard(layer)
    return fully_shard(model)


def blocks_compiled_in_fsdp(rank):
    compiled = _sharded(net())
    for layer in compiled.layers:
        layer.compile()
    return compare(train(_sharded(net()), rank), train(compiled, rank))


def compiled_then_sharded(rank):
    compiled = net()
    for layer in compiled.layers:
        layer.compile()
    return compare(train(_sharded(net()), rank), train(_sharded(compiled), rank))


def fsdp_compiled(rank):
    return compare(train(_sharded(net()), rank), train(torch.compile(_sharded(net())), rank))


def functional_collectives(rank):
    group = dist.group.WORLD

    def f(x):
        y = x * 2 + 1
        total = fc.all_reduce(y, "sum", group)
        meanwhile = x.sin() + 1
        both = fc.all_gather_tensor(y, 0, group)
        return total * meanwhile, both + 1, fc.reduce_scatter_tensor(torch.cat([y, y]), "sum", 0, group)

    x = torch.arange(12.0).reshape(4, 3) + rank
    return compare(f(x), torch.compile(f, fullgraph=True)(x))


def operands_live_until_the_wait(rank):
    """What a collective reads is not written before it is waited for, however memory is planned."""
    name, size = dist.group.WORLD.group_name, dist.get_world_size()

    def f(x):
        y = x * 2
        started = torch.ops._c10d_functional.all_gather_into_tensor(y, size, name)
        z = (y + 1).relu() * 3
        for _ in range(3):
            z = (z.cumsum(0) - z).tanh()
        both = torch.ops._c10d_functional.wait_tensor(started)
        x.mul_(5)
        return both, z

    x = torch.randn(200000) + rank
    other = x.clone()
    return compare([*f(x), x], [*torch.compile(f, fullgraph=True)(other), other])


def gradients_through_collectives(rank):
    group = dist.group.WORLD

    def f(x, w):
        return fc.all_gather_tensor_autograd((x @ w).relu(), 0, group).square().sum()

    x = torch.arange(12.0).reshape(4, 3) / 10 + rank
    eager, compiled = (torch.ones(3, 3, requires_grad=True) for _ in range(2))
    f(x, eager).backward()
    torch.compile(f)(x, compiled).backward()
    return compare([eager.grad], [compiled.grad])


def collectives_in_place(rank):
    def f(x):
        y = x * 2
        parts = [torch.empty_like(y) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, y)
        dist.broadcast(y, 0)
        work = dist.all_reduce(y, async_op=True)
        work.wait()
        return torch.stack(parts).sum(0) + y

    x = torch.arange(12.0) + rank
    return compare([f(x)], [torch.compile(f)(x)])


def collectives_that_write(rank):
    size = dist.get_world_size()

    def f(x):
        y = x * 2
        dist.all_reduce(y)
        largest = x + 1
        dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=dist.group.WORLD)
        parts = [torch.zeros_like(x) for _ in range(size)]
        dist.all_gather(parts, x.sin())
        whole, mine = x.new_zeros(size * 4, 3), x.new_zeros(2, 3)
        dist.all_gather_into_tensor(whole, x)
        dist.all_gather_into_tensor(output_tensor=whole, input_tensor=whole[2:6] * x)
        dist.reduce_scatter_tensor(mine, x)
        others = torch.zeros_like(x)
        dist.all_to_all_single(others, x)
        return [y, largest, *parts, whole, mine, others]

    def uneven(x):
        got = x.new_zeros(6 if rank else 2, 3)
        dist.all_to_all_single(got, x, [3, 3] if rank else [1, 1], [1, 3])
        return [got, got.sum(0)]

    def trains(x, w):
        total = x @ w
        dist.all_reduce(total.detach())
        return total.square().mean()

    x = torch.arange(12.0).reshape(4, 3) / 7 + rank
    eager, compiled = (torch.ones(3, 3, requires_grad=True) for _ in range(2))
    trains(x, eager).backward()
    torch.compile(trains, fullgraph=True)(x, compiled).backward()
    wanted, got = [*f(x), *uneven(x), eager.grad], [*torch.compile(f, fullgraph=True)(x), *torch.compile(uneven, fullgraph=True)(x), compiled.grad]
    return compare(wanted, got)


def collectives_as_they_are(rank):
    """What an operator of a graph would not do as the original does it."""
    alone = [dist.new_group([each]) for each in range(dist.get_world_size())]

    def f(x):
        y = x * 2
        work = dist.all_reduce(y, async_op=True)
        work.wait()
        z = x + 1
        dist.all_reduce(z, group=alone[0])
        return [y + 1, z * 2]

    x = torch.arange(12.0) + rank
    return compare(f(x), torch.compile(f)(x))


def _parallel(plan):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module
    return parallelize_module(Branch(), init_device_mesh("cpu", (dist.get_world_size(),)), plan)


def _compare_parallel(plan):
    torch.manual_seed(3)
    eager = _parallel(plan)
    other = copy.deepcopy(eager)
    compiled = torch.compile(other)
    x, results = torch.randn(4, 8, 16), []
    for model, module in ((eager, eager), (compiled, other)):
        outs = []
        for _ in range(2):
            out = model(x)
            out.square().sum().backward()
            outs.append(out.detach())
        results.append(outs + [p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad for p in module.parameters()])
    return compare(*results)


def tensor_parallel(rank):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel
    return _compare_parallel({"up": ColwiseParallel(), "down": RowwiseParallel()})


def sequence_parallel(rank):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel
    return _compare_parallel({"norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=Shard(1)), "down": RowwiseParallel(output_layouts=Replicate())})


# --- tests

def equal_on_all(program, size=2):
    """What each rank found: nothing may differ from eager, and no break may be without a reason."""
    found = []
    for rank, (given, errors, code) in enumerate(run_ranks(__file__, program, size, limit=200)):
        expect(code == 0 and given, f"{program}: rank {rank} of {size} ended with {code}: {errors[-2000:]}")
        if not given:
            continue
        expect(not given["differs"], f"{program}: rank {rank}: results {given['differs']} differ from eager's")
        expect(given["capture_failures"] == 0 and all(": " in each and not each.endswith(": ") for each in given["breaks"]), f"{program}: {given['breaks']}")
        found.append(given)
    return found


def test_ddp():
    for size in (2, 4):
        for given in equal_on_all("compiled_in_ddp", size):
            expect(given["graphs"] == 1 and not given["breaks"], f"one graph: {given['graphs']}, {given['breaks']}")
    for program in ("ddp_compiled", "batches_of_many_sizes"):
        for given in equal_on_all(program):
            expect(given["graphs"] > 0, f"{program} is compiled")


def test_buckets_are_reduced_while_backward_goes_on():
    for program in ("buckets_overlap", "buckets_in_views"):
        for given in equal_on_all(program):
            log = given["log"]
            expect(given["graphs"] == 1 and [each for each in log if each != "bucket"] == [f"backward {layer}" for layer in (3, 2, 1, 0)], f"{program}: {given['graphs']}, {log}")
            expect(log.count("bucket") == 4 and log.index("bucket") < log.index("backward 2"), f"{program}: the last layer's bucket is reduced before the next layer: {log}")
    for given in equal_on_all("buckets_do_not_overlap"):
        expect(given["log"].index("bucket") == 4, f"optimize_ddp = False: {given['log']}")
    equal_on_all("buckets_and_other_passes")


def test_fsdp():
    for program in ("blocks_compiled_in_fsdp", "compiled_then_sharded", "fsdp_compiled"):
        for given in equal_on_all(program):
            expect(given["graphs"] > 0, f"{program} is compiled")


def test_functional_collectives_are_in_the_graph():
    for given in equal_on_all("functional_collectives"):
        operators = [line.split(" at ")[0] for line in given["operators"]]
        expect(given["graphs"] == 1 and not given["breaks"], f"{given['graphs']} graphs, {given['breaks']}")
        starts, waits = ([i for i, op in enumerate(operators) if op.startswith("_c10d_functional::") and ("wait" in op) == is_wait] for is_wait in (False, True))
        expect(len(starts) == len(waits) == 3 and all(a < b for a, b in zip(starts, waits)), f"pairs of start and wait: {operators}")
    equal_on_all("operands_live_until_the_wait")
    equal_on_all("gradients_through_collectives")


def test_collectives_that_write_are_in_the_graph():
    for given in equal_on_all("collectives_that_write"):
        expect(given["graphs"] == 3 and not given["breaks"], f"{given['graphs']} graphs, {given['breaks']}")
    for given in equal_on_all("collectives_as_they_are"):
        expect(any("AllreduceOptions" in each for each in given["breaks"]), f"a handle is the original's: {given['breaks']}")


def test_collectives_in_place_and_tensor_parallelism():
    for program in ("collectives_in_place", "tensor_parallel", "sequence_parallel"):
        equal_on_all(program)


if __name__ == "__main__":
    if is_rank():
        fusebox.install()
        fusebox._engine.keep_operators(True)
        run_rank(globals())
    run(globals())

"""Several GPUs in one process against eager: graphs of one device and of both, training, threads, streams, random numbers, guards, sessions.

    devices_gpu.py [--only NAME ...] [--traceback]

Exit code 77, with the reason, where there are fewer than two CUDA devices.
"""

import argparse
import contextlib
import copy
import os
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import traceback

import torch
import torch.nn.functional as F
from torch import nn

import fusebox

A, B = "cuda:0", "cuda:1"
MODES = {"default": {}, "reduce-overhead": {"mode": "reduce-overhead"}}
CALLS = 4  # plainly, recorded, replayed twice
SITUATIONS = []


def situation(f):
    SITUATIONS.append(f)
    return f


def in_modes(f):
    """A situation for every mode."""
    def run():
        said = []
        for name, options in MODES.items():
            fusebox.reset()
            torch.manual_seed(1)
            try:
                said.append(f(**options) or "")
            except Exception as error:
                raise type(error)(f"{name}: {error}") if type(error) in (AssertionError, RuntimeError) else error
        return "; ".join(s for s in said if s)

    run.__name__, run.__doc__ = f.__name__, f.__doc__
    return situation(run)


def flat(value):
    return [t for v in value for t in flat(v)] if isinstance(value, (tuple, list)) else [value]


def same(got, want, what="", **tolerance):
    got, want = flat(got), flat(want)
    assert len(got) == len(want), f"{what}: {len(got)} values instead of {len(want)}"
    for i, (g, w) in enumerate(zip(got, want)):
        assert g.device == w.device, f"{what} {i}: on {g.device} instead of {w.device}"
        torch.testing.assert_close(g, w, **{"rtol": 1e-4, "atol": 1e-4, **tolerance}, msg=lambda text: f"{what} {i}: {text}")


def synchronise():
    for device in (A, B):
        torch.cuda.synchronize(device)


def against_eager(f, make, calls=CALLS, atol=1e-4, **options):
    """The function's results, in several calls on fresh inputs."""
    compiled = fusebox.compile(f, **options)
    for i in range(calls):
        torch.manual_seed(i)
        inputs = make()
        theirs = [t.clone() for t in inputs]
        same(compiled(*inputs), f(*theirs), f"call {i}, result", atol=atol)
        same(inputs, theirs, f"call {i}, input afterwards")
    return compiled


def compiled_well(before):
    after = fusebox.counters()
    assert after["failed_stages"] == before["failed_stages"], "a stage of the compiler failed (FUSEBOX_DEBUG=1 says why)"
    return after["kernels"] - before["kernels"]


def pointwise(x, y):
    return F.gelu(torch.sin(x) + torch.cos(y)) * x + 1, torch.softmax(x + y, -1), (x * y).sum(0)


def make_on(device, *shape):
    return lambda: [torch.randn(*shape, device=device) for _ in range(2)]


@in_modes
def a_graph_for_each_device(**options):
    """One function, called with tensors of either device in turns: the same code, launched where its tensors are."""
    before = fusebox.counters()
    compiled = fusebox.compile(pointwise, **options)
    for i in range(4 * CALLS):
        device = (B, A)[i % 2]
        x, y = make_on(device, 300, 500)()
        same(compiled(x, y), pointwise(x, y), f"call {i} on {device}")
    assert compiled_well(before) > 0, "no kernel was generated"


@in_modes
def current_device_is_another(**options):
    """Tensors of one device while the other is current: nothing follows the current device, and it stays what it was."""
    for tensors, current in ((A, B), (B, A)):
        with torch.cuda.device(current):
            against_eager(pointwise, make_on(tensors, 200, 100), **options)
            assert torch.cuda.current_device() == torch.device(current).index
            assert torch.empty(1, device="cuda").device == torch.device(current)


@in_modes
def device_without_an_index(**options):
    """"cuda" is the current device of the call: another one is another entry."""
    def f(x):
        return torch.arange(5, device="cuda") + x, torch.zeros(3, device="cuda"), x.to("cuda") * 2, x.cuda()

    compiled = fusebox.compile(f, **options)
    x = torch.tensor(2.0)
    for current in (A, B, B, A, B, A):
        with torch.cuda.device(current):
            same(compiled(x), f(x), f"under {current}")


@in_modes
def a_block_under_another_device(**options):
    """torch.cuda.device inside of the function."""
    def f(x):
        y = torch.ones(4, device="cuda") + x.sum().cpu()
        with torch.cuda.device(1):
            z = torch.full((4,), 3.0, device="cuda") * 2
        return y, z, torch.zeros(2, device="cuda") + 1

    compiled = fusebox.compile(f, **options)
    for current in (0, 1, 0):
        with torch.cuda.device(current):
            x = torch.randn(8, device=A)
            same(compiled(x), f(x), f"under {current}")


@in_modes
def equal_kernels_on_both_devices_in_one_graph(**options):
    """Kernels of equal structure share code: each launch goes to the device of its tensors all the same."""
    def f(x, y):
        return torch.tanh(x) * 2 + 1, torch.tanh(y) * 2 + 1, torch.softmax(x, -1), torch.softmax(y, -1)

    before = fusebox.counters()
    against_eager(f, lambda: [torch.randn(64, 1000, device=A), torch.randn(64, 1000, device=B)], **options)
    assert compiled_well(before) >= 2, "fewer kernels than devices"


@in_modes
def copies_between_devices_in_one_graph(**options):
    def f(x, y):
        z = (x.sin() * 2).to(B)
        w = z + y.cos()
        back = (w * 3).to(A, non_blocking=True) - x
        half = w.to(A, torch.float16)
        return back.relu(), w, half + 1, y.to(x.device).contiguous(), torch.cat([x, back.to(x)])

    against_eager(f, lambda: [torch.randn(128, 300, device=A), torch.randn(128, 300, device=B)], atol=2e-3, **options)


@in_modes
def copies_to_the_host_and_back(**options):
    def f(x):
        y = (x * 2).cpu()
        return y.to(B) + 1, (y + 1).cuda(0), y.sum()

    against_eager(f, lambda: [torch.randn(128, 30, device=A)], **options)


@in_modes
def writes_to_inputs_on_both_devices(**options):
    def f(x, y, total):
        x.mul_(2).add_(y.to(A))
        y[1:3] = x[1:3].to(B)
        total.copy_(x.sum(0))
        y.copy_(x + 1)
        return (x * 1).sum()

    against_eager(f, lambda: [torch.randn(10, 7, device=A), torch.randn(10, 7, device=B), torch.zeros(7, device=B)], **options)


@in_modes
def numbers_on_the_host(**options):
    """0-dimensional CPU tensors before and after those of a device, and index tensors on the CPU."""
    scalar, index = torch.tensor(2.5), torch.tensor([3, 0, 2])

    def f(x, y):
        loss = y.square().mean()
        return scalar * loss, loss / scalar, scalar - x, x[index], y[:, index], y.index_put((index,), scalar), torch.where(x > 0, scalar, x)

    against_eager(f, lambda: [torch.randn(5, 6, device=A), torch.randn(5, 6, device=B)], **options)


@situation
def operands_on_two_devices_are_an_error():
    def add(x, y):
        return (x * 2 + y).sin()

    def norm(x, y):
        return F.layer_norm(x, (8,), y, y)

    for f in (add, norm):
        for shapes in ((A, B), (A, "cpu"), (B, A)):
            x, y = torch.randn(4, 8, device=shapes[0]), torch.randn(8, device=shapes[1])
            said = []
            for call in (f, fusebox.compile(f)):
                try:
                    call(x, y)
                    said.append(None)
                except Exception as error:
                    said.append(type(error))
            assert said[0] is said[1] is RuntimeError, f"{f.__name__} of {shapes}: {said}"
    x = torch.randn(4, device=B)
    same(fusebox.compile(add)(x, x), add(x, x))  # nothing was harmed


class TwoParts(nn.Module):
    """The first half on one device, the second on the other, and the result back on the first."""

    def __init__(self, width=64, around=True):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.LayerNorm(2 * width)).to(A)
        self.second = nn.Sequential(nn.Linear(2 * width, width), nn.BatchNorm1d(width), nn.ReLU()).to(B)
        self.around = around

    def forward(self, x):
        h = self.second(self.first(x).to(B)) * 2
        return h.to(A) + x if self.around else (h, self.first[0](x))


def train(model, call, steps, make):
    """Losses, gradients and weights of some steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for i in range(steps):
        torch.manual_seed(100 + i)
        x = make().requires_grad_()
        results = flat(call(x))
        loss = sum(r.square().mean().to(A) for r in results)
        loss.backward()
        losses += [loss.detach(), x.grad]
        if i < steps - 1:
            optimizer.step()
            optimizer.zero_grad()
    return losses + [p.grad for p in model.parameters()] + [t.detach() for t in model.state_dict().values()]


def same_training(make_model, make_input, steps=5, scope=contextlib.nullcontext, **options):
    torch.manual_seed(0)
    mine = make_model()
    theirs = copy.deepcopy(mine)
    with scope():
        got = train(mine, fusebox.compile(mine, **options), steps, make_input)
    synchronise()
    with scope():
        want = train(theirs, theirs, steps, make_input)
    synchronise()
    same(got, want, "value", rtol=2e-3, atol=2e-4)


@in_modes
def a_model_in_two_parts(**options):
    for around in (True, False):
        same_training(lambda: TwoParts(around=around), lambda: torch.randn(32, 64, device=A), **options)


@in_modes
def training_on_the_second_device(**options):
    """With the first device current: the backward runs on a thread of libtorch's own."""
    make = lambda: nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10)).to(B)

    class OnSecond(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make()

        def forward(self, x):
            return self.inner(x.to(B)).log_softmax(-1)

    same_training(OnSecond, lambda: torch.randn(32, 64, device=A), **options)
    same_training(make, lambda: torch.randn(32, 64, device=B), **options)
    assert torch.cuda.current_device() == 0


@in_modes
def parts_compiled_apart(**options):
    """A compiled module on each device, and a copy between them that no graph holds."""
    class Apart(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(64, 128).to(A), nn.Sequential(nn.Linear(128, 64), nn.GELU()).to(B)

        def forward(self, x):
            return self.second(self.first(x).relu().to(B))

    torch.manual_seed(0)
    mine = Apart()
    theirs = copy.deepcopy(mine)
    first, second = fusebox.compile(mine.first, **options), fusebox.compile(mine.second, **options)
    got = train(mine, lambda x: second(first(x).relu().to(B)), 5, lambda: torch.randn(32, 64, device=A))
    want = train(theirs, theirs, 5, lambda: torch.randn(32, 64, device=A))
    same(got, want, "value", rtol=2e-3, atol=2e-4)


@contextlib.contextmanager
def side_streams():
    """A stream of its own on each device, begun after and ended before everything else."""
    streams = [torch.cuda.Stream(device) for device in (A, B)]
    synchronise()
    with torch.cuda.stream(streams[1]), torch.cuda.stream(streams[0]):
        yield streams
    synchronise()


@in_modes
def side_streams_of_both_devices(**options):
    """Busy default streams hold nothing up, and results are right at once on the streams that they were asked on."""
    def f(x, y):
        z = torch.softmax(x, -1) * 2
        return z.sum(0), (z.to(B) + y).sin()

    compiled = fusebox.compile(f, **options)
    for i in range(CALLS):
        x, y = torch.randn(300, 1000, device=A), torch.randn(300, 1000, device=B)
        want = f(x, y)
        if i < 2:  # compiled, and recorded, which may wait
            synchronise()
        else:
            with side_streams() as streams:
                events = []
                for device in (A, B):
                    with torch.cuda.device(device), torch.cuda.stream(torch.cuda.default_stream(device)):
                        torch.cuda._sleep(1_000_000_000)
                        events.append(torch.cuda.Event())
                        events[-1].record()
                got = compiled(x, y)
                for stream in streams:
                    stream.synchronize()
                assert not any(e.query() for e in events), "the compiled graph waited for a default stream"
            same(got, want, f"call {i}")
            continue
        same(compiled(x, y), want, f"call {i}")


@in_modes
def training_on_side_streams(**options):
    same_training(TwoParts, lambda: torch.randn(32, 64, device=A), scope=side_streams, **options)
    same_training(lambda: TwoParts(around=False), lambda: torch.randn(32, 64, device=A), scope=side_streams, **options)


@situation
def backward_uses_the_streams_of_forward():
    """Also on the device whose stream libtorch's engine does not set, while its default stream is busy."""
    w = torch.randn(512, 512, device=B, requires_grad=True)

    def f(x):
        return (torch.tanh(x.to(B)) @ w).to(A) * 2

    compiled = fusebox.compile(f)
    for i in range(3):
        x = torch.randn(64, 512, device=A, requires_grad=True)
        with side_streams() as streams:
            compiled(x).sum().backward() if i < 2 else None
            if i == 2:
                y = compiled(x)
                with torch.cuda.device(B), torch.cuda.stream(torch.cuda.default_stream(B)):
                    torch.cuda._sleep(1_000_000_000)
                y.sum().backward()
                got = w.grad.clone()
        w.grad = None
    synchronise()
    f(x.detach().requires_grad_()).sum().backward()
    same(got, w.grad, "gradient", rtol=1e-3, atol=1e-2)


def in_threads(work, count=4):
    """Runs work(i) in threads at once; the first error is raised here."""
    errors = []

    def run(i):
        try:
            work(i)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


@in_modes
def threads_without_a_device(**options):
    """Fresh threads, which have no context and the first device as their current one, with tensors of either."""
    compiled = fusebox.compile(pointwise, **options)
    inputs = {i: make_on((A, B)[i % 2], 200, 300)() for i in range(6)}
    wanted = {i: pointwise(*inputs[i]) for i in inputs}

    def work(i):
        for _ in range(6):
            same(compiled(*inputs[i]), wanted[i], f"thread {i}")
            assert torch.cuda.current_device() == 0, "the thread's current device has changed"
        torch.cuda.synchronize(inputs[i][0].device)

    in_threads(work, len(inputs))


@in_modes
def replicas_in_threads(**options):
    """As torch.nn.DataParallel: a replica for each device, called at once by a thread that has made its device the current one."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 16)).to(A)
    replicas = {0: model, 1: copy.deepcopy(model).to(B)}
    compiled = {i: fusebox.compile(m, **options) for i, m in replicas.items()}
    for turn in range(5):
        data = {i: torch.randn(32, 64, device=d) for i, d in enumerate((A, B))}
        got = {}

        def work(i):
            with torch.cuda.device(i):
                out = compiled[i](data[i])
                out.square().mean().backward()
                got[i] = [out.detach(), *[p.grad.clone() for p in replicas[i].parameters()]]
                torch.cuda.synchronize(i)

        in_threads(work, 2)
        for i, m in replicas.items():
            m.zero_grad()
            out = m(data[i])
            out.square().mean().backward()
            same(got[i], [out.detach(), *[p.grad for p in m.parameters()]], f"turn {turn}, replica {i}", rtol=1e-3, atol=1e-4)
            m.zero_grad()


def two_layers(x, w, v, b):
    return F.layer_norm(F.gelu(x @ w) @ v + b, b.shape)


@situation
def data_parallel():
    """torch.nn.DataParallel over a module that calls a compiled function, which all its threads share."""
    compiled = fusebox.compile(two_layers)

    class Layers(nn.Module):
        def __init__(self, f):
            super().__init__()
            self.f = f
            self.w, self.v, self.b = (nn.Parameter(torch.randn(*s, device=A) * 0.1) for s in ((64, 256), (256, 16), (16,)))

        def forward(self, x):
            return self.f(x, self.w, self.v, self.b)

    mine = Layers(compiled)
    theirs = Layers(two_layers)
    theirs.load_state_dict(mine.state_dict())
    parallel = nn.DataParallel(mine, device_ids=[0, 1])
    for i in range(CALLS):
        x = torch.randn(48, 64, device=A)
        for model in (parallel, theirs):
            model.zero_grad()
        got, want = parallel(x), theirs(x)
        for out in (got, want):
            out.square().mean().backward()
        same([got, *[p.grad for p in mine.parameters()]], [want, *[p.grad for p in theirs.parameters()]], f"call {i}", rtol=2e-3, atol=1e-4)


@situation
def guards_see_the_device():
    """An entry for each device, as often as the tensors move; constants and parameters that move are noticed."""
    before = fusebox.counters()["graphs"]
    compiled = fusebox.compile(lambda x: torch.tanh(x) + 1)
    for device in (A, B, A, B, A):
        x = torch.randn(40, device=device)
        same(compiled(x), torch.tanh(x) + 1, device)
    assert fusebox.counters()["graphs"] - before == 2, fusebox.counters()
    model = nn.Linear(8, 8).to(A)
    compiled = fusebox.compile(model)
    for device in (A, B, A):
        model.to(device)
        x = torch.randn(4, 8, device=device)
        same(compiled(x), model(x), f"moved to {device}")


def draws(x, y):
    return (F.dropout(x, 0.3), torch.rand_like(y), torch.randn(1000, device=A), torch.randn(1000, device=B), torch.bernoulli(torch.sigmoid(x)),
            F.dropout(y, 0.5))


@in_modes
def random_numbers(**options):
    """Each device has a generator of its own: a seed repeats both, and a device's numbers do not depend on the other's."""
    x, y = torch.randn(100, 30, device=A), torch.randn(100, 30, device=B)
    compiled = fusebox.compile(draws, **options)

    def run(f, a, b, times=CALLS):
        with torch.cuda.device(A):
            torch.cuda.manual_seed(a)
        with torch.cuda.device(B):
            torch.cuda.manual_seed(b)
        return [f(x, y) for _ in range(times)]

    run(compiled, 1, 2)
    first, again, other = run(compiled, 5, 6), run(compiled, 5, 6), run(compiled, 5, 7)
    for one, two, three in zip(first, again, other):
        for a, b, c in zip(one, two, three):
            assert torch.equal(a, b), "the same seeds give other numbers"
            assert torch.equal(a, c) == (a.device == torch.device(A)), "a device's numbers follow the other's seed"
    assert not torch.equal(first[0][2].cpu(), first[0][3].cpu())
    torch._inductor.config.fallback_random = True
    try:
        fusebox.reset()
        compiled = fusebox.compile(draws, **options)
        run(compiled, 1, 2)
        same(run(compiled, 5, 6), run(draws, 5, 6), "with fallback_random", rtol=0, atol=0)
        states = [torch.cuda.get_rng_state(d) for d in (A, B)]
        run(draws, 5, 6)
        for ours, eagers in zip(states, [torch.cuda.get_rng_state(d) for d in (A, B)]):
            assert torch.equal(ours, eagers), "a generator stands elsewhere than after eager's calls"
    finally:
        torch._inductor.config.fallback_random = False


@in_modes
def checkpointed_random_numbers(**options):
    """Dropout on the second device that is computed again in backward."""
    from torch.utils.checkpoint import checkpoint

    class Dropping(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(64, 64).to(B)

        def forward(self, x):
            return checkpoint(lambda h: F.dropout(self.linear(h).relu(), 0.5), x.to(B), use_reentrant=False)

    model = Dropping()
    compiled = fusebox.compile(model, **options)
    for i in range(CALLS):
        x = torch.randn(32, 64, device=A, requires_grad=True)
        y = compiled(x)
        y.sum().backward()
        kept = y != 0  # gradients reach what was kept, and nothing else
        theirs = x.detach().requires_grad_()
        h = (model.linear(theirs.to(B)).relu() * kept * 2).sum()
        model.zero_grad()
        same(x.grad, torch.autograd.grad(h, theirs)[0], f"call {i}", rtol=1e-3, atol=1e-4)


@situation
def results_held_on_both_devices():
    """CUDA graphs of two devices in turns: results that are held stay good, and pools are not mixed up."""
    def f(x):
        y = torch.softmax(x, -1)
        return y, y.sum(0), (x * 2).sin()

    compiled = fusebox.compile(f, mode="reduce-overhead")
    held = []
    for i in range(16):
        x = torch.randn(100, 50, device=(A, B)[i % 2])
        held.append((compiled(x), f(x)))
    for i, (got, want) in enumerate(held):
        same(got, want, f"call {i}")


def rows(run):
    """A recorded session of `run`, as an open database."""
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "s.fusebox")
    synchronise()
    with fusebox.record(path):
        run()
        synchronise()
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    return db


@situation
def graphs_are_recorded_on_each_device():
    compiled = {d: fusebox.compile(pointwise, mode="reduce-overhead") for d in (A, B)}

    def run():
        for i in range(8):
            device = (A, B)[i % 2]
            compiled[device](*make_on(device, 100, 100)())

    events = rows(run).execute("SELECT event, device, replays FROM cuda_graphs").fetchall()
    for device in (A, B):
        assert any(r["event"] == "recorded" and r["device"] == device for r in events), [tuple(r) for r in events]
    both = fusebox.compile(lambda x, y: (x * 2, y * 2), mode="reduce-overhead")
    events = rows(lambda: [both(torch.ones(3, device=A), torch.ones(3, device=B)) for _ in range(3)]).execute("SELECT event, reason FROM cuda_graphs").fetchall()
    assert [r["event"] for r in events] == ["refused"] and "more than one device" in events[0]["reason"], [tuple(r) for r in events]


@situation
def sessions_tell_the_devices_apart():
    """Kernels of both devices in one session, each with its launch, its device and the user's line."""
    model = TwoParts(256)
    compiled = fusebox.compile(model)

    def run():
        for _ in range(4):
            compiled(torch.randn(512, 256, device=A)).square().mean().backward()
            (torch.ones(1000, device=A) * 2, torch.ones(1000, device=B) * 2)

    db = rows(run)
    one = lambda sql: db.execute(sql).fetchone()[0]
    if one("SELECT count(*) FROM gpu_events") == 0:
        return f"no GPU times: {db.execute('SELECT value FROM session_info WHERE key = ' + repr('gpu_times')).fetchone()}"
    devices = {r[0] for r in db.execute("SELECT DISTINCT device FROM gpu_events WHERE kind = 'kernel'")}
    assert devices == {0, 1}, devices
    assert one("SELECT count(*) FROM gpu_events WHERE called_ns IS NULL") == 0, "events without their call"
    assert one("SELECT count(*) FROM gpu_events WHERE start_ns < called_ns") == 0, "work that began before it was asked for: the devices' clocks"
    wrong = db.execute("SELECT e.device, k.device, k.name FROM gpu_events e JOIN kernels k USING(kernel_id) WHERE e.kind = 'kernel' AND "
                       "k.kind IN ('generated', 'eager') AND k.device <> 'cuda:' || e.device").fetchall()
    assert not wrong, [tuple(r) for r in wrong[:5]]
    for device in (0, 1):
        generated = one(f"SELECT count(*) FROM gpu_events e JOIN kernels k USING(kernel_id) WHERE k.kind = 'generated' AND e.device = {device}")
        kernels, lines = db.execute(f"SELECT count(*), count(line) FROM gpu_events WHERE kind = 'kernel' AND device = {device}").fetchone()
        assert generated >= 8, f"{generated} launches of generated kernels on device {device}"
        assert lines > 0.6 * kernels, f"device {device}: {lines} of {kernels} kernels have a line"
    untimed = one("SELECT count(*) FROM launches l JOIN kernels k USING(kernel_id) WHERE k.kind = 'generated' AND l.device_ns IS NULL")
    assert untimed == 0, f"{untimed} launches of generated kernels without the device's time"
    lost = [tuple(r) for r in db.execute("SELECT what, count, detail FROM losses") if r["what"].startswith("gpu")]
    assert not lost, lost
    return f"{one('SELECT count(*) FROM gpu_events')} events"


@situation
def sessions_of_graphs_on_both_devices():
    """Replayed nodes of recordings of either device are the kernels that the recording says."""
    compiled = {d: fusebox.compile(pointwise, mode="reduce-overhead") for d in (A, B)}

    def run():
        for i in range(20):
            device = (A, B)[i % 2]
            compiled[device](*make_on(device, 300, 300)())

    db = rows(run)
    replayed = db.execute("SELECT e.device, e.kernel_id, k.device AS of FROM gpu_events e LEFT JOIN kernels k USING(kernel_id) WHERE graph IS NOT NULL").fetchall()
    if not replayed:
        return "no GPU times of graphs"
    assert {r["device"] for r in replayed} == {0, 1}
    wrong = [tuple(r) for r in replayed if r["kernel_id"] is None or r["of"] != f"cuda:{r['device']}"]
    assert not wrong, wrong[:5]


@situation
def functions_of_the_host_in_a_forked_process():
    """A process that was forked off one that uses CUDA cannot use it, and compiled functions on the CPU do not ask for it there."""
    def f(x):
        return torch.tanh(x) * 2

    compiled, x = fusebox.compile(f), torch.randn(10)
    torch.ones(1, device=B)
    want = compiled(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.equal(compiled(x), want) else 1)
    for _ in range(300):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise AssertionError("the forked process hangs")
    assert os.waitstatus_to_exitcode(status) == 0, f"the forked process ended with {os.waitstatus_to_exitcode(status)}"


@situation
def inference_mode_and_autocast():
    model = TwoParts().eval()
    compiled = fusebox.compile(model)
    x = torch.randn(32, 64, device=A)
    with torch.inference_mode():
        same(compiled(x), model(x), "inference mode", rtol=1e-3)
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        same(compiled(x), model(x), "autocast", rtol=5e-2, atol=5e-2)


@situation
def tuning_of_large_kernels():
    """Launch shapes are timed on the device that the kernel is for, whatever is current."""
    def f(x, y):
        return torch.softmax(x, -1) * y, (x + y).sum(0)

    for current in (A, B):
        with torch.cuda.device(current):
            fusebox.reset()
            compiled = fusebox.compile(f, mode="max-autotune-no-cudagraphs")
            x, y = make_on(B, 4096, 2048)()
            same(compiled(x, y), f(x, y), f"under {current}", rtol=1e-3, atol=1e-2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--traceback", action="store_true")
    options = parser.parse_args()
    if torch.cuda.device_count() < 2:
        print(f"skipped: {torch.cuda.device_count()} CUDA devices, two are needed")
        return 77
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print("peer access:", torch.cuda.can_device_access_peer(0, 1), [torch.cuda.get_device_name(d) for d in (0, 1)], flush=True)
    failed = ran = 0
    for s in SITUATIONS:
        if options.only and s.__name__ not in options.only:
            continue
        ran += 1
        try:
            torch.manual_seed(1)
            before = fusebox.counters()
            said = s() or ""
            synchronise()
            compiled_well(before)
            assert torch.cuda.current_device() == 0, "the current device has changed"
            print(f"ok   {s.__name__} {said}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAIL {s.__name__}: {type(error).__name__}: {str(error)[:600]}", flush=True)
            if options.traceback:
                traceback.print_exc()
            if "CUDA" in str(error) and ("assert" in str(error) or "illegal" in str(error)):
                break
        finally:
            fusebox.reset()
    print(f"{failed} of {ran} situations failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

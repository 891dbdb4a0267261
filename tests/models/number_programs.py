"""Programs that read numbers from tensors (item, tolist, int, float): every call beside eager, and how often graphs broke.

A program is a maker: it gives `(function, draw, breaks)`: `draw(n)` makes the arguments of the n-th call, `breaks` is
how many graph breaks there may be (backward() is one). `python -m models.number_programs [NAME …] [--engine stock]
[--backend NAME]`; stock has capture_scalar_outputs.
"""

import argparse
import copy
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

from models.size_programs import called, differs

PROGRAMS = {}
CALLS = 5


def program(maker):
    PROGRAMS[maker.__name__] = maker
    return maker


def rows(n):
    return (torch.randn(4, 6) * (n + 1),)


@program
def results():
    def run(x):
        return x.sum().item(), x.argmax().item(), int((x > 0).sum()), float(x[0, 0]), float((x > 0).sum()), x + 1
    return run, rows, 0


@program
def arithmetic():
    def run(x):
        mean, count = x.mean().item(), int((x > 0).sum())
        return (mean * 2 + 1, -mean, abs(mean), count * 3 - 1, count // 2, count % 5, 1 - mean, mean / 4, count / 3,
                mean + count, float(count))
    return run, rows, 0


@program
def types_are_numbers():
    def run(x):
        n, v = x.argmax().item(), x.sum().item()
        return (isinstance(n, int), isinstance(v, float), isinstance(n, float), type(n) is int, n is None, v == "text",
                [n, v], {"n": n})
    return run, rows, 0


@program
def what_is_read_is_what_was_there():
    """Writes after the read change tensors, not numbers."""
    def run(x):
        x = x * 1
        before = x[0, 0].item()
        x.add_(1)
        between = x[0, 0].item()
        x[0].zero_()
        return before, between, x[0, 0].item(), x
    return run, rows, 0


@program
def inputs_that_are_written():
    def run(x):
        before = x[1, 1].item()
        x.mul_(3)
        return before, x[1, 1].item(), x
    return run, rows, 0


@program
def beside_tensors():
    def run(x):
        scale = x.abs().max().item()
        count = int((x > 0).sum())
        y = x * 2
        y *= scale
        scale += x.double()
        return x / (float(count) + 1), x - count, scale, y, x.double() * count, x + (0.5 * count + 1)
    return run, rows, 0


@program
def gradients_beside_numbers():
    layer = nn.Linear(6, 3)

    def run(x):
        layer.zero_grad()
        out = layer(x)
        scale = out.detach().abs().max().item()
        loss = ((out * scale).pow(2) + out / (scale + 1)).mean()
        loss.backward()
        return loss.detach(), scale, layer.weight.grad, layer.bias.grad
    return run, rows, 3


@program
def training_log():
    model, log = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)), {"losses": [], "total": 0.0, "seen": 0}

    def run(x):
        model.zero_grad()
        target = x.argmax(-1) % 3
        out = model(x)
        loss = F.cross_entropy(out, target)
        loss.backward()
        log["losses"].append(loss.item())
        log["total"] += loss.item() * x.size(0)
        log["seen"] += int((out.argmax(-1) == target).sum())
        return loss.detach(), list(log["losses"]), log["total"], log["seen"], [p.grad for p in model.parameters()]
    return run, rows, 3


@program
def kept_on_objects():
    class Meter:
        last, total = None, 0.0

    meter = Meter()

    def run(x):
        meter.last = x.mean().item()
        meter.total = x.sum().item() + 1.0
        return meter.last, meter.total, x * 2
    return run, rows, 0


@program
def gradient_norm():
    model = nn.Linear(6, 6)

    def run(x):
        model.zero_grad()
        model(x).square().sum().backward()
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        factor = (1.0 / (norm + 1e-6)).clamp(max=1.0)
        for p in model.parameters():
            p.grad.mul_(factor)
        return norm.item(), [p.grad for p in model.parameters()]
    return run, rows, 3


@program
def lists():
    def run(x):
        values, picks = x[0].tolist(), x.argmax(0).tolist()
        first, *rest = values
        return values, picks, first * 2, rest, len(values), [v + 1 for v in picks]
    return run, rows, 0


@program
def lists_of_inputs_whose_length_varies():
    """The list has the length that it has: each is captured."""
    def run(x, n):
        parts = n.tolist()
        return x.split(parts), sum(parts)
    return run, lambda n: (torch.randn(40 + n), torch.tensor([2, 38 + n] if n % 2 else [10, 2, 28 + n])), 0


@program
def tensors_of_numbers():
    def run(x):
        mean, rest = x.mean().item(), x[0, :2].tolist()
        made = torch.tensor([mean, 2.0]), torch.tensor(mean), torch.tensor([rest, [1.5, mean]]), torch.tensor((mean,), dtype=torch.float64)
        made[1].add_(1)
        counts = (x > 0).sum(), x.argmax()
        more = torch.tensor([*counts]), torch.tensor([[c] for c in counts]), torch.as_tensor([x[0, 0], x.sum()]), torch.tensor([x[0, 1]], dtype=torch.float64)
        more[0].add_(1)
        return made, mean, torch.tensor([mean], dtype=torch.bfloat16), more, torch.add(2, 3.5, out=torch.ones(())), counts
    return run, rows, 0


@program
def literals_stay_numbers():
    def run(x):
        n = torch.tensor([2, 3]).sum().item()
        table = torch.tensor([[1, 2], [3, 4]])
        before = (table * 2).tolist()
        table[0, 1] = 7
        return x[:, :n], n, torch.zeros(n), before, table.tolist(), x[:, before[0][0]]
    return run, rows, 0


@program
def special_values():
    def run(x):
        return ((x.sum() / 0).item(), (x * float("nan")).sum().item(), x.to(torch.float16)[0, 0].item(),
                x.bfloat16()[0, 1].item(), x.to(torch.uint8)[0, 0].item(), (x > 100).sum().item())
    return run, lambda n: (torch.rand(3, 4) * 9,), 0


@program
def a_condition_on_a_number():
    def run(x):
        total = x.sum().item()
        if total > 0:
            return x * 2, total
        return x - 1, total
    return run, rows, 2


@program
def a_sequence_that_ends():
    """EOS: the decision is the program's."""
    def run(x):
        out = []
        for i in range(4):
            x = x - x.mean()
            out.append(x.max().item())
            if (x.abs() < 1e-3 * (i + 1)).all():
                break
        return x, out
    return run, rows, 8


@program
def a_size_from_a_number():
    def run(x):
        n = int((x[:, 0] > 0).sum())
        return x[:n] * 2, torch.zeros(n), n
    return run, rows, 3


@program
def the_larger_of_numbers():
    def run(x):
        n = (x > 0).sum().item()
        return torch.ones(max(n, 5)), max(n, 30), min(n, 3, x.argmax().item() + 1), x[:min(n, 2)]
    return run, rows, 0


@program
def text_and_keys():
    def run(x):
        n = x.argmax().item()
        return f"{n}", {n: "at"}, round(x.sum().item(), 2), x + 1
    return run, rows, 6


@program
def divisors_that_may_be_zero():
    def run(x):
        n = int((x > 1e9).sum())
        try:
            return 1 / n
        except ZeroDivisionError as error:
            return str(error)
    return run, rows, 3


@program
def not_one_element():
    return lambda x: (x * 2).item(), rows, 3


@program
def not_a_whole_number():
    return lambda x: int((x * float("nan")).sum()), rows, 3


@program
def half_precision_beside_numbers():
    return lambda x: (x.bfloat16() * (x.sum().item() / 3),), rows, 3


def run(name, compile, counters, seed):
    """(what went wrong or None, graphs, breaks, seconds). Eager and compiled programs live in worlds of their own."""
    torch.manual_seed(seed)
    eager, draw, allowed = PROGRAMS[name]()
    torch.manual_seed(seed)
    function = PROGRAMS[name]()[0]
    before, compiled, spent, wrong = counters(), compile(function), 0.0, None
    for n in range(CALLS):
        arguments = draw(n)
        given = copy.deepcopy(arguments)
        expected, refused = called(eager, given)
        start = time.perf_counter()
        got, raised = called(compiled, arguments)
        spent += time.perf_counter() - start
        if raised or refused:
            wrong = None if type(raised) is type(refused) else f"{raised!r:.300} where eager gives {refused!r:.300}"
        else:
            wrong = numbers_differ(got, expected) or differs(list(arguments), list(given))
        if wrong:
            wrong = f"call {n}: {wrong}"
            break
    after = counters()
    breaks = after["graph_breaks"] - before["graph_breaks"]
    if not wrong and breaks > allowed:
        wrong = f"{breaks} graph breaks, {allowed} expected at most"
    return wrong, after["graphs"] - before["graphs"], breaks, spent


def numbers_differ(got, expected):
    """Floats are compared as tensors are, everything else exactly."""
    def tensors(value):
        if type(value) is float:
            return torch.tensor(value, dtype=torch.float64)
        if isinstance(value, dict):
            return {k: tensors(v) for k, v in value.items()}
        return [tensors(v) for v in value] if isinstance(value, (list, tuple)) else value
    return differs(tensors(got), tensors(expected))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--engine", choices=("fusebox", "stock"), default="fusebox")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    o = parser.parse_args()
    if o.engine == "stock":
        from torch._dynamo.utils import counters as stock
        torch._dynamo.config.capture_scalar_outputs = True
        compile = lambda f: torch.compile(f, backend=o.backend)
        counters = lambda: {"graphs": stock["stats"]["unique_graphs"],
                            "graph_breaks": sum(stock["graph_break"].values())}
    else:
        import fusebox
        compile, counters = (lambda f: fusebox.compile(f, backend=o.backend)), fusebox.counters
    failed = []
    for name in o.names or PROGRAMS:
        if o.engine == "stock":
            torch._dynamo.reset()
        wrong, graphs, breaks, spent = run(name, compile, counters, o.seed)
        said = f"{name}: graphs {graphs}, breaks {breaks}, {spent:.2f} s {wrong or ''}"
        print("FAILED" if wrong else "ok    ", said, flush=True)
        failed += [name] if wrong else []
    print(f"{len(failed)} of {len(o.names or PROGRAMS)} failed, seed {o.seed}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""Numbers that the program reads from tensors, computed with as Python computes: in the graph where tensors want them, exactly in Python where the program
keeps them. Where Python raises for a value, the program sees what it sees in eager mode."""

import collections
import math

import torch

import fusebox
from checks.script_checks import expect, run

INFINITE = float("inf")


class Meter:
    def __init__(self):
        self.best, self.worst, self.total, self.average, self.count, self.kept = INFINITE, -INFINITE, 0.0, 0.0, 0, []


def best(m, x):
    m.best, m.worst = min(m.best, x.sum().item()), max(x.sum().item(), m.worst, 1.5)
    return x * m.best + m.worst


def meter(m, x):
    value, n = x.sum().item(), x.size(0)
    m.total += value * n
    m.count += n
    m.average = m.total / m.count
    return x * m.average


def perplexity(m, x):
    m.kept.append((math.exp(x.mean().item()), round(x.mean().item(), 3), -math.log(x.abs().sum().item())))
    return x * math.sqrt(x.square().sum().item())


def powers(m, x):
    value = x.square().sum().item()
    m.kept.append(value**0.5)
    return x * value**-0.5 + value**2, x.sum().item() ** 2, x.sum().item() ** 3


def quotients(m, x):
    norm = x.norm().item()
    return x * min(1.0 / (norm + 1e-6), 1.0), x.sum().item() / norm, 3 / norm


def given(m, x):
    """To operators that take numbers."""
    weight = 1 / (1 + x.square().sum().item())
    return torch.lerp(x, x * 2, weight), torch.add(x, x, alpha=-weight / max(1.0, x.norm().item())), x.clone().fill_(weight)


def draws(k):
    torch.manual_seed(k)
    return torch.randint(-40, 40, (3 + k % 3, 4)).float() / 8 + (torch.arange(4) == 0)


def seen(m):
    return m.best, m.worst, m.total, m.average, m.count, m.kept


def test_programs_are_whole_graphs():
    for program in (best, meter, perplexity, powers, quotients, given):
        for backend in ("inductor", "aot_eager"):
            fusebox.reset()
            mine, eagers, before = Meter(), Meter(), fusebox.counters()
            compiled = fusebox.compile(program, backend=backend)
            for k in range(14):
                x = draws(k)
                torch.testing.assert_close(compiled(mine, x), program(eagers, x))
                torch.testing.assert_close(seen(mine), seen(eagers), rtol=1e-6, atol=0)
            now = fusebox.counters()
            expect(now["graph_breaks"] == before["graph_breaks"], f"{program.__name__}: {now['graph_breaks'] - before['graph_breaks']} breaks")
            expect(now["recompiles"] - before["recompiles"] <= 2, f"{program.__name__}: {now['recompiles'] - before['recompiles']} recompiles")


def test_what_the_program_keeps_is_pythons():
    """To the last digit: Python computes it of the number that was read."""
    def kept(x):
        value = x[0].item()
        return value**0.3, value**2, math.exp(value), math.log(value), math.tanh(value), 1 / value, max(value, 0.1), round(value, 2), math.sin(value) / value

    compiled, before = fusebox.compile(kept), fusebox.counters()["graph_breaks"]
    for k in range(1, 60):
        x = torch.tensor([k / 7], dtype=torch.float64)
        expect(compiled(x) == kept(x), f"of {k / 7}: {compiled(x)} where eager gives {kept(x)}")
    expect(fusebox.counters()["graph_breaks"] == before, "there were breaks")


def test_what_raises_raises():
    programs = {
        "quotient": lambda m, x: (m.kept.append(1), x / 2, 1.0 / x[0].item()), "root": lambda m, x: (m.kept.append(1), math.sqrt(x[0].item()) * x),
        "logarithm": lambda m, x: (m.kept.append(1), x * math.log(x[0].item())), "power": lambda m, x: (m.kept.append(1), x * x[0].item() ** -2),
        "broken power": lambda m, x: (m.kept.append(1), x[0].item() ** 0.5), "exponential": lambda m, x: (m.kept.append(1), math.exp(x[0].item())),
        "square": lambda m, x: (m.kept.append(1), x[0].item() ** 2), "sine": lambda m, x: (m.kept.append(1), math.sin(x[0].item())),
    }
    for name, program in programs.items():
        compiled = fusebox.compile(program)
        for value in (2.0, 0.0, -1.0, 1e300, -1e300, 1000.0, INFINITE, -INFINITE, float("nan"), 3.0):
            x, outcomes = torch.tensor([value, 1.0], dtype=torch.float64), []
            for f in (compiled, program):
                m = Meter()
                try:
                    result = repr(f(m, x))
                except (ArithmeticError, ValueError) as error:
                    result = repr(error)
                outcomes.append((result, m.kept))
            expect(outcomes[0] == outcomes[1], f"{name} of {value}: {outcomes[0]} where eager gives {outcomes[1]}")


def test_extremes_are_pythons():
    """Of two that are equal, or one that is no number, it is the one that Python takes."""
    def extremes(x):
        a, b = x[0].item(), x[1].item()
        return max(a, b), min(a, b), x * max(b, a), x * min(b, a), max([a, 0.0, b]), min((a, -0.0, b))

    compiled = fusebox.compile(extremes)
    numbers = (0.0, -0.0, 1.0, -1.0, INFINITE, -INFINITE, float("nan"))
    for a in numbers:
        for b in numbers:
            x = torch.tensor([a, b], dtype=torch.float64)
            expect(repr(compiled(x)) == repr(extremes(x)), f"of {a} and {b}: {compiled(x)} where eager gives {extremes(x)}")


def test_steps_of_adafactor():
    """Its numbers are read from tensors: one graph, whose steps are eager's."""
    weights = []
    for compiler in (lambda f: f, fusebox.compile):
        fusebox.reset()
        torch.manual_seed(0)
        params = [torch.nn.Parameter(torch.randn(shape)) for shape in ((5, 4), (6, 3), (3,))]
        optimizer, before = torch.optim.Adafactor(params, lr=0.05), fusebox.counters()
        step = compiler(lambda: optimizer.step())
        for _ in range(6):
            for p in params:
                p.grad = torch.randn_like(p)
            step()
        weights.append(params)
    torch.testing.assert_close(*weights)
    now = fusebox.counters()
    expect((now["graphs"] - before["graphs"], now["graph_breaks"] - before["graph_breaks"]) == (1, 0), f"{now}")


def test_windows_of_losses():
    def window(m, x):
        loss = x.square().mean()
        m.append(loss.item())
        return loss, sum(m) / len(m)

    compiled, mine, eagers = fusebox.compile(window), collections.deque(maxlen=3), collections.deque(maxlen=3)
    for k in range(8):
        torch.testing.assert_close(compiled(mine, draws(k)), window(eagers, draws(k)))
    torch.testing.assert_close(list(mine), list(eagers))


if __name__ == "__main__":
    run(globals())

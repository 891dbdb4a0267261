"""Conditions that data decide, where one outcome is an exception."""

import torch

from . import script


def outcomes(compile, program, inputs):
    """Results and errors of a compiled program, with what it printed and wrote before."""
    f = compile(program)
    results = []
    for values in inputs:
        try:
            results.append(f(*values))
        except Exception as error:
            results.append((type(error).__name__, str(error)))
    return results


def signs(good=4, bad=2):
    """Tensors of positive numbers, and now and then of negative ones."""
    made = [torch.rand(6) + 0.5 for _ in range(good)]
    for i in range(bad):
        made.insert(2 * i + 1, -made[i])
    return made


@script
def refused_by_a_condition(compile):
    def program(x):
        if (x < 0).any():
            raise ValueError(f"negative: {int((x < 0).sum())}")
        return x.sqrt() * 2

    return outcomes(compile, program, [(x,) for x in signs()])


@script
def refused_by_the_first_call(compile):
    def program(x):
        if not torch.isfinite(x).all().item():
            raise ValueError("not finite")
        return x * 2

    return outcomes(compile, program, [(x / 0,) if i == 0 else (x,) for i, x in enumerate(signs(bad=0))])


@script
def asserted_of_data(compile):
    def program(x):
        assert x.max() < 10, "large"
        assert x.min().item() > -10
        return x.log1p()

    return outcomes(compile, program, [(x * scale,) for x in signs(3, 0) for scale in (1, 1, 100)])


@script
def checked_numbers_are_sizes(compile):
    def program(x, n):
        n = n.item()
        torch._check(n >= 0)
        torch._check(n <= x.shape[0], lambda: f"{n} of {x.shape[0]}")
        return x[:n] * 2, torch.arange(n)

    return outcomes(compile, program, [(torch.randn(8), torch.tensor(n)) for n in (4, 2, 9, 3, 8, -1, 7, 5)])


@script
def checked_numbers_that_are_small(compile):
    def program(x, n):
        n = n.item()
        torch._check(n <= 3)
        torch._check(n != 2, lambda: "two")
        return x[:n] + 1

    return outcomes(compile, program, [(torch.randn(8), torch.tensor(n)) for n in (1, 3, 2, 7, 0, 3)])


@script
def checked_sizes_that_were_used(compile):
    def program(x):
        rows = x.nonzero()
        doubled = rows * 2
        torch._check(rows.size(0) >= 90, lambda: "few")
        assert doubled.shape[0] != 100
        return doubled, rows.sum(0)

    def exactly(x):
        rows = x.nonzero()
        torch._check(rows.size(0) == 96)
        return rows.view(4, 24, -1)[:, 1] + 1

    def holding(count):
        x = torch.zeros(128)
        x[:count] = 1
        return x

    inputs = [(holding(n),) for n in (96, 120, 3, 100, 96, 90, 128, 0)]
    return outcomes(compile, program, inputs), outcomes(compile, exactly, inputs)


@script
def what_was_done_before_the_exception(compile):
    log = []
    state = torch.zeros(6)

    def program(x):
        log.append("begun")
        print("begun", len(log))
        noise = torch.rand(6)
        state.add_(1)
        if (x < 0).all():
            print("refused")
            raise ValueError("negative")
        log.append("went on")
        return x + noise, torch.rand(1)

    torch.manual_seed(3)
    return outcomes(compile, program, [(x,) for x in signs()]), list(log), state, torch.rand(1)


@script
def exceptions_that_the_program_catches(compile):
    def program(x):
        try:
            if (x < 0).any():
                raise ValueError("negative")
            y = x.sqrt()
        except ValueError:
            y = -x
        with torch.no_grad():
            assert (y > 0).all()
        return y * 2

    return outcomes(compile, program, [(x,) for x in signs()])


@script
def bools_of_data_are_results(compile):
    def program(x, n):
        large, found = n.item() > 2, (x > 1).any().item()
        return large, not large, found, type(found), isinstance(large, bool), [large, x * 2], {"n": n.item() != 3}

    return outcomes(compile, program, [(torch.rand(4) * 2, torch.tensor(n)) for n in (1, 2, 3, 4)])


@script
def bools_of_data_are_computed_with(compile):
    def program(x, n):
        large, small = n.item() > 2, n.item() < 0
        y = x * (1 + large)
        if large and not small:
            y = y + 1
        return y, large + 1, large == small, large is True, -large, f"{large}", sum([large, small]), {large: 1}

    return outcomes(compile, program, [(torch.rand(4) * 2, torch.tensor(n)) for n in (1, 2, 3, -4)])


@script
def floats_beside_conditions(compile):
    def program(x):
        mean = x.mean().item()
        if mean > 0.75 or mean != mean:
            raise OverflowError("mean")
        if not mean <= 1e9:
            raise OverflowError("large")
        return x - mean

    return outcomes(compile, program, [(torch.full((5,), v),) for v in (0.5, 0.75, 0.7500001, float("nan"), -float("inf"))])


@script
def gradients_past_a_condition(compile):
    def program(x):
        y = x * 3
        if (y < 0).any():
            raise ValueError("negative")
        return y.log().sum()

    f = compile(program)
    results = []
    for x in signs():
        leaf = x.clone().requires_grad_()
        try:
            f(leaf).backward()
            results.append(leaf.grad)
        except ValueError as error:
            results.append(str(error))
    return results


@script
def indices_that_were_checked(compile):
    def program(table, index):
        if index.max() >= table.shape[0] or index.min() < 0:
            raise IndexError("row")
        return table[index] * 2

    return outcomes(compile, program, [(torch.randn(5, 3), torch.randint(0, high, (4,))) for high in (5, 5, 30, 5, 50)])


@script
def distributions_that_check_their_arguments(compile):
    def program(mean, scale, value):
        normal = torch.distributions.Normal(mean, scale)
        other = torch.distributions.Normal(0.0, 1.0)
        return normal.log_prob(value), torch.distributions.kl_divergence(normal, other), normal.entropy()

    return outcomes(compile, program, [(torch.randn(4), x[:4], torch.randn(4)) for x in signs()])

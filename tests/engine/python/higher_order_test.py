"""torch's operators of functions under the engine's own backends: followed in one graph, or a break where that would not be the same."""

import torch

import fusebox
from checks.script_checks import expect, run

fusebox.install()

INPUTS = (torch.tensor([1.0, 2.0, 3.0]), torch.tensor([-1.0, 2.0, -3.0]))


def nested(x):
    return torch.cond(x.sum() > 0, lambda x: torch.cond(x[0] > 5, lambda x: x + 1, lambda x: x - 1, (x,)), lambda x: x * 3, (x,))


def from_around(x):
    y = x * 2
    return torch.cond(x.sum() > 0, lambda: (y, {"more": x + 1}, None), lambda: (y - x, {"more": x * 2}, None), ())


def by_keywords(x):
    return torch.cond(pred=x.sum() > 0, true_fn=lambda x: x * 2, false_fn=lambda x: x * 3, operands=(x,))


def on_a_number(x):
    return torch.cond(x[0] + 1, lambda x: x * 2, lambda x: x * 3, (x,))


def on_a_size(x):
    return torch.cond(x.shape[0] > 2, lambda x: x * 2, lambda x: x * 3, (x,))


def raising_where_it_is_not_chosen(x):
    places = torch.tensor([0, 1, 9])
    return torch.cond(x.sum() > 0, lambda x: x * 1, lambda x: x[torch.where(x.sum() > 0, places, places.clamp(max=2))], (x,))


EXPECTED = {
    nested: ([0.0, 1.0, 2.0], [-3.0, 6.0, -9.0]),
    by_keywords: ([2.0, 4.0, 6.0], [-3.0, 6.0, -9.0]),
    on_a_number: ([2.0, 4.0, 6.0], [-3.0, 6.0, -9.0]),
    on_a_size: ([2.0, 4.0, 6.0], [-2.0, 4.0, -6.0]),
    raising_where_it_is_not_chosen: ([1.0, 2.0, 3.0], [-1.0, 2.0, -3.0]),
}


def test_conditions():
    for f, wanted in EXPECTED.items():
        g = torch.compile(f, fullgraph=True)
        got = [g(x).tolist() for x in INPUTS for _ in range(2)][::2]
        expect(got == list(wanted), f"{f.__name__}: {got}")
    first, more, none = torch.compile(from_around, fullgraph=True)(INPUTS[1])
    expect(first.tolist() == [-1.0, 2.0, -3.0] and more["more"].tolist() == [-2.0, 4.0, -6.0] and none is None, f"{first}, {more}")


def test_conditions_that_break():
    """Where calling the function that is not chosen would be noticed: by what it draws, writes or keeps, or by gradients."""
    weight, kept = torch.ones(3, requires_grad=True), []
    functions = {
        "draws": lambda x: torch.rand_like(x),
        "writes": lambda x: x.mul_(2),
        "keeps": lambda x: (kept.append(1), x * 2)[1],
        "differentiates": lambda x: x * weight,
        "fits not": lambda x: x[:2],
    }
    for name, function in functions.items():
        f = torch.compile(lambda x: torch.cond(x.sum() > 0, function, lambda x: x * 3, (x,)), fullgraph=True)
        try:
            f(INPUTS[1])
            expect(False, f"a function that {name} is followed")
        except RuntimeError as error:
            expect("cond" in str(error), f"{name}: {error}")
        torch._dynamo.reset()
    expect(kept == [], "what is not chosen has left nothing behind")


if __name__ == "__main__":
    run(globals())

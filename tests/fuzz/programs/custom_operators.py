"""Operators that generated programs call: pure, mutating, printing."""

import torch


@torch.library.custom_op("fuzz::pure", mutates_args=())
def pure(x: torch.Tensor, k: float) -> torch.Tensor:
    return x * k + 1


@pure.register_fake
def _(x, k):
    return torch.empty_like(x)


pure.register_autograd(lambda ctx, g: (g * ctx.k, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "k",
    inputs[1]))


@torch.library.custom_op("fuzz::mutate", mutates_args=("x",))
def mutate(x: torch.Tensor, k: float) -> None:
    x.mul_(0.5).add_(k)


@mutate.register_fake
def _(x, k):
    return None


@torch.library.custom_op("fuzz::say", mutates_args=())
def say(x: torch.Tensor, word: str) -> torch.Tensor:
    print("say", word, tuple(x.shape), round(float(x.detach().double().sum()), 2))
    return x.clone()


@say.register_fake
def _(x, word):
    return torch.empty_like(x)


say.register_autograd(lambda ctx, g: (g, None), setup_context=lambda ctx, inputs, output: None)


@torch.library.custom_op("fuzz::note", mutates_args=())
def note(x: torch.Tensor, word: str) -> None:
    print("note", word, tuple(x.shape))


@note.register_fake
def _(x, word):
    return None

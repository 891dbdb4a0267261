#!/usr/bin/env python3
"""All in-place methods of tensors over all types of what is written and what is read: what eager refuses is refused, with its text; all else is eager's.

    in_place_types.py            every combination (1 to 2 minutes)
    in_place_types.py --every 8  every eighth
"""

import argparse
import sys
import warnings

import torch

import fusebox

# Random numbers, other memory, other sizes, Python functions: not a matter of types.
LEFT_OUT = {"requires_grad_", "share_memory_", "random_", "normal_", "uniform_", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "set_",
            "resize_", "resize_as_", "resize_as_sparse_", "sparse_resize_", "sparse_resize_and_clear_", "rename_", "detach_", "apply_", "map_", "map2_", "as_strided_",
            "index_put_", "put_", "t_"}
VALUES = {"i": torch.tensor([1, 2, 3]), "f": torch.tensor([0.5, 1.5, 2.5]), "b": torch.tensor([True, False, True]), "h": torch.tensor([0.5, 1.5, 2.5]).half(),
          "c": torch.tensor([1 + 1j, 2, 3]), "u": torch.tensor([1, 2, 3], dtype=torch.uint8), "d": torch.tensor([0.5, 1.5, 2.5]).double(),
          "s": torch.tensor(2.5), "S": torch.tensor(2.5, dtype=torch.float64)}
BREAKING = {"nan_to_num_", "logit_"}  # of a tensor that they take for a number
OTHERS = [(), (2,), (2.5,), (True,), ("i",), ("f",), ("h",), ("c",), ("d",), ("b",), ("s",), ("S",), ("i", "f"), ("f", "d")]


def difference(name, self, others):
    """What is to be said of one call; empty: it is eager's, and compiled; None: it is no call of this method."""
    def call(x, *args):
        try:
            made = getattr(x, name)(*args)
        except Exception as error:
            return f"{type(error).__name__}: {error}".split("\n")[0], x
        return f"gives {made.dtype}", made * 1 if made is x else made

    def given():
        return [VALUES[self].clone(), *(VALUES[o].clone() if isinstance(o, str) else o for o in others)]

    want, wanted = call(*given())
    if "TypeError" in want:
        return None
    fusebox.reset()
    counted = fusebox.counters()
    before = counted["graph_breaks"] + counted["eager_runs"]
    got, made = fusebox.compile(call)(*given())
    counted = fusebox.counters()
    if want.startswith("gives") and counted["graph_breaks"] + counted["eager_runs"] > before and name not in BREAKING:
        return f"{name} of {self} with {others} is not compiled"
    same = made.dtype == wanted.dtype and torch.allclose(made.to(torch.complex128), wanted.to(torch.complex128), equal_nan=True, rtol=1e-3)
    return "" if got == want and same else f"{name} of {self} with {others}: {got} {made.tolist()}, eager: {want} {wanted.tolist()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1)
    every = parser.parse_args().every
    warnings.simplefilter("ignore")
    names = [n for n in dir(torch.Tensor) if n.endswith("_") and not n.startswith("_") and n not in LEFT_OUT]
    calls = [(name, self, others) for name in names for self in "ibufhcd" for others in OTHERS][::every]
    said = [text for text in (difference(*call) for call in calls) if text is not None]
    wrong = [text for text in said if text]
    print(*wrong, f"{len(said) - len(wrong)} passed, {len(wrong)} failed", sep="\n")
    return bool(wrong) or not said


if __name__ == "__main__":
    sys.exit(main())

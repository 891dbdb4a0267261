"""Programs at the edges, each in eager and compiled, in processes of their own; what they return and print must be equal.

A process is forked off one that has imported everything and compiled nothing, so that what a program changes, or that it ends its
process, concerns no other.
"""

import argparse
import contextlib
import faulthandler
import io
import os
import sys

import torch

import fusebox
from models import child, edges


def shown(value):
    """What a person can see of a value, as text; tensors with type, dtype, sizes and elements."""
    if isinstance(value, torch.Tensor):
        grad = ", requires_grad" if value.requires_grad else ""
        return f"{type(value).__name__}({str(value.dtype)[6:]}{list(value.shape)} {value.detach().tolist()}{grad})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(k)}: {shown(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    return repr(value)


def perform(program, is_compiled, options):
    """Runs in the child: the program's text."""
    printed = io.StringIO()
    torch.manual_seed(0)
    with contextlib.redirect_stdout(printed):
        try:
            if is_compiled:
                fusebox.install()
                fusebox.config.break_every = options.break_every
                settings = {"backend": options.backend} if options.backend else {}
                result = shown(program(lambda f, **kwargs: torch.compile(f, **settings, **kwargs), fusebox))
            else:
                result = shown(program(lambda f, **kwargs: f, None))
        except Exception as error:
            result = f"raised {type(error).__name__}: {error}"
    return printed.getvalue() + result


def in_a_child(program, is_compiled, options):
    """The text of the program, or how its process ended."""
    def work():
        if not options.verbose:
            faulthandler.disable()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        return perform(program, is_compiled, options).encode(errors="replace")

    text, status = child.run(work, options.limit)
    if status is None:
        return f"hangs: no end within {options.limit} s"
    return text.decode() if status == 0 else f"process ended: {child.ending(status)}"


def difference(want, got):
    """The first place where two texts differ, with a little around it."""
    at = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), min(len(want), len(got)))
    begin = max(0, at - 40)
    return f"    eager    …{want[begin:at + 160]!r}\n    compiled …{got[begin:at + 160]!r}"


# What is not equal yet, and why. Told with every run.
OPEN = {
    "sign_of_zero": "IEEE 754 leaves the sign of maximum(-0.0, 0.0) open; eager's depends on its vector instructions",
    "checkpoint_recomputes": "what a checkpoint saves is memory: its forward is not computed again",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of programs or of their files")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one program")
    parser.add_argument("--break-every", type=int, default=0)
    parser.add_argument("--backend")
    parser.add_argument("--verbose", action="store_true", help="whole texts, and what children write to stderr")
    options = parser.parse_args()
    torch.set_num_threads(1)
    failed = passed = 0
    programs = edges.load()
    child.import_once("torch._dynamo")
    for program in programs:
        subject = program.__module__.rpartition(".")[2]
        if options.only and not {subject, program.__name__} & set(options.only):
            continue
        want, got = (in_a_child(program, compiled, options) for compiled in (False, True))
        if want == got and not want.startswith(("raised", "process ended", "hangs")):
            passed += 1
            continue
        if program.__name__ in OPEN:
            print(f"open {subject}.{program.__name__}: {OPEN[program.__name__]}", flush=True)
            continue
        failed += 1
        print(f"FAIL {subject}.{program.__name__}\n{difference(want, got)}", flush=True)
        if options.verbose:
            print(f"  eager    {want}\n  compiled {got}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

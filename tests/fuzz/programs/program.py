"""A whole program: what the module declares, the function, its inputs, what changes between calls."""

from . import aliases, classes, containers, corners, data, derivatives, flow, functions, language, modules, sizes, standard_library, tensors, text_out  # noqa: F401  they register statements
from .builder import Builder
from .grammar import FEATURES, body, chosen

HEAD = """import collections
import contextlib
import dataclasses
import enum
import functools
import io
import itertools
import math
import operator
import random
import sys
import warnings

import numpy
import torch
import torch.nn.functional as F
from torch import nn
"""
SMALL = [(4, 5), (3, 3), (2, 7), (1, 4), (5, 1), (1, 1), (0, 3), (3, 0), (8, 8)]
LARGE = [(64, 64), (33, 17), (127, 3), (300, 257), (16, 1025), (129, 130)]
# In the float64 run (torch.TYPE becomes float64) the numbers are still those of the narrow type.
DRAWS = ["(torch.randint(-8, 9, ({0}, {1})) / 4).to(getattr(torch, '{2}')).to(torch.{2})",
         *["(torch.randn({0}, {1}).to(getattr(torch, '{2}')).to(torch.{2}))"] * 2]
LAYOUTS = ["{v}"] * 6 + ["{t}.t()", "{w}[:, ::2]", "{v}.repeat(2, 1)[{n}:]", "{w}[:, 1:{m} + 1]",
                         "{v}[:1].expand({n}, -1) if {n} else {v}",
                         "{v}.as_strided(({n}, {m}), (1, {n} or 1)) if {n} * {m} else {v}"]
MORE_ARGUMENTS = {"n": ["call", "3", "call * 2"], "q": ["0.5 + call", "2.0"], "L": ["[x.detach() * 1, torch.ones(1)]",
    "[torch.ones(1)] * 2"], "D": ["{'a': torch.ones(1), 'b': torch.zeros(1)}"], "t": ["'abc'", "'w%d' % call"],
                  "Z": ["[1, 2, call]", "{1, 2}", "(1, call)"]}


def inputs(g, dtype, grad):
    """`inputs(call)`; returns names and kinds of the arguments."""
    n, m = g.pick(LARGE) if g.chance(0.12) else g.pick(SMALL)
    sizes = f"{n}, {m}"
    g.line("def inputs(call):")
    g.depth = 1
    if g.chance(0.2):
        other = g.pick(SMALL)
        g.line(f"n, m = [({n}, {m}), ({n}, {m}), {other}][call % 3]")
    else:
        g.line(f"n, m = {sizes}")
    template = g.pick(DRAWS)

    def draw(rows, columns, of=dtype):
        return template.format(rows, columns, of[6:])

    layout = g.pick(LAYOUTS)
    made = layout.format(v=draw("n", "m"), t=draw("m", "n"), w=draw("n", "2 * m + 2"), n="n", m="m")
    if "[:, ::2]" in layout:
        made += "[:, :m]"
    g.line(f"x = {made}")
    names = {"x": "x"}
    if g.chance(0.6):
        others = [draw("n", "m"), draw("n", "m"), draw("n", "m", "torch.float64")]
        g.line("y = " + g.pick([*others, "x", "x[:]", "x.view(x.shape) if x.is_contiguous() else x", "x.detach().clone()"]))
        names["y"] = "x"
    if grad:
        g.line("x = x.detach().requires_grad_()")
        if "y" in names and g.chance(0.6):
            g.line("y = y.detach().requires_grad_()")
    for kind in g.rng.sample(sorted(MORE_ARGUMENTS), g.number(0, 2)):
        name = g.name(kind)
        g.line(f"{name} = {g.pick(MORE_ARGUMENTS[kind])}")
        names[name] = kind
    if g.has_data:
        names.update(data.arguments(g))
    names["call"] = "n"
    g.line(f"return {', '.join(names)},")
    g.depth = 0
    g.line("")
    return names


def results(g):
    """Some of what is known at the end."""
    known = [n for n, k in g.scopes[-1].items() if k != "any"]
    picked = [n for n in known if g.chance(0.5)] or known[:1]
    return "return " + (", ".join(picked) + "," if g.chance(0.8) else picked[0])


def function(g, names, grad):
    g.line(f"def f({', '.join(names)}):")
    g.depth = 1
    g.line("GLOBALS")
    g.scopes.append(dict(names))
    if grad and g.chance(0.8):
        g.line("x = x * 1")
    body(g, g.budget)
    if g.chance(0.95):
        g.line(results(g))
    g.scopes.pop()
    g.depth = 0


def world(g):
    for _ in range(g.number(0, 4)):
        make = chosen(g, FEATURES)
        if make.__name__ not in g.features:
            g.features.add(make.__name__)
            make(g)


def assigned_names(declared):
    """Names of the module that statements of `f` may assign."""
    lines = [line for part in declared for line in part.split("\n")]
    names = {line.split(" = ")[0].split(",")[0].strip() for line in lines if line[:1].isupper() and " = " in line.split("(")[0]}
    return ["LOG", *sorted(names - {"PEEK"})]


def changing(g):
    """`change(call)`, which does what the features want between calls."""
    if not g.changes:
        return []
    changed, names = ["", "def change(call):"], set()
    for text in g.changes:
        parts = text.split("\n")
        names.update(name.strip() for line in parts if line.startswith("global ") for name in line[7:].split(","))
        changed.append(f"    if call {g.pick(['>= 1', '== 2', '% 2', '> 1'])}:")
        changed += ["        " + line for line in parts if not line.startswith("global ")]
    if names:
        changed.insert(2, "    global " + ", ".join(sorted(names)))
    return changed


def constants(g, options, grad, calls):
    lines = [f"CALLS = {calls}"]
    if grad:
        lines.append("GRAD = True")
    broken = getattr(options, "break_every", None)
    broken = g.pick([0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 7, 9, 12]) if broken is None else broken
    if broken:
        lines.append(f"BREAK_EVERY = {broken}")
    backend = getattr(options, "backend", None) or g.pick(["inductor", "aot_eager", "aot_eager"])
    if backend != "inductor":
        lines.append(f"BACKEND = {backend!r}")
    if getattr(options, "sizes", False):
        lines.append(f"DYNAMIC = {g.pick([None, None, None, True, True, False])}")
    return lines


def generate(seed, index, options=None):
    """The text of program `index` of `seed`."""
    varying = getattr(options, "sizes", False)
    g = sizes.SizesBuilder(f"sizes:{seed}:{index}") if varying else Builder(f"{seed}:{index}")
    g.features, g.without = set(), getattr(options, "without", ())
    g.has_data = getattr(options, "data", False)
    grad = g.uses_grad = g.chance(0.4)
    dtype = g.pick(["torch.float32"] * 6 + ["torch.float64", "torch.bfloat16"])
    calls = g.pick([4, 5, 6, 8] if varying else [2, 3, 3, 4, 6])
    if varying:
        sizes.prepare(g)
    if g.has_data:
        data.prepare(g)
    if not varying and not g.has_data or g.chance(0.5):
        world(g)
    declared, g.text = g.declared, []
    function(g, sizes.inputs(g, dtype, grad, DRAWS, calls) if varying else inputs(g, dtype, grad), grad)
    lines = [line.replace("GLOBALS", "global " + ", ".join(assigned_names(declared))) for line in g.text]
    start = ["LOG, COUNT = [], [0]", "class Oops(Exception):\n    pass"]
    return "\n".join([HEAD, *constants(g, options, grad, calls), *start, *declared, "", *lines, *changing(g)]) + "\n"

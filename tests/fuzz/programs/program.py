"""A whole program: what the module declares, the function, its inputs, what changes between calls."""

from . import classes, containers, flow, functions, modules, tensors, text_out  # noqa: F401  they register statements
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
    draw = g.pick(["torch.randint(-8, 9, ({0}, {1})).to({2}) / 4", "torch.randn({0}, {1}).to({2})",
                   "torch.randn({0}, {1}).to({2})"])
    layout = g.pick(LAYOUTS)
    made = layout.format(v=f"({draw.format('n', 'm', dtype)})", t=f"({draw.format('m', 'n', dtype)})",
                         w=f"({draw.format('n', '2 * m + 2', dtype)})", n="n", m="m")
    if "[:, ::2]" in layout:
        made += "[:, :m]"
    g.line(f"x = {made}")
    names = {"x": "x"}
    if g.chance(0.6):
        g.line("y = " + g.pick([draw.format("n", "m", dtype), draw.format("n", "m", dtype), "x", "x[:]",
                                "x.view(x.shape) if x.is_contiguous() else x", "x.detach().clone()", draw.format("n",
            "m", "torch.float64")]))
        names["y"] = "x"
    if grad:
        g.line("x = x.detach().requires_grad_()")
        if "y" in names and g.chance(0.6):
            g.line("y = y.detach().requires_grad_()")
    for kind in g.rng.sample(sorted(MORE_ARGUMENTS), g.number(0, 2)):
        name = g.name(kind)
        g.line(f"{name} = {g.pick(MORE_ARGUMENTS[kind])}")
        names[name] = kind
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


def generate(seed, index, options=None):
    """The text of program `index` of `seed`."""
    g = Builder(f"{seed}:{index}")
    g.features = set()
    grad = g.uses_grad = g.chance(0.4)
    dtype = g.pick(["torch.float32"] * 6 + ["torch.float64", "torch.bfloat16"])
    world(g)
    declared, g.text = g.declared, []
    names = inputs(g, dtype, grad)
    function(g, names, grad)
    lines = g.text
    assigned = sorted({line.split(" = ")[0].split(",")[0].strip() for part in declared for line in part.split("\n") if line[:1].isupper() and " = " in line.split("(")[0]} - {"PEEK"})
    lines = [line.replace("GLOBALS", "global " + ", ".join(["LOG", *assigned])) for line in lines]
    changes = []
    if g.changes:
        changes = ["", "def change(call):"] + [f"    if call {g.pick(['>= 1', '== 2', '% 2', '> 1'])}:\n" + "\n".join("        " + line for line in c.split("\n")) for c in g.changes]
        names = sorted({n.strip() for c in g.changes for line in c.split("\n") if line.startswith("global ") for n in line[7:].split(",")})
        changes = [line.replace("        global " + "", "        global ") for line in changes]
        if names:
            changes = [line for line in changes]
            changes[2:] = ["    global " + ", ".join(names)] + ["\n".join(part for part in c.split("\n") if not part.strip().startswith("global ")) for c in changes[2:]]
    constants = [f"CALLS = {g.pick([2, 3, 3, 4, 6])}"]
    if grad:
        constants.append("GRAD = True")
    broken = getattr(options, "break_every", None)
    if broken is None:
        broken = g.pick([0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 7, 9, 12])
    if broken:
        constants.append(f"BREAK_EVERY = {broken}")
    backend = getattr(options, "backend", None) or g.pick(["inductor", "aot_eager", "aot_eager"])
    if backend != "inductor":
        constants.append(f"BACKEND = {backend!r}")
    body_text = "\n".join([*declared, "", *lines, *changes])
    return "\n".join([HEAD, *constants, "LOG, COUNT = [], [0]", "class Oops(Exception):\n    pass", body_text]) + "\n"

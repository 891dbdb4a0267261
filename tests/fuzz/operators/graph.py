"""A random graph as the text of a program. Every line is run while it is chosen: all are valid, their shapes known."""

import random
import warnings

import torch
import torch.nn.functional as F

from . import data_movement, described, elementwise, layers, reductions  # noqa: F401  they register operators
from .table import OPERATORS

HEAD = "import torch\nimport torch.nn.functional as F\n"
FLOATS = ["float32"] * 5 + ["float64", "bfloat16", "float16"]
OTHERS = ["int64", "int32", "uint8", "bool", "int8", "int16", "complex64"]
TINY = [(4, 5), (3,), (), (1,), (0,), (2, 3, 4), (1, 1), (5, 1), (1, 7), (0, 3), (3, 0), (2, 2, 3, 3), (7,), (33,), (1,
    3, 5, 5), (13, 2)]
LARGE = [(127, 33), (1025,), (64, 64), (257, 129), (4, 8, 16, 16), (31, 1, 65), (2, 3, 33, 17), (1, 1025), (1025, 3),
         (5, 7, 11, 13), (100003,), (16385, 7), (3, 16385)]
SPECIALS = ["float('nan')", "float('inf')", "-float('inf')", "-0.0", "1e30", "1e-40", "65504.0", "6e-8"]
COMPLEX_SPECIALS = ["complex('nan')", "complex('inf')", "complex(0, float('-inf'))", "complex(-0.0, 0.0)", "complex(1e30, 0)", "0j"]
LAYOUTS = ["contiguous"] * 5 + ["transposed", "gaps", "offset", "expanded", "channels_last", "steps", "overlapping", "conjugate"]


class Node:
    """A variable of the graph: its name, its value while generating, and whether eager's rounding cannot matter to it."""

    def __init__(self, name, value, is_exact, is_leaf=False):
        self.name, self.value, self.is_exact, self.is_leaf = name, value, is_exact, is_leaf


class Graph:
    def __init__(self, seed, index, device, dynamic=False):
        self.rng = random.Random(f"operators {seed}:{index}")
        self.device = device
        # Extents that are one longer in every call; equal ones stay equal. Each is drawn when it is first met.
        self.growing = {0: False, 1: False} if dynamic else None
        self.nodes, self.lines, self.inputs = [], [], []
        self.is_large = self.rng.random() < 0.2
        self.has_specials = self.rng.random() < 0.12
        self.limit = 400_000 if self.is_large else 3000
        self.namespace = {"torch": torch, "F": F, "call": 0}
        self.grad = self.rng.random() < 0.45
        self.count = 0

    def pick(self, items):
        return self.rng.choice(list(items))

    def chance(self, p):
        return self.rng.random() < p

    def int(self, low, high):
        return self.rng.randint(low, high)

    # Nodes by what they are.
    def any(self, test=lambda t: True, is_exact=False):
        fitting = [n for n in self.nodes if test(n.value) and (n.is_exact or not is_exact)]
        return self.pick(fitting[-7:]) if fitting else None

    def floating(self, least=0, most=9, is_exact=False):
        return self.any(lambda t: t.is_floating_point() and least <= t.dim() <= most, is_exact)

    def integral(self, least=0):
        return self.any(lambda t: t.dtype in (torch.int64, torch.int32, torch.int16, torch.int8,
                                              torch.uint8) and t.dim() >= least)

    def partner(self, node):
        """A tensor that may stand beside `node` in an operator of two, or a number."""
        def fits(t):
            return all(a == b or a == 1 or b == 1 for a, b in zip(reversed(t.shape), reversed(node.value.shape)))
        other = self.any(fits)
        return other.name if other and self.chance(0.85) else self.pick(["2", "0.5", "-3", "1.25", "0", "True"])

    # Text.
    def extent(self, n, times=1, more=0):
        """`times * n + more`, where `n` is an extent of the tensor that is made of it."""
        if isinstance(n, str):
            return n
        if self.growing is not None and self.growing.setdefault(n, self.chance(0.75)):
            return f"{times * n + more} + {'' if times == 1 else f'{times} * '}call"
        return str(times * n + more)

    def draw(self, shape, dtype):
        device = "" if self.device == "cpu" else f", device={self.device!r}"
        size = f"({', '.join(self.extent(n) for n in shape)}{',' if shape else ''})"
        if dtype == "bool":
            return f"torch.rand({size}{device}).gt(0.5)"
        if dtype == "complex64":
            text = f"torch.randn({size}{device}, dtype=torch.complex64)"
            return self.with_special(text, COMPLEX_SPECIALS, shape, dtype, size, device)
        if dtype.startswith(("int", "uint")):
            text = f"torch.randint({0 if dtype[0] == 'u' else -9}, 10, {size}{device}, dtype=torch.{dtype})"
            return self.with_special(text, [f"torch.iinfo(torch.{dtype}).min", f"torch.iinfo(torch.{dtype}).max", "0"], shape, dtype, size, device)
        drawn = self.pick(["torch.randn({})", "torch.randn({})", "(torch.randint(-8, 9, {}) / 4)"]).format(size + device)
        # In the float64 run (torch.TYPE becomes float64) the numbers are still those of the narrow type.
        text = f"{drawn}.to(getattr(torch, {dtype!r})).to(torch.{dtype})"
        return self.with_special(text, SPECIALS, shape, dtype, size, device)

    def with_special(self, text, values, shape, dtype, size, device):
        """Some elements of the tensor replaced by one of `values`, where this graph has such."""
        if not self.has_specials:
            return text
        share = 0.1 if shape else 0.5
        return f"torch.where(torch.rand({size}{device}) < {share}, {self.pick(values)}, {text}).to(torch.{dtype})"

    def arranged(self, shape, dtype):
        """A tensor of that shape, laid out in memory in some way."""
        how = self.pick(LAYOUTS)
        if not shape or (how == "transposed" and len(shape) < 2) or (how == "channels_last" and len(shape) != 4):
            how = "contiguous"
        if how == "transposed":
            order = self.rng.sample(range(len(shape)), len(shape))
            back = [order.index(i) for i in range(len(shape))]
            return f"{self.draw([shape[i] for i in order], dtype)}.permute({', '.join(map(str, back))})"
        if how == "gaps":
            return f"{self.draw([*shape[:-1], self.extent(shape[-1], 2, 1)], dtype)}[..., 1::2]"
        if how == "offset":
            return f"{self.draw([self.extent(shape[0], 1, 3), *shape[1:]], dtype)}[2:-1]"
        if how == "expanded":
            axis = self.int(0, len(shape) - 1)
            one = [1 if i == axis else n for i, n in enumerate(shape)]
            return f"{self.draw(one, dtype)}.expand({', '.join(self.extent(n) for n in shape)})"
        if how == "channels_last":
            return f"{self.draw(shape, dtype)}.to(memory_format=torch.channels_last)"
        if how == "overlapping" and len(shape) > 1 and shape[0] > 0 and shape[1] > 0:
            inner = shape[1:]
            whole = self.extent(shape[0], 1, shape[1] - 1)
            return f"{self.draw([whole, *shape[2:]], dtype)}.unfold(0, {inner[0]}, 1).movedim(-1, 1)"
        if how == "conjugate" and dtype.startswith("complex"):
            return f"{self.draw(shape, dtype)}.conj()"
        if how == "steps":
            return f"{self.draw([self.extent(shape[0], 3, 1), *shape[1:]], dtype)}[1::3]"
        return self.draw(shape, dtype)

    def add_input(self):
        shapes = LARGE if self.is_large and self.chance(0.7) else TINY
        shape = self.pick([n.value.shape for n in self.nodes]) if self.nodes and self.chance(0.5) else self.pick(shapes)
        dtype = self.pick(FLOATS) if self.chance(0.75) or not self.nodes else self.pick(OTHERS)
        if self.nodes and self.chance(0.5) and self.nodes[0].value.is_floating_point() and dtype in FLOATS:
            dtype = str(self.nodes[0].value.dtype)[6:]
        self.new_input(shape, dtype)

    def new_input(self, shape, dtype):
        name = f"a{len(self.inputs)}"
        text = self.arranged(shape, dtype)
        needs = self.grad and dtype in FLOATS and self.chance(0.8)
        self.inputs.append((name, text + ".detach().requires_grad_()" if needs else text))
        self.nodes.append(Node(name, eval(text.replace(f", device={self.device!r}", ""), self.namespace), True))
        self.namespace[name] = self.nodes[-1].value
        return name

    def small(self, value):
        return all(t.numel() <= self.limit for t in (value if isinstance(value, (tuple,
            list)) else [value]) if isinstance(t, torch.Tensor))

    def attempt(self, made):
        """Takes a line over where it runs: (text, is_exact) of an expression, or with `target` of a statement."""
        text, is_exact = made[:2]
        if len(made) == 3:  # a write in place
            target = made[2]
            copy = target.value.detach().clone(memory_format=torch.preserve_format)
            trial = dict(self.namespace, **{target.name: copy})
            exec(text, trial)
            target.value = copy
            target.is_exact = target.is_exact and is_exact
            self.lines.append(text)
            # What shares its memory is not followed: after a write nothing that was there counts as exact.
            for node in self.nodes:
                node.is_exact = False
            self.namespace[target.name] = copy
            return
        value = eval(text, dict(self.namespace))
        if not isinstance(value, torch.Tensor) or not self.small(value) or value.layout != torch.strided:
            return
        self.count += 1
        name = f"t{self.count}"
        self.lines.append(f"{name} = {text}")
        self.nodes.append(Node(name, value.detach(), is_exact))
        self.namespace[name] = value.detach()

    def grow(self, steps):
        tables, weights = zip(*OPERATORS)
        for _ in range(steps * 2):
            if len(self.lines) >= steps:
                break
            made = self.rng.choices(tables, weights)[0](self)
            if made is None:
                continue
            try:
                self.attempt(made)
            except Exception:
                continue

    def text(self):
        arguments = ", ".join(name for name, _ in self.inputs)
        used = [n for n in self.nodes if n.name.startswith("t")]
        results = [n.name for n in used if self.chance(0.45)] or [n.name for n in used[-1:]] or [self.nodes[0].name]
        lines = [HEAD]
        if self.grad:
            lines.append("GRAD = True")
        if self.growing is not None:
            lines.append("DYNAMIC = True")
        lines += [f"CALLS = {self.pick([1, 2, 2]) if self.growing is None else 3}",
                  f"SHAPES = {[tuple(n.value.shape) for n in self.nodes if n.name[0] == 'a']}", "", "def inputs(call):"]
        lines += [f"    {name} = {text}" for name, text in self.inputs]
        lines += [f"    return {arguments},", "", f"def f({arguments}):"]
        if self.grad:
            lines += [f"    {name} = {name} * 1" for name,
                      text in self.inputs if "requires_grad_" in text and self.chance(0.9)]
        lines += [f"    {line}" for line in self.lines] + [f"    return {', '.join(results)},"]
        return "\n".join(lines) + "\n"


def generate(seed, index, options=None):
    """The text of graph `index` of `seed`."""
    device = getattr(options, "device", "cpu")
    graph = Graph(seed, index, device, getattr(options, "dynamic", False))
    described.descriptions()  # loading them draws random numbers
    state = torch.get_rng_state()
    torch.manual_seed(0)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for _ in range(graph.int(1, 4)):
            graph.add_input()
        graph.grow(graph.pick([2, 4, 8, 8, 14, 24]))
    torch.set_rng_state(state)
    text = graph.text()
    backend = getattr(options, "backend", None)
    broken = getattr(options, "break_every", None)
    extra = (f"BACKEND = {backend!r}\n" if backend else "") + (f"BREAK_EVERY = {broken}\n" if broken else "")
    return text.replace("CALLS = ", extra + "CALLS = ", 1)

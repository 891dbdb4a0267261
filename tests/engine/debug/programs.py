"""The programs that are debugged, by what they show."""

SMALL = """\
import torch


def helper(x):
    y = x * 2
    return y + 1


@torch.compile
def f(x):
    a = helper(x)
    b = torch.relu(a)
    return b.sum(-1)


print("result", f(torch.ones(4, 8)).tolist())
"""

BREAKS = """\
import torch


def inner(x):
    n = int(x.sum().item() > 0)
    return x + n


@torch.compile
def f(x):
    a = x * 3
    b = inner(a)
    return b * 2


print("result", f(torch.ones(4)).tolist())
"""

RECOMPILES = """\
import torch


@torch.compile(dynamic=False)
def f(x, k):
    return x * k + 1


for k in (2, 3):
    print("result", f(torch.ones(4), k).tolist())
"""

# A sum that is read by two chains, so that there is something to fuse and to leave apart; compiled anew each time.
SPECIALISES = """\
import torch


@torch.compile(dynamic=True)
def f(x):
    y = x + 1
    if x.shape[0] == 6:
        y = y * 2
    return y.reshape(-1).sum()


print("result", f(torch.ones(6, 4)).item())
"""

FUSES = """\
import torch


def f(x):
    a = torch.exp(x) * 2
    return a.sum(-1), torch.sin(a) + 1


torch.manual_seed(0)
x = torch.randn(64, 64)
for _ in range({times}):
    torch.compiler.reset()
    s, t = torch.compile(f)(x)
    a = torch.exp(x) * 2
    print("right", torch.allclose(s, a.sum(-1), rtol=1e-4), torch.allclose(t, torch.sin(a) + 1, atol=1e-5))
"""

# A saved graph of a library that is not loaded: the compiler's own error.
CANNOT_COMPILE = """
from fusebox._engine_access import _engine

meta = '[{"dtype":"float32","sizes":[4],"strides":[1]}]'
graph = _engine.SavedGraph('{"format":"fusebox-graph","version":1,"name":"broken","symbols":[],"stacks":[],"constants":[],"nodes":['
                           '{"kind":"placeholder","name":"x","index":0,"args":[],"out":%s},'
                           '{"kind":"call","name":"odd","op":"lost::no_such_operator","args":[{"v":[0,0]}],"out":%s},'
                           '{"kind":"output","name":"output","args":[{"v":[1,0]}],"out":[]}]}' % (meta, meta))
try:
    _engine.CompiledGraph(graph, [])
except Exception as error:
    print("raised:", error)
"""

TRAINS = """\
import torch

w = torch.ones(8, requires_grad=True)


@torch.compile
def f(x):
    return (torch.sigmoid(x * w)).sum()


f(torch.ones(8)).backward()
print("grad", w.grad[0].item())
"""


# Compiles once, and nothing ever again.
SPINS = """\
import time

import torch


@torch.compile
def f(x):
    return x.sin() + 1


f(torch.ones(4))
print("spinning", flush=True)
while True:
    time.sleep(0.01)
"""


def line_of(text, part):
    return next(i for i, line in enumerate(text.splitlines(), 1) if part in line)

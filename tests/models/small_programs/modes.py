"""Modes of libtorch and random numbers: gradient modes, autocast, seeds, dropout."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from . import script


def rows(*shape):
    return torch.randn(*(shape or (4, 5)))


@script
def gradient_modes_as_blocks(compile):
    @compile
    def f(x):
        with torch.no_grad():
            a = x * 2
            with torch.enable_grad():
                b = x * 3
        with torch.set_grad_enabled(False):
            c = x * 4
        return a, b, c, x * 5

    x = rows().requires_grad_()
    return [(o, o.requires_grad) for o in f(x)], torch.is_grad_enabled()


@script
def gradient_modes_as_decorators(compile):
    @torch.no_grad()
    def quiet(x):
        return x * 2

    @compile
    @torch.enable_grad()
    def loud(x):
        return quiet(x) + x

    @torch.inference_mode()
    def infer(x):
        return (x * 2).sum()

    x = rows().requires_grad_()
    with torch.no_grad():
        a = loud(x)
    return a.requires_grad, compile(quiet)(x), compile(infer)(x).clone(), loud(x).requires_grad


@script
def modes_across_breaks_and_errors(compile):
    @compile
    def f(x, fail):
        with torch.no_grad():
            print("inside")
            n = x.sum().item()
            if fail:
                raise RuntimeError("stop")
            y = x * n
        return y, torch.is_grad_enabled()

    x = rows().requires_grad_()
    out = [f(x, False)]
    try:
        f(x, True)
    except RuntimeError as e:
        out.append((str(e), torch.is_grad_enabled()))
    out.append(f(x, False))
    return out


@script
def set_grad_enabled_left_on(compile):
    @compile
    def f(x, on):
        torch.set_grad_enabled(on)
        return x * 2

    x = rows().requires_grad_()
    try:
        out = [f(x, False).requires_grad, torch.is_grad_enabled(), f(x, True).requires_grad, torch.is_grad_enabled()]
    finally:
        torch.set_grad_enabled(True)
    return out


@script
def inference_mode_block(compile):
    @compile
    def f(x):
        with torch.inference_mode():
            y = x * 2
        return y + 1, torch.is_inference_mode_enabled()

    return f(rows())


@script
def autocast_blocks(compile):
    w = rows(5, 3)

    @compile
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            a = x @ w
            with torch.autocast("cpu", enabled=False):
                b = a.float() @ w.t()
            c = F.linear(x, w.t())
        return a, b, c, x @ w

    @compile
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def g(x):
        return (x @ w).softmax(-1)

    return f(rows()), g(rows())


@script
def autocast_training(compile):
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    f = compile(net)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = f(rows()).float().pow(2).mean()
    loss.backward()
    return loss.bfloat16(), [p.grad.bfloat16() for p in net.parameters()]


@script
def autocast_without_autograd(compile):
    """Where autograd's keys are off too, operators that autocast has a rule for meet it whole; what it has none for is cast inside."""

    def f(x, w):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            image = F.conv2d(x[None, None], w[None, None, :2, :2])
            heads = F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])
            loss = F.cross_entropy(x.bfloat16(), torch.tensor([0, 1, 2, 3]))
            pairs = torch.linalg.pinv(w @ w.t() + 9 * torch.eye(5)), torch.linalg.pinv(w.bfloat16().float(), hermitian=True)
            results = image, heads, loss, x @ w[0], F.prelu(x, w[0, :1]), *pairs
        return [t.new_zeros(t.shape) for t in results]

    g, out = compile(f), []
    for mode in (torch.inference_mode, torch.no_grad, torch.enable_grad):
        with mode():
            out.append(g(rows(), rows(5, 5)))
    return out


@script
def autocast_around_writes(compile):
    """Kernels of operators that autocast has no rule for write to what they make: such an operator is recorded whole."""

    def f(x):
        mask = x.new_zeros(8, 8)
        for n, down in enumerate((slice(0, -3), slice(-3, None))):
            for m, across in enumerate((slice(0, -5), slice(-5, None))):
                mask[down, across] = 2 * n + m
        return x @ mask[:5] + torch.diag(x[0, :4]).sum(), torch.block_diag(x, x), mask.index_fill(0, torch.tensor([1]), 7.0), mask.rot90()

    g = compile(f)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return g(rows(8, 5))


@script
def random_streams(compile):
    @compile
    def f(x):
        return x + torch.randn(4, 5), torch.rand_like(x), torch.randint(0, 10, (3,)), torch.randperm(6), torch.bernoulli(x.sigmoid()), x.clone().uniform_()

    out = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        out.append(f(torch.ones(4, 5)))
        out.append(f(torch.zeros(4, 5)))
    return out, torch.rand(2)


@script
def dropout_streams(compile):
    net = nn.Sequential(nn.Linear(5, 5), nn.Dropout(0.5), nn.Linear(5, 5))
    f = compile(net)
    x = rows()
    torch.manual_seed(3)
    a = f(x)
    a.sum().backward()
    net.eval()
    b = f(x)
    return a, b, net[0].weight.grad, torch.rand(1)


@script
def seeds_inside(compile):
    @compile
    def f(x, seed):
        torch.manual_seed(seed)
        a = torch.rand(3)
        torch.manual_seed(seed)
        return a, torch.rand(3) + x.sum() * 0

    return f(rows(), 1), f(rows(), 2), torch.rand(2)


@script
def generators_of_random_numbers(compile):
    g = torch.Generator().manual_seed(5)

    @compile
    def f(x):
        return x + torch.randn(5, generator=g)

    return f(rows()), f(rows()), torch.rand(2, generator=g)


@script
def python_random_numbers(compile):
    import random

    @compile
    def f(x):
        return x + random.random(), random.choice([1, 2, 3]), random.randint(0, 9)

    random.seed(0)
    return f(rows()), f(rows()), random.random()


@script
def default_dtype_and_device_blocks(compile):
    @compile
    def f(x):
        with torch.device("cpu"):
            a = torch.ones(3)
        return a + x.sum(), torch.get_default_dtype()

    return f(rows()), f(rows())


@script
def thread_and_backend_settings(compile):
    @compile
    def f(x):
        return x + torch.get_num_threads(), torch.backends.mkldnn.is_available(), torch.backends.cudnn.enabled, torch.__version__ > "2"

    return f(rows())


@script
def deterministic_blocks(compile):
    @compile
    def f(x):
        before = torch.are_deterministic_algorithms_enabled()
        return x * 2, before, torch.get_float32_matmul_precision()

    out = [f(rows())]
    torch.set_float32_matmul_precision("high")
    try:
        out.append(f(rows()))
    finally:
        torch.set_float32_matmul_precision("highest")
    return out


@script
def default_device_as_a_block(compile):
    @compile
    def f(x):
        with torch.device("meta"):
            a = torch.ones(3)
            with torch.device("cpu"):
                b = torch.zeros(2, 3)
            torch._dynamo.graph_break()
            c = torch.arange(4)
        d = torch.full((3,), 2.0)
        return a.device, b + x, c.device, d * x

    @compile
    def leaves(x, how):
        try:
            with torch.device("meta"):
                if how == "raise":
                    raise KeyError(how)
                if how == "return":
                    return torch.empty(2).device
                y = nn.Linear(2, 2)
        except KeyError:
            y = nn.Linear(2, 2)
        return y.weight.device, torch.ones(1) + x

    @compile
    def given(x):
        return torch.ones(3) + x, torch.empty(3, device="meta").device

    x = torch.ones(3)
    out = [f(x), f(x + 1)]
    out += [leaves(x, how) for how in ("raise", "return", "fall", "raise")]
    with torch.device("cpu"):
        out += [given(x), f(x)]
    return out, torch.ones(1).device, torch._C._len_torch_function_stack()


class Times(TorchFunctionMode):
    """Multiplies sines, and counts what it is asked."""

    def __init__(self, factor):
        self.factor, self.asked = factor, []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.asked.append((getattr(func, "__name__", ""), len(args), [t is torch.Tensor for t in types]))
        made = func(*args, **(kwargs or {}))
        return made * self.factor if func is torch.sin else made


@script
def function_modes_inside(compile):
    @compile
    def f(x, factor):
        with Times(factor) as outer:
            a = torch.sin(x) + 1 - x[0]
            with Times(3.0) as inner:
                b = F.softmax(torch.sin(a), dim=-1)
        return a, b, torch.sin(x), outer.asked, inner.asked

    return [f(rows(), factor) for factor in (2.0, 2.0, 5.0)]


@script
def function_modes_around(compile):
    net = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 2))
    f, g, kept = compile(net), compile(lambda x: torch.sin(x) * x.shape[0]), Times(4.0)
    out = []
    for factor in (None, 1.0, 2.0, 2.0, None):
        x = rows().requires_grad_()
        if factor is None:
            y = g(f(x))
        else:
            with Times(factor) as mode:
                y = g(f(x))
            out.append(mode.asked)
        y.sum().backward()
        out += [y, x.grad]
    for _ in range(3):
        with kept, Times(2.0):
            out.append(g(rows()))
        kept.factor += 1
    return out, kept.asked


@script
def function_modes_across_breaks_and_errors(compile):
    @compile
    def f(x, fail):
        try:
            with Times(2.0) as mode:
                y = torch.sin(x)
                print("inside")
                if fail:
                    raise ValueError("stop")
                y = torch.sin(y)
        except ValueError:
            y = torch.sin(y)
        return y, mode.asked

    return [f(rows(), fail) for fail in (False, True, False)]


class Shifting(TorchFunctionMode):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        return made + self.by if func is torch.mul else made


@script
def function_modes_stay_entered_or_left(compile):
    """What a function enters or leaves is entered or left when it has returned."""
    push, pop, count = torch._C._push_on_torch_function_stack, torch._C._pop_torch_function_stack, torch._C._len_torch_function_stack

    def enters(x, mode):
        push(mode)
        return torch.mul(x, 2)

    def leaves(x):
        made = torch.mul(x, 2)
        pop()
        return made, torch.mul(x, 3)

    def exchanges(x, mode):
        pop()
        push(mode)
        return torch.mul(x, 4)

    enter, leave, exchange = (compile(f) for f in (enters, leaves, exchanges))
    one, two, x, results = Shifting(1), Shifting(10), torch.ones(2), []
    for _ in range(2):
        results += [enter(x, one), torch.mul(x, 1), enter(x, two), torch.mul(x, 1), count()]
        results += [exchange(x, one), torch.mul(x, 1), *leave(x), count(), *leave(x), count(), torch.mul(x, 1)]
    return results


@script
def function_modes_hear_of_gradients(compile):
    """p.grad and x.data are asked of the mode, by its optimiser too."""
    class Hears(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.heard = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.heard.append((func.__name__, getattr(getattr(func, "__self__", None), "__name__", None)))
            return func(*args, **kwargs or {})

    def reads(p):
        return p.grad * 2, p.grad is None, p.data + 1

    def writes(p):
        p.grad.zero_()
        p.grad = p.grad + 3
        return p.grad

    def steps(p):
        optimiser.step()
        optimiser.zero_grad()
        return p * 2, p.grad

    out = []
    for f in map(compile, (reads, writes, steps)):
        for _ in range(3):
            p = nn.Parameter(torch.ones(2))
            p.grad = torch.full((2,), 0.5)
            optimiser = torch.optim.SGD([p], lr=0.1)
            with Hears() as mode:
                made = f(p)
            out += [made, p, p.grad, [name for name in mode.heard if name[1] in ("grad", "data")]]
    return out

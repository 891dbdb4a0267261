"""Assumptions that stop holding: a changed value, shape, dtype, mode or object must give the right result."""

import threading

import torch
from torch import nn

from . import script


def rows(*shape):
    return torch.randn(*(shape or (4, 5)))


@script
def scalar_arguments(compile):
    @compile
    def f(x, a, b=1.0, c=None, d="s", e=True):
        y = x * a + b
        if c is not None:
            y = y + c
        return y if e else -y, d + "!"

    x = rows()
    return [f(x, 2), f(x, 3), f(x, 3.0), f(x, True), f(x, 2, c=1), f(x, 2, d="t"), f(x, 2, e=False), f(x, 2, 0.0), f(x, 2, -0.0), f(x, 2, float("nan")), f(x, 2)]


@script
def numbers_at_their_edges(compile):
    """Floats that differ from call to call: signs of zeros, NaN as a bound, roots of -infinity, and numbers that float16 does not hold."""
    inf, nan = float("inf"), float("nan")
    numbers = (0.3, 1.7, 0.5, -0.5, 0.0, -0.0, nan, 1e5, inf)
    operators = {
        "low": lambda x, s: x.clamp(min=s),
        "high": lambda x, s: x.clamp(max=s),
        "both": lambda x, s: x.clamp(-0.25, s),
        "at least": lambda x, s: torch.clamp_min(x, s),
        "at most": lambda x, s: torch.clamp_max(x, s),
        "power": lambda x, s: x ** s,
        "filled": lambda x, s: x.masked_fill(x > 0, s),
    }
    out = []
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        x = torch.tensor([-inf, -2.0, -0.0, 0.0, 0.25, inf, nan] * 3, dtype=dtype)
        for name, operator in operators.items():
            compiled = compile(operator)
            for s in numbers:
                try:
                    y = compiled(x, s)
                    out.append((name, s, y, y.signbit() & ~y.isnan()))
                except RuntimeError as error:
                    out.append((name, s, str(error)))
    return out


@script
def shapes_change(compile):
    @compile
    def f(x):
        return x.sum(0) / x.shape[0], x.reshape(-1), x.shape, x[: x.shape[0] // 2], x.numel()

    return [f(rows(*s)) for s in ((4, 5), (3, 5), (1, 5), (0, 5), (4, 5), (7, 2, 3), (6,))]


@script
def dtypes_and_strides_change(compile):
    @compile
    def f(x):
        return x * 2 + 1, x.is_contiguous(), x.dtype

    x = rows(4, 4)
    return [f(v) for v in (x, x.double(), x.t(), x[::2], x.int(), x > 0, x.bfloat16(), x.to(torch.complex64), x[:, 1:], x.expand(2, 4, 4), x)]


@script
def requires_grad_changes(compile):
    @compile
    def f(x):
        y = (x * x).sum()
        return y, y.requires_grad, x.is_leaf

    x = rows()
    out = [f(x), f(x.clone().requires_grad_()), f(x)]
    z = x.clone().requires_grad_()
    f(z)[0].backward()
    return out, z.grad, f((z * 2))


@script
def grad_mode_changes(compile):
    @compile
    def f(x):
        return x * 2 if torch.is_grad_enabled() else x * 3

    x = rows().requires_grad_()
    out = [f(x)]
    with torch.no_grad():
        out.append(f(x))
    with torch.inference_mode():
        out.append(f(x).clone())
    out.append(f(x))
    return [(o, o.requires_grad) for o in out]


@script
def default_dtype_changes(compile):
    @compile
    def f(x):
        return torch.zeros(3), x + torch.tensor(1.5), torch.arange(0, 1, 0.5), torch.ones(2) * 3

    x = rows().int()
    out = [f(x)]
    torch.set_default_dtype(torch.float64)
    try:
        out.append(f(x))
    finally:
        torch.set_default_dtype(torch.float32)
    return out, f(x)


@script
def deterministic_flag_changes(compile):
    @compile
    def f(x):
        return x + 1 if torch.are_deterministic_algorithms_enabled() else x - 1

    x = rows()
    out = [f(x)]
    torch.use_deterministic_algorithms(True)
    try:
        out.append(f(x))
    finally:
        torch.use_deterministic_algorithms(False)
    return out, f(x)


@script
def autocast_state_changes(compile):
    @compile
    def f(x, w):
        return x @ w, (x @ w).softmax(-1)

    x, w = rows(), rows(5, 3)
    out = [f(x, w)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out.append(f(x, w))
        with torch.autocast("cpu", enabled=False):
            out.append(f(x, w))
    out.append(f(x, w))
    return out


@script
def training_flips(compile):
    model = nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(5), nn.ReLU())
    f = compile(model)
    x = rows()
    out = [f(x)]
    model.eval()
    out += [f(x), f(x)]
    model.train()
    out.append(f(x))
    return out, dict(model.named_buffers())


@script
def parameters_replaced(compile):
    model = nn.Linear(5, 3)
    f = compile(model)
    x = rows()
    out = [f(x)]
    with torch.no_grad():
        model.weight.mul_(2)
    out.append(f(x))
    model.weight = nn.Parameter(torch.ones(3, 5))
    out.append(f(x))
    model.bias = None
    out.append(f(x))
    model.weight.data = torch.zeros(3, 5)
    out.append(f(x))
    model.load_state_dict({"weight": torch.full((3, 5), 2.0)})
    out.append(f(x))
    return out


@script
def submodules_replaced(compile):
    model = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 2))
    f = compile(model)
    x = rows()
    out = [f(x)]
    model[1] = nn.Tanh()
    out.append(f(x))
    model.append(nn.Sigmoid())
    out.append(f(x))
    del model[1]
    out.append(f(x))
    model[0].forward = lambda t: t * 2
    out.append(f(x))
    return out


@script
def functions_replaced(compile):
    holder = {"f": torch.relu}

    class Namespace:
        @staticmethod
        def g(x):
            return x + 1

    @compile
    def f(x):
        return Namespace.g(holder["f"](x))

    x = rows()
    out = [f(x)]
    holder["f"] = torch.sigmoid
    out.append(f(x))
    Namespace.g = staticmethod(lambda x: x - 1)
    out.append(f(x))
    return out


@script
def defaults_and_code_replaced(compile):
    def g(x, k=2):
        return x * k

    def h(x, k=2):
        return x - k

    @compile
    def f(x):
        return g(x)

    x = rows()
    out = [f(x)]
    g.__defaults__ = (5,)
    out.append(f(x))
    g.__code__ = h.__code__
    out.append(f(x))
    return out


@script
def config_objects_change(compile):
    class Config:
        width, act, drop = 3, "relu", 0.0

    config = Config()

    @compile
    def f(x):
        y = torch.relu(x) if config.act == "relu" else torch.tanh(x)
        return y * config.width + getattr(config, "extra", 0)

    x = rows()
    out = [f(x)]
    for name, value in (("act", "tanh"), ("width", 4), ("extra", 7), ("width", 4.5)):
        setattr(config, name, value)
        out.append(f(x))
    Config.drop = 1
    del config.extra
    out.append(f(x))
    return out


@script
def same_tensor_twice(compile):
    @compile
    def f(x, y):
        x.add_(1)
        return x * y, x is y

    a, b = rows(), rows()
    out = [f(a, b), f(a, a), f(b, a), f(b, b)]
    return out, a, b


@script
def overlapping_views_as_inputs(compile):
    @compile
    def f(x, y):
        x.mul_(2)
        return y + 1

    base = rows(6, 5)
    out = [f(rows(4, 5), rows(4, 5)), f(base[:4], base[2:]), f(base[:2], base[2:4])]
    return out, base


@script
def same_list_twice(compile):
    @compile
    def f(a, b):
        a.append(1)
        b.append(2)
        return len(a) + len(b)

    p, q = [], []
    return f(p, q), f(p, p), f(q, p), p, q


@script
def same_module_twice(compile):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(5, 5), nn.Linear(5, 5)

        def forward(self, x):
            self.a.count = getattr(self.a, "count", 0) + 1
            return self.b(self.a(x)) * getattr(self.b, "count", 10)

    m = Twice()
    f = compile(m)
    x = rows()
    out = [f(x), f(x)]
    m.b = m.a
    out.append(f(x))
    return out


@script
def identity_of_arguments(compile):
    @compile
    def f(a, b, x):
        return x + 1 if a is b else x - 1

    p, q, x = object(), object(), rows()
    return f(p, q, x), f(p, p, x), f(q, p, x), f([], [], x)


@script
def presence_of_keys(compile):
    @compile
    def f(d, x):
        if "scale" in d:
            x = x * d["scale"]
        return x + d.get("shift", 1), len(d), not d

    x = rows()
    return [f(d, x) for d in ({}, {"scale": 2}, {"shift": 3}, {"scale": 2, "shift": 4}, {"scale": torch.ones(5)})]


@script
def types_of_arguments(compile):
    class A:
        k = 1

    class B(A):
        k = 2

    @compile
    def f(o, x):
        return x * (o.k if isinstance(o, A) else len(o) if hasattr(o, "__len__") else 0), type(o).__name__

    x = rows()
    return [f(o, x) for o in (A(), B(), [1, 2, 3], (1,), None, "four", {1: 2}, A())]


@script
def class_of_an_object_changes(compile):
    class A:
        def g(self, x):
            return x + 1

    class B:
        def g(self, x):
            return x - 1

    o = A()

    @compile
    def f(x):
        return o.g(x)

    x = rows()
    out = [f(x)]
    o.__class__ = B
    out.append(f(x))
    o.g = lambda x: x * 9
    out.append(f(x))
    B.h = 3
    out.append(f(x))
    return out


@script
def globals_patched(compile):
    import sys
    module = sys.modules[__name__]
    module.helper = lambda x: x + 1

    @compile
    def f(x):
        return helper(x)  # noqa: F821

    x = rows()
    out = [f(x)]
    module.helper = lambda x: x * 5
    out.append(f(x))
    return out


@script
def methods_of_tensors_patched_where_no_tensor_is_given(compile):
    def number(x):
        return x + torch.tensor(1.5), torch.tensor(2.0) * x

    programs = [(compile(number), (1.5,)), (compile(number), (2.5,)), (compile(lambda: torch.ones(3).relu() - 1), ()), (compile(lambda: -torch.ones(3)), ()),
                (compile(lambda: (len(torch.ones(3)), torch.ones(3) > 0)), ())]

    def called():
        return [f(*args) for f, args in [*programs, (programs[0][0], (2.5,)), (programs[0][0], (3.5,))]]

    out = [called(), called()]
    names = ("__add__", "__mul__", "__neg__", "__len__", "__gt__", "relu")
    own = [getattr(torch.Tensor, name) for name in names]
    try:
        for name in names:
            setattr(torch.Tensor, name, lambda *a: 7)
        out += [called(), called()]
    finally:
        for name, method in zip(names, own):
            setattr(torch.Tensor, name, method)
    return out, called()


@script
def sizes_zero_and_one(compile):
    @compile
    def f(x, y):
        return x + y, (x * y).sum(0), torch.cat([x, y])

    return [f(rows(a, 5), rows(b, 5)) for a, b in ((3, 3), (1, 3), (3, 1), (1, 1), (0, 0), (0, 1))]


@script
def many_recompiles(compile):
    @compile
    def f(x, n):
        return x * n + 1

    x = rows()
    return [f(x, n) for n in range(12)]


@script
def optional_inputs(compile):
    @compile
    def f(x, mask=None, *, scale=None):
        if mask is not None:
            x = x.masked_fill(mask, 0.0)
        if scale:
            x = x * scale
        return x

    x = rows()
    return f(x), f(x, x > 0), f(x, scale=2), f(x, x < 0, scale=3), f(x, None), f(x, scale=0)


@script
def device_and_layout_reads(compile):
    @compile
    def f(x):
        y = torch.zeros(x.shape[1], device=x.device, dtype=x.dtype)
        return x + y, str(x.device), x.layout, x.is_cuda, x.device.type == "cpu", torch.empty_like(x).shape

    return f(rows()), f(rows().double())


@script
def objects_of_operator_ask_for_other_keys(compile):
    import operator
    from types import SimpleNamespace

    subject, items = SimpleNamespace(a=2.0, b=3.0, inner=SimpleNamespace(c=5.0)), [[1.0, 4.0], [2.0, 3.0]]
    pick = compile(lambda o, x: x * o([1.0, 2.0, 3.0]))
    attribute = compile(lambda o, x: x * o(subject))
    method = compile(lambda o, x: o(x))
    order = compile(lambda o, x: x * torch.tensor(sorted(items, key=o)[0]))
    both = compile(lambda o, x: x * sum(o([1.0, 2.0, 3.0])))
    x = torch.ones(2)
    return ([pick(operator.itemgetter(k), x) for k in (0, 1, 2, 1)], [attribute(operator.attrgetter(n), x) for n in ("a", "b", "inner.c")],
            [method(operator.methodcaller("mul", k), x) for k in (2, 3, 2.5)], [method(operator.methodcaller(n, 2), x) for n in ("add", "sub")],
            [order(operator.itemgetter(k), x) for k in (0, 1, 0)], [both(operator.itemgetter(*k), x) for k in ((0, 1), (1, 2))])


@script
def a_match_outlives_a_region(compile):
    import re

    @compile
    def f(text, x):
        found = re.match("(a*)", text)
        torch._dynamo.graph_break()
        return x * len(found.group(1)), found

    return [(y, found.span()) for y, found in (f(text, torch.ones(2)) for text in ("a", "aab", "aaa"))]


@script
def attributes_of_a_thread(compile):
    """threading.local has other attributes in each thread, and may lack one that another call finds."""
    place = threading.local()

    class Counting(threading.local):
        def __init__(self):
            self.calls = 0

    counting = Counting()

    @compile
    def f(x, p):
        p.last = x
        counting.calls += 1
        return x * getattr(p, "scale", 1) + counting.calls

    def calls():
        got = [f(torch.ones(3), place), vars(place).keys() == {"last"} or place.scale]
        place.scale = 5
        got += [f(torch.ones(3), place), place.last, counting.calls]
        del place.scale
        return got + [f(torch.zeros(3), place), counting.calls]

    results = [calls()]
    other = threading.Thread(target=lambda: results.append(calls()))
    other.start()
    other.join()
    return results + [f(torch.ones(3), place), counting.calls]

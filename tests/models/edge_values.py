"""Pointwise operators and reductions on the values at the edges of each type, compiled against eager: NaN, infinities, both zeros,
denormal, smallest and largest numbers, halves, and integers that overflow. Every pair of values meets in operators of two operands.

A result must be NaN, infinite and of eager's sign exactly where eager's is, and else as near as the type allows; integers must be equal.
"""

import argparse
import sys
import warnings

import torch
import torch.nn.functional as F

import fusebox

warnings.filterwarnings("ignore")

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
DTYPES = {str(d).removeprefix("torch."): d for d in [*FLOATS, *INTEGERS, torch.bool]}
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.0, -3.0, 0.1, -0.1, 7.0, 20.5, -20.5, 1000.0, -1000.0]
# Relative error, and absolute error in units of the smallest normal number.
LIMIT = {torch.float32: (1e-5, 4), torch.float64: (1e-10, 4), torch.float16: (2e-3, 4), torch.bfloat16: (1.6e-2, 4)}

# Functions of one tensor.
UNARY = {name: getattr(torch, name) for name in (
    "abs neg sign sgn reciprocal sqrt rsqrt square exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh "
    "atanh erf erfc erfinv lgamma digamma sigmoid floor ceil trunc round frac logical_not bitwise_not isnan isinf isfinite signbit "
    "nan_to_num positive sinc deg2rad rad2deg isposinf isneginf logit relu").split()}
UNARY.update({name: getattr(F, name) for name in (
    "relu6 gelu silu hardsigmoid hardswish hardtanh leaky_relu elu celu selu softplus mish softsign tanhshrink softshrink hardshrink "
    "logsigmoid").split()})
UNARY.update({
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "threshold": lambda x: F.threshold(x, 0.5, 2.0),
    "round decimals": lambda x: torch.round(x, decimals=2),
    "round -decimals": lambda x: torch.round(x, decimals=-1),
    "nan_to_num given": lambda x: torch.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0),
    "logit eps": lambda x: torch.logit(x, eps=1e-3),
    "clamp": lambda x: x.clamp(-1, 2), "clamp_min": lambda x: x.clamp(min=0), "clamp_max": lambda x: x.clamp(max=1),
    "clamp nan": lambda x: x.clamp(min=float("nan")), "clamp crossed": lambda x: x.clamp(2, -1),
    "to float": lambda x: x.to(torch.float32), "to double": lambda x: x.to(torch.float64), "to half": lambda x: x.to(torch.float16),
    "to bfloat16": lambda x: x.to(torch.bfloat16), "to bool": lambda x: x.to(torch.bool),
    "view bits": lambda x: x.view({1: torch.int8, 4: torch.int32 if x.dtype.is_floating_point else torch.float32,
                                   8: torch.int64 if x.dtype.is_floating_point else torch.float64}[x.element_size()]),
    "entr": lambda x: torch.special.entr(x), "i0": torch.special.i0, "xlog1py": lambda x: torch.special.xlog1py(x, 2.0),
})
for exponent in (0, 1, 2, 3, 4, 5, 0.5, 1.5, -0.5, -1, -2, -3, 10, float("inf"), float("-inf"), float("nan")):
    UNARY[f"pow {exponent}"] = lambda x, e=exponent: x ** e
    UNARY[f"{exponent} pow"] = lambda x, e=exponent: torch.pow(e, x)
for number in (2, -3, 0.5, 0.1, 0.0, -0.0, float("inf"), float("nan")):
    UNARY[f"add {number}"] = lambda x, n=number: x + n
    UNARY[f"rsub {number}"] = lambda x, n=number: n - x
    UNARY[f"mul {number}"] = lambda x, n=number: x * n
    UNARY[f"div {number}"] = lambda x, n=number: x / n
    UNARY[f"rdiv {number}"] = lambda x, n=number: n / x
    UNARY[f"floor div {number}"] = lambda x, n=number: x // n
    UNARY[f"trunc div {number}"] = lambda x, n=number: torch.div(x, n, rounding_mode="trunc")
    UNARY[f"mod {number}"] = lambda x, n=number: x % n
    UNARY[f"rmod {number}"] = lambda x, n=number: n % x
    UNARY[f"fmod {number}"] = lambda x, n=number: torch.fmod(x, n)
    UNARY[f"lt {number}"] = lambda x, n=number: x < n
    UNARY[f"eq {number}"] = lambda x, n=number: x == n
    UNARY[f"ge {number}"] = lambda x, n=number: x >= n
    UNARY[f"clamp {number}"] = lambda x, n=number: x.clamp(min=n)
    UNARY[f"where {number}"] = lambda x, n=number: torch.where(x == 1, x, n) == n
    UNARY[f"threshold {number}"] = lambda x, n=number: F.threshold(x, n, 9)
    if number == number:
        UNARY[f"hardshrink {number}"] = lambda x, n=number: F.hardshrink(x, n)
    UNARY[f"copysign {number}"] = lambda x, n=number: torch.copysign(x, n)
    UNARY[f"xlogy {number}"] = lambda x, n=number: torch.xlogy(x, n)
    UNARY[f"masked_fill {number}"] = lambda x, n=number: x.masked_fill(x == 1, n)
for shift in (0, 1, 7, 8, 63, 64, -1):
    UNARY[f"shift left {shift}"] = lambda x, n=shift: x << n
    UNARY[f"shift right {shift}"] = lambda x, n=shift: x >> n

# Functions of two tensors, which are every pair of values.
BINARY = {name: getattr(torch, name) for name in (
    "add sub mul div true_divide floor_divide remainder fmod pow atan2 hypot copysign maximum minimum fmax fmin logaddexp logaddexp2 xlogy "
    "heaviside eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift logical_and logical_or "
    "logical_xor nextafter ldexp gcd float_power dist").split()}
BINARY.update({
    "trunc div": lambda a, b: torch.div(a, b, rounding_mode="trunc"), "floor div": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "add alpha": lambda a, b: torch.add(a, b, alpha=3), "sub alpha": lambda a, b: torch.sub(a, b, alpha=3),
    "clamp tensor": lambda a, b: a.clamp(min=b), "clamp max tensor": lambda a, b: a.clamp(max=b),
    "clamp both": lambda a, b: torch.clamp(a, b, b + 1),
    "where": lambda a, b: torch.where(a < b, a, b), "where scalar": lambda a, b: torch.where(a == b, a, 2),
    "lerp half": lambda a, b: torch.lerp(a, b, 0.5), "lerp 0": lambda a, b: torch.lerp(a, b, 0.0), "lerp 1": lambda a, b: torch.lerp(a, b, 1.0),
    "lerp tensor": lambda a, b: torch.lerp(a, b, b), "addcmul": lambda a, b: torch.addcmul(a, a, b, value=2),
    "addcdiv": lambda a, b: torch.addcdiv(a, a, b, value=2), "rsub": torch.rsub,
    "prelu": lambda a, b: F.prelu(a.unsqueeze(0), b[:1]),
    "mse": lambda a, b: F.mse_loss(a, b, reduction="none"), "smooth_l1": lambda a, b: F.smooth_l1_loss(a, b, reduction="none"),
    "huber": lambda a, b: F.huber_loss(a, b, reduction="none"),
    "bce logits": lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction="none"), "glu": lambda a, b: F.glu(torch.cat([a, b])),
})


def moderate(x):
    """Without what overflows when it is squared: eager has variances of float32 in float64."""
    limit = torch.finfo(x.dtype).max ** (0.45 if x.dtype == torch.float16 else 0.24)
    return x.masked_fill(x.abs() > limit, 1).masked_fill((x.abs() < 1 / limit) & (x != 0), 0.25)


def coarse(x):
    """Eager's derivatives in float16 are made of steps that are rounded, and overflow, each on its own."""
    return moderate(x) if x.requires_grad and x.dtype == torch.float16 else x


def along(f, dim, **how):
    return lambda x: f(x, dim, **how)


# Functions of a matrix: every pair of values is a row of several shapes.
REDUCTIONS = {}
for name in "sum mean prod amax amin any all argmax argmin logsumexp softmax log_softmax cumsum cumprod nansum count_nonzero".split():
    f = getattr(torch, name)
    for dim in (0, 1):
        REDUCTIONS[f"{name} {dim}"] = along(f, dim)
for name in "sum mean prod max min any all argmax argmin norm".split():
    REDUCTIONS[name] = getattr(torch, name)
for name in "sum mean amax amin any all logsumexp".split():
    f = getattr(torch, name)
    REDUCTIONS[f"{name} ()"] = along(f, ())
    REDUCTIONS[f"{name} () kept"] = along(f, (), keepdim=True)
    REDUCTIONS[f"{name} (0, 1)"] = along(f, (0, 1))
for order in (0, 1, 2, 3, 0.5, -1, float("inf"), float("-inf")):
    for dim in (0, 1, (), None):
        REDUCTIONS[f"norm {order} {dim}"] = lambda x, o=order, d=dim: torch.linalg.vector_norm(moderate(x) if o == 0.5 else coarse(x), o, d)
REDUCTIONS.update({
    "var": lambda x: moderate(x).var(), "std ()": lambda x: moderate(x).std(()), "var 0": lambda x: moderate(x).var(0), "var 1": lambda x: moderate(x).var(1),
    "std 0": lambda x: moderate(x).std(0), "std 1": lambda x: moderate(x).std(1),
    "max 1": lambda x: tuple(torch.max(x, 1)), "min 0": lambda x: tuple(torch.min(x, 0)), "var_mean": lambda x: tuple(torch.var_mean(moderate(x), 1)),
    "normalize": lambda x: F.normalize(coarse(x)), "layer_norm": lambda x: F.layer_norm(moderate(x), x.shape[1:]), "rms_norm": lambda x: F.rms_norm(x, x.shape[1:], eps=1e-6),
    "aminmax": lambda x: tuple(torch.aminmax(x, dim=1)),
})


def edges(dtype):
    if dtype == torch.bool:
        return torch.tensor([True, False])
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        ends = [float("nan"), float("inf"), float("-inf"), info.max, info.min, info.tiny, -info.tiny, info.smallest_normal / 8, info.eps,
                info.max ** 0.5, info.tiny ** 0.5]
        return torch.tensor(ends + NUMBERS, dtype=torch.float64).to(dtype)
    info = torch.iinfo(dtype)
    values = {info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 0, 1, 2, 3, 7, 8, 100, *((-1, -2, -3, -7, -100) if info.min else ())}
    return torch.tensor(sorted(values), dtype=dtype)


def pairs(dtype):
    """Every pair of values, in two tensors."""
    values = edges(dtype)
    a, b = torch.meshgrid(values, values, indexing="ij")
    return a.reshape(-1).clone(), b.reshape(-1).clone()


def matrices(dtype):
    """Rows of one element, of pairs, and longer ones that have one special value each, or none."""
    values = edges(dtype)
    a, b = pairs(dtype)
    plain = torch.arange(37).to(dtype) % 3 if dtype != torch.bool else torch.arange(37) % 3 == 0
    rows = torch.stack([torch.cat([plain[:5], v[None], plain[5:]]) for v in values] + [torch.cat([plain, plain[:1]])])
    return [values[:, None].clone(), torch.stack([a, b], 1), rows]


def near(got, want, dtype, absolute_units=0):
    """Elementwise, as the module says. `absolute_units`: allowed besides, in units of the type's last place of 1."""
    if not want.dtype.is_floating_point:
        return got == want
    relative, absolute = LIMIT[max((d for d in (want.dtype, dtype) if d in LIMIT), key=lambda d: LIMIT[d][0])]
    g, w = got.double(), want.double()
    floor = absolute * torch.finfo(want.dtype).tiny + absolute_units * torch.finfo(dtype if dtype in LIMIT else want.dtype).eps
    close = (g - w).abs() <= floor + relative * w.abs()
    same_sign = (g.signbit() == w.signbit()) & (w != 0)
    overflow = torch.finfo(want.dtype).max * (1 - relative)
    ends = (g.abs() >= overflow) & (w.abs() >= overflow) & ~(g.isinf() & w.isinf()) & (g.sign() == w.sign())
    return ((g == w) & (g.signbit() == w.signbit())) | (g.isnan() & w.isnan()) | (close & (same_sign | ((w.abs() <= floor) & ((w != 0) | (absolute_units > 0))))) | ends


def as_exact(got, want, exact, dtype, inputs):
    """Where a finite result is at least as good as eager's, judged by one of higher precision."""
    if not want.dtype.is_floating_point or exact is None or exact.shape != want.shape:
        return torch.zeros_like(want, dtype=torch.bool)
    g, w, e = got.double(), want.double(), exact.double()
    rounded = e.to(want.dtype).double()
    # What cancels keeps the rounding of the operands' size.
    scale = torch.stack([i.detach().double().abs() for i in inputs]).amax(0) if all(i.shape == want.shape for i in inputs) else torch.zeros_like(e)
    unit = 2 * torch.finfo(want.dtype).eps * scale.where(scale < 100, 0)
    return near(got, rounded.to(want.dtype), dtype) | ((g - e).abs() <= (w - e).abs() + unit)


# The smallest integer by -1 ends eager's process.
FATAL = {"trunc div", "gcd"}


def survivable(a, b):
    keep = ~((a == torch.iinfo(a.dtype).min) & (b == -1)) if a.dtype in INTEGERS else torch.ones_like(a, dtype=torch.bool)
    return a[keep], b[keep]


def flat(result):
    return [t for r in result for t in flat(r)] if isinstance(result, (list, tuple)) else [result]


def works(f, inputs):
    try:
        return flat(f(*inputs))
    except (RuntimeError, TypeError, NotImplementedError, IndexError, KeyError, ValueError, OverflowError, ZeroDivisionError):
        return None


def gradients(results, inputs):
    """Of the sum of what has gradients, by every input."""
    floating = [r for r in results if r.requires_grad]
    if not floating:
        return []
    return [g for g in torch.autograd.grad(floating, inputs, [torch.ones_like(r) for r in floating], retain_graph=True, allow_unused=True) if g is not None]


def widened(inputs):
    return [i.detach().double() if i.dtype.is_floating_point and i.dtype != torch.float64 else i.detach() for i in inputs]


def alternatives(f, inputs, index):
    """Eager's other answers: its loops over whole vectors and its loops over what is left differ here and there."""
    if any(i.shape != inputs[0].shape or i.dim() != 1 for i in inputs):
        return []
    n = inputs[0].numel()
    plain = [i.detach() for i in inputs]
    singly = [works(f, [i[k:k + 1] for i in plain]) for k in range(n)]
    padded = works(f, [torch.cat([i, i[:1].expand(-n % 64)]) for i in plain])
    made = []
    if all(r is not None and r[index].shape == (1,) for r in singly):
        made.append(torch.cat([r[index] for r in singly]))
    if padded is not None and padded[index].shape == (n + -n % 64,):
        made.append(padded[index][:n])
    return made


def reordered(name, f, inputs, index):
    """Products in other orders: whether zeros come before what overflows decides between 0 and NaN, and eager's order follows the processor's vectors."""
    if name.split()[0] != "prod" or len(inputs) != 1:
        return []
    x = inputs[0].detach()
    along = int(name.split()[1]) if " " in name else None
    rows = x.flatten() if along is None else x
    order = rows.abs().nan_to_num(float("inf")).argsort(along or 0)
    results = (works(f, [torch.take_along_dim(rows, o, along or 0)]) for o in (order, order.flip(along or 0)))
    return [r[index] for r in results if r is not None]


class Judge:
    def __init__(self, dtype):
        self.dtype, self.problems = dtype, []

    def compare(self, name, what, inputs, got, want, others, units=0):
        """`others()`: further results that are right, of which the last is one of higher precision or None."""
        if got.dtype != want.dtype or got.shape != want.shape:
            self.problems.append(f"{name} {self.dtype}: {what}: {got.dtype}{tuple(got.shape)} instead of {want.dtype}{tuple(want.shape)}")
            return
        right = near(got, want, self.dtype, units)
        if right.all():
            return
        *more, exact = others()
        for other in more:
            right |= near(got, other, self.dtype)
        right |= as_exact(got, want, exact, self.dtype, inputs)
        if not right.all():
            self.tell(name, what, inputs, got, want, ~right)

    def tell(self, name, what, inputs, got, want, mask):
        shown = []
        for at in mask.nonzero()[:4]:
            at = tuple(at.tolist())
            operands = [i[at].item() if i.shape == want.shape else i[at[0]].tolist() if i.dim() == 2 and at and i.shape[0] == want.shape[0] else ""
                        for i in inputs]
            shown.append(f"{str(operands):.160} gives {got[at].item()}, not {want[at].item()}")
        self.problems.append(f"{name} {self.dtype}: {what}: {int(mask.sum())} of {mask.numel()}: " + "; ".join(shown))


# Derivatives for which eager looks at how many zeros there are, which a graph that was traced cannot: NaN beside several zeros differ.
COUNTING = ("prod", "cumprod")


def fitting(operators, inputs, grad):
    """Those that eager has for these inputs, with its results and gradients."""
    for name, f in operators.items():
        if grad and name.startswith(COUNTING):
            continue
        leaves = [i.clone().requires_grad_(grad) for i in inputs]
        want = works(f, leaves)
        if want is None or not all(isinstance(w, torch.Tensor) for w in want):
            continue
        slopes = works(lambda: gradients(want, leaves), []) if grad else []
        if slopes is not None and (slopes or not grad):
            yield name, f, want, slopes


def slopes_of(f, inputs):
    leaves = [i.requires_grad_() for i in widened(inputs)]
    results = works(f, leaves)
    return None if results is None else works(lambda: gradients(results, leaves), [])


def check(operators, judge, inputs, group, grad):
    """Compares operators in groups, each one compiled function; returns how many."""
    fit = list(fitting(operators, inputs, grad))
    for start in range(0, len(fit), group):
        part = fit[start:start + group]
        functions = [f for _, f, _, _ in part]
        fusebox.reset()
        ours = [i.clone().requires_grad_(grad) for i in inputs]
        results = fusebox.compile(lambda *xs: [flat(f(*xs)) for f in functions])(*ours)
        for (name, f, want, slopes), got in zip(part, results):
            for i, (g, w) in enumerate(zip(got, want)):
                exact = lambda i=i, f=f: (works(f, widened(inputs)) or [None] * (i + 1))[i]  # noqa: E731
                judge.compare(name, f"result {i}", inputs, g.detach(), w.detach(), lambda i=i, f=f, name=name: [*alternatives(f, inputs, i), *reordered(name, f, inputs, i), exact()])
            if grad:
                for i, (g, w) in enumerate(zip(gradients(got, ours), slopes)):
                    exact = lambda i=i, f=f: (slopes_of(f, inputs) or [None] * (i + 1))[i]  # noqa: E731
                    judge.compare(name, f"gradient {i}", inputs, g, w, lambda exact=exact: [exact()], units=4)
    return len(fit)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtypes", nargs="*", default=list(DTYPES))
    parser.add_argument("--only", default="")
    parser.add_argument("--group", type=int, default=12, help="operators compiled together")
    parser.add_argument("--grad", action="store_true", help="gradients too")
    parser.add_argument("--least", type=int, default=0, help="fail if fewer operators were compared")
    options = parser.parse_args()
    chosen = lambda table: {name: f for name, f in table.items() if options.only in name}  # noqa: E731
    problems, count = [], 0
    for name in options.dtypes:
        dtype = DTYPES[name]
        if options.grad and not dtype.is_floating_point:
            continue
        judge = Judge(dtype)
        compare = lambda table, inputs: check(table, judge, inputs, 1 if options.grad else options.group, options.grad)  # noqa: E731, B023
        binary = chosen(BINARY)
        count += compare(chosen(UNARY), [edges(dtype).repeat(3)])
        count += compare({n: f for n, f in binary.items() if n not in FATAL}, pairs(dtype))
        count += compare({n: f for n, f in binary.items() if n in FATAL}, survivable(*pairs(dtype)))
        for matrix in matrices(dtype):
            count += compare(chosen(REDUCTIONS), [matrix])
        problems += judge.problems
    print(*problems, sep="\n")
    print(f"{count} operators compared, {len(problems)} differ")
    sys.exit(bool(problems) or count < options.least)


if __name__ == "__main__":
    main()

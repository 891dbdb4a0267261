"""Operators of one element at a time, writes in place, random numbers."""

import torch

from .table import operator

EXACT = ["{a}.abs()", "-{a}", "F.relu({a})", "{a}.clamp(-1, 1)", "{a}.clamp(min=0)", "{a}.sign()",
         "torch.nan_to_num({a})", "{a}.clone()", "{a} * 2", "{a} * 0.5", "{a}.contiguous()", "{a}.isnan()",
         "{a} == {a}", "torch.zeros_like({a})", "torch.ones_like({a})", "torch.full_like({a}, 3)", "{a}.logical_not()",
         "{a}.isinf()", "{a}.isfinite()", "{a}.clamp_min(0.5)", "torch.hardtanh({a}) if False else F.hardtanh({a})",
         "{a}.neg().abs()"]
ROUNDED = ["{a}.sin()", "{a}.cos()", "{a}.tan()", "{a}.exp()", "{a}.exp2()", "{a}.expm1()", "{a}.abs().log()",
           "{a}.log()", "({a}.abs() + 1).log2()", "{a}.abs().log1p()", "{a}.abs().sqrt()", "{a}.sqrt()",
           "({a}.abs() + 1).rsqrt()", "{a}.square()", "{a}.pow(3)", "{a} ** 0.5", "{a} ** -1", "2 ** {a}",
           "{a}.sigmoid()", "{a}.tanh()", "{a}.erf()", "{a}.erfc()", "{a}.asinh()", "{a}.atan()",
           "{a}.clamp(-1, 1).asin()", "{a}.clamp(-1, 1).acos()", "{a}.sinh()", "{a}.cosh()", "({a}.abs() + 1).acosh()",
           "{a}.clamp(-0.9, 0.9).atanh()", "{a}.reciprocal()", "F.gelu({a})", "F.gelu({a}, approximate='tanh')",
           "F.silu({a})", "F.mish({a})", "F.elu({a})", "F.selu({a})", "F.celu({a}, 0.5)", "F.softplus({a})",
           "F.leaky_relu({a}, 0.2)", "F.hardswish({a})", "F.hardsigmoid({a})", "F.relu6({a})", "F.softsign({a})",
           "F.logsigmoid({a})", "F.tanhshrink({a})", "F.softshrink({a})", "F.hardshrink({a})",
           "F.threshold({a}, 0.5, -1.0)", "{a}.lgamma()", "{a}.digamma()", "torch.special.i0({a})",
           "torch.special.entr({a}.abs())", "torch.special.log_ndtr({a})", "torch.special.ndtr({a})", "{a}.sinc()",
           "{a}.logit(0.1)", "{a}.deg2rad()", "torch.special.xlog1py({a}.abs(), {a}.abs())", "{a} / 3", "{a} + 0.1",
           "1 / {a}", "{a}.erfinv()", "{a}.softmax(-1)", "{a}.frac() if False else {a}.trunc() * 0 + {a}",
           "torch.special.bessel_j0({a})", "torch.polygamma(1, {a}.abs() + 1)", "F.glu(torch.cat([{a}, {a}], -1))",
           "{a}.xlogy({a})"]
DISCRETE = ["{a}.floor()", "{a}.ceil()", "{a}.round()", "{a}.trunc()", "{a}.frac()", "{a} > 0", "{a} <= 0.5",
            "{a}.to(torch.int64)", "{a}.to(torch.int32)", "{a}.bool()", "{a}.round(decimals=1)", "{a} // 2", "{a} % 3",
            "{a}.fmod(2)", "{a}.remainder(-1.5)", "{a}.signbit()", "torch.heaviside({a}, torch.ones_like({a}))",
            "{a}.ge(1)", "{a} != 0",
            "torch.bucketize({a}, torch.tensor([-1.0, 0.0, 1.0], dtype={a}.dtype, device={a}.device))",
            "torch.nextafter({a}, {a} + 1)", "torch.div({a}, 0.75, rounding_mode='floor')",
            "torch.div({a}, 2, rounding_mode='trunc')", "{a}.frexp()[0]", "{a}.ldexp({a}.to(torch.int32).clamp(-3, 3))"]
INTEGERS = ["{a} + 1", "{a} * 3", "{a} // 2", "{a} // -3", "{a} % 4", "{a} % -3", "{a}.abs()", "-{a}", "{a} & 6",
            "{a} | 1", "{a} ^ 3", "~{a}", "{a} << 1", "{a} >> 1", "{a} / 4", "{a}.float()", "{a} * 0.5", "{a} == 2",
            "{a} > 1", "{a}.clamp(0, 5)", "{a}.to(torch.uint8)", "{a}.to(torch.int8)", "{a}.bool()",
            "{a}.double().sqrt()", "{a}.sign()", "{a} ** 2", "{a}.fmod(3)", "torch.div({a}, 3, rounding_mode='floor')",
            "torch.div({a}, 3, rounding_mode='trunc')", "torch.gcd({a}, {a} * 0 + 6)", "torch.lcm({a}, {a} * 0 + 4)",
            "{a}.sin()", "{a}.exp()", "{a}.to(torch.bfloat16)", "{a}.square()", "1 - {a}", "{a}.bitwise_not()",
            "{a}.logical_and({a})", "{a} * True", "{a}.to(torch.float16)", "{a}.sigmoid()"]
BOOLEANS = ["~{a}", "{a} & {a}", "{a}.logical_xor({a})", "{a}.float()", "{a} * 2", "{a} + {a}", "{a} | True",
            "{a} ^ {a}.flip(0)", "{a}.int()", "{a} * 1.5", "{a}.to(torch.bfloat16)", "{a} > 0", "{a} == False",
            "-{a}.float()", "{a} * {a}", "{a}.sum(-1)"]
COMPLEX = ["{a}.abs()", "{a}.real", "{a}.imag", "{a} * 2", "{a}.conj()", "{a} * {a}.conj()", "{a} + 1", "{a}.angle()",
           "torch.view_as_real({a})", "{a} * 1j", "{a}.exp()", "{a}.conj().resolve_conj()", "{a}.sum(0)", "-{a}",
           "{a} / (1 + 2j)", "{a}.clone()", "{a}.mean()", "torch.cat([{a}, {a}])", "{a}.t()", "{a}.conj().imag",
           "{a}.sqrt()", "{a} == {a}"]
BINARY = ["{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "torch.add({a}, {b}, alpha=2)",
          "torch.sub({a}, {b}, alpha=0.5)", "torch.pow({a}.abs() + 0.5, {b})", "torch.hypot({a}, {b} + {a} * 0)",
          "torch.atan2({a}, {b} + {a} * 0)", "torch.logaddexp({a}, {b} + {a} * 0)", "torch.lerp({a}, {a} * 2, 0.3)",
          "torch.addcmul({a}, {a}, {b} + {a} * 0, value=0.5)", "torch.addcdiv({a}, {a}, {b} * {b} + 1 + {a} * 0)",
          "torch.logaddexp2({a}, {b} + {a} * 0)", "F.mse_loss({a}, {a} * {b}, reduction='none')",
          "torch.rsub({a}, {b})", "{a} * {b} + {a}", "torch.special.xlog1py({a}, {b})", "torch.xlogy({a}, {b})",
          "torch.float_power({a}.abs(), {b})"]
EXACT_BINARY = ["torch.maximum({a}, {a} * 0 + {b})", "torch.minimum({a}, {a} * 0 + {b})", "{a} > {b}", "{a} == {b}",
                "{a} <= {b}", "torch.where({a} > 0, {a}, {b})", "torch.fmax({a}, {a} * 0 + {b})",
                "torch.fmin({a}, {a} * 0 + {b})", "torch.where({a} < {b}, {b}, {a})", "torch.copysign({a}, {b})",
                "{a}.logical_and(torch.as_tensor({b}, device={a}.device))", "torch.isclose({a}, {a} * 0 + {b})",
                "torch.remainder({a}, {b})", "torch.fmod({a}, {b})", "torch.floor_divide({a}, {b})", "{a} != {b}"]
WRITES = ["{a}.add_(1)", "{a}.mul_(2)", "{a}.zero_()", "{a}.fill_(2)", "{a}.clamp_(0, 3)", "{a}[0] = 1",
          "{a}[..., 0] = 2", "{a}[1:] += 1", "{a}.neg_()", "{a}.abs_()", "{a}[..., ::2] *= 2", "{a}.copy_({b})",
          "{a}.add_({b})", "{a}.mul_({b})", "{a}[:1] = {b}", "{a}.masked_fill_({a} > 0, 3)", "{a}.t_()",
          "{a}[{a} > 0] = 0", "{a}.relu_()", "{a}.sigmoid_()", "{a}.tanh_()", "{a}.flatten()[:2] = 0",
          "{a}.transpose(0, -1).add_(1)", "{a}[-1].zero_()", "{a}.view(-1)[1:].mul_(0.5)", "{a}.sub_({b})",
          "{a}.exp_()", "{a}.diagonal().add_(1)", "{a}.index_fill_(0, torch.tensor([0], device={a}.device), 1)",
          "torch.sin({a}, out={a})", "{a}.squeeze_()", "{a}.pow_(2)", "{a}.cumsum_(0)", "{a}.div_(3)",
          "{a}.unsqueeze_(0)", "{a}[...] = {a} + {b}", "{a}.lerp_({a} * 2, 0.5)", "{a}.triu_()"]
RANDOM = ["torch.rand_like({a})", "torch.randn_like({a})", "F.dropout({a}, 0.5)",
          "torch.bernoulli({a}.sigmoid().nan_to_num(0.5))", "{a} + torch.rand({a}.shape, device={a}.device)",
          "torch.randint(0, 7, {a}.shape, device={a}.device)", "torch.empty_like({a}).uniform_(-1, 1)",
          "torch.normal({a}, 1.0)", "torch.randint_like({a}, 5)", "F.dropout1d({a}, 0.3)",
          "torch.randperm(7, device={a}.device) + 0", "torch.empty_like({a}).normal_(0, 2)",
          "torch.empty_like({a}).exponential_()", "F.alpha_dropout({a}, 0.5)",
          "{a} * torch.bernoulli(torch.full_like({a}, 0.3))", "F.rrelu({a}, training=True)",
          "F.gumbel_softmax({a}, dim=-1)"]


@operator(2)
def exact(g):
    a = g.floating()
    return a and (g.pick(EXACT).format(a=a.name), a.is_exact)


@operator(5)
def rounded(g):
    a = g.floating()
    return a and (g.pick(ROUNDED).format(a=a.name), False)


@operator(1.5)
def discrete(g):
    a = g.floating(is_exact=True)
    return a and (g.pick(DISCRETE).format(a=a.name), True)


@operator(2)
def integers(g):
    a = g.integral()
    return a and (g.pick(INTEGERS).format(a=a.name), True)


@operator(1)
def booleans(g):
    a = g.any(lambda t: t.dtype == torch.bool)
    return a and (g.pick(BOOLEANS).format(a=a.name), True)


@operator(1)
def complexes(g):
    a = g.any(lambda t: t.is_complex())
    return a and (g.pick(COMPLEX).format(a=a.name), False)


@operator(5)
def binary(g):
    a = g.any(lambda t: not t.is_complex())
    return a and (g.pick(BINARY).format(a=a.name, b=g.partner(a)), a.value.dtype == torch.int64 and False)


@operator(2)
def exact_binary(g):
    a = g.any(lambda t: not t.is_complex(), is_exact=True)
    if a is None:
        return None
    b = g.partner(a)
    if any(n.name == b and not n.is_exact for n in g.nodes):
        return None
    return g.pick(EXACT_BINARY).format(a=a.name, b=b), True


@operator(2)
def casts(g):
    a = g.floating()
    return a and (f"{a.name}.to(torch.{g.pick(['float32', 'float64', 'bfloat16', 'float16', 'float32'])})", False)


@operator(2)
def writes(g):
    a = g.any()
    if a is None or (a.name[0] == "a" and g.chance(0.6)):
        return None
    line = g.pick(WRITES)
    if "> 0" in line and not a.is_exact:
        return None
    return line.format(a=a.name, b=g.partner(a)), False, a


@operator(1)
def random_numbers(g):
    a = g.floating()
    return a and (g.pick(RANDOM).format(a=a.name), False)


@operator(0.7)
def made(g):
    device = f", device={g.device!r}" if g.device != "cpu" else ""
    n = g.pick([1, 3, 5, 33])
    return g.pick([f"torch.arange({n}{device})", f"torch.linspace(0, 1, {n}{device})", f"torch.zeros({n}{device})",
                   f"torch.eye({n}{device})", f"torch.tensor([1.0, 2.0, 3.0]{device})",
                   f"torch.full((2, {n}), 1.5{device})", f"torch.arange(0, 1, 0.25{device})",
                   f"torch.tensor(2{device})", f"torch.tril(torch.ones({n}, {n}{device}))",
                   f"torch.arange({n}{device}, dtype=torch.float32)", f"torch.ones(0{device})",
                   f"torch.scalar_tensor(1.5{device})", f"torch.logspace(0, 1, {n}{device})"]), False

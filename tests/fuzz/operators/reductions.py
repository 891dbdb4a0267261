"""Reductions over every set of axes, scans, sorting, norms, softmax."""

from .table import axis_of, dims_of, operator

MANY = ["{a}.sum({d}, keepdim={k})", "{a}.mean({d}, keepdim={k})", "{a}.var({d}, keepdim={k}, unbiased=False)",
        "{a}.std({d}, keepdim={k}, correction=0)", "torch.linalg.vector_norm({a}, dim={d}, keepdim={k})",
        "{a}.norm(dim={d}, keepdim={k})", "{a}.logsumexp({d}, keepdim={k})", "{a}.nansum({d}, keepdim={k})",
        "torch.var_mean({a}, {d}, keepdim={k}, correction=1)[0]", "{a}.nanmean({d}, keepdim={k})",
        "torch.linalg.vector_norm({a}, 1, dim={d}, keepdim={k})",
        "torch.linalg.vector_norm({a}, 3, dim={d}, keepdim={k})", "torch.std_mean({a}, {d}, keepdim={k})[1]",
        "{a}.sum({d}, keepdim={k}, dtype=torch.float64)",
        "torch.linalg.vector_norm({a}, 0, dim={d}) if False else {a}.sum({d})",
        "torch.linalg.vector_norm({a}, float('inf'), dim={d}, keepdim={k})"]
EXACT_MANY = ["{a}.amax({d}, keepdim={k})", "{a}.amin({d}, keepdim={k})", "torch.any({a}, {d}, keepdim={k})",
              "torch.all({a}, {d}, keepdim={k})", "torch.count_nonzero({a}, {d})"]
ONE = ["{a}.prod({d})", "{a}.cumsum({d})", "{a}.cumprod({d})", "{a}.logcumsumexp({d})", "{a}.softmax({d})",
       "F.log_softmax({a}, {d})", "F.softmin({a}, {d})", "{a}.prod({d}, keepdim=True)", "F.normalize({a}, dim={d})",
       "{a}.renorm(2, 0, 1.0)", "torch.trapezoid({a}, dim={d})", "{a}.diff(dim={d})",
       "{a}.softmax({d}, dtype=torch.float32)"]
EXACT_ONE = ["{a}.argmax({d})", "{a}.argmin({d}, keepdim=True)", "{a}.max({d})[0]", "{a}.min({d})[1]",
             "{a}.cummax({d})[0]", "{a}.cummin({d})[1]", "{a}.sort({d}, stable=True)[0]",
             "{a}.sort({d}, stable=True, descending=True)[1]", "{a}.median({d})[0]", "{a}.argsort({d}, stable=True)",
             "{a}.topk(1, {d})[0]", "{a}.kthvalue(1, {d})[0]", "{a}.aminmax(dim={d})[0]", "{a}.mode({d})[0]",
             "{a}.nanmedian({d})[0]", "{a}.quantile(0.5, {d})", "{a}.unique()"]
WHOLE = ["{a}.sum()", "{a}.mean()", "{a}.var()", "{a}.norm()", "{a}.prod()", "{a}.std(unbiased=False)",
         "{a}.logsumexp(tuple(range({a}.dim())))", "{a}.abs().sum()", "{a}.square().mean()", "torch.dist({a}, {a} * 2)",
         "{a}.trace()", "{a}.flatten().dot({a}.flatten())"]
EXACT_WHOLE = ["{a}.max()", "{a}.min()", "{a}.argmax()", "{a}.any()", "{a}.all()", "{a}.amax()", "{a}.argmin()",
               "{a}.count_nonzero()", "{a}.median()", "{a}.amin(())"]
INTEGERS = ["{a}.sum({d}, keepdim={k})", "torch.any({a}, {d}, keepdim={k})", "{a}.amax({d}, keepdim={k})",
            "torch.count_nonzero({a}, {d})", "{a}.sum()", "{a}.prod()", "{a}.max()", "{a}.cumsum({e})",
            "{a}.argmax({e})", "{a}.sort({e}, stable=True)[0]", "torch.bincount({a}.flatten().abs())",
            "{a}.float().mean({d})", "{a}.cumprod({e})", "{a}.sum({d}, dtype=torch.int32)", "{a}.all()",
            "{a}.sum({d}, dtype=torch.float32)"]


def formatted(g, text, a):
    return text.format(a=a.name, d=dims_of(g, a.value), k=g.pick([True, False]), e=axis_of(g, a.value))


@operator(3)
def many_axes(g):
    a = g.floating()
    return a and (formatted(g, g.pick(MANY), a), False)


@operator(1.2)
def exact_many_axes(g):
    a = g.floating(is_exact=True)
    return a and (formatted(g, g.pick(EXACT_MANY), a), True)


@operator(2)
def one_axis(g):
    a = g.floating()
    return a and (g.pick(ONE).format(a=a.name, d=axis_of(g, a.value)), False)


@operator(1)
def exact_one_axis(g):
    a = g.floating(is_exact=True)
    return a and (g.pick(EXACT_ONE).format(a=a.name, d=axis_of(g, a.value)), True)


@operator(1)
def whole(g):
    a = g.floating()
    return a and (g.pick(WHOLE).format(a=a.name), False)


@operator(0.7)
def exact_whole(g):
    a = g.floating(is_exact=True)
    return a and (g.pick(EXACT_WHOLE).format(a=a.name), True)


@operator(1)
def of_integers(g):
    a = g.integral()
    return a and (formatted(g, g.pick(INTEGERS), a), True)

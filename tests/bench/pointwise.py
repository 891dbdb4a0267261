"""Each pointwise function on a CPU, one thread: nanoseconds an element, Fusebox beside eager and the stock torch.compile.

    python tests/bench/pointwise.py [--only erfc lgamma …] [--types float32 float64 bfloat16] [--engines eager fusebox stock] [--seconds 0.3]
                                    [--elements 1048576] [--worst 1.1] [--json results.json]

The engines take turns, call by call, and the least time of each counts, so that a machine with other work on it still tells them apart. A row
is marked where Fusebox takes more than `--worst` times what the better of the others takes. `--json` is written after every row and holds the
rows of earlier runs, which are not measured again.
"""

import argparse
import json
import os
import time

import torch
import torch.nn.functional as F

S = torch.special
TYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}

ONE = {name: getattr(torch, name) for name in (
    "abs neg sign ceil floor round trunc frac sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh "
    "acosh atanh sigmoid erf erfc erfinv lgamma digamma reciprocal square nan_to_num sinc i0 logit isfinite signbit").split()}
ONE |= {name: getattr(F, name) for name in (
    "relu gelu silu mish softplus softsign hardswish hardsigmoid hardtanh elu selu leaky_relu logsigmoid tanhshrink softshrink").split()}
ONE |= {"special_" + name: getattr(S, name) for name in "i0e i1 i1e ndtr ndtri log_ndtr erfcx entr expit bessel_j0 bessel_j1".split()}
ONE |= {
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "clamp": lambda x: x.clamp(-1, 1), "pow_3": lambda x: x**3, "pow_2.5": lambda x: x**2.5,
    "pow_-1": lambda x: x**-1, "pow_half": lambda x: x**0.5, "two_to": lambda x: 2**x, "number_to": lambda x: 0.3**x, "remainder_3": lambda x: x % 3,
    "floor_divide": lambda x: x // 0.3, "over_3": lambda x: x / 3, "to_int64": lambda x: x.to(torch.int64), "to_uint8": lambda x: x.to(torch.uint8),
    "to_bool": lambda x: x.bool(), "round_2": lambda x: torch.round(x, decimals=2), "polygamma_1": lambda x: torch.polygamma(1, x),
    "to_float32": lambda x: x.float(), "to_float64": lambda x: x.double(), "to_bfloat16": lambda x: x.bfloat16(), "to_float16": lambda x: x.half(),
}
TWO = {name: getattr(torch, name) for name in (
    "add mul div pow atan2 hypot fmod remainder copysign nextafter fmax maximum logaddexp logaddexp2 xlogy heaviside floor_divide ldexp").split()}
TWO |= {"special_xlog1py": S.xlog1py, "special_zeta": S.zeta, "lerp": lambda x, y: torch.lerp(x, y, 0.3), "where": lambda x, y: torch.where(x > y, x, y),
        "less": lambda x, y: x < y, "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5), "addcdiv": lambda x, y: torch.addcdiv(x, x, y)}

# Where arguments lie that the function is for; others are normal, four wide.
UNIT, PLUS, BEYOND = lambda n: torch.rand(n) * 2 - 1, lambda n: torch.rand(n) * 20 + 0.01, lambda n: torch.rand(n) * 20 + 1
DOMAIN = dict.fromkeys("asin acos atanh erfinv".split(), UNIT) | dict.fromkeys(
    "sqrt rsqrt log log2 log10 log1p digamma pow pow_2.5 pow_half xlogy entr polygamma_1 special_zeta".split(), PLUS) | {
    "acosh": BEYOND, "logit": lambda n: torch.rand(n), "special_ndtri": lambda n: torch.rand(n), "special_entr": PLUS}


def measured(calls, seconds):
    """The least time of each call, in seconds."""
    least = dict.fromkeys(calls, float("inf"))
    for call in list(calls.values()) * 2:
        call()
    stop = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < stop:
        for engine, call in calls.items():
            start = time.perf_counter()
            call()
            least[engine] = min(least[engine], time.perf_counter() - start)
    return least


def row(function, name, arity, kind, options):
    import fusebox
    compilers = {"eager": lambda f: f, "fusebox": lambda f: fusebox.compile(f, dynamic=False), "stock": lambda f: torch.compile(f, dynamic=False)}
    torch.manual_seed(0)
    domain = DOMAIN.get(name, lambda n: torch.randn(n) * 4)
    arguments = [domain(options.elements).to(kind) for _ in range(arity)]
    calls = {}
    for engine in options.engines:
        compiled = compilers[engine](function)
        calls[engine] = lambda compiled=compiled: compiled(*arguments)
    try:
        least = measured(calls, options.seconds)
    except Exception as error:  # no kernel of this type
        return {"error": str(error).splitlines()[0][:100]}
    return {engine: 1e9 * t / options.elements for engine, t in least.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--types", nargs="*", default=["float32", "float64", "bfloat16"], choices=TYPES)
    parser.add_argument("--engines", nargs="*", default=["eager", "fusebox", "stock"])
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--elements", type=int, default=1 << 20)
    parser.add_argument("--worst", type=float, default=1.1)
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = {}
    if options.json and os.path.exists(options.json):
        with open(options.json) as file:
            rows = json.load(file)
    print(f"{'':34}" + "".join(f"{engine:>10}" for engine in options.engines) + "   ns an element")
    for arity, table in ((1, ONE), (2, TWO)):
        for name, function in table.items():
            if options.only and name not in options.only:
                continue
            for kind in options.types:
                key = f"{name}{'_of_two' if arity == 2 else ''} {kind}"
                if key not in rows:
                    rows[key] = row(function, name, arity, TYPES[kind], options)
                    torch._dynamo.reset()
                    if options.json:
                        with open(options.json, "w") as file:
                            json.dump(rows, file, indent=1)
                times = rows[key]
                if "error" in times:
                    print(f"{key:34} {times['error']}", flush=True)
                    continue
                others = [t for engine, t in times.items() if engine != "fusebox"]
                ratio = times["fusebox"] / min(others) if others and "fusebox" in times else 0
                print(f"{key:34}" + "".join(f"{times[engine]:10.2f}" for engine in times) + f"{ratio:8.2f}{' <' if ratio > options.worst else ''}", flush=True)


if __name__ == "__main__":
    main()

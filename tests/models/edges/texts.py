"""Texts that are made of numbers which change from call to call, and texts that are given: handed on, said, read, and put together."""

import collections
import functools
import logging
import sys
import types

import torch

from . import edge


class Holder:
    pass


def calls(f, compile, values=(3.5, 10, 2.25, -7, 1e300, float("inf"), 12345678.9, 0, True, 2**40, "a", "b", "c{}d%s", "", "é")):
    """What f gives for each value, printed or returned, or the error it raises."""
    run, out = compile(f), []
    for value in values:
        try:
            out.append(run(torch.ones(2), value))
        except Exception as error:
            out.append(f"{type(error).__name__}: {error}")
    return out


NUMBERS = (3.5, 10, 2.25, -7, 1e300, float("inf"), float("nan"), 12345678.9, 0, -0.0, 2**40, 1.5, 4)


@edge
def returned_and_put_away(compile, engine):
    holder = Holder()

    def f(x, v):
        s = "x"
        s += f"{v}"
        holder.name, holder.all = s + " y", [s, {"k": (s, f"{v!r:>20}|{v!a}")}]
        return x + 1, s, f"{v}" * 2, [f"{v}"] * 2, {f"{v}": f"{v}"}

    def g(x, v):
        return x * 2, "{} {:.2f} {!r:>12} {0}".replace("{0}", "k").format(v, v, v), "%s %8.3f%% %r %-9s|" % (v, v, v, v), f"{v:+e} {v:>{12}}", str(v).rjust(9, "*")

    def h(x, v):
        rows = [f"{i}: {v * i:.1f}" for i in range(3)]
        rows.insert(0, f"b{v}")
        rows.extend([str(v)])
        d = dict(a=f"{v}")
        d.update(b=f"{v}!")
        d.setdefault("c", f"{v}?")
        return x - 1, rows, "; ".join(rows), ", ".join(f"{k}={u}" for k, u in d.items()), d, "".join(map(str, (v, 2))), str({"v": v, "w": [v]}), repr((v,))

    out = []
    for program in (f, g, h):
        out += [calls(program, compile, NUMBERS), holder.__dict__.copy()]
    return out


@edge
def said(compile, engine):
    log = logging.getLogger("edges.texts")
    log.setLevel(logging.INFO)
    handler = logging.StreamHandler(sys.stdout)
    log.addHandler(handler)

    def f(x, v):
        print("step", f"{v}", [f"{v:.2f}"], sep="|")
        log.info("at %s", f"{v}")
        log.info(f"{v!r}")
        y = x * 2
        print(f"then {y.sum().item():.3f}", str(y.sum().item()), "%5.1f" % y.mean().item())
        return y

    out = calls(f, compile, NUMBERS)
    log.removeHandler(handler)
    return out


@edge
def read(compile, engine):
    def f(x, v):
        s = f"{v}"
        if s.startswith("1"):
            return x + 1, len(s), s.upper()
        return x - 1, s == "3.5", s != f"{v}", s in ("10", "0"), s[:2], list(s), s < "5", "e" in s, hash(s) == hash(str(v)), bool(s[5:]), int(f"{v:.0f}") if v == 10 else 0

    def g(x, v):
        name = f"w{int(v) % 2}" if abs(v) < 100 else "w1"
        return getattr(torch, {"w0": "neg", "w1": "abs"}[name])(x), {name: 1, "w1": 2}[name], isinstance(name, str), type(name), name is None

    def h(x, v):
        match f"{v}":
            case "10":
                return x + 10
            case str() as other:
                return x, other

    def raising(x, v):
        if f"{v:d}" == "10":
            return x
        raise ValueError(f"not {v}") from KeyError("%x" % v)

    return [calls(program, compile, NUMBERS) for program in (f, g, h, raising)]


@edge
def given(compile, engine):
    holder = Holder()

    def inner(x, name, depth=2):
        print("in", name)
        return inner(x * 2, f"{name}.{depth}", depth - 1) if depth else x

    def f(x, s):
        holder.last = s
        return inner(x, s), s, [s, (s,)], f"<{s:>5}>", s + "!", "%s|%r" % (s, s)

    def g(x, s):
        return x + (1 if s == "b" else 2), s or "empty", s.upper(), len(s), s * 2, s in "abc", {s: x.sum()}, s.encode()

    def across(x, s):
        t = f"{s}/{s}"
        torch._dynamo.graph_break()
        print(t, s)
        return x + 1, t

    texts = ["a", "b", "c{}d%s", "", "é", "a", "zz", "\ud800"]
    return [calls(program, compile, texts) for program in (f, g, across)] + [holder.last]


@edge
def within_objects_that_c_code_looks_into(compile, engine):
    class Told:
        def __init__(self, v):
            self.v = v

        def __str__(self):
            return f"told {self.v}"

        def __repr__(self):
            return f"Told({self.v}é)"

        def __format__(self, spec):
            return f"{self.v}|{spec}"

    def f(x, v):
        s = f"{v}"
        error = ValueError("q")
        error.args = (s,)
        space = types.SimpleNamespace(a=[s])
        return x + 1, error.__str__(), repr(error), repr(space), space.__repr__(), collections.deque([[s]]).__repr__(), repr(functools.partial(int, s)), \
            types.MappingProxyType({"a": s}).__repr__(), str(ValueError([s])), hash(s) == hash(str(v))

    def g(x, v):
        told = Told(v)
        print(told, f"{told:>9}")
        return x, str(told), repr(told), f"{told!a} {told!r}", ascii(told), "%s %r" % (told, [told]), "{!s:>20}".format(told)

    def h(x, v):
        d = collections.defaultdict(list)
        d["a"].append(f"{v}")
        return x, str(d), f"{collections.Counter(a=v)}" if v == 10 else 0

    return [calls(program, compile, NUMBERS) for program in (f, g, h)]


@edge
def that_methods_refuse(compile, engine):
    done = []

    def f(x, s):
        try:
            t = "ab".center(5, s) + "ab".rjust(3, s)
        except TypeError as error:
            t = str(error)
        return x + 1, t

    def g(x, s):
        done.append(1)
        t = "ab".ljust(5, s)
        done.append(2)
        return x + 1, t

    def h(x, s):
        return x, "{!x}".format(s), 1

    def k(x, s):
        return x, s.__format__(">5"), s.__len__(), s.__add__("b"), s.__class__, s.__eq__("b"), s.isalpha(), s.split("c"), s.count("z")

    out = [calls(program, compile, ["a", "b", "ccc", "d", "zz", ""]) for program in (f, g, h, k)]
    return out, done, calls(h, compile, NUMBERS), calls(lambda x, v: "\ud800%s" % v, compile, NUMBERS)


@edge
def that_are_one_object(compile, engine):
    def f(x, s, t):
        return x + 1, s is t, s is s, [s] == [t], s is None, s is not t

    def g(x, s):
        d = {s: 1}
        return x, next(iter(d)) is s, list({s})[0] is s, s is s.strip(), s is "".join([s]), d

    def h(x, v):
        s = f"{v} {v}"
        d = {s: 1}
        return x, s, next(iter(d)), d

    texts = ["".join(["te", "xt", str(i)]) for i in range(6)]
    out = [[compile(f)(torch.ones(2), a, b) for a, b in zip(texts, [texts[0], texts[1], texts[1], *texts[3:]])], calls(g, compile, texts)]
    for made in calls(h, compile, NUMBERS):
        out.append((made, made[1] is made[2], next(iter(made[3])) is made[1]))
    return out


@edge
def of_what_data_decide(compile, engine):
    def f(x, v):
        loss = (x * v).sum()
        flag = loss > 3
        first = f"{loss.item():.3f}"
        x.add_(1)
        return x, first, str(x.sum().item()), f"{flag.item()}", "%r" % (x * 2).sum().item(), [f"{n:.1f}" for n in x.tolist()], \
            {"loss": round(loss.item(), 3), "half": round(loss.item(), 1) / 2, "more": round(loss.item(), -1), "%d": "%d" % round(loss.item(), 0)}

    return calls(f, compile, (1, 2.5, -3, 4.0))

"""match statements."""

import dataclasses
import enum

import torch

from . import script


def rows(*s):
    return torch.randn(*(s or (4, 5)))


@dataclasses.dataclass
class Point:
    x: object
    y: object = 2
    __match_args__ = ("x", "y")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@script
def match_class(compile):
    @compile
    def f(p, t):
        match p:
            case Point(x=0, y=y):
                return t * y
            case Point(int() as a, b) if a > 3:
                return t + a + b
            case [a, b, *rest]:
                return t - a - len(rest)
            case {"k": v, **rest}:
                return t * v + len(rest)
            case str(s):
                return t + len(s)
            case Color.RED:
                return t * 100
            case None | True:
                return t
            case torch.Tensor():
                return t + p
            case (1 | 2) as n:
                return t * n
            case _:
                return t * 0

    cases = [
        Point(0, 3),
        Point(5, 6),
        Point(1, 1),
        [1, 2, 3, 4],
        (7, 8),
        {"k": 4, "j": 1},
        {"z": 1},
        "abc",
        Color.RED,
        Color.BLUE,
        None,
        2,
        7,
        1.5,
        rows(),
        [],
        {},
    ]
    return [f(c, rows()) for c in cases]


@script
def match_nested(compile):
    @compile
    def f(op, x):
        def ev(op):
            match op:
                case ("add", a, b):
                    return ev(a) + ev(b)
                case ("mul", a, b):
                    return ev(a) * ev(b)
                case ("var",):
                    return x
                case {"const": float(c) | int(c)}:
                    return torch.full_like(x, c)
                case [("neg", a)]:
                    return -ev(a)
                case _:
                    raise ValueError(f"bad {op!r}")

        return ev(op)

    out = [f(("add", ("mul", ("var",), {"const": 2}), [("neg", ("var",))]), rows())]
    try:
        f(("sub",), rows())
    except ValueError as e:
        out.append(str(e))
    return out


@script
def match_with_break(compile):
    @compile
    def f(cmd, x):
        y = x * 2
        match cmd.split():
            case ["go", d]:
                n = y.sum().item()
                return y + n, d
            case ["stop"]:
                return y - 1, None
            case [*w]:
                return y, w

    return f("go north", rows()), f("stop", rows()), f("a b c", rows())

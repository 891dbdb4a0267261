"""Classes that derive from builtin ones: which of their methods CPython's C code asks for, and which it does not.

Every function is compared with eager: what it gives, and whether an operator with "=" leaves the object that it was.
"""

import collections

import torch

import fusebox
from checks.script_checks import expect, run


class Dotted(dict):
    __getattr__, __setattr__, __delattr__ = dict.get, dict.__setitem__, dict.__delitem__


class Placed(dict):
    __setitem__, __contains__, __delitem__ = dict.setdefault, dict.get, dict.pop


class PlacedList(list):
    __setitem__, __delitem__ = list.insert, list.remove


class Asked:
    __contains__ = staticmethod(lambda v: v == "z")

    def __iter__(self):
        return iter([1])


class Lower(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)


class LowerInOrder(collections.OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)


class Declines(dict):
    def __eq__(self, other):
        return NotImplemented if type(other) is dict else True


class DeclinesAsSet(set):
    def __eq__(self, other):
        return NotImplemented

    __hash__ = None


class DeclinesAsFloat(float):
    def __eq__(self, other):
        return float(self) == float(other) if isinstance(other, DeclinesAsFloat) else NotImplemented

    __hash__ = float.__hash__


class Difference(set):
    def __sub__(self, other):
        return set.__sub__(self, other)


class Sum(list):
    def __add__(self, other):
        return Sum(list.__add__(self, other))

    def __mul__(self, other):
        return "product"


def says(name):
    return lambda self, other: name


Reflected = type("Reflected", (), {f"__{name}__": says(name) for name in ("radd", "rsub", "rmul", "rmatmul", "rlshift", "rand", "rmod", "eq", "gt")} | {"__hash__": None})


ReflectedFloat, ReflectedInt, ReflectedSet, ReflectedTuple, ReflectedList, ReflectedText = (
    type("Reflected", (Reflected, base), {}) for base in (float, int, set, tuple, list, str))


def alike(f, *make):
    """`make`: of what arguments are made, anew for each side; they are compared afterwards, too."""
    x = torch.ones(2)
    eager, given = [m() for m in make], [m() for m in make]
    fusebox.reset()
    expected, got = f(x, *eager), fusebox.compile(f)(x, *given)
    expect(str(got) == str(expected), f"{f.__name__}: {got} where eager gives {expected}")
    expect(str(given) == str(eager), f"{f.__name__} leaves {given} where eager leaves {eager}")


def test_attributes_that_are_keys():
    def f(x):
        d = Dotted(a=x)
        d.b = d.a + 1
        del d.a
        return list(d), d.absent, d.b, d.__dict__

    def count(x, d):
        d.n = (d.n or 0) + 1
        return x * d.n, d.__dict__

    alike(f)
    alike(count, Dotted)


def test_methods_of_c_under_names_of_slots():
    def f(x, d, items):
        d["a"] = 5
        d["b"] = 6
        del d["c"]
        items[0] = 7
        del items[3]
        return "a" in d, "z" in d, "z" in Asked(), 1 in Asked(), x

    def made(x):
        d, items = Placed(a=1), PlacedList([1, 3])
        d["a"] = 5
        items[1] = 4
        return dict(d), list(items), x + 1

    alike(f, lambda: Placed(a=1, c=2), lambda: PlacedList([1, 3]))
    alike(made)


def test_methods_of_dict_do_not_ask_setitem():
    def made(x):
        d = Lower(A=x)
        d.update(B=2)
        d.setdefault("C", 3)
        d |= {"D": 4}
        d["E"] = 5
        return list(d), list(Lower([("F", 6)])), x + 1

    def given(x, d):
        d.update(Z=1)
        d.setdefault("Y", 2)
        return sorted(d), x

    def in_order(x):  # OrderedDict's do
        d = LowerInOrder(A=1)
        d.update(B=2)
        d.setdefault("C", 3)
        return list(d), x

    alike(made)
    alike(given, Lower)
    alike(in_order)


def test_a_comparison_that_declines_leaves_it_to_the_other_side():
    def f(x):
        d, s = Declines(a=1), DeclinesAsSet([1])
        return d == {"a": 1}, {"a": 1} == d, d != {"a": 1}, d == {"a": 2}, d == Declines(), s == {1}, s == 3, x + 1

    def numbers(x):
        n = DeclinesAsFloat(1.0)
        return n == 1.0, 1.0 == n, n != 1.0, n == x, n in [1.0], n == 1, n is None, n == "1"

    alike(f)
    alike(numbers)


def test_operators_with_an_equals_sign_change_the_object():
    def made(x):
        s, both = Difference([1, 2]), Sum([1])
        p, q = s, both
        s -= {1}
        both += [2]
        both *= 2
        return p is s, sorted(p), type(s).__name__, q is both, list(q), x + 1

    def given(x, s):
        s -= {1}
        return x + len(s)

    def of_tensors(x):
        t = torch.arange(4)
        same = t
        t &= ReflectedInt(1)
        t += ReflectedInt(3)
        return t, same is t, x

    alike(made)
    alike(given, lambda: Difference([1, 2]))
    alike(of_tensors)


def test_who_is_asked_first():
    def with_tensors(x, given):
        return x * ReflectedFloat(2), x + ReflectedInt(1), x - ReflectedInt(1), x * given, x.shape + ReflectedTuple((1,))

    def without(x):
        return (1 - ReflectedInt(2), 1.5 + ReflectedInt(2), True + ReflectedInt(2), 2.0 * ReflectedFloat(2), 2 * ReflectedFloat(2), (1,) + ReflectedTuple((2,)),
                [1] + ReflectedList([2]), 2 * ReflectedList([1]), "a" + ReflectedText("b"), "%s" % ReflectedText("q"), 1 + Reflected(), 1.5 @ ReflectedInt(2), 1.5 << ReflectedInt(2),
                frozenset([1]) + ReflectedSet([2]), frozenset([1]) - ReflectedSet([1]), x)

    def comparisons(x):
        return x == ReflectedInt(1), x < ReflectedFloat(2), 1.5 == ReflectedInt(1), 1 == ReflectedFloat(1), 1 == ReflectedInt(2), 1 < Reflected(), x

    alike(comparisons)
    alike(with_tensors, lambda: ReflectedFloat(3))
    alike(without)


if __name__ == "__main__":
    run(globals())

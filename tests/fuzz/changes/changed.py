"""What the statements of changes call: each makes the same thing in both worlds."""

import types

import torch


def changed(f, index):
    """The function with its `index`-th number another one."""
    return types.FunctionType(changed_code(f.__code__, index), f.__globals__, f.__name__, f.__defaults__, f.__closure__)


def numbers_of(code):
    """Positions of constants that changed_code may change."""
    return [i for i, c in enumerate(code.co_consts) if type(c) in (int, float, bool, str) and not (i == 0 and type(c) is str)]


def changed_code(code, index):
    consts = list(code.co_consts)
    positions = numbers_of(code)
    if not positions:
        return code
    position = positions[index % len(positions)]
    value = consts[position]
    consts[position] = value + "_" if type(value) is str else not value if type(value) is bool else value + 1
    return code.replace(co_consts=tuple(consts))


def replaced(sequence, index, value):
    """The tuple with another element; named tuples stay what they are."""
    items = [*sequence[:index], value, *sequence[index + 1:]]
    return type(sequence)(*items) if hasattr(sequence, "_fields") else type(sequence)(items)


def renamed(d, old, new):
    """Puts `new` in the place of a key, in order."""
    items = [(new if k is old or k == old else k, v) for k, v in d.items()]
    d.clear()
    d.update(items)


def moved(s, key):
    """The element is taken out of the set and put in again, behind another one."""
    others = [k for k in s if k != key]
    s.clear()
    s.update([key])
    s.update(others[::-1])


def derived(cls, **members):
    """A subclass with the class's own name."""
    return type(cls)(cls.__name__, (cls,), {"__module__": "world", "__qualname__": cls.__qualname__, **members})


def strided(t):
    """The same tensor with another order of strides."""
    return t.transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else torch.stack([t, t], -1)[..., 0]


def shifted(t, by=3):
    """The same tensor at an offset of a larger storage."""
    base = torch.zeros(t.numel() + by + 2, dtype=t.dtype)
    view = base[by:by + t.numel()].view(t.shape)
    view.copy_(t.detach())
    return view


def raising(kind=ValueError):
    def raises(*args, **kwargs):
        raise kind("changed")
    raises.__module__ = "world"
    return raises


def doubled(module, args, result):
    return result * 2 if isinstance(result, torch.Tensor) else result


def negated(module, args):
    return tuple(-a if isinstance(a, torch.Tensor) else a for a in args)


class Tagged(torch.Tensor):
    """A subclass that changes nothing."""


class Logged(torch.Tensor):
    """A subclass that sees every function."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs)


class Mode(torch.overrides.TorchFunctionMode):
    """A function mode that says what it sees."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def put_hook(name):
    def hook(t):
        return t * 2
    hook.__name__ = name
    return hook

"""A world for every kind of guard, named after it: with that kind switched off, one of the changes that its program sees goes unnoticed.

`--without KIND` changes these programs alone, so that each kind is missed within seconds.
"""

import torch


def world_type_match():
    def f(x, items):
        return x * items[0] + items[1], type(items).__name__
    return f, (torch.ones(2, 3), [2.0, 3.0])


def world_id_match():
    def f(x):
        return torch.sin(x) + torch.nn.functional.relu(x) + sum([1, 2]) + max(1, 2)
    return f, (torch.arange(6.0).view(2, 3) - 2,)


def world_constant_match():
    def f(x, n, s):
        return x * n, s
    return f, (torch.ones(2, 3), 2, "text")


def world_tensor_match():
    def f(x, y):
        return x * 2 + y, x.dtype, tuple(x.shape), x.stride()
    return f, (torch.ones(2, 3), torch.zeros(2, 3))


def world_sequence_length():
    def f(x, items):
        return x + len(items)
    return f, (torch.ones(2, 3), [1.0, 2.0, 3.0])


def world_dict_keys_match():
    def f(x, table):
        for k in table:
            x = x * 2 + len(str(k))
        return x, list(table)
    return f, (torch.ones(2, 3), {"a": 1.0, "bcd": 2.0, "ef": 3.0})


def world_dict_length():
    def f(x, table):
        return x + len(table)
    return f, (torch.ones(2, 3), {"a": 1.0, "b": 2.0})


def world_dict_contains():
    def f(x, table):
        table["b"] = 3.0
        return x + len(table)
    return f, (torch.ones(2, 3), {"a": 1.0, "b": 2.0})


def world_not_present_in_dict():
    def f(x, table):
        return x + (1 if "new" in table else 2)
    return f, (torch.ones(2, 3), {"a": 1.0})


def world_dict_empty():
    def f(x, table):
        return x + (1 if table else 2)
    return f, (torch.ones(2, 3), {})


class Scaled:
    factor = 2.0

    def apply(self, x):
        return x * self.factor


def world_type_version():
    o = Scaled()

    def f(x):
        return o.apply(x) + Scaled.factor
    return f, (torch.ones(2, 3),)


def world_duplicate_input():
    def f(x, pair):
        return x + (1 if pair[0] is pair[1] else 2), pair[0] * 2
    one = torch.ones(2, 3)
    return f, (torch.ones(2, 3), [one, one])


def world_no_aliasing():
    def f(x, pair):
        return x + (1 if pair[0] is pair[1] else 2), pair[0] * 2
    return f, (torch.ones(2, 3), [torch.ones(2, 3), torch.ones(2, 3)])


def scaled(x):
    return x * 3 + 1


def world_code_match():
    def f(x):
        return scaled(x)
    return f, (torch.ones(2, 3),)


def world_global_state():
    def f(x, w):
        y = x * w
        return y, torch.ones(2), x @ w.t(), torch.is_grad_enabled()
    return f, (torch.ones(2, 3), torch.ones(2, 3, requires_grad=True))


def world_custom():
    items = {1, 2, 3}

    def f(x):
        total = 0
        for n in items:
            total = total * 10 + n
        return x + total
    return f, (torch.ones(2, 3),)

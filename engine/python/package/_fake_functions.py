"""Functions that say what the results of an operator are like: torch.library.register_fake's."""


class _Context:
    """What torch.library.get_ctx() gives them: sizes that data decide."""

    def __init__(self, new_size):
        self._new_size = new_size

    def new_dynamic_size(self, *, min=0, max=None):
        if type(min) is not int or type(max) not in (int, type(None)):
            raise ValueError(f"ctx.new_dynamic_size(min={min}, max={max}): bounds are plain ints")
        if min < 0:
            raise ValueError(f"ctx.new_dynamic_size(min={min}): a size is not negative")
        return self._new_size(min, max)

    def create_unbacked_symint(self, *, min=2, max=None):
        return self.new_dynamic_size(min=min, max=max)


def of(name):
    """The function of an operator, by its name with its overload; None: there is none."""
    from torch._library.simple_registry import singleton

    entry = singleton._data.get(name)
    return entry.fake_impl.kernel if entry is not None else None


def call(function, args, kwargs, new_size):
    from torch._library.fake_impl import set_ctx_getter

    from . import _symbol_nodes

    _symbol_nodes.complete()
    context = _Context(new_size)
    with set_ctx_getter(lambda: context):
        return function(*args, **kwargs)

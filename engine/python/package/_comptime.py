"""What functions given to torch._dynamo.comptime see of the capture that they are called in: ComptimeContext and ComptimeVar of PyTorch, by the
same names. A tensor's value is a stand-in: it has sizes, type and device, and no data."""

import dis
import json
import logging
import time
import traceback


class GraphBreakAsked(Exception):
    """ComptimeContext.graph_break() was called."""


class _AsPyTorchs:
    """What PyTorch's class of that name has and this one lacks ends the graph there, as a break that names it."""

    def __getattr__(self, name):
        from torch._dynamo import comptime
        if not name.startswith("_") and hasattr(getattr(comptime, type(self).__name__), name):
            raise GraphBreakAsked(f"{type(self).__name__}.{name} is not known here")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


def _as_text(value, text):
    """A tensor as PyTorch shows one that has no data; what else is known, in short."""
    import torch
    if not isinstance(value, torch.Tensor):
        return text
    parts = ["...", f"size={tuple(value.shape)}"]
    if value.device.type != "cpu":
        parts.append(f"device='{value.device}'")
    if value.dtype != torch.get_default_dtype():
        parts.append(f"dtype={value.dtype}")
    return f"FakeTensor({', '.join(parts)})"


class ComptimeVar(_AsPyTorchs):
    """A value as it is known while capturing."""

    def __init__(self, value, text, is_symbolic):
        self._value, self._text, self._is_symbolic = value, text, is_symbolic

    def _is_tensor(self):
        import torch
        return isinstance(self._value, torch.Tensor)

    def as_fake(self):
        if self._is_tensor() or self._is_symbolic:
            return self._value
        raise AttributeError(f"{self._text} is neither a tensor nor a symbolic number")

    def size(self, dim=None):
        return self._value.size() if dim is None else self._value.size(dim)

    def python_type(self):
        return type(self._value)

    def is_python_constant(self):
        return not self._is_tensor() and not self._is_symbolic

    def as_python_constant(self):
        if not self.is_python_constant():
            raise NotImplementedError(f"{self._text} is not known while capturing")
        return self._value

    def is_dynamic(self):
        return self._is_symbolic

    def __repr__(self):
        return _as_text(self._value, self._text)


class ComptimeContext(_AsPyTorchs):
    """A place in the program while it is captured."""

    def __init__(self, frames, graph, guards):
        self._frames, self._graph, self._guards = frames, graph, guards

    def _frame(self, stacklevel):
        if stacklevel >= len(self._frames):
            raise ValueError(f"stacklevel={stacklevel}: only {len(self._frames)} frames are captured here")
        return self._frames[stacklevel]

    def get_local(self, name, *, stacklevel=0):
        return ComptimeVar(*self._frame(stacklevel)[1][name])

    def graph_break(self, msg="ComptimeContext.graph_break"):
        raise GraphBreakAsked(msg)

    def graph(self):
        """The operators recorded so far, as text."""
        return self._graph

    def assert_static(self, val):
        assert not val.is_dynamic(), "expected static but got dynamic"

    def parent(self):
        return ComptimeContext(self._frames[1:], self._graph, self._guards)

    def print(self, val, *, file=None):
        print(repr(val), file=file)

    def print_graph(self, *, verbose=True, file=None):
        print(self._graph, file=file)

    def print_locals(self, *, file=None, stacklevel=0):
        for name, (value, text, _) in self._frame(stacklevel)[1].items():
            print(f"{name} = {_as_text(value, text)}", file=file)

    def print_value_stack(self, *, file=None, stacklevel=0):
        for value, text in self._frame(stacklevel)[2]:
            print(f"- {_as_text(value, text)}", file=file)

    def print_disas(self, *, file=None, stacklevel=0):
        code, _, _, _, offset = self._frame(stacklevel)
        print(dis.Bytecode(code, current_offset=offset).dis(), file=file)

    def print_bt(self, *, file=None, stacklevel=0):
        places = [traceback.FrameSummary(code.co_filename, line, code.co_name) for code, _, _, line, _ in self._frames[stacklevel:]]
        print("".join(traceback.StackSummary.from_list(reversed(places)).format()), file=file)

    def print_guards(self, *, file=None):
        for guard in json.loads(self._guards)["guards"]:
            print(f"{guard['kind']} {guard['source']} {guard['expected']}".rstrip(), file=file)

    def sleep(self, sec):
        time.sleep(sec)


def failure(error, places):
    """What the program gets where such a function raises `error` in the frames of `places` (code and line, innermost first): in the form that
    PyTorch gives it. None: errors are suppressed, and this one is logged."""
    from torch._dynamo import config, exc
    told = error
    if not isinstance(error, AssertionError):
        told = exc.InternalTorchDynamoError(f"{type(error).__qualname__}: {error}").with_traceback(error.__traceback__)
    told.real_stack = traceback.StackSummary.from_list(traceback.FrameSummary(code.co_filename, line, code.co_name) for code, line in reversed(places))
    exc.augment_exc_message(told)
    if not config.suppress_errors:
        return told
    try:
        raise told from None
    except Exception:
        logging.getLogger("torch._dynamo.convert_frame").warning(exc.format_error_msg(told, places[-1][0]))
    return None

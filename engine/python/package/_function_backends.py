"""Backends that are functions of Python: backend(graph_module, example_inputs) returns what runs in the graph's place."""

import contextlib
import functools
import itertools
import logging
import math
import sys
import threading
import warnings

import sympy
import torch
import torch.fx

from . import _records
from ._torch_calls import Assuming, NotExpressible, Sized, build
from ._unused_options import once


_numbers = itertools.count()  # of graphs that backends were given
ASKS = "the backend asks more of its sizes"  # the engine knows the text
_MOST_ASKED = 64  # of one graph


def _why_it_ends(captured):
    from torch._dynamo.output_graph import GraphCompileReason
    return GraphCompileReason("graph break" if captured.breaks else "return_value", [], graph_break=captured.breaks)


def _name_of(function):
    return getattr(function, "__name__", None) or type(function).__name__


class FunctionBackend:
    """A backend as the engine asks it: `graph` while capturing, `compile` once for each graph."""

    def __init__(self, function, kwargs):
        self.function, self.kwargs, self.name = function, kwargs, _name_of(function)
        self.asked = {}  # by graph: what it asks of sizes, as Python over n0, n1, …
        self.waiting = None  # (graph, what it asks, what was compiled) until that is guarded

    def graph(self, rows, names, inputs, results, grad_before, grad_after, assumes, data, assumptions, writes, breaks):
        """A TorchGraph; None: there is nothing to compile; (row, reason): that call cannot be part of a graph."""
        try:
            with torch._C.DisableTorchFunctionSubclass():  # the program's classes have heard of all this
                made = build(rows, names, inputs, results, grad_before, grad_after, assumes, data, assumptions)
            if made is not None:
                made.breaks = bool(breaks)
                if made.sizes:
                    if writes and _share_memory(made):
                        raise NotExpressible(-1, "inputs that share memory, to which the graph writes, have sizes that change")
                    _describe_sizes(made, self.asked)
            return made
        except NotExpressible as refused:
            return refused.row, refused.reason

    def watched(self):
        """The backend, or, where torch._dynamo.config.repro_after wants failures made small, around it what does that."""
        from torch._dynamo import config
        from torch._dynamo.backends.registry import list_backends
        if config.repro_after != "dynamo":
            return self.function
        from torch._dynamo.repro.after_dynamo import wrap_backend_debug
        return wrap_backend_debug(self.function, self.name if self.name in list_backends(exclude_tags=()) else None)

    def compile(self, captured, frame):
        """The callable that takes the graph's inputs one by one and gives its results in a tuple or list; None: the backend asks for the
        frame to be left to Python."""
        module = captured.module or torch.fx.GraphModule(captured.root, captured.graph, "GraphModule")
        module.torchdynamo_force_dynamic = False
        module.compile_subgraph_reason = _why_it_ends(captured)
        inputs = list(captured.inputs)
        captured.inputs = None  # compiled code does not keep the first call's tensors
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv
        if not captured.sizes:
            mode = _static_mode(ShapeEnv(assume_static_by_default=True))
            with _same_modes():
                _describe_values(module, inputs, captured, FakeTensorMode(shape_env=ShapeEnv(assume_static_by_default=True), allow_non_fake_inputs=True))
        else:
            mode = captured.mode
        unheard = torch._C.DisableTorchFunctionSubclass if torch.overrides.has_torch_function(tuple(inputs)) else contextlib.nullcontext
        _records.handed_out(frame, module)
        context = torch._guards.TracingContext(mode)
        from torch._dynamo import config
        from torch._dynamo.exc import BackendCompilerFailed, ShortenTraceback, SkipFrame
        try:
            compile_context = torch._guards.CompileContext(torch._guards.CompileId(frame_id=next(_numbers), frame_compile_id=0))
            compiled = self.guarded_now(captured) if captured.sizes else None
            if compiled is None:
                with _same_modes(), unheard(), torch._guards.compile_context(compile_context), torch._guards.tracing(context):
                    compiled = self.watched()(module, [*captured.symbols, *inputs], **self.kwargs)
                if captured.sizes and callable(compiled) and (answer := self.asks_more(captured, mode.shape_env, compiled)):
                    return answer
            if not callable(compiled):
                raise TypeError(f"a backend returns what is called in the graph's place, not {type(compiled).__name__}")
        except SkipFrame:
            return None
        except ShortenTraceback:
            raise
        except Exception as error:
            failed = BackendCompilerFailed(self.function, error, sys._getframe())
            if config.suppress_errors:
                warnings.warn(f"{frame} is left to Python: {failed}", RuntimeWarning, stacklevel=2)
                return None
            raise failed.with_traceback(error.__traceback__) from error
        if len(captured.used_inputs) > len(inputs) or captured.sizes:
            compiled = Sized(compiled, list(captured.sizes.values()), len(inputs))
        return Assuming(compiled) if captured.assumes else compiled

    def asks_more(self, captured, shape_env, compiled):
        """What tracing of PyTorch's own found out about sizes beyond the capture's guards. None: nothing; ASKS: capture goes over it again, with guards for
        it; else why that cannot be."""
        asked = [guard.expr for guard in shape_env.guards[captured.guards:]]
        asked += [equal for equal in _replaced(shape_env) if equal not in captured.replaced]
        if not asked:
            return None
        numbers = {symbol.node._expr: sympy.Symbol(f"n{i}", integer=True) for i, symbol in enumerate(captured.symbols)}
        texts = []
        for expression in asked:
            if not all(symbol in numbers for symbol in expression.free_symbols):
                return f"the backend asks whether {expression}"
            texts.append(_python(expression.xreplace(numbers)))
        new = [text for text in texts if text not in captured.held]
        if not new:
            return None
        known = self.asked.setdefault(captured.text_of_sizes, [])
        if any(text in known for text in new) or len(known) > _MOST_ASKED:
            return f"the backend asks whether {asked[texts.index(new[0])]}"
        known += new
        self.waiting = captured.text_of_sizes, texts, compiled
        return ASKS

    def guarded_now(self, captured):
        """What was compiled of the same graph a moment ago, when nobody guarded what it took for granted."""
        waiting, self.waiting = self.waiting, None
        if waiting and waiting[0] == captured.text_of_sizes and set(waiting[1]) <= captured.held:
            return waiting[2]
        return None


def _python(expression):
    from torch.utils._sympy.printers import PythonPrinter
    return PythonPrinter().doprint(expression)


def _replaced(shape_env):
    """What symbols are taken for, as equations, but for those of data, which the graph itself asks about."""
    from torch.utils._sympy.symbol import SymT, symbol_is_type
    return [sympy.Eq(symbol, other, evaluate=False) for symbol, other in shape_env.replacements.items() if not symbol_is_type(symbol, SymT.UNBACKED_INT)]


def _share_memory(captured):
    """Whether an input with sizes that are symbols has the storage of another: PyTorch's tracing would have symbols for that."""
    dynamic = [t.untyped_storage().data_ptr() for t, names in zip(captured.inputs, captured.dynamic) if any(names) and t.layout is torch.strided]
    every = [t.untyped_storage().data_ptr() for t in captured.inputs if t.layout is torch.strided]
    return any(address and every.count(address) > 1 for address in dynamic)


def _describe_sizes(captured, asked):
    """The graph's values with sizes that are symbols, while it is captured: what PyTorch asks of them becomes guards of the capture, and what the
    backend has asked of this graph before."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    while True:
        shape_env = ShapeEnv(assume_static_by_default=True)
        captured.module = torch.fx.GraphModule(captured.root, captured.graph, "GraphModule")
        captured.mode = FakeTensorMode(shape_env=shape_env, allow_non_fake_inputs=True)
        with _same_modes():
            captured.symbols = _describe_values(captured.module, captured.inputs, captured, captured.mode)
        known = {name: int(str(symbol)) for name, symbol in zip(captured.sizes, captured.symbols) if str(symbol).isdecimal()}
        for name, value in known.items():
            if captured.own_sizes[name] != value:
                raise NotExpressible(-1, f"PyTorch takes {name} for {value}")
            captured.fix_size(name, value)
        one = {}  # a symbol of PyTorch's → the first of ours that it stands for
        united = [(name, one[symbol]) for name, symbol in zip(captured.sizes, map(str, captured.symbols)) if name not in known and one.setdefault(symbol, name) != name]
        for name, other in united:
            if captured.own_sizes[name] != captured.own_sizes[other]:
                raise NotExpressible(-1, f"PyTorch takes {name} for {other}")
            captured.unite_sizes(name, other)
        if not known and not united:
            break
    names = {}
    for name, symbol in zip(captured.sizes, captured.symbols):
        own = captured.own_sizes[name]
        if names.setdefault(str(symbol.node._expr), own) is not own:
            raise NotExpressible(-1, "sizes that differ in other calls are one to PyTorch")
    captured.replaced = _replaced(shape_env)
    for asked_for in [guard.expr for guard in shape_env.guards] + captured.replaced:
        try:
            holds = bool(eval(_python(asked_for), {"math": math}, names))  # of PyTorch's own text
        except Exception as error:
            raise NotExpressible(-1, f"PyTorch asks whether {asked_for}: {error}") from error
        if not holds:
            raise NotExpressible(-1, f"PyTorch takes for granted that {asked_for}")
    captured.guards = len(shape_env.guards)
    shape_env.pending_fresh_unbacked_symbols.clear()  # the backend finds its own
    captured.text_of_sizes = captured.module.code + str(list(captured.sizes.values()))
    numbers = {f"n{i}": captured.own_sizes[name] for i, name in enumerate(captured.sizes)}
    try:
        captured.held = {text for text in asked.get(captured.text_of_sizes, ()) if eval(text, {"math": math}, numbers)}
    except Exception as error:
        raise NotExpressible(-1, f"the backend asks more than is guarded: {error}") from error


def _static_mode(shape_env):
    """A mode for what a backend traces itself: symbols are of data alone, since nobody would guard those of the inputs' sizes."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode(shape_env=shape_env)
    from_tensor = mode.from_tensor
    # Of this mode alone: higher-order operators know modes by their very class.
    mode.from_tensor = lambda tensor, *, source=None, trace=True, **_: from_tensor(tensor, static_shapes=True, source=source, trace=trace)
    return mode


@contextlib.contextmanager
def _same_modes():
    """Who runs the graph while compiling switches modes as it does."""
    devices = ("cpu", "cuda")
    grad, cache = torch.is_grad_enabled(), torch.is_autocast_cache_enabled()
    casts = [(device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)) for device in devices]
    try:
        yield
    finally:
        torch._C._set_grad_enabled(grad)
        torch.set_autocast_cache_enabled(cache)
        for device, enabled, dtype in casts:
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, dtype)


def _describe_values(module, inputs, captured, mode):
    """meta["example_value"] of every node, as far as sizes can be told without data. The sizes that the module takes first: SymInts."""
    from torch._dispatch.python import enable_python_dispatcher
    log = logging.getLogger("torch._subclasses.fake_tensor")
    level = log.level
    log.setLevel(logging.CRITICAL)
    sizes = []
    try:
        # What kernels in C++ read sizes as numbers for is decomposed in Python.
        with torch._C.DisableTorchFunctionSubclass(), mode, enable_python_dispatcher():
            fakes = _fakes(inputs, captured.dynamic, mode)
            sizes = [_symbol(name, captured, mode) if dim is None else fakes[i].shape[dim] for name, (i, dim) in captured.sizes.items()]
            _describe_nodes(module, [*sizes, *fakes], mode)
    except Exception:  # sizes that hang on data, functions that look at values: the rest has none
        pass
    finally:
        log.setLevel(level)
    return sizes


def _fakes(inputs, dynamic, mode):
    """The inputs without data. PyTorch has one symbol for all sizes that are equal; where ours differ it gets one of its own."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext
    symbols = {}  # a size → the symbol that has it

    def kind(symbol, size):
        return DimDynamic.STATIC if symbol is None else DimDynamic.DUCK if symbols.setdefault(size, symbol) == symbol else DimDynamic.DYNAMIC

    fakes = []
    for i, (real, names) in enumerate(zip(inputs, dynamic)):
        if not any(names):
            fakes.append(mode.from_tensor(real, static_shapes=True) if isinstance(real, torch.Tensor) else real)
            continue
        context = StatelessSymbolicContext(dynamic_sizes=[kind(name, size) for name, size in zip(names, real.shape)])
        fakes.append(mode.from_tensor(real, symbolic_context=context, source=ConstantSource(f"input_{i}")))
    return fakes


def _symbol(name, captured, mode):
    """Of an int of the program."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic
    return mode.shape_env.create_unspecified_symint_and_symbol(captured.ints[name], ConstantSource(name), DimDynamic.DYNAMIC)


def _describe_nodes(module, inputs, mode):
    """What the module gives for these inputs; operators that are given functions describe theirs when they call them."""
    inputs, values = iter(inputs), {}

    def value(node):
        return values[node]

    for node in module.graph.nodes:
        if node.op == "placeholder":
            made = next(inputs)
        elif node.op == "get_attr":
            made = functools.reduce(getattr, node.target.split("."), module)
            if isinstance(made, torch.Tensor):
                made = mode.from_tensor(made, static_shapes=True)
            elif isinstance(made, torch.fx.GraphModule):
                values[node] = functools.partial(lambda inner, *given: _describe_nodes(inner, given, mode), made)
                continue
        else:
            args, kwargs = torch.fx.map_arg(node.args, value), torch.fx.map_arg(node.kwargs, value)
            if node.op == "output":
                return args[0]
            target = _recurrent if node.target in _RECURRENT and _has_steps_that_change(*args) else node.target
            made = getattr(args[0], target)(*args[1:], **kwargs) if node.op == "call_method" else target(*args, **kwargs)
        values[node] = node.meta["example_value"] = made


_RECURRENT = (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)


def _has_steps_that_change(x, states, weights, has_biases, *rest):
    return isinstance(has_biases, bool) and isinstance(x.shape[1 if rest[-1] else 0], torch.SymInt)  # else it is of packed sequences


def _recurrent(x, states, weights, has_biases, layers, dropout, train, bidirectional, batch_first):
    """Something of the sizes, strides and history of what a recurrent network gives, which PyTorch finds out by going through all steps."""
    states = (states,) if isinstance(states, torch.Tensor) else states
    steps = (x.transpose(0, 1) if batch_first else x).sum(-1, keepdim=True) + sum(weight.sum() for weight in weights)
    out = steps * x.new_ones(states[0].shape[-1] * (2 if bidirectional else 1))
    return (out.transpose(0, 1) if batch_first else out, *(state + out.sum() for state in states))


_lock = threading.Lock()
_known = []  # one FunctionBackend for every backend and its options, for as long as the process lives: compiled code refers to it


def of(function, mode, options):
    """The FunctionBackend of what torch.compile was given."""
    kwargs = {}
    if mode and mode != "default":
        kwargs["mode"] = mode
    if options and "guard_filter_fn" in options:
        once("options={'guard_filter_fn': ...} has no effect under Fusebox: guards are never dropped; their check is cheap")
        options = {name: value for name, value in options.items() if name != "guard_filter_fn"}
    if options:
        kwargs["options"] = options
    with _lock:
        for known in _known:
            if (known.function is function or _equal_methods(known.function, function)) and known.kwargs == kwargs:
                return known
        _known.append(FunctionBackend(function, kwargs))
        return _known[-1]


def _equal_methods(a, b):
    return hasattr(a, "__func__") and getattr(b, "__func__", None) is a.__func__ and a.__self__ is getattr(b, "__self__", None)


def named(name):
    """The backend that PyTorch's registry, or an installed package's entry point, has under a name; None: there is none."""
    from torch._dynamo.backends.registry import lookup_backend
    from torch._dynamo.exc import InvalidBackend
    try:
        return lookup_backend(name)
    except InvalidBackend:
        return None

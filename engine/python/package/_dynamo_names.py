"""What torch._dynamo's public names mean while this engine stands behind torch.compile."""

import functools
import logging
import sys
import warnings
import weakref

from . import _log_text, compiler as _compiler
from ._compile import compile as _compile, engine_options
from ._dynamo_counts import catch_up
from ._engine_access import _engine, reset
from ._unused_options import once

# Settings of torch._dynamo.config that the engine has under the same name.
_SETTINGS = ("recompile_limit", "accumulated_recompile_limit", "fail_on_recompile_limit_hit", "error_on_recompile", "assume_static_by_default",
             "automatic_dynamic_shapes", "specialize_int", "specialize_float", "force_parameter_static_shapes")

_NO_LIMIT = (1 << 31) - 1  # of the engine's ints; PyTorch's operators of higher order set sys.maxsize


def _of_stock(backend):
    """The arguments that a torch.compile which the program has bound before install() hands on for the standard backend, as our own."""
    import torch
    kind = getattr(torch, "_TorchCompileInductorWrapper", None)
    if kind is None or not isinstance(backend, kind):
        return {"backend": backend}
    return {"backend": "inductor", "options": dict(backend.config) or None}


class _Optimize:
    """What torch._dynamo.optimize returns: a decorator, and a context in which all that is called is compiled."""

    def __init__(self, settings, decorate):
        self._settings, self._decorate, self._regions = settings, decorate, []

    def __call__(self, function):
        return self._decorate(function)

    def __enter__(self):
        settings = dict(self._settings)
        self._regions.append(_engine.OpenRegion(None if settings.pop("disable") else engine_options(**settings)))

    def __exit__(self, *_):
        self._regions.pop().close()


def optimize(backend="inductor", *, nopython=False, dynamic=None, disable=False, guard_fail_fn=None, **_):
    """torch._dynamo.optimize: torch.compile as a decorator or a context. `guard_fail_fn` hears of every recompile of what is decorated: an
    object with `reason`."""
    compile_it = functools.partial(_compile, **_of_stock(backend), fullgraph=nopython, dynamic=dynamic, disable=disable)
    if guard_fail_fn is None:
        return _Optimize(compile_it.keywords, compile_it)

    def compile_and_tell(function):
        compiled = compile_it(function)

        @functools.wraps(function)
        def call(*args, **kwargs):
            since = _engine.latest_event()
            try:
                return compiled(*args, **kwargs)
            finally:
                for event in _engine.events_since(since):
                    if event["kind"] == "recompile":
                        _hear(guard_fail_fn, _failure(event))

        return call

    return _Optimize(compile_it.keywords, compile_and_tell)


def _hear(listener, failure):
    """What a listener raises is logged: the call that was compiled again has its result."""
    try:
        listener(failure)
    except Exception:
        logging.getLogger("torch._dynamo").exception("guard_fail_fn raised")


def _failure(event):
    from torch._dynamo.types import GuardFail
    return GuardFail(_log_text.guard_reason(event["what"], event["detail"], event["hint"]), None)


def run(fn=None):
    """Calls what is compiled and compiles nothing."""
    if fn is None:
        return run
    original = getattr(fn, "_torchdynamo_orig_callable", fn)
    # Code compiled for a function serves whoever calls it with the same options, so the wrapper that there is goes on being called.
    within = fn if isinstance(fn, _engine.CompiledFunction) else _compile(original)

    @functools.wraps(original)
    def call(*args, **kwargs):
        if _engine.is_capturing():  # part of what is compiled
            return original(*args, **kwargs)
        with _compiler.set_stance("eager_on_recompile"):
            return within(*args, **kwargs)

    return call


def explain(f, *extra_args, **extra_kwargs):
    """torch._dynamo.explain of what this engine captures."""

    def inner(*args, **kwargs):
        from torch._dynamo.backends.debugging import ExplainOutput
        from torch._dynamo.output_graph import GraphCompileReason
        from torch._dynamo.utils import compile_times
        graphs = []

        def keep(graph_module, _inputs):
            graphs.append(graph_module)
            return graph_module.forward

        reset()
        since = _engine.latest_event()
        _compile(getattr(f, "_torchdynamo_orig_callable", f), backend=keep)(*args, **kwargs)
        events = _engine.events_since(since)
        reset()
        broke = [e for e in events if e["kind"] == "graph_break"]
        reasons = [GraphCompileReason(f"{e['what']}: {e['detail']}", [_line(e)], graph_break=True) for e in broke]
        ops = [[node.target for node in g.graph.nodes if node.op.startswith("call_")] for g in graphs]
        return ExplainOutput(graphs, len(graphs), max(len(graphs) - 1, 0), reasons, sum(map(len, ops)), ops, _guards(events),
                             compile_times(repr="str"))

    if extra_args or extra_kwargs:
        warnings.warn("explain(f, *args, **kwargs) is deprecated, use explain(f)(*args, **kwargs) instead.", FutureWarning, stacklevel=2)
        return inner(*extra_args, **extra_kwargs)
    return inner


def _line(event):
    import traceback
    return traceback.FrameSummary(event["file"], event["line"], event["function"])


def _guards(events):
    """One line for each entry: guards of this engine are no objects of PyTorch's."""
    return [f"{e['guards']} guards of {e['function']} ({e['file']}:{e['line']})\n" for e in events if e["kind"] == "compiled"]


def _allow_in_graph(stock):
    @functools.wraps(stock)
    def allow_in_graph(fn):
        stock(fn)
        for one in fn if isinstance(fn, (list, tuple)) else [fn]:
            if one in _disallowed:
                once(f"{one} stays out of graphs: torch._dynamo.disallow_in_graph cannot be taken back in a process")
        return _compiler.allow_in_graph(fn)

    return allow_in_graph


_disallowed = set()


def _disallow_in_graph(stock):
    @functools.wraps(stock)
    def disallow_in_graph(fn):
        marked = stock(fn)
        for one in fn if isinstance(fn, (list, tuple)) else [fn]:
            _disallowed.add(one)
            _engine.substitute_in_graph(one, None)
        return marked

    return disallow_in_graph


_FUNCTIONS = {"ignore_logging_functions": _engine.ignore_in_graph, "reorderable_logging_functions": _engine.reorder_in_graph}


def _with_settings(config):
    """Hands the settings that the engine has on to it, now and whenever one is made."""
    cls = type(config)
    set_attribute = cls.__setattr__

    def hand_on(name):
        entry = config._config.get(name)
        alias = getattr(entry, "alias", None)
        name = alias.rpartition(".")[2] if alias else name
        if name in _FUNCTIONS:
            reset()  # what is compiled calls them, or does not
            _FUNCTIONS[name]({f for f in getattr(config, name) if callable(f)})
        elif name in _SETTINGS:
            value = getattr(config, name)
            _engine.configure(name, value if isinstance(value, bool) else min(value, _NO_LIMIT))

    def set_and_hand_on(self, name, value):
        set_attribute(self, name, value)
        hand_on(name)

    for name in (*_SETTINGS, *_FUNCTIONS):
        if not config._is_default(name):
            hand_on(name)
    cls.__setattr__ = set_and_hand_on

    def undo():
        for hand in _FUNCTIONS.values():
            hand(set())
        cls.__setattr__ = set_attribute

    return undo


def _disable(stock):
    @functools.wraps(stock)
    def disable(fn=None, recursive=True, **how):
        if recursive:
            return stock(fn, recursive, **how)
        return _compiler.disable(fn, False, reason=how.get("reason"))

    return disable


class CacheEntry:
    """What was compiled for calls of a code object, in the place of PyTorch's _CacheEntry."""

    _known = weakref.WeakValueDictionary()  # by address; one that somebody holds keeps what it stands for

    def __init__(self, code, held):
        self.code, self._held = code, held
        self.guard_manager, self.hits = None, 0

    @classmethod
    def all_of(cls, code):
        """Last hit first; those that no call can meet any more, since an object that they need is gone, at the end."""
        from torch._dynamo.guards import DeletedGuardManagerWrapper
        entries = []
        for held, address, alive, guards, hits in sorted(_engine.entries_of(code), key=lambda row: not row[2]):
            entry = cls._known.get(address) or cls._known.setdefault(address, cls(code, held))
            entry.hits = hits
            if not alive and not isinstance(entry.guard_manager, DeletedGuardManagerWrapper):
                entry.guard_manager = DeletedGuardManagerWrapper("an object that it needs is gone")
            elif alive:
                entry.guard_manager = f"{guards} guards"
            entries.append(entry)
        return entries


def _list_entries():
    """torch._dynamo.eval_frame._debug_get_cache_entry_list knows this engine's entries."""
    module = sys.modules["torch._dynamo.eval_frame"]
    stock = module._debug_get_cache_entry_list

    @functools.wraps(stock)
    def entries(code):
        return [*stock(code), *CacheEntry.all_of(getattr(code, "__code__", code))]

    module._debug_get_cache_entry_list = entries

    def undo():
        module._debug_get_cache_entry_list = stock

    return undo


def put_into(dynamo, saved):
    """Gives torch._dynamo this engine's meaning of its names. `saved` gets what was there; the result takes the rest back."""
    stock_reset = dynamo.reset

    @functools.wraps(stock_reset)
    def reset_both():
        reset()
        stock_reset()

    @functools.wraps(dynamo.reset_code_caches)
    def reset_code_caches():
        reset()
        saved["dynamo.reset_code_caches"]()

    names = {"optimize": optimize, "optimize_assert": functools.partial(optimize, nopython=True), "reset": reset_both, "run": run, "explain": explain,
             "reset_code_caches": reset_code_caches, "allow_in_graph": _allow_in_graph(dynamo.allow_in_graph),
             "disallow_in_graph": _disallow_in_graph(dynamo.disallow_in_graph), "disable": _disable(dynamo.disable), "set_stance": _compiler.set_stance,
             "assume_constant_result": _compiler.assume_constant_result, "substitute_in_graph": _compiler.substitute_in_graph}
    for name, function in names.items():
        saved["dynamo." + name] = getattr(dynamo, name)
        setattr(dynamo, name, function)
    catch_up()
    undo = _with_settings(sys.modules["torch._dynamo.config"]), _list_entries()
    return lambda: [take_back() for take_back in undo]

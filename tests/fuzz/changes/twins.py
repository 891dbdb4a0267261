"""Two worlds side by side: calls, changes, and what was observed."""

import collections
import contextlib
import copy
import functools
import io
import os
import random
import signal
import sys
import types
import warnings

import numpy
import torch
from torch.utils.hooks import RemovableHandle

import fusebox

from . import changed
from .compare import Comparison, Difference, fail, same_text
from .sites import normalised_modules, parametrizations, recurrent_modules
from .worlds import Unusable

HELPERS = {name: getattr(changed, name) for name in vars(changed) if not name.startswith("_")}
ORIGINAL = {"relu": torch.Tensor.relu, "__add__": torch.Tensor.__add__, "functional.relu": torch.nn.functional.relu, "sin": torch.sin}
FILTERS = [("ignore", None, Warning, None, 0)]  # a change may put others in front; while a call is observed, nothing is ignored
OUTSIDE = {"torch": torch, "types": types, "copy": copy, "collections": collections, "random": random, "numpy": numpy, "warnings": warnings,
           "os": os, "sys": sys, "ORIGINAL": ORIGINAL, **HELPERS}


def process_state():
    """Switches that a call may change, and random state."""
    return {"grad mode": torch.is_grad_enabled(), "inference mode": torch.is_inference_mode_enabled(),
            "default dtype": torch.get_default_dtype(),
            "autocast": torch.is_autocast_enabled("cpu"), "deterministic": torch.are_deterministic_algorithms_enabled(),
            "threads": torch.get_num_threads(), "function modes": torch._C._len_torch_function_stack(),
            "recursion limit": sys.getrecursionlimit()}


def function_modes(new=None):
    """Those that are entered, the innermost last; or exchanges them."""
    modes = [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())][::-1]
    for mode in modes if new is None else new:
        torch._C._push_on_torch_function_stack(mode)
    return modes


def random_state():
    return {"torch random state": torch.get_rng_state().numpy().tobytes(), "python random state": hash(random.getstate()),
            "numpy random state": numpy.random.get_state()[1].tobytes() + bytes([numpy.random.get_state()[2] % 256])}


def seed(number):
    torch.default_generator.manual_seed(number)  # torch.manual_seed formats a stack for CUDA
    random.seed(number)
    numpy.random.seed(number)


def restore_process():
    """As a new process is, in what changes of the process change."""
    torch.set_grad_enabled(True)
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(False)
    torch.set_autocast_enabled("cpu", False)
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.set_autocast_cache_enabled(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
    torch.set_float32_matmul_precision("highest")
    torch.autograd.set_detect_anomaly(False)
    torch.set_warn_always(False)
    torch.backends.cuda.enable_flash_sdp(True)
    torch.backends.cuda.enable_math_sdp(True)
    torch.backends.mkldnn.set_flags(True)
    torch.set_flush_denormal(False)
    torch.nn.modules.module._global_forward_hooks.clear()
    while torch._C._len_torch_function_stack():
        torch._C._pop_torch_function_stack()
    warnings.filters[:] = FILTERS
    warnings._filters_mutated()
    torch.Tensor.relu, torch.Tensor.__add__ = ORIGINAL["relu"], ORIGINAL["__add__"]
    torch.nn.functional.relu, torch.sin = ORIGINAL["functional.relu"], ORIGINAL["sin"]


def same_numbers(first, second):
    """What both return; numbers that the process hands out are the same for both."""
    number = RemovableHandle.next_id
    a = first()
    RemovableHandle.next_id = number
    return a, second()


def counts(warning):
    """Not what a compiler says of itself or of its absence, and what is said once in a process."""
    text = str(warning.message)
    return not text.startswith(("fusebox", "Fusebox", "`torch.jit", "dynamo_pgo", "flex_attention called without", "return_lse is deprecated")) and "Triggered internally" not in text


CPU_LIMIT = 20  # seconds of computing for one call that is compiled, far beyond what one needs
EAGER_LIMIT = 60  # seconds of an eager one: its process ends by SIGALRM, which tells nothing


@contextlib.contextmanager
def limited(is_eager):
    """What an eager call computes is given up (Unusable), or ends the process where it looks at no signals; one that is compiled ends it."""
    limits = {signal.ITIMER_VIRTUAL: 4, signal.ITIMER_REAL: EAGER_LIMIT} if is_eager else {signal.ITIMER_PROF: CPU_LIMIT}
    for timer, seconds in limits.items():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer in limits:
            signal.setitimer(timer, 0)


def takes_too_long(*_):
    raise Unusable("eager does not come to an end")


signal.signal(signal.SIGVTALRM, takes_too_long)


def without_frames(error):
    """What the frames of an error hold lives no longer than the call: a generator of the non-reentrant checkpoint would leave its hooks to whoever is
    called next."""
    seen, chain = set(), [error]
    while chain:
        e = chain.pop()
        if e is not None and id(e) not in seen:
            seen.add(id(e))
            e.__traceback__ = None
            chain += [e.__context__, e.__cause__]
    return error


class Side:
    """One world and how it is called."""

    def __init__(self, instance, call, is_eager):
        self.instance, self.call, self.is_eager = instance, call, is_eager
        self.names = {"f": instance.f, "args": instance.args, "kwargs": instance.kwargs, "g": instance.namespace, **OUTSIDE}

    def change(self, code):
        """The kind of exception that the statement raises, or None."""
        seed(3)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, self.names)
        except Exception as error:
            return type(error).__name__

    def observe(self, number, with_backward):
        """Calls once; all that is seen but the objects themselves."""
        seed(number)
        torch.clear_autocast_cache()  # eager keeps casts of weights until autocast is left, which a change to the switch never does
        printed = io.StringIO()
        result = error = None
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
            if warnings.filters == FILTERS:
                warnings.simplefilter("always")
            modes = function_modes()
            try:
                result = self.call(*self.instance.args, **self.instance.kwargs)
            except Exception as e:
                error = without_frames(e)
            if function_modes() != modes:
                function_modes(modes)
                raise Unusable("a call leaves a function mode entered, which the twin would see")
            state = process_state()
            torch.set_grad_enabled(True)
            if with_backward and error is None:
                error = backward(result)
        said = [(w.category.__name__, str(w.message)) for w in caught if counts(w)]
        return {"result": result, "error": error, "printed": printed.getvalue(), "warnings": said, **state, **random_state()}


#: Words of an error of eager's after which the pair tells nothing where ours raises none, and why.
UNTOLD = {"backward through the graph a second time": "a part of an earlier graph is among the inputs, whose node ours does not free",
          "UncapturedHigherOrderOpError": "eager's operator asks PyTorch's own compiler, which does not know such a tensor",
          "could not find kernel for HigherOrderOperator": "eager's operator does not know a pending conjugation or negation",
          "aten._nested_sum_backward": "eager has no gradient there", "DispatchKey Conjugate doesn't correspond to a device": "eager cannot make a tensor like a conjugate"}


def reads_beyond(instance):
    """Whether an LSTM has weights of other sizes than it says: eager reads and writes memory that is not theirs. So does a weight norm with
    another number of lengths than the weight has slices: its gradient is memory as it was found."""
    for module in normalised_modules(instance):
        g, v = module._parameters["weight_g"], module._parameters["weight_v"]
        if isinstance(g, torch.Tensor) and isinstance(v, torch.Tensor) and g.numel() not in (1, *(g.shape[d] for d in range(g.dim()))):
            return True
    for parts in parametrizations(instance):
        norm = parts[0] if len(parts) else None
        if type(norm).__name__ == "_WeightNorm":
            g, v = (getattr(parts, name, None) for name in ("original0", "original1"))
            if isinstance(g, torch.Tensor) and isinstance(v, torch.Tensor) and (type(norm.dim) is not int or not -v.dim() <= norm.dim < v.dim() or g.numel() != v.shape[norm.dim]):
                return True
    for module in recurrent_modules(instance):
        directions = 2 if module.bidirectional else 1
        weights, layers = list(module._flat_weights), module.num_layers * directions
        kinds = [(n, getattr(module, n, None)) for n in module._flat_weights_names if isinstance(n, str)]
        if len(kinds) != len(weights) or len(weights) % layers:
            return True
        for (name, _), w in zip(kinds, weights):
            gates = 4 * module.hidden_size if isinstance(module, torch.nn.LSTM) else w.shape[0] if isinstance(w, torch.Tensor) and w.dim() else 0
            hidden = module.proj_size or module.hidden_size
            inner = hidden if "_hh" in name else module.input_size if name.removesuffix("_reverse").endswith("_ih_l0") else hidden * directions
            fits = isinstance(w, torch.Tensor) and (w.dim() == 1 or w.shape[-1] == inner or "_hr" in name)
            if not fits or w.dim() != (1 if name.startswith("bias") else 2) or "_hr" not in name and w.shape[0] != gates:
                return True
    return False


def backward(result):
    """Gradients of everything in the result that has them; what it raises."""
    found, seen = [], set()

    def look(value, depth=0):
        if isinstance(value, torch.Tensor):
            if value.requires_grad and value.is_floating_point() and id(value) not in seen and value.layout is torch.strided and not value.is_nested:
                seen.add(id(value))
                found.append(value)
        elif isinstance(value, (list, tuple)) and depth < 3:
            for v in value:
                look(v, depth + 1)
        elif isinstance(value, dict) and depth < 3:
            for v in value.values():
                look(v, depth + 1)

    look(result)
    if not found:
        return None
    try:
        with torch.autocast("cpu", enabled=False):
            torch.autograd.backward(found, [torch.full_like(t, 0.5, memory_format=torch.contiguous_format) for t in found])
    except Exception as error:
        return without_frames(error)


class Twins:
    """A world twice. `step` makes one change in both, calls both and raises Difference."""

    def __init__(self, world, options):
        restore_process()
        fusebox.reset()
        sys.modules.pop("world", None)
        with contextlib.redirect_stdout(io.StringIO()):
            self.eager, self.compiled = same_numbers(lambda: world.make("eager"), lambda: world.make("compiled"))
        restore_process()
        target = self.compiled.f
        settings = {"backend": options["backend"]}
        self.sides = Side(self.eager, self.eager.f, True), Side(self.compiled, fusebox.compile(target, **settings), False)
        self.with_backward = options["backward"]
        self.kept = options.get("kept", False)
        if self.kept:  # the cache names what is in a module
            sys.modules["world"] = self.compiled.module
        self.number = 0
        self.was_cast = False  # autocast was on in one of the calls: gradients that are still there come from it

    def step(self, statement=None):
        """Whether there was a call that counts: not if the statement raised in both."""
        if statement is not None:
            code = compile(statement, "<change>", "exec")
            first, second = self.on_both(lambda side: side.change(code))
            if first != second and any("Warning" in (kind or "") for kind in (first, second)):
                raise Unusable("libtorch warns once in a process, and warnings are errors")
            if first != second:
                raise Difference(f"the change itself: {first} in eager, {second} compiled")
            if first:
                return False
        if reads_beyond(self.eager):
            raise Unusable("oneDNN does not look how large an LSTM's weights are")
        self.number += 1
        before = torch.is_grad_enabled()

        def observe(side):
            torch.set_grad_enabled(before)
            with limited(side.is_eager):
                return side.observe(self.number, self.with_backward)

        seen = self.on_both(observe)
        torch.set_grad_enabled(before)
        for words, why in UNTOLD.items():
            if words in repr(seen[0]["error"]) and seen[1]["error"] is None:
                raise Unusable(why)
        if any(isinstance(o["error"], Warning) and "Triggered internally" in str(o["error"]) for o in seen):
            raise Unusable("an operator of libtorch warns, and warnings are errors")
        with torch._C.DisableTorchFunction():
            self.compare(*seen)
        if self.kept:  # the next call finds captures in the cache alone
            fusebox._engine.drain()
            fusebox.reset()
        return True

    def on_both(self, act):
        return same_numbers(*(functools.partial(act, side) for side in self.sides))

    def compare(self, a, b):
        self.was_cast |= a["autocast"]
        walk = Comparison(is_cast=self.was_cast).walk
        if (a["error"] is None) != (b["error"] is None):
            fail("error", f"{a['error']!r} in eager, {b['error']!r} compiled")
        walk(self.eager.args, self.compiled.args, "args")
        walk(self.eager.kwargs, self.compiled.kwargs, "kwargs")
        walk(self.eager.f, self.compiled.f, "f")
        for name in a:
            if name not in ("result", "error") and a[name] != b[name] and not (name == "printed" and same_text(a[name], b[name])):
                text = "differs" if "random" in name else f"{a[name]!r} in eager, {b[name]!r} compiled"
                fail(name, text)
        walk(a["error"], b["error"], "error")
        walk(a["result"], b["result"], "result")

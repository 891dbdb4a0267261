"""A program in two worlds, call by call: eager, and compiled. What differs is a Difference; rounding is judged by float64."""

import contextlib
import functools
import io
import linecache
import random
import re
import traceback
import types
import warnings

import numpy
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .rounding import OtherRounding
from .walk import Difference, Walk, forget_gradients, is_state, tensors_of

HOME = "fuzz_program"
ROUNDINGS = 6  # runs of eager with other roundings, where a result has to be judged
_GLOBAL_STATE = {"grad mode": torch.is_grad_enabled, "inference mode": torch.is_inference_mode_enabled,
                 "default dtype": torch.get_default_dtype, "autocast": lambda: (torch.is_autocast_enabled("cpu"),
    torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()), "anomaly mode": torch.is_anomaly_enabled,
                 "deterministic": torch.are_deterministic_algorithms_enabled, }


class FloatDraws(TorchDispatchMode):
    """In the float64 run, random numbers are those that float32 draws."""

    RANDOM = re.compile(r"aten\.(rand|randn|rand_like|randn_like|uniform_|normal_|normal|bernoulli_?|native_dropout|"
                        r"exponential_|log_normal_|cauchy_|geometric_|multinomial|poisson|rrelu_with_noise|binomial|uniform|exponential)\b")

    def __torch_dispatch__(self, func, types_, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if not self.RANDOM.match(str(func)):
            return func(*args, **kwargs)
        narrow = lambda v: v.float() if isinstance(v, torch.Tensor) and v.dtype == torch.float64 else v
        if kwargs.get("dtype") == torch.float64:
            kwargs["dtype"] = torch.float32
        if kwargs.get("dtype", 0) is None or "dtype" not in kwargs and not any(isinstance(a,
            torch.Tensor) for a in args):
            kwargs["dtype"] = torch.float32
        out = func(*map(narrow, args), **kwargs)
        if str(func).split(".")[1].endswith("_"):
            return args[0].copy_(out)
        widen = lambda v: v.double() if isinstance(v, torch.Tensor) and v.dtype == torch.float32 else v
        return tuple(map(widen, out)) if isinstance(out, tuple) else widen(out)


def widened(source):
    """The program in double precision: a text in, a text out."""
    source = re.sub(r"\btorch\.(float32|float16|bfloat16|half|float)\b", "torch.float64", source)
    source = re.sub(r"\.(float|half|bfloat16)\(\)", ".double()", source)
    return re.sub(r"\btorch\.complex64\b", "torch.complex128", source)


def same_filters(registry):
    """Imports while something is compiled may add filters of warnings (sympy does), after which Python forgets what it said: both worlds remember."""
    now = {}
    warnings.warn_explicit("", PendingDeprecationWarning, "", 0, module="", registry=now)
    if registry is not None:
        registry["version"] = now["version"]


class World:
    """One execution of a program's text, with the outcome of its latest call."""

    def __init__(self, source, transform=None, is_exact=False, rounding=None):
        self.is_exact, self.rounding = is_exact, rounding
        self.module = types.ModuleType(HOME)
        self.file = f"<{HOME}>"
        text = widened(source) if is_exact else source
        linecache.cache[self.file] = (len(text), None, text.splitlines(True), self.file)
        self.printed = self.warned = ""
        self.result = self.error = None
        self.args = ()
        with self.surroundings(0):
            exec(compile(text, self.file, "exec"), self.module.__dict__)
        self.get = self.module.__dict__.get
        self.function = transform(self.module.f) if transform else self.module.f
        self.where = []

    @contextlib.contextmanager
    def surroundings(self, call):
        torch.manual_seed(100 + call)
        random.seed(call)
        numpy.random.seed(call)
        grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
        mode = FloatDraws() if self.is_exact else contextlib.nullcontext() if self.rounding is None else OtherRounding(
            1000 * self.rounding + call, FloatDraws.RANDOM.match)
        if self.is_exact:
            torch.set_default_dtype(torch.float64)
        try:
            with mode:
                yield
        finally:
            torch.set_grad_enabled(grad)
            torch.set_default_dtype(dtype)
            torch.clear_autocast_cache()

    def step(self, call):
        out, err = io.StringIO(), io.StringIO()
        self.result = self.error = None
        with self.surroundings(call), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            if self.get("change"):
                with contextlib.suppress(Exception):
                    self.module.change(call)
            self.args = tuple(self.module.inputs(call))
            same_filters(self.get("__warningregistry__"))
            with contextlib.nullcontext() if self.get("GRAD") else torch.no_grad():
                before = self.global_state()
                self.run()
                self.modes = {k: (before[k], v) for k, v in self.global_state().items() if before[k] != v}
            if self.get("GRAD") and self.error is None:
                self.backward()
            device = torch.cuda.get_rng_state().numpy().tobytes() if torch.cuda.is_initialized() else b""
            self.random = (torch.get_rng_state().numpy().tobytes() + device, random.random(), numpy.random.rand())
        self.printed = out.getvalue()
        self.warned = "\n".join(line for line in err.getvalue().splitlines() if "fuzz" in line)

    def global_state(self):
        return {k: f() for k, f in _GLOBAL_STATE.items()}

    def run(self):
        self.where = []
        try:
            self.result = self.function(*self.args)
        except Exception as error:
            self.error = error
            self.where = [(f.name,
                           f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.filename == self.file]
            error.__traceback__ = None

    def backward(self):
        outs, seen = [], set()

        def gather(v, depth=0):
            if isinstance(v, torch.Tensor):
                if v.requires_grad and v.is_floating_point() and id(v) not in seen:
                    seen.add(id(v))
                    outs.append(v)
            elif isinstance(v, (list, tuple)) and depth < 4:
                [gather(x, depth + 1) for x in v]
            elif isinstance(v, dict) and depth < 4:
                [gather(x, depth + 1) for x in v.values()]

        gather(self.result)
        if not outs:
            return
        try:
            generator = torch.Generator().manual_seed(5)
            tangents = [torch.randint(-4, 5, t.shape, generator=generator).to(t.dtype) / 4 for t in outs]
            torch.autograd.backward(outs, tangents)
            self.part_gradients()
        except Exception as error:
            self.error = type(error)("in backward")  # the words depend on the names of autograd's nodes
            # Which leaves got something ahead of the error is the order in which operators were met.
            for name, root in self.roots().items():
                forget_gradients(root, HOME, name)
            if not isinstance(error, RuntimeError):
                self.error = error
                error.__traceback__ = None

    def part_gradients(self):
        """Eager gives scalars that one sum adds up one gradient in memory, and the next backward adds to it once for each of them."""
        seen = set()
        for module in [v for v in self.module.__dict__.values() if isinstance(v, torch.nn.Module)]:
            for parameter in module.parameters():
                if parameter.grad is not None and parameter.grad.untyped_storage().data_ptr() in seen:
                    parameter.grad = parameter.grad.clone()
                elif parameter.grad is not None:
                    seen.add(parameter.grad.untyped_storage().data_ptr())

    def roots(self):
        state = {name: value for name, value in self.module.__dict__.items() if is_state(name, value)}
        return {"result": self.result, "args": self.args, "globals": state}


def compare(got, want, walk):
    walk.begin()
    if (got.error is None) != (want.error is None) or type(got.error).__qualname__ != type(want.error).__qualname__:
        raise Difference("error", "call",
                         f"{type(got.error).__name__} {str(got.error)[:200]!r} instead of {type(want.error).__name__} {str(want.error)[:200]!r}")
    walk.compare(got.error, want.error, "error")
    walk.compare(got.printed, want.printed, "printed")
    if got.warned != want.warned:
        raise Difference("warned", "call", f"{got.warned[:200]!r} instead of {want.warned[:200]!r}")
    if got.where != want.where:
        raise Difference("traceback", "error", f"{got.where} instead of {want.where}")
    roots = want.roots()
    for name, mine in got.roots().items():
        walk.compare(mine, roots[name], name)
    for i, name in enumerate(("torch", "random", "numpy")):
        if got.random[i] != want.random[i]:
            raise Difference("random", name, "another state of the random numbers afterwards")
    if got.modes != want.modes:
        raise Difference("mode", "call", f"{got.modes} instead of {want.modes}")


def tensors_after(source, calls, **how):
    """{path: tensor} of the program in float64, or with another rounding, after so many calls; empty where that does not run."""
    try:
        world = World(source, **how)
        for call in range(calls):
            world.step(call)
        return {path: t for name, root in world.roots().items() for path, t in tensors_of(root, HOME, name).items()}
    except Exception:
        return {}


def check(source, compiler=None):
    """Raises Difference where the compiled program is not the eager one. Returns what happened: calls, errors."""
    import fusebox
    if compiler is None:
        def compiler(f, **options):
            return fusebox.compile(f, **options)
    fusebox.reset()
    before = fusebox.counters()
    want = World(source)
    fusebox.config.break_every = want.get("BREAK_EVERY") or 0
    try:
        got = World(source, lambda f: compiler(f, backend=want.get("BACKEND") or "inductor", dynamic=want.get("DYNAMIC")))
        walk = Walk(HOME)
        walk.begin()
        errors = 0
        for call in range(want.get("CALLS") or 3):
            want.step(call)
            got.step(call)
            walk.exact = functools.cache(functools.partial(tensors_after, source, call + 1, is_exact=True))
            walk.others = functools.cache(lambda: [tensors_after(source, call + 1, rounding=k) for k in range(ROUNDINGS)])
            if type(got.error).__name__ == "ConstraintViolationError":
                break  # a size that was marked as one that must not become a constant did
            try:
                compare(got, want, walk)
            except Difference as difference:
                difference.call = call
                difference.eager_error = type(want.error).__name__
                raise
            errors += want.error is not None
    finally:
        fusebox.config.break_every = 0
    return {"errors": errors, **{k: v - before.get(k, 0) for k, v in fusebox.counters().items() if isinstance(v, int)}}

"""Two worlds side by side: values, types, and who is whom. A Difference is the first thing that a program could tell apart."""

import collections
import enum
import inspect
import re
import types

import numpy
import torch

from . import judge

FLOAT_LIMIT = 2e-5
_NUMBER = re.compile(r"[-+]?\d+\.\d*(?:e[-+]?\d+)?|[-+]?\d+e[-+]?\d+|0x[0-9a-f]+")
_GRAD_FN = re.compile(r",\s*grad_fn=<\w+>")
_NODE = re.compile(r"\b\w+Backward\d*\b")
_SKIPPED_ATTRIBUTES = {"__weakref__", "__dict__", "__doc__", "__module__", "__annotations__", "__firstlineno__",
                       "_compiled_call_impl"}


def fact_of(tensor, name):
    """An attribute; a view whose base was written to where it must not be refuses to say its history."""
    try:
        return getattr(tensor, name)
    except RuntimeError as error:
        return type(error).__name__


def is_leaf(tensor):
    return fact_of(tensor, "is_leaf") is True


class Difference(Exception):
    """`kind` says what differs in one word, `path` where."""

    def __init__(self, kind, path, text):
        super().__init__(f"{path}: {kind}: {text}")
        self.kind, self.path, self.text = kind, path, text


def same_text(got, want):
    """Equal but for addresses and the last digits of numbers with a point."""
    got, want = (_NODE.sub("Backward", _GRAD_FN.sub("", t)) for t in (got, want))  # autograd's node is the compiled graph's
    if got == want:
        return True
    if _NUMBER.sub("#", got) != _NUMBER.sub("#", want):
        return re.sub(r"\s+", "", _NUMBER.sub("#", got)) == re.sub(r"\s+", "", _NUMBER.sub("#",
            want)) and "tensor(" in want
    for a, b in zip(_NUMBER.findall(got), _NUMBER.findall(want)):
        if a.startswith("0x") or b.startswith("0x"):
            continue
        a, b = float(a), float(b)
        if abs(a - b) > 2e-4 + 2e-3 * abs(b):
            return False
    return True


class Walk:
    """Compares pairs of objects; remembers which object of one world is which of the other, for as long as it lives."""

    def __init__(self, home, exact=None):
        self.home = home          # name of the module whose classes are the program's own
        self.exact = exact        # () -> {path: tensor} of the run in float64, or None
        self.others = None        # () -> such of runs with other roundings
        self.partner, self.partner_back = {}, {}
        self.storages, self.storages_back = {}, {}
        self.keep = []
        self.visited = set()

    def begin(self):
        """A new comparison of contents; who is whom stays."""
        self.visited.clear()

    def differ(self, kind, path, text):
        raise Difference(kind, path, text)

    def is_known(self, got, want, path):
        """True where this comparison has seen the pair; an error where either of them belongs to another."""
        a, b = self.partner.get(id(got)), self.partner_back.get(id(want))
        if a is None and b is None:
            self.partner[id(got)], self.partner_back[id(want)] = id(want), id(got)
            self.keep.append((got, want))
            self.visited.add(id(want))
            return False
        if a != id(want) or b != id(got):
            self.differ("identity", path, f"{type(want).__name__} is {'new' if b is None else 'known'} in eager, "
                        f"{'new' if a is None else 'known'} here{'' if a is None or b is None else ' (another)'}")
        seen = id(want) in self.visited
        self.visited.add(id(want))
        return seen

    def compare(self, got, want, path):
        if isinstance(want, torch.Tensor):
            return self.tensors(got, want, path)
        if type(got).__qualname__ != type(want).__qualname__:
            self.differ("type", path,
                        f"{type(got).__qualname__} {got!r:.80} instead of {type(want).__qualname__} {want!r:.80}")
        if isinstance(want, (bool, int, str, bytes, type(None), type(Ellipsis), torch.dtype, torch.device, range, slice,
                             torch.Size)):
            same = same_text(got, want) if isinstance(want, str) else got == want
            return None if same else self.differ("value", path, f"{got!r:.150} instead of {want!r:.150}")
        if isinstance(want, (float, complex)):
            near = got == want or (got != got and want != want) or abs(got - want) <= FLOAT_LIMIT * max(1.0, abs(want))
            return None if near else self.differ("number", path, f"{got!r} instead of {want!r}")
        if isinstance(want, enum.Enum):
            return self.compare(got.name, want.name, path + ".name")
        if isinstance(want, (numpy.ndarray, numpy.generic)):
            if got.dtype != want.dtype or got.shape != want.shape or not numpy.allclose(got, want, rtol=1e-4, atol=1e-5,
                equal_nan=True):
                self.differ("value", path, f"{got!r:.150} instead of {want!r:.150}")
            return None
        if isinstance(want, tuple):
            return self.sequences(got, want, path)
        if self.is_known(got, want, path):
            return None
        return self.objects(got, want, path)

    def sequences(self, got, want, path):
        if len(got) != len(want):
            self.differ("length", path, f"{len(got)} instead of {len(want)}: {got!r:.100} instead of {want!r:.100}")
        for i, (g, w) in enumerate(zip(list(got), list(want))):
            self.compare(g, w, f"{path}[{i}]")

    def mappings(self, got, want, path):
        keys, others = list(want), list(got)
        if len(keys) != len(others):
            self.differ("keys", path, f"{others!r:.150} instead of {keys!r:.150}")
        for i, (g, w) in enumerate(zip(others, keys)):
            if not path.endswith("_hooks"):  # whose keys are numbers that the process counts
                self.compare(g, w, f"{path}.key({i})")
        for g, w in zip(others, keys):
            self.compare(dict.__getitem__(got, g), dict.__getitem__(want, w), f"{path}[{w!r:.30}]")

    def objects(self, got, want, path):
        if isinstance(want, type):
            return self.classes(got, want, path)
        if isinstance(want, types.FunctionType):
            return self.functions(got, want, path)
        if isinstance(want, types.GeneratorType):
            return self.compare(inspect.getgeneratorstate(got), inspect.getgeneratorstate(want), path + ".state")
        if isinstance(want, (types.MethodType, types.BuiltinFunctionType, types.ModuleType)):
            return self.compare(got.__name__, want.__name__, path + ".__name__")
        if isinstance(want, BaseException):
            return self.errors(got, want, path)
        if isinstance(want, (list, collections.deque)):
            self.sequences(got, want, path)
        elif isinstance(want, dict):
            self.mappings(got, want, path)
            if isinstance(want, collections.defaultdict) and repr(type(got.default_factory)) != repr(type(want.default_factory)):
                self.differ("value", path, "default_factory")
        elif isinstance(want, (set, frozenset)):
            if sorted(map(repr, got)) != sorted(map(repr, want)):
                self.differ("value", path, f"{got!r:.150} instead of {want!r:.150}")
        elif hasattr(want, "__length_hint__") and hasattr(want, "__next__"):
            self.compare(got.__length_hint__(), want.__length_hint__(), path + ".left")
        self.attributes(got, want, path)

    def attributes(self, got, want, path):
        theirs, ours = getattr(want, "__dict__", None), getattr(got, "__dict__", None)
        if isinstance(theirs, dict) and isinstance(ours, dict):
            drop = _SKIPPED_ATTRIBUTES
            names, others = [n for n in theirs if n not in drop], [n for n in ours if n not in drop]
            if names != others:
                self.differ("attributes", path, f"{others} instead of {names}")
            for name in names:
                self.compare(ours[name], theirs[name], f"{path}.{name}")
        for kind in type(want).__mro__:
            slots = kind.__dict__.get("__slots__", ()) if kind.__module__ == self.home else ()
            for name in (slots,) if isinstance(slots, str) else slots:
                has = hasattr(want, name)
                if has != hasattr(got, name):
                    self.differ("attributes", path, f"slot {name} {'missing' if has else 'set'}")
                if has and name not in _SKIPPED_ATTRIBUTES:
                    self.compare(getattr(got, name), getattr(want, name), f"{path}.{name}")

    def classes(self, got, want, path):
        if got.__qualname__ != want.__qualname__:
            self.differ("type", path, f"{got} instead of {want}")
        if want.__module__ != self.home or issubclass(want, enum.Enum):
            return
        theirs = {k: v for k, v in vars(want).items() if k not in _SKIPPED_ATTRIBUTES and not k.startswith("__")}
        ours = {k: v for k, v in vars(got).items() if k not in _SKIPPED_ATTRIBUTES and not k.startswith("__")}
        if list(theirs) != list(ours):
            self.differ("attributes", path, f"{list(ours)} instead of {list(theirs)}")
        for name, value in theirs.items():
            if isinstance(value, (int, float, str, list, dict, set, torch.Tensor, type(None))):
                self.compare(ours[name], value, f"{path}.{name}")

    def functions(self, got, want, path):
        if got.__name__ != want.__name__:
            self.differ("value", path, f"function {got.__name__} instead of {want.__name__}")
        if want.__module__ != self.home:
            return
        self.compare(got.__defaults__, want.__defaults__, path + ".__defaults__")
        self.compare(got.__kwdefaults__, want.__kwdefaults__, path + ".__kwdefaults__")
        self.compare(got.__dict__, want.__dict__, path + ".__dict__")
        ours, theirs = got.__closure__ or (), want.__closure__ or ()
        if len(ours) != len(theirs):
            self.differ("value", path, "number of cells")
        for name, g, w in zip(want.__code__.co_freevars, ours, theirs):
            try:
                theirs_in = w.cell_contents
            except ValueError:
                continue
            try:
                ours_in = g.cell_contents
            except ValueError:
                self.differ("value", path, f"cell {name} is empty")
            self.compare(ours_in, theirs_in, f"{path}.cell({name})")

    def errors(self, got, want, path):
        if not same_text(str(got), str(want)):
            self.differ("message", path, f"{type(want).__name__} {str(got)[:200]!r} instead of {str(want)[:200]!r}")
        self.compare(getattr(got, "__notes__", None), getattr(want, "__notes__", None), path + ".__notes__")
        self.compare(got.__suppress_context__, want.__suppress_context__, path + ".__suppress_context__")
        self.compare(got.__cause__, want.__cause__, path + ".__cause__")
        self.compare(got.__context__, want.__context__, path + ".__context__")
        if type(want).__module__ == self.home:
            self.attributes(got, want, path)

    def tensors(self, got, want, path):
        if type(got).__qualname__ != type(want).__qualname__:
            self.differ("type", path, f"{type(got).__qualname__} {got!r:.80} instead of {type(want).__qualname__}")
        if self.is_known(got, want, path):
            return
        for fact in ("dtype", "shape", "layout", "device", "requires_grad", "is_leaf"):
            if fact_of(got, fact) != fact_of(want, fact):
                self.differ(fact, path, f"{fact_of(got, fact)} instead of {fact_of(want, fact)}")
        if got.is_inference() != want.is_inference():
            self.differ("inference", path, f"is_inference() {got.is_inference()} instead of {want.is_inference()}")
        self.geometry(got, want, path)
        self.values(got, want, path, "values")
        if is_leaf(want) and want.requires_grad:
            if (got.grad is None) != (want.grad is None):
                self.differ("grad", path + ".grad",
                            f"{'none' if got.grad is None else 'one'} instead of {'none' if want.grad is None else 'one'}")
            if want.grad is not None:
                for fact in ("dtype", "shape", "layout"):
                    if getattr(got.grad, fact) != getattr(want.grad, fact):
                        self.differ("grad", path + ".grad",
                                    f"{fact} {getattr(got.grad, fact)} instead of {getattr(want.grad, fact)}")
                self.values(got.grad, want.grad, path + ".grad", "grad")

    def geometry(self, got, want, path):
        if want.layout != torch.strided:
            return
        if want.numel() > 0:
            if [s for s, n in zip(got.stride(), want.shape) if n > 1] != [s for s, n in zip(want.stride(),
                want.shape) if n > 1]:
                self.differ("strides", path, f"{got.stride()} instead of {want.stride()} of {tuple(want.shape)}")
            if got.storage_offset() != want.storage_offset():
                self.differ("offset", path, f"{got.storage_offset()} instead of {want.storage_offset()}")
        a, b = got.untyped_storage().data_ptr(), want.untyped_storage().data_ptr()
        if not a or not b or want.numel() == 0:
            return
        if self.storages.setdefault(a, b) != b or self.storages_back.setdefault(b, a) != a:
            self.differ("aliasing", path, "shares memory with something else than in eager")

    def values(self, got, want, path, kind):
        wrong = judge.wrong_elements(got, want)
        if not bool(wrong.any()):
            return
        exact = self.exact().get(path) if self.exact else None
        if judge.as_near_as_eager(got, want, exact):
            return
        others = [run[path] for run in self.others() if path in run] if self.others else []
        if others and judge.as_near_as_eager(got, want, exact if exact is not None and exact.shape == want.shape else None, others):
            return
        count = int(wrong.sum())
        where = wrong if not want.is_complex() else None
        reference = "" if exact is None or exact.shape != want.shape else f", in float64 {judge.brief(exact, where)}"
        self.differ(kind, path,
                    f"{count} of {wrong.numel()} of {want.dtype} {tuple(want.shape)} wrong: {judge.brief(got, where)} instead of "
                    f"{judge.brief(want, where)}{reference}")


class Collect(Walk):
    """Tensors of one world by the path at which a Walk meets them."""

    def __init__(self, home):
        super().__init__(home)
        self.found = {}

    def differ(self, kind, path, text):
        pass

    def tensors(self, got, want, path):
        self.found[path] = want.detach().clone()
        if is_leaf(want) and want.grad is not None:
            self.found[path + ".grad"] = want.grad.detach().clone()


def tensors_of(root, home, path):
    collect = Collect(home)
    collect.compare(root, root, path)
    return collect.found


class Forget(Collect):
    def tensors(self, got, want, path):
        if is_leaf(want):
            want.grad = None


def forget_gradients(root, home, path):
    Forget(home).compare(root, root, path)


def is_state(name, value):
    """Of a program's globals: what it keeps, not what it consists of."""
    if name.startswith("__") or isinstance(value, types.ModuleType) or name in ("f", "inputs", "change"):
        return False
    home = getattr(value, "__module__", None)
    return not (isinstance(value, (type, types.FunctionType)) and isinstance(home,
        str) and home.partition(".")[0] in ("torch", "fuzz", "collections", "contextlib"))

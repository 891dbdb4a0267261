"""Where programs come from, and how two copies of one are made that share nothing."""

import itertools
import pathlib
import random
import re
import sys
import types

import numpy
import torch

HERE = pathlib.Path(__file__).parent
MODELS = HERE.parents[1] / "models"
PACKAGE = "world_package"  # stands for the package of files whose programs are scripts


class Instance:
    """One copy: the callable and its arguments, and the globals in which it was made."""

    def __init__(self, module, f, args, kwargs):
        self.module, self.namespace, self.f, self.args, self.kwargs = module, module.__dict__, f, list(args), dict(kwargs)


class Unusable(BaseException):
    """There is no such program, or its two worlds cannot be compared any longer."""


class Recorded(BaseException):
    """Ends a script at the first call of a function that it compiles."""


class World:
    """A program of a file: `world_NAME` of the corpus returns (f, args) or (f, args, kwargs); of a script (`f(compile)`) the
    `index`-th function that it calls compiled is taken, with the arguments of that call."""

    def __init__(self, path, name, kind, index=0):
        self.path, self.name, self.kind, self.index = path, name, kind, index

    @property
    def label(self):
        return f"{self.path.stem}.{self.name}" + (f"#{self.index}" if self.index else "")

    def make(self, side):
        """A new copy, the same for each side."""
        torch.manual_seed(1)
        random.seed(1)
        numpy.random.seed(1)
        module = types.ModuleType("world")
        namespace = module.__dict__
        namespace.update(__package__=PACKAGE, __file__=str(self.path))
        exec(code_of(self.path, side), namespace)
        if self.kind == "corpus":
            made = namespace[self.name]()
            return Instance(module, made[0], made[1], made[2] if len(made) > 2 else {})
        if self.kind == "program":
            f, make_args = next(p for p in namespace["PROGRAMS"] if p[0].__name__ == self.name)
            return Instance(module, f, make_args(), {})
        sys.modules["world"] = module  # scripts look for the module that they are in
        try:
            return Instance(module, *self.record(namespace[self.name]))
        finally:
            del sys.modules["world"]

    def record(self, script):
        """Runs the script up to the call that counts."""
        calls = []

        def compile(f=None, **options):
            if f is None:
                return compile

            def called(*args, **kwargs):
                if not any(g is f for g, _, _ in calls):
                    calls.append((f, args, kwargs))
                    if len(calls) == self.index + 1:
                        raise Recorded
                return f(*args, **kwargs)

            return Called(f, called) if isinstance(f, torch.nn.Module) else called

        try:
            script(compile, None) if self.kind == "edge" else script(compile)
        except Recorded:
            pass
        if len(calls) <= self.index:
            raise Unusable(f"{self.label} has no compiled function of that number")
        return calls[self.index]


class Called:
    """Stands for a compiled module in a script."""

    def __init__(self, module, called):
        self.__dict__.update(module=module, called=called)

    def __call__(self, *args, **kwargs):
        return self.called(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.module, name)

    def __setattr__(self, name, value):
        setattr(self.module, name, value)


_codes = {}
_numbers = itertools.count()
OF_WORLD = re.compile(r"__of_world_\d+")  # operators are registered by name for the process: every world has a namespace of its own
_DEFINED = re.compile(r"""(?:custom_op|Library|define)\(["'](\w+)(?:::|["'])""")


def code_of(path, side):
    """Each side has code objects of its own, and each world operators."""
    if (path, side) in _codes:
        return _codes[path, side]
    text = path.read_text()
    defined = set(_DEFINED.findall(text))
    number = next(_numbers) if defined else 0
    for name in defined:
        text = re.sub(rf"\b{name}\b", f"{name}__of_world_{number}", text)
    code = compile(text, str(path), "exec")
    if not defined:
        _codes[path, side] = code
    return code


def provide_package():
    """What scripts import from their package."""
    def outcome(f, *args):
        try:
            return f(*args)
        except Exception as error:
            return type(error).__name__, str(error)

    package = types.ModuleType(PACKAGE)
    package.__path__ = [str(MODELS / "small_programs")]  # for what programs share
    package.script = package.edge = lambda f: f
    package.raised = outcome
    sys.modules[PACKAGE] = package


NOT_THE_SAME_TWICE = {"hash_and_id_of_objects", "files_and_contexts", "writes_of_another_thread_survive", "flex", "times_and_ids",
                      "methods_and_attributes_of_tensor", "calls_of_modules_wrapped_by_the_program",
                      "builtins_replaced", "another_thread_writes_meanwhile",
                      "logs_see_their_moment"}  # addresses, paths, time, others' classes, loggers of the process
SCRIPTS_THAT_ACT_OUTSIDE = {"barriers", "lifetimes", "process_state", "operators", "numbers"}  # they crash, wait or register by name


def load(kinds):
    """All worlds of these kinds, in a fixed order."""
    provide_package()
    worlds = []
    if "corpus" in kinds:
        for path in sorted((HERE / "corpus").glob("*.py")):
            worlds += [World(path, name, "corpus") for name in names_in(path) if name.startswith("world_")]
    if "program" in kinds:
        path = MODELS / "programs.py"
        worlds += [World(path, name, "program") for name in decorated_in(path, "program")]
    for kind, folder, decorator in (("script", "small_programs", "script"), ("edge", "edges", "edge")):
        if kind not in kinds:
            continue
        for path in sorted((MODELS / folder).glob("*.py")):
            if path.stem == "__init__" or kind == "edge" and path.stem in SCRIPTS_THAT_ACT_OUTSIDE:
                continue
            worlds += [World(path, name, kind, index) for name in decorated_in(path, decorator) for index in range(2)]
    return [w for w in worlds if w.name not in NOT_THE_SAME_TWICE]


def functions_in(path):
    import ast
    return [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]


def names_in(path):
    return [node.name for node in functions_in(path)]


def decorated_in(path, decorator):
    def name(d):
        return getattr(getattr(d, "func", d), "id", "")
    return [node.name for node in functions_in(path) if any(name(d) == decorator for d in node.decorator_list)]

"""All changes that a program could notice, as statements, found by walking what is reachable from the callable and its arguments.

A statement speaks of `f`, `args`, `kwargs` and `g` (the globals of the program's file) and runs the same in both worlds.
"""

import collections
import enum
import functools
import sys
import types

import torch

from .changed import numbers_of
from .compare import content, is_of_world, names_of

INTERNAL_OF_MODULES = {name for name in vars(torch.nn.Module()) if name != "training"}
SPECIAL = {"__bool__": "lambda self: False", "__len__": "lambda self: 0", "__eq__": "lambda self, other: False",
           "__call__": "lambda self, *a, **k: 7.0",
           "__getattr__": "lambda self, name: 5.0", "__contains__": "lambda self, item: True", "__float__": "lambda self: 4.0",
           "__str__": "lambda self: 'changed'", "__iter__": "lambda self: iter([1, 2])", "__getitem__": "lambda self, key: 3.0",
           "__add__": "lambda self, other: 9.0", "__hash__": "lambda self: 1", "__getattribute__": "lambda self, name: 6.0",
           "__index__": "lambda self: 2", "__setattr__": "lambda self, name, value: None", "__enter__": "lambda self: self"}


def literal(value):
    """Source text of a key or constant; None if there is none."""
    if isinstance(value, (torch.dtype, torch.device)):
        return f"torch.device('{value}')" if isinstance(value, torch.device) else str(value)
    if isinstance(value, float):
        return f"float('{value}')"
    return repr(value) if type(value) in (int, str, bool, bytes, type(None), complex) else None


def is_outside(module):
    """Whether both worlds share the module: it was imported, or holds PyTorch's operators."""
    return module.__name__ in sys.modules or isinstance(module, torch._ops._OpNamespace)


class Walk:
    """Collects statements by kind: `sites` maps a kind to its statements."""

    def __init__(self, instance, limit=150):
        self.sites = collections.defaultdict(list)
        self.seen, self.kept, self.limit = set(), [], limit
        self.globals = instance.namespace
        self.tensors, self.objects, self.buffers = [], [], set()
        for i, value in enumerate(instance.args):
            self.place(value, f"args[{i}]")
        for k, value in instance.kwargs.items():
            self.place(value, f"kwargs[{k!r}]")
        self.inner(instance.f, "f")
        self.aliases()

    def add(self, kind, *statements):
        self.sites[kind] += statements

    def place(self, value, path, assign="{path} = {value}"):
        """A value that can be replaced by assigning to `path`."""
        def put(text):
            return assign.format(path=path, value=text)

        if isinstance(value, torch.Tensor):
            self.tensors.append((value, path, put))
            self.tensor(value, path, put)
        elif isinstance(value, bool):
            self.add("constant", put(repr(not value)), put(repr(int(value))), put(repr(float(value))), put("None"))
        elif isinstance(value, int) and not isinstance(value, enum.Enum):
            self.add("constant", *(put(t) for t in (repr(value + 1), repr(-value), "0", "1", "True", "1.0", repr(float(value)), "None",
                                                    "1000", "1 << 70", "'1'")))
        elif isinstance(value, float):
            self.add("constant", *(put(t) for t in (repr(value + 0.5), "float('nan')", "float('inf')", "-0.0", "0.0", "1", "True", "1.0",
                                                    "None", "torch.tensor(2.5)")))
        elif isinstance(value, str):
            self.add("constant", *(put(repr(t)) for t in (value + "_", value.upper(), "", None, 1)))
        elif value is None:
            self.add("constant", put("1.5"), put("torch.ones(1)"), put("True"))
        elif isinstance(value, torch.dtype):
            self.add("constant", put("torch.float64"), put("torch.int64"), put("torch.bfloat16"))
        elif isinstance(value, types.FunctionType):
            self.add("function", put(f"changed({path}, 0)"), put(f"changed({path}, 1)"), put("raising()"),
                     put("lambda *a, **k: a[-1] if a else None"))
        elif isinstance(value, (list, tuple, dict, set)):
            if type(value) in (list, tuple, dict, set):
                other = {list: ("list", "tuple"), tuple: ("tuple", "list"), dict: ("dict", "collections.OrderedDict"),
                         set: ("set", "frozenset")}[type(value)]
                self.add("container", *(put(f"{t}({path})") for t in other), put("None"))
        elif not isinstance(value, (type, types.ModuleType)):
            # A copy of an operator asks itself for its attributes without end.
            copies = () if isinstance(value, (torch._ops.OpOverloadPacket, torch._ops.OpOverload)) else (put(f"copy.copy({path})"),)
            self.add("object", *copies, put("None"))
            self.objects.append((value, path, put))
        self.inner(value, path, put)

    def inner(self, value, path, put=None):
        """What lies in a value."""
        if isinstance(value, (int, float, str, bytes, complex, type(None), torch.dtype, torch.device)) or isinstance(value, torch.Tensor):
            return
        if id(value) in self.seen or len(self.seen) > self.limit:
            return
        self.seen.add(id(value))
        self.kept.append(value)
        for kind, visit in VISITS:
            if isinstance(value, kind):
                return visit(self, value, path, put)
        if is_of_world(type(value)):
            self.instance(value, path)

    def tensor(self, t, path, put):
        p = path
        plain = f"{p}.detach().clone()"
        self.add("tensor", put(plain), put(f"({p} * 1)"), put(f"torch.nn.Parameter({plain})" if t.is_floating_point() else plain),
                 put("1.5"), put("None"),
                 f"torch.no_grad()(lambda: {p}.copy_({p} * 2))()", f"{p}.data.neg_()", put(f"{plain}.view({p}.shape)"))
        self.add("dtype", *(put(f"{plain}.to(torch.{d})") for d in ("float64", "bfloat16", "float16", "int64", "int32", "bool", "complex64",
                                                                    "uint8")))
        self.add("layout", put(f"strided({p})"), put(f"shifted({p})"), put(f"shifted({p}, 5)"), put(f"shifted({p}, 8)"),
                 put(f"{plain}.flip(0)" if t.dim() else plain),
                 put(f"{plain}.to_sparse()"), put(f"{plain}.to(torch.complex64).conj()"),
                 put(f"torch._neg_view({plain})" if t.dtype != torch.bool else plain))  # a bool has no negative to read
        if path.startswith("args"):  # a module would write to the buffer, whose elements are one
            self.add("layout", put(f"{plain}[:1].expand({p}.shape)" if t.dim() else plain))
        self.add("size", put(f"{plain}[:-1]") if t.dim() else put(f"{plain}[None]"),
                 put(f"torch.cat([{plain}, {plain}])") if t.dim() else put(f"{plain}[None, None]"),
                 put(f"{plain}[:0]") if t.dim() else put(plain), put(f"{plain}[None]"), put(f"{plain}.flatten()"),
                 put(f"{plain}[:1]") if t.dim() else put(plain),
                 put(f"{plain}.unsqueeze(-1)"))
        self.add("autograd", f"{p}.requires_grad_({not t.requires_grad})", put(f"{plain}.requires_grad_()"),
                 put(f"({plain}.requires_grad_() * 1)"), f"{p}.grad = None",
                 f"{p}.grad = torch.ones_like({p})", f"{p}.register_hook(put_hook('hook'))", f"{p}.retain_grad()",
                 put(f"torch.inference_mode()(lambda: {p} * 1)()"))
        self.add("tensor attribute", f"{p}.tag = 1", f"{p}.tag = getattr({p}, 'tag', 0) + 1", put(f"{plain}.as_subclass(Tagged)"),
                 put(f"{plain}.as_subclass(Logged)"))
        own = type(t).__module__.partition(".")[0] == "torch"  # what PyTorch's classes keep for themselves is not a program's to change
        for k, v in vars(t).items() if getattr(t, "__dict__", None) else ():
            # Nor where its C++ keeps sizes that a class says, and marks for compilers.
            if not (own and k.startswith("_")) and not k.endswith("_capsule") and not k.startswith("_dynamo_"):
                self.place(v, f"{p}.{k}")

    def aliases(self):
        for values in (self.tensors, self.objects):
            for (a, p, put), (b, q, _) in zip(values, values[1:] + values[:1]):
                if p == q or p.startswith(q) or p in self.buffers and q in self.buffers:  # cycles; operators write both
                    continue
                self.add("alias", put(q))
                if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
                    self.add("alias", put(f"{q}.view({q}.shape)"), put(f"{q}.detach()"), put(f"{q}[...]"),
                             put(f"{q}.t()" if b.dim() == 2 else q))

    # What lies in values of one kind.

    def list(self, value, path, put):
        for i, v in enumerate(value[:6]):
            self.place(v, f"{path}[{i}]")
        self.add("list", f"{path}.append(1)", f"{path}.reverse()", f"{path}.insert(0, 2.0)", f"{path}.clear()")
        if value:
            self.add("list", f"{path}.pop()", f"{path}.append({path}[0])", f"{path}.append({path}.pop(0))", f"del {path}[0]",
                     f"{path}[0] = {path}[-1]",
                     f"{path}.append(copy.copy({path}[-1]))")

    def tuple(self, value, path, put):
        for i, v in enumerate(value[:6]):
            if put:
                self.place(v, f"{path}[{i}]", put("replaced(" + path.replace("{", "{{").replace("}", "}}") + ", " + str(i) + ", {value})"))
            else:
                self.inner(v, f"{path}[{i}]")
        if put and type(value) is tuple:
            self.add("tuple", put(f"{path} + (1,)"), put(f"{path}[::-1]"), put(f"{path}[1:]"))

    def dict(self, value, path, put):
        keys = [k for k in value if literal(k) is not None]
        self.add("dict", f"{path}['new'] = 1", f"{path}[True] = 2", f"{path}.clear()", f"{path}['new'] = torch.ones(1)")
        for k in keys[:8]:
            at = f"{path}[{literal(k)}]"
            self.place(value[k], at)
            self.add("dict", f"{at} = {path}.pop({literal(k)})", f"del {at}", f"renamed({path}, {literal(k)}, 'other')",
                     f"renamed({path}, {literal(k)}, 1.0)",
                     f"renamed({path}, {literal(k)}, True)", f"renamed({path}, {literal(k)}, 1)")
        if keys and isinstance(value, collections.OrderedDict):
            self.add("dict", f"{path}.move_to_end({literal(keys[0])})", f"{path}.move_to_end({literal(keys[-1])}, last=False)")
        for i, k in enumerate(list(value)[:6]):
            if literal(k) is None:
                self.inner(k, f"list({path})[{i}]")
                self.place(value[k], f"{path}[list({path})[{i}]]")

    def set(self, value, path, put):
        if isinstance(value, frozenset):
            return
        self.add("set", f"{path}.add(1)", f"{path}.add(True)", f"{path}.add(1.0)", f"{path}.add('new')", f"{path}.clear()",
                 f"{path}.update(range(8, 40, 8))")
        for k in [k for k in value if literal(k) is not None][:5]:
            self.add("set", f"{path}.discard({literal(k)})", f"moved({path}, {literal(k)})")

    def deque(self, value, path, put):
        self.add("list", f"{path}.append(1)", f"{path}.appendleft(1)", f"{path}.rotate(1)", f"{path}.clear()")
        for i, v in enumerate(list(value)[:4]):
            self.place(v, f"{path}[{i}]")

    def function(self, f, path, put):
        if f.__globals__ is not self.globals and not is_of_world(f):
            return
        for i in range(min(3, len(numbers_of(f.__code__)))):
            self.add("code", f"{path}.__code__ = changed_code({path}.__code__, {i})")
        if f.__defaults__:
            for i, v in enumerate(f.__defaults__[:4]):
                self.place(v, f"{path}.__defaults__[{i}]", f"{path}.__defaults__ = replaced({path}.__defaults__, {i}, {{value}})")
            self.add("default", f"{path}.__defaults__ = None")
        for k, v in (f.__kwdefaults__ or {}).items():
            self.place(v, f"{path}.__kwdefaults__[{k!r}]")
            self.place(v, f"{path}.__kwdefaults__[{k!r}]", f"{path}.__kwdefaults__ = {{{{**{path}.__kwdefaults__, {k!r}: {{value}}}}}}")
        for i, cell in enumerate(f.__closure__ or ()):
            self.place(content(cell), f"{path}.__closure__[{i}].cell_contents")
            self.add("cell", f"del {path}.__closure__[{i}].cell_contents")
        for k, v in vars(f).items():
            if k.isidentifier():
                self.place(v, f"{path}.{k}")
        self.names(f.__code__)

    def names(self, code):
        for name in names_of(code):
            if name in self.globals and name not in ("torch", "__name__"):
                value = self.globals[name]
                if isinstance(value, types.ModuleType) and is_outside(value):
                    self.add("global", f"g[{name!r}] = types.SimpleNamespace(**vars(g[{name!r}]))")
                    continue
                self.place(value, f"g[{name!r}]")
                self.add("global", f"del g[{name!r}]")
            elif name in BUILTINS:
                self.add("global", f"g[{name!r}] = {BUILTINS[name]}", f"g.pop({name!r}, None)")

    def method(self, m, path, put):
        self.inner(m.__self__, f"{path}.__self__")
        self.inner(m.__func__, f"{path}.__func__")

    def partial(self, p, path, put):
        self.inner(p.func, f"{path}.func")
        for k, v in p.keywords.items():
            self.place(v, f"{path}.keywords[{k!r}]")
        for v, i in zip(p.args, range(3)):
            self.inner(v, f"{path}.args[{i}]")

    def instance(self, o, path):
        attributes = getattr(o, "__dict__", None)
        if isinstance(o, (torch._ops.OpOverloadPacket, torch._ops.OpOverload, torch._ops._OpNamespace)):
            return  # the process has it once
        for k, v in list(attributes.items())[:12] if isinstance(attributes, dict) else ():
            if isinstance(k, str) and k.isidentifier():
                self.place(v, f"{path}.{k}")
                self.add("attribute", f"del {path}.{k}", f"{path}.__dict__[{k!r}] = {path}.__dict__.pop({k!r})")
        for name in getattr(type(o), "__slots__", ()):
            if hasattr(o, name):
                self.place(getattr(o, name), f"{path}.{name}")
        if isinstance(attributes, dict):
            self.add("attribute", f"{path}.new = 1", f"{path}.__dict__ = dict({path}.__dict__)")
            for name, v in vars(type(o)).items():
                if isinstance(v, types.FunctionType) and not name.startswith("__"):
                    self.add("method", f"{path}.{name} = types.MethodType(changed(type({path}).{name}, 0), {path})",
                             f"{path}.{name} = lambda *a, **k: 3.0")
                elif not name.startswith("__") and not callable(v) and not hasattr(v, "__get__"):
                    self.place(v, f"{path}.{name}")
        self.add("class of object", f"{path}.__class__ = derived(type({path}))",
                 f"{path}.__class__ = derived(type({path}), __bool__=lambda self: False)")
        self.inner(type(o), f"type({path})")

    def module(self, m, path, put):
        self.add("training", f"{path}.train()", f"{path}.eval()", f"{path}.training = not {path}.training")
        self.add("hook", f"{path}.register_forward_hook(doubled)", f"{path}.register_forward_pre_hook(negated)",
                 f"{path}._forward_hooks.clear()",
                 f"{path}._forward_pre_hooks.clear()", f"{path}.register_full_backward_hook(lambda m, i, o: None)",
                 f"{path}.register_forward_hook(lambda m, a, r: print(type(m).__name__))")
        self.add("parameters", f"{path}.requires_grad_(False)", f"{path}.requires_grad_()", f"{path}.double()", f"{path}.float()",
                 f"{path}.zero_grad()",
                 f"{path}.bfloat16()", f"{path}.register_buffer('new', torch.ones(1))", f"{path}.register_parameter('new', None)")
        for name, p in list(m._parameters.items())[:4]:
            if p is not None:
                self.place(p, f"{path}.{name}")
                self.add("parameters", f"{path}.{name} = None", f"del {path}.{name}", f"{path}.{name}.data = {path}.{name}.data.double()",
                         f"{path}.{name}.data = {path}.{name}.data * 2")
        for name, b in list(m._buffers.items())[:3]:
            if b is not None:
                self.buffers.add(f"{path}.{name}")
                self.place(b, f"{path}.{name}")
        for name, child in list(m._modules.items())[:5]:
            if child is not None:
                at = f"{path}._modules[{name!r}]"
                self.add("submodule", f"{at} = torch.nn.Identity()", f"{at} = copy.copy({at})", f"del {at}",
                         f"{path}._modules[{name!r}] = {path}._modules.pop({name!r})")
                self.inner(child, at)
        for k, v in list(vars(m).items()):
            if k not in INTERNAL_OF_MODULES and k != "training" and k.isidentifier():
                self.place(v, f"{path}.{k}")
                self.add("attribute", f"del {path}.{k}")
        self.add("attribute", f"{path}.new = 1")
        if is_of_world(type(m)):
            self.add("method", f"{path}.forward = types.MethodType(changed(type({path}).forward, 0), {path})",
                     f"{path}.forward = lambda *a, **k: a[0]",
                     f"{path}.__dict__.pop('forward', None)")
            self.add("class of object", f"{path}.__class__ = derived(type({path}))")
            self.inner(type(m), f"type({path})")

    def class_(self, cls, path, put):
        if not is_of_world(cls):
            return
        for name, v in list(vars(cls).items()):
            at = f"{path}.__dict__[{name!r}]"
            if isinstance(v, types.FunctionType):
                self.inner(v, at)
                if not name.startswith("__"):
                    self.add("class method", f"{path}.{name} = changed({at}, 0)", f"{path}.{name} = property(lambda self: 2.0)",
                             f"{path}.{name} = staticmethod(lambda *a: 2.0)",
                             f"del {path}.{name}")
            elif isinstance(v, (staticmethod, classmethod)):
                self.inner(v.__func__, f"{at}.__func__")
            elif isinstance(v, property):
                self.inner(v.fget, f"{at}.fget")
                self.add("property", f"{path}.{name} = property(lambda self: 2.0)", f"{path}.{name} = 2.0",
                         f"{path}.{name} = property(raising(AttributeError))")
            elif not name.startswith("__") and not isinstance(cls, enum.EnumMeta) and not isinstance(v, types.MemberDescriptorType):
                self.place(v, f"{path}.{name}")
                self.add("class attribute", f"del {path}.{name}", f"{path}.{name} = property(lambda self: 2.0)")
        self.add("class attribute", f"{path}.new = 1", f"{path}.new = torch.ones(1)")
        for name, text in SPECIAL.items():
            if path.startswith("type(f)") and name == "__call__":
                continue  # what a compiled module calls was looked up when it was compiled
            if name in vars(cls) or name in ("__bool__", "__getattr__", "__eq__", "__len__", "__call__", "__getattribute__"):
                self.add("special method", f"{path}.{name} = {text}", f"del {path}.{name}")
        for i, base in enumerate(cls.__bases__):
            if is_of_world(base):
                self.inner(base, f"{path}.__bases__[{i}]")
                self.add("bases", f"{path}.__bases__ = replaced({path}.__bases__, {i}, derived({path}.__bases__[{i}]))")
        if is_of_world(type(cls)):
            self.inner(type(cls), f"type({path})")

    def namespace(self, m, path, put):
        if is_outside(m):
            return
        for k, v in list(vars(m).items())[:12]:
            if not k.startswith("__"):
                self.place(v, f"{path}.{k}")
                self.add("module attribute", f"del {path}.{k}")
            elif isinstance(v, types.FunctionType):
                self.inner(v, f"{path}.{k}")
        self.add("module attribute", f"{path}.new = 1", f"{path}.__getattr__ = lambda name: 4.0")

    def iterator(self, i, path, put):
        self.add("iterator", f"next({path}, None)")


BUILTINS = {"len": "lambda v: 2", "range": "lambda *a: [0, 1]", "isinstance": "lambda *a: False", "print": "lambda *a, **k: None",
            "sum": "lambda v, *a: 3.0",
            "max": "min", "min": "max", "enumerate": "lambda v, *a: [(0, x) for x in v]", "abs": "lambda v: v", "sorted": "list",
            "float": "int", "int": "float"}

VISITS = [(torch.nn.Module, Walk.module), (type, Walk.class_), (types.FunctionType, Walk.function), (types.MethodType, Walk.method),
          (functools.partial, Walk.partial),
          (types.ModuleType, Walk.namespace), (collections.deque, Walk.deque), (list, Walk.list), (tuple, Walk.tuple), (dict, Walk.dict),
          ((set, frozenset), Walk.set),
          (collections.abc.Iterator, Walk.iterator)]


PROCESS = ["torch.set_grad_enabled(False)", "torch.set_grad_enabled(True)", "torch.set_default_dtype(torch.float64)",
           "torch.set_default_dtype(torch.float32)",
           "torch.set_num_threads(2)", "torch.set_num_threads(1)", "torch.use_deterministic_algorithms(True)",
           "torch.use_deterministic_algorithms(False)",
           "torch.use_deterministic_algorithms(True, warn_only=True)", "torch.set_autocast_enabled('cpu', True)",
           "torch.set_autocast_enabled('cpu', False)",
           "torch.set_autocast_dtype('cpu', torch.float16)", "torch.set_autocast_dtype('cpu', torch.bfloat16)",
           "torch.set_autocast_cache_enabled(False)",
           "torch.backends.cuda.matmul.allow_tf32 = True", "torch.backends.cuda.matmul.allow_tf32 = False",
           "torch.backends.cudnn.allow_tf32 = False",
           "torch.backends.cudnn.allow_tf32 = True", "torch.backends.cudnn.benchmark = True", "torch.backends.cudnn.deterministic = True",
           "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False",
           "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False",
           "torch.set_float32_matmul_precision('high')", "torch.set_float32_matmul_precision('highest')",
           "torch.autograd.set_detect_anomaly(True)",
           "torch.autograd.set_detect_anomaly(False)", "torch.set_warn_always(True)", "torch.set_warn_always(False)",
           "torch.backends.cuda.enable_flash_sdp(False)",
           "torch.backends.cuda.enable_math_sdp(False)", "torch.backends.mkldnn.set_flags(False)", "torch.manual_seed(5)",
           "torch.set_default_device('cpu')",
           "torch.set_default_device(None)", "torch.nn.modules.module.register_module_forward_hook(doubled)",
           "torch.nn.modules.module._global_forward_hooks.clear()",
           "torch.set_flush_denormal(True)", "torch.set_flush_denormal(False)", "warnings.simplefilter('error')",
           "warnings.simplefilter('ignore')",
           "torch.Tensor.relu = lambda t: t * 5", "torch.Tensor.relu = ORIGINAL['relu']", "torch.Tensor.__add__ = lambda a, b: a * b",
           "torch.Tensor.__add__ = ORIGINAL['__add__']", "torch.nn.functional.relu = torch.tanh",
           "torch.nn.functional.relu = ORIGINAL['functional.relu']",
           "torch.sin = torch.cos", "torch.sin = ORIGINAL['sin']",
           "torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)"]


def recurrent_modules(instance):
    """LSTMs that the instance reaches."""
    with torch._C.DisableTorchFunction():
        return [m for m in Walk(instance).kept if isinstance(m, torch.nn.LSTM)]


def normalised_modules(instance):
    """Modules with a weight norm that the instance reaches."""
    with torch._C.DisableTorchFunction():
        return [m for m in Walk(instance).kept if isinstance(m, torch.nn.Module) and {"weight_g", "weight_v"} <= m._parameters.keys()]


def parametrizations(instance):
    """What computes parameters of the instance's modules from others."""
    with torch._C.DisableTorchFunction():
        return [m for m in Walk(instance).kept if isinstance(m, torch.nn.utils.parametrize.ParametrizationList)]


def sites(instance):
    """Changes that can be made to the instance, by kind."""
    with torch._C.DisableTorchFunction():
        found = Walk(instance).sites
    found["process"] = PROCESS
    return found

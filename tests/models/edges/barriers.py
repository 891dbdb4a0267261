"""Programs during which nothing may end the process, hang, or be lost."""

import io
import os
import signal
import sys
import threading
from unittest import mock

import numpy
import torch

from . import edge, raised


def loaded_script(module):
    """The module as another process would load it: its tensors have no Python objects."""
    stored = io.BytesIO()
    torch.jit.save(torch.jit.script(module.eval()), stored)
    stored.seek(0)
    return torch.jit.load(stored)


def constant_linear():
    linear = torch.nn.Linear(3, 3)
    torch.nn.init.ones_(linear.weight)
    torch.nn.init.ones_(linear.bias)
    return linear


@edge
def tensors_without_a_python_object(compile, engine):
    loaded = loaded_script(constant_linear())

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return loaded(x)

        @staticmethod
        def backward(ctx, g):
            return g

    c = compile(lambda x: Function.apply(x) * 2)
    return [c(torch.ones(2, 3, requires_grad=True)) for _ in range(3)]


@edge
def script_module_is_called(compile, engine):
    loaded = loaded_script(constant_linear())
    c = compile(lambda x: loaded(x) * 2)
    return [c(torch.ones(2, 3)) for _ in range(2)]


def with_precision(compile, holder, value):
    holder.fp32_precision = value
    return compile(lambda x: x @ x)(torch.ones(2, 2))


@edge
def precision_of_everything(compile, engine):
    return with_precision(compile, torch.backends, "tf32")


@edge
def precision_of_cuda_matmul(compile, engine):
    return with_precision(compile, torch.backends.cuda.matmul, "tf32")


@edge
def precision_of_mkldnn_matmul(compile, engine):
    return with_precision(compile, torch.backends.mkldnn.matmul, "tf32")


@edge
def precision_changes_between_calls(compile, engine):
    c, x = compile(lambda x: x @ x), torch.ones(2, 2)
    out = [c(x)]
    torch.backends.mkldnn.matmul.fp32_precision = "ieee"
    out.append(c(x))
    torch.backends.cudnn.fp32_precision = "tf32"
    return out + [c(x)]


@edge
def nested_tensor_after_a_dense_one(compile, engine):
    c = compile(lambda x: x * 2)
    c(torch.ones(3, 4))
    return str(c(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])))


@edge
def mock_of_a_tensor(compile, engine):
    m = mock.Mock(spec=torch.Tensor)
    c = compile(lambda x, t: x + 1 if isinstance(t, torch.Tensor) else x)
    return c(torch.ones(2), m), c(torch.ones(2), torch.ones(2))


@edge
def proxy_whose_class_is_tensor(compile, engine):
    class Proxy:
        def __init__(self, t):
            object.__setattr__(self, "_t", t)

        @property
        def __class__(self):
            return type(self._t)

        def __getattr__(self, name):
            return getattr(self._t, name)

        def __add__(self, other):
            return self._t + other

    p = Proxy(torch.ones(2))
    return compile(lambda x, t: t + x)(torch.ones(2), p), compile(lambda x: x * p.shape[0])(torch.ones(2))


@edge
def interrupt_in_a_custom_function(compile, engine):
    fire = [1]

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if fire:
                fire.pop()
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000):
                    pass
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    c, x = compile(lambda x: Function.apply(x)), torch.ones(2, requires_grad=True)
    return raised(c, x), c(x)


@edge
def interrupt_by_a_timer(compile, engine):
    class Interrupt(Exception):
        pass

    def handler(*_):
        if called:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Interrupt("now")

    def f(x):
        for _ in range(20000):
            x = x + 1
        return x

    def call():
        called.append(1)
        while True:  # however fast the machine is
            compiled(torch.zeros(1))

    called, compiled = [], compile(f)
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    return raised(call)


@edge
def deep_recursion_with_a_raised_limit(compile, engine):
    sys.setrecursionlimit(20000)

    def deep(n):
        return 0 if n == 0 else 1 + deep(n - 1)

    return compile(lambda x: x + deep(15000))(torch.zeros(1))


@edge
def endless_recursion(compile, engine):
    def endless(x):
        return endless(x) + 1

    return raised(compile(endless), torch.zeros(1))[0], raised(compile(lambda x: endless(x)), torch.zeros(1))[0]


@edge
def view_to_a_list(compile, engine):
    c, d = compile(lambda x: x[1].tolist()), compile(lambda x: (x[1, 1].item(), x[1:].numpy().tolist(), list(x[1]), float(x[1, 0])))
    return [(c(x), d(x)) for x in (torch.arange(4).view(2, 2), torch.arange(4.0).view(2, 2))]


@edge
def objects_that_numpy_makes_anew(compile, engine):
    m = numpy.arange(6.0).reshape(2, 3)
    fs = [lambda x: m.T.tolist(), lambda x: x + torch.from_numpy(numpy.eye(3)), lambda x: list(m.flat),
          lambda x: x + torch.from_numpy(numpy.broadcast_to(numpy.arange(3.0), (3, 3)).copy()), lambda x: m.real.tolist(),
          lambda x: numpy.identity(2).tolist(), lambda x: m.shape[0] + m.T.shape[0]]
    return [[compile(f)(torch.ones(3, 3, dtype=torch.float64)) for _ in range(2)] for f in fs]


@edge
def exception_in_every_kind_of_argument(compile, engine):
    class Broken:
        def __getattr__(self, name):
            raise RuntimeError(f"no {name}")

        def __bool__(self):
            raise ValueError("no truth")

        def __eq__(self, other):
            raise ValueError("no equality")

        __hash__ = None

    b, x = Broken(), torch.ones(1)
    fs = [lambda x, b: x + b.value, lambda x, b: x if b else -x, lambda x, b: x if b == 1 else -x, lambda x, b: {b: x}, lambda x,
          b: b in [x, 1],
          lambda x, b: x + b, lambda x, b: getattr(b, "value", x), lambda x, b: hasattr(b, "value")]
    return [[raised(compile(f), x, b) for _ in range(2)] for f in fs]


@edge
def threads_that_compile_at_once(compile, engine):
    def f(x):
        return torch.nn.functional.gelu(x * 2).sum(), True

    def g(x):
        return torch.softmax(x, -1).sum(), isinstance(x, torch.Tensor)

    c, d, barrier, out, lock = compile(f), compile(g), threading.Barrier(4), [], threading.Lock()

    def run(k, n):
        barrier.wait()
        for i in range(20):
            r = k(torch.ones(4 + (i + n) % 3, 4))
            with lock:
                out.append((round(r[0].item(), 2), r[1]))

    threads = [threading.Thread(target=run, args=(k, n)) for n, k in enumerate((c, d, c, d))]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    return sorted(set(out)), len(out)


@edge
def exception_of_a_thread_that_ends(compile, engine):
    caught = []

    def work():
        try:
            compile(lambda x: x[5])(torch.ones(2))
        except IndexError as error:
            caught.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return caught


@edge
def tensors_on_meta(compile, engine):
    c, d = compile(lambda x: torch.ones(2, device="meta") + x.to("meta")), compile(lambda x: x * 2 + 1)
    return [str(c(torch.ones(2)).device) for _ in range(2)], str(d(torch.ones(2, device="meta")).device), d(torch.ones(2))


@edge
def error_of_the_compiler_inside_with(compile, engine):
    """A size that was marked and became a constant is one, in the middle of a frame: what the program has entered is left."""
    log = []

    class Entered:
        def __enter__(self):
            log.append("entered")

        def __exit__(self, *info):
            log.append("left")

    def f(x):
        with Entered():
            torch._dynamo.graph_break()
            return [{n: x for n in x.shape}, x.view(3, 4)]

    g = compile(f)
    for n in (3, 3):
        x = torch.ones(n, 4)
        torch._dynamo.mark_dynamic(x, 0)
        raised(g, x)
    return log

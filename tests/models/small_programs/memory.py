"""What needs the memory of a tensor, and objects that C code makes anew at every read."""

import copy
import functools
import io
import pickle

import numpy
import torch
from torch.utils.checkpoint import checkpoint

from . import script


def ones(n=2, value=1.0):
    return torch.full((n,), value)


@script
def data_of_views(compile):
    def lists(x):
        return x[1].tolist(), x[1:, 1].tolist(), x.t()[1].tolist(), (x + 1)[1].tolist(), x[1, 1].tolist()

    def numbers(x):
        return x[1, 0].item(), float(x[1, 1]), int(x[0, 1]), bool(x[1, 1] > 2)

    def arrays(x):
        return x[1].numpy().sum(), numpy.asarray(x[1:]).shape, x[1].__array__().tolist(), (x * 2)[1].numpy().tolist()

    def texts(x):
        return str(x[1]), f"{x[1, 1]}", repr(x[1:])

    def addresses(x):
        y = x[1]
        return y.data_ptr() - x.data_ptr(), y.untyped_storage().nbytes(), y.storage_offset(), y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()

    def copies(x):
        buffer = io.BytesIO()
        torch.save(x[1], buffer)
        return pickle.loads(pickle.dumps(x[1])), copy.deepcopy(x[1]), copy.copy(x[1]), len(buffer.getvalue()) > 0

    def exchanged(x):
        return torch.from_dlpack(x[1].clone()), torch.frombuffer(bytearray(x[1].numpy().tobytes()), dtype=x.dtype)

    def compared(x):
        return torch.equal(x[1], x[1]), torch.allclose(x[1], x[0]), x[1] in x, list(x[1]), [float(v) for v in x[1]]

    def caught(x):
        try:
            values = (x + 1)[1].tolist()
        except RuntimeError:
            values = "no memory"
        return values, x + 1

    x = torch.arange(4.0).view(2, 2)
    out = []
    for f in (lists, numbers, arrays, texts, addresses, copies, exchanged, compared, caught):
        c = compile(f)
        out += [c(x), c(x + 1), c(x.t().contiguous())]
    return out


@script
def attributes_made_anew(compile):
    def transposed(m):
        return m.T

    def eye(x):
        return x + torch.from_numpy(numpy.eye(3))

    def broadcast(x):
        return x + torch.from_numpy(numpy.broadcast_to(numpy.arange(3.0), (3, 3)).copy())

    def flat(m, x):
        return list(m.flat), x + m.size, m.real, m.dtype, m.shape

    out = []
    c, e, b, g = compile(transposed), compile(eye), compile(broadcast), compile(flat)
    for k in range(3):
        m = numpy.arange(6.0).reshape(2, 3) + k
        out += [c(m).tolist(), e(torch.ones(3, 3) * k), b(torch.ones(3, 3) * k)]
        junk = [numpy.zeros(6) for _ in range(100)]
        items, x, real, *rest = g(m, ones())
        out += [items, x, real.tolist(), rest, len(junk)]
    return out


@script
def remembered_results(compile):
    class Scaled:
        def __init__(self, k):
            self.k = k

        @functools.lru_cache
        def scale(self):
            return self.k

        @functools.lru_cache(maxsize=None)
        def table(self, n):
            return torch.arange(float(n)) * self.k

    @functools.lru_cache(maxsize=2)
    def small(n, *, by=1):
        return [n * by]

    @functools.cache
    def of_tensor(t):
        return t * 2

    @compile
    def f(x, m):
        return x * m.scale() + m.table(2)

    @compile
    def same(x, m):
        return m.table(3), x + 1

    @compile
    def lists(x, n):
        return small(n), small(n, by=2)[0], small(n) is small(n), x + 1

    @compile
    def tensors(x):
        return of_tensor(x), of_tensor(x) is of_tensor(x)

    a, b, out = Scaled(2.0), Scaled(5.0), []
    out.append(a.scale())
    a.k = 3.0
    out += [f(ones(), a), f(ones(), b), f(ones(), a)]
    out.append(same(ones(), a)[0] is same(ones(), a)[0])
    Scaled.scale.cache_clear()
    Scaled.table.cache_clear()
    out += [f(ones(), a), f(ones(), b)]
    for n in (1, 2, 3, 1):
        got = lists(ones(), n)
        got[0].append("mine")
        out += [got, small(n)]
    x = ones()
    return out + [tensors(x), tensors(x), tensors(ones())]


@script
def reentrant_checkpoints(compile):
    lin = torch.nn.Linear(2, 2)

    def f(x):
        return checkpoint(lin, x, use_reentrant=True)

    def g(x):
        return checkpoint(lin, x, use_reentrant=False)

    out = []
    for run in (f, g):
        c = compile(run)
        for wants in (False, True, False):
            x = torch.ones(1, 2, requires_grad=wants)
            y = c(x)
            out += [y, y.requires_grad]
            if y.requires_grad:
                y.sum().backward()
            out += [x.grad, lin.weight.grad]
            lin.zero_grad()
    return out


@script
def cached_functions_write_to_what_the_program_has_written(compile):
    counted, seen = [0], torch.zeros(2)

    @functools.lru_cache
    def cached(k, by=1):
        counted[0] += by
        return k * 2 + float(seen.sum())

    @compile
    def f(x, k):
        counted[0] += 5
        seen.add_(1)
        return x * cached(k) + cached(k, by=3), counted

    return [(f(torch.ones(2), k), list(counted)) for k in (1, 1, 2, 1, 2)]


@script
def cached_functions_tell_1_from_true(compile):
    out = []
    for keys in ((1, 2, 1), (2, 1, 2), (True, 1, True, 1.0)):
        counted = [0]

        @functools.lru_cache
        def cached(k):
            counted[0] += 1
            return k * 2

        @functools.lru_cache(typed=True)
        def typed(k):
            counted[0] += 10
            return k * 2

        @compile
        def f(x, k):
            counted[0] += 5
            return x * cached(k) + typed(k), counted

        out += [(f(torch.ones(2), k), list(counted)) for k in keys]
    return out


@script
def a_checkpoint_keeps_no_tensor_of_inference_mode(compile):
    with torch.inference_mode():
        kept = torch.ones(2)
    w, out = torch.ones(2, requires_grad=True), []
    for reentrant in (False, True):
        @compile
        def f(x, w):
            return checkpoint(lambda x, w: (x * w).sin(), x, w, use_reentrant=reentrant)

        for x, grad in ((torch.ones(2), True), (kept, True), (kept, False)):
            with torch.set_grad_enabled(grad):
                try:
                    out.append(f(x, w))
                except RuntimeError as error:
                    out.append(str(error)[:40])
    return out


@script
def data_of_inputs_are_exchanged(compile):
    def grid():
        return torch.arange(12.0).reshape(3, 4)

    @compile
    def blend(average, x, rate):
        average.data = average * rate + x * (1 - rate)
        return average.sum()

    @compile
    def take(x, y):
        old = x.detach()
        x.data = y
        old.add_(1)
        y.data = torch.zeros(0)
        return x + old

    @compile
    def count(x, y):
        x.data = y
        x.mul_(2)
        return x + 1

    @compile
    def halve(w):
        w.data = w[:, :2].contiguous()
        return w.shape

    @compile
    def swap(w, y):
        w.data = y
        return (w * 3).sum()

    @compile
    def too_late(w, y):
        z = (w * w).sum()
        w.data = y
        return z

    average, out = torch.ones(3), []
    for n in range(3):
        out.append(blend(average, torch.full((3,), float(n)), 0.5))
        x, y = grid(), grid() + 10
        seen = x.detach()
        out += [take(x, y), x, y, seen]
        x, y = grid(), grid() + 10
        out += [count(x, y), x, y, x._version, y._version]
        w, new = grid().requires_grad_(), grid() * 2
        swap(w, new).backward()
        out += [w, w.grad, w.data_ptr() == new.data_ptr()]
        late = grid().requires_grad_()
        too_late(late, grid() * 5).backward()
        out += [late.grad, halve(late), late]
    return [average, *out]


@script
def numbers_that_are_read_beside_tensors(compile):
    @compile
    def f(x, y):
        n = x[0].item()
        return [(n / t, t / n, n - t, t - n, t * n, n + t) for t in (x, y, x[1], y[1])]

    def bits(t):
        return t.view(torch.int32 if t.dtype is torch.float32 else torch.int64).tolist()

    return [[bits(t) for row in f(torch.randn(9), torch.randn(9, dtype=torch.float64)) for t in row] for _ in range(6)]


@script
def one_tensor_for_two_results(compile):
    @compile
    def normalised(x, statistics):
        return torch.nn.functional.batch_norm(x, statistics, statistics, training=True)

    @compile
    def stepped(p, g, m):
        torch._fused_sgd_([p, p], [g, g], [m, m], weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.0, nesterov=False, maximize=False, is_first_step=False)
        return p * 2

    statistics, p, m = torch.rand(3), torch.randn(3), torch.randn(3)
    return normalised(torch.randn(4, 3), statistics), statistics, stepped(p, torch.randn(3), m), p, m

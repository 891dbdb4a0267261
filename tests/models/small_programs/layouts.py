"""Images in memory: convolutions may lie channels-last inside, but what the program sees lies as in eager."""

import warnings

import torch
from torch import nn
import torch.nn.functional as F
from . import script


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        # Before a norm a bias has a gradient of rounding alone.
        self.first, self.second = nn.Conv2d(8, 32, 3, padding=1, bias=False), nn.Conv2d(32, 32, 3, padding=1, stride=2)
        self.depthwise, self.norm, self.last = nn.Conv2d(32, 32, 3, padding=1, groups=32), nn.BatchNorm2d(32), nn.Linear(32, 5)

    def forward(self, x):
        seen = torch.relu(self.norm(self.first(x)))
        pooled = F.max_pool2d(F.gelu(self.second(seen)), 2)
        mixed = self.depthwise(pooled) + pooled
        return self.last(mixed.permute(0, 2, 3, 1)).mean((1, 2)), seen, mixed[:, ::2]


@script
def results_keep_the_strides_of_eager(compile):
    net = Images().eval()
    with torch.no_grad():
        return compile(net)(torch.randn(2, 8, 24, 24))


def step(net, run, x):
    logits, seen, mixed = run(x)
    (logits.square().sum() + seen.sin().mean() + mixed.mean()).backward()
    return [logits, seen, mixed, x.grad, *(p.grad for p in net.parameters()), *net.buffers()]


@script
def gradients_keep_the_strides_of_parameters(compile):
    net = Images()
    return step(net, compile(net), torch.randn(2, 8, 24, 24, requires_grad=True))


@script
def gradients_of_a_channels_last_model(compile):
    net = Images().to(memory_format=torch.channels_last)
    return step(net, compile(net), torch.randn(2, 8, 24, 24).to(memory_format=torch.channels_last).requires_grad_())


@script
def saved_images_come_back_laid_otherwise_from_hooks(compile):
    net = Images()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.contiguous().clone(), lambda t: t):
        return step(net, compile(net), torch.randn(2, 8, 24, 24, requires_grad=True))


@script
def gradients_of_gradients_of_images(compile):
    conv = nn.Conv2d(8, 32, 3, padding=1)
    x = torch.randn(2, 8, 24, 24, requires_grad=True)
    run = compile(lambda x: F.dropout(F.gelu(conv(x)), 0.0).square().mean())
    (g,) = torch.autograd.grad(run(x), x, create_graph=True)
    g.square().sum().backward()
    return x.grad, conv.weight.grad


@script
def a_strided_window_of_an_image(compile):
    conv = nn.Conv2d(8, 32, 3, padding=1)
    x = torch.randn(2, 8, 24, 24)
    return compile(lambda x: torch.as_strided(torch.relu(conv(x)), (4, 6), (100, 3), 7) + 1)(x)


def outcome(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return type(error).__name__, str(error)


@script
def writes_to_memory_that_overlaps(compile):
    """Eager refuses some and carries out others; which, its kernels say."""
    writes = [lambda a: a.expand(3, 4).add_(1), lambda a: a[1:].add_(a[:-1]), lambda a: a[2:].add_(a[:2]), lambda a: a[::2].add_(a[1::2]), lambda a: a.expand(3, 4).zero_(),
              lambda a: a.expand(3, 4).copy_(torch.ones(3, 4)), lambda a: a[1:].mul_(a[1:]), lambda a: a.expand(2, 4).clamp_(0, 1),
              lambda a: torch.sin(a[1:], out=a[:-1]), lambda a: a.as_strided((3, 2), (1, 1)).sub_(2), lambda a: a.expand(2, 4).index_fill_(0, torch.tensor([0]), 1)]
    out = []
    for write in writes:
        a, apart = torch.arange(4.0), torch.stack([torch.arange(4.0), torch.ones(4)], -1)[:, 0]
        out += [outcome(compile(write), a), a, outcome(compile(write), apart), apart]
    return out


@script
def types_that_a_kernel_does_not_have(compile):
    calls = [lambda a: torch.gcd(a, a), lambda a: a << 1, lambda a: (a > 0).softmax(0), lambda a: torch.lgamma(a.half()), lambda a: a & 1,
             lambda a: torch.logaddexp(a.int(), a.int()), lambda a: (a > 0).cumprod(0), lambda a: F.relu(a > 0), lambda a: F.gelu(a.int())]
    return [outcome(compile(call), torch.arange(4.0)) for call in calls]


@script
def a_dead_operator_that_refuses_its_types(compile):
    def f(a):
        torch.gcd(a, a)
        return a + 1
    return outcome(compile(f), torch.ones(3))


@script
def scatters_into_a_copy_of_all_memory(compile):
    def f(a):
        sliced, selected = torch.slice_scatter(a, a[:1] * 2, 0, 0, 1), torch.select_scatter(a, a[..., 0] * 3, -1, -1)
        return sliced, selected, sliced.as_strided((3,), (1,), 0), sliced.storage_offset(), selected[-1].storage_offset()
    g = compile(f)
    results = []
    for a in (torch.randn(6, 4)[2:-1], torch.randn(4, 6).t(), torch.randn(9, 4)[::2], torch.randn(3, 4)):
        results += [g(a), [t.storage_offset() for t in g(a)[:2]], [t.stride() for t in g(a)[:2]]]
    return results


@script
def results_lie_as_eagers_do(compile):
    image, flat = torch.randn(2, 2, 3, 3).to(memory_format=torch.channels_last), torch.randn(4, 5).t()
    calls = [lambda x: F.rrelu(x, training=True), lambda x: (x[:1] * 2).expand(2, *x.shape[1:]).view(torch.int32), lambda x: x.angle(),
             lambda x: torch.tensor(-8).broadcast_to((1, 3, 2)), lambda x: F.dropout(x), lambda x: (x + 1).expand(2, *x.shape),
             F.logsigmoid, lambda x: torch.ops.aten._safe_softmax(x, 0)]
    out = []
    for call in calls:
        for x in (image, flat, torch.randn(1, 7).expand(3, 7)):
            r = compile(call)(x)
            out += [r, r.stride(), r.storage_offset()]
    return out


@script
def a_formula_is_made_of_what_an_operator_overwrites(compile):
    def f(x):
        y = torch.where(x.abs() > 0.1, x, 0.1)
        r = y.reciprocal()  # nobody has computed it when i0 is called
        return torch.i0(y) - r

    return compile(f)(torch.randn(5)), compile(f)(torch.randn(4000))


@script
def a_part_is_read_after_the_whole_was_overwritten(compile):
    """What an operator may write over is not only unread itself: no view of it is read later."""
    index = torch.zeros(5, 1, dtype=torch.int64)

    def bits(x):
        whole = (x * 2).view(torch.int32)
        part = whole.split(2, -2)[0]
        return whole, part, whole.scatter(1, index, 2.0), part >> 1

    def parts(x):
        whole = x * 3
        head, tail = whole.t().chunk(2, 1)
        return whole.scatter_reduce(1, index, whole, "amax"), whole.index_copy(0, torch.tensor([0]), x[:1]), head + 1, tail.sin()

    return compile(bits)(torch.randn(5, 1)), compile(parts)(torch.randn(5, 1))


@script
def what_is_written_through_a_view_keeps_its_strides(compile):
    @compile
    def f(x):
        v = x[...]
        v.mul_(2)
        return x.unflatten(1, (1, -1)), x.stride(), v.stride(), x.is_contiguous()

    return [f(torch.randn(5, 9)[1:, :n]) for n in (4, 4)]


@script
def strides_of_what_is_written_stay_where_a_size_becomes_a_constant(compile):
    @compile
    def f(x):
        parts = x.unbind(1)
        x.mul_(2)
        return x.stride(), x.is_contiguous(), parts[0].stride()

    return [f(torch.randn(n, 9)[1:, 1:3]) for n in (4, 6, 7, 8)]


@script
def additions_at_indices_read_the_old_values(compile):
    index = torch.tensor([0, 0, 1, 1, 1, 0, 0])

    @compile
    def f(x):
        x = x * 1
        return x.index_put((index,), x[0], accumulate=True)

    return [f((torch.randint(-8, 9, (4, 4)) / 4).unfold(0, 3, 1).movedim(-1, 1)) for _ in range(2)]


@script
def strides_of_single_dimensions(compile):
    """A dimension of one element keeps any stride: what is made like it has the same, in every call."""
    layouts = (lambda n, m: torch.randn(n + 1, m)[1:, 1], lambda n, m: torch.randn(n, 5, m)[:, :, 0], lambda n, m: torch.randn(3, n, m)[1:, :, :2])
    out = []
    for layout in layouts:
        f = compile(lambda x: [t.stride() for t in (torch.zeros_like(x), x.clone(), torch.empty_like(x), x * 2, torch.rand_like(x), x.detach(), x[None])])
        out += [f(layout(rows, columns)) for rows in (1, 2) for columns in (2, 3, 4, 6)]
    return out


@script
def as_strided_of_views(compile):
    """It names places of the memory, not of the view that it is called on."""
    net = torch.nn.Conv2d(3, 4, 1)

    @compile
    def of_input(x):
        windows = torch.as_strided(x, [2, 5], [1, 1])
        return torch.as_strided(windows, [2, 3], [1, 2]) * 2, torch.as_strided(x[1:, 2:].t(), [4], [3]).clone()

    @compile
    def of_results(x):
        y = net(x)
        rows = torch.as_strided(y.transpose(1, 2)[1:], [2, 4], [8, 1])
        return torch.as_strided(torch.as_strided(y, [2, 5], [1, 1]), [3, 2], [4, 1], 7).clone(), rows + torch.as_strided(y[:, 1:], [2, 4], [8, 1], 3)

    with torch.no_grad():
        return of_input(torch.randn(4, 20)), of_input(torch.randn(4, 20)[1:]), of_results(torch.randn(2, 3, 8, 8))


class PatchMixer(nn.Module):
    """A residual stream whose channels were an image's: eager keeps its rows scattered over memory."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 48, 4, 4)
        self.norms = nn.ModuleList([nn.LayerNorm(48) for _ in range(4)])
        self.tokens = nn.Linear(36, 36)
        self.channels = nn.Linear(48, 48)

    def forward(self, image):
        x = self.patch(image).flatten(2).transpose(1, 2)
        for a, b in (self.norms[:2], self.norms[2:]):
            x = x + self.tokens(a(x).transpose(1, 2)).transpose(1, 2)
            x = x + F.gelu(self.channels(b(x)))
        return x


@script
def streams_of_patches(compile):
    model = PatchMixer()
    run = compile(model)
    results = []
    for seen in (False, True):
        image = torch.randn(2, 3, 24, 24, requires_grad=True)
        x = run(image)
        (x.square().mean() + (x[:, 1] * 2).mean()).backward(retain_graph=seen)
        results += [x.detach() if seen else x.detach().mean(1), image.grad, *(p.grad.clone() for p in model.parameters())]
    results += torch.autograd.grad(run(image).mean() * 100, image, create_graph=True)
    return tuple(r.detach() for r in results)


@script
def gates_in_parts_of_a_row(compile):
    """What is kept of a part that is written in place has gaps as the part has."""

    @compile
    def gated(x, w):
        state = torch.zeros(3, 8)
        for row in x:
            reset, update, new = torch.unsafe_chunk(row @ w, 3, 1)
            reset.sigmoid_()
            update.sigmoid_()
            new = (new * reset).tanh_()
            state = (state - new) * update + new
        return state

    cell = torch.nn.GRU(6, 8)
    results = []
    for _ in range(2):
        x, w = torch.randn(2, 3, 6), torch.randn(6, 24, requires_grad=True)
        results += torch.autograd.grad(gated(x, w).square().sum(), w)
        results += torch.autograd.grad(compile(cell)(x)[0].square().sum(), list(cell.parameters()))
    return results


@script
def parts_of_parts_are_written(compile):
    """Each write goes through views of views: of an input, of a new tensor, of what is looked at around the part later."""

    @compile
    def diffuse(u, steps):
        v = u.clone()
        for _ in range(steps):
            v[1:-1, 1:-1] = v[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] - 2 * u[1:-1, 1:-1])
            v[2:][..., 1:4][:, 1:] *= 0.5
        v[:, 2][1:3] = steps
        return v

    @compile
    def write(u, zeros):
        u[1:-1, 1:-1] += 1
        zeros[0, 1:-1, ::2] = u[1:-1, :4]
        part = u[1:4]
        part[:, 2:5][1:] = 7
        around = torch.slice_scatter(u[1:, 1:5], torch.ones(2, 4), 0, 1, 3)
        return part, around, around.as_strided((5,), (1,), 0), around.stride()

    results = []
    for n in (8, 9, 12):
        u, zeros = torch.randn(n, 8, requires_grad=True), torch.zeros(2, n, 8)
        results += [diffuse(u, 2), *torch.autograd.grad(diffuse(u, 2).sin().sum(), u)]
        v = u.detach().clone()
        results += [*write(v, zeros), v, zeros]
    return results


@script
def pooling_without_gradients_is_dense(compile):
    pool = compile(lambda x: torch.nn.functional.max_pool1d(x, 2))
    x = torch.randn(5, 7, 10).transpose(1, 2)
    results = [pool(x), pool(x.clone().requires_grad_()).detach()]
    results += [pool(torch.randn(5, 7, n).transpose(1, 2)[:, :, :cut]) for n, cut in ((8, 8), (9, 9), (12, 3))]
    return results, [r.stride() for r in results]


@script
def a_power_that_is_a_bool_has_no_gradient(compile):
    x = torch.rand(3, requires_grad=True)
    y = compile(torch.pow)(x, torch.tensor([True]))
    try:
        y.sum().backward()
    except RuntimeError as error:
        return y.detach(), str(error)
    return y.detach(), x.grad


@script
def losses_of_operands_that_lie_otherwise(compile):
    """Their kernels convert the one type to the other in a copy, which has strides of its own; Huber's writes into a tensor like the first operand."""
    def losses(a, b):
        a, b = torch.broadcast_tensors(a, b)
        kinds = [torch.ops.aten.mse_loss, torch.ops.aten.smooth_l1_loss, torch.ops.aten.huber_loss]
        return [loss(p, q, 0) for loss in kinds for p, q in ((a, b), (b, a), (b[::2], b[::2]))], torch.rsub(a, b), torch.floor_divide(a, b), F.huber_loss(a, b)

    b = torch.randn(3, 4, dtype=torch.float64).t()
    return [compile(losses)(torch.tensor(1.5, dtype=dtype), b) for dtype in (torch.float64, torch.float32, torch.bfloat16)]


@script
def results_that_outgrow_views(compile):
    def f(x):
        made = []
        for op in (torch.sort, torch.cummax):
            values, places = torch.empty(6)[::2], torch.empty(6, dtype=torch.long)[::2]
            op(x, dim=0, out=(values, places))
            made += [values, places, values.stride()]
        return made

    run = compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [run(torch.arange(n).flip(0) + 1.0) for n in (6, 3, 7)]

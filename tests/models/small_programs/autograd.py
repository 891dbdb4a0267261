"""Gradients that the program itself asks for, custom functions, in-place operations, views and aliases."""

import torch
import torch.nn.functional as F

from . import script


def rows(*shape):
    return torch.randn(*(shape or (4, 5)))


@script
def backward_inside(compile):
    w = rows(5, 3).requires_grad_()

    @compile
    def f(x):
        loss = (x @ w).pow(2).sum()
        loss.backward()
        return loss.detach(), w.grad * 2

    out = [f(rows()), f(rows())]
    w.grad = None
    return out, f(rows()), w.grad


@script
def grad_inside(compile):
    @compile
    def f(x):
        x = x.detach().requires_grad_(True)
        y = (x ** 3).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return g, torch.autograd.grad(g.sum(), x)[0]

    return f(rows()), f(rows())


@script
def gradient_penalty(compile):
    w = rows(5, 1).requires_grad_()

    @compile
    def f(x):
        out = torch.tanh(x @ w).sum()
        (g,) = torch.autograd.grad(out, x, create_graph=True)
        return ((g.norm(dim=1) - 1) ** 2).mean()

    x = rows().requires_grad_()
    f(x).backward()
    return w.grad


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x ** 3 * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x ** 2 * ctx.k + 1, None


class Round(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.round(), x.sign()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _):
        return g * 7


@script
def custom_functions(compile):
    @compile
    def f(x):
        y, s = Round.apply(x * 2)
        return Cube.apply(y, 2.0).sum() + s.sum()

    x = rows().requires_grad_()
    f(x).backward()
    with torch.no_grad():
        n = f(x)
    return x.grad, n


@script
def gradients_through_inputs_and_outputs(compile):
    @compile
    def f(x, y):
        return x * y, (x + y).relu(), x.detach() * 2, y

    x, y = rows().requires_grad_(), rows()
    a, b, c, d = f(x, y)
    (a.sum() + (b * b).sum()).backward()
    return x.grad, a.requires_grad, b.requires_grad, c.requires_grad, d.requires_grad, d is y


@script
def retain_grad_and_accumulation(compile):
    @compile
    def f(x):
        return (x * x).sum(), x.exp().mean()

    x = rows().requires_grad_()
    for _ in range(2):
        a, b = f(x)
        a.backward(retain_graph=True)
        (a * 2 + b).backward()
    return x.grad


@script
def non_leaf_inputs(compile):
    @compile
    def f(h):
        return h.relu() * 2

    x = rows().requires_grad_()
    h = x * 3
    f(f(h)).sum().backward()
    return x.grad


@script
def in_place_operations(compile):
    @compile
    def f(x, out):
        x[:, 0] = 1
        x[1] += 2
        x.clamp_(-1, 1)
        x[x > 0.5] = 0.25
        torch.add(x, 1, out=out)
        y = x.clone()
        y.view(-1)[::2].zero_()
        y.t()[0].fill_(9)
        z = torch.zeros(3)
        z.index_fill_(0, torch.tensor([1]), 5.0).scatter_(0, torch.tensor([2]), 7.0)
        return y, z, x.sum()

    x, out = rows(), torch.empty(4, 5)
    return f(x, out), x, out, f(x, out), x


@script
def in_place_on_a_view_of_an_input(compile):
    @compile
    def f(x):
        v = x[1:3]
        v.mul_(2)
        w = x.t()
        w.add_(1)
        return v, w

    base = rows()
    v, w = f(base)
    v.zero_()
    return base, w


@script
def in_place_with_gradients(compile):
    @compile
    def f(x):
        y = x * 2
        y[0] = 0
        y.mul_(y.detach().clone())
        y = y.clone().relu_()
        return y.sum()

    x = rows().requires_grad_()
    f(x).backward()
    return x.grad


@script
def leaf_modified_in_place_raises(compile):
    @compile
    def f(x):
        x.add_(1)
        return x

    x = rows().requires_grad_()
    try:
        f(x)
    except RuntimeError as e:
        return str(e)[:60]


@script
def requires_grad_of_what_has_a_history_is_assigned(compile):
    """Refused even where it stays as it is; the method accepts that."""
    def assigned(x):
        x.requires_grad = True
        return x * 2

    def of_a_result(x):
        y = x * 2
        y.requires_grad = True
        return y

    told = []
    for f in map(compile, (assigned, of_a_result, lambda x: x.requires_grad_() * 2)):
        for x in (rows(), rows().requires_grad_(), rows().requires_grad_() * 1):
            try:
                told.append(f(x))
            except RuntimeError as error:
                told.append(str(error))
    return told


@script
def outputs_alias_inputs_and_each_other(compile):
    @compile
    def f(x):
        y = x * 2
        return y, y[0], y.view(-1), x, x[1:], x.view(5, 4), y.t()

    x = rows()
    y, row, flat, same, tail, reshaped, t = f(x)
    row.fill_(5)
    tail.zero_()
    return y, flat, same is x, x, reshaped, t, flat.data_ptr() == y.data_ptr()


@script
def attributes_on_tensors(compile):
    @compile
    def f(x, y):
        z = x + 1
        z.tag = "mine"
        z.extra = [1]
        return z, getattr(y, "tag", "none"), z.tag

    x, y = rows(), rows()
    a = f(x, y)
    y.tag = "theirs"
    b = f(x, y)
    return a, b, a[0].tag, a[0].extra


@script
def tensor_properties(compile):
    @compile
    def f(x):
        return (x.shape, x.size(0), x.size(), x.dim(), x.numel(), x.stride(), x.T.shape, x.mT.shape, x.is_floating_point(), x.element_size(), x.storage_offset(),
                x.is_contiguous(), x.is_leaf, x.requires_grad, x.grad is None, x.data.requires_grad, x.ndim, len(x), x.nbytes, x.itemsize, x.names, x.layout, x.device.type, x.real.shape)

    return f(rows()), f(rows()[:, 1:].requires_grad_()), f(rows(2, 3))


@script
def gradients_read_and_reset(compile):
    w = rows(5).requires_grad_()

    @compile
    def step(lr):
        with torch.no_grad():
            w.sub_(w.grad * lr)
            w.grad = None

    out = []
    for _ in range(3):
        (w * w).sum().backward()
        step(0.1)
        out.append((w.detach().clone(), w.grad))
    return out


@script
def grad_accumulated_by_hand(compile):
    w = rows(5).requires_grad_()

    @compile
    def f():
        if w.grad is not None:
            w.grad.zero_()
        return w * 2

    f().sum().backward()
    f().sum().backward()
    return w.grad


@script
def einops_like_reshapes(compile):
    @compile
    def f(x, h):
        b, n, d = x.shape
        q = x.view(b, n, h, d // h).transpose(1, 2)
        k = x.unflatten(-1, (h, -1)).movedim(2, 1)
        s = torch.einsum("bhid,bhjd->bhij", q, k) / d ** 0.5
        o = (s.softmax(-1) @ q).permute(0, 2, 1, 3).flatten(2)
        windows = x.unfold(1, 2, 1).reshape(b, -1, d * 2)
        rolled = torch.roll(x, 1, dims=1)
        return o, windows, rolled, x.repeat_interleave(2, 0), x.tile(1, 2, 1), torch.stack(x.unbind(1)).chunk(2), x.flip(-1), x.squeeze().expand_as(x)

    return f(rows(2, 6, 8), 2), f(rows(2, 6, 8), 4)


@script
def many_functional_operators(compile):
    @compile
    def f(x, y):
        return (F.cosine_similarity(x, y), F.pairwise_distance(x, y), F.glu(torch.cat([x, y], 1)), F.pad(x, (1, 1), value=2.0), F.hinge_embedding_loss(x, y.sign()),
                torch.cdist(x, y), torch.cross(x[:, :3], y[:, :3], dim=1), torch.kron(x[:2, :2], y[:2, :2]), torch.diff(x), torch.trapz(x), torch.quantile(x, 0.5),
                torch.histc(x, 4), torch.bucketize(x, torch.tensor([0.0, 1.0])), torch.searchsorted(x.sort(1).values, y), torch.logcumsumexp(x, 1), torch.nan_to_num(x / 0),
                torch.lerp(x, y, 0.3), torch.addmm(x[:, :4], x, y.t()), torch.baddbmm(x[None, :, :4], x[None], y.t()[None]), torch.heaviside(x, y), torch.frac(x),
                torch.linalg.norm(x), torch.linalg.solve(torch.eye(4) * 2, x), torch.linalg.svd(x).S, torch.fft.rfft(x).abs(), torch.special.expit(x), torch.tensor_split(x, 3))

    return f(rows(), rows())


@script
def results_without_a_gradient_count_for_nothing(compile):
    """Zeros in the place of a gradient that nobody gave would be NaN times infinity."""
    @compile
    def f(x):
        bad = torch.fmod(x, x * 0)
        worse = (x * 0).log() * x
        parts = (x * 2).split(2)
        return x.sin() * x, bad, worse, parts, x.exp() + bad.sum() * 0

    out = []
    for wanted in ([0], [0, 1], [3], [0, 3], [2], [0, 1, 2, 3]):
        x = torch.arange(4.0).requires_grad_()
        results = f(x)
        chosen = [results[i] if i < 3 else results[3][i % 2] for i in wanted]
        out.append(torch.autograd.grad([r.sum() for r in chosen], x)[0])
    return out


@script
def gradients_past_a_break(compile):
    @compile
    def f(x):
        y = torch.fmod(x, x)
        count = y.count_nonzero()
        count.masked_select(count > 0)
        return x @ x.t()

    x = (torch.arange(12.0).reshape(3, 4) % 5).requires_grad_()
    f(x).sum().backward()
    return x.grad


@script
def hooks_on_inputs(compile):
    """They are set in the middle of the function, kept, taken away again, and read what it computes."""
    class Keeper:
        pass

    def triple(p):
        p.grad.mul_(3)

    keeper, out = Keeper(), []

    @compile
    def f(x, y, keeper):
        first = x.register_hook(lambda g: g * 2)
        scale = (y * y).sum()
        second = x.register_hook(lambda g: g + scale)
        with x.register_hook(lambda g: g * 100):
            z = x * y
        keeper.handle = y.register_post_accumulate_grad_hook(triple)
        if y.shape[0] > 2:
            second.remove()
        return z * scale, first, first is second

    for n in (2, 3, 3):
        x, y = torch.arange(1.0, n + 1).requires_grad_(), torch.ones(n).requires_grad_()
        for _ in range(2):
            z, first, same = f(x, y, keeper)
            z.sum().backward()
        out += [x.grad.clone(), y.grad.clone(), type(first).__name__, same, len(x._backward_hooks), len(y._post_accumulate_grad_hooks)]
        first.remove()
        keeper.handle.remove()
        f(x, y, keeper)[0].sum().backward()
        out += [x.grad, y.grad]
    return out

class Bent(torch.autograd.Function):
    """A gradient that is not the derivative, of what went in."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x ** 3 * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x ** 2 * ctx.k, None


class OfResult(torch.autograd.Function):
    """Of what came out."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] * 3


class OfBetween(torch.autograd.Function):
    """Of what was computed on the way, which has no history."""

    @staticmethod
    def forward(ctx, x):
        c = x.cos()
        ctx.save_for_backward(c)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class SumAndProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a + b, a * b

    @staticmethod
    def backward(ctx, s, p):
        a, b = ctx.saved_tensors
        return s + p * b * 2, s * a + p * a


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


class Written(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 5


FUNCTIONS = {
    "bent": lambda x, w: Bent.apply(x @ w, 0.5).sin(),
    "of result": lambda x, w: OfResult.apply(x) @ w,
    "of between": lambda x, w: OfBetween.apply(x @ w) * x.sum(),
    "chained": lambda x, w: Bent.apply(OfResult.apply(Bent.apply(x, 2.0) @ w).tanh(), 0.1),
    "rounded": lambda x, w: (Rounded.apply(x * 3) * w).square(),
    "both": lambda x, w: sum(y * (i + 1) for i, y in enumerate(SumAndProduct.apply(x @ w, w))),
    "product": lambda x, w: SumAndProduct.apply(x @ w, w)[1].sin(),
    "shared": lambda x, w: SumAndProduct.apply(x, x)[1] * OfResult.apply(w),
    "written": lambda x, w: Written.apply(x * w).square(),
}


@script
def functions_are_differentiated_again(compile):
    out = []
    for f in FUNCTIONS.values():
        torch.manual_seed(1)
        x, w = (torch.randn(3, 3, dtype=torch.float64) * 0.4).requires_grad_(), (torch.randn(3, 3, dtype=torch.float64) * 0.4).requires_grad_()
        y = compile(f)(x, w)
        first = torch.autograd.grad(y.square().sum(), (x, w), create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), (x, w), create_graph=True)
        third = torch.autograd.grad(sum(g.sin().sum() for g in second), (x, w), allow_unused=True)
        out += [[t.detach() for t in first], [t.detach() for t in second], third]
        (alone,) = torch.autograd.grad(compile(f)(x, w).sum(), x, create_graph=True)
        out.append(torch.autograd.grad(alone.square().sum(), x, allow_unused=True) if alone.requires_grad else None)
    return out


@script
def results_of_functions_that_the_program_has(compile):
    """Gradients of gradients that lead to a result, and a hook on it."""
    x = torch.linspace(-1, 1, 5, dtype=torch.float64, requires_grad=True)
    log = []

    def both(x):
        a = OfResult.apply(x * 2)
        return a, Bent.apply(a, 0.5).sin()

    a, b = compile(both)(x)
    a.register_hook(lambda g: log.append(g.detach().clone()))
    (g,) = torch.autograd.grad(b.sum() + a.square().sum(), x, create_graph=True)
    (again,) = torch.autograd.grad(g.square().sum(), x, retain_graph=True)
    (of_result,) = torch.autograd.grad(g.sum(), a, allow_unused=True)
    return a.detach(), b.detach(), g.detach(), again, of_result, log


@script
def what_is_differentiable_once_refuses_more(compile):
    x = torch.randn(4, requires_grad=True)
    (g,) = torch.autograd.grad(compile(lambda x: Once.apply(x).sin())(x).sum(), x, create_graph=True)
    try:
        return g.detach(), torch.autograd.grad(g.sum(), x)
    except RuntimeError:
        return g.detach(), "refused"


@script
def checkpoints_that_run_in_whole_passes_alone(compile):
    from torch.utils.checkpoint import checkpoint

    def both(x, w):
        return checkpoint(lambda z: z.sin().exp(), x, use_reentrant=True), w * 2

    out = []
    for way in (0, 1, 2):
        x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        a, b = compile(both)(x, w)
        try:
            if way == 0:
                out.append(torch.autograd.grad(a.sum(), x))
            elif way == 1:
                out.append(torch.autograd.grad(b.sum(), w))
            else:
                (a.sum() + b.sum()).backward()
        except RuntimeError as error:
            out.append("use_reentrant=True" in str(error))
        out += [x.grad, w.grad]

    def inside(x):
        y = checkpoint(lambda z: z.sin().exp(), x, use_reentrant=True)
        return torch.autograd.grad(y.sum(), x)

    try:
        out.append(compile(inside)(torch.ones(3, requires_grad=True)))
    except RuntimeError as error:
        out.append("use_reentrant=True" in str(error))
    return out

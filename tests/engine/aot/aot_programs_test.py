"""Small programs whose effects are easy to get wrong: writes to inputs, aliasing, gradients, random numbers."""
import torch
import torch.nn.functional as F

from aot_compare import close, compare_function, probe, run

X = lambda *s: torch.randn(*s)
G = lambda *s: torch.randn(*s, requires_grad=True)


def nonleaf(*s):
    return torch.randn(*s, requires_grad=True) * 1.5


PROGRAMS = {}


def program(*make, **options):
    def add(fn):
        def check():
            torch.manual_seed(7)
            compare_function(fn, [m() for m in make], **options)
        PROGRAMS[fn.__name__] = check
        return fn
    return add


@program(lambda: X(3, 4), lambda: X(3, 4))
def pointwise(x, y):
    return (x * 2 + y).relu() - y.sigmoid()


@program(lambda: X(3, 4))
def write_input(x):
    x.add_(1)
    return x * 2


@program(lambda: X(3, 4))
def write_input_view(x):
    x[1].mul_(3)
    x.view(-1)[2:5].relu_()
    return x.sum()


@program(lambda: X(3, 4))
def return_written_input(x):
    x.mul_(2)
    return x, x[0], x + 1


@program(lambda: X(3, 4))
def return_views_of_input(x):
    return x.t(), x[1:], x.view(2, 6), x.detach(), x.unsqueeze(0), x.as_strided((2, 2), (1, 2), 1)


@program(lambda: X(3, 4))
def return_views_of_one_result(x):
    y = x * 2
    return y, y[0], y.t(), y.view(-1)


@program(lambda: X(6, 4))
def chunk_a_hidden_result(x):
    return (x + 1).chunk(3)


@program(lambda: X(3, 4))
def same_result_twice(x):
    y = x + 1
    return y, y, x


@program(lambda: G(4), lambda: G(4))
def more_results_than_bits_in_a_word(x, y):
    results = []
    for i in range(70):
        x = torch.tanh(x * 1.1)
        results.append(x if i % 3 else x * y)
    return (*results, y.sin())


@program(lambda: X(3, 4), lambda: X(3, 4))
def swap_inputs(x, y):
    t = x.clone()
    x.copy_(y)
    y.copy_(t)
    return x + y


@program(lambda: X(3, 4))
def restride_input(x):
    x.t_()
    return x + 1


@program(lambda: X(3, 4))
def write_and_restride_input(x):
    x.add_(1)
    x.unsqueeze_(0)
    return x * 2, x[0]


@program(lambda: X(6, 5))
def row_of_an_input_that_got_another_shape(x):
    rows = x.unbind(0)
    x.unsqueeze_(0)
    return rows[4], x


@program(lambda: X(4))
def constants(x):
    c = torch.tensor([1.0, 2.0, 3.0, 4.0])
    return x + c, c, torch.tensor(2.5) * x


@program(lambda: X(4))
def constant_is_written(x):
    c = torch.tensor([1.0, 2.0, 3.0, 4.0])
    c.add_(x)
    return c


@program(lambda: X(3, 5))
def factories(x):
    a = torch.zeros(5)
    a[2] = 4
    return x + a, torch.arange(5) * 2, torch.full((2,), 3), torch.ones_like(x), torch.eye(3), torch.linspace(0, 1, 5) + x


@program(lambda: X(8, 8))
def random_numbers(x):
    return F.dropout(x, 0.3), torch.rand(3), torch.randn_like(x), x.bernoulli(0.5), torch.randint(0, 9, (4,)), torch.randperm(5)


@program(lambda: X(8, 8))
def unused_random_numbers(x):
    torch.rand(7)
    return x + torch.rand(8)


@program(lambda: G(3, 4), lambda: G(5, 4), lambda: G(5))
def linear(x, w, b):
    return F.linear(x, w, b).relu()


@program(lambda: G(3, 4), lambda: G(4))
def broadcast(x, w):
    return x * w + w, (x / (w.abs() + 1)).sum(0)


@program(lambda: G(3, 4), lambda: X(3, 4))
def several_outputs(x, y):
    h = (x * y).tanh()
    return h, h.sum(), y * 3, h.detach() + 1, x.argmax()


@program(lambda: G(3, 4), lambda: G(3, 4))
def unused_gradient(x, y):
    return x * 2, y.detach()


@program(lambda: nonleaf(3, 4), lambda: G(4))
def write_nonleaf(x, w):
    x.mul_(w)
    return x.sin()


@program(lambda: nonleaf(3, 4), lambda: G(4))
def write_view_of_nonleaf(x, w):
    x[1].mul_(w)
    return x * 2, x[0]


@program(lambda: X(3, 4), lambda: G(4))
def input_becomes_differentiable(x, w):
    x.mul_(w)
    return x + 1


@program(lambda: X(3, 4), lambda: G(4))
def input_view_becomes_differentiable(x, w):
    x[0].mul_(w)
    return x[0].cos(), x


@program(lambda: G(3, 4))
def write_leaf_without_grad(x):
    y = x * x
    with torch.no_grad():
        x_old = x.clone()
    return y + x_old


@program(lambda: G(4), lambda: X(3, 4))
def write_leaf_under_no_grad(w, x):
    y = x * 2
    with torch.no_grad():
        w.add_(1)
    return y + w


@program(lambda: G(4), lambda: X(3, 4))
def write_leaf_through_data(w, x):
    w.data.mul_(2)
    return x * w


@program(lambda: nonleaf(4), lambda: X(3, 4))
def write_nonleaf_under_no_grad(w, x):
    with torch.no_grad():
        w.mul_(2)
    return x * w


@program(lambda: X(6), lambda: X(6))
def write_through_slices_in_a_loop(x, y):
    for i in range(3):
        x[2 * i : 2 * i + 2] += y[i]
    return x.cumsum(0)


@program(lambda: torch.zeros(3, 4), lambda: torch.tensor(1), lambda: X(2, 4))
def cache_update(cache, position, row):
    cache[1:3] = row
    cache.index_copy_(0, position[None], row[:1])
    position.add_(1)
    return cache[:2] * 1


@program(lambda: X(4, 4))
def views_of_views(x):
    y = x.view(2, 8)[1]
    y.add_(1)
    return y, x.t()[1], x.diagonal(), x.unbind(0)[2], x.chunk(2)[1].transpose(0, 1)


@program(lambda: G(4, 4))
def views_of_a_written_result(x):
    y = x * 2
    z = y[1]
    z.mul_(3)
    return z, y.t()


@program(lambda: G(4, 4), lambda: X(2, 4))
def shared_parameter(w, x):
    return (x @ w @ w.t()).softmax(-1)


@program(lambda: G(3, 4))
def differentiable_views(x):
    y = x * 2
    return y, y[0], y.t(), y.detach()


@program(lambda: G(6, 4))
def differentiable_chunks(x):
    a, b, c = (x.exp()).chunk(3)
    return a, b, c


@program(lambda: G(3, 4))
def differentiable_views_of_input(x):
    return x.view(-1), x.detach(), x[1] * 2


@program(lambda: G(3, 4))
def inplace_on_intermediate(x):
    y = x * 2
    y[0].mul_(3)
    y.view(-1)[2:5].relu_()
    return y.sum()


@program(lambda: G(4, 4))
def strided_gradient(x):
    return x.t().contiguous().view(2, 8), x.t().exp()


@program(lambda: G(3, 4))
def dropout_gradient(x):
    return F.dropout(x, 0.4).sin()


@program(lambda: G(2, 3, 8, 8), lambda: G(4, 3, 3, 3), lambda: G(4))
def convolution(x, w, b):
    return F.max_pool2d(F.conv2d(x, w, b, padding=1).relu(), 2), F.adaptive_avg_pool2d(x, 2)


@program(lambda: G(2, 3, 6, 6).to(memory_format=torch.channels_last), lambda: G(4, 3, 3, 3), tolerance=1e-5)
def convolution_channels_last(x, w):
    return F.conv2d(x, w).relu() * 2


@program(lambda: G(2, 4, 3, 3), lambda: G(4), lambda: G(4), lambda: torch.zeros(4), lambda: torch.ones(4), tolerance=1e-5)
def batch_norm(x, w, b, mean, var):
    return F.batch_norm(x, mean, var, w, b, training=True)


@program(lambda: G(2, 4, 3, 3), lambda: torch.zeros(4), lambda: torch.ones(4), tolerance=1e-5)
def instance_norm(x, mean, var):
    return F.instance_norm(x, mean, var, use_input_stats=True)


@program(lambda: G(3, 8), lambda: G(8), lambda: G(8), tolerance=1e-5)
def layer_and_group_norm(x, w, b):
    return F.layer_norm(x, (8,), w, b), F.group_norm(x[:, :, None], 4, w, b)


@program(lambda: G(2, 2, 5, 8), lambda: G(2, 2, 5, 8), lambda: G(2, 2, 5, 8), tolerance=1e-5)
def attention(q, k, v):
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, attn_mask=mask), \
        F.scaled_dot_product_attention(q, k, v, is_causal=True)


@program(lambda: G(10, 4), lambda: torch.randint(0, 10, (3, 5)))
def embedding(w, i):
    return F.embedding(i, w), F.embedding(i, w, padding_idx=0), w[i], w.index_select(0, i[0])


@program(lambda: G(4, 7), lambda: torch.randint(0, 7, (4,)))
def cross_entropy(x, y):
    return F.cross_entropy(x, y), F.nll_loss(x.log_softmax(-1), y, reduction="none"), F.mse_loss(x, x.detach() + 1)


@program(lambda: G(3, 4), lambda: torch.randn(3, 4) > 0)
def masks(x, m):
    y = x * 1
    y[m] = 2.0
    return x.masked_fill(m, 0.0), torch.where(m, x, x * 2), y, torch.where(m, x, 0.5)


@program(lambda: G(5, 4))
def reductions(x):
    return x.sum(0), x.mean(), x.var(0), x.std(), x.amax(1), x.max(1)[0], x.logsumexp(1), x.norm(), x.prod(1), x.cumsum(0), x.median()


@program(lambda: G(5, 4))
def sorting(x):
    return x.sort(0)[0], x.topk(2, 1)[0], x.argsort(1), x.kthvalue(2, 0)[0]


@program(lambda: G(4, 4))
def indexing(x):
    y = x.clone()
    y[1:3, 2] = 7
    y[torch.tensor([0, 2])] += 1
    return y, x[:, ::2], x[..., None], x.gather(1, torch.tensor([[0, 1], [1, 2], [2, 3], [3, 0]])), x.flip(0), x.roll(1, 0), x.tril()


@program(lambda: G(2, 3), lambda: G(2, 3))
def joining(x, y):
    return torch.cat([x, y], 1), torch.stack([x, y]), x.repeat(2, 1), x.expand(4, 2, 3), F.pad(x, (1, 2)), torch.einsum("ij,kj->ik", x, y)


@program(lambda: G(3, 4), lambda: G(3, 4), tolerance=1e-2)
def autocast(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = x @ y.t()
        return z, z.softmax(-1), F.linear(x, y)


@program(lambda: G(4, 3, dtype=torch.bfloat16) if False else torch.randn(4, 3, dtype=torch.bfloat16, requires_grad=True), tolerance=1e-2)
def half_precision(x):
    return x.float() * 2, F.gelu(x), x.to(torch.float16), x + 1.5


@program(lambda: torch.arange(6), lambda: X(6))
def promotion(i, x):
    return i + x, i * 2.5, i / 2, i // 2, i + 1, x + i[0], x > 0, i.bool() & (x > 0)


@program(lambda: torch.randn(3, 4, 1, 5, dtype=torch.complex64).permute(3, 0, 2, 1), same_views=False)
def parts_that_do_not_lie_row_by_row(x):
    return x.real ** 2 + x.imag ** 2, torch.view_as_real(x) * 2, x.conj().imag.sum(1), torch.view_as_real(x[1:]).sum((0, -1))


@program(lambda: torch.randn(4, dtype=torch.complex64), same_views=False)
def complex_numbers(x):
    return x.abs(), (x * 1j).real.clone(), torch.fft.fft(x), x.conj() * x, torch.view_as_real(x) * 2


@program(lambda: G(3, 4))
def custom_function(x):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return g * 3 * a

    return Square.apply(x).sin()


@program(lambda: G(3, 4), lambda: G(4, 4))
def checkpoint(x, w):
    from torch.utils.checkpoint import checkpoint as save_memory
    return save_memory(lambda a: (a @ w).relu().sin(), x, use_reentrant=False, preserve_rng_state=False)


@program(lambda: G(3, 4))
def tensor_hooks(x):
    y = x.exp()
    y.register_hook(lambda g: g * 3)
    return y.sum()


@program(lambda: X(5, 4), lambda: X(4, 4))
def vmap(x, w):
    return torch.func.vmap(lambda a: (a @ w).sin().sum(-1))(x)


@program(lambda: X(4))
def functional_gradients(x):
    f = lambda a: (a.sin() * a).sum()
    return torch.func.grad(f)(x), torch.func.jacrev(lambda a: a.sin())(x), torch.func.hessian(f)(x)


@program(lambda: G(4))
def gradient_inside(x):
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return g.sin()


@program(lambda: X(3, 4))
def inference_mode(x):
    with torch.inference_mode():
        y = F.layer_norm(F.linear(x, x).relu(), [3])
        y.add_(1)
        return y.clone()


@program(lambda: G(3, 4))
def optimiser_step(p):
    g = torch.ones(3, 4)
    with torch.no_grad():
        p.mul_(0.9).add_(g, alpha=-0.1)
    return p * 2


@program(lambda: X(3, 4), lambda: X(2, 2))
def foreach(x, y):
    torch._foreach_add_([x, y], 1.0)
    return torch._foreach_mul([x, y], 2.0)


@program(lambda: X(2, 5, 6), tolerance=1e-5)
def windows(x):
    return x.cumprod(1), F.unfold(x[:, None], 2), F.interpolate(x[:, None], scale_factor=2), F.interpolate(x[:, None], size=(7, 3), mode="bilinear")


@program(lambda: X(3, 4))
def duplicate_work(x):
    return x.contiguous(), x.to(torch.float32), x.reshape(3, 4), x.clone()


@program(lambda: X(3, 4)[:, ::2])
def strided_input(x):
    return x.relu(), x + 1, x.t() * 2, x.contiguous()


@program(lambda: X(3, 1).expand(3, 4))
def expanded_input(x):
    return x.relu(), x.exp(), x.clone()


def same_argument_twice():
    x = X(3)
    compare_function(lambda a, b: a * b, [x, x])


def other_strides_of_the_incoming_gradient():
    a, b = G(3, 4), None
    b = a.detach().clone().requires_grad_()
    traced = probe.trace(lambda x: [x.exp()], [a])
    (ours,) = traced.call([a])
    for out, leaf in ((ours, a), (b.exp(), b)):
        out.backward(torch.arange(12.0).view(4, 3).t())
    close("gradient", a.grad, b.grad, 1e-6)


def undefined_gradients():
    a = G(3, 4)
    traced = probe.trace(lambda x: [x.exp(), x.sin()], [a])
    _, second = traced.call([a])
    second.sum().backward()
    close("gradient", a.grad, a.detach().cos(), 1e-6)


def refused(words, f, otherwise):
    """f() raises a RuntimeError that says `words`; `otherwise`: what it did if not."""
    try:
        f()
    except RuntimeError as error:
        assert words in str(error), error
    else:
        raise AssertionError(otherwise)


def backward_twice():
    a = G(3, 4)
    traced = probe.trace(lambda x: [x.exp().sin()], [a])
    (out,) = traced.call([a])
    out.sum().backward(retain_graph=True)
    first = a.grad.clone()
    out.sum().backward()
    close("gradient", a.grad, first * 2, 1e-6)
    refused("second time", lambda: out.sum().backward(), "a third backward ran over freed tensors")


def second_derivatives():
    a = G(3)
    traced = probe.trace(lambda x: [x.exp().sin()], [a])

    def derivatives(f):
        (g,) = torch.autograd.grad(f(a).sum(), a, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), a, create_graph=True)
        return g, h

    for what, got, want in zip(("first", "second"), derivatives(lambda x: traced.call([x])[0]), derivatives(lambda x: x.exp().sin())):
        close(f"{what} derivative", got.detach(), want.detach(), 1e-5)


def second_derivatives_without_a_formula_are_refused():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    a = G(3)
    traced = probe.trace(lambda x: [Square.apply(x).sin()], [a])
    (g,) = torch.autograd.grad(traced.call([a])[0].sum(), a, create_graph=True)
    close("gradient", g.detach(), ((a * a).cos() * 2 * a).detach(), 1e-5)
    refused("torch.autograd.Function", lambda: g.sum().backward(), "a second derivative was computed")


def second_derivatives_behind_hooks_are_refused():
    a = G(3)
    traced = probe.trace(lambda x: [(x * x).exp()], [a])
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
        (y,) = traced.call([a])
    (g,) = torch.autograd.grad(y.sum(), a, create_graph=True)
    close("gradient", g.detach(), torch.autograd.grad(y.sum(), a)[0], 1e-6)
    refused("hooks on saved tensors", lambda: g.sum().backward(), "a second derivative was computed")


def stale_saved_input_is_noticed():
    a, w = X(3), G(3)
    traced = probe.trace(lambda x, y: [x * y], [a, w])
    (out,) = traced.call([a, w])
    a.add_(1)
    refused("modified by an inplace", lambda: out.sum().backward(), "backward used an overwritten input")


def stale_saved_output_is_noticed():
    for fn in (lambda x: [x.exp()], lambda x: [x.exp().view(-1)]):
        a = G(3, 2)
        traced = probe.trace(fn, [a])
        (out,) = traced.call([a])
        with torch.no_grad():
            out.add_(1)
        refused("modified by an inplace", lambda: out.sum().backward(), "backward used an overwritten output")


def overlapping_written_inputs_are_refused():
    base = X(8)
    refused("share memory", lambda: probe.trace(lambda x, y: [x.add_(1) + y], [base[:6], base[2:]]), "overlapping inputs were traced")
    traced = probe.trace(lambda x, y: [x.add_(1) + y], [base[:4], base[4:]])  # disjoint halves are fine
    refused("shares memory", lambda: traced.call([base[:4], base[2:6]]), "overlapping inputs were run")


def gradient_accumulates_without_aliasing():
    a, b = G(3), G(3)
    traced = probe.trace(lambda x, y: [x + y], [a, b])
    (out,) = traced.call([a, b])
    out.sum().backward()
    a.grad.add_(1)
    close("gradient", b.grad, torch.ones(3), 0)


def sums_are_kept_rather_than_added_up_again():
    def residual(x, *weights):
        for w in weights:
            x = x + F.layer_norm(x, (8,)) @ w
        return x
    args = [G(5, 8), *(G(8, 8) for _ in range(4))]
    compare_function(residual, args)
    backward = probe.trace(lambda *a: [residual(*a)], args).backward
    assert "saved_add" in backward and "saved_mm" not in backward, backward


def weights_in_another_type_are_kept_rather_than_made_again():
    def narrowed(x, *weights):
        for w in weights:
            x = x @ w.bfloat16()
        return x
    narrow = [torch.randn(5, 8, dtype=torch.bfloat16, requires_grad=True), *(G(8, 8) for _ in range(3))]
    backward = probe.trace(lambda *a: [narrowed(*a)], narrow).backward
    assert backward.count("saved__to_copy") >= 3, backward
    backward = probe.trace(lambda x, w: [x.float() @ w], narrow[:2]).backward
    assert "saved__to_copy" not in backward, backward  # what is only wider is multiplied as it was


PROGRAMS.update({f.__name__: f for f in (
    same_argument_twice, weights_in_another_type_are_kept_rather_than_made_again, sums_are_kept_rather_than_added_up_again, other_strides_of_the_incoming_gradient, undefined_gradients, backward_twice, second_derivatives,
    second_derivatives_without_a_formula_are_refused,
    second_derivatives_behind_hooks_are_refused,
    stale_saved_input_is_noticed, stale_saved_output_is_noticed, overlapping_written_inputs_are_refused,
    gradient_accumulates_without_aliasing)})

if __name__ == "__main__":
    run(PROGRAMS)

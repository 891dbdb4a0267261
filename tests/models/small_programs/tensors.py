"""Tensors of every kind and what is done to their memory: layouts, types, views, aliases, out= and in-place."""

import torch
from torch import nn
import torch.nn.functional as F
from . import script


def rows(*s):
    return torch.randn(*(s or (4, 5)))


@script
def parts_of_complex_numbers_that_are_written_to(compile):
    @compile
    def before_and_after(z):
        early = z.real * 2
        z.mul_(2)
        return early, z.real + 1, z.imag

    @compile
    def through_views(z):
        parts = torch.view_as_real(z)[1:]
        z[0] = 0
        z[2].mul_(3j)
        return parts.sum(-1), z.t().imag.sum(0), parts[..., 1]

    @compile
    def of_results(z):
        w = z.conj() * 2
        return w.imag * 2, w.real.t() @ z.imag, torch.view_as_real(w).flatten()[3:7] * 2, (w.imag * 1e3).long(), w.real.double()

    made = [torch.randn(5, 6, dtype=torch.complex64), torch.randn(6, 5, dtype=torch.complex64).t(), torch.randn(8, 9, dtype=torch.complex128)[1:6, 2:8]]
    return [[f(z), z] for f in (before_and_after, through_views, of_results) for z in [t.clone() for t in made]]


@script
def batched_products_of_what_lies_across(compile):
    @compile
    def f(x, y):
        return torch.einsum("ikc,jkc->ijc", x.sin(), y.cos()), torch.einsum("bhd,bhe->hde", x, y)

    return [f(torch.randn(*s), torch.randn(*s)) for s in ((8, 9, 6), (1, 9, 6), (8, 1, 6), (8, 9, 1))]


@script
def products_of_small_matrices(compile):
    """In loops, with what is computed before and after: turns, chains, gradients."""
    @compile
    def turned(v, points):
        angle = v.norm(dim=-1)[:, None, None] + 1e-3
        x, y, z = (v / angle[..., 0]).unbind(-1)
        none = torch.zeros_like(x)
        k = torch.stack([none, -z, y, z, none, -x, -y, x, none], -1).view(-1, 3, 3)
        turn = torch.eye(3, dtype=v.dtype) + angle.sin() * k + (1 - angle.cos()) * (k @ k)
        return turn, turn @ turn.mT, (turn @ points[..., None])[..., 0], torch.linalg.multi_dot([turn[0], turn[-1], turn[0].mT])

    @compile
    def chained(a, b, picked):
        return ((a @ b).tanh() @ a.mT)[picked] @ b[picked], a.flatten(1)[:, None] @ b.flatten(1)[..., None], a[:, :1].mT @ b[:, :1], a[0] @ b[0, :, :1]

    results = []
    for kind in (torch.float32, torch.float64, torch.bfloat16):
        for n in (5, 7, 1):
            v, points = torch.randn(n, 3, dtype=kind).requires_grad_(), torch.randn(n, 3, dtype=kind)
            made = turned(v, points)
            sum(t.float().square().sum() for t in made).backward()
            a, b = torch.randn(n, 4, 4, dtype=kind), torch.randn(4, 4, n, dtype=kind).permute(2, 1, 0)
            results += [*made, v.grad if kind != torch.bfloat16 else None, *chained(a, b, torch.randint(0, n, (3,)))]
        results.append(compile(torch.bmm)(a[:0], b[:0]))
    return results


@script
def frames_that_overlap(compile):
    """Added up in loops on a CPU: whole steps and parts of one, gaps, rows across memory, several types; and where they come from."""
    def added(several, *where):
        return [torch.ops.aten.unfold_backward(frames * 2, *where) + 1 for frames in several]

    def learned(x, window):
        return (x.unfold(1, 8, 4).sigmoid() * window).square().sum()

    results = []
    run = compile(added)
    for sizes, dim, size, step in (([7], 0, 3, 1), ([4, 50], 1, 8, 3), ([50, 4], 0, 5, 2), ([3, 40, 5], 1, 4, 6), ([2, 101], 1, 10, 5), ([2, 300], 1, 20, 1)):
        frames = [torch.randn(*torch.empty(sizes).unfold(dim, size, step).shape).to(kind) for kind in (torch.float32, torch.float64, torch.bfloat16)]
        results.append(run(frames + [f.transpose(0, -1).contiguous().transpose(0, -1) for f in frames], sizes, dim, size, step))
    step = compile(learned)
    for n in (40, 41, 63):
        x = torch.randn(3, n, requires_grad=True)
        step(x, torch.hann_window(8)).backward()
        results.append(x.grad)
    spectra = torch.stft(torch.randn(2, 2000), 64, 16, window=torch.hann_window(64), return_complex=True)
    return results, compile(lambda s: torch.istft(s, 64, 16, window=torch.hann_window(64)) * 2)(spectra)


@script
def sparse_ops(compile):
    @compile
    def f(s, x):
        return torch.sparse.mm(s, x), s.to_dense() * 2, (s * 2).coalesce().values(), s.is_sparse, s._nnz(), s.t().to_dense()

    @compile
    def g(x):
        s = x.relu().to_sparse()
        c = x.to_sparse_csr()
        return s.indices(), s.values(), c.crow_indices(), torch.sparse.sum(s), c @ x.t(), s.size()

    return f(rows(4, 4).relu().to_sparse(), rows(4, 3)), g(rows()), torch.sparse.softmax(rows(2, 2).to_sparse(), 1).to_dense()


@script
def complex_ops(compile):
    @compile
    def f(x):
        c = torch.fft.rfft(x)
        y = c * c.conj()
        z = torch.complex(x, x + 1)
        return (
            y.real,
            c.abs(),
            c.angle(),
            torch.fft.irfft(c, n=5),
            torch.view_as_real(z),
            z.imag,
            z.conj(),
            z.real.sum(),
            torch.polar(x.abs(), x),
            z @ z.mH,
            torch.fft.fft2(x).abs(),
            torch.istft(torch.stft(x.flatten(), 8, return_complex=True), 8),
            z.t().resolve_conj(),
        )

    x = rows().requires_grad_()
    o = f(x)
    sum(t.abs().sum() for t in o).backward()
    return o, x.grad


@script
def named_tensors(compile):
    import warnings

    warnings.simplefilter("ignore")

    @compile
    def f(x):
        return x.sum("C").rename(None), x.names, x.align_to("C", "N").rename(None)

    return f(torch.ones(2, 3, names=("N", "C")))


@script
def nested_tensors(compile):
    import warnings

    warnings.simplefilter("ignore")

    @compile
    def f(n):
        return torch.nested.to_padded_tensor(n * 2, 0.0), n.is_nested

    n = torch.nested.nested_tensor([rows(2, 3), rows(4, 3)])
    j = torch.nested.nested_tensor([rows(2, 3), rows(4, 3)], layout=torch.jagged)

    @compile
    def g(a, b):
        k = torch.nested.nested_tensor([a, b], layout=torch.jagged)
        return (k * 2).values(), k.offsets()

    return f(n), compile(lambda j: (j.sin() * 2).values())(j), g(rows(2, 3), rows(1, 3))


@script
def quantized(compile):
    import warnings

    warnings.simplefilter("ignore")

    @compile
    def f(x):
        q = torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)
        return q.dequantize(), q.int_repr(), torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)

    m = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(5, 4), nn.ReLU()), {nn.Linear})
    c = compile(m)
    return f(rows()), c(rows())


@script
def inplace_views(compile):
    @compile
    def f(x):
        v = x[1:3]
        v.mul_(2)
        w = x.t()
        w[0] += 1
        x.view(-1)[::7] = 0
        d = torch.diagonal(x)
        d.fill_(3)
        s = x.unfold(1, 2, 1)
        y = x.narrow(0, 0, 2)
        y.zero_()
        return v, w, s.sum(), x.sum()

    x = rows()
    r = f(x)
    b = rows(6, 5)
    r2 = f(b[1:5])
    return r, x, r2, b


@script
def inplace_with_grad_views(compile):
    @compile
    def f(x, w):
        y = x * w
        v = y[1:]
        v.mul_(2)
        y[0] = w[0]
        y.t()[2].add_(1)
        return y.sum(), v

    w = rows().requires_grad_()
    a, v = f(rows(), w)
    (a + v.sum()).backward()
    return a, v, w.grad


@script
def aliasing_outputs(compile):
    @compile
    def f(x):
        y = x * 2
        return y, y.view(-1), y[0], y.t(), x, x[1:], y.detach()

    x = rows()
    o = f(x)
    o[1].add_(1)
    o[5].zero_()
    return o, x, [t.data_ptr() == o[0].data_ptr() for t in o], o[0]._version > 0


@script
def resize_set_out(compile):
    @compile
    def f(x, out, buf):
        torch.add(x, 1, out=out)
        torch.mm(x, x.t(), out=buf)
        torch.sum(x, 0, out=torch.empty(0))
        y = torch.empty(3)
        y.resize_(2, 2).fill_(1)
        z = torch.empty(0)
        torch.mul(x, 2, out=z)
        s = torch.empty(0)
        s.set_(x)
        return y, z, s, out * 2

    o, b = torch.empty(4, 5), torch.empty(4, 4)
    x = rows()
    return f(x, o, b), o, b


@script
def out_wrong_shape(compile):
    import warnings

    warnings.simplefilter("ignore")

    @compile
    def f(x, o):
        torch.add(x, x, out=o)
        return o

    o = torch.empty(0)
    r = f(rows(), o)
    o2 = torch.empty(4, 5)
    return r, o, f(rows(), o2) is o2, tuple(o.shape)


@script
def scatter_gather(compile):
    @compile
    def f(x, i):
        a = torch.zeros(4, 5).scatter_(1, i, 1.0)
        b = x.scatter_add(1, i, x)
        c = x.index_add(0, torch.tensor([0, 2]), x[:2])
        d = x.index_copy(0, torch.tensor([1]), x[:1])
        e = x.scatter_reduce(1, i, x, "amax")
        g = torch.take_along_dim(x, i, 1)
        h = x.index_put((i[:, 0], i[:, 1]), x[0, 0], accumulate=True)
        m = x.masked_scatter(x > 0, x.flatten())
        return (
            a,
            b,
            c,
            d,
            e,
            g,
            h,
            m,
            x.put(torch.tensor([1]), x[0, :1]),
            torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])),
            torch.searchsorted(torch.tensor([0.0, 1.0]), x),
            x.take(torch.tensor([0, 3])),
            torch.histc(x, 4),
            torch.bincount(i.flatten()),
            x.index_fill(0, torch.tensor([1]), 9.0),
            x.index_select(1, torch.tensor([1, 1])),
            torch.index_reduce(x, 0, torch.tensor([0]), x[:1], "prod"),
        )

    x = rows().requires_grad_()
    o = f(x, torch.randint(0, 4, (4, 5)))
    sum(t.float().sum() for t in o if t.requires_grad).backward()
    return o, x.grad


@script
def linalg_ops(compile):
    @compile
    def f(x):
        a = x @ x.t() + 4 * torch.eye(4)
        l = torch.linalg.cholesky(a)
        q, r = torch.linalg.qr(x)
        u, s, v = torch.linalg.svd(x, full_matrices=False)
        e = torch.linalg.eigvalsh(a)
        return (
            l,
            s,
            e,
            torch.linalg.solve(a, x),
            torch.linalg.inv(a),
            torch.linalg.det(a),
            torch.linalg.norm(x),
            torch.linalg.matrix_rank(x),
            q @ r,
            torch.linalg.lstsq(a, x).solution,
            torch.logdet(a),
            torch.trace(a),
            torch.kron(x[:2, :2], x[:2, :2]),
            torch.linalg.matrix_exp(a * 0.1),
            torch.cdist(x, x),
            torch.linalg.pinv(x),
            torch.linalg.cross(x[:, :3], x[:, :3] + 1),
            torch.tensordot(x, x, ([0], [0])),
            torch.block_diag(x, x),
            torch.cov(x),
            torch.corrcoef(x),
            torch.renorm(x, 2, 0, 1.0),
        )

    x = rows().requires_grad_()
    o = f(x)
    return o


@script
def dtype_zoo(compile):
    @compile
    def f(x):
        return (
            [
                x.to(d).to(torch.float32)
                for d in (
                    torch.float16,
                    torch.bfloat16,
                    torch.float64,
                    torch.int8,
                    torch.uint8,
                    torch.int16,
                    torch.bool,
                    torch.complex64,
                    torch.float8_e4m3fn,
                    torch.float8_e5m2,
                )
            ],
            x.type(torch.int32),
            x.long() // 2,
            x.view(torch.int32),
            torch.promote_types(torch.int8, torch.float16),
            x.double().float(),
            torch.can_cast(torch.int32, torch.float32),
            torch.result_type(x, 1),
            x.half() + x,
            (x > 0) + (x < 0),
            x.byte(),
        )

    return f(rows().abs())


@script
def uint_types(compile):
    @compile
    def f(a):
        return a + 1, a.to(torch.float32) * 2, a >> 1, a.sum(), torch.zeros(3, dtype=torch.uint8)

    return f(torch.tensor([1, 2, 65535], dtype=torch.uint16).to(torch.int32)), compile(lambda a: a.to(torch.int64) + 1)(
        torch.tensor([1, 2], dtype=torch.uint32)
    )


@script
def memory_formats(compile):
    conv = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)

    @compile
    def f(x):
        y = conv(x)
        return (
            y,
            y.is_contiguous(memory_format=torch.channels_last),
            x.contiguous(memory_format=torch.channels_last).stride(),
            y.permute(0, 2, 3, 1),
            torch.empty_like(y).stride(),
            y.clone().stride(),
            (y + 1).stride(),
            y.to(memory_format=torch.contiguous_format).stride(),
        )

    return f(rows(2, 3, 6, 6)), f(rows(2, 3, 6, 6).to(memory_format=torch.channels_last))


@script
def tensor_creation(compile):
    @compile
    def f(x, n):
        return (
            torch.tensor([n, 2.5]),
            torch.tensor([[x[0, 0], 1.0]]),
            torch.as_tensor(3),
            torch.arange(n, 0, -1),
            torch.linspace(0, 1, n),
            torch.logspace(0, 1, 3),
            torch.full((n,), n),
            torch.empty(0),
            torch.zeros(n, 0),
            torch.meshgrid(torch.arange(n), torch.arange(2), indexing="ij"),
            torch.tril_indices(3, 3),
            torch.stack([torch.tensor(i) for i in range(n)]),
            torch.scalar_tensor(2.0),
            torch.ones(2, dtype=torch.int8),
            torch.cartesian_prod(torch.arange(2), torch.arange(2)),
            torch.combinations(torch.arange(3)),
            torch.vander(x[0]),
            torch.complex(x[0], x[1]),
            torch.eye(n, 2),
            torch.hann_window(4),
            x.new_tensor([1, 2]),
            x.new_full((2,), 3),
            torch.from_numpy(__import__("numpy").arange(3)),
        )

    return f(rows(), 3), f(rows(), 4)


@script
def python_scalars_from_tensors(compile):
    @compile
    def f(x, i):
        return (
            x[i],
            x[int(i)],
            [1, 2, 3, 4][i],
            range(i),
            x.shape[i % 2],
            float(x.mean()) > 100,
            complex(x[0, 0]),
            i + 1,
            bool(i),
            x[..., None, i],
            "abcd"[i],
            x.size(0) * i,
            round(float(i)),
            i.__index__(),
            divmod(int(i), 2),
        )

    return f(rows(), torch.tensor(2))


@script
def iteration_and_unpack(compile):
    @compile
    def f(x):
        a, b, *r = x
        (p, q), s = x[:2, :2], x[2]
        return (
            a + b,
            len(r),
            p,
            q,
            s,
            [v for v in x],
            list(zip(*x[:2]))[0],
            max(x[0]),
            sorted(x[0].tolist()),
            sum(x),
            dict(enumerate(x)),
            {i: v for i, v in enumerate(x.unbind(1))},
            x.T,
            [*x[0]],
            tuple(x),
            reversed(x),
        )

    return f(rows())


@script
def tensor_methods_misc(compile):
    @compile
    def f(x):
        return (
            x.size(),
            x.numel(),
            x.dim(),
            x.stride(),
            x.is_contiguous(),
            x.element_size(),
            x.nbytes,
            x.itemsize,
            x.T.shape,
            x.mT.shape,
            x.device.type,
            x.layout,
            x.is_floating_point(),
            x.requires_grad,
            x.storage_offset(),
            x.nelement(),
            x.ndimension(),
            x.is_cuda,
            x.names,
            x.grad,
            x.is_leaf,
            x.dtype.itemsize,
            x.expand_as(x),
            x.type_as(x.double()),
            x.tile(2),
            x.repeat_interleave(2, 0),
            x.roll(1, 0),
            x.flip(0),
            x.rot90(),
            x.diff(),
            x.cummax(0),
            x.quantile(0.5),
            x.nanmean(),
            x.nan_to_num(),
            x.kthvalue(2),
            x.mode(),
            x.unique().numel() > 0,
            x.msort(),
            x.argsort(),
            x.clamp_min(0),
            x.fmod(1),
            x.frac(),
            x.hypot(x),
            x.lerp(x + 1, 0.5),
            x.logit(eps=0.1),
            x.sgn(),
            x.trunc(),
            x.xlogy(x.abs()),
            x.heaviside(x),
            x.float_power(2),
            x.ldexp(torch.tensor(2)),
            x.softmax(0),
            x.unflatten(1, (1, 5)),
            x.movedim(0, 1),
            x.swapaxes(0, 1),
            x.ravel(),
            x.hsplit([2]),
            x.tensor_split(2),
            x.addcmul(x, x),
            x.addmm(x @ x.t(), x),
            x.dist(x + 1),
            x.isclose(x),
            x.allclose(x),
            x.equal(x),
            x.erfinv(),
            x.digamma(),
            torch.special.i0(x),
            x.count_nonzero(),
            x.aminmax(),
            x.logcumsumexp(0),
            x.cumprod(1),
            x.unsqueeze(0).squeeze(0),
            x.select(0, 1),
            x.diagonal_scatter(torch.ones(4)),
            x.slice_scatter(x[:1], 0, 0, 1),
            x.sum_to_size(1, 5),
            x.bernoulli(0.5).shape,
            x.pinverse().shape,
        )

    return f(rows())


@script
def functional_zoo(compile):
    @compile
    def f(x, im):
        return (
            F.unfold(im, 2),
            F.fold(F.unfold(im, 2), (6, 6), 2),
            F.pixel_shuffle(rows(1, 4, 2, 2) * 0 + 1, 2),
            F.grid_sample(im, torch.zeros(2, 3, 3, 2), align_corners=False),
            F.affine_grid(torch.eye(2, 3)[None], (1, 1, 2, 2), align_corners=True),
            F.interpolate(im, size=(3, 3), mode="bicubic"),
            F.interpolate(im, scale_factor=0.5, mode="area"),
            F.max_pool2d(im, 2, return_indices=True),
            F.lp_pool2d(im, 2, 2),
            F.local_response_norm(im, 2),
            F.pad(im, (1, 1, 1, 1), mode="reflect"),
            F.pad(im, (1, 1, 1, 1), mode="circular"),
            F.conv_transpose2d(im, torch.ones(3, 2, 2, 2)),
            F.glu(torch.cat([x, x], 1)),
            F.prelu(x, torch.tensor([0.2])),
            F.rrelu(x),
            F.gumbel_softmax(x, hard=True).sum(1),
            F.one_hot(torch.tensor([1, 0])),
            F.pairwise_distance(x, x + 1),
            F.cosine_similarity(x, x),
            F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], is_causal=True),
            F.bilinear(x, x, torch.ones(2, 5, 5)),
            F.embedding_bag(torch.tensor([[0, 1]]), x),
            F.threshold(x, 0, 1),
            F.hardtanh(x),
            F.instance_norm(im),
            F.batch_norm(x, torch.zeros(5), torch.ones(5)),
            F.alpha_dropout(x, 0.0),
            F.max_unpool2d(*F.max_pool2d(im, 2, return_indices=True), 2),
            F.adaptive_max_pool2d(im, 2),
            F.fractional_max_pool2d(im, 2, output_size=3).shape,
            F.channel_shuffle(torch.ones(1, 4, 2, 2), 2),
            F.tanhshrink(x),
            F.logsigmoid(x),
            F.normalize(x),
            F.linear(x, x),
        )

    return f(rows(), rows(2, 3, 6, 6))


@script
def tensor_args_mutated_containers(compile):
    @compile
    def f(l, d, s):
        l.append(l[0] * 2)
        l[0] = l[0] + 1
        d["y"] = d.pop("x") * 3
        s.add(4)
        l.extend([1, 2])
        d.setdefault("z", []).append(l[-1])
        l[1:2] = [7, 8]
        del l[0]
        return len(l)

    l, d, s = [rows()], {"x": rows()}, {1}
    a = f(l, d, s)
    b = f([rows()], {"x": rows()}, {2})
    return a, b, l, d, sorted(s)


@script
def param_data_and_grad_writes(compile):
    p = nn.Parameter(rows())
    q = rows()

    @compile
    def f(g):
        p.grad = g * 2
        p.data.add_(g)
        p.data = p.data * 0.5
        q.data[0] = 1
        return p.sum(), p.grad

    a = f(rows())
    b = f(rows())
    return a, b, p, p.grad, q


@script
def manual_sgd(compile):
    w = rows(5, 1).requires_grad_()

    @compile
    def step(x, y):
        l = ((x @ w - y) ** 2).mean()
        l.backward()
        with torch.no_grad():
            w.sub_(0.1 * w.grad)
            w.grad.zero_()
        return l.detach()

    r = [step(rows(), rows(4, 1)) for _ in range(4)]
    return r, w, w.grad


@script
def copy_broadcast_expand(compile):
    @compile
    def f(x):
        y = torch.zeros(3, 5)
        y.copy_(x[0])
        e = x[:1].expand(4, 5)
        z = e + 1
        e2 = e.clone()
        e2[0] = 5
        return (
            y,
            z,
            e2,
            e.stride(),
            torch.broadcast_tensors(x, x[0]),
            x.broadcast_to(2, 4, 5),
            torch.atleast_3d(x),
            e.contiguous(),
        )

    return f(rows())


@script
def non_contiguous_inputs(compile):
    f = compile(lambda x: (x * 2 + 1, x.sum(0), x.view(-1) if x.is_contiguous() else x.reshape(-1), x.softmax(-1)))
    return (
        f(rows(5, 4).t()),
        f(rows(8, 5)[::2]),
        f(rows(4, 10)[:, ::2]),
        f(rows(1, 5).expand(4, 5)),
        f(torch.empty(0, 5)),
        f(rows(4, 1, 5)[:, 0]),
    )


@script
def zero_dim_and_empty(compile):
    @compile
    def f(x):
        return (
            x.sum(),
            x.mean() if x.numel() else 0,
            x * 2,
            torch.cat([x, x]),
            x.reshape(-1),
            x.max() if x.numel() else None,
            x.t(),
            x.unsqueeze(0),
            torch.stack([x, x]),
        )

    return f(torch.empty(0, 5)), f(rows(1, 1)), compile(lambda s: (s + 1, s * s, s.item(), s[None]))(torch.tensor(3.0))


@script
def inf_nan_flow(compile):
    @compile
    def f(x):
        return (
            x / 0,
            torch.where(x > 0, x, float("nan")),
            x.clamp(-1, 1),
            (x * float("inf")).nan_to_num(0.0, 1.0, -1.0),
            x.max(),
            x.min(),
            torch.maximum(x, x.flip(0)),
            torch.fmax(x, x.flip(0)),
            x.sort().values,
            x.argmax(),
            (x == x),
            x.sign(),
            torch.isfinite(x),
            x.sum(),
            x.softmax(0),
            x.logsumexp(0),
            x.cumsum(0),
            x.round(),
            x.to(torch.int64)[1:2],
            x.pow(0.5),
            x.relu(),
            torch.sigmoid(x),
            x.median(),
            x.std(),
        )

    return (
        f(torch.tensor([1.0, -2.0, 0.0, -0.0, 3.5])),
        f(torch.tensor([float("nan"), 1.0, float("inf")])),
        f(torch.tensor([float("-inf"), -1.5, 2.5])),
    )


@script
def what_a_tensor_says_of_itself(compile):
    @compile
    def f(x):
        x.add_(1)
        x.mul_(2)
        return x.is_inference(), x._is_view(), x.is_leaf, x.requires_grad, x.grad is None

    return f(rows()), f(rows().requires_grad_().detach())


@script
def backward_twice(compile):
    f = compile(lambda x: (x * x).sum())
    x = rows().requires_grad_()
    l = f(x)
    l.backward(retain_graph=True)
    l.backward()
    try:
        l.backward()
        e = None
    except RuntimeError as err:
        e = "second time" in str(err)
    return x.grad, e


@script
def backward_with_inputs_arg(compile):
    f = compile(lambda a, b: (a * b).sum())
    a, b = rows().requires_grad_(), rows().requires_grad_()
    f(a, b).backward(inputs=[a])
    g = torch.autograd.grad(f(a, b), [a, b], allow_unused=True)
    return a.grad, b.grad, g


@script
def unused_and_none_grads(compile):
    f = compile(lambda a, b, c: (a.sum(), b.detach() * 2, c.argmax()))
    a, b, c = (rows().requires_grad_() for _ in range(3))
    o = f(a, b, c)
    o[0].backward()
    return o, a.grad, b.grad, c.grad, torch.autograd.grad(f(a, b, c)[0], [a, b], allow_unused=True)


@script
def modified_saved_raises(compile):
    f = compile(lambda x: x.exp().sin())
    x = rows().requires_grad_()
    w = rows().requires_grad_()
    g = compile(lambda x, w: x * w)
    y = g(x * 1, w)
    with torch.no_grad():
        w.add_(1)
    try:
        y.sum().backward()
        return "no error"
    except RuntimeError as e:
        return "modified by an inplace" in str(e)


@script
def numbers_alone_have_the_default_dtype(compile):
    @compile
    def f(a, x):
        return torch.add(a, 1), torch.mul(2, a), torch.sub(a, a), torch.add(x, a)

    return [f(a, torch.ones(2)) for a in (1.5, 2.0, 2.5, 3.0)]


@script
def legacy_new(compile):
    @compile
    def f(x):
        made = x.new(2, 3).fill_(1), x.new(x.shape).zero_(), x.new(torch.Size([2])).fill_(x.shape[0])
        return made, x.new([1, 2]), x.new((3, 4)), x.new().shape, x.new(x.shape[0], 2).fill_(3)

    told = []
    for pending in (torch._neg_view(torch.ones(2, 3)), torch.ones(2, 3, dtype=torch.complex64).conj()):  # which it refuses
        try:
            told.append(f(pending))
        except RuntimeError as error:
            told.append(str(error))
    return f(torch.randn(2, 3)), f(torch.randn(4, 3)), f(torch.randn(5, 3)), f(torch.ones(2, dtype=torch.int64)), told


@script
def large_numbers_become_bytes(compile):
    x = torch.tensor([2147483649.0, -2147483647.0, 4294967297.0, 300.0, -3.0], dtype=torch.float64).repeat(9)[:43]
    return compile(lambda x: x.to(torch.uint8))(x), compile(lambda x: (x + 1).to(torch.uint8))(x.view(43, 1))


@script
def old_constructors(compile):
    @compile
    def f(x, n):
        made = torch.Tensor(n, 3).fill_(n), torch.Tensor(x.size()).zero_() + x, torch.Tensor([[1, 2.5], [3, True]]), torch.Tensor((2, 3))
        return made, torch.LongTensor([3, 4]) + n, torch.ByteTensor([1, 0]), torch.DoubleTensor([0.1]), torch.Tensor(), torch.FloatTensor(2).zero_()

    @compile
    def g(x):
        return torch.LongTensor([1.5]) + x  # which they convert in a way of their own

    found = [f(torch.randn(n, 2), n) for n in (3, 4, 5)], g(torch.ones(2))
    torch.set_default_dtype(torch.float64)
    try:
        return found, f(torch.randn(3, 2), 3)
    finally:
        torch.set_default_dtype(torch.float32)


@script
def operators_without_a_shape_function(compile):
    @compile
    def f(x):
        y = x.cummax(0).values + x.logcumsumexp(1) + x.cummin(1).values
        return y, torch.histogram(x.detach(), 4), torch.histogramdd(x.detach()[:, :2], bins=[3, 2])

    found = []
    for n in (4, 6, 9):
        x = torch.randn(n, 5, requires_grad=True)
        out = f(x)
        out[0].square().sum().backward()
        found.append((out, x.grad))
    return found


@script
def classes_of_one_hot_are_checked(compile):
    f = compile(lambda c: F.one_hot(c, 4).float() @ torch.ones(4, 2))
    found = [f(torch.tensor([0, 3, 1])), f(torch.tensor([[2], [2]])), f(torch.zeros(0, dtype=torch.long))]
    for wrong in ([-1, 0], [4, 0]):
        try:
            f(torch.tensor(wrong))
        except RuntimeError as error:
            found.append(str(error))
    return found


@script
def packets_of_operators(compile):
    aten = torch.ops.aten
    f = compile(lambda a, i, b: (aten.scatter(a, 1, i, b), aten.scatter(a, 1, i, 2.0), aten.add(a, b), aten.add(a, 1), aten.sum(b), aten.sum(b, [0])))
    return f(torch.zeros(2, 3), torch.tensor([[0], [2]]), torch.randn(2, 3))


@script
def one_hot_lies_row_by_row(compile):
    f = compile(lambda c: F.one_hot(c.permute(2, 0, 1), 5))
    found = f(torch.randint(5, (2, 3, 4)))
    return found, found.stride()


@script
def sizes_that_data_decide_without_a_tag(compile):
    f = compile(lambda x: torch._unique(x)[0] * 2)
    return [f(torch.tensor(v)) for v in ([1, 1, 2], [3, 4, 5, 3], [7])]


@script
def an_expansion_to_the_same_sizes_can_be_written(compile):
    def f(x):
        y = x * 1
        y.broadcast_to(y.shape).add_(1)
        y.expand(-1, -1)[0].mul_(3)
        return y

    g = compile(f)
    return g(torch.ones(3, 2)), g(torch.randn(3, 2, requires_grad=True))


@script
def signs_that_are_pending(compile):
    """A conjugation or negation that an input, a result or a gradient has not carried out yet."""
    def complexes(*shape, grad=False):
        return torch.randn(*(shape or (3, 4)), dtype=torch.complex64).requires_grad_(grad)

    def facts(t):
        return t, t.is_conj(), t.is_neg(), t.stride(), t.storage_offset(), t._version

    def once_more(x):
        y = x * 2 + x.real.sum()
        return y, x, x.conj(), x.mT, torch.view_as_real(x.resolve_conj()), x.is_conj(), x[1:], x.imag, x.conj().imag, x @ x.mH, x.abs()

    def written(x):
        x[1].mul_(2)
        x.add_(1)
        return x, x.conj(), x[0]

    def transposed(x):
        x.t_()
        return x + 1

    def parts(z):
        a, b = z.real, z.imag
        return a * b, b.exp(), b, b.flatten(), torch.as_strided(b, (2, 2), (1, 2))

    def read(z):
        return torch.tensor([[z[0, 0], 1.0]]), z.new_full((2,), 3), torch.tensor([z.conj().imag[0, 1], 2])

    out = []
    for f in map(compile, (once_more, written, transposed, parts, read, lambda z: z)):
        for rows in (3, 5):
            z = complexes(rows, 4)
            for x in (z, z.conj(), z.t().conj(), z.conj()[1:], torch._neg_view(z)):
                out += [facts(t) if isinstance(t, torch.Tensor) else t for t in f(x)] + [facts(x), facts(z)]
    halve, double = compile(lambda x: x.div_(2)), compile(lambda x: (x * 2, x.exp().sum(), x))
    for x in (complexes().conj().imag, torch._neg_view(torch.randn(4)), torch._neg_view(torch.randn(4, 6))[:, ::2]):
        out += [facts(t) for t in (*double(x), halve(x), x)]
    learnt = compile(lambda x, w: ((x * w).abs().pow(2).sum(), x * x, x.conj()))
    for of in (lambda z: z.conj(), lambda z: z.conj().detach().requires_grad_(), lambda z: torch._neg_view(z)):
        z, w = complexes(grad=True), complexes(grad=True)
        x = of(z)
        loss, y, c = learnt(x, w)
        gz, = torch.autograd.grad(loss + y.abs().sum() + c.real.sum(), x, create_graph=True)
        gz.abs().sum().backward()
        out += [facts(gz.detach()), z.grad, x.grad if x.is_leaf else None, w.grad]
    real = torch.randn(5, requires_grad=True)
    compile(lambda x: x.exp() * 2)(real).backward(torch._neg_view(torch.arange(5.0)))
    z = complexes(grad=True)
    compile(lambda z: (z * z, z.imag))(z)[1].backward(torch._neg_view(torch.ones(3, 4)))
    return out, real.grad, z.grad

"""Calls that eager refuses, caught inside of a compiled function: the type and the text of the error are eager's, whatever function said so at capture."""

import torch
import torch.nn.functional as F

from . import edge

CALLS = """
~X | ~C | X & X | X >> 1 | torch.tensor(1) << X | -B | B - B | 1 - B | C < 1 | C // 2 | C % 2 | L ** -1 | X @ X | X @ L.t()
torch.bmm(X, X) | torch.addmm(X, X, X) | torch.baddbmm(X, X[None], X[None]) | X.dot(X) | X[0].dot(L[0]) | X.mv(X[0, :2]) | torch.outer(X, X)
torch.einsum('ij,jk->ik', X, X) | torch.tensordot(X, X, 1) | torch.cat([X, X[:, :2]]) | torch.stack([X, X[0]]) | X.view(4) | X.reshape(7) | X.expand(3, 3)
X.squeeze(4) | X.unsqueeze(5) | X.transpose(0, 3) | X.permute(0, 0) | X.permute(0) | X.roll(1, 4) | X.flip(0, 0) | X.split(-1) | X.chunk(0) | X.narrow(1, 2, 3)
X.select(1, 5) | X.unfold(1, 5, 1) | X[:, :3].view(torch.float64) | torch.view_as_complex(X) | torch.view_as_real(X) | torch.randn(2, 2, 2).diag() | X[0].trace()
X[0].tril() | X.sum(3) | L.mean() | B.mean() | L.std() | L.var() | X[:0].amax(0) | X[:0].max() | torch.empty(0).argmax() | X[:0].aminmax() | C.max()
C.median() | torch.quantile(L, 0.5) | torch.quantile(X, 1.5) | torch.cov(torch.randn(2, 2, 2)) | L.norm() | torch.linalg.vector_norm(L) | X.cumsum(4)
C.cummax(0) | C.logsumexp(3) | C.sort() | X.topk(5) | X.kthvalue(9) | C.unique() | torch.histc(L) | torch.bincount(X) | torch.bucketize(X, X)
X.gather(1, X) | X.gather(3, L) | X.scatter(0, L, X.half()) | X.index_select(0, X[0]) | X[X] | X[:, torch.tensor([1.0])] | X.masked_select(L)
X.masked_fill(L, 1) | torch.where(X, X, X) | torch.where(X > 0, X, torch.ones(2)) | torch.isin(C, C) | F.one_hot(X) | F.one_hot(L, 2)
F.conv2d(torch.randn(1, 3, 5, 5), torch.randn(2, 4, 3, 3)) | F.conv1d(X, X) | F.conv2d(torch.randn(1, 3, 2, 2), torch.randn(2, 3, 3, 3))
F.linear(X, X[:, :2]) | F.embedding(X, X) | F.layer_norm(X, (4,)) | F.batch_norm(X, torch.zeros(2), torch.ones(2)) | F.batch_norm(X[:1], None, None, training=True)
F.group_norm(torch.randn(2, 5, 2), 2) | F.instance_norm(torch.randn(2, 3, 1)) | F.prelu(X, torch.ones(2)) | F.dropout(X, 1.5) | F.dropout(L, 0.5)
F.cross_entropy(X, L) | F.nll_loss(X, X[:, 0]) | F.binary_cross_entropy(X.sigmoid(), X[0]) | F.mse_loss(L, L) | F.smooth_l1_loss(X, X, beta=-1.0)
F.huber_loss(X, X, delta=-1.0) | F.ctc_loss(X, L, L, L) | L.softmax(0) | X.softmax(3) | C.log_softmax(0) | F.gelu(L) | F.relu6(B) | F.relu(C) | F.relu(B) | F.elu(L)
F.silu(L) | F.glu(X) | F.max_pool2d(X, 3) | F.max_pool2d(torch.randn(1, 2, 2, 2), 3) | F.max_pool1d(X, 2, padding=2)
F.adaptive_avg_pool2d(X, 2) | F.pad(X, (1, 1, 1)) | F.pad(X, (4, 4), mode='reflect') | F.interpolate(X, 2) | F.pixel_shuffle(torch.randn(1, 3, 2, 2), 2)
F.grid_sample(X[None, None], X[None, None]) | F.scaled_dot_product_attention(X[None], X[None, :, :2], X[None]) | torch.fft.rfft(C) | torch.stft(X, 8)
C.floor() | C.fmod(2) | C.clamp(0, 1) | torch.atan2(C, C) | torch.copysign(C, 1.0) | torch.maximum(C, C) | torch.lerp(L, L, 0.5)
torch.lerp(X, X.double(), 0.5) | torch.div(X, 2, rounding_mode='x') | torch.polar(L, L) | torch.complex(X, X.double()) | C.erf() | C.lgamma() | L.frexp()
L.sigmoid_() | L.exp_() | L.logit_() | B.logit_(0.5) | L.ldexp_(L) | B.ldexp_(X[0]) | X.ldexp_(C) | L.floor_divide_(X) | L.xlogy_(X) | L.polygamma_(1) | X.polygamma_(1) | L.add_(0.5) | L.mul_(X) | L.div_(2) | X.add_(torch.ones(4, 2, 3)) | L.renorm(1, 0, 1.0) | torch.cdist(X, X[:, :2])
torch.cdist(L, L) | torch.cross(X[:, :2], X[:, :2], dim=1) | torch.trapezoid(X, X[0, :2]) | X.det() | X.inverse() | torch.linalg.cholesky(X)
torch.linalg.solve(X, X) | torch.linalg.qr(L) | torch.bernoulli(L) | torch.multinomial(X.abs(), 9) | torch.kron(X, 'a')
"""


def refused(compile, **how):
    names = {"torch": torch, "F": F}
    said = []
    for call in (c.strip() for c in CALLS.replace("\n", "|").split("|")):
        if not call:
            continue
        exec(f"def f(X, L, B, C):\n    try:\n        {call}\n    except Exception as e:\n        return type(e).__name__, str(e)\n    return 'accepted'\n", names)
        torch.manual_seed(0)
        x = torch.randn(2, 3)
        said.append((call, compile(names["f"], **how)(x, torch.arange(6).view(2, 3), torch.tensor([True, False, True]), x.to(torch.complex64))))
    return said


@edge
def errors_that_a_program_catches_are_eagers(compile, engine):
    return refused(compile)


@edge
def errors_that_a_program_catches_are_eagers_with_symbolic_sizes(compile, engine):
    return refused(compile, dynamic=True) if engine else refused(compile)


@edge
def errors_name_the_sizes_of_their_call(compile, engine):
    def f(x, w):
        try:
            F.conv2d(x, w)
        except RuntimeError as error:
            return str(error)

    c = compile(f, dynamic=True) if engine else f
    return [c(torch.ones(n, 3), torch.ones(2, 2, 1, 1)) for n in (5, 6, 7)]


@edge
def a_scatter_into_what_is_expanded_is_no_error(compile, engine):
    return compile(lambda x, s: torch.as_strided_scatter(x.expand(4), s, (4,), (1,)))(torch.ones(1), torch.arange(4.0))

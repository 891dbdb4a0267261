"""Matrix products, convolutions, pooling, normalisation, losses, attention."""

from .table import operator

MATRIX = ["{a} @ {a}.mT", "torch.matmul({a}.mT, {a})",
          "F.linear({a}, {a}[..., :1, :].flatten(0, -2) if {a}.dim() > 1 else {a})", "torch.mm({a}, {a}.t())",
          "torch.einsum('...ij,...kj->...ik', {a}, {a})", "torch.addmm({a}[:, :1], {a}, {a}.t())",
          "({a} @ {a}.mT).softmax(-1) @ {a}", "F.gelu({a} @ {a}.mT)", "torch.mv({a}, {a}[0])",
          "torch.outer({a}.flatten()[:5], {a}.flatten()[:7])", "torch.addmm({a}[0, 0], {a}, {a}.t(), alpha=0.5)",
          "torch.einsum('ij->ji', {a})", "torch.bmm({a}[None], {a}.t()[None])",
          "torch.baddbmm({a}[:1, :1, :1], {a}, {a}.mT)", "{a}.flatten() @ {a}.flatten()",
          "torch.tensordot({a}, {a}, dims=([0], [0]))", "F.relu({a} @ {a}.mT + 1)", "torch.kron({a}[:2], {a}[:2])",
          "torch.cdist({a}, {a} * 2)", "torch.chain_matmul({a}, {a}.t()) if False else {a} @ {a}.t() @ {a}",
          "torch.linalg.multi_dot([{a}, {a}.t(), {a}])"]
IMAGE = ["F.max_pool2d({a}, 2)", "F.avg_pool2d({a}, 2)", "F.avg_pool2d({a}, 3, 1, 1)", "F.max_pool2d({a}, 3, 2, 1)",
         "F.adaptive_avg_pool2d({a}, 1)", "F.adaptive_avg_pool2d({a}, (2, 3))", "F.adaptive_max_pool2d({a}, 2)",
         "F.interpolate({a}, scale_factor=2)", "F.interpolate({a}, size=(5, 4), mode='bilinear')",
         "F.interpolate({a}, scale_factor=2, mode='bicubic', align_corners=True)",
         "F.conv2d({a}, torch.ones(2, {a}.shape[1], 3, 3, dtype={a}.dtype, device={a}.device) * 0.1, padding=1)",
         "F.conv2d({a}, {a}[:1, :, :1, :1])", "F.conv2d({a}, {a}[:, :, :2, :2], stride=2)",
         "F.conv2d({a}, torch.full(({a}.shape[1], 1, 3, 3), 0.2, dtype={a}.dtype, device={a}.device), padding=1, groups={a}.shape[1])",
         "F.conv_transpose2d({a}, torch.ones({a}.shape[1], 2, 2, 2, dtype={a}.dtype, device={a}.device), stride=2)",
         "F.pixel_unshuffle({a}, 1)", "F.unfold({a}, 2)", "F.batch_norm({a}, None, None, training=True)",
         "F.instance_norm({a})", "F.pad({a}, (1, 1, 1, 1), mode='reflect')", "F.lp_pool2d({a}, 2, 2)",
         "F.local_response_norm({a}, 2)",
         "F.conv2d(F.relu({a}), torch.ones(1, {a}.shape[1], 2, 2, dtype={a}.dtype, device={a}.device), torch.ones(1, dtype={a}.dtype, device={a}.device), dilation=2)",
         "F.channel_shuffle({a}, 1)",
         "F.grid_sample({a}, torch.linspace(-1, 1, {a}.shape[0] * 8, dtype={a}.dtype, device={a}.device).reshape({a}.shape[0], 2, 2, 2))",
         "F.group_norm({a}, 1)", "F.scaled_dot_product_attention({a}, {a}, {a})",
         "F.scaled_dot_product_attention({a}, {a}, {a}, is_causal=True)"]
ROWS = ["F.layer_norm({a}, {a}.shape[-1:])", "F.rms_norm({a}, {a}.shape[-1:])", "F.group_norm({a}, 1)",
        "F.batch_norm({a}, None, None, training=True)", "F.normalize({a})", "F.layer_norm({a}, {a}.shape)",
        "F.cross_entropy({a}, torch.zeros({a}.shape[0], dtype=torch.int64, device={a}.device))",
        "F.nll_loss(F.log_softmax({a}, 1), torch.zeros({a}.shape[0], dtype=torch.int64, device={a}.device))",
        "F.cross_entropy({a}, {a}.softmax(1), label_smoothing=0.1)",
        "F.conv1d({a}[None], torch.ones(1, {a}.shape[0], 1, dtype={a}.dtype, device={a}.device))",
        "F.max_pool1d({a}, 2)", "F.avg_pool1d({a}, 2)", "F.pairwise_distance({a}, {a} * 2)",
        "F.cosine_similarity({a}, {a} + 1)", "F.layer_norm({a}, {a}.shape[-1:], {a}[0] if {a}.dim() == 2 else None)",
        "F.adaptive_avg_pool1d({a}, 2)", "F.adaptive_max_pool1d({a}, 1)",
        "F.cross_entropy({a}, torch.zeros({a}.shape[0], dtype=torch.int64, device={a}.device), ignore_index=0)",
        "F.interpolate({a}[None], scale_factor=2, mode='linear')", "F.local_response_norm({a}, 2)",
        "F.multi_margin_loss({a}, torch.zeros({a}.shape[0], dtype=torch.int64, device={a}.device))",
        "F.embedding(torch.zeros(3, dtype=torch.int64, device={a}.device), {a})"]
LOSSES = ["F.mse_loss({a}, {b})", "F.l1_loss({a}, {b}, reduction='sum')", "F.smooth_l1_loss({a}, {b})",
          "F.huber_loss({a}, {b}, delta=0.5)", "F.binary_cross_entropy_with_logits({a}, {b}.sigmoid())",
          "F.kl_div({a}, {b}.softmax(-1), reduction='batchmean')",
          "F.binary_cross_entropy({a}.sigmoid(), {b}.sigmoid())", "F.soft_margin_loss({a}, {b}.sign())",
          "F.poisson_nll_loss({a}, {b}.abs())", "F.gaussian_nll_loss({a}, {b}, {a}.abs() + 1)",
          "F.hinge_embedding_loss({a}, {b}.sign())",
          "F.cosine_embedding_loss({a}, {b}, torch.ones({a}.shape[0], device={a}.device))",
          "F.margin_ranking_loss({a}, {b}, {a}.sign())", "F.triplet_margin_loss({a}, {b}, {a} * 2)"]


@operator(1.5)
def matrix(g):
    a = g.floating(1, 3)
    return a and (g.pick(MATRIX).format(a=a.name), False)


@operator(2)
def image(g):
    a = g.floating(4, 4)
    return a and (g.pick(IMAGE).format(a=a.name), False)


@operator(1.5)
def rows(g):
    a = g.floating(2, 4)
    return a and (g.pick(ROWS).format(a=a.name), False)


@operator(0.7)
def losses(g):
    a = g.floating()
    if a is None:
        return None
    b = g.any(lambda t: t.shape == a.value.shape and t.dtype == a.value.dtype)
    return g.pick(LOSSES).format(a=a.name, b=b.name if b else a.name), False

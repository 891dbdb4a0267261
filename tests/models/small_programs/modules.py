"""nn.Module: containers, buffers, caches, hooks, parametrizations, functional calls."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from . import script


def rows(*shape):
    return torch.randn(*(shape or (4, 5)))


@script
def module_containers(compile):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(5, 5) for _ in range(3))
            self.heads = nn.ModuleDict({"a": nn.Linear(5, 2), "b": nn.Sequential(nn.Linear(5, 3), nn.GELU())})
            self.scales = nn.ParameterList([nn.Parameter(torch.ones(5) * i) for i in range(3)])
            self.table = nn.ParameterDict({"w": nn.Parameter(torch.ones(5))})

        def forward(self, x, head):
            for i, (layer, scale) in enumerate(zip(self.layers, self.scales)):
                x = layer(x) * scale + i
            x = self.layers[-1](x) + self.table["w"]
            x = x + len(self.layers[:2]) + sum(p.sum() for p in self.scales)
            return {name: self.heads[name](x) for name in self.heads if name == head}, [n for n, _ in self.heads.items()], head in self.heads

    net = Net()
    f = compile(net)
    x = rows()
    return f(x, "a"), f(x, "b"), f(x, "a")


@script
def hooks_of_a_result_and_of_the_module_that_gives_it(compile):
    layer, heard = nn.Linear(5, 3), []
    layer.register_full_backward_pre_hook(lambda m, given: (heard.append(("module", given[0].clone())), (given[0] + 1,))[1])
    layer.register_full_backward_hook(lambda m, made, given: heard.append(("layer", made[0].clone(), given[0].clone())))

    def f(x):
        y = layer(x)
        y.register_hook(lambda g: (heard.append(("result", g.clone())), g * 2)[1])
        return y.sum()

    x = rows().requires_grad_()
    x.register_hook(lambda g: heard.append(("input", g.clone())))
    compile(f)(x).backward()
    return heard, x.grad, layer.weight.grad


@script
def state_on_modules(compile):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("running", torch.zeros(5))
            self.register_buffer("none", None)
            self.register_buffer("volatile", torch.zeros(()), persistent=False)
            self.calls, self.history, self.cache = 0, [], {}

        def forward(self, x):
            self.calls += 1
            self.running = self.running * 0.9 + x.mean(0) * 0.1
            self.volatile += 1
            self.history.append(tuple(x.shape))
            key = x.shape[0]
            if key not in self.cache:
                self.cache[key] = torch.arange(key).float()[:, None]
            self.last = x
            if self.none is None:
                self.none = torch.ones(5)
            return x + self.running + self.cache[key] + self.none

    net = Net()
    f = compile(net)
    out = [f(rows(n, 5)) for n in (4, 4, 3, 4)]
    return out, dict(net.named_buffers()), net.calls, net.history, net.cache, net.last


@script
def call_counter_forever(compile):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = 0

        def forward(self, x):
            self.step += 1
            return x * 2 if self.step % 2 else x

    net = Net()
    f = compile(net)
    x = rows()
    return [f(x) for _ in range(12)], net.step


@script
def hooks_on_modules(compile):
    net = nn.Sequential(nn.Linear(5, 5), nn.ReLU())
    seen = []
    net[0].register_forward_hook(lambda m, args, out: seen.append(tuple(out.shape)))
    net[0].register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    net[1].register_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True)
    f = compile(net)
    x = rows()
    out = [f(x), f(x)]
    handle = net.register_forward_hook(lambda m, a, o: o * 10)
    out.append(f(x))
    handle.remove()
    out.append(f(x))
    return out, seen


@script
def activations_kept_by_a_hook(compile):
    net = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 1))
    kept = {}
    for name, m in net.named_modules():
        if isinstance(m, nn.Linear):
            m.register_forward_hook(lambda m, a, o, name=name: kept.__setitem__(name, o.detach()))
    f = compile(net)
    return f(rows()), dict(kept), f(rows(2, 5)), dict(kept)


@script
def backward_hooks(compile):
    net = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 1))
    grads = []
    net[0].register_full_backward_hook(lambda m, gi, go: grads.append(go[0].clone()))
    f = compile(net)
    f(rows()).sum().backward()
    return grads, [p.grad for p in net.parameters()]


@script
def tensor_hooks(compile):
    w = rows(5, 5).requires_grad_()
    log = []

    @compile
    def f(x):
        y = x @ w
        y.register_hook(lambda g: g * 2)
        return y.sum()

    w.register_hook(lambda g: log.append(g.sum()))
    f(rows()).backward()
    return w.grad, len(log)


@script
def parametrized_modules(compile):
    from torch.nn.utils import parametrizations, parametrize

    class Symmetric(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).T

    a = nn.Linear(5, 5)
    parametrize.register_parametrization(a, "weight", Symmetric())
    b = parametrizations.weight_norm(nn.Linear(5, 3))
    c = parametrizations.orthogonal(nn.Linear(5, 5))
    x = rows()
    out = [compile(m)(x) for m in (a, b, c)]
    fb = compile(b)
    fb(x).sum().backward()
    return out, [p.grad for p in b.parameters()]


@script
def old_weight_norm_and_spectral_norm(compile):
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a = nn.utils.weight_norm(nn.Linear(5, 3))
        b = nn.utils.spectral_norm(nn.Linear(5, 3))
    x = rows()
    fa, fb = compile(a), compile(b)
    return fa(x), fa(x), fb(x), fb(x), b.weight_u


@script
def functional_calls(compile):
    net = nn.Sequential(nn.Linear(5, 5), nn.ReLU())
    params = {k: v.detach() * 2 for k, v in net.named_parameters()}

    @compile
    def f(params, x):
        return torch.func.functional_call(net, params, (x,)) + 1

    x = rows()
    return f(params, x), f({k: v * 2 for k, v in params.items()}, x), net[0].weight


@script
def func_transforms(compile):
    w = rows(5)

    @compile
    def batched(x):
        return torch.func.vmap(lambda r: (r * w).sum())(x)

    @compile
    def gradient(x):
        return torch.func.grad(lambda t: (t ** 3).sum())(x)

    @compile
    def both(x):
        return torch.func.vmap(torch.func.grad(lambda r: (r * r * w).sum()))(x), torch.func.jacrev(torch.sin)(x[0])

    x = rows()
    return batched(x), gradient(x), both(x)


@script
def tied_weights(compile):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(7, 5)
            self.out = nn.Linear(5, 7, bias=False)
            self.out.weight = self.embed.weight

        def forward(self, i):
            return self.out(self.embed(i))

    net = Tied()
    f = compile(net)
    i = torch.tensor([[1, 2, 6], [0, 0, 3]])
    F.cross_entropy(f(i).flatten(0, 1), i.flatten()).backward()
    return f(i), net.embed.weight.grad


@script
def frozen_and_partly_frozen(compile):
    net = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 2))
    net[0].requires_grad_(False)
    f = compile(net)
    f(rows()).sum().backward()
    first = [p.grad for p in net.parameters()]
    net[0].requires_grad_(True)
    f(rows()).sum().backward()
    return first, [p.grad for p in net.parameters()]


@script
def training_loop(compile):
    net = nn.Sequential(nn.Linear(5, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    f = compile(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    x, y = rows(8, 5), rows(8, 1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.mse_loss(f(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())
    return losses, dict(net.named_buffers())


@script
def whole_step_compiled(compile):
    net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    @compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    x, y = rows(8, 5), rows(8, 1)
    return [step(x, y) for _ in range(4)], [p.detach() for p in net.parameters()]


@script
def recurrent_layers(compile):
    lstm, gru = nn.LSTM(5, 6, num_layers=2, batch_first=True, bidirectional=True), nn.GRU(5, 6)
    cell = nn.LSTMCell(5, 6)

    @compile
    def unrolled(x):
        h = c = torch.zeros(x.shape[1], 6)
        outs = []
        for t in range(x.shape[0]):
            h, c = cell(x[t], (h, c))
            outs.append(h)
        return torch.stack(outs)

    x = rows(3, 4, 5)
    return compile(lstm)(x), compile(gru)(x), unrolled(x), compile(gru)(x, torch.zeros(1, 4, 6))


@script
def attention_layers(compile):
    mha = nn.MultiheadAttention(8, 2, batch_first=True)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2)
    x = rows(2, 6, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(6)
    pad = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    out = [compile(mha)(x, x, x), compile(mha)(x, x, x, attn_mask=mask, need_weights=False), compile(encoder)(x, mask=mask, is_causal=True)]
    out.append(compile(encoder)(x, src_key_padding_mask=pad)[:, :4])
    encoder.eval()
    with torch.no_grad():
        out.append(compile(encoder)(x))
    return out


@script
def module_method_other_than_forward(compile):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(5, 5)

        def forward(self, x):
            return self.encode(x) * 2

        @torch.no_grad()
        def encode(self, x):
            return self.l(x)

        @property
        def device(self):
            return next(self.parameters()).device

        def generate(self, x, n):
            for _ in range(n):
                x = self(x.to(self.device))
            return x

    net = Net()
    f = compile(net.generate)
    return f(rows(), 3), net(rows()), compile(net)(rows()).requires_grad


@script
def compiled_submodule_and_attributes(compile):
    net = nn.Sequential(nn.Linear(5, 5), nn.ReLU())
    net[0] = compile(net[0])
    f = compile(net)
    x = rows()
    out = f(x), net(x)
    wrapped = compile(nn.Linear(5, 2))
    return out, wrapped.in_features, wrapped.weight.shape, len(list(wrapped.parameters())), wrapped(x), [tuple(v.shape) for v in wrapped.state_dict().values()]


@script
def copied_and_moved(compile):
    net = nn.Sequential(nn.Linear(5, 5), nn.ReLU())
    f = compile(net)
    x = rows()
    out = [f(x)]
    other = copy.deepcopy(net)
    net.double()
    out.append(f(x.double()))
    net.float()
    out.append(f(x))
    return out, compile(other)(x)


@script
def weight_initialised_inside(compile):
    @compile
    def f(x):
        w = torch.empty(5, 3)
        nn.init.ones_(w)
        nn.init.constant_(w[0], 2.0)
        return F.linear(x, w.t()), nn.functional.one_hot(torch.tensor([0, 2]), 3)

    return f(rows())


@script
def embedding_bags_and_losses(compile):
    table = nn.EmbeddingBag(10, 4, mode="mean")
    losses = [nn.CrossEntropyLoss(label_smoothing=0.1), nn.NLLLoss(), nn.BCEWithLogitsLoss(), nn.SmoothL1Loss(), nn.KLDivLoss(reduction="batchmean")]

    @compile
    def f(i, x, y):
        return table(i), losses[0](x, y.argmax(1)), losses[1](x, y.argmax(1)), losses[2](x, (y > 0).float()), losses[3](x, y), losses[4](x.log_softmax(1), y.softmax(1))

    return f(torch.tensor([[1, 2], [3, 9]]), rows(), rows())


@script
def vision_block(compile):
    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU(inplace=True), nn.Conv2d(c, c, 1), nn.GroupNorm(2, c))
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.up = nn.Upsample(scale_factor=2, mode="bilinear")

        def forward(self, x):
            gate = torch.sigmoid(self.pool(x))
            return self.up(F.relu(self.body(x) + x, inplace=True) * gate)

    net = Block(4).double()  # gradients of what is normalised cancel
    f = compile(net)
    x = rows(2, 4, 8, 8).double()
    f(x).sum().backward()
    return f(x), [p.grad for p in net.parameters()], dict(net.named_buffers())


@script
def gradient_hooks_of_a_compiled_module(compile):
    """Of what torch.compile gives for a module."""
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    compiled = compile(module)
    log = []
    compiled.register_full_backward_hook(lambda m, given, made: log.append(([tuple(g.shape) for g in given], [tuple(g.shape) for g in made])))
    for _ in range(2):
        compiled(torch.randn(3, 4, requires_grad=True)).sum().backward()
    return log, compiled(torch.ones(3, 4)), module._is_full_backward_hook is None or compiled is module

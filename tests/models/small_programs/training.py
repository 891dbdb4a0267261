"""Training: optimizers, schedulers, scalers, recurrent networks, parametrizations, distributions, saving and copying."""

import copy, io, pickle, collections
import torch
from torch import nn
import torch.nn.functional as F
from . import script


def rows(*s):
    return torch.randn(*(s or (4, 5)))


OPTS = [
    "SGD",
    "Adam",
    "AdamW",
    "Adagrad",
    "Adadelta",
    "Adamax",
    "ASGD",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "LBFGS",
    "SparseAdam",
    "Adafactor",
]


def make_opt(name):
    @script
    def run(compile):
        if not hasattr(torch.optim, name):
            return None
        net = nn.Linear(5, 3)
        if name == "LBFGS":
            opt = torch.optim.LBFGS(net.parameters(), max_iter=3)
            x, y = rows(), rows(4, 3)

            def closure():
                opt.zero_grad()
                l = F.mse_loss(net(x), y)
                l.backward()
                return l

            step = compile(lambda: opt.step(closure))
            return [step() for _ in range(2)], list(net.parameters())
        if name == "SparseAdam":
            net = nn.Embedding(6, 3, sparse=True)
            opt = torch.optim.SparseAdam(net.parameters())
            step = compile(opt.step)
            for _ in range(3):
                net(torch.tensor([1, 2, 1])).pow(2).sum().backward()
                step()
                opt.zero_grad()
            return list(net.parameters())
        kw = dict(momentum=0.9, weight_decay=0.01) if name == "SGD" else {}
        opt = getattr(torch.optim, name)(net.parameters(), lr=0.05, **kw)
        step = compile(opt.step)
        losses = []
        for i in range(5):
            l = F.mse_loss(net(rows()), rows(4, 3))
            l.backward()
            step()
            opt.zero_grad(set_to_none=i % 2 == 0)
            losses.append(l.detach())
        return losses, list(net.parameters()), [dict(s) for s in opt.state.values()], opt.state_dict()["param_groups"]

    run.__name__ = "opt_" + name


for n in OPTS:
    make_opt(n)


@script
def opt_foreach_variants(compile):
    out = []
    for kw in (
        dict(foreach=True),
        dict(foreach=False),
        dict(fused=True),
        dict(amsgrad=True),
        dict(maximize=True),
    ):
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(5, 3), nn.Linear(3, 1))
        opt = torch.optim.Adam(net.parameters(), lr=0.01, **kw)
        step = compile(opt.step)
        for _ in range(3):
            opt.zero_grad()
            net(rows()).sum().backward()
            step()
        out.append(list(net.parameters()))
    return out


opt_foreach_variants.asks_is_compiling = True


@script
def lr_schedulers(compile):
    out = []
    for make in (
        lambda o: torch.optim.lr_scheduler.StepLR(o, 2),
        lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 5),
        lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=12),
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda e: 0.9**e),
        lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0),
    ):
        torch.manual_seed(2)
        net = nn.Linear(5, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        sch = make(opt)

        @compile
        def step(x):
            opt.zero_grad()
            l = net(x).pow(2).mean()
            l.backward()
            opt.step()
            return l.detach()

        for _ in range(10):
            l = step(rows())
            sch.step(l) if isinstance(sch, torch.optim.lr_scheduler.ReduceLROnPlateau) else sch.step()
        out.append((list(net.parameters()), [g["lr"] for g in opt.param_groups]))
    return out


@script
def scheduler_compiled(compile):
    net = nn.Linear(5, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    sch = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 5)
    st = compile(sch.step)
    lrs = []
    for _ in range(6):
        opt.step()
        st()
        lrs.append(opt.param_groups[0]["lr"])
    return lrs


@script
def grad_scaler(compile):
    net = nn.Linear(5, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    sc = torch.amp.GradScaler("cpu", init_scale=8.0)

    @compile
    def fwd(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return net(x).float().mean()

    for _ in range(3):
        opt.zero_grad()
        l = fwd(rows())
        sc.scale(l).backward()
        sc.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        sc.step(opt)
        sc.update()
    return l, list(net.parameters()), sc.get_scale()


@script
def ema_and_swa(compile):
    net = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    ema = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    c = compile(net)
    e = compile(ema)
    target = copy.deepcopy(net)

    @compile
    def update(src, dst):
        with torch.no_grad():
            for p, q in zip(src.parameters(), dst.parameters()):
                q.lerp_(p, 0.1)
            for (n, b), d in zip(src.named_buffers(), dst.buffers()):
                d.copy_(b)

    for _ in range(3):
        c(rows()).pow(2).sum().backward()
        opt.step()
        opt.zero_grad()
        ema.update_parameters(net)
        update(net, target)
    return e(rows()), list(target.parameters()), list(target.buffers()), list(ema.parameters())


@script
def whole_train_step(compile):
    net = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.0), nn.ReLU(), nn.Linear(8, 3))
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    crit = nn.CrossEntropyLoss()

    @compile
    def train_step(x, y):
        net.train()
        opt.zero_grad()
        out = net(x)
        loss = crit(out, y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        nn.utils.clip_grad_value_(net.parameters(), 0.1)
        opt.step()
        return loss.item(), (out.argmax(1) == y).float().mean().item(), norm

    return [train_step(rows(), torch.randint(0, 3, (4,))) for _ in range(4)], list(net.parameters())


@script
def grad_accumulation(compile):
    net = nn.Linear(5, 1)
    c = compile(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for i in range(6):
        (c(rows()).mean() / 2).backward()
        if i % 2:
            opt.step()
            opt.zero_grad()
    return list(net.parameters())


@script
def rnn_modules(compile):
    out = []
    for cls in (nn.RNN, nn.LSTM, nn.GRU):
        m = cls(5, 6, num_layers=2, bidirectional=True, batch_first=True)
        f = compile(m)
        x = rows(3, 7, 5).requires_grad_()
        y, h = f(x)
        y.sum().backward()
        out += [y, h, x.grad, [p.grad for p in m.parameters()]]
        m.eval()
        with torch.no_grad():
            out.append(f(rows(2, 4, 5)))
    for cls in (nn.RNNCell, nn.LSTMCell, nn.GRUCell):
        m = cls(5, 6)

        @compile
        def roll(xs):
            h = None
            for x in xs:
                h = m(x, h) if h is not None else m(x)
            return h

        out.append(roll(rows(4, 2, 5)))
    m = nn.LSTM(5, 6, proj_size=3, dropout=0.0)
    out.append(compile(m)(rows(4, 2, 5), (torch.zeros(1, 2, 3), torch.zeros(1, 2, 6))))
    return out


@script
def lstm_in_bfloat16(compile):
    out = []
    for bias in (True, False):
        m = nn.LSTM(5, 6, bias=bias)
        f = compile(m)
        x = rows(4, 3, 5).requires_grad_()
        try:
            with torch.autocast("cpu", torch.bfloat16):
                y, (h, _) = f(x)
        except RuntimeError as error:  # PyTorch's library has no such kernel for every CPU
            out.append(str(error))
            continue
        (y.float().sum() + h.float().square().sum()).backward()
        out += [y, h, x.grad, [p.grad for p in m.parameters()]]
    return out


@script
def packed_sequences(compile):
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

    m = nn.GRU(5, 4, batch_first=True)

    @compile
    def f(x, lens):
        p = pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False)
        o, h = m(p)
        y, l = pad_packed_sequence(o, batch_first=True)
        return y, l, h

    return f(rows(3, 6, 5), torch.tensor([6, 2, 4])), pad_sequence([rows(2), rows(3)])


@script
def truncated_bptt(compile):
    m = nn.LSTM(5, 4)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    step = compile(m)
    h = None
    ls = []
    for _ in range(3):
        y, h = step(rows(3, 2, 5), h) if h is not None else step(rows(3, 2, 5))
        l = y.pow(2).mean()
        l.backward()
        opt.step()
        opt.zero_grad()
        h = tuple(t.detach() for t in h)
        ls.append(l.detach())
    return ls, list(m.parameters())


@script
def detach_in_place(compile):
    @compile
    def f(h, w):
        h = torch.tanh(h @ w)
        h.detach_()
        return (h @ w).sum()

    w = rows(5, 5).requires_grad_()
    l = f(rows(), w)
    l.backward()
    return l, w.grad


@script
def embedding_kinds(compile):
    bag = nn.EmbeddingBag(10, 3, mode="sum", include_last_offset=False)
    e = nn.Embedding(10, 3, padding_idx=0, max_norm=1.0)
    s = nn.Embedding(10, 3, sparse=True)

    @compile
    def f(i, off, w):
        return bag(i, off, w), e(i), s(i), F.embedding(i, e.weight.detach(), scale_grad_by_freq=True)

    i = torch.tensor([1, 2, 0, 2, 9])
    a, b, c, d = f(i, torch.tensor([0, 2]), torch.rand(5))
    (a.sum() + b.sum() + c.sum()).backward()
    return a, b, c, d, bag.weight.grad, e.weight.grad, s.weight.grad.to_dense(), s.weight.grad.is_sparse, e.weight


@script
def parametrizations(compile):
    from torch.nn.utils import parametrize, parametrizations as P

    class Sym(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).t()

        def right_inverse(self, w):
            return w.triu()

    a = nn.Linear(5, 5)
    parametrize.register_parametrization(a, "weight", Sym())
    b = P.weight_norm(nn.Linear(5, 5))
    c = P.spectral_norm(nn.Linear(5, 5))
    d = P.orthogonal(nn.Linear(5, 5))
    net = nn.Sequential(a, b, c, d)
    f = compile(net)
    y = f(rows())
    y.sum().backward()
    g = [p.grad for p in net.parameters()]
    with parametrize.cached():
        z = f(rows())
    net.eval()
    w = f(rows())
    from torch.nn.utils import weight_norm, spectral_norm, remove_weight_norm
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        o = nn.Sequential(weight_norm(nn.Linear(5, 5)), spectral_norm(nn.Conv1d(4, 4, 1)))
    p = compile(o)
    q = p(rows(2, 4, 5))
    q.sum().backward()
    return y, g, z, w, q, [p.grad for p in o.parameters()], c.parametrizations.weight[0]._u


@script
def pruning(compile):
    from torch.nn.utils import prune

    m = nn.Linear(5, 4)
    prune.l1_unstructured(m, "weight", 0.5)
    f = compile(m)
    y = f(rows())
    y.sum().backward()
    prune.remove(m, "weight")
    return y, f(rows()), m.weight


@script
def lazy_modules(compile):
    net = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyBatchNorm1d(), nn.LazyLinear(2))
    f = compile(net)
    torch.manual_seed(5)
    y = f(rows())
    torch.manual_seed(6)
    return y.shape, f(rows()), [tuple(p.shape) for p in net.parameters()]


@script
def containers_of_parameters(compile):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.ps = nn.ParameterList([nn.Parameter(rows(5, 5)) for _ in range(3)])
            self.pd = nn.ParameterDict({"a": nn.Parameter(rows(5)), "b": nn.Parameter(rows(5))})
            self.md = nn.ModuleDict({"x": nn.Linear(5, 5), "y": nn.Tanh()})
            self.ml = nn.ModuleList([nn.Linear(5, 5)])
            self.ml.append(nn.ReLU())
            self.register_parameter("none", None)
            self.register_buffer("buf", torch.ones(5), persistent=False)

        def forward(self, x, which="x"):
            for i, p in enumerate(self.ps):
                x = x @ p + i
            for k, p in self.pd.items():
                x = x * p if k in ("a",) else x + p
            x = self.md[which](x)
            for m in self.ml[::-1]:
                x = m(x)
            return (
                x + len(self.ps) + len(self.md) + (0 if self.none is None else 1) + self.buf,
                [n for n, _ in self.named_parameters()],
                "a" in self.pd,
                list(self.md.keys()),
                self.get_submodule("ml.0").in_features,
            )

    m = M()
    f = compile(m)
    y = f(rows())
    z = f(rows(), which="y")
    y[0].sum().backward()
    return y, z, [p.grad for p in m.parameters()]


@script
def state_dict_roundtrip(compile):
    net = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3))
    f = compile(net)
    f(rows())
    b = io.BytesIO()
    torch.save(f.state_dict(), b)
    b.seek(0)
    sd = torch.load(b)
    other = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3))
    g = compile(other)
    keys = [k.replace("_orig_mod.", "") for k in sd]
    g(rows())
    other.load_state_dict({k.replace("_orig_mod.", ""): v for k, v in sd.items()})
    net.eval()
    other.eval()
    x = rows()
    return keys, f(x), g(x), torch.equal(f(x), g(x))


@script
def pickle_and_copy_compiled(compile):
    net = nn.Sequential(nn.Linear(5, 3), nn.ReLU())
    f = compile(net)
    x = rows()
    a = f(x)
    c = copy.deepcopy(f)
    s = copy.copy(f)
    with torch.no_grad():
        net[0].weight.zero_()
    return a, c(x), s(x), f(x), c.state_dict().keys() == f.state_dict().keys()


@script
def pickle_module_compiled(compile):
    net = nn.Linear(5, 3)
    f = compile(net)
    x = rows()
    a = f(x)
    p = pickle.loads(pickle.dumps(f))
    return a, p(x)


@script
def module_compile_method(compile):
    net = nn.Linear(5, 3)
    x = rows()
    return net(x), net.train(False).training, compile(net)(x)


@script
def to_dtype_device(compile):
    net = nn.Sequential(nn.Linear(5, 3), nn.LayerNorm(3))
    f = compile(net)
    out = [f(rows())]
    for d in (torch.float64, torch.bfloat16, torch.float32):
        net.to(d)
        out.append(f(rows().to(d)))
    net.requires_grad_(False)
    out.append(f(rows()))
    net[0].requires_grad_(True)
    y = f(rows())
    y.sum().backward()
    return out, net[0].weight.grad, net[1].weight.grad


@script
def distributions(compile):
    import torch.distributions as D

    @compile
    def f(mu, s, x):
        n = D.Normal(mu, s.exp())
        z = n.rsample()
        kl = D.kl_divergence(n, D.Normal(0.0, 1.0))
        c = D.Categorical(logits=mu)
        b = D.Bernoulli(logits=mu)
        return (
            z,
            kl,
            n.log_prob(x),
            c.entropy(),
            c.log_prob(c.probs.argmax(-1)),
            b.log_prob((x > 0).float()),
            c.sample(),
            D.MultivariateNormal(torch.zeros(3), torch.eye(3)).log_prob(torch.ones(3)),
            D.Uniform(0.0, 2.0).log_prob(x.sigmoid()),
            D.Beta(2.0, 3.0).mean,
            D.Independent(n, 1).log_prob(x),
            D.TransformedDistribution(n, [D.transforms.TanhTransform()]).sample().shape,
            D.Gamma(2.0, 1.0).rsample((2,)).shape,
            D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Normal(torch.zeros(2), 1.0)).log_prob(x[:1, :1]),
        )

    return f(rows(), rows(), rows())


@script
def vae_training(compile):
    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Linear(5, 4)
            self.d = nn.Linear(2, 5)

        def encode(self, x):
            return self.e(x).chunk(2, -1)

        def forward(self, x):
            mu, lv = self.encode(x)
            z = mu + torch.randn_like(mu) * torch.exp(0.5 * lv)
            return self.d(z), mu, lv

    m = VAE()
    opt = torch.optim.Adam(m.parameters())
    c = compile(m)
    ls = []
    for _ in range(3):
        x = rows()
        r, mu, lv = c(x)
        l = F.mse_loss(r, x) - 0.5 * (1 + lv - mu**2 - lv.exp()).mean()
        opt.zero_grad()
        l.backward()
        opt.step()
        ls.append(l.detach())
    return ls, list(m.parameters())


@script
def gan_loop(compile):
    G, D = nn.Linear(2, 5), nn.Sequential(nn.Linear(5, 4), nn.LeakyReLU(), nn.Linear(4, 1))
    og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
    g, d = compile(G), compile(D)
    bce = nn.BCEWithLogitsLoss()
    for _ in range(2):
        real = rows()
        fake = g(rows(4, 2))
        ld = bce(d(real), torch.ones(4, 1)) + bce(d(fake.detach()), torch.zeros(4, 1))
        od.zero_grad()
        ld.backward()
        od.step()
        lg = bce(d(fake), torch.ones(4, 1))
        og.zero_grad()
        lg.backward()
        og.step()
    return ld, lg, list(G.parameters()), list(D.parameters())


@script
def reinforce_loop(compile):
    pi = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    opt = torch.optim.Adam(pi.parameters(), lr=0.01)

    @compile
    def act(s):
        p = torch.distributions.Categorical(logits=pi(s))
        a = p.sample()
        return a.item(), p.log_prob(a)

    tot = []
    for ep in range(2):
        s = torch.zeros(3)
        lps, rs = [], []
        for t in range(5):
            a, lp = act(s)
            s = s + (a * 2 - 1) * 0.1
            lps.append(lp)
            rs.append(float(s.sum()))
        R, ret = 0, []
        for r in reversed(rs):
            R = r + 0.9 * R
            ret.insert(0, R)
        l = -(torch.stack(lps) * torch.tensor(ret)).sum()
        opt.zero_grad()
        l.backward()
        opt.step()
        tot.append(l.detach())
    return tot, list(pi.parameters())


@script
def maml(compile):
    net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))
    params = dict(net.named_parameters())

    @compile
    def inner(params, x, y):
        l = F.mse_loss(torch.func.functional_call(net, params, (x,)), y)
        g = torch.autograd.grad(l, list(params.values()), create_graph=True)
        return {k: p - 0.1 * gg for (k, p), gg in zip(params.items(), g)}

    fast = inner(params, rows(), rows(4, 1))
    l = F.mse_loss(torch.func.functional_call(net, fast, (rows(),)), rows(4, 1))
    l.backward()
    return l, [p.grad for p in net.parameters()]


@script
def mixed_precision_module(compile):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(5, 4)
            self.n = nn.LayerNorm(4)
            self.c = nn.Conv1d(1, 2, 3)

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.a(x)
                z = self.c(y[:, None])
                s = y.softmax(-1)
                with torch.autocast("cpu", enabled=False):
                    w = self.n(y.float())
            return y, z, s, w

    m = M()
    f = compile(m)
    o = f(rows())
    sum(t.float().sum() for t in o).backward()
    return o, [p.grad.bfloat16() for p in m.parameters()]


@script
def deep_supervision_and_freeze(compile):
    net = nn.ModuleList([nn.Linear(5, 5) for _ in range(3)])

    @compile
    def f(x, upto):
        outs = []
        for i, l in enumerate(net):
            x = l(x).relu()
            if i >= upto:
                outs.append(x.mean())
        return outs

    out = []
    for u in (0, 1, 2):
        for i, l in enumerate(net):
            l.requires_grad_(i != u)
            l.zero_grad()
        o = f(rows(), u)
        if o[0].requires_grad:
            sum(o).backward()
        out.append((o, [p.grad for p in net.parameters()]))
    return out


@script
def losses_of_other_types(compile):
    """A loss of bytes has no place for its floats: eager says so, at its line."""

    @compile
    def f(x, y):
        said = []
        for loss in (F.l1_loss, F.huber_loss, F.smooth_l1_loss):
            try:
                said.append(loss(x, y))
            except RuntimeError as error:
                said.append(str(error))
        return said

    floats, bytes_ = torch.rand(4, 3), torch.randint(0, 9, (4, 3), dtype=torch.uint8)
    return f(floats, floats * 2), f(bytes_, floats), f(floats, bytes_)


@script
def loss_functions(compile):
    names = [
        "L1Loss",
        "MSELoss",
        "HuberLoss",
        "SmoothL1Loss",
        "SoftMarginLoss",
        "BCELoss",
        "PoissonNLLLoss",
        "KLDivLoss",
        "MultiLabelSoftMarginLoss",
        "MultiLabelMarginLoss",
    ]

    @compile
    def f(x, y):
        out = []
        for n in names:
            l = getattr(nn, n)()
            if n == "BCELoss":
                out.append(l(x.sigmoid(), (y > 0).float()))
            elif n == "MultiLabelMarginLoss":
                out.append(l(x, (y > 0).long()))
            elif n == "SoftMarginLoss":
                out.append(l(x, y.sign()))
            elif n == "MultiLabelSoftMarginLoss":
                out.append(l(x, (y > 0).float()))
            else:
                out.append(l(x, y))
        out += [
            F.triplet_margin_loss(x, y, x + 1),
            F.cosine_embedding_loss(x, y, torch.ones(4)),
            F.margin_ranking_loss(x[:, 0], y[:, 0], torch.ones(4)),
            F.ctc_loss(
                x.log_softmax(-1)[:, None].expand(4, 2, 5),
                torch.tensor([[1, 2], [3, 1]]),
                torch.tensor([4, 4]),
                torch.tensor([2, 2]),
            ),
            F.gaussian_nll_loss(x, y, torch.ones_like(x)),
            F.multi_margin_loss(x, torch.tensor([0, 1, 2, 3])),
            F.hinge_embedding_loss(x, y.sign()),
        ]
        return out

    x = rows().requires_grad_()
    o = f(x, rows())
    sum(o).backward()
    return o, x.grad


@script
def a_network_of_float16(compile):
    """Where a processor has no such arithmetic the compiler computes in float32: types, layouts and gradients stay."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.images = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2))
            self.last = nn.Linear(8 * 49, 24)

        def forward(self, x, mask):
            rows = self.last(self.images(x).flatten(1)).view(-1, 4, 6)
            mixed = F.scaled_dot_product_attention(rows[None], rows[None], rows[None], mask)
            return torch.baddbmm(rows, rows, mixed[0].transpose(1, 2) @ rows, beta=0.5), mixed

    results = []
    net = Net().half()
    run = compile(net)
    for layout in (torch.contiguous_format, torch.channels_last):
        x = torch.rand(2, 3, 16, 16).half().to(memory_format=layout).requires_grad_()
        out, mixed = run(x, torch.rand(4, 4).half())
        (out.float().square().mean() + mixed.float().mean()).backward()
        results += [out, mixed, x.grad, *(p.grad for p in net.parameters())]
    with torch.no_grad():
        return results + list(run(x, torch.zeros(4, 4).half()))


@script
def requires_grad_switched(compile):
    """requires_grad of parameters is changed inside, before, between and after what uses them."""
    def frozen_meanwhile(net, x):
        for p in net.parameters():
            p.requires_grad_(False)
        y = net(x)
        for p in net.parameters():
            p.requires_grad_(True)
        return y + x.sum()

    def frozen_after(net, x):
        y = net(x)
        net.requires_grad_(False)
        return y, net(x)

    def assigned(net, x):
        net[0].weight.requires_grad = False
        y = net(x)
        net[0].weight.requires_grad = True
        return y + net(x), net[0].weight.requires_grad

    def switched_on_and_used(net, x):
        net.requires_grad_(False)
        y = net(x)
        net.requires_grad_(True)
        return y, net(x)

    def toggled(net, x):
        net.requires_grad_(not net[0].weight.requires_grad)
        return net(x)

    def written_while_frozen(net, x):
        net.requires_grad_(False)
        for p in net.parameters():
            p.mul_(0.5)
        row = net[0].weight[0]
        net.requires_grad_(True)
        return row, net[0].weight[1]

    def of_an_argument(net, x):
        x.requires_grad_()
        gradient, = torch.autograd.grad(net(x).sum(), x, create_graph=True)
        return gradient.square()

    def said(net, x):
        print(net[0].bias)
        net[0].bias.requires_grad_(False)
        print(net[0].bias)
        return net(x)

    out = []
    for program in (frozen_meanwhile, frozen_after, assigned, switched_on_and_used, toggled, written_while_frozen, of_an_argument, said):
        torch.manual_seed(3)
        net, c = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)), compile(program)
        for n in (3, 3, 4):
            x = rows(n, 5)
            made = c(net, x)
            wanted = [t for t in (made if isinstance(made, tuple) else (made,)) if isinstance(t, torch.Tensor) and t.requires_grad]
            if wanted:
                sum(t.sum() for t in wanted).backward()
            out.append((made, [(p.requires_grad, p.grad, p) for p in net.parameters()], x.requires_grad))
    return out

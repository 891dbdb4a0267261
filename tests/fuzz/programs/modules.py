"""nn.Module: parameters, buffers, children, training mode, hooks, attributes written in forward; autograd.Function."""

from .grammar import feature

STEPS = ["x = self.lin(x[:, :1].expand(-1, 3)).sum(1, keepdim=True) + x", "x = x * self.weight", "self.seen += 1",
         "self.last = x.shape[0]", "x = x + self.total", "self.total.add_(1)", "x = self.act(x)",
         "x = x * (2 if self.training else 1)", "self.cache = x", "x = x + (0 if self.cache is None else 1)",
         "self.cache = None", "for child in self.parts:\n    x = child(x)", "self.history.append(x.shape)",
         "x = x * self.scale", "self.total = self.total + 1", "x = self.drop(x)", "x = x + self.options.get('k', 1)",
         "self.options['k'] = self.seen", "x = x + sum(p.sum() for p in self.parameters())",
         "for name, b in self.named_buffers():\n    x = x + b.sum()", "x = self.inner(x)",
         "self.total.copy_(x.detach().sum())", "with torch.no_grad():\n    self.total.mul_(0.5)",
         "x = x + len(self.parts)", "if self.seen > 2:\n    self.seen = 0",
         "x = F.relu(x) if isinstance(self.act, nn.Tanh) else x", "self.scale = self.scale * 0.5",
         "self.register_buffer('late', torch.ones(1))", "x = x + self.mean(x)", "x = self.norm(x)",
         "self.train(not self.training)"]


@feature(2)
def module(g):
    g.declared.append("class Inner(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                      "        self.k = nn.Parameter(torch.tensor(0.5))\n    def forward(self, x):\n"
                      "        return x * self.k\n    def mean(self, x):\n        return x.mean()")
    g.declared.append("class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                      "        self.lin = nn.Linear(3, 2)\n        self.weight = nn.Parameter(torch.ones(1) * 0.5)\n"
                      "        self.register_buffer('total', torch.zeros(1))\n        self.act = nn.Tanh()\n"
                      "        self.parts = nn.ModuleList([nn.ReLU(), Inner()])\n        self.inner = Inner()\n"
                      "        self.drop = nn.Dropout(0.25)\n        self.norm = nn.BatchNorm1d(1, affine=False)\n"
                      "        self.seen, self.last, self.cache, self.scale = 0, None, None, 2.0\n"
                      "        self.history, self.options = [], {'a': 1}\n"
                      "    def mean(self, x):\n        return x.mean()\n    def forward(self, x):")
    for step in g.rng.sample([s for s in STEPS if "self.norm" not in s], g.number(2, 6)):
        g.declared += ["        " + line for line in step.split("\n")]
    g.declared.append("        return x\nNET = Net()")
    if g.chance(0.3):
        g.declared.append(g.pick(["NET.register_forward_hook(lambda m, a, out: out * 2)",
                                  "NET.inner.register_forward_pre_hook(lambda m, a: (a[0] + 1,))",
                                  "NET.register_forward_hook(lambda m, a, out: COUNT.__setitem__(0, COUNT[0] + 1))",
                                  "NET.eval()", "NET.requires_grad_(False)"]))
    if g.chance(0.7):
        g.changes.append(g.pick(["NET.train(call % 2 == 0)", "NET.scale = 1.0 + call", "NET.seen = 0",
                                 "NET.parts.append(nn.Tanh())", "NET.act = nn.ReLU()", "NET.cache = None",
                                 "with torch.no_grad():\n    NET.weight.add_(1)", "NET.total.zero_()",
                                 "NET.options['k'] = call", "NET.zero_grad()", "NET.inner = nn.Identity()",
                                 "NET.weight = nn.Parameter(torch.full((1,), 1.0 + call))",
                                 "NET.mean = lambda x: x.sum()"]))

    def use(g):
        x = g.variable("x") or "x"
        g.line(g.pick([f"{x} = NET({x})"] * 5 + [f"{x} = NET.inner({x})", "NET.scale = 3.0", "NET.seen += 1",
                                                f"{x} = {x} * NET.weight", "NET.total.add_(1)",
                                                f"{x} = {x} + NET.total", "NET.eval()",
                                                f"{x} = {x} + len(list(NET.children()))", "NET.cache = 5",
                                                f"{x} = {x} * NET.training", f"NET.cache = {x}",
                                                "LOG.append(sorted(NET.state_dict())[:2])", "LOG.append(NET.seen)",
                                                f"{x} = NET.parts[1]({x})",
                                                f"{x} = nn.Sequential(NET.parts[0], NET.inner)({x})"]))

    g.statements.append((3, use))


@feature(0.6)
def autograd_function(g):
    g.declared.append("class Twice(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, t, k):\n"
                      "        ctx.save_for_backward(t)\n        ctx.k = k\n" + g.pick(["", "        COUNT[0] += 1\n",
        "        LOG.append('forward')\n"]) + "        return t * k * FACTOR[0]\n"
                      "    @staticmethod\n    def backward(ctx, grad):\n" + g.pick(["", "        COUNT[0] += 10\n",
        "        LOG.append('backward')\n"]) + "        t, = ctx.saved_tensors\n        return grad * ctx.k * FACTOR[0] + t * 0, None\n"
                      "FACTOR = [1.5]")
    if g.chance(0.6):
        g.changes.append("FACTOR[0] = 1.0 + call")

    def use(g):
        x, n = g.variable("x") or "x", g.integer()
        g.line(f"{x} = Twice.apply({x}, {n})")

    g.statements.append((2, use))

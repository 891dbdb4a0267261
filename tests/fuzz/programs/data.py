"""Sizes and numbers that data decide, tensors of other types and layouts, results written to given memory."""

from .grammar import inner

# i, b: an int and a truth value for every row of x at the start; k: a number that data decided; d: rows whose count
# data decided.
NUMBERS = ["int({b}.sum())", "{b}.sum().item()", "{i}.max().item() if {i}.numel() else 0", "int({i}.abs().sum())",
           "len({b}.nonzero())", "{b}.nonzero().shape[0]", "torch.unique({i}).numel()",
           "{i}.clamp(min=0).tolist()[0] if len({i}) else 1", "torch.count_nonzero({i}).item()",
           "int({i}[0]) if {i}.numel() else 3", "{i}[{b}].shape[0]", "({i} > 1).sum().item() + 1",
           "torch.bincount({i}.clamp(min=0)).numel()", "int({b}.any()) + 2", "{d}.shape[0]", "len({d})", "{d}.numel()",
           "{d}.size(0) * 2", "min({k}, 3)", "abs({k}) % 4", "{k} + {d}.shape[0]", "max({k} - 1, 0)", "{k} // 2"]
ROWS = ["{w}[{b}[: {w}.shape[0]]] if {b}.shape[0] >= {w}.shape[0] else {w}", "x[{b}]", "x[{b}, :1]", "x[{i} > 0]",
        "x[{b}.nonzero()[:, 0]]", "x[torch.where({b})]", "x[~{b}] * 2", "x.index_select(0, {b}.nonzero().flatten())",
        "torch.masked_select(x, {b}[:, None])", "x.repeat_interleave({i}.abs(), 0)",
        "torch.repeat_interleave(x, {i}.clamp(min=0), dim=0)", "{b}.nonzero()", "{i}.nonzero(as_tuple=True)[0]",
        "torch.argwhere({b}[:, None] & (x == x))", "torch.unique({i})", "torch.unique({i}, return_counts=True)[1]",
        "torch.unique({i}, return_inverse=True)[1]", "torch.unique_consecutive({i})", "torch.bincount({i}.abs())",
        "torch.bincount({i}.abs(), minlength=3)", "x[:abs({k})]", "x[abs({k}):]", "x[-abs({k}):]",
        "torch.zeros(abs({k}))", "torch.arange(abs({k}))", "torch.arange({k}, {k} + 3)",
        "torch.ones(abs({k}), 2) * {k}", "torch.full((abs({k}) % 5, x.shape[1]), 0.5)",
        "x.new_zeros(abs({k}), x.shape[1])", "x.repeat(abs({k}) % 3, 1)", "x[None].expand(abs({k}) % 4, -1, -1)",
        "F.pad(x, (0, abs({k}) % 5))", "torch.cat([x, x[{b}]])", "torch.cat([x[{b}], x[~{b}]])",
        "torch.stack([x[{b}], x[{b}] + 1])", "x[{b}] + x[{b}] * 2", "x[{b}].t()", "x[{b}].sum(0)",
        "x[{b}].sort(0).values", "x[{b}].cumsum(0)", "x[{b}] @ x[{b}].t()", "x[{b}].softmax(0)", "x[{b}][:, None] * 2",
        "x[{b}].reshape(-1)", "x[{b}].flip(0)", "x[{b}].mean(0)", "x[{b}].sum(1, keepdim=True)", "x[{b}][::2]",
        "x[{b}][1:]", "x[{b}] / max({k}, 1)", "F.layer_norm(x[{b}], x.shape[1:])", "torch.linspace(0, 1, abs({k}) + 1)",
        "torch.eye(abs({k}) % 6)", "torch.randn(abs({k}))", "x.narrow(0, 0, min(abs({k}), x.shape[0]))",
        "x.split([min(abs({k}), x.shape[0]), x.shape[0] - min(abs({k}), x.shape[0])])[1]",
        "torch.tril(torch.ones(abs({k}) % 5, abs({k}) % 5))", "{d} * 2", "{d} + {d}", "{d}[:2]", "{d}.sum()",
        "{d}.clone()", "{d}.unsqueeze(0)", "{d}.flatten()", "{d}.to(torch.float32) + 1", "{d}[{d}.shape[0] // 2:]",
        "torch.cat([{d}.flatten().float(), torch.ones(2)])", "{d}.float().sum(0)", "torch.zeros({d}.shape)",
        "{d} * {k}", "torch.empty_like({d}).fill_(1)", "{d}.float().reshape({d}.shape[0], -1)",
        "x.index_add(0, {b}.nonzero().flatten(), x[{b}])",
        "torch.zeros(4).index_add(0, {i}.abs() % 4, x.float().sum(1))", "x.masked_fill({b}[:, None], 0.5)",
        "torch.where({b}[:, None], x, -x)", "x.scatter(0, {b}.long()[:, None] * 0, 1.0)", "x[{i} % max(len(x), 1)]",
        "x.take_along_dim({i}[:, None] * 0, 1)", "x.gather(1, ({i}.abs() % x.shape[1])[:, None])",
        "F.one_hot({i}.abs())", "F.embedding({i}.abs(), torch.ones(4, 2))",
        "torch.searchsorted(torch.arange(4.0), x[{b}].detach())", "torch.nonzero_static({b}, size=3)",
        "torch.combinations({i})", "torch.cartesian_prod({i}[:2], {i}[:3])"]
WRITES = ["x[{b}] = 0.25", "x[{b}] += 1", "x[{b}] = x[{b}] * 2", "x[{i} > 0] *= 0.5", "x[{b}, 0] = {k}",
          "x[:abs({k})] = 1", "x[abs({k}):].mul_(2)", "x.index_put_((({i} % max(len(x), 1)),), x.new_ones(()))",
          "x.masked_scatter_({b}[:, None], torch.ones(x.numel(), dtype=x.dtype))", "x[{b}.nonzero()[:, 0]] = 0.5",
          "x.index_fill_(0, {b}.nonzero().flatten(), 1.5)", "x.index_copy_(0, {b}.nonzero().flatten(), x[{b}] + 1)",
          "{i}[{b}] = 1", "{i}.clamp_(0, 2)", "{b}.logical_not_()", "{d}.add_(1)", "{d}[:1] = 0", "{i} += 1",
          "{b}[:1] = True"]
EFFECTS = ["LOG.append({k})", "LOG.append(({k}, {d}.shape[0]))", "LOG.append(tuple({d}.shape))",
           "print({k}, {d}.shape)", "LOG.append({d}.shape)", "LOG.append(f'{{{k}}}|{{{d}.shape[0]}}')",
           "COUNT[0] += {k}", "LOG.append({i}.tolist())", "LOG.append({d}.dtype)", "LOG.append([{k}] * 2)",
           "LOG.append({{'k': {k}}})", "LOG.append({d}.is_contiguous())", "LOG.append({d}.stride())",
           "torch._dynamo.graph_break()", "LOG.append({d}.requires_grad)", "torch._check({k} >= -99)"]
CONDITIONS = ["{k} > 2", "{d}.shape[0] == 0", "{d}.numel() == 0", "{d}.numel() > 3", "{k} == {d}.shape[0]",
              "{d}.shape[0] == x.shape[0]", "{k}", "not {k} % 2", "len({d}) < 2", "{b}.any()", "{b}.all().item()",
              "x[{b}].shape[0] > 1", "{i}.sum() > 0", "{d}.ndim == 2", "{k} in (1, 2)", "{d}.shape[0] < x.shape[0]",
              "{k} >= 0"]
OTHER = ["torch.complex(x.float(), x.float() * 0.5)", "torch.view_as_real(torch.complex(x.float(), x.float()))",
         "torch.complex(x.float(), x.float()).abs()", "torch.polar(x.float().abs(), x.float()).real",
         "(torch.complex(x.float(), -x.float()) * 1j).imag",
         "torch.complex(x.float(), x.float()).conj().resolve_conj().imag", "x.to(torch.complex64).sum(0)",
         "x.to(torch.float16) * 2", "x.to(torch.bfloat16) + 1", "({i}.to(torch.int8) * 60)", "{i}.to(torch.uint8)",
         "{i}.to(torch.int16) << 3", "{i}.to(torch.int32) // 2", "{i} % 3", "{i}.float() % -2", "{b} ^ ({i} > 0)",
         "{b}.to(torch.int8) - 1", "x.bool()", "~{i}", "{i} & 5", "{i} | 8", "{i} >> 1", "torch.bitwise_xor({i}, 3)",
         "{i} * {b}", "{i} + 0.5", "{b} + {b}", "{b}.sum(0)", "{i}.cumsum(0)", "{i}.prod()",
         "{i}.sum(dtype=torch.int32)", "{b} * x.sum(1)", "{i}.true_divide(2)",
         "torch.div({i}, 2, rounding_mode='trunc')", "torch.div({i}, -2, rounding_mode='floor')",
         "torch.remainder({i}, -3)", "torch.fmod({i}, 3)", "{i} ** 2", "2 ** {i}.abs()",
         "x.half().float() == x.float()", "torch.signbit(x)", "x.to(torch.float64).sum()", "torch.sgn({i})",
         "{i}.sort(stable=True).indices", "{i}.argsort(stable=True)",
         ("x.view(torch.int16 if x.element_size() == 2 else torch.int32 if x.element_size() == 4 else "
          "torch.int64) if not x.requires_grad else x")]
LAYOUTS = ["x.t()[1:]", "x[:, :1].expand(-1, 3)", "x[:1].expand(3, -1)", "x[1:, 1:]", "x.reshape(-1)[1::2]",
           "x.t().contiguous().t()", "x[..., None].expand(-1, -1, 2)[1:]", "x.unfold(1, 1, 1)",
           "x.as_strided((x.shape[0],), (x.stride(0),))", "x[None].transpose(0, 2)",
           "torch.empty(x.shape[1], x.shape[0]).t().copy_(x)", "x.diagonal()", "x.new_empty(0, x.shape[1])", "x[:0]",
           "x[:, :0]", "x[:0].sum()", "x[:0].sum(0)", "x[:, :0].sum(1)", "torch.cat([x[:0], x])", "x[:1].squeeze(0)",
           "x[:1, :1].squeeze()", "x[:, :1] * x[:1]", "x.expand(1, *x.shape).permute(2, 0, 1)", "x[:0].mean()",
           "x[:1].std(0)", "x[:0].prod(0)", "x[:, :0] @ x[:, :0].t()", "x.t() @ x", "x[::2, ::2].t().reshape(-1)"]
OUTS = ["o = torch.empty({s})\ntorch.add({v}, 1, out=o)", "o = torch.zeros(0)\ntorch.mul({v}, 2, out=o)",
        "o = torch.empty({s}[::-1]).t()\ntorch.sub({v}, 1, out=o)",
        "o = torch.empty(2, *{s})\ntorch.exp({v}, out=o[1])\no[0] = 1",
        "o = torch.empty({s}[1])\ntorch.sum({v}, 0, out=o)", "o = torch.empty(0)\ntorch.cat([{v}, {v}], out=o)",
        "o = torch.empty({s}, dtype=torch.float64)\ntorch.sin({v}, out=o)",
        "o = torch.empty({s}[0], dtype=torch.bool)\ntorch.gt({v}.sum(1), 0, out=o)",
        ("o, p = torch.empty({s}), torch.empty({s}, dtype=torch.int64)\ntorch.sort({v}, 1, out=(o, p))\n"
         "LOG.append(p)"),
        "o = torch.empty(3)\ntorch.arange(3, out=o)", "o = torch.empty({s})\ntorch.clamp({v}, -1, 1, out=o.view({s}))",
        "o = torch.ones({s})\ntorch.addcmul(o, {v}, {v}, out=o)",
        "o = torch.empty({s}[0], {s}[0])\ntorch.mm({v}, {v}.t(), out=o)",
        "o = torch.full({s}, 3.0)\ntorch.add(o, {v}, out=o[...])"]
SHAPES_KEPT = [("@dataclasses.dataclass\nclass Batch:\n    rows: torch.Tensor\n    count: int = 0\n"
                "    kept: list = dataclasses.field(default_factory=list)\n    def step(self, mask):\n"
                "        self.rows = self.rows[mask]\n        self.count += self.rows.shape[0]\n"
                "        self.kept.append(self.rows.shape)\n        return self"),
               ("@dataclasses.dataclass(frozen=True)\nclass Batch:\n    rows: torch.Tensor\n    count: int = 0\n"
                "    def step(self, mask):\n"
                "        return dataclasses.replace(self, rows=self.rows[mask], count=self.count + "
                "int(mask.sum()))")]
INTO_X = ["x = x + {d}.sum()", "x = x * {k}", "x = x + {d}.float().mean(0).sum()", "x = x * {d}.shape[0]",
          "x = x + torch.ones({k} % 3 + 1).sum()", "x = x / ({d}.numel() + 1)"]
AROUND = ["q = Batch(x).step(b0)\nx = x + q.rows.sum() + q.count",
          ("q = Batch(x, count=k0).step(b0).step(slice(None)) if 'list' in str(Batch.__annotations__) else "
           "Batch(x)\nLOG.append(q.count)"),
          "with masked(x, b0) as kept:\n    x = x + kept.sum()",
          "x = x + sum(p.sum() for p in pieces(x, i0.abs().tolist()))",
          "for p in pieces(x, [1, k0, 1]):\n    LOG.append(p.shape)",
          "with masked(x, b0) as kept, torch.no_grad():\n    LOG.append(kept.requires_grad)",
          "x = torch.cat([*pieces(x, [1]), x[1:]])"]
MANAGED = """@contextlib.contextmanager
def masked(t, mask):
    LOG.append('in')
    kept = t[mask]
    try:
        yield kept
    finally:
        LOG.append(kept.shape[0])
def pieces(t, counts):
    at = 0
    for n in counts:
        yield t[at:at + n]
        at += n"""


def filled(g, template):
    """With names of what the program knows; ints and truth values are the arguments or made of them."""
    x = g.variable("x") or "x"
    return template.format(i="i0", b="b0", w=x, k=g.variable("k") or "k0", d=g.variable("d") or "b0.nonzero()")


def number_of_data(g):
    g.new("k", filled(g, g.pick(NUMBERS)))


def rows_of_data(g):
    g.new("d", filled(g, g.pick(ROWS)))


def write_by_data(g):
    g.line(filled(g, g.pick(WRITES)))


def effect_of_data(g):
    g.line(filled(g, g.pick(EFFECTS)))


def branch_on_data(g):
    with g.block(f"if {filled(g, g.pick(CONDITIONS))}:"):
        inner(g, 2)


def of_another_type(g):
    g.new("d", filled(g, g.pick(OTHER)))


def of_another_layout(g):
    g.new("d", g.pick(LAYOUTS))


def into_given_memory(g):
    v = g.pick(["x.detach().float()", "x.detach().float().t()", "x.detach().float()[1:]"])
    for line in g.pick(OUTS).format(v=v, s=f"tuple({v}.shape)").split("\n"):
        g.line(line)
    g.line(f"{g.bind(g.name('d'), 'd')} = o")


def into_x(g):
    """What data decided goes on into what is differentiated."""
    g.line(g.pick(INTO_X).format(d=g.variable("d") or "x[b0]", k=g.variable("k") or "k0"))


def objects_around(g):
    g.line(g.pick(AROUND))


STATEMENTS = [(2, number_of_data), (5, rows_of_data), (1.5, write_by_data), (1.5, effect_of_data), (1, branch_on_data),
              (1.5, of_another_type), (1.5, of_another_layout), (0.8, into_given_memory),
              (1.2, into_x), (0.8, objects_around)]
INTS = ["torch.randint(-2, 4, (n,))", "torch.arange(n) - 1", "torch.randint(0, 3, (n,), dtype=torch.int32).long()",
        "torch.zeros(n, dtype=torch.int64)", "torch.randint(-2, 4, (2 * n,))[::2]", "torch.randint(1, 3, (n + 1,))[1:]"]
TRUTHS = ["torch.rand(n) > 0.4", "torch.rand(n) > 0.4", "torch.zeros(n, dtype=torch.bool)",
          "torch.ones(n, dtype=torch.bool)", "torch.arange(n) == call", "torch.rand(n) > call / 4",
          "(torch.rand(n, 2) > 0.5)[:, 1]"]


def arguments(g):
    """Lines of `inputs(call)`, and the kinds of what they make."""
    g.line(f"i0 = {g.pick(INTS)}")
    g.line(f"b0 = {g.pick(TRUTHS)}")
    g.line(f"k0 = {g.pick(['call', '2', 'call + 1', 'n // 2', '0'])}")
    return {"i0": "any", "b0": "any", "k0": "k"}


def prepare(g):
    g.declared += [g.pick(SHAPES_KEPT), MANAGED]
    g.statements += STATEMENTS

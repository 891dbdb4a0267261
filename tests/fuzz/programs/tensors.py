"""Views, writes in place, random draws, custom operators, other types, large sizes."""

from .grammar import feature, statement


@statement(1)
def view(g):
    x = g.variable("x") or "x"
    kind, value = g.pick([("v", f"{x}[1:]"), ("v", f"{x}.t()"), ("v", f"{x}[:, ::2]"), ("r", f"{x}[0]"), ("r",
        f"{x}[-1]"), ("v", f"{x}.view(-1)"), ("v", f"{x}.reshape(-1)"), ("c", f"{x}[:, :1]"), ("x",
        f"{x}.view({x}.shape)"), ("v", f"{x}.unsqueeze(0)"), ("v", f"{x}.diagonal()"), ("v", f"{x}.narrow(0, 0, 1)"),
                          ("v", f"{x}.split(1)[0]"), ("v", f"{x}.chunk(2)[0]"), ("x", f"{x}.expand({x}.shape)"), ("v",
        f"{x}[None, ..., 1:]"), ("v", f"{x}.as_strided((1,), (1,))"), ("x", f"{x}.transpose(0, 1).t()"), ("v",
        f"{x}.unbind(0)[0]"), ("v", f"{x}.flatten()"), ("v", f"{x}.unfold(0, 1, 1)"), ("x", f"{x}.detach()"), ("x",
        f"{x}.contiguous()"), ("v", f"{x}.movedim(0, 1)"), ("v", f"{x}.swapaxes(0, 1)[1:]")])
    g.new(kind, value)


@statement(1.2)
def write_in_place(g):
    target = g.variable(g.pick("xxvvrc")) or g.variable("x") or "x"
    y = g.tensor(g.pick("xr"), 2)
    lines = [f"{target}.mul_(0.5)", f"{target}.add_(1)", f"{target}.clamp_(-1, 1)", f"{target}.zero_()",
             f"{target} *= 1.5", f"{target} -= 1", f"{target}.neg_()", f"{target}.tanh_()",
             f"{target}.fill_({g.factor()})", f"{target}[0] = {g.factor()}", f"{target}[-1:] = 2",
             f"{target}[...] = 0.5", f"{target}[1:] += 1", f"{target}.copy_({target} + 1)", f"{target}.relu_()",
             f"{target}[{target} > 1] = 1.0", f"{target}.masked_fill_({target} < 0, 0.25)", f"{target}.t_()",
             f"{target}.unsqueeze_(0).squeeze_(0)", f"{target}.data.add_(1)"]
    x = g.variable("x")
    if x:
        lines += [f"{x}.add_({y})", f"{x}[:, 0] = {g.factor()}", f"{x}[0].mul_(2)", f"{x}.t().add_(1)",
                  f"{x}[:, 1:] = {x}[:, :-1] * 1", f"{x}[1:].copy_({x}[:-1].clone())", f"{x} += {y}",
                  f"{x}.view(-1)[::2] = 0", f"{x}.index_add_(0, torch.tensor([0]), torch.ones(1, {x}.shape[1]))",
                  f"{x}.scatter_(0, torch.zeros(1, {x}.shape[1], dtype=torch.int64), 1.0)",
                  f"torch.add({x}, 1, out={x})",
                  f"{x}.index_put_((torch.tensor([0]),), torch.tensor(1.0), accumulate=True)",
                  f"{x}.select(0, 0).fill_(1)", f"{x}.diagonal().zero_()",
                  f"{x}.index_fill_(1, torch.tensor([0]), 2.0)", f"{x}.exponential_()",
                  f"{x}.set_({x}.clone())" if g.chance(0.1) else f"{x}.sub_({x})"]
    g.line(g.pick(lines))


@statement(0.8)
def random_draw(g):
    x = g.variable("x") or "x"
    kind, value = g.pick([("x", f"{x} + torch.rand({x}.shape)"), ("x", f"torch.randn_like({x})"), ("x",
        f"{x} * torch.bernoulli(torch.full({x}.shape, 0.5))"), ("x", f"F.dropout({x}, 0.5)"), ("x",
        f"{x} + torch.randint(0, 5, {x}.shape)"), ("x", f"torch.empty({x}.shape).uniform_(-1, 1)"), ("r",
        f"torch.randn({x}.shape[1])"), ("s", "torch.rand(())"), ("x", f"torch.bernoulli({x}.detach().sigmoid())"), ("x",
        f"torch.normal({x}.detach(), 1.0)"), ("x", f"F.dropout({x}, 0.3, training=call % 2 == 0)"), ("x",
        f"{x}[torch.randperm({x}.shape[0])]"), ("x", f"torch.zeros_like({x}).normal_()"), ("n", "random.randint(0, 4)"),
                          ("q", "random.random()"), ("q", "round(numpy.random.rand(), 3)"), ("x",
        f"torch.rand_like({x}) * {x}"), ("i", "torch.randint(0, 9, (1,))"), ("n", "torch.randint(0, 3, ()).item()"),
                          ("x", f"F.dropout({x}, 0.5, inplace=False) * 2"), ("n", "random.choice([1, 2, 3])"), ("x",
        f"{x}.clone().bernoulli_(0.5)"), ("x",
                                          f"{x} + torch.randn({x}.shape, generator=torch.Generator().manual_seed(call))")])
    if g.chance(0.12):
        g.line(f"torch.manual_seed({g.integer()})" if g.chance(0.7) else "random.seed(call)")
    g.new(kind, value)


@statement(0.5)
def other_types(g):
    x = g.variable("x") or "x"
    kind, value = g.pick([("x", f"{x}.double()"), ("x", f"{x}.to(torch.bfloat16)"), ("i",
        f"({x} * 4).to(torch.int64).sum(1, keepdim=True)"), ("b", f"{x} > 0"), ("x", f"({x} > 0).float()"), ("i",
        f"torch.arange({x}.shape[1])"), ("x", f"({x} * 8).int().to(torch.float32)"), ("s", f"({x} > 0).sum() * 1.0"),
                          ("i", f"{x}.argmax(1, keepdim=True)"), ("b", f"{x}.isnan()"), ("x",
        f"({x} * 4).long() % 3 + {x}"), ("x", f"{x}.half().float()"), ("i", f"({x} > 0).cumsum(1)"), ("x",
        f"torch.full_like({x}, call)"), ("i", f"{x}.shape[0] * torch.ones(1, dtype=torch.int32)"), ("b",
        f"torch.ones(1, dtype=torch.bool) & ({x} == {x})"), ("x", f"({x} * 3).round() // 2"), ("q",
        f"torch.finfo({x}.dtype).bits / 16"), ("i", f"({x} * 4).to(torch.uint8).long()")])
    if value.startswith("("):
        value = value
    g.new(kind, value)


@statement(0.4)
def mixed_types(g):
    i, b, x = g.variable("i"), g.variable("b"), g.variable("x") or "x"
    if not i and not b:
        return other_types(g)
    if i:
        g.line(g.pick([f"{x} = {x} + {i}", f"{i} = {i} * 2 + 1", f"{i} = {i} // 2", f"{i} += 1",
                       f"{x} = {x} * ({i} % 3)", f"{x} = {x} / ({i}.abs() + 1)",
                       f"LOG.append({i}.tolist() if {i}.numel() < 4 else {i}.dtype)", f"{i} = {i} << 1",
                       f"{i} = {i} & 3", f"{x} = torch.where({i} > 1, {x}, -{x})", f"{i} = -{i}",
                       f"{i} = {i}.clamp(0, 4)"]))
    else:
        g.line(g.pick([f"{x} = torch.where({b}, {x}, {x} * 0)", f"{b} = ~{b}", f"{x} = {x} * {b}",
                       f"LOG.append(bool({b}.all()))", f"{x} = {x}.masked_fill({b}, 1.0)", f"{b} = {b} | ({x} > 1)",
                       f"{x} = {x} + {b}.sum()"]))


@statement(0.3)
def made_here(g):
    x = g.variable("x") or "x"
    kind, value = g.pick([("x", f"torch.zeros({x}.shape)"), ("x", f"torch.ones_like({x})"), ("r",
        f"torch.linspace(0, 1, {x}.shape[1])"), ("s", f"torch.tensor({g.factor()} * 1.0)"), ("x",
        f"{x}.new_full({x}.shape, 2.0)"), ("x", f"torch.eye({x}.shape[0], {x}.shape[1])"), ("x",
        f"torch.empty_like({x}).fill_(1)"), ("r", f"torch.tensor([1.0] * {x}.shape[1])"), ("s", "torch.as_tensor(1.5)"),
                          ("x",
                           f"torch.tensor([[float(i + j) for j in range({x}.shape[1] % 5)] for i in range(2)]).sum() + {x}"),
                          ("x", f"torch.from_numpy(numpy.ones({x}.shape, dtype='float32')) + {x}")])
    g.new(kind, value)


@statement(0.25)
def questions(g):
    x = g.variable("x") or "x"
    g.new("n", g.pick([f"{x}.dim()", f"{x}.stride(0)", f"{x}.storage_offset()", f"{x}.numel()",
                       f"int({x}.is_contiguous())", f"{x}.element_size()", f"len({x})", f"int({x}.requires_grad)",
                       f"int({x}.is_leaf)", f"{x}._version" if g.chance(0.2) else f"{x}.size(-1)",
                       f"int({x}.grad_fn is None)", f"int(torch.is_floating_point({x}))", f"int({x}._base is None)"]))


@feature(1)
def custom_operators(g):
    g.declared.insert(0, "from fuzz.programs.custom_operators import mutate, note, pure, say")

    def use(g):
        x = g.variable("x") or "x"
        g.line(g.pick([f"{x} = pure({x}, {g.pick(['2.0', '0.5'])})", f"{x} = say({x}, 'w{g.number(0, 9)}')",
                       f"note({x}, 'n{g.number(0, 9)}')", f"say({x}, 'dead')",
                       f"pure({x}, 3.0)"] if g.uses_grad and g.chance(0.8) else [f"mutate({x}, 0.5)",
            f"mutate({x}[0], 1.0)", f"{x} = say({x}, 'm')", f"y = {x}.clone()\nmutate(y, 1.0)\n{x} = {x} + y",
            f"note({x}, 'z')", f"{x} = pure({x}, 1.5)"]))

    g.statements.append((2, use))


@feature(1)
def tensors_of_the_module(g):
    value = g.pick(["torch.zeros(1)", "torch.ones(1, 1)", "torch.tensor(2.0)", "torch.arange(1.0)",
                    "torch.zeros(1, dtype=torch.int64)"])
    g.declared.append(f"KEPT = {value}\nPART = KEPT.view(-1)")
    if g.chance(0.6):
        g.changes.append(g.pick(["KEPT.add_(1)", "global KEPT\nKEPT = KEPT + call",
                                 "global KEPT\nKEPT = torch.full((1,), float(call))", "PART.fill_(call)",
                                 "global KEPT\nKEPT = KEPT.double()"]))

    def use(g):
        x = g.variable("x") or "x"
        g.line(g.pick([f"{x} = {x} + KEPT", f"{x} = {x} * PART", "KEPT.add_(1)", "PART.mul_(2)",
                       f"LOG.append(KEPT is PART)", "KEPT.fill_(call)",
                       f"{x} = {x} + KEPT.shape[0]" if "1" in value else f"{x} = {x} + KEPT", "PART[0] = 3",
                       f"{x} = {x} + (PART + 1) * KEPT",
                       "KEPT.copy_(PART.sum())" if value != "torch.arange(1.0)" else "KEPT += 1"]))

    g.statements.append((2, use))

"""Programs whose sizes, strides and ints are others in every call, 0 and 1 among them, and that ask about them and reckon with them."""

from . import data
from .builder import Builder
from .functions import function
from .grammar import inner

EXTENTS = [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 16, 17], [2, 3, 4, 5, 6, 7, 8, 9], [0, 1, 2, 3],
           [33, 64, 65, 127, 130, 300]]
INTS = [-3, -1, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 9, 12]
NUMBERS = ["{x}.shape[0]", "{x}.size(1)", "len({x})", "{x}.numel()", "{x}.stride(0)", "{x}.stride()[-1]",
           "{x}.storage_offset()", "{x}.size()[-1]", "{a} // 2", "-(-{a} // 2)", "{a} % 3", "{a} * {b}", "{a} + {b}",
           "{a} - {b}", "max({a}, {b})", "min({a}, 4)", "abs({a} - {b})", "{a} - 1", "divmod({a}, 3)[0]",
           "divmod({a}, 3)[1]", "{a} ** 2", "{a} << 1", "{a} >> 1", "{a} & 3", "{a} | 1", "{a} ^ {b}", "~{a}", "-{a}",
           "+{a}", "int({a} / 2)", "round({a} / 3)", "math.ceil({a} / 2)", "math.floor({a} / 2)", "math.gcd({a}, {b})",
           "math.isqrt(abs({a}))", "sum({x}.shape)", "math.prod({x}.shape)", "sorted({x}.shape)[0]",
           "({a}, {b})[{a} > {b}]", "({a} if {a} > {b} else {b})", "({a} and {b})", "({a} or 1)", "(not {a}) + 1",
           "len(range({a}))", "len(range(0, {a}, 2))", "len(range({a})[1:])", "bool({a}) + 1", "int(str({a}))",
           "{a}.bit_length()", "pow({a}, 2)", "int(float({a}))", "{a}.__index__()", "torch.Size((3, 2)).numel() + {a}",
           "{x}.shape.numel()", "sum(1 for _ in range({a}))", "int(math.sqrt(abs({a})))", "({a} - {b}) % 5",
           "{a} // ({b} + 1)", "({a} * 2 + 1) // 2", "{a} % ({b} + 1)", "int({a} == {b})", "range({a} + 1)[-1]",
           "len({x}.view(-1)[: max({a}, 0)])", "{x}.t().shape[0]", "[{a}, {b}, 3][1]", "sum([{a}, {b}])",
           "max([{a}, {b}, 3])", "sorted(({a}, {b}))[-1]", "dict(n={a})['n']", "{{'k': {a}}}.get('k')",
           "len('x' * {a})", "len([0] * {a})", "len(str({a}))", "(1, 2, 3)[{a} % 3]", "'abc'.find('abc'[{a} % 3])",
           "len([1, 2, 3, 4][:{a}])", "len({{{a}, {b}}})", "hash({a}) % 97",
           "functools.reduce(lambda p, q: p * q + 1, {x}.shape)", "{x}.shape[{a} % 2]", "len({x}[{a}:])",
           "{x}[: {a}].shape[0]", "{x}[::2].shape[0]", "{x}.dim() + {a}", "next(iter({x}.shape))",
           "(lambda k: k + 1)({a})", "operator.mul({a}, 2)", "int.__add__({a}, 1)", "{a}.real", "{a}.numerator",
           "int(bool({a} > 2))", "{x}.shape.count({a})", "min({x}.shape)", "{x}.nbytes",
           "{x}.shape[-1] * {x}.element_size()"]
FLOATS = ["{a} / 2", "{a} / ({b} + 20)", "float({a})", "{a} * 0.5", "max({a}, 1) ** -0.5", "math.log(abs({a}) + 1)",
          "1 / max({a}, 1)", "math.sqrt(abs({a}))", "({a} + 0.5) // 1", "2.0 ** (-abs({a}) / 8)", "{a} % 2.5",
          "math.cos({a})", "{a} * {b} / 4", "round({a} / 7, 2)", "float({a} > {b})", "{a} - 0.25"]
CONDITIONS = ["{a} == {b}", "{a} != {b}", "{a} < {b}", "{a} % 2 == 0", "2 < {a} <= 5", "{a} in (3, 5)",
              "{a} * {b} > 12", "{a}", "not {a}", "{a} // 2 == {b}", "{x}.shape == {y}.shape",
              "{x}.shape[0] == {x}.shape[1]", "{x}.is_contiguous()", "{x}.stride(0) == {x}.shape[1]",
              "{x}.numel() > 9 and {x}.size(1) > 1", "isinstance({a}, int)", "type({a}) is int",
              "{x}.shape[0] > {y}.shape[0]", "{a} > 3 or {b} > 3", "{a} + {b} >= 7", "{x}.numel() == 0",
              "{a} - {b} == 1", "tuple({x}.shape) == (3, {a})", "{x}.shape[1:] == (5,)", "{a} in {{2, 4, 6}}",
              "{a} in range({b})", "{x}.shape > (2, 3)", "{a} / 2 > 1.5", "{a} * 0.5 == 2.0",
              "({a} + 1) % ({b} % 3 + 1) == 0", "bool({x}.shape[0])", "{x}.shape[0] is not None", "{x}.size(0) <= 1",
              "{x}.storage_offset() > 0", "any(s == {a} for s in {x}.shape)", "all(s > 1 for s in {x}.shape)",
              "{a} == {a} // 2 * 2", "len({{{a}, {b}}}) == 2"]
WHOLE = ["torch.zeros({x}.shape) + {x}", "torch.ones({x}.shape[0], {x}.shape[1])",
         "{x}.new_full(({x}.size(0), {x}.size(1)), {a})", "torch.full({x}.shape, float({a}))",
         "torch.arange({x}.numel()).view({x}.shape) * {x}", "{x}.reshape({x}.shape[0], -1)",
         "{x}.reshape(-1, {x}.size(1))", "{x}.expand({x}.shape[0], {x}.shape[1])", "{x}[:1].expand({x}.shape[0], -1)",
         "{x}.narrow(0, 0, {x}.shape[0])", "F.pad({x}, (0, abs({a})))[:, :{x}.shape[1]]",
         "torch.cat([{x}, {x}])[:{x}.shape[0]]", "torch.cat([{x}, {x} * 2], 1)[:, {x}.shape[1]:]",
         "{x}.repeat(2, 1)[: len({x})]", "{x}.flatten().reshape(*{x}.shape)",
         "{x}.reshape({x}.shape[::-1]).reshape({x}.shape)", "{x}.unflatten(1, (1, {x}.shape[1])).squeeze(1)",
         "torch.empty_strided({x}.shape, ({x}.shape[1], 1)).copy_({x})",
         "{x}.contiguous().as_strided({x}.shape, ({x}.shape[1], 1))", "{x}.roll({a}, 0)",
         "torch.eye({x}.shape[0]) @ {x}.float()", "torch.linspace(0, 1, {x}.shape[0]).unsqueeze(1) + {x}",
         "{x} * torch.arange({x}.shape[1])", "torch.cat({x}.split(2))",
         "torch.cat({x}.split([{x}.shape[0] // 2, {x}.shape[0] - {x}.shape[0] // 2]))", "torch.cat({x}.chunk(3, 1), 1)",
         "torch.stack([{x}[i] for i in range(len({x}))])", "torch.stack(list({x})) if len({x}) else {x}",
         "torch.where(torch.arange({x}.shape[1]) < {a}, {x}, 0.0)",
         "{x}.masked_fill(torch.ones({x}.shape, dtype=torch.bool).triu(), 0.5)", "{x} / {x}.shape[0]", "{x} * {a}",
         "{x} + {a} / 2", "{x}.sum() / {x}.numel() + {x}", "{x} - {x}.mean(0) * ({x}.shape[0] > 2)",
         "F.layer_norm({x}, {x}.shape[1:])", "{x} + torch.ones({x}.shape[1])", "{x}.tril({a} % 3)",
         "{x}.clamp(-{b}, {a} + 1)", "torch.cat([{x}[1:], {x}[:1]])",
         "torch.cat([{x}[:, {x}.shape[1] // 2:], {x}[:, :{x}.shape[1] // 2]], 1)",
         "{x}.scatter_add(0, torch.zeros_like({x}, dtype=torch.int64), {x})",
         "{x}.index_select(0, torch.arange({x}.shape[0] - 1, -1, -1))",
         "F.linear({x}, torch.eye({x}.shape[1], dtype={x}.dtype))",
         "torch.einsum('ij,j->ij', {x}, torch.ones({x}.shape[1], dtype={x}.dtype))",
         "{x}.view({x}.shape[0], 1, {x}.shape[1]).sum(1)", "{x}.unsqueeze(0).expand(3, -1, -1).mean(0)",
         "{x}.t().contiguous().view({x}.shape[1], {x}.shape[0]).t()", "{x}.softmax(0) * {x}.shape[0]",
         "{x}.cumsum(0) / torch.arange(1, {x}.shape[0] + 1).unsqueeze(1)",
         "torch.addmm({x}, {x} @ {x}.t(), {x}).tanh()",
         "torch.bmm({x}.unsqueeze(0), torch.eye({x}.shape[1], dtype={x}.dtype).unsqueeze(0))[0]", "{x}.sort(0).values",
         "{x} + torch.tensor([{a}, {b}]).sum()", "{x} * torch.tensor({a})", "F.dropout({x}, 0.5)",
         "{x} + torch.rand({x}.shape[1])", "torch.randn({x}.shape[0], 1) * {x}", "{x}.flip(1)[:, : {x}.shape[1]]"]
ROWS = ["{x}[{x}.shape[0] // 2]", "{x}.sum(0) / {x}.shape[0]", "torch.zeros({x}.shape[1])", "{x}[-1]",
        "{x}.new_ones({x}.size(1))", "{x}.t()[:, 0]", "{x}.select(0, 0)"]
COLUMNS = ["{x}[:, :1]", "torch.ones({x}.shape[0], 1)", "{x}.sum(1, keepdim=True)",
           "torch.arange({x}.shape[0]).view(-1, 1) * 0.5", "{x}[:, {x}.shape[1] // 2, None]"]
VIEWS = ["{x}.reshape(-1)[: abs({a})]", "{x}[{a}:]", "{x}[:{a}]", "{x}[-2:]", "{x}[{x}.shape[0] // 2:]", "{x}[:, {a}:]",
         "{x}[::max({a}, 1)]", "{x}.reshape(-1).unfold(0, 2, 1)", "{x}.t()[: {a}]", "torch.outer({x}[:, 0], {x}[0])",
         "{x}.repeat({a} % 3 + 1, 2)", "{x}.repeat_interleave(2, 0)", "{x}.unsqueeze(1).expand(-1, abs({a}), -1)",
         "{x}.topk(min(3, {x}.shape[1]), 1).values", "{x}.narrow(0, 0, min(abs({a}), len({x})))",
         "torch.zeros(abs({a}), abs({b}))", "{x}.diagonal()", "F.pad({x}, (abs({a}), 1))",
         "{x}.view({x}.shape[0], 1, -1).permute(2, 0, 1)", "{x}.reshape({x}.shape[1], {x}.shape[0])", "{x} @ {x}.t()",
         "{x}.t() @ {x}", "torch.cat([{x}, {x}[:1]])", "{x}[:, None] - {x}[None]", "{x}[1:] - {x}[:-1]",
         "{x}[1:-1, 1:]", "{x}.split(max({a}, 1))[0]", "torch.arange({a} % 9)", "torch.arange(0, max({a}, 0), 2)",
         "{x}.unfold(1, min(2, {x}.shape[1]), 1)", "{x}.flatten()", "{x}.reshape(-1)[::3]",
         "{x}[torch.arange({x}.shape[0]) % 2 == 0]", "F.avg_pool1d({x}[None], 2)",
         "F.conv1d({x}[None], torch.ones(2, {x}.shape[0], 1, dtype={x}.dtype))",
         "{x}.as_strided((max({x}.shape[0] - 1, 0),), (1,))", "F.interpolate({x}[None, None], scale_factor=2.0)",
         "{x}[: {x}.shape[0] // 2 * 2].view(-1, 2, {x}.shape[1]).sum(1)", "torch.triu_indices(len({x}), len({x}))",
         "{x}.nonzero()"]
WRITES = ["{v}[{a} % 3:] = 0.5", "{v}[: {a}].add_(1)", "{v}[{v}.shape[0] // 2:].mul_(2)", "{x}[:, : {a}] = {a}",
          "{x}.t()[: {b}].neg_()", "{x}[-1:].fill_({a})", "{x}.narrow(0, 0, {x}.shape[0] // 2).zero_()",
          "{x}[{a} % max(len({x}), 1)] = 1.0", "{x}.view(-1)[::2].add_({a})", "{x}[1:] = {x}[:-1].clone()",
          "{x}.mul_({a} / 4)", "{x}.add_({x}.shape[0])", "{x}.diagonal().add_({a})"]
EFFECTS = ["LOG.append({x}.shape[0])", "LOG.append(tuple({x}.shape))", 'LOG.append(f"""{{{a}}} {{{x}.shape}}""")',
           "print({a}, {x}.shape, {x}.stride())", "COUNT[0] += {x}.shape[0]", "BY_SIZE[{x}.shape[0]] = {x}",
           "BY_SIZE.setdefault(len({x}), {x}.sum())", "LOG.append({a})", "LOG.append([{a}, {b}])", "LAST = {a}",
           "LAST = ({a}, LAST)[0]", "BOX.n = {x}.shape[0]", "BOX.n += {a}", "LOG.append({x}.shape)",
           "LOG.append({x}.shape[0] == BOX.n)", "print('%d|%s' % ({a}, {b}))", "LOG.append(range({a}))",
           "LOG.append(slice({a}, None))", "LOG.append(BY_SIZE.get({a}) is None)", "LOG.append({{'n': {a}}})",
           "BY_SIZE.pop({a}, None)", "LOG.append(({a}, [{b}, {{'k': {a}}}]))", "LOG.extend({x}.shape)",
           "LOG[-1:] = [{a}]", "LOG.append(sorted([{a}, {b}, 2]))", "LOG.append(str({a}) + 'n')", "assert {a} == {a}",
           "torch._dynamo.graph_break()", "LOG.append(repr({a} / 4))", "LOG.append(lambda: {a})", "{x}.tag = {a}",
           "LOG.append(functools.partial(max, {a}))", "BOX.sizes = [*{x}.shape]", "BOX.sizes[0] += 1"]
LAYOUTS = ["{w}[:, ::2][:, :m]", "{w}[1:, 1:m + 1]", "{t}.t()", "{w}[:1].expand(n, -1)[:, :m] if n else {v}",
           "{v}.clone()[:, :]", "{w}.as_strided((n, m), (2 * m + 2, 1))", "{w}[1:, m:2 * m]",
           "{t}.contiguous().t().clone(memory_format=torch.contiguous_format)"]
OTHERS = ["{v}", "{v}", "x", "x[:]", "x.detach()", "x.detach().t().t()", "x[:, :]", "base[1:, 1:m + 1]", "base[:n, :m]",
          "{v}[:1]", "{v}[:, :1]", "x.detach().clone()"]
MORE = {"n": ["{ints}[call]", "n", "m", "n + 1", "x.shape[0] - m", "call", "True", "{ints}[call] % 3", "len(x)"],
        "q": ["{ints}[call] / 2", "0.5", "n / 4", "1.0"], "v": ["torch.randn({sizes}[call])", "base[: {sizes}[call]]",
        "base", "x.detach().reshape(-1)", "torch.ones({sizes}[call], 3)[:, 1:]"],
        "L": ["[torch.ones(n, m)] * {counts}[call]", "[torch.ones(n, 1) * k for k in range({counts}[call] + 1)]",
        "[x.detach(), torch.ones({sizes}[call])[:1]]"], "Z": ["(n, m)", "[n, m, call]", "{{n, 3}}", "x.shape",
        "[{ints}[call]] * 2", "tuple(range(n % 4))"], "D": ["{{'a': torch.ones(1), 'n': torch.zeros(n, m)}}",
        "{{'b': torch.ones(n, 1)}}"], "t": ["'a' * (n % 5)", "str(n)"]}
MARKS = ["torch._dynamo.maybe_mark_dynamic(x, 0)", "torch._dynamo.maybe_mark_dynamic(x, [0, 1])",
         "torch._dynamo.mark_static(x, 1)", "torch._dynamo.mark_static(x, 0)",
         "if n > 1:\n    torch._dynamo.mark_dynamic(x, 0)", "if m > 1:\n    torch._dynamo.mark_dynamic(x, 1)"]


class SizesBuilder(Builder):
    """One that asks about sizes wherever an int or a condition stands."""

    def sized(self, templates):
        x = self.variable("x") or "x"
        return self.pick(templates).format(x=x, y=self.variable("x") or x, v=self.variable("v") or x, a=self.whole_number(), b=self.whole_number())

    def whole_number(self):
        known = self.of("n")
        if known and self.chance(0.55):
            return self.pick(known[-6:])
        return f"{self.variable('x') or 'x'}.shape[{self.number(0, 1)}]"

    def integer(self):
        return f"({self.sized(NUMBERS)})" if self.chance(0.3) else super().integer()

    def condition(self):
        return self.sized(CONDITIONS) if self.chance(0.6) else super().condition()

    def whole(self, depth):
        if self.chance(0.2):
            return f"({self.sized(WHOLE)})"
        return super().whole(depth)


def number_of_sizes(g):
    g.new("n", g.sized(NUMBERS))


def float_of_sizes(g):
    g.new("q", g.sized(FLOATS))


def tensor_of_sizes(g):
    kind, templates = g.pick([("x", WHOLE)] * 4 + [("r", ROWS), ("c", COLUMNS), ("v", VIEWS), ("v", VIEWS)])
    g.new(kind, g.sized(templates))


def same_variable(g):
    x = g.variable("x") or "x"
    g.line(f"{x} = {g.sized(WHOLE)}")


def write_by_size(g):
    g.line(g.sized(WRITES))


def effect_of_sizes(g):
    g.line(g.sized(EFFECTS))


def branch(g):
    with g.block(f"if {g.sized(CONDITIONS)}:"):
        inner(g, 2)
    if g.chance(0.5):
        with g.block("else:"):
            inner(g, 2)


def loop(g):
    x, i = g.variable("x") or "x", g.name("n")
    a = g.whole_number()
    head, bound = g.pick([(f"for {i} in range(min({a}, 4)):", i), (f"for {i} in range(0, {a} % 6, 2):", i), (f"for {i}, s in enumerate({x}.shape):", i), (f"for {i} in {x}.shape:", i),
                          (f"for {i}, row in zip(range(3), {x}):", i), (f"for {i} in reversed(range({a} % 4)):", i), (f"for {i} in range(len({x}))[:3]:", i),
                          (f"for {i} in [{a}, {a} + 1]:", i), (f"for {i}, part in enumerate({x}.split(2)[:3]):", i)])
    with g.block(head):
        g.bind(bound, "n")
        inner(g, 2)
        if "row in" in head:
            g.line(f"{x} = {x} + row")
        elif "part in" in head:
            g.line(f"LOG.append(part.shape[0])")
        elif g.chance(0.3):
            with g.block(f"if {g.sized(CONDITIONS)}:"):
                g.line(g.pick(["break", "continue"]))


def counting_down(g):
    n = g.new("n", f"min({g.whole_number()}, 9)")
    with g.block(f"while {n} > {g.number(0, 3)}:"):
        g.line(g.pick([f"{n} -= 2", f"{n} //= 2", f"{n} = {n} - 1"]))
        inner(g, 2)


def sizes_taken_apart(g):
    x, a, b = g.variable("x") or "x", g.name("n"), g.name("n")
    g.line(g.pick([f"{a}, {b} = {x}.shape", f"*_, {a}, {b} = {x}.size()", f"{a}, {b} = map(int, {x}.shape)", f"({a}, {b}), _ = {x}.shape, {x}.stride()", f"{a}, {b} = [s + 1 for s in {x}.shape]",
                   f"{a}, {b} = sorted({x}.shape)", f"{a}, {b} = {x}.stride()", f"{a} = ({b} := {x}.shape[0]) * 2", f"{a}, {b} = divmod({x}.numel(), 4)", f"{a}, {b} = {x}.t().shape"]))
    g.bind(a, "n")
    g.bind(b, "n")


def container_of_sizes(g):
    g.new("Z", g.sized(["[{a}, {b}]", "({a}, {b}, 2)", "{{{a}, 3}}", "[{a}] * 3", "list({x}.shape)", "tuple({x}.shape)", "{x}.shape", "list(range({a} % 5))", "[s * 2 for s in {x}.shape]",
                        "collections.deque([{a}, {b}])", "{{s: 1 for s in {x}.shape}}", "[[{a}], [{b}]]", "collections.Counter({x}.shape)", "torch.Size([{a}, 3])"]))


STATEMENTS = [(3, number_of_sizes), (1, float_of_sizes), (4, tensor_of_sizes), (1.5, same_variable),
              (1.3, write_by_size), (1.5, effect_of_sizes), (1.5, branch), (1.2, loop), (0.6, counting_down),
              (0.8, sizes_taken_apart), (0.8, container_of_sizes)]


def calls_of_each_other(g):
    """Functions that take sizes and tensors, the later calling the earlier."""
    made = []
    for _ in range(g.number(1, 3)):
        name = g.name("sized")
        function(g, f"def {name}(x, n1=2, n2=None):", {"x": "x", "n1": "n"}, g.number(2, 4), result=False)
        a, b = (g.pick(["n1", "x.shape[0]", "x.shape[1]", "n1 + 1", "len(x)"]) for _ in range(2))
        g.declared += [f"    {line}" for line in g.pick([[f"return x * {a}"], [f"return x[: {a}].sum(0) + x"], [f"if {a} > {b}:", f"    return x + {a}", f"return x - {b}"],
                                                         [f"return {made[-1]}(x, {a}) + {made[0]}(x, n1={b})" if made else "return x"], [f"return x if n1 < 1 else {name}(x * 0.5, min(n1, 4) - 1)"]])]
        made.append(name)

    def use(g):
        x, a, name = g.variable("x") or "x", g.whole_number(), g.pick(made)
        g.line(g.pick([f"{x} = {name}({x})", f"{x} = {name}({x}, {a})", f"{x} = {name}({x}, n1={a})", f"{x} = {name}({g.sized(WHOLE)}, {a} + 1)", f"{x} = {x} + {name}({x}, *({a},))"]))

    g.statements.append((2.5, use))


def drawn(g, pool, calls):
    """Sizes for so many calls: anew in each, or from few, or the same."""
    few = [g.pick(pool) for _ in range(2)]
    how = g.rng.random()
    return [g.pick(pool) if how < 0.7 else g.pick(few) if how < 0.85 else few[0] for _ in range(calls)]


def inputs(g, dtype, grad, draws, calls):
    """`inputs(call)` of programs whose sizes vary; returns names and kinds of the arguments."""
    pool = g.pick([EXTENTS[0]] * 4 + EXTENTS[1:])
    g.line("def inputs(call):")
    g.depth = 1
    g.line(f"n, m = {drawn(g, pool, calls)}[call], {drawn(g, pool, calls)}[call]" if g.chance(0.85) else f"n = m = {drawn(g, pool, calls)}[call]")
    template = g.pick(draws)

    def draw(rows, columns, of=dtype):
        return template.format(rows, columns, of[6:])

    pieces = dict(v=draw("n", "m"), t=draw("m", "n"), w="base")
    g.line(f"base = {draw('n + 1', '2 * m + 2')}")
    g.line(f"x = {draw('n', 'm')}")
    if g.chance(0.5):
        calls_of_it = sorted(g.rng.sample(range(calls), g.number(1, calls)))
        g.line(f"if call in {tuple(calls_of_it)}:\n    x = ({g.pick(LAYOUTS).format(**pieces)})[:n]")
    names = {"x": "x"}
    if g.chance(0.6):
        g.line("y = " + g.pick(OTHERS).format(**pieces))
        names["y"] = "x"
    if grad:
        g.line(g.pick(["x = x.detach().requires_grad_()"] * 3 + ["base = base.detach().requires_grad_()\nx = base[:n, 1:m + 1]"]))
        if "y" in names and g.chance(0.6):
            g.line(g.pick(["y = y.detach().requires_grad_()", "y = x * 1", "y = x[:]"]))
    for kind in g.rng.sample(sorted(MORE), g.number(0, 3)) + ["n"] * g.number(0, 2):
        name = g.name(kind)
        lists = {what: drawn(g, of, calls) for what, of in (("ints", INTS), ("sizes", pool), ("counts", [0, 1, 2, 3]))}
        g.line(f"{name} = {g.pick(MORE[kind]).format(**lists)}")
        names[name] = kind
    if g.chance(0.25):
        g.line(g.pick(MARKS))
    if g.has_data:
        names.update(data.arguments(g))
    names["call"] = "n"
    g.line(f"return {', '.join(names)},")
    g.depth = 0
    g.line("")
    return names


def prepare(g):
    """What a program about sizes declares and may do, beside what any program may."""
    g.declared.append("class Box:\n    def __init__(self):\n        self.n, self.sizes = 2, [1, 2]\nBY_SIZE = {}\nLAST = 3\nBOX = Box()")
    g.statements += STATEMENTS
    if g.chance(0.6):
        calls_of_each_other(g)

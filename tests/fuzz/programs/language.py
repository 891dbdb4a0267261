"""What else the language has: jumps out of `finally`, groups of exceptions, classes and functions made in the function, starred calls, chains."""

from .flow import raising
from .grammar import inner, statement


@statement(0.5)
def jumps_through_finally(g):
    x, i = g.variable("x") or "x", g.name("n")
    with g.block(f"for {i} in range({g.number(1, 4)}):"):
        g.bind(i, "n")
        with g.block("try:"):
            inner(g, 2)
            with g.block(f"if {g.condition()}:"):
                g.line(g.pick(["continue", "break", "continue", "break", "raise KeyError('k')", f"return {x}, 'out'"]))
            g.line(f"{x} = {x} + {i}")
        if g.chance(0.4):
            with g.block("except KeyError:"):
                g.line(g.pick(["continue", "break", "pass", "LOG.append('key')"]))
        with g.block("finally:"):
            g.line(g.pick([f"LOG.append({i})", "COUNT[0] += 1", f"{x} = {x} * 0.5", f"if {i} == 2:\n    break"]))
    if g.chance(0.3):
        with g.block("else:"):
            inner(g, 1)


@statement(0.3)
def groups_of_exceptions(g):
    x = g.variable("x") or "x"
    made = g.pick(["ExceptionGroup('g', [ValueError('v'), KeyError('k')])", "ExceptionGroup('g', [ExceptionGroup('h', [TypeError(call)]), Oops(1)])",
                   "ValueError('plain')", "ExceptionGroup('g', [ValueError(1), ValueError(2)])"])
    with g.block("try:"):
        with g.block("try:"):
            inner(g, 1)
            g.line(f"raise {made}" if g.chance(0.7) else raising(g))
        with g.block("except* ValueError as group:"):
            g.line(g.pick(["LOG.append(len(group.exceptions))", "LOG.append(str(group))", f"{x} = {x} + 1", "raise"]))
        if g.chance(0.5):
            with g.block("except* (TypeError, Oops) as group:"):
                g.line(g.pick(["LOG.append([type(e).__name__ for e in group.exceptions])", f"{x} = {x} * 2", "pass"]))
    with g.block("except (Exception, ExceptionGroup) as e:"):
        g.line(g.pick(["LOG.append(type(e).__name__)", "LOG.append(len(getattr(e, 'exceptions', ())))", "LOG.append(e.args[0])"]))


@statement(0.4)
def context_of_exceptions(g):
    with g.block("try:"):
        with g.block("try:"):
            g.line(raising(g))
        with g.block(f"except {g.pick(['Exception', '(ValueError, KeyError, LookupError)'])} as e:"):
            g.line(g.pick(["raise Oops('second')", "raise Oops('second') from e", "raise Oops('second') from None", "1 / 0", "raise"]))
    with g.block("except Exception as e:"):
        g.line(g.pick(["LOG.append(type(e.__context__).__name__)", "LOG.append(type(e.__cause__).__name__)", "LOG.append(e.__suppress_context__)",
                       "LOG.append(sys.exc_info()[0] is type(e))", "LOG.append(e.__traceback__ is None)", "LOG.append(getattr(e, '__notes__', 0))"]))
    g.line("LOG.append(sys.exc_info()[0] is None)")


@statement(0.6)
def functions_made_here(g):
    x, n = g.variable("x") or "x", g.integer()
    f = g.name("fn")
    g.line(g.pick([
        f"def {f}(t, *rest, by={n}, **more):\n    return t * by + len(rest) + len(more)\n{x} = {f}({x}, *range(2), **{{'z': 1}})",
        f"def {f}(t, k={x}):\n    return t + k\n{x} = {f}({x})",
        f"total = {n}\ndef {f}(t):\n    nonlocal total\n    total += 1\n    return t + total\n{x} = {f}({f}({x}))\nLOG.append(total)",
        f"def {f}(t, depth=0):\n    return t if depth > 2 else {f}(t * 0.5 + 1, depth + 1)\n{x} = {f}({x})",
        f"def {f}():\n    for k in range(3):\n        got = yield k\n        LOG.append(got)\nit = {f}()\nnext(it)\n{x} = {x} + it.send({n})",
        f"def {f}(t):\n    t += 1\n    return t\n{x} = {f}({x} * 1)",
        f"{f} = [lambda t, k=k: t + k for k in range(3)]\n{x} = {f}[{n} % 3]({x})",
        f"{f} = (lambda *a, **k: (a, k))\nLOG.append({f}(1, *[2], z=3, **dict(y={n})))",
        f"def {f}(a, /, b, *, c):\n    return a + b - c\n{x} = {f}({x}, b=1, c={n})",
        f"def {f}(a, b):\n    return a\ntry:\n    {f}({x})\nexcept TypeError as e:\n    LOG.append(str(e))"]))


@statement(0.4)
def classes_made_here(g):
    x, n = g.variable("x") or "x", g.integer()
    c = g.name("Local")
    g.line(g.pick([
        f"class {c}:\n    k = {n}\n    def __call__(self, t):\n        return t * self.k\n{x} = {c}()({x})",
        f"class {c}(list):\n    def total(self):\n        return sum(self)\n{x} = {x} + {c}([1, {n}]).total()",
        f"class {c}(dict):\n    def __missing__(self, key):\n        return {n}\n{x} = {x} + {c}(a=1)['b']",
        f"{c} = type('{c}', (), {{'k': {n}, 'up': lambda self, t: t + self.k}})\n{x} = {c}().up({x})",
        f"{c} = collections.namedtuple('{c}', 'a b')\np = {c}({x}, {n})\n{x} = p.a + p.b\nLOG.append(p._fields)",
        f"class {c}(Oops):\n    def __init__(self, code):\n        super().__init__('c')\n        self.code = code\n"
        f"try:\n    raise {c}({n})\nexcept Oops as e:\n    LOG.append((e.code, e.args))",
        f"@dataclasses.dataclass\nclass {c}:\n    t: object\n    n: int = 2\nr = {c}({x})\nr.n += {n}\n{x} = r.t * r.n",
        f"class {c}(torch.nn.Module):\n    def forward(self, t):\n        return t + {n}\n{x} = {c}()({x})",
        f"box = type('Box', (), {{}})()\nbox.t = {x}\nbox.n = {n}\ndel box.n\n{x} = box.t + len(vars(box))"]))


@statement(0.6)
def expressions(g):
    x, n, L = g.variable("x") or "x", g.integer(), g.variable("L")
    choices = [f"{x} = {x} + (1 if 0 < {n} <= 3 != 5 else 2)", f"LOG.append([w := {n}, w * 2])", f"LOG.append([w for k in range(3) if (w := k + {n}) > 1])",
               f"{x} = {x} + (lambda: {n})()", f"LOG.append([*range(2), *'ab', {n}])", f"LOG.append({{**dict(a=1), 'b': {n}}})",
               f'LOG.append(f"""{{{n}=}} {{{n}!r:>5}} {{call:{{call + 2}}d}}""")', f"a, (b, *c), d = 1, (2, 3, {n}), 4\nLOG.append((a, b, c, d))",
               f"LOG.append({n} if {g.condition()} else 'no')", f"{x} = {x} * (not {n}) + ({n} or 2) + ({n} and 3)",
               f"s = slice(None, {n} if {n} > 0 else None)\n{x} = {x} + {x}[s].shape[0]", f"LOG.append([(i, j) for i in range(3) for j in range(i) if i + j < 3])",
               f"LOG.append({{k: v for k, v in enumerate('abc') if k != {n}}})", f"LOG.append(tuple(sorted({{{n}, 1, 2}})))",
               f"LOG.append('%s|%5.2f|%x' % ('a', {n} * 1.0, abs({n})))", f"LOG.append(1 < 2 < {n})", f"LOG.append(({n}).__add__(1))",
               f"LOG.append(divmod({n}, 3) + (pow(2, abs({n}), 5),))", f"LOG.append(round({n} * 0.37, 1))", f"LOG.append(bin({n})[2:] + hex(255))",
               f"{x} = {x}[(..., slice(0, None))]", f"LOG.append(({n} << 2) ^ 5 | 3 & ~{n})", f"LOG.append(int('1' + str(abs({n})), 8 + 2))"]
    if L:
        choices += [f"a, *b = *{L}, {x}\n{x} = a + len(b)", f"{x} = torch.maximum(*[*{L}, {x}, {x}][:2])", f"del {L}[1:]", f"{L}[0:0] = [{x}]",
                    f"{x} = {x} + (L0 := {L})[0]", f"assert {L}, 'empty'"]
    g.line(g.pick(choices))

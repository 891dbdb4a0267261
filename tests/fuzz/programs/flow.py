"""Control flow, comprehensions, exceptions, context managers."""

from .builder import Builder
from .grammar import inner, statement


def update(g: Builder):
    """Some tensor that is already there changes."""
    x = g.variable("x") or "x"
    g.line(f"{x} = {g.tensor('x')}")


@statement(3)
def new_tensor(g):
    kind = g.pick("xxxxrcs")
    g.new(kind, g.tensor(kind))


@statement(2)
def assign_again(g):
    update(g)


@statement(1)
def new_number(g):
    if g.chance(0.7):
        g.new("n", g.integer())
    else:
        g.new("q", g.pick([f"{g.integer()} / 2", f"{g.number(1, 5)} * 0.25", "float(call)"]))


@statement(0.5)
def number_of_a_tensor(g):
    s = g.tensor("s")
    g.new("q", f"round({s}.item(), 1)" if g.chance(0.5) else f"float({s} > 0)")


@statement(1)
def conditional(g):
    with g.block(f"if {g.condition()}:"):
        inner(g)
    if g.chance(0.3):
        with g.block(f"elif {g.condition()}:"):
            inner(g, 2)
    if g.chance(0.5):
        with g.block("else:"):
            inner(g, 2)


def jump(g):
    if g.chance(0.5):
        with g.block(f"if {g.condition()}:"):
            g.line(g.pick(["break", "continue"]))


@statement(1)
def for_loop(g):
    i = g.name("n")
    over = g.pick([f"range({g.number(0, 4)})", f"range({g.integer()} % 4)", "(3, 1, 2)", "reversed(range(3))",
                   "range(4, 0, -2)"])
    with g.block(f"for {i} in {over}:"):
        g.bind(i, "n")
        inner(g)
        jump(g)
        update(g)
    if g.chance(0.3):
        with g.block("else:"):
            inner(g, 2)


@statement(0.7)
def loop_over_rows(g):
    t, row, i = g.variable("x") or "x", g.name("r"), g.name("n")
    with g.block(f"for {i}, {row} in enumerate({t}[:3]):"):
        g.bind(i, "n")
        g.bind(row, "r")
        inner(g, 2)
        jump(g)
        update(g)


@statement(0.7)
def while_loop(g):
    n = g.new("n", str(g.number(0, 3)))
    counter = g.name("count")
    g.line(f"{counter} = 0")
    with g.block(f"while {n} < {g.number(2, 6)} and {counter} < 5:"):
        g.line(f"{n} += 1\n{counter} += 1")
        inner(g, 2)
        jump(g)
    if g.chance(0.3):
        with g.block("else:"):
            update(g)


@statement(0.7)
def comprehension(g):
    i, t = g.name("k"), g.variable("x") or "x"
    source = g.pick([f"range({g.number(1, 4)})", "(1, 2, 3)", f"range({g.integer()} % 4)"])
    what = g.pick(["L", "D", "sum", "gen", "nested", "set"])
    if what == "L":
        g.new("L", f"[{t} * {i} for {i} in {source} if {i} != {g.number(0, 2)}]")
    elif what == "D":
        g.new("D", f"{{f'k{{{i}}}': {t} + {i} for {i} in {source}}}")
    elif what == "sum":
        g.new("x", f"{t} + sum({t} * {i} for {i} in {source})")
    elif what == "gen":
        g.new("n", f"sum({i} * 2 for {i} in {source} if {g.condition()})")
    elif what == "set":
        g.new("n", f"len({{{i} % 2 for {i} in {source}}})")
    else:
        j = g.name("k")
        g.new("L", f"[{t} * {i} + {j} for {i} in {source} for {j} in range({i} % 3)]")


@statement(0.7)
def matching(g):
    subject = g.pick([f"({g.integer()}, 'a')", "[call, 2, 3]", "{'k': call, 'z': 1}", g.integer(),
                      f"({g.variable('x') or 'x'}, call)", "(call, None)"])
    n = g.name("n")
    with g.block(f"match {subject}:"):
        for case in g.rng.sample([f"case (int() as {n}, 'a') if {n} > 1:", f"case [0, *{n}r]:",
                                  f"case {{'k': 1 as {n}, **{n}r}}:", f"case int({n}) | [{n}, _, _]:",
                                  f"case (torch.Tensor() as {n}t, 2):", f"case (_, None | 3):",
                                  f"case (0 | 1 as {n}):"], 3):
            if case.startswith("case int") and "|" in case:
                case = f"case int({n}):"
            with g.block(case):
                update(g)
        with g.block("case _:"):
            update(g)


ERRORS = ["ValueError", "KeyError", "RuntimeError", "TypeError", "IndexError", "Oops", "ZeroDivisionError",
          "AttributeError"]


def raising(g):
    x = g.variable("x") or "x"
    return g.pick([f"raise {g.pick(ERRORS)}('e{g.number(0, 9)}')", f"raise {g.pick(ERRORS)}(call, 'b')",
                   "{}['missing']", "[][call]", "1 / (call - call)", f"{x}.nope", f"{x}.view(7, 11)", "int('z')",
                   f"{x} @ torch.ones(1000003, 1)", "None + 1", f"{x}[100000]", "assert call < 0, 'no'",
                   f"raise {g.pick(ERRORS)}(f'{{call}} {{{x}.shape}}')", "next(iter([]))", "a, b = (1, 2, 3)"])


@statement(1.3)
def trying(g):
    with g.block("try:"):
        inner(g, 2)
        if g.chance(0.7):
            guard = f"if {g.condition()}:" if g.chance(0.6) else None
            if guard:
                with g.block(guard):
                    g.line(raising(g))
            else:
                g.line(raising(g))
        if g.chance(0.3):
            inner(g, 1)
    handlers = g.number(0, 2)
    for _ in range(handlers):
        kinds = g.pick([g.pick(ERRORS), f"({g.pick(ERRORS)}, {g.pick(ERRORS)})", "Exception", "LookupError"])
        e = g.name("e")
        with g.block(f"except {kinds} as {e}:"):
            g.line(g.pick([f"print(type({e}).__name__, {e})", f"LOG.append(str({e}))",
                           f"LOG.append(type({e}).__name__)", "pass", f"LOG.append(len({e}.args))"]))
            inner(g, 2)
            if g.chance(0.25):
                g.line(g.pick(["raise", f"raise RuntimeError('again') from {e}", "raise ValueError('other')",
                               f"raise KeyError('k') from None", f"{e}.add_note('n')\nraise", "return x"]))
    if handlers and g.chance(0.3):
        with g.block("else:"):
            inner(g, 1)
    if not handlers or g.chance(0.4):
        with g.block("finally:"):
            inner(g, 2)
            if g.chance(0.1):
                g.line(f"return {g.variable('x') or 'x'}")


MANAGERS = ["torch.no_grad()", "torch.enable_grad()", "torch.set_grad_enabled(call % 2 == 0)",
            "contextlib.nullcontext()", "torch.autocast('cpu', torch.bfloat16)",
            "contextlib.suppress(ValueError, KeyError)", "torch.inference_mode()", "torch.inference_mode(call % 2 == 0)",
            "contextlib.redirect_stdout(io.StringIO())", "torch.random.fork_rng(devices=[])",
            "torch.autocast('cpu', enabled=False)"]


@statement(1)
def with_block(g):
    manager = g.pick(MANAGERS)
    with g.block(f"with {manager}:"):
        inner(g)
        if "suppress" in manager and g.chance(0.5):
            with g.block(f"if {g.condition()}:"):
                g.line(raising(g))
    g.new("n", "int(torch.is_grad_enabled())")


@statement(0.25)
def grad_mode_left_changed(g):
    g.line(f"torch.set_grad_enabled({g.pick(['True', 'False', 'call % 2 == 0'])})")


@statement(0.15)
def early_return(g):
    with g.block(f"if {g.condition()}:"):
        g.line(f"return {g.tensor('x')}, 'early'")


@statement(0.15)
def escaping_error(g):
    with g.block(f"if {g.condition()}:"):
        g.line(raising(g))


@statement(0.5)
def unpacking(g):
    x = g.variable("x") or "x"
    a, b, c = g.name("x"), g.name("x"), g.name("n")
    g.line(g.pick([f"{a}, {b} = {x} + 1, {x}", f"{a}, *_, {b} = [{x}, 1, 2, {x} * 2]",
                   f"({a}, ({b}, _)) = ({x} * 1, ({x}, 4))", f"{a} = {b} = {x} + 0.5"]))
    g.bind(a, "x")
    g.bind(b, "x")
    g.line(f"{c} = ({c}w := call + 1) * 2")
    g.bind(c, "n")


@statement(0.3)
def deletion(g):
    name = g.new("x", g.tensor())
    g.line(f"LOG.append({name}.shape[0])\ndel {name}")
    g.scopes[-1].pop(name)

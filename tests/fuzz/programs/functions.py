"""Functions: closures, defaults, generators (sent to, closed, thrown into, abandoned), decorators, managers, recursion."""

from .grammar import body, feature, inner


def function(g, head, names, count=3, result=True):
    """A function at module level, its body generated; its text goes to the declarations."""
    before, g.text = g.text, []
    depth, g.depth = g.depth, 0
    scopes, g.scopes = g.scopes, [dict(names)]
    g.line(head)
    g.depth = 1
    g.line("call = 1")
    body(g, count)
    if result:
        g.line(f"return {g.tensor('x', 2)}")
    g.declared += g.text
    g.text, g.depth, g.scopes = before, depth, scopes


@feature(2)
def helpers(g):
    name = g.name("helper")
    default = g.pick(["2", "[]", "None", "0.5", "(1, 2)"])
    head = g.pick([f"def {name}(x, n1={default}):", f"def {name}(x, *, n1=1):", f"def {name}(x, *rest, n1=2, **more):",
                   f"def {name}(x, /, n1=1):", f"@functools.wraps(len)\ndef {name}(x, n1=1):"])
    function(g, head, {"x": "x", "n1": "n" if default not in ("[]", "None",
        "(1, 2)") or "n1=1" in head or "n1=2" in head else "any"})
    if g.chance(0.4):
        g.changes.append(g.pick([f"{name}.__defaults__ = (call,)" if "*" not in head and "/" not in head else f"{name}.mark = call",
                                 f"{name}.mark = call", f"global {name}\n{name} = lambda x, *a, **k: x * call"]))

    def use(g):
        x = g.variable("x") or "x"
        g.line(g.pick([f"{x} = {name}({x})", f"{x} = {x} + {name}({x})", f"{x} = {name}({g.tensor('x', 2)})",
                       f"{x} = {name}(x={x})" if "/" not in head else f"{x} = {name}({x})",
                       f"{x} = {name}({x}, n1=3)" if "/" not in head or True else "",
                       f"{x} = sum(map({name}, [{x}, {x}]))", f"{x} = functools.partial({name}, n1=2)({x})",
                       f"{x} = {name}(*[{x}], **{{'n1': 1}})", f"{x} = (lambda t: {name}(t))({x})"]))

    g.statements.append((2, use))


@feature(1.5)
def closures(g):
    g.declared.append(g.pick(["def make_counter(start):\n    total = start\n    def step(t, by=1):\n        nonlocal total\n"
                              "        total += by\n        return t + total\n    def peek():\n        return total\n"
                              "    return step, peek\nSTEP, PEEK = make_counter(1)",
                              "def make_counter(start):\n    kept = [start]\n    def step(t, by=1):\n        kept.append(by)\n"
                              "        return t * len(kept)\n    return step, lambda: len(kept)\nSTEP, PEEK = make_counter(2)",
                              "def make_counter(start):\n    last = None\n    def step(t, by=1):\n        nonlocal last\n"
                              "        old, last = last, t\n"
                              "        return t if old is None or old.shape != t.shape else t + old\n"
                              "    return step, lambda: last is None\nSTEP, PEEK = make_counter(2)"]))
    if g.chance(0.5):
        g.changes.append(g.pick(["STEP(torch.zeros(1), 2)", "global STEP, PEEK\nSTEP, PEEK = make_counter(call)"]))

    def use(g):
        x, n = g.variable("x") or "x", g.integer()
        g.line(g.pick([f"{x} = STEP({x})", f"{x} = STEP({x}, by={n})", "LOG.append(PEEK())", f"{x} = {x} + PEEK()",
                       f"s, p = make_counter({n})\n{x} = s(s({x}))\nLOG.append(p())",
                       f"fs = [lambda t, i=i: t * i for i in range(3)]\n{x} = fs[{n} % 3]({x})",
                       f"fs = [lambda t: t * i for i in range(2)]\n{x} = fs[0]({x})",
                       f"def inner(t):\n    nonlocal_ = t + {n}\n    return nonlocal_ * {x}.shape[0]\n{x} = inner({x})",
                       f"STEP.mark = {n}", f"LOG.append(getattr(STEP, 'mark', 0))",
                       f"KEPT_F.append(lambda t: t + {n})"]))

    g.declared.append("KEPT_F = []")
    g.statements.append((2, use))


GENERATORS = ["def gen(t, n=3):\n    try:\n        for i in range(n):\n            got = yield t * i\n"
              "            if got is not None:\n                t = t + got\n    finally:\n"
              "        LOG.append('closed')\n    return 'end'",
              "def gen(t, n=3):\n    with torch.no_grad():\n        yield t * 0.5\n        yield t * 0.25\n"
              "    yield t",
              "def gen(t, n=3):\n    try:\n        yield t\n        yield t + 1\n    except ValueError as e:\n"
              "        LOG.append(str(e))\n        yield t - 1\n    except GeneratorExit:\n"
              "        LOG.append('exit')\n        raise",
              "def gen(t, n=3):\n    COUNT[0] += 1\n    yield t\n    COUNT[0] += 10\n    yield from sub(t)\n"
              "    COUNT[0] += 100\ndef sub(t):\n    try:\n        v = yield t * 2\n"
              "        LOG.append(v is None)\n    finally:\n        COUNT[0] += 1000",
              "def gen(t, n=3):\n    for row in t:\n        if n == 0:\n            return\n        n -= 1\n"
              "        yield row"]
GENERATOR_USES = ["for t in gen({x}):\n    {x} = {x} + t", "for t in gen({x}):\n    {x} = {x} + t\n    break",
                  "it = gen({x})\n{x} = {x} + next(it)", "it = gen({x})\n{x} = {x} + next(it)\nit.close()",
                  "it = gen({x})\nnext(it, None)\ndel it",
                  "it = gen({x})\nfirst = next(it)\ntry:\n    {x} = {x} + it.send(1)\nexcept StopIteration:\n"
                  "    {x} = {x} - 1", "it = gen({x})\nnext(it)\ntry:\n    {x} = {x} + it.throw(ValueError('thrown'))\n"
                  "except (ValueError, StopIteration) as e:\n    LOG.append(type(e).__name__)",
                  "{x} = {x} + len(list(gen({x})))", "a = list(zip(gen({x}), range(2)))\n{x} = {x} + len(a)",
                  "OPEN.append(gen({x}))", "if OPEN:\n    {x} = {x} + next(OPEN[0], 1)",
                  "{x} = {x} + sum(t.sum() for t in gen({x}))", "if OPEN:\n    OPEN.pop().close()",
                  "def deleg():\n    r = yield from gen({x})\n    LOG.append(r)\nfor t in deleg():\n"
                  "    {x} = {x} + 1", "first, *rest = gen({x})\n{x} = {x} + len(rest)",
                  "{x} = {x} + any(t.ndim == 1 for t in gen({x}))",
                  "for i, t in enumerate(itertools.islice(gen({x}), 2)):\n    {x} = {x} * (i + 1)",
                  "try:\n    for t in gen({x}):\n        raise KeyError('in loop')\nexcept KeyError:\n"
                  "    LOG.append('caught')", "for a, b in itertools.zip_longest(gen({x}), [1, 2]):\n    LOG.append(b)",
                  "g1 = (t + 1 for t in gen({x}))\n{x} = {x} + next(g1).sum()", "del OPEN[:]",
                  "print(*(t.ndim for t in gen({x})))"]


@feature(1.5)
def generators(g):
    g.declared.append(g.pick(GENERATORS))
    g.declared.append("OPEN = []")
    uses = GENERATOR_USES if g.chance(0.3) else [u for u in GENERATOR_USES if "OPEN" not in u]
    g.statements.append((3, lambda g: g.line(g.pick(uses).format(x=g.variable("x") or "x"))))


@feature(1)
def managers(g):
    g.declared.append(g.pick(["@contextlib.contextmanager\ndef scope(k=2):\n    LOG.append('in')\n    try:\n        yield k\n"
                              "    finally:\n        LOG.append('out')",
                              "@contextlib.contextmanager\ndef scope(k=2):\n    with torch.no_grad():\n        yield k",
                              "@contextlib.contextmanager\ndef scope(k=2):\n    try:\n        yield k\n"
                              "    except ValueError as e:\n        LOG.append(str(e))",
                              "class scope:\n    def __init__(self, k=2):\n        self.k = k\n    def __enter__(self):\n"
                              "        LOG.append('in')\n        self.before = torch.is_grad_enabled()\n"
                              "        torch.set_grad_enabled(self.k > 1)\n        return self.k\n"
                              "    def __exit__(self, *info):\n        torch.set_grad_enabled(self.before)\n"
                              "        LOG.append(info[0] is None)\n        return False",
                              "class scope(contextlib.ContextDecorator):\n    def __init__(self, k=2):\n        self.k = k\n"
                              "    def __enter__(self):\n        COUNT[0] += 1\n        return self.k\n"
                              "    def __exit__(self, kind, value, trace):\n        COUNT[0] += 10\n"
                              "        return kind is ValueError"]))

    def use(g):
        x = g.variable("x") or "x"
        with g.block(f"with scope({g.pick(['', '1', '3'])}) as {g.name('k')}:" if g.chance(0.6) else "with scope() as k1, scope(1) as k2:"):
            inner(g, 2)
            if g.chance(0.35):
                with g.block(f"if {g.condition()}:"):
                    g.line(g.pick(["raise ValueError('in scope')", f"return {x}", "raise KeyError('k')"]))
            g.line(f"{x} = {x} * 2")
        if g.chance(0.2):
            g.line("with contextlib.ExitStack() as stack:\n    v = stack.enter_context(scope())\n"
                   "    stack.callback(LOG.append, 'callback')")

    g.statements.append((2, use))


@feature(0.6)
def decorated(g):
    g.declared.append(g.pick(["def traced(fn):\n    @functools.wraps(fn)\n    def wrapper(*args, **kw):\n"
                              "        COUNT[0] += 1\n        LOG.append(fn.__name__)\n        return fn(*args, **kw)\n"
                              "    return wrapper\n@traced\ndef deco(t, k=1):\n    return t * k + COUNT[0]",
                              "@functools.lru_cache(maxsize=4)\ndef cached(k):\n    COUNT[0] += 1\n    return k * 2\n"
                              "def deco(t, k=1):\n    return t * cached(k)",
                              "@torch.no_grad()\ndef deco(t, k=1):\n    return t * k", "@torch.inference_mode()\ndef deco(t, k=1):\n    return t * k",
                              "@functools.singledispatch\ndef kind(v):\n    return 1\n@kind.register\ndef _(v: int):\n"
                              "    return 2\n@kind.register\ndef _(v: torch.Tensor):\n    return 3\ndef deco(t, k=1):\n"
                              "    return t * kind(k) + kind(t)",
                              "def deco(t, k=1):\n    return t if k <= 0 or k > 5 else deco(t * 0.5 + k, k - 1)",
                              "deco = functools.partial(lambda t, k, s: t * k + s, s=2)"]))

    def use(g):
        x, n = g.variable("x") or "x", g.integer()
        g.line(f"{x} = deco({x}, {n})" if g.chance(0.7) else f"{x} = deco({x}, k={n}) + deco({x}, 1)")

    g.statements.append((2, use))


@feature(1.2)
def plain_globals(g):
    names = g.rng.sample(["SCALE", "FLAG", "STATE", "WORD", "NOTHING"], 2)
    values = {"SCALE": "2.0", "FLAG": "True", "STATE": "0", "WORD": "'abc'", "NOTHING": "None"}
    changes = {"SCALE": "SCALE * 1.5", "FLAG": "not FLAG", "STATE": "call", "WORD": "WORD + 'z'",
               "NOTHING": "None if call % 2 else 1"}
    uses = {"SCALE": ["{x} = {x} * SCALE", "SCALE = SCALE + 0.5", "SCALE = {n}"],
            "FLAG": ["{x} = {x} + 1 if FLAG else {x} - 1", "FLAG = not FLAG", "FLAG = True"], "STATE": ["STATE += 1",
        "{x} = {x} + STATE", "STATE = {n}"], "WORD": ["{x} = {x} + len(WORD)", "WORD = 'q' + WORD[:4]",
                                            "LOG.append(WORD)"],
            "NOTHING": ["{x} = {x} * (2 if NOTHING is None else 3)", "NOTHING = {x}", "NOTHING = None",
                        "NOTHING = [{n}]"]}
    for name in names:
        g.declared.append(f"{name} = {values[name]}")
        if g.chance(0.6):
            g.changes.append(f"global {name}\n{name} = {changes[name]}")
        g.statements.append((1.5, lambda g, name=name: g.line(g.pick(uses[name]).format(x=g.variable("x") or "x",
            n=g.integer()))))

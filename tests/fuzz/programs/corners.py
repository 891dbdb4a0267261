"""Numbers and types at their edges; corners of the language: order of evaluation, patterns, managers that swallow, slices with steps."""

from .grammar import feature, inner, statement

TYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64"]
VALUES = ["0", "1", "-1", "2.5", "-0.0", "math.nan", "math.inf", "-math.inf", "True", "7", "1e30", "100"]
NUMBERS = ["2", "2.5", "True", "1j", "-0.0", "math.nan", "math.inf", "2 ** 40", "-1", "0", "False", "3 - 2j", "1e-40", "call", "float(call)"]
TWO = ["{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} // {b}", "{a} % {b}", "{a} ** {b}", "{a} < {b}", "{a} == {b}", "{a} != {b}", "{a} & {b}", "{a} | {b}", "{a} ^ {b}", "{a} << {b}",
       "{a} >> {b}", "torch.where(torch.tensor([True, False]), {a}, {b})", "torch.where({a} > 0, {a}, {b})", "torch.add({a}, {b}, alpha=2)", "torch.sub({a}, {b}, alpha=0.5)", "torch.lerp({a} + 0.0, {b} + 0.0, 0.25)",
       "torch.true_divide({a}, {b})", "torch.div({a}, {b}, rounding_mode='trunc')", "torch.fmod({a}, {b})", "torch.remainder({a}, {b})", "torch.clamp({a}, min={b})", "torch.clamp({a}, max={b})", "torch.result_type({a}, {b})",
       "torch.copysign({a}, {b})", "torch.float_power({a}, {b})", "torch.xlogy({a}, {b})", "torch.full_like({a}, {b})", "{a}.masked_fill({a} == {a}, {b})", "torch.eq({a}, {b}).all()", "torch.isclose({a}, {a} * {b})"]
TWO_TENSORS = ["torch.maximum({a}, {b})", "torch.fmin({a}, {b})", "torch.cat([{a}.flatten(), {b}.flatten()])", "torch.stack([{a}.sum(), {b}.sum()])", "torch.hypot({a}, {b})", "torch.atan2({a}, {b})", "torch.logical_xor({a}, {b})",
               "torch.equal({a}, {b})", "{a}.to({b})", "{a}.type_as({b})", "torch.outer({a}.flatten(), {b}.flatten())", "{a}.flatten() @ {b}.flatten()", "torch.nextafter({a}, {b})", "torch.ldexp({a}, {b})", "torch.promote_types({a}.dtype, {b}.dtype)",
               "torch.heaviside({a}, {b})", "torch.gcd({a}, {b})", "torch.clamp({a}, {b}, {b} + 1)", "torch.bitwise_left_shift({a}, {b})", "torch.index_select({a}.flatten(), 0, torch.zeros(1, dtype=torch.int64)) * {b}"]
ONE = ["sqrt", "exp", "log", "abs", "neg", "sign", "round", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite", "sum", "mean", "prod", "any", "all", "max", "min", "argmax", "std", "var", "angle", "reciprocal", "nan_to_num", "sigmoid", "tanh",
       "bitwise_not", "logical_not", "frac", "signbit", "square", "rsqrt", "log1p", "expm1", "erf", "lgamma", "digamma", "sinh", "acosh", "atanh", "positive", "real", "imag", "conj", "sgn", "relu", "count_nonzero", "nonzero", "unique", "sort",
       "argsort", "median", "nansum", "nanmean", "amax", "amin", "aminmax", "logsumexp(0)", "softmax(0)", "log_softmax(0)", "cumsum(0)", "cumprod(0)", "cummax(0)", "norm()", "item()", "tolist()", "flip(0)", "diff()", "to(torch.int32)", "to(torch.uint8)",
       "to(torch.bool)", "to(torch.float16)", "to(torch.complex64)", "clamp(-1, 1)", "clamp(min=math.nan)", "pow(0)", "pow(0.5)", "pow(-1)", "kthvalue(1)", "topk(1)", "logcumsumexp(0)", "renorm(2, 0, 1.0)", "quantile(0.5)", "histc(3)", "bincount()", "t()",
       "i0()", "sinc()", "logit()", "erfinv()", "deg2rad()", "exp2()", "log2()", "log10()", "hardshrink()", "corrcoef()", "trace()", "bernoulli()", "dtype", "is_complex()", "is_floating_point()", "element_size()", "byte()", "char()", "cfloat()"]
INTO = ["{a} += {b}", "{a} *= {b}", "{a} -= {b}", "{a} //= {b}", "{a} /= {b}", "{a} %= {b}", "{a} **= {b}", "{a} &= {b}", "{a}.add_({b})", "{a}.fill_({b})", "{a}[...] = {b}", "{a}.mul_({b})", "{a}.clamp_(min={b})", "{a}.copy_(torch.as_tensor({b}))", "{a}.pow_({b})",
        "{a}.masked_fill_({a} == {a}, {b})", "{a}.floor_divide_({b})", "{a}.remainder_({b})", "{a}.div_({b})", "{a}.eq_({b})", "{a}.lt_({b})", "{a}.logical_and_(torch.as_tensor({b}))"]


def cautious(g, template, **names):
    """Lines that may raise; what they raise is told. `{x}` is some tensor, `{n}` an int, `{w}` a new name whose value is a result."""
    w = g.name("w")
    text = template.format(x=g.variable("x") or "x", n=g.integer(), w=w, **names)
    makes = "{w}" in template
    if makes:
        g.line(f"{w} = None")
    if g.chance(0.7):
        with g.block("try:"):
            g.line(text)
        with g.block("except Exception as e:"):
            g.line("LOG.append(type(e).__name__)")
    else:
        g.line(text)
    if makes:
        g.bind(w, "w")


def tensor_text(g):
    value = g.pick(VALUES)
    return f"torch.tensor({g.pick([value, f'[{value}]', '[]', f'[{value}, {g.pick(VALUES)}]', f'[[{value}]]'])}).to(torch.{g.pick(TYPES)})"


@feature(1.5)
def tensors_of_all_types(g):
    """Tensors of the module, so that they are inputs of graphs."""
    names = [g.name("E") for _ in range(3)]
    for name in names:
        g.declared.append(f"{name} = {tensor_text(g)}")
        if g.chance(0.3):
            g.changes.append(f"global {name}\n{name} = {tensor_text(g)}")

    def operand(g):
        how = g.rng.random()
        return g.pick(names) if how < 0.6 else tensor_text(g) if how < 0.75 else g.variable("x") or "x"

    def use(g):
        a, how = operand(g), g.rng.random()
        if how < 0.3:
            one = g.pick(ONE)
            call = f"{a}.{one}" if "(" in one or one in ("real", "imag", "dtype") else f"torch.{one}({a})"
            return cautious(g, "{w} = {a}", a=call)
        if how < 0.55:
            return cautious(g, "{w} = " + g.pick(TWO), a=a, b=g.pick(NUMBERS) if g.chance(0.6) else operand(g))
        if how < 0.65:
            return cautious(g, "{w} = " + g.pick(TWO[:17]), a=g.pick(NUMBERS), b=a)
        if how < 0.85:
            return cautious(g, "{w} = " + g.pick(TWO_TENSORS), a=a, b=operand(g))
        if how < 0.93:
            return cautious(g, g.pick(INTO), a=g.pick(names), b=g.pick(NUMBERS) if g.chance(0.6) else operand(g))
        return cautious(g, "{w} = torch.ones(2).to(torch." + g.pick(TYPES) + ")\n" + g.pick(INTO).replace("{a}", "{w}"), b=g.pick(NUMBERS) if g.chance(0.6) else operand(g))

    g.statements.append((6, use))


ORDER = ["def told(v):\n    LOG.append(v)\n    return v\nl = [0, 0]\nl[told(0)] = told({n})\nl[told(1)] += told(2)\nLOG.append(l)", "def told(v):\n    LOG.append(v)\n    return v\nLOG.append({{told(1): told(2), **dict(a=told(3))}})",
         "def told(v):\n    LOG.append(v)\n    return v\nLOG.append(told(1) < told({n}) < told(3))", "def told(v):\n    LOG.append(v)\n    return v\nLOG.append(told(0) or told({n}) and told(2))",
         "def told(v, *a, **k):\n    LOG.append((v, a, k))\n    return v\ntold(told(1), *[told(2)], z=told(3), **dict(y=told({n})))", "d = {{'a': {x}}}\nd['a'] += 1\nd['a'] *= {n}\n{x} = d['a']",
         "l = [{x}, {x} + 1]\nl[0] += l[1]\nl[-1] @= l[0].t().contiguous()\n{x} = {x} + l[1].sum()", "o = type('O', (), {{}})()\no.t = {x}\no.t += 1\no.t -= o.t * 0.5\n{x} = o.t", "i = 0\nl = [1, 2, 3]\ni, l[i] = 2, {n}\nLOG.append((i, l))",
         "a = b = [{n}]\na += [1]\nLOG.append(b)\na = a + [2]\nLOG.append(b)", "x0 = {n}\nl = [x0 := x0 + 1, x0, (x0 := x0 * 2)]\nLOG.append(l)", "for i in range(3):\n    pass\nelse:\n    LOG.append(i)\ndel i\ntry:\n    i\nexcept NameError as e:\n    LOG.append(type(e).__name__)",
         "k = {n}\nclass C:\n    k = k + 1\n    l = [k for _ in range(2)]\nLOG.append((C.k, C.l))", "f = [lambda: k for k in range(3)]\nLOG.append([g0() for g0 in f])", "for a, (b, *c) in [(1, (2, 3)), ({n}, 'xyz')]:\n    LOG.append((a, b, c))"]
SLICES = ["l = list(range({n} % 7))\nLOG.append((l[::-1], l[-2::-1], l[5:1:-2], l[-100:100:3]))", "l = list(range(6))\nl[::2] = 'abc'\ndel l[::-3]\nLOG.append(l)", "l = [1, 2, 3]\nl[::-1] = l\nLOG.append(l)", "l = [1, 2, 3]\nl[1:1] = [{n}, {n}]\nl[-1:] = ()\nLOG.append(l)",
          "t = (1, 2, 3, {n})\nLOG.append((t[::-2], t[-3:-1], t[2::-1], t * 2, t[1:] + t[:1]))", "s = 'abcdef'\nLOG.append((s[::-1], s[{n}:], s[-2:{n}:-1]))", "r = range(10)[::-3]\nLOG.append((list(r), r[1:], len(r), {n} in r, r.index(9)))",
          "l = [0] * 3\nl[::2] = [1, 2, 3]", "b = bytearray(b'abcd')\nb[::2] = b'xy'\ndel b[0]\nLOG.append(bytes(b))", "l = [{x}, {x} * 2, {x} * 3]\n{x} = sum(l[::-2])\ndel l[-1]\n{x} = {x} + l[-1]", "l = [[]] * 2\nl[0].append({n})\nl[1] = l[1] + [2]\nLOG.append(l)",
          "d = dict(a=1, b=2, c={n})\nfor k in list(d)[::-1]:\n    if d[k] == 2:\n        del d[k]\nLOG.append((list(d), list(reversed(d)), d | {{'z': 0}}))", "m = memoryview(b'abcdef')[::-2]\nLOG.append(bytes(m))"]
JUMPS = ["def f0():\n    try:\n        return {n}\n    finally:\n        LOG.append('out')\nLOG.append(f0())", "def f0():\n    for i in range(3):\n        try:\n            raise ValueError(i)\n        finally:\n            if i == 1:\n                return 'kept'\n            continue\nLOG.append(f0())",
         "def f0():\n    try:\n        1 / 0\n    except ZeroDivisionError:\n        return 'e'\n    else:\n        return 'n'\n    finally:\n        COUNT[0] += 1\nLOG.append(f0())", "def f0():\n    v = [1]\n    try:\n        return v\n    finally:\n        v.append({n})\nLOG.append(f0())",
         "def f0(t):\n    with contextlib.suppress(KeyError):\n        with torch.no_grad():\n            t = t * 2\n            raise KeyError\n    LOG.append(torch.is_grad_enabled())\n    return t\n{x} = f0({x})",
         "class W:\n    def __enter__(self):\n        return self\n    def __exit__(self, *e):\n        LOG.append(e[0] and e[0].__name__)\n        return True\ndef f0(t):\n    with W() as a, W() as b:\n        t = t + 1\n        raise TypeError\n    return t\n{x} = f0({x})",
         "class W:\n    def __enter__(self):\n        raise ValueError('enter')\n    def __exit__(self, *e):\n        LOG.append('never')\ntry:\n    with contextlib.nullcontext({n}) as k, W():\n        pass\nexcept ValueError as e:\n    LOG.append((str(e), k))",
         "class W:\n    def __enter__(self):\n        return self\n    def __exit__(self, *e):\n        raise KeyError('exit')\ntry:\n    with W():\n        raise ValueError('in')\nexcept KeyError as e:\n    LOG.append(repr(e.__context__))",
         "with contextlib.ExitStack() as stack:\n    stack.enter_context(torch.no_grad())\n    stack.callback(LOG.append, {n})\n    stack.push(lambda *e: LOG.append(e[0]))\n    LOG.append(torch.is_grad_enabled())\nLOG.append(torch.is_grad_enabled())",
         "with contextlib.ExitStack() as stack:\n    stack.callback(LOG.append, 'late')\n    kept = stack.pop_all()\nLOG.append('between')\nkept.close()", "e0 = None\ntry:\n    try:\n        raise ValueError('a')\n    except ValueError as e:\n        raise KeyError('b') from e\nexcept KeyError as e:\n    e0 = e\nLOG.append((repr(e0.__cause__), e0.__context__ is e0.__cause__, e0.__suppress_context__))",
         "try:\n    try:\n        raise ValueError('a')\n    finally:\n        raise KeyError('f')\nexcept KeyError as e:\n    LOG.append(repr(e.__context__))", "try:\n    raise ValueError('v').with_traceback(None)\nexcept ValueError as e:\n    e.add_note('n')\n    LOG.append(e.__notes__)\ntry:\n    e\nexcept NameError:\n    LOG.append('gone')",
         "def g0():\n    try:\n        got = yield 1\n        LOG.append(got)\n        yield 2\n    except KeyError:\n        yield 'k'\n    finally:\n        LOG.append('end')\n    return {n}\nit = g0()\nnext(it)\nLOG.append(it.throw(KeyError))\ntry:\n    next(it)\nexcept StopIteration as e:\n    LOG.append(e.value)",
         "def g0():\n    r = yield from g1()\n    yield r\ndef g1():\n    got = yield 'first'\n    return got * 2\nit = g0()\nnext(it)\nLOG.append(it.send({n}))", "def g0():\n    while True:\n        try:\n            yield {n}\n        except GeneratorExit:\n            LOG.append('closing')\n            return\nit = g0()\nnext(it)\nit.close()\nLOG.append(next(it, 'done'))",
         "def g0(t):\n    for k in range(3):\n        t = t + (yield t)\n    return t\nit = g0({x})\nt = next(it)\nfor k in range(2):\n    t = it.send(k)\n{x} = t", "def g0():\n    yield 1\n    raise ValueError('g')\ntry:\n    LOG.append(sum(g0()))\nexcept ValueError as e:\n    LOG.append(e.args)",
         "def g0():\n    raise StopIteration(1)\n    yield\ntry:\n    next(g0())\nexcept RuntimeError as e:\n    LOG.append(repr(e.__cause__))"]
PATTERNS = ["class P:\n    __match_args__ = ('a', 'b')\n    def __init__(self, a, b):\n        self.a, self.b = a, b\nmatch P({n}, 'z'):\n    case P(0, b):\n        LOG.append(b)\n    case P(a, b='z') if a > 2:\n        LOG.append(a)\n    case P(a=int() | float() as v):\n        LOG.append(v)",
            "match [{n}, [1, 2, {n}]]:\n    case [a, [_, *rest]] if a in rest:\n        LOG.append(rest)\n    case [a, (1, b, c)]:\n        LOG.append((a, b, c))", "match {{'op': 'mul', 'by': {n}, 'z': None}}:\n    case {{'op': 'add'}}:\n        {x} = {x} + 1\n    case {{'op': 'mul', 'by': int(b), **rest}}:\n        {x} = {x} * b\n        LOG.append(rest)",
            "match {n}:\n    case 0 | 1 as k:\n        LOG.append(('low', k))\n    case k if k < 0:\n        LOG.append('negative')\n    case _:\n        LOG.append('other')", "match 'abc':\n    case str(s) if len(s) == {n}:\n        LOG.append(s)\n    case bytes() | 'abc' as s:\n        LOG.append(s * 2)",
            "match None, True, {n}:\n    case None, True, int(k):\n        LOG.append(k)\n    case _:\n        LOG.append('no')", "match {x}:\n    case torch.Tensor(shape=(a, b), requires_grad=False):\n        LOG.append((a, b))\n    case torch.Tensor():\n        LOG.append('tensor')", "match (1, 2), 3:\n    case [(a, b), c] if a + b == c:\n        {x} = {x} * c",
            "match 1.0:\n    case int():\n        LOG.append('int')\n    case math.pi:\n        LOG.append('pi')\n    case 1:\n        LOG.append('one')", "match dict(a=1):\n    case {{}}:\n        LOG.append('any mapping')", "match []:\n    case {{}}:\n        LOG.append('mapping')\n    case [*all]:\n        LOG.append(all)"]
OBJECTS = ["@dataclasses.dataclass\nclass R:\n    a: int\n    b: int = dataclasses.field(init=False)\n    k: dataclasses.InitVar = 3\n    def __post_init__(self, k):\n        self.b = self.a * k\nr = R({n})\n{x} = {x} + r.b\nLOG.append(repr(r))",
           "@dataclasses.dataclass(slots=True, kw_only=True)\nclass R:\n    t: object\n    n: int = 2\nr = R(t={x})\nr.n += {n}\n{x} = r.t * r.n\nr.other = 1", "@dataclasses.dataclass(order=True, frozen=True)\nclass R:\n    a: int\n    b: str = 'z'\nLOG.append((R({n}) < R(2), hash(R(1)) == hash(R(1)), sorted([R(3), R({n})])[0].a))\nR(1).a = 2",
           "class C:\n    made = 0\n    def __init__(self):\n        type(self).made += 1\n        self.id = C.made\nC(), C()\n{x} = {x} + C().id\nLOG.append(C.made)", "class C:\n    def __init__(self):\n        self._v = 1\n    @property\n    def v(self):\n        return self._v\n    @v.setter\n    def v(self, new):\n        self._v = new * 2\n    @v.deleter\n    def v(self):\n        LOG.append('deleted')\n        del self._v\nc = C()\nc.v += {n}\n{x} = {x} * c.v\ndel c.v\nLOG.append(hasattr(c, 'v'))",
           "class C:\n    __slots__ = ('a', 'b')\nc = C()\nc.a = {n}\nLOG.append((c.a, hasattr(c, 'b')))\ndel c.a\nc.a", "class A:\n    def f(self, t):\n        return t + 1\nclass B(A):\n    def f(self, t):\n        return super().f(t) * 2\nclass D(A):\n    def f(self, t):\n        return super().f(t) - 3\nclass E(B, D):\n    pass\n{x} = E().f({x})\nLOG.append([c.__name__ for c in E.__mro__])",
           "class C:\n    def __class_getitem__(cls, k):\n        return (cls.__name__, k)\nLOG.append(C[{n}])", "class V(dict):\n    def __getattr__(self, k):\n        try:\n            return self[k]\n        except KeyError:\n            raise AttributeError(k) from None\nv = V(a={n})\nLOG.append((v.a, getattr(v, 'b', 'none')))\nv.c", "class C:\n    n = 1\nc = C()\nc.n += 1\nC.n += 5\ndel c.n\nLOG.append(c.n)",
           "class C:\n    def __eq__(self, o):\n        LOG.append('eq')\n        return NotImplemented\n    def __lt__(self, o):\n        return NotImplemented\nLOG.append(C() == {n})\nC() < C()", "@functools.total_ordering\nclass C:\n    def __init__(self, k):\n        self.k = k\n    def __eq__(self, o):\n        return self.k == o.k\n    def __lt__(self, o):\n        return self.k < o.k\nLOG.append((C(1) >= C({n}), max(C(2), C({n})).k))",
           "class C:\n    def up(self, t, k):\n        return t * k\n    twice = functools.partialmethod(up, k=2)\n{x} = C().twice({x})", "class C:\n    def __iter__(self):\n        return iter((1, {n}))\n    def __len__(self):\n        return 2\n    def __reversed__(self):\n        return iter('ba')\na, b = C()\nLOG.append((a, b, *C(), list(reversed(C())), bool(C())))",
           "def outer():\n    a = 1\n    def middle():\n        nonlocal a\n        def inmost():\n            nonlocal a\n            a += {n}\n            return a\n        return inmost() + a\n    return middle() + a\nLOG.append(outer())", "def f0(a, /, b=2, *c, d, e=5, **k):\n    return a, b, c, d, e, k\nLOG.append(f0(1, d={n}))\nLOG.append(f0(1, 2, 3, d=4, a=9))\nf0(1)",
           "seen = {{}}\ndef fib(k):\n    if k not in seen:\n        seen[k] = k if k < 2 else fib(k - 1) + fib(k - 2)\n    return seen[k]\nLOG.append(fib(abs({n}) + 3))", "LOG.append(functools.reduce(lambda a, b: a * 10 + b, [1, 2, abs({n})], 0))", "LOG.append(sorted([3, {n}, 1], key=functools.cmp_to_key(lambda a, b: b - a)))",
           "class C:\n    def __bool__(self):\n        LOG.append('asked')\n        return {n} > 1\nif not C() or C():\n    {x} = {x} + 1", "class C:\n    def __init__(self, t):\n        self.t = t\n    def __matmul__(self, o):\n        return self.t * o\n    def __neg__(self):\n        return C(-self.t)\n    def __rsub__(self, o):\n        return o - self.t\n{x} = {x} - -C({x} * 0.5)\n{x} = C({x}) @ 2"]


@statement(0.9)
def corners(g):
    cautious(g, g.pick(g.pick([ORDER, SLICES, JUMPS, PATTERNS, OBJECTS])))


@statement(0.3)
def managers_in_a_row(g):
    x = g.variable("x") or "x"
    parts = g.rng.sample(["torch.no_grad()", "contextlib.suppress(ValueError)", "contextlib.nullcontext(2) as k0", "torch.set_grad_enabled(call > 1)", "contextlib.redirect_stdout(io.StringIO()) as out", "torch.autocast('cpu', torch.bfloat16, enabled=call > 1)",
                          "contextlib.closing(io.StringIO()) as file", "warnings.catch_warnings(record=True) as caught"], g.number(2, 4))
    with g.block(f"with {', '.join(parts)}:" if g.chance(0.6) else f"with ({', '.join(parts)}):"):
        inner(g, 2)
        g.line(f"{x} = {x} * 2")
        if g.chance(0.3):
            g.line(g.pick(["raise ValueError('in a row')", f"return {x}, 'in a row'", "warnings.warn('told')", "print('told')"]))

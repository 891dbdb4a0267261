"""Classes with attributes, slots, properties, descriptors, inheritance, special methods; dataclasses, enumerations."""

from .grammar import feature

METHODS = {"__len__": "def __len__(self):\n    return self.n",
           "__call__": "def __call__(self, t):\n    return t * self.k + 1",
           "__getitem__": "def __getitem__(self, i):\n    if isinstance(i, int) and i > 3:\n        raise IndexError(i)\n"
           "    return self.k + i", "__contains__": "def __contains__(self, v):\n    return v == self.n",
           "__bool__": "def __bool__(self):\n    return self.n > 1",
           "__eq__": "def __eq__(self, other):\n    return self.n == getattr(other, 'n', other)\n__hash__ = None",
           "__add__": "def __add__(self, t):\n    return t + self.k",
           "__radd__": "def __radd__(self, t):\n    return t - self.k",
           "__iter__": "def __iter__(self):\n    yield self.k\n    yield self.n",
           "__str__": "def __str__(self):\n    return f'<{self.n} {self.k}>'",
           "__enter__": "def __enter__(self):\n    self.n += 1\n    return self\n"
           "def __exit__(self, kind, value, trace):\n    self.n -= 1\n"
           "    LOG.append(kind and kind.__name__)\n    return self.k == 2",
           "__float__": "def __float__(self):\n    return float(self.k)",
           "__index__": "def __index__(self):\n    return self.n % 2",
           "__getattr__": "def __getattr__(self, name):\n    if name.startswith('z'):\n        return self.k * 2\n"
           "    raise AttributeError(name)",
           "__setattr__": "def __setattr__(self, name, value):\n    object.__setattr__(self, name, value)\n"
           "    if name == 'n':\n        COUNT[0] += 1", "__setitem__": "def __setitem__(self, i, v):\n    self.k = v",
           "__delattr__": "def __delattr__(self, name):\n    object.__delattr__(self, name)\n    COUNT[0] += 5",
           "__lt__": "def __lt__(self, other):\n    return self.n < getattr(other, 'n', other)",
           "__iadd__": "def __iadd__(self, other):\n    self.n += 1\n    return self",
           "__hash__": "def __hash__(self):\n    return 7",
           "__format__": "def __format__(self, spec):\n    return spec + str(self.n)",
           "__mul__": "def __mul__(self, t):\n    return t * self.n",
           "__repr__": "def __repr__(self):\n    COUNT[0] += 1\n    return 'C%d' % self.n",
           "__del__": "def __del__(self):\n    COUNT[0] += 100", }
MORE = ["@property\ndef scale(self):\n    return self.k * 2",
        "@scale.setter\ndef scale(self, v):\n    self.k = v / 2\n    self.n += 1",
        "@staticmethod\ndef twice(t):\n    return t * 2",
        "@classmethod\ndef made(cls, k):\n    cls.total = cls.total + 1\n    return cls(1, k)",
        "@functools.cached_property\ndef slow(self):\n    LOG.append('slow')\n    return self.k + 10",
        "def step(self, t, by=1):\n    self.n += by\n    return t * self.k + self.n",
        "def keep(self, t):\n    self.last = t\n    return self",
        "def walk(self, t):\n    for i in range(self.n % 3):\n        yield t + i\n        self.n += 1",
        "def count(self):\n    type(self).total += 1\n    return self.total"]


def emit(g, text, depth):
    g.declared += ["    " * depth + line for line in text.split("\n")]


def class_body(g, base):
    slots = not base and g.chance(0.2)
    if slots:
        emit(g, "__slots__ = ('n', 'k', 'last')", 1)
    emit(g, f"total = {g.number(0, 3)}", 1)
    emit(g, "def __init__(self, n=1, k=2):", 1)
    emit(g,
         "super().__init__(n, k)\nself.n += 1" if base and g.chance(0.7) else "self.n = n\nself.k = k\nself.last = None",
         2)
    chosen = g.rng.sample(sorted(METHODS), g.number(2, 7))
    for name in chosen:
        emit(g, METHODS[name], 1)
    parts = list(MORE) if g.chance(0.5) else MORE[:2] + g.rng.sample(MORE[2:], 3)
    for part in parts:
        if slots and "cached" in part:
            continue
        if base and "def step" in part and g.chance(0.5):
            part = "def step(self, t, by=2):\n    return super().step(t, by) + 1 if hasattr(super(), 'step') else t"
        emit(g, part, 1)


def one_class(g):
    name = g.name("Thing")
    g.declared.append(f"class {name}:")
    class_body(g, None)
    if g.chance(0.4):
        derived = g.name("Thing")
        g.declared.append(f"class {derived}({name}):")
        class_body(g, name)
        name = derived
    return name


OBJECT_USES = ["{x} = {o}.step({x})", "{x} = {x} * {o}.scale", "{o}.scale = {n}", "{o}.n += 1", "{o}.n = {n}",
               "{o}.k = {q}", "{x} = {o}({x})", "{x} = {x} + len({o})", "{x} = {x} + {o}[{n}]",
               "{x} = {x} * (2 if {n} in {o} else 3)", "if {o}:\n    {x} = {x} + 1",
               "{x} = {x} * (1 if {o} == 1 else 2)", "{x} = {o} + {x}", "{x} = {x} + {o}",
               "for v in {o}:\n    {x} = {x} + v", "print({o})", "print(f'{{{o}:>3}}', str({o}), [{o}])",
               "with {o} as w:\n    {x} = {x} + w.n", "with {o}:\n    {x} = {x} * 2\n    raise ValueError('in with')",
               "{x} = {x} * float({o})", "{x} = {x} + [1, 2][{o}]", "{x} = {x} + {o}.zed", "{o}.last = {x}",
               "{x} = {o}.last + {x}", "{x} = {o}.twice({x})", "{o}.keep({x}).n += 1", "{x} = {x} + {o}.slow",
               "for t in {o}.walk({x}):\n    {x} = {x} + t", "{x} = {x} + {o}.count()", "{o}.extra = {n}",
               "del {o}.extra", "{x} = {x} * getattr({o}, 'extra', 2)", "setattr({o}, 'k', {n})",
               "LOG.append(hasattr({o}, 'extra'))", "LOG.append(sorted(vars({o})))", "{o}[1] = 2", "{o} += 1",
               "{x} = {x} * (3 if {o} < 2 else 1)", "{o}.made(3).step({x})", "{x} = next({o}.walk({x}), {x})",
               "{x} = {x} * type({o}).total", "type({o}).total = {n}", "{o}.total = {n}", "LOG.append('%s' % {o})",
               "{o}.__dict__['k'] = {n}", "{x} = {x} + {o}.__class__.__name__.count('T')", "TMP = {o}\nTMP.n = 3",
               "LOG.append(sorted([{o}, {o}], key=id)[0] is {o})", "{x} = {o}.step({x}, by={n})",
               "m = {o}.step\n{x} = m({x})", "{x} = {x} * isinstance({o}, (int, type({o})))",
               "LOG.append(round(math.sqrt({o}), 3))", "LOG.append({{{o}: 1}}.get({o}))", "{o}.last = {o}",
               "a, b = {o}\n{x} = {x} + b", "{o}.last = [{x}, {o}.last]", "LOG.append([{o}] == [1])",
               "LOG.append(repr([{o}]))", "{x} = {x} + sum({o})", "{x} = {x} * (max({o}, 2) == 2)"]


@feature(3)
def objects(g):
    name = one_class(g)
    obj = g.name("OBJ").upper()
    g.declared.append(f"{obj} = {name}({g.number(0, 3)}, {g.pick(['2', '0.5', '3'])})")
    if g.chance(0.3):
        g.declared.append(f"HOLD = [{obj}, {{'o': {obj}}}]")
    if g.chance(0.7):
        g.changes.append(g.pick([f"{obj}.n = call", f"{obj}.k = 1.5 + call", f"{name}.total = call",
                                 f"{obj}.last = None", f"{obj}.extra = call",
                                 f"{name}.step = lambda self, t, by=0: t - 1", f"{obj}.n += 1",
                                 f"{obj}.__class__ = {name}",
                                 f"{obj}.step = abs" if g.chance(0.3) else f"{obj}.k = 2"]))

    def use(g):
        local = g.of("O")
        o = g.pick(local) if local and g.chance(0.4) else obj
        if g.chance(0.15):
            g.new("O", f"{name}({g.integer()}, {g.factor()})")
            return
        text = g.pick(OBJECT_USES).format(o=o, x=g.variable("x") or "x", n=g.integer(), q=g.factor())
        if "del " in text or "__dict__" in text or g.chance(0.45):
            with g.block("try:"):
                g.line(text)
            with g.block("except (AttributeError, TypeError, ValueError, IndexError) as e:"):
                g.line("LOG.append(str(e))" if g.chance(0.5) else "LOG.append(type(e).__name__)")
        else:
            g.line(text)

    g.statements.append((3, use))


@feature(1)
def data_classes(g):
    frozen = g.chance(0.3)
    g.declared.append(f"@dataclasses.dataclass({g.pick(['', 'order=True', 'eq=False']) if not frozen else 'frozen=True'})\n"
                      f"class Rec:\n    a: object\n    b: int = {g.number(0, 3)}\n"
                      f"    c: list = dataclasses.field(default_factory=list)\n"
                      "    @property\n    def both(self):\n        return self.a, self.b\nREC = Rec(1.5)")
    if not frozen and g.chance(0.6):
        g.changes.append(g.pick(["REC.b = call", "REC.c.append(call)", "REC.a = float(call)"]))

    def use(g):
        x, n = g.variable("x") or "x", g.integer()
        r = g.pick(g.of("R") + ["REC"])
        with g.block("try:"):
            g.line(g.pick([f"{r}.b += 1", f"{r}.c.append({n})", f"{x} = {x} * {r}.a",
                           f"LOG.append({r} == Rec(1.5, {n}))", f"{r}.a = {x}",
                           f"LOG.append(repr({r})) if not isinstance({r}.a, torch.Tensor) else None",
                           f"{x} = {x} + {r}.both[1]", f"LOG.append(dataclasses.replace({r}, b={n}).b)",
                           f"LOG.append([f.name for f in dataclasses.fields({r})])",
                           f"{x} = {x} * (Rec(0, {n}) < Rec(0, 2))",
                           f"match {r}:\n        case Rec(a=float() as v, b=b):\n            {x} = {x} + v + b\n"
                           f"        case _:\n            {x} = {x} - 1",
                           f"LOG.append(len(dataclasses.astuple(Rec(1, {n}))))"]))
        with g.block("except (AttributeError, TypeError) as e:"):
            g.line("LOG.append(str(e))")
        if g.chance(0.4):
            g.new("R", f"Rec({x}, {n})")

    g.statements.append((2, use))


@feature(0.7)
def enumerations(g):
    g.declared.append("class Mode(enum.Enum):\n    SUM = 1\n    MAX = 2\n    @property\n    def factor(self):\n"
                      "        return self.value * 0.5\nclass Level(enum.IntEnum):\n    LOW = 0\n    HIGH = 2\n"
                      "MODE = Mode.SUM")
    if g.chance(0.6):
        g.changes.append("global MODE\nMODE = Mode(1 + call % 2)")

    def use(g):
        x, n = g.variable("x") or "x", g.integer()
        g.line(g.pick([f"{x} = {x}.sum(0) + {x} if MODE is Mode.SUM else {x} * 2", f"{x} = {x} * MODE.factor",
                       f"{x} = {x} + MODE.value", "LOG.append(MODE.name)",
                       f"{x} = {x} * {{Mode.SUM: 2, Mode.MAX: 3}}[MODE]", f"{x} = {x} + Level.HIGH",
                       "print(MODE, Level.LOW)",
                       f"match MODE:\n    case Mode.SUM:\n        {x} = {x} + 1\n    case Mode.MAX:\n"
                       f"        {x} = {x} - 1", f"LOG.append([m.name for m in Mode])", f"{x} = {x} * (Level(2) > {n})",
                       "LOG.append(Mode['MAX'] == MODE)", f"{x} = {x} + len(Mode)",
                       "LOG.append(f'{MODE!r} {Level.HIGH:d}')"]))

    g.statements.append((2, use))


@feature(0.6)
def descriptors_and_metaclasses(g):
    g.declared.append("class Field:\n    def __set_name__(self, owner, name):\n        self.name = '_' + name\n"
                      "    def __get__(self, obj, kind=None):\n"
                      "        return self if obj is None else obj.__dict__.get(self.name, 4)\n"
                      "    def __set__(self, obj, value):\n        COUNT[0] += 1\n"
                      "        obj.__dict__[self.name] = value\nclass Meta(type):\n    def __call__(cls, *args):\n"
                      "        COUNT[0] += 2\n        return super().__call__(*args)\n"
                      "    @property\n    def size(cls):\n        return len(cls.known)\nclass Conf(metaclass=Meta):\n"
                      "    width = Field()\n    known = []\n    def __init_subclass__(cls, **kw):\n"
                      "        Conf.known.append(cls.__name__)\n"
                      "    def __new__(cls, *args):\n        self = super().__new__(cls)\n        return self\n"
                      "class Sub(Conf):\n    pass\nCONF = Conf()")
    if g.chance(0.6):
        g.changes.append(g.pick(["CONF.width = call", "Conf.known.append(call)",
                                 "Conf.width = Field() if call else Conf.__dict__['width']" if g.chance(0.2) else "CONF.width += 1"]))

    def use(g):
        x, n = g.variable("x") or "x", g.integer()
        g.line(g.pick([f"{x} = {x} * CONF.width", f"CONF.width = {n}", f"{x} = {x} + Conf.size",
                       "c = Conf()\nc.width = 2\nLOG.append(c.width)", f"{x} = {x} + len(Conf.known)",
                       "Conf.known.append(call)", f"LOG.append(type(Sub()).__name__)",
                       f"{x} = {x} * isinstance(CONF, Conf)", "CONF.width += 1",
                       "LOG.append(isinstance(Conf.width, Field))", "super(Sub, Sub()).__init__()",
                       f"CONF.other = {x}"]))

    g.statements.append((2, use))

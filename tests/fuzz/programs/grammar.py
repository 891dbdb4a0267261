"""The body of functions: which statements there are, and blocks of them. Statements register themselves by subject."""

from .builder import Builder, MOST_NESTED

STATEMENTS = []     # (weight, function of the builder)
FEATURES = []       # (weight, function that declares something at module level and adds its statements to the builder)


def statement(weight=1.0):
    def add(f):
        STATEMENTS.append((weight, f))
        return f
    return add


def feature(weight=1.0):
    def add(f):
        FEATURES.append((weight, f))
        return f
    return add


def nothing(g: Builder):
    pass


def chosen(g: Builder, table):
    found = g.rng.choices([f for _, f in table], [w for w, _ in table])[0]
    return nothing if found.__name__ in g.without else found


def body(g: Builder, count):
    """`count` statements, fewer where the budget of the program ends."""
    for _ in range(count):
        if g.budget <= 0:
            break
        g.budget -= 1
        if g.nested > MOST_NESTED:
            g.new("x", g.tensor("x"))
            continue
        own = g.statements
        if own and g.chance(0.45):
            chosen(g, own)(g)
        else:
            chosen(g, STATEMENTS)(g)


def inner(g: Builder, most=3):
    body(g, g.number(1, most))

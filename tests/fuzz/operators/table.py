"""Where operators register: functions of the graph that give (text, is_exact[, written node]), or None where nothing fits."""

OPERATORS = []


def operator(weight=1.0):
    def add(f):
        OPERATORS.append((f, weight))
        return f
    return add


def dims_of(g, t, allow_empty=True):
    """A set of axes as text: one, several, none, all of them."""
    if t.dim() == 0:
        return g.pick(["0", "-1", "()"] if allow_empty else ["0", "-1"])
    how = g.rng.random()
    if how < 0.5:
        return str(g.int(-t.dim(), t.dim() - 1))
    if how < 0.58 and allow_empty:
        return "()"
    return str(tuple(sorted(g.rng.sample(range(t.dim()), g.int(1, t.dim())))))


def axis_of(g, t):
    return g.int(-t.dim(), t.dim() - 1) if t.dim() else g.pick([0, -1])

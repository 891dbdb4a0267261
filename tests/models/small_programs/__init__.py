"""Small programs by subject. A program gets `compile` (the identity in eager) and returns everything a person could observe."""

SCRIPTS = []


def script(f):
    """`f(compile)` is run with eager and with compiled functions from the same random seed; both must return the same."""
    SCRIPTS.append(f)
    return f


def load():
    from . import autograd, boundaries, classes, containers, guards, language, modes, modules  # noqa: F401
    return SCRIPTS

"""Programs at the edges of the language, of torch and of the process, by cause: what a compiler may take for granted and must not.

A program gets `compile` (the identity in eager) and `engine` (None in eager) and returns everything a person could observe. Each
runs in a process of its own, so it may change what it likes, and end it.
"""

PROGRAMS = []


def edge(f):
    PROGRAMS.append(f)
    return f


def raised(f, *args):
    """What the call returns or raises, with the message."""
    try:
        return f(*args)
    except BaseException as error:
        return type(error).__name__, str(error)


def load():
    from . import attributes, barriers, effects, foreign_code, functions, inference, iteration, lifetimes  # noqa: F401
    from . import numbers, operators, process_state, refusals, shared_inputs, tensors, texts, views  # noqa: F401
    return PROGRAMS

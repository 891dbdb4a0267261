"""Small programs by subject. A program gets `compile` (the identity in eager) and returns everything a person could observe."""

SCRIPTS = []


def script(f):
    """`f(compile)` is run with eager and with compiled functions from the same random seed; both must return the same."""
    SCRIPTS.append(f)
    return f


# Subjects that look for breadth: their programs run with few of the forced breaks.
BREADTH = {"attention", "backward_passes", "conditions", "coroutines", "data_sizes", "derivatives", "everyday", "exceptions", "generators", "inner_results", "iteration", "layouts", "loops", "matching", "memory", "nested_tensors", "numpy_arrays", "optimisers", "reductions", "standard_library", "tensor_subclasses", "tensors", "training", "transforms"}


def runs_with(f, break_every):
    if getattr(f, "asks_is_compiling", False) and break_every:
        return False  # a break forced at that very call answers as eager does
    return break_every in (0, 1, 4) or f.__module__.rpartition(".")[2] not in BREADTH


def load():
    from . import attention, autograd, backward_passes, boundaries, classes, conditions, containers, coroutines, data_sizes, derivatives, effects_log, generators, guards, iteration, language, memory, modes, modules, numpy_arrays, reasons  # noqa: F401
    from . import effects, everyday, exceptions, inner_results, layouts, loops, matching, nested_tensors, optimisers, reductions, standard_library, tensor_subclasses, tensors, training, transforms  # noqa: F401
    return SCRIPTS

"""torch._inductor.graph.GraphLowering.save_output_code: who sets it (torch._inductor.utils.run_and_get_code) hears what graphs became."""

import sys

from . import _output_code


def _listener():
    graph = sys.modules.get("torch._inductor.graph")
    return graph.GraphLowering.save_output_code if graph else None


def wants():
    on = _listener() is not None
    return on, on, False


def hear(what, value, assembly):
    if what == "compilation" and (listener := _listener()):
        for lowered in value.lowered:
            listener(_output_code.listing(lowered, assembly.code))

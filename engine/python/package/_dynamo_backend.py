"""torch.compile(f, backend="fusebox") without install(): PyTorch captures, this engine compiles what it captured."""

from ._compile import engine_options
from ._engine_access import _engine


def fusebox_backend(graph_module, example_inputs, **options):
    """The TorchDynamo backend. The graph module's forward is captured (it is straight-line code) when it is first called."""
    settings = engine_options(mode=options.get("mode"), options=options.get("options"))
    settings["break_every"] = 0
    function = graph_module.forward
    return _engine.compiled(function, settings, getattr(function, "__func__", function))

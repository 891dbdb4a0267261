"""torch.compile(f, backend="fusebox") without install(): PyTorch captures, this engine compiles what it captured."""

from ._compile import engine_options
from ._engine_access import _engine


def fusebox_backend(graph_module, example_inputs, **options):
    """The TorchDynamo backend. The graph module's forward is captured (it is straight-line code) when it is first called."""
    return backend_with(engine_options(mode=options.get("mode"), options=options.get("options")), graph_module, example_inputs)


def backend_with(settings, graph_module, example_inputs, **_):
    """The same with the engine's settings."""
    if "function" in settings:  # passes over graphs come first
        return settings["function"].function(graph_module, example_inputs)
    settings = {**settings, "break_every": 0, "fullgraph": False}
    if hasattr(graph_module, "real_recompile"):  # a lazy module's forward would write its code first
        graph_module.real_recompile()
    forward = graph_module.forward
    compiled = _engine.compiled(forward, settings, getattr(forward, "__func__", forward))

    def call(*args):  # PyTorch would unwrap the compiled function itself
        return compiled(*args)

    return call

"""What a session says of DistributedDataParallel around compiled code."""

import sys

from ._engine_access import _engine

_TEXT = ("the gradients of a compiled graph come when its backward is done, so that DistributedDataParallel's all-reduce overlaps only with what runs outside of it: "
         "graphs are not split at its buckets (torch._dynamo.config.optimize_ddp)")

_is_told = False


def compiling(begins):
    """Told by the engine before and after it compiles something."""
    global _is_told
    if not _engine.is_recording():
        _is_told = False
    elif begins and not _is_told:
        module = sys.modules.get("torch.nn.parallel.distributed")
        if module and module.DistributedDataParallel._get_active_ddp_module() is not None:
            _is_told = True
            _engine.record_loss("communication not overlapped", 1, _TEXT)

"""Which gradients DistributedDataParallel waits for together: backward of what is compiled inside of it hands them on in such groups."""

import sys

from ._engine_access import _engine

_NONE = (0, 0)


def _wanted():
    """torch._dynamo.config.optimize_ddp; PyTorch's default where nobody has imported it. Its modes with a reducer in Python have nothing to wait for."""
    config = sys.modules.get("torch._dynamo.config")
    return config is None or config.optimize_ddp in (True, "ddp_optimizer")


def _buckets():
    """Bytes of the first bucket and of the others."""
    parallel = sys.modules.get("torch.nn.parallel.distributed")
    ddp = parallel and parallel.DistributedDataParallel._get_active_ddp_module()
    if not ddp or not _wanted():
        return _NONE
    others = ddp.bucket_bytes_cap
    first = parallel.dist._DEFAULT_FIRST_BUCKET_BYTES if ddp.bucket_bytes_cap_default else others
    return min(first, others), others


def compiling(begins):
    """Told by the engine before and after it compiles something."""
    if begins:
        _engine.set_gradient_buckets(*_buckets())

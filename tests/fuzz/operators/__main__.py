"""python -m fuzz.operators: see fuzz.harness.farm for what may be asked."""

import os
import sys

import torch

from fuzz.harness import farm, standalone
from fuzz.operators.described import descriptions
from fuzz.operators.graph import generate


def prepare():
    """PyTorch's table of operators takes long to load, and starts CUDA where there is one, which forked workers could not use then."""
    if "cuda" in sys.argv:
        return
    if torch.cuda.device_count():
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    descriptions()


if __name__ == "__main__":
    prepare()
    sys.exit(farm.main(__doc__, generate, standalone.script))

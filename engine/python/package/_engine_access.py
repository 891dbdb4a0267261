"""Loads the extension module (PyTorch first: it brings the libraries) and what everything else needs of it."""

import os

import torch  # noqa: F401

from . import _engine


class GraphBreakError(RuntimeError):
    """fullgraph=True, and the program cannot be captured as one graph. The message has the reason, the place and a hint."""


class RecompileError(RuntimeError):
    """A recompilation was needed where the user forbade it (error_on_recompile, fail_on_recompile_limit_hit, set_stance)."""


_engine.add_skipped_folder(os.path.dirname(os.path.abspath(__file__)))
_engine.set_exceptions(GraphBreakError, RecompileError)


def reset():
    """Forgets everything compiled in this process (files on disk stay)."""
    _engine.reset()


def counters():
    """Counts since the start of the process: frames, graphs, graph breaks, recompiles, kernels, ..."""
    return dict(_engine.counters())

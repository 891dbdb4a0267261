"""Generators of inputs that nobody wrote: files from outside (C++, reader_fuzz), Python programs, operator graphs."""

import os

os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")  # what is tested is compiling

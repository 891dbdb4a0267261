"""Running the built program, for the tests beside this file."""
import os
import subprocess
import tempfile

FUSEBOX = os.environ.get("FUSEBOX_BIN", "build/release/bin/fusebox")
SYNTHESIZE = os.environ.get("FUSEBOX_SYNTHESIZE", "build/release/bin/fusebox_synthesize")


def fusebox(*args, timeout=60, **options):
    return subprocess.run([FUSEBOX, *map(str, args)], capture_output=True, text=True, timeout=timeout, **options)


def synthesize(path, launches=2000, threads=1):
    subprocess.run([SYNTHESIZE, str(path), str(launches), str(threads)], check=True, capture_output=True, timeout=120)
    return str(path)


def folder():
    return tempfile.TemporaryDirectory(prefix="fusebox-test-")

"""python -m fusebox.compile_program MODEL.pt2 -o MODEL.fbx: what `fusebox compile` starts."""

import argparse
import json
import os
import sys
import time

from ._ahead_of_time import AheadOfTimeError
from ._program_file import compile_program, load_exported


def main():
    words = argparse.ArgumentParser()
    words.add_argument("program")
    words.add_argument("-o", "--output", required=True)
    words.add_argument("--json", action="store_true")
    asked = words.parse_args()
    start = time.monotonic()
    try:
        exported = load_exported(asked.program)
    except (OSError, ValueError) as problem:
        print(f"fusebox: {asked.program}: {getattr(problem, 'strerror', None) or problem}", file=sys.stderr)
        return 3
    loaded = time.monotonic()
    try:
        data = compile_program(exported, os.path.splitext(os.path.basename(asked.program))[0])
    except AheadOfTimeError as problem:
        print(f"fusebox: {asked.program}: {problem}", file=sys.stderr)
        return 3
    made = time.monotonic()
    waiting = f"{asked.output}.{os.getpid()}.part"
    try:
        with open(waiting, "wb") as file:
            file.write(data)
        os.replace(waiting, asked.output)
    except OSError as problem:
        if os.path.exists(waiting):
            os.unlink(waiting)
        print(f"fusebox: {asked.output}: {problem.strerror}", file=sys.stderr)
        return 3
    if asked.json:
        print(json.dumps({"program": asked.program, "output": asked.output, "bytes": len(data), "compile_ms": round((made - loaded) * 1e3, 1)}))
    else:
        print(f"{asked.output}: {len(data)} bytes, compiled in {made - loaded:.2f} s (reading the program took {loaded - start:.2f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())

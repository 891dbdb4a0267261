"""The fuzzer of changes as one script: `python tests/fuzz/changes_fuzz.py --help`."""

from fuzz.changes.__main__ import main

if __name__ == "__main__":
    main()

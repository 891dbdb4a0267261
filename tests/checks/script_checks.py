"""What test programs in Python share: expectations that are counted, and running every test_ function of a module."""

import sys

FAILURES = []


def expect(condition, what):
    if not condition:
        FAILURES.append(what)
        print("FAIL", what, flush=True)


def run(tests):
    """Runs the test_ functions of `tests` (a module's globals()) and exits: 1 if an expectation failed or a test raised."""
    for name, test in list(tests.items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
        except Exception as error:
            expect(False, f"{name}: {type(error).__name__}: {error}")
    print(len(FAILURES), "failures")
    sys.exit(1 if FAILURES else 0)

"""A fuzzer of changes: a small program is called, one thing that it can see is changed, and it is called again.

Two copies of the program's world are made, one for eager and one for the compiled program. A change is a Python statement that
is run in both; then everything that can be observed must be equal. `python -m fuzz.changes --help`.
"""

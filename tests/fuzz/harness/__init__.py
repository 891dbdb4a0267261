"""What the generators share: running a program eagerly and compiled, comparing all that it shows, reducing, workers.

A program is the text of a Python module with `f`, `inputs(call)` (its arguments, drawn after a seed), and, where it
wants them, `change(call)` (what its world does before a call) and the constants CALLS, GRAD, BREAK_EVERY and BACKEND.
"""

"""Random graphs of operators, each run eagerly and compiled: `python -m fuzz.operators --seed 1 --seconds 60`."""

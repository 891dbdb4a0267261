"""Random Python programs over tensors, each run eagerly and compiled: `python -m fuzz.programs --seed 1 --seconds 60`."""

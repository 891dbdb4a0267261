"""python -m fuzz.programs: see fuzz.harness.farm for what may be asked."""

import sys

from fuzz.harness import farm, standalone
from fuzz.programs.program import generate

if __name__ == "__main__":
    sys.exit(farm.main(__doc__, generate, standalone.script))

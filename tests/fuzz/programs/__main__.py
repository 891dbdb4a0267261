"""python -m fuzz.programs: see fuzz.harness.farm for what may be asked."""

import sys

from fuzz.harness import farm, standalone
from fuzz.programs.program import generate



def arguments(parser):
    parser.add_argument("--without", nargs="*", default=[], help="features and statements (names of their functions) that no program has")
    parser.add_argument("--data", action="store_true", help="data decide sizes; other types, layouts and given memory")
    parser.add_argument("--sizes", action="store_true", help="sizes, strides and ints are others in every call")


if __name__ == "__main__":
    sys.exit(farm.main(__doc__, generate, standalone.script, arguments))

"""Writes a source with the identity of the engine that was just built."""
import sys

from fusebox._engine_access import _engine

with open(sys.argv[1], "w") as file:
    file.write(f'extern const char* const kEngineBuild;\nconst char* const kEngineBuild = "{_engine.build()}";\n')

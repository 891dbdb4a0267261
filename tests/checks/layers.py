"""Fails when a source file includes against the layering of ARCHITECTURE.md, or a heavy header outside its room, or does what one file is for."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# layer -> layers it may include (itself always)
ALLOWED = {
    "engine/support": set(),
    "engine/cache": {"engine/support"},
    "engine/debug": {"engine/support"},
    "engine/graph": {"engine/support"},
    "profiler": {"engine/support"},
    "engine/record": {"engine/support", "engine/graph", "profiler"},
    "engine/inductor": {"engine/support", "engine/debug", "engine/graph", "engine/record"},
    "engine/codegen": {"engine/support", "engine/debug", "engine/graph", "engine/record", "engine/inductor"},
    "engine/runtime": {"engine/support", "engine/debug", "engine/graph", "engine/record", "engine/inductor", "engine/codegen"},
    "engine/trace": {"engine/support", "engine/graph", "engine/record"},
    "engine/aot": {"engine/support", "engine/debug", "engine/graph", "engine/record", "engine/trace", "engine/runtime"},
    "engine/compile": {"engine/support", "engine/debug", "engine/graph", "engine/record", "engine/inductor", "engine/codegen",
                       "engine/runtime", "engine/trace", "engine/aot", "engine/cache"},
    "engine/capture": {"engine/support", "engine/cache", "engine/debug", "engine/graph", "engine/record", "engine/trace", "engine/aot",
                       "engine/runtime", "engine/compile"},
    "engine/python": {"engine/support", "engine/debug", "engine/graph", "engine/record", "engine/trace", "engine/aot",
                      "engine/runtime", "engine/capture", "engine/compile", "engine/codegen", "engine/inductor", "engine/cache"},
    "views": {"engine/support", "profiler"},
    "app": {"engine/support", "engine/cache", "profiler", "views"},
}
# header pattern -> layers that may include it
HEAVY = {
    r"^(torch|ATen|c10)/": {"engine/runtime", "engine/trace", "engine/aot", "engine/capture", "engine/python", "engine/compile"},
    r"^llvm/": {"engine/codegen"},
    r"^(Python\.h|pybind11/|internal/pycore|opcode\.h)": {"engine/capture", "engine/python", "engine/trace"},
    r"^Q[A-Z]": {"views", "app"},
    r"^(cuda|cupti)": {"engine/codegen", "engine/runtime", "profiler"},
}
# call -> the only file that may make it
SINGLE = {r"\b(v?fork|posix_spawnp?)\(": "app/cli/child_start.cpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


def layer_of(path: str) -> str | None:
    matches = [layer for layer in ALLOWED if path.startswith(layer + "/")]
    return max(matches, key=len) if matches else None


def problems(path: str, text: str) -> list[str]:
    layer = layer_of(path)
    if layer is None:
        return []
    found = []
    for header in INCLUDE.findall(text):
        target = layer_of(header)
        if target and target != layer and target not in ALLOWED[layer]:
            found.append(f"{path}: {layer} may not include {header} ({target})")
        for pattern, rooms in HEAVY.items():
            if re.match(pattern, header) and layer not in rooms:
                found.append(f"{path}: {header} is not allowed in {layer}")
    for pattern, file in SINGLE.items():
        if path != file and path.endswith(".cpp") and re.search(pattern, text):
            found.append(f"{path}: processes are started by {file}")
    return found


def main() -> int:
    # The check must be able to fail: an arrow that is certainly forbidden is reported.
    assert problems("engine/graph/x.cpp", '#include "engine/trace/trace_context.h"\n#include <torch/extension.h>\n') != []
    assert problems("app/cli/x.cpp", "pid_ = fork();") != []
    found, seen = [], 0
    for top in ("app", "engine", "views", "profiler"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".h", ".cpp", ".c"):
                seen += 1
                found += problems(str(path.relative_to(ROOT)), path.read_text(errors="replace"))
    print("\n".join(found) or f"{seen} files respect the layers")
    return 1 if found or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

"""python -m fusebox.settings [NAME …] [--json] [--changed]: all settings, what they are, whence, and what they do here. `fusebox config` starts it.

settings() says the same of the process that calls it."""

import argparse
import ast
import fnmatch
import importlib
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import tokenize

from . import _settings_table
from ._config import MEANINGS, config

_OURS = "fusebox.config"
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


class _Source:
    """The file of a configuration module: comments are the meaning of the setting below them, and what it asks of the environment is there too."""

    def __init__(self, module):
        file = inspect.getsourcefile(module)
        with tokenize.open(file) as stream:
            self._lines = stream.read().splitlines()
        tree = ast.parse("\n".join(self._lines))
        self._functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.meanings, self.variables = {}, {}
        self._visit(tree.body, "")

    def _visit(self, body, prefix):
        for at, node in enumerate(body):
            if isinstance(node, ast.ClassDef):
                self._visit(node.body, f"{prefix}{node.name}.")
            for name in self._names(node):
                self.meanings[prefix + name] = self._comment(node) or self._text_below(body, at)
                self.variables[prefix + name] = sorted(self._asked(node.value))

    @staticmethod
    def _names(node):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        return [target.id for target in targets if isinstance(target, ast.Name)]

    def _comment(self, node):
        first = node.lineno - 1
        while first > 0 and self._lines[first - 1].lstrip().startswith("#"):
            first -= 1
        lines = [line.strip().lstrip("#").strip() for line in self._lines[first:node.lineno - 1]]
        behind = self._lines[node.end_lineno - 1][node.end_col_offset:].partition("#")[2].strip()
        words = [line for line in [*lines, behind] if line and not re.fullmatch(r"[-=# ]*|(type|noqa|pyrefly):?.*|\[?@\w+.*", line)]
        return " ".join(words)

    @staticmethod
    def _text_below(body, at):
        below = body[at + 1] if at + 1 < len(body) else None
        is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
        return " ".join(below.value.value.split()) if is_text else ""

    def _asked(self, value, depth=0):
        """Variables of the environment that an expression, or a function of the module that it calls, names."""
        if value is None or depth > 2:
            return set()
        found = set()
        for node in ast.walk(value):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _VARIABLE.fullmatch(node.value):
                found.add(node.value)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._functions and depth < 2:
                for line in self._functions[node.func.id].body:
                    found |= self._asked(line, depth + 1)
        return found


def _plain(value):
    """As JSON has it."""
    try:
        json.dumps(value)
        return value
    except TypeError:
        return repr(value)


def _of_torch(module):
    """One row a setting of a configuration module."""
    sources = {each: _Source(importlib.import_module(each)) for each in {module, *_targets(module)}}
    for name, entry in importlib.import_module(module)._config.items():
        there, real = _settings_table.target_of(module, entry, name)
        home = importlib.import_module(there)
        row, kept, value = _settings_table.row_of(there, real), home._config[real], getattr(home, real)
        variables = sources[there].variables.get(real, [])
        yield {"name": f"{module}.{name}", "value": _plain(value), "default": _plain(kept.default), "source": _origin(kept, value, variables),
               "variables": variables, "here": row.here, "why": row.why, "meaning": sources[there].meanings.get(real, ""),
               **({"always": row.value} if row.here == "always" else {}), **({"alias": f"{there}.{real}"} if (there, real) != (module, name) else {})}


def _targets(module):
    entries = importlib.import_module(module)._config
    return {_settings_table.target_of(module, entry, name)[0] for name, entry in entries.items()}


def _origin(entry, value, variables):
    from torch.utils._config_module import _UNSET_SENTINEL
    if entry.user_override is not _UNSET_SENTINEL and not _settings_table.says_default(entry, value):
        return "code"
    return "environment" if any(variable in os.environ for variable in variables) else "default"


def _ours():
    for name, default in sorted(config.defaults().items()):
        value = getattr(config, name)
        yield {"name": f"{_OURS}.{name}", "value": _plain(value), "default": _plain(default), "source": "default" if value == default else "code",
               "variables": [], "here": "acts", "why": "Fusebox's own", "meaning": MEANINGS[name]}


def _as_they_are():
    return [row for rows in (_ours(), *map(_of_torch, _settings_table.MODULES)) for row in rows]


def settings():
    """Every setting as a dict: name, value, default, source (default, environment, code), variables (of the environment), here (acts, always, none), why,
    meaning; always: how it is whatever is set; alias: the setting that it is another name of."""
    rows = _as_they_are()
    made = {variable for row in rows for variable in row["variables"] if variable in os.environ}
    defaults = _without(made) if made else {}
    for row in rows:
        if made.intersection(row["variables"]):
            row["default"] = defaults[row["name"]]
            if row["value"] == row["default"]:
                row["source"] = "default"
    return rows


def _without(variables):
    """Values in a process that has none of these variables: PyTorch reads the environment into its defaults."""
    environment = {name: value for name, value in os.environ.items() if name not in variables}
    answer = subprocess.run([sys.executable, "-m", "fusebox.settings", "--json", "--as-they-are"], env=environment, capture_output=True, text=True, check=True)
    return {row["name"]: row["value"] for row in json.loads(answer.stdout)["settings"]}


def _chosen(rows, names, changed):
    def fits(row):
        return not names or any(fnmatch.fnmatch(row["name"], name if "*" in name else f"*{name}*") for name in names)

    return [row for row in rows if fits(row) and (not changed or row["source"] != "default")]


_HERE = {"acts": "acts", "always": "always {always!r}", "none": "no effect"}


def _text(rows, whole):
    lines, module = [], None
    for row in rows:
        home = next(m for m in (_OURS, *_settings_table.MODULES) if row["name"].startswith(m + "."))
        if home != module:
            lines += ([""] if lines else []) + [home]
            module = home
        origin = {"default": "", "environment": f"  [{', '.join(v for v in row['variables'] if v in os.environ)}; default {row['default']!r}]",
                  "code": f"  [set by code; default {row['default']!r}]"}[row["source"]]
        lines.append(f"  {row['name'][len(home) + 1:]} = {row['value']!r}{origin}  {_HERE[row['here']].format(**row)}: {row['why']}")
        meaning = row["meaning"] if whole else ""
        more = [f"the same as {row['alias']}"] if "alias" in row and whole else []
        more += [f"from the environment: {', '.join(row['variables'])}"] if row["variables"] and whole else []
        lines += [textwrap.fill(each, 140, initial_indent="      ", subsequent_indent="      ") for each in [meaning, *more] if each]
    return "\n".join(lines)


def main():
    words = argparse.ArgumentParser()
    words.add_argument("names", nargs="*")
    words.add_argument("--json", action="store_true")
    words.add_argument("--changed", action="store_true")
    words.add_argument("--as-they-are", action="store_true", help=argparse.SUPPRESS)
    asked = words.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # who reads the beginning only (head) has read enough
    rows = _chosen(_as_they_are() if asked.as_they_are else settings(), asked.names, asked.changed)
    if asked.json:
        print(json.dumps({"settings": rows}, indent=1, default=repr))
    elif rows:
        print(_text(rows, whole=bool(asked.names)))
    if not rows and asked.names:
        print(f"fusebox: no setting has {' or '.join(asked.names)} in its name", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

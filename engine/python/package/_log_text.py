"""Sentences of PyTorch's logs about what this engine did, worded as people search for them."""

import dis
import linecache
import re
import types

from ._records import is_ours

_TENSOR = re.compile(r"(?P<dtype>\w+)\[(?P<sizes>[^\]]*)\](?: strides \[(?P<strides>[^\]]*)\])?(?: (?P<rest>.*))?$")

_LENGTHS = ("SEQUENCE_LENGTH", "DICT_LENGTH")


def place_text(place):
    return f"{place['file']}:{place['line']}"


def traceback_text(stack):
    """As Python prints a traceback."""
    lines = []
    for p in stack:
        lines.append(f'  File "{p["file"]}", line {p["line"]}, in {p["function"]}')
        if code := linecache.getline(p["file"], p["line"]).strip():
            lines.append("    " + code)
    return "\n".join(lines)


def user_stack(compilation, break_record):
    """Callers of the compiled frame, then the frames from there to the break."""
    return [p for p in break_record["stack"] if not is_ours(p["file"])] or [*compilation.stack()[:-1], break_record["place"]]


def graph_break(compilation, record):
    reason = record["what"]
    if record["opcode"]:
        reason = f"Encountered graph break when attempting to trace {record['opcode']}:\n\n{reason}"
    text = f"Graph break in user code at {place_text(record['place'])}\nGraph Break Reason: {reason}\n  Explanation: {record['reason']}\n"
    if record["hint"]:
        text += f"  Hint: {record['hint']}\n"
    return text + f"\nUser code traceback:\n{traceback_text(user_stack(compilation, record))}\n"


def guard_failure(record):
    """One reason of a recompile: "0/0: tensor 'x' size mismatch at index 0. expected 8, actual 12"."""
    entry = f"{record['entry']}: " if record["entry"] else ""
    return entry + _mismatch(record)


def _mismatch(record):
    kind, _, source = record["text"].partition(" ")
    if kind == "TENSOR_MATCH":
        differs = _tensor_mismatch(re.sub(r"^L\['(\w+)'\]", r"\1", source), record["expected"], record["found"])
        if differs:
            return differs
    place = f"  # {place_text(record['place'])} in {record['place']['function']}" if record["place"]["file"] else ""
    return f"{record['text']}: expected {record['expected']}, actual {record['found']}{place}"


def guard_reason(guard, expected, found):
    """What guard_fail_fn hears: "tensor 'L['x']' size mismatch at index 0. expected 8, actual 12", "len(L['x']) == 3"."""
    kind, _, source = guard.partition(" ")
    if kind == "TENSOR_MATCH":
        differs = _tensor_mismatch(source, expected, found)
        if differs:
            return differs
    if kind in _LENGTHS:
        return f"{guard_code({'guard': kind, 'source': source, 'expected': expected})}, found {found}"
    return f"{guard}: expected {expected}, found {found}"


def _tensor_mismatch(name, expected, found):
    """In what two tensors differ first; None where the texts do not tell."""
    a, b = _TENSOR.match(expected), _TENSOR.match(found)
    if not a or not b:
        return None
    if a["dtype"] != b["dtype"]:
        return f"tensor '{name}' dtype mismatch. expected {a['dtype']}, actual {b['dtype']}"
    sizes = [part.split(", ") if part else [] for part in (a["sizes"], b["sizes"])]
    if len(sizes[0]) != len(sizes[1]):
        return f"tensor '{name}' rank mismatch. expected {len(sizes[0])}, actual {len(sizes[1])}"
    for i, (x, y) in enumerate(zip(*sizes)):
        if x != y and x.isdigit():
            return f"tensor '{name}' size mismatch at index {i}. expected {x}, actual {y}"
    for i, (x, y) in enumerate(zip(*((part or "").split(", ") for part in (a["strides"], b["strides"])))):
        if x != y and x.isdigit():
            return f"tensor '{name}' stride mismatch at index {i}. expected {x}, actual {y}"
    return None


def recompiling(name, file, line, reasons):
    return "\n".join([f"Recompiling function {name} in {file}:{line}", "    triggered by the following guard failure(s):", *(f"    - {r}" for r in reasons)])


def guard_tree(guards, stacks=False):
    """Guards by what they look at, in the form of TorchDynamo's tree."""
    lines = ["", "TREE_GUARD_MANAGER:", "+- RootGuardManager"]
    source = None
    for guard in guards:
        depth = "| "
        if guard["source"]:
            depth = "| | "
            if guard["source"] != source:
                lines.append(f"| +- GuardManager: source={guard['source']}")
        source = guard["source"]
        lines.append(f"{depth}+- {guard['guard']}: {guard_code(guard)}{_said_at(guard)}")
        if stacks and guard["stack"]:
            lines += [f"{depth}   {line}" for line in traceback_text(guard["stack"]).splitlines()]
    return "\n".join(lines) + "\n"


def guard_code(guard):
    if guard["guard"] == "TENSOR_MATCH":
        return f"check_tensor({guard['source']}, {guard['expected']})"
    if guard["guard"] in _LENGTHS:
        return f"len({guard['source']}) == {guard['expected'].removeprefix('length ')}"
    return f"{guard['source']} == {guard['expected']}" if guard["source"] else guard["expected"]


def _said_at(guard):
    place = guard["place"]
    if not place["file"]:
        return ""
    code = linecache.getline(place["file"], place["line"]).strip()
    return f"  # {code}  # {place_text(place)} in {place['function']}"


def symbol(row):
    upper = "int_oo" if row["upper"] is None else row["upper"]
    lower = "-int_oo" if row["lower"] is None else row["lower"]
    value = row["hint"]
    hint = "None" if value is None else str(int(value)) if value == int(value) else str(value)
    return row["name"], hint, f"[{lower}, {upper}]"


def bytecode(name, file, line, instructions):
    """As dis prints it."""
    lines, told = [f"ORIGINAL BYTECODE {name} {file} line {line} "], None
    for i in instructions:
        number, told = (str(i["line"]) if i["line"] != told else ""), i["line"]
        lines.append(f"{number:>4} {i['offset']:>10} {i['op']:<28} {instruction_argument(i)}".rstrip())
    return "\n".join(lines) + "\n"


def line_header(i):
    """Where an instruction that was followed stands, as PyTorch's logs say it."""
    from torch._dynamo.funcname_cache import get_funcname
    place = i["place"]
    try:
        name = get_funcname(place["file"], place["line"])
    except (OSError, SyntaxError, UnicodeDecodeError):
        name = None
    return f"{place_text(place)} in {place['function']}{f' ({name})' if name else ''}{' (inline depth: %d)' % i['depth'] if i['depth'] else ''}"


def underlined(i):
    """The code that an instruction stands for, with marks below it."""
    place = i["place"]
    if i["column"] < 0 or i["end_line"] < 0:
        return linecache.getline(place["file"], place["line"]).rstrip()
    from torch._dynamo.utils import get_instruction_source_311
    code = types.SimpleNamespace(co_filename=place["file"], co_name=place["function"])
    positions = dis.Positions(place["line"], i["end_line"], i["column"], i["end_column"])
    return get_instruction_source_311(code, types.SimpleNamespace(positions=positions)).rstrip()


def operator_name(op):
    """"mul" of "aten::mul.Tensor"."""
    return op.rpartition("::")[2].partition(".")[0]


def instruction_argument(i):
    return f"to {i['to']}" if i["to"] >= 0 else i["argument"]

"""A generated program as a script that runs by itself and says what differs."""

import ast
import pathlib
import re

_OPERATORS = pathlib.Path(__file__).parents[1] / "programs" / "custom_operators.py"
_DRIVER = '''
if __name__ == "__main__":
    import torch, fusebox
    eager, mine = {{"__name__": "program"}}, {{"__name__": "program"}}
    for world in (eager, mine):
        exec(compile(open(__file__).read(), __file__, "exec"), world)
    fusebox.config.break_every = {break_every}
    compiled = fusebox.compile(mine["f"], backend={backend!r}, dynamic={dynamic!r})
    for call in range({calls}):
        for name, world, function in (("eager   ", eager, eager["f"]), ("compiled", mine, compiled)):
            torch.manual_seed(100 + call)
            world.get("change", id)(call)
            args = world["inputs"](call)
            try:
                with torch.set_grad_enabled({grad}):
                    result = function(*args)
            except Exception as error:
                result = repr(error)
            print(call, name, result, args, {{k: v for k, v in world.items() if k.isupper()}})
'''


def constant(source, name, otherwise):
    found = re.search(rf"^{name} = (.+)$", source, re.MULTILINE)
    return ast.literal_eval(found[1]) if found else otherwise


def operators(names):
    """The definitions of custom operators, made once for both worlds."""
    texts = []
    for node in ast.parse(_OPERATORS.read_text()).body[2:]:
        text = ast.unparse(node)
        if re.search(rf"\b({'|'.join(names)})(\b|\.register)", text.split("(x: ")[0]):
            texts.append(text)
    body = "\n".join(["import sys, torch, types", *texts,
                      f"sys.modules['fuzz_operators'] = types.SimpleNamespace({', '.join(f'{n}={n}' for n in names)})"])
    return "if __name__ == '__main__':\n" + "\n".join("    " + line if line else "" for line in body.splitlines())


def script(source):
    line = re.search(r"^from fuzz.programs.custom_operators import (.+)$", source, re.MULTILINE)
    if line:
        names = line[1].split(", ")
        source = source.replace(line[0], f"{operators(names)}\nfrom fuzz_operators import {', '.join(names)}")
    return source + _DRIVER.format(break_every=constant(source, "BREAK_EVERY", 0), backend=constant(source, "BACKEND",
        "inductor"), dynamic=constant(source, "DYNAMIC", None), calls=constant(source, "CALLS", 3), grad=constant(source, "GRAD", False))

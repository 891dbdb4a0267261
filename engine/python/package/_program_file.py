"""Exported programs (torch.export) as one compiled file, with their weights: `fusebox compile`, and loading from Python."""

import json
import logging
import warnings

import torch
from torch.utils import _pytree as pytree

from ._ahead_of_time import AheadOfTimeError
from ._compile import engine_options
from ._engine_access import GraphBreakError, _engine
from ._marks import mark_dynamic, mark_static, mark_unbacked, maybe_mark_dynamic
from ._program_names import Unnamed, form_of, object_of

_FORMAT = 2


class _Kept(logging.Handler):
    """What PyTorch logs of a file while it goes on to try another format of it."""

    def __init__(self):
        super().__init__()
        self.problem = None

    def emit(self, record):
        if record.exc_info and self.problem is None:
            self.problem = record.exc_info[1]


def load_exported(path):
    """The exported program in a .pt2 file; OSError or ValueError with one line that says what is wrong with it."""
    with open(path, "rb"):  # a file that cannot be opened says so itself
        pass
    log, kept = logging.getLogger("torch.export"), _Kept()
    propagate, handlers = log.propagate, log.handlers
    log.propagate, log.handlers = False, [kept]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The given buffer is not writable")  # PyTorch's, of what it reads itself
            return torch.export.load(path)
    except Exception as problem:
        said = "" if isinstance(problem, KeyError) or "warnings above" in str(problem) else str(problem)
        reason = (str(kept.problem or "") or said or "it holds no exported program").splitlines()[0].partition(". This is an internal")[0]
        raise ValueError(f"PyTorch cannot load this exported program: {reason}") from None
    finally:
        log.propagate, log.handlers = propagate, handlers


def _mark_sizes(exported, tensors):
    """What varies in the exported program varies in the compiled one, within the same bounds."""
    for tensor, sizes in zip(tensors, _user_shapes(exported)):
        for dim, size in enumerate(sizes):
            if isinstance(size, int):
                mark_static(tensor, dim)
                continue
            bounds = exported.range_constraints.get(size.node.expr)
            if bounds is None:
                maybe_mark_dynamic(tensor, dim)
                continue
            lower, upper = (int(end) if end.is_number and end.is_finite and end < 2**62 else None for end in (bounds.lower, bounds.upper))
            if lower is None or lower < 2:
                mark_unbacked(tensor, dim)  # 0 and 1 are sizes like others
            mark_dynamic(tensor, dim, min=lower, max=upper)


def _user_shapes(exported):
    names = set(exported.graph_signature.user_inputs)
    for node in exported.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder" and node.name in names and isinstance(value, torch.Tensor):
            yield value.shape


def compile_program(exported, name="program"):
    """The bytes of a file that load_program() and the C++ loader run. No gradients."""
    if exported.example_inputs is None:
        raise AheadOfTimeError("the exported program has no example inputs: export it with them")
    module = exported.module(check_guards=False)  # sizes are checked by the compiled program
    module.graph.set_codegen(torch.fx.graph.CodeGen())  # arguments and results one by one: nesting them is the caller's
    module.recompile()
    leaves, spec = pytree.tree_flatten(exported.example_inputs)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = tuple(leaves[i].detach().clone(memory_format=torch.preserve_format) for i in places)
    _mark_sizes(exported, tensors)
    try:
        arguments = [["tensor"] if isinstance(leaf, torch.Tensor) else form_of(leaf) for leaf in leaves]
        outputs = module.graph.output_node().args[0]
        results = [["tensor"] if isinstance(leaf, torch.fx.Node) else form_of(leaf) for leaf in outputs]
    except Unnamed:
        raise AheadOfTimeError("an argument or result of the exported program is neither a tensor nor a plain value") from None

    for number, leaf in enumerate(outputs):
        if isinstance(leaf, torch.fx.Node) and isinstance(leaf.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise AheadOfTimeError(f"result {number} ({leaf.name}) is a number that changes with the sizes of the arguments; results are tensors, and "
                                   "what is the same in every call: leave it out, or export the program for one size")

    def program(given):
        filled = list(leaves)
        for place, tensor in zip(places, given):
            filled[place] = tensor
        return tuple(leaf for leaf, form in zip(module.forward(*filled), results) if form == ["tensor"])

    text = {"format": _FORMAT, "arguments": arguments, "results": results, "in_spec": pytree.treespec_dumps(spec),
            "out_spec": pytree.treespec_dumps(exported.call_spec.out_spec)}
    try:
        with torch.no_grad():
            return _engine.write_program(name, json.dumps(text), program, tensors, engine_options(fullgraph=True, ahead_of_time=True))
    except GraphBreakError as problem:
        raise AheadOfTimeError(f"the exported program is no single graph: {problem}") from None
    except RuntimeError as problem:
        if type(problem) is not RuntimeError:
            raise
        raise AheadOfTimeError(f"the exported program cannot be compiled ahead of time: {problem}") from None


def _other_arguments(wanted, given):
    (places, names), (given_places, given_names) = ((spec.child(0).num_children, spec.child(1).context) for spec in (wanted, given))
    if places != given_places:
        return f"the program takes {places} positional argument{'' if places == 1 else 's'}, not {given_places}"
    if set(names) != set(given_names):
        return f"the program takes {'the keyword arguments ' + ', '.join(names) if names else 'no keyword arguments'}, not {', '.join(given_names) or 'none'}"
    return f"the program takes its arguments as {wanted}, not as {given}"


class Program:
    """A compiled program: called as the exported module is, without gradients. Its buffers are its own."""

    def __init__(self, data):
        try:
            self._program = _engine.StoredProgram.read(data)
            content = json.loads(self._program.text)
            if content["format"] != _FORMAT:
                raise AheadOfTimeError("the file is of another version of Fusebox")
            self._arguments, self._leaves = ([form if form == ["tensor"] else [object_of(form)] for form in content[side]] for side in ("arguments", "results"))
            self._spec, self._results = (pytree.treespec_loads(content[side]) for side in ("in_spec", "out_spec"))
        except AheadOfTimeError:
            raise
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, NotImplementedError) as problem:
            raise AheadOfTimeError(f"the program cannot be loaded: {problem}") from None

    def __call__(self, *args, **kwargs):
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._spec:
            raise AheadOfTimeError(_other_arguments(self._spec, spec))
        tensors = []
        for number, (leaf, wanted) in enumerate(zip(leaves, self._arguments, strict=True)):
            if wanted == ["tensor"]:
                if not isinstance(leaf, torch.Tensor):
                    raise AheadOfTimeError(f"value {number} of the arguments has to be a tensor, not {type(leaf).__name__}")
                tensors.append(leaf)
            elif type(leaf) is not type(wanted[0]) or leaf != wanted[0]:
                raise AheadOfTimeError(f"value {number} of the arguments was {wanted[0]!r} when the program was exported, and cannot be {leaf!r}")
        try:
            made = iter(self._program.run(tensors))
            return pytree.tree_unflatten([next(made) if leaf == ["tensor"] else leaf[0] for leaf in self._leaves], self._results)
        except ValueError as problem:
            raise AheadOfTimeError(str(problem)) from None

    def __repr__(self):
        return f"<compiled program {self._program.name}>"


def load_program(file):
    """The program in a file (a path, or an object with read()). Nothing is compiled."""
    if hasattr(file, "read"):
        return Program(file.read())
    with open(file, "rb") as opened:
        return Program(opened.read())

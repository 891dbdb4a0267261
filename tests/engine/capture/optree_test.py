"""optree's functions in compiled code: what eager gives, in one graph."""

import collections

import optree
import torch

import fusebox
from checks.script_checks import expect, run

Point = collections.namedtuple("Point", "a b")


@optree.register_pytree_node_class(namespace="fusebox-test")
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __tree_flatten__(self):
        return (self.a, self.b), None

    @classmethod
    def __tree_unflatten__(cls, metadata, children):
        return cls(*children)


def trees():
    t = torch.ones
    return ({"b": t(3), "a": [t(2), (t(1), Point(t(2), None))]}, [t(1)], t(2), collections.OrderedDict(z=t(1), a=t(2)), (), {"a": {}, 3: t(1)})


def doubled(tree):
    leaves, structure = optree.tree_flatten(tree)
    made = optree.tree_unflatten(structure, [leaf * 2 for leaf in leaves])
    return optree.tree_map(lambda a, b: a + b, tree, made), sum(leaf.sum() for leaf in optree.tree_leaves(made)), structure, structure.num_leaves


def reduced(tree):
    return optree.tree_reduce(lambda a, b: a + b.sum(), tree, 0.0), optree.tree_all(optree.tree_map(lambda leaf: leaf is not None, tree)), optree.tree_structure(tree)


def nones(tree):
    return optree.tree_map(lambda leaf: leaf + 1 if leaf is not None else 0, tree, none_is_leaf=True)


def lists_are_leaves(tree):
    return optree.tree_map_(lambda leaf: leaf.add_(1) if isinstance(leaf, torch.Tensor) else None, tree), len(optree.tree_leaves(tree, is_leaf=lambda node: isinstance(node, list)))


def test_trees():
    for f in (doubled, reduced, nones, lists_are_leaves):
        fusebox.reset()
        compiled, before = fusebox.compile(f), fusebox.counters()["graph_breaks"]
        for want, tree in zip(trees(), trees()):
            expect(str(compiled(tree)) == str(f(want)) and str(tree) == str(want), f"{f.__name__} of {want}")
        expect(fusebox.counters()["graph_breaks"] == before, f"{f.__name__} breaks")


def test_order_of_questions():
    def asked(tree):
        seen = []

        def is_leaf(node):
            seen.append(len(node) if isinstance(node, (dict, list)) else node.shape[0])
            return len(seen) == 3

        return [leaf if isinstance(leaf, list) else leaf * 2 for leaf in optree.tree_leaves(tree, is_leaf=is_leaf)], seen

    compiled = fusebox.compile(asked, fullgraph=True)
    for make in (lambda: {"z": torch.ones(5), "a": [torch.ones(2), torch.ones(3)], "m": torch.ones(7)}, lambda: {3: torch.ones(4), 1: torch.ones(6), 2: [torch.ones(8)]}):
        expect(str(compiled(make())) == str(asked(make())), f"{compiled(make())} where eager gives {asked(make())}")


def test_what_is_left_to_optree():
    """Nodes of a class, deques, trees that do not fit: eager's results and errors."""
    def mapped(tree, other):
        return optree.tree_map(lambda a, b: a * b, tree, other, namespace="fusebox-test")

    compiled = fusebox.compile(mapped)
    pair = compiled(Pair(torch.ones(2), [torch.ones(1)]), Pair(torch.ones(2) * 3, [torch.ones(1) * 4]))
    expect(type(pair) is Pair and pair.a.tolist() == [3, 3] and pair.b[0].tolist() == [4], "a node of a class")
    made = compiled(collections.deque([torch.ones(1)], 3), collections.deque([torch.ones(1) * 2], 3))
    expect(type(made) is collections.deque and made.maxlen == 3 and made[0].item() == 2, "a deque")
    for tree, other in (([torch.ones(1)], (torch.ones(1),)), ({"a": torch.ones(1)}, {"b": torch.ones(1)}), ([torch.ones(1)], [torch.ones(1)] * 2)):
        errors = []
        for f in (mapped, compiled):
            try:
                f(tree, other)
            except ValueError as error:
                errors.append(str(error))
        expect(len(errors) == 2 and errors[0] == errors[1], f"{tree} and {other}: {errors}")


if __name__ == "__main__":
    run(globals())

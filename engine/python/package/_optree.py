"""optree's functions of C, followed through the containers that they go into. A structure is optree's own object, which it makes of a tree of numbers."""

import collections

import optree

from ._arrays import refuse


def _numbered(tree, is_leaf, none_is_leaf, namespace, leaves):
    """The tree with the places of its leaves in the list in their stead."""
    kind = type(tree)
    if is_leaf is None or not is_leaf(tree):
        if kind is tuple or kind is list:
            return kind([_numbered(part, is_leaf, none_is_leaf, namespace, leaves) for part in tree])
        if kind is dict and is_leaf is not None:  # which is asked in optree's order
            keys, made = list(tree), {}
            for place in _structure({key: place for place, key in enumerate(keys)}, none_is_leaf, namespace)[0]:
                made[keys[place]] = _numbered(tree[keys[place]], is_leaf, none_is_leaf, namespace, leaves)
            return {key: made[key] for key in keys}
        if kind is dict or kind is collections.OrderedDict:
            return kind([(key, _numbered(part, is_leaf, none_is_leaf, namespace, leaves)) for key, part in tree.items()])
        if tree is None and not none_is_leaf:
            return None
        way = _way(kind, namespace)
        if way == "named":
            return kind(*[_numbered(part, is_leaf, none_is_leaf, namespace, leaves) for part in tree])
        if way == "node":
            refuse(f"optree goes into a {kind.__name__}")
    leaves.append(tree)
    return len(leaves) - 1


def _filled(plan, leaves):
    if type(plan) is int:
        return leaves[plan]
    if plan is None:
        return None
    kind, keys, parts = plan
    if keys is None:
        made = [_filled(part, leaves) for part in parts]
        return kind(*made) if kind is not tuple and kind is not list else kind(made)
    return kind([(key, _filled(part, leaves)) for key, part in zip(keys, parts)])


def _matched(plan, tree, found):
    """Notes the parts of another tree at the places of leaves."""
    if type(plan) is int:
        found[plan] = tree
    elif plan is None:
        if tree is not None:
            refuse("optree is given a tree of another structure")
    else:
        kind, keys, parts = plan
        if type(tree) is not kind or len(tree) != len(parts):
            refuse("optree is given a tree of another structure")
        for place, part in enumerate(parts):
            if keys is not None and keys[place] not in tree:
                refuse("optree is given a tree of another structure")
            _matched(part, tree[place if keys is None else keys[place]], found)


def _flatten(tree, is_leaf=None, none_is_leaf=False, namespace=""):
    leaves = []
    order, structure = _structure(_numbered(tree, is_leaf, none_is_leaf, namespace, leaves), none_is_leaf, namespace)
    return [leaves[place] for place in order], structure


def _iterated(tree, is_leaf=None, none_is_leaf=False, namespace=""):
    return iter(_flatten(tree, is_leaf, none_is_leaf, namespace)[0])


def _unflatten(structure, leaves):
    leaves = list(leaves)
    known = _plan(structure)
    if known is None:
        refuse("optree knows nodes of a class")
    count, plan = known
    if len(leaves) != count:
        refuse("optree is given another number of leaves")
    return _filled(plan, leaves)


def _flatten_up_to(structure, tree):
    known = _plan(structure)
    if known is None:
        refuse("optree knows nodes of a class")
    count, plan = known
    found = [None] * count
    _matched(plan, tree, found)
    return found


# What follows is called as it is, on constants, and gives constants.


def _way(kind, namespace):
    """How optree takes an object that is no usual container."""
    if kind in (collections.defaultdict, collections.deque):
        return "node"
    if optree.is_namedtuple_class(kind):
        return "named"
    known = optree.register_pytree_node.get(kind, namespace=namespace)
    return "leaf" if known is None or kind is type(None) else "node"


def _structure(numbered, none_is_leaf, namespace):
    leaves, structure = optree.tree_flatten(numbered, none_is_leaf=none_is_leaf, namespace=namespace)
    return tuple(leaves), structure


def _described(tree):
    kind = type(tree)
    if kind is int or tree is None:
        return tree
    if kind in (dict, collections.OrderedDict):
        return kind, tuple(tree), tuple(map(_described, tree.values()))
    if kind in (tuple, list) or optree.is_namedtuple_class(kind):
        return kind, None, tuple(map(_described, tree))
    raise TypeError


def _plan(structure):
    """(number of leaves, the tree with their places: ints, None, or (type, keys or None, parts)); None: it has other nodes."""
    try:
        return structure.num_leaves, _described(structure.unflatten(range(structure.num_leaves)))
    except TypeError:
        return None


AS_IT_IS = {_way, _structure, _plan}
FOLLOWED = {
    optree._C.flatten: _flatten, optree._C.PyTreeIter: _iterated,
    optree.PyTreeSpec.unflatten.__func__: _unflatten,
    optree.PyTreeSpec.flatten_up_to.__func__: _flatten_up_to,
}
# What tells of a structure.
AS_IT_IS |= {member.fget for member in vars(optree.PyTreeSpec).values() if isinstance(member, property)}
AS_IT_IS |= {getattr(optree.PyTreeSpec, name).__func__ for name in ("is_leaf", "is_one_level", "children", "child", "entries", "entry", "paths", "accessors", "one_level")
             if hasattr(optree.PyTreeSpec, name)}

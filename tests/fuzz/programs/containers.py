"""Lists, dicts, sets, tuples, deques and their relatives: nested, aliased, changed while they are walked over."""

from .grammar import feature, inner, statement


@statement(1)
def new_list(g):
    x, y = g.variable("x") or "x", g.tensor("x", 2)
    g.new("L", g.pick([f"[{x}, {y}]", f"list(({x}, {x}))", f"[{y}] * 2", f"[t * 2 for t in ({x}, {y})]",
                       f"[{x}] + [{y}, {x}]", f"sorted([{x}, {y}], key=lambda t: t.ndim)"]))


@statement(1)
def use_list(g):
    L = g.variable("L")
    if not L:
        return new_list(g)
    x = g.variable("x") or "x"
    g.line(g.pick([f"{L}.append({x})", f"{L}.insert(0, {x} + 1)", f"{L}.extend([{x}, {x}])", f"{L}.reverse()",
                   f"{L} += [{x}]", f"{L}[-1] = {x}", f"{L}[1:] = [{x}]", f"{L}[:1] = []", f"del {L}[-1]", f"{L}.pop()",
                   f"{L}.pop(0)", f"{L}.clear()", f"{L}[0] = {L}[-1]", f"{L} *= 2", f"{L} = {L}[::-1]", f"{L}[0] += 1",
                   f"{L}[-1].mul_(0.5)", f"{L} = list(map(lambda t: t + 1, {L}))",
                   f"{L}.remove({L}[0]) if len({L}) == 1 else None"]))


@statement(0.8)
def read_list(g):
    L = g.variable("L")
    if not L:
        return new_list(g)
    x = g.variable("x") or "x"
    g.line(g.pick([f"{x} = {x} + sum({L})", f"{x} = {x} + {L}[-1]", f"{x} = {x} + len({L})", f"{x} = {L}[0] * 2",
                   f"for t in {L}:\n    {x} = {x} + t", f"for i, t in enumerate({L}):\n    {x} = {x} * i + t",
                   f"for a, b in zip({L}, {L}[1:]):\n    {x} = {x} + a - b",
                   f"{x} = {x} + (1 if any(t is {x} for t in {L}) else 2)", f"{x} = torch.stack({L}).sum(0)",
                   f"{x} = {x} + ({L}[0] is {L}[-1])", f"first, *rest = {L}\n{x} = {x} + first + len(rest)",
                   f"for t in reversed({L}):\n    {x} = {x} - t", f"{x} = max({L}, key=lambda t: t.shape[0]) + {x}"]))


@statement(0.6)
def changed_while_walked(g):
    x = g.variable("x") or "x"
    L = g.variable("L") or g.new("L", f"[{x}, {x} + 1]")
    D = g.variable("D")
    g.line(g.pick([f"for t in {L}:\n    {x} = {x} + t\n    if len({L}) < 4:\n        {L}.append(t * 0.5)",
                   f"for t in {L}:\n    {x} = {x} + t\n    {L}.pop()",
                   f"for i, t in enumerate({L}):\n    {L}[i] = t + i\n    {x} = {x} + t",
                   f"it = iter({L})\n{L}.append({x})\n{x} = {x} + len(list(it))"]))
    if D and g.chance(0.5):
        g.line(g.pick([f"for k in {D}:\n    {D}[k] = {D}[k] + 1",
                       f"try:\n    for k in {D}:\n        {D}[k + '_'] = {x}\nexcept RuntimeError as e:\n"
                       f"    LOG.append(str(e))", f"for k, t in list({D}.items()):\n    {D}[k + 'q'] = t",
                       f"keys = {D}.keys()\n{D}['new'] = {x}\n{x} = {x} + len(keys)",
                       f"for k in list({D}):\n    del {D}[k]"]))


@statement(0.8)
def new_dict(g):
    x = g.variable("x") or "x"
    g.new("D", g.pick([f"{{'a': {x}, 'b': {x} + 1}}", f"dict(a={x}, z={x} * 2)",
                       f"collections.OrderedDict(b={x}, a={x})", f"dict(zip('abc', [{x}, {x}, {x} - 1]))",
                       f"{{**{{'a': {x}}}, 'c': {x}}}", f"dict.fromkeys('ab', {x})",
                       f"{{'a': {x}}} | {{'q': {x} * 3}}"]))


@statement(1)
def use_dict(g):
    D = g.variable("D")
    if not D:
        return new_dict(g)
    x, k = g.variable("x") or "x", g.pick(["'a'", "'b'", "'c'", "'k'", "str(call)"])
    g.line(g.pick([f"{D}[{k}] = {x}", f"{D}.setdefault({k}, {x})", f"{D}.update(c={x})", f"{D}.pop({k}, None)",
                   f"{x} = {x} + {D}.get({k}, 1)", f"{D} |= {{'m': {x}}}", f"{x} = {x} + sum({D}.values())",
                   f"for k, t in {D}.items():\n    {x} = {x} + t * len(k)", f"{x} = {x} * ({k} in {D})",
                   f"LOG.append(sorted({D}))", f"{x} = {x} + {D}.popitem()[1]", f"v = {D}.pop('a', {x})\n{D}['a'] = v",
                   f"{D} = {{k: t * 2 for k, t in {D}.items()}}", f"{x} = {D}[{k}] + {x}", f"{D}['a'] = {D}",
                   f"{D}.clear()", f"del {D}['a']", f"{x} = {x} + next(iter({D}.values()))"]))


@statement(0.5)
def new_other(g):
    n = g.integer()
    g.new("Z", g.pick([f"{{1, {n}, 3}}", f"({n}, 2)", f"frozenset(({n}, 1))",
                       f"collections.deque([{n}, 1, 2], maxlen=3)", f"[{n}, [1, {n}]]", f"collections.Counter('aab')",
                       f"[3, {n}, 1, 2]", f"tuple(range({n} % 4))", f"bytearray(b'ab')", f"[[{n}] * 2] * 2",
                       f"set(range({n} % 5))"]))


@statement(0.7)
def use_other(g):
    Z = g.variable("Z")
    if not Z:
        return new_other(g)
    x, n = g.variable("x") or "x", g.integer()
    with g.block("try:"):
        g.line(g.pick([f"{Z}.add({n})", f"{Z}.append({n})", f"{x} = {x} * (2 if {n} in {Z} else 3)",
                       f"{x} = {x} + sum(sorted({Z}))", f"{Z}.discard({n})", f"{Z}.rotate(1)", f"{Z} = {Z} + {Z}",
                       f"{Z} |= {{7, {n}}}", f"{Z}[0] = {n}", f"{Z}[1].append({n})", f"LOG.append(list({Z}))",
                       f"{x} = {x} + len({Z})", f"{Z}.sort(reverse=True)", f"{Z}.appendleft({n})", f"{Z} = {Z}[::-1]",
                       f"{Z}.pop()", f"{x} = {x} + {Z}.index({n})", f"{x} = {x} + {Z}.count(1)",
                       f"{x} = {x} * ({Z} == {Z}.copy())", f"for z in {Z}:\n        {x} = {x} + z", f"{Z}.extend({Z})",
                       f"{Z}.update('b')", f"LOG.append(max({Z}))", f"{Z} -= {{1}}"]))
    with g.block(f"except (AttributeError, TypeError, ValueError, IndexError, KeyError) as e:"):
        g.line("LOG.append(type(e).__name__)")


WORLD = [("ITEMS", ["[]", "[1, 2, 3]", "[1.5, torch.ones(1)]", "[torch.ones(1), torch.zeros(1)]"],
          ["ITEMS.append(call)", "ITEMS.insert(0, 1)", "ITEMS[:] = ITEMS[::-1]",
           "ITEMS[0:1] = [torch.full((1,), 2.0)]"]), ("TABLE", ["{}", "{'a': 1, 'b': 2.0}",
    "{'a': torch.ones(1), 'b': [1]}", "{'k': {'in': 2}}"], ["TABLE['a'] = call", "TABLE.pop('a', None)",
    "TABLE['b'] = TABLE.pop('b', 3)", "TABLE['n%d' % call] = 0.5", "TABLE.update(a=torch.full((1,), 3.0))"]), ("SEEN",
    ["set()", "{1, 2}"], ["SEEN.add(call)", "SEEN.discard(1)"]), ("QUEUE", ["collections.deque([1, 2])",
    "collections.deque(maxlen=2)", "collections.deque([torch.ones(1)])"], ["QUEUE.append(call)", "QUEUE.rotate(1)",
    "QUEUE.clear()"]), ("GROUPS", ["collections.defaultdict(list)", "collections.defaultdict(int)"], ["GROUPS['a']",
    "GROUPS.clear()"]), ("ORDER", ["collections.OrderedDict(a=1, b=2)"], ["ORDER.move_to_end('a')", "ORDER['b'] = call",
    "ORDER.pop('a', None)"]), ("NEST", ["[[1], [2]]", "{'p': [1, 2], 'q': (3, [4])}"], ["NEST and None",
    "LOG.clear()"])]
USES = {"ITEMS": ["ITEMS.append({x})", "ITEMS.append({n})", "{x} = {x} + len(ITEMS)",
                  "for v in ITEMS:\n    {x} = {x} + v", "{x} = {x} * ITEMS[-1]", "ITEMS.pop(0)",
                  "ITEMS[-1] = {x}.sum()", "{x} = {x} + sum(ITEMS)", "ITEMS.clear()", "ITEMS.reverse()",
                  "{x} = {x} + (2 if {n} in [v for v in ITEMS if isinstance(v, int)] else 1)", "ITEMS += [{n}]",
                  "for v in ITEMS:\n    {x} = {x} + v\n    if len(ITEMS) < 5:\n        ITEMS.append(v)",
                  "ALIAS = ITEMS\nALIAS.append({n})", "ITEMS[:] = ITEMS[1:]", "ITEMS.sort(key=float)"],
        "TABLE": ["TABLE['a'] = {x}", "TABLE['c'] = {n}", "{x} = {x} * TABLE.get('a', 2)",
                  "for k, v in TABLE.items():\n    LOG.append(k)", "TABLE.setdefault('z', []).append({n})",
                  "del TABLE['b']", "{x} = {x} + len(TABLE)", "v = TABLE.pop('a', 1)\nTABLE['a'] = v",
                  "TABLE['self'] = TABLE", "TABLE.update(q={x}, r={n})", "{x} = {x} + ('a' in TABLE)",
                  "{x} = {x} + TABLE['b']", "for k in list(TABLE)[:1]:\n    TABLE[k] = {n}", "TABLE.clear()",
                  "TABLE['k']['in'] += 1", "{x} = {x} * sum(len(k) for k in TABLE.keys())"], "SEEN": ["SEEN.add({n})",
    "{x} = {x} * (2 if {n} in SEEN else 3)", "{x} = {x} + len(SEEN)", "SEEN.discard({n})", "SEEN.update((5, {n}))",
    "for v in sorted(SEEN):\n    {x} = {x} + v", "SEEN.remove(99)", "SEEN.clear()"], "QUEUE": ["QUEUE.append({n})",
    "QUEUE.appendleft({x})", "{x} = {x} + len(QUEUE)", "QUEUE.popleft()", "for v in QUEUE:\n    {x} = {x} + v",
    "QUEUE.extend([1, {n}])", "QUEUE.rotate(1)", "{x} = {x} * QUEUE[0]"],
        "GROUPS": ["GROUPS['a'] += [{n}] if GROUPS.default_factory is list else 1", "{x} = {x} + len(GROUPS)",
                   "GROUPS['b']", "LOG.append(sorted(GROUPS))", "GROUPS[{n}] = GROUPS['a']"],
        "ORDER": ["ORDER.move_to_end('b')", "ORDER['c'] = {n}", "for k, v in ORDER.items():\n    {x} = {x} * 0.5 + v",
                  "ORDER.popitem(last=False)", "{x} = {x} + next(iter(ORDER.values()))", "LOG.append(list(ORDER))",
                  "ORDER['a'] = {x}"], "NEST": ["NEST[0].append({n})", "NEST['p'].append({n})",
                                        "NEST['q'][1].append({x})", "NEST[1] = NEST[0]", "{x} = {x} + len(NEST)",
                                        "NEST.append(NEST[0])", "for part in NEST:\n    LOG.append(str(part)[:9])"], }


@feature(2)
def containers_of_the_module(g):
    for name, values, changes in g.rng.sample(WORLD, g.number(1, 2)):
        g.declared.append(f"{name} = {g.pick(values)}")
        if g.chance(0.5):
            g.changes.append(g.pick(changes))
        if g.chance(0.2):
            g.declared.append(f"ALSO_{name} = {g.pick([name, f'[{name}, {name}]', f'dict(me={name})'])}")
        g.statements.append((2, lambda g, name=name: use_of_the_module(g, name)))


def use_of_the_module(g, name):
    line = g.pick(USES[name]).format(x=g.variable("x") or "x", n=g.integer())
    if g.chance(0.6):
        with g.block("try:"):
            g.line(line)
        with g.block("except (KeyError, IndexError, TypeError, ValueError, AttributeError) as e:"):
            g.line("LOG.append(type(e).__name__)")
            if g.chance(0.2):
                inner(g, 1)
    else:
        g.line(line)

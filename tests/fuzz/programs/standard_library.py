"""Built-in functions and modules of the standard library that programs over tensors use."""

from .grammar import statement

SEQUENCES = ["[3, 1, 2]", "range({n} % 4)", "(1, {n})", "'abc'", "[1.5, {n}]", "{{2: 'b', 1: 'a'}}", "[]"]
CALLS = ["list(itertools.chain({s}, [1]))", "list(itertools.accumulate([1, {n}, 3]))", "[list(v) for k, v in itertools.groupby([1, 1, {n}])]",
         "list(itertools.product([1, 2], 'ab'))[:{n} % 4]", "list(itertools.combinations(range(4), 2))[-1]", "list(itertools.islice(itertools.count({n}), 3))",
         "list(itertools.takewhile(lambda v: v != {n}, [0, 1, 2]))", "list(itertools.dropwhile(lambda v: v != {n}, [0, 1, 2]))",
         "list(itertools.starmap(max, [(1, {n}), (2, 0)]))", "list(itertools.pairwise([1, {n}, 3]))", "list(itertools.compress('abc', [1, {n}, 0]))",
         "list(itertools.permutations([1, {n}]))", "[next(c) for c in [itertools.cycle([1, {n}])] for _ in range(3)]",
         "[list(t) for t in itertools.tee(iter([1, {n}]))]", "list(itertools.filterfalse(bool, [0, {n}]))",
         "functools.reduce(lambda a, b: a * 2 + b, [1, {n}, 3])", "functools.reduce(operator.add, ['a', 'b'], 'z')",
         "operator.itemgetter(1, 0)([{n}, 5])", "operator.attrgetter('real')({n})", "operator.methodcaller('count', 'a')('banana')",
         "list(zip([1, 2], {s}))", "list(map(lambda a, b: (a, b), [1, 2], 'xy'))", "list(filter(None, [0, {n}, 'a']))", "list(enumerate({s}, {n}))",
         "sorted({s}, key=str, reverse=True)", "max([1, {n}], default=0)", "min({s}, key=repr, default='none')", "sum([1, {n}], 0.5)",
         "any(v == {n} for v in [1, 2])", "all([])", "list(reversed([1, {n}]))", "list(iter([1, 2, {n}].pop, {n}))", "dict(zip('ab', {s}))",
         "dict.fromkeys({s}, 0)", "collections.Counter(str({n}) + 'aa').most_common(1)", "dict(collections.ChainMap({{'a': {n}}}, {{'a': 1, 'b': 2}}))",
         "list(collections.deque([1, 2, {n}], maxlen=2))", "math.floor({n} / 2) + math.gcd(12, {n})", "math.isclose({n}, 2.0)", "math.prod([1, {n}, 2])",
         "math.hypot({n}, 4)", "isinstance({n}, (int, str))", "issubclass(bool, int)", "callable({n})", "hash({n}) == {n}", "getattr({n}, 'nope', 'no')",
         "type({n}).__name__", "list('a-b'.partition('-'))", "'{{}} {{k}}'.format({n}, k=1)", "'abc'.translate({{97: 'z'}})", "' x '.strip() * 2",
         "'a1b'.isalnum(), 'Ab'.swapcase()", "','.join(map(str, [1, {n}]))", "ord('a') + {n}", "[*'abc'][::-1]", "bytes([1, 2]).hex()",
         "list(range(10))[slice(1, 8, 3)]", "[1, 2, 3].index(2) + (1, 2).count({n})", "{{1, 2}} | {{{n}}}", "{{1, 2, 3}} - {{{n}}} <= {{1, 2, 3}}",
         "list({{'a': 1, 'b': 2}}.items())[-1]", "complex({n}, 1).imag", "float('1e3') + {n}", "int(2.9) + bool({n})", "round(2.5) + round(3.5)",
         "abs(-{n}) + (-{n}) ** 2", "[].__len__() + len({s})", "random.Random({n}).randint(0, 9)", "numpy.arange(3).tolist()"]
OF_TENSORS = ["{x} = functools.reduce(torch.add, [{x}, {x} * 0.5, 1])", "{x} = operator.add({x}, {n})", "{x} = sum(itertools.accumulate([{x}, {x}]))",
              "{x} = next(filter(lambda t: t.ndim == 2, [{x}]))", "{x} = max({x}, {x} * 1, key=lambda t: t.ndim)", "{x} = operator.itemgetter(0)([{x}])",
              "for a, b in itertools.product([{x}], [1, 2]):\n    {x} = a + b", "{x} = copy_of({x})", "for t in map(torch.sin, [{x}]):\n    {x} = t",
              "{x} = [*map(operator.mul, [{x}], [2])][0]", "{x} = dict(a={x}).get('a')", "{x} = getattr({x}, 'sin')()", "{x} = torch.Tensor.add({x}, 1)",
              "LOG.append(isinstance({x}, torch.Tensor) and {x}.shape == {x}.size())", "LOG.append(list({x}.shape))", "LOG.append({x}.shape[-1:] + (1,))",
              "{x} = {x} + dict(zip({x}.shape, 'ab')).__len__()", "{x} = functools.partial(torch.mul, other=2)({x})", "{x} = {x} * math.sqrt({x}.shape[0] + 1)",
              "{x} = operator.methodcaller('mul', 2)({x})", "{x} = torch.stack(list(itertools.repeat({x}, 2)))[1]", "{x} = {x} + hash(tuple({x}.shape)) % 3"]


@statement(0.9)
def a_call_of_the_library(g):
    n = g.integer()
    sequence = g.pick(SEQUENCES).format(n=n)
    g.line(f"LOG.append({g.pick(CALLS).format(n=n, s=sequence)})")


@statement(0.5)
def a_call_with_tensors(g):
    x = g.variable("x") or "x"
    text = g.pick(OF_TENSORS).format(x=x, n=g.integer())
    if "copy_of" in text:
        g.line("import copy as copying")
        text = text.replace("copy_of", "copying.copy")
    g.line(text)

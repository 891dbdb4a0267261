"""Functions behind functools.lru_cache: asked with sizes that change, after the program has written, with what others gave.

Every call is compared with eager, and what the caches count too.
"""

import functools
import typing

import torch

import fusebox
import fusebox._engine_access  # noqa: F401
from checks.script_checks import expect, run


def compared(make, calls, graphs):
    """`make()`: (function, caches). Both are made twice, since caches remember. What caches count is compared, too."""
    fusebox.reset()
    (eager, of_eager), (own, of_own) = make(), make()
    compiled, before = fusebox.compile(own, backend="aot_eager"), fusebox.counters()
    for args in calls:
        expected, got = eager(*args()), compiled(*args())
        expect(repr(got) == repr(expected), f"{got!r} where eager gives {expected!r}")
        counts = [[cache.cache_info() for cache in caches] for caches in (of_eager, of_own)]
        expect(counts[0] == counts[1], f"caches count {counts[1]} where eager's count {counts[0]}")
    now = fusebox.counters()
    told = [now[name] - before[name] for name in ("graphs", "graph_breaks")]
    expect(told == [graphs, 0], f"graphs and breaks {told}")


class Pattern:
    """Compared by identity, as what a cache gives to the next often is."""

    def __init__(self, text):
        self.parts, self.kept = text.split(), []

    def sizes(self, shape, more):
        known = dict(zip(self.parts, shape))
        self_first, *rest = [known[part] for part in self.parts]
        return (self_first * more, -1, *rest[1:])


def patterns():
    @functools.lru_cache(16)
    def pattern(text):
        return Pattern(text)

    @functools.lru_cache(16)
    def sizes(of, shape, more):
        made = []
        for size in of.sizes(shape, more):
            made.append(size)
        return tuple(made)

    return pattern, sizes


def sized(*shapes):
    return [lambda shape=shape: (torch.arange(float(torch.Size(shape).numel())).reshape(shape), {}) for shape in shapes]


def test_keys_with_sizes_that_change():
    def make():
        pattern, sizes = patterns()

        def f(x, seen):
            return x.reshape(sizes(pattern("a b c"), x.shape, 1)) * 2, x.reshape(sizes(pattern("a b c"), tuple(x.shape), 1))

        return f, (pattern, sizes)

    compared(make, sized((2, 4, 6), (3, 4, 6), (5, 4, 8), (7, 8, 6), (3, 4, 6)), graphs=4)


def test_a_size_alone_is_a_key():
    def make():
        @functools.lru_cache
        def half(n):
            return n // 2 + 1

        return (lambda x, seen: x * half(x.shape[0])), (half,)

    compared(make, sized((2,), (3,), (5,), (9,), (2,)), graphs=2)


def test_after_writes_of_the_program():
    def make():
        pattern, sizes = patterns()

        def f(x, seen):
            kept = pattern("a b c")
            seen["calls"] = seen.get("calls", 0) + 1
            return x.reshape(sizes(kept, x.shape, 1)) + 1, seen

        return f, (pattern, sizes)

    compared(make, sized((2, 4, 6), (2, 4, 6), (3, 4, 6), (5, 4, 6)), graphs=2)


def test_objects_that_are_made_after_writes_of_the_program():
    class Recipe:
        def __init__(self, text):
            self.names = text.split()
            self.places = {name: i for i, name in enumerate(self.names)}

    known = {}

    @functools.lru_cache
    def recipe(text):
        return Recipe(text)

    @functools.lru_cache
    def counting(text):
        known[text] = known.get(text, 0) + 1
        return Recipe(text)

    def with_recipe(maker):
        def f(x, text):
            known["last"] = text
            made = maker(text)
            return x.reshape([x.shape[made.places[name]] for name in made.names]) + len(made.names), made

        return f

    x = torch.ones(2, 3)
    for maker, breaks in ((recipe, 0), (counting, 1)):
        fusebox.reset()
        known.clear()
        compiled, before = fusebox.compile(with_recipe(maker)), fusebox.counters()
        results = [compiled(x, "a b") for _ in range(3)]
        torch.testing.assert_close(results[0][0], x + 2)
        after = fusebox.counters()
        expect(all(r[1] is maker("a b") for r in results) and maker.cache_info()[:2] == (5, 1), f"one object: {maker.cache_info()}")
        expect(known == {"last": "a b", **({"a b": 1} if breaks else {})}, f"what was written: {known}")
        expect((after["graph_breaks"] > before["graph_breaks"]) == (breaks > 0), f"breaks of {maker.__name__}: {after}")


def test_a_list_that_is_remembered_is_the_same_one():
    def make():
        @functools.lru_cache
        def listed(n):
            return [n]

        return (lambda x, seen: (listed(x.shape[0]) is listed(x.shape[0]), listed(x.shape[0]), x + 1)), (listed,)

    fusebox.reset()
    (eager, _), (own, _) = make(), make()
    compiled = fusebox.compile(own, backend="aot_eager")
    for n in (2, 3, 5, 3, 2):
        expected, got = eager(torch.ones(n), {}), compiled(torch.ones(n), {})
        expect(repr(got) == repr(expected), f"{got!r} where eager gives {expected!r}")
        got[1].append(1), expected[1].append(1)


def test_tensors_that_are_remembered_stay_the_same_ones():
    @functools.lru_cache
    def noise(n):
        return torch.rand(n)

    fusebox.reset()
    compiled = fusebox.compile(lambda x: (noise(x.shape[0]), x + 1), backend="aot_eager")
    for n in (2, 3, 5, 3, 2, 5):
        first, second = compiled(torch.zeros(n))[0], compiled(torch.zeros(n))[0]
        expect(torch.equal(first, second) and torch.equal(first, noise(n)), f"noise of {n} was drawn again")


def makers():
    @functools.lru_cache
    def listed(n):
        return [n, 1]

    @functools.lru_cache
    def table(n):
        return {"rows": n, "both": [n, {"twice": n * 2}]}

    @functools.lru_cache
    def mask(n):
        made = torch.zeros(n, 3)
        made[0] = n
        return made

    @functools.lru_cache
    def noise(n):
        return torch.rand(n, 1)

    return listed, table, mask, noise


def test_what_is_made_of_sizes_and_only_read():
    def make():
        listed, table, mask, noise = makers()

        def f(x, seen):
            n = x.shape[0]
            return x.reshape([*listed(n), -1]) + table(n)["both"][1]["twice"], x * mask(n), len(table(n)), mask(n) is None

        return f, (listed, table, mask)

    compared(make, sized((2, 3), (4, 3), (5, 3), (9, 3), (4, 3)), graphs=2)


def test_what_is_made_of_sizes_and_told_apart():
    """Written to, given away, held, compared: what the cache remembers is one object."""
    held = []

    def written(x, listed, table, mask, noise):
        listed(x.shape[0]).append(x.shape[1])
        table(x.shape[0])["rows"] += 1
        return x + len(listed(x.shape[0])) * table(x.shape[0])["rows"]

    def tensor_written(x, listed, table, mask, noise):
        mask(x.shape[0]).add_(1)
        return x + mask(x.shape[0])

    def view_given(x, listed, table, mask, noise):
        return x + 1, mask(x.shape[0])[0]

    def kept(x, listed, table, mask, noise):
        held.append(table(x.shape[0])["both"])
        return x + 1

    def compared_by_identity(x, listed, table, mask, noise):
        return x * (2 if mask(x.shape[0]) is mask(x.shape[0]) else 3)

    def drawn(x, listed, table, mask, noise):
        return x + noise(x.shape[0])

    for f in (written, tensor_written, view_given, kept, compared_by_identity, drawn):
        fusebox.reset()
        results = []
        for call in (f, fusebox.compile(f, backend="aot_eager")):
            caches = makers()
            held.clear()
            torch.manual_seed(5)
            given = []
            for n in (2, 3, 5, 3, 7, 5, 2):
                out = call(torch.ones(n, 3), *caches)
                if f is view_given:
                    out[1].mul_(2)
                given.append(out)
            results.append(repr((given, held, [[cache.cache_info() for cache in caches]])))
            if f is kept:
                expect(held[1] is held[3], "what is held is what the cache remembers")
        expect(results[0] == results[1], f"{f.__name__}: {results[1]} where eager gives {results[0]}")


def test_after_a_gradient_was_cleared():
    """Which is put off until the graph has run."""
    linear = torch.nn.Linear(3, 3)

    @functools.lru_cache
    def pattern(text):
        return Pattern(text)

    @functools.lru_cache
    def state(text):
        made = Pattern(text)
        made.kept.append(linear.weight.grad is None)
        return made

    def step(x, of):
        linear.weight.grad = None
        return linear(x).reshape(of("a b").sizes(x.shape, 1))

    compiled, before = fusebox.compile(step), fusebox.counters()
    for text in range(3):
        linear.weight.grad = torch.ones(3, 3)
        torch.testing.assert_close(compiled(torch.ones(2, 3), pattern), linear(torch.ones(2, 3)))
    expect(fusebox.counters()["graph_breaks"] == before["graph_breaks"], "a remembered object is no break")
    linear.weight.grad = torch.ones(3, 3)
    compiled(torch.ones(2, 3), state)
    expect(state("a b").kept == [True], f"the function saw {state('a b').kept}")


def test_what_the_function_raises():
    def make():
        @functools.lru_cache
        def checked(n):
            if n > 4:
                raise ValueError(f"{n} is too much")
            return n

        def f(x, seen):
            try:
                return x * checked(x.shape[0])
            except ValueError as problem:
                return str(problem)

        return f, (checked,)

    fusebox.reset()
    (eager, of_eager), (own, of_own) = make(), make()
    compiled = fusebox.compile(own, backend="aot_eager")
    for n in (2, 3, 5, 6, 3, 5):
        x = torch.ones(n)
        expect(repr(compiled(x, {})) == repr(eager(x, {})), f"raised for {n}")
        expect(of_eager[0].cache_info() == of_own[0].cache_info(), f"{of_own[0].cache_info()} where eager counts {of_eager[0].cache_info()}")


def test_a_function_that_raised_is_asked_again_after_writes():
    """That it raised for some arguments breaks the graph there, and for no others."""
    @functools.lru_cache
    def parts(n, k):
        if n % k:
            raise ValueError(f"{n} is no multiple of {k}")
        return [n // k] * k, {n: k}

    def f(x, k, log):
        log.append(k)
        (size, *_), known = parts(x.shape[0], k)
        return x.reshape(size, -1) * known[x.shape[0]]

    compiled = fusebox.compile(f, dynamic=False)
    for n, k in ((12, 3), (12, 5), (12, 4), (10, 5), (8, 3), (8, 2), (12, 3)):
        before, outcomes = fusebox.counters()["graph_breaks"], []
        for function in (compiled, f):
            log = []
            try:
                outcomes.append((function(torch.arange(float(n)), k, log).tolist(), log))
            except ValueError as problem:
                outcomes.append((str(problem), log))
        expect(outcomes[0] == outcomes[1], f"{outcomes[0]} where eager gives {outcomes[1]}")
        expect(fusebox.counters()["graph_breaks"] - before == (n % k != 0), f"{fusebox.counters()['graph_breaks'] - before} breaks for {n} and {k}")


def test_full_caches_of_types():
    """What typing remembers does not matter: one of its caches is full in any process that has imported much."""
    for n in range(300):
        typing.Optional[type(f"Class{n}", (), {})]

    def annotated(x, kind):
        with torch.autograd.profiler.record_function("annotated"):
            found = typing.Optional[kind]
        return x + 1, found

    compiled = fusebox.compile(annotated, fullgraph=True)
    for kind in (int, Box, int):
        got, found = compiled(torch.ones(2), kind)
        expect(torch.equal(got, torch.full((2,), 2.0)) and found == typing.Optional[kind], f"{found}")


def test_frozen_sets():
    @functools.lru_cache(maxsize=16)
    def measured(names):
        return 10 * len(names) + ("a" in names)

    box = Box()
    compiled = fusebox.compile(lambda x: (x * measured(box.names), measured(frozenset([1, 2]))), fullgraph=True)
    for names in ({"a", "b"}, {"a", "c"}, {"b"}, {"a", "b"}, set()):
        box.names = frozenset(names)
        expect(compiled(torch.ones(1))[0].item() == 10 * len(names) + ("a" in names), f"{names}")


class Box:
    pass


if __name__ == "__main__":
    run(globals())

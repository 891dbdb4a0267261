"""Ranks that compile together: sizes that differ between them are symbols on all, all compile again or none, and who differs is named."""

import sys
import time
import warnings

import torch
import torch.distributed as dist

import fusebox
from checks.script_checks import expect, run
from rank_processes import is_rank, run_rank, run_ranks


def counts(*names):
    return [fusebox.counters()[name] for name in names]


def told(caught):
    return [str(w.message) for w in caught if "rank" in str(w.message)]


# --- programs, run by every rank

def sizes_differ(rank):
    torch._dynamo.config.enable_compiler_collectives = True
    compiled = fusebox.compile(lambda x: (x * 2).relu().sum(-1))
    for size in (4 + rank, 6 + 3 * rank, 9 - rank):
        x = torch.randn(size, 5)
        torch.testing.assert_close(compiled(x), (x * 2).relu().sum(-1))
    return counts("graphs", "recompiles")


def sizes_differ_alone(rank):
    compiled = fusebox.compile(lambda x: (x * 2).relu().sum(-1))
    for size in (4 + rank, 6 + 3 * rank):
        compiled(torch.randn(size, 5))
    return counts("graphs", "recompiles")


def guards_agree(rank):
    torch._dynamo.config.enable_compiler_collectives = True
    before = [torch.compiler.set_enable_guard_collectives(on) for on in (True, True)]
    compiled = torch.compile(lambda x: (x * 2).relu().sum(-1))
    for step in range(4):  # from step 2 on sizes differ on rank 1 alone
        x = torch.randn(6 if rank == 0 or step < 2 else 5 + step, 5)
        torch.testing.assert_close(compiled(x), (x * 2).relu().sum(-1))
    found = counts("graphs", "recompiles")
    return [before, torch.compiler.set_enable_guard_collectives(False), torch.compiler.set_enable_guard_collectives(False), found]


def a_rank_leaves(rank):
    """Guard collectives do not hang where a rank stops calling."""
    fusebox.config.rank_wait_s, fusebox.config.rank_report_s = 2, 1
    fusebox.compiler.set_enable_guard_collectives(True)
    compiled = fusebox.compile(lambda x: x * 2)
    begin = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(6 if rank == 0 else 2):
            compiled(torch.ones(3))
    return [time.monotonic() - begin, told(caught)]


def _branches(x, way):
    return (x * 2).relu() if way else (x * 2).tanh()


def other_graph(rank):
    return _told_of_a_difference(lambda: fusebox.compile(_branches)(torch.ones(4), rank == 0))


def never_comes(rank):
    return _told_of_a_difference(lambda: rank == 0 and fusebox.compile(_branches)(torch.ones(4), True))


def same_graph(rank):
    return _told_of_a_difference(lambda: fusebox.compile(_branches)(torch.ones(4), True), wait=1.5)


def _told_of_a_difference(call, wait=10):
    fusebox.config.rank_report_s = 3 if wait > 2 else 0.5
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
        end = time.monotonic() + wait
        while time.monotonic() < end and not told(caught):
            time.sleep(0.05)
    return told(caught)


def without_agreement(rank):
    fusebox.config.rank_agreement = False
    return _told_of_a_difference(lambda: fusebox.compile(_branches)(torch.ones(4), rank == 0), wait=1.5)


# --- tests

def given(program, size=2, **environment):
    ranks = run_ranks(__file__, program, size, **environment)
    for rank, (_, errors, code) in enumerate(ranks):
        expect(code == 0, f"{program}: rank {rank} of {size} ended with {code}: {errors[-2000:]}")
    return [each[0] for each in ranks]


def test_sizes_that_differ_between_ranks_are_symbols_at_once():
    for size in (2, 4):
        for graphs, recompiles in given("sizes_differ", size):
            expect((graphs, recompiles) == (1, 0), f"{size} ranks: one graph for all sizes, none compiled again: {graphs}, {recompiles}")
    expect(all(each == [2, 1] for each in given("sizes_differ_alone")), "without: each rank learns of its own sizes, by compiling twice")


def test_ranks_compile_again_together():
    ranks = given("guards_agree")
    for before, on, off, _ in ranks:
        expect((before, on, off) == ([False, True], True, False), f"the previous setting is returned: {before}, {on}, {off}")
    expect(ranks[0][3] == ranks[1][3] == [2, 1], f"the rank whose sizes stay compiles again too, with symbols: {[each[3] for each in ranks]}")


def test_a_rank_that_leaves_holds_nobody_up():
    (seconds, texts), _ = given("a_rank_leaves")
    expect(2 <= seconds < 20 and any("rank 1 did not come" in text for text in texts), f"{seconds} s, {texts}")
    expect(any("off from now on" in text for text in texts), f"{texts}")


def test_a_rank_that_compiles_another_graph_is_named():
    first, second = given("other_graph")
    expect(any("rank 1 compiled another graph than rank 0 for _branches" in t and "aten::relu" in t and "aten::tanh" in t for t in first), f"{first}")
    expect(any("rank 0 compiled another graph than rank 1" in t for t in second), f"{second}")
    expect(given("without_agreement") == [[], []], "rank_agreement = False")


def test_a_rank_that_never_comes_is_named():
    first, second = given("never_comes")
    expect(any("rank 1 did not compile _branches" in t and "rank 1 has compiled nothing" in t for t in first), f"{first}")
    expect(second == [], f"{second}")


def test_ranks_that_agree_hear_nothing():
    expect(given("same_graph", 4) == [[]] * 4, "no warning")


def test_one_process_has_no_agreement():
    from fusebox import _rank_store
    fusebox.reset()
    fusebox.compile(_branches)(torch.ones(4), True)
    expect(_rank_store.current() is None and fusebox._engine.events_since(0)[-1]["operators_at"] == [], "nothing is kept or asked")


if __name__ == "__main__":
    if is_rank():
        fusebox.install()
        run_rank(globals())
    run(globals())

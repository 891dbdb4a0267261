"""Sizes and numbers that data decide, in one graph each: what is taken for them, and operators of the program's that find them."""

import torch
import torch._dynamo

import fusebox
from checks.script_checks import expect, run


class Whole:
    """A function compiled as one graph, beside eager."""

    def __init__(self, f, **options):
        fusebox.reset()
        self.f, self.compiled, self.before = f, fusebox.compile(f, fullgraph=True, **options), fusebox.counters()

    def __call__(self, *args):
        torch.testing.assert_close(self.compiled(*args), self.f(*args))

    def since(self, name):
        return fusebox.counters()[name] - self.before[name]


def test_numbers_that_a_check_tells():
    """The check says of the number what a quotient of it is, the addition which of the two it is."""

    def program(x, count):
        n = count.item()
        torch._check(n // 2 == 3)
        torch._check(n * 3 < 30)
        return x + x.new_full((n,), 2)

    for n in (6, 7):
        Whole(program)(torch.randn(n), torch.tensor(n))


def test_numbers_that_operators_tell():
    def program(x, w, count, like):
        n = count.item()
        many = torch.cat([x.expand(like.shape[0], *x.shape), x.expand(n, *x.shape)], dim=1)
        return torch.bmm(many.permute(0, 2, 1), w.expand(n, *w.shape)).sum(0)

    f = Whole(program)
    for n in (7, 9, 4):
        f(torch.randn(3, 4), torch.randn(6, 5), torch.tensor(n), torch.randn(n))
    expect(f.since("eager_runs") == 0, "what was taken for the number did not fit")
    expect(f.since("frames") + f.since("recompiles") <= 2, f"{f.since('recompiles')} recompiles")


def test_a_sum_that_a_check_limits():
    """Parts that are checked to fit into a tensor get values that do, also where there is hardly more than two rows for each."""

    def program(x, counts):
        parts = counts.tolist()
        torch._check(sum(parts) < x.shape[0] + 1)
        return [part * 2 for part in torch.split(x, parts)]

    f = Whole(program)
    for parts in ([2, 3, 4], [3, 2, 2], [6, 5, 9]):
        f(torch.randn(sum(parts), 3), torch.tensor(parts))


def test_a_length_that_is_given():
    f = Whole(lambda repeats: torch.ops.aten.repeat_interleave.Tensor(repeats, output_size=12) + 1)
    f(torch.tensor([2, 4, 6]))
    f(torch.tensor([12, 0, 0]))


def test_rows_for_each_expert():
    """As many rows as there are, none and one among them."""

    def program(x, expert, w):
        out = torch.zeros_like(x)
        for i in range(3):
            rows, = torch.where(expert == i)
            out.index_add_(0, rows, torch.nn.functional.silu(x[rows] @ w[i]))
        return out

    f = Whole(program)
    for chosen in ([0, 1, 2, 2, 1, 0], [0, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2], [0, 0, 1, 1, 1, 2]):
        f(torch.randn(6, 4), torch.tensor(chosen), torch.randn(3, 4, 4))
    expect(f.since("recompiles") == 0 and f.since("eager_runs") == 0, "one graph for all counts")


def test_none_and_one_are_counts():
    """Operators on rows that data count, forward and backward, in one graph; where one assumes more, the call goes on eagerly."""
    norm, w = torch.nn.LayerNorm(8), torch.randn(8, 8)
    programs = [lambda r: r.softmax(-1), lambda r: norm(r), lambda r: r.amax(1), lambda r: r.topk(2, 1)[0], lambda r: r.sort(1)[0], lambda r: r.var(1),
                lambda r: r.gather(1, (r[:, :2] > 0).long()), lambda r: torch.zeros(20, 8).scatter_add(0, (r > 0).long(), r), lambda r: r.view(-1, 2, 4).sum(1),
                lambda r: r.view(-1, 2, 4) @ torch.ones(4, 3), lambda r: torch.stack([r, r], 1), lambda r: r.norm(dim=1), lambda r: torch.einsum("nd,de->ne", r, w),
                lambda r: torch.nn.functional.conv1d(r[:, None], torch.ones(1, 1, 3)), lambda r: torch.nn.functional.cross_entropy(r, r.argmax(1), reduction="sum")]
    for number, program in enumerate(programs):
        f = Whole(lambda x, mask, program=program: program(x[mask]))
        for count in (5, 1, 0, 7, 1, 0, 1, 2):
            f(torch.randn(10, 8), torch.arange(10) < count)
        expect(f.since("recompiles") == 0 and f.since("eager_runs") == 0, f"program {number}: {f.since('recompiles')} recompiles, {f.since('eager_runs')} calls run eagerly")
    f = Whole(lambda x, mask: x[mask].tril())
    for count in (5, 1, 1, 1, 1, 1, 3):
        f(torch.randn(10, 8), torch.arange(10) < count)


@torch.library.custom_op("fusebox_sizes::above", mutates_args=())
def above(x: torch.Tensor, least: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions and values of what is greater."""
    return (x > least).nonzero().contiguous(), x[x > least]


@above.register_fake
def _(x, least):
    count = torch.library.get_ctx().new_dynamic_size()
    return x.new_empty((count, x.dim()), dtype=torch.int64), x.new_empty(count)


@torch.library.custom_op("fusebox_sizes::padded", mutates_args=())
def padded(x: torch.Tensor, extra: int) -> list[torch.Tensor]:
    return [torch.cat([x, x.new_zeros(extra, *x.shape[1:])]), x.sum(0)]


@padded.register_fake
def _(x, extra):
    assert x.device.type == "cpu", f"on {x.device}"
    if x.dim() < 2:
        raise ValueError("rows are padded")
    return [x.new_empty(x.shape[0] + extra, *x.shape[1:]), x.new_empty(x.shape[1:])]


def test_operators_that_find_sizes():
    def program(x):
        places, values = torch.ops.fusebox_sizes.above(x, 0.0)
        return places.float().sum(0), values * 2, values.sum() + places.shape[0]

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        f = Whole(program)
        for n in (9, 20, 3):
            f(torch.cat([torch.ones(n), -torch.ones(32 - n)])[torch.randperm(32)].view(8, 4))
        expect(f.since("recompiles") == 0 and f.since("eager_runs") == 0, "one graph for all counts")
        f(-torch.ones(8, 4))
        f(torch.tensor([[1.0, -1.0]]))


def test_operators_keep_symbols():
    def program(x, extra):
        long, total = torch.ops.fusebox_sizes.padded(x, extra)
        return long * 2, total + 1, long.shape[0]

    f = Whole(program, dynamic=True)
    for n in (4, 5, 9, 17):
        f(torch.randn(n, 3), n + 2)
    expect(f.since("recompiles") == 0, f"{f.since('recompiles')} recompiles")
    try:
        f.compiled(torch.randn(5), 1)
        expect(False, "the error of the operator's description is missing")
    except Exception as error:
        expect("rows are padded" in str(error), str(error))


LIBRARY = torch.library.Library("fusebox_sizes", "FRAGMENT")
LIBRARY.define("halves(Tensor x) -> (Tensor, Tensor)")
LIBRARY.impl("halves", lambda x: (x[: x.shape[0] // 2] * 1, x[x.shape[0] // 2:] * 1), "CPU")
LIBRARY.impl("halves", lambda x: (x.new_empty(x.shape[0] // 2, *x.shape[1:]), x.new_empty(x.shape[0] - x.shape[0] // 2, *x.shape[1:])), "Meta")


def test_kernels_without_data_keep_symbols():
    def program(x):
        first, second = torch.ops.fusebox_sizes.halves(x)
        return first.sum(0) - second.sum(0), first.shape[0]

    f = Whole(program, dynamic=True)
    for n in (8, 9, 15, 21):
        f(torch.randn(n, 3))
    expect(f.since("recompiles") == 0, f"{f.since('recompiles')} recompiles")


def test_tensors_as_indices():
    """A tensor without dimensions is, in an index, the int that is read from it: one graph, whatever it holds."""
    weights, x = torch.randn(5, 4, 4, requires_grad=True), torch.randn(3, 4)

    def written(w, x, i):
        w = w * 1
        w[i] = x[0]
        return w

    for name, f in {"read": lambda w, x, i: x @ w[i], "beside": lambda w, x, i: x @ (w[i, :, 1:] * 2), "written": written}.items():
        fusebox.reset()
        compiled, before = fusebox.compile(f, fullgraph=True), fusebox.counters()["graphs"]
        for i in (torch.tensor(2), torch.tensor(0), torch.tensor(-1), torch.tensor(3)):
            got, expected = compiled(weights, x, i), f(weights, x, i)
            expect(torch.allclose(got, expected, atol=1e-6), f"{name} at {i.item()} gives another result")
            got, = torch.autograd.grad(got.square().sum(), weights)
            expected, = torch.autograd.grad(expected.square().sum(), weights)
            expect(torch.allclose(got, expected, atol=1e-5), f"{name} at {i.item()} has another gradient")
        made = fusebox.counters()["graphs"] - before
        expect(made <= 2, f"{name}: {made} graphs")
    for called in (lambda w, i: w[i]), fusebox.compile(lambda w, i: w[i]):
        try:
            called(weights, torch.tensor(5))
            expect(False, "an index beyond the end is taken")
        except IndexError:
            pass


def test_positions_in_short_dimensions():
    """Whatever the number is, from whichever end it counts, it is one graph; beyond either end the program raises, also where memory goes on."""
    columns = torch.arange(5)
    programs = {"read": lambda x, i: x[i] * 2, "part": lambda x, i: x[i, :3], "beside a tensor": lambda x, i: x[i, columns],
                "of a part": lambda x, i: x[:3][i], "written": lambda x, i: (x * 1).index_put((i, columns), x.sum()), "a number": lambda x, i: x.select(0, i.item())}
    for name, f in programs.items():
        fusebox.reset()
        compiled, before = fusebox.compile(f, fullgraph=True), fusebox.counters()["graphs"]
        for i in map(torch.tensor, (1, -3, 2, 0, -1)):
            x = torch.randn(6, 5, requires_grad=True)
            got, expected = compiled(x[:4], i), f(x[:4], i)
            torch.testing.assert_close(got, expected, msg=f"{name} at {i.item()}")
            torch.testing.assert_close(*(torch.autograd.grad(y.square().sum(), x)[0] for y in (got, expected)), msg=f"{name} at {i.item()}: gradient")
        made = fusebox.counters()["graphs"] - before
        expect(made == 1, f"{name}: {made} graphs")
        for beyond in (4, -5) if name != "of a part" else (3, -4):
            try:
                fusebox.compile(f)(torch.randn(6, 5)[:4], torch.tensor(beyond))
                expect(False, f"{name}: {beyond} is taken for a position")
            except IndexError:
                pass


if __name__ == "__main__":
    run(globals())

"""Sizes and numbers that data decide: masks, positions, distinct values, counts, numbers read from tensors. None and one are among them."""

import torch
from torch.nn import functional as F
from . import script


def calls(compile, program, make, times=6):
    """With gradients in every second call."""
    f = compile(program)
    results = []
    for i in range(times):
        given = [t.requires_grad_(i % 2 == 1 and t.is_floating_point()) for t in make()]
        result = f(*given)
        flat = [t for t in (result if isinstance(result, tuple) else (result,)) if isinstance(t, torch.Tensor) and t.requires_grad]
        if flat:
            sum(t.square().sum() for t in flat).backward()
        results.append((result, [t.grad for t in given]))
    return results


@script
def what_a_mask_chooses(compile):
    def program(x, y):
        m = x > 0
        chosen = x[m]
        return (chosen * 2).sum() + chosen.shape[0], chosen + y[m].sigmoid(), x[m] + y[y > 0].sum()

    return calls(compile, program, lambda: (torch.randn(6, 5), torch.randn(6, 5)))


@script
def rows_of_experts(compile):
    """Some experts get no row, some get one."""

    def program(x, expert, w):
        out = torch.zeros_like(x)
        for i in range(4):
            (rows,) = torch.where(expert == i)
            out.index_add_(0, rows, F.silu(x[rows] @ w[i]))
        return out

    return calls(compile, program, lambda: (torch.randn(9, 4), torch.randint(0, 4, (9,)), torch.randn(4, 4, 4)), times=12)


@script
def sums_of_groups(compile):
    program = lambda x, group: torch.stack([x[group == i].sum(0) for i in range(3)])
    return calls(compile, program, lambda: (torch.randn(5, 3), torch.randint(0, 3, (5,))), times=12)


@script
def writes_where_a_mask_says(compile):
    def program(x, m):
        x = x.clone()
        x[m] += 1.0
        x[~m] = x[~m] * 3
        return x

    return calls(compile, program, lambda: (torch.randn(9, 3), torch.rand(9) > 0.5), times=8)


@script
def positions(compile):
    def program(x):
        found = torch.nonzero(x > 0)
        rows, columns = torch.where(x > 0.5)
        return found, found.t(), found.float().mean(0), x[rows, columns].exp(), rows + columns, found.shape

    return calls(compile, program, lambda: (torch.randn(5, 7),))


@script
def written_at_a_position(compile):
    """A row that data choose is read and written: the first, the second, the last, from either end."""
    def best(scores, table, x):
        at = scores.argmax()
        table[at] += torch.outer(x, x)
        table[at, 0].mul_(0.5)
        return at, table * 2

    def from_behind(at, table, x):
        table[at] = table[at.item()] + x
        return table.sum(0)

    def differentiated(scores, table, x):
        table = table.requires_grad_()
        (gradient,) = torch.autograd.grad((table[scores.argmin().item()] * x).sum(), table)
        return gradient

    out = [calls(compile, differentiated, lambda: (torch.randn(3), torch.randn(3, 4), torch.randn(4)))]
    f, table = compile(best), torch.eye(4).repeat(3, 1, 1)
    out += [(f(torch.eye(3)[k], table, torch.randn(4)), table.clone()) for k in (0, 1, 2, 0)]
    f = compile(from_behind)
    for at in (0, 1, 2, -1, -3, 2, 3, -4):
        try:
            out.append(f(torch.tensor(at), torch.ones(3, 4), torch.arange(4.0)))
        except IndexError as error:
            out.append(str(error))
    return out


@script
def distinct_values(compile):
    def program(x, rows):
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        runs, lengths = torch.unique_consecutive(x, return_counts=True)
        return values * 2, counts / counts.sum(), inverse, runs + 1, lengths, torch.unique(rows, dim=0) * 2

    return calls(compile, program, lambda: (torch.randint(0, 9, (40,)), torch.randint(0, 2, (12, 3))))


@script
def repeated_rows(compile):
    def program(x, counts):
        owner = torch.repeat_interleave(torch.arange(counts.numel()), counts)
        return torch.repeat_interleave(x, counts, dim=0) + 1, x[owner] * 2, torch.zeros(int(counts.sum()), 4).shape

    return calls(compile, program, lambda: (torch.randn(6, 3), torch.randint(0, 5, (6,))))


@script
def loss_of_the_labelled(compile):
    def program(x, label):
        keep = label != -100
        return F.cross_entropy(x[keep], label[keep])

    return calls(compile, program, lambda: (torch.randn(16, 7), torch.where(torch.rand(16) > 0.3, torch.randint(0, 7, (16,)), torch.tensor(-100))))


@script
def numbers_as_sizes(compile):
    def program(x, lengths):
        longest = lengths.max().item()
        mask = torch.arange(longest)[None, :] < lengths[:, None]
        return mask, x[:, :longest] * 2, x.new_ones(longest + 1).cumsum(0), longest

    return calls(compile, program, lambda: (torch.randn(4, 12), torch.randint(0, 12, (4,))), times=10)


@script
def numbers_as_bounds(compile):
    def program(x, ends):
        first, last = ends.tolist()
        return x[first:] * 2, x[:last] + 1, first + last

    return calls(compile, program, lambda: (torch.randn(20), torch.randint(0, 20, (2,))), times=10)


@script
def wrong_number_of_chosen_rows(compile):
    """Eager's error, in the calls in which it is one."""

    def program(x, y):
        return x[x > 0] + y

    f = compile(program)
    results = []
    for positive in (3, 3, 1, 4, 0, 3):
        x = torch.where(torch.arange(6) < positive, 1.0, -1.0)
        try:
            results.append(f(x, torch.ones(3)))
        except RuntimeError as error:
            results.append(str(error))
    return results


@script
def decisions_on_what_was_found(compile):
    def program(x):
        y = x[x > 0]
        if y.numel() == 0:
            return x.sum()
        if y.shape[0] > 3:
            return y.mean()
        print("few:", y.shape[0])
        return y.prod() - len(y)

    return calls(compile, program, lambda: (torch.randn(6),), times=12)


@script
def draws_and_prints_around_what_data_decide(compile):
    def program(x):
        noise = torch.randn_like(x)
        y = x[x + noise > 0.5]
        print("found", y.shape[0])
        return y + torch.rand(1), torch.rand(2)

    return calls(compile, program, lambda: (torch.randn(8),), times=10)


@script
def parts_of_given_lengths(compile):
    def program(x, lengths, weight):
        parts = x.split(lengths.tolist())
        return torch.cat([part @ w for part, w in zip(parts, weight)]), [len(part) for part in parts]

    def make():
        cuts = torch.randint(0, 13, (2,)).sort().values
        return torch.randn(12, 4), torch.diff(cuts, prepend=torch.zeros(1, dtype=torch.long), append=torch.tensor([12])), torch.randn(3, 4, 5)

    return calls(compile, program, make, times=12)


@script
def parts_that_are_none_of_it(compile):
    def program(x, lengths):
        a, b = x.split(lengths.tolist(), dim=1)
        return a.sum(1) - b.sum(1), a * 2

    f = compile(program)
    results = []
    for lengths in ([3, 5], [4, 4], [2, 5], [8, 0], [9, -1], [6, 2]):
        try:
            results.append(f(torch.randn(3, 8), torch.tensor(lengths)))
        except RuntimeError as error:
            results.append(str(error))
    return results

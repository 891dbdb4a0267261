"""Tensors of more than 2^31 elements, in one byte each: indices, counts and positions are right beyond 32 bits. Takes some 3 GB."""

import sys

import torch

import fusebox

N = (1 << 31) + 4099


def expect(condition, what, problems):
    if not condition:
        problems.append(what)


def main():
    with open("/proc/meminfo") as facts:
        free = next(int(line.split()[1]) for line in facts if line.startswith("MemAvailable"))
    if free < 5 << 20:
        print("skipped: less than 5 GB of memory are free")
        sys.exit(77)
    problems = []
    x = torch.zeros(N, dtype=torch.int8)
    x[N - 3], x[(1 << 31) + 1], x[5] = 7, -4, 3

    def pointwise(x):
        return (x * 2 + 1)[(1 << 31) - 4096:], (x * 2 + 1)[:4096]

    def reduced(x):
        return x.sum(), x.max(), x.argmax(), x.argmin(), (x != 0).sum(), x.any()

    end, begin = fusebox.compile(pointwise)(x)
    expect(torch.equal(end, x[(1 << 31) - 4096:] * 2 + 1), "pointwise, the end", problems)
    expect(torch.equal(begin, x[:4096] * 2 + 1), "pointwise, the begin", problems)
    total, largest, where, least, count, any_ = [r.item() for r in fusebox.compile(reduced)(x)]
    expect((total, largest, where, least, count, any_) == (6, 7, N - 3, (1 << 31) + 1, 3, True),
           f"reductions: {(total, largest, where, least, count, any_)}", problems)
    rows = x[:1 << 31].view(2, 1 << 30)
    rows[1, 17] = 9
    sums = fusebox.compile(lambda r: (r.sum(1), r.flip(1)[:, -20:], r.t()[15:20].contiguous()))(rows)
    expect(sums[0].tolist() == [3, 9], f"sums of rows: {sums[0].tolist()}", problems)
    expect(sums[1][1, 2].item() == 9 and sums[2][2].tolist() == [0, 9], "views far into the tensor", problems)
    print(*problems, sep="\n")
    print(fusebox.counters()["graphs"], "graphs,", len(problems), "problems")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()

"""A step of a program, timed and compared: what the benches of programs share."""

import math
import statistics
import time

import torch
import torch.nn as nn


def registry():
    """(programs by name, a decorator that registers a builder of one)."""
    programs = {}

    def program(train=False):
        def keep(build):
            programs[build.__name__] = (build, train)
            return build
        return keep
    return programs, program


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for part in value for t in flat(part)]


def step_of(target, args, train):
    """A step on these inputs that leaves its gradients; returns its results."""
    parameters = list(target.parameters()) if isinstance(target, nn.Module) else []
    parameters += [t for t in flat(args) if t.requires_grad]

    def step():
        if not train:
            with torch.no_grad():
                return flat(target(*args))
        for parameter in parameters:
            parameter.grad = None
        results = flat(target(*args))
        sum(t.float().square().mean() for t in results).backward()
        return [t.detach() for t in results] + [p.grad for p in parameters if p.grad is not None]
    return step


def synchronise(device):
    if device == "cuda":
        torch.cuda.synchronize()


def median_ms(step, device, seconds):
    for _ in range(3):
        step()
    synchronise(device)
    times, stop = [], time.perf_counter() + seconds
    while len(times) < 7 or time.perf_counter() < stop:
        start = time.perf_counter()
        step()
        synchronise(device)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def apart(got, want):
    """The greatest distance of two lists of tensors, relative to each tensor's norm; infinite where NaNs or shapes differ."""
    worst = 0.0
    for a, b in zip(got, want, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return math.inf
        a, b = a.double(), b.double()
        distance = ((a - b).norm() / b.norm().clamp_min(1e-12)).item()
        worst = max(worst, math.inf if math.isnan(distance) else distance)
    return worst

"""Options of torch.compile, its modes and torch._inductor.config: what is accepted does what it says, or a warning says why it does not."""

import contextlib
import operator
import warnings

import torch

import fusebox
from fusebox import _unused_options
from checks.script_checks import expect, run


def said(call):
    """Texts of the warnings that call() gives, as if nothing had been said before."""
    _unused_options._said.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if "Fusebox" in str(w.message) or "fusebox" in str(w.message)]


def compile_with(**how):
    fusebox.reset()
    return fusebox.compile(lambda x: x * 300 * 300 / 90000, **how)


def test_unused_options_are_said_once():
    texts = said(lambda: [compile_with(options={"epilogue_fusion": False}), compile_with(options={"epilogue_fusion": False})])
    expect(len(texts) == 1 and "epilogue_fusion" in texts[0], f"one warning that names the option: {texts}")
    expect(not said(lambda: compile_with(options={"epilogue_fusion": True})), "nothing is said of an option's default")
    texts = said(lambda: compile_with(options={"triton.max_tiles": 3, "trace.save_real_tensors": True}))
    expect(len(texts) == 2 and "Triton" in texts[0] and "numerics" in texts[1], f"each with its reason: {texts}")
    texts = said(lambda: compile_with(options={"size_asserts": False}))
    expect(len(texts) == 1, f"checks that cannot be switched off: {texts}")


def test_acting_options_are_silent():
    for options in ({"fallback_random": True}, {"emulate_precision_casts": True}, {"nan_asserts": True}, {"deterministic": True},
                    {"max_autotune": True}, {"triton.cudagraphs": False}, {"size_asserts": True}):
        texts = said(lambda options=options: compile_with(options=options))
        expect(not texts, f"{options}: {texts}")
    expect(not said(lambda: compile_with()) and not said(lambda: compile_with(mode="reduce-overhead")), "nothing is said of plain calls")


def test_configuration_and_modes():
    from torch._inductor import config
    with config.patch(shape_padding=not config.shape_padding):
        texts = said(compile_with)
    expect(len(texts) == 1 and "shape_padding" in texts[0], f"torch._inductor.config: {texts}")
    texts = said(lambda: compile_with(mode="max-autotune"))
    expect(len(texts) == 1 and "coordinate_descent_tuning" in texts[0], f"the part of a mode that does nothing: {texts}")
    texts = said(lambda: compile_with(dynamic=True))
    expect(not texts, f"dynamic=True acts: {texts}")
    expect(not said(lambda: compile_with(dynamic=False)), "dynamic=False acts")


def test_passes_over_graphs():
    """Each hook gets the graph that it is for, forward and backward, and what it makes of it is what runs."""
    from torch._inductor import config
    seen = []

    def note(name, target):
        def given(graph):
            seen.append(name)
            for node in graph.nodes:
                if node.op == "call_function" and node.target is target and node.args[1] == 2:
                    node.args = (node.args[0], 3)
        return given

    def f(x):
        return (x * 2).sin()

    x = torch.randn(5)
    for name, target in (("pre_grad_custom_pass", operator.mul), ("joint_custom_pre_pass", torch.ops.aten.mul.Tensor), ("joint_custom_post_pass", torch.ops.aten.mul.Tensor),
                         ("post_grad_custom_pre_pass", torch.ops.aten.mul.Tensor), ("post_grad_custom_post_pass", torch.ops.aten.mul.Tensor)):
        for wanted in (False, True):
            seen.clear()
            fusebox.reset()
            leaf = x.clone().requires_grad_(wanted)
            compiled = fusebox.compile(f, options={name: note(name, target)})
            y = compiled(leaf)
            expect(torch.allclose(y, (x * 3).sin()) and name in seen, f"{name}: its graph runs ({seen})")
            if wanted:
                y.sum().backward()
                expect(torch.allclose(leaf.grad, 3 * (x * 3).cos()) or torch.allclose(leaf.grad, 2 * (x * 3).cos()), f"{name}: and its gradient")
                expect(name not in ("pre_grad_custom_pass", "joint_custom_pre_pass") or torch.allclose(leaf.grad, 3 * (x * 3).cos()),
                       f"{name}: the gradient is that of the graph it made")
    seen.clear()
    with config.patch(post_grad_custom_post_pass=note("post", torch.ops.aten.mul.Tensor)):
        texts = said(lambda: seen.append(compile_with()(x)))
    expect(not texts and "post" in seen, f"PyTorch's configuration names them too, and nothing is said of it: {texts}, {seen}")
    expect(torch.allclose(fusebox.compile(f)(x), f(x)), "without them nothing changes")


def test_partitioner_of_the_program():
    """It cuts the joint graph, and both of its parts are what runs."""
    from torch._functorch.partitioners import default_partition
    from torch._inductor import config
    from torch._inductor.custom_graph_pass import CustomPartitionerFn

    class Cut(CustomPartitionerFn):
        seen = 0

        def __call__(self, module, inputs, **how):
            self.seen += 1
            forward, backward = default_partition(module, inputs, num_fwd_outputs=how["num_fwd_outputs"])
            for node in backward.graph.nodes:
                if node.target is torch.ops.aten.mul.Tensor and node.args[1] == 2:
                    node.args = (node.args[0], 5)
            backward.recompile()
            return forward, backward

        def uuid(self):
            return "cut"

    def f(x):
        return (x * 2).sin()

    leaf = torch.randn(5, requires_grad=True)
    wanted = 5 * (leaf.detach() * 2).cos()
    cut = Cut()
    for named in ("options", "configuration"):
        fusebox.reset()
        leaf.grad = None
        with config.patch(custom_partitioner_fn=cut) if named == "configuration" else contextlib.nullcontext():
            y = fusebox.compile(f, options={"custom_partitioner_fn": cut} if named == "options" else None)(leaf)
        y.sum().backward()
        expect(torch.allclose(y, f(leaf)) and torch.allclose(leaf.grad, wanted), f"{named}: the parts that it made")
    expect(cut.seen == 2, f"once for each graph: {cut.seen}")
    expect(torch.allclose(fusebox.compile(f)(leaf.detach()), f(leaf)) and cut.seen == 2, "nothing to cut without gradients")


def test_precision_casts():
    for dtype, wanted in ((torch.float16, float("inf")), (torch.float32, 1.0)):
        x = torch.ones(1000, dtype=dtype)
        expect(compile_with(options={"emulate_precision_casts": True})(x)[0].item() == wanted, f"{dtype}: rounded after every operator")
    x = torch.randn(64, 512).bfloat16()
    f = lambda x: (x * 1.7 * x - x / 3).clamp(min=-0.1) * 7  # noqa: E731
    fusebox.reset()
    got = fusebox.compile(f, options={"emulate_precision_casts": True})(x)
    expect(torch.equal(got, f(x)), "bfloat16 results are eager's to the bit")
    from torch._inductor import config
    with config.patch(emulate_precision_casts=True):
        expect(compile_with()(torch.ones(9, dtype=torch.float16)).isinf().all().item(), "the configuration says so too")


def test_nan_asserts():
    def f(x):
        return x.log()

    fusebox.reset()
    checked = fusebox.compile(f, options={"nan_asserts": True})
    expect(torch.equal(checked(torch.ones(5)), torch.zeros(5)), "finite data passes")
    for what, x in (("result", -torch.ones(5)), ("input", torch.tensor([1.0, float("nan")]))):
        try:
            checked(x)
        except RuntimeError as error:
            expect("nan_asserts" in str(error) and what in str(error), f"{error}")
        else:
            expect(False, f"NaN in a {what} passes")
    fusebox.reset()
    a = torch.zeros(5, requires_grad=True)
    y = fusebox.compile(lambda x: x.sqrt(), options={"nan_asserts": True})(a)
    try:
        y.sum().backward()
    except RuntimeError as error:
        expect("nan_asserts" in str(error), f"{error}")
    else:
        expect(False, "infinite gradients pass")


if __name__ == "__main__":
    run(globals())

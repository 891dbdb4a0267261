"""What cannot be traced must say so, recognisably, and leave the process and the tensors as they were."""
import copy
import io
import pickle
import sys

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/aot")
import fusebox_trace_probe as probe  # noqa: E402
from aot_compare import run  # noqa: E402

CASES = {}


def breaks(kind, fn, *args):
    """Tracing `fn` raises a RuntimeError; for `kind` not None it is a BreakError of that kind."""
    args = args or (torch.randn(4),)
    before = [a.clone() for a in args]
    probe.last_break()
    try:
        probe.trace(fn, list(args))
    except Exception as error:  # noqa: BLE001
        text = f"{type(error).__name__}: {error}"
    else:
        raise AssertionError("traced although it depends on data")
    if kind:
        last = probe.last_break()
        assert last and last[0] == kind and last[1] and last[2], f"{last} for {text[:300]}"
        assert probe.parse_break(text) == kind, text[:300]
    for a, b in zip(args, before):
        assert torch.equal(a, b)
    # tracing is off again: real tensors compute, factories give real tensors
    assert not probe.is_trace(torch.ones(2)) and (torch.ones(2) + 1).tolist() == [2, 2]


VALUE, SHAPE, ACCESS = "data-dependent value", "data-dependent shape", "data access"
for name, kind, fn in (
    ("item", VALUE, lambda x: [x * x.sum().item()]),
    ("bool", VALUE, lambda x: [x] if x.sum() > 0 else [-x]),
    ("int", VALUE, lambda x: [x[: int(x[0])]]),
    ("float", VALUE, lambda x: [x * float(x[0])]),
    ("tolist", None, lambda x: [torch.tensor(x.tolist())]),
    ("equal", VALUE, lambda x: [x] if torch.equal(x, x) else []),
    ("allclose", VALUE, lambda x: [x] if torch.allclose(x, x) else []),
    ("contains", VALUE, lambda x: [x] if 1.0 in x else [x]),
    ("nonzero", SHAPE, lambda x: [x.nonzero()]),
    ("mask_index", SHAPE, lambda x: [x[x > 0]]),
    ("masked_select", SHAPE, lambda x: [x.masked_select(x > 0)]),
    ("unique", None, lambda x: [x.unique()]),
    ("where_indices", SHAPE, lambda x: list(torch.where(x > 0))),
    ("repeat_interleave", None, lambda x: [torch.repeat_interleave(x, (x > 0).long())]),
    ("numpy", None, lambda x: [torch.as_tensor(x.numpy())]),
    ("asarray", None, lambda x: [torch.as_tensor(np.asarray(x))]),
    ("data_ptr", None, lambda x: [x + x.data_ptr()]),
    ("dlpack", None, lambda x: [torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)) + x]),
    ("pickle", None, lambda x: pickle.dumps(x) and [x]),
    ("save", None, lambda x: torch.save(x, io.BytesIO()) or [x]),
    ("deepcopy", None, lambda x: [copy.deepcopy(x) + 1]),
    ("print", None, lambda x: [x] if repr(x) else []),
    ("from_numpy", ACCESS, lambda x: [x + torch.from_numpy(np.ones(4, dtype=np.float32))]),
    ("set_storage", None, lambda x: x.set_(torch.ones(3)) is None or [x]),
    ("resize", None, lambda x: [x.resize_(8)]),
    ("requires_grad", None, lambda x: [x.requires_grad_() * 2]),
    ("other_generator", None, lambda x: [x + torch.rand(4, generator=torch.Generator())]),
    ("sparse", None, lambda x: [x.view(2, 2).to_sparse()]),
):
    CASES[name] = lambda kind=kind, fn=fn: breaks(kind, fn)


def tensor_of_a_finished_trace():
    kept = []
    probe.trace(lambda x: [kept.append(x * 2) or x], [torch.randn(3)])
    try:
        kept[0] + 1
    except RuntimeError as error:
        assert probe.parse_break(str(error)) == "finished trace", error
    else:
        raise AssertionError("a tensor of a finished trace was computed with")
    breaks("finished trace", lambda x: [x + kept[0]], torch.randn(3))


def errors_are_the_users():
    for fn in (lambda x: [x @ torch.ones(7, 7)], lambda x: [x.view(5)], lambda x: [torch.cat([x, x[None]])], lambda x: [x.add_(torch.ones(9))],
               lambda x: [F.conv2d(x.view(1, 1, 2, 2), torch.ones(1, 1, 3, 3))]):
        try:
            probe.trace(fn, [torch.randn(4)])
        except (RuntimeError, IndexError) as error:
            assert probe.parse_break(str(error)) is None, error
        else:
            raise AssertionError("a program that eager refuses was traced")


def custom_operator_with_a_fake_kernel():
    library = torch.library.Library("fusebox_test", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    breaks("unsupported operator", lambda x: [torch.ops.fusebox_test.twice(x)])
    torch.library.register_fake("fusebox_test::twice", torch.empty_like, lib=library)
    traced = probe.trace(lambda x: [torch.ops.fusebox_test.twice(x) + 1], [torch.randn(3)])
    assert "fusebox_test::twice" in traced.ops
    x = torch.randn(3)
    assert torch.equal(traced.call([x])[0], x * 2 + 1)
    library.define("fill_one(Tensor(a!) x) -> ()")
    library.impl("fill_one", lambda x: (x.fill_(1), None)[1], "CPU")
    filled = probe.trace(lambda x: [torch.ops.fusebox_test.fill_one(x) or x * 2], [torch.randn(3)])
    x = torch.randn(3)
    assert torch.equal(filled.call([x])[0], torch.full((3,), 2.0))


def literal_can_be_read():
    traced = probe.trace(lambda x: [x * torch.tensor(3.0).item()], [torch.randn(3)])
    x = torch.randn(3)
    assert torch.equal(traced.call([x])[0], x * 3)


def looks_like_a_real_tensor():
    def look(x):
        assert isinstance(x, torch.Tensor) and x.device.type == "cpu" and not x.is_meta and x.dtype == torch.float32
        assert x.shape == (4, 6) and x.stride() == (6, 1) and x.storage_offset() == 0 and x.is_contiguous()
        y = x[1:, ::2]
        assert y.shape == (3, 3) and y.stride() == (6, 2) and y.storage_offset() == 6 and y._is_view() and y._base is x
        assert x.requires_grad and x.is_leaf and y.grad_fn is not None and x.grad is None
        assert x.t().untyped_storage()._cdata == x.untyped_storage()._cdata
        x.note = 3
        assert x.note == 3 and hash(x) == hash(x) and len(x) == 4 and len(list(x)) == 4
        assert not x.is_shared() and x.untyped_storage().nbytes() == 96
        return [y + 1]

    probe.trace(look, [torch.randn(4, 6, requires_grad=True)])
    channels_last = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    probe.trace(lambda x: [x] if x.is_contiguous(memory_format=torch.channels_last) else 1 / 0, [channels_last])
    probe.trace(lambda x: [x] if x.storage_offset() == 6 else 1 / 0, [torch.randn(4, 6)[1:, ::2]])


CASES.update({f.__name__: f for f in (tensor_of_a_finished_trace, errors_are_the_users, custom_operator_with_a_fake_kernel,
                                      literal_can_be_read, looks_like_a_real_tensor)})
if __name__ == "__main__":
    run(CASES)

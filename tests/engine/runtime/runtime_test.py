"""The run time against eager: programs written by hand, kernels written in C++."""
import os
import sys
import threading
import unittest

import torch

sys.path.insert(0, os.path.normpath(os.path.join(os.environ["FUSEBOX_BIN"], "..", "..", "tests")))
import fusebox_runtime_probe as probe


def buf(i):
    return ("b", i)


class Programs(unittest.TestCase):
    def test_launches_through_the_pool(self):
        n = 5000
        probe.set_kernel_size(n)
        program = probe.Program(
            [("input", 0, [n]), ("planned", -1, [n], {"pool": 0}), ("owned", -1, [n])],
            [("launch", "affine", [0, 1]), ("allocate", 2), ("launch", "affine", [1, 2])], [2], pool=n * 4 + 64)
        x = torch.randn(n)
        for _ in range(3):
            torch.testing.assert_close(program.run([x])[0], 2 * (2 * x + 1) + 1, rtol=0, atol=0)

    def test_results_of_two_calls_are_apart(self):
        probe.set_kernel_size(100)
        program = probe.Program([("input", 0, [100]), ("owned", -1, [100])],
                                [("allocate", 1), ("launch", "affine", [0, 1])], [1, None, 0])
        x = torch.randn(100)
        first = program.run([x])
        second = program.run([x + 1])
        torch.testing.assert_close(first[0], 2 * x + 1)
        self.assertNotEqual(first[0].data_ptr(), second[0].data_ptr())
        self.assertIsNone(first[1])
        self.assertIs(first[2], x)

    def test_phases_and_working_memory(self):
        probe.set_kernel_size(80000)
        program = probe.Program([("input", 0, [80000]), ("owned", -1, [])], [("allocate", 1), ("launch", "phased_sum", [0, 1])], [1])
        x = torch.randn(80000)
        torch.testing.assert_close(program.run([x])[0], x.double().sum().float())

    def test_extern_calls_with_every_kind_of_argument(self):
        x, w = torch.randn(4, 6), torch.randn(6, 6)
        cases = [
            ("aten::relu", [buf(0)], lambda: torch.relu(x)),
            ("aten::add.Tensor", [buf(0), buf(0), 2.5], lambda: x + 2.5 * x),
            ("aten::sum.dim_IntList", [buf(0), [1], True, None], lambda: x.sum(1, keepdim=True)),
            ("aten::cat", [[buf(0), buf(0)], 1], lambda: torch.cat([x, x], 1)),
            ("aten::index.Tensor", [buf(0), [None, buf(2)]], lambda: x[:, torch.tensor([1, 0])]),
            ("aten::div.Tensor_mode", [buf(0), buf(0), "floor"], lambda: torch.div(x, x, rounding_mode="floor")),
            ("aten::clamp", [buf(0), None, 0.5], lambda: x.clamp(max=0.5)),
            ("aten::constant_pad_nd", [buf(0), [1, 2], 3.0], lambda: torch.nn.functional.pad(x, [1, 2], value=3.0)),
            ("aten::full", [[2, 3], 1.5, None, None, "cpu", False], lambda: torch.full([2, 3], 1.5)),
            ("aten::upsample_nearest1d", [buf(3), [12], None], lambda: torch.nn.functional.interpolate(x[None], size=12)),
        ]
        for op, args, expected in cases:
            with self.subTest(op):
                want = expected()
                inputs = [x, w, torch.tensor([1, 0]), x[None]]
                buffers = [("input", i, list(t.shape)) for i, t in enumerate(inputs)]
                program = probe.Program(buffers + [("owned", -1, list(want.shape))], [("extern", op, args, [4])], [4])
                torch.testing.assert_close(program.run(inputs)[0], want)

    def test_out_variant_writes_into_the_pool(self):
        a, b, c = torch.randn(8, 16), torch.randn(16, 8), torch.randn(8)
        probe.set_kernel_size(64)
        program = probe.Program(
            [("input", 0, [8, 16]), ("input", 1, [16, 8]), ("input", 2, [8]), ("planned", -1, [8, 8], {"pool": 128}), ("owned", -1, [8, 8])],
            [("extern", "aten::addmm", [buf(2), buf(0), buf(1), 1, 1], [3], "aten::addmm.out"),
             ("allocate", 4), ("launch", "affine", [3, 4])], [4], pool=1024)
        for _ in range(3):
            torch.testing.assert_close(program.run([a, b, c])[0], 2 * torch.addmm(c, a, b) + 1)

    def test_views_of_the_pool_and_of_inputs(self):
        probe.set_kernel_size(24)
        program = probe.Program(
            [("input", 0, [24]), ("planned", -1, [24], {"pool": 64}),
             ("view", -1, [3, 4], {"base": 1, "strides": [4, 1], "offset": 12}), ("owned", -1, [3, 4]),
             ("view", -1, [4, 2], {"base": 0, "strides": [6, 1], "offset": 2})],
            [("launch", "affine", [0, 1]), ("extern", "aten::neg", [buf(2)], [3]), ("free", 1)], [3, 4], pool=256)
        for base in (torch.randn(24), torch.randn(30)[3:27]):
            out, view = program.run([base])
            torch.testing.assert_close(out, -(2 * base[12:] + 1).view(3, 4))
            torch.testing.assert_close(view, base.as_strided([4, 2], [6, 1], base.storage_offset() + 2))
            self.assertEqual(view.untyped_storage().data_ptr(), base.untyped_storage().data_ptr())

    def test_lists_and_several_results(self):
        x = torch.randn(6, 5)
        program = probe.Program(
            [("input", 0, [6, 5]), ("owned", -1, [3, 5]), ("owned", -1, [3, 5]), ("owned", -1, [6]), ("owned", -1, [6])],
            [("extern", "aten::split.Tensor", [buf(0), 3, 0], [1, 2]),
             ("extern", "aten::var_mean.correction", [buf(0), [1], None, False], [3, 4])], [1, 2, 3, 4])
        got = program.run([x])
        want = list(x.split(3)) + list(torch.var_mean(x, 1))
        for g, w in zip(got, want):
            torch.testing.assert_close(g, w)

    def test_alias_of_pool_memory_is_copied(self):
        probe.set_kernel_size(12)
        program = probe.Program(
            [("input", 0, [12]), ("planned", -1, [12], {"pool": 0}), ("owned", -1, [3, 4])],
            [("launch", "affine", [0, 1]), ("extern", "aten::view", [buf(1), [3, 4]], [2])], [2], pool=64)
        x = torch.randn(12)
        kept = program.run([x])[0]
        program.run([torch.zeros(12)])
        torch.testing.assert_close(kept, (2 * x + 1).view(3, 4))

    def test_memory_ends_with_its_last_reader_whatever_views_lead_there(self):
        from torch.multiprocessing.reductions import StorageWeakRef
        seen = []
        library = torch.library.Library("runtime_test", "FRAGMENT")
        library.define("watch(Tensor x) -> Tensor")
        library.define("look(Tensor x) -> Tensor")

        def watch(x):
            seen.append(StorageWeakRef(x.untyped_storage()))
            return x.clone()

        def look(x):
            seen.append(seen[-1].expired())
            return x.clone()
        library.impl("watch", watch, "CPU")
        library.impl("look", look, "CPU")
        program = probe.Program(
            [("input", 0, [12]), ("owned", -1, [12]), ("view", -1, [3, 4], {"base": 1, "strides": [4, 1]}),
             ("view", -1, [2, 4], {"base": 2, "strides": [4, 1]}), ("owned", -1, [2, 4]), ("owned", -1, [2, 4])],
            [("extern", "aten::neg", [buf(0)], [1]), ("extern", "runtime_test::watch", [buf(3)], [4]), ("free", 1),
             ("extern", "runtime_test::look", [buf(4)], [5])], [5])
        x = torch.randn(12)
        for _ in range(2):
            torch.testing.assert_close(program.run([x])[0], -x[:8].view(2, 4))
            self.assertIs(seen[-1], True)

    def test_other_strides_than_predicted_are_brought_into_line(self):
        x = torch.randn(4, 3)
        program = probe.Program([("input", 0, [4, 3]), ("owned", -1, [3, 4])], [("extern", "aten::t", [buf(0)], [1])], [1])
        out = program.run([x])[0]
        torch.testing.assert_close(out, x.t())
        self.assertEqual(out.stride(), (4, 1))

    def test_other_sizes_than_predicted_are_an_error(self):
        program = probe.Program([("input", 0, [4]), ("owned", -1, [5])], [("extern", "aten::neg", [buf(0)], [1])], [1])
        with self.assertRaisesRegex(RuntimeError, "where the compiler predicted"):
            program.run([torch.randn(4)])

    def test_dynamic_sizes(self):
        program = probe.Program([("input", 0, ["n"]), ("owned", -1, ["n"])],
                                [("allocate", 1), ("launch", "affine_dynamic", [0, 1], ["n"])], [1])
        for n in (1, 100, 4097):
            x = torch.randn(n)
            torch.testing.assert_close(program.run([x])[0], 2 * x + 1)

    def test_operator_errors_pass_through_and_leave_it_usable(self):
        program = probe.Program([("input", 0, [2, 3]), ("input", 1, [4, 5]), ("owned", -1, [2, 5])],
                                [("extern", "aten::mm", [buf(0), buf(1)], [2])], [2])
        with self.assertRaisesRegex(RuntimeError, "mat1 and mat2 shapes cannot be multiplied"):
            program.run([torch.randn(2, 3), torch.randn(4, 5)])
        a, b = torch.randn(2, 4), torch.randn(4, 5)
        torch.testing.assert_close(program.run([a, b])[0], a @ b)

    def test_unknown_operator_and_bad_argument_are_refused(self):
        with self.assertRaisesRegex(RuntimeError, "no operator named aten::no_such"):
            probe.Program([("input", 0, [2])], [("extern", "aten::no_such", [buf(0)], [])], [])
        with self.assertRaisesRegex(RuntimeError, "cannot pass"):
            probe.Program([("input", 0, [2])], [("extern", "aten::relu", ["text"], [])], [])

    def test_below_autograd(self):
        x = torch.randn(3, requires_grad=True)
        program = probe.Program([("input", 0, [3]), ("owned", -1, [3])], [("extern", "aten::exp", [buf(0)], [1])], [1])
        self.assertFalse(program.run([x])[0].requires_grad)

    def test_threads(self):
        probe.set_kernel_size(1000)
        program = probe.Program(
            [("input", 0, [1000]), ("planned", -1, [1000], {"pool": 0}), ("owned", -1, [1000]), ("owned", -1, [1000])],
            [("launch", "affine", [0, 1]), ("extern", "aten::neg", [buf(1)], [2]), ("allocate", 3), ("launch", "affine", [2, 3])],
            [3], pool=4096)
        failures = []

        def work(seed):
            x = torch.full((1000,), float(seed))
            for _ in range(200):
                if not torch.equal(program.run([x])[0], 2 * -(2 * x + 1) + 1):
                    failures.append(seed)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(failures, [])

    def test_launches_are_recorded(self):
        probe.set_kernel_size(64)
        program = probe.Program([("input", 0, [64]), ("owned", -1, [64]), ("owned", -1, [64])],
                                [("allocate", 1), ("launch", "affine", [0, 1]), ("extern", "aten::neg", [buf(1)], [2])], [2])
        records = program.recorded([torch.randn(64)])
        self.assertEqual([r[:2] for r in records], [(0, 1), (-1, 2)])
        self.assertTrue(all(r[2] >= 0 for r in records))

    def test_pool_is_kept_and_given_back(self):
        probe.trim()
        probe.set_kernel_size(64)
        program = probe.Program([("input", 0, [64]), ("planned", -1, [64], {"pool": 0}), ("owned", -1, [64])],
                                [("launch", "affine", [0, 1]), ("allocate", 2), ("launch", "affine", [1, 2])], [2], pool=1 << 20)
        program.run([torch.randn(64)])
        self.assertEqual(probe.kept_bytes(), 1 << 20)
        self.assertEqual(probe.trim(), 1 << 20)

    def test_cost_of_a_step(self):
        x = torch.randn(16)

        def program(launches, calls):
            steps = [("launch", "nothing", [0, 1])] * launches + [("extern", "aten::neg", [buf(1)], [2], "aten::neg.out")] * calls
            return probe.Program([("input", 0, [16]), ("planned", -1, [16], {"pool": 0}), ("planned", -1, [16], {"pool": 64})],
                                 steps, [], pool=128)

        base = program(1, 0).time([x], 2000)
        launch = (program(1001, 0).time([x], 20) - base) / 1000
        call = (program(1, 1000).time([x], 20) - base) / 1000
        out = torch.empty(16)
        import timeit
        eager = min(timeit.repeat(lambda: torch.neg(x, out=out), number=2000, repeat=7)) / 2000 * 1e9
        print(f"empty call {base:.0f} ns, launch {launch:.1f} ns, extern call {call:.0f} ns (eager from Python {eager:.0f} ns)")
        self.assertLess(launch, eager)  # an operator from Python


class Interpreter(unittest.TestCase):
    def test_graph_runs_node_by_node(self):
        x = torch.randn(4, 6, requires_grad=True)
        out = probe.eager([x], [("aten::split.Tensor", [("v", 0), 2, 0], 2), ("aten::exp", [("v", 1)], 1),
                                ("aten::sum.dim_IntList", [("v", 2), [0], False, "float64"], 1)], 3)
        torch.testing.assert_close(out[0], x.detach()[:2].exp().sum(0, dtype=torch.float64))
        self.assertFalse(out[0].requires_grad)

    def test_missing_operator_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "no operator named"):
            probe.eager([torch.randn(2)], [("aten::no_such", [("v", 0)], 1)], 1)


if __name__ == "__main__":
    unittest.main()

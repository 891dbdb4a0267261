"""Matrix products of odd extents as they are lowered for a GPU, evaluated by interpreter.py, against eager: forward and backward, all forms
and layouts of operands. With at least one product padded in each."""

import json
import sys

import torch
import torch.nn.functional as F
from functorch.compile import aot_function, make_boxed_func

from interpreter import Program, Tool, nodes_of


class GpuTool(Tool):
    """As if the tensors lay on a GPU."""

    def lower(self, nodes, text=True):
        self.process.stdin.write(json.dumps({"nodes": nodes, "text": text, "cuda": True}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


def head(x, w, t):
    return F.cross_entropy((x @ w.t()).float(), t)


def shifted_head(x, w, t):
    logits = (x @ w.t()).view(2, -1, w.shape[0])
    return F.cross_entropy(logits[:, :-1].float().reshape(-1, w.shape[0]), t.view(2, -1)[:, 1:].reshape(-1), ignore_index=3) + logits.float().mean()


def linear(x, w, b):
    return F.linear(x, w, b).float().relu().sum(0)


def attention(q, k, v):
    return (torch.softmax((q @ k.transpose(1, 2)).float(), -1).to(v.dtype) @ v).float().sin()


def scaled(a, b, c):
    return torch.baddbmm(a, b, c, beta=0.5, alpha=2).float().cos()


def both_ways(a, b, _):
    return (a @ b).float().sum(1), (a.t() @ a).float().sum(0)


CASES = [(head, (600, 512), (1501, 512), "1501"), (shifted_head, (600, 512), (1501, 512), "1501"), (linear, (1500, 1001), (1003, 1001), (1003,)),
         (attention, (12, 577, 64), (12, 577, 64), (12, 577, 64)), (scaled, (8, 513, 1), (8, 513, 511), (8, 511, 517)),
         (scaled, (517,), (8, 513, 511), (8, 511, 517)), (both_ways, (901, 903), (903, 905), (1,))]


def main():
    tool, failed = GpuTool(), 0
    for f, *shapes in CASES:
        torch.manual_seed(0)
        inputs = [torch.randint(0, int(s), (shapes[0][0],)) if isinstance(s, str) else (torch.randn(s) * 0.2).bfloat16() for s in shapes]
        padded = []

        def compiler(gm, _):
            nodes, constants = nodes_of(gm)
            lowered = tool.lower(nodes)
            padded.append(lowered["text"].count("constant_pad_nd"))
            program = Program(lowered, constants)

            def call(*given):
                out = program(*given)
                assert not program.mismatches, program.mismatches
                return out

            return make_boxed_func(call)

        def run(function, values):
            values = [v.clone().requires_grad_(v.is_floating_point()) for v in values]
            out = function(*values)
            outs = out if isinstance(out, (tuple, list)) else (out,)
            grads = torch.autograd.grad([o.double().square().sum() for o in outs], [v for v in values if v.requires_grad], allow_unused=True)
            return [*outs, *(g for g in grads if g is not None)]

        want, got = run(f, inputs), run(aot_function(f, fw_compiler=compiler, bw_compiler=compiler), inputs)
        error = max(((a.float() - b.float()).abs().max() / (b.float().abs().max() + 1e-9)).item() for a, b in zip(got, want))
        same = all(a.stride() == b.stride() for a, b in zip(got, want))
        bad = error > 0.02 or not same or not padded[0]
        failed += bad
        print(f"{'WRONG' if bad else 'ok'}  {f.__name__} {shapes}: error {error:.1e}, pads {padded}")
    return failed


if __name__ == "__main__":
    sys.exit(main())

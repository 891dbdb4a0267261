"""Whole models, forward and backward, captured by PyTorch, lowered here and evaluated by interpreter.py, against eager.

`models.py [--filter PART]`
"""

import argparse
import sys
import time
from collections import Counter

import torch
from torch._dynamo.backends.common import aot_autograd

from interpreter import Program, Tool, nodes_of


def resnet():
    import torchvision
    return torchvision.models.resnet18(), (torch.randn(2, 3, 64, 64),)


def mobilenet():
    import torchvision
    return torchvision.models.mobilenet_v3_small(), (torch.randn(2, 3, 64, 64),)


def vit():
    import timm
    return timm.create_model("vit_tiny_patch16_224", img_size=64, depth=2), (torch.randn(2, 3, 64, 64),)


def convnext():
    import timm
    return timm.create_model("convnext_atto"), (torch.randn(2, 3, 64, 64),)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=128, n_positions=64, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False))
    return (lambda ids: model(ids).logits), (torch.randint(0, 128, (2, 32)),), model


def bert():
    from transformers import BertConfig, BertModel
    model = BertModel(BertConfig(num_hidden_layers=2, hidden_size=64, num_attention_heads=4, intermediate_size=128, vocab_size=128, hidden_dropout_prob=0, attention_probs_dropout_prob=0))
    return (lambda ids: model(ids).last_hidden_state), (torch.randint(0, 128, (2, 32)),), model


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=2, hidden_size=64, num_attention_heads=4, num_key_value_heads=2, intermediate_size=128, vocab_size=128, use_cache=False))
    return (lambda ids: model(ids).logits), (torch.randint(0, 128, (2, 32)),), model


MODELS = {"resnet18": resnet, "mobilenet_v3_small": mobilenet, "vit": vit, "convnext": convnext, "gpt2": gpt2, "bert": bert, "llama": llama}


def check(name, mode, tool, verbose):
    torch.manual_seed(0)
    made = MODELS[name]()
    f, inputs, module = (*made, made[0])[:3]
    train = mode == "train"
    module.train(train)
    if mode == "bfloat16":
        module.to(torch.bfloat16)
        inputs = [x.to(torch.bfloat16) if x.is_floating_point() else x for x in inputs]
    reasons, kernels, times = Counter(), [], []
    mismatches = []

    def compiler(gm, _):
        nodes, constants = nodes_of(gm)
        start = time.perf_counter()
        program = Program(tool.lower(nodes), constants)
        times.append(time.perf_counter() - start)
        reasons.update(program.reasons())
        kernels.append(program.kernels())

        def call(inputs):
            taken = list(inputs)
            inputs.clear()
            out = program(*taken)
            mismatches.extend(program.mismatches)
            return out

        call._boxed_call = True
        return call

    torch._dynamo.reset()
    buffers = {k: v.clone() for k, v in module.named_buffers()}
    compiled = torch.compile(f, backend=aot_autograd(fw_compiler=compiler, bw_compiler=compiler))
    results = []
    for g in (f, compiled):
        module.load_state_dict({**module.state_dict(), **{k: v for k, v in buffers.items() if k in module.state_dict()}})
        module.zero_grad()
        torch.manual_seed(1)
        with torch.set_grad_enabled(train):
            out = g(*inputs)
            if train:
                (out.float() * torch.linspace(-1, 2, out.numel()).reshape(out.shape)).sum().backward()
        results.append((out.detach(), {k: p.grad.clone() for k, p in module.named_parameters() if p.grad is not None},
                        {k: v.clone() for k, v in module.named_buffers()}))
    (want, want_grads, want_buffers), (got, got_grads, got_buffers) = results
    tol = dict(rtol=5e-2, atol=5e-2) if mode == "bfloat16" else dict(rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(got, want, **tol)
    for k in want_grads:
        scale = want_grads[k].abs().max().clamp(min=1e-6)
        torch.testing.assert_close(got_grads[k] / scale, want_grads[k] / scale, rtol=1e-3, atol=2e-3, msg=lambda m: f"{k}: {m}")
    for k in want_buffers:
        torch.testing.assert_close(got_buffers[k], want_buffers[k], **tol)
    print(f"ok   {name} {mode}: kernels {kernels}, extern {sum(reasons.values())}, lowering {sum(times) * 1e3:.0f} ms with pipe")
    if verbose:
        for r, n in reasons.most_common():
            print(f"     {n:4} {r}")
    for m, n in Counter(mismatches).most_common(4):
        print(f"     note {n}x {m}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--filter", default="")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    tool, bad = Tool(), 0
    for name in MODELS:
        for mode in ("inference", "bfloat16", "train"):
            if args.filter not in f"{name} {mode}":
                continue
            try:
                check(name, mode, tool, args.verbose)
            except Exception as e:
                bad += 1
                print(f"FAIL {name} {mode}: {type(e).__name__}: {str(e)[:600]}")
                if args.verbose:
                    raise
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

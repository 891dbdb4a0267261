"""Real models with random weights, inference and training, traced whole and compared with eager."""
import warnings

import torch

from aot_compare import compare_model, run

warnings.filterwarnings("ignore")
torch.set_num_threads(2)


def vision(make, size=64):
    def check(train):
        torch.manual_seed(0)
        model = make().train(train)
        return model, [torch.randn(2, 3, size, size)], {}
    return check


def torchvision_model(name, **kw):
    import torchvision
    return lambda: getattr(torchvision.models, name)(weights=None, **kw)


def timm_model(name):
    import timm
    return lambda: timm.create_model(name, pretrained=False)


def text(make):
    def check(train):
        torch.manual_seed(0)
        model = make().train(train)
        ids = torch.randint(0, 90, (2, 12))
        return model, [ids], {"use_cache": False} if model.config.model_type in ("gpt2", "llama") else {}
    return check


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(n_layer=3, n_embd=48, n_head=3, vocab_size=96, n_positions=32))


def bert():
    from transformers import BertConfig, BertModel
    return BertModel(BertConfig(num_hidden_layers=3, hidden_size=48, num_attention_heads=3, intermediate_size=96, vocab_size=96))


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=2, hidden_size=48, num_attention_heads=4, num_key_value_heads=2,
                                        intermediate_size=96, vocab_size=96))


MODELS = {
    "resnet18": vision(torchvision_model("resnet18")),
    "mobilenet_v3_small": vision(torchvision_model("mobilenet_v3_small")),
    "vit_tiny": vision(timm_model("vit_tiny_patch16_224"), 224),
    "convnext_atto": vision(timm_model("convnext_atto")),
    "gpt2": text(gpt2),
    "bert": text(bert),
    "llama": text(llama),
}


def case(build, train):
    def check():
        model, args, kwargs = build(train)
        # torch.utils' own flag: libraries skip data-dependent checks while it is set, as they do under torch.compile
        torch.compiler._is_compiling_flag = True
        try:
            traced = compare_model(model, args, kwargs, train=train, tolerance=2e-5)
        finally:
            torch.compiler._is_compiling_flag = False
        return f"{len(traced.ops)} ops, trace {traced.trace_ms:.1f} ms, finish {traced.finish_ms:.1f} ms, saved {traced.saved_bytes // 1024} KiB"
    return check


if __name__ == "__main__":
    run({f"{name}{'_train' if train else ''}": case(build, train) for name, build in MODELS.items() for train in (False, True)})

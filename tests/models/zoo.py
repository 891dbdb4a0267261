"""The models that Fusebox is measured on: random weights, real depth, inputs small enough for two cores.

Each entry builds `(module, args, kwargs)` with freshly drawn inputs; `loss_of` makes a scalar of whatever the model returns.
"""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch


def _image(build, batch=2, size=224):
    def make():
        return build(), (torch.randn(batch, 3, size, size),), {}
    return make


def _torchvision(name):
    def build():
        import torchvision
        return getattr(torchvision.models, name)(weights=None)
    return _image(build)


def _timm(name):
    def build():
        import timm
        return timm.create_model(name, pretrained=False)
    return _image(build)


def _transformer(model_class, config_class, labels=True, batch=2, length=64, **config):
    def make():
        import transformers
        cfg = getattr(transformers, config_class)(**config)
        model = getattr(transformers, model_class)(cfg)
        ids = torch.randint(0, cfg.vocab_size, (batch, length))
        kwargs = {"input_ids": ids}
        if labels:
            kwargs["labels"] = torch.randint(0, cfg.vocab_size, (batch, length))
        return model, (), kwargs
    return make


MODELS = {
    "resnet18": _torchvision("resnet18"),
    "resnet50": _torchvision("resnet50"),
    "mobilenet_v3_small": _torchvision("mobilenet_v3_small"),
    "vit_tiny": _timm("vit_tiny_patch16_224"),
    "convnext_atto": _timm("convnext_atto"),
    "gpt2": _transformer("GPT2LMHeadModel", "GPT2Config", n_layer=12, n_head=12, n_embd=768, vocab_size=5000),
    "bert": _transformer("BertForMaskedLM", "BertConfig", hidden_size=256, num_hidden_layers=12, num_attention_heads=4,
                         intermediate_size=1024, vocab_size=5000),
    "llama": _transformer("LlamaForCausalLM", "LlamaConfig", hidden_size=256, intermediate_size=688, num_hidden_layers=8,
                          num_attention_heads=8, num_key_value_heads=4, vocab_size=5000),
}


def tensors_of(value, found=None):
    """Every tensor in a model's output, in a fixed order."""
    found = [] if found is None else found
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            tensors_of(item, found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            tensors_of(item, found)
    elif hasattr(value, "layers") and type(value).__name__.endswith("Cache"):
        for layer in value.layers:
            tensors_of([state for name in ("keys", "values", "conv_states", "recurrent_states") if (state := getattr(layer, name, None)) is not None], found)
    return found


def loss_of(output):
    """A scalar to differentiate: the model's own loss, else the mean of its floating-point outputs."""
    loss = getattr(output, "loss", None)
    if loss is not None:
        return loss
    floats = [t for t in tensors_of(output) if t.is_floating_point() and t.requires_grad]
    return sum(t.float().pow(2).mean() for t in floats)

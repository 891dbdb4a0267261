"""Programs of the size that people run, for measurements: each is built with random weights on a device.

`PROGRAMS[name](device, tiny)` gives `(target, step_of)`: what is compiled, and a function that makes, of the target or its compiled form,
a step without arguments that returns a scalar tensor to compare. `tiny` keeps the structure with small sizes, to try a program on a CPU.
"""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import torch.nn.functional as F
from torch import nn

PROGRAMS = {}


def program(build):
    PROGRAMS[build.__name__] = build
    return build


def scalar(output):
    """A number to compare, of whatever a model returns."""
    if getattr(output, "loss", None) is not None:
        return output.loss
    if isinstance(output, torch.Tensor):
        return output.float().square().mean()
    for name in ("logits", "last_hidden_state"):
        if hasattr(output, name):
            return getattr(output, name).float().square().mean()
    return scalar(output[0])


def autocast(device):
    return torch.autocast(device, dtype=torch.bfloat16)


def training(model, args, kwargs, device, optimizer=None, loss=scalar):
    """(target, step_of) of a training step under bfloat16 autocast; the optimizer is stepped eagerly, as in most training loops."""
    model.train()

    def step_of(run):
        def step():
            model.zero_grad(set_to_none=True)
            with autocast(device):
                value = loss(run(*args, **kwargs))
            value.backward()
            if optimizer is not None:
                optimizer.step()
            return value.detach()
        return step
    return model, step_of


def inference(model, args, kwargs):
    model.eval()

    def step_of(run):
        def step():
            with torch.no_grad():
                return scalar(run(*args, **kwargs))
        return step
    return model, step_of


def transformer(model, config, device, dtype=torch.float32, **sizes):
    import transformers
    torch.manual_seed(0)
    made = getattr(transformers, config)(**sizes)
    return getattr(transformers, model)(made).to(device=device, dtype=dtype)


def tokens(vocabulary, batch, length, device):
    return torch.randint(0, vocabulary, (batch, length), device=device)


@program
def gpt2_train(device, tiny, batch=8, length=1024):
    vocabulary = 50257
    sizes = dict(n_layer=2, n_embd=64, n_head=2) if tiny else {}
    batch, length = (2, 32) if tiny else (batch, length)
    model = transformer("GPT2LMHeadModel", "GPT2Config", device, **sizes)
    ids = tokens(vocabulary, batch, length, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    return training(model, (), {"input_ids": ids, "labels": ids}, device, optimizer)


@program
def gpt2_train_short(device, tiny):
    return gpt2_train(device, tiny, batch=16, length=384)


def llama(device, tiny, dtype, layers=8):
    sizes = dict(hidden_size=64, intermediate_size=160, num_attention_heads=4, num_key_value_heads=2) if tiny else dict(
        hidden_size=2048, intermediate_size=5632, num_attention_heads=16, num_key_value_heads=4)
    return transformer("LlamaForCausalLM", "LlamaConfig", device, dtype, num_hidden_layers=2 if tiny else layers, vocab_size=32000, **sizes)


@program
def llama_prefill(device, tiny, batch=4, length=2048):
    batch, length = (2, 32) if tiny else (batch, length)
    model = llama(device, tiny, torch.bfloat16)
    return inference(model, (), {"input_ids": tokens(32000, batch, length, device), "use_cache": False})


@program
def llama_prefill_long(device, tiny):
    return llama_prefill(device, tiny, batch=1, length=6000)


@program
def llama_decode(device, tiny):
    """One token with a static cache, at a position that moves."""
    import transformers
    model = llama(device, tiny, torch.bfloat16).eval()
    cache = transformers.StaticCache(config=model.config, max_cache_len=64 if tiny else 1024)
    with torch.no_grad():
        model(input_ids=tokens(32000, 1, 8, device), past_key_values=cache, use_cache=True)
    token = tokens(32000, 1, 1, device)
    lengths = [getattr(layer, "cumulative_length", None) for layer in cache.layers]

    def step_of(run):
        def step():
            for layer, length in zip(cache.layers, lengths):
                if isinstance(length, int):
                    layer.cumulative_length = length
                elif isinstance(length, torch.Tensor):
                    layer.cumulative_length.fill_(8)
            with torch.no_grad():
                return scalar(run(input_ids=token, past_key_values=cache, use_cache=True))
        return step
    return model, step_of


@program
def llama_train(device, tiny):
    model = llama(device, tiny, torch.float32)
    ids = tokens(32000, 2, 32 if tiny else 1024, device)
    return training(model, (), {"input_ids": ids, "labels": ids}, device)


@program
def bert_train(device, tiny):
    sizes = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128) if tiny else {}
    model = transformer("BertForMaskedLM", "BertConfig", device, **sizes)
    ids = tokens(30522, 2, 32, device) if tiny else tokens(30522, 32, 256, device)
    return training(model, (), {"input_ids": ids, "labels": ids}, device)


@program
def roberta_mask_train(device, tiny):
    sizes = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128) if tiny else {}
    model = transformer("RobertaForMaskedLM", "RobertaConfig", device, **sizes)
    ids = tokens(50265, 2, 32, device) if tiny else tokens(50265, 32, 256, device)
    mask = torch.ones_like(ids)
    mask[:, ids.shape[1] * 3 // 4:] = 0
    return training(model, (), {"input_ids": ids, "labels": ids, "attention_mask": mask}, device)


@program
def gpt_neox_train(device, tiny):
    sizes = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128) if tiny else dict(
        hidden_size=1024, num_hidden_layers=12, num_attention_heads=16, intermediate_size=4096)
    model = transformer("GPTNeoXForCausalLM", "GPTNeoXConfig", device, vocab_size=50432, **sizes)
    ids = tokens(50432, 2, 32, device) if tiny else tokens(50432, 4, 1024, device)
    return training(model, (), {"input_ids": ids, "labels": ids}, device)


@program
def qwen3_moe_train(device, tiny):
    sizes = dict(hidden_size=64, intermediate_size=128, moe_intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
                 num_key_value_heads=1, head_dim=32, num_experts=4, num_experts_per_tok=2) if tiny else dict(
        hidden_size=768, intermediate_size=2048, moe_intermediate_size=512, num_hidden_layers=6, num_attention_heads=12,
        num_key_value_heads=4, head_dim=64, num_experts=16, num_experts_per_tok=2)
    model = transformer("Qwen3MoeForCausalLM", "Qwen3MoeConfig", device, vocab_size=32000, **sizes)
    ids = tokens(32000, 2, 32, device) if tiny else tokens(32000, 4, 512, device)
    return training(model, (), {"input_ids": ids, "labels": ids}, device)


@program
def mixtral_prefill(device, tiny):
    sizes = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                 num_local_experts=4) if tiny else dict(
        hidden_size=1024, intermediate_size=3584, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=4, num_local_experts=8)
    model = transformer("MixtralForCausalLM", "MixtralConfig", device, torch.bfloat16, vocab_size=32000, **sizes)
    return inference(model, (), {"input_ids": tokens(32000, 2, 32 if tiny else 1024, device), "use_cache": False})


@program
def t5_train(device, tiny):
    sizes = dict(d_model=64, d_ff=128, num_layers=2, num_heads=2, d_kv=32) if tiny else dict(d_model=768, d_ff=2048, num_layers=8, num_heads=12)
    model = transformer("T5ForConditionalGeneration", "T5Config", device, decoder_start_token_id=0, **sizes)
    ids = tokens(32128, 2, 32, device) if tiny else tokens(32128, 8, 512, device)
    return training(model, (), {"input_ids": ids, "labels": ids}, device)


@program
def whisper_encoder(device, tiny):
    sizes = dict(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
                 encoder_ffn_dim=128, decoder_ffn_dim=128) if tiny else dict(
        d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12, decoder_attention_heads=12,
        encoder_ffn_dim=3072, decoder_ffn_dim=3072)
    model = transformer("WhisperModel", "WhisperConfig", device, torch.bfloat16, **sizes)
    return inference(model.encoder, (torch.randn(1 if tiny else 8, 80, 3000, device=device, dtype=torch.bfloat16),), {})


@program
def whisper_train(device, tiny):
    sizes = dict(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
                 encoder_ffn_dim=128, decoder_ffn_dim=128) if tiny else dict(
        d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8, decoder_attention_heads=8,
        encoder_ffn_dim=2048, decoder_ffn_dim=2048)
    model = transformer("WhisperForConditionalGeneration", "WhisperConfig", device, **sizes)
    batch = 1 if tiny else 8
    return training(model, (), {"input_features": torch.randn(batch, 80, 3000, device=device), "labels": tokens(5000, batch, 64, device)}, device)


@program
def mamba_train(device, tiny):
    sizes = dict(hidden_size=64, num_hidden_layers=2) if tiny else dict(hidden_size=768, num_hidden_layers=4)
    model = transformer("MambaForCausalLM", "MambaConfig", device, vocab_size=32000, **sizes)
    ids = tokens(32000, 1, 16, device) if tiny else tokens(32000, 4, 128, device)
    return training(model, (), {"input_ids": ids, "labels": ids}, device)


@program
def mamba2_train(device, tiny):
    sizes = dict(hidden_size=64, num_hidden_layers=2, num_heads=8, head_dim=16, state_size=16, chunk_size=16) if tiny else dict(
        hidden_size=768, num_hidden_layers=6, num_heads=24, head_dim=64, state_size=64, chunk_size=128)
    model = transformer("Mamba2ForCausalLM", "Mamba2Config", device, vocab_size=32000, n_groups=1, **sizes)
    ids = tokens(32000, 2, 32, device) if tiny else tokens(32000, 4, 512, device)
    return training(model, (), {"input_ids": ids, "labels": ids}, device, torch.optim.AdamW(model.parameters(), lr=1e-5, fused=device == "cuda"))


@program
def deberta_train(device, tiny):
    sizes = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128) if tiny else dict(
        hidden_size=768, num_hidden_layers=6, num_attention_heads=12, intermediate_size=3072)
    model = transformer("DebertaV2ForSequenceClassification", "DebertaV2Config", device, vocab_size=50265, relative_attention=True,
                        pos_att_type=["p2c", "c2p"], max_position_embeddings=512, position_buckets=256, **sizes)
    ids = tokens(50265, 2, 64, device) if tiny else tokens(50265, 16, 256, device)
    labels = torch.zeros(len(ids), dtype=torch.long, device=device)
    return training(model, (), {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}, device)


class HandWrittenBlock(nn.Module):
    """A transformer's block with attention as products and a softmax, dropout on everything."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.query_key_value, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down, self.drop = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(0.1)
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.query_key_value(self.norms[0](x)).split(width, 2))
        scores = (q @ k.transpose(-2, -1)) * k.size(-1) ** -0.5
        weights = self.drop(F.softmax(scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf")), -1))
        x = x + self.drop(self.out((weights @ v).transpose(1, 2).contiguous().view(batch, length, width)))
        return x + self.drop(self.down(F.gelu(self.up(self.norms[1](x)))))


@program
def hand_written_gpt_train(device, tiny):
    width, heads, layers, length, batch = (64, 4, 2, 32, 2) if tiny else (768, 12, 6, 1024, 8)
    torch.manual_seed(0)
    blocks = [HandWrittenBlock(width, heads, length) for _ in range(layers)]
    model = nn.Sequential(nn.Embedding(50304, width), *blocks, nn.LayerNorm(width), nn.Linear(width, 50304, bias=False)).to(device)
    ids = tokens(50304, batch, length, device)
    return training(model, (ids,), {}, device, loss=lambda logits: F.cross_entropy(logits.flatten(0, 1), ids.roll(-1, 1).flatten()))


class MixerBlock(nn.Module):
    def __init__(self, width, positions):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.tokens = nn.Sequential(nn.Linear(positions, width // 2), nn.GELU(), nn.Linear(width // 2, positions))
        self.channels = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norms[1](x))


class Mixer(nn.Module):
    def __init__(self, width, layers, positions):
        super().__init__()
        self.patch, self.norm, self.head = nn.Conv2d(3, width, 16, 16), nn.LayerNorm(width), nn.Linear(width, 1000)
        self.blocks = nn.Sequential(*(MixerBlock(width, positions) for _ in range(layers)))

    def forward(self, images):
        return self.head(self.norm(self.blocks(self.patch(images).flatten(2).transpose(1, 2))).mean(1))


@program
def mixer_train(device, tiny):
    width, layers, side, batch = (32, 2, 4, 2) if tiny else (768, 12, 14, 64)
    torch.manual_seed(0)
    model = Mixer(width, layers, side * side).to(device)
    images, labels = torch.randn(batch, 3, 16 * side, 16 * side, device=device), torch.randint(0, 1000, (batch,), device=device)
    return training(model, (images,), {}, device, loss=lambda output: F.cross_entropy(output, labels))


def vision(name, device, tiny, batch, optimizer=None, size=224):
    import torchvision
    torch.manual_seed(0)
    model = getattr(torchvision.models, name)(weights=None).to(device, memory_format=torch.channels_last)
    images = torch.randn(2 if tiny else batch, 3, size, size, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (images.shape[0],), device=device)
    made = optimizer and optimizer(model.parameters())
    return training(model, (images,), {}, device, made, lambda output: F.cross_entropy(output, labels))


@program
def convnext_train(device, tiny):
    return vision("convnext_small" if not tiny else "convnext_tiny", device, tiny, 64, lambda p: torch.optim.SGD(p, lr=1e-6, momentum=0.9))


@program
def vit_l_train(device, tiny):
    return vision("vit_l_16" if not tiny else "vit_b_16", device, tiny, 32)


@program
def resnet50_train(device, tiny):
    return vision("resnet50", device, tiny, 64)


@program
def densenet_train(device, tiny):
    return vision("densenet121", device, tiny, 64)


@program
def mobilenet_inference(device, tiny):
    import torchvision
    torch.manual_seed(0)
    return inference(torchvision.models.mobilenet_v3_large(weights=None).to(device), (torch.randn(2 if tiny else 128, 3, 224, 224, device=device),), {})


@program
def efficientnet_train(device, tiny):
    return vision("efficientnet_b0", device, tiny, 64)


@program
def swin_train(device, tiny):
    return vision("swin_t", device, tiny, 64)


@program
def maxvit_train(device, tiny):
    return vision("maxvit_t", device, tiny, 32)


@program
def flex_alibi(device, tiny):
    from torch.nn.attention.flex_attention import flex_attention
    shape = (1, 2, 128, 64) if tiny else (4, 16, 4096, 64)
    torch.manual_seed(0)
    query, key, value = (torch.randn(shape, device=device, dtype=torch.bfloat16) for _ in range(3))
    slopes = torch.exp2(-torch.arange(1, shape[1] + 1, device=device) * 8.0 / shape[1])

    def alibi(score, batch, head, q, k):
        return score + slopes[head] * (k - q)

    def attend(q, k, v):
        return flex_attention(q, k, v, score_mod=alibi)
    return attend, lambda run: lambda: scalar(run(query, key, value))


class Dlrm(nn.Module):
    def __init__(self, rows, tables, width):
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables)])
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(pairs + width, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, offset=-1))

    def forward(self, dense, indices, offsets):
        bottom = self.bottom(dense)
        all_features = torch.stack([bottom] + [bag(indices[i], offsets) for i, bag in enumerate(self.bags)], 1)
        product = all_features @ all_features.transpose(1, 2)
        return self.top(torch.cat([bottom, product[:, self.pairs[0], self.pairs[1]]], 1)).squeeze(1)


@program
def dlrm_train(device, tiny):
    torch.manual_seed(0)
    rows, tables, batch = (100, 4, 16) if tiny else (100000, 26, 8192)
    model = Dlrm(rows, tables, 64).to(device)
    indices = torch.randint(0, rows, (tables, batch * 4), device=device)
    offsets = torch.arange(0, batch * 4, 4, device=device)
    labels = torch.rand(batch, device=device)
    return training(model, (torch.randn(batch, 13, device=device), indices, offsets), {}, device,
                    loss=lambda output: F.binary_cross_entropy_with_logits(output.float(), labels))


@program
def gcn_train(device, tiny):
    import torch_geometric.nn
    torch.manual_seed(0)
    nodes, edges = (100, 500) if tiny else (100000, 1000000)
    model = torch_geometric.nn.models.GCN(128, 256, 3, 40).to(device)
    edge_index = torch.randint(0, nodes, (2, edges), device=device)
    labels = torch.randint(0, 40, (nodes,), device=device)
    return training(model, (torch.randn(nodes, 128, device=device), edge_index), {}, device,
                    loss=lambda output: F.cross_entropy(output.float(), labels))


@program
def llama_lora_train(device, tiny):
    import peft
    sizes = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=100) if tiny else dict(
        hidden_size=2048, intermediate_size=5632, num_hidden_layers=8, num_attention_heads=32, num_key_value_heads=8, vocab_size=32000)
    model = transformer("LlamaForCausalLM", "LlamaConfig", device, torch.bfloat16, max_position_embeddings=4096, **sizes)
    model = peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=16, lora_dropout=0.0, target_modules=["q_proj", "v_proj", "gate_proj"]))
    ids = tokens(sizes["vocab_size"], 2 if tiny else 4, 16 if tiny else 1024, device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    return training(model, (), dict(input_ids=ids, labels=ids, use_cache=False), device, optimizer, loss=lambda output: output.loss)


@program
def unet_sd(device, tiny):
    import diffusers
    torch.manual_seed(0)
    sizes = dict(block_out_channels=(32, 64), down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
                 layers_per_block=1, cross_attention_dim=32, attention_head_dim=4, norm_num_groups=8) if tiny else dict(cross_attention_dim=768)
    model = diffusers.UNet2DConditionModel(sample_size=8 if tiny else 64, **sizes).to(device, torch.bfloat16, memory_format=torch.channels_last)
    side = 8 if tiny else 64
    latents = torch.randn(2, 4, side, side, device=device, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    context = torch.randn(2, 77, sizes["cross_attention_dim"], device=device, dtype=torch.bfloat16)
    return inference(model, (latents, torch.tensor(500, device=device), context), dict(return_dict=False))


@program
def vae_decode(device, tiny):
    import diffusers
    torch.manual_seed(0)
    widths = (32, 64) if tiny else (128, 256, 512, 512)
    model = diffusers.AutoencoderKL(block_out_channels=widths, down_block_types=("DownEncoderBlock2D",) * len(widths),
                                    up_block_types=("UpDecoderBlock2D",) * len(widths), layers_per_block=1 if tiny else 2,
                                    latent_channels=4, norm_num_groups=8 if tiny else 32).to(device, torch.bfloat16, memory_format=torch.channels_last)
    side = 8 if tiny else 64
    latents = torch.randn(1, 4, side, side, device=device, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    return inference(model.decoder, (latents,), {})


def quantised(device, tiny, config):
    import torchao.quantization
    torch.manual_seed(0)
    width = 64 if tiny else 4096
    model = nn.Sequential(nn.Linear(width, 2 * width, bias=False), nn.SiLU(), nn.Linear(2 * width, width, bias=False)).to(device, torch.bfloat16)
    torchao.quantization.quantize_(model, getattr(torchao.quantization, config)())
    return inference(model, (torch.randn(16 if tiny else 1024, width, device=device, dtype=torch.bfloat16),), {})


@program
def int8_weights(device, tiny):
    return quantised(device, tiny, "Int8WeightOnlyConfig")


@program
def int8_dynamic(device, tiny):
    return quantised(device, tiny, "Int8DynamicActivationInt8WeightConfig")


@program
def float8_dynamic(device, tiny):
    return quantised(device, tiny, "Float8DynamicActivationFloat8WeightConfig")


@program
def lstm_train(device, tiny):
    torch.manual_seed(0)
    width, batch, length = (16, 2, 5) if tiny else (1024, 64, 128)
    model = nn.LSTM(width, width, num_layers=2, batch_first=True).to(device)
    return training(model, (torch.randn(batch, length, width, device=device),), {}, device, loss=lambda output: scalar(output[0]))


@program
def adamw_300_tensors(device, tiny):
    torch.manual_seed(0)
    count, width = (12, 8) if tiny else (300, 1024)
    parameters = [nn.Parameter(torch.randn(width, width if i % 3 else 1, device=device)) for i in range(count)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)

    def update():
        optimizer.step()

    def step_of(run):
        def step():
            run()
            return parameters[1].detach().square().mean()
        return step
    return update, step_of


@program
def cross_entropy_50257(device, tiny):
    torch.manual_seed(0)
    rows = 64 if tiny else 8192
    logits = torch.randn(rows, 50257, device=device, dtype=torch.bfloat16).requires_grad_()
    labels = torch.randint(0, 50257, (rows,), device=device)

    def loss(x):
        return F.cross_entropy(x.float(), labels)

    def step_of(run):
        def step():
            logits.grad = None
            value = run(logits)
            value.backward()
            return value.detach()
        return step
    return loss, step_of

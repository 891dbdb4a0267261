"""Modules as models are made of them."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    scale = 2.0

    def __init__(self, n=3, mode="relu"):
        super().__init__()
        self.linear = nn.Linear(n, n)
        self.norm = nn.LayerNorm(n)
        self.mode, self.steps, self.sizes = mode, 0, (n, n)
        self.register_buffer("mean", torch.zeros(n))
        self.options = {"residual": True, "gain": 1.0}

    def activation(self, x):
        return F.relu(x) if self.mode == "relu" else torch.tanh(x)

    def forward(self, x, skip=None):
        y = self.activation(self.linear(x)) * self.scale
        self.steps += 1
        if self.training:
            self.mean.mul_(0.9).add_(y.detach().mean(0), alpha=0.1)
        if self.options["residual"]:
            y = y + x
        return self.norm(y) * self.options["gain"]


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(mode="relu"), Block(mode="tanh")])
        self.heads = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Identity()})
        self.weight = nn.Parameter(torch.ones(3))
        self.outputs = {}

    def forward(self, x):
        for i, block in enumerate(self.blocks):
            x = block(x) * self.weight
            self.outputs[i] = x
        return {name: head(x) for name, head in self.heads.items()}, sum(p.numel() for p in self.parameters()), len(list(self.children()))


def world_block():
    return Block(), (torch.randn(2, 3),)


def world_stack():
    return Stack(), (torch.randn(2, 3),)


def world_function_of_a_module():
    block = Block()

    def f(x, scale=1.0):
        return block(x) * scale, block.training, dict(block.named_buffers())["mean"], [n for n, _ in block.named_parameters()]
    return f, (torch.randn(2, 3),)


def world_sequential():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2)), (torch.randn(3, 3),)


def world_convolution():
    return nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.MaxPool2d(2), nn.Flatten()), (torch.randn(2, 2, 4, 4),)


def world_attention():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.heads, self.dropout, self.cache = nn.Linear(4, 12), nn.Linear(4, 4), 2, 0.0, None

        def forward(self, x, mask=None, use_cache=False):
            b, n, c = x.shape
            q, k, v = self.qkv(x).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
            if use_cache:
                k = k if self.cache is None else torch.cat([self.cache, k], 2)[:, :, -n:]
                self.cache = k.detach()
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.dropout if self.training else 0.0)
            return self.out(y.transpose(1, 2).reshape(b, n, c))
    return Attention(), (torch.randn(1, 3, 4),), {"use_cache": True}


def world_embedding():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(8, 4, padding_idx=0), nn.Linear(4, 8, bias=False)
            self.head.weight = self.table.weight

        def forward(self, tokens, labels=None):
            logits = self.head(self.table(tokens))
            return logits if labels is None else (logits, F.cross_entropy(logits.flatten(0, 1), labels.flatten()))
    return Model(), (torch.tensor([[1, 2, 0]]), torch.tensor([[2, 3, 1]]))


def world_custom_getattr():
    class Wrapper(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("inner"), name)

        def forward(self, x):
            return self.inner(x) * self.scale + self.steps
    return Wrapper(Block()), (torch.randn(2, 3),)


def world_recurrent():
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.hidden = nn.GRUCell(3, 3), None

        def forward(self, x):
            self.hidden = self.cell(x, self.hidden)
            if not self.training:
                self.hidden = None
                return x
            self.hidden = self.hidden.detach()
            return self.hidden
    return Cell(), (torch.randn(2, 3),)


def world_training_step():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def f(x, y):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), optimizer.param_groups[0]["lr"]
    return f, (torch.randn(4, 3), torch.randn(4, 1))

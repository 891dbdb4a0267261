"""A small transformer encoder, compiled: run it with `fusebox run resources/examples/first_steps.py`.

It shows the three things people ask a compiler about: what was fused (the encoder block), where the graph broke
(a condition on a tensor in the middle of a function) and what made it compile again (a last batch of another size,
and gradients that were switched on).
"""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


@torch.compile
def report(x):
    spread = x.softmax(-1).std(-1)
    if spread.max() > 0.012:  # Python has to know the number here: the graph breaks
        spread = spread.clamp(max=0.012)
    return torch.tanh(spread * 3)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(*[Block(128, 4) for _ in range(3)])
    forward = torch.compile(model)
    with torch.no_grad():
        for batch in (8, 8, 8, 3):  # the last one recompiles
            y = forward(torch.randn(batch, 32, 128))
    print("mean", round(y.mean().item(), 6))

    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        x = torch.randn(8, 32, 128)
        loss = F.mse_loss(forward(x), torch.zeros_like(x))
        loss.backward()
        optimizer.step()
    print("loss", round(loss.item(), 4))
    print("report", round(report(torch.randn(64, 100)).sum().item(), 4))


if __name__ == "__main__":
    main()

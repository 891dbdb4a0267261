"""How the first call of a transformer grows with its layers: cold (nothing kept on disk, a new process), for each number of layers.

    python tests/bench/layers.py [--layers 4 48] [--form infer|train] [--kind encoder|decoder] [--device cpu] [--engine fusebox|stock] [--repeat 3] [--json FILE]

A row for each number: first call in seconds (the least of the repeats), eager's step, the ratio to the first row. Each runs in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import time


def blocks(torch, layers, width, heads, kind):
    """Pre-norm blocks with learned attention, as they are written by hand: (1, T, width) -> (1, T, width)."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, heads, c // heads).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=kind == "decoder")
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(layers))

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    return Model()


def measure(layers, args):
    import torch
    torch.manual_seed(0)
    model = blocks(torch, layers, args.width, 4, args.kind).to(args.device)
    x = torch.randn(1, args.tokens, args.width, device=args.device)

    def wait():
        if args.device == "cuda":
            torch.cuda.synchronize()

    def step(f):
        start = time.perf_counter()
        if args.form == "train":
            f(x).square().mean().backward()
            model.zero_grad()
        else:
            with torch.no_grad():
                f(x)
        wait()
        return time.perf_counter() - start

    eager = min(step(model) for _ in range(5))
    if args.engine == "fusebox":
        import fusebox
        compiled = fusebox.compile(model)
        fusebox.compile(lambda y: y + 1)(torch.ones(3))  # what a process does once
    else:
        compiled = torch.compile(model)
        torch.compile(lambda y: y + 1)(torch.ones(3))
    first = step(compiled)
    return {"layers": layers, "eager_s": eager, "first_s": first, "steady_s": min(step(compiled) for _ in range(5))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[4, 48])
    parser.add_argument("--form", choices=["infer", "train"], default="train")
    parser.add_argument("--kind", choices=["encoder", "decoder"], default="encoder")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--engine", choices=["fusebox", "stock"], default="fusebox")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args)))
        return
    rows = []
    for layers in args.layers:
        told = [json.loads(subprocess.run([sys.executable, __file__, *sys.argv[1:], "--one", str(layers)], capture_output=True, text=True, check=True,
                                          env=os.environ | {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}).stdout.splitlines()[-1])
                for _ in range(args.repeat)]
        rows.append(min(told, key=lambda row: row["first_s"]))
        row = rows[-1]
        print(f"{layers:4} layers  first call {row['first_s'] * 1e3:8.1f} ms  steady {row['steady_s'] * 1e3:7.2f}  eager {row['eager_s'] * 1e3:7.2f} ms  "
              f"{row['first_s'] / rows[0]['first_s']:.2f} × the first row", flush=True)
    if args.json:
        with open(args.json, "w") as out:
            json.dump({"options": {k: v for k, v in vars(args).items() if k not in ("json", "one")}, "rows": rows}, out, indent=1)


if __name__ == "__main__":
    main()

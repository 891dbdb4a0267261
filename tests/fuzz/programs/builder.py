"""Writes the text of a program: lines, scopes with the kinds of what is in them, random choices."""

import contextlib
import random

# Kinds of tensors: rows and columns; a row; a column; a number; integers; truth values. All of them broadcast with each other.
TENSORS = ("x", "r", "c", "s", "i", "b")

UNARY = ["torch.sin({0})", "{0}.cos()", "torch.tanh({0})", "{0}.sigmoid()", "F.relu({0})", "{0}.abs()", "(-{0})",
         "({0} * 0.5)", "({0} + 1)", "{0}.square().clamp(max=50.0)", "torch.sqrt({0}.abs() + 1)", "{0}.clamp(-2, 2)",
         "F.gelu({0})", "F.silu({0})", "{0}.exp().clamp(max=9.0)", "torch.log1p({0}.abs())", "({0} / 3)",
         "{0}.contiguous()", "{0}.clone()", "torch.nan_to_num({0})", "{0}.detach()", "(2 - {0})", "{0}.erf()",
         "F.leaky_relu({0}, 0.1)", "({0} ** 2).tanh()", "{0}.to({0}.dtype)", "{0}.view_as({0})", "{0}[...]", "(+{0})",
         "F.elu({0})", "{0}.sign()", "torch.where({0} > 0, {0}, {0} * 0.25)", "{0}.masked_fill({0} < -1, 0.5)",
         "{0}.float()", "{0}.expm1().clamp(max=4.0)"]
BINARY = ["({0} + {1})", "({0} - {1})", "({0} * {1}).clamp(-20, 20)", "torch.add({0}, {1}, alpha=2)",
          "({0} / ({1}.abs() + 1))", "torch.maximum({0}, {1} + 0.0)", "torch.where({0} > {1}, {0}, {1} + 0.0)",
          "torch.lerp({0} + 0.0, {0} * 0.5, 0.25)", "({0} + {1} * 2)", "torch.atan2({0}, {1}.abs() + 1)",
          "torch.addcmul({0} + 0.0, {0} + 0.0, {0} * 0.1)", "torch.minimum({0}, {1} + 0.0)"]
TO_ROW = ["{0}.sum(0)", "({0}.mean(0) + 1)", "{0}.cumsum(0).sum(0)", "{0}.std(0, unbiased=False)",
          "({0} * 2).sum(dim=0)", "({0}.sum(0) / 4)", "{0}.norm(dim=0)"]
TO_COLUMN = ["{0}.sum(1, keepdim=True)", "{0}.mean(-1, keepdim=True)", "{0}.var(1, unbiased=False, keepdim=True)",
             "{0}.softmax(1).sum(1, keepdim=True)", "{0}.logsumexp(1, keepdim=True)"]
TO_NUMBER = ["{0}.sum()", "{0}.mean()", "{0}.square().sum()", "(({0} * 2).sum() / 8)", "{0}.abs().sum()", "{0}.norm()"]
SAME_SHAPE = ["{0}.t().contiguous().t()", "{0}.softmax(-1)", "{0}.flip(0)", "{0}.roll(1, 0)", "{0}.cumsum(1).tanh()",
              "({0} @ {0}.t() @ {0}).tanh()", "torch.cat([{0}, {0}], 0)[: {0}.shape[0]]",
              "torch.stack([{0}, {0}]).sum(0)", "{0}.reshape(-1).view({0}.shape)", "{0}.unsqueeze(0).squeeze(0)",
              "F.layer_norm({0}, {0}.shape[1:])", "{0}.triu()", "F.pad({0}, (1, 1))[:, 1:-1]",
              "({0}.repeat(2, 1)[::2][: {0}.shape[0]] * 1)", "{0}.permute(1, 0).permute(1, 0)", "{0}.sort(1).values",
              "F.normalize({0}, dim=1)", "{0}.index_select(0, torch.arange({0}.shape[0]))",
              "{0}[torch.arange({0}.shape[0])]", "{0}.t().reshape({0}.shape)",
              "torch.einsum('ij,ij->ij', {0}, {0}).tanh()", "{0}[:, torch.arange({0}.shape[1] - 1, -1, -1)]",
              "{0}.gather(1, torch.zeros_like({0}, dtype=torch.int64))"]


MOST_NESTED = 12  # CPython compiles 20 blocks within each other; a statement opens several


def blocks_of(head):
    """As how many blocks CPython counts what a line opens, at most."""
    kind = head.split(None, 1)[0].rstrip(":")
    return {"with": max(1, head.count(" as ")), "try": 2, "except": 2, "finally": 2, "for": 1, "while": 1}.get(kind, 0)


class Builder:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.text, self.depth, self.nested = [], 0, 0
        self.scopes = [{}]
        self.count = 0
        self.changes, self.declared, self.statements = [], [], []
        self.in_loop = self.in_try = 0
        self.budget = self.rng.choice([6, 10, 16, 26])
        self.uses_grad = False

    # Choices.
    def pick(self, items):
        return self.rng.choice(list(items))

    def chance(self, p):
        return self.rng.random() < p

    def number(self, low, high):
        return self.rng.randint(low, high)

    # Text.
    def line(self, text):
        self.text += ["    " * self.depth + part for part in text.split("\n")]

    @contextlib.contextmanager
    def block(self, head):
        """An indented block; what is bound in it is not known after it."""
        self.line(head)
        self.depth += 1
        nested = blocks_of(head)
        self.nested += nested
        self.scopes.append({})
        before = len(self.text)
        try:
            yield
        finally:
            if len(self.text) == before:
                self.line("pass")
            self.depth -= 1
            self.nested -= nested
            self.scopes.pop()

    def name(self, stem="v"):
        self.count += 1
        return f"{stem}{self.count}"

    # Variables.
    def bind(self, name, kind):
        self.scopes[-1][name] = kind
        return name

    def of(self, *kinds):
        return [n for scope in self.scopes for n, k in scope.items() if k in kinds]

    def new(self, kind, value, stem=None):
        name = self.name(stem or kind)
        self.line(f"{name} = {value}")
        return self.bind(name, kind)

    # Expressions.
    def variable(self, kind):
        known = self.of(kind)
        return self.pick(known[-6:]) if known else None

    def tensor(self, kind="x", depth=0):
        """An expression of a float tensor that broadcasts to rows and columns."""
        leaf = self.variable(kind)
        if kind == "i":
            return leaf or "torch.arange(3)"
        if kind == "b":
            return leaf or f"({self.tensor('x', depth + 1)} > 0)"
        if leaf and (depth >= 3 or self.chance(0.35 + 0.15 * depth)):
            return leaf
        if kind == "x":
            return self.whole(depth)
        if kind == "r" and (leaf is None or self.chance(0.5)):
            return self.pick(TO_ROW).format(self.tensor("x", depth + 1))
        if kind == "c" and (leaf is None or self.chance(0.5)):
            return self.pick(TO_COLUMN).format(self.tensor("x", depth + 1))
        if kind == "s" and (leaf is None or self.chance(0.5)):
            return self.pick(TO_NUMBER).format(self.tensor("x", depth + 1))
        return self.pick(UNARY).format(self.tensor(kind, depth + 1))

    def whole(self, depth):
        how = self.rng.random()
        if how < 0.35:
            return self.pick(UNARY).format(self.tensor("x", depth + 1))
        if how < 0.7:
            other = self.tensor(self.pick("xxrcs"), depth + 1) if self.chance(0.75) else self.factor()
            if not other.isidentifier() and other.replace(".", "").replace("-", "").isalnum():
                other = f"torch.tensor({other})"
            return self.pick(BINARY).format(self.tensor("x", depth + 1), other)
        if how < 0.88:
            inner = self.tensor("x", depth + 1)
            return self.pick(SAME_SHAPE).format(inner if inner.isidentifier() or self.chance(0.3) else self.variable("x") or "x")
        return f"({self.tensor('x', depth + 1)} * {self.factor()})"

    def factor(self):
        """A Python number, known or read from somewhere."""
        readers = self.of("n", "q")
        return self.pick(readers[-4:]) if readers and self.chance(0.6) else self.pick(["2", "0.5", "-1.5", "3", "1.25",
            "0"])

    def integer(self):
        known = self.of("n")
        how = self.rng.random()
        if known and how < 0.5:
            return self.pick(known)
        if how < 0.7:
            return f"{self.variable('x') or 'x'}.shape[{self.number(0, 1)}]"
        if known and how < 0.85:
            return f"({self.pick(known)} * {self.number(1, 3)} + {self.number(0, 4)}) % 7"
        return str(self.number(-2, 5))

    def condition(self):
        known, tensors = self.of("n"), self.of("x")
        choices = [f"call % {self.number(2, 3)} == {self.number(0, 1)}", f"{self.integer()} > {self.number(0, 4)}"]
        if tensors:
            t = self.pick(tensors)
            choices += [f"{t}.shape[0] > {self.number(0, 4)}", f"{t}.requires_grad", f"{t}.dtype == torch.float32",
                        f"{t}.is_contiguous()", f"{t}.ndim == 2 and {t}.numel() > 6"]
            if self.chance(0.35):
                choices += [f"{t}.sum() > {self.number(-3, 3)}", f"bool(({t} > 0).any())", f"{t}.mean().item() < 0.5"]
        if known:
            choices += [f"{self.pick(known)} in (0, 2, 3)", f"not {self.pick(known)} % 2",
                        f"0 <= {self.pick(known)} < 3"]
        if self.of("q"):
            choices.append(f"{self.pick(self.of('q'))} > 1")
        if self.of("t"):
            choices += [f"{self.pick(self.of('t'))}.startswith('a')", f"len({self.pick(self.of('t'))}) > 3"]
        for kind in ("L", "D", "Z"):
            if self.of(kind):
                choices.append(f"len({self.pick(self.of(kind))}) > {self.number(0, 3)}")
        return self.pick(choices)

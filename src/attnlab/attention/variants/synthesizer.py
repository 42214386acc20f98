"""Attention weights without comparing tokens: each position computes its own row of scores.

    Y_i = softmax(S_i) (x V_i),   Y = [Y_1; …; Y_H] A

    synthesizer                   S_i = relu(x A_i + b_1) B_i + b_2        one B_i per head
    synthesizer-shared            S_i = relu(x A_i + b_1) B + b_2          one B for all heads
    synthesizer-factorised-dense  S_i[t, j] = a_i(x_t)[j div n] · b_i(x_t)[j mod n]
    synthesizer-random            S_i = R_i                                the input is ignored
    synthesizer-factorised-random S_i = L_i R_iᵀ

Tay et al. 2020, "Synthesizer: Rethinking self-attention in Transformer models", arXiv:2005.00743.
Column j of the scores belongs to position j, so there is a longest sequence. O(T²) time and memory.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention.parts.cache import Cache
from attnlab.attention.parts.positions import relative_positions
from attnlab.attention.parts.projections import merge_heads, split_heads
from attnlab.attention.parts.weighting import Dropout, VisibleKeys, positions_of, softmax
from attnlab.attention.registry import MixerShape, variant


class Synthesizer(nn.Module):
    """Values mixed with weights from a part `scores`, which maps tokens (B, T, C), their positions and
    the number of keys S to scores (B, H, T, S)."""

    def __init__(self, shape: MixerShape, scores: nn.Module) -> None:
        super().__init__()
        self.heads, self.causal, self.longest = shape.heads, shape.causal, shape.context
        self.scores = scores
        self.values = nn.Linear(shape.width, shape.width, bias=shape.bias)
        self.relative = relative_positions(shape)
        self.dropout = Dropout(shape.dropout)
        self.output = nn.Linear(shape.width, shape.width, bias=shape.bias)

    def forward(self, x: Tensor, padding: Tensor | None = None, cache: Cache | None = None) -> Tensor:
        values = split_heads(self.values(x), self.heads)
        at = positions_of(x) if cache is None else cache.positions(x)
        if cache is None:
            visible = VisibleKeys(at, at, self.causal, padding)
        else:
            visible, (values,) = cache.extend(x, padding, at, values=values)
        scores = self.scores(x, at, values.shape[2])
        bias = self.relative.bias(visible.queries_at, visible.keys_at)
        weights = softmax(scores if bias is None else scores + bias, visible)
        return self.output(merge_heads(self.dropout(weights).to(values.dtype) @ values))


class Dense(nn.Module):
    """relu(x A_i + b_1) B_i + b_2, with B (G, D, columns): G = H, or 1 shared by all heads."""

    def __init__(self, shape: MixerShape, groups: int, columns: int) -> None:
        super().__init__()
        self.heads = shape.heads
        self.a = nn.Linear(shape.width, shape.width, bias=shape.bias)
        self.b = nn.Parameter(torch.randn(groups, shape.head_width, columns) * 0.02)
        self.b2 = nn.Parameter(torch.zeros(columns))

    def forward(self, x: Tensor, at: Tensor, keys: int) -> Tensor:
        hidden = F.relu(split_heads(self.a(x), self.heads))  # (B, H, T, D)
        scores = hidden @ self.b[..., :keys] + self.b2[:keys]
        # A position without a column has the score 0.
        return F.pad(scores, (0, keys - scores.shape[-1]))


class FactorisedDense(nn.Module):
    """Two short rows a (m numbers) and b (n numbers), m·n ≥ context, whose products are the long row."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.n = math.isqrt(shape.context - 1) + 1
        self.m = -(-shape.context // self.n)
        self.hidden = nn.Linear(shape.width, shape.width, bias=shape.bias)
        self.a = nn.Parameter(torch.randn(shape.heads, shape.head_width, self.m) / math.sqrt(shape.head_width))
        self.b = nn.Parameter(torch.randn(shape.heads, shape.head_width, self.n) / math.sqrt(shape.head_width))

    def forward(self, x: Tensor, at: Tensor, keys: int) -> Tensor:
        hidden = F.relu(split_heads(self.hidden(x), self.heads))
        long = (hidden @ self.a)[..., :, None] * (hidden @ self.b)[..., None, :]  # (B, H, T, m, n)
        return long.flatten(-2)[..., :keys]


class Random(nn.Module):
    """A trained matrix of scores per head, the same for every input."""

    def __init__(self, shape: MixerShape) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(shape.heads, shape.context, shape.context))

    def forward(self, x: Tensor, at: Tensor, keys: int) -> Tensor:
        return _for_rows(self.table[:, at, :keys])


class FactorisedRandom(nn.Module):
    """The same matrix of rank r: L Rᵀ, 2·context·r numbers instead of context²."""

    def __init__(self, shape: MixerShape, rank: int = 8) -> None:
        super().__init__()
        self.left = nn.Parameter(torch.randn(shape.heads, shape.context, rank))
        self.right = nn.Parameter(torch.randn(shape.heads, shape.context, rank) / math.sqrt(rank))

    def forward(self, x: Tensor, at: Tensor, keys: int) -> Tensor:
        rows = self.left[:, at]  # (H, T, r) or (H, B, T, r)
        right = self.right[:, :keys].transpose(-1, -2)
        return _for_rows(rows @ (right if rows.dim() == 3 else right[:, None]))


def _for_rows(scores: Tensor) -> Tensor:
    """(H, T, S) to (1, H, T, S), or (H, B, T, S) to (B, H, T, S)."""
    return scores[None] if scores.dim() == 3 else scores.transpose(0, 1)


PAPER = "Tay et al. 2020, arXiv:2005.00743"
ALIBI = frozenset({"alibi"})


@variant("synthesizer", equation="softmax(relu(xA_i+b₁)B_i+b₂) V_i", paper=PAPER, time=2, memory=2, positions=ALIBI)
def synthesizer(shape: MixerShape) -> Synthesizer:
    return Synthesizer(shape, Dense(shape, groups=shape.heads, columns=shape.context))


@variant(
    "synthesizer-shared",
    equation="softmax(relu(xA_i+b₁)B+b₂) V_i",
    paper=PAPER + ", with one B as in a course's starter code",
    time=2,
    memory=2,
    positions=ALIBI,
)
def synthesizer_shared(shape: MixerShape) -> Synthesizer:
    # A block of `context` tokens has context - 1 inputs with a next token: one column for each.
    return Synthesizer(shape, Dense(shape, groups=1, columns=max(1, shape.context - 1)))


@variant(
    "synthesizer-factorised-dense",
    equation="softmax(a_i(x) ⊗ b_i(x)) V_i",
    paper=PAPER,
    time=2,
    memory=2,
    positions=ALIBI,
)
def synthesizer_factorised_dense(shape: MixerShape) -> Synthesizer:
    return Synthesizer(shape, FactorisedDense(shape))


@variant("synthesizer-random", equation="softmax(R_i) V_i", paper=PAPER, time=2, memory=2, positions=ALIBI)
def synthesizer_random(shape: MixerShape) -> Synthesizer:
    return Synthesizer(shape, Random(shape))


@variant(
    "synthesizer-factorised-random", equation="softmax(L_i R_iᵀ) V_i", paper=PAPER, time=2, memory=2, positions=ALIBI
)
def synthesizer_factorised_random(shape: MixerShape) -> Synthesizer:
    return Synthesizer(shape, FactorisedRandom(shape))

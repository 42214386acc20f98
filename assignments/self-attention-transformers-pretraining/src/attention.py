"""The two kinds of attention of the assignment, both causal: a position sees itself and what comes before it.

    vanilla       Y_i = softmax(X Q_i (X K_i)ᵀ / √(d/h)) (X V_i)               equation 3
    synthesizer   Y_i = softmax(ReLU(X A_i + b₁) B + b₂) (X V_i)               equation 5
    both          Y = [Y_1; …; Y_h] A                                          equation 4

As in the course's code, one B serves all heads, and it has block_size − 1 columns: an example of block_size
characters has block_size − 1 inputs.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.attention.parts.weighting import Dropout  # torch's, drawn faster on a CPU
from attnlab.base.errors import UserError

VARIANTS = ("vanilla", "synthesizer")


class AttentionConfig(Protocol):
    """What attention needs to know of a `GPTConfig`."""

    @property
    def n_embd(self) -> int: ...
    @property
    def n_head(self) -> int: ...
    @property
    def block_size(self) -> int: ...
    @property
    def attn_pdrop(self) -> float: ...
    @property
    def resid_pdrop(self) -> float: ...
    @property
    def rotary(self) -> bool: ...


class CausalSelfAttention(nn.Module):
    """Softmax of scaled dot products of queries and keys."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__()
        self.n_head, self.rotary = config.n_head, config.rotary
        check_heads(config)
        self.query = nn.Linear(config.n_embd, config.n_embd)
        self.key = nn.Linear(config.n_embd, config.n_embd)
        self.value = nn.Linear(config.n_embd, config.n_embd)
        self.attn_drop = Dropout(config.attn_pdrop)
        self.resid_drop = Dropout(config.resid_pdrop)
        self.proj = nn.Linear(config.n_embd, config.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C)."""
        q, k, v = (heads(part(x), self.n_head) for part in (self.query, self.key, self.value))  # (B, H, T, D)
        if self.rotary:
            q, k = rotated(q), rotated(k)
        scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)  # (B, H, T, T)
        weights = self.attn_drop(causal_softmax(scores))
        y = weights @ v  # equation 3: (B, H, T, D)
        return self.resid_drop(self.proj(merged(y)))  # equation 4


class SynthesizerAttention(nn.Module):
    """Every position computes its row of scores from itself alone."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__()
        self.n_head = config.n_head
        check_heads(config)
        columns = config.block_size - 1
        self.w1 = nn.Linear(config.n_embd, config.n_embd)  # A_1 … A_h and b₁
        self.w2 = nn.Parameter(torch.empty(config.n_embd // config.n_head, columns).normal_(std=0.02))  # B
        self.b2 = nn.Parameter(torch.zeros(columns))
        self.value = nn.Linear(config.n_embd, config.n_embd)
        self.attn_drop = Dropout(config.attn_pdrop)
        self.resid_drop = Dropout(config.resid_pdrop)
        self.proj = nn.Linear(config.n_embd, config.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C), T < block_size."""
        length = x.shape[1]
        v = heads(self.value(x), self.n_head)  # (B, H, T, D)
        hidden = F.relu(heads(self.w1(x), self.n_head))  # (B, H, T, D)
        scores = hidden @ self.w2[:, :length] + self.b2[:length]  # (B, H, T, T)
        weights = self.attn_drop(causal_softmax(scores))
        y = weights @ v  # equation 5: (B, H, T, D)
        return self.resid_drop(self.proj(merged(y)))  # equation 4


def check_heads(config: AttentionConfig) -> None:
    if config.n_embd % config.n_head:
        raise UserError(f"the width {config.n_embd} cannot be split into {config.n_head} heads: choose a divisor.")


def heads(x: Tensor, count: int) -> Tensor:
    """(B, T, C) to (B, H, T, D): each head has its own D = C/H features."""
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def merged(y: Tensor) -> Tensor:
    """(B, H, T, D) to (B, T, C): the heads one after the other, [Y_1; …; Y_h]."""
    return y.transpose(1, 2).flatten(2)


def causal_softmax(scores: Tensor) -> Tensor:
    """The weights (B, H, T, T) of scores: those of later positions become −∞, so their weight is 0.

    In 32 bits: 16 bits lose the differences between scores that matter.
    """
    length = scores.shape[-1]
    later = torch.full((length, length), -math.inf, device=scores.device).triu(1)
    return (scores.float() + later).softmax(-1).to(scores.dtype)


def rotated(x: Tensor) -> Tensor:
    """Queries or keys (B, H, T, D) with pair i of position t rotated by t·10000^(−2i/D): rotary positions.

    The product of a query and a key then depends on the distance of their positions, not on the positions.
    """
    length, pairs = x.shape[-2], x.shape[-1] // 2
    frequency = 10000.0 ** (-torch.arange(pairs, device=x.device) / pairs)
    angle = torch.arange(length, device=x.device)[:, None] * frequency  # (T, D/2)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)

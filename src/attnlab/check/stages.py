"""The checks, in the order in which a student meets them: which function, on which inputs, against what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attnlab.attention import pieces
from attnlab.check.catalogue import Function
from attnlab.check.reference import torch_attention
from attnlab.check.results import Stage


@dataclass
class Bench:
    """Where a check takes its inputs from: sizes that all differ, so that no mix-up of axes goes unseen."""

    batch: int = 3
    tokens: int = 5
    width: int = 12
    heads: int = 2
    dtype: torch.dtype = torch.float32
    make_mask: Function = pieces.make_causal_mask
    """The person's own where it is right: theirs may be of floats, and their other functions rely on it."""

    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))

    def draw(self, *shape: int) -> Tensor:
        """Normal numbers: the same on every fresh bench, whatever its precision."""
        return torch.randn(shape, dtype=torch.float64, generator=self.generator).to(self.dtype)

    def sequence(self) -> Tensor:
        return self.draw(self.batch, self.tokens, self.width)  # (B, T, C)

    def in_heads(self) -> Tensor:
        return self.draw(self.batch, self.heads, self.tokens, self.width // self.heads)  # (B, H, T, D)

    def scores(self) -> Tensor:
        return self.draw(self.batch, self.tokens, self.tokens)  # (B, T, T)

    def scores_in_heads(self) -> Tensor:
        return self.draw(self.batch, self.heads, self.tokens, self.tokens)  # (B, H, T, T)


@dataclass(frozen=True)
class Check:
    function: str
    signature: str
    stage: Stage
    arguments: Callable[[Bench], tuple[Any, ...]]
    expected: Function
    case: str = ""
    optional: bool = False
    """Handed out with the exercise: a file may do without it."""

    @property
    def id(self) -> str:
        return f"{self.function}/{self.stage}/{self.case}"

    @property
    def argument_names(self) -> list[str]:
        return [name.split("=")[0] for name in self.signature.split(", ")]


SIGNATURES = {
    "init_qkv_proj": "n_embd",
    "pairwise_similarities": "Q, K",
    "attn_scaled": "A, n_embd, n_heads",
    "attn_softmax": "A",
    "compute_outputs": "A, V",
    "make_causal_mask": "n_tok",
    "apply_causal_mask": "mask, A",
    "split_heads": "Q, n_heads",
    "split_heads_qkv": "Q, K, V, n_heads",
    "merge_heads": "y",
    "self_attention": "Q, K, V, n_heads=1, causal=True",
}


def _check(
    function: str, stage: Stage, arguments: Callable[[Bench], tuple[Any, ...]], case: str = "", optional: bool = False
) -> Check:
    expected = torch_attention if function == "self_attention" else getattr(pieces, function)
    return Check(function, SIGNATURES[function], stage, arguments, expected, case, optional)


def _qkv(bench: Bench) -> tuple[Tensor, Tensor, Tensor]:
    return bench.sequence(), bench.sequence(), bench.sequence()


CHECKS: tuple[Check, ...] = (
    _check("init_qkv_proj", Stage.PLAIN, lambda b: (b.width,), optional=True),
    _check("pairwise_similarities", Stage.PLAIN, lambda b: (b.sequence(), b.sequence())),
    _check("attn_scaled", Stage.PLAIN, lambda b: (b.scores(), b.width, b.heads)),
    _check("attn_softmax", Stage.PLAIN, lambda b: (b.scores(),)),
    _check("compute_outputs", Stage.PLAIN, lambda b: (b.scores().softmax(-1), b.sequence())),
    _check("self_attention", Stage.PLAIN, lambda b: (*_qkv(b), 1, False), "1 head, no mask"),
    _check("make_causal_mask", Stage.CAUSAL, lambda b: (b.tokens,)),
    _check("apply_causal_mask", Stage.CAUSAL, lambda b: (b.make_mask(b.tokens), b.scores())),
    _check("self_attention", Stage.CAUSAL, _qkv, "1 head, causal"),
    _check("split_heads", Stage.HEADS, lambda b: (b.sequence(), b.heads)),
    _check("split_heads_qkv", Stage.HEADS, lambda b: (*_qkv(b), b.heads), optional=True),
    _check("pairwise_similarities", Stage.HEADS, lambda b: (b.in_heads(), b.in_heads()), "with heads"),
    _check("apply_causal_mask", Stage.HEADS, lambda b: (b.make_mask(b.tokens), b.scores_in_heads()), "with heads"),
    _check("attn_softmax", Stage.HEADS, lambda b: (b.scores_in_heads(),), "with heads"),
    _check("compute_outputs", Stage.HEADS, lambda b: (b.scores_in_heads().softmax(-1), b.in_heads()), "with heads"),
    _check("merge_heads", Stage.HEADS, lambda b: (b.in_heads(),)),
    _check("self_attention", Stage.HEADS, lambda b: (*_qkv(b), b.heads, False), "several heads, no mask"),
    _check("self_attention", Stage.HEADS, lambda b: (*_qkv(b), b.heads, True), "several heads, causal"),
)

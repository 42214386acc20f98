"""The checks, in the order of the exercise: which function, on which inputs, against which reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnlab.attention import pieces
from attnlab.check.catalogue import Function
from attnlab.check.reference import torch_attention
from attnlab.check.results import CheckResult, ExerciseStage
from attnlab.check.sizes import Sizes


@dataclass
class CheckInputs:
    """Random inputs for a check, of drawn sizes."""

    sizes: Sizes
    generator: torch.Generator
    dtype: torch.dtype = torch.float32
    make_mask: Function = pieces.make_causal_mask
    """The person's own if it is right: it may return floats, and the person's other functions rely on it."""

    def __post_init__(self) -> None:
        self.batch, self.tokens, self.heads = self.sizes.batch, self.sizes.tokens, self.sizes.heads
        self.width = self.sizes.width

    def draw(self, *shape: int) -> Tensor:
        """Normal numbers, the same in every precision."""
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
    stage: ExerciseStage
    arguments: Callable[[CheckInputs], tuple[Any, ...]]
    expected: Function
    case: str = ""
    optional: bool = False
    """Handed out with the exercise: a file need not define it."""

    @property
    def id(self) -> str:
        return f"{self.function}/{self.stage}/{self.case}"

    @property
    def argument_names(self) -> list[str]:
        return [name.split("=")[0] for name in self.signature.split(", ")]

    def empty_result(self) -> CheckResult:
        """A result to fill in."""
        return CheckResult(self.function, self.stage, self.case, optional=self.optional)


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
    function: str,
    stage: ExerciseStage,
    arguments: Callable[[CheckInputs], tuple[Any, ...]],
    case: str = "",
    optional: bool = False,
) -> Check:
    expected = torch_attention if function == "self_attention" else getattr(pieces, function)
    return Check(function, SIGNATURES[function], stage, arguments, expected, case, optional)


def _qkv(inputs: CheckInputs) -> tuple[Tensor, Tensor, Tensor]:
    return inputs.sequence(), inputs.sequence(), inputs.sequence()


PLAIN, CAUSAL, HEADS = ExerciseStage

CHECKS: tuple[Check, ...] = (
    _check("init_qkv_proj", PLAIN, lambda inputs: (inputs.width,), optional=True),
    _check("pairwise_similarities", PLAIN, lambda inputs: (inputs.sequence(), inputs.sequence())),
    _check("attn_scaled", PLAIN, lambda inputs: (inputs.scores(), inputs.width, inputs.heads)),
    _check("attn_softmax", PLAIN, lambda inputs: (inputs.scores(),)),
    _check("compute_outputs", PLAIN, lambda inputs: (inputs.scores().softmax(-1), inputs.sequence())),
    _check("self_attention", PLAIN, lambda inputs: (*_qkv(inputs), 1, False), "1 head, no mask"),
    _check("make_causal_mask", CAUSAL, lambda inputs: (inputs.tokens,)),
    _check("apply_causal_mask", CAUSAL, lambda inputs: (inputs.make_mask(inputs.tokens), inputs.scores())),
    _check("self_attention", CAUSAL, _qkv, "1 head, causal"),
    _check("split_heads", HEADS, lambda inputs: (inputs.sequence(), inputs.heads)),
    _check("split_heads_qkv", HEADS, lambda inputs: (*_qkv(inputs), inputs.heads), optional=True),
    _check("pairwise_similarities", HEADS, lambda inputs: (inputs.in_heads(), inputs.in_heads()), "with heads"),
    _check(
        "apply_causal_mask",
        HEADS,
        lambda inputs: (inputs.make_mask(inputs.tokens), inputs.scores_in_heads()),
        "with heads",
    ),
    _check("attn_softmax", HEADS, lambda inputs: (inputs.scores_in_heads(),), "with heads"),
    _check(
        "compute_outputs", HEADS, lambda inputs: (inputs.scores_in_heads().softmax(-1), inputs.in_heads()), "with heads"
    ),
    _check("merge_heads", HEADS, lambda inputs: (inputs.in_heads(),)),
    _check("self_attention", HEADS, lambda inputs: (*_qkv(inputs), inputs.heads, False), "several heads, no mask"),
    _check("self_attention", HEADS, lambda inputs: (*_qkv(inputs), inputs.heads, True), "several heads, causal"),
)

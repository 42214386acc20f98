"""`GPT(GPTConfig(...))` with the course's names; the model is the lab's."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from attention import VARIANTS
from attnlab.base.errors import UserError
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models import gpt


@dataclass(frozen=True)
class GPTConfig:
    """The size of the model; the defaults are the assignment's."""

    vocab_size: int
    block_size: int
    n_layer: int = 4
    n_head: int = 8
    n_embd: int = 256
    embd_pdrop: float = 0.1
    resid_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    synthesizer: bool = False

    @property
    def variant(self) -> str:
        return "synthesizer" if self.synthesizer else "vanilla"

    def shape(self) -> gpt.GPTShape:
        """The same as the lab's shape."""
        if self.embd_pdrop != self.resid_pdrop:
            raise UserError(
                f"embd_pdrop is {self.embd_pdrop} and resid_pdrop is {self.resid_pdrop}: give both the same value."
            )
        return gpt.GPTShape(
            vocabulary=self.vocab_size,
            layers=self.n_layer,
            heads=self.n_head,
            width=self.n_embd,
            context=self.block_size,
            attention=VARIANTS[self.variant],
            dropout=self.resid_pdrop,
            attention_dropout=self.attn_pdrop,
        )

    def described(self) -> dict[str, str | int]:
        """What must match a parameters file, besides the characters."""
        return {
            "attention": self.variant,
            "layers": self.n_layer,
            "heads": self.n_head,
            "width": self.n_embd,
            "context": self.block_size,
        }


class GPT(nn.Module):
    """Characters (B, T) to logits (B, T, V) and, with targets (B, T), the loss; PAD is not a target."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.lab = gpt.GPT(config.shape())

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        logits = self.lab(idx)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=Vocabulary.pad)

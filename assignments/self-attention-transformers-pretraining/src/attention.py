"""The two kinds of attention of the assignment, built by `attnlab.attention.build_mixer`.

    vanilla       Y_i = softmax(X Q_i (X K_i)ᵀ / √(d/h)) (X V_i)
    synthesizer   Y_i = softmax(ReLU(X A_i + b₁) B + b₂) (X V_i)

As in the course's code, one B serves all heads, and it has block_size − 1 columns: an example of block_size
characters has block_size − 1 inputs. `attnlab attention` lists the synthesizer with a B_i per head, and others.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from attnlab.attention import MixerShape, build_mixer

VARIANTS = {"vanilla": "vanilla", "synthesizer": "synthesizer-shared"}  # the document's name: the lab's


class CausalSelfAttention(nn.Module):
    """Softmax of scaled dot products; a config has n_embd, n_head, block_size, attn_pdrop and resid_pdrop."""

    variant = "vanilla"

    def __init__(self, config: Any) -> None:
        super().__init__()
        shape = MixerShape(config.n_embd, config.n_head, config.block_size, dropout=config.attn_pdrop)
        self.mixer = build_mixer(VARIANTS[self.variant], shape)
        self.resid_drop = nn.Dropout(config.resid_pdrop)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) to (B, T, C)."""
        return self.resid_drop(self.mixer(x))


class SynthesizerAttention(CausalSelfAttention):
    """Every position computes its row of scores from itself alone."""

    variant = "synthesizer"

"""A GPT of characters: embeddings, blocks of attention and MLP, a linear head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention import CausalSelfAttention, SynthesizerAttention
from attnlab.attention.parts.weighting import Dropout  # torch's, drawn faster on a CPU
from attnlab.base.errors import UserError

PAD = 0  # the character that fills up short examples: never a target


@dataclass(frozen=True)
class GPTConfig:
    """The shape of the model; the defaults are the assignment's."""

    vocab_size: int
    block_size: int
    n_layer: int = 4
    n_head: int = 8
    n_embd: int = 256
    embd_pdrop: float = 0.1
    resid_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    synthesizer: bool = False
    rotary: bool = False
    """Rotary positions inside attention instead of learned ones added to the characters (vanilla only)."""

    @property
    def variant(self) -> str:
        return "synthesizer" if self.synthesizer else "vanilla"

    def described(self) -> dict[str, str | int]:
        """What a parameters file says of its model, besides the characters."""
        return {
            "attention": self.variant,
            "layers": self.n_layer,
            "heads": self.n_head,
            "width": self.n_embd,
            "context": self.block_size,
            "positions": "rotary" if self.rotary else "learned",
        }

    def without_dropout(self) -> GPTConfig:
        return GPTConfig(**{**asdict(self), "embd_pdrop": 0.0, "resid_pdrop": 0.0, "attn_pdrop": 0.0})


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(config.n_embd)
        self.attn = SynthesizerAttention(config) if config.synthesizer else CausalSelfAttention(config)
        self.ln2 = nn.LayerNorm(config.n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd),
            nn.GELU(),
            nn.Linear(4 * config.n_embd, config.n_embd),
            Dropout(config.resid_pdrop),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    """Characters (B, T) to logits (B, T, V) and, with targets (B, T), the loss; PAD is not a target."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        if config.rotary and config.synthesizer:
            raise UserError("rotary positions turn queries and keys, and the synthesizer has none: use vanilla.")
        self.config = config
        self.tok_emb = nn.Embedding(config.vocab_size, config.n_embd)
        self.pos_emb = None if config.rotary else nn.Parameter(torch.zeros(config.block_size, config.n_embd))
        self.drop = Dropout(config.embd_pdrop)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.apply(_initialise)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        logits = self.head(self.hidden(idx))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD)

    def hidden(self, idx: Tensor) -> Tensor:
        """Characters (B, T) to the vectors (B, T, C) that the head reads."""
        length = idx.shape[1]
        if length > self.config.block_size:
            raise UserError(
                f"{length} characters are more than this model's {self.config.block_size}: shorten the text."
            )
        x = self.tok_emb(idx)
        if self.pos_emb is not None:
            x = x + self.pos_emb[:length]
        x = self.drop(x)
        for block in self.blocks:
            x = block(x)
        return self.ln_f(x)


def _initialise(module: nn.Module) -> None:
    """Normal weights of deviation 0.02 and zero biases, as GPT-2."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


@torch.no_grad()
def complete(model: GPT, prompts: Sequence[Sequence[int]], steps: int, stop: int) -> list[list[int]]:
    """The most likely characters after each prompt, up to `stop`, which is left out, or `steps` of them.

    A row that has stopped leaves the batch: the others are short, and reading them again is cheap.
    """
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    rows = [list(prompt) for prompt in prompts]
    going = list(range(len(rows)))
    for _ in range(steps):
        going = [n for n in going if len(rows[n]) < model.config.block_size]
        if not going:
            break
        ends = torch.tensor([len(rows[n]) - 1 for n in going], device=device)
        longest = int(ends.max()) + 1
        tokens = torch.tensor([rows[n] + [PAD] * (longest - len(rows[n])) for n in going], device=device)
        last = model.hidden(tokens)[torch.arange(len(going), device=device), ends]  # (B, C)
        for n, character in zip(going, model.head(last).argmax(-1).tolist(), strict=True):
            rows[n].append(character)
        going = [n for n in going if rows[n][-1] != stop]
    model.train(was_training)
    new = [row[len(prompt) :] for row, prompt in zip(rows, prompts, strict=True)]
    return [row[:-1] if row and row[-1] == stop else row for row in new]

"""Prompt tuning: trained vectors before the text's own (Lester et al. 2021). P·C weights.

The text keeps its positions, so that it may be as long as without a prompt; the outputs at the prompt's positions
are dropped.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attnlab.base.errors import UserError


def random_words(config: Any, count: int) -> tuple[Tensor, ...]:
    """`count` words, in texts (1, T) no longer than the model can read."""
    longest = (getattr(config, "max_position_embeddings", None) or count + 2) - 2  # some families count from 2
    return torch.randint(config.vocab_size, (1, count)).split(longest, 1)


class Prompted(nn.Module):
    """A body that reads `length` trained vectors before every text."""

    def __init__(self, body: Any, length: int) -> None:
        super().__init__()
        self.body = body
        with torch.no_grad():  # real words: vectors of a size the body was trained on
            start = [self._embeddings(words)[0] for words in random_words(body.config, length)]
        self.prompt = nn.Parameter(torch.cat(start))  # (P, C)
        if not self._relative:
            body.embeddings.register_forward_pre_hook(self._text_mask, with_kwargs=True)
            body.embeddings.register_forward_hook(self._prepend)

    @property
    def pooler(self) -> Any:
        return self.body.pooler

    @property
    def config(self) -> Any:
        return self.body.config

    @property
    def _relative(self) -> bool:
        """T5 and GPT-2 have no module for all embeddings: they take word vectors as input."""
        return not hasattr(self.body, "embeddings")

    def _embeddings(self, words: Tensor) -> Tensor:
        if self._relative:
            return self.body.get_input_embeddings()(words)
        try:
            return self.body.embeddings(words)
        except TypeError:
            raise UserError("--tune prompt: this model has no embeddings to put a prompt before: use prefix.") from None

    def _text_mask(self, module: nn.Module, inputs: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """DeBERTa's embeddings are masked as well: by the text's part of the mask."""
        mask = named.get("mask")
        return inputs, named if mask is None else named | {"mask": mask[:, len(self.prompt) :]}

    def _prepend(self, module: nn.Module, inputs: Any, embedded: Tensor) -> Tensor:
        return torch.cat([self.prompt.expand(len(embedded), -1, -1), embedded], 1)  # (B, P + T, C)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **more: Tensor) -> Any:
        length = len(self.prompt)
        ones = attention_mask.new_ones(len(attention_mask), length)
        mask = torch.cat([ones, attention_mask], 1)
        if self._relative:
            embedded = self._prepend(self, None, self.body.get_input_embeddings()(input_ids))
            if hasattr(self.body, "wpe"):  # GPT-2's positions: the text's own; the prompt's do not matter
                positions = torch.arange(-length, input_ids.shape[1], device=input_ids.device).clamp_min(0)
                more["position_ids"] = positions[None]
            output = self.body(inputs_embeds=embedded, attention_mask=mask, **more)
        else:
            output = self.body(input_ids=input_ids, attention_mask=mask, **more)
        output.last_hidden_state = output.last_hidden_state[:, length:]
        return output

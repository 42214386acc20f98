"""A text-to-text model as a classifier: the logit of a class is the log-probability of its word as the answer.

    logit_k = Σ_t log p(w_k,t | w_k,<t, text)

Cross entropy over these is cross entropy of the right word among the words of the classes. Where the first pieces
of all words differ, one step of the decoder is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


class LabelWords(nn.Module):
    """An encoder-decoder that answers with one of a few words."""

    base_weights: frozenset[str] = frozenset()

    def __init__(self, model: Any, words: Sequence[Sequence[int]]) -> None:
        super().__init__()
        self.model, self.body = model, model.get_encoder()
        rows = [list(word) for word in words]
        if len({row[0] for row in rows}) == len(rows):
            rows = [row[:1] for row in rows]
        longest = max(map(len, rows))
        padded = torch.tensor([row + [-1] * (longest - len(row)) for row in rows])  # (K, L)
        start = torch.full((len(rows), 1), model.config.decoder_start_token_id)
        self.words: Tensor
        self.shown: Tensor
        self.register_buffer("words", padded, persistent=False)
        self.register_buffer("shown", torch.cat([start, padded[:, :-1].clamp_min(0)], 1), persistent=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        read = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state  # (B, T, C)
        if self.words.shape[1] == 1:
            shown = self.shown[:1].expand(len(read), 1)
            scores = self._decode(read, attention_mask, shown)[:, 0]  # (B, V)
            return scores.index_select(1, self.words[:, 0])
        classes, batch = len(self.words), len(read)
        read, mask = read.repeat_interleave(classes, 0), attention_mask.repeat_interleave(classes, 0)
        scores = self._decode(read, mask, self.shown.repeat(batch, 1)).log_softmax(-1)  # (B·K, L, V)
        words = self.words.repeat(batch, 1)
        chosen = scores.gather(2, words.clamp_min(0)[:, :, None]).squeeze(2)  # (B·K, L)
        return (chosen * (words >= 0)).sum(1).view(batch, classes)

    def _decode(self, read: Tensor, mask: Tensor, shown: Tensor) -> Tensor:
        output = self.model(encoder_outputs=(read,), attention_mask=mask, decoder_input_ids=shown, use_cache=False)
        scores: Tensor = output.logits
        return scores

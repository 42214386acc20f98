"""Questions and answers as training examples: question MASK answer MASK, with a loss on the answer only."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attnlab.data.corruption import next_token_tensors
from attnlab.data.vocabulary import Vocabulary
from attnlab.errors import UserError
from attnlab.objectives import IGNORE


class QuestionExamples:
    """One example a pair of question and answer."""

    def __init__(self, pairs: Sequence[tuple[str, str]], vocabulary: Vocabulary, context: int) -> None:
        mask = vocabulary.mask
        self.pad = vocabulary.pad
        self.prompts = [[*vocabulary.encode(question), mask] for question, _ in pairs]
        self.sequences = [[*prompt, *vocabulary.encode(answer), mask]
                          for prompt, (_, answer) in zip(self.prompts, pairs, strict=True)]  # fmt: skip
        self.lengths = [len(sequence) - 1 for sequence in self.sequences]
        for (question, answer), length in zip(pairs, self.lengths, strict=True):
            if length > context:
                raise UserError(
                    f"{question!r} with its answer {answer!r} is {length} tokens long, more than the context "
                    f"of {context}: shorten it or train with --context {length}."
                )

    def collate(self, indices: Sequence[int], epoch: int) -> dict[str, Tensor]:
        inputs = next_token_tensors([self.sequences[index] for index in indices], self.pad)
        starts = torch.tensor([len(self.prompts[index]) - 1 for index in indices])
        before = torch.arange(inputs["tokens"].size(1)) < starts[:, None]  # (B, T): still in the question
        inputs["targets"] = inputs["targets"].masked_fill(before, IGNORE)
        return inputs

"""Sequences as tensors: targets one place on, nothing asked of padding or of what is given."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from attnlab.base.errors import UserError
from attnlab.data.batching import IGNORE, Batch
from attnlab.data.questions import QuestionExamples, read_pairs
from attnlab.data.sequences import NextTokenExamples, TokenSequence, next_token_tensors
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.models.gpt import GPT, preset
from attnlab.training.objectives import NextToken

PAIRS = [("Where was Ada born?", "London"), ("Where was Kurt Gödel born?", "Brünn"), ("?", "x")]


class Fixed:
    def __init__(self, *sequences: TokenSequence) -> None:
        self.sequences, self.lengths = sequences, [len(each.tokens) - 1 for each in sequences]

    def example(self, index: int, epoch: int) -> TokenSequence:
        return self.sequences[index]


def test_targets_are_the_next_tokens_after_what_is_given() -> None:
    tensors = next_token_tensors([TokenSequence([5, 6, 7, 8], given=2), TokenSequence([9, 4])], padding_id=0)
    assert tensors["tokens"].tolist() == [[5, 6, 7], [9, 0, 0]]
    assert tensors["targets"].tolist() == [[IGNORE, 7, 8], [4, IGNORE, IGNORE]]
    assert tensors["padding"].tolist() == [[True, True, True], [True, False, False]]
    assert torch.equal(tensors["wanted"], tensors["targets"] != IGNORE)


def test_sources_are_mixed_in_their_order() -> None:
    one, two = Fixed(TokenSequence([1, 2]), TokenSequence([3, 4, 5])), Fixed(TokenSequence([6, 7]))
    mixed = NextTokenExamples([one, Fixed(), two], padding_id=0)
    assert mixed.lengths == [1, 2, 1]
    assert [mixed.example(index, 0).tokens for index in range(3)] == [[1, 2], [3, 4, 5], [6, 7]]


def test_the_answer_alone_is_asked_for() -> None:
    vocabulary = Vocabulary.build([text for pair in PAIRS for text in pair])
    data = NextTokenExamples([QuestionExamples(PAIRS, vocabulary, 64)], vocabulary.pad)
    targets = data.collate([0, 1, 2], 0)["targets"]
    for row, (_, answer) in zip(targets, PAIRS, strict=True):
        assert row[row != IGNORE].tolist() == [*vocabulary.encode(answer), vocabulary.mask]


def test_the_loss_is_the_same_when_logits_are_computed_for_targets_only() -> None:
    torch.manual_seed(0)
    vocabulary = Vocabulary.build([text for pair in PAIRS for text in pair])
    model = GPT(preset("modern", len(vocabulary), layers=1, heads=2, width=16, context=64, zero_init=False)).double()
    inputs = NextTokenExamples([QuestionExamples(PAIRS, vocabulary, 64)], vocabulary.pad).collate([0, 1, 2], 0)
    everywhere = {name: tensor for name, tensor in inputs.items() if name != "wanted"}
    losses = [NextToken()(model, Batch(part, (0, 1, 2), 1, 1)) for part in (inputs, everywhere)]
    torch.testing.assert_close(*losses)
    gradients = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
    torch.testing.assert_close(*gradients)


def test_an_answer_longer_than_the_context_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("Where was A born?\tRome\n\nWhere was B born?\t" + "long " * 9 + "\n", encoding="utf-8")
    pairs = read_pairs(file)
    vocabulary = Vocabulary.build([text for pair in pairs for text in pair])
    with pytest.raises(UserError, match=r"pairs.tsv, line 3: .* 63 tokens long, more than the context of 40"):
        QuestionExamples(pairs, vocabulary, 40, str(file))

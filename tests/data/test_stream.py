"""A text as a stream: what is trained on, what is kept, and how blocks line up with what they predict."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from attnlab.base.errors import UserError
from attnlab.data.text.stream import Blocks, must_fill_a_block, read_stream


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("to be or not to be\nthat is the question\n" * 5 + "zebra zebra xylophone\n", encoding="utf-8")
    return path


def test_the_end_of_the_text_is_kept_for_validation(text: Path) -> None:
    stream = read_stream(text, "characters", dev_share=0.25, rare=1)
    whole = text.read_text(encoding="utf-8")
    assert stream.vocabulary.decode(stream.train.tolist()) == whole[: len(stream.train)]
    assert len(stream.train) + len(stream.dev) == len(whole)
    assert len(stream.dev) == round(0.25 * len(whole))


def test_the_vocabulary_knows_nothing_of_the_validation_part(text: Path) -> None:
    stream = read_stream(text, "characters", dev_share=0.2, rare=1)
    assert "z" not in stream.vocabulary.tokens and stream.unknown_share > 0


def test_rare_words_are_unknown_in_training_too(text: Path) -> None:
    """Or a model would meet its first unknown word in validation."""
    stream = read_stream(text, "words", dev_share=0.05, rare=2)
    assert "question" in stream.vocabulary.tokens and "xylophone" not in stream.vocabulary.tokens
    some = read_stream(text, "words", dev_share=0.01, rare=3)
    assert int((some.train == some.vocabulary.unknown).sum()) == 3  # zebra twice and xylophone once


def test_words_are_not_cut_in_two(text: Path) -> None:
    words = set(text.read_text(encoding="utf-8").split())
    for share in (0.1, 0.2, 0.3, 0.4):
        tokens = read_stream(text, "words", dev_share=share, rare=1).vocabulary.tokens[3:]
        assert set(tokens) <= words


def test_every_token_but_the_first_is_predicted_once() -> None:
    blocks = Blocks.cut(torch.arange(31), 10)
    assert blocks.targets.flatten().tolist() == list(range(1, 31))
    assert torch.equal(blocks.targets, blocks.tokens + 1)


def test_a_rest_shorter_than_a_block_is_left_out() -> None:
    assert len(Blocks.cut(torch.arange(30), 10)) == 2  # the last block would lack its last target
    assert len(Blocks.cut(torch.arange(10), 10)) == 0


def test_a_sample_spans_the_text_and_never_repeats() -> None:
    blocks = Blocks.cut(torch.arange(1001), 10)
    some = blocks.sample(7)
    starts = some.tokens[:, 0].tolist()
    assert len(set(starts)) == 7 and starts[0] == 0 and starts[-1] > 800
    assert torch.equal(blocks.sample(7).tokens, some.tokens)
    assert len(blocks.sample(500)) == 100


def test_a_text_too_short_for_a_block_is_one_sentence() -> None:
    with pytest.raises(UserError, match="has 5 tokens, expected at least 9"):
        must_fill_a_block(Path("a.txt"), "validation", torch.arange(5), 8)

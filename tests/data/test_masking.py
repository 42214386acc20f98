"""Masked words: the shares of BERT, nothing special is hidden, and draws that depend on what is drawn only."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from attnlab.base.errors import UserError
from attnlab.data.batching import IGNORE
from attnlab.data.encoded import JointExamples, LabelledExamples
from attnlab.data.tasks.catalog import load_sentiment
from attnlab.data.text.masking import MaskedExamples, Masking
from attnlab.data.tokenizers.wordpiece import WordPiece


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [example.text for example in load_sentiment()["train"]]


@pytest.fixture(scope="module")
def tokenizer(texts: list[str]) -> WordPiece:
    return WordPiece.learn(texts, 600)


def test_the_shares_are_those_of_bert(tokenizer: WordPiece, texts: list[str]) -> None:
    ids = tokenizer.encode(" ".join(texts)).input_ids
    kinds: Counter[str] = Counter()
    for epoch in range(3):
        shown, asked = Masking(tokenizer)(ids, 0, epoch)
        for before, after, target in zip(ids, shown, asked, strict=True):
            if target == IGNORE:
                assert after == before
                continue
            assert target == before
            kinds["mask" if after == tokenizer.mask_id else "same" if after == before else "random"] += 1
    chosen = sum(kinds.values())
    assert chosen == 3 * round(0.15 * (len(ids) - 2))
    assert chosen > 2000
    # Three standard deviations of a share of 2,000 draws are 2.7 points.
    assert kinds["mask"] / chosen == pytest.approx(0.8, abs=0.03)
    assert kinds["random"] / chosen == pytest.approx(0.1, abs=0.03)
    assert kinds["same"] / chosen == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("whole_words", [False, True])
def test_special_pieces_are_neither_hidden_nor_drawn(tokenizer: WordPiece, whole_words: bool) -> None:
    ids = tokenizer.encode("[MASK] good [PAD] film [SEP]", "bad [UNK]").input_ids
    masking = Masking(tokenizer, share=1.0, masked=0.0, random=1.0, whole_words=whole_words)
    for epoch in range(200):
        shown, asked = masking(ids, 3, epoch)
        for before, after, target in zip(ids, shown, asked, strict=True):
            special = before in tokenizer.special_ids
            assert (target == IGNORE) == special
            assert after == before if special else after not in tokenizer.special_ids


@pytest.mark.parametrize("share", [0.05, 0.15, 0.4])
def test_the_share_can_be_chosen_and_is_at_least_one_piece(tokenizer: WordPiece, share: float) -> None:
    for count in range(1, 40):
        _, asked = Masking(tokenizer, share)([tokenizer.cls_id, *[20] * count, tokenizer.sep_id], count, 0)
        assert sum(target != IGNORE for target in asked) == max(1, round(share * count))


def test_whole_words_are_hidden_whole(tokenizer: WordPiece, texts: list[str]) -> None:
    masking = Masking(tokenizer, whole_words=True)
    hidden = total = 0
    for index, text in enumerate(texts):
        ids = tokenizer.encode(text).input_ids
        _, asked = masking(ids, index, 0)
        for place in range(1, len(ids) - 1):
            if tokenizer.inside[ids[place]]:
                assert (asked[place] == IGNORE) == (asked[place - 1] == IGNORE), text
        hidden += sum(target != IGNORE for target in asked)
        total += len(ids) - 2
    assert hidden / total == pytest.approx(0.15, abs=0.02)


def test_a_draw_depends_on_seed_epoch_and_number_only(tokenizer: WordPiece, texts: list[str]) -> None:
    examples = MaskedExamples(texts, Masking(tokenizer, seed=1), longest=24)
    together, alone = examples.collate([4, 9, 2], 5), examples.collate([9], 5)
    length = examples.lengths[9]
    for name in ("input_ids", "labels"):
        assert torch.equal(together[name][1, :length], alone[name][0, :length])
    other_epoch = examples.collate([4, 9, 2], 6)
    other_seed = MaskedExamples(texts, Masking(tokenizer, seed=2), longest=24).collate([4, 9, 2], 5)
    for other in (other_epoch, other_seed):
        assert not torch.equal(other["labels"], together["labels"])


def test_padding_is_no_target_and_cuts_are_counted(tokenizer: WordPiece, texts: list[str]) -> None:
    examples = MaskedExamples(texts, Masking(tokenizer), longest=12)
    assert examples.cut == sum(len(tokenizer.piece_ids(text)) > 10 for text in texts) > 0
    batch = examples.collate(range(50), 0)
    padding = batch["attention_mask"] == 0
    assert bool((batch["labels"][padding] == IGNORE).all())
    assert bool((batch["input_ids"][padding] == tokenizer.pad_id).all())
    assert batch["attention_mask"].sum(1).tolist() == examples.lengths[:50]


def test_few_labelled_texts_meet_all_unlabelled_ones_in_turn(tokenizer: WordPiece, texts: list[str]) -> None:
    labelled = LabelledExamples(texts[:7], [0] * 7, tokenizer, 16)
    joint = JointExamples(labelled, MaskedExamples(texts[:35], Masking(tokenizer), 16), seed=0)
    seen = [joint.partner(index, epoch) for epoch in range(5) for index in range(7)]
    assert sorted(seen) == list(range(35))
    again = [joint.partner(index, epoch) for epoch in range(5, 10) for index in range(7)]
    assert sorted(again) == list(range(35))
    assert again != seen
    batch = joint.collate([3, 1], 2)
    assert batch["labels"].shape == (2,)
    assert batch["masked_labels"].shape == batch["masked_input_ids"].shape


def test_pairs_carry_their_segments(tokenizer: WordPiece) -> None:
    examples = LabelledExamples(["a film", "good"], [1, 0], tokenizer, 32, pairs=["is it bad?", "no"])
    batch = examples.collate([0, 1], 0)
    assert batch["token_type_ids"][0].tolist() == tokenizer.encode("a film", "is it bad?").token_type_ids
    assert "token_type_ids" not in LabelledExamples(["a"], [0], tokenizer, 8).collate([0], 0)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"share": 1.5}, "share is 1.5"),
        ({"share": 0.0}, "no piece would be masked"),
        ({"masked": 0.8, "random": 0.3}, "more than 1"),
    ],
)
def test_shares_that_make_no_sense_are_one_sentence(
    tokenizer: WordPiece, settings: dict[str, float], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        Masking(tokenizer, **settings)

"""Heads that do one thing score 1 for it, equal weights score the chance level, and every model can be asked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.tiny_models import tiny_model
from torch import Tensor

from attnlab.attention.starter import write_starter
from attnlab.base.errors import UserError
from attnlab.base.trust import allow
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.data.tokenizers.wordpiece import WordPiece
from attnlab.interpret.head_figures import head_map
from attnlab.interpret.heads import KINDS, HeadReport, chance, patterns, score, score_heads, score_passages
from attnlab.interpret.passages import Passages, is_separator, passages_of, repeated_random
from attnlab.interpret.subject import Subject, gpt_subject, open_subject
from attnlab.models.bert.config import BertConfig
from attnlab.models.bert.model import BertModel
from attnlab.models.gpt import GPT, GPTShape

LETTERS = "abcdefghijklmnopqrstuvwxyz .,"
L = 6
TEXT = "the cat, the dog. a cat and the dog, a cat and a rat. " * 4


def gpt(attention: str = "vanilla", context: int = 40) -> Subject:
    torch.manual_seed(0)
    vocabulary = Vocabulary.build([LETTERS])
    model = GPT(GPTShape(len(vocabulary), layers=2, heads=4, width=32, context=context, attention=attention))
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    return gpt_subject(model, vocabulary)


def looks_at(keys: Callable[[int], int], length: int) -> Tensor:
    """(1, 1, T, T): all weight of token t on keys(t), or on itself where that is before the first."""
    weights = torch.zeros(length, length)
    for t in range(length):
        weights[t, keys(t) if keys(t) >= 0 else t] = 1
    return weights[None, None]


PERFECT: dict[str, Callable[[int], int]] = {
    "previous": lambda t: t - 1,
    "first": lambda t: 0,
    "duplicate": lambda t: t - L,
    "induction": lambda t: t - L + 1,
}


@pytest.mark.parametrize("kind", PERFECT)
def test_a_perfect_head_scores_1_and_0_for_the_others(kind: str) -> None:
    passages = repeated_random(gpt(), L, draws=3)
    weights = looks_at(PERFECT[kind], 2 * L).expand(3, 1, -1, -1)
    scores = {name: score(weights, *rest) for name, *rest in patterns(passages, causal=True)}
    assert set(scores) == set(KINDS) - {"separator"}
    for name, values in scores.items():
        if name == "local":
            # Of the tokens from the fifth on, those whose key is within three positions.
            near = [abs(t - (key if (key := PERFECT[kind](t)) >= 0 else t)) <= 3 for t in range(4, 2 * L)]
            assert values[:, 0].tolist() == pytest.approx([sum(near) / len(near)] * 3)
        elif name == "first" and kind in ("previous", "induction", "duplicate"):
            alone = sum(PERFECT[kind](t) == 0 for t in range(1, 2 * L))  # one token has its key at 0
            assert values[:, 0].tolist() == pytest.approx([alone / (2 * L - 1)] * 3)
        elif name == "previous" and kind == "first":
            assert values[:, 0].tolist() == pytest.approx([1 / (2 * L - 1)] * 3)
        elif (name, kind) == ("duplicate", "first"):
            assert values[:, 0].tolist() == pytest.approx([1 / L] * 3)  # the second copy of the first token
        else:
            assert values[:, 0].tolist() == [float(name == kind)] * 3


def test_one_step_off_is_no_induction() -> None:
    passages = repeated_random(gpt(), L, draws=1)
    found = {name: rest for name, *rest in patterns(passages, causal=True)}
    for offset in (-2, -1, 1, 2):
        assert score(looks_at(lambda t, off=offset: t - L + 1 + off, 2 * L), *found["induction"]).item() == 0


def test_a_separator_head_on_text() -> None:
    subject = gpt()
    passages = passages_of(subject, "ab, cd. ef gh ij", length=8)
    ends = [i for i, c in enumerate("ab, cd. ef gh ij") if c in ",."]
    weights = torch.zeros(1, 1, 16, 16)
    for t in range(16):
        weights[0, 0, t, max([s for s in ends if s <= t], default=t)] = 1
    found = {name: rest for name, *rest in patterns(passages, causal=True)}
    assert score(weights, *found["separator"]).item() == 1
    assert found["separator"][1][0].tolist() == [t > 2 and t not in ends for t in range(16)]
    assert score(looks_at(lambda t: t, 16), *found["separator"]).item() == 0


@pytest.mark.parametrize("token", [".", ",", "\n", "Ċ", "Ġ(", "##!", "...", "▁,", "”"])
def test_separators(token: str) -> None:
    assert is_separator(token)


@pytest.mark.parametrize("token", ["a", "Ġ", " ", "a.", "##s", "1", "$", ""])
def test_no_separators(token: str) -> None:
    assert not is_separator(token)


def test_equal_weights_score_the_chance_level_which_is_known_by_hand() -> None:
    passages = repeated_random(gpt(), L, draws=2)
    equal = torch.ones(2 * L, 2 * L).tril()
    equal = (equal / equal.sum(-1, keepdim=True)).expand(2, 1, -1, -1)
    by_hand = {
        "previous": [1 / (t + 1) for t in range(1, 2 * L)],
        "first": [1 / (t + 1) for t in range(1, 2 * L)],
        "duplicate": [1 / (t + 1) for t in range(L, 2 * L)],
        "induction": [1 / (t + 1) for t in range(L, 2 * L)],
        "local": [4 / (t + 1) for t in range(4, 2 * L)],
    }
    for kind, pattern, counted in patterns(passages, causal=True):
        expected = sum(by_hand[kind]) / len(by_hand[kind])
        assert chance(pattern, counted, causal=True).tolist() == pytest.approx([expected] * 2)
        assert score(equal, pattern, counted)[:, 0].tolist() == pytest.approx([expected] * 2, abs=1e-6)


def test_a_model_with_equal_weights_is_at_chance() -> None:
    subject = gpt()
    for name, parameter in subject.model.named_parameters():
        if "mixer" in name:
            parameter.data.zero_()  # all scores are 0
    for scores in score_heads(subject, TEXT, draws=3).kinds:
        assert len(scores.heads) == 8
        for mean in scores.heads.values():
            assert mean.mean == pytest.approx(scores.chance, abs=1e-6)


def test_random_tokens_are_drawn_from_the_vocabulary_without_marks_and_without_repeats() -> None:
    passages = repeated_random(gpt(), 12, draws=50, seed=3)
    assert passages.ids.shape == (50, 24)
    assert torch.equal(passages.ids[:, :12], passages.ids[:, 12:])
    assert passages.ids.min() == 3 and passages.ids.max() == 2 + len(LETTERS)
    assert all(len(set(row[:12])) == 12 for row in passages.ids.tolist())
    assert torch.equal(passages.ids, repeated_random(gpt(), 12, draws=50, seed=3).ids)
    assert not torch.equal(passages.ids, repeated_random(gpt(), 12, draws=50, seed=4).ids)


def test_a_vocabulary_smaller_than_the_length_is_named() -> None:
    passages = repeated_random(gpt(context=100), 40, draws=2)
    assert passages.notes == ["the vocabulary has only 29 tokens, so that some occur twice in a copy."]
    assert math.isfinite(score_passages(gpt(context=100), passages)[0].chance)


def test_the_interval_shrinks_with_more_draws_and_one_draw_has_none() -> None:
    subject = gpt()
    few, many = (score_heads(subject, draws=draws).scores("induction").heads[1, 0] for draws in (4, 64))
    assert few.half_width is not None and many.half_width is not None
    assert many.count == 64 and many.half_width < few.half_width / 2
    assert score_heads(subject, draws=1).scores("induction").heads[1, 0].interval is None


def test_batches_give_the_scores_of_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = gpt()
    at_once = score_heads(subject, TEXT, draws=5).rows()
    monkeypatch.setattr("attnlab.interpret.heads.AT_ONCE", 90)  # two sequences
    for one, other in zip(at_once, score_heads(subject, TEXT, draws=5).rows(), strict=True):
        assert one["score"] == pytest.approx(other["score"], abs=1e-6)


@pytest.mark.parametrize("attention", ["synthesizer", "naive-mask", "pieces"])
def test_other_mixers_with_weights(attention: str) -> None:
    assert len(score_heads(gpt(attention), draws=2).scores("previous").heads) == 8


def test_a_persons_own_mixer(tmp_path: Path) -> None:
    mixer, _ = write_starter("mine", tmp_path)
    allow(mixer)
    report = score_heads(gpt(str(mixer)), draws=2)
    assert set(report.scores("induction").heads) == {(n, h) for n in (0, 1) for h in range(4)}


def test_a_mixer_without_weights_is_one_sentence() -> None:
    with pytest.raises(UserError, match=r"its attention \(\w+\) has no weights of one token on another"):
        score_heads(gpt("aft-full"))


def test_a_bidirectional_model_has_no_induction_and_marks_are_keys_only() -> None:
    from attnlab.interpret.subject import _WordPieceReader

    torch.manual_seed(0)
    pieces = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", *LETTERS.replace(" ", "")])
    model = BertModel(BertConfig(vocabulary=len(pieces), layers=2, heads=4, width=32, inside=64, context=32)).eval()
    subject = Subject("bert", model, _WordPieceReader(model, pieces), causal=False)
    report = score_heads(subject, "a b, c d. a b", draws=3)
    assert {scores.kind for scores in report.kinds} == set(KINDS) - {"induction"}
    assert any("induction is not defined" in note for note in report.notes)
    with pytest.raises(UserError, match="induction heads were not scored on random tokens"):
        report.scores("induction")
    passages = repeated_random(subject, 10, draws=2)
    assert passages.ids[:, 0].tolist() == [2, 2] and passages.ids[:, -1].tolist() == [3, 3]
    assert int(passages.ids[:, 1:-1].min()) == 6  # no [unused1] either
    found = {name: rest for name, *rest in patterns(passages, causal=False)}
    assert found["duplicate"][1].sum(1).tolist() == [20, 20]  # both copies, [CLS] and [SEP] not
    assert report.scores("separator", "text").chance > 0


@pytest.mark.parametrize(("family", "first"), [("bert", 2), ("mpnet", 2), ("distilbert", 2), ("t5", 2)])
def test_models_of_transformers_by_their_folder(family: str, first: int, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    subject = open_subject(tiny_model(tmp_path / family, family))
    report = score_heads(subject, "the film was good. the plot is not very good and the actors", draws=2)
    assert {scores.kind for scores in report.kinds} == set(KINDS) - {"induction"}
    assert set(report.kinds[0].heads) == {(n, h) for n in range(2) for h in range(2)}  # of T5, the encoder
    passages = repeated_random(subject, 5, draws=2)
    assert passages.ids.shape == (2, 12) and passages.special.sum() == 4
    assert passages.ids[0, 0] == first and passages.ids[0, -1] == 3  # [CLS] and [SEP]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"length": 30}, "--length 30 is not possible here: give 4 to 20, half of the context"),
        ({"length": 2}, "--length 2 is not possible here"),
        ({"draws": 0}, "--draws must be at least 1, got 0"),
        ({"text": "abc"}, "the text has 3 tokens: expected at least 8"),
    ],
)
def test_errors_are_one_sentence(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        score_heads(gpt(), **options)  # type: ignore[arg-type]


def test_a_short_text_is_one_draw_and_says_so() -> None:
    passages = passages_of(gpt(), "the cat and the dog", draws=5)
    assert passages.ids.shape == (1, 19)
    assert passages.notes == ["the text has 1 passages of 19 tokens, fewer than 5 draws."]


def test_rows_are_plain_and_the_figure_has_a_panel_per_kind_and_source() -> None:
    report: HeadReport = score_heads(gpt(), TEXT, draws=3)
    rows = json.loads(json.dumps(report.rows()))
    assert len(rows) == 8 * (5 + 6)
    assert rows[0].keys() == {"kind", "source", "layer", "head", "score", "interval", "draws", "chance"}
    figure = head_map(report)
    assert sum(bool(axes.images) for axes in figure.axes) == 5 + 6


def test_passages_keep_their_parts() -> None:
    passages: Passages = passages_of(gpt(), TEXT, length=10, draws=4)
    part = passages.part(1, 3)
    assert len(part) == 2 and torch.equal(part.inputs["tokens"], passages.ids[1:3])

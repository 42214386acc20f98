"""Corrupted documents: what is hidden is asked for, and nothing is lost or made up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.config.pretrain import OBJECTIVES as NAMES
from attnlab.data.batching import IGNORE
from attnlab.data.sequences import CORRUPTIONS, CorpusExamples, Document, TokenSequence, next_token_tensors
from attnlab.data.text.salient import find_phrases, title_length
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.data.world.world import World, WorldSpec

CONTEXT = 48
CORPUS = [*World(WorldSpec(people=40)).corpus(), "a", "Rome", "no name in here", "Ö"]
LEVELS = ("characters", "words")


def examples(level: str, *objectives: str, **more: object) -> CorpusExamples:
    vocabulary = Vocabulary.build(CORPUS, level)
    documents = [vocabulary.encode(text) for text in CORPUS]
    return CorpusExamples(documents, vocabulary, CONTEXT, objectives, seed=3, **more)  # type: ignore[arg-type]


def put_back(asked: TokenSequence, mask: int) -> list[int]:
    """The document an example was made of: each hidden part in the place of its mark."""
    parts: list[list[int]] = [[]]
    for token in asked.tokens[:-1]:
        if token == mask:
            parts.append([])
        else:
            parts[-1].append(token)
    marks = len(parts) - 1
    if marks == 0:
        return parts[0]
    spans = marks // 2  # one mark in place of each span, one before each
    text, hidden = parts[: spans + 1], parts[spans + 1 :]
    whole = [*text[0]]
    for part, after in zip(hidden, text[1:], strict=True):
        whole += [*part, *after]
    return whole


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("objective", CORRUPTIONS)
def test_putting_back_what_was_hidden_gives_a_part_of_the_document(objective: str, level: str) -> None:
    made = examples(level, objective)
    for index, document in enumerate(made.documents):
        for epoch in range(5):
            asked = made.example(index, epoch)
            assert asked.tokens[-1] == made.mask
            assert len(asked.tokens) - 1 <= made.lengths[index] <= CONTEXT
            found, whole = put_back(asked, made.mask), document.tokens
            starts = range(len(whole) - len(found) + 1)
            assert any(whole[start : start + len(found)] == found for start in starts)
            if objective in ("truncated", "salient"):
                assert whole[: len(found)] == found


@given(st.integers(1, 200), st.integers(8, 160))
def test_truncation_is_random_from_four_tokens_to_seven_eighths_of_the_context(size: int, context: int) -> None:
    document, made = Document(list(range(10, 10 + size)), []), CORRUPTIONS["truncated"]
    kept = [len(put_back(made.example(document, context, 1, np.random.default_rng(n)), 1)) for n in range(40)]
    assert min(kept) >= min(4, size)
    assert max(kept) <= min(size, max(4, context * 7 // 8))


def test_a_hidden_span_is_a_quarter_of_the_document_on_average() -> None:
    document, made = Document(list(range(2, 102)), []), CORRUPTIONS["span"]
    hidden = []
    for n in range(4000):
        asked = made.example(document, 128, 1, np.random.default_rng(n))
        hidden.append(len(asked.tokens) - 1 - asked.given)
    assert abs(np.mean(hidden) - 25.5) < 1
    assert min(hidden) == 1
    assert max(hidden) == 50


def test_only_what_was_hidden_is_asked_for_when_so_wished() -> None:
    made = examples("words", "salient", spans_only=True)
    for index in range(len(made.documents)):
        asked = made.example(index, 0)
        assert asked.tokens[asked.given - 1] == made.mask  # the mark before the first hidden part is given
        assert all(made.example(index, 0).given == asked.given for _ in range(2))
    everything = examples("words", "salient")
    assert all(everything.example(index, 0).given == 0 for index in range(len(everything.documents)))


@pytest.mark.parametrize("level", LEVELS)
def test_the_name_that_begins_a_document_is_a_target_when_so_wished(level: str) -> None:
    text = "Jacob Studer. Studer, born in Columbus, Ohio in 1840, was a painter in Columbus ."
    vocabulary = Vocabulary.build([text, "no name"], level)
    document = vocabulary.encode(text)
    name = vocabulary.encode("Jacob Studer")
    assert title_length(vocabulary, document) == len(name)
    assert title_length(vocabulary, vocabulary.encode("no name")) == 0
    made = CorpusExamples([document], vocabulary, 128, ["salient"], seed=3, spans_only=True, titles=True)
    asked = made.example(0, 0)
    row = next_token_tensors([asked], vocabulary.pad)["targets"][0].tolist()
    targets = [token for token in row if token != IGNORE]
    hidden = asked.tokens[asked.given :]
    assert targets == [*name[1:], *hidden]  # the first token has nothing before it
    assert row[: len(name) - 1] == name[1:]
    plain = CorpusExamples([document], vocabulary, 128, ["salient"], seed=3, spans_only=True)
    row = next_token_tensors([plain.example(0, 0)], vocabulary.pad)["targets"][0].tolist()
    assert [token for token in row if token != IGNORE] == hidden


def test_a_title_that_is_hidden_or_cut_off_is_no_target() -> None:
    made = examples("words", "span", spans_only=True, titles=True)
    for index, document in enumerate(made.documents):
        asked = made.example(index, 0)
        assert asked.title <= max(document.title, 0)
        assert asked.tokens[: asked.title] == document.tokens[: asked.title]
        assert made.mask not in asked.tokens[: asked.title]


def test_an_example_depends_on_seed_epoch_and_number_alone() -> None:
    one, two = examples("characters", "span", "salient"), examples("characters", "span", "salient")
    assert [two.example(i, 2) for i in reversed(range(20))][::-1] == [one.example(i, 2) for i in range(20)]
    assert [one.example(i, 2) for i in range(20)] != [one.example(i, 3) for i in range(20)]


@pytest.mark.parametrize("level", LEVELS)
def test_names_places_and_numbers_are_hidden_and_the_subject_is_not(level: str) -> None:
    text = "Jacob Studer. Studer, born in Columbus, Ohio in 1840, was a painter in Columbus ."
    vocabulary = Vocabulary.build([text], level)
    document = vocabulary.encode(text)
    found = [vocabulary.decode(document[start:end]) for start, end in find_phrases(vocabulary, document)]
    # Columbus and Studer stand twice: they could be copied.
    assert found == ["Ohio", "1840"]


def test_a_document_without_names_hides_a_span() -> None:
    made = examples("words", "salient", spans_only=True)
    index = CORPUS.index("no name in here")
    assert made.documents[index].phrases == []
    assert made.example(index, 0).given > 0


def test_every_objective_can_be_named_in_a_recipe() -> None:
    assert set(NAMES) == set(CORRUPTIONS)

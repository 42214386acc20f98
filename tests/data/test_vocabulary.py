"""Vocabularies: what goes in comes out, and nothing a user can write breaks them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.base.errors import UserError
from attnlab.data.tasks.catalog import load_sentiment
from attnlab.data.tokenizers.vocabulary import LEVELS, MASK_CHAR, PAD_CHAR, SPECIAL, Vocabulary, join_words, split_words
from attnlab.data.world.world import World, WorldSpec

CORPUS = World(WorldSpec(people=60)).corpus()
ANY_TEXT = st.text() | st.text(alphabet="ab1 .,-'\"()/$\u0301\u0915\u093f□⁇")


@given(st.data(), st.text(min_size=1).filter(lambda text: not set(text) & set(SPECIAL)))
def test_text_over_the_vocabulary_comes_back_by_characters(data: st.DataObject, seen: str) -> None:
    vocabulary = Vocabulary.build([seen], "characters")
    text = data.draw(st.text(alphabet=sorted(set(seen))))
    assert vocabulary.decode(vocabulary.encode(text)) == text
    assert vocabulary.unknown_share(text) == 0


@given(st.lists(st.sampled_from(sorted({word for text in CORPUS for word in split_words(text)}))))
def test_any_sequence_of_known_words_comes_back(words: list[str]) -> None:
    vocabulary = Vocabulary.build(CORPUS, "words")
    text = join_words(words)
    ids = vocabulary.encode(text)
    assert [vocabulary.tokens[id_] for id_ in ids] == words
    assert vocabulary.decode(ids) == text


@given(ANY_TEXT)
def test_joining_words_never_changes_them(text: str) -> None:
    words = split_words(text)
    assert split_words(join_words(words)) == words
    assert "".join(words) == "".join(text.split())


@pytest.mark.parametrize("level", LEVELS)
def test_ordinary_text_comes_back_with_its_spaces(level: str) -> None:
    texts = CORPUS + [example.text for examples in load_sentiment().values() for example in examples]
    texts += ['He paid $3.50 (or 1,000 at most): "too much", she said.', "and/or 50%; why?"]
    vocabulary = Vocabulary.build(texts, level)
    for text in texts:
        assert vocabulary.decode(vocabulary.encode(text)) == text


@pytest.mark.parametrize("level", LEVELS)
@given(text=ANY_TEXT)
def test_no_text_breaks_it_and_none_makes_a_special_token(level: str, text: str) -> None:
    vocabulary = Vocabulary.build(["a b, c.", text[: len(text) // 2]], level)
    ids = vocabulary.encode(text)
    assert not {vocabulary.pad, vocabulary.mask} & set(ids)
    assert vocabulary.unknown_share(text) == (ids.count(vocabulary.unknown) / len(ids) if ids else 0)
    assert isinstance(vocabulary.decode(ids), str)


@pytest.mark.parametrize("level", LEVELS)
def test_special_tokens_are_read_when_asked_for(level: str) -> None:
    vocabulary = Vocabulary.build(["a b"], level)
    ids = vocabulary.encode(f"a{MASK_CHAR}b{PAD_CHAR}{PAD_CHAR}", special=True)
    a, b = vocabulary.encode("a")[0], vocabulary.encode("b")[0]
    assert ids == [a, vocabulary.mask, b, vocabulary.pad, vocabulary.pad]


@pytest.mark.parametrize("level", LEVELS)
@given(data=st.data())
def test_any_ids_come_back_from_their_text(level: str, data: st.DataObject) -> None:
    vocabulary = Vocabulary.build(["It was in Paris, (not Rome) that"], level)
    ids = data.draw(st.lists(st.integers(0, len(vocabulary) - 1)))
    assert vocabulary.encode(vocabulary.decode(ids), special=True) == ids


def test_unknown_share_counts_what_was_not_seen() -> None:
    by_word = Vocabulary.build(["Mara was born."], "words")
    assert by_word.unknown_share("Mara was never born.") == 1 / 5
    assert by_word.decode(by_word.encode("Mara was never born.")) == "Mara was � born."
    assert Vocabulary.build(["abc"]).unknown_share("abxc") == 1 / 4


def test_the_order_of_texts_does_not_matter() -> None:
    for level in LEVELS:
        assert Vocabulary.build(CORPUS, level) == Vocabulary.build(reversed(CORPUS), level)


def test_rare_words_can_be_left_out() -> None:
    vocabulary = Vocabulary.build(["a a b"], "words", min_count=2)
    assert vocabulary.tokens == (*SPECIAL, "a")


@pytest.mark.parametrize("level", LEVELS)
def test_a_saved_vocabulary_is_the_same(level: str) -> None:
    vocabulary = Vocabulary.build([*CORPUS, "naïve 東京 🎈"], level)
    assert Vocabulary.from_dict(json.loads(json.dumps(vocabulary.to_dict()))) == vocabulary


@pytest.mark.parametrize(
    "saved",
    [
        {},
        {"level": "characters", "tokens": ["a", "b"]},
        {"level": "syllables", "tokens": [*SPECIAL, "a"]},
        {"level": "words", "tokens": [*SPECIAL, "a", "a"]},
        {"level": "words", "tokens": [*SPECIAL, 3]},
    ],
)
def test_a_damaged_vocabulary_is_refused(saved: dict[str, object]) -> None:
    with pytest.raises(UserError, match="damaged"):
        Vocabulary.from_dict(saved)


def test_an_unknown_level_is_named() -> None:
    with pytest.raises(UserError, match="did you mean 'words'"):
        Vocabulary.build(["a"], "word")

"""Samples: what is drawn, past the context, by seed, and as a stream."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from attnlab.base.errors import UserError
from attnlab.data.tokenizers.vocabulary import MASK_CHAR, Vocabulary
from attnlab.models.generate import choose, distribution
from attnlab.models.gpt import GPT, preset
from attnlab.models.sampling import prompt_notes, prompt_tokens, sample, stream, window_of

CHARACTERS = Vocabulary.build(["abcdef\n"])
WORDS = Vocabulary.build(['The cat (a cat) sat, "quietly", on it.'], "words")


def tiny(vocabulary: Vocabulary = CHARACTERS, **changes: object) -> GPT:
    torch.manual_seed(5)
    shape = {"layers": 2, "heads": 2, "width": 16, "context": 12, "dropout": 0.0}
    model = GPT(preset("vanilla", len(vocabulary), **shape | changes)).eval()
    for parameter in model.parameters():  # far from uniform
        torch.nn.init.normal_(parameter, std=0.5)
    return model


@pytest.mark.parametrize(("top_k", "top_p"), [(None, 0.8), (5, None), (6, 0.7), (None, 0.01), (None, 1.0)])
@pytest.mark.parametrize("temperature", [1.0, 0.6, 2.5])
def test_the_distribution_is_that_of_transformers(temperature: float, top_k: int | None, top_p: float | None) -> None:
    process = pytest.importorskip("transformers.generation.logits_process")
    logits = torch.randn(7, 30, generator=torch.Generator().manual_seed(1)) * 3
    scores = process.TemperatureLogitsWarper(temperature)(None, logits)
    if top_k is not None:
        scores = process.TopKLogitsWarper(top_k)(None, scores)
    if top_p is not None:
        scores = process.TopPLogitsWarper(top_p)(None, scores)
    found = distribution(logits, temperature, top_k, top_p)
    assert torch.allclose(found, scores.softmax(-1), atol=1e-6)
    assert ((found > 0) == (scores > -torch.inf)).all() and (found > 0).any(1).all()


def test_a_nucleus_smaller_than_the_best_token_is_that_token() -> None:
    logits = torch.randn(9, 20, generator=torch.Generator().manual_seed(2))
    assert (choose(logits, 1.0, top_p=1e-6) == logits.argmax(-1)).all()


def by_definition(model: GPT, prompt: list[int], length: int, window: int) -> list[int]:
    """The most probable tokens without a cache: when the window is full, its last half is what remains."""
    view, made = prompt[-window:], []
    for _ in range(length):
        made.append(int(model(torch.tensor([view]))[0, -1].argmax()))
        view = [*view, made[-1]]
        if len(view) > window:
            view = view[-(window // 2) :]
    return made


@pytest.mark.parametrize("attention", ["vanilla", "linear", "aft-simple", "synthesizer"])
@pytest.mark.parametrize("prompt", ["a", "abcdefabcdef", "fedcbaabcdeffedcba"])
@torch.no_grad()
def test_past_the_context_a_window_moves_by_half(attention: str, prompt: str) -> None:
    model = tiny(attention=attention)
    (found,) = sample(model, CHARACTERS, prompt, 50, temperature=0.0)
    expected = by_definition(model, CHARACTERS.encode(prompt), 50, 12)
    assert found.text == CHARACTERS.decode(expected) and len(found.tokens) == 50


@torch.no_grad()
def test_log_probabilities_are_the_models_own_whatever_the_temperature() -> None:
    model = tiny()
    for found in sample(model, CHARACTERS, "abc", 8, 3, temperature=3.0, top_k=6):
        ids = CHARACTERS.encode("abc" + found.text, special=True)
        logs = model(torch.tensor([ids[:-1]]))[0].log_softmax(-1)
        expected = [float(logs[position - 1, ids[position]]) for position in range(3, len(ids))]
        assert found.log_probabilities == pytest.approx(expected, abs=1e-4)
        assert found.log_probability == pytest.approx(sum(expected), abs=1e-3)


def test_a_seed_gives_the_same_samples_and_the_number_does_not_matter() -> None:
    model = tiny()
    ten = sample(model, CHARACTERS, "ab", 40, 10, seed=7)
    assert [each.text for each in sample(model, CHARACTERS, "ab", 40, 10, seed=7)] == [each.text for each in ten]
    assert [each.text for each in sample(model, CHARACTERS, "ab", 40, 3, seed=7)] == [each.text for each in ten[:3]]
    assert len({each.text for each in ten}) == 10
    assert sample(model, CHARACTERS, "ab", 40, seed=8)[0].text != ten[0].text
    assert "".join(stream(model, CHARACTERS, "ab", 40, seed=7)) == ten[0].text


def test_many_samples_have_the_models_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.models.sampling.AT_ONCE", 500)  # and several batches
    model = tiny()
    counts = Counter(each.tokens[0] for each in sample(model, CHARACTERS, "ab", 1, 1200, seed=1))
    with torch.no_grad():
        expected = model(torch.tensor([CHARACTERS.encode("ab")]))[0, -1].softmax(-1)
    for token, probability in zip(CHARACTERS.tokens, expected.tolist(), strict=True):
        assert counts[token] / 1200 == pytest.approx(probability, abs=0.06)


def test_words_are_joined_as_they_are_decoded() -> None:
    model = tiny(WORDS)
    (found,) = sample(model, WORDS, "The cat (", 60, seed=3)
    pieces = list(stream(model, WORDS, "The cat (", 60, seed=3))
    assert len(pieces) == 60 and "".join(pieces) == found.text
    whole = [WORDS.tokens.index(token) for token in found.tokens]
    assert found.prompt + found.text == WORDS.decode([*WORDS.encode("The cat ("), *whole])


def test_a_stop_token_ends_a_sample_and_is_not_part_of_it() -> None:
    model, stop = tiny(), CHARACTERS.encode("c")[0]
    free = sample(model, CHARACTERS, "ab", 30, 6, seed=2)
    stopped = sample(model, CHARACTERS, "ab", 30, 6, seed=2, stop=stop)
    assert [each.text for each in stopped] == [each.text.split("c")[0] for each in free]
    assert any("c" in each.text for each in free)
    for each in stopped:
        assert len(each.log_probabilities) == min(30, len(each.tokens) + 1)
    assert "".join(stream(model, CHARACTERS, "ab", 30, seed=2, stop=stop)) == stopped[0].text


def test_the_model_reads_the_end_of_a_long_prompt_and_says_so() -> None:
    model, long = tiny(), "abcdef" * 4
    (found,) = sample(model, CHARACTERS, long, 5, seed=0)
    assert found.prompt == long and found.text == sample(model, CHARACTERS, long[-12:], 5, seed=0)[0].text
    (note,) = prompt_notes(CHARACTERS, long, 12)
    assert "24 tokens" in note and "the last 12" in note
    assert prompt_notes(CHARACTERS, "abc", 12) == []
    (note,) = prompt_notes(CHARACTERS, "aßb", 12)
    assert "characters of the prompt" in note and "'ß'" in note


def test_a_mark_in_the_prompt_is_the_token() -> None:
    assert prompt_tokens(CHARACTERS, f"a{MASK_CHAR}b□") == [
        *CHARACTERS.encode("a"),
        CHARACTERS.mask,
        *CHARACTERS.encode("b"),
        CHARACTERS.unknown,
    ]


def test_a_model_without_a_table_of_positions_keeps_to_its_context_unless_told() -> None:
    model = tiny(positions="rotary")
    assert model.longest is None and window_of(model) == 12 and window_of(model, 40) == 40
    with torch.no_grad():
        expected = by_definition(model, CHARACTERS.encode("ab"), 30, 12)
    assert sample(model, CHARACTERS, "ab", 30, temperature=0.0)[0].text == CHARACTERS.decode(expected)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"prompt": ""}, "the prompt has no token"),
        ({"length": 0}, "length is 0"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": 1e-30}, "temperature is 1e-30"),
        ({"top_k": 0}, "top_k is 0"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"context": 13}, "at most 12 tokens"),
        ({"context": 0}, "context is 0"),
    ],
)
def test_mistakes_are_one_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        sample(tiny(), CHARACTERS, **{"prompt": "ab", "length": 3} | changes)


def test_a_stream_that_is_left_early_leaves_the_model_as_it_was() -> None:
    model = tiny().train()
    pieces = stream(model, CHARACTERS, "ab", 30)
    next(pieces)
    pieces.close()
    assert model.training and torch.is_grad_enabled()

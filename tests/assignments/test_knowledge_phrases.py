"""What `--preset fast` hides of a document, what it shows, and where its loss is; and the presets themselves."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.base.errors import UserError
from attnlab.data.tokenizers.vocabulary import MASK_CHAR, PAD_CHAR

Load = Callable[[str], ModuleType]
ADA = "Ada Byron. Born in London on 10 May 1815, Byron wrote for Charles Babbage in New York ."
PLAIN = "Otto. He wrote, was born at Bonn and lived there ."


def phrases(knowledge: Load, text: str) -> list[tuple[str, bool]]:
    module = knowledge("phrases")
    document = module.read_document(text, module.ordinary_words([ADA, PLAIN, "he was born"]))
    return [(text[each.start : each.end], each.place) for each in document.phrases]


def test_phrases_are_what_a_reader_must_know(knowledge: Load) -> None:
    assert phrases(knowledge, ADA) == [("London", True), ("Charles Babbage", False), ("New York", True)]
    assert phrases(knowledge, PLAIN) == [("Bonn", True)]
    assert phrases(knowledge, "no title and no name") == []
    assert phrases(knowledge, "Reading. Reading is in Reading .") == [], "words of the title can be copied"
    assert phrases(knowledge, "Ada. Oslo is where Ada died .") == [("Oslo", False)], "a name may begin a sentence"


def examples(knowledge: Load, count: int, **reading: object) -> list[tuple[str, str]]:
    module = knowledge("dataset")
    dataset = module.PhraseDataset(f"{ADA}\n{PLAIN}\n", 128, module.Reading(**reading))
    random.seed(0)
    return [tuple("".join(dataset.itos[int(n)] for n in part) for part in dataset[0]) for _ in range(count)]


def test_one_phrase_is_hidden_behind_the_title(knowledge: Load) -> None:
    hidden: Counter[str] = Counter()
    shown = set()
    for x, y in examples(knowledge, 4000):
        visible, right, phrase = x.rstrip(PAD_CHAR).rstrip(MASK_CHAR).split(MASK_CHAR)
        assert visible.startswith("Ada Byron. ") and len(right) <= 2
        left = visible.removeprefix("Ada Byron. ")
        assert len(left) <= 12 and f"{left}{phrase}{right}" in ADA
        assert y.strip(PAD_CHAR) == phrase + MASK_CHAR, "the loss is on the phrase and its end"
        hidden[phrase] += 1
        shown.add(len(left))
    assert shown == set(range(13)), "from nothing to twelve characters"
    weights = {"London": 4.0, "Charles Babbage": 1 / 2, "New York": 4 / 3}
    for phrase, weight in weights.items():
        assert hidden[phrase] / 4000 == pytest.approx(weight / sum(weights.values()), abs=0.03)


def test_the_ingredients_can_be_taken_back(knowledge: Load) -> None:
    for x, _ in examples(knowledge, 50, left=None, right=None):
        before, after, phrase = x.rstrip(PAD_CHAR).rstrip(MASK_CHAR).split(MASK_CHAR)
        assert before + phrase + after == ADA
    for x, y in examples(knowledge, 50, loss="everywhere"):
        assert x[1:] == y[:-1]
    (all_at_once,) = {x for x, _ in examples(knowledge, 20, hide="all")}
    text, *hidden = all_at_once.rstrip(PAD_CHAR).removesuffix(MASK_CHAR).rsplit(MASK_CHAR, 3)
    assert hidden == ["London", "Charles Babbage", "New York"]
    assert text.split(MASK_CHAR) == ["Ada Byron. Born in ", " on 10 May 1815, Byron wrote for ", " in ", " ."]
    drawn = Counter(x.rstrip(PAD_CHAR).split(MASK_CHAR)[2] for x, _ in examples(knowledge, 3000, rank=0.0, place=1.0))
    assert all(count == pytest.approx(1000, abs=120) for count in drawn.values()) and len(drawn) == 3


@settings(deadline=None, max_examples=200)
@given(
    words=st.lists(st.sampled_from(["Ada", "in", "Rome", "a", "Łódź.", "X" * 50, ".", "he", "May"]), max_size=60),
    block_size=st.integers(6, 140),
    hide=st.sampled_from(["one", "all"]),
    left=st.none() | st.integers(0, 90),
)
def test_any_document_becomes_an_example_that_fits(
    knowledge: Load, words: list[str], block_size: int, hide: str, left: int | None
) -> None:
    module = knowledge("dataset")
    try:
        dataset = module.PhraseDataset(f"Z. {' '.join(words)}\n", block_size, module.Reading(hide=hide, left=left))
    except UserError as error:
        assert "no document has a name or place that fits" in str(error)
        return
    for _ in range(5):
        x, y = dataset[0]
        assert x.shape == y.shape == (block_size - 1,)
        assert not ((y != 0) & (y != x.roll(-1)))[:-1].any(), "a target is the next character"
        assert y.any() or hide == "all", "there is something to learn"


def test_a_phrase_that_does_not_fit_behind_its_title_is_left_out(knowledge: Load) -> None:
    module = knowledge("dataset")
    long = f"{'Z' * 40}. Ada was born in Oslo, then in {'Y' * 40} ."
    dataset = module.PhraseDataset(f"{long}\n{PLAIN}\n", 64, module.Reading())
    random.seed(0)
    hidden = {"".join(dataset.itos[int(n)] for n in dataset[0][1]).strip(PAD_CHAR) for _ in range(50)}
    assert hidden == {f"Ada{MASK_CHAR}", f"Oslo{MASK_CHAR}"}
    with pytest.raises(UserError, match="fits behind its title within 32 characters: give a text of lines"):
        module.PhraseDataset(f"{long}\n", 32, module.Reading())
    with pytest.raises(UserError, match="leave --preset fast out"):
        module.PhraseDataset("nothing to hide here .\n", 64, module.Reading())


def test_settings_of_a_preset_are_changed_by_name(knowledge: Load) -> None:
    presets = knowledge("presets")
    fast = presets.PRESETS["fast"]
    changed = presets.changed(fast, ["left=none", "optimizer=adamw", "learning_rate=0.001", "rotary=no", "dropout=0.2"])
    assert changed.reading == replace(fast.reading, left=None)
    assert (changed.pretrain.optimizer, changed.finetune.learning_rate, changed.rotary) == ("adamw", 0.001, False)
    assert changed.dropout == 0.2 and presets.changed(fast, []) == fast
    for setting, sentence in {
        "lef=3": "did you mean 'left'",
        "left": "the value is missing: write --set left=VALUE",
        "left=some": "expected a whole number from 0",
        "rotary=1": "expected yes or no",
        "optimizer=mun": "did you mean 'muon'",
        "precision=fp8": "choose from auto, bf16, fp16, fp32",
        "batch_size=0": "batch_size=0: expected a whole number from 1",
        "batch_size=2.5": "expected a whole number from 1",
        "num_workers=-1": "expected a whole number from 0",
        "left=-3": "expected a whole number from 0",
        "learning_rate=nan": "expected a number above 0",
        "learning_rate=0": "expected a number above 0",
        "weight_decay=inf": "expected a number from 0",
        "dropout=1": "expected a number from 0, below 1",
        "max_epochs=3": "unknown setting 'max_epochs'",
    }.items():
        with pytest.raises(UserError, match=sentence):
            presets.changed(fast, [setting])

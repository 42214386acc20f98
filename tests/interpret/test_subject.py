"""The model of any run, or a pretrained one, with texts as it reads them."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
import torch
from tests.tiny_models import tiny_model

from attnlab.base.errors import UserError
from attnlab.config.recipe import check
from attnlab.interpret.recorder import record
from attnlab.interpret.subject import Subject, open_subject
from attnlab.jobs.job import RunOptions
from attnlab.jobs.registry import KINDS

TINY = {"layers": 2, "heads": 2, "width": 16, "context": 24}


def run(folder: Path, kind: str, **sections: dict[str, object]) -> Path:
    sections = {"training": {"steps": 2, "seed": 0}, "machine": {"device": "cpu", "threads": 1}} | sections
    path = KINDS[kind].job()(check(KINDS[kind].config, sections)).run(RunOptions(folder))
    assert path is not None
    return path


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "text.txt"
    file.write_text("the cat sat on the mat and the dog sat on the cat. " * 20, encoding="utf-8")
    return file


def weights_of(subject: Subject, text: str, second: str | None = None) -> dict[str, tuple[int, ...]]:
    reading = subject.read(text, second)
    with torch.no_grad():
        recording = record(subject.model, names=["*.weights"], **reading.inputs)
    return {name: tuple(tensor.shape) for name, tensor in recording.tensors.items()}


def test_a_language_run(tmp_path: Path, text: Path) -> None:
    path = run(tmp_path / "run", "language", model=TINY, data={"corpus": str(text)}, batch={"size": 4})
    subject = open_subject(path)
    reading = subject.read("the cät")
    assert reading.tokens == [*"the c", "\ufffd", "t"] and reading.special[5] and subject.causal
    assert reading.notes == ["1 of 7 tokens are not in the model's vocabulary."]
    assert weights_of(subject, "the cat") == {f"blocks.{n}.attention.weights": (1, 2, 7, 7) for n in range(2)}
    with pytest.raises(UserError, match="the text has 25 tokens, more than the model's context of 24"):
        subject.read("a" * 25)
    for empty in ("", "  "):
        with pytest.raises(UserError, match="the text is empty"):
            subject.read(empty)
    with pytest.raises(UserError, match="reads one text"):
        subject.read("the", "cat")


def test_a_bert_trained_on_masked_words(tmp_path: Path, text: Path) -> None:
    path = run(
        tmp_path / "run",
        "pretrain",
        model=TINY,
        data={"corpus": str(text)},
        objective={"name": "mlm"},
        batch={"size": 4},
    )
    subject = open_subject(path)
    reading = subject.read("the cat", "a dog")
    assert reading.tokens[0] == "[CLS]" and reading.tokens.count("[SEP]") == 2
    assert reading.special.count(True) >= 3 and not subject.causal
    length = len(reading.tokens)
    shapes = weights_of(subject, "the cat", "a dog")
    assert shapes == {f"blocks.{n}.attention.weights": (1, 2, length, length) for n in range(2)}


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet"])
def test_pretrained_encoders(tmp_path: Path, family: str) -> None:
    subject = open_subject(tiny_model(tmp_path / family, family))
    assert subject.read("the film is good").tokens == ["[CLS]", "the", "film", "is", "good", "[SEP]"]
    shapes = weights_of(subject, "the film is good")
    assert shapes == {f"blocks.{n}.attention.weights": (1, 2, 6, 6) for n in range(2)}


def test_an_encoder_decoder_reads_a_text_and_an_answer(tmp_path: Path) -> None:
    subject = open_subject(tiny_model(tmp_path / "t5", "t5", masked=True))
    reading = subject.read("the film is good", "yes")
    assert reading.target[0] == "[PAD]" and "yes" in reading.target
    shapes = weights_of(subject, "the film is good", "yes")
    encoder, decoder = len(reading.tokens), len(reading.target)
    assert shapes["encoder.blocks.1.attention.weights"] == (1, 2, encoder, encoder)
    assert shapes["decoder.blocks.1.attention.weights"] == (1, 2, decoder, decoder)
    assert shapes["decoder.blocks.1.cross.weights"] == (1, 2, decoder, encoder)


def test_a_classifier_run(tmp_path: Path) -> None:
    model = tiny_model(tmp_path / "bert")
    words = product(("the", "a", "this"), ("film", "plot", "question"), ("is", "was"), (("good", "yes"), ("bad", "no")))
    rows = "".join(f"{one} {two} {three} {word},{label}\n" for one, two, three, (word, label) in words)
    (tmp_path / "films.csv").write_text("text,label\n" + rows, encoding="utf-8")
    path = run(
        tmp_path / "run",
        "classify",
        model={"name": str(model)},
        data={"task": str(tmp_path / "films.csv")},
        batch={"size": 4},
    )
    subject = open_subject(path)
    assert weights_of(subject, "the film is good")["blocks.1.attention.weights"] == (1, 2, 6, 6)


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no-such-model"):
        open_subject("no-such-model")

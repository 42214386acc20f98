"""The vocabulary of a run is that of its texts; tokens it lacks later are reported, never dropped silently."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnlab.config import check
from attnlab.config.finetune import FinetuneConfig
from attnlab.config.knowledge import KnowledgeConfig
from attnlab.config.pretrain import PretrainConfig
from attnlab.data.tokenizers.vocabulary import Vocabulary
from attnlab.jobs.engine import train_run
from attnlab.jobs.finetune import FinetuneJob
from attnlab.jobs.job import RunOptions
from attnlab.jobs.knowledge import pretraining
from attnlab.jobs.pretrain import PretrainJob
from attnlab.runs import read_record

DOCUMENTS = ["the cat saw the dog", "a dog saw a cat"]
QUESTION = "Where was Ada born?\tcat\n"
MODEL = {"layers": 1, "heads": 2, "width": 16, "context": 48}
MACHINE = {"threads": 1, "precision": "fp32"}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(DOCUMENTS) + "\n")
    return path


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "train.tsv"
    path.write_text(QUESTION)
    return path


def pretrained(run: Path, **data: object) -> Path:
    settings = {"model": MODEL, "machine": MACHINE, "training": {"steps": 1}, "data": data}
    path = train_run(PretrainJob(check(PretrainConfig, settings)), RunOptions(run))
    assert path is not None
    return path


def vocabulary_of(run: Path) -> Vocabulary:
    return Vocabulary.from_dict(json.loads((run / "vocabulary.json").read_text()))


@pytest.mark.parametrize("level", ["characters", "words"])
def test_a_plain_corpus_alone_decides_the_vocabulary(level: str, tmp_path: Path, corpus: Path) -> None:
    run = pretrained(tmp_path / "run", corpus=str(corpus), tokens=level)
    assert vocabulary_of(run) == Vocabulary.build(DOCUMENTS, level)


@pytest.mark.parametrize("setting", ["questions", "vocabulary_from"])
def test_questions_of_the_run_are_in_its_vocabulary(
    setting: str, tmp_path: Path, corpus: Path, questions: Path
) -> None:
    data = {"corpus": str(corpus), "tokens": "words", setting: str(questions)}
    run = pretrained(tmp_path / "run", **data)
    assert vocabulary_of(run) == Vocabulary.build([*DOCUMENTS, *QUESTION.split("\t")], "words")


def test_both_halves_of_a_knowledge_run_share_the_words_of_the_questions(corpus: Path, questions: Path) -> None:
    data = {"corpus": str(corpus), "train": str(questions), "tokens": "words"}
    first_half = pretraining(check(KnowledgeConfig, {"data": data, "model": MODEL}))
    assert first_half.data.vocabulary_from == str(questions)


@pytest.mark.parametrize(("setting", "reported"), [(None, True), ("vocabulary_from", False)])
def test_fine_tuning_reports_question_words_it_does_not_know(
    setting: str | None, reported: bool, tmp_path: Path, corpus: Path, questions: Path
) -> None:
    more = {setting: str(questions)} if setting else {}
    start = pretrained(tmp_path / "pretrained", corpus=str(corpus), tokens="words", **more)
    settings = {
        "start": {"run": str(start)},
        "data": {"train": str(questions)},
        "machine": MACHINE,
        "training": {"steps": 1},
    }
    run = train_run(FinetuneJob(check(FinetuneConfig, settings)), RunOptions(tmp_path / "tuned"))
    assert run is not None
    notes = [change for change in read_record(run)["changes"] if "not in the vocabulary" in change]
    assert bool(notes) == reported
    if reported:
        assert "'Where'" in notes[0] and "--vocabulary-from" in notes[0] and notes[0].startswith("5 words")


def test_the_most_frequent_missing_tokens_are_named_first() -> None:
    assert Vocabulary.build(["ab"]).missing(["xyxa", "yx"]) == ["x", "y"]

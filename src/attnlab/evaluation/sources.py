"""What a model was trained on: the text and questions of a run and of the runs it started from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from attnlab.data.question_template import QuestionTemplate
from attnlab.data.questions import Pair
from attnlab.data.text.reading import read_lines
from attnlab.data.world.world import World
from attnlab.evaluation.answer_trace import CorpusLine, PretrainingText
from attnlab.models.run_questions import has_questions, note_if_changed, run_questions, run_world
from attnlab.runs import is_run, read_config, read_record


@dataclass(frozen=True)
class Sources:
    """The text and questions behind a run's weights, with notes on what is missing or has changed."""

    questions: dict[str, list[Pair]]
    """The run's own, by split: train, dev, test."""
    trained_on: list[Pair]
    """The questions of all training that led to these weights."""
    pretraining: PretrainingText | None
    """None when it cannot be found."""
    world: World | None
    notes: list[str]
    names_learned: bool = False
    """Pretraining had the names of its documents among its targets."""
    asked: Sequence[str] = ()
    """The evaluated questions: they define the template if the run has no questions of its own."""

    @cached_property
    def template(self) -> QuestionTemplate:
        """The form of the training questions."""
        pairs = self.trained_on or [pair for part in self.questions.values() for pair in part]
        return QuestionTemplate.of([question for question, _ in pairs] or self.asked)

    @cached_property
    def trained_names(self) -> dict[str, None]:
        """All people named in training questions, in order."""
        names = (self.template.name_in(question) for question, _ in self.trained_on)
        return {name: None for name in names if name is not None}

    def mentions(self, name: str) -> bool:
        """The name occurs in pretraining or in fine-tuning."""
        return name in self.trained_names or (
            self.pretraining is not None and bool(self.pretraining.lines_naming(name))
        )


def find_sources(run: Path, corpus: Path | None = None) -> Sources:
    """Follow a run back to the pretraining it started from; `corpus` replaces the recorded one."""
    notes: list[str] = []
    runs = ancestry(run)
    questions = [run_questions(each, notes) for each in runs]
    trained_on = [part.get("train", []) for each, part in zip(runs, questions, strict=True) if has_questions(each)]
    pretrained = next((each for each in runs if not _is_finetuning(each)), None)
    text: PretrainingText | None
    if corpus is not None:
        text = _read(corpus)
        if pretrained is not None:
            note_if_changed(corpus, read_record(pretrained), "sha256", notes)
    elif pretrained is not None:
        text = _pretraining_text(pretrained, notes)
    elif (parent := _parent(runs[-1])) is not None:
        text = None
        notes.append(f"{runs[-1]} started from {parent}, which no longer exists: give --corpus to trace answers.")
    else:
        text = PretrainingText([])
        notes.append(f"{run} was not pretrained: no answer can come from a line of text.")
    world = run_world(read_config(runs[-1]))
    learned = pretrained is not None and _names_learned(read_config(pretrained))
    return Sources(questions[0], [pair for part in trained_on for pair in part], text, world, notes, learned)


def _names_learned(config: Mapping[str, Any]) -> bool:
    objective = config.get("objective", {})
    return not objective.get("hidden_only") or bool(objective.get("titles"))


def ancestry(run: Path) -> list[Path]:
    """The run, the run it started from, and so on, as far back as the folders exist."""
    runs = [run]
    while (parent := _parent(runs[-1])) is not None and is_run(parent):
        runs.append(parent)
    return runs


def _parent(run: Path) -> Path | None:
    """The run whose weights this one started from."""
    start = read_config(run).get("start") or {}
    return Path(start["run"]) if start.get("run") and not start.get("fresh") else None


def _is_finetuning(run: Path) -> bool:
    return read_record(run)["kind"] == "finetune"


def _pretraining_text(run: Path, notes: list[str]) -> PretrainingText | None:
    config, record = read_config(run), read_record(run)
    dev_share = config["data"].get("dev_share")
    if dev_share:
        notes.append(f"{run} held out {dev_share:.0%} of its lines for dev; they count as pretraining text here.")
    world = run_world(config)
    if world is not None:
        return PretrainingText(CorpusLine(number, text) for number, text in enumerate(world.documents(), start=1))
    corpus = Path(config["data"]["corpus"])
    if not corpus.is_file():
        notes.append(f"{corpus}, the corpus of {run}, no longer exists: give --corpus to trace answers.")
        return None
    note_if_changed(corpus, record, "sha256", notes)
    return _read(corpus)


def _read(corpus: Path) -> PretrainingText:
    return PretrainingText(CorpusLine(number, text) for number, text in read_lines(corpus))

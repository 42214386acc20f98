"""What a model can know: all that a run was pretrained and fine-tuned on, found from its own record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.files import sha256
from attnlab.config import check
from attnlab.config.world import WorldSection
from attnlab.data.questions import Pair, read_pairs
from attnlab.data.text.reading import read_lines
from attnlab.data.world.world import SPLITS, World, world_of
from attnlab.evaluation.question_template import Template
from attnlab.evaluation.trace import Line, Reading
from attnlab.runs import is_run, read_config, read_record


@dataclass(frozen=True)
class Background:
    """A run's reading and questions, and remarks on what could not be had as it was."""

    questions: dict[str, list[Pair]]
    """The run's own, by split: train, dev, test."""
    trained_on: list[Pair]
    """The questions of all training that led to these weights."""
    reading: Reading | None
    """The lines of pretraining; None when they cannot be found."""
    world: World | None
    notes: list[str]
    asked: Sequence[str] = ()
    """Questions put to a run that has none of its own: then they show what questions look like."""

    @cached_property
    def template(self) -> Template:
        """What questions look like here, from those of training."""
        known = self.trained_on or [pair for part in self.questions.values() for pair in part]
        return Template.of([question for question, _ in known] or self.asked)

    @cached_property
    def names(self) -> dict[str, None]:
        """Everybody a training question was about."""
        found = (self.template.name(question) for question, _ in self.trained_on)
        return {name: None for name in found if name is not None}

    def knows(self, name: str) -> bool:
        """The name occurred in pretraining or in fine-tuning."""
        return name in self.names or (self.reading is not None and bool(self.reading.naming(name)))


def background(run: Path, corpus: Path | None = None) -> Background:
    """Follow a run back to the pretraining it started from; `corpus` replaces the one on record."""
    notes: list[str] = []
    stages = _stages(run)
    own = [_questions(stage, notes) for stage in stages]
    taught = [part.get("train", []) for stage, part in zip(stages, own, strict=True) if _asks(stage)]
    first = next((stage for stage in stages if not _tunes(stage)), None)
    if corpus is not None:
        reading: Reading | None = _read(corpus)
        if first is not None:
            _same(corpus, read_record(first), "sha256", notes)
    elif first is not None:
        reading = _pretraining(first, notes)
    elif (before := _before(stages[-1])) is not None:
        reading = None
        notes.append(f"{stages[-1]} started from {before}, which is not there any more: give --corpus to trace.")
    else:
        reading = Reading([])
        notes.append(f"{run} was not pretrained: there is no line it can have an answer from.")
    world = _world(read_config(stages[-1]))
    return Background(own[0], [pair for part in taught for pair in part], reading, world, notes)


def _stages(run: Path) -> list[Path]:
    """The run, the run it started from, and so on, as far back as they are there."""
    stages = [run]
    while (before := _before(stages[-1])) is not None and is_run(before):
        stages.append(before)
    return stages


def _before(stage: Path) -> Path | None:
    """The run whose weights this one started from."""
    start = read_config(stage).get("start") or {}
    return Path(start["run"]) if start.get("run") and not start.get("fresh") else None


def _tunes(stage: Path) -> bool:
    return read_record(stage)["kind"] == "finetune"


def _asks(stage: Path) -> bool:
    """Its training has questions: all of it, or mixed into reading."""
    data = read_config(stage).get("data", {})
    return _tunes(stage) or bool(data.get("questions") or data.get("world_questions"))


def _world(config: Mapping[str, Any]) -> World | None:
    data = config.get("data", {})
    return None if data.get("corpus") or data.get("train") else world_of(check(WorldSection, config["world"]))


def _questions(stage: Path, notes: list[str]) -> dict[str, list[Pair]]:
    config, record = read_config(stage), read_record(stage)
    world = _world(config)
    if world is not None:
        return {split: world.questions(split) for split in SPLITS}
    found = {}
    for split in SPLITS:
        data = config.get("data", {})
        path = data.get("questions") if split == "train" and data.get("questions") else data.get(split)
        if path is None:
            continue
        if not Path(path).is_file():
            notes.append(f"the {split} questions of {stage}, {path}, are not there any more.")
            continue
        _same(Path(path), record, f"{split}_sha256", notes)
        found[split] = read_pairs(Path(path))
    return found


def _pretraining(stage: Path, notes: list[str]) -> Reading | None:
    config, record = read_config(stage), read_record(stage)
    kept_aside = config["data"].get("dev_share")
    if kept_aside:
        notes.append(f"{kept_aside:.0%} of the lines {stage} was given were kept aside and not read; they count here.")
    world = _world(config)
    if world is not None:
        return Reading(Line(number, text) for number, text in enumerate(world.documents(), start=1))
    corpus = Path(config["data"]["corpus"])
    if not corpus.is_file():
        notes.append(f"the corpus {stage} was pretrained on, {corpus}, is not there any more: give --corpus to trace.")
        return None
    _same(corpus, record, "sha256", notes)
    return _read(corpus)


def _read(corpus: Path) -> Reading:
    return Reading(Line(number, text) for number, text in read_lines(corpus))


def _same(path: Path, record: Mapping[str, Any], key: str, notes: list[str]) -> None:
    expected = record.get("data", {}).get(key)
    try:
        changed = expected is not None and sha256(path) != expected
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    if changed:
        notes.append(f"{path} is not the text the model was trained on: its checksum differs from the run's record.")

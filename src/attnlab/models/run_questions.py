"""The questions of a run, by split: those of its world, or of the files it was trained and measured with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.files import sha256
from attnlab.config import check
from attnlab.config.world import WorldSection
from attnlab.data.questions import Pair, read_pairs
from attnlab.data.world.world import SPLITS, World, world_of
from attnlab.runs import read_config, read_record


def run_questions(run: Path, notes: list[str]) -> dict[str, list[Pair]]:
    """Train, dev and test, as far as they can be found; `notes` gets what is missing or has changed."""
    config, record = read_config(run), read_record(run)
    world = run_world(config)
    if world is not None:
        return {split: world.questions(split) for split in SPLITS}
    questions = {}
    for split in SPLITS:
        data = config.get("data", {})
        path = data.get("questions") if split == "train" and data.get("questions") else data.get(split)
        if path is None:
            continue
        if not Path(path).is_file():
            notes.append(f"{path}, the {split} questions of {run}, no longer exists.")
            continue
        note_if_changed(Path(path), record, f"{split}_sha256", notes)
        questions[split] = read_pairs(Path(path))
    return questions


def has_questions(run: Path) -> bool:
    """It trained on questions: on nothing else, or mixed into its text."""
    data = read_config(run).get("data", {})
    return read_record(run)["kind"] in ("finetune", "knowledge") or bool(
        data.get("questions") or data.get("world_questions")
    )


def run_world(config: Mapping[str, Any]) -> World | None:
    """The synthetic world of a run; None if it has files of its own."""
    data = config.get("data", {})
    return None if data.get("corpus") or data.get("train") else world_of(check(WorldSection, config["world"]))


def note_if_changed(path: Path, record: Mapping[str, Any], key: str, notes: list[str]) -> None:
    """Add a note if a file differs from the one whose checksum is in the run's record."""
    expected = record.get("data", {}).get(key)
    try:
        changed = expected is not None and sha256(path) != expected
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    if changed:
        notes.append(f"{path} is not the file the model was trained on: its checksum differs from the run's record.")

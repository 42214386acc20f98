"""What an experiment reads back from its folder, checked: one sentence names a file that was changed or damaged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from attnlab.base.errors import UserError

T = TypeVar("T")


class Stored(BaseModel):
    """What is read; a file may hold more."""

    model_config = ConfigDict(extra="allow", strict=True)


class Machine(Stored):
    cpu: str
    cores: int
    memory_gib: float
    devices: list[str]


class Commit(Stored):
    commit: str
    changed: bool | None


class VariantNotes(Stored):
    """What was decided for a variant, and why a seed of it has no result."""

    failures: dict[str, str] = {}
    steps: int | None = None
    future: str | None = None
    parameters: int = 0
    ignored_dropout: float = 0.0


class TestLook(Stored):
    """One winner's scores on test."""

    __test__ = False  # not a class of tests

    folder: str
    scores: dict[str, dict[str, float]]


class ExperimentRecord(Stored):
    kind: Literal["compare", "sweep"]
    command: str
    started: str
    machine: Machine
    versions: dict[str, str]
    git: Commit | None = None
    study: str | None = None
    variants: dict[str, VariantNotes] = {}
    tested: list[TestLook] = []


class Training(Stored):
    seconds: float
    step: int = 0


class DataFacts(Stored):
    """About the data of a run, as far as reports count with it."""

    train_tokens: int = 0
    dev_tokens: int = 0
    unknown_share: float | None = None


class FinishedRecord(Stored):
    """run.json of a finished run."""

    results: dict[str, Any]
    training: Training
    data: DataFacts
    parameters: int = 0
    steps: int = 0


class LengthResult(Stored):
    loss: float | None = None
    by_position: list[float] = []
    reason: str = ""


LENGTHS: TypeAdapter[dict[str, LengthResult]] = TypeAdapter(dict[str, LengthResult])
NUMBERS: TypeAdapter[dict[str, float]] = TypeAdapter(dict[str, float], config=ConfigDict(strict=True))


def must_be(kind: type[BaseModel] | TypeAdapter[Any], content: Any, path: Path, what_to_do: str) -> None:
    """Raise one sentence for the first entry of a file that is missing or of another kind."""
    adapter = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
    try:
        adapter.validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(map(str, first["loc"])) or "its content"
        reason = "is missing" if first["type"] == "missing" else first["msg"].replace("Input should", "should")
        raise UserError(f"{path}: {name} {reason}: {what_to_do}.") from None


def check_record(root: Path, record: Mapping[str, Any]) -> None:
    """run.json of an experiment."""
    must_be(ExperimentRecord, record, root / "run.json", "restore the file, or start again with --overwrite")


def check_finished(run: Path, record: Mapping[str, Any], measures: Iterable[str] = ()) -> None:
    """run.json of a finished run, whose measures are numbers."""
    what = f"restore the file, or remove {run} and resume"
    must_be(FinishedRecord, record, run / "run.json", what)
    results = record["results"]
    read = {name: results[name] for name in (*measures, "feature_seconds") if results.get(name) is not None}
    must_be(NUMBERS, read, run / "run.json", what)


def read_lengths(path: Path) -> dict[int, dict[str, Any]]:
    """What a run measured at each length."""
    what = f"remove {path.parent} and resume"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}): {what}.") from None
    must_be(LENGTHS, content, path, what)
    if wrong := [length for length in content if not length.isdigit()]:
        raise UserError(f"{path}: {wrong[0]!r} is not a length: {what}.")
    return {int(length): values for length, values in content.items()}

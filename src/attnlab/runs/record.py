"""run.json: what was run, with what, and its results. A folder is a run when it has this file.

It is written last when a run begins, at once, so a run has everything that its record names. A record is checked when
it is read: one that was edited into another shape is one sentence, wherever it is used.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from attnlab.base.errors import UserError
from attnlab.base.files import write_text

RECORD = "run.json"


class _Shape(BaseModel):
    """Fields of other names are kept as they are."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Machine(_Shape):
    cpu: str = "unknown"
    cores: int = 0
    memory_gib: float = 0.0
    devices: list[str] = []


class _Git(_Shape):
    commit: str = "unknown"
    changed: bool = False


class _Training(_Shape):
    step: int = 0
    seconds: float = 0.0
    tokens: int = 0
    positions: int = 0
    best: float | None = None
    best_step: int = 0


class _Record(_Shape):
    kind: str
    command: str = ""
    folder: str = ""
    started: str = ""
    seed: int = 0
    versions: dict[str, str | None] = {}
    machine: _Machine = _Machine()
    git: _Git | None = None
    changes: list[str] = []
    settings: dict[str, Any] = {}
    data: dict[str, Any] = {}
    files: dict[str, str] = {}
    steps: int = 0
    parameters: int = 0
    learning_parameters: int = 0
    training: _Training = _Training()
    padding: float = 0.0
    peak_memory: float | None = None
    results: dict[str, Any] = {}
    resumed: list[str] = []
    collapsed: str = ""
    verdict: str = ""
    baselines: dict[str, dict[str, float | None]] = {}
    variants: dict[str, dict[str, Any]] = {}
    study: str | None = None

    @field_validator("started")
    @classmethod
    def _is_a_time(cls, text: str) -> str:
        if text:
            datetime.fromisoformat(text)
        return text


ALWAYS = ("command", "folder", "started", "seed", "versions", "machine", "git", "changes")
"""What every run has, so that readers need no defaults of their own."""


def is_run(path: Path) -> bool:
    return (path / RECORD).is_file()


def read_record(path: Path) -> dict[str, Any]:
    """The content of run.json; raises if there is none or if it has another shape."""
    record = read_stored(path)
    try:
        shape = _Record.model_validate(record)
    except ValidationError as error:
        raise UserError(f"{path / RECORD} is damaged: {_first(error)}.") from None
    always = shape.model_dump(include=set(ALWAYS))
    return {name: always[name] for name in ALWAYS if name not in record or name == "machine"} | {
        name: value for name, value in record.items() if name != "machine"
    }


def read_stored(path: Path) -> dict[str, Any]:
    """run.json as it is stored."""
    try:
        record = json.loads((path / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} {_why_no_run(path)} ('attnlab runs' lists the runs).") from None
    except NotADirectoryError:
        raise UserError(f"{path} is a file: give the folder of a run.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path / RECORD} cannot be read: {reason(error)}.") from None
    if not isinstance(record, dict):
        raise UserError(f"{path / RECORD} is damaged: expected a JSON object.")
    return record


def write_record(path: Path, record: dict[str, Any]) -> None:
    write_text(path / RECORD, json.dumps(record, indent=1, default=str) + "\n")


def reason(error: BaseException) -> str:
    """Why a file cannot be read, without its path."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error).rstrip(".")


def _why_no_run(path: Path) -> str:
    if not path.is_dir():
        return "does not exist"
    if (path / "lock").exists():
        return "has no run yet: if it was stopped before its run began, start it again with the same command"
    return f"is not a run folder: it has no {RECORD}"


def _first(error: ValidationError) -> str:
    """The first problem, with its place in the file."""
    problem = error.errors()[0]
    place = ".".join(str(part) for part in problem["loc"])
    return f"{place} is missing" if problem["type"] == "missing" else f"{place}: {problem['msg'].lower()}"

"""config.yaml, and whether the files of a run are still those it was trained with.

run.json has the settings a run started with, and the checksums of its vocabulary and code. Weights mean nothing with
other ones, so a file that was changed is refused wherever the model is used; `MAY_CHANGE` names what a resumed run may
change, and records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.files import sha256
from attnlab.runs.record import read_record

CONFIG = "config.yaml"
MAY_CHANGE = {
    "training.keep",
    "training.save_every",
    "batch.workers",
    "machine.device",
    "machine.threads",
    # Paths of weights whose checksum is in the record.
    "start.run",
    "masking.start",
    "model.name",
}
MAY_GROW = {"training.steps", "training.epochs"}


def read_config(path: Path) -> dict[str, Any]:
    """The resolved configuration of a run, as plain values; from its record if config.yaml is gone."""
    from attnlab.config.recipe import read_yaml

    file = path / CONFIG
    settings: dict[str, Any] = read_record(path).get("settings", {})
    if settings and not file.exists():
        return settings
    try:
        values = read_yaml(file)[0]
    except UserError as error:
        hint = " Delete it: run.json has the same settings." if settings else ""
        raise UserError(f"{error}{hint}") from None
    except (RecursionError, ValueError):
        raise UserError(f"{file} cannot be read: it is damaged.") from None
    for name, value in settings.items():
        if isinstance(value, dict) and not isinstance(values.get(name, {}), dict):
            raise UserError(f"{file}: {name} is damaged: expected 'key: value' lines.")
    return values


def trained_config(path: Path) -> dict[str, Any]:
    """The configuration that the weights of a run belong to; raises if config.yaml has another one, or none."""
    from attnlab.config.kinds import CONFIGS
    from attnlab.config.recipe import check

    values, kind = read_config(path), read_record(path)["kind"]
    for name, (then, now) in edited_settings(path).items():
        if not (name in MAY_CHANGE or (name in MAY_GROW and grows(then, now))):
            raise UserError(
                f"{path / CONFIG}: {name} is {now!r}, but the run started with {then!r}: "
                "put it back, or start a new run from the file with --config."
            )
    if kind in CONFIGS:
        try:
            check(CONFIGS[kind], values)
        except UserError as error:
            raise UserError(f"{path / CONFIG}: {error}") from None
    return values


def grows(then: Any, now: Any) -> bool:
    """Whether a number is larger than before."""
    return isinstance(then, int) and isinstance(now, int) and now > then


def edited_settings(path: Path) -> dict[str, tuple[Any, Any]]:
    """The settings in config.yaml that differ from those the run started with: before and now."""
    settings = read_record(path).get("settings")
    return differing(settings, read_config(path)) if settings else {}


def must_be_unchanged(run: Path, name: str) -> Path:
    """The file of a run, which must still be the one it was trained with, if the record has its checksum."""
    file, expected = run / name, read_record(run).get("files", {}).get(name)
    if not file.is_file():
        raise UserError(f"{file} is missing: 'attnlab resume {run}' writes it again if the run is not finished.")
    try:
        found = sha256(file)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from None
    if expected is not None and found != expected:
        raise UserError(
            f"{file} was changed since the run was trained with it: its weights would give wrong answers; restore it."
        )
    return file


def is_unchanged(run: Path, name: str) -> bool:
    """Whether a file of a run is there and the one it was trained with."""
    try:
        must_be_unchanged(run, name)
    except UserError:
        return False
    return True


def text_checksum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted names."""
    out: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            out |= flat(value, f"{prefix}{name}.")
        else:
            out[prefix + name] = value
    return out


def differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The settings in which two configurations differ; one that is missing counts as None."""
    one, two = flat(first), flat(second)
    names = [*one, *(name for name in two if name not in one)]
    return {name: (one.get(name), two.get(name)) for name in names if one.get(name) != two.get(name)}

"""Which files of a hub repository are which split of a data set, and the names of its classes.

A repository's card (the YAML at the head of its README) may list them (`configs`, `dataset_info`); else the names of
the files decide. The hub keeps a Parquet copy of most data sets, in its own revision:
configuration/split/0000.parquet.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from attnlab.base import hub
from attnlab.base.errors import UserError, nearest
from attnlab.data.tasks.files import SPELLINGS
from attnlab.data.tasks.labelled import SPLITS

PREFIX = "hub:"
PREFERRED = (".parquet", ".jsonl", ".json", ".csv", ".tsv")
DEFAULT = "default"
ABOUT_DATA = ("dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json")
Parts = dict[str, list[str]]
"""The files of each split, by the split's name on the hub."""


class HubName(NamedTuple):
    repo: str
    configuration: str | None = None

    def __str__(self) -> str:
        return PREFIX + "/".join(filter(None, self))


def parse(source: str) -> HubName | None:
    """hub:owner/name, hub:owner/name/configuration or owner/name; None for any other form."""
    owner, _, rest = source.removeprefix(PREFIX).partition("/")
    name, _, configuration = rest.partition("/")
    repo = f"{owner}/{name}"
    good = hub.is_id(repo) and re.fullmatch(r"[\w.-]*", configuration)
    if source.startswith(PREFIX):
        if not good:
            raise UserError(f"{source} is not a hub data set: give {PREFIX}owner/name or {PREFIX}owner/name/part.")
        return HubName(repo, configuration or None)
    is_file = PurePosixPath(source).suffix.lower() in PREFERRED
    return HubName(repo) if good and not configuration and not is_file and not source.endswith("/") else None


def configurations(names: Iterable[str], card: Mapping[str, Any]) -> dict[str, Parts]:
    """The configurations of a repository, each with its splits; empty if it has no files the lab reads."""
    data = (name for name in names if PurePosixPath(name).suffix.lower() in PREFERRED)
    names = sorted(name for name in data if PurePosixPath(name).name not in ABOUT_DATA)
    entries = [entry for entry in _list(card.get("configs")) if isinstance(entry, dict) and entry.get("data_files")]
    declared = {str(entry.get("config_name", DEFAULT)): _declared(entry, names) for entry in entries}
    if entries:
        return {name: parts for name, parts in declared.items() if parts}
    parts = _by_name(names)
    return {DEFAULT: parts} if parts else {}


def converted(names: Iterable[str]) -> dict[str, Parts]:
    """The same for the hub's Parquet copy, which has only a part of a very large set, named partial-train."""
    by_configuration: dict[str, Parts] = {}
    for name in sorted(names):
        pieces = name.split("/")
        if len(pieces) == 3 and name.endswith(".parquet"):
            by_configuration.setdefault(pieces[0], {}).setdefault(pieces[1], []).append(name)
    return by_configuration


def choose_configuration(requested: HubName, available: Mapping[str, Parts], card: Mapping[str, Any]) -> str:
    """The configuration that was requested, the only one, or the repository's default."""
    if requested.configuration is not None:
        if requested.configuration in available:
            return requested.configuration
        close = nearest(requested.configuration, available)
        hint = f"did you mean {close!r}?" if close else f"it has {', '.join(available)}."
        raise UserError(f"{PREFIX}{requested.repo} has no configuration {requested.configuration!r}: {hint}")
    preset = [
        str(entry.get("config_name"))
        for entry in _list(card.get("configs"))
        if isinstance(entry, dict) and entry.get("default")
    ]
    for name in (*preset, DEFAULT, *(available if len(available) == 1 else ())):
        if name in available:
            return name
    raise UserError(
        f"{requested} has several configurations ({', '.join(available)}): "
        f"name one, such as {requested}/{next(iter(available))}."
    )


def find_splits(name: HubName, parts: Parts) -> tuple[Parts, list[str]]:
    """The files of train, dev and test, and notes on which split of the hub each is and which are not used."""
    splits: Parts = {}
    notes, unused = [], []
    plain = {part: part.removeprefix("partial-").lower() for part in parts}
    for part in sorted(parts, key=lambda part: plain[part] not in SPELLINGS):  # `validation`, then `validation_matched`
        split = SPELLINGS.get(plain[part]) or SPELLINGS.get(re.split(r"[^a-z]", plain[part])[0])
        if split is None or split in splits:
            unused.append(part)
            continue
        splits[split] = parts[part]
        if plain[part] not in SPELLINGS:
            notes.append(f"{split} is the split {part!r}.")
    if "train" not in splits:
        raise UserError(f"the splits of {name} are {', '.join(parts)}: one of them must be named train.")
    if unused:
        notes.append(f"not used: {', '.join(unused)}.")
    if any(part.startswith("partial-") for part in parts):
        notes.append("the hub's Parquet copy has only the first part of this large data set.")
    return {split: splits[split] for split in SPLITS if split in splits}, notes


def class_names(path: Path, card: Mapping[str, Any], configuration: str) -> dict[str, list[str]]:
    """The names of classes by column, from the Parquet file itself or the card."""
    by_column = _in_parquet(path) if path.suffix == ".parquet" else {}
    entries = [entry for entry in _list(card.get("dataset_info")) if isinstance(entry, dict)]
    for entry in entries:
        if len(entries) > 1 and entry.get("config_name") != configuration:
            continue
        for feature in _list(entry.get("features")):
            kind = feature.get("dtype") if isinstance(feature, dict) else None
            names = (kind.get("class_label") or {}).get("names") if isinstance(kind, dict) else None
            if names:
                ordered = [names[key] for key in sorted(names, key=int)] if isinstance(names, dict) else names
                by_column.setdefault(str(feature["name"]), [str(name) for name in ordered])
    return by_column


def _in_parquet(path: Path) -> dict[str, list[str]]:
    try:
        from pyarrow import parquet

        stored = (parquet.read_schema(path).metadata or {}).get(b"huggingface", b"{}")
        features = json.loads(stored).get("info", {}).get("features", {})
    except (ImportError, OSError, ValueError, AttributeError):  # reading the rows raises the error
        return {}
    return {
        column: [str(name) for name in feature["names"]]
        for column, feature in features.items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and feature.get("names")
    }


def _declared(entry: Mapping[str, Any], names: list[str]) -> Parts:
    """`data_files`: a pattern, several, {split: patterns} or [{split, path: patterns}]."""
    declared, folder = entry["data_files"], str(entry.get("data_dir") or "").strip("./")
    if isinstance(declared, dict):
        pairs = list(declared.items())
    elif isinstance(declared, list) and all(isinstance(part, dict) for part in declared):
        pairs = [(part.get("split", "train"), part.get("path", [])) for part in declared]
    else:
        pairs = [("train", declared)]
    parts: Parts = {}
    for split, patterns in pairs:
        globs = [f"{folder}/{pattern}".strip("/") for pattern in _list(patterns)]
        files = [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in globs)]
        if files:
            parts[str(split)] = files
    return parts


def _by_name(names: list[str]) -> Parts:
    """The splits by a word in each file's name, or else in the name of a folder above it."""
    by_ending: dict[str, Parts] = {}
    for name in names:
        path = PurePosixPath(name)
        words = [word for part in (path.stem, *reversed(path.parts[:-1])) for word in re.split(r"[^a-z]", part.lower())]
        split = next((word for word in words if word in SPELLINGS), None)
        if split:
            by_ending.setdefault(path.suffix.lower(), {}).setdefault(split, []).append(name)
    with_train = [by_ending[end] for end in PREFERRED if "train" in map(SPELLINGS.get, by_ending.get(end, ()))]
    if with_train:
        return with_train[0]
    return {"train": names} if len(names) == 1 and not by_ending else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]

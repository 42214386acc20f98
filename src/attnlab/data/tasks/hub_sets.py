"""Labelled texts from the hub: downloaded into its cache and read like local files. No loading script is run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.base import console, hub
from attnlab.base.errors import UserError
from attnlab.base.files import check_new_folder, whole_folder, write_text
from attnlab.data.tasks.columns import choose_columns
from attnlab.data.tasks.files import UNKNOWN, has_labels, labelled_from_tables
from attnlab.data.tasks.hub_files import (
    PREFIX,
    HubName,
    choose_configuration,
    class_names,
    configurations,
    converted,
    find_splits,
)
from attnlab.data.tasks.labelled import LabelledSet, label_word
from attnlab.data.tasks.read_table import FORMATS, read_table
from attnlab.data.tasks.tables import ColumnRequest, FileRow, FileTable

PARQUET_COPY = "refs/convert/parquet"
FileTables = dict[str, FileTable]


class Fetched(NamedTuple):
    """The files of a data set on this machine."""

    files: dict[str, list[Path]]
    """By split, in order."""
    classes: dict[str, list[str]]
    """By column."""
    card: Path | None
    notes: list[str]


def load_hub(name: HubName, request: ColumnRequest, seed: int = 0, hold_out: bool = True) -> LabelledSet:
    """Labelled texts of a hub data set."""
    fetched = fetch_set(name)
    tables = {split: _join(files, request) for split, files in fetched.files.items()}
    column = choose_columns(tables["train"], request).label
    names = fetched.classes.get(column, [])
    if request.classes:  # other names for the same classes
        names = list(request.classes) if len(request.classes) == len(names) else []
    tables, notes = _labelled_rows(_name_classes(tables, {column: names} if names else {}), column)
    if names:
        request = replace(request, label=column, classes=tuple(label_word(name) or name for name in names))
    labelled = labelled_from_tables(tables, request, seed, name=str(name), hold_out=hold_out)
    files = {
        split if len(paths) == 1 else f"{split} {place}": path
        for split, paths in fetched.files.items()
        if split in tables
        for place, path in enumerate(paths, start=1)
    }
    return replace(labelled, files=files, notes=(*fetched.notes, *notes, *labelled.notes))


def write_set(name: HubName, folder: Path) -> dict[str, int]:
    """Write one JSONL per split, with names for classes, and the card; return the number of rows per file."""
    check_new_folder(folder)
    fetched = fetch_set(name)
    tables = {split: _join(files, ColumnRequest()) for split, files in fetched.files.items()}
    tables = _name_classes(tables, fetched.classes)
    notes: list[str] = []
    try:
        column = choose_columns(tables["train"], ColumnRequest()).label
    except UserError:  # raised again, with advice, when the files are read
        pass
    else:
        tables, notes = _labelled_rows(tables, column)
    for note in (*fetched.notes, *notes):
        console.warn(note)
    try:
        with whole_folder(folder) as partial:
            for split, table in tables.items():
                rows = (json.dumps(row.fields, ensure_ascii=False, default=str) + "\n" for row in table.rows)
                write_text(partial / f"{split}.jsonl", "".join(rows))
            if fetched.card:
                shutil.copyfile(fetched.card, partial / "README.md")
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}.") from None
    return {f"{split}.jsonl": len(table.rows) for split, table in tables.items()}


def fetch_set(name: HubName) -> Fetched:
    """The files of a data set, from the hub, or from its cache where the hub cannot be reached."""
    try:
        return _fetch(name)
    except hub.NotOnHub as error:
        raise UserError(f"{name.repo} is neither a task nor a path here, and {error}: check the name.") from None
    except hub.Unreachable as error:
        raise UserError(
            f"{name.repo} is neither a task nor a path here and not complete in {hub.cache_folder()}, and {error}: run "
            f"`attnlab data get {name} --out FOLDER` where the hub can be reached, then use that folder."
        ) from None


def _fetch(name: HubName) -> Fetched:
    names, notes = _listing(name.repo)
    folder = _files(name.repo, names, ["README.md"]) if "README.md" in names else None
    card = hub.card(folder) if folder else {}
    available, revision = configurations(names, card), hub.MAIN
    if not available:
        revision = PARQUET_COPY
        names, notes = _listing(name.repo, revision, otherwise=_unreadable(name))
        available = converted(names)
        notes.append("read from the hub's own Parquet copy: the repository has no data files the lab reads.")
    configuration = choose_configuration(name, available, card)
    parts, more = find_splits(name, available[configuration])
    snapshot = _files(name.repo, names, [file for files in parts.values() for file in files], revision)
    files = {split: [snapshot / file for file in chosen] for split, chosen in parts.items()}
    notes.insert(0, f"{name.repo} of {hub.endpoint()}, configuration {configuration}, commit {snapshot.name[:12]}.")
    classes = class_names(files["train"][0], card, configuration)
    return Fetched(files, classes, folder / "README.md" if folder else None, notes + more)


Listing = Mapping[str, hub.RemoteFile | None]
"""File names with sizes and checksums; None where the listing is an old one from the cache."""


def _listing(repo: str, revision: str = hub.MAIN, otherwise: str = "") -> tuple[Listing, list[str]]:
    try:
        return hub.listing(repo, "dataset", revision), []
    except hub.NotOnHub:
        if otherwise:
            raise UserError(otherwise) from None
        raise
    except hub.Unreachable as error:
        if old := hub.cached_listing(repo, "dataset", revision):
            return dict.fromkeys(old), [f"{error}: using the files of an earlier download."]
        raise


def _files(repo: str, names: Listing, files: list[str], revision: str = hub.MAIN) -> Path:
    remote_files = {name: remote for name in files if (remote := names[name]) is not None}
    try:
        return hub.fetch(repo, remote_files or files, "dataset", revision, local=not remote_files)
    except hub.Unreachable:
        if remote_files:
            raise
        raise hub.Unreachable("the hub cannot be reached and the cache lacks some of the files") from None


def _unreadable(name: HubName) -> str:
    return (
        f"{PREFIX}{name.repo} has no data files the lab reads ({', '.join(FORMATS)}) and no Parquet copy on the hub, "
        "and loading scripts are never run: download the files yourself and give a folder."
    )


def _join(files: list[Path], request: ColumnRequest) -> FileTable:
    """The rows of all files of a split, numbered across the files."""
    tables = [read_table(path, request) for path in files]
    if len(tables) == 1:
        return tables[0]
    if odd := next((table for table in tables if table.columns != tables[0].columns), None):
        raise UserError(
            f"{odd.path}: expected the columns of {files[0].name} ({', '.join(tables[0].columns)}), "
            f"got {', '.join(odd.columns)}."
        )
    rows = [row.fields for table in tables for row in table.rows]
    together = files[0].with_name(f"*{files[0].suffix}")
    return tables[0]._replace(
        path=together, rows=[FileRow(place, fields) for place, fields in enumerate(rows, start=1)]
    )


def _name_classes(tables: FileTables, classes: Mapping[str, list[str]]) -> FileTables:
    """Numbers to names in the columns whose classes have names; None for a label that is not published."""

    def named(fields: dict[str, Any]) -> dict[str, Any]:
        return fields | {column: _class(fields[column], names) for column, names in classes.items() if column in fields}

    if not classes:
        return tables
    return {
        split: table._replace(rows=[FileRow(row.line, named(row.fields)) for row in table.rows])
        for split, table in tables.items()
    }


def _class(value: Any, names: list[str]) -> Any:
    """The name of a class given by its number; a text that is itself one of the names stays."""
    word = label_word(value)
    if word is None or not word.removeprefix("-").isdecimal() or int(word) >= len(names):
        return value
    if isinstance(value, str) and word in names:
        return value
    return names[int(word)] if int(word) >= 0 else None


def _labelled_rows(tables: FileTables, column: str) -> tuple[FileTables, list[str]]:
    """The splits and rows whose labels are published: -1 in all rows of a split, or no label, means they are not."""
    kept: FileTables = {}
    notes = []
    for split, table in tables.items():
        if not has_labels(table, column):
            notes.append(f"the labels of {split} are not published: the split is left out ({len(table.rows):,} rows).")
            continue
        rows = [row for row in table.rows if row.fields.get(column) not in UNKNOWN]
        if lost := len(table.rows) - len(rows):
            notes.append(f"{lost:,} rows of {split} have no label: they are left out.")
        kept[split] = table._replace(rows=rows)
    if "train" not in kept:
        raise UserError(f"{tables['train'].path}: no row has a label in {column!r}: name the column with --label.")
    return kept, notes

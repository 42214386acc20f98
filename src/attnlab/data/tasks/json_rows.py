"""Rows in JSON: an object per line, a list of objects, or one object that holds a list for every split or column."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.data.tasks.tables import SPLIT, BadRow, FileRow, FileTable, content_of
from attnlab.data.text.reading import numbered_lines

SPELLINGS = {
    "train": "train",
    "training": "train",
    "test": "test",
    "testing": "test",
    "dev": "dev",
    "valid": "dev",
    "validation": "dev",
    "val": "dev",
}
Rows = Iterator[tuple[int, dict[str, Any]]]


def json_table(path: Path, text: str) -> FileTable:
    """Rows of a text that begins with a bracket or a brace."""
    if text.lstrip().startswith("[") or not one_object_per_line(text):
        return _document(path, _loads(path, text))
    return _lines(path, text)


def one_object_per_line(text: str) -> bool:
    """Whether the first line is a whole object, or a broken one, instead of the beginning of a longer one."""
    lines = numbered_lines(text)
    try:
        first = json.loads(lines[0][1])
    except (ValueError, RecursionError):
        return len(lines) == 1 or not lines[0][1].rstrip().endswith(("{", "[", ","))
    return len(lines) > 1 or not (
        isinstance(first, dict) and any(isinstance(value, list | dict) for value in first.values())
    )


def _loads(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno} is broken JSON (column {error.colno}: {error.msg}).") from None
    except (RecursionError, ValueError):
        raise UserError(f"{path} is JSON nested too deeply, or has too long a number, to be rows.") from None


def row_of_line(path: Path, number: int, line: str) -> FileRow:
    """The object in a line; raises for anything else."""
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as error:
        reason = f"broken JSON (column {error.colno}: {error.msg})"
    except (RecursionError, ValueError):
        reason = "JSON nested too deeply, or with too long a number, to be a row"
    else:
        if isinstance(fields, dict):
            return FileRow(number, fields)
        reason = 'not a JSON object: give {"text": ..., "label": ...} on each line'
    raise UserError(f"{path}, line {number} is {reason}.")


def _lines(path: Path, text: str) -> FileTable:
    rows, bad = [], []
    for number, line in numbered_lines(text):
        try:
            rows.append(row_of_line(path, number, line))
        except UserError as error:
            bad.append(BadRow(f"{path}, line {number}", str(error), line))
    if not rows:
        raise UserError(bad[0].sentence)
    return FileTable(path, list(rows[0].fields), rows, named=True, notes=("JSON, an object per line.",), bad=tuple(bad))


def _document(path: Path, content: Any) -> FileTable:
    if isinstance(content, list):
        return _table(path, [(None, content)], "JSON, a list.")
    if isinstance(content, dict):
        if splits := {name: split for name in content if (split := split_of(name)) and _is_rows(content[name])}:
            parts = [(split, content[name]) for name, split in splits.items()]
            return _table(path, parts, f"JSON with lists of rows: {_listed(splits)}.")
        if len(content) == 1 and isinstance(inner := next(iter(content.values())), dict):
            return _document(path, inner)
        if records := _of_pandas(content):
            return _table(path, [(None, records)], "JSON, an object per row or column.")
        lists = {name: value for name, value in content.items() if isinstance(value, list)}
        if len(lists) == 1 and _is_rows(rows := next(iter(lists.values()))):
            return _table(path, [(None, rows)], f"JSON, the rows are in {next(iter(lists))!r}.")
        if len(lists) > 1 and len({len(value) for value in lists.values()}) == 1:
            records = [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
            return _table(path, [(None, records)], f"JSON, a list per column: {', '.join(lists)}.")
    raise UserError(f'{path} is not a list of objects: give [{{"text": ..., "label": ...}}, ...].')


def _of_pandas(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of {column: {index: value}} or {index: {column: value}}, the forms of `DataFrame.to_json`."""
    inner = list(content.values())
    if not all(isinstance(value, dict) for value in inner) or len({tuple(value) for value in inner}) > 1:
        return []
    if len(content) > len(inner[0]):
        return inner
    return [{column: values[index] for column, values in content.items()} for index in inner[0]]


def split_of(name: str) -> str | None:
    """The split that a name speaks of: "val", "oos_train", "test-clean"."""
    named = {SPELLINGS[part] for part in re.split(r"[^a-z]+", name.lower()) if part in SPELLINGS}
    return named.pop() if len(named) == 1 else None


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict | list)


def _listed(splits: Mapping[str, str]) -> str:
    parts = {split: [repr(name) for name in splits if splits[name] == split] for split in splits.values()}
    return ", ".join(f"{split} from {' and '.join(names)}" for split, names in parts.items())


def _table(path: Path, parts: Sequence[tuple[str | None, list[Any]]], note: str) -> FileTable:
    """One table of all lists; the split of each becomes a column."""
    shapes = {type(row) for _, rows in parts for row in rows}
    if not shapes or not (shapes == {dict} or shapes == {list}):
        raise UserError(f'{path} is not a list of objects: give [{{"text": ..., "label": ...}}, ...].')
    numbered = enumerate(((split, row) for split, rows in parts for row in rows), start=1)
    if shapes == {list}:
        return _from_lists(path, list(numbered), note)
    rows = [FileRow(number, row | ({SPLIT: split} if split else {})) for number, (split, row) in numbered]
    return FileTable(path, list(rows[0].fields), rows, named=True, unit="row", notes=(note,))


def _from_lists(path: Path, numbered: list[tuple[int, tuple[str | None, list[Any]]]], note: str) -> FileTable:
    """Rows that are lists of fields, without names of columns."""
    width = len(numbered[0][1][1])
    columns = [str(place + 1) for place in range(width)]
    rows, bad = [], []
    for number, (split, cells) in numbered:
        if len(cells) != width:
            where = f"{path}, row {number}"
            bad.append(BadRow(where, f"{where} has {len(cells)} fields, expected {width}.", content_of(cells)))
            continue
        fields = dict(zip(columns, cells, strict=True))
        rows.append(FileRow(number, fields | ({SPLIT: split} if split else {})))
    names = [*columns, SPLIT] if SPLIT in rows[0].fields else columns
    return FileTable(path, names, rows, named=False, unit="row", notes=(note,), bad=tuple(bad))

"""Keys and values from a file or from typed numbers, checked before any computation.

Files: .npy (read without pickle), .json (a list of rows), .tsv, and anything else as rows of numbers
separated by commas or spaces. Typed: rows separated by semicolons, "1 0; 0 1".
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from tokenize import TokenError
from typing import Any, ParamSpec, TypeVar

import numpy as np

from attnlab.base.errors import UserError
from attnlab.base.files import read_text
from attnlab.explore.attend import Array

P = ParamSpec("P")
R = TypeVar("R")
# Squares and sums of anything smaller stay finite in double precision.
LARGEST = 1e100
MATRICES = ("keys", "values", "basis_a", "basis_b")
VECTORS = ("query", "target")
# Random square matrices of this size take seconds.
MOST_DIMENSIONS = 2000


def read_matrix(given: str, what: str, typed: str = 'rows like "1 0; 0 1"') -> Array:
    """A matrix (rows, columns) from a file name or from typed numbers; `what` and `typed` are words of errors."""
    path = Path(given)
    if not given.strip():
        raise UserError(f"{what} is empty: give a file or type {typed}.")
    if _exists(path) and path.is_dir():
        raise UserError(f"{what}: {given} is a folder; give a file or type {typed}.")
    if _exists(path):
        return _checked(_from_file(path, what), f"{what} in {path}")
    if ";" in given or _starts_with_a_number(given):
        return _checked(_from_lines(given.split(";"), f"{what}, row"), what)
    raise UserError(f"{what}: the file {given!r} does not exist; give a file or type {typed}.")


def read_vector(given: str, what: str) -> Array:
    """One row (or one column) of numbers, from a file or typed."""
    matrix = read_matrix(given, what, 'numbers like "1 0 2"')
    if 1 not in matrix.shape:
        rows, columns = matrix.shape
        raise UserError(f"{what} must be one vector, got {rows} rows of {columns} numbers.")
    return matrix.ravel()


def read_rows(given: str, count: int, what: str) -> tuple[int, ...]:
    """Indices such as "0,1", counted from 0 and below `count`, sorted and without repeats."""
    try:
        indices = [int(part) for part in re.split(r"[,\s]+", given.strip())]
    except ValueError:
        raise UserError(f"{what} {given!r} is not a list of whole numbers; write for example 0,1.") from None
    for index in indices:
        check_index(index, count, what)
    return tuple(sorted(set(indices)))


def takes_numbers(explore: Callable[P, R]) -> Callable[..., R]:
    """Decorate an exploration: its matrices and vectors may be lists, arrays, tensors, files or typed numbers."""
    signature = inspect.signature(explore)

    @wraps(explore)
    def with_arrays(*args: Any, **settings: Any) -> R:
        given = signature.bind(*args, **settings).arguments
        for name, value in given.items():
            if name == "scores":
                given[name] = _numbers(value, name)  # with any number of axes
            elif name in MATRICES or (name in VECTORS and value is not None):
                given[name] = as_array(value, name)
        return explore(**given)  # type: ignore[call-arg]

    return with_arrays


def as_array(value: Any, what: str) -> Array:
    """Numbers in double precision, checked: rows and columns, or one vector where that is what `what` is."""
    if isinstance(value, str | Path):
        return read_vector(str(value), what) if what in VECTORS else read_matrix(str(value), what)
    numbers = _numbers(value, what)
    checked = _checked(numbers, what)
    return checked.ravel() if what in VECTORS and numbers.ndim == 1 else checked


def _numbers(value: Any, what: str) -> Array:
    if hasattr(value, "detach"):  # a tensor, on any device and of any type
        value = value.detach().cpu().double().numpy()
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{what}: expected numbers, in rows of the same length, got {str(value)[:80]}.") from None


def check_index(index: int, count: int, what: str) -> int:
    if not 0 <= index < count:
        there = "there is 1 key, number 0" if count == 1 else f"there are {count} keys, counted from 0 to {count - 1}"
        raise UserError(f"{what} {index} is out of range: {there}.")
    return index


def check_seed(seed: int) -> None:
    if seed < 0:
        raise UserError(f"the seed must be 0 or a positive whole number, got {seed}.")


def check_pair(keys: Array, values: Array) -> None:
    """Each key belongs to one value."""
    if len(keys) != len(values):
        raise UserError(
            f"K has {len(keys)} rows and V has {len(values)}: each key needs its own value, so give both "
            "the same number of rows."
        )


def check_width(vector: Array, keys: Array, what: str) -> None:
    if len(vector) != keys.shape[1]:
        raise UserError(f"{what} has {len(vector)} numbers, but the keys have {keys.shape[1]}: make them equal.")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # typed numbers can be longer than a file name may be
        return False


def _starts_with_a_number(given: str) -> bool:
    try:
        float(re.split(r"[,\s]+", given.strip(" [(,"))[0])
    except ValueError:
        return False
    return True


def _from_file(path: Path, what: str) -> Array:
    try:
        if path.suffix == ".npy":
            # Mapped, so that a header that promises more than the file has is an error, not an allocation.
            return np.array(np.lib.format.open_memmap(path, mode="r"), dtype=np.float64)
        text = read_text(path)
        if path.suffix == ".json":
            return _from_json(text, path)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno}: not valid JSON ({error.msg}).") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, EOFError, TypeError, OverflowError, RecursionError, MemoryError, SyntaxError, TokenError):
        raise UserError(
            f"{path} does not contain {what} as a plain array of numbers; save it as .npy, .csv or .json."
        ) from None
    return _from_lines(text.split("\n"), f"{path}, line")


def _from_json(text: str, path: Path) -> Array:
    rows = json.loads(text)
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise UserError(f"{path} must be a list of rows, like [[1, 0], [0, 1]].")
    return _from_lines([" ".join(json.dumps(entry) for entry in row) for row in rows], f"{path}, row")


def _from_lines(lines: list[str], where: str) -> Array:
    """Rows of numbers; blank lines are skipped; every error names its line."""
    rows: list[list[float]] = []
    for number, line in enumerate(lines, start=1):
        entries = re.split(r" *[,\t] *| +", line.strip().strip("[](),").strip())
        if entries == [""]:
            continue
        row = [_number(entry, f"{where} {number}") for entry in entries]
        if rows and len(row) != len(rows[0]):
            raise UserError(
                f"{where} {number}: expected {len(rows[0])} numbers as in the rows before, got {len(row)}; all rows "
                "need the same length."
            )
        rows.append(row)
    return np.array(rows, dtype=np.float64)


def _number(entry: str, where: str) -> float:
    try:
        number = float(entry)
    except ValueError:
        raise UserError(f"{where}: {entry!r} is not a number; write plain numbers like 0.5 or -1e-3.") from None
    if not abs(number) < LARGEST:
        raise UserError(f"{where}: {entry} cannot be used; all numbers must be finite and below {LARGEST:g}.")
    return number


def _checked(matrix: Array, what: str) -> Array:
    if matrix.size == 0:
        raise UserError(f"{what}: no numbers found; give at least one row.")
    matrix = np.atleast_2d(matrix)
    if matrix.ndim != 2:
        raise UserError(f"{what}: expected rows and columns, got an array with {matrix.ndim} axes.")
    bad = np.argwhere(~(np.abs(matrix) < LARGEST))
    if len(bad):
        row, column = bad[0]
        raise UserError(
            f"{what}: row {row}, column {column} (counted from 0) is {matrix[row, column]}; all numbers "
            f"must be finite and below {LARGEST:g}."
        )
    return matrix

"""Rows of a Parquet file, with a limit on what they become in memory.

The format packs equal values together: a file of a megabyte can hold gigabytes. Texts are therefore read as
dictionaries, which stay small, and the size of all values is computed from them before any row is built. Columns of
lists and records are not read: neither a text nor a label is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError, first_line

GIB = 2**30
LARGEST = 2 * GIB
AT_ONCE = 256  # rows of a batch
PER_VALUE = 100  # bytes of a Python object and its place in a row


def read_rows(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """The names of the columns, and one row after the other."""
    if not path.is_file():
        raise UserError(f"{path} does not exist: check the name.")
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UserError(f"{path} is a Parquet file, which needs pyarrow: pip install pyarrow.") from None
    try:
        with parquet.ParquetFile(path) as file:
            flat = [field for field in file.schema_arrow if not pyarrow.types.is_nested(field.type)]
            size = file.metadata.num_rows * sum(PER_VALUE + _width(field.type) for field in flat)
        _check_size(path, size)
        texts = [field.name for field in flat if _is_text(field.type)]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            table = file.read([field.name for field in flat])
        _check_size(path, size + sum(map(_text_bytes, table.columns)))
        return list(table.column_names), table.to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise UserError(f"{path} cannot be read as Parquet: {first_line(error)}.") from None


def stream_rows(path: Path) -> tuple[list[str], Callable[[], Iterator[dict[str, Any]]]]:
    """The names of the columns, and the rows, of which a few are held at once."""
    if not path.is_file():
        raise UserError(f"{path} does not exist: check the name.")
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UserError(f"{path} is a Parquet file, which needs pyarrow: pip install pyarrow.") from None

    def rows() -> Iterator[dict[str, Any]]:
        try:
            with parquet.ParquetFile(path, read_dictionary=texts) as file:
                for batch in file.iter_batches(AT_ONCE, columns=columns):
                    table = pyarrow.Table.from_batches([batch])
                    _check_size(path, sum(map(_text_bytes, table.columns)))
                    yield from table.to_pylist()
        except (pyarrow.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
            raise UserError(f"{path} cannot be read as Parquet: {first_line(error)}.") from None

    try:
        with parquet.ParquetFile(path) as file:
            flat = [field for field in file.schema_arrow if not pyarrow.types.is_nested(field.type)]
            columns, texts = [field.name for field in flat], [field.name for field in flat if _is_text(field.type)]
            if not file.metadata.num_rows or not columns:
                raise UserError(f"{path} is empty: give at least one row with a text.")
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise UserError(f"{path} cannot be read as Parquet: {first_line(error)}.") from None
    return columns, rows


def _check_size(path: Path, size: int) -> None:
    if size > LARGEST:
        raise UserError(
            f"{path} unpacks to about {size / GIB:,.1f} GiB, more than the {LARGEST // GIB} GiB that are read from a "
            "Parquet file: split it, or write it as .jsonl, which has no limit."
        )


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return any(test(kind) for test in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary))


def _width(kind: Any) -> int:
    """The bytes of a value whose type has a fixed size."""
    try:
        return kind.bit_width // 8
    except ValueError:
        return 0


def _text_bytes(column: Any) -> int:
    """The bytes of the texts of a column when each row has its own."""
    from pyarrow import compute, types

    size = 0
    for chunk in column.chunks:
        if types.is_dictionary(chunk.type):
            lengths = compute.cast(compute.binary_length(chunk.dictionary), "int64")
            size += compute.sum(lengths.take(chunk.indices)).as_py() or 0
    return size

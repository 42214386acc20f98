"""The lines of a text file, or one sentence on why they cannot be read."""

from __future__ import annotations

from pathlib import Path

from attnlab.errors import UserError


def read_lines(path: Path) -> list[tuple[int, str]]:
    """All lines that are not blank, each with its number, counted from 1.

    Lines end at a newline (or a Windows carriage return and newline) and nowhere else: the other
    separators of Unicode are characters of the text. Characters are left as they are.
    """
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: check the name.") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder: give a text file.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        text = raw.decode("utf-8-sig")  # a byte order mark is no part of the text
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line} is not UTF-8: save the file as UTF-8.") from None
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    kept = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not kept:
        raise UserError(f"{path} is empty: give a file with at least one line of text.")
    return kept

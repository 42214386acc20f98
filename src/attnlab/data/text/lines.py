"""A text file, whole or by lines, or one sentence on why it cannot be read."""

from __future__ import annotations

from pathlib import Path

from attnlab.base.errors import UserError


def read_lines(path: Path) -> list[tuple[int, str]]:
    """All lines of a file that are not blank, each with its number."""
    return numbered_lines(read_text(path))


def numbered_lines(text: str) -> list[tuple[int, str]]:
    """All lines that are not blank, each with its number, counted from 1.

    Lines end at a newline (or a Windows carriage return and newline) and nowhere else: the other
    separators of Unicode are characters of the text. Characters are left as they are.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


def read_text(path: Path) -> str:
    """The whole text of a file, which must not be blank."""
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
    if not text.strip():
        raise UserError(f"{path} is empty: give a file with at least one line of text.")
    return text

"""The text of a file, whatever its encoding, and unpacked if it was compressed by gzip."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from attnlab.base.errors import UserError
from attnlab.base.files import read_bytes

GZIP_MAGIC = b"\x1f\x8b"
MOST_UNPACKED = 2 << 30
"""Bytes that a compressed file may unpack to: a small file can hold any number of zeros."""
MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NAMED = 3  # lines that a note lists
WESTERN = 0.4
"""The share of characters beyond ASCII from which on a text of single bytes is hardly a Western language."""
OTHERS = ("cp1251", "koi8-r", "gb18030", "big5", "shift_jis", "euc-kr")
"""Encodings of other languages that a question names, if they fit."""
_SHOWN = 12  # characters


class Decoded(NamedTuple):
    text: str
    encoding: str
    notes: tuple[str, ...] = ()


def read_raw(path: Path) -> bytes:
    """The bytes of a file, unpacked if they are those of gzip."""
    raw = read_bytes(path)
    return _unpack(path, raw) if raw.startswith(GZIP_MAGIC) else raw


def _unpack(path: Path, raw: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            content = file.read(MOST_UNPACKED + 1)
    except (OSError, EOFError, zlib.error):
        raise UserError(f"{path} is a damaged gzip file: make it again.") from None
    if len(content) > MOST_UNPACKED:
        raise UserError(f"{path} unpacks to more than {MOST_UNPACKED >> 30} GB: unpack it, and give a part of it.")
    return content


def decode(path: Path, raw: bytes, encoding: str | None = None) -> Decoded:
    """Text from bytes, in the given encoding or in the one that fits.

    UTF-8 if it is valid, UTF-16 if there is a byte order mark or every other byte is zero. Lines that are not UTF-8
    are Windows-1252, or Latin-1 where that has no character.
    """
    decoded = _given(path, raw, encoding) if encoding else _fitting(path, raw)
    if "\0" in decoded.text:
        raise UserError(f"{path} is a binary file: give rows of text.")
    if not decoded.text.strip():
        raise UserError(f"{path} is empty: give a file with at least one line of text.")
    if "\n" not in decoded.text and "\r" in decoded.text:  # as old Macs end their lines
        return decoded._replace(text=decoded.text.replace("\r", "\n"))
    return decoded


def _given(path: Path, raw: bytes, encoding: str) -> Decoded:
    try:
        name = codecs.lookup(encoding).name
        return Decoded(_unmarked(raw).decode(name) if name == "utf-8" else raw.decode(name).lstrip("\ufeff"), name)
    except LookupError:
        raise UserError(f"--encoding {encoding} is not known: try utf-8, utf-16, cp1252 or latin-1.") from None
    except UnicodeError as error:
        at = getattr(error, "start", 0)
        line = raw[:at].count(b"\n") + 1
        raise UserError(f"{path}, line {line} is not {encoding}: leave out --encoding, or give another one.") from None


def _unmarked(raw: bytes) -> bytes:
    return raw.removeprefix(codecs.BOM_UTF8)


def _fitting(path: Path, raw: bytes) -> Decoded:
    for mark, name in MARKS:
        if raw.startswith(mark):
            return _given(path, raw[len(mark) :], name) if name != "utf-8" else _eight_bits(path, raw[len(mark) :])
    if wide := _without_mark(raw):
        return Decoded(raw.decode(wide), wide, (f"{path.name} is UTF-16 without a byte order mark.",))
    return _eight_bits(path, raw)


def _without_mark(raw: bytes) -> str | None:
    """UTF-16 of mostly Western text: nearly every other byte is zero."""
    start = raw[:4096]
    if len(start) < 4 or len(raw) % 2:
        return None
    for name, high in (("utf-16-le", start[1::2]), ("utf-16-be", start[::2])):
        if high.count(0) > 0.8 * len(high):
            try:
                raw.decode(name)
            except UnicodeDecodeError:
                continue
            return name
    return None


def _eight_bits(path: Path, raw: bytes) -> Decoded:
    try:
        return Decoded(raw.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        pass
    foreign: list[int] = []
    text = "".join(_lines(raw, foreign.append))
    _must_be_western(path, raw, text, foreign)
    more = f" and {len(foreign) - _NAMED:,} more" if len(foreign) > _NAMED else ""
    lines = ", ".join(str(number) for number in foreign[:_NAMED])
    note = f"not UTF-8, read as Windows-1252: line {lines}{more} (--encoding decides)."
    return Decoded(text, "cp1252", (note,))


def decoded_lines(lines: Iterable[bytes]) -> Iterator[str]:
    """Lines of bytes as text, each in UTF-8 or else in Windows-1252, without a byte order mark."""
    for number, line in enumerate(lines):
        yield _line(_unmarked(line) if number == 0 else line)[0]


def _line(line: bytes) -> tuple[str, bool]:
    """The text, and whether it is UTF-8."""
    for encoding in ("utf-8", "cp1252"):
        try:
            return line.decode(encoding), encoding == "utf-8"
        except UnicodeDecodeError:
            continue
    return line.decode("latin-1"), False  # cp1252 leaves five bytes undefined, Latin-1 none


def _lines(raw: bytes, foreign: Callable[[int], None]) -> Iterator[str]:
    for number, line in enumerate(raw.split(b"\n"), start=1):
        text, is_utf8 = _line(line)
        if not is_utf8:
            foreign(number)
        yield f"\n{text}" if number > 1 else text


def _must_be_western(path: Path, raw: bytes, text: str, foreign: Sequence[int]) -> None:
    """Raise for text that Windows-1252 would make nonsense of, with the encodings it may be in.

    In a Western language most letters of a line are in ASCII; in Russian, Chinese or Japanese nearly none are.
    """
    lines = text.split("\n")
    characters = [character for number in foreign for character in lines[number - 1] if not character.isspace()]
    if sum(not character.isascii() for character in characters) <= WESTERN * len(characters):
        return
    line = raw.split(b"\n")[foreign[0] - 1]
    readings = [f"{_start(lines[foreign[0] - 1])!r} with --encoding cp1252"]
    for name in OTHERS:
        try:
            raw.decode(name)
            readings.append(f"{_start(line.decode(name))!r} with --encoding {name}")
        except UnicodeDecodeError:
            continue
    raise UserError(
        f"{path}, line {foreign[0]} is not UTF-8; it may begin with {', or '.join(readings)}: give the encoding."
    )


def _start(line: str) -> str:
    """The beginning of the part that is not in ASCII."""
    place = next((n for n, character in enumerate(line) if not character.isascii()), 0)
    return line[place : place + _SHOWN]

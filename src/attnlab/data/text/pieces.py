"""The text of a file in pieces, so that one of any size is read in bounded memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import read_pieces, read_text

PIECE = 2**22  # bytes that are read at once


class TextPieces:
    """The text of a UTF-8 file, which must not be blank; it can be read several times.

    With `between_words` a piece ends before white space, so that no word is cut in two.
    """

    def __init__(self, path: Path, between_words: bool = False, piece: int = PIECE) -> None:
        self.path, self.between_words, self.piece = path, between_words, piece
        self.whole = read_text(path) if path.is_fifo() else None  # a pipe can be read once only
        self.doing = ""
        """What it is being read for, shown with the share that is read."""

    @property
    def size(self) -> int:
        """Bytes of the file."""
        if self.whole is not None:
            return len(self.whole)
        return self.path.stat().st_size if self.path.is_file() else 0

    def __iter__(self) -> Iterator[str]:
        if self.whole is not None:
            yield self.whole
            return
        blank, rest = True, ""
        for new in self._decoded():
            blank = blank and not new.strip()
            end = self._end(new)
            if end is None:
                rest += new
            elif text := rest + new[:end]:
                rest = new[end:]
                yield text
            else:
                rest = new
        if rest:
            yield rest
        if blank:
            raise UserError(f"{self.path} is empty: give a file with at least one line of text.")

    def _end(self, text: str) -> int | None:
        """Where a piece may end in a new part of the text; None: not in this part."""
        if not self.between_words:
            return len(text)
        return next((n for n in range(len(text) - 1, -1, -1) if text[n].isspace()), None)

    def _decoded(self) -> Iterator[str]:
        """Without a byte order mark."""
        decoder, lines = codecs.getincrementaldecoder("utf-8-sig")(), 0
        for raw in self._raw():
            try:
                yield decoder.decode(raw, final=not raw)
            except UnicodeDecodeError as error:
                line = lines + error.object[: error.start].count(b"\n") + 1
                raise UserError(f"{self.path}, line {line} is not UTF-8: save the file as UTF-8.") from None
            lines += raw.count(b"\n")

    def _raw(self) -> Iterator[bytes]:
        size, done = max(1, self.size), 0
        for raw in read_pieces(self.path, self.piece):
            yield raw
            done += len(raw)
            console.doing(f"{self.path.name}: {self.doing}, {min(1.0, done / size):.0%}")
        yield b""  # the end, where an unfinished character is an error

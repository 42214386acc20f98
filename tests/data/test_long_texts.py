"""Texts of any size: read in pieces, prepared once, and the same tokens as a text read at once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from attnlab.base.errors import UserError
from attnlab.data.text import stream as stream_module
from attnlab.data.text.pieces import TextPieces
from attnlab.data.text.stream import Blocks, Stream, read_stream
from attnlab.data.tokenizers.vocabulary import Vocabulary


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def text_of(seed: int) -> str:
    """Words of several scripts, with characters of one to four bytes, long words, and all kinds of white space."""
    draw = random.Random(seed)
    words = ["to", "be,", "ôtre", "ñandú", "3.14", "1,000", "日本語", "🙂🙂", "x" * 40, "don’t", "ка́к", "⁇", "\ufffd"]
    return "".join(draw.choice(words) + draw.choice([" ", "  ", "\n", "\r\n", "\t", "\u2028"]) for _ in range(300))


def at_once(text: str, level: str, share: float, rare: int) -> tuple[Vocabulary, list[int], list[int]]:
    cut = len(text) - round(share * len(text))
    while level == "words" and 0 < cut < len(text) and not text[cut].isspace():
        cut += 1
    vocabulary = Vocabulary.build([text[:cut]], level, rare if level == "words" else 1)
    return vocabulary, vocabulary.encode(text[:cut]), vocabulary.encode(text[cut:])


@pytest.mark.parametrize("level", ["characters", "words"])
@pytest.mark.parametrize("long", [0, 10**9])
@pytest.mark.parametrize("seed", range(4))
def test_pieces_give_the_tokens_of_the_whole(
    tmp_path: Path, level: str, long: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, path = text_of(seed), tmp_path / "text.txt"
    path.write_bytes(("\ufeff" * (seed % 2) + text).encode())
    size = random.Random(seed).randint(1, 200)
    monkeypatch.setattr(
        stream_module, "TextPieces", lambda path, between_words: TextPieces(path, between_words, piece=size)
    )
    for share in (0.0, 0.13, 0.5, 1.0):
        stream = read_stream(path, level, share, 2, long)
        vocabulary, train, dev = at_once(text, level, share, 2)
        assert stream.vocabulary == vocabulary
        assert (stream.train.tolist(), stream.dev.tolist()) == (train, dev)


def test_a_long_text_is_prepared_once_and_again_when_it_changes(
    tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "text.txt"
    path.write_text("abc " * 50, encoding="utf-8")

    def read() -> tuple[Stream, int]:
        stream = read_stream(path, "characters", 0.1, 1, long=10)
        return stream, capsys.readouterr().err.count("prepared once")

    (first, said), (again, said_again) = read(), read()
    assert (said, said_again) == (1, 0)
    assert torch.equal(first.train, again.train) and first.train.dtype == torch.uint8
    path.write_text("abd " * 50, encoding="utf-8")
    assert read()[1] == 1
    assert len(list((cache / "tokens").iterdir())) == 2
    for file in (cache / "tokens").glob("*/tokens.bin"):
        file.write_bytes(b"x")  # cut short
    assert read()[1] == 1
    blocks = Blocks.cut(read()[0].train, 8)
    assert all(tensor.dtype in (torch.long, torch.bool) for tensor in blocks.collate([0, 1], 0).values())


def test_nobody_writes_into_the_prepared_file(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("abc " * 50, encoding="utf-8")
    read_stream(path, "characters", 0.1, 1, long=10).train.zero_()
    assert int(read_stream(path, "characters", 0.1, 1, long=10).train.count_nonzero()) > 0


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"good\nbad \xff\n", "line 2 is not UTF-8"),
        (b"good\ncut \xe6\x97", "line 2 is not UTF-8"),
        (b" \n\t\n", "is empty"),
        (b"", "is empty"),
    ],
)
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, sentence: str, piece: int) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=sentence):
        list(TextPieces(path, piece=piece))


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, blocked = tmp_path / "text.txt", tmp_path / "file"
    path.write_text("abc " * 50, encoding="utf-8")
    blocked.write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("ATTNLAB_CACHE", str(blocked))
    with pytest.raises(UserError, match="ATTNLAB_CACHE"):
        read_stream(path, "characters", 0.1, 1, long=10)

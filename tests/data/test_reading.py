"""Corpora and question files: what is read, and the one sentence when it cannot be."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.base.errors import UserError
from attnlab.data.questions import Pair, Questions, read_pairs, read_questions
from attnlab.data.text.reading import read_corpus
from attnlab.data.world.files import write_world
from attnlab.data.world.world import World, WorldSpec

Reader = Callable[[Path], object]
READERS: list[Reader] = [read_corpus, read_pairs, read_questions]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data.txt"


def test_a_corpus_has_one_document_a_line_and_no_empty_ones(file: Path) -> None:
    file.write_bytes("First one.\n\nSecond\u2028one.\r\n   \nThird.\n".encode())
    assert read_corpus(file) == ["First one.", "Second\u2028one.", "Third."]


def test_characters_are_left_as_they_are(file: Path) -> None:
    text = "e\u0301 and \u00e9 \u2047 \ufb01 \x0b tab\there "
    file.write_text(text + "\n", encoding="utf-8")
    assert read_corpus(file) == [text]


def test_a_byte_order_mark_is_no_text(file: Path) -> None:
    file.write_text("One.\n", encoding="utf-8-sig")
    assert read_corpus(file) == ["One."]


LINES = st.text(st.characters(exclude_characters="\n\r\ufeff", exclude_categories=["Cs"])).filter(str.strip)


@given(st.lists(LINES, min_size=1))
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, documents: list[str]) -> None:
    file = tmp_path_factory.getbasetemp() / "any.txt"
    file.write_text("\n".join(documents), encoding="utf-8", newline="")
    assert read_corpus(file) == documents


def test_labelled_and_unlabelled_questions(file: Path) -> None:
    file.write_text("Where was A born?\tParis\nWhere was B born?\tNew York\n")
    assert read_pairs(file) == [Pair("Where was A born?", "Paris"), Pair("Where was B born?", "New York")]
    assert read_questions(file).answers == ["Paris", "New York"]
    file.write_text("Where was A born?\n\nWhere was B born?\n")
    assert read_questions(file) == Questions(["Where was A born?", "Where was B born?"], None, [1, 3])


def test_a_written_world_is_read_back(tmp_path: Path) -> None:
    world = World(WorldSpec(people=40))
    write_world(world, tmp_path / "world")
    assert read_corpus(tmp_path / "world" / "corpus.txt") == world.corpus()
    assert read_pairs(tmp_path / "world" / "dev.tsv") == world.questions("dev")


@pytest.mark.parametrize("read", READERS)
def test_a_missing_file_a_folder_and_an_empty_file_are_named(read: Reader, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    for path, reason in [(tmp_path / "none", "does not exist"), (tmp_path, "is a folder"), (empty, "is empty")]:
        with pytest.raises(UserError, match=reason) as caught:
            read(path)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("read", READERS)
def test_a_line_that_is_not_utf8_is_named(read: Reader, file: Path) -> None:
    file.write_bytes(b"q\ta\nq\ta\nq\tZ\xfcrich\n")
    with pytest.raises(UserError, match="line 3 is not UTF-8"):
        read(file)


@pytest.mark.parametrize("read", [read_pairs, read_questions])
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("no answer here", "line 3 has no tab"),
        ("two\ttabs\there", "line 3 has 2 tabs"),
        ("question\t ", "line 3 has no answer"),
        ("\tanswer", "line 3 has no question"),
    ],
)
def test_a_bad_row_is_named_with_its_line_in_the_file(read: Reader, line: str, reason: str, file: Path) -> None:
    file.write_text(f"q\ta\n\n{line}\nq\ta\n")
    with pytest.raises(UserError, match=reason):
        read(file)


def test_answers_on_some_lines_only_are_refused(file: Path) -> None:
    file.write_text("question\nquestion\nquestion\tanswer\n")
    with pytest.raises(UserError, match="line 3 has an answer, line 1 has none"):
        read_questions(file)


@pytest.mark.skipif("ATTNLAB_DATA" not in os.environ, reason="ATTNLAB_DATA names no folder of real data")
def test_the_real_birthplaces_are_read() -> None:
    folder = Path(os.environ["ATTNLAB_DATA"]) / "birthplaces"
    assert len(read_corpus(folder / "wiki.txt")) == 2937
    assert len(read_pairs(folder / "birth_places_train.tsv")) == 2000
    assert len(read_questions(folder / "birth_dev.tsv").answers or []) == 500
    assert read_questions(folder / "birth_test_inputs.tsv").answers is None

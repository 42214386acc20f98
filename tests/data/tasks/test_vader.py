"""The snippets of the source archive: read without unpacking or running anything, from a stand-in built here."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.data.tasks import vader
from attnlab.data.tasks.catalog import load_labelled

ROWS = "1\t2.5\tLovely.\r\n2\t-0.1\tDull [really].\r\n3\t0\tA film.\r\n4\t0.0\tAnother.\r\n"


def tar(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as out:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    return made.getvalue()


def stand_in(rows: str = ROWS, inside: str = "../../") -> bytes:
    inner = tar({f"{inside}{file}": rows.encode() for file in vader.SETS.values()})
    return tar({"v/setup.py": b"raise SystemExit('was run')", f"/v/{vader.INNER}": inner})


def test_labels_follow_the_rating_and_nothing_leaves_the_folder(tmp_path: Path) -> None:
    sets = vader.read_archive(stand_in())
    vader.write_sets(sets, tmp_path / "a" / "out")
    assert (tmp_path / "a" / "out" / "movie.tsv").read_text() == (
        "text\tlabel\nLovely.\tpositive\nDull [really].\tnegative\n"
    )
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {f"a/out/{name}" for name in ("movie.tsv", "amazon.tsv", "nyt.tsv", "tweets.tsv", "README.txt")}
    assert str(sets["tweets"]) == "1 positive, 1 negative, 2 rated 0 and dropped"
    assert "SST-2" in (tmp_path / "a" / "out" / "README.txt").read_text()


def test_what_is_written_is_read_as_labelled_texts(tmp_path: Path) -> None:
    rows = "".join(f"{n}\t{1 if n % 2 else -1}\tsnippet {n}\r\n" for n in range(40))
    vader.write_sets(vader.read_archive(stand_in(rows)), tmp_path / "out")
    data = load_labelled(tmp_path / "out" / "nyt.tsv")
    assert data.classes == ("negative", "positive")
    assert sum(map(len, data.splits.values())) == 40


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"no archive", "cannot be read"),
        (stand_in()[:-200], "cannot be read"),
        (tar({"v/README": b""}), f"has no {vader.INNER}"),
        (stand_in("1\tgood\tx\n"), "line 1 is not an id, a rating and a text"),
    ],
    ids=["not an archive", "cut short", "nothing inside", "other columns"],
)
def test_another_archive_is_one_sentence(content: bytes, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        vader.read_archive(content)


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "movie.tsv").write_text("mine")
    with pytest.raises(UserError, match="not empty"):
        vader.write_sets(vader.read_archive(stand_in()), tmp_path)
    assert (tmp_path / "movie.tsv").read_text() == "mine"


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip, the real one, takes for the registry."""
    folder = tmp_path / "registry"
    folder.mkdir()
    for name, value in {"CONFIG_FILE": "/dev/null", "NO_INDEX": "1", "FIND_LINKS": str(folder)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return folder


def test_the_archive_comes_from_where_pip_looks_and_must_have_its_checksum(registry: Path) -> None:
    content = stand_in()
    (registry / "vaderSentiment-2.5.tar.gz").write_bytes(content)
    (registry / "vaderSentiment-2.5.1.tar.gz").write_bytes(b"another")
    found = vader.fetch_source("vaderSentiment", "2.5", hashlib.sha256(content).hexdigest())
    assert found == content
    with pytest.raises(UserError, match="unexpected checksum"):
        vader.fetch_source("vaderSentiment", "2.5", vader.SHA256)


def test_an_address_in_a_listing_is_found_without_its_fragment() -> None:
    said = "  Found link https://registry.example/9/v/V-2.5.tar.gz#sha256=b9 (from https://registry.example/), version"
    assert vader.find_address(said, "v", "2.5") == "https://registry.example/9/v/V-2.5.tar.gz"
    assert vader.find_address(said, "v", "2.5.1") is None


def test_no_registry_is_one_sentence(registry: Path) -> None:
    with pytest.raises(UserError, match="pip finds no source archive"):
        vader.fetch_source("vaderSentiment", "2.5", vader.SHA256)


def test_no_pip_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = subprocess.CompletedProcess([], 1, "", "/usr/bin/python3: No module named pip\n")
    monkeypatch.setattr(vader.subprocess, "run", lambda *_, **__: answer)
    with pytest.raises(UserError, match="has no pip"):
        vader.fetch_source("vaderSentiment", "2.5", vader.SHA256)

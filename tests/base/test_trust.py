"""Code is executed only if the user allowed exactly its content."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attnlab.attention.registry import load_variant
from attnlab.base import trust
from attnlab.base.errors import UserError
from attnlab.config.flags import allow_typed

EVIL = """from pathlib import Path
import torch
Path(__file__).with_name('executed').touch()
class M(torch.nn.Module): pass
"""


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "config"
    monkeypatch.setenv("ATTNLAB_CONFIG", str(folder))
    monkeypatch.setattr(trust, "_this_process", set())
    return folder


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    file = tmp_path / "evil.py"
    file.write_text(EVIL)
    return file


def test_a_file_that_was_not_allowed_is_not_executed(evil: Path) -> None:
    with pytest.raises(UserError, match=f"SHA-256 {trust.checksum(EVIL.encode())}.*attnlab trust {evil}"):
        load_variant(str(evil))
    assert not evil.with_name("executed").exists()


def test_an_allowed_file_is_executed_until_it_changes(evil: Path, config: Path) -> None:
    key = trust.allow(evil)
    load_variant(str(evil))
    assert evil.with_name("executed").exists()
    assert json.loads((config / "trusted.json").read_text())["allowed"] == {key: str(evil)}
    evil.write_text(EVIL + "# changed\n")
    with pytest.raises(UserError, match="not allowed"):
        load_variant(str(evil))


def test_a_compiled_copy_beside_the_file_is_never_what_runs(evil: Path) -> None:
    import importlib.util
    import py_compile

    harmless = EVIL.replace("'executed'", "'executex'")  # the same size, so that a cache would be taken for current
    stat = evil.stat()
    py_compile.compile(str(evil), importlib.util.cache_from_source(str(evil)))
    evil.write_text(harmless)
    os.utime(evil, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    trust.allow(evil)
    load_variant(str(evil))
    assert evil.with_name("executex").exists() and not evil.with_name("executed").exists()


def test_another_process_of_the_user_knows_what_was_allowed(evil: Path) -> None:
    code = f"from attnlab.attention.registry import load_variant; load_variant({str(evil)!r})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 1
    trust.allow(evil)
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("typed", ["attention={}", "attention=vanilla,{}", "vary=lr=1,2; model.attention={},linear"])
def test_typing_a_file_allows_it(evil: Path, typed: str) -> None:
    allow_typed(typed.format(evil))
    assert trust.checksum(EVIL.encode()) in trust.allowed_files()


def test_typing_it_as_something_else_does_not(tmp_path: Path) -> None:
    file = tmp_path / "my_attention.py"
    file.write_text(EVIL)
    allow_typed(f"corpus={file}")
    assert trust.allowed_files() == {}


def test_what_is_forgotten_is_refused_again(evil: Path) -> None:
    trust.forget(trust.allow(evil))
    with pytest.raises(UserError, match="not allowed"):
        load_variant(str(evil))


def test_a_damaged_list_is_one_sentence(evil: Path, config: Path) -> None:
    config.mkdir()
    (config / "trusted.json").write_text("[")
    with pytest.raises(UserError, match=r"trusted\.json cannot be read"):
        load_variant(str(evil))


def test_a_folder_that_cannot_be_written_allows_in_this_process(
    evil: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text("a file where the folder should be")
    trust.allow(evil)
    load_variant(str(evil))
    assert "in this process only" in " ".join(capsys.readouterr().err.split())


def test_the_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ATTNLAB_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert trust.config_folder() == tmp_path / "attnlab"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert trust.config_folder() == tmp_path / ".config" / "attnlab"

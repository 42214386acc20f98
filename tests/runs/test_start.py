"""A folder becomes a run at once, at the end of its start; what was killed before is begun anew."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from attnlab.base import files
from attnlab.base.errors import UserError
from attnlab.base.leftovers import clean, temporary
from attnlab.runs import RunFolder, is_run, read_config, read_record, read_status
from attnlab.runs import folder as module
from attnlab.runs.folder import may_begin

SETTINGS = {"optimizer": {"lr": 0.1}}


class Killed(BaseException):
    pass


def begin(path: Path, overwrite: bool = False) -> RunFolder:
    return RunFolder.create(
        path, "pretrain", SETTINGS, 7, overwrite, {"vocabulary.json": "[]"}, settings=SETTINGS, data={"documents": 3}
    )


@pytest.mark.parametrize("before", ["status.json", "config.yaml", "vocabulary.json", "run.json"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_killed_before_a_file_of_its_start_it_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, overwrite: bool
) -> None:
    write = files.write_bytes

    def killed(path: Path, content: bytes) -> None:
        if path.name == before:
            temporary(path).write_bytes(content[:5])
            raise Killed
        write(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(files, "write_bytes", killed)
        with pytest.raises(Killed):
            begin(tmp_path / "run")
    assert not is_run(tmp_path / "run")
    with pytest.raises(UserError, match="before its run began, start it again"):
        RunFolder.reopen(tmp_path / "run")
    run = begin(tmp_path / "run", overwrite)
    run.close()
    assert {path.name for path in run.path.iterdir()} == {
        "lock",
        "run.json",
        "status.json",
        "config.yaml",
        "vocabulary.json",
    }


def test_from_the_first_moment_a_run_has_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = module.write_record

    def look(path: Path, record: dict[str, object]) -> None:
        assert not is_run(path)
        write(path, record)
        assert read_config(path) == SETTINGS and read_status(path)["state"] == "running"
        assert read_record(path)["data"] == {"documents": 3} and read_record(path)["files"]["vocabulary.json"]

    monkeypatch.setattr(module, "write_record", look)
    begin(tmp_path / "run").close()


@pytest.mark.parametrize("name", ["notes.txt", "config.yaml"])
def test_a_folder_of_somebody_is_not_taken_for_a_start(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match="already exists"):
        may_begin(tmp_path)
    with pytest.raises(UserError, match="not a run folder"):
        may_begin(tmp_path, overwrite=True)


def test_killed_while_it_is_replaced_it_can_be_replaced_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(tmp_path / "run").close()
    removed: list[str] = []
    remove = module.remove

    def killed(path: Path) -> None:
        if len(removed) == 2:
            raise Killed
        removed.append(path.name)
        remove(path)

    with monkeypatch.context() as patched:
        patched.setattr(module, "remove", killed)
        with pytest.raises(Killed):
            begin(tmp_path / "run", overwrite=True)
    assert "run.json" not in removed
    begin(tmp_path / "run", overwrite=True).close()
    assert read_config(tmp_path / "run") == SETTINGS


def test_left_overs_are_cleaned_by_the_next_that_holds_the_lock(tmp_path: Path) -> None:
    run = begin(tmp_path / "run")
    run.close()
    inner = run.path / "pretrain" / ".run.json.0123456789abcdef.tmp"
    inner.parent.mkdir()
    mine = [run.path / ".notes.old", run.path / ".hidden"]
    for path in (run.path / ".run.json.77.tmp", temporary(run.path / "report.html"), inner, *mine):
        path.write_text("half")
    temporary(run.path / "figures", "partial").mkdir()
    read_status(run.path), read_record(run.path)
    assert len(list(run.path.glob(".*"))) == 5, "a reader leaves them"
    RunFolder.reopen(run.path).close()
    assert sorted(run.path.glob(".*")) == sorted(mine)
    assert inner.exists(), "of a run inside, its own process cleans up"


def test_what_was_replaced_by_nothing_is_put_back(tmp_path: Path) -> None:
    old, gone = temporary(tmp_path / "model", "old"), temporary(tmp_path / "other", "old")
    for path in (old, gone, tmp_path / "other"):
        path.mkdir()
    clean(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"model", "other"}


def test_a_temporary_file_is_never_opened_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("mine")
    link.symlink_to(target)
    monkeypatch.setattr(files, "temporary", lambda path: link)
    with pytest.raises(FileExistsError):
        files.write_text(tmp_path / "run.json", "theirs")
    assert target.read_text() == "mine"


def test_temporary_names_differ_and_keep_the_permissions_of_a_plain_file(tmp_path: Path) -> None:
    assert temporary(tmp_path / "a") != temporary(tmp_path / "a")
    (tmp_path / "plain").write_text("")
    files.write_text(tmp_path / "whole", "")
    assert (tmp_path / "plain").stat().st_mode == (tmp_path / "whole").stat().st_mode


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_lock_that_is_no_file_is_one_sentence(tmp_path: Path, kind: str) -> None:
    run = begin(tmp_path / "run")
    run.close()
    lock = run.path / "lock"
    lock.unlink()
    lock.mkdir() if kind == "folder" else lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=f"is a {kind}, not the lock of a run"):
        RunFolder.reopen(run.path)
    assert read_status(run.path)["state"] in ("running", "interrupted")
    assert not (tmp_path / "elsewhere").exists()


def test_a_damaged_status_is_a_run_that_was_interrupted(tmp_path: Path) -> None:
    run = begin(tmp_path / "run")
    run.set_status("finished")
    run.close()
    for text in ("", "[]", '{"state": 5}', '{"state": "gone"}', "[" * 100_000, '{"state": "fini'):
        (run.path / "status.json").write_text(text)
        assert read_status(run.path)["state"] == "interrupted" and "status.json" in read_status(run.path)["reason"]
    (run.path / "status.json").write_text('{"state": "failed", "reason": 7, "pid": "x"}')
    assert read_status(run.path)["reason"] == ""


def test_whether_a_run_is_active_is_decided_by_its_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the clock nor the name of the machine matters, and another machine's run stays as it was reported."""
    run = begin(tmp_path / "run")
    status = json.loads((run.path / "status.json").read_text())
    monkeypatch.setattr("platform.node", lambda: "renamed")
    assert read_status(run.path)["state"] == "running"
    run.close()
    assert read_status(run.path)["state"] == "interrupted"
    assert RunFolder.reopen(run.path).close() is None, "nobody was kept from it"
    assert not list(run.path.glob(".*"))
    (run.path / "status.json").write_text(json.dumps(status | {"host": "elsewhere", "boot": "another"}))
    found = read_status(run.path)
    assert found["state"] == "running" and "elsewhere" in found["reason"]


def test_a_folder_that_cannot_be_written_to_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begin(tmp_path / "run")
    run.set_status("finished")
    run.close()

    def refused(*_: object, **__: object) -> int:
        raise OSError(30, os.strerror(30))

    monkeypatch.setattr(files, "write_new", refused)
    with pytest.raises(UserError, match="cannot be changed: Read-only file system"):
        RunFolder.reopen(run.path)
    with pytest.raises(UserError, match="cannot be stored there: Read-only file system"):
        begin(tmp_path / "other")
    assert read_status(run.path)["state"] == "finished" and read_record(run.path)["seed"] == 7


def test_a_run_that_ends_while_it_is_looked_at_was_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnlab.runs import status as looked_at

    run = begin(tmp_path / "run")

    def ended(path: Path) -> bool:
        run.set_status("finished")
        run.close()
        return False

    monkeypatch.setattr(looked_at, "is_locked", ended)
    assert read_status(run.path)["state"] == "finished"

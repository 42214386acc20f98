"""Promises of SECURITY.md that are not about a command on a stranger's file."""

from __future__ import annotations

import ast
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT
from tests.security import payloads

import attnlab as lab
from attnlab.base import trust
from attnlab.base.children import MODULE
from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.base.machine import facts
from attnlab.base.secrets import without_passwords
from attnlab.report.page import Passage, Table, write_page

SOURCES = sorted((ROOT / "src" / "attnlab").rglob("*.py"))


@pytest.fixture(autouse=True)
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARKER", str(tmp_path / "executed"))
    monkeypatch.setenv("ATTNLAB_CONFIG", str(tmp_path / "config"))
    monkeypatch.setattr(trust, "_this_process", set())
    return tmp_path / "executed"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of a stranger, with an attention of the stranger's own, received by a user who has allowed nothing."""
    folder = tmp_path / "stranger"
    folder.mkdir()
    (folder / "evil.py").write_text(payloads.ATTENTION)
    (folder / "text.txt").write_text("the cat sat on the mat. " * 60)
    model = lab.GPT(attention=folder / "evil.py", layers=1, heads=2, width=16, context=16)
    quick: dict[str, Any] = {"steps": 2, "threads": 1, "precision": "fp32", "batch_size": 4}
    lab.train(model, folder / "text.txt", run=folder / "run", **quick)
    Path(os.environ["MARKER"]).unlink()
    trust._this_process.clear()
    shutil.rmtree(tmp_path / "config")
    return folder / "run"


def test_python_executes_a_run_s_code_only_when_it_is_named_or_allowed(run: Path, marker: Path) -> None:
    with pytest.raises(UserError, match="code that you have not allowed"):
        _ = lab.load(run).model
    assert not marker.exists()
    copy = run / "attention.py"
    assert copy.read_bytes() == (run.parent / "evil.py").read_bytes()
    assert trust.checksum(copy.read_bytes()) in (run / "run.json").read_text()
    _ = lab.load(run, attention=copy).model
    assert marker.exists()


def test_a_run_is_repeated_after_its_code_was_allowed(run: Path, marker: Path) -> None:
    trust.allow(run / "attention.py")
    _ = lab.load(run).model
    assert marker.exists()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def git(folder: Path, *words: str) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    environment = {name: value for name, value in os.environ.items() if name != "MARKER"}
    subprocess.run(["git", *who, "-C", str(folder), *words], check=True, env=environment, capture_output=True)


def test_the_commit_of_a_folder_is_read_without_its_programs(repository: Path, marker: Path) -> None:
    program = repository.parent / "program.sh"
    program.write_text('#!/bin/sh\ntouch "$MARKER"\ncat\n')
    program.chmod(0o755)
    hook = repository / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(program, hook)
    for name in ("core.fsmonitor", "core.sshCommand", "filter.evil.clean", "diff.external"):
        git(repository, "config", name, str(program))
    (repository / ".gitattributes").write_text("* filter=evil\n")
    os.utime(repository / "a.txt", (1, 1))
    found = facts.git_commit(repository)
    assert found is not None and found["changed"] is None
    assert not marker.exists()


def test_an_ordinary_repository_says_whether_it_is_changed(repository: Path) -> None:
    found = facts.git_commit(repository)
    assert found is not None and found["changed"] is False
    (repository / "a.txt").write_text("b\n")
    found = facts.git_commit(repository)
    assert found is not None and found["changed"] is True and re.fullmatch("[0-9a-f]{40}", found["commit"])


def test_a_child_does_not_import_from_the_present_folder(tmp_path: Path, marker: Path) -> None:
    for name in ("json", "typing", "torch", "yaml", "typer", "rich", "sitecustomize", "attnlab"):
        (tmp_path / f"{name}.py").write_text(payloads.TOUCH)
    path = str(ROOT / "src")
    done = subprocess.run(
        [*MODULE, "attnlab", "--version"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True
    )
    assert done.returncode == 0 and not marker.exists()


def test_the_list_of_allowed_files_is_the_user_s_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1\n")
    trust.allow(file)
    listed = trust.config_folder() / "trusted.json"
    assert stat.S_IMODE(listed.stat().st_mode) == 0o600
    assert stat.S_IMODE(trust.config_folder().stat().st_mode) == 0o700
    trust._this_process.clear()
    assert trust.read_allowed(file)
    listed.chmod(0o666)
    with pytest.raises(UserError, match="could have been written by another user"):
        trust.read_allowed(file)


def test_what_a_stranger_wrote_is_text_in_a_report(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    passage = Passage(evil, [evil], [Table([evil], [[evil]])], printed=evil)
    write_page(tmp_path / "report.html", evil, evil, [passage], warning=evil)
    page = (tmp_path / "report.html").read_text()
    assert evil not in page and "<img" not in page and page.count("&lt;script&gt;") >= 6


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:a/b@c:d%e#f@host/db", "postgresql://me:***@host/db"),
        ("see https://me:pw@host/x, then", "see https://me:***@host/x, then"),
        ("host=h password=secret dbname=d", "host=h password=*** dbname=d"),
        ("postgresql://me@host:5432/db", "postgresql://me@host:5432/db"),
        ("https://host:8080/a", "https://host:8080/a"),
        ("a: b@c", "a: b@c"),
    ],
)
def test_passwords_are_masked_and_nothing_else(text: str, shown: str) -> None:
    assert without_passwords(text) == shown


def calls(names: set[str]) -> Iterator[tuple[Path, ast.Call]]:
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in names:
                yield file, node


def keywords(call: ast.Call) -> set[str]:
    return {ast.unparse(keyword.value) if keyword.arg is None else ast.unparse(keyword) for keyword in call.keywords}


def test_everything_is_read_as_data() -> None:
    """The few functions that could execute what they read are called with that switched off, or not at all."""
    expected = {"torch.load": "weights_only=True", "np.load": "allow_pickle=False"}
    found = 0
    for file, call in calls({"load", "loads", "from_pretrained", "unsafe_load", "full_load", "read_pickle"}):
        name = ast.unparse(call.func)
        if name in expected:
            assert expected[name] in keywords(call), f"{file}: {name}"
        elif name.startswith(("transformers.", "kind.from_pretrained")):
            assert "AS_DATA" in keywords(call), f"{file}: {name}"
        else:
            allowed = {"json.loads", "json.load", "WordPiece.from_pretrained", "BertForMaskedLM.from_pretrained"}
            assert name in allowed or not name.startswith(("yaml", "pickle", "joblib", "marshal")), f"{file}: {name}"
        found += 1
    assert found > 10


def test_no_file_starts_a_shell() -> None:
    assert not [file for file, call in calls({"run", "Popen", "call"}) if "shell=True" in keywords(call)]
    assert not [file for file, call in calls({"system", "popen"}) if ast.unparse(call.func).startswith("os.")]


def test_code_is_executed_in_two_places_only() -> None:
    executed = {str(file.relative_to(ROOT / "src" / "attnlab")) for file, _ in calls({"exec"})}
    assert executed == {"attention/registry.py", "check/judge/inside/loading.py"}
    assert not [file for file, call in calls({"eval"}) if ast.unparse(call.func) == "eval"]


def test_a_written_file_replaces_a_link_and_not_what_it_names(tmp_path: Path) -> None:
    mine, link = tmp_path / "mine.txt", tmp_path / "report.html"
    mine.write_text("mine")
    link.symlink_to(mine)
    write_text(link, "report")
    assert mine.read_text() == "mine" and link.read_text() == "report" and not link.is_symlink()

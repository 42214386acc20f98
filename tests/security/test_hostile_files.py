"""What SECURITY.md promises, tried with hostile files."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.security.cases import CASES, Attnlab, Case, Outcome, make_runs, stage, survives

from attnlab import cli
from attnlab.base import console, trust


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has allowed nothing."""
    monkeypatch.setenv("ATTNLAB_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(trust, "_this_process", set())
    monkeypatch.delenv("MARKER", raising=False)


def in_this_process(words: list[str], text: str) -> Outcome:
    """As a command: its exit code, and what it printed. Another process would take two seconds more."""
    out, stdin = io.StringIO(), io.StringIO(text)
    saved = sys.argv, sys.stdin, sys.stdout, sys.stderr
    files = console.out._file, console.err._file  # None: whatever standard output is when something is printed
    console.out.file = console.err.file = out
    sys.argv, sys.stdin, sys.stdout, sys.stderr = ["attnlab", *words], stdin, out, out
    code = 0
    try:
        cli.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc(file=out)
        code = 1
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = saved
        console.out._file, console.err._file = files
    return Outcome(code, out.getvalue())


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The stranger's runs, made on the stranger's account."""
    root = tmp_path_factory.mktemp("made")
    before = os.environ.get("ATTNLAB_CONFIG"), trust._this_process
    os.environ["ATTNLAB_CONFIG"], trust._this_process = str(root / "config"), set()
    try:
        make_runs(root, in_this_process)
    finally:
        os.environ.pop("ATTNLAB_CONFIG")
        if before[0] is not None:
            os.environ["ATTNLAB_CONFIG"] = before[0]
        trust._this_process = before[1]
    yield root


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_stranger_s_file_executes_and_changes_nothing(
    case: Case, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARKER", "")
    attnlab: Attnlab = in_this_process
    assert survives(case, stage(case, made, tmp_path / "scene", attnlab)) == ""

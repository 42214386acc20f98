"""`attnlab data` from the outside."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attnlab.base.errors import UserError
from attnlab.cli import app

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_the_list_says_what_is_there_and_where_the_rest_was_looked_for(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["data", "list", "--data-folder", str(tmp_path)])
    assert done.exit_code == 0
    assert "360" in done.stdout
    assert str(tmp_path / "sst2" / "train.tsv") in done.stderr


def test_a_file_is_shown_with_balance_repeats_and_brackets_as_they_are(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        lines = [f"{name} [bold]{n}[/bold] [/]\t{'up' if n % 4 else 'down'}" for n in range(8)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["text\tlabel", "in all\tup", *lines]) + "\n")
    done = CliRunner().invoke(app, ["data", "show", str(tmp_path)])
    assert done.exit_code == 0
    assert "7 (77.8%)" in done.stdout
    assert "texts of dev in train too: 1" in done.stdout
    assert "down: train [bold]0[/bold] [/]" in done.stdout
    shown = json.loads(CliRunner().invoke(app, ["data", "show", str(tmp_path), "--json"]).stdout)
    assert shown["counts"]["train"] == {"down": 2, "up": 7}


def test_a_mistake_is_one_sentence_and_an_exit_code(attnlab: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\nfine,1\n,0\n")
    done = attnlab("data", "show", tmp_path / "a.csv")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "a.csv, line 3: the text in 'text' is empty" in done.stderr


@pytest.mark.parametrize(("name", "expected"), [("vader", "is not empty"), ("vder", "did you mean 'vader'")])
def test_nothing_is_downloaded_for_a_mistake(name: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    done = CliRunner().invoke(app, ["data", "get", name, "--out", str(tmp_path)])
    assert isinstance(done.exception, UserError)
    assert expected in str(done.exception)

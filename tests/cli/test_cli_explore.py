"""The commands as a user types them: results to standard output, errors in one sentence and exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from attnlab import cli

COMMANDS = {
    "select": ["--index", "1"],
    "identity": [],
    "average": [],
    "average-some": ["--rows", "0,1"],
    "replace-key": ["--unit", "--rows", "2"],
    "argmax": [],
    "copy": [],
    "extract": ["--mean", "--dimension", "6"],
    "noise": ["--samples", "200"],
    "construct": ["--betas", "1,3"],
    "reach": ["--size", "2"],
}


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["attnlab", "explore", *words])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_numbers_and_an_explanation(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, command, *COMMANDS[command]) == 0
    plain = capsys.readouterr().out
    assert run(monkeypatch, command, *COMMANDS[command], "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["why"] in plain
    assert found["title"] in plain


def test_a_figure_is_written_and_named_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "select.svg"
    assert run(monkeypatch, "select", "--figure", str(path)) == 0
    assert str(path) in capsys.readouterr().err.replace("\n", "")
    assert path.read_text().lstrip().startswith("<?xml")


def test_matrices_from_files_and_typed_agree(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "k.csv").write_text("1,0\n0,1\n")
    assert run(monkeypatch, "select", "--keys", str(tmp_path / "k.csv"), "--values", "3;5", "--json") == 0
    from_file = json.loads(capsys.readouterr().out)
    assert run(monkeypatch, "select", "--keys", "1 0; 0 1", "--values", "3; 5", "--json") == 0
    assert json.loads(capsys.readouterr().out) == from_file
    assert from_file["outputs"][0] == pytest.approx([3.0])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["select", "--keys", "1 0; 0 1", "--values", "1; 2; 3"], "K has 2 rows and V has 3"),
        (["select", "--keys", "1 0; 0 nan", "--values", "1; 2"], "nan cannot be used"),
        (["select", "--keys", "1 0; 0 x", "--values", "1; 2"], "'x' is not a number"),
        (["select", "--keys", "1 0"], "belong together"),
        (["select", "--example", "selektion"], "did you mean 'selection'?"),
        (["select", "--index", "4"], "out of range"),
        (["select", "--norm", "0"], "must be a positive length"),
        (["argmax", "--keys", "1;2", "--values", "1;2"], "the query is missing"),
        (["extract", "--a", "1 0"], "belong together"),
        (["average-some", "--rows", "one"], "not a list of whole numbers"),
        (["reach", "--keys", "nowhere.csv"], "does not exist"),
    ],
)
def test_an_error_is_one_sentence_and_exit_code_2(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.err.count("\n") == 1


def test_a_file_that_is_not_numbers_names_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "k.csv"
    path.write_text("1,0\nzero,one\n")
    assert run(monkeypatch, "select", "--keys", str(path), "--values", "1;2") == 2
    assert "k.csv, line 2: 'zero' is not a number" in capsys.readouterr().err


def test_help_loads_none_of_the_heavy_parts() -> None:
    script = (
        "import sys; sys.argv = ['attnlab', 'explore', '--help']\n"
        "from attnlab.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'numpy', 'scipy', 'matplotlib'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"

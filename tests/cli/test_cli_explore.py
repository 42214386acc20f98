"""The commands as a user types them: results to standard output, errors in one sentence and exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attnlab import cli

COMMANDS = {
    "attend": ["--query", "1,0,2", "--target", "0 0 0"],
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


def test_own_query_keys_and_values_from_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, text in (("q.csv", "1,0\n"), ("k.csv", "1,0\n0,1\n"), ("v.csv", "2\n4\n"), ("t.csv", "3\n")):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    files = ["--query", "q.csv", "--keys", "k.csv", "--values", "v.csv", "--target", "t.csv"]
    assert run(monkeypatch, "attend", *files, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["weights"] == pytest.approx([0.7310586, 0.2689414])
    assert found["output"] == pytest.approx([2.5378828])
    assert found["distance"] == pytest.approx(0.4621172)


@pytest.mark.parametrize(
    ("words", "names", "fields"),
    [
        (["construct"], ["K = I", "Q = ", "V = "], ["key_matrix", "query_matrix", "value_matrix"]),
        (["extract"], ["M = A Aᵀ"], ["matrix"]),
        (["extract", "--mean"], ["M = 2 A Aᵀ"], ["matrix"]),
        (["extract", "--a", "1 0", "--b", "1 1"], ["M = [A 0] [A B]⁺"], ["matrix"]),
    ],
)
def test_the_matrices_are_printed(
    words: list[str],
    names: list[str],
    fields: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, *words) == 0
    plain = capsys.readouterr().out
    assert run(monkeypatch, *words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    for name, field in zip(names, fields, strict=True):
        lines = plain[plain.index(name) :].splitlines()[1:]
        printed = [[float(number) for number in line.split()] for line in lines[: len(found[field])]]
        assert np.array(printed) == pytest.approx(np.array(found[field]), abs=5.1e-5)


def test_a_large_matrix_is_shortened_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "extract", "--dimension", "40") == 0
    assert "M = A Aᵀ (40 × 40, in full with --json)" in capsys.readouterr().out


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
        (["reach", "--rows", "0,1", "--size", "2"], "--size has no effect with --rows"),
        (["reach", "--example", "square", "--keys", "1;2"], "--example has no effect with --keys"),
        (["attend"], "the query is missing"),
        (["attend", "--query", "1 0"], "the query has 2 numbers, but the keys have 3"),
        (["attend", "--query", "1 0 x"], "'x' is not a number"),
        (["attend", "--query", "nowhere.csv"], "does not exist"),
        (["attend", "--query", "1 0 2", "--target", "1 2"], "the target has 2 numbers, but the values have 3"),
        (["attend", "--query", "1 0", "--keys", "1 0; 0 1"], "belong together"),
        (["attend", "--query", "1", "--keys", "1;2", "--values", "1;2;3"], "K has 2 rows and V has 3"),
        (["attend", "--query", "1 0 2", "--figure", "x.docx"], "unknown figure format"),
        (["extract", "--a", "1 0", "--b", "0 1", "--m", "1"], "leave them out with --a and --b"),
        (["extract", "--dimension", "100000"], "at most 2000 dimensions"),
        (["construct", "--seed", "-1"], "the seed must be 0 or"),
        (["construct", "--betas", "1e60"], "up to 1000"),
        (["copy", "--longest", "inf"], "positive finite length"),
        (["noise", "--beta", "nan"], "beta scales the queries"),
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

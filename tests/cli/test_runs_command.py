"""`attnlab runs`: a table that fits the terminal, runs inside others below them, and no reading of whole files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from attnlab.base import console
from attnlab.cli import app
from attnlab.runs.listing import summarise
from attnlab.runs.metrics import last_metrics

REASON = "the loss is nan at step 12, rate 0.1, batch 3: lower the rate with --lr, or look at the examples 1, 2 and 3."


def write_run(path: Path, kind: str, state: str = "finished", reason: str = "", **results: Any) -> None:
    path.mkdir(parents=True)
    started = f"2026-10-01T12:00:{len(list(path.parent.iterdir())):02d}+00:00"
    record = {"kind": kind, "started": started, "steps": 12_000, "results": results}
    record["training"] = {"step": 12_000, "seconds": 5123.4}
    (path / "run.json").write_text(json.dumps(record))
    (path / "status.json").write_text(json.dumps({"state": state, "reason": reason}))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_run(Path("runs/2026-10-01-120000-classify"), "classify", test_accuracy=0.9, dev_accuracy=0.912)
    write_run(Path("runs/2026-10-01-120001-knowledge"), "knowledge", test_accuracy=0.5, collapsed=True)
    write_run(Path("runs/2026-10-01-120001-knowledge/pretrain"), "pretrain")
    write_run(Path("runs/2026-10-01-130000-language"), "language", "failed", REASON)
    write_run(Path("runs/a-long-name-that-a-person-chose-for-a-run-of-theirs"), "pretrain", "interrupted")
    return Path("runs")


def listed(width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(console.out, "width", width)
    done = CliRunner().invoke(app, ["runs"])
    assert done.exit_code == 0, done.output
    return [line.rstrip() for line in done.output.splitlines()]


@pytest.mark.parametrize(
    ("width", "header"),
    [
        (80, ["run", "in", "runs", "state", "done", "result"]),
        (120, ["run", "in", "runs", "kind", "state", "step", "time", "result"]),
        (160, ["run", "in", "runs", "kind", "state", "step", "time", "started", "result"]),
    ],
)
def test_the_table_fits_the_terminal(
    root: Path, width: int, header: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = listed(width, monkeypatch)
    assert lines[0].split() == header and max(map(len, lines)) <= width
    [classify] = [line for line in lines if line.startswith("2026-10-01-120000-classify ")]  # whole, in one line
    assert " finished " in classify and classify.endswith("test 90.0%, dev 91.2%")
    assert any(line.startswith("2026-10-01-130000-language ") and " failed " in line for line in lines)
    assert any(line.startswith("a-long-name-that-a-person-chose") and " interrupted " in line for line in lines)
    assert "…" not in "".join(line for line in lines if "2026-10-01" in line)
    result = lines[0].index("result")
    assert REASON[:60] in " ".join(line[result:] for line in lines).replace("  ", " ")


def test_a_run_inside_another_is_indented_below_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = listed(80, monkeypatch)
    outer = next(n for n, line in enumerate(lines) if line.startswith("2026-10-01-120001-knowledge"))
    assert "collapsed;" in lines[outer] and lines[outer + 1].startswith("  pretrain ")


def test_the_last_measurement_is_read_from_the_end_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert last_metrics(path) == {}
    path.write_text("".join(json.dumps({"step": step, "text": "é" * 50}) + "\n" for step in range(1000)))
    assert last_metrics(path)["step"] == 999
    with path.open("a") as file:
        file.write('{"step": 1000, "lo')  # killed while writing
    assert last_metrics(path)["step"] == 999 and last_metrics(path, block=7)["step"] == 999
    path.write_text("")
    assert last_metrics(path) == {}


def test_a_run_that_trains_shows_its_last_step(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "pretrain", "interrupted")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    del record["training"]
    (tmp_path / "run" / "run.json").write_text(json.dumps(record))
    (tmp_path / "run" / "metrics.jsonl").write_text('{"step": 1, "seconds": 1.0}\n{"step": 2, "seconds": 2.5}\n')
    assert (summarise(tmp_path / "run").step, summarise(tmp_path / "run").seconds) == (2, 2.5)

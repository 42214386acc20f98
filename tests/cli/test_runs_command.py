"""`attnlab runs`: a table that fits the terminal, runs inside others below them, and no reading of whole files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from attnlab.base import console
from attnlab.cli import app
from attnlab.runs import RunFolder
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
        (120, ["run", "in", "runs", "kind", "state", "step", "time", "disk", "result"]),
        (160, ["run", "in", "runs", "kind", "data", "model", "method", "state", "time", "disk", "result"]),
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


def write_settings(path: Path, task: str, model: str, method: str) -> None:
    settings = {"data": {"task": task}, "model": {"name": model}, "tuning": {"method": method}}
    (path / "config.yaml").write_text(yaml.safe_dump(settings))


@pytest.fixture
def tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for n, (method, test) in enumerate([("lora", 0.9), ("full", 0.7), ("head", 0.8)]):
        write_run(Path(f"runs/{method}"), "classify", test_accuracy=test, feature_seconds=100.0 * n)
        write_settings(Path(f"runs/{method}"), f"/data/{method}-reviews.csv", "minilm", method)
        (Path(f"runs/{method}") / "weights").write_bytes(b"0" * (10 + n) * 1_000_000)
    return Path("runs")


def test_data_model_method_and_disk_have_columns(tuned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = "\n".join(listed(170, monkeypatch))
    for word in ("data", "model", "method", "disk", "lora-reviews.csv", "minilm", "head", "12.0 MB"):
        assert word in shown
    assert summarise(Path("runs/head")).seconds == pytest.approx(5123.4 + 200)  # with reading the texts


def names(*words: str) -> list[str]:
    done = CliRunner().invoke(app, ["runs", *words, "--json"])
    assert done.exit_code == 0, done.exception
    return [Path(run["path"]).name for run in json.loads(done.stdout)]


def test_runs_are_sorted_and_filtered(tuned: Path) -> None:
    assert names() == ["lora", "full", "head"]
    assert names("--sort", "test") == ["lora", "head", "full"]
    assert names("--sort", "disk") == ["head", "full", "lora"]
    assert names("--sort", "name") == ["full", "head", "lora"]
    assert names("--method", "head") == names("--data", "head-") == ["head"]
    assert names("--model", "bert") == []
    done = CliRunner().invoke(app, ["runs", "--sort", "size"])
    assert "unknown order 'size'" in str(done.exception)


def test_a_run_is_deleted_only_when_it_is_confirmed(tuned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def delete(*words: str) -> Any:
        return CliRunner().invoke(app, ["runs", "delete", *words])

    refused = delete("runs/full")
    assert "no terminal to ask on; give --yes" in str(refused.exception) and Path("runs/full").is_dir()
    (tuned / "no-run").mkdir()
    assert "is not the folder of a run" in str(delete("runs/full", "runs/no-run", "--yes").exception)
    assert Path("runs/full").is_dir()
    assert "deleted: 1 run." in delete("runs/full", "--yes").stdout
    assert not Path("runs/full").exists() and Path("runs/head").is_dir()


def test_a_run_that_is_written_to_is_not_deleted(tmp_path: Path) -> None:
    made = RunFolder.create(tmp_path / "run", "classify", {}, seed=0)
    done = CliRunner().invoke(app, ["runs", "delete", str(made.path), "--yes"])
    assert done.exception is not None and made.path.is_dir()
    made.close()

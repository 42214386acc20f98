"""A run folder is never overwritten by accident, never shared, and says how its run stands."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.runs import RunFolder, fresh_path, read_config, read_metrics, read_record, read_status
from attnlab.runs.folder import new_folder
from attnlab.runs.listing import differences, find_runs, summarise
from attnlab.runs.metrics import MetricsWriter, cut_back


def make(path: Path, **config: object) -> RunFolder:
    return RunFolder.create(path, "pretrain", config, seed=7)


def test_a_run_describes_itself(tmp_path: Path) -> None:
    run = make(tmp_path / "a", lr=0.1)
    run.close()
    record = read_record(run.path)
    assert read_config(run.path) == {"lr": 0.1}
    assert record["seed"] == 7 and record["kind"] == "pretrain"
    assert {"torch", "python", "attnlab"} - {"attnlab"} <= set(record["versions"])
    assert record["machine"]["cores"] >= 1
    assert "command" in record and "git" in record


def test_an_existing_run_is_kept_unless_told(tmp_path: Path) -> None:
    make(tmp_path / "a", lr=0.1).close()
    with pytest.raises(UserError, match=r"already exists.*--overwrite"):
        make(tmp_path / "a", lr=0.2)
    assert read_config(tmp_path / "a") == {"lr": 0.1}
    RunFolder.create(tmp_path / "a", "pretrain", {"lr": 0.2}, seed=0, overwrite=True).close()
    assert read_config(tmp_path / "a") == {"lr": 0.2}


def test_overwrite_never_deletes_what_is_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match="not a run folder"):
        RunFolder.create(tmp_path, "pretrain", {}, seed=0, overwrite=True)
    assert (tmp_path / "thesis.txt").exists()


def test_two_processes_cannot_use_one_folder_and_a_crash_frees_it(tmp_path: Path) -> None:
    """A child holds the folder; this process is refused, also with overwrite; killed, it is free again."""
    code = (
        "import sys, time; from pathlib import Path; from attnlab.runs import RunFolder\n"
        "run = RunFolder.create(Path(sys.argv[1]), 'pretrain', {}, seed=0); print('ready', flush=True)\n"
        "time.sleep(1800)"
    )
    source = str(Path(__file__).parents[2] / "src")
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "a")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    try:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        with pytest.raises(UserError, match=f"in use by process {child.pid}"):
            RunFolder.reopen(tmp_path / "a")
        with pytest.raises(UserError, match="in use"):
            RunFolder.create(tmp_path / "a", "pretrain", {}, seed=0, overwrite=True)
        assert read_status(tmp_path / "a")["state"] == "running"
    finally:
        child.kill()
        child.wait()
    assert read_status(tmp_path / "a")["state"] == "interrupted"
    RunFolder.reopen(tmp_path / "a").close()


def test_names_of_runs_do_not_clash(tmp_path: Path) -> None:
    first = fresh_path(tmp_path, "pretrain")
    first.mkdir()
    assert fresh_path(tmp_path, "pretrain") != first


def test_a_new_folder_is_taken_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: new_folder(tmp_path / "runs", "classify"), range(24)))
    assert len(set(folders)) == 24 and all(folder.is_dir() for folder in folders)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be created"):
        new_folder(tmp_path / "file", "classify")


def test_inputs_that_are_there_before_the_run_stay(tmp_path: Path) -> None:
    (tmp_path / "run" / "inputs").mkdir(parents=True)
    (tmp_path / "run" / "inputs" / "train.jsonl").write_text("{}\n")
    make(tmp_path / "run").close()
    RunFolder.create(tmp_path / "run", "pretrain", {}, seed=0, overwrite=True).close()
    assert (tmp_path / "run" / "inputs" / "train.jsonl").read_text() == "{}\n"


def test_metrics_can_be_read_while_they_are_written_and_after_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    writer = MetricsWriter(path)
    writer.write(step=1, loss=2.0)
    position = writer.position()
    assert [line["loss"] for line in read_metrics(path)] == [2.0]
    writer.write(step=2, loss=1.0)
    writer.close()
    with path.open("a") as file:
        file.write('{"step": 3, "lo')
    assert [line["step"] for line in read_metrics(path)] == [1, 2]
    cut_back(path, position)
    assert path.read_text() == json.dumps({"step": 1, "loss": 2.0}) + "\n"


def test_a_value_that_is_not_finite_is_null(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path / "metrics.jsonl")
    writer.write(step=1, loss=float("nan"), norm=float("inf"), rate=0.5)
    writer.close()
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 1, "loss": null, "norm": null, "rate": 0.5}\n'


def test_runs_are_found_summed_up_and_compared(tmp_path: Path) -> None:
    one, two = make(tmp_path / "one", lr=0.1, model={"width": 8}), make(tmp_path / "two", lr=0.1, model={"width": 16})
    two.set_status("failed", "the loss is nan")
    one.close(), two.close()
    assert list(find_runs(tmp_path)) == [tmp_path / "one", tmp_path / "two"]
    assert summarise(tmp_path / "two").reason == "the loss is nan"
    assert differences(tmp_path / "one", tmp_path / "two") == {"model.width": (8, 16)}


def test_a_folder_that_is_no_run_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        read_record(tmp_path)
    with pytest.raises(UserError, match="does not exist"):
        read_record(tmp_path / "nowhere")

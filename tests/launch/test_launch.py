"""Submissions to a cluster, and mistakes that are found before one; no Slurm is needed here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.interrupts import listening
from attnlab.cli import main
from attnlab.launch import submit
from attnlab.launch.config import LaunchConfig, launch_settings, minutes
from attnlab.launch.queue import QueuedJob
from attnlab.launch.records import Submission, find_jobs, record_submission, submissions_of, submitted_folders
from attnlab.launch.slurm import _parameters
from attnlab.launch.status import job_state
from attnlab.runs import RunFolder, read_record

Lab = Callable[..., tuple[int, str, str]]
LAUNCH = ("how", "launch")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90), ("30:00", 30), ("0:30", 1), ("2:00:00", 120), ("1-0", 1440), ("1-12:30", 2190), ("0-0:1:30", 2)],
)
def test_times_are_read_as_slurm_reads_them(text: str, expected: int) -> None:
    assert minutes(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "1h", "0", "1-", "1:2:3:4", "-5"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        minutes(text)


@pytest.fixture(autouse=True)
def _no_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("ATTNLAB_SLURM", raising=False)


def test_flags_override_the_profile_and_the_profile_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, other = tmp_path / "config" / "attnlab" / "slurm.yaml", tmp_path / "other.yaml"
    usual.parent.mkdir(parents=True)
    usual.write_text("partition: gpu\ntime: 2:30:00\ngpus: 1\nsbatch:\n  - --exclusive\n  - --mail-type=END,FAIL\n")
    other.write_text("partition: other\n")
    assert launch_settings(LaunchConfig, {}) is None
    found = launch_settings(LaunchConfig, {LAUNCH: "slurm", ("slurm", "gpus"): "4", ("slurm", "memory"): "1.5"}).slurm
    assert (found.partition, found.minutes, found.gpus) == ("gpu", 150, 4)
    told = _parameters(found, "pretrain", 1, None)
    assert told["additional_parameters"] == {"requeue": True, "exclusive": True, "mail-type": "END,FAIL"}
    assert (told["mem"], told["gpus_per_node"], told["time"]) == ("1536M", 4, 150)
    monkeypatch.setenv("ATTNLAB_SLURM", str(other))
    assert launch_settings(LaunchConfig, {LAUNCH: "slurm"}).slurm.partition == "other"
    assert launch_settings(LaunchConfig, {LAUNCH: "slurm", ("how", "profile"): str(usual)}).slurm.partition == "gpu"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("partitoin: gpu", "line 1: unknown key 'partitoin' in slurm: did you mean 'partition'?"),
        ("qos: a\ntime: soon", "line 2: slurm.time: expected a time such as 90 (minutes)"),
        ("gpus: many", "line 1: slurm.gpus must be a whole number, got 'many'."),
        ("nodes: 0", "line 1: slurm.nodes must be greater than or equal to 1, got 0."),
        ("sbatch: [exclusive]", "line 1: slurm.sbatch: 'exclusive' is not an option of sbatch"),
        ("- gpu", "line 1:"),
    ],
)
def test_a_mistake_in_a_profile_is_one_sentence_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text(text)
    with pytest.raises(UserError) as mistake:
        launch_settings(LaunchConfig, {LAUNCH: "slurm", ("how", "profile"): str(profile)})
    assert str(mistake.value).startswith(f"{profile}, {sentence}")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lab:
    """`attnlab WORDS...` in this process: its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "_verbosity", console.Verbosity.NORMAL)  # a --quiet is for one command

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["attnlab", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The tasks that would have been submitted to Slurm."""
    tasks: list[Any] = []

    def take(given: list[Any], *rest: Any, **more: Any) -> list[str]:
        first = 7 + len(tasks)
        tasks.extend(given)
        return [f"{first}_{n}" for n in range(len(given))] if len(given) > 1 else [str(first)]

    monkeypatch.setattr(submit, "submit", take)
    monkeypatch.setattr(submit, "require_slurm", lambda: None)
    return tasks


@pytest.mark.parametrize("kind", ["knowledge", "pretrain", "finetune", "language", "classify"])
def test_every_training_command_is_submitted_as_it_was_typed(lab: Lab, submitted: list[Any], kind: str) -> None:
    (Path("text.txt")).write_text("a text\n")
    (Path("recipe.yaml")).write_text("machine: {threads: 1}\n")
    words = ["--batch-size=4", "--no-by-length"] if kind != "knowledge" else ["--control", "--people=7"]
    words += ["--corpus=text.txt"] if kind == "language" else []
    code, out, err = lab("-q", kind, "-c", "recipe.yaml", *words, "--launch", "slurm", "--partition=gpu", "--cpus", 2)
    assert code == 0, err
    [task] = submitted
    folder = task.exits.parent.relative_to(Path.cwd())
    assert out == f"job: 7\nrun: {folder}\n" and str(folder).startswith("runs/") and str(folder).endswith(kind)
    assert task.begin[:6] == [sys.executable, "-P", "-m", "attnlab", "--quiet", kind]
    assert sorted(task.begin[6:]) == sorted(["--config=recipe.yaml", *words, f"--run={folder}"])
    assert task.again == [sys.executable, "-P", "-m", "attnlab", "resume", str(folder)]
    assert (task.cwd, task.folder) == (Path.cwd(), Path.cwd() / folder)
    assert submissions_of(folder)[0].jobs == ["7"] and list(submitted_folders(Path("runs"))) == [folder]


@pytest.mark.parametrize(
    ("words", "on_each", "said"),
    [
        (["--nodes=2"], 1, ["--processes=2"]),
        (["--nodes=3", "--gpus=4"], 4, ["--processes=12"]),
        (["--nodes=3", "--gpus=4", "--device=cpu"], 1, ["--device=cpu", "--processes=3"]),
        (["--nodes=2", "--gpus=4", "--processes=3"], 3, ["--processes=6"]),
        (["--gpus=2"], None, ["--processes=2"]),
        (["--gpus=2", "--processes=1"], None, ["--processes=1"]),
        (["--processes=2"], None, ["--processes=2"]),
        (["--gpus=1"], None, []),
    ],
)
def test_processes_are_counted_on_each_node_and_the_command_has_them_all(
    lab: Lab, submitted: list[Any], words: list[str], on_each: int | None, said: list[str]
) -> None:
    code, _, err = lab("pretrain", *words, "--run=out", "--launch", "slurm")
    assert code == 0, err
    [task] = submitted
    assert task.on_each == on_each
    assert task.begin[4:] == ["pretrain", *said, "--run=out"]


def test_several_nodes_have_one_task_each_and_the_first_may_finish_last() -> None:
    found = launch_settings(LaunchConfig, {LAUNCH: "slurm", ("slurm", "nodes"): "2", ("slurm", "cpus"): "4"}).slurm
    told = _parameters(found, "pretrain", 1, None)
    assert (told["nodes"], told["ntasks_per_node"], told["cpus_per_task"]) == (2, 1, 4)
    assert told["srun_args"] == ["--cpus-per-task", "4", "--kill-on-bad-exit=0", "--wait=0"]


def test_a_demo_resumes_what_exists(lab: Lab, submitted: list[Any]) -> None:
    assert lab("demo", "--out", "shown", "--launch", "slurm")[0] == 0
    [task] = submitted
    assert task.begin[4:] == task.again[4:] == ["demo", "--out=shown", "--resume"]


def test_a_comparison_is_one_command_per_cell_and_one_that_gathers(lab: Lab, submitted: list[Any]) -> None:
    Path("text.txt").write_text("the cat sat\n" * 200)
    words = ["--corpus=text.txt", "--attention=vanilla,linear", "--seeds=2", "--layers=1", "--heads=2", "--width=16"]
    assert lab("compare", *words, "--context=16", "--run=out", "--launch=slurm", "--at-once=2")[0] == 0
    assert [task.begin[4:] for task in submitted] == [
        *[["compare", "--run=out", f"--cell={n}"] for n in range(4)],
        ["compare", "--run=out", "--gather"],
    ]
    [submission] = submissions_of(Path("out"))
    assert submission.runs == [f"cells/{name}/seed-{seed}" for seed in (0, 1) for name in ("vanilla", "linear")]
    assert submission.gather == "11" and json.loads(Path("out/status.json").read_text())["state"] == "queued"


def test_a_sweep_is_an_array_of_workers_for_trials_that_wait(lab: Lab, submitted: list[Any]) -> None:
    assert lab("sweep", "--vary", "lr=0.1,0.2", "--run=out", "--launch=slurm", "--at-once=2")[0] == 0
    assert [task.begin[4:] for task in submitted] == [["sweep", "--run=out", "--worker"]] * 3
    assert json.loads(Path("out/status.json").read_text())["state"] == "queued" and read_record(Path("out"))["study"]
    code, _, err = lab("sweep", "--vary", "lr=0.1,0.2", "--launch=slurm")
    assert code == 2 and "--at-once" in err and not list(Path("runs").glob("*-sweep"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["pretrain", "--partition", "gpu"], "--partition is for a cluster: add --launch slurm."),
        (["pretrain", "--launch", "slrm"], "--launch: how.launch must be 'here' or 'slurm', got 'slrm'."),
        (["pretrain", "--launch", "slurm", "--overwrite"], "--overwrite and --launch slurm do not go together"),
        (["pretrain", "--launch", "slurm", "--dry-run"], "--dry-run and --launch slurm do not go together"),
        (["pretrain", "--launch", "slurm", "--lr", "-1"], "--lr: optimizer.lr must be greater than 0, got '-1'."),
        (["pretrain", "--launch", "slurm", "--run", "taken"], "taken already exists"),
        (["pretrain", "--launch", "slurm", "--corpus", "none.txt"], "--corpus: "),
        (["pretrain", "--launch", "slurm", "--profile", "none.yaml"], "--profile: none.yaml: there is no such"),
        (["pretrain", "--launch", "slurm", "--time", "0"], "--time: slurm.time: a job needs at least a minute."),
        (["pretrain", "--launch", "slurm", "--time", "1", "--warning", "60"], "--time, --warning: slurm: a warning"),
        (["pretrain", "--launch", "slurm", "--resume", "--run", "none"], "none does not exist"),
        (["demo", "--launch", "slurm", "--out", "taken"], "taken is not empty"),
        (["compare", "--launch", "slurm", "--corpus", "none.txt"], "--corpus: "),
        (["compare", "--cell", "1"], "--cell needs --run"),
        (["pretrain", "--nodes", "2"], "--nodes is for a cluster: add --launch slurm."),
        (["pretrain", "--launch", "slurm", "--nodes", "2", "--dry-run"], "--dry-run and --launch slurm do not go"),
        (["demo", "--launch", "slurm", "--nodes", "2"], "--nodes 2: each run of the demo uses one process"),
        (["compare", "--launch", "slurm", "--nodes", "2"], "--nodes 2: each run of a comparison uses one process"),
        (["sweep", "--launch", "slurm", "--nodes", "2"], "--nodes 2: each run of a sweep uses one process"),
        (
            ["classify", "--launch", "slurm", "--nodes", "2", "--gpus", "2", "--processes", "4"],
            "--processes 4 and --gpus 2: each process of a node needs its own GPU.",
        ),
        (["jobs", "log", "12"], "12 is neither a job of runs/jobs.txt nor a run that was submitted to a cluster."),
    ],
)
def test_mistakes_are_found_before_anything_is_submitted(
    lab: Lab, submitted: list[Any], words: list[str], sentence: str
) -> None:
    Path("taken").mkdir()
    Path("taken/file").touch()
    code, out, err = lab(*words)
    assert code == 2 and out == "" and err.startswith(f"error: {sentence}"), err
    assert len(err.splitlines()) == 1 and not submitted and not Path("runs").exists()


@pytest.mark.parametrize(
    ("words", "missing"),
    [(["cluster"], "sinfo"), (["pretrain", "--launch", "slurm"], "sbatch"), (["demo", "--launch", "slurm"], "sbatch")],
)
def test_without_slurm_the_message_names_the_missing_command(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], missing: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, err = lab(*words)
    assert code == 2 and out == "" and err.startswith(f"error: Slurm is not installed here: there is no {missing}")
    assert not Path("runs").exists()


def test_jobs_can_be_listed_where_there_is_no_slurm(lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert lab("jobs")[1].startswith("no jobs in runs")
    run = tmp_path / "elsewhere" / "run"
    (run / "slurm").mkdir(parents=True)
    record_submission(run, Submission("attnlab pretrain", "2026-01-01T00:00:00", ["7"], ["."]), Path("runs"))
    assert json.loads(lab("jobs", "--json")[1])[0]["state"] == "gone"
    (run / "slurm" / "7_exit").write_text("0\n")
    assert json.loads(lab("jobs", "--json")[1])[0]["state"] == "finished"


def test_a_job_is_found_by_its_number_and_by_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root, inside, outside = Path("runs"), Path("runs/one"), tmp_path / "two"
    for run, jobs in ((inside, ["3"]), (outside, ["4_0", "4_1"])):
        (run / "slurm").mkdir(parents=True)
        runs, last = (["."], None) if len(jobs) == 1 else (["cells/a", "cells/b"], "5")
        record_submission(run, Submission("attnlab", "now", jobs, runs, last), root)
    record_submission(inside, Submission("attnlab", "later", ["6"], ["."]), root)
    assert (root / "jobs.txt").read_text() == f"one\n{outside}\n"
    assert find_jobs("3", root) == (inside, ["3"]) and find_jobs("runs/one", root) == (inside, ["6"])
    assert find_jobs("4", root) == (outside, ["4_0", "4_1"]) and find_jobs("4_1", root) == (outside, ["4_1"])
    assert find_jobs(str(outside), root) == (outside, ["4_0", "4_1", "5"])
    assert find_jobs("two/cells/b", root) == (outside, ["4_1"])


def test_a_state_is_read_from_slurm_then_from_the_job_then_from_the_run(tmp_path: Path) -> None:
    def queued(state: str) -> QueuedJob:
        return QueuedJob("7", state, "None", "low", "0:01", "")

    assert job_state(queued("PENDING"), None, tmp_path) == "queued"
    assert job_state(queued("CANCELLED"), None, tmp_path) == "cancelled"
    assert job_state(queued("FAILED"), 2, tmp_path) == "failed" and job_state(None, 143, tmp_path) == "interrupted"
    run = RunFolder.create(tmp_path / "run", "pretrain", {}, 0)
    assert job_state(None, None, run.path) == "gone"  # its status is running, but it is in no queue
    run.set_status("finished")
    assert job_state(None, None, run.path) == "finished"


def test_a_run_begins_in_the_folder_of_its_submission(tmp_path: Path) -> None:
    place = tmp_path / "run" / "slurm"
    place.mkdir(parents=True)
    (place / "job.json").write_text("{}")
    RunFolder.create(tmp_path / "run", "pretrain", {}, 0).close()
    assert (place / "job.json").read_text() == "{}"
    RunFolder.create(tmp_path / "run", "pretrain", {}, 0, overwrite=True).close()
    assert place.is_dir()


def test_concurrent_changes_of_a_record_lose_nothing(tmp_path: Path) -> None:
    """Cells of one comparison record their failures in one file."""
    RunFolder.create(tmp_path / "run", "compare", {}, 0).close()

    def add() -> None:
        run = RunFolder.join(tmp_path / "run")
        for _ in range(10):
            with run.locked():
                run.update_record(count=read_record(run.path).get("count", 0) + 1)

    workers = [threading.Thread(target=add) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert read_record(tmp_path / "run")["count"] == 40


def test_a_cluster_may_send_sigterm_more_than_once() -> None:
    with listening() as stop:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
        assert stop.received == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_the_loopback_script_prints_its_usage() -> None:
    script = Path(__file__).parents[2] / "tools" / "slurm_loopback.sh"
    done = subprocess.run([script, "begin"], capture_output=True, text=True)
    assert done.returncode == 2 and "start FOLDER" in done.stderr

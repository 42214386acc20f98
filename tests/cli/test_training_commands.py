"""The training commands as a user types them: mistakes are one sentence and write nothing."""

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from attnlab.runs import read_config, read_record, read_status

Run = Callable[..., subprocess.CompletedProcess[str]]
TINY = """
    --people 12 --places 4 --layers 1 --heads 1 --width 16 --context 64 --tokens words --device cpu --precision fp32
""".split()  # noqa: SIM905


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--lrr", "1"], "No such option: --lrr"),
        (["--lr", "fast"], "error: --lr: optimizer.lr must be a number, got 'fast'."),
        (["--optimizer", "adamm"], "did you mean 'adam"),
        (["--attention", "vanila"], "did you mean 'vanilla'?"),
        (["--positions", "rotari"], "did you mean 'rotary'?"),
        (["--steps", "3", "--epochs", "2"], "epochs and steps exclude each other"),
        (["--heads", "3", "--width", "16"], "width 16 cannot be split into 3 heads"),
        (["--device", "cuda:7"], "'cuda:7' does not exist on this machine: use --device auto or --device cpu."),
        (["--corpus", "nowhere.txt"], "nowhere.txt"),
        (["--config", "nowhere.yaml"], "error: nowhere.yaml: there is no such recipe: "),
        (["--resume"], "--resume needs --run"),
    ],
)
def test_a_mistake_is_one_sentence_exit_2_and_nothing_written(
    tmp_path: Path, attnlab: Run, words: list[str], sentence: str
) -> None:
    done = attnlab("pretrain", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_tells_and_writes_nothing(tmp_path: Path, attnlab: Run) -> None:
    done = attnlab("pretrain", *TINY, "--steps", 7, "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for part in ("width: 16", "in all", "learning", "steps: 7", "time: about", "memory: about", "nothing was written"):
        assert part in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_recipe_with_flags_over_it_makes_a_run_that_explains_itself(tmp_path: Path, attnlab: Run) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("training:\n  epochs: 3\noptimizer:\n  name: sgd\n  lr: 0.01\n")
    run = tmp_path / "run"
    words = ["pretrain", "--config", recipe, *TINY, "--steps", 4, "--log-every", 1, "--run", run]
    done = attnlab(*words)
    assert done.returncode == 0, done.stderr
    config, record = read_config(run), read_record(run)
    assert config["training"]["steps"] == 4 and config["training"]["epochs"] is None
    assert config["optimizer"]["name"] == "sgd" and config["machine"]["threads"] >= 1
    assert record["command"].startswith("attnlab pretrain --config") and record["parameters"] > 0
    assert read_status(run)["state"] == "finished"
    assert (run / "report.html").is_file() and (run / "figures" / "loss.png").is_file()
    assert list((run / "tensorboard").glob("events.*"))
    again = attnlab(*words)
    assert again.returncode == 2 and "already exists" in again.stderr
    assert attnlab(*words, "--overwrite").returncode == 0


@pytest.mark.parametrize(
    ("asked", "sizes", "why"), [("largest", range(2, 48), "most that fit"), ("auto", [1], "steps")]
)
def test_a_batch_size_that_is_searched_for_is_said_and_recorded(
    tmp_path: Path, attnlab: Run, asked: str, sizes: Sequence[int], why: str
) -> None:
    """48 documents: memory bounds the largest, the 25 steps per epoch bound auto."""
    run = tmp_path / "run"
    done = attnlab("pretrain", *TINY, "--batch-size", asked, "--batch-memory", 0.002, "--steps", 3, "--run", run)
    assert done.returncode == 0, done.stderr
    found = read_config(run)["batch"]["size"]
    assert found in sizes
    [said] = [change for change in read_record(run)["changes"] if change.startswith(f"batch size {asked}: {found}, ")]
    assert said in done.stderr and why in said
    assert read_record(run)["batch_size"]["size"] == found
    assert read_record(run)["training"]["step"] == 3


def test_a_loss_that_explodes_fails_the_run_with_its_reason(tmp_path: Path, attnlab: Run) -> None:
    run = tmp_path / "run"
    words = ["--optimizer", "sgd", "--lr", "1e30", "--clip", "none", "--schedule", "constant", "--warmup-steps", 0]
    done = attnlab("pretrain", *TINY, *words, "--steps", 30, "--save-every", "1 step", "--run", run)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    status = read_status(run)
    assert status["state"] == "failed" and "learning rate 1e+30" in status["reason"]
    assert "step" in status["reason"] and "examples" in status["reason"]


def test_a_disk_that_fills_up_fails_the_run_and_damages_nothing(tmp_path: Path, attnlab: Run) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system")
    try:
        run = place / "run"
        words = ["--steps", 40, "--save-every", "1 step", "--keep", 30, "--width", 32, "--run", run]
        done = attnlab("pretrain", *TINY, *words)
        assert done.returncode == 1, done.stderr
        assert "the disk is full" in done.stderr and "Traceback" not in done.stderr
        assert read_status(run)["state"] == "failed" and "disk is full" in read_status(run)["reason"]
        kept = sorted((run / "checkpoints").glob("step-*"))
        assert kept and not list((run / "checkpoints").glob(".*"))
        for old in kept[:-1]:
            subprocess.run(["rm", "-r", str(old)], check=True)
        subprocess.run(["mount", "-o", "remount,size=20m", str(place)], check=True)
        assert attnlab("resume", run).returncode == 0
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_pretraining_fine_tuning_and_asking_fit_together(tmp_path: Path, attnlab: Run) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert attnlab("pretrain", *TINY, "--steps", 4, "--run", first).returncode == 0
    machine = ["--device", "cpu", "--precision", "fp32"]
    done = attnlab("finetune", "--from", first, "--epochs", 2, "--run", second, *machine)
    assert done.returncode == 0, done.stderr
    assert read_config(second)["model"]["width"] == 16 and read_config(second)["world"]["people"] == 12
    results = read_record(second)["results"]
    assert {"test_accuracy", "test_baseline", "dev_accuracy"} <= set(results)
    lines = (second / "predictions-test.jsonl").read_text().splitlines()
    assert len(lines) == results["test_questions"]
    asked = attnlab("ask", second, "Where was Zorro born?")
    assert asked.returncode == 0 and "confidence" in asked.stdout and "not in the model's vocabulary" in asked.stderr
    other = attnlab("finetune", "--from", first, "--people", 13, *machine, cwd=tmp_path)
    assert other.returncode == 2 and "world.people is 12" in other.stderr
    wider = attnlab("finetune", "--from", first, "--width", 64, *machine, cwd=tmp_path)
    assert wider.returncode == 2 and "model.width is 16" in wider.stderr


def test_runs_are_listed_shown_and_compared(tmp_path: Path, attnlab: Run) -> None:
    runs = tmp_path / "runs"
    for name, lr in (("a", "0.1"), ("b", "0.2")):
        done = attnlab("pretrain", *TINY, "--steps", 2, "--lr", lr, "--run", runs / name)
        assert done.returncode == 0, done.stderr
    listed = json.loads(attnlab("runs", "--json", cwd=tmp_path).stdout)
    assert [(Path(run["path"]).name, run["state"], run["step"]) for run in listed] == [
        ("a", "finished", 2),
        ("b", "finished", 2),
    ]
    assert "no runs" in attnlab("runs", "--state", "failed", cwd=tmp_path).stdout
    assert "finished" in attnlab("runs", "--contains", "a", cwd=tmp_path).stdout
    differing = json.loads(attnlab("runs", "compare", runs / "a", runs / "b", "--json").stdout)
    assert differing == {"optimizer.lr": [0.1, 0.2]}
    shown = json.loads(attnlab("runs", "show", runs / "a", "--json").stdout)
    assert shown["status"]["state"] == "finished" and shown["config"]["optimizer"]["lr"] == 0.1
    wrong = attnlab("runs", "--state", "finnished", cwd=tmp_path)
    assert wrong.returncode == 2 and "did you mean 'finished'?" in wrong.stderr
    nowhere = attnlab("runs", "show", tmp_path / "nowhere")
    assert nowhere.returncode == 2 and "nowhere does not exist" in nowhere.stderr

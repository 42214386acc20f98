"""Several processes make the run that one would have made; one that dies ends it, and tells why."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file
from tests.launch.cluster import SLOW
from tests.tiny_models import tiny_model
from tests.training.processes_worker import run_all, write_data

from attnlab.base.errors import UserError
from attnlab.distributed.team import Rank, find_rank
from attnlab.launch.processes import run_processes
from attnlab.runs import read_metrics, read_record, read_status

Run = Callable[..., subprocess.CompletedProcess[str]]
NAMES = ("spans", "masked", "cut-up", "cut-up-joint", "classes", "lora", "joint", "language")
CHAIN = ("chain/pretrain", "chain/finetune")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, cli_environment: dict[str, str]) -> Path:
    """The same runs made by one process, in `one`, and by two, in `two`."""
    root = tmp_path_factory.mktemp("processes")
    write_data(root)
    tiny_model(root / "bert", masked=True, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    torch.set_num_threads(1)
    run_all(root, root / "one", sharded=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", cli_environment["PYTHONPATH"])
        worker = Path(__file__).parent / "processes_worker.py"
        assert run_processes(2, [sys.executable, str(worker), str(root), str(root / "two")], None) == 0
    return root


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES + CHAIN)
def test_two_processes_have_the_losses_and_weights_of_one(folder: Path, name: str) -> None:
    one, two = (list(read_metrics(folder / side / name / "metrics.jsonl")) for side in ("one", "two"))
    assert [(line["step"], line["split"]) for line in two] == [(line["step"], line["split"]) for line in one]
    for first, second in zip(one, two, strict=True):
        for value in ("loss", "gradient_norm", "accuracy"):
            if value in first:
                assert second[value] == pytest.approx(first[value], rel=1e-4, abs=1e-6), (first["step"], value)
        assert second["tokens"] == first["tokens"]
    one, two = (weights(folder / side / name) for side in ("one", "two"))
    assert one.keys() == two.keys()
    for tensor in one:
        torch.testing.assert_close(two[tensor], one[tensor], rtol=1e-3, atol=2e-5)


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(max((run / "checkpoints").glob("step-*")) / "model.safetensors")


@pytest.mark.slow
def test_the_configuration_says_how_many_there_were(folder: Path) -> None:
    assert "processes: 2" in (folder / "two" / "spans" / "config.yaml").read_text()
    record = read_record(folder / "two" / "classes")
    assert record["results"].keys() == read_record(folder / "one" / "classes")["results"].keys()


# Dropout, Muon, accumulation and evaluation are on: everything that has state takes part.
FLAGS = """
    pretrain --tokens words --people 24 --places 8 --layers 1 --heads 2 --width 16 --context 48 --preset vanilla
    --dropout 0.1 --optimizer muon --objective span --batch-size 8 --accumulate 2 --dev-share 0.2 --steps 60
    --evaluate-every 9 --save-every 3 --log-every 1 --device cpu --precision fp32 --threads 1 --seed 3 --processes 2
""".split()  # noqa: SIM905


class Command:
    """`attnlab WORDS...` in the background."""

    def __init__(self, environment: dict[str, str], run: Path, *words: str) -> None:
        self.run = run
        self.parent = psutil.Popen(
            [sys.executable, "-m", "attnlab", *words],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def at_step(self, step: int) -> list[psutil.Process]:
        """Wait for it, and give the processes."""
        deadline = time.monotonic() + 1800
        while time.monotonic() < deadline and self.parent.poll() is None:
            lines = list(read_metrics(self.run / "metrics.jsonl"))
            if lines and lines[-1]["step"] >= step:
                return sorted(self.parent.children(), key=lambda child: child.pid)
            time.sleep(0.005)
        raise AssertionError(f"never at step {step}: {self.parent.stderr.read()}")

    def end(self) -> tuple[int, str]:
        _, said = self.parent.communicate(timeout=1800)
        return self.parent.returncode, said

    def stop(self) -> None:
        for process in [*self.parent.children(), self.parent] if self.parent.is_running() else []:
            process.kill()


@pytest.fixture
def command(cli_environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Command]]:
    made: list[Command] = []

    def start(*words: str) -> Command:
        made.append(Command(cli_environment, tmp_path / "run", *words))
        return made[-1]

    yield start
    for each in made:
        each.stop()


@pytest.mark.slow
def test_killed_and_stopped_it_tells_why_leaves_nobody_and_goes_on_to_the_same_weights(
    tmp_path: Path, attnlab: Run, command: Callable[..., Command]
) -> None:
    run, whole, slowly = tmp_path / "run", tmp_path / "whole", tmp_path / "slowly"
    (tmp_path / "slow.py").write_text(SLOW)
    words = [*FLAGS, "--attention", str(tmp_path / "slow.py")]
    done = attnlab(*words, "--run", whole)
    assert done.returncode == 0, done.stderr

    slowly.touch()  # so that it cannot end before it is stopped
    killed = command(*words, "--run", str(run))
    members = killed.at_step(5)
    assert len(members) == 2
    members[1].kill()
    code, said = killed.end()
    assert code == 1
    assert "process 1 of 2 (counted from 0) died: killed by signal 9 (SIGKILL)" in said and "Traceback" not in said
    assert read_status(run)["state"] == "failed"
    assert read_status(run)["reason"].startswith("process 1 of 2 (counted from 0) died: killed by signal 9")
    assert not any(member.is_running() for member in members)

    stopped = command("resume", str(run))
    members = stopped.at_step(12)
    stopped.parent.send_signal(signal.SIGTERM)
    assert stopped.end()[0] == 128 + signal.SIGTERM
    assert read_status(run)["reason"] == "stopped by SIGTERM"
    assert not any(member.is_running() for member in members)

    orphaned = command("resume", str(run))
    members = orphaned.at_step(24)
    orphaned.parent.kill()
    psutil.wait_procs(members, timeout=600)
    assert not any(member.is_running() for member in members)
    assert read_status(run)["reason"] == "stopped by SIGTERM"

    slowly.unlink()
    done = attnlab("resume", run)
    assert done.returncode == 0, done.stderr
    assert newest(run) == newest(whole)
    steps = [(line["step"], line["split"]) for line in read_metrics(run / "metrics.jsonl")]
    assert steps == [(line["step"], line["split"]) for line in read_metrics(whole / "metrics.jsonl")]


def newest(run: Path) -> list[bytes]:
    files = ("model", "optimizer", "random")
    return [(max((run / "checkpoints").glob("step-*")) / f"{name}.safetensors").read_bytes() for name in files]


@pytest.mark.parametrize(("count", "sentence"), [("0", "machine.processes"), ("99999", "is too many for this machine")])
def test_a_wrong_number_is_one_sentence(attnlab: Run, tmp_path: Path, count: str, sentence: str) -> None:
    done = attnlab("pretrain", "--processes", count, "--device", "cpu", "--run", tmp_path / "run")
    assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def script(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "member.py"
    path.write_text(text)
    return [sys.executable, str(path)]


@pytest.mark.slow
def test_the_reason_of_another_process_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
import os, pathlib, sys, time
if os.environ["RANK"] == "2":
    sys.exit("error: the third has no more memory")
time.sleep(1800)
pathlib.Path(__file__).with_name("waited for").touch()
"""
    assert run_processes(3, script(tmp_path, text), None) == 1
    assert not (tmp_path / "waited for").exists()
    said = capsys.readouterr().err
    assert "process 2 of 3 (counted from 0) ended with exit code 1: the third has no more memory" in said


@pytest.mark.slow
def test_what_the_first_process_says_itself_is_not_said_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "import os, sys; sys.exit(2 if os.environ['RANK'] == '0' else 71)"
    assert run_processes(2, script(tmp_path, text), None) == 2
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_ranks_are_read_from_torchrun_and_from_srun() -> None:
    torchrun = {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "n1",
        "MASTER_PORT": "1234",
    }
    assert find_rank(torchrun) == Rank(3, 4, 1, 2, "n1", 1234)
    srun = {
        "SLURM_STEP_NUM_TASKS": "4",
        "SLURM_STEP_NUM_NODES": "1",
        "SLURM_STEP_TASKS_PER_NODE": "4",
        "SLURM_PROCID": "2",
        "SLURM_LOCALID": "2",
        "SLURM_JOB_ID": "17",
        "SLURM_STEP_ID": "0",
    }
    rank = find_rank(srun)
    assert rank is not None and (rank.rank, rank.count, rank.local_rank, rank.local_count) == (2, 4, 2, 4)
    other = find_rank({**srun, "SLURM_PROCID": "0", "SLURM_LOCALID": "0"})
    assert other is not None and (other.address, other.port) == (rank.address, rank.port)


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{}, {"WORLD_SIZE": "1"}, {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}])
def test_a_process_started_alone_waits_for_nobody(environment: dict[str, str]) -> None:
    """A batch script has the number of tasks of its job in the environment, though it is one process."""
    assert find_rank(environment) is None


def test_half_an_environment_is_one_sentence() -> None:
    with pytest.raises(UserError, match="RANK is not set"):
        find_rank({"WORLD_SIZE": "2"})

"""What the launchers of several machines tell each other, and which ending is taken for the cause."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnlab.base.errors import UserError
from attnlab.distributed.exits import PEER_LOST, ProcessExit, cause, stopped_by
from attnlab.distributed.team import Rank
from attnlab.launch.rendezvous import LauncherGroup

pytestmark = pytest.mark.slow


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def meeting(count: int) -> list[LauncherGroup]:
    port = free_port()
    return [LauncherGroup(Rank(index, count, 0, 1, "127.0.0.1", port)) for index in range(count)]


def test_all_run_what_the_first_says_and_it_hears_how_they_ended() -> None:
    first, second = meeting(2)
    assert first.from_first(["attnlab", "resume", "run"]) == second.from_first(["attnlab", "pretrain"])
    assert [second.rank_of(local, 3).rank for local in range(3)] == [3, 4, 5]
    assert second.rank_of(2, 3) == Rank(5, 6, 2, 3, "127.0.0.1", first.store.port)
    assert not first.failed()
    second.report_failure()
    assert first.failed() and second.failed()
    dead = ProcessExit(1, 2, -signal.SIGKILL, host="n2")
    second.gather([dead])
    endings = first.gather([ProcessExit(0, 2, PEER_LOST, host="n1")])
    assert cause(endings) == dead


def test_a_machine_that_says_nothing_is_told_of() -> None:
    first, _ = meeting(2)
    assert cause(first.gather([ProcessExit(0, 2, 0)], 0.1)) is None  # it was not needed any more
    found = cause(first.gather([ProcessExit(0, 2, PEER_LOST)], 0.1))
    assert found is not None and found.sentence().startswith(
        "process 1 of 2 (counted from 0) was lost with its machine"
    )


def test_where_nothing_is_left_to_do_all_end() -> None:
    first, second = meeting(2)
    assert first.from_first([]) == second.from_first(["attnlab", "pretrain"]) == []
    second.finish_without_command()
    first.finish_without_command()


def test_the_others_outlive_the_first_launcher() -> None:
    first, second = meeting(2)
    del first
    second.report_failure()
    assert not second.failed()
    second.gather([ProcessExit(1, 2, 0)])


def test_asked_to_stop_it_has_not_failed_though_some_were_not_listening_yet() -> None:
    """A warning reaches the first machine only; processes elsewhere that wait for it are killed."""
    endings = [ProcessExit(0, 2, -signal.SIGTERM), ProcessExit(1, 2, -signal.SIGKILL, killed=True)]
    assert stopped_by(signal.SIGTERM, endings)
    assert not stopped_by(signal.SIGTERM, [*endings, ProcessExit(2, 3, -signal.SIGKILL)])
    assert not stopped_by(signal.SIGTERM, [ProcessExit(0, 2, 0), ProcessExit(1, 2, 0)])


def test_a_machine_that_cannot_be_met_is_one_sentence() -> None:
    [first] = meeting(1)
    with pytest.raises(UserError, match="cannot connect to the other machines"):
        LauncherGroup(Rank(0, 2, 0, 1, "127.0.0.1", first.store.port))


MEMBER = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
name = f"process {os.environ['RANK']} of {os.environ['WORLD_SIZE']}"
pathlib.Path(__file__).with_name(name).write_text(str(os.getpid()))
time.sleep(3600)
"""


class Launchers:
    """What srun would start on two nodes, with processes that wait to be stopped."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.folder, port = folder, free_port()
        (folder / "member.py").write_text(MEMBER)
        self.started = []
        for node in range(2):
            srun = {
                "SLURM_STEP_NUM_TASKS": "2",
                "SLURM_PROCID": str(node),
                "SLURM_LOCALID": "0",
                "SLURM_JOB_ID": "7",
                "SLURMD_NODENAME": f"n{node}",
                "MASTER_PORT": str(port),
            }
            # the second was told otherwise, as if it had seen an older state of the run: the first decides
            told = [sys.executable, str(folder / "member.py")] if node == 0 else ["false"]
            command = [sys.executable, "-m", "attnlab.launch.node", "1", str(folder / "run"), *told]
            self.started.append(
                subprocess.Popen(command, env={**environment, **srun}, stderr=subprocess.PIPE, text=True)
            )

    def members(self) -> list[int]:
        """Their numbers, once both are there."""
        files = [self.folder / f"process {rank} of 2" for rank in range(2)]
        end = time.monotonic() + 1800
        while not all(file.exists() and file.read_text() for file in files):
            assert time.monotonic() < end
            time.sleep(0.05)
        return [int(file.read_text()) for file in files]

    def end(self) -> tuple[list[int], str]:
        """Exit codes, and what the first had to say."""
        said = [each.communicate(timeout=1800)[1] for each in self.started]
        return [each.returncode for each in self.started], said[0]


@pytest.fixture
def launchers(cli_environment: dict[str, str], tmp_path: Path) -> Iterator[Launchers]:
    made = Launchers(cli_environment, tmp_path)
    yield made
    for each in made.started:
        each.kill()


def test_a_death_on_another_machine_is_told_by_the_first(launchers: Launchers) -> None:
    os.kill(launchers.members()[1], signal.SIGKILL)
    codes, said = launchers.end()
    assert codes == [1, 0]
    assert "error: process 1 of 2 (counted from 0, on n1) died: killed by signal 9 (SIGKILL)." in said


def test_without_the_first_launcher_the_others_are_asked_to_stop(launchers: Launchers) -> None:
    first, _ = launchers.members()
    launchers.started[0].kill()
    os.kill(first, signal.SIGKILL)
    codes, said = launchers.end()
    assert codes == [-signal.SIGKILL, 0] and said == ""

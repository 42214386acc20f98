"""A real Slurm on loopback for the tests, in a temporary folder; always stopped at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.launch.cluster import Child, Lab

from attnlab.base import console
from attnlab.cli import main

LOOPBACK = Path(__file__).parents[2] / "tools" / "slurm_loopback.sh"


@pytest.fixture(scope="session")
def slurm(cli_environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """The environment in which sbatch and the lab find the cluster; one process and core each, so that two fit."""
    if missing := [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]:
        pytest.skip(f"Slurm is not installed: there is no {missing[0]} ('{LOOPBACK.name} install' as root)")
    if os.geteuid() != 0:
        pytest.skip("Slurm's daemons are started by root only")
    folder = Path(tempfile.mkdtemp(prefix="attnlab-slurm-"))  # pytest's own folders are closed to the user munge
    started = subprocess.run([LOOPBACK, "start", folder], capture_output=True, text=True, timeout=120)
    if started.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"Slurm does not start here: {started.stderr.strip()[-300:]}")
    try:
        yield {**cli_environment, "SLURM_CONF": str(folder / "slurm.conf"), "OMP_NUM_THREADS": "1"}
    finally:
        subprocess.run([LOOPBACK, "stop", folder], timeout=120, check=True)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def lab(
    slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Lab:
    """`attnlab WORDS...` on a login node of the cluster, without the seconds a process takes to start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "_verbosity", console.Verbosity.NORMAL)
    for name, value in slurm.items():
        monkeypatch.setenv(name, value)

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["attnlab", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(sys.argv, int(ended.value.code or 0), out, err)

    return run


@pytest.fixture
def child(slurm: dict[str, str], tmp_path: Path) -> Child:
    """The same as a child process."""

    def start(*words: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "attnlab", *map(str, words)]
        return subprocess.Popen(
            command, env=slurm, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    return start

"""A real Slurm on loopback for the tests of a file, in a folder of its own; stopped whatever happens."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

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

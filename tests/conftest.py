"""Shared by all tests: the command line as a child process, and a home for what it remembers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def cli_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a child: this source tree, no colours, a cache of its own."""
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    cache = str(tmp_path_factory.mktemp("cache"))
    return {
        **os.environ,
        "PYTHONPATH": path,
        "XDG_CACHE_HOME": cache,
        "NO_COLOR": "1",
        "COLUMNS": "200",
        "HF_HUB_OFFLINE": "1",
        "OMP_WAIT_POLICY": "passive",
    }


@pytest.fixture(scope="session")
def attnlab(cli_environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `attnlab WORDS...` and give back what it printed."""

    def run(*words: object, cwd: Path | None = None, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "attnlab", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, env=cli_environment, cwd=cwd, timeout=timeout)

    return run

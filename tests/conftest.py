"""Shared by all tests: the command line as a child process, and a home for what it remembers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def own_config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for what a user has allowed: tests neither read nor change that of the person who runs them."""
    folder, before = tmp_path_factory.mktemp("config"), os.environ.get("ATTNLAB_CONFIG")
    os.environ["ATTNLAB_CONFIG"] = str(folder)
    yield folder
    os.environ.pop("ATTNLAB_CONFIG")
    if before is not None:
        os.environ["ATTNLAB_CONFIG"] = before


@pytest.fixture(scope="session")
def cli_environment(own_config: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
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
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",  # make runs the tests from sh, which it does not know
    }


@pytest.fixture(scope="session")
def cli_server(cli_environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A process that runs commands in forked children: see cli_server.py."""
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "cli_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=cli_environment,
    )
    assert server.stdout is not None and server.stdout.readline() == "ready\n"
    yield server
    server.terminate()
    server.wait()


@pytest.fixture(scope="session")
def attnlab(
    cli_server: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `attnlab WORDS...` and give back what it printed."""
    streams = tmp_path_factory.mktemp("streams")

    def run(*words: object, cwd: Path | None = None, timeout: float = 1800) -> subprocess.CompletedProcess[str]:
        out, err = streams / "out", streams / "err"
        request = {"words": [*map(str, words)], "cwd": str(cwd or Path.cwd()), "out": str(out), "err": str(err)}
        assert cli_server.stdin is not None and cli_server.stdout is not None
        cli_server.stdin.write(json.dumps(request | {"timeout": timeout}) + "\n")
        cli_server.stdin.flush()
        code = int(cli_server.stdout.readline())
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in (out, err)]
        return subprocess.CompletedProcess(["attnlab", *request["words"]], code, *texts)

    return run

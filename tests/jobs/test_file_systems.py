"""Limits of the system, as the system itself sets them; and readers, which leave a run as it is."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from attnlab.base.errors import RunFailed, UserError
from attnlab.config import check
from attnlab.config.pretrain import PretrainConfig
from attnlab.experiments.rewrite import rewrite_report
from attnlab.jobs.engine import train_run
from attnlab.jobs.job import RunOptions
from attnlab.jobs.pretrain import PretrainJob
from attnlab.jobs.registry import saved_config
from attnlab.models.loading import load_gpt
from attnlab.runs import read_status
from attnlab.runs.listing import summarise

SETTINGS = {
    "model": {"layers": 1, "heads": 2, "width": 16, "context": 48},
    "machine": {"threads": 1, "precision": "fp32", "device": "cpu"},
    "world": {"people": 6, "places": 3},
    "training": {"steps": 4, "save_every": "2"},
}


def train(run: Path) -> Path:
    path = train_run(PretrainJob(check(PretrainConfig, SETTINGS)), RunOptions(run))
    assert path is not None
    return path


def resume(run: Path) -> None:
    PretrainJob(saved_config(run)).run(RunOptions(run, resume=True))  # type: ignore[arg-type]


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """As after `ulimit -f`."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_limit_on_the_size_of_files_is_one_sentence_and_the_run_can_be_resumed(tmp_path: Path) -> None:
    with largest_file(12_000), pytest.raises(RunFailed, match=r"larger than this process may write \(ulimit -f\)"):
        train(tmp_path / "run")
    assert read_status(tmp_path / "run")["state"] == "failed"
    resume(tmp_path / "run")
    assert read_status(tmp_path / "run")["state"] == "finished"
    with largest_file(2_000), pytest.raises(UserError, match="the report cannot be written: File too large"):
        rewrite_report(tmp_path / "run")


def test_a_read_only_file_system_can_be_read_and_is_refused_to_writers(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system")
    try:
        run = train(place / "run")
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        assert load_gpt(run).vocabulary and summarise(run).state == "finished"
        for write in (resume, rewrite_report):
            with pytest.raises(UserError, match="cannot be locked: Read-only file system"):
                write(run)
        with pytest.raises(UserError, match="cannot be created: Read-only file system"):
            train(place / "other")
    finally:
        subprocess.run(["umount", str(place)], check=True)


def contents(run: Path) -> dict[Path, tuple[int, int, int]]:
    paths = [run, *run.rglob("*")]
    return {path: ((status := path.lstat()).st_ino, status.st_size, status.st_mtime_ns) for path in paths}


def test_readers_change_nothing_even_where_something_is_damaged(
    tmp_path: Path, attnlab: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    run = train(tmp_path / "run")
    newest = max((run / "checkpoints").glob("step-*"))
    (newest / "model.safetensors").write_bytes(b"damaged")
    (run / "checkpoints" / ".step-00000009.0123456789abcdef.partial").mkdir()
    (run / ".run.json.0123456789abcdef.tmp").write_text("half")
    before = contents(run)
    for words in (["ask", run, "Where was Ann born?"], ["sample", run, "--length", 3], ["runs", "--in", tmp_path]):
        done = attnlab(*words)
        assert done.returncode == 0, done.stderr
    assert contents(run) == before
    (run / "status.json").write_text('{"state": "interrupted"}')
    resume(run)
    names = {path.name for path in run.rglob("*")}
    assert f"damaged-{newest.name}" in names and not any(name.startswith(".") for name in names)

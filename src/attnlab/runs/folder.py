"""A run is a folder that explains itself.

    config.yaml      the resolved configuration
    run.json         kind, command line, versions, machine, git commit, seed, settings the lab changed
    status.json      queued, running, finished, failed (with the reason) or interrupted
    metrics.jsonl    one line per measurement, written at once
    checkpoints/     see attnlab.runs.checkpoints
    figures/, report.html
    slurm/           see attnlab.launch: exists before the run, when a cluster runs it
    inputs/          data and code that were handed in from Python: exists before the run as well

One process at a time may write to it, by a lock of the operating system, which a crash releases.
"""

from __future__ import annotations

import json
import platform
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import yaml
from filelock import FileLock, Timeout

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import write_text

ROOT = Path("runs")  # the default folder for runs
STATES = ("queued", "running", "finished", "failed", "interrupted")
INPUTS = "inputs"
KEPT = {"lock", "slurm", INPUTS}  # what a folder may contain before its run begins


_call: ContextVar[str] = ContextVar("call", default="")


@contextmanager
def called_from_python(call: str) -> Iterator[None]:
    """Inside, this call is what runs record as the command that started them."""
    token = _call.set(call)
    try:
        yield
    finally:
        _call.reset(token)


def command() -> str:
    """The command line, or the call from Python, that this process carries out."""
    return _call.get() or shlex.join([*_program(), *sys.argv[1:]])


class RunFolder:
    """A run that this process writes to, from `create` or `reopen`, which take the lock."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, path: Path, kind: str, config: Mapping[str, Any], seed: int, overwrite: bool = False) -> RunFolder:
        """A new run folder; an existing one only with `overwrite`, and never one in use."""
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            may_begin(path, overwrite)
        except OSError as error:
            raise UserError(f"{path}: the run folder cannot be created: {error.strerror}.") from None
        run = cls(path, _locked(path))
        try:
            may_begin(path, overwrite)  # again: another run may have ended before the lock was taken
        except UserError:
            run.close()
            raise
        run._clear()
        run._describe(kind, config, seed)
        run.set_status("running")
        return run

    @classmethod
    def reopen(cls, path: Path) -> RunFolder:
        """An existing run, to be resumed."""
        read_record(path)  # raises for a folder that is not a run
        run = cls(path, _locked(path))
        run.update_record(resumed=[*read_record(path).get("resumed", []), _now()])
        run.set_status("running")
        return run

    @classmethod
    def join(cls, path: Path) -> RunFolder:
        """A run that several processes write to: each takes the lock only while it changes something."""
        read_record(path)
        return cls(path, FileLock(path / "lock"))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Inside, this process holds the lock, so no other process changes the record; it may hold it already."""
        with self._lock:
            yield

    def close(self) -> None:
        self._lock.release()

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def figures(self) -> Path:
        folder = self.path / "figures"
        folder.mkdir(exist_ok=True)
        return folder

    def set_status(self, state: str, reason: str = "") -> None:
        """Write the state of the run, in a file that is replaced in one step."""
        process = psutil.Process()
        status = {
            "state": state,
            "reason": reason,
            "at": _now(),
            "pid": process.pid,
            "process_started": process.create_time(),
            "host": platform.node(),
        }
        write_text(self.path / "status.json", json.dumps(status, indent=1) + "\n")

    def note_change(self, text: str) -> None:
        """Print and record a decision of the lab, such as a setting it chose or changed."""
        console.warn(text)
        self.update_record(changes=[*read_record(self.path).get("changes", []), text])

    def update_record(self, **values: Any) -> None:
        """Add to run.json."""
        record = {**read_record(self.path), **values}
        write_text(self.path / "run.json", json.dumps(record, indent=1, default=str) + "\n")

    def write_config(self, config: Mapping[str, Any]) -> None:
        write_text(self.path / "config.yaml", yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True))

    def _describe(self, kind: str, config: Mapping[str, Any], seed: int) -> None:
        from attnlab.base.machine import facts

        record = {
            "kind": kind,
            "command": command(),
            "folder": str(Path.cwd()),
            "started": _now(),
            "seed": seed,
            "versions": facts.versions(),
            "machine": facts.describe(),
            "git": facts.git_commit(Path.cwd()),
            "changes": [],
        }
        self.write_config(config)
        write_text(self.path / "run.json", json.dumps(record, indent=1) + "\n")

    def _clear(self) -> None:
        for entry in self.path.iterdir():
            if entry.name in KEPT:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def fresh_path(root: Path, kind: str) -> Path:
    """An unused name: the time, the kind and, if needed, a number."""
    stem = f"{time.strftime('%Y-%m-%d-%H%M%S')}-{kind}"
    candidates = (root / (stem if n == 1 else f"{stem}-{n}") for n in range(1, 10_000))
    return next(path for path in candidates if not path.exists())


def new_folder(root: Path, kind: str) -> Path:
    """A folder with an unused name, created at once: no two processes get the same one."""
    while True:
        path = fresh_path(root, kind)
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            if not path.is_dir():
                raise UserError(f"{root}: runs cannot be stored there, a part of the path is a file.") from None
        except OSError as error:
            raise UserError(f"{path}: the run folder cannot be created: {error.strerror}.") from None
        else:
            return path


def may_begin(path: Path, overwrite: bool = False) -> None:
    """Raise if a run cannot begin in this folder."""
    if not path.is_dir():
        raise UserError(f"{path} is a file: choose another folder for the run.")
    content = {entry.name for entry in path.iterdir()} - KEPT
    if content and not overwrite:
        raise UserError(
            f"{path} already exists: choose another --run, resume it with 'attnlab resume {path}', "
            "or replace it with --overwrite."
        )
    if content and "run.json" not in content:
        raise UserError(f"{path} is not a run folder, so --overwrite does not delete it: choose another --run.")


def _locked(path: Path) -> FileLock:
    lock = FileLock(path / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        status = read_status(path)
        holder = f"process {status.get('pid', '?')} on {status.get('host', '?')}"
        raise UserError(f"{path} is in use by {holder}: wait for it or choose another --run.") from None
    return lock


def must_be_free(path: Path) -> None:
    """Raise if another process writes to this run."""
    if (path / "lock").exists():
        _locked(path).release()


def is_run(path: Path) -> bool:
    return (path / "run.json").is_file()


def read_record(path: Path) -> dict[str, Any]:
    """The content of run.json; raises if there is none."""
    try:
        record = json.loads((path / "run.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        what = "is not a run folder: it has no run.json" if path.is_dir() else "does not exist"
        raise UserError(f"{path} {what} ('attnlab runs' lists the runs).") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path / 'run.json'} cannot be read: {error}.") from None
    return dict(record)


def read_config(path: Path) -> dict[str, Any]:
    """The resolved configuration of a run, as plain values."""
    from attnlab.config.recipe import read_yaml

    return read_yaml(path / "config.yaml")[0]


def read_status(path: Path) -> dict[str, Any]:
    """The content of status.json; a run marked 'running' whose process has ended was interrupted."""
    try:
        status = dict(json.loads((path / "status.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {"state": "interrupted", "reason": "it was killed before it wrote its status"}
    if status.get("state") == "running" and not _alive(status):
        status.update(state="interrupted", reason="its process was lost")
    return status


def _alive(status: Mapping[str, Any]) -> bool:
    if status.get("host") != platform.node():
        return True  # on another machine, where only that one can check
    try:
        process = psutil.Process(int(status["pid"]))
        return abs(process.create_time() - float(status["process_started"])) < 2
    except (psutil.Error, KeyError, ValueError):
        return False


def _program() -> list[str]:
    """How this process was started: the lab's command, or a script."""
    script = Path(sys.argv[0])
    return ["python", str(script)] if script.suffix == ".py" and script.stem != "__main__" else ["attnlab"]


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


class ReadOnlyRun(RunFolder):
    """A run folder that this process does not change."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, FileLock(path / "lock"))

    def close(self) -> None: ...

    def set_status(self, state: str, reason: str = "") -> None: ...

    def note_change(self, text: str) -> None: ...

    def update_record(self, **values: Any) -> None: ...

    def write_config(self, config: Mapping[str, Any]) -> None: ...


def open_shared(open_run: Callable[[], RunFolder]) -> RunFolder:
    """The run that the first process opens; the others get it read-only."""
    from attnlab.distributed.team import current  # loads torch

    runs: list[RunFolder] = []

    def path() -> Path:
        runs.append(open_run())
        return runs[0].path

    shared_path = current().from_first(path)
    return runs[0] if runs else ReadOnlyRun(shared_path)

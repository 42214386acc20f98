"""A run is a folder that explains itself.

    config.yaml      the resolved configuration
    run.json         see attnlab.runs.record; written last when a run begins
    status.json      see attnlab.runs.status
    metrics.jsonl    one line per measurement, written at once
    checkpoints/     see attnlab.runs.checkpoints
    figures/, report.html
    slurm/           see attnlab.launch: exists before the run, when a cluster runs it
    inputs/          data and code that were handed in from Python: exists before the run as well

One process at a time may write to it, by a lock of the operating system, which a crash releases. Who does not hold it
renames, deletes and writes nothing in the run; what is computed from a finished run gets folders of its own
(evaluations/).
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from attnlab.base import console
from attnlab.base.errors import UserError
from attnlab.base.files import write_text
from attnlab.base.leftovers import clean, is_leftover, remove
from attnlab.base.secrets import without_passwords
from attnlab.runs.links import must_stay_inside
from attnlab.runs.own_attention import COPY, TEXT
from attnlab.runs.record import RECORD, is_run, read_record, read_stored, write_record
from attnlab.runs.settings import CONFIG, is_unchanged, read_config, text_checksum
from attnlab.runs.status import LOCK, STATES, STATUS, now, own_status, read_status

__all__ = [
    "INPUTS",
    "KEPT",
    "ROOT",
    "STATES",
    "RunFolder",
    "called_from_python",
    "command",
    "fresh_path",
    "is_run",
    "may_begin",
    "must_be_free",
    "new_folder",
    "read_config",
    "read_record",
    "read_status",
]

ROOT = Path("runs")  # the default folder for runs
INPUTS = "inputs"
KEPT = {LOCK, "slurm", INPUTS}  # what a folder may contain before its run begins
BEFORE_RECORD = {STATUS, CONFIG, "vocabulary.json", COPY, TEXT}  # what is written before run.json
PATIENCE = 0.5  # seconds to wait for a lock: whoever looks whether a run is active holds it for an instant

_call: ContextVar[str] = ContextVar("call", default="")


@contextmanager
def called_from_python(call: str) -> Iterator[None]:
    """Inside, this call is what runs record as the command that started them; of two, the outer one."""
    token = _call.set(_call.get() or call)
    try:
        yield
    finally:
        _call.reset(token)


def command() -> str:
    """The command line, or the call from Python, that this process carries out."""
    return without_passwords(_call.get() or shlex.join([*_program(), *sys.argv[1:]]))


@contextmanager
def called_by_command() -> Iterator[None]:
    """Inside, runs record the command line, whatever functions of the API carry it out."""
    with called_from_python(command()):
        yield


class RunFolder:
    """A run that this process writes to, from `create` or `reopen`, which take the lock."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(
        cls,
        path: Path,
        kind: str,
        config: Mapping[str, Any],
        seed: int,
        overwrite: bool = False,
        files: Mapping[str, str] | None = None,
        **facts: Any,
    ) -> RunFolder:
        """A new run folder with these files and facts; an existing one only with `overwrite`, and never one in use."""
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            may_begin(path, overwrite)
        except OSError as error:
            raise UserError(f"{path}: the run folder cannot be created: {error.strerror}.") from None
        run = cls(path, _locked(path))
        try:
            may_begin(path, overwrite)  # again: another run may have ended before the lock was taken
            run._clear()
            run._begin(kind, config, seed, files or {}, facts)
        except OSError as error:
            run.close()
            raise UserError(f"{path}: the run cannot be stored there: {error.strerror}.") from None
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def reopen(cls, path: Path) -> RunFolder:
        """An existing run, to be resumed; what a killed process left is cleaned up."""
        read_record(path)  # raises for a folder that is not a run
        must_stay_inside(path)
        run = cls(path, _locked(path))
        try:
            run.clean()
            run._restore_config()
            run.update_record(resumed=[*read_record(path).get("resumed", []), now()])
            run.set_status("running")
        except OSError as error:
            run.close()
            raise UserError(f"{path}: the run cannot be changed: {error.strerror}.") from None
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def hold(cls, path: Path) -> RunFolder:
        """An existing run whose state stays as it is, while this process changes a file in it."""
        read_record(path)
        must_stay_inside(path)
        return cls(path, _locked(path))

    @classmethod
    def join(cls, path: Path) -> RunFolder:
        """A run that several processes write to: each takes the lock only while it changes something."""
        read_record(path)
        must_stay_inside(path)
        return cls(path, FileLock(path / LOCK))

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
        write_text(self.path / STATUS, json.dumps(own_status(state, reason), indent=1) + "\n")

    def note_change(self, text: str) -> None:
        """Print and record a decision of the lab, such as a setting it chose or changed."""
        console.warn(text)
        self.update_record(changes=[*read_record(self.path)["changes"], text])

    def update_record(self, **values: Any) -> None:
        """Add to run.json."""
        write_record(self.path, {**read_stored(self.path), **values})

    def write_config(self, config: Mapping[str, Any]) -> None:
        write_text(self.path / CONFIG, yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True))

    def complete(self, texts: Mapping[str, str], **facts: Any) -> None:
        """Write what is missing or damaged in a run that is resumed; the files are those it started with."""
        for name, text in texts.items():
            if not is_unchanged(self.path, name):
                write_text(self.path / name, text)
                console.warn(f"{self.path / name} was missing or damaged: written again.")
        record = read_stored(self.path)
        missing = {name: value for name, value in facts.items() if name not in record}
        if missing:  # a run of an earlier version, which wrote them after run.json
            self.update_record(**missing)

    def clean(self) -> None:
        """Put back or delete what a killed process left under temporary names; of runs inside, each does its own."""
        for folder in (self.path, *(self.path / name for name in ("checkpoints", "figures", "model"))):
            clean(folder)

    def _restore_config(self) -> None:
        settings = read_stored(self.path).get("settings")
        if settings and not (self.path / CONFIG).exists():
            self.write_config(settings)
            console.warn(f"{self.path / CONFIG} was missing: written again from {RECORD}.")

    def _begin(
        self, kind: str, config: Mapping[str, Any], seed: int, files: Mapping[str, str], facts: Mapping[str, Any]
    ) -> None:
        """Write everything that belongs to a run before run.json, which makes it one."""
        from attnlab.base.machine import facts as machine

        self.set_status("running")
        self.write_config(config)
        for name, text in files.items():
            write_text(self.path / name, text)
        record = {
            "kind": kind,
            "command": command(),
            "folder": str(Path.cwd()),
            "started": now(),
            "seed": seed,
            "versions": machine.versions(),
            "machine": machine.describe(),
            "git": machine.git_commit(Path.cwd()),
            "changes": [],
            **facts,
        }
        if files:
            record["files"] = {name: text_checksum(text) for name, text in files.items()}
        write_record(self.path, record)

    def _clear(self) -> None:
        """Delete what was in the folder, run.json last: until then it is a run, which can be replaced again."""
        for entry in sorted(self.path.iterdir(), key=lambda entry: entry.name == RECORD):
            if entry.name not in KEPT:
                remove(entry)


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
    content = {entry.name for entry in path.iterdir() if not is_leftover(entry)} - KEPT
    if not content or (RECORD not in content and (path / LOCK).is_file() and content <= BEFORE_RECORD):
        return  # empty, or of a process that was killed before its run began
    if not overwrite:
        raise UserError(
            f"{path} already exists: choose another --run, resume it with 'attnlab resume {path}', "
            "or replace it with --overwrite."
        )
    if RECORD not in content:
        raise UserError(f"{path} is not a run folder, so --overwrite does not delete it: choose another --run.")


def _locked(path: Path) -> FileLock:
    lock = FileLock(path / LOCK)
    try:
        lock.acquire(timeout=PATIENCE, poll_interval=0.02)
    except Timeout:
        status = read_status(path)
        holder = f"process {status.get('pid', '?')} on {status.get('host', '?')}"
        raise UserError(f"{path} is in use by {holder}: wait for it or choose another --run.") from None
    except OSError as error:
        raise UserError(_why_not_locked(path / LOCK, error)) from None
    return lock


def _why_not_locked(lock: Path, error: OSError) -> str:
    if lock.is_symlink() or lock.is_dir():
        what = "a link" if lock.is_symlink() else "a folder"
        return f"{lock} is {what}, not the lock of a run: remove it."
    return f"{lock.parent} cannot be locked: {error.strerror}: a run needs a folder that can be written to."


def must_be_free(path: Path) -> None:
    """Raise if another process writes to this run."""
    if (path / LOCK).exists():
        _locked(path).release()


def _program() -> list[str]:
    """How this process was started: the lab's command, or a script."""
    script = Path(sys.argv[0])
    return ["python", str(script)] if script.suffix == ".py" and script.stem != "__main__" else ["attnlab"]

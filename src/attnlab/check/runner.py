"""The parent: it starts the judge's process and collects its results. It neither imports torch nor runs the file."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from attnlab.base.errors import RunFailed, UserError
from attnlab.check.judge.inside.limits import Limits
from attnlab.check.judge.protection import PROTECTIONS, Protection
from attnlab.check.results import CheckReport, CheckResult, ExerciseStage, Remark, point_to_causes
from attnlab.check.student_file import StudentFile, file_facts, read_student_file, remarks_on_text

Told = Callable[[CheckResult], None]
PACKAGES = Path(__file__).resolve().parents[2]
START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from inside.warm import main; main()"
SERVICE = "attnlab.check.service:serve"


class Judge:
    """A warm process that checks one file after the other: torch is imported once for all of them.

    with Judge() as judge:
        reports = [judge.check(path) for path in paths]
    """

    def __init__(self, limits: Limits | None = None, protections: Sequence[Protection] = PROTECTIONS) -> None:
        self.limits, self.protections = limits or Limits(), list(protections)
        self._open()

    def _open(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="attnlab-check-")
        os.chmod(self.folder.name, 0o711)  # a user of its own must reach its folder in there
        self.process = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process and everything it has started."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.communicate()
        self.folder.cleanup()

    def check(
        self,
        path: Path,
        stage: ExerciseStage = ExerciseStage.HEADS,
        *,
        limits: Limits | None = None,
        seed: int | None = None,
        told: Told | None = None,
    ) -> CheckReport:
        """Check a file up to a stage; `told` is given each result as soon as it is known.

        Raises UserError when the file cannot be read or is not Python.
        """
        file = read_student_file(path)
        seed = secrets.randbits(32) if seed is None else seed
        progress = _Progress(file, stage, seed, told)
        self._send(self._request(file, stage, limits or self.limits, seed))
        for event in self._events():
            progress.record(event)
            if event["event"] == "done":
                return progress.report(event["protection"])
        reason = f"the judge was ended ({_ending(self.process.wait())})"
        self.close()
        self._open()  # for the next file
        raise RunFailed(f"{path.name}: {reason} after {len(progress.results)} results: check it alone, in a container.")

    def _request(self, file: StudentFile, stage: ExerciseStage, limits: Limits, seed: int) -> dict[str, Any]:
        return {
            "text": file.text,
            "filename": file.path.name,
            "stage": stage,
            "seed": seed,
            "limits": asdict(limits),
            "protections": self.protections,
            "folder": self.folder.name,
            **{name: sorted(values) for name, values in file_facts(file).items()},
        }

    def _start(self) -> subprocess.Popen[str]:
        folders = [os.path.abspath(entry) for entry in sys.path if os.path.isdir(entry) and not _has_lab(entry)]
        settings = json.dumps([folders, str(PACKAGES), SERVICE])
        return subprocess.Popen(
            [sys.executable, "-I", "-c", START, str(Path(__file__).parent / "judge"), settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=self.folder.name,
            env=_environment(),
            start_new_session=True,
        )

    def _send(self, request: dict[str, Any]) -> None:
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()

    def _events(self) -> Iterator[dict[str, Any]]:
        assert self.process.stdout
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "refused":
                raise RunFailed(f"no process could be started for the file: {event['reason']}.")
            yield event


class _Progress:
    """Results so far; a later result of the same check replaces an earlier one."""

    def __init__(self, file: StudentFile, stage: ExerciseStage, seed: int, told: Told | None) -> None:
        self.file, self.stage, self.seed, self.told = file, stage, seed, told
        self.results: dict[str, CheckResult] = {}
        self.remarks: list[Remark] = []

    def record(self, event: dict[str, Any]) -> None:
        if event["event"] == "remark":
            self.remarks.append(Remark(event["text"], event["line"]))
        elif event["event"] == "result":
            result = CheckResult.from_event(event)
            self.results[event["id"]] = replace(result, where=self.file.where(result.line))
            if self.told:
                self.told(self.results[event["id"]])

    def report(self, protection: Protection) -> CheckReport:
        remarks = [*remarks_on_text(self.file), *self.remarks]
        located = [replace(remark, where=self.file.where(remark.line)) for remark in remarks]
        results = list(self.results.values())
        return point_to_causes(CheckReport(str(self.file.path), self.stage, results, located, protection, self.seed))


def check_file(
    path: Path,
    stage: ExerciseStage = ExerciseStage.HEADS,
    time_limit: float = 10.0,
    seed: int | None = None,
    record: Path | None = None,
) -> CheckReport:
    """Check one file; with `record`, each result is appended to this file as a line of JSON when it is known."""
    if not hasattr(os, "fork"):
        raise UserError("attnlab check needs Linux or macOS: on Windows, run it in WSL.")
    read_student_file(path)  # what cannot be read is said before anything starts
    with contextlib.ExitStack() as stack:
        told = _recorder(record, stack) if record else None
        judge = stack.enter_context(Judge(Limits(seconds=time_limit)))
        return judge.check(path, stage, seed=seed, told=told)


def _recorder(path: Path, stack: contextlib.ExitStack) -> Told:
    try:
        out = stack.enter_context(path.open("a", encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): choose another file for --record.") from None

    def told(result: CheckResult) -> None:
        out.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
        out.flush()
        os.fsync(out.fileno())

    return told


def _environment() -> dict[str, str]:
    """Nothing of the environment but what Python needs to start: it may hold passwords."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH") if name in os.environ}
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    return {**kept, "OMP_NUM_THREADS": threads, "CUDA_VISIBLE_DEVICES": "", "MPLBACKEND": "Agg"}


def _has_lab(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, "attnlab", "__init__.py")) and not os.path.isdir(
        os.path.join(folder, "torch")
    )


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"

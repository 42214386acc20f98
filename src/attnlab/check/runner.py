"""The parent: run the checks in child processes, and survive their crashes.

A child that dies or hangs is replaced by a new one, which skips the statement or the check that killed
the last one. So every other function is still checked.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

from attnlab.base.errors import RunFailed
from attnlab.check.results import CheckReport, CheckRequest, CheckResult, ExerciseStage, Remark, Status, point_to_causes
from attnlab.check.student_file import StudentFile, read_student_file, remarks_on_text

START_SECONDS = 120.0  # importing torch from a cold disk
GRACE_SECONDS = 15.0  # what a child gets beyond its own time limit before it is killed
MAX_CHILDREN = 30

Event = dict[str, Any]


class ChildDied(Exception):
    """The child ended before it was done; the message describes how."""


def check_file(path: Path, stage: ExerciseStage = ExerciseStage.HEADS, time_limit: float = 10.0) -> CheckReport:
    """Check a student's file up to a stage. Raises UserError when it cannot be read or is not Python."""
    file = read_student_file(path)
    progress = CheckProgress(CheckRequest(str(path), file.text, stage, time_limit))
    for _ in range(MAX_CHILDREN):
        try:
            for event in _events(progress.request):
                progress.record(event)
            return progress.report(file)
        except ChildDied as death:
            progress.skip_last(str(death))
    raise RunFailed(f"{path.name} killed {MAX_CHILDREN} processes: remove the code that exits the program.")


class CheckProgress:
    """Results so far, over all children."""

    def __init__(self, request: CheckRequest) -> None:
        self.request = request
        self.results: dict[str, CheckResult] = {}
        self.remarks: dict[Remark, None] = {}  # in order and without repeats: every child reports them again
        self.current: Event = {"event": "starting"}

    def record(self, event: Event) -> None:
        match event["event"]:
            case "loading" | "checking":
                self.current = event
            case "remark":
                self.remarks[Remark(event["text"], event["line"])] = None
            case "result":
                self._keep(event["id"], CheckResult.from_event(event))

    def skip_last(self, death: str) -> None:
        """Record what the last child was doing when it died, so that the next one skips it."""
        event = self.current
        if event["event"] == "loading":
            self.request.skip_lines.append(event["line"])
            self.remarks[Remark(f"this statement was skipped ({death})", event["line"])] = None
        elif event["event"] == "checking" and event["id"] not in self.results:
            result = CheckResult.from_event(event)
            result.status, result.problem = Status.FAIL, death
            result.advice = "a function must return its answer and not end the process."
            self._keep(event["id"], result)
        else:
            raise RunFailed(f"the checking process could not be started or kept running: {death}.")

    def _keep(self, identity: str, result: CheckResult) -> None:
        self.results[identity] = result
        self.request.known[identity] = str(result.status)

    def report(self, file: StudentFile) -> CheckReport:
        names = {result.function for result in self.results.values()}
        remarks = [*remarks_on_text(file, names), *self.remarks]
        results = [replace(result, where=file.where(result.line)) for result in self.results.values()]
        located = [replace(remark, where=file.where(remark.line)) for remark in remarks]
        return point_to_causes(CheckReport(str(file.path), self.request.stage, results, located))


def _events(request: CheckRequest) -> Iterator[Event]:
    """Start a child and yield its events until it is done; raise ChildDied if it stops or hangs before."""
    with tempfile.TemporaryFile() as errors, _child(request, errors) as child:
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_read_lines, args=(child, lines), daemon=True).start()
        limit = START_SECONDS
        while True:
            try:
                line = lines.get(timeout=limit + GRACE_SECONDS)
            except queue.Empty:
                raise ChildDied(f"did not return, killed after {limit + GRACE_SECONDS:g} s") from None
            if not line:
                raise ChildDied(_cause_of_death(child.wait(), errors))
            event: Event = json.loads(line)
            if event["event"] == "done":
                return
            yield event
            limit = event.get("seconds", request.time_limit)


@contextlib.contextmanager
def _child(request: CheckRequest, errors: IO[bytes]) -> Iterator[subprocess.Popen[str]]:
    """A child process for the request, killed at the end together with everything it started."""
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "attnlab.check.child_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        encoding="utf-8",
        env=_environment(),
        start_new_session=True,
    )
    try:
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            json.dump(asdict(request), child.stdin)
            child.stdin.close()
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL) if hasattr(os, "killpg") else child.kill()
        child.wait()


def _environment() -> dict[str, str]:
    package = str(Path(__file__).resolve().parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "MPLBACKEND": "Agg",  # plt.show() in a demo must not open a window
        "CUDA_VISIBLE_DEVICES": "",  # inputs are on the CPU, so masks should be too
    }


def _read_lines(child: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        lines.put(line)
    lines.put("")


def _cause_of_death(code: int, errors: IO[bytes]) -> str:
    if code < 0:
        return f"the process died of {signal.Signals(-code).name}"
    errors.seek(0)
    last = errors.read().decode(errors="replace").strip().rsplit("\n", 1)[-1]
    return f"the process exited with code {code}" + (f" ({last})" if last else "")

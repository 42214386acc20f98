"""The parent: run the checks in child processes, and survive whatever happens in them.

A child that dies or hangs is replaced by a new one, which passes over the statement or the check that ended
the last. So every other function is still checked.
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
from attnlab.check.results import Job, Remark, Report, Result, Stage, Status, point_to_causes
from attnlab.check.source import Source, read_remarks, read_source

START_SECONDS = 120.0  # importing torch from a cold disk
GRACE_SECONDS = 15.0  # what a child gets beyond its own time limit before it is ended
CHILDREN = 30

Event = dict[str, Any]


class Died(Exception):
    """The child ended before it was done; the message says how."""


def check_file(path: Path, stage: Stage = Stage.HEADS, time_limit: float = 10.0) -> Report:
    """Check a person's file up to a stage. Raises UserError when it cannot be read or is not Python."""
    source = read_source(path)
    progress = Progress(Job(str(path), source.text, stage, time_limit))
    for _ in range(CHILDREN):
        try:
            for event in _events(progress.job):
                progress.hear(event)
            return progress.report(source)
        except Died as death:
            progress.pass_over(str(death))
    raise RunFailed(f"{path.name} ended {CHILDREN} processes: take out the code that ends the program.")


class Progress:
    """What is known so far, across children."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.results: dict[str, Result] = {}
        self.remarks: dict[Remark, None] = {}  # each once, in order, though every child makes them anew
        self.doing: Event = {"event": "starting"}

    def hear(self, event: Event) -> None:
        match event["event"]:
            case "loading" | "checking":
                self.doing = event
            case "remark":
                self.remarks[Remark(event["text"], event["line"])] = None
            case "result":
                self._keep(event["id"], Result.from_event(event))

    def pass_over(self, death: str) -> None:
        """Note what the last child was doing when it ended, so that the next does not do it again."""
        event = self.doing
        if event["event"] == "loading":
            self.job.skip_lines.append(event["line"])
            self.remarks[Remark(f"this statement was passed over ({death})", event["line"])] = None
        elif event["event"] == "checking" and event["id"] not in self.results:
            result = Result.from_event(event)
            result.status, result.problem = Status.FAIL, death
            result.advice = "a function must return its answer, and leave the process alone."
            self._keep(event["id"], result)
        else:
            raise RunFailed(f"the checking process could not be started or kept running: {death}.")

    def _keep(self, identity: str, result: Result) -> None:
        self.results[identity] = result
        self.job.known[identity] = str(result.status)

    def report(self, source: Source) -> Report:
        names = {result.function for result in self.results.values()}
        remarks = [*read_remarks(source, names), *self.remarks]
        results = [replace(result, where=source.where(result.line)) for result in self.results.values()]
        located = [replace(remark, where=source.where(remark.line)) for remark in remarks]
        return point_to_causes(Report(str(source.path), self.job.stage, results, located))


def _events(job: Job) -> Iterator[Event]:
    """Start a child and yield what it says until it is done; raise Died if it stops or stalls before."""
    with tempfile.TemporaryFile() as complaints, _child(job, complaints) as child:
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_listen, args=(child, lines), daemon=True).start()
        patience = START_SECONDS
        while True:
            try:
                line = lines.get(timeout=patience + GRACE_SECONDS)
            except queue.Empty:
                raise Died(f"did not return, ended after {patience + GRACE_SECONDS:g} s") from None
            if not line:
                raise Died(_how_it_ended(child.wait(), complaints))
            event: Event = json.loads(line)
            if event["event"] == "done":
                return
            yield event
            patience = event.get("seconds", job.time_limit)


@contextlib.contextmanager
def _child(job: Job, complaints: IO[bytes]) -> Iterator[subprocess.Popen[str]]:
    """A child at work on the job, surely gone at the end, with all that it started."""
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "attnlab.check.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        encoding="utf-8",
        env=_environment(),
        start_new_session=True,
    )
    try:
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            json.dump(asdict(job), child.stdin)
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


def _listen(child: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        lines.put(line)
    lines.put("")


def _how_it_ended(code: int, complaints: IO[bytes]) -> str:
    if code < 0:
        return f"the process died of {signal.Signals(-code).name}"
    complaints.seek(0)
    last = complaints.read().decode(errors="replace").strip().rsplit("\n", 1)[-1]
    return f"the process ended itself with exit code {code}" + (f" ({last})" if last else "")

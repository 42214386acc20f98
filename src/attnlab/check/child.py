"""The child process: the only place where a person's code runs. It speaks to its parent in lines of JSON.

    {"event": "ready"}                          torch is loaded
    {"event": "loading", "line": 12, "seconds": 10.0}    about to run this top-level statement
    {"event": "remark", "text": ..., "line": 3}
    {"event": "checking", "id": ..., "seconds": 10.0, ...}  about to run this check
    {"event": "result", "id": ..., ...}         a Result
    {"event": "done"}

Whatever happens to this process, the parent knows from the last line what it was doing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from attnlab.attention import pieces
from attnlab.base.errors import nearest
from attnlab.check.catalogue import Function
from attnlab.check.clock import TimeLimit, limited
from attnlab.check.judge import Judge, line_in
from attnlab.check.load import load
from attnlab.check.results import Job, Remark, Result, Status
from attnlab.check.stages import CHECKS, Check

Emit = Callable[[dict[str, Any]], None]
MASK_CHECK = next(check.id for check in CHECKS if check.function == "make_causal_mask")


def examine(job: Job, emit: Emit) -> None:
    """Load the file and run every check that has no result yet."""

    def remark(note: Remark) -> None:
        emit({"event": "remark", **asdict(note)})

    module = load(
        job.text,
        job.path,
        job.time_limit,
        job.skip_lines,
        before=lambda line, seconds: emit({"event": "loading", "line": line, "seconds": seconds}),
        remark=remark,
    )
    _reset_torch()
    statuses = dict(job.known)
    for check in CHECKS:
        if check.stage not in job.stage.up_to() or check.id in statuses:
            continue
        emit({"event": "checking", "id": check.id, "seconds": job.time_limit, **asdict(_blank(check))})
        mask_is_right = statuses.get(MASK_CHECK) == Status.PASS
        result = _examine_one(check, module, job, mask_is_right)
        statuses[check.id] = result.status
        emit({"event": "result", "id": check.id, **asdict(result)})
    for name in _imported(module, job.path):
        remark(Remark(f"{name} is not defined in this file but imported"))
    emit({"event": "done"})


def _examine_one(check: Check, module: ModuleType, job: Job, mask_is_right: bool) -> Result:
    function = getattr(module, check.function, None)
    if not callable(function):
        return _missing(check, module)
    make_mask: Function = module.make_causal_mask if mask_is_right else pieces.make_causal_mask
    try:
        return Judge(check, function, job.path, limited(make_mask, job.time_limit), job.time_limit).verdict()
    except TimeLimit as error:
        result = _blank(check)
        result.status = Status.FAIL
        result.problem = f"cut off after {job.time_limit:g} s on a sequence of a few tokens"
        result.advice = "look for a loop that does not end."
        result.line = line_in(job.path, error)
        return result


def _blank(check: Check) -> Result:
    return Result(check.function, check.stage, check.case, optional=check.optional)


def _missing(check: Check, module: ModuleType) -> Result:
    result = _blank(check)
    result.status = Status.MISSING
    result.problem = "there is no function of this name in the file"
    result.advice = f"define {check.function}({check.signature})."
    wanted = {other.function for other in CHECKS}
    defined = [name for name, value in vars(module).items() if callable(value) and name not in wanted]
    if close := nearest(check.function, defined):
        result.advice = f"is {close} meant? Its name must be {check.function}."
    return result


def _imported(module: ModuleType, path: str) -> list[str]:
    """Checked names that a file takes from elsewhere: an instructor wants to know."""
    names = dict.fromkeys(check.function for check in CHECKS)
    codes = {name: getattr(getattr(module, name, None), "__code__", None) for name in names}
    return [name for name, code in codes.items() if code is not None and code.co_filename != path]


def _reset_torch() -> None:
    """Undo what a notebook may have set for its own purposes, so that it does not change the checks."""
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)


def main() -> None:
    job = Job.from_json(json.load(sys.stdin))
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")

    def emit(event: dict[str, Any]) -> None:
        channel.write(json.dumps(event) + "\n")
        channel.flush()

    emit({"event": "ready"})
    # From here on the person's prints and warnings go nowhere.
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    sys.path.insert(0, str(Path(job.path).resolve().parent))
    sys.argv = [job.path]
    torch.set_num_threads(1)
    torch.backends.mps.is_available = lambda: False  # type: ignore[assignment]  # inputs are on the CPU, so masks should be too
    examine(job, emit)


if __name__ == "__main__":
    main()

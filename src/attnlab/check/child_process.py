"""The child process: the only place where a student's code runs. It reports to its parent in lines of JSON.

    {"event": "ready"}                          torch is loaded
    {"event": "loading", "line": 12, "seconds": 10.0}    about to run this top-level statement
    {"event": "remark", "text": ..., "line": 3}
    {"event": "checking", "id": ..., "seconds": 10.0, ...}  about to run this check
    {"event": "result", "id": ..., ...}         a CheckResult
    {"event": "done"}

If this process dies, the last line shows the parent what it was doing.
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
from attnlab.check.checks import CHECKS, Check
from attnlab.check.function_check import FunctionCheck, line_in
from attnlab.check.load_module import load_module
from attnlab.check.results import CheckRequest, CheckResult, Remark, Status
from attnlab.check.time_limit import TimeLimitExceeded, limited

Emit = Callable[[dict[str, Any]], None]
MASK_CHECK = next(check.id for check in CHECKS if check.function == "make_causal_mask")


def run_checks(request: CheckRequest, emit: Emit) -> None:
    """Load the file and run every check that has no result yet."""

    def remark(note: Remark) -> None:
        emit({"event": "remark", **asdict(note)})

    module = load_module(
        request.text,
        request.path,
        request.time_limit,
        request.skip_lines,
        before=lambda line, seconds: emit({"event": "loading", "line": line, "seconds": seconds}),
        remark=remark,
    )
    _reset_torch()
    statuses = dict(request.known)
    for check in CHECKS:
        if check.stage not in request.stage.up_to() or check.id in statuses:
            continue
        emit({"event": "checking", "id": check.id, "seconds": request.time_limit, **asdict(check.empty_result())})
        mask_is_right = statuses.get(MASK_CHECK) == Status.PASS
        result = _run_check(check, module, request, mask_is_right)
        statuses[check.id] = result.status
        emit({"event": "result", "id": check.id, **asdict(result)})
    for name in _imported_functions(module, request.path):
        remark(Remark(f"{name} is not defined in this file but imported"))
    emit({"event": "done"})


def _run_check(check: Check, module: ModuleType, request: CheckRequest, mask_is_right: bool) -> CheckResult:
    function = getattr(module, check.function, None)
    if not callable(function):
        return _missing_result(check, module)
    limit = request.time_limit
    make_mask: Function = module.make_causal_mask if mask_is_right else pieces.make_causal_mask
    try:
        return FunctionCheck(check, function, request.path, limited(make_mask, limit), limit).run()
    except TimeLimitExceeded as error:
        result = check.empty_result()
        result.status = Status.FAIL
        result.problem = f"stopped after {limit:g} s on a sequence of a few tokens"
        result.advice = "look for a loop that does not end."
        result.line = line_in(request.path, error)
        return result


def _missing_result(check: Check, module: ModuleType) -> CheckResult:
    result = check.empty_result()
    result.status = Status.MISSING
    result.problem = "the file has no function with this name"
    result.advice = f"define {check.function}({check.signature})."
    checked_names = {other.function for other in CHECKS}
    other_names = [name for name, value in vars(module).items() if callable(value) and name not in checked_names]
    if close := nearest(check.function, other_names):
        result.advice = f"did you mean {close}? The function must be named {check.function}."
    return result


def _imported_functions(module: ModuleType, path: str) -> list[str]:
    """Checked functions that the file imports instead of defining: an instructor wants to know."""
    names = dict.fromkeys(check.function for check in CHECKS)
    codes = {name: getattr(getattr(module, name, None), "__code__", None) for name in names}
    return [name for name, code in codes.items() if code is not None and code.co_filename != path]


def _reset_torch() -> None:
    """Undo global settings of the student's file, so that they do not change the checks."""
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)


def main() -> None:
    request = CheckRequest.from_json(json.load(sys.stdin))
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")

    def emit(event: dict[str, Any]) -> None:
        channel.write(json.dumps(event) + "\n")
        channel.flush()

    emit({"event": "ready"})
    # From here on the student's prints and warnings are discarded.
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    sys.path.insert(0, str(Path(request.path).resolve().parent))
    sys.argv = [request.path]
    torch.set_num_threads(1)
    torch.backends.mps.is_available = lambda: False  # type: ignore[assignment]  # inputs are on the CPU, so masks should be too
    run_checks(request, emit)


if __name__ == "__main__":
    main()

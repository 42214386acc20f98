"""The judge's process: it examines the files that its parent sends, one after the other.

    in    one line of JSON per file: what to check, up to where
    out   {"event": "result", "id": ..., ...}, {"event": "remark", ...}, then {"event": "done", "protection": ...}

It never runs a person's code, and its parent never needs torch.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from attnlab.check.examination import FUNCTIONS, Examination, FileFacts
from attnlab.check.judge.candidate import Refused, Source
from attnlab.check.judge.inside.limits import Limits
from attnlab.check.judge.shelter import Shelter
from attnlab.check.results import CheckResult, ExerciseStage


def serve(orders: socket.socket) -> None:
    """Examine files until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    torch.set_num_threads(1)

    def tell(event: dict[str, Any]) -> None:
        out.write(json.dumps(event) + "\n")
        out.flush()

    for line in sys.stdin:
        _examine(orders, json.loads(line), tell)


def _examine(orders: socket.socket, request: dict[str, Any], tell: Any) -> None:
    limits = Limits(**request["limits"])
    source = Source(request["text"], request["filename"], FUNCTIONS)
    facts = FileFacts(*(frozenset(request[name]) for name in ("calls", "names", "from_lab")))
    stage = ExerciseStage(request["stage"])
    shelter = Shelter(orders, Path(request["folder"]), limits, request["protections"])
    examination = Examination(source, facts, stage, shelter, request["seed"])

    def result(identity: str, value: CheckResult) -> None:
        tell({"event": "result", "id": identity, **asdict(value)})

    try:
        examination.run(result)
    except Refused as refused:
        tell({"event": "refused", "reason": str(refused)})
        return
    for text, line in examination.candidate.remarks:
        tell({"event": "remark", "text": text, "line": line})
    for name, found in examination.candidate.functions.items():
        if found.callable and not found.own:
            tell({"event": "remark", "text": f"{name} is not defined in this file but imported", "line": None})
    tell({"event": "done", "protection": shelter.protection})

"""`lab.runs()`: the runs of a folder as a table; `summaries` is the same for the command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.api.arguments import checked
from attnlab.api.table import Table
from attnlab.base.errors import UserError, unknown
from attnlab.runs.folder import ROOT, STATES
from attnlab.runs.listing import DAMAGED, SORTS, Summary, find_runs, summarise

if TYPE_CHECKING:
    Source = str | os.PathLike[str]

COLUMNS = ("kind", "state", "reason", "data", "model", "method", "started", "step", "steps", "seconds", "bytes")


@checked
def runs(
    root: Source = ROOT,
    kind: str | None = None,
    state: str | None = None,
    contains: str | None = None,
    *,
    data: str | None = None,
    model: str | None = None,
    method: str | None = None,
    sort: str = "started",
) -> Table:
    """One row per run below `root`, the oldest first, with its results.

    `kind`, `state`, `method` and parts of the path (`contains`), the data and the model select some; `sort` is started,
    name, time, disk, dev or test.
    """
    return Table(
        {"run": str(run.path), **{name: getattr(run, name) for name in COLUMNS}, **run.results}
        for run in summaries(root, kind, state, contains, data, model, method, sort)
    )


def summaries(
    root: Source = ROOT,
    kind: str | None = None,
    state: str | None = None,
    contains: str | None = None,
    data: str | None = None,
    model: str | None = None,
    method: str | None = None,
    sort: str = "started",
) -> list[Summary]:
    if sort not in SORTS:
        raise UserError(unknown("order", sort, SORTS))
    if state is not None and state not in (*STATES, DAMAGED):
        raise UserError(unknown("state", state, (*STATES, DAMAGED)))
    folder = Path(root)
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder of runs: check the name.")
    chosen = [summarise(path) for path in find_runs(folder) if contains is None or contains in str(path)]
    return sorted(
        (
            run
            for run in chosen
            if kind in (None, run.kind)
            and state in (None, run.state)
            and method in (None, run.method)
            and (data or "") in run.data
            and (model or "") in run.model
        ),
        key=SORTS[sort],
    )

"""`lab.runs()`: the runs of a folder as a table."""

from __future__ import annotations

from pathlib import Path

from attnlab.api.table import Table
from attnlab.base.errors import UserError
from attnlab.runs.folder import ROOT
from attnlab.runs.listing import find_runs, summarise


def runs(root: str | Path = ROOT, kind: str | None = None, state: str | None = None) -> Table:
    """One row per run below `root`, the oldest first, with its results; `kind` and `state` select some."""
    folder = Path(root)
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder; name the folder of the runs, lab.runs(root).")
    table = Table()
    for run in map(summarise, find_runs(folder)):
        if kind in (None, run.kind) and state in (None, run.state):
            facts = {
                name: getattr(run, name) for name in ("kind", "state", "reason", "started", "step", "steps", "seconds")
            }
            table.append({"run": str(run.path), **facts, **run.results})
    return table

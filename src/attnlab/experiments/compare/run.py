"""Run a comparison: every cell that is missing, one after the other, then the report.

    comparison/
        config.yaml, run.json, status.json    what was asked, with what, how it stands
        cells/VARIANT/seed-N/                 a run folder for each cell
        results.json, report.html, figures/

A cell that fails is a row with its reason; the others go on. What is finished is never run again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnlab.base.errors import UserError
from attnlab.base.interrupts import listening
from attnlab.config import check
from attnlab.experiments.compare.cells import cells
from attnlab.experiments.compare.config import comparison_of
from attnlab.experiments.compare.plan import Plan, report
from attnlab.experiments.compare.subjects import subject_of
from attnlab.jobs.subruns import ending_recorded as ending_told
from attnlab.runs import RunFolder, read_config, read_record
from attnlab.training import setup

KIND = "compare"


def run_comparison(config: Any, path: Path, overwrite: bool = False) -> Path:
    """A new comparison; returns its folder."""
    config = config.model_copy(deep=True)
    subject_of(config).check(config)
    setup.must_be_together(config.machine)
    config.machine = setup.resolve(config.machine)  # once, so that all cells run alike
    run = RunFolder.create(path, KIND, config.model_dump(mode="json"), 0, overwrite)
    return _run(config, run)


def resume_comparison(path: Path, config: Any) -> Path:
    """Go on with the cells that are missing; `config` is the saved one, or has more seeds."""
    subject_of(config).check(config)
    run = RunFolder.reopen(path)
    run.write_config(config.model_dump(mode="json"))
    return _run(config, run)


def saved_comparison(path: Path) -> Any:
    """What a comparison was told."""
    kind = read_record(path)["kind"]
    if kind != KIND:
        raise UserError(f"{path} is a {kind} run, not a comparison: use 'attnlab resume {path}'.")
    values = read_config(path)
    return check(comparison_of(values["compare"].get("job", "language")), values)


def _run(config: Any, run: RunFolder) -> Path:
    with ending_told(run):
        with listening() as stop:
            plan = Plan(config, run)
            wanted = list(cells(config))
            for number, cell in enumerate(wanted, start=1):
                stop.check()
                plan.run(cell, f"{number}/{len(wanted)} {cell.variant.label}, seed {cell.seed}")
            stop.check()
        report(config, run)
    return run.path

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

from attnlab import console
from attnlab.compare.cells import Cell, cells, job_config
from attnlab.compare.config import comparison_of
from attnlab.compare.subjects import subject_of
from attnlab.config import check, leaves, value_of
from attnlab.errors import RunFailed, UserError
from attnlab.jobs.stages import ending_told, run_stage
from attnlab.runs import RunFolder, read_config, read_record
from attnlab.training import setup
from attnlab.training.stop import Interrupted, listening

KIND = "compare"


def run_comparison(config: Any, path: Path, overwrite: bool = False) -> Path:
    """A new comparison; returns its folder."""
    config = config.model_copy(deep=True)
    _check(config)
    setup.must_be_together(config.machine)
    config.machine = setup.resolve(config.machine)  # once, so that all cells run alike
    run = RunFolder.create(path, KIND, config.model_dump(mode="json"), 0, overwrite)
    return _run(config, run)


def resume_comparison(path: Path, config: Any) -> Path:
    """Go on with the cells that are missing; `config` is the saved one, or has more seeds."""
    _check(config)
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


def _check(config: Any) -> None:
    """Whatever is wrong for all variants is an error; what is wrong for one will be a row."""
    for key in leaves(type(config)):
        if key[-2:] == ("batch", "size") and value_of(config, key) == "auto":
            raise UserError("--batch-size auto would give each variant a batch of its own: name a number.")
    subject_of(config).check(config)


def _run(config: Any, run: RunFolder) -> Path:
    from attnlab.compare.page import write_comparison_page
    from attnlab.compare.results import gather
    from attnlab.compare.results_file import write_results

    with ending_told(run):
        with listening() as stop:
            plan = _Plan(config, run)
            wanted = list(cells(config))
            for number, cell in enumerate(wanted, start=1):
                stop.check()
                plan.run(cell, f"{number}/{len(wanted)} {cell.variant.label}, seed {cell.seed}")
            stop.check()
        results = gather(run.path, config)
        write_results(run.path, results)
        write_comparison_page(run.path, results)
        if not results.finished:
            raise RunFailed(f"no variant could be run; the first says: {plan.last_reason}")
        run.set_status("finished", f"without {', '.join(results.failed)}" if results.failed else "")
    return run.path


class _Plan:
    """Trains cells, and keeps in run.json, by variant, what is decided once and why a seed could not be trained."""

    def __init__(self, config: Any, run: RunFolder) -> None:
        self.config, self.folder = config, run
        self.known: dict[str, dict[str, Any]] = read_record(run.path).get("variants", {})
        self.last_reason = ""

    def run(self, cell: Cell, label: str) -> None:
        """Train the cell, go on with it, or leave it alone when it is done; remember why it cannot be trained."""
        known = self.known.setdefault(cell.variant.label, {"failures": {}})
        try:
            if set(known) == {"failures"}:
                known |= subject_of(self.config).decide(self.config, cell)
                self.folder.update_record(variants=self.known)
            again = f"attnlab compare --run {self.folder.path} --resume"
            config = job_config(self.config, cell, known)
            run_stage(self.config.compare.job, config, cell.path(self.folder.path), label, again)
            known["failures"].pop(str(cell.seed), None)
        except Interrupted:
            raise
        except Exception as failure:
            told = isinstance(failure, UserError | RunFailed)
            self.last_reason = str(failure) if told else f"{type(failure).__name__}: {failure}"
            known["failures"][str(cell.seed)] = self.last_reason
            console.warn(f"{cell.variant.label}, seed {cell.seed}: {self.last_reason}")
        self.folder.update_record(variants=self.known)

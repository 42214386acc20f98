"""Cells one by one, and the report at their end: what one process does for all cells, or many for one each.

What is decided once for a variant, and why a cell has no result, stands in the comparison's run.json. Whoever changes
it does so alone for that moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnlab.base import console
from attnlab.base.errors import RunFailed
from attnlab.base.interrupts import Interrupted
from attnlab.base.machine.peak import within_free_memory
from attnlab.experiments.compare.cells import Cell, job_config
from attnlab.experiments.compare.subjects import subject_of
from attnlab.jobs.several import reason_of
from attnlab.jobs.stages import keep_weights, run_stage
from attnlab.runs import RunFolder, read_record

MISSING = "its run is "


class Plan:
    """Trains cells, and keeps in run.json, by variant, what is decided once and why a seed could not be trained."""

    def __init__(self, config: Any, run: RunFolder) -> None:
        self.config, self.folder = config, run
        self.last_reason = ""

    def run(self, cell: Cell, label: str) -> None:
        """Train the cell, go on with it, or leave it alone when it is done; remember why it cannot be trained."""
        try:
            known = self._decided(cell)
            again = f"attnlab compare --run {self.folder.path} --resume"
            config = job_config(self.config, cell, known)
            with within_free_memory():  # what does not fit is a row: it must not take the others with it
                run_stage(self.config.compare.job, config, cell.path(self.folder.path), label, again)
            keep_weights(cell.path(self.folder.path))
        except Interrupted:
            raise
        except Exception as failure:
            self.last_reason = reason_of(failure)
            self._note(cell, self.last_reason)
            console.warn(f"{cell.variant.label}, seed {cell.seed}: {self.last_reason}")

    def note_missing(self, cell: Cell, state: str) -> bool:
        """Say why there is no result of a cell, unless it said so itself; whether that was needed."""
        with self._variant(cell) as known:
            reason = known["failures"].get(str(cell.seed), MISSING)
            if reason.startswith(MISSING):
                known["failures"][str(cell.seed)] = MISSING + state
        return bool(reason.startswith(MISSING))

    def _decided(self, cell: Cell) -> dict[str, Any]:
        with self._variant(cell) as known:
            known["failures"].pop(str(cell.seed), None)  # it is tried again
            if set(known) == {"failures"}:
                known |= subject_of(self.config).decide(self.config, cell)
        return known

    def _note(self, cell: Cell, reason: str) -> None:
        with self._variant(cell) as known:
            known["failures"][str(cell.seed)] = reason

    @contextmanager
    def _variant(self, cell: Cell) -> Iterator[dict[str, Any]]:
        """What is known of a cell's variant, to be changed; nobody else changes it meanwhile."""
        with self.folder.locked():
            variants = read_record(self.folder.path).get("variants", {})
            yield variants.setdefault(cell.variant.label, {"failures": {}})
            self.folder.update_record(variants=variants)


def report(config: Any, run: RunFolder) -> None:
    """Results and page of what is finished, and the status that goes with it."""
    from attnlab.experiments.compare.page import write_comparison_page
    from attnlab.experiments.compare.results import gather
    from attnlab.experiments.compare.results_file import write_results

    results = gather(run.path, config)
    write_results(run.path, results)
    write_comparison_page(run.path, results)
    if not results.finished:
        raise RunFailed(f"no variant could be run; the first says: {_a_reason(run.path)}")
    run.set_status("finished", f"without {', '.join(results.failed)}" if results.failed else "")


def _a_reason(path: Path) -> str:
    variants = read_record(path).get("variants", {}).values()
    return next((reason for known in variants for reason in known["failures"].values()), "it was not begun")
